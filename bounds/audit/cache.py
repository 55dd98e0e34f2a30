"""Verdicts kept between runs, by content: they hold as long as no source file and no solver has changed."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.atomic_files import cache_folder, write_file
from fedbounds.bounds.inputs.user_files import read_bytes

LARGEST = 2**28  # bytes of the verdicts of a paper
PACKAGES = ("fedbounds.bounds", "fedbounds.empirical")
SOLVERS = ("sympy", "numpy", "scipy", "z3-solver", "python-flint", "torch")


def source_files() -> Iterator[tuple[str, Path]]:
    """Every source file of the packages that decide verdicts, in a stable order; ledgers are not among them."""
    for package in PACKAGES:
        found = find_spec(package)
        for folder in (found.submodule_search_locations or ()) if found else ():
            root = Path(folder)
            for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
                yield f"{package}/{path.relative_to(root).as_posix()}", path


def content_key() -> str:
    """A hash of every source file and of the solvers' versions."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name, path in source_files():
        digest.update(f"\0{name}\0".encode())
        digest.update(path.read_bytes())
    for solver in SOLVERS:
        try:
            version = metadata.version(solver)
        except metadata.PackageNotFoundError:
            version = "absent"
        digest.update(f"\0{solver} {version}".encode())
    return digest.hexdigest()


def cache_file(paper: str) -> Path:
    """Where the verdicts of one paper lie."""
    return cache_folder() / f"audit-{paper}.json"


def read_cache(paper: str, key: str) -> tuple[list[str], dict[str, dict[str, Any]]] | None:
    """Every claim's id and the rows found so far; None if there is no cache of this content, or it is unreadable."""
    try:
        document = json.loads(read_bytes(cache_file(paper), paper, LARGEST, noted=False))
        if document["key"] != key:
            return None
        ids, rows = document["ids"], document["rows"]
        if all(isinstance(i, str) for i in ids) and all(rows[name]["id"] == name for name in rows):
            return ids, rows
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return None


def write_cache(paper: str, key: str, ids: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the rows; a cache that cannot be written is none."""
    document = {"schema": "fedbounds.verdicts/1", "key": key, "ids": list(ids), "rows": dict(rows)}
    with suppress(FedboundsError):
        write_file(cache_file(paper), json.dumps(document).encode())
