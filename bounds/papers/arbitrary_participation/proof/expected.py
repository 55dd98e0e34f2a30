r"""The proofs of Theorem 3.1 and its corollaries, in expectation over the participation as well.

The bracket also averages over the participation, $S_t$ is $\mathbb E\sum_n(q_t^n)^2$, and the hypotheses on
participation hold in expectation; every step is checked again.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import sympy as sp

from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, Step, measure_symbol
from fedbounds.bounds.papers.arbitrary_participation import expected
from fedbounds.bounds.papers.arbitrary_participation.assumptions import IN_EXPECTATION
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.proof.spread import DRIFT_PROOF, SPREAD_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.tuned import TUNED_LEMMAS, TUNED_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.window import THEOREM_PROOF, WINDOW_PROOF
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.measures import EXPECTED, LEAST_GRADIENT
from fedbounds.bounds.theory.result import Condition, Result

GIVEN = (SPREAD_PROOF, DRIFT_PROOF, WINDOW_PROOF, THEOREM_PROOF, TUNED_LEMMAS, TUNED_PROOF)
RENAMED = {a.name: b.name for a, b in IN_EXPECTATION.items()}
LEAST = {measure_symbol(LEAST_GRADIENT): measure_symbol(OVER_PARTICIPATION)}
NOISE, BOTH = "expectation over the noise", "expectation over the noise and the participation"


def translate(part: Any) -> Any:
    """A part of a rule or a conclusion, with the left-hand side and the hypotheses in expectation."""
    if isinstance(part, sp.Basic):
        return part.xreplace(LEAST)
    if isinstance(part, str):
        return RENAMED.get(part, part)
    if isinstance(part, tuple):
        return tuple(translate(each) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{f.name: translate(getattr(part, f.name)) for f in fields(part) if f.init})
    return part


def expected_setting(setting: ProofSetting) -> ProofSetting:
    """The bracket averages over the participation, which is given no more."""
    return replace(setting, bracket=setting.bracket.replace(NOISE, BOTH), given="")


def expected_step(step: Step, ids: Mapping[str, str]) -> Step:
    """The step, from the same premises in expectation."""

    def premise(part: str | Assumption | Condition) -> str | Assumption | Condition:
        if isinstance(part, Assumption):
            return IN_EXPECTATION.get(part, part)
        return ids.get(part, part) if isinstance(part, str) else part

    return replace(
        step,
        conclusion=translate(step.conclusion),
        rule=translate(step.rule),
        premises=tuple(premise(part) for part in step.premises),
    )


def expected_proofs(
    proofs: tuple[Proof, ...], ends: Mapping[str, tuple[Result, Mapping[str, str]]]
) -> tuple[Proof, ...]:
    """Those steps of the proofs that lead to these ends, in expectation."""
    whole = {f"{proof.id}/{step.id}": (proof, step) for proof in proofs for step in proof.steps}
    waiting = [f"{name}/{step}" for name, (_, at) in ends.items() for step in at.values()]
    needed = set[str]()
    while waiting:
        name = waiting.pop()
        if name in whole and name not in needed:
            needed.add(name)
            proof, step = whole[name]
            own = {s.id for s in proof.steps}
            waiting += [f"{proof.id}/{p}" if p in own else p for p in step.premises if isinstance(p, str)]
    ids = {name: f"{proof.id}{EXPECTED}/{step.id}" for name, (proof, step) in whole.items()}
    for result in expected.RESULTS:
        given = result.key.removesuffix(EXPECTED)
        ids |= {f"{given}[{form.name}]": f"{result.key}[{form.name}]" for form in result.forms}
    found = []
    for proof in proofs:
        steps = tuple(expected_step(s, ids) for s in proof.steps if f"{proof.id}/{s.id}" in needed)
        result, at = ends.get(proof.id, (expected.THEOREM_3_1_EXPECTED, {}))
        own = (
            {"left": translate(proof.left), "substitute": proof.substitute} if at else {"left": None, "substitute": {}}
        )
        setting = expected_setting(proof.setting)
        found.append(
            replace(proof, id=proof.id + EXPECTED, setting=setting, steps=steps, result=result, ends=at, **own)
        )
    return tuple(found)


EXPECTED_PROOFS = expected_proofs(
    GIVEN,
    {
        THEOREM_PROOF.id: (
            expected.THEOREM_3_1_EXPECTED,
            {"explicit": "Th10", "explicit:any-P": "Th9", "sharp": "Th9-sharp"},
        ),
        TUNED_PROOF.id: (expected.THEOREM_3_1_EXPECTED, {"sharp:tuned": "W8"}),
    },
)
