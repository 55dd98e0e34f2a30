"""Theorem 3.1, its worst case and quadratics with cyclic participation, at the same constants."""

from typing import Any

import numpy as np

from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.participation import Cyclic
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.tightness import Settings, Tight, solve_worst_case, tight_of_run

KEY, FORM, DIMENSION, MULTIPLIER = "arbitrary-participation/theorem-3.1", "sharp", 4, 6.0
ALMOST = 1 - 1e-9  # of the largest step size, so that rounding breaks no condition
IN_A_PROGRAM = 8  # rounds; longer runs are cut into blocks


def evaluate_setting(
    clients: int = 2, local_steps: int = 2, rounds: int = 64, heterogeneity: float = 0.5, noise: float = 0.5
) -> Tight:
    """One client per round, cyclic, P = N: the divergences are known, that of a window is zero."""
    problem = random_quadratic(
        clients, DIMENSION, heterogeneity, noise=noise / DIMENSION**0.5, initial_gap=1.0, condition=4.0
    )
    gamma = ALMOST / (12 * local_steps * clients)
    algorithm = GeneralizedFedAvg(gamma, local_steps, server_multiplier=MULTIPLIER, interval=clients)
    record = Cyclic(clients, clients).matrix(rounds, np.random.default_rng(0))
    found = confront(moments(algorithm, problem, record, rounds), KEY, FORM)
    few = min(rounds, clients if clients > 1 else IN_A_PROGRAM)
    constants = {n: float(np.asarray(found.constants[n].value)) for n in ("beta", "nu", "delta")}
    worst = solve_worst_case(
        "generalized-fedavg",
        rounds=few,
        blocks=rounds // few,
        local_step=gamma,
        local_steps=local_steps,
        server_multiplier=MULTIPLIER,
        interval=clients,
        weights=np.eye(clients).tolist(),
        noise=noise,
        gap_to="last" if rounds > few else "infimum",
        **(constants if clients > 1 else {}),
    )
    return tight_of_run(found, worst)


ALONE: dict[str, Any] = {"clients": 1, "heterogeneity": 0.0, "noise": 0.0, "local_steps": 1}
SETTINGS: Settings = {
    "clients $N = P$": {N: {"clients": N, "rounds": 48} for N in (1, 2, 3, 4)},
    "local steps $I$": {I: {"local_steps": I} for I in (1, 2, 4)},
    "rounds $T$, one client, no noise": {T: {"rounds": T, **ALONE} for T in (1, 2, 4, 8, 64, 512)},
    r"divergence $\tilde\beta$": {beta: {"heterogeneity": beta} for beta in (0.125, 0.5, 1.0, 2.0, 4.0)},
    r"noise $\sigma$": {sigma: {"noise": sigma} for sigma in (0.125, 0.5, 2.0, 8.0)},
}
TITLE = "Theorem 3.1 and its worst case"
CAPTION = (
    f"One of N clients in each round, cyclically (P = N), steps at the caps, gamma = 1/(12 L I P) and eta = "
    f"{MULTIPLIER:g}, L = F = 1; unless it varies N = 2, I = 2, T = 64 (48 in the first panel), divergence and "
    f"noise 0.5. Measured: exact moments on quadratics with one Hessian, d = {DIMENSION}."
)
