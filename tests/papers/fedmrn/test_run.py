"""Runs of the analyzed algorithm against Theorems 1 and 2: what is a guarantee, and what keeps it from one."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import confront, confront_family
from fedbounds.empirical.comparison.compare_sweep import confront_sweep
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import majority_class_partition
from fedbounds.empirical.papers.fedmrn.algorithms import FedMRN
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN, analyzed_moments
from fedbounds.empirical.participation import Bernoulli, Full, WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, Quadratic, random_displaced
from fedbounds.empirical.simulation.moments.operators import masked_moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.sweep import resolve
from fedbounds.figures.papers.fedmrn.bounds import four_clients

CLIENTS, DIMENSION, COHORT, STEPS, T = 5, 3, 2, 3, 120
SOME = WithoutReplacement(CLIENTS, COHORT)
ETA = 1 / math.sqrt(T)
FOUR = four_clients()
PAIR = WithoutReplacement(4, 2)


@cache
def bounded(shape="cosine", law="signs"):
    return random_displaced(CLIENTS, DIMENSION, shape, noise=0.1, noise_law=law, seed=2)


def sure(problem):
    return problem.constants()["stochastic_gradient_bound"].value


def masks(problem, times=2.0, **more):
    """Theorem 2's, for the problem's own sure bound."""
    return AnalyzedFedMRN(ETA, STEPS, amplitude=times * ETA * STEPS * sure(problem), **more)


def against(algorithm, problem, form, *, key="fedmrn/theorem-2", some=SOME, iterations=T, seeds=6, **more):
    run = simulate(algorithm, problem, some, iterations, seeds=range(seeds))
    return confront(run, key, form, problem=problem, participation=some, **more)


@pytest.mark.parametrize("shape", ["cosine", "pseudo-huber"])
@pytest.mark.parametrize("form", ["repaired:R2", "sharp:R2", "sharp:masks", "explicit:any-amplitude"])
def test_theorem_2_is_a_guarantee_for_real_masks_where_gradients_are_bounded_surely(shape, form):
    problem = bounded(shape)
    found = against(masks(problem), problem, form)
    assert found.guarantee and not found.why_not and not found.crossings.size
    assert found.constants["G"].source == "exact" and found.constants["G"].value == pytest.approx(sure(problem))
    assert {c.source for c in found.constants.values()} <= {"exact", "given"}
    assert len(found.rounds) == (T if form.startswith("explicit") else 1)  # eta = 1/(L sqrt(T)) is of one T
    assert found.ratio[-1] > 0.02


def test_real_masks_have_a_guarantee_on_real_images():
    """The gradient of a sample of logistic regression is bounded, and so is that of every minibatch."""
    digits = load_dataset("digits")
    partition = majority_class_partition(digits.train_labels, 10, np.random.default_rng(0))
    images = ImageClassification(digits, partition, "linear", 16, gradient_norm=True, dtype=torch.float64)
    algorithm = AnalyzedFedMRN(1e-3, 2, amplitude=1e-3 * 2 * sure(images))
    found = against(algorithm, images, "explicit:any-amplitude", some=WithoutReplacement(10, 5), iterations=30, seeds=2)
    assert found.guarantee and not found.crossings.size


def test_progressive_masks_have_a_form_of_their_own():
    problem = bounded()
    assert against(masks(problem, progressive=True), problem, "sharp:progressive-masks").guarantee
    other = against(masks(problem, progressive=True), problem, "sharp:masks")
    assert not other.guarantee and other.evaluation.assumptions["signed-masks"] == "violated"
    plain = against(masks(problem), problem, "sharp:progressive-masks")
    assert plain.evaluation.assumptions["progressive-masking"] == "violated"


@pytest.mark.parametrize(("operator", "more", "q"), [
    ("sparsifier", {"keep": 0.5}, 1.0), ("norm-scaled-sign", {}, math.sqrt(DIMENSION - 1)),
])  # fmt: skip
def test_operators_with_a_relative_error_need_second_moments_alone(operator, more, q):
    """Gaussian noise is no obstacle to them."""
    problem = bounded("cosine", "gaussian")
    for form in ("sharp", "repaired"):
        found = against(AnalyzedFedMRN(ETA, STEPS, operator, **more), problem, form)
        assert found.guarantee and found.constants["q"].value == pytest.approx(q)
        G = math.sqrt(DIMENSION * (1 + 0.1**2))  # the slope of a cosine is 1 at most
        assert found.constants["G"].value == pytest.approx(G)
    with pytest.raises(FedboundsError, match="it is of signed masks"):
        against(AnalyzedFedMRN(ETA, STEPS, operator, **more), problem, "explicit:any-amplitude")


def test_gaussian_noise_and_small_amplitudes_are_no_guarantee():
    noisy = bounded("cosine", "gaussian")
    found = against(AnalyzedFedMRN(ETA, STEPS, amplitude=2 * ETA * STEPS * 3), noisy, "repaired:R2")
    assert found.evaluation.assumptions["surely-bounded-gradients"] == "violated" and not found.guarantee
    assert found.constants["G"].source == "trajectory" and found.constants["G"].value == pytest.approx(3)
    problem = bounded()
    small = against(masks(problem, 1.5), problem, "repaired:R2")
    assert small.evaluation.assumptions["signed-masks"] == "violated" and not small.guarantee
    assert any(note.startswith("the amplitude is ") and "the result makes it" in note for note in small.notes)
    assert against(masks(problem, 1.5), problem, "explicit:any-amplitude").guarantee  # which takes any from 1 on
    smaller = against(masks(problem, 0.5), problem, "explicit:any-amplitude")
    assert not smaller.valid.any() and not smaller.guarantee
    biased = against(masks(problem, 0.05), problem, "explicit:any-amplitude")
    assert biased.evaluation.assumptions["signed-masks-of-amplitude-a"] == "violated"
    assert any("left their bounds" in note for note in biased.notes)


def test_real_masks_have_no_q_and_a_given_one_is_doubted():
    problem = bounded()
    with pytest.raises(FedboundsError, match="no q satisfies Assumption 4: take a form for masks, as repaired:R1"):
        against(masks(problem), problem, "sharp")
    found = against(masks(problem), problem, "sharp", given={"q": 2.0})
    assert found.evaluation.assumptions["relative-error"] == "violated" and not found.guarantee
    assert any("q is given, and there is none" in why for why in found.why_not)


# --- Theorem 1 --------------------------------------------------------------------------------------------------------


def test_theorem_1_knows_the_gradient_bound_along_its_run_by_exact_moments():
    algorithm = AnalyzedFedMRN(0.25, 2, "norm-scaled-sign", step_shift=7)
    found = against(algorithm, FOUR, "sharp", key="fedmrn/theorem-1", some=PAIR, seeds=20)
    exact = masked_moments(
        FOUR, algorithm.masking, algorithm.step, iterations=T, local_steps=2, cohort=2, first=0
    )  # fmt: skip
    assert found.constants["G"].value == exact.gradient_bound and found.constants["G"].source == "trajectory"
    expected = {"L": 1, "mu": 1, "sigma": 0.1, "q": 1, "Gamma": 0.005, "Delta1": 0.13, "N": 4, "K": 2, "S": 2,
                "T": T + 1}  # fmt: skip
    for symbol, value in expected.items():
        assert found.constants[symbol].value == pytest.approx(value), symbol
    assert len(found.rounds) == T and not found.crossings.size  # its steps do not depend on T: a curve
    assert found.measured[-1] == pytest.approx(exact.objective_gap[-1], rel=0.5)
    assert found.why_not == ("G is known only along one run",)


def test_r1_covers_masks_whose_amplitude_falls():
    algorithm = AnalyzedFedMRN(2 / 24, 2, amplitude=2 * 2 / 24, amplitude_falls=True, step_shift=23)
    found = against(algorithm, FOUR, "repaired:R1", key="fedmrn/theorem-1", some=PAIR, given={"L": 3})
    assert found.evaluation.assumptions["signed-masks-per-round"] == "checked"
    assert found.evaluation.assumptions["surely-bounded-gradients"] == "violated"  # Gaussian noise
    assert found.constants["G"].value == pytest.approx(1) and not found.crossings.size


def test_r1_is_held_against_exact_moments_and_a_guarantee_where_a_sum_of_masks_bounds_gradients():
    """In so few iterations no path leaves (0.3 + 0.1 + ...): G = 2 is the sum of what masks can add."""
    still = Quadratic(np.ones((4, 2)), FOUR.centers.tolist(), x0=[0.3, -0.2])
    algorithm = AnalyzedFedMRN(2 / 24, 2, amplitude=2 * 2 / 24 * 2, amplitude_falls=True, step_shift=23)
    found = confront(analyzed_moments(algorithm, still, PAIR, 4), "fedmrn/theorem-1", "repaired:R1", given={"L": 3})
    reach = np.array([0.4, 0.3]) + algorithm.amplitude_in(0) + algorithm.amplitude_in(2)
    assert found.guarantee and found.constants["G"].value == pytest.approx(2) and np.linalg.norm(reach) < 2
    noisy = confront(analyzed_moments(algorithm, FOUR, PAIR, 4), "fedmrn/theorem-1", "repaired:R1", given={"L": 3})
    assert noisy.evaluation.assumptions["surely-bounded-gradients"] == "violated"
    assert not noisy.guarantee and any("updates may leave their bounds" in note for note in noisy.notes)
    long = confront(analyzed_moments(algorithm, still, PAIR, 40), "fedmrn/theorem-1", "repaired:R1", given={"L": 3})
    assert not long.guarantee and not long.valid[-1]


def test_masks_as_theorem_1_prescribes_them_cross_what_it_bounds():
    algorithm = AnalyzedFedMRN(2 / 24, 2, amplitude=8 / 23, step_shift=23)
    found = against(
        algorithm, FOUR, "repaired", key="fedmrn/theorem-1", some=PAIR, iterations=2002, seeds=8,
        given={"L": 3, "q": 0.0},
    )  # fmt: skip
    assert found.standard_error is not None
    assert abs(found.measured[-1] - 12.27) < 3 * found.standard_error[-1]  # the exact moments at t = 2003
    assert found.covered_crossings.size and "where it does not hold: relative-error" in found.revoked


@pytest.mark.parametrize(("algorithm", "key", "given", "told"), [
    (AnalyzedFedMRN(0.1, 2, "norm-scaled-sign"), 1, {}, "give step_shift = gamma"),
    (AnalyzedFedMRN(0.1, 2, "norm-scaled-sign", step_shift=7), 1, {}, "begins with the step size .* = 0.25 for"),
    (AnalyzedFedMRN(0.25, 2, "norm-scaled-sign", step_shift=7), 1, {"mu": 0.5}, "mu sets how the run's steps fall"),
    (AnalyzedFedMRN(0.125, 2, "norm-scaled-sign", step_shift=15), 1, {},
     "sets eta = 0.25 and gamma = 7 .* give local_step_size = 0.25 and step_shift = 7"),
    (AnalyzedFedMRN(0.25, 2, "norm-scaled-sign", step_shift=7), 2, {}, "leave step_shift out"),
    (FedMRN(0.1, 2, amplitude=0.1), 2, {}, "its participants alone compute, .*; run fedmrn-analysis"),
])  # fmt: skip
def test_runs_that_a_theorem_is_not_about_are_refused(algorithm, key, given, told):
    with pytest.raises(FedboundsError, match=told):
        against(algorithm, FOUR, None, key=f"fedmrn/theorem-{key}", some=PAIR, iterations=8, given=given)


def test_other_participation_is_refused():
    problem = bounded()
    with pytest.raises(FedboundsError, match="bernoulli participation: their K clients are drawn uniformly"):
        against(masks(problem), problem, "repaired:R2", some=Bernoulli(CLIENTS, 0.5))
    with pytest.raises(
        FedboundsError, match="no result for recorded participation: their K clients are drawn uniformly"
    ):
        against(masks(problem), problem, "repaired:R2", some=SOME.matrix(T, np.random.default_rng(0)))
    assert against(masks(problem), problem, "repaired:R2", some=Full(CLIENTS)).guarantee


def test_without_gradient_noise_the_masks_are_still_a_sample():
    problem = random_displaced(CLIENTS, DIMENSION, seed=2)
    found = against(masks(problem), problem, "repaired:R2", some=Full(CLIENTS), seeds=3)
    assert found.seeds == 3 and found.guarantee


# --- Families ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "given"), [
    ("sharp:R2", {"G": 2.0}), ("sharp:progressive-masks", {"G": 2.0}), ("sharp", {}), ("sharp", {"q": 1.0}),
])  # fmt: skip
def test_runs_are_made_with_the_steps_that_theorem_2_sets(form, given):
    problem = bounded()
    family = confront_family(
        "fedmrn/theorem-2", problem, SOME, [16, 64], local_steps=STEPS, form=form, given=given,
        run=lambda algorithm, rounds: simulate(algorithm, problem, SOME, rounds, seeds=(0, 1, 2)),
    )  # fmt: skip
    assert family.rounds.tolist() == [16, 64] and family.valid.all() and not family.crossings.size


def test_runs_are_made_with_the_steps_that_theorem_1_sets():
    def family(form, given):
        return confront_family(
            "fedmrn/theorem-1", FOUR, PAIR, [12, 40], local_steps=2, form=form, given=given,
            run=lambda algorithm, rounds: simulate(algorithm, FOUR, PAIR, rounds, seeds=(0, 1, 2)),
        )  # fmt: skip

    assert family("sharp", {}).why_not == ("G is known only along one run",)
    found = family("repaired:R1", {"L": 3, "G": 2.0}).evaluation.assumptions
    assert found["signed-masks-per-round"] == "checked"
    with pytest.raises(FedboundsError, match="sets the amplitude of masks by G: give G"):
        family("repaired:R1", {"L": 3})


def test_the_example_is_no_guarantee_on_a_network_and_one_on_logistic_regression(tmp_path):
    spec = tomllib.loads((Path(__file__).parents[3] / "examples" / "fedmrn.toml").read_text(encoding="utf-8"))
    short = {**spec, "rounds": 8, "seeds": 1, "seeds_per_run": 1, "record_every": 8}
    linear = {**short, "name": "linear", "problem": {**spec["problem"], "network": "linear"},
              "algorithm": {**spec["algorithm"], "amplitude": 0.055}}  # fmt: skip
    for table, sources in ((short, {"estimated", "trajectory", "exact", "given"}), (linear, {"exact", "given"})):
        found = confront_sweep(resolve(table), "fedmrn/theorem-2", "explicit:any-amplitude", results=tmp_path)
        (one,) = found.values()
        assert one.guarantee == (table is linear) and one.valid.all() and not one.crossings.size
        assert {c.source for c in one.constants.values()} == sources


def test_a_form_that_cannot_speak_of_masks_is_refused_before_any_run(tmp_path):
    spec = tomllib.loads((Path(__file__).parents[3] / "examples" / "fedmrn.toml").read_text(encoding="utf-8"))
    with pytest.raises(FedboundsError, match=r"needs q, which is not known: signed masks .* take a form for masks"):
        confront_sweep(resolve(spec), "fedmrn/theorem-2", results=tmp_path)
    with pytest.raises(FedboundsError, match=r"has steps that fall, .*: give step_shift = gamma"):
        confront_sweep(resolve(spec), "fedmrn/theorem-1", "repaired:R1", results=tmp_path)
    assert not any(tmp_path.iterdir())
