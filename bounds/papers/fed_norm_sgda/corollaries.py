"""Corollaries 1.1 and 2.1, from the weighted objective to the intended one, and complexities 1.2 and 2.2."""

from dataclasses import replace

import sympy as sp
from sympy import Integer, Rational, ceiling, sqrt

from fedbounds.bounds.papers.fed_norm_sgda import assumptions, composites
from fedbounds.bounds.papers.fed_norm_sgda.concave import (
    ASCENT_NOISE,
    CAPPED_ASCENT,
    DESCENT_NOISE,
    DESCENT_SCALES,
    DRIFT,
    LARGEST_ASCENT,
    MIXED,
    NOISE,
)
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION, new_result
from fedbounds.bounds.papers.fed_norm_sgda.results import ENOUGH_ROUNDS, SPEED, THEOREM_1_AT_ITS_STEPS
from fedbounds.bounds.theory.client_reductions import MaxOverClients, SumOverClients
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.measures import Measure, single
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import GRADIENT, NONE

MOREAU_ERRATUM = "factor-of-corollary-2.1"
ROUNDS_ERRATUM = "rounds-beyond-the-cap"
notation = NOTATION
Lf, kappa, sigmaG, betaG, eps = notation.Lf, notation.kappa, notation.sigmaG, notation.betaG, notation.eps
R, chi2, epsopt, lag, epsbar = notation.R, notation.chi2, notation.epsopt, notation.lag, notation.epsbar
proxlag, n, P, T, nu, taubar = notation.proxlag, notation.n, notation.P, notation.T, notation.nu, notation.taubar
Delta, Deltabar = notation.Delta, notation.Deltabar

MEANT = Condition(SumOverClients(notation.p), "==", Integer(1), "the weights of F are on the simplex", legal=True)
TRUE_ENVELOPE = Measure(
    "minimum",
    "rounds",
    "squared gradient norm of the envelope of the objective",
    r"\min_t\|\nabla\Phi(\mathbf x^{(t)})\|^2",
    GRADIENT**2,
)
TRUE_MOREAU = Measure(
    "minimum",
    "rounds",
    "squared gradient norm of the Moreau envelope, at 1/(2 Lf), of the envelope of the objective",
    r"\min_t\|\nabla\Phi_{1/2L_f}(\mathbf x^{(t)})\|^2",
    GRADIENT**2,
)
NO_MISMATCH = "if w = p it is what the weighted objective has, without the factor 2"
COROLLARY_1_1 = new_result(
    "corollary-1.1",
    "Stationarity of the objective that is meant",
    TRUE_ENVELOPE,
    "On every run, for the iterates of any algorithm, and for the average over the rounds as well. A client "
    "with p_i > 0 = w_i makes chi^2 infinite: nothing is known about it.",
    (
        Form(
            "printed",
            (
                Term("weighted objective", 2 * epsopt),
                Term("weight mismatch", 4 * chi2 * (betaG**2 * epsopt + sigmaG**2)),
                Term("maximizer mismatch", 4 * Lf**2 * lag),
            ),
            assumptions=assumptions.PRINTED,
            note="eq. (5), with beta_G where the paper prints beta_H",
        ),
        Form(
            "sharp",
            (Term("all three", (sqrt(epsopt) + sqrt(chi2 * (betaG**2 * epsopt + sigmaG**2)) + Lf * sqrt(lag)) ** 2),),
            assumptions=(assumptions.JOINTLY_SMOOTH, assumptions.HETEROGENEITY, assumptions.STRONGLY_CONCAVE),
            note=f"the triangle inequality in the mean over the rounds instead of 2 + 4 + 4; {NO_MISMATCH}",
        ),
    ),
    equations=("5",),
    conditions=(composites.SIMPLEX, MEANT),
    derived=composites.DERIVED,
)
COROLLARY_2_1 = new_result(
    "corollary-2.1",
    "Stationarity of the objective that is meant, nonconvex-concave",
    TRUE_MOREAU,
    "On every run. The gradient of a Moreau envelope at 1/(2 Lf) is 2 Lf times the way to the proximal "
    "point, so two envelopes differ by 4 Lf^2 times the squared distance of their proximal points.",
    (
        Form(
            "printed",
            (Term("weighted objective", epsbar), Term("proximal mismatch", 8 * Lf**2 * proxlag)),
            assumptions=assumptions.CONCAVE_PRINTED,
            refuted_by=MOREAU_ERRATUM,
            note="the main text, without the factor 2 of (55)",
        ),
        Form(
            "explicit",
            (Term("weighted objective", 2 * epsbar), Term("proximal mismatch", 8 * Lf**2 * proxlag)),
            note="eq. (55) of the appendix",
        ),
        Form(
            "sharp",
            (Term("both", (sqrt(epsbar) + 2 * Lf * sqrt(proxlag)) ** 2),),
            note=f"the triangle inequality in the mean over the rounds instead of 2 + 2; {NO_MISMATCH}",
        ),
    ),
    equations=("54", "55"),
    assumptions=(assumptions.JOINTLY_SMOOTH, assumptions.CONCAVE, assumptions.LIPSCHITZ),
)

# --- Corollaries 1.2 and 2.2: how many rounds until E|gradient| <= eps ---------------------------------------------

ROUNDS = single(
    "number of rounds after which the mean squared gradient norm of the envelope is at most eps^2", r"T_\epsilon", NONE
)
EQUAL_CLIENTS = (
    composites.SIMPLEX,
    composites.SAMPLED,
    Condition(n * MaxOverClients(notation.w), "==", Integer(1), "equal weights"),
    Condition(MaxOverClients(notation.tau), "==", taubar, "equal local steps"),
)
NO_HETEROGENEITY = Condition(1 + sigmaG / eps, "==", Integer(1), "clients alike at the zeros of the mean gradient")
EQUAL = (*EQUAL_CLIENTS, Condition(P, "==", n, "all clients take part"))
SAMPLE_ERRATUM = "rounds-of-a-sample"
COMPLEXITY_HIDDEN = "a factor, with sigma_L and sigma_G; L_f times the gap gives the unit"


AT_ITS_STEPS = THEOREM_1_AT_ITS_STEPS.form("sharp").terms
SLOW = sum((t.expression * SPEED for t in AT_ITS_STEPS[:-1]), Integer(0))  # over sqrt(P taubar T)
FAST = AT_ITS_STEPS[-1].expression * T  # over T: the local updates
ROUNDS_NEEDED = largest(
    4 * SLOW**2 / (P * taubar * eps**4), 2 * FAST / eps**2, *(condition.right for condition in ENOUGH_ROUNDS)
)
COROLLARY_1_2 = new_result(
    "corollary-1.2",
    "Rounds for nonconvex-strongly-concave problems",
    ROUNDS,
    "eps bounds the norm, as in the paper's tables; the theorems bound its square. With all clients and "
    "n tau of order T it is kappa^2/eps^2 rounds; at fixed tau it is kappa^4/(n tau eps^4).",
    (
        Form(
            "printed",
            (Term("rounds", kappa**2 * Lf * Delta / eps**2),),
            (*EQUAL, composites.CURVATURE),
            order_only=True,
            hides=COMPLEXITY_HIDDEN,
            note="full participation; the gradients per client, T tau, are of order kappa^4/(n eps^4)",
        ),
        Form(
            "printed:alike",
            (Term("rounds", kappa**2 * Lf * Delta / eps**2),),
            (*EQUAL_CLIENTS, NO_HETEROGENEITY, composites.CURVATURE),
            order_only=True,
            hides=COMPLEXITY_HIDDEN,
            refuted_by=SAMPLE_ERRATUM,
            note="partial participation with sigma_G = 0; the gradients, T tau, are of order kappa^4/(P eps^4)",
        ),
        Form(
            "printed:partial",
            (Term("rounds", (Lf * Delta) ** 2 / (P * eps**4)),),
            (*EQUAL_CLIENTS, composites.CURVATURE),
            order_only=True,
            hides=COMPLEXITY_HIDDEN + "; the proof leaves kappa out",
            note="partial participation, with tau of order 1; the gradients are of the same order",
        ),
        Form(
            "repaired",
            (Term("rounds", ceiling(ROUNDS_NEEDED)),),
            (*composites.LEGAL, composites.CURVATURE),
            assumptions.USED,
            note="the sharp Theorem 1 at its steps: half of eps^2 for what falls like 1/sqrt(T), half for the local "
            "updates, and the theorem's floors",
        ),
    ),
    assumptions=assumptions.PRINTED,
    derived=composites.DERIVED,
)


def rounds_until(part: sp.Expr, power: sp.Expr) -> sp.Expr:
    """How many rounds bring part/T^power to a fifth of eps^2."""
    return (5 * part / eps**2) ** (1 / power)


FREE_RESTART = 72 * Lf * R * (Rational(9, 32) * (nu * NOISE) ** 2 / MIXED) ** Rational(1, 3)
COROLLARY_2_2 = new_result(
    "corollary-2.2",
    "Rounds for nonconvex-concave problems",
    replace(
        ROUNDS, of="number of rounds after which the mean squared gradient norm of the Moreau envelope is at most eps^2"
    ),
    "eps bounds the norm. The printed 1/eps^4 rounds need a step in y that grows without bound, against "
    "the theorem's own cap; what follows from the theorem is 1/eps^6, and 1/eps^8 at fixed tau.",
    (
        Form(
            "printed",
            (Term("rounds", (Lf * Deltabar) ** 2 / eps**4),),
            EQUAL,
            order_only=True,
            hides=COMPLEXITY_HIDDEN + "; G_x and R",
            refuted_by=ROUNDS_ERRATUM,
            note="full participation; the gradients per client, T tau, are of order 1/(n eps^8), which does follow",
        ),
        Form(
            "printed:alike",
            (Term("rounds", (Lf * Deltabar) ** 2 / eps**4),),
            (*EQUAL_CLIENTS, NO_HETEROGENEITY),
            order_only=True,
            hides=COMPLEXITY_HIDDEN + "; G_x and R",
            refuted_by=ROUNDS_ERRATUM,
            note="partial participation with sigma_G = 0; the gradients, T tau, are of order 1/(P eps^8)",
        ),
        Form(
            "printed:partial",
            (Term("rounds", (Lf * Deltabar) ** 4 / (P * eps**8)),),
            EQUAL_CLIENTS,
            order_only=True,
            hides=COMPLEXITY_HIDDEN + "; G_x and R",
            note="partial participation, with tau of order 1; the gradients are of the same order",
        ),
        Form(
            "repaired",
            (
                Term(
                    "rounds",
                    ceiling(
                        largest(
                            rounds_until(DESCENT_NOISE, Rational(1, 2)),
                            rounds_until(CAPPED_ASCENT, Rational(1, 3)),
                            rounds_until(ASCENT_NOISE, Rational(1, 4)),
                            rounds_until(164 * nu * DRIFT / (Lf**2 * taubar**2), Rational(3, 4)),
                            rounds_until(72 * Lf * R / LARGEST_ASCENT, Integer(1)),
                            *(
                                rounds_until(FREE_RESTART / scale ** Rational(1, 3), sp.Add(1, -power / 3))
                                for power, scale in DESCENT_SCALES.items()
                            ),
                        )
                    ),
                ),
            ),
            composites.LEGAL,
            assumptions.CONCAVE_USED,
            note="a fifth of eps^2 for each term of the repaired Theorem 2: 1/eps^4 for the descent noise, 1/eps^6 for "
            "the capped ascent, 1/eps^8 for the ascent noise, which n tau divides",
        ),
    ),
    assumptions=assumptions.CONCAVE_PRINTED,
    derived=composites.WITHOUT_CURVATURE,
)
RESULTS = (COROLLARY_1_1, COROLLARY_1_2, COROLLARY_2_1, COROLLARY_2_2)
