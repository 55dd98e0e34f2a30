"""The proof: the descent lemma, solved for the gradient, summed over the steps."""

from fedbounds.authoring.proof import Atom, Chain, Descent, ProofSetting, Telescope, Vec, by, le, measure_symbol, square
from sympy import Symbol

from gradient_descent.notation import BELOW, SMOOTH
from gradient_descent.results import CAP, LEAST, THEOREM, F, L, T, eta

X = Atom("x", "point", 0, "x_t", per_client=False)
G = Atom("g", "gradient", 0, "grad f(x_t)", at="x", of="f", per_client=False)
SETTING = ProofSetting("the inner product itself: nothing is random", {atom.name: atom for atom in (X, G)})

g = Vec.atom("g")
STEP = -eta * g  # x_{t+1} - x_t
decrease = Symbol("decrease", real=True)  # f(x_t) - f(x_{t+1})
KEPT = 2 / (eta * (2 - L * eta))

c = Chain(SETTING, "for every t < T")
c["1", "descent lemma for one step"] = Descent("g", STEP, decrease, L), SMOOTH
c["2", "solved for the gradient"] = le(square(g), KEPT * decrease), "1", CAP
c["3", "the average over the steps", ""] = by(
    le(measure_symbol(LEAST), KEPT * F / T),
    Telescope(decrease, F, T, measure_symbol(LEAST), of=square(g)),
    *("2", BELOW, CAP),
)
PROOF = c.proof("gradient-descent/proof", THEOREM, {"explicit": "3"})
