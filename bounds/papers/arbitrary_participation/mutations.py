"""Errors planted in the results and proofs of Wang & Ji (2022), each of which some court must notice."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from fedbounds.bounds.audit.mutations import (
    CONDITION,
    CONSTANT,
    EXPONENT,
    FLIP,
    INDEX,
    PREMISE,
    RULE,
    SQUARE,
    STEP_SIZE,
    SYMBOL,
    TENTH,
    TERM,
    broken,
    concluding,
    dropped_assumption,
    dropped_condition,
    flipped,
    in_atom,
    in_form,
    in_limit,
    in_replay,
    in_step,
    instead,
    loosened,
    on_condition,
    on_right,
    on_term,
    premised,
    prescribing,
    ruled,
    sides_exchanged,
    smaller,
    smaller_step,
    smaller_truth,
    times,
    turned,
    unassumed_step,
    unchecked,
    unconditional,
    with_larger_claim,
    without_term,
)
from fedbounds.bounds.audit.rules import power_sum
from fedbounds.bounds.expressions import parts
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n

WEIGHT, SIDE = "weight of a limit", "side of a counterexample"

EXPLICIT, ANY_P, SHARP = "theorem-3.1[explicit]", "theorem-3.1[explicit:any-P]", "theorem-3.1[sharp]"
GAP, COHORT, PARTICIPATION = "initial gap", "cohort divergence", "participation divergence"
DRIFT_NOISE, UPDATE = "drift noise", "update noise"


FORMS = (
    smaller(EXPLICIT, GAP),
    smaller(EXPLICIT, "window divergence"),
    in_form(EXPLICIT, CONSTANT, "local noise more by 10 percent", on_term("local noise", times("11/10"))),
    smaller(ANY_P, GAP),
    smaller(SHARP, "local noise"),
    smaller("theorem-3.1[sharp:worst]", DRIFT_NOISE),
    smaller("theorem-3.1[explicit:sumsq]", "local noise"),
    smaller("lemma-c.1[printed]", COHORT),
    smaller("lemma-c.1[sharp]", "noise"),
    smaller("lemma-c.2[printed]", "gradient"),
    smaller("lemma-c.2[sharp]", PARTICIPATION),
    smaller("equation-c.16[explicit]", "decrease"),
    smaller("equation-11[explicit]", COHORT),
    smaller("equation-15[printed]", "window divergence"),
    smaller("corollary-3.2[explicit]", "noise"),
    smaller("corollary-3.2[sharp]", UPDATE),
    smaller("corollary-3.3[explicit]", "noise"),
    smaller("corollary-4.3[repaired]", "divergence"),
    smaller("corollary-4.8[repaired:integer-P]", "window divergence"),
    smaller("proposition-4.7[repaired:one-window]", "window divergence"),
    smaller("proposition-4.7[repaired:all-windows]", "window divergence"),
    dropped_condition("proposition-4.7[repaired:own-constant]", 0, "N >= 4"),
    dropped_assumption("proposition-4.7[repaired:one-window]", "jointly-independent-rounds"),
    dropped_condition(EXPLICIT, 0, "the cap on gamma"),
    dropped_condition(EXPLICIT, 1, "the cap on gamma eta"),
    dropped_condition(EXPLICIT, 2, "P <= T/2"),
    dropped_condition(SHARP, 2, "P <= T"),
    dropped_condition("theorem-3.1[explicit:I=1]", 3, "I = 1"),
    dropped_condition("lemma-c.1[printed]", 0, "the cap on gamma"),
    dropped_condition("corollary-3.3[explicit]", 0, "T >= 4LIP^2F/rho^2"),
    dropped_condition("corollary-3.2[explicit]", 0, "P <= T/2"),
    dropped_condition("corollary-4.8[repaired]", 3, "P is a whole number"),
    in_form(EXPLICIT, FLIP, "the cap on gamma", on_condition(0, flipped)),
    in_form(EXPLICIT, FLIP, "P >= T/2", on_condition(2, flipped)),
    in_form(EXPLICIT, CONSTANT, "the cap on gamma eta larger by 10 percent", on_condition(1, loosened)),
    in_form("corollary-3.3[explicit]", FLIP, "T <= 4LIP^2F/rho^2", on_condition(0, flipped)),
    in_form(EXPLICIT, EXPONENT, "I for I^2", on_term(COHORT, lambda e: e / n.I)),
    in_form(EXPLICIT, EXPONENT, "P for P^2", on_term(PARTICIPATION, lambda e: e / n.P)),
    in_form("theorem-3.1[printed]", EXPONENT, "P for P^2", on_term(PARTICIPATION, lambda e: e / n.P)),
    in_form("corollary-3.2[printed]", EXPONENT, "1/T^(3/2) for 1/T", on_term(GAP, lambda e: e / sp.sqrt(n.T))),
    in_form("corollary-3.3[printed]", EXPONENT, "rho^2 for rho", on_term("noise", lambda e: e * n.rho)),
    in_form(
        "corollary-4.8[printed]",
        EXPONENT,
        "1/N for 1/sqrt(N)",
        on_term("window divergence", lambda e: e / sp.sqrt(n.N)),
    ),
    in_form(EXPLICIT, SQUARE, "nu for nu^2", on_term(COHORT, lambda e: e / n.nu)),
    in_form("lemma-c.2[printed]", SQUARE, "beta for beta^2", on_term(PARTICIPATION, lambda e: e / n.beta)),
    in_form("corollary-3.2[explicit]", SQUARE, "sigma for sigma^2", on_term(DRIFT_NOISE, lambda e: e / n.sigma)),
    *(
        dropped_assumption(EXPLICIT, name)
        for name in (
            "smooth",
            "unbiased-noise",
            "independent-clients",
            "martingale-noise",
            "exogenous-participation",
            "bounded-below",
            "weights",
            "window-divergence",
        )
    ),
    dropped_assumption("corollary-4.3[repaired]", "bounded-divergence"),
    dropped_assumption("corollary-4.8[repaired:integer-P]", "independent-rounds"),
    dropped_assumption("proposition-4.2[printed]", "regularized"),
    in_form(EXPLICIT, TERM, "no update noise", without_term(UPDATE)),
    in_form("corollary-3.2[explicit]", TERM, "no initial gap", without_term(GAP)),
    in_form("lemma-c.2[sharp]", TERM, "no noise", without_term("noise")),
    in_form(EXPLICIT, SYMBOL, "beta for nu", on_term(COHORT, lambda e: e.subs(n.nu, n.beta))),
    in_form("lemma-c.1[printed]", SYMBOL, "rho^2 for S_t", on_term("noise", lambda e: e.subs(n.sumsq, n.rho**2))),
    in_form("corollary-3.2[explicit]", STEP_SIZE, "gamma larger by 10 percent", prescribing("gamma", times("11/10"))),
    in_form("corollary-3.3[explicit]", STEP_SIZE, "eta less by 10 percent", prescribing("eta", TENTH)),
    in_form("corollary-3.3[explicit]", STEP_SIZE, "eta without P", prescribing("eta", lambda e: e / n.P)),
    in_form(
        "corollary-3.2[explicit]", STEP_SIZE, "eta the larger branch", prescribing("eta", lambda e: sp.Max(*parts(e)))
    ),
    in_form("corollary-4.8[repaired]", STEP_SIZE, "N^2 for N^(5/2)", prescribing("P", lambda e: e / sp.sqrt(n.N))),
    in_form(EXPLICIT, INDEX, "T - 1 for T", on_term(GAP, lambda e: e.subs(n.T, n.T - 1))),
    in_form(
        ANY_P, INDEX, "one more window", on_term(GAP, lambda e: e * sp.floor(n.T / n.P) / (sp.floor(n.T / n.P) + 1))
    ),
)

RATIO = sp.Add(1, sp.Rational(7, 12) / (n.I - sp.Rational(1, 2)))
LATE = sp.Rational(7, 12) / n.I  # I for I - 1/2, less 1
STEPS = (
    *map(
        smaller_step,
        (
            "lemma-c.1/L1.1d",
            "lemma-c.1/L1.2",
            "lemma-c.1/L1.3a",
            "lemma-c.1/L1.4",
            "lemma-c.1/L1.7-sharp",
            "lemma-c.2/L2.1",
            "lemma-c.2/L2.2",
            "lemma-c.2/L2.9",
            "equation-c.16/Th3a",
            "equation-c.16/Th5b",
            "equation-c.16/Th6",
            "equation-c.16/C.16",
            "theorem-3.1/Th9",
            "theorem-3.1/Th10",
            "corollary-3.2/D4",
            "corollary-3.2/D5",
            "proposition-4.6/D2",
            "proposition-4.7-likely/H2b",
            "proposition-4.7-likely/H10",
            "proposition-4.7-likely/H13",
            "proposition-4.7-likely/H13-all",
        ),
    ),
    *(
        in_step(place, FLIP, "the sides exchanged", turned)
        for place in ("lemma-c.1/L1.5", "equation-c.16/Th5a", "theorem-3.1/Th10", "equation-15/D2")
    ),
    in_step("lemma-c.1/L1.3a", SQUARE, "L for L^2", concluding(None, lambda e: e / n.L)),
    in_step("lemma-c.1/L1.1d", SQUARE, "S_t^2 for S_t", concluding(None, lambda e: e.subs(n.sumsq, n.sumsq**2))),
    in_step("lemma-c.2/L2.5", EXPONENT, "I^2 P for I P", concluding(lambda e: e * n.I, None)),
    unassumed_step("lemma-c.1/L1.0a", "martingale-noise"),
    unassumed_step("lemma-c.1/L1.1c", "independent-clients"),
    unassumed_step("lemma-c.1/L1.3a", "smooth"),
    unassumed_step("lemma-c.1/L1.3c", "cohort-divergence"),
    unassumed_step("lemma-c.2/L2.1b", "weights"),
    unassumed_step("equation-c.16/Th1b", "exogenous-participation"),
    unassumed_step("equation-c.16/Th3f", "window-divergence"),
    unassumed_step("theorem-3.1/Th9", "bounded-below"),
    in_step("lemma-c.1/L1.5", CONDITION, "without the cap on gamma", unconditional),
    in_step("equation-c.16/Th7", CONDITION, "without the cap on gamma eta", unconditional),
    in_step("theorem-3.1/Th9", CONDITION, "without P <= T", unconditional),
    in_step("theorem-3.1/Th10", CONDITION, "without P <= T/2", unconditional),
    in_step("corollary-3.3/D1", CONDITION, "without its conditions", unconditional),
    in_step("corollary-4.8/D3", CONDITION, "without its conditions", unconditional),
    in_step("lemma-c.1/L1.4", PREMISE, "L1.3b for L1.3a", instead("L1.3a", "L1.3b")),
    in_step("lemma-c.1/C.5", PREMISE, "L1.5b for L1.7", instead("L1.7", "L1.5b")),
    in_step("lemma-c.1/L1.4", PREMISE, "a later step", instead("L1.3a", "L1.5b")),
    in_step("lemma-c.2/L2.3", PREMISE, "no such step", instead("L2.3c", "L2.3z")),
    in_step("equation-c.16/Th3", PREMISE, "Th3e for Th3d", instead("Th3d", "Th3e")),
    in_step("corollary-3.2/D5", PREMISE, "D1 for D3", instead("D3", "D1")),
    in_step(
        "corollary-4.3/D1",
        PREMISE,
        "equation (11) for Proposition 4.1",
        instead("D4", "arbitrary-participation/equation-11/D3"),
    ),
    in_step("lemma-c.1/L1.5", INDEX, "I for I - 1/2", concluding(None, lambda e: LATE)),
    in_step(
        "lemma-c.1/L1.6",
        INDEX,
        "I - 1 steps",
        concluding(None, lambda e: e.subs(power_sum(RATIO, n.I), power_sum(RATIO, n.I - 1))),
    ),
    in_step("lemma-c.1/L1.6", INDEX, "I - 1 steps in the rule", ruled(steps=n.I - 1)),
    in_step(
        "lemma-c.2/L2.8b",
        INDEX,
        "S_t of the current round, as printed",
        premised(lambda p: "L2.7" if p == "L2.7b" else p),
    ),
    in_step("theorem-3.1/Th9", INDEX, "one more window", ruled(windows=sp.floor(n.T / n.P) + 1)),
    in_atom("lemma-c.1", "y", INDEX, "a later time", ("L1.0a",), time=1),
    in_atom("lemma-c.2", "ybar", INDEX, "a later time", ("L2.0a",), time=1),
    in_atom("equation-c.16", "f0", INDEX, "a later time", ("Th1b",), time=1),
    in_atom("lemma-c.1", "gm", "vector", "a gradient at the local model", ("L1.3a",), at="y"),
    in_atom("lemma-c.1", "gy", "vector", "a gradient of f", ("L1.3a",), of="f"),
    in_atom("lemma-c.1", "xi", "vector", "a mean that is another vector", ("L1.1a", "L1.1c"), mean="mgm"),
    in_atom("equation-c.16", "m", "vector", "differs between clients", ("Th3b", "Th3c"), per_client=True),
    in_atom("equation-c.16", "gm", "vector", "without a mean", ("Th3b", "Th3c"), mean=""),
    in_atom("equation-c.16", "f0", "vector", "a gradient of one client", ("Th1",), of="F_n"),
    in_step(
        "lemma-c.1/L1.4",
        RULE,
        "a negative multiplier",
        ruled(multipliers=(1, n.gamma**2, 1, -12 * n.I * n.gamma**2, 6 * n.I * n.gamma**2, 6 * n.I * n.gamma**2)),
    ),
    in_step(
        "lemma-c.1/L1.3c",
        RULE,
        "eq. (6) read with nu^2/2",
        lambda s: ruled(right=n.nu**2 / 2)(concluding(None, times("1/2"))(s)),
    ),
    in_step(
        "lemma-c.1/L1.3a",
        RULE,
        "smoothness read with L/2",
        lambda s: ruled(L=n.L / 2)(concluding(None, times("1/4"))(s)),
    ),
)


SPECIAL = (
    in_limit("theorem-3.1-whole-windows", WEIGHT, "right side less by 10 percent", on_right),
    in_limit("theorem-3.1-identical-clients", WEIGHT, "right side less by 10 percent", on_right),
    in_limit("theorem-3.1-telescoping", WEIGHT, "right side less by 10 percent", on_right),
    in_limit("corollary-3.3-theorem", WEIGHT, "right side less by 10 percent", on_right),
    in_limit("sharp-below-explicit", FLIP, "the sides exchanged", sides_exchanged),
    in_limit("theorem-3.1-no-repeats", WEIGHT, "S_t = 1 for S_t = 0", lambda lim: replace(lim, at={n.sumsq: sp.S.One})),
    in_replay("noise-with-memory", SIDE, "the measured side less than the bound", smaller_truth),
    in_replay("noise-with-memory", SIDE, "the bound above the measured side", with_larger_claim),
    in_replay("suprema-at-different-rounds", SIDE, "a hypothesis not checked", unchecked),
    in_replay("one-window-is-not-all-windows", SIDE, "a hypothesis that fails", broken),
)
MUTATIONS = (*FORMS, *STEPS, *SPECIAL)
