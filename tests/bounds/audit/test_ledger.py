"""The committed ledger, and what the README and the documentation say of it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bounds.audit.claim import ResultForm
from bounds.audit.docket import Docket
from bounds.audit.ledger import committed_verdict, read_ledger
from bounds.papers.arbitrary_participation import RESULTS

ROOT = Path(__file__).parents[3]
PAPER = "arbitrary-participation"
LEDGER = read_ledger(PAPER)
FOUND = Counter(str(entry["verdict"]) for entry in LEDGER.values())


def test_every_claim_stands_in_the_ledger_with_the_hash_that_it_has_now():
    claims = {c.id: c.hash for c in Docket.of(PAPER, only=[]).claims.values() if c.kind != "wording"}
    assert claims == {name: entry["hash"] for name, entry in LEDGER.items()}


def test_at_most_one_claim_in_twenty_is_unknown():
    assert FOUND["unknown"] * 20 <= FOUND.total()


def test_the_readme_says_what_the_ledger_says():
    words = " ".join((ROOT / "README.md").read_text().split())
    numbers = re.search(
        r"Of (\d+) claims .* (\d+) are proved .* (\d+) refuted .* (\d+) survived .* (\d+) are unknown", words
    )
    assert numbers is not None
    found = [FOUND.total(), *(FOUND[v] for v in ("proved", "refuted", "survived", "unknown"))]
    assert [int(n) for n in numbers.groups()] == found


def test_the_table_in_the_documentation_adds_up_to_the_ledger():
    table = (ROOT / "docs/audit.md").read_text().partition("## What it found")[2].partition("Unknown are")[0]
    rows = [[cell.strip() for cell in line.split("|")[2:6]] for line in table.splitlines() if line.startswith("| ")]
    sums = [sum(int(row[k]) for row in rows[1:] if row[k].isdigit()) for k in range(4)]
    assert sums == [FOUND[v] for v in ("proved", "survived", "refuted", "unknown")]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: r.key)
def test_the_default_form_of_a_result_is_not_refuted(result):
    verdict = committed_verdict(result, result.form())
    assert verdict == LEDGER[ResultForm(result, result.form()).id]["verdict"]
    assert verdict != "refuted" or all(committed_verdict(result, form) == "refuted" for form in result.forms)
