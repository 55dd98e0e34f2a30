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
    (SPECS["arbitrary"], [f"{THEOREMS['arbitrary']}:none"], "unknown form"),
    (SPECS["arbitrary"], [f"{THEOREMS['arbitrary']}:sharp", "--form", "printed"], "the form is given twice"),
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


# --- a log of a run made elsewhere --------------------------------------------------------------------------------

ARBITRARY = THEOREMS["arbitrary"]
KNOWN = ["L=1", "F=4", "sigma=0", "nu=1", "beta=0", "delta=0"]
OF_LOG = ["--algorithm", "fedavg,local_step_size=0.01,local_steps=5", "--participation", "full", "--clients", "4"]


@pytest.fixture
def log(place):
    (place / "log.csv").write_text("Step;Grad 1;Grad 2\n1;4,5;3,5\n2;2;2\n3;1;1\n")
    columns = ("round=Step", "gradient_norm_squared=Grad 1", "gradient_norm_squared=Grad 2")
    return ["--log", "log.csv", "--first-round", "1", *(word for column in columns for word in ("--column", column))]


def test_the_run_of_a_log_is_compared_as_in_the_library(log, place, capsys):
    words = ["confront", ARBITRARY, *KNOWN, *log, *OF_LOG]
    assert fedbounds.main([*words, "--out", "of-log.png"]) == 0
    printed = capsys.readouterr().out
    assert "log.csv: mean of 2 logged runs" in printed and "the runs are seeds: 0 = Grad 1, 1 = Grad 2" in printed
    assert printed.splitlines()[-3:] == ["written of-log.png", "written of-log.csv", "written of-log.json"]
    assert fedbounds.main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    columns = {"round": "Step", "gradient_norm_squared": ["Grad 1", "Grad 2"]}
    trace = fedbounds.read_log(
        "log.csv", fedbounds.algorithms.FedAvg(0.01, 5), "full", clients=4, first_round=1, columns=columns
    )
    known = {name: float(value) for name, value in (text.split("=") for text in KNOWN)}
    expected = confront(trace, ARBITRARY, given=known)
    (found,) = document["settings"]
    assert document["log"] == "log.csv" and found["seeds"] == [0, 1] and document["form"] == expected.form.name
    assert found["measured"] == expected.measured.tolist() == [4, 2] and found["bound"] == expected.bound.tolist()
    assert fedbounds.main([*words, "--set", "L=1e-9"]) == 2  # given twice
    small = [*words[:2], "L=1", "F=1e-9", *KNOWN[2:], *words[2 + len(KNOWN) :]]
    assert fedbounds.main(small) == 1  # crossed inside its conditions
    capsys.readouterr()


def test_a_record_of_zeros_and_ones_is_normalized(log, place, capsys):
    (place / "who.csv").write_text("1,1\n1,0\n")
    words = ["confront", ARBITRARY, *KNOWN, *log, *OF_LOG[:2], "--participation", "who.csv"]
    assert fedbounds.main(words) == 2
    assert "(round 0 sums to 2): give --normalize, which divides each round by its sum" in capsys.readouterr().err
    assert fedbounds.main([*words, "--normalize"]) == 0
    capsys.readouterr()


def test_a_log_of_losses_meets_a_bound_of_the_function_gap(place, capsys):
    history = {"losses_centralized": [[t, 1.5 + 1 / (1 + t)] for t in range(9)]}
    (place / "flower.dat").write_text(json.dumps({"run": "first", **history}))
    algorithm = (
        "fedmrn-analysis,operator=sparsifier,keep=1,local_step_size=0.125,local_steps=2,step_shift=15,progressive=false"
    )
    known = ["L=2", "sigma=0", "G=12", "Gamma=11", "Delta1=13"]
    words = ["confront", "fedmrn/theorem-1", *known, "--log", "flower.dat", "--format", "flower"]
    words += ["--algorithm", algorithm, *OF_LOG[2:]]
    assert fedbounds.main([*words, "--f-min", "1.5", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["settings"]
    assert found["measured"] == pytest.approx([1 / (1 + t) for t in range(1, 9)])
    process = [*words[:-4], "--participation", "without-replacement,clients=3,participants=2", "--f-min", "1.5"]
    assert fedbounds.main(process) == 0
    assert "taken to be without-replacement" in capsys.readouterr().out
    assert fedbounds.main(words) == 2
    assert "give read_log f_min, the least value of f" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "message"), [
    ([ARBITRARY], "Missing argument 'KEY'."),
    (["a.toml", ARBITRARY], "Missing option '--out' F: The figure"),
    (["a.toml", ARBITRARY, "--out", "x.png", "--clients", "3"], "--clients is about a log: give --log"),
    (["a.toml", ARBITRARY, "--out", "x.png", "--first-round", "0"], "--first-round is about a log"),
    ([ARBITRARY, "--log", "log.csv"], "--log needs the algorithm of the run: give --algorithm, e.g. fedavg,"),
    ([ARBITRARY, "--log", "log.csv", "--algorithm", "fedavg,3"], "--algorithm: '3' is not NAME=VALUE, e.g."),
    ([ARBITRARY, "--log", "log.csv", "--algorithm", "fedav"], "unknown algorithm 'fedav'; did you mean "),
    ([ARBITRARY, "--log", "log.csv", *OF_LOG, "--column", "round"], "--column 'round' is not NAME=COLUMN, e.g."),
    ([ARBITRARY, "--log", "log.csv", *OF_LOG], "give --column round=Step --column 'train_loss=Grad 1'"),
    ([ARBITRARY, "--log", "log.csv", *OF_LOG[:2], "--column", "round=Step", "--column", "train_loss=Grad 1"],
     "give --participation full and --clients N if every client did, else --participation the weights (T, N) or a"),
    ([ARBITRARY, "--log", "log.csv", *OF_LOG, "--column", "round=Step", "--column", "train_loss=Grad 1"],
     "it is [1.0, 2.0, 3.0]; give --first-round 1 to begin"),
    ([ARBITRARY, "--log", "no.csv", *OF_LOG], "cannot read the log no.csv: No such file or directory"),
    ([ARBITRARY, "--log", "log.csv", *OF_LOG, "--out", "log.png", "--force", "--first-round", "1",
      "--column", "round=Step", "--column", "gradient_norm_squared=Grad 1", *KNOWN], "it is an input of this command"),
])  # fmt: skip
def test_what_is_wrong_about_a_log_is_one_line(words, message, log, capsys):
    assert fedbounds.main(["confront", *words]) == 2
    told = capsys.readouterr().err
    assert message in told and len(told.splitlines()) == 1
