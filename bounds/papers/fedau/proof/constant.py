r"""Theorem B.4.1 with half of the slope: constant weights leave no gap between $z$ and $s$.

With the normalized weights $p_n\tilde\alpha_n/N=\varphi_n$ the update's mean is $s=\sum_n\varphi_nv_n$ itself.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp
from sympy import Rational

from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.derivations import InExpectation, Specialize
from fedbounds.bounds.audit.participation_rules import MeanUpdate, SecondMoment
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Telescope
from fedbounds.bounds.audit.vectors import square
from fedbounds.bounds.papers.fedau.assumptions import H_BOUNDED_BELOW
from fedbounds.bounds.papers.fedau.lemmas import DRIFT_CAP, LOCAL_CAP
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof import theorem
from fedbounds.bounds.papers.fedau.proof.descent import CHOSEN, DECREASE, DESCENT_PROOF, INDEPENDENT, SHARP, move
from fedbounds.bounds.papers.fedau.proof.drift import GENERAL, G, f0, round_setting, s
from fedbounds.bounds.papers.fedau.results import H_GLOBAL_CAP, H_SLOPE_NO_GAP, THEOREM_B_4_1

AVERAGE_OF_H, CONSTANT_PROOF, DISCHARGED = theorem.AVERAGE_OF_H, theorem.CONSTANT_PROOF, theorem.DISCHARGED
H_DECREASE, H_GRADIENT, H_MEAN, KNOWN = theorem.H_DECREASE, theorem.H_GRADIENT, theorem.H_MEAN, theorem.KNOWN
NORMALIZED, OVER_ALL, PER_ROUND, ROUND = theorem.NORMALIZED, theorem.OVER_ALL, theorem.PER_ROUND, theorem.ROUND

L, I, N, T, H, gamma, sigma, etatilde = n.L, n.I, n.N, n.T, n.H, n.gamma, n.sigma, n.etatilde
QUARTER = Rational(1, 4)
PRINTED, NO_GAP = THEOREM_B_4_1.form("printed"), THEOREM_B_4_1.form("sharp:no-gap")
ROWS = (
    ("-printed", LOCAL_CAP, PRINTED, "H5 with a quarter of the gradient, and the growth factors at the cap"),
    ("-no-gap", DRIFT_CAP, NO_GAP, "divided by what the gradient keeps"),
)


def without_gap() -> ProofSetting:
    """A round in which p_n omega_n/N = varphi_n, so that the update's mean is s."""
    setting = round_setting("f~")
    update = replace(
        setting.atoms["d"],
        mean="s",
        meaning="(1/N) sum_n 1_n omega_n (v_n + a_n) with p_n omega_n/N = varphi_n, the update over -gamma eta I",
    )
    return ProofSetting(setting.bracket, {**setting.atoms, "d": update}, setting.given)


def one_round() -> sp.Expr:
    """What h increases by in one round, at most."""
    second = L * move / 2 * GENERAL.moment / N * SHARP.update(GENERAL)
    return move * (SHARP.apart(GENERAL) / 2 + second - G / 2)


def no_gap_chain() -> Chain:
    """One round without a gap, then as in Theorem B.4.1."""
    c, home = Chain(without_gap(), ROUND, (DESCENT_PROOF, CONSTANT_PROOF)), CONSTANT_PROOF.id
    c["N1", "the update's mean is s; participation and noise averaged out of the first-order term"] = by(
        MeanUpdate("d", f0), *CHOSEN
    )
    c["N2", "independent participation and noise: the variance of a sum"] = by(
        SecondMoment("d", "v", "a", GENERAL.moment / N), f"{KNOWN}S10'", *CHOSEN, INDEPENDENT
    )
    c["N3", "one round: the gradient keeps 1/2"] = by(
        le(-DECREASE, one_round()),
        {f"{KNOWN}D1": 1, "N1": -move, f"{KNOWN}S7": move, "N2": L * move**2 / 2}
        | {f"{KNOWN}S13": move * square(s) / 2, f"{KNOWN}S9d": move / 2},
    )
    rule = Telescope(H_DECREASE, H, T, AVERAGE_OF_H, H_GRADIENT, (), H_BOUNDED_BELOW.name, PER_ROUND)
    for name, cap, form, says in ROWS:
        per_round = form.bound.xreplace({H: T * DECREASE})
        c[f"N4{name}", "for h with the normalized weights"] = by(
            Specialize(NORMALIZED, DISCHARGED), f"N3 {home}/H1 {home}/H2 {home}/H3 {home}/H4", cap, H_GLOBAL_CAP
        )
        if form is PRINTED:
            update = 2 * gamma * etatilde * L * n.Qtilde / N
            drift = 2 * gamma**2 * L**2 * I * (sigma**2 + 6 * I * (n.deltatilde**2 + G))
            growth = {"K-A": update * sigma**2, "K-B": update * I * (n.deltatilde**2 + G), "K1": drift}
            factors = {f"N4{name}": 1 / (gamma * etatilde * I * QUARTER)}
            factors |= {f"{KNOWN}{step}": m for step, m in growth.items()}
        else:
            factors = {f"N4{name}": 1 / (gamma * etatilde * I * H_SLOPE_NO_GAP)}
        c[f"N5{name}", says] = le(G, per_round), factors, *form.conditions[2:]
        c[f"N6{name}", "in expectation over the rounds before"] = InExpectation(H_MEAN, OVER_ALL), f"N5{name}"
        c[f"B.4.4{name}", "the average over the rounds, telescoped", ""] = by(
            rule, f"N6{name}", H_BOUNDED_BELOW, *form.conditions[2:]
        )
    return c


NO_GAP_PROOF = no_gap_chain().proof(
    f"{THEOREM_B_4_1.key}-no-gap", THEOREM_B_4_1, {form.name: f"B.4.4{name}" for name, _, form, _ in ROWS}
)
