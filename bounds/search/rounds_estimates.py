"""Estimates of the rounds to a target for many settings at once, to choose between them before one is searched.

For every setting, step sizes are tried on grids in logarithms that close in on the best, and rounds by secant steps on
logarithms. An estimate is a number of rounds that reaches the target; that no smaller one does is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledForm
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate_form
from fedbounds.bounds.evaluation.expression_tree import names_in
from fedbounds.bounds.evaluation.program import ROUNDING
from fedbounds.bounds.search.step_sizes import FAR
from fedbounds.bounds.search.threshold import LARGEST_COUNT
from fedbounds.bounds.theory.symbols import Constant

CLOSE = 0.004  # relative width of the bracket in which the rounds are sought
START = 1024.0  # rounds tried first
FINE = 2e-3  # half the width of the last grid around a step size, in logarithms
NEAR = 0.5  # half the width of the first grid around a point that was best for other rounds
FIRST = {1: 257, 2: 41, 3: 17}  # points per axis of the first grid
AROUND = {1: 17, 2: 9, 3: 5}  # and of a grid around a point
SHRINK = 0.3  # of the width of a grid, where its best point is inside
TURNS, LEVELS = 60, 16  # most numbers of rounds that are tried, and most grids for one of them
STEEPEST, FLATTEST = 1.5, 0.2  # exponents of the rounds in the bound that a step may assume
PATIENCE = 4  # so many numbers of rounds are tried before the steps double
FACTOR = 1e4  # by which the rounds change at most in a step
AT_ONCE = 200_000  # evaluations in one array


@dataclass
class RoundsEstimates:
    """The question for many settings of the same constants.

    Attributes:
        form: whose bound.
        target: that it is to reach.
        counter: the symbol of the rounds.
        settings: for each one the constants, symbol to value; the same symbols in all.
        ranges: for each setting and step size the range, shape (settings, steps, 2); the steps are `steps`.
        units: for each setting the whole number that must divide the rounds, shape (settings,).
        prices: for each setting the cost of a round; shape (settings,).
        groups: for each setting a number; of the settings with the same one only the cheapest matters.
    """

    form: CompiledForm
    target: float
    counter: str
    settings: Sequence[Mapping[str, Constant]]
    steps: tuple[str, ...]
    ranges: np.ndarray
    units: np.ndarray
    prices: np.ndarray
    groups: np.ndarray
    evaluations: int = field(default=0, init=False)

    @cached_property
    def _constants(self) -> dict[str, Constant]:
        """The constants, those that differ as arrays of shape (settings, 1) or (settings, 1, clients)."""
        found = {}
        for name, first in self.settings[0].items():
            every = [setting[name].value for setting in self.settings]
            if all(value is first.value or np.array_equal(value, first.value) for value in every):
                found[name] = first
            else:
                found[name] = Constant(np.stack([np.asarray(v, dtype=float) for v in every])[:, None], first.source)
        return found

    def run(self) -> np.ndarray:
        """For every setting a number of rounds that reaches the target; inf where none was found; (settings,).

        Of a setting that costs more than another one of its group the number may be inf too.
        """
        many = len(self.settings)
        highest = np.floor(LARGEST_COUNT / self.units) * self.units
        fails, reaches = np.zeros(many), np.full(many, np.inf)  # the largest that does not, the smallest that does
        rounds = np.minimum(self._whole(np.full(many, START), np.arange(many)), highest)
        before = np.full((2, many), np.nan)  # the last logarithms of rounds, and of the bound over the target
        points = np.full((many, len(self.steps)), np.nan)
        open_ = np.arange(many)
        for turn in range(TURNS):
            value, points[open_] = self._minimize(open_, rounds[open_], points[open_])
            there = value <= self.target * (1 + ROUNDING)
            reaches[open_] = np.where(there, rounds[open_], reaches[open_])
            fails[open_] = np.where(there, fails[open_], rounds[open_])
            step = self._step(before, open_, np.log(rounds[open_]), np.log(value / self.target))
            step = np.where(np.isinf(reaches[open_]), step * 2.0 ** max(0, turn - PATIENCE), step)
            rounds[open_] = self._next(open_, rounds[open_] * np.exp(step), fails, reaches, highest)
            done = (reaches - fails <= self.units) | (reaches <= fails * (1 + CLOSE)) | (fails >= highest)
            open_ = np.flatnonzero(~done & (fails * self.prices <= self._least(reaches) * (1 + CLOSE)))
            if not len(open_):
                break
        return reaches

    def _least(self, reaches: np.ndarray) -> np.ndarray:
        """For every setting the least cost in its group so far, (settings,)."""
        least = np.full(int(self.groups.max()) + 1, np.inf)
        np.minimum.at(least, self.groups, reaches * self.prices)
        return least[self.groups]

    def _whole(self, rounds: np.ndarray, which: np.ndarray) -> np.ndarray:
        """The multiples of the units from there on."""
        return np.maximum(np.ceil(rounds / self.units[which] * (1 - ROUNDING)), 1) * self.units[which]

    def _step(self, before: np.ndarray, which: np.ndarray, at: np.ndarray, above: np.ndarray) -> np.ndarray:
        """How far in the logarithm of the rounds the bound seems to reach the target; updates what was before."""
        with np.errstate(all="ignore"):
            slope = -(above - before[1, which]) / (at - before[0, which])
        slope = np.clip(np.where(np.isfinite(slope), slope, 0.7), FLATTEST, STEEPEST)
        before[:, which] = at, above
        return np.clip(np.where(np.isfinite(above), above, np.log(10.0)) / slope, -np.log(FACTOR), np.log(FACTOR))

    def _next(
        self, which: np.ndarray, aim: np.ndarray, fails: np.ndarray, reaches: np.ndarray, highest: np.ndarray
    ) -> np.ndarray:
        """The rounds to try next: near the aim and inside the bracket, so that the bracket closes around it."""
        low, high = np.maximum(fails[which], 0.5), reaches[which]
        known = np.isfinite(high)
        nearer = np.where(known & (aim >= high * (1 - CLOSE)), high * (1 - 0.75 * CLOSE), aim)
        nearer = np.where(nearer <= low * (1 + CLOSE), low * (1 + 0.75 * CLOSE), nearer)
        wide = known & (fails[which] > 0) & (high > low * (1 + 4 * CLOSE)) & ((aim <= low) | (aim >= high))
        nearer = np.where(wide, np.sqrt(low * high), nearer)
        units = self.units[which]
        most = np.where(known, high - units, highest[which])
        return np.clip(self._whole(nearer, which), np.minimum(fails[which] + units, most), most)

    # --- The best step sizes at given rounds ------------------------------------------------------------------------

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The logarithms of the ends of the ranges, each (settings, steps)."""
        with np.errstate(divide="ignore"):
            low, high = np.log(self.ranges[..., 0]), np.log(self.ranges[..., 1])
        low = np.where(np.isfinite(low), low, -FAR)
        return low, np.where(np.isfinite(high), high, np.maximum(FAR, low + FAR))

    def _minimize(self, which: np.ndarray, rounds: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least values for these settings, (k,), and the step sizes there, as logarithms, (k, steps).

        The search begins at the points; where they are nan, at the best point of a coarse grid.
        """
        n, best, points = len(self.steps), np.full(len(which), np.inf), points.copy()
        if not n:
            return self._values(which, rounds, points[:, None])[:, 0], points
        able = np.flatnonzero(self._may_hold(which, rounds))
        width = np.full(len(which), NEAR)
        new = able[np.isnan(points[able]).any(axis=1)]
        if len(new):
            width[new] = self._first_points(which[new], rounds[new], points, new)
        able = able[~np.isnan(points[able]).any(axis=1)]
        low, high = (end[which] for end in self._ends)
        around = np.vstack([np.zeros(n), _cube(AROUND.get(n, 3), n)])
        for _ in range(LEVELS):
            if not len(able):
                break
            near = points[able, None] + width[able, None, None] * around
            near = np.clip(near, low[able, None], high[able, None])
            values = self._values(which[able], rounds[able], near)
            chosen = values.argmin(axis=1)
            at = np.arange(len(able)), chosen
            best[able], points[able] = values[at], near[at]
            inside = (np.abs(around[chosen]) < 1) | (near[at] <= low[able]) | (near[at] >= high[able])
            width[able] *= np.where(inside.all(axis=1), SHRINK, 1.0)
            able = able[(width[able] > FINE) & np.isfinite(best[able])]
        points[np.isinf(best)] = np.nan
        return best, points

    def _first_points(self, which: np.ndarray, rounds: np.ndarray, points: np.ndarray, places: np.ndarray) -> float:
        """Write the best points of a coarse grid to these places, if there are any; how far around them to look."""
        low, high = self._ends
        size = FIRST.get(len(self.steps), 9)
        grid = (_cube(size, len(self.steps)) + 1) / 2
        for start in range(0, len(which), most := max(1, AT_ONCE // len(grid))):
            few = slice(start, start + most)
            there = low[which[few], None] + grid * (high - low)[which[few], None]
            values = self._values(which[few], rounds[few], there)
            chosen = np.arange(len(values)), values.argmin(axis=1)
            points[places[few]] = np.where(np.isfinite(values[chosen])[:, None], there[chosen], np.nan)
        return float((1.5 * (high - low) / (size - 1)).max())

    @cached_property
    def _settled(self) -> list[int]:
        """The conditions that no step size enters, by their places."""
        moving = {*self.steps}
        while more := {r.name for r in self.form.derived if moving.intersection(r.inputs)} - moving:
            moving |= more
        return [i for i, c in enumerate(self.form.relations) if not names_in(c.left, c.right) & moving]

    def _may_hold(self, which: np.ndarray, rounds: np.ndarray) -> np.ndarray:
        """Whether the conditions hold that no step size enters, (k,)."""
        if not self._settled:
            return np.ones(len(which), dtype=bool)
        found = self._evaluate(which, rounds, np.zeros((len(which), 1, len(self.steps))))
        if found is None:
            return np.ones(len(which), dtype=bool)
        holds = [np.broadcast_to(found.conditions[i].holds, (len(which), 1))[:, 0] for i in self._settled]
        return np.logical_and.reduce(holds)

    def _values(self, which: np.ndarray, rounds: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The bounds at points (k, m, steps) for k settings, inf where a condition fails; (k, m)."""
        found = self._evaluate(which, rounds, points)
        if found is None:
            if len(which) == 1:
                return np.full(points.shape[:2], np.inf)
            each = [self._values(which[i : i + 1], rounds[i : i + 1], points[i : i + 1]) for i in range(len(which))]
            return np.concatenate(each)
        values = np.where(found.valid & ~np.isnan(found.value), found.value, np.inf)
        return np.broadcast_to(values, points.shape[:2])

    def _evaluate(self, which: np.ndarray, rounds: np.ndarray, points: np.ndarray) -> Evaluation | None:
        """The form at these points; None where the constants of some setting are refused."""
        self.evaluations += 1
        known = {
            name: Constant(np.asarray(c.value)[which], c.source) if self._is_listed(name, c) else c
            for name, c in self._constants.items()
        }
        known[self.counter] = Constant(rounds[:, None], "given")
        known |= {name: Constant(np.exp(points[..., i]), "given") for i, name in enumerate(self.steps)}
        try:
            return evaluate_form(self.form, known, strict=False)
        except FedboundsError:
            return None

    def _is_listed(self, name: str, constant: Constant) -> bool:
        return np.ndim(constant.value) > len(self.form.result.notation[name].shape)


def _cube(size: int, dimensions: int) -> np.ndarray:
    """The points of a grid on [-1, 1]^dimensions, shape (size^dimensions, dimensions)."""
    return np.array(list(product(np.linspace(-1, 1, size), repeat=dimensions)))
