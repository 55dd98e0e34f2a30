"""Lemmas 1 and 2 of Das et al. (2022): their numbers, and rounds on every path."""

import numpy as np
import pytest

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.papers.tdcd.instances.premises import constants, rounds

LEMMA_1, LEMMA_2 = load("tdcd/lemma-1"), load("tdcd/lemma-2")


@pytest.mark.parametrize(("Q", "kappa"), [(1, 0.0), (2, 0.25), (5, 0.59456), (10, 0.797934), (10**6, 1.0972640)])
def test_what_the_paper_rounds_up_to_two_is_the_golden_kappa(Q, kappa):
    c = dict(Lmax=1.0, Q=Q, eta=1 / (2 * Q), G0=1.0)
    printed = float(evaluate(LEMMA_2, c, form="repaired").value)
    assert float(evaluate(LEMMA_2, c, form="sharp:kappa").value) / printed * 2 == pytest.approx(kappa, abs=1e-5)


@pytest.mark.parametrize("Q", [1, 2, 3, 10, 100, 1000])
def test_the_direct_sum_of_the_drift_is_a_tenth_of_the_printed_one_or_less(Q):
    """At most 0.3785 Q u^2 Lmax^2 for eta Q Lmax up to 1/8."""
    for x in (0.01, 1 / 16, 1 / 8):
        c = dict(Lmax=1.0, Q=Q, eta=x / Q, G0=1.0)
        direct, kappa, printed = (
            float(evaluate(LEMMA_2, c, form=form).value) for form in ("sharp:growth", "sharp:kappa", "repaired")
        )
        assert direct <= min(0.3785 * Q * x**2, printed / 10, kappa)


def test_lemma_1_adds_noise_and_gradient():
    for form in ("printed", "repaired"):
        assert float(evaluate(LEMMA_1, dict(sigmaj=0.5, gradsq=2), form=form).value) == 2.25


def test_lemma_2_holds_on_every_path_of_random_rounds_for_the_curvature_of_the_own_blocks():
    worst = 0.0
    for z in rounds(alike=False):
        g, c = z.steps[1][:-1], constants(z)
        drift = ((g - g[0]) ** 2).sum(axis=(-1, -2)).mean(axis=-1).sum(axis=0)  # (B, paths)
        first = (g[0] ** 2).sum(axis=(-1, -2)).mean(axis=-1)
        for form in ("repaired", "sharp:kappa", "sharp:growth"):
            numbers = {name: c[name] for name in ("Lmax", "eta")} | dict(Q=z.local_steps, G0=first)
            bound = evaluate(LEMMA_2, numbers, form=form)
            assert np.mean(bound.valid) > 0.8 and np.all((drift <= bound.value * (1 + 1e-12)) | ~bound.valid)
            if z.local_steps > 1 and form == "sharp:growth":
                worst = max(worst, float((drift / bound.value).max()))
    assert worst > 0.6  # half of it would not be enough
