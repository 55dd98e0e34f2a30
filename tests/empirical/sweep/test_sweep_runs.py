"""From tasks to runs: every table is tried out before anything runs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import plan, resolve

BASE = """
rounds = 2
problem = { kind = "toy" }
participation = { kind = "full", clients = 3 }
[algorithms.plain]
kind = "fedavg"
local_step_size = 0.1
local_steps = 2
"""
GAME = """
rounds = 2
problem = { kind = "minimax-quadratic", clients = 3, descent_dimension = 2, ascent_dimension = 1 }
participation = { kind = "full", clients = 3 }
[algorithms.plain]
kind = "local-sgda"
step_size = 0.1
ascent_step_size = 0.1
local_steps = 2
"""
PHASES = '[[algorithms.two.phases]]\nalgorithm = { kind = "fedavg", local_step_size = 0.1, local_stps = 1 }'


@pytest.fixture(autouse=True)
def same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of the sources has tests of its own."""
    monkeypatch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "sources")


MISTAKES = {
    "a kind of problem": (BASE.replace('"toy"', '"toi"'), r"^f.toml: \[problem\]: unknown .*'toi'; did you mean toy\?"),
    "a key of a problem": (
        BASE.replace('"toy"', '"toy", nois = 1'),
        r"\[problem\]: unknown .*'nois'; did you mean noise",
    ),
    "a kind of participation": (
        BASE.replace('"full"', '"ful"'),
        r"\[participation\]: unknown .*'ful'; did you mean full",
    ),
    "a kind of algorithm": (BASE.replace("fedavg", "fedavrg"), r"\[algorithms.plain\]: unknown .* did you mean fedavg"),
    "a key of an algorithm": (
        BASE.replace("local_steps", "local_stps"),
        r"\[algorithms.plain\]: unknown .*'local_stps'; did you mean local_steps",
    ),
    "a key of a phase's algorithm": (BASE + PHASES, r"\[algorithms.two\], phase 0: .*'local_stps'; did you mean"),
    "a value on an axis": (
        BASE + '[vary]\n"algorithm.local_step_size" = [0.1, -0.1]',
        r"\[algorithms.plain\] with algorithm.local_step_size = -0.1 from \[vary\]: local_step_size = -0.1 ",
    ),
    "a key on an axis": (
        BASE + '[vary]\n"algorithms.plain.step" = [1]',
        r"with algorithm.step = 1 from \[vary\]: unknown",
    ),
    "an engine": ('engine = "batch"' + BASE, "engine: unknown engine 'batch'; did you mean batched"),
    "an engine for other algorithms": (
        'engine = "masked-batch"' + BASE,
        "engine: engine 'masked batch' is not for algorithms that minimize; use 'sequential', 'batched', 'compiled'",
    ),
    "a player that ascends": (
        BASE.replace('"toy"', '"minimax-quadratic", clients = 3, descent_dimension = 2, ascent_dimension = 1'),
        r"\[algorithms.plain\]: fedavg would descend in both blocks of a minimax problem",
    ),
    "no player that ascends": (
        BASE.replace('"fedavg"', '"local-sgda"').replace("local_step_size", "ascent_step_size = 0.1\nstep_size"),
        r"\[algorithms.plain\]: local-sgda is for minimax problems",
    ),
    "a snapshot period that does not divide the rounds": (
        GAME + "snapshot_period = 3",
        r"\[algorithms.plain\]: snapshot_period = 3 must divide rounds = 2",
    ),
    "a snapshot period that does not divide a phase's rounds": (
        GAME.replace(
            "[algorithms.plain]", "[[algorithms.plain.phases]]\nrounds = 1\n[algorithms.plain.phases.algorithm]"
        )
        + "snapshot_period = 2\n"
        + '[[algorithms.plain.phases]]\nalgorithm = { kind = "synchronous-sgda", step_size = 1, ascent_step_size = 1 }',
        r"\[algorithms.plain\], phase 0: snapshot_period = 2 must divide rounds = 1",
    ),
    "epochs without samples": (
        GAME.replace("local_steps = 2", "local_epochs = 2"),
        r"\[algorithms.plain\]: local_epochs need clients who hold samples",
    ),
    "local steps of other clients": (
        GAME.replace("local_steps = 2", "local_steps = [2, 3]"),
        r"\[algorithms.plain\]: local_steps are of 2 clients, the problem has 3",
    ),
    "an amount of work": (
        GAME.replace("local_steps = 2", "local_steps = { low = 2, hihg = 3 }"),
        r"\[algorithms.plain\]: unknown key of local_steps 'hihg'; did you mean high",
    ),
    "a stream": ("streams = { noize = 1 }" + BASE, r"\[streams\]: unknown stream 'noize'; did you mean noise"),
    "two numbers of clients": (
        BASE.replace("clients = 3", "clients = 4"),
        r"\[participation\] has 4 clients, \[problem\] has 3",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_table_is_found_before_anything_runs(mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(FedboundsError, match=expected) as error:
        plan(resolve(tomllib.loads(text), source="f.toml"))
    assert "\n" not in str(error.value)


DEFAULTS = {
    "problem": ('"quadratic", clients = 3, dimension = 2', "condition = 10, shared = true, noise = 0.0"),
    "images": ('"images", clients = 10, network = "mlp"', 'dataset = "digits", similarity = 0.05, batch = 16'),
    "participation": ('"permutation", clients = 3, participants = 1', "reshuffle = true"),
    "algorithm": (
        '"generalized-fedavg", local_step_size = 0.1, local_steps = 2',
        "server_multiplier = 1, interval = 1",
    ),
    "game": (
        '"minimax-quadratic", clients = 3, descent_dimension = 2, ascent_dimension = 1',
        "condition = 4, heterogeneity = 1.0",
    ),
}


def with_component(component: str, table: str) -> str:
    clients = 10 if component == "images" else 3
    steps = "step_size = 0.1, ascent_step_size = 0.1, local_steps = { low = 1, high = 2 }"
    tables = {
        "problem": f'"quadratic", clients = {clients}, dimension = 2',
        "participation": f'"full", clients = {clients}',
        "algorithm": f'"local-sgda", {steps}'
        if component == "game"
        else '"fedavg", local_step_size = 0.1, local_steps = 2',
    } | {"problem" if component in ("images", "game") else component: table}
    return "rounds = 2\n" + "\n".join(f"{name} = {{ kind = {kind} }}" for name, kind in tables.items())


@pytest.mark.parametrize("component", DEFAULTS)
def test_a_default_written_out_and_a_default_left_out_are_the_same_run(component: str) -> None:
    short, defaults = DEFAULTS[component]
    (left_out,) = plan(resolve(tomllib.loads(with_component(component, short))))
    (written,) = plan(resolve(tomllib.loads(with_component(component, f"{short}, {defaults}"))))
    assert left_out.key == written.key
    name = "problem" if component in ("images", "game") else component
    assert tomllib.loads(f"x = {{ {defaults} }}")["x"].items() <= left_out.task[name].items()


def test_a_changed_default_makes_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def key() -> str:
        return plan(resolve(tomllib.loads(BASE)))[0].key

    before = key()
    assert key() == before
    monkeypatch.setattr("fedbounds.empirical.problems.quadratics.toy_example.__defaults__", (0.5,))
    assert key() != before


def record_of_participation(path: Path, rows: str) -> str:
    path.write_text(rows)
    table = f'participation = {{ kind = "recorded", file = "{path}", normalize = true }}'
    return BASE.replace('participation = { kind = "full", clients = 3 }', table)


def test_a_recorded_participation_stands_in_the_key_by_its_content(tmp_path: Path) -> None:
    def key(name: str, rows: str) -> str:
        (run,) = plan(resolve(tomllib.loads(record_of_participation(tmp_path / name, rows))))
        assert run.task["participation"]["file"] == str(tmp_path / name)
        return run.key

    first = key("a.csv", "1,0,0\n0,1,1\n")
    assert key("moved.csv", "1,0,0\n0,1,1\n") == first
    assert key("a.csv", "1,0,0\n0,1,0\n") != first


def test_image_data_stand_in_the_key_by_their_content() -> None:
    text = BASE.replace("clients = 3", "clients = 10")
    text = text.replace('{ kind = "toy" }', '{ kind = "images", clients = 10, network = "mlp", data = "DIR" }')
    here, there = (plan(resolve(tomllib.loads(text.replace("DIR", place))))[0] for place in ("one", "two"))
    other = plan(resolve(tomllib.loads(text.replace("clients = 10", "clients = 11"))))[0]
    assert here.key == there.key != other.key


@pytest.mark.parametrize(
    "mistake", ["a kind of participation", "a key of an algorithm", "a key of a phase's algorithm"]
)
def test_tables_without_data_are_checked_before_data_are_loaded(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: object) -> None:
        raise AssertionError("data are loaded")

    text, said = MISTAKES[mistake]
    monkeypatch.setattr("fedbounds.empirical.problems.spec.sketch", load)
    with pytest.raises(FedboundsError, match=said):
        plan(resolve(tomllib.loads(text), "f.toml"))
    with pytest.raises(AssertionError, match="data are loaded"):
        plan(resolve(tomllib.loads(BASE), "f.toml"))
