"""Lemmas 1 to 5 and Proposition 1 of Li et al. (2024) against numbers that are computed otherwise."""

from itertools import combinations, product

import numpy as np
import pytest

from fedbounds.bounds.evaluation import evaluate
from fedbounds.bounds.registry import load


def value(key, form, **constants):
    return float(evaluate(load(f"fedmrn/{key}"), constants, form=form).value)


@pytest.mark.parametrize(("step", "form"), [(0.25, "printed"), (0.25, "sharp"), (0.4, "sharp")])
def test_lemma_4_has_its_coefficients(step, form):
    c = dict(L=1.0, mu=0.5, etat=step, Deltat=3.0, Gamma=0.7, V=0.2, Dt=0.9)
    heterogeneity = 6 * step**2 - (4 * step**3 if form == "sharp" else 0)
    drift = 2 - (2 * step + 0.5 * step if form == "sharp" else 0)
    expected = (1 - 0.5 * step) * 3 + heterogeneity * 0.7 + step**2 * 0.2 + drift * 0.9
    assert value("lemma-4", form, **c) == pytest.approx(expected, rel=1e-14)


def test_lemma_4_s_sharp_form_admits_steps_twice_as_long():
    c = dict(L=1.0, mu=0.5, etat=0.5, Deltat=1, Gamma=0, V=0, Dt=0)
    assert evaluate(load("fedmrn/lemma-4"), c, form="sharp").valid
    assert not evaluate(load("fedmrn/lemma-4"), c, form="printed").valid


def test_lemma_5_has_its_coefficients():
    c = dict(L=2.0, etat=0.3, gradsq=1.1, meansq=0.4, Dt=0.8, V=0.6, M=0.05)
    expected = -0.15 * 1.1 + (2 * 0.09 - 0.3) / 2 * 0.4 + 0.15 * 4 * 0.8 + 0.09 * 0.6 + 0.05
    for form in ("printed", "repaired"):
        assert value("lemma-5", form, **c) == pytest.approx(expected, rel=1e-13)


def test_lemma_2_is_four_times_the_walk_and_its_error_and_once_for_constant_steps():
    c = dict(etat=0.1, S=4, G=3.0, q=0.5)
    assert value("lemma-2", "repaired", **c) == pytest.approx(4 * 1.25 * 0.01 * 9 * 9, rel=1e-14)
    assert value("lemma-2", "sharp", **c) == pytest.approx(1.25 * 0.01 * 9 * 9, rel=1e-14)
    assert value("lemma-2", "sharp", **c | dict(S=1)) == 0


@pytest.mark.parametrize(("N", "K"), [(2, 1), (5, 1), (5, 3), (6, 6), (1, 1)])
def test_the_sampling_error_of_lemma_3_is_that_of_all_cohorts_counted(N, K):
    """Clients whose updates have length S eta G and mean zero: the mean of K of them has the printed square."""
    rng = np.random.default_rng(N * 10 + K)
    v = rng.normal(size=(N, 3))
    v -= v.mean(axis=0)
    spread = (v**2).sum(axis=1).mean()
    counted = np.mean([(v[list(some)].mean(axis=0) ** 2).sum() for some in combinations(range(N), K)])
    c = dict(etat=1.0, S=1, G=np.sqrt(spread) if N > 1 else 1.0, q=0.0, N=N, K=K)
    assert value("lemma-3", "sharp", **c) == pytest.approx(counted, rel=1e-12, abs=1e-14)
    assert value("lemma-3", "repaired", **c) == pytest.approx(4 * counted, rel=1e-12, abs=1e-14)


def test_the_noise_of_lemma_1_is_that_of_a_mean_of_independent_coins():
    signs = np.array(list(product((-1.0, 1.0), repeat=4))).mean(axis=1)
    assert value("lemma-1", "repaired", sigma=0.7, N=4) == pytest.approx(0.49 * (signs**2).mean(), rel=1e-14)


@pytest.mark.parametrize("S", [1, 2, 4, 9])
def test_progressive_masks_of_a_sparsifier_have_the_repaired_error_and_not_the_printed_one(S):
    """A coordinate 1 that is kept doubled with chance 1/2 has q = 1; with chance tau/S it is masked at all."""
    errors = [tau / S * (0.5 * (2 - 1) ** 2 + 0.5 * (0 - 1) ** 2) for tau in range(1, S + 1)]
    assert value("proposition-1", "repaired", q=1.0, S=S) == pytest.approx(np.mean(errors), rel=1e-14)
    blend = np.mean([(tau / S) ** 2 for tau in range(1, S + 1)])
    assert value("proposition-1", "printed", q=1.0, S=S) == pytest.approx(blend, rel=1e-14)
    assert S == 1 or blend < np.mean(errors)
