"""The paper's claims, compared with its bound and with our runs."""

from __future__ import annotations

import numpy as np

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.convergence_slopes import least_squares
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.papers.tdcd import network, runs
from fedbounds.figures.papers.tdcd.bounds import LATENCIES, PROBLEM, best_bound_in_time, bound_in_time, steps_up_to
from fedbounds.figures.papers.tdcd.drawing import Gallery
from fedbounds.figures.papers.tdcd.trained_claims import all_trained_claims

AT = {"L": 1.0, "Lmax": 1.0, "Deltainf": 1.0, "Q": 4, "R": 1000, "eta": 0.01}
SMALL = 1e-4  # a step size at which one local step is far from enough


def all_claims(gallery: Gallery) -> list[FigureClaim]:
    """Every claim of the paper."""
    return [*bound_claims(gallery), *runs.claims(), *network.NETWORKS.claims(gallery), *all_trained_claims(gallery)]


def bound_claims(gallery: Gallery) -> list[FigureClaim]:
    """The claims that the bound decides."""
    Q = steps_up_to(1000, gallery.scale.points)
    given = [bound_in_time(latency, SMALL, Q) for latency in LATENCIES]
    wanted = [float(curve.x[np.nanargmin(curve.y)]) for curve in given]
    best = [best_bound_in_time(latency, Q[::6]) for latency in LATENCIES]
    chosen = [float(curve.x[np.nanargmin(curve.y)]) for curve in best]
    R = np.geomspace(1e6, 1e9, 10)
    rate = evaluate(load("tdcd/remark-5"), {**PROBLEM, "Q": 4, "R": R.round()}, form="explicit:best-c").value
    power = least_squares(R, np.asarray(rate))
    one, two = (
        float(evaluate(load("tdcd/theorem-1"), {**AT, "sigma": sigma}, form="repaired").terms["gradient noise"])
        for sigma in ([2.0], [2.0**0.5, 2.0**0.5])
    )
    at = ", ".join(f"{latency:g}" for latency in LATENCIES)
    return [
        FigureClaim("Theorem 1, text", "more local steps do better in a given time, at a small step size",
              "least at Q = "
              f"{', '.join(f'{q:g}' for q in wanted)} for latencies {at}, step size {SMALL:g}", min(wanted) > 1),
        FigureClaim("Theorem 1, text", "they do so at the step size that is best for each number of them",
              "least at Q = "
              f"{', '.join(f'{q:g}' for q in chosen)} for latencies {at}", min(chosen) > 1),
        FigureClaim("Section 5", "the best number of local steps grows with the latency, at a given step size",
              f"from {wanted[0]:g} to {wanted[-1]:g} where links are ten times slower", wanted[-1] > wanted[0]),
        FigureClaim("Remark 5", "the bound falls like 1/sqrt(R)", f"like R^{power:.2f}", abs(power + 0.5) < 0.01),
        FigureClaim("Theorem 1, text", "the error of one problem grows linearly with the number of silos",
              "noise times "
              f"{two / one:.3g} with two silos, its parameters being divided", abs(two / one - 2) < 0.01),
    ]  # fmt: skip
