"""Files of users: whatever a path leads to, no command waits for it or takes in more than it says."""

import os
import threading

import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.user_files import DEEPEST, nests_deeper, open_regular, read_bytes, read_text, read_toml
from fedbounds.bounds.inputs.value_grammar import parse_assignments


@pytest.fixture
def pipe(tmp_path):
    """A pipe that nobody writes into: reading it waits for ever."""
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    return path


def within_a_second(read, *arguments):
    """The one line that refuses, from a thread that must not be waiting a second later."""
    told: list[str] = []

    def attempt():
        try:
            read(*arguments)
        except FedboundsError as error:
            told.append(str(error))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(1)
    assert not thread.is_alive(), "still waiting"
    assert len(told) == 1 and len(told[0].splitlines()) == 1
    return told[0]


READERS = [
    (read_toml, lambda path: (path,)),
    (read_text, lambda path: (path, "it", 1000)),
    (lambda path: parse_assignments({"p": f"@{path}"}), lambda path: (path,)),
]


@pytest.mark.parametrize(("read", "arguments"), READERS)
def test_pipes_devices_and_folders_are_refused_at_once(read, arguments, pipe, tmp_path):
    for path, kind in ((pipe, "a pipe"), ("/dev/zero", "a device"), ("/dev/null", "a device"), (tmp_path, "directory")):
        assert kind in within_a_second(read, *arguments(path))
    for path in ("", "\0", "x" * 5000, tmp_path / "absent" / "deep"):
        assert "cannot read" in within_a_second(read, *arguments(path))


def test_a_file_is_read_up_to_the_size_that_was_said(tmp_path):
    path = tmp_path / "some.txt"
    path.write_bytes(b"x" * 100)
    assert read_bytes(path, "it", 100) == b"x" * 100
    with pytest.raises(FedboundsError, match="it: 100 bytes, at most 99 are read"):
        read_bytes(path, "it", 99)


def test_a_file_that_does_not_know_its_size_is_read_no_further():
    with pytest.raises(FedboundsError, match="goes on beyond the 10 bytes"):
        read_bytes("/proc/self/status", "it", 10)  # a regular file of size 0


@pytest.mark.parametrize(
    "text",
    [
        "a." * 2000 + "a = 1",
        " . ".join(['"a"'] * 2000) + " = 1",
        f"[{'a.' * 2000}a]\n",
        f"b = {{ {'a.' * 2000}a = 1 }}",
        "b = " + "[" * 2000 + "]" * 2000,
        "b = " + "{ a = " * 2000,
        "b = " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
    ],
)
def test_what_nests_thousands_deep_is_refused_before_it_is_parsed(text, tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text(text)
    assert f"more than {DEEPEST} deep" in within_a_second(read_toml, path)


def test_what_looks_deep_and_is_not_is_read(tmp_path):
    path = tmp_path / "flat.toml"
    path.write_text("p = [" + "0.1, " * 20_000 + "]\nq = '" + "x" * 100_000 + "'\n# " + "-" * 100_000 + '\nr = "a . b"')
    assert len(read_toml(path)["p"]) == 20_000
    path.write_text("b = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1))
    assert nests_deeper(read_toml(path), DEEPEST - 1) and not nests_deeper(read_toml(path), DEEPEST)


def test_numbers_that_no_float_holds_are_refused_in_one_short_line(tmp_path):
    path = tmp_path / "large.toml"
    path.write_text("L = " + "9" * 4000)
    assert "L = 999" in (told := within_a_second(lambda: parse_assignments(read_toml(path)))) and len(told) < 120
    path.write_text("L = " + "9" * 5000)
    assert "not TOML" in within_a_second(read_toml, path)
    path.write_text("9" * 200_000)
    assert "not a CSV file" in within_a_second(lambda: parse_assignments({"p": f"@{path}"}))


def test_an_open_file_reads_as_any_other(tmp_path):
    path = tmp_path / "some.txt"
    path.write_bytes(b"one\ntwo\n")
    with open_regular(path, "it", 100) as file:
        assert file.readlines() == [b"one\n", b"two\n"]


def test_paths_in_a_file_are_relative_to_its_folder(tmp_path, monkeypatch):
    """The file's own folder first, then the working directory; else the full path of the first."""
    (tmp_path / "inner").mkdir()
    for place in ("both", "inner/both", "here", "inner/beside", "inner/rates.csv"):
        (tmp_path / place).write_text("")
    text = """
    p = "@rates.csv"
    log = "both"
    other = "beside"
    vary = {"problem.data" = ["beside", "/beside"], "x.file" = ["here", "none"]}
    [[deep]]
    file = ["beside"]
    """
    (tmp_path / "inner" / "s.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert read_toml("inner/s.toml") == {
        "p": "@inner/rates.csv",
        "log": "inner/both",
        "other": "beside",
        "vary": {"problem.data": ["inner/beside", "/beside"], "x.file": ["here", f"{tmp_path}/inner/none"]},
        "deep": [{"file": ["inner/beside"]}],
    }
    monkeypatch.chdir(tmp_path / "inner")
    assert read_toml("s.toml")["log"] == "both"
