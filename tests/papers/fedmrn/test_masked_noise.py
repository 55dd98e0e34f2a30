"""Masked random noise: its law given the noise, over the noise, and as bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise, chosen, clipped

NUMBERS = st.floats(-4, 4).filter(lambda v: abs(v) > 1e-3)
STEPS = 4000
GRID = (np.arange(STEPS) + 0.5) / STEPS


def values(u: float, n: float, masks: str) -> np.ndarray:
    """What masked noise is, for every chance of a grid: sums over it are expectations, to 1 / STEPS."""
    ones = chosen(np.full(STEPS, u), np.full(STEPS, n), GRID, masks)  # pyright: ignore[reportArgumentType]
    return n * np.where(ones, 1.0, 0.0 if masks == "binary" else -1.0)


@given(NUMBERS, NUMBERS, st.sampled_from(["binary", "signed"]))
def test_given_the_noise_the_mean_is_the_clipped_update_and_the_variance_as_stated(u, n, masks):
    found = values(u, n, masks)
    mean = float(clipped(torch.tensor(u), torch.tensor(n), masks))
    assert found.mean() == pytest.approx(mean, abs=2 * abs(n) / STEPS)
    variance = n**2 - mean**2 if masks == "signed" else abs(mean) * (abs(n) - abs(mean))
    assert found.var() == pytest.approx(variance, abs=8 * n**2 / STEPS)


DENSITIES = {"uniform": lambda n: 1.0, "gaussian": lambda n: float(stats.norm.pdf(n, scale=0.5))}


@pytest.mark.parametrize("masks", ["binary", "signed"])
@pytest.mark.parametrize("law", ["uniform", "gaussian", "bernoulli"])
@pytest.mark.parametrize("x", [0.0, 0.1, -0.3, 0.5, -0.8, 2.0])
def test_errors_over_the_noise_are_the_integrals(law, masks, x):
    def given_noise(n: float) -> float:
        size, agrees = abs(n), x * n > 0
        if masks == "binary" and not agrees:
            return x**2
        if abs(x) > size:
            return (abs(x) - size) ** 2
        return n**2 - x**2 if masks == "signed" else abs(x) * (size - abs(x))

    if law == "bernoulli":
        expected = (given_noise(0.5) + given_noise(-0.5)) / 2
    else:
        pieces = sorted({-4.0, *(v for v in (-abs(x), -0.5, 0.0, 0.5, abs(x)) if abs(v) < 4), 4.0})
        expected = sum(
            quad(lambda n: given_noise(n) * DENSITIES[law](n), a, b)[0]
            for a, b in pairwise(pieces)
            if law == "gaussian" or (a >= -0.5 and b <= 0.5)
        )
    found = MaskedNoise(law, 0.5, masks).squared_error(np.array([x, x]))
    assert found == pytest.approx(2 * expected, rel=1e-7)


def test_over_uniform_noise_the_mean_is_as_integrated():
    x, alpha = np.repeat([0.2, -0.4, 0.9], 100_000), 0.5
    inside = np.abs(x) <= alpha
    signed = np.where(inside, x - x * np.abs(x) / (2 * alpha), np.sign(x) * alpha / 2)
    codecs = {MaskedNoise("uniform", alpha): signed, MaskedNoise("uniform", alpha, "binary"): signed / 2}
    for codec, expected in codecs.items():
        found = codec.decode(codec.encode(x, np.random.default_rng(1)))
        means = found.reshape(3, -1).mean(1)
        np.testing.assert_allclose(means, expected.reshape(3, -1).mean(1), atol=5 * alpha / 100_000**0.5)


def test_no_relative_error_holds_for_small_updates():
    codec, x = MaskedNoise("bernoulli", 1.0), np.ones(4)
    ratios = [codec.squared_error(scale * x) / (4 * scale**2) for scale in (0.1, 0.01, 0.001)]
    np.testing.assert_allclose(np.sqrt(ratios), [9.949874, 99.995, 999.9995], rtol=1e-6)
    binary = MaskedNoise("bernoulli", 1.0, "binary")
    half = [binary.squared_error(scale * x) / (4 * scale**2) for scale in (0.1, 0.01, 0.001)]
    np.testing.assert_allclose(half, [(1 / s - 1 + 1) / 2 for s in (0.1, 0.01, 0.001)], rtol=1e-6)
    assert codec.relative_error(4) is None and not codec.unbiased


@pytest.mark.parametrize("masks", ["binary", "signed"])
@pytest.mark.parametrize("law", ["uniform", "gaussian", "bernoulli"])
@pytest.mark.parametrize("size", [1, 7, 8, 1001])
def test_the_server_makes_of_the_bytes_what_the_client_means_bit_for_bit(law, masks, size):
    codec, rng = MaskedNoise(law, 0.01, masks), np.random.default_rng(size)
    n = codec.noise(99, size)
    mask = codec.mask(rng.normal(0, 0.005, size), n, rng)
    message = codec.encode_mask(mask, 99)
    meant = np.where(mask, n, np.float32(0) if masks == "binary" else -n)
    assert np.array_equal(codec.decode(message), meant) and codec.decode(message).dtype == np.float32
    assert len(message) == codec.message_bytes(size) == 16 + 8 + -(-size // 8)


def test_servers_that_agreed_on_something_else_refuse():
    x = np.zeros(5)
    message = MaskedNoise("uniform", 0.01).encode(x, np.random.default_rng(0))
    for other in (MaskedNoise("uniform", 0.02), MaskedNoise("gaussian", 0.01), MaskedNoise("uniform", 0.01, "binary")):
        with pytest.raises(FedboundsError, match="encoded with other settings"):
            other.decode(message)


def test_what_cannot_be_masked_is_refused():
    codec, rng = MaskedNoise(), np.random.default_rng(0)
    for n, told in [(np.array([1.0, 0.0]), "nowhere zero"), (np.array([1.0, np.nan]), "finite"), (np.ones(3), "shape")]:
        with pytest.raises(FedboundsError, match=told):
            codec.mask(np.zeros(2), n, rng)
    with pytest.raises(FedboundsError, match=r"update\[1\] = nan is not a finite number"):
        codec.mask(np.array([0.0, np.nan]), np.ones(2), rng)
    for wrong in (np.ones(3), np.ones((2, 2), bool), np.zeros(0, bool), [True]):
        with pytest.raises(FedboundsError, match="one vector of booleans"):
            codec.encode_mask(wrong, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FedboundsError, match="seed = -1"):
        codec.encode_mask(np.ones(3, bool), -1)
    for arguments, told in [(("uniform", 0), "amplitude = 0"), (("uniform", 1.0, "both"), "unknown kind of masks"),
                            (("flat", 1.0), "unknown law")]:  # fmt: skip
        with pytest.raises(FedboundsError, match=told):
            MaskedNoise(*arguments)
