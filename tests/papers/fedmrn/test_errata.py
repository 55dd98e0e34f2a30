"""The errata of Li et al. (2024) against numbers that are computed otherwise."""

from fractions import Fraction

import numpy as np
import pytest

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fedmrn.errata_masks import binary_error, bound_11, prescribed_amplitude, signed_error
from fedbounds.bounds.papers.fedmrn.errata_moments import average_gradient, last_gap, masks_of_lemma_3, one_step_down
from fedbounds.bounds.theory.registry import load


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


def rarely_masked(x, M, rng):
    """(1 +- M) x with chance 1/(2M) each, else x."""
    return x * (1 + M * rng.choice([-1, 0, 1], p=[1 / (2 * M), 1 - 1 / M, 1 / (2 * M)], size=x.shape))


def test_rare_masks_move_two_clients_as_lemma_3_and_theorem_1_say():
    rng = np.random.default_rng(3)
    one = rarely_masked(np.ones((2, 400_000)), 8, rng).mean(axis=0)
    assert ((one - 1) ** 2).mean() == pytest.approx(float(masks_of_lemma_3().true), rel=0.02)
    clients = np.repeat([[1.0], [-1.0]], 2_000_000, axis=1)
    after = rarely_masked(clients / 4, 72, rng).mean(axis=0)
    assert (after**2).mean() / 2 == pytest.approx(float(last_gap(72)[1]), rel=0.03)


def test_the_sides_of_the_first_moment_errata_are_those_of_the_printed_forms():
    pair = dict(q=1, N=2, K=2, S=1, G=1)
    lemma = evaluate(load("fedmrn/lemma-3"), pair | dict(etat=1), form="printed")
    assert float(lemma.value) == float(masks_of_lemma_3().claimed) == 2
    convex = pair | dict(L=1, mu=1, sigma=0, Gamma=0.5, Delta1=0, T=2)
    theorem = evaluate(load("fedmrn/theorem-1"), convex, form="printed")
    assert float(theorem.value) == pytest.approx(float(last_gap(72)[0]), rel=1e-14)
    many = dict(L=1, sigma=0, F=0, G=2, q=1, N=128, K=128, S=1, T=4)
    nonconvex = evaluate(load("fedmrn/theorem-2"), many, form="printed")
    assert float(nonconvex.value) == pytest.approx(float(average_gradient(128)[0]), rel=1e-14)


def test_one_mask_of_many_is_far_off_as_often_as_the_replay_says():
    """128 clients at the minimizer, gradients +-1, one step of 1/2: |F'| is 1 where the mean model has moved by 1."""
    rng, total = np.random.default_rng(4), 0.0
    signs = np.repeat([1.0, -1.0], 64)[:, None]
    for _ in range(20):
        after = rarely_masked(np.broadcast_to(signs / 2, (128, 2000)), 256, rng).mean(axis=0)
        total += (np.clip(after, -1, 1) ** 2).mean() / 20
    assert total / 4 >= float(average_gradient(128)[1]) * 0.95


def test_the_counterexample_to_lemma_5_ends_with_the_lipschitz_constant():
    """With L = 2, the largest size of the second derivative, (26) holds at the same points."""
    for q in (1, 6, 20):
        _, increase, (w, *points, _, _) = one_step_down(q)
        slopes = [float(-2 * x) for x in points]
        c = dict(L=2, etat=1 / 8, gradsq=float(4 * w**2), meansq=np.mean(np.square(slopes)), V=0, M=0)
        c["Dt"] = float(np.mean([float((x - w) ** 2) for x in points]))
        assert float(increase) <= float(evaluate(load("fedmrn/lemma-5"), c).value)
