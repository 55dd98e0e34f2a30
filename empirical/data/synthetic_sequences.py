"""Labeled sequences made here: groups of noisy measurements, in some of which something begins, and who had it twice.

Sums and products of numbers drawn from words alone, so that the bytes are those of every other machine.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from fedbounds.empirical.runtime.counter_rng import uniforms, words_of

_AT_ONCE = 512  # sequences that are made together
_GRAIN_OF_ALL, _OF_GROUP = 1, 100  # purposes of a sequence's random numbers
_HEIGHT, _LEVEL, _SHAKE, _OTHER, _GRAIN = 2.5, 0.5, 1.5, 0.1, 0.7  # sizes of what happens, and standard deviations
_REFERENCE = 2**16  # draws, of which the threshold is a quantile


@lru_cache(maxsize=4)
def draw_sequences(
    seed: int, split: int, samples: int, steps: int, features: int, groups: int, positives: float
) -> tuple[np.ndarray, np.ndarray]:
    """Sequences `(samples, 1, steps, features)`, float32, and labels `(samples,)`, int64, of one split.

    Every sequence is a function of one word, so that fewer samples are the first of more.
    """
    words = words_of(np.random.default_rng([seed, split]).random(samples))
    shared = np.random.default_rng([seed, 2])
    loadings = [_loadings(shared, len(some)) for some in np.array_split(np.arange(features), groups)]
    enough = min(2, groups)
    chances = np.sort(shared.random((groups, _REFERENCE)), axis=0)[-enough]
    threshold = float(np.sort(chances)[int(_REFERENCE * (1 - positives))])
    sequences = np.empty((samples, 1, steps, features), dtype=np.float32)
    labels = np.empty(samples, dtype=np.int64)
    for start in range(0, samples, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        sequences[some, 0], happened = _measurements(words[some], steps, loadings, threshold)
        labels[some] = happened >= enough
    for part in (sequences, labels):
        part.setflags(write=False)
    return sequences, labels


def _loadings(shared: np.random.Generator, features: int) -> np.ndarray:
    """How each measurement of a group follows its state and its other factor, `(2, features)`: 0.5 to 1, any sign."""
    drawn = shared.random((2, features))
    return np.where(drawn < 0.5, drawn - 1, drawn)


def _measurements(
    words: np.ndarray, steps: int, loadings: list[np.ndarray], threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Measurements `(samples, steps, features)`, and in how many groups something begins, `(samples,)`."""
    at, groups, happened, time = torch.from_numpy(words), [], np.zeros(len(words)), np.arange(steps)
    for g, loading in enumerate(loadings):
        drawn = uniforms(at, _OF_GROUP + g, 5 + 2 * steps).numpy()
        begins = drawn[:, 0] > threshold
        height = _HEIGHT * (0.7 + 0.6 * drawn[:, 1]) * begins
        since = time >= steps * (0.1 + 0.65 * drawn[:, 2, None])
        level = _LEVEL * 6**0.5 * (drawn[:, 3] + drawn[:, 4] - 1)
        shake, other = (12**0.5 * (drawn[:, 5 + k * steps :][:, :steps] - 0.5) for k in (0, 1))
        state = level[:, None] + height[:, None] * since + _SHAKE * shake
        groups.append(state[..., None] * loading[0] + _OTHER * np.cumsum(other, axis=1)[..., None] * loading[1])
        happened += begins
    measured = np.concatenate(groups, axis=2)
    grain = uniforms(at, _GRAIN_OF_ALL, measured[0].size).numpy().reshape(measured.shape)
    return (measured + _GRAIN * 12**0.5 * (grain - 0.5)).astype(np.float32), happened
