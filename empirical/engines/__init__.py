"""Engines: different walks through the same round, chosen by problem and device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bounds.errors import FedboundsError, unknown_name
from empirical.algorithms import Algorithm, Cohort, LocalDescentAscent
from empirical.engines.batched import Batched
from empirical.engines.closed_form import ClosedForm
from empirical.engines.engine import Engine
from empirical.engines.in_turn import InTurn
from empirical.engines.masked_batch import MaskedBatch, MaskedInTurn
from empirical.problems import Problem, Quadratic

MINIMISING: Mapping[str, Callable[..., Engine]] = {"in turn": InTurn, "batched": Batched, "closed form": ClosedForm}
MINIMAX: Mapping[str, Callable[..., Engine]] = {"in turn": MaskedInTurn, "masked batch": MaskedBatch}
ENGINES = tuple(dict.fromkeys([*MINIMISING, *MINIMAX]))


def choose_engine(name: str, problem: Problem, algorithm: Algorithm) -> Engine:
    """The engine of that name; for "auto", the fastest for the problem and the device it lives on.

    Quadratics are solved in closed form. Other problems say whether they prefer a batch (small models, and
    all models on a GPU) or one client in turn (networks on a CPU). For minimax algorithms the batch is masked, as
    clients may take different numbers of local steps.

    Args:
        name: "auto", "in turn", "batched", "closed form" or "masked batch" (a hyphen will do for the space).
        problem: whose gradients are used.
        algorithm: as it runs on the problem.

    Raises:
        FedboundsError: an unknown name, or an engine that cannot run the problem or the algorithm.
    """
    plain = name.replace("-", " ") if isinstance(name, str) else name
    minimax = isinstance(algorithm.local, LocalDescentAscent)
    if plain == "auto":
        closed, batch = isinstance(problem, Quadratic), "masked batch" if minimax else "batched"
        plain = "closed form" if closed else batch if problem.prefers_batched else "in turn"
    if not isinstance(plain, str) or plain not in ENGINES:
        raise unknown_name("engine", str(name), ["auto", *ENGINES])
    fit = MINIMAX if minimax else MINIMISING
    if plain not in fit:
        what = "minimax algorithms" if minimax else "algorithms that minimise"
        legal = ", ".join(repr(one) for one in fit)
        raise FedboundsError(f"engine {plain!r} is not for {what}; use {legal} or 'auto'")
    return fit[plain](problem, algorithm.local, algorithm.needs_updates)


__all__ = [
    "ENGINES",
    "Batched",
    "ClosedForm",
    "Cohort",
    "Engine",
    "InTurn",
    "MaskedBatch",
    "MaskedInTurn",
    "choose_engine",
]
