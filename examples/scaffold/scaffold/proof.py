r"""The form for K = 1, full participation and no noise.

A client moves by $-\eta_l(g_i-c_i+c)$, and $c$ is the mean of the $c_i$: on average by $-\eta_l\nabla f(x)$.
Nobody has proved Theorem III here.
"""

from sympy import Symbol

from fedbounds.authoring.proof import Atom, Chain, Descent, ProofSetting, Telescope, Vec, by, le, measure_symbol, square
from scaffold.notation import BELOW, BETA_SMOOTH
from scaffold.results import DESCENDS, THEOREM, F, R, beta, eta

X = Atom("x", "point", 0, "x_r", per_client=False)
G = Atom("g", "gradient", 0, "grad f(x_r)", at="x", of="f", per_client=False)
SETTING = ProofSetting("the inner product itself: nothing is random", {atom.name: atom for atom in (X, G)})
g = Vec.atom("g")
decrease = Symbol("decrease", real=True)  # f(x_r) - f(x_{r+1})
KEPT = 2 / (eta * (2 - beta * eta))
MEASURE = measure_symbol(THEOREM.measure)

c = Chain(SETTING, "for every r < R")
c["1", "descent lemma for one round"] = Descent("g", -eta * g, decrease, beta), BETA_SMOOTH
c["2", "solved for the gradient"] = le(square(g), KEPT * decrease), "1", DESCENDS
c["3", "the average over the rounds", ""] = by(
    le(MEASURE, KEPT * F / R),
    Telescope(decrease, F, R, MEASURE, of=square(g)),
    *("2", BELOW, DESCENDS),
)
PROOF = c.proof("scaffold/proof", THEOREM, {"explicit:K=1": "3"})
