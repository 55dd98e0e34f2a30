"""SCAFFOLD: control variates, closed forms in fractions, fixed points, and the floor of FedAvg that it passes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from fedbounds.algorithms import Cohort, FedAvg
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.memory import Stored
from fedbounds.empirical.algorithms.scaffold import Scaffold
from fedbounds.empirical.participation import Bernoulli, Full, PeriodicGroups, Round, WithoutReplacement
from fedbounds.empirical.problems import Problem, random_cosine_quadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import choose_engine
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.algorithms.scalar_quadratics import (
    CENTERS,
    CURVATURES,
    MINIMIZER,
    START,
    STEP,
    drift,
    scalar_problem,
    settle,
    weighted,
)

N, I = 5, 4


def states(algorithm: Scaffold, problem: Problem, rounds: list[list[int]], first: Stored | None = None) -> list[Stored]:
    """The states of one seed in which these clients take part, each a copy."""
    engine = choose_engine("batched", problem, algorithm)
    state = algorithm.init(problem.initial_point(np.random.default_rng())[None], problem.clients)
    found = [state if first is None else first]
    for t, who in enumerate(rounds):
        state = Stored(*(values.clone() for values in found[-1]))
        drawn = Cohort.from_rounds([Round(np.array(who), np.full(len(who), 1 / len(who)))])
        cohort = algorithm.cohort(state, t, drawn, problem.clients)
        report = engine.round(state.model, cohort, t, [Streams(0)], algorithm.correction(state, cohort))
        found.append(algorithm.server_update(state, t, report))
    return found


def optimum(problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    """The minimizer (1, d), and the local gradients there (1, N, d)."""
    A, c = problem.hessians, problem.centers
    x = torch.linalg.solve(A.mean(0), (A @ c[..., None]).mean(0)[:, 0])[None]
    clients = torch.arange(problem.clients)[None]
    return x, problem.gradient(x[:, None].expand(1, problem.clients, -1), clients)


# --- control variates ----------------------------------------------------------------------------------------


def test_after_one_step_of_all_clients_the_control_variates_are_the_local_gradients() -> None:
    problem = random_quadratic(N, 3, shared=False)
    first, then = states(Scaffold(0.1, 1), problem, [list(range(N))])
    clients = torch.arange(N)[None]
    own = problem.gradient(first.model[:, None].expand(1, N, 3), clients)
    assert torch.allclose(then.own, own, rtol=1e-13) and torch.allclose(
        then.mean, problem.objective_gradient(first.model), rtol=1e-12
    )


def test_the_mean_of_the_control_variates_is_that_of_the_server_in_every_round() -> None:
    """Under partial participation too: the server adds what changed, divided by N."""
    problem, rng = random_cosine_quadratic(N, 3, noise=0.4), np.random.default_rng(0)
    rounds = [sorted(rng.permutation(N)[: rng.integers(1, N + 1)].tolist()) for _ in range(200)]
    for state in states(Scaffold(0.05, I, 1.3), problem, rounds):
        assert torch.allclose(state.own.mean(1), state.mean, rtol=0, atol=1e-13)


def test_absent_clients_keep_their_control_variates() -> None:
    first, then = states(Scaffold(0.05, I), random_quadratic(N, 3, noise=0.2), [[0, 1, 2, 3, 4], [1, 3]])[1:]
    assert (then.own[:, [0, 2, 4]] == first.own[:, [0, 2, 4]]).all()
    assert (then.own[:, [1, 3]] != first.own[:, [1, 3]]).any(-1).all()


def test_a_new_control_variate_is_the_mean_of_the_local_gradients() -> None:
    """c_n^+ = (1/I) sum_i g_n(y_i), as the correction cancels."""
    problem = random_quadratic(N, 3, shared=False)
    before, after = states(Scaffold(0.05, I), problem, [[0, 1, 2, 3, 4], [2]])[1:]
    y, gradients = before.model[0], []
    for _ in range(I):
        gradients.append(problem.hessians[2] @ (y - problem.centers[2]))
        y = y - 0.05 * (gradients[-1] - before.own[0, 2] + before.mean[0])
    assert torch.allclose(after.own[0, 2], torch.stack(gradients).mean(0), rtol=1e-12)


# --- closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [Fraction(1), Fraction(3, 2)])
@pytest.mark.parametrize("steps", [1, 3])
def test_two_scalar_quadratics_follow_the_closed_form(steps: int, eta: Fraction) -> None:
    """Local steps end at m_n + (c_n - c)/a_n up to a factor (1 - gamma a_n)^I; client 1 is absent in round 2."""
    q = np.full((6, 2), 0.5)
    q[2] = [1, 0]
    x, own = START, [Fraction(0), Fraction(0)]
    path = [x]
    for row in q:
        c, moves = sum(own, Fraction(0)) / 2, []
        for n in np.flatnonzero(row).tolist():
            a = CURVATURES[n]
            y = settle(x, CENTERS[n] + (own[n] - c) / a, a, steps)
            moves.append(y - x)
            own[n] = own[n] - c + (x - y) / (steps * STEP)
        x = x + eta * sum(moves, Fraction(0)) / len(moves)
        path.append(x)
    ours = simulate(Scaffold(float(STEP), steps, float(eta)), scalar_problem(), q, 6, record_models=True).model[0, :, 0]
    assert np.abs(ours - [float(value) for value in path]).max() < 1e-13


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_scaffold_reaches_the_minimizer_where_fedavg_stops_at_its_fixed_point(steps: int) -> None:
    """FedAvg ends at the mean of the centers with weights 1 - (1 - gamma a_n)^I, for I = 1 alone the minimizer."""
    problem, floor = scalar_problem(), weighted([drift(a, steps) for a in CURVATURES])
    fedavg, scaffold = (
        simulate(algorithm, problem, Full(2), 400, record_models=True, record_every=400)
        for algorithm in (FedAvg(float(STEP), steps), Scaffold(float(STEP), steps))
    )
    assert abs(fedavg.model[0, -1, 0] - float(floor)) < 1e-13
    assert abs(scaffold.model[0, -1, 0] - float(MINIMIZER)) < 1e-13
    gap = float(sum(CURVATURES) / 4 * (floor - MINIMIZER) ** 2)
    assert fedavg.objective_gap[0, -1] == pytest.approx(gap, abs=1e-14)
    assert scaffold.objective_gap[0, -1] < 1e-25 and (gap > 0.005) == (steps > 1)


def test_fixed_points_of_the_two_algorithms_in_fractions() -> None:
    """What the test above compares with, for I = 2: weights 1 - (7/8)^2 and 1 - (5/8)^2."""
    assert Fraction(5, 4) == MINIMIZER
    assert weighted([drift(a, 2) for a in CURVATURES]) == Fraction(2 * 39 - 15, 15 + 39) == Fraction(7, 6)


# --- fixed points --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [list(range(N)), [1, 4]], ids=["all", "some"])
def test_with_the_gradients_at_the_minimizer_scaffold_stays_there(who: list[int]) -> None:
    problem = random_quadratic(N, 3, shared=False)
    x, gradients = optimum(problem)
    first = Stored(x, gradients, gradients.mean(1))
    for state in states(Scaffold(0.05, I, 1.5), problem, [who] * 20, first):
        assert torch.allclose(state.model, x, rtol=0, atol=1e-13)
        assert torch.allclose(state.own, gradients, rtol=0, atol=1e-12)


def test_at_the_minimizer_fedavg_does_not_stay_nor_scaffold_without_its_control_variates() -> None:
    problem = random_quadratic(N, 3, shared=False)
    x, gradients = optimum(problem)
    moved = states(Scaffold(0.05, I), problem, [list(range(N))], Stored(x, 0 * gradients, 0 * x))[-1].model - x
    there = type(problem)(problem.hessians, problem.centers, x0=x[0])
    fedavg = simulate(FedAvg(0.05, I), there, Full(N), 1, record_models=True).model[0]
    assert np.abs(fedavg[1] - fedavg[0]).max() > 1e-4
    assert np.allclose(moved.numpy()[0], fedavg[1] - fedavg[0], rtol=1e-9)  # which is the same step


@pytest.mark.parametrize("process", [Full(N), WithoutReplacement(N, 2), Bernoulli(N, 0.5)], ids=lambda each: each.kind)
def test_heterogeneous_quadratics_are_solved_under_partial_participation(process) -> None:
    problem = random_quadratic(N, 3, shared=False)
    fedavg, scaffold = (
        simulate(algorithm, problem, process, 600, record_every=600).gradient_norm_squared[0]
        for algorithm in (FedAvg(0.05, I), Scaffold(0.05, I))
    )
    assert scaffold[-1] < 1e-24 and fedavg[-1] > 1e-6


# --- special cases -------------------------------------------------------------------------------------------


def test_equal_clients_that_all_take_part_run_fedavg() -> None:
    one = random_quadratic(1, 3, shared=False)
    alike = type(one)(one.hessians.expand(N, 3, 3), one.centers.expand(N, 3), x0=one.x0)
    ours, fedavg = (
        simulate(algorithm, alike, Full(N), 10, engine="batched", record_models=True).model
        for algorithm in (Scaffold(0.1, I), FedAvg(0.1, I))
    )
    assert np.abs(ours - fedavg).max() < 1e-13


def test_a_client_that_is_drawn_twice_in_a_round_is_refused() -> None:
    twice = PeriodicGroups(6, 2, slot=2, groups=3, repeats="independent")
    with pytest.raises(FedboundsError, match="scaffold"):
        simulate(Scaffold(0.1, 2), random_quadratic(6, 2), twice, 3)
