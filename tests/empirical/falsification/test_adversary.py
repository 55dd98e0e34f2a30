"""The adversary climbs, is deterministic, stays covered, and finds the paper's errors again without a hint."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.claim_set import paper_claims
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.falsification.instances.climbing import DEEP, LIGHT, climb, exposure, ratio, search_population
from fedbounds.empirical.falsification.instances.instance_checker import has_instances, judge_on_instances
from fedbounds.empirical.papers.arbitrary_participation.instances.claims import draw, form_sides, instance_test
from tests.papers.arbitrary_participation.blind_search import (
    NOT_SEARCHED,
    SEARCHES,
    NoiseDriven,
    Sighting,
    blind_test,
    stated,
)

THEOREM, LEMMA = load("arbitrary-participation/theorem-3.1"), load("arbitrary-participation/lemma-c.1")
CLAIM = ResultForm(THEOREM, THEOREM.form("sharp"))


def test_climbing_raises_every_instance_and_keeps_it_covered() -> None:
    claim, start = CLAIM.claim(), draw(np.random.default_rng(1), 20, (3, 2, 2, 2, 6), rippled=False, wide=False)
    end = climb(start, lambda y: form_sides(claim, y), 40, np.random.default_rng(2))
    before, after = ratio(form_sides(claim, start)), ratio(form_sides(claim, end))
    assert (after >= before).all() and after.max() > 1.2 * before.max()
    assert (after[np.isfinite(before)] > -np.inf).all() and after.max() <= 1


def test_the_adversary_can_aim_at_one_term() -> None:
    claim, start = CLAIM.claim(), draw(np.random.default_rng(3), 20, (3, 1, 1, 1, 12), rippled=False, wide=False)
    score = exposure("initial gap")
    end = climb(start, lambda y: form_sides(claim, y), 40, np.random.default_rng(4), score)
    assert score(form_sides(claim, end)).max() > score(form_sides(claim, start)).max() > -np.inf


def test_the_same_seed_is_the_same_search() -> None:
    claim = ResultForm(LEMMA, LEMMA.form("printed")).claim()
    how = instance_test(claim)
    assert how is not None
    once, again = (search_population(claim, how, LIGHT, seed=5) for _ in range(2))
    assert once.worst == again.worst and once.instance == again.instance


def test_participation_that_follows_the_noise_has_the_known_limit() -> None:
    """Two clients with standard normal noise, the larger takes part, gamma = 0.01: E x_t^2 is least just above 1/pi."""
    one = np.ones(1)
    z = NoiseDriven(one, one, -10 * one, 2 * one, 1e6 * one, one, 0.01 * one, one)
    assert z.least_gradient()[0, 0] == pytest.approx(1 / np.pi + 0.01 / 2 * (1 - 1 / np.pi), rel=1e-3)


@pytest.fixture(scope="module")
def sightings() -> dict[str, Sighting]:
    return {s.error: s for s in blind_test()}


def test_the_blind_searches_find_the_papers_errors_again(sightings: dict[str, Sighting]) -> None:
    found = {error for error, sighting in sightings.items() if sighting.found}
    assert found == set(SEARCHES)
    without_a_hint = {error for error in found if "hint" not in sightings[error].where}
    assert len(without_a_hint) == 6
    for error in found:
        finding = sightings[error].finding
        assert finding is not None and finding.instance["left"] > finding.instance["right"]


def test_the_blind_searches_assume_only_what_the_paper_states() -> None:
    numbered = {"smooth", "unbiased-noise", "participation-divergence", "cohort-divergence", "window-divergence"}
    elsewhere = {"weights", "participation-norm", "independent-clients", "exogenous-participation", "bounded-below"}
    assert {a.name for a in stated("theorem-3.1", "explicit").assumptions} == numbered | elsewhere
    without = stated("theorem-3.1", "explicit", without="independent-clients").assumptions
    assert {a.name for a in without} == numbered | elsewhere - {"independent-clients"}


def test_errors_without_a_search_are_listed_with_the_reason(sightings: dict[str, Sighting]) -> None:
    missed = {error for error, sighting in sightings.items() if not sighting.found}
    assert missed == set(NOT_SEARCHED) and all(sightings[error].where for error in missed)


def test_every_searched_error_is_an_erratum_of_the_paper_or_what_holds_without_an_assumption(
    sightings: dict[str, Sighting],
) -> None:
    from fedbounds.bounds.papers.arbitrary_participation.errata import ERRATA, SUPPLEMENTS

    assert set(sightings) <= {entry.id for entry in (*ERRATA, *SUPPLEMENTS)}


@pytest.mark.long
@pytest.mark.parametrize("paper", ["arbitrary-participation", "fedau", "fed-norm-sgda"])
def test_a_deep_search_refutes_nothing_but_the_false_claims(paper: str) -> None:
    ledger = read_ledger(paper)
    for claim in paper_claims(paper):
        if has_instances(claim):
            finding = judge_on_instances(claim, DEEP)
            subject = claim.subject
            order = isinstance(subject, ResultForm) and subject.form.order_only
            false = order or ledger[claim.id]["verdict"] == "refuted"
            assert false or not finding.refuted, f"{claim.id}: {finding.instance}"
