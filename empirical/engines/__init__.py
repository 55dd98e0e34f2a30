"""Engines: different walks through the same round, chosen by problem and device."""

from __future__ import annotations

from bounds.errors import unknown_name
from empirical.algorithms import Algorithm, Cohort
from empirical.engines.batched import Batched
from empirical.engines.closed_form import ClosedForm
from empirical.engines.engine import Engine
from empirical.engines.in_turn import InTurn
from empirical.problems import Problem, Quadratic

ENGINES = {"in turn": InTurn, "batched": Batched, "closed form": ClosedForm}


def choose_engine(name: str, problem: Problem, algorithm: Algorithm) -> Engine:
    """The engine of that name; for "auto", the fastest for the problem and the device it lives on.

    Quadratics are solved in closed form. Other problems say whether they prefer a batch (small models, and
    all models on a GPU) or one client in turn (networks on a CPU).

    Args:
        name: "auto", "in turn", "batched" or "closed form" (a hyphen will do for the space).

    Raises:
        FedboundsError: an unknown name, or an engine that cannot run the problem.
    """
    plain = name.replace("-", " ") if isinstance(name, str) else name
    if plain == "auto":
        closed = isinstance(problem, Quadratic)
        plain = "closed form" if closed else "batched" if problem.prefers_batched else "in turn"
    if not isinstance(plain, str) or plain not in ENGINES:
        raise unknown_name("engine", str(name), ["auto", *ENGINES])
    return ENGINES[plain](problem, algorithm.local, algorithm.needs_updates)


__all__ = ["ENGINES", "Batched", "ClosedForm", "Cohort", "Engine", "InTurn", "choose_engine"]
