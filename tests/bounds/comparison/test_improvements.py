"""What papers say of other results, judged by rates and assumptions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedbounds.bounds.comparison.improvements import Improvement, improvements
from fedbounds.bounds.theory.registry import PAPERS, load
from tests.command_line import run

EVERY = list(improvements())
REGULARIZED = next(one for one in EVERY if one.against.startswith("arjevani"))


def test_every_paper_compares_itself_with_something_that_exists() -> None:
    assert {one.result.partition("/")[0] for one in EVERY} == set(PAPERS)
    for one in EVERY:
        load(one.result).form(one.form)
        assert not one.against or load(one.against).key == one.against


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.result} {one.relation} {one.against} {one.assumption}")
def test_no_statement_of_a_paper_fails_and_what_is_open_says_why(one: Improvement) -> None:
    outcome, why = one.judged
    assert outcome == "holds" or (outcome == "unknown" and not one.against and "not in the registry" in why)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "holds"),
        ({"relation": "faster"}, "fails"),  # it has the rate of the lower bound, no better one
        ({"against": "richtarik-2021/ef21"}, "unknown"),  # 1/T, without participants
        ({"against": "arbitrary-participation/table-1-yan"}, "fails"),  # another power of participants
        ({"relation": "without", "assumption": "lipschitz-hessian"}, "unknown"),  # not an assumption of the other
        ({"relation": "without", "against": "fedau/theorem-2", "assumption": "smooth"}, "fails"),  # both need it
        ({"result": "fedmrn/theorem-1", "form": "printed"}, "fails"),  # refuted
    ],
)
def test_another_statement_has_another_outcome(change: dict[str, str], outcome: str) -> None:
    assert replace(REGULARIZED, **change).judged[0] == outcome


def test_the_graph_of_a_result_has_them() -> None:
    status, out, _ = run("show", REGULARIZED.result, "--graph")
    assert status == 0 and "holds: regularized participation has the rate of the lower bound" in out


def test_rates_that_differ_in_the_speed_up_are_not_called_the_same() -> None:
    out = run("show", "jhunjhunwala-2022/fedavg", "--graph")[1]
    lines = [line for line in out.splitlines() if line.strip().startswith("fedmrn/remark-2-non-convex")]
    assert lines and all(line.endswith("(same power of T, without the speed-up)") for line in lines)
    assert "in rounds: T^(-1/2) against T^(-1/2) S^(-1/2)" in out and "M^(" not in out  # its own letter
    assert REGULARIZED.shown_relation == REGULARIZED.relation
