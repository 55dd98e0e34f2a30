"""Registries of kinds: what a table of a specification file may hold, and the object that it describes."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote

T = TypeVar("T")
_Kinds = Mapping[str, Callable[..., T] | tuple[Callable[..., T], ...]]
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}  # of JSON


@dataclass(frozen=True)
class Registry(Generic[T]):
    """The kinds of one part of a specification; a kind is a name and one or two builders.

    The keys of a kind, with their types and defaults, are the parameters of its builders; `Args:` in a builder's
    docstring gives their meanings. Of two builders the first one is taken if the table has a key that the second one
    lacks.

    Example:
        >>> def square(side: float, color: str = "red"):
        ...     return side, color
        >>> shapes = Registry("shape", {"square": square})
        >>> shapes.build({"kind": "square", "side": 2})
        (2, 'red')
        >>> shapes.build({"kind": "square", "sise": 2})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: unknown key of shape 'square': 'sise'; did you mean side?
    """

    what: str  # the part, such as `"problem"`
    # a builder, or two, of every kind; or a function that returns them, if they are to be imported late
    kinds: _Kinds[T] | Callable[[], _Kinds[T]]
    context: tuple[str, ...] = ()  # parameters of builders that are no keys
    shared: Callable[..., Any] | None = None  # a function whose docstring gives meanings for several builders

    def builders(self) -> dict[str, tuple[Callable[..., T], ...]]:
        """The builders of every kind."""
        kinds = self.kinds() if callable(self.kinds) else self.kinds
        return {kind: each if isinstance(each, tuple) else (each,) for kind, each in kinds.items()}

    def keys(self, builder: Callable[..., T]) -> dict[str, inspect.Parameter]:
        """The keys that a builder takes."""
        return {name: each for name, each in inspect.signature(builder).parameters.items() if name not in self.context}

    def _required(self, builder: Callable[..., T]) -> list[str]:
        return [key for key, each in self.keys(builder).items() if each.default is each.empty]

    def builder(self, spec: Any) -> Callable[..., T]:
        """The builder of a table, after a check of its kind and keys."""
        known = self.builders()
        if not isinstance(spec, Mapping) or "kind" not in spec:
            fault = "needs a kind" if isinstance(spec, Mapping) else f"= {quote(spec)} must be a table with a kind"
            raise FedboundsError(f"{self.what} {fault}: one of {', '.join(known)}")
        kind = spec["kind"]
        if not isinstance(kind, str) or kind not in known:
            raise unknown_name(self.what, str(kind), known)
        chosen = known[kind][0]
        for other in known[kind][1:]:
            chosen = chosen if (self.keys(chosen).keys() - self.keys(other)) & set(spec) else other
        keys = self.keys(chosen)
        for key in spec:
            if key != "kind" and key not in keys:
                if not keys:
                    raise FedboundsError(f"{self.what} {kind!r} has no keys; remove {quote(key)}")
                raise unknown_name(f"key of {self.what} {kind!r}:", str(key), keys)
        if any(key not in spec for key in self._required(chosen)):
            possible = (chosen, *known[kind]) if chosen is known[kind][-1] else (chosen,)
            ways = [", ".join(key for key in self._required(each) if key not in spec) for each in possible]
            raise FedboundsError(f"{self.what} {kind!r} needs {', or '.join(dict.fromkeys(ways))}")
        return chosen

    def build(self, spec: Any, **context: Any) -> T:
        """The object that a table describes."""
        return self.builder(spec)(**{key: value for key, value in spec.items() if key != "kind"}, **context)

    def with_defaults(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The table with the default of every key that it leaves out, but for those whose default is None."""
        keys = self.keys(self.builder(spec))
        defaults = {name: each.default for name, each in keys.items() if each.default not in (None, each.empty)}
        return {"kind": spec["kind"]} | defaults | dict(spec)

    def schema(self, *, complete: bool, also: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON Schema of a table, by its kind, so that an error is about the keys of that kind alone.

        Args:
            complete: whether required keys must be there.
            also: the properties of further keys, which every kind has.
        """
        known = self.builders()
        branches = []
        for kind, builders in known.items():
            tables = [self._table(kind, each, complete, dict(also or {})) for each in builders]
            names = dict.fromkeys(name for table in tables for name in table["properties"])
            several = {"propertyNames": {"enum": [*names]}, "anyOf": tables}
            then = several if len(tables) > 1 else tables[0]
            branches.append({"if": {"properties": {"kind": {"const": kind}}}, "then": then})
        return {"properties": {"kind": {"enum": [*known]}}, "required": ["kind"], "allOf": branches}

    def _table(self, kind: str, builder: Callable[..., T], complete: bool, also: dict[str, Any]) -> dict[str, Any]:
        keys, hints, meanings = self.keys(builder), _hints(builder), _meanings(builder, self.shared)
        properties = {key: _value(hints.get(key, Any), each.default, meanings.get(key)) for key, each in keys.items()}
        return {
            "description": (builder.__doc__ or "").strip().partition("\n")[0],
            "properties": {"kind": {"const": kind}} | properties | also,
            "required": ["kind", *(self._required(builder) if complete else [])],
            "additionalProperties": False,
        }


def _hints(builder: Callable[..., Any]) -> dict[str, Any]:
    """The types of a builder's parameters."""
    of_init = inspect.isclass(builder) and not is_dataclass(builder)
    return get_type_hints(builder.__init__ if of_init else builder)


def _meanings(builder: Callable[..., Any], shared: Callable[..., Any] | None) -> dict[str, str]:
    """The meanings of a builder's parameters, from its docstring and those of the classes that it is or returns."""
    found: dict[str, str] = {}
    made = builder if inspect.isclass(builder) else _hints(builder).get("return")
    for place in [*(inspect.getmro(made)[::-1] if inspect.isclass(made) else ()), shared, builder]:
        section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(place.__doc__ or ""), re.MULTILINE)
        for entry in re.split(r"^ {4}(?=\S)", section[1] if section else "", flags=re.MULTILINE):
            names, _, meaning = entry.partition(":")
            found |= {name.strip(): " ".join(meaning.split()) for name in names.split(",") if meaning}
    return found


def _value(hint: Any, default: Any, meaning: str | None) -> dict[str, Any]:
    """The JSON Schema of a key: a number, a text, a truth value or one of several words; anything else is accepted."""
    about = {"description": meaning} if meaning else {}
    if isinstance(default, bool | int | float | str) and default not in (math.inf, -math.inf):
        about |= {"default": default}
    if get_origin(hint) is Literal:
        return {"enum": [*get_args(hint)]} | about
    parts = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return ({"type": [TYPES[part] for part in parts]} if all(part in TYPES for part in parts) else {}) | about
