"""The extremal runs of gradient descent as runs of generalized FedAvg with one client."""

from __future__ import annotations

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.papers.arbitrary_participation.instances.hypotheses import ASSUMPTIONS

ZERO = ("sigma", "nu", "beta", "delta", "d")
WINDOW = "equation-c.16"
LEAST_GRADIENT = ("theorem-3.1", "corollary-3.2", "corollary-3.3", "corollary-4.3")


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """The least gradient of a run, or that at the start of its one window; every assumption holds with one client."""
    assert isinstance(claim.subject, ResultForm)
    whole, one = claim.subject.result.key.endswith(WINDOW), np.ones(len(z))
    found = dict.fromkeys(ZERO, 0 * one) | {
        **{"L": z.smoothness, "F": z.gap, "rho": one, "sumsq": one, "N": one},
        **{"gamma": z.gamma, "eta": z.eta, "I": z.local_steps, "P": z.interval, "T": z.rounds, "r": z.r, "s": z.s},
    }
    left = z.least_gradient()
    if whole:
        left = np.where((z.rounds == z.interval) & (z.fits(whole=True) | (z.straight == 0)), z.slope**2, np.nan)
        found["decrease"] = z.decrease()
    return MeasuredRuns(left[:, None], {k: v[:, None] for k, v in found.items()}, dict.fromkeys(ASSUMPTIONS, True))


FAMILY = Family(
    measure, {"gamma": "gamma", "eta": "eta"}, values={"r": (1e-7, 1e-5, 1e-3, 0.1, 7 / 17, 1), "s": (0.1, 0.5, 1, 2)}
)
