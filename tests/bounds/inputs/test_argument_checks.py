"""What Python callers get wrong is told in one line, and what is plainly meant is understood."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sympy as sp
import torch

from fedbounds.bounds.comparison.compare import compare
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.theory.registry import load
from tests.command_line import run as typed

KEY = "arbitrary-participation/theorem-3.1"
KNOWN = {"L": 1, "F": 5, "I": 2, "P": 2, "T": 800, "rho": 0.5**0.5, "sigma": 1, "nu": 2, "beta": 0.5, "delta": 0}
STEPS = {"gamma": 1e-3, "eta": 2}
FREE = {name: value for name, value in KNOWN.items() if name != "T"} | STEPS


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: evaluate(KEY, KNOWN | STEPS | {"L": [1, 2, 3], "F": [1, 2]}), r"in shape: L has \(3,\), F has \(2,\)"),
        (lambda: evaluate(KEY, None), "constants = None must be a table of symbols and values"),
        (lambda: evaluate(KEY, [("L", 1)]), "must be a table of symbols and values"),
        (lambda: evaluate(KEY, {1: 2}), "must be a table of symbols and values"),
        (lambda: evaluate(KEY, KNOWN | STEPS, 5), "form = 5 must be the name of a form of"),
        (lambda: evaluate(KEY, KNOWN | STEPS, assume="smoth"), "unknown assumption 'smoth'; did you mean smooth"),
        (lambda: evaluate(KEY, KNOWN | STEPS, assume=None), "assume = None must be names"),
        (lambda: evaluate(KEY, KNOWN | STEPS, trust="fedau"), "unknown claim to trust 'fedau'"),
        (lambda: evaluate(None, KNOWN), "result = None must be a result or its key"),
        (lambda: load(None), "key = None must be the key of a result"),
        (lambda: load(3), "key = 3 must be the key of a result"),
        (lambda: optimize(KEY, KNOWN, within={"eta": "1:2"}), "within: eta = '1:2' must be a pair of numbers"),
        (lambda: optimize(KEY, KNOWN, within={"eta": 3}), "within: eta = 3 must be a pair of numbers"),
        (lambda: optimize(KEY, KNOWN, within={"eta": (1, 2, 3)}), "within: eta = .* must be a pair"),
        (lambda: optimize(KEY, KNOWN, within="eta=1:2"), "within = 'eta=1:2' must be a table of ranges"),
        (lambda: optimize(KEY, None), "constants = None"),
        (lambda: optimize(KEY, KNOWN, over=None), "over = None must be names"),
        (lambda: rounds(KEY, 0.1, None), "constants = None"),
        (lambda: rounds(KEY, 0.1, FREE, optimize="gama"), "unknown constant .*gama"),
        (lambda: rounds(KEY, 0.1, FREE, optimize="eta", within={"eta": "1:2"}), "must be a pair of numbers"),
        (lambda: compare([KEY], ("rounds", [10, 20]), None), "constants = None"),
        (lambda: compare([KEY], ("rounds", [10]), FREE, within={"eta": "1:2"}), "must be a pair of numbers"),
    ],
)
def test_what_is_given_wrongly_from_python_is_one_line(call, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        call()
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


NO_NUMBERS = {
    "complex": 1 + 2j,
    "complex array": np.array([1 + 0j, 2]),
    "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
    "duration": np.timedelta64(3, "s"),
    "durations": [np.timedelta64(3, "s")],
    "date": np.datetime64("2020-01-01"),
    "bytes": b"3",
    "bytes that change": bytearray(b"3"),
    "a view of bytes": memoryview(b"34"),
    "more than memory": range(10**12),
    "more than can be counted": range(10**30),
    "more than memory in a list": [range(10**12)],
    "text": "3",
    "texts": ["1", "2"],
    "boolean": True,
    "booleans": np.array([True, False]),
    "numpy boolean": np.True_,
    "too large": 10**400,
    "too large in a list": [10**400, 1],
    "none": None,
    "ragged": [[1], [2, 3]],
    "set": {1, 2},
    "records": np.array([(1, 2)], dtype="i,i"),
    "imaginary": sp.I,
    "missing": pd.array([1, None], dtype="Int64"),
    "frame": pd.DataFrame({"a": ["x"]}),
    "object": object(),
}
NUMBERS = {
    "fraction": (Fraction(1, 2), 0.5),
    "decimal": (Decimal("0.5"), 0.5),
    "sympy": (sp.Rational(1, 2), 0.5),
    "small integer": (np.int8(3), 3.0),
    "series": (pd.Series([1.0, 2.0]), [1.0, 2.0]),
    "mask without entries": (np.ma.masked_array([1.0, 2.0], [False, False]), [1.0, 2.0]),
    "tensor": (torch.tensor([1.0, 2.0]), [1.0, 2.0]),
    "tensor with gradient": (torch.tensor(2.0, requires_grad=True), 2.0),
    "half precision": (torch.tensor(2.0, dtype=torch.bfloat16), 2.0),
    "whole number beyond 64 bits": (2**70, 2.0**70),
}


@pytest.mark.parametrize("value", [range(10**12), range(10**30), itertools.repeat("all"), bytearray(b"all")])
def test_what_is_no_list_of_names_or_rates_is_refused(value):
    rates = dict(K=5, T=10)
    for call in (
        lambda: evaluate(KEY, KNOWN | STEPS, assume=value),
        lambda: evaluate(KEY, KNOWN | STEPS, trust=value),
        lambda: evaluate(KEY, value),
        lambda: evaluate("fedau/theorem-3", rates | {"p": value}),
        lambda: evaluate("fedau/theorem-3", rates | {"p": value, "N": 2}),
    ):
        with pytest.raises(FedboundsError):
            call()


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
def test_what_is_no_real_number_is_refused_wherever_one_is_asked_for(value):
    given = KNOWN | STEPS
    for call in (
        lambda: evaluate(KEY, given | {"L": value}),
        lambda: rounds(KEY, 0.1, FREE | {"L": value}),
        lambda: rounds(KEY, value, FREE),
        lambda: optimize(KEY, KNOWN | {"L": value}, over="gamma,eta"),
        lambda: optimize(KEY, KNOWN, over="eta", within={"eta": value}),
        lambda: compare([KEY], ("rounds", value), FREE),
        lambda: compare([KEY], ("rounds", [10.0]), FREE | {"L": value}),
    ):
        with pytest.raises(FedboundsError) as refused:
            call()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("value", "expected"), NUMBERS.values(), ids=NUMBERS.keys())
def test_every_kind_of_real_number_is_taken(value, expected):
    found = evaluate(KEY, KNOWN | STEPS | {"L": value}).constants["L"].value
    assert np.array_equal(found, expected) and found.dtype == float


@pytest.mark.parametrize("value", [torch.tensor(1.0), pd.Series(KNOWN), np.array(1.0), np.array([1, 2]), 3, b"all"])
def test_what_is_no_name_and_no_table_is_one_line_in_every_place(value):
    given = KNOWN | STEPS
    for call in (
        lambda: evaluate(KEY, value),
        lambda: evaluate(KEY, given, value),
        lambda: evaluate(value, given),
        lambda: evaluate(KEY, given, assume=value),
        lambda: evaluate(KEY, given, trust=value),
        lambda: optimize(KEY, KNOWN, over=value),
        lambda: rounds(KEY, 0.1, FREE, optimize=value),
    ):
        with pytest.raises(FedboundsError) as refused:
            call()
        assert "\n" not in str(refused.value)


def test_settings_that_only_a_condition_depends_on_are_printed_and_counted():
    """P is in no term of this form."""
    given = KNOWN | STEPS | {"I": 1, "P": [1, 1, 2]}
    found = evaluate(KEY, given, "explicit:I=P=1")
    assert found.value.shape == (3,) and found.valid.tolist() == [True, True, False]
    assert "3 settings" in str(found) and "3 settings" in repr(found) and found.headline and found.tables()
    assert len(found.to_dataframe()) == 3


def test_a_bare_name_is_a_list_of_one():
    assert (
        evaluate(KEY, KNOWN | STEPS, assume="all").assumptions
        == evaluate(KEY, KNOWN | STEPS, assume=["all"]).assumptions
    )
    assert evaluate(KEY, KNOWN | STEPS, assume="smooth").assumptions["smooth"] == "assumed"
    assert (
        evaluate(KEY, KNOWN | STEPS, trust=KEY).conditional_on
        == evaluate(KEY, KNOWN | STEPS, trust=[KEY]).conditional_on
    )
    known = KNOWN | {"eta": 2}
    assert optimize(KEY, known, over="gamma").at == optimize(KEY, known, over=["gamma"]).at
    table = compare([KEY], ("rounds", [800]), {n: v for n, v in known.items() if n != "T"}, optimize="gamma")
    assert table.rows[0].values[0] == pytest.approx(optimize(KEY, known, over="gamma").value)


def test_the_form_may_be_the_third_argument():
    assert evaluate(KEY, KNOWN | STEPS, "explicit").form.name == "explicit"
    assert evaluate(KEY, KNOWN | STEPS, "explicit").value == evaluate(KEY, KNOWN | STEPS, form="explicit").value


def test_an_evaluation_prints_as_the_command_does():
    found = evaluate(KEY, KNOWN | STEPS, "explicit")
    words = [f"{name}={value!r}" for name, value in (KNOWN | STEPS).items()]
    assert typed("eval", KEY, "--form", "explicit", *words) == (0, f"{found}\n", "")
    many = evaluate(KEY, KNOWN | STEPS | {"T": np.array([8.0, 80.0, 800.0])}, "explicit")
    lines = str(many).splitlines()
    assert "3 settings: from " in lines[2] and len(lines) < 20 and "verdict: proved" in lines[2]
