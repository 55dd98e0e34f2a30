r"""Lemma B.7.1 and Corollary 4: Theorem 3 at $K=\max\{1,\lceil R\log T\rceil\}$, Theorem 2 at step sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import sympy as sp
from sympy import Add, Expr, Integer, Max, Min, Rational, S, exp, log, sqrt

from fedbounds.bounds.audit.averages import AtStep, AverageOverClients
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.derivations import Prescribed, Specialize
from fedbounds.bounds.audit.nonnegative import ProofFinding, same
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.audit.transcendental import Opened
from fedbounds.bounds.papers.fedau.assumptions import FEDAU_WEIGHTS
from fedbounds.bounds.papers.fedau.corollaries import (
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
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof import weights
from fedbounds.bounds.papers.fedau.proof.exponentials import Tangent
from fedbounds.bounds.papers.fedau.proof.whole_numbers import WholeNumber
from fedbounds.bounds.papers.fedau.results import THEOREM_2, THEOREM_2_OPTION_1, THEOREM_3, TWO_ROUNDS
from fedbounds.bounds.theory.measures import AVERAGE_GRADIENT
from fedbounds.bounds.theory.result import Condition, Result


@dataclass(frozen=True)
class PrescribedProduct:
    """What a product a b that is a minimum satisfies, where a is one too and b is the quotient of the two."""

    first: sp.Symbol  # first, second: a and b
    second: sp.Symbol
    least: tuple[sp.Expr, ...]  # the values that a is the least of
    branches: tuple[sp.Expr, ...]  # the values that a b is the least of
    # the branch it is compared with; None for the inverse, which is at most the sum of theirs; "largest" for a multiple
    # of the inverse, which is that of the largest
    which: int | Literal["largest"] | None
    multiple: sp.Expr = sp.S.One  # of the inverse
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @cached_property
    def prescribes(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The second number as the result should prescribe it."""
        return ((self.second, sp.Min(*self.branches) / sp.Min(*self.least)),)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """At most this branch, or the inverse at most their sum or their largest."""
        product = self.first * self.second
        if self.which == "largest":
            return Relation(self.multiple / product, sp.Max(*(self.multiple / b for b in self.branches)))
        if self.which is None:
            return Relation(1 / product, sp.Add(*(1 / b for b in self.branches)))
        return Relation(product, self.branches[self.which])

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The relation is one of these."""
        if self.which == "largest" and not self.multiple.is_nonnegative:
            return ProofFinding(False, "minimum", f"{self.multiple} may be negative")
        wanted = self.relation(setting, premises)
        equal = conclusion.op == "<=" and same(conclusion.left, wanted.left) and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "minimum", "an instance of it" if equal else f"the minimum gives {wanted}")


NO_VECTORS, PAPER, PER_CLIENT = weights.NO_VECTORS, weights.PAPER, weights.PER_CLIENT
THEOREM_PROOF, TOTAL, cut, p, q = weights.THEOREM_PROOF, weights.TOTAL, weights.cut, weights.p, weights.q

L, F, I, N, T, K = n.L, n.F, n.I, n.N, n.T, n.K
gamma, eta, sigma, delta, Q, W, R = n.gamma, n.eta, n.sigma, n.delta, n.Q, n.W, n.R
ell = log(T)
LEMMA = f"{PAPER}/lemma-b.7.1"
THEOREM = f"{PAPER}/theorem-3"

# --- Lemma B.7.1 ------------------------------------------------------------------------------------------------------

RARITY = (
    "R = 1/log c with c = 1/(1 - min_n p_n)^2, so that 1 - p_n <= exp(-1/(2R)); "
    "R = 0 where all clients always participate"
)
E_INVERSE = Rational(37, 100)  # at least 1/e
BEFORE = R + cut - R * ell  # 1 + y - z at y = K/R, z = log T, times R


MEAN = AverageOverClients(PER_CLIENT, TOTAL, (p,))
BIAS_SHARE = Rational(9, 4)  # (T (1-p)^(2K)) / (R log^2 T); 1/log^2 2 = 2.08 is the least for T >= 2


def tangent(power: Expr, at: Expr, value: Expr) -> Tangent:
    """A power of 1 - p_n by a tangent of the exponential."""
    return Tangent(q, power, R, at, value, RARITY)


def cut_off_chain() -> Chain:
    """Lemma B.7.1."""
    c = Chain(NO_VECTORS, cites=(THEOREM_PROOF, THEOREM_3))
    to_log, share = tangent(2 * cut, ell, exp(-ell)), 1 / (T * BEFORE)
    repaired, explicit, constant = (
        LEMMA_B_7_1.form(name).bound.doit() for name in ("repaired", "explicit", "repaired:constant")
    )
    c["D2", "K is at least log_c T"] = WholeNumber(cut, K, PRINTED_K, "at least")
    c["D3", "K is at most log_c T + 1"] = WholeNumber(cut, K, PRINTED_K, "at most")
    c["D4", "e^(K/R - log T) >= 1 + K/R - log T"] = to_log, "D2"
    c["D5", "(B.7.2), the bias: (1 - p_n)^(2K) <= 1/T"] = by(
        le(q ** (2 * cut), 1 / T), Opened, {"D4": 1, "D2": share}, TWO_ROUNDS
    )
    c["D6", "(B.6.9) for one client at this K"] = by(
        le(PER_CLIENT, AT_WHOLE_K), Opened, {f"{THEOREM}/T7": 1, "D5": 1, "D3": (3 + 2 * ell) / T}, TWO_ROUNDS
    )
    c["D7", "the mean over clients"] = le(TOTAL, repaired), MEAN, "D6"
    c["D8", "K = log_c T, where that is a whole number"] = WholeNumber(cut, K, PRINTED_K, "equal"), *IS_WHOLE
    c["D9a", "the same tangent at this K"] = to_log, "D8"
    c["D9", "(B.7.2), the bias"] = le(q ** (2 * cut), 1 / T), Opened, {"D9a": 1, "D8": -share}, TWO_ROUNDS
    c["D10", "(B.6.9) for one client at K = log_c T"] = by(
        le(PER_CLIENT, (2 * R * ell**2 + 3 * R * ell + 1) / T),
        Opened,
        {f"{THEOREM}/T7": 1, "D9": 1, "D8": (3 + 2 * ell) / T},
        TWO_ROUNDS,
    )
    c["D11", "the mean over clients"] = le(TOTAL, explicit), MEAN, "D10"
    c["D12", "x e^(-x/2) <= 2/e"] = tangent(Integer(1), Integer(1), E_INVERSE)
    c["D13", "x e^(-x) <= 1/e"] = tangent(Integer(2), Integer(1), E_INVERSE)
    c["D14", "K >= 1 and K >= R log T leave enough of 1 + K/R - log T"] = by(
        le(Integer(1), BIAS_SHARE * ell**2 * BEFORE), Opened, f"D2 {THEOREM}/T10", TWO_ROUNDS
    )
    c["D15", "the bias, in units of R log^2 T/T"] = by(
        le(q ** (2 * cut), BIAS_SHARE * R * ell**2 / T), Opened, {"D4": 1, "D14": R * share, "D2": 0}, TWO_ROUNDS
    )
    c["D16", "K(1 - p_n), in units of R"] = by(
        le(cut * q, R * (ell + 2 * E_INVERSE)), Opened, {"D3": q, "D12": 1}, TWO_ROUNDS
    )
    parts = {f"{THEOREM}/S27a": 1, f"{THEOREM}/S27": 2 * cut * q / T, "D13": 1 / T, "D16": 2 * (ell + 1) / T}
    c["D17", "the weight error of one client, in units of R log^2 T/T"] = by(
        le(PER_CLIENT, C_W * R * ell**2 / T), Opened, parts | {"D15": (T - 1) / T, f"{THEOREM}/T10": 0}, TWO_ROUNDS
    )
    c["D18", "the mean over clients"] = le(TOTAL, constant), MEAN, "D17"
    c["D19", "the sharp Theorem 3 at this K"] = by(
        Specialize((), prescribes=((K, WHOLE_K),)), f"{THEOREM}[sharp]", TWO_ROUNDS
    )
    return c


CUT_OFF_PROOF = cut_off_chain().proof(
    LEMMA, LEMMA_B_7_1, {"repaired": "D7", "explicit": "D11", "repaired:constant": "D18", "sharp": "D19"}
)

# --- Corollary 4 ------------------------------------------------------------------------------------------------------

LEAST = measure_symbol(AVERAGE_GRADIENT)
LOCAL_STEPS = (1 / (L * I * sqrt(T)), 1 / (4 * sqrt(15) * L * I))
SPEED_STEP = GLOBAL_STEPS[0]  # sqrt(F N/(Q (I delta^2 + sigma^2) L I T))
UNIT = sqrt(L * F * Q / (N * I * T))
HALF_CONSTANT = Rational(43, 2)


AT_THESE_STEPS = (
    "the step sizes that the result prescribes; with F = 0 nothing moves and the gradient is 0, with delta = sigma = 0 "
    "the first branch is infinite"
)


def product(which: int | Literal["largest"] | None, multiple: Expr = S.One) -> PrescribedProduct:
    """gamma eta is at most its three branches; its inverse is at most the sum of theirs."""
    return PrescribedProduct(gamma, eta, LOCAL_STEPS, GLOBAL_STEPS, which, multiple)


def enter_explicit(
    c: Chain, result: Result, source: str, double: int, of_error: Expr, *conditions: Condition, error: Expr = W
) -> None:
    """The paper's constants at these steps."""
    first, speed, inverse, root = (name if error else f"{COROLLARY_4.key}/{name}" for name in ("C1", "C3", "C6", "C10"))
    noise_growth = double * (180 * sigma**2 * error + 20 * (sigma**2 + 6 * I * delta**2)) * L**2 * I
    last = double * L * Q / N * (Rational(17, 4) * sigma**2 + Rational(27, 2) * I * delta**2)
    gap = double * 8 * F / (I * T)
    at_steps = gap * Add(*(1 / b for b in GLOBAL_STEPS)) + of_error * error
    at_steps += double * (20 * sigma**2 / (I * T) + 120 * delta**2 / T) + last * SPEED_STEP
    factors = {source: 1, first: noise_growth * (LOCAL_STEPS[0] + gamma), speed: last, inverse: gap}
    c["C9", "each term at the branch that bounds it"] = le(LEAST, at_steps), Opened, factors
    c["C11", "21.5 = 8 + 13.5, as 17/4 <= 27/2"] = by(
        le(LEAST, result.form("explicit").bound.doit()),
        Opened,
        {"C9": 1, root: double * HALF_CONSTANT * UNIT},
        *conditions,
    )


def enter_sharp(c: Chain, source: str, terms: tuple[Expr, ...], *facts: str) -> None:
    """A sharp bound at these steps: its gap, the first term, by the largest branch, then the steps themselves."""
    gap = F / (gamma * eta * I * T)
    slope, others = terms[0] / gap, Add(*terms[1:])
    largest = Max(*(F / (b * I * T) for b in GLOBAL_STEPS))
    at_gamma, at_eta = Min(*LOCAL_STEPS), Min(*GLOBAL_STEPS) / Min(*LOCAL_STEPS)
    c["C16", "1/min{a, b, c} = max{1/a, 1/b, 1/c}"] = product("largest", F / (I * T))
    c["C17", "the initial gap by the largest branch"] = by(
        le(LEAST, slope * largest + others), {source: 1, "C16": slope} | dict.fromkeys(facts, 0)
    )
    c["C18", "at this gamma"] = AtStep(gamma, at_gamma, AT_THESE_STEPS), "C17"
    c["C19", "at this eta"] = AtStep(eta, at_eta, AT_THESE_STEPS, may_vanish=True), "C18"


def corollary(result: Result, theorem: Result, double: int) -> Proof:
    """Corollary 4 under one option of Assumption 5; Option 1 has all constants doubled."""
    gradient = Integer(0) if double == 2 else n.G
    enough = tuple(c for c in result.form("explicit").conditions if c != TWO_ROUNDS)
    of_error = double * (180 * sigma**2 / (I * T) + Rational(81, 2) * (delta**2 + gradient**2))
    sharp = theorem.form("sharp:mean-Q")
    bounds = {form.name: form.bound.doit() for form in result.forms}
    c = Chain(NO_VECTORS, cites=(theorem, CUT_OFF_PROOF))
    for k in range(len(LOCAL_STEPS)):
        c[f"C{k + 1}", f"gamma is at most branch {k + 1}"] = Prescribed(gamma, LOCAL_STEPS, k)
    for k in range(len(GLOBAL_STEPS)):
        c[f"C{k + 3}", f"gamma eta is at most branch {k + 1}"] = product(k)
    c["C6", "1/min{a, b, c} <= 1/a + 1/b + 1/c"] = product(None)
    c["C8", "Theorem 2; all caps hold at these steps"] = by(
        le(LEAST, theorem.form("explicit").bound.doit()), f"{theorem.key}[explicit] C2 C4 C5", *enough
    )
    c["C10", "sqrt(a^2 + b^2) <= a + b"] = le(sqrt(I * delta**2 + sigma**2), sqrt(I) * delta + sigma), Opened(())
    enter_explicit(c, result, "C8", double, of_error, TWO_ROUNDS)
    c["C12", "by definition W is the weight error of FedAU's weights"] = eq(W, TOTAL), FEDAU_WEIGHTS
    at_error = {"C11": 1, "C12": of_error}
    c["C13", "Lemma B.7.1 at the whole K"] = le(LEAST, bounds["repaired"]), Opened, at_error | {f"{LEMMA}/D7": of_error}
    c["C15", "the sharp Theorem 2; all caps hold at these steps"] = by(
        le(LEAST, sharp.bound.doit()), f"{theorem.key}[sharp:mean-Q] C2 C4 C5", *enough
    )
    enter_sharp(c, "C15", tuple(t.expression for t in sharp.terms), "C2", "C5")
    c["C20", "at the whole K"] = Specialize((), prescribes=((K, WHOLE_K),)), "C19", FEDAU_WEIGHTS, TWO_ROUNDS
    c["C14", "Lemma B.7.1 with its constant"] = by(
        le(LEAST, bounds["repaired:constant"]), Opened, at_error | {f"{LEMMA}/D18": of_error}
    )
    ends = {"explicit": "C11", "repaired": "C13", "repaired:constant": "C14", "sharp": "C20"}
    return c.proof(result.key, result, ends)


COROLLARY_PROOF = corollary(COROLLARY_4, THEOREM_2, 1)
COROLLARY_OPTION_1_PROOF = corollary(COROLLARY_4_OPTION_1, THEOREM_2_OPTION_1, 2)
PROOFS = (CUT_OFF_PROOF, COROLLARY_PROOF, COROLLARY_OPTION_1_PROOF)
