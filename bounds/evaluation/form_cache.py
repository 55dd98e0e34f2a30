"""Compiled forms in files, so that a bound of the papers is evaluated without sympy.

A file names the sources it was made of, with their SHA-256: it is not read if one of them has changed, or if it is
damaged. Such files lie in each paper's folder of a wheel (`write_compiled`) and in the user's cache, where one is
written after a result was evaluated. They hold numbers, text and programs (`fedbounds.bounds.evaluation.program`),
never code. A file of the cache is read only if no other user can have written it. Results of installed packages are not
cached, because their sources are not known.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.audit.status import AuditStatus
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import (
    CompiledCondition,
    CompiledForm,
    CompiledResult,
    NumericRule,
    NumpyRule,
    PrintedCondition,
)
from fedbounds.bounds.evaluation.expression_tree import Structure, Tree, postorder, read_trees, serialize_trees
from fedbounds.bounds.evaluation.program import function_at, read_program
from fedbounds.bounds.inputs.atomic_files import cache_folder
from fedbounds.bounds.inputs.user_files import open_regular
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.problem_class import Cover
from fedbounds.bounds.theory.symbols import Dimension, Domain, Notation, Quantity

if TYPE_CHECKING:
    from fedbounds.bounds.theory.result import Result

SCHEMA = "fedbounds.views/4"
NAME = "views.json"
PACKAGE = "fedbounds.bounds"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of that package
WRITERS = ("evaluation/form_cache.py", "evaluation/numpy_code.py", "audit/ledger.py")
WHICH = ("value", "parts", "sides", "feasible")  # the programs of a form
LARGEST = 2**23  # bytes of one file
KEY = re.compile(r"([a-z0-9-]+)/([a-z0-9.-]+)")
OTHERS_MAY_WRITE = 0o022


def as_compiled(result: Result | str) -> CompiledResult:
    """The compiled forms of a result, or of the one with this key."""
    cached = read_cached(result) if isinstance(result, str) else None
    if cached is not None:
        return cached
    from fedbounds.bounds.evaluation.numpy_code import compile_result  # sympy takes its time
    from fedbounds.bounds.theory.registry import as_result

    return compile_result(as_result(result))


@lru_cache(maxsize=64)
def read_cached(key: str) -> CompiledResult | None:
    """The compiled forms of a result of ours, if a file has them and none of its sources has changed."""
    found = KEY.fullmatch(key)
    if found is None:
        return None
    paper, name = found.groups()
    for path, ours in ((_shipped(paper), True), (_cached(paper, name), False)):
        with suppress(
            FedboundsError, ValueError, LookupError, TypeError, OSError
        ):  # missing, damaged, of other sources
            return CacheFile(_content(path, ours)).result(key)
    return None


def _paper_folder(paper: str) -> str:
    return os.path.join(ROOT, "papers", paper.replace("-", "_"))


def _shipped(paper: str) -> str:
    return os.path.join(_paper_folder(paper), NAME)


def _cached(paper: str, name: str) -> str:
    return os.path.join(cache_folder(), "views", hashlib.sha256(ROOT.encode()).hexdigest()[:16], paper, f"{name}.json")


def _content(path: str, ours: bool) -> bytes:
    """What a file holds."""
    with open_regular(path, path, LARGEST, noted=False) as file:
        for about in () if ours else (os.fstat(file.fileno()), os.stat(os.path.dirname(path))):
            if about.st_uid != os.geteuid() or about.st_mode & OTHERS_MAY_WRITE:
                raise LookupError(path)
        return file.read()


class CacheFile:
    """A file of compiled forms that is whole and up to date."""

    def __init__(self, content: bytes) -> None:
        head, *self._lines = content.split(b"\n")
        checksum, _, head = head.partition(b" ")
        if checksum.decode() != _sum(head):
            raise LookupError("damaged")
        self._head = json.loads(head)
        if self._head["schema"] != SCHEMA or digest(self._head["sources"]) != self._head["digest"]:
            raise LookupError("of other sources")

    def result(self, key: str) -> CompiledResult:
        """The compiled forms of one result."""
        written = self._line(key)
        trees = self._checked(f"trees of {key}")  # read when a search needs them
        return _read_result(written, self._line(written["notation"]), lambda: json.loads(trees))

    def _line(self, name: str) -> dict[str, Any]:
        return json.loads(self._checked(name))

    def _checked(self, name: str) -> bytes:
        place, checksum = self._head["lines"][name]
        if _sum(line := self._lines[place]) != checksum:
            raise LookupError("damaged")
        return line


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digest(sources: Iterable[str]) -> str:
    """The SHA-256 of sources of ours, by their places in the package."""
    found = hashlib.sha256()
    for name in sources:
        with open(os.path.join(ROOT, name), "rb") as file:
            content = file.read()
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _read_result(
    written: Mapping[str, Any], notation: Mapping[str, Any], trees: Callable[[], Mapping[str, Any]]
) -> CompiledResult:
    """A result as `_write_result` has written it, with its trees as `_write_structure` has."""
    key: str = written["key"]

    def whole() -> Result:
        from fedbounds.bounds.theory.registry import load

        return load(key)

    def compiled() -> CompiledResult:
        from fedbounds.bounds.evaluation.numpy_code import compile_result

        return compile_result(whole())

    def read_rule(rule: Sequence[Any], own: Callable[[], NumericRule]) -> NumericRule:
        name, inputs, why, free, vectors, vector, formula = rule
        if isinstance(formula, Mapping):
            function = NumpyRule(tuple(inputs), frozenset(vectors), vector, lambda: read_program(formula))
        elif formula is None:  # a function of its paper without a name

            def function(*values: np.ndarray) -> Any:
                return own().rule(*values)
        else:

            def function(*values: np.ndarray) -> Any:
                return function_at(formula)(*values)

        return NumericRule(name, tuple(inputs), function, why, free)

    def read_form(place: int, form: Mapping[str, Any]) -> CompiledForm:
        return CompiledForm(
            result=result,
            **{name: form[name] for name in CompiledForm.COPIED if name not in ("variables", "needs")},
            variables=frozenset(form["variables"]),
            needs=frozenset(form["needs"]),
            terms=tuple(form["terms"]),
            conditions=_read_conditions(form["conditions"]),
            assumptions=tuple(form["assumptions"]),
            prescribes=tuple(form["prescribes"]),
            derived=tuple(
                read_rule(written["rules"][rule], lambda k=k: compiled().forms[place].derived[k])
                for k, rule in enumerate(form["derived"])
            ),
            own_measure=None if form["measure"] is None else _read_measure(form["measure"]),
            whole=lambda: whole().form(form["name"]),
            program=lambda which: read_program(form["programs"][which]),
            standing=lambda: AuditStatus(*form["standing"]),
            covers=lambda: tuple(_read_cover(written["covers"][cover]) for cover in form["covers"]),
            structure=lambda: _read_structure(trees()[form["name"]], lambda: compiled().forms[place].structure()),
            feasible=None if form["feasible"] is None else _read_conditions(form["feasible"]),
            witnessed=_read_conditions(form["witnessed"]),
            computed_from=tuple(form["computed_from"]),
        )

    result = CompiledResult(
        key,
        written["source"],
        _read_measure(written["measure"]),
        Notation([_read_quantity(*each) for each in notation["symbols"]]),
        written["default"],
        tuple(read_rule(rule, lambda k=k: compiled().floors[k]) for k, rule in enumerate(notation["floors"])),
        whole,
    )
    result.forms.extend(read_form(place, form) for place, form in enumerate(written["forms"]))
    return result


def _read_conditions(written: Sequence[Any]) -> tuple[CompiledCondition, ...]:
    return tuple(
        CompiledCondition(op, why, limits, legal, lambda texts=texts: PrintedCondition(*texts))
        for op, why, limits, legal, texts in written
    )


def _read_quantity(
    name: str, latex: str, meaning: str, concept: str, domain: list[Any], unit: list[Any], shape: list[Any], *rest: Any
) -> Quantity:
    return Quantity(name, latex, meaning, concept, Domain(*domain), _read_dimension(unit), tuple(shape), *rest)


def _read_dimension(unit: list[Any]) -> Dimension:
    return Dimension(tuple((name, power if isinstance(power, int) else _fraction(power)) for name, power in unit))


def _fraction(power: str) -> Any:
    from fractions import Fraction

    return Fraction(power)


def _read_structure(written: Mapping[str, Any], origin: Callable[[], Structure]) -> Structure:
    """The structure of a form; where its expressions are needed, they are found at the same places."""
    trees = read_trees(written["trees"], lambda: postorder(_all_trees(origin())))
    sides = tuple((trees[left], trees[right]) for left, right in written["sides"])
    return Structure(tuple(trees[k] for k in written["terms"]), sides, written["length"])


def _all_trees(structure: Structure) -> list[Tree]:
    return [*structure.terms, *(side for sides in structure.sides for side in sides)]


def _read_cover(written: list[Any] | None) -> Cover | None:
    if written is None:
        return None
    *boxes, by = written
    holds, perhaps = (tuple(tuple((name, frozenset(kinds)) for name, kinds in box) for box in each) for each in boxes)
    return Cover(holds, perhaps, by)


def _read_measure(written: list[Any]) -> Measure:
    aggregate, over, of, latex, unit, *rest = written
    return Measure(aggregate, over, of, latex, _read_dimension(unit), *rest)


# Writing needs sympy.


def write_compiled(paper: str, path: str | None = None, only: str = "") -> None:
    """Write the compiled forms of a paper of ours."""
    from pathlib import Path

    from fedbounds.bounds.inputs.atomic_files import write_file
    from fedbounds.bounds.theory.registry import load, paper_module

    results = [load(only)] if only else paper_module(paper).RESULTS
    write_file(Path(path or _shipped(paper)), serialize_results(paper, results))


def cache_result(key: str) -> None:
    """Write the compiled forms of a result of ours to the user's cache, unless they are there or it is not writable."""
    found = KEY.fullmatch(key)
    if found is None or read_cached(key) is not None:
        return
    from fedbounds.bounds.theory.registry import PAPERS

    paper, name = found.groups()
    if paper in PAPERS:
        path = _cached(paper, name)
        with suppress(OSError, FedboundsError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            write_compiled(paper, path, key)
            read_cached.cache_clear()


def serialize_results(paper: str, results: Iterable[Result]) -> bytes:
    """The file of the compiled forms of results of one paper."""
    from fedbounds.bounds.evaluation.numpy_code import compile_result

    notations: dict[int, str] = {}
    lines: dict[str, bytes] = {}
    for result in map(compile_result, results):
        notation = notations.setdefault(id(result.notation), f"notation {len(notations)}")
        lines.setdefault(notation, _json(_write_notation(result)))
        lines[result.key] = _json({"notation": notation, **_write_result(result)})
        lines[f"trees of {result.key}"] = _json(
            {form.name: _write_structure(form.structure()) for form in result.forms}
        )
    places = {name: (k, _sum(line)) for k, (name, line) in enumerate(lines.items())}
    sources = sorted(_sources(paper))
    head = _json({"schema": SCHEMA, "sources": sources, "digest": digest(sources), "lines": places})
    return b"\n".join([_sum(head).encode() + b" " + head, *lines.values(), b""])


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _sources(paper: str) -> set[str]:
    """The sources of a paper's compiled forms: its ledger, and what the paper, its errata and this module import."""
    here = os.path.relpath(_paper_folder(paper), ROOT)
    beside = [f"{here}/{name}" for name in ("errata.py", "errata.toml", "ledger.json")]
    found: set[str] = {name for name in beside if os.path.exists(os.path.join(ROOT, name))}
    left = [f"{here}/__init__.py", *WRITERS, *found]
    found.update(left)
    while left:
        name = left.pop()
        if name.endswith(".py"):
            new = {*_imported(name)} - found
            found |= new
            left += new
    return found


def _imported(name: str) -> Iterator[str]:
    """The files of the package that one of its modules imports, and their data files."""
    with open(os.path.join(ROOT, name), "rb") as file:
        places = _imported_places(file.read())
    for place in places:
        inside = place.removeprefix(PACKAGE).strip(".").replace(".", "/")
        for found in (f"{inside}.py", f"{inside}.toml", f"{inside}/__init__.py".strip("/")):
            if os.path.isfile(os.path.join(ROOT, found)):
                yield found


@cache
def _imported_places(source: bytes) -> tuple[str, ...]:
    """The modules of the package that a source imports, and the names that it imports from them."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    inside = [node for node in nodes if f"{node.module}.".startswith(f"{PACKAGE}.")]
    return tuple(f"{node.module}{name}" for node in inside for name in ("", *(f".{a.name}" for a in node.names)))


def _write_notation(result: CompiledResult) -> dict[str, Any]:
    symbols = [
        (
            *(q.name, q.latex, q.meaning, q.concept),
            (q.domain.low, q.domain.high, q.domain.low_open, q.domain.high_open, q.domain.integer, q.domain.infinite),
            _write_dimension(q.dimension),
            *(q.shape, q.default, q.total),
        )
        for q in result.notation.values()
    ]
    return {"symbols": symbols, "floors": [_write_rule(rule) for rule in result.floors]}


def _write_dimension(unit: Dimension) -> list[Any]:
    return [(name, int(power) if power == int(power) else str(power)) for name, power in unit.exponents]


def _write_measure(measure: Measure) -> list[Any]:
    rest = (measure.expectation, measure.given, measure.signed, measure.lower)
    return [measure.aggregate, measure.over, measure.of, measure.latex, _write_dimension(measure.dimension), *rest]


def _write_rule(rule: NumericRule) -> list[Any]:
    from fedbounds.bounds.evaluation.numpy_code import place_of

    head = [rule.name, rule.inputs, rule.why, rule.free]
    if isinstance(rule.rule, NumpyRule):
        return [*head, sorted(rule.rule.vectors), rule.rule.vector, rule.rule.program()._asdict()]
    try:
        return [*head, [], False, place_of(rule.rule, rule.name)]
    except LookupError:
        return [*head, [], False, None]


def _write_structure(structure: Structure) -> dict[str, Any]:
    trees = postorder(_all_trees(structure))
    places = {tree: k for k, tree in enumerate(trees)}
    return {
        "trees": serialize_trees(trees),
        "terms": [places[tree] for tree in structure.terms],
        "sides": [(places[left], places[right]) for left, right in structure.sides],
        "length": structure.length,
    }


def _write_cover(cover: Cover | None) -> list[Any] | None:
    if cover is None:
        return None
    boxes = ([[(name, sorted(kinds)) for name, kinds in box] for box in each] for each in (cover.holds, cover.perhaps))
    return [*boxes, cover.by]


def _write_conditions(conditions: Iterable[CompiledCondition]) -> list[Any]:
    return [(c.op, c.why, c.limits, c.legal, c.printed()) for c in conditions]


def _write_result(result: CompiledResult) -> dict[str, Any]:
    """A compiled result as data; see `_read_result`."""
    rules: dict[bytes, tuple[int, list[Any]]] = {}
    covers: dict[Cover | None, int] = {}

    def place(rule: NumericRule) -> int:
        written = _write_rule(rule)
        return rules.setdefault(_json({"rule": written}), (len(rules), written))[0]

    forms = [
        {
            **{name: getattr(form, name) for name in CompiledForm.COPIED},
            "variables": sorted(form.variables),
            "needs": sorted(form.needs),
            "terms": form.terms,
            "conditions": _write_conditions(form.conditions),
            "feasible": None if form.feasible is None else _write_conditions(form.feasible),
            "witnessed": _write_conditions(form.witnessed),
            "computed_from": form.computed_from,
            "assumptions": form.assumptions,
            "prescribes": form.prescribes,
            "derived": [place(rule) for rule in form.derived],
            "measure": None if form.own_measure is None else _write_measure(form.own_measure),
            "programs": {which: form.program(which)._asdict() for which in WHICH},
            "standing": form.standing(),
            "covers": [covers.setdefault(cover, len(covers)) for cover in form.covers()],
        }
        for form in result.forms
    ]
    return {
        "key": result.key,
        "source": result.source,
        "measure": _write_measure(result.measure),
        "default": result.default,
        "rules": [rule for _, rule in rules.values()],
        "covers": [_write_cover(cover) for cover in covers],
        "forms": forms,
    }
