"""Measures: what a bound bounds, as objects that know when they may be compared.

Two bounds can be compared only if they bound the same thing, or if the left-hand side of one is never larger than
that of the other. The only relation taken for granted is min <= average over the same index set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from fedbounds.bounds.theory.symbols import GRADIENT, Dimension

Aggregate = Literal["minimum", "average", "supremum", "last", "average iterate", "single"]
EXPECTED = "-expected"  # ends the key of a result in expectation over participation that its paper states given it
PARTICIPATION = " and participation"  # ends an expectation over participation, too
IndexSet = Literal["rounds", "sync points", "window starts", "local steps", "windows", "iterations", "none"]


@dataclass(frozen=True)
class Measure:
    r"""The left-hand side of a bound.

    Args:
        aggregate: how the values along the run become one number.
        over: the index set.
        of: what is measured at each index, in words.
        latex: the whole left-hand side.
        dimension: its unit.
        expectation: what is averaged out ("" for nothing).
        given: what is held fixed ("" for nothing).
        signed: whether it may be negative, like the increase of an objective.
        lower: whether the result bounds it from below, for some problem of its class.

    Example:
        >>> least = Measure("minimum", "rounds", "squared gradient norm of f", r"\min_t E\|\nabla f(x_t)\|^2",
        ...                 GRADIENT**2, "gradient noise", "participation")
        >>> least.is_at_most(least.averaged())
        True
        >>> least.averaged().is_at_most(least)
        False
    """

    aggregate: Aggregate
    over: IndexSet
    of: str
    latex: str
    dimension: Dimension
    expectation: str = ""
    given: str = ""
    signed: bool = False
    lower: bool = False

    @property
    def unsquared(self) -> str:
        """What is squared on the left-hand side, in words; "" if nothing is.

        Example:
            >>> Measure("average", "rounds", "squared gradient norm of f", "", GRADIENT**2).unsquared
            'gradient norm of f'
        """
        return self.of.removeprefix("squared ") if self.of.startswith("squared ") else ""

    def norm_text(self, value: float) -> str:
        """A value of the left-hand side as one of the norm, in words; "" if nothing is squared.

        Example:
            >>> Measure("average", "rounds", "squared gradient norm of f", "", GRADIENT**2).norm_text(0.01)
            'gradient norm of f: 0.1'
        """
        return f"{self.unsquared}: {value**0.5:.6g}" if self.unsquared and value >= 0 else ""

    @property
    def label(self) -> str:
        """What stands on an axis: the left-hand side without its expectation, and its unit.

        Example:
            >>> LEAST_GRADIENT.label
            'minimum over rounds of squared gradient norm of f (objective\u00b2/parameter\u00b2)'
        """
        return f"{replace(self, expectation='', given='')} ({self.dimension.words})"

    @property
    def sign(self) -> str:
        """The relation of the left-hand side to the bound."""
        return ">=" if self.lower else "<="

    def averaged(self) -> Measure:
        """The same quantity averaged instead of minimized over the same index set."""
        return replace(self, aggregate="average", latex=self.latex.replace(r"\min_t", r"\operatorname{avg}_t"))

    def of_all_clients(self) -> Measure:
        """The same where all clients participate, so that nothing is averaged over participation."""
        return replace(self, expectation=self.expectation.removesuffix(PARTICIPATION))

    def is_at_most(self, other: Measure) -> bool:
        """Whether this left-hand side is never larger than the other, on every run."""
        mine, yours = self._parts() | {"aggregate": ""}, other._parts() | {"aggregate": ""}
        if mine != yours:
            return False
        order = {"minimum": 0, "average": 1, "supremum": 2}
        if self.aggregate == other.aggregate:
            return True
        return self.aggregate in order and other.aggregate in order and order[self.aggregate] < order[other.aggregate]

    def difference(self, other: Measure) -> str:
        """In words, what keeps the two from being the same measure ("" if nothing does).

        Example:
            >>> a = Measure("average", "rounds", "squared gradient norm of f", "", GRADIENT**2, "gradient noise")
            >>> b = Measure("average", "sync points", "squared gradient norm of f", "", GRADIENT**2, "gradient noise")
            >>> a.difference(b)
            'over rounds against over sync points'
            >>> a.difference(replace(a, given="participation"))
            'expectation over gradient noise (no condition) against expectation over gradient noise given participation'
        """
        mine, yours, parts = self._parts(), other._parts(), self.differing(other)
        words = {"index set": "over ", "expectation": "expectation over "}
        if "condition" in parts:  # in one piece with the expectation
            mine["condition"], yours["condition"] = self._expected, other._expected
            parts = tuple(part for part in parts if part != "expectation")
        return "; ".join(f"{words.get(p, '')}{mine[p]} against {words.get(p, '')}{yours[p]}" for p in parts)

    @property
    def _expected(self) -> str:
        """The expectation and its condition in words."""
        condition = f"given {self.given}" if self.given else "(no condition)"
        return f"expectation over {self.expectation or 'nothing'} {condition}"

    def differing(self, other: Measure) -> tuple[str, ...]:
        """Which parts of the two differ: aggregate, index set, quantity, expectation, condition.

        Example:
            >>> LEAST_GRADIENT.differing(AVERAGE_GRADIENT)
            ('aggregate', 'expectation', 'condition')
        """
        yours = other._parts()
        return tuple(part for part, value in self._parts().items() if value != yours[part])

    def _parts(self) -> dict[str, str]:
        return {
            "aggregate": self.aggregate,
            "index set": self.over,
            "quantity": self.of,
            "expectation": self.expectation or "nothing",
            "condition": self.given or "nothing",
            "side": "lower bound" if self.lower else "upper bound",
        }

    def __str__(self) -> str:
        expectation = f", expectation over {self.expectation}" if self.expectation else ""
        given = f" given {self.given}" if self.given else ""
        where = "" if self.aggregate == "single" else f"{self.aggregate} over {self.over} of "
        below = "lower bound on " if self.lower else ""
        return f"{below}{where}{self.of}{expectation}{given}"


def single(
    of: str,
    latex: str,
    dimension: Dimension = GRADIENT**2,
    *,
    expectation: str = "",
    given: str = "",
    signed: bool = False,
) -> Measure:
    """A left-hand side at one point, round, window or interval."""
    return Measure("single", "none", of, latex, dimension, expectation, given, signed)


LEAST_GRADIENT = Measure(
    "minimum",
    "rounds",
    "squared gradient norm of f",
    r"\min_t\mathbb E[\|\nabla f(\mathbf x_t)\|^2\mid\mathcal Q]",
    GRADIENT**2,
    "gradient noise",
    "participation",
)
AVERAGE_GRADIENT = Measure(
    "average",
    "rounds",
    "squared gradient norm of f",
    r"\frac1T\sum_{t<T}\mathbb E\|\nabla f(\mathbf x_t)\|^2",
    GRADIENT**2,
    "gradient noise and participation",
)
