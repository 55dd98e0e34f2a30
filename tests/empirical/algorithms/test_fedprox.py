"""FedProx: FedAvg without the proximal term, closed forms in fractions, and where it ends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedbounds.algorithms import FedAvg
from fedbounds.empirical.algorithms.fedprox import FedProx
from fedbounds.empirical.participation import Bernoulli, Full
from fedbounds.empirical.problems import random_cosine_quadratic, random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.algorithms.scalar_quadratics import (
    CENTERS,
    CURVATURES,
    MINIMIZER,
    START,
    STEP,
    drift,
    scalar_problem,
    settle,
    weighted,
)

N, T = 5, 10
NOISY = random_cosine_quadratic(N, 3, noise=0.3, seed=1)
SOME = Bernoulli(N, 0.6)


def models(algorithm: Any, problem: Any = NOISY, process: Any = SOME, rounds: int = T, **more: Any) -> np.ndarray:
    return simulate(algorithm, problem, process, rounds, record_models=True, **more).model[0]


@pytest.mark.parametrize(
    ("steps", "engine"),
    [(3, "sequential"), (3, "batched"), (3, "closed form"), ((3, 1, 4, 2, 2), "sequential"),
     ((3, 1, 4, 2, 2), "masked batch"), ((3, 1, 4, 2, 2), "auto")],
)  # fmt: skip
def test_without_the_proximal_term_it_is_fedavg_bit_by_bit(steps: Any, engine: str) -> None:
    problem = random_quadratic(N, 3, noise=0.3, shared=False)
    ours, fedavg = (
        models(algorithm, problem, engine=engine)
        for algorithm in (FedProx(0.1, steps, proximal_mu=0), FedAvg(0.1, steps))
    )
    assert (ours == fedavg).all()


@pytest.mark.parametrize("mu", [0.5, 40.0])
def test_with_one_local_step_it_is_fedavg_bit_by_bit_whatever_the_proximal_term_is(mu: float) -> None:
    ours, fedavg = (models(each, engine="batched") for each in (FedProx(0.1, 1, proximal_mu=mu), FedAvg(0.1, 1)))
    assert (ours == fedavg).all()


def test_equal_local_steps_of_each_client_are_one_number() -> None:
    each, one = (FedProx(0.1, steps, proximal_mu=0.8) for steps in ((3,) * N, 3))
    assert (models(each) == models(one)).all()
    constant = {"kind": "step", "every": 1, "factor": 1.0}
    masked = models(FedProx(0.1, 3, proximal_mu=0.8, step_size_schedule=constant))
    assert np.abs(masked - models(one)).max() < 1e-13


def test_the_second_local_step_is_pulled_back_by_the_first() -> None:
    """Delta = -gamma (g(x) + g(y) + mu (y - x)) with y = x - gamma g(x), of one client without noise."""
    problem, gamma, mu = random_quadratic(1, 3), 0.1, 2.0
    A, c, x = problem.hessians.numpy(), problem.centers[0].numpy(), problem.x0.numpy()
    A = np.diag(A) if A.ndim == 1 else A.reshape(3, 3)
    g = A @ (x - c)
    y = x - gamma * g
    expected = y - gamma * (A @ (y - c) + mu * (y - x))
    assert np.abs(models(FedProx(gamma, 2, proximal_mu=mu), problem, Full(1), 1)[1] - expected).max() < 1e-14


@pytest.mark.parametrize("mu", [Fraction(1, 2), Fraction(4)])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_two_scalar_quadratics_follow_the_closed_form(steps: int, mu: Fraction) -> None:
    """Local steps end at (a_n m_n + mu x)/(a_n + mu) up to a factor (1 - gamma (a_n + mu))^I."""
    path = [START]
    for _ in range(6):
        x, moves = path[-1], []
        for a, m in zip(CURVATURES, CENTERS, strict=True):
            moves.append(settle(x, (a * m + mu * x) / (a + mu), a + mu, steps) - x)
        path.append(x + sum(moves, Fraction(0)) / 2)
    ours = models(FedProx(float(STEP), steps, proximal_mu=float(mu)), scalar_problem(), Full(2), 6)[:, 0]
    assert np.abs(ours - [float(value) for value in path]).max() < 1e-14


def limit(mu: Fraction, steps: int) -> Fraction:
    """The fixed point: the centers with weights (1 - (1 - gamma (a_n + mu))^I) a_n / (a_n + mu)."""
    return weighted([drift(a + mu, steps) * a / (a + mu) for a in CURVATURES])


@pytest.mark.parametrize(("mu", "steps"), [(Fraction(1, 2), 3), (Fraction(4), 3), (Fraction(4), 30)])
def test_it_ends_at_its_fixed_point_and_not_at_the_minimizer(mu: Fraction, steps: int) -> None:
    algorithm = FedProx(float(STEP), steps, proximal_mu=float(mu))
    last = simulate(algorithm, scalar_problem(), Full(2), 400, record_models=True, record_every=400).model[0, -1, 0]
    fixed = limit(mu, steps)
    assert abs(last - float(fixed)) < 1e-13 and abs(fixed - MINIMIZER) > Fraction(1, 100)
    stays = models(algorithm, scalar_problem(fixed), Full(2), 3)
    assert np.abs(stays - float(fixed)).max() < 1e-14


def test_exact_local_solutions_end_at_the_prox_and_a_larger_weight_nearer_to_the_minimizer() -> None:
    """The weights a_n/(a_n + mu) tend to a_n: 1/5 and 3/7 for mu = 4; the limits are exact."""
    prox = weighted([Fraction(1, 5), Fraction(3, 7)])
    assert prox == Fraction(-1 * 7 + 2 * 15, 7 + 15) == Fraction(23, 22)
    assert abs(limit(Fraction(4), 60) - prox) < Fraction(1, 10**12)
    distances = [abs(weighted([a / (a + mu) for a in CURVATURES]) - MINIMIZER) for mu in (1, 4, 16, 64)]
    assert distances == sorted(distances, reverse=True) and distances[-1] < Fraction(1, 50)
    assert abs(weighted([drift(a, 60) for a in CURVATURES]) - MINIMIZER) > distances[0]  # FedAvg
