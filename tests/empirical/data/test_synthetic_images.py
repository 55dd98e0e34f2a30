"""Glyphs: the same bytes from the same seed, balanced, never shared between training and test, and not easy."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data import font_outlines as outlines
from fedbounds.empirical.data import synthetic_images as made
from fedbounds.empirical.data.datasets import checksum, glyphs, load_dataset
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.problems.networks import Network
from fedbounds.empirical.sweep import plan, resolve

SMALL = {"kind": "glyphs", "train": 60, "test": 30}


@pytest.fixture(autouse=True)
def _fresh():
    made.draw_images.cache_clear()


@pytest.mark.parametrize("color", [False, True])
def test_the_same_seed_gives_the_same_bytes_however_many_images_are_made_at_once(color, monkeypatch):
    first = glyphs(70, 30, 20, color)
    for at_once in (1, 7, 1000):
        made.draw_images.cache_clear()
        monkeypatch.setattr(made, "_AT_ONCE", at_once)
        assert checksum(glyphs(70, 30, 20, color)) == checksum(first)
    assert checksum(glyphs(70, 30, 20, color, seed=1)) != checksum(first)


def test_a_smaller_set_is_the_beginning_of_a_larger_one():
    small, large = glyphs(50, 20), glyphs(300, 40)
    np.testing.assert_array_equal(small.train_images, large.train_images[:50])
    np.testing.assert_array_equal(small.test_labels, large.test_labels[:20])


def test_the_bytes_are_those_of_every_other_machine():
    """The checksums under matplotlib 3.9.4, 3.10.0 and 3.11.2 on x86-64."""
    assert checksum(load_dataset(SMALL)) == "3e3a9f91cc344dc099b4c53fa150dc075bd8ec853ec51aef1c554e1ff4bea663"
    assert checksum(load_dataset(SMALL | {"classes": 15, "color": True, "seed": 3})) == (
        "281582974c6f3e710bfae5414543a24d19dfea1c3a97ec18215bfad18f909f4c"
    )


@pytest.mark.parametrize(("color", "image"), [(False, (1, 28, 28)), (True, (3, 32, 32))])
@pytest.mark.parametrize("classes", [10, 47])
def test_images_are_bytes_of_the_size_that_is_said_and_classes_are_balanced(color, image, classes):
    dataset = glyphs(100, 50, classes, color)
    assert dataset.image == image and dataset.classes == classes
    for images, labels, size in (
        (dataset.train_images, dataset.train_labels, 100),
        (dataset.test_images, dataset.test_labels, 50),
    ):
        assert images.shape == (size, *image) and images.dtype == np.uint8 and labels.dtype == np.int64
        assert set(np.bincount(labels, minlength=classes)) <= {size // classes, size // classes + 1}
        assert images.min() < 10 and images.max() > 245  # the whole range is used


@pytest.mark.parametrize(("color", "side"), [(False, 14), (False, 7), (True, 16), (True, 8)])
def test_smaller_images_are_rounded_means_over_squares(color, side):
    whole, small = (glyphs(40, 20, color=color, side=pixels).train_images for pixels in (None, side))
    square = whole.shape[-1] // side
    for image, pixel in ((3, (2, 4)), (17, (side - 1, 0))):
        row, column = (square * place for place in pixel)
        cell = whole[image, -1, row : row + square, column : column + square]
        assert small[image, -1][pixel] == int(np.float64(cell).mean() + 0.5)
    assert small.shape == (40, whole.shape[1], side, side) and small.dtype == np.uint8


def test_training_and_test_images_share_no_random_number():
    dataset = glyphs(400, 400)
    everything = np.concatenate([dataset.train_images, dataset.test_images]).reshape(800, -1)
    assert len(np.unique(everything, axis=0)) == 800
    close = np.corrcoef(everything[:400].astype(float), everything[400:].astype(float))
    assert np.abs(close[:400, 400:]).max() < 0.95


def test_a_caller_may_write_into_its_images_and_the_next_one_gets_them_clean():
    first = load_dataset(SMALL)
    before = checksum(first)
    first.train_images[:] = 0
    assert checksum(load_dataset(SMALL)) == before


def test_every_face_has_every_character_and_no_two_characters_of_a_face_are_alike():
    pictures = outlines.pictures(outlines.CHARACTERS)
    assert pictures.shape == (len(outlines.FACES), 47, outlines.SIDE, outlines.SIDE)
    ink = pictures.mean((2, 3))
    assert ink.min() > 0.04 and ink.max() < 0.6
    assert (pictures[..., :1] == 0).all() and (pictures[..., -1:] == 0).all()
    flat = pictures.reshape(len(outlines.FACES), 47, -1)
    for face, rows in zip(outlines.FACES, flat, strict=True):
        apart = np.abs(rows[:, None] - rows[None]).mean(2) + np.eye(47)
        assert apart.min() > 0.005, face


def test_a_zero_is_a_ring_and_a_one_is_not():
    """Lines are filled by the way they wind: the middle of a zero is empty, that of an eight's waist is not."""
    zero, one = outlines.pictures("01")[outlines.FACES.index("DejaVuSans")]
    middle = outlines.SIDE // 2
    assert zero[middle, middle] == 0 and one[middle, middle - 4 : middle + 5].max() == 1
    assert zero[middle].max() == 1


@pytest.mark.parametrize(("wrong", "message"), [
    ({"train": 0}, r"train = 0 must be an integer >= 10: at least one image of each class"),
    ({"test": 0}, "test = 0 must be an integer >= 10"),
    ({"classes": 48}, r"classes = 48 must be an integer in \[10, 47\]"),
    ({"classes": 9}, r"classes = 9 must be an integer in \[10, 47\]"),
    ({"classes": 36, "train": 20}, "train = 20 must be an integer >= 36"),
    ({"train": 2.5}, r"train = 2\.5 must be an integer"),
    ({"train": 10**12}, "GiB of memory"),
    ({"color": 1}, "color = 1 must be true or false"),
    ({"side": 10}, "side = 10 must be one of 28, 14, 7"),
    ({"side": 14, "color": True}, "side = 14 must be one of 32, 16, 8"),
    ({"seed": -1}, r"seed = -1 must be an integer in \[0, 4294967295\]"),
    ({"seed": 2**32}, "seed = 4294967296 must be"),  # its training images would be the test images of seed 0
    ({"sead": 1}, "unknown key of data set 'glyphs': 'sead'; did you mean seed"),
])  # fmt: skip
def test_what_cannot_be_made_is_one_line(wrong, message):
    for make in (load_dataset, lambda d: problem_from_spec({"kind": "images", "dataset": d, "clients": 10})):
        with pytest.raises(FedboundsError, match=message) as refused:
            make(SMALL | wrong)
        assert "\n" not in str(refused.value)


def test_other_data_sets_have_no_keys():
    with pytest.raises(FedboundsError, match="data set 'digits' has no keys; remove 'train'"):
        load_dataset({"kind": "digits", "train": 3})
    with pytest.raises(FedboundsError, match="unknown data set 'glyph'; did you mean glyphs"):
        load_dataset({"kind": "glyph"})


def test_a_machine_without_matplotlib_or_without_a_face_says_what_to_do(monkeypatch):
    outlines.pictures.cache_clear()
    monkeypatch.setattr(outlines, "FACES", ("Fraktur",))
    with pytest.raises(FedboundsError, match=r"lacks the font Fraktur\.ttf"):
        outlines.pictures("0")
    monkeypatch.setitem(sys.modules, "matplotlib.textpath", None)
    with pytest.raises(FedboundsError, match=r"matplotlib is not installed; run: pip install 'fedbounds\[empirical\]'"):
        outlines.pictures("0")


def test_the_checksum_of_the_images_is_in_the_key_of_a_run():
    def sweep(dataset):
        problem = {"kind": "images", "network": "linear", "clients": 10, "dataset": dataset}
        return resolve({"rounds": 2, "problem": problem, "participation": {"kind": "full", "clients": 10},
                        "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 1}})  # fmt: skip

    keys = {plan(sweep(SMALL | {"seed": seed}))[0].key for seed in (0, 1, 1)}
    assert len(keys) == 2
    assert problem_from_spec({"kind": "images", "dataset": SMALL, "clients": 10}).data_checksum == checksum(
        load_dataset(SMALL)
    )


def _accuracy(dataset, network, steps, step_size, batch=32):
    """Test accuracy after plain stochastic gradient descent on all training images."""
    net = Network(network, dataset.image, dataset.classes)
    train, test = map(torch.from_numpy, dataset.standardised())
    truth = torch.from_numpy(dataset.train_labels)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(net.initial(rng)).float()[None]
    for _ in range(steps):
        some = torch.from_numpy(rng.choice(len(truth), batch, replace=False))
        x = x - step_size * net.gradient(x, train[some][None], truth[some][None])
    answers = net.logits(x, test[None])[0].argmax(1).numpy()
    return (answers == dataset.test_labels).mean()


def test_the_images_are_not_separable_by_means_or_lines():
    dataset = glyphs(3000, 1000)
    train, test = (images.reshape(len(images), -1) for images in dataset.standardised())
    means = np.stack([train[dataset.train_labels == label].mean(0) for label in range(10)])
    nearest = ((means**2).sum(1) - 2 * test @ means.T).argmin(1)
    assert (nearest == dataset.test_labels).mean() < 0.25
    assert _accuracy(dataset, "linear", 300, 0.01) < 0.3


@pytest.mark.long
def test_a_small_network_learns_what_lines_cannot():
    dataset = glyphs(8000, 1000)
    assert _accuracy(dataset, "cnn", 750, 0.05) > 0.5


def test_many_images_are_kept_and_made_anew_if_the_file_is_not_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(made, "_WORTH_KEEPING", 40)
    drawn = []
    make = made._images
    monkeypatch.setattr(made, "_images", lambda *arguments: drawn.append(1) or make(*arguments))

    def images(samples=50, seed=0):
        made.draw_images.cache_clear()
        return made.draw_images(seed, 0, samples, 10, False)[0].copy()

    first = images()
    (file,) = (tmp_path / "fedbounds").iterdir()
    assert len(drawn) == 1 and np.array_equal(images(), first) and len(drawn) == 1
    damaged = bytearray(file.read_bytes())
    damaged[100] ^= 1
    for content in (bytes(damaged), b"short", b""):
        file.write_bytes(content)
        assert np.array_equal(images(), first)
    assert len(drawn) == 4
    for seed in range(1, 6):  # a few are kept
        assert not np.array_equal(images(seed=seed), first)
    assert len([*(tmp_path / "fedbounds").iterdir()]) == 4
    images(30)  # few images are not worth it
    assert len([*(tmp_path / "fedbounds").iterdir()]) == 4
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    assert np.array_equal(images(), first)
    made.draw_images.cache_clear()
