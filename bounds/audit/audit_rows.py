"""The audit as rows: one for each claim of a paper, from the checkers or from the cache."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedbounds.bounds.audit.claim import CHECKERS, Claim, ResultForm
from fedbounds.bounds.audit.ledger import EVIDENCE
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.display.tables import Shown, Table
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.atomic_files import cache_folder, write_file
from fedbounds.bounds.inputs.user_files import read_bytes
from fedbounds.bounds.theory.registry import PAPERS, REFERENCES, paper

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
    """A hash of every source file, of the registered checkers and of the solvers' versions."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name, path in source_files():
        digest.update(f"\0{name}\0".encode())
        digest.update(path.read_bytes())
    for point in sorted(metadata.entry_points(group=CHECKERS)):
        digest.update(f"\0{point.name} {point.value}".encode())
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


@dataclass(frozen=True)
class ClaimRow:
    """One claim and its verdict; wording has none (None)."""

    id: str  # id, paper, text, kind: the claim
    paper: str
    text: str
    kind: str
    hash: str  # of all that its verdict may depend on
    verdict: str | None  # verdict, checker, method, evidence, axioms, flags, may_hide: what was found
    checker: str
    method: str
    evidence: str
    axioms: tuple[str, ...]
    flags: tuple[str, ...]
    may_hide: tuple[str, ...] = ()

    @staticmethod
    def of(claim: Claim, verdict: Verdict | None) -> ClaimRow:
        """The row of a claim that has been tried."""
        v = verdict or Verdict("unknown", "", "", "")
        outcome = verdict.outcome if verdict else None
        form = claim.subject.form if claim.kind == "result" and isinstance(claim.subject, ResultForm) else None
        implicit = (form.implicit,) if form and form.implicit else ()
        return ClaimRow(
            claim.id, claim.paper, claim.text, claim.kind, claim.hash,
            outcome, v.checker, v.method, v.evidence, v.rests_on, (*v.flags, *implicit), v.may_hide,
        )  # fmt: skip

    @staticmethod
    def read(stored: dict[str, Any]) -> ClaimRow:
        """A row from the cache."""
        return ClaimRow(**{**stored, **{name: tuple(stored[name]) for name in ("axioms", "flags", "may_hide")}})


class ClaimRows(list[ClaimRow], Shown):
    """The rows of an audit."""

    @property
    def headline(self) -> str:
        """How many claims have which verdict."""
        return ", ".join(
            f"{count} {said}" for said, count in Counter(row.verdict or "of wording" for row in self).items()
        )

    def tables(self) -> tuple[Table, ...]:
        """One line for each claim."""
        columns = ("id", "kind", "text", "verdict", "checker", "method", "evidence", "axioms", "flags", "may_hide")
        return (Table("", columns, [[vars(row)[name] for name in columns] for row in self]),)


Progress = Callable[[str, int, int], None]


def audit_rows(name: str, key: str = "", use_cache: bool = True, progress: Progress | None = None) -> ClaimRows:
    """The rows of a paper's claims whose id starts with key, in the paper's order."""
    from fedbounds.bounds.audit.claim_set import ClaimSet

    paper(name)
    # the content of other people's paper packages is not hashed
    keeps = use_cache and (name in PAPERS or name in REFERENCES)
    content = content_key() if keeps else ""
    cached = read_cache(name, content) if keeps else None
    stored = dict(cached[1]) if cached else {}
    claim_set = None if cached else ClaimSet.of(name)
    ids = cached[0] if cached else list(claim_set.claims) if claim_set else []
    wanted = [i for i in ids if i.startswith(key)]
    if not wanted:
        raise unknown_name("claim", key, ids)
    todo = [i for i in wanted if i not in stored]
    if todo and claim_set is None:
        claim_set = ClaimSet.of(name)
    for done, claim_id in enumerate(todo):
        assert claim_set is not None
        if progress:
            progress(claim_id, done, len(todo))
        claim = claim_set.claims[claim_id]
        stored[claim_id] = asdict(ClaimRow.of(claim, None if claim.kind == "wording" else claim_set.verdict(claim_id)))
    if todo and keeps:
        write_cache(name, content, ids, stored)
    return ClaimRows(ClaimRow.read(stored[i]) for i in wanted)


def ledger_entries(rows: Iterable[ClaimRow]) -> dict[str, dict[str, object]]:
    """The rows as the ledger keeps them: hash, verdict, checker, axioms and, where there are any, flags of every claim
    that carries a verdict; never seconds, models or ratios, so that it is the same everywhere. Those of reference
    theorems keep the evidence of the search, too.
    """
    found: dict[str, dict[str, object]] = {}
    for r in rows:
        if r.verdict is not None:
            found[r.id] = {"hash": r.hash, "verdict": r.verdict, "checker": r.checker, "axioms": list(r.axioms)}
            found[r.id] |= {"flags": list(r.flags)} if r.flags else {}
            found[r.id] |= {EVIDENCE: r.evidence} if r.paper in REFERENCES and r.kind == "result" else {}
    return found


def counts(rows: Sequence[ClaimRow]) -> dict[str, dict[str, dict[str, int]]]:
    """Paper to kind to outcome to number; wording counts as "wording"."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (name, kind, verdict), number in Counter((r.paper, r.kind, r.verdict or "no verdict") for r in rows).items():
        found.setdefault(name, {}).setdefault(kind, {})[verdict] = number
    return found
