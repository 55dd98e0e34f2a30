r"""Rates and ratios: Corollaries 3.2 and 3.3 at their own step sizes, exactly on quadratics."""

from __future__ import annotations

from functools import cache

import numpy as np

from fedbounds.empirical.confront import Confrontation, confront_family
from fedbounds.empirical.participation import Cyclic, Process, WithoutReplacement
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.rates import Rate
from fedbounds.figures.claims import Claim
from fedbounds.figures.picture import Picture
from fedbounds.figures.rate import rate, rate_claims

CLIENTS, GROUPS, LOCAL_STEPS, DIMENSION = 20, 5, 5, 10
KNOWING, NOT_KNOWING = "arbitrary-participation/corollary-3.2", "arbitrary-participation/corollary-3.3"
ROUNDS = tuple(125 * 4**k for k in range(6))  # whole cycles
SINCE = 8000  # of the fits


def exact(
    corollary: str, form: str, noise: float, process: Process, interval: int, rounds: tuple[int, ...]
) -> Confrontation:
    """Runs of one corollary's steps on a quadratic, one per T, by exact moments."""
    problem = random_quadratic(
        CLIENTS, DIMENSION, heterogeneity=1.0, condition=10.0, noise=noise, initial_gap=1.0, seed=0
    )
    told = process.matrix(max(rounds), np.random.default_rng(0)) if interval > 1 else process  # in turn: one record
    return confront_family(corollary, problem, told, rounds, local_steps=LOCAL_STEPS, interval=interval, form=form)


@cache
def exact_rates(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> dict[str, Rate]:
    """Panel to its family."""
    in_turn, drawn = Cyclic(CLIENTS, GROUPS), WithoutReplacement(CLIENTS, CLIENTS // GROUPS)
    families: dict[str, tuple[str, str, float, Process, int]] = {
        "Corollary 3.2, in turn": (KNOWING, "explicit", 0.5, in_turn, GROUPS),
        "Corollary 3.3, in turn": (NOT_KNOWING, "sharp", 0.5, in_turn, GROUPS),
        "Corollary 3.2, in turn, no noise": (KNOWING, "explicit", 0.0, in_turn, GROUPS),
        "Corollary 3.2, drawn each round": (KNOWING, "explicit", 0.5, drawn, 1),
    }
    return {name: Rate(exact(*numbers, rounds), since) for name, numbers in families.items()}


def exact_rate(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> Picture:
    """Corollaries 3.2 and 3.3 on a quadratic, exactly."""
    return rate(
        exact_rates(rounds, since),
        title="Rates of Corollaries 3.2 and 3.3, exactly",
        caption=f"A quadratic with one Hessian, N = {CLIENTS}, d = {DIMENSION}, I = {LOCAL_STEPS}; a fifth of the "
        f"clients in every round, in turn (P = {GROUPS}, the window divergence is 0) or drawn without replacement "
        "(P = 1, it does not fall with T, and so neither does the bound; what is measured does).",
    )


def claims() -> list[Claim]:
    """What the corollaries say of the dependence on T, against what was measured."""
    return rate_claims(exact_rates())
