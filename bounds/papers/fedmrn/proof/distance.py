r"""Lemma 4, eqs. (44) to (54): one step towards the minimizer, for the mean over the clients.

(19) needs no mean of the masked models: $-\frac38\eta_t\mu\|\bar w_t-w^*\|^2$ pays for the bias (S17m, S20m).
"""

from __future__ import annotations

from sympy import Rational, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning, Jensen, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.bounds.audit.rules import Combine, Gram
from fedbounds.bounds.audit.vectors import inner, product_symbol, square
from fedbounds.bounds.papers.fedmrn.assumptions import QUADRATIC_GROWTH, STRONGLY_CONVEX
from fedbounds.bounds.papers.fedmrn.lemmas import HALF_STEP, LEMMA_4, QUARTER_STEP
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.iteration import MEAN_NEEDS, enter_within, masked, mean_of
from fedbounds.bounds.papers.fedmrn.proof.symbols import EACH, MARTINGALE, SAMPLING, Masking
from fedbounds.bounds.papers.fedmrn.results import CURVATURE

L, mu, Gamma, etat, Deltat, Dt = n.L, n.mu, n.Gamma, n.etat, n.Deltat, n.Dt
b, w, x, ws, g, gb, g0, nb = symbols.b, symbols.w, symbols.x, symbols.ws, symbols.g, symbols.gb, symbols.g0, symbols.nb
EXCESS = Symbol("[mean of F_k(x_k) - F_k(w*)]", real=True)
GAP = Symbol("[F(w_bar_t) - F*]", nonnegative=True)
AFTER = square(b - etat * (gb + nb) - ws)
V = product_symbol("nb", "nb")


def enter_letters(c: Chain) -> None:
    """What the lemma's symbols stand for."""
    c["D1", "Delta_t is the squared distance of w_bar_t from w*"] = by(
        ByMeaning("Letter", square(b - ws), Deltat, op="==")
    )
    c["D2", "D_t is the mean squared distance of the masked models from w_bar_t"] = by(
        ByMeaning("Letter", square(b - x), Dt, op="==")
    )


def distance_proof(masking: Masking) -> Proof:
    """Lemma 4 under these masks."""
    c = Chain(symbols.SETTING, EACH)
    enter_letters(c)
    c["S20a", "noise is drawn after the gradients, with mean zero"] = by(
        Uncorrelated(nb, b - ws - etat * gb, needs=(MARTINGALE.name,)), MARTINGALE
    )
    c["S13", "a function less its minimum is at least |grad|^2/(2L), eq. (46), at x_k"] = by(
        le(square(g), 2 * L * (EXCESS + Gamma)), QUADRATIC_GROWTH
    )
    c["S14", "Jensen over the clients, eq. (47)"] = by(
        Jensen(g, axiom="all clients have weight 1/N", needs=MEAN_NEEDS), SAMPLING
    )
    c["S15a", "the mean of the gradients is g_bar"] = mean_of(g, b - ws), SAMPLING
    c["S15", "Young with eta_t, eq. (49)"] = by(
        le(-2 * inner(b - x, g), square(b - x) / etat + etat * square(g)), Gram()
    )
    c["S16", "strong convexity between x_k and w*, eq. (50)"] = by(
        le(-inner(x - ws, g), -EXCESS - mu / 2 * square(x - ws)), STRONGLY_CONVEX
    )
    c["S17a", "masks are unbiased given the clients' models"] = by(
        masked("x", "w", b - ws, masking), *masking.local, *enter_within(c, masking)
    )
    c["S17b", "the mean of the clients' models is w_bar_t"] = mean_of(w - b, b - ws), SAMPLING
    c["S17", "the mean of the masked models is w_bar_t, after (51); false for a client of its own"] = by(
        eq(square(x - ws), square(b - x) + square(b - ws)), "S17a S17b"
    )
    c["S19a", "convexity between w_bar_t and x_k"] = le(GAP + inner(g0, x - b), EXCESS), STRONGLY_CONVEX
    c["S19b", "Young with eta_t"] = le(-inner(g0, x - b), etat / 2 * square(g0) + square(x - b) / (2 * etat)), Gram()
    c["S19c", "eq. (46) at w_bar_t"] = le(square(g0), 2 * L * (GAP + Gamma)), QUADRATIC_GROWTH
    c["S19", "eq. (53)"] = by(
        le(-EXCESS, (etat * L - 1) * GAP + etat * L * Gamma + square(x - b) / (2 * etat)),
        {"S19a": 1, "S19b": 1, "S19c": etat / 2},
    )
    turned = 2 * etat * (1 - 2 * L * etat)
    c["S20", "the value gap, eq. (54), with F* where it prints F_k*"] = by(
        le(
            2 * etat**2 * square(g) - 2 * etat * EXCESS,
            (4 * L * etat**2 + turned * etat * L) * Gamma + turned / (2 * etat) * square(b - x),
        ),
        {"S13": 2 * etat**2, "S19": turned},
        HALF_STEP,
    )
    sharp, printed = (LEMMA_4.form(name).bound.xreplace({n.V: V}) for name in ("sharp", "printed"))
    c["19'", "Lemma 4 before it is rounded up"] = by(
        le(AFTER, sharp),
        {"S20a": -2 * etat, "S14": etat**2, "S15a": 2 * etat, "S15": etat, "S16": 2 * etat, "S17": -mu * etat, "S20": 1}
        | {"D1": 1 - mu * etat, "D2": 2 - 2 * L * etat - mu * etat},
    )
    c["S17m", "whatever the masked models are: Young with 8/5 and 8/3"] = by(
        le(square(b - ws), Rational(8, 5) * square(x - ws) + Rational(8, 3) * square(b - x)), Gram()
    )
    c["S18m", "strong convexity between w_bar_t and w*"] = le(mu / 2 * square(b - ws), GAP), STRONGLY_CONVEX
    c["S20f", "at steps of at most 1/(4L), the part of the gap that (54) drops", ""] = by(
        le(Rational(3, 8) * etat, turned * (1 - etat * L) / 2), Combine(), QUARTER_STEP
    )
    c["S20m", "the value gap, eq. (54), with 3/8 of what it drops"] = by(
        le(
            2 * etat**2 * square(g) - 2 * etat * EXCESS,
            (4 * L * etat**2 + turned * etat * L) * Gamma
            - Rational(3, 8) * etat * mu * square(b - ws)
            + turned / (2 * etat) * square(b - x),
        ),
        {"S13": 2 * etat**2, "S19": turned, "S18m": turned * (1 - etat * L), "S20f": mu * square(b - ws)},
        QUARTER_STEP,
    )
    c["19", "Lemma 4, eq. (19), for masks of any kind"] = by(
        le(AFTER, printed),
        {"S20a": -2 * etat, "S14": etat**2, "S15a": 2 * etat, "S15": etat, "S16": 2 * etat, "S20m": 1}
        | {
            "S17m": Rational(5, 8) * etat * mu,
            "D1": 1 - mu * etat,
            "D2": 2 - 2 * L * etat + Rational(5, 3) * mu * etat,
        },
        QUARTER_STEP,
        CURVATURE,
    )
    ends = {"sharp": "19'", "printed": "19"} if masking.amplitude is None else {}
    return c.proof(f"{LEMMA_4.key}{masking.suffix}", LEMMA_4, ends, AFTER, symbols.TO_LETTERS)
