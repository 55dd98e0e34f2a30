r"""The standard facts of Appendix A, each as it is used: about gradients as vectors, and about one smooth function."""

from dataclasses import replace

from sympy import Expr

from fedbounds.bounds.papers.fed_norm_sgda.composites import SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import lemma
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import SumOverClients
from fedbounds.bounds.theory.measures import Measure, single
from fedbounds.bounds.theory.problem_class import ASKED
from fedbounds.bounds.theory.result import Condition, Form, Result, Term
from fedbounds.bounds.theory.symbols import GRADIENT, OBJECTIVE, PARAMETER, length_of

SMOOTH = Assumption("smooth", "|grad g(x) - grad g(x')| <= Lf |x - x'| for all x, x'", "Lemma A.6, A.7", cover=ASKED)
CONVEX = Assumption("convex", "g is convex", "Lemma A.6", cover=ASKED)
CONVEX_F = Assumption("convex", "f is convex", "Lemma A.3", cover=ASKED)
BELOW = Assumption("bounded-below", "g has a finite infimum g*", "Lemma A.7", cover=ASKED)
STRONGLY_CONVEX = Assumption(
    "strongly-convex", "g is mu-strongly convex, with its minimizer x*", "Lemma A.5", cover=ASKED
)
STRONGLY_CONCAVE = Assumption("strongly-concave", "g is mu-strongly concave", "Lemma A.2", cover=ASKED)


def fact(
    number: str,
    title: str,
    measure: Measure,
    forms: tuple[Form, ...],
    statement: str = "",
    part: str = "",
    equations: tuple[str, ...] = (),
) -> Result:
    """One lemma of Appendix A, or one part of it."""
    made = lemma(number, title, equations, measure, statement, forms)
    return replace(made, key=f"{made.key}{part}")


def printed(name: str, bound: Expr, *assumptions: Assumption, conditions: tuple[Condition, ...] = ()) -> tuple[Form]:
    """A fact that is true as printed."""
    return (Form("printed", (Term(name, bound),), conditions, assumptions, note="as printed"),)


LEMMA_A_1 = fact(
    "A.1",
    "Young's inequality",
    single("inner product of two vectors", r"\langle u,v\rangle", GRADIENT**2, signed=True),
    (Form("printed", (Term("first", n.usq / (2 * n.young)), Term("second", n.young * n.vsq / 2)), note="as printed"),),
    "For every gamma > 0; usq and vsq are the two squared norms.",
)
LEMMA_A_2 = fact(
    "A.2",
    "A strongly concave function below its tangents",
    single("difference of two values of a strongly concave function", "g(y)-g(y')", OBJECTIVE, signed=True),
    (
        Form(
            "repaired",
            (Term("slope", n.slope), Term("concavity", -n.mu / 2 * n.distsq)),
            (),
            (STRONGLY_CONCAVE,),
            note="the tangent at y' lies above, less the concavity; printed with y' - y for y - y', a slip",
        ),
    ),
    "slope is that at y', along y - y'.",
)
SQUARE_OF_MEAN = single("squared norm of a weighted mean of vectors", r"\|\sum_iw_iu_i\|^2", GRADIENT**2)
LEMMA_A_3 = fact(
    "A.3",
    "Jensen's inequality",
    single("value of a convex function at a weighted mean of points", r"f(\sum_iw_iu_i)", OBJECTIVE, signed=True),
    (
        *printed("mean of the values", SumOverClients(n.w * n.fvalues), CONVEX_F, conditions=(SIMPLEX,)),
        Form(
            "printed:squares",
            (Term("mean square", SumOverClients(n.w * n.squares)),),
            (SIMPLEX,),
            measure=SQUARE_OF_MEAN,
            note="of the squared norm, as the proofs use it",
        ),
    ),
    "fvalues holds f at each point, squares the squared norm of each vector.",
)
LEMMA_A_4 = fact(
    "A.4",
    "The square of a sum of n vectors",
    single("squared norm of a sum of n vectors", r"\|\sum_iu_i\|^2", GRADIENT**2),
    printed("squares", n.n * SumOverClients(n.squares)),
    "squares holds the squared norm of each vector.",
)
LEMMA_A_4 = replace(
    LEMMA_A_4,
    forms=tuple(replace(form, derived=(*form.derived, length_of("squares", "n"))) for form in LEMMA_A_4.forms),
)
LEMMA_A_5 = fact(
    "A.5",
    "Quadratic growth",
    single("squared distance to the minimizer", r"\|x^*-x\|^2", PARAMETER**2),
    printed("growth", 2 * n.excess / n.mu, STRONGLY_CONVEX),
    "excess is g(x) - g*.",
)
LEMMA_A_5_GRADIENT = fact(
    "A.5",
    "The gradient from below",
    single("value of a function less its minimum", "g(x)-g^*", OBJECTIVE),
    printed("gradient", n.usq / (2 * n.mu), STRONGLY_CONVEX),
    "usq is the squared gradient norm at x: the Polyak-Lojasiewicz inequality.",
    "-gradient",
)
LEMMA_A_6 = fact(
    "A.6",
    "Two gradients of a smooth convex function",
    single("squared difference of two gradients", r"\|\nabla g(y)-\nabla g(x)\|^2", GRADIENT**2),
    printed("above the tangent", 2 * n.Lf * n.bregman, SMOOTH, CONVEX),
    "bregman is g(y) less its tangent at x.",
    equations=("10",),
)
LEMMA_A_7 = fact(
    "A.7",
    "The gradient of a smooth function from above",
    single("squared gradient norm of a smooth function bounded below", r"\|\nabla g(x)\|^2", GRADIENT**2),
    printed("excess", 2 * n.Lf * n.excess, SMOOTH, BELOW),
    "Convexity is not needed.",
    equations=("11",),
)
RESULTS = (LEMMA_A_1, LEMMA_A_2, LEMMA_A_3, LEMMA_A_4, LEMMA_A_5, LEMMA_A_5_GRADIENT, LEMMA_A_6, LEMMA_A_7)
