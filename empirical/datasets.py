"""Labelled images from files in their official formats; scikit-learn's bundled digits need no file at all.

Nothing is downloaded and nothing is unpickled. Every size that a file declares is checked before it is believed.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from bounds.errors import FedboundsError, MissingExtra, unknown_name

_LARGEST = 256 * 2**20  # bytes of one file once unpacked; the largest official one has 47 MB
_CIFAR_RECORD = 1 + 3 * 32 * 32
_FASHION = "https://github.com/zalandoresearch/fashion-mnist"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar.html (the binary version)"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels, as they come from the files.

    Args:
        name: what it is called.
        train_images: `(samples, channels, height, width)`, uint8.
        train_labels: `(samples,)`, int64, from 0.
        test_images: like the training images.
        test_labels: like the training labels.
        classes: number of classes.
    """

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: int

    @property
    def image(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        channels, height, width = self.train_images.shape[1:]
        return int(channels), int(height), int(width)

    def standardised(self) -> tuple[np.ndarray, np.ndarray]:
        """Training and test images as float32 with mean 0 and deviation 1 in each channel of the training images."""
        axes = (0, 2, 3)
        mean = self.train_images.mean(axes, dtype=np.float64, keepdims=True)
        deviation = self.train_images.std(axes, dtype=np.float64, keepdims=True)
        shift, scale = mean.astype(np.float32), np.where(deviation > 0, deviation, 1.0).astype(np.float32)
        return (self.train_images - shift) / scale, (self.test_images - shift) / scale


def checksum(dataset: Dataset) -> str:
    """A fingerprint of all images and labels, for cache keys: 64 hexadecimal digits (SHA-256)."""
    digest = hashlib.sha256(f"{dataset.name} {dataset.classes}".encode())
    for part in (dataset.train_images, dataset.train_labels, dataset.test_images, dataset.test_labels):
        digest.update(f" {part.dtype.str} {part.shape} ".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def load_dataset(name: str = "digits", data: str | os.PathLike[str] | None = None) -> Dataset:
    """A data set by name: `digits`, `fashion-mnist` or `cifar-10`.

    Args:
        name: which one.
        data: the folder that holds the files; if not given, the environment variable FEDBOUNDS_DATA, else `./data`.
            FashionMNIST's four IDX files (gzipped or not) lie in `fashion-mnist/` or `FashionMNIST/raw/` there, the
            binary version of CIFAR-10 in `cifar-10-batches-bin/`.

    Raises:
        FedboundsError: an unknown name; a file that is missing (which, where it comes from, where to put it), too
            large, cut short or damaged.

    Example:
        >>> digits = load_dataset("digits")
        >>> digits.image, len(digits.train_labels), len(digits.test_labels)
        ((1, 8, 8), 1442, 355)
    """
    if name not in _LOADERS:
        raise unknown_name("data set", str(name), _LOADERS)
    return _LOADERS[name](Path(data or os.environ.get("FEDBOUNDS_DATA") or "data"))


def _digits(data: Path) -> Dataset:
    """scikit-learn's 1,797 handwritten digits of 8x8 pixels; in every class, each fifth sample is a test sample."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("empirical", "scikit-learn") from None
    pixels, digits = load_digits(return_X_y=True)
    images = np.asarray(pixels).astype(np.uint8).reshape(-1, 1, 8, 8)
    labels = np.asarray(digits).astype(np.int64)
    test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(labels == label)[4::5]] = True
    return Dataset("digits", images[~test], labels[~test], images[test], labels[test], 10)


def _fashion_mnist(data: Path) -> Dataset:
    folders = [data / "fashion-mnist", data / "FashionMNIST" / "raw"]
    parts: list[np.ndarray] = []
    for split in ("train", "t10k"):
        images_path = _find(folders, f"{split}-images-idx3-ubyte", _FASHION)
        labels_path = _find(folders, f"{split}-labels-idx1-ubyte", _FASHION)
        images, labels = read_idx(images_path, 3), read_idx(labels_path, 1).astype(np.int64)
        if len(images) != len(labels):
            raise FedboundsError(f"{labels_path}: {len(labels)} labels for {len(images)} images in {images_path.name}")
        _check_labels(labels_path, labels)
        parts += [images[:, None], labels]
    if parts[0].shape[1:] != parts[2].shape[1:]:
        sizes = " and ".join("x".join(map(str, part.shape[2:])) for part in (parts[0], parts[2]))
        raise FedboundsError(f"{images_path}: training and test images differ in size ({sizes})")
    return Dataset("fashion-mnist", parts[0], parts[1], parts[2], parts[3], 10)


def _cifar10(data: Path) -> Dataset:
    folders = [data / "cifar-10-batches-bin"]
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    batches = [read_cifar10(_find(folders, name, _CIFAR, packed=False)) for name in names]
    train_images = np.concatenate([images for images, _ in batches[:5]])
    train_labels = np.concatenate([labels for _, labels in batches[:5]])
    return Dataset("cifar-10", train_images, train_labels, *batches[5], 10)


_LOADERS: Mapping[str, Callable[[Path], Dataset]] = {
    "digits": _digits,
    "fashion-mnist": _fashion_mnist,
    "cifar-10": _cifar10,
}


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """An array of bytes in IDX format, gzipped if the name ends in `.gz`.

    The format: two zero bytes, the type (8: unsigned byte), the number of dimensions, each dimension as a big-endian
    32-bit integer, then the data, last index fastest.

    Raises:
        FedboundsError: not this format, another number of dimensions, cut short, too long, too large.
    """
    with _opened(path) as file:
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


def read_cifar10(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images `(samples, 3, 32, 32)` and labels of one file of the binary version: records of 1 + 3,072 bytes.

    Raises:
        FedboundsError: not a whole number of records, too large, a label above 9.
    """
    with _opened(path) as file:
        content = file.read(_LARGEST + 1)
    if not 0 < len(content) <= _LARGEST or len(content) % _CIFAR_RECORD:
        size = f"over {_LARGEST}" if len(content) > _LARGEST else str(len(content))
        raise FedboundsError(
            f"{path}: {size} bytes; must be a positive multiple of {_CIFAR_RECORD}, at most {_LARGEST}"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, _CIFAR_RECORD)
    labels = records[:, 0].astype(np.int64)
    _check_labels(path, labels)
    return np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, 32, 32), labels


def _check_labels(path: Path, labels: np.ndarray) -> None:
    if labels.max() > 9:
        where = int(labels.argmax())
        raise FedboundsError(f"{path}: label {labels[where]} of sample {where} is outside 0..9")


def _find(folders: list[Path], name: str, source: str, packed: bool = True) -> Path:
    for folder in folders:
        for path in [folder / name, folder / f"{name}.gz"][: 1 + packed]:
            if path.is_file():
                return path
    wanted = f"{name} or {name}.gz" if packed else name
    raise FedboundsError(f"missing file {wanted}: get it from {source} and put it into {folders[0].absolute()}")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, unpacked if need be; everything that goes wrong while reading it becomes one line."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FedboundsError(f"{path}: cannot be read, damaged or cut short ({reason})") from None


def _read(path: Path, file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise FedboundsError(f"{path}: cut short, {len(content)} of {size} bytes where they were expected")
    return content
