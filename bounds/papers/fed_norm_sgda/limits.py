r"""Special cases of Sharma et al. (2023) in which forms must agree, and the directions in which they move."""

from collections.abc import Iterator, Mapping

import sympy as sp
from sympy import Integer, Symbol

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.audit.sums import one, substitute_terms, terms_of
from fedbounds.bounds.papers.fed_norm_sgda.composites import SAMPLED, c, d
from fedbounds.bounds.papers.fed_norm_sgda.concave import I_1_SQUARED, NOISE, THEOREM_4
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import COROLLARY_1_1, COROLLARY_2_1
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_5
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_2, LEMMA_C_3
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.remarks import REMARK_1
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1, THEOREM_1_AT_ITS_STEPS
from fedbounds.bounds.theory.client_reductions import SumOverClients
from fedbounds.bounds.theory.result import Result, Term

s = Symbol("s", positive=True)
SHARP_1, SHARP_4 = terms_of(THEOREM_1, "sharp"), terms_of(THEOREM_4, "sharp")
ONE, ZERO = Integer(1), Integer(0)
NU = (Relation(ONE, n.nu), Relation(n.nu, Integer(2)))
CURVED = Relation(ONE, n.kappa)
I_2 = n.A_w * n.sigmaL**2 + (n.B_w * n.betaL**2 + n.taueff * d * n.E_w) * n.sigmaG**2  # after (48)
SQUARES = SumOverClients(n.w**2)
ALIKE = {n.A_w: ONE, n.B_w: ONE, n.E_w: ONE, SQUARES: 1 / n.n}
SAMPLING = {n.n: n.n + 1, sp.Max(1, n.n - 1): n.n}  # two clients at least: alone there is nothing to draw


def pair(
    name: str, text: str, left: sp.Expr, right: sp.Expr, source: str, values: Mapping[sp.Expr, sp.Expr] | None = None
) -> Limit:
    """Two expressions that agree at some values."""
    return Limit(name, text, one(left), one(right), at=values or {}, source=source)


def average_limits() -> Iterator[Limit]:
    """Eqs. (56) to (59)."""
    alone = {n.n: ONE, n.P: ONE, n.taueff: ONE, **{key: ONE for key in (n.A_w, n.B_w, n.E_w, SQUARES)}}
    quiet = {**alone, n.sigmaL: ZERO, n.sigmaG: ZERO}
    growth = (1 + n.betaL**2) * n.Gx**2
    yield pair("one-client-without-noise", "(56): I_1^2 = (1 + betaL^2) Gx^2", I_1_SQUARED, growth, "(56)", quiet)
    yield pair("one-client-without-noise-i-2", "(56): I_2 = 0", I_2, ZERO, "(56)", quiet)
    noisy = n.sigmaL**2 + growth
    yield pair("one-client", "(57): I_1^2 = sigmaL^2 + (1 + betaL^2) Gx^2", I_1_SQUARED, noisy, "(57)", alone)
    yield pair("one-client-i-2", "(57): I_2 = sigmaL^2", I_2, n.sigmaL**2, "(57)", {**alone, n.sigmaG: ZERO})
    at_once = {**ALIKE, n.P: n.n, n.taueff: ONE}
    spread = n.Gx**2 + (n.sigmaL**2 + n.betaL**2 * n.Gx**2) / n.n
    yield pair("synchronized", "(58): one local step, all clients alike", I_1_SQUARED, spread, "(58)", at_once)
    local = {**ALIKE, n.P: n.n, n.taueff: n.taubar}
    spread = n.Gx**2 + (n.sigmaL**2 + n.betaL**2 * n.Gx**2) / (n.n * n.taubar)
    yield pair("equal-local-steps", "(59): tau local steps, all clients alike", I_1_SQUARED, spread, "(59)", local)
    both = n.sigmaL**2 + n.betaL**2 * n.sigmaG**2
    yield pair("equal-local-steps-i-2", "(59): I_2 = sigmaL^2 + betaL^2 sigmaG^2", I_2, both, "(59)", local)
    yield pair("sampling-probabilities", "c + d/P = 1", c + d / n.P, ONE, "Lemma B.2, (20)", SAMPLING)


def closed_form_limits() -> Iterator[Limit]:
    """(50) to (53): what the snapshot period and the steps of the paper make of (48) without its constants."""
    first, second = sp.symbols("I_1 I_2", positive=True)
    pull, source = n.R * n.gammax * n.Gx * first, "(50) to (53)"
    period = sp.sqrt(n.R / (n.taueff**2 * n.gammax * n.gammay * n.Gx * first))
    lag = n.Lf * n.taueff * n.gammax * n.Gx * n.S * first + n.Lf * n.R / (n.taueff * n.gammay * n.S)
    balanced = 2 * n.Lf * sp.sqrt(pull / n.gammay)
    text = "the two terms with S are equal, and their sum is 2 Lf sqrt(R gammax Gx I_1/gammay)"
    yield pair("snapshot-period-in-closed-form", text, lag, balanced, source, {n.S: period})
    third = sp.Rational(1, 3)
    ascent = (n.P / (2 * second)) ** (2 * third) * pull**third
    noisy = 3 * 2 ** (-2 * third) * n.Lf * (second / n.P * pull) ** third
    text = "with the noise, constants dropped, they are 3/2^(2/3) Lf (I_2 R gammax Gx I_1/P)^(1/3)"
    both = balanced / 2 + n.Lf * n.gammay * second / n.P
    yield pair("ascent-step-in-closed-form", text, both, noisy, source, {n.gammay: ascent})
    rest = second * n.R * n.Gx * first / n.P
    descent = (3 * n.Deltabar / (n.taueff * n.Lf * n.T)) ** sp.Rational(3, 4) * rest ** -sp.Rational(1, 4)
    gap = n.Deltabar / (n.taueff * n.gammax * n.T) + n.Lf * (rest * n.gammax) ** third
    least = 4 * 3 ** -sp.Rational(3, 4) * n.Lf ** sp.Rational(3, 4)
    least *= (n.Deltabar * rest / (n.taueff * n.T)) ** sp.Rational(1, 4)
    text = "with the initial gap, constants dropped, it is 4/3^(3/4) Lf^(3/4) (Delta I_1 I_2 R Gx/(taueff P T))^(1/4)"
    yield pair("descent-step-in-closed-form", text, gap, least, source, {n.gammax: descent})


def vanishing_limits() -> Iterator[Limit]:
    """What is zero when."""
    for name, result in (("theorem-1", THEOREM_1), ("theorem-4", THEOREM_4)):
        for case, text, gone, values in (
            ("all-clients", "with all clients there is no participation error", "partial participation", {n.P: n.n}),
            ("one-local-step", "with one local step there is no drift", "local updates", {n.C_w: ZERO, n.D: ZERO}),
        ):
            yield Limit(
                f"{name}-{case}", text, terms_of(result, "sharp"), terms_of(result, "sharp", without=gone), at=values
            )
    yield Limit(
        "theorem-1-without-noise",
        "without noise and heterogeneity only the initial gaps are left",
        SHARP_1,
        tuple(t for t in SHARP_1 if "gap" in t.name),
        at={n.sigmaL: ZERO, n.sigmaG: ZERO},
    )
    yield Limit(
        "theorem-4-snapshot-in-every-round",
        "with S = 1 no snapshot is stale, and the restart stays",
        SHARP_4,
        terms_of(THEOREM_4, "sharp", without="stale snapshot"),
        at={n.S: ONE},
    )
    for name, result, left, values in (
        ("weights-that-are-meant", COROLLARY_1_1, n.epsopt, {n.chi2: ZERO, n.lag: ZERO}),
        ("proximal-points-that-agree", COROLLARY_2_1, n.epsbar, {n.proxlag: ZERO}),
    ):
        yield Limit(name, "p = w: both objectives are one", terms_of(result, "sharp"), one(left), at=values)


def term_of(result: Result, form: str, name: str) -> sp.Expr:
    """One term of a form."""
    return next(t.expression for t in result.form(form).terms if t.name == name)


def gauge_limits() -> Iterator[Limit]:
    """What does not change: taueff against the server's steps, coefficients against the clients'."""
    by_server: dict[sp.Expr, sp.Expr] = {n.taueff: s * n.taueff, n.A_w: s * n.A_w, n.B_w: s * n.B_w}
    by_clients: dict[sp.Expr, sp.Expr] = {n.C_w: s**2 * n.C_w, n.D: s**2 * n.D, n.etax: n.etax / s, n.etay: n.etay / s}
    for name, terms in (("theorem-1", SHARP_1), ("theorem-4", SHARP_4)):
        yield Limit(
            f"{name}-gauge-of-the-server",
            "taueff to s taueff, gamma to gamma/s",
            substitute_terms(terms, by_server),
            terms,
        )
        yield Limit(
            f"{name}-gauge-of-the-clients", "a to s a, eta to eta/s", substitute_terms(terms, by_clients), terms
        )
    participation = "partial participation"
    yield pair(
        "remark-1-participation",
        "the participation error of Remark 1 is that of Theorem 1 at its steps",
        term_of(THEOREM_1_AT_ITS_STEPS, "sharp", participation),
        term_of(REMARK_1, "repaired", participation),
        "Remark 1",
        {n.E_w: ONE, n.taueff: n.taubar},
    )
    noise = n.A_w * n.sigmaL**2 + 2 * n.sigmaG**2 * (n.B_w * n.betaL**2 + n.taueff * d * n.E_w)
    yield pair(
        "noise-in-the-paper's-symbols",
        "Gamma_y N in the symbols A_w, B_w and E_w",
        n.taueff * n.gammay * NOISE,
        n.gammay / n.P * noise,
        "(18)",
    )


def monotone_limit(name: str, terms: tuple[Term, ...], symbol: sp.Symbol, falls: bool = False) -> Limit:
    """A bound that increases, or falls, in a symbol, everything else fixed."""
    more = substitute_terms(terms, {symbol: symbol + s})
    sides = (more, terms) if falls else (terms, more)
    word = "falls" if falls else "increases"
    text = f"{name} [sharp] {word} in {symbol}"
    return Limit(f"{name}-{word}-with-{symbol}", text, *sides, "<=", facts=(SAMPLED, *NU))


def monotone_limits() -> Iterator[Limit]:
    """Monotone in everything but the ascent step and the snapshot period."""
    for symbol in (n.Delta, n.delta0, n.sigmaL, n.sigmaG, n.betaL, n.etax, n.etay, n.kappa):
        yield monotone_limit("theorem-1", SHARP_1, symbol)
    for symbol in (n.T, n.Gammax):
        yield monotone_limit("theorem-1", SHARP_1, symbol, falls=True)
    for symbol in (n.Deltabar, n.R, n.sigmaG, n.etax, n.etay):
        yield monotone_limit("theorem-4", SHARP_4, symbol)
    yield monotone_limit("theorem-4", SHARP_4, n.T, falls=True)


def sharper_limit(result: Result, above: str = "repaired") -> Limit:
    """The sharp form is below another."""
    name = result.key.partition("/")[2]
    left, right = terms_of(result, "sharp"), terms_of(result, above)
    text = f"{name} [sharp] is at most [{above}]"
    return Limit(f"{name}-sharp-below-{above}", text, left, right, "<=", facts=(SAMPLED, *NU, CURVED))


SHARPENED = (THEOREM_1, THEOREM_1_AT_ITS_STEPS, THEOREM_4, LEMMA_B_5, LEMMA_C_2, LEMMA_C_3)
LIMITS = (
    *average_limits(),
    *closed_form_limits(),
    *vanishing_limits(),
    *gauge_limits(),
    *monotone_limits(),
    *map(sharper_limit, SHARPENED),
    sharper_limit(THEOREM_1, "explicit"),
)
