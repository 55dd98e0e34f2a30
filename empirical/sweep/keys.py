r"""Content keys of runs.

$$\text{key} = \mathrm{SHA256}\big(\text{canonical JSON of (task without labels, sources, data)}\big)$$

- *task*: the resolved dictionary with its seeds, without labels and the sweep's name: sweeps share equal runs.
- *sources*: a digest of the bytes of all modules that the run may import, found statically from `import` statements and
  from texts that name a module. Modules of other papers are left out; the package of a plug-in algorithm is included.
- *data*: checksums of the contents of the files that the task reads.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedbounds.bounds.errors import FedboundsError

ENTRY = "fedbounds.empirical.sweep.task"


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no spaces, ASCII, and one spelling per number (`1.0` is `1`, `-0.0` is `0`).

    Truth values are not numbers; infinities are written as JSON's extension `Infinity`.
    """
    return json.dumps(_canonical_value(value), sort_keys=True, separators=(",", ":"))


def _canonical_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise FedboundsError(f"the keys of {value!r} must be texts")
        return {key: _canonical_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical_value(inner) for inner in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return int(value) if value.is_integer() else value
    raise FedboundsError(
        f"{value!r} has no canonical form: not null, a truth value, a number, a text, a list or a table"
    )


def run_key(task: Mapping[str, Any], sources: str, data: Mapping[str, str]) -> str:
    """The key of one run, 64 hexadecimal digits."""
    dependencies = {key: value for key, value in task.items() if key != "labels"}
    if "device" in dependencies:  # one card computes what another does
        dependencies["device"] = dependencies["device"].partition(":")[0]
    for place in data:
        table, _, name = place.partition(".")
        dependencies[table] = {key: value for key, value in dependencies[table].items() if key != name}
    text = canonical_json({"task": dependencies, "sources": sources, "data": dict(data)})
    return hashlib.sha256(text.encode()).hexdigest()


def algorithm_modules(task: Mapping[str, Any]) -> frozenset[str]:
    """The modules of the algorithms that a task names."""
    from fedbounds.empirical.algorithms import algorithms

    tables = [phase["algorithm"] for phase in task.get("phases", ())] or [task["algorithm"]]
    return frozenset(algorithms()[table["kind"]].__module__ for table in tables)


def source_digest(also: Iterable[str] = (), entry: str = ENTRY, root: Path | None = None) -> str:
    """SHA-256 over the names and the bytes of `source_files(also, entry, root)`."""
    digest = hashlib.sha256()
    for name, path in sorted(source_files(also, entry, root).items()):
        content = path.read_bytes()
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def source_files(also: Iterable[str] = (), entry: str = ENTRY, root: Path | None = None) -> dict[str, Path]:
    """The modules that importing and calling `entry` may load, and those that a task adds: name to file.

    Packages that contain `entry` are left out unless something else imports them.
    """
    package = entry.rsplit(".", 2)[0]
    roots = {package: Path(__file__).parents[3] if root is None else root}
    for name in also:
        if not name.startswith(f"{package}."):
            outermost = name.partition(".")[0]
            place = Path(str(sys.modules[outermost].__file__))
            roots[outermost] = place.parents[1] if place.stem == "__init__" else place.parent
    found: dict[str, Path] = {}
    tried = set[str]()
    waiting = [entry, *(each for name in also for each in _loaded_modules(name, roots))]
    while waiting:
        name = waiting.pop()
        if name in tried:
            continue
        tried.add(name)
        path = _module_file(roots[_package(name, roots)], name)
        if path is None:
            continue
        found[name] = path
        for imported in _imports(path, name):
            if _package(imported, roots):
                waiting += _loaded_modules(imported, roots)
    return found


def _package(name: str, packages: Iterable[str]) -> str:
    """The package that a dotted name is in; empty if it is in none."""
    return next((each for each in packages if name == each or name.startswith(f"{each}.")), "")


def _loaded_modules(name: str, packages: Iterable[str]) -> list[str]:
    """A module and the packages that importing it loads first."""
    parts, outermost = name.split("."), _package(name, packages)
    return [".".join(parts[:depth]) for depth in range(outermost.count(".") + 1, len(parts) + 1)]


def _module_file(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split("."))
    candidates = (base / "__init__.py", base.with_name(base.name + ".py"))
    return next((path for path in candidates if path.is_file()), None)


def _imports(path: Path, name: str) -> frozenset[str]:
    """Dotted names that a module mentions; some may be attributes rather than modules, or no names of modules."""
    home = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _imported_names(path.read_bytes(), home, str(path))


@lru_cache(maxsize=4096)  # by content: whatever happened to a file, nothing is remembered of what it was
def _imported_names(content: bytes, package: str, file: str) -> frozenset[str]:
    """The names in a source of a package, each once."""
    return frozenset(_names(ast.parse(content, filename=file), package.split(".")))


def _names(tree: ast.Module, home: list[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = home[: len(home) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            dotted = node.value.partition(":")[0]
            names = [dotted] if all(part.isidentifier() for part in dotted.split(".")) else []
        yield from names
