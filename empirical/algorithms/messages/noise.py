"""Noise from a seed: a client sends 64 bits, and the server makes the same numbers on any machine and device.

The generator is the finalizer of splitmix64 applied to a counter. Numbers are made of its words only by operations that
IEEE 754 defines to the last bit. None is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.runtime.counter_rng import raw_bits

Law = Literal["uniform", "gaussian", "bernoulli"]
LARGEST_SEED = 2**63 - 1
_PURPOSE, _AT_ONCE = 101, 2**17  # a multiple of 64, small enough for a cache

# Wichura 1988, Algorithm AS 241 (PPND16): the normal quantile by quotients of polynomials, lowest power first
_MIDDLE = (
    (3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
     45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
     21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
)  # fmt: skip
_NEAR = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 0.241780725177450611770, 0.0227238449892691845833, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
     0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip


@dataclass(frozen=True)
class Noise:
    r"""Independent numbers, symmetric about zero and never zero.

    | law | numbers |
    |---|---|
    | `uniform` | $\alpha(2k+1)2^{-23}$ for equally likely whole $k$ in $[-2^{22},2^{22})$ |
    | `gaussian` | normal with standard deviation $\alpha$, cut off at $5.29\,\alpha$ |
    | `bernoulli` | $\pm\alpha$ |

    Raises:
        FedboundsError: an unknown law, or an amplitude that is not a number in (0, inf) or too small for float32.

    Example:
        >>> noise = Noise("uniform", 0.01)
        >>> noise.draw(7, 3).tolist() == noise.draw(7, 5)[:3].tolist()
        True
        >>> set(Noise("bernoulli", 0.5).draw(1, 100).tolist()) == {-0.5, 0.5}
        True

    Source: Li et al. 2024, Section 3.2 (the laws) and Section 5 (amplitudes); Steele, Lea & Flood 2014, Figure 15.
    """

    law: Law  # one of these
    amplitude: float  # $\alpha>0$, in the unit of the update

    def __post_init__(self) -> None:
        check_choice("law of noise", self.law, get_args(Law))
        amplitude = check_positive("amplitude", self.amplitude)
        if not 1e-30 <= amplitude <= 1e30:
            raise FedboundsError(f"amplitude = {amplitude:g} must be in [1e-30, 1e30]: float32 holds no other noise")
        object.__setattr__(self, "amplitude", amplitude)

    def draw(self, seed: int, size: int) -> np.ndarray:
        """The noise of a seed, float32 (size,)."""
        word = torch.tensor(check_count("seed", seed, low=0, high=LARGEST_SEED))
        return self.of(word[None], check_count("size", size))[0].numpy()

    def of(self, seeds: Tensor, size: int) -> Tensor:
        """The noise of many seeds, int64 of any shape, on their device: float32 (*seeds.shape, size)."""
        each, make = {"uniform": (2, self._uniform), "gaussian": (2, self._gaussian), "bernoulli": (64, self._signs)}[
            self.law
        ]
        found = torch.empty(*seeds.shape, size, dtype=torch.float32, device=seeds.device)
        for start in range(0, size, _AT_ONCE):
            some = found[..., start : start + _AT_ONCE]
            count = -(-some.shape[-1] // each)
            made = make(raw_bits(seeds, _PURPOSE, count, start // each))
            some.copy_(made.flatten(-2)[..., : some.shape[-1]])
        return found

    def _signs(self, bits: Tensor) -> Tensor:
        alpha = float(np.float32(self.amplitude))
        ones = bits.unsqueeze(-1) >> torch.arange(64, device=bits.device) & 1
        return torch.where(ones == 1, alpha, -alpha)

    def _uniform(self, bits: Tensor) -> Tensor:
        odd = _odd(bits).to(torch.float32)
        return odd * float(np.float32(self.amplitude) * np.float32(2.0**-23))

    def _gaussian(self, bits: Tensor) -> Tensor:
        return normal_quantile(_odd(bits).double() * 2.0**-24).mul_(self.amplitude).to(torch.float32)


def _odd(bits: Tensor) -> Tensor:
    """Two odd numbers in (-2^23, 2^23) for each 64 bits, (..., 2)."""
    halves = torch.stack([bits >> 9, bits >> 41], -1) & (2**23 - 1)
    return 2 * halves + (1 - 2**23)


def normal_quantile(q: Tensor) -> Tensor:
    r"""The x with $\Phi(x)=q+\frac12$, for $10^{-10}<\frac12-|q|$, float64, by operations that are exact everywhere.

    Source: Wichura 1988, Algorithm AS 241.
    """
    r = 0.180625 - q * q
    middle = q * _quotient(_MIDDLE, r)
    tail = 0.5 - q.abs()
    far = torch.sqrt(-_logarithm(tail)) - 1.6
    outer = torch.copysign(_quotient(_NEAR, far), q)
    return torch.where(q.abs() <= 0.425, middle, outer)


def _quotient(of: tuple[tuple[float, ...], tuple[float, ...]], r: Tensor) -> Tensor:
    top, bottom = (_polynomial(coefficients, r) for coefficients in of)
    return top / bottom


def _polynomial(coefficients: tuple[float, ...], r: Tensor) -> Tensor:
    total = torch.full_like(r, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * r
        total = total + coefficient
    return total


def _logarithm(x: Tensor) -> Tensor:
    """The logarithm of normal positive numbers, by the series of the inverse hyperbolic tangent."""
    mantissa, exponent = torch.frexp(x)
    low = mantissa < 0.5**0.5
    mantissa = torch.where(low, mantissa + mantissa, mantissa)
    exponent = torch.where(low, exponent - 1, exponent)
    s = (mantissa - 1) / (mantissa + 1)
    return s * _polynomial(tuple(2 / (2 * k + 1) for k in range(11)), s * s) + exponent.double() * 0.6931471805599453
