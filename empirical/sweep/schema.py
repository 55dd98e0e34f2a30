"""JSON Schema of the TOML files, from the code that reads them: sweeps, and the constants of a result.

What no schema can see (that lists are equally long, that steps fit their conditions) is left to the reader of the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fedbounds.bounds.theory.result import Result
from fedbounds.bounds.theory.symbols import Domain, Quantity
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.participation.spec import PROCESSES, keys_of_process
from fedbounds.empirical.problems.spec import MAKERS, keys_of_maker
from fedbounds.empirical.sweep.spec import COMPONENTS, DEFAULTS, KEYS, NAME, PHASE_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
COUNT = {"type": "integer", "minimum": 1}
Schema = dict[str, Any]


def sweep_schema() -> Schema:
    """What a sweep file may hold; what it must, unless values that vary supply it."""
    kinds: dict[str, list[tuple[str, Callable[..., Any], dict[str, bool]]]] = {
        "problem": [(kind, make, keys_of_maker(make)) for kind, makers in MAKERS.items() for make in makers],
        "participation": [(kind, made, keys_of_process(made)) for kind, made in PROCESSES.items()],
        "algorithm": [(kind, made, keys_of_class(made)) for kind, made in sorted(algorithms().items())],
    }
    definitions = {
        name + ending: {"type": "object", **by_kind(found, needed=needed)}
        for name, found in kinds.items()
        for ending, needed in (("", False), ("-complete", True))
    }
    for ending in ("", "-complete"):
        several = {"if": {"required": ["phases"]}, "then": phases(ending), "else": definitions[f"algorithm{ending}"]}
        definitions[f"algorithm{ending}"] = {"type": "object", **several}
    values = {"anyOf": [{"type": "array", "minItems": 1}, {"type": "object"}]}
    properties: Schema = {
        "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "rounds": COUNT,
        "seeds": {"anyOf": [COUNT, {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}]},
        "seeds_per_run": COUNT,
        "streams": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "vary": {
            "type": "object",
            "properties": {"together": {"type": "array", "items": {"type": "object", "additionalProperties": values}}},
            "additionalProperties": values,
        },
    } | {key: {"type": TYPES[type(default)], "default": default} for key, default in DEFAULTS.items()}
    whole = components("-complete")
    if (said := {*properties, *whole}) != {*KEYS}:
        raise AssertionError(f"the keys of a sweep and those of its schema differ in {said ^ {*KEYS}}")
    return {
        "$schema": DIALECT,
        "title": "A sweep of fedbounds",
        "type": "object",
        "properties": properties | components(""),
        "additionalProperties": False,
        "required": ["rounds"],
        "allOf": [{"oneOf": [{"required": [one]}, {"required": [several]}]} for one, several in COMPONENTS.items()],
        "if": {"required": ["vary"]},
        "else": {"properties": whole},
        "$defs": definitions,
    }


def components(ending: str) -> Schema:
    """[problem] or [problems.LABEL], and so on, as one of these definitions describes each."""
    single = {name: {"$ref": f"#/$defs/{name}{ending}"} for name in COMPONENTS}
    return single | {
        several: {"type": "object", "minProperties": 1, "additionalProperties": single[name]}
        for name, several in COMPONENTS.items()
    }


def phases(ending: str) -> Schema:
    """An algorithm that is a schedule of several."""
    phase = {
        "type": "object",
        "properties": dict(zip(PHASE_KEYS, (COUNT, {"$ref": f"#/$defs/algorithm{ending}"}), strict=True)),
        "additionalProperties": False,
        "required": ["algorithm"],
    }
    listed = {"type": "array", "items": phase, "minItems": 1}
    return {"properties": {"phases": listed}, "required": ["phases"], "additionalProperties": False}


def by_kind(
    found: Iterable[tuple[str, Callable[..., Any], Mapping[str, bool]]],
    *,
    needed: bool,
    also: Mapping[str, Schema] | None = None,
) -> Schema:
    """The table of whichever kind is named, so that what is wrong with it is told of that kind alone."""
    tables: dict[str, list[Schema]] = {}
    for kind, made, keys in found:
        one = table(kind, made, keys, needed=needed)
        tables.setdefault(kind, []).append(one | {"properties": one["properties"] | dict(also or {})})
    return {
        "properties": {"kind": {"enum": [*tables]}},
        "required": ["kind"],
        "allOf": [{"if": {"properties": {"kind": {"const": kind}}}, "then": any_of(tables[kind])} for kind in tables],
    }


def any_of(tables: list[Schema]) -> Schema:
    """One of these tables; where there are several, a key that none of them has is refused by its name."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for one in tables for name in one["properties"])
    return {"propertyNames": {"enum": [*names]}, "anyOf": tables}


def table(kind: str, made: Callable[..., Any], keys: Mapping[str, bool], *, needed: bool) -> Schema:
    """The table of one kind, with the keys that its maker takes."""
    types = get_type_hints(made if is_dataclass(made) or inspect.isfunction(made) else made.__init__)
    said = (made.__doc__ or "").strip().partition("\n")[0]
    return {
        "description": said,
        "properties": {"kind": {"const": kind}} | {key: of_type(types.get(key, Any)) for key in keys},
        "required": ["kind", *(key for key, must in keys.items() if must and needed)],
        "additionalProperties": False,
    }


def of_type(hint: Any) -> Schema:
    """A number, a text, a truth value or one of several words; of anything else, that it is there."""
    parts = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    if get_origin(hint) is Literal:
        return {"enum": [*get_args(hint)]}
    return {"type": [TYPES[part] for part in parts]} if all(part in TYPES for part in parts) else {}


def keys_of_class(made: type) -> dict[str, bool]:
    """The keys of an algorithm, and whether it cannot do without."""
    return {field.name: field.default is MISSING for field in fields(made) if field.init}


def constants_schema(result: Result) -> Schema:
    """What a TOML file of a result's constants may hold: a value for each, by its letter or its concept."""
    quantities = result.notation.values()
    named = {name: quantity for quantity in quantities for name in (quantity.concept, quantity.name)}
    return {
        "$schema": DIALECT,
        "title": f"Constants of {result.key}",
        "type": "object",
        "properties": {name: value(quantity) for name, quantity in named.items()},
        "additionalProperties": False,
    }


def value(quantity: Quantity) -> Schema:
    """A number in its domain, for a vector a list of them; or an expression or @FILE.csv, as a text."""
    number = of_domain(quantity.domain)
    listed = [{"type": "array", "items": {"anyOf": [number, {"type": "string"}]}}] if quantity.shape else []
    return {"description": f"{quantity.meaning}; {quantity.domain}", "anyOf": [number, {"type": "string"}, *listed]}


def of_domain(domain: Domain) -> Schema:
    """The numbers in it."""
    low = "exclusiveMinimum" if domain.low_open else "minimum"
    high = "exclusiveMaximum" if domain.high_open else "maximum"
    ends: Iterable[tuple[str, float]] = [(low, domain.low), (high, domain.high)]
    finite = {name: end for name, end in ends if abs(end) != float("inf")}
    return {"type": "integer" if domain.integer and not domain.infinite else "number", **finite}
