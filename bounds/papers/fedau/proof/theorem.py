"""Theorem 2 under both options of Assumption 5, and Theorem B.4.1: the one-step lemmas summed over the rounds.

The printed Theorem 2 survives the dropped cross term: the drift's 5 exceeds the true $e-2$ by enough (T4a to T4c).
"""

from dataclasses import dataclass, replace

import sympy as sp
from sympy import Integer, Rational, Symbol

from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import InExpectation, Specialize
from fedbounds.bounds.audit.participation_rules import MeanUpdate, SecondMoment, Vanishing
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Combine, Telescope
from fedbounds.bounds.audit.vectors import square
from fedbounds.bounds.papers.fedau import assumptions as given
from fedbounds.bounds.papers.fedau import lemmas, results
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof.descent import (
    CHOSEN,
    DECREASE,
    DESCENT_OF_F,
    DESCENT_PROOF,
    INDEPENDENT,
    SHARP,
    move,
    tau,
)
from fedbounds.bounds.papers.fedau.proof.drift import GENERAL, ITSELF, G, f0, round_setting, s
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import SumOverClients
from fedbounds.bounds.theory.measures import AVERAGE_GRADIENT
from fedbounds.bounds.theory.result import Result, Term

L, F, I, N, T, Q, W, gamma, eta, sigma, delta = n.L, n.F, n.I, n.N, n.T, n.Q, n.W, n.gamma, n.eta, n.sigma, n.delta
HALF, EIGHTH = Rational(1, 2), Rational(1, 8)
ROUND = "for every round t"
AVERAGE = measure_symbol(AVERAGE_GRADIENT)
OVER_ALL = "participation and noise of the rounds before t"
GRADIENT_MEAN = Symbol("[E |grad f(x_t)|^2]", nonnegative=True)
DECREASE_MEAN = Symbol("[E f(x_t) - E f(x_{t+1})]", real=True)
ERROR_MEAN, MOMENT_MEAN = Symbol("[E W_t]", nonnegative=True), Symbol("[E Q_t]", positive=True)
IN_MEAN = ((G, GRADIENT_MEAN), (DECREASE, DECREASE_MEAN), (n.Wt, ERROR_MEAN), (n.Qt, MOMENT_MEAN))
PER_ROUND = (n.Wt, n.Qt, n.V, n.Z, n.gradsq)
KNOWN = f"{GENERAL.proof}/"  # where the growth factors are bounded
SHARE = gamma * eta * L * I * Q / N  # at most 1/27


def total(terms: tuple[Term, ...]) -> sp.Expr:
    """The sum of a form's terms."""
    return sp.Add(*(t.expression for t in terms))


def in_round(bound: sp.Expr) -> sp.Expr:
    """A bound on the average over the rounds, with the mean of Q_t, as the bound on one round that it averages."""
    return bound.xreplace({F: T * DECREASE, W: n.Wt, n.Qmean: n.Qt})


@dataclass(frozen=True)
class Option:
    """One of the two options of Assumption 5."""

    result: Result  # the theorem
    gradient: sp.Expr  # G, or 0
    bound: Relation  # what the option bounds, and by what
    assumption: Assumption  # the option
    slope: sp.Expr  # what the gradient keeps in the sharp chain
    kept: sp.Expr  # what it keeps in the paper's
    by_weights: sp.Expr  # what multiplies the option where the weight error multiplies the gradient
    says: str = "Assumption 5"  # in words

    def explicit(self, second: sp.Expr) -> sp.Expr:
        """Where the paper's chain ends: (B.5.3), and twice that without G, (B.5.5)."""
        constants = (c * EIGHTH / self.kept for c in results.EXPLICIT)
        return total(results.theorem_terms(*constants, gradient=self.gradient, second_moment=second))

    def sharp(self, second: sp.Expr) -> sp.Expr:
        """Where the sharp chain ends."""
        return total(results.tight_terms(self.slope, self.gradient, second))


SECOND = Option(
    results.THEOREM_2,
    n.G,
    Relation(G, n.G**2),
    given.BOUNDED_GRADIENT,
    results.SLOPE,
    EIGHTH,
    3 * HALF * lemmas.GRADIENT_GROWTH * n.Wt,
)
FIRST = Option(
    results.THEOREM_2_OPTION_1,
    Integer(0),
    Relation(n.Wt, Rational(1, 81)),
    given.NEARLY_OPTIMAL,
    results.SLOPE_1,
    Rational(1, 16),
    3 * HALF * lemmas.GRADIENT_GROWTH * G,
)


def enter_shared(c: Chain) -> None:
    """What both options use, about the caps and about Q."""
    c["T1", "the weights' second moment in round t is at most Q, surely", ROUND] = le(n.Qt, Q), given.SURE_Q
    c["T1b", "and so is its mean over all rounds"] = le(n.Qmean, Q), given.SURE_Q
    c["T2", "S17, S18: the gradient keeps 1/8"] = by(
        le(EIGHTH, results.SLOPE),
        {f"{KNOWN}K1": 3 * tau**2, f"{KNOWN}K-B": SHARE / 2, f"{KNOWN}K3": 0},
        results.CAPS[2],
    )
    c["T4a", "S20: A_tau exceeds 17/16 by a square's remainder at most"] = by(
        le(lemmas.NOISE_GROWTH, Rational(17, 16) + 19 * lemmas.E_2 * tau**2), Combine()
    )
    c["T4b", "S20: B_tau exceeds 27/8 by a square's remainder at most"] = by(
        le(lemmas.DIVERGENCE_GROWTH, Rational(27, 8) + 42 * lemmas.E_2 * tau**2), Combine()
    )
    c["T4c", "1/27 of these is less than what 5 is above e - 2"] = le(SHARE, Rational(1, 27)), results.CAPS[2]


def enter_option(c: Chain, o: Option) -> None:
    """From Lemma B.5.1 to the theorem."""
    shared = "" if o is SECOND else f"{SECOND.result.key}/"
    c["T0", f"{o.says}, at x_t", ROUND] = o.bound, o.assumption
    if o is FIRST:
        c["T2", "S19: the gradient keeps 1/16, the weights taking 1/54 of its growth"] = by(
            le(o.kept, o.slope), {f"{shared}T2": 1, f"{KNOWN}K-D": Rational(1, 54)}
        )
    c["T3", "one round, divided by gamma eta I; Q_t at most Q where it multiplies the gradient", ROUND] = by(
        le(o.slope * G, in_round(total(results.tight_terms(Integer(1), o.gradient, n.Qmean)))),
        {
            f"{ITSELF.proof}/S16": 1 / move,
            f"{shared}T1": SHARE / (2 * Q) * lemmas.DIVERGENCE_GROWTH * G,
            "T0": o.by_weights,
        },
    )
    c["T3b", "divided by what the gradient keeps", ROUND] = by(
        le(G, in_round(o.sharp(n.Qmean))), {"T3": 1 / o.slope, "T2": 0}
    )
    noise, spread = sigma**2, I * delta**2
    over = gamma * eta * L / (2 * N) / o.kept
    excess = lemmas.E_2 * tau**2 * (19 * noise + 42 * spread)
    c["T4", "one round with the paper's constants: what 5 is above e - 2 pays for the growth factors", ROUND] = by(
        le(G, in_round(o.explicit(n.Qmean))),
        {
            "T3": 1 / o.kept,
            "T2": G / o.kept,
            f"{shared}T4a": over * n.Qt * noise,
            f"{shared}T4b": over * n.Qt * spread,
            f"{KNOWN}K-D": 3 * HALF / o.kept * n.Wt * (delta**2 + o.gradient**2),
            f"{shared}T1": over * excess,
            f"{shared}T4c": excess / (2 * I * o.kept),
            f"{KNOWN}K1": 0,
        },
    )
    means = ((ERROR_MEAN, W), (MOMENT_MEAN, n.Qmean))
    telescoped = Telescope(DECREASE_MEAN, F, T, AVERAGE, GRADIENT_MEAN, means, given.F_BOUNDED_BELOW.name, PER_ROUND)
    for name, source, bound, slope in (("", "T4", o.explicit, ()), ("-sharp", "T3b", o.sharp, ("T2",))):
        averaged = bound(n.Qmean)
        c[f"T5{name}", "in expectation over the rounds before", ROUND] = InExpectation(IN_MEAN, OVER_ALL), source
        c[f"T6{name}", "the average over the rounds, telescoped"] = (
            telescoped,
            f"T5{name}",
            *slope,
            given.F_BOUNDED_BELOW,
        )
        update = {f"T6{name}": 1, f"{shared}T1b": sp.diff(averaged, n.Qmean)}
        c[f"T7{name}", "with Q for the mean of Q_t"] = le(AVERAGE, bound(Q)), update | dict.fromkeys(slope, 0)


def theorem_proof(o: Option, *cites: Proof) -> Proof:
    """Theorem 2 under one option."""
    c = Chain(OF_F, cites=(DESCENT_PROOF, DESCENT_OF_F, *cites))
    if o is SECOND:
        enter_shared(c)
    enter_option(c, o)
    most = max(results.EXPLICIT) * EIGHTH / o.kept
    c["T8", f"the printed order with {most} for each hidden constant"] = by(
        le(AVERAGE, most * o.result.form("printed").bound), "T7"
    )
    ends = {"printed": "T8", "explicit": "T7", "sharp": "T7-sharp", "sharp:mean-Q": "T6-sharp"}
    return c.proof(o.result.key, o.result, ends)


OF_F = round_setting("f")
THEOREM_PROOF = theorem_proof(SECOND)
OPTION_1_PROOF = theorem_proof(FIRST, THEOREM_PROOF)

# --- Theorem B.4.1 --------------------------------------------------------------------------------------------------

omega, p, P, H, etatilde, Qtilde, deltatilde = n.omega, n.p, n.P, n.H, n.etatilde, n.Qtilde, n.deltatilde
AVERAGE_OF_H = measure_symbol(results.AVERAGE_GRADIENT_OF_H)
OMEGA_T = Symbol("[omega_t^n]", nonnegative=True)
H_GRADIENT = Symbol("[E |grad h(x_t)|^2]", nonnegative=True)
H_DECREASE = Symbol("[E h(x_t) - E h(x_{t+1})]", real=True)
H_MEAN = ((G, H_GRADIENT), (DECREASE, H_DECREASE))
NORMALIZED = ((eta, etatilde), (n.V, Integer(0)), (n.Z, N * Qtilde))
SUM_TO_ONE = Relation(SumOverClients(omega * p) / P, Integer(1), "==")
DISCHARGED = ((given.PAST_WEIGHTS.name, Relation(OMEGA_T, omega, "==")), (given.OBJECTIVE_WEIGHTS.name, SUM_TO_ONE))
POSITIVE_SLOPE = results.THEOREM_B_4_1.form("sharp").conditions[2]
ROWS = (  # suffix, where the one-step lemma ends, its cap, what the gradient keeps, the condition, the form
    ("", "B.3.5-repaired", lemmas.LOCAL_CAP, EIGHTH, results.eighth(Rational(17, 5)), "repaired"),
    ("-small", "B.3.5-small", lemmas.SMALLER_CAP, EIGHTH, results.eighth(Rational(27, 8)), "repaired:smaller-cap"),
    ("-sharp", "S16", lemmas.DRIFT_CAP, results.H_SLOPE, POSITIVE_SLOPE, "sharp"),
)


def constant_chain() -> Chain:
    """Lemma B.3.3 for h, whose weights are those that constant omega_n give it on average."""
    c = Chain(round_setting("f~"), cites=(DESCENT_PROOF,))
    c["H1", "the weights do not change, so they depend on nothing", "for every client n and round t"] = by(
        eq(OMEGA_T, omega), given.CONSTANT_WEIGHTS
    )
    c["H2a", "the definition of P, eq. (B.4.1)"] = eq(SumOverClients(omega * p), P), given.CONSTANT_WEIGHTS
    c["H2", "varphi_n = omega_n p_n/P sum to 1"] = SUM_TO_ONE, {"H2a": 1 / P}
    c["H3", "with weights omega_n N/P nothing is missing: p_n (omega_n N/P)/N = varphi_n"] = by(
        eq(p * (omega * N / P) / N - omega * p / P, 0), Combine()
    )
    c["H4", "eta P/N and omega_n N/P give the same iterates as eta and omega_n"] = by(
        eq(eta * P / N * (omega * N / P), eta * omega), Combine()
    )
    rule = Telescope(H_DECREASE, H, T, AVERAGE_OF_H, H_GRADIENT, (), given.H_BOUNDED_BELOW.name, PER_ROUND)
    for name, source, cap, kept, condition, form in ROWS:
        bound = results.THEOREM_B_4_1.form(form).bound
        one_round = bound.xreplace({H: T * DECREASE})
        c[f"H5{name}", "Lemma B.3.3 for h with the normalized weights", ROUND] = by(
            Specialize(NORMALIZED, DISCHARGED), f"{KNOWN}{source} H1 H2 H3 H4", cap, results.H_GLOBAL_CAP
        )
        c[f"B.4.3{name}", "one round, divided by what the gradient keeps, eq. (B.4.3)", ROUND] = by(
            le(G, one_round), {f"H5{name}": 1 / (gamma * etatilde * I * kept)}, condition
        )
        c[f"H6{name}", "in expectation over the rounds before", ROUND] = InExpectation(H_MEAN, OVER_ALL), f"B.4.3{name}"
        c[f"B.4.4{name}", "the average over the rounds, telescoped, eq. (B.4.4)"] = by(
            rule, f"H6{name}", given.H_BOUNDED_BELOW, condition
        )
    return c


CONSTANT_PROOF = constant_chain().proof(
    results.THEOREM_B_4_1.key, results.THEOREM_B_4_1, {form: f"B.4.4{name}" for name, *_, form in ROWS}
)

# --- Theorem 1 ------------------------------------------------------------------------------------------------------

REPAIRED_1 = results.THEOREM_1.form("repaired")
AT_STEPS = ((gamma, REPAIRED_1.prescribes["gamma"]), (etatilde, REPAIRED_1.prescribes["eta"] * P / N))
PRESCRIBED = tuple((n[name].symbol, REPAIRED_1.prescribes[name]) for name in ("gamma", "eta"))

c = Chain(round_setting("f~"), cites=(CONSTANT_PROOF,))
c["B1", "Theorem B.4.1 at gamma = c/sqrt(T) and gamma eta = c'/sqrt(T)"] = by(
    Specialize(AT_STEPS, prescribes=PRESCRIBED), f"{CONSTANT_PROOF.id}/B.4.4-small", *REPAIRED_1.conditions
)
c["B2", "which falls below every epsilon^2", "in the limit of many rounds"] = Vanishing(T), "B1"
LIMIT_PROOF = c.proof(results.THEOREM_1.key, results.THEOREM_1, {"repaired": "B1", "printed": "B2"})

# --- Theorem B.4.1 with half of the slope: constant weights leave no gap between z and s ----------------------------

# With the normalized weights p_n alpha~_n/N = varphi_n the update's mean is s = sum_n varphi_n v_n itself.
QUARTER = Rational(1, 4)
PRINTED, NO_GAP = results.THEOREM_B_4_1.form("printed"), results.THEOREM_B_4_1.form("sharp:no-gap")
NO_GAP_ROWS = (
    ("-printed", lemmas.LOCAL_CAP, PRINTED, "H5 with a quarter of the gradient, and the growth factors at the cap"),
    ("-no-gap", lemmas.DRIFT_CAP, NO_GAP, "divided by what the gradient keeps"),
)


def without_gap() -> ProofSetting:
    """A round in which p_n omega_n/N = varphi_n, so that the update's mean is s."""
    setting = round_setting("f~")
    update = replace(
        setting.atoms["d"],
        mean="s",
        meaning="(1/N) sum_n 1_n omega_n (v_n + a_n) with p_n omega_n/N = varphi_n, the update over -gamma eta I",
    )
    return ProofSetting(setting.bracket, {**setting.atoms, "d": update}, setting.given)


def one_round() -> sp.Expr:
    """What h increases by in one round, at most."""
    second = L * move / 2 * GENERAL.moment / N * SHARP.update(GENERAL)
    return move * (SHARP.deviation(GENERAL) / 2 + second - G / 2)


def no_gap_chain() -> Chain:
    """One round without a gap, then as in Theorem B.4.1."""
    c, home = Chain(without_gap(), ROUND, (DESCENT_PROOF, CONSTANT_PROOF)), CONSTANT_PROOF.id
    c["N1", "the update's mean is s; participation and noise averaged out of the first-order term"] = by(
        MeanUpdate("d", f0), *CHOSEN
    )
    c["N2", "independent participation and noise: the variance of a sum"] = by(
        SecondMoment("d", "v", "a", GENERAL.moment / N), f"{KNOWN}S10'", *CHOSEN, INDEPENDENT
    )
    c["N3", "one round: the gradient keeps 1/2"] = by(
        le(-DECREASE, one_round()),
        {f"{KNOWN}D1": 1, "N1": -move, f"{KNOWN}S7": move, "N2": L * move**2 / 2}
        | {f"{KNOWN}S13": move * square(s) / 2, f"{KNOWN}S9d": move / 2},
    )
    rule = Telescope(H_DECREASE, H, T, AVERAGE_OF_H, H_GRADIENT, (), given.H_BOUNDED_BELOW.name, PER_ROUND)
    for name, cap, form, says in NO_GAP_ROWS:
        per_round = form.bound.xreplace({H: T * DECREASE})
        c[f"N4{name}", "for h with the normalized weights"] = by(
            Specialize(NORMALIZED, DISCHARGED), f"N3 {home}/H1 {home}/H2 {home}/H3 {home}/H4", cap, results.H_GLOBAL_CAP
        )
        if form is PRINTED:
            update = 2 * gamma * etatilde * L * n.Qtilde / N
            drift = 2 * gamma**2 * L**2 * I * (sigma**2 + 6 * I * (n.deltatilde**2 + G))
            growth = {"K-A": update * sigma**2, "K-B": update * I * (n.deltatilde**2 + G), "K1": drift}
            factors = {f"N4{name}": 1 / (gamma * etatilde * I * QUARTER)}
            factors |= {f"{KNOWN}{step}": m for step, m in growth.items()}
        else:
            factors = {f"N4{name}": 1 / (gamma * etatilde * I * results.H_SLOPE_NO_GAP)}
        c[f"N5{name}", says] = le(G, per_round), factors, *form.conditions[2:]
        c[f"N6{name}", "in expectation over the rounds before"] = InExpectation(H_MEAN, OVER_ALL), f"N5{name}"
        c[f"B.4.4{name}", "the average over the rounds, telescoped", ""] = by(
            rule, f"N6{name}", given.H_BOUNDED_BELOW, *form.conditions[2:]
        )
    return c


NO_GAP_PROOF = no_gap_chain().proof(
    f"{results.THEOREM_B_4_1.key}-no-gap",
    results.THEOREM_B_4_1,
    {form.name: f"B.4.4{name}" for name, _, form, _ in NO_GAP_ROWS},
)
