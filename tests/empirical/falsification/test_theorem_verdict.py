"""Verdicts on theorem files: what a search found becomes a verdict, and the error that it would catch is caught."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sp

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.ledger import committed_verdict, evidence
from fedbounds.bounds.theory import registry
from fedbounds.bounds.theory.registry import add_theorems, load
from fedbounds.bounds.theory.result import Term
from fedbounds.empirical.falsification.theorem_verdict import CHECKER, verdict
from tests.command_line import ROOT, run

SGD = {
    "measure": "average over iterations of squared gradient norm of f",
    "expectation": "gradient noise",
    "algorithm": "minibatch-sgd",
    "setting": "nonconvex, smooth, bounded variance, arbitrary heterogeneity, full participation, one local step",
    "conditions": ["gamma <= 1/L"],
}


def outcome_of_divided(key: str, form: str, factor: float) -> str:
    """The verdict on a reference theorem when the right-hand side of one form is divided by a factor."""
    result = load(key)
    one = result.form(form)
    less = replace(one, terms=tuple(Term(t.name, t.expression / sp.Float(factor)) for t in one.terms))
    changed = replace(result, forms=tuple(less if each is one else each for each in result.forms))
    return CHECKER.verify(ResultForm(changed, less).claim(), ClaimSet.of(result.paper, only=[])).outcome


@pytest.mark.parametrize(
    ("key", "form"),
    [
        pytest.param("khaled-2019/local-gd", "explicit", marks=pytest.mark.long),
        ("ghadimi-2013/sgd", "explicit"),
        ("jhunjhunwala-2022/lemma-7", "explicit"),  # these have no run in the search of check
        ("li-2020/fedavg-full", "printed"),
        ("mishchenko-2022/proxskip", "explicit"),
    ],
)
def test_the_smallest_error_that_is_caught_is_that_of_the_evidence(key: str, form: str) -> None:
    result = load(key)
    found = re.search(r"too small by a factor of (\S+) is caught", evidence(result, result.form(form)))
    assert found is not None
    assert outcome_of_divided(key, form, float(found[1])) == "refuted"
    assert outcome_of_divided(key, form, float(found[1]) * 0.997) == "survived"


@pytest.mark.parametrize(
    ("finding", "outcome", "said"),
    [
        (("ok", "in 500 runs on quadratics (a: b): 0.2501"), "survived", "too small by a factor of 4.001 is caught"),
        (("ok", "in 500 runs on quadratics: 1"), "survived", "too small by a factor of 1.001 is caught"),
        (("ok", "in 500 runs on quadratics: 0"), "survived", "no smaller bound is caught"),
        (("warning", "no run was searched for a violation: why"), "unknown", "why"),
        (("error", "violated: in 3 runs on quadratics: 1.2"), "refuted", '{"noise": 0.5}'),
    ],
)
def test_a_finding_becomes_a_verdict(finding: tuple[str, str], outcome: str, said: str) -> None:
    level, text = finding
    ratio = None if level == "warning" else float(text.rpartition(": ")[2])
    finding_of = Finding(level, "search", "explicit", text, at={"noise": 0.5}, ratio=ratio)  # pyright: ignore[reportArgumentType]
    found = verdict(finding_of)
    assert found.outcome == outcome and said in found.evidence


def test_a_theorem_file_that_is_false_is_refuted_by_an_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_ADDED", {})
    path = tmp_path / "theorem-1.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"key": "planted/theorem-1", **SGD}.items()]
    path.write_text("\n".join([*lines, "[terms]", '"initial gap" = "F/(9*gamma*K)"', '"n" = "gamma*L*sigma**2"']))
    (result,) = add_theorems(str(path))
    claims = ClaimSet.of("planted", only=[CHECKER])
    found = claims.verdict("planted/theorem-1[explicit]")
    assert found.outcome == "refuted" and found.evidence.startswith("violated: ")
    instance = json.loads(found.evidence.partition(" on {")[2].join(["{", ""]))
    assert {"curvatures", "start", "rounds"} <= instance.keys()
    assert committed_verdict(result, result.form()) == "unknown"  # no ledger


def test_a_claim_that_is_no_theorem_file_is_left_to_the_others() -> None:
    claims = ClaimSet.of("tdcd", only=[])
    assert not any(CHECKER.applies_to(claim, claims) for claim in claims.claims.values())


def test_every_checker_of_the_project_is_registered() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '= "fedbounds.empirical.falsification.theorem_verdict:CHECKER [empirical]"' in text


def test_an_audit_of_a_reference_theorem_has_its_verdicts_and_evidence() -> None:
    status, out, _ = run("audit", "gorbunov-2021")
    assert status == 0 and "DIFFERS" not in out and "no ledger" not in out and "not tested" not in out
    rows = dict(reversed(line.split()[:2]) for line in out.splitlines() if "  gorbunov-2021/" in line)
    marina = "gorbunov-2021/marina[explicit"
    assert {rows[f"{marina}]"], rows[f"{marina}:one-smoothness]"]} == {"survived", "unknown"}
    assert "no run was searched for a violation: 'marina' is not simulated here" in out
    compared = r"over the bound in \d+ runs on quadratics( and on piecewise quadratics)?: \S+"
    assert re.search(compared + r"; a bound too small by a factor of \S+ is caught", out)
