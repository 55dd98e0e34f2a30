"""Random numbers as functions of a word and a place: the same in every batch, on every device.

A stochastic gradient with dropout or augmentation needs many random numbers per sample. Drawing one word per sample and
hashing the rest out of it keeps what a client draws small, and independent of how clients are batched.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, odd, as a signed integer
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685  # the multipliers of splitmix64
_BITS = 53
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
    bits = raw_bits(words, purpose, size)
    low, high = bits & (2**24 - 1), (bits >> 24) & (2**24 - 1)
    return low.to(dtype) * 2.0**-24, high.to(dtype) * 2.0**-24


def raw_bits(words: Tensor, purpose: int, count: int, start: int = 0) -> Tensor:
    """The 64 bits behind the numbers k = start + 1, ..., start + count, int64 of shape `(*words.shape, count)`."""
    first = _mix(words + torch.full((), purpose, device=words.device) * _GOLDEN)
    steps = torch.arange(start + 1, start + count + 1, device=words.device) * _GOLDEN  # products wrap around in tensors
    return _mix(first.unsqueeze(-1) + steps)


def _mix(numbers: Tensor) -> Tensor:
    numbers = (numbers ^ _shift(numbers, 30)) * _FIRST
    numbers = (numbers ^ _shift(numbers, 27)) * _SECOND
    return numbers ^ _shift(numbers, 31)


def _shift(numbers: Tensor, places: int) -> Tensor:
    """A logical shift to the right; torch's own copies the sign."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)
