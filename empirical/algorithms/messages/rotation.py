r"""A random rotation that costs $d\log d$: random signs, then the Walsh-Hadamard transform.

Nothing but sums and differences in a fixed order and one product: the same bits on every machine.
"""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.algorithms.messages.noise import Noise

_LEAST = 4096  # shorter pieces are not rotated by themselves: what is left over is padded
_SIGNS = Noise("bernoulli", 1.0)


def hadamard(x: np.ndarray) -> np.ndarray:
    r"""$Hx/\sqrt n$ for $n=2^m$ numbers, its own inverse; float32 or float64, (n,).

    Source: the fast transform; H has entries $(-1)^{\text{popcount}(i\wedge j)}$.
    """
    bits = len(x).bit_length() - 1
    rows = 1 << bits // 2
    once = _columns(x.reshape(rows, -1)).T
    return (_columns(once).T * x.dtype.type(len(x) ** -0.5)).reshape(-1)


def _columns(x: np.ndarray) -> np.ndarray:
    """The transform of every column (n, k), unscaled."""
    x, half = np.array(x, order="C"), 1
    while half < len(x):
        pairs = x.reshape(-1, 2, half, x.shape[1])
        total = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = total
        half *= 2
    return x


def pieces(size: int) -> list[slice]:
    """The pieces of powers of two that are rotated one by one; the last may end after `size`, in zeros."""
    found, start = [], 0
    while start < size:
        left = size - start
        length = 1 << (left.bit_length() - 1) if left >= _LEAST else 1 << (left - 1).bit_length()
        found.append(slice(start, start + length))
        start += length
    return found


def rotate(x: np.ndarray, seed: int) -> np.ndarray:
    """Every piece of the vector rotated, float32, as long as the pieces together."""
    places = pieces(len(x))
    padded = np.zeros(places[-1].stop, np.float32)
    padded[: len(x)] = x
    padded *= _SIGNS.draw(seed, len(padded))
    return np.concatenate([hadamard(padded[place]) for place in places])


def rotate_back(rotated: np.ndarray, seed: int, size: int) -> np.ndarray:
    """The vector (size,) that `rotate` turned."""
    back = np.concatenate([hadamard(rotated[place]) for place in pieces(size)])
    return (back * _SIGNS.draw(seed, len(back)))[:size]
