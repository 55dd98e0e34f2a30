r"""Lemma 1, eqs. (23) to (29), and Lemma 2, eqs. (31) to (57), with two sharper sums of the same drift."""

from sympy import Integer

from fedbounds.bounds.audit.axioms import ByMeaning, MeanOf, Smooth, Starts, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting
from fedbounds.bounds.audit.rules import Combine, Gram
from fedbounds.bounds.audit.vectors import Atom, inner, square
from fedbounds.bounds.papers.tdcd.assumptions import BLOCK_SMOOTH, UNBIASED_CLIENTS, UNBIASED_SILOS
from fedbounds.bounds.papers.tdcd.lemmas import LEMMA_1, LEMMA_2
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.proof import symbols
from fedbounds.bounds.papers.tdcd.proof.rules import Compound, SummedGrowth, SummedRecursion
from fedbounds.bounds.papers.tdcd.proof.symbols import (
    GROWN,
    OF_A_SILO,
    PSI,
    STEP,
    TO_SYMBOLS,
    f,
    g0,
    gn,
    gp,
    nb,
    xi,
    yn,
    yp,
)
from fedbounds.bounds.papers.tdcd.results import KAPPA, LEMMA_CAP
from fedbounds.bounds.theory.assumptions import Assumption

Lmax, Q, eta = n.Lmax, n.Q, n.eta

# --- Lemma 1 --------------------------------------------------------------------------------------------------------

ONE_SILO = ProofSetting.of(
    "expectation, mean over the clients of silo j",
    Atom("f", "gradient", 0, "the partial gradient of f in block j", at="x", of="f", per_client=False),
    Atom("g0", "gradient", 0, "g_kj of the round's batch at the synchronized model", at="x"),
    Atom("xi", "noise", 0, "the noise of g0: g0 less the partial gradient", mean="nb"),
    Atom("nb", "noise", 0, "the clients' mean of the xi", per_client=False),
)


def enter_first_gradient(c: Chain, name: str, says: str, assumption: Assumption = UNBIASED_SILOS) -> None:
    """What is unbiased is the clients' mean, or every client."""
    c[f"{name}a", "g^0 is the gradient and noise, by definition"] = by(
        ByMeaning("Noise", inner(f, g0), square(f) + inner(f, xi), op="==")
    )
    drawn = xi
    if assumption == UNBIASED_SILOS:
        drawn = nb
        c[f"{name}b", "the gradient of f is the same for all clients of a silo"] = MeanOf(xi, f, OF_A_SILO, ())
    axiom = "noise has mean zero given the synchronized model, drawn before it"
    c[f"{name}c", "noise of mean zero"] = Uncorrelated(drawn, f, axiom, (assumption.name,)), assumption
    steps = f"{name}a {name}b {name}c" if drawn == nb else f"{name}a {name}c"
    c[name, says] = eq(inner(f, g0), square(f)), steps


def first_gradient_proof(suffix: str, form: str, setting: ProofSetting, quantifier: str) -> Proof:
    """The bias-variance identity, for one client or for the clients' mean."""
    c = Chain(setting, quantifier)
    assumption = UNBIASED_SILOS if form == "repaired" else UNBIASED_CLIENTS
    enter_first_gradient(c, "24", "the mean of g is the partial gradient, eqs. (24) to (27)", assumption)
    c["28", "its variance, eq. (28)"] = le(square(g0 - f), n.sigmaj**2), assumption
    c["23", "both together, eqs. (23) and (29)"] = le(square(g0), n.sigmaj**2 + square(f)), "24 28"
    to_symbols = {symbols.SQUARED_GRADIENT: n.gradsq}
    return c.proof(f"{LEMMA_1.key}{suffix}", LEMMA_1, {form: "23"}, square(g0), to_symbols)


ONE_CLIENT = ProofSetting("expectation, for one client", ONE_SILO.atoms)
FIRST_PROOFS = (
    first_gradient_proof("", "repaired", ONE_SILO, "in every silo"),
    first_gradient_proof("-client", "printed", ONE_CLIENT, "for every client"),
)

# --- Lemma 2 --------------------------------------------------------------------------------------------------------

NOW, AFTER, FIRST = square(gp - g0), square(gn - g0), square(g0)
x = eta * Lmax

c = Chain(symbols.LOCAL, STEP)
c["0", "before the first local step nothing has moved", "in every round"] = Starts(NOW, "the first gradient is g^0")
c["1", "Young's inequality with n = Q, eqs. (31) to (33)"] = by(
    le(AFTER, (1 + Q) * square(gn - gp) + (1 + 1 / Q) * NOW), Gram()
)
c["2a", "a client moves its own block alone, by its own gradient"] = by(
    ByMeaning("LocalStep", square(yn - yp), eta**2 * square(gp), op="==", axiom="the algorithm: a local step, eq. (5)")
)
c["2b", "Assumption 1, on the batch of the round, eq. (34)"] = by(
    Smooth("gn", "gp", Lmax, axiom="smoothness in block j of g_kj for a frozen batch", needs=(BLOCK_SMOOTH.name,)),
    BLOCK_SMOOTH,
)
c["2", "the change in one local step, eq. (35)"] = by(
    le(square(gn - gp), x**2 * square(gp)), {"2b": 1, "2a": Lmax**2}
)  # fmt: skip
c["3a", "gradients against those at the start, eqs. (36) and (37)"] = le(square(gp), 2 * NOW + 2 * FIRST), Gram()
adds = 2 * (1 + Q) * x**2
c["3", "one local step, eq. (38)"] = by(
    le(AFTER, (adds + 1 + 1 / Q) * NOW + adds * FIRST), {"1": 1, "2": 1 + Q, "3a": (1 + Q) * x**2}
)
c["4", "the bracket, eqs. (40) to (43)", ""] = le(adds + 1 + 1 / Q, 1 + 2 / Q), Combine(), LEMMA_CAP
c["5", "the recursion, eqs. (44) and (45)"] = by(
    le(AFTER, (1 + 2 / Q) * NOW + adds * FIRST), {"3": 1, "4": NOW}, LEMMA_CAP
)  # fmt: skip
c["6", "unrolled and summed, eqs. (46) to (54)", symbols.EACH] = SummedRecursion(NOW, AFTER, Q, PSI), "0 5"
c["6'", "in the paper's symbols, eq. (54)", symbols.EACH] = le(PSI, adds * Q**2 * KAPPA * FIRST), {"6": 1}
c["7a", "(1 + 2/Q)^Q is below e^2, which is below 11", ""] = Compound(Integer(2), Q, Integer(11))
c["7", "eqs. (55) to (57)", symbols.EACH] = by(
    le(PSI, 4 * Q**2 * (1 + Q) * x**2 * FIRST), {"6'": 1, "7a": adds * Q**2 / 4 * FIRST}
)
grown = (1 + x) * GROWN + x
c["8", "instead of (31) to (38), for every rho > 0: Young's inequality twice"] = by(
    le(AFTER, grown * ((1 + x) / GROWN * NOW + x * FIRST)), {"2": grown / (x * (1 + GROWN))}
)
c["9", "with rho the growth so far, and summed", symbols.EACH] = by(
    SummedGrowth(NOW, AFTER, GROWN, x, FIRST, Q, PSI), "0 8"
)  # fmt: skip
ENDS = {"repaired": "7", "sharp:kappa": "6'", "sharp:growth": "9"}
DRIFT_PROOF = c.proof(LEMMA_2.key, LEMMA_2, ENDS, substitute=TO_SYMBOLS)
PROOFS = (*FIRST_PROOFS, DRIFT_PROOF)
