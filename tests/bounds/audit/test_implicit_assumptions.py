"""A printed form that takes for granted what its paper does not print says so wherever it is shown."""

from pathlib import Path

import pytest
from prebuild.verdicts import result_page

from fedbounds.bounds.audit.audit_rows import ClaimRow
from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.theory.registry import papers
from tests.command_line import run

ROOT = Path(__file__).parents[3]
FORMS = [(result, form) for paper in papers() for result in paper.results for form in result.forms]
IMPLICIT = [(result, form) for result, form in FORMS if form.implicit]
CONSTANTS = {
    "arbitrary-participation/theorem-3.1": "L=1 F=5 I=2 P=2 T=8 gamma=1/48 eta=6 rho=0.75 nu=2 beta=0 delta=0 sigma=1",
    "fedau/corollary-4": "p=0.2,0.5 T=1000 F=1 L=1 I=2 sigma=1 delta=1 G=1",
}


def test_exactly_the_printed_forms_with_an_unstated_assumption_hold_under_implicit_assumptions():
    for _, form in FORMS:
        unstated = [a.name for a in form.assumptions if a.label == "unstated"]
        assert bool(form.implicit) == (form.kind == "printed" and bool(unstated))
        assert all(name in form.implicit for name in unstated if form.kind == "printed")
    assert {result.paper for result, _ in IMPLICIT} == {"arbitrary-participation", "fedau", "fedmrn"}


@pytest.mark.parametrize("key", sorted({result.key for result, _ in IMPLICIT}))
def test_show_says_what_a_printed_form_takes_for_granted(key):
    out = run("show", key, "--all")[1]
    for result, form in IMPLICIT:
        if result.key == key:
            assert form.implicit in out.partition(f"[{form.name}]")[2].partition("\n[")[0]


@pytest.mark.parametrize("key", CONSTANTS)
def test_eval_says_what_a_printed_form_takes_for_granted(key):
    words = ("eval", key, *CONSTANTS[key].split())
    (form,) = [form for result, form in IMPLICIT if result.key == key and form.name == "printed"]
    assert form.implicit in run(*words, "--form", "printed")[1]
    assert f'"reading": "{form.implicit}"' in run(*words, "--form", "printed", "--json")[1]
    assert "implicit assumption" not in run(*words, "--form", "sharp")[1]


def test_the_audit_flags_what_a_printed_form_takes_for_granted():
    for result, form in FORMS:
        row = ClaimRow.of(ResultForm(result, form).claim(), Verdict("proved", "steps", "", "", flags=("vacuous",)))
        assert row.flags == (("vacuous", form.implicit) if form.implicit else ("vacuous",))


def test_the_page_of_a_result_says_what_its_printed_form_takes_for_granted():
    (theorem,) = [result for result, form in IMPLICIT if result.key.endswith("theorem-3.1")]
    said = [part for part in result_page(theorem) if "implicit assumption" in part]
    assert said == ["It holds under an implicit assumption: martingale-noise (not printed in the paper)."]
    assert "*under an implicit assumption:" in (ROOT / "docs" / "audit.md").read_text()
