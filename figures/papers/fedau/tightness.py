"""FedAvg with weights 1/p_n: the bound behind Theorem 1, its worst case and quadratics, at the same constants."""

from typing import Any

from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.fedau.algorithms import KnownParticipation
from fedbounds.empirical.participation import Bernoulli
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.tightness import Settings, Tight, solve_worst_case, tight_of_run

KEY, FORM, DIMENSION = "fedau/theorem-b.4.1", "sharp:no-gap", 4
STEP = 1 / 32  # gamma I
GLOBAL_STEP = 1 / 8  # gamma eta I
IN_A_PROGRAM = 4  # rounds; longer runs are cut into blocks


def evaluate_setting(
    clients: int = 2,
    local_steps: int = 2,
    rounds: int = 64,
    divergence: float = 0.5,
    noise: float = 0.5,
    rate: float = 0.5,
) -> Tight:
    """Clients with equal rates."""
    problem = random_quadratic(
        clients, DIMENSION, divergence, noise=noise / DIMENSION**0.5, initial_gap=1.0, condition=4.0
    )
    gamma = STEP / local_steps
    algorithm = KnownParticipation(gamma, local_steps, GLOBAL_STEP / STEP, probability=(rate,) * clients)
    run = moments(algorithm, problem, Bernoulli(clients, rate, normalize=False), rounds)
    few = min(rounds, IN_A_PROGRAM if clients == 1 else 1)
    worst = solve_worst_case(
        "known-participation",
        rounds=few,
        blocks=rounds // few,
        local_step=gamma,
        local_steps=local_steps,
        server_multiplier=GLOBAL_STEP / STEP,
        rates=[rate] * clients,
        noise=noise,
        divergence=divergence if clients > 1 else 0.0,
        gap_to="last" if rounds > few else "infimum",
    )
    return tight_of_run(confront(run, KEY, FORM), worst)


ALONE: dict[str, Any] = {"clients": 1, "noise": 0.0, "local_steps": 1, "rate": 1.0}
SETTINGS: Settings = {
    "clients $N$": {N: {"clients": N} for N in (1, 2, 3, 4)},
    "local steps $I$": {I: {"local_steps": I} for I in (1, 2, 4)},
    "rounds $T$, one client,\nno noise, $p = 1$": {T: {"rounds": T, **ALONE} for T in (1, 2, 4, 64, 512)},
    r"divergence $\delta$": {delta: {"divergence": delta} for delta in (0.125, 0.5, 1.0, 2.0, 4.0)},
    "rate $p$": {p: {"rate": p} for p in (0.25, 0.35, 0.5, 0.7, 1.0)},
}
TITLE = "FedAvg with weights 1/p, and its worst case"
CAPTION = (
    f"Weights 1/p, so that h = f; gamma I = {STEP:g}, gamma eta I = {GLOBAL_STEP:g}, L = F = 1; unless it "
    "varies N = 2, I = 2, T = 64, p = 0.5, divergence and noise 0.5. Measured: exact moments on quadratics with "
    f"one Hessian, d = {DIMENSION}."
)
