"""Steps of a proof, read as they stand: their relation is evaluated at the exact inner products of every instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp

from bounds.assumptions import Assumption
from bounds.audit.claim import Claim, Relation
from bounds.audit.steps import Proof, Step, StepOf, measure_symbol
from bounds.audit.vectors import gram_symbols, product_symbol
from bounds.compilation import arguments, compile_expressions
from bounds.measures import LEAST_GRADIENT
from bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from bounds.papers.arbitrary_participation.proof import PROOFS
from bounds.result import Condition
from empirical.instances.fedavg import FedAvgInstances
from empirical.instances.gram import POINT_BASIS, ROUND_BASIS, WINDOW_BASIS, in_order, round_products, window_products
from empirical.instances.hypotheses import met, within
from empirical.instances.sides import Sides

CANCELLED = 1e-12  # error of both sides relative to the sizes of their summands
ROUND_OFF = 1e-15  # of a mean of the clients' gradients, relative to the largest of them
LEAST = measure_symbol(LEAST_GRADIENT).name, measure_symbol(OVER_PARTICIPATION).name
SETTINGS = {"round": ROUND_BASIS, "window": WINDOW_BASIS, "point": POINT_BASIS}
SECOND_MOMENTS = "sum_n q_n^2 E|xi_n|^2"


def setting_of(subject: StepOf) -> str | None:
    """round, window or point, by the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((kind for kind, basis in SETTINGS.items() if set(basis) == atoms), None)


class Readable(NamedTuple):
    """A relation in the products of differences.

    Attributes:
        names: its symbols.
        terms: names of the right side's summands.
        function: of the symbols; the left side, the size of its summands, and the right side's summands.
    """

    names: tuple[str, ...]
    terms: tuple[str, ...]
    function: Callable[..., list[np.ndarray]]


def in_differences(expression: sp.Expr, basis: Mapping[str, tuple[str, ...]]) -> sp.Expr:
    """The expression with every product of the proof's vectors as a sum of products of differences; squares cancel."""
    plain = [s for s in sp.Add.make_args(expression) if not gram_symbols(s)]
    rest = expression - sp.Add(*plain)
    new = {
        symbol: sp.Add(*(product_symbol(*in_order(u, v)) for u in basis[a] for v in basis[b]))
        for symbol, (a, b) in gram_symbols(rest).items()
    }
    return sp.Add(*plain) + sp.expand(rest.xreplace(new))


@lru_cache(maxsize=512)
def readable(relation: Relation, kind: str) -> Readable:
    """The relation compiled, its right side summand by summand."""
    basis = SETTINGS[kind]
    left, right = (in_differences(side, basis) for side in (relation.left, relation.right))
    summands = sp.Add.make_args(right)
    size = sp.Add(*(sp.Abs(s) for s in sp.Add.make_args(left)))
    expressions = (left, size, *summands)
    symbols = arguments(expressions)
    return Readable(
        tuple(s.name for s in symbols), tuple(map(str, summands)), compile_expressions(symbols, expressions)
    )


@lru_cache(maxsize=512)
def hypotheses(subject: StepOf) -> tuple[tuple[Assumption, ...], tuple[Condition, ...]]:
    """The assumptions and the conditions of a step and of all the steps that it rests on."""
    found = tuple(dict.fromkeys(_hypotheses(subject)))
    assumptions = tuple(h for h in found if isinstance(h, Assumption))
    return assumptions, tuple(h for h in found if isinstance(h, Condition))


def _hypotheses(subject: StepOf) -> Iterator[Assumption | Condition]:
    proofs = {proof.id: proof for proof in PROOFS} | {subject.proof.id: subject.proof}
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
                other = proofs.get(place, proof)
                earlier = other.step(name)
                if earlier is not None:
                    yield from of(other, earlier)

    yield from of(subject.proof, subject.step)


def relation_sides(claim: Claim, z: FedAvgInstances) -> Sides:
    """A step's relation at every round and local step, or at every window, of every instance."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    kind = setting_of(subject)
    window = kind == "window"
    relation = readable(subject.step.conclusion, kind)
    values = z.constants() | (_window_values(z) if window else _round_values(z))
    asked = set(relation.names)
    if asked & set(LEAST):  # one number for the whole run, so the divergence is that of all windows
        values |= {"delta": z.constants()["delta"], "E delta^2": z.constants()["delta"] ** 2}
    zero = np.zeros((1, 1))
    for name in asked - set(values):
        if name.startswith("<"):
            values[name] = zero
    missing = sorted(asked - set(values))
    shape = np.broadcast_shapes(*(np.shape(values[n]) for n in asked & set(values)), (len(z), 1))
    if missing:
        nothing = np.zeros(shape)
        return Sides(nothing, {}, np.zeros((1, 1), dtype=bool), unmet=f"not measured here: {', '.join(missing)}")
    with np.errstate(all="ignore"):
        left, size, *summands = relation.function(*(values[n] for n in relation.names))
    left, size, *summands = (np.broadcast_to(np.asarray(v, dtype=float), shape) for v in (left, size, *summands))
    assumptions, conditions = hypotheses(subject)
    held, unmet = met(z, dict.fromkeys((*claim.assumptions, *assumptions)))
    covered = held & (values["eta"] > 0) & within(conditions, z.constants())
    if shape[1] > 1 and not window:
        covered = covered & _round_places(z, subject.step.quantifiers)
    lost = CANCELLED + ROUND_OFF * z.cancellation[:, None]
    rounding = lost * (size + sum((np.abs(s) for s in summands), start=np.zeros(shape)))
    if subject.step.conclusion.op == "==":
        total = sum(summands, start=np.zeros(shape))
        return Sides(np.abs(left - total), {}, covered, rounding, unmet, z.describe)
    return Sides(left, dict(zip(relation.terms, summands, strict=True)), covered, rounding, unmet, z.describe)


@lru_cache(maxsize=128)
def _round_values(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Products and weights at every place (t, i), each (B, T (I+1))."""
    places = (len(z), z.rounds, z.local_steps + 1)

    def flat(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, places).reshape(len(z), -1)

    variance = (z.noise**2).sum(axis=1)[:, None]
    second = variance * np.einsum("btn,bnn->bt", z.weights**2, z.correlation)
    named = {f"<{a},{b}>": flat(v) for (a, b), v in round_products(z).items()}
    named |= {"sumsq": flat(z.sum_of_squares[:, :, None]), SECOND_MOMENTS: flat(second[:, :, None])}
    return named | _suprema(z)


def _suprema(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Suprema over the rounds under the names that the proof gives them, each (B, 1)."""
    v = z.constants()
    return {"S_min": v["sumsq"], "sup (5)": v["beta"] ** 2, "sup (6)": v["nu"] ** 2}


def _round_places(z: FedAvgInstances, quantifiers: str) -> np.ndarray:
    """The rounds and local steps that a step speaks about."""
    t, i = np.meshgrid(np.arange(z.rounds), np.arange(z.local_steps + 1), indexing="ij")
    held = (i < z.local_steps) if "i < I" in quantifiers else np.ones_like(i, dtype=bool)
    if "i = 0" in quantifiers:
        held &= i == 0
    if "t = t_0" in quantifiers:
        held &= t % z.interval == 0
    return held.reshape(1, -1)


@lru_cache(maxsize=128)
def _window_values(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Products, decrease and divergence of every window, each (B, K); the run's least gradient, (B, 1).

    Participation is given: an expectation over it is that of a law with one outcome.
    """
    run, P = z.course, z.interval
    starts = np.arange(z.rounds // P) * P
    named = {f"<{a},{b}>": v for (a, b), v in window_products(z).items()}
    decrease, gradient = run.decrease, run.gradient[:, starts]
    named |= {"decrease": decrease, "delta": np.sqrt(z.window)}
    named |= {"E decrease": decrease, "E delta^2": z.window, "E gradsq": gradient}
    least = run.gradient[:, :-1].min(axis=1, keepdims=True)
    return named | {name: least for name in LEAST} | _suprema(z)
