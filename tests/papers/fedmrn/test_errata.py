"""The errata of Li et al. (2024) against numbers that are computed otherwise."""

from fractions import Fraction

import numpy as np
import pytest

from fedbounds.bounds.evaluation import evaluate
from fedbounds.bounds.papers.fedmrn.errata_masks import binary_error, bound_11, prescribed_amplitude, signed_error
from fedbounds.bounds.papers.fedmrn.errata_moments import average_gradient, one_step_down
from fedbounds.bounds.registry import load


def moved(w, t, a, rng):
    """One iteration of FedMRN with S = 1 on w^2/2: a gradient at a masked model, a step, masks of amplitude a."""
    x = w + a * rng.choice([-1.0, 1.0], size=w.shape)
    u = -2 / (7 + t) * x
    up = np.clip((u + a) / (2 * a), 0, 1)
    return w + np.where(rng.random(w.shape) < up, a, -a)


def test_fedmrn_as_prescribed_is_never_near_the_minimizer_at_even_t_and_its_gap_grows():
    a, rng = float(prescribed_amplitude(1, 1)), np.random.default_rng(1)
    w, gaps = np.zeros(4000), {}
    for t in range(1, 801):
        w = moved(w, t, a, rng)
        gaps[t + 1] = w**2 / 2
    assert all(gaps[T].min() >= 8 / 49 * (1 - 1e-12) for T in range(2, 800, 2))
    assert gaps[800].mean() > 8 * gaps[80].mean() > 8 * 10 * float(bound_11(80, 0))
    assert gaps[800].mean() / 800 == pytest.approx(a**2 / 10, rel=0.1)  # (gamma + T) a^2/5 in the mean square
    assert gaps[800].mean() > 20 * float(bound_11(800, 1))


def test_the_bound_of_the_counterexample_is_that_of_theorem_1():
    c = dict(L=1, mu=1, sigma=0, G=1, q=3, Gamma=0, Delta1=0, N=1, K=1, S=1, T=44)
    got = evaluate(load("fedmrn/theorem-1"), c, form="repaired")
    assert float(got.value) == pytest.approx(float(bound_11(44, 3)), rel=1e-14)


def test_masks_have_the_errors_that_are_drawn():
    rng = np.random.default_rng(2)
    for u, n in ((0.3, 1.0), (0.25, 0.5), (0.0, 2.0)):
        draws = rng.random(200_000)
        signed = np.where(draws < (u + n) / (2 * n), n, -n)
        binary = np.where(draws < u / n, n, 0.0)
        for drawn, exact in ((signed, signed_error), (binary, binary_error)):
            assert drawn.mean() == pytest.approx(u, abs=0.02)
            assert ((drawn - u) ** 2).mean() == pytest.approx(float(exact(Fraction(u), Fraction(n))), abs=0.02)


def test_rare_peaks_move_two_clients_as_the_recursion_says():
    rng, M = np.random.default_rng(3), 4
    w, total = np.zeros(200_000), 0.0
    for _ in range(4):
        total += (w**2).mean() / 4
        noise = rng.choice([-M, 0, M], p=[1 / (2 * M), 1 - 1 / M, 1 / (2 * M)], size=(2, len(w))).mean(axis=0)
        w = w - (w + noise) / 2
    assert total == pytest.approx(float(average_gradient(M)[1]), rel=0.02)


def test_the_counterexample_to_lemma_5_ends_with_the_lipschitz_constant():
    """With L = 2, the largest size of the second derivative, (26) holds at the same points."""
    for q in (1, 6, 20):
        _, increase, (w, *points, _, _) = one_step_down(q)
        slopes = [float(-2 * x) for x in points]
        c = dict(L=2, etat=1 / 8, gradsq=float(4 * w**2), meansq=np.mean(np.square(slopes)), V=0, M=0)
        c["Dt"] = float(np.mean([float((x - w) ** 2) for x in points]))
        assert float(increase) <= float(evaluate(load("fedmrn/lemma-5"), c).value)
