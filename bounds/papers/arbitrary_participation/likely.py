"""Proposition 4.7 with high probability, for all points x at once, as (7) requires.

One round changes the root of the largest left-hand side over all x, whose mean square (15) bounds, by at most 2d/P.
"""

import sympy as sp
from sympy import Integer, log, sqrt

from fedbounds.bounds.papers.arbitrary_participation.assumptions import (
    BOUNDED_DIVERGENCE,
    JOINTLY_INDEPENDENT,
    UNBIASED_SAMPLING,
    WEIGHTS,
)
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.theory.measures import single
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import Derived

N, P, T, d, c, upsilon = n.N, n.P, n.T, n.d, n.c, n.upsilon
SQUARED_DIVERGENCE = "squared divergence of a window of P rounds from f, eq. (7)"
LIKELY_EVENT = "an event of probability at least 1 - c"
ONE_WINDOW = single(
    "squared divergence of one window of P rounds from f, eq. (7), at the worst point",
    r"\sup_{\mathbf x}\tilde\delta_{t_0}^2(P)",
    given=LIKELY_EVENT,
)
ALL_WINDOWS = single(SQUARED_DIVERGENCE, r"\tilde\delta^2(P)", given=LIKELY_EVENT)
SCALE = d**2 / P
SOME_WINDOW = Condition(P, "<=", T, "at least one window is complete; their number is at most T/P", P)
FOUR_CLIENTS = Condition(N, ">=", Integer(4), "(N - 1)/(N^2 - 4) <= ln(2)/2", N)
ASSUMES = (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, JOINTLY_INDEPENDENT, WEIGHTS)


def one_window(mean: sp.Expr) -> sp.Expr:
    r"""$\frac{d^2}P\big(\sqrt m+\sqrt{2\ln(1/c)}\big)^2$, where $m\,d^2/P$ bounds the mean left-hand side."""
    return SCALE * (sqrt(mean) + sqrt(2 * log(1 / c))) ** 2


def all_windows(mean: sp.Expr) -> sp.Expr:
    """The same for at most T/P windows at once, each with c P/T."""
    return one_window(mean).xreplace({c: c * P / T})


ANY_WEIGHTS, OF_VARIANCE = N - 1, (N * upsilon) ** 2  # N sum_n Var(q_t^n) is at most either
OWN_CONSTANT = N**2 * d**2 * log(2 / c) / (2 * P)


def likely_forms(sampled: Derived) -> tuple[Form, ...]:
    """What holds with probability 1 - c at every point, for one window and for all of them."""

    def form(name: str, value: sp.Expr, *conditions: Condition, every: bool = False, note: str) -> Form:
        return Form(
            name,
            (Term("window divergence", value),),
            conditions,
            ASSUMES,
            derived=(sampled,) if value.has(upsilon) else (),
            measure=ALL_WINDOWS if every else ONE_WINDOW,
            note=note,
        )

    return (
        form("repaired:one-window", one_window(ANY_WEIGHTS), note="bounded differences; any weights"),
        form(
            "repaired:all-windows",
            all_windows(ANY_WEIGHTS),
            SOME_WINDOW,
            every=True,
            note="the same with a union over the windows, which is what (7) asks",
        ),
        form(
            "repaired:own-constant",
            OWN_CONSTANT,
            FOUR_CLIENTS,
            note="the printed constant, for one window of N >= 4 clients (N <= 3 needs no joint independence)",
        ),
        form("sharp:one-window", one_window(OF_VARIANCE), note="bounded differences; N^2 upsilon^2 is (N - S)/S"),
        form(
            "sharp:all-windows",
            all_windows(OF_VARIANCE),
            SOME_WINDOW,
            every=True,
            note="the same with a union over the windows",
        ),
    )
