r"""Rates and ratios: Corollaries 3.2 and 3.3 at their own step sizes, exactly on quadratics."""

from functools import cache

import numpy as np

from fedbounds.empirical.comparison.compare_run import RunComparison, confront_family
from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.empirical.participation import Cyclic, Process, WithoutReplacement
from fedbounds.empirical.problems import random_quadratic
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.picture import Picture
from fedbounds.figures.charts.rate import rate, rate_claims, ratio_claims, ratio_panels, ratios

CLIENTS, GROUPS, LOCAL_STEPS, DIMENSION = 20, 5, 5, 10
KNOWING, NOT_KNOWING = "arbitrary-participation/corollary-3.2", "arbitrary-participation/corollary-3.3"
ROUNDS = tuple(125 * 4**k for k in range(6))  # whole cycles
SINCE = 8000  # of the fits


def exact_family(
    corollary: str, form: str, noise: float, process: Process, interval: int, rounds: tuple[int, ...]
) -> RunComparison:
    """Runs of one corollary's steps on a quadratic, one per T, by exact moments."""
    problem = random_quadratic(
        CLIENTS, DIMENSION, heterogeneity=1.0, condition=10.0, noise=noise, initial_gap=1.0, seed=0
    )
    record = process.matrix(max(rounds), np.random.default_rng(0)) if interval > 1 else process  # cyclic: one record
    return confront_family(corollary, problem, record, rounds, local_steps=LOCAL_STEPS, interval=interval, form=form)


@cache
def exact_rates(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> dict[str, Rate]:
    """The families by panel."""
    in_turn, drawn = Cyclic(CLIENTS, GROUPS), WithoutReplacement(CLIENTS, CLIENTS // GROUPS)
    families: dict[str, tuple[str, str, float, Process, int]] = {
        "Corollary 3.2, cyclic": (KNOWING, "explicit", 0.5, in_turn, GROUPS),
        "Corollary 3.3, cyclic": (NOT_KNOWING, "sharp", 0.5, in_turn, GROUPS),
        "Corollary 3.2, cyclic, no noise": (KNOWING, "explicit", 0.0, in_turn, GROUPS),
        "Corollary 3.2, sampled each round": (KNOWING, "explicit", 0.5, drawn, 1),
    }
    return {name: Rate(exact_family(*numbers, rounds), since) for name, numbers in families.items()}


def exact_rate(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> Picture:
    """Corollaries 3.2 and 3.3 on a quadratic, exactly."""
    return rate(
        exact_rates(rounds, since),
        title="Rates of Corollaries 3.2 and 3.3, exactly",
        caption=f"A quadratic with one Hessian, N = {CLIENTS}, d = {DIMENSION}, I = {LOCAL_STEPS}; a fifth of the "
        f"clients in every round, cyclically (P = {GROUPS}, the window divergence is 0) or sampled without replacement "
        "(P = 1, it does not fall with T, and so neither does the bound; what is measured does).",
    )


AXES = {
    "clients N, S = N/5": ("clients", (10.0, 20.0, 40.0, 80.0)),
    "interval P, S = 4": ("groups", (2.0, 5.0, 10.0, 20.0)),
    "local steps I": ("local_steps", (1.0, 2.0, 4.0, 8.0, 16.0)),
    "heterogeneity": ("heterogeneity", (1.0, 4.0, 16.0, 64.0)),
}
RATIO_ROUNDS = 20_000
FORMS = ("explicit", "sharp")


def cyclic_run(name: str, value: float, form: str, rounds: int) -> RunComparison:
    """A run at the steps of Corollary 3.2, cyclic groups, with one number changed; for P four clients a round."""
    own = {"clients": 20.0, "groups": 5.0, "local_steps": 5.0, "heterogeneity": 1.0, name: value}
    groups = int(own["groups"])
    clients = 4 * groups if name == "groups" else int(own["clients"])
    problem = random_quadratic(
        clients, DIMENSION, heterogeneity=own["heterogeneity"], condition=10.0, noise=0.5, initial_gap=1.0, seed=0
    )
    record = Cyclic(clients, groups).matrix(rounds, np.random.default_rng(0))
    return confront_family(
        KNOWING, problem, record, [rounds], local_steps=int(own["local_steps"]), interval=groups, form=form
    )


@cache
def exact_ratios(rounds: int = RATIO_ROUNDS) -> dict[str, dict[float, list[RunComparison]]]:
    """Panel to value to the run under both forms."""
    return ratio_panels(AXES, lambda name, value, form: cyclic_run(name, value, form, rounds), FORMS)


def exact_ratio(rounds: int = RATIO_ROUNDS) -> Picture:
    """The tightness of Corollary 3.2 over each constant."""
    return ratios(
        exact_ratios(rounds),
        title="How tight Corollary 3.2 is, exactly",
        caption=f"T = {rounds:,} at the steps that it sets; a quadratic, d = {DIMENSION}, cyclic groups of clients, "
        "noise 0.5 per coordinate; unless it varies, N = 20, P = 5, I = 5, heterogeneity 1.",
    )


def claims() -> list[FigureClaim]:
    """The claims about the dependence on T and on the setting."""
    return [*rate_claims(exact_rates()), *ratio_claims(exact_ratios())]
