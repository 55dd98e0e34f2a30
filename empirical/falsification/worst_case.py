r"""Worst cases of methods by performance estimation.

Over all functions of a class and all starting points, the largest measure subject to an initial gap is a semidefinite
program in the Gram matrix of points and gradients (Drori and Teboulle 2014; Taylor, Hendrickx and Glineur 2017). A
deterministic method with fixed participation is written with PEPit and solved by Clarabel; only a clean *optimal*,
whose primal and dual values agree, counts. For one smooth function the value is attained. Where the mean of several is
bounded below, blocks are moved, or divergences are bounded at the points of the run alone, the constraints are
necessary but may be not sufficient: the value is then labelled an upper bound of the worst case.

With gradient noise, or with clients that are drawn, points are random, and the Gram matrix is that of
$\mathbb E\langle u,v\rangle$: what holds at any two points holds in expectation at random ones, and a vector e whose
mean given the past is zero has $\mathbb E\langle e,v\rangle=0$ with every v of the past (the second-moment relaxation).
Every run satisfies this, but what satisfies it need not be a run: the value is an upper bound of the worst case.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from inspect import signature
from io import StringIO
from typing import Any, Literal, TypeVar

import numpy as np
from cvxpy.error import SolverError
from PEPit import PEP, Expression, Function, Point
from PEPit.functions import SmoothFunction

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.inputs.checks import check_count, is_finite, quote
from fedbounds.bounds.theory.measures import Aggregate
from fedbounds.bounds.theory.registry import load, merge_tables

GapTo = Literal["infimum", "last"]
Measure = Literal["minimum", "average", "minimum to the last"]
_AGGREGATES: dict[Measure, Aggregate] = {"minimum": "minimum", "minimum to the last": "minimum", "average": "average"}
AGREE = 1e-6  # relative distance of the primal and the dual value of a clean optimum
# The solver's own scaling and longer steps now help and now hurt; a clean optimum of any of these is one.
ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"equilibrate_enable": False},
    {},
    {"equilibrate_enable": False, "max_step_fraction": 0.9},
    {"max_step_fraction": 0.9},
    {"static_regularization_constant": 1e-7},
    {"equilibrate_enable": False, "static_regularization_constant": 1e-7, "max_step_fraction": 0.95},
)


@dataclass(frozen=True)
class WorstCase:
    """The largest value of a left-hand side over a class of functions."""

    method: str  # what was run
    theorems: tuple[str, ...]  # the keys of results about it, whose left-hand sides are what is largest
    measure: Measure  # how that becomes one number: "minimum" or "average", or "minimum to the last"
    value: float  # the dual value of the program, at least the worst case up to the solver's accuracy
    primal: float  # the value at the Gram matrix that was found
    attained: bool  # whether some function attains it; else it is an upper bound of the worst case
    constants: Mapping[str, Any]  # those of the setting, by the names of the method's theorem
    random: bool = False  # whether there is noise or sampling, so that only second moments are constrained

    @property
    def kind(self) -> str:
        """What the value is: attained, or an upper bound, and of which kind."""
        relaxed = "upper bound (second-moment relaxation)" if self.random else "upper bound"
        return "attained" if self.attained else relaxed

    def ratio(self, key: str, form: str | None = None, **more: Any) -> float:
        """The worst case over a result's bound at the same constants.

        Above 1, with `attained`, it refutes the bound, if the gap is that of the theorem: with the gap to the last
        value, where a theorem has that to the infimum, there are more functions in the class.
        """
        result = load(key)
        chosen = result.form(form)
        if chosen.order_only:
            raise FedboundsError(f"{key} [{chosen.name}] hides constants in O(.), so there is no ratio to it")
        if result.paper != load(self.theorems[0]).paper:
            mine = ", ".join(self.theorems)
            raise FedboundsError(f"{key} is of another paper: this worst case is for {mine}")
        bounded = chosen.measure or result.measure
        own = [replace(load(theorem).measure, aggregate=_AGGREGATES[self.measure]) for theorem in self.theorems]
        if not any(replace(m, expectation=bounded.expectation, given=bounded.given).is_at_most(bounded) for m in own):
            raise FedboundsError(f"{key} [{chosen.name}] bounds the {bounded}; this worst case is of the {own[0]}")
        found = evaluate(result, {**self.constants, **more}, form=form)
        if not found.valid:
            failed = next(c.text for c in found.conditions if not c.holds)
            raise FedboundsError(f"{key} does not apply: {failed} fails")
        return self.value / float(found.value)


class Estimation:
    """A performance-estimation program of N functions, whose mean is f, in units in which L and the gap are 1."""

    def __init__(self, clients: int = 1) -> None:
        self.program = PEP()
        self.functions: list[Function] = [self.program.declare_function(SmoothFunction, L=1) for _ in range(clients)]
        self.start: Point = self.program.set_initial_point()
        self.gradients: list[Point] = []
        self._seen: list[tuple[Point, Expression]] = []
        self._unrelated: set[tuple[Point, Point]] = set()

    def objective(self, x: Point) -> tuple[Point, Expression]:
        """The gradient and the value of f, the mean of all functions, at a point."""
        each = dict(enumerate(f.oracle(x) for f in self.functions))
        shares = dict.fromkeys(each, 1 / len(each))
        here = (
            weighted_points({n: g for n, (g, _) in each.items()}, shares),
            weighted_points({n: v for n, (_, v) in each.items()}, shares),
        )
        self._seen.append(here)
        return here

    def record_gradient(self, x: Point) -> Point:
        """The gradient of f at the next model of the server, which the measure is over."""
        self.gradients.append(self.objective(x)[0])
        return self.gradients[-1]

    def at_most(self, smaller: Expression, larger: Expression | float) -> None:
        """A constraint."""
        self.program.add_constraint(smaller <= larger)

    def unrelated(self, random: Point, others: Iterable[Point]) -> None:
        r"""$\mathbb E\langle e,v\rangle=0$ of a random vector e and each v of these, which say nothing of it."""
        for other in others:
            if (random, other) not in self._unrelated:
                self._unrelated.add((random, other))
                self.program.add_constraint(random * other == 0)

    def noise(self, variance: Expression | float) -> Point:
        r"""A random vector e with mean zero given all that is there so far, and $\mathbb E\|e\|^2\le$ its variance."""
        past = list(Point.list_of_leaf_points)
        fresh = Point()
        self.unrelated(fresh, past)
        self.at_most(fresh**2, variance)
        return fresh

    def sampled(self, vectors: Mapping[int, Point], mean: np.ndarray, covariance: np.ndarray) -> Point:
        r"""$\sum_nq_nv_n$ with random weights that are independent of all that is there so far.

        It is $\sum_n\mathbb E[q_n]v_n+e$, where e has mean zero given the past and
        $\mathbb E\|e\|^2=\sum_{n,m}\mathrm{Cov}(q_n,q_m)\,\mathbb E\langle v_n,v_m\rangle$, which the relaxation knows.
        """
        whole = weighted_points(vectors, dict(enumerate(mean.tolist())))
        if not covariance.any():
            return whole
        inner = {(n, m): v * u for n, v in vectors.items() for m, u in vectors.items()}
        return whole + self.noise(weighted_points(inner, {pair: float(covariance[pair]) for pair in inner}))

    def starts(self, to: GapTo, gap: float = 1.0) -> None:
        """f at the first point seen exceeds the infimum, or f at the last one, by at most the gap."""
        first, last = self._seen[0][1], self._seen[-1][1]
        if to == "last":
            self.at_most(first - last, gap)
        elif to == "infimum":
            infimum = Expression()
            self.at_most(first - infimum, gap)
            alone = self.functions[0].list_of_points if len(self.functions) == 1 else []
            for gradient, value in [(g, v) for _, g, v in alone] or self._seen:
                self.at_most(infimum, value - gradient**2 / 2)
        else:
            raise unknown_name("point to which the gap is", str(to), ["infimum", "last"])

    def worst_gradients(self, measure: Measure, to: GapTo, unit: float, gap: float = 1.0) -> tuple[float, float]:
        """The largest measure of the recorded gradients in this unit, by its dual and its primal program."""
        self.starts(to, gap)
        dual, primal = self.worst(squared_gradients(self.gradients, measure))
        return unit * dual, unit * primal

    def worst(self, measures: Sequence[Expression]) -> tuple[float, float]:
        """The largest least of these, by its dual and its primal program."""
        for measure in measures:
            self.program.set_performance_metric(measure)
        status = "nothing"
        for setting in ATTEMPTS:
            with warnings.catch_warnings(), redirect_stdout(StringIO()):  # PEPit prints its warnings
                warnings.simplefilter("ignore")
                try:
                    dual = self.program.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0, **setting)
                except SolverError:
                    status = "failure"
                    continue
            solved = self.program.wrapper.prob
            status = solved.status
            if status == "optimal" and dual is not None:
                primal = float(solved.value)
                if abs(primal - dual) <= AGREE * max(abs(dual), 1e-9):
                    return float(dual), primal
                status = f"optimal with a primal value of {primal} and a dual one of {dual}"
        raise FedboundsError(
            f"the solver reports {status}: the worst case is unbounded, or too hard for double precision"
        )


class Locally:
    """Local computations of clients from one model on; the noise of one does not enter what another computes."""

    def __init__(self, run: Estimation) -> None:
        self.run = run
        self._drawn: dict[int, list[Point]] = {}

    def unrelated(self, client: int, *computed: Point) -> None:
        """The client's computations do not depend on the noise of the others."""
        for other in self._drawn.keys() - {client}:
            for noise in self._drawn[other]:
                self.run.unrelated(noise, computed)

    def noise(self, client: int, variance: Expression | float) -> Point:
        """As `Estimation.noise`, of one client."""
        fresh = self.run.noise(variance)
        self._drawn.setdefault(client, []).append(fresh)
        return fresh

    def stochastic_gradients(self, models: Mapping[int, Point], deviation: float) -> dict[int, Point]:
        """Those of clients at models of theirs, with fresh noise of this standard deviation at most."""
        exact = {n: self.run.functions[n].gradient(y) for n, y in models.items()}
        for n, gradient in exact.items():
            self.unrelated(n, gradient)
        return {n: g + deviation * self.noise(n, 1.0) if deviation else g for n, g in exact.items()}


K = TypeVar("K")
V = TypeVar("V", Point, Expression)


def weighted_points(values: Mapping[K, V], weights: Mapping[K, float]) -> V:
    """The weighted sum of points, or of expressions."""
    first, *others = [weights[n] * v for n, v in values.items()]
    return sum(others, first)


def whole(**numbers: Any) -> None:
    """Refuse a number that is not a positive integer."""
    for name, value in numbers.items():
        check_count(name, value)


def positive(**numbers: Any) -> None:
    """Refuse a number that is not positive and finite."""
    for name, value in numbers.items():
        if not (is_finite(value) and value > 0):
            raise FedboundsError(f"{name} = {quote(value)} must be positive and finite")


def nonnegative(**numbers: Any) -> None:
    """Refuse a number that is negative or not finite."""
    for name, value in numbers.items():
        if not (is_finite(value) and value >= 0):
            raise FedboundsError(f"{name} = {quote(value)} must be finite and not negative")


def gap_of_a_block(gap: float, blocks: int, gap_to: GapTo) -> float:
    r"""The mean share of the gap that a block of a long run has.

    A run of B blocks of rounds loses in each block its share of the gap, which is that to the last value. The worst
    case of a block is concave and increasing in its share, and all shares together are at most F: so the worst case at
    F/B bounds the average over the blocks, for runs that are far too long for one program.
    """
    positive(gap=gap)
    whole(blocks=blocks)
    if blocks > 1 and gap_to != "last":
        raise FedboundsError(f'blocks = {blocks} follow each other with gap_to = "last" only')
    return gap / blocks


def squared_gradients(gradients: Sequence[Point], measure: Measure) -> list[Expression]:
    """What a measure of f's gradients at x_0, ..., x_T takes the least of."""
    squares = [g**2 for g in gradients]
    ways: dict[str, list[Expression]] = {
        "minimum": squares[:-1],
        "minimum to the last": squares,
        "average": [sum(squares[1:-1], squares[0]) / (len(squares) - 1)],
    }
    if measure not in ways:
        raise unknown_name("measure", measure, list(ways))
    return ways[measure]


def worst_case(method: str, **setting: Any) -> WorstCase:
    """The worst case of a method over a class of functions, by performance estimation.

    Args:
        method: of a paper, such as `"generalized-fedavg"` or `"tdcd"`; the method's function lists its settings.
        setting: its numbers, such as `smoothness`, `gap`, `rounds`, `local_steps`, `local_step`.

    Raises:
        FedboundsError: no such method or setting, a number outside its domain, or no clean optimum.

    Example:
        >>> gradient_descent = worst_case("generalized-fedavg", rounds=3, local_step=1.0, measure="minimum to the last")
        >>> round(gradient_descent.value, 6) == round(4 / (3 * 3 + 2), 6), gradient_descent.attained
        (True, True)
        >>> noisy = worst_case("generalized-fedavg", rounds=3, local_step=1.0, noise=0.5)
        >>> noisy.kind, noisy.value > gradient_descent.value
        ('upper bound (second-moment relaxation)', True)

    Source:
        Taylor, Hendrickx and Glineur 2017; the constants of gradient descent: Abbaszadehpeivasti, de Klerk and
        Zamani 2022.
    """
    known: dict[str, Callable[..., WorstCase]] = merge_tables(
        "empirical", "worst_case", lambda module: module.WORST_CASES
    )
    if method not in known:
        raise unknown_name("method with a performance estimation", method, list(known))
    try:
        signature(known[method]).bind(**setting)
    except TypeError as error:
        takes = signature(known[method]).parameters
        strange = next((name for name in setting if name not in takes), None)
        if strange is not None:
            raise unknown_name(f"setting of {method}", strange, list(takes)) from None
        raise FedboundsError(f"{method}: {error}") from None
    return known[method](**setting)
