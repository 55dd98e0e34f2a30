"""Lemmas B.3.1 and B.3.2: divergence from a weighted objective, and how far a client's models drift in one round."""

from dataclasses import dataclass

import sympy as sp
from sympy import Integer

from fedbounds.bounds.audit.axioms import Smooth, Starts
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.participation_rules import Centered, ClientMean, Triangle, given_past
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting
from fedbounds.bounds.audit.rules import Everywhere, Gram, Unroll, power_sum
from fedbounds.bounds.audit.vectors import Atom, Vec, product_symbol, square
from fedbounds.bounds.papers.fedau.assumptions import BOUNDED_DIVERGENCE, LOCAL, OBJECTIVE_WEIGHTS
from fedbounds.bounds.papers.fedau.lemmas import DRIFT_CAP, E_2, LEMMA_B_3_1, LEMMA_B_3_2, LEMMA_B_5_1, ONE_LOCAL_STEP
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof.averaged_sums import HalfStepSum, UnrollMean, half_step_ratio
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import MedianOverClients, SumOverClients
from fedbounds.bounds.theory.result import Result

PAPER = "fedau"
L, I, gamma, sigma, delta, deltatilde = n.L, n.I, n.gamma, n.sigma, n.delta, n.deltatilde
A1, A2, _, MARTINGALE, A3 = LOCAL
EACH = "for every client n and local step i < I"
WHOLE = "for every client n and i <= I"


@dataclass(frozen=True)
class DescentObjective:
    """What the one-step chain descends on: any f~ (Lemma B.3.3), or f itself (Lemma B.5.1)."""

    name: str  # how it is written
    proof: str  # the id of the chain's last proof; those before it carry a suffix
    result: Result  # the lemma that the chain ends at
    divergence: sp.Expr  # the bound on |grad F_n - grad f~| at x_t
    gap: sp.Expr  # N sum_n (p_n omega_n/N - varphi_n)^2
    moment: sp.Expr  # (1/N) sum_n p_n omega_n^2
    weights: tuple[Assumption, ...] = ()  # what is assumed of varphi_n; nothing if they are 1/N

    @property
    def drift(self) -> str:
        """The proof about one local step."""
        return f"{PAPER}/lemma-b.3.2" if self.weights else f"{self.proof}-drift"

    @property
    def average(self) -> str:
        """The proof about the mean over the local steps."""
        return f"{self.drift}-average"


def common_atoms(objective: str) -> tuple[Atom, ...]:
    """What every vector of a round starts from."""
    return (
        Atom("x0", "point", 0, "x_t, where the round starts", per_client=False, still=True),
        Atom("g0", "gradient", 0, "grad F_n at x_t", at="x0", mean="f0", still=True),
        Atom("f0", "gradient", 0, f"grad {objective} at x_t", at="x0", of=objective, per_client=False, still=True),
    )


def step_setting(objective: str) -> ProofSetting:
    """One local step of one client."""
    return ProofSetting.of(
        "one client n, whether or not it takes part; expectation over the noise, in round t before local step i",
        *common_atoms(objective),
        Atom("y", "point", 0, "y_{t,i}^n, the local model"),
        Atom("gy", "gradient", 0, "grad F_n at y", at="y"),
        Atom("xi", "noise", 0, "the noise of client n in this local step"),
        given="x_t and the weights",
    )


def round_setting(objective: str) -> ProofSetting:
    """All local steps of all clients in one round."""
    update = "(1/N) sum_n 1_n omega_n (v_n + a_n), the update divided by -gamma eta I"
    return ProofSetting.of(
        "mean over the local steps of round t, any one client n where a vector is its own; expectation over noise and "
        "participation",
        *common_atoms(objective),
        Atom("Y", "point", 1, "y_{t,i}^n, the local models before each step i < I"),
        Atom("GY", "gradient", 1, "grad F_n at Y", at="Y", mean="v"),
        Atom("Xi", "noise", 1, "the noise of client n in one local step", mean="a"),
        Atom("v", "gradient", 1, "V_n/I, the mean of grad F_n(Y) over the local steps", of="mean", mean="s"),
        Atom("a", "noise", 0, "a_n/I, the mean noise of client n over the local steps, drawn after x_t is known"),
        Atom("s", "gradient", 1, "Z_2/I = sum_n varphi_n v_n", of="sum of v", per_client=False),
        Atom("z", "gradient", 1, "(Z_1 + Z_2)/I = (1/N) sum_n p_n omega_n v_n", of="sum of v", per_client=False),
        Atom("d", "gradient", 1, update, of="sum of v + a", per_client=False, mean="z"),
        given="x_t and the weights",
    )


x0, g0, f0, y, gy, xi = (Vec.atom(name) for name in ("x0", "g0", "f0", "y", "gy", "xi"))
Y, GY, Xi, v, a, s, z, d = (Vec.atom(name) for name in ("Y", "GY", "Xi", "v", "a", "s", "z", "d"))
G = product_symbol("f0", "f0")
DRIFT, MEAN_DRIFT = square(y - x0), square(Y - x0)
AFTER = square(y - gamma * (gy + xi) - x0)
RATIO = half_step_ratio(I)
YOUNG = 1 / (2 * I - 1)
FIFTH = Relation(gamma, 1 / (5 * L * I))


def drift_adds(objective: DescentObjective) -> sp.Expr:
    """What one local step adds to the drift."""
    return gamma**2 * sigma**2 + 6 * I * gamma**2 * (objective.divergence**2 + G)


def drift_chain(objective: DescentObjective) -> Chain:
    """Lemma B.3.2, from one local step to all of them."""
    before = y - x0 - gamma * gy
    adds = drift_adds(objective)
    c = Chain(step_setting(objective.name), EACH)
    c["S0a", "the noise is uncorrelated with the model and the gradient of this step"] = by(
        given_past(xi, before), A2, MARTINGALE
    )
    c["S0", "one local step splits the drift into gradient and noise"] = by(
        eq(AFTER, square(before) + gamma**2 * square(xi)), "S0a"
    )
    c["S0b", "the noise of client n in one step, at its local model"] = le(square(xi), sigma**2), A2
    c["S1", "Young with 1/(2I - 1), eq. (B.1.3)"] = by(
        le(square(before), (1 + YOUNG) * DRIFT + 2 * I * gamma**2 * square(gy)), Gram()
    )
    three = square(gy - g0) + square(g0 - f0) + G
    c["S2", "Jensen for three gradients, eq. (B.1.1)"] = le(square(gy), 3 * three), Gram()
    c["S2a", "smoothness between the local model and x_t"] = Smooth("gy", "g0", L), A1
    enter_divergence(c, objective)
    grows = YOUNG + 6 * I * L**2 * gamma**2
    c["S3", "the recursion of the drift, eq. (B.3.4)"] = le(AFTER, (1 + grows) * DRIFT + adds), "S0 S0b S1 S2 S2a S2b"
    c["S3a", "5 is less than the root of 30", ""] = FIFTH, DRIFT_CAP
    c["S3b", "the step size keeps the ratio below 1 + 1/(I - 1/2)", ""] = le(grows, RATIO - 1), "S3a"
    c["S4", "the recursion with that ratio"] = le(AFTER, RATIO * DRIFT + adds), {"S3": 1, "S3b": DRIFT}
    c["S4a", "every client starts the round at x_t", "for i = 0"] = Starts(DRIFT, "y_{t,0}^n = x_t for every client")
    c["S4b", "the recursion unrolled over at most I local steps", WHOLE] = by(
        le(DRIFT, adds * power_sum(RATIO, I)), Unroll(DRIFT, AFTER, I), "S4a S4"
    )
    for name, constant, sum_, lemma in (
        ("", Integer(5), "5 I", ""), ("-sharp", 1 + E_2, "(e - 1) I", " with the smallest constant")
    ):  # fmt: skip
        c[f"S5{name}", f"the geometric sum is at most {sum_}", "for every whole I >= 1"] = HalfStepSum(I, constant)
        c[f"B.3.3{name}", f"Lemma B.3.2, eq. (B.3.3){lemma}", WHOLE] = by(
            le(DRIFT, constant * I * adds), {"S4b": 1, f"S5{name}": adds}
        )
    return c


def enter_divergence(c: Chain, objective: DescentObjective) -> None:
    """The divergence at x_t, the only point where it is used."""
    says = "Lemma B.3.1" if objective.weights else "Assumption 3"
    c["S2b", f"the divergence of grad F_n from grad {objective.name}, {says}", "for every client n, at x_t"] = by(
        le(square(g0 - f0), objective.divergence**2), BOUNDED_DIVERGENCE, *objective.weights
    )


def average_chain(objective: DescentObjective, one: Proof) -> Chain:
    """The drift averaged over the local steps: what the descent lemma uses of it."""
    adds, each = drift_adds(objective), "for every client n"
    c = Chain(round_setting(objective.name), each, (one,))
    c["S5'a", "the recursion unrolled, averaged over i < I"] = by(
        UnrollMean(DRIFT, AFTER, I, ratio=RATIO, adds=adds, names=(("y", "Y"),)), f"{one.id}/S4a {one.id}/S4"
    )
    c["S5'b", "the averaged geometric sum is at most (e - 2) I", "for every whole I >= 1"] = by(
        HalfStepSum(I, E_2, average=True)
    )
    c["S5'", "the averaged drift, which starts at 0"] = le(MEAN_DRIFT, E_2 * I * adds), {"S5'a": 1, "S5'b": adds}
    c["S5'one", "one local step uses the model before it only"] = by(
        Starts(MEAN_DRIFT, "y_{t,0}^n = x_t for every client, and i < I = 1", "<="), ONE_LOCAL_STEP
    )
    c["S5'five", "the average of (B.3.3)"] = Everywhere(of=DRIFT, is_=MEAN_DRIFT), f"{one.id}/B.3.3"
    return c


GENERAL = DescentObjective(
    "f~", f"{PAPER}/lemma-b.3.3", LEMMA_B_3_2, deltatilde, n.N * n.V, n.Z / n.N, (OBJECTIVE_WEIGHTS,)
)
ITSELF = DescentObjective("f", f"{PAPER}/lemma-b.5.1", LEMMA_B_5_1, delta, n.Wt, n.Qt)
TO_GRADSQ = {G: n.gradsq}


def drift_proofs(objective: DescentObjective) -> tuple[Proof, Proof]:
    """One local step, and the mean over all of them; the lemma's forms end here where f~ is any objective."""
    ends = ({"printed": "B.3.3", "sharp": "B.3.3-sharp"}, {"sharp:average": "S5'"}) if objective.weights else ({}, {})
    one = drift_chain(objective).proof(objective.drift, objective.result, ends[0], DRIFT, TO_GRADSQ)
    mean = average_chain(objective, one).proof(objective.average, objective.result, ends[1], MEAN_DRIFT, TO_GRADSQ)
    return one, mean


DRIFT_PROOF, AVERAGE_PROOF = drift_proofs(GENERAL)
DRIFT_OF_F, AVERAGE_OF_F = drift_proofs(ITSELF)

# --- Lemma B.3.1 ----------------------------------------------------------------------------------------------------

APART = ProofSetting.of(
    "any one client n where a vector is its own",
    Atom("x", "point", 0, "any point", per_client=False),
    Atom("gn", "gradient", 0, "grad F_n at x", at="x", mean="gt"),
    Atom("gf", "gradient", 0, "grad f at x", at="x", of="f", per_client=False),
    Atom("gt", "gradient", 0, "grad f~ at x", at="x", of="f~", per_client=False),
)
gn, gf, gt = Vec.atom("gn"), Vec.atom("gf"), Vec.atom("gt")
MEDIAN_SPREAD = SumOverClients(sp.Abs(n.varphi - MedianOverClients(n.varphi)))

c = Chain(APART, "for every client n and every point")
c["V1", "the divergence from f: grad F_n and grad f at one point"] = le(square(gn - gf), delta**2), A3
c["V2", "Jensen over the clients: grad f~ is a mean of the grad F_n"] = by(
    ClientMean(gn - gf, uniform=False), "V1", OBJECTIVE_WEIGHTS
)
c["V3", "the square of a difference"] = le(square(gn - gt), 2 * square(gn - gf) + 2 * square(gt - gf)), Gram()
c["B.3.2", "Lemma B.3.1, eq. (B.3.2)"] = le(square(gn - gt), 4 * delta**2), "V3 V1 V2"
c["V4", "the deviations sum to zero, so the median may be taken off every weight"] = by(
    Centered("gn", "gf", n.varphi, MedianOverClients(n.varphi)), "V1", OBJECTIVE_WEIGHTS
)
c["V4a", "the same, exchanged"] = le(square(gf - gt), (MEDIAN_SPREAD * delta) ** 2), "V4"
c["V5", "Lemma B.3.1 with the smallest sum of deviations"] = by(
    Triangle(gn - gf, gf - gt, (delta, MEDIAN_SPREAD * delta)), "V1 V4a"
)
DIVERGENCE_PROOF = c.proof(f"{PAPER}/lemma-b.3.1", LEMMA_B_3_1, {"printed": "B.3.2", "sharp": "V5"}, square(gn - gt))
