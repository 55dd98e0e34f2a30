"""Theorems 2 to 4 and the corollaries of Sharma et al. (2023): twins, golden values, limits, the step cap."""

import math
from functools import partial

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.figures.papers.fed_norm_sgda.bounds import least_bound, least_bounds

evaluated = partial(evaluate, strict=False)

THEOREM_2, THEOREM_3, THEOREM_4 = (load(f"fed-norm-sgda/theorem-{i}") for i in (2, 3, 4))
GOLDEN = dict(
    Lf=2, T=10000, P=5, tau=[4] * 10, w=[0.1] * 10, taueff=1, betaL=0.5, betaG=1.2, sigmaL=math.sqrt(0.3), R=2, S=7,
    sigmaG=math.sqrt(0.7), Gammay=0.01, Gammax=0.01 / (156 * 9), etax=0.001, etay=0.001, Gx=1.1, Deltabar=1.5,
)  # fmt: skip
STEPS = ("Gammax", "Gammay", "etax", "etay", "S")


def twin(form, c):
    """Value and both sides of every condition with plain floats, from the vectors of coefficients (1, ..., 1)."""
    tau, w, n, P, bL = np.asarray(c["tau"]), np.asarray(c["w"]), len(c["tau"]), c["P"], c["betaL"]
    nu = 2 if form in ("repaired", "sharp") and tau.max() > 1 else 1
    r, d = n / P, 0.0 if n == 1 else (n - P) / (n - 1)
    share = 1.0 if n == 1 else (P - 1) / (n - 1)
    Z, Q, K, W = np.sum(w**2 / tau), np.max(w / tau), np.max(w / tau), w.max()
    C_w, D = np.sum(w * (tau - 1)), np.max((tau - 1) ** 2 + bL**2 * (tau - 1))
    L, G2, sL2, sG2, bG = c["Lf"], c["Gx"] ** 2, c["sigmaL"] ** 2, c["sigmaG"] ** 2, c["betaG"]
    I1 = math.sqrt(r * (Z * (sL2 + bL**2 * G2) + G2 * (share + d * np.sum(w**2))))
    N = r * (sL2 * Z + 2 * sG2 * (d * W + bL**2 * Q))
    drift = (c["etax"] ** 2 + c["etay"] ** 2) * L**2
    V = drift * (sL2 * C_w + 2 * D * (G2 + sG2))
    x, y, S, T = c["Gammax"], c["Gammay"], c["S"], c["T"]
    gap, lag, restart = c["Deltabar"] / (x * T), x * L * c["Gx"] * (S - 1) * I1, L * c["R"] / (y * S)
    sides = [
        (64 * nu * c["etay"] ** 2 * D * L**2 * max(bG**2 * r, 1), 1),
        (16 * nu * y * L * r * max(bG**2, 1) * max(bL**2 * Q, d * W), 1),
        (16 * nu * y * L * r * max(share, bL**2 * K), 1),
    ]
    if form == "printed":
        ascent = y * L * r * (sL2 * Z + sG2 * (d * W + bL**2 * Q))
        return gap + x * L * I1**2 + lag + restart + ascent + drift * (sL2 * C_w + D * (G2 + sG2)), sides
    sides += [(4 * nu * L**2 * c["etay"] ** 2 * np.max(tau * (tau - 1 + bL**2)), 1), (T % S, 0)]
    if form == "explicit":
        return 8 * gap + 8 * x * L * I1**2 + 32 * lag + 72 * restart + 18 * L * y * N + 104 * V, sides
    value = 8 * gap + 8 * nu * x * L * I1**2 + 16 * math.sqrt(nu) * lag
    if form == "repaired":
        return value + 72 * restart + 18 * nu * L * y * N + 82 * nu * V, sides
    kept = 69 / 64
    return value + (72 * restart + 18 * nu * L * y * N) / kept + nu * (32 + 18 * 11 / 4 / kept) * V, sides


def random_setting(rng):
    n = int(rng.integers(1, 7))
    tau = np.ones(n, dtype=int) if rng.random() < 0.25 else rng.integers(1, 7, n)
    Lf, sigmaL, sigmaG, Gx, R, Deltabar, taueff = np.exp(rng.normal(size=7))
    c = dict(Lf=Lf, sigmaL=sigmaL, sigmaG=sigmaG, Gx=Gx, R=R, Deltabar=Deltabar, taueff=taueff, tau=tau)
    c |= dict(w=rng.dirichlet(np.ones(n)), betaL=rng.uniform(0, 2), betaG=rng.uniform(1, 2))
    S = int(rng.integers(1, 40))
    c |= dict(P=int(rng.integers(1, n + 1)), S=S, T=S * int(rng.integers(1, 200)), Gammax=np.exp(rng.normal()))
    return c | dict(Gammay=np.exp(rng.normal(-4)) / Lf, etax=np.exp(rng.normal(-4)), etay=np.exp(rng.normal(-4)) / Lf)


@pytest.mark.parametrize("form", ["printed", "explicit", "repaired", "sharp"])
def test_each_form_of_theorem_4_equals_its_twin_and_so_do_its_conditions(form):
    rng, valid = np.random.default_rng(40), 0
    for _ in range(60):
        c = random_setting(rng) | dict(T=int(rng.integers(1, 500)))
        evaluation = evaluated(THEOREM_4, c, form=form)
        value, sides = twin(form, c)
        assert float(evaluation.value) == pytest.approx(value, rel=1e-11)
        for condition, (left, right) in zip(evaluation.conditions[3:], sides, strict=True):
            assert bool(condition.holds) == (left <= right), condition.text
            if right:
                assert float(condition.left) / float(condition.right) == pytest.approx(left / right, rel=1e-11)
        valid += bool(evaluation.valid)
    assert 0 < valid < 60


def test_the_golden_setting_has_the_golden_bounds():
    assert float(evaluated(THEOREM_4, GOLDEN, form="explicit").value) == pytest.approx(4282.868642595519, rel=1e-13)
    assert float(evaluated(THEOREM_4, GOLDEN, form="repaired").value) == pytest.approx(4282.953812226969, rel=1e-13)


@pytest.mark.parametrize(
    ("term", "alone", "value"),
    [
        ("initial gap", dict(Deltabar=1), 8 / (0.01 / (156 * 9) * 10000)),
        ("descent noise", dict(sigmaL=1), 16 * 0.01 / (156 * 9) * 2 * 2 * 0.025),
        ("ascent from the snapshot", dict(R=1), 72 * 2 / (0.01 * 7)),
        ("full synchronization", dict(sigmaL=1), 18 * 2 * 2 * 0.01 * 2 * 0.025),
        ("full synchronization", dict(sigmaG=1), 18 * 2 * 2 * 0.01 * 2 * 2 * 0.25 * 0.025),
        ("partial participation", dict(sigmaG=1), 18 * 2 * 2 * 0.01 * 2 * 2 * 5 / 9 * 0.1),
        ("local updates", dict(sigmaL=1), 82 * 2 * 2e-6 * 4 * 3),
        ("local updates", dict(sigmaG=1), 82 * 2 * 2e-6 * 4 * 2 * 9.75),
        ("local updates", dict(Gx=1), 82 * 2 * 2e-6 * 4 * 2 * 9.75),
        ("descent noise", dict(Gx=1), 16 * 0.01 / (156 * 9) * 2 * 2 * (0.025 * 0.25 + 4 / 9 + 5 / 9 * 0.1)),
        ("stale snapshot", dict(Gx=1), 16 * 2**0.5 * 0.01 / (156 * 9) * 2 * 6
         * math.sqrt(2 * (0.025 * 0.25 + 4 / 9 + 5 / 9 * 0.1))),
    ],
)  # fmt: skip
def test_each_term_of_the_repaired_form_carries_its_own_constant(term, alone, value):
    quiet = GOLDEN | dict(sigmaL=0, sigmaG=0, Deltabar=0, Gx=1e-9, R=1e-9) | alone
    assert float(evaluated(THEOREM_4, quiet, form="repaired").terms[term]) == pytest.approx(value, rel=1e-9)


def test_the_special_cases_of_the_paper():
    """Eq. (56) to (59), read off the descent noise 8 nu Gammax Lf I_1^2 and the ascent noise."""

    def parts(**change):
        c = GOLDEN | dict(sigmaG=0.0) | change
        terms = evaluated(THEOREM_4, c, form="printed").terms
        scale = c["Lf"] * c["Gammax"], c["Lf"] * c["Gammay"]
        noise = float(terms["full synchronization"]) + float(terms["partial participation"])
        return float(terms["descent noise"]) / scale[0], noise / scale[1]

    one = dict(tau=[1], w=[1.0], P=1)
    assert parts(**one, sigmaL=0) == pytest.approx((1.1**2 * 1.25, 0))
    assert parts(**one) == pytest.approx((0.3 + 1.25 * 1.1**2, 0.3))
    assert parts(tau=[1] * 10, P=10)[0] == pytest.approx(1.1**2 + (0.3 + 0.25 * 1.1**2) / 10)
    got = parts(P=10, sigmaG=math.sqrt(0.7))
    assert got == pytest.approx((1.1**2 + (0.3 + 0.25 * 1.1**2) / 40, (0.3 + 0.25 * 0.7) / 40))


def test_limits_remove_their_terms():
    assert float(evaluated(THEOREM_4, GOLDEN | dict(P=10)).terms["partial participation"]) == 0
    assert float(evaluated(THEOREM_4, GOLDEN | dict(tau=[1] * 10)).terms["local updates"]) == 0
    assert float(evaluated(THEOREM_4, GOLDEN | dict(S=1)).terms["stale snapshot"]) == 0
    broken = evaluated(THEOREM_4, GOLDEN)  # 7 does not divide 10000
    assert [c.why for c in broken.conditions if not c.holds] == ["T is a whole number of blocks of S rounds"]
    assert evaluated(THEOREM_4, GOLDEN | dict(S=8)).valid


def test_theorem_3_is_theorem_4_under_one_point_concavity():
    for form in ("printed", "explicit", "repaired", "sharp", "sharp:any-T"):
        three, four = evaluated(THEOREM_3, GOLDEN, form=form), evaluated(THEOREM_4, GOLDEN, form=form)
        assert float(three.value) == float(four.value)
        assert set(three.assumptions) ^ set(four.assumptions) == {"concave", "one-point-concave"}


def test_no_admissible_ascent_exceeds_an_eighth_of_the_inverse_smoothness():
    rng = np.random.default_rng(41)
    for _ in range(200):
        c = random_setting(rng)
        caps = [c_.admissible for c_ in evaluated(THEOREM_4, c, form="printed").conditions if c_.limits == "Gammay"]
        assert float(min(caps)) <= 1 / (8 * c["Lf"]) * (1 + 1e-12)


def test_theorem_2_covers_theorem_4_at_its_own_admissible_steps():
    rng, ratios, leading = np.random.default_rng(42), [], set()
    for _ in range(80):
        c = {k: v for k, v in random_setting(rng).items() if k not in STEPS} | dict(T=int(10 ** rng.uniform(0, 12)))
        c |= dict(sigmaL=c["sigmaL"] * 10 ** rng.uniform(-4, 1), sigmaG=c["sigmaG"] * 10 ** rng.uniform(-4, 1))
        here = evaluated(THEOREM_2, c)
        there = evaluated(THEOREM_4, c | dict(here.prescribed))
        assert all(x.holds for x in there.conditions[:-1])
        S = float(here.prescribed["S"])
        blocks = math.ceil(c["T"] / S) * S / c["T"]  # the last block may be shorter
        restart = float(there.terms["ascent from the snapshot"])
        left = float(there.value) + (blocks - 1) * restart
        ratios.append(left / float(here.value))
        leading.add(here.dominant)
    assert max(ratios) <= 1 + 1e-12 and max(ratios) > 0.5
    assert leading >= {"capped ascent", "ascent noise"}


def test_the_printed_steps_break_the_theorem_s_own_cap_until_there_are_rounds_enough():
    c = {k: v for k, v in GOLDEN.items() if k not in STEPS} | dict(betaL=0, P=10, taueff=4)
    smallest = (16 * (4 * 10) ** 0.75) ** 4  # Gammay Lf = (taueff P)^(3/4)/T^(1/4) <= 1/16
    assert not evaluated(THEOREM_2, c | dict(T=math.floor(0.999 * smallest)), form="printed").valid
    assert evaluated(THEOREM_2, c | dict(T=math.ceil(1.001 * smallest)), form="printed").valid
    steps = evaluated(THEOREM_2, c | dict(T=10**6), form="printed").prescribed
    assert float(steps["gammay"]) * 4 * 2 == pytest.approx((4 * 10) ** 0.75 / 10**1.5)


def test_the_rounds_of_corollary_2_2_suffice():
    rng, corollary = np.random.default_rng(43), load("fed-norm-sgda/corollary-2.2")
    for _ in range(40):
        c = {k: v for k, v in random_setting(rng).items() if k not in (*STEPS, "T")}
        eps = 10 ** rng.uniform(-1, 1)
        T = float(evaluated(corollary, c | dict(eps=eps)).value)
        assert float(evaluated(THEOREM_2, c | dict(T=T)).value) <= eps**2 * (1 + 1e-9)
        few = evaluated(THEOREM_2, c | dict(T=max(1, math.floor(T / 5**4.1))))
        assert T < 5**4.1 or float(few.value) > eps**2  # a fifth each, to the fourth at most


# --- The headline against the cap ---------------------------------------------------------------------------------


def test_the_least_bound_falls_like_a_third_with_the_cap_and_like_a_half_without():
    rounds = [10**k for k in (8, 10, 12)]

    def slopes(**how):
        return np.diff(np.log10([bound.value for bound in least_bounds(rounds, **how)])) / 2

    assert slopes(capped=True) == pytest.approx([-1 / 3] * 2, abs=1e-3)
    assert slopes(capped=False) == pytest.approx([-1 / 2] * 2, abs=1e-3)
    assert slopes(capped=False, local_steps=5) == pytest.approx([-1 / 4] * 2, abs=1e-3)
    late = least_bounds([10**14, 10**16], capped=True, local_steps=5)  # the noise, not the cap, rules at last
    assert np.log10(late[1].value / late[0].value) / 2 == pytest.approx(-1 / 4, abs=1e-3)


@pytest.mark.parametrize("capped", [True, False])
def test_no_steps_beat_the_least_bound(capped):
    rng = np.random.default_rng(44)
    for _ in range(5):
        c = {k: v for k, v in random_setting(rng).items() if k not in STEPS} | dict(T=5040)
        best = least_bound(c, capped=capped)
        at = dict(Gammax=best.Gammax, Gammay=best.Gammay, S=best.S, etax=0, etay=0)
        reached = evaluated(THEOREM_4, c | at)
        assert float(reached.value) == pytest.approx(best.value, rel=1e-12)
        assert not capped or all(x.holds for x in reached.conditions[:-1])
        x, y = (best_step * np.exp(rng.normal(0, 1, 4000)) for best_step in (best.Gammax, best.Gammay))
        S = np.clip(np.round(best.S * np.exp(rng.normal(0, 1, 4000))), 1, 5040)
        others = evaluated(THEOREM_4, c | dict(Gammax=x, Gammay=y, S=S, etax=0, etay=0))
        cap = np.all([x.holds for x in others.conditions[4:6]], axis=0) if capped else True
        assert np.all((others.value >= best.value * (1 - 1e-12)) | ~np.broadcast_to(cap, y.shape))
        assert others.value.min() < 1.1 * best.value


def test_the_least_bound_refuses_what_has_no_minimum():
    c = {k: v for k, v in GOLDEN.items() if k not in STEPS}
    with pytest.raises(FedboundsError, match="Deltabar = 0"):
        least_bound(c | dict(Deltabar=0))
    with pytest.raises(FedboundsError, match="grows for ever"):
        least_bound(c | dict(sigmaL=0, sigmaG=0), capped=False)
    assert least_bound(c | dict(sigmaL=0, sigmaG=0)).value > 0


# --- From the weighted objective to the one that is meant ---------------------------------------------------------


def test_quadratics_stay_below_corollary_1_1_for_any_weights_and_points():
    """f_i = x'Ax/2 + x'By - mu |y|^2/2 + c_i.x + d_i.y: both envelopes, their maximizers and A3 are exact."""
    rng, corollary, worst = np.random.default_rng(45), load("fed-norm-sgda/corollary-1.1"), 0.0
    for _ in range(60):
        n, k, mu = int(rng.integers(2, 6)), int(rng.integers(1, 4)), rng.uniform(0.3, 2)
        A, B = rng.normal(size=(k, k)), rng.normal(size=(k, k))
        A = A + A.T
        H = np.block([[A, B], [B.T, -mu * np.eye(k)]])
        C, D, x = rng.normal(size=(n, k)), rng.normal(size=(n, k)), rng.normal(size=(20, k))
        p, w = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))

        def gradient(weights, A=A, B=B, C=C, D=D, mu=mu, x=x):
            y = (x @ B + weights @ D) / mu
            return x @ A + y @ B.T + weights @ C, y

        (true, y), (weighted, tilde) = gradient(p), gradient(w)
        spread = max(float(w @ np.sum((v - w @ v) ** 2, axis=1)) for v in (C, D))
        c = dict(Lf=np.linalg.norm(H, 2), p=p, w=w, sigmaG=math.sqrt(spread), betaG=1)
        c |= dict(epsopt=np.mean(np.sum(weighted**2, 1)), lag=np.mean(np.sum((y - tilde) ** 2, 1)))
        sharp, printed = (float(evaluated(corollary, c, form=f).value) for f in ("sharp", "printed"))
        worst = max(worst, np.mean(np.sum(true**2, 1)) / sharp)
        assert sharp <= printed
    assert 0.3 < worst <= 1


def test_equal_weights_leave_no_mismatch_and_a_client_without_weight_an_infinite_one():
    corollary = load("fed-norm-sgda/corollary-1.1")
    c = dict(Lf=2, epsopt=0.3, lag=0, sigmaG=1, betaG=1.5, p=[0.2, 0.8], w=[0.2, 0.8])
    assert float(evaluated(corollary, c).value) == pytest.approx(0.3)
    assert float(evaluated(corollary, c, form="printed").value) == pytest.approx(0.6)
    silent = evaluated(corollary, c | dict(w=[0.0, 1.0], sigmaG=0))
    assert float(silent.constants["chi2"].value) == float(silent.value) == math.inf
    unequal = evaluated(corollary, c | dict(w=[0.5, 0.5]), form="printed")  # chi^2 = 0.36
    assert float(unequal.terms["weight mismatch"]) == pytest.approx(4 * 0.36 * (2.25 * 0.3 + 1))
    with pytest.raises(FedboundsError, match=r"p sums to 0\.9, not to 1"):
        evaluated(corollary, c | dict(p=[0.2, 0.7]))


def test_two_moreau_envelopes_differ_by_what_corollary_2_1_says_and_not_by_what_its_main_text_says():
    """Phi~ = a x^2/2 and Phi = b x^2/2 at x = 1: grad = 2L(1 - prox), prox = 2L/(2L + a)."""
    corollary, L = load("fed-norm-sgda/corollary-2.1"), 10.0

    def at(a):
        prox = 2 * L / (2 * L + a)
        return (2 * L * (1 - prox)) ** 2, prox

    rng = np.random.default_rng(46)
    for a, b in rng.uniform(0.01, 10, (50, 2)):
        (surrogate, one), (left, other) = at(a), at(b)
        c = dict(Lf=L, epsbar=surrogate, proxlag=(one - other) ** 2)
        if b > a:
            assert left == pytest.approx(float(evaluated(corollary, c).value))  # in one dimension it is attained
        assert left <= float(evaluated(corollary, c).value) * (1 + 1e-12)
        assert left <= float(evaluated(corollary, c, form="explicit").value)
    (surrogate, one), (left, other) = at(1.0), at(1.2)
    c = dict(Lf=L, epsbar=surrogate, proxlag=(one - other) ** 2)
    main, appendix = (float(evaluated(corollary, c, form=f).value) for f in ("printed", "explicit"))
    assert (left, main, appendix) == pytest.approx((1.2816, 0.9716, 1.8786), abs=1e-4)
