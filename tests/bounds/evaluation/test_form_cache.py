"""A kept view says of a form what its expressions say, bit for bit; no file of views is trusted that may be wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.display.json_values import json_value
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation import form_cache
from fedbounds.bounds.evaluation.evaluate import evaluate_form
from fedbounds.bounds.evaluation.form_cache import CacheFile, cache_result, read_cached, serialize_results
from fedbounds.bounds.evaluation.numpy_code import arguments, call_program, compile_expressions, compile_result
from fedbounds.bounds.evaluation.program import CHUNK, Program
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.registry import PAPERS, load, paper
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Quantity

ROOT = Path(__file__).resolve().parents[3]
KEY = "arbitrary-participation/theorem-3.1"
CONSTANTS = "L=1 F=5 I=2 P=2 T=8 gamma=1/48 eta=6 rho=0.7072 sigma=0.5 nu=2 beta=0.5 delta=0"
DRAWS = 4
LONG = ("arbitrary-participation", "fed-norm-sgda")  # the papers with many long forms, by hand


def by_sympy(result: Result, form: Form, which: str) -> Program:
    """A function of a form as sympy itself makes it."""
    declared = feasible_set(result, form)
    together = [side for c in (declared.all if declared else ()) for side in (c.left, c.right)]
    sides = [side for c in form.conditions for side in (c.left, c.right)]
    extremes = [c.extreme for c in form.conditions if c.extreme is not None]
    terms = [term.expression for term in form.terms]
    expressions = {
        "parts": (*terms, *form.prescribes.values(), *sides),
        "sides": (*sides, *extremes),
        "feasible": tuple(together),
    }[which]
    symbols = arguments(expressions)
    names = tuple(s.name for s in symbols)
    return call_program(names, compile_expressions(symbols, expressions), len(expressions))


def drawn(quantity: Quantity, clients: int, rng: np.random.Generator) -> object:
    """A value of a symbol, legal or not."""
    low, high = quantity.domain.low, quantity.domain.high
    shape = (clients,) if quantity.shape else ()
    if quantity.domain.integer:
        values = rng.integers(max(int(low), 1), 12, shape).astype(float)
    else:
        values = rng.lognormal(-1, 2, shape) if high > 1 else rng.uniform(0.05, 1, shape)
    if quantity.total is not None:
        values /= values.sum()
    return np.where(rng.random(shape) < 0.02, rng.choice([-1.0, 0.0, 0.5, np.inf, 1e200, 1e-200]), values)


def asked(form, rng: np.random.Generator) -> dict[str, object]:
    """Constants for a form: symbols that it needs, or what they follow from; sometimes one too few or too many."""
    notation, clients = form.result.notation, int(rng.integers(1, 5))
    names = set(form.needs)
    for rule in form.derived:
        if rule.name in names and rng.random() < 0.5:
            names |= set(rule.inputs)
            names -= {rule.name} if rng.random() < 0.8 else set()
    names -= set(rng.permutation(sorted(names))[: rng.integers(0, 2)]) if rng.random() < 0.2 else set()
    return {name: drawn(notation[name], clients, rng) for name in sorted(names)}


def answer(form, constants: dict[str, object]) -> str:
    """All that is said of a form at these constants, or the error."""
    try:
        found = evaluate_form(form, constants, assume=["all"] if len(constants) % 2 else [])
    except FedboundsError as error:
        return f"error: {error}"
    return f"{json.dumps(json_value(found.to_dict()))}\n{found}"


@pytest.mark.parametrize("name", PAPERS)
def test_a_kept_view_answers_as_sympy_does_bit_for_bit(name):
    """Over random constants, errors included."""
    rng, said = np.random.default_rng(5), []
    kept = CacheFile(serialize_results(name, paper(name).results))
    for result in paper(name).results:
        ours, theirs = kept.result(result.key), compile_result(result)
        for whole, here, there in zip(result.forms, ours.forms, theirs.forms, strict=True):
            there = replace(there, program=lambda which, of=(result, whole): by_sympy(*of, which))
            constants = [asked(there, rng) for _ in range(DRAWS)]
            answers = [answer(there, each) for each in constants]
            assert [answer(here, each) for each in constants] == answers, f"{result.key} [{here.name}]"
            said += answers
    values = sum(not each.startswith("error") for each in said)
    assert 0.2 * len(said) < values < len(said)


@pytest.mark.parametrize("name", [pytest.param(p, marks=[pytest.mark.long] * (p in LONG)) for p in PAPERS])
def test_programs_compute_many_settings_as_sympys_functions_do(name):
    """In chunks, with numbers beside arrays, and far beyond the range of doubles."""
    rng = np.random.default_rng(6)
    results = paper(name).results[:1]
    kept = CacheFile(serialize_results(name, results))
    for result in results:
        for whole, form in zip(result.forms, kept.result(result.key).forms, strict=True):
            theirs = replace(form, program=lambda which, of=(result, whole): by_sympy(*of, which)).compiled
            constants: dict[str, np.ndarray] = {}
            for k, symbol in enumerate(sorted(form.needs)):
                quantity = form.result.notation[symbol]
                values = np.abs([drawn(quantity, 2, rng) for _ in range(9)])
                constants[symbol] = values[0] if k % 3 == 0 else np.resize(values, (CHUNK + 9, *values.shape[1:]))
            with np.errstate(all="ignore"):
                for ours, reference in zip(
                    (*form.compiled.parts(constants), *form.compiled.sides(constants)),
                    (*theirs.parts(constants), *theirs.sides(constants)),
                    strict=True,
                ):
                    for one, other in zip(ours, reference, strict=True):
                        assert (one is other is None) or np.array_equal(one, other, equal_nan=True), form.title


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the user's, and nothing remembered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read_cached.cache_clear()
    yield tmp_path / "cache"
    read_cached.cache_clear()


def kept_file(cache: Path) -> Path:
    """The one file of views there is."""
    cache_result(KEY)
    (path,) = cache.rglob("*.json")
    return path


WITHOUT = "import sys; sys.modules['sympy'] = None"  # whoever imports it is refused
COMPARED = (
    f"compare {KEY}:explicit {KEY} --vary rounds=10:1e4:log:3",
    "L=1 F=5 I=2 P=2 gamma=1/48 eta=6 rho=0.7 sigma=0.5 nu=2 beta=0.5 delta=0",
)


def said(cache: Path, question: str, before: str = "") -> tuple[str, set[str]]:
    """What a command prints in a process of its own, and the modules that it loads."""
    code = "import json, sys; from fedbounds.__main__ import main; main(); json.dump([*sys.modules], sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{before}; {code}" if before else code, *question.split()],
        cwd=ROOT, env={**os.environ, "XDG_CACHE_HOME": str(cache)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr))


def evaluated(cache: Path) -> set[str]:
    """The modules that `eval` loads in a process of its own."""
    text, modules = said(cache, f"eval {KEY} --form explicit {CONSTANTS}")
    assert "verdict: proved" in text
    return modules


def test_a_rational_bound_is_inverted_without_python_flint(tmp_path):
    question = f"rounds {KEY} --form explicit {CONSTANTS.replace('T=8 ', '')} --epsilon 200"
    said(tmp_path, question)
    text, modules = said(tmp_path, question)
    assert "certified" in text and not modules & {"sympy", "scipy", "flint", "numpy.ma"}


@pytest.mark.parametrize("question", [" ".join(COMPARED)])
@pytest.mark.parametrize("as_json", ["", " --json"])
def test_a_question_about_known_forms_is_answered_alike_where_sympy_cannot_be_imported(tmp_path, question, as_json):
    text, modules = said(tmp_path, question + as_json)
    assert "sympy" in modules
    assert said(tmp_path, question + as_json, WITHOUT)[0] == text


def test_a_known_form_is_evaluated_without_sympy(tmp_path):
    """The first question keeps the view; and a cache that cannot be written, or that others can write, is none."""
    heavy = {"sympy", "scipy", "torch", "matplotlib", "fedbounds.bounds.theory.result", "fedbounds.bounds.papers.fedau"}
    assert "sympy" in evaluated(tmp_path / "cache")
    assert not evaluated(tmp_path / "cache") & heavy
    (path,) = (tmp_path / "cache").rglob("*.json")
    path.parent.chmod(0o777)
    assert "sympy" in evaluated(tmp_path / "cache")
    (tmp_path / "file").write_text("no folder")
    assert "sympy" in evaluated(tmp_path / "file")


def test_a_kept_view_is_read_once_it_is_written(cache):
    assert read_cached(KEY) is None
    path = kept_file(cache)
    found = read_cached(KEY)
    assert found is not None and [form.name for form in found.forms] == [form.name for form in load(KEY).forms]
    assert path.stat().st_mode & 0o022 == 0 and path.parent.stat().st_mode & 0o022 == 0


def test_a_damaged_file_is_not_read(cache):
    path = kept_file(cache)
    whole = path.read_bytes()

    def is_read(content: bytes) -> bool:
        path.write_bytes(content)
        read_cached.cache_clear()
        return read_cached(KEY) is not None

    for place in (0, 3, 70, 200, 0.3, 0.5, 0.9):
        content = bytearray(whole)
        content[place if isinstance(place, int) else int(place * len(content))] ^= 1
        assert not is_read(content) and not is_read(content[: len(content) // 2]) and is_read(whole), place
    assert not is_read(whole[:-20])
    cache_result(KEY)  # made again
    assert path.read_bytes() == whole and read_cached(KEY) is not None


@pytest.mark.parametrize("who", ["file", "folder"])
def test_a_file_that_others_may_have_written_is_not_read(cache, who):
    path = kept_file(cache)
    (path if who == "file" else path.parent).chmod(0o770)
    assert read_cached(KEY) is None


def test_a_file_of_another_user_is_not_read(cache, monkeypatch):
    kept_file(cache)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert read_cached(KEY) is None


def test_a_view_of_other_sources_is_not_read(cache, monkeypatch):
    """Whichever of the files that it is made of has changed: here they are copies."""
    path = kept_file(cache)
    sources = json.loads(path.read_bytes().split(b"\n")[0].partition(b" ")[2])["sources"]
    kernel = {f"theory/{name}.py" for name in ("result", "printing", "symbols")}
    assert kernel | {"papers/arbitrary_participation/results.py"} <= {*sources}
    assert {"papers/arbitrary_participation/ledger.json", "papers/arbitrary_participation/errata.py"} <= {*sources}
    assert not [name for name in sources if "/proof/" in name or name.startswith("papers/fedau")]
    copies = cache / "copies"
    for name in sources:
        (copies / name).parent.mkdir(parents=True, exist_ok=True)
        (copies / name).write_bytes((Path(form_cache.ROOT) / name).read_bytes())
    content = path.read_bytes()
    monkeypatch.setattr(form_cache, "ROOT", str(copies))
    assert CacheFile(content).result(KEY).key == KEY
    for name in sources:
        (copies / name).write_bytes(b"#" + (copies / name).read_bytes())
        with pytest.raises(LookupError, match="other sources"):
            CacheFile(content)
        (copies / name).write_bytes((copies / name).read_bytes()[1:])
    assert CacheFile(content).result(KEY).key == KEY
    (copies / sources[0]).unlink()
    with pytest.raises(OSError):
        CacheFile(content)


def test_several_processes_keep_one_view_at_once(cache):
    code = (
        "from fedbounds.bounds.evaluation.form_cache import *; "
        f"cache_result({KEY!r}); assert read_cached({KEY!r}) is not None"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(2)]
    assert [process.wait() for process in started] == [0, 0]
    assert len([*cache.rglob("*")]) == len([*cache.rglob("*.json")]) + 4  # folders, and nothing left behind


def test_what_is_no_result_of_ours_is_not_kept(cache):
    for key in ("fedau/nothing", "nobody/theorem-1", "../../etc/passwd", "", "fedau"):
        assert read_cached(key) is None
        if key != "fedau/nothing":
            cache_result(key)
    assert not cache.exists()


def test_an_unknown_form_is_refused_alike(cache):
    with pytest.raises(FedboundsError) as before:
        form_cache.as_compiled(KEY).form("sharpest")
    cache_result(KEY)
    with pytest.raises(FedboundsError) as after:
        form_cache.as_compiled(KEY).form("sharpest")
    assert str(before.value) == str(after.value)
