"""fedbounds report: pages that need nothing else, whose numbers are those of the comparison."""

from __future__ import annotations

import csv
import html.parser
import json
import re
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from markupsafe import escape

import fedbounds
from fedbounds.bounds.audit.errata import paper_errata
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.display.mathml import ELEMENTS
from fedbounds.bounds.display.plain_text import number, visible
from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import PAPERS, load, paper
from fedbounds.command_line import main
from fedbounds.figures.report.page import formula, prose
from fedbounds.figures.report.papers import claims_in, figures_in, find_committed_figures
from fedbounds.figures.report.theory import result_document

ALONE = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SPEC = """
name = "small"
rounds = 30
seeds = 2
problem = { kind = "quadratic", clients = 3, dimension = 2, noise = 0.1, initial_gap = 2.0 }
participation = { kind = "bernoulli", clients = 3, probability = 0.8, normalize = false }
[algorithm]
kind = "fedau"
local_step_size = 1e-3
local_steps = 2
server_multiplier = 5.0
cutoff = 2
"""
AMPLIFIED = """
name = "odd"
rounds = 12
problem = { kind = "quadratic", clients = 3, dimension = 2, initial_gap = 2.0 }
participation = { kind = "cyclic", clients = 3 }
[algorithms.'<script>alert(1)</script> $\\alpha & "b"']
kind = "generalized-fedavg"
local_step_size = 1e-3
local_steps = 2
server_multiplier = 5.0
interval = 2
[algorithms.lost]
kind = "generalized-fedavg"
local_step_size = 1e30
local_steps = 2
server_multiplier = 5.0
interval = 2
[algorithms.another]
kind = "wait-minibatch"
local_step_size = 1e-3
local_steps = 2
interval = 3
"""
ODD = """algorithm=<script>alert(1)</script> $\\alpha & "b\""""


class Page(html.parser.HTMLParser):
    """A page as a reader of it needs it; tags that do not match are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.open = text, []
        self.tags: Counter[str] = Counter()
        self.ids, self.links, self.images, self.data, self.rows = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags[tag] += 1
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[name] for name in ("href", "src", "data", "action", "poster", "srcset") if name in found]
        assert not [name for name in found if name.startswith("on")], "no script anywhere"
        if tag == "img":
            self.images.append((found["src"], found.get("alt", "")))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "data":
            self.data.append([found["value"], ""])
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "data" in self.open:
            self.data[-1][1] += data
        if {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data

    def cells(self, *first):
        """The rows whose first cells are these."""
        return [row for row in self.rows if [cell.strip() for cell in row[: len(first)]] == list(first)]


def check(folder: Path) -> tuple[Page, dict]:
    """A page that is whole, and its document."""
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    assert page.tags["h1"] == page.tags["main"] == page.tags["title"] == 1 and not page.tags["script"]
    assert page.tags["table"] == page.tags["caption"] and not page.tags["link"] and not page.tags["iframe"]
    assert len(page.ids) == len({*page.ids})
    for link in page.links:
        assert not re.match(r"[a-z]+:|//", link), f"{link} leads out of the folder"
        assert link[1:] in page.ids if link.startswith("#") else (folder / unquote(link)).is_file(), link
    assert not re.search(r"@import|url\(", page.text)
    assert all(alternative.strip() for _, alternative in page.images)
    for value, shown in page.data:
        assert shown == number(json.loads(value))
    document = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert document["schema"] == "fedbounds.report/1" and document["version"] == fedbounds.__version__
    return page, document


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory in which runs are made once."""
    directory = tmp_path_factory.mktemp("report")
    (directory / "small.toml").write_text(SPEC)
    (directory / "odd.toml").write_text(AMPLIFIED)
    return directory


@pytest.fixture(autouse=True)
def _there(place, monkeypatch):
    monkeypatch.chdir(place)


def reported(*words: str) -> int:
    return fedbounds.main(["report", *words])


@pytest.fixture(scope="module")
def told(place):
    """What is printed of the small study, whose page is then in the folder `page`."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.chdir(place)
        assert reported("small.toml", "--out", "page", "--json") == 0
    return json.loads(printed.getvalue())


def test_every_number_of_a_page_is_that_of_confront(place, told, capsys):
    assert told["schema"] == "fedbounds.report/1" and not told["crossed"]
    assert {place / path for path in told["written"]} == {*(place / "page").iterdir()} - {
        place / "page" / ".fedbounds.json"
    }
    page, document = check(place / "page")
    assert len(page.images) == len(document["results"]) == 2
    for result in document["results"]:
        (ours,) = result["comparisons"]
        words = [result["key"], "--form", result["form"], "--out", "c.png", "--json"]
        assert fedbounds.main(["confront", "small.toml", *words]) == 0
        (theirs,) = json.loads(capsys.readouterr().out)["settings"]
        for name in ("measured", "bound", "ratio", "standard_error", "valid"):
            assert ours[name] == theirs[name][-1]
        assert ours["guarantee"] == theirs["guarantee"] and ours["why_not"] == theirs["why_not"]
        used = {name: told for name, told in theirs["constants"].items() if told["used"]}
        assert {c["name"]: (c["value"], c["source"], c["note"]) for c in ours["constants"]} == {
            name: (told["value"], told["source"], told["note"]) for name, told in used.items()
        }
        # and the page shows them: the row of the table of results, and one row for each constant
        (row,) = page.cells("small", result["claim"])
        shown = [ours[name] for name in ("rounds", "measured", "standard_error", "bound", "ratio")]
        assert row[2:7] == [number(value) for value in shown]
        assert row[7:9] == ["yes", "yes" if ours["guarantee"] else "no"]
        for c in ours["constants"]:
            assert any(row[0].endswith(f" {c['name']}") and row[2:5] == [number(c["value"]), c["source"], c["note"]]
                       for row in page.rows if len(row) == 5)  # fmt: skip
        for condition in ours["conditions"]:
            cells = [number(condition["left"]), number(condition["right"])]
            told = [*cells, "yes" if condition["holds"] else "no", condition["why"]]
            assert told in [row[1:] for row in page.rows]  # the first is its formula
    kinds = {c["source"] for result in document["results"] for c in result["comparisons"][0]["constants"]}
    assert {"given", "exact", "trajectory"} <= kinds
    assert "G is known only along one run" in page.text


@pytest.mark.usefixtures("told")
def test_the_page_says_how_to_replay_and_where_it_comes_from(place):
    page, document = check(place / "page")
    ledger = read_ledger("fedau")
    for result in document["results"]:
        (verdict,) = result["verdicts"]
        assert verdict["verdict"] == ledger[result["claim"]]["verdict"]
        assert verdict["replay"] == f'fedbounds audit "{result["claim"]}"'
        (row,) = [row for row in page.cells(result["claim"]) if len(row) == 6]
        assert row[1] == verdict["verdict"] and row[5] == verdict["replay"]
    known = document["provenance"]
    assert known["spec_text"] == SPEC and "host" not in json.dumps(known)
    (setting,) = document["settings"]
    (run,) = setting["runs"]
    record = json.loads((place / "results" / "small" / f"{run['key']}.json").read_text())
    assert run["sha256"] == record["checksum"] in page.text and run["seeds"] == setting["seeds"] == [0, 1]
    assert {*known["files"]} == {p.name for p in (place / "page").iterdir()} - {
        "index.html",
        "report.json",
        ".fedbounds.json",
    }
    assert any("wang2024" in entry or "Wang" in entry for entry in document["bibtex"])
    assert page.text.count("@software{fedbounds") == 1

    # a second time nothing is run, and every byte is the same
    before = {path.name: path.read_bytes() for path in (place / "page").iterdir()}
    assert reported("small.toml", "--out", "page") == 0
    assert {path.name: path.read_bytes() for path in (place / "page").iterdir()} == before


def test_a_crossing_revokes_the_guarantee_in_the_page(place, monkeypatch):
    claim = "fedau/theorem-3[sharp]"
    assert reported("small.toml", "--out", "kept", "--key", claim) == 0
    page, document = check(place / "kept")
    assert document["results"][0]["comparisons"][0]["guarantee"] and "Revoked" not in page.text
    assert "Every bound here is a guarantee." in page.text
    _plant(monkeypatch)
    assert reported("small.toml", "--out", "crossed", "--key", claim) == 1
    page, document = check(place / "crossed")
    (found,) = document["results"][0]["comparisons"]
    assert not found["guarantee"] and found["covered_crossings"] == 1
    assert f"Revoked: {found['revoked']}".replace("'", "&#39;") in page.text
    assert "more was measured than promised where the conditions hold" in page.text
    assert "Every bound here is a guarantee." not in page.text
    (row,) = page.cells("small", claim)
    assert row[8:] == ["no", f"1 of {found['compared']} T"]


def _plant(monkeypatch):
    """More is measured than promised at the last number of rounds, before the guarantee is weighed."""
    planted = property(lambda comparison: comparison.rounds == comparison.rounds[-1])
    monkeypatch.setattr("fedbounds.empirical.comparison.compare_run.RunComparison._above", planted)


def test_odd_names_are_escaped_and_what_cannot_be_held_stands_with_its_reason(place):
    assert reported("odd.toml", "--out", "odd page") == 0
    page, document = check(place / "odd page")
    assert [one["label"] for one in document["settings"]] == [ODD, "algorithm=lost", "algorithm=another"]
    assert ODD in "".join(cell for row in page.rows for cell in row)
    assert [r["claim"] for r in document["results"]] == ["arbitrary-participation/theorem-3.1[sharp]"]
    held = [c["label"] for c in document["results"][0]["comparisons"]]
    reasons = {label: one["why"] for one in document["without"] for label in one["settings"] if label not in held}
    assert held == [ODD] and "diverged" in reasons["algorithm=lost"]
    assert "2 settings could be held against none" in page.text


LABELS = (
    r"$\\text{<script>alert(1)</script>}$",
    r"$\\href{javascript:alert(1)}{x}$",
    r"$\\frac{$",
    r"a\u0007b\u202e",
    r"$\\verb|<b>|$ $\\tag{<i>} $\\hbox{<img src=x onerror=alert(1)>}$",
)
HOSTILE = """
name = 'hostile'
rounds = 6
problem = { kind = "quadratic", clients = 2, dimension = 2, initial_gap = 2.0 }
participation = { kind = "cyclic", clients = 2 }
""" + "".join(
    f'''
[algorithms."{label}"]
kind = "generalized-fedavg"
local_step_size = {1 + k}e-3
local_steps = 1
server_multiplier = 5.0
interval = 2
'''
    for k, label in enumerate(LABELS)
)


def test_labels_of_users_are_text_in_pages_and_pictures(place):
    (place / "hostile.toml").write_text(HOSTILE, encoding="utf-8")
    assert reported("hostile.toml", "--out", "hostile") == 0
    page, document = check(place / "hostile")
    assert not {"script", "iframe", "object", "b", "i"} & {*page.tags} and "javascript:" not in "".join(page.links)
    shown = "".join(cell for row in page.rows for cell in row)
    for one in document["settings"]:
        assert visible(one["label"]) in shown
    html = (place / "hostile" / "index.html").read_text(encoding="utf-8")
    assert html == visible(html) and r"a\x07b\u202e" in html
    key = "arbitrary-participation/theorem-3.1"
    for words in (["figure", "hostile.toml"], ["confront", "hostile.toml", key]):
        assert main([*words, "--out", f"{words[0]}.svg"]) == 0
        ElementTree.parse(place / f"{words[0]}.svg")  # XML, so without control characters
        data = (place / f"{words[0]}.csv").read_text(encoding="utf-8")
        assert "<script>alert(1)</script>" in data and r"a\x07b\u202e" in data and r"\$" not in data


@pytest.mark.parametrize(
    "name",
    [
        "noise & drift",
        "a<b>",
        "a\x01b",
        "\x1b[31m",
        "\u202ea\u2028b",
        "a}b",
        r"{\input{x}",
        "5 %, x^2_1 ~ #|$",
        "a <= b",
    ],
)
def test_the_name_of_a_term_is_text_in_a_page(name):
    result = load("fedau/theorem-2")
    form = result.form("explicit")
    other = replace(form, terms=(replace(form.terms[0], name=name), *form.terms[1:]))
    document = result_document(result, other)
    shown = str(formula(document["pieces"][1]))
    assert f"<mtext>{escape(visible(name))}</mtext>" in visible(shown).replace("\u00a0", " ")
    assert {*Page(shown).tags} <= ELEMENTS and rf"\text{{{tex(name)}}}" in document["pieces"][1]


def test_a_formula_that_cannot_be_typeset_is_one_line():
    with pytest.raises(FedboundsError, match="no formula"):
        formula(r"\text{a & b}")


@pytest.mark.parametrize(
    "text",
    [
        r"$\text{<script>alert(1)</script>}$",
        r"$\href{javascript:alert(1)}{x}$",
        r"$\verb|<b onclick=a>|$",
        r"$\hbox{<img src=x onerror=alert(1)>}$",
        r"$\tag{<svg/onload=alert(1)>}$",
        r"$\text{&lt;<!--><script>]]>}$",
        r"$\style{background:url(x)}{y}$",
        r"\$<u>\$",
        "$\\frac{$",
    ],
)
def test_what_is_typeset_holds_elements_of_formulas_only(text):
    page = Page(str(prose(text)))
    assert {*page.tags} <= ELEMENTS and not page.links


def test_results_are_chosen_by_key_and_form_and_constants_are_given(place):
    key = "fedau/theorem-2"
    words = ["--key", f"{key}[printed]", "--key", key, "--set", "L=2", "--assume", "bounded-gradient"]
    assert reported("small.toml", "--out", "chosen", *words) == 0
    _, document = check(place / "chosen")
    printed, default = document["results"]
    assert printed["form"] == "printed" and default["form"] != "printed"
    for result in (printed, default):
        (found,) = result["comparisons"]
        (constant,) = [c for c in found["constants"] if c["name"] == "L"]
        assert (constant["value"], constant["source"]) == (2, "given")
        assert {"bounded-gradient": "assumed"}.items() <= {a["name"]: a["status"] for a in found["assumptions"]}.items()
        assert not found["guarantee"] and "G is known only along one run" in found["why_not"]


def test_where_no_result_fits_the_reason_is_that_of_the_algorithm_s_own_paper(capsys):
    example = Path(__file__).parents[3] / "examples" / "minimax.toml"
    assert reported(str(example), "--out", "nothing") == 2
    assert "no result of Sharma et al. 2023 covers this run: fed-norm-sgda with local steps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "exactly one of SPEC.toml and --paper P"),
        (["small.toml", "--paper", "fedau"], "exactly one of SPEC.toml and --paper P"),
        (["small.toml", "--figures", "x"], "--figures is for papers"),
        (["--paper", "fedau", "--key", "fedau/theorem-2"], "are for runs"),
        (["--paper", "fedua"], "fedau"),
        (["--paper", "fedau", "--figures", "nowhere"], "--figures nowhere is not a folder"),
        (["missing.toml"], "missing.toml"),
        (["small.toml", "--key", "fedau/theorem-22"], "fedau/theorem-2"),
        (["small.toml", "--key", "fedau/theorem-2[prinetd]"], "printed"),
        (["small.toml", "--key", "tdcd/theorem-1"], "run tdcd"),
        (["small.toml", "--set", "Gg=5"], "Gg"),
        (["small.toml", "--assume", "smoth"], "smooth"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(place, capsys, words, said):
    assert reported(*words, "--out", "nothing") == 2
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1 and not told.out
    assert not (place / "nothing").exists()


def test_a_folder_that_cannot_be_written_is_reported_before_anything_is_run(place, capsys):
    (place / "file").write_text("")
    for out in ("file", "file/below"):
        assert reported("small.toml", "--out", out) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_of_a_paper_has_its_results_errata_figures_and_claims(place, name):
    assert reported("--paper", name, "--out", name) == 0
    page, document = check(place / name)
    room, ledger, folder = paper(name), read_ledger(name), find_committed_figures(name)
    assert [r["key"] for r in document["results"]] == [r.key for r in room.results]
    for result, shown in zip(room.results, document["results"], strict=True):
        assert shown["claim"] == f"{result.key}[{result.default}]"
        verdicts = {v["claim"]: v["verdict"] for v in shown["verdicts"]}
        assert verdicts == {
            f"{result.key}[{f.name}]": ledger[f"{result.key}[{f.name}]"]["verdict"] for f in result.forms
        }
    assert document["counts"] == Counter(v["verdict"] for r in document["results"] for v in r["verdicts"])
    assert [e["id"] for e in document["errata"]] == [e.id for e in paper_errata(name)]
    assert all(f"<code>{erratum['replay']}</code>" in page.text for erratum in document["errata"])
    images = sorted(path.name for path in folder.glob("*.png"))
    assert [image for image, _ in page.images] == images
    captions = {path.with_suffix(".png").name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    assert all(alternative for _, alternative in page.images) and captions.keys() == {*images}
    with (folder / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert document["claims"] == rows
    for row in rows:
        verdict = f"{row['verdict']}: {row['note']}" if row["note"] else row["verdict"]
        says = row["paper"] if row["paper"] != row["claim"] else "the same"
        details = "Comparisons with 95 % intervals" if row["comparisons"] else ""
        shown = f"{row['measured']}{details}{row['comparisons']}"
        assert [row["source"], says, row["claim"], shown, verdict] in page.rows
    assert room.reference.split(",")[0] in page.text and room.bibtex.split("{")[1].split(",")[0] in page.text


def test_a_figure_of_a_paper_has_the_verdicts_on_the_claims_about_it():
    for room in PAPERS:
        folder = find_committed_figures(room)
        shown = {one["name"]: one["verdicts"] for one in figures_in(folder, claims_in(folder))}
        with open(folder / "claims.csv", newline="") as file:
            sources = Counter(row["source"] for row in csv.DictReader(file))
        for source, count in sources.items():
            if (found := re.match(r"(Figure|Table) ([A-Z0-9.]+)(, ours|, convolutions)?$", source)) is None:
                continue
            words = shown[f"{found[1]}-{found[2]}{'-cnn' if found[3] == ', convolutions' else ''}".lower()]
            assert sum(map(int, re.findall(r"\d+", words))) == count, (room, source, words)
    toys = find_committed_figures("arbitrary-participation")
    toy = {one["name"]: one["verdicts"] for one in figures_in(toys, claims_in(toys))}
    assert toy["figure-b.1"] == toy["figure-b.2"] == "1 is reproduced"  # of "Figures B.1, B.2"
    assert toy["rate"] and toy["ratio"] and not toy["tightness"]


def test_a_paper_without_figures_says_how_to_draw_them(place, monkeypatch):
    (place / "bare").mkdir(exist_ok=True)
    assert reported("--paper", "fedmrn", "--figures", "bare", "--out", "unseen") == 0
    page, document = check(place / "unseen")
    assert not document["figures"] and not document["claims"] and not page.images
    assert "fedbounds figure fedmrn --out DIR" in page.text
    monkeypatch.setattr("fedbounds.figures.report.papers.find_committed_figures", lambda name: None)  # as if installed
    assert reported("--paper", "fedmrn", "--out", "installed") == 0
    assert check(place / "installed")[1]["figures"] == []


def test_a_folder_of_figures_that_lacks_one_or_is_something_else_is_reported(place, capsys):
    odd = place / "gallery"
    odd.mkdir()
    (odd / "notes.json").write_text("[1, 2]")
    assert figures_in(odd, []) == []
    (odd / "claims.csv").write_text("a,b\n1,2\n")
    assert reported("--paper", "fedmrn", "--figures", "gallery", "--out", "nothing") == 2
    assert "not a table of claims" in capsys.readouterr().err
    (odd / "claims.csv").unlink()
    (odd / "lost.json").write_text(json.dumps({"schema": "fedbounds.figure/1", "caption": "c", "alternative": "a"}))
    assert reported("--paper", "fedmrn", "--figures", "gallery", "--out", "nothing") == 2
    assert "lost.json" in capsys.readouterr().err and not (place / "nothing").exists()


def test_a_bound_that_is_none_is_reported_in_plain_words_its_kind_once_and_its_conditions_as_formulas(place):
    """A mean over seeds: the same kind in the table and in the picture, and no function without a name."""
    text = (Path(__file__).parents[3] / "examples" / "tdcd-quadratic.toml").read_text(encoding="utf-8")
    short = text.replace("rounds = 400", "rounds = 20").replace("seeds = 64", "seeds = 4")
    (place / "tiers.toml").write_text(short.replace("seeds_per_run = 64", "seeds_per_run = 4"), encoding="utf-8")
    assert reported("tiers.toml", "--out", "tiers", "--key", "tdcd/theorem-1") == 0
    page, document = check(place / "tiers")
    ((found,),) = [result["comparisons"] for result in document["results"]]
    assert {c["name"]: c["source"] for c in found["constants"]}["Delta"] == "estimated"
    assert "Delta is only estimated" in found["why_not"] and "or a mean over seeds" in page.text
    assert "The bound here is no guarantee, for the reasons that stand beside it." in page.text
    assert "DriftGrowth" not in page.text and any("DriftGrowth" in c["text"] for c in found["conditions"])
    assert reported("tiers.toml", "--out", "given", "--key", "tdcd/theorem-1", "--set", "Deltainf=1.5") == 0
    assert "Every bound here is a guarantee." in check(place / "given")[0].text
