"""A record of participation in five layouts: the same weights, and the same answers of everything that reads it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedbounds as fb
from fedbounds.bounds.errors import FedboundsError
from fedbounds.command_line import main
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.compare_sweep import confront_sweep
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.participation import Recorded, process_from_spec
from fedbounds.empirical.sweep import read_sweep

PRESENT = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
WEIGHTS = PRESENT / np.maximum(PRESENT.sum(axis=1, keepdims=True), 1)
PAIRS = [(int(t), int(n)) for t, n in np.argwhere(PRESENT)]
LISTS = [np.flatnonzero(row).tolist() for row in PRESENT]
FREE = [(0, -3, 10), (1, 0, 15), (1, 14, 27), (2, 5, 27), (1, 30, 40), (0, 40, 62), (1, 49, 60), (2, 35, 60)]
LENGTH = 10  # of a round; nobody is available during all of round 2
THEOREM = "arbitrary-participation/theorem-3.1"
FEDAVG = {"kind": "fedavg", "local_step_size": 0.01, "local_steps": 2}
GIVEN = {"L": 1, "F": 4, "sigma": 0, "nu": 1, "beta": 1, "delta": 1}


def lines(*rows: object) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in rows if isinstance(row, tuple | list))


FILES = {  # name of the file: its content
    "wide.csv": lines(*PRESENT.tolist()),
    "named.csv": lines(("a", "b", "c"), *PRESENT.tolist()),
    "numbered.csv": lines(("Round", "a", "b", "c"), *([t + 1, *row] for t, row in enumerate(PRESENT.tolist()))),
    "lists.csv": lines(("round", "participants"), *((t, f'"{" ".join(map(str, s))}"') for t, s in enumerate(LISTS))),
    "bare.csv": lines(*((t, f'"{", ".join(map(str, s))}"') for t, s in enumerate(LISTS))),
    "lists.json": json.dumps(LISTS),
    "rounds.json": json.dumps({t: s for t, s in enumerate(LISTS) if s}),
    "weighted.json": json.dumps({t: dict.fromkeys(s, 1.0) for t, s in enumerate(LISTS)}),
    "long.csv": lines(("note", "client_id", "server_round"), *(("x", "abc"[n], t) for t, n in reversed(PAIRS))),
    "samples.csv": lines(("round", "client", "num_examples"), *((t + 1, n, 50) for t, n in PAIRS)),
    "lines.json": json.dumps([{"round": t, "client": "abc"[n], "accuracy": 0.5} for t, n in PAIRS]),
    "free.csv": lines(("client", "start", "end"), *FREE),
}


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return {name: tmp_path / name for name in FILES}


def keys(name: str) -> dict[str, Any]:
    """What a layout needs: the length of rounds, where the first one begins, and how many there are."""
    return {"round_length": LENGTH, "start": 0, "rounds": len(PRESENT)} if name == "free.csv" else {}


@pytest.mark.parametrize("name", FILES)
def test_every_layout_has_the_same_weights(name: str, paths: dict[str, Path]) -> None:
    record = Recorded.read(paths[name], normalize=True, **keys(name))
    np.testing.assert_array_equal(record.weights, WEIGHTS)
    again = process_from_spec({"kind": "recorded", "file": str(paths[name]), "normalize": True, **keys(name)})
    np.testing.assert_array_equal(again.matrix(len(PRESENT), np.random.default_rng(0)), WEIGHTS)


IN_MEMORY = [
    PRESENT, PRESENT.tolist(), LISTS, {"participants": LISTS}, {"weights": PRESENT.tolist()},
    dict(enumerate(LISTS)), {t: dict.fromkeys(s, 1) for t, s in enumerate(LISTS)},
    {"round": [t for t, _ in PAIRS], "client": [n for _, n in PAIRS]},
]  # fmt: skip


@pytest.mark.parametrize("record", IN_MEMORY, ids=lambda record: type(record).__name__)
def test_the_layouts_are_read_in_memory_too(record: object) -> None:
    np.testing.assert_array_equal(Recorded.read(record, normalize=True).weights, WEIGHTS)


class Frame(dict[str, np.ndarray]):
    """What is read of a data frame of pandas or polars."""

    columns: tuple[str, ...] = ("round", "client")
    to_dict = None


def test_a_data_frame_is_a_table() -> None:
    frame = Frame({name: np.array(values) for name, values in IN_MEMORY[-1].items()})
    np.testing.assert_array_equal(Recorded.read(frame, normalize=True).weights, WEIGHTS)


SWEEP = """
rounds = 6
[problem]
kind = "quadratic"
clients = 3
dimension = 2
[participation]
kind = "recorded"
file = "{name}"
normalize = true
{more}
[algorithm]
kind = "fedavg"
local_step_size = 0.01
local_steps = 2
"""
SETTING = """
setting = "non-convex, arbitrary participation, bounded heterogeneity, bounded variance, local steps"
target = 1.0
measure = "squared gradient norm of f"
assume = "all"
effort = 0.1
constants = {{smoothness = 1, initial_gap = 2, gradient_noise = 0, gradient_divergence_sup = 0.5}}
choose = {{local_steps = [1, 1], interval = [1, 1]}}
[participation]
log = "{name}"
normalize = true
{more}
"""


def answers(name: str, folder: Path) -> list[object]:
    """What a log, advise, the accountant and a sweep answer about the record in a file."""
    more = "\n".join(f"{key} = {value}" for key, value in keys(name).items())
    spec = {"kind": "recorded", "file": str(folder / name), "normalize": True, **keys(name)}
    norms = [4.0, 3.0, 2.0, 2.0, 1.5, 1.0, 0.5]
    log = {"round": range(7), "gradient_norm_squared": norms}
    found = confront(read_log(log, FEDAVG, spec), THEOREM, given=GIVEN, participation=spec)
    note = "1 of 6 rounds have no participants: they change nothing and are left out, T = 5 and not 6"
    assert note in found.notes and found.measured.tolist() == [4.0, 3.0, 2.0, 1.5, 1.0]
    (folder / f"{name}.advise.toml").write_text(SETTING.format(name=name, more=more), encoding="utf-8")
    advice = fb.advise(folder / f"{name}.advise.toml", paper="arbitrary-participation")
    assert "1 of 6 rounds of the log have no participants" in advice.headline
    accountant = fb.ParticipationAccountant(3, intervals=[2])
    accountant.add_record(spec)
    bound = accountant.bound(THEOREM, dict(L=1, F=1, I=2, gamma=0.005, eta=1, sigma=0.1, d=0.5), interval=2)
    (folder / f"{name}.toml").write_text(SWEEP.format(name=name, more=more), encoding="utf-8")
    sweep = read_sweep(folder / f"{name}.toml")
    (run,) = confront_sweep(sweep, THEOREM, results=folder / "results", given={"T": 5}).values()
    assert note in run.notes and len(run.rounds) == 5
    return [
        found.bound.tolist(), advice.of(THEOREM).to_dict(), accountant.quantities(), float(bound.value),
        run.measured.tolist(), run.bound.tolist(),
    ]  # fmt: skip


def test_every_layout_has_the_same_answers(paths: dict[str, Path], tmp_path: Path) -> None:
    first = answers("wide.csv", tmp_path)
    for name in ("lists.csv", "lists.json", "long.csv", "free.csv"):
        assert answers(name, tmp_path) == first


def test_the_command_reads_a_file_or_the_keys_of_a_record(paths: dict[str, Path], capsys, monkeypatch) -> None:
    monkeypatch.chdir(paths["wide.csv"].parent)
    Path("log.csv").write_text(lines(("round", "gradient_norm_squared"), *((t, 7 - t + (t > 2)) for t in range(7))))
    words = ["confront", THEOREM, "--log", "log.csv", "--algorithm", "fedavg,local_step_size=0.01,local_steps=2"]
    words += [f"{name}={value}" for name, value in GIVEN.items()]
    said = []
    for participation in ("lists.csv", "recorded,file=free.csv,round_length=10,start=0,rounds=6"):
        assert main([*words, "--participation", participation, "--normalize"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and "T = 5 and not 6" in said[0]
    assert main([*words, "--participation", "free.csv"]) == 2
    assert "give --participation recorded,file=FILE,round_length=, the length of a round" in capsys.readouterr().err


def test_advise_reads_a_log_as_a_table_and_as_a_recorded_process(paths: dict[str, Path]) -> None:
    asked = {"setting": "non-convex, arbitrary participation", "target": 1, "effort": 0.1,
             "choose": {"local_steps": [1, 1], "interval": [1, 1]}}  # fmt: skip
    record = {"file": str(paths["free.csv"]), "normalize": True, **keys("free.csv")}
    tables = (
        {"log": record},
        {"kind": "recorded", **record},
        {"log": LISTS, "normalize": True},
        {"log": record, "kind": "bernoulli", "clients": 3, "probability": 0.6},
    )
    said = [fb.advise({**asked, "participation": table}, paper="fedau").headline for table in tables]
    assert said[0] == said[1] == said[2] and "3 clients, 1.667 in a round on average, a log of 6 rounds" in said[0]
    assert "declared as bernoulli" in said[3]
    with pytest.raises(FedboundsError, match="no participants, first round 2, and empty_rounds is 'refuse'"):
        fb.advise({**asked, "participation": {"log": LISTS, "empty_rounds": "refuse"}})
    with pytest.raises(FedboundsError, match="unknown key of participation 'recorded': 'normalise'"):
        fb.advise({**asked, "participation": {"log": LISTS, "normalise": True}})


def test_the_accountant_takes_records_of_its_clients_by_name(paths: dict[str, Path]) -> None:
    one, other = (fb.ParticipationAccountant(["c", "b", "a", "d"]) for _ in range(2))
    one.add_record(paths["long.csv"])
    for row in LISTS:
        other.add(["abc"[n] for n in row])
    assert one.quantities() == other.quantities() and one.participations.tolist() == [3, 4, 3, 0]
    one.add_record([["a"]])
    assert one.rounds == 7
    with pytest.raises(FedboundsError, match="client 'x' is not one of the 4 clients"):
        one.add_record([["x"]])
    with pytest.raises(FedboundsError, match="full participation of 3 clients must be a record of 4 clients"):
        one.add_record(fb.participation.Full(3))
    weighted = fb.ParticipationAccountant(2)
    weighted.add_record([[0.25, 0.75], [1, 0]])
    assert weighted.quantities()["arbitrary-participation"]["least participation norm"] == 0.625**0.5


# --- clients and rounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("record", "more", "weights"), [
    ([["b"], ["a", "b"]], {}, [[0, 1], [1, 1]]),
    ([["b"], ["a", "b"]], {"clients": 3}, [[0, 1, 0], [1, 1, 0]]),
    ([["b"], ["a", "b"]], {"clients": ["c", "b", "a"]}, [[0, 1, 0], [0, 1, 1]]),
    ({0: [2], 1: [1]}, {}, [[0, 1], [1, 0]]),  # clients from 1 on
    ({0: [2], 1: [1]}, {"clients": 3}, [[0, 0, 1], [0, 1, 0]]),
    ({0: [2], 1: [1]}, {"clients": [1, 2]}, [[0, 1], [1, 0]]),
    ({0: [901], 1: [77]}, {"clients": [77, 901, 5]}, [[0, 1, 0], [1, 0, 0]]),  # names that are numbers
    ([{"round": 0, "client": 0, "weight": 1, "x": 2}, {"round": 1, "client": 1, "weight": 0.25}], {},
     [[1, 0], [0, 0.25]]),
    ({1: ["a"], 3: ["a"]}, {}, [[1], [0], [1]]),
    ({1: ["a"], 3: ["a"]}, {"start": 0}, [[0], [1], [0], [1]]),
    ({1: ["a"], 3: ["a"]}, {"rounds": 4}, [[1], [0], [1], [0]]),
    ({5: ["a"], 6: ["b"]}, {"start": 5, "rounds": 1}, [[1, 0]]),
    ({5: ["a"], 6: ["b"]}, {"start": 6}, [[0, 1]]),
    ({"client": [0, 0, 0], "start": [0, 5, 28], "end": [30, 10, 40]}, {"round_length": 20}, [[1], [1]]),
    ({"weights": [[1, 0], [0, 1], [1, 1]]}, {"start": 1, "rounds": 1}, [[0, 1]]),
    ({"Tag": [0, 1], "Wer": ["x", "y"], "q": [0.25, 2]}, {"columns": {"round": "Tag", "client": "Wer"}},
     [[0.25, 0], [0, 2]]),
    ({"round": [0, 0, 1], "client": ["x", "y", "x"], "samples": [1, 3, 9]}, {}, [[0.25, 0.75], [1, 0]]),
    ([[], [], ["a"]], {}, [[0], [0], [1]]),
    ([[], []], {"clients": 2}, [[0, 0], [0, 0]]),
])  # fmt: skip
def test_clients_and_rounds_that_do_not_appear_are_given(record, more, weights) -> None:
    assert np.asarray(Recorded.read(record, **more).weights).tolist() == weights


def test_availability_is_of_whole_rounds_as_a_slow_reference_finds_them() -> None:
    rng, N, length = np.random.default_rng(3), 4, 2.5
    starts = rng.integers(0, 60, 25) / 2
    ends = starts + rng.integers(0, 30, 25) / 2
    who = rng.integers(0, N, 25)
    free = {"client": who.tolist(), "start": starts.tolist(), "end": ends.tolist()}
    for begin in (0.0, 3.25):
        found = np.asarray(Recorded.read(free, clients=N, round_length=length, start=begin, rounds=12).weights)
        for t in range(12):
            moments = np.linspace(begin + t * length, begin + (t + 1) * length, 101)
            for n in range(N):
                own = [(a, b) for a, b, m in zip(starts, ends, who, strict=True) if m == n]
                assert found[t, n] == all(any(a - 1e-9 <= s <= b + 1e-9 for a, b in own) for s in moments)
    whole = Recorded.read(free, round_length=length)
    assert whole.rounds == int((ends.max() - starts.min()) / length)


HEADERS = [
    ("round,c,b,a\n0,1,0,0\n1,0.5,0.5,0\n", {"clients": ["a", "b", "c"]}, [[0, 0, 1], [0, 0.5, 0.5]]),
    ("round,2,0,1\n0,1,0,0\n1,0,1,0\n", {}, [[0, 0, 1], [1, 0, 0]]),
    ("round,2,0\n0,1,0\n", {"clients": 4}, [[0, 0, 1, 0]]),
    ("0,1,2\n1,0,1\n0,1,0\n", {"normalize": True}, [[0.5, 0, 0.5], [0, 1, 0]]),
    ("0,1\n1,0\n", {}, [[0, 1], [1, 0]]),  # attendance
    ("round,a,b\n1,1,0\n2,0,1\n3,1,1\n", {"start": 1}, [[1, 0], [0, 1], [1, 1]]),
    ("round,a,b\n1,1,0\n2,0,1\n3,1,1\n", {"start": 2, "rounds": 1}, [[0, 1]]),
    ("round,a,b\n1,1,0\n2,0,1\n", {"start": 0}, [[0, 0], [1, 0], [0, 1]]),
]


@pytest.mark.parametrize(("content", "more", "weights"), HEADERS)
def test_columns_are_placed_by_their_names_and_lines_by_their_rounds(content, more, weights, tmp_path) -> None:
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    assert np.asarray(Recorded.read(tmp_path / "a.csv", **more).weights).tolist() == weights


def test_columns_of_a_data_frame_are_placed_by_their_names() -> None:
    frame = Frame({"2": np.array([True, False]), "0": np.array([False, True]), "1": np.array([False, False])})
    frame.columns = ("2", "0", "1")
    assert np.asarray(Recorded.read(frame).weights).tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(FedboundsError, match="client 0 is not one of the 3 clients"):
        Recorded.read(frame, clients=["a", "b", "c"])


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("record", "more", "message"), [
    ([[3, 5], [0, 2]], {}, r"rows such as \[3, 5\] may be clients or weights: give \{'participants': \[...\]\}"),
    ([[0], [1]], {}, "may be clients or weights"),
    ({0: [0, 4]}, {}, r"names the clients 0, 4, with gaps between them: give clients=N"),
    ({0: ["a"]}, {"clients": ["b"]}, "client 'a' is not one of the 1 clients"),
    ({0: ["a", "b"]}, {"clients": 1}, "has 2 clients, and clients = 1; give clients=2 or more"),
    ([[], []], {}, "no participants: give clients=N"),
    ({5: ["a"]}, {}, "begins with round 5: give start=, the number of the first round"),
    ({0: ["a", "a"]}, {}, "client 'a' is named twice in round 0; keep one"),
    ({"mean": 1}, {}, "'mean' is no round and no known column"),
    ({0: 3}, {}, "round 0 has 3; expected clients, or client: weight"),
    ({"round": [0], "loss": [1]}, {}, "columns round, loss are no layout of participation; expected a column"),
    ({"round": [0], "client": [0, 1]}, {}, "columns round, client must be lists of the same length"),
    ({"round": [0], "client": [0], "weight": [-1]}, {}, "weight = -1 must be at least 0"),
    ({"round": [0.5], "client": [0]}, {}, "round = 0.5 must be a whole number of at least 0"),
    ({"client": [0], "start": [0], "end": [9]}, {}, "are availability: give round_length=, the length of a round"),
    ({"client": [0], "start": [9], "end": [0]}, {"round_length": 1, "rounds": 1}, "end = 0 is before start = 9"),
    ({"client": [0], "start": [0], "end": [9]}, {"round_length": 10}, "no round of round_length = 10 is complete by 9"),
    ({"client": [0], "start": [0], "end": [9]}, {"round_length": 0}, "round_length = 0 must be positive"),
    ({0: ["a"]}, {"round_length": 1}, "round_length is for columns client, start, end; leave it out"),
    (PRESENT, {"rounds": 9}, "rounds = 9 from start = 0, and the record has 6"),
    (PRESENT, {"clients": 4}, "clients = 4, and the participation has 3; leave clients= out"),
    (PRESENT, {"empty_rounds": "refuse"}, "1 of 6 rounds have no participants, first round 2, and empty_rounds is 're"),
    (PRESENT, {"empty_rounds": "keep"}, "unknown empty_rounds 'keep'"),
    ({0: ["a"]}, {"columns": {"who": "x"}}, "unknown column of participation 'who'"),
    ({"client": [0], "start": [0], "end": [1e12]}, {"round_length": 1e-3}, "needs about"),
    ({"client": [0, 1], "start": [0, 1], "end": [1e300, 2]}, {"round_length": 1e-300}, "1e-300 is too small"),
    (PRESENT, {"columns": "x"}, "columns = 'x' must map names"),
    ([{"round": 0, "client": 0}, {"round": 1, "client": 1, "weight": 0.25}], {}, "line 0 has no 'weight'"),
    ([{"round": 0, "participants": [0]}, {"round": 1}], {}, "line 1 has no 'participants'"),
    ({0: [0, 2, 10]}, {"clients": 10}, r"client 10 is not one of 0 to 9 \(clients = 10\)"),
    ({"0": ["a"], "00": ["b"]}, {}, "round 0 is given twice"),
])  # fmt: skip
def test_a_record_of_no_layout_is_one_line(record, more, message) -> None:
    with pytest.raises(FedboundsError, match=message) as refused:
        Recorded.read(record, **more)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.csv", "time,who\n0,x\n1,y\n", r"a.csv: columns time, who are no layout .* name them, e.g. columns = \{'round'"),
    ("a.csv", "round,client\n0,x\nlast,y\n", "a.csv, line 3: round = 'last' must be a whole number"),
    ("a.csv", 'round,participants\n0,"1 2"\n0,3\n', "a.csv, line 3: round 0 has two lines"),
    ("a.csv", "round,a,b\n0,1,0\n0,1,1\n", "a.csv: a round has two lines"),
    ("a.csv", "round,a,a\n0,1,0\n", "columns a, a name a client twice"),
    ("a.csv", "0,3,7\n1,0,1\n", "the first line, 0, 3, 7, may be ids of clients or weights: add a column round"),
    ("a.csv", 'round,participants\n0,"a b, c"\n', "line 2: the clients 'a b, c' have blanks in their names"),
    ("a.json", '{"0": ["a"], "0": ["b"]}', "a.json: the key '0' is given twice"),
    ("a.csv", "0.5,0.5\n1,x\n", "a.csv, line 2, column 2: 'x' is not a number"),
    ("a.json", "[[1, 0}", "a.json: not JSON"),
    ("a.json", "3", "a.json holds no rounds"),
    ("a.json", "[[0.5, 0.5], [1]]", "a.json: weights must be numbers in an array"),
])  # fmt: skip
def test_a_file_of_no_layout_is_one_line_with_its_name(name, content, message, tmp_path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FedboundsError, match=message) as refused:
        Recorded.read(tmp_path / name)
    assert "\n" not in str(refused.value)


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["0", "1", "a", "2.0", ""]),
)
NAMED = st.sampled_from(["round", "client", "participants", "start", "end", "weight", "samples", "weights", "0", "1"])
RECORDS = st.recursive(
    CELLS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMED | CELLS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(RECORDS, st.sampled_from([{}, {"clients": 3}, {"round_length": 0.5}, {"start": 0}, {"columns": {"round": "0"}}]))
def test_whatever_is_read_is_weights_or_one_line(record, more) -> None:
    if isinstance(record, str):
        return
    try:
        q = np.asarray(Recorded.read(record, **more).weights)
        assert q.ndim == 2 and np.isfinite(q).all() and (q >= 0).all()
    except FedboundsError as error:
        assert "\n" not in str(error)


# --- places of files ------------------------------------------------------------------------------------------------


def test_files_are_beside_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedbounds.empirical.sweep import plan

    found = []
    for place in ("one", "two"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "who.csv").write_text(FILES["wide.csv"], encoding="utf-8")
        (folder / "s.toml").write_text(SWEEP.format(name="who.csv", more=""), encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        (run,) = plan(read_sweep(f"{place}/s.toml"))
        assert run.task["participation"]["file"] == os.path.join(place, "who.csv")
        found.append(run.key)
    assert found[0] == found[1]  # wherever the files lie
    (tmp_path / "two" / "who.csv").rename(tmp_path / "who.csv")  # as before, in the working directory
    assert plan(read_sweep("two/s.toml"))[0].key == found[0]
    (tmp_path / "who.csv").unlink()
    with pytest.raises(FedboundsError, match=f"cannot read the record of participation {tmp_path}/two/who.csv"):
        plan(read_sweep("two/s.toml"))
