"""Numbers that take few bits, in whole bytes: bits, three values, positions in a long vector."""

from __future__ import annotations

import numpy as np

_DIGITS = 5  # three values five times are 243 of the 256 values of a byte
_POWERS = (3 ** np.arange(_DIGITS)).astype(np.uint8)


def bits(values: np.ndarray) -> bytes:
    """Booleans (n,), eight to a byte, the first the lowest bit."""
    return np.packbits(values, bitorder="little").tobytes()


def unbits(packed: bytes, count: int) -> np.ndarray:
    """The bits, uint8 (count,)."""
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count, bitorder="little")


def bit_bytes(count: int, width: int = 1) -> int:
    """How many bytes so many numbers of so many bits take."""
    return -(-count * width // 8)


def words(values: np.ndarray, width: int) -> bytes:
    """Numbers (n,) below 2^width, one after another; the lowest bit of each first."""
    return bits((values[:, None] >> np.arange(width, dtype=values.dtype)) & 1)


def unwords(packed: bytes, count: int, width: int) -> np.ndarray:
    """The numbers, int64 (count,)."""
    return unbits(packed, count * width).reshape(count, width).astype(np.int64) @ (1 << np.arange(width))


def ternary(values: np.ndarray) -> bytes:
    """Numbers -1, 0 and 1 (n,), five to a byte: 1.6 bits each, of log2(3) = 1.585 that they need."""
    digits = np.ones(-(-len(values) // _DIGITS) * _DIGITS, np.uint8)
    digits[: len(values)] = values + 1
    return (digits.reshape(-1, _DIGITS) @ _POWERS).tobytes()


def unternary(packed: bytes, count: int) -> np.ndarray:
    """The numbers, int8 (count,)."""
    digits = np.frombuffer(packed, np.uint8)[:, None] // _POWERS % 3
    return digits.reshape(-1)[:count].astype(np.int8) - 1


def ternary_bytes(count: int) -> int:
    """How many bytes so many of them take."""
    return -(-count // _DIGITS)


def positions(where: np.ndarray, size: int) -> bytes:
    r"""Ascending positions (k,) below `size`, in about $k(2+\log_2(\text{size}/k))$ bits.

    The lowest $\ell$ bits of each are stored unchanged; the ascending rest in unary differences.

    Example:
        >>> unpositions(positions(np.array([3, 700, 999]), 1000), 3, 1000).tolist()
        [3, 700, 999]

    Source: Elias 1974, *Efficient storage and retrieval by content and address of static files*; Fano 1971.
    """
    low = _low_bits(len(where), size)
    high = np.zeros(_high_bits(len(where), size), bool)
    high[(where >> low) + np.arange(len(where))] = True
    return words(where & ((1 << low) - 1), low) + bits(high)


def unpositions(packed: bytes, count: int, size: int) -> np.ndarray:
    """The positions, int64 (count,)."""
    low = _low_bits(count, size)
    split = bit_bytes(count, low)
    high = np.flatnonzero(unbits(packed[split:], _high_bits(count, size)))
    if len(high) != count:
        raise ValueError(f"{len(high)} positions instead of {count}")
    found = ((high - np.arange(count)) << low) | unwords(packed[:split], count, low)
    if (found[1:] <= found[:-1]).any() or (found[-1:] >= size).any():
        raise ValueError(f"positions that do not ascend below {size}")
    return found


def position_bytes(count: int, size: int) -> int:
    """How many bytes so many positions take."""
    return bit_bytes(count, _low_bits(count, size)) + bit_bytes(_high_bits(count, size))


def _low_bits(count: int, size: int) -> int:
    return max(0, (size // max(count, 1)).bit_length() - 1)


def _high_bits(count: int, size: int) -> int:
    return count + (size >> _low_bits(count, size)) + 1
