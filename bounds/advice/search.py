"""The best step sizes and the best whole numbers of a round with which one form reaches a target.

For given whole numbers (local steps, the interval) `fedbounds.bounds.search.rounds` gives rounds and step sizes. The
whole numbers are searched on grids that are refined around the best point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from fedbounds.bounds.advice.request import Presence, Question
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.consistency import MAY_BE, check_agreement
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.resolution import unknown_constants
from fedbounds.bounds.search.effort import EVALUATIONS
from fedbounds.bounds.search.optimize import DEPENDS, Minimum, optimize
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.search.rounds_answers import Between, Never, Reached
from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.round_cost import Known, RoundCost
from fedbounds.bounds.theory.symbols import Constant, Quantity

RUNGS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70)  # of a ladder, and times powers of 100
EFFORT = 0.3  # of the usual evaluations, for each choice of whole numbers
BUDGET = 5 * EVALUATIONS  # evaluations for all choices of one form
MOST_UNDECIDED = 6  # choices that are undecided before any that reaches the target
USUAL_STEPS = (1, 100)  # in which local steps are sought
BETWEEN = 5  # whole numbers that are tried between two rungs, on either side


@dataclass(frozen=True)
class Costs:
    """What the rounds to a target cost; None where nobody said what they cost.

    Attributes:
        rounds: communication rounds.
        gradients: stochastic gradients of all participants.
        bits: over all links.
        seconds: until the slowest participant of the last round is done.
    """

    rounds: int
    gradients: float | None = None
    bits: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Choice:
    """Whole numbers, and how soon they reach the target.

    Attributes:
        whole: symbol to value.
        costs: of the target; None where it is not reached.
        goal: what is to be least; inf where the target is not reached.
        evaluation: the bound there.
        least: whether fewer rounds were excluded, or the search for them came to its end.
        why: where the target is not reached, the reason.
        status: "reached", "never" or "undecided".
        floor: where the target is never reached, what the bound tends to; inf if that is not known.
    """

    whole: Mapping[str, int]
    costs: Costs | None
    goal: float
    evaluation: Evaluation | None = field(repr=False, default=None)
    least: bool = True
    why: str = ""
    status: str = "reached"
    floor: float = np.inf


@dataclass
class FormSearch:
    """The search for one form.

    Attributes:
        zero: symbols that are not known, and are taken to be zero: the best case.
        tried: by whole numbers.
        lacking: what nobody can tell the cost without, by the name of the cost.
        spent: evaluations so far.
    """

    question: Question
    result: Result
    form: Form
    workload: RoundCost
    zero: tuple[str, ...] = ()
    tried: dict[tuple[int, ...], Choice] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    spent: int = 0

    @cached_property
    def used(self) -> frozenset[str]:
        """The symbols that matter, those apart that the form prescribes."""
        mentioned = reachable(self.form, prescribed=True) - set(self.form.prescribes)
        return frozenset(mentioned)

    @cached_property
    def given(self) -> dict[str, Constant]:
        """What the user knows of all symbols, also of those that only the costs need."""
        known = self.question.given.of(self.result)
        return {name: c for name, c in known.items() if name not in (*self.form.prescribes, self.counter.name)}

    @cached_property
    def counter(self) -> Quantity:
        """What counts rounds or iterations."""
        for concept in ("rounds", "iterations"):
            quantity = next((q for q in self.result.notation.values() if q.concept == concept), None)
            if quantity is not None and quantity.symbol in self.form.symbols:
                return quantity
        raise FedboundsError("its bound does not depend on a number of rounds")

    @cached_property
    def ladders(self) -> dict[str, tuple[int, ...]]:
        """The whole numbers that may be chosen, local steps first, each with what is tried."""
        names = {self.workload.local_steps: USUAL_STEPS, **self.workload.whole}
        for name in self.question.choose:
            quantity = self.result.notation.resolve(name)
            if quantity is not None and quantity.domain.integer and quantity.name in self.used:
                names.setdefault(quantity.name, USUAL_STEPS)
        return {
            name: self._ladder(self.result.notation[name], usual) for name, usual in names.items() if self._open(name)
        }

    def _open(self, name: str) -> bool:
        """Whether a whole number is there to be chosen: not where others are functions of it that nobody gave."""
        concept = self.result.notation[name].concept
        hanging = {q.concept for n in self.used if (q := self.result.notation[n])} & {*DEPENDS.get(concept, ())}
        supplied = concept == "interval" and self.question.participation is not None
        return name in self.used and name not in self.given and (not hanging or supplied)

    def _ladder(self, quantity: Quantity, usual: tuple[int, int]) -> tuple[int, ...]:
        low, high = (int(end) for end in self._range(quantity) or usual)
        if quantity.concept == "interval" and self.question.participation is not None:
            return self.question.participation.intervals(low, high)
        return ladder(low, high)

    def is_usual(self, name: str) -> bool:
        """Whether the range of a step size is the usual one, and nobody asked for it."""
        return self._range(self.result.notation[name]) is None

    def _range(self, quantity: Quantity) -> tuple[float, float] | None:
        names = (quantity.name, quantity.concept)
        return next((ends for name, ends in self.question.choose.items() if name in names), None)

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The step sizes that are left to be chosen."""
        return tuple(n for n in self.workload.steps if n in self.used and n not in self.given)

    @cached_property
    def missing(self) -> list[str]:
        """The symbols without which nothing can be computed."""
        some = dict.fromkeys(self.ladders, 1)
        names = {*self.constants(some), *some, *self.steps, self.counter.name}
        return unknown_constants(compiled_form(self.result, self.form), names)

    @property
    def harmless(self) -> bool:
        """Whether all that is missing is a bound from above that may be zero, so that zero is the best case."""
        quantities = [self.result.notation[name] for name in self.missing]
        return all(not q.shape and q.domain.contains(0.0) and MAY_BE.get(q.concept) == "larger" for q in quantities)

    def presence(self, whole: Mapping[str, int]) -> Presence:
        """What the user's participation says at these whole numbers."""
        if self.question.participation is None:
            return Presence()
        by_concept = {self.result.notation[name].concept: value for name, value in whole.items()}
        scalars = {c: float(k.value) for c, k in self.question.given.by_concept.items() if not np.ndim(k.value)}
        interval = by_concept.get("interval", int(scalars.get("interval", 1)))
        return self.question.participation.known(self.result.paper, interval, scalars)

    def constants(self, whole: Mapping[str, int]) -> dict[str, Constant]:
        """Every constant that is known at these whole numbers, by symbol; the whole numbers are among them."""
        found = dict(self.given)
        for concept, fact in self.presence(whole).constants.items():
            quantity = self.result.notation.resolve(concept)
            if quantity is None or quantity.name in (*whole, *self.form.prescribes):
                continue
            if quantity.name not in found:
                found[quantity.name] = fact
            elif fact.source != "estimated":
                check_agreement(quantity, np.asarray(found[quantity.name].value), np.asarray(fact.value), fact.note)
        found |= {name: Constant(float(value), "given", "chosen") for name, value in whole.items()}
        found |= {name: Constant(0.0, "estimated", "not known: the best case") for name in self.zero}
        clients = {q.name for q in self.result.notation.values() if q.concept == "clients"}
        return {name: c for name, c in found.items() if name in self.used | clients}

    def ranges(self, known: Mapping[str, Constant]) -> dict[str, tuple[float, float]]:
        """The ranges of the step sizes: the user's, else the usual ones."""
        numbers = self.numbers(known)
        found = {}
        for name in self.steps:
            asked = self._range(self.result.notation[name])
            if asked is None and name in self.workload.usual:
                asked = self.workload.usual[name](numbers)
            if asked is not None:
                found[name] = asked
        return found

    def numbers(self, known: Mapping[str, Constant]) -> dict[str, np.ndarray | float]:
        """The constants as numbers, for costs: with one number for all clients where that was given."""
        clients = next((q.name for q in self.result.notation.values() if q.concept == "clients"), "")
        every = {**self.given, **known}
        count = np.asarray(every[clients].value) if clients in every else None
        found: dict[str, np.ndarray | float] = {}
        for name, constant in every.items():
            value = np.asarray(constant.value, dtype=float)
            one_for_all = self.result.notation[name].shape and not value.ndim and count is not None
            found[name] = np.full(int(count), value) if one_for_all else value  # pyright: ignore[reportArgumentType]
        return found

    # --- One choice of whole numbers ----------------------------------------------------------------------------

    def choice(self, whole: Mapping[str, int]) -> Choice:
        """The least rounds with these whole numbers."""
        key = tuple(whole.values())
        if key not in self.tried:
            self.tried[key] = self._solve(dict(whole))
        return self.tried[key]

    def _solve(self, whole: dict[str, int]) -> Choice:
        facts = self.presence(whole)
        wrong = [a.name for a in self.form.assumptions if facts.checked.get(a.name) is False]
        if wrong:
            return Choice(whole, None, np.inf, why=f"participation violates {', '.join(wrong)}", status="never")
        known = self.constants(whole)
        within, target = self.ranges(known), self.question.target
        used = [0]
        answer = rounds(
            self.result,
            target,
            known,
            optimize=self.steps,
            within=within if self.steps else None,
            form=self.form.name,
            effort=EFFORT * self.question.effort,
            watch=lambda spent, allowed: used.append(spent),
        )
        self.spent += max(used)
        if isinstance(answer, Never):
            floor = np.inf if np.isnan(answer.floor) else answer.floor
            return Choice(whole, None, np.inf, why=answer.why, status="never", floor=floor)
        least, evaluation = isinstance(answer, Reached), None
        if isinstance(answer, Reached):
            evaluation = answer.evaluation
        elif isinstance(answer, Between) and np.isfinite(answer.high):
            evaluation = self._there(known, answer.high, within)
        if evaluation is None or not evaluation.valid or not evaluation.value <= target * (1 + 1e-9):
            why = answer.words if isinstance(answer, Between) else "no best step sizes: give ranges in [choose]"
            return Choice(whole, None, np.inf, why=why, status="undecided")
        costs = self.costs(evaluation)
        goal = vars(costs)[self.question.minimize]
        return Choice(whole, costs, costs.rounds if goal is None else goal, evaluation, least)

    def _there(self, known: Mapping[str, Constant], count: float, within: Mapping[str, tuple[float, float]]):
        """The bound after so many rounds, at the best step sizes there."""
        there = {**known, self.counter.name: Constant(count, "given", "chosen")}
        if not self.steps:
            return evaluate(self.result, there, form=self.form.name, strict=False)
        best = optimize(self.result, there, self.steps, within=within, form=self.form.name, effort=EFFORT)
        return best.evaluation if isinstance(best, Minimum) else None

    def costs(self, evaluation: Evaluation) -> Costs:
        """What the rounds of this evaluation cost."""
        cost: Known = self.question.cost
        c = {"number_bits": 32.0, **self.numbers(evaluation.constants), **cost}
        counted = int(np.asarray(evaluation.constants[self.counter.name].value))
        work = self.workload

        def amount(name: str, of: Callable[[Known], float]) -> float | None:
            try:
                return float(of(c))
            except KeyError as error:
                self.lacking[name] = str(error.args[0])
                return None

        steps = amount("rounds", work.in_a_row) if self.counter.concept == "iterations" else 1
        count = -(-counted // int(steps or 1))

        def participants(c: Known) -> float:
            try:
                return work.participants(c)
            except KeyError:
                if self.question.participation is None:
                    raise
                return self.question.participation.present

        def traffic(c: Known) -> float:
            return participants(c) * work.link(c) if work.bits is None else work.bits(c)

        def seconds(c: Known) -> float:
            sending = c["round"] if "round" in c else work.messages * c["message"]
            sending += work.link(c) / c["bandwidth"] if "bandwidth" in c else 0.0
            return sending + (work.in_a_row(c) * c["gradient"])

        found = {
            name: None if (one := amount(name, of)) is None else count * one
            for name, of in {
                "gradients": lambda c: participants(c) * work.gradients(c),
                "bits": traffic,
                "seconds": seconds,
            }.items()
        }
        return Costs(count, **found)

    # --- All of them --------------------------------------------------------------------------------------------

    @property
    def exhausted(self) -> bool:
        """Whether its evaluations are used up, or so many choices are undecided that others will be."""
        undecided = [choice.status == "undecided" for choice in self.tried.values()]
        return self.spent > BUDGET * self.question.effort or (len(undecided) >= MOST_UNDECIDED and all(undecided))

    def run(self) -> Choice:
        """The best choice of whole numbers; what else was tried is kept."""
        ladders = self.ladders
        if not ladders:
            return self.choice({})
        first, *others = ladders
        start: dict[str, int] | None = None
        for value in ladders[first]:
            if start is None:  # nothing reached the target yet: everything is tried
                rows = [dict(zip(others, rest, strict=True)) for rest in product(*(ladders[o] for o in others))]
                found = self._best_of({first: value, **row} for row in rows)
            else:
                found = self._climb({**start, first: value}, {o: ladders[o] for o in others})
            if found is not None and found.costs is not None:
                start = dict(found.whole)
        best, before = self.best(), np.inf
        while best.goal < before and not self.exhausted:
            before = best.goal
            for name, rungs in ladders.items():
                tried = rungs if self.is_supplied(name) else ladder_points(rungs, best.whole[name])
                self._best_of({**best.whole, name: value} for value in tried)
                best = self.best()
        return best

    def is_supplied(self, name: str) -> bool:
        """Whether the user's participation says which values are worth a try."""
        return self.result.notation[name].concept == "interval" and self.question.participation is not None

    def _best_of(self, choices: Iterable[dict[str, int]]) -> Choice | None:
        """The best of these, as far as the evaluations last; None where they are used up."""
        found = [self.choice(whole) for whole in choices if not self.exhausted]
        return min(found, key=lambda choice: choice.goal, default=None)

    def _climb(self, start: dict[str, int], ladders: Mapping[str, Sequence[int]]) -> Choice | None:
        """From a start along one ladder after the other, from rung to rung, as long as it gets better."""
        best = self._best_of([start])
        for name, way in product(ladders, (1, -1)):
            if best is None:
                return None
            rungs = ladders[name]
            at = min(range(len(rungs)), key=lambda i, here=best.whole[name], rungs=rungs: abs(rungs[i] - here)) + way
            while 0 <= at < len(rungs):
                found = self._best_of([{**best.whole, name: rungs[at]}])
                if found is None or not found.goal < best.goal:
                    break
                best, at = found, at + way
        return best

    def best(self) -> Choice:
        """The best choice so far."""
        reached = [choice for choice in self.tried.values() if choice.costs is not None]
        if reached:
            return min(reached, key=lambda choice: choice.goal)
        return min(self.tried.values(), key=lambda choice: (choice.status != "undecided", choice.floor))

    def _ends(self, whole: Mapping[str, int]) -> str:
        """The ranges of whole numbers of which a larger one may reach the target, in words; "" if there is none."""
        found = []
        for name, rungs in self.ladders.items():
            quantity = self.result.notation[name]
            high = int((self._range(quantity) or self.workload.whole.get(name, USUAL_STEPS))[1])
            if self.is_supplied(name) or (len(rungs) > 1 and whole[name] == rungs[-1]):
                found.append(f"{name} <= {high} ([choose] {quantity.concept})")
        return f"for {' and '.join(found)}; larger ones, which were not tried, may reach the target" if found else ""

    @property
    def curve(self) -> tuple[Choice, ...]:
        """For each number of local steps that was tried, the best choice."""
        name = self.workload.local_steps
        best: dict[int, Choice] = {}
        for choice in self.tried.values():
            steps = choice.whole.get(name)
            if steps is not None and choice.costs is not None:
                best[steps] = min(best.get(steps, choice), choice, key=lambda one: one.goal)
        return tuple(best[steps] for steps in sorted(best))


def ladder(low: int, high: int) -> tuple[int, ...]:
    """Whole numbers from low to high, evenly spaced to the eye on a logarithmic axis.

    Example:
        >>> ladder(1, 20), ladder(8, 8), ladder(90, 400)
        ((1, 2, 3, 5, 7, 10, 15, 20), (8,), (90, 100, 200, 300, 400))
    """
    rungs = [rung * 100**power for power in range(5) for rung in RUNGS]
    return tuple(sorted({low, high, *(rung for rung in rungs if low <= rung <= high)}))


def ladder_points(rungs: Sequence[int], value: int) -> tuple[int, ...]:
    """A few whole numbers between a value and its neighbors on a ladder.

    Example:
        >>> ladder_points((1, 5, 100), 5)
        (2, 3, 4, 21, 37, 52, 68, 84)
    """
    low = max((rung for rung in rungs if rung < value), default=value)
    high = min((rung for rung in rungs if rung > value), default=value)
    found: set[int] = set()
    for end in (low, high):
        found |= {round(x) for x in np.linspace(value, end, BETWEEN + 2)}
    return tuple(sorted(found - {low, value, high}))
