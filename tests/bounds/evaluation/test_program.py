"""A program walked in chunks, whose steps use a few arrays again, gives the bits that it gives at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.evaluation import program as program_module
from fedbounds.bounds.evaluation.numpy_code import call_program, compile_form_program
from fedbounds.bounds.evaluation.program import (
    IN_PLACE,
    OPERATIONS,
    OVER_CLIENTS,
    Program,
    evaluate_at_once,
    evaluate_in_chunks,
)
from fedbounds.bounds.theory.registry import PAPERS, paper

ONE_ARGUMENT = {"negative", "sqrt", "log", "exp", "abs", "floor", "ceil", *OVER_CLIENTS}
SETTINGS, CLIENTS, ROWS = 23, 3, 5  # the last chunk is shorter
LONG = ("fed-norm-sgda",)  # the papers whose forms are walked by hand


@st.composite
def programs(draw) -> Program:
    """Steps over three symbols (of all settings, of one, and over clients) and two numbers."""
    steps = []
    for k in range(draw(st.integers(1, 25))):
        name = draw(
            st.sampled_from(["+", "-", "*", "minimum", "maximum", "negative", "abs", "floor", "sum", "/", "**"])
        )
        places = st.integers(0, 4 + k)
        exponent = (4,) if name == "**" else () if name in ONE_ARGUMENT else (draw(places),)
        steps.append((name, draw(places), *exponent))
    results = draw(st.lists(st.integers(0, 4 + len(steps)), min_size=1, max_size=6))
    return Program(("x", "y", "v"), (3, 2), tuple(steps), tuple(results))


def assert_same_bits(
    code: Program, values: list[np.ndarray], along: list[bool], into: list[np.ndarray], name: str = ""
):
    """In chunks as chunk by chunk, and in the arrays as in the results."""
    places = []
    for place, found in evaluate_in_chunks(code, values, along, ROWS, into):
        chunk = [v[place] if varies else v for v, varies in zip(values, along, strict=True)]
        expected = [np.array(each) for each in evaluate_at_once(code, chunk)]
        for one, other in zip([*found, *(array[place] for array in into)], [*expected, *expected], strict=False):
            pair = np.broadcast_arrays(np.asarray(one, dtype=float), other)
            assert np.array_equal(*pair, equal_nan=True), name
        places.append(place.start)
    assert places == [0, 5, 10, 15, 20]


@given(programs(), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_chunks_have_the_bits_of_one_pass(program, written, seed):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(SETTINGS, 1)), np.asarray(rng.normal()), rng.normal(size=(SETTINGS, CLIENTS))]
    with np.errstate(all="ignore"):
        shapes = [np.shape(each) for each in evaluate_at_once(program, values)]
        fits = [place for place, shape in zip(program.results, shapes, strict=True) if shape in ((SETTINGS, 1), ())]
        first = [0, *fits[:written]]
        code = program._replace(results=(*first, *program.results))
        into = [np.empty((SETTINGS, 1)) for _ in first]
        assert_same_bits(code, values, [True, False, True], into)


@pytest.mark.parametrize("name", [pytest.param(p, marks=[pytest.mark.long] * (p in LONG)) for p in PAPERS])
def test_every_form_of_a_paper_has_the_bits_of_one_pass(name):
    rng, walked = np.random.default_rng(3), 0
    for result in paper(name).results:
        vectors = {q.name for q in result.notation.values() if q.shape}
        for form in result.forms:
            for which in ("value", "parts"):
                code = compile_form_program(form, which)
                clients = bool(vectors & set(code.names))
                values = []
                for k, symbol in enumerate(code.names):
                    shape = (SETTINGS,) + ((CLIENTS,) if symbol in vectors else (1,)) * clients
                    drawn = rng.uniform(0.3, 0.9, shape) if k % 2 else rng.integers(1, 9, shape).astype(float)
                    values.append(drawn if k % 3 != 2 else drawn[:1])
                along = [len(each) == SETTINGS for each in values]
                if any(along):
                    into = [np.empty((SETTINGS, 1) if clients else SETTINGS)]
                    with np.errstate(all="ignore"):
                        assert_same_bits(code, values, along, into, f"{result.key} [{form.name}] {which}")
                    walked += 1
    assert walked > 20


def test_what_is_the_same_in_all_chunks_is_computed_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        program_module, "operation", lambda name: lambda *values: calls.append(name) or OPERATIONS[name](*values)
    )
    program = Program(("x", "y"), (), (("**", 1, 1), ("**", 0, 2)), (3,))
    into = [np.empty(SETTINGS)]
    list(evaluate_in_chunks(program, [np.arange(1.0, SETTINGS + 1), np.asarray(2.0)], [True, False], ROWS, into))
    assert into[0].tolist() == [k**4.0 for k in range(1, SETTINGS + 1)]
    assert len(calls) == 2 + 5  # both powers at the first setting, then y**y never again


def test_a_chunk_beyond_the_range_of_doubles_is_computed_again_further_out():
    program = Program(("x",), (), (("*", 0, 0), ("/", 1, 0), ("/", 2, 0)), (3,))
    x = np.where(np.arange(SETTINGS) == 12, 1e-200, 2.0)
    for first in (x, np.roll(x, -12)):  # the extreme one within, and as the first of all
        into = [np.empty(SETTINGS)]
        list(evaluate_in_chunks(program, [first], [True], ROWS, into))
        assert into[0] == pytest.approx(np.ones(SETTINGS))


def test_what_is_the_same_in_all_chunks_may_be_beyond_the_range_of_doubles():
    program = Program(("x", "y"), (), (("*", 1, 1), ("/", 2, 1), ("/", 3, 1), ("*", 0, 4)), (5,))
    into = [np.empty(SETTINGS)]
    list(evaluate_in_chunks(program, [np.arange(23.0), np.asarray(1e-200)], [True, False], ROWS, into))
    assert into[0] == pytest.approx(np.arange(23.0))


def test_a_function_is_called_chunk_by_chunk():
    lengths = []
    code = call_program(("x",), lambda x: lengths.append(len(x)) or [x + 1, 7], 2)
    into = [np.empty(SETTINGS)]
    found = [results[1] for _, results in evaluate_in_chunks(code, [np.arange(23.0)], [True], ROWS, into)]
    assert (into[0] == np.arange(1, 24)).all() and lengths == [1, 5, 5, 5, 5, 3] and found == [7] * 5


def test_every_operation_in_place_is_the_one_of_programs():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.5, 2, (2, 50))
    for name, function in IN_PLACE.items():
        taken = (x,) if name in ONE_ARGUMENT else (x, y)
        assert np.array_equal(function(*taken), OPERATIONS[name](*taken)), name
    assert {*OPERATIONS} - {*IN_PLACE} == {"**"}
