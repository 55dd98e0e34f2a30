"""Piecewise quadratics of the search for violating runs: their constants, their runs, and where runs stay."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.symbols import GRADIENT
from fedbounds.empirical.falsification.theorem_piecewise import (
    MANY_NOISY,
    NEAR,
    PiecewiseClass,
    PiecewiseTrial,
    draw_noisy,
    draw_piecewise,
    draw_slow,
    piecewise_nearby,
)

GRADIENT_NORM = Measure("average", "rounds", "squared gradient norm of f", "", GRADIENT**2)
GAP, DISTANCE = (replace(GRADIENT_NORM, of=of) for of in ("function gap", "squared distance to the minimizer"))
CLASSES = [PiecewiseClass(least, noisy=True) for least in ("non-convex", "convex", "strongly-convex")]


def huber(**changes) -> PiecewiseTrial:
    """Huber's function, whose gradient is x cut to [-1, 1], and the line whose gradient is -1/2, from 3."""
    one = PiecewiseTrial(np.array([-1.0, 1.0]), np.array([[0.0, 1, 0], [0, 0, 0]]), np.array([-1, -0.5]), 3.0, 0.0,
                         3, 4, np.ones(3), 1.0)  # fmt: skip
    return replace(one, **changes)


def gradients(one: PiecewiseTrial, x: float) -> np.ndarray:
    """Of every client at one point, summed from the first knot on."""
    grid = np.concatenate([[-np.inf], one.knots, [np.inf]])
    found = []
    for curvatures, slope in zip(one.curvatures, one.slopes, strict=True):
        at = slope + (curvatures[0] * min(x - one.knots[0], 0))
        for low, high, curvature in zip(grid[1:-1], grid[2:], curvatures[1:], strict=True):
            at += curvature * max(min(x, high) - low, 0)
        found.append(at)
    return np.array(found)


def drawn(of: PiecewiseClass, count: int = 30, seed: int = 0) -> list[PiecewiseTrial]:
    rng = np.random.default_rng(seed)
    draws = (draw_piecewise, draw_noisy) if of.noisy else (draw_piecewise, draw_slow)
    found = [draws[place % 2](of, rng) for place in range(count)]
    return found + [piecewise_nearby(one, of, rng) for one in found]


def test_constants_are_those_computed_by_hand():
    known = huber().constants()
    # f' = (x - 1/2)/2 on [-1, 1], and 1/4 and -3/4 beyond
    wanted = {
        "smoothness": 1, "strong_convexity": np.inf, "initial_gap": 0.5**2 / 4 + 2 / 4,
        "initial_squared_distance": 2.5**2, "gradient_divergence_sup": 0.75, "mean_gradient_divergence": 0.75,
        "gradient_bound": 0.75, "stochastic_gradient_bound": 1, "optimum_heterogeneity": 0.5, "optimum_noise": 0.5,
        "function_heterogeneity": np.inf, "mean_smoothness": 0.5**0.5, "hessian_heterogeneity": 0.5,
        "iterations": 12, "clients": 2, "participating_clients": 2, "gradient_noise": 0,
    }  # fmt: skip
    assert {name: known[name] for name in wanted} == pytest.approx(wanted)
    noisy = huber(noise=2.0, many=True).constants()
    assert noisy["clients"] == 2 * MANY_NOISY and "objective_weights" not in noisy
    assert noisy["optimum_noise"] == pytest.approx((0.25 + 4) ** 0.5)


@pytest.mark.parametrize("of", CLASSES)
def test_constants_are_suprema(of):
    for one in drawn(of):
        known, N = one.constants(), len(one.slopes)
        ends = [one.knots[0] - 20 * one.width, one.knots[-1] + 20 * one.width]
        points = np.unique(np.concatenate([np.linspace(*ends, 80), one.knots, [one.start]]))
        at = np.array([gradients(one, x) for x in points])  # (X, N)
        mean, size = at.mean(1), 1e-9 * np.abs(at).max()
        off, rises = at - mean[:, None], np.diff(at, axis=0) / np.diff(points)[:, None]
        assert np.abs(off).max() == pytest.approx(known["gradient_divergence_sup"], abs=size)
        assert (off**2).mean(1).max() ** 0.5 == pytest.approx(known["mean_gradient_divergence"], abs=size)
        assert np.abs(rises).max() <= known["smoothness"] * (1 + 1e-6) + 1e-9
        assert (rises**2).mean(1).max() <= known["mean_smoothness"] ** 2 * (1 + 1e-6) + 1e-9
        assert np.abs(rises - rises.mean(1)[:, None]).max() <= known["hessian_heterogeneity"] + 1e-6
        assert known["gradient_bound"] >= np.abs(mean).max() - size
        least = {"non-convex": -1, "convex": 0, "strongly-convex": 1e-3}[of.least]
        assert rises.min() >= least - 1e-6 and np.ptp(one.curvatures[:, [0, -1]], axis=0).max() == 0
        if of.least == "strongly-convex":
            assert 0 < known["strong_convexity"] <= rises.min() + 1e-6
        # f by the trapezoidal rule, which is exact between knots
        values = np.concatenate([[0], np.cumsum((mean[1:] + mean[:-1]) / 2 * np.diff(points))])
        gap = values[points.searchsorted(one.start)] - values.min()
        assert known["initial_gap"] >= gap - 1e-9 * (1 + np.abs(values).max()) and at.shape[1] == N


@pytest.mark.parametrize("aggregate", ["minimum", "average", "last", "average iterate"])
@pytest.mark.parametrize("over", ["rounds", "iterations"])
def test_left_hand_sides_are_those_of_a_loop(aggregate, over):
    one, step = huber(), 0.3
    x, models = one.start, [one.start]
    for _ in range(one.rounds):
        local = np.full(2, x)
        for i in range(one.local_steps):
            local = local - step * np.array([gradients(one, y)[n] for n, y in enumerate(local)])
            if over == "iterations" or i + 1 == one.local_steps:
                models.append(local.mean())
        x = local.mean()
    models = np.array([np.mean(models[:-1])] * 2 if aggregate == "average iterate" else models)
    slopes = np.array([gradients(one, x).mean() for x in models])
    gaps = [(np.clip(x, -1, 1) - 0.5) ** 2 / 4 + max(x - 1, 0) / 4 for x in models]
    for measure, values in ((GRADIENT_NORM, slopes**2), (GAP, gaps), (DISTANCE, (models - 0.5) ** 2)):
        wanted = {"minimum": min(values[:-1]), "average": np.mean(values[:-1])}.get(aggregate, values[-1])
        measure = replace(measure, aggregate=aggregate, over=over)
        assert one.left_hand_side(measure, step, 1.0) == pytest.approx(wanted, rel=1e-9)


def test_noise_has_its_mean_over_all_outcomes():
    one, step, start = huber(noise=1.5, many=True, local_steps=3), 0.4, 0.7
    means = np.zeros(4)
    for signs in product((-1, 1), repeat=2):
        for n in range(2):
            x, path = start, [start]
            for sign in (*signs, 0):
                x = x - step * (gradients(one, x)[n] + sign * one.noise)
                path.append(x)
            means += np.array(path) / 8
    rounds = replace(one, start=start, rounds=1)
    found = rounds.left_hand_side(replace(DISTANCE, aggregate="average", over="iterations"), step, 1.0)
    assert found == pytest.approx(np.mean((means[:3] - 0.5) ** 2), rel=1e-9)
    last = rounds.left_hand_side(replace(DISTANCE, aggregate="last"), step, 2.0)
    assert last == pytest.approx((start + 2 * (means[3] - start) - 0.5) ** 2, rel=1e-9)


@pytest.mark.parametrize("of", CLASSES)
def test_many_local_steps_at_once_are_those_of_a_loop(of):
    for one in drawn(of._replace(noisy=False), 15):
        for step in (0.3 / 200, 0.04, 1.0, 1.4):  # at the last one steps go past the minimizer
            one = replace(one, local_steps=200 if step < 1 else 12)
            local, means = np.full(len(one.slopes), one.start), [one.start]
            for _ in range(one.local_steps):
                local = local - step * np.array([gradients(one, y)[n] for n, y in enumerate(local)])
                means.append(local.mean())
            found = one._round(np.array([one.start]), step, 1.0, within=True)[:, 0]
            size = one.width + np.abs(means).max() + np.abs(local).max()
            assert np.abs(found - means).max() <= 1e-10 * size
            ends = one._round(np.array([one.start]), step, 2.0)[:, 0]
            assert np.abs(ends - [one.start, one.start + 2 * (means[-1] - one.start)]).max() <= 1e-10 * size


@pytest.mark.parametrize("of", CLASSES)
def test_many_rounds_at_once_are_those_of_a_loop(of):
    """Gradient descent on one function, and on the mean of several with one local step."""
    counts = []
    for place, one in enumerate(drawn(of._replace(noisy=False), 60)):
        one = replace(
            one, stationary=False, rounds=min(one.rounds, 60), local_steps=(1, min(one.local_steps, 8))[place % 2]
        )
        for step, multiplier, within in ((0.3, 1.0, False), (1.0, 1.0, False), (0.5, 1.7, False), (0.4, 1.0, True)):
            if (path := one._path(step, multiplier, within)) is None:
                assert len(one.slopes) > 1 or multiplier > 1
                continue
            models = np.array([one.start])
            for _ in range(one.rounds):
                models = np.append(models, one._round(models[-1:], step, multiplier, within)[1:, 0])
            counts.append(len(one.slopes))
            size = np.maximum.accumulate(one._model_errors(models, step, multiplier)) * path[1]
            assert (np.abs(path[0] - models) <= size).all(), (one, step)
    assert counts.count(1) > 60 and len(counts) - counts.count(1) > 30


def test_errors_grow_where_a_run_leaves_a_maximum():
    curvatures = np.array([[1.0, -1.0, 1.0]])
    one = PiecewiseTrial(np.array([-1.0, 1.0]), curvatures, np.ones(1), 1e-4, 0.0, 1, 30, np.ones(3), 1.0)
    models, growth = one._path(1.0, 1.0, within=False) or ()
    assert models[:13] == pytest.approx(1e-4 * 2.0 ** np.arange(13)) and models[-1] == 2
    assert growth[13] == pytest.approx(2.0**13) and growth[-1] <= 2.0**14


def test_clients_that_never_participate_are_in_the_objective_alone():
    one = huber(absent=1)
    assert str(one.constants()) == str(huber().constants())
    there = one.settle(0.25, 1.0)
    assert there is not None and there.start == pytest.approx(0, abs=1e-6)  # the minimizer of Huber's function
    assert there.left_hand_side(GRADIENT_NORM, 0.25, 1.0) == pytest.approx(1 / 16, rel=1e-5)
    last = one.left_hand_side(replace(DISTANCE, aggregate="last"), 0.25, 1.0)  # 3, 9/4, 3/2, 27/32 - ...
    x = 3.0
    for _ in range(12):
        x -= 0.25 * float(np.clip(x, -1, 1))
    assert last == pytest.approx((x - 0.5) ** 2, rel=1e-9)


@pytest.mark.parametrize("of", CLASSES)
def test_a_run_stays_where_it_settles(of):
    settled = []
    for one in drawn(of, 8):
        step, multiplier = 0.2 / one.local_steps, 1.5
        there = one.settle(step, multiplier)
        if there is not None:
            settled.append(there)
            run = replace(there, noise=one.noise, stationary=False, rounds=12)
            away = abs(run.left_hand_side(replace(DISTANCE, aggregate="last"), step, multiplier) ** 0.5
                       - there.constants()["initial_squared_distance"] ** 0.5)  # fmt: skip
            assert away <= NEAR * one.width
            long = run.left_hand_side(GRADIENT_NORM, step, multiplier)
            short = there.left_hand_side(GRADIENT_NORM, step, multiplier)
            assert short <= long * (1 + 1e-9) and short == pytest.approx(long, rel=1e-3, abs=1e-12 * one.width**2)
    assert len(settled) >= 4 and any(one.constants()["initial_gap"] > 1e-6 * one.width**2 for one in settled)


def test_no_fixed_point_is_known_at_large_steps_or_where_nothing_attracts():
    assert huber().settle(0.25, 1.0) is not None
    assert huber().settle(1.5, 1.0) is None and huber().settle(0.25, 4.0) is None
    assert huber(slopes=np.array([-1, 1.5])).settle(0.25, 1.0) is None  # f' > 0 everywhere but far left
    assert (there := huber().settle(0.25, 1.0)) is not None
    assert not replace(there, start=there.start + 0.1).is_trapped(0.25, 1.0)


def test_rounding_of_gradients_is_no_distance():
    """One step of the largest size ends at the minimizer, which is known no better than the gradients' sum."""
    slopes = np.array([7.222294998353591, 13.328400166069338, -20.55069516442293])
    one = PiecewiseTrial(np.array([-2.788]), np.full((3, 2), 0.013852544027983579), slopes, 34.421151128235394, 0.0,
                         1, 10, np.ones(3), 1.0)  # fmt: skip
    assert one.left_hand_side(replace(DISTANCE, aggregate="last"), 1 / one.smoothness, 1.0) == 0
    assert one.left_hand_side(replace(DISTANCE, aggregate="last"), 0.5 / one.smoothness, 1.0) > 1e-4


def test_one_function_and_bounded_gradients():
    of = PiecewiseClass("non-convex", same=True, bounded=True)
    assert all(len(one.slopes) == 1 for one in drawn(of))
    flat = [np.isfinite(one.constants()["gradient_bound"]) for one in drawn(PiecewiseClass("convex", bounded=True))]
    assert np.mean(flat) > 0.4
    assert {one.local_steps for one in drawn(of._replace(local=False))} == {1}
