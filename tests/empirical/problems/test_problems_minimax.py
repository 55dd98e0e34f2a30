"""Minimax problems: gradients against finite differences, envelopes against brute-force maximization, constants
against searches that attain them, proximal points against a solver that knows nothing of them."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.minimax_bounded import LOG_COSH, ONE_POINT, BoundedMinimax, OnePointMinimax
from fedbounds.empirical.problems.minimax_quadratic import QuadraticMinimax, ScaledMinimax, random_quadratic_minimax
from fedbounds.empirical.problems.minimax_synthetic import SyntheticMinimax
from fedbounds.empirical.problems.spec import problem_from_spec

RNG = np.random.default_rng(5)
CLIENTS, DX, DY = 4, 3, 2
A = np.array([[-0.2, 0.1, 0.0], [0.1, 0.4, -0.3], [0.0, -0.3, 0.5]])
B = np.array([[1.0, 0.2], [-0.4, 0.7], [0.3, 0.6]])
MU = 0.6
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
C, D = RNG.standard_normal((CLIENTS, DX)), RNG.standard_normal((CLIENTS, DY))
FLAT_C, FLAT_D = RNG.standard_normal((CLIENTS, 2)), 0.3 * RNG.standard_normal((CLIENTS, 2))
FLAT_C -= WEIGHTS @ FLAT_C
X0, Y0 = [1.0, -2.0, 0.5], [0.3, 0.7]
SCALES = [0.5, 1.0, 2.0, 3.0]

FAMILIES = {
    "Q1": partial(QuadraticMinimax, A, B, MU, C, D, x0=X0, y0=Y0),
    "Q2": partial(ScaledMinimax, SCALES, A, B, MU, C[0], D[0], x0=X0, y0=Y0),
    "Q3": partial(QuadraticMinimax, A, B, MU, C, D, ripple=0.7, x0=X0, y0=Y0),
    "C1": partial(BoundedMinimax, FLAT_C, FLAT_D, 0.4, 0.9, 0.8, x0=X0[:2], y0=Y0),
    "P1": partial(OnePointMinimax, FLAT_C, 0.4, 0.9, 0.8, x0=X0[:2], y0=Y0),
}


def _problem(name, **changes):
    return FAMILIES[name](**({"weights": WEIGHTS} | changes))


def _local(name, client, z):
    """f_i as the definition of its family writes it."""
    if name in ("C1", "P1"):
        x, y = z[:2], z[2:]
        u = y - 0.8 * np.sin(x)
        well = np.log(np.cosh(u)) if name == "C1" else np.abs(u) * (1 - np.exp(-np.abs(u)))
        ascent = FLAT_D[client] @ y if name == "C1" else 0.0
        return FLAT_C[client] @ x + ascent + (0.4 * np.cos(x) - 0.9 * well).sum()
    x, y = z[:DX], z[DX:]
    ripple = 0.7 * np.cos(x).sum() if name == "Q3" else 0.0
    scale, of = (SCALES[client], 0) if name == "Q2" else (1.0, client)
    return scale * (x @ A @ x / 2 + x @ B @ y - MU / 2 * y @ y + ripple + C[of] @ x + D[of] @ y)


def _mean(name, z, weights=WEIGHTS):
    return sum(w * _local(name, i, z) for i, w in enumerate(weights))


def _slope(function, z, step=1e-5):
    return np.array([(function(z + step * e) - function(z - step * e)) / (2 * step) for e in np.eye(len(z))])


def _points(problem, count=5, size=2.0, seed=0):
    return torch.from_numpy(size * np.random.default_rng(seed).standard_normal((count, problem.dimension)))


def _best_value(name, x, guess):
    """max_y F(x, y) without a formula for it."""
    found = optimize.minimize(lambda y: -_mean(name, np.concatenate([x, y])), guess, method="BFGS", tol=1e-10)
    return -found.fun, found.x


def _value(problem, concept):
    constant = problem.constants()[concept]
    assert isinstance(constant, Constant)
    return constant.value


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_is_the_pair_of_both_blocks_of_the_clients_function(name):
    problem = _problem(name)
    clients = torch.tensor([[0, 3, 3], [2, 0, 1]])
    z = _points(problem, 6).view(2, 3, -1)
    gradient = problem.gradient(z, clients)
    values = problem.common(z) * problem.scales[clients] + (problem.slopes[clients] * z).sum(-1)
    for run, row in np.ndindex(2, 3):
        local = partial(_local, name, int(clients[run, row]))
        point = z[run, row].numpy()
        np.testing.assert_allclose(gradient[run, row], _slope(local, point), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(values[run, row], local(point), rtol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_objective_is_the_weighted_mean_of_the_clients(name):
    problem, z = _problem(name), _points(_problem(name))
    np.testing.assert_allclose(problem.objective(z), [_mean(name, p) for p in z.numpy()], rtol=1e-12)
    everyone = torch.arange(CLIENTS).expand(len(z), CLIENTS)
    local = problem.gradient(z[:, None].expand(-1, CLIENTS, -1), everyone)
    torch.testing.assert_close(problem.objective_gradient(z), torch.einsum("i,sid->sd", problem.weights, local))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_envelope_is_the_largest_value_over_y_and_the_best_response_attains_it(name):
    problem = _problem(name)
    for z in _points(problem):
        x = problem.split(z)[0]
        value, y = _best_value(name, x.numpy(), problem.best_response(x).numpy() + 0.3)
        np.testing.assert_allclose(problem.envelope(x), value, rtol=1e-9)
        np.testing.assert_allclose(problem.best_response(x), y, atol=1e-4)
        np.testing.assert_allclose(problem.dual_gap(z), value - _mean(name, z.numpy()), rtol=1e-7, atol=1e-9)
        assert float(problem.dual_gap(problem.join(x, problem.best_response(x)))) < 1e-14


@pytest.mark.parametrize("name", FAMILIES)
def test_slope_and_curvature_of_the_envelope_agree_with_its_differences(name):
    problem = _problem(name)
    for z in _points(problem):
        x = problem.split(z)[0].numpy()
        slope = problem.envelope_gradient(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(slope, _slope(lambda p: float(problem.envelope(torch.from_numpy(p))), x), atol=1e-8)
        rows = _slope(lambda p: problem.envelope_gradient(torch.from_numpy(p)).numpy(), x)
        np.testing.assert_allclose(problem.envelope_hessian(torch.from_numpy(x)), rows, atol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_surrogate_is_the_problem_made_with_its_weights_and_the_original_stays(name):
    problem, other = _problem(name), np.array([0.25, 0.25, 0.1, 0.4])
    surrogate, made, z = problem.surrogate(other), _problem(name, weights=other), _points(problem)
    np.testing.assert_allclose(surrogate.objective(z), [_mean(name, p, other) for p in z.numpy()], rtol=1e-12)
    torch.testing.assert_close(surrogate.envelope(problem.split(z)[0]), made.envelope(problem.split(z)[0]))
    assert surrogate.constants() == made.constants()
    np.testing.assert_allclose(problem.objective(z), [_mean(name, p) for p in z.numpy()], rtol=1e-12)


def test_envelopes_of_two_weights_differ_by_the_linear_term_that_the_mismatch_predicts():
    problem, x = _problem("Q1"), _points(_problem("Q1"))[:, :DX]
    other = np.array([0.4, 0.3, 0.2, 0.1])
    surrogate = problem.surrogate(other)
    apart = (WEIGHTS - other) @ (C + D @ B.T / MU)
    difference = problem.envelope_gradient(x) - surrogate.envelope_gradient(x)
    np.testing.assert_allclose(difference, np.tile(apart, (len(x), 1)), atol=1e-12)
    responses = problem.best_response(x) - surrogate.best_response(x)
    np.testing.assert_allclose(responses, np.tile((WEIGHTS - other) @ D / MU, (len(x), 1)), atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_proximal_point_minimizes_and_its_error_is_bounded(name):
    problem = _problem(name)
    x = problem.split(_points(problem, 20, 3.0))[0]
    found, pull = problem.prox(x), problem.smoothness()
    assert found.point.shape == x.shape
    assert float(found.error.max()) < 1e-12
    for start, point in zip(x[:5].numpy(), found.point[:5].numpy(), strict=True):

        def proximal(u, start=start):
            return float(problem.envelope(torch.from_numpy(u))) + pull * ((u - start) ** 2).sum()

        best = optimize.minimize(
            proximal, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}
        )
        np.testing.assert_allclose(point, best.x, atol=2e-6)
        assert proximal(point) <= best.fun + 1e-13
        np.testing.assert_allclose(problem.moreau_envelope(torch.from_numpy(start)), best.fun, rtol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_of_the_moreau_envelope_agrees_with_its_differences(name):
    problem = _problem(name)
    x = problem.split(_points(problem))[0].numpy()
    for point in x:
        slope = _slope(lambda p: float(problem.moreau_envelope(torch.from_numpy(p))), point)
        np.testing.assert_allclose(problem.moreau_gradient(torch.from_numpy(point)), slope, atol=1e-8)


def test_newton_finds_the_proximal_point_of_a_quadratic_that_is_known_in_closed_form():
    problem, rippled = _problem("Q1"), _problem("Q3", ripple=1e-300)
    x = _points(problem, 7, 10.0)[:, :DX]
    found = rippled.prox(x)
    torch.testing.assert_close(found.point, problem.prox(x).point, rtol=1e-12, atol=1e-12)
    assert not problem.prox(x).error.any()


def test_the_error_of_a_proximal_point_is_a_bound_where_newton_is_stopped_early(monkeypatch):
    monkeypatch.setattr("fedbounds.empirical.problems.minimax_synthetic._NEWTON_STEPS", 1)
    problem = _problem("Q3", ripple=3.0)
    x = _points(problem, 50, 3.0)[:, :DX]
    early = problem.prox(x)
    monkeypatch.undo()
    apart = (early.point - problem.prox(x).point).norm(dim=1)
    assert float(apart.max()) > 1e-3
    assert bool((apart <= early.error).all())


@pytest.mark.parametrize("name", FAMILIES)
def test_smoothness_bounds_the_hessian_of_every_client_and_is_attained_on_quadratics(name):
    problem = _problem(name)
    clients, largest = torch.arange(CLIENTS)[None], 0.0
    for z in _points(problem, 200, 3.0):

        def gradients(point):
            return problem.gradient(point.expand(1, CLIENTS, -1), clients)[0]

        jacobians = torch.autograd.functional.jacobian(gradients, z)
        largest = max(largest, float(torch.linalg.matrix_norm(jacobians, 2).max()))
    least = {"Q1": 1 - 1e-12, "Q2": 1 - 1e-12, "Q3": 0.8, "C1": 0.6, "P1": 0.6}[name]
    assert least * problem.smoothness() <= largest <= problem.smoothness() * (1 + 1e-12)


@pytest.mark.parametrize("name", ["Q1", "Q2", "Q3"])
def test_strong_concavity_is_that_of_the_flattest_client(name):
    problem, z = _problem(name), torch.zeros(DX + DY, dtype=torch.float64)
    clients = torch.arange(CLIENTS)[None]
    jacobians = torch.autograd.functional.jacobian(
        lambda point: problem.gradient(point.expand(1, CLIENTS, -1), clients)[0], z
    )
    flattest = -float(torch.linalg.eigvalsh(jacobians[:, DX:, DX:]).max())
    assert _value(problem, "strong_concavity") == pytest.approx(flattest, rel=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_heterogeneity_constants_hold_with_equality_in_the_larger_block(name):
    problem = _problem(name)
    beta, sigma = _value(problem, "heterogeneity_growth"), _value(problem, "weighted_heterogeneity")
    tight = []
    for z in _points(problem, 30, 3.0):
        local = problem.gradient(z.expand(1, CLIENTS, -1), torch.arange(CLIENTS)[None])[0]
        for of_clients, of_mean in zip(problem.split(local), problem.split(problem.objective_gradient(z)), strict=True):
            left = float(problem.weights @ of_clients.square().sum(-1))
            right = beta**2 * float(of_mean.square().sum()) + sigma**2
            assert left <= right * (1 + 1e-12)
            tight.append(left / right)
    assert max(tight) > 1 - 1e-12
    assert (beta > 1) == (name == "Q2")
    assert (sigma == 0) == (name == "Q2")


@pytest.mark.parametrize("name", FAMILIES)
def test_no_point_is_below_the_infimum_and_where_it_is_exact_it_is_attained(name):
    problem = _problem(name)
    least = problem.infimum()
    assert isinstance(least, Constant)
    starts = problem.split(_points(problem, 8, 3.0))[0].numpy()
    found = min(
        optimize.minimize(lambda u: float(problem.envelope(torch.from_numpy(u))), start, tol=1e-12).fun
        for start in starts
    )
    assert found >= least.value - 1e-10
    if name == "Q3":
        assert "cosines" in least.note
        assert found <= least.value + 2 * 0.7 * DX
    else:
        assert found == pytest.approx(least.value, abs=1e-8)
    start = problem.split(problem.z0)[0]
    assert _value(problem, "initial_gap") == pytest.approx(float(problem.envelope(start)) - least.value)
    smoothed = float(problem.moreau_envelope(start)) - least.value
    assert 0 < smoothed < _value(problem, "initial_gap")
    assert _value(problem, "initial_moreau_gap") == pytest.approx(smoothed)


def test_an_envelope_without_a_lower_bound_has_no_initial_gap():
    concave = QuadraticMinimax([[-2.0]], [[1.0]], 1.0, [[0.0]], [[0.0]])
    linear = QuadraticMinimax([[-1.0]], [[1.0]], 1.0, [[0.5]], [[0.0]])
    tilted = _problem("C1").surrogate([0.25] * 4)
    for problem, why in ((concave, "negative eigenvalue"), (linear, "linear along"), (tilted, "do not cancel")):
        none = problem.constants()["initial_gap"]
        assert isinstance(none, NoConstant)
        assert why in none.why
    flat = QuadraticMinimax([[-1.0]], [[1.0]], 1.0, [[0.0]], [[0.5]], y0=[1.0])
    assert isinstance(flat.constants()["initial_gap"], NoConstant)  # B d does not vanish
    assert _value(QuadraticMinimax([[-1.0]], [[1.0]], 1.0, [[0.0]], [[0.0]], x0=[3.0]), "initial_gap") == 0


@pytest.mark.parametrize("name", ["C1", "P1"])
def test_the_gradient_in_x_stays_below_its_bound_and_comes_near_it(name):
    problem = _problem(name)
    grid = torch.linspace(-torch.pi, torch.pi, 400, dtype=torch.float64)
    away = torch.tensor([-30.0, -2.0, 2.0, 30.0], dtype=torch.float64)  # psi' is largest at 2 or far away
    x, u = (part.reshape(-1) for part in torch.meshgrid(grid, away, indexing="ij"))
    y = problem.bend * x.sin() + u
    z = torch.stack([x, x, y, y], dim=1)
    common = problem.common_gradient(z)[:, 0]
    slopes = problem.slopes[:, :2]
    per_coordinate = (slopes[..., None] + common).abs().amax(-1)  # coordinates are independent of each other
    bound = _value(problem, "descent_gradient_bound")
    largest = float(per_coordinate.norm(dim=1).max())
    assert (1 - 1e-3) * bound < largest <= bound * (1 + 1e-12)


@pytest.mark.parametrize("name", ["C1", "P1"])
def test_the_best_response_stays_within_its_bound_and_reaches_it(name):
    problem = _problem(name)
    angle = torch.linspace(-torch.pi, torch.pi, 201, dtype=torch.float64)
    per_coordinate = problem.best_response(angle[:, None].expand(-1, 2)).square().amax(0)
    bound = _value(problem, "best_response_bound")
    assert (1 - 1e-3) * bound < float(per_coordinate.sum()) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("name", ["C1", "P1"])
def test_concavity_in_y_holds_or_fails_as_the_family_says(name):
    problem, x = _problem(name), torch.tensor([0.7, -1.2], dtype=torch.float64)
    y = torch.linspace(-8, 8, 801, dtype=torch.float64)
    z = problem.join(x.expand(801, 2), torch.stack([y, torch.zeros_like(y)], dim=1))
    gradient = problem.split(problem.objective_gradient(z))[1][:, 0]
    assert bool((gradient.diff() <= 1e-12).all()) == (name == "C1")
    best = problem.best_response(x)
    ascent = problem.split(problem.objective_gradient(z))[1]
    left = (ascent * (problem.split(z)[1] - best)).sum(-1)  # A8 with the iterate inside the gradient
    right = problem.objective(z) - problem.envelope(x)
    assert bool((left <= right + 1e-12).all())


@pytest.mark.parametrize("well", [LOG_COSH, ONE_POINT], ids=["log-cosh", "one-point"])
def test_slopes_and_curvatures_of_the_wells_attain_their_suprema(well):
    u = torch.linspace(-40, 40, 80001, dtype=torch.float64)
    differences = (well.value(u + 1e-5) - well.value(u - 1e-5)) / 2e-5
    torch.testing.assert_close(well.slope(u), differences, atol=1e-7, rtol=0)
    curvature = ((well.slope(u[1:]) - well.slope(u[:-1])) / (u[1:] - u[:-1])).abs().max()
    assert float(well.slope(u).abs().max()) == pytest.approx(well.steepest, abs=1e-12)
    assert well.sharpest * (1 - 2e-3) < float(curvature) <= well.sharpest


@pytest.mark.parametrize("name", FAMILIES)
def test_noise_has_the_variance_that_its_constants_say_in_both_blocks(name):
    problem = _problem(name, noise=[0.5, 0.2], growth=0.6)
    draws = np.stack([problem.draws(np.random.default_rng(seed), 1, 2000) for seed in range(5)])
    z = problem.z0.expand(1, 1, -1)
    clients = torch.tensor([[1]])
    exact = problem.gradient(z, clients)[0, 0]
    one = torch.from_numpy(draws.reshape(-1, 1, problem.dimension + 1))
    noisy = problem.stochastic_gradient(z.expand(len(one), 1, -1), clients.expand(len(one), 1), one)[:, 0]
    sigma, beta = _value(problem, "gradient_noise"), _value(problem, "gradient_noise_growth")
    blocks = zip(problem.split(exact), problem.split(noisy - exact), (0.25, 0.04), strict=True)
    for block, found, variance in blocks:
        expected = beta**2 * float(block.square().sum()) + variance * len(block)
        assert float(found.square().sum(-1).mean()) == pytest.approx(expected, rel=0.06)
    assert sigma**2 == pytest.approx(0.25 * problem.descent_dimension)


def test_noise_may_be_correlated_between_the_blocks_and_draws_are_one_sequence():
    root = np.array([[2.0, 0.0], [1.5, 0.5]])
    problem = QuadraticMinimax([[0.5]], [[1.0]], 1.0, [[0.0]], [[0.0]], noise=root)
    np.testing.assert_allclose(problem.noise_covariance, root @ root.T)
    together = problem.draws(np.random.default_rng(3), 0, 4)
    assert together is not None
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(together, [problem.draw(rng, 0) for _ in range(4)])
    z, clients = torch.zeros(1, 1, 2, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.long)
    noisy = problem.stochastic_gradient(z, clients, torch.from_numpy(together[:1, None]))
    np.testing.assert_allclose(noisy[0, 0], root @ together[0])
    silent = _problem("Q1")
    assert silent.draw(rng, 0) is None
    torch.testing.assert_close(
        silent.stochastic_gradient(z.expand(1, 1, 2)[..., [0, 0, 0, 1, 1]], clients, None),
        silent.gradient(z[..., [0, 0, 0, 1, 1]], clients),
    )


def test_the_golden_instance_has_its_constants():
    # f_i = x^2/4 + x y - y^2/2 + c_i x + d_i y from (1, 0), with exact rational constants
    problem = QuadraticMinimax([[0.5]], [[1.0]], 1.0, [[1.0], [-0.5]], [[0.25], [-0.75]], noise=[0.2, 0.1], x0=[1.0])
    golden = {
        "smoothness": 1.5,
        "strong_concavity": 1.0,
        "weighted_heterogeneity": 0.75,
        "initial_dual_gap": 0.28125,
        "gradient_noise": 0.2,
        "heterogeneity_growth": 1.0,
    }
    assert {concept: pytest.approx(value, rel=1e-14) for concept, value in golden.items()} == {
        concept: _value(problem, concept) for concept in golden
    }
    assert float(problem.envelope_gradient(problem.z0[:1])) ** 2 == pytest.approx(2.25, rel=1e-14)
    tilted = problem.surrogate([0.3, 0.7])
    assert _value(tilted, "weighted_heterogeneity") ** 2 == pytest.approx(0.4725, rel=1e-13)
    assert _value(tilted, "initial_dual_gap") == pytest.approx(0.15125, rel=1e-13)
    assert float(tilted.envelope_gradient(problem.z0[:1])) ** 2 == pytest.approx(1.0, rel=1e-13)


def test_the_envelope_can_be_steeper_than_the_paper_says():
    # Sharma et al. 2023, Lemma B.1 has L_Phi = kappa L_f / 2 + L_f = 51.5 here
    problem = QuadraticMinimax([[0.0]], [[1.0]], 0.01, [[0.0]], [[0.0]])
    curvature, smoothness = float(problem.envelope_matrix), problem.smoothness()
    kappa = smoothness / 0.01
    assert curvature == pytest.approx(100.0)
    assert kappa * smoothness / 2 + smoothness == pytest.approx(51.5, abs=0.1)
    assert curvature <= (1 + kappa) * smoothness


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 2), (1, 1)])
@pytest.mark.parametrize("condition", [2.0, 10.0])
def test_a_random_instance_has_the_constants_asked_for_and_a_bounded_envelope_over_a_nonconvex_function(
    shape, condition
):
    problem = random_quadratic_minimax(5, *shape, heterogeneity=0.7, condition=condition, seed=3)
    assert _value(problem, "smoothness") == pytest.approx(1.0, rel=1e-12)
    assert _value(problem, "strong_concavity") == pytest.approx(1 / condition, rel=1e-12)
    assert _value(problem, "weighted_heterogeneity") == pytest.approx(0.7, rel=1e-12)
    assert float(torch.linalg.eigvalsh(problem.descent_hessian)[0]) < 0
    assert float(torch.linalg.eigvalsh(problem.envelope_matrix)[0]) > 0
    assert _value(random_quadratic_minimax(1, *shape), "weighted_heterogeneity") == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_metrics_are_the_stationarity_measures_of_both_theories(name):
    problem, z = _problem(name), _points(_problem(name), 4)
    x, y = problem.split(z)
    found = problem.metrics(z)
    assert {value.shape for value in found.values()} == {(4,)}
    torch.testing.assert_close(found["envelope_gradient_norm_squared"], problem.envelope_gradient(x).square().sum(-1))
    torch.testing.assert_close(found["moreau_gradient_norm_squared"], problem.moreau_gradient(x).square().sum(-1))
    torch.testing.assert_close(found["dual_gap"], problem.envelope(x) - problem.objective(z))
    torch.testing.assert_close(found["ascent_norm_squared"], (y * y).sum(-1))
    assert torch.equal(problem.initial_point(np.random.default_rng(0)), problem.z0)


QUADRATIC = {
    "kind": "minimax-quadratic",
    "descent_hessian": [[0.5]],
    "coupling": [[1, 2]],
    "concavity": 1,
    "slopes": [[1], [2]],
    "ascent_slopes": [[0, 1], [2, 3]],
    "weights": [0.5, 0.5],
    "noise": [0.1, 0.2],
}
RANDOM = {"kind": "minimax-quadratic", "clients": 3, "descent_dimension": 2, "ascent_dimension": 2, "seed": 1}
SCALED = {
    "kind": "minimax-scaled",
    "scales": [1, 2],
    "descent_hessian": [[0.5]],
    "coupling": [[1]],
    "concavity": 1,
    "slope": [1],
    "ascent_slope": [0],
}
BOUNDED = {
    "kind": "minimax-bounded",
    "slopes": [[1], [-1]],
    "ascent_slopes": [[0.1], [0]],
    "ripple": 1,
    "depth": 1,
    "bend": 1,
}
ONE = {"kind": "minimax-one-point", "slopes": [[1], [-1]], "ripple": 1, "depth": 1, "bend": 1, "growth": 0.5}
SPECS = {"Q1": (QUADRATIC, 3), "random": (RANDOM, 4), "Q2": (SCALED, 2), "C1": (BOUNDED, 2), "P1": (ONE, 2)}


@pytest.mark.parametrize("name", SPECS)
def test_every_family_can_be_described_in_plain_numbers(name):
    spec, dimension = SPECS[name]
    problem, again = (problem_from_spec(json.loads(json.dumps(spec))) for _ in range(2))
    assert problem.dimension == dimension
    z = torch.ones(dimension, dtype=torch.float64)
    assert torch.equal(problem.objective_gradient(z), again.objective_gradient(z))


@pytest.mark.parametrize(("spec", "message"), [
    ({}, "problem needs a kind: one of .*minimax-quadratic"),
    ({"kind": "minimax-quadrat"}, "unknown problem 'minimax-quadrat'; did you mean minimax-quadratic"),
    ({"kind": "minimax-quadratic"}, "needs clients, descent_dimension, ascent_dimension, or descent_hessian"),
    (QUADRATIC | {"slope": 1}, "unknown key .*'slope'; did you mean slopes"),
    (QUADRATIC | {"concavity": 0}, r"concavity = 0 must be a number in \(0, inf\)"),
    (QUADRATIC | {"weights": [0.5, 0.6]}, "weights sum to 1.1, must sum to 1"),
    (QUADRATIC | {"weights": [1.5, -0.5]}, r"weights\[1\] = -0.5 must not be negative"),
    (QUADRATIC | {"weights": [1.0]}, r"weights has shape \(1,\), must be \(2,\)"),
    (QUADRATIC | {"noise": -1}, r"noise = -1 must be a number in \[0, inf\)"),
    (QUADRATIC | {"noise": [0.1, -1]}, r"noise = -1 must be a number"),
    (QUADRATIC | {"noise": [1, 2, 3]}, r"noise has shape \(3,\); must be a number, a pair"),
    (QUADRATIC | {"slopes": [[1]]}, "slopes are of 1 clients, ascent_slopes of 2"),
    (QUADRATIC | {"slopes": [[1, 1], [2, 2]]}, "slopes have 2 coordinates; with the coupling given they must have 1"),
    (QUADRATIC | {"ascent_slopes": [[1], [2]]}, "ascent_slopes have 1 coordinates; .* must have 2"),
    (QUADRATIC | {"descent_hessian": [[1, 2], [3, 4]]}, r"descent_hessian of shape \(2, 2\) must be a symmetric"),
    (QUADRATIC | {"coupling": [[1, 2], [3, 4]]}, r"coupling has shape \(2, 2\); with 1 coordinates of x"),
    (QUADRATIC | {"x0": [1, 2]}, r"x0 has shape \(2,\), must be \(1,\)"),
    (RANDOM | {"condition": 1.5}, r"condition = 1.5 must be a number in \[2, inf\)"),
    (RANDOM | {"clients": 0}, "clients = 0 must be an integer >= 1"),
    (SCALED | {"scales": [1, 0]}, r"scales\[1\] = 0 must be positive"),
    (BOUNDED | {"ascent_slopes": [[3], [0]]}, "mean of ascent_slopes reaches 1.5; it must stay below depth = 1"),
    (BOUNDED | {"ascent_slopes": [[0, 0], [0, 0]]}, "slopes have 1 coordinates, ascent_slopes 2"),
    (QUADRATIC | {"concavity": 1e-300, "coupling": [[1e10]]}, "overflows with concavity = 1e-300; rescale"),
    (ONE | {"depth": 0}, r"depth = 0 must be a number in \(0, inf\)"),
])  # fmt: skip
def test_mistakes_are_reported_in_one_line(spec, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        problem_from_spec(spec)
    assert "\n" not in str(refused.value)


_NUMBERS = st.floats(-1e60, 1e60) | st.sampled_from([0.0, 1.0, float("nan"), float("inf")])
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 5), _NUMBERS, st.text(max_size=4),
    st.lists(_NUMBERS, max_size=3), st.lists(st.lists(_NUMBERS, max_size=2), max_size=3),
)  # fmt: skip


@given(st.sampled_from(sorted(SPECS)), st.data())
def test_any_value_of_any_key_makes_a_problem_or_one_line(name, data):
    spec = SPECS[name][0]
    key = data.draw(st.sampled_from(sorted(set(spec) - {"kind"} | {"x0", "noise", "growth", "ripple"})))
    try:
        problem = problem_from_spec(spec | {key: data.draw(_VALUES)})
    except FedboundsError as refused:
        assert "\n" not in str(refused)
    else:
        assert isinstance(problem, SyntheticMinimax)
        assert torch.isfinite(problem.objective_gradient(problem.z0)).all()
        assert problem.constants().keys() >= {"smoothness", "strong_concavity", "initial_gap", "initial_moreau_gap"}
