"""What comes in from Python, checked once: tables of constants, lists of names, ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import as_real, quote
from fedbounds.bounds.theory.symbols import Constant, Notation

MOST_NAMES = 10_000  # in one list


def names_of(what: str, names: str | Iterable[str] | None) -> tuple[str, ...]:
    """A list of names; one string is one name, or several with commas.

    Example:
        >>> names_of("assume", "all"), names_of("over", "gamma,eta"), names_of("over", ["gamma"])
        (('all',), ('gamma', 'eta'), ('gamma',))
    """
    if isinstance(names, str):
        return tuple(part.strip() for part in names.split(",") if part.strip())
    try:
        listed = list(islice(names, MOST_NAMES + 1)) if isinstance(names, Iterable) else [names]
    except TypeError:  # tensors and arrays of one number say that they are iterable, and are not
        listed = [names]
    if len(listed) > MOST_NAMES or not all(isinstance(name, str) for name in listed):
        raise FedboundsError(f"{what} = {quote(names)} must be names, as ['gamma', 'eta']")
    return tuple(str(name) for name in listed)


def check_constants(constants: object) -> None:
    """Refuse what is no table of constants.

    Example:
        >>> check_constants(None)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: constants = None must be a table of symbols and values, as {'L': 1, 'T':
        100}
    """
    if not isinstance(constants, Mapping) or not all(isinstance(name, str) for name in constants):
        what = quote(constants)
        raise FedboundsError(
            f"constants = {what} must be a table of symbols and values, as {{'L': 1, 'T': 100}}"
            + ("; give dict(constants)" if hasattr(constants, "items") else "")
        )


def check_settings(notation: Notation, given: Mapping[str, Constant]) -> None:
    """Refuse settings of different lengths.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> notation = load("fedau/theorem-2").notation
        >>> check_settings(notation, {"L": Constant(np.ones(3), "given"), "F": Constant(np.ones(2), "given")})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: the settings differ in shape: L has (3,), F has (2,)
    """
    shapes = {n: np.shape(c.value)[:-1] if notation[n].shape else np.shape(c.value) for n, c in given.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} has {shape}" for name, shape in shapes.items() if shape)
        raise FedboundsError(f"the settings differ in shape: {listed}") from None


def check_ranges(within: Any) -> dict[str, tuple[float, float]]:
    """Ranges as pairs of numbers, by name.

    Example:
        >>> check_ranges({"eta": (1, 100)}), check_ranges(None)
        ({'eta': (1.0, 100.0)}, {})
        >>> check_ranges({"eta": "1:100"})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: within: eta = '1:100' must be a pair of numbers, as {'eta': (1, 100)}
    """
    if within is None:
        return {}
    if not isinstance(within, Mapping):
        raise FedboundsError(f"within = {quote(within)} must be a table of ranges, as {{'eta': (1, 100)}}")
    found = {}
    for name, ends in within.items():
        try:
            low, high = as_real(name, ends).tolist()
        except (FedboundsError, TypeError, ValueError):
            hint = f"as {{{name!r}: (1, 100)}}"
            raise FedboundsError(f"within: {name} = {quote(ends)} must be a pair of numbers, {hint}") from None
        found[name] = (low, high)
    return found
