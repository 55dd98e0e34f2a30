"""Premises of proofs (assumptions, definitions, cited theorems, averages), tested on numbers.

The symbols of a step's relation get values computed from weights, vectors and sequences, independently of the
relation, and both sides are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relation, ResultForm
from fedbounds.bounds.audit.proof_step_checker import Proof, StepOf
from fedbounds.bounds.audit.vectors import gram_symbols
from fedbounds.bounds.evaluation.numpy_code import arguments
from fedbounds.empirical.falsification.instances.population import Population
from fedbounds.empirical.falsification.instances.readable import (
    Readable,
    arrange_sides,
    evaluate_sides,
    not_measured,
    readable,
    sides_of_form,
)
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides

P = TypeVar("P", bound=Population)
CANCELED = 1e-12  # error of both sides relative to the sizes of their summands


@dataclass(frozen=True, eq=False)
class PremiseCases:
    """B cases of a premise."""

    # symbol to a number for each case, (B, 1), or one for each client, (B, N). An inner product is named as in the
    # proof
    values: Mapping[str, np.ndarray]
    whole: Mapping[str, int] = field(default_factory=dict)  # symbol to integer, the same in all cases
    met: frozenset[str] = frozenset()  # the assumptions that the cases meet
    # the cases that count, broadcasting to (B, X)
    covered: np.ndarray = field(default_factory=lambda: np.ones((1, 1), dtype=bool))
    error: np.ndarray | float = 0.0  # absolute, of both sides, where symbols are differences

    def __len__(self) -> int:
        return max((len(v) for v in self.values.values()), default=1)

    def describe(self, index: int) -> dict[str, Any]:
        """All numbers of one case."""
        return dict(self.whole) | {
            k: np.broadcast_to(v, (len(self), *v.shape[1:]))[index].tolist() for k, v in self.values.items()
        }


@lru_cache(maxsize=1024)
def relation_at_integers(relation: Relation, whole: tuple[tuple[str, int], ...] = ()) -> Readable:
    """The relation at these integers, its sums expanded; inner products are symbols like others."""
    numbers = dict(whole)
    symbols = arguments((relation.left, relation.right))
    at = {s: sp.Integer(numbers[s.name]) for s in symbols if s.name in numbers}

    def insert(side: sp.Expr) -> sp.Expr:
        return side.xreplace(at).replace(sp.Sum, lambda *args: sp.Sum(*args).doit())

    expanded = Relation(insert(relation.left), insert(relation.right), relation.op)
    names = {name for pair in gram_symbols(expanded.left - expanded.right).values() for name in pair}
    return readable(expanded, tuple((name, (name,)) for name in sorted(names)))


def premise_sides(claim: Claim, cases: PremiseCases) -> Sides:
    """Both sides of a step's relation in every case."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    conclusion = subject.step.conclusion
    used = {s.name for s in arguments((conclusion.left, conclusion.right))}
    reading = relation_at_integers(conclusion, tuple(sorted((k, n) for k, n in cases.whole.items() if k in used)))
    if missing := set(reading.names) - set(cases.values):
        return not_measured(missing, len(cases))
    unmet = sorted({a.name for a in claim.assumptions} - cases.met)
    found = evaluate_sides(reading, cases.values, len(cases))
    covered = cases.covered & (not unmet)
    why = f"not met here: {', '.join(unmet)}" if unmet else ""
    return arrange_sides(conclusion, reading, found, covered, CANCELED * found[1] + cases.error, why, cases.describe)


def premise_test(draw: Callable[[Claim], Iterable[PremiseCases]]) -> InstanceTest:
    """A premise on these cases, whatever the effort."""
    return InstanceTest(lambda claim, _: draw(claim), premise_sides)


def lemma_test(
    claim: Claim,
    proofs: Sequence[Proof],
    draw: Callable[[], Iterable[P]],
    cases: Callable[[P], Sequence[PremiseCases]],
) -> InstanceTest | None:
    """How the form that a proof ends with is tested, with the left side of its last step; None without a proof."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    name = subject.form.name
    proof = next((p for p in proofs if p.result is subject.result and name in p.ends), None)
    end = proof.step(proof.ends[name]) if proof else None
    if proof is None or end is None:
        return None
    left, substitute = end.conclusion.left, proof.substitute
    return InstanceTest(lambda _, cells: draw(), lambda claim, z: _sides(claim, z, left, substitute, cases(z)))


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
