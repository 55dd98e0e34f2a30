"""Packages that are broken: one warning in what lists all papers, one line for whoever asks for theirs."""

import importlib
import json
import os
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fedbounds.bounds.audit.errata import paper_errata
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory import registry
from fedbounds.bounds.theory.registry import GROUP
from tests.command_line import run

HEAD = "REFERENCE = 'R'\nBIBTEX = ''\nRESULTS = ()\n"
BROKEN = {
    "an error": "1 / 0",
    "a missing module": "import nowhere_to_be_found",
    "a syntax error": "def",
    "an exit": "import sys; sys.exit(0)",
    "an exit with words": "raise SystemExit('goodbye')",
    "an error that cannot be printed": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "many lines": "raise ValueError('one\\ntwo\\x1b[2J' + 1000 * 'x')",
    "a deep recursion": "def f(): f()\nf()",
    "no results": "REFERENCE = 'R'",
    "results of another kind": "REFERENCE = 'R'\nBIBTEX = ''\nRESULTS = [3]",
    "a generator that fails": "REFERENCE = 'R'\nBIBTEX = ''\nRESULTS = (1 / 0 for _ in range(2))",
    "an interrupt of its own": "raise BaseException('enough')",
}
NOISE = (
    "import os, sys, warnings\nprint('noise')\nsys.stdout.write('more noise')\nprint('noise', file=sys.stderr)\n"
    "warnings.warn('noise')\nos.chdir('/')\nsys.stdout = open(os.devnull, 'w')\n"
)
CACHES = (
    registry.paper.cache_clear,
    registry.statements.cache_clear,
    registry._warn.cache_clear,
    registry._BROKEN.clear,
)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an installed package `its_broken`, which provides the paper `broken`."""
    folder = tmp_path / "its_broken"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "its_broken"]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    monkeypatch.setattr(registry, "_installed_papers", lambda: {"broken": EntryPoint("broken", "its_broken", GROUP)})
    for clear in CACHES:
        clear()
    yield folder
    for clear in CACHES:
        clear()


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN)
def test_a_broken_package_is_one_warning_and_one_line(
    code: str, plugin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (plugin / "__init__.py").write_text(NOISE + code)
    here = os.getcwd()
    status, out, err = run("list", "--json")
    assert status == 0 and json.loads(out)["results"] and not err
    assert [record.message[:37] for record in caplog.records] == ["the paper 'broken' cannot be loaded: "]
    assert "\n" not in caplog.records[0].message and caplog.records[0].message.isprintable()
    for words in (["list", "--paper", "broken"], ["show", "broken/x"], ["eval", "broken/x", "L=1"]):
        status, out, err = run(*words)
        assert (status, out) == (2, "") and err.startswith("fedbounds: the paper 'broken' cannot be loaded: "), err
        assert err.count("\n") == 1 and len(err) < 600
    assert os.getcwd() == here and len(caplog.records) == 1


def test_a_package_that_is_noisy_when_it_is_imported_corrupts_no_output(
    plugin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (plugin / "__init__.py").write_text(NOISE + HEAD)
    here = os.getcwd()
    status, out, err = run("list", "--json")
    assert status == 0 and json.loads(out)["results"] and not err and not caplog.records
    assert os.getcwd() == here


def test_an_interrupt_while_a_package_is_imported_interrupts(plugin: Path) -> None:
    (plugin / "__init__.py").write_text("raise KeyboardInterrupt")
    assert run("list")[0] == 130


@pytest.mark.parametrize("code", ["1 / 0", "raise SystemExit", "STATEMENTS = [3]"])
def test_broken_statements_are_a_warning_in_lists(code: str, plugin: Path, caplog: pytest.LogCaptureFixture) -> None:
    (plugin / "__init__.py").write_text(HEAD)
    (plugin / "statements.py").write_text(NOISE + code)
    status, out, _ = run("list", "--json")
    assert status == 0 and json.loads(out)["results"] and len(caplog.records) == 1
    assert run("list", "--paper", "broken")[0] == 2


@pytest.mark.parametrize(("floor", "what"), [("figures", "drawing"), ("empirical", "algorithms"), ("bounds", "errata")])
def test_a_broken_submodule_is_one_line_for_whoever_asks_for_it(floor: str, what: str, plugin: Path) -> None:
    (plugin / "__init__.py").write_text(HEAD)
    (plugin / f"{what}.py").write_text(NOISE + "raise SystemExit(0)")
    with pytest.raises(FedboundsError, match=f"'its_broken.{what}' cannot be loaded: SystemExit: 0; repair"):
        registry.paper_submodule("broken", floor, what)
    if what == "errata":
        with pytest.raises(FedboundsError, match="cannot be loaded"):
            paper_errata("broken")
    found = registry.merge_tables(floor, what, lambda module: {module.__name__: module})
    assert found and not any(name.startswith("its_broken") for name in found)


def test_the_figures_of_others_do_not_depend_on_a_broken_package(plugin: Path, tmp_path: Path) -> None:
    (plugin / "__init__.py").write_text(HEAD)
    (plugin / "drawing.py").write_text("raise SystemExit(0)")
    status, out, err = run("figure", "fedav/figure-1", "--out", str(tmp_path / "x.png"))
    assert (status, out) == (2, "") and err.startswith("fedbounds: unknown figure 'fedav/figure-1'")


def test_a_broken_command_of_a_package_is_one_line(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (plugin / "__init__.py").write_text(NOISE + "raise SystemExit(0)")
    point = EntryPoint("brk", "its_broken:command", "fedbounds.commands")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [point])
    status, out, err = run("brk")
    assert (status, out) == (2, "") and err.startswith("fedbounds: the command 'brk' cannot be loaded: SystemExit: 0; ")
    assert run("--help")[0] == 0
