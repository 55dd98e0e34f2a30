"""Labeled images, sequences and tables: from local files in their official formats, bundled, or synthetic.

Nothing is downloaded and nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_memory, check_number, quote
from fedbounds.empirical.data.image_files import (
    check_labels,
    read_cifar,
    read_idx,
    read_png_folder,
    read_svhn,
    read_views,
)
from fedbounds.empirical.data.mimic_files import read_mortality
from fedbounds.empirical.data.own_files import read_samples
from fedbounds.empirical.data.synthetic_images import FEWEST_CLASSES, MOST_CLASSES, draw_images
from fedbounds.empirical.data.synthetic_objects import SMALLEST, VIEWS, draw_views
from fedbounds.empirical.data.synthetic_sequences import ALPHABET, draw_characters, draw_sequences
from fedbounds.empirical.runtime.kinds import Registry

_FASHION = "https://github.com/zalandoresearch/fashion-mnist"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar.html (the binary version)"
_SVHN = "http://ufldl.stanford.edu/housenumbers (format 2, cropped digits)"
_CINIC = "https://github.com/BayesWatch/cinic-10"
_MIMIC = "https://github.com/YerevaNN/mimic3-benchmarks, whose scripts make it of MIMIC-III (for users with access)"
_MODELNET = "https://github.com/jongchyisu/mvcnn_pytorch (the shaded images of 12 views)"
_CINIC_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels; a sequence is an image (1, steps, features), a row of a table one (1, 1, columns)."""

    name: str  # the name
    train_images: np.ndarray  # `(samples, channels, height, width)`; uint8, or float32 if networks take them unchanged
    train_labels: np.ndarray  # `(samples,)`, int64, from 0; of a regression `(samples, outputs)`, float32
    test_images: np.ndarray  # test_images, test_labels: likewise
    test_labels: np.ndarray
    classes: int  # number of classes; 0 for a regression
    owners: np.ndarray | None = None  # the owner of each training sample, from 0, `(samples,)`, int64, if known

    @property
    def image(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        channels, height, width = self.train_images.shape[1:]
        return int(channels), int(height), int(width)

    @property
    def in_bytes(self) -> bool:
        """Whether the images are bytes, that is pixels, which are standardised."""
        return self.train_images.dtype == np.uint8

    @property
    def standardisation(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of each channel of the training images, float32 (1, channels, 1, 1); never divide by 0.

        Zero and one of images that are no bytes.
        """
        if not self.in_bytes:
            channels = (1, self.image[0], 1, 1)
            return np.zeros(channels, dtype=np.float32), np.ones(channels, dtype=np.float32)
        axes = (0, 2, 3)
        mean = self.train_images.mean(axes, dtype=np.float64, keepdims=True)
        deviation = self.train_images.std(axes, dtype=np.float64, keepdims=True)
        return mean.astype(np.float32), np.where(deviation > 0, deviation, 1.0).astype(np.float32)

    def standardised(self) -> tuple[np.ndarray, np.ndarray]:
        """Training and test images as networks see them: bytes as float32 with mean 0 and deviation 1 in each channel
        of the training images, all else as it is."""
        if not self.in_bytes:
            return self.train_images, self.test_images
        shift, scale = self.standardisation
        return (self.train_images - shift) / scale, (self.test_images - shift) / scale


def checksum(dataset: Dataset) -> str:
    """A fingerprint of all images and labels, for cache keys: 64 hexadecimal digits (SHA-256)."""
    digest = hashlib.sha256(f"{dataset.name} {dataset.classes}".encode())
    owned = () if dataset.owners is None else (dataset.owners,)
    for part in (dataset.train_images, dataset.train_labels, dataset.test_images, dataset.test_labels, *owned):
        digest.update(f" {part.dtype.str} {part.shape} ".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def load_dataset(name: str | Mapping[str, Any] = "digits", data: str | os.PathLike[str] | None = None) -> Dataset:
    """A data set by name: images, sequences or tables, made here or from local files.

    `digits`, `breast-cancer` and `wine` come with scikit-learn; `glyphs`, `sequences`, `views` and `characters` are
    made here; the others are read from files, each from its own folder inside `data`.

    Args:
        name: which one; or a table, `kind` its name and the arguments of its function, if it has any; or the path of
            an npz file, see `npz`.
        data: the folder that holds these folders; if not given, the environment variable FEDBOUNDS_DATA, else `./data`.

    Raises:
        FedboundsError: an unknown name; a file that is missing (which, where it comes from, where to put it), too
            large, cut short or damaged.

    Example:
        >>> digits = load_dataset("digits")
        >>> digits.image, len(digits.train_labels), len(digits.test_labels)
        ((1, 8, 8), 1442, 355)
        >>> load_dataset({"kind": "glyphs", "classes": 36, "train": 72, "test": 36, "color": True}).train_images.shape
        (72, 3, 32, 32)
    """
    arguments: dict[str, Any] = {"kind": name} if isinstance(name, str) else dict(name)
    if (path := samples_file(name)) is not None:
        arguments = {"kind": "npz", "file": path}
    make = DATASETS.builder(arguments)
    if "data" in inspect.signature(make).parameters:
        arguments["data"] = Path(data or os.environ.get("FEDBOUNDS_DATA") or "data")
    return make(**{key: value for key, value in arguments.items() if key != "kind"})


def samples_file(name: str | Mapping[str, Any]) -> str | None:
    """The path of the npz file that a data set is read from, if it is one."""
    path = name if isinstance(name, str) else name.get("file") if name.get("kind") == "npz" else None
    return path if isinstance(path, str) and path.endswith(".npz") else None


def npz(file: str) -> Dataset:
    """Features and labels of an npz file: `train_features`, `train_labels`, and, if there, `test_features`,
    `test_labels` and `owners`.

    Features are (samples, columns), (samples, height, width) or (samples, channels, height, width); bytes are pixels,
    which are standardised. Labels that are whole numbers from 0 are classes.

    Args:
        file: the path of the file, which ends in .npz.
    """
    if samples_file({"kind": "npz", "file": file}) is None:
        raise FedboundsError(f"file = {quote(file)} must be the path of a file that ends in .npz")
    arrays, classes = read_samples(file)
    train, labels = arrays["train_features"], arrays["train_labels"]
    tested = arrays["test_features"], arrays["test_labels"]
    return Dataset(Path(file).name, train, labels, *tested, classes, arrays.get("owners"))


def glyphs(
    train: int = 20_000,
    test: int = 4_000,
    classes: int = 10,
    color: bool = False,
    side: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Digits and letters of matplotlib's fonts under random changes, made here.

    Each image shows one character in one of 15 faces, transformed at random, on a shaded ground, with parts of other
    characters, a stroke, a patch and noise. The classes are balanced. An image depends on the seed, the classes and its
    index alone, so that a smaller set is the beginning of a larger one.

    Args:
        train: training images.
        test: test images.
        classes: the first of 0 to 9, A to Z, and the small letters a b d e f g h n q r t; 10 to 47.
        color: 32 x 32 pixels in color instead of 28 x 28 in gray.
        side: height and width in pixels, to which images are averaged down: 14 or 7 (in color 16 or 8).
        seed: of the random numbers.
    """
    classes = check_count("classes", classes, FEWEST_CLASSES, MOST_CLASSES, "digits, capitals, eleven small letters")
    few = "at least one image of each class"
    sizes = check_count("train", train, classes, why=few), check_count("test", test, classes, why=few)
    color, seed = check_flag("color", color), check_count("seed", seed, low=0, high=2**32 - 1)
    channels, whole = (3, 32) if color else (1, 28)
    legal = (whole, whole // 2, whole // 4)
    if side is not None and side not in legal:
        raise FedboundsError(f"side = {quote(side)} must be one of {', '.join(map(str, legal))}")
    check_memory(f"train = {sizes[0]} and test = {sizes[1]} images", 5 * channels * whole**2 * sum(sizes))
    drawn = [draw_images(seed, k, size, classes, color) for k, size in enumerate(sizes)]
    (images, labels), (test_images, test_labels) = [(_averaged(part, side), owned.copy()) for part, owned in drawn]
    return Dataset("glyphs", images, labels, test_images, test_labels, classes)


def _averaged(images: np.ndarray, side: int | None) -> np.ndarray:
    """A copy of images, uint8, `(samples, channels, whole, whole)` to `(..., side, side)` by means over squares."""
    if side is None or side == images.shape[-1]:
        return images.copy()
    square = images.shape[-1] // side
    sums = images.reshape(*images.shape[:2], side, square, side, square).sum((3, 5), dtype=np.int64)
    return ((2 * sums + square**2) // (2 * square**2)).astype(np.uint8)  # rounded half up


def sequences(
    train: int = 10_000,
    test: int = 2_000,
    steps: int = 48,
    features: int = 76,
    groups: int = 4,
    positives: float = 0.16,
    seed: int = 0,
) -> Dataset:
    """Synthetic measurements of patients over time, in two classes, of which class 1 is the smaller one.

    The columns of a group follow one noisy state, with loadings of either sign, a second factor without information,
    and noise. In some groups of some patients the state rises at some step and stays up; the label is 1 where that
    happens in at least two groups (in one, if there is only one). A sequence depends on the seed and its index alone,
    so that a smaller set is the beginning of a larger one.

    Args:
        train: training sequences.
        test: test sequences.
        steps: of a sequence, 48 in the benchmark of in-hospital mortality on MIMIC-III.
        features: measurements of a step, 76 there.
        groups: of measurements, as equal as they can be, the larger ones first.
        positives: the share of sequences of class 1, in expectation; 0.16 there.
        seed: of the random numbers.
    """
    sizes = check_count("train", train), check_count("test", test)
    steps, features = check_count("steps", steps), check_count("features", features)
    groups = check_count("groups", groups, high=features, why="each has a feature at least")
    share = check_number("positives", positives, 0.01, 0.5, "the share of sequences of class 1")
    seed = check_count("seed", seed, low=0, high=2**32 - 1)
    check_memory(f"train = {sizes[0]} and test = {sizes[1]} sequences", 8 * steps * features * sum(sizes))
    drawn = [draw_sequences(seed, k, size, steps, features, groups, share) for k, size in enumerate(sizes)]
    (train_data, labels), (test_data, test_labels) = [tuple(part.copy() for part in pair) for pair in drawn]
    return Dataset("sequences", train_data, labels, test_data, test_labels, 2)


def characters(train: int = 20_000, test: int = 4_000, steps: int = 20, speakers: int = 100, seed: int = 0) -> Dataset:
    """Synthetic text; the class is the next character: 27 classes, the letters and the space.

    A sample is a piece of text as one-hot rows. Words come from a dictionary of 300; every second word of a speaker is
    one of ten favorites, the others follow Zipf's law. The speakers own the samples, cyclically. A sample depends on
    the seed and its index alone, so that a smaller set is the beginning of a larger one.

    Args:
        train: training samples.
        test: test samples.
        steps: characters of a sample; 80 in the task on Shakespeare's plays.
        speakers: number of speakers, each with about as many samples.
        seed: of the random numbers.
    """
    speakers = check_count("speakers", speakers)
    sizes = check_count("train", train, speakers, why="at least one sample of each speaker"), check_count("test", test)
    steps, seed = check_count("steps", steps), check_count("seed", seed, low=0, high=2**32 - 1)
    check_memory(f"train = {sizes[0]} and test = {sizes[1]} samples", 8 * steps * len(ALPHABET) * sum(sizes))
    parts: list[np.ndarray] = []
    for split, size in enumerate(sizes):
        text, _ = draw_characters(seed, split, size, steps, speakers)
        parts += [np.eye(len(ALPHABET), dtype=np.float32)[text[:, None, :-1]], text[:, -1].copy()]
    owners = np.arange(sizes[0]) % speakers
    return Dataset("characters", parts[0], parts[1], parts[2], parts[3], len(ALPHABET), owners)


def views(train: int = 4_000, test: int = 1_000, classes: int = 10, side: int = 16, seed: int = 0) -> Dataset:
    """Synthetic objects, each seen from twelve sides, 30 degrees apart: a view is a channel.

    A class is an arrangement of five balls in space. Each object moves, scales and turns them, and adds two balls
    without information, a hidden patch in every view, and noise. The classes are balanced. An object depends on the
    seed, the number of classes and its index alone, so that a smaller set is the beginning of a larger one.

    Args:
        train: training objects.
        test: test objects.
        classes: number of classes.
        side: height and width of a view in pixels.
        seed: of the random numbers.
    """
    classes = check_count("classes", classes, 2, 1000)
    few = "at least one object of each class"
    sizes = check_count("train", train, classes, why=few), check_count("test", test, classes, why=few)
    side, seed = check_count("side", side, SMALLEST, 256), check_count("seed", seed, low=0, high=2**32 - 1)
    check_memory(f"train = {sizes[0]} and test = {sizes[1]} objects", 5 * VIEWS * side * side * sum(sizes))
    drawn = [draw_views(seed, k, size, classes, side) for k, size in enumerate(sizes)]
    (images, labels), (test_images, test_labels) = [tuple(part.copy() for part in pair) for pair in drawn]
    return Dataset("views", images, labels, test_images, test_labels, classes)


def modelnet40(data: Path, side: int = 32) -> Dataset:
    """Gray pictures of twelve views of every object of ModelNet40, or of ModelNet10; a view is a channel.

    The files: `modelnet40/CLASS/train/` and `.../test/`, with a folder of twelve PNG files for each object, or with all
    files side by side, named by object and view, as `airplane_0001_shaded_v001.png` or `airplane_0001.001.png`.

    Args:
        data: the folder that contains `modelnet40/`.
        side: height and width to which the pictures are averaged down; 224 in the files.
    """
    side = check_count("side", side, SMALLEST, 224)
    home, parts = data / "modelnet40", []
    if not os.path.isdir(home):
        raise _missing("folder modelnet40", _MODELNET, data)
    classes = sorted(path.name for path in home.iterdir() if path.is_dir())
    if not classes:
        raise _missing("folders of classes", _MODELNET, home)
    for split in ("train", "test"):
        for name in classes:
            if not os.path.isdir(home / name / split):
                raise _missing(f"folder {name}/{split}", _MODELNET, home)
        parts += read_views([home / name / split for name in classes], VIEWS, side)
    return Dataset("modelnet40", parts[0], parts[1], parts[2], parts[3], len(classes))


def _digits(data: Path) -> Dataset:
    """scikit-learn's 1,797 handwritten digits of 8x8 pixels; in every class, each fifth sample is a test sample."""
    pixels, labels = _load_bundled("digits")
    images, test = pixels.astype(np.uint8).reshape(-1, 1, 8, 8), _each_fifth(labels)
    return Dataset("digits", images[~test], labels[~test], images[test], labels[test], 10)


def _table(name: str) -> Dataset:
    """One of scikit-learn's tables, its columns standardized; in every class, each fifth row is a test sample."""
    numbers, labels = _load_bundled(name)
    test = _each_fifth(labels)
    rows = ((numbers - numbers[~test].mean(0)) / numbers[~test].std(0)).astype(np.float32)[:, None, None]
    return Dataset(name, rows[~test], labels[~test], rows[test], labels[test], int(labels.max()) + 1)


@lru_cache
def _load_bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (samples, columns) and labels of a data set that comes with scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError:
        raise MissingExtra("empirical", "scikit-learn") from None
    load = {"digits": datasets.load_digits, "breast-cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}
    numbers, labels = load[name](return_X_y=True)
    return np.asarray(numbers), np.asarray(labels).astype(np.int64)


def _each_fifth(labels: np.ndarray) -> np.ndarray:
    """Which samples are the fifth, tenth, ... of their class."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in range(int(labels.max()) + 1):
        chosen[np.flatnonzero(labels == label)[4::5]] = True
    return chosen


def _fashion_mnist(data: Path) -> Dataset:
    folders = [data / "fashion-mnist", data / "FashionMNIST" / "raw"]
    parts: list[np.ndarray] = []
    for split in ("train", "t10k"):
        images_path = _find(folders, f"{split}-images-idx3-ubyte", _FASHION)
        labels_path = _find(folders, f"{split}-labels-idx1-ubyte", _FASHION)
        images, labels = read_idx(images_path, 3), read_idx(labels_path, 1).astype(np.int64)
        if len(images) != len(labels):
            raise FedboundsError(f"{labels_path}: {len(labels)} labels for {len(images)} images in {images_path.name}")
        check_labels(labels_path, labels, 10)
        parts += [images[:, None], labels]
    if parts[0].shape[1:] != parts[2].shape[1:]:
        sizes = " and ".join("x".join(map(str, part.shape[2:])) for part in (parts[0], parts[2]))
        raise FedboundsError(f"{images_path}: training and test images differ in size ({sizes})")
    return Dataset("fashion-mnist", parts[0], parts[1], parts[2], parts[3], 10)


def _cifar10(data: Path) -> Dataset:
    folders = [data / "cifar-10-batches-bin"]
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    batches = [read_cifar(_find(folders, name, _CIFAR, packed=False), 10) for name in names]
    train_images = np.concatenate([images for images, _ in batches[:5]])
    train_labels = np.concatenate([labels for _, labels in batches[:5]])
    return Dataset("cifar-10", train_images, train_labels, *batches[5], 10)


def _cifar100(data: Path) -> Dataset:
    folders = [data / "cifar-100-binary"]
    paths = [_find(folders, name, _CIFAR, packed=False) for name in ("train.bin", "test.bin")]
    return Dataset("cifar-100", *read_cifar(paths[0], 100, labels=2), *read_cifar(paths[1], 100, labels=2), 100)


def _svhn(data: Path) -> Dataset:
    folders = [data / "svhn", data / "SVHN"]
    paths = [_find(folders, f"{split}_32x32.mat", _SVHN, packed=False) for split in ("train", "test")]
    return Dataset("svhn", *read_svhn(paths[0]), *read_svhn(paths[1]), 10)


def _cinic10(data: Path) -> Dataset:
    folders = [data / "cinic-10", data / "CINIC-10"]
    home = next((folder for folder in folders if os.path.isdir(folder)), folders[0])
    parts: list[np.ndarray] = []
    for split in ("train", "test"):
        classes = [home / split / name for name in _CINIC_CLASSES]
        for place in classes:
            if not os.path.isdir(place):
                raise _missing(f"folder {split}/{place.name}", _CINIC, home)
        parts += read_png_folder(classes, 32)
    return Dataset("cinic-10", parts[0], parts[1], parts[2], parts[3], 10)


def _mimic(data: Path) -> Dataset:
    """In-hospital mortality, without the benchmark's validation stays where `train_listfile.csv` leaves them out."""
    home = data / "in-hospital-mortality"
    lists = {"train": [home / "train_listfile.csv", home / "train" / "listfile.csv"],
             "test": [home / "test" / "listfile.csv"]}  # fmt: skip
    found: dict[str, Path] = {}
    for split, paths in lists.items():
        there = [path for path in paths if os.path.isfile(path)]
        if not there:
            raise _missing(f"file {split}/listfile.csv", _MIMIC, home)
        found[split] = there[0]
    (train, test), (labels, test_labels) = read_mortality(home, found)
    return Dataset("mimic-iii", train, labels, test, test_labels, 2)


DATASETS: Registry[Dataset] = Registry("data set", context=("data",), kinds={
    "digits": _digits,
    "breast-cancer": lambda data: _table("breast-cancer"),
    "wine": lambda data: _table("wine"),
    "fashion-mnist": _fashion_mnist,
    "cifar-10": _cifar10,
    "cifar-100": _cifar100,
    "svhn": _svhn,
    "cinic-10": _cinic10,
    "mimic-iii": _mimic,
    "modelnet40": modelnet40,
    "glyphs": glyphs,
    "sequences": sequences,
    "characters": characters,
    "views": views,
    "npz": npz,
})  # fmt: skip


def _find(folders: list[Path], name: str, source: str, packed: bool = True) -> Path:
    for folder in folders:
        for path in [folder / name, folder / f"{name}.gz"][: 1 + packed]:
            if os.path.isfile(path):
                return path
    raise _missing(f"file {name} or {name}.gz" if packed else f"file {name}", source, folders[0])


class MissingData(FedboundsError):
    """Files of a data set that are not on this machine."""


def _missing(what: str, source: str, folder: Path) -> MissingData:
    return MissingData(f"missing {what}: get it from {source} and put it into {folder.absolute()}")
