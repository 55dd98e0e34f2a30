"""The stages of `.ci/run`: what is due, and that each stage lists what it reads."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests import conftest
from tests.conftest import SEPARATE

ROOT = Path(__file__).resolve().parent.parent


def load_stages(root: Path) -> ModuleType:
    """Import `.ci/stages.py` of a checkout."""
    spec = importlib.util.spec_from_file_location("stages", root / ".ci/stages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stages = load_stages(ROOT)


def test_every_stage_is_a_target_of_the_makefile() -> None:
    for stage in stages.READS:
        done = subprocess.run(["make", "-n", stage], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, done.stderr


def test_every_path_that_a_stage_reads_exists() -> None:
    paths = {path for listed in stages.READS.values() for path in listed} | {*stages.SETTINGS}
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_stages_run_every_test_but_those_of_separate_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    separate = re.search(r"^SEPARATE +:= (.*)$", makefile, re.MULTILINE)
    assert separate and separate[1].split(" or ") == list(SEPARATE)
    of_tests = [stage.removeprefix("test-") for stage in stages.READS if stage.startswith("test-")]
    assert sorted(of_tests) == sorted([*conftest.STAGES, "pages"])
    listed = re.search(r"^STAGES +:= (.*)$", makefile, re.MULTILINE)
    assert listed and sorted(listed[1].split()) == sorted(of_tests)
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "EXCEPT")}
    dry = ["make", "--no-print-directory", "-n", "test"]
    everything, rest = (
        subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        for words in ([*dry, "EXCEPT="], dry)
    )
    assert everything.rstrip().endswith(f'-m "not ({separate[1]})"')
    assert rest.rstrip().endswith(f'-m "not ({separate[1]} or {listed[1].replace(" ", " or ")})"')
    assert {"test", "notebooks", "wheel"} <= {*stages.READS}


READING = {
    "audit": "from fedbounds.bounds.audit.claim import Claim\n",
    "invariants": "from fedbounds.empirical.invariants import Case\n",
    "figures": "from fedbounds.figures.charts.overlay import overlay\n",
}


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize(
    "read", ["docs/errata", "examples", "notebooks", "docs/audit.md", "README.md", "benchmarks", "CHANGELOG.md"]
)
def test_a_module_that_reads_what_its_stage_does_not_is_left_to_make_test(name: str, read: str) -> None:
    text = READING[name]
    assert conftest.stage(text) == name and conftest.stage("import fedbounds\n") is None
    for line in (f'PAGE = ROOT / "{read}"\n', f"PAGE = '{read}'\n", f'PAGE = ROOT / "a/{read}"\n'):
        belongs = conftest.stage(text + line) == name
        assert belongs is stages.reads(f"test-{name}", read), line


def test_what_a_stage_of_tests_may_not_read_is_all_that_is_outside_source_and_tests() -> None:
    outside = {"docs", "examples", "notebooks", "benchmarks", "README", "CHANGELOG"}
    for name, unread in conftest.UNREAD.items():
        files = {each: f"{each}.md" if each.isupper() else f"{each}/x.md" for each in outside}
        assert {each for each in outside if not stages.reads(f"test-{name}", files[each])} == {*unread}
        assert all(stages.reads(f"test-{name}", file) for file in ("bounds/a.py", "figures/a.py", "tests/zoo/a.py"))


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\n",
        "from tests.command_line import declare, run_apart\n",
        "from fedbounds.empirical.sweep.workers import Worker\n",
    ],
)
def test_a_module_that_starts_processes_is_of_their_stage(text: str) -> None:
    assert conftest.stage(text) == "processes" and stages.READS["test-processes"] == ["."]


def test_a_change_of_a_page_leaves_out_what_reads_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCEPTED", raising=False)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/stages.py").write_text((ROOT / ".ci/stages.py").read_text(encoding="utf-8"), encoding="utf-8")
    for path in ("docs/sweeps.md", "bounds/papers/fedau/results.py", "bounds/papers/fedau/ledger.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1", encoding="utf-8")
    copied = load_stages(tmp_path)

    def commit() -> str:
        user = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
        subprocess.run(["git", *user, "commit", "-qm", "a change"], cwd=tmp_path, check=True)
        return copied.git("rev-parse", "HEAD")

    def due() -> set[str]:
        accepted = copied.accepted_commit()
        changed = copied.changed_files(accepted) if accepted else []
        return {stage for stage in copied.READS if copied.due(stage, accepted, changed)[0]}

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    first = commit()
    assert due() == {*copied.READS}  # the last accepted commit is not known
    monkeypatch.setenv("ACCEPTED", first)
    assert due() == {*copied.READS}  # HEAD itself is no earlier commit
    (tmp_path / "docs/sweeps.md").write_text("2", encoding="utf-8")
    commit()
    pages = {"test", "test-processes", "test-invariants", "test-figures", "test-pages", "lint", "docs"}
    assert due() == pages
    (tmp_path / "bounds/papers/fedau/proof.py").write_text("3", encoding="utf-8")  # not even committed
    assert due() == {*copied.READS}  # fedau is the only paper of this checkout
    monkeypatch.setenv("ACCEPTED", "no-such-commit")
    assert due() == {*copied.READS}


def imported_files(start: list[Path]) -> set[str]:
    """Return the files of the layers that some modules import, directly or not, on any level."""
    found: set[Path] = set()
    waiting = [*start]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name.startswith(("fedbounds.bounds.", "fedbounds.empirical.")):
                    place = ROOT.joinpath(*name.split(".")[1:])
                    waiting += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return {path.relative_to(ROOT).as_posix() for path in found}


@pytest.mark.parametrize("paper", stages.PAPERS)
def test_an_audit_lists_every_module_that_its_claims_and_instances_import(paper: str) -> None:
    start = [*ROOT.glob(f"bounds/papers/{paper}/**/*.py"), *ROOT.glob(f"empirical/papers/{paper}/instances/**/*.py")]
    stage = f"audit-{paper.replace('_', '-')}"
    assert not [file for file in imported_files(start) if not stages.reads(stage, file)]


def test_an_audit_lists_every_module_that_its_command_loads() -> None:
    script = """
import sys
from fedbounds.command_line import main

main(["audit", "tdcd/lemma-1", "--no-cache", "--json"])
print(*(module.__file__ for module in [*sys.modules.values()] if hasattr(module, "__file__")), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    files = {Path(line).resolve() for line in done.stdout.splitlines() if line.endswith(".py")}
    layers = {ROOT / "bounds", ROOT / "empirical", ROOT / "figures", ROOT / "fedbounds"}
    loaded = {file.relative_to(ROOT).as_posix() for file in files if layers & {*file.parents}}
    assert "bounds/audit/rules.py" in loaded
    assert not [file for file in loaded if not stages.reads("audit-tdcd", file)]
