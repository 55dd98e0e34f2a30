r"""Theorem 1, eqs. (20) to (25): Lemma 4 in every iteration, then induction on t; steps $\frac2{\mu(\gamma+t)}$."""

from __future__ import annotations

import sympy as sp
from sympy import Symbol, sqrt

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import Specialize
from fedbounds.bounds.audit.induction import ByRecursion
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.bounds.audit.rules import Unfolded
from fedbounds.bounds.audit.vectors import square
from fedbounds.bounds.papers.fedmrn.assumptions import FALLING_STEPS, QUADRATIC_GROWTH, ROUND_MASKS, SURE_GRADIENT_BOUND
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.distance import AFTER, distance_proof
from fedbounds.bounds.papers.fedmrn.proof.iteration import (
    DRIFT_PROOF,
    NOISE_PROOF,
    cohort,
    enter_drift,
    enter_synchronization,
    enter_walk,
    enter_within,
    masked,
)
from fedbounds.bounds.papers.fedmrn.proof.symbols import EACH, EARLY, RELATIVE, SAMPLING, SYNC, Masking
from fedbounds.bounds.papers.fedmrn.results import (
    BOUNDED,
    CURVATURE,
    FIRST_STEP,
    RELATIVE_PARTS,
    SAMPLED,
    THEOREM_1,
    mask_parts,
    shift,
)
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.result import Term

L, mu, S, T, G, d, sigma, N, Delta1, Deltat = n.L, n.mu, n.S, n.T, n.G, n.d, n.sigma, n.N, n.Delta1, n.Deltat
eta, etat = n.eta, n.etat
b, ws, vb, va, wn = symbols.b, symbols.ws, symbols.vb, symbols.va, symbols.wn
SURE = (ROUND_MASKS, RELATIVE.assumptions[1], SURE_GRADIENT_BOUND)
# masks that all point one way move the model by at most 2 sqrt(d) G (T - 1)/(mu (gamma + T - 1)) <= G/mu
STILL_BOUNDED = le(2 * sqrt(d) * (T - 1), shift - 1 + T - 1)
MASKS = Masking("-masks", SURE, SURE_GRADIENT_BOUND, EARLY * S * G, (BOUNDED,), STILL_BOUNDED)
X, X0 = Symbol("x", positive=True), Symbol("x_0", positive=True)  # gamma + t and gamma + t_0
LAST = Symbol("[E F(w_bar_t) - F*]", nonnegative=True)
B, LEVEL = Symbol("B", nonnegative=True), Symbol("v", nonnegative=True)


def theorem_proof(masking: Masking, parts: tuple[Term, ...], forms: dict[str, str]) -> tuple[Proof, Proof]:
    """Lemma 4 and the theorem under these masks, B being the sum of the parts."""
    lemma = distance_proof(masking)
    meanings: dict[Symbol, sp.Expr] = {B: sp.Add(*(part.expression for part in parts))}
    meanings[LEVEL] = 4 * B / mu**2 + largest(0, shift * Delta1 - 4 * B / mu**2)
    c = Chain(symbols.SETTING.with_symbols(meanings), EACH, (lemma, NOISE_PROOF, DRIFT_PROOF))
    if masking is RELATIVE:
        enter_walk(c, masking, EARLY)
    enter_drift(c, masking, EARLY)
    enter_synchronization(c, masking, EARLY)
    drift, error = (next(s for s in c.steps if s.id == name).conclusion.right for name in ("S9", "S12"))
    c["S22a", "the uploaded masks are unbiased", SYNC] = by(
        masked("wn", "va", vb - ws, masking), *masking.assumptions, *enter_within(c, masking)
    )
    c["S22b", "and so is the cohort", SYNC] = cohort(vb - ws), SAMPLING
    c["S22c", "v_bar_{t+1} = w_bar_t - eta_t g_t"] = by(ByMeaning("Step", square(vb - ws), AFTER, op="=="))
    c["S22", "eq. (20)"] = by(eq(square(wn - ws), square(wn - vb) + square(vb - ws)), {"S22a": 2, "S22b": 2})
    growth = (2 * etat + EARLY) / EARLY**2
    c["S23", "one iteration, eq. (21)"] = by(
        le(square(wn - ws), (1 - mu * etat) * Deltat + etat**2 * B),
        Unfolded,
        {"S22": 1, "S22c": 1, f"{lemma.id}/19": 1, f"{lemma.id}/D2": -2, "S9": 2, f"{NOISE_PROOF.id}/S1": etat**2}
        | {"S12": 1, f"{DRIFT_PROOF.id}/S2": (2 * drift + error) * growth},
        SAMPLED,
    )
    c["P1", "t is at most t_0 + S - 1"] = ByMeaning("Round", X, X0 + S - 1)
    c["P2", "t_0 is at least 1, so gamma + t_0 at least max(8 kappa, S)"] = ByMeaning("Start", shift, X0)
    c["P3", "and so is gamma + t"] = ByMeaning("Start", shift, X)
    steps = ((etat, 2 / (mu * X)), (EARLY, 2 / (mu * X0)))
    c["P4", "no step of a round is more than twice another, as S is at most gamma + 1"] = by(
        le(2 / (mu * X0), 4 / (mu * X)), {"P1": 2 / (mu * X * X0), "P2": 2 / (mu * X * X0)}
    )
    first = (eta, FIRST_STEP["eta"])
    c["S23'", "at eta_t = 2/(mu (gamma + t))"] = by(
        Specialize((*steps, first), ((FALLING_STEPS.name, Relation(2 / (mu * X0), 2 * etat)),), prescribes=(first,)),
        "S23 P4 P3",
        SAMPLED,
        CURVATURE,
        *masking.conditions,
    )
    c["V1", "the larger of both parts", ""] = le(4 * B / mu**2, LEVEL), Unfolded
    c["V2", "the larger of both parts", ""] = le(shift * Delta1, LEVEL), Unfolded
    c["S24", "eq. (22): the distance falls as 1/(gamma + t)", "for every t >= 1"] = by(
        le(Deltat, LEVEL / X), ByRecursion(Deltat, square(wn - ws), X, (shift, Delta1)), "S23' P3 V1 V2", CURVATURE
    )
    c["S26a", "smoothness at w*, eq. (23)"] = le(LAST, L / 2 * Deltat), QUADRATIC_GROWTH
    c["S26b", "the gap at t"] = le(LAST, L * LEVEL / (2 * X)), "S26a S24"
    c["S26c", "at t = T"] = Specialize(((X, shift - 1 + T),)), "S26b", SAMPLED, CURVATURE, *masking.conditions
    for form, name in forms.items():
        c[name, "eqs. (11) and (25)" if ":" not in form else "with the constants written out", ""] = by(
            le(LAST, THEOREM_1.form(form).bound), Unfolded, {"S26c": 1}, SAMPLED, *masking.conditions
        )
    proof = c.proof(f"{THEOREM_1.key}{masking.suffix}", THEOREM_1, forms, LAST)
    return lemma, proof


PROOFS = (
    *theorem_proof(RELATIVE, RELATIVE_PARTS, {"sharp": "11'", "repaired": "11"}),
    *theorem_proof(MASKS, mask_parts(), {"sharp:masks": "11'", "repaired:R1": "11"}),
)
