"""Errors planted in results and proofs are noticed, and a checker that could not notice them is found out."""

from __future__ import annotations

from dataclasses import replace

import gradient_descent
import pytest

from fedbounds.bounds.audit import counterexample_checker as refutations
from fedbounds.bounds.audit import dimension_checker as units
from fedbounds.bounds.audit import limit_checker as limits
from fedbounds.bounds.audit import proof_step_checker as steps
from fedbounds.bounds.audit.claim_set import Checker, module_claims
from fedbounds.bounds.audit.nonnegative import ProofFinding
from fedbounds.bounds.audit.rules import Telescope
from fedbounds.bounds.audit.verdict import Verdict
from tests.empirical.falsification.claim_sets import claim_set
from tests.mutation.theorems import (
    CAUGHT,
    CONSTANT,
    GAP,
    NOT_NEEDED,
    NOT_TIGHT,
    OPEN,
    Bench,
    Mutation,
    Ruling,
    summary,
    worse,
)

CHECKERS = (units.CHECKER, limits.CHECKER, steps.CHECKER, refutations.CHECKER)
PAPERS = ("arbitrary-participation", "fedau", "fed-norm-sgda", "fedmrn", "tdcd")
KINDS = 15
NAMED = {  # who notices
    "theorem-3.1[explicit]: initial gap over F": "units",
    "theorem-3.1[explicit]: cohort divergence with I - 1 for I": "limits",
    "theorem-3.1[explicit]: eta*gamma <= 1/(2*I*L*P) dropped": "steps",
    "theorem-3.1[explicit]: P <= T/2 turned around": "steps",
    "theorem-3.1[explicit]: without exogenous-participation": "steps",
    "corollary-4.3[printed]: gamma less by 10 percent": "steps",
    "lemma-c.1/L1.5: the sides exchanged": "steps",
    "lemma-c.1/L1.5: right side with I - 1 for I": "steps",
    "lemma-c.1: y with time 1": "steps",
    "limit/theorem-3.1-telescoping: right side less by 10 percent": "limits",
    "erratum/noise-with-memory: the measured side no larger than the bound": "refutations",
    "erratum/noise-with-memory: 1: smooth unchecked": "refutations",
}
UNREAD = "proof: g with "  # only of what it is a gradient is read in that proof


@pytest.fixture(scope="module")
def bench():
    return Bench.of(claim_set(PAPERS[0]).claims.values(), CHECKERS)


def of_stranger(*checkers: Checker) -> Bench:
    return Bench.of(module_claims(gradient_descent), checkers)


@pytest.mark.parametrize("paper", PAPERS)
def test_no_error_of_a_sample_falls_into_a_gap(paper):
    bench = Bench.of(claim_set(paper).claims.values(), CHECKERS)
    sample = bench.sample(1)  # all of them are judged by hand
    assert len({mutation.kind for mutation in sample}) == len(sample) == KINDS
    found = [
        bench.judged(mutation) for mutation in sample[PAPERS.index(paper) % 3 :: 3]
    ]  # one or two papers for each kind
    assert [str(ruling) for ruling in found if ruling.outcome == GAP] == []
    assert sum(ruling.outcome == CAUGHT for ruling in found) > len(found) / 2


@pytest.mark.long
@pytest.mark.parametrize("paper", PAPERS)
def test_no_error_falls_into_a_gap(paper):
    bench = Bench.of(paper)
    assert [str(found) for m in bench.mutations.values() if (found := bench.judged(m)).outcome == GAP] == []


@pytest.mark.parametrize("name", NAMED)
def test_a_planted_error_is_noticed_by_its_checker(bench, name):
    ruling = bench.judged(name)
    assert ruling.outcome == CAUGHT and ruling.evidence.startswith(NAMED[name])


def test_an_outside_packages_paper_gets_its_errors_for_free():
    bench = of_stranger(*CHECKERS)
    found = [bench.judged(mutation) for mutation in bench.mutations.values()]
    assert len(found) >= 70 and sum(ruling.outcome == CAUGHT for ruling in found) >= 60
    assert all(ruling.mutation.name.startswith(UNREAD) for ruling in found if ruling.outcome == GAP)


# --- Checks that cannot fail ------------------------------------------------------------------------------------------


def blind(checker: Checker) -> Checker:
    """A checker that finds what is expected, whatever it is shown."""
    return replace(
        checker,
        verify=lambda claim, claim_set: Verdict(
            "refuted" if claim.kind == "erratum" else "proved", checker.name, "", ""
        ),
    )


def test_checkers_that_never_refuse_leave_nothing_but_gaps():
    bench = of_stranger(*map(blind, CHECKERS))
    found = [bench.judged(mutation).outcome for mutation in bench.mutations.values()]
    assert found.count(GAP) >= 60 and set(found) == {GAP, OPEN}


def test_a_rule_that_accepts_everything_leaves_gaps_where_it_is_used(monkeypatch):
    planted = ("theorem-1[explicit]: initial gap less by 10 percent", "proof/3: without 2")
    assert [of_stranger(steps.CHECKER).judged(name).outcome for name in planted] == [CAUGHT, CAUGHT]
    monkeypatch.setattr(Telescope, "check", lambda *given: ProofFinding(True, "", ""))
    assert [of_stranger(steps.CHECKER).judged(name).outcome for name in planted] == [GAP, GAP]


def test_step_sizes_that_are_not_compared_are_a_gap(bench, monkeypatch):
    name = "corollary-3.2[explicit]: gamma less by 10 percent"
    assert bench.judged(name).outcome == CAUGHT
    monkeypatch.setattr(steps, "_equal_values", lambda *values: True)
    assert Bench(bench.claims, CHECKERS).judged(name).outcome == GAP


# --- What survives ----------------------------------------------------------------------------------------------------


def test_what_changes_nothing_is_noticed_by_nobody(bench):
    claim = bench.claims[f"{PAPERS[0]}/lemma-c.1/L1.4"]
    nothing = Mutation(CONSTANT, "nothing", lambda: None, plants=lambda claims, new: ({claim.id: claim}, (claim.id,)))
    assert bench.noticed(nothing) == "" and bench.judged(nothing).outcome == GAP


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("corollary-3.2[printed]: participation divergence less by 10 percent", NOT_TIGHT),
        ("theorem-3.1/Th9: gamma <= 1/(12*I*L*P) dropped", NOT_NEEDED),
        ("lemma-4.5[printed]: without strongly-mixing", OPEN),
    ],
)
def test_a_survivor_is_reported_apart_by_rule(bench, name, outcome):
    assert bench.judged(name).outcome == outcome


def test_the_report_counts_by_kind_and_names_the_gaps(bench):
    mutation = bench.mutations["lemma-c.1/L1.5: the sides exchanged"]
    lines = summary([Ruling(mutation, CAUGHT, "steps: because"), Ruling(mutation, GAP, "nobody")]).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["kind", "caught", "not", "tight", "not", "needed", "open", "GAP"],
        ["flipped", "1", "0", "0", "0", "1"],
        ["all", "1", "0", "0", "0", "1"],
    ]
    assert lines[3:] == ["lemma-c.1/L1.5: the sides exchanged | flipped | GAP | nobody"]


def test_a_verdict_is_worse_if_it_is_lost_or_flagged():
    outcomes = ("proved", "survived", "unknown", "refuted")
    proved, survived, unknown, refuted = (Verdict(outcome, "steps", "", "") for outcome in outcomes)
    assert worse(proved, survived) and worse(survived, unknown)
    assert worse(unknown, refuted) and worse(refuted, unknown)
    assert not worse(survived, proved) and not worse(unknown, proved) and not worse(proved, proved)
    assert worse(proved, Verdict("proved", "steps", "", "", (), ("vacuous",))) == "flagged vacuous"
