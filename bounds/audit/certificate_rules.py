"""How each rule of proof is written in a certificate: what it found by search, for the checker to multiply out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import sympy as sp

from fedbounds.bounds.audit import axioms
from fedbounds.bounds.audit.certificate_terms import Json, TermWriter
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.derivations import InExpectation
from fedbounds.bounds.audit.geometric_sums import GeometricSum
from fedbounds.bounds.audit.proof_step_checker import Step
from fedbounds.bounds.audit.quotients import cancel
from fedbounds.bounds.audit.rules import ClientByClient, Combine, Everywhere, Gram, Stated, Telescope, Unroll
from fedbounds.bounds.audit.signs import reason
from fedbounds.bounds.audit.vectors import Vec, factors_of_product, gram_symbols, square
from fedbounds.bounds.errors import FedboundsError


def _write_combination(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, Combine)
    factors = [sp.S.One * m for m in rule.multipliers]
    return _combination(w, step, relations, factors, facts)


def _combination(
    w: TermWriter, step: Step, relations: Relations, factors: Sequence[sp.Expr], facts: Mapping[str, sp.Expr]
) -> Json:
    residual = step.conclusion.slack - sp.Add(*(m * r.slack for m, r in zip(factors, relations, strict=True)))
    said: list[Json] = []
    for factor, relation in zip(factors, relations, strict=True):
        entry: Json = {"value": w.text(factor)}
        if relation.op == "<=" and factor != 0:
            entry["because"] = w.nonnegative(factor, facts)
        said.append(entry)
    body: Json = {"rule": "combination", "multipliers": said}
    if step.conclusion.op == "<=":
        body["rest"] = w.nonnegative(cancel_expression(w.plain(residual)), facts)
    return body


def cancel_expression(e: sp.Expr) -> sp.Expr:
    """In lowest terms, where it is rational."""
    try:
        found = cancel(e)
    except sp.PolynomialError:
        return sp.expand(e)
    return found.written(found.above) / found.written(found.below)


def _gram(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    """Equalities are used up first, each solved for one inner product."""
    slack, factors = sp.expand(step.conclusion.slack), list[sp.Expr]()
    for premise in relations:
        symbols = sorted(gram_symbols(premise.slack), key=str)
        mixed = [s for s in symbols if len(set(factors_of_product(s.name) or ())) == 2] or symbols
        factor = sp.cancel(sp.diff(slack, mixed[-1]) / sp.diff(sp.expand(premise.slack), mixed[-1]))
        factors.append(factor)
        slack = sp.expand(slack - factor * premise.slack)
    return _combination(w, step, relations, factors, facts)


def _stated(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    return _combination(w, step, relations, [sp.S.Zero] * len(relations), facts)


def _clients(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, ClientByClient)
    names = {v: f"own{k}" for k, v in enumerate(rule.variables)}
    own = {v: sp.Symbol(name, nonnegative=True) for v, name in names.items()}

    def text(e: sp.Expr) -> str:
        return w.text(e)

    for symbol in own.values():
        w.names[symbol] = symbol.name
    client = {f"client {k}": f.slack.xreplace(own) for k, f in enumerate(rule.facts)}
    pointwise = rule.pointwise.xreplace(own)
    because = reason(pointwise, client, text)
    body = {
        "rule": "clients",
        "variables": list(names.values()),
        "facts": [w.relation(Relation(f.left.xreplace(own), f.right.xreplace(own), f.op)) for f in rule.facts],
        "pointwise": text(pointwise),
        "because": because,
        "sums": [[list(powers), w.text(total)] for powers, total in rule.sums],
    }
    for symbol in own.values():
        del w.names[symbol]
    return body


def _write_recursion(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, Unroll)
    right = sp.expand(relations[1].right)
    squares = [s for s in gram_symbols(rule.now) if len(set(factors_of_product(s.name) or ())) == 1]
    symbol = sorted(squares, key=str)[0]
    multiplier = cancel_expression(sp.diff(right, symbol) / sp.diff(sp.expand(rule.now), symbol))
    additive = cancel_expression(sp.expand(right - multiplier * rule.now))
    body = {
        "rule": "unroll",
        "now": w.text(rule.now),
        "after": w.text(rule.after),
        "multiplier": w.text(multiplier),
        "additive": w.text(additive),
        "steps": w.text(rule.steps),
        "varying": [w.text(s) for s in rule.varying],
        "grows": w.reason(multiplier - 1, facts),
        "adds": w.reason(additive, facts),
    }
    return body


def _geometric(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, GeometricSum)
    constant = {"a": str(rule.a), "steps": w.text(rule.steps), "constant": w.text(rule.constant)}
    return {"rule": "geometric-sum", **constant}


def _write_telescope(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, Telescope)
    slope = cancel_expression(sp.diff(sp.expand(relations[0].right), rule.decrease))
    decrease = {
        "of": w.text(rule.decrease),
        "is": w.text(rule.gap / rule.rounds),
        "slope": w.reason(slope, facts),
    }
    means = [(rule.of, rule.average), *rule.means]
    return _write_average(w, means, rule.varying) | {"means": [decrease, *stands_for(w, means)]}


def _everywhere(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, Everywhere)
    means = [] if rule.is_ is None else [(relations[0].left, rule.is_)]
    return _write_average(w, means, rule.varying)


def _write_expectation(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    rule = step.rule
    assert isinstance(rule, InExpectation)
    return _write_average(w, rule.means, ()) | {"random": rule.over}


def _write_average(w: TermWriter, means: Sequence[tuple[sp.Expr, sp.Expr]], varying: Sequence[sp.Symbol]) -> Json:
    return {"rule": "average", "means": stands_for(w, means), "varying": [w.text(s) for s in varying]}


def stands_for(w: TermWriter, means: Sequence[tuple[sp.Expr, sp.Expr]]) -> list[Json]:
    """Symbols, or powers of symbols, with what stands for each."""
    for of, _ in means:
        if not of.as_base_exp()[0].is_Symbol:
            raise FedboundsError(f"a certificate has no word for the mean of {of}")
    return [{"of": w.text(of), "is": w.text(is_)} for of, is_ in means]


def axiom(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    """What is trusted as it stands."""
    if relations:
        kind = type(step.rule).__name__
        raise FedboundsError(f"{step.id} is by {kind} from premises, which no certificate has a word for yet")
    return {"rule": "axiom"}


def _write_noise_over_time(w: TermWriter, step: Step, relations: Relations, facts: Mapping[str, sp.Expr]) -> Json:
    """What is trusted speaks of the two means alone; the premise's bound is put in by the checker."""
    rule = step.rule
    assert isinstance(rule, axioms.NoiseOverTime)
    whole, each = (square(Vec.atom(name)) for name in (rule.mean, rule.each))
    share = Relation(whole, each / rule.steps)
    return {
        "first": {"rule": "axiom", **w.relation(share)},
        **_combination(w, step, [*relations, share], [1 / rule.steps, sp.S.One], facts),
    }


WRITERS: Mapping[type, Callable[..., Json]] = {
    Combine: _write_combination,
    Gram: _gram,
    Stated: _stated,
    ClientByClient: _clients,
    Unroll: _write_recursion,
    GeometricSum: _geometric,
    Telescope: _write_telescope,
    Everywhere: _everywhere,
    InExpectation: _write_expectation,
    axioms.NoiseOverTime: _write_noise_over_time,
}
