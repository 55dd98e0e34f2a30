"""fedbounds run and fedbounds results, as typed: what they print, write and return."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import fedbounds
from fedbounds.empirical.sweep import Store, plan, read_sweep

SPEC = """
name = "toy"
rounds = 6
seeds = 2
record_every = 2

[problem]
kind = "toy"
noise = 0.1

[participation]
kind = "cyclic"
clients = 3

[algorithms.fedavg]
kind = "fedavg"
local_step_size = 0.1
local_steps = 1

[algorithms.amplified]
kind = "generalized-fedavg"
local_step_size = 0.05
local_steps = 1
server_multiplier = 2
interval = 3
"""
# A closed form exists for quadratics only, so the run of the cosine problem raises.
SILOS = """
name = "silos"
rounds = 2
seeds = 1

[problem]
kind = "vertical-least-squares"
silos = 2
clients = 3
samples = 4
dimension = 4
batch = 6

[participation]
kind = "full"
clients = 6

[algorithm]
kind = "tdcd"
local_step_size = 0.1
local_steps = 2
empty = "drop"
"""
ONE_FAILS = """
name = "one-fails"
rounds = 3
engine = "closed form"
participation = { kind = "full", clients = 3 }
algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 2 }
[problems.quadratic]
kind = "quadratic"
clients = 3
dimension = 2
[problems.cosine]
kind = "cosine-quadratic"
clients = 3
dimension = 2
"""


@pytest.fixture(autouse=True)
def same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "sources")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(SPEC)
    (tmp_path / "one-fails.toml").write_text(ONE_FAILS)
    return Path("toy.toml")


def typed(*words: str) -> int:
    return fedbounds.main(list(words))


def test_a_sweep_runs_once_and_its_results_are_a_table(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("run", str(spec)) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "toy: 2 runs: 2 made, 0 already there; results in results/toy",
        "a client's message in a round: fedavg 24 bytes, amplified 24 bytes",
    ]
    assert err == ""
    assert typed("run", str(spec)) == 0
    assert "0 made, 2 already there" in capsys.readouterr().out

    assert typed("results", str(spec), "--csv", "table.csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "algorithm", "seeds", "status", "gradient_norm_squared", "(best)", "objective_gap", "(best)"
    ]  # fmt: skip
    assert [line.split()[:3] for line in lines[1:3]] == [["fedavg", "2", "done"], ["amplified", "2", "done"]]

    rows = list(csv.DictReader(Path("table.csv").read_text().splitlines()))
    assert [row["algorithm"] for row in rows] == ["fedavg", "amplified"]
    for row, run in zip(rows, plan(read_sweep(spec)), strict=True):
        gap = Store(Path("results/toy")).load(run.key).objective_gap
        assert row["key"] == run.key and row["seeds"] == "[0, 1]"
        assert float(row["objective_gap final"]) == gap[:, -1].mean()
        assert float(row["objective_gap best"]) == gap.mean(0).min()
        assert float(row["objective_gap deviation"]) == pytest.approx(abs(gap[0, -1] - gap[1, -1]) / math.sqrt(2))


def test_a_run_with_silos_says_what_goes_over_which_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 4 parameters for each of 3 clients in either silo, 6 samples of one number each, for two silos."""
    spec = tmp_path / "silos.toml"
    spec.write_text(SILOS)
    assert typed("run", str(spec), "--out", str(tmp_path / "out")) == 0
    sent = [line for line in capsys.readouterr().out.splitlines() if line.startswith("a round of tdcd sends, ")]
    models, embeddings, head = 2 * 3 * 4, 2 * 6, 16
    assert sent == [
        f"a round of tdcd sends, {link}: {models * both + embeddings} floats, {size} bytes" for link, both, size in (
            ("hub to client", 1, 12 * head + 4 * (models + embeddings) + 4 * 6 * 6),
            ("client to hub", 1, 12 * head + 4 * (models + embeddings) + 4 * 2 * 6),
            ("hub to hub", 0, 2 * head + 4 * embeddings),
        )
    ]  # fmt: skip
    assert typed("run", str(spec), "--out", str(tmp_path / "out"), "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["message_bytes"] is None and run["links"]["hub to hub"] == {"floats": embeddings, "bytes": 80}


def test_documents_are_json_with_schema_and_version(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("run", str(spec), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "fedbounds.run/1" and document["version"] == fedbounds.__version__
    assert document["counts"] == {"runs": 2, "made": 2, "found": 0, "done": 2, "diverged": 0, "failed": 0}
    assert [run["labels"] for run in document["runs"]] == [{"algorithm": "fedavg"}, {"algorithm": "amplified"}]
    assert document["runs"][0]["before"] == "missing" and document["runs"][0]["made"] is True

    assert typed("results", str(spec), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "fedbounds.results/1"
    row = document["runs"][0]
    trace = Store(Path(document["directory"])).load(row["key"])
    assert row["status"] == "done" and row["seeds"] == [0, 1]
    assert row["metrics"]["gradient_norm_squared"]["final"] == trace.gradient_norm_squared[:, -1].mean()


def test_a_dry_run_lists_the_runs_and_writes_nothing(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path.cwd().rglob("*"))
    assert typed("run", str(spec), "--dry-run", "--probe", "0") == 0
    out = capsys.readouterr().out.splitlines()
    assert "missing   algorithm=fedavg seeds=0,1" in out[0] and out[2] == "toy: 2 runs (2 missing) in results/toy"
    assert out[3].startswith("time for what is missing: at least 1.4e-05 seconds (at a microsecond per local step;")
    assert out[4].startswith("memory: about ") and out[4].endswith(" MiB a process (counted, without activations)")
    assert typed("run", str(spec), "--dry-run", "--json", "--probe", "0") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["dry_run"] is True and {run["status"] for run in document["runs"]} == {"missing"}
    assert document["estimate"]["measured"] == 0 and document["estimate"]["total"] == pytest.approx(1.4e-5)
    assert typed("run", str(spec), "--dry-run", "--probe", "60") == 0
    out = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"time for what is missing: about \S+ seconds "
        r"\(from a few rounds of 2 settings here; finished runs give better estimates\)",
        out[3],
    )
    assert out[4].endswith(" MiB a process (the most that a process of a few rounds took)")
    assert typed("run", str(spec), "--probe", "5") == 2 and "--dry-run" in capsys.readouterr().err
    assert sorted(Path.cwd().rglob("*")) == before


def test_shards_are_made_apart_and_say_that_others_remain(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("run", str(spec), "--shard", "2/2", "--dry-run", "--json", "--probe", "0") == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["shard"] == {"index": 2, "of": 2, "runs": 1, "others": 1}
    assert typed("run", str(spec), "--shard", "2/2") == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "toy, shard 2/2: 1 run: 1 made, 0 already there; results in results/toy"
    assert second == "1 other run in other shards; the table of all: fedbounds results toy.toml"
    assert typed("run", str(spec), "--shard", "2/2", "--out", "there") == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(": fedbounds results toy.toml --out there")
    assert typed("run", str(spec), "--shard", "1/2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["counts"]["made"] == 1
    assert typed("run", str(spec), "--shard", "3/3") == 0  # more shards than runs
    assert capsys.readouterr().out.startswith("toy, shard 3/3: 0 runs: 0 made")
    assert typed("run", str(spec)) == 0
    assert "0 made, 2 already there" in capsys.readouterr().out
    assert (
        typed("run", str(spec), "--shard", "2/2", "--dry-run", "--json", "--probe", "0") == 0
    )  # what is done changes no shard
    (now,), (before,) = json.loads(capsys.readouterr().out)["runs"], planned["runs"]
    assert now["key"] == before["key"] and (now["status"], before["status"]) == ("done", "missing")


def test_runs_of_several_origins_say_so(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed("run", str(spec))
    capsys.readouterr()
    assert typed("results", str(spec)) == 0 and "origin" not in capsys.readouterr().out
    store, run = Store(Path("results/toy")), plan(read_sweep(spec))[0]
    record = dict(store.read_status(run.key).record)
    record["provenance"] = {**record["provenance"], "host": "node7", "git": {"commit": "a" * 40, "modified": True}}
    record["provenance"]["packages"] = {**record["provenance"]["packages"], "torch": "2.0.0"}
    store.save(run.key, store.load(run.key), record)
    assert typed("results", str(spec)) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if "origin" in line]
    assert told.startswith("these runs have more than one origin: host ") and "node7 (1)" in told
    assert "2.0.0 (1)" in told and "aaaaaaaaaaaa with changes (1)" in told and "numpy" not in told
    assert typed("results", str(spec), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["provenance"]["host"]["node7"] == 1 and sum(document["provenance"]["torch"].values()) == 2
    assert {"host", "torch", "git"} <= {*document["mixed"]} and document["provenance"]["device"] == {"cpu": 2}


def test_a_failed_run_ends_with_status_one_and_a_line_that_names_it(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("run", "one-fails.toml") == 1
    out, err = capsys.readouterr()
    assert "2 runs: 2 made, 0 already there, 1 failed" in out
    assert err.startswith("1 of 2 runs failed: problem=cosine seeds=0: ") and err.count("\n") == 1
    assert typed("run", "one-fails.toml") == 1
    out, err = capsys.readouterr()
    assert "0 made, 2 already there, 1 failed" in out and "(--retry-failed runs them again)" in err
    assert typed("run", "one-fails.toml", "--retry-failed") == 1
    assert "1 made, 1 already there, 1 failed" in capsys.readouterr().out
    assert typed("results", "one-fails.toml", "--json") == 0
    quadratic, cosine = json.loads(capsys.readouterr().out)["runs"]
    assert quadratic["status"] == "done" and cosine["status"].startswith("error: ") and not cosine["metrics"]


def test_a_damaged_file_is_reported_and_made_again(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed("run", str(spec), "--out", "here")
    path = sorted(Path("here").glob("*.npz"))[0]
    path.write_bytes(b"half")
    capsys.readouterr()
    assert typed("run", str(spec), "--out", "here") == 0
    out, err = capsys.readouterr()
    assert "1 made, 1 already there" in out
    assert err == f"{path} was damaged: its trace does not have the checksum of its record; made again\n"


def test_divergence_is_a_result_and_numbers_that_are_not_finite_are_words(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(SPEC.replace("local_step_size = 0.1", "local_step_size = 1e200"))
    assert typed("run", str(spec)) == 0
    assert "1 diverged" in capsys.readouterr().out
    assert typed("results", str(spec), "--json") == 0
    row = json.loads(capsys.readouterr().out)["runs"][0]
    assert row["status"] == "diverged" and row["metrics"]["objective_gap"]["final"] == "nan"
    assert np.isfinite(row["metrics"]["objective_gap"]["best"])


def test_results_may_be_asked_for_while_some_are_missing(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed("run", str(spec))
    spec.write_text(SPEC + '[vary]\n"algorithms.fedavg.local_step_size" = [0.1, 0.2]\n')
    capsys.readouterr()
    assert typed("results", str(spec)) == 0
    out = capsys.readouterr().out
    assert [line.split()[3] for line in out.splitlines()[1:3]] == ["done", "missing"]


BAD = {
    "no file": (("run", "absent.toml"), "cannot read"),
    "a typo": (("run", "typo.toml"), "typo.toml: [algorithms.fedavg]: unknown"),
    "no shard": (("run", "toy.toml", "--shard", "0/8"), "'0/8' is no shard: i/n with i from 1 to n, as in 3/8"),
    "no number of shards": (("run", "toy.toml", "--shard", "3"), "'3' is no shard"),
    "a shard too many": (("run", "toy.toml", "--shard", "9/8"), "'9/8' is no shard"),
    "a cluster and workers": (("run", "toy.toml", "--cluster", "x:1", "--workers", "2"), "leave out --workers"),
    "a worker too few": (("run", "toy.toml", "--workers", "-1"), "--workers"),
    "a file as directory": (("run", "toy.toml", "--out", "toy.toml"), "toy.toml is not a directory"),
    "an unknown option": (("run", "toy.toml", "--worker", "2"), "--worker"),
    "nothing to tabulate": (
        ("results", "toy.toml"),
        "no results of toy.toml in results/toy; to make them: fedbounds run",
    ),
}


@pytest.mark.parametrize("mistake", BAD)
def test_bad_input_is_one_line_and_status_two_and_nothing_is_written(
    mistake: str, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("typo.toml").write_text(SPEC.replace("local_steps", "local_step", 1))
    words, expected = BAD[mistake]
    before = sorted(Path.cwd().rglob("*"))
    assert typed(*words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and expected in err and "Traceback" not in err
    assert sorted(Path.cwd().rglob("*")) == before


TOO_MANY = 2**50
TOO_LARGE = {
    f'problem = {{ kind = "quadratic", clients = {TOO_MANY}, dimension = 2 }}': "needs about 6.71e+07 GiB of memory",
    f'problem = {{ kind = "quadratic", clients = {TOO_MANY}, dimension = 2, diagonal = true }}': "6.71e+07 GiB",
    'problem = { kind = "quadratic", clients = 3, dimension = 1048576 }': "needs about 3.28e+04 GiB of memory",
    f'problem = {{ kind = "cosine-quadratic", clients = {TOO_MANY}, dimension = 2 }}': "needs about 6.71e+07 GiB",
    f'problem = {{ kind = "images", clients = {TOO_MANY} }}': "must be at most the number of samples, 1442",
    f'participation = {{ kind = "group-markov", clients = {TOO_MANY}, groups = 4, leave = 0.1 }}': "8.39e+06 GiB",
    f'participation = {{ kind = "cyclic", clients = {TOO_MANY} }}': "needs about 8.39e+06 GiB of memory",
}


@pytest.mark.parametrize("table", TOO_LARGE)
def test_what_no_memory_holds_is_one_line_that_says_how_much_it_would_take(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {
        "problem": 'problem = { kind = "toy" }',
        "participation": 'participation = { kind = "full", clients = 3 }',
    }
    tables |= {table.partition(" ")[0]: table}
    spec = tmp_path / "spec.toml"
    algorithm = 'algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 1 }'
    spec.write_text("\n".join(["rounds = 2", *tables.values(), algorithm]))
    assert typed("run", str(spec)) == 2
    told = capsys.readouterr().err
    assert TOO_LARGE[table] in told and told.count("\n") == 1
