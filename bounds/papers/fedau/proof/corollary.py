# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false, reportMissingTypeArgument=false
# sympy types its operators as unions
r"""Lemma B.7.1 and Corollary 4: Theorem 3 at the cut-off $K=\max\{1,\lceil R\log T\rceil\}$, Theorem 2 at step sizes.

The paper's $K=\log_cT$ need be neither whole nor at least 1, and its last step needs R bounded below. Here R may be
anything: $(1-p_n)^a\le e^{-a/(2R)}$ is small with R, which pays for the parts of the weight error that R does not
multiply.
"""

from __future__ import annotations

from sympy import Add, Expr, Integer, Max, Min, Rational, exp, log, sqrt

from bounds.audit.averages import AtStep
from bounds.audit.axioms import Assumed
from bounds.audit.claim import Relation
from bounds.audit.derivations import Prescribed, Specialise
from bounds.audit.exponentials import Tangent
from bounds.audit.rules import Combine
from bounds.audit.step_products import PrescribedProduct
from bounds.audit.steps import Proof, Step, measure_symbol
from bounds.audit.transcendental import Opened
from bounds.audit.whole_numbers import WholeNumber
from bounds.measures import AVERAGE_GRADIENT
from bounds.papers.fedau.assumptions import FEDAU_WEIGHTS
from bounds.papers.fedau.corollaries import (
    AT_WHOLE_K,
    C_W,
    COROLLARY_4,
    COROLLARY_4_OPTION_1,
    GLOBAL_STEPS,
    IS_WHOLE,
    LEMMA_B_7_1,
    PRINTED_K,
    WHOLE_K,
)
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.proof.weights import (
    NO_VECTORS,
    PAPER,
    PER_CLIENT,
    TOTAL,
    all_clients,
    cut,
    q,
)
from bounds.papers.fedau.results import THEOREM_2, THEOREM_2_OPTION_1, THEOREM_3, TWO_ROUNDS
from bounds.result import Condition, Result

L, F, I, N, T, K = n.L, n.F, n.I, n.N, n.T, n.K
gamma, eta, sigma, delta, Q, W, R = n.gamma, n.eta, n.sigma, n.delta, n.Q, n.W, n.R
ell = log(T)
LEMMA = f"{PAPER}/lemma-b.7.1"
THEOREM = f"{PAPER}/theorem-3"

# --- Lemma B.7.1 ------------------------------------------------------------------------------------------------------

RARITY = (
    "R = 1/log c with c = 1/(1 - min_n p_n)^2, so that 1 - p_n <= exp(-1/(2R)); R = 0 where everybody always takes part"
)
E_INVERSE = Rational(37, 100)  # at least 1/e
BEFORE = R + cut - R * ell  # 1 + y - z at y = K/R, z = log T, times R


def whole(name: str, says: str, left: Expr, right: Expr, which: str, *conditions: Condition) -> Step:
    """What the prescribed cut-off satisfies."""
    op = "==" if which == "equal" else "<="
    return Step(name, says, Relation(left, right, op), WholeNumber(cut, K, PRINTED_K, which), conditions)


def tangent(name: str, says: str, power: Expr, at: Expr, value: Expr, right: Expr, premises: tuple = ()) -> Step:
    """A power of 1 - p_n by a tangent of the exponential."""
    return Step(name, says, Relation(q**power, right), Tangent(q, power, R, at, value, RARITY), premises)


def combined(name: str, says: str, left: Expr, right: Expr, multipliers: tuple, premises: tuple) -> Step:
    """A combination of steps, given T >= 2."""
    return Step(name, says, Relation(left, right), Opened(multipliers), (*premises, TWO_ROUNDS))


BIAS_SHARE = Rational(9, 4)  # (T (1-p)^(2K)) / (R log^2 T); 1/log^2 2 = 2.08 is the least for T >= 2
CONSTANT = C_W * R * ell**2 / T
CUT_OFF_PROOF = Proof(
    LEMMA,
    NO_VECTORS,
    (
        whole("D2", "K is at least log_c T", R * ell, cut, "at least"),
        whole("D3", "K is at most log_c T + 1", cut, R * ell + 1, "at most"),
        tangent("D4", "e^(K/R - log T) >= 1 + K/R - log T", 2 * cut, ell, exp(-ell), R / (T * BEFORE), ("D2",)),
        combined(
            "D5",
            "(B.7.2), the bias: (1 - p_n)^(2K) <= 1/T",
            q ** (2 * cut),
            1 / T,
            (1, 1 / (T * BEFORE)),
            ("D4", "D2"),
        ),
        combined(
            "D6",
            "(B.6.9) for one client at this K",
            PER_CLIENT,
            AT_WHOLE_K,
            (1, 1, (3 + 2 * ell) / T),
            (f"{THEOREM}/T7", "D5", "D3"),
        ),
        all_clients("D7", "D6", LEMMA_B_7_1.form("repaired").bound.doit()),
        whole("D8", "K = log_c T, where that is a whole number", cut, R * ell, "equal", *IS_WHOLE),
        tangent("D9a", "the same tangent at this K", 2 * cut, ell, exp(-ell), R / (T * BEFORE), ("D8",)),
        combined("D9", "(B.7.2), the bias", q ** (2 * cut), 1 / T, (1, -1 / (T * BEFORE)), ("D9a", "D8")),
        combined(
            "D10",
            "(B.6.9) for one client at K = log_c T",
            PER_CLIENT,
            (2 * R * ell**2 + 3 * R * ell + 1) / T,
            (1, 1, (3 + 2 * ell) / T),
            (f"{THEOREM}/T7", "D9", "D8"),
        ),
        all_clients("D11", "D10", LEMMA_B_7_1.form("explicit").bound.doit()),
        tangent("D12", "x e^(-x/2) <= 2/e", Integer(1), Integer(1), E_INVERSE, 2 * E_INVERSE * R),
        tangent("D13", "x e^(-x) <= 1/e", Integer(2), Integer(1), E_INVERSE, E_INVERSE * R),
        combined(
            "D14",
            "K >= 1 and K >= R log T leave enough of 1 + K/R - log T",
            Integer(1),
            BIAS_SHARE * ell**2 * BEFORE,
            (0, 0),
            ("D2", f"{THEOREM}/T10"),
        ),
        combined(
            "D15",
            "the bias, in units of R log^2 T/T",
            q ** (2 * cut),
            BIAS_SHARE * R * ell**2 / T,
            (1, R / (T * BEFORE), 0),
            ("D4", "D14", "D2"),
        ),
        combined(
            "D16",
            "K(1 - p_n), in units of R",
            cut * q,
            R * (ell + 2 * E_INVERSE),
            (q, 1),
            ("D3", "D12"),
        ),
        combined(
            "D17",
            "the weight error of one client, in units of R log^2 T/T",
            PER_CLIENT,
            CONSTANT,
            (1, 2 * cut * q / T, 1 / T, 2 * (ell + 1) / T, (T - 1) / T, 0),
            (f"{THEOREM}/S27a", f"{THEOREM}/S27", "D13", "D16", "D15", f"{THEOREM}/T10"),
        ),
        all_clients("D18", "D17", LEMMA_B_7_1.form("repaired:constant").bound.doit()),
        Step(
            "D19",
            "the sharp Theorem 3 at this K",
            Relation(TOTAL, THEOREM_3.form("sharp").bound.doit()),
            Specialise((), prescribes=((K, WHOLE_K),)),
            (f"{THEOREM}[sharp]", TWO_ROUNDS),
        ),
    ),
    LEMMA_B_7_1,
    {"repaired": "D7", "explicit": "D11", "repaired:constant": "D18", "sharp": "D19"},
)

# --- Corollary 4 ------------------------------------------------------------------------------------------------------

LEAST = measure_symbol(AVERAGE_GRADIENT)
LOCAL_STEPS = (1 / (L * I * sqrt(T)), 1 / (4 * sqrt(15) * L * I))
SPEED_STEP = GLOBAL_STEPS[0]  # sqrt(F N/(Q (I delta^2 + sigma^2) L I T))
UNIT = sqrt(L * F * Q / (N * I * T))
HALF_CONSTANT = Rational(43, 2)


def local(name: str, which: int) -> Step:
    """gamma is at most its two branches."""
    return Step(
        name,
        f"gamma is at most branch {which + 1}",
        Relation(gamma, LOCAL_STEPS[which]),
        Prescribed(gamma, LOCAL_STEPS, which),
    )


def product(name: str, which: int | None) -> Step:
    """gamma eta is at most its three branches; its inverse is at most the sum of theirs."""
    rule = PrescribedProduct(gamma, eta, LOCAL_STEPS, GLOBAL_STEPS, which)
    if which is None:
        inverse = Add(*(1 / b for b in GLOBAL_STEPS))
        return Step(name, "1/min{a, b, c} <= 1/a + 1/b + 1/c", Relation(1 / (gamma * eta), inverse), rule)
    return Step(name, f"gamma eta is at most branch {which + 1}", Relation(gamma * eta, GLOBAL_STEPS[which]), rule)


def theorem_steps(theorem: Result, enough: tuple[Condition, ...]) -> tuple[Step, ...]:
    """Theorem 2 at step sizes within its caps."""
    caps = ("C2", "C4", "C5")
    return (
        Step(
            "C8",
            "Theorem 2; all caps hold at these steps",
            Relation(LEAST, theorem.form("explicit").bound.doit()),
            Combine((1, 0, 0, 0)),
            (f"{theorem.key}[explicit]", *caps, *enough),
        ),
    )


def explicit_steps(
    result: Result, source: str, double: int, of_error: Expr, conditions: tuple[Condition, ...], error: Expr = W
) -> tuple[Step, ...]:
    """The paper's constants at these steps.

    Args:
        result: whose explicit form it becomes.
        source: the theorem, where all caps hold.
        double: 2 where all constants are doubled.
        of_error: what multiplies the weight error.
        conditions: of the form.
        error: the weight error; without it the steps C1 to C10 are those of Corollary 4.
    """
    noise_growth = double * (180 * sigma**2 * error + 20 * (sigma**2 + 6 * I * delta**2)) * L**2 * I
    last = double * L * Q / N * (Rational(17, 4) * sigma**2 + Rational(27, 2) * I * delta**2)
    at_steps = (
        double * 8 * F / (I * T) * Add(*(1 / b for b in GLOBAL_STEPS))
        + of_error * error
        + double * (20 * sigma**2 / (I * T) + 120 * delta**2 / T)
        + last * SPEED_STEP
    )
    first, speed, inverse, root = (name if error else f"{COROLLARY_4.key}/{name}" for name in ("C1", "C3", "C6", "C10"))
    return (
        Step(
            "C9",
            "each term at the branch that bounds it",
            Relation(LEAST, at_steps),
            Opened((1, noise_growth * (LOCAL_STEPS[0] + gamma), last, double * 8 * F / (I * T))),
            (source, first, speed, inverse),
        ),
        Step(
            "C11",
            "21.5 = 8 + 13.5, as 17/4 <= 27/2",
            Relation(LEAST, result.form("explicit").bound.doit()),
            Opened((1, double * HALF_CONSTANT * UNIT)),
            ("C9", root, *conditions),
        ),
    )


def sharp_steps(source: str, terms: tuple[Expr, ...], facts: tuple[str, ...]) -> tuple[Step, ...]:
    """A sharp bound at these steps: its gap, the first term, by the largest branch, then the steps themselves."""
    gap = F / (gamma * eta * I * T)
    slope, others = terms[0] / gap, Add(*terms[1:])
    largest = Max(*(F / (b * I * T) for b in GLOBAL_STEPS))
    at_gamma, at_eta = Min(*LOCAL_STEPS), Min(*GLOBAL_STEPS) / Min(*LOCAL_STEPS)
    bound = (slope * largest + others).xreplace({gamma: at_gamma})
    return (
        Step(
            "C16",
            "1/min{a, b, c} = max{1/a, 1/b, 1/c}",
            Relation(gap, largest),
            PrescribedProduct(gamma, eta, LOCAL_STEPS, GLOBAL_STEPS, "largest", F / (I * T)),
        ),
        Step(
            "C17",
            "the initial gap by the largest branch",
            Relation(LEAST, slope * largest + others),
            Combine((1, slope, *(0 for _ in facts))),
            (source, "C16", *facts),
        ),
        Step(
            "C18",
            "at this gamma",
            Relation(LEAST, bound),
            AtStep(gamma, at_gamma, AT_THESE_STEPS),
            ("C17",),
        ),
        Step(
            "C19",
            "at this eta",
            Relation(LEAST, bound.xreplace({eta: at_eta})),
            AtStep(eta, at_eta, AT_THESE_STEPS, may_vanish=True),
            ("C18",),
        ),
    )


AT_THESE_STEPS = (
    "the step sizes that the result prescribes; with F = 0 nothing moves and the gradient is 0, with delta = sigma = 0 "
    "the first branch is infinite"
)


def corollary(result: Result, theorem: Result, double: int) -> Proof:
    """Corollary 4 under one option of Assumption 5; Option 1 has all constants doubled."""
    option_1 = double == 2
    gradient = Integer(0) if option_1 else n.G
    enough = tuple(c for c in result.form("explicit").conditions if c != TWO_ROUNDS)
    of_error = double * (180 * sigma**2 / (I * T) + Rational(81, 2) * (delta**2 + gradient**2))
    sharp = theorem.form("sharp:mean-Q")

    def with_error(name: str, says: str, form: str, source: str) -> Step:
        return Step(
            name,
            says,
            Relation(LEAST, result.form(form).bound.doit()),
            Opened((1, of_error, of_error)),
            ("C11", "C12", source),
        )

    return Proof(
        result.key,
        NO_VECTORS,
        (
            local("C1", 0),
            local("C2", 1),
            product("C3", 0),
            product("C4", 1),
            product("C5", 2),
            product("C6", None),
            *theorem_steps(theorem, enough),
            Step(
                "C10",
                "sqrt(a^2 + b^2) <= a + b",
                Relation(sqrt(I * delta**2 + sigma**2), sqrt(I) * delta + sigma),
                Opened(()),
            ),
            *explicit_steps(result, "C8", double, of_error, (TWO_ROUNDS,)),
            Step(
                "C12",
                "W is the weight error of FedAU's weights",
                Relation(W, TOTAL, "=="),
                Assumed(W, TOTAL, (FEDAU_WEIGHTS.name,), "the definition of W", op="=="),
                (FEDAU_WEIGHTS,),
            ),
            with_error("C13", "Lemma B.7.1 at the whole K", "repaired", f"{LEMMA}/D7"),
            Step(
                "C15",
                "the sharp Theorem 2; all caps hold at these steps",
                Relation(LEAST, sharp.bound.doit()),
                Combine((1, 0, 0, 0)),
                (f"{theorem.key}[sharp:mean-Q]", "C2", "C4", "C5", *enough),
            ),
            *sharp_steps("C15", tuple(t.expression for t in sharp.terms), ("C2", "C5")),
            Step(
                "C20",
                "at the whole K",
                Relation(LEAST, result.form("sharp").bound.doit()),
                Specialise((), prescribes=((K, WHOLE_K),)),
                ("C19", FEDAU_WEIGHTS, TWO_ROUNDS),
            ),
            with_error("C14", "Lemma B.7.1 with its constant", "repaired:constant", f"{LEMMA}/D18"),
        ),
        result,
        {"explicit": "C11", "repaired": "C13", "repaired:constant": "C14", "sharp": "C20"},
    )


COROLLARY_PROOF = corollary(COROLLARY_4, THEOREM_2, 1)
COROLLARY_OPTION_1_PROOF = corollary(COROLLARY_4_OPTION_1, THEOREM_2_OPTION_1, 2)
PROOFS = (CUT_OFF_PROOF, COROLLARY_PROOF, COROLLARY_OPTION_1_PROOF)
