r"""Theorem 1, eqs. (58) to (85), with $t_0^+$ read as $t_0+Q$: one round for each form of Lemma 2, then their sum.

Then Remark 5 and the time budget: Theorem 1 at a step size, at a number of rounds, and for many rounds.
"""

import sympy as sp
from sympy import Rational, Symbol, sqrt

from fedbounds.bounds.audit.axioms import ByMeaning, Descent, Jensen, MeanOf, Smooth
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import Leading, Specialize
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Combine, Gram
from fedbounds.bounds.audit.vectors import inner, square
from fedbounds.bounds.papers.tdcd import remarks
from fedbounds.bounds.papers.tdcd.assumptions import BOUNDED, SMOOTH_OBJECTIVE, UNBIASED_SILOS, UNCORRELATED_CLIENTS
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.proof import symbols
from fedbounds.bounds.papers.tdcd.proof.drift import DRIFT_PROOF, enter_first_gradient
from fedbounds.bounds.papers.tdcd.proof.rules import Compound, Realized
from fedbounds.bounds.papers.tdcd.proof.symbols import DECREASE, EACH, OF_A_SILO, PSI, f, fs, g0, gs, m0, ms, x, xs
from fedbounds.bounds.papers.tdcd.results import (
    ALL_ITERATES,
    CAP,
    DRIFT_GROWTH,
    KAPPA_GROWTH,
    LEMMA_CAP,
    PRINTED_GROWTH,
    SYNCHRONIZED,
    THEOREM_1,
    ascent,
    lost,
)
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition

L, Lmax, Q, R, S, SK, eta, Delta, Deltainf = n.L, n.Lmax, n.Q, n.R, n.S, n.SK, n.eta, n.Delta, n.Deltainf
u = eta * Q
HALF = Rational(1, 2)
FIRST, GRADIENT, AVERAGED = square(g0), square(f), measure_symbol(SYNCHRONIZED)
EVERYWHERE = measure_symbol(ALL_ITERATES)
GROWTH = Symbol("Lambda", nonnegative=True)
WITHIN = Assumption("drift-within-lambda", "the summed drift of a round is at most Lambda sum |g^0|^2", "Lemma 2")
WAYS = {  # the form, its bound of the drift, the step of Lemma 2 that shows it, and under what
    "sharp:B1": (PRINTED_GROWTH, "7", (LEMMA_CAP,)),
    "sharp:B2": (KAPPA_GROWTH, "6'", (LEMMA_CAP,)),
    "sharp:B3": (DRIFT_GROWTH, "9", ()),
}


def at_growth(growth: sp.Expr) -> Specialize:
    """What is shown for any bound of the drift, at this one of Lemma 2."""
    return Specialize(((GROWTH, growth),), ((WITHIN.name, Relation(PSI, GROWTH * FIRST)),))


c = Chain(symbols.ROUND, EACH, (DRIFT_PROOF,))
c["8", "descent lemma from one synchronized model to the next, eq. (58)"] = by(
    Descent("f", -u * ms, DECREASE, L, axiom="descent lemma: the objective is L-smooth"), SMOOTH_OBJECTIVE
)
c["9", "the clients' mean of what they did in the round, eqs. (59) to (63)"] = by(
    MeanOf(gs, f, axiom=OF_A_SILO, needs=())
)  # fmt: skip
c["10", "Young's inequality, eqs. (64) and (65)"] = (
    le(-inner(f, gs - g0), HALF * GRADIENT + HALF * square(gs - g0)),
    Gram(),
)
enter_first_gradient(c, "11", "the clients' mean of g^0 is unbiased, eqs. (66) to (69)")
c["12", "a sum as what it was at first and what it has changed by, eq. (70)"] = by(
    le(square(ms), 2 * square(ms - m0) + 2 * square(m0)), Gram()
)
c["13", "Jensen over clients and local steps, eq. (71)"] = Jensen(gs - g0, axiom=OF_A_SILO, needs=())
c["14", "Jensen over clients; the 1/K_j is lost here, eq. (73)"] = Jensen(g0, axiom=OF_A_SILO, needs=())
c["15a", "Psi is the sum over the Q local steps"] = by(
    ByMeaning("Symbol", Q * square(gs - g0), PSI, op="==", axiom="")
)  # fmt: skip
c["15b", "one round, eqs. (72) and (74)"] = by(
    le(-DECREASE, -u / 2 * GRADIENT + eta * HALF * (1 + 2 * eta * L * Q) * PSI + eta**2 * L * Q**2 * square(m0)),
    {"8": 1, "9": u, "10": u, "11": -u, "12": L * u**2 / 2, "13": L * u**2} | {"15a": eta / 2 * (1 + 2 * eta * L * Q)},
)
c["16a", "what is left of g^0 is noise", ""] = le(square(g0 - f), S), UNBIASED_SILOS
c["16", "Lemma 1 for all silos, eq. (77)"] = le(FIRST, GRADIENT + S), "11 16a"

drift, noise = eta / 2 * (1 + 2 * eta * L * Q) * GROWTH, eta**2 * L * Q**2
c["L", "whatever Lemma 2 says of the drift"] = le(PSI, GROWTH * FIRST), WITHIN
c["15", "with Lemma 2, eqs. (75) and (76)"] = by(
    le(-DECREASE, -u / 2 * GRADIENT + (noise + drift) * FIRST),
    {"15b": 1, "L": eta / 2 * (1 + 2 * eta * L * Q), "14": noise},
)
c["17", "with Lemma 1, eq. (78)"] = by(
    le(-DECREASE, -u / 2 * GRADIENT + (noise + drift) * (GRADIENT + S)), {"15": 1, "16": noise + drift}
)
left = u / 2 * (1 - lost(GROWTH))
c["17s", "solved for the gradient, eq. (79)"] = by(
    le(GRADIENT, (DECREASE + (noise + drift) * S) / left), {"17": 1 / left}, ascent(GROWTH)
)
c["17t", "the average over the rounds, telescoped, eq. (85)", ""] = by(
    Realized(DECREASE, Delta, R, AVERAGED, GRADIENT), "17s", ascent(GROWTH)
)
for form, (growth, end, caps) in WAYS.items():
    c[form.partition(":")[2], "with this bound of the drift", ""] = by(
        at_growth(growth), "17t", f"{DRIFT_PROOF.id}/{end}", *caps, ascent(growth)
    )
ENDS = {form: form.partition(":")[2] for form in WAYS}

c["17p", "one round with Lemma 2 as printed"] = at_growth(PRINTED_GROWTH), "17", f"{DRIFT_PROOF.id}/7", LEMMA_CAP
c["18a", "the noise's factor with 1 + Q <= 2Q, eq. (80)", ""] = by(
    le(PRINTED_GROWTH, 8 * Q**3 * Lmax**2 * eta**2), Combine()
)
c["18", "one round, eq. (80)"] = by(
    le(
        u / 2 * (1 - lost(8 * Q**3 * Lmax**2 * eta**2)) * GRADIENT,
        DECREASE + u * (u * L + 4 * u**2 * Lmax**2 + 8 * u**3 * L * Lmax**2) * S,
    ),
    {"17p": 1, "18a": eta / 2 * (1 + 2 * eta * L * Q) * (GRADIENT + S)},
)
for name, least, factor in (("", HALF, 4), ("-19", Rational(19, 32), Rational(64, 19))):
    c[f"19{name}", "at these step sizes, eqs. (81) and (82)", ""] = by(
        le(least, 1 - lost(8 * Q**3 * Lmax**2 * eta**2)), Combine(), CAP
    )
    c[f"20a{name}", "one round, times 4/(eta Q), eqs. (83) and (84)"] = by(
        le(GRADIENT, factor * (DECREASE / u + (u * L + 4 * u**2 * Lmax**2 + 8 * u**3 * L * Lmax**2) * S)),
        {"18": factor / u, f"19{name}": factor / 2 * GRADIENT},
        CAP,
    )
    c[f"20b{name}", "the average over the rounds, telescoped, eq. (85)", ""] = by(
        Realized(DECREASE, Delta, R, AVERAGED, GRADIENT), f"20a{name}", CAP
    )
c["21", "a run can go down no further than to the infimum", ""] = le(Delta, Deltainf), BOUNDED
c["22", "a priori", ""] = by(le(AVERAGED, THEOREM_1.form("repaired:B0inf").bound), {"20b": 1, "21": 4 / (u * R)})
ENDS |= {"repaired": "20b", "sharp:B19": "20b-19", "repaired:B0inf": "22"}

# uncorrelated clients
c["14a", "the averaged noise: covariances sum to at most 0", ""] = by(
    le(square(m0 - f), SK), UNBIASED_SILOS, UNCORRELATED_CLIENTS
)  # fmt: skip
c["14b", "the averaged g^0 is unbiased"] = MeanOf(g0, f, axiom=OF_A_SILO, needs=())
c["14c", "the mean of g^0 and its variance, instead of (73)"] = le(square(m0), GRADIENT + SK), "14a 14b 11"
c["17-apart", "one round, with the first gradients' mean and with Lemma 2"] = by(
    le(
        u / 2 * (1 - lost(PRINTED_GROWTH)) * GRADIENT,
        DECREASE + eta**2 * L * Q**2 * SK + eta / 2 * (1 + 2 * eta * L * Q) * PRINTED_GROWTH * S,
    ),
    {"15b": 1, f"{DRIFT_PROOF.id}/7": eta / 2 * (1 + 2 * eta * L * Q), "14c": eta**2 * L * Q**2}
    | {"16": eta / 2 * (1 + 2 * eta * L * Q) * PRINTED_GROWTH},
    LEMMA_CAP,
)
c["20a-apart", "rounded as (80) to (84)"] = by(
    le(GRADIENT, 4 * (DECREASE / u + u * L * SK + (4 * u**2 * Lmax**2 + 8 * u**3 * L * Lmax**2) * S)),
    {"17-apart": 4 / u, "18a": 2 / Q * (1 + 2 * eta * L * Q) * (GRADIENT + S), "19": 2 * GRADIENT},
    CAP,
)
c["20-apart", "the average over the rounds, telescoped", ""] = by(
    Realized(DECREASE, Delta, R, AVERAGED, GRADIENT), "20a-apart", CAP
)  # fmt: skip
# all iterations: the virtual average stays near the synchronized model
A, A_MAX = Symbol("a", positive=True), Symbol("b", positive=True)  # eta Q L and eta Q Lmax
SMALL = tuple(Condition(symbol, "<=", Rational(1, 8), "(14)") for symbol in (A, A_MAX))
SQUARED, KAPPA_2 = Rational(739, 100), Rational(439, 100)  # above e^2; four times a bound of kappa
AT = ((A, u * L), (A_MAX, u * Lmax))
grown = 1 + 2 * A_MAX + KAPPA_2 * A_MAX**2 + HALF * KAPPA_2 * A_MAX
kept, moved = Rational(10, 9) + 5 * A**2 * grown, 5 * A**2 * grown
gone = 2 * A + (1 + 2 * A) * KAPPA_2 * A_MAX**2
added = A + HALF * KAPPA_2 * A_MAX**2 * (1 + 2 * A)
rest = A + 4 * A_MAX**2 + 8 * A * A_MAX**2
INEQUALITIES = {
    "23a": ("something is left of the gradient", HALF - gone),
    "23b": ("the gap's factor", 4 * (1 - gone) - 2 * kept),
    "23c": ("the noise's factor", 4 * rest * (1 - gone) - 2 * kept * added - moved * (1 - gone)),
}
for name, (says, difference) in INEQUALITIES.items():
    c[name, f"{says}, for a, b <= 1/8", ""] = le(sp.S.Zero, difference), Combine(), *SMALL
    c[f"{name}'", "with a = eta Q L and b = eta Q Lmax", ""] = Specialize(AT), name, CAP
kept, moved, gone, added, grown = (e.xreplace(dict(AT)) for e in (kept, moved, gone, added, grown))
b = u * Lmax
c["24a", "e^2 is below 7.39", ""] = Compound(sp.Integer(2), Q, SQUARED)
c["24", "Lemma 2 with that, and 1 + Q <= 2Q"] = by(
    le(PSI, KAPPA_2 * Q * b**2 * FIRST),
    {f"{DRIFT_PROOF.id}/6'": 1, "24a": HALF * Q**2 * (1 + Q) * Lmax**2 * eta**2 * FIRST},
    LEMMA_CAP,
)
c["25a", "the gradients of a round, against those at its start"] = by(
    le(square(gs), (1 + 2 * b) * FIRST + (1 + 1 / (2 * b)) * square(gs - g0)), Gram()
)
drifted = 1 + 1 / (2 * b)
c["25", "with their drift"] = le(square(gs), grown * FIRST), {"25a": 1, "15a": drifted / Q, "24": drifted / Q}
c["26a", "the steps so far: Cauchy-Schwarz over them, Jensen over clients"] = by(
    ByMeaning(
        "Accumulated",
        square(xs - x),
        u**2 / 2 * square(gs),
        axiom="the algorithm: the virtual average moves by eta G^t; the square of a sum is at most the number of its "
        "summands times the sum of the squares",
    )
)
c["26b", "smoothness between the two"] = by(
    Smooth("fs", "f", L, axiom="smoothness of the objective", needs=(SMOOTH_OBJECTIVE.name,)), SMOOTH_OBJECTIVE
)
c["26c", "Young's inequality"] = le(square(fs), Rational(10, 9) * GRADIENT + 10 * square(fs - f)), Gram()
c["26", "the gradient at the virtual average"] = by(
    le(square(fs), kept * GRADIENT + moved * S),
    {"26c": 1, "26b": 10, "26a": 10 * L**2, "25": 5 * (u * L) ** 2, "16": moved},
)
c["27", "one round"] = by(
    le(-DECREASE, -u / 2 * (1 - gone) * GRADIENT + u * added * S),
    {"15b": 1, "24": eta / 2 * (1 + 2 * eta * L * Q), "14": eta**2 * L * Q**2, "16": u * added},
)
share = 2 * kept / (u * (1 - gone))
c["28", "one round, solved"] = by(
    le(square(fs), share * DECREASE + (share * u * added + moved) * S), {"26": 1, "27": share, "23a'": 0}, CAP
)
c["29", "the average over all iterations, telescoped", ""] = by(
    Realized(DECREASE, Delta, R, EVERYWHERE, square(fs)), "28 23a'", CAP
)
c["30", "what (80) and (82) round away is enough", ""] = by(
    le(EVERYWHERE, THEOREM_1.form("repaired:all-iterations").bound),
    {"29": 1, "23b'": Delta / (u * R * (1 - gone)), "23c'": S / (1 - gone), "23a'": 0},
    CAP,
)
THEOREM_PROOF = c.proof(THEOREM_1.key, THEOREM_1, ENDS | {"sharp:Bind": "20-apart", "repaired:all-iterations": "30"})

# --- Remark 5 and the time budget -----------------------------------------------------------------------------------

A_PRIORI = f"{THEOREM_1.key}[repaired:B0inf]"
NO_VECTORS = ProofSetting("nothing: constants alone", {})

c = Chain(NO_VECTORS, "for every R that satisfies the condition", (THEOREM_1,))
for name, step, enough in (
    ("c", remarks.SCALED, remarks.ENOUGH),
    ("best", remarks.BEST / (n.Q * sqrt(n.R)), remarks.ENOUGH_FOR_BEST),
):
    c[name, "Theorem 1 at this step size"] = by(
        Specialize(((n.eta, step),), prescribes=((n.eta, step),)), A_PRIORI, enough
    )
CONSTANTS = c.proof(remarks.REMARK_5.key, remarks.REMARK_5, {"explicit": "c", "explicit:best-c": "best"})

c = Chain(NO_VECTORS, "for large R", (remarks.REMARK_5,))
leading = 4 * (n.Deltainf / n.c + n.c * n.L * n.S) / sqrt(n.R)
c["rate", "its leading term"] = by(
    le(AVERAGED, leading), Leading(1 / sqrt(n.R), n.R, (n.L, n.Deltainf, n.S, n.c)), f"{remarks.REMARK_5.key}[explicit]"
)
RATE = c.proof(f"{remarks.REMARK_5.key}-rate", remarks.REMARK_5, {"printed": "rate"})


def within_time() -> Proof:
    """Every form at the rounds that fit into the time."""
    c = Chain(NO_VECTORS, "for every time in which a round fits", (THEOREM_1,))
    for form in remarks.WALL_CLOCK.forms:
        c[form.name, "Theorem 1 with so many rounds"] = by(
            Specialize(((n.R, remarks.ROUNDS_IN_TIME),)),
            f"{THEOREM_1.key}[{form.name}]",
            *(*THEOREM_1.form(form.name).conditions, remarks.ONE_ROUND),
        )
    return c.proof(
        remarks.WALL_CLOCK.key, remarks.WALL_CLOCK, {form.name: form.name for form in remarks.WALL_CLOCK.forms}
    )


PROOFS = (THEOREM_PROOF, CONSTANTS, RATE, within_time())
