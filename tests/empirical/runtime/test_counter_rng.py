"""Hashed random numbers: the published generator, uniform, independent between words, purposes and places."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from fedbounds.empirical.runtime import counter_rng
from fedbounds.empirical.runtime.counter_rng import chances, raw_bits, uniforms, words_from_uniforms


def splitmix64(state):
    """The finalizer, in Python integers."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> shift)) * factor % 2**64
    return state ^ (state >> 31)


def test_the_finalizer_is_splitmix64s():
    assert splitmix64(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # its first output from the seed 0, as published


def test_numbers_are_those_of_the_formula_in_integers():
    golden = 0x9E3779B97F4A7C15
    words = [0, 1, 2**53 - 1, 123456789]
    for purpose in (0, 1, 7, 103):
        got = uniforms(torch.tensor(words), purpose, 5)
        for word, row in zip(words, got.tolist(), strict=True):
            start = splitmix64((word + purpose * golden) % 2**64)
            assert row == [(splitmix64((start + k * golden) % 2**64) >> 11) / 2**53 for k in range(1, 6)]


def test_numbers_do_not_depend_on_the_batch_they_are_made_in():
    words = torch.from_numpy(words_from_uniforms(np.random.default_rng(0).random((4, 6))))
    together = uniforms(words, 3, 9)
    assert together.shape == (4, 6, 9)
    assert torch.equal(together[2, 1], uniforms(words[2, 1], 3, 9))
    assert torch.equal(together[..., :4], uniforms(words, 3, 4))


def test_numbers_are_uniform_and_uncorrelated_between_words_purposes_and_places():
    words = torch.arange(40_000)  # neighboring words, the hardest case
    columns = np.concatenate([uniforms(words, purpose, 3).numpy() for purpose in (1, 2, 100)], axis=1)
    columns = np.concatenate([columns, np.roll(columns[:, :1], 1, axis=0)], axis=1)
    for column in columns.T:
        counts = np.bincount((column * 50).astype(int), minlength=50)
        assert ((counts - 800) ** 2 / 800).sum() < 49 + 5 * 98**0.5
    correlations = np.corrcoef(columns.T) - np.eye(10)
    assert np.abs(correlations).max() < 5 / 200


def test_words_have_53_bits():
    words = words_from_uniforms(np.array([0.0, 2.0**-53, 1 - 2.0**-53]))
    assert words.tolist() == [0, 1, 2**53 - 1] and words.dtype == np.int64


def test_chances_are_uniform_and_independent():
    first, second = (c.numpy().ravel() for c in chances(torch.arange(50), 3, 2000, torch.float32))
    assert stats.kstest(first, "uniform").pvalue > 1e-6 and stats.kstest(second, "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02 and max(first.max(), second.max()) < 1
    assert not np.array_equal(first, chances(torch.arange(50), 4, 2000, torch.float32)[0].numpy().ravel())


def test_chances_are_the_two_halves_of_the_bits_in_blocks_of_any_size(monkeypatch):
    words = torch.from_numpy(words_from_uniforms(np.random.default_rng(1).random((2, 3))))
    bits = raw_bits(words, 205, 1000)
    for width in (1, 7, 6 * 1000, 1 << 20):
        monkeypatch.setattr(counter_rng, "_BLOCK", width)
        for dtype in (torch.float32, torch.float64):
            low, high = chances(words, 205, 1000, dtype)
            assert low.dtype == dtype and torch.equal(low, (bits % 2**24).to(dtype) * 2.0**-24)
            assert torch.equal(high, ((bits >> 24) % 2**24).to(dtype) * 2.0**-24)
    assert torch.equal(chances(words[0, 1], 205, 1000, dtype)[0], low[0, 1])
