"""Whether an instance of generalized FedAvg meets what a claim assumes, by the assumption's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from fedbounds.bounds.assumptions import Assumption
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances

ROUND_OFF = 1e-9
Check = Callable[[FedAvgInstances], np.ndarray]


def _weights(z: FedAvgInstances) -> np.ndarray:
    total = np.abs(z.weights.sum(axis=2) - 1).max(axis=1)
    return (z.weights.min(axis=(1, 2)) >= 0) & (total < ROUND_OFF)


def _centered(z: FedAvgInstances) -> np.ndarray:
    """Divergences are those from the mean gradient: the slopes have mean zero."""
    return np.abs(z.slopes.mean(axis=1)).max(axis=1) <= ROUND_OFF * (1e-300 + np.abs(z.slopes).max(axis=(1, 2)))


def _smooth(z: FedAvgInstances) -> np.ndarray:
    return (z.curvature.min(axis=1) >= 0) & (z.ripple.min(axis=1) >= 0) & (z.smoothness > 0)


def _independent(z: FedAvgInstances) -> np.ndarray:
    return np.all(z.correlation * (1 - np.eye(z.clients)) == 0, axis=(1, 2))


def _noise(z: FedAvgInstances) -> np.ndarray:
    """A covariance of at most the declared variance; noise is drawn anew in every step, so it has no memory."""
    return (np.linalg.eigvalsh(z.correlation).min(axis=1) > -ROUND_OFF) & (
        np.diagonal(z.correlation, axis1=1, axis2=2).max(axis=1) <= 1 + ROUND_OFF
    )


def _regular(z: FedAvgInstances) -> np.ndarray:
    if not z.window_weights.shape[1]:
        return np.zeros(len(z), dtype=bool)
    return np.ptp(z.window_weights, axis=2).max(axis=1) < 1e-12


def _always(z: FedAvgInstances) -> np.ndarray:
    """True by construction: constants are the instance's own, and participation is fixed before any noise is drawn."""
    return np.ones(len(z), dtype=bool)


ASSUMPTIONS: Mapping[str, Check] = {
    "smooth": _smooth,
    "unbiased-noise": _noise,
    "independent-clients": _independent,
    "martingale-noise": _always,
    "exogenous-participation": _always,
    "bounded-below": _smooth,
    "bounded-divergence": _centered,
    "cohort-divergence": _centered,
    "participation-divergence": _centered,
    "window-divergence": _centered,
    "weights": _weights,
    "regularized": _regular,
}


def met(z: FedAvgInstances, assumptions: Iterable[Assumption]) -> tuple[np.ndarray, str]:
    """Whether each instance meets them all, (B, 1), and the names of those that cannot be checked here."""
    return _met(z, frozenset(a.name for a in assumptions))


@lru_cache(maxsize=1024)
def _met(z: FedAvgInstances, names: frozenset[str]) -> tuple[np.ndarray, str]:
    held, unknown = np.ones(len(z), dtype=bool), []
    for name in sorted(names):
        check = ASSUMPTIONS.get(name)
        if check is None:
            unknown.append(name)
            held[:] = False
        else:
            held &= check(z)
    return held[:, None], f"not checkable here: {', '.join(unknown)}" if unknown else ""
