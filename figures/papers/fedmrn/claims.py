"""What the paper says of its rates and of its masks, against exact moments."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.rates import least_squares
from fedbounds.figures.claims import Claim
from fedbounds.figures.papers.fedmrn.bounds import (
    CURRENT,
    FROZEN,
    LOCAL_STEPS,
    RELATIVE,
    SHIFT,
    average_run,
    bound,
    strongly_convex,
)
from fedbounds.figures.papers.fedmrn.drawing import Gallery

NEAR = 0.05  # of an exponent


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Of the logarithms, over the last decade of x."""
    late = x >= x[-1] / 10
    return least_squares(x[late], y[late])


def all_claims(gallery: Gallery) -> list[Claim]:
    """Every claim of the paper that exact moments decide."""
    T = np.arange(1, gallery.scale.iterations // LOCAL_STEPS + 1) * LOCAL_STEPS
    rounds = T + SHIFT  # the bound falls like 1/(gamma + T)
    found = {
        "with the amplitude that Theorem 1 prescribes": FROZEN,
        "with the amplitude of the current step size": CURRENT,
        "for an operator with a relative error": RELATIVE,
    }
    claims = []
    for how, masking in found.items():
        gap = strongly_convex(masking, gallery.scale.iterations).objective_gap[T]
        power = slope(rounds.astype(float), gap)
        claims.append(Claim("Theorem 1, Remark 2", f"the gap falls like 1/T, {how}",
                            f"like (gamma + T)^{power:.2f}, exact", power <= NEAR - 1))  # fmt: skip
    masked = strongly_convex(CURRENT, gallery.scale.iterations)
    under = masked.objective_gap[T] / bound("", "fedmrn/theorem-1", "repaired:R1", T).y
    told = f"measured over bound at most {under.max():.2g}"
    claims.append(Claim("Theorem 1", "stays under the repaired bound R1", told, bool((under <= 1).all())))
    horizons = np.array(gallery.scale.horizons, float)
    averages = [average_run(RELATIVE, int(t)).gradient_norm_squared[:-1].mean() for t in horizons]
    power = slope(horizons, np.array(averages))
    claims.append(Claim("Theorem 2, Remark 2", "the mean squared gradient falls like T^(-1/2), for an operator with a "
                        "relative error", f"like T^{power:.2f}, exact", power <= NEAR - 0.5))  # fmt: skip
    codec = MaskedNoise("bernoulli", 1.0)
    small = [codec.squared_error(np.array([size])) ** 0.5 / size for size in (0.1, 0.01, 0.001)]
    told = ", ".join(f"{value:.3g}" for value in small)
    claims.append(Claim("Section 4", "masks satisfy Assumption 4 with some q", "relative error "
                        f"{told} at |u| = 0.1, 0.01, 0.001 alpha", small[-1] < 2 * small[0]))  # fmt: skip
    return claims
