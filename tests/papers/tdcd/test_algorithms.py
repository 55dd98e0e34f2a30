"""TDCD on the engine of tiers against its slow twin, and what it is in special cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, PrintedTDCD
from fedbounds.empirical.participation import Bernoulli, Full
from fedbounds.empirical.problems import (
    Problem,
    random_block_quadratic,
    random_quadratic,
    random_rippled_blocks,
    random_vertical_least_squares,
)
from fedbounds.empirical.problems.block_quadratics import BlockQuadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate
from tests.papers.tdcd.golden import HESSIAN, START

ROUNDS = 12


def quadratic(clients: tuple[int, ...] = (2, 3), noise: float = 0.5, shared: bool = False) -> BlockQuadratic:
    return BlockQuadratic(HESSIAN, (2, 2), clients, noise=noise, shared_noise=shared, x0=START)


def models(algorithm: Algorithm, problem: Problem, seed: int = 1, engine: str = "tiers") -> np.ndarray:
    run = simulate(
        algorithm, problem, Full(problem.clients), ROUNDS, seeds=(seed, 7), record_models=True, engine=engine
    )
    return run.model[0]


PROBLEMS = {
    "one": quadratic(),
    "shared noise": quadratic(shared=True),
    "centers": random_block_quadratic(2, 3, 2, 1.0, noise=0.3, seed=2, permuted=True),
    "Hessians": random_block_quadratic(3, 2, 2, 1.0, shared=False, noise=0.3, shift=0.1, permuted=True),
    "unequal": BlockQuadratic(
        np.stack([np.eye(3), 2 * np.eye(3), np.ones((3, 3))]), (1, 2), (2, 3), np.eye(3), 0.1, shift=0.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("engine", ["tiers", "closed form"])
@pytest.mark.parametrize(
    "algorithm",
    [TDCD(0.02, 5), TDCD(0.02, 3, "shards"), PrintedTDCD(0.02, 4), LabelPrivateTDCD(0.02, 1)],
    ids=lambda algorithm: algorithm.kind,
)
def test_both_engines_are_the_slow_twin(algorithm: Algorithm, engine: str, name: str) -> None:
    problem = PROBLEMS[name]
    slow = run_reference(algorithm, problem, np.full((ROUNDS, problem.clients), 0.2), Streams(1))
    np.testing.assert_allclose(models(algorithm, problem, engine=engine), slow.numpy(), rtol=0, atol=1e-13)


SAMPLED = {
    "mini-batches": random_vertical_least_squares(2, 3, 4, 2, batch=10, permuted=True),
    "labels": random_vertical_least_squares(2, 3, 4, 2, copies=True, label_vectors=3),
    "sparse": random_vertical_least_squares(2, 3, 4, 2, batch=3),
    "waves": random_rippled_blocks(2, 2, 2, noise=0.3, noise_frequency=5.0),
    "phases": random_rippled_blocks(2, 2, 2, noise=0.3, noise_law="phases", shared_noise=True),
}


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize(
    "algorithm", [TDCD(0.05, 4, empty="zero"), TDCD(0.05, 3, "shards", "drop"), LabelPrivateTDCD(0.05, 3)],
    ids=["zero", "drop", "labels"],
)  # fmt: skip
def test_the_engine_is_the_slow_twin_on_samples_and_waves(algorithm: Algorithm, name: str) -> None:
    problem = SAMPLED[name]
    if name == "sparse" and isinstance(algorithm, LabelPrivateTDCD):
        with pytest.raises(
            FedboundsError,
            match=r"holds no sample of the batch: .* empty = .zero. .*stays in the mean, as in the published code",
        ):
            models(algorithm, problem, engine="auto")
        return
    slow = run_reference(algorithm, problem, np.full((ROUNDS, problem.clients), 0.2), Streams(1))
    np.testing.assert_allclose(models(algorithm, problem, engine="auto"), slow.numpy(), rtol=0, atol=1e-13)


def test_linear_embeddings_make_derivatives_once_a_round_a_single_long_step() -> None:
    problem = SAMPLED["mini-batches"]
    stale, single = (models(one, problem) for one in (LabelPrivateTDCD(0.05, 4, "once a round"), TDCD(0.2, 1)))
    np.testing.assert_allclose(stale, single, rtol=0, atol=1e-13)


def test_a_quadratic_is_solved_in_closed_form_if_nothing_is_said_and_its_steps_are_plain() -> None:
    algorithm, problem = TDCD(0.02, 5), quadratic()
    assert simulate(algorithm, problem, Full(5), 2).engine == "closed form"
    with pytest.raises(FedboundsError, match="no embeddings"):  # on the engine of tiers
        simulate(LabelPrivateTDCD(0.1, 2, "once a round"), problem, Full(5), 3)
    with pytest.raises(FedboundsError, match="use 'tiers' or 'auto'"):
        simulate(LabelPrivateTDCD(0.1, 2, "once a round"), problem, Full(5), 3, engine="closed form")
    with pytest.raises(FedboundsError, match="samples of a batch"):
        simulate(TDCD(0.1, 2, "batches"), problem, Full(5), 3)


def test_steps_beyond_counting_reach_the_fixed_point_of_each_block() -> None:
    """As Q grows a round is one of block Jacobi: every block solves for itself, the others as they were."""
    problem, x, (first, second) = quadratic(noise=0.0), np.array(START), np.split(HESSIAN, 2)
    for found in models(TDCD(0.1, 10**9), problem, engine="closed form"):
        np.testing.assert_allclose(found, x, rtol=0, atol=1e-12)
        x = np.concatenate([
            -np.linalg.solve(first[:, :2], first[:, 2:] @ x[2:]), -np.linalg.solve(second[:, 2:], second[:, :2] @ x[:2])
        ])  # fmt: skip


def test_one_local_step_is_sgd_on_the_whole_vector() -> None:
    problem, x = quadratic(), torch.tensor(START, dtype=torch.float64)
    for t, found in enumerate(models(TDCD(0.05, 1), problem)):
        np.testing.assert_allclose(found, x.numpy(), rtol=0, atol=1e-14)
        drawn = problem.draw_round(Streams(1).generator("noise", t))
        assert drawn is not None
        noise = np.concatenate([drawn[:4].reshape(2, 2).mean(0), drawn[4:].reshape(3, 2).mean(0)])
        x = x - 0.05 * (problem.objective_gradient(x) + torch.from_numpy(noise))


def test_printed_averages_before_the_last_step() -> None:
    problem = quadratic()
    start = np.tile(START, (ROUNDS + 1, 1))
    np.testing.assert_array_equal(models(PrintedTDCD(0.02, 1), problem), start)
    np.testing.assert_allclose(models(PrintedTDCD(0.02, 5), problem), models(TDCD(0.02, 4), problem), atol=1e-14)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(FedboundsError, match="participation must be full"):
        simulate(TDCD(0.1, 1), quadratic(), Bernoulli(5, 0.5), 3)
    with pytest.raises(FedboundsError, match="parameters lie in silos, and this has none"):
        simulate(TDCD(0.1, 1), random_quadratic(5, 4), Full(5), 3)
    with pytest.raises(FedboundsError, match="no embeddings"):
        simulate(LabelPrivateTDCD(0.1, 2, "once a round"), quadratic(), Full(5), 3)
    with pytest.raises(FedboundsError, match="unknown average"):
        TDCD(0.1, 1, "client")  # type: ignore[arg-type]
