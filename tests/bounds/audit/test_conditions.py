"""Every condition of every form is changed by a factor of two: a checker notices, or the table says that none does."""

from __future__ import annotations

import json
import random

import pytest
import sympy as sp

from fedbounds.bounds.audit.proof_step_checker import CHECKER, condition_fact
from fedbounds.bounds.audit.tested_conditions import describe_untested, read_conditions, untested_conditions
from fedbounds.bounds.papers.fedmrn.results import BOUNDED
from fedbounds.bounds.theory.registry import PAPERS, load
from fedbounds.bounds.theory.result import Condition
from tests.command_line import run
from tests.mutation.conditions import Conditions, loosen, replace_condition, replace_in_rule, same
from tests.mutation.theorems import run_checker

EACH = 1  # conditions of every paper that the default run changes again; those that are not noticed take longer
x, y = sp.symbols("x y", positive=True)


@pytest.fixture(scope="module")
def known() -> dict[str, Conditions]:
    return {}


def conditions_of(known: dict[str, Conditions], paper: str) -> Conditions:
    return known.setdefault(paper, Conditions.of(paper))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_condition_of_every_form_has_a_row(known: dict[str, Conditions], paper: str) -> None:
    listed = {(subject.id, condition.text) for subject, condition in conditions_of(known, paper).every}
    assert set(read_conditions(paper)) == listed, f"python -m tests.mutation.conditions {paper}"


@pytest.mark.parametrize("paper", PAPERS)
def test_a_sample_of_conditions_is_noticed_as_the_table_says(known: dict[str, Conditions], paper: str) -> None:
    conditions = conditions_of(known, paper)
    every = [(s, c) for s, c in conditions.every if "corollary" not in s.id]
    noticed = [(s, c) for s, c in every if read_conditions(paper)[s.id, c.text].tested]
    for subject, condition in random.Random(3).sample(noticed, EACH):
        assert conditions.noticed(subject, condition) == read_conditions(paper)[subject.id, condition.text]


@pytest.mark.long
@pytest.mark.parametrize("paper", PAPERS)
def test_every_condition_is_noticed_as_the_table_says(known: dict[str, Conditions], paper: str) -> None:
    conditions, rows = conditions_of(known, paper), read_conditions(paper)
    for subject, condition in conditions.every:
        assert conditions.noticed(subject, condition) == rows[subject.id, condition.text]


def test_a_changed_condition_is_looser_whichever_way_it_points() -> None:
    for condition in (Condition(x, "<=", y, ""), Condition(x, "<", y, "")):
        assert loosen(condition).right == 2 * y
    for condition in (Condition(x, ">=", y, ""), Condition(x, ">", y, "")):
        assert loosen(condition).right == y / 2


def test_a_condition_is_changed_wherever_it_is_stated_also_in_what_rules_ask_for(known: dict[str, Conditions]) -> None:
    conditions = conditions_of(known, "fedmrn")
    new = loosen(BOUNDED)
    changed = replace_condition(conditions.claims, BOUNDED, (new,))
    forms = {"fedmrn/theorem-1[repaired:R1]", "fedmrn/theorem-1[sharp:masks]"}
    assert {name for name, c in changed.items() if any(same(one, new) for one in c.conditions)} >= forms
    assert not [name for name, c in changed.items() if any(same(one, BOUNDED) for one in c.conditions)]
    asked = (condition_fact(BOUNDED), condition_fact(Condition(x, "<=", y, "")))
    assert (
        replace_in_rule(asked, BOUNDED, (new,)) == (condition_fact(new), asked[1])
        and replace_in_rule(asked, BOUNDED, ()) == asked[1:]
    )


@pytest.mark.parametrize(
    "root", [lambda d: sp.sqrt(d) / 4, lambda d: (2 * sp.sqrt(d) - 1) / 2, lambda d: 2 * sp.sqrt(d) - 2]
)
def test_how_long_signed_masks_keep_their_bound_is_checked_by_a_step(known: dict[str, Conditions], root) -> None:
    """T <= 1 + gamma/(2 sqrt(d) - 1) is what 2 sqrt(d) (T - 1) <= gamma + T - 1 needs; more is refused."""
    claims, top = conditions_of(known, "fedmrn").claims, BOUNDED.right - 1
    d = next(s for s in top.free_symbols if s.name == "d")
    wrong = Condition(BOUNDED.left, "<=", 1 + top * (2 * sp.sqrt(d) - 1) / root(d), "")
    for name in ("fedmrn/theorem-1-masks/M0", "fedmrn/lemma-4-masks/M0"):
        changed = claims | replace_condition(claims, BOUNDED, (wrong,))
        assert run_checker(CHECKER, claims, name).outcome == "proved" != run_checker(CHECKER, changed, name).outcome


# --- reports ----------------------------------------------------------------------------------------------------------


def test_conditions_that_are_not_tested_are_listed_by_audit_and_show() -> None:
    theorem = load("fedmrn/lemma-4")
    idle = untested_conditions(theorem, theorem.form("sharp"))
    assert [row.text for row in idle] == ["mu <= L"]
    out = run("show", "fedmrn/lemma-4", "--form", "sharp")[1]
    assert "constant not tested (the audit does not detect a factor of 2 in it): mu <= L" in out
    document = json.loads(run("show", "fedmrn/lemma-4", "--form", "sharp", "--json")[1])
    told = {c["text"]: c["tested"] for form in document["forms"] for c in form["conditions"]}
    assert told == {"mu <= L": False, "etat <= 1/(2*L)": True}
    out = run("audit", "fedmrn/lemma-4[sharp]")[1]
    assert "not tested  fedmrn/lemma-4[sharp]  condition mu <= L" in out
    listed = json.loads(run("audit", "fedmrn/lemma-4[sharp]", "--json")[1])["conditions_not_tested"]
    assert listed == [{"form": "fedmrn/lemma-4[sharp]", "condition": "mu <= L"}]
    assert "conditions of forms not tested" in describe_untested("fedmrn")
    assert describe_untested("no-such-paper").startswith(
        "no condition of a form is tested: there is no conditions.json"
    )
