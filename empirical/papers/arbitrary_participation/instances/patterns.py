r"""One window at all points at once: uniform one-client rounds, and functions that take every balanced pattern.

$F_n=f+h_n$ on a line, where $h_n'$ takes every pattern of N signs with sum zero at some point and interpolates in
between, so that d = 1. At the worst point the N/2 clients with the most rounds stand against the others: the root of
the largest left-hand side of (7) is $\sum_n|k_n-m|/P$ for the numbers of rounds $k_n$ and an upper median m of them.
Its law is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, factorial
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb
from fedbounds.empirical.falsification.instances.ranges import Range, counts
from fedbounds.empirical.falsification.instances.sides import Sides, Trial

# By construction: one client takes part, drawn uniformly in every round anew, and d = 1
KNOWN = {"bounded-divergence", "unbiased-sampling", "independent-rounds", "jointly-independent-rounds", "weights"}


@lru_cache(maxsize=256)
def law_of_largest(clients: int, rounds: int) -> tuple[Fraction, ...]:
    r"""The probabilities that $\sum_n|k_n-m|$ is 0, 1, ..., P, for an even number of clients."""
    N, P, half = clients, rounds, clients // 2

    def powers(series: list[int], largest: int) -> list[list[int]]:
        found = [[int(k == 0) for k in range(P + 1)]]
        for _ in range(largest):
            found.append([sum(comb(k, i) * found[-1][i] * series[k - i] for i in range(k + 1)) for k in range(P + 1)])
        return found

    ways = [0] * (P + 1)
    for m in range(P // half + 1):
        below = powers([int(k < m) for k in range(P + 1)], half)
        at = powers([int(k == m) for k in range(P + 1)], N)
        above = powers([int(k > m) for k in range(P + 1)], half - 1)
        for a, b in product(range(half + 1), range(1, N + 1)):
            g = N - a - b
            if a + b <= half or g < 0:  # the upper median is not m
                continue
            who = factorial(N) // (factorial(a) * factorial(b) * factorial(g))
            for low in range(P - b * m + 1):
                high = P - b * m - low
                count = comb(P, low) * comb(P - low, high) * below[a][low] * at[b][b * m] * above[g][high]
                if count:
                    ways[(a * m - low) + (high - g * m)] += who * count
    return tuple(Fraction(w, N**P) for w in ways)


@dataclass(frozen=True, eq=False)
class Patterns(Population):
    """B settings of one client a round."""

    measured: ClassVar[LeftSide] = "exact law"

    clients: Annotated[np.ndarray, Range(Domain(2, 50, integer=True))]  # N, even, (B,)
    interval: Annotated[np.ndarray, counts(most=150)]  # P, (B,)
    failure: Annotated[np.ndarray, Range(Domain(0, 1, low_open=True, high_open=True))]  # c, (B,)

    def rules(self) -> dict[str, np.ndarray]:
        return {"the number of clients is even": self.clients % 2 == 0}

    def mutated(self, rng: np.random.Generator) -> Self:
        interval = np.clip(np.rint(perturb(self.interval * 1.0, rng)), 1, self.interval.max()).astype(int)
        return replace(self, interval=interval, failure=np.clip(perturb(self.failure, rng), 1e-4, 0.999))

    def constants(self) -> dict[str, np.ndarray]:
        """Those of Proposition 4.7's forms, (B, 1)."""
        N, one = self.clients * 1.0, np.ones(len(self))
        found = {"N": N, "d": one, "P": self.interval * one, "T": self.interval * one, "c": self.failure}
        found["upsilon"] = np.sqrt(N - 1) / N
        return {name: value[:, None] for name, value in found.items()}

    def failure_of(self, bound: np.ndarray) -> np.ndarray:
        """The probability that the largest left-hand side is above the bound, (B,)."""
        found = []
        for N, P, most in zip(self.clients, self.interval, bound, strict=True):
            law = law_of_largest(int(N), int(P))
            found.append(float(sum(p for k, p in enumerate(law) if k**2 > most * (1 + 1e-12) * int(P) ** 2)))
        return np.array(found)


def pattern_sides(claim: Claim, z: Patterns) -> Sides:
    """The probability of failure against c."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    names, values = {a.name for a in claim.assumptions}, z.constants()
    unknown = names - KNOWN
    parts = compile_form(subject.form).parts(values)
    bound = np.broadcast_to(sum(parts.terms), (len(z), 1))[:, 0]
    covered = np.logical_and.reduce([np.full((len(z), 1), not unknown), *parts.holds])
    unmet = f"not checkable here: {', '.join(sorted(unknown))}" if unknown else ""
    left, met = z.failure_of(bound)[:, None], {name: name in KNOWN for name in names}
    return Sides(left, {"probability": z.failure[:, None]}, covered, 1e-13, unmet, z.describe, values, met)


def draw_patterns(claim: Claim, cells: int) -> Iterator[Patterns]:
    """Two to eight clients and short windows."""
    rng, B = np.random.default_rng(57), 4 * cells
    yield Patterns(2 * rng.integers(1, 5, size=B), rng.integers(1, 25, size=B), 10.0 ** rng.uniform(-2, -0.1, size=B))


PATTERNS = Trial(draw_patterns, pattern_sides)
