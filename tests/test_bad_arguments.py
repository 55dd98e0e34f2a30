"""Words on the command line that mean nothing: exit status 2, one short line on standard error, nothing else."""

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import fedbounds
from fedbounds.bounds.comparison.compare import parse_vary
from fedbounds.bounds.errors import LONGEST_NAME, MOST_SHOWN, FedboundsError, unknown_name
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.search.rounds import Reached, rounds
from fedbounds.bounds.theory import registry
from fedbounds.empirical.sweep import plan, resolve
from tests.command_line import run

THEOREM = "arbitrary-participation/theorem-3.1"
GOOD = ["L=1", "I=2", "P=2", "T=8", "gamma=1/48", "eta=6", "rho=0.75", "nu=2", "beta=0.5", "delta=0", "sigma=0.5"]
SWEEP = """
rounds = 4
problem = { kind = "toy" }
participation = { kind = "full", clients = 3 }
algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 2 }
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working directory with a sweep and a list of numbers."""
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "gaps.csv").write_text("1, 2\n3\n")
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)


def refused(*words):
    """The one line that refuses these words."""
    status, out, err = run(*words)
    assert (status, out) == (2, ""), (words, status, out)
    assert err.startswith("fedbounds: ") and err.endswith("\n") and len(err.splitlines()) == 1 and len(err) < 600, err
    return err


BAD = [
    (("compare", THEOREM, "--vary", "F=1:2:log:nan"), "COUNT = nan must be a whole number"),
    (("compare", THEOREM, "--vary", "F=1:2:lin:inf"), "COUNT = inf must be a whole number"),
    (("compare", THEOREM, "--vary", "F=1:2:log:1e999"), "COUNT = inf must be a whole number"),
    (("compare", THEOREM, "--vary", "F=1:2:log:2.5"), "COUNT = 2.5 must be a whole number"),
    (("compare", THEOREM, "--vary", "F=nan:2:log:5"), "both finite and positive"),
    (("compare", THEOREM, "--vary", "F=1:inf:lin:5"), "both finite"),
    (("compare", THEOREM, "--vary", "F=1:@gaps.csv"), "is a list"),
    (("compare", THEOREM, "--vary", "F=1:2,3:log:5"), "is a list"),
    (("compare", THEOREM, "--vary", "F=@absent.csv"), "cannot read absent.csv"),
    (("compare", THEOREM, "--vary", "F=@pipe"), "it is a pipe"),
    (("compare", THEOREM, "--vary", "F=@/dev/zero"), "it is a device"),
    (("eval", THEOREM, "--from", "/dev/zero"), "it is a device"),
    (("eval", THEOREM, "--from", "pipe"), "it is a pipe"),
    (("eval", THEOREM, "F=@pipe"), "it is a pipe"),
    (("run", "pipe"), "it is a pipe"),
    (("results", "/dev/urandom"), "it is a device"),
    (("figure", "/dev/stdin.toml", "--out", "a.png"), "cannot read"),
    (("audit", ""), "argument 1 is empty"),
    (("audit", "--paper", ""), "--paper is empty"),
    (("audit", "--paper="), "--paper is empty"),
    (("list", "--paper", ""), "--paper is empty"),
    (("show", ""), "is empty"),
    (("eval", THEOREM, "--form", ""), "--form is empty"),
    (("rounds", THEOREM, "--epsilon", "1", "--optimize", ""), "--optimize is empty"),
    (("run", "sweep.toml", "--out", ""), "--out is empty"),
    (("results", "sweep.toml", "--csv", ""), "--csv is empty"),
    (("demo", "--out", ""), "--out is empty"),
    (("rounds", THEOREM, "--epsilon", "1", "--dimension", "10.5"), "--dimension = 10.5 must be an integer >= 1"),
    (("rounds", THEOREM, "--epsilon", "1", "--dimension", "inf"), "--dimension = inf must be an integer"),
    (("rounds", THEOREM, "--epsilon", "1", "--dimension", "1,2"), "--dimension = "),
    (("run", "sweep.toml", "--workers", "1.5"), "--workers = 1.5 must be an integer in [0, 1024]"),
    (("run", "sweep.toml", "--out", "file"), "not a directory"),
    (("run", "sweep.toml", "--out", "file/below"), "file/below"),
    (("run", "sweep.toml", "--out", "x" * 300), "too long"),
    (("refute", "zzz"), "fedbounds refute lists them"),
    (("refute", "x" * 5000), "fedbounds refute lists them"),
    (("show", f"{THEOREM}x" * 100), "unknown result"),
    (("eval", THEOREM, *GOOD, "x" * 3000), "is not NAME=VALUE"),
    (("eval", THEOREM, "x" * 3000 + "=1/0"), "division by zero"),
    (("eval", THEOREM, "--from", "x" * 3000), "too long"),
    (("optimize", THEOREM, "--over", "x" * 3000 + ","), "is not a list of constants"),
    (("eval", "fedau/zzz"), "fedbounds list --paper fedau lists them"),
    (("figure", "zzz", "--out", "a.png"), "unknown figure"),
]


@pytest.mark.parametrize(("words", "part"), BAD, ids=[" ".join(words)[:60] for words, _ in BAD])
def test_words_that_mean_nothing_are_refused_in_one_short_line(words, part):
    constants = GOOD if words[0] in ("compare", "eval") else []
    assert part in refused(*words, *constants)


def test_a_constant_varies_over_the_numbers_of_a_file():
    assert parse_vary("F=@gaps.csv")[1].tolist() == [1.0, 2.0, 3.0]
    status, out, _ = run("compare", THEOREM, "--vary", "F=@gaps.csv", *GOOD, "--json")
    assert status == 0 and json.loads(out)["settings"] == [1.0, 2.0, 3.0]


def test_the_line_for_an_unknown_name_is_short_whatever_the_names():
    for choices in ([f"name-{i}" for i in range(10_000)], ["y" * 10_000] * 3, []):
        for name in ("z", "z" * 10_000, "name-0", "y" * 9_999):
            line = str(unknown_name("thing", name, choices, "fedbounds list"))
            assert len(line) < MOST_SHOWN + 4 * LONGEST_NAME
    line = str(unknown_name("thing", "z", [f"name-{i}" for i in range(10_000)], "fedbounds list"))
    assert line.endswith(f"and {10_000 - line.count('name-')} more (fedbounds list lists them)")


def test_refute_alone_lists_what_can_be_refuted():
    status, out, err = run("refute")
    assert (status, err) == (0, "")
    listed = json.loads(run("refute", "--json")[1])["errata"]
    assert [line.split()[0] for line in out.splitlines()] == [one["id"] for one in listed]
    assert run("refute", listed[0]["id"])[0] == 0


@pytest.mark.parametrize("style", ["--bibtex", "--latex", "--sympy"])
def test_every_style_of_show_has_its_json(style):
    document = json.loads(run("show", THEOREM, style, "--json")[1])
    assert document["schema"] == "fedbounds.show/1"
    if style == "--bibtex":
        assert document["bibtex"] in run("show", THEOREM, style)[1]


def test_a_result_may_be_given_by_its_key():
    constants = {"F": 5.0} | {n: float(v) for n, _, v in (w.partition("=") for w in GOOD) if "/" not in v}
    constants["gamma"] = 1 / 48
    by_key = evaluate(THEOREM, constants)
    assert by_key.value == evaluate(registry.load(THEOREM), constants).value
    corollary, known = "fedau/corollary-4", dict(L=1, F=1, I=2, N=10, sigma=1, delta=0.1, G=1, Q=2, W=0)
    theorem = registry.load(corollary)
    best = {"L": 2.0, "F": 3.0, **constants, "T": 100}
    del best["gamma"], best["eta"]
    within = {"eta": (1, 6)}
    chosen = optimize(THEOREM, best, within=within, form="explicit")
    assert chosen == optimize(registry.load(THEOREM), best, within=within, form="explicit")
    counted = rounds(corollary, 1, known, form="explicit")
    assert counted.to_dict() == rounds(theorem, 1, known, form="explicit").to_dict()
    for nothing in (None, 3, "fedau", "nosuch/theorem"):
        with pytest.raises(FedboundsError):
            evaluate(nothing, constants)  # pyright: ignore[reportArgumentType]
        with pytest.raises(FedboundsError):
            optimize(nothing, best, within=within)  # pyright: ignore[reportArgumentType]
        with pytest.raises(FedboundsError):
            rounds(nothing, 1, known)  # pyright: ignore[reportArgumentType]


# --- one rule for counts: 2.0 and 1e6 are whole numbers, 10.5 is not ------------------------------------------------

WHOLE = [(2, 2), (2.0, 2), (1e6, 10**6)]
BROKEN = [10.5, 2.0000001, float("nan"), float("inf"), True, "2", -1, None, [2]]


def document(**changed):
    """A sweep as a dictionary."""
    table = {"kind": "quadratic", "clients": 3, "dimension": 2, "diagonal": True}
    return {
        "rounds": 4, "problem": table, "participation": {"kind": "full", "clients": 3},
        "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2}, **changed,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["rounds", "record_every", "seeds", "seeds_per_run"])
def test_counts_of_a_sweep_keep_the_one_rule(name):
    for given, meant in WHOLE[:2]:
        task = resolve(document(**{name: given})).tasks[0]
        assert name.startswith("seeds") or (task[name] == meant and type(task[name]) is int)
        assert task["seeds"] == list(range(meant if name == "seeds" else 1))
        assert all(type(seed) is int for seed in task["seeds"])
    for given in (10.5, 2.0000001, float("inf"), -1, True, "2"):
        with pytest.raises(FedboundsError, match=f"{name} = .* must be an integer"):
            resolve(document(**{name: given}))


@pytest.mark.parametrize(
    ("table", "name"), [("problem", "clients"), ("problem", "dimension"), ("algorithm", "local_steps")]
)
def test_counts_of_a_component_keep_the_one_rule(table, name):
    sweep = document()
    keys = [plan(resolve({**sweep, table: {**sweep[table], name: n}}))[0].key for n in (3, 3.0)]
    assert keys[0] == keys[1]
    for given in (10.5, float("inf"), True, "2", *([] if name == "local_steps" else [[2]])):
        with pytest.raises(FedboundsError, match=f"{name} = .* must be an integer"):
            plan(resolve({**sweep, table: {**sweep[table], name: given}}))


def test_counts_on_the_command_line_keep_the_one_rule():
    free = [word for word in GOOD if not word.startswith("T=")]
    told = [
        run("rounds", THEOREM, "--epsilon", "9", "--dimension", d, "F=1", *free) for d in ("1000000", "1e6", "10**6")
    ]
    assert told[0][0] == 0 and told[0] == told[1] == told[2]
    for workers in ("1", "1.0"):
        assert run("run", "sweep.toml", "--dry-run", "--probe", "0", "--workers", workers)[0] == 0
    for given in BROKEN:
        with pytest.raises(FedboundsError):
            check_count("clients", given)
    assert [check_count("clients", given) for given, _ in WHOLE] == [meant for _, meant in WHOLE]


def test_the_dimension_of_the_model_keeps_the_one_rule_in_python():
    known = dict(L=1, F=1, I=2, N=10, S=5, sigma=1, delta=0.1, G=1, Q=2, W=0)
    for given, meant in WHOLE:
        answer = rounds("fedau/appendix-a.3", 1, known, form="explicit", dimension=given)
        assert isinstance(answer, Reached) and answer.cost.floats == 2 * 5 * answer.rounds * meant
        assert type(answer.cost.floats) is int
    for given in BROKEN:
        if given is not None:  # then nothing is counted
            with pytest.raises(FedboundsError, match=r"dimension = .* must be an integer"):
                rounds("fedau/appendix-a.3", 1, known, form="explicit", dimension=given)


# --- places that may not be entered ---------------------------------------------------------------------------------


@contextmanager
def nobody():
    """The rights of somebody who is not the superuser, for whom no folder is closed."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_entered_is_one_line():
    with tempfile.TemporaryDirectory() as home:
        closed = Path(home) / "closed"
        closed.mkdir()
        spec = Path(home) / "sweep.toml"
        spec.write_text(SWEEP)
        assert run("run", str(spec), "--out", str(Path(home) / "open"))[0] == 0  # what is imported late is there now
        assert run("results", str(spec), "--out", str(Path(home) / "open"))[0] == 0
        os.chmod(home, 0o755)
        os.chmod(closed, 0)
        with nobody():
            told = [
                refused("run", str(spec), "--out", str(closed)),
                refused("run", str(spec), "--dry-run", "--out", str(closed / "below")),
                refused("results", str(spec), "--out", str(closed)),
                refused("results", str(spec), "--out", str(closed / "below")),
                refused("results", str(spec), "--out", str(Path(home) / "open"), "--csv", str(closed / "a.csv")),
                refused("eval", THEOREM, "--from", str(closed / "a.toml")),
                refused("compare", THEOREM, "--vary", "F=1,2", *GOOD, "--out", str(closed / "a.csv")),
            ]
        os.chmod(closed, 0o755)
        assert [line for line in told if "Permission denied" not in line] == []
        assert not list(closed.iterdir())


def test_a_word_of_thousands_of_symbols_is_not_repeated_whole(capsys):
    assert fedbounds.main(["show", "fedau/theorem-2", "x" * 3000]) == 2
    told = capsys.readouterr().err
    assert told.startswith("fedbounds: Got unexpected extra argument (xxx") and len(told) < 700
