"""Theorems 1 and 2 of Li et al. (2024): every form against a plain twin, golden numbers and exact scalar runs."""

import math

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.rounds import Never, Reached, rounds
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.theorem_latex import theorem

CONVEX, NONCONVEX = load("fedmrn/theorem-1"), load("fedmrn/theorem-2")
GOLDEN = dict(L=3, mu=1, sigma=0.1, G=1, Gamma=0.005, Delta1=0.13, N=4, K=2, S=2)


def random_setting(rng, *, least_clients=2):
    mu, sigma, G, q, Gamma, Delta1, F = np.exp(rng.normal(size=7))
    N = int(rng.integers(least_clients, 9))
    c = dict(L=mu * rng.uniform(1, 20), mu=mu, sigma=sigma, G=G, q=q, Gamma=Gamma, Delta1=Delta1, F=F, N=N)
    c |= dict(K=int(rng.integers(1, N + 1)), S=int(rng.integers(1, 40)), T=int(rng.integers(1, 500)))
    eta = 1 / (c["L"] * math.sqrt(c["T"]))
    return c | dict(d=int(rng.integers(1, 9)), eta=eta, a=rng.uniform(1, 3) * eta * c["S"] * G)


def sampling(N, K):
    return 0.0 if N == 1 else (N - K) / (K * (N - 1))


def twin_1(form, L, mu, sigma, G, q, Gamma, Delta1, F, N, K, S, T, d, eta, a):
    """Eq. (11) in plain floats."""
    kappa = L / mu
    gamma = max(8 * kappa, S) - 1
    B = sigma**2 / N + 6 * L * Gamma
    if form == "printed":
        B += 8 * (1 + q**2) * (S - 1) ** 2 * G**2
        B += 4 * (q**2 * (N - 1) + N - K) / (K * (N - 1)) * S**2 * G**2
    elif form == "repaired:R1":
        B += 8 * ((S - 1) ** 2 + d * S**2) * G**2 + 4 * (d / K + sampling(N, K)) * S**2 * G**2
    elif form == "sharp:masks":
        B += 8 * d * S**2 * G**2 + 4 * d / K * S**2 * G**2
    else:
        B += 8 * (1 + q**2) * (S - 1) ** 2 * G**2 + 4 * (q**2 / K + sampling(N, K)) * S**2 * G**2
    if form.startswith("sharp"):
        return L / (2 * (gamma + T)) * max(4 * B / mu**2, (gamma + 1) * Delta1)
    return kappa / (gamma + T) * (2 * B / mu + mu * (gamma + 1) / 2 * Delta1)


def twin_2(form, L, mu, sigma, G, q, Gamma, Delta1, F, N, K, S, T, d, eta, a):
    """Eq. (12) in plain floats."""
    if form == "printed":
        c = (q**2 * (N - 1) + N - K) / (K * (N - 1))
        P, Q = sigma**2 / N + 4 * c * S**2 * G**2, 4 * (1 + q**2) * (S - 1) ** 2 * G**2
    elif form in ("repaired", "explicit:any-step"):
        c = q**2 / K + sampling(N, K)
        P, Q = sigma**2 / N + 4 * c * S**2 * G**2, 4 * (1 + q**2) * (S - 1) ** 2 * G**2
    elif form == "sharp":
        P = sigma**2 / N + (q**2 / K + sampling(N, K)) * S * G**2
        Q = (1 + q**2) * (S - 1) ** 2 * G**2
    elif form == "repaired:R2":
        P = sigma**2 / N + 4 * (d / K + sampling(N, K)) * S**2 * G**2
        Q = 4 * ((S - 1) ** 2 + d * S**2) * G**2
    elif form == "explicit:any-amplitude":
        variance = d * a**2
        return 2 * F / (eta * T) + L * eta * sigma**2 / N + L**2 * variance + L / eta * variance / (K * S)
    elif form == "sharp:progressive":
        P = sigma**2 / N + (q**2 / K + sampling(N, K)) * S * G**2
        Q = (1 + q**2 * np.mean([tau / S for tau in range(1, S + 1)])) * (S - 1) ** 2 * G**2
    elif form == "sharp:progressive-masks":
        p = np.mean([tau / S for tau in range(1, S + 1)])
        P, Q = sigma**2 / N + 4 * d / K * S * G**2, ((1 - p) * (S - 1) ** 2 + 4 * p * d * S**2) * G**2
    elif form == "sharp:masks":
        P, Q = sigma**2 / N + 4 * d / K * S * G**2, 4 * d * S**2 * G**2
    else:
        P = sigma**2 / N + (4 * d / K + sampling(N, K)) * S * G**2
        Q = ((S - 1) ** 2 + 4 * d * S**2) * G**2
    return 2 * L * F / math.sqrt(T) + P / math.sqrt(T) + Q / T


@pytest.mark.parametrize(
    ("theorem", "twin", "form"),
    [(CONVEX, twin_1, f.name) for f in CONVEX.forms] + [(NONCONVEX, twin_2, f.name) for f in NONCONVEX.forms],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_each_form_equals_its_twin(theorem, twin, form):
    rng = np.random.default_rng(3)
    for i in range(40):
        c = random_setting(rng, least_clients=2 if form == "printed" or i % 4 else 1)
        evaluation = evaluate(theorem, c, form=form)
        assert float(evaluation.value) == pytest.approx(twin(form, **c), rel=1e-11)
        assert min(map(float, evaluation.terms.values())) >= 0
        outrun = "surely" in "".join(found.why for found in evaluation.conditions if not found.holds)
        assert evaluation.valid or (
            outrun and c["T"] > 1 + (max(8 * c["L"] / c["mu"], c["S"]) - 1) / (2 * c["d"] ** 0.5 - 1)
        )


@pytest.mark.parametrize(
    ("q_squared", "T", "bound"),
    [
        (0, 23, 1.8529347826086955),
        (0, 203, 0.37714601769911504),
        (2, 23, 6.026847826086956),
        (2, 203, 1.2267035398230088),
    ],
)
def test_theorem_1_has_its_golden_values_on_four_quadratic_clients(q_squared, T, bound):
    for form in ("printed", "repaired"):
        got = evaluate(CONVEX, dict(**GOLDEN, q=math.sqrt(q_squared), T=T), form=form)
        assert float(got.value) == pytest.approx(bound, rel=1e-13)


def test_one_client_makes_the_printed_c_zero_over_zero_and_the_split_c_its_squared_error():
    c = dict(L=1, sigma=0, G=1, q=0.5, F=0, N=1, K=1, S=1, T=4)
    printed = evaluate(NONCONVEX, c, form="printed")
    assert np.isnan(float(printed.value)) and not printed.valid
    assert float(evaluate(NONCONVEX, c, form="repaired").value) == pytest.approx(4 * 0.25 / 2, rel=1e-14)


def test_the_prescribed_steps_are_the_papers():
    c = dict(**GOLDEN, q=0, T=49)
    assert float(evaluate(CONVEX, c).prescribed["eta"]) == pytest.approx(2 / 24, rel=1e-15)
    assert float(evaluate(NONCONVEX, dict(L=3, sigma=0, G=1, q=0, F=1, N=1, K=1, S=1, T=49)).prescribed["eta"]) == (
        pytest.approx(1 / 21, rel=1e-15)
    )


def test_an_amplitude_that_clips_updates_is_reported_with_the_least():
    c = dict(L=2, sigma=0, G=1, F=1, N=1, K=1, S=4, T=9, d=1, eta=0.1, a=0.3)
    evaluation = evaluate(NONCONVEX, c, form="explicit:any-amplitude")
    assert not evaluation.valid and float(evaluation.conditions[-1].admissible) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("change", "text"), [(dict(K=5), "K <= N"), (dict(mu=4), "mu <= L")]
)  # fmt: skip
def test_more_participants_than_clients_and_more_convexity_than_smoothness_are_reported(change, text):
    evaluation = evaluate(CONVEX, dict(**GOLDEN, q=0, T=9) | change)
    assert not evaluation.valid and [c.text for c in evaluation.conditions if not c.holds] == [text]


def test_a_constant_step_above_one_over_l_is_reported_with_the_largest():
    c = dict(L=4, sigma=0, G=1, q=0, F=1, N=1, K=1, S=1, T=4, eta=0.5)
    evaluation = evaluate(NONCONVEX, c, form="explicit:any-step")
    assert not evaluation.valid
    assert float(evaluation.conditions[-1].admissible) == 0.25


def test_rounds_are_counted_apart_from_iterations():
    c = dict(L=1, sigma=1, G=1, q=1, F=1, N=4, K=2, S=3)
    answer = rounds(NONCONVEX, 0.5, c, form="sharp")
    T = next(T for T in range(1, 10**4) if float(evaluate(NONCONVEX, c | dict(T=T), form="sharp").value) <= 0.5)
    assert isinstance(answer, Reached) and answer.proved
    assert (answer.rounds, answer.cost.iterations, answer.cost.oracle_calls) == (-(-T // 3), T, 2 * T)


def test_masks_of_the_step_s_amplitude_are_bounded_no_accuracy_that_takes_longer_than_a_sure_bound_lasts():
    c = dict(**GOLDEN, d=2)
    assert isinstance(rounds(CONVEX, 18.0, c, form="sharp:masks"), Reached)
    never = rounds(CONVEX, 5.0, c, form="sharp:masks")
    assert isinstance(never, Never) and "fails for every large T" in never.why
    assert isinstance(rounds(CONVEX, 0.05, c | dict(q=1), form="sharp"), Reached)


def test_nobody_counts_the_bits_of_compressed_updates_as_32():
    c = dict(L=2, sigma=0.3, G=1.5, F=4, N=10, K=4, S=5, d=2)
    with pytest.raises(FedboundsError, match="compressed updates, and how many bits they have"):
        rounds(NONCONVEX, 0.1, c, form="sharp:masks", dimension=2)
    answer = rounds(NONCONVEX, 0.1, c, form="sharp:masks")
    assert isinstance(answer, Reached) and answer.cost.floats is None


def test_in_a_theorem_for_a_paper_the_steps_fall():
    said = theorem(CONVEX, CONVEX.form("repaired"), "proved")
    assert r"Steps eta\_t = 2/(mu (gamma + t)) for t = 1, 2, ..." in said and "of which eta is the first" in said
