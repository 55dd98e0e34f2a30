"""The command `fedbounds check` on run files and step sizes: output, exit codes, and one line for bad input."""

import json
from pathlib import Path

import pytest

from fedbounds.command_line import main

RUN = """\
rounds = 40

[problem]
kind = "quadratic"
clients = 4
dimension = 3

[participation]
kind = "cyclic"
clients = 4
groups = 2

[algorithm]
kind = "generalized-fedavg"
local_step_size = STEP
local_steps = 2
server_multiplier = 3
interval = 2
"""
DESCENT = """\
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, full participation, noise=none, one local step"
algorithm = "fedavg"
conditions = ["gamma <= 1/L"]

[terms]
"initial gap" = "2*F/(gamma*T)"
"""
THEOREM = "arbitrary-participation/theorem-3.1"


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(RUN.replace("STEP", "0.01"))
    (tmp_path / "large.toml").write_text(RUN.replace("STEP", "0.03"))
    (tmp_path / "descent.toml").write_text(DESCENT)


def test_a_run_file(capsys):
    assert main(["check", "small.toml", "--against", THEOREM]) == 0
    out = capsys.readouterr().out
    assert f"{THEOREM}[sharp]: legal" in out and out.endswith("legal under at least one theorem: yes\n")
    assert main(["check", "large.toml", "--against", THEOREM]) == 1
    out = capsys.readouterr().out
    assert "fails  gamma <= 1/(12*I*L*P)   (0.03 > 0.0208333); largest legal gamma: 0.0208333" in out
    assert "legal under at least one theorem: no" in out


@pytest.mark.parametrize("form", [f"{THEOREM}:printed", f"{THEOREM}[printed]"])
def test_a_form_is_written_as_in_all_commands_or_as_it_is_printed(capsys, form):
    assert main(["check", "small.toml", "--against", form]) == 0
    assert f"{THEOREM}[printed]: legal" in capsys.readouterr().out
    assert main(["check", "--against", form, "--step", "gamma=1/(12*L*I*P)", "eta=1"]) == 0
    assert f"{THEOREM}[printed]   gamma" in capsys.readouterr().out


def test_sides_that_differ_look_different(capsys):
    assert main(["eval", "descent.toml", "F=1", "T=9", "L=1", "gamma=1.0000000001"]) == 0
    assert "gamma <= 1/L   (1.0000000001 against 1)" in capsys.readouterr().out
    assert main(["check", "--against", "descent.toml", "--step", "1.0000000001/L"]) == 1
    assert "(1.0000000001 against 1)" in capsys.readouterr().out


def test_a_run_file_as_json(capsys):
    assert main(["check", "large.toml", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "fedbounds.check-run/1"
    first = document["settings"][0]["theorems"][0]
    assert first["answer"] == "not legal" and first["conditions"][0]["limits"] == "gamma"
    assert first["conditions"][0]["admissible"] == pytest.approx(1 / 48)


def test_the_assumptions_to_type_are_named(capsys, tmp_path):
    everyone = (
        RUN.replace("STEP", "0.01").replace("groups = 2", "groups = 1").replace("multiplier = 3", "multiplier = 1")
    )
    text = DESCENT.replace('setting = "nonconvex, smooth, full participation, noise=none, one local step"\n', "")
    text = text.replace('"fedavg"', '"generalized-fedavg"').replace(
        "[terms]", '[assumptions]\na = "x"\nb = "y"\n[terms]'
    )
    (tmp_path / "open.toml").write_text(text)
    (tmp_path / "everyone.toml").write_text(everyone)
    words = ["check", "everyone.toml", "--against", "./open.toml"]
    assert main(words) == 0  # undecided
    out = capsys.readouterr().out
    assert out.endswith("legal under at least one theorem: undecided: give --assume a --assume b\n")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"][0]["answer"] == "undecided"
    assert "give those of these assumptions that hold: --assume a --assume b" in out and "open   a: x" in out
    main([*words, "--assume", "a", "--assume", "b"])
    assert "open" not in capsys.readouterr().out.replace("open.toml", "").replace("draft/open", "")


def test_settings_of_a_sweep_are_counted(capsys, tmp_path):
    text = RUN.replace("STEP", "0.01") + '\n[vary]\n"algorithm.local_step_size" = [0.01, 0.03]\n'
    (tmp_path / "both.toml").write_text(text)
    assert main(["check", "both.toml", "--against", THEOREM]) == 1
    assert "legal under at least one theorem: 1 of 2 settings" in capsys.readouterr().out


def test_a_formula(capsys):
    assert main(["check", "--against", THEOREM, "--step", "gamma=1/(12*L*I*P)", "eta=1"]) == 0
    assert "holds for all constants" in capsys.readouterr().out
    assert main(["check", "--against", THEOREM, "--step", "gamma=1/(12*L*I*P)"]) == 1
    out = capsys.readouterr().out
    assert "error  eta*gamma <= 1/(2*I*L*P)   fails at" in out and "no factor c > 0" in out
    assert main(["check", "descent.toml", "--step", "1/(2*L)", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["theorems"][0]["largest_factor"] == 2 and document["theorems"][0]["legal"]
    assert main(["check", "descent.toml", "--step", "1/(L*(2*I - 1))"]) == 0
    assert "  open   gamma > 0   no counterexample in" in capsys.readouterr().out
    assert main(["check", "descent.toml", "--step", "1/L**2"]) == 1
    assert "error  units" in capsys.readouterr().out


def test_worst_cases(capsys, tmp_path):
    pytest.importorskip("PEPit")
    words = ["--no-search", "--worst-case", "--json"]
    assert main(["check", "descent.toml", *words]) == 0
    found = json.loads(capsys.readouterr().out)["findings"][-1]
    assert found["level"] == "ok" and "at most 1 times the bound" in found["text"]  # attained after one step
    (tmp_path / "false.toml").write_text(DESCENT.replace("2*F", "1.5*F"))
    assert main(["check", "false.toml", *words]) == 1
    found = json.loads(capsys.readouterr().out)["findings"][-1]
    assert found["level"] == "error" and found["check"] == "worst case" and found["at"]
    (tmp_path / "convex.toml").write_text(DESCENT.replace("nonconvex", "convex"))
    assert main(["check", "convex.toml", *words]) == 0
    assert "need not be convex" in json.loads(capsys.readouterr().out)["findings"][-1]["text"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "FILE.toml is missing"),
        (["none.toml"], "cannot read none.toml"),
        (["small.toml", "--against", "fedau/theorem-22"], "fedau/theorem-2"),
        (["small.toml", "l=2"], "unknown constant 'l'"),
        (["small.toml", "smoothnes=2", "--against", THEOREM], "did you mean smoothness?"),
        (["small.toml", "L=0.5", "--against", THEOREM], "L = 0.5"),
        (["descent.toml", "L=2"], "descent.toml is a theorem file: constants are for a run file or --step; "),
        (["descent.toml", "L=2"], "run: fedbounds eval descent.toml L=2"),
        (["descent.toml", "--assume", "smooth"], "--assume is for a run file, and this command checks a theorem file"),
        (["descent.toml", "--against", THEOREM], "--against is for a run file or --step, and this command checks"),
        (["descent.toml", "--set", "L=2"], "--set is for a run file or --step, and this command checks a theorem file"),
        (["small.toml", "--no-search"], "--no-search is for a theorem file, and this command checks a run file"),
        (["small.toml", "--seed", "3"], "--seed is for a theorem file"),
        (["descent.toml", "--no-search", "--seed", "3"], "--seed is for the search for a violation, which --no-search"),
        (["small.toml", "--worst-case"], "checks a run file; leave out --worst-case"),
        (["descent.toml", "--step", "1/L", "--worst-case"], "--worst-case is for a theorem file, and this command"),
        (
            ["descent.toml", "--step", "1/L", "--assume", "all"],
            "--assume is for a run file, and this command checks --step",
        ),
        (["--against", THEOREM + ":", "--step", "1/L"], "the form after"),
        (["--step", "1/L"], "--step needs a theorem"),
        (["--step", "1/L", "--against", THEOREM], "several step sizes"),
        (["descent.toml", "--step", "1/L", "--step", "2/L"], "given twice"),
        (["descent.toml", "--step", "1/l"], "unknown symbol 'l'"),
        (["descent.toml", "--step", "1/L", "L=1,2"], "L is a list"),
    ],
)
def test_bad_input_is_one_line(capsys, words, message):
    assert main(["check", *words]) == 2
    out, err = capsys.readouterr()
    assert not out and message in err and err.startswith("fedbounds: ") and err.count("\n") == 1


def test_a_theorem_file_lists_the_checks_that_passed_and_those_not_made(capsys, tmp_path):
    assert main(["check", "descent.toml", "--no-search"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "passed: dimensions of 1 term and 1 condition, noise and heterogeneity in the conditions occur in" in out
    assert "monotonicity, limits, reference theorems" in out
    assert "not made: step sizes (none is prescribed); search (--no-search); worst case (add --worst-case)" in out
    wrong = DESCENT.replace("2*F/(gamma*T)", "2*F*gamma/T").replace("conditions =", "#")
    (tmp_path / "wrong.toml").write_text(wrong)
    assert main(["check", "wrong.toml", "--no-search", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert not [text for text in document["passed"] if "dimensions" in text] and "signs" in document["passed"]
    assert document["not_made"]["conditions"] == "there is no condition" and "units" not in document["not_made"]
    (tmp_path / "never.toml").write_text(DESCENT.replace('"gamma <= 1/L"', '"gamma <= 1/L", "gamma*L >= 2"'))
    assert main(["check", "never.toml", "--no-search", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["not_made"]["monotone"] == "no constants are feasible" and "signs" not in document["passed"]


@pytest.mark.parametrize(
    ("kind", "meant"),
    [("fedavgg", "fedavg"), ("fed-avg", "fedavg"), ("local-sgd", "fedavg"), ("mifaa", "mifa"), ("ce-lsdg", "ce-lsgd")],
)
def test_an_unknown_algorithm_with_a_known_name_is_an_error(capsys, tmp_path, kind, meant):
    (tmp_path / "other.toml").write_text(DESCENT.replace('"fedavg"', f'"{kind}"'))
    assert main(["check", "other.toml"]) == 1
    out = capsys.readouterr().out
    assert f"error    algorithm   line 3   unknown algorithm {kind!r}; did you mean {meant}?" in out
    assert "search (unknown algorithm)" in " ".join(out.split())


@pytest.mark.parametrize("kind", ["my-method", "scaffold-m", "marina"])
def test_an_algorithm_of_its_own_is_no_error(capsys, tmp_path, kind):
    (tmp_path / "other.toml").write_text(DESCENT.replace('"fedavg"', f'"{kind}"'))
    assert main(["check", "other.toml"]) == 0
    assert "warning  search" in capsys.readouterr().out


def test_a_step_size_is_not_checked_under_a_run_file(capsys):
    run = str(Path(__file__).resolve().parents[2] / "examples" / "fedau.toml")
    for against in ([], ["--against", "fedau/theorem-2"]):
        assert main(["check", run, "--step", "gamma=1/(100*L*I)", *against]) == 2
        assert "fedau.toml is a run file: leave it out, and name the theorems" in capsys.readouterr().err
    assert main(["check", "fedau/theorem-2", "--step", "gamma=1/(20*L*I)", "--step", "eta=1"]) in (0, 1)
