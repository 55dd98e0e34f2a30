"""Theorem 1 of Fed-Norm-SGDA, its worst case and quadratic games, at the same constants."""

from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import random_quadratic_minimax
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.tightness import Settings, Tight, solve_worst_case, tight_of_run

KEY, FORM = "fed-norm-sgda/theorem-1", "sharp"
ALMOST = 1 - 1e-9  # of the largest step size, so that rounding breaks no condition


def evaluate_setting(
    clients: int = 1,
    local_steps: int = 2,
    rounds: int = 1000,
    condition: float = 4.0,
    heterogeneity: float = 0.5,
    noise: float = 0.1,
) -> Tight:
    """Full participation, equal local steps, the largest step sizes."""
    game = random_quadratic_minimax(clients, 2, 2, heterogeneity, condition, noise=noise / 2**0.5)
    price = min(2, local_steps)
    drift = max(1, local_steps - 1) * (price * condition) ** 0.5
    ascent, local_ascent = ALMOST / (2 * price), ALMOST / (16 * drift)
    descent, local = ascent * ALMOST / (156 * condition**2), local_ascent / (4 * condition**0.5)
    algorithm = FedNormSGDA(local, local_ascent, descent / local_steps, ascent / local_steps, local_steps=local_steps)
    found = confront(moments(algorithm, game, Full(clients), rounds), KEY, FORM)
    worst = solve_worst_case(
        "fed-norm-sgda",
        blocks=rounds,
        condition=condition,
        step=descent,
        ascent_step=ascent,
        local_step=local,
        local_ascent_step=local_ascent,
        local_steps=local_steps,
        clients=clients,
        gap=float(found.constants["Delta"].value),
        dual_gap=float(found.constants["delta0"].value),
        noise=noise,
        heterogeneity=heterogeneity if clients > 1 else 0.0,
    )
    return tight_of_run(found, worst)


SETTINGS: Settings = {
    "rounds $T$": {T: {"rounds": T} for T in (10, 100, 1000, 10_000)},
    r"local steps $\tau$": {tau: {"local_steps": tau} for tau in (1, 2, 3)},
    r"condition $\kappa$": {kappa: {"condition": kappa} for kappa in (2.0, 4.0, 8.0, 16.0)},
    "clients $n$": {n: {"clients": n} for n in (1, 2, 3)},
    r"heterogeneity $\sigma_G$, $n = 2$": {
        sigma: {"clients": 2, "heterogeneity": sigma} for sigma in (0.125, 0.25, 0.5)
    },
}
TITLE = "Theorem 1 and its worst case"
CAPTION = (
    "All clients, local SGDA, the largest steps, L_f = 1; unless it varies n = 1, tau = 2, T = 1000, kappa "
    "= 4, sigma_G = 0.5, noise 0.1. The worst case is that of one round with the potential of the proof, which "
    "bounds every T, but says little where T is small, as x hardly moves: at the start the square is at most "
    "2 (1 + kappa) L_f Delta. Measured: exact moments on quadratic games that are not convex in x, another one "
    "for each n and kappa."
)
