r"""The known extremal runs of gradient descent, in closed form: one client, no noise, a quadratic or a Huber function.

f has its minimum at 0, curvature L left of it and $a\le L$ right of it; beyond the slope g it is linear, where a claim
needs that. All measured points of a run are in the quadratic part right of 0, or all in the linear part. With
$k=1-\gamma a$, a window of P rounds of I local steps multiplies x by $w=1-\eta\omega(1-k^{IP})$ in the quadratic part,
and subtracts $\eta\omega\gamma IPg$ in the linear part: a run of any length costs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import ClassVar, NamedTuple, Self

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.ranges import FLAGS, INF, Range, Ranges, counts, nonnegative, positive
from fedbounds.empirical.falsification.instances.readable import sides_of_form
from fedbounds.empirical.falsification.instances.sides import Sides

ERROR = 1e-12  # of the left side, relative
KEPT = 40  # of the best of a grid
LONGEST = 1e6  # rounds
SMALLEST, MOST = 1e-8, 16.0  # step sizes, in units of 1/L
HALVINGS = 48
TURNS = 40  # until the steps that a form sets and the straight part that they need agree: each halves what is off
FEW = 12  # the same where a hundredth does not matter


def geometric(log: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """The sum of exp(j log) over j < terms, for log <= 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.expm1(terms * log) / np.expm1(log)
    return np.where(terms == 0, 0.0, np.where(log == 0, terms, found))


@dataclass(frozen=True, eq=False)
class ExtremalRuns(Population):
    """B runs, each with its own length."""

    ranges: ClassVar[Ranges] = {
        "smoothness": positive(),
        "curvature": positive(),
        "slope": positive(),
        "straight": Range(FLAGS),
        "reach": nonnegative(),
        "gamma": positive(),
        "eta": positive(),
        "weight": positive(),
        "local_steps": counts(most=INF),
        "interval": counts(most=INF),
        "rounds": counts(most=INF),
        "r": positive(),
        "s": positive(),
    }

    smoothness: np.ndarray  # smoothness, curvature: L and $a\le L$, (B,)
    curvature: np.ndarray
    slope: np.ndarray  # the gradient's length at the start, (B,)
    straight: np.ndarray  # 1 for the straight part, 0 for the quadratic one, (B,)
    reach: np.ndarray  # how far the start is from the quadratic part, in units of the slope; 0 within it, (B,)
    gamma: np.ndarray  # gamma, eta: step sizes; eta multiplies what a window has moved, (B,)
    eta: np.ndarray
    weight: np.ndarray  # the client's aggregation weight $\omega$, (B,)
    local_steps: np.ndarray  # local_steps, interval, rounds: I, P and T, (B,)
    interval: np.ndarray
    rounds: np.ndarray
    r: np.ndarray  # r, s: the symbols that a form leaves free, (B,)
    s: np.ndarray

    def rules(self) -> dict[str, np.ndarray]:
        """Beyond the ranges."""
        with np.errstate(all="ignore"):
            short = (self.gamma * self.curvature <= 1) & (self.window_factor >= 0)
        return {
            "the curvature is at most the smoothness": self.curvature <= self.smoothness,
            "no step of the quadratic part goes beyond the minimizer": short | (self.straight == 1),
            "every counted point is in its part": np.where(self.straight == 1, self.fits(), self.reach == 0),
        }

    @property
    def _log(self) -> np.ndarray:
        """log k."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log1p(-self.gamma * self.curvature)

    @property
    def window_factor(self) -> np.ndarray:
        """w, (B,)."""
        return 1 + self.eta * self.weight * np.expm1(self.local_steps * self.interval * self._log)

    @property
    def _log_window(self) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log1p(self.eta * self.weight * np.expm1(self.local_steps * self.interval * self._log))

    @property
    def windows(self) -> np.ndarray:
        """Complete windows, (B,)."""
        return np.floor(self.rounds / self.interval)

    def _by_part(self, straight: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
        return np.where(self.straight == 1, straight, quadratic)

    def travel(self, *, whole: bool = False) -> np.ndarray:
        """How far a straight run goes, in units of the slope, up to the last counted point, (B,)."""
        I, P, T, step = self.local_steps, self.interval, self.rounds, self.eta * self.weight * self.gamma

        def start(t: np.ndarray) -> np.ndarray:
            window = np.floor(t / P)
            return step * I * P * window + self.gamma * I * (t - window * P)

        last = T if whole else T - 1
        ends = np.maximum(last - 1, 0), np.maximum(P * np.floor(last / P) - 1, 0)  # in this window and that before
        inside = [np.where(last > 0, start(t) + (I - 1) * self.gamma, 0.0) for t in ends]
        return np.maximum(start(last), np.maximum(*inside))

    def fits(self, *, whole: bool = False) -> np.ndarray:
        """Whether a straight run stays in the straight part, (B,)."""
        return self.travel(whole=whole) <= self.reach * (1 + ERROR)

    def fit_reach(self, *, whole: bool = False) -> Self:
        """The runs with the shortest straight part in which they stay."""
        return replace(self, reach=self._by_part(self.travel(whole=whole), np.zeros_like(self.reach)))

    @property
    def gap(self) -> np.ndarray:
        """f(x_0) - f*, (B,)."""
        return self.slope**2 * (1 / (2 * self.curvature) + self.reach)

    def decrease(self) -> np.ndarray:
        """f(x_0) - f(x_T) where T is a number of complete windows, (B,)."""
        log, moved = self._log_window, self.eta * self.weight * self.gamma * self.local_steps * self.rounds
        quadratic = -np.expm1(2 * self.windows * log) / (2 * self.curvature)
        return self.slope**2 * self._by_part(moved, quadratic)

    def least_gradient(self) -> np.ndarray:
        """The least squared gradient norm at the starts of the rounds t < T, (B,)."""
        I, P, K = self.local_steps, self.interval, self.windows
        rest = self.rounds - K * P

        def log(windows: np.ndarray, rounds: np.ndarray) -> np.ndarray:  # 0 times -inf is 0
            inside = np.where(rounds > 0, rounds * I, 0) * np.where(rounds > 0, self._log, 0)
            return np.where(windows > 0, windows, 0) * np.where(windows > 0, self._log_window, 0) + inside

        complete = np.where(K > 0, log(K - 1, P - 1), 0)
        parts = np.where(rest > 0, log(K, rest - 1), 0)
        return self.slope**2 * self._by_part(np.ones_like(self.slope), np.exp(2 * np.minimum(complete, parts)))

    def mean_gradient(self) -> np.ndarray:
        """The mean squared gradient norm at the starts of the rounds t < T, for P = 1, (B,)."""
        quadratic = geometric(2 * self._log_window, self.rounds) / self.rounds
        return self.slope**2 * self._by_part(np.ones_like(self.slope), quadratic)

    def mean_gradient_inside(self, iterations: np.ndarray) -> np.ndarray:
        """The mean squared gradient norm at so many first local steps, for eta = omega = 1, (B,)."""
        return self.slope**2 * self._by_part(
            np.ones_like(self.slope), geometric(2 * self._log, iterations) / iterations
        )

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other curvature, slope, step sizes, weight, lengths and free symbols."""
        gamma, both = perturb(self.gamma, rng), perturb(self.gamma * self.eta, rng)
        lengths = {
            name: np.clip(np.rint(perturb(getattr(self, name), rng)), 1, LONGEST)
            for name in ("local_steps", "interval", "rounds")
        }
        moved = replace(
            self,
            curvature=np.minimum(perturb(self.curvature, rng), self.smoothness),
            slope=perturb(self.slope, rng),
            gamma=gamma,
            eta=np.where(self.eta == 1, 1.0, both / gamma),
            weight=np.where(self.weight == 1, 1.0, perturb(self.weight, rng)),
            **self.neighbors(rng, r=perturb, s=perturb),
            **{name: np.where(getattr(self, name) == 1, 1, there) for name, there in lengths.items()},
        )
        shortest = self.reach <= self.travel() * (1 + 1e-9)
        return replace(moved, reach=np.where(shortest, moved.fit_reach().reach, perturb(self.reach, rng)))


class MeasuredRuns(NamedTuple):
    """A left-hand side and the symbols, each (B, 1) or (B, 1, N), and which assumptions hold."""

    left: np.ndarray
    values: Mapping[str, np.ndarray]
    met: Mapping[str, np.ndarray | bool]


# --- the runs of a form, over the constants that it admits -----------------------------------------------------------


def make_runs(**values: np.ndarray) -> ExtremalRuns:
    """Runs with these values, and 1 for the others; the step sizes are the smallest."""
    size = len(next(iter(values.values())))
    others = dict.fromkeys((f.name for f in fields(ExtremalRuns)), 1.0)
    others |= {"gamma": SMALLEST, "straight": 0.0, "reach": 0.0}
    return ExtremalRuns(**{name: np.full(size, value) for name, value in others.items()} | values)


def scale_field(z: ExtremalRuns, field: str, shares: Sequence[float]) -> ExtremalRuns:
    """The runs with these shares of one of their numbers, share by share."""
    every = z.take(np.tile(np.arange(len(z)), len(shares)))
    return replace(every, **{field: getattr(every, field) * np.repeat(shares, len(z))})


def maximize_field(
    z: ExtremalRuns, covered: Callable[[ExtremalRuns], np.ndarray], field: str, most: float
) -> ExtremalRuns:
    """The runs with the largest number of a field that is covered, (B,); the smallest where none is."""
    low, high = np.full(len(z), np.log(SMALLEST)), np.full(len(z), np.log(most))
    low = np.where(covered(replace(z, **{field: np.exp(high)})), high, low)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        good = covered(replace(z, **{field: np.exp(middle)}))
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return replace(z, **{field: np.exp(low)})


class Family(NamedTuple):
    """How the extremal runs become the two sides of a claim."""

    measure: Callable[[Claim, ExtremalRuns], MeasuredRuns]  # of the claim's result on the runs
    steps: Mapping[str, str]  # the symbols of the step sizes, by field
    vectors: frozenset[str] = frozenset()  # symbols that are vectors over clients
    # those that are tried of other fields than the step sizes, beside the common ones
    values: Mapping[str, Sequence[float]] = {}
    given: frozenset[str] = frozenset()  # symbols by which a form only names the steps that it is given
    whole: bool = False  # whether the steps of the last round, and where it ends, count too
    beyond: float = 0.0  # how much farther the straight part must reach, in units of the slope over L

    def sides(self, claim: Claim, z: ExtremalRuns) -> Sides:
        """Both sides of a claim on extremal runs, at the step sizes that the form sets."""
        subject = claim.subject
        assert isinstance(subject, ResultForm)
        with np.errstate(all="ignore"):
            z, legal = self.with_prescribed_steps(claim, z)
            left, values, met = self.measure(claim, z)
            fits = z.fits(whole=self.whole) | (z.straight == 0)
            legal = np.logical_and.reduce([legal, fits, *z.rules().values()])
            return sides_of_form(claim, left, values, met, legal[:, None], (0.0, ERROR), self.vectors, z.describe)

    def with_prescribed_steps(self, claim: Claim, z: ExtremalRuns) -> tuple[ExtremalRuns, np.ndarray]:
        """The runs at the step sizes that the form sets, if it does, and where these are step sizes."""
        assert isinstance(claim.subject, ResultForm)
        form, legal = claim.subject.form, np.ones(len(z), dtype=bool)
        if self.sets_steps(claim):
            parts = compile_form(form, self.vectors).parts(self.measure(claim, z).values)
            found = dict(zip(form.prescribes, parts.prescribed, strict=True))
            for field, symbol in self.steps.items():
                here = np.broadcast_to(found.get(symbol, np.nan), (len(z), 1))[:, 0]  # it may set other symbols
                legal = legal & np.isfinite(here) & (here > 0)
                z = replace(z, **{field: np.where(legal, here, SMALLEST)})
        return z, legal

    def fit_reach(self, claim: Claim, z: ExtremalRuns, turns: int = TURNS) -> ExtremalRuns:
        """The runs at the step sizes that the form sets, if it does, with the shortest straight part that they need."""
        z = replace(z, reach=z.straight / SMALLEST)
        with np.errstate(all="ignore"):
            for _ in range(turns if self.sets_steps(claim) else 1):
                z = self.with_prescribed_steps(claim, z)[0].fit_reach(whole=self.whole)
                z = replace(z, reach=z.reach + z.straight * self.beyond / z.smoothness)
            return z

    def sets_steps(self, claim: Claim) -> bool:
        """Whether the form sets the step sizes."""
        assert isinstance(claim.subject, ResultForm)
        prescribed = claim.subject.form.prescribes.values()
        return bool(prescribed) and not {s.name for e in prescribed for s in e.free_symbols} & self.given

    def grid(self, claim: Claim, *, small: bool = False) -> ExtremalRuns:
        """The runs of a form over the constants that it admits, also where its conditions hold with equality."""
        values: dict[str, Sequence[float]] = {
            "rounds": (1, 2, 8, 1e4) if small else (1, 2, 3, 4, 6, 8, 16, 60, 400, 1e4, LONGEST),
            "local_steps": (1, 8) if small else (1, 2, 8),
            "interval": (1, 2) if small else (1, 2, 8),
            "curvature": (1, 0.1) if small else (1, 0.5, 0.1, 1e-2),
            "straight": (0, 1),
        } | dict(self.values)
        used = {s.name for s in form_symbols(claim)}
        values = {name: found if name in used or name not in ("r", "s") else (1,) for name, found in values.items()}
        columns = np.array(list(product(*values.values())), dtype=float).T
        z = make_runs(**dict(zip(values, columns, strict=True)))

        def covered(y: ExtremalRuns) -> np.ndarray:
            return np.broadcast_to(self.sides(claim, self.fit_reach(claim, y, FEW)).covered, (len(y), 1))[:, 0]

        shares = (1, 1e-2, 1e-5) if small else (1, 0.5, 0.1, 1e-2, 1e-3, 1e-5)
        moves = (1, 0.1, 1e-3) if small else (1, 0.9, 0.7, 0.5, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
        if self.sets_steps(claim):
            if "F" in {s.name for s in form_symbols(claim, terms=False)}:
                z = scale_field(maximize_field(z, covered, "slope", 1 / SMALLEST), "slope", (1, 0.5, 0.1, 1e-3))
            return z
        if "r" in self.steps:
            z = maximize_field(z, covered, "r", MOST)
        if "eta" not in self.steps:
            return scale_field(maximize_field(z, covered, "gamma", MOST), "gamma", moves)
        z = maximize_field(z, lambda y: covered(replace(y, eta=SMALLEST / y.gamma)), "gamma", MOST)
        z = scale_field(z, "gamma", shares)
        return scale_field(maximize_field(z, covered, "eta", MOST / SMALLEST), "eta", moves)

    def best(self, claim: Claim, *, small: bool = False) -> tuple[ExtremalRuns, int]:
        """The runs of the grid with the largest ratios, the largest first, and how many runs there are in the grid."""
        z = self.fit_reach(claim, self.grid(claim, small=small))
        order = np.argsort(-self.sides(claim, z).ratios().max(axis=1), kind="stable")
        return z.take(order[:KEPT]), len(z)


def form_symbols(claim: Claim, *, terms: bool = True) -> set[sp.Symbol]:
    """The symbols of a form's conditions, and of its terms."""
    assert isinstance(claim.subject, ResultForm)
    form = claim.subject.form
    sides = [side for c in form.conditions for side in (c.left, c.right)]
    return {s for e in (*sides, *([form.bound] if terms else ())) for s in e.free_symbols}
