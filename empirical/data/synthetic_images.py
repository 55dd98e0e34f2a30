"""Labeled images made here: digits and letters of several faces, turned, stretched, cluttered, partly hidden, noisy."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.atomic_files import cache_folder, write_file
from fedbounds.bounds.inputs.user_files import read_bytes
from fedbounds.empirical.data import font_outlines as outlines
from fedbounds.empirical.data.font_outlines import CHARACTERS, FACES, SIDE, pictures
from fedbounds.empirical.runtime import counter_rng as word_module
from fedbounds.empirical.runtime.counter_rng import uniforms, words_from_uniforms

FEWEST_CLASSES, MOST_CLASSES = 10, len(CHARACTERS)
_AT_ONCE = 256  # images that are made together
_WORTH_KEEPING, _FILES = 10_000, 4  # images that take more than a second, and how many such sets are kept
_GLYPH, _CLUTTER, _STROKE, _PATCH, _LIGHT, _NOISE = 1, 2, 10, 20, 30, 31  # purposes of an image's random numbers
_CLUTTERS, _STROKES = 2, 1


class _Numbers:
    """The random numbers of some images for one purpose, handed out one after another, each `(images, 1, 1)`."""

    def __init__(self, words: np.ndarray, purpose: int, count: int) -> None:
        drawn = uniforms(torch.from_numpy(words), purpose, count).numpy()
        self._left: Iterator[np.ndarray] = iter(drawn.T[..., None, None])

    def between(self, low: float, high: float) -> np.ndarray:
        """Uniform on [low, high), float32."""
        return (low + (high - low) * next(self._left)).astype(np.float32)

    def below(self, count: int) -> np.ndarray:
        """A whole number from 0 to count - 1."""
        return (count * next(self._left)).astype(np.int64)


@lru_cache(maxsize=4)
def draw_images(seed: int, split: int, samples: int, classes: int, color: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images `(samples, channels, side, side)`, uint8, and labels `(samples,)`, int64, of one split.

    Every image depends on one word and its label alone, bit for bit on every machine. Large sets are cached.
    """
    side, channels = (32, 3) if color else (28, 1)
    labels = np.arange(samples) % classes
    shape = (samples, channels, side, side)

    def make() -> np.ndarray:
        words = words_from_uniforms(np.random.default_rng([seed, split]).random(samples))
        images = np.empty(shape, dtype=np.uint8)
        for start in range(0, samples, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            images[some] = _images(words[some], labels[some], classes, channels, side)
        return images

    images = _load_cached(f"{seed} {split} {color}", classes, shape, make) if samples >= _WORTH_KEEPING else make()
    for part in (images, labels):
        part.setflags(write=False)
    return images, labels


def _load_cached(name: str, classes: int, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """The images from the cache folder, if they are there and whole; else they are made, and left there.

    The name of a file has in it the fonts' characters and the sources that images are made by; a few files are kept.
    """
    digest = hashlib.sha256(f"{name} {shape} {classes}".encode() + pictures(CHARACTERS[:classes]).tobytes())
    for source in (Path(__file__), Path(outlines.__file__), Path(word_module.__file__)):
        digest.update(source.read_bytes())
    path = cache_folder() / f"glyphs-{digest.hexdigest()[:32]}"
    try:
        content = read_bytes(path, path.name, 32 + math.prod(shape), noted=False)
        if len(content) == 32 + math.prod(shape) and hashlib.sha256(content[32:]).digest() == content[:32]:
            return np.frombuffer(content, np.uint8, offset=32).reshape(shape).copy()
    except FedboundsError:  # none yet, or no file
        pass
    images = make()
    whole = images.tobytes()
    with suppress(FedboundsError, OSError):  # a cache that cannot be written is none
        write_file(path, hashlib.sha256(whole).digest() + whole)
        others = sorted(path.parent.glob("glyphs-*"), key=lambda other: other.stat().st_mtime)
        for old in others[:-_FILES]:
            old.unlink(missing_ok=True)
    return images


def _images(words: np.ndarray, labels: np.ndarray, classes: int, channels: int, side: int) -> np.ndarray:
    place = ((np.arange(side, dtype=np.float32) + np.float32(0.5)) * np.float32(2 / side)) - 1
    x, y = place[None, None, :], place[None, :, None]
    edge = side / 2  # a line's border is one pixel wide
    light = _Numbers(words, _LIGHT, 4 * channels + 1)
    paper = [light.between(0, 1) for _ in range(channels)]
    contrasts = [light.between(0.3, 0.8) for _ in paper]
    ink = [np.where(tone < 0.5, tone + more, tone - more) for tone, more in zip(paper, contrasts, strict=True)]
    planes = [tone + light.between(-0.2, 0.2) * x + light.between(-0.2, 0.2) * y for tone in paper]
    noise = light.between(0.1, 0.45)
    for k in range(_CLUTTERS):
        own = _Numbers(words, _CLUTTER + k, 12)
        what = own.below(classes)
        planes = _paint(planes, _glyph(own, what, classes, x, y, away=True), ink)
    planes = _paint(planes, _glyph(_Numbers(words, _GLYPH, 12), labels[:, None, None], classes, x, y), ink)
    for k in range(_STROKES):
        own = _Numbers(words, _STROKE + k, 8)
        tones = [own.between(0, 1)] * channels
        planes = _paint(planes, _stroke(own, x, y, edge), tones)
    patch = _Numbers(words, _PATCH, 8)
    planes = _paint(planes, _patch(patch, x, y, edge), [patch.between(0, 1)] * channels)
    grain = uniforms(torch.from_numpy(words), _NOISE, channels * side * side).numpy()
    grain = grain.astype(np.float32).reshape(len(words), channels, side, side) - np.float32(0.5)
    values = np.stack(np.broadcast_arrays(*planes), axis=1) + noise[:, None] * grain
    return np.floor(values.clip(0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _paint(planes: list[np.ndarray], cover: np.ndarray, tones: list[np.ndarray]) -> list[np.ndarray]:
    return [plane + cover * (tone - plane) for plane, tone in zip(planes, tones, strict=True)]


def _glyph(
    own: _Numbers, what: np.ndarray, classes: int, x: np.ndarray, y: np.ndarray, away: bool = False
) -> np.ndarray:
    """How much of each pixel a glyph covers; `away` from the middle it is clutter."""
    face = own.below(len(FACES))
    half = own.between(-0.17, 0.17)  # tangent of half the angle: up to 19 degrees
    norm = 1 + half * half
    cosine, sine = (1 - half * half) / norm, 2 * half / norm
    high, wide, slant = own.between(0.55, 0.85), own.between(0.8, 1.2), own.between(-0.2, 0.2)
    if away:
        # on the border of the image, along any of its four sides
        along, out, where = own.between(-1, 1), own.between(0.95, 1.3), own.below(4)
        out = np.where(where % 2 == 0, out, -out)
        right, down = np.where(where < 2, out, along), np.where(where < 2, along, out)
    else:
        right, down = own.between(-0.17, 0.17), own.between(-0.17, 0.17)
    across, along_y = x - right, y - down
    u = (cosine * across + sine * along_y) / (high * wide)
    v = (cosine * along_y - sine * across) / high
    return _interpolate(pictures(CHARACTERS[:classes]), face, what, u + slant * v, v)


def _interpolate(table: np.ndarray, face: np.ndarray, what: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The pictures at u and v, from -1 to 1 across them, between the four pixels around; their border is empty."""
    column, row = (((w + 1) * np.float32(SIDE / 2) - np.float32(0.5)).clip(0, SIDE - 1.01) for w in (u, v))
    left, top = column.astype(np.int64), row.astype(np.int64)
    part, fall = column - left, row - top
    corner = ((face * table.shape[1] + what) * SIDE + top) * SIDE + left
    flat = table.reshape(-1)
    upper = flat[corner] + part * (flat[corner + 1] - flat[corner])
    lower = flat[corner + SIDE] + part * (flat[corner + SIDE + 1] - flat[corner + SIDE])
    return upper + fall * (lower - upper)


def _stroke(own: _Numbers, x: np.ndarray, y: np.ndarray, edge: float) -> np.ndarray:
    """How much of each pixel a straight stroke covers."""
    x0, y0, x1, y1 = (own.between(-1, 1) for _ in range(4))
    width = own.between(0.03, 0.09)
    long_x, long_y = x1 - x0, y1 - y0
    share = ((x - x0) * long_x + (y - y0) * long_y) / (long_x * long_x + long_y * long_y + np.float32(1e-6))
    share = share.clip(0, 1)
    off_x, off_y = x - x0 - share * long_x, y - y0 - share * long_y
    return ((width - np.sqrt(off_x * off_x + off_y * off_y)) * np.float32(edge) + np.float32(0.5)).clip(0, 1)


def _patch(own: _Numbers, x: np.ndarray, y: np.ndarray, edge: float) -> np.ndarray:
    """How much of each pixel a rectangle covers."""
    x0, y0 = own.between(-0.7, 0.7), own.between(-0.7, 0.7)
    wide, high = own.between(0.1, 0.32), own.between(0.1, 0.32)
    inside = np.minimum(wide - np.abs(x - x0), high - np.abs(y - y0))
    return (inside * np.float32(edge) + np.float32(0.5)).clip(0, 1)
