"""Sheets of images: every class is on them, and the command draws them by the name of the data set."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from fedbounds.empirical.data.datasets import Dataset, checksum, glyphs, load_dataset
from fedbounds.figures.charts.samples import sheet
from tests.command_line import run


@pytest.mark.parametrize("dataset", [glyphs(94, 47, 47), glyphs(40, 10, 10, color=True)], ids=["gray", "color"])
def test_a_sheet_says_what_it_shows_and_where_it_comes_from(dataset, tmp_path):
    picture = sheet(dataset)
    assert picture.provenance["checksum"] == checksum(dataset)
    image, data, _ = picture.save(tmp_path / "sheet.png")
    with data.open(encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    sizes = np.bincount(dataset.train_labels)
    assert [(float(x), float(y)) for _, x, y, *_ in rows] == [*enumerate(sizes.astype(float))]
    assert image.stat().st_size > 10_000


def test_each_row_of_a_sheet_of_ten_classes_is_one_class(tmp_path):
    tones = np.repeat(np.arange(10, dtype=np.uint8) * 25, 12)
    images = np.broadcast_to(tones[::-1, None, None, None], (120, 1, 8, 8)).copy()
    labels = np.repeat(np.arange(10), 12)[::-1].copy()
    picture = sheet(Dataset("tones", images, labels, images, labels, 10)).save(tmp_path / "tones.png")[0]
    with Image.open(picture) as drawn:
        gray = np.asarray(drawn.convert("L")).astype(int)
    rows = gray.reshape(10, -1, gray.shape[1])[:, 10:-10]
    assert np.ptp(rows, axis=(1, 2)).max() < 3  # one tone each
    assert (np.diff(rows.mean((1, 2))) > 20).all()


def test_the_command_draws_a_data_set_by_its_name(tmp_path):
    status, out, error = run("figure", "digits", "--out", str(tmp_path / "digits.png"))
    assert status == 0 and not error and "digits.csv" in out
    assert len(load_dataset("digits").train_labels) == 1442
    status, _, error = run("figure", "glyphz", "--out", str(tmp_path / "x.png"))
    assert status == 2 and "unknown figure 'glyphz'; did you mean glyphs" in error
    status, _, error = run("figure", "svhn", "--data", str(tmp_path), "--out", str(tmp_path / "x.png"))
    assert status == 2 and "missing file train_32x32.mat" in error


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("glyphs", ["--network", "mlp"]),
        ("tightness", ["--dataset", "digits"]),
        ("references/gap", ["--full"]),
        ("fedmrn/operators", ["--metric", "loss"]),
        ("examples/sweep.toml", ["--dataset", "glyphs"]),
    ],
)
def test_an_option_that_changes_nothing_is_refused(name, options, tmp_path):
    status, _, error = run("figure", name, *options, "--out", str(tmp_path / "x.png"))
    assert status == 2 and f"{options[0]} changes nothing for {name}; leave it out" in error
    assert not [*tmp_path.iterdir()]


def test_a_figure_in_a_directory_is_called_by_its_name(tmp_path):
    status, printed, _ = run("figure", "glyphs", "--out", str(tmp_path))
    assert status == 0 and (tmp_path / "glyphs.png").is_file() and "glyphs.png" in printed
