"""A directory of results: for each run one `KEY.npz` and, beside it, one `KEY.json` that vouches for it.

The trace is written under a temporary name, synced and renamed; then the record, likewise. A result counts
only if its record is whole and the checksum in it is the trace's, so a run that was killed is simply not
there and a damaged file is found out. A run that raised has a record with the error and its traceback, and no
trace.

A record holds `key`, `status`, `checksum` (SHA-256 of the trace file), `task`, `seconds`, `traceback`,
`provenance` (time, host, versions, git) and `record_checksum` over all of these.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedbounds.bounds.atomic import write_atomically
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.reading import open_regular, read_bytes
from fedbounds.empirical.sweep.keys import canonical_json

if TYPE_CHECKING:
    from fedbounds.empirical.trace import Trace

MAX_RECORD_BYTES, MAX_TRACE_BYTES = 1 << 24, 1 << 32


class CannotWrite(FedboundsError):
    """The results cannot be written: no run can go on."""


@dataclass(frozen=True)
class Standing:
    """What the store knows of a run.

    Args:
        status: "done", "diverged" (some seed did), "error: ...", "missing" or "damaged: ...".
        record: the record beside the trace, where there is a whole one.
    """

    status: str
    record: Mapping[str, Any]

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

    def standing(self, key: str) -> Standing:
        """Look a run up, reading its trace once to compare checksums; never raises."""
        try:
            content = read_bytes(self.record_path(key), "its record", MAX_RECORD_BYTES)
        except FedboundsError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            return Standing("missing" if missing else f"damaged: {error}", {})
        record = _whole_record(content, key)
        if record is None:
            return Standing("damaged: its record is not whole", {})
        if record["status"] not in ("done", "diverged"):
            return Standing(record["status"], record)
        try:
            with open_regular(self.trace_path(key), "its trace", MAX_TRACE_BYTES) as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
        except (OSError, FedboundsError) as error:
            return Standing(f"damaged: {error}", record)
        if checksum != record["checksum"]:
            return Standing("damaged: its trace does not have the checksum of its record", record)
        return Standing(record["status"], record)

    def load(self, key: str) -> Trace:
        """The trace of a finished run.

        Raises:
            FedboundsError: the run is missing, damaged, or has failed.
        """
        standing = self.standing(key)
        if not standing.finished:
            raise FedboundsError(f"{self.trace_path(key)}: no result to read: {standing.status}")
        from fedbounds.empirical.trace import Trace

        return Trace.load(self.trace_path(key))

    def save(self, key: str, trace: Trace, facts: Mapping[str, Any]) -> str:
        """Keep a trace and its record; return the status, "done" or "diverged".

        Raises:
            CannotWrite: the directory cannot be written.
        """
        status = "diverged" if "diverged" in trace.statuses else "done"
        temporary = self._scratch(key) / "trace.npz"
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            trace.save(temporary)
            with temporary.open("rb") as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
            temporary.replace(self.trace_path(key))
        except (OSError, FedboundsError) as error:
            raise _cannot_write(self.directory, error) from error
        self._write_record(key, status, {**facts, "checksum": checksum})
        return status

    def save_error(self, key: str, status: str, facts: Mapping[str, Any]) -> str:
        """Record that a run raised; return the status, "error: ...".

        Raises:
            CannotWrite: the directory cannot be written.
        """
        self._write_record(key, status, facts)
        self.trace_path(key).unlink(missing_ok=True)
        return status

    def sweep_up(self, key: str) -> None:
        """Remove what a killed run of this key left behind."""
        shutil.rmtree(self._scratch(key), ignore_errors=True)

    def _scratch(self, key: str) -> Path:
        return self.directory / f"{key}.partial"

    def _write_record(self, key: str, status: str, facts: Mapping[str, Any]) -> None:
        record = {"checksum": None, "traceback": None, **facts, "key": key, "status": status}
        record["record_checksum"] = _checksum(record)
        content = json.dumps(record, indent=1, sort_keys=True).encode() + b"\n"
        temporary = self._scratch(key) / "record.json"
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.record_path(key), content, temporary)
        except OSError as error:
            raise _cannot_write(self.record_path(key), error) from error


def _whole_record(content: bytes, key: str) -> dict[str, Any] | None:
    try:
        record = json.loads(content)
        vouched = record.pop("record_checksum")
        return record if vouched == _checksum(record) and record["key"] == key else None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(record).encode()).hexdigest()


def _cannot_write(path: Path, error: Exception) -> CannotWrite:
    return CannotWrite(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}")
