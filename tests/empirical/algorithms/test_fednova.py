"""FedNova: FedAvg where local steps are equal; its objective, and the surrogate that FedAvg minimizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fedbounds.algorithms import FedAvg
from fedbounds.empirical.algorithms.fednova import FedNova
from fedbounds.empirical.participation import Bernoulli, Full, PeriodicGroups, SampleWeighted, WithoutReplacement
from fedbounds.empirical.problems import Quadratic, random_cosine_quadratic, random_quadratic
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
UNEQUAL = (3, 1, 4, 2, 2)
NOISY = random_cosine_quadratic(N, 3, noise=0.3, seed=1)
TWO = (2, 5)  # local steps of the two scalar quadratics


def models(algorithm: Any, problem: Any = NOISY, process: Any = None, rounds: int = T, **more: Any) -> np.ndarray:
    who = Bernoulli(N, 0.6) if process is None else process
    return simulate(algorithm, problem, who, rounds, record_models=True, **more).model[0]


# --- special cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "auto"])
def test_with_equal_local_steps_it_is_fedavg_bit_by_bit(engine: str) -> None:
    problem = random_quadratic(N, 3, noise=0.3)
    assert (models(FedNova(0.1, 3), problem, engine=engine) == models(FedAvg(0.1, 3), problem, engine=engine)).all()
    each = models(FedNova(0.1, (3,) * N), problem, engine=engine)
    assert (each == models(FedAvg(0.1, 3), problem, engine=engine)).all()


@pytest.mark.parametrize("more", [{"momentum": 0.7}, {"step_size_schedule": {"kind": "inverse"}}])
def test_with_equal_local_work_it_is_fedavg_with_momentum_or_a_schedule(more: dict[str, Any]) -> None:
    assert np.abs(models(FedNova(0.1, 3, **more)) - models(FedAvg(0.1, 3, **more))).max() < 1e-14


def test_effective_local_steps_scale_the_step() -> None:
    """tau_eff is linear in the step of a round, and by default the mean of tau_n over all clients, 12/5."""
    q = np.full((1, N), 1 / N)
    steps = {
        effective: np.diff(models(FedNova(0.1, UNEQUAL, effective_local_steps=effective), NOISY, q, 1), axis=0)
        for effective in (None, 12 / 5, 1.0, 6.0)
    }
    assert np.allclose(steps[None], steps[12 / 5], rtol=1e-12)
    assert np.allclose(6 * steps[1.0], steps[6.0], rtol=1e-12)
    equal = (np.diff(models(each, NOISY, q, 1), axis=0) for each in (FedNova(0.1, 3, effective_local_steps=6),
                                                                     FedAvg(0.1, 3)))  # fmt: skip
    assert np.allclose(next(equal), 2 * next(equal), rtol=1e-12)


def test_the_step_of_a_round_is_the_mean_of_normalized_updates() -> None:
    q = np.array([[0.5, 0.0, 0.2, 0.3, 0.0]])
    step = np.zeros(3)
    for n, weight in enumerate(q[0]):
        if weight:
            own = np.diff(models(FedAvg(0.1, UNEQUAL), NOISY, np.eye(N)[[n]], 1), axis=0)[0]
            step = step + weight * own / UNEQUAL[n]
    ours = np.diff(models(FedNova(0.1, UNEQUAL), NOISY, q, 1), axis=0)[0]
    assert np.allclose(ours, 12 / 5 * step, rtol=1e-12)


def test_clients_that_draw_their_work_are_normalized_by_what_they_drew() -> None:
    """With one local step of all clients the draws play no role."""
    process = WithoutReplacement(N, 2)
    drawn, one = FedNova(0.1, {"low": 1, "high": 1}), FedAvg(0.1, 1)
    assert (models(drawn, NOISY, process) == models(one, NOISY, process)).all()
    seeds = simulate(FedNova(0.1, {"low": 1, "high": 5}), NOISY, process, T, seeds=(0, 3), record_models=True).model
    alone = simulate(FedNova(0.1, {"low": 1, "high": 5}), NOISY, process, T, seeds=(3,), record_models=True).model
    assert np.abs(seeds[1] - alone[0]).max() < 1e-13


def test_a_client_that_is_drawn_twice_makes_two_normalized_updates() -> None:
    process = PeriodicGroups(6, 2, slot=2, groups=3, repeats="independent")
    problem, algorithm = random_cosine_quadratic(6, 3, noise=0.3, seed=1), FedNova(0.05, (*UNEQUAL, 1))
    each = [models(algorithm, problem, process, engine=engine) for engine in ("sequential", "masked batch")]
    assert np.abs(each[0] - each[1]).max() < 1e-12


# --- the objective -------------------------------------------------------------------------------------------


def test_two_scalar_quadratics_follow_the_closed_form() -> None:
    path, tau_eff = [START], Fraction(sum(TWO), 2)
    for _ in range(6):
        x = path[-1]
        shares = [(settle(x, m, a, k) - x) / k for a, m, k in zip(CURVATURES, CENTERS, TWO, strict=True)]
        path.append(x + tau_eff * sum(shares, Fraction(0)) / 2)
    ours = models(FedNova(float(STEP), TWO), scalar_problem(), Full(2), 6)[:, 0]
    assert np.abs(ours - [float(value) for value in path]).max() < 1e-13


def ends(step: Fraction, normalized: bool) -> Fraction:
    """The fixed point: weights 1 - (1 - gamma a_n)^tau_n, divided by tau_n if normalized."""
    return weighted([drift(a, k, step) / (k if normalized else 1) for a, k in zip(CURVATURES, TWO, strict=True)])


SURROGATE = weighted([a * k for a, k in zip(CURVATURES, TWO, strict=True)])  # the minimizer of sum_n tau_n F_n


@pytest.mark.parametrize(("kind", "normalized"), [(FedAvg, False), (FedNova, True)])
def test_each_ends_at_its_fixed_point(kind: Any, normalized: bool) -> None:
    fixed = ends(STEP, normalized)
    last = simulate(kind(float(STEP), TWO), scalar_problem(), Full(2), 300, record_models=True, record_every=300)
    assert abs(last.model[0, -1, 0] - float(fixed)) < 1e-13


def test_small_steps_end_at_the_minimizer_where_those_of_fedavg_end_at_that_of_the_surrogate() -> None:
    """The limits are 5/4 and (2 * 1 * -1 + 5 * 3 * 2)/(2 + 15) = 28/17; the distances are of order gamma."""
    assert (Fraction(5, 4), Fraction(28, 17)) == (MINIMIZER, SURROGATE)
    for normalized, target in ((True, MINIMIZER), (False, SURROGATE)):
        near, nearer = (abs(ends(Fraction(1, k), normalized) - target) for k in (10**4, 10**5))
        assert near < Fraction(1, 10**3) and abs(near / nearer - 10) < Fraction(1, 10)
    small = Fraction(1, 1000)
    for kind, normalized in ((FedAvg, False), (FedNova, True)):
        there = ends(small, normalized)
        path = models(kind(float(small), TWO), scalar_problem(there), Full(2), 5)
        assert np.abs(path - float(there)).max() < 1e-13


def test_the_mean_step_over_all_cohorts_is_that_of_all_clients() -> None:
    """Exactly, as tau_eff does not depend on who takes part."""
    problem, algorithm = random_quadratic(N, 3, shared=False), FedNova(0.1, UNEQUAL)
    q = [np.isin(np.arange(N), pair)[None] / 2 for pair in combinations(range(N), 2)]
    steps = [np.diff(models(algorithm, problem, row, 1), axis=0) for row in q]
    everyone = np.diff(models(algorithm, problem, Full(N), 1), axis=0)
    assert np.abs(np.mean(steps, axis=0) - everyone).max() < 1e-14


def test_the_weights_of_the_objective_weigh_the_effective_steps() -> None:
    """p = 1/4, 3/4: tau_eff = 2/4 + 15/4."""
    problem = Quadratic([[[float(a)]] for a in CURVATURES], [[float(m)] for m in CENTERS], x0=[4.0],
                        client_weights=[1, 3])  # fmt: skip
    process = SampleWeighted(Full(2), [1, 3])
    ours = models(FedNova(float(STEP), TWO), problem, process, 1)
    given = models(FedNova(float(STEP), TWO, effective_local_steps=17 / 4), problem, process, 1)
    assert np.abs(ours - given).max() < 1e-15
    shares = [p * drift(a, k) * (m - START) / k for p, a, m, k in zip((Fraction(1, 4), Fraction(3, 4)), CURVATURES,
                                                                      CENTERS, TWO, strict=True)]  # fmt: skip
    assert abs(ours[1, 0] - float(START + Fraction(17, 4) * sum(shares, Fraction(0)))) < 1e-14
