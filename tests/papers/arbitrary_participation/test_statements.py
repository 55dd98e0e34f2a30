"""What the first paper says besides its results: every displayed equation is found, and on trial where it is proved."""

import pytest

from fedbounds.bounds.audit.docket import room_claims
from fedbounds.bounds.commands.places import equation_places
from fedbounds.bounds.papers.arbitrary_participation.statements import STATEMENTS
from fedbounds.bounds.registry import load


@pytest.mark.parametrize("number", [*map(str, range(8, 19)), *(f"C.{k}" for k in range(1, 17))])
def test_every_displayed_equation_from_8_on_is_found_by_its_number(number):
    assert equation_places("arbitrary-participation", number)


def test_what_states_or_proves_a_statement_is_on_trial():
    claims = {claim.id for claim in room_claims("arbitrary-participation")}
    for one in STATEMENTS:
        assert {f"arbitrary-participation/{name}" for name in one.claims} <= claims


def test_the_equations_stand_where_the_paper_has_them():
    said = {c.id.partition("/")[2]: c.text for c in room_claims("arbitrary-participation") if c.kind == "step"}
    assert "(C.6)" in said["lemma-c.1/L1.4"]
    theorem = load("arbitrary-participation/theorem-3.1")
    assert "(C.15)" in next(c.why for c in theorem.form("explicit").conditions if str(c.left) == "eta*gamma")
    assert not load("arbitrary-participation/proposition-4.6").source.equations  # (16) and (17) are the inequalities
    assert not load("arbitrary-participation/proposition-4.7").source.equations  # before them
    assert "for all x and all t_0" in next(a.statement for a in theorem.form("explicit").assumptions
                                           if a.name == "window-divergence")  # fmt: skip
