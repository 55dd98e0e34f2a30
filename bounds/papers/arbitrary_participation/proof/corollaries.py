"""Corollaries 3.2, 3.3, 4.3 and 4.8, and Table 1: Theorem 3.1 at step sizes, and under bounds on its divergences."""

from sympy import Expr, Integer, Rational, Symbol, sqrt

from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.derivations import AtMinimum, Leading, Prescribed, Specialize
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.papers.arbitrary_participation import assumptions
from fedbounds.bounds.papers.arbitrary_participation.expected import (
    COROLLARY_3_2_EXPECTED,
    COROLLARY_3_3_EXPECTED,
    COROLLARY_4_3_EXPECTED,
    THEOREM_3_1_EXPECTED,
)
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.participation import (
    COROLLARY_4_3,
    COROLLARY_4_8,
    OVER_PARTICIPATION,
)
from fedbounds.bounds.papers.arbitrary_participation.proof import participation
from fedbounds.bounds.papers.arbitrary_participation.proof.expected import expected_proofs
from fedbounds.bounds.papers.arbitrary_participation.proof.participation import EACH as PROPOSITION_4_1_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.participation import LHS as WINDOW_SQUARED
from fedbounds.bounds.papers.arbitrary_participation.proof.participation import REGULAR as REGULAR_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.spread import PAPER
from fedbounds.bounds.papers.arbitrary_participation.rates import RESULTS as RATES
from fedbounds.bounds.papers.arbitrary_participation.results import (
    COROLLARY_3_2,
    COROLLARY_3_3,
    FLAT,
    HALF,
    ONCE,
    THEOREM_3_1,
)
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.result import Result

L, F, I, N, P, T = n.L, n.F, n.I, n.N, n.P, n.T
gamma, eta, rho, sigma, nu, beta, delta, d = n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta, n.delta, n.d
NO_VECTORS = ProofSetting("no vectors: constants only", {}, given="participation")
LEAST = measure_symbol(LEAST_GRADIENT)
THEOREM = f"{PAPER}/theorem-3.1"
LOCAL = 1 / (12 * L * I * P * sqrt(T))
KNOWS_NOISE, LARGEST = 12 * P * sqrt(L * I * F) / (sigma * rho), 6 * sqrt(T)
BRANCHES = (KNOWS_NOISE, LARGEST)
AT_LOCAL = ((gamma, LOCAL),)


def step_sizes(*values: tuple[Symbol, Expr]) -> Specialize:
    """The rule that puts in step sizes."""
    return Specialize(values, prescribes=values)


def bound(result: Result, form: str) -> Expr:
    """The bound of a form, evaluated."""
    return result.form(form).bound.doit()


SPECIAL = step_sizes(*AT_LOCAL)

# --- Corollary 3.2 ----------------------------------------------------------------------------------------------------

c = Chain(NO_VECTORS, cites=(THEOREM_3_1,))
c["D1", "eta is at most its first branch"] = Prescribed(eta, BRANCHES, 0)
c["D2", "eta is at most its second branch"] = Prescribed(eta, BRANCHES, 1)
c["D3", "1/min{a, b} <= 1/a + 1/b"] = Prescribed(eta, BRANCHES, None)
c["D4", "Theorem 3.1 at this gamma; both caps hold"] = SPECIAL, f"{THEOREM}[explicit] D1 D2", HALF
FIRST_BRANCH, INVERSE = rho**2 * sigma**2 / (3 * I * P * sqrt(T)), 96 * L * F * P / sqrt(T)
c["D5", "the initial gap and the update noise by the branches, which merge in 12 = 8 + 4"] = by(
    le(LEAST, bound(COROLLARY_3_2, "explicit")), {"D4": 1, "D1": FIRST_BRANCH, "D2": 0, "D3": INVERSE}
)
c["D6", "the printed order with 16 for each hidden constant"] = by(
    le(LEAST, 16 * bound(COROLLARY_3_2, "printed")), "D5", HALF
)
c["D7", "the sharp theorem at this gamma"] = SPECIAL, f"{THEOREM}[sharp] D1 D2", ONCE
c["D8", "the sharp theorem at this eta, each term at its own branch"] = by(
    le(LEAST, bound(COROLLARY_3_2, "sharp")), AtMinimum(eta, BRANCHES), "D7", ONCE
)
COROLLARY_3_2_PROOF = c.proof(
    f"{PAPER}/corollary-3.2", COROLLARY_3_2, {"explicit": "D5", "printed": "D6", "sharp": "D8"}
)

# --- Corollary 3.3 ----------------------------------------------------------------------------------------------------

NO_NOISE = 12 * P * sqrt(L * I * F) / rho
AT_NO_NOISE = (*AT_LOCAL, (eta, NO_NOISE))
BOTH_CAPS = "Theorem 3.1 at these step sizes; both caps hold"

c = Chain(NO_VECTORS, cites=(THEOREM_3_1,))
c["D1", BOTH_CAPS] = by(
    le(LEAST, bound(COROLLARY_3_3, "explicit")), step_sizes(*AT_NO_NOISE), f"{THEOREM}[explicit]", FLAT, HALF
)
c["D2", "the printed order with 8 for each hidden constant"] = le(LEAST, 8 * bound(COROLLARY_3_3, "printed")), "D1"
c["D3", BOTH_CAPS] = by(
    le(LEAST, bound(COROLLARY_3_3, "repaired:s")),
    step_sizes(*AT_LOCAL, (eta, n.s * NO_NOISE)),
    f"{THEOREM}[explicit]",
    *COROLLARY_3_3.form("repaired:s").conditions,
)
c["D4", BOTH_CAPS] = step_sizes(*AT_NO_NOISE), f"{THEOREM}[sharp]", FLAT, ONCE
COROLLARY_3_3_PROOF = c.proof(
    f"{PAPER}/corollary-3.3", COROLLARY_3_3, {"explicit": "D1", "printed": "D2", "repaired:s": "D3", "sharp": "D4"}
)

# --- Corollary 4.3 ----------------------------------------------------------------------------------------------------

EVERY_ROUND = (
    (assumptions.COHORT.name, le(participation.OTHER_ROUND, nu**2)),
    (assumptions.PARTICIPATION.name, le(participation.ANY_ROUND, beta**2)),
)
DIVERGENCES = (*EVERY_ROUND, (assumptions.WINDOW.name, le(WINDOW_SQUARED, delta**2)))
REGULAR = ((nu, d), (beta, d), (delta, Integer(0)))
BOUNDED = Specialize(REGULAR, DIVERGENCES)  # two divergences by d, the window's by what participation makes it
EVERY_CLIENT = f"{PAPER}/proposition-4.1/D4 {PAPER}/proposition-4.1/D3"
DISCHARGING = f"{EVERY_CLIENT} {PAPER}/proposition-4.2/D3"
SMALLER = (  # Corollary 3.2's explicit form with the sharp theorem's constants of the divergences
    bound(COROLLARY_3_2, "explicit")
    - (Rational(7, 8) - Rational("33.79") / 144) * nu**2 / (P**2 * T)
    - (1 - Rational("41.30") / 144) * beta**2 / T
)
RATE = COROLLARY_3_2_PROOF.id

c = Chain(NO_VECTORS, cites=(THEOREM_3_1, COROLLARY_3_2, COROLLARY_3_2_PROOF, PROPOSITION_4_1_PROOF, REGULAR_PROOF))
c["D4", "the sharp theorem, rounded up, at this gamma"] = SPECIAL, f"{THEOREM}[sharp:worst] {RATE}/D1 {RATE}/D2", HALF
c["D5", "Corollary 3.2 with smaller constants of the divergences"] = by(
    le(LEAST, SMALLER),
    {"D4": 1, f"{RATE}/D1": Rational("2.574") * rho**2 * sigma**2 / (12 * I * P * sqrt(T))},
    {f"{RATE}/D3": Rational("3.861") * 12 * L * F * P / sqrt(T)},
)
c["D6", "with nu, beta <= d and delta = 0"] = BOUNDED, f"D5 {DISCHARGING}", HALF
c["D7", "the paper's form, although Proposition 4.1 is false: the constants have room for both divergences"] = by(
    le(LEAST, bound(COROLLARY_4_3, "explicit")), "D6"
)
REGULARIZED = "corollary-4.3 with nu, beta <= d and delta = 0"
c["D1", REGULARIZED] = by(
    le(LEAST, bound(COROLLARY_4_3, "repaired")),
    BOUNDED,
    f"{RATE}[explicit] {DISCHARGING}",
    *COROLLARY_4_3.form("repaired").conditions,
)
c["D2", "the printed order with 16 for each hidden constant"] = by(
    le(LEAST, 16 * bound(COROLLARY_4_3, "printed")), "D1", HALF
)
c["D3", REGULARIZED] = BOUNDED, f"{RATE}[sharp] {DISCHARGING}", *COROLLARY_4_3.form("sharp").conditions
COROLLARY_4_3_PROOF = c.proof(
    f"{PAPER}/corollary-4.3", COROLLARY_4_3, {"repaired": "D1", "printed": "D2", "sharp": "D3", "explicit": "D7"}
)

# --- Corollary 4.8: in expectation over the participation -------------------------------------------------------------

IN_EXPECTATION = f"{THEOREM_3_1_EXPECTED.key}[explicit]"
OVER_BOTH = measure_symbol(OVER_PARTICIPATION)
# bounds on the suprema of (5) and (6) bound their expectations as well
RANDOM = (
    (assumptions.EXPECTED_COHORT.name, le(participation.OTHER_ROUND, nu**2)),
    (assumptions.EXPECTED_PARTICIPATION.name, le(participation.ANY_ROUND, beta**2)),
    (assumptions.EXPECTED_WINDOW.name, le(participation.E7, delta**2)),
)
INDEPENDENT, ANY_VARIANCE = f"{PAPER}/proposition-4.7/D2", f"{PAPER}/proposition-4.4/D4"


def random_participation_proof(variance: Expr) -> tuple[tuple[Symbol, Expr], ...]:
    """The divergences when only the variance of the window means is known."""
    return ((nu, d), (beta, d), (delta, N * d * sqrt(variance)))


WHOLE = COROLLARY_4_8.form("repaired")
EXACT = n.upsilon**2 * N ** Rational(5, 2) * sqrt(I * T)
AT_EXACT = ((P, EXACT), (gamma, LOCAL.xreplace({P: EXACT})), (eta, NO_NOISE.xreplace({P: EXACT})))
PRESCRIBED_P = Specialize(AT_EXACT[:1], prescribes=AT_EXACT)
SIXTEEN = 16 * ((1 + sigma**2) * rho * sqrt(L * F) / sqrt(I * T) + d**2 / T + sigma**2 / T)

c = Chain(
    NO_VECTORS,
    cites=(
        THEOREM_3_1_EXPECTED,
        COROLLARY_4_8,
        COROLLARY_3_2_PROOF,
        PROPOSITION_4_1_PROOF,
        participation.ERGODIC_PROOF,
        participation.INDEPENDENT_PROOF,
    ),
)
for name, form, variance, source in (
    ("D1", "repaired:integer-P", n.upsilon**2 / P, INDEPENDENT),
    ("D2", "repaired:window-variance", n.windowvar, ANY_VARIANCE),
):
    c[name, "Theorem 3.1 in expectation at these step sizes; both caps hold"] = by(
        le(OVER_BOTH, bound(COROLLARY_4_8, form)),
        Specialize((*AT_NO_NOISE, *random_participation_proof(variance)), RANDOM, AT_NO_NOISE),
        f"{IN_EXPECTATION} {EVERY_CLIENT} {source}",
        *COROLLARY_4_8.form(form).conditions,
    )
c["D3", "at the prescribed P, if that is a whole number"] = by(
    PRESCRIBED_P, f"{COROLLARY_4_8.key}[repaired:integer-P]", *WHOLE.conditions
)
c["D4a", "the order at any whole P"] = le(OVER_BOTH, SIXTEEN + 6 * N**2 * d**2 * n.upsilon**2 / P), "D1"
c["D4b", "the order at the prescribed P, if that is a whole number"] = PRESCRIBED_P, "D4a", *WHOLE.conditions
c["D4", "the printed order with 16 for each hidden constant"] = by(
    le(OVER_BOTH, 16 * bound(COROLLARY_4_8, "printed")), "D4b"
)
c["D5", "Theorem 3.1 in expectation at Corollary 3.2's gamma"] = by(
    SPECIAL, f"{IN_EXPECTATION} {RATE}/D1 {RATE}/D2", HALF
)
c["D6", "the initial gap and the update noise by the branches of eta"] = by(
    le(OVER_BOTH, bound(COROLLARY_3_2, "explicit")), {"D5": 1, f"{RATE}/D1": FIRST_BRANCH, f"{RATE}/D3": INVERSE}
)
c["D7", "with what bounded divergence and independent rounds make of the divergences"] = by(
    le(OVER_BOTH, bound(COROLLARY_4_8, "repaired:any-I")),
    Specialize(random_participation_proof(n.upsilon**2 / P), RANDOM),
    f"D6 {EVERY_CLIENT} {INDEPENDENT}",
    HALF,
)
COROLLARY_4_8_PROOF = c.proof(
    f"{PAPER}/corollary-4.8",
    COROLLARY_4_8,
    {
        "repaired:integer-P": "D1",
        "repaired:window-variance": "D2",
        "repaired": "D3",
        "printed": "D4",
        "repaired:any-I": "D7",
    },
)

# --- Table 1 ----------------------------------------------------------------------------------------------------------

REGULARIZED_RATE = next(r for r in RATES if r.key.endswith("table-1-regularized"))
RATE_BOUND = bound(REGULARIZED_RATE, "printed")
c = Chain(NO_VECTORS, cites=(COROLLARY_4_3,))
c["D1", "Corollary 4.3 for large T with equal weights"] = by(
    le(LEAST, 12 * sqrt(L * F) * RATE_BOUND),
    Leading(RATE_BOUND, T, (L, F), ((rho, 1 / sqrt(n.S)),)),
    f"{COROLLARY_4_3.key}[repaired]",
)
TABLE_1_PROOF = c.proof(f"{PAPER}/table-1-regularized", REGULARIZED_RATE, {"printed": "D1"})

# --- The corollaries in expectation over the participation ------------------------------------------------------------

EXPECTED_COROLLARIES = expected_proofs(
    (COROLLARY_3_2_PROOF, COROLLARY_3_3_PROOF, COROLLARY_4_3_PROOF),
    {
        COROLLARY_3_2_PROOF.id: (COROLLARY_3_2_EXPECTED, {"explicit": "D5", "sharp": "D8"}),
        COROLLARY_3_3_PROOF.id: (COROLLARY_3_3_EXPECTED, {"explicit": "D1", "repaired:s": "D3", "sharp": "D4"}),
        COROLLARY_4_3_PROOF.id: (COROLLARY_4_3_EXPECTED, {"repaired": "D1", "sharp": "D3"}),
    },
)
