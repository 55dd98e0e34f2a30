"""Whether an instance of generalized FedAvg meets what a claim assumes, by the assumption's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from fedbounds.bounds.papers.arbitrary_participation.assumptions import IN_EXPECTATION
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import ParticipatingRuns

ROUND_OFF = 1e-9
Check = Callable[[ParticipatingRuns], np.ndarray]


def _weights(z: ParticipatingRuns) -> np.ndarray:
    total = np.abs(z.weights.sum(axis=2) - 1).max(axis=1)
    return (z.weights.min(axis=(1, 2)) >= 0) & (total < ROUND_OFF)


def _regular(z: ParticipatingRuns) -> np.ndarray:
    if not z.window_weights.shape[1]:
        return np.zeros(len(z), dtype=bool)
    return np.ptp(z.window_weights, axis=2).max(axis=1) < 1e-12


def _always(z: ParticipatingRuns) -> np.ndarray:
    """True by construction: constants are the instance's own, and participation is fixed before any noise is drawn."""
    return np.ones(len(z), dtype=bool)


GIVEN: Mapping[str, Check] = {
    "smooth": lambda z: z.smooth,
    "unbiased-noise": lambda z: z.unbiased,
    "independent-clients": lambda z: z.independent,
    "martingale-noise": _always,
    "exogenous-participation": _always,
    "bounded-below": lambda z: z.smooth,
    "bounded-divergence": lambda z: z.centered,
    "cohort-divergence": lambda z: z.centered,
    "participation-divergence": lambda z: z.centered,
    "window-divergence": lambda z: z.centered,
    "weights": _weights,
    "participation-norm": _always,
    "regularized": _regular,
}
# participation is given here: an expectation over it is that of a law with one outcome
ASSUMPTIONS: Mapping[str, Check] = {**GIVEN, **{b.name: GIVEN[a.name] for a, b in IN_EXPECTATION.items()}}


def met(z: ParticipatingRuns, assumptions: Iterable[Assumption]) -> tuple[dict[str, np.ndarray], str]:
    """Which instances meet each of them, (B,), and the names of those that cannot be checked here."""
    return _met(z, frozenset(a.name for a in assumptions))


@lru_cache(maxsize=1024)
def _met(z: ParticipatingRuns, names: frozenset[str]) -> tuple[dict[str, np.ndarray], str]:
    unknown = sorted(names - set(ASSUMPTIONS))
    found = {name: np.zeros(len(z), dtype=bool) for name in unknown}
    found |= {name: ASSUMPTIONS[name](z) for name in sorted(names & set(ASSUMPTIONS))}
    return found, f"not checkable here: {', '.join(unknown)}" if unknown else ""


def all_of(assumed: Mapping[str, np.ndarray], z: ParticipatingRuns) -> np.ndarray:
    """Whether each instance meets them all, (B, 1)."""
    return np.logical_and.reduce([np.ones(len(z), dtype=bool), *assumed.values()])[:, None]
