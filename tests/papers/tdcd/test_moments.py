"""The exact moments of TDCD on quadratics: golden runs, sampling, enumeration, and what must agree with what."""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.tdcd.errata_rates import stationary_square
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, PrintedTDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import (
    BlockQuadratic,
    RippledBlocks,
    random_block_quadratic,
    random_vertical_least_squares,
)
from fedbounds.empirical.simulation.moments import TierMoments, moments
from fedbounds.empirical.simulation.moments.tiers import expected_norms
from fedbounds.empirical.simulation.simulate import simulate
from tests.papers.tdcd.golden import GOLDEN, HESSIAN, START, VARIANCES, Golden, L, golden


def exact(algorithm: TDCD | PrintedTDCD, problem: BlockQuadratic, rounds: int) -> TierMoments:
    return moments(algorithm, problem, Full(problem.clients), rounds)


def average(run: TierMoments) -> float:
    """What the theorem bounds."""
    return float(run.gradient_norm_squared[:-1].mean())


@pytest.mark.parametrize("one", GOLDEN, ids=[f"Q={one.Q}-{one.noise}" for one in GOLDEN])
def test_the_golden_runs(one: Golden) -> None:
    run = exact(TDCD(1 / (8 * one.Q * L), one.Q), golden(one.noise), one.R)
    assert average(run) == pytest.approx(one.norm, rel=1e-12)
    assert run.objective[-1] == pytest.approx(one.last, rel=1e-12)
    assert run.objective[0] == pytest.approx(8.625, rel=1e-15)
    np.testing.assert_allclose(run.silo_variances.sum(-1), 0.0 if one.noise == "none" else 1.0, atol=1e-14)


@pytest.mark.parametrize("noise", ["independent", "shared"])
def test_sampling_agrees(noise: str) -> None:
    problem = golden(noise)
    algorithm = TDCD(1 / (40 * L), 5)
    run = exact(algorithm, problem, 20)
    sampled = simulate(algorithm, problem, Full(5), 20, seeds=range(2000), engine="tiers", record_every=5)
    for name in ("gradient_norm_squared", "objective"):
        values = getattr(sampled, name)
        error = values.std(0, ddof=1) / np.sqrt(len(values))
        assert (abs(values.mean(0) - getattr(run, name)[::5])[1:] < 4 * error[1:]).all()
        assert (error[1:] < 0.05 * getattr(run, name)[5::5]).all()  # it would tell


SIGNS = {
    "own noise": BlockQuadratic([[2, 1], [1, 3]], (1, 1), (1, 2), noise=[0.3, 0.2], noise_law="signs", x0=[1, 2]),
    "shared noise": BlockQuadratic(
        [[2, 1], [1, -1]], (1, 1), (2, 2), noise=0.3, noise_law="signs", shared_noise=True, x0=[1, 2]
    ),
    "own shifts": BlockQuadratic([[2, 1], [1, 3]], (1, 1), (1, 1), [1, 1], shift=[0.5, 0.1], noise_law="signs"),
    "shared shifts": BlockQuadratic(
        [[[2, 1], [1, 3]], [[1, 0], [0, 2]]], (1, 1), (2, 2), [[1, 0], [2, 1]], shift=[0.5, 0.1], noise_law="signs",
        shared_noise=True, holders=[[0, 1], [1, 0]],
    ),
    "Hessians": BlockQuadratic(
        [[[2, 1], [1, 3]], [[1, 0], [0, 2]]], (1, 1), (2, 1), [[1, 0], [2, 1]], noise=[0, 0.3], noise_law="signs",
        x0=[3, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("algorithm", [TDCD(0.1, 4), PrintedTDCD(0.1, 3), TDCD(0.1, 2, "shards")])
def test_the_recursion_is_the_walk_along_all_paths(algorithm: TDCD | PrintedTDCD, name: str) -> None:
    """Which knows of the problem only its draws, and of a round only the engine that takes one step at a time."""
    from fedbounds.empirical.simulation.moments.tiers import _paths

    problem = SIGNS[name]
    run, walked = exact(algorithm, problem, 3), _paths(algorithm, problem, 3)
    for expected, found in zip(
        walked, (run.mean, run.covariance, run.gradient_norm_squared, run.objective, run.silo_variances), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def walked_norm(problem: BlockQuadratic, steps: int, x: np.ndarray) -> float:
    """E|grad f|^2 after `steps` local steps from x, along all paths."""
    from fedbounds.empirical.simulation.moments.tiers import _paths

    start = copy(problem)
    start.x0 = torch.from_numpy(x)
    return float(_paths(TDCD(0.1, steps), start, 1).gradient_norm_squared[1])


@pytest.mark.parametrize("name", ["own noise", "shared noise", "Hessians"])
def test_between_sync_points_the_norm_is_that_of_all_paths(name: str) -> None:
    """A quadratic g of the model at the last sync point: E g = g(mean) + tr(A covariance), with A by differences."""
    problem, Q = SIGNS[name], 3
    run = exact(TDCD(0.1, Q), problem, 3)
    found, d = expected_norms(run), problem.dimension
    np.testing.assert_array_equal(found[:, 0], run.gradient_norm_squared)
    for steps in range(1, Q):
        g = {
            (i, j): walked_norm(problem, steps, e[i] + e[j])
            for e in [np.vstack([np.eye(d), np.zeros((1, d))])]
            for i, j in product(range(d + 1), repeat=2)
        }
        half = np.array([[g[i, j] - g[i, d] - g[d, j] + g[d, d] for j in range(d)] for i in range(d)]) / 2
        expected = [
            walked_norm(problem, steps, m) + np.sum(half * c) for m, c in zip(run.mean, run.covariance, strict=True)
        ]
        np.testing.assert_allclose(found[:, steps], expected, rtol=1e-12)


# --- special cases ----------------------------------------------------------------------------------------------------


def test_one_local_step_does_not_depend_on_silos_and_clients() -> None:
    runs = [
        exact(TDCD(0.05, 1), BlockQuadratic(HESSIAN, blocks, clients, noise=0.3, shared_noise=True, x0=START), 9)
        for blocks, clients in (((4,), (1,)), ((1, 1, 1, 1), (2, 3, 1, 2)), ((2, 2), (5, 1)))
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run.gradient_norm_squared, runs[0].gradient_norm_squared, rtol=1e-12)
        np.testing.assert_allclose(run.covariance, runs[0].covariance, atol=1e-14)


def test_with_equal_hessians_the_hubs_do_not_see_how_many_clients_share_the_quadratics() -> None:
    base = random_block_quadratic(2, 12, 2, 1.0, seed=4)
    found = [
        exact(TDCD(0.2, 5), BlockQuadratic(base.hessians[0], (2, 2), (K, K), base.centers, x0=base.x0), 8).mean
        for K in (1, 2, 3, 4, 6, 12)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize(("Q", "ratio"), [(1, 0.266667), (5, 0.279429), (10**6, 0.2826)])
def test_a_parabola_without_noise_takes_this_share_of_the_bound_whatever_the_rounds(Q: int, ratio: float) -> None:
    lam, u = 3.0, 1 / 24
    for R in (1, 7, 50):
        run = exact(TDCD(u / Q, Q), BlockQuadratic([[lam]], (1,), (1,), x0=[2.0]), R)
        B0 = 4 * (run.objective[0] - run.objective[-1]) / (u * R)
        closed = u * lam / (2 * (1 - (1 - u * lam / Q) ** (2 * Q)))
        assert average(run) / B0 == pytest.approx(closed, rel=1e-9 if Q > 100 else 1e-12)
        assert closed == pytest.approx(ratio, abs=2e-4 if Q > 100 else 1e-6)


@pytest.mark.parametrize(("Q", "ratio"), [(1, 1.0), (2, 1.998), (5, 4.994), (10, 9.987), (50, 49.93)])
def test_noise_kept_for_a_round_has_a_floor_q_times_as_high_as_fresh_noise(Q: int, ratio: float) -> None:
    lam, sigma, K, eta = 1.0, 0.7, 3, 1 / 8 / Q
    run = exact(TDCD(eta, Q), BlockQuadratic([[lam]], (1,), (K,), noise=sigma), 600)
    rho = 1 - eta * lam
    s = (1 - rho**Q) / lam
    kept, fresh = s**2 * sigma**2 / K / (1 - rho ** (2 * Q)), eta**2 * sigma**2 / K / (1 - rho**2)
    assert run.gradient_norm_squared[-1] == pytest.approx(lam**2 * kept, rel=1e-12)
    assert kept / fresh == pytest.approx(ratio, rel=2e-3)
    assert kept * K / sigma**2 == pytest.approx(float(stationary_square(Fraction(1, 8 * Q), Q)), rel=1e-12)


@pytest.mark.parametrize(("Q", "radius"), [(1, 0.9955), (27, 0.9841), (28, 1.0205), (40, 1.3494)])
def test_a_step_size_that_does_not_fall_with_the_local_steps_diverges(Q: int, radius: float) -> None:
    problem = BlockQuadratic(0.1 * np.eye(3) + 0.9, (1, 1, 1), (1, 1, 1), x0=[1, 1, 1])
    units = [
        exact(TDCD(1 / (8 * 2.8), Q), BlockQuadratic(problem.hessian, (1, 1, 1), (1, 1, 1), x0=unit), 1).mean[1]
        for unit in np.eye(3)
    ]
    assert abs(np.linalg.eigvals(np.array(units))).max() == pytest.approx(radius, abs=5e-5)
    run = exact(TDCD(1 / (8 * 2.8), Q), problem, 3000)
    assert (run.objective[-1] < run.objective[0]) == (radius < 1)


def test_finer_blocks_keep_the_noise_and_raise_no_smoothness() -> None:
    coarse, *finer = (
        BlockQuadratic(HESSIAN, blocks, [2] * len(blocks), noise=np.sqrt(VARIANCES)).constants()
        for blocks in ((4,), (2, 2), (2, 1, 1), (1, 1, 1, 1))
    )
    for found in finer:
        for name in ("block_smoothness", "partial_smoothness"):
            assert found[name].value <= coarse[name].value + 1e-14
        assert found["block_gradient_noise"].value == pytest.approx(coarse["block_gradient_noise"].value)
        coarse = found


def test_more_local_steps_leave_a_higher_objective_and_reach_a_low_one_sooner_on_a_slow_network() -> None:
    """Claims of the paper's figures, on the golden quadratic at one step size for all Q."""
    eta, problem = 1 / (80 * L), golden("independent")
    last = [exact(TDCD(eta, Q), problem, 2000 // Q).objective[-1] for Q in (1, 2, 5, 10)]
    np.testing.assert_allclose(last, [0.000715, 0.000959, 0.001689, 0.002907], atol=5e-7)
    for latency, expected in ((10, [0.649, 0.0967, 0.00503, 0.00350]), (100, [6.393, 4.795, 2.155, 0.666])):
        found = [exact(TDCD(eta, Q), problem, 6000 // (3 * latency + Q)).objective[-1] for Q in (1, 2, 5, 10)]
        np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_what_is_not_known_is_refused() -> None:
    problem = golden("independent")
    with pytest.raises(FedboundsError, match="shared_noise"):
        moments(TDCD(0.1, 1), problem, Full(5), 3, noise="common")
    with pytest.raises(FedboundsError, match="plain steps on a BlockQuadratic"):
        moments(LabelPrivateTDCD(0.1, 2, "once a round"), problem, Full(5), 3)


# --- all paths --------------------------------------------------------------------------------------------------------


def test_waves_are_walked_along_all_paths_and_their_gradients_may_be_steeper_than_the_objective_is() -> None:
    """Every path by hand, for one parameter: the recursion of Algorithm 1 with one sign a round."""
    problem = RippledBlocks([[1.0]], (1,), (2,), 0.4, 1.5, noise=0.3, noise_frequency=20.0, shared_noise=True, x0=[1.0])
    constants = {name: problem.constants()[name] for name in ("smoothness", "block_smoothness", "block_gradient_noise")}
    L, Lmax, S = (float(one.value) for one in constants.values() if isinstance(one, Constant))
    Q, R = 3, 8
    eta = 1 / (8 * Q * max(L, Lmax))
    run = moments(TDCD(eta, Q), problem, Full(2), R)
    squares, ends = np.zeros(R + 1), []
    for signs in product([-1, 1], repeat=R):
        x = 1.0
        for r in range(R + 1):
            slope = x - 0.6 * np.sin(1.5 * x)
            squares[r] += slope**2 / 2**R
            for _ in range(Q if r < R else 0):
                x -= eta * (x - 0.6 * np.sin(1.5 * x) + signs[r] * 0.3 * np.sin(20 * x))
        ends.append(x**2 / 2 + 0.4 * np.cos(1.5 * x))
    np.testing.assert_allclose(run.gradient_norm_squared, squares, rtol=1e-12)
    assert run.objective[-1] == pytest.approx(np.mean(ends), rel=1e-12)
    assert Lmax > 3 * L
    known = {"L": L, "Lmax": Lmax, "S": S, "Q": Q, "R": R, "eta": eta, "Delta": run.objective[0] - run.objective[-1]}
    for form in ("repaired", "sharp:B3"):
        assert average(run) < float(evaluate(load("tdcd/theorem-1"), known, form=form).value)


def test_mini_batches_are_walked_along_all_paths() -> None:
    problem = random_vertical_least_squares(2, 2, 3, 1, batch=4, seed=3)  # 15 batches, and nobody without samples
    run = moments(TDCD(0.05, 3), problem, Full(4), 4)
    sampled = simulate(TDCD(0.05, 3), problem, Full(4), 4, seeds=range(4000))
    for name in ("gradient_norm_squared", "objective"):
        values = getattr(sampled, name)
        error = values.std(0, ddof=1) / np.sqrt(len(values))
        assert (abs(values.mean(0) - getattr(run, name))[1:] < 4 * error[1:]).all()
        assert (error[1:] < 0.02 * getattr(run, name)[1:]).all()
    with pytest.raises(FedboundsError, match="at most 4 rounds are walked"):
        moments(TDCD(0.05, 3), problem, Full(4), 5)


def test_least_squares_on_all_samples_take_one_path() -> None:
    problem = random_vertical_least_squares(2, 3, 4, 2)
    run = moments(TDCD(0.05, 3), problem, Full(6), 50)
    model = simulate(TDCD(0.05, 3), problem, Full(6), 50, record_models=True).model[0]
    np.testing.assert_allclose(run.mean, model, rtol=0, atol=1e-13)
    assert not run.covariance.any()


# --- the theorem on exact runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_the_bounds_hold_with_the_exact_variance_along_the_run(seed: int) -> None:
    rng = np.random.default_rng(seed)
    silos, clients, Q, R = (int(n) for n in rng.integers(1, [4, 4, 8, 30]))
    problem = random_block_quadratic(
        silos, clients, int(rng.integers(1, 4)), 3 * rng.random(), shared=bool(seed % 2), permuted=True,
        noise=rng.random(), shift=rng.random(), shared_noise=bool(seed % 3), seed=seed,
    )  # fmt: skip
    constants = {name: problem.constants()[name] for name in ("smoothness", "block_smoothness")}
    L, Lmax = (float(one.value) for one in constants.values() if isinstance(one, Constant))
    eta = rng.uniform(0.1, 1) / (8 * Q * max(L, Lmax))
    run = exact(TDCD(eta, Q), problem, R)
    known = {"L": L, "Lmax": Lmax, "Q": Q, "R": R, "eta": eta, "Delta": run.objective[0] - run.objective[-1]}
    known["S"] = float(run.silo_variances[:-1].sum(-1).mean())
    for form, share in (("repaired", 0.2822), ("sharp:B1", 0.5), ("sharp:B3", 0.5)):
        assert average(run) < share * float(evaluate(load("tdcd/theorem-1"), known, form=form).value) + 1e-15
