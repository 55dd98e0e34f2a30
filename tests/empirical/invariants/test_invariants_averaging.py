"""Servers that average: ours keeps every invariant, and every planted error is found and named."""

from __future__ import annotations

import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.invariants.averaging import (
    AVERAGING_INVARIANTS,
    MISREADINGS,
    check_averaging,
    weighted_mean,
)


def undivided(model, updates, shares, cohort):
    return model + shares[cohort] @ updates[cohort]


def alike(model, updates, shares, cohort):
    return model + updates[cohort].mean(axis=0)


def of_all(model, updates, shares, cohort):
    return model + updates[cohort].sum(axis=0) / len(shares)


def everybody(model, updates, shares, cohort):
    return model + shares @ updates


WRONG = {
    undivided: ({"mean over cohorts", "equal updates", "alone", "reference twin"}, MISREADINGS[0].description),
    alike: ({"reference twin"}, MISREADINGS[1].description),
    of_all: ({"mean over cohorts", "equal updates", "alone", "reference twin"}, MISREADINGS[2].description),
    everybody: ({"alone", "absent clients", "reference twin"}, ""),
}


def test_the_weighted_mean_keeps_every_invariant():
    report = check_averaging(weighted_mean)
    assert len(report.verdicts) == len(AVERAGING_INVARIANTS) == 7 and not report.broken, str(report)


@pytest.mark.parametrize("server", WRONG, ids=lambda server: server.__name__)
def test_a_planted_error_breaks_what_it_should_and_is_named(server):
    report = check_averaging(server)
    broken, words = WRONG[server]
    assert {each.name for each in report.broken} == broken and words in str(report)


def test_a_server_that_does_something_else_is_reported_so():
    with pytest.raises(FedboundsError, match=r"it is called as run\(model, updates, shares, cohort\)"):
        check_averaging(lambda model: model)
    with pytest.raises(FedboundsError, match="the server returned"):
        check_averaging(lambda model, *_: model[:, None])
