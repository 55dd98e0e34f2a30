"""The extremal runs of gradient descent as runs of FedMRN: one client, one local step, no masks.

In the first iterate nothing has been masked yet, so that masks of every kind may be meant where T = 1.
"""

from __future__ import annotations

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns

ZERO = ("sigma", "Gamma", "q")
MET = (
    *("unbiased-noise", "bounded-gradients", "surely-bounded-gradients", "relative-error", "uniform-sampling"),
    *("independent-masks", "independent-clients", "martingale-noise", "smooth", "bounded-below", "progressive-masking"),
)
MASKS = ("signed-masks-per-round", "signed-masks", "signed-masks-of-amplitude-a")


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    r"""The mean gradient, or of strongly convex functions the gap at the end.

    The steps of Theorem 1 are $2/(\mu(\gamma+t))$ from t = 1 on, so that with $a=\mu$ a run of T - 1 of them
    multiplies $x_1$ by $\gamma(\gamma-1)/((\gamma+T-1)(\gamma+T-2))$.
    """
    assert isinstance(claim.subject, ResultForm)
    convex, one = claim.subject.result.key.endswith("theorem-1"), np.ones(len(z))
    found = dict.fromkeys(ZERO, 0 * one) | dict.fromkeys(("N", "K", "S", "d"), one)
    found |= {
        **{"L": z.smoothness, "mu": z.curvature, "F": z.gap, "G": z.slope, "T": z.rounds, "eta": z.gamma},
        **{"Delta1": (z.slope / z.curvature) ** 2, "a": z.slope * z.gamma},
    }
    left = z.mean_gradient()
    if convex:
        gamma = np.maximum(8 * z.smoothness / z.curvature, 1) - 1
        left = z.gap * (gamma * (gamma - 1) / ((gamma + z.rounds - 1) * (gamma + z.rounds - 2))) ** 2
    met: dict[str, np.ndarray | bool] = {name: True for name in MET}
    met |= {name: np.asarray(z.rounds == 1) for name in MASKS}
    met |= {name: np.asarray(z.straight == 0) for name in ("strongly-convex", "quadratic-upper-bound")}
    return MeasuredRuns(left[:, None], {name: value[:, None] for name, value in found.items()}, met)


VALUES = {"interval": (1,), "local_steps": (1,)}
CONVEX, NOT_CONVEX = Family(measure, {}, values=VALUES), Family(measure, {"gamma": "eta"}, values=VALUES)
