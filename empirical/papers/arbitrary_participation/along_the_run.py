r"""What the proof of Theorem 3.1 bounds on the way, exactly, on quadratics with given participation.

The left-hand sides of Lemmas C.1 and C.2, and those of (5), (6) and (7) at the only points where the proof evaluates
them: (6) at the mean local iterates $\bar{\mathbf y}_{t,i}$, (5) and (7) at the windows' starts $\mathbf x_{t_0}$, in
expectation over the noise. With different Hessians their suprema over all x are infinite, but Theorem 3.1 stays true
with these *trajectory constants*.

Source: Wang & Ji 2022, Appendix C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.participation.constants import check_weights
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.moments.local_work import Coordinates, apply, sandwich, trace
from fedbounds.empirical.simulation.moments.moments import require_quadratic
from fedbounds.empirical.simulation.moments.rounds import RoundLaw, State, weighted_sum


@dataclass(frozen=True, eq=False)
class AlongTheRun:
    r"""Exact expectations over gradient noise given the participation, for T rounds of I local steps.

    Attributes:
        spread: left side of Lemma C.1, $\sum_nq_t^n\mathbb E\|\mathbf y^n_{t,i}-\bar{\mathbf y}_{t,i}\|^2$, (T, I+1).
        drift: left side of Lemma C.2, $\mathbb E\|\bar{\mathbf y}_{t,i}-\mathbf x_{t_0}\|^2$, (T, I+1).
        cohort: left side of (6) at $\bar{\mathbf y}_{t,i}$, i < I, (T, I).
        participation: left side of (5) at $\mathbf x_{t_0}$, (T,).
        window: left side of (7) at $\mathbf x_{t_0}$, for the complete windows, (T // P,).
        interval: P.
    """

    spread: np.ndarray
    drift: np.ndarray
    cohort: np.ndarray
    participation: np.ndarray
    window: np.ndarray
    interval: int

    def constants(self, rounds: np.ndarray | int | None = None) -> dict[str, Constant]:
        r"""The divergences of Assumption 3' along the first rounds of the run: roots, unit f/x, source "trajectory"."""
        T = np.asarray(len(self.participation) if rounds is None else rounds)
        if (self.interval > T).any():
            raise FedboundsError(f"rounds = {T.min()} hold no complete window of interval = {self.interval}")
        windows = T // self.interval
        squares = {
            "cohort_divergence": (
                np.maximum.accumulate(self.cohort.max(axis=1))[T - 1],
                "largest value of (6) at the mean local iterates",
            ),
            "participation_divergence": (
                np.maximum.accumulate(self.participation)[T - 1],
                "largest value of (5) at the windows' starts",
            ),
            "window_divergence": (
                np.maximum.accumulate(self.window)[windows - 1],
                "largest value of (7) at the starts of the complete windows",
            ),
        }
        return {name: Constant(np.sqrt(square), "trajectory", note) for name, (square, note) in squares.items()}


def along_the_run(algorithm: Algorithm, problem: Problem, q: np.ndarray, interval: int | None = None) -> AlongTheRun:
    r"""The quantities that the proof bounds, exactly.

    Source: Wang & Ji 2022, Lemmas C.1 and C.2, Assumption 3' and Appendix C.3.
    """
    P, multiplier = analysis_interval(algorithm, interval)
    coordinates = Coordinates.from_problem(require_quadratic(problem))
    weights = check_weights(q)
    if weights.shape[1] != problem.clients:
        raise FedboundsError(f"weights q are of {weights.shape[1]} clients, the problem has {problem.clients}")
    T, I, one = len(weights), algorithm.local.steps, coordinates.identity
    works = [coordinates.work(algorithm.local.step_size, steps) for steps in range(I + 1)]
    hessians, linear = coordinates.hessians, -coordinates.linear

    spread, drift, cohort = np.zeros((T, I + 1)), np.zeros((T, I + 1)), np.zeros((T, I))
    participation, window = np.zeros(T), np.zeros(T // P)
    state = State.begin(coordinates.start, np.zeros_like(one))
    for t, row in enumerate(weights):
        here = state.start, state.start_covariance
        participation[t] = _squared_distance(row, hessians, linear, *here)
        if t % P == 0 and t + P <= T:
            window[t // P] = _squared_distance(weights[t : t + P].mean(axis=0), hessians, linear, *here)
        before = state.mean, state.covariance(one)
        reached = state
        for i, work in enumerate(works):
            law = RoundLaw(weighted_sum(row, work.increments), row @ work.shifts, weighted_sum(row**2, work.noise))
            reached = state.advance(law, one, law.noise)
            drift[t, i] = reached.squared_displacement()
            noise = weighted_sum(row * (1 - row), work.noise)
            spread[t, i] = _scatter(row, work.increments, work.shifts, *before) + trace(noise)
            if i < I:
                cohort[t, i] = _scatter(row, hessians, linear, reached.mean, reached.covariance(one))
        state = reached.amplify(multiplier, one) if (t + 1) % P == 0 else reached
    return AlongTheRun(spread, drift, cohort, participation, window, P)


def analysis_interval(algorithm: Algorithm, interval: int | None) -> tuple[int, float]:
    r"""The interval P of the analysis, and $\eta$: the algorithm's own, or any P for $\eta=1$, as P is unused."""
    if not isinstance(algorithm, GeneralizedFedAvg | FedAvg):
        raise FedboundsError(f"the paper's results are about generalized FedAvg, not {algorithm.kind}")
    own, multiplier = 1, 1.0
    if isinstance(algorithm, GeneralizedFedAvg):
        own, multiplier = algorithm.interval, algorithm.server_multiplier
    P = own if interval is None else check_count("interval", interval)
    if own != P and multiplier != 1:
        raise FedboundsError(f"interval = {P}, but the algorithm amplifies every {own} rounds")
    return P, multiplier


def _squared_distance(
    weights: np.ndarray, operators: np.ndarray, shifts: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> float:
    r"""$\mathbb E\|\sum_n(q^n-\frac1N)(O_nx+s_n)\|^2$."""
    excess = weights - 1 / len(weights)
    if len(operators) == 1:
        total = excess @ shifts  # the operators cancel
        return float(total @ total)
    operator = weighted_sum(excess, operators)
    total = apply(operator, mean) + excess @ shifts
    return float(total @ total) + trace(sandwich(operator, covariance))


def _scatter(
    weights: np.ndarray, operators: np.ndarray, shifts: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> float:
    r"""$\sum_nq^n\mathbb E\|(O_n-O_q)x+s_n-s_q\|^2$ for weights that sum to one."""
    present = np.flatnonzero(weights)
    share = weights[present]
    apart = shifts[present] - share @ shifts[present]
    if len(operators) == 1:
        return float(share @ (apart**2).sum(axis=1))
    turned = operators[present] - weighted_sum(weights, operators)
    if turned.ndim == 2:
        apart = apart + turned * mean
        return float(share @ (apart**2).sum(axis=1) + share @ turned**2 @ covariance)
    apart = apart + turned @ mean
    return float(share @ (apart**2).sum(axis=1) + share @ ((turned @ covariance) * turned).sum(axis=(1, 2)))
