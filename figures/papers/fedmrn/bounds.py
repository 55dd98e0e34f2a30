r"""FedMRN's theorems against exact moments of the analyzed algorithm.

The four clients have the Hessian I, so that all constants are known; G sets steps and amplitudes, and holds in the root
mean square along the runs with a bound.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.algorithms.messages import Sparsified, StochasticSign
from fedbounds.empirical.algorithms.messages.compressor import Compressor
from fedbounds.empirical.comparison.paper_runs import needed_constants
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.moments.operators import (
    MaskedMoments,
    Masking,
    masked_moments,
    norm_scaled_sign,
    signed_masks,
    sparsifier,
)
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import Curve, Picture

LOCAL_STEPS, COHORT = 2, 2
DECLARED = {"L": 3.0, "mu": 1.0, "sigma": 0.1, "G": 1.0, "Gamma": 0.005, "Delta1": 0.13, "F": 0.065, "N": 4, "d": 2}
OF_RUN = {"K": COHORT, "S": LOCAL_STEPS}
SHIFT = 23  # gamma = max(8 L/mu, S) - 1 with L = 3: a larger L than needed, or no G would exist
LAST = 4000


def four_clients() -> Quadratic:
    """$F_k(w)=\\frac12\\|w-c_k\\|^2$ with centers $(\\pm0.1,0)$, $(0,\\pm0.1)$ and noise of variance 0.005 each way."""
    centers = [[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]]
    return Quadratic(hessians=np.ones((4, 2)), centers=centers, noise=math.sqrt(0.005), x0=[0.3, -0.2])


def falling(t: int) -> float:
    """Theorem 1's step size."""
    return 2 / (SHIFT + t)


def horizons(last: int) -> np.ndarray:
    """Ends of rounds, evenly spaced in the logarithm."""
    ends = np.unique(np.geomspace(1, last / LOCAL_STEPS, 60).astype(int))
    return LOCAL_STEPS * ends


FROZEN = signed_masks(lambda step: LOCAL_STEPS * 2 * falling(0))  # 2 eta_0 S G, as Theorem 1 prescribes
CURRENT = signed_masks(lambda step: LOCAL_STEPS * step)  # eta S G, with the step size of the round
RELATIVE = norm_scaled_sign()


@cache
def strongly_convex(masking: Masking, last: int) -> MaskedMoments:
    """Alg-T with Theorem 1's steps, from t = 1 on."""
    return masked_moments(four_clients(), masking, falling, iterations=last, local_steps=LOCAL_STEPS, cohort=COHORT,
                          first=1)  # fmt: skip


def bound(label: str, key: str, form: str, T: np.ndarray, **own: float) -> Curve:
    """A form at these T."""
    wanted = needed_constants(load(key).form(form))
    known = {name: value for name, value in {**DECLARED, **OF_RUN, **own}.items() if name in wanted}
    found = evaluate(load(key), {**known, "T": T.astype(float)}, form=form)
    return Curve(label, T.astype(float), np.asarray(found.value, float), valid=np.broadcast_to(found.valid, T.shape))


def theorem_1(last: int = LAST) -> Picture:
    """Theorem 1 with the amplitude that it prescribes, and with that of the current step size."""
    T = horizons(last) + 1  # the first iteration is that of t = 1
    frozen = strongly_convex(FROZEN, last)
    current = strongly_convex(CURRENT, last)
    kept = strongly_convex(sparsifier(0.5), last)
    gap: Callable[[MaskedMoments], np.ndarray] = lambda run: run.objective_gap[T - 1]  # noqa: E731
    groups = {
        "masks as prescribed": [
            Curve("exact, unclipped", T, gap(frozen)),
            *(bound(f"(11) with q = {q:g}", "fedmrn/theorem-1", "repaired", T, q=q) for q in (1.0, 10.0)),
        ],
        r"masks of amplitude $\eta_{t_0}SG$": [
            Curve("exact, unclipped", T, gap(current)),
            bound("repaired:R1", "fedmrn/theorem-1", "repaired:R1", T),
            bound("sharp:masks", "fedmrn/theorem-1", "sharp:masks", T),
        ],
        "a sparsifier, q = 1": [
            Curve("measured, exact", T, gap(kept)),
            bound("(11) with q = 1", "fedmrn/theorem-1", "repaired", T, q=1.0),
            bound("sharp", "fedmrn/theorem-1", "sharp", T, q=1.0),
        ],
    }
    crossed = crossing(groups["masks as prescribed"][0], groups["masks as prescribed"][1])
    title = "Theorem 1: the amplitude decides"
    return panels(
        groups,
        x_label="iteration $T$",
        y_labels=[r"$E[F(\bar w_T)]-F^*$", "", ""],
        title=title,
        caption=f"{title}. Alg-T on four clients with Hessian I (N = 4, K = 2, S = 2, d = 2, L = 3 declared, sigma^2 = "
        "0.01, Gamma = 0.005), by exact second moments. Left: noise of the fixed amplitude 2 eta_0 S G, as the theorem "
        "prescribes; the gap grows linearly, and (11) goes to zero whatever q is (no q satisfies Assumption 4 there, "
        f"so these are no bounds of this run); with q = 1 they cross at T = {crossed:g}. Middle: the amplitude follows "
        "the step size of the round, and the gap stays below the repaired forms. Those need a sure bound G on "
        "gradients, which Gaussian noise does not have, nor masks after T = 1 + gamma/(2 sqrt(d) - 1) (dotted); "
        f"in the root mean square gradients are at most {current.gradient_bound:.3g}. Both are exact if no "
        "update is clipped, which this noise may do. Right: an unbiased operator with a relative error, for which (11) "
        f"is proved: G = {kept.gradient_bound:.3g} in the root mean square. None of the curves is sampled.",
        alternative="Three panels of the optimality gap against iterations, logarithmic. Left the measured gap rises "
        "and crosses two falling lines; in the middle and on the right it falls below its bounds.",
        provenance={"constants": DECLARED | OF_RUN, "gradient_bounds": {"current": current.gradient_bound,
                    "sparsifier": kept.gradient_bound, "frozen": frozen.gradient_bound}},
        y_scales=["log", "log", "log"],
        x_scale="log",
        legends=True,
    )  # fmt: skip


def crossing(measured: Curve, limit: Curve) -> float:
    """The first x at which the measure is above the bound; infinite if none."""
    above = np.flatnonzero(measured.y > limit.y)
    return float(measured.x[above[0]]) if above.size else math.inf


OPERATORS: Mapping[str, tuple[Masking, float]] = {
    "no compression, q = 0": (Masking("identity", lambda squares, _: 0 * squares), 0.0),
    "sparsifier, q = 1": (sparsifier(0.5), 1.0),
    "sparsifier, q = 3": (sparsifier(0.1), 3.0),
    "norm-scaled sign, q = 1": (RELATIVE, 1.0),
}


def theorem_2(T: tuple[int, ...] = (16, 64, 256, 1024, 4096)) -> Picture:
    """Theorem 2 for operators with a relative error: one run per T, at the prescribed step size."""
    horizons = np.array(T)
    groups: dict[str, list[Curve]] = {}
    ratios = {}
    for name, (masking, q) in OPERATORS.items():
        runs = [average_run(masking, t) for t in T]
        measured = np.array([run.gradient_norm_squared[:-1].mean() for run in runs])
        G = max(run.gradient_bound for run in runs)
        own = {"G": G, "L": 1.0, "q": q}
        printed = bound("(12), squared assumptions", "fedmrn/theorem-2", "repaired", horizons, **own)
        sharp = bound("sharp", "fedmrn/theorem-2", "sharp", horizons, **own)
        groups[name] = [Curve("measured, exact", horizons.astype(float), measured), printed, sharp]
        ratios[name] = float((measured / sharp.y).max())
    title = "Theorem 2 for operators with a relative error"
    numbers = "; ".join(f"{name}: {ratio:.2g}" for name, ratio in ratios.items())
    return panels(
        groups,
        x_label="iterations $T$",
        y_labels=[r"mean over $t<T$ of $E\|\nabla F(\bar w_t)\|^2$", "", "", ""],
        title=title,
        caption=f"{title}. One run for each T at eta = 1/(L sqrt(T)), L = 1, four clients with Hessian I (N = 4, "
        "K = 2, S = 2, d = 2), by exact second moments; G is the largest root mean square of a gradient along the "
        f"runs, so that the bounds are those of these runs. Measured over the sharp form, at most: {numbers}.",
        alternative="Four panels, one for each operator: the measured average squared gradient norm against iterations "
        "below two bounds, all falling.",
        provenance={"constants": DECLARED | OF_RUN | {"L": 1.0}, "largest_ratios": ratios},
        y_scales=["log", "log", "log", "log"],
        x_scale="log",
    )  # fmt: skip


@cache
def average_run(masking: Masking, T: int) -> MaskedMoments:
    """Alg-T at Theorem 2's step size."""
    return masked_moments(four_clients(), masking, lambda t: 1 / math.sqrt(T), iterations=T, local_steps=LOCAL_STEPS,
                          cohort=COHORT)  # fmt: skip


def operators(points: int = 121, size: int = 64) -> Picture:
    """The relative error of operators over the size of the update; masked noise has no bound."""
    scales = np.geomspace(1e-3, 10, points)
    x = np.ones(size)
    codecs: dict[str, Compressor] = {
        "signed, Bernoulli": MaskedNoise("bernoulli", 1.0),
        "signed, uniform": MaskedNoise("uniform", 1.0),
        "signed, Gaussian": MaskedNoise("gaussian", 1.0),
        "binary, Bernoulli": MaskedNoise("bernoulli", 1.0, "binary"),
        "binary, uniform": MaskedNoise("uniform", 1.0, "binary"),
        "stochastic sign, of the length": StochasticSign("norm"),
        "sparsifier, one half": Sparsified(0.5),
    }
    curves = []
    for name, codec in codecs.items():
        errors = np.array([codec.squared_error(s * x) or 0.0 for s in scales])
        errors = np.where(errors > 0, errors, np.nan)
        curves.append(Curve(name, scales, np.sqrt(errors / (size * scales**2))))
    worst = {curve.label: float(curve.y[0]) for curve in curves[:5]}
    title = "Assumption 4: masked noise has no relative error"
    return panels(
        {"masked noise and operators with a relative error": curves},
        x_label=r"size $|u_i|/\alpha$ of every entry of the update",
        y_labels=[r"$\sqrt{E\|\mathcal{S}(u)-u\|^2}\,/\,\|u\|$"],
        title=title,
        caption=f"{title}. All entries alike, exact, averaged over the noise. Assumption 4 asks for one q above the "
        "curve; masked noise has none, as its amplitude alpha does not follow the update: at 0.001 alpha it is "
        f"{', '.join(f'{value:.3g} ({name})' for name, value in worst.items())}. Every round begins at u = 0. "
        f"The last two operators have the same relative error for every update, here sqrt(d - 1) with d = {size}, "
        "and 1. At alpha, signed masks of Bernoulli noise have no error.",
        alternative="Relative error against the size of the update, both logarithmic: five falling lines of masked "
        "noise that grow without bound to the left.",
        provenance={"size": size},
        y_scales=["log"],
        x_scale="log",
    )  # fmt: skip
