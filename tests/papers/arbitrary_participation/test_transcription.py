"""The first paper package's formulas once more, written out from the paper in plain Python: the twin of its results."""

import math
from types import SimpleNamespace

import pytest
import sympy as sp

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.arbitrary_participation import RESULTS
from fedbounds.bounds.theory.registry import load


def result(name):
    return load(f"arbitrary-participation/{name}")


k1, k2 = 12 / 7 * (math.exp(7 / 12) - 1), 9 / 5 * (math.exp(5 / 9) - 1)
GENERIC = SimpleNamespace(
    r=0.6,
    L=1.3, F=2.1, I=3, P=5, T=47, gamma=0.0021, eta=7.7, rho=0.61, sigma=1.7, nu=0.83, beta=0.57, delta=0.29, d=1.9,
    S=4, N=11, upsilon=0.37, upsilonhat=0.43, c=0.07, sumsq=0.23, gradsq=0.71, decrease=0.53, windowvar=0.013, s=0.41,
    theta=0.6, E=6, M=8, qbar=[0.31, 0.02, 0.17, 0.07, 0.43],
)  # fmt: skip


def seven(c, k):
    """The seven terms of eq. (8)."""
    a2 = (c.gamma * c.L) ** 2
    return [
        k[0] * c.F / (c.gamma * c.eta * c.I * c.T), k[1] * a2 * (c.I * c.nu) ** 2,
        k[2] * a2 * (c.I * c.P * c.beta) ** 2, k[3] * c.delta**2, k[4] * a2 * c.I * c.sigma**2,
        k[5] * a2 * c.I * c.P * (c.rho * c.sigma) ** 2, k[6] * c.gamma * c.eta * c.L * (c.rho * c.sigma) ** 2,
    ]  # fmt: skip


def sharp_seven(c):
    w = 1 - 24 * k2 * (c.gamma * c.L * c.I * c.P) ** 2
    ours = (2 * c.T / (c.P * (c.T // c.P)), 18 * k1 + k1 * k2, 24 * k2, 3, 3 * k1 + k1 * k2 / 6, 3 * k2, 2)
    return [t / w for t in seven(c, ours)]


def tuned_seven(c):
    """The chain's seven constants from its weights, added up as the proof adds them, not as the form writes them."""
    u1, u2, u3 = 0.15, 0.7, 0.15
    v1, v2, v3, v4 = 0.12, 0.1, 0.32, 0.46
    w1, w2, w3 = (share / (1 + c.r) for share in (6 / 13, 7 / 13, c.r))
    a2 = 1 / 144  # (gamma L I P)^2 at its largest
    first, second = (0.5 + 2 * a2 * (1 / u1 + 1 / u3), 0.5 + 2 * a2 / v2)
    k3, k4 = ((math.exp(x) - 1) / x for x in (first, second))
    spread_nu, spread_noise = 2 * k3 / u2, k3  # the spread over gamma^2 I^2 nu^2, and over gamma^2 I sigma^2
    drift_nu, drift_noise = (k4 * 2 * a2 / v1 * x for x in (spread_nu, spread_noise))
    keeps = 1 - 2 * k4 / v4 / w2 * (c.gamma * c.L * c.I * c.P) ** 2
    ours = (
        2 * c.T / (c.P * (c.T // c.P)),
        spread_nu / w1 + drift_nu / w2,
        2 * k4 / v3 / w2,
        1 / w3,
        spread_noise / w1 + drift_noise / w2,
        k4 / w2,
        1 / (1 - c.gamma * c.eta * c.L * c.I * c.P),
    )
    return [t / keeps for t in seven(c, ours)]


def steps(c, eta):
    return SimpleNamespace(**vars(c) | dict(gamma=1 / (12 * c.L * c.I * c.P * math.sqrt(c.T)), eta=eta))


def written_out(c):
    """(result, form) to (terms, conditions, prescribed), all in floats, from the constants in c."""
    L, F, I, P, T, N, S, d, cc = c.L, c.F, c.I, c.P, c.T, c.N, c.S, c.d, c.c
    sigma2, nu2, beta2, delta2, rho2, d2 = (x**2 for x in (c.sigma, c.nu, c.beta, c.delta, c.rho, d))
    u2, h2 = c.upsilon**2, c.upsilonhat**2
    explicit = seven(c, (8, 126, 144, 6, 21, 18, 4))
    local, both = ("<=", c.gamma, 1 / (12 * L * I * P)), ("<=", c.gamma * c.eta, 1 / (2 * L * I * P))
    half, once = ("<=", P, T / 2), ("<=", P, T)
    caps = [local, both, half]
    one = [("==", I, 1)]
    table = {
        ("theorem-3.1", "printed"): (seven(c, [1] * 7), caps),
        ("theorem-3.1", "explicit"): (explicit, caps),
        ("theorem-3.1", "explicit:any-P"): (
            [4 * F / (c.gamma * c.eta * I * P * (T // P)), *explicit[1:]], [local, both, once]
        ),
        ("theorem-3.1", "explicit:sumsq"): ([*explicit[:4], explicit[4] * (1 - c.sumsq), *explicit[5:]], caps),
        ("theorem-3.1", "explicit:I=1"): ([explicit[0], explicit[2], explicit[3], *explicit[5:]], caps + one),
        ("theorem-3.1", "explicit:I=P=1"): (
            [explicit[0], explicit[3], explicit[6]], [*caps, *one, ("==", P, 1)]
        ),
        ("theorem-3.1", "sharp"): (sharp_seven(c), [local, both, once]),
        ("theorem-3.1", "sharp:tuned"): (
            tuned_seven(c),
            [
                local,
                ("<", c.gamma * c.eta, 1 / (L * I * P)),
                ("<=", (1 + c.r) * (c.gamma * L * I * P) ** 2, 1 / 16),
                once,
            ],
        ),
        ("theorem-3.1", "sharp:worst"): (seven(c, (3.861, 33.79, 41.30, 3.861, 5.631, 5.163, 2.574)), caps),
        ("theorem-3.1", "sharp:initial-gap"): (seven(c, (6, 126, 144, 6, 21, 18, 4)), caps),
        ("equation-c.16", "explicit"): ([4 * c.decrease / (c.gamma * c.eta * I * P), *explicit[1:]], [local, both]),
    }  # fmt: skip

    speed = c.rho * math.sqrt(L * F / (I * T))
    eta2 = min(12 * P * math.sqrt(L * I * F) / (c.sigma * c.rho), 6 * math.sqrt(T))
    eta3 = 12 * P * math.sqrt(L * I * F) / c.rho
    at2, at3 = steps(c, eta2), steps(c, eta3)
    first, second = dict(gamma=at2.gamma, eta=eta2), dict(gamma=at3.gamma, eta=eta3)
    order = [nu2 / (P**2 * T), beta2 / T, delta2, sigma2 / (I * P * T)]
    drift = (7 / (48 * P) + rho2 / 8) * sigma2 / (I * P * T)
    exact = [7 * nu2 / (8 * P**2 * T), beta2 / T, 6 * delta2, drift]
    flat = (">=", T, 4 * L * I * P**2 * F / rho2)
    gap = [12 * c.sigma * speed, 16 * L * P * F / T]
    spread = (1 + 7 / (8 * P**2)) * d2 / T
    sharp = sharp_seven(SimpleNamespace(**vars(at2) | dict(nu=d, beta=d)))
    table |= {
        ("corollary-3.2", "printed"): ([c.sigma * speed, L * P * F / T, *order], [half], first),
        ("corollary-3.2", "explicit"): ([*gap, *exact], [half], first),
        ("corollary-3.2", "sharp"): (sharp_seven(at2), [once], first),
        ("corollary-3.3", "printed"): (
            [(1 + sigma2) * speed, *order],
            [("<=", math.sqrt(F) / (c.rho * math.sqrt(L * I * T)), 1 / (2 * L * I * P)), half], second,
        ),
        ("corollary-3.3", "explicit"): ([(8 + 4 * sigma2) * speed, *exact], [flat, half], second),
        ("corollary-3.3", "repaired:s"): (
            [(8 / c.s + 4 * c.s * sigma2) * speed, *exact],
            [(">=", T, 4 * c.s**2 * L * I * P**2 * F / rho2), half], second | dict(eta=c.s * eta3),
        ),
        ("corollary-3.3", "sharp"): (sharp_seven(at3), [flat, once], second),
        ("corollary-4.3", "printed"): ([c.sigma * speed, L * P * F / T, d2 / T, sigma2 / T], [half], first),
        ("corollary-4.3", "explicit"): ([*gap, d2 / T, drift], [half], first),
        ("corollary-4.3", "repaired"): ([*gap, spread, drift], [half], first),
        ("corollary-4.3", "sharp"): (sharp[:3] + sharp[4:], [once], first),
    }  # fmt: skip

    spread_n = N**2 * d2
    tail = (math.log(1 / cc) + math.log(1 / (1 - c.theta)) / 2) / (2 * c.theta * P)
    median = sum(abs(q - 0.17) for q in c.qbar)
    table |= {
        ("equation-11", "printed"): ([d2], []),
        ("equation-11", "explicit"): ([nu2, beta2], []),
        ("lemma-c.1", "printed"): (
            [3 * I * c.gamma**2 * 6 * I * nu2, 3 * I * c.gamma**2 * sigma2 * (1 - c.sumsq)], [local]
        ),
        ("lemma-c.1", "sharp"): (
            [k1 * I * c.gamma**2 * 6 * I * nu2, k1 * I * c.gamma**2 * sigma2 * (1 - c.sumsq)],
            [("<=", c.gamma, 1 / (12 * L * I))],
        ),
        ("lemma-c.2", "printed"): (
            [3 * (c.gamma * I) ** 2 * nu2, 24 * (c.gamma * I * P) ** 2 * beta2, 24 * (c.gamma * I * P) ** 2 * c.gradsq,
             3 * c.gamma**2 * I * P * sigma2 * (rho2 + (1 - c.sumsq) / (6 * P))], [local],
        ),
        ("lemma-c.2", "sharp"): (
            [k2 * k1 / 3 * (c.gamma * I) ** 2 * nu2, 8 * k2 * (c.gamma * I * P) ** 2 * beta2,
             8 * k2 * (c.gamma * I * P) ** 2 * c.gradsq,
             k2 * c.gamma**2 * I * P * sigma2 * rho2 + k1 * k2 / 18 * c.gamma**2 * I * sigma2], [local],
        ),
        ("proposition-4.1", "printed"): ([d2], []),
        ("proposition-4.1", "repaired"): ([d2, d2], []),
        ("proposition-4.2", "printed"): ([0], []),
        ("equation-15", "printed"): ([5 * sum((q - 1 / 5) ** 2 for q in c.qbar) * d2], []),
        ("equation-15", "sharp:median"): ([d2 * median**2], []),
        ("proposition-4.4", "printed"): ([0], []),
        ("proposition-4.4", "repaired"): ([spread_n * c.windowvar], []),
        ("lemma-4.5", "printed"): ([h2 / P], []),
        ("proposition-4.6", "printed"): ([spread_n * h2 / P], []),
        ("proposition-4.6", "printed:probability"): ([spread_n * h2 / (cc * P)], []),
        ("proposition-4.6", "repaired"): ([spread_n * c.windowvar], []),
        ("proposition-4.6", "repaired:probability"): ([spread_n * c.windowvar / cc], []),
        ("proposition-4.7", "printed"): ([spread_n * u2 / P], []),
        ("proposition-4.7", "printed:probability"): ([spread_n * math.log(2 / cc) / (2 * P)], []),
        ("proposition-4.7", "repaired:one-window"): (
            [d2 / P * (math.sqrt(N - 1) + math.sqrt(-2 * math.log(cc))) ** 2], [],
        ),
        ("proposition-4.7", "repaired:all-windows"): (
            [d2 / P * (math.sqrt(N - 1) + math.sqrt(2 * math.log(T / (cc * P)))) ** 2], [("<=", P, T)],
        ),
        ("proposition-4.7", "repaired:own-constant"): ([spread_n * math.log(2 / cc) / (2 * P)], [(">=", N, 4)]),
        ("proposition-4.7", "sharp:one-window"): (
            [d2 / P * (N * math.sqrt(u2) + math.sqrt(-2 * math.log(cc))) ** 2], [],
        ),
        ("proposition-4.7", "sharp:all-windows"): (
            [d2 / P * (N * math.sqrt(u2) + math.sqrt(2 * math.log(T / (cc * P)))) ** 2], [("<=", P, T)],
        ),
        ("proposition-4.7", "repaired:probability"): ([spread_n * tail], []),
        ("proposition-4.7", "repaired:equal-weights"): ([spread_n * tail / S**2], []),
        ("proposition-4.7", "repaired:markov"): ([spread_n * u2 / (cc * P)], []),
    }  # fmt: skip

    orders = [(1 + sigma2) * speed, d2 / math.sqrt(N * I * T), d2 / T, sigma2 / T]
    noise = (8 + 4 * sigma2) * speed

    def rates(variance, terms, conditions):
        """A form of Corollary 4.8 at its own P = variance * N^(5/2) sqrt(IT)."""
        own = variance * math.sqrt(N**5 * I * T)
        cap = ("<=", I, c.rho / (2 * variance * math.sqrt(N**5 * L * F)))
        prescribed = dict(
            P=own, gamma=1 / (12 * L * I * own * math.sqrt(T)), eta=12 * own * math.sqrt(L * I * F) / c.rho
        )
        return terms(own), [cap, *conditions(own)], prescribed

    def explicit_48(divergence):
        return lambda own: [
            noise, 6 * d2 / math.sqrt(N * I * T), divergence(own),
            (7 / (48 * own) + rho2 / 8) * sigma2 / (I * own * T),
        ]  # fmt: skip

    half_48 = (">=", T, 4 * u2**2 * I * N**5)
    window = 6 * spread_n * u2 / P
    sampled = math.sqrt(S * I * T)
    table |= {
        ("corollary-4.8", "printed"): rates(u2, lambda _: orders, lambda _: [half_48]),
        ("corollary-4.8", "printed:mixing"): rates(h2, lambda _: orders, lambda _: []),
        ("corollary-4.8", "explicit"): rates(u2, explicit_48(lambda _: d2 / T), lambda _: [half_48]),
        ("corollary-4.8", "repaired"): rates(
            u2, explicit_48(lambda own: (1 + 7 / (8 * own**2)) * d2 / T),
            lambda own: [half_48, (">=", own, 1), ("==", own, round(own))],
        ),
        ("corollary-4.8", "repaired:integer-P"): ([noise, window, spread, drift], [half, flat], second),
        ("corollary-4.8", "repaired:window-variance"): (
            [noise, 6 * spread_n * c.windowvar, spread, drift], [half, flat], second
        ),
        ("corollary-4.8", "repaired:any-I"): ([*gap, window, spread, drift], [half], first),
        ("table-1-regularized", "printed"): ([c.sigma / sampled], []),
        ("table-1-ergodic", "printed"): ([0], []),
        ("table-1-mixing", "printed"): ([(1 + sigma2) / sampled], []),
        ("table-1-mixing", "printed:probability"): ([(1 + sigma2) / (cc * sampled)], []),
        ("table-1-independent", "printed"): ([(1 + sigma2) / sampled], []),
        ("table-1-independent", "printed:probability"): ([(1 + sigma2) * math.log(2 / cc) / sampled], []),
        ("table-1-yan", "printed"): ([(1 + sigma2) * N**0.25 * math.sqrt(c.E / (S * T))], []),
        ("table-1-gu", "printed"): ([(1 + sigma2) * math.sqrt(c.E / (N * I * T))], []),
        ("section-5-wait-for-all", "printed"): ([math.sqrt(sigma2 * P / (c.M * N * T))], []),
    }  # fmt: skip
    # in expectation over participation: other hypotheses, the same formulas
    forms = [(r.key.partition("/")[2], f.name) for r in RESULTS for f in r.forms]
    table |= {key: table[key[0].removesuffix("-expected"), key[1]] for key in forms if key[0].endswith("-expected")}
    return {key: (*entry, {})[:3] for key, entry in table.items()}


FEW_ROUNDS, MANY_ROUNDS = GENERIC, SimpleNamespace(**vars(GENERIC) | dict(T=4703, theta=0.7))  # eta's two branches
WRITTEN = [
    (c, key, entry)
    for c in (FEW_ROUNDS, MANY_ROUNDS)
    for key, entry in written_out(c).items()
    if c is FEW_ROUNDS or key[0] in ("corollary-3.2", "corollary-4.3")
]


def test_every_form_is_written_out_once_more():
    assert {key for _, key, _ in WRITTEN} == {(r.key.partition("/")[2], f.name) for r in RESULTS for f in r.forms}
    steps_of = [
        evaluate(result("corollary-3.2"), {k: v for k, v in vars(c).items() if k not in ("S", "N", "qbar")})
        for c in (FEW_ROUNDS, MANY_ROUNDS)
    ]
    branches = [float(one.prescribed["eta"]) == 6 * math.sqrt(float(one.constants["T"].value)) for one in steps_of]
    assert branches == [True, False]


@pytest.mark.parametrize(("c", "key", "written"), WRITTEN, ids=[f"{' '.join(key)} T={c.T}" for c, key, _ in WRITTEN])
def test_every_term_condition_and_step_equals_the_formula_written_out(c, key, written):
    name, form = key
    terms, conditions, prescribed = written
    chosen = result(name).form(form)
    needed = {s.name for s in chosen.symbols.union(*(e.free_symbols for e in chosen.prescribes.values()))}
    needed -= {"N"} if "qbar" in needed else set()  # then N is the length of qbar
    evaluation = evaluate(result(name), {k: v for k, v in vars(c).items() if k in needed}, form=form)
    assert [float(v) for v in evaluation.terms.values()] == pytest.approx(terms, rel=1e-12)
    assert [one.op for one in chosen.conditions] == [op for op, _, _ in conditions]
    sides = [float(side) for one in evaluation.conditions for side in (one.left, one.right)]
    assert sides == pytest.approx([side for one in conditions for side in one[1:]], rel=1e-12)
    assert {k: float(v) for k, v in evaluation.prescribed.items()} == pytest.approx(prescribed, rel=1e-12)


@pytest.mark.parametrize("one", RESULTS, ids=lambda r: r.key)
def test_the_extreme_value_of_a_limited_constant_makes_both_sides_equal(one):
    for form in one.forms:
        for c in form.conditions:
            if c.op == "==":
                continue
            assert c.limits is not None and c.extreme is not None, c.text
            gap = c.left.subs(c.limits, c.extreme) - c.right.subs(c.limits, c.extreme)
            assert sp.simplify(gap) == 0, c.text
