"""A directory of results: for each run a trace `KEY.npz` and a record `KEY.json`.

Both are written under a temporary name and renamed, the record last. A result counts only if its record is whole and
holds the checksum of the trace. A failed run has a record with its traceback, and no trace. Several processes may write
into one directory: temporary names, `KEY.npz.HOST.PID.BORN.THREAD.partial`, are unique to a process.

A record holds `key`, `status`, `checksum` (SHA-256 of the trace file), `task`, `seconds`, `core_seconds`,
`traceback`, `provenance` (time, host, versions, git) and `record_checksum` over all of these.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.atomic_files import write_atomically
from fedbounds.bounds.inputs.user_files import open_regular, read_bytes

if TYPE_CHECKING:
    from fedbounds.empirical.simulation.trace import Trace

MAX_RECORD_BYTES, MAX_TRACE_BYTES = 1 << 24, 1 << 32
ABANDONED = 3600  # seconds without a write, after which a temporary file of another host is removed
ATTEMPTS = 5
HOST = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:64]
BORN = time.time_ns()  # tells this process from an earlier one with the same number
# the second form is a folder of earlier versions
_SCRATCH = re.compile(r"[0-9a-f]{64}\.(?:(?:npz|json)\.(?P<host>[\w-]*)\.(?P<pid>\d+)\.(?P<born>\d+)\.\d+\.)?partial")


class CannotWrite(FedboundsError):
    """The results cannot be written: no run can go on."""


@dataclass(frozen=True)
class RunStatus:
    """The status of a run in the store."""

    status: str  # "done", "diverged" (some seed did), "error: ...", "missing" or "damaged: ..."
    record: Mapping[str, Any]  # the record, where it is whole

    @property
    def finished(self) -> bool:
        """A trace is there and whole."""
        return self.status in ("done", "diverged")

    @property
    def failed(self) -> bool:
        """The run raised."""
        return self.status.startswith("error: ")


@dataclass(frozen=True)
class Store:
    """The results in one directory; creating the object touches nothing on disk."""

    directory: Path

    def trace_path(self, key: str) -> Path:
        """Where the trace of this run lies."""
        return self.directory / f"{key}.npz"

    def record_path(self, key: str) -> Path:
        """Where the record of this run lies."""
        return self.directory / f"{key}.json"

    def read_status(self, key: str) -> RunStatus:
        """Look a run up, reading its trace once to compare checksums; never raises."""
        try:
            content = read_bytes(self.record_path(key), "its record", MAX_RECORD_BYTES)
        except FedboundsError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            return RunStatus("missing" if missing else f"damaged: {error}", {})
        record = _whole_record(content, key)
        if record is None:
            return RunStatus("damaged: its record is not whole", {})
        if record["status"] not in ("done", "diverged"):
            return RunStatus(record["status"], record)
        try:
            with open_regular(self.trace_path(key), "its trace", MAX_TRACE_BYTES) as file:
                checksum = _digest(file)
        except (OSError, FedboundsError) as error:
            return RunStatus(f"damaged: {error}", record)
        if checksum != record["checksum"]:
            return RunStatus("damaged: its trace does not have the checksum of its record", record)
        return RunStatus(record["status"], record)

    def load(self, key: str) -> Trace:
        """The trace of a finished run.

        Raises:
            FedboundsError: the run is missing, damaged, or has failed.
        """
        run_status = self.read_status(key)
        if not run_status.finished:
            raise FedboundsError(f"{self.trace_path(key)}: no result to read: {run_status.status}")
        from fedbounds.empirical.simulation.trace import Trace

        return Trace.load(self.trace_path(key))

    def save(self, key: str, trace: Trace, facts: Mapping[str, Any], *, sync: bool = True) -> str:
        """Keep a trace and its record; return the status, "done" or "diverged".

        Args:
            key, trace, facts: the run's; `facts` go into the record.
            sync: it shall outlive a power cut, too. Without that one that comes within the minute may leave it
                damaged, which is found out.

        Raises:
            CannotWrite: the directory cannot be written.
        """
        status = "diverged" if "diverged" in trace.statuses else "done"
        checksum = ""

        def write(file: BinaryIO) -> None:
            nonlocal checksum
            trace.write(file)
            file.seek(0)
            checksum = _digest(file)

        self._write(self.trace_path(key), write, sync)
        self._put_record(key, status, {**facts, "checksum": checksum}, sync)
        return status

    def save_error(self, key: str, status: str, facts: Mapping[str, Any], *, sync: bool = True) -> str:
        """Record that a run raised; return its status: "error: ...", unless another process has finished it meanwhile.

        Raises:
            CannotWrite: the directory cannot be written.
        """
        run_status = self.read_status(key)
        if run_status.finished:
            return run_status.status
        self._put_record(key, status, facts, sync)
        with suppress(OSError):  # it counts for nothing beside this record
            self.trace_path(key).unlink()
        return status

    def remove_leftovers(self) -> None:
        """Remove what killed processes left behind.

        That of this host goes if its process is gone. A process of another host cannot be asked: its goes once
        nothing has been written into it for an hour, by the file system's own clock.
        """
        for path in self.directory.glob("*.partial"):
            named = _SCRATCH.fullmatch(path.name)
            if named is None:
                continue
            with suppress(OSError):  # another process was faster, or nothing can be written here, as will be said
                if _writer_ended(**named.groupdict()) or self._now() - path.stat().st_mtime > ABANDONED:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _now(self) -> float:
        clock = self._scratch(self.trace_path("0" * 64))
        clock.touch()
        try:
            return clock.stat().st_mtime
        finally:
            clock.unlink()

    def _scratch(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.{HOST}.{os.getpid()}.{BORN}.{threading.get_ident()}.partial")

    def _put_record(self, key: str, status: str, facts: Mapping[str, Any], sync: bool) -> None:
        record = {"checksum": None, "traceback": None, **facts, "key": key, "status": status}
        lines = _lines(record)
        vouched = json.dumps(hashlib.sha256(lines).hexdigest()).encode()
        self._write(self.record_path(key), b'{\n"record_checksum": %s,\n%s\n}\n' % (vouched, lines), sync)

    def _write(self, path: Path, content: bytes | Callable[[BinaryIO], None], sync: bool) -> None:
        try:
            for _ in range(ATTEMPTS - 1):
                with suppress(FileNotFoundError):  # the first has no directory yet, or its scratch was swept up
                    return write_atomically(path, content, self._scratch(path), sync)
                self.directory.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content, self._scratch(path), sync)
        except OSError as error:
            raise CannotWrite(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def _writer_ended(host: str | None, pid: str | None, born: str | None) -> bool:
    """Whether the process that wrote a scratch was of this host and has ended."""
    if host != HOST or pid is None:
        return False
    if int(pid) == os.getpid():
        return born != str(BORN)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is another user's
        return False
    return False


def _digest(file: BinaryIO) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]


def _whole_record(content: bytes, key: str) -> dict[str, Any] | None:
    try:
        record = json.loads(content)
        vouched = record.pop("record_checksum")
        return record if vouched == hashlib.sha256(_lines(record)).hexdigest() and record["key"] == key else None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None


def _lines(record: Mapping[str, Any]) -> bytes:
    """A record without its braces, an entry a line; what is read from that has the same lines."""
    entries = sorted(record.items())
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in entries).encode()
