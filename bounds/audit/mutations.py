"""Planted errors: does any court notice when a result or a step of a paper is changed?

A mutation changes one thing in a docket: a constant, a condition, an assumption, a premise, an exponent. The claims
that are concerned (the changed one, the steps and forms that use it directly, its units, the limits about it) are tried
once as they stand and once after the change, every other claim being taken at its best, so that the change alone is
what is caught. A court catches it if its verdict on some claim gets worse. A mutation that none catches is a gap.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import sympy as sp

from fedbounds.bounds.assumptions import Assumption
from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.counterexample import Erratum, Replay
from fedbounds.bounds.audit.docket import Court, Docket, courts, room_claims
from fedbounds.bounds.audit.limits import Limit
from fedbounds.bounds.audit.steps import Premise, Proof, Step, StepOf
from fedbounds.bounds.audit.unit_claims import units_claim
from fedbounds.bounds.audit.vectors import Atom
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.registry import part
from fedbounds.bounds.result import Condition, Form, Term

# kinds of planted errors
CONSTANT, CONDITION, ASSUMPTION, TERM, FLIP = "constant", "dropped condition", "assumption", "dropped term", "flipped"
EXPONENT, SQUARE, SYMBOL, INDEX, VECTOR = "exponent", "missing square", "swapped symbol", "index", "vector"
PREMISE, RULE, STEP_SIZE = "premise", "rule", "step size"

PAPER = "arbitrary-participation"
INSTANCES, MEASURED = "instances", ("lemma", "proposition", "remark")  # what is cheap to measure
FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "<="}
Claims = dict[str, Claim]


@dataclass(frozen=True)
class Mutation:
    """One planted error.

    Args:
        name: where and what.
        kind: e.g. CONSTANT, "condition", ASSUMPTION, PREMISE, "index".
        plants: from the claims of the paper, those that change and the ids of those to be tried, in this order.
    """

    name: str
    kind: str
    plants: Callable[[Claims], tuple[Claims, tuple[str, ...]]]


@dataclass(frozen=True)
class Catch:
    """Who noticed a mutation (court to claim and reason); nobody did if this is empty."""

    mutation: Mutation
    by: Mapping[str, str]


@dataclass
class Bench:
    """The paper's claims with their verdicts as they stand, for all mutations.

    Args:
        claims: by id.
        courts: who tries them.
    """

    claims: Claims
    courts: tuple[Court, ...]
    _found: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    @staticmethod
    def of(only: Sequence[Court] | None = None, paper: str = PAPER) -> Bench:
        """One paper's, before every installed court."""
        return Bench.of_claims(room_claims(paper), only)

    @staticmethod
    def of_claims(claims: Iterable[Claim], only: Sequence[Court] | None = None) -> Bench:
        """These claims, all of one paper."""
        return Bench({c.id: c for c in claims}, tuple(courts() if only is None else only))

    def judged(self, mutation: Mutation) -> Catch:
        """Which courts notice the mutation: for each the first claim whose verdict gets worse."""
        changed, concerned = mutation.plants(self.claims)
        claims = self.claims | changed
        caught: dict[str, str] = {}
        for place, claim_id in enumerate(concerned):
            for court in self.courts:
                if court.name in caught or not self._concerns(court, claims[claim_id], place == 0):
                    continue
                before = self._verdict(court, claim_id)
                if before is None:
                    continue
                if why := worse(before, tried(court, claims, claim_id)):
                    caught[court.name] = f"{claim_id.partition('/')[2]}: {why}"
        return Catch(mutation, caught)

    @cached_property
    def _docket(self) -> Docket:
        return Docket(_paper(self.claims), self.claims, self.courts)

    def _concerns(self, court: Court, claim: Claim, changed: bool) -> bool:
        subject = claim.subject
        measured = changed and not (isinstance(subject, ResultForm) and subject.result.kind not in MEASURED)
        if court.name == INSTANCES and not measured:
            return False
        return court.hears(claim, self._docket)

    def _verdict(self, court: Court, claim_id: str) -> Verdict | None:
        if claim_id not in self.claims or not court.hears(self.claims[claim_id], self._docket):
            return None
        key = (court.name, claim_id)
        if key not in self._found:
            self._found[key] = tried(court, self.claims, claim_id)
        return self._found[key]


def tried(court: Court, claims: Claims, claim_id: str) -> Verdict:
    """One court's verdict on one claim, all others being what they should be; an error is a verdict too."""
    docket = Docket(_paper(claims), claims, (court,))
    best = Verdict("proved", "none", "taken at its best", "")
    others = {name: replace(best, outcome="refuted") if c.kind == "erratum" else best for name, c in claims.items()}
    docket._verdicts.update({name: verdict for name, verdict in others.items() if name != claim_id})
    try:
        return court.tries(claims[claim_id], docket)
    except FedboundsError as error:
        return Verdict("unknown", court.name, "error", str(error))


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
    lost = before.outcome != "unknown" and after.outcome != before.outcome
    if lost and not (before.outcome == "survived" and after.outcome == "proved"):
        return f"{after.outcome}, {after.evidence}"
    return f"flagged {', '.join(flags)}" if flags else ""


def _paper(claims: Claims) -> str:
    """The paper that all claims are about."""
    return next(iter(claims)).partition("/")[0]


# --- Changes of a form ------------------------------------------------------------------------------------------------


def in_form(place: str, kind: str, what: str, change: Callable[[Form], Form]) -> Mutation:
    """A change of one form, e.g. of "theorem-3.1[explicit]"; its proof, its units and its limits see it."""

    def plants(claims: Claims) -> tuple[Claims, tuple[str, ...]]:
        subject = claims[f"{_paper(claims)}/{place}"].subject
        assert isinstance(subject, ResultForm)
        old, new = subject.form, change(subject.form)
        result = replace(subject.result, forms=tuple(new if f is old else f for f in subject.result.forms))
        changed: Claims = {}
        for form in result.forms:
            whole = ResultForm(result, form)
            changed |= {c.id: c for c in (whole.claim(), units_claim(whole))}
        ends = []
        for proof in proofs(claims):
            if proof.result is subject.result:
                end = proof.ends.get(old.name)
                steps = tuple(_follows(step, old, new) if step.id == end else step for step in proof.steps)
                changed |= {c.id: c for c in replace(proof, result=result, steps=steps).claims()}
                ends += [f"{proof.id}/{end}"] if end else []
        limits = {c.id: c for c in _limits_about(claims, old.terms, new.terms)}
        concerned = (subject.id, f"{subject.id}/units", *ends, *limits, *users(claims, subject.id))
        return changed | limits, concerned

    return Mutation(f"{place}: {what}", kind, plants)


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
        if isinstance(limit, Limit) and (limit.left == old or limit.right == old):
            left, right = (new if side == old else side for side in (limit.left, limit.right))
            yield replace(limit, left=left, right=right).claim(claim.paper)


def on_term(name: str, change: Callable[[sp.Expr], sp.Expr]) -> Callable[[Form], Form]:
    """A change of one term, which must be there."""

    def changed(form: Form) -> Form:
        if name not in [t.name for t in form.terms]:
            raise unknown_name("term", name, [t.name for t in form.terms])
        terms = (replace(t, expression=change(t.expression)) if t.name == name else t for t in form.terms)
        return replace(form, terms=tuple(terms))

    return changed


def without_term(name: str) -> Callable[[Form], Form]:
    """A term less."""
    return lambda form: replace(form, terms=tuple(t for t in form.terms if t.name != name))


def on_condition(index: int, change: Callable[[Condition], Condition | None]) -> Callable[[Form], Form]:
    """A condition changed, or dropped (None)."""

    def changed(form: Form) -> Form:
        found = [change(c) if k == index else c for k, c in enumerate(form.conditions)]
        return replace(form, conditions=tuple(c for c in found if c is not None))

    return changed


def flipped(condition: Condition) -> Condition:
    """The opposite inequality."""
    return replace(condition, op=FLIPPED[condition.op])


def without_assumption(name: str) -> Callable[[Form], Form]:
    """An assumption less."""
    return lambda form: replace(form, assumptions=tuple(a for a in form.assumptions if a.name != name))


def prescribing(name: str, change: Callable[[sp.Expr], sp.Expr]) -> Callable[[Form], Form]:
    """Another step size or interval."""
    return lambda form: replace(form, prescribes={**form.prescribes, name: change(form.prescribes[name])})


def times(factor: str) -> Callable[[sp.Expr], sp.Expr]:
    """Multiplied by a number."""
    return lambda expression: sp.Rational(factor) * expression


TENTH = times("9/10")


def smaller(place: str, term: str) -> Mutation:
    """A constant of a form less by 10 percent."""
    return in_form(place, CONSTANT, f"{term} less by 10 percent", on_term(term, TENTH))


def dropped_condition(place: str, index: int, which: str) -> Mutation:
    """A form without one of its conditions."""
    return in_form(place, CONDITION, f"without {which}", on_condition(index, lambda c: None))


def dropped_assumption(place: str, name: str) -> Mutation:
    """A form without one of its assumptions."""
    return in_form(place, ASSUMPTION, f"without {name}", without_assumption(name))


def loosened(condition: Condition) -> Condition:
    """A cap larger by a tenth."""
    return replace(condition, right=sp.Rational(11, 10) * condition.right)


# --- Changes of a step, of its proof, of a limit, of a counterexample -------------------------------------------------


def proofs(claims: Claims) -> list[Proof]:
    """Every proof among the claims."""
    found = {id(c.subject.proof): c.subject.proof for c in claims.values() if isinstance(c.subject, StepOf)}
    return list(found.values())


def users(claims: Claims, claim_id: str) -> Iterator[str]:
    """The claims that use one directly: steps that have it among their premises, forms that it ends."""
    changed = claims[claim_id].subject
    for claim in claims.values():
        user = claim.subject
        if isinstance(user, StepOf):
            local = (
                isinstance(changed, StepOf) and user.proof is changed.proof and changed.step.id in user.step.premises
            )
            if claim_id in user.step.premises or local:
                yield claim.id
    if isinstance(changed, StepOf):
        for form, step in changed.proof.ends.items():
            if step == changed.step.id:
                yield f"{changed.proof.result.key}[{form}]"


def in_step(place: str, kind: str, what: str, change: Callable[[Step], Step]) -> Mutation:
    """A change of one step, e.g. of "lemma-c.1/L1.4"; the steps and forms that use it see it."""

    def plants(claims: Claims) -> tuple[Claims, tuple[str, ...]]:
        whole = f"{_paper(claims)}/{place}"
        proof = next(p for p in proofs(claims) if p.id == whole.rpartition("/")[0])
        steps = tuple(change(s) if f"{proof.id}/{s.id}" == whole else s for s in proof.steps)
        changed = {c.id: c for c in replace(proof, steps=steps).claims()}
        return changed, (whole, *users(claims, whole))

    return Mutation(f"{place}: {what}", kind, plants)


def concluding(
    left: Callable[[sp.Expr], sp.Expr] | None, right: Callable[[sp.Expr], sp.Expr] | None
) -> Callable[[Step], Step]:
    """Other sides of the conclusion."""

    def changed(step: Step) -> Step:
        old = step.conclusion
        sides = (side if how is None else how(side) for how, side in ((left, old.left), (right, old.right)))
        return replace(step, conclusion=replace(old, **dict(zip(("left", "right"), sides, strict=True))))

    return changed


def turned(step: Step) -> Step:
    """The opposite inequality."""
    old = step.conclusion
    return replace(step, conclusion=replace(old, left=old.right, right=old.left))


def premised(change: Callable[[Premise], Premise | None]) -> Callable[[Step], Step]:
    """Premises changed, or dropped (None)."""

    def changed(step: Step) -> Step:
        found = [change(p) for p in step.premises]
        return replace(step, premises=tuple(p for p in found if p is not None))

    return changed


def unassumed(name: str) -> Callable[[Step], Step]:
    """A step without one of its assumptions."""
    return premised(lambda p: None if isinstance(p, Assumption) and p.name == name else p)


def unconditional(step: Step) -> Step:
    """A step without its conditions."""
    return premised(lambda p: None if isinstance(p, Condition) else p)(step)


def instead(old: str, new: str) -> Callable[[Step], Step]:
    """A step that rests on another one."""
    return premised(lambda p: new if p == old or (isinstance(p, str) and p.endswith(f"/{old}")) else p)


def ruled(**fields: object) -> Callable[[Step], Step]:
    """A step whose rule has other fields."""
    return lambda step: replace(step, rule=replace(step.rule, **fields))  # pyright: ignore[reportArgumentType]


def smaller_step(place: str) -> Mutation:
    """The right-hand side of a step less by 10 percent."""
    return in_step(place, CONSTANT, "right side less by 10 percent", concluding(None, TENTH))


def unassumed_step(place: str, name: str) -> Mutation:
    """A step without one of its assumptions."""
    return in_step(place, ASSUMPTION, f"without {name}", unassumed(name))


def in_atom(proof_name: str, atom: str, kind: str, what: str, step_ids: Iterable[str], **fields: object) -> Mutation:
    """Another meaning of one vector; the steps named see it."""

    def plants(claims: Claims) -> tuple[Claims, tuple[str, ...]]:
        proof = next(p for p in proofs(claims) if p.id == f"{_paper(claims)}/{proof_name}")
        atoms: dict[str, Atom] = dict(proof.setting.atoms)
        atoms[atom] = replace(atoms[atom], **fields)
        new = replace(proof, setting=replace(proof.setting, atoms=atoms))
        return {c.id: c for c in new.claims()}, tuple(f"{proof.id}/{s}" for s in step_ids)

    return Mutation(f"{proof_name}, vector {atom}: {what}", kind, plants)


def in_limit(name: str, kind: str, what: str, change: Callable[[Limit], Limit]) -> Mutation:
    """A change of a special case."""

    def plants(claims: Claims) -> tuple[Claims, tuple[str, ...]]:
        subject = claims[f"{_paper(claims)}/limit/{name}"].subject
        assert isinstance(subject, Limit)
        claim = change(subject).claim(_paper(claims))
        return {claim.id: claim}, (claim.id,)

    return Mutation(f"limit/{name}: {what}", kind, plants)


def on_right(limit: Limit) -> Limit:
    """The right-hand side of a limit less by 10 percent."""
    return replace(limit, right=tuple(replace(t, expression=TENTH(t.expression)) for t in limit.right))


def sides_exchanged(limit: Limit) -> Limit:
    """The opposite inequality."""
    return replace(limit, left=limit.right, right=limit.left)


def in_replay(name: str, kind: str, what: str, change: Callable[[Replay], Replay]) -> Mutation:
    """A change of a counterexample's recomputation."""

    def plants(claims: Claims) -> tuple[Claims, tuple[str, ...]]:
        subject = claims[f"{_paper(claims)}/erratum/{name}"].subject
        assert isinstance(subject, Erratum)
        old = subject.replayed
        claim = next(replace(subject, replay=lambda: change(old)).claims(_paper(claims)))
        return {claim.id: claim}, (claim.id,)

    return Mutation(f"erratum/{name}: {what}", kind, plants)


def smaller_truth(replay: Replay) -> Replay:
    """The measured side a tenth of what it is."""
    return replace(replay, true=Fraction(replay.claimed) * Fraction(9, 10))


def with_larger_claim(replay: Replay) -> Replay:
    """The claimed side above the measured one."""
    return replace(replay, claimed=Fraction(replay.true) * Fraction(11, 10))


def unchecked(replay: Replay) -> Replay:
    """One hypothesis not checked."""
    first = replay.hypotheses[0].of
    return replace(replay, hypotheses=tuple(c for c in replay.hypotheses if c.of != first))


def broken(replay: Replay) -> Replay:
    """One hypothesis that the instance breaks."""
    first, *others = replay.hypotheses
    return replace(replay, hypotheses=(replace(first, left=1, op="==", right=2), *others))


# --- The report -------------------------------------------------------------------------------------------------------


def row(catch: Catch) -> str:
    """One line: mutation, kind, caught by, how."""
    how = next(iter(catch.by.values()), "no court noticed")
    return " | ".join([catch.mutation.name, catch.mutation.kind, ", ".join(catch.by) or "GAP", _line(how)])


def summary(caught: Sequence[Catch]) -> str:
    """How many each court caught, and the gaps."""
    counts = Counter(name for catch in caught for name in catch.by)
    gaps = [catch.mutation.name for catch in caught if not catch.by]
    found = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
    return "\n".join(
        [f"{len(caught)} mutations; caught by {found}; {len(gaps)} gaps", *(f"GAP: {gap}" for gap in gaps)]
    )


def _line(text: str, width: int = 150) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def main(paper: str = PAPER) -> int:
    """Print the table of all mutations of a paper, the first one's unless another is named; 1 if there is a gap."""
    planted = part(paper, "bounds", "mutations")
    if planted is None:
        raise FedboundsError(f"{paper} brings no mutations")
    bench = Bench.of(paper=paper)
    caught = []
    for mutation in planted.MUTATIONS:
        caught.append(bench.judged(mutation))
        sys.stdout.write(row(caught[-1]) + "\n")
        sys.stdout.flush()
    sys.stdout.write(summary(caught) + "\n")
    return 0 if all(catch.by for catch in caught) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
