"""Mutation testing of theorems and proofs: does a checker notice that a claim is changed?

Mutations are enumerated from the claims of a paper: numbers, exponents, symbols, indices, summands and inequalities of
forms, steps and limits; conditions, assumptions and premises; numbers of rules; meanings of vectors and symbols;
counterexamples. The changed claim and what uses it are verified before and after, with every other claim taken as
proved. A mutation is caught if a verdict gets worse. One that survives is

- `not tight`: the checker proves the changed statement too, but refuses a larger change at the same place;
- `not needed`: what is dropped is not used here, but it cannot be dropped elsewhere;
- `open`: no checker proves the claim as it stands;
- a `GAP`: no mutation of this kind is ever refused, so the check cannot fail, or the changed statement is false.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, cast

import sympy as sp

from fedbounds.bounds.audit.chain import Yields
from fedbounds.bounds.audit.claim import Claim, Relation, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet, checkers, paper_claims
from fedbounds.bounds.audit.counterexample import Erratum, Replay
from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.audit.nonnegative import counterexample
from fedbounds.bounds.audit.proof_step_checker import (
    Proof,
    ProofSetting,
    Step,
    StepOf,
    about_constants,
    condition_fact,
    domain_facts,
    relation_of,
)
from fedbounds.bounds.audit.rule import given, prescribes
from fedbounds.bounds.audit.rules import expand_definitions
from fedbounds.bounds.audit.spreads import Spread
from fedbounds.bounds.audit.unit_claims import units_claim
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import Notation

# kinds of mutations
CONSTANT, EXPONENT, SQUARE, SYMBOL, INDEX = "constant", "exponent", "missing square", "swapped symbol", "index"
TERM, FLIP, STEP_SIZE, RULE, READING = "dropped term", "flipped", "step size", "rule", "reading"
CONDITION, ASSUMPTION, PREMISE, VECTOR, REPLAY = "condition", "assumption", "premise", "vector", "counterexample"
STATED, DROPPED = (CONSTANT, EXPONENT, SQUARE, SYMBOL, INDEX, TERM, FLIP), (CONDITION, ASSUMPTION, PREMISE, VECTOR)

CAUGHT, NOT_TIGHT, NOT_NEEDED, OPEN, GAP = OUTCOMES = ("caught", "not tight", "not needed", "open", "GAP")
INSTANCES, MEASURED = "instances", ("lemma", "proposition", "remark")  # what is cheap to measure
FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "<="}
TENTH, MORE, LESS = sp.Rational(9, 10), sp.Rational(11, 10), "less by 10 percent"
GRAVER = tuple(map(sp.Rational, ("1/2", "1/10", "1/100", "0", "-1", "-100")))

Claims = dict[str, Claim]
Planted = tuple[Claims, tuple[str, ...]]  # what changes, and the ids of what is tried, the changed claim first
Plants = Callable[[Claims, Any], Planted]


@dataclass(frozen=True, eq=False)
class Mutation:
    """One mutation.

    Args:
        kind: e.g. CONSTANT, CONDITION, PREMISE.
        what: in words.
        said: makes the form, step, limit... with this error.
        scaled: the same with the number at this place times a factor, if there is one.
        thing: what is wrong, where it stands in other places too (an assumption, a field of a rule).
        place: the id of the changed claim, without the paper.
        plants: puts what is said into the claims.
    """

    kind: str
    what: str
    said: Callable[[], Any]
    scaled: Callable[[sp.Expr], Any] | None = None
    thing: str = ""
    place: str = ""
    plants: Plants = lambda claims, new: ({}, ())

    @property
    def name(self) -> str:
        """Where and what."""
        return f"{self.place}: {self.what}"

    def within(self, put: Callable[[Any], Any]) -> Mutation:
        """The same error, of what holds the changed thing."""
        said, scaled = self.said, self.scaled
        return replace(self, said=lambda: put(said()), scaled=scaled and (lambda q: put(scaled(q))))

    def graver(self) -> Iterator[Mutation]:
        """Larger errors at the same place."""
        if scaled := self.scaled:
            yield from (replace(self, what=f"{self.what}, times {q}", said=partial(scaled, q)) for q in GRAVER)


@dataclass(frozen=True)
class Ruling:
    """What became of a mutation: an outcome, and who noticed it, or why it does not matter."""

    mutation: Mutation
    outcome: str
    evidence: str

    def __str__(self) -> str:
        how = " ".join(self.evidence.split())[:160]
        return " | ".join([self.mutation.name, self.mutation.kind, self.outcome, how])


@dataclass
class Bench:
    """A paper's claims, by id, with their verdicts before these checkers as they stand, for all mutations."""

    claims: Claims
    checkers: tuple[Checker, ...]
    _found: dict[tuple[str, str], Verdict | None] = field(default_factory=dict)
    _noticed: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(claims: Iterable[Claim] | str, only: Sequence[Checker] | None = None) -> Bench:
        """These claims, or those of the paper of this name, before every installed checker unless some are given."""
        found = paper_claims(claims) if isinstance(claims, str) else claims
        return Bench({c.id: c for c in found}, tuple(checkers() if only is None else only))

    @cached_property
    def mutations(self) -> Mapping[str, Mutation]:
        """Every mutation there is by its name, in the order of the claims."""
        return {mutation.name: mutation for mutation in enumerate_mutations(self.claims)}

    def sample(self, each: int, place: str = "", seed: int = 0) -> list[Mutation]:
        """So many of every kind, drawn with this seed, at claims whose ids (without the paper) start so."""
        found, source = defaultdict(list), random.Random(seed)
        for mutation in self.mutations.values():
            if mutation.place.startswith(place):
                found[mutation.kind].append(mutation)
        return [m for kind in sorted(found) for m in source.sample(found[kind], min(each, len(found[kind])))]

    def judged(self, mutation: Mutation | str) -> Ruling:
        """Who notices a mutation (or the one of this name), else whether it matters that nobody does."""
        mutation = self.mutations[mutation] if isinstance(mutation, str) else mutation
        if caught := self.noticed(mutation):
            return Ruling(mutation, CAUGHT, caught)
        planted, concerned = mutation.plants(self.claims, mutation.said())
        vouched = ("refuted",) if mutation.kind == REPLAY else ("proved", "survived", "argued")
        if not any(v.outcome in vouched for v in self._verdicts(concerned[:1])):
            return Ruling(mutation, OPEN, "no checker proves it as it stands")
        if mutation.kind == READING and INSTANCES not in {checker.name for checker in self.checkers}:
            return Ruling(mutation, OPEN, "no checker here tests what a rule states without proof")
        where = false_at(self.claims | planted, concerned[0]) if mutation.kind in STATED else None
        if where and not false_at(self.claims, concerned[0]):  # else a rule knows more than the facts say
            return Ruling(mutation, GAP, f"false at {where}")
        for other in chain(mutation.graver(), self._alike[mutation.thing] if mutation.thing else ()):
            if caught := self.noticed(other):
                outcome = NOT_NEEDED if mutation.kind in DROPPED else NOT_TIGHT
                return Ruling(mutation, outcome, f"but {other.name}: {caught}")
        return Ruling(mutation, GAP, "no error of this sort is noticed")

    def noticed(self, mutation: Mutation) -> str:
        """The first checker that notices a mutation, where and why; empty if none does."""
        if mutation.name not in self._noticed:
            self._noticed[mutation.name] = self._notices(mutation)
        return self._noticed[mutation.name]

    def _notices(self, mutation: Mutation) -> str:
        try:
            changed, concerned = mutation.plants(self.claims, mutation.said())
        except ValueError as error:  # a rule that says nothing of such vectors
            return f"steps: {error}"
        claims = self.claims | changed
        for checker in self.checkers:
            for claim_id in concerned if checker.name != INSTANCES else concerned[:1]:
                for before in self._verdicts([claim_id], [checker]):
                    if why := worse(before, run_checker(checker, claims, claim_id)):
                        return f"{checker.name}: {claim_id.partition('/')[2]}: {why}"
        return ""

    def _verdicts(self, names: Iterable[str], only: Sequence[Checker] = ()) -> Iterator[Verdict]:
        """What the checkers that hear these claims say as they stand."""
        claim_set = ClaimSet(_paper(self.claims), self.claims, self.checkers)
        for name in filter(self.claims.__contains__, names):
            for checker in only or self.checkers:
                subject = self.claims[name].subject
                costly = isinstance(subject, ResultForm) and subject.result.kind not in MEASURED
                if (key := (checker.name, name)) not in self._found:
                    heard = checker.applies_to(self.claims[name], claim_set) and not (
                        costly and checker.name == INSTANCES
                    )
                    self._found[key] = run_checker(checker, self.claims, name) if heard else None
                if verdict := self._found[key]:
                    yield verdict

    @cached_property
    def _alike(self) -> Mapping[str, Sequence[Mutation]]:
        found = defaultdict(list)
        for mutation in self.mutations.values():
            found[mutation.thing].append(mutation)
        return found


def run_checker(checker: Checker, claims: Claims, claim_id: str) -> Verdict:
    """One checker's verdict on one claim, all others being what they should be; an error is a verdict too."""
    claim_set, best = ClaimSet(_paper(claims), claims, (checker,)), Verdict("proved", "none", "taken at its best", "")
    others = {name: replace(best, outcome="refuted") if c.kind == "erratum" else best for name, c in claims.items()}
    claim_set._verdicts.update({name: verdict for name, verdict in others.items() if name != claim_id})
    try:
        return checker.verify(claims[claim_id], claim_set)
    except (FedboundsError, ArithmeticError, LookupError, TypeError) as error:
        return Verdict("unknown", checker.name, "error", str(error))


def worse(before: Verdict, after: Verdict) -> str:
    """Why a verdict is worse than another; empty if it is not.

    Example:
        >>> proved = Verdict("proved", "steps", "", "")
        >>> worse(proved, Verdict("unknown", "steps", "graph", "its premise L1.9 is not an earlier step"))
        'unknown, its premise L1.9 is not an earlier step'
        >>> worse(Verdict("unknown", "steps", "", ""), proved)
        ''
    """
    flags = [flag for flag in after.flags if flag not in before.flags]
    lost = after.outcome != before.outcome and (before.outcome != "unknown" or after.outcome == "refuted")
    if lost and not (before.outcome == "survived" and after.outcome == "proved"):
        return f"{after.outcome}, {after.evidence}"
    return f"flagged {', '.join(flags)}" if flags else ""


def false_at(claims: Claims, name: str) -> str | None:
    """Numbers at which a step about constants, with premises about constants, is false, if any are found."""
    subject = claims[name].subject
    if not isinstance(subject, StepOf):
        return None
    proof, step, claim_set = subject.proof, subject.step, ClaimSet(_paper(claims), claims, ())
    said = [step.conclusion, *(relation_of(claim_set, proof, p) for p in step.premises if isinstance(p, str))]
    if not all(map(about_constants, said)):
        return None
    said += [condition_fact(p) for p in step.premises if isinstance(p, Condition)] + domain_facts(proof.result.notation)
    wrong, *known = (_sides(expand_definitions(relation, proof.setting.symbols)) for relation in said)
    return next(filter(None, (counterexample(side, list(chain(*known))) for side in wrong)), None)


def _sides(relation: Relation) -> tuple[sp.Expr, ...]:
    return (relation.slack, -relation.slack) if relation.op == "==" else (relation.slack,)


def _paper(claims: Claims) -> str:
    """The paper that all claims are about."""
    return next(iter(claims)).partition("/")[0]


# --- What can be wrong ------------------------------------------------------------------------------------------------


def swap(items: Sequence[Any], k: int, *new: Any) -> tuple[Any, ...]:
    """The k-th of some items replaced, or left out."""
    return (*items[:k], *new, *items[k + 1 :])


def mutate_expression(says: str, e: sp.Expr, notation: Notation) -> Iterator[Mutation]:
    """An expression with another number, power, symbol or index, or without a summand: one error of each kind."""
    found: dict[str, Mutation] = {}
    for kind, what, other in _mistaken(e, notation) if e else ():
        found.setdefault(kind, Mutation(kind, f"{says} {what}", other, lambda q: q * e))
    yield from found.values()


def _mistaken(e: sp.Expr, notation: Notation) -> Iterator[tuple[str, str, Callable[[], sp.Expr]]]:
    yield CONSTANT, LESS, lambda: TENTH * e
    if e.is_Add:
        yield TERM, f"without {e.args[-1]}", lambda: e - cast(sp.Expr, e.args[-1])
    for quantity in (q for q in notation.values() if q.symbol in e.free_symbols):
        symbol = quantity.symbol
        alike = [q.symbol for q in notation.values() if q.dimension == quantity.dimension]
        twin = alike[(alike.index(symbol) + 1) % len(alike)]
        if e.has(symbol**2):
            yield SQUARE, f"with {symbol} for {symbol}^2", lambda x=symbol: e.xreplace({x**2: x})
        else:
            yield EXPONENT, f"over {symbol}", lambda x=symbol: e / x
        if symbol.is_integer:
            yield INDEX, f"with {symbol} - 1 for {symbol}", lambda x=symbol: e.xreplace({x: x - 1})
        if twin != symbol:
            yield SYMBOL, f"with {twin} for {symbol}", lambda x=symbol, y=twin: e.xreplace({x: y})


def mutate_hypotheses(items: Sequence[Any], k: int) -> Iterator[Mutation]:
    """A condition or an assumption among some items dropped; a condition turned around, or looser by a tenth."""
    one = items[k]
    if isinstance(one, Assumption):
        yield Mutation(ASSUMPTION, f"without {one.name}", lambda: swap(items, k), thing=f"assumption {one.name}")
    elif isinstance(one, Condition):
        looser = replace(one, right=(MORE if one.op in ("<=", "<") else TENTH) * one.right)
        for kind, what, new in (
            (CONDITION, "dropped", ()),
            (FLIP, "turned around", (replace(one, op=FLIPPED[one.op]),)),
            (CONSTANT, "looser by 10 percent", (looser,)),
        ):
            if new != (one,):
                said = partial(swap, items, k, *new)
                yield Mutation(kind, f"{one.text} {what}", said, thing=f"condition {one.text}")


def mutate_form(form: Form, notation: Notation) -> Iterator[Mutation]:
    """Errors in one form of a result."""
    for k, term in enumerate(form.terms):
        for m in mutate_expression(term.name, term.expression, notation):
            yield m.within(lambda e, k=k, name=term.name: replace(form, terms=swap(form.terms, k, Term(name, e))))
        if len(form.terms) > 1:
            m = Mutation(TERM, f"without {term.name}", tuple, lambda q, t=term: (Term(t.name, (q - 1) * t.expression),))
            yield m.within(lambda new, k=k: replace(form, terms=swap(form.terms, k, *new)))
    for name in ("conditions", "assumptions"):
        for m in chain(*(mutate_hypotheses(vars(form)[name], k) for k in range(len(vars(form)[name])))):
            yield m.within(lambda items, name=name: replace(form, **{name: items}))
    for name, value in form.prescribes.items():
        for m in mutate_expression(name, value, notation):
            m = m.within(lambda e, name=name: replace(form, prescribes={**form.prescribes, name: e}))
            yield replace(m, kind=STEP_SIZE)


def mutate_step(subject: StepOf, claim_set: ClaimSet) -> Iterator[Mutation]:
    """Errors in one step of a proof."""
    step, proof, said = subject.step, subject.proof, subject.step.conclusion
    for m in mutate_expression("right side", said.right, proof.result.notation):
        yield m.within(lambda e: replace(step, conclusion=replace(said, right=e)))
    if said.op == "<=":
        turned = Mutation(
            FLIP, "the sides exchanged", lambda: (said.right, said.left), lambda q: (said.left, q * said.right)
        )
        yield turned.within(lambda both: replace(step, conclusion=replace(said, left=both[0], right=both[1])))
    order = [s.id for s in proof.steps[: proof.steps.index(step)]]
    for k, premise in enumerate(step.premises):
        found = list(mutate_hypotheses(step.premises, k))
        if isinstance(premise, str):
            thing = f"premise {proof.id if proof.step(premise) else ''}/{premise}"
            place = order.index(premise) if premise in order else len(order)
            near = sorted(
                set(order) - set(step.premises), key=lambda s: (abs(order.index(s) - place), -order.index(s))
            )[:1]
            for what, new in (("without", ()), *((f"{name} for", (name,)) for name in near)):
                found.append(Mutation(PREMISE, f"{what} {premise}", partial(swap, step.premises, k, *new), thing=thing))
        yield from (m.within(lambda premises: replace(step, premises=premises)) for m in found)

    def read(rule: Any) -> Step:
        relations = [relation_of(claim_set, proof, p) for p in step.premises if isinstance(p, str)]
        return replace(step, rule=rule, conclusion=rule.relation(proof.setting, relations))

    for m in mutate_rule(step.rule):
        yield m.within(lambda rule: replace(step, rule=rule))
        if m.kind == RULE and given(step.rule) and isinstance(step.rule, Yields):
            yield replace(m.within(read), kind=READING, what=f"{m.what}, and so the step", thing=f"reading {m.thing}")


def mutate_rule(rule: Any) -> Iterator[Mutation]:
    """Another number in a rule."""
    numbers: list[sp.Expr] = []
    names = [name for name, _ in mutate_field(rule, lambda e: numbers.append(e) or e)]
    for k, (name, number) in enumerate(zip(names, numbers, strict=True)):

        def altered(how: Callable[[sp.Expr], sp.Expr], k: int = k) -> Any:
            return [other for _, other in mutate_field(rule, how)][k]

        what, thing = f"number {k + 1} of its rule", f"{type(rule).__name__}.{name}"
        yield Mutation(
            RULE,
            f"{what} {LESS}",
            lambda f=altered: f(lambda e: TENTH * e),
            lambda q, f=altered: f(lambda e: q * e),
            thing,
        )
        if number.is_integer and number.free_symbols:
            yield Mutation(INDEX, f"{what} more by 1", lambda f=altered: f(lambda e: e + 1), None, thing)


def mutate_field(value: Any, how: Callable[[sp.Expr], sp.Expr], name: str = "") -> Iterator[tuple[str, Any]]:
    """What a rule or a part of it is if one of its numbers changes, with the field's name; always in the same order."""
    if isinstance(value, tuple):
        for k, part in enumerate(value) if sp.Symbol not in map(type, value) else ():
            yield from ((at, swap(value, k, other)) for at, other in mutate_field(part, how, name))
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            kind = one.type if isinstance(one.type, str) else getattr(one.type, "__name__", str(one.type))
            numeric = "Symbol" not in kind and not kind.startswith("int")  # a number
            for at, other in mutate_field(vars(value)[one.name], how, name or one.name) if numeric else ():
                yield at, replace(value, **{one.name: other})
    elif isinstance(value, sp.Expr | int) and not isinstance(value, bool):
        yield name, how(sp.S.One * value)


def mutate_setting(setting: ProofSetting) -> Iterator[tuple[str, Mutation]]:
    """What else a vector or a symbol may stand for, with its name."""
    for name, atom in setting.atoms.items():
        words = {word: sorted({vars(other)[word] for other in setting.atoms.values()}) for word in ("at", "of", "mean")}
        other_words = {word: said[(said.index(vars(atom)[word]) + 1) % len(said)] for word, said in words.items()}
        if atom.mean:
            other_words["mean"] = ""
        flags = {"time": atom.time + 1, "per_client": not atom.per_client, "still": not atom.still}
        for word, new in (flags | other_words).items():
            if new != vars(atom)[word]:
                other = partial(replace, setting, atoms={**setting.atoms, name: replace(atom, **{word: new})})
                yield name, Mutation(VECTOR, f"{name} with {word} {new or 'none'}", other, thing=f"vector {word}")
    for symbol, value in setting.symbols.items():

        def scaled(q: sp.Expr, symbol: sp.Symbol = symbol, value: sp.Expr = value) -> ProofSetting:
            return replace(setting, symbols={**setting.symbols, symbol: q * value})

        yield str(symbol), Mutation(VECTOR, f"{symbol} {LESS}", partial(scaled, TENTH), scaled)


def mutate_limit(limit: Limit) -> Iterator[Mutation]:
    """Errors in a special case."""

    def scaled(q: sp.Expr) -> Limit:
        return replace(limit, right=tuple(replace(t, expression=q * t.expression) for t in limit.right))

    if any(t.expression for t in limit.right):  # nothing, less by a tenth, is nothing
        yield Mutation(CONSTANT, f"right side {LESS}", partial(scaled, TENTH), scaled)
    if limit.op == "<=":
        yield Mutation(FLIP, "the sides exchanged", lambda: replace(limit, left=limit.right, right=limit.left), scaled)
    for k in range(len(limit.facts)):
        yield from (m.within(lambda facts: replace(limit, facts=facts)) for m in mutate_hypotheses(limit.facts, k))
    for symbol, value in limit.at.items():
        other = partial(replace, limit, at=dict(limit.at.items()) | {symbol: value + 1})
        yield Mutation(INDEX, f"{symbol} = {value + 1} for {value}", other, thing="value in a limit")


def mutate_spread(spread: Spread) -> Iterator[Mutation]:
    """Errors in an inequality about data."""
    yield Mutation(CONSTANT, LESS, lambda: TENTH, lambda q: q).within(lambda q: replace(spread, right=q * spread.right))


def mutate_replay(replay: Replay) -> Iterator[Mutation]:
    """Errors in the recomputation of a counterexample."""
    yield Mutation(REPLAY, "the measured side no larger than the bound", partial(replace, replay, true=replay.claimed))
    yield Mutation(REPLAY, "the bound as large as the measured side", partial(replace, replay, claimed=replay.true))
    for k, check in enumerate(replay.hypotheses):
        kept = tuple(c for c in replay.hypotheses if c.name != check.name)
        fails = swap(replay.hypotheses, k, replace(check, left=1, op="==", right=2))
        yield Mutation(
            REPLAY, f"{k + 1}: {check.name} unchecked", partial(replace, replay, hypotheses=kept), thing="unchecked"
        )
        yield Mutation(REPLAY, f"{k + 1}: {check.name} fails", partial(replace, replay, hypotheses=fails))


# --- Where it is planted ----------------------------------------------------------------------------------------------


def enumerate_mutations(claims: Claims) -> Iterator[Mutation]:
    """Every mutation of these claims."""
    claim_set, settings = ClaimSet(_paper(claims), claims, ()), []
    for claim in claims.values():
        subject = claim.subject
        if isinstance(subject, ResultForm):
            found, plants = mutate_form(subject.form, subject.result.notation), partial(place_form, subject)
        elif isinstance(subject, StepOf):
            found, plants = mutate_step(subject, claim_set), partial(place_step, subject)
            settings += [subject.proof.setting] if subject.proof.setting not in settings else []
        elif isinstance(subject, Limit):
            found, plants = mutate_limit(subject), partial(place_claim, Limit.claim, claim.paper)
        elif isinstance(subject, Spread):
            found, plants = mutate_spread(subject), partial(place_claim, Spread.claim, claim.paper)
        elif isinstance(subject, Erratum):
            found = mutate_replay(subject.replayed)
            plants = partial(place_claim, partial(_replaying, subject), claim.paper)
        else:
            continue
        yield from (replace(m, place=claim.id.partition("/")[2], plants=plants) for m in found)
    for setting in settings:
        sharing = [proof for proof in proofs(claims) if proof.setting == setting]
        for name, m in mutate_setting(setting):
            yield replace(m, place=sharing[0].id.partition("/")[2], plants=partial(place_setting, sharing, name))


def place_form(subject: ResultForm, claims: Claims, new: Form) -> Planted:
    """Another form in its place; its proof, its units and its limits see it."""
    old = subject.form
    result = replace(subject.result, forms=tuple(new if f is old else f for f in subject.result.forms))
    forms = [ResultForm(result, form) for form in result.forms]
    found = {c.id: c for form in forms for c in (form.claim(), units_claim(form))}
    ends = []
    for proof in proofs(claims):
        if proof.result is subject.result:
            end = proof.ends.get(old.name)
            steps = tuple(_follows(step, old, new) if step.id == end else step for step in proof.steps)
            found |= {c.id: c for c in replace(proof, result=result, steps=steps).claims()}
            ends += [f"{proof.id}/{end}"] if end else []
    limits = {c.id: c for c in _limits_about(claims, old.terms, new.terms)}
    return found | limits, (subject.id, f"{subject.id}/units", *ends, *limits, *users(claims, subject.id))


def _follows(step: Step, old: Form, new: Form) -> Step:
    """The step that ends at a form, where its right-hand side is taken from the form and would change with it."""
    before, right = old.bound.doit(), step.conclusion.right.doit()
    factor = sp.S.One if right == before else sp.simplify(right / before) if old.order_only else sp.S.NaN
    if not factor.is_Rational:
        return step
    return replace(step, conclusion=replace(step.conclusion, right=factor * new.bound.doit()))


def _limits_about(claims: Claims, old: tuple[Term, ...], new: tuple[Term, ...]) -> Iterator[Claim]:
    """The limits that speak of these terms, with the others in their place."""
    for claim in claims.values():
        limit = claim.subject
        if isinstance(limit, Limit) and old in (limit.left, limit.right):
            left, right = (new if side == old else side for side in (limit.left, limit.right))
            yield replace(limit, left=left, right=right).claim(claim.paper)


def place_step(subject: StepOf, claims: Claims, new: Step) -> Planted:
    """Another step in its place; the steps and forms that use it see it."""
    proof, name = subject.proof, f"{subject.proof.id}/{subject.step.id}"
    steps = tuple(new if step is subject.step else step for step in proof.steps)
    set_here = [f"{proof.result.key}[{form}]" for form in proof.ends if prescribes(new.rule)]
    return {c.id: c for c in replace(proof, steps=steps).claims()}, (name, *users(claims, name), *set_here)


def place_setting(sharing: Sequence[Proof], name: str, claims: Claims, new: ProofSetting) -> Planted:
    """Another setting of all proofs that share it; the steps that speak of the vector or symbol, or write it out."""
    found = {c.id: c for proof in sharing for c in replace(proof, setting=new).claims()}
    speak = {p.id: {s.id for s in p.steps if re.search(rf"\b{name}\b", _spoken(s))} for p in sharing}
    return found, tuple(f"{p.id}/{s.id}" for p in sharing for s in p.steps if speak[p.id] & {s.id, *s.premises})


@lru_cache(maxsize=1024)
def _spoken(step: Step) -> str:
    return f"{step.conclusion} {step.rule}"


def place_claim(claim_of: Callable[[Any, str], Claim], paper: str, claims: Claims, new: Any) -> Planted:
    """Another claim in its place."""
    return {(claim := claim_of(new, paper)).id: claim}, (claim.id,)


def _replaying(erratum: Erratum, replay: Replay, paper: str) -> Claim:
    return next(replace(erratum, replay=lambda: replay).claims(paper))


def proofs(claims: Claims) -> list[Proof]:
    """Every proof among the claims."""
    subjects = [claim.subject for claim in claims.values()]
    return list({id(s.proof): s.proof for s in subjects if isinstance(s, StepOf)}.values())


def users(claims: Claims, claim_id: str) -> Iterator[str]:
    """The claims that use one directly: steps that have it among their premises, forms that it ends."""
    for claim in claims.values():
        user = claim.subject
        if isinstance(user, StepOf) and any(claim_id in (p, f"{user.proof.id}/{p}") for p in user.step.premises):
            yield claim.id
    for proof in proofs(claims):
        yield from (
            f"{proof.result.key}[{form}]" for form, end in proof.ends.items() if claim_id == f"{proof.id}/{end}"
        )


# --- The report -------------------------------------------------------------------------------------------------------


def summary(rulings: Sequence[Ruling]) -> str:
    """How many of each kind met which end, and the gaps."""
    counts = Counter((ruling.mutation.kind, ruling.outcome) for ruling in rulings)
    counts.update(("all", ruling.outcome) for ruling in rulings)
    rows = [("kind", *OUTCOMES)]
    rows += [(kind, *(str(counts[kind, end]) for end in OUTCOMES)) for kind in dict.fromkeys(k for k, _ in counts)]
    table = [f"{kind:<16}" + "".join(f"{cell:>12}" for cell in cells) for kind, *cells in rows]
    return "\n".join([*table, *(str(ruling) for ruling in rulings if ruling.outcome == GAP)])


def main(key: str, each: str = str(sys.maxsize), kind: str = "") -> int:
    """Judge mutations; print those that survive, and how many met which end. 1 if there is a gap."""
    paper, _, place = key.partition("/")
    bench, rulings = Bench.of(paper), []
    chosen = [mutation for mutation in bench.sample(int(each), place) if kind in ("", mutation.kind)]
    with progress_bar(paper) as advance:
        for done, mutation in enumerate(chosen):
            if advance:
                advance(done, len(chosen))
            rulings.append(bench.judged(mutation))
            if rulings[-1].outcome != CAUGHT:
                sys.stdout.write(f"{rulings[-1]}\n")
    sys.stdout.write(summary(rulings) + "\n")
    return int(any(ruling.outcome == GAP for ruling in rulings))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
