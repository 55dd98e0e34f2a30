"""Instances just outside what the forms assume, on which they fail: why each hypothesis says what it says.

Written without the paper package's own runs: iterations in floats, laws as arrays of probabilities.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fedmrn.errata_masks import sides_of_12
from fedbounds.bounds.papers.fedmrn.remarks import REMARK_2_CONVEX
from fedbounds.bounds.theory.registry import load, paper

NONCONVEX = load("fedmrn/theorem-2")


def bounds_of(form, T, **constants):
    return float(evaluate(NONCONVEX, constants | dict(T=T), form=form).value)


def averages(T, step, clients, start):
    """The mean of F'(w_t)^2 over t < T, for clients that upload what they are told to, every iteration."""
    w, total = start, 0.0
    for _ in range(T):
        total += np.mean([slope(w) for slope, _ in clients]) ** 2
        w += np.mean([-step * factor * slope(w) for slope, factor in clients])
    return total / T


def test_masks_that_are_drawn_once_for_all_are_unbiased_in_every_use_and_no_theorem_holds_for_them():
    """Client 1 uploads (1 + Z) u with the same Z = +-1 for ever; its u never depends on Z, as F_1 is linear.

    So E[S(u) | u] = u and E|S(u) - u|^2 = |u|^2, q = 1, and masks are independent of each other and of the noise.
    """

    def curved(w):
        return np.clip(2 * w, -3, 3)

    c = dict(L=2, sigma=0, G=3, q=1, N=2, K=2, S=1, F=0.125)  # F = (w + w^2)/2 near 0: F(0) - F(-1/2) = 1/8
    T = 4096
    step = 1 / (c["L"] * math.sqrt(T))
    left = np.mean([averages(T, step, [(lambda w: 1.0, 1 + z), (curved, 1)], 0.0) for z in (1, -1)])
    assert left > 3 * bounds_of("sharp", T, **c)
    afresh = np.random.default_rng(0)
    total, w = 0.0, np.zeros(2000)
    for _ in range(T):
        total += np.mean(((1 + curved(w)) / 2) ** 2) / T
        w = w - step * (1 + afresh.choice([-1.0, 1.0], 2000) + curved(w)) / 2
    assert total < bounds_of("sharp", T, **c)


def test_a_cohort_that_is_drawn_once_for_all_is_uniform_in_every_round_and_no_theorem_holds_for_it():
    c = dict(L=1, sigma=0, G=2, q=0, N=2, K=1, S=1, F=0)  # F_k = (w -+ 1)^2/2 near 0, from the minimizer
    T = 4096
    w = 1 - (1 - 1 / math.sqrt(T)) ** np.arange(T)  # client 1 alone
    assert np.mean(w**2) > 3 * bounds_of("sharp", T, **c)


def test_every_form_that_masks_or_draws_says_that_it_does_so_afresh():
    for result in paper("fedmrn").results:
        for form in result.forms:
            said = {a.name: a.statement for a in form.assumptions}
            if "relative-error" in said and result.key != "fedmrn/proposition-1":
                assert "drawn afresh at every use" in said["independent-masks"], (result.key, form.name)
            assert "independently of the past" in said.get("uniform-sampling", "independently of the past")


# --- Theorem 2 with one local step ------------------------------------------------------------------------------------


def asymmetric(w):
    """F': steeper above the minimizer 0 than below."""
    return np.where(w >= 0, np.minimum(w, 1.0), np.maximum(w / 2, -1.0))


def left_of_12(N, T=4):
    """The mean of E F'(w_t)^2 for N clients under masks of amplitude 1 and steps 1/2, exactly: laws on a lattice."""
    places, law, total = np.zeros(1), np.ones(1), 0.0
    for _ in range(T):
        total += float(law @ asymmetric(places) ** 2) / T
        upward = (1 - 0.25 * (asymmetric(places + 1) + asymmetric(places - 1))) / 2  # of every client by itself
        ends = places[:, None] + (2 * np.arange(N + 1) - N) / N
        after = law[:, None] * binom.pmf(np.arange(N + 1), N, upward[:, None])
        lattice, where = np.unique(np.round(ends * N).astype(int), return_inverse=True)
        places, law = lattice / N, np.bincount(where.ravel(), after.ravel())
    return total


@pytest.mark.parametrize("q", [0.5, 1])
def test_many_clients_with_one_local_step_exceed_theorem_2_as_printed_whatever_q_is_and_obey_the_form_for_masks(q):
    N = math.ceil(300 * q**2)
    c = dict(L=1, sigma=0, G=1, F=0, N=N, K=N, S=1, T=4)
    left = left_of_12(N)
    assert left > float(evaluate(NONCONVEX, c | dict(q=q), form="printed").value)
    for form in ("sharp:masks", "sharp:R2", "repaired:R2"):
        assert left < float(evaluate(NONCONVEX, c | dict(d=1), form=form).value)


def test_the_fractions_of_the_erratum_are_below_the_exact_law():
    for N in (3, 100, 600):
        assert float(sides_of_12(N, 1)[1]) < left_of_12(N)
        assert float(sides_of_12(N, 1)[0]) == pytest.approx(
            float(evaluate(NONCONVEX, dict(L=1, sigma=0, G=1, F=0, N=N, K=N, S=1, T=4, q=1), form="printed").value)
        )


# --- Theorem 1 with masks of the step's amplitude ---------------------------------------------------------------------


def steepest(G, gamma, S, T):
    """The largest |F'(x_t)| for F = w^2/2 from w_1 = 0 that masks may lead to in T - 1 iterations, all sure paths."""
    low = high = most = 0.0
    t = 1
    while t < T:
        a = 2 / (gamma + t) * S * G
        lowest = highest = 0.0  # of the update
        for step in [2 / (gamma + i) for i in range(t, min(t + S, T))]:
            most = max(most, high + a)
            lowest, highest = lowest - step * (high + a), highest - step * (low - a)
        assert highest <= a * (1 + 1e-12) or most > G  # never beyond the amplitude while G bounds the gradients
        low, high = low - a, high + a
        t += S
    return most


@pytest.mark.parametrize(("gamma", "S"), [(7, 1), (79, 1), (79, 4), (799, 10)])
def test_masks_of_the_step_s_amplitude_leave_every_bound_on_the_gradients_within_seven_tenths_of_gamma(gamma, S):
    """The form for such masks needs |F'| <= G surely; gradients are in proportion to G: one G stands for all."""
    last = 1 + S * math.ceil(0.65 * (gamma + 1) / S) + S
    assert steepest(1.0, gamma, S, last) > 1
    early = max(2, int(0.4 * gamma) - 2 * S)
    assert steepest(1.0, gamma, S, early) <= 1
    c = dict(L=(gamma + 1) / 8, mu=1, sigma=0, G=1, Gamma=0, Delta1=0, N=1, K=1, S=S, d=1)
    valid = [
        bool(evaluate(load("fedmrn/theorem-1"), c | dict(T=T), form="sharp:masks").valid) for T in (early, gamma + 3)
    ]
    assert valid == [True, False]


def test_the_rate_of_remark_2_does_not_rest_on_a_sure_bound():
    names = {a.name for a in REMARK_2_CONVEX.form("printed").assumptions}
    assert "surely-bounded-gradients" not in names and {"bounded-gradients", "relative-error"} <= names
