"""Lemmas B.6.1, B.7.1, Corollary 4 and Appendix A.3 of Wang & Ji (2024), and Theorem 2 with the mean of Q."""

import itertools
import math
from fractions import Fraction as R
from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fedau.weight_error import squared_error, weight_error
from fedbounds.bounds.theory.registry import load
from tests.papers.fedau.exact_weights import exact_weight_moments
from tests.papers.fedau.scalar_run import scalar_run

MEAN, VARIANCE = load("fedau/lemma-b.6.1"), load("fedau/lemma-b.6.1-variance")
AT_CUT_OFF = load("fedau/lemma-b.7.1")
BOUNDED, NEARLY = load("fedau/corollary-4"), load("fedau/corollary-4-option-1")
THEOREMS = {BOUNDED: load("fedau/theorem-2"), NEARLY: load("fedau/theorem-2-option-1")}
KNOWN, UNEQUAL = load("fedau/appendix-a.3"), load("fedau/appendix-a.3-unequal")
OPTIONS = pytest.mark.parametrize("corollary", THEOREMS, ids=["option 2", "option 1"])


def value(result, constants, form=None):
    return float(evaluate(result, constants, form=form).value)


# --- Lemma B.6.1 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("p", [R(1), R(9, 10), R(1, 2), R(1, 20)])
def test_mean_and_variance_of_an_interval_are_those_of_its_law(p, K):
    law = {k: p * (1 - p) ** (k - 1) for k in range(1, K)} | {K: (1 - p) ** (K - 1)}
    assert sum(law.values()) == 1
    mean = sum(k * chance for k, chance in law.items())
    variance = sum(k * k * chance for k, chance in law.items()) - mean**2
    c = dict(rate=float(p), K=K)
    assert value(MEAN, c) == pytest.approx(float(mean), rel=1e-13)
    assert value(VARIANCE, c) == pytest.approx(float(variance), abs=1e-10)
    assert value(VARIANCE, c) <= value(VARIANCE, c, "explicit") == pytest.approx(float((1 - p) / p**2))


def test_without_a_cut_off_the_interval_is_geometric():
    c = dict(rate=0.2, K=math.inf)
    assert value(MEAN, c) == 5 and value(VARIANCE, c, "explicit") == pytest.approx(20)
    assert not evaluate(VARIANCE, c).valid  # its second term is a limit


# --- Lemma B.7.1 --------------------------------------------------------------------------------------------------

RATES = (0.02, 0.1, 0.35, 0.632, 0.9, 0.95, 0.99, 0.999)


def rarity(p):
    return -1 / (2 * math.log1p(-p))


@pytest.mark.parametrize(("T", "K"), [(2_000, 189), (10_000, 228), (20_000, 246)])
def test_the_cut_off_of_a_two_percent_client_is_hundreds_of_rounds(T, K):
    assert float(evaluate(AT_CUT_OFF, dict(p=[0.02, 0.5], T=T), form="repaired").prescribed["K"]) == K


@pytest.mark.parametrize("p", RATES)
def test_every_form_at_the_whole_cut_off_bounds_the_exact_weight_error(p):
    ratios = []
    for T in (2, 3, 5, 8, 13, 30, 101, 401, 1000):
        K = max(1, math.ceil(rarity(p) * math.log(T)))
        exact, c = float(weight_error(np.array([p]), K, T)), dict(p=[p], T=T)
        assert float(evaluate(AT_CUT_OFF, c).prescribed["K"]) == K
        values = [value(AT_CUT_OFF, c, form) for form in ("sharp", "repaired", "repaired:constant")]
        assert exact <= values[0] * (1 + 1e-9) and values[0] <= min(values[1:]) * (1 + 1e-9)
        ratios.append(exact / (rarity(p) * math.log(T) ** 2 / T))
    assert max(ratios) < 4 / (math.e * math.log(2) ** 2) * 0.5  # 1.532, at T = 2 and p = 1 - 1/sqrt(e)


def test_each_form_of_lemma_b_7_1_equals_its_twin():
    p, T = np.array([0.07, 0.4, 1.0]), 500
    r, logT = rarity(0.07), math.log(500)
    assert value(AT_CUT_OFF, dict(p=p, T=T), "printed") == pytest.approx(r * logT**2 / T, rel=1e-13)
    whole = ((3 + 2 * logT) * (r * logT + 1) + 1) / T
    assert value(AT_CUT_OFF, dict(p=p, T=T), "repaired") == pytest.approx(whole, rel=1e-13)
    constant = (4 + 7 / math.log(2)) * r * logT**2 / T
    assert value(AT_CUT_OFF, dict(p=p, T=T), "repaired:constant") == pytest.approx(constant, rel=1e-13)
    explicit = (2 * r * logT**2 + 3 * r * logT + 1) / T
    assert value(AT_CUT_OFF, dict(p=p, T=T), "explicit") == pytest.approx(explicit, rel=1e-13)
    K, H = math.ceil(r * logT), sum(1 / j for j in range(1, T))
    sharp = np.mean(((1 - p) ** 2 + 2 * K * (1 - p) * H) / T + (T - 1) / T * (1 - p) ** (2 * K))
    assert value(AT_CUT_OFF, dict(p=p, T=T)) == pytest.approx(float(sharp), rel=1e-12)


def test_the_papers_own_constants_need_a_cut_off_that_is_a_whole_number():
    assert evaluate(AT_CUT_OFF, dict(p=[0.5], T=4**3), form="explicit").valid  # c = 4
    assert not evaluate(AT_CUT_OFF, dict(p=[0.5], T=4**3 + 1), form="explicit").valid
    assert not evaluate(AT_CUT_OFF, dict(p=[0.999], T=100), form="explicit").valid  # a third of a round
    for K in (1, 2, 3):
        c = dict(p=[0.5], T=4**K)
        assert float(weight_error(np.array([0.5]), K, 4**K)) <= value(AT_CUT_OFF, c, "explicit")


def test_with_full_participation_the_rarity_is_zero_and_the_cut_off_one():
    evaluation = evaluate(BOUNDED, dict(L=1, F=1, I=2, T=100, sigma=1, delta=1, G=3, p=[1.0, 1.0]))
    assert float(evaluation.constants["R"].value) == 0 and float(evaluation.prescribed["K"]) == 1
    assert float(evaluation.terms["weight error"]) == 0 and evaluation.valid
    assert value(AT_CUT_OFF, dict(p=[1.0], T=100), "repaired") == pytest.approx((4 + 2 * math.log(100)) / 100)


def test_one_round_is_too_few_and_a_given_cut_off_must_be_the_prescribed_one():
    assert not evaluate(AT_CUT_OFF, dict(p=[0.5], T=1)).valid
    c = dict(L=1, F=1, I=2, T=100, sigma=1, delta=1, G=3, p=[0.5, 0.6])
    with pytest.raises(FedboundsError, match=r"K = 50 conflicts with 4"):
        evaluate(BOUNDED, c | dict(K=50))
    assert float(evaluate(BOUNDED, c | dict(K=50), form="explicit").constants["Q"].value) == pytest.approx(0.55 * 2500)


# --- Corollary 4 --------------------------------------------------------------------------------------------------


def many(rng, size):
    L, F, sigma, delta, G = np.exp(2 * rng.normal(size=(5, size)))
    I, N, T = (rng.integers(low, high, size) for low, high in ((1, 30), (1, 300), (2, 10**5)))
    return dict(L=L, F=F, sigma=sigma, delta=delta, G=G, I=I, N=N, T=T, Q=np.exp(2 * np.abs(rng.normal(size=size))),
                W=rng.uniform(0, 2, size))  # fmt: skip


@OPTIONS
def test_theorem_2_at_the_corollarys_steps_stays_below_the_corollary(corollary):
    c = many(np.random.default_rng(1), 100_000) | (dict(Wmax=2) if corollary is NEARLY else {})
    at = evaluate(corollary, c, form="explicit")
    there = c | dict(at.prescribed)
    theorem = evaluate(THEOREMS[corollary], there, form="explicit")
    assert all(np.all(x.holds) for x in theorem.conditions[:3])
    ratio = theorem.value / at.value
    assert ratio.max() < 1 + 1e-12 and ratio.max() > 0.99
    for name in ("weight error", "local drift"):
        assert np.all(theorem.terms[name] <= at.terms[name] * (1 + 1e-12))
        assert np.max(theorem.terms[name] / at.terms[name]) > 0.99


@OPTIONS
def test_the_sharp_corollary_is_the_sharp_theorem_at_its_steps(corollary):
    rng = np.random.default_rng(2)
    for _ in range(20):
        L, F, sigma, delta, G = np.exp(rng.normal(size=5))
        c = dict(L=L, F=F, sigma=sigma, delta=delta, I=int(rng.integers(1, 9)), T=int(rng.integers(2, 400)))
        c |= dict(p=rng.uniform(0.1, 1, 3)) | (dict(G=G) if corollary is BOUNDED else {})
        at = evaluate(corollary, c)
        K = max(1, math.ceil(rarity(c["p"].min()) * math.log(c["T"])))
        there = evaluate(THEOREMS[corollary], c | {n: float(v) for n, v in at.prescribed.items()})
        assert float(at.prescribed["K"]) == float(there.constants["K"].value) == K
        for name, term in there.terms.items():
            assert float(at.terms[name]) == pytest.approx(float(term), rel=1e-11)


@pytest.mark.parametrize(
    ("term", "changed", "expected"),
    [
        ("gradient noise", dict(sigma=1), 21.5 * math.sqrt(3 * 2 * 4 / (10 * 5 * 100))),
        ("participation", dict(delta=1), 21.5 * math.sqrt(3 * 2 * 4 / (10 * 100))),
        ("weight error", dict(sigma=1), 180 * 0.3 / 500),
        ("weight error", dict(delta=1), 40.5 * 0.3),
        ("weight error", dict(G=1), 40.5 * 0.3),
        ("initial gap", dict(), 16 * 3 * 2 / 100 + 216 * 3 * 2 * 4 / 1000),
        ("local drift", dict(sigma=1), 20 / 500),
        ("local drift", dict(delta=1), 120 / 100),
    ],
)
def test_each_term_of_corollary_4_carries_its_own_constant(term, changed, expected):
    c = dict(L=3, F=2, I=5, N=10, T=100, sigma=0, delta=0, G=0, W=0.3, Q=4) | changed
    assert float(evaluate(BOUNDED, c, form="explicit").terms[term]) == pytest.approx(expected, rel=1e-12)
    if "G" not in changed:
        c = {n: v for n, v in c.items() if n != "G"} | dict(Wmax=0.3)
        assert float(evaluate(NEARLY, c, form="explicit").terms[term]) == pytest.approx(2 * expected, rel=1e-12)


def test_the_forms_of_corollary_4_differ_in_their_third_term_alone():
    c = dict(L=3, F=2, I=5, T=700, sigma=0.4, delta=0.6, G=1.5, p=[0.05, 0.3, 1.0])
    r, logT = rarity(0.05), math.log(700)
    psi = 180 * 0.16 / 3500 + 40.5 * (0.36 + 2.25)
    errors = {
        "explicit": float(weight_error(np.array(c["p"]), math.ceil(r * logT), 700)),
        "repaired": ((3 + 2 * logT) * (r * logT + 1) + 1) / 700,
        "repaired:constant": (4 + 7 / math.log(2)) * r * logT**2 / 700,
    }
    rest = evaluate(BOUNDED, c, form="explicit").terms
    for form, error in errors.items():
        terms = evaluate(BOUNDED, c, form=form).terms
        assert float(terms["weight error"]) == pytest.approx(psi * error, rel=1e-9)
        assert all(float(terms[n]) == float(rest[n]) for n in rest if n != "weight error")
    printed = evaluate(BOUNDED, c, form="printed").terms
    Q = (0.05 + 0.3) / 3 * math.ceil(r * logT) ** 2 + 1 / 3
    speed = math.sqrt(3 * 2 * Q)
    expected = {
        "gradient noise": 0.4 * speed / math.sqrt(3 * 5 * 700),
        "participation": 0.6 * speed / math.sqrt(3 * 700),
        "weight error": (2.25 + 0.36 + 0.16 / 3500) * r * logT**2 / 700,
        "initial gap": 6 * (1 + Q / 3) / 700,
        "local drift": (0.36 + 0.16 / 5) / 700,
    }
    assert {n: float(v) for n, v in printed.items()} == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("zero", [dict(F=0), dict(sigma=0, delta=0)])
def test_without_a_gap_or_without_noise_every_form_of_corollary_4_is_finite(zero):
    c = dict(L=3, F=2, I=5, T=700, sigma=0.4, delta=0.6, G=1.5, p=[0.05, 0.3, 1.0]) | zero
    for form in BOUNDED.forms:
        terms = evaluate(BOUNDED, c, form=form.name).terms
        assert all(math.isfinite(float(v)) for v in terms.values()), form.name
        if "F" in zero:
            assert float(terms["initial gap"]) == 0


def farthest_by_enumeration(p, K, T):
    """max over all records and rounds of (1/N) sum (p omega - 1)^2, records of probability zero left out."""
    worst = 0
    options = []
    for rate in p:
        weights = set()
        for record in itertools.product((True, False), repeat=T - 1):
            if rate == 1 and not all(record):
                continue
            path, M, S = [R(1)], 0, 0
            for present in record:
                S += 1
                if present or S == K:
                    path.append((M * path[-1] + S) / (M + 1) if M else R(S))
                    M, S = M + 1, 0
                else:
                    path.append(path[-1])
            weights.add(tuple(path))
        options.append(weights)
    for t in range(T):
        worst = max(worst, sum(max((rate * path[t] - 1) ** 2 for path in paths)
                               for rate, paths in zip(p, options, strict=True)) / len(p))  # fmt: skip
    return worst


@pytest.mark.parametrize("p", [(R(1, 2), R(9, 10)), (R(1, 4), R(1)), (R(1, 3), R(2, 3))])
@pytest.mark.parametrize(("K", "T"), [(1, 5), (2, 5), (3, 4), (9, 6), (4, 1), (5, 2)])
def test_the_farthest_weights_are_those_of_the_enumeration_of_all_records(p, K, T):
    expected = float(farthest_by_enumeration(p, K, T))
    c = dict(L=1, F=1, I=1, T=T, sigma=1, delta=1, p=[float(one) for one in p], K=K)
    assert float(evaluate(NEARLY, c, form="explicit").constants["Wmax"].value) == pytest.approx(expected, abs=1e-15)


def test_option_1_and_fedau_exclude_each_other_unless_nearly_all_clients_takes_part():
    c = dict(L=1, F=1, I=2, T=1000, sigma=1, delta=1)
    for p in ([0.1, 0.4], [0.9, 0.9], [0.95, 0.99, 0.97]):
        evaluation = evaluate(NEARLY, c | dict(p=p), assume=["all"])
        assert float(evaluation.prescribed["K"]) >= 2 and not evaluation.valid and not evaluation.guarantee
        assert float(evaluation.conditions[1].left) >= (7 / 9) ** 2
    assert evaluate(NEARLY, c | dict(p=[0.97, 0.98])).valid  # K = 1: every weight is 1
    assert evaluate(NEARLY, c | dict(p=[0.5] + [1.0] * 99, T=10)).valid  # one client in a hundred
    assert not evaluate(NEARLY, c | dict(p=[0.8, 0.9]), form="printed").valid  # in the first round already


# --- Theorem 2 with the mean of Q -----------------------------------------------------------------------------------


def test_the_mean_of_q_follows_from_the_exact_second_moments():
    p, K, T = [R(1, 2), R(1, 10), R(1)], 3, 12
    moments = [exact_weight_moments(one, K, T) for one in p]
    # E omega^2 = (E(p omega - 1)^2 - 1 + 2 p E omega)/p^2
    squares = [[(error - 1 + 2 * q * mean) / q**2 for mean, error in row] for q, row in zip(p, moments, strict=True)]
    expected = sum(q * sum(row) for q, row in zip(p, squares, strict=True)) / (len(p) * T)
    c = dict(L=1, F=1, I=2, T=T, gamma=1e-4, eta=2, sigma=1, delta=1, G=1, p=[float(q) for q in p], K=K)
    evaluation = evaluate(THEOREMS[BOUNDED], c)
    assert evaluation.form.name == "sharp:mean-Q"
    assert float(evaluation.constants["Qmean"].value) == pytest.approx(float(expected), rel=1e-11)


def test_the_mean_of_q_stays_bounded_as_the_cut_off_grows_but_the_largest_q_does_not():
    p, c = np.array([0.05, 0.3, 0.9]), dict(L=1, F=1, I=2, T=3000, gamma=1e-4, eta=2, sigma=1, delta=1, G=1)
    for K in (5, 50, 500, math.inf):
        constants = evaluate(THEOREMS[BOUNDED], c | dict(p=p, K=K)).constants
        assert float(constants["Qmean"].value) <= np.mean((2 - p) / p + p)
        assert float(constants["Q"].value) == pytest.approx(np.mean(p) * min(K, 2999) ** 2)


@OPTIONS
def test_the_mean_of_q_enters_the_last_two_terms_alone(corollary):
    theorem = THEOREMS[corollary]
    c = dict(L=1, F=1, I=2, N=5, T=90, gamma=0.01, eta=2, sigma=1, delta=1, G=1, W=0.01, Wmax=0.01, Q=4)
    sharp, mean = (evaluate(theorem, c | dict(Qmean=1), form=form).terms for form in ("sharp", "sharp:mean-Q"))
    for name in sharp:
        factor = 4 if name in ("gradient noise", "participation") else 1
        assert float(sharp[name]) == pytest.approx(factor * float(mean[name]), rel=1e-13)
    assert value(theorem, c) == value(theorem, c, "sharp")  # Q stands in for its mean


def test_exact_runs_with_weights_that_change_stay_below_the_theorem_with_the_mean_of_q():
    """F_n = (x - c_n)^2/2 and weights rho_t/p_n, within 1/9 of 1/p_n, most of them small: the mean of Q is below Q."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(25):
        N, I, T = (int(i) for i in rng.integers(1, [8, 8, 300]))
        c, p, rho = rng.normal(size=N), rng.uniform(0.05, 1, N), np.where(rng.random(T) < 0.1, 10 / 9, 8 / 9)
        c -= c.mean()
        Q, noise, start = np.mean(1 / p), rng.uniform(0, 2), 3 * rng.normal()
        gamma = rng.uniform(0.1, 1) / (4 * math.sqrt(15) * I)
        eta = rng.uniform(0.3, 1) * min(1 / (2 * I), N / (27 * I * Q * max(rho) ** 2)) / gamma
        shrink = 1 - (1 - gamma) ** I
        jitter = gamma**2 * noise**2 * sum((1 - gamma) ** (2 * j) for j in range(I))
        mean, second, total = start, start**2, 0.0
        for factor in rho:
            total += second
            spread = shrink**2 * (second - 2 * mean * c + c**2)
            variance = np.sum((1 / p - 1) * spread + jitter / p) * (eta * factor / N) ** 2
            pull = eta * factor * shrink
            mean, second = mean * (1 - pull), second * (1 - pull) ** 2 + variance
        known: dict[str, Any] = dict(
            L=1, F=start**2 / 2, I=I, N=N, T=T, gamma=gamma, eta=eta, sigma=noise, delta=np.abs(c).max()
        )
        known |= dict(W=np.mean((rho - 1) ** 2), Q=Q * max(rho) ** 2, Qmean=Q * np.mean(rho**2))
        known |= dict(Wmax=max((rho - 1) ** 2) * (1 - 1e-15))  # a ninth squared, and its rounding
        evaluation = evaluate(THEOREMS[NEARLY], known)
        assert evaluation.valid and evaluation.form.name == "sharp:mean-Q"
        worst = max(worst, total / T / float(evaluation.value))
    assert 0.02 < worst < 1


# --- Appendix A.3 ---------------------------------------------------------------------------------------------------


def test_known_rates_give_corollary_4_without_weight_error_and_with_q_equal_to_n_over_s():
    c = dict(L=2, F=3, I=4, N=30, S=6, T=500, sigma=0.7, delta=0.2)
    for form in ("explicit", "sharp"):
        at = evaluate(KNOWN, c, form=form)
        same = {n: v for n, v in c.items() if n != "S"} | dict(G=0, W=0, Q=5, Qmean=5)
        if form == "explicit":
            there = evaluate(BOUNDED, same, form="explicit")
        else:
            there = evaluate(THEOREMS[BOUNDED], same | {n: float(v) for n, v in at.prescribed.items()})
        assert {n: float(v) for n, v in at.terms.items()} == pytest.approx(
            {n: float(v) for n, v in there.terms.items() if n != "weight error"}, rel=1e-12
        )
        assert float(there.terms["weight error"]) == 0
    assert not evaluate(KNOWN, c | dict(S=31)).valid


def test_the_rate_with_known_participation_is_the_speed_up_in_participants():
    c = dict(L=2, F=3, I=4, N=10**6, sigma=0.7, delta=0.2)
    for S in (1, 4, 16):
        T = 1e14
        order = value(KNOWN, c | dict(S=S, T=T)) / value(KNOWN, c | dict(S=S, T=T), "printed")
        alone = value(KNOWN, c | dict(S=1, T=T)) / value(KNOWN, c | dict(S=1, T=T), "printed")
        assert order == pytest.approx(alone, rel=1e-4)
    yang, karimireddy = load("fedau/appendix-a.3-yang"), load("fedau/appendix-a.3-karimireddy")
    assert value(yang, dict(I=9, S=4, T=100)) == pytest.approx(3 * value(karimireddy, dict(S=4, T=100)))


UNLIKE = dict(L=2, F=3, I=4, T=500, sigma=0.7, delta=0.2, p=[0.1, 0.25, 0.5, 1.0])  # the mean of 1/p is 17/4


def test_known_rates_that_differ_have_the_mean_of_their_inverses_for_q_and_each_term_its_constant():
    """By hand, with Q/N = 17/16; gamma eta is 1/(2LI) = 1/16, N/(27LIQ) = 2/459 or sqrt(1.5/(1.0625 * .65 * 4000))."""
    at = evaluate(UNEQUAL, UNLIKE, form="explicit")
    assert float(at.constants["Q"].value) == 4.25 and float(at.constants["N"].value) == 4
    assert float(at.prescribed["gamma"]) == pytest.approx(1 / (8 * math.sqrt(500)), rel=1e-13)
    assert float(at.prescribed["gamma"] * at.prescribed["eta"]) == pytest.approx(2 / 459, rel=1e-13)
    assert {name: float(value) for name, value in at.terms.items()} == pytest.approx(
        {
            "gradient noise": 21.5 * 0.7 * math.sqrt(6 * 17 / 16 / 2000),
            "participation": 21.5 * 0.2 * math.sqrt(6 * 17 / 16 / 500),
            "initial gap": 6 * (16 + 216 * 17 / 16) / 500,
            "local drift": (20 * 0.49 / 4 + 120 * 0.04) / 500,
        },
        rel=1e-13,
    )
    noisy = evaluate(UNEQUAL, UNLIKE | dict(T=10**6), form="explicit").prescribed
    first = math.sqrt(3 * 16 / 17 / ((4 * 0.04 + 0.49) * 2 * 4 * 10**6))
    assert float(noisy["gamma"] * noisy["eta"]) == pytest.approx(first, rel=1e-13)


def test_the_sharp_bound_for_known_rates_is_the_sharp_theorem_2_at_its_steps():
    at = evaluate(UNEQUAL, UNLIKE)
    same = {name: value for name, value in UNLIKE.items() if name != "p"} | dict(N=4, Q=4.25, Qmean=4.25, W=0, G=9)
    there = evaluate(THEOREMS[BOUNDED], same | {name: float(value) for name, value in at.prescribed.items()})
    assert there.valid and float(there.terms["weight error"]) == 0
    rest = {name: float(value) for name, value in there.terms.items() if name != "weight error"}
    assert {name: float(value) for name, value in at.terms.items()} == pytest.approx(rest, rel=1e-12)


def test_q_for_known_rates_may_be_larger_than_the_mean_of_their_inverses_but_not_smaller():
    with pytest.raises(FedboundsError, match=r"Q = 4.2 is below 4.25"):
        evaluate(UNEQUAL, UNLIKE | dict(Q=4.2))
    for form in ("explicit", "sharp"):
        assert value(UNEQUAL, UNLIKE | dict(Q=5), form) > value(UNEQUAL, UNLIKE, form)
    with pytest.raises(FedboundsError, match=r"needs p \("):  # whether Q is large enough shows in the rates alone
        evaluate(UNEQUAL, {name: value for name, value in UNLIKE.items() if name != "p"} | dict(N=4, Q=4.25))


@pytest.mark.parametrize("form", ["explicit", "sharp"])
def test_known_rates_that_are_equal_have_the_bound_of_equal_rates(form):
    c = {name: value for name, value in UNLIKE.items() if name != "p"}
    for N, S in ((1, 1), (5, 2), (30, 6)):
        any_rates = evaluate(UNEQUAL, c | dict(p=[S / N] * N), form=form)
        same = evaluate(KNOWN, c | dict(N=N, S=S), form=form)
        for ours, theirs in ((any_rates.terms, same.terms), (any_rates.prescribed, same.prescribed)):
            assert {n: float(v) for n, v in ours.items()} == pytest.approx({n: float(v) for n, v in theirs.items()})
    spread = evaluate(UNEQUAL, c | dict(p=[0.1, 0.25, 0.5, 0.75]), form=form)  # as many participants, on average
    assert float(spread.value) > value(KNOWN, c | dict(N=4, S=1.6), form)


def test_exact_runs_with_known_rates_stay_below_their_bound_at_its_steps():
    """F_n = (x - c_n)^2/2 with noise, weights 1/p_n: mean and second moment of x round by round."""
    rng = np.random.default_rng(4)
    ratios = []
    for _ in range(40):
        N, I, T = (int(i) for i in rng.integers(1, [8, 8, 400]))
        c, p, noise, start = rng.normal(size=N), rng.uniform(0.02, 1, N), rng.uniform(0, 2), 3 * rng.normal()
        delta = np.abs(c - c.mean()).max()
        known: dict[str, Any] = dict(L=1, F=start**2 / 2, I=I, T=T, sigma=noise, delta=delta, p=p)
        for form in ("explicit", "sharp"):
            at = evaluate(UNEQUAL, known, form=form)
            gamma, eta = float(at.prescribed["gamma"]), float(at.prescribed["eta"])
            ratios.append(scalar_run(c, p, gamma, eta, I, T, noise, start) / float(at.value))
    assert 0.05 < max(ratios) < 1


def test_the_fixed_cut_off_leaves_a_floor_that_no_number_of_rounds_removes():
    """A client of p = .02 with K = 50 keeps a squared bias of .98^100 = 0.133."""
    assert squared_error(0.02, 50, 20_000)[-1] == pytest.approx(0.98**100, rel=0.03)


def test_the_printed_corollary_prescribes_r_log_t_and_its_q_a_whole_number():
    forms = {form.name: form for form in load("fedau/corollary-4").forms}
    why = {name: {rule.name: rule.why for rule in form.derived}["K"] for name, form in forms.items()}
    assert why["printed"].startswith("where Q needs it") and "the form's R log T" in why["printed"]
    assert all(not text.startswith("where Q") for name, text in why.items() if name != "printed")
