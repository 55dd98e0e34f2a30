"""Lemma 5 and Theorem 2, eqs. (57) to (65) and (27) to (30), for a constant step size.

Lemma 5 is one step down the objective. Only one iteration in S masks and samples (S12m).
"""

from dataclasses import replace

import sympy as sp
from sympy import Rational, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning, Descent, Jensen, Smooth, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import Specialize
from fedbounds.bounds.audit.proof_step_checker import Proof, measure_symbol
from fedbounds.bounds.audit.rules import Combine, Telescope
from fedbounds.bounds.audit.vectors import inner, square
from fedbounds.bounds.papers.fedmrn.assumptions import (
    ANY_MASKS,
    BELOW,
    FIXED_MASKS,
    LIPSCHITZ,
    PROGRESSIVE,
    SURE_GRADIENT_BOUND,
)
from fedbounds.bounds.papers.fedmrn.lemmas import LEMMA_5
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.iteration import (
    MEAN_NEEDS,
    NOISE_PROOF,
    cohort,
    enter_drift,
    enter_synchronization,
    enter_walk,
    enter_within,
    masked,
)
from fedbounds.bounds.papers.fedmrn.proof.operator_rules import EveryRound
from fedbounds.bounds.papers.fedmrn.proof.symbols import (
    AMPLITUDE,
    CHANCE,
    EACH,
    MARTINGALE,
    RELATIVE,
    SAMPLING,
    SQUARED_GRADIENT,
    SYNC,
    Masking,
)
from fedbounds.bounds.papers.fedmrn.results import AVERAGE, FIRST_CONDITION, SAMPLED, STEP, THEOREM_2
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition

L, S, T, G, F, N, a, eta, etat, sigma, M, Dt = n.L, n.S, n.T, n.G, n.F, n.N, n.a, n.eta, n.etat, n.sigma, n.M, n.Dt
b, x, g, gb, g0, f0, nb = symbols.b, symbols.x, symbols.g, symbols.gb, symbols.g0, symbols.f0, symbols.nb
vb, va, wn = symbols.vb, symbols.va, symbols.wn
HALF = Rational(1, 2)
DECREASE = Symbol("[E F(w_bar_t) - E F(w_bar_{t+1})]", real=True)


def descent_proof(masking: Masking) -> Proof:
    """Lemma 5 under these masks."""
    step, error = gb + nb, wn - vb
    c = Chain(symbols.SETTING, EACH)
    c["D2", "D_t is the mean squared distance of the masked models from w_bar_t"] = by(
        ByMeaning("Symbol", square(b - x), Dt, op="==")
    )
    c["D3", "M_{t+1} is the squared error of masks and cohort"] = by(ByMeaning("Symbol", square(error), M, op="=="))
    c["S28", "descent lemma from w_bar_t to w_bar_{t+1} = w_bar_t - eta_t g_t + error, eqs. (57) and (59)"] = by(
        Descent("f0", error - etat * step, DECREASE, L), LIPSCHITZ
    )
    for name, known in (("a", f0), ("b", step)):
        c[f"S27{name}", "the uploaded masks are unbiased, eq. (58)"] = by(
            masked("wn", "va", known, masking), *masking.assumptions, *enter_within(c, masking)
        )
        c[f"S27{name}'", "and so is the cohort"] = cohort(known), SAMPLING
    for name, known in (("a", f0), ("b", gb)):
        c[f"S31{name}", "noise is drawn after the gradients, with mean zero"] = by(
            Uncorrelated(nb, known, needs=(MARTINGALE.name,)), MARTINGALE
        )
    c["S29", "the product of two vectors by three squares, eq. (60)"] = by(
        eq(2 * inner(f0, gb), square(f0) + square(gb) - square(f0 - gb)), Combine()
    )
    c["S30a", "Jensen over the clients, eq. (61)"] = by(
        Jensen(g0 - g, axiom="all clients have weight 1/N", needs=MEAN_NEEDS), SAMPLING
    )
    c["S30b", "smoothness between w_bar_t and x_k, eq. (61)"] = Smooth("g", "g0", L), LIPSCHITZ
    printed = -etat / 2 * square(f0) + (L * etat**2 - etat) / 2 * square(gb) + etat / 2 * L**2 * Dt
    c["26", "Lemma 5, eq. (26)"] = by(
        le(-DECREASE, printed + L * etat**2 / 2 * square(nb) + L / 2 * M),
        {"S28": 1, "S29": -etat / 2, "S30a": etat / 2, "S30b": etat / 2, "D2": etat / 2 * L**2, "D3": L / 2}
        | {"S27a": 1, "S27a'": 1, "S27b": -L * etat, "S27b'": -L * etat}
        | {"S31a": -etat, "S31b": L * etat**2},
    )
    ends = {"repaired": "26"} if masking.amplitude is None else {}
    return c.proof(f"{LEMMA_5.key}{masking.suffix}", LEMMA_5, ends, -DECREASE, symbols.TO_SYMBOLS)


# --- Theorem 2 ------------------------------------------------------------------------------------------------------

AVERAGED = measure_symbol(AVERAGE)
MEAN_CHANCE = Symbol("[mean of p_t]", nonnegative=True)
MEAN_ERROR = Symbol("[mean of M]", nonnegative=True)
UNCLIPPED: Condition = THEOREM_2.form("explicit:any-amplitude").conditions[-1]
INDEPENDENT_MASKS: Assumption = RELATIVE.assumptions[1]
ANY = (ANY_MASKS, INDEPENDENT_MASKS, SURE_GRADIENT_BOUND)
# an update of at most S steps is a mean of masks if it is at most a
MASKS = Masking("-masks", ANY, SURE_GRADIENT_BOUND, a, (UNCLIPPED,), le((S * eta * G) ** 2, a**2))
DESCENT_PROOF = descent_proof(RELATIVE)


def enter_average(c: Chain, masking: Masking, lemma: Proof) -> None:
    """From Lemma 5 to the average over the iterations, for any constant step size."""
    if masking.amplitude is None or masking.progressive:
        enter_walk(c, masking, eta)
    enter_drift(c, masking, eta)
    enter_synchronization(c, masking, eta)
    drift, error = (next(s for s in c.steps if s.id == name).conclusion.right for name in ("S9", "S12"))
    c["27", "Lemma 5 with the constant step"] = by(Specialize(((etat, eta),)), f"{lemma.id}/26", *masking.conditions)
    one = 2 / eta * DECREASE + L * eta * sigma**2 / N + L**2 * drift + L / eta * M
    c["28", "times 2/eta; the mean gradient's square is left out, eqs. (27) and (28)"] = by(
        le(SQUARED_GRADIENT, one),
        {"27": 2 / eta, f"{lemma.id}/D2": -(L**2), "S9": L**2, f"{NOISE_PROOF.id}/S1": L * eta},
        FIRST_CONDITION,
        *masking.conditions,
    )
    means = ((M, MEAN_ERROR), (CHANCE, MEAN_CHANCE)) if masking.progressive else ((M, MEAN_ERROR),)
    c["29", "the average over the iterations, telescoped, eq. (29)", ""] = by(
        Telescope(DECREASE, F, T, AVERAGED, SQUARED_GRADIENT, means, BELOW.name), "28", BELOW
    )
    c["S12a", "Lemma 3 for M", SYNC] = le(M, error), {f"{lemma.id}/D3": -1, "S12": 1}, SAMPLED
    c["S12m", "a synchronization ends one iteration in S", ""] = EveryRound(M, MEAN_ERROR, S), "S12a", SAMPLED
    at_means = {DECREASE: F / T, M: error / S}
    used = {"29": sp.S.One, "S12m": L / eta}
    if masking.progressive:
        at_means[CHANCE] = (S + 1) / (2 * S)
        c["S9m", "tau/S in the tau-th local step of a round", ""] = le(MEAN_CHANCE, at_means[CHANCE]), PROGRESSIVE
        used["S9m"] = L**2 * sp.diff(drift, CHANCE)
    c["29'", "with the mean of M", ""] = by(le(AVERAGED, one.xreplace(at_means)), used, *masking.conditions)


def theorem_proof() -> Proof:
    """The forms for operators with a relative error."""
    c = Chain(symbols.SETTING, EACH, (DESCENT_PROOF, NOISE_PROOF))
    enter_average(c, RELATIVE, DESCENT_PROOF)
    c["29-printed", "with the paper's 4, charged in every iteration, eq. (29)", ""] = by(
        le(AVERAGED, THEOREM_2.form("explicit:any-step").bound), {"29'": 1}, SAMPLED
    )
    for name, source, says in (("30", "29-printed", "eqs. (12) and (30)"), ("30'", "29'", "without the 4")):
        c[name, f"at eta = 1/(L sqrt(T)), {says}", ""] = by(
            Specialize(((eta, STEP),), prescribes=((eta, STEP),)), source, SAMPLED
        )
    ends = {"explicit:any-step": "29-printed", "repaired": "30", "sharp": "30'"}
    return c.proof(THEOREM_2.key, THEOREM_2, ends)


def progressive_proof() -> tuple[Proof, Proof]:
    """The form for operators with a relative error, masked progressively."""
    masking = replace(RELATIVE, suffix="-progressive", progressive=True)
    lemma = descent_proof(masking)
    c = Chain(symbols.SETTING, EACH, (lemma, NOISE_PROOF))
    enter_average(c, masking, lemma)
    c["30'", "at eta = 1/(L sqrt(T))", ""] = Specialize(((eta, STEP),), prescribes=((eta, STEP),)), "29'", SAMPLED
    return lemma, c.proof(f"{THEOREM_2.key}-progressive", THEOREM_2, {"sharp:progressive": "30'"})


def masked_proof(masking: Masking) -> tuple[Proof, Proof]:
    """The forms for real signed masks."""
    lemma = descent_proof(masking)
    c = Chain(symbols.SETTING, EACH, (lemma, NOISE_PROOF))
    enter_average(c, masking, lemma)
    c["A", "the amplitude that Theorem 2 prescribes", ""] = by(
        eq(AMPLITUDE, 2 * eta * S * G), FIXED_MASKS, SURE_GRADIENT_BOUND
    )
    c["30-a", "at the amplitude 2 eta S G", ""] = by(
        Specialize(((a, 2 * eta * S * G),), ((ANY_MASKS.name, Relation(AMPLITUDE, a, "==")),)),
        "29' A",
        FIRST_CONDITION,
        SAMPLED,
    )
    c["30", "at eta = 1/(L sqrt(T))", ""] = Specialize(((eta, STEP),), prescribes=((eta, STEP),)), "30-a", SAMPLED
    ends = {"explicit:any-amplitude": "29'", "sharp:masks": "30", "sharp:R2": "R2'", "repaired:R2": "R2"}
    if masking.progressive:
        ends = {"sharp:progressive-masks": "30"}
    else:
        for name, form in (("R2'", "sharp:R2"), ("R2", "repaired:R2")):
            c[name, "with drift and cohort besides", ""] = le(AVERAGED, THEOREM_2.form(form).bound), {"30": 1}, SAMPLED
    return lemma, c.proof(f"{THEOREM_2.key}{masking.suffix}", THEOREM_2, ends)


PROOFS = (
    DESCENT_PROOF,
    theorem_proof(),
    *progressive_proof(),
    *masked_proof(MASKS),
    *masked_proof(replace(MASKS, suffix="-progressive-masks", progressive=True)),
)
