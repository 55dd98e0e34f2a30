"""Steps of the one-round proofs, read as they stand, at the exact inner products of every instance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sympy import Symbol

from fedbounds.bounds.audit.axioms import Unfit
from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.participation_rules import CauchySchwarz, ClientMean, SecondMoment
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.papers.fedau.proof import PROOFS
from fedbounds.bounds.papers.fedau.proof.descent import DECREASE
from fedbounds.empirical.falsification.instances.readable import (
    Basis,
    Readable,
    arrange_sides,
    conditions_hold,
    evaluate_sides,
    hypotheses,
    not_measured,
    readable,
)
from fedbounds.empirical.falsification.instances.sides import Sides
from fedbounds.empirical.papers.fedau.instances.gram import ROUND_BASIS, STEP_BASIS, round_products, step_products
from fedbounds.empirical.papers.fedau.instances.kinked import KinkedInstances
from fedbounds.empirical.papers.fedau.instances.measured import CANCELED, ONE_STEP, lemma_letters
from fedbounds.empirical.papers.fedau.instances.weighted import WeightedInstances

LARGEST = Symbol("[largest]", nonnegative=True)
OneRound = WeightedInstances | KinkedInstances


def basis_of(subject: StepOf) -> Basis | None:
    """By the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((basis for basis in (STEP_BASIS, ROUND_BASIS) if set(dict(basis)) == atoms), None)


def relation_as_used(subject: StepOf) -> tuple[Relation, Relation | None]:
    """The step's relation; where it sums over clients what a premise bounds, with the largest there is for that bound.

    The second is the premise, whose left side at its largest the letter `LARGEST` stands for.
    """
    step, proof = subject.step, subject.proof
    if not isinstance(step.rule, ClientMean | CauchySchwarz | SecondMoment):
        return step.conclusion, None
    place, _, name = next(p for p in step.premises if isinstance(p, str)).rpartition("/")
    home = next((p for p in PROOFS if p.id == place), proof)
    source = home.step(name)
    assert source is not None
    if source.conclusion.right == 0:
        return step.conclusion, None
    each = Relation(source.conclusion.left, LARGEST)
    try:
        return step.rule.relation(proof.setting, [each]), each
    except Unfit:  # the proof-step checker reports why; here the step is verified as it stands
        return step.conclusion, None


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    basis = basis_of(subject)
    assert basis is not None
    return readable(relation_as_used(subject)[0], basis)


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
    values, each = measured(z, basis), relation_as_used(subject)[1]
    if each is not None:
        one = readable(each, basis)
        largest = {LARGEST.name: np.zeros((1, 1))}
        values = values | {LARGEST.name: evaluate_sides(one, values | largest, len(z))[0].max(axis=1, keepdims=True)}
    if missing := set(relation.names) - set(values):
        return not_measured(missing, len(z))
    found = evaluate_sides(relation, values, len(z))
    left = found[0]
    assumptions, conditions = hypotheses(subject, PROOFS)
    unknown = sorted({a.name for a in (*claim.assumptions, *assumptions)} - ONE_STEP)
    covered = (
        conditions_hold(conditions, values) & (not unknown) & _places(z, left.shape, subject.step.quantifiers, basis)
    )
    unmet = f"not checkable here: {', '.join(unknown)}" if unknown else ""
    return arrange_sides(subject.step.conclusion, relation, found, covered, CANCELED * found[1], unmet, z.describe)


def _places(z: OneRound, shape: tuple[int, ...], quantifiers: str, basis: Basis) -> np.ndarray:
    """The local steps of a step's quantifiers."""
    if basis != STEP_BASIS or shape[1] % (z.local_steps + 1):
        return np.ones((1, 1), dtype=bool)
    i = np.tile(np.arange(z.local_steps + 1), shape[1] // (z.local_steps + 1))[None]
    held = (i < z.local_steps) if "i < I" in quantifiers else np.ones_like(i, dtype=bool)
    return held & (i == 0) if "i = 0" in quantifiers else held
