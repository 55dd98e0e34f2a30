"""A step's relation as a function of numbers: its inner products in differences of vectors, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relation, ResultForm
from fedbounds.bounds.audit.proof_step_checker import Proof, Step, StepOf
from fedbounds.bounds.audit.vectors import gram_symbols, product_symbol
from fedbounds.bounds.evaluation.numpy_code import arguments, compile_expressions, compile_form
from fedbounds.bounds.evaluation.program import CompiledFunctions, holds
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition, Form
from fedbounds.empirical.falsification.instances.sides import Sides

Basis = tuple[tuple[str, tuple[str, ...]], ...]  # each vector of a proof as a sum of differences


class Readable(NamedTuple):
    """A relation in the products of differences."""

    names: tuple[str, ...]  # its symbols
    terms: tuple[str, ...]  # names of the right side's summands
    # of the symbols; the left side, the size of its summands, and the right side's summands
    function: Callable[..., list[np.ndarray]]


def product_key(a: str, b: str) -> tuple[str, str]:
    """The key of a product."""
    return (a, b) if a <= b else (b, a)


def expand_in_differences(expression: sp.Expr, basis: Basis) -> sp.Expr:
    """The expression with every product of the proof's vectors as a sum of products of differences; squares cancel."""
    parts = dict(basis)
    plain = [s for s in sp.Add.make_args(expression) if not gram_symbols(s)]
    rest = expression - sp.Add(*plain)
    new = {
        symbol: sp.Add(*(product_symbol(*product_key(u, v)) for u in parts[a] for v in parts[b]))
        for symbol, (a, b) in gram_symbols(rest).items()
    }
    return sp.Add(*plain) + sp.expand(rest.xreplace(new))


@lru_cache(maxsize=1024)
def readable(relation: Relation, basis: Basis) -> Readable:
    """The relation compiled, its right side summand by summand."""
    left, right = (expand_in_differences(side, basis) for side in (relation.left, relation.right))
    summands = sp.Add.make_args(right)
    size = sp.Add(*(sp.Abs(s) for s in sp.Add.make_args(left)))
    expressions = (left, size, *summands)
    symbols = arguments(expressions)
    return Readable(
        tuple(s.name for s in symbols), tuple(map(str, summands)), compile_expressions(symbols, expressions)
    )


def not_measured(names: Iterable[str], instances: int) -> Sides:
    """No instance is covered, because these symbols have no value here."""
    nothing = np.zeros((instances, 1))
    return Sides(nothing, {}, np.zeros((1, 1), dtype=bool), unmet=f"not measured here: {', '.join(sorted(names))}")


def evaluate_sides(
    relation: Readable, values: Mapping[str, np.ndarray], instances: int
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The left side, the sizes of all summands together, and the right side's summands, each (B, X)."""
    shape = np.broadcast_shapes(*(np.shape(values[n]) for n in relation.names), (instances, 1))
    with np.errstate(all="ignore"):
        found = relation.function(*(values[n] for n in relation.names))
    left, size, *summands = (np.broadcast_to(np.asarray(v, dtype=float), shape) for v in found)
    return left, size + sum((np.abs(s) for s in summands), start=np.zeros(shape)), summands


def arrange_sides(
    said: Relation,
    reading: Readable,
    found: tuple[np.ndarray, np.ndarray, list[np.ndarray]],
    covered: np.ndarray,
    rounding: np.ndarray | float,
    unmet: str,
    describe: Callable[[int], dict[str, Any]],
) -> Sides:
    """Both sides as they were evaluated; negative summands change sides."""
    left, _, summands = found
    total = sum(summands, start=np.zeros(left.shape))
    if said.op == "==":
        return Sides(np.abs(left - total), {}, covered, rounding, unmet, describe)
    if said.left == 0:  # only the sign of the right side matters
        return Sides(-total, {"0": np.zeros((1, 1))}, covered, rounding, unmet, describe)
    moved = sum((np.minimum(s, 0) for s in summands), start=np.zeros(left.shape))
    terms = {name: np.maximum(s, 0) for name, s in zip(reading.terms, summands, strict=True)}
    return Sides(left - moved, terms, covered, rounding, unmet, describe)


@lru_cache(maxsize=1024)
def hypotheses(subject: StepOf, proofs: tuple[Proof, ...]) -> tuple[tuple[Assumption, ...], tuple[Condition, ...]]:
    """The assumptions and the conditions of a step and of all the steps that it rests on."""
    found = tuple(dict.fromkeys(_hypotheses(subject, proofs)))
    assumptions = tuple(h for h in found if isinstance(h, Assumption))
    return assumptions, tuple(h for h in found if isinstance(h, Condition))


def _hypotheses(subject: StepOf, proofs: tuple[Proof, ...]) -> Iterator[Assumption | Condition]:
    named = {proof.id: proof for proof in proofs} | {subject.proof.id: subject.proof}
    seen: set[str] = set()

    def of(proof: Proof, step: Step) -> Iterator[Assumption | Condition]:
        if f"{proof.id}/{step.id}" in seen:
            return
        seen.add(f"{proof.id}/{step.id}")
        for premise in step.premises:
            if not isinstance(premise, str):
                yield premise
            else:
                place, _, name = premise.rpartition("/")
                other = named.get(place, proof)
                earlier = other.step(name)
                if earlier is not None:
                    yield from of(other, earlier)

    yield from of(subject.proof, subject.step)


@lru_cache(maxsize=256)
def _compiled(conditions: tuple[Condition, ...]) -> CompiledFunctions:
    return compile_form(Form("explicit", (), conditions))


def conditions_hold(conditions: Iterable[Condition], constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """Whether the conditions hold at the constants, broadcasting."""
    conditions, held = tuple(conditions), np.ones((1, 1), dtype=bool)
    for (left, right, _), condition in zip(_compiled(conditions).sides(constants), conditions, strict=True):
        held = held & holds(left, condition.op, right)
    return held


def sides_of_form(
    claim: Claim,
    left: np.ndarray,
    values: Mapping[str, np.ndarray],
    met: Mapping[str, np.ndarray | bool],
    covered: np.ndarray,
    error: tuple[np.ndarray | float, float],
    vectors: frozenset[str],
    describe: Callable[[int], dict[str, Any]],
) -> Sides:
    """What was measured against a result's form, term by term; negative terms change sides."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    held, unknown = covered, sorted({a.name for a in claim.assumptions} - set(met))
    for assumption in claim.assumptions:
        held = held & np.reshape(met.get(assumption.name, False), (-1, 1))
    parts = compile_form(subject.form, vectors).parts(values)
    for holds_ in parts.holds:
        held = held & holds_
    named = zip(subject.form.terms, parts.terms, strict=True)
    terms = {t.name: np.broadcast_to(v, left.shape) for t, v in named}
    finite = np.isfinite(left) & np.all([np.isfinite(v) for v in terms.values()], axis=0)
    left, *found = (np.where(finite, v, 0.0) for v in (left, *terms.values()))
    moved = sum((np.minimum(v, 0) for v in found), start=np.zeros(left.shape))
    rounding = np.where(finite, error[0], 0.0) + error[1] * (np.abs(left) + np.abs(moved))
    positive = {name: np.maximum(v, 0) for name, v in zip(terms, found, strict=True)}
    unmet = f"not checkable here: {', '.join(unknown)}" if unknown else ""
    return Sides(left - moved, positive, held & finite, rounding, unmet, describe, values, met)
