"""The border: what is a whole number, a number, a flag and an array, and what the error says otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_matrix, check_number, check_vector


@pytest.mark.parametrize("value", [10.5, float("nan"), float("inf"), "10", True, None, [10], 0, 11, 1e300, -3])
def test_what_is_not_a_whole_number_in_range_is_quoted_with_the_range(value):
    with pytest.raises(FedboundsError) as error:
        check_count("rounds", value, 1, 10)
    assert "rounds = " in str(error.value) and "[1, 10]" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("value", [1, 10, 10.0, np.int64(3), np.float32(3)])
def test_whole_numbers_of_any_type_become_ints(value):
    assert check_count("rounds", value, 1, 10) == value
    assert type(check_count("rounds", value, 1, 10)) is int


def test_a_count_without_an_upper_end_may_be_large():
    assert check_count("rounds", 1e6) == 10**6


@pytest.mark.parametrize("value", ["0.5", True, None, float("nan"), float("inf"), -0.1, 1.1])
def test_what_is_not_a_number_in_range_is_quoted_with_the_range(value):
    with pytest.raises(FedboundsError, match=r"leave = .* must be a number in \[0, 1\]"):
        check_number("leave", value, 0, 1)


def test_an_unbounded_range_is_written_half_open():
    with pytest.raises(FedboundsError, match=r"d = -1 must be a number in \[0, inf\): the gradient divergence"):
        check_number("d", -1, 0, why="the gradient divergence")


def test_flags_are_only_true_and_false():
    assert check_flag("reshuffle", np.True_) is True
    with pytest.raises(FedboundsError, match="reshuffle = 1 must be true or false"):
        check_flag("reshuffle", 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0], [1.0, 2.0]], "must be numbers in an array of shape"),
        ([["1", "2"]], "must be numbers in an array of shape"),
        ([[1 + 2j]], "must be numbers in an array of shape"),
        ([[None]], "must be numbers in an array of shape"),
        (1.0, r"has shape \(\)"),
        ([1.0], r"has shape \(1,\)"),
        (np.zeros((0, 3)), r"has shape \(0, 3\)"),
        ([[0.0, 1.0], [2.0, np.nan]], r"q\[1, 1\] = nan is not finite"),
        ([[np.inf]], r"q\[0, 0\] = inf is not finite"),
    ],
)
def test_a_bad_matrix_is_reported_by_its_shape_or_its_first_bad_entry(values, message):
    with pytest.raises(FedboundsError, match=message):
        check_matrix("q", values, "(rounds, clients)")


def test_a_vector_of_the_wrong_length_is_reported_the_right_one():
    with pytest.raises(FedboundsError, match=r"mean has shape \(2,\); expected \(3,\)"):
        check_vector("mean", [1, 2], 3)


@given(st.one_of(st.text(), st.floats(), st.integers(), st.binary(), st.lists(st.text()), st.none()))
def test_every_bad_value_is_one_line(value):
    for check in (check_count, check_number, check_vector):
        try:
            check("value", value)
        except FedboundsError as error:
            assert len(str(error).splitlines()) == 1
