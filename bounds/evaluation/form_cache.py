"""Compiled forms of the papers' results, cached as data, so that a bound is evaluated without sympy.

A file of views says which sources it was made of, with their SHA-256: where one of them has changed since, it is not
read, and neither is a damaged one. Views lie in each paper's folder of a wheel (`write_views`), and in the
user's cache, where one is written after a result was asked for. What is kept is numbers, words and programs
(`fedbounds.bounds.evaluation.program`), never code, and a file of the cache is read only if nobody but its reader can
have written it. Results of installed packages are not cached, because their sources are not known.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.audit.status import AuditStatus
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compile_form import form_view, view
from fedbounds.bounds.evaluation.compiled_form import (
    ConditionView,
    Follows,
    FormView,
    NumpyRule,
    PrintedCondition,
    ResultView,
)
from fedbounds.bounds.evaluation.expression_tree import Structure, Tree, postorder, read_trees, serialize_trees
from fedbounds.bounds.evaluation.program import Coded, function_at, read_program
from fedbounds.bounds.inputs.atomic_files import cache_folder
from fedbounds.bounds.inputs.user_files import open_regular
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.problem_class import Cover
from fedbounds.bounds.theory.symbols import Dimension, Domain, Notation, Quantity

if TYPE_CHECKING:
    from fedbounds.bounds.theory.result import Result

SCHEMA = "fedbounds.views/3"
NAME = "views.json"
PACKAGE = "fedbounds.bounds"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of that package
WRITERS = ("evaluation/form_cache.py", "evaluation/numpy_code.py", "audit/ledger.py")
WHICH = ("value", "parts", "sides", "feasible")  # the programs of a form
LARGEST = 2**23  # bytes of one file
KEY = re.compile(r"([a-z0-9-]+)/([a-z0-9.-]+)")
OTHERS_MAY_WRITE = 0o022


def as_view(result: Result | str) -> ResultView:
    """The view of a result, or of the one with this key.

    Raises:
        FedboundsError: no such key, or neither a result nor a key.

    Example:
        >>> as_view("fedau/theorem-2").form("printed").terms[0]
        'initial gap'
    """
    kept = cached_view(result) if isinstance(result, str) else None
    if kept is not None:
        return kept
    from fedbounds.bounds.theory.registry import as_result

    return view(as_result(result))


@lru_cache(maxsize=64)
def cached_view(key: str) -> ResultView | None:
    """The view of one of our results, if it is kept and nothing that it was made of has changed."""
    found = KEY.fullmatch(key)
    if found is None:
        return None
    paper, name = found.groups()
    for path, ours in ((_shipped(paper), True), (_cached(paper, name), False)):
        with suppress(
            FedboundsError, ValueError, LookupError, TypeError, OSError
        ):  # missing, damaged, of other sources
            return _Kept(_content(path, ours)).view(key)
    return None


def _paper_folder(paper: str) -> str:
    return os.path.join(ROOT, "papers", paper.replace("-", "_"))


def _shipped(paper: str) -> str:
    return os.path.join(_paper_folder(paper), NAME)


def _cached(paper: str, name: str) -> str:
    return os.path.join(cache_folder(), "views", hashlib.sha256(ROOT.encode()).hexdigest()[:16], paper, f"{name}.json")


def _content(path: str, ours: bool) -> bytes:
    """A file of views.

    Raises:
        FedboundsError: it cannot be read, is no regular file, or is too large.
        LookupError: others may have written it.
    """
    with open_regular(path, path, LARGEST, noted=False) as file:
        for about in () if ours else (os.fstat(file.fileno()), os.stat(os.path.dirname(path))):
            if about.st_uid != os.geteuid() or about.st_mode & OTHERS_MAY_WRITE:
                raise LookupError(path)
        return file.read()


class _Kept:
    """A file of views that is whole and up to date."""

    def __init__(self, content: bytes) -> None:
        head, *self._lines = content.split(b"\n")
        checksum, _, head = head.partition(b" ")
        if checksum.decode() != _sum(head):
            raise LookupError("damaged")
        self._head = json.loads(head)
        if self._head["schema"] != SCHEMA or digest(self._head["sources"]) != self._head["digest"]:
            raise LookupError("of other sources")

    def view(self, key: str) -> ResultView:
        """The view of one result."""
        said = self._line(key)
        trees = self._checked(f"trees of {key}")  # read when a search asks for them
        return _result(said, self._line(said["notation"]), lambda: json.loads(trees))

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
    """The SHA-256 of sources of ours, by their places in the package.

    Raises:
        OSError: one is not there.
    """
    found = hashlib.sha256()
    for name in sources:
        with open(os.path.join(ROOT, name), "rb") as file:
            content = file.read()
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _result(said: Mapping[str, Any], letters: Mapping[str, Any], trees: Callable[[], Mapping[str, Any]]) -> ResultView:
    """The view of a result as `_written` has written it, with its trees as `_written_structure` has."""
    key: str = said["key"]

    def whole() -> Result:
        from fedbounds.bounds.theory.registry import load

        return load(key)

    def rule(written: Sequence[Any], own: Callable[[], Any]) -> Follows:
        name, inputs, why, free, vectors, vector, formula = written
        if isinstance(formula, Mapping):
            found = NumpyRule(tuple(inputs), frozenset(vectors), vector, lambda: read_program(formula).coded)
        else:
            found = _Elsewhere(formula, own)
        return Follows(name, tuple(inputs), found, why, free)

    notation = Notation([_quantity(*each) for each in letters["letters"]])
    floors = tuple(rule(each, lambda k=k: view(whole()).floors[k].rule) for k, each in enumerate(letters["floors"]))
    made = ResultView(key, said["source"], _measure(said["measure"]), notation, said["default"], floors, whole)
    rules = said["rules"]
    for form in said["forms"]:
        name, programs = form["name"], form["programs"]
        made.forms.append(
            FormView(
                made,
                name,
                form["order_only"],
                form["hides"],
                form["asymptotic"],
                form["refuted_by"],
                form["generous"],
                tuple(form["terms"]),
                _conditions(form["conditions"]),
                tuple(form["assumptions"]),
                tuple(form["prescribes"]),
                tuple(
                    rule(rules[place], lambda k=k, name=name: form_view(whole(), whole().form(name)).derived[k].rule)
                    for k, place in enumerate(form["derived"])
                ),
                frozenset(form["variables"]),
                frozenset(form["needs"]),
                None if form["measure"] is None else _measure(form["measure"]),
                lambda name=name: whole().form(name),
                lambda which, programs=programs: read_program(programs[which]).coded,
                lambda words=form["standing"]: AuditStatus(*words),
                lambda places=form["covers"]: tuple(_cover(said["covers"][place]) for place in places),
                lambda name=name: _structure(trees()[name], whole, name),
                None if form["feasible"] is None else _conditions(form["feasible"]),
                _conditions(form["witnessed"]),
                tuple(form["computed_from"]),
            )
        )
    return made


def _conditions(written: Sequence[Any]) -> tuple[ConditionView, ...]:
    return tuple(
        ConditionView(op, why, limits, legal, lambda words=words: PrintedCondition(*words))
        for op, why, limits, legal, words in written
    )


class _Elsewhere:
    """A numpy function by its module and name, or else from its paper."""

    def __init__(self, place: str | None, own: Callable[[], Any]) -> None:
        self._place, self._own = place, own

    def __call__(self, *values: np.ndarray) -> Any:
        return (self._own() if self._place is None else function_at(self._place))(*values)


def _quantity(
    name: str, latex: str, meaning: str, concept: str, domain: list[Any], unit: list[Any], shape: list[Any], *rest: Any
) -> Quantity:
    return Quantity(name, latex, meaning, concept, Domain(*domain), _dimension(unit), tuple(shape), *rest)


def _dimension(unit: list[Any]) -> Dimension:
    return Dimension(tuple((name, power if isinstance(power, int) else _fraction(power)) for name, power in unit))


def _fraction(power: str) -> Any:
    from fractions import Fraction

    return Fraction(power)


def _structure(said: Mapping[str, Any], whole: Callable[[], Result], name: str) -> Structure:
    """The structure of a form; where its expressions are asked for, they are found at the same places."""
    trees = read_trees(said["trees"], lambda: postorder(_all(view(whole()).form(name).structure())))
    return Structure(
        tuple(trees[k] for k in said["terms"]), tuple((trees[k], trees[j]) for k, j in said["sides"]), said["length"]
    )


def _all(structure: Structure) -> list[Tree]:
    return [*structure.terms, *(side for sides in structure.sides for side in sides)]


def _cover(said: list[Any] | None) -> Cover | None:
    if said is None:
        return None
    *boxes, by = said
    holds, perhaps = (tuple(tuple((name, frozenset(kinds)) for name, kinds in box) for box in each) for each in boxes)
    return Cover(holds, perhaps, by)


def _measure(said: list[Any]) -> Measure:
    aggregate, over, of, latex, unit, *rest = said
    return Measure(aggregate, over, of, latex, _dimension(unit), *rest)


# Here on sympy is needed: a view is written.


def write_views(paper: str, path: str | None = None, only: str = "") -> None:
    """Write the views of our papers' results, for wheels beside the room.

    Args:
        paper: its key.
        path: where to.
        only: the key of the one result to write (default: all).

    Raises:
        FedboundsError: the place cannot be written.
    """
    from pathlib import Path

    from fedbounds.bounds.inputs.atomic_files import write_file
    from fedbounds.bounds.theory.registry import load, paper_module

    results = [load(only)] if only else paper_module(paper).RESULTS
    write_file(Path(path or _shipped(paper)), serialize_views(paper, results))


def cache_view(key: str) -> None:
    """Keep the view of one of our results in the user's cache, unless it is kept already or that cannot be written."""
    found = KEY.fullmatch(key)
    if found is None or cached_view(key) is not None:
        return
    from fedbounds.bounds.theory.registry import PAPERS

    paper, name = found.groups()
    if paper in PAPERS:
        path = _cached(paper, name)
        with suppress(OSError, FedboundsError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            write_views(paper, path, key)
            cached_view.cache_clear()


def serialize_views(paper: str, results: Iterable[Result]) -> bytes:
    """The file of these views, of results of one paper."""
    notations: dict[int, str] = {}
    lines: dict[str, bytes] = {}
    for result in results:
        letters = notations.setdefault(id(result.notation), f"notation {len(notations)}")
        lines.setdefault(letters, _json(_written_notation(result)))
        lines[result.key] = _json({"notation": letters, **_written(view(result))})
        structures = {form.name: _written_structure(form.structure()) for form in view(result).forms}
        lines[f"trees of {result.key}"] = _json(structures)
    places = {name: (k, _sum(line)) for k, (name, line) in enumerate(lines.items())}
    sources = sorted(_sources(paper))
    head = _json({"schema": SCHEMA, "sources": sources, "digest": digest(sources), "lines": places})
    return b"\n".join([_sum(head).encode() + b" " + head, *lines.values(), b""])


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _sources(paper: str) -> set[str]:
    """The sources of a paper's views: the modules that the paper, its errata and this module import, and its ledger."""
    here = os.path.relpath(_paper_folder(paper), ROOT)
    beside = [f"{here}/errata.py", f"{here}/ledger.json"]
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
    """The files of the package that one of its modules imports."""
    with open(os.path.join(ROOT, name), "rb") as file:
        module = ast.parse(file.read())
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith(f"{PACKAGE}."):
            for place in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                inside = place.removeprefix(PACKAGE).strip(".").replace(".", "/")
                for file in (f"{inside}.py", f"{inside}/__init__.py".strip("/")):
                    if os.path.isfile(os.path.join(ROOT, file)):
                        yield file


def _written_notation(result: Result) -> dict[str, Any]:
    letters = [
        (
            *(q.name, q.latex, q.meaning, q.concept),
            (q.domain.low, q.domain.high, q.domain.low_open, q.domain.high_open, q.domain.integer, q.domain.infinite),
            _written_unit(q.dimension),
            *(q.shape, q.default, q.total),
        )
        for q in result.notation.values()
    ]
    return {"letters": letters, "floors": [_written_rule(rule) for rule in view(result).floors]}


def _written_unit(unit: Dimension) -> list[Any]:
    return [(name, int(power) if power == int(power) else str(power)) for name, power in unit.exponents]


def _written_measure(measure: Measure) -> list[Any]:
    told = (measure.expectation, measure.given, measure.signed)
    return [measure.aggregate, measure.over, measure.of, measure.latex, _written_unit(measure.dimension), *told]


def _written_rule(rule: Follows) -> list[Any]:
    from fedbounds.bounds.evaluation.numpy_code import place_of

    said = [rule.name, rule.inputs, rule.why, rule.free]
    if isinstance(rule.rule, NumpyRule):
        return [*said, sorted(rule.rule.vectors), rule.rule.vector, _written_program(rule.rule.code())]
    try:
        return [*said, [], False, place_of(rule.rule, rule.name)]
    except LookupError:
        return [*said, [], False, None]


def _written_structure(structure: Structure) -> dict[str, Any]:
    trees = postorder(_all(structure))
    places = {tree: k for k, tree in enumerate(trees)}
    return {
        "trees": serialize_trees(trees),
        "terms": [places[tree] for tree in structure.terms],
        "sides": [(places[left], places[right]) for left, right in structure.sides],
        "length": structure.length,
    }


def _written_cover(cover: Cover | None) -> list[Any] | None:
    if cover is None:
        return None
    boxes = ([[(name, sorted(kinds)) for name, kinds in box] for box in each] for each in (cover.holds, cover.perhaps))
    return [*boxes, cover.by]


def _written_program(coded: Coded) -> dict[str, Any]:
    if coded.program is None:
        raise LookupError("an operation that programs do not know")
    return coded.program._asdict()


def _written_conditions(conditions: Iterable[ConditionView]) -> list[Any]:
    return [(c.op, c.why, c.limits, c.legal, c.said()) for c in conditions]


def _written(result: ResultView) -> dict[str, Any]:
    """A view as data; see `_result`."""
    rules: dict[bytes, int] = {}
    written: list[list[Any]] = []
    covers: dict[Cover | None, int] = {}
    forms = []
    for form in result.forms:
        places = []
        for rule in form.derived:
            said = _written_rule(rule)
            if (place := rules.setdefault(_json({"rule": said}), len(written))) == len(written):
                written.append(said)
            places.append(place)
        forms.append(
            {
                "name": form.name,
                "order_only": form.order_only,
                "hides": form.hides,
                "asymptotic": form.asymptotic,
                "refuted_by": form.refuted_by,
                "generous": form.generous,
                "terms": form.terms,
                "conditions": _written_conditions(form.conditions),
                "feasible": None if form.feasible is None else _written_conditions(form.feasible),
                "witnessed": _written_conditions(form.witnessed),
                "computed_from": form.computed_from,
                "assumptions": form.assumptions,
                "prescribes": form.prescribes,
                "derived": places,
                "variables": sorted(form.variables),
                "needs": sorted(form.needs),
                "measure": None if form.own_measure is None else _written_measure(form.own_measure),
                "programs": {which: _written_program(form.code(which)) for which in WHICH},
                "standing": form.standing(),
                "covers": [covers.setdefault(cover, len(covers)) for cover in form.covers()],
            }
        )
    return {
        "key": result.key,
        "source": result.source,
        "measure": _written_measure(result.measure),
        "default": result.default,
        "rules": written,
        "covers": [_written_cover(cover) for cover in covers],
        "forms": forms,
    }
