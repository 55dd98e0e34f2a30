"""The instances that verify the proof steps of Sharma et al. (2023)."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import lru_cache

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.papers.fed_norm_sgda.proof import PROOFS
from fedbounds.empirical.falsification.instances.sides import InstanceTest
from fedbounds.empirical.papers.fed_norm_sgda.instances import forms
from fedbounds.empirical.papers.fed_norm_sgda.instances.drawing import (
    PopulationShape,
    draw_bounded,
    draw_coupled,
    draw_far,
    draw_kinked,
)
from fedbounds.empirical.papers.fed_norm_sgda.instances.problems import RoundInstances
from fedbounds.empirical.papers.fed_norm_sgda.instances.relations import (
    fresh_sides,
    kind_of,
    measured,
    reading,
    relation_sides,
)

PAPER = "fed-norm-sgda"
SIZES = (  # clients, sampled and local steps: few enough for all outcomes of a round
    (1, 1, 3), (2, 1, 2), (3, 2, 2), (2, 2, 3), (4, 1, 1), (2, 1, 3), (1, 1, 1), (3, 3, 2), (3, 2, 1), (1, 1, 2),
    (2, 2, 2), (4, 3, 1), (3, 2, 3), (3, 1, 1), (4, 2, 2), (2, 1, 1), (3, 1, 3), (4, 4, 1),
)  # fmt: skip

# --- populations -------------------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator, int, PopulationShape], RoundInstances]
ALONE, TWO = PopulationShape(1, 1, 3, 1, 1), PopulationShape(2, 1, 2, 1, 1)
# steps that the adversary climbs from random instances of one shape; where it ends, all steps are tried
GOALS: tuple[tuple[str, Draw, PopulationShape], ...] = (
    ("lemma-b.4/25x-printed", draw_coupled, ALONE),
    ("lemma-b.4/25y-printed", draw_coupled, ALONE),
    ("lemma-b.4/B.4-printed", draw_coupled, ALONE),
    ("lemma-b.3/15-printed", draw_coupled, ALONE),
    ("lemma-b.3/15", draw_coupled, ALONE),
    ("lemma-b.5/43-sharp", draw_coupled, ALONE),
    ("lemma-b.7/Lemma B.7", draw_coupled, TWO),
    ("theorem-1/41-sharp", draw_coupled, TWO),
)
SNAPSHOT_GOALS: tuple[tuple[str, Draw, PopulationShape], ...] = (
    ("lemma-c.2/(37)-printed", draw_coupled, ALONE),
    ("lemma-c.2/67x-printed", draw_bounded, ALONE),
    ("lemma-c.2/C.2-sharp-printed", draw_bounded, ALONE),
    ("lemma-c.2/25y-printed", draw_far, ALONE),
    ("lemma-c.1/C.1", draw_bounded, ALONE),
    ("theorem-4/49-round", draw_bounded, ALONE),
)
PATIENCE = {"lemma-c.2/C.2-sharp-printed": 4}  # times as many generations: it fails late on the way


def shapes(rng: np.random.Generator, number: int) -> Iterator[PopulationShape]:
    """One after the other of the sizes, in one or two dimensions."""
    for k in range(number):
        yield PopulationShape(*SIZES[k % len(SIZES)], int(rng.integers(1, 3)), int(rng.integers(1, 3)))


def goal(name: str) -> Claim:
    """A step's claim by "proof/step"."""
    return next(
        claim
        for proof in PROOFS
        if f"{PAPER}/{name}".startswith(f"{proof.id}/")
        for claim in proof.claims()
        if claim.id == f"{PAPER}/{name}"
    )


def climb_ratios(claim: Claim, z: RoundInstances, generations: int, rng: np.random.Generator) -> RoundInstances:
    """Each instance moved to neighbors whose left side is a larger part of the right."""

    def score(y: RoundInstances) -> np.ndarray:
        with np.errstate(all="ignore"):
            return fresh_sides(claim, y).ratios().max(axis=1)

    best = score(z)
    for _ in range(generations):
        there = z.neighbor(rng)
        found = score(there)
        z, best = z.replace_where(found > best, there), np.maximum(best, found)
    return z


def join_populations(populations: list[RoundInstances]) -> RoundInstances:
    """Populations of one family and shape as one."""
    arrays = {f.name for f in fields(populations[0]) if isinstance(getattr(populations[0], f.name), np.ndarray)}
    return replace(populations[0], **{name: np.concatenate([getattr(z, name) for z in populations]) for name in arrays})


@lru_cache(maxsize=8)
def pool(cells: int, snapshot: bool) -> tuple[RoundInstances, ...]:
    """Random instances and where the adversary ends; remembered, as every step is tried on them."""
    rng = np.random.default_rng(131)
    found: list[RoundInstances] = [draw_coupled(rng, 60, shape) for shape in shapes(rng, cells // 3)]
    bends = np.random.default_rng(137)
    found += [draw_kinked(bends, 60, shape) for shape in shapes(bends, cells // 6)]
    if snapshot:
        found += [draw_bounded(rng, 60, shape._replace(in_y=shape.in_x)) for shape in shapes(rng, cells // 3)]
    ends: dict[tuple[Draw, PopulationShape], list[RoundInstances]] = {}
    for name, draw, shape in SNAPSHOT_GOALS if snapshot else GOALS:
        rng, generations = np.random.default_rng(1), 2 * cells * PATIENCE.get(name, 1)
        ends.setdefault((draw, shape), []).append(climb_ratios(goal(name), draw(rng, 80, shape), generations, rng))
    return (*found, *map(join_populations, ends.values()))


def one_round(claim: Claim, cells: int) -> tuple[RoundInstances, ...]:
    """Where a step is tried."""
    assert isinstance(claim.subject, StepOf)
    return pool(cells, kind_of(claim.subject) == "xs")


@lru_cache(maxsize=1)
def _one() -> RoundInstances:
    return draw_coupled(np.random.default_rng(0), 1, PopulationShape(1, 1, 1, 1, 1))


def is_measured(subject: StepOf) -> bool:
    """Whether every symbol of a step is measured."""
    kind = kind_of(subject)
    if kind is None:
        return False
    numbers = measured(_one(), kind)
    return all(map(numbers.has, reading(subject).names))


def instance_test(claim: Claim) -> InstanceTest | None:
    """How instances verify a claim of the paper; None for a claim without instances."""
    if claim.paper != PAPER:
        return None
    if isinstance(claim.subject, StepOf):
        return InstanceTest(one_round, relation_sides) if is_measured(claim.subject) else None
    return forms.instance_test(claim)
