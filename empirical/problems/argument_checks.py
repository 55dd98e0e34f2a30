"""Where a user's numbers become checked numbers: the only place at which problems validate anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import is_finite, quote
from fedbounds.bounds.theory.symbols import NONNEGATIVE, Domain


def real(name: str, value: Any, domain: Domain = NONNEGATIVE) -> float:
    """The number, if it is one and lies in its domain."""
    if not is_finite(value) or not domain.contains(float(value)):
        what = "an integer" if domain.integer else "a number"
        raise FedboundsError(f"{name} = {quote(value)} must be {what} in {str(domain).removeprefix('integers in ')}")
    return float(value)


def array(name: str, value: Any, shape: tuple[int | None, ...] | None = None) -> Tensor:
    """A float64 tensor on the processor, finite throughout and of the given shape (None: any length)."""
    try:
        numbers = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        if numbers.dtype.kind not in "fiu":
            raise ValueError
        numbers = numbers.astype(np.float64)
    except (ValueError, TypeError):
        raise FedboundsError(f"{name} must be an array of numbers with rows of equal length") from None
    if shape is not None and not _fits(numbers.shape, shape):
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ("," * (len(shape) == 1)) + ")"
        raise FedboundsError(f"{name} has shape {numbers.shape}, must be {wanted}")
    if numbers.size == 0:
        raise FedboundsError(f"{name} is empty (shape {numbers.shape})")
    if not np.isfinite(numbers).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise FedboundsError(f"{name}{list(where)} = {numbers[where]} is not a finite number")
    return torch.from_numpy(numbers.copy())


def start_point(x0: Any, dimension: int, device: torch.device, name: str = "x0") -> Tensor:
    """The starting point `(d,)` on a device, zero if not given."""
    start = torch.zeros(dimension, dtype=torch.float64) if x0 is None else array(name, x0, (dimension,))
    return start.to(device)


def _fits(have: tuple[int, ...], want: tuple[int | None, ...]) -> bool:
    return len(have) == len(want) and all(w in (None, h) for h, w in zip(have, want, strict=True))
