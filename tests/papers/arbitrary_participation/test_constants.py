"""The first paper's constants recomputed: recursions run, inequalities met with equality; who assumes what."""

import math
from decimal import ROUND_CEILING, Decimal
from itertools import product

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.arbitrary_participation import RESULTS
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.search.optimize_answers import Minimum
from fedbounds.bounds.theory.registry import load

FORMS = {(one.key.partition("/")[2], form.name): (one, form) for one in RESULTS for form in one.forms}


def value(name, form=None, **constants):
    return float(evaluate(load(f"arbitrary-participation/{name}"), constants, form=form).value)


# --- the lemmas, by running the recursions of their proofs --------------------------------------------------------

NONE_BUT = {  # one source of drift at a time
    "cohort divergence": dict(nu=1, beta=0, gradsq=0, sigma=0),
    "participation divergence": dict(nu=0, beta=1, gradsq=0, sigma=0),
    "gradient": dict(nu=0, beta=0, gradsq=1, sigma=0),
    "noise": dict(nu=0, beta=0, gradsq=0, sigma=1),
}


def spread(I, L, gamma, nu, sigma, sumsq):
    """V after I steps: Young with 1/(2I - 1), three-way Jensen, smoothness twice, the noise that the mean leaves."""
    V = 0.0
    for _ in range(I):
        V *= 1 + 1 / (2 * I - 1) + 12 * I * (L * gamma) ** 2
        V += 6 * I * (gamma * nu) ** 2 + (gamma * sigma) ** 2 * (1 - sumsq)
    return V


def drift(V, I, P, L, gamma, beta, gradsq, sigma, rho):
    """D after I P steps: Young with 1/(2IP - 1), four-way Jensen, smoothness twice, the noise of the mean (C.9)."""
    D, steps = 0.0, I * P
    for _ in range(steps):
        D *= 1 + 1 / (2 * steps - 1) + 8 * steps * (L * gamma) ** 2
        D += 8 * steps * gamma**2 * (L**2 * V + beta**2 + gradsq) + (gamma * sigma * rho) ** 2
    return D


@pytest.mark.parametrize("source", ["cohort divergence", "noise"])
@pytest.mark.parametrize("I", [1, 3, 2000])
def test_lemma_c_1_bounds_its_recursion_which_the_sharp_form_meets_with_many_steps(source, I):
    L, sumsq = 1.7, 0.3
    setting = {k: v for k, v in NONE_BUT[source].items() if k in ("nu", "sigma")}
    setting |= dict(I=I, L=L, gamma=1 / (12 * L * I), sumsq=sumsq)
    exact = spread(**setting)
    sharp = value("lemma-c.1", "sharp", **setting)
    assert exact <= sharp <= value("lemma-c.1", "printed", P=1, **setting)
    assert I < 100 or sharp < 1.001 * exact


@pytest.mark.parametrize("source", NONE_BUT)
@pytest.mark.parametrize(("I", "P"), [(1, 1), (3, 4), (1500, 1), (40, 50)])
def test_lemma_c_2_bounds_its_recursion_which_the_sharp_form_meets_with_many_steps(source, I, P):
    L, rho = 1.7, 0.15
    gamma = 1 / (12 * L * I * P)
    one = NONE_BUT[source]
    within = dict(I=I, L=L, gamma=gamma, nu=one["nu"], sigma=one["sigma"])
    V = value("lemma-c.1", "sharp", **within, sumsq=1e-12)
    rest = {k: one[k] for k in ("beta", "gradsq", "sigma")}
    exact = drift(V, I, P, L, gamma, rho=rho, **rest)
    both = dict(one, I=I, P=P, L=L, gamma=gamma, rho=rho)
    sharp = value("lemma-c.2", "sharp", **both)
    assert exact <= sharp <= value("lemma-c.2", "printed", **both, sumsq=1e-12)
    assert I * P < 100 or sharp < 1.002 * exact


def test_the_printed_lemmas_round_the_geometric_sums_up_to_whole_numbers():
    # (1 + x)^(1/x) <= e, and half a step's growth is at most its value at I = 1 (at IP = 1)
    first = math.ceil((math.exp(7 / 12) * math.sqrt(1 + 7 / 6) - 1) * 12 / 7)
    second = math.ceil((math.exp(5 / 9) * math.sqrt(1 + 10 / 9) - 1) * 9 / 5)
    I, P, L, rho, sumsq = 5, 3, 1.7, 0.6, 0.4
    gamma = 1 / (12 * L * I * P)
    for one in NONE_BUT.values():
        within = dict(I=I, P=P, L=L, gamma=gamma, nu=one["nu"], sigma=one["sigma"], sumsq=sumsq)
        lemma_1 = value("lemma-c.1", "printed", **within)
        once = 6 * I * (gamma * one["nu"]) ** 2 + (gamma * one["sigma"]) ** 2 * (1 - sumsq)
        assert lemma_1 == pytest.approx(first * I * once)
        once = (
            8 * I * P * gamma**2 * (L**2 * lemma_1 + one["beta"] ** 2 + one["gradsq"])
            + (gamma * one["sigma"] * rho) ** 2
        )
        lemma_2 = value("lemma-c.2", "printed", **within, beta=one["beta"], gradsq=one["gradsq"], rho=rho)
        assert lemma_2 == pytest.approx(second * I * P * once)


# --- Theorem 3.1, put together from the lemmas (C.13)-(C.16) ------------------------------------------------------

GENERIC = dict(L=1.3, I=3, P=4, T=50, gamma=0.004, eta=5.0, rho=0.61, sigma=1.7, nu=0.83, beta=0.57, delta=0.29)


def assembled(which, decrease, kept=None, **changes):
    """The squared gradient that the descent over one window leaves, with these forms of the lemmas.

    Without drift, -gamma eta IP/2 of the gradient is left; the drift takes its share of it, and the paper keeps half.
    """
    c = dict(GENERIC, sumsq=1e-15) | changes
    L, I, P, gamma, eta = (c[k] for k in ("L", "I", "P", "gamma", "eta"))
    lemma = {k: c[k] for k in ("L", "I", "P", "gamma", "nu", "sigma", "rho", "beta", "sumsq")}
    V = value("lemma-c.1", which, **{k: v for k, v in lemma.items() if k not in ("rho", "beta")})
    D = value("lemma-c.2", which, **lemma, gradsq=0)
    steps = I * P
    right = decrease + (gamma * eta * L) ** 2 / L * steps * (c["rho"] * c["sigma"]) ** 2  # L/2 times (C.15)
    right += 3 / 2 * gamma * eta * steps * (L**2 * (V + D) + c["delta"] ** 2)
    share = 3 * L**2 * (value("lemma-c.2", which, **lemma, gradsq=1) - D)
    return right / (gamma * eta * steps / 2 * (kept or 1 - share))


def test_theorem_3_1_is_the_descent_over_a_window_with_the_lemmas_put_in():
    F, windows = 2.1, GENERIC["T"] // GENERIC["P"]
    theorem = dict(GENERIC, F=F)
    half = assembled("printed", F / windows, kept=1 / 2)
    assert value("theorem-3.1", "explicit:any-P", **theorem) == pytest.approx(half, rel=1e-12)
    assert value("theorem-3.1", "sharp", **theorem) == pytest.approx(assembled("sharp", F / windows), rel=1e-12)
    one = assembled("printed", 0.53, kept=1 / 2)
    assert value("equation-c.16", decrease=0.53, **{k: GENERIC[k] for k in GENERIC if k != "T"}) == pytest.approx(one)
    # P floor(T/P) >= T/2 is an inequality that T = 50, P = 4 does not meet: 48 of 50 rounds are in complete windows
    longer = assembled("printed", F / (GENERIC["T"] / 2 / GENERIC["P"]), kept=1 / 2)
    assert value("theorem-3.1", "explicit", **theorem) == pytest.approx(longer, rel=1e-12)
    shared = assembled("printed", F / (GENERIC["T"] / 2 / GENERIC["P"]), kept=1 / 2, sumsq=0.4)
    assert value("theorem-3.1", "explicit:sumsq", sumsq=0.4, **theorem) == pytest.approx(shared, rel=1e-12)


def test_without_drift_theorem_3_1_loses_the_lemmas_terms():
    F, T = 2.1, GENERIC["T"]
    one_step = dict(GENERIC, I=1, F=F)
    no_spread = assembled("printed", F / (T / 2 / 4), kept=1 / 2, I=1, nu=0, sumsq=1)  # V = 0
    assert value("theorem-3.1", "explicit:I=1", **{k: v for k, v in one_step.items() if k != "nu"}) == pytest.approx(
        no_spread, rel=1e-12
    )
    gamma, eta, L = GENERIC["gamma"], GENERIC["eta"], GENERIC["L"]
    noise = (gamma * eta * L) ** 2 / L * (GENERIC["rho"] * GENERIC["sigma"]) ** 2
    no_drift = (F / (T / 2) + noise + 3 / 2 * gamma * eta * GENERIC["delta"] ** 2) / (gamma * eta / 4)
    at = {k: v for k, v in (one_step | dict(P=1)).items() if k not in ("nu", "beta")}
    assert value("theorem-3.1", "explicit:I=P=1", **at) == pytest.approx(no_drift, rel=1e-12)


def test_the_worst_constants_of_the_sharp_form_are_its_own_at_the_cap_to_four_digits_rounded_up():
    at_cap = dict(L=1, F=1, I=1, P=1, T=4, gamma=1 / 12, eta=6, rho=1, nu=1, beta=1, delta=1, sigma=1)
    sharp, worst = (
        evaluate(load("arbitrary-participation/theorem-3.1"), at_cap, form=form).terms
        for form in ("sharp", "sharp:worst")
    )
    unit = evaluate(load("arbitrary-participation/theorem-3.1"), at_cap, form="printed").terms
    for name in sharp:
        exact = Decimal(float(sharp[name] / unit[name])) * (Decimal(3) / 2 if name == "initial gap" else 1)
        digits = Decimal(1).scaleb(exact.adjusted() - 3)
        assert float(worst[name] / unit[name]) == pytest.approx(float(exact.quantize(digits, ROUND_CEILING)), rel=1e-12)


# --- orders and explicit forms differ by numbers only ------------------------------------------------------------

ONLY_NUMBERS = [
    ("theorem-3.1", "explicit", {}),
    ("corollary-3.2", "explicit", {"drift noise": {n.P, n.rho}}),
    ("corollary-3.3", "explicit", {"drift noise": {n.P, n.rho}, "noise": {n.sigma}}),
    ("corollary-4.3", "repaired", {"drift noise": {n.I, n.P, n.rho}, "divergence": {n.P}}),
    ("corollary-4.8", "explicit", {"drift noise": {n.I, n.N, n.T, n.upsilon, n.rho}, "noise": {n.sigma}}),
]


@pytest.mark.parametrize(("name", "which", "varying"), ONLY_NUMBERS, ids=[row[0] for row in ONLY_NUMBERS])
def test_the_printed_order_is_the_explicit_form_with_the_numbers_left_out(name, which, varying):
    order, explicit = ({t.name: t.expression for t in FORMS[name, form][1].terms} for form in ("printed", which))
    assert order.keys() == explicit.keys()
    for term in order:
        ratio = sp.simplify(explicit[term] / order[term])
        assert ratio.free_symbols == varying.get(term, set()), term
        assert 0.1 < float(ratio.subs({s: 1 for s in ratio.free_symbols})) <= 144


def test_the_ratios_that_vary_stay_between_two_numbers():
    def ratio(name, which, term, **at):
        order, explicit = (
            next(t.expression for t in FORMS[name, form][1].terms if t.name == term) for form in ("printed", which)
        )
        return sp.simplify(explicit / order).subs({n[k].symbol: v for k, v in at.items()})

    for name in ("corollary-3.2", "corollary-3.3"):
        assert ratio(name, "explicit", "drift noise", P=1, rho=1) == sp.Rational(13, 48)
        assert sp.limit(ratio(name, "explicit", "drift noise", rho=1), n.P, sp.oo) == sp.Rational(1, 8)
    for name in ("corollary-3.3", "corollary-4.8"):
        noise = ratio(name, "explicit", "noise")
        assert (noise.subs(n.sigma, 0), sp.limit(noise, n.sigma, sp.oo)) == (8, 4)
    assert ratio("corollary-4.3", "repaired", "drift noise", I=1, P=1, rho=1) == sp.Rational(13, 48)
    divergence = ratio("corollary-4.3", "repaired", "divergence")
    assert (divergence.subs(n.P, 1), sp.limit(divergence, n.P, sp.oo)) == (1 + sp.Rational(126, 144), 1)


def test_corollary_4_3_is_corollary_3_2_with_the_largest_divergences():
    setting = {k: GENERIC[k] for k in ("L", "I", "P", "T", "rho", "sigma")} | dict(F=2.1)
    for theirs, ours in (("explicit", "repaired"), ("sharp", "sharp")):
        larger = value("corollary-3.2", theirs, **setting, nu=1.9, beta=1.9, delta=0)
        assert value("corollary-4.3", ours, **setting, d=1.9) == pytest.approx(larger, rel=1e-12)


# --- window divergences, where the inequalities are equalities ---------------------------------------------------


def coin(P):
    """E of (7) and Var of a mean weight, by enumeration: two clients, v = (-1, 1), a fair one-hot coin each round."""
    heads = np.array([sum(tosses) for tosses in product((0, 1), repeat=P)])
    return float(np.mean((1 - 2 * heads / P) ** 2)), float(np.var(heads / P))


@pytest.mark.parametrize("P", [1, 2, 5])
def test_two_clients_and_a_coin_meet_the_expected_window_divergence(P):
    exact, variance = coin(P)
    assert value("proposition-4.7", N=2, S=1, P=P, d=1) == pytest.approx(exact)
    for name in ("proposition-4.4", "proposition-4.6"):
        assert value(name, "repaired", N=2, d=1, windowvar=variance) == pytest.approx(exact)
    corollary = dict(L=1, F=1e-4, I=1, T=10**4, P=P, rho=1, sigma=0, d=1)
    window = evaluate(load("arbitrary-participation/corollary-4.8"), dict(corollary, N=2, S=1)).terms
    other = evaluate(
        load("arbitrary-participation/corollary-4.8"),
        dict(corollary, N=2, windowvar=variance),
        form="repaired:window-variance",
    ).terms
    theorem = evaluate(
        load("arbitrary-participation/theorem-3.1"),
        dict(GENERIC, F=1, delta=math.sqrt(exact)),
        form="explicit",
    ).terms["window divergence"]
    assert window["window divergence"] == pytest.approx(theorem) == other["window divergence"]


def test_the_repaired_interval_of_corollary_4_8_is_refused_unless_it_is_a_whole_number():
    # 5 of 20 clients: upsilon^4 N^5 = 180, so P = sqrt(180 T) is 30 k at T = 5 k^2, up to rounding
    whole = 5 * np.arange(1, 200) ** 2
    setting = dict(L=1, F=1e-9, I=1, N=20, S=5, d=1, sigma=1)
    for rounds, holds in ((whole, True), (whole + 1, False), (whole + 4, False)):
        found = evaluate(load("arbitrary-participation/corollary-4.8"), dict(setting, T=rounds), form="repaired")
        assert (found.conditions[-1].holds == holds).all()
        assert np.allclose(found.prescribed["P"] ** 2, 180 * rounds)


def test_the_free_intervals_of_corollary_4_8_are_the_nearest_whole_numbers_and_at_least_one():
    corollary = load("arbitrary-participation/corollary-4.8")
    setting = dict(L=1, F=1, I=2, T=np.arange(1, 400), N=20, S=19, d=2, sigma=0)
    upsilon = math.sqrt((20 - 19) / 19) / 20
    fixed = np.sqrt(upsilon**4 * 20**5 * 2 * setting["T"])
    best = np.sqrt(6 * (20 * 2 * upsilon) ** 2 * setting["T"] / 16)  # where the two terms are equal
    for form, real in (("repaired:integer-P", fixed), ("repaired:any-I", best)):
        chosen = np.asarray(evaluate(corollary, setting, form=form).constants["P"].value)
        assert real.min() < 0.5 and real.max() > 1.6
        assert (chosen == np.maximum(1, np.rint(real))).all()


def test_every_row_of_mean_weights_has_as_many_clients_as_entries():
    qbar = np.array([[0.5, 0.3, 0.2, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2], [1, 0, 0, 0, 0]])
    found = evaluate(load("arbitrary-participation/equation-15"), dict(qbar=qbar, d=1), form="printed")
    assert np.allclose(found.value, 5 * np.array([0.18, 0, 0.8]))


@pytest.mark.parametrize("form", ["printed", "sharp:median"])
def test_alternating_weights_and_offsets_meet_equation_15(form):
    a, d = 0.07, 1.4
    qbar = 0.25 + a * np.array([1, -1, 1, -1])
    exact = (qbar @ (d * np.array([1, -1, 1, -1]))) ** 2
    assert value("equation-15", form, qbar=qbar, d=d) == pytest.approx(exact)


@pytest.mark.parametrize("r", [-0.5, 0.5])
def test_the_long_run_variance_is_the_limit_for_a_chain_of_two_clients(r):
    # Var(q) = 1/4, Cov(q_0, q_p) = r^p/4
    P = 20000
    lags = np.arange(1, P)
    exact = (1 + 2 * np.sum((1 - lags / P) * r**lags)) / (4 * P)
    upsilonhat = math.sqrt((1 + 2 * np.sum(r**lags)) / 4)
    assert value("lemma-4.5", upsilonhat=upsilonhat, P=P) == pytest.approx(exact, rel=2e-4)
    claimed = value("proposition-4.6", "printed", N=2, d=1, upsilonhat=upsilonhat, P=P)
    assert claimed == pytest.approx(4 * exact, rel=2e-4)


def test_the_tails_give_back_the_probability_of_failure():
    N, d, P, c, upsilon = 7, 1.3, 11, 0.03, 0.2
    both = dict(N=N, d=d, P=P, c=c)

    def deviation(name, form, **constants):  # of one client's mean weight from its mean, squared
        return value(name, form, **constants) / (N * d) ** 2

    chebyshev = deviation("proposition-4.6", "printed:probability", upsilonhat=upsilon, **both)
    assert upsilon**2 / P / chebyshev == pytest.approx(c)
    markov = deviation("proposition-4.6", "repaired:probability", N=N, d=d, c=c, windowvar=upsilon**2 / P)
    assert markov == pytest.approx(chebyshev)
    assert deviation("proposition-4.7", "repaired:markov", upsilon=upsilon, **both) == pytest.approx(chebyshev)
    hoeffding = deviation("proposition-4.7", "printed:probability", **both)
    assert 2 * math.exp(-2 * P * hoeffding) == pytest.approx(c)  # weights in [0, 1]


def test_the_default_tail_parameter_is_within_one_percent_of_the_best():
    both = dict(N=1, d=1, P=1, c=0.01)
    default = value("proposition-4.7", "repaired:probability", **both)
    least = min(value("proposition-4.7", "repaired:probability", theta=t, **both) for t in np.linspace(0.5, 0.99, 50))
    assert default <= 1.01 * least


def test_the_default_scale_of_corollary_3_3_is_the_papers():
    setting = dict(L=1, F=1, I=2, P=3, T=10**4, rho=0.5, nu=1, beta=1, delta=1, sigma=2)
    assert value("corollary-3.3", "repaired", **setting) == pytest.approx(value("corollary-3.3", "explicit", **setting))


def test_a_participant_in_n_over_s_rounds_makes_gu_et_al_s_rate_the_independent_one():
    gu, ours = (FORMS[name, "printed"][1].bound for name in ("table-1-gu", "table-1-independent"))
    assert sp.simplify(gu.subs(n.E, n.N / n.S) - ours) == 0
    yan = FORMS["table-1-yan", "printed"][1].bound
    # with everyone there and one local step the other cited rate is larger by the fourth root of N alone
    assert sp.simplify((yan / gu).subs({n.I: 1, n.S: n.N}) - n.N ** sp.Rational(1, 4)) == 0


# --- what the forms assume, promise and take -----------------------------------------------------------------------

LETTER_OF = {  # an assumption is about a symbol: a form that has the symbol assumes it, and no other form does
    "participation-divergence": "beta",
    "cohort-divergence": "nu",
    "bounded-divergence": "d",
    "window-variance": "windowvar",
    "strongly-mixing": "upsilonhat",
    "participation-norm": "rho",
}
NOISE = {"smooth", "unbiased-noise", "independent-clients", "martingale-noise", "exogenous-participation"}
SAMPLING = {"unbiased-sampling", "ergodic", "strongly-mixing", "independent-rounds", "window-variance"}
SAMPLING |= {"jointly-independent-rounds"}
SECTION_4_2 = {
    "proposition-4.4": {"printed": "ergodic", "repaired": "window-variance"},
    "proposition-4.6": {"printed": "strongly-mixing", "repaired": "window-variance"},
    "proposition-4.7": dict.fromkeys(("printed", "repaired"), "independent-rounds")
    | {"sharp": "jointly-independent-rounds"},
    "corollary-4.8": dict.fromkeys(("printed", "explicit", "repaired"), "independent-rounds"),
    "table-1-ergodic": {"printed": "ergodic"},
    "table-1-mixing": {"printed": "strongly-mixing"},
    "table-1-independent": {"printed": "independent-rounds"},
}
BOUNDED = ("participation-norm", "cohort-divergence", "participation-divergence", "window-divergence")
SPECIAL = {
    ("corollary-4.8", "printed:mixing"): "strongly-mixing",
    ("corollary-4.8", "repaired:window-variance"): "window-variance",
    ("proposition-4.7", "repaired:one-window"): "jointly-independent-rounds",
    ("proposition-4.7", "repaired:all-windows"): "jointly-independent-rounds",
    ("proposition-4.7", "repaired:own-constant"): "jointly-independent-rounds",
}


@pytest.mark.parametrize("key", FORMS, ids=" ".join)
def test_a_form_assumes_what_its_symbols_are_about(key):
    (name, which), (_, form) = key, FORMS[key]
    in_expectation = name.endswith("-expected") or (name == "corollary-4.8")
    assert all(a.name.startswith("expected-") == in_expectation for a in form.assumptions if a.name.endswith(BOUNDED))
    assumed = [a.name.removeprefix("expected-") for a in form.assumptions]
    assert len(assumed) == len(set(assumed))
    if name in ("table-1-yan", "table-1-gu"):
        assert assumed == ["cited"]
        return
    symbols = {s.name for s in form.symbols}
    if not name.startswith(("table", "section")):  # a rate hides its symbols
        for assumption, symbol in LETTER_OF.items():
            zero = assumption == "bounded-divergence" and name == "proposition-4.4"
            assert (assumption in assumed) == (symbol in symbols) or zero, assumption
        assert ("window-divergence" in assumed) == ("delta" in symbols)
        assert ("weights" in assumed) == (name != "lemma-4.5")
        assert ("weights-at-most" in assumed) == (which == "repaired:equal-weights")
    on_a_run = name.startswith(("theorem", "corollary", "lemma-c", "equation-c", "table", "section"))
    assert NOISE & set(assumed) == (NOISE if on_a_run else set())
    # a least gradient needs an f that is bounded below; a lemma and one window of the proof do not
    assert ("bounded-below" in assumed) == (on_a_run and not name.startswith(("lemma", "equation")))
    if name.startswith("table"):
        assert {"bounded-divergence", "weights"} <= set(assumed)
    expected = {"unbiased-sampling"} if name in SECTION_4_2 else set()
    if name in SECTION_4_2:
        expected |= {SPECIAL.get(key) or SECTION_4_2[name][form.kind]}
    assert SAMPLING & set(assumed) - expected == ({"strongly-mixing"} if name == "lemma-4.5" else set())
    assert expected <= set(assumed)
    regular = name.removesuffix("-expected") in ("proposition-4.2", "corollary-4.3", "table-1-regularized")
    assert ("regularized" in assumed) == regular
    assert ("everyone-called" in assumed) == (name == "section-5-wait-for-all")


def test_the_assumptions_about_who_takes_part_say_so():
    about = {a.name: a.participation for _, form in FORMS.values() for a in form.assumptions}
    assert {name for name, participation in about.items() if participation} == SAMPLING | {
        "weights", "weights-at-most", "regularized", "everyone-called", "exogenous-participation",
        "participation-norm", "expected-participation-norm",
    }  # fmt: skip


@pytest.mark.parametrize("key", FORMS, ids=" ".join)
def test_an_order_is_a_printed_theorem_or_rate_and_says_what_it_hides(key):
    (name, which), (_, form) = key, FORMS[key]
    order = which.startswith("printed") and name.startswith(("theorem", "corollary", "table", "section"))
    assert form.order_only == order == bool(form.hides)
    scale = order and any("sigma**2 + 1" in str(t.expression) for t in form.terms) and name.startswith("corollary")
    assert ("scale" in form.hides) == scale


def test_the_limits_and_the_errata_are_those_of_the_statements():
    limits = {key: form.asymptotic for key, (_, form) in FORMS.items() if form.asymptotic}
    in_rounds = {(r, f) for r, f in FORMS if r.startswith(("table", "section"))} | {("corollary-4.8", "printed:mixing")}
    in_window = {("lemma-4.5", "printed"), ("proposition-4.4", "printed")}
    in_window |= {("proposition-4.6", "printed"), ("proposition-4.6", "printed:probability")}
    assert limits == dict.fromkeys(in_rounds, "T -> infinity") | dict.fromkeys(in_window, "P -> infinity")
    refuted = {" ".join(key): form.refuted_by for key, (_, form) in FORMS.items() if form.refuted_by}
    assert refuted == {
        "proposition-4.1 printed": "suprema-at-different-rounds",
        "corollary-4.8 explicit": "suprema-at-different-rounds",
        "proposition-4.4 printed": "ergodic-but-not-uniformly",
        "proposition-4.6 printed": "vanishing-long-run-variance",
        "proposition-4.6 printed:probability": "chebyshev-for-one-window",
        "proposition-4.7 printed:probability": "one-window-is-not-all-windows",
        "corollary-4.8 printed:mixing": "vanishing-long-run-variance",
        "table-1-independent printed:probability": "lost-weight-variance",
    }


@pytest.mark.parametrize("key", FORMS, ids=" ".join)
def test_the_left_hand_side_says_what_is_averaged_and_what_is_held_fixed(key):
    (name, which), (one, form) = key, FORMS[key]
    measure = form.measure or one.measure
    assert str(one.measure) != str(form.measure)
    at_every_point = which.partition(":")[2] in ("one-window", "all-windows", "own-constant")
    likely = which.endswith(":probability") or which in ("repaired:equal-weights", "repaired:markov") or at_every_point
    assert ("an event of probability at least 1 - c" in measure.given) == likely
    least = name.startswith(("theorem", "corollary", "table", "section"))
    assert (measure.aggregate, measure.over) == (("minimum", "rounds") if least else ("single", "none"))
    over = name in ("corollary-4.8", "table-1-ergodic", "table-1-mixing", "table-1-independent") and not likely
    over |= name.endswith("-expected")
    over |= name in ("proposition-4.4", "lemma-4.5", "proposition-4.6", "proposition-4.7") and not likely
    noise = least or name.startswith(("lemma-c", "equation-c"))
    wanted = [word for word, there in (("gradient noise", noise), ("participation", over)) if there]
    assert measure.expectation == " and ".join(wanted)
    assert ("participation" in measure.given) == (noise and not over)
    average = which.startswith("repaired") and likely and not at_every_point
    assert measure.of.startswith("average over the complete windows") == average


@pytest.mark.parametrize("key", FORMS, ids=" ".join)
def test_participants_stand_for_the_weights_wherever_these_are_used(key):
    (name, _), (_, form) = key, FORMS[key]
    symbols = {str(s) for s in form.symbols.union(*(e.free_symbols for e in form.prescribes.values()))}
    rules = {rule.name: rule for rule in form.derived}
    assert ("rho" in rules) == ("rho" in symbols)
    assert ("upsilon" in rules) == ("upsilon" in symbols)
    assert {rule for rule in rules if rules[rule].free} == rules.keys() & {"P"}
    assert ("P" in rules) == (name == "corollary-4.8" and "P" in symbols and "upsilon" in symbols)
    assert ("N" in rules) == ({"N", "qbar"} <= symbols)


# --- the symbols ---------------------------------------------------------------------------------------------------

EDGES = {  # symbols: (values at the edge that are legal, values just beyond it)
    "L gamma eta s r": ((1e-300, 1e300), (0, -1, math.inf)),
    "F sigma nu beta delta d upsilon upsilonhat gradsq windowvar": ((0, 1e300), (-1e-300, math.inf)),
    "I P T S N E M": ((1, 10**9), (0, 1.5, math.inf)),
    "rho sumsq": ((1e-300, 1), (0, 1.0000001)),
    "c theta": ((1e-300, 0.9999999), (0, 1)),
    "decrease": ((-1e300, 0, 1e300), (-math.inf, math.inf)),
}


def test_every_symbol_has_the_domain_of_what_it_stands_for():
    assert {name for names in EDGES for name in names.split()} | {"qbar"} == set(n)
    for names, (legal, illegal) in EDGES.items():
        for name in names.split():
            n[name].check(np.array(legal, dtype=float))
            for bad in illegal:
                with pytest.raises(FedboundsError, match=f"^{name} = .* is outside its domain"):
                    n[name].check(np.array(float(bad)))
    assert [name for name in n if n[name].default is not None] == ["s", "theta", "r"]
    assert [name for name in n if n[name].shape] == ["qbar"]


def test_constants_may_be_given_by_their_concepts():
    by_concept = dict(
        smoothness=1.3, initial_gap=2.1, local_steps=3, interval=4, rounds=50, local_step_size=0.004,
        server_multiplier=5.0, participation_norm=0.61, gradient_noise=1.7, cohort_divergence=0.83,
        participation_divergence=0.57, window_divergence=0.29,
    )  # fmt: skip
    assert value("theorem-3.1", **by_concept) == value("theorem-3.1", F=2.1, **GENERIC)
    both = dict(clients=20, participating_clients=5, interval=3, gradient_divergence_sup=1.5)
    assert value("proposition-4.7", **both) == value("proposition-4.7", N=20, S=5, P=3, d=1.5)


def test_more_participants_than_clients_are_refused_with_the_rule_that_breaks():
    with pytest.raises(FedboundsError, match=r"^upsilon = nan .*; it follows from N = 5, S = 10 \(S of N uniformly"):
        value("proposition-4.7", N=5, S=10, P=3, d=1)


def test_the_tuned_constants_are_nowhere_above_the_rounded_ones_at_the_largest_step_sizes():
    theorem = load("arbitrary-participation/theorem-3.1")
    at = dict(L=1, F=1, I=3, P=4, rho=0.5, sigma=1, nu=1, beta=1, delta=1, gamma=1 / 144, eta=6)
    for T in (8, 11, 4000, 4003):
        tuned, worst = (evaluate(theorem, at | dict(T=T), form=f).terms for f in ("sharp:tuned", "sharp:worst"))
        assert all(tuned[name] <= worst[name] for name in worst)
    shares = [float(tuned[name] / worst[name]) for name in ("cohort divergence", "participation divergence")]
    assert shares == pytest.approx([0.476, 0.625], abs=1e-3)


def test_tuning_r_lets_the_window_divergence_come_close_to_one_instead_of_six():
    theorem = load("arbitrary-participation/theorem-3.1")
    known = dict(L=1, F=5, I=2, P=2, T=10**6, rho=0.7, sigma=0.7, nu=2, beta=0.5, delta=0.3)
    chosen = optimize(theorem, known, over=("gamma", "eta", "r"), within={"eta": (1, 1000)}, form="sharp:tuned")
    explicit = optimize(theorem, known, over=("gamma", "eta"), within={"eta": (1, 1000)}, form="explicit")
    assert isinstance(chosen, Minimum) and isinstance(explicit, Minimum)
    assert chosen.value < 1.03 * 0.09 < 0.55 < explicit.value * 1.01
