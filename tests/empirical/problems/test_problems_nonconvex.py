"""The families with one function for all clients: gradients against automatic differentiation, constants against
searches that attain them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems import (
    BoundedGradient,
    CosineQuadratic,
    Displaced,
    Quadratic,
    random_bounded_gradient,
    random_cosine_quadratic,
    random_displaced,
)

ALPHA, KAPPA = 0.25, 0.75


def _problem(**changes):
    rng = np.random.default_rng(0)
    slopes = rng.standard_normal((5, 3))
    arguments = dict(slopes=slopes - slopes.mean(0), curvature=ALPHA, ripple=KAPPA, noise=0.3, x0=[3.0, -1.0, 0.5])
    return CosineQuadratic(**(arguments | changes))


def _value(problem, concept):
    constant = problem.constants()[concept]
    assert isinstance(constant, Constant)
    return constant.value


def _h(x):
    return (ALPHA / 2 * x**2 + KAPPA * (1 - torch.cos(x))).sum(-1)


def test_local_gradients_agree_with_automatic_differentiation():
    problem, rng = _problem(), np.random.default_rng(1)
    x = torch.from_numpy(4 * rng.standard_normal((2, 4, 3))).requires_grad_()
    clients = torch.tensor([[0, 1, 1, 4], [3, 2, 0, 0]])
    (expected,) = torch.autograd.grad((_h(x) + (problem.slopes[clients] * x).sum(-1)).sum(), x)
    torch.testing.assert_close(problem.gradient(x.detach(), clients), expected, rtol=1e-12, atol=1e-12)


def test_objective_is_the_common_part_because_slopes_cancel():
    problem, rng = _problem(), np.random.default_rng(2)
    x = torch.from_numpy(4 * rng.standard_normal((6, 3)))
    torch.testing.assert_close(problem.objective(x), _h(x), rtol=1e-12, atol=1e-12)
    everyone = torch.arange(5)[None].expand(6, 5)
    mean = problem.gradient(x[:, None].expand(6, 5, 3), everyone).mean(1)
    torch.testing.assert_close(problem.objective_gradient(x), mean, rtol=1e-12, atol=1e-12)


def test_smoothness_is_the_largest_second_derivative_and_it_is_attained():
    problem = _problem()
    grid = torch.linspace(-10, 10, 20001, dtype=torch.float64)
    x = torch.stack([grid, 0 * grid, 0 * grid], dim=1)
    slope = problem.objective_gradient(x)[:, 0].diff() / grid.diff()
    assert float(slope.abs().max()) <= _value(problem, "smoothness") * (1 + 1e-9)
    assert float(slope.max()) == pytest.approx(_value(problem, "smoothness"), rel=1e-6)
    assert float(slope.min()) == pytest.approx(ALPHA - KAPPA, abs=1e-6)  # negative: not convex


def test_minimum_is_zero_at_the_origin_and_nowhere_lower():
    problem, rng = _problem(), np.random.default_rng(3)
    assert float(problem.objective(problem.minimizer())) == 0
    assert float(problem.objective(torch.from_numpy(20 * rng.standard_normal((5000, 3)))).min()) > 0
    assert _value(problem, "initial_gap") == pytest.approx(float(_h(problem.x0)), rel=1e-14)


def test_divergence_is_the_longest_slope_everywhere():
    problem = _problem()
    x = torch.full((1, 5, 3), 123.4, dtype=torch.float64)
    difference = (problem.gradient(x, torch.arange(5)[None]) - problem.objective_gradient(x))[0].numpy()
    np.testing.assert_allclose(difference, problem.offsets(), atol=1e-12)
    longest = np.linalg.norm(difference, axis=1).max()
    assert _value(problem, "gradient_divergence_sup") == pytest.approx(longest, rel=1e-12)


def test_gradient_noise_is_the_root_of_the_total_variance():
    problem, samples = _problem(), 20000
    xi = torch.from_numpy(problem.draws(np.random.default_rng(0), 0, samples))[None]
    x, clients = torch.ones(1, samples, 3, dtype=torch.float64), torch.zeros(1, samples, dtype=torch.long)
    squares = (problem.stochastic_gradient(x, clients, xi) - problem.gradient(x, clients))[0].square().sum(1)
    variance = _value(problem, "gradient_noise") ** 2
    assert variance == pytest.approx(3 * 0.3**2)
    assert abs(float(squares.mean()) - variance) < 5 * float(squares.std()) / samples**0.5


def test_strong_convexity_exists_only_where_the_bowl_outweighs_the_ripple():
    assert isinstance(_problem().constants()["strong_convexity"], NoConstant)
    assert _value(_problem(curvature=1.0), "strong_convexity") == 0.25


def test_random_instances_have_the_constants_that_were_asked_for():
    problem = random_cosine_quadratic(6, 4, heterogeneity=2.0, seed=3)
    assert _value(problem, "gradient_divergence_sup") == pytest.approx(2.0, rel=1e-12)
    assert _value(problem, "smoothness") == 1.0
    assert torch.equal(problem.slopes, random_cosine_quadratic(6, 4, heterogeneity=2.0, seed=3).slopes)
    assert _value(random_cosine_quadratic(1, 4), "gradient_divergence_sup") == 0


@pytest.mark.parametrize(("changes", "message"), [
    (dict(slopes=[[1.0, 0, 0], [1, 0, 0]]), "slopes must have mean zero"),
    (dict(curvature=-1), "curvature = -1"),
    (dict(ripple=float("nan")), "ripple = nan"),
    (dict(curvature=0, ripple=0), "both 0"),
    (dict(x0=[1.0]), "x0 has shape"),
])  # fmt: skip
def test_bad_members_of_the_family_are_refused(changes, message):
    with pytest.raises(FedboundsError, match=message):
        _problem(**changes)


# --- bounded gradients ------------------------------------------------------------------------------------------

SCALES = [0.5, 2.0, 1.0]
SHAPES = {
    "log-cosh": lambda x: (torch.tensor(SCALES) * torch.log(torch.cosh(x))).sum(-1),
    "cosine": lambda x: (torch.tensor(SCALES) * (1 - torch.cos(x))).sum(-1),
}


def _bounded(shape, **changes):
    slopes = np.random.default_rng(0).standard_normal((5, 3))
    arguments = dict(slopes=slopes - slopes.mean(0), scales=SCALES, noise=0.3, x0=[3.0, -1.0, 0.5])
    return BoundedGradient(shape=shape, **(arguments | changes))


@pytest.mark.parametrize("shape", SHAPES)
def test_bounded_gradients_agree_with_automatic_differentiation(shape):
    problem, rng = _bounded(shape), np.random.default_rng(1)
    x = torch.from_numpy(4 * rng.standard_normal((2, 4, 3))).requires_grad_()
    clients = torch.tensor([[0, 1, 1, 4], [3, 2, 0, 0]])
    local = SHAPES[shape](x) + (problem.slopes[clients] * x).sum(-1)
    (expected,) = torch.autograd.grad(local.sum(), x)
    torch.testing.assert_close(problem.gradient(x.detach(), clients), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(problem.objective(x.detach()), SHAPES[shape](x.detach()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_bound_is_a_supremum(shape):
    problem, rng = _bounded(shape), np.random.default_rng(2)
    bound = _value(problem, "gradient_bound")
    assert bound**2 == pytest.approx(0.5**2 + 2**2 + 1, rel=1e-14)
    anywhere = problem.objective_gradient(torch.from_numpy(20 * rng.standard_normal((5000, 3)))).norm(dim=1)
    steep = torch.full((3,), np.pi / 2 if shape == "cosine" else 15.0, dtype=torch.float64)
    assert float(anywhere.max()) <= bound
    assert float(problem.objective_gradient(steep).norm()) == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_smoothness_of_a_bounded_gradient_is_the_largest_second_derivative(shape):
    problem, grid = _bounded(shape), torch.linspace(-10, 10, 20001, dtype=torch.float64)
    for j in range(3):
        x = torch.zeros(len(grid), 3, dtype=torch.float64)
        x[:, j] = grid
        second = problem.objective_gradient(x)[:, j].diff() / grid.diff()
        assert float(second.abs().max()) == pytest.approx(SCALES[j], rel=1e-6)
        assert float(second.min()) < 1e-6 and (float(second.min()) < -0.99 * SCALES[j]) == (shape == "cosine")
    assert _value(problem, "smoothness") == max(SCALES)
    assert isinstance(problem.constants()["strong_convexity"], NoConstant)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bounded_gradient_problem_is_least_at_the_origin(shape):
    problem, rng = _bounded(shape), np.random.default_rng(3)
    assert float(problem.objective(problem.minimizer())) == 0
    assert float(problem.objective(torch.from_numpy(20 * rng.standard_normal((5000, 3)))).min()) > 0
    assert _value(problem, "initial_gap") == pytest.approx(float(SHAPES[shape](problem.x0)), rel=1e-12)
    longest = np.linalg.norm(problem.offsets(), axis=1).max()
    assert _value(problem, "gradient_divergence_sup") == pytest.approx(longest, rel=1e-12)
    assert _value(problem, "gradient_noise") ** 2 == pytest.approx(3 * 0.3**2)


def test_log_cosh_is_accurate_near_the_origin_and_far_away():
    problem = BoundedGradient([[0.0]], [1.0])
    x = torch.tensor([[1e-9], [1.0 - 1e-12], [1.0 + 1e-12], [1e4]], dtype=torch.float64)
    middle = np.log(np.cosh(1.0))
    assert problem.objective(x).tolist() == pytest.approx([5e-19, middle, middle, 1e4 - np.log(2)], rel=1e-11)


def test_only_flat_bowls_have_a_bounded_gradient():
    assert isinstance(_problem().constants()["gradient_bound"], NoConstant)
    flat = _problem(curvature=0)
    bound = _value(flat, "gradient_bound")
    assert float(flat.objective_gradient(torch.full((3,), np.pi / 2, dtype=torch.float64)).norm()) == pytest.approx(
        bound
    )
    quadratic = Quadratic([1.0], [[0.0]]).constants()["gradient_bound"]
    assert isinstance(quadratic, NoConstant) and "without bound" in quadratic.why
    linear = Quadratic([[[1.0]], [[-1.0]]], [[1.0], [3.0]])  # f' = (x - 1 - (x - 3))/2
    assert _value(linear, "gradient_bound") == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_random_bounded_gradients_have_the_constants_that_were_asked_for(shape):
    problem = random_bounded_gradient(6, 4, shape, heterogeneity=2.0, condition=8.0, seed=3)
    assert _value(problem, "gradient_divergence_sup") == pytest.approx(2.0, rel=1e-12)
    assert _value(problem, "smoothness") == 1.0 and float(problem.scales.min()) == pytest.approx(1 / 8)
    assert torch.equal(problem.slopes, random_bounded_gradient(6, 4, shape, heterogeneity=2.0, seed=3).slopes)


@pytest.mark.parametrize(("changes", "message"), [
    (dict(slopes=[[1.0, 0, 0], [1, 0, 0]]), "slopes must have mean zero"),
    (dict(scales=[1.0, 0.0, 2.0]), r"scales\[1\] = 0 must be positive"),
    (dict(scales=[1.0]), "scales has shape"),
    (dict(shape="logcosh"), "unknown shape 'logcosh'; did you mean log-cosh"),
    (dict(noise=-1), "noise = -1"),
])  # fmt: skip
def test_bad_bounded_gradients_are_refused(changes, message):
    with pytest.raises(FedboundsError, match=message):
        _bounded(**({"shape": "cosine"} | changes))


# --- One function, displaced ------------------------------------------------------------------------------------------

DISPLACED = pytest.mark.parametrize("shape", ["cosine", "pseudo-huber"])


def _displaced(shape, **more):
    return random_displaced(5, 3, shape, 0.7, seed=4, **more)


def _displaced_value(shape, z):
    return 0.7 * (1 - torch.cos(z)) if shape == "cosine" else 0.49 * (torch.sqrt(1 + (z / 0.7) ** 2) - 1)


@DISPLACED
def test_displaced_clients_have_the_gradients_of_their_values(shape):
    problem, rng = _displaced(shape), np.random.default_rng(5)
    x = torch.from_numpy(4 * rng.standard_normal((2, 4, 3))).requires_grad_()
    clients = torch.tensor([[0, 1, 1, 4], [3, 2, 0, 0]])
    values = _displaced_value(shape, x - problem.centers[clients])
    (expected,) = torch.autograd.grad(values.sum(), x)
    torch.testing.assert_close(problem.gradient(x.detach(), clients), expected, rtol=1e-12, atol=1e-12)
    at = x.detach()[0]
    mean = _displaced_value(shape, at[:, None] - problem.centers).sum(-1).mean(1)
    torch.testing.assert_close(problem.objective(at), mean, rtol=1e-12, atol=1e-12)
    everyone = torch.arange(5)[None].expand(4, 5)
    gradients = problem.gradient(at[:, None].expand(4, 5, 3), everyone).mean(1)
    torch.testing.assert_close(problem.objective_gradient(at), gradients, rtol=1e-12, atol=1e-12)


@DISPLACED
def test_the_minimum_of_displaced_clients_is_stationary_and_nowhere_lower(shape):
    problem, rng = _displaced(shape), np.random.default_rng(6)
    lowest = problem.minimizer()
    assert float(problem.objective_gradient(lowest).abs().max()) < 1e-14
    least = _value(problem, "function_heterogeneity")
    assert least == pytest.approx(float(problem.objective(lowest)), rel=1e-12)
    around = torch.from_numpy(rng.uniform(-8, 8, (20000, 3)))
    assert float(problem.objective(around).min()) > least
    torch.testing.assert_close(problem.objective_gap(around), problem.objective(around) - least, rtol=1e-9, atol=1e-12)
    assert _value(problem, "initial_gap") == pytest.approx(float(problem.objective(problem.x0)) - least, rel=1e-9)


@DISPLACED
def test_constants_of_displaced_clients_are_attained_and_never_exceeded(shape):
    problem = _displaced(shape)
    grid = torch.linspace(-400, 400, 400001, dtype=torch.float64)  # coordinates are independent of one another
    each = problem.slope(grid[:, None, None] - problem.centers).abs()  # (grid, clients, d)
    f = problem.slope(grid[:, None, None] - problem.centers).mean(1)
    apart = (problem.slope(grid[:, None, None] - problem.centers) - f[:, None]).abs()
    found = {
        "client_gradient_bound": each.amax(0).square().sum(-1).max().sqrt(),
        "gradient_bound": f.abs().amax(0).square().sum().sqrt(),
        "gradient_divergence_sup": apart.amax(0).square().sum(-1).max().sqrt(),
        "smoothness": problem.slope(grid).diff().div(grid.diff()).abs().max(),
    }
    for concept, value in found.items():
        assert float(value) <= _value(problem, concept) * (1 + 1e-9), concept
        if (shape, concept) != ("pseudo-huber", "gradient_divergence_sup"):  # an upper bound
            assert float(value) == pytest.approx(_value(problem, concept), rel=1e-5), concept


@DISPLACED
def test_noise_of_signs_is_bounded_surely_and_gaussian_noise_is_not(shape):
    problem = _displaced(shape, noise=0.3, noise_law="signs")
    draws = problem.draws(np.random.default_rng(1), 0, 4000)
    one_by_one = np.random.default_rng(1)
    assert np.array_equal(draws[:50], [problem.draw(one_by_one, 0) for _ in range(50)])
    assert set(np.unique(draws)) == {-1.0, 1.0} and abs(draws.mean()) < 0.03
    x = torch.full((1, 1, 3), 1e3 if shape == "pseudo-huber" else np.pi / 2, dtype=torch.float64)
    drawn = torch.ones(1, 1, 3, dtype=torch.float64)
    home = Displaced(torch.zeros(1, 3), shape, 0.7, 0.3, "signs")
    longest = float(torch.linalg.vector_norm(home.stochastic_gradient(x, torch.tensor([[0]]), drawn)))
    assert longest == pytest.approx(_value(problem, "stochastic_gradient_bound"), rel=1e-6)
    assert _value(problem, "gradient_noise") == pytest.approx(0.3 * 3**0.5)
    assert isinstance(_displaced(shape, noise=0.3).constants()["stochastic_gradient_bound"], NoConstant)
    assert _value(_displaced(shape), "stochastic_gradient_bound") == pytest.approx(0.7 * 3**0.5)
