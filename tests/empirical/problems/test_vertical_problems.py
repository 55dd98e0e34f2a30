"""Problems of silos against the enumeration of all that may be drawn in a round, and their constants where attained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems import (
    BlockQuadratic,
    RippledBlocks,
    Vertical,
    VerticalLeastSquares,
    random_block_quadratic,
    random_vertical_least_squares,
)
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.problems.vertical_networks import sub_batches

HESSIAN = [[4, 1, 1, 0], [1, 3, 0, 1], [1, 0, 2, 0.5], [0, 1, 0.5, 1]]
INDEFINITE = [[1, 2, 0], [2, -1, 0.5], [0, 0.5, 0.5]]
RNG = np.random.default_rng(3)
SPREAD = RNG.standard_normal((4, 3))
ROOTS = RNG.standard_normal((4, 3, 3))
DIFFERENT = ROOTS @ ROOTS.transpose(0, 2, 1)
FEATURES, LABELS = RNG.standard_normal((6, 3)), RNG.standard_normal((3, 6))
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
    "mini-batches": VerticalLeastSquares(FEATURES, LABELS[0], (2, 1), (2, 3), batch=5),
    "mini-batches, dealt anew": VerticalLeastSquares(
        FEATURES, LABELS[0], (1, 2), (2, 2), batch=4, holders=[[0, 1, 0, 1, 1, 0], [1, 1, 0, 0, 1, 0]]
    ),
    "mini-batches and labels": VerticalLeastSquares(FEATURES, LABELS, (2, 1), (2, 1), batch=4),
    "full batch": VerticalLeastSquares(FEATURES, LABELS[0], (2, 1), (2, 3)),
    "copies": random_vertical_least_squares(2, 3, 4, 2, copies=True, permuted=True),
    "labels": random_vertical_least_squares(2, 3, 4, 2, copies=True, label_vectors=5),
    "labels of different clients": VerticalLeastSquares(FEATURES, LABELS, (2, 1), (3, 1)),
    "waves": RippledBlocks(HESSIAN, (2, 2), (2, 1), 0.3, [1, 2, 3, 4], [0.5, 0.1, 0.2, 1], 30.0),
    "shared waves": RippledBlocks(INDEFINITE, (2, 1), (2, 3), 0.3, 2.0, 0.5, 3.0, shared_noise=True),
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


def check_all_that_may_be_drawn(problem: Vertical) -> None:
    """The mean of the gradients is that of the objective, their variance the one that is told."""
    for x in points(problem):
        exact, variances = problem.objective_gradient(x), problem.silo_variances(x)
        for j, (block, drawn) in enumerate(zip(problem.blocks, all_gradients(problem, x), strict=True)):
            torch.testing.assert_close(drawn.mean((0, 1)), exact[block], rtol=1e-12, atol=1e-12)
            spread = (drawn - exact[block]).square().sum(-1).mean()
            torch.testing.assert_close(variances[j], spread, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if enumerable(name) and name != "unequal"])
def test_gradients_average_to_that_of_the_objective_with_the_variance_that_is_reported(name: str) -> None:
    check_all_that_may_be_drawn(PROBLEMS[name])


def test_unequal_shares_are_biased_and_seen_to_be() -> None:
    with pytest.raises(AssertionError):
        check_all_that_may_be_drawn(PROBLEMS["unequal"])
    with pytest.raises(AssertionError):
        check_all_that_may_be_drawn(VerticalLeastSquares(FEATURES, LABELS[0], (2, 1), (4, 1)))


@pytest.mark.parametrize("name", ["additive", "shared shifts", "mini-batches", "labels", "waves"])
@pytest.mark.parametrize("method", ["silo_variances", "objective_gradient"])
def test_a_planted_error_is_found(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = getattr(PROBLEMS[name], method)
    monkeypatch.setattr(PROBLEMS[name], method, lambda x: 1.001 * true(x))
    with pytest.raises(AssertionError):
        check_all_that_may_be_drawn(PROBLEMS[name])


@pytest.mark.parametrize("left", [
    lambda M, sizes, B: M / (B * sizes) - 1 / sizes,  # one over the expected number
    lambda M, sizes, B: sub_batches(M, sizes, B) + 1 / sizes,  # with replacement
    lambda M, sizes, B: sub_batches(M, sizes, B) * (sizes - 1) / sizes,  # a variance divided by m
])  # fmt: skip
def test_a_wrong_law_of_a_client_s_part_of_the_batch_is_found(
    left: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedbounds.empirical.problems.vertical_least_squares.sub_batches", left)
    with pytest.raises(AssertionError):
        check_all_that_may_be_drawn(PROBLEMS["mini-batches"])


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


def jacobians(problem: Vertical) -> list[torch.Tensor]:
    """Of each silo the derivatives of its clients' affine gradients in the model, (outcomes, K_j, d_j, d)."""
    zero = all_gradients(problem, torch.zeros(problem.dimension, dtype=torch.float64))
    units = [all_gradients(problem, unit) for unit in torch.eye(problem.dimension, dtype=torch.float64)]
    return [torch.stack([unit[j] - zero[j] for unit in units], -1) for j in range(problem.silos)]


@pytest.mark.parametrize("name", [name for name in NAMES if not isinstance(PROBLEMS[name], RippledBlocks)])
def test_smoothness_is_the_largest_slope_of_all_that_may_be_drawn(name: str) -> None:
    problem = PROBLEMS[name]
    units = torch.eye(problem.dimension, dtype=torch.float64)
    whole = problem.objective_gradient(units) - problem.objective_gradient(0 * units)
    found = jacobians(problem)
    if not enumerable(name):
        assert isinstance(problem, BlockQuadratic)  # whose noise has no slope
        found = [rows[None] for rows in problem.rows]
    own = max(
        float(torch.linalg.matrix_norm(one[..., b], 2).max()) for one, b in zip(found, problem.blocks, strict=True)
    )
    partial = max(float(torch.linalg.matrix_norm(one, 2).max()) for one in found)
    assert value(problem, "smoothness") == pytest.approx(float(torch.linalg.matrix_norm(whole, 2)), rel=1e-12)
    assert value(problem, "block_smoothness") == pytest.approx(own, rel=1e-12)
    assert value(problem, "partial_smoothness") == pytest.approx(partial, rel=1e-12)


def slopes_in_own_block(problem: Vertical, x: torch.Tensor) -> float:
    """The largest norm of the derivative of a client's gradient in its own block at one point, over all outcomes."""
    drawn = problem.outcomes()
    assert drawn is not None
    known = problem.exchange(x.expand(len(drawn), -1), torch.from_numpy(drawn))
    largest = 0.0
    for j, (block, count) in enumerate(zip(problem.blocks, problem.silo_clients, strict=True)):

        def gradients(own: torch.Tensor, j: int = j, count: int = count) -> torch.Tensor:
            return problem.partial_gradients(j, own.expand(len(drawn), count, -1), known)

        found = torch.autograd.functional.jacobian(gradients, x[block])
        largest = max(largest, float(torch.linalg.matrix_norm(found, 2).max()))
    return largest


def test_waves_attain_their_smoothness_where_they_are_steepest_and_nowhere_exceed_it() -> None:
    problem = RippledBlocks(HESSIAN, (2, 2), (2, 1), 0.3, [1, 2, 1, 2], [0.5, 0.1, 0.2, 1], 32.0)
    crest = torch.pi / torch.tensor([1.0, 2, 1, 2], dtype=torch.float64)  # of ripples; waves rise there
    L, own = value(problem, "smoothness"), value(problem, "block_smoothness")
    assert own > 5 * L
    hessian = torch.autograd.functional.jacobian(problem.objective_gradient, crest)
    assert float(torch.linalg.matrix_norm(hessian, 2)) == pytest.approx(L, rel=1e-12)
    assert slopes_in_own_block(problem, crest) == pytest.approx(own, rel=1e-12)
    for x in points(problem, 60):
        hessian = torch.autograd.functional.jacobian(problem.objective_gradient, x)
        assert float(torch.linalg.matrix_norm(hessian, 2)) <= L and slopes_in_own_block(problem, x) <= own


def test_waves_with_a_random_phase_have_the_same_variance_everywhere() -> None:
    problem = RippledBlocks(HESSIAN, (2, 2), (1, 2), 0.3, 1.0, [0.5, 0.1, 0.2, 1], 3.0, noise_law="phases")
    phases = torch.linspace(0, 2 * torch.pi, 65, dtype=torch.float64)[:-1, None].expand(
        -1, 3
    )  # exact, as sums of waves
    for x in points(problem):
        known, exact = problem.exchange(x.expand(64, -1), phases), problem.objective_gradient(x)
        for j, (block, count) in enumerate(zip(problem.blocks, problem.silo_clients, strict=True)):
            found = problem.partial_gradients(j, x[block].expand(64, count, -1), known)
            torch.testing.assert_close(found.mean((0, 1)), exact[block], rtol=1e-12, atol=1e-12)
            spread = (found - exact[block]).square().sum(-1).mean()
            torch.testing.assert_close(problem.silo_variances(x)[j], spread, rtol=1e-12, atol=1e-12)
    noise = problem.constants()["noise_of_each_block"]
    assert isinstance(noise, Constant)
    np.testing.assert_allclose(noise.value, problem.silo_variances(points(problem)[0]).sqrt(), rtol=1e-12)


def test_waves_of_random_signs_attain_their_variance_where_all_sines_are_one() -> None:
    problem = PROBLEMS["waves"]
    crest = torch.full((4,), torch.pi / 60, dtype=torch.float64)
    noise = problem.constants()["noise_of_each_block"]
    assert isinstance(noise, Constant)
    np.testing.assert_allclose(noise.value, problem.silo_variances(crest).sqrt(), rtol=1e-12)
    assert (problem.silo_variances(points(problem, 500)) <= torch.as_tensor(noise.value) ** 2).all()


def test_ripples_have_a_floor_that_no_point_is_below_if_the_quadratic_has_one() -> None:
    problem = PROBLEMS["waves"]
    assert problem.lower_bound is not None and problem.lower_bound.value == pytest.approx(-1.2)
    assert float(problem.objective(points(problem, 500)).min()) >= problem.lower_bound.value
    assert value(problem, "initial_gap") == pytest.approx(float(problem.objective(problem.initial_point(RNG))) + 1.2)
    assert PROBLEMS["shared waves"].lower_bound is None


def test_parts_of_batches_too_many_to_be_looked_at_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS["mini-batches"]
    exact = {name: value(problem, name) for name in ("block_smoothness", "partial_smoothness")}
    monkeypatch.setattr("fedbounds.empirical.problems.vertical_least_squares._MOST_PARTS", 0)
    for name, number in exact.items():
        told = problem.constants()[name]
        assert isinstance(told, Constant) and "upper bound" in told.note
        assert number <= float(told.value) < 3 * number


def test_labels_drawn_once_a_round_give_the_variance_of_the_list() -> None:
    problem = PROBLEMS["labels"]
    assert isinstance(problem, VerticalLeastSquares)
    base, labels = problem.features[:4], problem.labels[:, :4]
    for block, told in zip(problem.blocks, problem.silo_variances(problem.x0), strict=True):
        apart = (labels - labels.mean(0)) @ base[:, block]
        assert float(told) == pytest.approx(float(apart.square().sum(1).mean()) / 16, rel=1e-12)
    assert value(problem, "block_gradient_noise") > 0.1
    assert value(PROBLEMS["copies"], "block_gradient_noise") < 1e-25


def test_one_batch_of_all_samples_is_a_block_quadratic() -> None:
    problem = PROBLEMS["full batch"]
    each = [np.outer(row, row) for row in FEATURES]
    centers = np.stack([np.linalg.pinv(a) @ (row * y) for a, row, y in zip(each, FEATURES, LABELS[0], strict=True)])
    same = BlockQuadratic(np.stack(each), (2, 1), (2, 3), centers)
    x = points(problem)
    torch.testing.assert_close(problem.silo_variances(x), same.silo_variances(x), rtol=1e-12, atol=1e-12)
    for name in ("smoothness", "block_smoothness", "partial_smoothness"):
        assert value(problem, name) == pytest.approx(value(same, name), rel=1e-12)


def test_the_variance_is_a_constant_exactly_where_it_is_the_same_everywhere() -> None:
    for name, problem in PROBLEMS.items():
        if isinstance(problem, RippledBlocks):
            continue  # bounded, not the same
        near, far = problem.silo_variances(torch.stack([points(problem, 1)[0], 100 * points(problem, 1)[0]]))
        same = bool(torch.allclose(near, far, rtol=1e-9))
        told = problem.constants()["noise_of_each_block"]
        assert isinstance(told, Constant) == same, name
        if isinstance(told, Constant):
            np.testing.assert_allclose(told.value, near.sqrt(), rtol=1e-12, atol=1e-15)
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


def test_clients_with_unequal_shares_are_reported_apart() -> None:
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


def test_clients_who_count_by_their_samples_have_the_gradient_of_f_in_the_mean():
    problem = VerticalLeastSquares(FEATURES, LABELS[0], (2, 1), (4, 3))
    x = torch.from_numpy(np.random.default_rng(2).standard_normal(problem.dimension))
    own, whole, first = client_gradients(problem, x), problem.objective_gradient(x), 0
    for silo, (block, count) in enumerate(zip(problem.blocks, problem.silo_clients, strict=True)):
        theirs = own[first : first + count, block]
        assert torch.allclose(problem.shares(silo) @ theirs, whole[block], rtol=1e-12)
        first += count
    assert any(len(set(sizes)) > 1 for sizes in problem.sizes)  # else anybody's weights would do
