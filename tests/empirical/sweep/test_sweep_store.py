"""The store: a result is there whole, or it is not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.atomic_files import write_file
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Store
from fedbounds.empirical.sweep.store import CannotWrite
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in

(RUN,) = runs_of(["fine"])
TRACE = stand_in(RUN.task)


def kept(directory: Path) -> Store:
    store = Store(directory)
    assert store.save(RUN.key, TRACE, {"task": RUN.task}) == "done"
    return store


def test_what_was_saved_is_found_and_read_back(tmp_path: Path) -> None:
    store = kept(tmp_path)
    assert store.read_status(RUN.key).finished and store.read_status(RUN.key).record["task"] == RUN.task
    assert (store.load(RUN.key).loss == TRACE.loss).all()
    assert sorted(path.name for path in tmp_path.glob("*.*") if path.is_file()) == [f"{RUN.key}.json", f"{RUN.key}.npz"]


def test_looking_up_touches_nothing_on_disk(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.read_status("0" * 64).status == "missing" and not (tmp_path / "none").exists()


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_every_changed_byte_of_the_trace_or_the_record_is_found_out(suffix: str, tmp_path: Path) -> None:
    store = kept(tmp_path)
    before, path = dict(store.read_status(RUN.key).record), tmp_path / f"{RUN.key}.{suffix}"
    content = path.read_bytes()
    for index, byte in enumerate(content):
        path.write_bytes(content[:index] + bytes([byte ^ 1 << index % 8]) + content[index + 1 :])
        run_status = store.read_status(RUN.key)
        if suffix == "npz" or not run_status.finished:
            assert run_status.status.startswith("damaged: ")
        else:  # white space between two values: the record says the same
            assert dict(run_status.record) == before
    with pytest.raises(FedboundsError, match="damaged"):
        path.write_bytes(content[:-2])
        store.load(RUN.key)


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_a_file_cut_short_anywhere_is_found_out(suffix: str, tmp_path: Path) -> None:
    store = kept(tmp_path)
    path = tmp_path / f"{RUN.key}.{suffix}"
    content = path.read_bytes()
    for length in range(len(content) - 1):  # but for the last line feed of a record
        path.write_bytes(content[:length])
        assert store.read_status(RUN.key).status.startswith("damaged: ")


@pytest.mark.parametrize(
    ("suffix", "status"), [("npz", "damaged: cannot read its trace: No such file"), ("json", "missing")]
)
def test_half_of_a_result_is_no_result(suffix: str, status: str, tmp_path: Path) -> None:
    store = kept(tmp_path)
    (tmp_path / f"{RUN.key}.{suffix}").unlink()
    assert store.read_status(RUN.key).status.startswith(status)


@pytest.mark.parametrize(
    "content", [b"null", b"[1]", b"{}", b'{"record_checksum": 1}', b"\xff", b"[" * 10**6, b"1" * 10**5]
)
def test_a_record_that_is_something_else_is_found_out(content: bytes, tmp_path: Path) -> None:
    store = kept(tmp_path)
    store.record_path(RUN.key).write_bytes(content)
    assert store.read_status(RUN.key).status == "damaged: its record is not whole"


def test_the_files_of_another_run_are_not_taken_for_this_one(tmp_path: Path) -> None:
    store = kept(tmp_path)
    other = "f" * 64
    for path, new in ((store.trace_path, store.trace_path(other)), (store.record_path, store.record_path(other))):
        new.write_bytes(path(RUN.key).read_bytes())
    assert store.read_status(other).status == "damaged: its record is not whole"


def test_an_error_takes_the_place_of_a_damaged_result_alone_and_a_result_that_of_an_error(tmp_path: Path) -> None:
    store = kept(tmp_path)
    assert store.save_error(RUN.key, "error: no", {}) == "done" and store.read_status(RUN.key).finished
    store.trace_path(RUN.key).write_bytes(b"")
    assert store.save_error(RUN.key, "error: no", {"traceback": "Traceback: no"}) == "error: no"
    assert store.read_status(RUN.key).failed and not store.trace_path(RUN.key).exists()
    assert json.loads(store.record_path(RUN.key).read_text())["traceback"] == "Traceback: no"
    with pytest.raises(FedboundsError, match="no result to read: error: no"):
        store.load(RUN.key)
    kept(tmp_path)
    assert store.read_status(RUN.key).finished


class Unwritable(Trace):
    def write(self, file: BinaryIO) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_the_earlier_result_whole(tmp_path: Path) -> None:
    store = kept(tmp_path)
    unwritable = Unwritable(TRACE.arrays, TRACE.dims, TRACE.spec, TRACE.engine, TRACE.statuses)
    with pytest.raises(CannotWrite, match="No space left on device"):
        store.save(RUN.key, unwritable, {})
    assert store.read_status(RUN.key).finished


def test_a_directory_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match=r"cannot write .*file"):
        Store(tmp_path / "file").save(RUN.key, TRACE, {})
    with pytest.raises(FedboundsError, match=r"cannot write .*file"):
        write_file(tmp_path / "file" / "table.csv", b"")


def test_an_atomic_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        write_file(tmp_path / "deep" / "table.csv", content)
        assert [path.read_bytes() for path in (tmp_path / "deep").iterdir()] == [content]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_every_file_that_is_written_has_the_mode_of_a_new_file(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        kept(tmp_path)
        TRACE.save(tmp_path / "trace.npz")
        write_file(tmp_path / "table.csv", b"")
    finally:
        os.umask(before)
    written = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_file()}
    assert written == dict.fromkeys([f"{RUN.key}.npz", f"{RUN.key}.json", "trace.npz", "table.csv"], mode)
