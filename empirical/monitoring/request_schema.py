"""JSON Schema of the settings that `fedbounds advise` reads, from the code that reads them."""

from __future__ import annotations

from typing import Any

from fedbounds.bounds.advice.request import GOALS, KEYS, TIMES
from fedbounds.bounds.theory.registry import papers
from fedbounds.bounds.theory.round_cost import WIRE
from fedbounds.bounds.theory.symbols import Quantity
from fedbounds.empirical.participation import Recorded
from fedbounds.empirical.participation.spec import PARTICIPATION
from fedbounds.empirical.sweep.schema import DIALECT, Schema, value

NUMBER = {"anyOf": [{"type": "number"}, {"type": "string"}]}  # a text is an expression
NAMES = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def question_schema() -> Schema:
    """The schema of a setting: constants by concept, by symbol, or in a table of one paper."""
    by_paper = {one.key: [q for result in one.results for q in result.notation.values()] for one in papers()}
    everything = shared_constants([q for each in by_paper.values() for q in each])
    constants: dict[str, Any] = {name: about(q) for name, q in everything.items()}
    of_papers = {
        key: {
            "type": "object",
            "properties": {name: value(q) for name, q in named_constants(each).items()},
            "additionalProperties": False,
        }
        for key, each in by_paper.items()
    }
    table = {"type": "object", "properties": constants | of_papers, "additionalProperties": False}
    ends = {"anyOf": [{"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}, {"type": "string"}]}
    kept = {
        "description": "a CSV or JSON file of a record, or a table of its keys",
        "type": ["string", "object", "array"],
    }
    whole = PARTICIPATION.schema(complete=True, also={"log": kept})
    branches = (branch["then"]["properties"] for branch in whole["allOf"])
    recorded = next(keys for keys in branches if keys["kind"]["const"] == Recorded.kind)
    of_log = {name: about for name, about in recorded.items() if name not in ("kind", "weights", "file")}
    properties: Schema = {
        "setting": {"type": "string", "description": "what the problem and the clients are like, in words"},
        "target": {"description": "what the measure is to reach", **NUMBER},
        "measure": {"type": "string", "description": "what the target is for, in words"},
        "constants": {"description": "given: you answer for them", "$ref": "#/$defs/constants"},
        "estimated": {"description": "measured: no guarantee rests on them", "$ref": "#/$defs/constants"},
        "participation": {
            "type": "object",
            "if": {"required": ["kind"]},
            "then": whole,
            "else": {"properties": of_log, "required": ["log"], "additionalProperties": False},
        },
        "cost": {
            "type": "object",
            "properties": {name: {"description": why, **NUMBER} for name, why in (TIMES | WIRE).items()},
            "additionalProperties": False,
        },
        "choose": {
            "type": "object",
            "properties": {name: {"description": q.meaning, **ends} for name, q in everything.items()},
            "additionalProperties": False,
        },
        "minimize": {"enum": [*GOALS]},
        "assume": {"description": "assumptions that you take for granted, or all", **NAMES},
        "trust": {"description": "claims that you answer for", **NAMES},
        "effort": {
            "type": "number",
            "description": "how many evaluations a search may take, in multiples of the usual",
        },
    }
    if (keys := {*properties}) != {*KEYS}:
        raise AssertionError(f"the keys of a setting and those of its schema differ in {keys ^ {*KEYS}}")
    return {
        "$schema": DIALECT,
        "title": "A setting for fedbounds advise",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": ["setting", "target"],
        "$defs": {"constants": table},
    }


def named_constants(quantities: list[Quantity]) -> dict[str, Quantity]:
    """By concept and by symbol."""
    return {name: quantity for quantity in quantities for name in (quantity.concept, quantity.name)}


def shared_constants(quantities: list[Quantity]) -> dict[str, Quantity]:
    """By concept, and by symbol where all papers with the symbol mean the same by it."""
    meanings: dict[str, set[str]] = {}
    for quantity in quantities:
        meanings.setdefault(quantity.name, set()).add(quantity.concept)
    concepts = {quantity.concept: quantity for quantity in quantities}
    return {q.name: q for q in quantities if len(meanings[q.name]) == 1} | concepts


def about(quantity: Quantity) -> Schema:
    """The schema of a constant: a number, an expression, or a list of one for each client."""
    return {"description": quantity.meaning, "anyOf": [*NUMBER["anyOf"], {"type": "array", "items": NUMBER}]}
