"""The law of the closed form: its mean and covariance are exact, and those of the step-by-step engines."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
)
from fedbounds.empirical.participation import Round
from fedbounds.empirical.problems import Quadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import ClosedForm, Cohort
from fedbounds.empirical.simulation.engines.closed_form import local_map
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION, GAMMA, NOISE = 5, 3, 0.3, 0.7
FORMS = [(True, False), (True, True), (False, False), (False, True)]
EVERY_FORM = pytest.mark.parametrize(
    ("shared", "diagonal"), FORMS, ids=["shared", "shared diagonal", "different", "different diagonal"]
)


def quadratic(shared, diagonal, noise=NOISE):
    return random_quadratic(CLIENTS, DIMENSION, noise=noise, shared=shared, diagonal=diagonal, seed=2, condition=20)


def exact_covariance(problem, q, steps, frozen=False):
    """Of sum_n q_n Delta_n: R_{k+1} = B R_k B + gamma^2 s^2 I for every client, and sum_n q_n^2 R_I."""
    total = np.zeros((DIMENSION, DIMENSION))
    for n in range(CLIENTS):
        B = np.eye(DIMENSION) - (0 if frozen else GAMMA) * problem.hessian(n).numpy()
        R = np.zeros_like(B)
        for _ in range(steps):
            R = B @ R @ B + GAMMA**2 * NOISE**2 * np.eye(DIMENSION)
        total += q[n] ** 2 * R
    return total


class UnitNormals(ClosedForm):
    """Draws one column of the identity instead of normals: a column of the map of the noise is the result."""

    def __init__(self, *args):
        super().__init__(*args)
        self.which = 0

    def _noise(self, cohort, t, streams):
        noise = np.zeros_like(super()._noise(cohort, t, streams))
        noise.flat[self.which] = 1
        return noise


@EVERY_FORM
@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("needs_updates", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_the_covariance_of_a_round_is_the_recursion_over_its_local_steps(
    shared, diagonal, steps, needs_updates, frozen
):
    """To 1e-10: the linear map from the normals to the weighted sum is read off and squared."""
    problem, q = quadratic(shared, diagonal), np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    engine = UnitNormals(problem, LocalSGD(GAMMA, steps, frozen=frozen), needs_updates)
    cohort = Cohort.from_rounds([Round(np.flatnonzero(q), q[q > 0])])
    size = engine._noise(cohort, 0, [Streams(0)]).size
    assert size == (3 if needs_updates or not (shared or diagonal) else 1) * DIMENSION
    still = torch.zeros(DIMENSION, dtype=torch.float64)
    for n in np.flatnonzero(q):
        y = problem.x0
        for _ in range(steps):
            y = y - GAMMA * problem.hessian(n) @ ((problem.x0 if frozen else y) - problem.centers[n])
        still += q[n] * (y - problem.x0)
    root = []
    for engine.which in range(size):
        root.append(engine.round(problem.x0[None], cohort, 0, [Streams(0)]).weighted_sum[0] - still)
    root = torch.stack(root).numpy()
    exact = exact_covariance(problem, q, steps, frozen)
    assert np.abs(root.T @ root - exact).max() < 1e-10


@EVERY_FORM
def test_the_closed_form_and_the_steps_have_the_same_law(shared, diagonal):
    """Mean and covariance of the model after two amplified rounds, each from 1500 seeds, within sampling error."""
    problem, seeds = quadratic(shared, diagonal), range(1500)
    q = np.array([[0.6, 0.4, 0, 0, 0], [0, 0, 0.2, 0.3, 0.5]])
    algorithm = GeneralizedFedAvg(GAMMA, 3, server_multiplier=2.0, interval=2)
    draws = [
        simulate(algorithm, problem, q, 2, seeds=seeds, engine=engine, record_models=True, record_every=2).model[:, -1]
        for engine in ("closed form", "batched")
    ]
    means, covariances = [draw.mean(0) for draw in draws], [np.cov(draw.T) for draw in draws]
    variances = np.diag(covariances[1])
    assert (np.abs(means[0] - means[1]) < 5 * np.sqrt(2 * variances / len(seeds))).all()
    error = np.sqrt(2 * (np.outer(variances, variances) + covariances[1] ** 2) / len(seeds))
    assert (np.abs(covariances[0] - covariances[1]) < 5 * error).all()


def test_the_noisy_golden_trajectory_is_met_on_average():
    """A = diag(1, 1/4), s = 1/2, I = P = 2, eta = 6: E||grad f||^2 by exact moments, within 5 standard errors."""
    problem = Quadratic([1.0, 0.25], [[2, 0], [-2, 4], [0, -4], [0, 0]], noise=0.5, x0=[3, -2])
    q = np.tile([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], (4, 1))
    algorithm = GeneralizedFedAvg(1 / 48, 2, server_multiplier=6, interval=2)
    measured = simulate(algorithm, problem, q, 8, seeds=range(2000)).gradient_norm_squared
    exact = [
        9.25, 8.512945093582, 2.590758210471, 2.388722623556, 0.792920351250,
        0.733993930066, 0.293184999419, 0.273071914910, 0.143420110377,
    ]  # fmt: skip
    error = measured.std(0, ddof=1) / len(measured) ** 0.5
    assert (np.abs(measured.mean(0) - exact) <= 5 * error + 1e-11).all()
    assert error[-1] < 0.15 * (0.143420110377 - 0.132121541779)  # what the noise adds is resolved


def test_the_weight_of_the_noise_is_the_sum_of_squared_weights():
    """Identical clients, weights 1/S: the variance of a round falls as 1/S."""
    problem = Quadratic(np.ones(1), np.zeros((4, 1)), noise=1.0)
    for share in (1, 4):
        q = np.zeros((1, 4))
        q[0, :share] = 1 / share
        last = simulate(FedAvg(0.1, 1), problem, q, 1, seeds=range(2000), record_models=True).model[:, -1, 0]
        assert abs(last.var() * share / 0.01 - 1) < 5 * (2 / 2000) ** 0.5


def test_the_map_of_many_steps_is_a_power_and_its_noise_a_geometric_sum():
    eigenvalues = torch.linspace(-0.5, 3.0, 8, dtype=torch.float64)
    for steps in (1, 5, 50):
        move, root = local_map(LocalSGD(GAMMA, steps), eigenvalues, NOISE)
        B = 1 - GAMMA * eigenvalues
        assert torch.allclose(move, B**steps - 1, rtol=1e-12)
        geometric = torch.where(B**2 == 1, steps, (1 - B ** (2 * steps)) / (1 - B**2))
        assert torch.allclose(root**2, (GAMMA * NOISE) ** 2 * geometric, rtol=1e-10)


def test_tiny_step_sizes_lose_no_digits():
    """(1 - gamma lambda)^I - 1 would, by cancellation: at gamma = 1e-12 the move is -gamma lambda I to 1e-11."""
    move, _ = local_map(LocalSGD(1e-12, 4), torch.tensor([0.7], dtype=torch.float64), 0.0)
    assert abs(move.item() / (-4 * 0.7e-12) - 1) < 1e-11


@pytest.mark.parametrize("noise", [0.0, NOISE])
def test_gathered_matrices_give_what_one_product_each_gives(noise):
    """The path of accelerators, on the processor."""
    problem = quadratic(False, False, noise)
    engine = ClosedForm(problem, LocalSGD(GAMMA, 4))
    cohort = Cohort.from_rounds([Round(np.array([1, 4]), np.array([0.5, 0.5])), Round(np.array([0]), np.array([1.0]))])
    x = torch.randn(2, DIMENSION, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    draws = torch.from_numpy(engine._noise(cohort, 3, [Streams(0), Streams(1)])) if noise else None
    assert torch.allclose(engine.products(x, cohort, draws), engine.gathered_products(x, cohort, draws), atol=1e-14)


@EVERY_FORM
def test_algorithms_that_need_single_updates_get_them_with_noise_of_their_own(shared, diagonal):
    """WaitForAll and FrozenGradient are the same method when everybody is heard once, so their laws agree."""
    problem, q = quadratic(shared, diagonal), np.full((1, CLIENTS), 1 / CLIENTS)
    finals = [
        simulate(algorithm, problem, q, 1, seeds=range(1000), record_models=True).model[:, -1]
        for algorithm in (WaitForAll(GAMMA, 1, 1), FrozenGradient(GAMMA, 1, 1))
    ]
    variances = [final.var(0) for final in finals]
    assert np.allclose(variances[1], np.diag(exact_covariance(problem, q[0], 1)), rtol=5 * (2 / 1000) ** 0.5)
    assert np.allclose(*variances, rtol=7 * (2 / 1000) ** 0.5)
    assert np.allclose(finals[0].mean(0), finals[1].mean(0), atol=7 * variances[0].max() ** 0.5 / 1000**0.5)
