"""The slow twins: every algorithm once more, one client at a time, as its pseudo-code reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import torch

from fedbounds.bounds.theory.registry import merge_tables
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams


@cache
def twins() -> Mapping[str, Callable[..., list[torch.Tensor]]]:
    """The slow twin of every algorithm by its kind, as the rooms list them (`<room>.pseudocode:TWINS`)."""
    return merge_tables("empirical", "pseudocode", lambda module: module.TWINS)


def run_reference(algorithm: Algorithm, problem: Problem, q: np.ndarray, streams: Streams) -> torch.Tensor:
    """The models x_0, ..., x_T of one seed, shape (T + 1, d), by the algorithm's slow twin.

    Args:
        algorithm: whose twin runs.
        problem: the clients' gradients.
        q: the weights, shape (T, N).
        streams: of the seed.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
        >>> from fedbounds.empirical.problems import toy_example
        >>> run_reference(FedAvg(0.1, 1), toy_example(), np.eye(3), Streams(0)).shape
        torch.Size([4, 2])
    """
    x0 = problem.initial_point(streams.generator("initialization"))
    numbers = {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)}  # type: ignore[arg-type]
    return torch.stack(twins()[algorithm.kind](problem, q, x0, streams, **numbers))


__all__ = ["run_reference", "twins"]
