"""Quadratic problems: gradients against automatic differentiation, constants against searches that attain them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems import Quadratic, random_quadratic, toy_example

CLIENTS, DIMENSION = 5, 4


def _symmetric(rng, *shape):
    a = rng.standard_normal((*shape, DIMENSION, DIMENSION))
    return a @ np.swapaxes(a, -1, -2) / DIMENSION


def _hessians(form):
    rng = np.random.default_rng(3)
    return {
        "shared": lambda: _symmetric(rng),
        "shared diagonal": lambda: rng.uniform(0.1, 2, DIMENSION),
        "different": lambda: _symmetric(rng, CLIENTS),
        "different diagonal": lambda: rng.uniform(0.1, 2, (CLIENTS, DIMENSION)),
    }[form]()


FORMS = ["shared", "shared diagonal", "different", "different diagonal"]


def _problem(form, noise=0.0):
    rng = np.random.default_rng(4)
    return Quadratic(_hessians(form), rng.standard_normal((CLIENTS, DIMENSION)), noise, rng.standard_normal(DIMENSION))


def _local(form, problem, client, x):
    """F_n from its definition, with the Hessian as the user gave it."""
    a = torch.from_numpy(np.asarray(_hessians(form)))
    a = a[client] if form.startswith("different") else a
    a = torch.diag(a) if "diagonal" in form else a
    return (x - problem.centers[client]) @ a @ (x - problem.centers[client]) / 2


def _value(problem, concept):
    constant = problem.constants()[concept]
    assert isinstance(constant, Constant)
    assert constant.source == "exact"
    return constant.value


@pytest.mark.parametrize("form", FORMS)
def test_local_gradients_agree_with_automatic_differentiation(form):
    problem = _problem(form)
    clients = torch.tensor([[0, 3, 3], [4, 0, 1]])
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, DIMENSION))).requires_grad_()
    rows, names = x.reshape(-1, DIMENSION), clients.reshape(-1).tolist()
    values = [_local(form, problem, name, row) for row, name in zip(rows, names, strict=True)]
    (expected,) = torch.autograd.grad(torch.stack(values).sum(), x)
    torch.testing.assert_close(problem.gradient(x.detach(), clients), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_objective_is_the_mean_of_the_local_ones_and_so_is_its_gradient(form):
    problem = _problem(form)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((3, DIMENSION))).requires_grad_()
    mean = torch.stack([torch.stack([_local(form, problem, n, row) for n in range(CLIENTS)]).mean() for row in x])
    torch.testing.assert_close(problem.objective(x), mean, rtol=1e-12, atol=1e-12)
    (gradient,) = torch.autograd.grad(mean.sum(), x)
    torch.testing.assert_close(problem.objective_gradient(x.detach()), gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_cohort_in_one_call_agrees_with_one_call_per_client(form):
    problem = _problem(form, noise=0.5)
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.standard_normal((3, CLIENTS, DIMENSION)))
    clients = torch.from_numpy(rng.integers(0, CLIENTS, (3, CLIENTS)))
    xi = torch.from_numpy(rng.standard_normal((3, CLIENTS, DIMENSION)))
    together = problem.stochastic_gradient(x, clients, xi)
    for s in range(3):
        for k in range(CLIENTS):
            alone = problem.stochastic_gradient(
                x[s : s + 1, k : k + 1], clients[s : s + 1, k : k + 1], xi[s : s + 1, k : k + 1]
            )
            torch.testing.assert_close(together[s, k], alone[0, 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_hessians_is_recognized_from_dense_matrices(form):
    given = _hessians(form)
    dense = np.broadcast_to(
        {
            "shared": lambda: given,
            "shared diagonal": lambda: np.diag(given),
            "different": lambda: given,
            "different diagonal": lambda: np.stack([np.diag(row) for row in given]),
        }[form](),
        (CLIENTS, DIMENSION, DIMENSION),
    )
    problem, compact = Quadratic(dense, np.zeros((CLIENTS, DIMENSION))), _problem(form)
    assert (problem.shared, problem.diagonal) == ("shared" in form, "diagonal" in form)
    assert problem.hessians.shape == compact.hessians.shape
    for n in range(CLIENTS):
        torch.testing.assert_close(problem.hessian(n), torch.from_numpy(dense[n].copy()))


@pytest.mark.parametrize("form", FORMS)
def test_smoothness_bounds_gradient_differences_and_is_attained(form):
    problem = _problem(form)
    smoothness = _value(problem, "smoothness")
    everyone = torch.arange(CLIENTS)[None]
    direction = torch.from_numpy(np.random.default_rng(0).standard_normal((1, CLIENTS, DIMENSION)))
    origin = torch.zeros(1, CLIENTS, DIMENSION, dtype=torch.float64)
    ratios = []
    for _ in range(300):  # power iteration on gradient differences, for every client at once
        difference = problem.gradient(direction, everyone) - problem.gradient(origin, everyone)
        ratios.append(float((difference.norm(dim=-1) / direction.norm(dim=-1)).max()))
        direction = difference / difference.norm(dim=-1, keepdim=True)
    assert max(ratios) <= smoothness * (1 + 1e-12)
    assert ratios[-1] == pytest.approx(smoothness, rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_initial_gap_is_what_gradient_descent_can_still_gain(form):
    problem = _problem(form)
    x, step = problem.x0, 1 / _value(problem, "smoothness")
    for _ in range(20000):
        x = x - step * problem.objective_gradient(x)
    gained = float(problem.objective(problem.x0) - problem.objective(x))
    assert _value(problem, "initial_gap") == pytest.approx(gained, rel=1e-9)
    assert float(problem.metrics(problem.x0[None])["objective_gap"]) == pytest.approx(gained, rel=1e-9)
    torch.testing.assert_close(problem.minimizer(), x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", ["shared", "shared diagonal"])
def test_divergence_of_equal_hessians_is_the_same_everywhere(form):
    problem, rng = _problem(form), np.random.default_rng(7)
    everyone = torch.arange(CLIENTS)[None]
    for size in (0.0, 1.0, 1e3):
        x = torch.from_numpy(size * rng.standard_normal(DIMENSION)).expand(1, CLIENTS, DIMENSION)
        difference = (problem.gradient(x, everyone) - problem.objective_gradient(x))[0]
        np.testing.assert_allclose(difference.numpy(), problem.offsets(), atol=1e-9)
        largest = float(difference.norm(dim=1).max())
        assert _value(problem, "gradient_divergence_sup") == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("form", ["different", "different diagonal"])
def test_different_hessians_have_no_finite_divergence(form):
    problem = _problem(form)
    assert isinstance(problem.constants()["gradient_divergence_sup"], NoConstant)
    with pytest.raises(FedboundsError, match="unbounded"):
        problem.offsets()
    x = torch.ones(1, CLIENTS, DIMENSION, dtype=torch.float64)
    everyone = torch.arange(CLIENTS)[None]
    spread = [float((problem.gradient(r * x, everyone) - problem.objective_gradient(r * x)).norm()) for r in (1e3, 1e6)]
    assert spread[1] / spread[0] == pytest.approx(1e3, rel=1e-2)


def test_strong_convexity_is_the_smallest_curvature_of_any_client_or_says_why_not():
    assert _value(Quadratic([[1.0, 0.5], [3.0, 0.25], [1, 1]], np.ones((3, 2))), "strong_convexity") == 0.25
    flat = Quadratic([1.0, 0.0], [[0, 0], [1, 1]]).constants()["strong_convexity"]
    assert isinstance(flat, NoConstant)
    assert "0" in flat.why


def test_gradient_noise_is_the_root_of_the_total_variance():
    problem = Quadratic([1.0, 2.0, 3.0], np.zeros((2, 3)), noise=0.5)
    assert _value(problem, "gradient_noise") == pytest.approx(0.5 * 3**0.5)
    rng, samples = np.random.default_rng(0), 20000
    xi = torch.from_numpy(problem.draws(rng, 0, samples))[None]
    x = torch.ones(1, samples, 3, dtype=torch.float64)
    clients = torch.zeros(1, samples, dtype=torch.long)
    error = (problem.stochastic_gradient(x, clients, xi) - problem.gradient(x, clients))[0]
    squares = error.square().sum(1).numpy()
    assert abs(squares.mean() - 0.75) < 5 * squares.std() / samples**0.5
    assert float(error.mean(0).norm()) < 5 * (0.75 / samples) ** 0.5


def test_many_draws_are_the_single_draws_in_a_row():
    problem = _problem("shared", noise=0.5)
    together = problem.draws(np.random.default_rng(5), 2, 4)
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(together, np.stack([problem.draw(rng, 2) for _ in range(4)]))


def test_without_noise_nothing_is_drawn():
    problem, rng = _problem("shared"), np.random.default_rng(5)
    assert problem.draw(rng, 0) is None
    assert problem.draws(rng, 0, 3) is None
    assert rng.random() == np.random.default_rng(5).random()


def test_initial_point_is_fixed_and_safe_to_overwrite():
    problem = toy_example()
    problem.initial_point(np.random.default_rng(0)).zero_()
    assert problem.initial_point(np.random.default_rng(1)).tolist() == [1.0, 2.0]


def test_an_objective_without_minimum_says_so():
    problem = Quadratic([[1.0, -3.0], [1.0, 1.0], [1.0, 1.0]], np.ones((3, 2)))
    gap = problem.constants()["initial_gap"]
    assert isinstance(gap, NoConstant)
    assert "unbounded below" in gap.why
    assert set(problem.metrics(torch.zeros(1, 2, dtype=torch.float64))) == {"gradient_norm_squared"}
    with pytest.raises(FedboundsError, match="unbounded below"):
        problem.minimizer()


def test_a_linear_direction_downhill_is_unbounded_below_although_no_curvature_is_negative():
    # the mean Hessian is diag(1, 0); along the second coordinate f falls at the rate 1/2 if the first center is off it
    each = [np.diag([1.0, 1.0]), np.diag([1.0, -1.0])]
    assert isinstance(Quadratic(each, [[0.0, 1.0], [0.0, 0.0]]).constants()["initial_gap"], NoConstant)
    assert isinstance(Quadratic(each, [[0.0, 0.0], [0.0, 0.0]]).constants()["initial_gap"], Constant)


def test_golden_values_of_the_cyclic_toy():
    problem = toy_example()
    assert _value(problem, "initial_gap") == pytest.approx(1.5119661282874153, rel=1e-15)
    assert _value(problem, "gradient_divergence_sup") ** 2 == pytest.approx(4 / 3, rel=1e-15)
    assert _value(problem, "smoothness") == 1.0
    assert float(problem.metrics(problem.x0[None])["gradient_norm_squared"]) == pytest.approx(3.0239322566, abs=5e-11)


def test_golden_values_of_four_clients_in_pairs():
    problem = Quadratic([1, 0.25], [[2, 0], [-2, 4], [0, -4], [0, 0]], noise=0.5, x0=[3, -2])
    assert _value(problem, "initial_gap") == 5
    assert _value(problem, "gradient_divergence_sup") ** 2 == pytest.approx(5, rel=1e-15)
    assert _value(problem, "smoothness") == 1
    assert _value(problem, "gradient_noise") ** 2 == pytest.approx(0.5, rel=1e-15)
    assert float(problem.metrics(problem.x0[None])["gradient_norm_squared"]) == 9.25
    pairs = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]) @ problem.offsets()
    assert (pairs**2).sum(1).max() == 0.25  # beta~^2


@pytest.mark.parametrize(("gamma", "eta", "distance"), [
    (0.05, 1, 0.823889), (0.1, 1, 0.413391), (0.25, 1, 0.210230), (0.5, 1, 0.436473),
    (0.05, 2, 0.352052), (0.05, 5, 0.037480), (0.05, 10, 0.010636),
])  # fmt: skip
def test_toy_example_ends_where_the_affine_recursion_of_appendix_b1_says(gamma, eta, distance):
    problem = toy_example()
    x = anchor = problem.x0
    for t in range(15):
        x = x - gamma * problem.gradient(x[None, None], torch.tensor([[t % 3]]))[0, 0]
        if t % 3 == 2:
            x = anchor = anchor + eta * (x - anchor)
    assert float((x - problem.minimizer()).norm()) == pytest.approx(distance, abs=5e-7)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
def test_random_instances_have_the_constants_that_were_asked_for(shared, diagonal):
    asked = dict(heterogeneity=2.0, condition=50.0, shared=shared, diagonal=diagonal, noise=0.1, initial_gap=3.0)
    problem = random_quadratic(6, 4, seed=1, **asked)
    assert (problem.shared, problem.diagonal) == (shared, diagonal)
    assert _value(problem, "smoothness") == pytest.approx(1.0, rel=1e-9)
    assert _value(problem, "strong_convexity") == pytest.approx(1 / 50, rel=1e-9)
    assert _value(problem, "initial_gap") == pytest.approx(3.0, rel=1e-9)
    x = problem.minimizer().expand(1, 6, 4)
    at_minimizer = problem.gradient(x, torch.arange(6)[None]).norm(dim=-1)
    assert float(at_minimizer.max()) == pytest.approx(2.0, rel=1e-9)
    again, other = random_quadratic(6, 4, seed=1, **asked), random_quadratic(6, 4, seed=2, **asked)
    assert torch.equal(problem.centers, again.centers)
    assert not torch.equal(problem.centers, other.centers)


def test_random_diagonals_stay_diagonals_with_as_many_clients_as_dimensions():
    problem = random_quadratic(4, 4, shared=False, diagonal=True)
    assert (problem.shared, problem.diagonal) == (False, True)
    assert problem.hessians.shape == (4, 4)
    np.testing.assert_allclose(np.sort(problem.hessians.numpy(), axis=1), np.tile(np.geomspace(0.1, 1, 4), (4, 1)))


def test_one_client_and_identical_clients_have_no_divergence():
    for problem in (random_quadratic(1, 3), random_quadratic(4, 3, heterogeneity=0.0)):
        assert _value(problem, "gradient_divergence_sup") == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(hessians=[1, 1], centers=[1, 2]), r"centers has shape \(2,\), must be \(any, any\)"),
    (dict(hessians=[1, 1, 1], centers=[[1, 2]]), r"hessians has shape \(3,\); with centers \(1, 2\) it must be"),
    (dict(hessians=[[1, 2], [0, 1]], centers=[[1, 2]]), "hessians must be symmetric$"),
    (dict(hessians=[[1, 2], [0, 1]], centers=[[1, 2], [3, 4]]), "give different diagonal Hessians as"),
    (dict(hessians=[1, float("nan")], centers=[[1, 2]]), r"hessians\[1\] = nan is not a finite number"),
    (dict(hessians=[1, 1], centers=[[1, float("inf")]]), r"centers\[0, 1\] = inf"),
    (dict(hessians=[1, 1], centers=[[1, 2], [3]]), "centers must be an array of numbers with rows of equal length"),
    (dict(hessians="a", centers=[[1, 2]]), "hessians must be an array of numbers"),
    (dict(hessians=[1, 1], centers=[[1, 2]], noise=-1), r"noise = -1 must be a number in \[0, inf\)"),
    (dict(hessians=[1, 1], centers=[[1, 2]], noise="much"), "noise = 'much' must be a number"),
    (dict(hessians=[1, 1], centers=[[1, 2]], x0=[1, 2, 3]), r"x0 has shape \(3,\), must be \(2,\)"),
    (dict(hessians=[1, 1], centers=np.zeros((0, 2))), "centers is empty"),
])  # fmt: skip
def test_bad_quadratics_are_refused_in_one_line(arguments, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        Quadratic(**arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(clients=0, dimension=2), r"clients = 0 must be an integer >= 1"),
    (dict(clients=2.5, dimension=2), "clients = 2.5 must be an integer"),
    (dict(clients=2, dimension=True), "dimension = True must be an integer"),
    (dict(clients=2, dimension=2, condition=0.5), r"condition = 0.5 must be a number in \[1, inf\)"),
    (dict(clients=2, dimension=2, heterogeneity=-1), "heterogeneity = -1"),
    (dict(clients=2, dimension=2, shared=1), "shared = 1 must be true or false"),
    (dict(clients=2, dimension=2, seed=-1), "seed = -1"),
])  # fmt: skip
def test_random_quadratics_refuse_values_outside_their_range(arguments, message):
    with pytest.raises(FedboundsError, match=message):
        random_quadratic(**arguments)
