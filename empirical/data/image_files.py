"""Readers of the formats in which labeled images are handed out.

Nothing is unpickled, and every size that a file declares is checked before it is believed.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from PIL import Image

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.user_files import open_regular

_LARGEST = 256 * 2**20  # bytes of one file once unpacked; the largest official one, SVHN's training images, has 225 MB
_LARGEST_PNG = 2**20  # bytes of one picture
_WIDEST = 4096  # pixels of one that is made smaller


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """An array of bytes in IDX format, gzipped if the name ends in `.gz`.

    The format: two zero bytes, the type (8: unsigned byte), the number of dimensions, each dimension as a big-endian
    32-bit integer, then the data, last index fastest.
    """
    with _open_file(path) as file:
        header = _read(path, file, 4 + 4 * dimensions)
        if header[:3] != b"\0\0\x08" or header[3] != dimensions:
            raise FedboundsError(
                f"{path}: not an IDX file of unsigned bytes in {dimensions} dimensions "
                f"(starts with {header[:4].hex()}, must be 000008{dimensions:02x})"
            )
        shape = tuple(int(n) for n in np.frombuffer(header, dtype=">u4", offset=4))
        size = 1
        for n in shape:
            size *= n
        if not 0 < size <= _LARGEST:
            raise FedboundsError(f"{path}: declares {shape}, {size} bytes; must be between 1 and {_LARGEST}")
        content = _read(path, file, size)
        if file.read(1):
            raise FedboundsError(f"{path}: longer than the {size} bytes it declares")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def read_cifar(path: Path, classes: int, labels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Images `(samples, 3, 32, 32)` and labels of one file of the binary version of CIFAR-10 or CIFAR-100.

    The format: records of one or more labels of a byte each and 3,072 bytes of pixels, red, green and blue planes one
    after another.
    """
    record = labels + 3 * 32 * 32
    with _open_file(path) as file:
        content = file.read(_LARGEST + 1)
    if not 0 < len(content) <= _LARGEST or len(content) % record:
        size = f"over {_LARGEST}" if len(content) > _LARGEST else str(len(content))
        raise FedboundsError(f"{path}: {size} bytes; must be a positive multiple of {record}, at most {_LARGEST}")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, record)
    truth = records[:, labels - 1].astype(np.int64)
    check_labels(path, truth, classes)
    return np.ascontiguousarray(records[:, labels:]).reshape(-1, 3, 32, 32), truth


def read_svhn(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images `(samples, 3, 32, 32)` and labels of one file of SVHN's cropped digits, in MATLAB's format 5.

    The format: `X`, unsigned bytes (32, 32, 3, samples), and `y`, (samples, 1), from 1 to 10, where 10 stands for the
    digit 0.
    """
    from scipy.io import loadmat, whosmat  # takes its time

    with _open_file(path) as file:
        _check_unpacked_size(path, file)
        file.seek(0)
        with _explain_damage(path, "MATLAB's format 5"):
            declared = {name: (shape, kind) for name, shape, kind in whosmat(file)}
            shape, kind = declared.get("X", ((), "absent"))
            samples = shape[-1] if len(shape) == 4 else 0
            if kind != "uint8" or shape[:3] != (32, 32, 3) or not 0 < samples * 3072 <= _LARGEST:
                raise FedboundsError(f"{path}: X is {kind} {shape}; must be uint8 (32, 32, 3, samples)")
            have = declared.get("y", ("absent",))[0]
            if have != (samples, 1):
                raise FedboundsError(f"{path}: y is {have}; must be ({samples}, 1), one label per image")
            file.seek(0)
            content = loadmat(file, variable_names=["X", "y"])
            images, labels = content["X"], content["y"][:, 0].astype(np.int64)
    if labels.min() < 1 or labels.max() > 10:
        where = int(np.flatnonzero((labels < 1) | (labels > 10))[0])
        raise FedboundsError(f"{path}: label {labels[where]} of sample {where} is outside 1..10")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels % 10


def _check_unpacked_size(path: Path, file: BinaryIO) -> None:
    """Walks the elements of a MATLAB file and refuses to unpack more than the limit, counting all of them."""
    header = _read(path, file, 128)
    if header[126:] not in (b"IM", b"MI"):
        raise FedboundsError(f"{path}: not a file in MATLAB's format 5 (ends its header with {header[126:].hex()})")
    order = "<II" if header[126:] == b"IM" else ">II"
    left = _LARGEST + 2**20  # the images, and room for labels and headers
    while tag := file.read(8):
        kind, size = struct.unpack(order, tag.ljust(8, b"\0"))
        packed = _read(path, file, size) if size <= left else b""
        inflate = zlib.decompressobj()
        while kind == 15 and packed and left >= 0:  # 15: compressed
            left -= len(inflate.decompress(packed, 2**22))
            packed = inflate.unconsumed_tail
        left -= 0 if kind == 15 and size <= left else size
        if left < 0:
            raise FedboundsError(f"{path}: unpacks to more than the {_LARGEST} bytes allowed")


def read_png_folder(folders: Sequence[Path], side: int) -> tuple[np.ndarray, np.ndarray]:
    """Images `(samples, 3, side, side)` and labels from one folder of PNG files per class, in order of their names.

    Grey images and palettes become red, green and blue.
    """
    paths = [(path, label) for label, folder in enumerate(folders) for path in _png_files(folder)]
    if len(paths) * 3 * side * side > 4 * _LARGEST:
        raise FedboundsError(f"{folders[0].parent}: {len(paths)} images, {4 * _LARGEST} bytes of pixels are allowed")
    images = np.empty((len(paths), 3, side, side), dtype=np.uint8)
    for place, (path, _) in zip(images, paths, strict=True):
        with _open_png(path, side, side, f"{side}x{side}") as image:
            place[:] = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    return images, np.array([label for _, label in paths], dtype=np.int64)


def read_views(folders: Sequence[Path], views: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Images `(objects, views, side, side)` in gray and labels, from one folder of each class, in order of their names.

    A folder has a folder of PNG files for each object; or the files of all, named alike but for a number at the end.
    """
    objects = [(paths, label) for label, folder in enumerate(folders) for paths in _objects(folder)]
    if len(objects) * views * side * side > 4 * _LARGEST:
        raise FedboundsError(f"{len(objects)} objects of {views} views: {4 * _LARGEST} bytes of pixels are allowed")
    images = np.empty((len(objects), views, side, side), dtype=np.uint8)
    for place, (paths, _) in zip(images, objects, strict=True):
        if len(paths) != views:
            raise FedboundsError(f"{paths[0]}: its object has {len(paths)} views, must have {views}")
        for view, path in zip(place, paths, strict=True):
            with _open_png(path, side, _WIDEST, f"from {side} to {_WIDEST}") as image:
                view[:] = np.asarray(image.convert("L").resize((side, side), Image.Resampling.BOX))
    return images, np.array([label for _, label in objects], dtype=np.int64)


def _objects(folder: Path) -> list[list[Path]]:
    """The PNG files of each object of a class, in the order of their views."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    if inside:
        return [sorted(_png_files(own), key=_number) for own in inside]
    found: dict[str, list[Path]] = {}
    for path in _png_files(folder):
        found.setdefault(path.stem.rstrip("0123456789"), []).append(path)
    return [sorted(paths, key=_number) for paths in found.values()]


def _number(path: Path) -> tuple[int, str]:
    """The number at the end of a file's name, and the name."""
    digits = path.stem[len(path.stem.rstrip("0123456789")) :]
    return int(digits) if digits.isascii() and digits else 0, path.stem


def _png_files(folder: Path) -> list[Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".png")
    except OSError as error:
        raise FedboundsError(f"cannot read {folder}: {error.strerror or error}") from None
    if not paths:
        raise FedboundsError(f"{folder}: no PNG files in this folder")
    return paths


def check_labels(path: Path, labels: np.ndarray, classes: int) -> None:
    """Labels must be classes, from 0."""
    if labels.max() >= classes:
        where = int(labels.argmax())
        raise FedboundsError(f"{path}: label {labels[where]} of sample {where} is outside 0..{classes - 1}")


@contextmanager
def _open_file(path: Path) -> Iterator[BinaryIO]:
    """The file, unpacked if need be; everything that goes wrong while reading it becomes one line."""
    with open_regular(path, str(path), _LARGEST) as packed:
        try:
            with gzip.open(packed) if path.suffix == ".gz" else packed as file:
                yield cast(BinaryIO, file)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise FedboundsError(f"{path}: cannot be read, damaged or cut short ({reason})") from None


@contextmanager
def _open_png(path: Path, least: int, most: int, expected: str) -> Iterator[Image.Image]:
    """A picture whose sides have these numbers of pixels."""
    with _open_file(path) as file:
        if (size := path.stat().st_size) > _LARGEST_PNG:
            raise FedboundsError(f"{path}: {size} bytes; at most {_LARGEST_PNG}")
        with _explain_damage(path, "PNG"), Image.open(file, formats=["PNG"]) as image:
            if not least <= min(image.size) <= max(image.size) <= most:
                width, height = image.size
                raise FedboundsError(f"{path}: {width}x{height} pixels; must be {expected}")
            yield image


@contextmanager
def _explain_damage(path: Path, form: str) -> Iterator[None]:
    """Other people's parsers meet damage with exceptions of many types; here it becomes one line."""
    try:
        yield
    except (FedboundsError, OSError, zlib.error):
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FedboundsError(f"{path}: cannot be read as {form}, or damaged ({reason})") from None


def _read(path: Path, file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise FedboundsError(f"{path}: cut short, {len(content)} of {size} bytes where they were expected")
    return content
