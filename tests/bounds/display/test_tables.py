"""Answers in notebooks and papers: tables that say what the answers say, and LaTeX that compiles."""

import re

import numpy as np
import pytest

import fedbounds
from fedbounds.bounds.audit.audit_rows import ClaimRow, ClaimRows
from fedbounds.bounds.audit.ledger import audit_note
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.comparison.comparability import comparability_matrix
from fedbounds.bounds.display.tables import MOST_ROWS, Table, format_cell, tex
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize_answers import Infeasible, NotAttained, Undecided
from fedbounds.bounds.search.rounds_answers import Between, Largest, Never
from fedbounds.bounds.theory.theorem_latex import statement_latex, theorem
from tests.command_line import run

KNOWN = dict(L=1, Lmax=1, Delta=1, S=1, R=100, eta=0.01)
TDCD = "tdcd/theorem-1"
# What LaTeX has by itself, and amsmath.
KERNEL = [
    "frac",
    "in",
    "Omega",
    "Psi",
    "zeta",
    "left",
    "right",
    "sqrt",
    "le",
    "ge",
    "sigma",
    "eta",
    "gamma",
    "beta",
    "max",
    "kappa",
    "tilde",
    "mathbf",
    "sum",
    "tau",
    "Gamma",
    "nu",
    "delta",
    "nabla",
    "bar",
    "mathcal",
    "Big",
    "rm",
    "Phi",
    "epsilon",
    "min",
    "rho",
    "Delta",
    "mu",
    "textstyle",
    "log",
    "omega",
    "mid",
    "alpha",
    "approx",
    "ne",
    "upsilon",
    "theta",
    "lfloor",
    "rfloor",
    "hat",
    "overline",
    "varphi",
    "cdot",
    "inf",
    "sup",
    "xi",
    "langle",
    "rangle",
    "chi",
    "lceil",
    "rceil",
    "mathrm",
    "infty",
    "underbrace",
    "quad",
    "item",
    "textasciicircum",
    "textasciitilde",
    "textbackslash",
    "begin",
    "end",
]
AMSMATH = ["operatorname", "tfrac", "text"]


def answers():
    theorem = fedbounds.load(TDCD)
    settings = ("R", np.geomspace(10, 1e5, 30).round())
    rows = ClaimRows([ClaimRow("tdcd/x", "tdcd", "a <= b", "lemma", "", "proved", "steps", "m", "e", ("axiom",), ())])
    network = dict(L=1, Lmax=1, Deltainf=1, S=1, tcomm=100, tcomp=1, W=10**6)
    known = KNOWN | {"Q": 2}
    return [
        theorem,
        theorem.form("repaired"),
        evaluate(theorem, known),
        evaluate(theorem, KNOWN | {"Q": [1, 2, 200]}),
        fedbounds.optimize("tdcd/wall-clock", network, ["Q", "eta"]),
        NotAttained(0.5, "gamma to 0"),
        Infeasible("nothing"),
        Undecided("too long"),
        fedbounds.rounds(theorem, 0.5, {name: value for name, value in known.items() if name != "R"}),
        Never(0.1, "a floor", 0.2),
        Largest("delta", 0.1, 0.3, None),
        Between("T", 0.1, 3, 5, "", 7),
        fedbounds.compare([theorem, (theorem, "repaired")], settings, {n: v for n, v in known.items() if n != "R"}),
        fedbounds.covers("non-convex, vertical", paper="tdcd"),
        comparability_matrix([TDCD]),
        Verdict("proved", "steps", "Gram matrix", "two pivots"),
        rows,
    ]


ANSWERS = {f"{type(one).__name__}-{i}": one for i, one in enumerate(answers())}


def sound(text):
    """Braces match, and so do environments."""
    bare = re.sub(r"\\[{}]", "", text)
    depth = 0
    for symbol in bare:
        depth += (symbol == "{") - (symbol == "}")
        assert depth >= 0, text
    assert depth == 0, text
    opened = []
    for word, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", text):
        if word == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name, text
    assert not opened, text


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_a_table_in_html_latex_and_pandas(name):
    answer = ANSWERS[name]
    shown = answer._repr_html_()
    assert shown.count("<table") == sum(bool(table.rows) for table in answer.tables()) > 0
    assert shown.count("<tr>") == shown.count("</tr>") and shown.count("<td") == shown.count("</td>")
    assert not re.search(r"(?<!-)color: (?!inherit)|background: (?!transparent)|#[0-9a-f]{3}", shown)
    sound(answer._repr_latex_())
    frame = answer.to_dataframe()
    assert len(frame) > 0 and len(set(frame.columns)) == len(frame.columns)


def test_what_a_notebook_shows_is_what_was_evaluated():
    one, many = ANSWERS["Evaluation-2"], ANSWERS["Evaluation-3"]
    shown = one._repr_html_()
    assert f"&lt;= {float(one.value):.6g}; valid; guarantee: no; verdict: proved" in shown
    assert all(name in shown and format_cell(term) in shown for name, term in one.terms.items())
    frame = many.to_dataframe()
    assert frame["value"].to_numpy() == pytest.approx(many.value) and list(frame["valid"]) == [True, True, False]
    assert frame[list(many.terms)].sum(axis=1)[:2].to_numpy() == pytest.approx(many.value[:2])
    varied = next(name for name, c in many.constants.items() if np.shape(c.value) == np.shape(many.value))
    assert frame[varied].to_numpy() == pytest.approx(many.constants[varied].value)  # the inputs are columns
    assert isinstance(one.value, float) and all(isinstance(term, float) for term in one.terms.values())
    table = ANSWERS["BoundComparison-12"].to_dataframe()
    assert len(table) == 30 and table[f"{TDCD} [repaired]"].to_numpy() == pytest.approx(
        ANSWERS["BoundComparison-12"].rows[1].values
    )


def test_text_is_escaped_and_long_tables_are_cut():
    table = Table("a & b", ("<x>", "y"), [(f"{i}_<b>", i) for i in range(MOST_ROWS + 5)])
    assert "<b>" not in table.html and "&lt;b&gt;" in table.html and "... and 5 more rows" in table.html
    assert table.latex.count(r"\_$<$b$>$") == MOST_ROWS + 5
    assert tex(r"50% of {a_b}^2 & ~\x <= #1") == (
        r"50\% of \{a\_b\}\textasciicircum{}2 \& \textasciitilde{}\textbackslash{}x $\le$ \#1"
    )


def test_every_form_is_a_theorem_environment_of_plain_amsmath():
    found = {
        f"{one.key} [{form.name}]": theorem(one, form, audit_note(one, form))
        for one in fedbounds.results()
        for form in one.forms
    }
    used = set()
    for name, text in found.items():
        body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        sound(body)
        used |= set(re.findall(r"\\([a-zA-Z]+)", body))
        assert not re.search(r"[^\x00-\x7f]", text), name
    assert used <= {*KERNEL, *AMSMATH}
    refuted = found["fedmrn/theorem-1 [printed]"]
    assert "refuted" in refuted.partition(r"\begin")[2]


def test_a_theorem_environment_states_everything_the_form_does():
    one = fedbounds.load("fedau/corollary-4")
    text = theorem(one, one.form("sharp"), audit_note(one, one.form("sharp")))
    for a in one.form("sharp").assumptions:
        assert rf"\item[{tex(a.name)}] {statement_latex(a.statement, one.notation)}" in text
    assert all(rf"_{{\text{{{term.name}}}}}" in text for term in one.form("sharp").terms)
    assert r"\gamma = X_{1}" in text and "verdict of the audit: proved" in text and r"T \ge 2" in text
    assert run("show", one.key, "--form", "sharp", "--latex")[1].strip() == text


def test_a_bound_is_an_expression_that_evaluates_to_the_bound():
    rounds = {"T": 100.0, "R": 100.0, "N": 4.0, "K": 2.0, "I": 2.0, "Q": 2.0, "S": 2.0}
    for key, form in ((TDCD, "repaired"), ("fedmrn/theorem-2", "explicit:any-step"), ("fedau/theorem-2", "sharp")):
        one = fedbounds.load(key)
        values = {str(s): rounds.get(str(s), 0.001) for s in one.form(form).symbols}
        expected = float(evaluate(one, values, form=form).value)
        here = one.sympy(form).subs({s: values[str(s)] for s in one.form(form).symbols})
        assert float(here) == pytest.approx(expected, rel=1e-12), key


def test_a_comparison_is_drawn_with_pgfplots(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = (
        "compare tdcd/theorem-1:repaired tdcd/theorem-1 --vary Q=1,10,1000 --set L=1 Lmax=1 Delta=1 S=1 R=100 eta=0.002"
    )
    for name in ("f.pgf", "f.tex"):
        assert run(*asked.split(), "--out", name)[0] == 0
    snippet, document = ((tmp_path / name).read_text(encoding="utf-8") for name in ("f.pgf", "f.tex"))
    sound(document)
    assert r"\documentclass" in document.splitlines()[1] and snippet.splitlines()[1].startswith("% needs")
    table = evaluate(TDCD, KNOWN | {"Q": [1, 10, 1000], "eta": 0.002}, form="repaired")
    assert list(table.valid) == [True, True, False]
    points = [f"({Q:g},{float(v):.6g})" for Q, v in zip((1, 10, 1000), table.value, strict=True)]
    solid, dotted = re.findall(r"coordinates \{(.*)\}", snippet)[:2]
    assert solid == f"{points[0]} {points[1]} (1000,nan)" and dotted == f"(1,nan) (10,nan) {points[2]}"
    assert "dotted" in snippet and "Dotted: a condition fails" in snippet
