"""Steps of the one-round proofs, read as they stand, at the exact inner products of every instance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bounds.audit.claim import Claim
from bounds.audit.steps import StepOf
from bounds.papers.fedau.proof import PROOFS
from bounds.papers.fedau.proof.descent import DECREASE
from empirical.instances.fedau.gram import ROUND_BASIS, STEP_BASIS, round_products, step_products
from empirical.instances.fedau.kinked import KinkedInstances
from empirical.instances.fedau.measured import CANCELLED, ONE_STEP, lemma_letters
from empirical.instances.fedau.weighted import WeightedInstances
from empirical.instances.readable import Basis, Readable, evaluated, hypotheses, not_measured, readable, within
from empirical.instances.sides import Sides

OneRound = WeightedInstances | KinkedInstances


def basis_of(subject: StepOf) -> Basis | None:
    """By the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((basis for basis in (STEP_BASIS, ROUND_BASIS) if set(dict(basis)) == atoms), None)


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    basis = basis_of(subject)
    assert basis is not None
    return readable(subject.step.conclusion, basis)


@lru_cache(maxsize=256)
def measured(z: OneRound, basis: Basis) -> dict[str, np.ndarray]:
    """Products, the decrease of the objective, and the letters of the lemmas."""
    products = (step_products if basis == STEP_BASIS else round_products)(z)
    named = {f"<{a},{b}>": v for (a, b), v in products.items()}
    return named | lemma_letters(z) | {DECREASE.name: -z.ascent()}


def relation_sides(claim: Claim, z: OneRound) -> Sides:
    """A step's relation at every client and local step, or at every client."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    relation, basis = reading(subject), basis_of(subject)
    assert basis is not None
    values = measured(z, basis)
    if missing := set(relation.names) - set(values):
        return not_measured(missing, len(z))
    left, size, summands = evaluated(relation, values, len(z))
    assumptions, conditions = hypotheses(subject, PROOFS)
    unknown = sorted({a.name for a in (*claim.assumptions, *assumptions)} - ONE_STEP)
    covered = within(conditions, values) & (not unknown) & _places(z, left.shape, subject.step.quantifiers, basis)
    rounding = CANCELLED * size
    unmet = f"not checkable here: {', '.join(unknown)}" if unknown else ""
    if subject.step.conclusion.op == "==":
        total = sum(summands, start=np.zeros(left.shape))
        return Sides(np.abs(left - total), {}, covered, rounding, unmet, z.describe)
    moved = sum((np.minimum(s, 0) for s in summands), start=np.zeros(left.shape))  # negative summands change sides
    terms = {name: np.maximum(s, 0) for name, s in zip(relation.terms, summands, strict=True)}
    return Sides(left - moved, terms, covered, rounding, unmet, z.describe)


def _places(z: OneRound, shape: tuple[int, ...], quantifiers: str, basis: Basis) -> np.ndarray:
    """The local steps that a step of the proof speaks about."""
    if basis != STEP_BASIS or shape[1] % (z.local_steps + 1):
        return np.ones((1, 1), dtype=bool)
    i = np.tile(np.arange(z.local_steps + 1), shape[1] // (z.local_steps + 1))[None]
    held = (i < z.local_steps) if "i < I" in quantifiers else np.ones_like(i, dtype=bool)
    return held & (i == 0) if "i = 0" in quantifiers else held
