"""Arrays in npz and npy files of users, read without pickles and no larger than a limit."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Mapping

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.bounds.inputs.user_files import open_regular

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def _shape(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, ...]:
    """The shape of an array of an npz file, from its header; the archive holds as many bytes as that says."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"{member.filename} is an array of format {version}")
        shape, _, dtype = _HEADERS[version](file)
        if dtype.hasobject or member.file_size - file.tell() != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{member.filename} does not hold what its header says")
    return shape


def read_arrays(
    path: str | os.PathLike[str],
    what: str,
    largest: int,
    check: Callable[[Mapping[str, tuple[int, ...]]], None] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of an npz file, without pickles, that is a regular file and unpacks to at most so many bytes."""
    with open_regular(path, what, largest) as file:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > largest:
                raise FedboundsError(f"{what} unpacks to {unpacked} bytes, more than {largest}")
            shapes = {member.filename.removesuffix(".npy"): _shape(archive, member) for member in archive.infolist()}
        if check is not None:
            check(shapes)
        check_memory(f"{what}, which unpacks to {unpacked} bytes,", 2 * unpacked)
        file.seek(0)
        with np.load(file, allow_pickle=False) as members:
            return {name: members[name] for name in members.files}
