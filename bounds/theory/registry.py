"""The registry of papers, and the modules that each defines in every layer.

Papers of fedbounds are found by their folders: `fedbounds.<layer>.papers.<paper>`, where the layer is bounds, empirical
or figures. An installed package registers a paper by an entry point of the group `fedbounds.papers`; its modules for
all layers are submodules of that one package.
"""

from __future__ import annotations

import glob
import importlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import fedbounds.bounds
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.inputs.plugins import BrokenPlugin, run_guarded

if TYPE_CHECKING:
    from importlib import metadata

    from fedbounds.bounds.theory.assumptions import Assumption
    from fedbounds.bounds.theory.result import Result
    from fedbounds.bounds.theory.statement import Statement

T = TypeVar("T")
GROUP = "fedbounds.papers"
PAPERS = tuple(
    sorted(
        folder.name.replace("_", "-")
        for place in fedbounds.bounds.__path__
        for folder in os.scandir(os.path.join(place, "papers"))
        if os.path.isfile(os.path.join(folder.path, "__init__.py"))
    )
)
REFERENCES = {  # papers of theorem files that come with fedbounds, each with its folder
    folder.name: folder.path
    for place in fedbounds.bounds.__path__
    for folder in sorted(os.scandir(os.path.join(place, "papers", "references")), key=lambda one: one.name)
    if folder.is_dir() and folder.name != "__pycache__"
}
ALL_REFERENCES = "references"  # stands for all of them where a paper is named


@dataclass(frozen=True)
class Paper:
    """A paper: its key, reference and results in the paper's order, and the assumptions that all results share."""

    key: str
    reference: str
    bibtex: str
    results: tuple[Result, ...]
    scope: tuple[Assumption, ...] = ()
    version: str = ""  # of the text that its results and errata are about: venue or arXiv number, and year


def named_papers(name: str) -> list[Paper]:
    """The paper of this name, or every paper of reference theorems."""
    return [paper(one) for one in (REFERENCES if name == ALL_REFERENCES else (name,))]


def paper_names() -> list[str]:
    """Every paper's key: ours, those of reference theorems, of installed packages and of added theorem files."""
    return [*PAPERS, *REFERENCES, *_installed_papers(), *_ADDED]


_ADDED: dict[str, ModuleType] = {}  # papers of theorem files, by key


def add_theorems(path: str) -> list[Result]:
    """The theorem of a file, or those of all files of a folder, as results of their papers from now on.

    Raises:
        FedboundsError: no such file or folder, no theorem in it, a file with an error, or a key that exists.
    """
    from fedbounds.bounds.theory.theorem_file import read_theorem_files

    by_paper: dict[str, list[Any]] = {}
    for one in read_theorem_files(path):
        by_paper.setdefault(one.result.paper, []).append(one)
    for name, files in by_paper.items():
        _refuse_names(files[0].result, paper_names())
        _ADDED[name] = _module_of_files(name, files, f"theorem files in {path}")
    return [one.result for files in by_paper.values() for one in files]


def _module_of_files(name: str, files: list[Any], reference: str) -> ModuleType:
    """A paper of theorem files, as a module."""
    module = ModuleType(name, f"Theorem files: {name}.")
    module.__dict__.update(
        __file__=files[0].result.file,  # a ledger lies beside it
        RESULTS=tuple(one.result for one in files),
        REFERENCE=reference,
        BIBTEX="\n".join(dict.fromkeys(one.bibtex.strip() for one in files if one.bibtex)),
    )
    return module


@lru_cache(maxsize=256)
def _reference_module(name: str) -> ModuleType:
    from fedbounds.bounds.theory.theorem_file import read_theorem_files

    files = read_theorem_files(REFERENCES[name])
    return _module_of_files(name, files, files[0].result.source.paper)


def _refuse_names(result: Result, names: Iterable[str]) -> None:
    """Refuse the result of a theorem file whose paper has one of these names."""
    if result.paper in names:
        raise FedboundsError(f"{result.file}: the paper {result.paper!r} exists; begin its keys with another name")


@lru_cache(maxsize=1)
def _installed_papers() -> dict[str, metadata.EntryPoint]:
    from importlib import metadata  # takes its time

    return {point.name: point for point in metadata.entry_points(group=GROUP) if point.name not in PAPERS}


_BROKEN: dict[str, str] = {}  # papers of other packages that could not be loaded, and why: no code runs twice


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Load a paper; one of another package that fails once is broken."""
    if name in PAPERS or name in REFERENCES or name in _ADDED:
        yield
        return
    if name in _BROKEN:
        raise BrokenPlugin(_BROKEN[name])
    try:
        with run_guarded(f"the paper {name!r}"):
            yield
    except BrokenPlugin as error:
        _BROKEN[name] = str(error)
        raise


def paper_module(name: str) -> ModuleType:
    """The module of one paper."""
    if name in PAPERS:
        return importlib.import_module(_place(name, "bounds"))
    if name in REFERENCES:
        return _reference_module(name)
    if name in _ADDED:
        return _ADDED[name]
    if name in _installed_papers():
        with _loading(name):
            return _with_results(name, _installed_papers()[name].load())
    raise unknown_name("paper", name, paper_names())


@lru_cache(maxsize=64)
def _with_results(name: str, module: ModuleType) -> ModuleType:
    """The module of an installed paper; the results of a package that defines none are its theorem files."""
    folder = os.path.dirname(module.__file__ or "")
    if hasattr(module, "RESULTS") or not glob.glob(os.path.join(glob.escape(folder), "*.toml")):
        return module
    from fedbounds.bounds.theory.theorem_file import read_theorem_files

    files = read_theorem_files(folder)
    module.__dict__.update(vars(_module_of_files(name, files, files[0].result.source.paper)) | vars(module))
    return module


def _place(name: str, floor: str) -> str:
    return f"fedbounds.{floor}.papers.{name.replace('-', '_')}"


def paper_submodule(name: str, floor: str, what: str) -> ModuleType | None:
    """The module of this name that a paper defines in a layer; None if it defines none."""
    if name in REFERENCES or name in _ADDED:
        return None
    if name not in PAPERS:
        return submodule(paper_module(name), what)
    home = _place(name, floor)
    return submodule(importlib.import_module(home), what) if find_spec(home) else None


def submodule(module: ModuleType, what: str) -> ModuleType | None:
    """A submodule of a package; None where it has none of this name, or is a module without submodules."""
    place = f"{module.__name__}.{what}"
    with nullcontext() if place.startswith("fedbounds.") else run_guarded(f"{place!r}"):
        return importlib.import_module(place) if hasattr(module, "__path__") and find_spec(place) else None


def paper_submodules(floor: str, what: str) -> dict[str, ModuleType]:
    """The modules of this name in a layer, paper by paper; one that cannot be loaded is one warning."""
    found: dict[str, ModuleType] = {}
    for name in paper_names():
        try:
            if (module := paper_submodule(name, floor, what)) is not None:
                found[name] = module
        except BrokenPlugin as error:
            _warn(str(error))
    return found


def merge_tables(floor: str, what: str, read: Callable[[ModuleType], Mapping[str, T]]) -> dict[str, T]:
    """One table from the same module of every paper; see `paper_submodule`.

    If two papers use a name, the first is kept, so that no installed package replaces an entry of fedbounds. A package
    that cannot be loaded or read is one warning, never an error.

    Example:
        >>> len(merge_tables("bounds", "claims", lambda module: {module.__name__: module.claims}))
        5
    """
    found: dict[str, T] = {}
    for name, module in paper_submodules(floor, what).items():
        try:
            with nullcontext() if name in PAPERS else run_guarded(f"{module.__name__!r}"):
                table = dict(read(module))
            found |= {key: each for key, each in table.items() if key not in found}
        except BrokenPlugin as error:
            _warn(str(error))
    return found


@lru_cache(maxsize=64)
def _warn(error: str) -> None:
    logging.getLogger("fedbounds").warning("%s", error)


@lru_cache(maxsize=64)
def paper(name: str) -> Paper:
    """Load a paper.

    Example:
        >>> paper("arbitrary-participation").results[0].key
        'arbitrary-participation/theorem-3.1'
    """
    module = paper_module(name)
    with _loading(name):
        scope, version = tuple(vars(module).get("SCOPE", ())), str(vars(module).get("VERSION", ""))
        found = Paper(name, module.REFERENCE, module.BIBTEX, tuple(module.RESULTS), scope, version)
        for result in found.results:
            if result.paper != name:
                raise FedboundsError(f"the result {result.key!r} must have a key that starts with {name}/")
        return found


@lru_cache(maxsize=64)
def statements(name: str) -> tuple[Statement, ...]:
    """The definitions, assumptions, equations and remarks of a paper (`<paper>.statements:STATEMENTS`)."""
    listed = paper_submodule(name, "bounds", "statements")
    if listed is None:
        return ()
    taken = {result.key for result in paper(name).results}
    with nullcontext() if name in PAPERS else run_guarded(f"statements of the paper {name!r}"):
        found: tuple[Statement, ...] = tuple(listed.STATEMENTS)
        for one in found:
            if one.paper != name or one.key in taken:
                raise FedboundsError(f"the statement {one.key!r} must have a key of its own, {name}/...")
            taken.add(one.key)
        return found


def papers(*, references: bool = False) -> Iterator[Paper]:
    """Every paper, with those of reference theorems on request; one that cannot be loaded is one warning."""
    for name in paper_names():
        if name in REFERENCES and not references:
            continue
        try:
            found = paper(name)
            if name not in PAPERS:
                statements(name)
            yield found
        except BrokenPlugin as error:
            _warn(str(error))


def load(key: str) -> Result:
    """The result with this key, or of the theorem file with this path.

    Raises:
        FedboundsError: no such paper or result; names the nearest. An error in a file names its line.

    Example:
        >>> load("arbitrary-participation/theorem-3.1").kind
        'theorem'
    """
    if not isinstance(key, str):
        raise FedboundsError(f"key = {quote(key)} must be the key of a result, as 'fedau/theorem-2'")
    if key.endswith(".toml"):
        from fedbounds.bounds.theory.theorem_file import read_theorem_file  # few commands need it

        found = read_theorem_file(key).result
        shipped = REFERENCES.get(found.paper)
        if shipped is None or not os.path.samefile(os.path.dirname(os.path.abspath(key)), shipped):
            _refuse_names(found, [*PAPERS, *REFERENCES, *_installed_papers()])
        return found
    name = key.partition("/")[0]
    if name not in PAPERS and name not in paper_names():
        if near := [r.key for one in PAPERS for r in paper_module(one).RESULTS if r.key == f"{one}/{key}"]:
            raise FedboundsError(f"unknown paper {name!r}; a key is PAPER/RESULT: {' or '.join(near)}?")
        raise unknown_name("paper", name, paper_names())
    for result in paper(name).results:
        if result.key == key:
            return result
    raise unknown_name("result", key, [r.key for r in paper(name).results], f"fedbounds list --paper {name}")


def as_result(result: Result | str) -> Result:
    """The result itself, or the one with this key.

    Example:
        >>> as_result("fedau/theorem-2").key
        'fedau/theorem-2'
    """
    from fedbounds.bounds.theory.result import Result

    if isinstance(result, str):
        return load(result)
    if not isinstance(result, Result):
        raise FedboundsError(f"result = {quote(result)} must be a result or its key, as fedau/theorem-2")
    return result


def results() -> Iterator[Result]:
    """Every result of every paper that can be loaded, and every reference theorem."""
    for loaded in papers(references=True):
        yield from loaded.results
