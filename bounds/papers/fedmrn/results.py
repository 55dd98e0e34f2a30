r"""Theorems 1 and 2, eqs. (11) and (12).

The paper's constant $\frac{q^2(N-1)+N-K}{K(N-1)}$ is split into $\frac{q^2}K+\frac{N-K}{K(N-1)}$, which has a value at
$N=K=1$.
"""

import sympy as sp
from sympy import Integer, sqrt

from fedbounds.bounds.papers.fedmrn.assumptions import (
    ANY_MASKS,
    BELOW,
    FIXED_MASKS,
    LIPSCHITZ,
    MASKED,
    PRINTED,
    PROGRESSIVE,
    QUADRATIC_GROWTH,
    ROUND_MASKS,
    STRONGLY_CONVEX,
    USED,
)
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.notation import new_result
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import GRADIENT, OBJECTIVE

FIRST_MOMENT = "first-moment-of-masks"
L, mu, sigma, G, q, Gamma, Delta1, F = n.L, n.mu, n.sigma, n.G, n.q, n.Gamma, n.Delta1, n.F
N, K, S, T, d, a, eta = n.N, n.K, n.S, n.T, n.d, n.a, n.eta

SAMPLING_ERROR = (N - K) / (K * largest(1, N - 1))
PRINTED_SHARE = (q**2 * (N - 1) + N - K) / (K * (N - 1))  # the paper's c
SAMPLED = Condition(K, "<=", N, "K of N clients are drawn without replacement", K)
CURVATURE = Condition(mu, "<=", L, "kappa = L/mu is at least 1", mu)
SEVERAL = Condition(N, ">=", Integer(2), "c divides by N - 1", N)
EVERYONE = "gradient noise, masks and client sampling"

# --- Theorem 1, eq. (11) ----------------------------------------------------------------------------------------

kappa = L / mu
shift = largest(8 * kappa, S)  # gamma + 1 in the paper
LAST_GAP = Measure("last", "iterations", "function gap F - F*", r"\mathbb E[F(\mathbf w_T)]-F^*", OBJECTIVE, EVERYONE)
FIRST_STEP = {"eta": 2 / (mu * shift)}
BOUNDED = Condition(
    T,
    "<=",
    1 + (shift - 1) / (2 * sqrt(d) - 1),
    "masks may all point one way: later no G bounds the gradients of all iterations surely",
    T,
)


def budget(drift: sp.Expr, masking: sp.Expr) -> tuple[Term, ...]:
    r"""The parts of $B$: noise, heterogeneity, drift of the local models, masking, sampling."""
    return (
        Term("gradient noise", sigma**2 / N),
        Term("heterogeneity", 6 * L * Gamma),
        Term("local drift", 8 * drift * G**2),
        Term("masking", 4 * masking * S**2 * G**2),
        Term("client sampling", 4 * SAMPLING_ERROR * S**2 * G**2),
    )


def last_gap_terms(parts: tuple[Term, ...]) -> tuple[Term, ...]:
    r"""$\frac\kappa{\gamma+T}\big(\frac{2B}\mu+\frac{\mu(\gamma+1)}2E\|w_1-w^*\|^2\big)$, $B$ the sum of the parts."""
    front = kappa / (shift - 1 + T)
    noise = tuple(Term(t.name, front * 2 / mu * t.expression) for t in parts)
    return (*noise, Term("initial distance", front * mu * shift / 2 * Delta1))


def sharper_last_gap_terms(parts: tuple[Term, ...]) -> tuple[Term, ...]:
    r"""The same with the larger of $2B/\mu$ and the initial distance for their sum; the last term is the excess."""
    total = sp.Add(*(part.expression for part in parts))
    excess = L / (2 * (shift - 1 + T)) * largest(0, shift * Delta1 - 4 * total / mu**2)
    return (*last_gap_terms(parts)[:-1], Term("initial distance", excess))


def mask_parts() -> tuple[Term, ...]:
    r"""The parts of $B$ under real signed masks of amplitude $\eta_{t_0}SG$."""
    return (
        *RELATIVE_PARTS[:2],
        Term("masking in local steps", 8 * d * S**2 * G**2),
        Term("masking of the upload", 4 * d / K * S**2 * G**2),
    )


RELATIVE_PARTS = budget((1 + q**2) * (S - 1) ** 2, q**2 / K)
PRINTED_PARTS = (*RELATIVE_PARTS[:3], Term("masking and sampling", 4 * PRINTED_SHARE * S**2 * G**2))
CONVEX = (*USED, QUADRATIC_GROWTH, STRONGLY_CONVEX)
THEOREM_1 = new_result(
    "theorem-1",
    "Convergence under strong convexity",
    LAST_GAP,
    "Steps eta_t = 2/(mu (gamma + t)) for t = 1, 2, ..., gamma = max(8 kappa, S) - 1, of which eta is the "
    "first, and the last virtual average of all N clients. FedMRN's masks as the theorem prescribes them (amplitude "
    "fixed at the first step) violate the relative error and do not converge; repaired:R1 covers them with the "
    "amplitude of the current step, for as long as a number G bounds the gradients surely: on strongly convex "
    "functions that is not for ever.",
    (
        Form(
            "printed",
            last_gap_terms(PRINTED_PARTS),
            (SAMPLED, SEVERAL, CURVATURE),
            (QUADRATIC_GROWTH, STRONGLY_CONVEX, *PRINTED),
            refuted_by="first-moments-in-theorem-1",
            note="eq. (11); with E|S(x) - x| <= q |x| the masks' mean square may be as large as one likes",
        ),
        Form(
            "repaired",
            last_gap_terms(RELATIVE_PARTS),
            note="eq. (11) under squared Assumptions 2-4 and an unbiased operator; c split, so that N = 1 is legal",
        ),
        Form(
            "repaired:R1",
            last_gap_terms(budget((S - 1) ** 2 + d * S**2, d / K)),
            (SAMPLED, CURVATURE, BOUNDED),
            (*MASKED, ROUND_MASKS, QUADRATIC_GROWTH, STRONGLY_CONVEX),
            note="FedMRN's signed masks with amplitude eta_{t_0} S G: their error is at most d a^2, no q",
        ),
        Form(
            "sharp",
            sharper_last_gap_terms(RELATIVE_PARTS),
            note="the induction (22) keeps the larger of the two parts; (24) adds them",
        ),
        Form(
            "sharp:masks",
            sharper_last_gap_terms(mask_parts()),
            (SAMPLED, CURVATURE, BOUNDED),
            (*MASKED, ROUND_MASKS, QUADRATIC_GROWTH, STRONGLY_CONVEX),
            note="R1, for as long, without drift and client sampling: a masked update has the length a sqrt(d) "
            "whatever it stands for, so that both only take their share of d a^2",
        ),
    ),
    equations=("11",),
    default="sharp",
    conditions=(SAMPLED, CURVATURE),
    assumptions=CONVEX,
    prescribes=FIRST_STEP,
)

# --- Theorem 2, eq. (12) ----------------------------------------------------------------------------------------

AVERAGE = Measure(
    "average",
    "iterations",
    "squared gradient norm of f",
    r"\frac1T\sum_{t<T}\mathbb E\|\nabla F(\bar{\mathbf w}_t)\|^2",
    GRADIENT**2,
    EVERYONE,
)


def average_terms(step: sp.Expr, drift: sp.Expr, masking: sp.Expr, sampling: sp.Expr) -> tuple[Term, ...]:
    r"""The line before (12), for a constant step size $\eta\le1/L$, with these multiples of $G^2$.

    $$\frac{2(F(w_0)-F^*)}{\eta T}+L\eta\frac{\sigma^2}N+L^2\eta^2\cdot\text{drift}\cdot G^2
      +L\eta(\text{masking}+\text{sampling})G^2$$
    """
    return (
        Term("initial gap", 2 * F / (step * T)),
        Term("gradient noise", L * step * sigma**2 / N),
        Term("local drift", L**2 * step**2 * drift * G**2),
        Term("masking", L * step * masking * G**2),
        Term("client sampling", L * step * sampling * G**2),
    )


def mask_terms(step: sp.Expr, amplitude: sp.Expr) -> tuple[Term, ...]:
    r"""$\frac{2(F(w_0)-F^*)}{\eta T}+L\eta\frac{\sigma^2}N+L^2da^2+\frac{L}{\eta S}\frac{da^2}K$."""
    return (
        *average_terms(step, *[sp.S.Zero] * 3)[:2],
        Term("masking in local steps", L**2 * d * amplitude**2),
        Term("masking of the upload", L * d * amplitude**2 / (step * S * K)),
    )


STEP = 1 / (L * sqrt(T))
AMPLITUDE = 2 * STEP * S * G
HALF_MASKED = (S + 1) / (2 * S)  # the mean of tau/S over the local steps of a round
FIRST_CONDITION = Condition(eta, "<=", 1 / L, "the coefficient of the mean gradient in (27)", eta)
CONSTANT_STEP = {"eta": STEP}
DRIFT = (1 + q**2) * (S - 1) ** 2
NONCONVEX = (*USED, LIPSCHITZ, BELOW)
REPAIRED_2 = average_terms(STEP, 4 * DRIFT, 4 * q**2 / K * S**2, 4 * SAMPLING_ERROR * S**2)
THEOREM_2 = new_result(
    "theorem-2",
    "Convergence without convexity",
    AVERAGE,
    "Constant step eta = 1/(L sqrt(T)); the average runs over all iterations t < T of the virtual average of "
    "all N clients, also between synchronizations.",
    (
        Form(
            "printed",
            (*REPAIRED_2[:3], Term("masking and sampling", 4 * PRINTED_SHARE * S**2 * G**2 / sqrt(T))),
            (SAMPLED, SEVERAL),
            (QUADRATIC_GROWTH, *PRINTED, BELOW),
            prescribes=CONSTANT_STEP,
            refuted_by="first-moments-in-theorem-2",
            note="eq. (12); with E|S(x) - x| <= q |x| the masks' mean square may be as large as one likes",
        ),
        Form(
            "explicit:any-step",
            average_terms(eta, 4 * DRIFT, 4 * q**2 / K * S**2, 4 * SAMPLING_ERROR * S**2),
            (SAMPLED, FIRST_CONDITION),
            note="eq. (29) for any constant step size, before eta = 1/(L sqrt(T))",
        ),
        Form(
            "repaired",
            REPAIRED_2,
            prescribes=CONSTANT_STEP,
            note="eq. (12) under squared Assumptions 2-4, an unbiased operator and Lipschitz gradients; c split",
        ),
        Form(
            "repaired:R2",
            average_terms(STEP, 4 * ((S - 1) ** 2 + d * S**2), 4 * d / K * S**2, 4 * SAMPLING_ERROR * S**2),
            assumptions=(*MASKED, FIXED_MASKS, LIPSCHITZ, BELOW),
            prescribes=CONSTANT_STEP,
            note="FedMRN's signed masks as Theorem 2 prescribes them: their error is at most d a^2, no q",
        ),
        Form(
            "sharp",
            average_terms(STEP, DRIFT, q**2 / K * S, SAMPLING_ERROR * S),
            prescribes=CONSTANT_STEP,
            note="a constant step needs no factor 4, and T iterations hold floor(T/S) <= T/S synchronizations, not T",
        ),
        Form(
            "sharp:R2",
            average_terms(STEP, (S - 1) ** 2 + 4 * d * S**2, 4 * d / K * S, SAMPLING_ERROR * S),
            assumptions=(*MASKED, FIXED_MASKS, LIPSCHITZ, BELOW),
            prescribes=CONSTANT_STEP,
            note="the same for FedMRN's signed masks of amplitude 2 eta S G",
        ),
        Form(
            "explicit:any-amplitude",
            mask_terms(eta, a),
            (
                SAMPLED,
                FIRST_CONDITION,
                Condition(eta * S * G, "<=", a, "no update leaves its bounds, so that masks are unbiased", a),
            ),
            (*MASKED, ANY_MASKS, LIPSCHITZ, BELOW),
            note="signed masks of any amplitude at any constant step size: a masked update has the length a sqrt(d) "
            "whatever it stands for, so that drift and client sampling only take their share of d a^2",
        ),
        Form(
            "sharp:masks",
            mask_terms(STEP, AMPLITUDE),
            assumptions=(*MASKED, FIXED_MASKS, LIPSCHITZ, BELOW),
            prescribes=CONSTANT_STEP,
            note="R2 without drift and client sampling, at the amplitude 2 eta S G; a quarter of the masking remains "
            "at eta S G, which is enough",
        ),
        Form(
            "sharp:progressive",
            average_terms(STEP, (1 + q**2 * HALF_MASKED) * (S - 1) ** 2, q**2 / K * S, SAMPLING_ERROR * S),
            assumptions=(*USED, PROGRESSIVE, LIPSCHITZ, BELOW),
            prescribes=CONSTANT_STEP,
            note="progressive masking in local steps: on average (S+1)/(2S) of q^2, Proposition 1 as it holds",
        ),
        Form(
            "sharp:progressive-masks",
            (
                *mask_terms(STEP, AMPLITUDE)[:2],
                Term("local drift", (1 - HALF_MASKED) * L**2 * STEP**2 * (S - 1) ** 2 * G**2),
                Term("masking in local steps", HALF_MASKED * L**2 * d * AMPLITUDE**2),
                mask_terms(STEP, AMPLITUDE)[3],
            ),
            assumptions=(*MASKED, FIXED_MASKS, PROGRESSIVE, LIPSCHITZ, BELOW),
            prescribes=CONSTANT_STEP,
            note="FedMRN as it is run, with progressive masks: about half of the masking in local steps remains, and "
            "the upload is masked as a whole",
        ),
    ),
    equations=("12",),
    default="sharp",
    conditions=(SAMPLED,),
    assumptions=NONCONVEX,
)
THEOREMS = (THEOREM_1, THEOREM_2)
