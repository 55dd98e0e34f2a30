"""The committed ledgers, and what the README and the documentation say of them."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bounds.audit.claim import ResultForm
from bounds.audit.docket import Docket
from bounds.audit.ledger import committed_verdict, read_ledger
from bounds.audit.refutations import room_errata
from bounds.registry import PAPERS, results

ROOT = Path(__file__).parents[3]
AUDITED = [name for name in PAPERS if read_ledger(name)]
ORDINAL = dict(zip(PAPERS, ("first", "second", "third", "fourth", "fifth"), strict=True))
OUTCOMES = ("proved", "survived", "refuted", "unknown")


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
    words = " ".join((ROOT / "README.md").read_text().split())
    numbers = re.search(
        rf"Of (\d+) claims of the {ORDINAL[name]} paper (\d+) are proved .*? (\d+) refuted .*? (\d+) survived .*? "
        r"(\d+) are unknown",
        words,
    )
    assert numbers is not None
    counted = [found(name).total(), *(found(name)[v] for v in ("proved", "refuted", "survived", "unknown"))]
    assert [int(n) for n in numbers.groups()] == counted


@pytest.mark.parametrize("name", AUDITED)
def test_the_table_in_the_documentation_adds_up_to_the_ledger(name):
    page = (ROOT / "docs/audit.md").read_text().partition(f"## What it found in the {ORDINAL[name]} paper")[2]
    table = page.partition("Unknown are")[0]
    rows = [[cell.strip() for cell in line.split("|")[2:6]] for line in table.splitlines() if line.startswith("| ")]
    sums = [sum(int(row[k]) for row in rows[1:] if row[k].isdigit()) for k in range(4)]
    assert sums == [found(name)[v] for v in OUTCOMES]


@pytest.mark.parametrize("result", [r for name in AUDITED for r in results() if r.paper == name], ids=lambda r: r.key)
def test_the_default_form_of_a_result_is_not_refuted(result):
    verdict = committed_verdict(result, result.form())
    assert verdict == read_ledger(result.paper)[ResultForm(result, result.form()).id]["verdict"]
    assert verdict != "refuted" or all(committed_verdict(result, form) == "refuted" for form in result.forms)
