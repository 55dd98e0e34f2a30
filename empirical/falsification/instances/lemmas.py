"""Lemmas on instances with values of the proof's symbols; the left side is that of the proof's last step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relation, ResultForm
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.empirical.falsification.instances.population import Population
from fedbounds.empirical.falsification.instances.premises import CANCELED, PremiseCases, relation_at_integers
from fedbounds.empirical.falsification.instances.readable import evaluate_sides, sides_of_form
from fedbounds.empirical.falsification.instances.sides import Sides, Trial

P = TypeVar("P", bound=Population)


def lemma_trial(
    claim: Claim,
    proofs: Sequence[Proof],
    draw: Callable[[], Iterable[P]],
    cases: Callable[[P], Sequence[PremiseCases]],
) -> Trial | None:
    """How the form that a proof ends with is tested, with the left side of its last step; None without a proof."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    name = subject.form.name
    proof = next((p for p in proofs if p.result is subject.result and name in p.ends), None)
    end = proof.step(proof.ends[name]) if proof else None
    if proof is None or end is None:
        return None
    left, substitute = end.conclusion.left, proof.substitute
    return Trial(lambda _, cells: draw(), lambda claim, z: _sides(claim, z, left, substitute, cases(z)))


def _sides(
    claim: Claim, z: Population, left: sp.Expr, substitute: Mapping[sp.Symbol, sp.Expr], cases: Sequence[PremiseCases]
) -> Sides:
    """Both sides of a form."""
    reading = relation_at_integers(Relation(left, sp.S.Zero))
    measured = [evaluate_sides(reading, one.values, len(z)) for one in cases]
    errors = [CANCELED * size + one.error for one, (_, size, _) in zip(cases, measured, strict=True)]
    names = {str(of): step.name for step, of in substitute.items()}
    values = [{**one.values, **{of: one.values[k] for of, k in names.items() if k in one.values}} for one in cases]
    return sides_of_form(
        claim,
        np.hstack([found for found, _, _ in measured]),
        {name: np.hstack([each[name] for each in values]) for name in values[0]},
        dict.fromkeys(frozenset.intersection(*(one.met for one in cases)), True),
        np.hstack([np.broadcast_to(one.covered, (len(z), 1)) for one in cases]),
        (np.hstack(errors), CANCELED),
        frozenset(),
        z.describe,
    )
