"""The lemmas of Sharma et al. (2023): golden rounds, counterexamples, and the theorems put together from them."""

import math

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.theory.registry import load, paper

NAMES = ["b.1", "b.3", "b.4", "b.5", "b.6", "c.1", "c.2", "c.3", "c.4", "c.5"]
LEMMA = {name: load(f"fed-norm-sgda/lemma-{name}") for name in NAMES}
THEOREM_1, THEOREM_4 = load("fed-norm-sgda/theorem-1"), load("fed-norm-sgda/theorem-4")


def random_setting(rng):
    """Inside the caps of every repaired lemma, close to them."""
    n = int(rng.integers(1, 7))
    tau = np.ones(n, dtype=int) if rng.random() < 0.25 else rng.integers(1, 7, n)
    Lf, sigmaL, sigmaG, Delta, delta0, Gx, R, Deltabar = np.exp(rng.normal(size=8))
    kappa, P = rng.uniform(1, 8), int(rng.integers(1, n + 1))
    c = dict(Lf=Lf, mu=Lf / kappa, kappa=kappa, sigmaL=sigmaL, sigmaG=sigmaG, betaL=rng.uniform(0, 2))
    c |= dict(betaG=rng.uniform(1, 2), P=P, tau=tau, w=rng.dirichlet(np.ones(n)), T=120, S=int(rng.integers(1, 6)))
    c |= dict(Delta=Delta, delta0=delta0, Gx=Gx, R=R, Deltabar=Deltabar, taueff=1, rho=rng.uniform(0, 0.5))
    c |= dict(Gammax=1.0, Gammay=1.0, etax=1.0, etay=1.0)
    quiet = dict(etax=0, etay=0)
    one, four = (evaluate(t, c | quiet) for t in (THEOREM_1, THEOREM_4))
    ascent = [float(x.admissible) for x in (*one.conditions, *four.conditions) if x.limits == "Gammay"]
    c["Gammay"] = rng.uniform(0.3, 1) * min(ascent)
    c["Gammax"] = rng.uniform(0.3, 1) * c["Gammay"] / (156 * kappa**2)
    local = [float(x.admissible) for x in (*one.conditions, *four.conditions) if x.limits in ("etax", "etay")]
    c["etax"] = c["etay"] = rng.uniform(0.3, 1) * min(*local, 1 / Lf)
    m = evaluate(THEOREM_1, c).conditions[-1]
    shrink = min(1, math.sqrt(float(m.right) / max(float(m.left), 1e-300)))
    c["etax"], c["etay"] = c["etax"] * shrink, c["etay"] * shrink
    return {k: v for k, v in c.items() if k != "mu"} | dict(mu=Lf / kappa)


def parts(name, c, form="repaired", **known):
    evaluation = evaluate(LEMMA[name], c | known, form=form)
    assert evaluation.valid, evaluation.why_not
    return {term: float(value) for term, value in evaluation.terms.items()}


def test_theorem_1_follows_from_its_repaired_lemmas():
    """Average B.3, insert B.4 for the drift and B.5 for the gap, and solve for the mean squared gradient norm."""
    rng, ratios = np.random.default_rng(50), []
    for _ in range(60):
        c = random_setting(rng)
        descent = parts("b.3", c, gradsq=1, gap=1, drift=1, direction=1)
        drift, dual = parts("b.4", c, gradsq=1, gap=1), parts("b.5", c, epsopt=1, direction=1)
        gap = descent["dual gap"] + descent["local drift"] * drift["dual gap"]
        slope = -descent["descent"] - descent["local drift"] * drift["gradient"] - gap * dual["gradient"]
        assert slope >= c["Gammax"] / 3 * (1 - 1e-9)
        assert descent["direction"] + gap * dual["direction"] <= 0  # so the direction may be dropped
        free = c["Delta"] / c["T"] + descent["noise"] + descent["local drift"] * drift["noise and heterogeneity"]
        free += gap * (dual["initial dual gap"] + dual["noise"] + dual["local updates"])
        ratios.append(free / slope / float(evaluate(THEOREM_1, c, form="repaired").value))
    assert 0.6 < max(ratios) <= 1


@pytest.mark.parametrize("form", ["repaired", "sharp"])
def test_theorem_4_follows_from_its_lemmas(form):
    """Average C.1, insert C.2 for the drift, C.4 for the gap, C.3 for the gap at the snapshot."""
    rng, ratios = np.random.default_rng(51), []
    for _ in range(60):
        c = random_setting(rng)
        descent = parts("c.1", c, gradsq=1, gap=1, drift=1)
        drift, dual = parts("c.2", c, form, staledual=1), sum(parts("c.3", c, form).values())
        stale = parts("c.4", c, staledual=1)["stale snapshot"]
        free = c["Deltabar"] / c["T"] + descent["descent noise"] + descent["dual gap"] * (dual + stale)
        free += descent["local drift"] * (drift["noise"] + drift["heterogeneity"] + drift["dual gap"] * dual)
        ratios.append(free / -descent["descent"] / float(evaluate(THEOREM_4, c, form=form).value))
    assert 0.6 < max(ratios) <= 1


def test_the_printed_lemmas_lead_to_the_explicit_theorem_4():
    """The same with the printed lemmas: 8, 8, 32, 72 = 18 * 4, 18 and 104 are what they give."""
    rng = np.random.default_rng(52)
    for _ in range(20):
        c = random_setting(rng)
        terms = evaluate(THEOREM_4, c, form="explicit").terms
        ratio = 8 / c["Gammax"]
        stale = evaluate(LEMMA["c.4"], c | dict(staledual=0), form="printed").terms["stale snapshot"]
        assert ratio * 2 * c["Gammax"] * c["Lf"] * float(stale) == pytest.approx(float(terms["stale snapshot"]))
        ascent = evaluate(LEMMA["c.3"], c, form="printed").terms
        assert 18 * c["Lf"] * float(ascent["restart"]) == pytest.approx(float(terms["ascent from the snapshot"]))
        noise = float(terms["full synchronization"]) + float(terms["partial participation"])
        assert 18 * c["Lf"] * float(ascent["noise"]) == pytest.approx(noise)
        assert (18 + 32 / 4) * c["Lf"] * float(ascent["local updates"]) == pytest.approx(float(terms["local updates"]))


def test_the_exact_drift_of_a_golden_round_is_below_lemma_b_4():
    """f_i = x^2/4 + x y - y^2/2 + c_i x + d_i y at (1, 0): X_0 is known exactly."""
    c = dict(Lf=1.5, mu=1, sigmaL=0.2, sigmaG=0.75, betaL=0, betaG=1, P=2, tau=[2, 5], w=[0.5, 0.5], taueff=3.5)
    c |= dict(etax=0.05, etay=0.1, Gammax=0.007, Gammay=0.35, gradsq=2.25, gap=0.28125)
    repaired, printed = (float(evaluate(LEMMA["b.4"], c, form=f).value) for f in ("repaired", "printed"))
    assert repaired == pytest.approx(2 * printed) and printed > 0.015804972779359137


def test_lemma_b_5_has_its_golden_constants():
    c = dict(Lf=2, mu=2 / 3, T=10000, P=5, tau=[4] * 10, w=[0.1] * 10, taueff=1, betaL=0.5, betaG=1.2, delta0=0.8,
             sigmaL=math.sqrt(0.3), sigmaG=math.sqrt(0.7), Gammay=0.01, Gammax=1e-5, etax=1e-3, etay=1e-3,
             epsopt=0.3, direction=0.4)  # fmt: skip
    N, V, S2, kappa, mu = 0.18805555555555553, 1.164e-4, 0.06180555555555556, 3, 2 / 3
    value = 4 * 0.8 / (0.01 * mu * 10000) + 0.3 / (12 * mu * 9) + 8e-10 * 8 * (8 / 9) * 0.4 / (0.01 * mu)
    value += 6 * 0.01 * kappa * N + 18 * kappa * V / 2 + 8e-10 * kappa * 2 * S2 * V / 0.01
    assert float(evaluate(LEMMA["b.5"], c, form="explicit").value) == pytest.approx(value, rel=1e-12)


def test_the_printed_lemmas_b_3_and_b_5_carry_the_smoothness_that_is_printed():
    """(kappa/2 + 1) Lf = 6 of Lemma B.1 at kappa = 10; the right one, (1 + kappa) Lf = 11, is in the other forms."""
    c = dict(Lf=1, mu=0.1, sigmaL=1, betaL=0, sigmaG=0, betaG=1, P=2, tau=[1, 1], w=[0.5, 0.5], gammax=0.01, gammay=1.0)
    c |= dict(gradsq=0, gap=0, drift=0, direction=0.1, etax=0, etay=0, T=10, delta0=0, epsopt=1)
    for form, noise, direction in (("printed", 1.5e-4, 4.8e-3), ("explicit", 2.75e-4, 8.8e-3)):
        descent, ascent = (evaluate(LEMMA[name], c, form=form) for name in ("b.3", "b.5"))
        assert float(descent.terms["noise"]) == pytest.approx(noise, rel=1e-12)
        assert float(ascent.terms["direction"]) == pytest.approx(direction, rel=1e-12)
        smooth = noise * 4 / 0.01**2  # of Gammax^2 L_Phi N/2 with N = 1/2
        assert float(descent.terms["direction"]) == pytest.approx(-0.01 / 2 * (1 - 0.01 * smooth) * 0.1, rel=1e-12)
    assert float(evaluate(LEMMA["b.3"], c, form="repaired").terms["noise"]) == pytest.approx(2.75e-4, rel=1e-12)


ALGORITHM = {"uniform-sampling", "local-coefficients"}
A = {1: "smooth", 2: "unbiased-noise", 3: "bounded-heterogeneity", 4: "strongly-concave", 5: "strongly-concave",
     6: "concave", 7: "lipschitz-in-x", 8: "one-point-concave", "R": "bounded-ascent"}  # fmt: skip
LISTED = {  # which assumptions the paper lists
    "lemma-b.1": (1, 4), "lemma-b.2": (1, 2, 3), "lemma-b.3": (1, 2, 3, 4), "lemma-b.4": (1, 2, 3, 4),
    "lemma-b.5": (1, 2, 3, 4), "lemma-b.9": (1, 2, 3, 5), "lemma-c.1": (1, 2, 6, 7), "lemma-c.2": (1, 2, 3, 6, 7),
    "lemma-c.3": (1, 2, 3, 6, "R"), "lemma-c.4": (1, 2, 3, 7), "lemma-c.5": (1, 2, 3, 7, 8, "R"),
    "theorem-1": (1, 2, 3, 4), "theorem-1-at-its-steps": (1, 2, 3, 4), "theorem-2": (1, 2, 3, 6, 7, "R"),
    "theorem-3": (1, 2, 3, 7, 8, "R"), "theorem-4": (1, 2, 3, 6, 7, "R"), "corollary-1.1": (1, 2, 3, 4),
    "corollary-1.2": (1, 2, 3, 4), "corollary-2.1": (1, 2, 3, 6, 7, "R"), "corollary-2.2": (1, 2, 3, 6, 7, "R"),
    "remark-1": (1, 2, 3, 4), "remark-3": (1, 2, 3, 5), "remark-6": (2, 3), "table-1-nc-sc": (1, 2, 3, 4),
    "table-1-nc-sc-gradients": (1, 2, 3, 4), "table-2-nc-sc": (1, 2, 3, 4), "table-1-nc-c": (1, 2, 3, 6, 7, "R"),
    "table-1-nc-c-gradients": (1, 2, 3, 6, 7, "R"), "table-2-nc-c": (1, 2, 3, 6, 7, "R"),
    "table-1-nc-1pc": (1, 2, 3, 7, 8, "R"), "table-1-nc-1pc-gradients": (1, 2, 3, 7, 8, "R"),
    "table-2-nc-1pc": (1, 2, 3, 7, 8, "R"),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_a_printed_form_assumes_what_the_paper_lists_and_nothing_else(name):
    """The algorithm itself, its sampling and its local map, may be named besides."""
    names = {a.name for a in load(f"fed-norm-sgda/{name}").form("printed").assumptions}
    assert names - ALGORITHM == {A[k] for k in LISTED[name]}


def test_every_printed_form_that_rests_on_the_papers_assumptions_is_in_this_list():
    plain = {"lemma-a.3", "lemma-a.5", "lemma-a.5-gradient", "lemma-a.6", "lemma-a.7"}  # of one function
    steps = {"lemma-b.6", "lemma-b.7", "lemma-b.8"}  # which state no list of their own
    forms = ((r.key.partition("/")[2], f) for r in paper("fed-norm-sgda").results for f in r.forms)
    found = {name for name, form in forms if form.name == "printed" and form.assumptions}
    assert found == set(LISTED) | plain | steps


def test_the_local_ascent_of_lemma_c_3_is_capped_as_printed():
    """64 etay^2 D Lf^2 betaG^2 n/P <= 1, without the maximum with 1 of Theorem 4."""
    c = dict(Lf=1, sigmaL=1, sigmaG=0, betaL=0, betaG=1, P=2, tau=[2, 2], w=[0.5, 0.5], Gx=1, R=1, S=2, Gammay=0.05)
    for form, roots in (("printed", 0), ("repaired", 1)):
        caps = [x for x in LEMMA["c.3"].form(form).conditions if x.limits is not None and x.limits.name == "etay"]
        assert len(caps[0].left.atoms(sp.Max) & {sp.Max(1, n.betaG**2 * n.n / n.P)}) == roots
    assert evaluate(LEMMA["c.3"], c | dict(etax=0, etay=1 / 8), form="printed").valid


def test_the_envelope_of_a_bilinear_game_breaks_the_printed_smoothness_only():
    """f = b x y - mu y^2/2 has the envelope b^2 x^2/(2 mu)."""
    for b, mu in ((1.0, 0.01), (12.0, 5.0), (0.1, 1.0)):
        Lf = np.linalg.norm([[0, b], [b, -mu]], 2)
        printed, repaired, sharp = (float(evaluate(LEMMA["b.1"], dict(Lf=Lf, mu=mu), form=f).value)
                                    for f in ("printed", "repaired", "sharp"))  # fmt: skip
        assert b**2 / mu <= sharp <= repaired
        assert (b**2 / mu > printed) == (Lf / mu > 4)


def test_random_quadratics_obey_the_sharp_lemma_b_6():
    rng, worst = np.random.default_rng(53), 0.0
    for _ in range(300):
        A, B, mu = rng.normal(), rng.normal(), rng.uniform(0.2, 2)
        Lf, (x, y) = np.linalg.norm([[A, B], [B, -mu]], 2), rng.normal(size=2)
        c = dict(Lf=Lf, mu=mu, w=[1.0], gradsq=((A + B**2 / mu) * x) ** 2, gap=mu / 2 * (y - B * x / mu) ** 2)
        sharp, printed = (float(evaluate(LEMMA["b.6"], c, form=f).value) for f in ("sharp", "printed"))
        assert (A * x + B * y) ** 2 <= sharp * (1 + 1e-12) and sharp <= printed * (1 + 1e-12)
        worst = max(worst, (A * x + B * y) ** 2 / sharp)
    assert worst > 0.5


def test_lemma_c_5_is_lemma_c_3_under_one_point_concavity():
    c = random_setting(np.random.default_rng(54))
    for form in ("printed", "repaired"):
        three, five = (evaluate(LEMMA[name], c, form=form) for name in ("c.3", "c.5"))
        assert float(three.value) == float(five.value)
        differ = {"concave", "one-point-concave"} | ({"lipschitz-in-x"} if form == "printed" else set())
        assert set(three.assumptions) ^ set(five.assumptions) == differ  # Lemma C.3 does not list Assumption 7


def test_every_repaired_lemma_carries_its_own_constants():
    c = dict(Lf=2, mu=2 / 3, T=10000, P=5, tau=[4] * 10, w=[0.1] * 10, taueff=1, betaL=0.5, betaG=1.2, delta0=0.8,
             sigmaL=math.sqrt(0.3), sigmaG=math.sqrt(0.7), Gammay=0.01, Gammax=1e-5, etax=1e-3, etay=1e-3, S=7, R=2,
             Gx=1.1, epsopt=0.3, direction=0.4, gradsq=0.5, gap=0.6, staledual=0.7, drift=0.9)  # fmt: skip
    N, V, VC, I1, share = 0.18805555555555553, 1.164e-4, 3.0516e-4, 1.1136089978084769, 8 / 9
    x, y, growth = 1e-5, 0.01, 8 * 2 * 4 * 9.75 * 1.44
    expected = {
        "b.3": [-7 / 16 * x * 0.5, -x / 2 * (1 - 2 * share * x * 8) * 0.4, 1.25 * x * 0.9,
                2.25 * x * 6 * 0.6, x * x * 8 * N],
        "b.4": [4 * V, growth * 1e-6 * 0.5, growth * 2 * 7e-6 * 0.6],
        "b.5": [3.2 / 3 / (y * 2 / 3 * 1e4), 0.3 / (60 * 6), 4 / 3 * share * x * (x * 10 + y * 2) / (y * 2 / 3) * 0.4,
                2 / 3 * 1.0132 * 2 * y * 3 * N, 4 / 3 * 1.525 * 2 * V * 1.5],
        "c.1": [-x / 8 * 0.5, 4 * x * x * I1**2, 2 * x * 0.9, 4 * x * 0.6],
        "c.2": [4 * 8e-6 * 0.3 * 3, 8 * 4 * 9.75 * 1e-6 * (1.21 + 0.7), growth * 1e-6 * 2 * 0.7],
        "c.3": [8 / (y * 7), 2 * y * N, 11 / 2 * VC / 2],
        "c.4": [0.7, math.sqrt(2) * x * 1.1 * 6 * I1],
    }  # fmt: skip
    for name, terms in expected.items():
        got = evaluate(LEMMA[name], c, form="repaired").terms.values()
        assert [float(value) for value in got] == pytest.approx(terms, rel=1e-12), name
