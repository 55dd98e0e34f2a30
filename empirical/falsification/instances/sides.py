"""Both sides of a claim on many instances, and what follows about the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.audit.claim import Claim

ROUNDING = 1e-9  # relative excess that is a violation


@dataclass(frozen=True)
class Sides:
    """The two sides of a claim, on B instances at X places each."""

    left: np.ndarray  # measured, (B, X)
    terms: Mapping[str, np.ndarray]  # of the right-hand side, by name, each (B, X) or broadcasting to it
    covered: np.ndarray  # whether hypotheses and conditions hold, (B, X) or broadcasting to it
    # absolute error of the left side where large numbers cancel, broadcasting to (B, X)
    rounding: np.ndarray | float = 0.0
    unmet: str = ""  # for hypotheses that no instance here meets, or that cannot be checked here, the reason
    describe: Callable[[int], dict[str, Any]] = field(default=lambda _: {})  # all numbers of one instance
    # the symbols of the right-hand side and of the conditions, (B, 1) or (B, X); clients last, if vectors
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    # which of its assumptions each instance meets, (B,) or for all
    met: Mapping[str, np.ndarray | bool] = field(default_factory=dict)

    def total(self) -> np.ndarray:
        """The right-hand side, (B, X)."""
        return np.broadcast_to(sum(self.terms.values(), start=np.zeros(1)), self.left.shape)

    def ratios(self) -> np.ndarray:
        """Left over right where covered, minus infinity elsewhere, zero where both sides vanish to rounding, (B, X)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            left = self.left - self.rounding
            found = np.where(left <= 0, 0.0, left / self.total())
        return np.where(np.broadcast_to(self.covered, self.left.shape), np.nan_to_num(found, posinf=np.inf), -np.inf)

    def scaled(self, term: str, factor: float) -> Sides:
        """The same claim with a mutation: one term's constant times a factor."""
        return replace(self, terms={**self.terms, term: self.terms[term] * factor})


@dataclass(frozen=True)
class InstanceFinding:
    """The finding of many instances about one claim."""

    covered: int  # how many instances meet the hypotheses
    worst: float  # the largest left over right
    # for each term, the largest factor in front of it alone that some instance contradicts; at most 0 if the term may
    # even be left out
    exposed: Mapping[str, float]
    instance: Mapping[str, Any]  # of the worst ratio, with all its numbers and both sides
    unmet: str = ""  # why no instance is covered, if none is

    @property
    def refuted(self) -> bool:
        """Whether a covered instance has the left side above the right."""
        return self.worst > 1 + ROUNDING

    @property
    def tightness(self) -> float:
        """The largest ratio, at most 1; 1 where every mutation is detected (an equality, or 0 on the right)."""
        return 1.0 if set(self.exposed) <= {"0"} else float(min(max(self.worst, 0.0), 1.0))

    def sensitivity(self) -> str:
        """The smallest mutation of each term that would have been detected."""
        if not self.exposed:
            return "any: both sides are equal to rounding"
        factors = sorted(((name[:48], factor) for name, factor in self.exposed.items()), key=lambda item: -item[1])
        return ", ".join(f"{name} x{factor:.2g}" if factor > 0 else f"{name} none" for name, factor in factors)


def exposed_factors(sides: Sides) -> dict[str, float]:
    """For each term the largest factor in front of it alone that some covered instance contradicts; 0 if none."""
    with np.errstate(invalid="ignore"):  # where both are infinite, which no instance that is covered is
        total, left = sides.total(), sides.left - sides.rounding
    covered, factors = np.broadcast_to(sides.covered, left.shape), {}
    for name, term in sides.terms.items():
        here = np.broadcast_to(term, left.shape)
        seen = covered & (here > 1e-12 * total) & (here > 0)
        factor = (left[seen] - (total[seen] - here[seen])) / here[seen]
        factors[name] = float(np.clip(factor.max(), 0, 1)) if factor.size else 0.0
    return factors


def examine(every: Iterable[Sides]) -> InstanceFinding:
    """The worst ratio, the most sensitive terms and the instance to replay, over all batches."""
    covered, worst, instance, unmet = 0, -np.inf, {}, ""
    exposed: dict[str, float] = {}
    for sides in every:
        ratios = sides.ratios()
        some = np.isfinite(ratios) | (ratios == np.inf)
        if not some.any():
            unmet = unmet or sides.unmet
            continue
        covered += int(some.reshape(len(some), -1).any(axis=1).sum())
        for name, factor in exposed_factors(sides).items():
            exposed[name] = max(exposed.get(name, 0.0), factor)
        if ratios.max() > worst:
            worst = float(ratios.max())
            b, x = np.unravel_index(int(ratios.argmax()), ratios.shape)
            both = {"left": float(sides.left[b, x]), "right": float(sides.total()[b, x]), "place": int(x)}
            instance = both | sides.describe(int(b))
    return InstanceFinding(
        covered, worst, exposed, instance, "" if covered else unmet or "no instance meets its hypotheses"
    )


class InstanceTest(NamedTuple):
    """How a claim is tested on instances."""

    # random populations for a claim, about 40 times as many instances as the number given
    draw: Callable[[Claim, int], Iterable[Any]]
    sides: Callable[[Claim, Any], Sides]  # both sides of a claim on a population
    implied: bool = False  # whether the premises are inserted unchecked, so that only the conclusion is tested
    family: Any = None  # the known extremal runs of a claim, with the same sides; None if it has none
