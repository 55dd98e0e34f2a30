r"""The extremal runs of gradient descent as runs of Fed-Norm-SGDA and Fed-Norm-SGDA+: one client, one local step, and a
y that is at its maximizer and of no consequence for x.

r is the server's step in y and s the local steps of the client; with one of them the run does not depend on these. At
$1/(2L_f)$ the Moreau envelope of curvature a has curvature $2L_fa/(a+2L_f)$, and where it is straight it is the
function less $g^2/(4L_f)$, if the proximal point is in the straight part too.
"""

from collections.abc import Mapping

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns

ALWAYS = (
    *("smooth", "unbiased-noise", "unbiased-block-noise", "bounded-heterogeneity", "uniform-sampling"),
    *("local-coefficients", "growing-coefficients", "independent-clients", "martingale-noise", "bounded-below"),
)
CONCAVE = ("concave", "one-point-concave", "lipschitz-in-x", "bounded-ascent", "bounded-maximizer")
VECTORS = ("w", "p", "tau", "a1", "a2", "alast", "amax")
ONES = (
    *("n", "P", "nu", "taubar", "taueff", "betaG", "kappa", "alpha", "Z", "Q", "K", "W", "A_w", "B_w", "E_w", "a_m"),
    "S",
)
ZEROS = ("sigmaL", "sigmaG", "betaL", "C_w", "D", "delta0")
RADIUS = 1e-12  # R, which must be positive
STEPS = {"r": "gammay", "gamma": "gammax"}
VALUES: Mapping[str, tuple[float, ...]] = {
    "interval": (1,), "local_steps": (1,), "rounds": (1, 2, 8, 60, 400, 1e4, 1e5, 1e6, 1e7, 1e8),
}  # fmt: skip


def symbols(z: ExtremalRuns) -> dict[str, np.ndarray]:
    """The symbols of both theorems; with one client and one local step the composite constants are 1 or 0."""
    one = np.ones(len(z))
    found = (
        dict.fromkeys(ONES, one)
        | dict.fromkeys(ZEROS, 0 * one)
        | {
            **{"Lf": z.smoothness, "mu": z.smoothness, "T": z.rounds, "Delta": z.gap, "Gx": z.slope, "R": RADIUS * one},
            **{"Gammax": z.gamma, "gammax": z.gamma, "Gammay": z.r, "gammay": z.r, "etax": z.s, "etay": z.s},
        }
    )
    return {name: v[:, None] for name, v in found.items()} | {name: one[:, None, None] for name in VECTORS}


def strongly_concave(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """Theorem 1: the mean gradient of the envelope, which is that of the function of x."""
    met = dict.fromkeys((*ALWAYS, "strongly-concave"), True)
    return MeasuredRuns(z.mean_gradient()[:, None], symbols(z), met)


def concave(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """Theorems 2 to 4: the mean gradient of the Moreau envelope."""
    share, straight = 2 * z.smoothness / (z.curvature + 2 * z.smoothness), z.straight == 1
    left = z.mean_gradient() * np.where(straight, 1, share**2)
    gap = np.where(straight, z.gap - z.slope**2 / (4 * z.smoothness), z.gap * share)
    inside = (z.reach >= (z.travel() + 1 / (2 * z.smoothness)) * (1 - 1e-12)) | ~straight
    values = symbols(z) | {"Deltabar": gap[:, None]}
    return MeasuredRuns(np.where(inside, left, np.nan)[:, None], values, dict.fromkeys((*ALWAYS, *CONCAVE), True))


OF_QUADRATICS = Family(strongly_concave, STEPS, frozenset(VECTORS), VALUES)
OF_BOUNDED = Family(concave, STEPS, frozenset(VECTORS), VALUES, beyond=0.5)
AT_THE_STEPS_OF_THEOREM_2 = OF_BOUNDED._replace(steps={"r": "Gammay", "gamma": "Gammax", "s": "etax"})
FAMILIES: Mapping[str, Family] = {
    **dict.fromkeys(("theorem-1", "theorem-1-at-its-steps", "remark-1", "remark-3"), OF_QUADRATICS),
    **dict.fromkeys(("theorem-3", "theorem-4"), OF_BOUNDED),
    "theorem-2": AT_THE_STEPS_OF_THEOREM_2,
}
