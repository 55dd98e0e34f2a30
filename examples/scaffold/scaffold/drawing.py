"""The figure: on quadratics with different Hessians FedAvg stops away from the minimum of f, SCAFFOLD does not."""

from typing import Any

import numpy as np

import fedbounds as fb
from fedbounds.algorithms import AverageParticipating
from fedbounds.charts import Curve, PaperGallery, Picture, panels
from scaffold.algorithms import PrescribedScaffold
from scaffold.results import THEOREM

N, K, ROUNDS = 10, 10, 1500
GROUPS = {"all 10 clients": N, "3 of 10 clients": 3}


class Gallery(PaperGallery[Any]):
    """Nothing is scaled down, and no run is worth keeping."""

    scale_of = staticmethod(lambda dataset, network, full: None)


def drift(gallery: Gallery) -> Picture:
    """Gradient norms of both algorithms at the cap of Theorem III, beside its order with constants of one."""
    problem, groups = fb.problems.random_quadratic(N, 4, condition=3, shared=False), {}
    F, R = float(problem.objective_gap(problem.x0)), np.arange(100, ROUNDS + 1, 100)
    for title, S in GROUPS.items():
        cap = (S / N) ** (2 / 3) / (24 * K * S**0.5)  # beta = 1
        given = dict(beta=1, sigma=0, F=F, N=N, S=S, K=K, eta_l=cap)
        order = [float(fb.evaluate(THEOREM, given | {"R": int(r)}, assume=["all"]).value) for r in R]
        curves = [Curve("Theorem III, constants of one", R, np.array(order))]
        for label, algorithm in (
            ("FedAvg", AverageParticipating(cap, K, S**0.5)),
            ("SCAFFOLD", PrescribedScaffold(cap, K)),
        ):
            run = fb.simulate(algorithm, problem, fb.participation.WithoutReplacement(N, S), ROUNDS, record_every=10)
            curves.append(Curve(label, run.arrays["round"], run.gradient_norm_squared[0]))
        groups[title] = curves
    return panels(
        groups,
        x_label="round $r$",
        y_labels=[r"$\|\nabla f(x_r)\|^2$", ""],
        title="SCAFFOLD against FedAvg on quadratics",
        caption=f"Quadratics with a Hessian for each of {N} clients, K = {K} local steps, exact gradients, eta_l at "
        "the cap of Theorem III. The order bounds the average over the rounds before r, up to a constant.",
        alternative="Two panels: SCAFFOLD falls on, FedAvg stays where local steps and sampling leave it.",
        y_scales=["log", "log"],
    )


FIGURES = {"drift": drift}
