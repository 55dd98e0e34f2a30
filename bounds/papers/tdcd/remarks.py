r"""Remark 5, with its constants and its condition, and Theorem 1 within a given time: $t_Q=3t_{comm}+Qt_{comp}$."""

import sympy as sp
from sympy import floor, sqrt

from fedbounds.bounds.papers.tdcd.assumptions import AS_USED, BOUNDED
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.notation import new_result
from fedbounds.bounds.papers.tdcd.results import FROM_SILOS, LARGEST, SYNCHRONIZED, THEOREM_1
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import Derived

L, Lmax, Deltainf, S, Q, R, c, W, tcomm, tcomp = n.L, n.Lmax, n.Deltainf, n.S, n.Q, n.R, n.c, n.W, n.tcomm, n.tcomp

# --- Remark 5 -------------------------------------------------------------------------------------------------------

SCALED = c / (Q * sqrt(R))
BEST = sqrt(Deltainf / (L * S))
ENOUGH = Condition(R, ">=", 64 * c**2 * LARGEST**2, "(14) at this step size, which Remark 5 does not mention", R)
ENOUGH_FOR_BEST = Condition(R * L * S, ">=", 64 * Deltainf * LARGEST**2, "(14) at this step size", R)


def scaled_terms(scale: sp.Expr) -> tuple[Term, ...]:
    r"""Eq. (15) at $\eta=\text{scale}/(Q\sqrt R)$."""
    return (
        Term("initial gap", 4 * Deltainf / (scale * sqrt(R))),
        Term("gradient noise", 4 * scale * L * S / sqrt(R)),
        Term("local drift", 16 * scale**2 * Lmax**2 * S / R + 32 * scale**3 * L * Lmax**2 * S / sqrt(R) ** 3),
    )


REMARK_5 = new_result(
    "remark-5",
    "The rate in rounds",
    SYNCHRONIZED,
    "Step size c/(Q sqrt(R)): the bound falls like 1/sqrt(R), whatever Q is. In iterations T = QR that is "
    "sqrt(Q/T): more local steps cost accuracy at equal T.",
    (
        Form(
            "printed",
            (Term("rate", 1 / sqrt(R)),),
            order_only=True,
            hidden=(L, Lmax, Deltainf, S, c),
            asymptotic="R -> infinity",
            note="O(1/sqrt(R)) for step sizes proportional to 1/(Q sqrt(R)), read with Theorem 1 as it holds",
        ),
        Form(
            "explicit",
            scaled_terms(c),
            (ENOUGH,),
            derived=FROM_SILOS,
            note="the same with its constants, and the number of rounds from which (14) allows it",
        ),
        Form(
            "explicit:best-c",
            (
                Term("initial gap", 4 * sqrt(Deltainf * L * S) / sqrt(R)),
                Term("gradient noise", 4 * sqrt(Deltainf * L * S) / sqrt(R)),
                Term(
                    "local drift",
                    16 * Deltainf * Lmax**2 / (L * R)
                    + 32 * sqrt(Deltainf) ** 3 * Lmax**2 / (sqrt(L * S) * sqrt(R) ** 3),
                ),
            ),
            (ENOUGH_FOR_BEST,),
            prescribes={"eta": BEST / (Q * sqrt(R))},
            derived=FROM_SILOS,
            note="c = sqrt(Deltainf/(L S)), at which the two leading terms are equal",
        ),
    ),
    default="explicit",
    assumptions=(*AS_USED, BOUNDED),
    prescribes={"eta": SCALED},
)

# --- Theorem 1 within a given time ----------------------------------------------------------------------------------

LATENCY = 3 * tcomm + Q * tcomp  # of one round, Section 5
ROUNDS_IN_TIME = floor(W / LATENCY)
AFFORDED = Derived("R", ("W", "tcomm", "Q", "tcomp"), ROUNDS_IN_TIME, "as many rounds as fit into W")
ONE_ROUND = Condition(W, ">=", LATENCY, "one round fits into the time", W)


def form_within_time(form: Form) -> Form:
    """A form of Theorem 1 with as many rounds as fit into the time."""
    return Form(
        form.name,
        tuple(Term(t.name, t.expression.xreplace({R: ROUNDS_IN_TIME})) for t in form.terms),
        (*form.conditions, ONE_ROUND),
        form.assumptions,
        derived=(*form.derived, AFFORDED),
        note=f"{form.note}; R = floor(W/(3 tcomm + Q tcomp))",
    )


WALL_CLOCK = new_result(
    "wall-clock",
    "What a given time buys",
    SYNCHRONIZED,
    "Theorem 1 with as many rounds as fit into the time W, a round taking 3 tcomm + Q tcomp. With a given "
    "step size there is a best number of local steps, near sqrt(3 Delta tcomm/(eta^2 L S W)) where noise is what "
    "limits it; with a step size that is chosen anew for every Q it is 1, since the bound sees eta Q alone.",
    tuple(form_within_time(THEOREM_1.form(name)) for name in ("repaired", "repaired:B0inf", "sharp:B3")),
    number="Section 5, the latency of a round, with Theorem 1",
    default="sharp:B3",
)
RESULTS = (REMARK_5, WALL_CLOCK)
