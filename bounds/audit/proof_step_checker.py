"""The proof-step checker: a proof is a directed graph of steps, each verified by a rule against its premises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Protocol

import sympy as sp

from fedbounds.bounds.audit.canonical_text import canonical_text
from fedbounds.bounds.audit.claim import Claim, Relation, Relations, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.nonnegative import ProofFinding, never_zero, prove, same, satisfiable
from fedbounds.bounds.audit.rule import (
    Discharges,
    Grows,
    Hides,
    Specializes,
    equates,
    given,
    prescribes,
    specializes,
)
from fedbounds.bounds.audit.vectors import Atom, opaque
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.result import Condition, Form, Result
from fedbounds.bounds.theory.symbols import Notation

Premise = str | Assumption | Condition


@dataclass(frozen=True)
class ProofSetting:
    """What the steps of one proof speak about.

    Args:
        bracket: what the inner products average over, in words.
        atoms: the vectors, by name.
        given: what is held fixed throughout.
        symbols: abbreviations, each for what it stands for.
    """

    bracket: str
    atoms: Mapping[str, Atom]
    given: str = ""
    symbols: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)

    @staticmethod
    def of(
        bracket: str, *atoms: Atom, given: str = "", symbols: Mapping[sp.Symbol, sp.Expr] | None = None
    ) -> ProofSetting:
        """The setting of these vectors, each under its own name."""
        return ProofSetting(bracket, {atom.name: atom for atom in atoms}, given, symbols or {})

    def with_symbols(self, symbols: Mapping[sp.Symbol, sp.Expr]) -> ProofSetting:
        """The same with these abbreviations as well."""
        return replace(self, symbols={**self.symbols, **symbols})


class Rule(Protocol):
    """How a step follows from its premises. `needs` names the assumptions without which the rule may not be used.

    What else a rule may say of itself is in `fedbounds.bounds.audit.rule`.
    """

    @property
    def axiom(self) -> str:
        """What is trusted, in words; empty if nothing is."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of assumptions that must stand among the step's premises."""
        ...

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Whether the conclusion follows."""
        ...


@dataclass(frozen=True)
class Step:
    """One step of a proof."""

    id: str  # its name within the proof, e.g. "L1.4"
    says: str  # in words, with the paper's equation
    conclusion: Relation  # what it shows
    rule: Rule  # how
    # earlier steps by id, claims of other proofs by their whole id, assumptions and conditions
    premises: tuple[Premise, ...] = ()
    quantifiers: str = ""  # for all of what


@dataclass(frozen=True, eq=False)
class Proof:
    """A chain of steps, some of which are the right-hand sides of forms."""

    id: str  # "paper/name"; a step's claim is "paper/name/step"
    setting: ProofSetting  # the vectors and the bracket
    steps: tuple[Step, ...]  # in order; a step may use earlier ones only
    result: Result  # what is proved
    ends: Mapping[str, str]  # for each form the step whose right-hand side must equal the form's bound
    # what the result's measure is in the symbols of the steps; the measure's own symbol if not given
    left: sp.Expr | None = None
    # symbols of the steps in the symbols of the result (e.g. a Gram symbol for `gradsq`)
    substitute: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        forms = [form.name for form in self.result.forms]
        for name in self.ends:
            if name not in forms:
                raise unknown_name(f"form of {self.result.key} where {self.id} ends", name, forms)

    def step(self, name: str) -> Step | None:
        """The step with this id, if there is one."""
        return next((s for s in self.steps if s.id == name), None)

    def claims(self) -> Iterator[Claim]:
        """One claim for each step; what its vectors stand for and where the proof ends belong to its content."""
        speaks_of = f"{self.setting.bracket}\n{sorted(map(str, self.setting.atoms.values()))}\n{dict(self.ends)}"
        speaks_of += "".join(f"\n{k}: {canonical_text(v)}" for k, v in self.setting.symbols.items())
        speaks_of += (
            f"\n{canonical_text(self.left)}\n{ {str(k): canonical_text(v) for k, v in self.substitute.items()} }"
        )
        for step in self.steps:
            premises = [
                p if isinstance(p, str) else p.name if isinstance(p, Assumption) else p.text for p in step.premises
            ]
            left, right = (canonical_text(side) for side in (step.conclusion.left, step.conclusion.right))
            yield Claim(
                id=f"{self.id}/{step.id}",
                kind="step",
                text=step.says,
                subject=StepOf(self, step),
                content=f"{left} {step.conclusion.op} {right}\n{step.rule}\n{premises}\n{speaks_of}",
                quantifiers=step.quantifiers,
                given=self.setting.given,
                assumptions=tuple(p for p in step.premises if isinstance(p, Assumption)),
                conditions=tuple(p for p in step.premises if isinstance(p, Condition)),
                source=str(self.result.source),
            )


@dataclass(frozen=True, eq=False)
class StepOf:
    """A step with the proof it belongs to."""

    proof: Proof
    step: Step

    @property
    def latex(self) -> str:
        """The conclusion."""
        return self.step.conclusion.latex


def proof_of(claim_set: ClaimSet, subject: ResultForm) -> Proof | None:
    """The proof on this claim set that ends at this form."""
    for claim in claim_set.claims.values():
        if isinstance(claim.subject, StepOf):
            proof = claim.subject.proof
            if proof.result is subject.result and subject.form.name in proof.ends:
                return proof
    return None


def relation_of(claim_set: ClaimSet, proof: Proof, premise: str) -> Relation:
    """The relation that a premise stands for: a step of this proof or of another, or a form of a result."""
    step = proof.step(premise)
    if step is not None:
        return step.conclusion
    claim = claim_set.claims.get(premise)
    if claim is not None and isinstance(claim.subject, StepOf):
        return claim.subject.step.conclusion
    if claim is not None and isinstance(claim.subject, ResultForm):
        return Relation(left_hand_side(claim.subject), claim.subject.form.bound)
    raise FedboundsError(f"{proof.id}: the premise {premise!r} is neither an earlier step nor a claim")


def left_hand_side(subject: ResultForm) -> sp.Symbol:
    """The symbol of what a form bounds; equal for forms that bound the same."""
    return measure_symbol(subject.form.measure or subject.result.measure)


def measure_symbol(measure: Measure) -> sp.Symbol:
    """The symbol of a left-hand side."""
    return sp.Symbol(f"[{measure}]", nonnegative=True)


def try_step(subject: StepOf, claim_set: ClaimSet) -> Verdict:
    """Check one step: whether it follows from its premises, and whether those that are steps are proved."""
    proof, step = subject.proof, subject.step
    earlier = [s.id for s in proof.steps[: proof.steps.index(step)]]
    names = [p for p in step.premises if isinstance(p, str)]
    for name in names:
        if name not in earlier and name not in claim_set.claims:
            return Verdict("unknown", "steps", "graph", f"its premise {name} is not an earlier step")
    if undischarged := undischarged_conditions(subject, claim_set):
        return Verdict("unknown", "steps", "graph", undischarged)
    assumed = {p.name for p in step.premises if isinstance(p, Assumption)}
    missing = [need for need in step.rule.needs if need not in assumed]
    if missing:
        return Verdict("unknown", "steps", "graph", f"the rule needs {', '.join(missing)}, not among the premises")
    if step.conclusion.op == "==" and not equates(step.rule):
        return Verdict(
            "unknown", "steps", "graph", f"{type(step.rule).__name__} shows inequalities, not {step.conclusion}"
        )
    if step.conclusion.strict:
        return Verdict("unknown", "steps", "graph", f"no rule shows a strict inequality, as in {step.conclusion}")
    relations = [relation_of(claim_set, proof, name) for name in names]
    facts = [condition_fact(p) for p in step.premises if isinstance(p, Condition)]
    facts += domain_facts(proof.result.notation)
    finding = step.rule.check(step.conclusion, relations, facts, proof.setting)
    axioms = (step.rule.axiom,) if step.rule.axiom else ()
    together = satisfiable((*facts, *(r for r in relations if about_constants(r))))
    evidence = finding.evidence if together.method == "exact rationals" else f"{finding.evidence}; {together.evidence}"
    flags = () if together.holds else ("vacuous",)
    shaky = [name for name in names if rests_on(claim_set, proof, name) != "proved"] if finding.holds else []
    if shaky:
        evidence = f"it follows, but {', '.join(shaky)} is not proved; {evidence}"
    if not finding.holds or shaky:
        return Verdict("unknown", "steps", finding.method, evidence, axioms, flags)
    gives = given(step.rule)
    trusts = (f"{gives} ({proof.id}/{step.id})",) if gives else ()
    return Verdict("proved", "steps", finding.method, evidence, axioms, flags, trusts)


def steps_below(claim_set: ClaimSet, name: str) -> set[str]:
    """The steps among the premises of a step, by their whole ids."""
    subject = claim_set.claims[name].subject
    if not isinstance(subject, StepOf):
        return set()
    names = [p for p in subject.step.premises if isinstance(p, str)]
    return {f"{subject.proof.id}/{p}" if subject.proof.step(p) else p for p in names}


def rests_on(claim_set: ClaimSet, proof: Proof, name: str) -> str:
    """The verdict on a step among the premises; a form used whole answers for itself."""
    if proof.step(name) is not None:
        name = f"{proof.id}/{name}"
    return claim_set.verdict(name).outcome if isinstance(claim_set.claims[name].subject, StepOf) else "proved"


def undischarged_conditions(subject: StepOf, claim_set: ClaimSet) -> str:
    """Why a form may not be used here: a condition of it that does not follow at these step sizes ("" if all do)."""
    proof, step = subject.proof, subject.step
    rule, names = step.rule, [p for p in step.premises if isinstance(p, str)]
    forms = {
        name: claim.subject.form.conditions
        for name in names
        if proof.step(name) is None and (claim := claim_set.claims.get(name)) and isinstance(claim.subject, ResultForm)
    }
    if specializes(rule):
        forms |= {name: conditions_below(claim_set, proof, name) for name in names if name not in forms}
    values = dict(rule.values) if isinstance(rule, Specializes) else {}
    grows = rule.grows if isinstance(rule, Grows) else None
    facts = [condition_fact(p) for p in step.premises if isinstance(p, Condition)] + domain_facts(proof.result.notation)
    facts += [r for name in names if about_constants(r := relation_of(claim_set, proof, name))] if forms else []
    for name, conditions in forms.items():
        for condition in conditions:
            wanted = condition_fact(condition)
            sides = [wanted.slack] if wanted.op == "<=" else [wanted.slack, -wanted.slack]
            for side in (s.xreplace(values) for s in sides):
                if grows is not None and sp.limit(side, grows, sp.oo).is_extended_positive:
                    continue
                found = prove(side, facts)
                if found.holds and wanted.strict and not never_zero(side, facts):
                    found = ProofFinding(False, found.method, "both sides may be equal")
                if not found.holds:
                    return f"{name} needs {condition.text}, which does not follow: {found.evidence}"
    return ""


def conditions_below(claim_set: ClaimSet, proof: Proof, name: str) -> tuple[Condition, ...]:
    """The conditions that a step rests on."""
    step = proof.step(name)
    if step is not None:
        return trace(claim_set, proof, step).conditions
    subject = claim_set.claims[name].subject
    return trace(claim_set, subject.proof, subject.step).conditions if isinstance(subject, StepOf) else ()


def domain_facts(notation: Notation) -> list[Relation]:
    """The ends of the domains that are not in the symbols: upper ones, and lower ones of what need not be whole."""
    found = [Relation(q.symbol, sp.Rational(q.domain.high)) for q in notation.values() if isfinite(q.domain.high)]
    return found + [
        Relation(sp.Rational(q.domain.low), q.symbol)
        for q in notation.values()
        if q.domain.low > 0 and not (q.domain.integer and q.domain.low == 1)
    ]


def about_constants(relation: Relation) -> bool:
    """Whether a relation speaks of constants alone, so that it may serve as a fact."""
    symbols = relation.slack.free_symbols
    measured = any(map(opaque, symbols))
    powers = relation.slack.atoms(sp.Pow)
    rational = all(p.exp.is_number and (p.exp.is_integer or not p.base.is_Add) for p in powers)
    return not measured and rational and not relation.slack.has(sp.log, sp.Sum)


def condition_fact(condition: Condition) -> Relation:
    """A condition as left <= right or left == right."""
    if condition.op == "==":
        return Relation(condition.left, condition.right, "==")
    if condition.op in ("<=", "<"):
        return Relation(condition.left, condition.right, strict=condition.op == "<")
    return Relation(condition.right, condition.left, strict=condition.op == ">")


@dataclass(frozen=True)
class Grounds:
    """What a form rests on: all steps of its proof and of the proofs it uses, and the forms it uses whole."""

    steps: tuple[tuple[str, Verdict], ...]  # every step and form with its verdict
    assumptions: frozenset[str]  # assumptions, conditions: what they need
    conditions: tuple[Condition, ...]
    prescribed: tuple[tuple[sp.Symbol, sp.Expr], ...]  # the step sizes that steps set
    # those of the forms used whole; a form that names no step size states a rate, at these
    inherited: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()


def trace(claim_set: ClaimSet, proof: Proof, end: Step) -> Grounds:
    """Walk the graph backwards from a step; the conditions of a form used whole are discharged where it is used."""
    seen: dict[str, Verdict] = {}
    visited: set[tuple[str, frozenset[str], bool, bool]] = set()
    assumptions: set[str] = set()
    conditions: list[Condition] = []
    prescribed: list[tuple[sp.Symbol, sp.Expr]] = []
    inherited: list[tuple[sp.Symbol, sp.Expr]] = []

    path: list[str] = []

    def visit(current: Proof, step: Step, discharged: frozenset[str], conditional: bool, sets: bool) -> None:
        claim_id = f"{current.id}/{step.id}"
        if claim_id in path:
            raise FedboundsError(f"{claim_id} rests on itself: {' -> '.join([*path, claim_id])}")
        if (claim_id, discharged, conditional, sets) in visited:
            return
        visited.add((claim_id, discharged, conditional, sets))
        path.append(claim_id)
        seen[claim_id] = claim_set.verdict(claim_id)
        own_steps = prescribes(step.rule)
        prescribed.extend(own_steps if sets else ())
        below = conditional and not specializes(step.rule)
        sets_below = sets and not (own_steps and specializes(step.rule))  # others are overwritten by these values
        hypotheses = step.rule.discharges if isinstance(step.rule, Discharges) else ()
        source, *_ = [p for p in step.premises if isinstance(p, str)] or [""]
        for premise in step.premises:
            if isinstance(premise, Assumption):
                assumptions.update({premise.name} - discharged)
            elif isinstance(premise, Condition):
                conditions.extend([premise] if conditional else [])
            else:
                own = {name for name, _ in hypotheses} if premise == source else set()
                local = current.step(premise)
                claim = claim_set.claims.get(premise)  # none where the name is wrong; then its step is not proved
                other = claim.subject if local is None and claim else None
                if local is not None:
                    visit(current, local, discharged | own, below, sets_below)
                elif isinstance(other, StepOf):
                    visit(other.proof, other.step, discharged | own, below, sets_below)
                elif isinstance(other, ResultForm):
                    seen[premise] = claim_set.verdict(premise)
                    assumptions.update({a.name for a in other.form.assumptions} - discharged - own)
                    symbols = other.result.notation
                    inherited.extend((symbols[k].symbol, v) for k, v in other.form.prescribes.items() if sets_below)
        path.pop()

    visit(proof, end, frozenset(), True, True)
    needed = tuple(dict.fromkeys(conditions))
    return Grounds(tuple(seen.items()), frozenset(assumptions), needed, tuple(prescribed), tuple(inherited))


def try_form(subject: ResultForm, claim_set: ClaimSet) -> Verdict:
    """A form is proved if its graph is, its assumptions and conditions cover the graph's, and the ends meet."""
    proof = proof_of(claim_set, subject)
    assert proof is not None
    end = proof.step(proof.ends[subject.form.name])
    if end is None:
        return _unknown(f"the proof has no step {proof.ends[subject.form.name]}", ())
    found = trace(claim_set, proof, end)
    bound = end.conclusion.right.xreplace(dict(proof.substitute))
    form = subject.form
    axioms = tuple(sorted({a for _, v in found.steps for a in v.axioms}))
    left = left_hand_side(subject) if proof.left is None else proof.left
    if end.conclusion.left != left:
        return _unknown(f"the last step bounds {end.conclusion.left}, the form {left}", axioms)
    for symbol, value in (*found.prescribed, *(found.inherited if form.prescribes else ())):
        said = form.prescribes.get(symbol.name)
        if said is None or not _equal_values(said, value):
            return _unknown(f"the proof sets {symbol} = {value}, the form {said}", axioms)
    if form.order_only:
        ratio = sp.simplify(bound / form.bound)
        hidden = set(end.rule.hidden) if isinstance(end.rule, Hides) else set()
        if ratio.free_symbols - hidden or not ratio.is_nonnegative or ratio == 0:
            return _unknown(f"the last step ends at {bound}, which is no multiple of {form.bound}", axioms)
    elif not same(bound, form.bound):
        return _unknown(f"the last step ends at {bound}, the form says {form.bound}", axioms)
    shaky = {name: v for name, v in found.steps if v.outcome != "proved"}
    unproved = [
        f"{name} ({v.evidence})" for name, v in shaky.items() if not shaky.keys() & steps_below(claim_set, name)
    ]
    if unproved:
        return _unknown(f"not every step is proved: {'; '.join(unproved)}", axioms)
    absent = sorted(found.assumptions - {a.name for a in form.assumptions})
    if absent:
        return _unknown(f"the proof uses {', '.join(absent)}, which the form does not assume", axioms)
    loose = [c.text for c in found.conditions if not _covered(c, form)]
    if loose:
        return _unknown(f"the proof uses {'; '.join(loose)}, which does not follow from the form's conditions", axioms)
    evidence = f"all {len(found.steps)} steps, and the last ends at this form"
    trusts = tuple(sorted({word for _, v in found.steps for word in v.trusts}))
    may_hide = tuple(sorted({word for _, v in found.steps for word in v.may_hide}))
    return Verdict("proved", "steps", "graph", evidence, axioms, trusts=trusts, may_hide=may_hide)


def _unknown(evidence: str, axioms: tuple[str, ...]) -> Verdict:
    return Verdict("unknown", "steps", "graph", evidence, axioms)


def _equal_values(first: sp.Expr, second: sp.Expr) -> bool:
    """Equal as written, or by normal form; a minimum is the same in any order."""
    if isinstance(first, sp.Min) and isinstance(second, sp.Min):
        return all(any(same(a, b) for b in second.args) for a in first.args)
    return first == second or same(first, second)


def _covered(condition: Condition, form: Form) -> bool:
    """Whether a condition follows from those of the form."""
    if condition in form.conditions:
        return True
    facts = [condition_fact(c) for c in form.conditions]
    wanted = condition_fact(condition)
    sides = [wanted.slack] if wanted.op == "<=" else [wanted.slack, -wanted.slack]
    strictly = not wanted.strict or never_zero(wanted.slack, facts)
    return strictly and all(prove(side, facts).holds for side in sides)


@dataclass(frozen=True, eq=False)
class Unstated:
    """The claim that a form follows from what the paper states, without one assumption that it does not."""

    subject: ResultForm
    assumption: Assumption
    erratum: str = ""

    def claim(self) -> Claim:
        """Refuted where the graph uses the assumption and a counterexample shows that nothing else would do."""
        paper = self.subject.result.paper
        return Claim(
            id=f"{paper}/unstated/{self.assumption.name}",
            kind="assumption",
            text=f"{self.subject.id} follows without: {self.assumption.statement}",
            subject=self,
            content=f"{self.subject.content}\n{self.assumption}\n{self.erratum}",
            assumptions=tuple(a for a in self.subject.form.assumptions if a != self.assumption),
            conditions=self.subject.form.conditions,
            source=str(self.subject.result.source),
        )


def try_unstated(subject: Unstated, claim_set: ClaimSet) -> Verdict:
    """The steps that use the assumption, by machine, and the counterexample that shows it is needed."""
    proof = proof_of(claim_set, subject.subject)
    if proof is None:
        return _unknown("there is no proof to read it from", ())
    users = []
    end = proof.step(proof.ends[subject.subject.form.name])
    assert end is not None
    for name, _ in trace(claim_set, proof, end).steps:
        step = claim_set.claims[name].subject
        if isinstance(step, StepOf) and subject.assumption in step.step.premises:
            users.append(name.partition("/")[2])
    if not users:
        return Verdict("proved", "steps", "graph", "no step of the proof uses it")
    evidence = f"used by {', '.join(users)}"
    if subject.erratum:
        refuted = claim_set.verdict(subject.erratum)
        if refuted.outcome == "refuted":
            return Verdict("refuted", "steps", "graph and counterexample", f"{evidence}; without it {refuted.evidence}")
    return _unknown(f"{evidence}; no counterexample is known that breaks the theorem without it", ())


Subject = StepOf | ResultForm | Unstated
TRIALS: Mapping[type, Callable[..., Verdict]] = {StepOf: try_step, Unstated: try_unstated}


def _hears(claim: Claim, claim_set: ClaimSet) -> bool:
    if isinstance(claim.subject, ResultForm) and claim.subject.result.file:
        return proof_of(claim_set, claim.subject) is not None  # few theorem files have one
    return isinstance(claim.subject, StepOf | ResultForm | Unstated)


def _tries(claim: Claim, claim_set: ClaimSet) -> Verdict:
    if isinstance(claim.subject, ResultForm):
        if proof_of(claim_set, claim.subject) is None:
            form = claim.subject.form
            return _unknown(f"there is no proof of this form here{': ' if form.note else ''}{form.note}", ())
        return try_form(claim.subject, claim_set)
    return TRIALS[type(claim.subject)](claim.subject, claim_set)


CHECKER = Checker("steps", _hears, _tries)
