"""Messages: the server makes of the bytes what the client meant, in law as stated, and accepts nothing else."""

from __future__ import annotations

import math
import struct
from itertools import pairwise
from typing import cast
from zlib import crc32

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import hadamard as matrix

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.messages import (
    Drive,
    Eden,
    FullPrecision,
    Noise,
    Partly,
    Sparsified,
    StochasticSign,
    TernGrad,
    TopK,
    packing,
)
from fedbounds.empirical.algorithms.messages.compressors import _LEVELS, Bits
from fedbounds.empirical.algorithms.messages.envelope import OVERHEAD, seal, unseal
from fedbounds.empirical.algorithms.messages.noise import normal_quantile
from fedbounds.empirical.algorithms.messages.rotation import hadamard, pieces, rotate, rotate_back
from fedbounds.empirical.invariants.compressor import check_compressor
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise

CODECS = [FullPrecision(), StochasticSign(), StochasticSign("norm"), TernGrad(), TopK(0.3), Sparsified(0.4), Drive(),
          Drive(scale="unbiased"), Eden(3), MaskedNoise("bernoulli", 2.0),
          MaskedNoise("uniform", 2.0, "binary")]  # fmt: skip
NUMBERS = st.floats(-100, 100, width=32)
VECTORS = st.lists(NUMBERS, min_size=1, max_size=40).map(np.array)


class Chance:
    """Randomness of which every number is the same, so that a sum over its values is an expectation."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self, size: int, dtype=np.float64) -> np.ndarray:
        return np.full(size, self.value, dtype)

    def integers(self, high: int) -> int:
        return 12345


def chance(value: float) -> np.random.Generator:
    return cast("np.random.Generator", Chance(value))


def expectations(codec, x: np.ndarray, steps: int = 4096) -> tuple[np.ndarray, float]:
    """The mean of what is decoded and its squared error, each number's chance taken over a grid: exact to 1 / steps."""
    meant = np.array([codec.decode(codec.encode(x, chance((k + 0.5) / steps))) for k in range(steps)], np.float64)
    return meant.mean(0), float(np.square(meant - x).mean(0).sum())


# what few bits hold


@given(st.lists(st.booleans(), max_size=50), st.lists(st.sampled_from([-1, 0, 1]), max_size=50))
def test_bits_and_three_values_come_back(flags, threes):
    assert packing.unbits(packing.bits(np.array(flags, bool)), len(flags)).tolist() == [int(flag) for flag in flags]
    packed = packing.ternary(np.array(threes, np.int8))
    assert len(packed) == packing.ternary_bytes(len(threes)) == -(-len(threes) // 5)
    assert packing.unternary(packed, len(threes)).tolist() == threes


@given(st.integers(1, 3000), st.data())
def test_positions_come_back_in_few_bits(size, data):
    where = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=60))), np.int64)
    packed = packing.positions(where, size)
    assert len(packed) == packing.position_bytes(len(where), size)
    assert np.array_equal(packing.unpositions(packed, len(where), size), where)


def test_positions_take_less_than_a_bit_more_than_any_code_needs():
    size, count = 400_000, 12_000
    least = (math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)) / math.log(2)
    assert least < 8 * packing.position_bytes(count, size) < least + 0.7 * count


# envelopes


def test_an_envelope_is_sixteen_bytes_as_written_down():
    message = seal(3, 1000, b"payload", b"agreed")
    head = b"fb" + bytes([1, 3]) + struct.pack("<Q", 1000)
    assert message == head + struct.pack("<I", crc32(head + b"agreed" + b"payload")) + b"payload"
    assert OVERHEAD == 16 and unseal(message, 3, b"agreed") == (1000, b"payload")


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.kind)
def test_every_damaged_message_is_refused(codec):
    x = np.array([1.0, -0.5, 0.25, 0.0, 2.0])
    message = codec.encode(x, np.random.default_rng(0))
    for bit in range(8 * len(message)):
        damaged = bytearray(message)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FedboundsError):
            codec.decode(bytes(damaged))
    for wrong in [*(message[:k] for k in range(len(message))), message + b"\0"]:
        with pytest.raises(FedboundsError):
            codec.decode(wrong)


def test_a_message_says_what_is_wrong_with_it():
    codec, x = StochasticSign(), np.ones(9)
    message = codec.encode(x, np.random.default_rng(0))
    for wrong, told in [
        (message[:5], "the message ends after 5 bytes, within its head of 16"),
        (b"xx" + message[2:], "this is no message of fedbounds: it begins with b'xx'"),
        (message[:2] + b"\2" + message[3:], "version 2 of the layout; this is version 1"),
        (TernGrad().encode(x, np.random.default_rng(0)), "the message has encoding 3, and this is encoding 2"),
        (message[:-1], "damaged or cut short, or encoded with other settings"),
        (StochasticSign("norm").encode(x, np.random.default_rng(0)), "encoded with other settings"),
        ("text", "a message is bytes, not 'str'"),
        # whole by its checksum, and yet not what it says
        (seal(2, 9, b"\0" * 5, codec.agreed), "carries 5 bytes for 9 numbers, which take 6"),
        (seal(2, 0, b"", codec.agreed), "carries 0 bytes for 0 numbers"),
    ]:
        with pytest.raises(FedboundsError, match=told):
            codec.decode(wrong)
    liar = TopK(0.5)
    zeros = b"\0" * liar.payload_bytes(8)
    with pytest.raises(FedboundsError, match="damaged: 0 positions instead of 4"):
        liar.decode(seal(4, 8, zeros, liar.agreed))
    part = Sparsified(0.5)
    with pytest.raises(FedboundsError, match="carries 1 bytes for 8 entries of 8"):
        part.decode(seal(5, 8, b"\xff", part.agreed))
    with pytest.raises(FedboundsError, match="carries 1 bytes, and 18446744073709551615 bits take 23058"):
        part.decode(seal(5, 2**64 - 1, b"\xff", part.agreed))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.kind)
@pytest.mark.parametrize("size", [2**40, 2**63, 2**64 - 1])
def test_whoever_declares_a_huge_update_is_refused_before_memory_is_made(codec, size):
    with pytest.raises(FedboundsError, match="carries 20 bytes"):
        codec.decode(seal(codec.code, size, b"\0" * 20, codec.agreed))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.kind)
@pytest.mark.parametrize("size", [0, -1, 2.5, "a", None, math.nan])
def test_there_is_no_message_of_no_numbers(codec, size):
    with pytest.raises(FedboundsError, match=r"^size = .* must be an integer"):
        codec.message_bytes(size)
    assert codec.squared_error(np.zeros(0)) in (0, None)
    if codec.relative_error(2) not in (None, codec.relative_error(9)):
        with pytest.raises(FedboundsError, match=r"^size = .* must be an integer"):
            codec.relative_error(size)


def test_what_is_joined_must_fit():
    codec = Partly(TopK(0.5), 2)
    message = TopK(0.5).encode(np.arange(4.0), np.random.default_rng(0))
    for numbers, told in (([1.0] * 3, "3 numbers to send as they are, and 2"), ([1.0, math.nan], r"update\[1\] = nan")):
        with pytest.raises(FedboundsError, match=told):
            codec.append_numbers(message, np.array(numbers))
    with pytest.raises(FedboundsError, match="has encoding 3, and this is encoding 4"):
        codec.append_numbers(TernGrad().encode(np.ones(4), np.random.default_rng(0)), np.ones(2))
    for inner, whole in ((TopK(), 0), ("top-k", 1)):
        with pytest.raises(FedboundsError, match=r"whole = 0|must be a compressor"):
            Partly(inner, whole)


@pytest.mark.parametrize("inner", CODECS, ids=lambda codec: codec.kind)
def test_some_numbers_travel_as_they_are_in_the_message_of_the_others(inner):
    codec, x = Partly(inner, 3), np.random.default_rng(1).standard_normal(40).astype(np.float32)
    few, message = x[:37], codec.encode(x, np.random.default_rng(0))
    alone, meant = inner.encode(few, np.random.default_rng(0)), codec.decode(message)
    assert np.array_equal(meant[37:], x[37:]) and np.array_equal(meant[:37], inner.decode(alone))
    assert len(message) == len(alone) + 12 and codec.message_bytes(40) in (len(message), None)
    assert codec.append_numbers(alone, x[37:]) == message and codec.unbiased == inner.unbiased
    assert codec.relative_error(40) == inner.relative_error(37) and codec.squared_error(x) == inner.squared_error(few)
    with pytest.raises(FedboundsError, match="3 numbers, of which 3 are sent as they are: none to compress"):
        codec.encode(x[:3], np.random.default_rng(0))
    other = Partly(inner, 2).encode(x, np.random.default_rng(0))
    for wrong in (message[:-1], alone, seal(8, 40, b"\0" * 5, codec.agreed), other):
        with pytest.raises(FedboundsError):
            codec.decode(wrong)


def test_a_server_that_knows_the_size_accepts_no_other():
    codec = TopK(1e-9)  # 552 bytes that declare 256 GiB
    message = seal(codec.code, 2**36, b"\0" * 552, codec.agreed)
    with pytest.raises(FedboundsError, match="an update of 68719476736 numbers, and the model has 1000"):
        codec.decode(message, size=1000)
    sent = codec.encode(np.arange(9.0), np.random.default_rng(0))
    assert np.array_equal(codec.decode(sent, size=9), codec.decode(sent))


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_no_message_means_numbers_that_are_not_finite(number):
    wrong, one = np.array([number], "<f4").tobytes(), np.array([1.0], "<f4").tobytes()
    head = {Drive: b"\0" * 8, TopK: packing.positions(np.array([1]), 3), Sparsified: b"\2"}
    tail = {StochasticSign: b"\1", TernGrad: b"\1", Drive: b"\1", Sparsified: b"", TopK: b"", FullPrecision: 2 * one}
    for codec in (FullPrecision(), StochasticSign(), TernGrad(), TopK(0.3), Sparsified(), Drive()):
        payload = head.get(type(codec), b"") + wrong + tail[type(codec)]
        with pytest.raises(FedboundsError, match="numbers that are not finite"):
            codec.decode(seal(codec.code, 3, payload, codec.agreed))


def test_positions_that_no_client_sends_are_refused():
    codec, ones = TopK(0.5), np.ones(3, "<f4").tobytes()
    accepted = 0
    for every in range(2**16):
        try:
            accepted += (
                np.count_nonzero(codec.decode(seal(4, 6, every.to_bytes(2, "little") + ones, codec.agreed))) == 3
            )
        except FedboundsError:
            continue
    assert accepted


@pytest.mark.parametrize(("wrong", "told"), [
    (np.array([]), "empty"), (np.ones((2, 2)), "one vector"), (np.array([1.0, np.nan]), r"update\[1\] = nan"),
    (np.array([1e300]), r"update\[0\] = 1e\+300 is not a finite number of at most 1e\+30"),
    (np.array(["a"]), "one vector of numbers"),
])  # fmt: skip
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.kind)
def test_what_cannot_be_sent_is_refused(codec, wrong, told):
    with pytest.raises(FedboundsError, match=told):
        codec.encode(wrong, np.random.default_rng(0))


# noise


def slow_words(seed: int, count: int) -> list[int]:
    """The generator in Python's own whole numbers: the finalizer of splitmix64 on a counter, twice."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    start = mixed((seed + 101 * golden) & mask)
    return [mixed((start + k * golden) & mask) for k in range(1, count + 1)]


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_noise_is_that_of_whole_numbers_in_python(seed):
    words = slow_words(seed, 200_000)
    halves = [(word >> shift) & (2**23 - 1) for word in words[:100] for shift in (9, 41)]
    alpha = np.float32(0.01)
    uniform = [np.float32(2 * k + 1 - 2**23) * (alpha * np.float32(2.0**-23)) for k in halves]
    assert Noise("uniform", 0.01).draw(seed, 199).tolist() == [float(u) for u in uniform[:199]]
    signs = [float(alpha) if word >> bit & 1 else -float(alpha) for word in words[:3] for bit in range(64)]
    assert Noise("bernoulli", 0.01).draw(seed, 190).tolist() == signs[:190]
    # far into the vector too, where another block begins
    far = Noise("uniform", 0.01).draw(seed, 2 * len(words))[-1]
    last = (words[-1] >> 41) & (2**23 - 1)
    assert far == np.float32(2 * last + 1 - 2**23) * (alpha * np.float32(2.0**-23))
    quantiles = stats.norm.ppf((2 * np.array(halves, float) + 1) * 2.0**-24) * 0.01
    np.testing.assert_allclose(Noise("gaussian", 0.01).draw(seed, 200), quantiles, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("law", ["uniform", "gaussian", "bernoulli"])
def test_noise_has_its_law_and_is_the_same_in_every_batch(law):
    noise, size = Noise(law, 0.5), 2**18 + 77
    drawn = noise.draw(5, size)
    assert drawn.dtype == np.float32 and np.all(drawn) and np.isfinite(drawn).all()
    assert np.array_equal(noise.draw(5, 1000), drawn[:1000])
    both = noise.of(torch.tensor([[5], [6]]), 700).numpy()
    assert np.array_equal(both[0, 0], drawn[:700]) and not np.array_equal(both[1, 0], drawn[:700])
    if law == "bernoulli":
        assert set(np.abs(drawn)) == {0.5}
        assert stats.binomtest(int((drawn > 0).sum()), size).pvalue > 1e-6
    else:
        expected = stats.uniform(-0.5, 1) if law == "uniform" else stats.norm(scale=0.5)
        assert stats.kstest(drawn, expected.cdf).pvalue > 1e-6
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5 / size**0.5


def test_the_normal_quantile_is_that_of_scipy():
    q = (2 * np.arange(0, 2**23, 1001) + 1 - 2**23) * 2.0**-24
    q = np.append(q, [0.5 - 2.0**-25, 2.0**-25 - 0.5, 0.425, -0.425])
    np.testing.assert_allclose(normal_quantile(torch.from_numpy(q)), stats.norm.ppf(q + 0.5), rtol=5e-15, atol=1e-17)


@pytest.mark.parametrize(("arguments", "told"), [
    (("cauchy", 1.0), "unknown law of noise 'cauchy'"), (("uniform", 0), r"amplitude = 0 must be a number"),
    (("uniform", math.nan), "amplitude = nan"), (("uniform", 1e-44), "float32 holds no other noise"),
    (("bernoulli", 1e39), "float32 holds no other noise"),
])  # fmt: skip
def test_noise_that_cannot_be_is_refused(arguments, told):
    with pytest.raises(FedboundsError, match=told):
        Noise(*arguments)


def test_no_noise_and_no_such_seed():
    with pytest.raises(FedboundsError, match="size = 0"):
        Noise("uniform", 1.0).draw(1, 0)
    for seed in (-1, 2**63):
        with pytest.raises(FedboundsError, match=f"seed = {seed}"):
            Noise("uniform", 1.0).draw(seed, 5)


# rotations


@pytest.mark.parametrize("size", [1, 2, 8, 64, 512])
def test_the_fast_transform_is_the_matrix(size):
    x = np.random.default_rng(size).standard_normal(size)
    np.testing.assert_allclose(hadamard(x), matrix(size) @ x / size**0.5, atol=1e-13)


@pytest.mark.parametrize("size", [1, 5, 4095, 4096, 12_301])
def test_a_rotation_keeps_lengths_and_comes_back(size):
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    turned = rotate(x, 7)
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(x), rel=1e-5)
    np.testing.assert_allclose(rotate_back(turned, 7, size), x, atol=1e-5)
    places = pieces(size)
    assert all((place.stop - place.start).bit_count() == 1 for place in places)
    assert places[0].start == 0 and all(a.stop == b.start for a, b in pairwise(places))
    assert size <= places[-1].stop < size + 4096


# compressors


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.kind)
@settings(max_examples=20)
@given(x=VECTORS)
def test_a_message_means_one_update_and_is_as_long_as_said(codec, x):
    message = codec.encode(x, np.random.default_rng(1))
    meant = codec.decode(message)
    assert meant.shape == x.shape and meant.dtype == np.float32
    assert codec.message_bytes(len(x)) in (None, len(message))
    assert np.array_equal(codec.decode(message), meant)


@pytest.mark.parametrize("codec", [FullPrecision(), StochasticSign(), StochasticSign("norm"), TernGrad(), TopK(0.3),
                                   Sparsified(0.4)], ids=lambda codec: codec.kind)  # fmt: skip
@pytest.mark.parametrize("x", [
    [1.0, -0.5, 0.25, 0.0, 2.0], [3.0], [1.0, 1 / 3, 1 / 3, 1 / 3], [-1.0] * 6, [0.0, 0.0], [1e-30, -3e-30],
    [5.0, 0, 0], [1e30, -1e30],
], ids=str)  # fmt: skip
def test_means_and_errors_are_as_stated(codec, x):
    x = np.array(x)
    mean, error = expectations(codec, x)
    largest = codec.amplitude(x.astype(np.float32)) if isinstance(codec, StochasticSign) else np.abs(x).max()
    step = 3 * float(largest) / 4096 + 1e-6 * np.abs(x).max()
    if codec.unbiased:
        np.testing.assert_allclose(mean, x, atol=step)
    assert error == pytest.approx(codec.squared_error(x), abs=6 * step * np.abs(x).sum() + 3 * step * float(largest))
    worst = codec.relative_error(len(x)) * float(x @ x)
    assert codec.squared_error(x) <= worst * (1 + 1e-12)


@given(VECTORS)
def test_no_update_has_a_larger_relative_error(x):
    for codec in (StochasticSign(), StochasticSign("norm"), TernGrad(), TopK(0.3)):
        assert codec.squared_error(x) <= codec.relative_error(len(x)) * float(x @ x) * (1 + 1e-9)


def test_relative_errors_are_attained():
    d = 16
    one, equal = np.eye(1, d)[0], np.ones(d)
    worst = np.where(np.arange(d), 1 / (d**0.5 + 1), 1.0)
    for codec, x in [(StochasticSign(), one), (StochasticSign("norm"), equal), (StochasticSign("norm"), worst),
                     (TernGrad(), worst), (TopK(0.25), equal), (Sparsified(0.2), worst)]:  # fmt: skip
        assert codec.squared_error(x) == pytest.approx(codec.relative_error(d) * float(x @ x), rel=1e-12)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.kind)
@pytest.mark.parametrize("x", [
    np.full(5000, 1e30), 1e30 * np.eye(1, 9)[0], np.array([1e30, 1e-30, 1e-45, -0.0]), np.array([-0.0]),
    np.arange(9)[::-2], np.arange(8, dtype=">f8"), np.ones(3, np.float16),
], ids=lambda x: f"{x.dtype.str}{len(x)}")  # fmt: skip
def test_every_update_that_is_taken_means_finite_numbers(codec, x):
    assert np.isfinite(codec.decode(codec.encode(x, np.random.default_rng(0)))).all()


@pytest.mark.parametrize("codec", [TernGrad(), StochasticSign(), StochasticSign("norm")], ids=str)
def test_the_smallest_numbers_have_their_mean_too(codec):
    x = np.array([1, -3, 0, 7]) * 2.0**-149
    mean, error = expectations(codec, x)
    np.testing.assert_allclose(mean, x, atol=0.01 * 2.0**-149)
    assert codec.decode(codec.encode(x[:1], chance(0.75))).tolist() == x[:1].tolist()
    assert error == pytest.approx(codec.squared_error(x), rel=0.25)  # a length is rounded up to one of these numbers


def test_bits_are_bits():
    with pytest.raises(FedboundsError, match="bits are zeros and ones"):
        Bits().encode(np.array([0.0, 0.5]), np.random.default_rng(0))


def test_something_is_always_sent():
    x = np.array([1.0, -3.0, 2.0])
    assert TopK(1e-12).count(3) == 1
    assert TopK(1e-12).decode(TopK(1e-12).encode(x, np.random.default_rng(0))).tolist() == [0.0, -3.0, 0.0]
    with pytest.raises(FedboundsError, match=r"probability = 1e-09 must be in \[1e-8, 1\]"):
        Sparsified(1e-9)


def test_top_k_keeps_the_largest_and_counts_exactly():
    assert [TopK(share).count(size) for share, size in [(0.03, 100), (0.1, 10), (0.03, 10), (1.0, 7)]] == [3, 1, 1, 7]
    x = np.random.default_rng(0).standard_normal(1000)
    meant = TopK(0.03).decode(TopK(0.03).encode(x, np.random.default_rng(0)))
    kept = np.flatnonzero(meant)
    assert len(kept) == 30 and np.abs(x[kept]).min() >= np.sort(np.abs(x))[-30]
    np.testing.assert_array_equal(meant[kept], x[kept].astype(np.float32))


@pytest.mark.parametrize("bits", _LEVELS)
def test_levels_are_best_for_a_normal_law(bits):
    half = np.array(_LEVELS[bits])
    borders = np.concatenate([[0], (half[1:] + half[:-1]) / 2, [np.inf]])
    mass = np.diff(stats.norm.cdf(borders))
    centers = -np.diff(stats.norm.pdf(borders)) / mass
    np.testing.assert_allclose(half, centers, rtol=1e-3)


@pytest.mark.parametrize("size", [8, 100, 5000])
def test_drive_and_eden_are_their_formulas(size):
    x = np.random.default_rng(3).standard_normal(size).astype(np.float32)
    seed, padded = 12345, np.zeros(pieces(size)[-1].stop, np.float32)
    padded[:size] = x
    turned = rotate(x, seed).astype(np.float64)
    for scale in ("least-error", "unbiased"):
        wanted = np.empty_like(turned)
        for place in pieces(size):
            own = turned[place]
            alpha = np.abs(own).mean() if scale == "least-error" else own @ own / np.abs(own).sum()
            wanted[place] = alpha * np.where(own > 0, 1, -1)
        meant = Drive(scale=scale).decode(Drive(scale=scale).encode(x, chance(0.0)))
        np.testing.assert_allclose(meant, rotate_back(wanted.astype(np.float32), seed, size), atol=1e-5)
        np.testing.assert_allclose(Eden(1, scale).decode(Eden(1, scale).encode(x, chance(0.0))), meant, atol=1e-6)
        if scale == "least-error" and size == 8:  # nothing is padded: the error is what the cosine leaves
            error = float(np.square(meant - x).sum())
            assert error == pytest.approx(float(x @ x) - np.abs(turned).sum() ** 2 / 8, rel=1e-4)


def test_more_bits_of_eden_have_the_errors_of_the_levels():
    x = np.random.default_rng(0).standard_normal(2**14)
    for bits, expected in {1: 0.3634, 2: 0.1175, 3: 0.03454, 4: 0.009497}.items():  # Max 1960, Table I
        codec = Eden(bits, "least-error")
        meant = codec.decode(codec.encode(x, np.random.default_rng(bits)))
        assert np.square(meant - x).sum() / (x @ x) == pytest.approx(expected, rel=0.05)


def test_bits_for_each_number():
    d = 390_000
    codecs = (FullPrecision(), StochasticSign(), TernGrad(), TopK(), Drive(), Eden(2))
    found = {codec.kind: 8 * (codec.message_bytes(d) or 0) / d for codec in codecs}
    assert found["full-precision"] == pytest.approx(32, abs=0.001)
    assert found["stochastic-sign"] == pytest.approx(1, abs=0.001)
    assert found["terngrad"] == pytest.approx(1.6, abs=0.001)
    assert found["top-k"] == pytest.approx(0.03 * 32 + 0.21, abs=0.01)
    assert found["drive"] == pytest.approx(1, abs=0.012) and found["eden"] == pytest.approx(2, abs=0.023)


# anybody's compressor


class Crooked(TernGrad):
    """TernGrad whose server forgets a fifth."""

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        return super().unpack(payload, size) * np.float32(0.8)


class Bare:
    """Signs and their mean size, without any check."""

    def encode(self, update: np.ndarray, rng: np.random.Generator) -> bytes:
        return np.abs(update).mean().astype("<f4").tobytes() + packing.bits(update > 0)

    def decode(self, message: bytes) -> np.ndarray:
        signs = np.unpackbits(np.frombuffer(message[4:], np.uint8), bitorder="little")
        return (2.0 * signs - 1) * np.frombuffer(message[:4], "<f4")[0]


def test_a_bias_is_seen_and_none_is_invented():
    assert [check_compressor(codec, 64, 200).biased for codec in
            (FullPrecision(), StochasticSign(), TernGrad(), Sparsified(0.5))] == [False] * 4  # fmt: skip
    assert check_compressor(Crooked(), 64, 200).biased
    assert check_compressor(TopK(0.5), 64, 20).biased
    report = check_compressor(Bare(), 64, 20)
    assert report.biased and report.refused.endswith("cut short, one byte too long, one bit flipped")
    assert "biased: on" in str(report) and "1.5 bits a number" in str(report)


def test_what_is_sent_in_fifty_messages_is_not_called_biased_and_what_is_sent_in_none_may_be():
    assert not any(check_compressor(Sparsified(50 / 100), 32, 100, seed=k, sizes=()).biased for k in range(40))
    assert any(check_compressor(Sparsified(1 / 60), 32, 60, seed=k, sizes=()).biased for k in range(10))


def test_masked_noise_is_unbiased_where_it_should_be():
    assert not check_compressor(MaskedNoise("bernoulli", 1.0), 64, 200, scale=1e-3, sizes=()).biased
    cut = check_compressor(MaskedNoise("bernoulli", 20.0), 256, 100, sizes=())  # of heavy tails, and of nothing else
    assert "on 'heavy tails'" in str(cut) and cut.biased  # though chance moves the mean of 'one large' further
    clipped = check_compressor(MaskedNoise("uniform", 1.0), 64, 300, scale=0.5, sizes=())
    assert clipped.biased  # u - u|u|/2 on average, where all of it is at most alpha


def test_measured_errors_are_the_stated_ones():
    report = check_compressor(TernGrad(), 49, 400)
    (worst,) = [trial for trial in report.measurements if trial.update == "one large"]
    assert worst.relative_error == pytest.approx(TernGrad().relative_error(49), abs=5 * worst.standard_error)
    assert report.bits == 8 * (16 + 4 + 10) / 49


def test_a_bias_has_an_error_and_what_can_be_seen_is_seen():
    report = check_compressor(StochasticSign(), 64, 200)
    assert not report.biased and "a bias" in str(report) and "is off by" not in str(report)
    for trial in report.measurements:
        assert trial.bias <= 3 * trial.bias_error or trial.bias < 1e-6
    seen = max(trial.visible for trial in report.measurements if trial.update == "normal")

    class Long(StochasticSign):
        """Every update comes out too long."""

        def decode(self, message):
            return np.float32(1 + 2 * seen) * super().decode(message)

    assert check_compressor(Long(), 64, 200).biased


def test_numbers_that_are_not_finite_are_called_so():
    class Odd(FullPrecision):
        def decode(self, message):
            return np.where(np.arange(16) == 3, np.nan, super().decode(message))

    with pytest.raises(FedboundsError, match="decode returned nan at 3, 1 of 16 numbers not finite"):
        check_compressor(Odd(), 16, 20)


def test_what_is_no_compressor_is_reported():
    class Random(FullPrecision):
        def unpack(self, payload, size):
            return super().unpack(payload, size) + np.float32(np.random.default_rng().random())

    class Short(FullPrecision):
        def unpack(self, payload, size):
            return super().unpack(payload, size)[:-1]

    class Text(FullPrecision):
        def encode(self, update, rng):
            return "text"

    for wrong, told in [(Random(), "what decodes it is random"), (Short(), "expected finite numbers"),
                        (Text(), "expected bytes")]:  # fmt: skip
        with pytest.raises(FedboundsError, match=told):
            check_compressor(wrong, 16, 20)
