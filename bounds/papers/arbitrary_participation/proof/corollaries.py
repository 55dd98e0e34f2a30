# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
"""Corollaries 3.2, 3.3 and 4.3: Theorem 3.1 at step sizes, and under bounds on its divergences."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, Integer, Rational, sqrt

from bounds.audit.claim import Relation
from bounds.audit.derivations import AtMinimum, Leading, Prescribed, Specialise
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.measures import LEAST_GRADIENT, Measure
from bounds.papers.arbitrary_participation.assumptions import COHORT, PARTICIPATION, WINDOW
from bounds.papers.arbitrary_participation.notation import NOTATION as n
from bounds.papers.arbitrary_participation.participation import COROLLARY_4_3, COROLLARY_4_8, OVER_PARTICIPATION
from bounds.papers.arbitrary_participation.proof.participation import ANY_ROUND, E7, OTHER_ROUND
from bounds.papers.arbitrary_participation.proof.participation import LHS as WINDOW_SQUARED
from bounds.papers.arbitrary_participation.proof.spread import PAPER
from bounds.papers.arbitrary_participation.proof.window import WINDOW_MEAN
from bounds.papers.arbitrary_participation.rates import RESULTS as RATES
from bounds.papers.arbitrary_participation.results import COROLLARY_3_2, COROLLARY_3_3, FLAT, HALF, ONCE, THEOREM_3_1
from bounds.result import Condition, Form, Result

L, F, I, N, P, T = n.L, n.F, n.I, n.N, n.P, n.T
gamma, eta, rho, sigma, nu, beta, delta, d = n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta, n.delta, n.d
NO_VECTORS = Setting("no vectors: constants only", {}, given="participation")
LEAST = measure_symbol(LEAST_GRADIENT)
THEOREM = f"{PAPER}/theorem-3.1"
LOCAL = 1 / (12 * L * I * P * sqrt(T))
KNOWS_NOISE, LARGEST = 12 * P * sqrt(L * I * F) / (sigma * rho), 6 * sqrt(T)
BRANCHES = (KNOWS_NOISE, LARGEST)


def at(form: Form, values: Mapping) -> Expr:
    """The bound of a form at these values."""
    return form.bound.xreplace(dict(values))


def order(
    name: str, source: str, right: Expr, constant: int, conditions: tuple[Condition, ...], **other: object
) -> Step:
    """The printed order: a multiple of it dominates the explicit form."""
    left = other.get("left", LEAST)
    assert isinstance(left, Expr)
    return Step(
        name,
        f"the printed order with {constant} for each hidden constant",
        Relation(left, constant * right),
        Combine((1,)),
        (source, *conditions),
    )


COROLLARY_3_2_PROOF = Proof(
    f"{PAPER}/corollary-3.2",
    NO_VECTORS,
    (
        Step("D1", "eta is at most its first branch", Relation(eta, KNOWS_NOISE), Prescribed(eta, BRANCHES, 0)),
        Step("D2", "eta is at most its second branch", Relation(eta, LARGEST), Prescribed(eta, BRANCHES, 1)),
        Step(
            "D3",
            "1/min{a, b} <= 1/a + 1/b",
            Relation(1 / eta, 1 / KNOWS_NOISE + 1 / LARGEST),
            Prescribed(eta, BRANCHES, None),
        ),
        Step(
            "D4",
            "Theorem 3.1 at this gamma; both caps hold",
            Relation(LEAST, at(THEOREM_3_1.form("explicit"), {gamma: LOCAL})),
            Specialise(((gamma, LOCAL),), prescribes=((gamma, LOCAL),)),
            (f"{THEOREM}[explicit]", "D1", "D2", HALF),
        ),
        Step(
            "D5",
            "the initial gap and the update noise by the branches, which merge in 12 = 8 + 4",
            Relation(LEAST, COROLLARY_3_2.form("explicit").bound),
            Combine((1, rho**2 * sigma**2 / (3 * I * P * sqrt(T)), 0, 96 * L * F * P / sqrt(T))),
            ("D4", "D1", "D2", "D3"),
        ),
        order("D6", "D5", COROLLARY_3_2.form("printed").bound, 16, (HALF,)),
        Step(
            "D7",
            "the sharp theorem at this gamma",
            Relation(LEAST, at(THEOREM_3_1.form("sharp"), {gamma: LOCAL})),
            Specialise(((gamma, LOCAL),), prescribes=((gamma, LOCAL),)),
            (f"{THEOREM}[sharp]", "D1", "D2", ONCE),
        ),
        Step(
            "D8",
            "the sharp theorem at this eta, each term at its own branch",
            Relation(LEAST, COROLLARY_3_2.form("sharp").bound.doit()),
            AtMinimum(eta, BRANCHES),
            ("D7", ONCE),
        ),
    ),
    COROLLARY_3_2,
    {"explicit": "D5", "printed": "D6", "sharp": "D8"},
)


def at_steps(name: str, source: str, bound: Expr, eta_: Expr, conditions: tuple[Condition, ...]) -> Step:
    """A form of Theorem 3.1 at Corollary 3.3's step sizes."""
    steps = ((gamma, LOCAL), (eta, eta_))
    return Step(
        name,
        "Theorem 3.1 at these step sizes; both caps hold",
        Relation(LEAST, bound),
        Specialise(steps, prescribes=steps),
        (f"{THEOREM}[{source}]", *conditions),
    )


NO_NOISE = 12 * P * sqrt(L * I * F) / rho
SCALED = COROLLARY_3_3.form("repaired:s")
COROLLARY_3_3_PROOF = Proof(
    f"{PAPER}/corollary-3.3",
    NO_VECTORS,
    (
        at_steps("D1", "explicit", COROLLARY_3_3.form("explicit").bound, NO_NOISE, (FLAT, HALF)),
        order("D2", "D1", COROLLARY_3_3.form("printed").bound, 8, ()),
        at_steps("D3", "explicit", SCALED.bound, n.s * NO_NOISE, SCALED.conditions),
        at_steps("D4", "sharp", COROLLARY_3_3.form("sharp").bound.doit(), NO_NOISE, (FLAT, ONCE)),
    ),
    COROLLARY_3_3,
    {"explicit": "D1", "printed": "D2", "repaired:s": "D3", "sharp": "D4"},
)

EVERY_ROUND = (
    (COHORT.name, Relation(OTHER_ROUND, nu**2)),
    (PARTICIPATION.name, Relation(ANY_ROUND, beta**2)),
)
DIVERGENCES = (*EVERY_ROUND, (WINDOW.name, Relation(WINDOW_SQUARED, delta**2)))
REGULAR = ((nu, d), (beta, d), (delta, Integer(0)))
DISCHARGING = (f"{PAPER}/proposition-4.1/D4", f"{PAPER}/proposition-4.1/D3", f"{PAPER}/proposition-4.2/D3")


def under_bounded_divergence(name: str, source: str, result: Result, form: str, measure: Measure) -> Step:
    """A corollary with its three divergences bounded: two by d, the window's by what participation makes it."""
    return Step(
        name,
        f"{result.key.partition('/')[2]} with nu, beta <= d and delta = 0",
        Relation(measure_symbol(measure), result.form(form).bound.doit()),
        Specialise(REGULAR, DIVERGENCES),
        (source, *DISCHARGING, *result.form(form).conditions),
    )


WORST = THEOREM_3_1.form("sharp:worst")
SMALLER = (  # Corollary 3.2's explicit form with the sharp theorem's constants of the divergences
    COROLLARY_3_2.form("explicit").bound.doit()
    - (Rational(7, 8) - Rational("33.79") / 144) * nu**2 / (P**2 * T)
    - (1 - Rational("41.30") / 144) * beta**2 / T
)
RATE_STEPS = f"{PAPER}/corollary-3.2"
COROLLARY_4_3_PROOF = Proof(
    f"{PAPER}/corollary-4.3",
    NO_VECTORS,
    (
        Step(
            "D4",
            "the sharp theorem, rounded up, at this gamma",
            Relation(LEAST, at(WORST, {gamma: LOCAL})),
            Specialise(((gamma, LOCAL),), prescribes=((gamma, LOCAL),)),
            (f"{THEOREM}[sharp:worst]", f"{RATE_STEPS}/D1", f"{RATE_STEPS}/D2", HALF),
        ),
        Step(
            "D5",
            "Corollary 3.2 with smaller constants of the divergences",
            Relation(LEAST, SMALLER),
            Combine(
                (
                    1,
                    Rational("2.574") * rho**2 * sigma**2 / (12 * I * P * sqrt(T)),
                    Rational("3.861") * 12 * L * F * P / sqrt(T),
                )
            ),
            ("D4", f"{RATE_STEPS}/D1", f"{RATE_STEPS}/D3"),
        ),
        Step(
            "D6",
            "with nu, beta <= d and delta = 0",
            Relation(LEAST, SMALLER.xreplace(dict(REGULAR))),
            Specialise(REGULAR, DIVERGENCES),
            ("D5", *DISCHARGING, HALF),
        ),
        Step(
            "D7",
            "the paper's form, although Proposition 4.1 is false: the constants have room for both divergences",
            Relation(LEAST, COROLLARY_4_3.form("explicit").bound.doit()),
            Combine((1,)),
            ("D6",),
        ),
        under_bounded_divergence("D1", f"{PAPER}/corollary-3.2[explicit]", COROLLARY_4_3, "repaired", LEAST_GRADIENT),
        order("D2", "D1", COROLLARY_4_3.form("printed").bound, 16, (HALF,)),
        under_bounded_divergence("D3", f"{PAPER}/corollary-3.2[sharp]", COROLLARY_4_3, "sharp", LEAST_GRADIENT),
    ),
    COROLLARY_4_3,
    {"repaired": "D1", "printed": "D2", "sharp": "D3", "explicit": "D7"},
)

# --- Corollary 4.8: in expectation over the participation -------------------------------------------------------------

IN_EXPECTATION = f"{THEOREM}/E10"
OVER_BOTH = measure_symbol(OVER_PARTICIPATION)
RANDOM = (*EVERY_ROUND, (WINDOW.name, Relation(E7, WINDOW_MEAN)))
EVERY_CLIENT = DISCHARGING[:2]
INDEPENDENT, ANY_VARIANCE = f"{PAPER}/proposition-4.7/D2", f"{PAPER}/proposition-4.4/D4"


def at_random(variance: Expr) -> tuple[tuple[Expr, Expr], ...]:
    """The divergences when only the variance of the window means is known."""
    return ((nu, d), (beta, d), (WINDOW_MEAN, N**2 * d**2 * variance))


def in_expectation(name: str, form: str, variance: Expr, source: str) -> Step:
    """Theorem 3.1 at Corollary 3.3's step sizes, in expectation over the participation."""
    steps = ((gamma, LOCAL), (eta, NO_NOISE))
    return Step(
        name,
        "Theorem 3.1 in expectation at these step sizes; both caps hold",
        Relation(OVER_BOTH, COROLLARY_4_8.form(form).bound.doit()),
        Specialise((*steps, *at_random(variance)), RANDOM, steps),
        (IN_EXPECTATION, *EVERY_CLIENT, source, *COROLLARY_4_8.form(form).conditions),
    )


WHOLE = COROLLARY_4_8.form("repaired")
EXACT = n.upsilon**2 * N ** Rational(5, 2) * sqrt(I * T)
AT_EXACT = ((P, EXACT), (gamma, LOCAL.xreplace({P: EXACT})), (eta, NO_NOISE.xreplace({P: EXACT})))
SIXTEEN = 16 * ((1 + sigma**2) * rho * sqrt(L * F) / sqrt(I * T) + d**2 / T + sigma**2 / T)
ROOTED = at(COROLLARY_3_2.form("explicit"), {delta: sqrt(WINDOW_MEAN)})
COROLLARY_4_8_PROOF = Proof(
    f"{PAPER}/corollary-4.8",
    NO_VECTORS,
    (
        in_expectation("D1", "repaired:integer-P", n.upsilon**2 / P, INDEPENDENT),
        in_expectation("D2", "repaired:window-variance", n.windowvar, ANY_VARIANCE),
        Step(
            "D3",
            "at the prescribed P, if that is a whole number",
            Relation(OVER_BOTH, WHOLE.bound.doit()),
            Specialise(AT_EXACT[:1], prescribes=AT_EXACT),
            (f"{PAPER}/corollary-4.8[repaired:integer-P]", *WHOLE.conditions),
        ),
        Step(
            "D4a",
            "the order at any whole P",
            Relation(OVER_BOTH, SIXTEEN + 6 * N**2 * d**2 * n.upsilon**2 / P),
            Combine((1,)),
            ("D1",),
        ),
        Step(
            "D4b",
            "the order at the prescribed P, if that is a whole number",
            Relation(OVER_BOTH, SIXTEEN + 6 * d**2 / sqrt(N * I * T)),
            Specialise(AT_EXACT[:1], prescribes=AT_EXACT),
            ("D4a", *WHOLE.conditions),
        ),
        order("D4", "D4b", COROLLARY_4_8.form("printed").bound, 16, (), left=OVER_BOTH),
        Step(
            "D5",
            "Theorem 3.1 in expectation at Corollary 3.2's gamma",
            Relation(
                OVER_BOTH,
                at(THEOREM_3_1.form("explicit"), {gamma: LOCAL}).xreplace({delta**2: WINDOW_MEAN}),
            ),
            Specialise(((gamma, LOCAL),), prescribes=((gamma, LOCAL),)),
            (IN_EXPECTATION, f"{RATE_STEPS}/D1", f"{RATE_STEPS}/D2", HALF),
        ),
        Step(
            "D6",
            "the initial gap and the update noise by the branches of eta",
            Relation(OVER_BOTH, ROOTED),
            Combine((1, rho**2 * sigma**2 / (3 * I * P * sqrt(T)), 96 * L * F * P / sqrt(T))),
            ("D5", f"{RATE_STEPS}/D1", f"{RATE_STEPS}/D3"),
        ),
        Step(
            "D7",
            "with what bounded divergence and independent rounds make of the divergences",
            Relation(OVER_BOTH, COROLLARY_4_8.form("repaired:any-I").bound.doit()),
            Specialise(at_random(n.upsilon**2 / P), RANDOM),
            ("D6", *EVERY_CLIENT, INDEPENDENT, HALF),
        ),
    ),
    COROLLARY_4_8,
    {
        "repaired:integer-P": "D1",
        "repaired:window-variance": "D2",
        "repaired": "D3",
        "printed": "D4",
        "repaired:any-I": "D7",
    },
)

# --- Table 1 ---

REGULARIZED_RATE = next(r for r in RATES if r.key.endswith("table-1-regularized"))
TABLE_1_PROOF = Proof(
    f"{PAPER}/table-1-regularized",
    NO_VECTORS,
    (
        Step(
            "D1",
            "Corollary 4.3 for large T with equal weights",
            Relation(LEAST, 12 * sqrt(L * F) * REGULARIZED_RATE.form("printed").bound.doit()),
            Leading(REGULARIZED_RATE.form("printed").bound.doit(), T, (L, F), ((rho, 1 / sqrt(n.S)),)),
            (f"{PAPER}/corollary-4.3[repaired]",),
        ),
    ),
    REGULARIZED_RATE,
    {"printed": "D1"},
)
