"""Exact linear programs against scipy's, and their proofs checked by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fedbounds.bounds.asymptotics.exact_lp import corners, maximize
from fedbounds.bounds.errors import FedboundsError

whole = st.integers(-4, 4)


@st.composite
def bounded_programs(draw):
    n, m = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(whole, min_size=n, max_size=n), min_size=m, max_size=m))
    limits = draw(st.lists(st.integers(0, 6), min_size=m, max_size=m))
    box = [[s * int(i == j) for j in range(n)] for i in range(n) for s in (1, -1)]
    return draw(st.lists(whole, min_size=n, max_size=n)), rows + box, limits + [5] * (2 * n)


@given(bounded_programs(), st.integers(0, 3))
def test_the_largest_value_is_scipys_and_the_point_takes_it(program, nonnegative):
    objective, rows, limits = program
    signed = min(nonnegative, len(objective))
    ours = maximize(objective, rows, limits, nonnegative=signed)
    ends = [(None, None)] * (len(objective) - signed) + [(0, None)] * signed
    theirs = linprog(-np.array(objective), A_ub=rows, b_ub=limits, bounds=ends)
    assert float(ours.value) == pytest.approx(-theirs.fun, abs=1e-9)
    assert sum(c * x for c, x in zip(objective, ours.point, strict=True)) == ours.value
    assert all(
        sum(a * x for a, x in zip(row, ours.point, strict=True)) <= b for row, b in zip(rows, limits, strict=True)
    )
    assert all(x >= 0 for x in ours.point[len(objective) - signed :])


@given(bounded_programs())
def test_the_multipliers_prove_the_value(program):
    objective, rows, limits = program
    best = maximize(objective, rows, limits)
    assert all(multiplier >= 0 for multiplier in best.multipliers)
    combined = [sum(m * row[j] for m, row in zip(best.multipliers, rows, strict=True)) for j in range(len(objective))]
    assert combined == objective
    assert sum(m * b for m, b in zip(best.multipliers, limits, strict=True)) == best.value


def test_fractions_stay_exact():
    assert maximize([1], [[3]], [1]).value == Fraction(1, 3)


def test_a_program_without_a_largest_value_and_one_without_the_origin_are_refused():
    with pytest.raises(FedboundsError, match="no largest value"):
        maximize([1], [[-1]], [0])
    with pytest.raises(FedboundsError, match="origin"):
        maximize([1], [[-1]], [-1])


def test_corners_are_the_points_that_no_two_others_are_around():
    square = [[Fraction(x), Fraction(y)] for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    assert len(corners(square, [Fraction(1)] * 4)) == 9  # four corners, and those with the coordinate planes
    assert corners(square, [Fraction(1), Fraction(-1), Fraction(2), Fraction(-2)]) == [(1, 2)]
    assert corners(square, [Fraction(-1), Fraction(-1), Fraction(1), Fraction(1)]) == []
