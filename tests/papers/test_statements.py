"""What papers say besides their results: the equations are found, and what states them is on trial."""

from __future__ import annotations

import pytest

from fedbounds.bounds.audit.claim_set import paper_claims
from fedbounds.bounds.theory.registry import statements
from fedbounds.cli.catalog import equation_places

NUMBERS = {
    "arbitrary-participation": [*map(str, range(8, 19)), *(f"C.{k}" for k in range(1, 17))],
    "fedmrn": [str(k) for k in range(1, 67)],
    "tdcd": [str(k) for k in range(1, 86)],
}
ABOUT = {  # a line that an erratum is about names it
    "fedmrn": {
        "equation-35": "drift-of-one-client",
        "assumption-4": "masking-error-at-zero",
        "equation-54": "minimum-of-the-wrong-function",
    },
    "tdcd": {
        "equation-58": "next-exchange-off-by-one",
        "largest-constant": "largest-over-clients-alone",
        "assumption-3": "shards-are-noise-too",
        "remark-3": "order-of-local-steps",
    },
}


@pytest.mark.parametrize(("room", "number"), [(room, number) for room, all_ in NUMBERS.items() for number in all_])
def test_equations_are_found_by_their_numbers(room, number):
    assert equation_places(room, number)


@pytest.mark.parametrize("room", NUMBERS)
def test_what_states_or_proves_a_statement_is_on_trial(room):
    claims = {claim.id for claim in paper_claims(room)}
    for one in statements(room):
        assert {f"{room}/{name}" for name in one.claims} <= claims, one.key


@pytest.mark.parametrize("room", ABOUT)
def test_a_line_that_an_erratum_is_about_names_it(room):
    named = {one.name: one.claims for one in statements(room)}
    for line, erratum in ABOUT[room].items():
        assert f"erratum/{erratum}" in named[line]
