"""The proof: the descent lemma, solved for the gradient, summed over the steps."""

from bounds.audit.axioms import Descent
from bounds.audit.claim import Relation
from bounds.audit.rules import Combine, Telescope
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Atom, Vec, inner, square
from sympy import Symbol

from gradient_descent.notation import BELOW, SMOOTH
from gradient_descent.results import CAP, LEAST, THEOREM, F, L, T, eta

X = Atom("x", "point", 0, "x_t", per_client=False)
G = Atom("g", "gradient", 0, "grad f(x_t)", at="x", of="f", per_client=False)
SETTING = Setting("the inner product itself: nothing is random", {atom.name: atom for atom in (X, G)})

g = Vec.atom("g")
STEP = -eta * g  # x_{t+1} - x_t
decrease = Symbol("decrease", real=True)  # f(x_t) - f(x_{t+1})
KEPT = 2 / (eta * (2 - L * eta))
EVERY = "for every t < T"

PROOF = Proof(
    "gradient-descent/proof",
    SETTING,
    (
        Step(
            "1",
            "descent lemma for one step",
            Relation(-decrease, inner(g, STEP) + L / 2 * square(STEP)),
            Descent("g", STEP, decrease, L),
            (SMOOTH,),
            EVERY,
        ),
        Step(
            "2",
            "solved for the gradient",
            Relation(square(g), KEPT * decrease),
            Combine((KEPT,)),
            ("1", CAP),
            EVERY,
        ),
        Step(
            "3",
            "the average over the steps",
            Relation(measure_symbol(LEAST), KEPT * F / T),
            Telescope(decrease, F, T, measure_symbol(LEAST), of=square(g)),
            ("2", BELOW, CAP),
        ),
    ),
    THEOREM,
    ends={"explicit": "3"},
)
