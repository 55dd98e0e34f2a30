"""The reference theorems: how they were read, what they assume, and that no run and no check contradicts them."""

import json
import re
from dataclasses import replace
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import cast

import pytest

from fedbounds.bounds.advice.coverage import covers
from fedbounds.bounds.advice.theorem_check import check_result
from fedbounds.bounds.audit import ledger
from fedbounds.bounds.audit.claim_set import result_claims
from fedbounds.bounds.audit.ledger import committed_verdict, evidence, read_ledger, status
from fedbounds.bounds.theory.registry import PAPERS, REFERENCES, load, paper_names
from fedbounds.bounds.theory.theorem_file import READ, TheoremFile, read_theorem_file
from fedbounds.bounds.theory.theorem_latex import theorem
from fedbounds.cli.audit import describe_references, reference_statuses
from fedbounds.cli.catalog import describe_uses
from fedbounds.empirical.falsification import theorem_search
from fedbounds.empirical.falsification.theorem_search import search_violation
from fedbounds.empirical.falsification.theorem_verdict import UNREAD as UNREAD_FLAG
from tests.bounds.theory.test_theorem_latex import draw, formulas_and_words
from tests.command_line import ROOT, run

FOLDER = ROOT / "bounds" / "papers" / "references"
FILES: dict[str, TheoremFile] = {
    f"{path.parent.name}/{path.stem}": read_theorem_file(path) for path in sorted(FOLDER.glob("*/*.toml"))
}
FORMS = [(key, form.name) for key, one in FILES.items() for form in one.result.forms]
UNREAD = {key for key, one in FILES.items() if {row["read"] for row in one.history} == {"memory"}}
AXES = ("objective", "participation", "local-steps", "heterogeneity", "noise")
draw_once = cache(draw)
each = pytest.mark.parametrize("key", FILES)


def test_the_registry_has_every_file() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders == set(paper_names()) - set(PAPERS) and len(FILES) >= 41


@each
def test_a_file_says_where_it_is_from(key: str) -> None:
    one = FILES[key]
    assert one.result.key == key == load(key).key
    assert re.match(rf"\s*@\w+\{{{re.escape(key.partition('/')[0])},", one.bibtex)
    first, second, *_ = one.history
    assert first["change"] == "first transcription" and second["change"].startswith("second reading: ")
    for row in one.history:
        assert row.keys() == {"date", "version", "source", "read", "change"} and row["read"] in READ
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"]) and row["source"] and row["version"]
        assert row["read"] == "memory" or not row["source"].startswith("none")
    assert one.result.source.unread == (key in UNREAD)


@each
def test_a_file_names_its_problem_class(key: str) -> None:
    setting = FILES[key].setting
    assert setting is not None and set(AXES) <= setting.said.keys()
    assert covers(setting, paper=key.partition("/")[0]).of(key).answer == "covered"


@each
def test_no_check_finds_an_error(key: str) -> None:
    assert [finding for finding in check_result(load(key)) if finding.level == "error"] == []


def test_a_form_without_its_units_has_one_with_them_as_default() -> None:
    repaired = {key: FILES[key].result for key, form in FORMS if form == "repaired:units"}
    assert set(repaired) == {"karimireddy-2020/fedavg-nonconvex", "wang-2020/fednova"}
    for result in repaired.values():
        assert result.default == "repaired:units" and not result.form().hidden and result.form("printed").hidden


@pytest.mark.parametrize(("key", "form"), FORMS)
def test_every_form_is_drawn(key: str, form: str) -> None:
    formulas, words = formulas_and_words(theorem(load(key), load(key).form(form), ""))
    assert formulas and not re.search(r"(?<!\\)[_^#&~]", words)
    for formula in formulas:
        draw_once(formula)


@each
def test_every_symbol_is_written_as_one_symbol_and_as_no_other(key: str) -> None:
    result = load(key)
    for form in result.forms:
        used = [q for q in result.notation.values() if q.symbol in form.symbols]
        letters = {q.name: re.sub(r"\\[A-Za-z]+", " ", q.latex) for q in used}  # without commands
        assert not [name for name, latex in letters.items() if re.search("[A-Za-z]{2}", latex)]
        assert not [q.name for q in used if "mathrm" in q.latex]  # its file gives none
        assert len({q.latex for q in used}) == len(used)


# --- Status ---

LEDGER = "run fedbounds audit --paper references --write"


def test_the_ledger_has_every_form_as_it_is_now() -> None:
    found = {claim: entry for name in REFERENCES for claim, entry in read_ledger(name).items()}
    claims = {c.id: c for one in FILES.values() for c in result_claims(load(one.result.key))}
    assert {claim: entry["hash"] for claim, entry in found.items()} == {i: c.hash for i, c in claims.items()}, LEDGER
    for key, form in FORMS:
        unread = UNREAD_FLAG in cast(list[str], found[f"{key}[{form}]"].get("flags", []))
        assert unread == (key in UNREAD), LEDGER


@pytest.mark.parametrize(("key", "form"), FORMS)
def test_every_form_has_a_status_with_its_evidence(key: str, form: str) -> None:
    result = load(key)
    one = result.form(form)
    verdict, word = committed_verdict(result, one), status(result, one)
    assert word == ("unread" if key in UNREAD else "order only" if one.order_only else verdict)
    reason = {
        "survived": r"in \d+ runs .* a factor of \S+ is caught(; (follows|does not follow) from .*)?$",
        "unknown": "^no run was searched for .*: .*",
    }
    reason["unread"] = f"^the transcription survived a search: .*{reason['survived']}|{reason['unknown']}"
    assert re.search(reason[verdict], evidence(result, one))  # none is proved, argued or refuted
    assert verdict in ("unknown", "unread") or not one.order_only


def test_some_theorems_survive_a_search() -> None:
    survived = {key for key, form in FORMS if status(load(key), load(key).form(form)) == "survived"}
    assert {"ghadimi-2013/sgd", "khaled-2019/local-gd", "richtarik-2021/ef21"} <= survived


def test_a_verdict_on_a_statement_that_has_changed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    result = load("ghadimi-2013/sgd")
    assert status(result, result.form()) == "survived"
    entries = {claim: {**entry, "hash": "0"} for claim, entry in read_ledger("ghadimi-2013").items()}
    monkeypatch.setattr(ledger, "_cached_ledger", lambda _: entries)
    assert status(result, result.form()) == "unknown" and not evidence(result, result.form())


def test_the_verdict_on_a_theorem_is_about_its_algorithm() -> None:
    result = load("khaled-2020/local-sgd")
    other = replace(result, algorithm="minibatch-sgd")
    assert status(result, result.form()) == "survived" and status(other, other.form()) == "unknown"


def test_a_ledger_is_written_for_one_paper_and_keeps_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ledger, "ledger_path", lambda paper: tmp_path / "ledger.json")
    for name in ("ghadimi-2013", "gu-2021"):
        ledger.write_ledger(name, {f"{name}/x[explicit]": {"verdict": "unknown"}})
    ledger.write_ledger("gu-2021", {"gu-2021/y[explicit]": {"verdict": "unknown"}})
    assert [*read_ledger("ghadimi-2013"), *read_ledger("gu-2021")] == [
        "ghadimi-2013/x[explicit]",
        "gu-2021/y[explicit]",
    ]


def test_numbers_of_a_search_are_no_difference_but_its_verdict_is() -> None:
    old = {"a": {"verdict": "survived", "evidence": "0.5"}}
    assert not ledger.differences({"a": {"verdict": "survived", "evidence": "0.6"}}, old)
    assert ledger.differences({"a": {"verdict": "refuted", "evidence": "1.6"}}, old)


def test_lists_and_counts_have_the_status() -> None:
    lines = {words[0]: line for line in run("list", "--paper", "references")[1].splitlines() if (words := line.split())}
    assert "fedau/theorem-2" not in lines
    for key, word in (
        ("ghadimi-2013/sgd", "survived"),
        ("gu-2021/mifa", "order only"),
        ("lin-2020/sgda-ncsc", "unread"),
    ):
        assert f"  {word}  " in lines[key] and status(load(key), load(key).form()) == word
    counts = reference_statuses()
    assert sum(counts.values()) == len(FORMS) and set(counts) == {"survived", "unknown", "order only", "unread"}
    assert describe_references(counts).startswith(f"references, from their ledger: {counts['survived']} survived, ")
    shown = json.loads(run("show", "ghadimi-2013/sgd", "--json")[1])["forms"][0]
    assert shown["status"] == shown["verdict"] == "survived" and "runs on quadratics" in shown["evidence"]
    listed = json.loads(run("list", "--paper", "gu-2021", "--json")[1])["results"]
    assert [row["status"] for row in listed] == ["order only"]


# --- What a theorem rests on or improves ---


def test_results_that_are_used_exist_and_use_none_of_those_that_use_them() -> None:
    for one in FILES.values():
        assert all(load(used).key == used for used in (*one.uses, *one.improves)) and not {*one.uses} & {*one.improves}
    list(TopologicalSorter({key: (*one.uses, *one.improves) for key, one in FILES.items()}).static_order())
    assert sum("nothing in the registry" not in describe_uses(key).partition("improves on")[0] for key in FILES) >= 6
    assert sum(bool(one.improves) for one in FILES.values()) >= 15


# --- Theorems that are written from memory ---


def test_theorems_from_memory_are_marked() -> None:
    assert UNREAD
    listed = [line.split() for line in run("list")[1].splitlines() if line.startswith("  ")]
    assert {words[0] for words in listed if words[-1] == "*"} == {k for k in UNREAD if load(k).kind != "lemma"}
    for key in (*sorted(UNREAD)[:2], "ghadimi-2013/sgd"):
        assert run("show", key)[1].splitlines()[0].endswith(" *") == (key in UNREAD)
        row = covers(FILES[key].setting, paper=key.partition("/")[0]).of(key)
        assert (row.mark == "unread") == (key in UNREAD)


@pytest.mark.parametrize("key", ["yang-2021/fedavg-full", "ghadimi-2013/sgd"])
def test_a_value_of_a_theorem_from_memory_says_so(key: str) -> None:
    values = {"L": 1, "F": 1, "sigma": 1, "gamma": 0.01, "d": 1, "eta": 1, "I": 2, "T": 9, "K": 9, "N": 4, "cstep": 0.1}
    constants = [f"{name}={values[name]}" for name in load(key).form().needs]
    status, out, _ = run("eval", key, *constants)
    assert status == 0 and out.splitlines()[0].endswith(" *") == (key in UNREAD)
    assert ("it was written from memory (*)" in out) == (key in UNREAD)
    assert ("verdict: unread" in out) == (key in UNREAD) and ("survived" in out) != (key in UNREAD)


def test_show_has_no_verdict_on_a_theorem_from_memory() -> None:
    lines = [line.strip() for line in run("show", "yang-2021/fedavg-full")[1].splitlines()]
    unread = next(i for i, line in enumerate(lines) if line.startswith("is unread: "))
    assert lines[unread + 1].startswith("the transcription survived a search: ") and "survived" not in lines[unread]
    form = json.loads(run("show", "yang-2021/fedavg-full", "--json")[1])["forms"][0]
    assert form["verdict"] == form["status"] == "unread"


# --- Settings ---


@pytest.mark.parametrize(
    ("said", "key", "answer"),
    [
        ("strongly convex, iid, bounded variance, local steps", "koloskova-2020/local-sgd-convex", "covered"),
        ("non-convex, iid, bounded variance, local steps", "koloskova-2020/local-sgd-convex", "not covered"),
        ("convex, bounded heterogeneity, deterministic, one local step", "yang-2021/fedavg-full", "covered"),
        ("convex, arbitrary heterogeneity, deterministic, one local step", "yang-2021/fedavg-full", "not covered"),
        ("non-convex, iid, bounded variance, one local step", "patel-2022/minibatch-storm", "not covered"),
        (
            "non-convex, iid, bounded variance, one local step, two point oracle, minibatch storm",
            "patel-2022/minibatch-storm",
            "covered",
        ),
        ("non-convex, deterministic, iid, one local step, top k, ef21", "richtarik-2021/ef21", "covered"),
        ("non-convex, deterministic, iid, one local step, top k", "richtarik-2021/ef21", "not covered"),
        ("non-convex, deterministic, iid, one local step, rand k, ef21", "richtarik-2021/ef21", "not covered"),
        ("non-convex, deterministic, iid, one local step, rand k, marina", "gorbunov-2021/marina", "covered"),
        ("non-convex, deterministic, iid, one local step, rand k", "gorbunov-2021/marina", "not covered"),
        ("non-convex, iid, bounded variance, local steps, fedadam, bounded gradients", "reddi-2021/fedadam", "covered"),
        ("non-convex, iid, bounded variance, local steps, bounded gradients", "reddi-2021/fedadam", "not covered"),
    ],
)
def test_a_theorem_covers_its_whole_problem_class(said: str, key: str, answer: str) -> None:
    assert covers(f"full participation, {said}", paper=key.partition("/")[0]).of(key).answer == answer


# --- Runs ---


def searched(key: str, form: str) -> str:
    """What a search for a run above the bound found: "ok", "error", or "warning" where no run can be compared."""
    return search_violation(FILES[key], FILES[key].result.form(form)).level


@pytest.mark.parametrize(("key", "form"), FORMS)
def test_no_run_exceeds_a_bound(monkeypatch: pytest.MonkeyPatch, key: str, form: str) -> None:
    monkeypatch.setattr(theorem_search, "TRIALS", 12)
    monkeypatch.setattr(theorem_search, "CLIMB", 12)
    assert searched(key, form) != "error"


@pytest.mark.long
@pytest.mark.parametrize(("key", "form"), FORMS)
def test_no_run_exceeds_a_bound_in_a_long_search(key: str, form: str) -> None:
    assert searched(key, form) != "error"


WRONG_POWERS = [
    ("jhunjhunwala-2022/fedavg", "explicit", "64/19*F/(gamma*eta*I*T)", "64/19*F/(gamma*eta*I**2*T)"),
    ("jhunjhunwala-2022/fedavg", "explicit", "64/19*gamma*eta*L*sigma**2/S", "64/19*gamma*eta*L*sigma**2/(S*I)"),
    ("jhunjhunwala-2022/fedavg", "explicit", "192/19*gamma*eta*I*L*", "192/19*gamma*eta*L*"),
    ("jhunjhunwala-2022/fedavg", "explicit", "320/19*gamma**2*L**2*I*(I - 1)", "320/19*gamma**2*L**2*I"),
    ("jhunjhunwala-2022/fedavg", "explicit:supplement", "32*gamma**2*L**2*I*(I - 1)", "32*gamma**2*L**2*I"),
    (
        "jhunjhunwala-2022/fedavg",
        "explicit:supplement",
        "4*gamma*eta*L*sigma**2/S + ",
        "4*gamma*eta*L*sigma**2/S**2 + ",
    ),
    ("khaled-2019/local-gd", "explicit", "zetastar**2*I**2", "zetastar**2*I"),
    ("khaled-2019/local-gd", "explicit", "8*L*D2/sqrt(N*K)", "8*L*D2/K"),
    ("khaled-2020/local-sgd", "explicit", "(I - 1)**2*sigmastar**2", "(I - 1)*sigmastar**2"),
    ("khaled-2020/local-sgd", "explicit", "20*gamma*sigmastar**2/N", "20*gamma*sigmastar**2/N**2"),
    ("yang-2021/fedavg-full", "explicit", "F/(cstep*gamma*eta*I*T)", "F/(cstep*gamma*eta*I**2*T)"),
    ("yang-2021/fedavg-full", "explicit", "15*I**2*gamma**2*L**2*d**2", "15*I*gamma**2*L**2*d**2"),
]


@pytest.mark.long
@pytest.mark.parametrize(("key", "form", "old", "new"), WRONG_POWERS)
def test_a_wrong_power_of_local_steps_rounds_or_clients_is_violated(
    tmp_path: Path, key: str, form: str, old: str, new: str
) -> None:
    text = FILES[key].text
    assert text.count(old) == 1
    (path := tmp_path / "wrong.toml").write_text(text.replace(old, new), encoding="utf-8")
    wrong = read_theorem_file(path)
    assert search_violation(wrong, wrong.result.form(form)).level == "error"


def test_runs_are_searched_and_exceed_a_bound_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(theorem_search, "TRIALS", 40)
    monkeypatch.setattr(theorem_search, "CLIMB", 0)
    key, form = "jhunjhunwala-2022/fedavg", "explicit:supplement"
    assert searched(key, form) == "ok"
    text = FILES[key].text
    assert "4*F/(gamma*eta*I*T)" in text
    (path := tmp_path / "smaller.toml").write_text(
        text.replace("4*F/(gamma*eta*I*T)", "F/(9*gamma*eta*I*T)"), encoding="utf-8"
    )
    smaller = read_theorem_file(path)
    assert search_violation(smaller, smaller.result.form(form)).level == "error"


def test_the_readme_counts_the_reference_theorems_that_list_shows() -> None:
    listed = [line for line in run("list", "--paper", "references")[1].splitlines() if line.startswith("  ")]
    counted = re.search(r"(\d+) reference theorems of the field", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert counted and int(counted[1]) == len(listed)
