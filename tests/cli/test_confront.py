"""fedbounds confront, as typed: what it runs, prints, draws and refuses."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import torch

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.compare_sweep import confront_sweep, join_traces, record_everything, settings_of
from fedbounds.empirical.sweep import Store, plan, read_sweep, resolve

THEOREMS = {
    "arbitrary": "arbitrary-participation/theorem-3.1",
    "fedau": "fedau/theorem-2",
    "minimax": "fed-norm-sgda/theorem-1",
}
IMAGES = 'network = "cnn-small-smooth"\nclients = 4\npartition = "dirichlet"\nalpha = 5.0\nbatch = 4\n'
HEAD = "rounds = 4\nseeds = 2\nseeds_per_run = 1\nrecord_every = 2\n"
SPECS = {
    "arbitrary": f"""
name = "arbitrary"
{HEAD}
problem = {{ kind = "quadratic", clients = 3, dimension = 2, noise = 0.1, initial_gap = 2.0 }}
participation = {{ kind = "cyclic", clients = 3 }}
[algorithm]
kind = "generalized-fedavg"
local_step_size = 1e-3
local_steps = 2
server_multiplier = 5.0
interval = 2
""",
    "fedau": f"""
name = "fedau"
{HEAD}
participation = {{ kind = "bernoulli", clients = 4, probability = 0.9, normalize = false }}
algorithm = {{ kind = "fedau", local_step_size = 1e-4, local_steps = 2, server_multiplier = 1.0, cutoff = 2 }}
[problem]
kind = "images"
{IMAGES}
""",
    "minimax": f"""
name = "minimax"
{HEAD}
participation = {{ kind = "full", clients = 4 }}
[problem]
kind = "fair-images"
regularization = 8.0
{IMAGES}
[algorithm]
kind = "fed-norm-sgda"
local_step_size = 1e-5
local_ascent_step_size = 1e-5
server_step_size = 1e-6
server_ascent_step_size = 1e-3
local_steps = [1, 2, 2, 3]
""",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the specs, in which runs are made once."""
    directory = tmp_path_factory.mktemp("confront")
    for name, text in SPECS.items():
        (directory / f"{name}.toml").write_text(text)
    return directory


@pytest.fixture(autouse=True)
def _there(place, monkeypatch):
    monkeypatch.chdir(place)


def confronted(name, *words):
    return fedbounds.main(["confront", f"{name}.toml", THEOREMS[name], "--out", f"{name}.png", *words])


@pytest.mark.parametrize("name", SPECS)
def test_the_runs_of_each_paper_are_held_against_its_theorem(name, place, capsys, monkeypatch):
    assert confronted(name) == 0
    printed = capsys.readouterr().out
    assert THEOREMS[name] in printed and "mean of 2 seeds" in printed and "measured/bound" in printed
    assert all((place / f"{name}{ending}").stat().st_size for ending in (".png", ".csv", ".json"))
    manifest = json.loads((place / f"{name}.json").read_text())["provenance"]
    assert [len(runs["keys"]) for runs in manifest["runs"].values()] == [2]

    # the second time nothing is run, and the document says the same as the library
    monkeypatch.setattr("fedbounds.empirical.sweep.task.run_together", lambda tasks: pytest.fail("ran again"))
    assert confronted(name, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "fedbounds.confront/1" and document["version"] == fedbounds.__version__
    (found,) = document["settings"]
    (setting,) = settings_of(read_sweep(f"{name}.toml"))
    trace = join_traces([Store(place / "results" / name).load(run.key) for run in setting.runs])
    expected = confront(trace, THEOREMS[name], problem=setting.problem(), participation=setting.process())
    for what in ("rounds", "measured", "bound", "ratio", "valid", "standard_error"):
        assert found[what] == pytest.approx(getattr(expected, what).tolist())
    assert found["guarantee"] == expected.guarantee and found["why_not"] == list(expected.why_not)
    assert {n: c["source"] for n, c in found["constants"].items()} == {
        n: c.source for n, c in expected.constants.items()
    }
    assert trace.seed.tolist() == found["seeds"] == [0, 1]
    if name == "arbitrary":
        assert found["guarantee"] and "no guarantee" not in printed
    else:
        assert found["constants"]["L" if name == "fedau" else "Lf"]["source"] == "estimated"
        assert "no guarantee: " in printed and "estimated (lower estimate" in printed


def test_several_settings_stand_in_panels_and_a_crossing_is_an_exit_of_1(place, capsys, monkeypatch):
    # every round is recorded: a part of them accuses no theorem
    text = SPECS["arbitrary"].replace("record_every = 2", "record_every = 1")
    text += '[vary]\n"algorithm.server_multiplier" = [1.0, 5.0]\n'
    (place / "two.toml").write_text(text.replace('name = "arbitrary"', 'name = "two"'))
    assert fedbounds.main(["confront", "two.toml", THEOREMS["arbitrary"], "--out", "two.svg", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["labels"] for one in document["settings"]] == [
        {"algorithm.server_multiplier": 1.0},
        {"algorithm.server_multiplier": 5.0},
    ]
    assert (place / "two.svg").read_text().count("measured / bound") == 2
    planted = property(lambda comparison: comparison.rounds == comparison.rounds[0])
    monkeypatch.setattr("fedbounds.empirical.comparison.compare_run.RunComparison._above", planted)
    assert fedbounds.main(["confront", "two.toml", THEOREMS["arbitrary"], "--out", "two.svg"]) == 1
    assert "no guarantee: crossed at 1 of" in capsys.readouterr().out


def test_what_is_recorded_is_part_of_the_key_and_a_file_that_says_so_shares_its_runs():
    sweep = resolve({"rounds": 2, "problem": {"kind": "images", "network": "linear"},
                     "participation": {"kind": "full", "clients": 50},
                     "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 1}})  # fmt: skip
    (bare,), (ours,) = plan(sweep), plan(record_everything(sweep))
    assert bare.key != ours.key and plan(record_everything(record_everything(sweep)))[0].key == ours.key
    said = resolve({"rounds": 2, "problem": {"kind": "images", "network": "linear", "gradient_norm": True},
                    "participation": {"kind": "full", "clients": 50}, "record_models": True,
                    "record_participation": True,
                    "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 1}})  # fmt: skip
    assert plan(said)[0].key == ours.key


PHASES = """
name = "phases"
rounds = 2
problem = { kind = "toy" }
participation = { kind = "cyclic", clients = 3 }
[[algorithm.phases]]
algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 1 }
"""
WILD = SPECS["arbitrary"].replace("1e-3", "1e90").replace("rounds = 4", "rounds = 40").replace("arbitrary", "wild")
ROBUST = SPECS["minimax"].replace("fair-images", "robust-images").replace("regularization = 8.0", "attack_steps = 1")
BAD = [
    (SPECS["arbitrary"], ["arbitrary-participation/theorem-3"], "did you mean arbitrary-participation/theorem-3.1"),
    (SPECS["arbitrary"], ["fedau/theorem-2"], "no result of Wang & Ji 2024 covers this run: generalized-fedavg"),
    (SPECS["arbitrary"], [THEOREMS["arbitrary"], "--form", "none"], "unknown form"),
    (SPECS["arbitrary"], [THEOREMS["arbitrary"], "Lo=1"], "unknown constant.*did you mean L"),
    (SPECS["arbitrary"], [THEOREMS["arbitrary"], "--assume", "smoot"], "did you mean smooth"),
    (SPECS["arbitrary"], [THEOREMS["arbitrary"], "--interval", "3"], "amplifies every 2 rounds"),
    (SPECS["arbitrary"], [THEOREMS["arbitrary"], "L=0.001"], "L = 0.001 is given, and it is 1"),
    (PHASES, [THEOREMS["arbitrary"]], "has phases"),
    (WILD, [THEOREMS["arbitrary"]], "2 of 2 seeds diverged, seed 0 before round .*lower the step sizes"),
    (ROBUST, [THEOREMS["minimax"]], "'robust-images' does not measure envelope_gradient_norm_squared, only"),
]


@pytest.mark.parametrize(("text", "words", "message"), BAD, ids=[message[:20] for *_, message in BAD])
def test_what_cannot_be_answered_is_one_line_and_an_exit_of_2(text, words, message, place, capsys):
    (place / "bad.toml").write_text(text)
    assert fedbounds.main(["confront", "bad.toml", *words, "--out", "bad.png"]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and not captured.out and not (place / "bad.png").exists()
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(captured.err)


@pytest.mark.parametrize("out", ["arbitrary.toml/x.png", "figure.gif", "folder.png", "locked/x.png"])
def test_a_figure_that_cannot_be_written_is_refused_before_anything_is_run(out, place, capsys, monkeypatch):
    monkeypatch.setattr("fedbounds.empirical.sweep.task.run_together", lambda tasks: pytest.fail("ran"))
    (place / "folder.png").mkdir(exist_ok=True)
    (place / "locked").mkdir(exist_ok=True)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("locked") and real(path, mode))
    assert fedbounds.main(["confront", "arbitrary.toml", THEOREMS["arbitrary"], "--out", out]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_seeds_of_several_runs_are_one_sample(place):
    confronted("arbitrary")
    (setting,) = settings_of(read_sweep("arbitrary.toml"))
    one, other = (Store(place / "results" / "arbitrary").load(run.key) for run in setting.runs)
    both = join_traces([one, other])
    assert np.array_equal(both.model, np.concatenate([one.model, other.model]))
    assert np.array_equal(both.participation(1), other.participation(1))
    with pytest.raises(FedboundsError, match="seed 1 is not"):
        one.participation(1)


def test_constants_that_do_not_fit_on_a_device_are_one_line(tmp_path, monkeypatch):
    def full(*given, **named):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr("fedbounds.empirical.comparison.compare_sweep.confront", full)
    sweep = resolve({"rounds": 2, "problem": {"kind": "toy"}, "participation": {"kind": "full", "clients": 3},
                     "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 1}})  # fmt: skip
    with pytest.raises(FedboundsError, match=r"cpu ran out of memory .* of toy at once: take fewer clients") as caught:
        confront_sweep(sweep, THEOREMS["arbitrary"], results=tmp_path, device="cpu")
    assert "\n" not in str(caught.value)
