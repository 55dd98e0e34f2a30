"""Theorems as LaTeX: assumptions are mathematics where they were formulas, and words stay words."""

from __future__ import annotations

import re

import pytest

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
    letters = load("tdcd/theorem-1").notation
    text = "a client's covariances sum to at most 0, whatever the maximum is, and E is no word"
    assert statement_latex(text, letters) == text.replace("E", r"$\operatorname{E}$")


def test_the_assumptions_of_the_theorem_of_tiers_are_typeset() -> None:
    text = theorem(load("tdcd/theorem-1"), load("tdcd/theorem-1").form("sharp:B3"), "proved")
    smooth = r"$\|\nabla f$($x$) $-$ $\nabla f$($y$)$\|$ $\le $ $L$ $\|x$ $-$ $y\|$ for all $x$, $y$"
    assert smooth in text and "grad" not in text.split(r"\end{description}")[0].replace("gradient", "")
