r"""The worst that a method can do, found by a solver instead of by search: performance estimation.

Over all functions of a class and all starting points, the largest measure subject to an initial gap is a semidefinite
program in the Gram matrix of points and gradients (Drori and Teboulle 2014; Taylor, Hendrickx and Glineur 2017). A
deterministic method with fixed participation is written with PEPit and solved by Clarabel; only a clean *optimal*,
whose primal and dual values agree, counts. For one smooth function the value is attained. Where the mean of several is
bounded below, blocks are moved, or divergences are bounded at the points of the run alone, the constraints are
necessary but need not be sufficient: the value is then an upper bound of the worst case, and says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from cvxpy.error import SolverError
from PEPit import PEP, Expression, Function, Point
from PEPit.functions import SmoothFunction

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation import evaluate
from fedbounds.bounds.registry import load, papers, part

GapTo = Literal["infimum", "last"]
AGREE = 1e-6  # relative distance of the primal and the dual value of a clean optimum


@dataclass(frozen=True)
class WorstCase:
    """The largest value of a left-hand side over a class of functions.

    Args:
        method: what was run.
        measure: what is largest, in words.
        value: the dual value of the program, at least the worst case up to the solver's accuracy.
        primal: the value at the Gram matrix that was found.
        attained: whether some function attains it; else it is an upper bound of the worst case.
        constants: those of the setting, by the names of the method's theorem.
    """

    method: str
    measure: str
    value: float
    primal: float
    attained: bool
    constants: Mapping[str, Any]

    def ratio(self, key: str, form: str | None = None, **more: Any) -> float:
        """The worst case over a result's bound at the same constants; above 1 with `attained` it refutes the bound.

        Args:
            key: the result's key.
            form: its form; the default one if not given.
            more: constants that the setting does not fix.

        Raises:
            FedboundsError: no such result, a constant is missing, or a condition fails.
        """
        found = evaluate(load(key), {**self.constants, **more}, form=form)
        if not found.valid:
            failed = next(c.text for c in found.conditions if not c.holds)
            raise FedboundsError(f"{key} says nothing here: {failed} fails")
        return self.value / float(found.value)


class Estimation:
    """A program in the making: functions, points and what is known of them, in the units in which L and the gap are 1.

    Args:
        clients: N functions, whose mean is f.
    """

    def __init__(self, clients: int = 1) -> None:
        self.program = PEP()
        self.functions: list[Function] = [self.program.declare_function(SmoothFunction, L=1) for _ in range(clients)]
        self.start: Point = self.program.set_initial_point()
        self._seen: list[tuple[Point, Expression]] = []

    def objective(self, x: Point) -> tuple[Point, Expression]:
        """The gradient and the value of f, the mean of all functions, at a point."""
        each = dict(enumerate(f.oracle(x) for f in self.functions))
        shares = dict.fromkeys(each, 1 / len(each))
        here = (
            weighted({n: g for n, (g, _) in each.items()}, shares),
            weighted({n: v for n, (_, v) in each.items()}, shares),
        )
        self._seen.append(here)
        return here

    def at_most(self, smaller: Expression, larger: Expression | float) -> None:
        """A constraint."""
        self.program.add_constraint(smaller <= larger)

    def starts(self, to: GapTo) -> None:
        """f at the first point seen exceeds the infimum, or f at the last one, by at most 1.

        Raises:
            FedboundsError: to something else.
        """
        first, last = self._seen[0][1], self._seen[-1][1]
        if to == "last":
            self.at_most(first - last, 1)
        elif to == "infimum":
            infimum = Expression()
            self.at_most(first - infimum, 1)
            alone = self.functions[0].list_of_points if len(self.functions) == 1 else []
            for gradient, value in [(g, v) for _, g, v in alone] or self._seen:
                self.at_most(infimum, value - gradient**2 / 2)
        else:
            raise unknown_name("point to which the gap is", str(to), ["infimum", "last"])

    def worst(self, measures: Sequence[Expression]) -> tuple[float, float]:
        """The largest least of these, by its dual and its primal program.

        Raises:
            FedboundsError: the solver ends with anything but a clean optimum.
        """
        for measure in measures:
            self.program.set_performance_metric(measure)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                dual = self.program.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)
            except SolverError as error:
                raise FedboundsError("the solver fails: the program is too hard for it in double precision") from error
        solved = self.program.wrapper.prob
        if solved.status != "optimal" or dual is None:
            raise FedboundsError(f"the solver says {solved.status}: the worst case is unbounded, or too hard for it")
        primal = float(solved.value)
        if abs(primal - dual) > AGREE * max(abs(dual), 1e-9):
            raise FedboundsError(f"no clean optimum: the primal value is {primal}, the dual {dual}")
        return float(dual), primal


Measure = Literal["minimum", "average", "minimum to the last"]


V = TypeVar("V", Point, Expression)


def weighted(values: Mapping[int, V], weights: Mapping[int, float]) -> V:
    """The weighted sum of points, or of expressions."""
    first, *others = [weights[n] * v for n, v in values.items()]
    return sum(others, first)


def positive(**numbers: float) -> None:
    """Refuse a number that is not positive.

    Raises:
        FedboundsError: names it.
    """
    for name, value in numbers.items():
        if not value > 0:
            raise FedboundsError(f"{name} = {value} must be positive")


def squared_gradients(gradients: Sequence[Point], measure: Measure) -> list[Expression]:
    """What a measure of f's gradients at x_0, ..., x_T takes the least of.

    Raises:
        FedboundsError: no such measure.
    """
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
        method: `"generalized-fedavg"` or `"tdcd"`; each method's function says what it takes.
        setting: its numbers, such as `smoothness`, `gap`, `rounds`, `local_steps`, `local_step`.

    Raises:
        FedboundsError: no such method, a number outside its domain, or no clean optimum.

    Example:
        >>> gradient_descent = worst_case("generalized-fedavg", rounds=3, local_step=1.0, measure="minimum to the last")
        >>> round(gradient_descent.value, 6) == round(4 / (3 * 3 + 2), 6), gradient_descent.attained
        (True, True)

    Source:
        Taylor, Hendrickx and Glineur 2017; the constants of gradient descent: Abbaszadehpeivasti, de Klerk and
        Zamani 2022.
    """
    known: dict[str, Callable[..., WorstCase]] = {}
    for paper in papers():
        room = part(paper.key, "empirical", "worst_case")
        known |= room.WORST_CASES if room else {}
    if method not in known:
        raise unknown_name("method with a performance estimation", method, list(known))
    return known[method](**setting)
