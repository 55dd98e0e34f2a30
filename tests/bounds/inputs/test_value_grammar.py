"""Values typed by users: what is read, what is refused, and that nothing else ever happens."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.value_grammar import parse_assignments, split_list


def read(text, **others):
    return parse_assignments({"value": text, **others})["value"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        ("1e6", 1e6),
        (".5", 0.5),
        ("1/(12*3)", 1 / 36),
        ("-2**2", -4.0),
        ("2**-1", 0.5),
        ("2**3**2", 512.0),
        ("1-2-3", -4.0),
        ("8/4/2", 1.0),
        ("sqrt(0.5)", math.sqrt(0.5)),
        ("min(3, 1, 2) + max(1, 2)", 3.0),
        ("log(2)", math.log(2)),
        ("inf", math.inf),
        (" ( 1 + 2 ) * 3 ", 9.0),
    ],
)
def test_expressions_have_their_usual_value(text, number):
    assert read(text) == number


def test_a_value_may_use_other_constants_in_any_order():
    assert read("1/(12*L*I)", L="I*2", I="3") == 1 / (12 * 6 * 3)


def test_commas_outside_parentheses_make_a_vector():
    assert np.array_equal(read("0.1, min(1, 2), 3"), [0.1, 1, 3])
    assert split_list("a(b,c),d") == ["a(b,c)", "d"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "nothing there"),
        ("1+", "ends too early"),
        ("(1", "not closed"),
        ("1)", "unexpected ')'"),
        ("__import__('os').system('x')", "unexpected"),
        ("a.b", "unexpected '.'"),
        ("1;2", "unexpected ';'"),
        ("exp(1)", "unknown function 'exp'"),
        ("sqrt(-1)", "math domain error"),
        ("(-8)**(1/3)", "not a real number"),
        ("1/0", "division by zero"),
        ("10**100", "beyond 64"),
        ("9e300**9", "too large"),
        ("sqrt(1,2)", "takes 1 argument"),
        ("x", "unknown name"),
        ("(" * 50 + "1" + ")" * 50, "nested deeper"),
        ("-" * 60 + "1", "nested deeper"),
        ("1" * 600, "characters"),
        ("lambda: 1", "unexpected ':'"),
        ("1 if 2 else 3", "unexpected 'if'"),
        ("0x10", "unexpected 'x10'"),
        ("@/nowhere/rates.csv", "cannot read"),
    ],
)
def test_anything_else_is_one_line_that_says_what_is_wrong(text, part):
    with pytest.raises(FedboundsError) as error:
        read(text)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_a_circle_of_references_is_named():
    with pytest.raises(FedboundsError, match="circle: a -> b -> a"):
        parse_assignments({"a": "b", "b": "a"})


def test_vectors_come_from_files_and_bad_cells_are_located(tmp_path):
    good = tmp_path / "rates.csv"
    good.write_text("0.1,0.2\n0.3\n")
    assert np.array_equal(read(f"@{good}"), [0.1, 0.2, 0.3])
    bad = tmp_path / "bad.csv"
    bad.write_text("0.1\nx\n")
    with pytest.raises(FedboundsError, match="line 2: 'x' is not a number"):
        read(f"@{bad}")
    binary = tmp_path / "half.bin"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FedboundsError, match="not a text file"):
        read(f"@{binary}")


@given(st.text(max_size=60))
def test_no_text_does_more_than_give_a_number_or_an_error(text):
    try:
        number = read(text)
    except FedboundsError as error:
        assert "\n" not in str(error).strip()
    else:
        assert isinstance(number, float | np.ndarray)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0))
def test_every_printed_number_is_read_back(number):
    assert read(repr(number)) == number
