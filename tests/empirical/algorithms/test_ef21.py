"""EF21: gradient descent without compression, closed forms in fractions, contraction, fixed points and its theorem."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.algorithms import Cohort, TopK, algorithm_from_spec
from fedbounds.empirical.algorithms.ef21 import EF21
from fedbounds.empirical.algorithms.memory import Stored
from fedbounds.empirical.participation import Full, Round, WithoutReplacement
from fedbounds.empirical.problems import Problem, Quadratic, random_cosine_quadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import choose_engine
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.algorithms.scalar_quadratics import MINIMIZER, START, STEP, scalar_problem

N, D = 5, 4


def quadratic() -> Quadratic:
    return random_quadratic(N, D, shared=False)


def states(algorithm: EF21, problem: Problem, rounds: list[list[int]], first: Stored | None = None) -> list[Stored]:
    """The states of one seed in which these clients take part, each a copy."""
    engine = choose_engine("batched", problem, algorithm)
    start = algorithm.init(problem.initial_point(np.random.default_rng())[None], problem.clients)
    found = [start if first is None else first]
    for t, who in enumerate(rounds):
        state = Stored(*(values.clone() for values in found[-1]))
        cohort = Cohort.from_rounds([Round(np.array(who, dtype=np.int64), np.full(len(who), 1.0))])
        found.append(algorithm.server_update(state, t, engine.round(state.model, cohort, t, [Streams(0)])))
    return found


def gradients(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The local gradients at x (1, d), (1, N, d)."""
    clients = torch.arange(problem.clients)[None]
    return problem.gradient(x[:, None].expand(1, problem.clients, -1), clients)


EVERYONE = [list(range(N))]


# --- special cases and closed forms --------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [quadratic(), random_cosine_quadratic(N, D)], ids=["quadratic", "cosine"])
def test_without_compression_it_is_gradient_descent(problem: Problem) -> None:
    ours = simulate(EF21(0.1, share=1), problem, Full(N), 30, record_models=True).model[0]
    x = problem.initial_point(np.random.default_rng())
    for model in ours:
        assert np.abs(model - x.numpy()).max() < 1e-12
        x = x - 0.1 * problem.objective_gradient(x)


def test_noise_plays_no_role() -> None:
    """Gradients are exact."""
    quiet, noisy = (random_cosine_quadratic(N, D, noise=noise) for noise in (0.0, 0.5))
    process = WithoutReplacement(N, 2)
    first, second = (
        simulate(EF21(0.1, share=0.5), each, process, 9, record_models=True).model for each in (quiet, noisy)
    )
    assert (first == second).all()


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_two_scalar_quadratics_follow_the_closed_form(share: float) -> None:
    """In one dimension k = 1 = d: x_t - 5/4 shrinks by 1 - gamma 2, as f'' = 2."""
    path = [MINIMIZER + (1 - 2 * STEP) ** t * (START - MINIMIZER) for t in range(12)]
    ours = simulate(EF21(float(STEP), share), scalar_problem(), Full(2), 11, record_models=True).model[0, :, 0]
    assert np.abs(ours - [float(value) for value in path]).max() < 1e-14


def test_the_scalar_recursion_under_partial_participation_in_fractions() -> None:
    """Client 0 alone, both, client 1 alone, nobody: the absent keep what they sent last, zero before."""
    q = np.array([[1, 0], [0.5, 0.5], [0, 1], [0, 0]])
    # gamma = 1/8, F_0' = x + 1, F_1' = 3 (x - 2): from 4, g_0 = 5, then x = 4 - 5/16 = 59/16, and so on
    x1 = Fraction(4) - Fraction(5, 16)
    x2 = x1 - ((x1 + 1) + 3 * (x1 - 2)) / 16
    x3 = x2 - ((x1 + 1) + 3 * (x2 - 2)) / 16
    x4 = x3 - ((x1 + 1) + 3 * (x2 - 2)) / 16
    ours = simulate(EF21(float(STEP), 1.0), scalar_problem(), q, 4, record_models=True).model[0, :, 0]
    assert x1 == Fraction(59, 16)
    assert np.abs(ours - [float(value) for value in (4, x1, x2, x3, x4)]).max() < 1e-14


def test_one_entry_of_two_by_hand() -> None:
    """F(x) = (x_1^2 + 2 x_2^2)/2 from (4, 1), gamma = 1/4, k = 1: g = (4, 0), (4, 2), (2, 2)."""
    problem = Quadratic([1.0, 2.0], [[0.0, 0.0]], x0=[4.0, 1.0])
    ours = simulate(EF21(0.25, share=0.5), problem, Full(1), 3, record_models=True).model[0]
    # round 0: gradient (4, 2), of which 4 is sent; x = (3, 1)
    # round 1: gradient (3, 2), differences (-1, 2), of which 2 is sent; x = (2, 1/2)
    # round 2: gradient (2, 1), differences (-2, -1), of which -2 is sent: g = (2, 2); x = (3/2, 0)
    assert ours.tolist() == [[4.0, 1.0], [3.0, 1.0], [2.0, 0.5], [1.5, 0.0]]


def test_of_equal_entries_the_first_is_sent() -> None:
    problem = Quadratic([1.0, 1.0, 1.0], [[0.0, 0.0, 0.0]], x0=[2.0, -2.0, 2.0])
    ours = simulate(EF21(0.5, share=0.5), problem, Full(1), 1, record_models=True).model[0, 1]
    assert ours.tolist() == [1.0, -1.0, 2.0]


# --- the vectors of the clients ------------------------------------------------------------------------------


def test_after_round_0_the_vectors_are_the_compressed_gradients_at_the_start() -> None:
    """g_n^0 = C(grad F_n(x_0)), as in the paper; the codec keeps the same entries."""
    problem, algorithm = quadratic(), EF21(0.1, share=0.5)
    first, then = states(algorithm, problem, EVERYONE)
    for own, gradient in zip(then.own[0].numpy(), gradients(problem, first.model)[0].numpy(), strict=True):
        sent = algorithm.codec.decode(algorithm.codec.encode(gradient, np.random.default_rng(0)))
        assert ((own != 0) == (sent != 0)).all() and (own != 0).sum() == 2
        assert (own[own != 0] == gradient[own != 0]).all()
    assert torch.allclose(then.model, first.model - 0.1 * then.own.mean(1), rtol=1e-14)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_an_exchange_shrinks_the_distance_to_the_gradient_by_what_is_left_out(share: float) -> None:
    """|g_n + C(grad - g_n) - grad|^2 <= (1 - k/d) |g_n - grad|^2, with what is left out on the left."""
    problem, algorithm = quadratic(), EF21(0.1, share)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, D, generator=generator, dtype=torch.float64)
    own = torch.randn(1, N, D, generator=generator, dtype=torch.float64)
    after = states(algorithm, problem, EVERYONE, Stored(x, own, own.mean(1)))[1].own
    before, left = ((each - gradients(problem, x))[0].numpy() for each in (own, after))
    contraction = algorithm.codec.relative_error(D)
    assert contraction == pytest.approx(1 - share)
    for row, remaining in zip(before, left, strict=True):
        squared = algorithm.codec.squared_error(row)
        assert (remaining**2).sum() == pytest.approx(squared, rel=1e-12)
        assert squared <= contraction * (row**2).sum() * (1 + 1e-12)


def test_the_mean_is_that_of_the_vectors_and_the_absent_keep_theirs() -> None:
    rng = np.random.default_rng(0)
    rounds = [sorted(rng.permutation(N)[: rng.integers(0, N + 1)].tolist()) for _ in range(100)]
    found = states(EF21(0.1, 0.5), quadratic(), rounds)
    for before, after, who in zip(found, found[1:], rounds, strict=False):
        assert torch.allclose(after.own.mean(1), after.mean, rtol=0, atol=1e-13)
        assert torch.allclose(after.model, before.model - 0.1 * after.mean, rtol=0, atol=1e-14)
        absent = [n for n in range(N) if n not in who]
        assert (after.own[:, absent] == before.own[:, absent]).all()


def test_with_the_gradients_at_the_minimizer_it_stays_there() -> None:
    problem = quadratic()
    A, c = problem.hessians, problem.centers
    x = torch.linalg.solve(A.mean(0), (A @ c[..., None]).mean(0)[:, 0])[None]
    own = gradients(problem, x)
    for state in states(EF21(0.2, 0.25), problem, EVERYONE * 20, Stored(x, own, own.mean(1))):
        assert torch.allclose(state.model, x, rtol=0, atol=1e-13)
    moved = states(EF21(0.2, 0.25), problem, EVERYONE, Stored(x, 0 * own, 0 * x))[1].model
    assert (moved - x).abs().max() > 1e-3  # without them it does not


# --- convergence ---------------------------------------------------------------------------------------------


def test_error_feedback_reaches_the_minimizer_where_compression_alone_does_not() -> None:
    problem, compressed = quadratic(), {"kind": "compressed", "local_steps": 1, "local_step_size": 0.1}
    ours, without = (
        simulate(algorithm, problem, Full(N), 900, record_every=900).gradient_norm_squared[0, -1]
        for algorithm in (
            EF21(0.1, share=0.25),
            algorithm_from_spec(compressed | {"compressor": {"kind": "top-k", "share": 0.25}}),
        )
    )
    assert ours < 1e-24 and without > 1e-4


@pytest.mark.parametrize("share", [0.25, 0.5])
@pytest.mark.parametrize("problem", [quadratic(), random_cosine_quadratic(N, D)], ids=["quadratic", "cosine"])
def test_a_run_keeps_the_bound_of_its_theorem(problem: Any, share: float) -> None:
    """Richtarik et al. 2021, Theorem 1: (2/(gamma T)) (f(x_0) - f*) + G_0/(theta T), at the largest step size."""
    T, alpha = 200, share  # k/d
    theta = 1 - math.sqrt(1 - alpha)
    beta = (1 - alpha) / theta
    L = float(problem.constants()["smoothness"].value)  # of every client, and so of their mean
    gamma = 1 / (L + L * math.sqrt(beta / theta))
    algorithm = EF21(gamma, share)
    trace = simulate(algorithm, problem, Full(N), T)
    first, then = states(algorithm, problem, EVERYONE)
    G0 = float((then.own - gradients(problem, first.model)).square().sum(-1).mean())
    gap = problem.constants()["initial_gap"].value
    bound = 2 * gap / (gamma * T) + G0 / (theta * T)
    assert trace.gradient_norm_squared[0, :T].mean() <= bound
    assert trace.gradient_norm_squared[0, :T].mean() > bound / 100, "the bound says something here"


def test_messages_are_those_of_top_k() -> None:
    trace = simulate(EF21(0.1, share=0.5), quadratic(), WithoutReplacement(N, 2), 3)
    assert trace.uplink_bytes[0, 1:].tolist() == [2 * TopK(0.5).message_bytes(D) * t for t in (1, 2, 3)]
