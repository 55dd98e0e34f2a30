"""Whether some choice of the free constants reaches a target, asked of one number of rounds after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.evaluation.program import holds
from fedbounds.bounds.search.effort import EvaluationBudget
from fedbounds.bounds.search.integers import MOST
from fedbounds.bounds.search.optimize import Answer, Functions, Minimum, NotAttained, Ranges, choose
from fedbounds.bounds.search.step_sizes import StepSizeProblem
from fedbounds.bounds.theory.result import Form, Result

REMEMBERED = 3  # choices that reached the target before, and are tried first


@dataclass
class Target:
    """A bound to bring below epsilon by a choice of constants; what reached it at other rounds is tried again first.

    Attributes:
        counter: the letter of the rounds.
        over: the letters that are chosen.
        choices: those that reached it, letter to value, the latest first.
    """

    result: Result
    form: Form
    counter: str
    epsilon: float
    constants: Mapping[str, Value]
    over: Sequence[str]
    within: Ranges
    functions: Functions
    effort: EvaluationBudget
    choices: list[Mapping[str, float]] = field(default_factory=list)

    def best(self, count: float, fixed: Mapping[str, float] | None = None) -> Answer:
        """The best choice for so many rounds, with some of them fixed."""
        fixed = fixed or {}
        return choose(
            self.result,
            {**self.constants, **fixed, self.counter: count},
            [name for name in self.over if name not in fixed],
            within={name: ends for name, ends in self.within.items() if name not in fixed},
            form=self.form.name,
            functions=self.functions,
            effort=self.effort,
        )

    def reaches(self, count: float) -> bool:
        """Whether some choice does."""
        return self.quickly(count) or self._noted(self.best(count))

    def roughly(self, count: float) -> bool:
        """Whether one search over all of them at once, with whole numbers rounded, finds a choice that does."""
        if self.quickly(count):
            return True
        quantities = [self.result.notation[name] for name in self.over]
        most = {q.name: (q.domain.low, min(q.domain.high, MOST)) for q in quantities if q.domain.integer}
        ranges = {**most, **self.within}
        known = {**self.constants, self.counter: count}
        reals = tuple(q for q in quantities if q.name not in most)
        problem = StepSizeProblem(self.result, self.form, known, ranges, {}, reals, self.effort)
        return self._noted(problem.search(known, {}, quantities))

    @property
    def mixed(self) -> bool:
        """Whether whole numbers and step sizes are chosen together, and everything else is a number."""
        whole = [self.result.notation[name].domain.integer for name in self.over]
        return any(whole) and not all(whole) and not self.functions

    def quickly(self, count: float) -> bool:
        """Whether one of the choices that did before does again, or one with the same whole numbers."""
        if self.functions:
            return False
        for choice in self.choices:
            self.effort.spend(1)
            there = evaluate(
                self.result, {**self.constants, **choice, self.counter: count}, form=self.form.name, strict=False
            )
            if bool(there.valid) and bool(holds(there.value, "<=", np.asarray(self.epsilon))):
                return True
        if not self.mixed:
            return False
        whole = [name for name in self.over if self.result.notation[name].domain.integer]
        settings = [{name: choice[name] for name in whole} for choice in self.choices]
        return any(self._noted(self.best(count, one)) for i, one in enumerate(settings) if one not in settings[:i])

    def _noted(self, answer: Answer) -> bool:
        """Whether this answer reaches it; then its choice is remembered."""
        if isinstance(answer, NotAttained):
            return answer.infimum < self.epsilon
        if not isinstance(answer, Minimum) or not holds(np.asarray(answer.value), "<=", np.asarray(self.epsilon)):
            return False
        if all(name in answer.evaluation.constants for name in self.over):
            choice = {name: float(answer.evaluation.constants[name].value) for name in self.over}
            self.choices[:] = [choice, *(c for c in self.choices if c != choice)][:REMEMBERED]
        return True
