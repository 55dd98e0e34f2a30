"""Every rule of inference shows what it concludes, or is on trial wherever a proof uses it."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from inspect import getmembers, isclass
from pkgutil import iter_modules

import pytest
import sympy as sp

import fedbounds.bounds.audit
from fedbounds.bounds.audit.counterexample_checker import judge_argument
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.papers import arbitrary_participation, fed_norm_sgda, fedau, fedmrn, tdcd
from fedbounds.empirical.falsification.instances.instance_checker import has_instances, judge_on_instances
from tests.empirical.falsification.claim_sets import claim_set

ROOMS = {"arbitrary-participation": arbitrary_participation, "fedau": fedau, "fed-norm-sgda": fed_norm_sgda,
         "fedmrn": fedmrn, "tdcd": tdcd}  # fmt: skip
SHOWS = {  # what these conclude follows from their premises by computation, or by a theorem that they check in full
    "AtMinimum", "AtStep", "ByExponents", "Combine", "Compound", "Division", "GeometricSum", "Gram", "HalfStepSum",
    "Induction", "Leading", "Opened", "Prescribed", "PrescribedProduct", "Specialize", "Squared", "Stated", "Unfolded",
    "UpToConstants", "Vanishing", "WholeNumber",
}  # fmt: skip


def rules() -> dict[str, type]:
    """Every class that can justify a step, by name."""
    names = [f"fedbounds.bounds.audit.{m.name}" for m in iter_modules(fedbounds.bounds.audit.__path__)]
    for room in ROOMS.values():
        proof = import_module(f"{room.__name__}.proof")
        names += [f"{proof.__name__}.{m.name}" for m in iter_modules(proof.__path__)]
    found = {}
    for module in map(import_module, names):
        for name, cls in getmembers(module, isclass):
            own = cls.__module__ == module.__name__ and hasattr(cls, "check")
            if own and name not in ("Rule", "Schema") and "conclusion" in cls.check.__code__.co_varnames:
                found[f"{module.__name__}.{name}"] = cls
    return found


def test_every_rule_shows_what_it_concludes_or_is_tried_in_a_proof():
    tried = {
        type(c.subject.step.rule)
        for paper in ROOMS
        for c in claim_set(paper).claims.values()
        if isinstance(c.subject, StepOf) and has_instances(c, claim_set(paper))
    }
    found = rules()
    assert len(found) > 50
    for name, cls in found.items():
        gives = getattr(cls, "gives", "")
        assert (name.rpartition(".")[2] in SHOWS) != bool(gives), name
        assert not gives or cls in tried or any(issubclass(other, cls) for other in tried), name


@pytest.mark.parametrize("home", ["theorem-4", "theorem-3"])
def test_unequal_blocks_without_the_block_that_is_cut_short_are_refuted(home):
    name = f"fed-norm-sgda/{home}/blocks-unequal"
    claims = claim_set("fed-norm-sgda").claims
    of = claims[name].subject
    assert isinstance(of, StepOf)
    terms = [t for t in sp.Add.make_args(of.step.conclusion.right) if "T" not in {str(s) for s in t.free_symbols}]
    step = replace(of.step, conclusion=replace(of.step.conclusion, right=sp.Add(*terms)))
    proof = replace(of.proof, steps=tuple(step if s is of.step else s for s in of.proof.steps))
    claim = next(c for c in proof.claims() if c.id == name)
    assert not judge_on_instances(claims[name], claims=claim_set("fed-norm-sgda")).refuted
    assert judge_on_instances(claim, claims=claim_set("fed-norm-sgda")).refuted


def test_half_the_age_of_a_snapshot_is_refuted():
    name = "fed-norm-sgda/lemma-c.4/73c"
    of = claim_set("fed-norm-sgda").claims[name].subject
    assert isinstance(of, StepOf)
    step = replace(of.step, conclusion=replace(of.step.conclusion, right=of.step.conclusion.right / 2))
    proof = replace(of.proof, steps=tuple(step if s is of.step else s for s in of.proof.steps))
    claim = next(c for c in proof.claims() if c.id == name)
    assert judge_on_instances(claim, claims=claim_set("fed-norm-sgda")).refuted


def test_no_argument_in_words_is_proved():
    found = [e.argument() for paper in ROOMS for e in claim_set(paper).errata.values() if e.argument is not None]
    assert found and {judge_argument(argument).outcome for argument in found} <= {"argued", "unknown"}
