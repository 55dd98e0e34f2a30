r"""The lemmas behind Theorem 1 (Appendix B) and Theorem 4 (Appendix C).

Where a lemma drops the product of noise and later local gradients, its repaired form pays the price $\nu$ for it.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp
from sympy import Integer, Max, Rational, sqrt

from bounds.assumptions import Assumption
from bounds.clients import MaxOverClients
from bounds.measures import Measure, single
from bounds.papers.fed_norm_sgda.assumptions import (
    CONCAVE_PRINTED,
    CONCAVE_USED,
    JOINTLY_SMOOTH,
    ONE_POINT_PRINTED,
    ONE_POINT_USED,
    PRINTED,
    STRONGLY_CONCAVE,
    USED,
)
from bounds.papers.fed_norm_sgda.composites import CURVATURE, DERIVED, LEGAL, S_2, K, Q, W, a_m, c, d, r
from bounds.papers.fed_norm_sgda.concave import DRIFT, I_1, I_1_SQUARED, NOISE, ascent_conditions, recursion_cap
from bounds.papers.fed_norm_sgda.notation import NOTATION
from bounds.papers.fed_norm_sgda.results import (
    AS_PRINTED,
    CROSS_TERM,
    ENVELOPE_SMOOTHNESS,
    PAPER,
    PRINTED_SMOOTHNESS,
    drift_step,
    step_conditions,
)
from bounds.result import Condition, Form, Result, Source, Term
from bounds.symbols import GRADIENT, OBJECTIVE, SMOOTHNESS

notation = NOTATION
Lf, mu, kappa, sigmaL, betaL, sigmaG, betaG, Gx, R = (
    notation.Lf,
    notation.mu,
    notation.kappa,
    notation.sigmaL,
    notation.betaL,
    notation.sigmaG,
    notation.betaG,
    notation.Gx,
    notation.R,
)
S, T, nu, C_w, D, delta0 = notation.S, notation.T, notation.nu, notation.C_w, notation.D, notation.delta0
etax, etay, Gammax, Gammay = notation.etax, notation.etay, notation.Gammax, notation.Gammay
gradsq, gap, staledual, drift, direction, epsopt = (
    notation.gradsq,
    notation.gap,
    notation.staledual,
    notation.drift,
    notation.direction,
    notation.epsopt,
)
SMOOTHNESS_ERRATUM = "smoothness-of-the-envelope"
RANDOM = "gradient noise and participation"
LOCAL_NOISE = drift_step * (sigmaL**2 * C_w + 2 * sigmaG**2 * D)  # V
CONCAVE_DRIFT = (etax**2 + etay**2) * DRIFT  # V_C
ONE = Integer(1)


def lemma(
    number: str,
    title: str,
    equations: tuple[str, ...],
    measure: Measure,
    statement: str,
    forms: tuple[Form, ...],
) -> Result:
    """One lemma of the appendices, whose last form is its strongest."""
    return Result(
        key=f"fed-norm-sgda/lemma-{number.lower()}",
        kind="lemma",
        title=title,
        source=Source(PAPER, f"Lemma {number}", equations),
        measure=measure,
        notation=NOTATION,
        default=forms[-1].name,
        statement=statement,
        forms=tuple(replace(form, derived=DERIVED) for form in forms),
    )


def two_forms(
    terms: tuple[tuple[Term, ...], tuple[Term, ...]],
    conditions: tuple[tuple[Condition, ...], tuple[Condition, ...]],
    assumptions: tuple[tuple[Assumption, ...], tuple[Assumption, ...]],
    notes: tuple[str, str],
) -> tuple[Form, ...]:
    """As printed, resting on the dropped cross term, and repaired."""
    return (
        Form("printed", terms[0], conditions[0], assumptions[0], refuted_by=CROSS_TERM, note=notes[0]),
        Form("repaired", terms[1], conditions[1], assumptions[1], note=notes[1]),
    )


# --- Appendix B ----------------------------------------------------------------------------------------------------

LEMMA_B_1 = lemma(
    "B.1",
    "Smoothness of the envelope",
    (),
    single("smoothness of the envelope max_y f(x, y)", r"L_\Phi", SMOOTHNESS),
    "The maximiser is kappa-Lipschitz in x, so the gradient in x moves with x and with the maximiser.",
    (
        Form(
            "printed",
            (Term("smoothness", PRINTED_SMOOTHNESS),),
            (CURVATURE,),
            (JOINTLY_SMOOTH, STRONGLY_CONCAVE),
            refuted_by=SMOOTHNESS_ERRATUM,
            note="false for kappa > 4",
        ),
        Form(
            "repaired",
            (Term("smoothness", ENVELOPE_SMOOTHNESS),),
            (CURVATURE,),
            (JOINTLY_SMOOTH, STRONGLY_CONCAVE),
            note="|grad_x f(x, y) - grad_x f(x', y')| <= Lf (|x - x'| + |y - y'|)",
        ),
        Form(
            "sharp",
            (Term("smoothness", Lf * sqrt(1 + kappa**2)),),
            (CURVATURE,),
            (JOINTLY_SMOOTH, STRONGLY_CONCAVE),
            note="joint smoothness bounds by the Euclidean length of (x - x', y - y')",
        ),
    ),
)


def descent_of_the_envelope(nu: sp.Expr) -> tuple[Term, ...]:
    """(15) with the price nu."""
    return (
        Term("descent", -Rational(7, 16) * Gammax * gradsq),
        Term("direction", -Gammax / 2 * (1 - nu * c * Gammax * ENVELOPE_SMOOTHNESS) * direction),
        Term("local drift", Rational(5, 4) * Gammax * drift),
        Term("dual gap", Rational(9, 4) * Gammax * kappa * Lf * gap),
        Term("noise", nu * Gammax**2 * ENVELOPE_SMOOTHNESS / 2 * NOISE),
    )


def small_descent(nu: sp.Expr) -> tuple[Condition, ...]:
    """Conditions (i), (ii) and (iii) of Lemma B.3 with the price nu."""
    step = nu * Gammax * ENVELOPE_SMOOTHNESS * r
    return (
        Condition(64 * step * betaL**2 * betaG**2 * Q, "<=", ONE, "(i): noise in the gradient", Gammax),
        Condition(8 * step * W * d * Max(8 * betaG**2, 1), "<=", ONE, "(ii): sampling", Gammax),
        Condition(8 * step * betaL**2 * K, "<=", ONE, "(iii): noise in the drift", Gammax),
    )


LEMMA_B_3 = lemma(
    "B.3",
    "One round of descent of the envelope",
    ("15",),
    single(
        "increase of the envelope of the weighted objective over one round",
        r"\mathbb E[\tilde\Phi(\mathbf x^{(t+1)})-\tilde\Phi(\mathbf x^{(t)})]",
        OBJECTIVE,
        expectation=RANDOM,
        signed=True,
    ),
    "gradsq is the squared gradient norm of the envelope, direction that of the mean exact update, drift and gap those "
    "of the round. The smoothness of the envelope is (1 + kappa) Lf in both forms.",
    two_forms(
        (descent_of_the_envelope(ONE), descent_of_the_envelope(nu)),
        ((*LEGAL, CURVATURE, *small_descent(ONE)), (*LEGAL, CURVATURE, *small_descent(nu))),
        (PRINTED, USED),
        ("eq. (15); (19) drops the product of noise and later gradients", "the squared direction at the price nu"),
    ),
)


def drift_terms(nu: sp.Expr) -> tuple[Term, ...]:
    """Lemma B.4 with the price nu."""
    growth = 8 * nu * Lf**2 * D * betaG**2
    return (
        Term("noise and heterogeneity", 2 * nu * LOCAL_NOISE),
        Term("gradient", growth * etax**2 * gradsq),
        Term("dual gap", growth * Lf * (2 * kappa * etax**2 + etay**2) * gap),
    )


DRIFT_MEASURE = single(
    "Lf^2 times the weighted mean squared distance of the local iterates from the start of the round",
    r"X_t",
    GRADIENT**2,
    expectation=RANDOM,
)
LEMMA_B_4 = lemma(
    "B.4",
    "Local drift",
    (),
    DRIFT_MEASURE,
    "No counterexample to the printed statement is known; its proof has the gap of (25).",
    two_forms(
        (drift_terms(ONE), drift_terms(nu)),
        (
            (
                *LEGAL,
                CURVATURE,
                Condition(
                    Max(etax, etay),
                    "<=",
                    1 / (2 * Lf * MaxOverClients(notation.a1) * sqrt(2 * (1 + betaL**2))),
                    "the recursion",
                ),
            ),
            (*LEGAL, CURVATURE, Condition(2 * nu * drift_step * a_m, "<=", Rational(1, 2), "(m): the recursion")),
        ),
        (PRINTED, USED),
        (
            "the local noise in (25) is not orthogonal to the gradients after it",
            "squares doubled where noise and gradients mix",
        ),
    ),
)

LEMMA_B_5 = lemma(
    "B.5",
    "The dual gap on average",
    ("16",),
    Measure(
        "average",
        "rounds",
        "dual gap of the weighted objective",
        r"\frac1T\sum_{t<T}\delta_t",
        OBJECTIVE,
        RANDOM,
    ),
    "epsopt and direction are means over the rounds here.",
    two_forms(
        (
            (
                Term("initial dual gap", 4 * delta0 / (Gammay * mu * T)),
                Term("gradient", epsopt / (12 * mu * kappa**2)),
                Term("direction", 8 * Gammax**2 * ENVELOPE_SMOOTHNESS / (Gammay * mu) * c * direction),
                Term("noise", 6 * Gammay * kappa * NOISE),
                Term("local updates", (18 * kappa / Lf + 8 * Gammax**2 * kappa / Gammay * r * S_2) * LOCAL_NOISE),
            ),
            (
                Term("initial dual gap", Rational(4, 3) * delta0 / (Gammay * mu * T)),
                Term("gradient", epsopt / (60 * mu * kappa**2)),
                Term(
                    "direction",
                    Rational(2, 3)
                    * nu
                    * c
                    * Gammax
                    * (Gammax * (ENVELOPE_SMOOTHNESS + Lf) + Gammay * Lf)
                    / (Gammay * mu)
                    * direction,
                ),
                Term("noise", Rational(2, 3) * Rational("1.0132") * nu * Gammay * kappa * NOISE),
                Term("local updates", Rational(4, 3) * Rational("1.525") * nu * LOCAL_NOISE / mu),
            ),
        ),
        (
            (*LEGAL, CURVATURE, *AS_PRINTED),
            (*LEGAL, CURVATURE, *step_conditions(nu, 2 * nu, 4 * nu)),
        ),
        (PRINTED, USED),
        (
            "eq. (16), with the time average of the direction that is left out in print; (34) is false as well",
            "the ascent measured at the old x: the gap shrinks by 3/4 Gammay mu a round",
        ),
    ),
)
LEMMA_B_6 = lemma(
    "B.6",
    "The gradient in x away from the maximiser",
    (),
    single("squared gradient norm in x of the weighted objective", r"\mathbb E\|\nabla_x\tilde F\|^2", GRADIENT**2),
    "Smoothness between y and the maximiser, and the quadratic growth of strong concavity.",
    (
        Form(
            "printed",
            (Term("gradient", 2 * gradsq), Term("dual gap", 4 * kappa * Lf * gap)),
            (CURVATURE,),
            (JOINTLY_SMOOTH, STRONGLY_CONCAVE),
            note="as printed, with Lf^2/mu = kappa Lf",
        ),
        Form(
            "sharp",
            (Term("both", (sqrt(gradsq) + sqrt(2 * kappa * Lf * gap)) ** 2),),
            (CURVATURE,),
            (JOINTLY_SMOOTH, STRONGLY_CONCAVE),
            note="the triangle inequality in mean square instead of 2 + 2",
        ),
    ),
)

# --- Appendix C ----------------------------------------------------------------------------------------------------


def moreau_terms(nu: sp.Expr) -> tuple[Term, ...]:
    """Lemma C.1 with the price nu."""
    return (
        Term("descent", -Gammax / 8 * gradsq),
        Term("descent noise", nu * Gammax**2 * Lf * I_1_SQUARED),
        Term("local drift", 2 * Gammax * drift),
        Term("dual gap", 2 * Gammax * Lf * gap),
    )


LEMMA_C_1 = lemma(
    "C.1",
    "One round of descent of the Moreau envelope",
    (),
    single(
        "increase of the Moreau envelope over one round",
        r"\mathbb E[\tilde\Phi_{1/2L_f}(\mathbf x^{(t+1)})-\tilde\Phi_{1/2L_f}(\mathbf x^{(t)})]",
        OBJECTIVE,
        expectation=RANDOM,
        signed=True,
    ),
    "No condition on the steps. gradsq is that of the Moreau envelope; concavity is not used.",
    two_forms(
        (moreau_terms(ONE), moreau_terms(nu)),
        (LEGAL, LEGAL),
        (CONCAVE_PRINTED, CONCAVE_USED),
        ("(63) drops the product of noise and later gradients", "E|g_x|^2 <= nu I_1^2"),
    ),
)


def snapshot_drift_terms(nu: sp.Expr) -> tuple[Term, ...]:
    """Lemma C.2 with the price nu."""
    return (
        Term("noise", 2 * nu * drift_step * sigmaL**2 * C_w),
        Term("heterogeneity", 4 * nu * Lf**2 * D * (etax**2 * Gx**2 + etay**2 * sigmaG**2)),
        Term("dual gap", 8 * nu * etay**2 * Lf**3 * D * betaG**2 * staledual),
    )


LEMMA_C_2 = lemma(
    "C.2",
    "Local drift with the ascent at a snapshot",
    (),
    DRIFT_MEASURE,
    "Only the ascent needs a small step; concavity is not used.",
    two_forms(
        (snapshot_drift_terms(ONE), snapshot_drift_terms(nu)),
        (
            (
                *LEGAL,
                Condition(
                    etay,
                    "<=",
                    1 / (2 * Lf * MaxOverClients(notation.a1) * sqrt(2 * Max(1, betaL**2))),
                    "the recursion",
                    etay,
                ),
            ),
            (*LEGAL, recursion_cap(nu)),
        ),
        (CONCAVE_PRINTED, CONCAVE_USED),
        (
            "the local noise in (65) is not orthogonal to the gradients after it",
            "squares doubled where noise and gradients mix",
        ),
    ),
)


def ascent_forms(printed: tuple[Assumption, ...], used: tuple[Assumption, ...]) -> tuple[Form, ...]:
    """Lemma C.3, and Lemma C.5 under another hypothesis."""

    def terms(nu: sp.Expr, drift: sp.Expr) -> tuple[Term, ...]:
        return (
            Term("restart", 4 * R / (Gammay * S)),
            Term("noise", nu * Gammay * NOISE),
            Term("local updates", drift * CONCAVE_DRIFT / Lf),
        )

    return two_forms(
        (terms(ONE, Integer(4)), terms(nu, Rational(11, 4) * nu)),
        ((*LEGAL, *ascent_conditions(ONE)), (*LEGAL, *ascent_conditions(nu), recursion_cap(nu))),
        (printed, used),
        (
            "rests on (65); 4R needs a bound on the maximiser as well, which the paper does not assume",
            "with the maximiser bounded too, and the cap of Lemma C.2",
        ),
    )


STALE_GAP = Measure(
    "average",
    "rounds",
    "dual gap of the weighted objective at the snapshot, over one block of S rounds",
    r"\frac1S\sum_{t=sS}^{(s+1)S-1}\hat\delta_t",
    OBJECTIVE,
    RANDOM,
)
LEMMA_C_3 = lemma(
    "C.3",
    "The dual gap at a snapshot",
    (),
    STALE_GAP,
    "The ascent restarts at every snapshot from a point at most 4R (squared) from the maximiser.",
    ascent_forms(CONCAVE_PRINTED, CONCAVE_USED),
)
LEMMA_C_5 = lemma(
    "C.5",
    "The dual gap at a snapshot, one-point concave",
    (),
    STALE_GAP,
    "The bound of Lemma C.3 at a maximiser common to all clients.",
    ascent_forms(ONE_POINT_PRINTED, ONE_POINT_USED),
)


def stale_terms(lag: sp.Expr) -> tuple[Term, ...]:
    """Lemma C.4 with this constant."""
    return (Term("gap at the snapshot", staledual), Term("stale snapshot", lag * Gammax * Gx * (S - 1) * I_1))


LEMMA_C_4 = lemma(
    "C.4",
    "The dual gap away from the snapshot",
    ("73",),
    Measure("average", "rounds", "dual gap of the weighted objective", r"\frac1T\sum_{t<T}\delta_t", OBJECTIVE, RANDOM),
    "staledual is the mean over the rounds here.",
    (
        Form(
            "printed",
            stale_terms(Integer(2)),
            LEGAL,
            CONCAVE_USED,
            note="true, although (63) is not: it counts a lag of S - 1 rounds, and half of that is the mean",
        ),
        Form(
            "repaired",
            stale_terms(sqrt(nu)),
            LEGAL,
            CONCAVE_USED,
            note="the snapshot is (S - 1)/2 rounds old on average",
        ),
    ),
)
RESULTS = (
    LEMMA_B_1,
    LEMMA_B_3,
    LEMMA_B_4,
    LEMMA_B_5,
    LEMMA_B_6,
    LEMMA_C_1,
    LEMMA_C_2,
    LEMMA_C_3,
    LEMMA_C_4,
    LEMMA_C_5,
)
