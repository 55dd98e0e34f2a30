r"""Lemma 4 and Theorem 1, eqs. (44) to (54) and (20) to (25), for steps $\frac2{\mu(\gamma+t)}$; induction on t.

Lemma 4 is one step towards the minimizer, for the mean over the clients. (19) needs no mean of the masked models:
$-\frac38\eta_t\mu\|\bar w_t-w^*\|^2$ pays for the bias (S17m, S20m).
"""

import sympy as sp
from sympy import Rational, Symbol, sqrt

from fedbounds.bounds.audit.axioms import ByMeaning, Jensen, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import Specialize
from fedbounds.bounds.audit.induction import ByRecursion
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.bounds.audit.rules import Combine, Gram, Unfolded
from fedbounds.bounds.audit.vectors import inner, product_symbol, square
from fedbounds.bounds.papers.fedmrn.assumptions import (
    FALLING_STEPS,
    QUADRATIC_GROWTH,
    ROUND_MASKS,
    STRONGLY_CONVEX,
    SURE_GRADIENT_BOUND,
)
from fedbounds.bounds.papers.fedmrn.lemmas import HALF_STEP, LEMMA_4, QUARTER_STEP
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.iteration import (
    DRIFT_PROOF,
    MEAN_NEEDS,
    NOISE_PROOF,
    cohort,
    enter_drift,
    enter_synchronization,
    enter_walk,
    enter_within,
    masked,
    mean_of,
)
from fedbounds.bounds.papers.fedmrn.proof.symbols import EACH, EARLY, MARTINGALE, RELATIVE, SAMPLING, SYNC, Masking
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
eta, etat, Gamma, Dt = n.eta, n.etat, n.Gamma, n.Dt
b, w, x, ws, g, gb, g0, nb = symbols.b, symbols.w, symbols.x, symbols.ws, symbols.g, symbols.gb, symbols.g0, symbols.nb
EXCESS = Symbol("[mean of F_k(x_k) - F_k(w*)]", real=True)
GAP = Symbol("[F(w_bar_t) - F*]", nonnegative=True)
AFTER = square(b - etat * (gb + nb) - ws)
vb, va, wn = symbols.vb, symbols.va, symbols.wn
V = product_symbol("nb", "nb")


def enter_symbols(c: Chain) -> None:
    """What the lemma's symbols stand for."""
    c["D1", "Delta_t is the squared distance of w_bar_t from w*"] = by(
        ByMeaning("Symbol", square(b - ws), Deltat, op="==")
    )
    c["D2", "D_t is the mean squared distance of the masked models from w_bar_t"] = by(
        ByMeaning("Symbol", square(b - x), Dt, op="==")
    )


def distance_proof(masking: Masking) -> Proof:
    """Lemma 4 under these masks."""
    c = Chain(symbols.SETTING, EACH)
    enter_symbols(c)
    c["S20a", "noise is drawn after the gradients, with mean zero"] = by(
        Uncorrelated(nb, b - ws - etat * gb, needs=(MARTINGALE.name,)), MARTINGALE
    )
    c["S13", "a function less its minimum is at least |grad|^2/(2L), eq. (46), at x_k"] = by(
        le(square(g), 2 * L * (EXCESS + Gamma)), QUADRATIC_GROWTH
    )
    c["S14", "Jensen over the clients, eq. (47)"] = by(
        Jensen(g, axiom="all clients have weight 1/N", needs=MEAN_NEEDS), SAMPLING
    )
    c["S15a", "the mean of the gradients is g_bar"] = mean_of(g, b - ws), SAMPLING
    c["S15", "Young with eta_t, eq. (49)"] = by(
        le(-2 * inner(b - x, g), square(b - x) / etat + etat * square(g)), Gram()
    )
    c["S16", "strong convexity between x_k and w*, eq. (50)"] = by(
        le(-inner(x - ws, g), -EXCESS - mu / 2 * square(x - ws)), STRONGLY_CONVEX
    )
    c["S17a", "masks are unbiased given the clients' models"] = by(
        masked("x", "w", b - ws, masking), *masking.local, *enter_within(c, masking)
    )
    c["S17b", "the mean of the clients' models is w_bar_t"] = mean_of(w - b, b - ws), SAMPLING
    c["S17", "the mean of the masked models is w_bar_t, after (51); false for a client of its own"] = by(
        eq(square(x - ws), square(b - x) + square(b - ws)), "S17a S17b"
    )
    c["S19a", "convexity between w_bar_t and x_k"] = le(GAP + inner(g0, x - b), EXCESS), STRONGLY_CONVEX
    c["S19b", "Young with eta_t"] = le(-inner(g0, x - b), etat / 2 * square(g0) + square(x - b) / (2 * etat)), Gram()
    c["S19c", "eq. (46) at w_bar_t"] = le(square(g0), 2 * L * (GAP + Gamma)), QUADRATIC_GROWTH
    c["S19", "eq. (53)"] = by(
        le(-EXCESS, (etat * L - 1) * GAP + etat * L * Gamma + square(x - b) / (2 * etat)),
        {"S19a": 1, "S19b": 1, "S19c": etat / 2},
    )
    turned = 2 * etat * (1 - 2 * L * etat)
    c["S20", "the value gap, eq. (54), with F* where it prints F_k*"] = by(
        le(
            2 * etat**2 * square(g) - 2 * etat * EXCESS,
            (4 * L * etat**2 + turned * etat * L) * Gamma + turned / (2 * etat) * square(b - x),
        ),
        {"S13": 2 * etat**2, "S19": turned},
        HALF_STEP,
    )
    sharp, printed = (LEMMA_4.form(name).bound.xreplace({n.V: V}) for name in ("sharp", "printed"))
    c["19'", "Lemma 4 before it is rounded up"] = by(
        le(AFTER, sharp),
        {"S20a": -2 * etat, "S14": etat**2, "S15a": 2 * etat, "S15": etat, "S16": 2 * etat, "S17": -mu * etat, "S20": 1}
        | {"D1": 1 - mu * etat, "D2": 2 - 2 * L * etat - mu * etat},
    )
    c["S17m", "whatever the masked models are: Young with 8/5 and 8/3"] = by(
        le(square(b - ws), Rational(8, 5) * square(x - ws) + Rational(8, 3) * square(b - x)), Gram()
    )
    c["S18m", "strong convexity between w_bar_t and w*"] = le(mu / 2 * square(b - ws), GAP), STRONGLY_CONVEX
    c["S20f", "at steps of at most 1/(4L), the part of the gap that (54) drops", ""] = by(
        le(Rational(3, 8) * etat, turned * (1 - etat * L) / 2), Combine(), QUARTER_STEP
    )
    c["S20m", "the value gap, eq. (54), with 3/8 of what it drops"] = by(
        le(
            2 * etat**2 * square(g) - 2 * etat * EXCESS,
            (4 * L * etat**2 + turned * etat * L) * Gamma
            - Rational(3, 8) * etat * mu * square(b - ws)
            + turned / (2 * etat) * square(b - x),
        ),
        {"S13": 2 * etat**2, "S19": turned, "S18m": turned * (1 - etat * L), "S20f": mu * square(b - ws)},
        QUARTER_STEP,
    )
    c["19", "Lemma 4, eq. (19), for masks of any kind"] = by(
        le(AFTER, printed),
        {"S20a": -2 * etat, "S14": etat**2, "S15a": 2 * etat, "S15": etat, "S16": 2 * etat, "S20m": 1}
        | {
            "S17m": Rational(5, 8) * etat * mu,
            "D1": 1 - mu * etat,
            "D2": 2 - 2 * L * etat + Rational(5, 3) * mu * etat,
        },
        QUARTER_STEP,
        CURVATURE,
    )
    ends = {"sharp": "19'", "printed": "19"} if masking.amplitude is None else {}
    return c.proof(f"{LEMMA_4.key}{masking.suffix}", LEMMA_4, ends, AFTER, symbols.TO_SYMBOLS)


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
