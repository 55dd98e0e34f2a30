"""Compressors with one bug each, and right in other styles."""

from __future__ import annotations

import inspect
import sys
import zlib

import numpy as np

from fedbounds.empirical.algorithms.messages import Drive, FullPrecision, Sparsified, StochasticSign, TernGrad, TopK
from fedbounds.empirical.invariants.compressor import check_compressor
from fedbounds.empirical.invariants.report import Report
from tests.zoo import Kept, Zoo


class Sign:
    """Random signs of the largest entry."""

    def encode(self, update, rng):
        x = np.asarray(update, np.float32)
        a = np.abs(x).max()
        ones = rng.random(len(x)) < (1 + x / (a or 1)) / 2
        return np.uint32(len(x)).tobytes() + np.float32(a).tobytes() + np.packbits(ones).tobytes()

    def decode(self, message):
        size, a = np.frombuffer(message[:4], np.uint32)[0], np.frombuffer(message[4:8], np.float32)[0]
        bits = np.unpackbits(np.frombuffer(message[8:], np.uint8), count=size)
        return a * (2.0 * bits - 1)


class Ternary:
    """TernGrad: a byte for each entry."""

    def encode(self, update, rng):
        s = np.abs(update).max()
        kept = rng.random(len(update)) * s < np.abs(update)
        digits = np.where(kept, np.sign(update), 0).astype(np.int8)
        return np.float32(s).tobytes() + digits.tobytes()

    def decode(self, message):
        s = np.frombuffer(message[:4], np.float32)[0]
        return s * np.frombuffer(message[4:], np.int8).astype(np.float64)


class Sparse:
    """Every entry with probability one half, twice as large."""

    probability = 0.5

    def encode(self, update, rng):
        kept = rng.random(len(update)) < self.probability
        values = np.where(kept, update / self.probability, 0)
        return values.astype(np.float32).tobytes()

    def decode(self, message):
        return np.frombuffer(message, np.float32).astype(float)


class Levels:
    """QSGD with 4 levels of the norm."""

    levels = 4

    def encode(self, update, rng):
        norm = np.linalg.norm(update)
        level = self.levels * np.abs(update) / (norm or 1)
        low = np.floor(level)
        level = low + (rng.random(len(update)) < level - low)
        digits = (np.sign(update) * level).astype(np.int8)
        return np.float64(norm).tobytes() + digits.tobytes()

    def decode(self, message):
        norm = np.frombuffer(message[:8], np.float64)[0]
        return norm * np.frombuffer(message[8:], np.int8) / self.levels


class Largest:
    """The quarter of the entries that are largest: biased, and says so."""

    unbiased = False
    share = 4

    def relative_error(self, size):
        return 1 - -(-size // self.share) / size

    def encode(self, update, rng):
        k = -(-len(update) // self.share)
        where = np.argsort(-np.abs(update), kind="stable")[:k]
        values = update[where]
        numbers = values.astype(np.float32).tobytes()
        return np.uint32(len(update)).tobytes() + where.astype(np.uint32).tobytes() + numbers

    def decode(self, message):
        size, k = np.frombuffer(message[:4], np.uint32)[0], (len(message) - 4) // 8
        found = np.zeros(size)
        found[np.frombuffer(message[4 : 4 + 4 * k], np.uint32)] = np.frombuffer(message[4 + 4 * k :], np.float32)
        return found


def planted(of, *changes):
    """The class with one bug."""
    source = inspect.getsource(of)
    for old, new in changes:
        assert source.count(old) == 1, (of.__name__, old)
        source = source.replace(old, new)
    space = dict(vars(sys.modules[of.__module__]))
    exec(source, space)
    return space[of.__name__]


SIGN, A, BITS = "(1 + x / (a or 1)) / 2", "a = np.abs(x).max()", "return a * (2.0 * bits - 1)"
KEPT, TWICE, S, DIGITS = (
    "rng.random(len(update)) < self.probability",
    "update / self.probability",
    "s = np.abs(update).max()",
    "return s * np",
)
CHANCE, NORM, TOP = (
    "rng.random(len(update)) < level - low",
    "norm = np.linalg.norm(update)",
    'np.argsort(-np.abs(update), kind="stable")[:k]',
)

CHANGES = {
    # bias
    "signs without chance": (Sign, ("rng.random(len(x))", "0.5")),
    "sign bits flipped": (Sign, (BITS, "return a * (1 - 2.0 * bits)")),
    "signs scaled by the mean size": (Sign, (A, "a = np.abs(x).mean()")),
    "signs scaled by the largest entry, not size": (Sign, (A, "a = np.maximum(x.max(), 0)")),
    "signs 2 % too long": (Sign, (BITS, BITS + " * 1.02")),
    "signs 0.1 % too short": (Sign, (BITS, BITS + " * 0.999")),
    "scale in half precision": (Sign, ("np.float32(a).tobytes()", "np.float32(np.float16(min(a, 65504))).tobytes()")),
    "sign probability from the size": (Sign, (SIGN, "(1 + np.abs(x) / (a or 1)) / 2")),
    "sign probability x/a": (Sign, (SIGN, "x / (a or 1)")),
    "not divided by the probability": (Sparse, (TWICE, "update")),
    "divided by the share that was kept": (Sparse, (TWICE, "update * len(kept) / max(1, kept.sum())")),
    "keeps six in ten, divides by a half": (Sparse, (KEPT, "rng.random(len(update)) < 0.6")),
    "keeps each after the first with less than a half": (
        Sparse,
        (KEPT, "rng.random(len(update)) < 0.5 - 0.1 * (np.arange(len(update)) > 0)"),
    ),
    "keeps the first half": (Sparse, (KEPT, "np.arange(len(update)) < len(update) / 2")),
    "ternary of clipped updates": (Ternary, (S, "s = min(np.abs(update).max(), 2.5 * update.std() or 1)")),
    "ternary with a sign lost": (Ternary, ("np.sign(update), 0", "np.abs(np.sign(update)), 0")),
    "ternary of the norm, scaled by the largest": (
        Ternary,
        ("rng.random(len(update)) * s", "rng.random(len(update)) * np.linalg.norm(update)"),
    ),
    "levels rounded down": (Levels, (CHANCE, "0 > level")),
    "levels rounded to the nearest": (Levels, (CHANCE, "0.5 < level - low")),
    "levels less one": (Levels, ("np.int8) / self.levels", "np.int8) / (self.levels - 1)")),
    "levels with the largest as norm in decoding alone": (
        Levels,
        ("np.float64(norm).tobytes()", "np.float64(np.abs(update).max()).tobytes()"),
    ),
    "levels cut off at 3": (Levels, ("np.sign(update) * level)", "np.sign(update) * np.minimum(level, 3))")),
    "adds a thousandth to all": (
        Sparse,
        (
            "return np.frombuffer(message, np.float32).astype(float)",
            "return np.frombuffer(message, np.float32).astype(float) + 1e-3",
        ),
    ),
    # sizes
    "the last coordinate is dropped": (Sparse, ("return values", "values[-1] = 0\n        return values")),
    "the last coordinate is dropped above 64": (
        Sparse,
        ("return values", "values[64:][-1:] = 0\n        return values"),
    ),
    "the last coordinate is dropped in odd dimensions": (
        Sparse,
        ("return values", "values[len(values) // 2 * 2 :] = 0\n        return values"),
    ),
    "a coordinate in the middle is dropped above 100": (
        Sparse,
        ("return values", "values[100:101] = 0\n        return values"),
    ),
    "whole bytes of bits alone": (
        Sign,
        ("return a * (2.0 * bits - 1)", "bits[size // 8 * 8 :] = 1\n        return a * (2.0 * bits - 1)"),
    ),
    "wrong beyond four coordinates, and not beyond 200": (
        Ternary,
        (DIGITS, "return s * (1.1 if 8 < len(message) < 200 else 1) * np"),
    ),
    "a single coordinate is halved": (
        Levels,
        ("return norm * np", "return (0.5 if len(message) == 9 else 1) * norm * np"),
    ),
    "two coordinates are exchanged": (
        Ternary,
        ("return np.float32(s)", "digits[:2] = digits[:2][::-1]\n        return np.float32(s)"),
    ),
    "in reverse": (Sparse, ("return values", "values = values[::-1]\n        return values")),
    # updates that are seldom tried
    "zero becomes nan": (
        Levels,
        ("(norm or 1)", "norm"),
        (
            "digits = ",
            "level = np.where(np.isfinite(level), level, 0)\n        norm = norm or np.nan\n        digits = ",
        ),
    ),
    "zero is refused": (Sign, ("(a or 1)", "(a if a else [][0])")),
    "zero becomes one": (
        Ternary,
        (S, S + " or 1.0"),
        ("return np.float32(s)", "digits[:] += not update.any()\n        return np.float32(s)"),
    ),
    "small updates are lost": (Levels, (NORM, "norm = np.linalg.norm(update) if np.abs(update).max() > 1e-2 else 0.0")),
    "all negative is lost": (Ternary, (S, "s = np.abs(update).max() if (update > 0).any() else 0.0")),
    # randomness and state
    "a seed of its own": (Sparse, (KEPT, "np.random.default_rng(7).random(len(update)) < self.probability")),
    "one of sixteen seeds": (
        Sparse,
        (KEPT, "np.random.default_rng(rng.integers(16)).random(len(update)) < self.probability"),
    ),
    "numbers of the message before": (
        Sparse,
        (KEPT, "self.again(len(update), rng) < self.probability"),
        (
            "    probability = 0.5\n",
            "    probability = 0.5\n    last = None\n\n    def again(self, size, rng):\n"
            "        if self.last is None or len(self.last) != size:\n            self.last = rng.random(size)\n"
            "            return self.last\n        found, self.last = self.last, None\n        return found\n",
        ),
    ),
    "error feedback that nobody asked for": (
        Ternary,
        (
            S,
            "left = getattr(self, 'left', None)\n"
            "        update = update + 0.1 * left if np.shape(left) == update.shape else update\n"
            "        self.left = update - np.round(update)\n        " + S,
        ),
    ),
    "randomness that is not the client's": (Sparse, ("rng.random(len", "np.random.default_rng().random(len")),
    "chances in multiples of an eighth": (
        Ternary,
        ("rng.random(len(update)) * s", "np.floor(8 * rng.random(len(update))) / 8 * s"),
    ),
    # input and form
    "changes its input": (Levels, (NORM, NORM + "\n        update /= norm or 1")),
    "sorts its input": (Largest, ("k = -(-len", "update.sort()\n        k = -(-len")),
    "one number too many where bytes are full": (Sign, ("count=size)", "count=size + (size % 8 == 4))")),
    # largest entries
    "the largest, not the largest in size": (Largest, (TOP, "np.argsort(-update)[:k]")),
    "the smallest": (Largest, (TOP, "np.argsort(np.abs(update))[:k]")),
    "one entry too few": (Largest, (TOP, TOP.replace("[:k]", "[: max(1, k - 1)]"))),
    "the first": (Largest, (TOP, "np.arange(k)")),
    "values by size, positions by place": (
        Largest,
        ("values = update[where]", "values = update[where]\n        where = np.sort(where)"),
    ),
    "values without sign": (Largest, ("values = update[where]", "values = np.abs(update[where])")),
    "largest entries twice as large": (Largest, ("values = update[where]", "values = 2 * update[where]")),
}
CHANGES |= {
    "one of 256 seeds": (Sign, ("rng.random(len(x))", "np.random.default_rng(rng.integers(256)).random(len(x))")),
    "positions in a byte": (
        Largest,
        ("where.astype(np.uint32).tobytes() + numbers", "where.astype(np.uint8).astype(np.uint32).tobytes() + numbers"),
    ),
    "positions in two bytes": (
        Largest,
        (
            "where.astype(np.uint32).tobytes() + numbers",
            "where.astype(np.uint16).astype(np.uint32).tobytes() + numbers",
        ),
    ),
    "numbers in half precision": (
        Sparse,
        (
            "values.astype(np.float32).tobytes()",
            "values.clip(-65504, 65504).astype(np.float16).astype(np.float32).tobytes()",
        ),
    ),
    "entries below 1e-5 are lost": (
        Sparse,
        ("return values", "values[np.abs(values) < 1e-5] = 0\n        return values"),
    ),
    "norms above 1e5 are 1e5": (
        Levels,
        (NORM, "update = update * min(1, 1e5 / max(np.linalg.norm(update), 1e-30))\n        " + NORM),
    ),
    "coordinates from the 257th on are lost": (Sparse, ("return values", "values[256:] = 0\n        return values")),
    "coordinates from the 65,537th on are lost": (
        Sparse,
        ("return values", "values[65536:] = 0\n        return values"),
    ),
    "two zeros in a row end the update": (
        Ternary,
        (
            S,
            "gaps = np.flatnonzero((update[1:] == 0) & (update[:-1] == 0))\n"
            "        if len(gaps) and np.count_nonzero(update) > 1:\n"
            "            update = np.where(np.arange(len(update)) < gaps[0], update, 0)\n        " + S,
        ),
    ),
    "error feedback above 256": (
        Sparse,
        (
            KEPT,
            "rng.random(len(update)) < 0.5\n"
            "        if len(update) > 256:\n"
            "            left = self.__dict__.get(len(update), 0)\n"
            "            self.__dict__[len(update)] = update + left - np.sign(update) * np.abs(update).mean()\n"
            "            update = update + left",
        ),
    ),
    "says that it refuses damaged messages": (
        Ternary,
        ('    """TernGrad: a byte', '    refuses_damaged = True\n    """TernGrad: a byte'),
    ),
    "one entry in 97 is kept less often": (
        Sparse,
        (KEPT, "rng.random(len(update)) < np.where(np.arange(len(update)) % 97 == 50, 0.25, 0.5)"),
    ),
    "the norm of the first message for all": (
        Levels,
        (NORM, NORM + "\n        norm = self.__dict__.setdefault(len(update), norm)"),
    ),
}
MUTANTS = {name: planted(*made)() for name, made in CHANGES.items()}


# --- right, in other styles -------------------------------------------------------------------------------------------


class SharedRandomness:
    """The seed is sent, and both sides draw the same signs: a random one of two halves, dithered."""

    def encode(self, update, rng):
        seed = int(rng.integers(2**32))
        dither = np.random.default_rng(seed).random(len(update)) - 0.5
        step = float(np.abs(update).max()) / 8 or 1.0
        digits = np.round(update / step + dither).astype(np.int8)
        return np.uint32(seed).tobytes() + np.float64(step).tobytes() + digits.tobytes()

    def decode(self, message):
        digits = np.frombuffer(message[12:], np.int8)
        dither = np.random.default_rng(int(np.frombuffer(message[:4], np.uint32)[0])).random(len(digits)) - 0.5
        return (np.frombuffer(message[4:12], np.float64)[0] * (digits - dither)).tolist()


class Checked:
    """Another, with a checksum; bytearray and float64."""

    def __init__(self, inner):
        self.inner = inner

    def encode(self, update, rng):
        payload = self.inner.encode(update, rng)
        return bytearray(payload + zlib.crc32(payload).to_bytes(4, "little"))

    def decode(self, message):
        payload = message[:-4]
        assert zlib.crc32(payload).to_bytes(4, "little") == message[-4:], "damaged"
        return np.asarray(self.inner.decode(payload), np.float64)


class OneOfAll:
    """One random entry, d times as large, for small d."""

    def encode(self, update, rng):
        k = int(rng.integers(len(update)))
        values = np.zeros(len(update), np.float32)
        values[k % 8 :: 8] = update[k % 8 :: 8] * min(8, len(update)) if len(update) % 8 == 0 else 0
        if len(update) % 8:
            values = np.where(rng.random(len(update)) < 0.25, 4 * update, 0).astype(np.float32)
        return values.tobytes()

    def decode(self, message):
        return np.frombuffer(message, np.float32)


CORRECT = {
    "sign": Sign(),
    "ternary": Ternary(),
    "kept": Sparse(),
    "levels": Levels(),
    "largest": Largest(),
    "shared randomness": SharedRandomness(),
    "checked": Checked(Ternary()),
    "every eighth": OneOfAll(),
    "ours, 32 bits": FullPrecision(),
    "ours, sign": StochasticSign(),
    "ours, ternary": TernGrad(),
    "ours, largest": TopK(0.1),
    "ours, kept": Sparsified(0.5),
    "ours, least error": Drive(),
}


def check(codec, invariants=None):
    """The report as of the other checks."""
    return Report(check_compressor(codec).verdicts)


ZOO = Zoo(
    "check_compressor",
    check,
    {name: Kept(codec, {}) for name, codec in MUTANTS.items()},
    {name: Kept(codec, {}) for name, codec in CORRECT.items()},
)
