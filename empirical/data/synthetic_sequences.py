"""Synthetic sequences: noisy measurements in groups, with a label, and text, with the next character as its label.

Sums and products of numbers drawn from words alone, so that the bytes are those of every other machine.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from fedbounds.empirical.runtime.counter_rng import uniforms, words_from_uniforms

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
    words = words_from_uniforms(np.random.default_rng([seed, split]).random(samples))
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


ALPHABET = "abcdefghijklmnopqrstuvwxyz "
_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxz", "aeiouy"
_CODAS = ("", "", "", "n", "r", "s", "t")
_WORDS, _FAVORITES = 300, 10
_SYLLABLES = (1, 2, 2, 3)  # of a word, equally likely
_CHOSEN = 1  # purpose of a sample's random numbers


@lru_cache(maxsize=4)
def draw_characters(seed: int, split: int, samples: int, steps: int, speakers: int) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of text `(samples, steps + 1)` as places in `ALPHABET`, int64, and who says them `(samples,)`, int64.

    Every piece is a function of one word and its place, so that fewer samples are the first of more.
    """
    shared = np.random.default_rng([seed, 2])
    dictionary = _dictionary(shared)
    favorites = (shared.random((speakers, _FAVORITES)) * _WORDS).astype(np.int64)
    zipf = np.cumsum(1 / np.arange(1, _WORDS + 1))
    speaker = np.arange(samples) % speakers
    words = torch.from_numpy(words_from_uniforms(np.random.default_rng([seed, split]).random(samples)))
    count = steps // 3 + 3  # a word has three characters at least, the space after it among them
    drawn = uniforms(words, _CHOSEN, 2 * count + 1).numpy()
    common = np.searchsorted(zipf, drawn[:, :count] * zipf[-1], side="right")
    own = favorites[speaker[:, None], (drawn[:, :count] * _FAVORITES).astype(np.int64)]
    said = np.where(drawn[:, count : 2 * count] < 0.5, own, common)
    text = np.empty((samples, steps + 1), dtype=np.int64)
    for k, (which, skipped) in enumerate(zip(said.tolist(), drawn[:, -1].tolist(), strict=True)):
        start = int(skipped * len(dictionary[which[0]]))
        text[k] = np.frombuffer("".join(dictionary[w] for w in which)[start:][: steps + 1].encode(), np.uint8)
    text = np.where(text == ord(" "), len(ALPHABET) - 1, text - ord("a"))
    for part in (text, speaker):
        part.setflags(write=False)
    return text, speaker


def _dictionary(shared: np.random.Generator) -> list[str]:
    """Different words of syllables, each with a space behind it."""
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        syllables = _SYLLABLES[int(shared.random() * len(_SYLLABLES))]
        parts = shared.random((syllables, 3))
        word = "".join(
            _CONSONANTS[int(a * len(_CONSONANTS))] + _VOWELS[int(b * len(_VOWELS))] + _CODAS[int(c * len(_CODAS))]
            for a, b, c in parts.tolist()
        )
        found[f"{word} "] = None
    return list(found)
