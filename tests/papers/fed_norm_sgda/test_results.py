"""Theorem 1 of Sharma et al. (2023): every form against a plain twin, golden values, exact minimax runs."""

import math
from functools import partial

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load

evaluated = partial(evaluate, strict=False)

THEOREM = load("fed-norm-sgda/theorem-1")
GOLDEN = dict(
    Lf=2, mu=2 / 3, T=10000, P=5, tau=[4] * 10, w=[0.1] * 10, taueff=1, betaL=0.5, betaG=1.2, sigmaL=math.sqrt(0.3),
    sigmaG=math.sqrt(0.7), gammay=0.01, gammax=0.01 / (156 * 9), etax=0.001, etay=0.001, Delta=1.5, delta0=0.8,
)  # fmt: skip


def composites(c):
    """The paper's composite constants for the coefficients (1, ..., 1), from the vectors of coefficients themselves."""
    tau, w, n, P = np.asarray(c["tau"]), np.asarray(c["w"]), len(c["tau"]), c["P"]
    vectors = [np.ones(t) for t in tau]
    one = np.array([np.abs(a).sum() for a in vectors])
    two = np.array([(a**2).sum() for a in vectors])
    one_less, two_less = one - 1, two - 1
    k = dict(kappa=c["Lf"] / c["mu"], r=n / P, d=0.0 if n == 1 else (n - P) / (n - 1), W=w.max())
    k |= dict(Z=np.sum(w**2 * two / one**2), Q=np.max(w * two / one**2), K=np.max(w / one))
    k |= dict(C_w=np.sum(w * two_less), D=np.max(one_less**2 + c["betaL"] ** 2 * two_less))
    k |= dict(a_m=np.max(one * (one_less + c["betaL"] ** 2)))
    k["S1"] = k["d"] * k["W"] + c["betaL"] ** 2 * k["Q"]
    k["S2"] = k["d"] * k["W"] + c["betaL"] ** 2 * k["K"]
    k["N"] = k["r"] * (c["sigmaL"] ** 2 * k["Z"] + 2 * c["sigmaG"] ** 2 * k["S1"])
    k["drift"] = (c["etax"] ** 2 + c["etay"] ** 2) * c["Lf"] ** 2
    k["V"] = k["drift"] * (c["sigmaL"] ** 2 * k["C_w"] + 2 * c["sigmaG"] ** 2 * k["D"])
    taueff = c.get("taueff", np.sum(w * one))
    return k | dict(Gx=taueff * c["gammax"], Gy=taueff * c["gammay"], nu=1 if np.all(tau == 1) else 2)


CONSTANTS = {"repaired": (3, 10, 6, 23), "sharp": (2.1, 4.75, 2.44, 11.5)}


def twin(form, c):
    """Value, and the two sides of the step-size conditions, with plain floats."""
    k = composites(c)
    kappa, L, Gx, Gy, r, d, nu = k["kappa"], c["Lf"], k["Gx"], k["Gy"], k["r"], k["d"], k["nu"]
    T, sL2, sG2, bL, bG = c["T"], c["sigmaL"] ** 2, c["sigmaG"] ** 2, c["betaL"], c["betaG"]
    speed = (Gx, Gy / (156 * kappa**2))
    grows = max(bL**2 * k["Q"], d * k["W"])
    if form == "printed":
        value = kappa**2 * (c["Delta"] / (Gy * T) + Gy * L * r * (sL2 * k["Z"] + bL**2 * k["Q"] * sG2))
        value += kappa**2 * k["drift"] * (k["C_w"] * sL2 + k["D"] * sG2) + kappa**2 * d * Gy * L * r * k["W"] * sG2
        LPhi = kappa * L / 2 + L
        return value, [
            (2 * Gy * L, 1), (Gy * kappa * L * bG**2 * r * grows, 1 / 64), speed,
            (8 * Gx * LPhi * bL**2 * r * max(k["K"], d * k["W"]), 1),
            (Gx * L * bG * math.sqrt(r) * max(d * k["W"], bL * math.sqrt(k["Q"])), 1 / (40 * kappa)),
            (16 * c["etay"] * L * bG * math.sqrt(kappa * k["D"]), 1),
            (64 * c["etax"] * L * bG * kappa * math.sqrt(k["D"]), 1),
        ]  # fmt: skip
    if form == "explicit":
        value = 6 * c["Delta"] / (Gx * T) + 60 * kappa**2 * c["delta0"] / (Gy * T)
        value += (90 * kappa**2 * Gy * L + 3 * Gx * (1 + kappa) * L) * k["N"]
        value += (270 * kappa**2 + 15 + 120 * kappa**2 * L * r * k["S2"] * Gx**2 / Gy) * k["V"]
        nu, mixing = 1, Gy * L * r * (1 + 2 * Gx**2 * L / Gy) * k["S2"]
    else:
        descent, dual, noise, local = CONSTANTS[form]
        value = descent * c["Delta"] / (Gx * T) + dual * kappa**2 * c["delta0"] / (Gy * T)
        value += noise * nu * kappa**2 * L * Gy * k["N"] + local * nu * kappa**2 * k["V"]
        mixing = 4 * nu * Gy * L * r * k["S2"]
    return value, [
        (2 * nu * Gy * L, 1), (nu * Gy * kappa * L * bG**2 * r * grows, 1 / 64), speed, (mixing, 1),
        (16 * c["etay"] * L * bG * math.sqrt(nu * kappa * k["D"]), 1),
        (64 * c["etax"] * L * bG * kappa * math.sqrt(nu * k["D"]), 1),
        (2 * nu * k["drift"] * k["a_m"], 1 / 2),
    ]  # fmt: skip


def random_setting(rng, *, fraction=1.0):
    """Constants inside the certified caps; `fraction` of the largest steps."""
    n = int(rng.integers(1, 7))
    tau, w = rng.integers(1, 7, n), rng.dirichlet(np.ones(n))
    if rng.random() < 0.25:
        tau = np.ones(n, dtype=int)
    Lf, sigmaL, sigmaG, Delta, delta0, taueff = np.exp(rng.normal(size=6))
    c = dict(Lf=Lf, mu=Lf / rng.uniform(1, 8), sigmaL=sigmaL, betaL=rng.uniform(0, 2), sigmaG=sigmaG)
    c |= dict(betaG=rng.uniform(1, 2), P=int(rng.integers(1, n + 1)), T=int(rng.integers(1, 5000)), tau=tau, w=w)
    c |= dict(taueff=taueff, etax=0.0, etay=0.0, gammax=1.0, gammay=1.0, Delta=Delta, delta0=delta0)
    k = composites(c)
    growing = k["nu"] * k["kappa"] * Lf * c["betaG"] ** 2 * k["r"] * max(c["betaL"] ** 2 * k["Q"], k["d"] * k["W"])
    caps = [1 / (2 * k["nu"] * Lf), 1 / (64 * growing) if growing else math.inf]
    caps += [1 / (4 * k["nu"] * Lf * k["r"] * k["S2"])] if k["S2"] else []
    c["gammay"] = fraction * rng.uniform(0.5, 1) * min(caps) / taueff
    c["gammax"] = fraction * rng.uniform(0.5, 1) * c["gammay"] / (156 * k["kappa"] ** 2)
    drift = max(k["D"], 0.3) * k["nu"]
    local = 1 / (8 * Lf * math.sqrt(k["nu"] * k["a_m"] + 0.1))
    c["etay"] = fraction * min(1 / (16 * Lf * c["betaG"] * math.sqrt(k["kappa"] * drift)), local)
    c["etax"] = fraction * min(1 / (64 * k["kappa"] * Lf * c["betaG"] * math.sqrt(drift)), local)
    return c


@pytest.mark.parametrize("form", [f.name for f in THEOREM.forms])
def test_each_form_equals_its_twin_and_so_do_its_conditions(form):
    rng = np.random.default_rng(10)
    for _ in range(40):
        c = random_setting(rng)
        evaluation = evaluate(THEOREM, c, form=form)
        value, sides = twin(form, c)
        assert float(evaluation.value) == pytest.approx(value, rel=1e-11)
        for condition, (left, right) in zip(evaluation.conditions[4:], sides, strict=True):
            # the caps of (f) are infinite where nobody drifts
            ratio = float(condition.left) / float(condition.right)
            assert ratio == pytest.approx(left / right, rel=1e-11, abs=1e-300), condition.text
        if form in CONSTANTS:
            assert evaluation.valid


def test_the_golden_setting_has_the_golden_bounds():
    assert float(evaluate(THEOREM, GOLDEN, form="explicit").value) == pytest.approx(134.0111301464065, rel=1e-13)
    assert float(evaluate(THEOREM, GOLDEN, form="repaired").value) == pytest.approx(64.3543896, rel=1e-13)
    k = composites(GOLDEN)
    assert [k[name] for name in ("Z", "Q", "K", "r", "C_w", "D")] == pytest.approx([0.025, 0.025, 0.025, 2, 3, 9.75])
    assert (k["S1"], k["N"], k["V"]) == pytest.approx((0.06180555555555556, 0.18805555555555553, 1.164e-4), rel=1e-12)


@pytest.mark.parametrize(
    ("term", "alone", "value"),
    [
        ("initial gap", dict(Delta=1), 3 / (0.01 / (156 * 9) * 10000)),
        ("initial dual gap", dict(delta0=1), 10 * 9 / (0.01 * 10000)),
        ("full synchronization", dict(sigmaL=1), 6 * 2 * 9 * 2 * 0.01 * 2 * 0.025),
        ("full synchronization", dict(sigmaG=1), 6 * 2 * 9 * 2 * 0.01 * 2 * 2 * 0.25 * 0.025),
        ("partial participation", dict(sigmaG=1), 6 * 2 * 9 * 2 * 0.01 * 2 * 2 * 5 / 9 * 0.1),
        ("local updates", dict(sigmaL=1), 23 * 2 * 9 * 2e-6 * 4 * 3),
        ("local updates", dict(sigmaG=1), 23 * 2 * 9 * 2e-6 * 4 * 2 * 9.75),
    ],
)
def test_each_term_of_the_repaired_form_carries_its_own_constant(term, alone, value):
    quiet = GOLDEN | dict(sigmaL=0, sigmaG=0, Delta=0, delta0=0) | alone
    terms = {form: float(evaluate(THEOREM, quiet, form=form).terms[term]) for form in CONSTANTS}
    assert terms["repaired"] == pytest.approx(value, rel=1e-12)
    kept = {"initial gap": 7 / 10, "initial dual gap": 19 / 40, "local updates": 1 / 2}.get(term, 61 / 150)
    assert terms["sharp"] == pytest.approx(kept * value, rel=1e-12)


# --- The algorithm itself, on quadratics with equal Hessians and additive noise -----------------------------------


def exact_run(c, A, B, mu, offsets, noise, start):
    """Mean over the rounds of E|grad Phi~|^2 by the exact first two moments of (x, y), both scalar.

    f_i = A x^2/2 + B x y - mu y^2/2 + offsets_i . (x, y), noise of covariance diag(noise) in every gradient.
    """
    n, P = len(c["tau"]), c["P"]
    H = np.array([[A, B], [B, -mu]])
    local, server = np.diag([-c["etax"], c["etay"]]), np.diag([-c["taueff"] * c["gammax"], c["taueff"] * c["gammay"]])
    Z, b, S = [], [], []
    for tau, offset in zip(c["tau"], offsets, strict=True):
        step = np.eye(2) + local @ H  # one local step in terms of z; the gradient is H z + offset + xi
        powers = [np.linalg.matrix_power(step, k) for k in range(tau)]
        Z.append(sum(H @ p for p in powers) / tau)
        drift = [sum((powers[j] for j in range(k)), np.zeros((2, 2))) @ local for k in range(tau)]
        b.append(sum(H @ g + np.eye(2) for g in drift) @ offset / tau)
        inflow = [np.eye(2) + sum((H @ powers[k - 1 - j] @ local for k in range(j + 1, tau)), np.zeros((2, 2)))
                  for j in range(tau)]  # fmt: skip
        S.append(sum(g @ np.diag(noise) @ g.T for g in inflow) / tau**2)
    w = np.asarray(c["w"])
    r, together = n / P, 1.0 if n == 1 else n * (P - 1) / (P * (n - 1))
    Zbar, bbar = np.einsum("i,ijk->jk", w, Z), w @ np.array(b)
    mean, M, total = np.array(start), np.outer(start, start), 0.0
    center = w @ offsets
    slope = np.array([A + B**2 / mu, 0.0])  # grad Phi~(x) = slope . z + constant
    constant = center[0] + B * center[1] / mu
    for _ in range(c["T"]):
        total += slope @ M @ slope + 2 * constant * slope @ mean + constant**2
        exact = [Zi @ M @ Zi.T + np.outer(Zi @ mean, bi) + np.outer(bi, Zi @ mean) + np.outer(bi, bi)
                 for Zi, bi in zip(Z, b, strict=True)]  # fmt: skip
        everyone = Zbar @ M @ Zbar.T + np.outer(Zbar @ mean, bbar) + np.outer(bbar, Zbar @ mean) + np.outer(bbar, bbar)
        own = sum(wi**2 * e for wi, e in zip(w, exact, strict=True))
        # E[g g'] = r sum w_i^2 E[g_i g_i'] + together * sum over pairs of distinct clients
        square = r * (own + sum(wi**2 * s for wi, s in zip(w, S, strict=True))) + together * (everyone - own)
        cross = server @ (Zbar @ M + np.outer(bbar, mean))
        M = M + cross + cross.T + server @ square @ server
        mean = mean + server @ (Zbar @ mean + bbar)
    return total / c["T"]


def test_two_of_smoothness_curvature_and_their_ratio_are_enough():
    for given in (dict(Lf=2, kappa=3), dict(mu=2 / 3, kappa=3)):
        c = {name: value for name, value in GOLDEN.items() if name not in ("Lf", "mu")} | given
        assert float(evaluate(THEOREM, c, form="repaired").value) == pytest.approx(64.3543896, rel=1e-13)


def momentum_coefficients(tau, rho):
    """Of every gradient in every local iterate, by running the heavy-ball buffer on unit vectors."""
    buffer, total, iterates = np.zeros(tau), np.zeros(tau), []
    for k in range(tau):
        buffer = rho * buffer + np.eye(tau)[k]
        total = total + buffer
        iterates.append(total)
    return np.array(iterates)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_momentum_changes_the_norms_of_the_coefficients_as_the_unrolled_buffer_does(rho):
    tau, w = [1, 2, 3, 7], [0.1, 0.2, 0.3, 0.4]
    got = evaluate(THEOREM, GOLDEN | dict(tau=tau, w=w, P=2, rho=rho)).constants
    vectors = [momentum_coefficients(t, rho) for t in tau]
    last = [v[-1] for v in vectors]
    assert all(np.all(v <= v[-1] + 1e-15) for v in vectors)  # none shrinks from one iterate to the next
    assert got["a1"].value == pytest.approx([v.sum() for v in last], rel=1e-12)
    assert got["a2"].value == pytest.approx([(v**2).sum() for v in last], rel=1e-12)
    assert got["amax"].value == pytest.approx([v.max() for v in last], rel=1e-12)
    assert list(got["alast"].value) == [v[-1] for v in last] == [1] * 4
    ratios = [wi**2 * (v**2).sum() / v.sum() ** 2 for wi, v in zip(w, last, strict=True)]
    assert float(got["A_w"].value) == pytest.approx(4 * sum(ratios), rel=1e-12)  # taueff = 1
    largest = max(wi * (v**2).sum() / v.sum() ** 2 for wi, v in zip(w, last, strict=True))
    assert float(got["B_w"].value) == pytest.approx(4 * largest, rel=1e-12)
    assert float(got["C_w"].value) == pytest.approx(
        sum(wi * (v[:-1] ** 2).sum() for wi, v in zip(w, last, strict=True))
    )
    drift = [v[:-1].sum() ** 2 + 0.25 * (v[:-1] ** 2).sum() for v in last]
    assert float(got["D"].value) == pytest.approx(max(drift), rel=1e-12)
    assert float(got["E_w"].value) == pytest.approx(4 * 0.4) and float(got["nu"].value) == 2


def test_scaling_the_coefficients_up_and_the_local_steps_down_changes_nothing():
    c = GOLDEN | dict(tau=[1, 2, 3, 6], w=[0.4, 0.3, 0.2, 0.1], P=2, rho=0.5)
    before = evaluate(THEOREM, c)
    vectors = {name: before.constants[name].value for name in ("a1", "a2", "alast", "amax")}
    scaled = {name: value * (9 if name == "a2" else 3) for name, value in vectors.items()}
    after = evaluate(THEOREM, c | scaled | dict(etax=c["etax"] / 3, etay=c["etay"] / 3))
    assert float(after.value) == pytest.approx(float(before.value), rel=1e-12)
    for one, other in zip(before.conditions, after.conditions, strict=True):
        assert float(one.left) / float(one.right) == pytest.approx(float(other.left) / float(other.right), rel=1e-12)
    impossible = evaluated(THEOREM, c | dict(a2=2 * vectors["a1"] * vectors["amax"]))
    assert not impossible.valid and "amax is the largest" in next(x.why for x in impossible.conditions if not x.holds)


def test_the_bound_at_its_steps_is_the_bound_at_those_steps_and_its_floors_are_the_conditions():
    rng = np.random.default_rng(12)
    at_its_steps = load("fed-norm-sgda/theorem-1-at-its-steps")
    for _ in range(40):
        c = random_setting(rng) | dict(T=int(10 ** rng.uniform(0, 12)))
        given = {name: v for name, v in c.items() if name not in ("gammax", "gammay", "etax", "etay")}
        here = evaluate(at_its_steps, given)
        there = evaluate(THEOREM, given | dict(here.prescribed))
        for name, value in here.terms.items():
            assert float(value) == pytest.approx(float(there.terms[name]), rel=1e-11)
        assert bool(here.valid) == bool(there.valid)
        floors = [float(x.right) / c["T"] for x in here.conditions[4:]]  # (a), (b), (g), (f), (m)
        a, b, speed, g, _, f, m = (float(x.left) / float(x.right) for x in there.conditions[4:])
        assert floors == pytest.approx([a**2, b**2, g**2, f**2, m], rel=1e-11) and speed == pytest.approx(1)
        nominal = evaluate(at_its_steps, given, form="explicit")
        exact = evaluate(THEOREM, given | dict(here.prescribed), form="explicit")
        assert not here.valid or float(nominal.value) >= float(exact.value)


def test_the_rounds_of_corollary_1_2_suffice_and_a_quarter_of_them_does_not():
    rng = np.random.default_rng(13)
    at_its_steps, corollary = load("fed-norm-sgda/theorem-1-at-its-steps"), load("fed-norm-sgda/corollary-1.2")
    for _ in range(40):
        c = {k: v for k, v in random_setting(rng).items() if k not in ("gammax", "gammay", "etax", "etay", "T")}
        eps = 10 ** rng.uniform(-2, 2)
        T = int(evaluate(corollary, c | dict(eps=eps)).value)
        enough = evaluate(at_its_steps, c | dict(T=T))
        assert enough.valid and float(enough.value) <= eps**2 * (1 + 1e-9)
        if T > 8:
            few = evaluate(at_its_steps, c | dict(T=(T - 1) // 4 - 1))
            assert not few.valid or float(few.value) > eps**2


def test_the_exact_recursion_reproduces_the_golden_minimax_runs():
    """f_i = x^2/4 + x y - y^2/2 + c_i x + d_i y; E|grad Phi~|^2 averaged over 50 rounds."""
    offsets = np.array([[1.0, 0.25], [-0.5, -0.75]])
    steps = dict(etax=0.05, etay=0.1, gammax=0.002, gammay=0.1, taueff=3.5, T=50, tau=[2, 5])
    for P, w, expected in [
        (2, [0.5, 0.5], 1.4664658696067745),
        (1, [0.5, 0.5], 1.469285343735193),
        (2, [2 / 7, 5 / 7], 0.6110797232398382),
    ]:
        got = exact_run(steps | dict(P=P, w=w), 0.5, 1.0, 1.0, offsets, np.array([0.04, 0.01]), [1.0, 0.0])
        assert got == pytest.approx(expected, rel=1e-12)


def test_exact_minimax_runs_stay_below_the_sharp_form():
    rng, worst = np.random.default_rng(11), 0.0
    for _ in range(40):
        n = int(rng.integers(1, 4))
        mu, B = rng.uniform(0.5, 2), rng.uniform(-1, 1)
        A = rng.uniform(0, 1) - 0.9 * B**2 / mu  # the envelope is convex, f in x need not be
        Lf = np.linalg.norm([[A, B], [B, -mu]], 2)
        w, offsets = rng.dirichlet(np.ones(n)), rng.normal(size=(n, 2))
        noise, start = rng.uniform(0, 1, 2), rng.normal(size=2)
        spread = w @ (offsets - w @ offsets) ** 2
        center = w @ offsets
        slope = (A + B**2 / mu) * start[0] + center[0] + B * center[1] / mu
        lag = start[1] - (B * start[0] + center[1]) / mu
        c = random_setting(rng)
        c |= dict(tau=rng.integers(1, 5, n), w=w, P=int(rng.integers(1, n + 1)), Lf=Lf, mu=mu, betaL=0, betaG=1)
        c |= dict(sigmaL=math.sqrt(noise.max()), sigmaG=math.sqrt(spread.max()), T=int(rng.integers(1, 300)))
        c |= dict(taueff=1, Delta=slope**2 / (2 * (A + B**2 / mu)), delta0=mu / 2 * lag**2)
        kappa = Lf / mu
        c |= dict(gammay=c["P"] / (200 * kappa * Lf * n), etay=1 / (200 * Lf * kappa))
        c |= dict(etax=1 / (800 * Lf * kappa**2))
        c["gammax"] = c["gammay"] / (156 * kappa**2)
        evaluation = evaluate(THEOREM, c)
        assert evaluation.valid, evaluation.why_not
        worst = max(worst, exact_run(c, A, B, mu, offsets, noise, start) / float(evaluation.value))
    assert 0.003 < worst < 1  # two orders loose: the twins above carry the constants


def test_the_printed_bound_is_zero_and_false_where_only_the_dual_variable_is_off():
    """f = x y - y^2/2 from x = 0, y = 1 without noise: Phi~ is at its minimum, and x moves because y is wrong."""
    c = dict(Lf=1.618033988749895, mu=1, sigmaL=0, sigmaG=0, betaL=0, betaG=1, P=1, tau=[1], w=[1.0], taueff=1, T=100)
    c |= dict(etax=0, etay=0, gammay=0.1, gammax=0.1 / (156 * 2.618033988749896), Delta=0, delta0=0.5)
    left = exact_run(c, 0.0, 1.0, 1.0, np.zeros((1, 2)), np.zeros(2), [0.0, 1.0])
    printed = evaluate(THEOREM, c, form="printed")
    assert printed.valid and float(printed.value) == 0 < left
    assert left < float(evaluate(THEOREM, c).value)


def test_one_client_means_full_participation_and_one_step_no_price():
    alone = GOLDEN | dict(P=1, tau=[1], w=[1.0])
    evaluation = evaluate(THEOREM, alone, form="repaired")
    assert float(evaluation.terms["partial participation"]) == float(evaluation.terms["local updates"]) == 0
    # nu = 1: (3 Delta/Gx + 10 kappa^2 delta0/Gy)/T + 6 kappa^2 Lf Gy (sigmaL^2 + 2 sigmaG^2 betaL^2)
    noise = 6 * 9 * 2 * 0.01 * (0.3 + 2 * 0.7 * 0.25)
    assert float(evaluation.terms["full synchronization"]) == pytest.approx(noise, rel=1e-13)
    assert [float(c.admissible) for c in evaluation.conditions if "eta" in c.limits] == [math.inf, math.inf]


def test_the_effective_steps_default_to_naive_averaging_and_may_be_anything():
    c = GOLDEN | dict(tau=[1, 2, 3, 6], w=[0.4, 0.3, 0.2, 0.1], P=2)
    c.pop("taueff")
    default = evaluate(THEOREM, c)
    assert float(default.constants["taueff"].value) == pytest.approx(2.2) and float(default.constants["n"].value) == 4
    assert default.constants["taueff"].source == "derived"
    # only the products with the server's steps matter
    half = c | dict(taueff=1.1, gammax=2 * c["gammax"], gammay=2 * c["gammay"])
    assert float(evaluate(THEOREM, half).value) == pytest.approx(float(default.value), rel=1e-13)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (dict(P=11), "P <= n"), (dict(mu=3), "kappa >= 1"), (dict(gammax=1e-3), "Gammax <= Gammay/(156*kappa**2)"),
    ],
)  # fmt: skip
def test_a_broken_condition_is_named(change, broken):
    evaluation = evaluated(THEOREM, GOLDEN | change)
    assert not evaluation.valid and broken in [c.text for c in evaluation.conditions if not c.holds]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (dict(tau=[4] * 9), "differ in length"), (dict(n=9), "n = 9 conflicts"), (dict(betaG=0.5), "betaG = 0.5"),
        (dict(tau=[0] + [4] * 9), r"tau\[0\] = 0"), (dict(P=0), "P = 0"), (dict(mu=0), "mu = 0"),
        (dict(w=[-0.1] + [0.1] * 9), r"w\[0\] = -0.1"), (dict(tau=4), "one per client"),
        (dict(kappa=2), "kappa = 2 conflicts with 3"), (dict(Gammax=1), "Gammax = 1 conflicts with"),
        (dict(rho=1), "rho = 1"),
        (dict(A_w=1), "A_w = 1 conflicts with 0.25"), (dict(alpha=2), "alpha = 2 conflicts with 1"),
    ],
)  # fmt: skip
def test_bad_clients_are_refused_in_one_line(change, text):
    with pytest.raises(FedboundsError, match=text):
        evaluate(THEOREM, GOLDEN | change)


# --- Constants that mean nothing -----------------------------------------------------------------------------------

SMALL = dict(
    Lf=4, mu=1, sigmaL=0.5, betaL=0.1, sigmaG=1, betaG=1.2, P=2, T=200, tau=(2, 3, 4), w=(0.5, 0.25, 0.25), rho=0,
    etax=1e-6, etay=1e-6, gammax=1e-7, gammay=1e-4, Delta=1, delta0=1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (dict(P=5), "P of n clients are drawn without replacement: P <= n fails, 5 against 3"),
        (dict(P=0), "P = 0 is outside its domain"),
        (dict(tau=(2, 0, 4)), r"tau\[1\] = 0 is outside its domain"),
        (dict(mu=0), "mu = 0 is outside its domain"),
        (dict(mu=5), "mu is at most Lf: kappa >= 1 fails"),
        (dict(w=(0.5, 0.4, 0.3)), r"w sums to 1\.2, not to 1: weight of client i at the server"),
        (dict(w=(0.5, 0.5)), "differ in length"),
        (dict(kappa=5), "kappa = 5 conflicts with 4, computed from Lf, mu"),
        (dict(amax=(0.5, 1, 1)), "amax is the largest of the coefficients"),
    ],
)
def test_constants_that_mean_nothing_are_refused(changed, said):
    assert np.isfinite(evaluate(THEOREM, SMALL).value)
    with pytest.raises(FedboundsError, match=said):
        evaluate(THEOREM, SMALL | changed)


def test_a_period_that_does_not_divide_the_rounds_is_refused_where_it_must():
    theorem = load("fed-norm-sgda/theorem-4")
    known = {k: v for k, v in SMALL.items() if k not in ("mu", "Delta", "delta0")} | dict(S=7, Deltabar=1, Gx=1, R=1)
    with pytest.raises(FedboundsError, match=r"whole number of blocks .* these forms do without: printed, sharp:any-T"):
        evaluate(theorem, known)
    without = evaluate(theorem, known, form="sharp:any-T")
    assert without.value < evaluate(theorem, known | dict(S=5), form="sharp:any-T").value
    assert all("floor" not in c.text for c in without.conditions)
    mixed = evaluate(theorem, known | dict(S=np.array([7, 8])))
    assert next(c for c in mixed.conditions if "floor" in c.text).holds.tolist() == [False, True]


def test_one_client_has_no_spread_of_sampling():
    one = evaluate(THEOREM, SMALL | dict(P=1, tau=(3,), w=(1,)))
    assert np.isfinite(one.value) and one.terms["partial participation"] == 0


def test_naive_weights_take_the_effective_steps_of_equation_2():
    """p = (1/2, 1/2), tau = (2, 5): the server that averages models plainly has w = (2/7, 5/7) and taueff = 3.5."""
    c = dict(Lf=2, mu=1, sigmaL=1, sigmaG=0.5, betaL=0, betaG=1, P=2, T=100, tau=[2, 5], gammay=0.01, gammax=1e-6)
    c |= dict(etax=1e-3, etay=1e-3, Delta=1, delta0=0, w=[2 / 7, 5 / 7])

    def effective(**more):
        return float(evaluate(THEOREM, c | more).constants["taueff"].value)

    assert effective(p=[0.5, 0.5]) == pytest.approx(3.5)
    assert effective() == effective(p=[2 / 7, 5 / 7]) == pytest.approx(29 / 7)  # 4.14: normalized, with these weights
    assert effective(p=[0.5, 0.5], taueff=2) == 2
    one = {k: float(evaluate(THEOREM, c | dict(p=[0.5, 0.5]) | more).value) for k, more in (("default", {}),
           ("given", dict(taueff=3.5)))}  # fmt: skip
    assert one["default"] == one["given"]
    momentum = np.array([2, 5]) / 0.5 - 0.5 / 0.25 * (1 - 0.5 ** np.array([2, 5]))  # |a_i|_1 at rho = 1/2
    naive = momentum / momentum.sum()
    assert effective(p=[0.5, 0.5], rho=0.5, w=list(naive)) == pytest.approx(momentum.mean())
