"""What a search may cost: a number of evaluations, never of seconds, so that answers do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fedbounds.bounds.errors import FedboundsError

EVALUATIONS = 3000  # of a form of usual length, at an effort of 1: some seconds
USUAL = 150  # parts of its expressions; of a longer form there are fewer evaluations
QUESTION = 10  # evaluations that one choice of step sizes is worth before anything is searched
AT_ONCE = 4096  # settings that count as one evaluation
ENCLOSURE, SOLUTION = 4, 5  # evaluations that enclosing a few hundred blocks, or solving a convex problem, is worth
MOST = 1e6  # times the usual effort
Watch = Callable[[int, int], None]  # (evaluations so far, evaluations allowed)


class Exhausted(Exception):
    """The evaluations are used up; caught by the search, which says how far it came."""


@dataclass
class EvaluationBudget:
    """The evaluations that one question may cost, and those that it has cost so far.

    Attributes:
        allowed: how many.
        watch: told after each spending, e.g. a progress bar.
        spent: how many are used.

    Example:
        >>> effort = EvaluationBudget.of(0.5)
        >>> effort.spend(3)
        >>> effort.spent, effort.allowed
        (3, 1500)
    """

    allowed: int
    watch: Watch | None = field(default=None, repr=False)
    spent: int = 0

    @staticmethod
    def of(effort: float, watch: Watch | None = None, length: int = 0) -> EvaluationBudget:
        """This multiple of the usual evaluations of a form with so many parts."""
        if not isinstance(effort, int | float) or isinstance(effort, bool) or not 0 < effort <= MOST:
            raise FedboundsError(f"effort = {effort} must be a number in (0, {MOST:g}]; 1 is usual, 10 searches longer")
        return EvaluationBudget(int(np.ceil(effort * EVALUATIONS / max(1.0, length / USUAL))), watch)

    def spend(self, evaluations: int) -> None:
        """Use so many evaluations."""
        self.spent += evaluations
        if self.watch is not None:
            self.watch(min(self.spent, self.allowed), self.allowed)
        if self.spent > self.allowed:
            raise Exhausted


def passes(settings: int) -> int:
    """How many evaluations so many settings at once count for."""
    return 1 + settings // AT_ONCE
