"""A proved claim as a certificate, which `fedbounds.bounds.audit.certificate_checker` verifies on its own.

What a proof rule found by search (multipliers, pivots, substitutions, enclosures) is written here; the checker, which
shares no code with this module, multiplies it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import sympy as sp

from fedbounds.bounds.audit import axioms
from fedbounds.bounds.audit.certificate_rules import WRITERS, axiom, stands_for
from fedbounds.bounds.audit.certificate_terms import Json, TermWriter, vector_name
from fedbounds.bounds.audit.claim import Relation, ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.proof_step_checker import (
    Proof,
    Step,
    StepOf,
    about_constants,
    condition_fact,
    proof_of,
    relation_of,
)
from fedbounds.bounds.audit.rule import given
from fedbounds.bounds.audit.signs import NoReason, Reason
from fedbounds.bounds.audit.vectors import factors_of_product
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition

FORMAT = "fedbounds certificate 1"
DIGITS = (7, 12)  # of the enclosures of named numbers: short ones leave shorter sums


def certificate(claim_set: ClaimSet, claim: str) -> Json:
    """Everything that is needed to check the proof of one form again."""
    if claim not in claim_set.claims or not isinstance(subject := claim_set.claims[claim].subject, ResultForm):
        forms = [c.id for c in claim_set.claims.values() if isinstance(c.subject, ResultForm)]
        raise FedboundsError(f"{claim} is no form of {claim_set.paper}; its forms are {', '.join(forms)}")
    proof = proof_of(claim_set, subject)
    if proof is None:
        raise FedboundsError(f"{claim} has no proof here, so that there is nothing to certify")
    for digits in DIGITS[:-1]:
        with suppress(NoReason):
            return Writer(claim_set, proof, subject, digits).written()
    return Writer(claim_set, proof, subject, DIGITS[-1]).written()


class Writer(TermWriter):
    """Writes one certificate, collecting what its steps speak of.

    Args:
        claim_set: where the steps are.
        proof: the proof that ends at the form.
        subject: the form.
        digits: to how many decimal digits named numbers are enclosed.
    """

    def __init__(self, claim_set: ClaimSet, proof: Proof, subject: ResultForm, digits: int) -> None:
        super().__init__({q.symbol: q.domain for q in proof.result.notation.values()}, digits)
        self.claim_set, self.proof, self.subject = claim_set, proof, subject
        self.steps: dict[str, Json] = {}
        self.rests_on: dict[str, set[str]] = {}
        self.proofs: dict[str, Proof] = {}
        self.conditions: dict[str, Condition] = {}
        self.assumptions: dict[str, str] = {}

    def written(self) -> Json:
        """The certificate."""
        end = self.proof.step(self.proof.ends[self.subject.form.name])
        if end is None:
            raise FedboundsError(f"{self.proof.id} has no step {self.proof.ends[self.subject.form.name]}")
        self.add(self.proof, end)
        statement = self._statement(end)
        symbols = self.proof.result.notation
        return {
            "format": FORMAT,
            "claim": self.subject.id,
            "source": str(self.subject.result.source),
            "statement": statement,
            "symbols": {
                name: self.declared(symbol) | _meaning(symbols, symbol)
                for symbol, name in sorted(self.names.items(), key=lambda pair: pair[1])
                if not factors_of_product(symbol.name)
            },
            "numbers": {str(n): self.enclosure(n) for n in sorted(self.numbers, key=str)},
            "vectors": {
                p.id: {vector_name(a.name): a.meaning for a in p.setting.atoms.values()} for p in self.proofs.values()
            },
            "assumptions": self.assumptions,
            "conditions": {name: self.relation(condition_fact(c)) for name, c in self.conditions.items()},
            "steps": list(self.steps.values()),
        }

    def _statement(self, end: Step) -> Json:
        form, substitute = self.subject.form, dict(self.proof.substitute)
        kept = {substitute.pop(of): of for of in list(substitute) if substitute[of] in self.names}
        if kept.keys() & {s for c in form.conditions for s in (c.left - c.right).free_symbols}:
            raise FedboundsError(f"{self.subject.id} has conditions on a symbol that its steps use for another value")
        bound = form.bound.doit().xreplace(kept)  # steps use the form's symbol for another value
        if form.order_only:
            bound = end.conclusion.right.xreplace(substitute)
        follows: dict[str, list[Reason]] = {}
        own = {c.text: c for c in form.conditions}
        usable = [(f"condition {name}", condition_fact(c)) for name, c in own.items()]
        floors = self.reach([Relation(bound, bound)], usable)
        names = [name for name in self.conditions if name not in own]
        self.conditions |= own
        facts = self.facts([r for _, r in usable], [n for n, _ in usable]) | self.floor_facts()
        for name in names:
            wanted = condition_fact(self.conditions[name])
            sides = (wanted.slack, -wanted.slack) if wanted.op == "==" else (wanted.slack,)
            follows[name] = [self.reason(side, facts, wanted.strict) for side in sides]
        for assumption in form.assumptions:
            self.assumptions[assumption.name] = assumption.statement
        return {
            "left": self.text(end.conclusion.left.xreplace(substitute)),
            "op": "<=",
            "right": self.text(bound),
            "measure": str(form.measure or self.subject.result.measure),
            "rename": stands_for(self, list(substitute.items())),
            "conditions": list(own),
            "assumptions": [a.name for a in form.assumptions],
            "follows": follows,
            "floors": floors,
            "positive": self.divisors(facts),
        }

    def add(self, proof: Proof, step: Step) -> str:
        """A step after all that it rests on; returns its id."""
        name = f"{proof.id}/{step.id}"
        if name in self.steps:
            return name
        self.proofs[proof.id] = proof
        premises = [self._premise(proof, p) for p in step.premises if isinstance(p, str)]
        relations = [relation_of(self.claim_set, proof, p) for p in step.premises if isinstance(p, str)]
        own = {p.text: p for p in step.premises if isinstance(p, Condition)}
        below = {c: self.conditions[c] for p in premises for c in self.rests_on[p]}
        assumed = {p.name: p.statement for p in step.premises if isinstance(p, Assumption)}
        self.conditions |= own
        self.assumptions |= assumed
        self.rests_on[name] = {*own, *below}
        try:
            said = self._step(proof, step, dict(zip(premises, relations, strict=True)), own)
        except NoReason:  # what the premises rest on holds here too
            try:
                said = self._step(proof, step, dict(zip(premises, relations, strict=True)), own | below)
            except NoReason as error:
                raise NoReason(f"{name}: {error}") from error
        trusts = "; ".join(t for t in (step.rule.axiom, given(step.rule)) if t) or "what differs from round to round"
        rest: Json = {"assumptions": list(assumed), "needs": list(step.rule.needs)}
        first = said.pop("first", None)
        if first:  # what is trusted is a step of its own
            self.steps[f"{name} trusted"] = (
                {"id": f"{name} trusted", "says": step.says} | first | {"trusts": trusts} | rest
            )
            said["premises"].append(f"{name} trusted")
        else:
            rest |= {} if said["rule"] in ("combination", "geometric-sum") else {"trusts": trusts}
        self.steps[name] = {"id": name, "says": step.says} | said | rest
        if said["rule"] == "unroll":  # how a recursion starts is no fact about its later steps
            self.steps[premises[0]]["at"] = "start"
        return name

    def _step(
        self, proof: Proof, step: Step, premises: Mapping[str, Relation], conditions: Mapping[str, Condition]
    ) -> Json:
        """How a step follows, from these premises and conditions."""
        rule = WRITERS.get(type(step.rule), axiom if isinstance(step.rule, axioms.Schema) else None)
        if rule is None:
            kind = type(step.rule).__name__
            raise FedboundsError(f"{proof.id}/{step.id} is by {kind}, which no certificate has a word for yet")
        usable = [(f"premise {n}", r) for n, r in premises.items() if about_constants(r)]
        usable += [(f"condition {n}", condition_fact(c)) for n, c in conditions.items()]
        floors = self.reach([step.conclusion, *premises.values()], usable)
        facts = self.facts([r for _, r in usable], [n for n, _ in usable]) | self.floor_facts()
        self.divided = []
        said = self.relation(step.conclusion) | rule(self, step, list(premises.values()), facts)
        if said["rule"] in ("unroll", "average"):
            said["still"] = [vector_name(a.name) for a in proof.setting.atoms.values() if a.still]
        said |= {"premises": list(premises), "conditions": list(conditions)} | ({"floors": floors} if floors else {})
        positive = self.divisors(facts)
        return said | ({"positive": positive} if positive else {})

    def _premise(self, proof: Proof, name: str) -> str:
        own = proof.step(name)
        if own is not None:
            return self.add(proof, own)
        subject = self.claim_set.claims[name].subject
        if not isinstance(subject, StepOf):
            raise FedboundsError(f"{proof.id} uses {name} whole, which no certificate has a word for yet")
        return self.add(subject.proof, subject.step)


def _meaning(symbols: Any, symbol: sp.Symbol) -> Json:
    found = next((q for q in symbols.values() if q.symbol == symbol), None)
    return {"is": found.meaning} if found else {}
