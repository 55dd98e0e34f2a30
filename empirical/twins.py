"""The slow twins: every algorithm once more, one client at a time, as its pseudo-code reads."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.papers.arbitrary_participation import pseudocode as paper
from fedbounds.empirical.papers.fed_norm_sgda import pseudocode as minimax_paper
from fedbounds.empirical.papers.fedau import pseudocode as fedau_paper
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.streams import Streams

TWINS = {
    "generalized-fedavg": paper.generalized_fedavg,
    "fedavg": paper.fedavg,
    "wait-minibatch": paper.wait_minibatch,
    "wait-full": paper.wait_full,
    "wait-for-all": paper.wait_for_all,
    "frozen-gradient": paper.frozen_gradient,
    "fedau": fedau_paper.fedau,
    "average-participating": fedau_paper.average_participating,
    "average-all": fedau_paper.average_all,
    "fixed-weights": fedau_paper.fixed_weights,
    "known-participation": fedau_paper.known_participation,
    "fedvarp": fedau_paper.fedvarp,
    "mifa": fedau_paper.mifa,
    "fed-norm-sgda": minimax_paper.run_fed_norm_sgda,
    "local-sgda": minimax_paper.run_local_sgda,
    "synchronous-sgda": minimax_paper.run_synchronous_sgda,
    "fsgda": minimax_paper.run_fsgda,
}


def run_reference(algorithm: Algorithm, problem: Problem, q: np.ndarray, streams: Streams) -> torch.Tensor:
    """The models x_0, ..., x_T of one seed, shape (T + 1, d), by the algorithm's slow twin.

    Args:
        algorithm: whose twin runs.
        problem: the clients' gradients.
        q: the weights, shape (T, N).
        streams: of the seed.

    Example:
        >>> from fedbounds.empirical.algorithms import FedAvg
        >>> from fedbounds.empirical.problems import toy_example
        >>> run_reference(FedAvg(0.1, 1), toy_example(), np.eye(3), Streams(0)).shape
        torch.Size([4, 2])
    """
    x0 = problem.initial_point(streams.generator("initialisation"))
    numbers = {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)}  # type: ignore[arg-type]
    return torch.stack(TWINS[algorithm.kind](problem, q, x0, streams, **numbers))


__all__ = ["TWINS", "run_reference"]
