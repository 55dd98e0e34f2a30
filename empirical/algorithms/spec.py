"""Algorithms from dictionaries, as the sweeps write them; every paper's room says which it has."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.theory.registry import merged_tables
from fedbounds.empirical.algorithms.algorithm import Algorithm


@cache
def algorithms() -> Mapping[str, type[Algorithm]]:
    """Every algorithm by its kind, as the rooms list them (`<room>.algorithms:ALGORITHMS`).

    Example:
        >>> algorithms()["fedavg"].__name__
        'FedAvg'
    """
    return merged_tables("empirical", "algorithms", lambda module: {each.kind: each for each in module.ALGORITHMS})


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
    numbers, known = dict(spec), algorithms()
    kind = numbers.pop("kind", None)
    if kind is None:
        raise FedboundsError(f"the algorithm has no kind; known: {', '.join(sorted(known))}")
    if not isinstance(kind, str) or kind not in known:
        raise unknown_name("algorithm", str(kind), known)
    fields = dataclasses.fields(known[kind])  # type: ignore[arg-type]
    names = [field.name for field in fields]
    for key in numbers:
        if key not in names:
            raise unknown_name(f"key of algorithm {kind}", str(key), names)
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in numbers]
    if missing:
        raise FedboundsError(f"algorithm {kind} lacks {', '.join(missing)}")
    return known[kind](**numbers)
