"""Random numbers as functions of a word and a place: the same in every batch, on every device.

A stochastic gradient with dropout or augmentation needs many random numbers per sample. Drawing one word per sample and
hashing the rest out of it keeps what a client draws small, and independent of how clients are batched.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, odd, as a signed integer
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685  # the multipliers of splitmix64
_BITS = 53
_LOW = 0 if sys.byteorder == "little" else 1  # the place of the lower half of 64 bits
_BLOCK = 32768  # numbers of a word that a CPU makes at once, so that they stay in its cache
UPLOAD = 200  # purpose of the numbers behind a mask that is sent; those of local step k have the purpose UPLOAD + k


def words_from_uniforms(uniforms: np.ndarray) -> np.ndarray:
    """Words of 53 bits from numbers in [0, 1), int64, in the same shape."""
    return (uniforms * 2.0**_BITS).astype(np.int64)


def uniforms(words: Tensor, purpose: int, count: int) -> Tensor:
    r"""Independent numbers in [0, 1) for each word, float64 of shape `(*words.shape, count)`.

    $$u_k = 2^{-53}\lfloor 2^{-11}\, m(m(w + a\,\varphi) + k\,\varphi)\rfloor,\qquad k = 1, \dots, \text{count},$$

    modulo $2^{64}$, with m the finalizer of splitmix64 and $\varphi$ its increment.

    Source: Steele, Lea & Flood 2014, *Fast splittable pseudorandom number generators*, Figure 15.
    """
    return _shift(raw_bits(words, purpose, count), 64 - _BITS).double() * 2.0**-_BITS


def chances(words: Tensor, purpose: int, size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Two numbers for each coordinate, uniform on the multiples of 2^-24 in [0, 1): each `(*words.shape, size)`."""
    if words.device.type != "cpu":
        bits = raw_bits(words, purpose, size)
        low, high = bits & (2**24 - 1), (bits >> 24) & (2**24 - 1)
        return low.to(dtype) * 2.0**-24, high.to(dtype) * 2.0**-24
    low, high = torch.empty(*words.shape, size, dtype=dtype), torch.empty(*words.shape, size, dtype=dtype)
    first = _mix(words + torch.full((), purpose) * _GOLDEN).numpy().view(np.uint64)
    width = max(_BLOCK // max(words.numel(), 1), 1)
    for start in range(0, size, width):
        steps = np.arange(start + 1, min(start + width, size) + 1, dtype=np.uint64) * np.uint64(_GOLDEN % 2**64)
        bits = _mix_in_place(first[..., None] + steps)
        for some, tensor in ((bits, low), (bits >> np.uint64(24), high)):
            whole = some.view(np.int32)[..., _LOW::2] & np.int32(2**24 - 1)
            into = tensor.numpy()[..., start : start + width]
            np.multiply(whole, 2.0**-24, out=into, dtype=into.dtype, casting="unsafe")
    return low, high


def raw_bits(words: Tensor, purpose: int, count: int, start: int = 0) -> Tensor:
    """The 64 bits behind the numbers k = start + 1, ..., start + count, int64 of shape `(*words.shape, count)`."""
    first = _mix(words + torch.full((), purpose, device=words.device) * _GOLDEN)
    steps = torch.arange(start + 1, start + count + 1, device=words.device) * _GOLDEN  # products wrap around in tensors
    return _mix(first.unsqueeze(-1) + steps)


def _mix(numbers: Tensor) -> Tensor:
    numbers = (numbers ^ _shift(numbers, 30)) * _FIRST
    numbers = (numbers ^ _shift(numbers, 27)) * _SECOND
    return numbers ^ _shift(numbers, 31)


def _mix_in_place(numbers: np.ndarray) -> np.ndarray:
    """As `_mix`, of uint64: several times faster than torch, which has no unsigned shifts."""
    spare = np.empty_like(numbers)
    for places, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        np.right_shift(numbers, np.uint64(places), out=spare)
        np.bitwise_xor(numbers, spare, out=numbers)
        if factor != 1:
            np.multiply(numbers, np.uint64(factor % 2**64), out=numbers)
    return numbers


def _shift(numbers: Tensor, places: int) -> Tensor:
    """A logical shift to the right; torch's own copies the sign."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)
