r"""The lemmas behind Theorem 1 (Appendix B); $\nu$ is the price of the product of noise and gradients."""

from dataclasses import replace

import sympy as sp
from sympy import Integer, Rational, sqrt

from fedbounds.bounds.papers.fed_norm_sgda import assumptions as given
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import drop_assumptions
from fedbounds.bounds.papers.fed_norm_sgda.composites import (
    CURVATURE,
    DERIVED,
    LEGAL,
    S_2,
    SIMPLEX,
    WITHOUT_CURVATURE,
    K,
    Q,
    W,
    Z,
    a_m,
    c,
    d,
    r,
)
from fedbounds.bounds.papers.fed_norm_sgda.concave import NOISE
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.notation import new_result
from fedbounds.bounds.papers.fed_norm_sgda.results import (
    AS_PRINTED,
    CROSS_TERM,
    ENVELOPE_SMOOTHNESS,
    PRINTED_SMOOTHNESS,
    drift_step,
    step_conditions,
)
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import MaxOverClients
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.measures import Measure, single
from fedbounds.bounds.theory.result import Condition, Form, Result, Term
from fedbounds.bounds.theory.symbols import GRADIENT, OBJECTIVE, SMOOTHNESS

Lf, kappa, sigmaL, betaL, sigmaG, betaG, T, nu = n.Lf, n.kappa, n.sigmaL, n.betaL, n.sigmaG, n.betaG, n.T, n.nu
C_w, D, delta0 = n.C_w, n.D, n.delta0
mu = Lf / kappa
etax, etay, Gammax, Gammay, gradsq, gap, drift = n.etax, n.etay, n.Gammax, n.Gammay, n.gradsq, n.gap, n.drift
direction, epsopt, gradxsq, noisysq, sampledrift = n.direction, n.epsopt, n.gradxsq, n.noisysq, n.sampledrift
noisydrift = n.noisydrift
SMOOTHNESS_ERRATUM = "smoothness-of-the-envelope"
DESCENT_ERRATUM = "descent-without-the-cross-term"
DESCENT_SMOOTHNESS_ERRATUM = "descent-with-too-smooth-an-envelope"
RANDOM = "gradient noise and participation"
LOCAL_NOISE = drift_step * (sigmaL**2 * C_w + 2 * sigmaG**2 * D)  # V
ONE = Integer(1)


def with_pl(assumptions: tuple[Assumption, ...]) -> tuple[Assumption, ...]:
    """The same hypotheses, that on y by its other name."""
    return tuple(given.PL if a is given.STRONGLY_CONCAVE else a for a in assumptions)


def lemma(
    number: str, title: str, equations: tuple[str, ...], measure: Measure, statement: str, forms: tuple[Form, ...]
) -> Result:
    """One lemma of the appendices, whose last form is its strongest."""
    return new_result(
        f"lemma-{number.lower()}",
        title,
        measure,
        statement,
        tuple(replace(form, derived=DERIVED if kappa in form.symbols else WITHOUT_CURVATURE) for form in forms),
        number=f"Lemma {number}",
        equations=equations,
        default=forms[-1].name,
    )


def two_forms(
    terms: tuple[tuple[Term, ...], tuple[Term, ...]],
    conditions: tuple[tuple[Condition, ...], tuple[Condition, ...]],
    assumptions: tuple[tuple[Assumption, ...], tuple[Assumption, ...]],
    notes: tuple[str, str],
    refuted_by: str = CROSS_TERM,
) -> tuple[Form, ...]:
    """As printed, resting on the dropped cross term if not refuted itself, and repaired."""
    return (
        Form("printed", terms[0], conditions[0], assumptions[0], refuted_by=refuted_by, note=notes[0]),
        Form("repaired", terms[1], conditions[1], assumptions[1], note=notes[1]),
    )


# --- Appendix B ----------------------------------------------------------------------------------------------------

LEMMA_B_1 = lemma(
    "B.1",
    "Smoothness of the envelope",
    (),
    single("smoothness of the envelope max_y f(x, y)", r"L_\Phi", SMOOTHNESS),
    "The maximizer is kappa-Lipschitz in x, so the gradient in x moves with x and with the maximizer.",
    (
        Form(
            "printed",
            (Term("smoothness", PRINTED_SMOOTHNESS),),
            (CURVATURE,),
            (given.JOINTLY_SMOOTH, given.STRONGLY_CONCAVE),
            refuted_by=SMOOTHNESS_ERRATUM,
            note="false for kappa > 2",
        ),
        Form(
            "repaired",
            (Term("smoothness", ENVELOPE_SMOOTHNESS),),
            (CURVATURE,),
            (given.JOINTLY_SMOOTH, given.STRONGLY_CONCAVE),
            note="|grad_x f(x, y) - grad_x f(x', y')| <= Lf (|x - x'| + |y - y'|)",
        ),
        Form(
            "sharp",
            (Term("smoothness", Lf * sqrt(1 + kappa**2)),),
            (CURVATURE,),
            (given.JOINTLY_SMOOTH, given.STRONGLY_CONCAVE),
            note="joint smoothness bounds by the Euclidean length of (x - x', y - y')",
        ),
    ),
)


def direction_terms(nu: sp.Expr) -> tuple[Term, ...]:
    """(14) with the price nu."""
    return (
        Term("mean direction", nu * c * direction),
        Term("noise", nu * r * (Z * sigmaL**2 + betaL**2 * noisysq)),
        Term("sampling", nu * r * d * (2 * sampledrift + 2 * W * (betaG**2 * gradxsq + sigmaG**2))),
    )


LEMMA_B_2 = lemma(
    "B.2",
    "The server's direction in x",
    ("14", "19"),
    single("squared norm of the server's direction in x", r"\mathbb E\|g_x^{(t)}\|^2", expectation=RANDOM),
    "No condition on the steps. direction is the squared norm of the mean exact update, noisysq what the growing noise "
    "sees of the local gradients, sampledrift the drift with squared weights.",
    two_forms(
        (direction_terms(ONE), direction_terms(nu)),
        (LEGAL, LEGAL),
        (drop_assumptions(given.PRINTED, *given.NO_RUN), drop_assumptions(given.USED, *given.NO_RUN)),
        ("eq. (14); (19) drops the product of noise and later gradients", "(14) at the price nu"),
    ),
)


def descent_of_the_envelope(nu: sp.Expr, smoothness: sp.Expr) -> tuple[Term, ...]:
    """(15) with the price nu and this smoothness of the envelope."""
    return (
        Term("descent", -Rational(7, 16) * Gammax * gradsq),
        Term("direction", -Gammax / 2 * (1 - nu * c * Gammax * smoothness) * direction),
        Term("local drift", Rational(5, 4) * Gammax * drift),
        Term("dual gap", Rational(9, 4) * Gammax * kappa * Lf * gap),
        Term("noise", nu * Gammax**2 * smoothness / 2 * NOISE),
    )


def descent_conditions(nu: sp.Expr, smoothness: sp.Expr) -> tuple[Condition, ...]:
    """Conditions (i), (ii) and (iii) of Lemma B.3 with the price nu and this smoothness of the envelope."""
    step = nu * Gammax * smoothness * r
    return (
        Condition(64 * step * betaL**2 * betaG**2 * Q, "<=", ONE, "(i): noise in the gradient", Gammax),
        Condition(8 * step * W * d * largest(8 * betaG**2, 1), "<=", ONE, "(ii): sampling", Gammax),
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
    "of the round.",
    (
        Form(
            "printed",
            descent_of_the_envelope(ONE, PRINTED_SMOOTHNESS),
            (*LEGAL, CURVATURE, *descent_conditions(ONE, PRINTED_SMOOTHNESS)),
            given.PRINTED,
            refuted_by=DESCENT_SMOOTHNESS_ERRATUM,
            note="eq. (15), with the smoothness (kappa/2 + 1) Lf of Lemma B.1",
        ),
        Form(
            "explicit",
            descent_of_the_envelope(ONE, ENVELOPE_SMOOTHNESS),
            (*LEGAL, CURVATURE, *descent_conditions(ONE, ENVELOPE_SMOOTHNESS)),
            given.USED,
            refuted_by=DESCENT_ERRATUM,
            note="the paper's chain with (1 + kappa) Lf; (19) drops the product of noise and later gradients",
        ),
        Form(
            "repaired",
            descent_of_the_envelope(nu, ENVELOPE_SMOOTHNESS),
            (*LEGAL, CURVATURE, *descent_conditions(nu, ENVELOPE_SMOOTHNESS)),
            given.USED,
            note="(1 + kappa) Lf, and the squared direction at the price nu",
        ),
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
                    largest(etax, etay),
                    "<=",
                    1 / (2 * Lf * MaxOverClients(n.a1) * sqrt(2 * (1 + betaL**2))),
                    "the recursion",
                ),
            ),
            (*LEGAL, CURVATURE, Condition(2 * nu * drift_step * a_m, "<=", Rational(1, 2), "(m): the recursion")),
        ),
        (given.PRINTED, given.USED),
        (
            "the local noise in (25) is not orthogonal to the gradients after it",
            "squares doubled where noise and gradients mix",
        ),
    ),
)


def average_gap_of_the_paper(smoothness: sp.Expr) -> tuple[Term, ...]:
    """(16) with this smoothness of the envelope."""
    return (
        Term("initial dual gap", 4 * delta0 / (Gammay * mu * T)),
        Term("gradient", epsopt / (12 * mu * kappa**2)),
        Term("direction", 8 * Gammax**2 * smoothness / (Gammay * mu) * c * direction),
        Term("noise", 6 * Gammay * kappa * NOISE),
        Term("local updates", (18 * kappa / Lf + 8 * Gammax**2 * kappa / Gammay * r * S_2) * LOCAL_NOISE),
    )


def average_gap(kept: sp.Expr, gradient: sp.Expr, noise: sp.Expr, local: sp.Expr) -> tuple[Term, ...]:
    """(44) where a round loses `kept` of Gamma_y mu delta_t and adds the others."""
    shrinks = kept * Gammay * mu
    unsteady = Gammax * (Gammax * (ENVELOPE_SMOOTHNESS + Lf) + Gammay * Lf)
    return (
        Term("initial dual gap", delta0 / (shrinks * T)),
        Term("gradient", gradient * Gammay / kappa**2 * epsopt / shrinks),
        Term("direction", nu * c * unsteady / 2 * direction / shrinks),
        Term("noise", noise / 2 * nu * Gammay**2 * Lf * NOISE / shrinks),
        Term("local updates", local * nu * Gammay * LOCAL_NOISE / shrinks),
    )


LEMMA_B_5 = lemma(
    "B.5",
    "The dual gap on average",
    ("16",),
    Measure("average", "rounds", "dual gap of the weighted objective", r"\frac1T\sum_{t<T}\delta_t", OBJECTIVE, RANDOM),
    "epsopt and direction are means over the rounds here.",
    (
        Form(
            "printed",
            average_gap_of_the_paper(PRINTED_SMOOTHNESS),
            (*LEGAL, CURVATURE, *AS_PRINTED),
            given.PRINTED,
            refuted_by=CROSS_TERM,
            note="eq. (16), with the time average of the direction that is left out in print; (34) is false as well",
        ),
        Form(
            "explicit",
            average_gap_of_the_paper(ENVELOPE_SMOOTHNESS),
            (*LEGAL, CURVATURE, *step_conditions(ONE, Integer(2), 1 + 2 * Gammax**2 * Lf / Gammay)),
            given.USED,
            refuted_by=CROSS_TERM,
            note="the paper's chain with (1 + kappa) Lf and the conditions that it uses; it rests on (19), (25), (34)",
        ),
        Form(
            "repaired",
            average_gap(Rational(3, 4), Rational(1, 80), Rational("1.0132"), Rational("1.525")),
            (*LEGAL, CURVATURE, *step_conditions(nu, 2 * nu, 4 * nu)),
            given.USED,
            note="the ascent measured at the old x: the gap shrinks by 3/4 Gammay mu a round",
        ),
        Form(
            "sharp",
            average_gap(Rational("0.8839"), Rational("0.0051"), Rational("1.0132"), Rational("1.5194")),
            (*LEGAL, CURVATURE, *step_conditions(nu, 2 * nu, 4 * nu)),
            given.USED,
            note="the same chain without rounding its constants up",
        ),
    ),
)
LEMMA_B_6 = lemma(
    "B.6",
    "The gradient in x away from the maximizer",
    (),
    single("squared gradient norm in x of the weighted objective", r"\mathbb E\|\nabla_x\tilde F\|^2", GRADIENT**2),
    "Smoothness between y and the maximizer, and the quadratic growth of strong concavity.",
    (
        Form(
            "printed",
            (Term("gradient", 2 * gradsq), Term("dual gap", 4 * kappa * Lf * gap)),
            (SIMPLEX, CURVATURE),
            (given.JOINTLY_SMOOTH, given.STRONGLY_CONCAVE),
            note="as printed, with Lf^2/mu = kappa Lf",
        ),
        Form(
            "sharp",
            (Term("both", (sqrt(gradsq) + sqrt(2 * kappa * Lf * gap)) ** 2),),
            (SIMPLEX, CURVATURE),
            (given.JOINTLY_SMOOTH, given.STRONGLY_CONCAVE),
            note="the triangle inequality in mean square instead of 2 + 2",
        ),
    ),
)


def noisy_gradient_terms(in_x: bool) -> tuple[Term, ...]:
    """Lemma B.7 in x, Lemma B.8 in y."""
    gradient = 4 * Q * betaG**2 * gradsq if in_x else Integer(0)
    gap_factor = 8 * Q * betaG**2 * kappa * Lf if in_x else 4 * Q * betaG**2 * Lf
    return tuple(
        term
        for term in (
            Term("local drift", 2 * noisydrift),
            Term("heterogeneity", 2 * Q * sigmaG**2),
            Term("gradient", gradient),
            Term("dual gap", gap_factor * gap),
        )
        if term.expression != 0
    )


def noisy_gradient(number: str, block: str) -> Result:
    """One of the two lemmas, which are true as printed."""
    return lemma(
        number,
        f"What the noise in {block} grows with",
        (),
        single(
            f"squared local gradients in {block}, weighed as the growing noise weighs them",
            rf"\sum_i\frac{{w_i^2}}{{\|a_i\|_1^2}}\sum_k[a_i^{{(k)}}]^2\mathbb E\|\nabla_{block}f_i\|^2",
            expectation=RANDOM,
        ),
        "noisydrift is Lf^2 times the local drift in the same weights; Lf^2/mu = kappa Lf.",
        (
            Form(
                "printed",
                noisy_gradient_terms(block == "x"),
                (*LEGAL, CURVATURE),
                (given.JOINTLY_SMOOTH, given.HETEROGENEITY, given.STRONGLY_CONCAVE),
                note="as printed",
            ),
        ),
    )


LEMMA_B_7, PLAIN_B_8 = noisy_gradient("B.7", "x"), noisy_gradient("B.8", "y")
LEMMA_B_8 = replace(
    PLAIN_B_8,
    forms=(
        *PLAIN_B_8.forms,
        replace(
            PLAIN_B_8.forms[0],
            name="printed:pl",
            terms=(*noisy_gradient_terms(False)[:-1], Term("dual gap", 4 * Q * betaG**2 * kappa * Lf * gap)),
            assumptions=(given.JOINTLY_SMOOTH, given.HETEROGENEITY, given.PL),
            note="as Appendix B.5 has it under the PL condition; its kappa is not needed",
        ),
    ),
)
LEMMA_B_9 = lemma(
    "B.9",
    "Local drift under the PL condition",
    (),
    DRIFT_MEASURE,
    "Lemma B.4 where the weighted objective is mu-PL in y. The paper pays kappa for it, which is not needed: only "
    "smoothness bounds the gradient in y by the dual gap.",
    two_forms(
        (
            (*drift_terms(ONE)[:2], Term("dual gap", 8 * kappa * Lf**3 * D * betaG**2 * (2 * etax**2 + etay**2) * gap)),
            drift_terms(nu),
        ),
        tuple(form.conditions for form in LEMMA_B_4.forms),  # type: ignore[arg-type]
        (with_pl(given.PRINTED), with_pl(given.USED)),
        ("the local noise in (25) is not orthogonal to the gradients after it", "Lemma B.4, repaired, holds as it is"),
    ),
)

RESULTS = (LEMMA_B_1, LEMMA_B_2, LEMMA_B_3, LEMMA_B_4, LEMMA_B_5, LEMMA_B_6, LEMMA_B_7, LEMMA_B_8, LEMMA_B_9)
