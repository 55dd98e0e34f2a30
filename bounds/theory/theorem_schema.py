"""The JSON Schema of theorem files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fedbounds.bounds.theory.names_by_meaning import all_concepts
from fedbounds.bounds.theory.theorem_file import (
    AGGREGATES,
    ASSUMPTIONS,
    BOUNDS,
    INDEX_SETS,
    KEY,
    KINDS,
    MEASURED,
    OF_CONDITION,
    OF_HISTORY,
    OF_MEASURE,
    OF_SOURCE,
    RANDOM,
    READ,
)


def _either(words: Iterable[str]) -> str:
    return "|".join(words)


def _table(keys: Iterable[str], kind: dict[str, Any], **others: Any) -> dict[str, Any]:
    """A table with these keys alone, of one kind but for the others."""
    return {"type": "object", "properties": {**dict.fromkeys(keys, kind), **others}, "additionalProperties": False}


def theorem_schema() -> dict[str, Any]:
    """The JSON Schema of a theorem file, for editors."""
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    expressions = {"type": "object", "additionalProperties": {"type": ["string", "number"]}, "minProperties": 1}
    condition = {"anyOf": [text, {**_table(OF_CONDITION, text), "required": ["text"]}]}
    assumed = {"anyOf": [{**texts, "items": {"enum": sorted(ASSUMPTIONS)}}, {"type": "object"}]}
    symbol = {
        "type": "object",
        "properties": {
            "concept": {
                **text,
                "description": "Its name in all results; fedbounds list --concepts lists them.",
            },
            "meaning": {**text, "description": "One phrase."},
            "latex": {**text, "description": "How it is written."},
            "domain": {**text, "description": 'Its values, e.g. "(0, inf)" or "integers in [1, inf)".'},
            "dimension": {**text, "description": 'Its unit in f and x, e.g. "f/x^2" or "1".'},
            "per_client": {"type": "boolean", "description": "Whether each client has its own."},
        },
        "additionalProperties": False,
    }
    of_form = {
        "terms": {**expressions, "description": "The summands of the bound, NAME = EXPRESSION."},
        "conditions": {"type": "array", "items": condition, "description": 'Relations, e.g. "gamma <= 1/L".'},
        "assumptions": {**assumed, "description": "Shared assumptions by name, or a table NAME = STATEMENT."},
        "step_sizes": {**expressions, "description": "The step sizes that the theorem prescribes."},
        "where": {**expressions, "description": "Names for parts of expressions."},
        "order_only": {"type": "boolean", "description": "Whether the bound is inside an O."},
        "hides": text,
        "hidden": {**texts, "description": "The constants with a unit that the O hides."},
        "asymptotic": text,
        "note": text,
    }
    of_file = {
        **of_form,
        "key": {**text, "pattern": f"^{KEY.pattern}$", "description": "PAPER/NAME, e.g. draft/theorem-1."},
        "kind": {"enum": [*KINDS]},
        "title": text,
        "statement": text,
        "source": {"anyOf": [text, _table(OF_SOURCE, text, equations=texts)]},
        "bibtex": text,
        "history": {
            "type": "array",
            "items": _table(OF_HISTORY, text, read={"enum": [*READ]}),
        },
        "bound": {"enum": [*BOUNDS], "description": "Whether the right-hand side is an upper or a lower bound."},
        "measure": {
            "anyOf": [
                {**text, "pattern": f"^({_either(AGGREGATES)}) over ({_either(INDEX_SETS)}) of ({_either(MEASURED)})$"},
                {
                    **_table(OF_MEASURE, text, aggregate={"enum": [*AGGREGATES]}, over={"enum": [*INDEX_SETS]}),
                    "required": ["of"],
                },
            ]
        },
        "expectation": {
            **text,
            "pattern": f"^(({_either(RANDOM)})(, | and |, and |$))*$",
            "description": "What the left-hand side is averaged over; the default is gradient noise and participation, "
            'and "" is for a left-hand side without an expectation.',
        },
        "given": {**text, "description": 'What the expectation is conditional on, e.g. "participation".'},
        "setting": {**text, "description": "The problem class in the words of fedbounds covers."},
        "algorithm": {**text, "pattern": "^[a-z0-9.-]*$", "description": "The kind of the algorithm, e.g. fedavg."},
        "uses": {**texts, "description": "The keys of the results that its proof rests on."},
        "improves": {**texts, "description": "The keys of the results that it improves on, extends or matches."},
        "default": text,
        "symbols": {
            "type": "object",
            "description": 'Symbols that are not standard, e.g. beta = "smoothness".',
            "propertyNames": {"pattern": r"^[A-Za-z_]\w*$"},
            "additionalProperties": {"anyOf": [{"enum": [*all_concepts()]}, symbol]},
        },
        "forms": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": of_form,
                "required": ["terms"],
                "additionalProperties": False,
            },
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A theorem of fedbounds",
        "type": "object",
        "properties": of_file,
        "required": ["measure"],
        "additionalProperties": False,
    }
