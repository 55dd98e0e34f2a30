"""Files for users: a file that fedbounds did not write is kept unless overwriting is forced; inputs are always kept.

A file counts as written by fedbounds if a manifest beside it (of a figure, a report, or `.fedbounds.json`) lists its
checksum; manifests, traces and documents with a schema count by how they begin.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.atomic_files import write_atomically, write_file
from fedbounds.bounds.inputs.user_files import inputs, is_protected, open_regular, read_bytes

BEGINNING = 2**16  # bytes in which a file says what it is
LARGEST = 2**28  # bytes of a file whose checksum is compared
DOCUMENT = rb'\s*\{\s*"(?:schema|format)": ?"'
FIGURE = DOCUMENT + rb"fedbounds\.figure/"
REPORT = DOCUMENT + rb"fedbounds\.report/"
LIST = DOCUMENT + rb"fedbounds\.files/"
LISTED = ".fedbounds.json"  # in each folder: the files written there that have no mark, with their SHA-256


class Output(NamedTuple):
    """A file to be written.

    Args:
        path: where.
        mark: a regular expression for how files of this kind begin, that no user's file matches by accident; empty
            where there is none.
        manifests: JSON documents of which one has the file's SHA-256 under its name, beside `.fedbounds.json`.
    """

    path: Path
    mark: bytes = b""
    manifests: tuple[Path, ...] = ()


def read_checksums(manifest: Path) -> Mapping[str, str]:
    """The files beside a manifest of fedbounds that are as it lists them: their names, with their SHA-256."""
    if not any(_begins(manifest, mark) for mark in (FIGURE, REPORT, LIST)):
        return {}
    try:
        document = json.loads(read_bytes(manifest, str(manifest), LARGEST, noted=False))
        found = document["sha256"] if "sha256" in document else document["provenance"]["files"]
        return {name: said for name, said in found.items() if said and _sum_of(manifest.with_name(name)) == said}
    except (FedboundsError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def check_outputs(outputs: Iterable[Output], force: bool = False, runs: Path | None = None) -> None:
    """Refuse places that cannot be written, inputs, and files that fedbounds did not write."""
    vouched = cache(read_checksums)
    for output in outputs:
        path = output.path
        about = _status(path)
        where = f"cannot write {str(path)!r}"
        if about is not None and stat.S_ISDIR(about.st_mode):
            raise FedboundsError(f"{where}: it is a directory; give the name of a file")
        if about is not None and not stat.S_ISREG(about.st_mode) and not stat.S_ISLNK(about.st_mode):
            raise FedboundsError(f"{where}: it is not a regular file; give another name")
        _check_place(path)
        if runs is not None and Path(os.path.realpath(runs)) in Path(os.path.realpath(path)).parents:
            raise FedboundsError(f"{where}: {str(runs)!r} holds the records of runs; give a name in another folder")
        if about is None:
            continue
        if (about.st_dev, about.st_ino) in (inputs() or ()):
            raise FedboundsError(f"{where}: it is an input of this command; give another name")
        if is_protected(path):
            raise FedboundsError(f"{where}: a log was read from this file; choose another name")
        if not force and not is_ours(output, vouched):
            hint = "give --force or another name (in Python force=True)"
            raise FedboundsError(f"{where}: it exists and fedbounds did not write it; {hint}")


def is_ours(output: Output, vouched: Callable[[Path], Mapping[str, str]] = read_checksums) -> bool:
    """Whether fedbounds wrote the file that is there."""
    path, mark, manifests = output
    lists = (*manifests, path.with_name(LISTED))
    return _begins(path, mark) or any(path.name in vouched(manifest) for manifest in lists)


def check_folder(folder: Path) -> None:
    """Refuse a folder into which no files can be written."""
    _check_place(folder / "file", f"into {str(folder)!r}")


def write_output(output: Output, content: bytes, force: bool = False) -> None:
    """Write a file, whole or not at all; see `check_outputs`. One that has this content already is left alone."""
    write_outputs([output], [content], force)


def write_outputs(outputs: Sequence[Output], contents: Sequence[bytes], force: bool = False) -> None:
    """Write files that belong together, none of them where one is refused; see `write_output`."""
    new = [(o, content) for o, content in zip(outputs, contents, strict=True) if not _has(o.path, content)]
    check_outputs([output for output, _ in new], force)
    for output, content in new:
        assert not output.mark or re.match(output.mark, content[:BEGINNING]), f"{output.path} lacks its mark"
        write_file(output.path, content)
    for folder in dict.fromkeys(output.path.parent for output in outputs):
        pairs = zip(outputs, contents, strict=True)
        _list(folder, {o.path.name: c for o, c in pairs if o.path.parent == folder and not (o.mark or o.manifests)})


def _list(folder: Path, written: Mapping[str, bytes]) -> None:
    """Note what was written into a folder, unless a file of the user's is in the place of the list."""
    known = read_checksums(path := folder / LISTED)
    sums = {**known, **{name: hashlib.sha256(content).hexdigest() for name, content in written.items()}}
    if sums != known and (_status(path) is None or _begins(path, LIST)):
        document = {"schema": "fedbounds.files/1", "sha256": dict(sorted(sums.items()))}
        write_file(path, (json.dumps(document, indent=1) + "\n").encode())


def write_stream(output: Output, write: Callable[[BinaryIO], object], force: bool = False) -> None:
    """Write a file by a function that fills it, whole or not at all; its folder must be there."""
    check_outputs([output], force)
    write_atomically(output.path, write)


def _status(path: Path) -> os.stat_result | None:
    """What is at a path, a link followed unless it leads nowhere; None if nothing is."""
    try:
        if not path.name:
            raise ValueError("it is no name of a file")
        try:
            return path.stat()
        except FileNotFoundError:
            return path.lstat()  # a link that leads nowhere
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FedboundsError(f"cannot write {str(path)!r}: {reason}; give another name") from None


def _check_place(path: Path, what: str = "") -> None:
    """Refuse a path whose folder cannot be written, or made."""
    said = what or repr(str(path))
    for place in path.parents:
        about = _status(place) if place.name else None
        if about is None and place.name:
            continue
        if about is not None and not stat.S_ISDIR(about.st_mode):
            raise FedboundsError(f"cannot write {said}: {str(place)!r} is not a directory; give another place")
        if not os.access(place, os.W_OK | os.X_OK):
            raise FedboundsError(f"cannot write {said}: nothing can be written into {str(place)!r}; give another place")
        return


def _begins(path: Path, mark: bytes) -> bool:
    """Whether a regular file begins as its kind does."""
    if not mark:
        return False
    try:
        with open_regular(path, str(path), sys.maxsize, noted=False) as file:
            return re.match(mark, file.read(BEGINNING)) is not None
    except (OSError, FedboundsError):
        return False


def _sum_of(path: Path) -> str:
    """The SHA-256 of a file; "" where it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(path, str(path), LARGEST, noted=False)).hexdigest()
    except FedboundsError:
        return ""


def _has(path: Path, content: bytes) -> bool:
    """Whether a regular file has this content."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size != len(content):
            return False
        return read_bytes(path, str(path), LARGEST, noted=False) == content
    except (OSError, ValueError, FedboundsError):
        return False
