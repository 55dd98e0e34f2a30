"""The best step sizes and the best whole numbers of a round with which one form reaches a target.

For all whole numbers of a grid (local steps, the interval) `rounds_estimates` estimates the rounds at once; the grid is
refined around the cheapest. Only for the cheapest does `fedbounds.bounds.search.rounds` search the least rounds. Where
no estimate reaches the target, every point of the grid is searched, until one is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.request import Presence, Question
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.consistency import MAY_BE, check_agreement
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.resolution import resolve, unknown_constants
from fedbounds.bounds.search.effort import EvaluationBudget
from fedbounds.bounds.search.integers import divisibility_pair
from fedbounds.bounds.search.optimize import DEPENDS, Minimum, optimize
from fedbounds.bounds.search.partial_evaluation import leave_free
from fedbounds.bounds.search.round_lower_bounds import least_possible_rounds
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.search.rounds_answers import Between, Never, Reached
from fedbounds.bounds.search.rounds_estimates import RoundsEstimates
from fedbounds.bounds.search.threshold import LARGEST_COUNT
from fedbounds.bounds.theory.expressions import symbol_names
from fedbounds.bounds.theory.result import Condition, Form, Result, Term, reachable
from fedbounds.bounds.theory.round_cost import Known, RoundCost
from fedbounds.bounds.theory.symbols import Constant, Quantity, dependencies

RUNGS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70)  # of a ladder, and times powers of 100
EFFORT = 0.3  # of the usual evaluations, for the search at one choice of whole numbers
AT_ONCE = 256  # choices of whole numbers that are estimated at once
MOST_SEARCHED = 4  # choices that are searched because their estimates are the lowest
USUAL_STEPS = (1, 100)  # in which local steps are sought
BETWEEN = 5  # whole numbers that are tried between two rungs, on either side
EXCLUSION = 600  # evaluations for the exclusion of all numbers of local steps at once
MANY = 2**20  # rounds of which the cost is taken for a price of one


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
        tried: the choices that were searched, by whole numbers.
        estimates: rounds that reach the target, by whole numbers; inf where none were found.
        estimated: the choices with estimates that reach the target, by whole numbers.
        unmet: why no rounds meet the conditions without step sizes, by the whole numbers that enter them; or None.
        lacking: what nobody can tell the cost without, by the name of the cost.
    """

    question: Question
    result: Result
    form: Form
    workload: RoundCost
    zero: tuple[str, ...] = ()
    tried: dict[tuple[int, ...], Choice] = field(default_factory=dict)
    estimates: dict[tuple[int, ...], float] = field(default_factory=dict)
    estimated: dict[tuple[int, ...], Choice] = field(default_factory=dict)
    unmet: dict[tuple[int, ...], Never | None] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)

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
    def _legal(self) -> dict[str, tuple[float, float]]:
        """The legal values of the step sizes."""
        domains = {name: self.result.notation[name].domain for name in self.steps}
        return {name: (domain.low, domain.high) for name, domain in domains.items()}

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
            self.tried[key] = self._never_met(whole) or self._solve(dict(whole))
        return self.tried[key]

    def _solve(self, whole: dict[str, int]) -> Choice:
        if (wrong := self._violated(whole)) is not None:
            return wrong
        known = self.constants(whole)
        within, target = self.ranges(known), self.question.target
        answer = rounds(
            self.result,
            target,
            known,
            optimize=self.steps,
            within=within if self.steps else None,
            form=self.form.name,
            effort=EFFORT * self.question.effort,
        )
        estimate = self.estimates.get(tuple(whole.values()), np.inf)
        least, evaluation = isinstance(answer, Reached), None
        if isinstance(answer, Reached):
            evaluation = answer.evaluation
        elif (high := min(answer.high if isinstance(answer, Between) else np.inf, estimate)) < np.inf:
            evaluation = self._there(known, high, within)
        elif isinstance(answer, Never):
            return _never(whole, answer)
        if evaluation is None or not evaluation.valid or not evaluation.value <= target * (1 + 1e-9):
            why = answer.why if isinstance(answer, Between | Never) else "no best step sizes: give ranges in [choose]"
            return Choice(whole, None, np.inf, why=why, status="undecided")
        counted = int(np.asarray(evaluation.constants[self.counter.name].value))
        costs = self.costs(evaluation.constants, counted)
        return Choice(whole, costs, self._goal(costs), evaluation, least)

    def _violated(self, whole: dict[str, int]) -> Choice | None:
        """That the user's participation violates an assumption at these whole numbers; None if it does not."""
        facts = self.presence(whole)
        wrong = [a.name for a in self.form.assumptions if facts.checked.get(a.name) is False]
        why = f"participation violates {', '.join(wrong)}"
        return Choice(whole, None, np.inf, why=why, status="never") if wrong else None

    def _never_met(self, whole: Mapping[str, int]) -> Choice | None:
        """That no number of rounds meets the conditions which no step size enters; None if that is not shown.

        It is searched for once for all whole numbers that do not enter these conditions either.
        """
        conditions, names = self._without_steps
        if conditions is None:
            return None
        key = tuple(value for name, value in whole.items() if name in names)
        if key not in self.unmet:
            known, effort = self.constants(whole), EFFORT * self.question.effort
            answer = rounds(conditions, self.question.target, known, effort=effort)
            self.unmet[key] = replace(answer, floor=np.nan) if isinstance(answer, Never) else None
        found = self.unmet[key]
        return None if found is None else _never(whole, found)

    @cached_property
    def _without_steps(self) -> tuple[Result | None, frozenset[str]]:
        """A result of zero under the conditions which no step size enters, and the symbols that enter them.

        None where there are none that the rounds enter, or where all whole numbers enter them.
        """
        entering = {c: dependencies(symbol_names(c.left, c.right), self.form.derived) for c in self.form.conditions}
        kept = {c: names for c, names in entering.items() if not names & {*self.steps}}
        names = frozenset[str]().union(*kept.values())
        if self.counter.name not in names or names >= {*self.ladders}:
            return None, names
        some = Condition(self.counter.symbol, ">=", sp.Integer(1), "some rounds")
        form = replace(self.form, terms=(Term("nothing", sp.Integer(0)),), conditions=(*kept, some))
        return replace(self.result, forms=(form,), default=form.name), names

    def _there(self, known: Mapping[str, Constant], count: float, within: Mapping[str, tuple[float, float]]):
        """The bound after so many rounds, at the best step sizes there."""
        there = {**known, self.counter.name: Constant(count, "given", "chosen")}
        if not self.steps:
            return evaluate(self.result, there, form=self.form.name, strict=False)
        best = optimize(self.result, there, self.steps, within=within, form=self.form.name, effort=EFFORT)
        return best.evaluation if isinstance(best, Minimum) else None

    def _goal(self, costs: Costs) -> float:
        """What is to be least; the rounds, where its cost is not known."""
        goal = vars(costs)[self.question.minimize]
        return costs.rounds if goal is None else goal

    def costs(self, known: Mapping[str, Constant], counted: int) -> Costs:
        """What so many rounds (or iterations) cost with these constants."""
        cost: Known = self.question.cost
        c = {"number_bits": 32.0, **self.numbers(known), **cost}
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

    def run(self) -> Choice:
        """The best choice of whole numbers; what else was tried is kept."""
        ladders = self.ladders
        every = [dict(zip(ladders, one, strict=True)) for one in product(*ladders.values())]
        if not ladders:
            return self.choice({})
        self._estimate(every)
        best, before = self._cheapest(), np.inf
        while best is not None and best.goal < before:
            before = best.goal
            self._estimate(
                {**one.whole, name: value}
                for one in self.curve or (best,)
                for name, rungs in ladders.items()
                if not self.is_supplied(name) and (one.whole == best.whole or name != self.workload.local_steps)
                for value in ladder_points(rungs, one.whole[name])
            )
            best = self._cheapest()
        for choice in sorted(self.estimated.values(), key=lambda choice: choice.goal)[:MOST_SEARCHED]:
            if self.tried and self.best().goal <= choice.goal:
                break
            self.choice(choice.whole)
        if not any(choice.costs is not None for choice in self.tried.values()):
            self._search_all(every)
        return self.best()

    def _search_all(self, every: Iterable[dict[str, int]]) -> None:
        """Search every choice until one is undecided; none where another number of local steps excludes it."""
        excluded: set[tuple[int, ...]] = set()
        for whole in every:
            others = tuple(value for name, value in whole.items() if name != self.workload.local_steps)
            if others in excluded:
                continue
            choice = self.choice(whole)
            if choice.status == "undecided":
                break
            if np.isfinite(choice.floor) and self._excludes_all_local_steps(whole):
                excluded.add(others)

    def _excludes_all_local_steps(self, whole: Mapping[str, int]) -> bool:
        """Whether interval arithmetic excludes the target for all numbers of local steps in their range at once."""
        name = self.workload.local_steps
        rungs = self.ladders.get(name, ())
        if len(rungs) < 2:
            return False
        ranges = [self.ranges(self.constants({**whole, name: rung})) for rung in (rungs[0], rungs[-1])]
        known = {symbol: c for symbol, c in self.constants(whole).items() if symbol != name}
        try:
            partial = leave_free(
                compiled_form(self.result, self.form), known, [*self.steps, name, self.counter.name], symbolic=True
            )
        except FedboundsError:
            return False
        ends = {symbol: (min(r[symbol][0] for r in ranges), max(r[symbol][1] for r in ranges)) for symbol in ranges[0]}
        box = {**ends, name: (float(rungs[0]), float(rungs[-1]))}
        effort = EvaluationBudget(EXCLUSION)
        return least_possible_rounds(partial, self.counter.name, self.question.target, box, effort) > LARGEST_COUNT

    def _cheapest(self) -> Choice | None:
        """The choice with the cheapest estimate; None where none reaches the target."""
        return min(self.estimated.values(), key=lambda choice: choice.goal, default=None)

    def _estimate(self, choices: Iterable[dict[str, int]]) -> None:
        """Note for these whole numbers a number of rounds that reaches the target, and what it costs."""
        new = [whole for whole in choices if tuple(whole.values()) not in self.estimates]
        self.estimates |= {tuple(whole.values()): np.inf for whole in new}
        alike: dict[frozenset[str], list[tuple[dict[str, int], dict[str, Constant]]]] = {}
        for whole in new:
            if self._violated(whole) is None:
                known = self.constants(whole)
                alike.setdefault(frozenset(known), []).append((whole, known))
        for pairs in alike.values():
            for start in range(0, len(pairs), AT_ONCE):
                self._estimate_alike(pairs[start : start + AT_ONCE])

    def _estimate_alike(self, pairs: Sequence[tuple[dict[str, int], dict[str, Constant]]]) -> None:
        """As `_estimate`, for whole numbers with their constants, which have the same symbols."""
        known = [self._for_all_clients(one) for _, one in pairs]
        every = [self._with_derived(one) for one in known]
        divisible = filter(None, map(divisibility_pair, self.form.conditions))
        divisor = next((S for T, S in divisible if self.counter.name == T), "")
        legal = {
            name: (domain.low, domain.high) for name in self.steps if (domain := self.result.notation[name].domain)
        }
        ranges = [[{**legal, **self.ranges(one)}[name] for name in self.steps] for one in known]
        local = [whole.get(self.workload.local_steps, 0) for whole, _ in pairs]
        found = RoundsEstimates(
            compiled_form(self.result, self.form),
            self.question.target,
            self.counter.name,
            known,
            self.steps,
            np.array(ranges, dtype=float).reshape(len(known), len(self.steps), 2),
            np.array([float(one[divisor].value) if divisor in one else 1.0 for one in known]),
            np.array([self._goal(self.costs(one, MANY)) / MANY for one in every]),
            np.unique(local, return_inverse=True)[1],
        ).run()
        for (whole, _), one, count in zip(pairs, every, found.tolist(), strict=True):
            if np.isfinite(count):
                costs = self.costs(one, int(count))
                self.estimates[tuple(whole.values())] = count
                self.estimated[tuple(whole.values())] = Choice(whole, costs, self._goal(costs), least=False)

    def _for_all_clients(self, known: dict[str, Constant]) -> dict[str, Constant]:
        """The constants, with one number for all clients as one for each."""
        numbers = self.numbers(known)
        return {
            name: replace(c, value=numbers[name]) if self.result.notation[name].shape else c
            for name, c in known.items()
        }

    def _with_derived(self, known: dict[str, Constant]) -> dict[str, Constant]:
        """The constants with those that follow from them and that costs may need, where they can be computed."""
        ends = {name: Constant(1.0, "given") for name in (*self.steps, self.counter.name)}
        try:
            return resolve(compiled_form(self.result, self.form), {**ends, **known})
        except FedboundsError:
            return known

    def is_supplied(self, name: str) -> bool:
        """Whether the user's participation says which values are worth a try."""
        return self.result.notation[name].concept == "interval" and self.question.participation is not None

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
        for choice in {**self.estimated, **self.tried}.values():
            steps = choice.whole.get(name)
            if steps is not None and choice.costs is not None:
                best[steps] = min(best.get(steps, choice), choice, key=lambda one: one.goal)
        return tuple(best[steps] for steps in sorted(best))


def _never(whole: Mapping[str, int], answer: Never) -> Choice:
    floor = np.inf if np.isnan(answer.floor) else answer.floor
    return Choice(whole, None, np.inf, why=answer.why, status="never", floor=floor)


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
