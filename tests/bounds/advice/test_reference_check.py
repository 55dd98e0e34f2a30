"""Theorem files against the reference theorems of their class."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from fedbounds.bounds.advice.reference_check import compare_with_references
from fedbounds.bounds.theory.registry import REFERENCES, paper
from fedbounds.bounds.theory.result import Term
from fedbounds.bounds.theory.theorem_file import read_theorem_file
from tests.command_line import run

DRAFT = """
key = "draft/theorem-1"
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, {noise}, full participation, local steps, arbitrary heterogeneity{more}"
algorithm = "fedavg"
[terms]
"initial gap" = "{gap}"
"gradient noise" = "{term}"
"""
FILES = [result.file for name in REFERENCES for result in paper(name).results]


USUAL = {"noise": "bounded variance", "more": "", "term": "sigma**2/(T*N)", "gap": "2*L*F/T"}


def findings(folder: Path, level: str = "error", **changes: str) -> list[str]:
    file = folder / "draft.toml"
    file.write_text(DRAFT.format(**USUAL | changes), encoding="utf-8")
    return [finding.text for finding in compare_with_references(read_theorem_file(file)) if finding.level == level]


@pytest.mark.parametrize("power", [1, Fraction(1, 2), Fraction(1, 3), 2])
def test_a_speed_up_that_is_faster_than_linear_is_a_warning(tmp_path: Path, power: Fraction | int) -> None:
    """The initial gap falls as fast in T alone, so that it hides no power of N."""
    for term, rounds in ((f"sqrt(L*F)*sigma/(sqrt(T)*N**({power}))", 0.5), (f"L*F/(T*N**({power}))", 1)):
        said = findings(tmp_path, term=term, level="warning")
        faster = [text for text in said if "less than 1/M of the rounds" in text]
        assert bool(faster) == (rounds == 0.5 and power > 0.5), said
    (only,) = findings(tmp_path, term="L*F/(T*N**2)", level="warning", gap="F*sigma/(L*T*N**2)")[:1]
    assert "the power -2 of the number of participants and as T^(-1)" in only


def test_a_bound_that_falls_faster_than_a_lower_bound_is_false(tmp_path: Path) -> None:
    said = findings(tmp_path)
    assert any("arjevani-2023/lower-bound-bounded-variance" in text and "T^(-1/2)" in text for text in said)
    status, out, _ = run("check", str(tmp_path / "draft.toml"), "--no-search")
    assert status == 1 and "references" in out and "false: it falls as T^(-1)" in out


def test_a_lower_bound_excludes_every_method(tmp_path: Path) -> None:
    file = tmp_path / "draft.toml"
    text = DRAFT.format(**USUAL).replace("fedavg", "scaffold")
    file.write_text(text, encoding="utf-8")
    said = [f.text for f in compare_with_references(read_theorem_file(file)) if f.level == "error"]
    assert any("arjevani-2023/lower-bound-bounded-variance" in text for text in said)


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": "no noise"},  # the lower bound is about noise
        {"more": ", bounded gradients"},  # no problem of the lower bound need have them
        {"term": "sqrt(L*F)*sigma/sqrt(T*N)"},  # as slow as the lower bound
        {"term": "sigma**2"},  # it does not fall at all
    ],
)
def test_a_bound_that_a_lower_bound_does_not_exclude_is_not_accused(tmp_path: Path, changes: dict[str, str]) -> None:
    assert not findings(tmp_path, **changes)


LOW_NOISE = """
key = "draft/low-noise"
measure = "average over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, bounded variance, no heterogeneity, full participation, one local step"
algorithm = "fedavg"
conditions = [{conditions}]
{more}
[terms]
"initial gap" = "{bound}"
"""
AT_STEP = '[step_sizes]\ngamma = "1/L"'


@pytest.mark.parametrize(
    ("conditions", "excluded"),
    [
        (["T*sigma**2 <= L*F*N"], True),
        (["L*F*N > T*sigma**2"], True),
        (["sigma <= sqrt(L*F*N/T)"], True),
        (["T*sigma**2 == L*F*N"], True),
        (["T*sigma**2 - L*F*N <= 0"], True),
        (["T*sigma**2 + L*F <= L*F*N"], True),
        (["log(T)*sigma**2 <= L*F*N/T"], True),
        (["log(T) <= N"], True),
        (["floor(T*sigma/(L*F)) <= N"], True),  # its order in T cannot be told
        (["T >= N", "T*sigma**2 <= L*F*T"], False),
        ([], False),
    ],
)
@pytest.mark.parametrize(
    ("more", "bound", "own"),
    [(AT_STEP, "3*L*F/T", []), ("", "3*F/(gamma*T)", ["gamma <= 1/L"]), ("", "3*F/(gamma*T)", ["gamma == 1/L"])],
    ids=["prescribed", "at most", "equal"],
)
def test_conditions_that_many_rounds_do_not_meet_exclude_the_lower_bound(
    tmp_path: Path, conditions: list[str], excluded: bool, more: str, bound: str, own: list[str]
) -> None:
    assert bool(_accused(tmp_path, [*own, *conditions], more, bound)) is not excluded


def test_a_condition_on_a_logarithm_of_the_rounds_may_hold_for_many(tmp_path: Path) -> None:
    for condition in ("log(T) >= N", "N*log(T) <= T"):
        assert _accused(tmp_path, [condition], AT_STEP, "3*L*F/T")


def test_a_step_size_that_is_equal_to_a_power_of_the_rounds_is_that_power(tmp_path: Path) -> None:
    equal = ["gamma == sqrt(F/(L*T))/sigma", "gamma <= 1/L"]  # then 3*F/(gamma*T) has room for the noise
    assert not _accused(tmp_path, equal, "", "3*F/(gamma*T)")
    assert _accused(tmp_path, equal, "", "3*L*gamma**2*F/T")


def test_rounds_that_are_bounded_exclude_the_lower_bound(tmp_path: Path) -> None:
    for high, accused in (("1000]", False), ("inf)", True)):
        symbol = f'[symbols]\nK = {{ concept = "rounds", domain = "integers in [1, {high}" }}'
        assert bool(_accused(tmp_path, [], f"{AT_STEP}\n{symbol}", "3*L*F/K")) is accused


def _accused(folder: Path, conditions: list[str], more: str, bound: str) -> list[str]:
    file = folder / "low-noise.toml"
    listed = ", ".join(f'"{condition}"' for condition in conditions)
    file.write_text(LOW_NOISE.format(conditions=listed, more=more, bound=bound), encoding="utf-8")
    return [f.text for f in compare_with_references(read_theorem_file(file)) if f.level == "error"]


def test_keys_that_no_result_has_are_errors(tmp_path: Path) -> None:
    file, text = tmp_path / "draft.toml", LOW_NOISE.format(conditions="", more=AT_STEP, bound="sqrt(L*F)*sigma/sqrt(T)")
    (tmp_path / "lemma.toml").write_text('key = "draft/lemma"', encoding="utf-8")
    (tmp_path / "broken.toml").write_text("key = ", encoding="utf-8")

    def told(line: str) -> list[str]:
        file.write_text(f"{line}\n{text}", encoding="utf-8")
        return [f"{f.place}: {f.text}" for f in compare_with_references(read_theorem_file(file)) if f.level == "error"]

    assert not told('uses = ["draft/lemma", "gu-2021/mifa", "fedau/theorem-2"]')
    for name in ("uses", "improves"):
        assert told(f'{name} = ["no/such"]')[0].startswith(f"('{name}',): {name}: unknown paper 'no'; ")
        assert "did you mean fedau/theorem-2" in told(f'{name} = ["fedau/theorem-22"]')[0]
        assert len(told(f'{name} = ["draft/lemma", "gu-2021/nosuch", "draft/other"]')) == 2


def test_a_bound_far_above_one_of_its_class_is_told_the_factor() -> None:
    known = read_theorem_file(next(file for file in FILES if file.endswith("jhunjhunwala-2022/fedavg.toml")))
    form = known.result.form("explicit")

    def times(factor: int) -> list[str]:
        terms = tuple(Term(term.name, factor * term.expression) for term in form.terms)
        result = replace(known.result, key="draft/fedavg", forms=(replace(form, terms=terms),), default="explicit")
        return [f.text for f in compare_with_references(replace(known, result=result)) if "jhunjhunwala" in f.text]

    assert times(100) == ["at least 100 times jhunjhunwala-2022/fedavg [explicit], which covers its setting"]
    assert not times(9)


def test_where_all_clients_participate_the_expectation_over_them_hides_no_reference() -> None:
    known = read_theorem_file(next(file for file in FILES if file.endswith("yang-2021/fedavg-full.toml")))
    form, measure = known.result.form(), replace(known.result.measure, expectation="gradient noise and participation")
    terms = tuple(Term(term.name, 100 * term.expression) for term in form.terms)
    result = replace(known.result, key="draft/x", measure=measure, forms=(replace(form, terms=terms),))
    assert any("yang-2021" in f.text for f in compare_with_references(replace(known, result=result)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(Path(file).parts[-2:]))
def test_no_reference_theorem_is_accused_by_another(file: str) -> None:
    assert not [f for f in compare_with_references(read_theorem_file(file)) if f.level == "error"]
