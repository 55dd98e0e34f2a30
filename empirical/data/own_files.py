"""Samples and partitions in files of the user's own: npz, npy, CSV and JSON, without pickles."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.inputs.user_files import ENDINGS, read_bytes, read_text
from fedbounds.empirical.runtime.array_files import read_arrays

LARGEST = 2**31  # bytes of a file of samples once unpacked
_LARGEST_PARTITION = 2**28  # bytes
# what other tools call these arrays, in any case
_NAMES: Mapping[str, tuple[str, ...]] = {
    "train_features": ("train_features", "train_images", "x_train", "features", "x"),
    "train_labels": ("train_labels", "y_train", "labels", "y"),
    "test_features": ("test_features", "test_images", "x_test"),
    "test_labels": ("test_labels", "y_test"),
    "owners": ("owners",),
}


def read_samples(path: str | Path) -> tuple[dict[str, np.ndarray], int]:
    """The arrays of an npz file, and the number of classes; 0 if the labels are numbers of a regression.

    Features become `(samples, channels, height, width)`, uint8 or float32; rows of a table are images (1, 1, columns).
    Labels become int64 classes `(samples,)` or float32 numbers `(samples, outputs)`.

    Raises:
        FedboundsError: damaged, larger than 2 GiB, without features or labels, of other numbers of samples, or with
            numbers that are not finite.
    """
    try:
        held = read_arrays(path, f"the data file {path}", LARGEST)
    except FedboundsError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise FedboundsError(
            f"the data file {path} is damaged or no npz file: {error or type(error).__name__}"
        ) from None
    lower = {name.lower(): array for name, array in held.items()}
    found = {ours: lower[name] for ours, names in _NAMES.items() for name in reversed(names) if name in lower}
    for part in ("train_features", "train_labels"):
        if part not in found:
            raise FedboundsError(
                f"{path} has the arrays {', '.join(held) or 'none'}; expected {part} (or {', '.join(_NAMES[part][1:])})"
            )
    if ("test_features" in found) != ("test_labels" in found):
        raise FedboundsError(f"{path} has one of test_features and test_labels; give both, or none")
    features = {part: _images(f"{path}: {part}", found[part]) for part in found if part.endswith("features")}
    train = features["train_features"]
    features.setdefault("test_features", train[:0])
    if features["test_features"].shape[1:] != train.shape[1:] or features["test_features"].dtype != train.dtype:
        raise FedboundsError(f"{path}: training and test features differ in shape or type; give the same for both")
    found.setdefault("test_labels", found["train_labels"][:0])
    labels = {part: _numbers(f"{path}: {part}", found[part]) for part in ("train_labels", "test_labels")}
    for part in ("train", "test"):
        samples, targets = len(features[f"{part}_features"]), len(labels[f"{part}_labels"])
        if samples != targets or (part == "train" and not samples):
            raise FedboundsError(f"{path}: {samples} {part} samples have {targets} labels; give one label for each")
    classes = _classes(labels.values())
    for part, array in labels.items():
        labels[part] = array[:, 0].astype(np.int64) if classes else array.astype(np.float32)
    if "owners" in found:
        features["owners"] = _clients(f"{path}: owners", found["owners"].tolist(), len(train))
    return features | labels, classes


def _images(where: str, features: np.ndarray) -> np.ndarray:
    """Features as images, channels first; colors may come last, as in most files of images."""
    if not 2 <= features.ndim <= 4 or features.dtype.kind not in "iufb":
        raise FedboundsError(
            f"{where} has shape {features.shape} of {features.dtype}; expected numbers (samples, columns), "
            "(samples, height, width) or (samples, channels, height, width)"
        )
    if features.ndim == 4 and features.shape[-1] in (1, 3) and features.shape[1] not in (1, 3):
        features = np.moveaxis(features, -1, 1)
    while features.ndim < 4:
        features = features[:, None]
    if not np.isfinite(features).all():
        raise FedboundsError(f"{where} has numbers that are not finite; remove these samples")
    return np.ascontiguousarray(features, dtype=None if features.dtype == np.uint8 else np.float32)


def _numbers(where: str, labels: np.ndarray) -> np.ndarray:
    """Labels as numbers `(samples, outputs)`."""
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "iufb" or not np.isfinite(labels).all():
        raise FedboundsError(
            f"{where} has shape {labels.shape} of {labels.dtype}; expected finite numbers (samples,) "
            "or (samples, outputs)"
        )
    return (labels[:, None] if labels.ndim == 1 else labels).astype(float)


def _classes(labels: Any) -> int:
    """The number of classes, if all labels are whole numbers from 0."""
    both = [array for array in labels if array.size]
    whole = all(array.shape[1] == 1 and (array >= 0).all() and (array == array.round()).all() for array in both)
    return 1 + int(max(array.max() for array in both)) if whole else 0


def is_partition_file(partition: str) -> bool:
    """Whether the name of a partition is that of a file."""
    return Path(partition).suffix.lower() in ENDINGS["partition"]


def read_assignment(path: str | Path, samples: int) -> np.ndarray:
    """The client of each training sample, from a file.

    A CSV file has a line for each sample, with its client, or with the columns `sample` and `client`; an npy file is
    `(samples,)`; a JSON file is a list of clients, or a list of samples for each client.

    Raises:
        FedboundsError: it cannot be read, or a sample has no client or two.
    """
    path = Path(path)
    what, suffix = f"the partition {path}", path.suffix.lower()
    if suffix == ".npy":
        content = io.BytesIO(read_bytes(path, what, _LARGEST_PARTITION))
        try:
            listed: Any = np.load(content, allow_pickle=False).tolist()
        except Exception as error:
            raise FedboundsError(f"{what} is damaged or no npy file: {error or type(error).__name__}") from None
    elif suffix == ".json":
        try:
            listed = json.loads(read_text(path, what, _LARGEST_PARTITION))
        except (ValueError, RecursionError) as error:
            raise FedboundsError(f"{what} is not JSON: {error}") from None
        listed = [*listed.values()] if isinstance(listed, Mapping) else listed
    else:
        listed = _read_columns(path, what, samples)
    if isinstance(listed, list) and listed and all(isinstance(own, list) for own in listed):
        return _assign(str(path), listed, samples)
    return _clients(str(path), listed, samples)


def _read_columns(path: Path, what: str, samples: int) -> list[Any]:
    """The clients in a CSV file, in the order of the samples."""
    text = read_text(path, what, _LARGEST_PARTITION)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if any(line)]
    except csv.Error as error:
        raise FedboundsError(f"{what} is not a CSV file: {error}") from None
    names = [cell.strip().lower() for cell in lines[0]] if lines else []
    header = not all(name.lstrip("-").isdecimal() for name in names)
    rows = [[_whole(cell) for cell in line] for line in lines[header:]]
    if any(len(row) != len(names) for row in rows):
        raise FedboundsError(f"{path} has lines of different lengths; give each the columns of the first line")
    if len(names) == 1:
        return [row[0] for row in rows]
    if not header or not {"sample", "client"} <= {*names}:
        raise FedboundsError(f"{path} begins with {quote(','.join(lines[0]))}; expected one column, or sample,client")
    by_client: dict[Any, list[Any]] = {}
    for row in rows:
        by_client.setdefault(row[names.index("client")], []).append(row[names.index("sample")])
    numbers = _clients(f"{path}: client", [*by_client], len(by_client))
    most = int(numbers.max(initial=-1)) + 1
    listed = _assign(str(path), [by_client.get(n, []) for n in range(most)], samples)
    return listed.tolist()


def _whole(cell: str) -> Any:
    """A cell as a whole number, or as it is."""
    cell = cell.strip()
    return int(cell) if cell.lstrip("-").isdecimal() and len(cell) < 19 else cell


def _assign(where: str, listed: Sequence[Sequence[Any]], samples: int) -> np.ndarray:
    """The client of each sample, from the samples of each client."""
    assignment = np.full(samples, -1, dtype=np.int64)
    for client, own in enumerate(listed):
        for sample in own:
            if type(sample) is not int or not 0 <= sample < samples:
                raise FedboundsError(
                    f"{where}: client {client} has sample {quote(sample)}; expected 0 to {samples - 1}"
                )
            if assignment[sample] >= 0:
                raise FedboundsError(f"{where}: sample {sample} has the clients {assignment[sample]} and {client}")
            assignment[sample] = client
    if (assignment < 0).any():
        raise FedboundsError(f"{where}: training sample {assignment.argmin()} has no client; list each sample once")
    return assignment


def _clients(where: str, listed: Any, samples: int) -> np.ndarray:
    """The client of each sample, checked."""
    if not isinstance(listed, list) or len(listed) != samples:
        count = f"{len(listed)} entries" if isinstance(listed, list) else "no list"
        raise FedboundsError(f"{where} has {count}; expected the client of each of {samples} training samples")
    for sample, client in enumerate(listed):
        if type(client) is not int or not 0 <= client < samples:
            raise FedboundsError(f"{where}: sample {sample} has the client {quote(client)}; expected a number from 0")
    return np.array(listed, dtype=np.int64)
