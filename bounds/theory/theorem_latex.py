r"""Results in LaTeX: a whole theorem environment for a paper, which needs no package but amsmath."""

from __future__ import annotations

import re

from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.theory.assumption_latex import GREEK, statement_latex
from fedbounds.bounds.theory.result import Form, Result, plain_amsmath, reachable


def theorem(result: Result, form: Form, audit: str) -> str:
    r"""The whole theorem as an environment: assumptions, conditions, bound, step sizes, names and letters.

    It compiles with amsmath alone, after \newtheorem{theorem}{Theorem}.

    Args:
        result, form: what is written.
        audit: the audit's verdict on the form, in words.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> weights = load("fedau/theorem-3")
        >>> print("\n".join(theorem(weights, weights.form("explicit"), "proved").splitlines()[:5]))
        % fedau/theorem-3 [explicit]: Wang & Ji 2024, Theorem 3, eq. (7), (B.6.9)
        % \usepackage{amsmath}
        % \newtheorem{theorem}{Theorem}
        \begin{theorem}[The weight error of FedAU]
        Assume
    """
    parts = result.in_latex(form)
    kind = result.kind
    lines = [
        f"% {result.key} [{form.name}]: {result.source}",
        r"% \usepackage{amsmath}",
        rf"% \newtheorem{{{kind}}}{{{kind.capitalize()}}}",
        rf"\begin{{{kind}}}[{tex(result.title)}]",
    ]
    if form.assumptions:
        letters = result.notation
        assumed = [
            rf"\item[{tex(a.name)}] {statement_latex(a.statement, letters)} ({tex(a.label)})" for a in form.assumptions
        ]
        lines += ["Assume", r"\begin{description}", *assumed, r"\end{description}"]
    lines += ["If", *_gathered(parts.conditions), "then"] if parts.conditions else ["Then"]
    terms = zip(parts.terms, form.terms, strict=True)
    named = [rf"\underbrace{{{text}}}_{{\text{{{tex(term.name)}}}}}" for text, term in terms]
    opening, closing = (r"O\Big(", r"\Big)") if form.order_only else ("", "")
    first, *rest = [rf"{parts.left} &\le {opening}{named[0]}", *(rf"&\quad + {text}" for text in named[1:])]
    lines += [r"\begin{align*}", " \\\\\n".join([first, *rest]) + closing, r"\end{align*}"]
    lines += ["with the step sizes", *_gathered(parts.steps)] if parts.steps else []
    lines += ["where", *_gathered(parts.names)] if parts.names else []
    lines += _letters(result, form)
    remarks = [result.statement, f"It hides {form.hides}." if form.order_only else ""]
    remarks += [f"It holds only as {form.asymptotic}." if form.asymptotic else "", form.note]
    lines += [tex(" ".join(filter(None, [*remarks, f"[{form.name}; {audit}]"]))), rf"\end{{{kind}}}"]
    return plain_amsmath("\n".join(lines))


def _gathered(formulas: tuple[str, ...]) -> list[str]:
    return [r"\begin{gather*}", " \\\\\n".join(formulas), r"\end{gather*}"]


def _letters(result: Result, form: Form) -> list[str]:
    """What the letters mean, in the paper's order."""
    used = reachable(form, prescribed=True) & {str(s) for e in form.said for s in e.free_symbols}
    symbols = [q for q in result.notation.values() if q.name in used]
    known = {name: q for name, q in result.notation.items() if name in GREEK or not re.fullmatch("[a-z]{3,}", name)}
    meanings = [f"${q.latex}$: {statement_latex(q.meaning, known)}" for q in symbols]  # "gap" is a word there
    return [f"The symbols are {'; '.join(meanings)}."] if meanings else []
