r"""The lemmas behind Theorem 4 (Appendix C); $\nu$ is the price of the product of noise and gradients."""

import sympy as sp
from sympy import Integer, Rational, sqrt

from fedbounds.bounds.papers.fed_norm_sgda import assumptions as given
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import drop_assumptions
from fedbounds.bounds.papers.fed_norm_sgda.composites import LEGAL, r
from fedbounds.bounds.papers.fed_norm_sgda.concave import (
    DRIFT,
    I_1,
    I_1_SQUARED,
    NOISE,
    RADIUS_ERRATUM,
    ascent_conditions,
    recursion_cap,
)
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import DRIFT_MEASURE, ONE, RANDOM, drift_step, lemma, two_forms
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import MaxOverClients
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.measures import Measure, single
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import OBJECTIVE

Lf, sigmaL, betaL, sigmaG, betaG, Gx, R, S, nu = n.Lf, n.sigmaL, n.betaL, n.sigmaG, n.betaG, n.Gx, n.R, n.S, n.nu
C_w, D, etax, etay, Gammax, Gammay, gradsq, gap = n.C_w, n.D, n.etax, n.etay, n.Gammax, n.Gammay, n.gradsq, n.gap
staledual, drift = n.staledual, n.drift
ROUND_PRINTED = drop_assumptions(
    given.CONCAVE_PRINTED, given.BOUNDED_ITERATES
)  # Lemmas C.1 and C.2 list concavity and do not use it
ROUND_USED = drop_assumptions(given.CONCAVE_USED, *given.NO_ASCENT)
ONE_BLOCK = "noise-of-one-block-in-lemma-c"  # and the lemma's number
CONCAVE_DRIFT = (etax**2 + etay**2) * DRIFT  # V_C


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
        (drop_assumptions(ROUND_PRINTED, given.HETEROGENEITY), drop_assumptions(ROUND_USED, given.HETEROGENEITY)),
        (
            "(63) drops the product of noise and later gradients, and takes noise in x to grow with the gradient in x",
            "E|g_x|^2 <= nu I_1^2",
        ),
        f"{ONE_BLOCK}.1",
    ),
)


def snapshot_drift_terms(nu: sp.Expr) -> tuple[Term, ...]:
    """Lemma C.2 with the price nu."""
    return (
        Term("noise", 2 * nu * drift_step * sigmaL**2 * C_w),
        Term("heterogeneity", 4 * nu * Lf**2 * D * (etax**2 * Gx**2 + etay**2 * sigmaG**2)),
        Term("dual gap", 8 * nu * etay**2 * Lf**3 * D * betaG**2 * staledual),
    )


SHARP_DRIFT = (
    Term("noise", nu * (etax**2 + 2 * etay**2) * Lf**2 * sigmaL**2 * C_w),
    Term("heterogeneity", nu * Lf**2 * D * (etax**2 * Gx**2 + 4 * etay**2 * sigmaG**2)),
    Term("dual gap", 8 * nu * etay**2 * Lf**3 * D * betaG**2 * staledual),
)
LEMMA_C_2 = lemma(
    "C.2",
    "Local drift with the ascent at a snapshot",
    (),
    DRIFT_MEASURE,
    "Only the ascent needs a small step; concavity is not used.",
    (
        *two_forms(
            (snapshot_drift_terms(ONE), snapshot_drift_terms(nu)),
            (
                (
                    *LEGAL,
                    Condition(
                        etay,
                        "<=",
                        1 / (2 * Lf * MaxOverClients(n.a1) * sqrt(2 * largest(1, betaL**2))),
                        "the recursion",
                        etay,
                    ),
                ),
                (*LEGAL, recursion_cap(nu)),
            ),
            (ROUND_PRINTED, ROUND_USED),
            (
                "the local noise in (65) is not orthogonal to the gradients after it",
                "squares doubled where noise and gradients mix",
            ),
            f"{ONE_BLOCK}.2",
        ),
        Form(
            "sharp",
            SHARP_DRIFT,
            (*LEGAL, recursion_cap(nu)),
            ROUND_USED,
            note="the drift in x needs no recursion, as its gradients are bounded",
        ),
    ),
)


def printed_ascent_conditions() -> tuple[Condition, ...]:
    """Those of Lemma C.3, whose cap on the local ascent is weaker than Theorem 4's where betaG^2 n/P < 1."""
    first, *others = ascent_conditions(ONE)
    local = Condition(64 * etay**2 * D * Lf**2 * betaG**2 * r, "<=", ONE, first.why, etay)
    return (local, *others)


def ascent_forms(printed: tuple[Assumption, ...], used: tuple[Assumption, ...]) -> tuple[Form, ...]:
    """Lemma C.3, and Lemma C.5 under another hypothesis."""

    def terms(nu: sp.Expr, drift: sp.Expr, kept: sp.Expr = ONE) -> tuple[Term, ...]:
        return (
            Term("restart", 4 * R / (kept * Gammay * S)),
            Term("noise", nu * Gammay * NOISE / kept),
            Term("local updates", drift * CONCAVE_DRIFT / (kept * Lf)),
        )

    conditions = (*LEGAL, *ascent_conditions(nu), recursion_cap(nu))
    return (
        *two_forms(
            (terms(ONE, Integer(4)), terms(nu, Rational(11, 4) * nu)),
            ((*LEGAL, *printed_ascent_conditions()), conditions),
            (printed, used),
            (
                "rests on (65); 4R needs a bound on the maximizer as well, which the paper does not assume",
                "with the maximizer bounded too, and the cap of Lemma C.2",
            ),
            RADIUS_ERRATUM,
        ),
        Form(
            "sharp",
            terms(nu, Rational(11, 4) * nu, Rational(69, 64)),
            conditions,
            used,
            note="the gap keeps 69/64 of its factor in (72)",
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
    "The ascent restarts at every snapshot from a point at most 4R (squared) from the maximizer.",
    ascent_forms(drop_assumptions(given.CONCAVE_PRINTED, given.LIPSCHITZ), given.CONCAVE_USED),
)
LEMMA_C_5 = lemma(
    "C.5",
    "The dual gap at a snapshot, one-point concave",
    (),
    STALE_GAP,
    "The bound of Lemma C.3 at a maximizer common to all clients.",
    ascent_forms(given.ONE_POINT_PRINTED, given.ONE_POINT_USED),
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
            drop_assumptions(ROUND_PRINTED, given.CONCAVE),
            refuted_by=f"{ONE_BLOCK}.4",
            note="as printed, where noise in x may grow with the gradient in y",
        ),
        Form(
            "explicit",
            stale_terms(Integer(2)),
            LEGAL,
            drop_assumptions(ROUND_USED, given.HETEROGENEITY),
            note="the printed bound where noise is bounded block by block; true, although (63) is not: it counts a lag "
            "of S - 1 rounds, and half of that is the mean",
        ),
        Form(
            "repaired",
            stale_terms(sqrt(nu)),
            LEGAL,
            drop_assumptions(ROUND_USED, given.HETEROGENEITY),
            note="the snapshot is (S - 1)/2 rounds old on average",
        ),
    ),
)
RESULTS = (LEMMA_C_1, LEMMA_C_2, LEMMA_C_3, LEMMA_C_4, LEMMA_C_5)
