"""Files that are there whole or not at all: written under a temporary name, synced, renamed.

Our own, as it is a few lines of the standard library, and an error of the disk is told as one of ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from fedbounds.bounds.errors import FedboundsError


def cache_folder() -> Path:
    """Where what can be made again is kept: in XDG_CACHE_HOME, else in ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG Base Directory Specification: a path that is not absolute is ignored
    return Path(home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".cache")) / "fedbounds"


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file or nothing, and the directories above it.

    Raises:
        FedboundsError: the place cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except (OSError, ValueError) as error:  # ValueError: a path without a name, or with a null character
        reason = getattr(error, "strerror", None) or error
        raise FedboundsError(f"cannot write {str(path)!r}: {reason}") from error


def write_atomically(
    path: Path, content: bytes | Callable[[BinaryIO], object], temporary: Path | None = None, sync: bool = True
) -> None:
    """Write a whole file or nothing, with the mode of any new file (0666 without the umask).

    Args:
        path: the file; its directory must be there.
        content: what it will hold, or a function that writes it into a file open for both, and may read it again.
        temporary: the name to write under first, in the same file system (default: a new hidden one beside `path`).
        sync: it shall outlive a power cut, too, which takes up to 20 ms on a disk.

    Raises:
        OSError: the file cannot be written; what was at `path` before is untouched.
    """
    temporary = temporary or path.with_name(f".{os.urandom(16).hex()}.partial")  # shorter than the longest legal names
    try:
        with temporary.open("w+b") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
