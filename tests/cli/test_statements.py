"""What `show` finds besides results: statements by their keys, equations by their numbers."""

import json
from types import ModuleType, SimpleNamespace

import pytest

from fedbounds import main
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory import registry
from fedbounds.bounds.theory.result import Source
from fedbounds.bounds.theory.statement import Statement
from fedbounds.cli import catalog as places

PAPER = "arbitrary-participation"
YOUNG = Statement(
    f"{PAPER}/young",
    "equation",
    "Young's inequality",
    Source("Wang & Ji 2022", "Appendix C", ("C.99",)),
    "|a + b|^2 <= (1 + c)|a|^2 + (1 + 1/c)|b|^2",
    latex=r"\\|a+b\\|^2",
    claims=("lemma-c.1/L1.4",),
)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch):
    """A paper package that lists one statement."""
    before = registry.statements
    monkeypatch.setattr(places, "statements", lambda name: (YOUNG,) if name == PAPER else before(name))
    monkeypatch.setattr("fedbounds.cli.catalog.statements", lambda name: (YOUNG,) if name == PAPER else ())


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(words)
    found = capsys.readouterr()
    return code, found.out, found.err


def test_an_equation_is_found_by_its_number_however_it_is_written(capsys):
    found = [run(capsys, "show", f"{PAPER}/{word}")[1] for word in ("C.6", "(C.6)", "c.6", "eq.C.6", "equation-c.6")]
    assert len(set(found)) == 1 and "lemma-c.1/L1.0" in found[0] and found[0].startswith(f"{PAPER}, eq. (C.6)")
    document = json.loads(run(capsys, "show", f"{PAPER}/C.6", "--json")[1])
    assert {place["verdict"] for place in document["places"]} == {"proved"}


def test_a_result_keyed_like_an_equation_is_still_the_result(capsys):
    code, out, _ = run(capsys, "show", f"{PAPER}/equation-c.16")
    assert code == 0 and "Left-hand side" in out


def test_an_equation_that_nothing_names_is_one_line(capsys):
    code, out, err = run(capsys, "show", "fedau/B.9.9")
    assert (code, out, err.count("\n")) == (2, "", 1) and "unknown equation of fedau" in err
    code, _, err = run(capsys, "show", f"{PAPER}/C.6", "--latex")
    assert code == 2 and "is the number of an equation" in err


def test_ranges_of_equations_hold_what_lies_between():
    assert places.equations_in("the unrolled display, (C.8) to (C.12)") == {f"C.{k}" for k in range(8, 13)}
    assert places.equations_in("(11) and (B.1.3)") == {"11", "B.1.3"}
    assert places.equations_in("f(x) and (a)") == set()


def test_a_statement_is_listed_and_shown_with_the_verdict_of_its_claims(listed, capsys):
    assert f"{PAPER}/young" in run(capsys, "list", "--all", "--paper", PAPER)[1]
    code, out, _ = run(capsys, "show", f"{PAPER}/young")
    assert code == 0 and "(C.99)" in out and f"{PAPER}/lemma-c.1/L1.4: proved" in out
    document = json.loads(run(capsys, "show", f"{PAPER}/young", "--json")[1])
    assert document["claims"] == [{"id": f"{PAPER}/lemma-c.1/L1.4", "verdict": "proved"}]
    assert run(capsys, "show", f"{PAPER}/young", "--latex")[1].strip() == YOUNG.latex
    assert run(capsys, "show", f"{PAPER}/young", "--sympy")[0] == 2
    assert f"{PAPER}/young" in run(capsys, "show", f"{PAPER}/C.99")[1]


@pytest.mark.parametrize("key", ["other/young", f"{PAPER}/theorem-3.1"])
def test_a_statement_under_a_key_that_is_not_its_own_is_refused(key, monkeypatch):
    wrong = SimpleNamespace(STATEMENTS=(Statement(key, "equation", "", YOUNG.source, ""),))
    real = registry.importlib.import_module

    def imported(name: str) -> ModuleType | SimpleNamespace:
        return wrong if name.endswith(".statements") else real(name)

    monkeypatch.setattr(registry, "find_spec", lambda place: True)
    monkeypatch.setattr(registry.importlib, "import_module", imported)
    registry.statements.cache_clear()
    with pytest.raises(FedboundsError, match="must have a key of its own"):
        registry.statements(PAPER)
    registry.statements.cache_clear()


FEDAU_EQUATIONS = [
    *map(str, range(1, 9)), "A.1.1", *(f"B.1.{k}" for k in range(1, 5)), *(f"B.3.{k}" for k in range(1, 11)), "B.4.1",
    "B.4.3", "B.4.4", *(f"B.5.{k}" for k in range(1, 6)), *(f"B.6.{k}" for k in (*range(1, 7), 8, 9)), "B.7.1", "B.7.2",
    "C.6.1",
]  # fmt: skip


def test_every_equation_of_the_second_paper_is_found_by_its_number():
    missing = []
    for number in FEDAU_EQUATIONS:
        try:
            assert all(place.says for place in places.equation_places("fedau", number))
        except FedboundsError:
            missing.append(number)
    assert not missing


def test_definitions_algorithms_and_assumptions_of_the_second_paper_are_listed_with_claims_that_were_tried(capsys):
    found = {one.name: one for one in registry.statements("fedau")}
    assert {f"assumption-{k}" for k in range(1, 6)} | {f"algorithm-{k}" for k in (1, 2, 3)} <= found.keys()
    assert {"problem-1", "definition-b.3.1", "grouped-clients", "known-second-moment"} <= found.keys()
    for name in found:
        code, out, err = run(capsys, "show", f"fedau/{name}")
        assert code == 0 and not err and found[name].says in out and "not verified yet" not in out


@pytest.mark.parametrize(
    ("key", "erratum", "degree"),
    [
        (f"{PAPER}/equation-16", "chebyshev-for-one-window", "false under a literal reading"),
        (f"{PAPER}/equation-17", "per-client-is-not-all-clients", "unstated but harmless"),
        (f"{PAPER}/equation-c.9", "earlier-rounds-in-lemma-c.2", "false under a literal reading"),
        ("fed-norm-sgda/assumption-2", "noise-bounded-as-a-whole", "false under a literal reading"),
        ("fed-norm-sgda/remark-7", "shrinking-local-coefficients", "unstated but harmless"),
    ],
)
def test_a_statement_is_not_called_refuted_for_an_erratum_about_its_use(key, erratum, degree, capsys):
    out = run(capsys, "show", key)[1]
    before, _, remarks = out.partition("Remarks on it or its use\n")
    assert "refuted" not in out and f"erratum/{erratum} ({degree}): " in remarks
    assert "erratum is about" in before or "errata are about" in before
    document = json.loads(run(capsys, "show", key, "--json")[1])
    assert erratum in {remark["id"].rpartition("/")[2] for remark in document["remarks"]}
    assert not [claim for claim in document["claims"] if "/erratum/" in claim["id"]]


def test_a_slip_of_wording_is_not_waiting_for_a_verdict(capsys):
    out = run(capsys, "show", "fed-norm-sgda/steps-of-theorem-4")[1]
    assert "not verified yet" not in out and "wording/effective-steps-of-50 (wording)" in out
