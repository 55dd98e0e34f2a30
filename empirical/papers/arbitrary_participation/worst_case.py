"""Generalized FedAvg with fixed participation as a performance-estimation problem, with and without gradient noise."""

from collections.abc import Mapping, Sequence

import numpy as np
from PEPit import Point

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.empirical.falsification.worst_case import (
    Estimation,
    GapTo,
    Locally,
    Measure,
    WorstCase,
    gap_of_a_block,
    nonnegative,
    positive,
    weighted_points,
    whole,
)

THEOREMS = ("arbitrary-participation/theorem-3.1",)


def generalized_fedavg(
    *,
    rounds: int,  # T, a multiple of the interval
    # the run is so many times as long and cut into blocks like this one, as `gap_of_a_block` says; of whole periods of
    # the weights
    blocks: int = 1,
    local_step: float,  # gamma
    local_steps: int = 1,  # I
    server_multiplier: float = 1.0,  # eta
    interval: int = 1,  # P, after which the updates are amplified
    # q_t^n, one row for each round of a period, (rounds of a period, clients)
    weights: Sequence[Sequence[float]] = ((1.0,),),
    smoothness: float = 1.0,  # L of every client's function
    gap: float = 1.0,  # F
    gap_to: GapTo = "infimum",  # whether F is f(x_0) less the infimum, or less f(x_T)
    measure: Measure = "minimum",  # the least squared norm for t < T, or for t <= T, or the average over t < T
    # sigma, the root of the variance of every stochastic gradient; with it the value is that of the second-moment
    # relaxation
    noise: float = 0.0,
    # beta, nu, delta: the divergences of eqs. (5) to (7) at the points of the run where the proof uses them
    beta: float | None = None,
    nu: float | None = None,
    delta: float | None = None,
) -> WorstCase:
    r"""The largest $\min_t\mathbb E\|\nabla f(x_t)\|^2$ of Algorithm 1 over N smooth functions.

    Source: Wang and Ji 2022, Algorithm 1.
    """
    whole(rounds=rounds, local_steps=local_steps, interval=interval)
    positive(local_step=local_step, smoothness=smoothness)
    positive(server_multiplier=server_multiplier)
    unit = smoothness * gap_of_a_block(gap, blocks, gap_to)
    nonnegative(noise=noise)
    try:
        q = np.atleast_2d(np.asarray(weights, dtype=float))
    except (TypeError, ValueError):
        raise FedboundsError(
            f"weights = {quote(weights)} must be a row of numbers for each round of a period"
        ) from None
    if rounds % interval:
        raise FedboundsError(f"rounds = {rounds} must be a multiple of interval = {interval}")
    if (q < 0).any() or not np.allclose(q.sum(axis=1), 1):
        raise FedboundsError("the weights of a round must be nonnegative and sum to 1")
    if blocks > 1 and rounds % len(q):
        raise FedboundsError(f"rounds = {rounds} of a block must be whole periods of {len(q)} rounds of weights")
    divergences = {name: given for name, given in (("beta", beta), ("nu", nu), ("delta", delta)) if given is not None}
    nonnegative(**divergences)
    allowed = {name: given**2 / unit for name, given in divergences.items()}
    run = Estimation(clients=q.shape[1])
    x = run.start
    for first in range(0, rounds, interval):
        window = _Window(run, x, local_step * smoothness, local_steps, noise / unit**0.5, allowed)
        for t in range(first, first + interval):
            if t != first:
                run.record_gradient(x)
            x = x + window.round(x, q[t % len(q)])
        x = window.end(server_multiplier)
    run.record_gradient(x)
    value, primal = run.worst_gradients(measure, gap_to, unit)
    alone, attained = q.shape[1] == 1, q.shape[1] == blocks == 1 and not noise
    constants = {
        "L": smoothness,
        "F": gap,
        "I": local_steps,
        "P": interval,
        "T": rounds * blocks,
        "gamma": local_step,
        "eta": server_multiplier,
        "rho": float(np.sqrt((q**2).sum(axis=1).max())),
        "sigma": noise,
        **(dict.fromkeys(("beta", "nu", "delta"), 0.0) if alone else {}),
        **divergences,
    }
    return WorstCase("generalized FedAvg", THEOREMS, measure, value, primal, attained, constants, noise > 0)


class _Window:
    """P rounds from one model, with what the divergences allow in them."""

    def __init__(
        self, run: Estimation, start: Point, step: float, steps: int, deviation: float, allowed: Mapping[str, float]
    ) -> None:
        self.run, self.start, self.step, self.steps, self.allowed = run, start, step, steps, allowed
        self.deviation = deviation
        self.gradient = run.record_gradient(start)
        self.updates: list[Point] = []
        self.at_start: list[Point] = []
        self.weights: list[np.ndarray] = []

    def round(self, x: Point, weights: np.ndarray) -> Point:
        """The update of one round: the weighted mean of the local models, less the model."""
        taking = {n: float(w) for n, w in enumerate(weights) if w > 0}
        functions = self.run.functions
        self.weights.append(weights)
        self.at_start.append(weighted_points({n: functions[n].gradient(self.start) for n in taking}, taking))
        self._differ("beta", self.at_start[-1], weights)
        local, own = dict.fromkeys(taking, x), Locally(self.run)
        for _ in range(self.steps):
            if "nu" in self.allowed and len(taking) > 1:
                middle = weighted_points(local, taking)
                there = {n: functions[n].gradient(middle) for n in taking}
                apart = {n: (g - weighted_points(there, taking)) ** 2 for n, g in there.items()}
                self.run.at_most(weighted_points(apart, taking), self.allowed["nu"])
            gradients = own.stochastic_gradients(local, self.deviation)
            local = {n: y - self.step * gradients[n] for n, y in local.items()}
        self.updates.append(weighted_points(local, taking) - x)
        return self.updates[-1]

    def _differ(self, name: str, gradient: Point, weights: np.ndarray) -> None:
        """A divergence of a weighted gradient from that of f, which it equals if all weights do."""
        if name in self.allowed and not np.allclose(weights, 1 / len(weights)):
            self.run.at_most((gradient - self.gradient) ** 2, self.allowed[name])

    def end(self, multiplier: float) -> Point:
        """The model after the window's amplified update."""
        shares = dict.fromkeys(range(len(self.updates)), 1.0 / len(self.updates))
        self._differ("delta", weighted_points(dict(enumerate(self.at_start)), shares), np.mean(self.weights, axis=0))
        ones = dict.fromkeys(range(len(self.updates)), 1.0)
        return self.start + multiplier * weighted_points(dict(enumerate(self.updates)), ones)


WORST_CASES = {"generalized-fedavg": generalized_fedavg}
