"""Guarantees on images: logistic regression on digits under Theorem 3.1, with exact or proved constants."""

from __future__ import annotations

from collections.abc import Mapping

from fedbounds.empirical.comparison.compare_run import RunComparison, confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.participation import Cyclic, Full, Process, WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.figures.charts.overlay import overlays
from fedbounds.figures.charts.picture import Picture

CLIENTS, LOCAL_STEPS, SEEDS = 10, 5, 3
# the process, the interval of amplification that the theorem needs, and the two step sizes
PROCESSES: dict[str, tuple[Process, int, float, float]] = {
    "everybody": (Full(CLIENTS), 1, 2e-4, 20.0),
    "half of them, in turn": (Cyclic(CLIENTS, 2), 2, 1e-4, 20.0),
    "two of ten, drawn": (WithoutReplacement(CLIENTS, 2), 1, 2e-4, 20.0),
}


def compare_all(rounds: int = 600) -> dict[str, RunComparison]:
    """The comparison with the theorem for every participation process."""
    return {name: compare_process(*numbers, rounds) for name, numbers in PROCESSES.items()}


def guarantee_picture(runs: Mapping[str, RunComparison]) -> Picture:
    """The squared gradient norm of logistic regression on digits under the sharp form of Theorem 3.1."""
    return overlays(
        {"": {name: [run] for name, run in runs.items()}},
        title="A guarantee on real images: logistic regression on digits under Theorem 3.1",
        caption=f"{CLIENTS} clients, each with a majority of one digit, {LOCAL_STEPS} local steps on batches of 16, "
        f"{SEEDS} seeds. Smoothness, noise and divergence are computed from the images or bounded by a proof, and the "
        "gap at the start is at most f(x_0), as the loss is not negative: the bound on the mean is a guarantee. Where "
        "clients are drawn, all that is proved of their divergence is a bound on their gradients, and it says little.",
    )


def compare_process(
    process: Process, interval: int, local_step_size: float, multiplier: float, rounds: int
) -> RunComparison:
    """Runs of one process compared with the theorem."""
    problem = problem_from_spec({"kind": "images", "clients": CLIENTS, "network": "linear", "gradient_norm": True})
    algorithm = GeneralizedFedAvg(local_step_size, LOCAL_STEPS, multiplier, interval)
    run = simulate(algorithm, problem, process, rounds, seeds=range(SEEDS), record_every=interval)
    return confront(run, "arbitrary-participation/theorem-3.1", "sharp", problem=problem, participation=process)
