"""Where a command ends: no error of the operating system is a traceback, and a closed pipe is no error."""

import errno
import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import fedbounds
from fedbounds.bounds.evaluation import form_cache
from fedbounds.bounds.inputs.atomic_files import cache_folder
from tests.command_line import ROOT, run

FILES = ["figure s.toml --out {}", "confront s.toml fedau/theorem-2 --out {}", "report s.toml --out {}",
         "demo --out {}", "adversary fedau/theorem-2 --out {}", "covers non-convex --out {}", "explore --out {}",
         "certify fedau/theorem-2 --out {}", "results s.toml --csv {}", "run s.toml --out {}"]  # fmt: skip
RUNNERS = ["run s.toml --out", "figure s.toml --out x.png --results", "report s.toml --out r --results",
           "confront s.toml fedau/theorem-2 --out x.png --results"]  # fmt: skip
RUNS = 'rounds = 2\n[problem]\nkind = "toy"\n[participation]\nkind = "full"\n[algorithm]\nkind = "fedavg"\n'
STEPS = "local_step_size = 0.01\nlocal_steps = 1\n"


class Broken(io.StringIO):
    """A standard output that cannot be written."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, _: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"], ["eval", "--help"], ["--version"]])
def test_an_output_that_cannot_be_written_is_one_line_or_none(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for number, status, said in ((errno.ENOSPC, 2, "fedbounds: No space left on device\n"), (errno.EPIPE, 141, "")):
        with redirect_stdout(Broken(number)):
            assert fedbounds.main(words) == status
        assert capsys.readouterr().err == said


def test_a_pipe_that_nobody_reads_ends_the_command_quietly(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    said = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "fedbounds", "--version"]
    with open(write, "wb") as pipe:
        closed = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, cwd=tmp_path, env=said, check=False)
    assert (closed.returncode, closed.stderr) == (141, b"")
    with open("/dev/full", "wb") as full:
        filled = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, env=said, check=False)
    assert (filled.returncode, filled.stderr) == (2, b"fedbounds: No space left on device\n")


@pytest.mark.parametrize("name", ["n" * 300, "s.toml/x", "loop/x", "/dev/full", "n" * 300 + "/x"])
@pytest.mark.parametrize("line", FILES, ids=lambda line: line.partition(" ")[0])
def test_a_place_that_cannot_be_written_is_one_line(
    line: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(RUNS + STEPS)
    Path("loop").symlink_to("loop")
    ending = {"covers": ".csv", "results": ".csv", "certify": ".json", "adversary": ".json"}.get(line.split()[0], "")
    ending = ".png" if line.split()[0] in ("figure", "confront") else ending
    status, out, err = run(*line.format(name if name.startswith("/dev") else name + ending).split())
    assert (status, out) == (2, "") and err.startswith("fedbounds: ") and err.count("\n") == 1 and len(err) < 700, err
    assert not Path("results").exists() and not Path("/dev/full").is_file()


@pytest.mark.parametrize("place", ["s.toml", "loop", "/dev/full", "n" * 300])
@pytest.mark.parametrize("line", RUNNERS)
def test_a_folder_of_results_that_cannot_be_written_is_found_before_any_run(
    line: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a run has begun")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedbounds.empirical.sweep.maker.Maker.make", never)
    monkeypatch.setattr("fedbounds.empirical.comparison.compare_sweep.check_fits", lambda *_, **__: None)
    Path("s.toml").write_text(RUNS + STEPS)
    Path("loop").symlink_to("loop")
    status, out, err = run(*line.split(), place)
    assert (status, out) == (2, "") and err.count("\n") == 1 and len(err) < 900, err


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENAMETOOLONG])
def test_any_error_of_the_operating_system_is_one_line(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "the place")

    monkeypatch.setattr("fedbounds.cli.catalog.papers", fails)
    assert run("list") == (2, "", f"fedbounds: 'the place': {os.strerror(number)}\n")


@pytest.mark.parametrize("value", ["rel", "./rel", "", None, "~/rel"])
def test_a_relative_cache_folder_is_ignored(value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_folder() == tmp_path / "home" / ".cache" / "fedbounds"
    assert form_cache._cached("fedau", "x").startswith(str(cache_folder()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own" / "fedbounds"


def test_a_pipe_in_the_place_of_a_kept_view_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = Path(form_cache._cached("fedau", "theorem-2"))
    place.parent.mkdir(parents=True, mode=0o700)
    os.mkfifo(place, 0o600)
    form_cache.read_cached.cache_clear()
    monkeypatch.setattr(form_cache, "_shipped", lambda paper: str(tmp_path / "none"))
    try:
        assert form_cache.read_cached("fedau/theorem-2") is None
    finally:
        form_cache.read_cached.cache_clear()
