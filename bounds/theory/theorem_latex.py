r"""Results in LaTeX: a whole theorem environment for a paper, which needs no package but amsmath."""

from __future__ import annotations

from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.theory.assumption_latex import statement_latex
from fedbounds.bounds.theory.result import Form, Result, plain_amsmath, reachable


def theorem(result: Result, form: Form, audit: str) -> str:
    r"""The whole theorem as an environment: assumptions, conditions, bound, step sizes, names and letters.

    It compiles with amsmath alone, after \newtheorem{theorem}{Theorem}.
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
    meanings = [f"${q.latex}$: {tex(q.meaning)}" for q in result.notation.values() if q.name in used]
    return [f"The letters are {'; '.join(meanings)}."] if meanings else []
