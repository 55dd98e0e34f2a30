"""Text made here, and which character comes next: words of a made dictionary, of which every speaker has favorites."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from fedbounds.empirical.runtime.counter_rng import uniforms, words_of

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
    words = torch.from_numpy(words_of(np.random.default_rng([seed, split]).random(samples)))
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
