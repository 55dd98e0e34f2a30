r"""Results in LaTeX: a whole theorem environment for a paper, which needs no package but amsmath."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.theory.result import Form, Result, plain_amsmath, reachable
from fedbounds.bounds.theory.symbols import Quantity

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "eta", "kappa", "lambda", "mu", "nu", "omega", "rho", "sigma", "tau",
    "theta", "upsilon", "varphi", "xi",
}  # fmt: skip
SIGNS = {"<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "<": "<", ">": ">", "=": "=", "-": "-", "+": "+"}
NAMES = {"grad": r"\nabla", "sum": r"\sum", "max": r"\max", "E": r"\operatorname{E}"}
INDEXED = ("sum", "max")  # words but for their index
INDEX = r"_(?:\{[^{}]*\}|\([^()]*\)|\w+)"
POWER = r"\^(?:\([^()]*\)|-?\w+|\*)"
PIECES = re.compile(
    rf"(?P<inner><(?=\S[^<>=|]*, [^<>=|]*\S>)|(?<=[^\s<>=])>(?!=))"
    rf"|(?P<sign><=|>=|!=|<|>|=|(?<= )[-+](?= ))|(?P<bar>\|)|(?P<power>{POWER})"
    rf"|(?P<name>(?<![A-Za-z0-9'-])[A-Za-z]+(?:\*|'(?![A-Za-z]))?)(?P<index>{INDEX})?(?P<raised>{POWER})?"
    r"(?![A-Za-z0-9]|-[a-z]{3}|'[a-z])"
)


def statement_latex(text: str, notation: Mapping[str, Quantity]) -> str:
    r"""A statement in LaTeX."""
    parts: list[tuple[bool, str]] = []
    at = 0
    for found in PIECES.finditer(text):
        math = _formula(found, notation)
        if math is not None:
            parts += [(False, text[at : found.start()]), (True, math)]
            at = found.end()
    parts.append((False, text[at:]))
    joined, before = "", False
    for is_math, piece in parts:
        if not piece:
            continue
        if is_math and before:
            joined = f"{joined[:-1]}{piece}$"
        else:
            joined += f"${piece}$" if is_math else tex(piece)
        before = is_math
    return _join_formulas(re.sub(r"(\\nabla(?:_\{\w+\})?) \$ \$", r"\1 ", joined))


def _join_formulas(text: str) -> str:
    """The text with neighboring formulas as one, where nothing but spaces and balanced brackets stands between them."""
    pieces = re.split(r"(?<!\\)\$", text)  # words and formulas alternate
    joined, first = pieces[0], 1
    while first < len(pieces):
        formula, last = _longest_formula(pieces, first)
        words, closing = pieces[last + 1], formula[len("".join(pieces[first : last + 1])) :]
        joined += f"${re.sub(' +', ' ', formula)}${words[len(closing) :]}"
        first = last + 2
    return joined


def _longest_formula(pieces: list[str], first: int) -> tuple[str, int]:
    """The longest balanced formula that begins with this piece, with closing brackets after it, and its last piece."""
    best, last, formula = pieces[first], first, pieces[first]
    for place in range(first, len(pieces), 2):
        words = pieces[place + 1]
        closing = (re.match(r"[)\]]*", words) or [""])[0]
        for more in range(len(closing) + 1):
            if _balanced(formula + closing[:more]):
                best, last = formula + closing[:more], place
        if place + 2 >= len(pieces) or not re.fullmatch(r"[()\[\]\s]*", words):
            break
        formula += words + pieces[place + 2]
    return best, last


def _balanced(formula: str) -> bool:
    """Whether every bracket is closed."""
    left = re.sub(r"[^()\[\]]", "", formula)
    while (shorter := left.replace("()", "").replace("[]", "")) != left:
        left = shorter
    return not left


def _formula(found: re.Match[str], notation: Mapping[str, Quantity]) -> str | None:
    """A piece as mathematics; None for a word."""
    if found["inner"]:
        return r"\langle " if found["inner"] == "<" else r"\rangle "
    if found["sign"]:
        return SIGNS[found["sign"]]
    if found["bar"]:
        start, end = found.span()
        alone = found.string[start - 1 : start] == " " and found.string[end : end + 1] == " "
        return r"\mid" if alone else r"\|"
    if found["power"]:
        return _superscript(found["power"])
    name, index, raised = found["name"], found["index"] or "", found["raised"] or ""
    symbol = name.rstrip("*'")
    if not index and not raised and (symbol == "a" or symbol in INDEXED):
        return None
    known = symbol in NAMES or symbol in GREEK or symbol in notation or len(symbol) == 1
    if not (known or index or raised):
        return None
    quantity = notation.get(symbol) if len(symbol) > 1 and not index else None
    base = NAMES.get(symbol) or (quantity.latex if quantity else rf"\{symbol}" if symbol in GREEK else symbol)
    base = base if len(symbol) == 1 or base.startswith("\\") or quantity else rf"\mathrm{{{base}}}"
    base += rf"_{{{_inside(index[1:])}}}" if index else ""
    mark = name[len(symbol) :]
    if mark == "'":
        return f"{{{base}}}'" + _superscript(raised)
    power = "*" if mark == "*" else ""
    return (f"{{{base}}}^{{{power}}}" if power else base) + _superscript(raised) + (" " if symbol == "grad" else "")


def _superscript(power: str) -> str:
    kept = re.fullmatch(r"\^\([a-z]\)", power)  # the number of a step, no power
    return rf"^{{{power[1:] if kept else _inside(power[1:])}}}" if power else ""


def _inside(text: str) -> str:
    """An index or an exponent."""
    plain = text[1:-1] if text.startswith(("(", "{")) else text
    if plain in GREEK:
        return rf"\{plain}"
    return plain if text.startswith("{") else plain.replace("_", ",")


def theorem(result: Result, form: Form, audit: str) -> str:
    r"""The whole theorem as an environment: assumptions, conditions, bound, step sizes, names and symbols.

    It compiles with amsmath alone, after \newtheorem{theorem}{Theorem}.
    """
    parts = result.latex_parts(form)
    kind = result.kind
    lines = [
        f"% {result.key} [{form.name}]: {result.source}",
        r"% \usepackage{amsmath}",
        rf"% \newtheorem{{{kind}}}{{{kind.capitalize()}}}",
        rf"\begin{{{kind}}}[{tex(result.title)}]",
    ]
    if form.assumptions:
        symbols = result.notation
        assumed = [
            rf"\item[{tex(a.name)}] {statement_latex(a.statement, symbols)} ({tex(a.label)})" for a in form.assumptions
        ]
        lines += ["Assume", r"\begin{description}", *assumed, r"\end{description}"]
    lines += ["If", *_gathered(parts.conditions), "then"] if parts.conditions else ["Then"]
    terms = zip(parts.terms, form.terms, strict=True)
    named = [rf"\underbrace{{{text}}}_{{\text{{{tex(term.name)}}}}}" for text, term in terms]
    first, *rest = [f"{parts.left} &{parts.opening}{named[0]}", *(rf"&\quad + {text}" for text in named[1:])]
    lines += [r"\begin{align*}", " \\\\\n".join([first, *rest]) + parts.closing, r"\end{align*}"]
    lines += ["with the step sizes", *_gathered(parts.steps)] if parts.steps else []
    lines += ["where", *_gathered(parts.names)] if parts.names else []
    lines += _symbols(result, form)
    remarks = [result.statement, f"It hides {form.hides}." if form.order_only else ""]
    remarks += [f"It holds only as {form.asymptotic}." if form.asymptotic else "", form.note]
    lines += [tex(" ".join(filter(None, [*remarks, f"[{form.name}; {audit}]"]))), rf"\end{{{kind}}}"]
    return plain_amsmath("\n".join(lines))


def _gathered(formulas: tuple[str, ...]) -> list[str]:
    return [r"\begin{gather*}", " \\\\\n".join(formulas), r"\end{gather*}"]


def _symbols(result: Result, form: Form) -> list[str]:
    """What the symbols mean, in the paper's order."""
    used = reachable(form, prescribed=True) & {str(s) for e in form.said for s in e.free_symbols}
    symbols = [q for q in result.notation.values() if q.name in used]
    known = {name: q for name, q in result.notation.items() if name in GREEK or not re.fullmatch("[a-z]{3,}", name)}
    meanings = [f"${q.latex}$: {statement_latex(q.meaning, known)}" for q in symbols]  # "gap" is a word there
    return [f"The symbols are {'; '.join(meanings)}."] if meanings else []
