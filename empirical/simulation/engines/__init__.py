"""Engines: different ways to compute the same round, chosen by problem and device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.algorithms import Algorithm, Cohort
from fedbounds.empirical.algorithms.local_work import LocalWork
from fedbounds.empirical.participation import Process
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.engines.batched import Batched, SequentialEngine
from fedbounds.empirical.simulation.engines.closed_form import ClosedForm
from fedbounds.empirical.simulation.engines.closed_tiers import ClosedTiers
from fedbounds.empirical.simulation.engines.compiled import CompiledEngine, may_repay
from fedbounds.empirical.simulation.engines.engine import Engine
from fedbounds.empirical.simulation.engines.masked_batch import (
    MaskedBatch,
    MaskedDescent,
    MaskedDescentSequential,
    MaskedSequential,
)
from fedbounds.empirical.simulation.engines.tiers import Tiers

MINIMIZING: Mapping[str, Callable[..., Engine]] = {
    "sequential": SequentialEngine,
    "batched": Batched,
    "compiled": CompiledEngine,
    "closed form": ClosedForm,
}
MINIMAX: Mapping[str, Callable[..., Engine]] = {"sequential": MaskedSequential, "masked batch": MaskedBatch}
UNEQUAL: Mapping[str, Callable[..., Engine]] = {"sequential": MaskedDescentSequential, "masked batch": MaskedDescent}
TIERED: Mapping[str, Callable[..., Engine]] = {"tiers": Tiers, "closed form": ClosedTiers}
PLAIN = ("compiled", "closed form")  # for plain steps of SGD alone
ENGINES = tuple(dict.fromkeys([*MINIMIZING, *MINIMAX, *TIERED]))


def choose_engine(
    name: str,
    problem: Problem,
    algorithm: Algorithm,
    rounds: int = 0,
    seeds: int = 1,
    participants: int | None = None,
) -> Engine:
    """The engine of that name; for "auto", the fastest for the problem and its device.

    Quadratics are solved in closed form. Other problems state whether a batch is faster (small models, and all models
    on a GPU) or one client after another (networks on a CPU). Dense networks on a CPU are compiled in long runs, which
    `participants`, the most of a round, decides with the rounds, seeds and local steps (None: all clients).
    """
    plain = check_engine(name, algorithm)
    if plain == "auto":
        batch = "batched" if "batched" in _fit(algorithm) else "masked batch"
        other = "tiers" if algorithm.tiered else batch if problem.prefers_batched else "sequential"
        plain = "closed form" if problem.affine and algorithm.plain_steps else other
        small = plain == "batched" and problem.faster_together and problem.device.type == "cpu"
        most = problem.clients if participants is None else participants
        long = small and algorithm.plain_steps and may_repay(rounds * seeds, most, algorithm.local.steps)
        if long:
            return CompiledEngine(problem, algorithm.local, algorithm.needs_updates, rounds)
    return _fit(algorithm)[plain](problem, algorithm.local, algorithm.needs_updates)


def most_participants(process: Process) -> int:
    """The most participants of a round, as far as the process says: else all clients."""
    return min(getattr(process, "participants", process.clients), process.clients)


def can_share_batch(engine: Engine, algorithms: Sequence[Algorithm]) -> bool:
    """Whether an engine can compute the rounds of several algorithms on one problem in one batch.

    Their clients must take plain SGD steps that differ only in their size, and send nothing else.
    """
    first = algorithms[0]
    return engine.joins and all(
        not each.tiered
        and each.plain_steps
        and each.needs_updates == first.needs_updates
        and replace(each.local, step_size=first.local.step_size) == first.local
        for each in algorithms
    )


def check_engine(name: str, algorithm: Algorithm) -> str:
    """The name of an engine that can run an algorithm, or "auto", with spaces for hyphens."""
    plain = name.replace("-", " ") if isinstance(name, str) else name
    if not isinstance(plain, str) or plain not in ("auto", *ENGINES):
        raise unknown_name("engine", str(name), ["auto", *ENGINES])
    fit = _fit(algorithm)
    if plain not in ("auto", *fit):
        what = "algorithms that minimize"
        if algorithm.tiered:
            what = "algorithms of silos"
        elif not algorithm.plain_steps:
            what = (
                "minimax algorithms" if algorithm.ascends else f"{algorithm.kind}, whose local steps are not plain SGD"
            )
        raise FedboundsError(f"engine {plain!r} is not for {what}; use {', '.join(map(repr, fit))} or 'auto'")
    return plain


def _fit(algorithm: Algorithm) -> Mapping[str, Callable[..., Engine]]:
    if algorithm.ascends:
        return MINIMAX
    if isinstance(algorithm.local, LocalWork):
        return UNEQUAL
    every = TIERED if algorithm.tiered else MINIMIZING
    return {name: engine for name, engine in every.items() if algorithm.plain_steps or name not in PLAIN}


__all__ = [
    "ENGINES",
    "Batched",
    "ClosedForm",
    "ClosedTiers",
    "Cohort",
    "CompiledEngine",
    "Engine",
    "SequentialEngine",
    "MaskedBatch",
    "MaskedSequential",
    "Tiers",
    "check_engine",
    "choose_engine",
    "can_share_batch",
    "may_repay",
    "most_participants",
]
