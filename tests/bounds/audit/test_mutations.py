"""Planted errors in results and proofs are noticed by some court, and what is not planted is not."""

from __future__ import annotations

import pytest

from fedbounds.bounds.audit import limits, refutations, steps, units
from fedbounds.bounds.audit.mutations import Bench, Catch, Mutation, row, summary, worse
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.papers.arbitrary_participation.mutations import MUTATIONS

COURTS = (units.COURT, limits.COURT, steps.COURT, refutations.COURT)
EXPLICIT = "theorem-3.1[explicit]"
BY_COURT = {
    f"{EXPLICIT}: window divergence less by 10 percent": "steps",
    f"{EXPLICIT}: without the cap on gamma eta": "steps",
    f"{EXPLICIT}: P >= T/2": "steps",
    f"{EXPLICIT}: nu for nu^2": "units",
    f"{EXPLICIT}: without exogenous-participation": "steps",
    f"{EXPLICIT}: T - 1 for T": "limits",
    "corollary-3.2[explicit]: gamma larger by 10 percent": "steps",
    "lemma-c.1[printed]: rho^2 for S_t": "limits",
    "corollary-4.3/D1: equation (11) for Proposition 4.1": "steps",
    "lemma-c.1/L1.3a: L for L^2": "steps",
    "lemma-c.1/L1.5: the sides exchanged": "steps",
    "lemma-c.1/L1.0a: without martingale-noise": "steps",
    "lemma-c.2/L2.8b: S_t of the current round, as printed": "steps",
    "equation-c.16, vector f0: a later time": "steps",
    "equation-c.16, vector m: differs between clients": "steps",
    "limit/theorem-3.1-telescoping: right side less by 10 percent": "limits",
    "erratum/noise-with-memory: the measured side less than the bound": "refutations",
}
NAMED = {mutation.name: mutation for mutation in MUTATIONS}
ONLY_MEASURED = {"lemma-c.1/L1.3c: eq. (6) read with nu^2/2", "lemma-c.1/L1.3a: smoothness read with L/2"}


@pytest.fixture(scope="module")
def bench():
    return Bench.of(COURTS)


@pytest.mark.parametrize("name", BY_COURT)
def test_a_planted_error_is_noticed_by_its_court(bench, name):
    assert BY_COURT[name] in bench.judged(NAMED[name]).by


def test_what_changes_nothing_is_noticed_by_nobody(bench):
    place = "arbitrary-participation/lemma-c.1/L1.4"
    assert bench.judged(Mutation("nothing", "none", lambda claims: ({place: claims[place]}, (place,)))).by == {}


def test_there_are_at_least_forty_mutations_of_all_kinds():
    assert len(NAMED) == len(MUTATIONS) >= 40
    assert len({mutation.kind for mutation in MUTATIONS}) >= 12


def test_a_gap_is_named_and_counted():
    mutation = NAMED[f"{EXPLICIT}: P >= T/2"]
    caught, gap = Catch(mutation, {"steps": "unknown, because"}), Catch(mutation, {})
    assert row(gap).endswith("GAP | no court noticed")
    assert summary([caught, gap]).splitlines() == [
        "2 mutations; caught by steps 1; 1 gaps",
        f"GAP: {EXPLICIT}: P >= T/2",
    ]


def test_a_verdict_is_worse_if_it_is_lost_or_flagged():
    proved, survived, unknown = (Verdict(outcome, "steps", "", "") for outcome in ("proved", "survived", "unknown"))
    assert worse(proved, survived) and worse(survived, unknown)
    assert not worse(survived, proved) and not worse(unknown, proved) and not worse(proved, proved)
    assert worse(proved, Verdict("proved", "steps", "", "", (), ("vacuous",))) == "flagged vacuous"


@pytest.mark.long
def test_every_planted_error_is_noticed(bench):
    gaps = {mutation.name for mutation in MUTATIONS if not bench.judged(mutation).by}
    assert gaps <= ONLY_MEASURED
