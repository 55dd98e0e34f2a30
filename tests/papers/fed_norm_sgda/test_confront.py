"""Runs of minimax algorithms against the theorems of Sharma et al. (2023): measured, known, covered, refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.algorithms import heavy_ball, proximal
from fedbounds.empirical.comparison.compare_run import confront, confront_family, prescribed_algorithm
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA, LocalSGDA
from fedbounds.empirical.participation import Bernoulli, Full, WithoutReplacement
from fedbounds.empirical.problems import BoundedMinimax, OnePointMinimax, random_quadratic_minimax, toy_example
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate

THEOREM_1, AT_ITS_STEPS = load("fed-norm-sgda/theorem-1"), load("fed-norm-sgda/theorem-1-at-its-steps")
THEOREM_3, THEOREM_4 = load("fed-norm-sgda/theorem-3"), load("fed-norm-sgda/theorem-4")
COROLLARY_1_1, COROLLARY_2_1 = load("fed-norm-sgda/corollary-1.1"), load("fed-norm-sgda/corollary-2.1")
UNEVEN = (1, 2, 3, 4)
HALF = WithoutReplacement(4, 2)


def quadratic():
    return random_quadratic_minimax(4, 2, 3, heterogeneity=0.5, noise=0.2, condition=2.0)


def careful(steps=UNEVEN, **fields):
    """Inside the caps of Theorem 1 on `quadratic()`."""
    return FedNormSGDA(2e-4, 1e-3, 2e-6, 2e-3, local_steps=steps, **fields)


def concave(kind=BoundedMinimax):
    slopes = [[1.0, -0.5], [-1.0, 0.5], [0.2, 0.1], [-0.2, -0.1]]
    if kind is OnePointMinimax:
        return OnePointMinimax(slopes, ripple=0.3, depth=0.5, bend=0.8, noise=0.1, x0=[1.0, -1.0])
    ascent = [[0.3, 0.1], [0.1, 0.1], [-0.2, 0.0], [0.0, 0.1]]
    return BoundedMinimax(slopes, ascent, ripple=0.3, depth=0.5, bend=0.8, noise=0.1, x0=[1.0, -1.0])


def plus(period=5, **fields):
    """Inside the caps of Theorem 4 on `concave()`."""
    return FedNormSGDA(1e-3, 1e-3, 1e-3, 5e-3, local_steps=UNEVEN, snapshot_period=period, **fields)


# --- Theorem 1 --------------------------------------------------------------------------------------------------------


def test_an_exact_run_inside_the_caps_has_a_guarantee_and_keeps_it():
    run = moments(careful(), quadratic(), HALF, 40)
    comparison = confront(run, THEOREM_1)
    assert comparison.guarantee, comparison.why_not
    assert comparison.label == "exact" and comparison.crossings.size == 0 and comparison.standard_error is None
    norms = run.envelope_gradient_norm_squared()
    assert comparison.measured == pytest.approx([norms[:T].mean() for T in range(1, 41)])
    told = {name: c.value for name, c in quadratic().constants().items() if hasattr(c, "value")}
    by_hand = dict(
        Lf=told["smoothness"], mu=told["strong_concavity"], sigmaL=told["gradient_noise"], betaL=0, betaG=1,
        sigmaG=told["weighted_heterogeneity"], Delta=told["initial_gap"], delta0=told["initial_dual_gap"],
        tau=UNEVEN, w=[0.25] * 4, P=2, T=40, etax=2e-4, etay=1e-3, gammax=2e-6, gammay=2e-3,
    )  # fmt: skip
    assert comparison.bound[-1] == pytest.approx(float(evaluate(THEOREM_1, by_hand).value), rel=1e-12)
    kinds = {c.source for c in comparison.constants.values()}
    assert kinds <= {"exact", "given", "derived"}


def test_as_many_rounds_as_clients_do_not_mix_them_up():
    comparison = confront(moments(careful(), quadratic(), HALF, 4), THEOREM_1)
    assert comparison.rounds.size == 4 and comparison.evaluation.constants["w"].value.shape == (4,)
    longer = confront(moments(careful(), quadratic(), HALF, 5), THEOREM_1)
    assert comparison.bound == pytest.approx(longer.bound[:4], rel=1e-12)


def test_naive_averaging_is_held_against_the_objective_that_it_steps_along():
    naive, problem = LocalSGDA(2e-6, 2e-3, local_steps=UNEVEN), quadratic()
    run = moments(naive, problem, HALF, 30)
    comparison = confront(run, THEOREM_1)
    w = np.array(UNEVEN) / 10
    assert comparison.constants["w"].value == pytest.approx(w)
    assert comparison.measured[-1] == pytest.approx(run.envelope_gradient_norm_squared(w)[:30].mean())
    assert float(comparison.constants["Delta"].value) == pytest.approx(
        float(problem.surrogate(w).constants()["initial_gap"].value)
    )
    assert float(comparison.constants["taueff"].value) == pytest.approx(2.5)
    assert abs(run.envelope_gradient_norm_squared(w)[0] - run.envelope_gradient_norm_squared()[0]) > 1e-3


def test_a_simulation_measures_the_weighted_envelope_from_its_models():
    naive, problem = LocalSGDA(0.02, 0.05, local_steps=UNEVEN), quadratic()
    trace = simulate(naive, problem, HALF, 30, seeds=range(200), record_models=True)
    sampled = confront(trace, THEOREM_1, problem=problem, participation=HALF)
    exact = confront(moments(naive, problem, HALF, 30), THEOREM_1)
    assert sampled.label == "mean of 200 seeds"
    assert abs(sampled.measured[-1] - exact.measured[-1]) < 4 * sampled.standard_error[-1]
    assert sampled.standard_error[-1] < 0.05 * exact.measured[-1]
    blind = simulate(naive, problem, HALF, 3, seeds=[0])
    with pytest.raises(FedboundsError, match="record_models=True"):
        confront(blind, THEOREM_1, problem=problem, participation=HALF)
    even = simulate(careful(), problem, HALF, 3, seeds=[0])
    assert confront(even, THEOREM_1, problem=problem, participation=HALF).guarantee


def test_coefficients_of_momentum_are_those_that_the_theory_derives():
    algorithm = careful(optimizer=heavy_ball(0.5))
    constants = confront(moments(algorithm, quadratic(), HALF, 3), THEOREM_1).constants
    given = {name: constants[name].value for name in ("Lf", "mu", "sigmaL", "sigmaG", "Delta", "delta0")}
    steps = dict(etax=2e-4, etay=1e-3, gammax=2e-6, gammay=2e-3, betaL=0, betaG=1)
    derived = evaluate(THEOREM_1, given | steps | dict(tau=UNEVEN, w=[0.25] * 4, P=2, T=3, rho=0.5)).constants
    for name in ("a1", "a2", "alast", "amax", "taueff", "A_w", "C_w", "D"):
        assert np.asarray(constants[name].value) == pytest.approx(np.asarray(derived[name].value), rel=1e-12)


def test_runs_at_the_prescribed_steps_are_one_point_each_and_stay_below():
    horizons = [50, 400]
    family = confront_family(AT_ITS_STEPS, quadratic(), HALF, horizons, local_steps=2)
    assert family.rounds.tolist() == horizons and family.crossings.size == 0
    assert family.notes[-1].startswith("one run per T")
    algorithm = prescribed_algorithm(AT_ITS_STEPS, AT_ITS_STEPS.form(), quadratic(), HALF, 400, local_steps=2)
    L, kappa = (float(family.constants[name].value) for name in ("Lf", "kappa"))
    assert algorithm.server_ascent_step_size == pytest.approx(np.sqrt(2 / (2 * 400)) / L)
    assert algorithm.server_step_size == pytest.approx(algorithm.server_ascent_step_size / (156 * kappa**2))
    with pytest.raises(FedboundsError, match="sets gammay"):
        confront(moments(careful((2, 2, 2, 2)), quadratic(), HALF, 5), AT_ITS_STEPS)


# --- Theorems 3 and 4 -------------------------------------------------------------------------------------------------


def test_the_radius_of_theorem_4_is_known_along_one_run_only_and_never_a_guarantee():
    problem = concave()
    trace = simulate(plus(), problem, HALF, 20, seeds=range(4))
    comparison = confront(trace, THEOREM_4, problem=problem, participation=HALF)
    assert not comparison.guarantee
    assert set(comparison.why_not) == {
        "R is known only along one run",
        "assumptions neither checked nor assumed: bounded-ascent",
    }
    R, reach = float(comparison.constants["R"].value), float(problem.constants()["best_response_bound"].value)
    assert comparison.constants["R"].source == "trajectory"
    assert max(trace.ascent_norm_squared[:, :-1].max(), reach) <= R
    assert comparison.rounds[comparison.valid].tolist() == [5, 10, 15, 20]  # whole blocks of S
    assert comparison.crossings.size == 0
    assert comparison.measured[0] == pytest.approx(trace.moreau_gradient_norm_squared[:, 0].mean())
    anywhere = confront(trace, THEOREM_4, "sharp:any-T", problem=problem, participation=HALF)
    assert anywhere.valid.all() and (anywhere.bound >= comparison.bound).all()


def test_one_point_concave_clients_are_covered_by_theorem_3_and_not_by_theorem_4():
    problem = concave(OnePointMinimax)
    trace = simulate(plus(), problem, Full(4), 10, seeds=[0])
    three, four = (confront(trace, r, problem=problem, participation=Full(4)) for r in (THEOREM_3, THEOREM_4))
    assert not any("concave" in why for why in three.why_not)
    assert any("concave" in why and "violated" in why for why in four.why_not)
    assert three.bound == pytest.approx(four.bound)
    bounded = simulate(plus(), concave(), Full(4), 10, seeds=[0])
    assert any(
        "one-point-concave" in w for w in confront(bounded, THEOREM_3, problem=concave(), participation=Full(4)).why_not
    )


def test_a_concave_problem_without_strong_concavity_is_not_covered_by_theorem_1():
    problem = concave()
    trace = simulate(careful(), problem, HALF, 5, seeds=[0])
    with pytest.raises(FedboundsError, match="almost linear"):
        confront(trace, THEOREM_1, problem=problem, participation=HALF)


# --- Corollaries ------------------------------------------------------------------------------------------------------


def test_the_mismatch_of_corollary_1_1_is_measured_and_covered():
    naive, problem = LocalSGDA(0.01, 0.05, local_steps=UNEVEN), quadratic()
    run = moments(naive, problem, HALF, 200)
    comparison = confront(run, COROLLARY_1_1)
    w, p = np.array(UNEVEN) / 10, np.full(4, 0.25)
    assert float(comparison.constants["chi2"].value) == pytest.approx(np.sum((w - p) ** 2 / w))
    slopes = problem.slopes.numpy()[:, 2:]
    concavity = float(problem.constants()["strong_concavity"].value)
    assert float(comparison.constants["lag"].value) == pytest.approx(np.sum(((w - p) @ slopes / concavity) ** 2))
    assert comparison.constants["lag"].source == "trajectory" and not comparison.guarantee
    assert comparison.crossings.size == 0 and comparison.ratio[0] > 0.01
    trace = simulate(naive, problem, HALF, 200, seeds=range(20), record_models=True, record_every=10)
    sampled = confront(trace, COROLLARY_1_1, problem=problem, participation=HALF)
    assert float(sampled.constants["lag"].value) == pytest.approx(float(comparison.constants["lag"].value))
    same = confront(moments(careful(), problem, HALF, 20), COROLLARY_1_1)
    assert float(same.constants["lag"].value) == float(same.constants["chi2"].value) == 0
    assert same.bound == pytest.approx([float(same.constants["epsopt"].value)] * 20, rel=0.1)


def test_the_mismatch_of_proximal_points_is_measured_and_covered():
    naive, problem = FedNormSGDA(0.01, 0.05, 0.01, 0.05, local_steps=UNEVEN, normalized=False), quadratic()
    exact = confront(moments(naive, problem, HALF, 40), COROLLARY_2_1)
    trace = simulate(naive, problem, HALF, 40, seeds=range(100), record_models=True)
    sampled = confront(trace, COROLLARY_2_1, problem=problem, participation=HALF)
    for name in ("epsbar", "proxlag"):
        assert float(sampled.constants[name].value) == pytest.approx(float(exact.constants[name].value), rel=0.05)
    assert exact.crossings.size == 0 and exact.ratio[0] > 0.1


def test_exact_moreau_gradients_are_those_of_the_models():
    problem = quadratic()
    run = moments(careful(), problem, HALF, 3)
    start = problem.split(problem.initial_point(np.random.default_rng(0)))[0]
    expected = float(problem.moreau_gradient(start[None]).square().sum())
    assert run.moreau_gradient_norm_squared()[0] == pytest.approx(expected, rel=1e-9)
    random = torch.from_numpy(np.random.default_rng(1).multivariate_normal(run.mean[3], run.covariance[3], 100_000))
    sampled = problem.moreau_gradient(problem.split(random)[0]).square().sum(-1)
    assert abs(run.moreau_gradient_norm_squared()[3] - float(sampled.mean())) < 4 * float(sampled.std()) / 1e5**0.5


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "participation", "message"),
    [
        (careful(optimizer=proximal(0.9)), HALF, "coefficients that never shrink"),
        (careful({"low": 1, "high": 3}), HALF, "drawn or change"),
        (careful(((1, 2, 3, 4), (2, 2, 2, 2), (1, 1, 1, 1))), HALF, "drawn or change"),
        (careful(), Bernoulli(4, 0.5), "bernoulli participation"),
    ],
)
def test_runs_that_no_theorem_covers_are_refused_with_the_reason(algorithm, participation, message):
    trace = simulate(algorithm, quadratic(), participation, 3, seeds=[0])
    with pytest.raises(FedboundsError, match=message):
        confront(trace, THEOREM_1, problem=quadratic(), participation=participation)
    with pytest.raises(FedboundsError, match=r"no result of Sharma et al\. 2023 covers this run"):
        confront(trace, COROLLARY_1_1, problem=quadratic(), participation=participation)


def test_snapshots_belong_to_theorem_4_and_models_to_theorem_1():
    problem = quadratic()
    with pytest.raises(FedboundsError, match="give the algorithm a snapshot_period"):
        confront(moments(careful(), problem, HALF, 4), THEOREM_4)
    trace = simulate(careful(snapshot_period=2), problem, HALF, 4, seeds=[0])
    with pytest.raises(FedboundsError, match="the run has snapshots"):
        confront(trace, THEOREM_1, problem=problem, participation=HALF)
    with pytest.raises(FedboundsError, match="have no interval"):
        confront(moments(careful(), problem, HALF, 4), THEOREM_1, interval=2)


def test_other_results_and_other_algorithms_are_reported_apart():
    with pytest.raises(FedboundsError, match="no player that ascends"):
        confront(moments(FedAvg(0.1, 1), toy_example(), Full(3), 4), THEOREM_1)
    with pytest.raises(FedboundsError, match="the result bounds"):
        confront(moments(careful(), quadratic(), HALF, 4), load("fed-norm-sgda/lemma-b.4"))
    with pytest.raises(FedboundsError):
        confront(moments(careful(), quadratic(), HALF, 4), load("arbitrary-participation/theorem-3.1"))
