"""The conditions of forms, each changed by a factor of two: which checker notices the change, if any.

A condition is loosened or dropped in every form, step and rule that states it. Then its proof steps are verified again,
its implications too, and extremal runs up to the changed condition are measured. The result is stored beside the
ledger; a condition whose change no checker notices is listed as not tested.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet, checkers, paper_claims
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.audit.proof_step_checker import CHECKER, StepOf, condition_fact, proof_of, trace
from fedbounds.bounds.audit.tested_conditions import (
    SCHEMA,
    Noticed,
    conditions_path,
    describe_untested,
    read_conditions,
)
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.inputs.atomic_files import write_file
from fedbounds.bounds.theory.result import Condition, Result
from tests.mutation.theorems import Claims, proofs, run_checker

LOOSENED, DROPPED = CHANGES = ("loosened", "dropped")
AS_THEY_STAND = Verdict("proved", "none", "taken at its best", "")


def loosen(condition: Condition) -> Condition:
    """The condition with its right side twice as large, or half as large where it is a floor.

    An equation has no looser one; it gets another right side.
    """
    return replace(condition, right=condition.right / 2 if condition.op in (">=", ">") else 2 * condition.right)


@dataclass
class Conditions:
    """The conditions of a paper's forms, with what was found so far.

    Attributes:
        claims: of the paper, by id.
        verdicts: of the committed ledger, by id.
    """

    claims: Claims
    verdicts: Mapping[str, str]
    _steps: dict[tuple[str, Condition, str], str] = field(default_factory=dict)
    _graphs: dict[str, list[str]] = field(default_factory=dict)
    _violated: dict[str, str] = field(default_factory=dict)
    _changed: dict[tuple[Condition, str], Claims] = field(default_factory=dict)

    @staticmethod
    def of(paper: str) -> Conditions:
        """Those of an installed paper."""
        claims = {c.id: c for c in paper_claims(paper)}
        return Conditions(claims, {name: str(entry["verdict"]) for name, entry in read_ledger(paper).items()})

    @property
    def every(self) -> list[tuple[ResultForm, Condition]]:
        """Every form with every one of its conditions, in the paper's order."""
        forms = [c.subject for c in self.claims.values() if isinstance(c.subject, ResultForm) and c.kind == "result"]
        return [(subject, condition) for subject in forms for condition in subject.form.conditions]

    def noticed(self, subject: ResultForm, condition: Condition) -> Noticed:
        """Who notices that the condition of a form has been changed."""
        found = dict.fromkeys(CHANGES, "")
        for change in CHANGES:
            found[change] = self._by_proof(subject, condition, change) or self._by_instances(subject, condition, change)
            if found[LOOSENED]:  # what is dropped admits more than what is loosened
                return Noticed(subject.id, condition.text, found[LOOSENED], found[LOOSENED])
        return Noticed(subject.id, condition.text, **found)

    def changed(self, condition: Condition, change: str) -> Claims:
        """The claims with the condition changed wherever it is stated."""
        if (condition, change) not in self._changed:
            new = (loosen(condition),) if change == LOOSENED else ()
            self._changed[condition, change] = self.claims | replace_condition(self.claims, condition, new)
        return self._changed[condition, change]

    def _by_proof(self, subject: ResultForm, condition: Condition, change: str) -> str:
        if self.verdicts.get(subject.id) != "proved":
            return ""
        claims = self.changed(condition, change)
        for name in self._graph(subject):
            there = self.claims[name].subject
            items = there.step.premises if isinstance(there, StepOf) else self.claims[name].conditions
            if any(same(one, condition) for one in items) and (why := self._of_step(name, condition, change, claims)):
                return why
        return self._lost(subject.id, claims)

    def _by_instances(self, subject: ResultForm, condition: Condition, change: str) -> str:
        if condition.legal or self.verdicts.get(subject.id) not in ("proved", "survived"):
            return ""  # what symbols mean is so in every instance
        if subject.id not in self._violated:
            self._violated[subject.id] = violation(self.claims[subject.id])
        return "" if self._violated[subject.id] else violation(self.changed(condition, change)[subject.id])

    def _of_step(self, name: str, condition: Condition, change: str, claims: Claims) -> str:
        key = (name, condition, change)
        if key not in self._steps:
            self._steps[key] = self._lost(name, claims)
        return self._steps[key]

    def _lost(self, name: str, claims: Claims) -> str:
        if self.verdicts.get(name) != "proved" or run_checker(CHECKER, claims, name).outcome == "proved":
            return ""
        return f"steps: {name.partition('/')[2]}"

    def _graph(self, subject: ResultForm) -> list[str]:
        """The steps and forms that a form's proof rests on, and those that these forms rest on, by id."""
        if subject.id not in self._graphs:
            claim_set = ClaimSet(subject.result.paper, self.claims, ())
            claim_set._verdicts.update(dict.fromkeys(self.claims, AS_THEY_STAND))
            proof = proof_of(claim_set, subject)
            end = proof.step(proof.ends[subject.form.name]) if proof else None
            names = [name for name, _ in trace(claim_set, proof, end).steps] if proof and end else []
            whole = [there for name in names if isinstance(there := self.claims[name].subject, ResultForm)]
            self._graphs[subject.id] = list(dict.fromkeys([*names, *(n for form in whole for n in self._graph(form))]))
        return self._graphs[subject.id]


def violation(claim: Claim) -> str:
    """What breaks a claim about a form at the edge of its conditions, in words; "" if nothing is found."""
    found = ((checker.name, checker.violated(claim)) for checker in checkers() if checker.violated)
    return next((f"{name}: {why}" for name, why in found if why), "")


def same(premise: object, condition: Condition) -> bool:
    """Whether a premise is this condition, whatever is said of why."""
    return isinstance(premise, Condition) and (premise.left, premise.op, premise.right) == (
        condition.left,
        condition.op,
        condition.right,
    )


def replace_condition(claims: Claims, old: Condition, new: tuple[Condition, ...]) -> Claims:
    """The claims about forms and steps that state a condition, with another one in its place."""

    def put(items: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(other for one in items for other in (new if same(one, old) else (one,)))

    def states(items: Sequence[Any]) -> bool:
        return any(same(one, old) for one in items)

    results: dict[int, Result] = {}
    for claim in claims.values():
        before = claim.subject.result if isinstance(claim.subject, ResultForm) else None
        if before and id(before) not in results and any(states(form.conditions) for form in before.forms):
            forms = tuple(replace(form, conditions=put(form.conditions)) for form in before.forms)
            results[id(before)] = replace(before, forms=forms)
    found: Claims = {}
    for claim in claims.values():  # what they say otherwise is as it was
        if isinstance(claim.subject, ResultForm) and id(claim.subject.result) in results and claim.kind == "result":
            result = results[id(claim.subject.result)]
            subject = ResultForm(result, result.form(claim.subject.form.name))
            found[claim.id] = replace(claim, subject=subject, conditions=subject.form.conditions)
    for proof in proofs(claims):
        if id(proof.result) in results or any(states(step.premises) for step in proof.steps):
            steps = tuple(
                replace(step, premises=put(step.premises), rule=replace_in_rule(step.rule, old, new))
                if states(step.premises)
                else step
                for step in proof.steps
            )
            there = replace(proof, result=results.get(id(proof.result), proof.result), steps=steps)
            for step in steps:
                name = f"{proof.id}/{step.id}"
                stated = tuple(p for p in step.premises if isinstance(p, Condition))
                found[name] = replace(claims[name], subject=StepOf(there, step), conditions=stated)
    return found


def replace_in_rule(value: Any, old: Condition, new: tuple[Condition, ...]) -> Any:
    """A rule, or a part of one, that asks for another condition where it asked for this one."""
    if isinstance(value, tuple) and type(value) is tuple:
        asked = condition_fact(old)
        parts = [
            [condition_fact(one) for one in new] if part == asked else [replace_in_rule(part, old, new)]
            for part in value
        ]
        return tuple(part for some in parts for part in some)
    if is_dataclass(value) and not isinstance(value, type):
        found = {f.name: replace_in_rule(vars(value)[f.name], old, new) for f in fields(value) if f.init}
        return value if all(found[name] is vars(value)[name] for name in found) else replace(value, **found)
    return value


def write_conditions(paper: str, rows: Sequence[Noticed]) -> Path:
    """Write a table, a row a line; returns where."""
    path = conditions_path(paper)
    lines = ",\n".join(json.dumps(vars(row), ensure_ascii=False, separators=(",", ":")) for row in rows)
    write_file(path, f'{{"schema":"{SCHEMA}","paper":"{paper}","rows":[\n{lines}\n]}}\n'.encode())
    read_conditions.cache_clear()
    return path


def main(paper: str) -> int:
    """Change every condition of a paper's forms, and write its table."""
    conditions, rows = Conditions.of(paper), list[Noticed]()
    every = conditions.every
    with progress_bar(paper) as advance:
        for done, (subject, condition) in enumerate(every):
            if advance:
                advance(done, len(every), subject.id)
            rows.append(conditions.noticed(subject, condition))
    sys.stdout.write(f"wrote {write_conditions(paper, rows)}\n{paper}: {describe_untested(paper)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
