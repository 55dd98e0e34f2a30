"""The JSON Schema of sweep files and of constants refuses what the code refuses, and nothing that the code takes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema.exceptions import best_match

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import results
from fedbounds.empirical.monitoring.advise import advise
from fedbounds.empirical.monitoring.request_schema import question_schema
from fedbounds.empirical.sweep import resolve
from fedbounds.empirical.sweep import spec as spec_module
from fedbounds.empirical.sweep.schema import constants_schema, sweep_schema
from tests.command_line import run
from tests.empirical.sweep.test_bad_specs import MAKERS, NAMES, SPECS

ROOT = Path(__file__).resolve().parents[3]
SWEEP = jsonschema.Draft202012Validator(sweep_schema())
SETTING = jsonschema.Draft202012Validator(question_schema())
BASE: dict[str, Any] = {
    "rounds": 10,
    "problem": {"kind": "toy"},
    "participation": {"kind": "full", "clients": 3},
    "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
}
WRITABLE = [True, -1, 2.5, 10**400, float("inf"), "0.1", [], {}, [[1]], ["1"], {"kind": "toy"}]


def written(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "examples" / name).read_text(encoding="utf-8"))


def test_the_schema_that_is_shipped_is_that_of_the_code():
    shipped = json.loads((ROOT / "empirical/sweep/schema.json").read_text(encoding="utf-8"))
    assert shipped == sweep_schema(), "fedbounds schema > empirical/sweep/schema.json"
    jsonschema.Draft202012Validator.check_schema(shipped)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.toml")))
def test_the_examples_fit_it_and_name_it(name: str):
    schema, file = (SETTING, "monitoring/request_") if name.startswith("advise-") else (SWEEP, "sweep/")
    schema.validate(written(name))
    first = (ROOT / "examples" / name).read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"#:schema ../empirical/{file}schema.json"


@pytest.mark.parametrize(("what", "spec"), SPECS, ids=NAMES)
def test_a_key_that_is_misspelled_is_named(what: str, spec: dict[str, Any]):
    said = best_match(SWEEP.iter_errors(BASE | {what: spec | {"no_such_key": 1}}))
    assert said is not None and "'no_such_key'" in said.message


@pytest.mark.parametrize(
    "change",
    [
        {"targt": 1},
        {"target": None},
        {"setting": 3},
        {"constants": {"smothness": 1}},
        {"constants": {"P": 2}},  # a symbol of several meanings
        {"constants": {"fedau": {"LL": 1}}},
        {"estimated": 3},
        {"participation": {}},
        {"participation": {"lag": "a.csv"}},
        {"participation": {"kind": "full", "client": 3}},
        {"participation": {"kind": "full", "log": "a.csv"}},
        {"cost": {"messages": 1}},
        {"choose": {"local_steps": [1, 2, 3]}},
        {"choose": {"locl_steps": [1, 2]}},
        {"minimize": "second"},
        {"assume": 3},
        {"effort": "much"},
    ],
    ids=str,
)
def test_a_setting_that_it_refuses_is_refused(change: dict[str, Any]):
    asked = {"setting": "non-convex", "target": 0.1, "participation": {"kind": "full", "clients": 3}}
    assert SETTING.is_valid(asked) and not SETTING.is_valid(asked | change)
    with pytest.raises(FedboundsError):
        advise(asked | change, paper="fedau")


def test_the_schema_of_settings_that_is_shipped_is_that_of_the_code():
    shipped = json.loads((ROOT / "empirical/monitoring/request_schema.json").read_text(encoding="utf-8"))
    assert shipped == question_schema(), "fedbounds schema advise > empirical/monitoring/request_schema.json"
    jsonschema.Draft202012Validator.check_schema(shipped)
    assert json.loads(run("schema", "advise")[1]) == shipped


def test_the_documented_file_fits_it():
    SWEEP.validate(tomllib.loads(str(spec_module.__doc__).split("```toml\n")[1].split("```")[0]))


@pytest.mark.parametrize(("what", "spec"), SPECS, ids=NAMES)
def test_every_valid_specification_fits_it_and_what_lacks_or_adds_a_key_does_not(what: str, spec: dict[str, Any]):
    SWEEP.validate(BASE | {what: spec})
    assert not SWEEP.is_valid(BASE | {what: spec | {"no_such_key": 1}})
    assert not SWEEP.is_valid(BASE | {what: spec | {"kind": "no-such-kind"}})
    for key in spec.keys() - {"kind"}:
        rest = {name: value for name, value in spec.items() if name != key}
        if not SWEEP.is_valid(BASE | {what: rest}):
            with pytest.raises(FedboundsError):
                MAKERS[what](rest)
            varied = {"vary": {f"{what}.{key}": [spec[key]]}}
            SWEEP.validate(BASE | {what: rest} | varied)


@pytest.mark.parametrize(("what", "spec"), SPECS, ids=NAMES)
def test_it_refuses_no_value_that_the_code_takes(what: str, spec: dict[str, Any]):
    for key in spec:
        for value in WRITABLE:
            changed = spec | {key: value}
            if not SWEEP.is_valid(BASE | {what: changed}):
                with pytest.raises(FedboundsError):
                    MAKERS[what](changed)


@pytest.mark.parametrize(
    "change",
    [
        {"rouns": 3},
        {"rounds": "ten"},
        {"rounds": 0},
        {"rounds": 2.5},
        {"record_every": 0.5},
        {"record_models": "yes"},
        {"engine": 3},
        {"name": "a b"},
        {"seeds": 0},
        {"seeds": [0.5]},
        {"seeds": []},
        {"seeds_per_run": 0},
        {"problems": {"toy": {"kind": "toy"}}},
        {"problem": {}},
        {"problem": {"kind": 3}},
        {"problem": 3},
        {"algorithm": {"phases": []}},
        {"algorithm": {"phases": [{"rounds": 10}]}},
        {"algorithm": {"phases": [{"algorithm": BASE["algorithm"], "turns": 3}]}},
        {"vary": {"problem.noise": []}},
        {"vary": {"problem.noise": 0.1}},
        {"vary": {"together": {"rounds": [1]}}},
    ],
    ids=str,
)
def test_a_sweep_that_it_refuses_is_refused(change: dict[str, Any]):
    assert resolve(BASE).tasks and SWEEP.is_valid(BASE)
    assert not SWEEP.is_valid(BASE | change)
    with pytest.raises(FedboundsError):
        resolve(BASE | change)


def test_constants_of_every_result_are_named_and_no_others():
    shapes = {}  # of constants, each once: the schema of schemas is slow
    for result in results():
        schema = constants_schema(result)
        properties = schema.pop("properties")
        assert properties.keys() == {n for q in result.notation.values() for n in (q.name, q.concept)}
        shapes |= {json.dumps(shape, sort_keys=True): shape for shape in [*properties.values(), schema]}
    jsonschema.Draft202012Validator.check_schema({"allOf": list(shapes.values())})


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"gamma": "1/48"}, True),
        ({"L": -1}, False),
        ({"L": True}, False),
        ({"l": 1}, False),
        ({"T": 2.5}, False),
    ],
    ids=str,
)
def test_a_file_of_constants_that_it_refuses_is_refused(change: dict[str, Any], fits: bool, tmp_path: Path):
    constants = dict(L=1, F=5, I=2, P=2, T=8, gamma=0.02, eta=6, rho=0.75, nu=2, beta=0.5, delta=0, sigma=0.5) | change
    theorem = fedbounds.load("arbitrary-participation/theorem-3.1")
    assert jsonschema.Draft202012Validator(constants_schema(theorem)).is_valid(constants) == fits
    file = tmp_path / "constants.toml"
    file.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in constants.items()))
    assert (run("eval", theorem.key, "--from", str(file))[0] == 0) == fits


def test_the_command_prints_both():
    status, out, _ = run("schema")
    assert status == 0 and json.loads(out) == sweep_schema()
    status, out, _ = run("schema", "fedau/theorem-2")
    assert status == 0 and json.loads(out) == constants_schema(fedbounds.load("fedau/theorem-2"))
    assert run("schema", "fedau/theorem-9")[0] == 2
