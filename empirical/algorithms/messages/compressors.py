r"""The compressors that masked noise was compared with, and the operators with an exact relative error.

| | sends | unbiased | $E\lVert\mathcal S(x)-x\rVert^2$ |
|---|---|---|---|
| `FullPrecision` | 32 d bits | yes | 0 |
| `Sparsified` | the kept entries | yes | $(1/\pi-1)\lVert x\rVert^2$ |
| `StochasticSign` | d bits, 1 number | yes | $da^2-\lVert x\rVert^2$ |
| `TernGrad` | 1.6 d bits, 1 number | yes | $\sum_i\lvert x_i\rvert(s-\lvert x_i\rvert)$ |
| `TopK` | k positions and numbers | no | what is left out |
| `Drive` | d bits, a number per piece, a seed | by `scale` | depends on the rotation |
| `Eden` | b d bits, the same | nearly | depends on the rotation |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, quote
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.algorithms.messages import packing
from fedbounds.empirical.algorithms.messages.compressor import Compressor, check_update
from fedbounds.empirical.algorithms.messages.envelope import seal, unseal
from fedbounds.empirical.algorithms.messages.noise import LARGEST_SEED
from fedbounds.empirical.algorithms.messages.rotation import pieces, rotate, rotate_back
from fedbounds.empirical.runtime.kinds import Registry

_NUMBER = np.dtype("<f4")


def _numbers(packed: bytes) -> np.ndarray:
    """Numbers that were sent as they are, float32."""
    found = np.frombuffer(packed, _NUMBER).astype(np.float32)
    if not np.isfinite(found).all():
        raise FedboundsError("the message carries numbers that are not finite")
    return found


def _check_share(name: str, value: object) -> float:
    share = check_positive(name, value)
    if share > 1:
        raise FedboundsError(f"{name} = {share:g} must be in (0, 1]")
    return share


@dataclass(frozen=True)
class FullPrecision(Compressor):
    """Every number as it is, 32 bits each: FedAvg.

    Example:
        >>> codec = FullPrecision()
        >>> codec.decode(codec.encode(np.array([0.5, -2.0]), np.random.default_rng(0))).tolist()
        [0.5, -2.0]
    """

    kind, code, unbiased = "full-precision", 1, True

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        return x.astype(_NUMBER).tobytes()

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        return _numbers(payload)

    def payload_bytes(self, size: int) -> int:
        return 4 * size

    def squared_error(self, x: np.ndarray) -> float:
        return 0.0

    def relative_error(self, size: int) -> float:
        return 0.0


@dataclass(frozen=True)
class StochasticSign(Compressor):
    r"""SignSGD with random signs: $\mathcal S(x)_i=a$ with probability $\frac12(1+x_i/a)$, else $-a$.

    $$E[\mathcal S(x)]=x,\qquad E\|\mathcal S(x)-x\|^2=da^2-\|x\|^2\le(d-1)\|x\|^2,$$

    with $a=\|x\|_\infty$ (`scale="largest"`; equality for one entry that is not zero) or $a=\|x\|_2$
    (`scale="norm"`; equality for every x). The scale is rounded up to float32. Zero means zero: a = 0 is sent.

    Args:
        scale: what a is.

    Raises:
        FedboundsError: another scale.

    Example:
        >>> codec = StochasticSign()
        >>> codec.decode(codec.encode(np.array([1.0, -1.0, 1.0]), np.random.default_rng(0))).tolist()
        [1.0, -1.0, 1.0]
        >>> codec.squared_error(np.array([1.0, 0.0])), codec.message_bytes(808) - codec.message_bytes(8)
        (1.0, 100)

    Source: Li et al. 2024, Section 5.1 compare with "SignSGD", stochastic, without a formula, and cite Safaryan &
    Richtarik 2021, *Stochastic Sign Descent Methods: New Algorithms and Better Theory*, for it; the probabilities make
    it unbiased, the errors follow from $\mathcal S(x)_i^2=a^2$.
    """

    kind, code, unbiased = "stochastic-sign", 2, True
    scale: Literal["largest", "norm"] = "largest"

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, ("largest", "norm"))

    def amplitude(self, x: np.ndarray) -> np.float32:
        """a, in float32, never below what it should be."""
        exact = np.abs(x).max() if self.scale == "largest" else np.linalg.norm(x.astype(np.float64))
        return _round_up(float(exact))

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        a = self.amplitude(x)
        ones = 2 * rng.random(len(x), np.float32) < x / a + 1 if a else np.zeros(len(x), bool)
        return a.astype(_NUMBER).tobytes() + packing.bits(ones)

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        a = _numbers(payload[:4])[0]
        return (2 * packing.unbits(payload[4:], size).astype(np.float32) - 1) * a

    def payload_bytes(self, size: int) -> int:
        return 4 + packing.bit_bytes(size)

    def squared_error(self, x: np.ndarray) -> float:
        wide = np.asarray(x, np.float64)
        a = np.abs(wide).max(initial=0) if self.scale == "largest" else np.linalg.norm(wide)
        return max(0.0, float(len(wide) * a**2 - wide @ wide))

    def relative_error(self, size: int) -> float:
        return check_count("size", size) - 1.0


@dataclass(frozen=True)
class TernGrad(Compressor):
    r"""$\mathcal S(x)_i=s\,\mathrm{sign}(x_i)B_i$, $B_i\sim\mathrm{Bernoulli}(|x_i|/s)$, $s=\|x\|_\infty$.

    $$E[\mathcal S(x)]=x,\qquad E\|\mathcal S(x)-x\|^2=\sum_i|x_i|(s-|x_i|)\le\tfrac12(\sqrt d-1)\|x\|^2,$$

    with equality where one entry is s and the others are $s/(\sqrt d+1)$.

    Example:
        >>> codec = TernGrad()
        >>> codec.decode(codec.encode(np.array([2.0, 0.0, -2.0]), np.random.default_rng(0))).tolist()
        [2.0, 0.0, -2.0]
        >>> x = np.array([1.0, 1 / 3, 1 / 3, 1 / 3])
        >>> round(codec.squared_error(x) / (x @ x), 12) == codec.relative_error(4) == 0.5
        True

    Source: Wen et al. 2017, *TernGrad*, eq. (2) to (4); the constant: with v the other entries over s the ratio is
    $(d-1)(v-v^2)/(1+(d-1)v^2)$, whose derivative vanishes at $v=1/(\sqrt d+1)$.
    """

    kind, code, unbiased = "terngrad", 3, True

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        s = np.abs(x).max()
        kept = rng.random(len(x), np.float32) < np.abs(x) / s if s else np.zeros(len(x), bool)
        return s.astype(_NUMBER).tobytes() + packing.ternary((np.sign(x) * kept).astype(np.int8))

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        return packing.unternary(payload[4:], size) * _numbers(payload[:4])[0]

    def payload_bytes(self, size: int) -> int:
        return 4 + packing.ternary_bytes(size)

    def squared_error(self, x: np.ndarray) -> float:
        size = np.abs(np.asarray(x, np.float64))
        return float(size @ (size.max(initial=0) - size))

    def relative_error(self, size: int) -> float:
        return 0.5 * (math.sqrt(check_count("size", size)) - 1)


class _Sparse(Compressor):
    """Entries that are not sent are zero."""

    def sparse(self, where: np.ndarray, values: np.ndarray, size: int) -> bytes:
        """Positions and numbers."""
        return packing.positions(where, size) + values.astype(_NUMBER).tobytes()

    def fill(self, payload: bytes, count: int, size: int) -> np.ndarray:
        """The vector with so many entries that may differ from zero."""
        split = packing.position_bytes(count, size)
        try:
            where = packing.unpositions(payload[:split], count, size)
        except ValueError as why:
            raise FedboundsError(f"the message is damaged: {why}") from None
        found = np.zeros(size, np.float32)
        found[where] = _numbers(payload[split:])
        return found


@dataclass(frozen=True)
class TopK(_Sparse):
    r"""The $k=\lceil\text{share}\cdot d\rceil$ entries of largest magnitude, the others zero.

    $$\|\mathcal S(x)-x\|^2=\sum_{i\text{ left out}}x_i^2\le(1-k/d)\|x\|^2,$$

    with equality where all magnitudes are equal. Biased, not random. A position costs about $2+\log_2(d/k)$ bits.

    Args:
        share: of the entries that are sent, in (0, 1]; 0.03 in the comparison.

    Raises:
        FedboundsError: a share outside (0, 1].

    Example:
        >>> codec = TopK(0.5)
        >>> codec.decode(codec.encode(np.array([3.0, -1.0, 0.5, -4.0]), np.random.default_rng(0))).tolist()
        [3.0, 0.0, 0.0, -4.0]

    Source: Li et al. 2024, Section 5.1 (sparsity 97 %, without a formula; there the positions cost nothing).
    """

    kind, code, unbiased = "top-k", 4, False
    share: float = 0.03

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", _check_share("share", self.share))

    def count(self, size: int) -> int:
        """k."""
        return min(size, max(1, math.ceil(round(self.share * size, 9))))

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        k = self.count(len(x))
        where = np.sort(np.argpartition(-np.abs(x), k - 1)[:k])
        return self.sparse(where, x[where], len(x))

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        return self.fill(payload, self.count(size), size)

    def payload_bytes(self, size: int) -> int:
        return packing.position_bytes(self.count(size), size) + 4 * self.count(size)

    def squared_error(self, x: np.ndarray) -> float:
        left = np.sort(np.asarray(x, np.float64) ** 2)[: len(x) - self.count(len(x))]
        return float(left.sum())

    def relative_error(self, size: int) -> float:
        return 1 - self.count(check_count("size", size)) / size


@dataclass(frozen=True)
class Sparsified(_Sparse):
    r"""Each entry with probability $\pi$, then divided by it: $\mathcal S(x)_i=x_iB_i/\pi$.

    $$E[\mathcal S(x)]=x,\qquad E\|\mathcal S(x)-x\|^2=\Big(\frac1\pi-1\Big)\|x\|^2:$$

    an operator whose relative error is the same for every x. How many are sent is random; they are padded with nothing,
    so that the length of its messages differs.

    Args:
        probability: $\pi$ in [1e-8, 1].

    Raises:
        FedboundsError: a probability outside [1e-8, 1]: float32 does not hold what is divided by less.

    Example:
        >>> Sparsified(0.25).relative_error(10)
        3.0

    Source: Wangni et al. 2018, *Gradient sparsification for communication-efficient distributed optimization*, eq. (3),
    with equal probabilities.
    """

    kind, code, unbiased = "sparsified", 5, True
    probability: float = 0.5

    def __post_init__(self) -> None:
        probability = _check_share("probability", self.probability)
        if probability < 1e-8:
            raise FedboundsError(f"probability = {probability:g} must be in [1e-8, 1]")
        object.__setattr__(self, "probability", probability)

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        kept = rng.random(len(x)) < self.probability
        return packing.bits(kept) + (x[kept] / self.probability).astype(_NUMBER).tobytes()

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        split = packing.bit_bytes(size)
        if len(payload) < split:
            raise FedboundsError(f"the message carries {len(payload)} bytes, and {size} bits take {split}")
        kept = packing.unbits(payload[:split], size).astype(bool)
        if len(payload) != split + 4 * kept.sum():
            raise FedboundsError(f"the message carries {len(payload)} bytes for {int(kept.sum())} entries of {size}")
        found = np.zeros(size, np.float32)
        found[kept] = _numbers(payload[split:])
        return found

    def squared_error(self, x: np.ndarray) -> float:
        wide = np.asarray(x, np.float64)
        return (1 / self.probability - 1) * float(wide @ wide)

    def relative_error(self, size: int) -> float:
        return 1 / self.probability - 1


_LEVELS = {  # positive halves; Max 1960, *Quantizing for minimum distortion*, Table I
    1: (0.7979,),
    2: (0.4528, 1.510),
    3: (0.2451, 0.7560, 1.344, 2.152),
    4: (0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733),
}
Scale = Literal["least-error", "unbiased"]


@dataclass(frozen=True)
class Eden(Compressor):
    r"""A random rotation R, then b bits for each number: $\mathcal S(x)=\alpha R^{-1}Q(Rx)$.

    Q takes each entry of $\sqrt d\,Rx/\|x\|$ to the nearest of the $2^b$ levels that are best for a normal law, and

    $$\alpha=\frac{\|x\|^2}{\langle Rx,Q(Rx)\rangle}\ \text{(unbiased)},\qquad
      \alpha=\frac{\langle Rx,Q(Rx)\rangle}{\|Q(Rx)\|^2}\ \text{(least error)}.$$

    With b = 1 this is DRIVE: $Q(Rx)\propto\mathrm{sign}(Rx)$, so that $\alpha\,Q(Rx)$ is
    $\frac{\|x\|^2}{\|Rx\|_1}\mathrm{sign}(Rx)$ or $\frac{\|Rx\|_1}d\mathrm{sign}(Rx)$. The first is unbiased when R is
    uniform among rotations. Here R is a random signed Walsh-Hadamard transform, which is not: with d = 256, one large
    entry and all others $1/(\sqrt d+1)$ of it, the mean is off by a fifth of the norm (`check_compressor`). For the
    least error,

    $$\|\mathcal S(x)-x\|^2=\|x\|^2-\frac{\langle Rx,Q(Rx)\rangle^2}{\|Q(Rx)\|^2}$$

    whatever R. A vector is turned in pieces whose lengths are powers of two, each with a scale of its own.

    Args:
        bits: b, 1 to 4.
        scale: `"unbiased"` or `"least-error"`.

    Raises:
        FedboundsError: other bits or another scale.

    Example:
        >>> codec = Eden(bits=4)
        >>> x = np.random.default_rng(0).standard_normal(8192)
        >>> error = codec.decode(codec.encode(x, np.random.default_rng(1))) - x
        >>> float(error @ error / (x @ x)) < 0.012, round(8 * codec.message_bytes(8192) / 8192, 2)
        (True, 4.03)

    Source: Vargaftik et al. 2022, *EDEN*, Algorithm 1 and Section 3; Vargaftik et al. 2021, *DRIVE*, Algorithm 1 and
    Theorems 2 and 4; Li et al. 2024 compare with both without a formula.
    """

    kind, code, unbiased = "eden", 6, False
    bits: int = 1
    scale: Scale = "unbiased"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", check_count("bits", self.bits, high=max(_LEVELS)))
        check_choice("scale", self.scale, get_args(Scale))

    @cached_property
    def _levels(self) -> np.ndarray:
        half = np.array(_LEVELS[self.bits], np.float32)
        return np.concatenate([-half[::-1], half])

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        seed = int(rng.integers(LARGEST_SEED))
        turned, scales, numbers = rotate(x, seed), [], []
        for place in pieces(len(x)):
            own = turned[place].astype(np.float64)
            norm = float(np.linalg.norm(own))
            level = np.searchsorted(
                (self._levels[1:] + self._levels[:-1]) / 2, own * (len(own) ** 0.5 / norm) if norm else own
            )
            means = self._levels[level].astype(np.float64)
            along = float(own @ means)
            if self.scale == "unbiased":
                scales.append(norm**2 / along if along else 0.0)
            else:
                scales.append(along / float(means @ means))
            numbers.append(level.astype(np.uint8))
        heads = np.array([seed], "<u8").tobytes() + np.array(scales, _NUMBER).tobytes()
        return heads + packing.words(np.concatenate(numbers), self.bits)

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        places = pieces(size)
        split = 8 + 4 * len(places)
        seed, scales = int(np.frombuffer(payload[:8], "<u8")[0]), _numbers(payload[8:split])
        turned = self._levels[packing.unwords(payload[split:], places[-1].stop, self.bits)]
        for place, scale in zip(places, scales, strict=True):
            turned[place] *= scale
        return rotate_back(turned, seed, size)

    def payload_bytes(self, size: int) -> int:
        places = pieces(size)
        return 8 + 4 * len(places) + packing.bit_bytes(places[-1].stop, self.bits)


@dataclass(frozen=True)
class Drive(Eden):
    r"""`Eden` with one bit: $\frac{\|Rx\|_1}d$ or $\frac{\|x\|^2}{\|Rx\|_1}$ times $R^{-1}\mathrm{sign}(Rx)$.

    Example:
        >>> x = np.random.default_rng(0).standard_normal(8192)
        >>> error = Drive().decode(Drive().encode(x, np.random.default_rng(1))) - x
        >>> round(float(error @ error / (x @ x)), 1), round(1 - 2 / math.pi, 1)
        (0.4, 0.4)

    Source: Vargaftik et al. 2021, *DRIVE*, Algorithm 1.
    """

    kind, code = "drive", 7
    bits: int = field(init=False, default=1)
    scale: Scale = "least-error"

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "scale": self.scale}


@dataclass(frozen=True)
class Partly(Compressor):
    r"""All numbers but the last compressed, and those as they are, 32 bits each, in one message.

    For the numbers of batch normalization, which are few and must be exact.

    Args:
        compressor: of the others.
        whole: how many are sent as they are, at least 1.

    Source: Li et al. 2024, the authors' public code.
    """

    kind, code, unbiased = "partly", 8, False
    compressor: Compressor
    whole: int

    def __post_init__(self) -> None:
        check_count("whole", self.whole)
        if not isinstance(self.compressor, Compressor):
            raise FedboundsError(f"compressor = {quote(self.compressor)} must be a compressor, such as TopK(0.03)")
        object.__setattr__(self, "unbiased", self.compressor.unbiased)

    def few(self, size: int) -> int:
        """How many of d numbers are compressed."""
        if size <= self.whole:
            raise FedboundsError(f"{size} numbers, of which {self.whole} are sent as they are: none to compress")
        return size - self.whole

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "compressor": self.compressor.spec(), "whole": self.whole}

    def append_numbers(self, message: bytes, numbers: np.ndarray) -> bytes:
        """A message of the compressor and the numbers (whole,) in one message."""
        numbers = check_update(numbers)
        if len(numbers) != self.whole:
            raise FedboundsError(f"{len(numbers)} numbers to send as they are, and {self.whole} were agreed on")
        size, payload = unseal(message, self.compressor.code, self.compressor.agreed)
        return seal(self.code, size + self.whole, payload + numbers.astype(_NUMBER).tobytes(), self.agreed)

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        few = self.few(len(x))
        return self.compressor.pack(x[:few], rng) + x[few:].astype(_NUMBER).tobytes()

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        split = len(payload) - 4 * self.whole
        if split < 0:
            raise FedboundsError(f"the message carries {len(payload)} bytes for {self.whole} numbers and more")
        few = self.compressor.unpack(payload[:split], self.few(size))
        return np.concatenate([few, _numbers(payload[split:])])

    def payload_bytes(self, size: int) -> int | None:
        few = self.compressor.payload_bytes(self.few(size))
        return None if few is None else few + 4 * self.whole

    def squared_error(self, x: np.ndarray) -> float | None:
        return self.compressor.squared_error(x[: self.few(len(x))])

    def relative_error(self, size: int) -> float | None:
        return self.compressor.relative_error(self.few(size))


def _round_up(value: float) -> np.float32:
    """The least float32 that is not below the value."""
    found = np.float32(value)
    return found if float(found) >= value else np.nextafter(found, np.float32(np.inf))


@dataclass(frozen=True)
class Bits(Compressor):
    """Zeros and ones as they are, one bit each."""

    kind, code, unbiased = "bits", 17, False

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        if not np.isin(x, (0, 1)).all():
            raise FedboundsError("bits are zeros and ones: nothing else can be sent as such")
        return packing.bits(x == 1)

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        return packing.unbits(payload, size).astype(np.float32)

    def payload_bytes(self, size: int) -> int:
        return packing.bit_bytes(size)

    def squared_error(self, x: np.ndarray) -> float:
        return 0.0


COMPRESSORS: Registry[Compressor] = Registry(
    "compressor",
    {each.kind: each for each in (FullPrecision, StochasticSign, TernGrad, TopK, Sparsified, Drive, Eden)},
)


def compressor_from_spec(spec: object, kinds: Registry[Compressor] = COMPRESSORS) -> Compressor:
    """The compressor that a table describes: its `kind`, one of `kinds`, and what both sides agree on."""
    return spec if isinstance(spec, Compressor) else kinds.build(spec)
