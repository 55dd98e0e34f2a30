# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
r"""Theorem B.4.1 once more, with half of the slope: constant weights leave no gap between $z$ and $s$.

The paper halves the initial gap of (B.4.3) without reason, and (B.4.4) is true all the same. With the normalised
weights $p_n\tilde\alpha_n/N=\varphi_n$ the update's mean is $s=\sum_n\varphi_nv_n$ itself, so that Lemma B.3.3's Young
inequality for $z-s$ and its factor 2 in $\|z\|^2\le2\|z-s\|^2+2\|s\|^2$ are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy as sp
from sympy import Rational

from bounds.audit.claim import Relation
from bounds.audit.derivations import InExpectation, Specialise
from bounds.audit.participation_rules import AverageOverRounds, MeanUpdate, SecondMoment
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Setting, Step
from bounds.audit.vectors import inner, square
from bounds.papers.fedau.assumptions import H_BOUNDED_BELOW
from bounds.papers.fedau.lemmas import DRIFT_CAP, LOCAL_CAP
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.proof.descent import CHOSEN, DECREASE, INDEPENDENT, SHARP, move
from bounds.papers.fedau.proof.drift import GENERAL, G, d, f0, round_setting, s
from bounds.papers.fedau.proof.theorem import (
    AVERAGE_OF_H,
    CONSTANT_PROOF,
    DISCHARGED,
    H_DECREASE,
    H_GRADIENT,
    H_MEAN,
    KNOWN,
    NORMALISED,
    OVER_ALL,
    PER_ROUND,
    ROUND,
)
from bounds.papers.fedau.results import H_GLOBAL_CAP, H_SLOPE_NO_GAP, THEOREM_B_4_1

L, I, N, T, H, gamma, sigma, etatilde = n.L, n.I, n.N, n.T, n.H, n.gamma, n.sigma, n.etatilde
HALF, QUARTER = Rational(1, 2), Rational(1, 4)
PRINTED, NO_GAP = THEOREM_B_4_1.form("printed"), THEOREM_B_4_1.form("sharp:no-gap")
ROWS = (
    ("-printed", LOCAL_CAP, PRINTED, "H5 with a quarter of the gradient, and the growth factors at the cap"),
    ("-no-gap", DRIFT_CAP, NO_GAP, "divided by what the gradient keeps"),
)


def without_gap() -> Setting:
    """A round in which p_n omega_n/N = varphi_n, so that the update's mean is s."""
    setting = round_setting("f~")
    update = replace(
        setting.atoms["d"],
        mean="s",
        meaning="(1/N) sum_n 1_n omega_n (v_n + a_n) with p_n omega_n/N = varphi_n, the update over -gamma eta I",
    )
    return Setting(setting.bracket, {**setting.atoms, "d": update}, setting.given)


def one_round() -> sp.Expr:
    """What h increases by in one round, at most."""
    second = L * move / 2 * GENERAL.moment / N * SHARP.update(GENERAL)
    return move * (SHARP.apart(GENERAL) / 2 + second - G / 2)


def steps() -> Iterator[Step]:
    """One round without a gap, then as in Theorem B.4.1."""
    yield Step(
        "N1",
        "the update's mean is s; participation and noise averaged out of the first-order term",
        Relation(inner(d, f0), inner(s, f0), "=="),
        MeanUpdate("d", "f0"),
        CHOSEN,
        ROUND,
    )
    yield Step(
        "N2",
        "independent participation and noise: the variance of a sum",
        Relation(square(d), GENERAL.moment / N * SHARP.update(GENERAL) + square(s)),
        SecondMoment("d", "v", "a", GENERAL.moment / N),
        (f"{KNOWN}S10'", *CHOSEN, INDEPENDENT),
        ROUND,
    )
    yield Step(
        "N3",
        "one round: the gradient keeps 1/2",
        Relation(-DECREASE, one_round()),
        Combine((1, -move, move, L * move**2 / 2, move * square(s) / 2, move / 2)),
        (f"{KNOWN}D1", "N1", f"{KNOWN}S7", "N2", f"{KNOWN}S13", f"{KNOWN}S9d"),
        ROUND,
    )
    home = CONSTANT_PROOF.id
    for name, cap, form, says in ROWS:
        per_round = form.bound.xreplace({H: T * DECREASE})
        yield Step(
            f"N4{name}",
            "for h with the normalised weights",
            Relation(-DECREASE, one_round().xreplace(dict(NORMALISED))),
            Specialise(NORMALISED, DISCHARGED),
            ("N3", *(f"{home}/{step}" for step in ("H1", "H2", "H3", "H4")), cap, H_GLOBAL_CAP),
            ROUND,
        )
        if form is PRINTED:
            update = 2 * gamma * etatilde * L * n.Qtilde / N
            growth = (update * sigma**2, update * I * (n.deltatilde**2 + G))
            drift = 2 * gamma**2 * L**2 * I * (sigma**2 + 6 * I * (n.deltatilde**2 + G))
            rule = Combine((1 / (gamma * etatilde * I * QUARTER), *growth, drift))
            premises = (f"N4{name}", *(f"{KNOWN}{step}" for step in ("K-A", "K-B", "K1")))
        else:
            rule = Combine((1 / (gamma * etatilde * I * H_SLOPE_NO_GAP),))
            premises = (f"N4{name}",)
        yield Step(f"N5{name}", says, Relation(G, per_round), rule, (*premises, *form.conditions[2:]), ROUND)
        yield Step(
            f"N6{name}",
            "in expectation over the rounds before",
            Relation(H_GRADIENT, per_round.xreplace(dict(H_MEAN))),
            InExpectation(H_MEAN, OVER_ALL),
            (f"N5{name}",),
            ROUND,
        )
        yield Step(
            f"B.4.4{name}",
            "the average over the rounds, telescoped",
            Relation(AVERAGE_OF_H, form.bound),
            AverageOverRounds(H_DECREASE, H, T, AVERAGE_OF_H, H_GRADIENT, (), H_BOUNDED_BELOW.name, PER_ROUND),
            (f"N6{name}", H_BOUNDED_BELOW, *form.conditions[2:]),
        )


NO_GAP_PROOF = Proof(
    f"{THEOREM_B_4_1.key}-no-gap",
    without_gap(),
    tuple(steps()),
    THEOREM_B_4_1,
    {form.name: f"B.4.4{name}" for name, _, form, _ in ROWS},
)
