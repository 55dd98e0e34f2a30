r"""Rates and ratios: Corollary 4 at its own steps, for known rates exactly on quadratics, for FedAU by seeds."""

from functools import cache

import numpy as np

from fedbounds.empirical.comparison.compare_run import RunComparison, confront_family
from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.empirical.participation import Bernoulli
from fedbounds.empirical.problems import random_bounded_gradient, random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.picture import Picture
from fedbounds.figures.charts.rate import rate, rate_claims, ratio_claims, ratio_panels, ratios

CLIENTS, LOCAL_STEPS, DIMENSION, SEEDS, NOISE = 12, 5, 5, 8, 0.3
KNOWN, ESTIMATED = "fedau/appendix-a.3-unequal", "fedau/corollary-4"
ROUNDS, SINCE = tuple(125 * 4**k for k in range(6)), 8000
SAMPLED, SAMPLED_SINCE = tuple(64 * 4**k for k in range(5)), 1024


def process() -> Bernoulli:
    """Clients with rates from 0.3 to 1, independent in every round."""
    return Bernoulli(CLIENTS, np.linspace(0.3, 1.0, CLIENTS), normalize=False)


@cache
def known_rates(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> dict[str, Rate]:
    """Weights 1/p_n on quadratics, by exact moments over noise and participation."""
    families = {}
    for name, noise, apart in (
        ("known rates", NOISE, 1.0),
        ("known rates, no noise", 0.0, 1.0),
        ("known rates, clients alike, no noise", 0.0, 0.0),
    ):
        problem = random_quadratic(
            CLIENTS, DIMENSION, heterogeneity=apart, condition=10.0, noise=noise, initial_gap=1.0, seed=0
        )
        family = confront_family(KNOWN, problem, process(), rounds, local_steps=LOCAL_STEPS, form="explicit")
        families[name] = Rate(family, since)
    return families


@cache
def estimated_rates(
    rounds: tuple[int, ...] = SAMPLED, since: int = SAMPLED_SINCE, seeds: int = SEEDS
) -> dict[str, Rate]:
    """FedAU with the cut-off of Corollary 4 on clients whose gradient is bounded, by simulation."""
    problem = random_bounded_gradient(
        CLIENTS, DIMENSION, "log-cosh", heterogeneity=1.0, noise=NOISE, spread=1.5, seed=1
    )
    family = confront_family(
        ESTIMATED, problem, process(), rounds, local_steps=LOCAL_STEPS, form="sharp",
        run=lambda algorithm, T: simulate(algorithm, problem, process(), T, seeds=range(seeds)),
    )  # fmt: skip
    return {"FedAU, K = log_c T": Rate(family, since)}


def exact_rate() -> Picture:
    """Corollary 4 and Appendix A.3 at their own steps."""
    return rate(
        known_rates() | estimated_rates(),
        title="Rates of Corollary 4: known rates exactly, FedAU by seeds",
        caption=f"N = {CLIENTS} clients with rates from 0.3 to 1, independent in every round, d = {DIMENSION}, "
        f"I = {LOCAL_STEPS}. Known rates (weights 1/p_n, Appendix A.3) on a quadratic; FedAU on clients with a bounded "
        "gradient, as its theorem needs.",
    )


AXES = {
    "clients N": ("clients", (6.0, 12.0, 24.0, 48.0)),
    "rate p of all": ("participation", (0.1, 0.2, 0.4, 0.8)),
    "local steps I": ("local_steps", (1.0, 2.0, 4.0, 8.0, 16.0)),
    "divergence delta": ("heterogeneity", (0.25, 0.5, 1.0, 2.0, 4.0)),
}
RATIO_ROUNDS = 5_000
FORMS = ("explicit", "sharp")


def run_known_rates(
    form: str,
    rounds: int,
    clients: float = CLIENTS,
    participation: float = 0.5,
    local_steps: float = LOCAL_STEPS,
    heterogeneity: float = 1.0,
) -> RunComparison:
    """One run with weights 1/p and equal rates at the steps of Appendix A.3."""
    problem = random_quadratic(
        int(clients), DIMENSION, heterogeneity=heterogeneity, condition=10.0, noise=NOISE, initial_gap=1.0, seed=0
    )
    process = Bernoulli(int(clients), participation, normalize=False)
    return confront_family(KNOWN, problem, process, [rounds], local_steps=int(local_steps), form=form)


@cache
def exact_ratios(rounds: int = RATIO_ROUNDS) -> dict[str, dict[float, list[RunComparison]]]:
    """Panel to value to the run under both forms."""
    return ratio_panels(AXES, lambda name, value, form: run_known_rates(form, rounds, **{name: value}), FORMS)


def exact_ratio(rounds: int = RATIO_ROUNDS) -> Picture:
    """The tightness of Appendix A.3 over each constant."""
    return ratios(
        exact_ratios(rounds),
        title="How tight Corollary 4 is with known rates, exactly",
        caption=f"T = {rounds:,} at the steps that the result sets; a quadratic, d = {DIMENSION}, weights 1/p; unless "
        f"it varies, N = {CLIENTS}, p = 0.5, I = {LOCAL_STEPS}, delta = 1.",
    )


def claims() -> list[FigureClaim]:
    """The claims about the dependence on T and on the setting."""
    return [*rate_claims(known_rates() | estimated_rates()), *ratio_claims(exact_ratios())]
