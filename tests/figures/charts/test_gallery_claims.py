"""The committed tables of claims: their p-values, corrections and verdicts are those of the numbers beside them."""

import csv
import re
from math import floor, log, log10
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedbounds.figures.charts.significance import LEVEL
from fedbounds.figures.charts.verdicts import COLUMNS, INCONCLUSIVE, NOT_REPRODUCED, NOT_TESTED, REPRODUCED, VERDICTS

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"
PAPERS = sorted(path.parent.name for path in GALLERY.glob("*/claims.csv"))
NUMBER = r"([+-]?[\d.]+(?:e[+-]\d+)?)"
COMPARISON = re.compile(
    rf"(?P<name>.+?): (?P<gap>{NUMBER}) \[(?P<low>{NUMBER}), (?P<high>{NUMBER})\], (?P<freedom>{NUMBER}) degrees of "
    rf"freedom(?P<tolerance>, within [^,]+)?, p (?P<p>{NUMBER}), corrected (?P<corrected>{NUMBER})"
)


def table(paper):
    with (GALLERY / paper / "claims.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def comparisons(row):
    """The comparisons of a row, and how many its family has."""
    if not row["comparisons"]:
        return [], 0
    body, _, count = row["comparisons"].rpartition("Holm, ")
    found = [match.groupdict() for match in COMPARISON.finditer(body)]
    for one in found:
        one["name"] = one["name"].removeprefix("; ")
    return found, int(count.split()[0])


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_has_what_the_paper_says_and_a_verdict(paper):
    rows = table(paper)
    assert tuple(rows[0]) == COLUMNS and all(row["paper"] and row["claim"] for row in rows)
    assert {row["verdict"] for row in rows} <= {*VERDICTS}


@pytest.mark.parametrize("paper", PAPERS)
def test_no_claim_has_a_verdict_from_runs_that_still_move(paper):
    rows = [row for row in table(paper) if row["plateau"]]
    assert len(rows) >= 10
    for row in rows:
        assert (row["verdict"] == NOT_TESTED) == (row["plateau"] != "yes"), row["claim"]
        assert not re.search(r"agrees|reproduced", row["note"])  # a note is no verdict
        if row["plateau"].startswith("no: "):
            assert row["plateau"].removeprefix("no: ") in row["note"] and "a plateau needs" in row["note"]
        if row["rounds needed"] not in ("", "unknown"):
            assert float(row["rounds needed"]) >= float(row["rounds"].split()[0])
    assert all(row["verdict"] != NOT_TESTED for row in table(paper) if not row["plateau"])


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_about_trained_runs_say_how_long_the_runs_are(paper):
    trained = [row for row in table(paper) if "smaller than the paper's" in row["note"]]
    assert all(row["seeds"] for row in trained)
    timed = ("Figure 6", "Figure 7")  # times of a message, and rounds to a level that every seed reaches
    if paper == "tdcd":
        trained = [row for row in trained if not re.search(r"reach \d+% of|^TDCD converges", row["claim"])]
        timed = ()
    assert {row["source"] for row in trained if not row["plateau"]} <= {*timed}


@pytest.mark.parametrize("paper", PAPERS)
def test_no_claim_is_refused_by_comparisons_without_seeds(paper):
    for row in table(paper):
        if row["verdict"] == NOT_REPRODUCED and row["plateau"]:
            assert "unpaired" not in row["comparisons"], row["claim"]


def half_digit(value):
    """The largest error of a number that is rounded to three digits."""
    return 0.5 * 10.0 ** (floor(log10(abs(value))) - 2) if value else 0.0


@pytest.mark.parametrize("paper", PAPERS)
def test_p_values_are_those_of_the_intervals(paper):
    checked = 0
    for row in table(paper):
        for one in comparisons(row)[0]:
            gap, low, high, freedom, p = (float(one[k]) for k in ("gap", "low", "high", "freedom", "p"))
            error = (high - low) / 2 / stats.t.ppf(0.975, freedom)
            if one["tolerance"] or not error or not p:
                continue
            near = 0.2
            if p < 1e-5:  # at most like a power of t, so that the rounding of the interval counts
                rounded = (half_digit(low) + half_digit(high)) / (high - low) + half_digit(gap) / abs(gap)
                near = 0.1 + 1.5 * (freedom + 1) * rounded
            if near > 1:
                continue
            found = log(2) + float(stats.t.logsf(abs(gap) / error, freedom))
            assert abs(found - log(p)) < near, (row["claim"], one)
            assert gap == pytest.approx((low + high) / 2, abs=0.02 * (high - low) + 0.011 * abs(gap))
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("paper", PAPERS)
def test_corrected_p_values_are_holms_within_a_figure(paper):
    families = {}
    for row in table(paper):
        found, count = comparisons(row)
        for one in found:
            key = (one["name"], one["tolerance"], one["gap"].lstrip("+-"), one["p"])
            families.setdefault((row["source"], count), {})[key] = float(one["p"]), float(one["corrected"])
    assert len({source for source, _ in families}) == len(families)  # one count for a figure
    for (source, count), family in families.items():
        p, corrected = map(np.array, zip(*sorted(family.values()), strict=True))
        assert len(p) <= 2 * count, source  # a comparison may be read in both directions
        if len(p) == count:
            expected = np.minimum(1, np.maximum.accumulate(p * (count - np.arange(count))))
            np.testing.assert_allclose(corrected, expected, rtol=0.11, err_msg=source)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claim_of_one_comparison_is_decided_by_it(paper):
    for row in table(paper):
        found, _ = comparisons(row)
        if len(found) == 1 and not row["source"].endswith("as printed") and not found[0]["tolerance"]:
            if row["verdict"] == NOT_TESTED:
                continue
            clear, towards = float(found[0]["corrected"]) <= LEVEL, float(found[0]["gap"]) > 0
            decided = (REPRODUCED,) if towards else (NOT_REPRODUCED, INCONCLUSIVE)  # the opposite needs power, too
            assert row["verdict"] in (decided if clear else (INCONCLUSIVE,)), row["claim"]


@pytest.mark.parametrize("paper", PAPERS)
def test_our_runs_are_compared_seed_by_seed(paper):
    rows = [row for row in table(paper) if not row["source"].endswith("as printed")]
    assert not [row["source"] for row in rows if "unpaired" in row["comparisons"]]
