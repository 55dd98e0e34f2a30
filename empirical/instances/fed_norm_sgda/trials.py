"""On which instances the steps of the proofs of Sharma et al. (2023) are tried."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bounds.audit.claim import Claim
from bounds.audit.steps import StepOf
from empirical.instances.fed_norm_sgda.drawing import Shape, draw_bounded, draw_coupled
from empirical.instances.fed_norm_sgda.problems import RoundInstances
from empirical.instances.fed_norm_sgda.relations import kind_of, measured, reading, relation_sides
from empirical.instances.sides import Trial

PAPER = "fed-norm-sgda"
OUTCOMES = 700  # of one round, at most


def draw_shape(rng: np.random.Generator) -> Shape:
    """Few enough clients and local steps for all outcomes of a round."""
    while True:
        n, T = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        P = int(rng.integers(1, n + 1))
        d = int(rng.integers(1, 3))
        if 2 ** (n * T) * n <= OUTCOMES:
            return Shape(n, P, T, d, int(rng.integers(1, 3)))


@lru_cache(maxsize=8)
def pool(cells: int, snapshot: bool) -> tuple[RoundInstances, ...]:
    """Instances that are strongly concave in y, and for Fed-Norm-SGDA+ others; remembered for all steps."""
    rng = np.random.default_rng(131)
    found: list[RoundInstances] = [draw_coupled(rng, 40, draw_shape(rng)) for _ in range(cells // 2)]
    if snapshot:
        shapes = (draw_shape(rng) for _ in range(cells // 2))
        found += [draw_bounded(rng, 40, shape._replace(in_y=shape.in_x)) for shape in shapes]
    return tuple(found)


def one_round(claim: Claim, cells: int) -> tuple[RoundInstances, ...]:
    """Where a step is tried."""
    assert isinstance(claim.subject, StepOf)
    return pool(cells, kind_of(claim.subject) == "xs")


@lru_cache(maxsize=1)
def _one() -> RoundInstances:
    return draw_coupled(np.random.default_rng(0), 1, Shape(1, 1, 1, 1, 1))


def heard(subject: StepOf) -> bool:
    """Whether every symbol of a step is measured."""
    kind = kind_of(subject)
    if kind is None:
        return False
    numbers = measured(_one(), kind)
    return all(map(numbers.has, reading(subject).names))


def trial(claim: Claim) -> Trial | None:
    """How this court tries a claim of the paper; None if it does not hear it."""
    if claim.paper != PAPER:
        return None
    if isinstance(claim.subject, StepOf):
        return Trial(one_round, relation_sides) if heard(claim.subject) else None
    return None
