# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false, reportMissingTypeArgument=false
# sympy types its operators as unions
r"""Lemma B.6.1 and Theorem 3: one participation interval, one weight, and the weights of all clients and rounds.

The paper takes the mean and the variance of $\omega_t$, an average of a random number of intervals, as if that number
were fixed, (B.6.8)(a) and (b). For $t<K$ both lines are false; they stand here as steps that do not follow. Instead:
given their number, the completed intervals are exchangeable. So the mean of $\omega_t$ is that of the first interval,
and $\omega_t$ is the conditional mean of the average of the first $\lfloor t/K\rfloor$ intervals, which varies more.
"""

from __future__ import annotations

from sympy import Expr, Integer, Min, Sum, Symbol, floor, log

from bounds.audit.averages import AverageOverClients, HarmonicAverage, StandsFor
from bounds.audit.axioms import Assumed
from bounds.audit.claim import Relation
from bounds.audit.derivations import Lemma, Specialise
from bounds.audit.induction import Induction
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.transcendental import Opened
from bounds.audit.whole_numbers import Cases, Division
from bounds.papers.fedau.assumptions import CUT_OFF_LAW, FEDAU
from bounds.papers.fedau.corollaries import LEMMA_B_6_1, LEMMA_B_6_1_VARIANCE
from bounds.papers.fedau.harmonic import HarmonicNumber
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.results import THEOREM_3, TWO_ROUNDS

PAPER = "fedau"
K, N, T, p, rate = n.K, n.N, n.T, n.p, n.rate
NO_VECTORS = Setting("no vectors: constants only", {}, given="nothing")

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


def summed(name: str, says: str, power: int) -> Step:
    """A sum over the law by induction on the cut-off."""
    return Step(
        name,
        says,
        Relation(law(power, rate), moment(power, rate), "=="),
        Induction(cut),
        quantifiers="for every whole K >= 1",
    )


def by_the_law(name: str, says: str, quantity: Expr, power: int) -> Step:
    """A moment as the sum that it is."""
    return Step(
        name,
        says,
        Relation(quantity, law(power, rate), "=="),
        Assumed(quantity, law(power, rate), (CUT_OFF_LAW.name,), "sum over the values 1, ..., K of S", op="=="),
        (CUT_OFF_LAW,),
    )


# --- Lemma B.6.1 ------------------------------------------------------------------------------------------------------

MEAN, VARIANCE = measure_symbol(LEMMA_B_6_1.measure), measure_symbol(LEMMA_B_6_1_VARIANCE.measure)
SECOND = Symbol("[E S^2]", nonnegative=True)
SQUARED_BIAS = Symbol("[E (p S - 1)^2]", nonnegative=True)
LEMMA = f"{PAPER}/lemma-b.6.1"
MEAN_PROOF = Proof(
    LEMMA,
    NO_VECTORS,
    (
        summed("D1", "the probabilities of (B.6.1) sum to 1", 0),
        by_the_law("D2", "the mean by the law (B.6.1)", MEAN, 1),
        summed("D3", "the sum in (B.6.3) by induction", 1),
        Step("D4", "eq. (B.6.2), mean", Relation(MEAN, moment(1, rate), "=="), Opened((1, 1)), ("D2", "D3")),
        Step(
            "D5",
            "the same with the K of the result",
            Relation(MEAN, (1 - (1 - rate) ** K) / rate, "=="),
            StandsFor(cut, K, WHOLE_CUT),
            ("D4",),
        ),
    ),
    LEMMA_B_6_1,
    {"printed": "D5"},
)
VARIANCE_CLOSED = moment(2, rate) - moment(1, rate) ** 2
VARIANCE_PROOF = Proof(
    f"{LEMMA}-variance",
    NO_VECTORS,
    (
        by_the_law("D1", "the second moment by the law (B.6.1)", SECOND, 2),
        summed("D2", "the sum in (B.6.4)-(B.6.5) by induction", 2),
        Step("D3", "the second moment", Relation(SECOND, moment(2, rate), "=="), Opened((1, 1)), ("D1", "D2")),
        Step(
            "D4",
            "the variance is the second moment less the squared mean, (B.6.6)",
            Relation(VARIANCE, SECOND - MEAN**2, "=="),
            Assumed(VARIANCE, SECOND - MEAN**2, (CUT_OFF_LAW.name,), "E (S - E S)^2 = E S^2 - (E S)^2", op="=="),
            (CUT_OFF_LAW,),
        ),
        Step(
            "D5",
            "with both moments",
            Relation(VARIANCE, VARIANCE_CLOSED, "=="),
            Opened((1, 1, -(MEAN + moment(1, rate)))),
            ("D4", "D3", f"{LEMMA}/D4"),
        ),
        Step(
            "D6",
            "eq. (B.6.2), variance",
            Relation(VARIANCE, LEMMA_B_6_1_VARIANCE.form("printed").bound.doit(), "=="),
            StandsFor(cut, K, WHOLE_CUT),
            ("D5",),
        ),
        Step(
            "D7",
            "a cut-off only takes variance away, (B.6.8)(c)",
            Relation(VARIANCE, (1 - rate) / rate**2),
            Opened((1,)),
            ("D5",),
        ),
        Step(
            "D8",
            "p S - 1 has the mean -(1-p)^K",
            Relation(SQUARED_BIAS, rate**2 * SECOND - 2 * rate * MEAN + 1, "=="),
            Assumed(SQUARED_BIAS, rate**2 * SECOND - 2 * rate * MEAN + 1, (CUT_OFF_LAW.name,), "E is linear", op="=="),
            (CUT_OFF_LAW,),
        ),
        Step(
            "D9",
            "bias and variance of one interval",
            Relation(SQUARED_BIAS, rate**2 * VARIANCE + (1 - rate) ** (2 * cut), "=="),
            Opened((1, -(rate**2), rate**2 * (MEAN + moment(1, rate)) - 2 * rate)),
            ("D8", "D4", f"{LEMMA}/D4"),
        ),
    ),
    LEMMA_B_6_1_VARIANCE,
    {"printed": "D6", "explicit": "D7"},
)

# --- One weight: after K rounds and before ----------------------------------------------------------------------------

EXCHANGEABLE = "given their number, the completed intervals are exchangeable"
RAO_BLACKWELL = "Rao-Blackwell: a conditional mean varies no more than what it is the mean of"
t = Symbol("t", integer=True, positive=True)
s = Symbol("s", integer=True, nonnegative=True)
LATE, EARLY = cut + s, t + 1 + s  # t = K + s, or K = t + 1 + s
q = 1 - p
ALGORITHM = tuple(a.name for a in FEDAU)


def opaque(text: str) -> Symbol:
    """A quantity that is bounded."""
    return Symbol(f"[{text}]", nonnegative=True)


MEAN_LATE, MEAN_EARLY, MEAN_OF = map(opaque, ("E omega_t, t >= K", "E omega_t, t < K", "E omega_t, t >= 1"))
ERROR_LATE, ERROR_EARLY, ERROR = map(
    opaque, ("E(p omega_t - 1)^2, t >= K", "E(p omega_t - 1)^2, t < K", "E(p omega_t - 1)^2, t >= 1")
)
SPREAD_LATE = opaque("Var omega_t, t >= K")
CHANCE = opaque("Pr(S_n = k), k < K")
NONE_YET = opaque("Pr(M_t = 0), t < K")
COUNTED = opaque("E[(p omega_t - 1)^2; M_t >= 1], t < K")
COUNTED_MEAN = opaque("E[omega_t; M_t >= 1], t < K")
AT_START = opaque("E(p omega_0 - 1)^2")
PER_CLIENT = opaque("(1/T) sum_t E(p_n omega_t^n - 1)^2")
TOTAL = measure_symbol(THEOREM_3.measure)
FIRST = Sum(k * p * q ** (k - 1), (k, 1, t))  # E[S; S <= t] for t < K
MEAN_FIRST = (1 - q**t) / p - t * q**t
PER_ROUND = 2 * cut * q / t + q ** (2 * cut)
INTERVALS = floor(s / cut) + 1  # floor(t/K) at t = K + s


def algorithmic(name: str, says: str, left: Expr, right: Expr, why: str, op: str = "==") -> Step:
    """What Algorithm 2 and Bernoulli participation say at once."""
    return Step(name, says, Relation(left, right, op), Assumed(left, right, ALGORITHM, why, op=op), FEDAU)


def exchanged(name: str, says: str, left: Expr, right: Expr, axiom: str = EXCHANGEABLE) -> Step:
    """What exchangeability gives."""
    return Step(name, says, Relation(left, right), Lemma(axiom, left, right, ALGORITHM), FEDAU)


def of_client(name: str, says: str, source: str, left: Expr, right: Expr, op: str = "==") -> Step:
    """A line of Lemma B.6.1 for client n."""
    return Step(name, says, Relation(left, right, op), Specialise(((rate, p),), LAW), (f"{LEMMA}{source}", "S21"))


LAW = ((CUT_OFF_LAW.name, Relation(CHANCE, p * q ** (k - 1))),)
MEAN_STEPS = (
    algorithmic("S21", "the law (B.6.1) of the intervals of Algorithm 2", CHANCE, p * q ** (k - 1), "k < K"),
    of_client("S21a", "the mean of an interval of client n", "/D4", MEAN, moment(1, p)),
    Step(
        "S23a",
        "for t >= K an interval is complete, and the mean weight is the mean interval",
        Relation(MEAN_LATE, MEAN, "=="),
        Assumed(MEAN_LATE, MEAN, ALGORITHM, EXCHANGEABLE, op="==", axiom=EXCHANGEABLE),
        FEDAU,
    ),
    Step(
        "S23b",
        "exact mean for t >= K",
        Relation(MEAN_LATE, moment(1, p), "=="),
        Opened((1, 1)),
        ("S23a", "S21a"),
    ),
    algorithmic(
        "S22", "no interval is complete at t < K if the client was never there", NONE_YET, q**t, "rounds 0 .. t-1"
    ),
    Step(
        "S23c",
        "for t < K the completed intervals have the mean of the first one, where that is complete",
        Relation(COUNTED_MEAN, FIRST, "=="),
        Assumed(COUNTED_MEAN, FIRST, ALGORITHM, "E[S_1; S_1 <= t]", op="==", axiom=EXCHANGEABLE),
        FEDAU,
    ),
    Step(
        "S23d",
        "that sum by induction",
        Relation(FIRST, MEAN_FIRST, "=="),
        Induction(t),
        quantifiers="for every t >= 1",
    ),
    algorithmic(
        "S23e",
        "without a complete interval the weight is 1",
        MEAN_EARLY,
        NONE_YET + COUNTED_MEAN,
        "omega_t = 1 while M_t = 0",
    ),
    Step(
        "S23f",
        "exact mean for 1 <= t < K",
        Relation(MEAN_EARLY, (1 - q**t) / p - (t - 1) * q**t, "=="),
        Opened((1, 1, 1, 1)),
        ("S23e", "S22", "S23c", "S23d"),
    ),
    Step(
        "B.6.8a",
        "the paper: the mean weight is the mean interval in every round (false for t < K)",
        Relation(MEAN_OF, moment(1, p), "=="),
        Cases(t, cut, s, (MEAN_LATE, MEAN_EARLY), MEAN_OF),
        ("S23b", "S23f"),
    ),
)
ERROR_STEPS = (
    of_client("S21b", "the variance of an interval of client n", "-variance/D7", VARIANCE, q / p**2, "<="),
    Step(
        "S21c",
        "bias and variance of an interval of client n, for t < K",
        Relation(SQUARED_BIAS, p**2 * VARIANCE + q ** (2 * EARLY), "=="),
        Specialise(((rate, p), (cut, EARLY)), LAW),
        (f"{LEMMA}-variance/D9", "S21"),
    ),
    Step(
        "S24a",
        "for t >= K, omega_t is the conditional mean of the average of the first floor(t/K) intervals",
        Relation(SPREAD_LATE, VARIANCE / INTERVALS),
        Lemma(f"{EXCHANGEABLE}; {RAO_BLACKWELL}", SPREAD_LATE, VARIANCE / INTERVALS, ALGORITHM),
        FEDAU,
        "for t = K + s",
    ),
    algorithmic(
        "S24b",
        "bias and variance of the weight for t >= K",
        ERROR_LATE,
        p**2 * SPREAD_LATE + (p * MEAN_LATE - 1) ** 2,
        "E(X - 1)^2 = Var X + (E X - 1)^2",
    ),
    Step(
        "S25a",
        "division with a remainder",
        Relation(s + 1, cut * INTERVALS),
        Division(s, cut),
    ),
    Step(
        "S25",
        "floor(t/K) >= (t+1)/(2K) for t >= K",
        Relation(LATE + 1, 2 * cut * INTERVALS),
        Combine((1,)),
        ("S25a",),
        "for t = K + s",
    ),
    Step(
        "S26a",
        "with the mean and the variance, for t >= K",
        Relation(ERROR_LATE, q / INTERVALS + q ** (2 * cut)),
        Opened((1, p**2, p**2 / INTERVALS, p * (p * MEAN_LATE - 1 - q**cut))),
        ("S24b", "S24a", "S21b", "S23b"),
        "for t = K + s",
    ),
    Step(
        "S26b",
        "the bound of a round for t >= K",
        Relation(ERROR_LATE, PER_ROUND.xreplace({t: LATE})),
        Opened((1, q / (LATE * INTERVALS))),
        ("S26a", "S25"),
        "for t = K + s",
    ),
    exchanged(
        "S24c",
        "for t < K, convexity and the first interval, where that is complete",
        COUNTED,
        SQUARED_BIAS,
        f"{EXCHANGEABLE}; Jensen for the average of the intervals",
    ),
    algorithmic(
        "S24d",
        "for t < K, with and without a complete interval",
        ERROR_EARLY,
        NONE_YET * q**2 + COUNTED,
        "omega_t = 1 while M_t = 0",
    ),
    Step(
        "S24e",
        "the error for 1 <= t < K",
        Relation(ERROR_EARLY, q ** (t + 2) + p**2 * VARIANCE + q ** (2 * EARLY)),
        Opened((1, q**2, 1, 1)),
        ("S24d", "S22", "S24c", "S21c"),
        "for K = t + 1 + s",
    ),
    Step(
        "B.6.8b",
        "the paper: bias and variance of one interval bound the error of the weight (false for t < K)",
        Relation(ERROR_EARLY, p**2 * VARIANCE + q ** (2 * EARLY)),
        Opened((1,)),
        ("S24e",),
        "for K = t + 1 + s",
    ),
    Step(
        "S26c",
        "the bound of a round for 1 <= t < K",
        Relation(ERROR_EARLY, PER_ROUND.xreplace({cut: EARLY})),
        Opened((1, p**2)),
        ("S24e", "S21b"),
        "for K = t + 1 + s",
    ),
    Step(
        "S26",
        "the bound of a round, (B.6.8)(c) without its + 1",
        Relation(ERROR, PER_ROUND),
        Cases(t, cut, s, (ERROR_LATE, ERROR_EARLY), ERROR),
        ("S26b", "S26c"),
        "for every t >= 1",
    ),
)

# --- All rounds and clients -------------------------------------------------------------------------------------------

j = Symbol("j", integer=True, positive=True)
HARMONIC = Sum(1 / j, (j, 1, T - 1))
SAME_WEIGHTS = "over T rounds the cut-offs K and min(K, T) give the same weights, and min(K, T) is a whole number"
HARMONIC_NAME = "H_m is the sum of 1/j over j = 1, ..., m"


def summed_up(harmonic: Expr) -> Expr:
    """(B.6.9) before anything is rounded up, for one client."""
    return (q**2 + 2 * cut * q * harmonic + (T - 1) * q ** (2 * cut)) / T


EXPLICIT, SHARP = THEOREM_3.form("explicit").bound.doit(), THEOREM_3.form("sharp").bound.doit()
SEVEN = 7  # 3/log 2 + 2, rounded up


def per_client(name: str, says: str, right: Expr, multipliers: tuple, premises: tuple, **more: str) -> Step:
    """A bound of one client's average over the rounds."""
    return Step(name, says, Relation(PER_CLIENT, right), Opened(multipliers), (*premises, TWO_ROUNDS), **more)


def all_clients(name: str, source: str, right: Expr) -> Step:
    """The mean over clients."""
    return Step(
        name,
        "the mean over clients",
        Relation(TOTAL, right),
        AverageOverClients(PER_CLIENT, TOTAL, (p,)),
        (source,),
    )


def with_K(name: str, source: str, value: Expr, why: str, right: Expr) -> Step:
    """The cut-off of the result."""
    return Step(name, why, Relation(PER_CLIENT, right), StandsFor(cut, value, why), (source,))


ROUNDS = (
    algorithmic("S22a", "every weight starts at 1", AT_START, q**2, "omega_0 = 1"),
    Step(
        "S27a",
        "the average over the rounds",
        Relation(PER_CLIENT, summed_up(HARMONIC)),
        HarmonicAverage(AT_START, ERROR, PER_CLIENT, t, T),
        ("S22a", "S26"),
    ),
    Step(
        "S27b",
        "the harmonic number by its name",
        Relation(HARMONIC, HarmonicNumber(T - 1)),
        Lemma(HARMONIC_NAME, HARMONIC, HarmonicNumber(T - 1)),
    ),
    Step(
        "S27c",
        "H_(T-1) <= 1 + log(T-1) by induction, as 1/(m+1) <= log((m+1)/m)",
        Relation(HARMONIC, 1 + log(T - 1)),
        Induction(T, 2),
        (TWO_ROUNDS,),
    ),
    Step(
        "S27",
        "the logarithm increases",
        Relation(HARMONIC, 1 + log(T)),
        Opened((1,)),
        ("S27c", TWO_ROUNDS),
    ),
    Step(
        "T1",
        "one client, with the harmonic number",
        Relation(PER_CLIENT, summed_up(HarmonicNumber(T - 1))),
        Opened((1, 2 * cut * q / T)),
        ("S27a", "S27b"),
    ),
    with_K("T2", "T1", Min(K, T), SAME_WEIGHTS, summed_up(HarmonicNumber(T - 1)).xreplace({cut: Min(K, T)})),
    all_clients("T3", "T2", SHARP),
    per_client(
        "T4",
        "one client, the line before (B.6.9): 1 <= K at t = 0",
        cut * (1 + 2 * q * (log(T) + 1)) / T + q ** (2 * cut),
        (1, 2 * cut * q / T),
        ("S27a", "S27"),
    ),
    with_K("T5", "T4", K, WHOLE_CUT, K * (1 + 2 * q * (log(T) + 1)) / T + q ** (2 * K)),
    all_clients("T6", "T5", THEOREM_3.form("sharp:per-client").bound.doit()),
    per_client(
        "T7",
        "one client, (B.6.9): 1 - p <= 1",
        (3 * cut + 2 * cut * log(T)) / T + q ** (2 * cut),
        (1,),
        ("T4",),
    ),
    with_K("T8", "T7", K, WHOLE_CUT, (3 * K + 2 * K * log(T)) / T + q ** (2 * K)),
    all_clients("T9", "T8", EXPLICIT),
    Step(
        "T10",
        "log T is at least log 2",
        Relation(log(2), log(T)),
        Opened(()),
        (TWO_ROUNDS,),
    ),
    per_client(
        "T11",
        f"the printed order with {SEVEN} for each hidden constant",
        SEVEN * (K * log(T) / T + q ** (2 * K)),
        (1, 5 * K / T),
        ("T8", "T10"),
    ),
    all_clients("T12", "T11", SEVEN * THEOREM_3.form("printed").bound.doit()),
)
THEOREM_PROOF = Proof(
    f"{PAPER}/theorem-3",
    NO_VECTORS,
    (*MEAN_STEPS, *ERROR_STEPS, *ROUNDS),
    THEOREM_3,
    {"sharp": "T3", "sharp:per-client": "T6", "explicit": "T9", "printed": "T12"},
)
PROOFS = (MEAN_PROOF, VARIANCE_PROOF, THEOREM_PROOF)
