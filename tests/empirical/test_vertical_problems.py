"""Problems of silos against the enumeration of all that may be drawn in a round, and their constants where attained."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.symbols import Constant, NoConstant
from fedbounds.empirical.problems import BlockQuadratic, Vertical, random_block_quadratic

HESSIAN = [[4, 1, 1, 0], [1, 3, 0, 1], [1, 0, 2, 0.5], [0, 1, 0.5, 1]]
INDEFINITE = [[1, 2, 0], [2, -1, 0.5], [0, 0.5, 0.5]]
RNG = np.random.default_rng(3)
SPREAD = RNG.standard_normal((4, 3))
ROOTS = RNG.standard_normal((4, 3, 3))
DIFFERENT = ROOTS @ ROOTS.transpose(0, 2, 1)
PROBLEMS: dict[str, Vertical] = {
    "additive": BlockQuadratic(HESSIAN, (2, 2), (1, 2), noise=[0.1, 0.2, 0.3, 0.4], noise_law="signs"),
    "shared": BlockQuadratic(HESSIAN, (2, 2), (2, 3), noise=[1, 2, 0, 4], shared_noise=True, noise_law="signs"),
    "indefinite": BlockQuadratic(INDEFINITE, (1, 2), (2, 2), [1, 2, 3], noise=0.5, noise_law="signs"),
    "shifted": BlockQuadratic(HESSIAN, (3, 1), (1, 2), shift=[0.3, 1, 0.5, 2], noise_law="signs"),
    "shared shifts": BlockQuadratic(HESSIAN, (1, 3), (2, 3), shift=0.5, shared_noise=True, noise_law="signs"),
    "equal Hessians": BlockQuadratic(HESSIAN, (2, 2), (2, 4), RNG.standard_normal((4, 4)), noise=1),
    "different Hessians": BlockQuadratic(
        DIFFERENT, (2, 1), (2, 2), SPREAD, noise=0.1, shift=[0, 0.5, 0], noise_law="signs", shared_noise=True,
        holders=[[0, 1, 0, 1], [1, 1, 0, 0]],
    ),
    "different Hessians, own noise": BlockQuadratic(
        DIFFERENT, (2, 1), (2, 1), SPREAD, shift=[0.2, 0.5, 0.1], noise_law="signs"
    ),
    "unequal": BlockQuadratic(DIFFERENT, (2, 1), (3, 1), SPREAD),
}  # fmt: skip
NAMES = list(PROBLEMS)


def points(problem: Vertical, many: int = 3) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((many, problem.dimension)))


def all_gradients(problem: Vertical, x: torch.Tensor) -> list[torch.Tensor]:
    """At one point the gradients of all clients of each silo under all that may be drawn, (outcomes, K_j, d_j)."""
    found = problem.outcomes()
    drawn = None if found is None else torch.from_numpy(found)
    known = problem.exchange(x.expand(1 if drawn is None else len(drawn), -1), drawn)
    return [
        problem.partial_gradients(j, x[block].expand(1 if drawn is None else len(drawn), count, -1), known)
        for j, (block, count) in enumerate(zip(problem.blocks, problem.silo_clients, strict=True))
    ]


def enumerable(name: str) -> bool:
    problem = PROBLEMS[name]
    return problem.outcomes() is not None or problem.draw_round(np.random.default_rng(0)) is None


@pytest.mark.parametrize("name", [name for name in NAMES if enumerable(name)])
def test_gradients_average_to_that_of_the_objective_with_the_variance_that_is_told(name: str) -> None:
    problem = PROBLEMS[name]
    for x in points(problem):
        exact, variances = problem.objective_gradient(x), problem.silo_variances(x)
        for j, (block, drawn) in enumerate(zip(problem.blocks, all_gradients(problem, x), strict=True)):
            if name != "unequal":
                torch.testing.assert_close(drawn.mean((0, 1)), exact[block], rtol=1e-12, atol=1e-12)
            spread = (drawn - exact[block]).square().sum(-1).mean()
            torch.testing.assert_close(variances[j], spread, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_the_derivative_of_the_objective(name: str) -> None:
    problem = PROBLEMS[name]
    x = points(problem, 1)[0].requires_grad_()
    (found,) = torch.autograd.grad(problem.objective(x), x)
    torch.testing.assert_close(problem.objective_gradient(x.detach()), found, rtol=1e-12, atol=1e-12)


def value(problem: Vertical, concept: str) -> float:
    found = problem.constants()[concept]
    assert isinstance(found, Constant) and found.source == "exact" and isinstance(found.value, float), found
    return found.value


def test_the_constants_of_four_coordinates_in_two_silos() -> None:
    problem = BlockQuadratic(
        HESSIAN, (2, 2), (2, 3), noise=np.sqrt([0.1, 0.2, 0.3, 0.4]), x0=[1, -1, 2, 0.5]
    )  # numbers by numpy's eigenvalues
    expected = {
        "smoothness": 4.97619024630623, "partial_smoothness": 4.725064858946305, "block_smoothness": 4.618033988749895,
        "initial_gap": 8.625, "block_gradient_noise": 1.0, "averaged_block_gradient_noise": 0.15 + 0.7 / 3,
    }  # fmt: skip
    for concept, number in expected.items():
        assert value(problem, concept) == pytest.approx(number, rel=1e-14), concept
    noise = problem.constants()["noise_of_each_block"]
    assert isinstance(noise, Constant)
    np.testing.assert_allclose(noise.value, np.sqrt([0.3, 0.7]), rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_no_pair_of_points_exceeds_a_smoothness_and_one_attains_it(name: str) -> None:
    """The gradients are affine: on unit differences they attain their constants along a singular vector."""
    problem = PROBLEMS[name]
    base, whole, partial, own = torch.zeros(problem.dimension, dtype=torch.float64), 0.0, 0.0, 0.0
    found = problem.outcomes()
    drawn = None if found is None else torch.from_numpy(found[:1])
    units = torch.eye(problem.dimension, dtype=torch.float64)
    whole = np.linalg.norm(problem.objective_gradient(units) - problem.objective_gradient(base), 2)
    for j, (block, count) in enumerate(zip(problem.blocks, problem.silo_clients, strict=True)):

        def gradient(x: torch.Tensor, j: int = j, block: slice = block, count: int = count) -> torch.Tensor:
            known = problem.exchange(x, None if drawn is None else drawn.expand(len(x), -1))
            return problem.partial_gradients(j, x[:, None, block].expand(-1, count, -1), known)

        jacobian = (gradient(units) - gradient(base[None])).transpose(0, 1).numpy()  # (K_j, d, d_j)
        partial = max(partial, max(np.linalg.norm(one, 2) for one in jacobian))
        own = max(own, max(np.linalg.norm(one[block], 2) for one in jacobian))
    assert value(problem, "smoothness") == pytest.approx(whole, rel=1e-12)
    assert value(problem, "partial_smoothness") == pytest.approx(partial, rel=1e-12)
    assert value(problem, "block_smoothness") == pytest.approx(own, rel=1e-12)


def test_the_variance_is_a_constant_exactly_where_it_is_the_same_everywhere() -> None:
    for name, problem in PROBLEMS.items():
        near, far = problem.silo_variances(torch.stack([points(problem, 1)[0], 100 * points(problem, 1)[0]]))
        same = bool(torch.allclose(near, far, rtol=1e-9))
        told = problem.constants()["noise_of_each_block"]
        assert isinstance(told, Constant) == same, name
        if isinstance(told, Constant):
            np.testing.assert_allclose(told.value, near.sqrt(), rtol=1e-12)
            assert value(problem, "block_gradient_noise") == pytest.approx(float(near.sum()))


def test_what_averaging_does_not_reduce_has_no_averaged_variance() -> None:
    for name, reduced in (("shared", False), ("shared shifts", False), ("additive", True), ("equal Hessians", True)):
        told = PROBLEMS[name].constants()["averaged_block_gradient_noise"]
        assert isinstance(told, Constant if reduced else NoConstant), name


def test_an_indefinite_quadratic_has_no_gap_and_a_definite_one_is_least_at_its_minimizer() -> None:
    indefinite = PROBLEMS["indefinite"]
    assert isinstance(indefinite.constants()["initial_gap"], NoConstant)
    assert "objective_gap" not in indefinite.metrics(points(indefinite))
    definite = PROBLEMS["different Hessians"]
    assert isinstance(definite, BlockQuadratic)
    least, x = definite.minimizer(), points(definite)
    torch.testing.assert_close(definite.objective_gradient(least), 0 * least, rtol=0, atol=1e-12)
    gap = definite.objective(x) - definite.objective(least)
    torch.testing.assert_close(definite.objective_gap(x), gap, rtol=1e-12, atol=1e-12)


def test_clients_with_unequal_shares_are_told_apart() -> None:
    problem = PROBLEMS["unequal"]
    assert problem.shares(0).tolist() == [0.5, 0.25, 0.25] and problem.shares(1).tolist() == [1.0]
    assert isinstance(problem.constants()["block_gradient_noise"], NoConstant)


def test_a_random_instance_has_the_constants_that_were_asked_for() -> None:
    problem = random_block_quadratic(3, 4, 2, 0.5, noise=0.1, initial_gap=2.0, permuted=True, seed=5)
    assert problem.silo_clients == (4, 4, 4) and problem.dimension == 6
    assert value(problem, "initial_gap") == pytest.approx(2.0) and value(problem, "smoothness") == pytest.approx(1.0)
    at_least = problem.silo_variances(problem.minimizer()).sum()
    assert 0.06 < float(at_least) <= 0.06 + 0.25 * 4  # (max over quadratics)^2 bounds the mean of every silo
    holders = problem.holders
    assert holders is not None and len({tuple(row) for row in holders.tolist()}) > 1


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        ("must be a symmetric matrix", {"hessian": [[1, 2], [0, 1]]}),
        ("does not fit a Hessian", {"center": [[1, 1], [2, 2], [3, 3]], "hessian": np.stack([np.eye(2)] * 2)}),
        ("pieces are too few", {"center": [[1, 1], [2, 2]], "silo_clients": [3, 1]}),
        ("its clients, 0 to 1", {"center": [[1, 1], [2, 2]], "holders": [[0, 0], [0, 0]]}),
        ("noise = -1", {"noise": -1}),
        ("shift", {"shift": [1, -1]}),
    ],
)
def test_what_does_not_fit_is_refused(told: str, arguments: dict[str, object]) -> None:
    with pytest.raises(FedboundsError, match=told):
        BlockQuadratic(**({"hessian": np.eye(2), "blocks": [1, 1], "silo_clients": [2, 1]} | arguments))  # type: ignore[arg-type]
