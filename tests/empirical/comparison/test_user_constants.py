"""Given constants, problem and participation are compared with the run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.consistency import MAY_BE, contradicts
from fedbounds.bounds.theory.registry import PAPERS, paper_module
from fedbounds.empirical.comparison.compare_run import RunComparison, confront, confront_family
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.fedau.algorithms import FedAU
from fedbounds.empirical.participation import Bernoulli, Full, Recorded, WithoutReplacement, WithReplacement
from fedbounds.empirical.problems import Quadratic, Synthetic, random_quadratic, random_quadratic_minimax, toy_example
from fedbounds.empirical.problems.bounded_gradient import random_bounded_gradient
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace

THEOREM = "arbitrary-participation/theorem-3.1"
CYCLES = np.tile(np.eye(3), (10, 1))


def toy(given: dict, noise: float = 0.0, form: str = "explicit") -> RunComparison:
    run = moments(GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3), toy_example(noise=noise), CYCLES)
    return confront(run, THEOREM, form, given=given)


# --- constants --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"L": 1e-3}, r"L = 0.001 is given, and it is 1 \(largest eigenvalue.*: give that or a larger one"),
        ({"F": 1e-3}, "F = 0.001 is given, and it is 1.51"),
        ({"initial_gap": 1e-3}, "F = 0.001 is given"),
        ({"rho": 1e-6}, "rho = 1e-06 is given, and it is 1 .*larger"),
        ({"beta": 1e-3}, "beta = 0.001 is given"),
        ({"sigma": 0}, "sigma = 0 is given, and it is 0.707"),
        ({"d": 1e-3}, "d = 0.001 is given"),
        ({"gamma": 1e-6}, r"gamma = 1e-06 is given, and it is 0.0277777777778 \(of the algorithm\): give that,"),
        ({"gamma": 1.0}, "gamma = 1 is given"),
        ({"eta": 1e-3}, "eta = 0.001 is given, and it is 6"),
        ({"I": 2}, "I = 2 is given, and it is 1"),
        ({"P": 2}, "P = 2 is given, and it is 3"),
        ({"N": 5}, "N = 5 is given, and it is 3"),
        ({"T": 10**9}, r"T = 1000000000 is given, and it is 30 \(of the run\)"),
        ({"rounds": 29}, "T = 29 is given, and it is 30"),
        ({"nu": [0.1, 0.2]}, r"nu is given with shape \(2,\), and it has shape \(28,\)"),
    ],
)  # fmt: skip
def test_a_constant_that_contradicts_the_run_is_refused(given: dict, told: str) -> None:
    with pytest.raises(FedboundsError, match=told) as refused:
        toy(given, noise=0.5)
    assert "\n" not in str(refused.value)


def test_a_least_value_may_be_given_smaller_and_no_larger() -> None:
    assert toy({"sumsq": 0.5}, form="explicit:sumsq").guarantee  # every round has the sum 1
    assert bool(contradicts("sum_of_squared_weights", np.array(1.1), np.array(1.0)))
    with pytest.raises(FedboundsError, match=r"sumsq = 1 is given, and it is 0.3333.*give that or a smaller one"):
        run = moments(FedAvg(1 / 36, 1), toy_example(), np.full((6, 3), 1 / 3))
        confront(run, THEOREM, "explicit:sumsq", given={"sumsq": 1})


@pytest.mark.parametrize(
    "given", [{"F": 100.0}, {"rho": 1.0}, {"T": 30}, {"sigma": 1.0, "beta": 2.0}, {"gamma": 1 / 36}]
)
def test_a_bound_may_be_given_larger_and_anything_as_it_is(given: dict) -> None:
    found = toy(given, noise=0.5)
    assert found.guarantee and not found.crossings.size
    assert (found.bound >= toy({}, noise=0.5).bound * (1 - 1e-12)).all()


COINS = Bernoulli(3, (0.3, 0.5, 1.0), normalize=False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"p": [0.9, 0.9, 0.9]}, "p = 0.9 is given, and it is 0.3"),
        ({"K": 7}, "K = 7 is given, and it is 4"),
        ({"W": 1e-6}, "W = 1e-06 is given"),
        ({"Q": 1.0}, "Q = 1 is given"),
        ({"Qmean": 0.1}, "Qmean = 0.1 is given"),
        ({"G": 1e-3}, "G = 0.001 is given"),
        ({"delta": 1e-3}, "delta = 0.001 is given"),
        ({"eta": 2.0}, "eta = 2 is given, and it is 0.1"),
    ],
)
def test_what_contradicts_a_run_of_fedau_is_refused(given: dict, told: str) -> None:
    problem, algorithm = random_bounded_gradient(3, 2), FedAU(1e-3, 2, 0.1, 4)
    run = simulate(algorithm, problem, COINS, 12, seeds=range(3))
    with pytest.raises(FedboundsError, match=told):
        confront(run, "fedau/theorem-2", "sharp", problem=problem, participation=COINS, given=given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mu": 100.0}, "mu = 100 is given, and it is .*give that or a smaller one"),
        ({"Lf": 1e-3}, "Lf = 0.001 is given"),
        ({"kappa": 1.0}, "kappa = 1 is given"),
        ({"tau": [1, 1, 1]}, "tau = 1 is given, and it is 2"),
        ({"w": [0.5, 0.25, 0.25]}, "w = 0.5 is given, and it is 0.333"),
        ({"Gammax": 1e-9}, "Gammax = 1e-09 is given"),
        ({"P": 3}, "P = 3 is given, and it is 2"),
        ({"n": 4}, "n = 4 is given, and it is 3"),
    ],
)
def test_what_contradicts_a_run_of_fed_norm_sgda_is_refused(given: dict, told: str) -> None:
    algorithm = FedNormSGDA(1e-4, 1e-4, 1e-5, 1e-3, local_steps=(2, 5, 3))
    run = moments(algorithm, random_quadratic_minimax(3, 2, 2), WithoutReplacement(3, 2), 20)
    with pytest.raises(FedboundsError, match=told):
        confront(run, "fed-norm-sgda/theorem-1", given=given)


def test_the_horizon_of_a_family_is_that_of_its_runs() -> None:
    with pytest.raises(FedboundsError, match="T = 1000 is given, and it is 30"):
        confront_family("arbitrary-participation/corollary-3.2", toy_example(), CYCLES, [30], local_steps=1, interval=3,
                        given={"T": 1000})  # fmt: skip


def test_a_divergence_that_does_not_exist_has_no_ground_in_what_is_given() -> None:
    bowls = random_quadratic(3, 2, shared=False)
    run = simulate(FedAU(1e-3, 2, 0.1, 4), bowls, COINS, 12, seeds=range(3))
    found = confront(run, "fedau/theorem-2", "sharp", problem=bowls, participation=COINS, given={"delta": 5.0})
    assert not found.guarantee and "delta is given, and there is none: " in " ".join(found.why_not)


def test_the_table_of_sides_is_about_concepts_of_the_papers() -> None:
    concepts = {
        quantity.concept for paper in PAPERS for r in paper_module(paper).RESULTS for quantity in r.notation.values()
    }
    assert not MAY_BE.keys() - concepts
    for counted in ("rounds", "iterations", "interval", "local_steps", "clients", "participating_clients", "parameters",
                    "local_step_size", "server_multiplier", "server_step_size", "aggregation_weights",
                    "participation_rates", "objective_weights", "cutoff_interval", "failure_probability"):  # fmt: skip
        assert counted not in MAY_BE and bool(contradicts(counted, np.array(2.0), np.array(1.0)))


# --- the problem and who took part ------------------------------------------------------------------------------

CENTERS = np.linspace(-1, 1, 10)[:, None]
PROBLEM, TWO = Quadratic([1.0], CENTERS, 0.1, [2.0]), WithoutReplacement(10, 2)


def run_of_two(**options) -> Trace:
    return simulate(FedAvg(0.01, 2), PROBLEM, TWO, 30, seeds=range(3), **options)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("problem", "process", "told"),
    [
        (PROBLEM, Full(10), "participation= is not the run's: in round 0 of seed 0 it has .* and 6 more, the run had"),
        (PROBLEM, WithReplacement(10, 2), "participation= is not the run's"),
        (PROBLEM, Recorded(np.full((30, 10), 0.1)), "participation= is not the run's"),
        (Quadratic([1.0], CENTERS, 0.1, [200.0]), TWO, "problem= is not the run's: .* at round 0 of seed 0 would be 4"),
        (Quadratic([1.0], CENTERS, 0.0, [2.0]), TWO, "problem= or participation= is not the run's: .* at round 1"),
        (Quadratic([1.0], 2 * CENTERS, 0.1, [2.0]), TWO, "problem= or participation= is not the run's"),
        (Quadratic([1.0], CENTERS[:4], 0.1, [2.0]), WithoutReplacement(4, 2), "problem= has clients = 4, the run"),
        (PROBLEM, WithoutReplacement(4, 2), "participation= has clients = 4, the run has 10"),
        (Quadratic([1.0, 1.0], np.tile(CENTERS, 2), 0.1, [2.0, 0.0]), TWO, "problem= has dimension = 2, the run has 1"),
    ],
)  # fmt: skip
def test_another_problem_or_participation_than_the_runs_is_refused(
    recorded: bool, problem: Synthetic, process, told: str
) -> None:
    run = run_of_two(record_participation=recorded)
    with pytest.raises(FedboundsError, match=told) as refused:
        confront(run, THEOREM, "explicit", problem=problem, participation=process)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("recorded", [True, False])
def test_the_runs_own_problem_and_participation_are_known_again(recorded: bool) -> None:
    again = Quadratic([1.0], CENTERS, 0.1, [2.0])
    own = run_of_two(record_participation=recorded)
    assert confront(own, THEOREM, "explicit", problem=again, participation=WithoutReplacement(10, 2)).guarantee
    fixed = run_of_two(record_participation=recorded, streams={"participation": 7})
    assert confront(fixed, THEOREM, "explicit", problem=again, participation=TWO).guarantee
    everybody = simulate(FedAvg(0.01, 2), PROBLEM, Full(10), 30, record_participation=recorded, record_every=7)
    for process in (Full(10), Recorded(np.full((30, 10), 0.1))):
        assert confront(everybody, THEOREM, "explicit", problem=again, participation=process).guarantee


def test_who_took_part_is_compared_in_every_round() -> None:
    run = simulate(FedAvg(0.01, 2), PROBLEM, Full(10), 30, record_participation=True)
    weights = np.full((30, 10), 0.1)
    weights[29] = np.eye(10)[3]
    with pytest.raises(FedboundsError, match=r"in round 29 of seed 0 it has clients \(weights\) 3 \(1\), the run had"):
        confront(run, THEOREM, "explicit", problem=PROBLEM, participation=weights)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda run: confront(run, THEOREM, problem=toy_example()),
            "problem= is not that of these moments",
        ),
        (lambda run: confront(run, THEOREM, participation=Full(3)), "participation= is not that of these"),
    ],
)
def test_moments_know_their_problem_and_participation(call: Callable, told: str) -> None:
    run = moments(FedAvg(1 / 36, 1), toy_example(), CYCLES)
    with pytest.raises(FedboundsError, match=told):
        call(run)
    assert confront(run, THEOREM, "explicit", problem=run.problem, participation=CYCLES).guarantee
