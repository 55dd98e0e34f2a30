"""What the strategies draw is what they promise, and reaches the corners that a test wants to see."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.participation.constants import check_weights
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.invariants.strategies import (
    FORMS,
    cases,
    cosine_quadratics,
    participation_matrices,
    plain_problems,
    quadratics,
)
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
from fedbounds.empirical.participation import Permutation
from fedbounds.empirical.participation.spec import PARTICIPATION
from fedbounds.empirical.problems import CosineQuadratic, Quadratic
from tests.bounds.participation.reference_constants import window_divergence
from tests.empirical.invariants.more_strategies import processes, schedules, step_sizes

few = settings(max_examples=30)


def reached(strategy, wanted):
    """Something wanted that the strategy draws, not shrunk."""
    return find(strategy, wanted, settings=settings(max_examples=1000, phases=[Phase.generate], database=None))


@given(quadratics())
@few
def test_quadratics_have_the_eigenvalues_bounded(problem):
    eigenvalues = np.linalg.eigvalsh(np.stack([problem.hessian(n).numpy() for n in range(problem.clients)]))
    assert np.abs(eigenvalues[..., None] - [1, 0.5, 0.25]).min(-1).max() < 1e-12
    assert problem.noise == 0
    assert problem.minimizer().shape == (problem.dimension,)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_hessians_is_drawn_and_recognized(form):
    shared, diagonal = form.startswith("shared"), form.endswith("diagonal")
    found = reached(quadratics(forms=(form,)), lambda p: (p.shared, p.diagonal) == (shared, diagonal))
    assert found.dimension >= (1 if diagonal else 2)


def test_as_many_clients_as_dimensions_with_diagonals_of_their_own_are_not_taken_for_one_matrix():
    @given(quadratics(clients=3, dimension=3, forms=("different diagonal",)))
    @few
    def check(problem):
        assert problem.diagonal

    check()


@given(quadratics(clients=3, dimension=2, noise=0.5) | cosine_quadratics(clients=3, dimension=2, noise=0.5))
@few
def test_sizes_and_noise_are_those_asked_for(problem):
    assert (problem.clients, problem.dimension, problem.noise) == (3, 2, 0.5)


@given(cosine_quadratics())
@few
def test_rippled_bowls_have_slopes_that_cancel_and_a_gradient_that_is_2_smooth(problem):
    assert np.abs(problem.offsets().sum(0)).max() < 1e-12
    assert 0 < problem.constants()["smoothness"].value <= 2


def test_bowls_may_be_convex_or_not_and_problems_of_either_kind():
    for strategy, wanted in (
        (cosine_quadratics(), lambda p: p.ripple > p.curvature),
        (cosine_quadratics(), lambda p: p.ripple < p.curvature),
        (cosine_quadratics(), lambda p: p.curvature == 0),
        (plain_problems(), lambda p: isinstance(p, Quadratic)),
        (plain_problems(), lambda p: isinstance(p, CosineQuadratic)),
    ):
        assert wanted(reached(strategy, wanted))


@given(participation_matrices())
@few
def test_weights_lie_on_the_simplex(q):
    assert check_weights(q) is not None


@given(participation_matrices(4, 3, unit_sum=False))
@few
def test_weights_that_need_not_sum_to_one_are_weights(q):
    assert check_weights(q, unit_sum=False).shape == (4, 3)


@pytest.mark.parametrize(
    ("unit_sum", "wanted"),
    [
        (True, lambda q: q.shape[1] > 2 and (q.max(1) == 1).all() and len(np.unique(q.argmax(1))) > 1),
        (True, lambda q: ((q > 0).sum(1) == 2).any() and (q.max(1) == 0.5).any()),
        (True, lambda q: (q.max(1) == 0.75).any()),
        (True, lambda q: q.shape[1] > 2 and (q > 0).all() and (q % 0.01 > 0.001).all()),
        (True, lambda q: q.shape[1] == 1),
        (False, lambda q: (q.sum(1) == 0).any()),
        (False, lambda q: (q.sum(1) > 1.4).any()),
        (False, lambda q: (q.sum(1) == 1).all()),
    ],
    ids=["one-hot", "subset", "proportions", "Dirichlet", "one client", "empty", "too much", "as it should be"],
)
def test_participation_of_every_kind_is_drawn(unit_sum, wanted):
    assert wanted(reached(participation_matrices(unit_sum=unit_sum), wanted))


@given(processes(), st.integers(0, 9))
@few
def test_processes_of_every_kind_draw_weights_and_the_same_seed_the_same(process, seed):
    q, again = (process.matrix(8, np.random.default_rng(seed)) for _ in range(2))
    assert (q == again).all()
    assert q.shape == (8, process.clients)
    check_weights(q, unit_sum=process.sums_to_one)
    if process.unbiased:
        assert np.abs(process.mean(3) - 1 / process.clients).max() < 1e-12


@given(processes(unit_sum=True))
@few
def test_processes_for_the_theorems_have_weights_that_sum_to_one(process):
    process.require_unit_sum("this test")


def test_every_kind_of_process_is_drawn():
    left = {*PARTICIPATION.builders()}
    reached(processes(), lambda process: left.discard(process.kind) or not left)
    assert not left


@given(st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(0, 99))
@few
def test_permutation_sampling_has_no_divergence_over_aligned_windows_of_a_cycle(rounds, participants, reshuffle, seed):
    """Wang & Ji 2022, Proposition 4.2: with S | N and P = N/S every client takes part exactly once a window."""
    rng, N = np.random.default_rng(seed), rounds * participants
    q = Permutation(N, participants, reshuffle).matrix(3 * rounds, rng)
    assert (((q > 0).reshape(3, rounds, N)).sum(1) == 1).all()
    assert window_divergence(q, rng.standard_normal((N, 2)), rounds) < 1e-12


@given(schedules())
@few
def test_schedules_have_two_complete_intervals(schedule):
    assert schedule.rounds >= 2 * schedule.interval


def test_schedules_outside_the_theorem_end_within_an_interval_or_before_the_first():
    assert find(schedules(covered=False), lambda s: s.interval > s.rounds) == (1, 2, 1)
    assert find(schedules(covered=False), lambda s: s.rounds > s.interval and s.rounds % s.interval) == (1, 2, 3)


@given(st.data(), st.sampled_from([0.25, 1.0, 7.0]), schedules())
@few
def test_step_sizes_meet_every_condition_of_theorem_3_1(data, smoothness, schedule):
    gamma, eta = data.draw(step_sizes(smoothness, schedule.local_steps, schedule.interval))
    I, P, T = schedule
    theorem = load("arbitrary-participation/theorem-3.1")
    setting = dict(L=smoothness, F=1, I=I, P=P, T=T, gamma=gamma, rho=1, sigma=1, nu=1, beta=1, delta=1)
    assert evaluate(theorem, setting | {"eta": eta}, form="explicit").valid
    if gamma * eta > 0.99 / (2 * smoothness * I * P):  # and the caps are near
        assert not evaluate(theorem, setting | {"eta": 1.01 * eta}, form="explicit").valid


@given(cases(noise=True))
@few
def test_cases_are_stable_runs_with_noise_for_every_local_step(case):
    problem = case.problem
    models = case.models(generalized_fedavg)
    assert np.abs(models).max() < 1e6
    assert case.step_size * np.linalg.eigvalsh(problem.hessians).max() <= 0.5
    assert problem.noises.shape == (case.rounds, problem.clients, case.local_steps, problem.dimension)
    assert problem.noise(0, 0, 0).tolist() == problem.noises[0, 0, 0].tolist()


def test_cases_are_free_of_noise_unless_asked_and_shrink_to_one_step_of_one_client():
    quick = settings(max_examples=10, phases=[Phase.generate, Phase.shrink], database=None)
    simplest = find(cases(), lambda case: True, settings=quick)
    assert simplest.problem.noise(0, 0, 0).tolist() == [0.0]
    shape = simplest.rounds, simplest.local_steps, simplest.problem.clients, simplest.problem.dimension
    assert shape == (1, 1, 1, 1)
    assert str(simplest).splitlines()[0].endswith("N = 1, d = 1; A = [[[1]]]; c = [[0]]; x0 = [0]")


def test_cases_reach_runs_without_a_complete_interval_and_problems_of_either_kind():
    for wanted in (
        lambda case: case.interval > case.rounds,
        lambda case: case.rounds % case.interval,
        lambda case: not case.problem.quadratic,
        lambda case: (case.weights == 0).any(),
    ):
        assert wanted(reached(cases(), wanted))


def test_without_hypothesis_the_import_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "hypothesis"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fedbounds.empirical.invariants.strategies")
    with pytest.raises(MissingExtra, match=r"run: pip install 'fedbounds\[testing\]'") as refused:
        importlib.import_module("fedbounds.empirical.invariants.strategies")
    assert isinstance(refused.value, FedboundsError)
