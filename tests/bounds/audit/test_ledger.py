"""The committed ledgers, and what the README and the documentation say of them."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from prebuild.lines import written_out
from prebuild.verdicts import counts

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.counterexample_checker import CHECKER as REFUTATIONS
from fedbounds.bounds.audit.errata import DEGREES, describe_findings, paper_errata
from fedbounds.bounds.audit.ledger import caveat, committed_verdict, read_ledger
from fedbounds.bounds.audit.verdict import OUTCOMES
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import PAPERS, load, results

ROOT = Path(__file__).parents[3]
UNKNOWN = {"arbitrary-participation": 10, "fedau": 6, "fed-norm-sgda": 40, "fedmrn": 1, "tdcd": 1}  # may only shrink
AUDITED = [name for name in PAPERS if read_ledger(name)]


@cache
def found(name):
    """How many claims of a paper have which verdict in its ledger."""
    return Counter(str(entry["verdict"]) for entry in read_ledger(name).values())


def test_papers_on_trial_are_the_first_ones_and_bring_errata():
    assert AUDITED and list(PAPERS)[: len(AUDITED)] == AUDITED
    assert all(paper_errata(name) for name in AUDITED)


@pytest.mark.parametrize("name", AUDITED)
def test_every_claim_stands_in_the_ledger_with_the_hash_that_it_has_now(name):
    claims = {c.id: c.hash for c in ClaimSet.of(name, only=[]).claims.values() if c.kind != "wording"}
    assert claims == {claim: entry["hash"] for claim, entry in read_ledger(name).items()}


@pytest.mark.parametrize("name", AUDITED)
def test_no_step_in_a_ledger_has_premises_that_cannot_hold(name):
    assert [claim for claim, entry in read_ledger(name).items() if "vacuous" in entry.get("flags", [])] == []


@pytest.mark.parametrize("name", AUDITED)
def test_no_more_claims_are_unknown_than_are_known_to_be(name):
    assert found(name)["unknown"] <= UNKNOWN[name]


@pytest.mark.parametrize("name", AUDITED)
def test_the_page_on_the_audit_says_what_the_ledger_says(name):
    row = re.search(rf"^\| {name} \|(.*)\|$", (ROOT / "docs" / "audit.md").read_text(), re.MULTILINE)
    assert row is not None
    assert [int(cell) for cell in row[1].split("|")] == [found(name).total(), *(found(name)[v] for v in OUTCOMES)]
    assert f"\n- {name}: {describe_findings(name)}\n" in (ROOT / "docs" / "audit.md").read_text()


@pytest.mark.parametrize("name", AUDITED)
def test_the_table_in_the_documentation_adds_up_to_the_ledger(name):
    page = written_out(f"before\n\n::: verdicts {name}\n\nafter")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    assert rows[0] == ["", *OUTCOMES]
    sums = [sum(int(row[k] or 0) for row in rows[2:]) for k in range(1, len(OUTCOMES) + 1)]
    assert sums == [found(name)[v] for v in OUTCOMES]
    assert f"::: verdicts {name}\n" in (ROOT / "docs/audit.md").read_text()


@pytest.mark.parametrize("result", [r for name in AUDITED for r in results() if r.paper == name], ids=lambda r: r.key)
def test_the_default_form_of_a_result_is_not_refuted(result):
    verdict = committed_verdict(result, result.form())
    assert verdict == read_ledger(result.paper)[ResultForm(result, result.form()).id]["verdict"]
    assert verdict != "refuted" or all(committed_verdict(result, form) == "refuted" for form in result.forms)


def test_errata_stand_in_the_table_by_how_false_they_are():
    for name in AUDITED:
        rows = {line.split("|")[1].strip(): line for line in counts(name) if line.startswith("| ")}
        degrees = Counter(erratum.degree for erratum in paper_errata(name))
        assert {row.partition(": ")[2] for row in rows if row.startswith("errata")} == set(degrees)
        for degree, number in degrees.items():
            cells = [cell.strip() for cell in rows[f"errata: {degree}"].split("|")[2:-1]]
            assert cells[OUTCOMES.index("refuted")] == str(number)
        assert not any("false statement" in row for row in rows)


def test_every_note_to_authors_opens_with_how_false_each_place_is_and_none_says_that_all_fail_as_printed():
    for name in AUDITED:
        page = (ROOT / "docs" / "errata" / f"{name}.md").read_text()
        assert "fails as printed" not in page and f"::: errata {name}" in page
        assert DEGREES in written_out(page)
    assert all(degree.rpartition(" ")[2] in DEGREES for degree in ("as stated", "an inference", "its units"))


def test_the_documentation_counts_what_is_unknown_of_the_second_paper():
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")
    said = f"{words[found('fedau')['unknown']]} claims are unknown: "
    assert said in (ROOT / "docs/audit.md").read_text()


def test_what_shows_a_form_that_an_erratum_is_about_says_how_false_it_is():
    for key, form, degree in (
        ("arbitrary-participation/proposition-4.6", "printed", "unstated but harmless"),
        ("arbitrary-participation/proposition-4.4", "printed", "false under a literal reading"),
        ("fed-norm-sgda/lemma-c.3", "printed", "unstated but harmless"),
    ):
        result = load(key)
        erratum = result.form(form).refuted_by
        named = f"is refuted by erratum {erratum} ({degree})"
        assert named in caveat(result, result.form(form))
        claim_set = ClaimSet.of(result.paper, only=[REFUTATIONS])
        assert f"{erratum} ({degree})" in claim_set.verdict(f"{key}[{form}]").method
    proposition = load("arbitrary-participation/proposition-4.6")
    said = evaluate(proposition, {"N": 4, "P": 10, "d": 1, "upsilonhat": 0.5}, form="printed").why_not
    assert any("vanishing-long-run-variance (unstated but harmless)" in reason for reason in said)
