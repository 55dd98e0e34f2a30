"""FedAU measured: runs under Theorem 1, 2 and 3 and Corollary 4, biased objectives, and what no theorem covers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fedau.weight_error import weight_error
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.compare_run import RunComparison, confront, confront_family, prescribed_algorithm
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    AverageAll,
    AverageParticipating,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)
from fedbounds.empirical.papers.fedau.objectives import objective_weights, predicted_bias, weighted_objective
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
from fedbounds.empirical.papers.fedau.run import why_no_bound
from fedbounds.empirical.participation import Bernoulli, CyclicClients, Full, Markovian, Process
from fedbounds.empirical.problems import BoundedGradient, Problem, Quadratic, random_bounded_gradient, random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from tests.papers.fedau.exact_weights import exact_weight_moments

THEOREM_1 = load("fedau/theorem-1")
THEOREM_2 = load("fedau/theorem-2")
OPTION_1 = load("fedau/theorem-2-option-1")
THEOREM_3 = load("fedau/theorem-3")
THEOREM_B_4_1 = load("fedau/theorem-b.4.1")
COROLLARY_4 = load("fedau/corollary-4")
APPENDIX_A_3, UNEQUAL_RATES = load("fedau/appendix-a.3"), load("fedau/appendix-a.3-unequal")

RATES = (0.3, 0.5, 0.8, 1.0)
COINS = Bernoulli(4, RATES, normalize=False)
GAMMA, I = 1 / (4 * 15**0.5 * 2), 2  # the largest local step for L = 1
FAMILY = {shape: random_bounded_gradient(4, 3, shape, noise=0.3, seed=3) for shape in ("log-cosh", "cosine")}
BOWLS = random_quadratic(4, 3, heterogeneity=1.0, noise=0.2, seed=2)
UNEQUAL = FixedWeights(GAMMA, I, (2.0, 1.0, 1.0, 1.0))


def at_the_cap(K: float, rounds: int, rates: tuple[float, ...] = RATES) -> FedAU:
    """FedAU with the largest global step that Theorem 2 allows it."""
    p = np.array(rates)
    Q = float(np.mean(p * np.where(p < 1, min(K, max(rounds - 1, 1)), 1.0) ** 2))
    return FedAU(GAMMA, I, min(1 / (2 * I), len(p) / (27 * I * Q)) * (1 - 1e-9) / GAMMA, K)


def sampled(algorithm: Algorithm, problem: Problem, form: str, rounds: int = 60, seeds: int = 20) -> RunComparison:
    run = simulate(algorithm, problem, COINS, rounds, seeds=range(seeds))
    return confront(run, THEOREM_2, form, problem=problem, participation=COINS)


# --- Theorem 2 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["explicit", "sharp", "sharp:mean-Q"])
@pytest.mark.parametrize("K", [1, 3, float("inf")])
@pytest.mark.parametrize("shape", FAMILY)
def test_theorem_2_is_a_guarantee_on_bounded_gradients_and_is_not_crossed(shape: str, K: float, form: str) -> None:
    comparison = sampled(at_the_cap(K, 60), FAMILY[shape], form)
    assert comparison.guarantee and not comparison.crossings.size and comparison.valid.all()
    assert comparison.label == "mean of 20 seeds" and comparison.standard_error is not None
    kinds = {name: c.source for name, c in comparison.constants.items()}
    exact, given = {"L", "F", "sigma", "delta", "G", "N", "W", "Q"}, {"I", "T", "gamma", "eta"}
    assert kinds == dict.fromkeys(exact | ({"Qmean"} if "mean" in form else set()), "exact") | dict.fromkeys(
        given, "given"
    )


def test_sharper_forms_are_tighter() -> None:
    run = simulate(at_the_cap(3, 60), FAMILY["cosine"], COINS, 60, seeds=range(20))
    loose, sharp, mean = (
        confront(run, THEOREM_2, form, problem=FAMILY["cosine"], participation=COINS)
        for form in ("explicit", "sharp", "sharp:mean-Q")
    )
    assert (loose.bound > 1.3 * sharp.bound).all() and (sharp.bound >= mean.bound).all()
    assert mean.bound[-1] < sharp.bound[-1]


def test_the_weight_constants_of_a_run_are_those_of_every_record_of_participation() -> None:
    """W, Q, its mean and the largest error, by enumeration of all 2^(T-1) records of each of two clients."""
    p, K, T = (0.25, 0.5), 2, 4
    paths = [np.array(bits)[:, None] for bits in product((0, 1), repeat=T)]
    omega = np.array([weight_paths(path, K)[:, 0] for path in paths])  # (records, T)
    law = [np.array([np.prod(np.where(path, q, 1 - q)) for path in paths]) for q in p]
    W = np.mean([chance @ (q * omega - 1) ** 2 for q, chance in zip(p, law, strict=True)])
    mean = np.mean([chance @ (q * omega**2) for q, chance in zip(p, law, strict=True)])
    together = [(a, b) for a in omega for b in omega]
    Q = max(np.mean([q * w**2 for q, w in zip(p, pair, strict=True)], axis=0).max() for pair in together)
    worst = max(np.mean([(q * w - 1) ** 2 for q, w in zip(p, pair, strict=True)], axis=0).max() for pair in together)
    problem, process = random_bounded_gradient(2, 2, noise=0.1), Bernoulli(2, p, normalize=False)
    run = simulate(FedAU(GAMMA, I, 0.1, K), problem, process, T)
    found = confront(run, THEOREM_2, "sharp:mean-Q", problem=problem, participation=process).constants
    assert float(found["W"].value) == pytest.approx(W, abs=1e-11)
    assert float(found["Q"].value) == pytest.approx(Q, rel=1e-12)
    assert float(found["Qmean"].value) == pytest.approx(mean, rel=1e-10)
    option = confront(run, OPTION_1, "explicit", problem=problem, participation=process)
    assert option.evaluation.assumptions["nearly-optimal-weights"] == "violated" and worst > 1 / 81


def test_the_weight_error_at_every_horizon_is_the_golden_one() -> None:
    comparison = sampled_half()
    golden = [float(sum(e for _, e in exact_weight_moments(Fraction(1, 2), 2, T)) / T) for T in range(1, 7)]
    assert golden[-1] == pytest.approx(683 / 4608)  # Wang & Ji 2024, Algorithm 2 in rationals
    term = comparison.terms["weight error"]
    assert term / term[0] == pytest.approx(np.array(golden) / golden[0])


def sampled_half() -> RunComparison:
    problem, process = random_bounded_gradient(2, 2), Bernoulli(2, 0.5, normalize=False)
    run = simulate(FedAU(GAMMA, I, 0.1, 2), problem, process, 6)
    return confront(run, THEOREM_2, "explicit", problem=problem, participation=process)


def test_constant_weights_have_an_exact_error_and_second_moment() -> None:
    run = simulate(UNEQUAL, FAMILY["cosine"], COINS, 5)
    found = confront(run, THEOREM_2, "sharp:mean-Q", problem=FAMILY["cosine"], participation=COINS).constants
    assert float(found["W"].value) == pytest.approx((0.4**2 + 0.5**2 + 0.2**2) / 4)
    assert float(found["Q"].value) == float(found["Qmean"].value) == pytest.approx((0.3 * 4 + 0.5 + 0.8 + 1) / 4)


def test_known_rates_have_no_weight_error_and_need_no_bounded_gradient() -> None:
    run = moments(KnownParticipation(GAMMA, I), BOWLS, COINS, 200)
    for form in ("explicit", "sharp"):
        comparison = confront(run, OPTION_1, form)
        assert comparison.label == "exact" and comparison.guarantee and not comparison.crossings.size
        assert (comparison.terms["weight error"] == 0).all() and 0.01 < comparison.ratio[-1] < 0.2


@pytest.mark.parametrize(("off", "near"), [(1.1, True), (1.12, False)])
def test_option_1_holds_only_where_the_weights_are_surely_within_a_ninth(off: float, near: bool) -> None:
    weights = FixedWeights(GAMMA, I, tuple(off / p for p in RATES))  # W = (off - 1)^2, against 1/81 = 0.111^2
    comparison = confront(moments(weights, BOWLS, COINS, 50), OPTION_1, "explicit")
    assert comparison.guarantee == near
    assert (comparison.evaluation.assumptions["nearly-optimal-weights"] == "checked") == near


def test_option_1_never_holds_for_weights_that_fedau_estimates_but_for_almost_certain_clients() -> None:
    problem = random_bounded_gradient(2, 2)
    for rates, K, near in (((0.3, 1.0), 4, False), ((0.95, 1.0), 1, True), ((0.95, 1.0), 2, False)):
        process = Bernoulli(2, rates, normalize=False)
        run = simulate(FedAU(GAMMA, I, 0.1, K), problem, process, 8)
        found = confront(run, OPTION_1, "explicit", problem=problem, participation=process)
        assert (found.evaluation.assumptions["nearly-optimal-weights"] == "checked") == near


def test_on_quadratics_the_gradient_bound_is_a_trajectory_and_no_guarantee() -> None:
    run = simulate(at_the_cap(3, 40), BOWLS, COINS, 40, seeds=range(10))
    comparison = confront(run, THEOREM_2, "explicit", problem=BOWLS, participation=COINS)
    largest = run.gradient_norm_squared[:, :40].max() ** 0.5
    assert comparison.constants["G"].source == "trajectory" and not comparison.guarantee
    assert float(comparison.constants["G"].value) == pytest.approx(largest)
    assert comparison.why_not[0] == "G is known only along one run" and not comparison.crossings.size
    exact = confront(moments(UNEQUAL, BOWLS, COINS, 40), THEOREM_2, "explicit")
    expected = moments(UNEQUAL, BOWLS, COINS, 40).gradient_norm_squared[:40].max() ** 0.5
    assert float(exact.constants["G"].value) == pytest.approx(expected) and not exact.crossings.size
    known = confront(run, THEOREM_2, "explicit", problem=BOWLS, participation=COINS, given={"G": 9.0}, assume=["all"])
    assert known.constants["G"].source == "given" and known.evaluation.assumptions["bounded-gradient"] == "violated"


def test_the_measure_is_the_average_over_rounds_with_the_error_of_the_averages_over_seeds() -> None:
    run = simulate(at_the_cap(3, 12), FAMILY["log-cosh"], COINS, 12, seeds=range(5))
    comparison = confront(run, THEOREM_2, "sharp", problem=FAMILY["log-cosh"], participation=COINS)
    averages = np.array([run.gradient_norm_squared[:, :T].mean(axis=1) for T in range(1, 13)])
    assert comparison.rounds.tolist() == list(range(1, 13))
    assert comparison.measured == pytest.approx(averages.mean(axis=1))
    assert comparison.standard_error == pytest.approx(averages.std(axis=1, ddof=1) / 5**0.5)


def test_sampled_runs_of_fedau_agree_with_the_sum_over_all_records() -> None:
    """Two clients, four rounds: exact expectations over noise for each of 2^8 records, weighted by its probability."""
    p, T = np.array([0.3, 0.6]), 4
    problem, algorithm = random_quadratic(2, 2, noise=0.2, seed=5), FedAU(0.1, 2, 1.0, 2)
    expected = np.zeros(T + 1)
    for bits in product((0, 1), repeat=2 * T):
        record = np.reshape(bits, (T, 2))
        chance = np.prod(np.where(record, p, 1 - p))
        expected += chance * moments(algorithm, problem, record / 2, T).gradient_norm_squared
    process = Bernoulli(2, tuple(p), normalize=False)
    run = simulate(algorithm, problem, process, T, seeds=range(800))
    comparison = confront(run, THEOREM_2, "explicit", problem=problem, participation=process)
    averages = np.cumsum(expected[:T]) / np.arange(1, T + 1)
    assert comparison.standard_error is not None
    assert (np.abs(comparison.measured - averages)[1:] < 4 * comparison.standard_error[1:]).all()


# --- Theorem 1 and Theorem B.4.1: the objective h ---------------------------------------------------------------


@pytest.mark.parametrize("form", ["repaired", "repaired:smaller-cap", "sharp"])
def test_theorem_b_4_1_bounds_the_gradient_of_h_not_of_f(form: str) -> None:
    algorithm = FixedWeights(1 / (30 * I), I, (2.0, 1.0, 1.0, 1.0))
    run = moments(algorithm, BOWLS, COINS, 300)
    comparison = confront(run, THEOREM_B_4_1, form)
    assert comparison.guarantee and not comparison.crossings.size and 0.01 < comparison.ratio[-1] < 0.2
    assert float(comparison.constants["H"].value) != pytest.approx(1.0)  # the gap of f is 1
    assert comparison.measure.of == "squared gradient norm of h"
    of_f = np.cumsum(run.gradient_norm_squared[:-1]) / np.arange(1, 301)
    assert comparison.measured[-1] != pytest.approx(of_f[-1], rel=0.05)


@pytest.mark.parametrize("diagonal", [True, False])
def test_the_exact_gradient_of_h_is_that_of_simulated_models(diagonal: bool) -> None:
    problem = random_quadratic(4, 3, shared=not diagonal, diagonal=diagonal, noise=0.2, seed=6)
    exact = confront(moments(UNEQUAL, problem, COINS, 12), THEOREM_B_4_1, "sharp", given={"delta": 5.0})
    run = simulate(UNEQUAL, problem, COINS, 12, seeds=range(600), record_models=True)
    drawn = confront(run, THEOREM_B_4_1, "sharp", problem=problem, participation=COINS, given={"delta": 5.0})
    assert drawn.standard_error is not None and exact.standard_error is None
    assert (np.abs(drawn.measured - exact.measured)[1:] < 4 * drawn.standard_error[1:]).all()
    assert drawn.bound == pytest.approx(exact.bound)


def test_theorem_1_at_its_own_steps_is_one_run_per_number_of_rounds() -> None:
    given = {"omega": np.array([2.0, 1, 1, 1]), "cgamma": 0.1, "cboth": 0.1}
    family = confront_family(
        THEOREM_1, BOWLS, COINS, [400, 1600], local_steps=I, form="repaired", given=given
    )  # fmt: skip
    assert family.guarantee and not family.crossings.size and family.rounds.tolist() == [400, 1600]
    steps = prescribed_algorithm(THEOREM_1, family.form, BOWLS, COINS, 400, local_steps=I, given=given)
    assert isinstance(steps, FixedWeights) and steps.weights == (2.0, 1.0, 1.0, 1.0)
    assert (steps.local_step_size, steps.server_multiplier) == (pytest.approx(0.1 / 20), pytest.approx(1.0))


def test_an_unbounded_h_has_no_gap() -> None:
    run = simulate(UNEQUAL, FAMILY["cosine"], COINS, 5, record_models=True)
    with pytest.raises(
        FedboundsError, match=r"H .* has no finite value: the weighted sum of the clients has no minimum"
    ):
        confront(run, THEOREM_B_4_1, "sharp", problem=FAMILY["cosine"], participation=COINS)


# --- the objective that is minimized instead --------------------------------------------------------------------

LINE = Quadratic([1.0], [[0.0], [1.0], [4.0], [10.0]], 0.3, [2.0])
RARE = Bernoulli(4, (0.05, 0.2, 0.5, 0.9), normalize=False)


@pytest.mark.parametrize(
    ("algorithm", "point"),
    [
        (AverageAll(0.02, 5), (0.2 + 2 + 9) / 1.65),  # 6.788
        (KnownParticipation(0.02, 5), 3.75),
        (FixedWeights(0.02, 5, (4, 3, 2, 1)), (0.6 + 4 + 9) / 2.7),
        (AverageParticipating(0.02, 5), None),
    ],
    ids=lambda a: getattr(a, "kind", ""),
)
def test_the_mean_model_of_constant_weights_settles_where_h_is_least(algorithm: Algorithm, point: float | None) -> None:
    """Exactly, for any step size and number of local steps, as all clients have one Hessian."""
    run = moments(algorithm, LINE, RARE, 4000)
    target = float(weighted_objective(LINE, objective_weights(algorithm, RARE)).minimizer())
    assert run.mean[-1, 0] == pytest.approx(target, rel=1e-12)
    assert point is None or target == pytest.approx(point, rel=1e-12)
    assert predicted_bias(algorithm, LINE, RARE) == pytest.approx(abs(run.mean[-1, 0] - 3.75), abs=1e-10)


def test_the_mean_over_participants_weighs_clients_as_enumeration_says() -> None:
    p, share = np.array(RARE.rates), np.zeros(4)
    for bits in product((0, 1), repeat=4):
        present = np.array(bits)
        share += np.prod(np.where(present, p, 1 - p)) * present / max(present.sum(), 1)
    weights = objective_weights(AverageParticipating(0.1, 1), RARE)
    assert weights == pytest.approx(share / share.sum(), rel=1e-12)


def test_fedau_with_a_fixed_cut_off_settles_at_its_own_objective() -> None:
    """c = (0, 1, 4, 10), p = (.05, .2, .5, .9): weights 1 - (1-p)^K; f is least at 3.75."""
    algorithm = FedAU(0.01, 2, 1.0, 5)
    target = float(weighted_objective(LINE, objective_weights(algorithm, RARE)).minimizer())
    assert target == pytest.approx(5.073528, abs=1e-6)
    flat = Quadratic([1.0], LINE.centers, 0.0, [5.0])
    run = simulate(algorithm, flat, RARE, 600, seeds=range(24), record_models=True, record_every=10)
    means = run.model[:, 15:, 0].mean(axis=1)
    error = means.std(ddof=1) / 24**0.5
    assert abs(means.mean() - target) < 4 * error < 0.4 < abs(means.mean() - 3.75)


def test_weights_of_fedau_tend_to_those_of_known_rates() -> None:
    biases = [predicted_bias(FedAU(0.1, 1, 1.0, K), LINE, RARE) for K in (1, 2, 5, 50, float("inf"))]
    assert (np.diff(biases) < 0).all() and biases[-1] == pytest.approx(0, abs=1e-12)
    assert biases[0] == pytest.approx(predicted_bias(AverageAll(0.1, 1), LINE, RARE))


@pytest.mark.parametrize(
    "problem",
    [
        BOWLS,
        random_quadratic(4, 2, shared=False),
        random_quadratic(4, 4, shared=False, diagonal=True),
        FAMILY["log-cosh"],
    ],
    ids=["shared", "different", "diagonal", "log-cosh"],
)
def test_a_weighted_objective_is_the_weighted_sum_of_the_clients(problem: Problem) -> None:
    phi = np.array([0.1, 0.2, 0.3, 0.4])
    h, x = (
        weighted_objective(problem, phi),
        torch.from_numpy(np.random.default_rng(0).normal(size=(5, problem.dimension))),
    )
    everyone = torch.arange(4)[None].expand(5, 4)
    local = problem.gradient(x[:, None].expand(5, 4, -1), everyone)
    torch.testing.assert_close(h.objective_gradient(x), torch.einsum("n,sni->si", torch.from_numpy(phi), local))
    least = h.minimizer()
    assert float(h.objective_gradient(least[None]).abs().max()) < 1e-9 and float(h.objective_gap(least)) < 1e-12
    assert (h.objective_gap(x) > 0).all()
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(h.objective_gap(x).sum(), x)
    torch.testing.assert_close(gradient, h.objective_gradient(x.detach()))


# --- Theorem 3 and Corollary 4 ----------------------------------------------------------------------------------


def test_theorem_3_bounds_the_weight_error_of_recorded_participation() -> None:
    problem, process = FAMILY["cosine"], COINS
    run = simulate(FedAU(GAMMA, I, 0.1, 3), problem, process, 40, seeds=range(60), record_participation=True)
    for form in ("explicit", "sharp"):
        comparison = confront(run, THEOREM_3, form, problem=problem, participation=process)
        assert comparison.valid[1:].all() and not comparison.covered_crossings.size and comparison.guarantee
    W = [weight_error(np.array(RATES), 3, T) for T in (10, 40)]
    assert comparison.standard_error is not None
    for at, exact in zip((9, 39), W, strict=True):
        assert abs(comparison.measured[at] - exact) < 4 * comparison.standard_error[at]


@pytest.mark.parametrize("form", ["repaired", "sharp"])
def test_corollary_4_sets_the_cut_off_and_both_steps(form: str) -> None:
    problem = FAMILY["log-cosh"]

    def run(algorithm: Algorithm, T: int):
        return simulate(algorithm, problem, COINS, T, seeds=range(8))

    family = confront_family(COROLLARY_4, problem, COINS, [10, 60], local_steps=I, form=form, run=run)
    assert family.guarantee and not family.crossings.size
    for T in (10, 60):
        algorithm = prescribed_algorithm(COROLLARY_4, family.form, problem, COINS, T, local_steps=I)
        assert isinstance(algorithm, FedAU)
        assert algorithm.cutoff == np.ceil(np.log(T) / (-2 * np.log(0.7)))
        assert algorithm.local_step_size == pytest.approx(min(1 / (I * T**0.5), GAMMA))


def test_known_rates_that_are_equal_have_the_rate_of_full_participation() -> None:
    equal = Bernoulli(4, 0.5, normalize=False)
    family = confront_family(APPENDIX_A_3, BOWLS, equal, [100, 400], local_steps=I, form="explicit")
    assert family.guarantee and family.label == "exact" and 0.01 < family.ratio[-1] < 0.1
    assert {family.evaluation.assumptions[name] for name in ("inverse-rates", "equal-rates")} == {"checked"}
    two = Bernoulli(4, (0.25, 0.25, 0.5, 1.0), normalize=False)  # S = 2 as well
    unequal = confront_family(APPENDIX_A_3, BOWLS, two, [100], local_steps=I, form="explicit")
    assert unequal.evaluation.assumptions["equal-rates"] == "violated" and not unequal.guarantee
    assert unequal.evaluation.assumptions["inverse-rates"] == "checked"
    family = confront_family(UNEQUAL_RATES, BOWLS, two, [100, 400], local_steps=I, form="explicit")
    assert family.guarantee and family.label == "exact" and 0.01 < family.ratio[-1] < 0.1
    assert float(family.evaluation.constants["Q"].value) == 2.75


def test_estimated_rates_and_rates_off_by_a_hundredth_are_not_known_ones() -> None:
    """At the steps that the result sets for the Q of these weights: FedAU's with K = 5 are at most 5."""
    off = tuple(1.01 / p for p in RATES)
    for Q, weighted in (
        (25 * 1.6 / 4 + 1 / 4, lambda gamma, eta: FedAU(gamma, I, eta, 5)),
        (1.01**2 * 91 / 48, lambda gamma, eta: FixedWeights(gamma, I, off, eta)),
    ):
        form = UNEQUAL_RATES.form("explicit")
        steps = prescribed_algorithm(UNEQUAL_RATES, form, BOWLS, COINS, 20, local_steps=I, given={"Q": Q})
        assert isinstance(steps, KnownParticipation)
        run = simulate(weighted(steps.local_step_size, steps.server_multiplier), BOWLS, COINS, 20)
        found = confront(run, UNEQUAL_RATES, "explicit", problem=BOWLS, participation=COINS)
        assert float(found.constants["Q"].value) == pytest.approx(Q)
        assert found.evaluation.assumptions["inverse-rates"] == "violated" and not found.guarantee


# --- what no theorem covers -------------------------------------------------------------------------------------

UNCOVERED = [
    (AverageParticipating(GAMMA, I), COINS, "depend on participation in the same round"),
    (FedVarp(GAMMA, I), COINS, "adds stored updates"),
    (MIFA(GAMMA, I), COINS, "adds stored updates"),
    (FedAU(GAMMA, I, rate=0.1), COINS, "exponentially weighted"),
    (FedAvg(GAMMA, I), COINS, "not Algorithm 1 with aggregation weights"),
    (GeneralizedFedAvg(GAMMA, I), COINS, "not Algorithm 1 with aggregation weights"),
    (FedAU(GAMMA, I), Markovian(4, RATES), "markovian participation: .*Assumption 4"),
    (KnownParticipation(GAMMA, I), CyclicClients(4, RATES, cycle=10), "cyclic-clients participation: .*Assumption 4"),
    (AverageAll(GAMMA, I), Bernoulli(4, (0.5, 0.0, 1, 1), normalize=False), "client 1 never takes part"),
]


@pytest.mark.parametrize(("algorithm", "process", "words"), UNCOVERED, ids=lambda v: getattr(v, "kind", ""))
def test_runs_that_no_theorem_covers_are_refused_in_one_line(
    algorithm: Algorithm, process: Process, words: str
) -> None:
    run = simulate(algorithm, BOWLS, process, 3)
    with pytest.raises(FedboundsError, match=words) as error:
        confront(run, THEOREM_2, problem=BOWLS, participation=process)
    assert "\n" not in str(error.value) and str(why_no_bound(algorithm, process)) in str(error.value)


@pytest.mark.parametrize("process", [COINS, Bernoulli(4, RATES), Full(4)], ids=["coins", "normalized", "full"])
def test_independent_participation_is_covered_however_its_weights_are_normalized(process: Process) -> None:
    """FedAU looks at who takes part, not at the weights that a process draws."""
    assert why_no_bound(FedAU(GAMMA, I), process) is None
    run = simulate(FedAU(GAMMA, I, 0.1, 3), FAMILY["cosine"], process, 5)
    comparison = confront(run, THEOREM_2, "explicit", problem=FAMILY["cosine"], participation=process)
    assert comparison.guarantee
    assert (comparison.terms["weight error"] == 0).all() == isinstance(process, Full)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: confront(moments(UNEQUAL, BOWLS, COINS, 5), THEOREM_2, interval=2), "have no interval"),
        (
            lambda: confront(moments(UNEQUAL, BOWLS, COINS.matrix(5, np.random.default_rng(0))), THEOREM_2),
            "client 0 never takes part in its 5 rounds",
        ),
        (lambda: confront(moments(UNEQUAL, BOWLS, COINS, 5), COROLLARY_4, "sharp"), "sets K = .* the run has no K"),
        (
            lambda: confront(simulate(FedAU(GAMMA, I), BOWLS, COINS, 5), THEOREM_3, problem=BOWLS, participation=COINS),
            "record_participation=True",
        ),
        (lambda: confront(moments(UNEQUAL, BOWLS, COINS, 5), THEOREM_3), "the result bounds: mean over clients"),
        (
            lambda: confront(simulate(UNEQUAL, BOWLS, COINS, 5), THEOREM_B_4_1, problem=BOWLS, participation=COINS),
            "record_models=True",
        ),
        (
            lambda: confront(moments(UNEQUAL, random_quadratic(4, 3, shared=False), COINS, 5), THEOREM_B_4_1),
            "different dense Hessians",
        ),
        (
            lambda: confront_family(COROLLARY_4, FAMILY["cosine"], COINS, [9], local_steps=1, form="explicit"),
            "sets no cut-off: give K",
        ),
        (
            lambda: confront_family(COROLLARY_4, FAMILY["cosine"], Markovian(4, RATES), [9], local_steps=1),
            "Bernoulli",
        ),
        (lambda: objective_weights(FedVarp(0.1, 1), COINS), "what fedvarp minimizes is not known"),
        (lambda: objective_weights(AverageAll(0.1, 1), Markovian(4, RATES)), "under Bernoulli participation, not mark"),
        (lambda: weighted_objective(BOWLS, [0.5, 0.5]), "must be 4 numbers >= 0"),
        (lambda: weighted_objective(BOWLS, [2.0, -1, 0, 0]), "must be 4 numbers >= 0"),
        (
            lambda: weighted_objective(BoundedGradient([[1.0], [-1.0]], [0.5]), [1, 0]).minimizer(),
            "slope outweighs its bowl",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_in_one_line(call: Callable[[], object], words: str) -> None:
    with pytest.raises(FedboundsError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("form", "K"), [("sharp", 2), ("sharp", 4), ("sharp", 6), ("repaired", 2), ("printed", 2)])
def test_a_run_with_another_cut_off_than_the_corollary_sets_is_reported_both(form: str, K: int) -> None:
    """At T = 5 the corollary has K = log 5/(2 log(10/7)) = 2.26, rounded up to 3 where it must be whole."""
    run = simulate(FedAU(GAMMA, I, 0.1, K), BOWLS, COINS, 5)
    with pytest.raises(FedboundsError, match=rf"corollary-4 sets K = .* the run has {K}; make the run with K = "):
        confront(run, COROLLARY_4, form, problem=BOWLS, participation=COINS)


@pytest.mark.parametrize("form", ["explicit", "sharp"])
def test_known_rates_that_are_unequal_have_a_guarantee_without_a_bounded_gradient(form: str) -> None:
    """Q = (1/4)(1/.3 + 1/.5 + 1/.8 + 1) = 91/48, no weight error: the number of Corollary 4, whatever G is."""
    family = confront_family(UNEQUAL_RATES, BOWLS, COINS, [100, 400], local_steps=I, form=form)
    assert family.guarantee and family.label == "exact" and 0.01 < family.ratio[-1] < 0.2
    found = {
        name: float(family.evaluation.constants[name].value) for name in ("L", "F", "I", "N", "sigma", "delta", "Q")
    }
    assert found["Q"] == pytest.approx(91 / 48)
    if form == "explicit":
        for G in (0, 7):
            there = evaluate(COROLLARY_4, found | dict(T=400, W=0, G=G), form="explicit")
            assert family.bound[-1] == pytest.approx(float(there.value), rel=1e-12)


def test_a_comparison_is_the_theorem_evaluated_by_hand() -> None:
    """The same numbers from p, K, T and the problem's constants alone."""
    problem, algorithm = FAMILY["cosine"], at_the_cap(3, 30)
    comparison = confront(
        simulate(algorithm, problem, COINS, 30), THEOREM_2, "sharp:mean-Q", problem=problem, participation=COINS
    )
    stated = {n: c for n, c in problem.constants().items() if n not in ("strong_convexity", "clients")}
    by_hand = evaluate(
        THEOREM_2,
        {**stated, "p": np.array(RATES), "K": 3, "T": 30, "I": I, "gamma": GAMMA, "eta": algorithm.server_multiplier},  # pyright: ignore
        form="sharp:mean-Q",
    )
    assert comparison.bound[-1] == pytest.approx(float(by_hand.value), rel=1e-12)
