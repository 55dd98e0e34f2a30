"""An extreme that is printed is admissible itself: rounded to its own side, and whole where the constant is."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.display.plain_text import number_to, whole_to
from fedbounds.bounds.evaluation.evaluate import CheckedCondition, evaluate
from fedbounds.bounds.evaluation.numpy_code import compile_condition
from fedbounds.bounds.search.rounds_answers import Between
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.registry import results
from fedbounds.bounds.theory.result import Condition, Form, Result, Source, Term
from fedbounds.bounds.theory.symbols import COUNT, NONE, POSITIVE, Notation, Quantity
from tests.command_line import run

WALL_CLOCK = dict(eta=0.001, Q=10, L=2, Lmax=1, Deltainf=1, S=0.5, W=1e6, tcomp=1)


@given(st.floats(1e-300, 1e300))
def test_a_number_is_printed_on_its_side_of_the_value_and_close_to_it(value):
    below, above = float(number_to("below", value)), float(number_to("above", value))
    assert below <= value * (1 + 1e-15) and above >= value * (1 - 1e-15)
    assert below == pytest.approx(value, rel=1.01e-5) and above == pytest.approx(value, rel=1.01e-5)


@given(st.floats(0.5, 1e12))
def test_a_whole_number_is_the_next_one_on_its_side(value):
    below, above = int(whole_to("below", value)), int(whole_to("above", value))
    assert value - 1 < below <= value * (1 + 1e-12) and value * (1 - 1e-12) <= above < value + 1


def test_a_largest_value_that_is_printed_reaches_the_target():
    words = ["rounds", "tdcd/wall-clock", "--epsilon", "0.2", "--solve", "tcomm"]
    _, printed, _ = run(*words, *(f"{name}={value}" for name, value in WALL_CLOCK.items()))
    found = re.search(r"largest tcomm: (\S+) ", printed)
    assert found is not None
    assert float(evaluate("tdcd/wall-clock", WALL_CLOCK | {"tcomm": float(found[1])}).value) <= 0.2


def test_the_ends_between_which_an_answer_lies_are_rounded_outward():
    assert Between("T", 0.1, 1234567896, 9876543214, "", 1).words == "T between 1.23456789e+09 and 9.87654322e+09"


NOTATION = Notation([
    Quantity("x", "x", "a number", "x", POSITIVE, NONE), Quantity("T", "T", "a count", "rounds", COUNT, NONE)
])  # fmt: skip
X, T = NOTATION["x"].symbol, NOTATION["T"].symbol


@pytest.mark.parametrize(("condition", "value", "printed"), [
    (Condition(T, ">=", X, "", limits=T), 2.44141, "3"),
    (Condition(T, "<=", X, "", limits=T), 2.44141, "2"),
    (Condition(T, "<", X, "", limits=T), 3.0, "2"),
    (Condition(T, ">", X, "", limits=T), 3.0, "4"),
    (Condition(X, "<=", 1 / T, "", limits=T), 0.4, "2"),
    (Condition(X / T**2, "<=", sp.Integer(1), "", limits=T), 10.0, "4"),
])  # fmt: skip
def test_the_limit_of_a_whole_number_is_one_that_holds(condition, value, printed):
    form = Form("explicit", (Term("all", 1 / T),), conditions=(condition,))
    source = Source("none", "none")
    made = Result("made/up", "remark", "made up", source, LEAST_GRADIENT, NOTATION, (form,), "explicit")
    there = evaluate(made, {"x": value, "T": int(printed)}).conditions[0]
    assert there.limit == printed and there.holds
    assert f"T at its limit: {printed}" in str(evaluate(made, {"x": value, "T": int(printed)}))


def test_a_limit_at_infinity_is_said_so():
    condition = Condition(T, "<", X, "", limits=T)
    ends = np.array(1.0), np.array(np.inf), np.array(np.inf)
    assert (
        CheckedCondition(compile_condition(condition, NOTATION), np.array(True), NOTATION, lambda: ends).limit == "inf"
    )


def test_every_condition_with_an_extreme_says_on_which_side_it_holds():
    all_conditions = [c for result in results() for form in result.forms for c in form.conditions]
    assert all(c.caps is not None for c in all_conditions if c.extreme is not None and c.op != "==")


def test_a_result_without_rounds_says_what_may_be_asked():
    words = [f"{name}={value}" for name, value in WALL_CLOCK.items() if name != "W"] + ["tcomm=10"]
    status, _, told = run("rounds", "tdcd/wall-clock", "--epsilon", "0.2", *words, "W=1e6")
    assert status == 2 and "does not depend on a number of rounds" in told and "--vary" in told
    status, printed, _ = run("rounds", "tdcd/wall-clock", "--epsilon", "0.2", "--solve", "W", *words)
    assert status == 0 and "every W that is large enough reaches it" in printed
    least = float(re.search(r"smallest W: (\S+) ", printed)[1])
    known = {**WALL_CLOCK, "tcomm": 10.0}
    reached = [evaluate("tdcd/wall-clock", known | {"W": least * (1 + x)}).value <= 0.2 for x in (-1e-6, 1e-6)]
    assert reached == [False, True]


def test_a_dimension_that_counts_nothing_is_said_to():
    words = ["eta=1e-3", "L=2", "Lmax=1", "Delta=1", "S=.5", "Q=10"]
    status, printed, _ = run("rounds", "tdcd/theorem-1", "--epsilon", "9", "--dimension", "100", *words)
    assert status == 0 and "floats, bits: unknown" in printed


@pytest.mark.parametrize("L", [3, 7, 0.3])
@pytest.mark.parametrize("steps", [3, 7])
def test_step_sizes_that_are_copied_from_the_screen_are_admissible(L, steps):
    rest = ["P=2", "T=800", "rho=1", "sigma=0.5", "nu=2", "beta=0.5", "delta=0", "F=5", f"I={steps}", f"L={L}"]
    theorem = "arbitrary-participation/theorem-3.1"
    status, found, _ = run("optimize", theorem, "--over", "gamma,eta", "--within", "eta=1:100", *rest)
    chosen = re.search(r"at (gamma = \S+), (eta = \S+)$", found, re.MULTILINE)
    assert status == 0 and chosen is not None
    status, said, _ = run("eval", theorem, *rest, *(part.replace(" ", "") for part in chosen.groups()))
    assert status == 0 and "valid: yes" in said
