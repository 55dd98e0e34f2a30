"""The vectors of one round, and what their inner products add up."""

from sympy import Symbol

from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.vectors import Atom, Vec, product_symbol
from fedbounds.bounds.papers.tdcd.lemmas import LEMMA_2
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n

SUMMED = "expectation, sum over the silos, mean over the clients of each"
EACH, STEP = "in every round", "in every round, before every local step s"

# within a round, from one local step to the next
LOCAL = ProofSetting.of(
    SUMMED,
    Atom("yp", "point", 0, "the model as client k of silo j sees it before its local step s"),
    Atom("yn", "point", 0, "the same before its local step s + 1"),
    Atom("g0", "gradient", 0, "g_kj of the round's batch at the synchronized model", at="x", still=True),
    Atom("gp", "gradient", 0, "g_kj of the round's batch before local step s", at="yp"),
    Atom("gn", "gradient", 0, "g_kj of the round's batch before local step s + 1", at="yn"),
)
yp, yn, gp, gn = (Vec.atom(name) for name in ("yp", "yn", "gp", "gn"))

# a round as a whole
ROUND = ProofSetting.of(
    f"{SUMMED}, mean over the Q local steps",
    Atom("f", "gradient", 0, "grad f at the synchronized model", at="x", of="f", per_client=False),
    Atom("g0", "gradient", 0, "g_kj of the round's batch at the synchronized model", at="x", mean="m0"),
    Atom("m0", "gradient", 0, "G^0, the clients' mean of the g0", at="x", of="mean", per_client=False),
    Atom("xi", "noise", 0, "the noise of g0: g0 - grad_j f", mean="nb"),
    Atom("nb", "noise", 0, "the clients' mean of the xi", per_client=False),
    Atom("gs", "gradient", 1, "g_kj of the round's batch before local step s", at="y", mean="ms"),
    Atom("x", "point", 0, "the synchronized model", per_client=False),
    Atom("xs", "point", 1, "the virtual average before local step s", per_client=False),
    Atom("fs", "gradient", 1, "grad f there", at="xs", of="f", per_client=False),
    Atom("ms", "gradient", 1, "the mean over clients and local steps of the gs", of="mean", per_client=False),
)
f, g0, m0, xi, nb, gs, ms = (Vec.atom(name) for name in ("f", "g0", "m0", "xi", "nb", "gs", "ms"))
x, xs, fs = (Vec.atom(name) for name in ("x", "xs", "fs"))
OF_A_SILO = "the clients of a silo have equal weights in its mean, and so have its local steps"

SQUARED_GRADIENT = product_symbol("f", "f")
PSI = measure_symbol(LEMMA_2.measure)
DECREASE = Symbol("[E f(x_t0) - E f(x_t0+Q)]", real=True)
GROWN = Symbol("rho", positive=True)  # by what the gradients have changed so far, any positive number
TO_SYMBOLS = {product_symbol("g0", "g0"): n.G0}
