"""Checks at the border: the user's numbers become ints, floats and arrays, or one line says what is wrong."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from numbers import Number
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError, unknown_name

LARGEST_COUNT = 2**63 - 1  # what numpy and TOML call an integer
BOXED = 64  # bytes of a number that is an object of its own


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a real number; booleans and text are not.

    Example:
        >>> is_number(1), is_number(True), is_number("1")
        (True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.timedelta64)


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether the value is a real number that a float can hold.

    Example:
        >>> is_finite(1e308), is_finite(float("inf")), is_finite(10**400)
        (True, False, False)
    """
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:
        return False


def read_number(text: str) -> float:
    """The number that a cell of a file holds; unlike `float`, not 10 for "1_0", which is no number elsewhere.

    Example:
        >>> read_number(" 1e-3 ")
        0.001
    """
    if "_" in text:
        raise ValueError(text)
    return float(text)


def as_real(name: str, value: object, booleans: bool = False) -> np.ndarray:
    """The value as an array of floats, if it is a real number or an array of them.

    Tensors are detached. Complex numbers, masked entries, dates and durations, text, bytes and, unless asked for,
    booleans are no real numbers, although numpy converts them.

    Example:
        >>> as_real("L", [1, 2]).tolist()
        [1.0, 2.0]
        >>> as_real("L", 1 + 2j)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: L = (1+2j) must be a real number or an array of real numbers, not
        complex
    """
    kinds = {"b": "booleans", "c": "complex", "m": "durations", "M": "dates", "S": "bytes", "U": "text", "V": "records"}
    found = ""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | list | tuple):  # also one that holds nothing
        check_memory(f"{name} = {quote(value)}", BOXED * _length(value))
    detach: Any = getattr(value, "detach", None)
    try:
        given: Any = value if detach is None else detach().cpu().double().numpy()
        if isinstance(given, bytearray | memoryview):
            given = bytes(given)
        raw = np.asanyarray(given)
        if np.any(getattr(raw, "mask", False)):  # of a masked array, whose module is not imported for this
            found = "masked entries"
        elif raw.dtype.kind in "iuf" or (booleans and raw.dtype.kind == "b"):
            return np.asarray(raw, dtype=float)
        elif raw.dtype.kind == "O":  # fractions, decimals, whole numbers beyond 64 bits
            wrong = [type(x).__name__ for x in raw.ravel() if not _is_real(x)]
            if not wrong:
                return np.asarray(raw, dtype=float)
            found = wrong[0]
        found = found or kinds.get(raw.dtype.kind, raw.dtype.name)
    except OverflowError:
        found = "numbers above 1.8e308"
    except MemoryError:
        found = "more numbers than fit into memory"
    except (TypeError, ValueError, RuntimeError, AttributeError):
        found = type(value).__name__
    raise FedboundsError(f"{name} = {quote(value)} must be a real number or an array of real numbers, not {found}")


def _length(value: Sequence[object]) -> int:
    """How many entries there are; of a range that may be more than `len` can say."""
    try:
        return len(value)
    except OverflowError:
        return LARGEST_COUNT


def _is_real(value: object) -> bool:
    """Whether an object is one real number of some exact or decimal kind."""
    if isinstance(value, Number | np.generic) and not isinstance(value, bool | np.bool_ | complex | np.complexfloating):
        return not isinstance(value, np.datetime64 | np.timedelta64)
    return getattr(value, "is_real", None) is True and getattr(value, "is_number", False) is True  # of sympy


def check_count(name: str, value: object, low: int = 1, high: int | None = None, why: str = "") -> int:
    """The value as an int, or an error that quotes it with the legal range; 10.0 is whole, True is not."""
    most = LARGEST_COUNT if high is None else high
    if not is_finite(value) or value != int(value) or not low <= value <= most:
        too_large = is_number(value) and value > most
        legal = f">= {low}" if high is None and not too_large else f"in [{low}, {most}]"
        raise FedboundsError(f"{name} = {quote(value)} must be an integer {legal}" + (f": {why}" if why else ""))
    return int(value)


def check_memory(what: str, size: int) -> None:
    """Refuse what this machine cannot hold, before any of it is made.

    Args:
        what: what would be made, with the numbers that the user gave.
        size: bytes needed at once, about.

    Raises:
        FedboundsError: it is more than the machine's memory.

    Example:
        >>> check_memory("4 clients in 2 dimensions", 64)
        >>> check_memory("clients = 1125899906842624", 2**53)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: clients = 1125899906842624 needs about 8.39e+06 GiB of memory; ...
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise FedboundsError(
            f"{what} needs about {size / 2**30:.3g} GiB of memory; this machine has {memory / 2**30:.3g} GiB"
        )


def check_number(name: str, value: object, low: float = -math.inf, high: float = math.inf, why: str = "") -> float:
    """The value as a finite float in [low, high], or an error that quotes it with the legal range."""
    if not is_finite(value) or not low <= value <= high:
        legal = f"{'[' if math.isfinite(low) else '('}{low:g}, {high:g}{']' if math.isfinite(high) else ')'}"
        raise FedboundsError(f"{name} = {quote(value)} must be a number in {legal}" + (f": {why}" if why else ""))
    return float(value)


def check_choice(what: str, value: object, known: Sequence[str]) -> str:
    """The value, if it is one of the names that are known.

    Example:
        >>> check_choice("law", "uniform", ("uniform", "gaussian"))
        'uniform'
    """
    if not isinstance(value, str) or value not in known:
        raise unknown_name(what, str(value), known)
    return value


def check_flag(name: str, value: object) -> bool:
    """The value as a bool, or an error that quotes it."""
    if not isinstance(value, bool | np.bool_):
        raise FedboundsError(f"{name} = {quote(value)} must be true or false")
    return bool(value)


def check_arguments(name: str, init: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that the `__init__` of a class does not take, with the nearest names.

    An object without any argument is not checked: copies are made so.

    Example:
        >>> class Ball:
        ...     def __init__(self, radius, color="red"): ...
        >>> check_arguments("Ball", Ball.__init__, (), {"radios": 1})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: unknown argument of Ball 'radios'; did you mean radius?
    """
    known = _parameters(init)
    kinds = {each.kind for each in known}
    if not (args or kwargs) or inspect.Parameter.VAR_KEYWORD in kinds:
        return
    names = [each.name for each in known if each.kind is not each.VAR_POSITIONAL]
    for key in kwargs:
        if key not in names:
            raise unknown_name(f"argument of {name}", key, names)
    places = [each.name for each in known if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(args) > len(places) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise FedboundsError(
            f"{name} takes {len(places)} arguments by position ({', '.join(places)}), not {len(args)}; give the others "
            "by name"
        )
    given = {*places[: len(args)], *kwargs}
    if twice := sorted({*places[: len(args)]} & kwargs.keys()):
        raise FedboundsError(f"{name} has {twice[0]} twice, by position and by name; give it once")
    lacking = [each.name for each in known if each.name in names and each.default is each.empty]
    if lacking := [one for one in lacking if one not in given]:
        raise FedboundsError(f"{name} needs {', '.join(lacking)}")


@lru_cache(maxsize=256)
def _parameters(init: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of an `__init__` but the first."""
    return list(inspect.signature(init).parameters.values())[1:]


def check_matrix(name: str, values: ArrayLike, shape: str) -> np.ndarray:
    """The values as a non-empty, finite float array with two axes, or an error that names the bad entry.

    Example:
        >>> check_matrix("weights q", [1.0, 2.0], "(rounds, clients)")
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: weights q has shape (2,); expected (rounds, clients)
    """
    return _check_array(name, values, shape, 2)


def check_vector(name: str, values: ArrayLike, length: int | None = None) -> np.ndarray:
    """The values as a non-empty, finite float array with one axis, or an error that names the bad entry.

    Example:
        >>> check_vector("mean", [0.5, 0.5], 3)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: mean has shape (2,); expected (3,)
    """
    array = _check_array(name, values, "(n,)" if length is None else f"({length},)", 1)
    if length is not None and len(array) != length:
        raise FedboundsError(f"{name} has shape {array.shape}; expected ({length},)")
    return array


def _check_array(name: str, values: ArrayLike, shape: str, axes: int) -> np.ndarray:
    try:
        array = as_real(name, values, booleans=True)
    except FedboundsError:
        raise FedboundsError(f"{name} must be numbers in an array of shape {shape}; got {quote(values)}") from None
    if array.ndim != axes or not array.size:
        raise FedboundsError(f"{name} has shape {array.shape}; expected {shape}")
    if not np.isfinite(array).all():
        where = tuple(np.argwhere(~np.isfinite(array))[0])
        raise FedboundsError(f"{name}[{', '.join(map(str, where))}] = {array[where]} is not finite")
    return array


def quote(value: object) -> str:
    """The value as it goes into an error: short, on one line.

    Example:
        >>> quote(0.1 + 0.2), quote("ten")
        ('0.3', "'ten'")
    """
    if is_number(value):
        text = f"{value:.12g}" if isinstance(value, float | np.floating) else str(value)
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_list(name: str, values: object) -> list[Any]:
    """The values of a list, tuple, range, set or array, or an error that quotes them."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise FedboundsError(f"{name} = {quote(values)} must be a list")
    return [value.item() if isinstance(value, np.generic) else value for value in values]
