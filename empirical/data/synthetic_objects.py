"""Labeled objects made here, each seen from twelve sides: balls of several sizes, nearer ones brighter, partly hidden.

Sums, products and square roots of numbers drawn from words alone, so that the bytes are those of every other machine.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from fedbounds.empirical.runtime.counter_rng import uniforms, words_from_uniforms

VIEWS = 12
SMALLEST = 8  # pixels of a side
_BALLS, _CLUTTER = 5, 2  # of an object, and more that say nothing
_AT_ONCE = 128  # objects that are made together
_OBJECT, _VIEW, _NOISE = 1, 2, 20  # purposes of an object's random numbers
_JITTER, _GRAIN = 0.65, 0.5  # sizes
_HALF, _ROOT = np.float32(0.5), np.sqrt(np.float32(0.75))
# of angles of 0, 30, ..., 330 degrees
_COSINES = np.array([1, _ROOT, _HALF, 0, -_HALF, -_ROOT, -1, -_ROOT, -_HALF, 0, _HALF, _ROOT], dtype=np.float32)
_SINES = np.roll(_COSINES, 3)


@lru_cache(maxsize=4)
def draw_views(seed: int, split: int, samples: int, classes: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Views `(samples, 12, side, side)`, uint8, and labels `(samples,)`, int64, of one split.

    Every object depends on one word and its label alone.
    """
    words = words_from_uniforms(np.random.default_rng([seed, split]).random(samples))
    shapes = np.random.default_rng([seed, 2]).random((classes, _BALLS, 4)).astype(np.float32)
    labels = np.arange(samples) % classes
    images = np.empty((samples, VIEWS, side, side), dtype=np.uint8)
    for start in range(0, samples, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        images[some] = _images(torch.from_numpy(words[some]), shapes[labels[some]], side)
    for part in (images, labels):
        part.setflags(write=False)
    return images, labels


def _images(words: torch.Tensor, shapes: np.ndarray, side: int) -> np.ndarray:
    """The objects of words, whose classes have `shapes` (objects, balls, 4), from all sides."""
    drawn = uniforms(words, _OBJECT, 4 * (_BALLS + _CLUTTER) + 2).numpy().astype(np.float32)
    turn, scale = drawn[:, :2].T
    own, other = np.split(drawn[:, 2:].reshape(len(words), -1, 4), [_BALLS], axis=1)
    centers = 1.2 * (shapes[..., :3] - _HALF) + _JITTER * (own[..., :3] - _HALF)
    centers = np.concatenate([centers, 1.4 * (other[..., :3] - _HALF)], axis=1)
    radii = (0.14 + 0.16 * shapes[..., 3]) * (0.8 + 0.4 * own[..., 3])
    radii = np.concatenate([radii, 0.14 + 0.16 * other[..., 3]], axis=1)
    size, half = (0.85 + 0.25 * scale)[:, None], 0.5 * (turn - _HALF)[:, None]  # the tangent of half the angle
    x, y, z = np.moveaxis(centers * size[..., None], 2, 0)
    norm = 1 + half * half
    x, z = ((1 - half * half) * x + 2 * half * z) / norm, ((1 - half * half) * z - 2 * half * x) / norm
    place = ((np.arange(side, dtype=np.float32) + _HALF) * np.float32(2 / side)) - 1
    across, down = place[None, None, None, :], place[None, None, :, None]
    seen = np.zeros((len(words), VIEWS, side, side), dtype=np.float32)
    for ball in range(centers.shape[1]):
        right, near = (v[..., None, None] for v in _rotate(x[:, ball], z[:, ball]))
        r, up = ((v * s)[:, None, None, None] for v, s in ((radii[:, ball], size[:, 0]), (y[:, ball], 1)))
        away = (across - right) ** 2 + (down - up) ** 2
        cover = ((r - np.sqrt(away)) * np.float32(side / 2) + _HALF).clip(0, 1)
        height = np.sqrt((r * r - away).clip(0))
        seen = np.maximum(seen, cover * (0.6 + 0.35 * (near + height)).clip(0.1, 1))
    each = uniforms(words, _VIEW, 4 * VIEWS).numpy().astype(np.float32).reshape(-1, VIEWS, 4, 1, 1)
    middle, wide = 1.6 * (each[:, :, :2] - _HALF), 0.15 + 0.3 * each[:, :, 2:]
    hidden = (abs(across - middle[:, :, 0]) < wide[:, :, 0]) & (abs(down - middle[:, :, 1]) < wide[:, :, 1])
    grain = uniforms(words, _NOISE, VIEWS * side * side).numpy().astype(np.float32).reshape(seen.shape) - _HALF
    values = np.where(hidden, np.float32(0.3), seen) + _GRAIN * grain
    return np.floor(values.clip(0, 1) * np.float32(255) + _HALF).astype(np.uint8)


def _rotate(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (objects,) as seen from all sides: to the right and towards who looks, (objects, views)."""
    return x[:, None] * _COSINES + z[:, None] * _SINES, z[:, None] * _COSINES - x[:, None] * _SINES
