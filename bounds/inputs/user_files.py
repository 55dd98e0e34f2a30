"""Files of users: regular files of bounded size, opened so that nothing can make a command wait or fill the memory."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from fedbounds.bounds.errors import FedboundsError

LARGEST_TOML = 2**20  # bytes
FILE_KEYS = ("data", "file", "log")  # of TOML files: their texts name files or folders
# other keys whose texts name a file if the part before a colon ends so
ENDINGS = {"dataset": (".npz",), "partition": (".csv", ".npy", ".json"), "network": (".py",)}
DEEPEST = 32  # tables and lists within each other; what reads them is recursive
TOO_DEEP = f"tables and lists lie within each other more than {DEEPEST} deep"
# an endless dotted key: its prefixes alone are quadratic in its length
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST},}}")

_INPUTS: ContextVar[set[tuple[int, int]] | None] = ContextVar("inputs", default=None)
_PROTECTED: set[str] = set()  # the user's own logs, from which traces of this process were read


def inputs() -> frozenset[tuple[int, int]] | None:
    """Device and number of every file that was read inside `record_inputs`, or named in a TOML file; None outside."""
    noted = _INPUTS.get()
    return None if noted is None else frozenset(noted)


@contextmanager
def record_inputs() -> Iterator[None]:
    """Note which files are read, so that none of them is overwritten (`fedbounds.bounds.inputs.output_files`)."""
    token = _INPUTS.set(set()) if _INPUTS.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _INPUTS.reset(token)


def protect(path: str | os.PathLike[str]) -> None:
    """Never overwrite this file of the user's in this process, wherever a trace that was read from it goes."""
    _PROTECTED.add(os.path.abspath(path))


def is_protected(path: Path) -> bool:
    """Whether a file that is there is one of those, under whatever name."""
    for name in _PROTECTED:
        with suppress(OSError, ValueError):
            if os.path.samefile(name, path):
                return True
    return False


def _note(about: os.stat_result) -> None:
    if (noted := _INPUTS.get()) is not None:
        noted.add((about.st_dev, about.st_ino))


def open_regular(path: str | os.PathLike[str], what: str, largest: int, *, noted: bool = True) -> BinaryIO:
    """A regular file of bounded size, open for reading; pipes, devices and directories are refused without waiting.

    Args:
        path: where it lies.
        what: it is, as the error names it: "cannot read `what`: ...".
        largest: bytes that it may have.
        noted: it is an input, see `record_inputs`.

    Raises:
        FedboundsError: it cannot be opened, is no regular file, or is larger.

    Example:
        >>> open_regular("/dev/zero", "the sweep file /dev/zero", 1000)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: cannot read the sweep file /dev/zero: it is a device; only regular files
        are read
    """
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY))  # noqa: SIM115
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise FedboundsError(f"cannot read {what}: {getattr(error, 'strerror', None) or error}") from error
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode):
        file.close()
        kind = "a pipe" if stat.S_ISFIFO(about.st_mode) else "a socket" if stat.S_ISSOCK(about.st_mode) else "a device"
        raise FedboundsError(f"cannot read {what}: it is {kind}; only regular files are read")
    if about.st_size > largest:
        file.close()
        raise FedboundsError(f"{what}: {about.st_size} bytes, at most {largest} are read")
    if noted:
        _note(about)
    return file


def read_bytes(path: str | os.PathLike[str], what: str, largest: int, *, noted: bool = True) -> bytes:
    """The whole content of a regular file of bounded size; see `open_regular`.

    Raises:
        FedboundsError: as there, or the file grows while it is read.
    """
    with open_regular(path, what, largest, noted=noted) as file:
        try:
            content = file.read(largest + 1)
        except OSError as error:
            raise FedboundsError(f"cannot read {what}: {error.strerror or error}") from None
    if content is None or len(content) > largest:
        raise FedboundsError(f"{what}: goes on beyond the {largest} bytes that are read")
    return content


def read_text(path: str | os.PathLike[str], what: str, largest: int, *, noted: bool = True) -> str:
    """The same as text in UTF-8, with or without a byte order mark.

    Raises:
        FedboundsError: as there, or it is not text.
    """
    try:
        return read_bytes(path, what, largest, noted=noted).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FedboundsError(f"cannot read {what}: not a text file in UTF-8") from None


def read_toml(path: str | Path, *, names_files: bool = True) -> dict[str, Any]:
    """A TOML file as a dictionary; relative paths in it are relative to its folder, or else to the working directory.

    Args:
        path: the file.
        names_files: whether its texts can name files; if not, "@misc{...}" is a text like any other.

    Raises:
        FedboundsError: it cannot be read, is too large, nests too deeply, or is not TOML (with the line).
    """
    import tomllib  # takes its time

    text = read_text(path, str(path), LARGEST_TOML)
    try:
        document = {} if (deep := bool(_LONG_KEY.search(text))) else tomllib.loads(text)
    except RecursionError:
        document, deep = {}, True
    except ValueError as error:  # also: a whole number of thousands of digits
        raise FedboundsError(f"{path}: not TOML: {' '.join(str(error).split())}") from None
    if deep or nests_deeper(document, DEEPEST):
        raise FedboundsError(f"{path}: {TOO_DEEP}")
    if not names_files:
        return document
    if _INPUTS.get() is not None:
        _note_named(document, Path(path).parent)
    return _with_places(document, Path(path).parent)


def _with_places(value: Any, folder: Path, key: str = "") -> Any:
    """A document in which the texts that name files are places as seen from here."""
    if isinstance(value, Mapping):
        return {name: _with_places(inner, folder, name.rpartition(".")[2]) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_places(inner, folder, key) for inner in value]
    if isinstance(value, str) and key in FILE_KEYS:
        return _place(value, folder)
    if isinstance(value, str) and key in ENDINGS:
        name, colon, rest = value.partition(":")
        return f"{_place(name, folder)}{colon}{rest}" if name.lower().endswith(ENDINGS[key]) else value
    if isinstance(value, str) and value.strip().startswith("@"):
        return f"@{_place(value.strip()[1:], folder)}"
    return value


def _place(name: str, folder: Path) -> str:
    """A file in a folder, or else in the working directory; the full path where there is none."""
    beside = os.path.normpath(folder / name)
    if not name or os.path.isabs(name) or (not os.path.exists(beside) and os.path.exists(name)):
        return name
    return beside if os.path.exists(beside) else os.path.abspath(beside)


def _note_named(document: Any, folder: Path) -> None:
    """Note the files that a document names, as seen from here or from its own folder."""
    if isinstance(document, str):
        for place in {Path(document), folder / document}:
            with suppress(OSError, ValueError):
                if stat.S_ISREG((about := place.stat()).st_mode):
                    _note(about)
    elif isinstance(document, Mapping | list):
        for inner in document.values() if isinstance(document, Mapping) else document:
            _note_named(inner, folder)


def nests_deeper(value: Any, most: int) -> bool:
    """Whether more than so many tables and lists lie within each other, found without recursion.

    Example:
        >>> nests_deeper({"a": [1, {"b": 2}]}, 3), nests_deeper({"a": [1, {"b": 2}]}, 2)
        (False, True)
    """
    level = [value]
    for _ in range(most + 1):
        containers = [one for one in level if isinstance(one, Mapping | list)]
        level = [inner for one in containers for inner in (one.values() if isinstance(one, Mapping) else one)]
        if not containers:
            return False
    return True
