r"""Masked random noise: an update as one bit for each parameter and a seed.

Client and server make the same noise n of a seed; the client chooses the bits m, and its update *is* $n\odot m$.

Source: Li et al. 2024, *Masked Random Noise for Communication-Efficient Federated Learning*, eqs. (5) to (8).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar, get_args

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count
from fedbounds.empirical.algorithms.messages import packing
from fedbounds.empirical.algorithms.messages.compressor import Compressor
from fedbounds.empirical.algorithms.messages.envelope import seal
from fedbounds.empirical.algorithms.messages.noise import LARGEST_SEED, Law, Noise

Masks = Literal["binary", "signed"]
Numbers = TypeVar("Numbers", np.ndarray, torch.Tensor)


def chosen(u: Numbers, n: Numbers, chance: Numbers, masks: Masks) -> Numbers:
    r"""Where the mask is 1, booleans: with probability clip(u/n, 0, 1), of signed masks clip((u + n)/2n, 0, 1).

    Source: Li et al. 2024, eqs. (6) and (7).
    """
    ratio = u / n
    return chance < (ratio if masks == "binary" else (ratio + 1) / 2)


def clipped(u: torch.Tensor, n: torch.Tensor, masks: Masks) -> torch.Tensor:
    r"""$\bar u$, the mean of masked noise given n: u cut off at n, of signed masks at $\pm n$, of binary at 0 and n.

    Source: Li et al. 2024, eq. (10).
    """
    if masks == "signed":
        return torch.clamp(u, -n.abs(), n.abs())
    return torch.clamp(u, n.clamp(max=0), n.clamp(min=0))


@dataclass(frozen=True)
class MaskedNoise(Compressor):
    r"""$\mathcal S(x)=n\odot m$: the noise n of a seed, and one random bit for each number.

    | masks | $m_i=1$ with probability | else |
    |---|---|---|
    | `signed` | $\mathrm{clip}\big(\frac{x_i+n_i}{2n_i},0,1\big)$ | $-1$ |
    | `binary` | $\mathrm{clip}\big(\frac{x_i}{n_i},0,1\big)$ | $0$ |

    Given n its mean is x cut off at n; so it is unbiased only with signed masks and Bernoulli noise, and there for
    $|x_i|\le\alpha$. Its error does not vanish with x: *there is no q* with $E\|\mathcal S(x)-x\|^2\le q^2\|x\|^2$.
    A message holds the d bits, the seed's 64, and 128 of the envelope.

    Args:
        law: of the noise, `"uniform"`, `"gaussian"` or `"bernoulli"`.
        amplitude: $\alpha$, in the unit of the update; 0.01 for binary and 0.005 for signed masks in the paper.
        masks: `"signed"` or `"binary"`.

    Raises:
        FedboundsError: an unknown law or mask, an amplitude outside (0, inf).

    Example:
        >>> codec = MaskedNoise("bernoulli", 0.5, "signed")
        >>> message = codec.encode(np.array([0.5, -0.5, 0.5]), np.random.default_rng(0))
        >>> codec.decode(message).tolist()
        [0.5, -0.5, 0.5]
        >>> codec.relative_error(3) is None, codec.squared_error(np.zeros(3))
        (True, 0.75)

    Source: Li et al. 2024, eqs. (6) to (8); the errors: of signed masks $n^2-x^2$ where $|x|\le|n|$, of binary ones
    $|x|(|n|-|x|)$ where the signs agree and $x^2$ where not, $(|x|-|n|)^2$ beyond, integrated over the law.
    """

    kind, code, unbiased = "masked-noise", 16, False
    law: Law = "uniform"
    amplitude: float = 0.01
    masks: Masks = "signed"

    def __post_init__(self) -> None:
        check_choice("kind of masks", self.masks, get_args(Masks))
        object.__setattr__(self, "amplitude", self.source.amplitude)

    @cached_property
    def source(self) -> Noise:
        """Where the noise comes from."""
        return Noise(self.law, self.amplitude)

    def noise(self, seed: int, size: int) -> np.ndarray:
        """n, float32 (size,)."""
        return self.source.draw(seed, size)

    def mask(self, x: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Random bits for an update, booleans (d,); False stands for 0, of signed masks for -1.

        Raises:
            FedboundsError: two shapes, an update or noise with numbers that are not finite, or noise with zeros.
        """
        if np.shape(x) != np.shape(n):
            raise FedboundsError(f"the update has shape {np.shape(x)}, and the noise {np.shape(n)}")
        if not (np.isfinite(n).all() and np.all(n)):
            raise FedboundsError("noise must be finite and nowhere zero: a number masked with zero cannot be sent")
        if not np.isfinite(x).all():
            place = int(np.argmin(np.isfinite(x)))
            raise FedboundsError(f"update[{place}] = {x[place]:g} is not a finite number")
        with np.errstate(over="ignore"):  # far beyond the noise the mask is certain
            return chosen(x, n, rng.random(len(x), np.float32), self.masks)

    def encode_mask(self, mask: np.ndarray, seed: int) -> bytes:
        """The message for bits (d,) that were found in training, and the seed of the noise they were found for.

        Raises:
            FedboundsError: no booleans, none of them, or a seed outside [0, 2^63).
        """
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.ndim != 1 or not len(mask):
            raise FedboundsError("a mask is one vector of booleans, and not empty")
        return seal(self.code, len(mask), self._payload(mask, seed), self.agreed)

    def _payload(self, mask: np.ndarray, seed: int) -> bytes:
        return check_count("seed", seed, low=0, high=LARGEST_SEED).to_bytes(8, "little") + packing.bits(mask)

    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        seed = int(rng.integers(LARGEST_SEED))
        return self._payload(self.mask(x, self.noise(seed, len(x)), rng), seed)

    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        seed, bits = int.from_bytes(payload[:8], "little"), packing.unbits(payload[8:], size).view(np.int8)
        found = self.noise(seed, size)
        return np.multiply(found, 2 * bits - 1 if self.masks == "signed" else bits, out=found)

    def payload_bytes(self, size: int) -> int:
        return 8 + packing.bit_bytes(size)

    def squared_error(self, x: np.ndarray) -> float:
        size, a = np.abs(np.asarray(x, np.float64)), float(np.float32(self.amplitude))
        same = {"bernoulli": _bernoulli_error, "uniform": _uniform_error, "gaussian": _gaussian_error}[self.law]
        if self.masks == "signed":
            return float(same(size, a, True).sum())
        return float((same(size, a, False) + size**2).sum() / 2)  # half of the noise has the other sign

    def relative_error(self, size: int) -> None:
        return None


def _bernoulli_error(x: np.ndarray, a: float, signed: bool) -> np.ndarray:
    """Of each number of size x, for noise of its sign (of signed masks: of either)."""
    return np.where(x > a, (x - a) ** 2, a**2 - x**2 if signed else x * (a - x))


def _uniform_error(x: np.ndarray, a: float, signed: bool) -> np.ndarray:
    inside = a**2 / 3 - x**2 + x**3 / a if signed else a * x / 2 - x**2 + 5 * x**3 / (6 * a)
    return np.where(x > a, (x**3 - np.maximum(x - a, 0) ** 3) / (3 * a), inside)


def _gaussian_error(x: np.ndarray, a: float, signed: bool) -> np.ndarray:
    from scipy.special import erf  # takes its time

    below = erf(x / (a * math.sqrt(2)))
    cut = 2 * x * a * math.sqrt(2 / math.pi) * -np.expm1(-((x / a) ** 2) / 2)
    return a**2 * (1 if signed else below) + x**2 * (2 * below - 1) - cut
