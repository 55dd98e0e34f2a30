r"""The high-probability forms of Propositions 4.6 and 4.7, with exact distributions.

N = 2 clients with weights $\frac12\pm h$ by a fair coin in each round: a window's left-hand side of (7) is
$d^2(2h)^2(2X/P-1)^2$ with X binomial, rounds and windows independent, and (15) is an equality. The measured left side
is the probability that the claimed bound fails, over all K windows at once or for their average; the right side is c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb
from fedbounds.empirical.falsification.instances.ranges import Range, counts
from fedbounds.empirical.falsification.instances.sides import Sides, Trial


@dataclass(frozen=True, eq=False)
class FairCoins(Population):
    """B settings of two clients that toss for their weights."""

    measured: ClassVar[LeftSide] = "exact law"

    interval: Annotated[np.ndarray, counts()]  # P, (B,)
    windows: Annotated[np.ndarray, counts()]  # K, (B,)
    failure: Annotated[np.ndarray, Range(Domain(0, 1, low_open=True, high_open=True))]  # c, (B,)
    swing: Annotated[np.ndarray, Range(Domain(0, 0.5, low_open=True))]  # h in (0, 1/2], (B,)

    def mutated(self, rng: np.random.Generator) -> Self:
        return replace(
            self,
            interval=np.clip(np.rint(perturb(self.interval * 1.0, rng)), 1, self.interval.max()).astype(int),
            windows=np.clip(np.rint(perturb(self.windows * 1.0, rng)), 1, self.windows.max()).astype(int),
            failure=np.clip(perturb(self.failure, rng), 1e-4, 0.999),
            swing=np.minimum(perturb(self.swing, rng), 0.5),
        )

    def constants(self) -> dict[str, np.ndarray]:
        """Those of the propositions' forms, with d = 1, (B, 1)."""
        h, one = self.swing, np.ones(len(self))
        found = {"N": 2 * one, "d": one, "P": self.interval * one, "c": self.failure, "S": one, "theta": 0.9 * one}
        found |= {
            "T": self.interval * self.windows * one,
            "upsilon": h,
            "upsilonhat": h,
            "windowvar": h**2 / self.interval,
        }
        return {name: value[:, None] for name, value in found.items()}


def failure_of_all(z: FairCoins, bound: np.ndarray) -> np.ndarray:
    """The probability that one of the K windows is above the bound, (B,)."""
    one = np.array([_window(z, b, bound[b]) for b in range(len(z))])
    with np.errstate(divide="ignore"):  # a window that is surely above: log(0)
        return -np.expm1(z.windows * np.log1p(-np.minimum(one, 1)))


def _window(z: FairCoins, b: int, bound: float) -> float:
    values, law = _squares(int(z.interval[b]))
    return float(law[(2 * z.swing[b]) ** 2 * values / z.interval[b] ** 2 > bound * (1 + 1e-12)].sum())


def _squares(P: int) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers $(2X-P)^2$ and their probabilities."""
    x = np.arange(P + 1)
    return (2 * x - P) ** 2, np.array([comb(P, int(k)) for k in x]) / 2**P


def failure_of_average(z: FairCoins, bound: np.ndarray) -> np.ndarray:
    """The probability that the average over the K windows is above the bound, (B,)."""
    return np.array([_average(z, b, bound[b]) for b in range(len(z))])


def _average(z: FairCoins, b: int, bound: float) -> float:
    P, K = int(z.interval[b]), int(z.windows[b])
    values, law = _squares(P)
    one = np.zeros(P**2 + 1)
    np.add.at(one, values, law)
    total = np.ones(1)
    for _ in range(K):
        total = np.convolve(total, one)
    average = (2 * z.swing[b]) ** 2 * np.arange(len(total)) / (K * P**2)
    return float(total[average > bound * (1 + 1e-12)].sum())


def tail_sides(claim: Claim, z: FairCoins) -> Sides:
    """The probability of failure against c."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    names = {a.name for a in claim.assumptions}
    # by construction: coins are fair and independent, the weights 1/2 + h and 1/2 - h
    unknown = names - {"bounded-divergence", "unbiased-sampling", "independent-rounds", "strongly-mixing", "weights"}
    unknown -= {"window-variance", "weights-at-most", "jointly-independent-rounds"}  # no weight is above 1 = 1/S
    values = z.constants()
    parts = compile_form(subject.form).parts(values)
    bound = np.broadcast_to(sum(parts.terms), (len(z), 1))[:, 0]
    average = (subject.form.measure or subject.result.measure).of.startswith("average")
    left = (failure_of_average if average else failure_of_all)(z, bound)
    covered = np.logical_and.reduce([np.full((len(z), 1), not unknown), *parts.holds])
    unmet = f"not checkable here: {', '.join(sorted(unknown))}" if unknown else ""
    sides, met = {"probability": z.failure[:, None]}, {name: name not in unknown for name in names}
    return Sides(left[:, None], sides, covered, 1e-13, unmet, z.describe, values, met)


def draw_coins(rng: np.random.Generator, B: int, most_windows: int, longest: int) -> FairCoins:
    """Random settings."""
    return FairCoins(
        rng.integers(1, longest + 1, size=B),
        rng.integers(1, most_windows + 1, size=B),
        10.0 ** rng.uniform(-2, -0.1, size=B),
        np.where(rng.random(B) < 0.5, 0.5, rng.uniform(0.01, 0.5, size=B)),
    )


def draw_all(claim: Claim, cells: int) -> Iterator[FairCoins]:
    """Random windows, probabilities and weights; few and short windows where an average must be convolved."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    average = (subject.form.measure or subject.result.measure).of.startswith("average")
    yield draw_coins(np.random.default_rng(53), 4 * cells, *((6, 12) if average else (300, 60)))


TAILS = Trial(draw_all, tail_sides)
