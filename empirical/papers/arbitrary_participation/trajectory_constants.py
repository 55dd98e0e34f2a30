r"""The constants of Theorem 3.1 where no formula gives them, as of networks: measured along a recorded run.

The divergences at the only points at which the proof uses them, exactly at each: (5) and (7) at the windows' starts
$\mathbf x_{t_0}$, (6) at the mean local models $\bar{\mathbf y}_{t,i}$ of some rounds. The smoothness by its secants
between the pairs of points of the proof, $(\mathbf y_{t,i}^n,\bar{\mathbf y}_{t,i})$ and $(\bar{\mathbf y}_{t,i},
\mathbf x_{t_0})$ for $F_n$, and for f between windows' starts (the descent lemma uses all points between them).

Source: Wang & Ji 2022, Assumption 3', Lemmas C.1, C.2 and eq. (C.13).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.measured_constants import (
    LOCAL_ROUNDS,
    constant,
    evenly_spaced,
    largest_noise,
    largest_secant,
    local_models,
    products,
    recorded_products,
    visits,
)
from fedbounds.empirical.comparison.paper_runs import Constants
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.papers.arbitrary_participation.divergences import Products
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.trace import Trace


def measure_along_run(setting: RunSetting, interval: int) -> Constants:
    """Smoothness, noise and divergences along a run that recorded its models."""
    assert isinstance(setting.run, Trace)
    if setting.logged and not {"gradient_products", "participation_weight"} <= setting.run.arrays.keys():
        return {}
    q = setting.weights()
    if setting.logged:
        return _logged(setting.run, interval, q, setting.problem.client_weights)
    found = _measure(setting.run, setting.problem, setting.algorithm, interval, q.shape, q.tobytes())
    return {**found, "gradient_noise": largest_noise(setting.run, setting.problem)}


@lru_cache(maxsize=8)
def _measure(
    run: Trace, problem: Problem, algorithm: Algorithm, P: int, shape: tuple[int, ...], weights: bytes
) -> dict[str, Constant]:
    q = np.frombuffer(weights).reshape(shape)  # (seeds, T, N), in a form that a cache can hold
    T, recorded = shape[1], run.arrays["round"]
    starts = _starts(recorded, P, T)
    chosen = evenly_spaced(recorded[(recorded < T) & np.isin(recorded - recorded % P, starts)], LOCAL_ROUNDS)
    nu = smoothness = 0.0
    before, at_starts = None, []
    near = np.concatenate([chosen - chosen % P, starts[np.isin(starts + P, starts) | np.isin(starts - P, starts)]])
    for seed, t, x, _ in visits(run, problem, starts):
        known = recorded_products(run, seed, t)
        if known is not None and t not in near:  # no vector is needed there
            at_starts.append(_of_window(Products(known, problem.client_weights), q[seed, t : t + P]))
            continue
        gradients = client_gradients(problem, x)
        at_starts.append(_of_window(Products(products(gradients), problem.client_weights), q[seed, t : t + P]))
        f = problem.client_mean(gradients)
        if before is not None and before[:2] == (seed, t - P):
            smoothness = max(smoothness, largest_secant(x, before[2], f, before[3]))
        before = seed, t, x, f
        for seen in visits(run, problem, chosen[(chosen >= t) & (chosen < t + P)], seed):
            present = np.flatnonzero(q[seed, seen.round])
            share = q[seed, seen.round, present]
            streams = Streams(int(run.arrays["seed"][seed]), run.spec.get("streams", {}))
            names = torch.from_numpy(present).to(problem.device)
            at_start = gradients[names]
            for y in local_models(problem, algorithm.local, seen.model, present, streams, seen.drawn):
                mean = torch.from_numpy(share).to(y) @ y
                at_mean = client_gradients(problem, mean, present)
                own = problem.gradient(y[None], names[None])[0]
                nu = max(nu, Products(products(at_mean)).spread(share))
                pairs = largest_secant(y, mean, own, at_mean), largest_secant(mean, x, at_mean, at_start)
                smoothness = max(smoothness, *pairs)
    local = f"at the mean local models of {len(chosen)} of {T} rounds"
    pairs_at = f"{local}, and {_where(starts, P, T)}"
    return _of_windows(at_starts, starts, P, T) | {
        "cohort_divergence": constant(nu**0.5, len(chosen) == T, "largest value of (6)", local),
        "smoothness": constant(smoothness, False, "largest |grad F(u) - grad F(v)|/|u - v|", pairs_at),
    }


def _logged(run: Trace, P: int, q: np.ndarray, client_weights: np.ndarray | None) -> Constants:
    """The divergences at the windows' starts, of a run made elsewhere that recorded its clients' gradients there."""
    T, recorded = q.shape[1], run.arrays["round"]
    starts = _starts(recorded, P, T)
    at_starts = [
        _of_window(
            Products(run.arrays["gradient_products"][row, np.searchsorted(recorded, t)], client_weights),
            q[row, t : t + P],
        )
        for row in range(len(q))
        for t in starts.tolist()
    ]
    return dict(_of_windows(at_starts, starts, P, T))


def _starts(recorded: np.ndarray, P: int, T: int) -> np.ndarray:
    """The recorded rounds in which a whole window begins."""
    return recorded[(recorded % P == 0) & (recorded + P <= T)]


def _where(starts: np.ndarray, P: int, T: int) -> str:
    return f"at {len(starts)} of {T // P} windows' starts"


def _of_window(known: Products, rows: np.ndarray) -> tuple[float, float]:
    """The values of (5) and (7) at a window's start, for its weights (P, N)."""
    return float(known.combined(rows).max()), float(known.combined(rows.mean(axis=0)[None])[0])


def _of_windows(values: Sequence[tuple[float, float]], starts: np.ndarray, P: int, T: int) -> dict[str, Constant]:
    """The largest values of (5) and (7) over windows, and never less than zero, which rounding can leave."""
    beta, delta = (max((0.0, *column)) for column in zip(*values, strict=True)) if values else (0.0, 0.0)
    every, where = len(starts) == T // P, _where(starts, P, T)
    return {
        "participation_divergence": constant(beta**0.5, every, "largest value of (5)", where),
        "window_divergence": constant(delta**0.5, every, "largest value of (7)", where),
    }
