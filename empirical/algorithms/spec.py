"""Algorithms from their tables in specification files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from fedbounds.bounds.theory.registry import merge_tables
from fedbounds.empirical.algorithms.algorithm import Algorithm
from fedbounds.empirical.algorithms.ef21 import EF21
from fedbounds.empirical.algorithms.fednova import FedNova
from fedbounds.empirical.algorithms.fedprox import FedProx
from fedbounds.empirical.algorithms.scaffold import Scaffold
from fedbounds.empirical.algorithms.server_optimizers import FedAdam, FedAvgM
from fedbounds.empirical.runtime.kinds import Registry

_OF_NO_PAPER = (FedAvgM, FedAdam, FedProx, FedNova, Scaffold, EF21)


@cache
def algorithms() -> Mapping[str, type[Algorithm]]:
    """Every algorithm by its kind: those of the papers (`<paper>.algorithms:ALGORITHMS`), then those of none."""
    of_papers = merge_tables("empirical", "algorithms", lambda module: {each.kind: each for each in module.ALGORITHMS})
    return {each.kind: each for each in _OF_NO_PAPER} | of_papers


ALGORITHMS: Registry[Algorithm] = Registry("algorithm", lambda: dict(sorted(algorithms().items())))


def algorithm_from_spec(spec: Mapping[str, Any]) -> Algorithm:
    """The algorithm that a dictionary describes: its `kind` and its numbers.

    Args:
        spec: for instance `{"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5}`.

    Raises:
        FedboundsError: no kind, an unknown kind or key (with the nearest names), a missing key, a number
            outside its domain.

    Example:
        >>> algorithm_from_spec({"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5})
        FedAvg(local_step_size=0.1, local_steps=5)
        >>> algorithm_from_spec({"kind": "fedavg", "local_step_sise": 0.1, "local_steps": 5})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: unknown key of algorithm 'fedavg': 'local_step_sise'; did you mean
        local_step_size or local_steps or local_epochs?
    """
    return ALGORITHMS.build(spec)
