"""Reference implementations: every algorithm by its pseudo-code, one client at a time, and the oracles it calls."""

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

Vector = torch.Tensor
Oracle = Callable[[Vector], Vector]


def stochastic_oracle(problem: Problem, n: int, t: int, streams: Streams) -> Oracle:
    """g_n: every call draws anew from the place (round t, client n) of the noise."""
    rng, name = streams.generator("noise", t, n), torch.tensor([[n]])

    def g(y: Vector) -> Vector:
        xi = problem.draw(rng, n)
        drawn = None if xi is None else torch.from_numpy(np.asarray(xi))[None, None]
        if drawn is not None and drawn.is_floating_point():
            drawn = drawn.to(problem.dtype)
        return problem.stochastic_gradient(y[None, None], name, drawn)[0, 0]

    return g


def step_sizes(problem: Problem, gamma: float) -> Vector:
    """gamma in every coordinate, but one where running statistics are, (d,)."""
    sizes = torch.full((problem.dimension,), gamma, dtype=problem.dtype)
    sizes[problem.dimension - problem.statistics :] = 1.0
    return sizes


def full_oracle(problem: Problem, n: int) -> Oracle:
    """The exact gradient of F_n."""
    return lambda y: problem.gradient(y[None, None], torch.tensor([[n]]))[0, 0]


def local_update(g: Oracle, x: Vector, gamma: float | Vector, I: int) -> Vector:
    """Delta after I local steps from x (Wang & Ji 2022, Algorithm 1, lines 4 to 8)."""
    y = x
    for _ in range(I):
        y = y - gamma * g(y)
    return y - x


@cache
def twins() -> Mapping[str, Callable[..., list[torch.Tensor]]]:
    """The reference implementation of every algorithm by its kind, of all papers (`<paper>.pseudocode:TWINS`)."""
    return merge_tables("empirical", "pseudocode", lambda module: module.TWINS)


def run_reference(algorithm: Algorithm, problem: Problem, q: np.ndarray, streams: Streams) -> torch.Tensor:
    """The models x_0, ..., x_T of one seed, shape (T + 1, d), by the algorithm's reference implementation.

    Args:
        algorithm: the algorithm.
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
