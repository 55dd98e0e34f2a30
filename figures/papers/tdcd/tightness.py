"""Theorem 1 of TDCD, its worst case and quadratics, at the same constants."""

from typing import Any

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import random_block_quadratic
from fedbounds.empirical.simulation.moments import TierMoments, moments
from fedbounds.figures.charts.tightness import Settings, Tight, solve_worst_case

KEY, FORM, PARAMETERS = "tdcd/theorem-1", "sharp:B3", 12
IN_A_PROGRAM = 4  # rounds of one silo; longer runs, and those of several, are cut into blocks


def evaluate_setting(
    silos: int = 2,
    clients: int = 1,
    local_steps: int = 2,
    rounds: int = 64,
    noise: float = 0.5,
    heterogeneity: float = 0.0,
    share: float = 1.0,
) -> Tight:
    """One client in each silo, with noise; or several with their own Hessians, whose difference is S."""
    problem = random_block_quadratic(
        silos, clients, PARAMETERS // silos, heterogeneity, condition=4.0, shared=clients == 1,
        noise=noise / PARAMETERS**0.5, initial_gap=1.0,
    )  # fmt: skip
    eta = share / (8 * local_steps)
    run = moments(TDCD(eta, local_steps), problem, Full(problem.clients), rounds)
    assert isinstance(run, TierMoments)
    S = float(run.silo_variances[:rounds].sum(axis=1).mean())
    few = min(rounds, IN_A_PROGRAM if silos == 1 else 1)
    worst = solve_worst_case(
        "tdcd",
        rounds=few,
        blocks=rounds // few,
        local_step=eta,
        local_steps=local_steps,
        silos=silos,
        noise=(S / silos) ** 0.5 if clients == 1 else 0.0,
        clients=clients,
        heterogeneity=S**0.5 if clients > 1 else 0.0,
    )
    constants = {"L": 1.0, "Lmax": 1.0, "Delta": 1.0, "S": S, "Q": local_steps, "R": rounds, "eta": eta}
    found = evaluate(load(KEY), constants, form=FORM, strict=False)
    measured = float(run.gradient_norm_squared[:rounds].mean())
    sources = {"exact"} if clients == 1 else {"exact", "trajectory"}
    return Tight(float(found.value), bool(found.valid), measured, worst, frozenset(sources))


ALONE: dict[str, Any] = {"silos": 1, "local_steps": 1, "noise": 0.0}
QUIET: dict[str, Any] = {"clients": 2, "noise": 0.0}
SETTINGS: Settings = {
    "silos $N$": {N: {"silos": N} for N in (1, 2, 3, 4)},
    "local steps $Q$": {Q: {"local_steps": Q} for Q in (1, 2, 3, 4)},
    "rounds $R$, one silo,\nno noise, $Q = 1$": {R: {"rounds": R, **ALONE} for R in (1, 4, 16, 64, 256)},
    "noise $\\sqrt{S}$": {s: {"noise": s} for s in (0.125, 0.5, 1.0, 2.0, 4.0)},
    "heterogeneity,\ntwo clients, no noise": {h: {"heterogeneity": h, **QUIET} for h in (0.125, 0.5, 1.0, 2.0, 4.0)},
    "step size, share of (14)": {c: {"share": c} for c in (0.03, 0.12, 0.5, 1.0, 2.0)},
}
TITLE = "TDCD and its worst case"
CAPTION = (
    "Unless it varies N = 2, Q = 2, R = 64, one client in each silo, whose noise stays the same in a round "
    "and has S = 0.25, whatever N is, and the largest step size of (14), 1/(8 Q L); L = Lmax = Delta = 1. "
    "Heterogeneity is of two clients in each silo, who hold the same samples in all of them and take full "
    "gradients: S is the mean along the run of what these differ by, all that the proof uses; the assumption asks "
    "for the largest. Measured: quadratics with "
    f"{PARAMETERS} parameters, a Hessian of norm 1 for each client, f(x_0) - inf f = 1, by exact moments."
)
