"""The extremal runs of gradient descent as runs of FedAvg with aggregation weights, and of FedAU: one client, p = 1."""

from __future__ import annotations

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.papers.fedau.instances.measured import ONE_STEP, always

ZERO = ("sigma", "delta", "deltatilde", "R")
ABOUT_ITS_OBJECTIVE = ("theorem-1", "theorem-b.4.1")
RESULTS = (
    *ABOUT_ITS_OBJECTIVE,
    *("theorem-2", "theorem-2-option-1", "corollary-4", "corollary-4-option-1"),
    *("appendix-a.3", "appendix-a.3-unequal"),
)


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """The mean gradient of a run; G is its slope at the start, and the weights are 1 where they are FedAU's or 1/p."""
    assert isinstance(claim.subject, ResultForm)
    one, w = np.ones(len(z)), z.weight
    found = dict.fromkeys(ZERO, 0 * one) | dict.fromkeys(("N", "K", "S", "Qtilde"), one)
    found |= {
        **{"L": z.smoothness, "F": z.gap, "H": z.gap, "G": z.slope, "gamma": z.gamma, "eta": z.eta},
        **{"I": z.local_steps, "T": z.rounds, "P": w, "etatilde": z.eta * w, "W": (w - 1) ** 2, "Wmax": (w - 1) ** 2},
        **{"Q": w**2, "Qmean": w**2},
        "cgamma": z.gamma * np.sqrt(z.rounds),
        "cboth": z.gamma * z.eta * np.sqrt(z.rounds),
    }
    values = {name: value[:, None] for name, value in found.items()}
    values |= {name: value[:, None, None] for name, value in (("p", one), ("omega", w), ("alphatilde", one))}
    met = always({*ONE_STEP, "constant-weights", "h-bounded-below", "bounded-below", "bounded-gradient", "sure-Q"})
    met |= {"equal-rates": True, "nearly-optimal-weights": np.asarray(np.abs(w - 1) <= 1 / 9)}
    met |= {name: np.asarray(w == 1) for name in ("inverse-rates", "fedau-weights")}
    return MeasuredRuns(z.mean_gradient()[:, None], values, met)


FAMILY = Family(
    measure,
    {"gamma": "gamma", "eta": "eta"},
    frozenset({"p", "omega", "varphi", "alphatilde"}),
    {"interval": (1,), "weight": (1, 10 / 9 - 1e-12, 8 / 9 + 1e-12)},
    frozenset({"cgamma", "cboth"}),
)
