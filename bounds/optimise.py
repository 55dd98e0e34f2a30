r"""The best step sizes of a bound: the minimiser, or the fact that there is none.

Positive real constants are optimised in logarithms. Where the form is a geometric program (`bounds.geometric`), the
problem is convex there: whether the infimum is attained is decided exactly, and the minimum is found to rounding.
Other forms are searched on grids that close in from several starts. One whole number in a convex problem lies next to
the real minimiser; others are scanned: all of them while they are few, else on a geometric grid that is refined around
its best point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from bounds.compilation import holds
from bounds.convex import is_unique, log_sum, solve
from bounds.errors import FedboundsError
from bounds.evaluation import Evaluation, Value, evaluate
from bounds.geometric import (
    NotGeometric,
    Product,
    Program,
    at_most,
    falls_for_ever,
    far_out,
    sum_of_products,
    survivors,
)
from bounds.grid_search import Search, search
from bounds.intervals import fixed_value
from bounds.partial import Partial, leave_free, quantity_named
from bounds.result import Form, Result
from bounds.symbols import Quantity

TIGHT = 1e-7  # relative difference of the two sides at which a condition is reported as active
MOST_ROUNDS = 10**6  # where the scan of a whole number stops that has no upper end
COMPLETE, COMPLETE_INNER = 100_000, 48  # how many whole numbers are tried one by one, without and with an inner problem
# A constant that is a function of another one: optimising the latter alone would compare different problems.
DEPENDS = {
    "interval": ("window_divergence", "window_mean_variance", "window_mean_weights"),
    "participating_clients": ("cohort_divergence", "participation_divergence", "window_divergence"),
}
Functions = Mapping[str, Callable[[float], float]]
Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Minimum:
    """The least value, where it is taken, and what stops it from being less.

    Attributes:
        value: the bound there.
        at: letter to value.
        active: the conditions and ends of ranges that hold with equality.
        evaluation: everything else about the bound there.
        method: how it was found.
        note: "" or a remark, e.g. that the minimiser is not unique.
    """

    value: float
    at: Mapping[str, float]
    active: tuple[str, ...]
    evaluation: Evaluation = field(repr=False)
    method: str = ""
    note: str = ""
    status: ClassVar[str] = "minimum"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {
            "status": self.status,
            "key": self.evaluation.result.key,
            "form": self.evaluation.form.name,
            "value": self.value,
            "at": dict(self.at),
            "active": list(self.active),
            "method": self.method,
            "note": self.note,
            "evaluation": self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class NotAttained:
    """There is no best choice: the bound falls for ever in some direction, towards the infimum.

    Attributes:
        infimum: the limit.
        direction: where to, in words.
        terms: the terms that do not vanish on the way, with their limits.
        advice: what to ask instead.
    """

    infimum: float
    direction: str
    terms: Mapping[str, float] = field(default_factory=dict)
    advice: str = ""
    status: ClassVar[str] = "not attained"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {
            "status": self.status,
            "infimum": self.infimum,
            "direction": self.direction,
            "terms": dict(self.terms),
            "advice": self.advice,
        }


@dataclass(frozen=True)
class Infeasible:
    """No choice meets the conditions, because."""

    why: str
    status: ClassVar[str] = "infeasible"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {"status": self.status, "why": self.why}


Answer = Minimum | NotAttained | Infeasible


def optimise(
    result: Result,
    constants: Mapping[str, Value],
    over: Sequence[str] = ("gamma", "eta"),
    *,
    within: Ranges | None = None,
    form: str | None = None,
    functions: Functions | None = None,
) -> Answer:
    r"""Minimise a bound over some of its constants, under its conditions.

    Args:
        result: whose bound.
        constants: letter or concept to value, for every constant that is not optimised.
        over: the constants to choose; whole numbers are scanned.
        within: closed ranges for some of them, e.g. `{"eta": (1, 100)}`.
        form: its name or kind; the strongest one that is not refuted by default.
        functions: constants that are functions of the one being optimised, e.g. the window divergence as a function of
            the interval: `{"delta": lambda P: 1 / P}`; without it P is refused.

    Returns:
        `Minimum`, `NotAttained` (with the infimum and the direction in words) or `Infeasible`.

    Raises:
        FedboundsError: an unknown, missing or doubly given constant, an illegal range, or a constant that cannot be
            chosen because others depend on it.

    Example:
        >>> from bounds.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> known = dict(L=1, F=5, I=2, P=2, T=800, rho=0.5**0.5, sigma=1, nu=2, beta=0.5, delta=0)
        >>> answer = optimise(theorem, known, form="explicit")
        >>> answer.direction
        'gamma -> 0 and eta -> infinity with gamma*eta = 0.111803'
        >>> answer = optimise(theorem, known, within={"eta": (1, 100)}, form="explicit")
        >>> answer.active, round(answer.at["eta"], 9), round(answer.at["gamma"] * 100, 4)
        (('eta <= 100',), 100.0, 0.1102)
    """
    chosen = result.form(form)
    quantities = [quantity_named(result, chosen, name) for name in over]
    names = [q.name for q in quantities]
    if not names or len(set(names)) < len(names):
        raise FedboundsError("name at least one constant to optimise over, each once, e.g. gamma,eta")
    ranges = _ranges(result, quantities, within or {})
    rules = _functions(result, chosen, names, constants, functions or {})
    whole = [q for q in quantities if q.domain.integer]
    problem = _Problem(result, chosen, dict(constants), ranges, rules, tuple(q for q in quantities if q not in whole))
    return _scan(problem, whole) if whole else problem.minimise({})


def _ranges(result: Result, quantities: Sequence[Quantity], within: Ranges) -> dict[str, tuple[float, float]]:
    legal = {q.name: q for q in quantities}
    ranges: dict[str, tuple[float, float]] = {}
    for name, ends in within.items():
        quantity = result.notation.resolve(name)
        if quantity is None or quantity.name not in legal:
            raise FedboundsError(f"a range for {name}, which is not optimised over; optimised: {', '.join(legal)}")
        low, high = (float(end) for end in ends)
        if not low <= high:
            raise FedboundsError(f"the range {quantity.name} = {low:g}:{high:g} is empty; it reads low:high")
        quantity.check(np.array([low, high]) if np.isfinite(high) else np.array([low]))
        ranges[quantity.name] = (low, high)
    return ranges


def _functions(
    result: Result, form: Form, over: Sequence[str], constants: Mapping[str, Value], functions: Functions
) -> dict[str, tuple[str, Callable[[float], float]]]:
    """Function constants by letter, each with the letter of its argument; refuses what would compare two problems."""
    rules: dict[str, tuple[str, Callable[[float], float]]] = {}
    for name, function in functions.items():
        quantity = quantity_named(result, form, name)
        masters = [m for m in over if quantity.concept in DEPENDS.get(result.notation[m].concept, ())]
        if not masters:
            raise FedboundsError(f"{quantity.name} is given as a function, but of nothing that is optimised over")
        if any((q := result.notation.resolve(c)) and q.name == quantity.name for c in constants):
            raise FedboundsError(f"{quantity.name} is given both as a number and as a function of {masters[0]}")
        rules[quantity.name] = (masters[0], function)
    needed = {s.name for s in form.symbols}
    for master in over:
        concept = result.notation[master].concept
        loose = [n for n in needed if result.notation[n].concept in DEPENDS.get(concept, ()) and n not in rules]
        if loose:
            raise FedboundsError(
                f"{master} can be optimised only where {', '.join(sorted(loose))} is given as a function of {master}: "
                f"another {master} means another {result.notation[sorted(loose)[0]].meaning}"
            )
    return rules


@dataclass(frozen=True)
class _Problem:
    """The continuous problem that is left when the whole numbers are fixed."""

    result: Result
    form: Form
    constants: Mapping[str, Value]
    ranges: Ranges
    rules: Mapping[str, tuple[str, Callable[[float], float]]]
    reals: tuple[Quantity, ...]

    def known(self, counts: Mapping[str, Any]) -> dict[str, Value]:
        """The constants with the whole numbers (or arrays of them) and what depends on them."""
        derived = {
            name: np.vectorize(rule, otypes=[float])(counts[master]) for name, (master, rule) in self.rules.items()
        }
        return {**self.constants, **counts, **derived}

    def minimise(self, counts: Mapping[str, float], *, only_convex: bool = False) -> Answer:
        """The best positive reals at these whole numbers.

        Raises:
            NotGeometric: the form is none, if only a convex problem is wanted.
        """
        constants = self.known(counts)
        fixed = {q.name: self.ranges[q.name][0] for q in self.reals if _single(self.ranges.get(q.name))}
        free = [q for q in self.reals if q.name not in fixed]
        partial = leave_free(self.result, self.form, {**constants, **fixed}, [q.name for q in free])
        for c in partial.settled:
            left, right = fixed_value(c.left, partial.values), fixed_value(c.right, partial.values)
            if not holds(np.asarray(left), c.op, np.asarray(right)):
                return Infeasible(f"{c.text} fails whatever is chosen: {left:.6g} against {right:.6g} ({c.why})")
        for c in partial.conditions:
            if c.op == "==":
                raise FedboundsError(
                    f"{c.text} is an equation in {', '.join(partial.free)}; solve it and give the value"
                )
        if any(q.domain.low < 0 for q in free):
            raise FedboundsError(f"only positive constants can be optimised over, not {free[0].name}")
        low, high = _ends(free, self.ranges)
        chosen = {**counts, **fixed}
        if not free:
            return self.report(constants, chosen, {}, "fixed by its range")
        try:
            program, by_term = _program(partial, low, high)
        except NotGeometric:
            if only_convex:
                raise
            return self.search(constants, chosen, free, low, high)
        return self.convex(constants, chosen, partial, program, by_term, free)

    def convex(
        self,
        constants: Mapping[str, Value],
        chosen: Mapping[str, float],
        partial: Partial,
        program: Program,
        by_term: Mapping[str, tuple[Product, ...]],
        free: Sequence[Quantity],
    ) -> Answer:
        """The geometric program: exact about attainment, then Newton."""
        reduced, directions = program, []
        while reduced.objective and (direction := falls_for_ever(reduced)) is not None:
            directions.append(direction)
            reduced = far_out(reduced, direction)
        solution = solve(reduced)
        if solution.y is None:
            return Infeasible(_conflict(partial, solution.conflicts, self.ranges))
        if directions:
            limits = {name: survivors(terms, directions) for name, terms in by_term.items()}
            values = {n: float(np.exp(log_sum(terms)(solution.y)[0])) for n, terms in limits.items() if terms}
            constant = not any(any(row) for terms in limits.values() for p in terms for row in p.degrees)
            words = _direction(partial.free, directions, None if constant else solution.y)
            return NotAttained(sum(values.values()), words, values, _advice(free, directions))
        at = self.snapped(dict(zip(partial.free, np.exp(solution.y).tolist(), strict=True)))
        unique = not program.objective or is_unique(program, solution.y)
        note = "" if unique else "the minimiser is not unique; this is one of them"
        return self.report(constants, chosen, at, "convex in the logarithms", note)

    def search(
        self,
        constants: Mapping[str, Value],
        chosen: Mapping[str, float],
        free: Sequence[Quantity],
        low: np.ndarray,
        high: np.ndarray,
    ) -> Answer:
        """The numerical search, for forms that are not geometric programs."""

        def values_and_violations(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            settings = dict(zip([q.name for q in free], np.exp(points).T, strict=True))
            evaluation = evaluate(self.result, {**constants, **chosen, **settings}, form=self.form.name)
            worst = np.zeros(len(points))
            for c in evaluation.conditions:
                scale = np.maximum(np.maximum(np.abs(c.left), np.abs(c.right)), 1e-300)
                excess = np.abs(c.left - c.right) / scale
                worst = np.maximum(worst, np.where(c.holds, 0.0, np.where(np.isnan(excess), np.inf, excess)))
            return np.broadcast_to(evaluation.value, worst.shape), worst

        open_ = np.array([q.domain.high_open and q.name not in self.ranges for q in free])
        found: Search = search(values_and_violations, low, np.where(open_, np.minimum(high, high - 1e-12), high))
        at = self.snapped(dict(zip([q.name for q in free], np.exp(found.point).tolist(), strict=True)))
        if found.violation > 0:
            return Infeasible(
                f"no admissible choice among {found.tried} that were tried; the conditions exclude each other"
            )
        for q, end in zip(free, found.end, strict=True):
            if end and q.name not in self.ranges:
                there = "0" if end < 0 else "infinity" if np.isinf(q.domain.high) else f"{q.domain.high:g}"
                return NotAttained(found.value, f"{q.name} -> {there}", {}, _range_advice(q, end))
        return self.report(constants, chosen, at, f"grids closing in from {found.starts} starts")

    def snapped(self, at: Mapping[str, float]) -> dict[str, float]:
        """An end of a range is that end, not the exponential of its logarithm."""
        ends = {
            name: [e for e in self.ranges.get(name, ()) if abs(value - e) <= 1e-11 * e] for name, value in at.items()
        }
        return {name: ends[name][0] if ends[name] else value for name, value in at.items()}

    def report(
        self,
        constants: Mapping[str, Value],
        chosen: Mapping[str, float],
        at: Mapping[str, float],
        method: str,
        note: str = "",
    ) -> Answer:
        """The answer at this point, with what is active there."""
        every = {**chosen, **at}
        evaluation = evaluate(self.result, {**constants, **every}, form=self.form.name)
        active: list[str] = []
        moving = leave_free(self.result, self.form, constants, at).conditions if at else ()
        texts = {(c.op, c.why) for c in moving}
        for c, checked in zip(self.form.conditions, evaluation.conditions, strict=True):
            left, right = float(checked.left), float(checked.right)
            tight = abs(left - right) <= TIGHT * max(abs(left), abs(right))
            if tight and (c.op, c.why) in texts:
                active.append(c.text)
                if c.op in ("<", ">"):
                    return NotAttained(float(evaluation.value), f"towards {c.left} = {c.right}")
            if not checked.holds:
                return Infeasible(f"{c.text} fails: {left:.6g} against {right:.6g} ({c.why})")
        for q in self.reals:
            low, high = self.ranges.get(q.name, (0.0, np.inf))
            value = every.get(q.name, np.nan)
            active += [f"{q.name} >= {low:g}"] if value == low else []
            active += [f"{q.name} <= {high:g}"] if value == high and high != low else []
            if q.name not in self.ranges and q.domain.high_open and value >= q.domain.high * (1 - TIGHT):
                return NotAttained(float(evaluation.value), f"{q.name} -> {q.domain.high:g}")
            if q.name not in self.ranges and not q.domain.high_open and value >= q.domain.high * (1 - TIGHT):
                active.append(f"{q.name} <= {q.domain.high:g}")
        order = [n for n in (*chosen, *at)]
        return Minimum(
            float(evaluation.value), {n: float(every[n]) for n in order}, tuple(active), evaluation, method, note
        )


def _single(ends: tuple[float, float] | None) -> bool:
    return ends is not None and ends[0] == ends[1]


def _ends(free: Sequence[Quantity], ranges: Ranges) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of the ends of each range, else of its domain."""
    with np.errstate(divide="ignore"):
        low = np.log([ranges.get(q.name, (q.domain.low, 0))[0] for q in free])
        high = np.log([ranges.get(q.name, (0, q.domain.high))[1] for q in free])
    return low, high


def _program(partial: Partial, low: np.ndarray, high: np.ndarray) -> tuple[Program, dict[str, tuple[Product, ...]]]:
    if partial.opaque:
        raise NotGeometric
    by_term = {name: sum_of_products(e, partial.free, partial.values) for name, e in partial.terms.items()}
    objective = tuple(p for terms in by_term.values() for p in terms)
    if not all(p.convex for p in objective):
        raise NotGeometric
    constraints = []
    for c in partial.conditions:
        left, right = (c.left, c.right) if c.op in ("<=", "<") else (c.right, c.left)
        constraints.append(at_most(left, right, partial.free, partial.values))
    return Program(objective, tuple(constraints), low, high), by_term


def _conflict(partial: Partial, conflicts: Sequence[int], ranges: Ranges) -> str:
    texts = [partial.conditions[i].text for i in conflicts]
    texts += [f"{low:g} <= {name} <= {high:g}" for name, (low, high) in ranges.items() if name in partial.free]
    return f"no {', '.join(partial.free)} meets all of: {'; '.join(texts)}"


def _moves(directions: Sequence[Sequence[Any]]) -> list[Any]:
    """For each variable its first move that is not zero."""
    return [next((d[i] for d in directions if d[i]), 0) for i in range(len(directions[0]))]


def _direction(free: Sequence[str], directions: Sequence[Sequence[Any]], y: np.ndarray | None) -> str:
    moves = _moves(directions)
    words = [f"{name} -> {'infinity' if move > 0 else '0'}" for name, move in zip(free, moves, strict=True) if move]
    text = " and ".join(words)
    moving = [i for i, move in enumerate(moves) if move]
    if y is not None and len(directions) == 1 and len(moving) == 2:
        i, j = moving
        power = -moves[i] / moves[j]  # x_i * x_j^power stays
        held = f"{free[i]}*{free[j]}" if power == 1 else f"{free[i]}*{free[j]}**({power})"
        text += f" with {held} = {np.exp(y[i] + float(power) * y[j]):.6g}"
    elif len(directions) == 1 and len(moving) > 2:
        text += ", like " + ", ".join(f"{free[i]} = s**({moves[i]})" for i in moving) + " as s -> infinity"
    return text


def _advice(free: Sequence[Quantity], directions: Sequence[Sequence[Any]]) -> str:
    moves = [(q, move) for q, move in zip(free, _moves(directions), strict=True) if move]
    q, move = next(((q, move) for q, move in moves if move > 0), moves[0])
    return _range_advice(q, move)


def _range_advice(quantity: Quantity, end: float) -> str:
    legal = "1:1000" if quantity.domain.integer else "1:100" if end > 0 else "1e-6:1"
    if np.isfinite(quantity.domain.high):
        legal = f"{0.01 * quantity.domain.high:g}:{0.99 * quantity.domain.high:g}"
    return f"ask for a range, e.g. --within {quantity.name}={legal}"


# --- Whole numbers ----------------------------------------------------------------------------------------------


def _scan(problem: _Problem, whole: Sequence[Quantity]) -> Answer:
    """Whole numbers: next to the real minimiser where one of them is all there is and the problem is convex; else all
    of them, or a geometric grid that is refined around its best point."""
    if len(whole) == 1 and not problem.rules:
        try:
            return _neighbours(problem, whole[0])
        except NotGeometric:
            pass
    budget = COMPLETE_INNER if problem.reals else COMPLETE
    ends = [_whole_ends(q, problem.ranges) for q in whole]
    grids = [_grid(low, high, max(4, round(budget ** (1 / len(whole))))) for low, high in ends]
    complete = all(len(grid) == high - low + 1 for grid, (low, high) in zip(grids, ends, strict=True))
    names = [q.name for q in whole]
    first = best = _best(problem, names, grids)
    while best is not None and not all(_gapless(grid) for grid in grids):
        around = []
        for name, grid in zip(names, grids, strict=True):
            place = grid.index(int(best[1][name]))
            low, high = grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)]
            around.append(_grid(low, high, 16, even=True))
        grids, closer = around, _best(problem, names, around)
        best = closer if closer is not None and closer[0] <= best[0] else best
        grids = [sorted({*grid, int(best[1][name])}) for name, grid in zip(names, grids, strict=True)]
    if first is None or best is None:
        return problem.minimise({name: float(grid[0]) for name, grid in zip(names, grids, strict=True)})
    answer = problem.minimise(best[1])
    for q, (_, high) in zip(whole, ends, strict=True):
        if best[1][q.name] == high == MOST_ROUNDS and q.name not in problem.ranges:
            return NotAttained(best[0], f"{q.name} -> infinity (scanned up to {MOST_ROUNDS})", {}, _range_advice(q, 1))
    if isinstance(answer, Minimum):
        how = "all tried" if complete else "geometric grid, refined around its best"
        method = f"{', '.join(names)}: {how}" + (f"; {answer.method}" if problem.reals else "")
        at_ends = tuple(
            f"{q.name} {'>=' if value == low else '<='} {value:g}"
            for q, (low, high) in zip(whole, ends, strict=True)
            if (value := best[1][q.name]) in (low, high)
        )
        return Minimum(answer.value, answer.at, answer.active + at_ends, answer.evaluation, method, answer.note)
    return answer


def _neighbours(problem: _Problem, whole: Quantity) -> Answer:
    """The better neighbour of the real minimiser: the best value is convex in the logarithm of the whole number."""
    relaxed = replace(problem, reals=(*problem.reals, whole)).minimise({}, only_convex=True)
    if not isinstance(relaxed, Minimum):
        return relaxed
    near = relaxed.at[whole.name]
    around = sorted(
        {float(round(near))} if abs(near - round(near)) < 1e-9 else {float(np.floor(near)), float(np.ceil(near))}
    )
    answers = [problem.minimise({whole.name: count}) for count in around]
    found = [a for a in answers if isinstance(a, Minimum)]
    if not found:
        return answers[0]
    best = min(found, key=lambda a: a.value)
    ends = problem.ranges.get(whole.name, (whole.domain.low, whole.domain.high))
    at_ends = tuple(
        f"{whole.name} {op} {end:g}" for op, end in zip((">=", "<="), ends, strict=True) if best.at[whole.name] == end
    )
    method = f"convex in the logarithms; {whole.name} next to the real minimiser {near:.6g}"
    return replace(best, active=best.active + at_ends, method=method)


def _whole_ends(quantity: Quantity, ranges: Ranges) -> tuple[int, int]:
    low, high = ranges.get(quantity.name, (quantity.domain.low, quantity.domain.high))
    return int(np.ceil(low)), int(min(high, MOST_ROUNDS if quantity.name not in ranges else 2**53))


def _grid(low: int, high: int, size: int, even: bool = False) -> list[int]:
    """All whole numbers from low to high if they are few, else a grid with both ends."""
    if high - low + 1 <= size:
        return list(range(low, high + 1))
    spaced = np.linspace(low, high, size) if even else low - 1 + np.geomspace(1, high - low + 1, size)
    return sorted({low, high, *np.round(spaced).astype(int).tolist()})


def _gapless(grid: Sequence[int]) -> bool:
    return grid[-1] - grid[0] + 1 == len(grid)


def _best(
    problem: _Problem, names: Sequence[str], grids: Sequence[Sequence[int]]
) -> tuple[float, dict[str, float]] | None:
    """The least value over a grid of whole numbers, and where."""
    if not problem.reals:
        points = np.array(list(product(*grids)), dtype=float)
        settings = problem.known(dict(zip(names, points.T, strict=True)))
        evaluation = evaluate(problem.result, settings, form=problem.form.name)
        valid = np.broadcast_to(evaluation.valid, len(points))
        values = np.where(valid, np.broadcast_to(evaluation.value, len(points)), np.inf)
        at = int(np.argmin(values))
        return (
            (float(values[at]), dict(zip(names, points[at].tolist(), strict=True))) if np.isfinite(values[at]) else None
        )
    best: tuple[float, dict[str, float]] | None = None
    for point in product(*grids):
        counts = dict(zip(names, map(float, point), strict=True))
        answer = problem.minimise(counts)
        if not isinstance(answer, Infeasible):
            value = answer.value if isinstance(answer, Minimum) else answer.infimum
            best = (value, counts) if best is None or value < best[0] else best
    return best
