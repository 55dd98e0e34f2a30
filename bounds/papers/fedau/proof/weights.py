r"""Lemma B.6.1 and Theorem 3: one participation interval, one weight, and the weights of all clients and rounds.

(B.6.8)(a) and (b) treat the random number of intervals as fixed, which is false for $t<K$. Instead, given their number
the completed intervals are exchangeable: the mean of $\omega_t$ is that of the first interval, and $\omega_t$ is the
conditional mean of the average of the first $\lfloor t/K\rfloor$ intervals.
"""

from sympy import Expr, Integer, Min, Sum, Symbol, floor, log

from fedbounds.bounds.audit.averages import AverageOverClients, HarmonicAverage, StandsFor
from fedbounds.bounds.audit.axioms import Assumed
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import Lemma, Specialize
from fedbounds.bounds.audit.induction import Induction
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.transcendental import Opened
from fedbounds.bounds.papers.fedau.assumptions import CUT_OFF_LAW, FEDAU
from fedbounds.bounds.papers.fedau.corollaries import LEMMA_B_6_1, LEMMA_B_6_1_VARIANCE
from fedbounds.bounds.papers.fedau.harmonic import HarmonicNumber
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof.whole_numbers import Cases, Division
from fedbounds.bounds.papers.fedau.results import THEOREM_3, TWO_ROUNDS

PAPER = "fedau"
K, N, T, p, rate = n.K, n.N, n.T, n.p, n.rate
NO_VECTORS = ProofSetting("no vectors: constants only", {}, given="nothing")

cut = Symbol("cut", integer=True, positive=True)
k = Symbol("k", integer=True, positive=True)
WHOLE_CUT = "a cut-off K is a whole number; without one both sides are their limits as K grows"


def law(power: int, chance: Expr) -> Expr:
    """E S^power by the law (B.6.1)."""
    return Sum(k**power * chance * (1 - chance) ** (k - 1), (k, 1, cut - 1)) + cut**power * (1 - chance) ** (cut - 1)


def moment(power: int, chance: Expr) -> Expr:
    """The same in closed form."""
    gone = (1 - chance) ** cut
    closed = (Integer(1), (1 - gone) / chance, ((2 - chance) - (2 * cut - 1) * chance * gone - 2 * gone) / chance**2)
    return closed[power]


# --- Lemma B.6.1 ------------------------------------------------------------------------------------------------------

MEAN, VARIANCE = measure_symbol(LEMMA_B_6_1.measure), measure_symbol(LEMMA_B_6_1_VARIANCE.measure)
SECOND = Symbol("[E S^2]", nonnegative=True)
SQUARED_BIAS = Symbol("[E (p S - 1)^2]", nonnegative=True)
LEMMA = f"{PAPER}/lemma-b.6.1"
EVERY_K = "for every whole K >= 1"

c = Chain(NO_VECTORS)
c["D1", "the probabilities of (B.6.1) sum to 1", EVERY_K] = eq(law(0, rate), moment(0, rate)), Induction(cut)
c["D2", "the mean by the law (B.6.1), a sum over the values 1, ..., K of S"] = eq(MEAN, law(1, rate)), CUT_OFF_LAW
c["D3", "the sum in (B.6.3) by induction", EVERY_K] = eq(law(1, rate), moment(1, rate)), Induction(cut)
c["D4", "eq. (B.6.2), mean"] = eq(MEAN, moment(1, rate)), Opened, {"D2": 1, "D3": 1}
c["D5", "the same with the K of the result"] = StandsFor(cut, K, WHOLE_CUT), "D4"
MEAN_PROOF = c.proof(LEMMA, LEMMA_B_6_1, {"printed": "D5"})

VARIANCE_CLOSED = moment(2, rate) - moment(1, rate) ** 2
LESS_MEAN, LINEAR = SECOND - MEAN**2, rate**2 * SECOND - 2 * rate * MEAN + 1
c = Chain(NO_VECTORS, cites=(MEAN_PROOF,))
c["D1", "the second moment by the law (B.6.1), likewise"] = eq(SECOND, law(2, rate)), CUT_OFF_LAW
c["D2", "the sum in (B.6.4)-(B.6.5) by induction", EVERY_K] = eq(law(2, rate), moment(2, rate)), Induction(cut)
c["D3", "the second moment"] = eq(SECOND, moment(2, rate)), Opened, {"D1": 1, "D2": 1}
c["D4", "the variance is the second moment less the squared mean, (B.6.6): E (S - E S)^2 = E S^2 - (E S)^2"] = by(
    eq(VARIANCE, LESS_MEAN), CUT_OFF_LAW
)
c["D5", "with both moments"] = by(
    eq(VARIANCE, VARIANCE_CLOSED), Opened, {"D4": 1, "D3": 1, f"{LEMMA}/D4": -(MEAN + moment(1, rate))}
)
c["D6", "eq. (B.6.2), variance"] = by(
    eq(VARIANCE, LEMMA_B_6_1_VARIANCE.form("printed").bound.doit()), StandsFor(cut, K, WHOLE_CUT), "D5"
)
c["D7", "a cut-off only takes variance away, (B.6.8)(c)"] = le(VARIANCE, (1 - rate) / rate**2), Opened, "D5"
c["D8", "p S - 1 has the mean -(1-p)^K: E is linear"] = eq(SQUARED_BIAS, LINEAR), CUT_OFF_LAW
c["D9", "bias and variance of one interval"] = by(
    eq(SQUARED_BIAS, rate**2 * VARIANCE + (1 - rate) ** (2 * cut)),
    Opened,
    {"D8": 1, "D4": -(rate**2), f"{LEMMA}/D4": rate**2 * (MEAN + moment(1, rate)) - 2 * rate},
)
VARIANCE_PROOF = c.proof(f"{LEMMA}-variance", LEMMA_B_6_1_VARIANCE, {"printed": "D6", "explicit": "D7"})

# --- One weight: after K rounds and before ----------------------------------------------------------------------------

EXCHANGEABLE = "given their number, the completed intervals are exchangeable"
RAO_BLACKWELL = "Rao-Blackwell: a conditional mean varies no more than what it is the mean of"
t = Symbol("t", integer=True, positive=True)
s = Symbol("s", integer=True, nonnegative=True)
LATE, EARLY = cut + s, t + 1 + s  # t = K + s, or K = t + 1 + s
q = 1 - p
ALGORITHM = tuple(a.name for a in FEDAU)


def opaque_symbol(text: str) -> Symbol:
    """A quantity that is bounded."""
    return Symbol(f"[{text}]", nonnegative=True)


MEAN_LATE, MEAN_EARLY, MEAN_OF = map(opaque_symbol, ("E omega_t, t >= K", "E omega_t, t < K", "E omega_t, t >= 1"))
ERROR_LATE, ERROR_EARLY, ERROR = map(
    opaque_symbol, ("E(p omega_t - 1)^2, t >= K", "E(p omega_t - 1)^2, t < K", "E(p omega_t - 1)^2, t >= 1")
)
SPREAD_LATE = opaque_symbol("Var omega_t, t >= K")
CHANCE = opaque_symbol("Pr(S_n = k), k < K")
NONE_YET = opaque_symbol("Pr(M_t = 0), t < K")
COUNTED = opaque_symbol("E[(p omega_t - 1)^2; M_t >= 1], t < K")
COUNTED_MEAN = opaque_symbol("E[omega_t; M_t >= 1], t < K")
AT_START = opaque_symbol("E(p omega_0 - 1)^2")
PER_CLIENT = opaque_symbol("(1/T) sum_t E(p_n omega_t^n - 1)^2")
TOTAL = measure_symbol(THEOREM_3.measure)
FIRST = Sum(k * p * q ** (k - 1), (k, 1, t))  # E[S; S <= t] for t < K
MEAN_FIRST = (1 - q**t) / p - t * q**t
PER_ROUND = 2 * cut * q / t + q ** (2 * cut)
INTERVALS = floor(s / cut) + 1  # floor(t/K) at t = K + s


def exchangeable_mean(left: Expr, right: Expr) -> Assumed:
    """What exchangeability gives."""
    return Assumed(left, right, ALGORITHM, op="==", axiom=EXCHANGEABLE)


def enter_means(c: Chain) -> None:
    """The mean weight of client n, by the law of its intervals."""
    c["S21", "the law (B.6.1) of the intervals of Algorithm 2, k < K"] = eq(CHANCE, p * q ** (k - 1)), *FEDAU
    c["S21a", "the mean of an interval of client n"] = Specialize(((rate, p),), LAW), f"{LEMMA}/D4 S21"
    c["S23a", "for t >= K an interval is complete, and the mean weight is the mean interval"] = by(
        exchangeable_mean(MEAN_LATE, MEAN), *FEDAU
    )
    c["S23b", "exact mean for t >= K"] = eq(MEAN_LATE, moment(1, p)), Opened, "S23a S21a"
    c["S22", "no interval is complete at t < K if the client was never there, in rounds 0 .. t-1"] = by(
        eq(NONE_YET, q**t), *FEDAU
    )
    c["S23c", "for t < K the completed intervals have the mean of the first one, E[S_1; S_1 <= t]"] = by(
        exchangeable_mean(COUNTED_MEAN, FIRST), *FEDAU
    )
    c["S23d", "that sum by induction", "for every t >= 1"] = eq(FIRST, MEAN_FIRST), Induction(t)
    c["S23e", "without a complete interval, while M_t = 0, the weight is 1"] = by(
        eq(MEAN_EARLY, NONE_YET + COUNTED_MEAN), *FEDAU
    )
    c["S23f", "exact mean for 1 <= t < K"] = by(
        eq(MEAN_EARLY, (1 - q**t) / p - (t - 1) * q**t), Opened, dict.fromkeys(("S23e", "S22", "S23c", "S23d"), 1)
    )
    c["B.6.8a", "the paper: the mean weight is the mean interval in every round (false for t < K)"] = by(
        eq(MEAN_OF, moment(1, p)), Cases(t, cut, s, (MEAN_LATE, MEAN_EARLY), MEAN_OF), "S23b S23f"
    )


def enter_errors(c: Chain) -> None:
    """How far p_n times the weight is from 1 in one round."""
    late, early = "for t = K + s", "for K = t + 1 + s"
    c["S21b", "the variance of an interval of client n"] = Specialize(((rate, p),), LAW), f"{LEMMA}-variance/D7 S21"
    c["S21c", "bias and variance of an interval of client n, for t < K"] = by(
        Specialize(((rate, p), (cut, EARLY)), LAW), f"{LEMMA}-variance/D9 S21"
    )
    says = "omega_t is the conditional mean of the average of the first floor(t/K) intervals"
    c["S24a", f"for t >= K, {says}", late] = by(
        Lemma(f"{EXCHANGEABLE}; {RAO_BLACKWELL}", SPREAD_LATE, VARIANCE / INTERVALS, ALGORITHM), *FEDAU
    )
    c["S24b", "bias and variance of the weight for t >= K: E(X - 1)^2 = Var X + (E X - 1)^2"] = by(
        eq(ERROR_LATE, p**2 * SPREAD_LATE + (p * MEAN_LATE - 1) ** 2), *FEDAU
    )
    c["S25a", "division with a remainder"] = Division(s, cut)
    c["S25", "floor(t/K) >= (t+1)/(2K) for t >= K", late] = le(LATE + 1, 2 * cut * INTERVALS), {"S25a": 1}
    c["S26a", "with the mean and the variance, for t >= K", late] = by(
        le(ERROR_LATE, q / INTERVALS + q ** (2 * cut)),
        Opened,
        {"S24b": 1, "S24a": p**2, "S21b": p**2 / INTERVALS, "S23b": p * (p * MEAN_LATE - 1 - q**cut)},
    )
    c["S26b", "the bound of a round for t >= K", late] = by(
        le(ERROR_LATE, PER_ROUND.xreplace({t: LATE})), Opened, {"S26a": 1, "S25": q / (LATE * INTERVALS)}
    )
    c["S24c", "for t < K, convexity and the first interval, where that is complete"] = by(
        Lemma(f"{EXCHANGEABLE}; Jensen for the average of the intervals", COUNTED, SQUARED_BIAS, ALGORITHM), *FEDAU
    )
    c["S24d", "for t < K, with a complete interval, and without, where omega_t = 1"] = by(
        eq(ERROR_EARLY, NONE_YET * q**2 + COUNTED), *FEDAU
    )
    c["S24e", "the error for 1 <= t < K", early] = by(
        le(ERROR_EARLY, q ** (t + 2) + p**2 * VARIANCE + q ** (2 * EARLY)),
        Opened,
        {"S24d": 1, "S22": q**2, "S24c": 1, "S21c": 1},
    )
    c[
        "B.6.8b", "the paper: bias and variance of one interval bound the error of the weight (false for t < K)", early
    ] = by(le(ERROR_EARLY, p**2 * VARIANCE + q ** (2 * EARLY)), Opened, "S24e")
    c["S26c", "the bound of a round for 1 <= t < K", early] = by(
        le(ERROR_EARLY, PER_ROUND.xreplace({cut: EARLY})), Opened, "S24e S21b"
    )
    c["S26", "the bound of a round, (B.6.8)(c) without its + 1", "for every t >= 1"] = by(
        le(ERROR, PER_ROUND), Cases(t, cut, s, (ERROR_LATE, ERROR_EARLY), ERROR), "S26b S26c"
    )


# --- All rounds and clients -------------------------------------------------------------------------------------------

LAW = ((CUT_OFF_LAW.name, Relation(CHANCE, p * q ** (k - 1))),)
j = Symbol("j", integer=True, positive=True)
HARMONIC = Sum(1 / j, (j, 1, T - 1))
SAME_WEIGHTS = "over T rounds the cut-offs K and min(K, T) give the same weights, and min(K, T) is a whole number"
HARMONIC_NAME = "H_m is the sum of 1/j over j = 1, ..., m"
SEVEN = 7  # 3/log 2 + 2, rounded up


def summed_up(harmonic: Expr) -> Expr:
    """(B.6.9) before anything is rounded up, for one client."""
    return (q**2 + 2 * cut * q * harmonic + (T - 1) * q ** (2 * cut)) / T


def enter_rounds(c: Chain) -> None:
    """All rounds and clients."""
    named, whole = HarmonicNumber(T - 1), StandsFor(cut, K, WHOLE_CUT)
    bounds = {form.name: form.bound.doit() for form in THEOREM_3.forms}

    def of_all(name: str, source: str, right: Expr) -> None:
        c[name, "the mean over clients"] = le(TOTAL, right), AverageOverClients(PER_CLIENT, TOTAL, (p,)), source

    c["S22a", "every weight starts at 1"] = eq(AT_START, q**2), *FEDAU
    c["S27a", "the average over the rounds"] = by(
        le(PER_CLIENT, summed_up(HARMONIC)), HarmonicAverage(AT_START, ERROR, PER_CLIENT, t, T), "S22a S26"
    )
    c["S27b", "the harmonic number by its name"] = Lemma(HARMONIC_NAME, HARMONIC, named)
    c["S27c", "H_(T-1) <= 1 + log(T-1) by induction, as 1/(m+1) <= log((m+1)/m)"] = by(
        le(HARMONIC, 1 + log(T - 1)), Induction(T, 2), TWO_ROUNDS
    )
    c["S27", "the logarithm increases"] = le(HARMONIC, 1 + log(T)), Opened, {"S27c": 1}, TWO_ROUNDS
    c["T1", "one client, with the harmonic number"] = by(
        le(PER_CLIENT, summed_up(named)), Opened, {"S27a": 1, "S27b": 2 * cut * q / T}
    )
    c["T2", SAME_WEIGHTS] = StandsFor(cut, Min(K, T), SAME_WEIGHTS), "T1"
    of_all("T3", "T2", bounds["sharp"])
    one = cut * (1 + 2 * q * (log(T) + 1)) / T + q ** (2 * cut)
    c["T4", "one client, the line before (B.6.9): 1 <= K at t = 0"] = by(
        le(PER_CLIENT, one), Opened, {"S27a": 1, "S27": 2 * cut * q / T}, TWO_ROUNDS
    )
    c["T5", WHOLE_CUT] = whole, "T4"
    of_all("T6", "T5", bounds["sharp:per-client"])
    one = (3 * cut + 2 * cut * log(T)) / T + q ** (2 * cut)
    c["T7", "one client, (B.6.9): 1 - p <= 1"] = le(PER_CLIENT, one), Opened, "T4", TWO_ROUNDS
    c["T8", WHOLE_CUT] = whole, "T7"
    of_all("T9", "T8", bounds["explicit"])
    c["T10", "log T is at least log 2"] = le(log(2), log(T)), Opened(()), TWO_ROUNDS
    c["T11", f"the printed order with {SEVEN} for each hidden constant"] = by(
        le(PER_CLIENT, SEVEN * (K * log(T) / T + q ** (2 * K))), Opened, {"T8": 1, "T10": 5 * K / T}, TWO_ROUNDS
    )
    of_all("T12", "T11", SEVEN * bounds["printed"])


c = Chain(NO_VECTORS, cites=(MEAN_PROOF, VARIANCE_PROOF))
for enter in (enter_means, enter_errors, enter_rounds):
    enter(c)
THEOREM_PROOF = c.proof(
    f"{PAPER}/theorem-3", THEOREM_3, {"sharp": "T3", "sharp:per-client": "T6", "explicit": "T9", "printed": "T12"}
)
PROOFS = (MEAN_PROOF, VARIANCE_PROOF, THEOREM_PROOF)
