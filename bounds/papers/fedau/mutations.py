"""Errors planted in the results and proofs of Wang & Ji (2024), each of which some court must notice."""

from __future__ import annotations

import sympy as sp

from bounds.audit.averaged_sums import mean_power_sum
from bounds.audit.mutations import (
    TENTH,
    concluding,
    dropped_assumption,
    dropped_condition,
    flipped,
    in_atom,
    in_form,
    in_step,
    instead,
    loosened,
    on_condition,
    on_term,
    prescribing,
    ruled,
    smaller,
    smaller_step,
    times,
    turned,
    unassumed_step,
    unconditional,
    without_term,
)
from bounds.papers.fedau.mutations_weights import WEIGHTS
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.proof.drift import RATIO
from bounds.papers.fedau.proof.theorem import IN_MEAN

CONSTANT, CONDITION, FLIP, EXPONENT, SQUARE = "constant", "dropped condition", "flipped", "exponent", "missing square"
PREMISE, INDEX, TERM, SYMBOL, RULE, VECTOR = "premise", "index", "dropped term", "swapped symbol", "rule", "vector"
STEP_SIZE = "step size"
OPTION_2, OPTION_1, SHARP = "theorem-2[explicit]", "theorem-2-option-1[explicit]", "theorem-2[sharp:mean-Q]"
ONE_STEP, OF_F, CONSTANT_WEIGHTS = "lemma-b.3.3", "lemma-b.5.1", "theorem-b.4.1"

OPTIMISATION = (
    smaller("lemma-b.3.1[printed]", "divergence"),
    smaller("lemma-b.3.2[printed]", "gradient"),
    smaller("lemma-b.3.2[sharp]", "local noise"),
    smaller("lemma-b.3.2[sharp:average]", "divergence"),
    smaller(f"{ONE_STEP}[repaired]", "gradient noise"),
    smaller(f"{ONE_STEP}[sharp]", "participation"),
    smaller(f"{OF_F}[repaired:smaller-cap]", "weight error"),
    smaller(OPTION_2, "initial gap"),
    smaller(OPTION_2, "weight error"),
    smaller(OPTION_2, "participation"),
    smaller(OPTION_1, "local drift"),
    smaller(OPTION_1, "gradient noise"),
    smaller(SHARP, "initial gap"),
    smaller(f"{CONSTANT_WEIGHTS}[repaired]", "initial gap"),
    smaller("theorem-1[repaired]", "participation"),
    in_form(f"{CONSTANT_WEIGHTS}[repaired]", CONSTANT, "4H for 8H", on_term("initial gap", times("1/2"))),
    in_form("lemma-b.3.3[repaired]", CONSTANT, "17/16 for 9/8", on_term("gradient noise", times("17/18"))),
    in_form("lemma-b.3.3[repaired]", CONSTANT, "27/8 for 17/5", on_term("participation", times("135/136"))),
    in_form(OPTION_1, CONSTANT, "the constants of Option 2", on_term("weight error", times("1/2"))),
    dropped_condition("lemma-b.3.2[printed]", 0, "the cap on gamma"),
    dropped_condition(f"{OF_F}[repaired:I=1]", 2, "I = 1"),
    dropped_condition(f"{ONE_STEP}[repaired:smaller-cap]", 1, "the cap on gamma eta"),
    dropped_condition(OPTION_2, 0, "the cap on gamma"),
    dropped_condition(OPTION_2, 2, "the cap with Q"),
    dropped_condition(f"{CONSTANT_WEIGHTS}[sharp]", 2, "what the gradient must keep"),
    dropped_condition("theorem-1[repaired]", 2, "T large enough for Q"),
    in_form(OPTION_2, FLIP, "the cap with Q", on_condition(2, flipped)),
    in_form(f"{OF_F}[repaired:smaller-cap]", CONSTANT, "the cap on gamma", on_condition(0, loosened)),
    in_form(OPTION_2, EXPONENT, "I for I^2", on_term("local drift", lambda e: e / n.I)),
    in_form(OPTION_2, SQUARE, "sigma for sigma^2", on_term("gradient noise", lambda e: e / n.sigma)),
    in_form(f"{OF_F}[sharp]", SYMBOL, "W_t for Q_t", on_term("gradient noise", lambda e: e.subs(n.Qt, n.Wt))),
    in_form(SHARP, TERM, "no weight error", without_term("weight error")),
    in_form("theorem-1[repaired]", STEP_SIZE, "gamma larger by 10 percent", prescribing("gamma", times("11/10"))),
    *(
        dropped_assumption(OPTION_2, name)
        for name in (
            "smooth",
            "unbiased-noise",
            "independent-clients",
            "martingale-noise",
            "bounded-divergence",
            "bernoulli-participation",
            "past-weights",
            "sure-Q",
            "bounded-below",
            "bounded-gradient",
        )
    ),
    dropped_assumption(OPTION_1, "nearly-optimal-weights"),
    dropped_assumption(f"{ONE_STEP}[sharp]", "objective-weights"),
    dropped_assumption(f"{CONSTANT_WEIGHTS}[repaired]", "constant-weights"),
    dropped_assumption(f"{CONSTANT_WEIGHTS}[repaired]", "h-bounded-below"),
    *map(
        smaller_step,
        (
            "lemma-b.3.1/B.3.2",
            "lemma-b.3.1/V4",
            "lemma-b.3.2/S1",
            "lemma-b.3.2/S3",
            "lemma-b.3.2/S5-sharp",
            "lemma-b.3.2-average/S5'b",
            f"{ONE_STEP}/S6",
            f"{ONE_STEP}/S9",
            f"{ONE_STEP}/S10'",
            f"{ONE_STEP}/S11",
            f"{ONE_STEP}/S11b",
            f"{ONE_STEP}/S12",
            f"{ONE_STEP}/S16",
            f"{ONE_STEP}/K-B",
            f"{OF_F}/B.3.5-one",
            "theorem-2/T3",
            "theorem-2/T4",
            "theorem-2/T4b",
            "theorem-2/T6",
            "theorem-2-option-1/T6-sharp",
            f"{CONSTANT_WEIGHTS}/H5",
        ),
    ),
    *(
        in_step(place, FLIP, "the sides exchanged", turned)
        for place in ("lemma-b.3.2/S3b", f"{ONE_STEP}/S12", f"{ONE_STEP}/K-A", "theorem-2/T2")
    ),
    unassumed_step("lemma-b.3.2/S0a", "martingale-noise"),
    unassumed_step("lemma-b.3.2/S2a", "smooth"),
    unassumed_step(f"{ONE_STEP}/S9d", "objective-weights"),
    unassumed_step(f"{ONE_STEP}/S11b", "independent-clients"),
    unassumed_step(f"{ONE_STEP}/D2", "past-weights"),
    unassumed_step(f"{OF_F}/S11b", "bernoulli-participation"),
    unassumed_step("theorem-2/T1", "sure-Q"),
    unassumed_step("theorem-2/T6", "bounded-below"),
    in_step("lemma-b.3.2/S3a", CONDITION, "without the cap on gamma", unconditional),
    in_step(f"{ONE_STEP}/S13", CONDITION, "without the cap on gamma eta", unconditional),
    in_step("theorem-2/T4c", CONDITION, "without the cap with Q", unconditional),
    in_step("lemma-b.3.2/S3", PREMISE, "S2b for S2a", instead("S2a", "S2b")),
    in_step(f"{ONE_STEP}/S10'-printed", PREMISE, "S10'a for the false S10", instead("S10", "S10'a")),
    in_step(f"{ONE_STEP}/S16", PREMISE, "S11b of the printed chain", instead("S11b", "S11b-printed")),
    in_step("theorem-2/T4", PREMISE, "Assumption 5 for the round", instead("T3", "T0")),
    in_step(
        "lemma-b.3.2-average/S5'a",
        INDEX,
        "I - 1 steps",
        concluding(None, lambda e: e.subs(mean_power_sum(RATIO, n.I), mean_power_sum(RATIO, n.I - 1))),
    ),
    in_step("theorem-2/T6", INDEX, "one more round", ruled(rounds=n.T + 1)),
    in_step(f"{ONE_STEP}/S10'b", CONSTANT, "Young with nine tenths of both parts", concluding(None, TENTH)),
    in_step("lemma-b.3.2/S5-sharp", RULE, "a smaller constant", ruled(constant=sp.Rational(17, 10))),
    in_step(f"{ONE_STEP}/S11b", RULE, "half the weights' squares", ruled(squares=n.Z / (2 * n.N**2))),
    in_step("theorem-2/T5", RULE, "the weights not averaged", ruled(means=IN_MEAN[:2])),
    in_atom("lemma-b.3.3", "g0", INDEX, "a later time", ("S10'a",), time=1),
    in_atom("lemma-b.3.3", "f0", INDEX, "a later time", ("D2",), time=1),
    in_atom("lemma-b.3.3", "v", VECTOR, "without a mean over the clients", ("S9d",), mean=""),
    in_atom("lemma-b.3.3", "z", VECTOR, "the sum of other vectors", ("S9", "S11b"), of="sum of a"),
    in_atom("lemma-b.3.3", "g0", VECTOR, "not the same in all local steps", ("S9b",), still=False),
    in_atom("lemma-b.5.1", "f0", VECTOR, "a gradient of f~", ("D1",), of="f~"),
)
MUTATIONS = (*OPTIMISATION, *WEIGHTS)
