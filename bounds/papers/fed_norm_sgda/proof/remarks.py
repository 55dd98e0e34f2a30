r"""Remarks 1, 3 and 6 from the theorem and from the assumptions."""

import sympy as sp
from sympy import Integer, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning, SumOfNoise
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, condition_fact, measure_symbol
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, HETEROGENEITY
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE, LEGAL
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import EQUAL_CLIENTS
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof.ascent import G_MEAN, ON_AVERAGE, SETTING
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import NOISE
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import DESCENT_SETTING
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem import REPAIRED, SHARP, THEOREM_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.remarks import PLAIN, REMARK_1, REMARK_3, REMARK_6
from fedbounds.bounds.papers.fed_norm_sgda.results import ENOUGH_ROUNDS, THEOREM_1_AT_ITS_STEPS
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

# --- Remark 1 -------------------------------------------------------------------------------------------------------

VALUES = (  # the composite constants where all clients have the weight 1/n and take tau plain steps
    (n.A_w, Integer(1)),
    (n.B_w, Integer(1)),
    (n.E_w, Integer(1)),
    (n.C_w, n.taubar - 1),
    (n.D, (n.taubar - 1) * (n.taubar - 1 + n.betaL**2)),
)
SAID = (EQUAL_CLIENTS[0], *EQUAL_CLIENTS[2:], *PLAIN)


# (6) repaired: Theorem 1 at its steps with these values, one after the other
s = Chain(DESCENT_SETTING, cites=(THEOREM_1_AT_ITS_STEPS,))
for k, condition in enumerate(SAID):
    s[f"R{k}", condition.why] = condition
SO = tuple(map(condition_fact, SAID))
for symbol, value in VALUES:
    alike = ByMeaning("AllAlike", symbol, value, op="==", given=SO)
    s[f"{symbol}", "all clients are alike"] = alike, " ".join(f"R{k}" for k in range(len(SAID)))
at = sp.expand(THEOREM_1_AT_ITS_STEPS.form("sharp").bound)
s["6-general", "Theorem 1 at its steps"] = by(
    le(G_MEAN, at), f"{THEOREM_1_AT_ITS_STEPS.key}[sharp]", *LEGAL, CURVATURE, *ENOUGH_ROUNDS
)
start, at = at, at.xreplace({n.taueff: n.taubar})
factor = sp.cancel((start - at) / (n.taueff - n.taubar))
s["6-taueff", "with taueff = tau"] = le(G_MEAN, at), {"6-general": 1, f"R{len(SAID) - 1}": factor}
source = "6-taueff"
for symbol, value in VALUES:
    slope, at = sp.diff(at, symbol), sp.expand(at.xreplace({symbol: value}))
    s[f"6-{symbol}", f"with {symbol} = {value}"] = le(G_MEAN, at), {source: 1, f"{symbol}": slope}
    source = f"6-{symbol}"
REMARK_1_PROOF = s.proof(REMARK_1.key, REMARK_1, {"repaired": "6-D"})

# --- Remark 3 -------------------------------------------------------------------------------------------------------


# Theorem 1, whose proof uses no more of concavity than the PL condition gives
s = Chain(SETTING, cites=(THEOREM_PROOF,))
for name, source, constants in (("PL", "18", REPAIRED), ("PL-sharp", "18-sharp", SHARP)):
    s[name, "Theorem 1 as it is"] = le(G_MEAN, sp.expand(constants.bound)), f"{THEOREM_PROOF.id}/{source}"
ENDS = {"repaired": "PL", "sharp": "PL-sharp"}
PL_THEOREM_PROOF = s.proof(REMARK_3.key, REMARK_3, ENDS, substitute=ON_AVERAGE)

# --- Remark 6 -------------------------------------------------------------------------------------------------------

EACH, MEAN = Symbol("[|noise of client i|^2]", nonnegative=True), Symbol("[mean of |grad f_i|^2]", nonnegative=True)
OWN = Symbol("[|grad f_i|^2]", nonnegative=True)
OF_CLIENTS, OF_SAMPLES = (measure_symbol(form.measure or REMARK_6.measure) for form in REMARK_6.forms[:2])
MEANS = {OF_CLIENTS: MEAN, OF_SAMPLES: n.gradxsq}  # whose squared gradients the noise of each mean grows with
LEVEL = n.sigmaL**2 + n.betaL**2 * OWN


def mean_of_noise(noise: sp.Symbol) -> SumOfNoise:
    """The noise of a mean of n clients, or of n samples at one."""
    why, needs = (
        "noise of different clients, and of different samples, is uncorrelated",
        (*NOISE, "independent-clients"),
    )
    return SumOfNoise(noise, EACH, OWN, 1 / n.n, MEANS[noise] / n.n, why, needs)


SPREAD = n.betaG**2 * n.gradxsq + n.sigmaG**2

s = Chain(ProofSetting("one point", {}))
s["each", "Assumption 2 at one point, in one block"] = le(EACH, LEVEL), BLOCK_NOISE
for name, of_mean in (("clients", OF_CLIENTS), ("samples", OF_SAMPLES)):
    s[name, f"the mean of n {name}"] = mean_of_noise(of_mean), "each", BLOCK_NOISE, MARTINGALE, INDEPENDENT_CLIENTS
s["spread", "Assumption 3 at one point, in one block"] = le(MEAN, SPREAD), HETEROGENEITY
s["6", "Remark 6"] = le(OF_CLIENTS, sp.expand(n.sigmaL**2 / n.n + n.betaL**2 / n.n * SPREAD)), "clients spread"
REMARK_6_PROOF = s.proof(REMARK_6.key, REMARK_6, {"repaired": "6", "repaired:one-node": "samples"})
REMARK_PROOFS = (REMARK_1_PROOF, PL_THEOREM_PROOF, REMARK_6_PROOF)
