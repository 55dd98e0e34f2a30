r"""Squares of weighted means of vectors: inequalities about data, decided by one identity.

$$\sum_iw_i\|z_i\|^2=\Big\|\sum_iw_iz_i\Big\|^2+\sum_{i<j}w_iw_j\|z_i-z_j\|^2,\qquad w_i\ge0,\ \sum_iw_i=1$$

A `Spread` says which weights and vectors it is about; this reading, and both sides of the statement from their
definitions, are compared on random records of participation in exact arithmetic.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relator
from fedbounds.bounds.audit.verdict import Verdict

MEAN_SQUARE, SQUARED_MEAN, VARIANCE = sp.symbols("mean_square squared_mean variance", nonnegative=True)
MEAN_AXIOM = "a weighted mean is at most the largest of its values"
RECORDS = 40


def limit_claim(paper: str, name: str, text: str, subject: object, lines: Sequence[str], source: str) -> Claim:
    """The claim of a limit."""
    return Claim(f"{paper}/limit/{name}", "limit", text, subject, "\n".join([text, *lines]), source=source)


@dataclass(frozen=True)
class Record:
    """Weights (rounds, clients) that sum to one in every round, and offsets (clients, dimension) that sum to zero."""

    weights: tuple[tuple[Fraction, ...], ...]
    offsets: tuple[tuple[Fraction, ...], ...]


Vector = Sequence[Fraction]


@dataclass(frozen=True)
class Group:
    """Vectors z_i with weights w_i that sum to one."""

    weights: Vector
    vectors: Sequence[Vector]

    def value(self, expression: sp.Expr) -> Fraction:
        """A sum in MEAN_SQUARE, SQUARED_MEAN and VARIANCE, the variance computed from its definition."""
        mean = weighted_sum(self.weights, self.vectors)
        centered = [[x - y for x, y in zip(z, mean, strict=True)] for z in self.vectors]
        values = {SQUARED_MEAN: norm2(mean)}
        for symbol, vectors in ((MEAN_SQUARE, self.vectors), (VARIANCE, centered)):
            values[symbol] = sum((w * norm2(z) for w, z in zip(self.weights, vectors, strict=True)), Fraction(0))
        coefficients = expression.as_coefficients_dict()
        return sum((Fraction(int(c)) * values[cast(sp.Symbol, s)] for s, c in coefficients.items()), Fraction(0))


def weighted_sum(weights: Vector, vectors: Sequence[Vector]) -> list[Fraction]:
    """The weighted sum of vectors."""
    columns = zip(*vectors, strict=True)
    return [sum((w * x for w, x in zip(weights, column, strict=True)), Fraction(0)) for column in columns]


def norm2(vector: Vector) -> Fraction:
    """The squared length."""
    return sum((x * x for x in vector), Fraction(0))


@dataclass(frozen=True, eq=False)
class Spread:
    """An inequality or identity between squares of weighted means."""

    name: str  # its name in the claim's id
    text: str  # the statement in one line
    reading: str  # what the weights and the vectors are
    groups: Callable[[Record], Sequence[Group]]  # the same for one record; the left side is the largest over the groups
    # both sides of the statement from their definitions, for one record
    recomputed: Callable[[Record], tuple[Fraction, Fraction]]
    # left, right: in MEAN_SQUARE, SQUARED_MEAN and VARIANCE (of the z_i under the weights w_i)
    left: sp.Expr = SQUARED_MEAN
    right: sp.Expr = MEAN_SQUARE
    op: Relator = "<="  # "==" or "<="
    # why the right side of the statement is at least `right` in every group; empty if they are equal
    axiom: str = MEAN_AXIOM
    single: bool = False  # whether there is only one z_i in each group, so that the variance is zero
    source: str = ""  # where it stands

    def claim(self, paper: str) -> Claim:
        """The claim, with everything the verdict depends on."""
        lines = [str(self.left), self.op, str(self.right), self.reading, self.axiom, str(self.single)]
        return limit_claim(paper, self.name, self.text, self, lines, self.source)

    def misread(self, record: Record) -> str:
        """How the groups and the definitions differ on a record; empty if they agree."""
        groups, (left, right) = self.groups(record), self.recomputed(record)
        for group in groups:
            if min(group.weights) < 0 or sum(group.weights) != 1 or (self.single and len(group.weights) > 1):
                return f"weights {' '.join(map(str, group.weights))} are no mean"
        said = max(group.value(self.left) for group in groups), max(group.value(self.right) for group in groups)
        if said[0] != left or said[1] > right or (not self.axiom and said[1] != right):
            return f"the groups give {said[0]} {self.op} {said[1]}, the definitions {left} {self.op} {right}"
        return ""


def mean_identity() -> bool:
    r"""Whether this checker's identity holds for any number of vectors, one inner product at a time.

    The coefficients of $\langle z_i,z_i\rangle$ and $\langle z_i,z_j\rangle$ are compared; $\sum_{j\ne i}w_j=1-w_i$.

    Example:
        >>> mean_identity()
        True
    """
    w_i, w_j, z_i, z_j = sp.symbols("w_i w_j z_i z_j")
    pair = sp.Poly(w_i * w_j * (z_i - z_j) ** 2, z_i, z_j)
    mean = sp.Poly((w_i * z_i + w_j * z_j) ** 2, z_i, z_j)
    own = mean.coeff_monomial(z_i**2) + (pair.coeff_monomial(z_i**2) / w_j) * (1 - w_i)
    cross = mean.coeff_monomial(z_i * z_j) + pair.coeff_monomial(z_i * z_j)
    return sp.expand(own - w_i) == 0 and sp.expand(cross) == 0


def try_spread(spread: Spread) -> Verdict:
    """Refuted by a record, proved by a difference without negative coefficients, unknown if the reading is wrong."""
    for count, record in enumerate(records(RECORDS)):
        left, right = spread.recomputed(record)
        if left > right or (spread.op == "==" and left != right):
            weights = "; ".join(" ".join(map(str, row)) for row in record.weights)
            offsets = "; ".join(" ".join(map(str, row)) for row in record.offsets)
            evidence = f"{left} against {right} for record {count}: weights {weights}, offsets {offsets}"
            return Verdict("refuted", "limits", "exact rationals", evidence)
        if misread := spread.misread(record):
            return Verdict("unknown", "limits", "sum of squares", f"record {count} does not fit the reading: {misread}")
    variance = sp.S.Zero if spread.single else VARIANCE
    slack = sp.expand((spread.right - spread.left).subs({MEAN_SQUARE: SQUARED_MEAN + variance, VARIANCE: variance}))
    signs = all(c >= 0 for c in slack.as_coefficients_dict().values())
    if mean_identity() and signs and (spread.op == "<=" or slack == 0):
        evidence = f"{spread.reading}: right - left = {slack}; also on {RECORDS} random records in exact arithmetic"
        return Verdict("proved", "limits", "sum of squares", evidence, (spread.axiom,) if spread.axiom else ())
    return Verdict("survived", "limits", f"{RECORDS} exact records", f"right - left = {slack} has no sign by itself")


def records(count: int) -> Iterator[Record]:
    """Random records in exact arithmetic, with rounds that nobody but one client joins and rounds that all join."""
    source = random.Random(0)
    for _ in range(count):
        clients, rounds, dimension = source.randint(1, 4), source.choice([4, 8, 12]), source.randint(1, 2)
        raw = [[source.choice([0, 0, 1, 2, 5]) for _ in range(clients)] for _ in range(rounds)]
        raw = [row if any(row) else [1, *row[1:]] for row in raw]
        weights = tuple(tuple(Fraction(w, sum(row)) for w in row) for row in raw)
        points = [[source.randint(-5, 5) for _ in range(dimension)] for _ in range(clients)]
        center = [Fraction(sum(column), clients) for column in zip(*points, strict=True)]
        yield Record(weights, tuple(tuple(x - c for x, c in zip(p, center, strict=True)) for p in points))
