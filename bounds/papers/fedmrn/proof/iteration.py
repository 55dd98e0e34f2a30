"""Lemmas 1 to 3: noise of the averaged gradient, distance of the masked models, one synchronization."""

import sympy as sp

from fedbounds.bounds.audit.axioms import ByMeaning, MeanOf
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.rules import Combine
from fedbounds.bounds.audit.vectors import Vec, square
from fedbounds.bounds.papers.fedmrn.assumptions import CONSTANT_STEPS, FALLING_STEPS, PROGRESSIVE
from fedbounds.bounds.papers.fedmrn.lemmas import LEMMA_1, LEMMA_2, LEMMA_3
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.operator_rules import Unbiased, Walk
from fedbounds.bounds.papers.fedmrn.proof.symbols import EACH, EARLY, RELATIVE, SAMPLING, SYNC, Masking
from fedbounds.bounds.papers.fedmrn.results import SAMPLED, SAMPLING_ERROR

q, G, d, S, K, N, etat = n.q, n.G, n.d, n.S, n.K, n.N, n.etat
b, s, w, x, v, vb, y, va = symbols.b, symbols.s, symbols.w, symbols.x, symbols.v, symbols.vb, symbols.y, symbols.va
wn = symbols.wn
MEAN_NEEDS = (SAMPLING.name,)


def mean_of(vector: Vec, common: Vec) -> MeanOf:
    """All clients have weight 1/N."""
    return MeanOf(vector, common, axiom="all clients have weight 1/N", needs=MEAN_NEEDS)


def masked(drawn: str, mean: str, known: Vec, masking: Masking) -> Unbiased:
    """The mean of a masked vector is the vector, given all that was there before."""
    axiom = "masks are drawn afresh, and their mean gives the update back"
    needs = tuple(a.name for a in (masking.local if drawn == "x" else masking.assumptions))
    return Unbiased(drawn, mean, known, axiom, needs, (masking.within,) if masking.within else ())


def enter_within(c: Chain, masking: Masking) -> tuple[str, ...]:
    """The step by which the masks' conditions say what the masks take from them; its name, for premises."""
    if masking.within is None:
        return ()
    if "M0" not in {step.id for step in c.steps}:
        c["M0", "under the conditions the masks can express every update", ""] = by(
            masking.within, Combine(), *masking.conditions
        )
    return ("M0",)


def cohort(known: Vec) -> Unbiased:
    """The mean over a cohort has the mean over all clients."""
    return Unbiased("va", "vb", known, "every client is drawn with chance K/N, independently of the past", MEAN_NEEDS)


def enter_error(c: Chain, name: str, hat: Vec, of: Vec, masking: Masking, chance: sp.Expr = sp.S.One) -> None:
    """How far a masked vector is from what is masked."""
    error = square(hat - of)
    assumptions = masking.assumptions if chance == 1 else masking.local
    if masking.amplitude is None:
        used = [a for a in assumptions if a not in masking.assumptions[1:]]
        c[name, "Assumption 4, squared, eq. (36)"] = by(le(error, chance * q**2 * square(of - s)), *used)
    else:
        variance = chance * (d * masking.amplitude**2 - square(of - s))
        c[name, "a masked update has the length a sqrt(d), whatever it stands for"] = by(
            ByMeaning("SignedMasks", error, variance, needs=tuple(a.name for a in assumptions), op="=="),
            *(*assumptions, *masking.conditions),
        )


def enter_walk(c: Chain, masking: Masking, early: sp.Expr) -> None:
    """How far a client's model goes from where the round started."""
    bound = masking.gradients
    c["S7a", "Assumption 3, squared", "in every iteration of the round"] = le(square(symbols.h), G**2), bound
    c["S7b", "at most S - 1 steps before t, eq. (35)"] = Walk("h", w - s, S - 1, early), "S7a"
    c["S7c", "at most S steps with that of t"] = Walk("h", v - s, S, early), "S7a"


def enter_drift(c: Chain, masking: Masking, early: sp.Expr) -> None:
    """Lemma 2 on average over the clients."""
    c["S4", "masks are unbiased given the clients' models, eq. (33)"] = by(
        masked("x", "w", w - b, masking), *masking.local, *enter_within(c, masking)
    )
    c["S5", "the masks' error and the drift are uncorrelated, eq. (34)"] = by(
        eq(square(b - x), square(b - w) + square(w - x)), "S4"
    )
    c["S6a", "the mean of the clients' models is w_bar_t"] = mean_of(w - s, b - s), SAMPLING
    c["S6", "eq. (35), averaged: a spread around the mean, not around the round's start"] = by(
        eq(square(b - w), square(w - s) - square(b - s)), "S6a"
    )
    p = masking.chance
    enter_error(c, "S8", x, w, masking, p)
    walked = (S - 1) ** 2 * early**2 * G**2
    if masking.amplitude is None:
        c["S9", "eq. (37), averaged over the clients"] = by(
            le(square(b - x), (1 + p * q**2) * walked), {"S5": 1, "S6": 1, "S8": 1, "S7b": 1 + p * q**2}
        )
    elif masking.progressive:
        c["S9a", "p_t is a probability"] = le(p, 1), PROGRESSIVE
        c["S9", "the drift takes its share of the masks' length where there are masks"] = by(
            le(square(b - x), (1 - p) * walked + p * d * masking.amplitude**2),
            {"S5": 1, "S6": 1, "S8": 1, "S7b": 1 - p, "S9a": 0},
            *masking.conditions,
        )
    else:
        c["S9", "the drift only takes its share of the masks' length"] = by(
            le(square(b - x), d * masking.amplitude**2), {"S5": 1, "S6": 1, "S8": 1}, *masking.conditions
        )


def enter_synchronization(c: Chain, masking: Masking, early: sp.Expr) -> None:
    """Lemma 3."""
    c["S10", "K of N clients without replacement, eq. (41)", SYNC] = by(
        ByMeaning(
            "WithoutReplacement",
            square(va - vb),
            SAMPLING_ERROR * square(v - vb),
            axiom="K of N without replacement: the mean's variance is (N-K)/(K(N-1)) of one draw's",
            needs=MEAN_NEEDS,
            op="==",
        ),
        SAMPLING,
    )
    c["S6v", "the mean of the v is v_bar_{t+1}"] = mean_of(v - s, vb - s), SAMPLING
    c["S6c", "a spread around the mean, not around the round's start"] = by(
        eq(square(v - vb), square(v - s) - square(vb - s)), "S6v"
    )
    c["S11a", "masks are unbiased given the cohort and its models", SYNC] = by(
        masked("wn", "va", va - vb, masking), *masking.assumptions, *enter_within(c, masking)
    )
    c["S11", "masks are independent between clients, eq. (40)", SYNC] = by(
        ByMeaning(
            "IndependentMasks",
            square(wn - va),
            square(y - v) / K,
            axiom="masks of different clients are uncorrelated, so that their errors add up",
            needs=(*(a.name for a in masking.assumptions), *MEAN_NEEDS),
            op="==",
        ),
        *(*masking.assumptions, *masking.conditions, SAMPLING),
    )
    enter_error(c, "S8v", y, v, masking)
    errors = {"S11a": 2, "S11": 1, "S10": 1, "S8v": 1 / K}
    if masking.amplitude is None:
        share = q**2 / K + SAMPLING_ERROR
        c["S12", "masks and cohort together, eq. (42) and (43)", SYNC] = by(
            le(square(wn - vb), share * S**2 * early**2 * G**2), errors | {"S6c": SAMPLING_ERROR, "S7c": share}, SAMPLED
        )
    else:
        c["S12b", "a cohort's share is at most 1/K", ""] = le(SAMPLING_ERROR, 1 / K), Combine(), SAMPLED
        c["S12", "masks and cohort together: the cohort only takes its share of the masks' length", SYNC] = by(
            le(square(wn - vb), d * masking.amplitude**2 / K),
            errors | {"S6c": SAMPLING_ERROR, "S12b": square(v - s)},
            SAMPLED,
        )


# --- Lemma 1 --------------------------------------------------------------------------------------------------------

c = Chain(symbols.SETTING, EACH)
c["S1a", "Assumption 2, squared, where gradients are taken", "for every client"] = by(
    le(square(symbols.xi), n.sigma**2), symbols.NOISE
)
c["S1b", "noise of different clients is uncorrelated, eq. (32)"] = by(
    ByMeaning(
        "IndependentNoise",
        square(symbols.nb),
        square(symbols.xi) / N,
        axiom="noise of different clients is uncorrelated and has mean zero, so that the squares add up",
        needs=(symbols.NOISE.name, symbols.INDEPENDENT.name, *MEAN_NEEDS),
        op="==",
    ),
    *(symbols.NOISE, symbols.INDEPENDENT, SAMPLING),
)
c["S1", "Lemma 1, eq. (16)"] = le(square(symbols.nb), n.sigma**2 / N), "S1a S1b"
NOISE_PROOF = c.proof(LEMMA_1.key, LEMMA_1, {"printed": "S1"}, square(symbols.nb))

# --- Lemmas 2 and 3 -------------------------------------------------------------------------------------------------


def enter_steps(c: Chain) -> None:
    """How the step size at the round's start compares with that at t."""
    c["S2", "no step of a round is more than twice another"] = le(EARLY, 2 * etat), FALLING_STEPS
    c["S2'", "all steps are equal"] = le(EARLY, etat), CONSTANT_STEPS


c = Chain(symbols.SETTING, EACH)
enter_steps(c)
enter_walk(c, RELATIVE, EARLY)
enter_drift(c, RELATIVE, EARLY)
walked = (1 + q**2) * (S - 1) ** 2 * G**2
c["17", "Lemma 2, eq. (17), on average over the clients"] = by(
    le(square(b - x), LEMMA_2.form("repaired").bound), {"S9": 1, "S2": walked * (2 * etat + EARLY)}
)
c["17'", "and without the 4 where all steps are equal"] = by(
    le(square(b - x), LEMMA_2.form("sharp").bound), {"S9": 1, "S2'": walked * (etat + EARLY)}
)
DRIFT_PROOF = c.proof(LEMMA_2.key, LEMMA_2, {"repaired": "17", "sharp": "17'"}, square(b - x))

c = Chain(symbols.SETTING, EACH)
enter_steps(c)
enter_walk(c, RELATIVE, EARLY)
enter_synchronization(c, RELATIVE, EARLY)
carried = (q**2 / K + SAMPLING_ERROR) * S**2 * G**2
c["18", "Lemma 3, eq. (18)", SYNC] = by(
    le(square(wn - vb), LEMMA_3.form("repaired").bound), {"S12": 1, "S2": carried * (2 * etat + EARLY)}, SAMPLED
)
c["18'", "and without the 4 where all steps are equal", SYNC] = by(
    le(square(wn - vb), LEMMA_3.form("sharp").bound), {"S12": 1, "S2'": carried * (etat + EARLY)}, SAMPLED
)
SYNCHRONIZATION_PROOF = c.proof(LEMMA_3.key, LEMMA_3, {"repaired": "18", "sharp": "18'"}, square(wn - vb))
PROOFS = (NOISE_PROOF, DRIFT_PROOF, SYNCHRONIZATION_PROOF)
