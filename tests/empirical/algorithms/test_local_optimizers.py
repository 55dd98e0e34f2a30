"""What a minimax client makes of its gradients and how much it computes: coefficients, and work that is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.empirical.algorithms import SGDA, LocalOptimizer, RandomWork, heavy_ball, proximal, variable_rates
from fedbounds.empirical.papers.fed_norm_sgda import pseudocode as pseudo_code
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.runtime.streams import Streams

EXACT = 1e-12
RATES = (0.05, 0.08, 0.03, 0.06)
TAU = (3, 1, 5, 2)
EVERY_KIND = (SGDA, heavy_ball(0.7), variable_rates([1, 0.5, 2, 0.25, 1.5]), proximal(0.8))


def gap(one, other):
    return np.abs(np.asarray(one) - np.asarray(other)).max()


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_coefficients_of_momentum_are_those_of_the_appendix(rho, steps):
    a = heavy_ball(rho).coefficients(steps)
    assert gap(a, [(1 - rho ** (steps - j)) / (1 - rho) for j in range(steps)]) < EXACT
    norm = (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho)
    assert heavy_ball(rho).masses(9)[steps] == pytest.approx(norm, rel=1e-13)


@pytest.mark.parametrize("optimizer", [*EVERY_KIND, LocalOptimizer(0.6, (1, 2, 0.5, 0.7, 1.1), 0.9)])
def test_the_coefficients_are_those_of_the_unrolled_recursion(optimizer):
    a = pseudo_code.any_optimizer(optimizer.momentum, optimizer.rates, optimizer.contraction)
    for steps in range(1, 6):
        assert gap(optimizer.coefficients(steps), [a(j, steps) for j in range(steps)]) < EXACT
        assert optimizer.masses(5)[steps] == pytest.approx(optimizer.coefficients(steps).sum(), rel=1e-13)


@pytest.mark.parametrize("optimizer", EVERY_KIND)
def test_only_the_proximal_solver_has_coefficients_that_decrease(optimizer):
    a = pseudo_code.any_optimizer(optimizer.momentum, optimizer.rates, optimizer.contraction)
    grows = all(a(j, k) <= a(j, 5) for k in range(1, 6) for j in range(k))
    assert grows == optimizer.in_theory == (optimizer.contraction == 1)
    assert FedNormSGDA(*RATES, TAU, optimizer=(SGDA, SGDA, SGDA, optimizer)).in_theory == grows
    assert not FedNormSGDA(*RATES, (TAU, TAU[::-1])).in_theory
    assert [FedNormSGDA(*RATES, RandomWork(1, 3, redraw)).in_theory for redraw in (True, False)] == [False, True]


@given(st.integers(1, 3), st.integers(0, 3), st.booleans(), st.integers(0, 99))
def test_drawn_work_is_a_function_of_the_seed_and_the_round_alone(low, more, redraw, seed):
    drawn, streams = RandomWork(low, low + more, redraw), Streams(seed)
    rows = [drawn.numbers(40, t, streams) for t in range(30)]
    assert {int(value) for row in rows for value in row} <= set(range(low, low + more + 1))
    assert all((row == rows[0]).all() for row in rows) == (not redraw or not more)
    assert (RandomWork(low, low + more, not redraw).numbers(40, 0, streams) == rows[0]).all()
    held = [Streams(other, {"work": 7}) for other in (seed, seed + 1)]
    assert (drawn.numbers(40, 3, held[0]) == drawn.numbers(40, 3, held[1])).all()


def test_every_amount_of_work_is_drawn_equally_often():
    numbers = np.concatenate([RandomWork(2, 5).numbers(50, t, Streams(1)) for t in range(400)])
    shares = np.bincount(numbers)[2:] / len(numbers)
    assert (np.abs(shares - 0.25) < 5 * (0.25 * 0.75 / len(numbers)) ** 0.5).all()
