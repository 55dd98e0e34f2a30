r"""Content keys: a run's name is what it depends on, and nothing else.

$$\text{key} = \mathrm{SHA256}\big(\text{canonical JSON of (task without labels, sources, data)}\big)$$

- *task*: the resolved dictionary with its block of seeds. Its labels, the sweep's name and the layout of the
  file do not enter, so two sweeps that ask for the same run share it.
- *sources*: a digest of the modules of the package `fedbounds.empirical` that a run imports. The set is found
  statically, from the syntax trees: starting at the module that runs a task, every `import` at any depth of
  the code (also inside functions), every package on the way, and every text constant that is the name of a
  module of the package (tables of lazily imported names). The bytes are what is hashed, so a changed comment
  makes runs anew: too often rather than not often enough.
- *data*: the checksums of what the task reads. A file stands in the key by its content, not by where it lies.

The state of git, the versions of packages, the host and the time are provenance, kept beside a result.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedbounds.bounds.errors import FedboundsError

ENTRY = "fedbounds.empirical.sweep.task"


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no spaces, ASCII, and one spelling per number (`1.0` is `1`, `-0.0` is `0`).

    Truth values are not numbers; infinities are written as JSON's extension `Infinity`.

    Example:
        >>> canonical_json({"b": 1.0, "a": [True, 1e-3]})
        '{"a":[true,0.001],"b":1}'

    Raises:
        FedboundsError: NaN, a key that is not text, or a value JSON does not have.
    """
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise FedboundsError(f"the keys of {value!r} must be texts")
        return {key: _canonical(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return int(value) if value.is_integer() else value
    raise FedboundsError(
        f"{value!r} has no canonical form: not null, a truth value, a number, a text, a list or a table"
    )


def run_key(task: Mapping[str, Any], sources: str, data: Mapping[str, str]) -> str:
    """The key of one run, 64 hexadecimal digits.

    Args:
        task: the resolved task; its `labels`, and the places that `data` names, are left out.
        sources: `source_digest()`.
        data: checksums of what the task reads, by the place of the file in the task, such as "problem.data".

    Example:
        >>> one = run_key({"rounds": 5, "labels": {"a": 1}}, "s", {})
        >>> one == run_key({"rounds": 5.0, "labels": {"b": 2}}, "s", {}), one == run_key({"rounds": 6}, "s", {})
        (True, False)
    """
    dependencies = {key: value for key, value in task.items() if key != "labels"}
    for place in data:
        table, _, name = place.partition(".")
        dependencies[table] = {key: value for key, value in dependencies[table].items() if key != name}
    text = canonical_json({"task": dependencies, "sources": sources, "data": dict(data)})
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest(entry: str = ENTRY, root: Path | None = None) -> str:
    """SHA-256 over the names and the bytes of `source_files(entry, root)`."""
    digest = hashlib.sha256()
    for name, path in sorted(source_files(entry, root).items()):
        content = path.read_bytes()
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def source_files(entry: str = ENTRY, root: Path | None = None) -> dict[str, Path]:
    """The modules of `entry`'s package that importing and calling `entry` may load: name to file.

    The packages that contain `entry` are left out unless something else imports them: the sweep's own
    machinery moves runs about and does not change them.

    Args:
        entry: dotted name of the module to start from.
        root: the directory that holds the outermost package (default: where this one lies).
    """
    root = Path(__file__).parents[3] if root is None else root
    package = entry.rsplit(".", 2)[0]
    depths = package.count(".") + 1
    found: dict[str, Path] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        path = _module_file(root, name)
        if name in found or path is None:
            continue
        found[name] = path
        for imported in _imports(path, name, package):
            parts = imported.split(".")
            waiting += [".".join(parts[:depth]) for depth in range(depths, len(parts) + 1)]
    return found


def _module_file(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split("."))
    candidates = (base / "__init__.py", base.with_name(base.name + ".py"))
    return next((path for path in candidates if path.is_file()), None)


def _imports(path: Path, name: str, package: str) -> Iterator[str]:
    """Dotted names inside `package` that a module mentions; some may be attributes rather than modules."""
    home = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
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
        yield from (n for n in names if n == package or n.startswith(package + "."))
