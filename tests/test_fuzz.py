"""Any words on the command line: exit status 0, 1 or 2, no traceback, one line for bad input, JSON that parses."""

from __future__ import annotations

import json
import os
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedbounds import command_line
from fedbounds.bounds.theory.registry import load, results
from tests.command_line import run

# For one example: of this process's computing, which other processes do not lengthen, and on the wall, for what only
# waits. A search that is cut off says nothing about its answer.
COMPUTING, WAITING = 20, 300
SEARCHES = {"rounds", "optimize", "compare"}
RESULTS = [result.key for result in results()]
FEW = [
    key for key in RESULTS if key.endswith(("theorem-1", "theorem-2", "theorem-3.1", "corollary-3.2", "lemma-b.3.1"))
]
PLAIN = ["1", "2", "0.5", "3", "10", "0.01", "1000", "1/3"]
EXTREME = [
    "0",
    "-1",
    "1e300",
    "1e-300",
    "1e9",
    "5e-324",
    "1.7e308",
    "nan",
    "inf",
    "-inf",
    "10.5",
    "1e6",
    "1/0",
    "1e308*10",
    "sqrt(-1)",
    "2**64**64",
    "L",
    "1,2",
    "1,2,",
    ",",
    "x",
    "@",
    "@absent.csv",
    "@pipe",
    "@/dev/zero",
    "(((",
    "é",
    "=",
    "%s{}",
    "__import__('os')",
    "0x10",
    "1_000",
    "[1]",
    "true",
    "'",
    "1:2:log:3",
    "::::",
]
EXTREME += ["9" * 400, "x" * 3000, "\n", "\0"]
WORDS = ["--json", "--form", "--set", "--from", "--assume", "--within", "--over", "--out", "--nosuch", "-h", "--"]
MADE_OF = st.text(alphabet="aeE019.,:=-+*/()@\n\0 é\\'\"[]{}_", max_size=12)
number = st.one_of(st.sampled_from(PLAIN), st.sampled_from(PLAIN), st.sampled_from(EXTREME), MADE_OF)
key = st.one_of(st.sampled_from(RESULTS), st.sampled_from(FEW), st.sampled_from(EXTREME + WORDS), MADE_OF)
form = st.sampled_from([[], [], ["--form", "sharp"], ["--form", "printed"], ["--form", "explicit"], ["--form", "zzz"]])
as_json = st.sampled_from([[], ["--json"]])
rubbish = st.lists(st.one_of(st.sampled_from(WORDS + EXTREME), MADE_OF), max_size=2)


@st.composite
def constants(draw: st.DrawFn, which: str) -> list[str]:
    """Constants of a result, mostly plain, some extreme, some left out."""
    try:
        notation = load(which).notation
    except ValueError:
        return [f"L={draw(number)}"]
    odd = draw(st.sampled_from([0, 0, 1, 3]))
    names = [n for n in notation if draw(st.integers(0, 9)) < 9]
    strange = set(draw(st.lists(st.sampled_from(names), min_size=odd, max_size=odd))) if names else set()
    words = []
    for name in names:
        plain = draw(st.sampled_from(PLAIN))
        value = draw(number) if name in strange else f"{plain},{plain}" if notation[name].shape else plain
        words.append(f"{name}={value}")
    return words


@st.composite
def about_results(draw: st.DrawFn) -> list[str]:
    """show, list, eval, refute and audit."""
    command = draw(st.sampled_from(["show", "list", "refute", "audit", "eval", "eval", "eval", "eval"]))
    which = draw(key)
    if command == "list":
        return [command, "--paper", which, *draw(as_json)]
    if command == "audit":  # of claims that do not exist, which are found out before anything is tried
        return [command, draw(st.sampled_from([*EXTREME, "nosuch/claim"])), *draw(as_json)]
    if command == "refute":
        return [command, *draw(st.sampled_from([[], [which], ["chebyshev-for-one-window"]])), *draw(as_json)]
    if command == "show":
        style = draw(st.sampled_from([[], ["--latex"], ["--bibtex"], ["--sympy"]]))
        return [command, which, *draw(form), *style, *draw(as_json), *draw(rubbish)]
    taken = draw(st.sampled_from([[], ["--assume", "all"], ["--trust", which], ["--from", "constants.toml"]]))
    return [command, which, *draw(form), *draw(constants(which)), *taken, *draw(as_json), *draw(rubbish)]


@st.composite
def searches(draw: st.DrawFn) -> list[str]:
    """optimize, rounds and compare."""
    command, which = draw(st.sampled_from(sorted(SEARCHES))), draw(st.one_of(st.sampled_from(FEW), key))
    given_ones = draw(constants(which))
    free = draw(st.sampled_from(["gamma", "gamma,eta", "eta", "K", "zzz", ",", "gamma,gamma"]))
    ends = draw(st.sampled_from([[], ["--within", f"{free}={draw(number)}:{draw(number)}"]]))
    given_ones = [word for word in given_ones if word.partition("=")[0] not in free.split(",")]
    if command == "optimize":
        return [command, which, "--over", free, *ends, *draw(form), *given_ones, *draw(as_json)]
    if command == "rounds":
        given_ones = [word for word in given_ones if not word.startswith("T=")]
        extra = draw(
            st.sampled_from(
                [[], ["--dimension", draw(number)], ["--solve", draw(st.sampled_from(["sigma", "T", "?"]))]]
            )
        )
        return [command, which, "--epsilon", draw(number), *extra, *draw(form), *given_ones, *draw(as_json)]
    symbol = draw(st.sampled_from(["T", "F", "L", "sigma", "rounds", "p", "zzz"]))
    span = draw(st.sampled_from([draw(number), f"{draw(number)}:{draw(number)}", f"1:2:{draw(number)}:{draw(number)}"]))
    given_ones = [word for word in given_ones if not word.startswith(f"{symbol}=")]
    out = draw(
        st.sampled_from([[], [], ["--out", "t.csv"], ["--out", "."], ["--out", "t.zzz"], ["--out", "file/t.csv"]])
    )
    return [command, which, "--vary", f"{symbol}={span}", *given_ones, *out, *draw(as_json)]


TOML = """1|2|3|2.0|0|-1|10.5|1e6|1e9|1e300|nan|inf|true|"x"|[]|[1]|[[1.0]]|[0.1, 0.2]|{}|{ a = 1 }|1979-05-27|20000
""".strip().split("|")
TOML += ["9" * 60, "[" * 50 + "]" * 50, '"' + "x" * 999 + '"']
PLACES = {
    "": ["rounds", "seeds", "seeds_per_run", "record_every", "engine", "name", "streams", "record_models", "nosuch"],
    "problem": [
        "kind",
        "clients",
        "dimension",
        "noise",
        "heterogeneity",
        "condition",
        "shared",
        "diagonal",
        "seed",
        "x0",
    ],
    "participation": ["kind", "clients", "participants", "probability", "weights", "file", "leave"],
    "algorithm": ["kind", "local_step_size", "local_steps", "server_multiplier", "interval", "weights", "cutoff"],
    "vary": ["rounds", '"problem.noise"', '"algorithm.local_steps"', "together", "a.b.c", '"problem.clients"'],
}


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[list[str], str]:
    """run and results, with the text of the sweep."""
    tables = {
        "": {"rounds": "3", "seeds": "2"},
        "problem": {"kind": '"quadratic"', "clients": "3", "dimension": "2"},
        "participation": {"kind": draw(st.sampled_from(['"full"', '"cyclic"', '"permutation"'])), "clients": "3"},
        "algorithm": {"kind": '"fedavg"', "local_step_size": "0.1", "local_steps": "2"},
        "vary": {},
    }
    for _ in range(draw(st.integers(0, 3))):
        table = draw(st.sampled_from(sorted(tables)))
        tables[table][draw(st.sampled_from(PLACES[table]))] = draw(st.sampled_from(TOML))
    lines = []
    for table, rows in tables.items():
        lines += [f"[{table}]"] if table else []
        lines += [f"{name} = {value}" for name, value in rows.items()]
    text = "\n".join([*lines, draw(st.sampled_from(["", "", "a" + ".a" * 999 + " = 1", "\n[[", "# é"]))])
    command = draw(
        st.sampled_from(
            [["run", "--dry-run", "--probe", "0"], ["run", "--dry-run", "--probe", "0"], ["results"], ["run"]]
        )
    )
    out = draw(st.sampled_from([["--out", "kept"], ["--out", "file"], ["--out", "x" * 300], []]))
    return [command[0], "sweep.toml", *command[1:], *out, *draw(as_json), *draw(rubbish)[:1]], text


class Slow(BaseException):
    """An example has run for too long."""


@contextmanager
def in_time() -> Iterator[None]:
    """Interrupts what computes or waits for too long."""

    def stop(number: int, _: object) -> None:
        raise Slow(f"{COMPUTING} s of computing" if number == signal.SIGPROF else f"{WAITING} s")

    limits = ((signal.SIGPROF, signal.ITIMER_PROF, COMPUTING), (signal.SIGALRM, signal.ITIMER_REAL, WAITING))
    before = [(number, signal.signal(number, stop)) for number, _, _ in limits]
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for _, timer, _ in limits:
            signal.setitimer(timer, 0)
        for number, handler in before:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working directory with a pipe, a file and some constants."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "constants.toml").write_text("L = 1\nF = 2.5\nT = 1e6\n")


def judge(words: list[str]) -> None:
    """Run the words in process and hold the house to what it promises."""
    try:
        with warnings.catch_warnings(), in_time():
            warnings.simplefilter("error")  # a warning that gets through would be a line on standard error
            status, said, told = run(*words)
    except Slow as slow:
        assert words[0] in SEARCHES | {"audit"}, f"{words} takes over {slow}"
        assume(False)
    except BaseException:
        pytest.fail(f"{words}: {traceback.format_exc(limit=-4)}")
    assert status in (0, 1, 2), (words, status)
    assert "Traceback" not in told and "Warning" not in told, (words, told)
    if status == 2:
        assert said == "" and told.startswith("fedbounds: ") and told.endswith("\n"), (words, said, told)
        assert len(told.splitlines()) == 1 and len(told) < 1500, (words, told)
    elif status == 0:
        assert told == "", (words, told)
        if "--json" in words and not {"-h", "--help"} & set(words):
            json.loads(said, parse_constant=lambda name: pytest.fail(f"{words}: {name} is no JSON"))


@given(about_results())
@settings(max_examples=60)
def test_reading_theory_answers_whatever_the_words(words):
    judge(words)


@given(searches())
@settings(max_examples=20)
def test_searching_theory_answers_whatever_the_words(words):
    judge(words)


@given(sweeps())
@settings(max_examples=40)
def test_running_sweeps_answers_whatever_the_file(sweep):
    words, text = sweep
    with open("sweep.toml", "w", encoding="utf-8") as file:
        file.write(text)
    judge(words)


@given(
    st.lists(
        st.one_of(st.sampled_from([*command_line.COMMANDS, *WORDS]), st.sampled_from(EXTREME), MADE_OF), max_size=5
    )
)
@settings(max_examples=60)
def test_any_words_at_all_are_answered(words):
    assume(words[:1] not in (["demo"], ["figure"], ["adversary"]) and (words[:1] != ["audit"] or len(words) > 2))
    judge(words)


@pytest.mark.parametrize(
    "words",
    [
        ["figure", *more]
        for more in (["x", "--out", "a.png"], ["fedau/zzz", "--out", "a.png"], ["fedau", "--out", "a.png"], ["a.toml"],
                     ["absent.toml", "--out", "a.png"], ["sweep.toml", "--out", "a.zzz"], ["\0.toml", "--out", "a.png"])
    ]
    + [["demo", *more] for more in (["--workers", "0"], ["--workers", "x"], ["--scale", "?"], ["--out", ""], ["x"])],
)  # fmt: skip
def test_drawing_refuses_what_it_cannot_draw(words):
    judge(words)


@pytest.mark.long
@given(st.one_of(about_results(), about_results(), searches(), sweeps()))
@settings(max_examples=3000, derandomize=False)
def test_long_fuzz_of_every_command(drawn):
    words, text = drawn if isinstance(drawn, tuple) else (drawn, "")
    if text:
        with open("sweep.toml", "w", encoding="utf-8") as file:
            file.write(text)
    judge(words)
