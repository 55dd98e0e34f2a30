"""The initial values of constants in the explorer, and the constants that a form takes at first."""

from __future__ import annotations

from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.symbols import Quantity

Start = float | list[float]

# an everyday setting in which most results hold; every other constant starts by its domain
VALUES: dict[str, Start] = {
    "rounds": 100_000,
    "iterations": 100_000,
    "local_steps": 5,
    "local_steps_by_client": [5, 5, 5, 5],
    "clients": 4,
    "clients_of_each_silo": [4, 4, 4, 4],
    "participating_clients": 2,
    "interval": 2,
    "unavailable_rounds": 2,
    "local_step_size": 1e-3,
    "local_ascent_step_size": 1e-3,
    "step_size_at_t": 1e-3,
    "server_step_size": 1e-6,
    "server_ascent_step_size": 1e-3,
    "effective_step": 5e-6,
    "effective_ascent_step": 1e-3,
    "scaled_step": 1e-3,
    "cutoff_interval": 5,
    "participation_rates": [0.25, 0.5, 0.75, 1],
    "aggregation_weights": [0.25, 0.25, 0.25, 0.25],
    "weight_error": 1e-3,
    "largest_weight_error": 1e-3,
    "failure_probability": 0.1,
    "time_budget": 100_000,
    "strong_convexity": 0.5,
    "strong_concavity": 0.5,
}


def initial_value(quantity: Quantity) -> Start:
    """The initial value of a constant.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> notation = load("fedau/theorem-2").notation
        >>> initial_value(notation["T"]), initial_value(notation["L"]), initial_value(notation["varphi"])
        (100000, 1.0, [0.25, 0.25, 0.25, 0.25])
    """
    domain = quantity.domain
    usual = VALUES.get(quantity.concept)
    if usual is not None and bool(quantity.shape) == isinstance(usual, list):
        return usual
    middle = quantity.total / 4 if quantity.total else min(1.0, (max(domain.low, 0) + domain.high) / 2)
    value = quantity.default if quantity.default is not None else max(domain.low, middle)
    return [value] * 4 if quantity.shape else value


def initial_constants(result: Result, form: Form) -> list[str]:
    """A minimal set of constants from which all others of a form follow, in the order of the notation."""
    wanted = reachable(form, prescribed=True)
    needed = {s.name for e in form.expressions for s in e.free_symbols}
    defaults = {q.name for q in result.notation.values() if q.default is not None}
    given = set(wanted)
    for name in [*(rule.name for rule in form.derived), *result.notation]:
        left = given - {name} | defaults
        while more := {r.name for r in form.derived if {*r.inputs} <= left} - left:
            left |= more
        if needed <= left:
            given.discard(name)
    return [name for name in result.notation if name in given]
