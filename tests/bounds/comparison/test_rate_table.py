"""Tables of rates: the rates against values of the bounds, the LaTeX against a typesetter."""

from __future__ import annotations

import json
import re
import subprocess
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.advice.coverage import covers
from fedbounds.bounds.asymptotics.rates import rate
from fedbounds.bounds.comparison.rate_table import rate_table
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.result import Result
from fedbounds.bounds.theory.theorem_file import theorem
from tests.bounds.theory.test_theorem_latex import ENGINE, draw, formulas_and_words
from tests.command_line import run

T = np.array([1e16, 1e20])
CHOSEN = {
    "arbitrary-participation/theorem-3.1:explicit": dict(
        L=1, F=5, I=2, P=2, rho=0.7, sigma=1, nu=1, beta=1, delta=0, T=T
    ),
    "fedau/theorem-2:explicit": dict(L=1, F=5, I=2, sigma=1, delta=1, G=1, W=0, Q=2, N=10, T=T),
    "tdcd/theorem-1:repaired": dict(L=1, Lmax=1, Delta=1, S=1, Q=4, R=T),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_bounds_fall_at_their_rate_and_no_slower_steps_are_better(name: str) -> None:
    key, form = name.split(":")
    result, known = load(key), CHOSEN[name]
    found = rate(result, result.form(form))

    def slope(shift: float) -> float:
        steps = {s: T ** (float(power) + shift) for s, power in found.steps.items()}
        low, high = evaluate(result, {**known, **steps}, form=form).value
        return -np.log(high / low) / np.log(T[1] / T[0])

    assert slope(0) == pytest.approx(float(found.power), abs=0.02)
    assert max(slope(-0.05), slope(0.05)) < float(found.power) + 0.02


@pytest.mark.parametrize(
    ("key", "form", "power", "stays"),
    [
        ("arbitrary-participation/corollary-3.2", "sharp", Fraction(1, 2), ("window divergence",)),
        ("fed-norm-sgda/theorem-1", "sharp", Fraction(1, 2), ()),
        ("fed-norm-sgda/theorem-2", "repaired", Fraction(1, 4), ()),
        ("fedmrn/remark-2-strongly-convex", "printed", Fraction(1), ()),
    ],
)
def test_known_rates(key: str, form: str, power: Fraction, stays: tuple[str, ...]) -> None:
    found = rate(load(key), load(key).form(form))
    assert (found.power, found.stays) == (power, stays)


def test_every_theorem_has_a_row_that_can_be_typeset() -> None:
    keys = [(r.key, None) for p in papers() for r in p.results if r.kind == "theorem"]
    table = rate_table(keys)
    assert table.latex.count("{") == table.latex.count("}") and table.latex.count("\\\\\n") == len(keys) + 1
    formulas, words = formulas_and_words(table.latex)
    for formula in formulas:
        draw(formula)
    assert not re.search(r"(?<!\\)[_^]", words.replace(r"\linewidth", ""))
    for row in table.rows:
        entry = f"{{{row.cite},"
        assert row.cite and table.bibtex.count(entry) == 1 and (row.rate or "no rate" in row.note)


def test_a_form_without_an_order_has_the_rate_of_a_looser_one() -> None:
    (row,) = rate_table([("fedau/theorem-2", "sharp")]).rows
    assert (row.rate, row.rate_of, row.note) == ("O(T^{-1/2})", "explicit", "rate of explicit")


def test_the_command_writes_the_table_and_the_entries(tmp_path: Path) -> None:
    out = tmp_path / "rates.tex"
    status, printed, _ = run("table", "tdcd/theorem-1", "fedau/corollary-4", "--out", str(out), "--json")
    assert status == 0
    document = json.loads(printed)
    assert out.read_text() == document["latex"] + "\n" and r"\cite{das2022cross}" in document["latex"]
    assert (tmp_path / "rates.bib").read_text().count("@") == 2
    assert run("table", "tdcd/theorem-1", "--out", str(out))[0] == 0  # the same files of ours, replaced


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tdcd/theorem-1", "--class", "convex"], "not both"),
        (["--class", "quantum"], "quantum"),
        (["--class", "non-convex, heavy tailed, changing local steps"], "no theorem covers"),
        (["tdcd/theorem-1", "--out", "rates.csv"], "ends in .tex"),
        ([], "needs KEYs or --class"),
        (["tdcd/theorem-1", "tdcd/theorem-1"], "stands twice"),
    ],
)
def test_what_a_table_does_not_take(words: list[str], message: str) -> None:
    status, _, error = run("table", *words)
    assert status == 2 and message in error


LEADING = {  # result and form -> dominant terms, the speed-up in the participants
    "jhunjhunwala-2022/fedavg:explicit": (("initial gap", "gradient noise", "participation"), "linear"),
    "ghadimi-2013/sgd:explicit": (("initial gap", "gradient noise"), ""),  # no number of participants
    "richtarik-2021/ef21:explicit": (("initial gap", "compression error"), ""),
    "fedmrn/theorem-2:sharp": (("initial gap", "gradient noise", "masking", "client sampling"), "not linear"),
}


@pytest.mark.parametrize("name", LEADING)
def test_the_dominant_terms_and_the_speed_up_are_those_of_large_values(name: str) -> None:
    key, form = name.split(":")
    found = rate(load(key), load(key).form(form))
    assert (found.dominant, found.speed_up) == LEADING[name]


def test_the_power_of_participants_is_that_of_the_best_bound() -> None:
    """At the best step sizes, found by a search, a bound of FedAvg falls like one over the root of participants."""
    result = load("jhunjhunwala-2022/fedavg")
    steps = np.logspace(-12, -2, 4001)

    def best(participants: float) -> float:
        known = dict(L=1, F=1, I=2, sigma=1, d=1, T=1e14, N=2 * participants, S=participants, eta=1)
        at = evaluate(result, {**known, "gamma": steps}, form="explicit")
        return float(np.min(np.where(at.valid, at.value, np.inf)))

    found = rate(result, result.form("explicit"))
    assert found.participants is not None
    assert np.log(best(100) / best(400)) / np.log(4) == pytest.approx(float(found.participants), abs=0.02)


def test_the_table_of_a_class_holds_what_covers_it_and_reads_as_text() -> None:
    setting = "non-convex, uniform sampling, local steps, bounded heterogeneity, bounded variance"
    status, printed, _ = run("table", "--class", setting)
    keys = re.findall(r"^([\w.-]+/[\w.-]+) \[", printed, re.MULTILINE)
    known = {row.key for row in covers(setting).results if row.answer != "not covered" and row.of_objective}
    assert status == 0 and set(keys) == known >= {"jhunjhunwala-2022/fedavg", "arbitrary-participation/theorem-3.1"}
    assert "O(T^(-1/2))" in printed and "\\" not in printed
    assert run("table", "--class", setting, "--latex")[1].count("@") >= 3


def test_a_result_without_rounds_has_no_rate() -> None:
    with pytest.raises(FedboundsError, match="has no number of rounds"):
        rate(load("fed-norm-sgda/lemma-a.1"), load("fed-norm-sgda/lemma-a.1").form("printed"))


def test_what_falls_geometrically_is_faster_than_powers() -> None:
    found = rate(
        load("karimireddy-2020/scaffold-strongly-convex"), load("karimireddy-2020/scaffold-strongly-convex").form()
    )
    assert (found.power, found.dominant, found.speed_up) == (1, ("gradient noise",), "linear")
    assert [str(each) for each in found.geometric.values()] == ["exp(-T/(L/mu + N/S))"]
    result = load("mishchenko-2022/proxskip")
    alone = rate(result, result.form())
    assert (alone.power, alone.stays, alone.steps, alone.dominant) == (inf, (), {"gamma": 0}, ("initial distance",))
    status, printed, _ = run("table", "karimireddy-2020/scaffold-strongly-convex", "mishchenko-2022/proxskip")
    assert status == 0 and "geometric initial gap exp(-T/(L/mu + N/S))" in printed
    assert "O((1 - min(pc**2, gamma*mu))**K) (K: iterations)" in printed and "O(T^(-1)) (T: rounds)" in printed


def descent(contraction: str) -> Result:
    terms = {"start": f"D2*{contraction}**T", "noise": "gamma*sigma**2/mu"}
    return theorem("draft/sgd", measure="last over rounds of squared distance to the minimizer", terms=terms,
                   conditions=["gamma <= 1/L"])  # fmt: skip


def test_a_step_size_in_a_geometric_term_has_a_logarithm(tmp_path: Path) -> None:
    """The best bound of SGD on strongly convex functions, found by a search, falls as log(T)/T."""
    result = descent("(1 - gamma*mu)")
    found = rate(result, result.form())
    assert (found.power, dict(found.steps), found.logs, found.dominant) == (1, {"gamma": -1}, ("gamma",), ("noise",))
    steps = np.logspace(-9, 0, 20_001)

    def best(rounds: float) -> float:
        return float(np.min(evaluate(result, dict(D2=1, L=1, mu=1, sigma=1, T=rounds, gamma=steps)).value))

    for rounds in (1e4, 1e6):
        assert best(rounds) * rounds / np.log(rounds) == pytest.approx(1, abs=0.3)
    file = tmp_path / "sgd.toml"
    file.write_text("measure = 'last over rounds of squared distance to the minimizer'\nconditions = ['gamma <= 1/L']\n"
                    "[terms]\nstart = 'D2*(1 - gamma*mu)**T'\nnoise = 'gamma*sigma**2/mu'\n")  # fmt: skip
    table = rate_table([(str(file), None)])
    assert r"\tilde{O}(T^{-1})" in table.latex and r"\gamma \propto T^{-1} \log T" in table.latex
    assert "O~(T^(-1))" in str(table) and any(line.startswith("O~: up to") for line in table.legend)


@pytest.mark.parametrize("contraction", ["(1 + gamma*mu)", "exp(mu/L)", "L"])
def test_what_grows_geometrically_does_not_fall(contraction: str) -> None:
    result = descent(contraction)
    with pytest.raises(FedboundsError, match="cannot be told"):
        rate(result, result.form())


def test_constants_that_are_no_step_sizes_are_fixed() -> None:
    result = load("yang-2021/fedavg-full")  # with a constant c < 1/2 - 15*gamma^2*...
    found = rate(result, result.form())
    assert (found.power, found.steps["gamma"], found.speed_up) == (Fraction(1, 2), Fraction(-1, 2), "linear")


def test_the_legend_has_what_occurs_and_the_unit_of_the_rounds() -> None:
    plain = rate_table([("jhunjhunwala-2022/fedavg", "explicit")])
    assert plain.legend == (
        "~: the best power that the conditions allow; all constants but the step sizes are fixed",
        "1 of k: k powers are best; those with the fewest dominant terms, then the larger first step size",
    )
    assert r"O(T^{-1/2})$ ($T$: rounds)" in plain.latex and "--" not in plain.latex and r"$\propto$: the" in plain.latex
    none = rate_table([("fedmrn/proposition-1", None)])
    assert [line.partition(":")[0] for line in none.legend] == [
        "-- as a rate",
        "-- as a dominant term",
        "-- as a speed-up",
    ]
    assert "-- as a rate: not known" in none.latex and none.to_dict()["legend"] == list(none.legend)
    both = rate_table([("khaled-2020/local-sgd", None), ("arbitrary-participation/theorem-3.1", "explicit")])
    assert [row.counts for row in both.rows] == ["K: iterations", "T: rounds"]
    assert any(line.startswith("plus: ") for line in both.legend) and "plus: terms" in str(both)


KEYS = [(r.key, None) for p in papers(references=True) for r in p.results if r.kind == "theorem"]


def test_a_long_table_breaks_over_pages() -> None:
    few, many = rate_table(KEYS[:8]).latex, rate_table(KEYS[:9]).latex
    assert "longtable" not in few and few.count(r"\begin{tabular}") == few.count(r"\end{tabular}") == 1
    assert r"\usepackage{amsmath,booktabs,longtable}" in many and "tabular" not in many
    head, body = many.split(r"\endhead")
    assert head.count("Result & Rate & Dominant") == 1 and "Result & Rate" not in body
    assert body.index(r"\bottomrule") < body.index(r"\end{longtable}") and many.count(r"\begin{longtable}") == 1
    rows = body[: body.index(r"\bottomrule")].split("\\\\\n\\addlinespace\n")
    assert [row.count(" &\n") for row in rows] == [6] * 9


@pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine; mathtext typesets the formulas")
@pytest.mark.parametrize("count", [3, len(KEYS)])
def test_a_table_compiles(count: int, tmp_path: Path) -> None:
    packages = r"\usepackage{amsmath,booktabs,longtable}"
    body = [
        rf"\documentclass{{article}}{packages}\begin{{document}}",
        rate_table(KEYS[:count]).latex,
        r"\end{document}",
    ]
    (tmp_path / "rates.tex").write_text("\n".join(body), encoding="utf-8")
    words = [] if ENGINE and "tectonic" in ENGINE else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([str(ENGINE), *words, "rates.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_of_several_best_powers_those_with_the_fewest_dominant_terms_are_taken() -> None:
    several = rate_table([("fedau/theorem-2", "explicit"), ("ghadimi-2013/sgd", None)])
    first, alone = several.rows
    assert (first.choices, alone.choices) == (2, 1)
    assert any("(1 of 2)" in line for line in first.lines) and not any(" of 1" in line for line in alone.lines)
    assert several.to_dict()["rows"][0]["choices"] == 2
    terms = {term.name for term in load("fedau/theorem-2").form("explicit").terms}
    assert "local drift" in terms - {*first.dominant}  # it is dominant at gamma, eta ~ T^(-1/4)
    one = theorem("draft/one", measure="minimum over rounds of squared gradient norm of f",
                  terms={"gap": "F/(gamma*eta*T)", "noise": "L*gamma*eta*sigma**2/N"})  # fmt: skip
    found = rate(one, one.form())
    assert (dict(found.steps), found.choices) == ({"gamma": 0, "eta": Fraction(-1, 2)}, 2)  # then the larger gamma
