r"""Lemma 5, eqs. (57) to (65): one step down the objective."""

from __future__ import annotations

from sympy import Rational, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning, Descent, Jensen, Smooth, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.bounds.audit.rules import Combine
from fedbounds.bounds.audit.vectors import inner, square
from fedbounds.bounds.papers.fedmrn.assumptions import LIPSCHITZ
from fedbounds.bounds.papers.fedmrn.lemmas import LEMMA_5
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.iteration import MEAN_NEEDS, cohort, enter_within, masked
from fedbounds.bounds.papers.fedmrn.proof.symbols import EACH, MARTINGALE, SAMPLING, Masking

L, etat, Dt, M = n.L, n.etat, n.Dt, n.M
b, x, g, gb, g0, f0, nb = symbols.b, symbols.x, symbols.g, symbols.gb, symbols.g0, symbols.f0, symbols.nb
vb, va, wn = symbols.vb, symbols.va, symbols.wn
HALF = Rational(1, 2)
DECREASE = Symbol("[E F(w_bar_t) - E F(w_bar_{t+1})]", real=True)


def descent_proof(masking: Masking) -> Proof:
    """Lemma 5 under these masks."""
    step, error = gb + nb, wn - vb
    c = Chain(symbols.SETTING, EACH)
    c["D2", "D_t is the mean squared distance of the masked models from w_bar_t"] = by(
        ByMeaning("Letter", square(b - x), Dt, op="==")
    )
    c["D3", "M_{t+1} is the squared error of masks and cohort"] = by(ByMeaning("Letter", square(error), M, op="=="))
    c["S28", "descent lemma from w_bar_t to w_bar_{t+1} = w_bar_t - eta_t g_t + error, eqs. (57) and (59)"] = by(
        Descent("f0", error - etat * step, DECREASE, L), LIPSCHITZ
    )
    for name, known in (("a", f0), ("b", step)):
        c[f"S27{name}", "the uploaded masks are unbiased, eq. (58)"] = by(
            masked("wn", "va", known, masking), *masking.assumptions, *enter_within(c, masking)
        )
        c[f"S27{name}'", "and so is the cohort"] = cohort(known), SAMPLING
    for name, known in (("a", f0), ("b", gb)):
        c[f"S31{name}", "noise is drawn after the gradients, with mean zero"] = by(
            Uncorrelated(nb, known, needs=(MARTINGALE.name,)), MARTINGALE
        )
    c["S29", "the product of two vectors by three squares, eq. (60)"] = by(
        eq(2 * inner(f0, gb), square(f0) + square(gb) - square(f0 - gb)), Combine()
    )
    c["S30a", "Jensen over the clients, eq. (61)"] = by(
        Jensen(g0 - g, axiom="all clients have weight 1/N", needs=MEAN_NEEDS), SAMPLING
    )
    c["S30b", "smoothness between w_bar_t and x_k, eq. (61)"] = Smooth("g", "g0", L), LIPSCHITZ
    printed = -etat / 2 * square(f0) + (L * etat**2 - etat) / 2 * square(gb) + etat / 2 * L**2 * Dt
    c["26", "Lemma 5, eq. (26)"] = by(
        le(-DECREASE, printed + L * etat**2 / 2 * square(nb) + L / 2 * M),
        {"S28": 1, "S29": -etat / 2, "S30a": etat / 2, "S30b": etat / 2, "D2": etat / 2 * L**2, "D3": L / 2}
        | {"S27a": 1, "S27a'": 1, "S27b": -L * etat, "S27b'": -L * etat}
        | {"S31a": -etat, "S31b": L * etat**2},
    )
    ends = {"repaired": "26"} if masking.amplitude is None else {}
    return c.proof(f"{LEMMA_5.key}{masking.suffix}", LEMMA_5, ends, -DECREASE, symbols.TO_LETTERS)
