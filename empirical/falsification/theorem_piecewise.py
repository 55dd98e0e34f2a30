r"""Random piecewise quadratics on the line with all their constants, and exact left-hand sides of FedAvg on them.

The clients' gradients are piecewise linear and have the same slope far away. They differ by a bounded amount without
equal Hessians, so that local steps drift. All constants are attained at a knot or on a piece. Without noise a
run is exact up to rounding. Noise of two values has an exact mean local model, which is the server's model where very
many clients have each function.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.theory.measures import Measure
from fedbounds.empirical.falsification.instances.piecewise_quadratics import PiecewiseQuadratic
from fedbounds.empirical.falsification.theorem_runs import aggregate_values, average_of_iterates

MANY = 1e5  # clients with each function
MANY_NOISY = 1e30  # so many that the mean of their noise is nothing
MOST_GROWTH = 25  # of the logarithm of a distance from a maximum: errors grow as it does
LOCAL_STEPS, ROUNDS = (1, 2, 3, 8), (1, 2, 3, 10, 30, 100)
MANY_STEPS = (10**2, 10**3, 10**4, 10**5)  # local steps from a fixed point
MOST_MEASURED = 10**3  # local steps where every model of a round is measured
STATIONARY_ROUNDS = (10**2, 10**4, 10**8)
LONGEST = 200  # rounds that are run one by one
SLOW_ROUNDS = (10, 30, 10**2, 10**3, 10**4)  # of one function, whose steps are taken at once
ROUNDING = 1e-14  # of models, gradients and values of a function, relative to the largest that they are sums of
NEAR = 1e-8  # how near a run stays to a fixed point, relative to the distance of the outer knots
GRID, ZOOMS = 33, 12  # of the search for a fixed point: the interval shrinks to 1e-18 of its length
MARGIN = 100  # standard deviations of the mean model by which a round contracts


class PiecewiseClass(NamedTuple):
    """What the functions of a theorem may be."""

    least: str = "convex"  # "non-convex", "convex" or "strongly-convex"
    same: bool = False  # all clients have one function
    bounded: bool = False  # gradients are bounded
    local: bool = True  # several local steps
    noisy: bool = False
    most: int = max(MANY_STEPS)  # local steps
    absent: bool = False  # whether some clients may never participate


@dataclass(frozen=True)
class PiecewiseTrial:
    """One instance in numbers, which a climb changes."""

    knots: np.ndarray  # of all clients, ascending, (m,)
    curvatures: np.ndarray  # between the knots, (clients, m+1); the outer ones are those of all clients
    slopes: np.ndarray  # at the first knot, (clients,)
    start: float
    noise: float  # s; every gradient is off by s or -s, each with chance 1/2
    local_steps: int
    rounds: int
    steps: np.ndarray  # the share of each step size's cap, in (0, 1]
    uncapped: float  # a step size that nothing caps
    stationary: bool = False  # whether it starts at a fixed point of its rounds
    many: bool = False  # whether very many clients have each function, as they must where there is noise
    absent: int = 0  # how many of the functions are of clients that never participate, the last ones
    # the share of the way from a maximum to the next knot where it ends, which says how near it starts; 0: elsewhere
    leaves: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Its numbers."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}
        return shown | {"clients": self.clients}

    @property
    def clients(self) -> float:
        """How many there are."""
        return len(self.slopes) * (1 if not self.many else MANY_NOISY if self.noise else MANY)

    @cached_property
    def each(self) -> PiecewiseQuadratic:
        """The clients' functions."""
        return PiecewiseQuadratic(self.knots, self.curvatures, self.slopes)

    @cached_property
    def objective(self) -> PiecewiseQuadratic:
        """Their mean."""
        return PiecewiseQuadratic(self.knots, self.curvatures.mean(0), self.slopes.mean())

    @cached_property
    def _participants(self) -> PiecewiseTrial:
        """The trial of those clients that participate."""
        n = len(self.slopes) - self.absent
        return replace(self, curvatures=self.curvatures[:n], slopes=self.slopes[:n], absent=0) if self.absent else self

    @cached_property
    def _least(self) -> tuple[float, float]:
        """The least value of the objective, and a minimizer."""
        value, point = self.objective.minimum()
        return float(value), float(point)

    @property
    def is_bounded_below(self) -> bool:
        """Whether the objective is."""
        return bool(self._least[0] > -np.inf)

    @cached_property
    def _minimizer_error(self) -> float:
        """How far the computed minimizer may be from one, by rounding."""
        _, point = self._least
        place = np.searchsorted(self.knots, point)
        curvature = self.curvatures.mean(0)[place : place + 2].max() or self.smoothness
        return ROUNDING * (self.width + abs(point) + float(self._largest_gradients(np.array([point]))[0]) / curvature)

    def _largest_gradients(self, models: np.ndarray) -> np.ndarray:
        """Of what gradients at these models are sums."""
        return np.abs(self.each.at_knots).max() + self.smoothness * (np.abs(models) + np.abs(self.knots).max())

    def _growth(self, step: float) -> float:
        """What a round multiplies an error of a local model by, at most."""
        with np.errstate(over="ignore"):
            return float((1 + step * np.float64(max(-self.curvatures.min(), 0.0))) ** self.local_steps)

    def _model_errors(self, models: np.ndarray, step: float, multiplier: float) -> np.ndarray:
        """By rounding, of models of a run; the server multiplies that of the mean local model."""
        sums = self.width + np.abs(models) + step * self.local_steps * self._largest_gradients(models)
        return ROUNDING * max(1.0, multiplier) * self._growth(step) * sums

    def _value_errors(self, models: np.ndarray) -> np.ndarray:
        """By rounding, of the objective above its least value."""
        points = np.append(models, self._least[1])
        sums = self._largest_gradients(points) * (np.abs(points) + np.abs(self.knots).max())
        return ROUNDING * (sums[:-1] + sums[-1])

    @cached_property
    def width(self) -> float:
        """The distance of the outer knots, of which the scale of all points is."""
        return float(max(np.ptp(self.knots), np.abs(self.knots).max()))

    @cached_property
    def smoothness(self) -> float:
        """L."""
        return float(np.abs(self.curvatures).max())

    def constants(self) -> dict[str, Any]:
        """The exact constants of the standard concepts, infinite where there is none."""
        at_knots, (least, minimizer) = self.each.at_knots, self._least
        offsets = at_knots - at_knots.mean(0)
        mean, flat = self.curvatures.mean(0), not self.curvatures[:, [0, -1]].any()
        at_minimizer = self.each.slope(np.array([minimizer]))[:, 0]
        start = np.array([self.start])
        gap = float(self.objective.value(start)[0] - least + self._value_errors(start)[0])
        lowest = float(self.curvatures.min())
        spread = float((at_minimizer**2).mean())
        minima = self.each.minimum()[0]
        N = self.clients
        found = {
            "smoothness": self.smoothness,
            "strong_convexity": lowest if lowest > 0 else np.inf,
            "initial_gap": gap,
            "initial_squared_distance": (abs(self.start - minimizer) + self._minimizer_error) ** 2,
            "gradient_noise": self.noise,
            "gradient_divergence_sup": float(np.abs(offsets).max()),
            "mean_gradient_divergence": float((offsets**2).mean(0).max()) ** 0.5,
            "gradient_bound": float(np.abs(at_knots.mean(0)).max()) if flat else np.inf,
            "stochastic_gradient_bound": float((at_knots**2).max() + self.noise**2) ** 0.5 if flat else np.inf,
            "function_heterogeneity": least - float(minima.mean()),
            "optimum_heterogeneity": spread**0.5,
            "optimum_noise": (spread + self.noise**2) ** 0.5,
            "mean_smoothness": float((self.curvatures**2).mean(0).max()) ** 0.5,
            "hessian_heterogeneity": float(np.abs(self.curvatures - mean).max()),
            "local_steps": self.local_steps,
            "rounds": self.rounds,
            "iterations": self.rounds * self.local_steps,
            "clients": N,
            "participating_clients": N,
        }
        return found if self.many else found | {"objective_weights": np.full(len(self.slopes), 1 / N)}

    def _gradients(self, models: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of every client at models of its own, (clients, M), with their curvatures and the distance to the next knot.

        That is the one in the direction of a step; at a knot the piece is that on its side.
        """
        place = np.searchsorted(self.knots, models)
        knots = np.concatenate([self.knots[:1], self.knots])
        at = np.concatenate([self.slopes[:, None], self.each.at_knots], axis=1)
        client, ends = np.arange(len(self.slopes))[:, None], np.concatenate([[-np.inf], self.knots, [np.inf]])
        gradients = at[client, place] + self.curvatures[client, place] * (models - knots[place])
        rises = gradients < 0
        place = place + (rises & (models == ends[place + 1]))
        return gradients, self.curvatures[client, place], np.abs(ends[place + rises] - models)

    @np.errstate(all="ignore")  # logarithms of zero, and runs that diverge
    def _descend(self, models: np.ndarray, step: float, counts: np.ndarray) -> np.ndarray:
        """The clients' models, (clients, M), after so many local steps each, (M,).

        Between two knots k steps change a gradient by a power of 1 - step * curvature, so that all are taken at once.
        """
        left = np.broadcast_to(counts.astype(float), models.shape)
        while (left > 0).any():
            gradients, curvatures, away = self._gradients(models)
            rate = np.log1p(-step * curvatures)
            needed = np.log1p(-curvatures * away / np.abs(gradients)) / rate  # steps to the knot
            needed = np.where(curvatures == 0, away / (step * np.abs(gradients)), needed)
            needed = np.where(np.isnan(needed) | (gradients == 0), np.inf, needed)  # it is never reached
            needed = np.where(step * curvatures > 1, 1.0, needed)
            taken = np.minimum(np.maximum(np.ceil(needed), 1), left)
            moved = np.where(
                curvatures == 0, -step * taken * gradients, gradients / curvatures * np.expm1(taken * rate)
            )
            moved = np.where(taken == 1, -step * gradients, moved)
            models, left = models + np.where(taken > 0, moved, 0.0), left - taken
        return models

    def _round(self, start: np.ndarray, step: float, multiplier: float, within: bool = False) -> np.ndarray:
        """The server's models before and after a round, (2, X); if `within`, mean local models between, (I + 1, X)."""
        run = self._participants
        models, means = np.tile(start, (len(run.slopes), 1)), [start]
        if not self.noise:
            counts = np.arange(1, self.local_steps + 1) if within else np.array([self.local_steps])
            ends = run._descend(np.tile(models, len(counts)), step, np.repeat(counts, len(start)))
            means += [*ends.mean(0).reshape(len(counts), -1)]
        for i in range(self.local_steps if self.noise else 0):
            models = models - step * run._gradients(models)[0]
            means.append(models.reshape(-1, len(start)).mean(0))
            if i + 1 < self.local_steps:
                models = np.concatenate([models - step * self.noise, models + step * self.noise], axis=1)
        means[-1] = start + multiplier * (means[-1] - start)
        return np.array(means if within else [start, means[-1]])

    def _path(self, step: float, multiplier: float, within: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """The models of a run and what rounding errors of them are multiplied by, (T+1,), if it takes the steps of
        gradient descent on one function, which are all taken at once; None if it does not.

        A step multiplies an error by 1 - step * curvature, which is above 1 on concave pieces.
        """
        run, every = self._participants, 1 if within else self.local_steps
        one = self.local_steps == 1 or (len(run.slopes) == 1 and multiplier == 1)
        step = step * multiplier if self.local_steps == 1 else step
        if not one or self.noise or self.stationary or step * self.smoothness > 1:
            return None
        counts = every * np.arange(self.rounds * self.local_steps // every + 1)
        single = replace(run, curvatures=run.curvatures.mean(0)[None], slopes=run.slopes.mean()[None])
        models = single._descend(np.full((1, len(counts)), self.start), step, counts)[0]
        near, curvatures = NEAR * self.width, single.curvatures[0]
        low, high = np.minimum(models[:-1], models[1:]) - near, np.maximum(models[:-1], models[1:]) + near
        edges = np.concatenate([[-np.inf], self.knots, [np.inf]])
        met = (low[:, None] <= edges[1:]) & (high[:, None] >= edges[:-1])  # (T, m+1)
        growth = (1 + step * np.where(met, -curvatures, 0.0).max(1, initial=0.0)) ** every
        return models, np.append(1.0, np.cumprod(growth))

    def aim(self, step: float, multiplier: float) -> PiecewiseTrial | None:
        """The trial from so near a maximum that it ends where the objective is the steepest; None if it has no maximum.

        The rounds are not more than those in which rounding errors stay small.
        """
        slopes = self.objective.at_knots
        places = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] < 0))
        if not len(places):
            return None
        low, high = self.knots[(k := places[0]) : k + 2]
        top = low + slopes[k] / (slopes[k] - slopes[k + 1]) * (high - low)
        with np.errstate(over="ignore"):
            away = np.expm1(self.local_steps * np.log1p(-step * self.objective.curvatures[k + 1]))  # of local steps
        rate = np.log1p(multiplier * away)
        rounds = int(np.clip(MOST_GROWTH / rate, 1, self.rounds)) if rate > 0 else self.rounds
        return replace(self, start=float(top + (high - top) * self.leaves * np.exp(-rounds * rate)), rounds=rounds)

    def settle(self, step: float, multiplier: float) -> PiecewiseTrial | None:
        """The trial from a fixed point of its rounds, which attracts all nearby models; None if none is found."""
        if step * self.smoothness > 1 or multiplier * (1 - (1 - step * self.smoothness) ** self.local_steps) > 1:
            return None  # a round is a monotone map only at such steps
        low, high = self.knots[0] - 10 * self.width, self.knots[-1] + 10 * self.width
        points = np.sort(np.concatenate([np.linspace(low, high, GRID), self.knots]))
        for _ in range(ZOOMS):
            moved = self._round(points, step, multiplier)[-1] - points
            cells = np.flatnonzero((moved[:-1] > 0) & (moved[1:] <= 0))
            if not len(cells):
                return None
            sizes = np.abs(self.objective.slope(points))
            low, high = points[[best := cells[sizes[cells].argmax()], best + 1]]
            points = np.linspace(low, high, GRID)
        found = replace(self, start=float(low), stationary=True)
        return found if found.is_trapped(step, multiplier) else None

    def is_trapped(self, step: float, multiplier: float) -> bool:
        """Whether all models of the run stay as near to the start as `NEAR`: a monotone round maps the ends inwards."""
        ends = self.start + NEAR * self.width * np.array([-1, 1])
        below, above = self._round(ends, step, multiplier)[-1] - ends
        deviation = step * multiplier * self.noise * (self.local_steps / self.clients) ** 0.5
        margin = self._model_errors(ends, step, multiplier).max() + MARGIN * self._growth(step) * deviation
        return bool(below > margin and above < -margin)

    @np.errstate(all="ignore")  # a run that diverges overflows
    def left_hand_side(self, measure: Measure, step: float, multiplier: float) -> float:
        """The exact left-hand side of its run, or less by how far models are known."""
        rounds, within = 1 if self.stationary else self.rounds, measure.over == "iterations"
        path = self._path(step, multiplier, within)
        if path is None and rounds > LONGEST:
            return 0.0  # too long to run one by one
        models, growth = path or (np.array([self.start]), 1.0)
        for _ in range(0 if path else rounds):
            models = np.append(models, self._round(models[-1:], step, multiplier, within)[1:, 0])
        off = growth * np.maximum.accumulate(self._model_errors(models, step, multiplier))
        off = off + (NEAR * self.width if self.stationary else 0.0)
        if measure.aggregate == "average iterate":
            return float(self._values(measure, average_of_iterates(models[:, None])[0], off.max(keepdims=True))[0])
        return aggregate_values(measure, self._values(measure, models, off))

    def _values(self, measure: Measure, models: np.ndarray, off: np.ndarray) -> np.ndarray:
        """What is measured at least at models that are less than `off` from these, (K,), up to rounding."""
        (least, minimizer), largest = self._least, self._largest_gradients(models)
        if measure.of.startswith("squared distance"):
            return np.maximum(np.abs(models - minimizer) - off - self._minimizer_error, 0) ** 2
        slopes = np.abs(self.objective.slope(models))
        if measure.of.startswith("function gap"):
            slack = off * slopes + self.smoothness * off**2 + self._value_errors(models)
            return np.maximum(self.objective.value(models) - least - slack, 0)
        return np.maximum(slopes - self.smoothness * off - ROUNDING * largest, 0) ** 2


def draw_noisy(of: PiecewiseClass, rng: np.random.Generator) -> PiecewiseTrial:
    """A random instance with noise, which starts at a fixed point of a round."""
    return draw_piecewise(of, rng, stationary=True, noisy=True)


def draw_drifting(of: PiecewiseClass, rng: np.random.Generator) -> PiecewiseTrial:
    """A random instance without noise, which starts at a fixed point of a round, so that drift is measured."""
    return draw_piecewise(of, rng, stationary=True)


def draw_piecewise(
    of: PiecewiseClass, rng: np.random.Generator, stationary: bool = False, noisy: bool = False
) -> PiecewiseTrial:
    """A random instance; if `stationary` it starts at a fixed point of a round of several local steps."""
    many = noisy or bool(rng.random() < 0.5)
    N = 1 if of.same or (noisy and rng.random() < 0.7) else int(rng.choice([1, 2, 2, 3, 4]))
    m, width, lowest = int(rng.choice([1, 2, 2, 3, 4])), float(10 ** rng.uniform(-1, 1)), _lowest(of, rng)
    shape = (N, m + 1)
    curvatures = rng.choice([lowest, max(lowest, 0.0), 1.0, 1.0], shape)
    if rng.random() < (0.8 if noisy else 0.3):  # where one of two is 0 or both are equal, noise moves no fixed point
        curvatures = rng.uniform(lowest, 1, shape)
    flat = of.bounded or rng.random() < 0.6
    for side in (0, -1):
        curvatures[:, side] = max(lowest, 0.0) if flat else rng.choice([max(lowest, 0.0), 1.0])
    knots = np.sort(width * rng.standard_normal(m))
    slopes = width * rng.standard_normal(N) * float(rng.choice([0.3, 1, 3]))
    if rng.random() < (0.8 if noisy else 0.5):  # a minimizer at a knot, where noise and drift do not average out
        at_knots = PiecewiseQuadratic(knots, curvatures, slopes).at_knots
        slopes = slopes - at_knots.mean(0)[rng.integers(m)]
    local_steps = int(rng.choice(LOCAL_STEPS[stationary:])) if of.local else 1
    if of.local and stationary and not noisy and rng.random() < 0.5:
        local_steps = min(int(rng.choice(MANY_STEPS)), of.most)
    return _bounded_below(
        PiecewiseTrial(
            knots,
            curvatures,
            slopes,
            float(rng.standard_normal() * width * rng.choice([0.3, 1, 3, 10])),
            float(width * 10 ** rng.uniform(-1, 1)) if noisy else 0.0,
            local_steps,
            int(rng.choice(STATIONARY_ROUNDS if stationary else ROUNDS)),
            rng.choice([1, 1, 0.5, 0.1], 3),
            float(10 ** rng.uniform(-1, 1.5)),
            stationary,
            many,
            int(rng.integers(N)) if of.absent else 0,
        ),
        float(rng.random()),
    )


def _lowest(of: PiecewiseClass, rng: np.random.Generator) -> float:
    """The least curvature of an instance."""
    return {"non-convex": -1.0, "convex": 0.0, "strongly-convex": float(10 ** rng.uniform(-2, -0.3))}[of.least]


def draw_slow(of: PiecewiseClass, rng: np.random.Generator) -> PiecewiseTrial:
    """A run of many rounds on one function, which ends on a long slope, or leaves a maximum slowly."""
    local_steps, rounds = int(rng.choice(LOCAL_STEPS)) if of.local else 1, int(rng.choice(SLOW_ROUNDS))
    outer, shares = 0.0 if of.bounded else 1.0, rng.choice([1, 1, 0.5, 0.1], 3)
    start, leaves = 0.0, 0.0
    if of.least == "non-convex" and rng.random() < 0.5:  # f' is 0 at a maximum, and -1 where it is the steepest, at 1
        knots, curvatures, slope = np.array([-3.0, -1.0, 1.0, 3.0]), np.array([outer, 1.0, -1.0, 1.0, outer]), -1.0
        leaves = float(rng.uniform(0.7, 1.4))
    else:  # the slope ends near the minimizer, or goes on
        knots, curvatures = np.array([0.0, 2.0]), np.array([max(_lowest(of, rng), 0.0), 1.0, outer])
        slope = -float(10 ** rng.uniform(-2, 0))
        start = slope * rounds * local_steps * 10 ** rng.uniform(-2, 0.5)
    return PiecewiseTrial(
        knots,
        curvatures[None],
        np.array([slope]),
        start,
        0.0,
        local_steps,
        rounds,
        shares,
        float(10 ** rng.uniform(-1, 0)),
        leaves=leaves,
    )


def _bounded_below(trial: PiecewiseTrial, share: float) -> PiecewiseTrial:
    """A trial whose objective is bounded below: with gradients of either sign where it is flat far away."""
    slopes, curvatures = trial.slopes, trial.curvatures
    rise = float(trial.objective.at_knots[-1]) - float(slopes.mean())
    outer = curvatures[0, [0, -1]]
    if not outer.any() and rise <= 0:
        curvatures = np.concatenate([curvatures[:, :-1], np.ones((len(slopes), 1))], axis=1)
    elif not outer.any():
        slopes = slopes - slopes.mean() - share * rise
    tiny = ROUNDING * float(np.abs(slopes).max())
    if curvatures[0, 0] == 0 and slopes.mean() > 0:
        slopes = slopes - slopes.mean() - tiny
    trial = replace(trial, slopes=slopes, curvatures=curvatures)
    last = float(trial.objective.at_knots[-1])
    return trial if curvatures[0, -1] or last >= 0 else replace(trial, slopes=slopes - last + tiny)


def piecewise_nearby(trial: PiecewiseTrial, of: PiecewiseClass, rng: np.random.Generator) -> PiecewiseTrial:
    """A trial with other numbers near these, of the same shape."""
    size = 10 ** rng.uniform(-2, 0)
    lowest = max(float(trial.curvatures.min()), {"non-convex": -1.0, "convex": 0.0, "strongly-convex": 1e-3}[of.least])
    curvatures = np.clip(trial.curvatures + size * rng.standard_normal(trial.curvatures.shape), lowest, 1)
    curvatures[:, [0, -1]] = trial.curvatures[:, [0, -1]]
    if rng.random() < 0.5:
        curvatures = trial.curvatures
    longest = max(STATIONARY_ROUNDS) if trial.stationary else max(LONGEST, trial.rounds)
    moved = PiecewiseTrial(
        np.sort(trial.knots + size * trial.width * rng.standard_normal(trial.knots.shape)),
        curvatures,
        trial.slopes + size * np.abs(trial.each.at_knots).max() * rng.standard_normal(trial.slopes.shape),
        trial.start * float(np.exp(size * rng.standard_normal())),
        trial.noise * float(np.exp(size * rng.standard_normal())),
        trial.local_steps,
        int(np.clip(round(trial.rounds * np.exp(size * rng.standard_normal())), 1, longest)),
        np.clip(trial.steps * np.exp(size * rng.standard_normal(3)), 1e-3, 1),
        trial.uncapped * float(np.exp(size * rng.standard_normal())),
        trial.stationary,
        trial.many,
        trial.absent,
        trial.leaves * float(np.exp(0.1 * rng.standard_normal())),
    )
    return _bounded_below(moved, float(rng.random()))
