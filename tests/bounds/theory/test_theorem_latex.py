"""Theorems as LaTeX: assumptions are mathematics where they were formulas, and words stay words."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from matplotlib.mathtext import MathTextParser

from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.theorem_latex import statement_latex, theorem

EVERY = [result for paper in papers() for result in paper.results]


@pytest.mark.parametrize("result", EVERY, ids=[result.key for result in EVERY])
def test_no_sign_of_a_formula_is_left_in_the_words_of_an_assumption(result) -> None:
    for form in result.forms:
        for assumption in form.assumptions:
            text = statement_latex(assumption.statement, result.notation)
            assert "$$" not in text and text.count("$") % 2 == 0, text
            words, formulas = " ".join(text.split("$")[::2]), text.split("$")[1::2]
            assert all(one.count("{") == one.count("}") for one in formulas), text
            assert not re.search(r"[|<>=_^]|\bgrad\b|\bsigma\b|\bE\[|\\textasciicircum", words), text


def test_words_are_no_formulas() -> None:
    symbols = load("tdcd/theorem-1").notation
    text = "a client's covariances sum to at most 0, whatever the maximum is, and E is no word"
    assert statement_latex(text, symbols) == text.replace("E", r"$\operatorname{E}$")


def test_the_assumptions_of_the_theorem_of_tiers_are_typeset() -> None:
    text = theorem(load("tdcd/theorem-1"), load("tdcd/theorem-1").form("sharp:B3"), "proved")
    smooth = r"$\|\nabla f(x) - \nabla f(y)\| \le L \|x - y\|$ for all $x$, $y$"
    assert smooth in text and "grad" not in text.split(r"\end{description}")[0].replace("gradient", "")


ENGINE = next(filter(None, map(shutil.which, ("pdflatex", "xelatex", "tectonic"))), None)
DISPLAY = re.compile(r"\\begin\{(gather\*|align\*)\}\n(.*?)\n\\end\{\1\}", re.DOTALL)
INLINE = re.compile(r"(?<!\\)\$(.*?)(?<!\\)\$")
MATHTEXT = (  # what amsmath takes and matplotlib does not
    (r"\\(?:Big|textstyle|underbrace)(?![A-Za-z])|&", ""),
    (r"\\text(?=\{)", r"\\mathrm"),
    (r"\\tfrac", r"\\frac"),
    (r"\\(le|ge|ne)(?![A-Za-z])", r"\\\1q"),
    (r"\\(mathbf|mathcal|mathbb) ?([A-Za-z])(?![A-Za-z])", r"\\\1{\2}"),
    (r"\\frac(\w)", r"\\frac{\1}"),
    (r"(\\frac\{(?:[^{}]|\{[^{}]*\})*\}) ?([A-Za-z0-9]|\\[a-z]+)", r"\1{\2}"),
)


def theorems(name: str) -> list[str]:
    return [theorem(r, form, "proved") for r in EVERY if r.paper == name for form in r.forms]


def formulas_and_words(text: str) -> tuple[list[str], str]:
    """The formulas of a theorem, line by line, and the text around them."""
    text = re.sub(r"^%.*$", "", text, flags=re.MULTILINE)
    displayed = [line for found in DISPLAY.finditer(text) for line in re.split(r"\\\\\n", found[2])]
    words = DISPLAY.sub("", text)
    return [*displayed, *INLINE.findall(words)], INLINE.sub("", words)


def draw(formula: str) -> None:
    """Matplotlib typesets a formula, or raises."""
    for pattern, replacement in MATHTEXT:
        formula = re.sub(pattern, replacement, formula)
    MathTextParser("path").parse(f"${formula}$")


def distinct_formulas(name: str) -> list[str]:
    return sorted({formula for text in theorems(name) for formula in formulas_and_words(text)[0]})


@pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine; mathtext typesets the formulas")
@pytest.mark.parametrize("name", [paper.key for paper in papers()])
def test_every_theorem_of_a_paper_compiles(name: str, tmp_path: Path) -> None:
    kinds = {result.kind for result in EVERY}
    head = [r"\documentclass{article}\usepackage{amsmath}\allowdisplaybreaks"]
    head += [rf"\newtheorem{{{kind}}}{{{kind.capitalize()}}}" for kind in sorted(kinds)]
    body = [*head, r"\begin{document}", *theorems(name), r"\end{document}"]
    (tmp_path / "all.tex").write_text("\n".join(body), encoding="utf-8")
    options = [] if ENGINE and "tectonic" in ENGINE else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([str(ENGINE), *options, "all.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("name", [paper.key for paper in papers()])
def test_matplotlib_typesets_formulas_of_theorems_and_no_special_character_is_left_in_words(name: str) -> None:
    for text in theorems(name):
        assert not re.search(r"(?<!\\)[_^#&~]", formulas_and_words(text)[1]), text
    for formula in distinct_formulas(name)[::12]:
        draw(formula)


@pytest.mark.long
@pytest.mark.parametrize("name", [paper.key for paper in papers()])
def test_matplotlib_typesets_every_formula_of_every_theorem(name: str) -> None:
    for formula in distinct_formulas(name):
        draw(formula)


def test_a_formula_that_no_engine_takes_is_found() -> None:
    with pytest.raises(ValueError, match="gama"):
        draw(r"\gama \le 1")
    assert formulas_and_words(r"a_b $x_1$")[1] == "a_b "
