"""Algorithms from dictionaries, as the sweeps write them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fedbounds.bounds.checks import quote
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.algorithms.algorithm import Algorithm
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.fed_norm_sgda.baselines import FSGDA, LocalSGDA, SynchronousSGDA
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    AverageAll,
    AverageParticipating,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)

ALGORITHMS: Mapping[str, type[Algorithm]] = {
    algorithm.kind: algorithm
    for algorithm in (
        GeneralizedFedAvg,
        FedAvg,
        WaitMinibatch,
        WaitFull,
        WaitForAll,
        FrozenGradient,
        FedAU,
        AverageParticipating,
        AverageAll,
        FixedWeights,
        KnownParticipation,
        FedVarp,
        MIFA,
        FedNormSGDA,
        LocalSGDA,
        SynchronousSGDA,
        FSGDA,
    )
}


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
        fedbounds.bounds.errors.FedboundsError: unknown key of algorithm fedavg 'local_step_sise'; did you mean
        local_step_size or local_steps?
    """
    if not isinstance(spec, Mapping):
        raise FedboundsError(f"algorithm = {quote(spec)} is not a table; give one like {{kind: fedavg, ...}}")
    numbers = dict(spec)
    kind = numbers.pop("kind", None)
    if kind is None:
        raise FedboundsError(f"the algorithm has no kind; known: {', '.join(sorted(ALGORITHMS))}")
    if not isinstance(kind, str) or kind not in ALGORITHMS:
        raise unknown_name("algorithm", str(kind), ALGORITHMS)
    fields = dataclasses.fields(ALGORITHMS[kind])  # type: ignore[arg-type]
    names = [field.name for field in fields]
    for key in numbers:
        if key not in names:
            raise unknown_name(f"key of algorithm {kind}", str(key), names)
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in numbers]
    if missing:
        raise FedboundsError(f"algorithm {kind} lacks {', '.join(missing)}")
    return ALGORITHMS[kind](**numbers)
