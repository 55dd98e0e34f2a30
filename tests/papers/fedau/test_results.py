"""Theorems 2 and 3 of Wang & Ji (2024): every form against a plain twin, exact scalar runs, the derived constants."""

import math

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fedau.weight_error import weight_error
from fedbounds.bounds.theory.registry import load
from tests.papers.fedau.scalar_run import scalar_run

BOUNDED, NEARLY, WEIGHTS = load("fedau/theorem-2"), load("fedau/theorem-2-option-1"), load("fedau/theorem-3")
OPTIONS = {"theorem-2": BOUNDED, "theorem-2-option-1": NEARLY}


def random_setting(rng):
    L, F, sigma, delta, G, eta = np.exp(rng.normal(size=6))
    I, N, T = (int(k) for k in rng.integers(1, [12, 30, 2000]))
    Q = rng.uniform(1, 8)
    gamma = rng.uniform(0.2, 1) / (4 * math.sqrt(15) * L * I)
    eta = rng.uniform(0.2, 1) * min(1 / (2 * L * I), N / (27 * L * I * Q)) / gamma
    return dict(L=L, F=F, I=I, N=N, T=T, gamma=gamma, eta=eta, sigma=sigma, delta=delta, G=G, Q=Q,
                W=rng.uniform(0, 1 / 81), Wmax=1 / 81)  # fmt: skip


def twin(form, option_1, L, F, I, N, T, gamma, eta, sigma, delta, G, Q, W, Wmax):
    """The averages of (B.5.3) and (B.5.5), and the tight form, in plain floats."""
    if option_1:
        G = 0.0
    noise, step = gamma**2 * L**2 * I, gamma * eta * L * Q / N
    gap = F / (gamma * eta * I * T)
    if form == "printed":
        return gap + (G**2 + delta**2 + noise * sigma**2) * W + (step + noise) * (I * delta**2 + sigma**2)
    if form == "explicit":
        bound = 8 * gap + 12 * (15 * noise * sigma**2 + 27 * (delta**2 + G**2) / 8) * W
        bound += 20 * noise * (sigma**2 + 6 * I * delta**2)
        bound += 4 * step * (17 * sigma**2 / 16 + 27 * I * delta**2 / 8)
        return 2 * bound if option_1 else bound
    k, tau = math.e - 2, gamma * L * I
    A = 1 + 2 * math.sqrt(k) * tau + 3 * k * tau**2
    B = 3 + 6 * math.sqrt(k) * tau + 18 * k * tau**2
    D = 3 + 18 * k * tau**2
    slope = 1 / 4 - 3 * k * tau**2 - B * gamma * eta * L * I * Q / N / 2 - (D / 54 if option_1 else 0)
    inside = gap + 1.5 * (3 * k * noise * sigma**2 + D * (delta**2 + G**2)) * W
    inside += k / 2 * noise * (sigma**2 + 6 * I * delta**2) + step / 2 * (A * sigma**2 + B * I * delta**2)
    return inside / slope


@pytest.mark.parametrize("form", ["printed", "explicit", "sharp"])
@pytest.mark.parametrize("option", OPTIONS)
def test_each_form_of_theorem_2_equals_its_twin(option, form):
    rng = np.random.default_rng(5)
    for _ in range(30):
        c = random_setting(rng)
        evaluation = evaluate(OPTIONS[option], c, form=form)
        assert float(evaluation.value) == pytest.approx(twin(form, "1" in option, **c), rel=1e-12)
        assert evaluation.valid and min(map(float, evaluation.terms.values())) >= 0
        L, I, N, Q, both = c["L"], c["I"], c["N"], c["Q"], c["gamma"] * c["eta"]
        sides = [(c["gamma"], 1 / (4 * math.sqrt(15) * L * I)), (both, 1 / (2 * L * I)), (both, N / (27 * L * I * Q))]
        assert [(float(x.left), float(x.right)) for x in evaluation.conditions[:3]] == [
            pytest.approx(pair, rel=1e-13) for pair in sides
        ]


@pytest.mark.parametrize(
    ("term", "zero", "factor"),
    [
        ("initial gap", dict(F=1), 8 / (0.01 * 2 * 5 * 100)),
        ("weight error", dict(sigma=1), 180 * 0.01**2 * 9 * 5 * 0.01),
        ("weight error", dict(G=1), 40.5 * 0.01),
        ("local drift", dict(sigma=1), 20 * 0.01**2 * 9 * 5),
        ("local drift", dict(delta=1), 120 * 0.01**2 * 9 * 25),
        ("gradient noise", dict(sigma=1), 4.25 * 0.01 * 2 * 3 * 4 / 10),
        ("participation", dict(delta=1), 13.5 * 0.01 * 2 * 3 * 4 / 10 * 5),
    ],
)
def test_each_term_of_theorem_2_carries_its_own_constant(term, zero, factor):
    c = dict(L=3, F=0, I=5, N=10, T=100, gamma=0.01, eta=2, sigma=0, delta=0, G=0, W=0.01, Q=4) | zero
    assert float(evaluate(BOUNDED, c, form="explicit").terms[term]) == pytest.approx(factor, rel=1e-13)


def test_option_1_is_twice_option_2_without_a_gradient_bound():
    c = random_setting(np.random.default_rng(6)) | dict(G=0)
    twice = 2 * float(evaluate(BOUNDED, c, form="explicit").value)
    assert float(evaluate(NEARLY, c, form="explicit").value) == pytest.approx(twice, rel=1e-14)


def test_option_1_is_refused_where_some_round_may_have_a_weight_error_above_one_in_eighty_one():
    c = random_setting(np.random.default_rng(7))
    assert evaluate(NEARLY, c | dict(W=1 / 81)).valid
    assert not evaluate(NEARLY, c | dict(W=1 / 81, Wmax=1 / 80.9)).valid  # whatever its average is
    bounded = {name: value for name, value in c.items() if name != "Wmax"}  # Theorem 2 needs no largest error
    assert evaluate(BOUNDED, bounded | dict(W=1 / 80.9)).valid
    without = {name: value for name, value in c.items() if name != "W"}
    assert float(evaluate(NEARLY, without).constants["W"].value) == 1 / 81  # the largest error bounds its average
    with pytest.raises(FedboundsError, match=r"W = 0\.02 is above 0\.0123"):
        evaluate(NEARLY, c | dict(W=0.02))
    with pytest.raises(FedboundsError, match="needs Wmax"):
        evaluate(NEARLY, {name: value for name, value in c.items() if name != "Wmax"})


def test_fedaus_own_weights_never_meet_option_1_in_theorem_2():
    """p = 1/2, K = 50: if nobody comes for 50 rounds, p omega - 1 is 24; its mean square is small all the same."""
    c = dict(L=1, F=1, I=1, T=100_000, gamma=1e-5, eta=1, sigma=0.1, delta=0.1, p=[0.5, 0.5], K=50)
    for form in NEARLY.forms:
        evaluation = evaluate(NEARLY, c, form=form.name, assume=["all"], trust=[NEARLY.key])
        assert float(evaluation.constants["Wmax"].value) == 576 and float(evaluation.constants["W"].value) < 1 / 81
        assert not evaluation.guarantee and "a condition fails: Wmax <= 1/81" in evaluation.why_not


def test_exact_runs_with_known_participation_stay_below_every_explicit_form():
    rng = np.random.default_rng(8)
    worst = dict.fromkeys(("explicit", "sharp"), 0.0)
    for _ in range(60):
        N, I, T = (int(k) for k in rng.integers(1, [8, 8, 400]))
        centers, p, noise, start = rng.normal(size=N), rng.uniform(0.05, 1, N), rng.uniform(0, 2), 3 * rng.normal()
        Q = float(np.mean(1 / p))
        gamma = rng.uniform(0.1, 1) / (4 * math.sqrt(15) * I)
        eta = rng.uniform(0.3, 1) * min(1 / (2 * I), N / (27 * I * Q)) / gamma
        delta = np.abs(centers - centers.mean()).max()
        c = dict(L=1, F=start**2 / 2, I=I, T=T, gamma=gamma, eta=eta, sigma=noise, delta=delta, W=0, Wmax=0, Q=Q, p=p)
        left = scalar_run(centers, p, gamma, eta, I, T, noise, start)
        for form in worst:
            evaluation = evaluate(NEARLY, c, form=form)
            assert evaluation.valid
            worst[form] = max(worst[form], left / float(evaluation.value))
    assert worst["explicit"] < worst["sharp"] < 1
    assert worst["sharp"] > 0.05


# --- Theorem 3 --------------------------------------------------------------------------------------------------


def twin_3(form, p, K, T):
    q = [1 - one for one in p]
    bias = sum(one ** (2 * K) for one in q) / len(q)
    if form == "printed":
        return K * math.log(T) / T + bias
    if form == "explicit":
        return (3 * K + 2 * K * math.log(T)) / T + bias
    if form == "sharp:per-client":
        return sum((K + 2 * K * one * (math.log(T) + 1)) / T for one in q) / len(q) + bias
    K = min(K, T)
    H = sum(1 / j for j in range(1, T))
    return sum((one**2 + 2 * K * one * H) / T + (T - 1) / T * one ** (2 * K) for one in q) / len(q)


@pytest.mark.parametrize("form", [f.name for f in WEIGHTS.forms])
def test_each_form_of_theorem_3_equals_its_twin_and_bounds_the_exact_weight_error(form):
    rng = np.random.default_rng(9)
    for _ in range(25):
        p, K, T = rng.uniform(0.01, 1, rng.integers(1, 5)), int(rng.integers(1, 60)), int(rng.integers(2, 200))
        evaluation = evaluate(WEIGHTS, dict(p=p, K=K, T=T), form=form)
        assert float(evaluation.value) == pytest.approx(twin_3(form, p, K, T), rel=1e-12)
        assert evaluation.valid
        if not evaluation.form.order_only:
            assert float(weight_error(p, K, T)) <= float(evaluation.value) * (1 + 1e-12)


def test_the_sharp_theorem_3_vanishes_with_full_participation_and_survives_without_a_cut_off():
    assert float(evaluate(WEIGHTS, dict(p=[1, 1], K=4, T=9)).value) == 0
    unlimited = dict(p=[0.3, 1.0], K=math.inf, T=9)
    for form in ("printed", "explicit", "sharp:per-client"):
        assert float(evaluate(WEIGHTS, unlimited, form=form).value) == math.inf
    got = float(evaluate(WEIGHTS, unlimited).value)
    assert math.isfinite(got) and got == float(evaluate(WEIGHTS, unlimited | dict(K=9)).value)


def test_one_round_is_too_few_for_theorem_3_and_two_are_enough():
    assert not evaluate(WEIGHTS, dict(p=[0.5], K=2, T=1)).valid
    assert evaluate(WEIGHTS, dict(p=[0.5], K=2, T=2)).valid


# --- Derived constants ------------------------------------------------------------------------------------------

FEDAU = dict(L=1, F=1, I=2, T=300, gamma=1e-4, eta=2, sigma=1, delta=1, G=1, p=[0.1, 0.4, 1.0], K=7)


def test_clients_weight_error_and_second_moment_follow_from_rates_cut_off_and_rounds():
    constants = evaluate(BOUNDED, FEDAU).constants
    assert {n: constants[n].source for n in "NWQ"} == dict.fromkeys("NWQ", "derived")
    assert float(constants["N"].value) == 3
    assert float(constants["W"].value) == float(weight_error(np.array([0.1, 0.4, 1.0]), 7, 300))
    assert float(constants["Q"].value) == pytest.approx((0.5 * 49 + 1) / 3, rel=1e-14)


def test_a_derived_constant_may_be_given_if_it_agrees_and_q_if_it_is_no_smaller():
    W = float(weight_error(np.array([0.1, 0.4, 1.0]), 7, 300))
    expected = evaluate(BOUNDED, FEDAU).value
    assert evaluate(BOUNDED, FEDAU | dict(W=W, N=3)).value == expected
    assert evaluate(BOUNDED, FEDAU | dict(Q=12)).value > expected
    for clash, word in ((dict(W=1.01 * W), "conflicts"), (dict(N=4), "conflicts"), (dict(Q=2), "is below 8.5")):
        with pytest.raises(FedboundsError, match=word):
            evaluate(BOUNDED, FEDAU | clash)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (dict(K=0), "K = 0"), (dict(K=2.5), "K = 2.5"), (dict(p=[0.2, 0.0]), r"p\[1\] = 0"), (dict(p=[1.2]), r"p\[0\]"),
        (dict(p=0.5), "one per client"), (dict(T=0), "T = 0"), (dict(kk=1), "unknown constant"),
    ],
)  # fmt: skip
def test_bad_rates_and_cut_offs_are_refused_in_one_line(change, text):
    with pytest.raises(FedboundsError, match=text) as caught:
        evaluate(BOUNDED, FEDAU | change)
    assert "\n" not in str(caught.value)


def test_missing_constants_are_listed_with_their_meaning():
    with pytest.raises(FedboundsError, match=r"W \(weight error"):
        evaluate(BOUNDED, {k: v for k, v in FEDAU.items() if k != "K"})
    with pytest.raises(FedboundsError, match=r"N \(number of clients\)"):
        evaluate(BOUNDED, {k: v for k, v in FEDAU.items() if k not in ("K", "p")} | dict(W=0, Q=1))


def test_rounds_given_as_an_array_give_one_weight_error_each():
    T = np.array([10, 100, 1000])
    together = evaluate(BOUNDED, FEDAU | dict(T=T))
    for i, rounds in enumerate(T):
        one = evaluate(BOUNDED, FEDAU | dict(T=int(rounds)))
        assert together.value[i] == pytest.approx(float(one.value), rel=1e-12)
        assert np.asarray(together.constants["W"].value)[i] == pytest.approx(float(one.constants["W"].value), rel=1e-10)
