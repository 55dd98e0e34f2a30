r"""TDCD under its theorem, by exact second moments on quadratics: overlays, tightness and rates in R.

Every problem has one Hessian of norm 1 and 12 parameters, split over N silos: constants are exact and the bounds are
guarantees. `misread` shows what the theorem does not bound.
"""

from functools import cache
from typing import Any

import numpy as np

from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.comparison.compare_run import RunComparison, confront, confront_family
from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import BlockQuadratic, random_block_quadratic
from fedbounds.empirical.simulation.moments import TierMoments, moments
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.networks import Networks
from fedbounds.figures.charts.overlay import overlays
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.charts.rate import rate, rate_claims, ratio_claims, ratio_panels, ratios

THEOREM, REMARK = "tdcd/theorem-1", "tdcd/remark-5"
PARAMETERS, CLIENTS, NOISE, CONDITION = 12, 3, 0.1, 10.0
FORMS = ("repaired", "sharp:B1", "sharp:B3")
ALMOST = 1 - 1e-9  # of the largest step size, so that rounding breaks no condition
STEPS, SILOS = (1, 5, 20), (1, 3, 12)
OVERLAY_ROUNDS, RATIO_ROUNDS = 2000, 1000


def split_quadratic(
    silos: float = 3, clients: float = CLIENTS, heterogeneity: float = 0.0, noise: float = NOISE
) -> BlockQuadratic:
    """A quadratic with one Hessian, its parameters split over N silos; clients have different minimizers."""
    return random_block_quadratic(
        int(silos), int(clients), PARAMETERS // int(silos), heterogeneity, CONDITION, noise=noise, initial_gap=1.0
    )


def exact_run(problem: BlockQuadratic, steps: float, share: float, rounds: int) -> TierMoments:
    """Exact moments at a share of the largest step size of (14)."""
    L = float(np.asarray(constant(problem, "smoothness")))
    return moments(TDCD(ALMOST * share / (8 * steps * L), int(steps)), problem, Full(problem.clients), rounds)


def constant(problem: BlockQuadratic, concept: str) -> float:
    """The value of a constant of the problem."""
    found = problem.constants()[concept]
    assert isinstance(found, Constant)
    return float(np.asarray(found.value))


def theorem_1(rounds: int = OVERLAY_ROUNDS) -> Picture:
    """Theorem 1 over numbers of silos and of local steps, at the largest step size."""
    rows = {}
    for silos in SILOS:
        runs = {f"Q = {Q}": exact_run(split_quadratic(silos), Q, 1.0, rounds) for Q in STEPS}
        rows[f"N = {silos}"] = {panel: [confront(run, THEOREM, form) for form in FORMS] for panel, run in runs.items()}
    return overlays(
        rows,
        shaded="repaired",
        title="Theorem 1 against the exact average over sync points",
        caption=f"A quadratic with L = 1 and {PARAMETERS} parameters, split over N silos of K = {CLIENTS} clients; "
        f"S = {PARAMETERS * NOISE**2:.2g}, whatever N is; the step size is the largest that (14) allows, 1/(8 Q L). "
        "Shaded: the terms of (15), B0. By exact second moments, so that nothing is sampled and Delta is exact. "
        "Splitting the same parameters over more silos makes blocks smaller, Lmax and the local drift with them; "
        "what is measured hardly changes with N or Q.",
    )


AXES = {
    "local steps Q": ("steps", (1.0, 2.0, 5.0, 20.0, 100.0)),
    "silos N": ("silos", (1.0, 2.0, 4.0, 12.0)),
    "clients K": ("clients", (1.0, 2.0, 8.0, 32.0)),
    "heterogeneity": ("heterogeneity", (0.125, 0.25, 0.5, 1.0, 2.0)),
    "step size, share of (14)": ("share", (0.01, 0.03, 0.1, 0.3, 1.0)),
}


def compare_setting(
    form: str,
    rounds: int,
    steps: float = 5,
    silos: float = 3,
    clients: float = CLIENTS,
    heterogeneity: float = 0.0,
    share: float = 0.3,
) -> RunComparison:
    """One run under one form."""
    return confront(exact_run(split_quadratic(silos, clients, heterogeneity), steps, share, rounds), THEOREM, form)


@cache
def exact_ratios(rounds: int = RATIO_ROUNDS) -> dict[str, dict[float, list[RunComparison]]]:
    """Panel to value to the run under B0 and B3."""
    return ratio_panels(
        AXES, lambda name, value, form: compare_setting(form, rounds, **{name: value}), (FORMS[0], FORMS[2])
    )


def exact_ratio(rounds: int = RATIO_ROUNDS) -> Picture:
    """The tightness of Theorem 1 over each constant."""
    return ratios(
        exact_ratios(rounds),
        title="How tight Theorem 1 is, exactly",
        caption=f"R = {rounds:,}; a quadratic with L = 1 and {PARAMETERS} parameters, noise {NOISE:g} in each; "
        f"unless it varies, Q = 5, N = 3, K = {CLIENTS}, no heterogeneity, 0.3 of the largest step size. What clients "
        "differ by counts as noise in (15), and cancels in a silo's mean where Hessians are equal, as here.",
    )


ROUNDS, SINCE = tuple(128 * 4**k for k in range(6)), 8192
LOUD = 0.5


@cache
def exact_rates(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> dict[str, Rate]:
    """Remark 5 at its own step sizes."""
    families = {}
    for name, heterogeneity, noise in (
        ("noise", 0.0, LOUD),
        ("clients that differ, no noise", 0.5, 0.0),
        ("neither", 0.0, 0.0),
    ):
        problem = split_quadratic(heterogeneity=heterogeneity, noise=noise)
        S, gap = constant(problem, "block_gradient_noise"), constant(problem, "initial_gap")
        c = min((gap / S) ** 0.5, 1.0) if S else 1.0
        family = confront_family(
            REMARK, problem, Full(problem.clients), rounds, local_steps=5, form="explicit", given={"c": c}
        )
        families[name] = Rate(family, since)
    return families


def exact_rate() -> Picture:
    """Remark 5 over R."""
    return rate(
        exact_rates(),
        title="The rate of Remark 5, exactly",
        caption=f"A quadratic with L = 1 and {PARAMETERS} parameters in 3 silos of {CLIENTS} clients, Q = 5, step "
        f"sizes c/(Q sqrt(R)) with c = min(1, sqrt(Deltainf/(L S))); noise {LOUD:g} in each parameter where there is "
        "any. By exact second moments.",
    )


SCALAR_STEPS = (1, 4, 8, 32)


def misread(rounds: int = 400) -> Picture:
    """Quantities that (15) does not bound: the first R iterates, and heterogeneous clients without noise."""
    curves = []
    for Q in SCALAR_STEPS:
        scalar = BlockQuadratic([[1.0]], (1,), (1,), x0=[1.0])
        found = confront(exact_run(scalar, Q, 1.0, rounds), THEOREM, "printed")
        curves.append(Curve(f"first R iterates, Q = {Q}", found.rounds.astype(float), found.ratio))
    found = confront(exact_run(BlockQuadratic([[1.0]], (1,), (1,), x0=[1.0]), 8, 1.0, rounds), THEOREM, "repaired")
    curves.append(Curve("sync points, Q = 8", found.rounds.astype(float), found.ratio))
    two = BlockQuadratic([[[1.0]], [[3.0]]], (1,), (2,), [[1.0], [-1.0]], x0=[-0.485169])
    stuck = confront(moments(TDCD(1 / 24 / 20, 20), two, Full(2), 20 * rounds), THEOREM, "repaired")
    R = stuck.rounds.astype(float)
    title = "What (15) does not bound"
    return panels(
        {
            "the average over the first iterates": [_thin(curve) for curve in curves],
            "clients that differ, no noise": [
                _thin(Curve("measured, exact", R, stuck.measured)),
                _thin(Curve("(15), what differs not counted (0)", R, stuck.terms["initial gap"])),
                _thin(Curve("(15), counted as noise", R, stuck.bound)),
            ],
        },
        x_label="rounds $R$",
        y_labels=["measured / bound", r"mean of $\|\nabla f\|^2$ over sync points"],
        title=title,
        caption=f"{title}. Left: f = x^2/2, one client, no noise, eta = 1/(8Q). The sum that (15) prints runs over the "
        f"first R iterates, which for Q >= 4 exceed it ({curves[-2].y[-1]:.3g}-fold at Q = 32, R = {rounds}); the "
        "average over the R sync points does not. Right: two clients, (x - 1)^2/2 and 3 (x + 1)^2/2, all samples in "
        "every batch, Q = 20, u = 1/24, from where the algorithm stands still. Sampling has no variance, so with the "
        f"sigma of Assumption 3 alone the bound is 0 for every R, below the axis, and "
        f"{stuck.measured[-1]:.3g} is measured for ever; counted as variance, what clients differ "
        "by keeps the bound above it. All by exact recursions.",
        alternative="Left, ratios against rounds: those of the first iterates rise above one for four and more local "
        "steps. Right, a constant measured line between a bound that falls to nothing and one that stays above.",
        provenance={"steps": SCALAR_STEPS, "rounds": rounds},
        y_scales=["linear", "log"],
        x_scale="log",
        legends=True,
    )  # fmt: skip


def _thin(curve: Curve) -> Curve:
    some = np.unique(np.geomspace(1, len(curve.x), 80).round().astype(int)) - 1
    return Curve(curve.label, curve.x[some], curve.y[some])


def claims() -> list[FigureClaim]:
    """The claims about the dependence on R and on the setting."""
    return [*rate_claims(exact_rates()), *ratio_claims(exact_ratios())]


SETTING: dict[str, Any] = {
    "name": "network-tdcd",
    "rounds": 100,
    "seeds": 2,
    "seeds_per_run": 2,
    "record_every": 5,
    "problem": {
        "kind": "vertical",
        "dataset": "digits",
        "silos": 2,
        "silo_clients": 2,
        "network": "cnn-small-smooth",
        "batch": 240,
        "gradient_norm": True,
    },
    "participation": {"kind": "full", "clients": 4},
    "algorithm": {"kind": "tdcd", "local_step_size": 0.01, "local_steps": 5},
}
NETWORKS = Networks(
    "tdcd/theorem-1",
    SETTING,
    "A CNN in each of two silos under Theorem 1",
    "Left and right halves of digits in 2 silos of 2 clients each, two convolutions with GELU in either silo, batches "
    "of 240, Q = 5; small, and 100 rounds only.",
)
