"""JSON Schema of the TOML files, from the code that reads them: sweeps, and the constants of a result.

What no schema can see (that lists are equally long, that steps fit their conditions) is left to the reader of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedbounds.bounds.theory.result import Result
from fedbounds.bounds.theory.symbols import Domain, Quantity
from fedbounds.empirical.algorithms.messages.compressors import COMPRESSORS
from fedbounds.empirical.algorithms.spec import ALGORITHMS
from fedbounds.empirical.algorithms.step_sizes import STEP_SIZE_SCHEDULES
from fedbounds.empirical.data.datasets import DATASETS
from fedbounds.empirical.data.partition import PARTITIONS
from fedbounds.empirical.participation.rates import RATES
from fedbounds.empirical.participation.spec import PARTICIPATION
from fedbounds.empirical.problems.spec import PROBLEMS
from fedbounds.empirical.runtime.kinds import TYPES, Registry
from fedbounds.empirical.sweep.spec import COMPONENTS, DEFAULTS, KEYS, NAME, PHASE_KEYS

REGISTRIES: Mapping[str, Registry[Any]] = {
    each.what: each
    for each in (PROBLEMS, PARTICIPATION, ALGORITHMS, PARTITIONS, DATASETS, COMPRESSORS, RATES, STEP_SIZE_SCHEDULES)
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
COUNT = {"type": "integer", "minimum": 1}
Schema = dict[str, Any]


def sweep_schema() -> Schema:
    """What a sweep file may hold; what it must, unless values that vary supply it."""
    definitions = {
        name + ending: {"type": "object", **REGISTRIES[name].schema(complete=bool(ending))}
        for name in COMPONENTS
        for ending in ("", "-complete")
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


def constants_schema(result: Result) -> Schema:
    """What a TOML file of a result's constants may hold: a value for each, by its symbol or its concept."""
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
