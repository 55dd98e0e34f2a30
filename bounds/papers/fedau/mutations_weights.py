"""Errors planted in Lemma B.6.1, Theorem 3, Lemma B.7.1 and Corollary 4 of Wang & Ji (2024) and in their limits."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from fedbounds.bounds.audit.limits import Limit
from fedbounds.bounds.audit.mutations import (
    CONDITION,
    CONSTANT,
    EXPONENT,
    FLIP,
    INDEX,
    PREMISE,
    RULE,
    STEP_SIZE,
    SYMBOL,
    TENTH,
    TERM,
    concluding,
    dropped_assumption,
    dropped_condition,
    flipped,
    in_form,
    in_limit,
    in_step,
    instead,
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
from fedbounds.bounds.papers.fedau.corollaries import LOCAL_STEP
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof.weights import cut, q, s, t
from fedbounds.bounds.result import Condition

WEIGHT = "weight"
VARIANCE, BIAS = "variance", "bias"
THEOREM, SHARP, CLIENTS = "theorem-3[explicit]", "theorem-3[sharp]", "theorem-3[sharp:per-client]"
MEAN, SPREAD, CUT_OFF = "lemma-b.6.1[printed]", "lemma-b.6.1-variance[printed]", "lemma-b.7.1"
COROLLARY, OPTION_1 = "corollary-4[explicit]", "corollary-4-option-1[explicit]"
UNEQUAL = "appendix-a.3-unequal[explicit]"


LAST = (1 - n.rate) ** cut
PRINTED = n.R * sp.log(n.T)


def slackened(floor: Condition) -> Condition:
    """A lower bound that is less by a tenth."""
    return replace(floor, right=TENTH(floor.right))


def unrounded(value: sp.Expr) -> sp.Expr:
    """The cut-off as the paper prints it."""
    return value.xreplace({sp.Max(1, sp.ceiling(PRINTED)): PRINTED})


def down(value: sp.Expr) -> sp.Expr:
    """The cut-off rounded down."""
    return value.xreplace({sp.ceiling(PRINTED): sp.floor(PRINTED)})


def one_more(value: sp.Expr) -> sp.Expr:
    """One interval more than there are for sure."""
    return value.xreplace({sp.floor(s / cut): sp.floor(s / cut) + 1})


def looser(condition: Condition) -> Condition:
    """One round for two."""
    return replace(condition, right=condition.right - 1)


def on_right(limit: Limit) -> Limit:
    """The right-hand side of a limit less by 10 percent."""
    return replace(limit, right=tuple(replace(term, expression=TENTH(term.expression)) for term in limit.right))


def exchanged(limit: Limit) -> Limit:
    """The sides of a limit exchanged."""
    return replace(limit, left=limit.right, right=limit.left)


FORMS = (
    in_form(MEAN, EXPONENT, "K - 1 for K", on_term("mean", lambda e: e.subs(n.K, n.K - 1))),
    in_form(MEAN, CONSTANT, "1/p, as without a cut-off", on_term("mean", lambda e: 1 / n.rate)),
    in_form(SPREAD, TERM, "without the squared bias", without_term("bias squared")),
    in_form(SPREAD, INDEX, "2K for 2K - 1", on_term("cut off", lambda e: e.subs(2 * n.K - 1, 2 * n.K))),
    smaller("lemma-b.6.1-variance[explicit]", "without a cut-off"),
    smaller(THEOREM, VARIANCE),
    smaller(THEOREM, BIAS),
    smaller(SHARP, VARIANCE),
    smaller(SHARP, BIAS),
    smaller(CLIENTS, VARIANCE),
    in_form(THEOREM, EXPONENT, "(1-p)^K for (1-p)^(2K)", on_term(BIAS, lambda e: e.subs(2 * n.K, n.K))),
    in_form(THEOREM, EXPONENT, "(1-p)^(2K+2) for (1-p)^(2K)", on_term(BIAS, lambda e: e.subs(n.K, n.K + 1))),
    in_form(SHARP, INDEX, "T - 2 for T - 1 rounds", on_term(BIAS, lambda e: e * (n.T - 2) / (n.T - 1))),
    in_form(SHARP, INDEX, "H_T for H_(T-1)", on_term(VARIANCE, lambda e: e.subs(n.T - 1, n.T))),
    in_form(SHARP, SYMBOL, "K for min(K, T)", on_term(BIAS, lambda e: e.subs(sp.Min(n.K, n.T), n.K))),
    in_form("theorem-3[printed]", EXPONENT, "no log T", on_term(VARIANCE, lambda e: e / sp.log(n.T))),
    in_form("theorem-3[printed]", EXPONENT, "T^2 for T", on_term(VARIANCE, lambda e: e / n.T)),
    dropped_condition(THEOREM, 0, "T >= 2"),
    in_form(THEOREM, CONDITION, "T >= 1 for T >= 2", on_condition(0, looser)),
    dropped_assumption(THEOREM, "fedau-weights"),
    dropped_assumption(SHARP, "bernoulli-participation"),
    smaller(f"{CUT_OFF}[repaired]", VARIANCE),
    smaller(f"{CUT_OFF}[explicit]", BIAS),
    smaller(f"{CUT_OFF}[repaired:constant]", "weight error"),
    in_form(f"{CUT_OFF}[repaired]", STEP_SIZE, "K = log_c T, not rounded", prescribing("K", unrounded)),
    in_form(
        f"{CUT_OFF}[repaired:constant]",
        STEP_SIZE,
        "K rounded down",
        prescribing("K", down),
    ),
    dropped_condition(f"{CUT_OFF}[explicit]", 1, "K is a whole number"),
    dropped_condition(f"{CUT_OFF}[explicit]", 2, "K >= 1"),
    smaller(COROLLARY, "gradient noise"),
    smaller(COROLLARY, "participation"),
    smaller(COROLLARY, "weight error"),
    smaller(COROLLARY, "initial gap"),
    smaller(COROLLARY, "local drift"),
    smaller("corollary-4[repaired]", "weight error"),
    smaller("corollary-4[sharp]", "participation"),
    in_form(OPTION_1, CONSTANT, "the constants of Option 2", on_term("weight error", times("1/2"))),
    dropped_condition(OPTION_1, 1, "W_t <= 1/81 on every path"),
    dropped_assumption(COROLLARY, "bounded-gradient"),
    dropped_assumption("corollary-4[repaired]", "fedau-weights"),
    in_form(COROLLARY, STEP_SIZE, "gamma larger by 10 percent", prescribing("gamma", times("11/10"))),
    in_form(COROLLARY, STEP_SIZE, "eta less by 10 percent", prescribing("eta", TENTH)),
    in_form(
        COROLLARY,
        STEP_SIZE,
        "gamma eta for eta",
        prescribing("eta", lambda e: e * LOCAL_STEP),
    ),
    in_form(COROLLARY, EXPONENT, "I for sqrt(I)", on_term("gradient noise", lambda e: e / sp.sqrt(n.I))),
)
KNOWN = (
    smaller("appendix-a.3[explicit]", "gradient noise"),
    dropped_assumption("appendix-a.3[explicit]", "inverse-rates"),
    dropped_assumption("appendix-a.3[explicit]", "equal-rates"),
    in_form("appendix-a.3[explicit]", STEP_SIZE, "gamma larger by 10 percent", prescribing("gamma", times("11/10"))),
    in_form("appendix-a.3[sharp]", SYMBOL, "N for S", on_term("participation", lambda e: e.subs(n.S, n.N))),
    in_step("appendix-a.3/E1", SYMBOL, "S/N for N/S", concluding(None, lambda e: 1 / e)),
    unassumed_step("appendix-a.3/E1", "equal-rates"),
    smaller(UNEQUAL, "gradient noise"),
    smaller(UNEQUAL, "participation"),
    smaller(UNEQUAL, "initial gap"),
    smaller(UNEQUAL, "local drift"),
    smaller("appendix-a.3-unequal[sharp]", "participation"),
    dropped_assumption(UNEQUAL, "inverse-rates"),
    dropped_assumption(UNEQUAL, "bernoulli-participation"),
    dropped_condition(UNEQUAL, 0, "Q >= mean of 1/p_n"),
    dropped_condition("appendix-a.3-unequal[sharp]", 0, "Q >= mean of 1/p_n"),
    in_form(UNEQUAL, FLIP, "Q <= mean of 1/p_n", on_condition(0, flipped)),
    in_form(UNEQUAL, CONSTANT, "Q >= nine tenths of the mean of 1/p_n", on_condition(0, slackened)),
    in_form(UNEQUAL, STEP_SIZE, "gamma larger by 10 percent", prescribing("gamma", times("11/10"))),
    in_form(UNEQUAL, STEP_SIZE, "eta less by 10 percent", prescribing("eta", TENTH)),
    in_form("appendix-a.3-unequal[sharp]", SYMBOL, "1 for Q", on_term("gradient noise", lambda e: e.subs(n.Q, 1))),
    smaller_step("appendix-a.3-unequal/A1"),
    smaller_step("appendix-a.3-unequal/C9"),
    smaller_step("appendix-a.3-unequal/C11"),
    in_step("appendix-a.3-unequal/A1", EXPONENT, "p_n for 1/p_n", concluding(None, lambda e: e.subs(n.p, 1 / n.p))),
    in_step("appendix-a.3-unequal/A1b", CONDITION, "without Q >= mean of 1/p_n", unconditional),
    in_step("appendix-a.3-unequal/A4", PREMISE, "without Q_t <= Q", instead("A1b", "A3")),
    unassumed_step("appendix-a.3-unequal/A3", "inverse-rates"),
    in_step("appendix-a.3-unequal/T0", CONSTANT, "W_t <= 1/81", concluding(None, lambda e: sp.Rational(1, 81))),
)
STEPS = (
    in_step("lemma-b.6.1/D1", INDEX, "one value too many", concluding(lambda e: e + n.rate * LAST, None)),
    in_step("lemma-b.6.1/D3", EXPONENT, "K + 1 for K", concluding(None, lambda e: e.subs(cut, cut + 1))),
    in_step("lemma-b.6.1-variance/D2", INDEX, "K for 2K - 1", concluding(None, lambda e: e.subs(2 * cut - 1, cut))),
    unassumed_step("lemma-b.6.1/D2", "cut-off-geometric"),
    *map(
        smaller_step,
        (
            "theorem-3/S23f",
            "theorem-3/S26a",
            "theorem-3/S26b",
            "theorem-3/S26c",
            "theorem-3/S27",
            "theorem-3/T4",
            "theorem-3/T7",
            f"{CUT_OFF}/D6",
            f"{CUT_OFF}/D12",
            f"{CUT_OFF}/D14",
            f"{CUT_OFF}/D15",
            f"{CUT_OFF}/D17",
            "corollary-4/C9",
            "corollary-4/C10",
            "corollary-4/C11",
        ),
    ),
    in_step("theorem-3/S25", INDEX, "t + K for t + 1", concluding(lambda e: e - 1 + cut, None)),
    in_step("theorem-3/S25a", INDEX, "s + 2 for s + 1", concluding(lambda e: e + 1, None)),
    in_step("theorem-3/S26", PREMISE, "one case twice", instead("S26c", "S26b")),
    in_step("theorem-3/S26", RULE, "K = t + s for K = t + 1 + s", ruled(apart=t)),
    in_step("theorem-3/S23d", INDEX, "t - 1 for t", concluding(None, lambda e: e.subs(t, t - 1))),
    in_step("theorem-3/S27a", INDEX, "T rounds with a weight error", concluding(None, lambda e: e.subs(n.T - 1, n.T))),
    in_step("theorem-3/S27c", CONSTANT, "log(T-1) for 1 + log(T-1)", concluding(None, lambda e: e - 1)),
    in_step("theorem-3/S27c", CONDITION, "without T >= 2", unconditional),
    in_step("theorem-3/S27c", FLIP, "the sides exchanged", turned),
    in_step(
        "theorem-3/S24a",
        CONSTANT,
        "one interval more",
        concluding(None, one_more),
    ),
    unassumed_step("theorem-3/S24a", "bernoulli-participation"),
    in_step("theorem-3/S21b", PREMISE, "without the law", instead("S21", "S22")),
    in_step("theorem-3/T9", INDEX, "one client's p for all", concluding(None, lambda e: e + q)),
    in_step(f"{CUT_OFF}/D4", RULE, "a tangent at 2 log T", ruled(at=2 * sp.log(n.T))),
    in_step(f"{CUT_OFF}/D12", RULE, "1/3 for 1/e", ruled(value=sp.Rational(1, 3))),
    in_step(f"{CUT_OFF}/D8", CONDITION, "without a whole log_c T", unconditional),
    in_step(f"{CUT_OFF}/D5", PREMISE, "K <= log_c T + 1 for K >= log_c T", instead("D2", "D3")),
    in_step("corollary-4/C8", PREMISE, "without the cap on gamma", instead("C2", "C1")),
    in_step("corollary-4/C6", FLIP, "the sides exchanged", turned),
    in_step("corollary-4/C9", PREMISE, "the second branch for the first", instead("C3", "C4")),
    in_step("corollary-4-option-1/C8", PREMISE, "without the cap on gamma", instead("C2", "C1")),
)
SPECIAL = (
    *(
        in_limit(name, WEIGHT, "right side less by 10 percent", on_right)
        for name in (
            "theorem-2-options",
            "appendix-a.3-from-corollary-4",
            "appendix-a.3-unequal-from-corollary-4",
            "appendix-a.3-equal-rates-sharp",
            "theorem-2-gradient-descent",
            "corollary-4-no-noise",
            "interval-cut-at-one",
            "interval-without-a-cut-off",
            "theorem-3-many-rounds",
            "theorem-2-increases-with-noise",
        )
    ),
    *(
        in_limit(name, FLIP, "the sides exchanged", exchanged)
        for name in (
            "theorem-3-sharp-below-per-client",
            "theorem-3-bias-decreases-with-the-cut-off",
            "lemma-b.7.1-constant",
            "theorem-2-sharp-below-explicit",
            "corollary-4-second-branch",
        )
    ),
)
WEIGHTS = (*FORMS, *KNOWN, *STEPS, *SPECIAL)
