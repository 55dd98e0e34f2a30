"""Augmentation against Pillow, which does each operation on its own, and against what chance should give."""

from __future__ import annotations

import colorsys
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data import augmentation
from fedbounds.empirical.data.augmentation import Augmentation
from fedbounds.empirical.runtime.counter_rng import uniforms

RNG = np.random.default_rng(0)
WORDS = torch.arange(1000)
ALWAYS = torch.zeros(6, 2, dtype=torch.float64)
ALL = ("sharpness", "jitter", "posterize", "equalize", "crop", "flip")


def _images(*shape):
    """Smooth, noisy, dark, constant and two-valued images."""
    noise = RNG.integers(0, 256, (6, *shape))
    ramp = np.broadcast_to(np.linspace(0, 255, shape[-1]), shape)
    kinds = [noise[0], ramp, noise[2] // 8, np.full(shape, 77), (noise[4] > 200) * 255, (noise[5] + ramp) / 2]
    return torch.from_numpy(np.stack(kinds).astype(np.uint8))


def _pillow(image):
    return Image.fromarray(image.permute(1, 2, 0).numpy())


def _tensor(picture):
    return torch.from_numpy(np.asarray(picture).transpose(2, 0, 1).copy())


@pytest.mark.parametrize(("operation", "reference"), [
    (augmentation.flip, ImageOps.mirror),
    (augmentation.posterize, lambda picture: ImageOps.posterize(picture, 2)),
    (augmentation.equalize, ImageOps.equalize),
])  # fmt: skip
@pytest.mark.parametrize("size", [(32, 32), (20, 24)])
def test_operations_on_single_pixels_and_histograms_are_pillows(operation, reference, size):
    images = _images(3, *size)
    changed = operation(images, ALWAYS)
    assert changed.dtype == torch.uint8
    for image, got in zip(images, changed, strict=True):
        assert torch.equal(got, _tensor(reference(_pillow(image))))


def test_sharpness_is_twice_the_image_minus_the_smoothing_kernel_and_leaves_the_border():
    images = _images(3, 9, 7)
    changed = augmentation.sharpen(images, ALWAYS).double()
    kernel = torch.tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=torch.float64) / 13
    smooth = torch.nn.functional.conv2d(images.double(), kernel.expand(3, 1, 3, 3), groups=3).round()
    expected = images.double()
    expected[..., 1:-1, 1:-1] = (2 * expected[..., 1:-1, 1:-1] - smooth).clamp(0, 255)
    assert torch.equal(changed, expected)


def test_a_turn_of_the_hue_is_the_standard_librarys():
    colors = torch.from_numpy(RNG.random((4, 3, 5, 5)))
    colors[0, :, 0, 0], colors[1, :, 0, 0] = 0.5, 0.0
    turn = torch.tensor([-0.05, 0.0, 0.03, 0.4])[:, None, None].double()
    turned = augmentation.turn_hue(colors, turn)
    for b in range(4):
        for i in range(5):
            for j in range(5):
                hue, saturation, value = colorsys.rgb_to_hsv(*colors[b, :, i, j].tolist())
                expected = colorsys.hsv_to_rgb((hue + float(turn[b])) % 1, saturation, value)
                assert turned[b, :, i, j].tolist() == pytest.approx(expected, abs=1e-12)


def test_jitter_without_a_change_is_the_image_and_its_extremes_are_five_per_cent():
    images = _images(3, 8, 8)
    assert torch.equal(augmentation.jitter(images, torch.full((6, 2), 0.5).double()), images)
    gray = torch.full((2, 3, 4, 4), 100, dtype=torch.uint8)
    extremes = augmentation.jitter(gray, torch.tensor([[0.0, 0.2], [1.0, 0.9]]).double())
    assert extremes[0].unique().tolist() == [95] and extremes[1].unique().tolist() == [105]


@pytest.mark.parametrize(("size", "padding"), [((32, 32), (4, 4)), ((8, 8), (1, 1)), ((16, 24), (2, 3))])
def test_a_crop_is_a_window_of_the_padded_image_and_every_window_is_equally_likely(size, padding):
    image = (1 + torch.arange(size[0] * size[1]) % 255).to(torch.uint8).view(1, 1, *size)
    padded = np.pad(image[0, 0].numpy(), [(padding[0],) * 2, (padding[1],) * 2])
    places = [(i, j) for i in range(2 * padding[0] + 1) for j in range(2 * padding[1] + 1)]
    windows = {padded[i : i + size[0], j : j + size[1]].tobytes(): (i, j) for i, j in places}
    cropped = Augmentation(("crop",)).apply(image.expand(1000, 1, *size), WORDS)
    found = [windows[crop.numpy().tobytes()] for crop in cropped[:, 0]]
    counts = np.array([found.count(place) for place in places])
    expected = 1000 / len(places)
    freedom = len(places) - 1
    assert ((counts - expected) ** 2 / expected).sum() < freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("name", ["flip", "sharpness", "posterize", "equalize"])
def test_operations_happen_to_half_of_the_samples_and_independently_of_each_other(name):
    image = _images(3, 32, 32)[5].expand(1000, 3, 32, 32)
    changed = (Augmentation((name,)).apply(image, WORDS) != image).flatten(1).any(1).numpy()
    assert abs(changed.mean() - 0.5) < 5 * 0.5 / 1000**0.5
    if name != "flip":
        flipped = (Augmentation(("flip",)).apply(image, WORDS) != image).flatten(1).any(1).numpy()
        assert abs((flipped & changed).mean() - 0.25) < 5 * (3 / 16 / 1000) ** 0.5


def test_operations_are_applied_in_the_order_given_each_with_numbers_of_its_own(monkeypatch):
    marks = {}
    for name in ALL:
        marks[name] = Mock(side_effect=lambda images, draws: images)
    monkeypatch.setattr(augmentation, "_OPERATIONS", marks)
    calls = []
    for name, mark in marks.items():
        mark.side_effect = lambda images, draws, name=name: calls.append((name, draws)) or images
    Augmentation(("flip", "crop", "equalize")).apply(_images(3, 8, 8), torch.arange(6))
    assert [name for name, _ in calls] == ["flip", "crop", "equalize"]
    assert not torch.equal(calls[0][1], calls[1][1])
    assert torch.equal(calls[0][1], uniforms(torch.arange(6), 1 + ALL.index("flip"), 2))


def test_a_sample_does_not_depend_on_the_batch_it_is_changed_in():
    images, words = _images(3, 16, 16), torch.tensor([[3, 1], [4, 1], [5, 9]])
    together = Augmentation(ALL).apply(images.view(3, 2, 3, 16, 16), words)
    for i in range(3):
        for j in range(2):
            alone = Augmentation(ALL).apply(images[2 * i + j][None], words[i, j][None])[0]
            assert torch.equal(together[i, j], alone)


@pytest.mark.parametrize(("operations", "message"), [
    (("crops",), "unknown augmentation 'crops'; did you mean crop"),
    ("crop", "augmentation = 'crop' must be a list of names"),
    (3, "augmentation = 3 must be a list"),
    (("crop", "flip", "crop"), "names an operation twice"),
    ((7,), "unknown augmentation '7'"),
    ([["crop"]], r"unknown augmentation \"\['crop'\]\""),
    ({"crop": 1}, "augmentation = .* must be a list of names"),
])  # fmt: skip
def test_bad_augmentations_are_one_line(operations, message):
    with pytest.raises(FedboundsError, match=message):
        Augmentation(operations)


def test_colors_need_three_channels():
    Augmentation(("crop", "flip")).check_image((1, 8, 8))
    Augmentation(ALL).check_image((3, 32, 32))
    with pytest.raises(FedboundsError, match="'posterize' needs images of 3 channels"):
        Augmentation(("crop", "posterize")).check_image((1, 8, 8))
