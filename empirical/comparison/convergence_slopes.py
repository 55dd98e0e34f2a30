r"""Convergence rates in the number of rounds T: of a family of runs (`confront_family`), and of its bound.

Slopes are ordinary least squares of logarithms, with a jackknife confidence interval over seeds. The bound beyond the
runs is evaluated with the constants of the largest T.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from fedbounds.bounds.asymptotics.orders import exponent
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.theory.result import Form
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.comparison.compare_run import RunComparison

CONFIDENCE = 0.95
FAR = 10**12  # the largest T at which a bound is evaluated; its largest term there is the leading one
NEAR = 0.05  # of the predicted exponent: the bound's slope over a doubling of T, where its regime is reached
EXACT = 0.01  # of the predicted exponent: an exact slope, which reaches it only in the limit
GRID = 400  # values of T between which a change is looked for
TIE = 1e-9  # relative difference of terms that are equal, as a prescribed step size often makes two of them


@dataclass(frozen=True)
class Slope:
    """A fitted exponent, with a confidence interval where something was sampled (else low = high = the slope)."""

    value: float
    low: float
    high: float
    seeds: int = 0

    def __str__(self) -> str:
        return f"{self.value:z.3f}" + (f" [{self.low:z.3f}, {self.high:z.3f}]" if self.seeds else "")

    def at_most(self, exponent: float) -> bool | None:
        """Whether a fall is at least as fast as T^exponent: True or False if the whole interval says so."""
        slack = 0.0 if self.seeds else EXACT
        return True if self.high <= exponent + slack else False if self.low > exponent + slack else None


def least_squares(T: np.ndarray, values: np.ndarray) -> float:
    """The slope of log values on log T, by ordinary least squares."""
    x = np.log(np.asarray(T, dtype=float))
    x = x - x.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(x @ np.log(values) / (x @ x))


def fit_slope(T: np.ndarray, values: np.ndarray, samples: np.ndarray | None = None) -> Slope:
    r"""The exponent a of $cT^a$ by ordinary least squares of logarithms.

    The interval is the jackknife's: a seed is left out at every T at once, so that runs of one seed may be dependent;
    the pseudo-values have Student's distribution with S - 1 degrees of freedom.
    """
    if len(np.unique(T)) < 2:
        raise FedboundsError("a slope needs at least two numbers of rounds")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise FedboundsError("a slope needs positive, finite values: a run diverged, or the measure is 0")
    slope = least_squares(T, values)
    if samples is None:
        return Slope(slope, slope, slope)
    seeds = len(samples)
    without = np.array([least_squares(T, np.delete(samples, k, axis=0).mean(axis=0)) for k in range(seeds)])
    error = float(np.sqrt((seeds - 1) * ((without - without.mean()) ** 2).mean()))
    width = float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2)) * error
    return Slope(slope, slope - width, slope + width, seeds)


@dataclass(frozen=True)
class Change:
    """Where another term becomes the largest: the least such T, the term before and the term from there on."""

    rounds: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"from T = {number(self.rounds)} on the largest term is {self.after}, before {self.before}"


def first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least T in (low, high] at which something holds that does not at `low` and does at `high`, by bisection."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def grid(low: int, high: int) -> np.ndarray:
    """Whole numbers from low to high, evenly spaced in the logarithm."""
    return np.unique(np.geomspace(low, high, GRID).round().astype(np.int64))


def changes(terms: Callable[[np.ndarray], Mapping[str, np.ndarray]], low: int, high: int = FAR) -> tuple[Change, ...]:
    """Every T between low and high at which another term becomes the largest, short intervals left out."""

    def largest(T: np.ndarray) -> list[str]:
        found = terms(T.astype(float))
        stack = np.stack([np.broadcast_to(values, T.shape) for values in found.values()])
        winner = np.argmax(stack >= (1 - TIE) * stack.max(axis=0), axis=0)
        names = [*found]
        return [names[k] for k in winner]

    T = grid(low, high)
    names = largest(T)
    found = []
    for k in range(1, len(T)):
        before, after = names[k - 1], names[k]
        if before != after:
            rounds = first(lambda t, old=before: largest(np.array([t]))[0] != old, int(T[k - 1]), int(T[k]))
            found.append(Change(rounds, before, after))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Rate:
    """The convergence rate of a family of runs, one per T, and of its bound.

    Args:
        family: from `confront_family`.
        since: the least T of the fits; the first by default.
        by: the form whose leading term is the prediction: the paper's own constants by default.
        start: the measure before the first round, if it is the same for all T: a bound above it is void.
    """

    family: RunComparison
    since: int = 0
    by: str = "explicit"
    start: float | None = None

    @cached_property
    def fitted(self) -> np.ndarray:
        """Which T the slopes are fitted to, (K,)."""
        return self.family.rounds >= self.since

    @cached_property
    def measured(self) -> Slope:
        """The slope of what was measured."""
        c, used = self.family, self.fitted
        samples = None if c.samples is None or not c.seeds else c.samples[:, used]
        return fit_slope(c.rounds[used], c.measured[used], samples)

    @cached_property
    def promised(self) -> float:
        """The slope of the bound, fitted to the same T."""
        return least_squares(self.family.rounds[self.fitted], self.family.bound[self.fitted])

    @cached_property
    def as_fast(self) -> bool | None:
        """Whether the measure falls at least as fast as the predicted power of T; None if undecided.

        It is undecided if the last local slope is slower, or if the measure falls slower while the bound is void.
        """
        c, found = self.family, self.measured.at_most(self.predicted)
        slower = least_squares(c.rounds[-2:], c.measured[-2:]) > self.predicted + EXACT
        if found:
            return None if slower else True
        void = self.start is not None and not c.bound[-1] < self.start
        return None if void else found

    @cached_property
    def at_any_rounds(self) -> Callable[[np.ndarray], Evaluation]:
        """The form at other numbers of rounds, with the constants of the largest T (those that follow from T anew)."""
        c, form = self.family, self.family.form
        own, name = _own_constants(c, form), _rounds(c)

        def at(T: np.ndarray) -> Evaluation:
            return evaluate(c.result, {**own, name: T}, form=form.name)

        return at

    def bound(self, T: np.ndarray) -> np.ndarray:
        """The bound at other numbers of rounds."""
        return np.broadcast_to(self.at_any_rounds(T.astype(float)).value, T.shape)

    def terms(self, T: np.ndarray) -> Mapping[str, np.ndarray]:
        """Its terms there."""
        return self.at_any_rounds(T.astype(float)).terms

    def doubling(self, T: np.ndarray) -> np.ndarray:
        """The bound's own slope from T to 2T."""
        return np.log2(self.bound(2 * T) / self.bound(T))

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Where another term becomes the largest."""
        return changes(self.terms, int(self.family.rounds[0]))

    @cached_property
    def leading(self) -> str:
        """The term of the paper's own bound (the form `by`) that is the largest in the end."""
        c, form = self.family, self.family.result.form(self.by)
        found = evaluate(c.result, {**_own_constants(c, form), _rounds(c): FAR}, form=form.name).terms
        return max(found, key=lambda name: float(found[name]))

    @cached_property
    def predicted(self) -> float:
        """The power of T in that term, at these constants."""
        c, form = self.family, self.family.result.form(self.by)
        term = next(t for t in form.terms if t.name == self.leading)
        rounds = next(s for s in form.symbols if str(s) == _rounds(c))
        power = exponent(term.expression, rounds)
        return 0.0 if power is None else float(power)

    @cached_property
    def regime(self) -> int | None:
        """The T from which on the bound falls like the predicted power, to two decimals' 0.05; None if by no T."""
        low = int(self.family.rounds[0])

        def near(T: np.ndarray) -> np.ndarray:
            return np.abs(self.doubling(T) - self.predicted) <= NEAR

        return _from_then_on(near, low)

    @cached_property
    def covered(self) -> int | None:
        """The T from which on all conditions hold; None if by no T."""

        def valid(T: np.ndarray) -> np.ndarray:
            return np.broadcast_to(self.at_any_rounds(T.astype(float)).valid, T.shape)

        return _from_then_on(valid, int(self.family.rounds[0]))

    @cached_property
    def telling(self) -> int | None:
        """The T from which on the bound is below the measure before the first round; None if there is none."""
        start = np.inf if self.start is None else self.start
        return _from_then_on(lambda T: self.bound(T) < start, int(self.family.rounds[0]))

    @property
    def reached(self) -> bool:
        """Whether the runs go far enough for the bound to fall like the predicted power."""
        return self.regime is not None and self.regime <= self.family.rounds[-1]


def _from_then_on(holds: Callable[[np.ndarray], np.ndarray], low: int) -> int | None:
    """The T from which on something holds at all T of a grid, refined by bisection; None if not even at the end."""
    T = grid(low, FAR)
    fails = np.flatnonzero(~holds(T))
    if not fails.size:
        return low
    if fails[-1] == len(T) - 1:
        return None
    return first(lambda t: bool(holds(np.array([t]))[0]), int(T[fails[-1]]), int(T[fails[-1] + 1]))


def _rounds(c: RunComparison) -> str:
    """The paper's symbol for the number of rounds."""
    return next(name for name, quantity in c.result.notation.items() if quantity.concept == "rounds")


def _own_constants(c: RunComparison, form: Form) -> dict[str, Constant]:
    """The constants without the number of rounds, what the form sets, and what follows from the others."""
    rules = {rule.name: rule.inputs for rule in form.derived}
    kept = {name: k for name, k in c.constants.items() if name not in {*rules, *form.prescribes, _rounds(c)}}
    known = {*kept, *form.prescribes, _rounds(c)}
    while more := {name for name, inputs in rules.items() if name not in known and known.issuperset(inputs)}:
        known |= more
    return kept | {name: k for name, k in c.constants.items() if name not in known}


def number(value: float) -> str:
    """A number of rounds in words: 830, 52,000 or 3.1e+07."""
    return f"{value:,.0f}" if value < 1e6 else f"{value:.2g}"
