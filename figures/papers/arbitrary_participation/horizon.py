"""The best gradient norm of each method in T rounds, exactly on quadratics."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg, WaitMinibatch
from fedbounds.empirical.participation import PeriodicGroups
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.papers.arbitrary_participation import experiments as ex

CLIENTS, PARTICIPANTS, SLOT, LOCAL_STEPS = 50, 5, 2, 5
INTERVAL = 5 * SLOT
HETEROGENEITY = (0.1, 1.0)
STEPS = tuple(float(f"{10**k:.3g}") for k in np.arange(-4, 0.3, 0.25))


def method(name: str, step: float) -> Algorithm:
    """One of the methods of Figure 1."""
    if name == ex.AMPLIFIED:
        return GeneralizedFedAvg(step, LOCAL_STEPS, 10.0, INTERVAL)
    return FedAvg(step, LOCAL_STEPS) if name == ex.PLAIN else WaitMinibatch(step, LOCAL_STEPS, INTERVAL)


def best(name: str, heterogeneity: float, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of cycles, the least expected squared gradient norm (mean over a cycle) of all step sizes, and that step
    size.
    """
    problem = random_quadratic(CLIENTS, 20, heterogeneity=heterogeneity, condition=100.0, noise=0.1,
                               initial_gap=5.0, seed=0)  # fmt: skip
    process = PeriodicGroups(CLIENTS, PARTICIPANTS, slot=SLOT, groups=5)
    weights = process.matrix(rounds, np.random.default_rng(0))
    runs = []
    for step in STEPS:
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.asarray(moments(method(name, step), problem, weights).gradient_norm_squared)[1 : rounds + 1]
            runs.append(norms.reshape(-1, INTERVAL).mean(axis=1))
    every = np.array(runs)
    every = np.where(np.isfinite(every), every, np.inf)
    return INTERVAL * np.arange(1, every.shape[1] + 1), every.min(axis=0), np.array(STEPS)[every.argmin(axis=0)]


def horizon(rounds: int = 4000) -> Picture:
    """The least expected gradient norm of every method over that of plain FedAvg, for two heterogeneities."""
    names = (ex.AMPLIFIED, ex.WAIT_MINIBATCH, ex.PLAIN)
    found = {h: {name: best(name, h, rounds) for name in names} for h in HETEROGENEITY}
    title = "The best that each method can do in T rounds, exactly"
    ends = "; ".join(
        f"heterogeneity {h:g}, T = {rounds}: "
        + ", ".join(f"{name} {values[-1]:.3g} (gamma {steps[-1]:.2g})" for name, (_, values, steps) in of.items())
        for h, of in found.items()
    )
    curves = {
        f"heterogeneity {h:g}": [
            Curve(name, cycles.astype(float), values / of[ex.PLAIN][1]) for name, (cycles, values, _) in of.items()
        ]
        for h, of in found.items()
    }
    return panels(
        curves,
        x_label="number of rounds $T$",
        y_labels=[r"$\mathbf{E}\|\nabla f\|^2$ over that of plain FedAvg", ""],
        title=title,
        caption=f"{title}, over what FedAvg without amplification can do. Random quadratics of 50 clients in 20 "
        f"dimensions, condition number 100, five groups available for {SLOT} rounds in turn, S = {PARTICIPANTS}, "
        f"I = {LOCAL_STEPS}, P = {INTERVAL}, eta = 10; for every T and every method the best of {len(STEPS)} step "
        "sizes, averaged over the last cycle, by exact moments given one record of participation: nothing is run. "
        f"wait-full has no noise here and is left out. At the end: {ends}.",
        alternative="Two panels: the least expected squared gradient norm of three methods over that of plain FedAvg.",
        provenance={"step sizes": STEPS, "seeds": {"problem": 0, "participation": 0}},
        x_scale="log",
        y_scales=["log", "log"],
    )
