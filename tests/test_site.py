"""The site: finished pages for any generator, formulas in MathML, every link whole, nothing fetched when it is read."""

from __future__ import annotations

import ast
import contextlib
import html
import importlib
import inspect
import io
import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from prebuild.__main__ import listed, settings
from prebuild.examples import draw_example, image, terms_over_rounds
from prebuild.formulas import typeset
from prebuild.lines import written_out
from prebuild.links import broken
from prebuild.listings import CAUGHT, INVARIANT_TABLES, symbols
from prebuild.reference import public_names, signature
from prebuild.verdicts import result_page
from prebuild.versions import list_versions

import fedbounds
from fedbounds.bounds.comparison.comparability import comparability_matrix
from fedbounds.bounds.theory.problem_class_terms import AXES
from fedbounds.bounds.theory.registry import PAPERS, load, papers, results
from fedbounds.command_line import COMMANDS, cli
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.invariants.scope import scope_of
from fedbounds.empirical.participation.spec import PARTICIPATION
from fedbounds.empirical.problems.spec import PROBLEMS
from fedbounds.empirical.sweep.spec import KEYS
from fedbounds.figures.charts.reference_figures import FIGURES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def test_a_formula_in_a_page_becomes_mathml_and_the_rest_stays():
    page = "at $\\gamma_1 < 1$, for `$HOME` and \\$5\n\n$$\n\\frac{F}{T}\n$$\n\n```sh\necho $A $B\n```\n"
    made = typeset(page)
    assert re.match(
        r'at <span class="formula"><math .*</math></span>, for `\$HOME` and &#36;5\n\n<div class="form', made
    )
    assert made.count('display="inline"') == made.count('display="block"') == 1
    assert "<mfrac><mrow><mi>F</mi></mrow><mrow><mi>T</mi></mrow></mfrac>" in made and "\\" not in made
    assert made.endswith("```sh\necho $A $B\n```\n")


def test_nothing_in_an_inline_formula_is_left_for_markdown_to_take():
    made = typeset(r"| $a_1^*\|b\|[c]$ |")
    assert not re.search(r"[*_\[\]\\`|]", made[2:-2]) and "&#42;" in made


def test_a_command_that_has_no_mathml_stops_the_build():
    with pytest.raises(ValueError, match=r"no MathML for \\gama in"):
        typeset(r"$\gama_1$")


def test_a_line_that_stands_for_nothing_stops_the_build():
    with pytest.raises(KeyError, match="galery"):
        written_out("::: galery fedau")


def test_no_page_fetches_a_script_a_style_or_a_font():
    assert "://" not in settings() and re.search(r"^font = false", settings(), re.MULTILINE)


def test_every_page_is_in_the_navigation():
    entries = tomllib.loads(settings())["project"]["nav"]
    places = [place for entry in entries for place in entry.values()]
    named = {page for place in places for page in ([place] if isinstance(place, str) else place)}
    assert named == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert "errata/fedau.md" in listed("errata/")


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text('<h1 id="top">x</h1><a href="a/#here">x</a><a href="https://b.c/#d">x</a>')
    (tmp_path / "a" / "index.html").write_text('<p id="here"><a href="../#top"><img src="no.png"><a href="#gone">')
    assert list(broken(tmp_path)) == ["a/index.html: #gone", "a/index.html: no.png"]


def test_the_versions_of_a_site_are_listed_newest_first_and_its_door_opens_on_the_newest(tmp_path: Path):
    for name in ("0.9.0", "0.10.0", "0.2.1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("a site")
    list_versions(tmp_path)
    entries = json.loads((tmp_path / "versions.json").read_text())
    assert [entry["version"] for entry in entries] == ["0.10.0", "0.9.0", "0.2.1"]
    assert entries[0]["aliases"] == ["latest"] and "url=0.10.0/" in (tmp_path / "index.html").read_text()


def test_a_reference_shows_a_function_and_a_class_as_they_are_written():
    assert (
        signature("def f(\n    a: int,\n) -> int:\n    '''Doc.'''\n    return a\n") == "def f(\n    a: int,\n) -> int:"
    )
    source = "@frozen\nclass A(B):\n    '''Doc.'''\n\n    a: int = 1\n    _b: int\n\n    def c(self):\n        pass\n"
    assert signature(source) == "@frozen\nclass A(B):\n    a: int = 1"


def test_the_reference_lists_the_public_names_and_no_others() -> None:
    page = written_out((DOCS / "reference.md").read_text(encoding="utf-8"))
    found = {}
    for section in page.split("\n## ")[1:]:
        found[section.partition("\n")[0]] = re.findall(r"^\| \[?`(\w+)`", section, re.MULTILINE)
    assert found == {module: sorted(names) for module, names in public_names().items()}
    assert {*found.pop("fedbounds")} == {*fedbounds.__all__} - {*fedbounds.MODULES}
    for module, names in found.items():
        source = ast.parse(inspect.getsource(importlib.import_module(module)))
        imported = [alias for node in source.body if isinstance(node, ast.ImportFrom) for alias in node.names]
        assert sorted(names) == sorted(alias.name for alias in imported)
        assert all(alias.asname == alias.name for alias in imported)  # which editors and pyright take as public


@pytest.mark.parametrize("paper", [path.parent.name for path in (DOCS / "gallery").glob("*/claims.csv")])
def test_the_gallery_page_shows_every_figure_and_every_claim_of_a_paper(paper: str):
    page = written_out(f"# Gallery\n\n::: claims {paper}\n\n::: gallery {paper}\n")
    folder = DOCS / "gallery" / paper
    images = re.findall(rf'<img src="gallery/{paper}/([^"]+)" alt="[^"]+"', page)
    assert images == sorted(path.name for path in folder.glob("*.png")) and images
    assert page.count("<figure>") == page.count("</figcaption>") == len(images)
    ends = re.compile(r"<td>(reproduced|not reproduced|inconclusive|not tested at this scale: .*)(: .*)?</td></tr>$")
    verdicts = [line for line in page.splitlines() if ends.search(line)]
    assert len(verdicts) == len((folder / "claims.csv").read_text(encoding="utf-8").splitlines()) - 1
    assert f"::: claims {paper}" in (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_the_gallery_page_shows_every_figure_over_reference_theorems() -> None:
    page = written_out((DOCS / "gallery.md").read_text(encoding="utf-8"))
    assert {*re.findall(r'<img src="gallery/references/([^"]+)" alt="[^"]+"', page)} == {f"{x}.png" for x in FIGURES}


def test_the_page_on_comparability_lists_every_left_hand_side_of_a_run() -> None:
    page = html.unescape(written_out((DOCS / "comparability.md").read_text(encoding="utf-8")))
    assert "::: " not in page
    measures = comparability_matrix().run_results().measures
    assert all(f"| {i} | {measure}" in page for i, measure in enumerate(measures, start=1))


def test_the_page_on_results_lists_every_reference_theorem() -> None:
    rows = {line.split("`")[1]: line for line in written_out("::: references\n").splitlines() if line.startswith("| `")}
    expected = {r.key: r for one in papers(references=True) if one.key not in PAPERS for r in one.results}
    assert rows.keys() == expected.keys() and "\n::: references" in (DOCS / "results.md").read_text(encoding="utf-8")
    for key, line in rows.items():
        assert line.count(" | ") == 4 and f"`{expected[key].default}`, " in line
        assert ("unread" in line) == expected[key].source.unread == line.endswith("| memory |")


def test_the_page_on_settings_lists_every_kind() -> None:
    page = html.unescape(written_out((DOCS / "settings.md").read_text(encoding="utf-8")))
    assert "::: " not in page
    assert all(f"| `{kind}` |" in page for axis in AXES.values() for kind in axis.kinds)


def test_the_page_on_commands_has_every_command_and_option() -> None:
    page = written_out((DOCS / "commands.md").read_text(encoding="utf-8"))
    sections = dict(section.partition("\n")[::2] for section in page.split("\n## ")[1:])
    assert {*COMMANDS} <= {*sections}
    with click.Context(cli) as context:
        for name in COMMANDS:
            command = cli.get_command(context, name)
            assert command is not None
            options = {option for each in command.params for option in each.opts if option.startswith("--")}
            assert options <= {*re.findall(r"--[\w-]+", sections[name])}, name


def test_the_page_on_toml_files_has_every_key_and_every_kind() -> None:
    page = written_out((DOCS / "toml.md").read_text(encoding="utf-8"))
    top = page.partition("## Settings for advise")[0]
    assert all(re.search(rf"[`\[]{key}[`\].]", top) for key in KEYS)
    for kind in (*PARTICIPATION.builders(), *algorithms(), *PROBLEMS.builders()):
        assert f"### `{kind}`" in page


def test_the_page_on_symbols_has_every_concept() -> None:
    assert {f"`{q.concept}`" for r in results() for q in r.notation.values()} <= {*re.findall("`[a-z_]+`", symbols())}


def test_the_page_on_property_tests_has_every_invariant_of_every_check() -> None:
    source = (DOCS / "invariants.md").read_text(encoding="utf-8")
    assert re.findall("^::: invariants (.*)$", source, re.MULTILINE) == list(INVARIANT_TABLES)
    assert {title.split()[0] for title in json.loads(CAUGHT.read_text(encoding="utf-8"))} == {*INVARIANT_TABLES}
    for check, invariants in INVARIANT_TABLES.items():
        rows = [line.split(" | ") for line in written_out(f"::: invariants {check}").splitlines()[2:]]
        assert [row[0] for row in rows] == [f"| `{name}`" for name in invariants]
        needy = [bool(scope_of(each).needs) or scope_of(each).tolerance < 1 for each in invariants.values()]
        assert [len(row) > 2 and row[2] != " |" for row in rows] == needy, check


@pytest.mark.parametrize("key", ["fedau/theorem-3", "tdcd/theorem-1", "arbitrary-participation/proposition-4.4"])
def test_the_page_of_a_result_has_its_formula_verdict_picture_and_code_that_prints_what_it_shows(key: str):
    result = load(key)
    page = "\n\n".join(result_page(result))
    assert page.count("$$\n") == 2 * len(result.forms) and f"Verdict on `{key}[{result.default}]`: **proved**" in page
    picture = terms_over_rounds(result)
    assert (
        (f"]({image(result)})" in page) == (picture is not None) == (key != "arbitrary-participation/proposition-4.4")
    )
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)\n```", page, re.DOTALL | re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == f"{shown}\n"
    (shell,) = re.findall(r"^```sh\n(.*?)\n```", page, re.DOTALL | re.MULTILINE)
    with contextlib.redirect_stdout(printed := io.StringIO()):
        assert fedbounds.main(shlex.split(shell.splitlines()[0])[1:]) == 0
    assert next(line for line in shown.splitlines() if " <= " in line) in printed.getvalue()


def test_a_picture_of_the_terms_is_drawn_beside_the_page_that_shows_it(tmp_path: Path):
    draw_example("fedau/theorem-3", tmp_path)
    draw_example("arbitrary-participation/proposition-4.4", tmp_path)
    (picture,) = tmp_path.rglob("*.png")
    assert picture.relative_to(tmp_path).as_posix() == "fedau/theorem-3.png"
