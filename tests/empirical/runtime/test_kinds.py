"""The registry of kinds: the check of keys and the JSON Schema accept the same tables, and every key has a meaning."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.runtime.kinds import Registry
from fedbounds.empirical.sweep.schema import REGISTRIES


def square(side: float, color: str = "red", *, device: str = "cpu") -> tuple[float, str, str]:
    """A square.

    Args:
        side: its length,
            in metres.
        color: of the line.
    """
    return side, color, device


def random_square(seed: int, color: str = "blue", *, device: str = "cpu") -> tuple[float, str, str]:
    """A random square."""
    return float(seed), color, device


def point(*, device: str = "cpu") -> str:
    return device


SHAPES: Registry[Any] = Registry("shape", {"square": (square, random_square), "point": point}, context=("device",))


def accepted(registry: Registry[Any], spec: object) -> bool:
    try:
        registry.builder(spec)
    except FedboundsError as refused:
        assert "\n" not in str(refused)
        return False
    return True


@cache
def schema_of(part: str, complete: bool) -> dict[str, Any]:
    return REGISTRIES[part].schema(complete=complete)


def value_of(schema: dict[str, Any]) -> Any:
    """A value that the schema of a key accepts."""
    kinds = schema.get("type", "string")
    values = {"boolean": True, "integer": 1, "number": 0.5, "string": "a", "null": None}
    return schema["enum"][0] if "enum" in schema else values[kinds if isinstance(kinds, str) else kinds[0]]


@pytest.mark.parametrize("part", REGISTRIES)
@given(data=st.data())
def test_the_schema_accepts_a_table_if_and_only_if_its_keys_are_accepted(part: str, data: st.DataObject):
    registry = REGISTRIES[part]
    schema = schema_of(part, True)
    branch = data.draw(st.sampled_from(schema["allOf"]))
    tables = branch["then"].get("anyOf", [branch["then"]])
    keys = {key: value for table in tables for key, value in table["properties"].items() if key != "kind"}
    required = set(data.draw(st.sampled_from(tables))["required"]) - {"kind"}
    chosen = data.draw(st.sets(st.sampled_from(sorted([*keys, "no_such_key"])))) | required
    missing = data.draw(st.sampled_from(["", *sorted(required)]))
    spec = {key: value_of(keys.get(key, {})) for key in sorted(chosen - {missing})}
    spec["kind"] = branch["if"]["properties"]["kind"]["const"]
    assert jsonschema.Draft202012Validator(schema).is_valid(spec) == accepted(registry, spec)
    assert not accepted(registry, spec) or jsonschema.Draft202012Validator(schema_of(part, False)).is_valid(spec)


def keys_of(schema: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The schema of every key of every kind."""
    found = {}
    for branch in schema["allOf"]:
        for table in branch["then"].get("anyOf", [branch["then"]]):
            kind = branch["if"]["properties"]["kind"]["const"]
            found |= {(kind, key): value for key, value in table["properties"].items() if key != "kind"}
    return found


@pytest.mark.parametrize("part", REGISTRIES)
def test_every_key_has_a_meaning_in_one_line(part: str):
    for value in keys_of(schema_of(part, True)).values():
        assert value["description"] and "\n" not in value["description"]


def test_keys_have_types_defaults_and_meanings():
    assert keys_of(SHAPES.schema(complete=True)) == {
        ("square", "side"): {"type": ["number"], "description": "its length, in metres."},
        ("square", "color"): {"type": ["string"], "default": "blue"},
        ("square", "seed"): {"type": ["integer"]},
    }


@pytest.mark.parametrize(
    ("spec", "built"),
    [
        ({"kind": "square", "side": 2.0}, (2.0, "red", "cuda")),
        ({"kind": "square", "seed": 3, "color": "green"}, (3.0, "green", "cuda")),
    ],
)
def test_the_builder_follows_from_the_keys(spec: dict[str, Any], built: tuple[float, str, str]):
    assert SHAPES.build(spec, device="cuda") == built


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (3, r"^shape = 3 must be a table with a kind: one of square, point$"),
        ({}, r"^shape needs a kind: one of square, point$"),
        ({"kind": "sqare"}, r"^unknown shape 'sqare'; did you mean square\?$"),
        ({"kind": ["square"]}, r"^unknown shape "),
        ({"kind": "square"}, r"^shape 'square' needs seed, or side$"),
        ({"kind": "square", "side": 1, "seed": 1}, r"^unknown key of shape 'square': 'seed'; known: color, side"),
        ({"kind": "square", "side": 1, "device": "cpu"}, r"^unknown key of shape 'square': 'device'"),
        ({"kind": "point", "side": 1}, r"^shape 'point' has no keys; remove 'side'$"),
    ],
)
def test_an_error_says_what_is_wrong_in_one_line(spec: object, message: str):
    with pytest.raises(FedboundsError, match=message):
        SHAPES.build(spec)


def test_defaults_are_filled_in_but_for_none_and_context():
    assert SHAPES.with_defaults({"kind": "square", "side": 2}) == {"kind": "square", "color": "red", "side": 2}
