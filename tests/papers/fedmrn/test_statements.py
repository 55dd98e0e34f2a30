"""What Li et al. (2024) say besides their results: the equations are found, and what states them is on trial."""

import pytest

from fedbounds.bounds.audit.docket import room_claims
from fedbounds.bounds.commands.places import equation_places
from fedbounds.bounds.papers.fedmrn.statements import STATEMENTS

MAIN = [*map(str, range(5, 11)), "11", "12", *map(str, range(13, 24)), "26", "29"]


@pytest.mark.parametrize("number", [*MAIN, "32", "34", "35", "36", "40", "41", "46", "53", "54", "59", "60", "61"])
def test_equations_are_found_by_their_numbers(number):
    assert equation_places("fedmrn", number)


def test_what_states_or_proves_a_statement_is_on_trial():
    claims = {claim.id for claim in room_claims("fedmrn")}
    for one in STATEMENTS:
        assert {f"fedmrn/{name}" for name in one.claims} <= claims, one.key


def test_a_line_that_an_erratum_is_about_names_it():
    named = {one.name: one.claims for one in STATEMENTS}
    assert "erratum/drift-of-one-client" in named["equation-35"]
    assert "erratum/masking-error-at-zero" in named["assumption-4"]
    assert "erratum/minimum-of-the-wrong-function" in named["equation-54"]
