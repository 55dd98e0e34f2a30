"""Piecewise quadratics with noise of two values: their constants, and every path against the algorithm as written."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.falsification.instances.climbing import climb, ratio
from fedbounds.empirical.falsification.instances.paths import sampling_error
from fedbounds.empirical.falsification.instances.piecewise_quadratics import (
    KinkedClients,
    PiecewiseQuadratic,
    draw_clients,
)
from fedbounds.empirical.falsification.instances.sides import examine
from fedbounds.empirical.papers.arbitrary_participation.instances.claims import draw, form_sides
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances
from fedbounds.empirical.papers.arbitrary_participation.instances.kinked import KinkedRuns, draw_kinked, kinked_pool
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import ParticipatingRuns
from fedbounds.empirical.papers.arbitrary_participation.pseudocode import generalized_fedavg
from fedbounds.empirical.papers.fedmrn.instances.kinked import MaskedClients
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments.operators import Masking, masked_moments
from tests.empirical.falsification.stand_in_kinks import Signed, Signs

THEOREM = load("arbitrary-participation/theorem-3.1")


def clients(seed: int, shape: tuple[int, int, int] = (3, 2, 3)) -> KinkedClients:
    return KinkedClients(**draw_clients(np.random.default_rng(seed), 30, shape, noisy=True), samples=0)


# --- functions ---------------------------------------------------------------------------------------------------


def test_hubers_function_is_what_it_is() -> None:
    huber = PiecewiseQuadratic(np.array([-1.0, 1.0]), np.array([0.0, 2.0, 0.0]), np.array(-2.0))
    x = np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 4.0])
    assert huber.slope(x) == pytest.approx(np.clip(2 * x, -2, 2))
    assert huber.value(x) - huber.minimum()[0] == pytest.approx([5, 1, 0, 0.25, 1, 7])
    assert huber.minimum()[1] == 0


def test_values_are_the_integrals_of_slopes_and_changes_their_differences() -> None:
    f, rng = clients(1).each, np.random.default_rng(2)
    x, step = 3 * rng.normal(size=(2, 30, 3, 2, 20))
    fine = np.linspace(0, 1, 1001)
    along = f.slope((x[..., None] + step[..., None] * fine).reshape(30, 3, 2, -1)).reshape(*x.shape, -1)
    integral = step * np.trapezoid(along, fine, axis=-1)
    assert f.value_change(x, step) == pytest.approx(integral, abs=2e-5 * np.abs(integral).max())
    assert f.value(x + step) - f.value(x) == pytest.approx(f.value_change(x, step), rel=1e-9, abs=1e-9)


def test_the_infimum_and_the_suprema_of_differences_are_those_on_a_fine_grid() -> None:
    z = clients(3)
    grid = np.concatenate([np.linspace(-60, 60, 24001), [-1e7, 1e7]])
    knots = np.broadcast_to(z.knots, (30, 2, 3))
    points = np.concatenate([np.broadcast_to(grid, (30, 2, grid.size)), knots], axis=2)
    least, values = z.objective.minimum()[0], z.objective.value(points)
    there = np.isfinite(least)
    assert 0.3 < there.mean() < 1
    assert least[there] == pytest.approx(values.min(axis=2)[there], abs=1e-4) and (values.min(axis=2) >= least).all()
    assert (values[~there][:, -5:-3].min(axis=1) < values[~there].min(axis=1) + 1).all()  # it falls without end
    slopes = z.each.slope(np.broadcast_to(points[:, None], (30, 3, 2, points.shape[2])))
    apart = slopes - slopes.mean(axis=1, keepdims=True)
    assert z.divergences == pytest.approx((apart**2).max(axis=3).sum(axis=2))
    rise = np.abs(np.diff(slopes[..., :24001], axis=3)).max() / (grid[1] - grid[0])
    assert z.same_far_away.all() and rise <= z.smoothness.max() * (1 + 1e-6)


def test_neighbors_stay_in_the_class() -> None:
    z = clients(4)
    for seed in range(20):
        there = replace(z, **z.move_clients(np.random.default_rng(seed)))
        assert there.same_far_away.all() and (np.diff(there.knots, axis=2) >= 0).all()
        assert (there.smoothness <= z.smoothness).all() and (there.smoothness > 0).all()
        alike = z.divergences.max(axis=1) == 0
        assert alike.any() and (there.divergences[alike] == 0).all()


# --- every path --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1, 2, 3, 1, 3, 1), (2, 1, 3, 2, 2, 2, 2), (2, 1, 2, 2, 2, 4, 1)])
def test_all_signs_of_the_noise_give_what_the_pseudocode_gives_one_sequence_at_a_time(shape: tuple[int, ...]) -> None:
    z = draw_kinked(np.random.default_rng(5), 4, shape, noisy=True)
    z = replace(z, noise=z.noise + 0.3 * np.arange(1, z.clients + 1)[:, None])  # of every client its own
    z = z.with_step_shares(np.ones(4), np.ones(4))
    draws = int((z.weights[0] != 0).sum()) * z.local_steps
    assert draws <= 9
    for b in range(len(z)):
        gradients = []
        for signs in product((-1.0, 1.0), repeat=draws):
            models = generalized_fedavg(
                Signed(z, b, signs), z.weights[b], torch.tensor(z.start[b]), Streams(0),
                local_step_size=float(z.gamma[b]), local_steps=z.local_steps, server_multiplier=float(z.eta[b]),
                interval=z.interval,
            )  # fmt: skip
            x = np.array([[float(m[0]) for m in models]])
            f = PiecewiseQuadratic(z.knots[b], z.curvatures[b].mean(axis=0), z.first[b].mean(axis=0))
            gradients.append(f.slope(x)[0] ** 2)
        assert z.course.gradient[b] == pytest.approx(np.mean(gradients, axis=0), rel=1e-11)


def test_clients_that_hardly_differ_cancel_over_a_window_in_which_each_takes_part_as_often() -> None:
    z = draw_kinked(np.random.default_rng(5), 2000, (2, 1, 2, 1, 2, 4, 1), noisy=False)
    first = np.linspace(0.5, 1, 2000)[:, None, None] * np.array([[[1], [1 + 1e-4]]])
    z = replace(z, first=first, curvatures=np.repeat(z.curvatures[:, :1], 2, axis=1))
    assert (z.offsets != 0).all() and (z.participation_divergence > 0).all() and (z.window == 0).all()


def same(z: KinkedRuns) -> FedAvgInstances:
    """Runs on the quadratics that these are where there is no kink."""
    a = z.curvatures[:, 0, :, 1]
    at_origin = z.first - a[:, None] * z.knots[:, None, :, 0]
    center = at_origin.mean(axis=1)
    return FedAvgInstances(
        weights=z.weights, gamma=z.gamma, eta=z.eta, local_steps=z.local_steps, interval=z.interval, reach=z.reach,
        curvature=a, ripple=0 * a, slopes=at_origin - center[:, None], start=z.start + center / a,
        noise=z.noise[:, 0], correlation=np.repeat(np.eye(z.clients)[None], len(z), axis=0),
    )  # fmt: skip


@pytest.mark.parametrize("away", [0.0, 1e3])
def test_without_a_kink_within_reach_they_are_the_quadratics_with_exact_moments(away: float) -> None:
    """One curvature everywhere, or others that begin where no path comes."""
    z = draw_kinked(np.random.default_rng(6), 20, (2, 2, 2, 2, 2, 2, 2), noisy=True)
    curvatures = np.ones_like(z.curvatures) * np.linspace(0.5, 1, 20)[:, None, None, None]
    if away:
        curvatures[..., [0, -1]] = 0.25
    z = replace(z, knots=np.broadcast_to([-away, away], z.knots.shape) - 1.0 * (away == 0), curvatures=curvatures)
    z = replace(z, first=z.first - away * curvatures[..., 1]).with_step_shares(np.ones(20), np.ones(20))
    quadratic = same(z)
    assert z.smoothness == pytest.approx(quadratic.smoothness)
    for ours, theirs in (
        (z.course.gradient, quadratic.course.gradient), (z.course.gap, quadratic.course.gap),
        (z.course.decrease, quadratic.course.decrease), (z.course.spread, quadratic.course.spread),
        (z.course.drift, quadratic.course.drift),
    ):  # fmt: skip
        assert ours == pytest.approx(theirs, rel=1e-9 if away else 1e-12, abs=1e-10 * away * np.abs(theirs).max())
    if not away:
        mine, symbols = z.constants(), quadratic.constants()
        for name in ("L", "F", "sigma", "rho", "nu", "beta", "delta", "d"):
            assert mine[name] == pytest.approx(symbols[name], rel=1e-12, abs=1e-13), name


# --- paths that are drawn ----------------------------------------------------------------------------------------


def test_drawn_paths_agree_with_all_paths_within_the_bound_that_they_come_with() -> None:
    every = draw_kinked(np.random.default_rng(7), 20, (1, 1, 2, 2, 1, 5, 1), noisy=True)
    drawn = replace(every, samples=4000)
    true, found, error = every.course.gradient, drawn.course.gradient, drawn.course.error
    assert error is not None and (found - error <= true).all()
    assert (error[:, 0] <= 0.1 * found[:, 0]).all()  # what does not vary is nearly known
    assert np.abs(found - true).max() < 0.1 * true.max() and (error[:, 1:] > 0).all()
    again = replace(drawn, seeds=drawn.seeds + 1)
    assert (again.course.gradient[:, 1:-1] != found[:, 1:-1]).any()


def test_a_rare_large_value_that_was_not_drawn_is_no_reason_to_believe_a_larger_mean() -> None:
    """The bound is one-sided: it holds for values without a largest one, which only raise the mean."""
    rng = np.random.default_rng(8)
    values = rng.pareto(1.5, size=(300, 2000))  # of mean 2 and no variance
    assert (values.mean(axis=1) - sampling_error(values) <= 2).all()
    assert (values.mean(axis=1) > 2.2).any()  # though the means themselves are too large at times


# --- what they show that quadratics do not -----------------------------------------------------------------------


def worst(instances: tuple[ParticipatingRuns, ...], factor: float) -> float:
    """The largest ratio if the initial gap's constant were this much of what it is, in one long run of full steps."""
    claim = ResultForm(THEOREM, THEOREM.form("sharp:worst")).claim()
    return examine([form_sides(claim, z).scaled("initial gap", factor) for z in instances]).worst


def test_a_constant_of_the_initial_gap_that_is_too_small_by_five_is_seen_at_the_largest_steps_of_a_long_run() -> None:
    """Quadratics are solved by then: over 48 rounds with the largest steps they see no error of this size."""
    rng, ones = np.random.default_rng(9), np.ones(40)
    shape = (1, 1, 1, 1, 48)
    quadratics = tuple(draw(rng, 40, shape, rippled=False, wide=False).with_step_shares(ones, ones) for _ in range(10))
    quadratics = tuple(replace(z, noise=0 * z.noise) for z in quadratics)
    kinked = tuple(
        draw_kinked(rng, 40, (1, 1, 2, 1, 1, 48, 1), noisy=False).with_step_shares(ones, ones) for _ in range(10)
    )
    assert worst(kinked, 1) <= 1 and worst(quadratics, 0.2) < 1 < worst(kinked, 0.2)


def test_the_adversary_climbs_on_them_and_stays_covered() -> None:
    claim = ResultForm(THEOREM, THEOREM.form("sharp")).claim()
    start = kinked_pool(30, True)[2]
    end = climb(start, lambda y: form_sides(claim, y), 15, np.random.default_rng(10))
    before, after = ratio(form_sides(claim, start)), ratio(form_sides(claim, end))
    assert (after >= before).all() and after.max() > before.max() and after.max() <= 1


# --- masked local steps ------------------------------------------------------------------------------------------


def masked(seed: int, T: int, S: int, K: int, *, kinks: bool) -> MaskedClients:
    z = MaskedClients(
        **draw_clients(np.random.default_rng(seed), 6, (2, 1, 2), noisy=True), samples=0, q=np.linspace(0.2, 1.5, 6),
        cohort=K, local_steps=S, iterations=T,
    )  # fmt: skip
    z = replace(z, noise=np.ones_like(z.noise) * np.linspace(0.2, 1, 6)[:, None, None])
    bends = z.curvatures if kinks else np.repeat(np.array([0.5, 1.0])[:, None, None], 3, axis=2)
    return replace(z, curvatures=np.broadcast_to(bends, z.curvatures.shape))


@pytest.mark.parametrize(("T", "S", "K"), [(3, 1, 1), (4, 2, 2), (2, 2, 1)])
def test_masked_steps_without_kinks_have_the_exact_moments_of_the_operator(T: int, S: int, K: int) -> None:
    z = masked(11, T, S, K, kinks=False)
    run = z.course(lambda t: np.full(6, 0.3 / (1 + t)))
    for b in range(6):
        a, q = z.curvatures[b, :, 0, :1], float(z.q[b])
        centers = z.knots[b, :1, 0] - z.first[b] / a
        problem = Quadratic(hessians=a, centers=centers, noise=float(z.noise[b, 0, 0]), x0=z.start[b])
        masking = Masking("(1 +- q) u", lambda squares, _, q=q: q**2 * squares)
        same = masked_moments(problem, masking, lambda t: 0.3 / (1 + t), iterations=T, local_steps=S, cohort=K)
        assert run.gradient[b] == pytest.approx(same.gradient_norm_squared[:-1].mean(), rel=1e-12)
        assert run.gap[b] == pytest.approx(same.objective_gap[-1], rel=1e-12)
        assert run.largest[b] == pytest.approx(same.gradient_bound**2, rel=1e-12)


def test_masked_steps_with_kinks_are_those_of_one_path_at_a_time() -> None:
    """Two clients with two local steps, the second of them masked; one of them uploads what is masked once more."""
    z = masked(12, 2, 2, 1, kinks=True)
    run = z.course(lambda t: np.full(6, 0.4))
    for b in range(3):
        clients, q, sigma = Signs(z, b, ()), z.q[b], z.noise[b, 0, 0]
        f = PiecewiseQuadratic(z.knots[b, 0], z.curvatures[b, :, 0].mean(axis=0), z.first[b, :, 0].mean())
        gradients, gaps = [], []
        for signs in product((-1.0, 1.0), repeat=7):
            for chosen in range(2):
                x, u, means = z.start[b, 0], np.zeros(2), []
                for tau in range(2):
                    means.append(x + u.mean())
                    at = x + (1 + q * np.array(signs[4:6])) * u
                    noise = sigma * np.array(signs[2 * tau : 2 * tau + 2])
                    u = u - 0.4 * (np.array([clients.slope(n, at[n]) for n in range(2)]) + noise)
                end = x + (1 + q * signs[6]) * u[chosen]
                gradients.append(f.slope(np.array(means)) ** 2)
                gaps.append(f.value(np.array([end]))[0] - f.minimum()[0])
        assert run.gradient[b] == pytest.approx(np.mean(gradients), rel=1e-11)
        assert run.gap[b] == pytest.approx(np.mean(gaps), rel=1e-11)
