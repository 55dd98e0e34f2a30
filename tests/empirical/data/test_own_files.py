"""Samples and partitions in files of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import checksum, load_dataset
from fedbounds.empirical.data.own_files import read_assignment

X, Y = np.arange(24.0).reshape(6, 4), np.array([0, 1, 2, 0, 1, 2])


def save(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize("names", ["x_train y_train x_test y_test", "X y test_images test_labels"])
def test_arrays_are_found_under_the_names_of_other_tools(names: str, tmp_path: Path) -> None:
    path = save(tmp_path / "d.npz", **dict(zip(names.split(), (X, Y, X[:2], Y[:2, None]), strict=True)))
    found = load_dataset(path)
    assert found.image == (1, 1, 4) and found.classes == 3 and not found.in_bytes
    np.testing.assert_array_equal(found.train_images[:, 0, 0], X)
    np.testing.assert_array_equal(found.test_labels, Y[:2])
    assert checksum(found) == checksum(load_dataset({"kind": "npz", "file": path}))


@pytest.mark.parametrize(
    ("shape", "image"), [((6, 8, 8), (1, 8, 8)), ((6, 8, 8, 3), (3, 8, 8)), ((6, 3, 8, 8), (3, 8, 8))]
)
def test_images_have_their_channels_first(shape: tuple[int, ...], image: tuple[int, ...], tmp_path: Path) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    found = load_dataset(save(tmp_path / "d.npz", features=pixels, labels=Y))
    assert found.image == image and found.in_bytes and len(found.test_labels) == 0
    first = pixels[0] if len(shape) == 3 else pixels[0, :, :, 0] if shape[-1] == 3 else pixels[0, 0]
    np.testing.assert_array_equal(found.train_images[0, 0], first)


def test_numbers_that_are_no_classes_are_a_regression(tmp_path: Path) -> None:
    found = load_dataset(save(tmp_path / "d.npz", features=X, labels=Y - 0.5))
    assert found.classes == 0 and found.train_labels.shape == (6, 1) and found.train_labels.dtype == np.float32


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": X}, "expected train_labels"),
        ({"a": X}, "has the arrays a; expected train_features"),
        ({"features": X, "labels": Y[:4]}, "6 train samples have 4 labels"),
        ({"features": X, "labels": Y, "test_features": X}, "one of test_features and test_labels"),
        ({"features": X, "labels": Y, "test_features": X[:, :2], "test_labels": Y}, "differ in shape"),
        ({"features": X * np.nan, "labels": Y}, "not finite"),
        ({"features": Y, "labels": Y}, "has shape"),
        ({"features": X, "labels": Y.astype(str)}, "expected finite numbers"),
        ({"features": X, "labels": np.array([{}] * 6)}, "damaged or no npz file"),  # a pickle
        ({"features": X, "labels": Y, "owners": Y[:2]}, "owners has 2 entries"),
    ],
)
def test_files_that_are_no_samples_are_one_line(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FedboundsError, match=message):
        load_dataset(save(tmp_path / "d.npz", **arrays))


WHO = [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", "0\n1\n2\n0\n1\n2\n"),
        ("p.csv", "client\n0\n1\n2\n0\n1\n2\n"),
        ("p.csv", "client,sample\n2,5\n1,1\n2,2\n0,3\n1,4\n0,0\n"),
        ("p.json", json.dumps(WHO)),
        ("p.json", "[[3, 0], [1, 4], [5, 2]]"),
        ("p.json", '{"0": [0, 3], "1": [1, 4], "2": [2, 5]}'),
        ("p.npy", np.array(WHO)),
    ],
)
def test_all_files_of_a_partition_are_the_same_partition(name: str, content: Any, tmp_path: Path) -> None:
    if isinstance(content, str):
        (tmp_path / name).write_text(content)
    else:
        np.save(tmp_path / name, content)
    assert read_assignment(tmp_path / name, 6).tolist() == WHO


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", "0\n1\n", "has 2 entries; expected the client of each of 6"),
        ("p.csv", "0\nx\n1\n1\n1\n1\n", "sample 1 has the client 'x'"),
        ("p.csv", "a,b\n0,1\n", "expected one column, or sample,client"),
        ("p.csv", "sample,client\n0,1\n1\n", "different lengths"),
        ("p.json", "[[0, 1, 2], [3, 4]]", "training sample 5 has no client"),
        ("p.json", "[[0, 1, 2], [2, 3, 4, 5]]", "sample 2 has the clients 0 and 1"),
        ("p.json", "[[0, 1, 2], [3, 4, 6]]", "has sample 6; expected 0 to 5"),
        ("p.json", "[0, 1", "is not JSON"),
        ("p.json", "7", "has no list"),
        ("p.npy", "no array", "damaged or no npy file"),
    ],
)
def test_partitions_with_faults_are_one_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(FedboundsError, match=message):
        read_assignment(tmp_path / name, 6)
