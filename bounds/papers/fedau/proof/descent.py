r"""Lemmas B.3.3 and B.5.1: one round, eqs. (B.3.5) to (B.3.10) and (B.5.1), with the cross term of (B.3.8) kept.

(B.3.8)(a) takes $\langle a,v\rangle$ for 0 (step S10); what holds is $\langle a,v\rangle=\langle a,v-\nabla
F_n(x_t)\rangle$, which Young's inequality splits into noise and drift (S10').
"""

from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational, Symbol, sqrt

from fedbounds.bounds.audit import participation_rules as rounds
from fedbounds.bounds.audit.axioms import Descent, NoiseOverTime, Smooth
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.bounds.audit.rules import Combine, Gram
from fedbounds.bounds.audit.vectors import inner, square
from fedbounds.bounds.papers.fedau import lemmas
from fedbounds.bounds.papers.fedau.assumptions import BERNOULLI, ONE_STEP, PAST_WEIGHTS
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof import drift
from fedbounds.bounds.papers.fedau.proof.drift import DescentObjective
from fedbounds.bounds.theory.result import Condition

A1, A2, AVERAGE_OF_F, AVERAGE_PROOF = drift.A1, drift.A2, drift.AVERAGE_OF_F, drift.AVERAGE_PROOF
GENERAL, GY, ITSELF, MARTINGALE, TO_GRADSQ = drift.GENERAL, drift.GY, drift.ITSELF, drift.MARTINGALE, drift.TO_GRADSQ
G, Xi, a, d, enter_divergence, f0 = drift.G, drift.Xi, drift.a, drift.d, drift.enter_divergence, drift.f0
g0, round_setting, s, v, z = drift.g0, drift.round_setting, drift.s, drift.v, drift.z

L, I, N, gamma, eta, sigma = n.L, n.I, n.N, n.gamma, n.eta, n.sigma
INDEPENDENT = ONE_STEP[2]
CHOSEN = (A2, MARTINGALE, BERNOULLI, PAST_WEIGHTS)
tau, move = gamma * L * I, gamma * eta * I  # move: how far the update goes along d
HALF = Rational(1, 2)
ROUND, CLIENTS = "for every round t", "for every client n and round t"
DECREASE = Symbol("[f(x_t) - E_t f(x_{t+1})]", real=True)
THIRTIETH, FIFTEENTH = 1 / (30 * L * I), 1 / (15 * L * I)
ROOT_AT_MOST, KAPPA_AT_MOST = Rational(17, 20), Rational(18, 25)


@dataclass(frozen=True)
class RoundChain:
    """One way through the chain."""

    name: str  # the suffix of its steps
    drift: str  # the step that bounds the averaged drift by k I (gamma^2 sigma^2 + ...)
    k: sp.Expr  # that constant
    rho: sp.Expr  # Young's parameter for the product of noise and drift; 0 drops the product, as (B.3.8)(a) does
    conditions: tuple[Condition, ...] = ()  # of the drift

    def deviation(self, o: DescentObjective) -> sp.Expr:
        """The bound on |v - grad F_n(x_t)|^2."""
        return self.k * I * L**2 * gamma**2 * (sigma**2 + 6 * I * (o.divergence**2 + G))

    def gradient(self, o: DescentObjective) -> sp.Expr:
        """The bound on |v|^2, eq. (B.3.9)."""
        return 3 * self.deviation(o) + 3 * (o.divergence**2 + G)

    def update(self, o: DescentObjective) -> sp.Expr:
        """The bound on |v + a|^2."""
        cross = self.deviation(o) / self.rho if self.rho else 0
        return (1 + self.rho) * sigma**2 / I + cross + self.gradient(o)

    def end(self, o: DescentObjective) -> sp.Expr:
        """The bound on the increase of the objective in one round."""
        second = L * move / 2 * o.moment / N * self.update(o)
        return move * (3 * HALF * o.gap * self.gradient(o) + self.deviation(o) / 2 + second - G / 4)


SHARP = RoundChain("", "S5'", lemmas.E_2, sqrt(lemmas.E_2) * tau)
ONE = RoundChain("-one", "S5'one", Integer(0), Rational(1, 16), (lemmas.ONE_LOCAL_STEP,))
PRINTED = RoundChain("-printed", "S5'five", Integer(5), Integer(0))


def enter_shared(c: Chain, o: DescentObjective) -> None:
    """What needs no bound on the drift."""
    needs = (A1.name, *(assumption.name for assumption in o.weights))
    c["D1", "descent lemma for the update of a round, eq. (B.3.6)"] = by(
        Descent("f0", -move * d, DECREASE, L, o.name, needs=needs), A1, *o.weights
    )
    c["D2", "participation and noise averaged out of the first-order term, eq. (B.3.7)"] = by(
        rounds.MeanUpdate("d", f0), *CHOSEN
    )
    c["S6", "Young with 1/2 for the part that the weights miss"] = by(
        le(-inner(f0, z - s), G / 4 + square(z - s)), Gram()
    )
    c["S7", "the product of two vectors by three squares"] = by(
        eq(-inner(f0, s), square(s - f0) / 2 - G / 2 - square(s) / 2), Combine()
    )
    c["S8", "the first-order term: 1/4 + 1/2 - 1 = -1/4 of the gradient's square"] = by(
        le(-inner(f0, d), square(z - s) + square(s - f0) / 2 - square(s) / 2 - G / 4), {"D2": -1, "S6": 1, "S7": 1}
    )
    c["S9a", "smoothness between the local models and x_t", CLIENTS] = Smooth("GY", "g0", L), A1
    c["S9b", "Jensen over the local steps", CLIENTS] = rounds.step_mean(GY - g0)
    enter_divergence(c, o)
    c["S14a", "Jensen for three gradients", CLIENTS] = by(
        le(square(v), 3 * square(v - g0) + 3 * square(g0 - f0) + 3 * G), Gram()
    )
    c["S11a", "the noise of client n in one step, at its local models", CLIENTS] = le(square(Xi), sigma**2), A2
    c["S11", "the mean noise of one client; the paper writes '='", CLIENTS] = by(
        NoiseOverTime("a", "Xi", I, needs=rounds.LOCAL_NOISE), "S11a", A2, MARTINGALE
    )
    c["S10'a", "the noise is uncorrelated with what is known at x_t", CLIENTS] = by(
        rounds.given_past(a, g0), A2, MARTINGALE
    )
    c["S12", "the squared update by what the objective asks for and what the weights miss"] = by(
        le(square(z), 2 * square(z - s) + 2 * square(s)), Gram()
    )
    c["S13", "the squared update does not ascend", ""] = le(L * move, HALF), lemmas.GLOBAL_CAP


def enter_branch(c: Chain, o: DescentObjective, b: RoundChain) -> None:
    """From a bound on the averaged drift to one round."""
    name, update = b.name, square(v + a)
    c[f"S9c{name}", "the mean gradient of a client against that at x_t", CLIENTS] = by(
        le(square(v - g0), b.deviation(o)), f"S9a S9b {o.average}/{b.drift}", *b.conditions
    )
    c[f"S9d{name}", "Jensen over the clients, with the weights of the objective"] = by(
        rounds.ClientMean(v - g0, uniform=not o.weights), f"S9c{name}", *o.weights
    )
    c[f"S14{name}", "the size of a client's mean gradient, eq. (B.3.9)", CLIENTS] = by(
        le(square(v), b.gradient(o)), f"S14a S9c{name} S2b"
    )
    c[f"S9{name}", "Cauchy-Schwarz over the clients"] = rounds.CauchySchwarz("v", z - s, o.gap), f"S14{name}"
    if b.rho:
        c[f"S10'b{name}", "Young for the product of a client's noise and its later gradients", CLIENTS] = by(
            le(2 * inner(a, v - g0), b.rho * square(a) + square(v - g0) / b.rho), Gram()
        )
        c[f"S10'{name}", "one client's update, its noise and its later gradients correlated", CLIENTS] = by(
            le(update, b.update(o)), f"S10'a S10'b{name} S14{name} S11 S9c{name}"
        )
    else:
        printed = "(B.3.8)(a) as printed"
        c["S10", f"{printed}: a client's noise is uncorrelated with its gradients, also the later ones", CLIENTS] = by(
            eq(inner(a, v), 0), rounds.given_past(a, v), A2, MARTINGALE
        )
        c[f"S10'{name}", f"{printed}: one client's update without the product of noise and gradients", CLIENTS] = by(
            le(update, b.update(o)), f"S10 S14{name} S11"
        )
    c[f"S11b{name}", "independent participation and noise: the variance of a sum, Var(1_n) <= p_n, eq. (B.3.8)"] = by(
        rounds.SecondMoment("d", "v", "a", o.moment / N), f"S10'{name}", *CHOSEN, INDEPENDENT
    )
    second = {f"S11b{name}": L * move**2 / 2, "S12": L * move**2 / 2, "S13": move * (square(z - s) + square(s))}
    c[f"S16{name}", "one round: first- and second-order terms together, eq. (B.3.10)"] = by(
        le(-DECREASE, b.end(o)), {"D1": 1, "S8": move} | second | {f"S9{name}": 3 * move / 2, f"S9d{name}": move / 2}
    )


def enter_constants(c: Chain) -> None:
    """What the growth factors are at most, at the caps; once for all objectives."""
    c["K1", "e - 2 is at most 18/25", ""] = le(lemmas.E_2, KAPPA_AT_MOST), Combine()
    c["K2", "its root is at most 17/20", ""] = le(sqrt(lemmas.E_2), ROOT_AT_MOST), Combine()
    c["K3", "15 is less than the root of 240", ""] = le(gamma, FIFTEENTH), lemmas.LOCAL_CAP
    rows = (
        ("A", lemmas.NOISE_GROWTH, 2 * tau, 3, Rational(9, 8), Rational(17, 16)),
        ("B", lemmas.DIVERGENCE_GROWTH, 6 * tau, 18, Rational(17, 5), Rational(27, 8)),
        ("D", lemmas.GRADIENT_GROWTH, Integer(0), 18, Rational(27, 8), Rational(27, 8)),
    )
    for symbol, growth, root, quadratic, at_cap, at_thirtieth in rows:
        parts = {"K2": root, "K1": quadratic * tau**2}
        c[f"K-{symbol}", f"S15: {symbol}_tau is at most {at_cap}, with gamma at most {FIFTEENTH}", ""] = by(
            le(growth, at_cap), parts | {"K3": 0}
        )
        c[f"K-{symbol}-small", f"S15: {symbol}_tau is at most {at_thirtieth}, with gamma at most {THIRTIETH}", ""] = by(
            le(growth, at_thirtieth), parts, lemmas.SMALLER_CAP
        )


def descent_chain(o: DescentObjective) -> Chain:
    """The whole chain for one objective, and where each form of its lemma ends."""
    cited = (AVERAGE_PROOF,) if o is GENERAL else (AVERAGE_OF_F, DESCENT_PROOF)
    c = Chain(round_setting(o.name), ROUND, cited)
    enter_shared(c, o)
    if o is GENERAL:
        enter_constants(c)
    for branch in (SHARP, ONE, *([PRINTED] if o is GENERAL else [])):
        enter_branch(c, o, branch)
    sums, square_sum = (o.gap, o.moment, o.divergence), o.divergence**2 + G
    home = "" if o is GENERAL else f"{GENERAL.proof}/"
    second = L * move**2 / 2 * o.moment / N
    growth = {"K-A": second * sigma**2 / I, "K-B": second * square_sum, "K-D": 3 * HALF * move * o.gap * square_sum}

    def end(constants: tuple[sp.Expr, ...]) -> Relation:
        """The form with these constants, in the symbols of the steps."""
        terms = lemmas.descent_terms(*[*constants, *sums])
        return le(-DECREASE, sp.Add(*(t.expression for t in terms)).xreplace({n.gradsq: G}))

    def by_growth(suffix: str) -> dict[str, sp.Expr | int]:
        return {"S16": 1} | {f"{home}{name}{suffix}": m for name, m in growth.items()} | {f"{home}K1": 0}

    c["B.3.5-repaired", "with 9/8 and 17/5"] = end(lemmas.REPAIRED_STEP), by_growth("")
    c["B.3.5-small", "as printed, with gamma at most 1/(30LI)"] = end(lemmas.PRINTED_STEP), by_growth("-small")
    c["B.3.5-one", "as printed, with one local step"] = by(
        end(lemmas.PRINTED_STEP), "S16-one", lemmas.ONE_LOCAL_STEP, lemmas.LOCAL_CAP
    )
    if o is GENERAL:
        squared = 240 * (L * I) ** 2  # of 90 and 15 in (B.3.9) 3/8 and 1/16 are left at the cap
        left = second * (sigma**2 / I + 6 * square_sum) + 9 * move * o.gap * square_sum
        c["K4", "S15: the cap squared", ""] = le(gamma**2, 1 / squared), rounds.Squared(), lemmas.LOCAL_CAP
        c["B.3.5-printed", "as printed, resting on (B.3.8)(a)"] = by(
            end(lemmas.PRINTED_STEP), {"S16-printed": 1, "K4": squared * left / 16}
        )
    return c


def descent_proof(o: DescentObjective, ends: dict[str, str]) -> Proof:
    """The chain of one objective."""
    lemma = lemmas.LEMMA_B_3_3 if o.weights else lemmas.LEMMA_B_5_1
    return descent_chain(o).proof(o.proof, lemma, ends, -DECREASE, TO_GRADSQ)


REPAIRS = {
    "repaired": "B.3.5-repaired",
    "repaired:smaller-cap": "B.3.5-small",
    "repaired:I=1": "B.3.5-one",
    "sharp": "S16",
}
DESCENT_PROOF = descent_proof(GENERAL, {"printed": "B.3.5-printed", **REPAIRS})
DESCENT_OF_F = descent_proof(ITSELF, REPAIRS)
