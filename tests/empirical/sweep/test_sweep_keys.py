"""Keys: they change with everything that matters, and with nothing else."""

from __future__ import annotations

import ast
import copy
import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.sweep import plan, resolve
from fedbounds.empirical.sweep.keys import algorithm_modules, canonical_json, run_key, source_digest, source_files

ROOT = Path(__file__).resolve().parents[3]

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
KEYS = st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)


def same(a: object, b: object) -> bool:
    """Equal, where a truth value is not a number and a tuple is a list."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


@given(VALUES, VALUES)
@example([1.0, -0.0, 1e300], [1, 0, int(1e300)])
@example(True, 1)
@example([1, 2], [12])
@example({"a": 1}, [["a", 1]])
@example("Infinity", float("inf"))
def test_canonical_texts_are_equal_exactly_when_the_values_are(a: object, b: object) -> None:
    assert (canonical_json(a) == canonical_json(b)) == same(a, b)


@given(VALUES)
def test_a_canonical_text_is_plain_and_reads_back_as_the_value(value: object) -> None:
    text = canonical_json(value)
    assert text.isascii() and same(json.loads(text), value)
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(KEYS, SCALARS).flatmap(lambda table: st.tuples(st.just(table), st.permutations(list(table)))))
def test_the_order_of_a_table_does_not_matter(table_and_order: tuple[dict, list]) -> None:
    table, order = table_and_order
    assert canonical_json({key: table[key] for key in order}) == canonical_json(table)


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, {"a": [object()]}, b"bytes"])
def test_what_has_no_canonical_text_is_refused(value: object) -> None:
    with pytest.raises(FedboundsError):
        canonical_json(value)


TASK = {
    "rounds": 10,
    "seeds": [0, 1],
    "record_every": 1,
    "engine": "auto",
    "problem": {"kind": "images", "data": "/somewhere", "clients": 3},
    "phases": [{"rounds": 4, "algorithm": {"kind": "fedavg", "local_step_size": 0.1}}],
    "labels": {"algorithm": "a"},
}


def leaves(value: object, path: tuple = ()) -> list[tuple]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [leaf for key, inner in enumerate(value) for leaf in leaves(inner, (*path, key))]
    return [path]


def changed(task: dict, path: tuple) -> dict:
    task = copy.deepcopy(task)
    node = task
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = f"not {node[path[-1]]}"
    return task


@pytest.mark.parametrize("path", leaves(TASK), ids=lambda path: ".".join(map(str, path)))
def test_every_value_of_a_task_is_in_its_key_but_labels_and_places_of_files(path: tuple) -> None:
    data = {"problem.data": "checksum"}
    same_key = run_key(changed(TASK, path), "sources", data) == run_key(TASK, "sources", data)
    assert same_key == (path in [("labels", "algorithm"), ("problem", "data")])


def test_sources_and_data_are_in_the_key() -> None:
    keys = {
        run_key(TASK, "sources", {}),
        run_key(TASK, "other sources", {}),
        run_key(TASK, "sources", {"problem.data": "one"}),
        run_key(TASK, "sources", {"problem.data": "other"}),
    }
    assert len(keys) == 4


@pytest.fixture
def same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "sources")


TEXT = """
rounds = 20
seeds = [0, 1]
problem = { kind = "toy", noise = 0.5 }
[participation]
kind = "full"
clients = 3
[algorithms.a]
kind = "fedavg"
local_step_size = 0.1
local_steps = 2
[algorithms.b]
kind = "generalized-fedavg"
local_step_size = 0.1
local_steps = 2
interval = 5
"""
SAME_RUNS = """
# the same runs, written by someone else
name = "another-name"
record_every = 1          # a default, written out
seeds = 2
rounds = 2e1
[algorithms.second]
interval = 5
server_multiplier = 1.0
local_steps = 2
local_step_size = 1e-1
kind = "generalized-fedavg"
[participation]
clients = 3
kind = "full"
[algorithms.first]
kind = "fedavg"
local_step_size = 0.10
local_steps = 2
[problem]
noise = 5e-1
kind = "toy"
"""


def keys_of(text: str) -> list[str]:
    return [run.key for run in plan(resolve(tomllib.loads(text)))]


@pytest.mark.usefixtures("same_sources")
def test_the_layout_of_a_file_its_names_and_comments_and_written_defaults_do_not_matter() -> None:
    assert keys_of(SAME_RUNS) == keys_of(TEXT)[::-1]


@pytest.mark.usefixtures("same_sources")
def test_the_machine_and_the_day_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys_of(TEXT)
    monkeypatch.setattr("platform.node", lambda: "another-host")
    monkeypatch.setattr("time.time", lambda: 0.0)
    monkeypatch.setenv("USER", "somebody-else")
    assert keys_of(TEXT) == before


@pytest.mark.usefixtures("same_sources")
def test_a_change_of_the_sources_makes_every_run_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys_of(TEXT)
    monkeypatch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "edited")
    assert not set(before) & set(keys_of(TEXT))


@pytest.mark.usefixtures("same_sources")
def test_blocks_of_seeds_are_runs_of_their_own() -> None:
    blocks = keys_of("seeds_per_run = 1" + TEXT)
    assert len(set(blocks)) == 4 and not set(blocks) & set(keys_of(TEXT))
    assert set(blocks) < set(keys_of("seeds_per_run = 1" + TEXT.replace("[0, 1]", "3")))  # more seeds: only new runs


# ------------------------------------------------------------------------------------------------ digest of the sources

PACKAGE = {
    "lab/__init__.py": "",
    "lab/entry/__init__.py": "from lab.entry.machinery import x",
    "lab/entry/machinery.py": "x = 1",
    "lab/entry/task.py": "import lab.engine\nfrom lab import problems\n\ndef run():\n    from lab.late import y",
    "lab/engine.py": "import numpy\nfrom lab.parts.wheel import spoke",
    "lab/parts/__init__.py": "",
    "lab/parts/wheel.py": "spoke = 1",
    "lab/parts/brake.py": "unused = 1",
    "lab/problems/__init__.py": "TABLE = {'toy': 'lab.problems.toy:make'}\nfrom . import near",
    "lab/problems/toy.py": "def make(): ...",
    "lab/problems/near.py": "near = 1",
    "lab/problems/far.py": "far = 1",
    "lab/late.py": "y = 1",
    "other/late.py": "z = 1",
}
IMPORTED = {
    "lab",
    "lab.entry.task",
    "lab.engine",
    "lab.parts",
    "lab.parts.wheel",
    "lab.problems",
    "lab.problems.toy",
    "lab.problems.near",
    "lab.late",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_sources_of_a_run_are_what_it_imports_early_late_or_by_name(package: Path) -> None:
    assert set(source_files((), "lab.entry.task", package)) == IMPORTED


@pytest.mark.parametrize("name", PACKAGE)
def test_the_digest_changes_with_a_source_exactly_if_the_run_imports_it(name: str, package: Path) -> None:
    before = source_digest((), "lab.entry.task", package)
    with (package / name).open("a") as file:
        file.write("\n# a comment\n")
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert (source_digest((), "lab.entry.task", package) != before) == (module in IMPORTED)


def test_sources_are_parsed_once_and_anew_when_they_change(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, parse = [], ast.parse

    def counted(content: bytes, filename: str) -> ast.Module:
        parsed.append(Path(filename).name)
        return parse(content, filename=filename)

    monkeypatch.setattr("fedbounds.empirical.sweep.keys.ast.parse", counted)
    first = source_digest((), "lab.entry.task", package)
    assert len(parsed) == len(IMPORTED) and source_digest((), "lab.entry.task", package) == first
    assert len(parsed) == len(IMPORTED)
    path = package / "lab/engine.py"
    before = path.stat()
    path.write_text(PACKAGE["lab/engine.py"].replace("wheel", "brake").replace("spoke", "thing"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same length and age, and yet another
    again = set(source_files((), "lab.entry.task", package))
    assert again - IMPORTED == {"lab.parts.brake"} and parsed[len(IMPORTED) :] == ["engine.py", "brake.py"]


ROOMS = {
    "lab/rooms/__init__.py": "",
    "lab/rooms/ours/__init__.py": "from lab.parts.wheel import spoke",
    "lab/rooms/ours/algorithms.py": "from lab.rooms.ours.weights import w",
    "lab/rooms/ours/weights.py": "w = 1",
    "lab/rooms/theirs/__init__.py": "",
    "lab/rooms/theirs/algorithms.py": "other = 1",
}
OWN = {name for name in ROOMS if "theirs" not in name}


@pytest.mark.parametrize("name", ROOMS)
def test_a_run_is_made_anew_exactly_if_the_paper_of_its_own_algorithm_changes(name: str, package: Path) -> None:
    for each, text in ROOMS.items():
        (package / each).parent.mkdir(parents=True, exist_ok=True)
        (package / each).write_text(text)
    also = ("lab.rooms.ours.algorithms",)
    before = source_digest(also, "lab.entry.task", package)
    (package / name).write_text(ROOMS[name] + "\n# a comment\n")
    assert (source_digest(also, "lab.entry.task", package) != before) == (name in OWN)


def test_the_sources_of_an_algorithm_of_an_outside_packages_package_are_that_package(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "elsewhere" / "stranger_of_the_lab"
    home.mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "algorithms": "import lab.late\nfrom .weights import w",
        "weights": "w = 1",
    }.items():
        (home / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(home.parent)
    importlib.import_module(home.name)
    also = (f"{home.name}.algorithms",)
    found = source_files(also, "lab.entry.task", package)
    assert set(found) == IMPORTED | {home.name, *also, f"{home.name}.weights"}
    before = source_digest(also, "lab.entry.task", package)
    (home / "weights.py").write_text("w = 2")
    assert source_digest(also, "lab.entry.task", package) != before


def test_a_kernel_knows_no_paper_and_a_task_adds_those_of_its_algorithms() -> None:
    assert not [name for name in source_files() if name.startswith("fedbounds.empirical.papers")]
    phases = [{"rounds": 1, "algorithm": {"kind": kind}} for kind in ("fedavg", "local-sgda")]
    digested = set(source_files(algorithm_modules({"phases": phases})))
    rooms = {name.split(".")[3] for name in digested if name.startswith("fedbounds.empirical.papers.")}
    assert rooms == {"arbitrary_participation", "fed_norm_sgda"}
    assert "fedbounds.empirical.papers.fed_norm_sgda.algorithms" in digested  # which the baselines are made of


FEDAU = TEXT.replace('kind = "generalized-fedavg"', 'kind = "fedau"\ncutoff = 3').replace("interval = 5\n", "")


@pytest.mark.parametrize(
    "text", [pytest.param(TEXT, marks=pytest.mark.long, id="fedavg"), pytest.param(FEDAU, id="fedau")]
)
def test_what_a_run_really_loads_and_calls_is_in_the_digest(text: str) -> None:
    """The paper packages of others are read for the names of their algorithms, and nothing in them is called."""
    code = f"""
import json, sys, tomllib
from pathlib import Path
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.sweep import resolve
from fedbounds.empirical.sweep.task import run_task
algorithms()
called = set()
sys.setprofile(lambda frame, event, argument: called.add(frame.f_globals.get("__name__", "")))
for task in resolve(tomllib.loads({text!r})).tasks[-1:]:
    run_task(task)
sys.setprofile(None)
print(json.dumps([[name for name in sys.modules], [*called]]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded, called = (
        {n for n in names if n.startswith("fedbounds.empirical.") and not n.startswith("fedbounds.empirical.sweep")}
        for names in json.loads(done.stdout)
    )
    task = resolve(tomllib.loads(text)).tasks[-1]
    digested = set(source_files(algorithm_modules(task)))
    rooms = {name for name in loaded if name.startswith("fedbounds.empirical.papers")}
    assert "fedbounds.empirical.simulation.simulate" in called and called <= digested
    every = [{"rounds": 1, "algorithm": {"kind": kind}} for kind in algorithms()]
    for_others = set(source_files(algorithm_modules({"phases": every})))  # kernels that other papers import
    assert loaded - rooms <= digested | for_others and algorithm_modules(task) <= rooms
    assert "fedbounds.empirical.sweep.task" in digested
    assert not digested & {
        "fedbounds.empirical.sweep.executor",
        "fedbounds.cli.sweeps",
        "fedbounds.empirical.comparison.compare_run",
    }
