"""Exact moments of masked rounds on quadratics, against simulated rounds and gradient descent."""

from itertools import combinations

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.problems import Quadratic, random_quadratic
from fedbounds.empirical.simulation.moments.operators import (
    Masking,
    masked_moments,
    norm_scaled_sign,
    signed_masks,
    sparsifier,
)

IDENTITY = Masking("identity", lambda squares, _: 0 * squares)


def simulated(problem, mask, steps, S, K, rounds, runs, rng, progressive):
    """E |w_bar_t|^2 after every iteration, the masked drift, the error of every synchronization, and the largest root
    mean square of a client's gradient, run after run."""
    A = np.stack([problem.hessian(k).numpy() for k in range(problem.clients)])
    c, (N, d) = problem.centers.numpy(), problem.centers.shape
    w = np.tile(problem.x0.numpy(), (runs, 1))
    squares, drifts, errors, steepest = [(w**2).sum(axis=1).mean()], [], [], []
    for r in range(rounds):
        u = np.zeros((runs, N, d))
        for tau in range(S):
            hat = mask(u, steps[r * S])
            if progressive:
                hat = np.where(rng.random(u.shape) < (tau + 1) / S, hat, u)
            drifts.append(((u.mean(axis=1, keepdims=True) - hat) ** 2).sum(axis=2).mean())
            gradient = np.einsum("kij,rkj->rki", A, w[:, None] + hat - c)
            gradient = gradient + problem.noise * rng.choice([-1.0, 1.0], size=u.shape)
            steepest.append((gradient**2).sum(axis=2).mean(axis=0).max())
            u = u - steps[r * S + tau] * gradient
            if tau < S - 1:
                squares.append(((w + u.mean(axis=1)) ** 2).sum(axis=1).mean())
        chosen = np.argsort(rng.random((runs, N)), axis=1)[:, :K]
        heard = np.take_along_axis(mask(u, steps[r * S]), chosen[:, :, None], axis=1).mean(axis=1)
        errors.append(((heard - u.mean(axis=1)) ** 2).sum(axis=1).mean())
        w = w + heard
        squares.append((w**2).sum(axis=1).mean())
    return np.array(squares), np.array(drifts), np.array(errors), max(steepest) ** 0.5


@pytest.mark.parametrize(
    ("kind", "progressive"), [("signed", False), ("sparsifier", False), ("sign", False), ("signed", True)]
)
def test_the_moments_are_those_of_simulated_rounds(kind, progressive):
    rng = np.random.default_rng(5)
    problem, S, K = random_quadratic(3, 2, noise=0.3, seed=5), 3, 2
    steps = [0.03, 0.025, 0.02, 0.02, 0.018, 0.015]

    def signed(u, step):
        return np.where(rng.random(u.shape) < (1 + u / (100 * step)) / 2, 100 * step, -100 * step)

    def sparse(u, step):
        return np.where(rng.random(u.shape) < 0.5, 2 * u, 0)

    def scaled(u, step):
        a = np.linalg.norm(u, axis=-1, keepdims=True) + 1e-300
        return np.where(rng.random(u.shape) < (1 + u / a) / 2, a, -a)

    mask, masking = {
        "signed": (signed, signed_masks(lambda step: 100 * step)),
        "sparsifier": (sparse, sparsifier(0.5)),
        "sign": (scaled, norm_scaled_sign()),
    }[kind]
    exact = masked_moments(
        problem, masking, lambda t: steps[t], iterations=6, local_steps=S, cohort=K, largest_noise=0.3,
        progressive=progressive,
    )  # fmt: skip
    squares, drifts, errors, steepest = simulated(problem, mask, steps, S, K, 2, 100_000, rng, progressive)
    assert exact.label == "exact"
    assert squares == pytest.approx(exact.squared_norm, rel=0.015)
    assert drifts == pytest.approx(exact.masked_drift, rel=0.015, abs=1e-12)
    assert errors == pytest.approx(exact.synchronization_error[S - 1 :: S], rel=0.015)
    assert steepest == pytest.approx(exact.gradient_bound, rel=0.015)


def test_one_client_without_masks_is_gradient_descent():
    problem = random_quadratic(1, 3, seed=6)
    A, c, w = problem.hessian(0).numpy(), problem.centers.numpy()[0], problem.x0.numpy()
    run = masked_moments(problem, IDENTITY, lambda t: 0.2, iterations=7, local_steps=3, cohort=1)
    for t in range(8):
        assert run.squared_distance[t] == pytest.approx(float((w - c) @ (w - c)), rel=1e-11)
        assert run.gradient_norm_squared[t] == pytest.approx(float((A @ (w - c)) @ (A @ (w - c))), rel=1e-11)
        w = w - 0.2 * A @ (w - c)


def test_a_cohort_is_any_of_its_size_alike():
    problem, S = random_quadratic(3, 2, seed=7), 4
    A, c, w = np.stack([problem.hessian(k).numpy() for k in range(3)]), problem.centers.numpy(), problem.x0.numpy()
    minimizer = np.linalg.solve(A.mean(axis=0), np.einsum("kij,kj->i", A, c) / 3)
    ends = np.tile(w, (3, 1))
    for _ in range(S):
        ends = ends - 0.2 * np.einsum("kij,kj->ki", A, ends - c)
    for cohort in (1, 2, 3):
        run = masked_moments(problem, IDENTITY, lambda t: 0.2, iterations=S, local_steps=S, cohort=cohort)
        squares = [np.sum((np.mean(some, axis=0) - minimizer) ** 2) for some in combinations(ends, cohort)]
        assert run.squared_distance[S] == pytest.approx(np.mean(squares), rel=1e-11)


def test_masks_that_may_be_clipped_are_said_to_be_approximate():
    problem = Quadratic(hessians=np.ones((1, 1)), centers=[[0.0]], x0=[1.0])
    for amplitude, label in ((0.9, "approximate"), (4.0, "exact")):
        masks = signed_masks(lambda step, a=amplitude: a)
        run = masked_moments(problem, masks, lambda t: 0.5, iterations=1, local_steps=1, cohort=1)
        assert run.label == label


@pytest.mark.parametrize(
    ("wrong", "text"),
    [(dict(cohort=3), "3 of 2 clients"), (dict(local_steps=0), "local_steps"), (dict(iterations=-1), "iterations")],
)
def test_counts_outside_their_domain_are_refused(wrong, text):
    problem = Quadratic(hessians=np.ones((2, 1)), centers=[[0.0], [1.0]])
    given = dict(iterations=2, local_steps=1, cohort=1) | wrong
    with pytest.raises(FedboundsError, match=text):
        masked_moments(problem, IDENTITY, lambda t: 0.1, **given)
    with pytest.raises(FedboundsError, match="probability"):
        sparsifier(0)
