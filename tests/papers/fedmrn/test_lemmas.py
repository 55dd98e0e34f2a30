"""Lemmas 1 to 5 and Proposition 1 of Li et al. (2024) against numbers that are computed otherwise."""

from itertools import combinations, product

import numpy as np
import pytest

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load


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
    assert value("lemma-1", "printed", sigma=0.7, N=4) == pytest.approx(0.49 * (signs**2).mean(), rel=1e-14)


@pytest.mark.parametrize("S", [1, 2, 4, 9])
def test_progressive_masks_of_a_sparsifier_have_the_repaired_error_and_not_the_printed_one(S):
    """A coordinate 1 that is kept doubled with chance 1/2 has q = 1; with chance tau/S it is masked at all."""
    errors = [tau / S * (0.5 * (2 - 1) ** 2 + 0.5 * (0 - 1) ** 2) for tau in range(1, S + 1)]
    assert value("proposition-1", "repaired", q=1.0, S=S) == pytest.approx(np.mean(errors), rel=1e-14)
    blend = np.mean([(tau / S) ** 2 for tau in range(1, S + 1)])
    assert value("proposition-1", "printed", q=1.0, S=S) == pytest.approx(blend, rel=1e-14)
    assert S == 1 or blend < np.mean(errors)


def test_lemma_4_holds_for_masked_models_that_are_no_more_than_points():
    """Quadratics, and masked models anywhere: none of their means is that of what they mask."""
    rng, ratios = np.random.default_rng(5), []
    for _ in range(4000):
        N, d, mu = int(rng.integers(1, 4)), int(rng.integers(1, 3)), rng.choice([1.0, 0.5, 0.05])
        h = rng.choice([mu, 1.0], size=(N, d))
        c = rng.normal(size=(N, d)) * rng.choice([0.0, 1.0])
        best = (h * c).sum(axis=0) / h.sum(axis=0)
        gap = (h * (best - c) ** 2).sum() / (2 * N)
        away = rng.normal(size=d)
        shift = rng.uniform(-1, 2) * away * (rng.random() < 0.5) + rng.normal(size=(N, d)) * rng.choice([0.0, 0.3, 1.0])
        b, x, step = best + away, best + away - shift, rng.choice([0.25, 0.1])
        left = ((away - step * (h * (x - c)).mean(axis=0)) ** 2).sum()
        constants = dict(L=1.0, mu=mu, etat=step, Deltat=(away**2).sum(), Gamma=gap, V=0.0)
        right = printed_lemma_4(**constants, Dt=((b - x) ** 2).sum(axis=1).mean())
        ratios.append(left / right)
    assert 0.9 < max(ratios) <= 1


def printed_lemma_4(L, mu, etat, Deltat, Gamma, V, Dt):
    """(19)."""
    return (1 - etat * mu) * Deltat + 6 * L * etat**2 * Gamma + etat**2 * V + 2 * Dt


def assumed(key, form):
    return {a.name for a in load(f"fedmrn/{key}").form(form).assumptions}


def test_lemmas_4_and_5_as_printed_assume_nothing_of_the_masks():
    masks = {"relative-error", "independent-masks", "first-moment-masking"}
    for key, more in (("lemma-4", {"strongly-convex"}), ("lemma-5", set())):
        names = {"quadratic-upper-bound", "uniform-sampling", "martingale-noise"} | more
        assert assumed(key, "printed") == names and not names & masks
    assert {"relative-error", "independent-masks"} <= assumed("lemma-4", "sharp")


@pytest.mark.parametrize(("N", "K"), [(2, 1), (2, 2), (5, 3)])
def test_lemma_3_as_printed_has_one_c_that_needs_two_clients(N, K):
    c = dict(etat=0.1, S=3, G=2.0, q=0.5, N=N, K=K)
    expected = 4 * (0.25 * (N - 1) + N - K) / (K * (N - 1)) * 0.01 * 9 * 4
    assert value("lemma-3", "printed", **c) == pytest.approx(expected, rel=1e-14)
    assert "N >= 2" in [condition.text for condition in load("fedmrn/lemma-3").form("printed").conditions]
