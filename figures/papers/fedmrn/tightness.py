"""Theorem 2 of FedMRN, its worst case and quadratics whose updates are sparsified, at the same constants."""

from typing import Any

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.moments.operators import masked_moments, sparsifier
from fedbounds.figures.charts.tightness import Settings, Tight, solve_worst_case

KEY, FORM, DIMENSION = "fedmrn/theorem-2", "sharp", 4
EXACT = frozenset({"exact"})
ALONG = frozenset({"exact", "trajectory"})
IN_A_PROGRAM = 4  # iterations; longer runs are cut into blocks


def evaluate_setting(
    clients: int = 2,
    local_steps: int = 2,
    iterations: int = 64,
    heterogeneity: float = 0.5,
    error: float = 0.5,
    noise: float = 0.5,
) -> Tight:
    """Half of the clients are averaged; G is the least bound on the gradients of this run in the mean square."""
    problem = random_quadratic(
        clients, DIMENSION, heterogeneity, noise=noise / DIMENSION**0.5, initial_gap=1.0, condition=4.0
    )
    step, drawn = iterations**-0.5, max(1, clients // 2)
    run = masked_moments(
        problem, sparsifier(1 / (1 + error**2)), lambda t: step, iterations=iterations, local_steps=local_steps,
        cohort=drawn,
    )  # fmt: skip
    few = min(iterations, local_steps if clients > 1 else IN_A_PROGRAM)
    worst = solve_worst_case(
        "fedmrn-analysis",
        iterations=few,
        blocks=iterations // few,
        step=step,
        local_steps=local_steps,
        clients=clients,
        participants=drawn,
        relative_error=error,
        gradient_bound=run.gradient_bound,
        noise=noise,
        gap_to="last" if iterations > few else "infimum",
    )
    constants = {"L": 1.0, "F": 1.0, "N": clients, "K": drawn, "S": local_steps, "T": iterations, "q": error,
                 "sigma": noise, "G": run.gradient_bound}  # fmt: skip
    found = evaluate(load(KEY), constants, form=FORM)
    measured = float(run.gradient_norm_squared[:iterations].mean())
    return Tight(float(found.value), bool(found.valid), measured, worst, ALONG)


ALONE: dict[str, Any] = {"clients": 1, "noise": 0.0, "local_steps": 1, "error": 0.0}
SETTINGS: Settings = {
    "clients $N$": {N: {"clients": N} for N in (1, 2, 3, 4)},
    "local steps $S$": {S: {"local_steps": S} for S in (1, 2, 4)},
    "iterations $T$, one client,\nno noise, no mask": {T: {"iterations": T, **ALONE} for T in (1, 4, 16, 64, 256)},
    r"heterogeneity": {d: {"heterogeneity": d} for d in (0.125, 0.5, 1.0, 2.0, 4.0)},
    "error of the operator $q$": {q: {"error": q} for q in (0.125, 0.25, 0.5, 1.0, 2.0)},
}
TITLE = "Theorem 2 and its worst case"
CAPTION = (
    "An unbiased operator, half of the clients in each average, the step 1/(L sqrt(T)), L = F = 1; unless "
    "it varies N = 2, S = 2, T = 64, q = 0.5, heterogeneity and noise 0.5. Measured: exact moments of a sparsifier "
    f"on quadratics with one Hessian, d = {DIMENSION}; G is the least that bounds their gradients in the mean "
    "square, and so is not the same at all points."
)
