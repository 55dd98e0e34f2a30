"""Minimax problems from plain dictionaries, as they stand in a specification file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from bounds.errors import FedboundsError, unknown_name
from empirical.problems.minimax import Minimax
from empirical.problems.minimax_bounded import BoundedMinimax, OnePointMinimax
from empirical.problems.minimax_quadratic import QuadraticMinimax, ScaledMinimax, random_quadratic_minimax

# kind -> its maker, and the maker of a random instance, taken unless a key belongs to the first alone
_KINDS: Mapping[str, tuple[Callable[..., Minimax], ...]] = {
    "minimax-quadratic": (QuadraticMinimax, random_quadratic_minimax),
    "minimax-scaled": (ScaledMinimax,),
    "minimax-bounded": (BoundedMinimax,),
    "minimax-one-point": (OnePointMinimax,),
}


def minimax_from_spec(spec: Mapping[str, Any]) -> Minimax:
    """The minimax problem that a dictionary describes; `kind` says which, the other keys are its arguments.

    They are kept apart from the problems of `problem_from_spec`, because an algorithm that minimises would descend
    along both blocks.

    - `minimax-quadratic`: `descent_hessian coupling concavity slopes ascent_slopes ripple weights noise growth x0 y0`,
      or a random instance from `clients descent_dimension ascent_dimension heterogeneity condition ripple noise growth
      spread seed`; see `QuadraticMinimax` and `random_quadratic_minimax`.
    - `minimax-scaled`: `scales descent_hessian coupling concavity slope ascent_slope ripple weights noise growth x0
      y0`; see `ScaledMinimax`.
    - `minimax-bounded`: `slopes ascent_slopes ripple depth bend weights noise growth x0 y0`; see `BoundedMinimax`.
    - `minimax-one-point`: `slopes ripple depth bend weights noise growth x0 y0`; see `OnePointMinimax`.

    Raises:
        FedboundsError: an unknown kind or key (with the nearest names), a missing one, a value outside its range.

    Example:
        >>> spec = {"kind": "minimax-quadratic", "clients": 4, "descent_dimension": 3, "ascent_dimension": 2}
        >>> minimax_from_spec(spec).dimension
        5
        >>> minimax_from_spec(spec | {"heterogenity": 1})
        Traceback (most recent call last):
            ...
        bounds.errors.FedboundsError: unknown key of problem 'minimax-quadratic': 'heterogenity'; did you mean ...
    """
    if not isinstance(spec, Mapping) or "kind" not in spec:
        raise FedboundsError(f"a minimax problem needs a kind: one of {', '.join(_KINDS)}")
    kind = spec["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise unknown_name("minimax problem kind", str(kind), _KINDS)
    explicit, *random = _KINDS[kind]
    own = {key for key in _keys(explicit) if not any(key in _keys(maker) for maker in random)}
    make = random[0] if random and not own & set(spec) else explicit
    keys = _keys(make)
    for key in spec:
        if key != "kind" and key not in keys:
            raise unknown_name(f"key of problem {kind!r}:", str(key), keys)
    lacking = [key for key, needed in keys.items() if needed and key not in spec]
    if lacking:
        raise FedboundsError(f"problem {kind!r} lacks {', '.join(lacking)}")
    return make(**{key: value for key, value in spec.items() if key != "kind"})


def _keys(make: Callable[..., Minimax]) -> dict[str, bool]:
    """The keys of a maker, and whether it cannot do without."""
    parameters = inspect.signature(make).parameters
    return {name: p.default is p.empty for name, p in parameters.items() if name != "device"}
