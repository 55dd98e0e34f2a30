"""Adversarial search: from the worst of many random instances, climb in measured/bound.

A random neighbor replaces an instance if its score is higher; an instance that violates the claim's hypotheses scores
minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.empirical.falsification.instances.population import Population
from fedbounds.empirical.falsification.instances.sides import InstanceFinding, InstanceTest, Sides, examine

P = TypeVar("P", bound=Population)
Score = Callable[[Sides], np.ndarray]


class SearchEffort(NamedTuple):
    """The effort of a search."""

    cells: int  # shapes of random instances, about 40 of each
    climbers: int  # from how many populations, those with the worst instances, a climb starts
    generations: int  # how often each instance tries a neighbor
    longest: int  # the most steps of a population from which a climb starts
    # claims with at most so many terms are also searched for the smallest detected mutation of each term
    terms: int = 0


LIGHT = SearchEffort(cells=30, climbers=1, generations=8, longest=60)
DEEP = SearchEffort(cells=120, climbers=5, generations=60, longest=350, terms=8)


def ratio(sides: Sides) -> np.ndarray:
    """The score of an instance: its largest measured/bound, (B,)."""
    return sides.ratios().max(axis=1)


def exposure(term: str) -> Score:
    """The score of one term: the largest factor in front of it that the instance contradicts."""

    def score(sides: Sides) -> np.ndarray:
        with np.errstate(all="ignore"):
            total, left = sides.total(), sides.left - sides.rounding
            here = np.broadcast_to(sides.terms[term], left.shape)
            seen = np.broadcast_to(sides.covered, left.shape) & (here > 1e-12 * total)
            return np.where(seen, (left - total + here) / here, -np.inf).max(axis=1)

    return score


def climb(start: P, sides: Callable[[P], Sides], generations: int, rng: np.random.Generator, score: Score = ratio) -> P:
    """The population after each instance has climbed."""
    here, best = start, score(sides(start))
    for _ in range(generations):
        there = here.mutate(rng)
        with np.errstate(all="ignore"):
            found = score(sides(there))
        better = found > best
        if better.any():
            here, best = here.replace_where(better, there), np.maximum(best, found)
    return here


def search_population(
    claim: Claim, test: InstanceTest, effort: SearchEffort = LIGHT, seed: int = 61
) -> InstanceFinding:
    """Random populations, then climbs from the worst of them."""
    drawn = [(population, test.sides(claim, population)) for population in test.draw(claim, effort.cells)]
    return examine(
        [sides for _, sides in drawn] + _climb_worst(claim, test, drawn, effort, np.random.default_rng(seed))
    )


def _climb_worst(
    claim: Claim,
    test: InstanceTest,
    drawn: list[tuple[Any, Sides]],
    effort: SearchEffort,
    rng: np.random.Generator,
) -> list[Sides]:
    """The sides at the end of each climb; none where instances have no neighbors."""
    able = [(z, sides) for z, sides in drawn if "mutate" in type(z).__dict__ and z.cost <= effort.longest]
    goals: list[tuple[Score, Iterable[Any]]] = [(ratio, _highest_scores(able, ratio, effort.climbers))]
    if able and len(able[0][1].terms) <= effort.terms:
        for term in able[0][1].terms:
            goals.append((exposure(term), _highest_scores(able, exposure(term), max(1, effort.climbers // 4))))
    ends = []
    for score, starts in goals:
        for z in starts:
            end = climb(z, lambda y: test.sides(claim, y), effort.generations, rng, score)
            ends.append(test.sides(claim, end))
    return ends


def _highest_scores(drawn: list[tuple[P, Sides]], score: Score, number: int) -> list[P]:
    """The populations with the highest scores below one."""
    scored = [(float(score(sides).max()), k) for k, (_, sides) in enumerate(drawn)]
    open_ = sorted((s for s in scored if -np.inf < s[0] < 1 - 1e-6), reverse=True)
    return [drawn[k][0] for _, k in open_[:number]]
