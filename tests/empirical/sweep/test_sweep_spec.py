"""From a TOML file to tasks: what each line means, and what is refused."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fedbounds.empirical.sweep.spec as spec_module
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import plan, read_sweep, resolve

BASE = """
name = "small"
rounds = 10
[problem]
kind = "toy"
[participation]
kind = "full"
clients = 3
[algorithms.plain]
kind = "fedavg"
local_step_size = 0.1
local_steps = 2
[algorithms.amplified]
kind = "generalized-fedavg"
local_step_size = 0.1
local_steps = 2
interval = 5
"""


def tasks(extra: str = "", base: str = BASE) -> list[dict[str, Any]]:
    return list(resolve(tomllib.loads(base + extra)).tasks)


def documented() -> str:
    return str(spec_module.__doc__).split("```toml\n")[1].split("```")[0]


def test_a_resolved_task_says_everything_with_every_default_written_in() -> None:
    assert tasks()[0] == {
        "rounds": 10,
        "record_every": 1,
        "engine": "auto",
        "device": "auto",
        "record_models": False,
        "record_participation": False,
        "streams": {},
        "problem": {"kind": "toy"},
        "participation": {"kind": "full", "clients": 3},
        "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
        "labels": {"algorithm": "plain"},
        "seeds": [0],
    }


def test_the_documented_file_is_a_sweep_of_real_components() -> None:
    sweep = resolve(tomllib.loads(documented()))
    assert sweep.name == "periodic"
    # fedavg: 2 noises x 2 horizons; late: 2 noises x 2 multipliers x 2 horizons
    assert len(plan(sweep)) == 4 + 8
    late = sweep.tasks[-1]
    assert [phase["rounds"] for phase in late["phases"]] == [50, 350]
    assert late["phases"][1]["algorithm"]["server_multiplier"] == 2.0
    assert late["streams"] == {"participation": 7}


def test_axes_are_multiplied_and_labeled_by_their_place_in_the_task() -> None:
    made = tasks('[vary]\n"algorithm.local_step_size" = [0.1, 0.2]\nrounds = [5, 10, 20]')
    seen = [(t["labels"]["algorithm"], t["labels"]["algorithm.local_step_size"], t["rounds"]) for t in made]
    assert seen == [(a, g, T) for a in ("plain", "amplified") for g in (0.1, 0.2) for T in (5, 10, 20)]
    assert all(t["algorithm"]["local_step_size"] == t["labels"]["algorithm.local_step_size"] for t in made)


def test_an_axis_of_one_algorithm_multiplies_only_its_runs() -> None:
    made = tasks('[vary]\n"algorithms.amplified.interval" = [1, 2, 3]')
    assert [t["algorithm"].get("interval") for t in made] == [None, 1, 2, 3]
    assert [t["labels"].get("algorithm.interval") for t in made] == [None, 1, 2, 3]


def test_columns_that_vary_together_advance_together() -> None:
    extra = '[[vary.together]]\nrounds = [10, 40]\n"algorithms.plain.local_step_size" = [0.2, 0.1]'
    made = tasks(extra)
    assert [(t["rounds"], t["algorithm"]["local_step_size"]) for t in made] == [
        (10, 0.2),
        (40, 0.1),
        (10, 0.1),
        (40, 0.1),
    ]


def test_quoted_and_nested_axes_are_the_same() -> None:
    quoted = tasks('[vary]\n"algorithm.local_steps" = [1, 2]')
    assert quoted == tasks("[vary]\nalgorithm.local_steps = [1, 2]")


@pytest.mark.parametrize(
    ("line", "blocks"),
    [
        ("", [[0]]),
        ("seeds = 3", [[0, 1, 2]]),
        ("seeds = [4, 2]", [[4, 2]]),
        ("seeds = 5\nseeds_per_run = 2", [[0, 1], [2, 3], [4]]),
    ],
)
def test_seeds_are_a_number_or_a_list_and_are_dealt_into_runs(line: str, blocks: list[list[int]]) -> None:
    seen = [task["seeds"] for task in tasks(base=line + BASE) if task["labels"]["algorithm"] == "plain"]
    assert seen == blocks


def test_resolving_is_pure_and_its_tasks_share_nothing() -> None:
    document = tomllib.loads(BASE + '[vary]\n"algorithm.local_steps" = [1, 2]')
    before = copy.deepcopy(document)
    first = resolve(document)
    assert document == before and resolve(document) == first
    first.tasks[0]["problem"]["kind"] = "else"
    first.tasks[0]["seeds"].append(9)
    assert resolve(document).tasks[1] == first.tasks[1] and document == before


PHASES = '[algorithms.late]\nphases = [{ rounds = 4, algorithm = { kind = "fedavg" } }, '
MISTAKES = {
    "a key": ("record_evry = 2" + BASE, "unknown key 'record_evry'; did you mean record_every or"),
    "a table": (BASE + "[vry]", r"unknown key 'vry'; did you mean vary\?"),
    "a component's table": (BASE.replace("[problem]", "[problm]"), "unknown key 'problm'; did you mean problem or"),
    "no rounds": (BASE.replace("rounds = 10", ""), "rounds is missing"),
    "no rounds at all": (BASE.replace("rounds = 10", "rounds = 0"), "rounds = 0 must be an integer >= 1"),
    "part of a round": (BASE.replace("rounds = 10", "rounds = 10.5"), "rounds = 10.5 must be an integer >= 1"),
    "rounds as text": (BASE.replace("rounds = 10", 'rounds = "10"'), "rounds = '10' must be an integer >= 1"),
    "rounds without end": (BASE.replace("rounds = 10", "rounds = inf"), "rounds = inf must be an integer in "),
    "true as a number": (BASE.replace("rounds = 10", "rounds = true"), "rounds = True must be an integer >= 1"),
    "a varied number": (BASE + "[vary]\nrounds = [5, -1]", "rounds = -1 must be an integer >= 1"),
    "no seeds": ("seeds = []" + BASE, r"seeds = \[\] must be a number of seeds or a list"),
    "a seed twice": ("seeds = [1, 1]" + BASE, r"seeds = \[1, 1\] must be .* different integers >= 0"),
    "a negative seed": ("seeds = [-1]" + BASE, r"seeds\[0\] = -1 must be an integer >= 0"),
    "empty blocks": ("seeds_per_run = 0" + BASE, "seeds_per_run = 0 must be an integer >= 1"),
    "a name that leaves": (BASE.replace('"small"', '"../up"'), "name = '../up' must be letters, digits"),
    "a switch": ("record_models = 1" + BASE, "record_models = 1 must be true or false"),
    "an engine": ("engine = 3" + BASE, "engine = 3 must be a name"),
    "streams": ("streams = 7" + BASE, "streams = 7 must be a table"),
    "a date": (BASE + "[vary]\nrounds = [2020-01-01]", r"vary.rounds\[0\] = 2020-01-01 is not a number"),
    "not a number": (BASE.replace("0.1", "nan", 1), "algorithms.plain.local_step_size = nan is not a number"),
    "no problem": (BASE.replace('[problem]\nkind = "toy"\n', ""), r"\[problem\] is missing"),
    "problem and problems": (BASE + '[problems.a]\nkind = "toy"', r"give either \[problem\] or \[problems"),
    "a problem that is no table": ("problem = 3\n" + BASE.replace('[problem]\nkind = "toy"\n', ""), "must be a table"),
    "no kind": (BASE.replace('kind = "toy"', ""), r"\[problem\]: kind = None must be a text"),
    "a kind that is no text": (BASE.replace('kind = "full"', "kind = [1]"), r"\[participation\]: kind = \[1\] must be"),
    "an axis": (BASE + '[vary]\n"algoritm.interval" = [1]', r"unknown axis 'algoritm'; did you mean algorithm"),
    "an axis' scalar": (BASE + "[vary]\nround = [1]", "unknown axis 'round'; did you mean rounds"),
    "an axis' label": (BASE + '[vary]\n"algorithms.plane.interval" = [1]', "unknown label 'plane'; did you mean plain"),
    "an axis' table": (BASE + '[vary]\n"problem.nise.x" = [1]', "unknown table 'nise'; known: kind"),
    "an axis below a number": (BASE + '[vary]\n"algorithm.local_steps.x" = [1]', "does not lead into a table"),
    "an axis of tables": (BASE + "[vary]\nproblem = [1]", "'problem' must name one value"),
    "an axis of one number": (BASE + "[vary]\nrounds = 5", "'rounds' = 5 must be a non-empty list"),
    "an empty axis": (BASE + "[vary]\nrounds = []", r"'rounds' = \[\] must be a non-empty list"),
    "a table on an axis": (BASE + '[vary]\n"problem.x" = [{ a = 1 }]', "must be a non-empty list of values"),
    "uneven columns": (
        BASE + '[[vary.together]]\nrounds = [1, 2]\n"problem.noise" = [1]',
        "columns must be equally long, but 'rounds' has 2, 'problem.noise' has 1",
    ),
    "columns that are none": (BASE + "[vary]\ntogether = 3", r"\[\[vary.together\]\] must be an array of tables"),
    "an axis twice": (BASE + "[vary]\nrounds = [1]\n[[vary.together]]\nrounds = [2]", "'rounds' is varied twice"),
    "a number twice": (BASE + "[vary]\nrounds = [1, 2, 1.0]", "'rounds' = 1 stands twice"),
    "columns twice": (
        BASE + '[[vary.together]]\nrounds = [1, 2, 1]\n"problem.noise" = [0.0, 0.0, 0]',
        "'rounds' = 1, 'problem.noise' = 0 stands twice",
    ),
    "a value set twice": (
        BASE + '[vary]\n"algorithm.interval" = [1]\n"algorithms.plain.interval" = [2]',
        "'algorithms.plain.interval' and 'algorithm.interval' set the same value",
    ),
    "too many runs": (
        BASE + f"[vary]\nrounds = {list(range(1, 1001))}\n'problem.noise' = {list(range(101))}",
        "more than 100000 runs",
    ),
    "a key of a phase": (BASE + PHASES + "{ round = 1 }]", r"\[algorithms.late\], phase 1: unknown key 'round'"),
    "a key beside phases": (
        BASE + "[algorithms.late]\nphases = []\ninterval = 1",
        "with phases: unknown key 'interval'",
    ),
    "a phase without algorithm": (BASE + PHASES + "{ rounds = 6 }]", "phase 1: algorithm = None must be a table"),
    "phases that end early": (
        BASE + PHASES + '{ rounds = 5, algorithm = { kind = "fedavg" } }]',
        "the phases have 9 rounds in all, but rounds = 10",
    ),
    "a first phase without rounds": (
        BASE + PHASES.replace("rounds = 4, ", "") + '{ algorithm = { kind = "fedavg" } }]',
        "phase 0: rounds is missing; only the last",
    ),
    "no room for the last phase": (
        BASE + PHASES.replace("rounds = 4", "rounds = 10") + '{ algorithm = { kind = "fedavg" } }]',
        "phase 1: rounds = 0 must be an integer >= 1",
    ),
    "not TOML": (BASE + "rounds = = 3", r"not TOML: .*line \d+"),
    "nested beyond reason": (BASE + "[vary]\nrounds = " + "[" * 100_000, "more than 32 deep"),
    "too large": (BASE + "#" * (1 << 20), "at most 1048576 are read"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_names_the_file_the_place_and_what_would_be_right(
    mistake: str, tmp_path: Path
) -> None:
    text, expected = MISTAKES[mistake]
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(FedboundsError, match=expected) as error:
        read_sweep(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_one_line_too(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "absent.toml", tmp_path, tmp_path / "bytes.toml"):
        with pytest.raises(FedboundsError) as error:
            read_sweep(path)
        assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_the_name_of_a_sweep_is_by_default_that_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "figure-2.toml"
    path.write_text(BASE.replace('name = "small"', ""))
    assert read_sweep(path).name == "figure-2"
