"""The committed ledgers, and what the README and the documentation say of them."""

import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from bounds.audit.claim import ResultForm
from bounds.audit.docket import Docket
from bounds.audit.findings import findings_in_words
from bounds.audit.ledger import committed_verdict, read_ledger
from bounds.audit.refutations import room_errata
from bounds.audit.verdict import OUTCOMES
from bounds.registry import PAPERS, results

ROOT = Path(__file__).parents[3]
AUDITED = [name for name in PAPERS if read_ledger(name)]


@cache
def found(name):
    """How many claims of a paper have which verdict in its ledger."""
    return Counter(str(entry["verdict"]) for entry in read_ledger(name).values())


def test_papers_on_trial_are_the_first_ones_and_bring_errata():
    assert AUDITED and list(PAPERS)[: len(AUDITED)] == AUDITED
    assert all(room_errata(name) for name in AUDITED)


@pytest.mark.parametrize("name", AUDITED)
def test_every_claim_stands_in_the_ledger_with_the_hash_that_it_has_now(name):
    claims = {c.id: c.hash for c in Docket.of(name, only=[]).claims.values() if c.kind != "wording"}
    assert claims == {claim: entry["hash"] for claim, entry in read_ledger(name).items()}


@pytest.mark.parametrize("name", AUDITED)
def test_at_most_one_claim_in_twenty_is_unknown(name):
    assert found(name)["unknown"] * 20 <= found(name).total()


@pytest.mark.parametrize("name", AUDITED)
def test_the_readme_says_what_the_ledger_says(name):
    row = re.search(rf"^\| {name} \|(.*)\|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert row is not None
    assert [int(cell) for cell in row[1].split("|")] == [found(name).total(), *(found(name)[v] for v in OUTCOMES)]
    assert f"\n- {name}: {findings_in_words(name)}\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", AUDITED)
def test_the_table_in_the_documentation_adds_up_to_the_ledger(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    page = import_module("verdicts").on_page_markdown(f"before\n\n::: verdicts {name}\n\nafter")
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
