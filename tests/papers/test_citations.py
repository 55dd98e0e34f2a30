"""The papers are cited by their own authors, and what is said of a paper names the version that it is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prebuild.verdicts import counted, note

from fedbounds.bounds.audit.errata import describe_findings, paper_errata, paper_wording
from fedbounds.bounds.theory.registry import PAPERS, paper
from fedbounds.empirical.algorithms.messages import StochasticSign
from fedbounds.empirical.papers.fedmrn.masked_noise import clipped
from fedbounds.figures.papers.tdcd.experiments import ORIGINAL
from tests.command_line import run

ROOT = Path(__file__).parents[2]
FOLDERS = ("bounds", "empirical", "figures", "fedbounds", "docs", "notebooks", "examples", "benchmarks")
LISTED = re.compile(r"\b([A-Z][a-z]+(?:, [A-Z][a-z]+)*),? (?:&|and) ([A-Z][a-z]+)\b")
BIBTEX = re.compile(r"author\s*=\s*\{[^}]*\}")


def surnames(name: str) -> tuple[str, ...]:
    """The authors of a paper, from its reference: initials and surname each."""
    return tuple(re.findall(r"(?:[A-Z]\. )+([A-Z][a-z]+)(?=,| and)", paper(name).reference))


AUTHORS = {name: surnames(name) for name in PAPERS}
FIRST = {authors[0] for authors in AUTHORS.values()}


def pages() -> list[Path]:
    """Everything that a person reads, code included."""
    found = [
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".ipynb")
    ]
    return [*found, ROOT / "README.md", ROOT / "CHANGELOG.md"]


def mentions(text: str) -> list[tuple[str, ...]]:
    """The lists of authors that begin with the first author of one of the papers, those of BibTeX apart."""
    plain = re.sub(r'["\\n]*\s*\n\s*["#]*', " ", BIBTEX.sub("", text))
    lists = [(*match[1].split(", "), match[2]) for match in LISTED.finditer(plain)]
    return [names for names in lists if names[0] in FIRST]


def test_the_references_name_all_authors():
    assert {name: len(authors) for name, authors in AUTHORS.items()} == {
        "arbitrary-participation": 2, "fedau": 2, "fed-norm-sgda": 3, "fedmrn": 10, "tdcd": 4,
    }  # fmt: skip
    for name, authors in AUTHORS.items():
        assert all(author in paper(name).bibtex for author in authors), name


def test_a_wrong_list_of_authors_is_found_and_bibtex_is_passed_over():
    assert mentions('compared with: Li, Zhao, Luo & Wang, "Masked Random Noise"') == [("Li", "Zhao", "Luo", "Wang")]
    assert mentions("author = {Das, Anirban and Castiglia, Timothy and Wang, Shiqiang}") == []


def test_every_list_of_authors_is_that_of_a_paper():
    found = {path: set(mentions(path.read_text(encoding="utf-8"))) - set(AUTHORS.values()) for path in pages()}
    assert {str(path.relative_to(ROOT)): wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("name", PAPERS)
def test_whatever_counts_findings_names_the_version_of_the_paper(name):
    version = paper(name).version
    assert re.search(r"\b20\d\d\b", version) and "arXiv:" in version
    assert paper(name).reference.endswith(f", {version}")
    assert f"findings ({version}):" in describe_findings(name)
    assert describe_findings(name) in counted(name)
    assert f", {version}." in note(name) and describe_findings(name) in note(name)
    assert f"\n- {name}: {describe_findings(name)}\n" in (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert f"\nVersion of the paper: {version}\n" in run("refute", paper_errata(name)[0].id)[1]


def test_the_note_on_fed_norm_sgda_says_that_a_later_version_was_not_read():
    page = " ".join((ROOT / "docs/errata/fed-norm-sgda.md").read_text(encoding="utf-8").split())
    number = paper("fed-norm-sgda").version.partition(",")[0]
    assert f"All this is about {number}. A later version" in page and "is open." in page


def test_formulas_of_fedmrn_are_cited_by_their_equations_and_its_signs_by_its_own_reference():
    assert "Source: Li et al. 2024, eq. (10)." in str(clipped.__doc__)
    assert "Safaryan &" in str(StochasticSign.__doc__) and "Bernstein" not in str(StochasticSign.__doc__)


def test_the_learning_rates_on_the_original_data_span_the_ranges_that_the_paper_gives():
    """CIFAR-10, MIMIC-III and ModelNet40, Section 5."""
    found = [(min(task.step_sizes), max(task.step_sizes)) for task in ORIGINAL.values()]
    assert found == [(1e-5, 1e-4), (1e-3, 1e-1), (5e-5, 1e-3)]


def test_the_ten_classes_of_modelnet40_are_a_slip_that_is_listed():
    (slip,) = [slip for slip in paper_wording("tdcd") if slip.id == "ten-classes"]
    assert slip.quotes[0].text == "ten classes" and slip.should.startswith("40")
