"""The ledger: the committed verdicts of one paper, reviewed like code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.errata import erratum_reference
from fedbounds.bounds.audit.status import UNREAD, AuditStatus, Mark
from fedbounds.bounds.audit.verdict import TRUSTED
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.atomic_files import write_file
from fedbounds.bounds.theory.registry import (
    ALL_REFERENCES,
    GROUP,
    PAPERS,
    REFERENCES,
    paper_module,
    paper_names,
)
from fedbounds.bounds.theory.result import Form, Result

NAME = "ledger.json"
EVIDENCE = "evidence"  # what the ledger of reference theorems has of each search; numbers that no audit compares


def ledger_path(paper: str, name: str = NAME) -> Path:
    """Where the paper's ledger lies: in its package, or beside its module and named after it.

    Reference theorems share one ledger, beside the folders of their papers.
    """
    if paper in REFERENCES and name == NAME:
        return Path(REFERENCES[paper]).with_name(name)
    file = paper_module(paper).__file__
    if file is None:
        raise FedboundsError(f"the module of {paper} has no file (no __init__.py?), so no place for a ledger")
    path = Path(file)
    return path.with_name(name) if path.name == "__init__.py" else path.with_suffix(f".{name}")


def read_ledger(paper: str) -> dict[str, dict[str, object]]:
    """The committed entries; empty where there is no ledger yet."""
    entries = _read_entries(ledger_path(paper))
    return {claim: entry for claim, entry in entries.items() if claim.startswith(f"{paper}/")}


def _read_entries(path: Path) -> dict[str, dict[str, object]]:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text())["claims"])
    except (ValueError, KeyError, TypeError) as error:
        raise FedboundsError(f"{path} is not a ledger ({error}); write it anew with fedbounds audit --write") from None


@lru_cache(maxsize=64)
def _cached_ledger(paper: str) -> dict[str, dict[str, object]]:
    return read_ledger(paper)


def committed_verdict(result: Result, form: Form) -> str:
    """What the committed ledger says of a form: proved, survived, argued, refuted, unknown or unread.

    "unread" is a form that was written from memory, and that no run violates, whatever a search found of it.

    A result that is not the one in the registry has no verdict, whatever its key, and neither has a form that has
    changed since it was verified; without a ledger a form that an erratum refutes is refuted, every other one unknown.
    """
    entry = _entry(result, form)
    found = str(entry["verdict"]) if entry else "refuted" if form.refuted_by else "unknown"
    return UNREAD if result.source.unread and found != "refuted" else found


def status(result: Result, form: Form) -> str:
    """The status of a form in a word: its verdict; "unread" or "order only" where that decides what it says.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> [status(one, one.form()) for one in map(load, ("fedmrn/theorem-1", "ghadimi-2013/sgd", "gu-2021/mifa"))]
        ['proved', 'survived', 'order only']
    """
    return mark(result, form) or "proved"


def evidence(result: Result, form: Form) -> str:
    """What a search found of a form of a reference theorem, or why there was none; "" without an entry.

    Of a theorem that was written from memory, it is about the transcription.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("yang-2021/fedavg-full")
        >>> evidence(theorem, theorem.form()).partition(":")[0]
        'the transcription survived a search'
    """
    entry = _entry(result, form) or {}
    of_copy = result.source.unread and entry.get("verdict") == "survived"
    return f"{'the transcription survived a search: ' if of_copy else ''}{entry.get(EVIDENCE, '')}"


def audit_status(result: Result, form: Form) -> AuditStatus:
    """What is said of a form where it is evaluated."""
    accused = erratum_reference(result.paper, form.refuted_by) if form.refuted_by else ""
    of_file = "it is a reference theorem" if result.paper in REFERENCES else f"{result.file} is a theorem file"
    in_file = f"{of_file}, which has no proof here" if result.file else ""
    verdict, trusted = committed_verdict(result, form), trusted_premise(result, form)
    return AuditStatus(verdict, trusted, accused, in_file or why_no_verdict(result.paper))


def trusted_premise(result: Result, form: Form) -> str:
    """What a proved form rests on that its author says and nobody has tried; "" if nothing.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> trusted_premise(theorem, theorem.form("explicit"))
        ''
    """
    entry = _entry(result, form)
    if entry is None or entry["verdict"] != "proved":
        return ""
    words = map(str, cast(Sequence[object], entry["axioms"]))
    found = [word.removeprefix(TRUSTED).strip() for word in words if word.startswith(TRUSTED)]
    if not found:
        return ""
    return f"{found[0]} and {len(found) - 1} more that nobody has tried" if found[1:] else f"{found[0]}, untried"


def _entry(result: Result, form: Form) -> Mapping[str, object] | None:
    """The ledger's entry of a form as it is; None where there is none."""
    ours = result.paper in paper_names() and any(r is result for r in paper_module(result.paper).RESULTS)
    entry = _cached_ledger(result.paper).get(f"{result.key}[{form.name}]") if ours else None
    return entry if entry and entry.get("hash") == _hash(result, form) else None


def why_no_verdict(paper: str) -> str:
    """Why nothing of a paper of another package has a verdict, and what gives it one; "" if it has a ledger.

    Example:
        >>> why_no_verdict("fedau"), why_no_verdict("sgd")
        ('', 'sgd is not installed as a package (no entry point of fedbounds.papers has this name)')
    """
    if paper not in paper_names():
        return f"{paper} is not installed as a package (no entry point of {GROUP} has this name)"
    return "" if paper in PAPERS or read_ledger(paper) else f"no ledger: fedbounds audit --paper {paper} --write"


@lru_cache(maxsize=1024)
def _hash(result: Result, form: Form) -> str:
    return ResultForm(result, form).claim().hash


def caveat(result: Result, form: Form) -> str:
    """What keeps a form from being relied on: an erratum against it or what it rests on, or no proof; "" if nothing.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> lemma = load("fed-norm-sgda/lemma-b.4")
        >>> caveat(lemma, lemma.form("printed")), caveat(lemma, lemma.form("repaired"))
        ('rests on what is refuted by erratum cross-term-of-local-noise (false as stated)', '')
        >>> unproved = load("fed-norm-sgda/theorem-2")
        >>> caveat(unproved, unproved.form())
        'is not proved: its verdict is survived'
    """
    return audit_status(result, form).shadow


def audit_note(result: Result, form: Form) -> str:
    """Why a form is not to be relied on, or its verdict, in words for a printed theorem."""
    return caveat(result, form) or f"verdict of the audit: {committed_verdict(result, form)}"


def mark(result: Result, form: Form) -> Mark:
    """Why a form is not to be relied on, in a word, else its verdict; "" for one that is proved.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("fedmrn/theorem-1")
        >>> [mark(theorem, theorem.form(name)) for name in ("printed", "sharp")]
        ['refuted', '']
    """
    return audit_status(result, form).mark(form.order_only)


def write_ledger(paper: str, found: Mapping[str, Mapping[str, object]]) -> Path:
    """Write the entries in a stable order, to a temporary name first; those of other reference theorems are kept."""
    path, of = ledger_path(paper), paper
    entries = dict(found)
    if paper in REFERENCES:
        of = ALL_REFERENCES
        others = {*REFERENCES} - {paper}
        entries |= {k: entry for k, entry in _read_entries(path).items() if k.partition("/")[0] in others}
    text = json.dumps({"schema": "fedbounds.ledger/1", "paper": of, "claims": dict(sorted(entries.items()))}, indent=1)
    write_file(path, f"{text}\n".encode())
    return path


def differences(found: Mapping[str, Mapping[str, object]], committed: Mapping[str, Mapping[str, object]]) -> list[str]:
    """One line for every claim whose entry is new, gone or other than the committed one."""
    lines = []
    for claim in sorted({*found, *committed}):
        if claim not in committed:
            lines.append(f"{claim}: {found[claim]['verdict']}, but not in the ledger")
        elif claim not in found:
            lines.append(f"{claim}: in the ledger, but no longer claimed")
        else:
            for key in sorted({*found[claim], *committed[claim]} - {EVIDENCE}):
                new, old = found[claim].get(key), committed[claim].get(key)
                if new != old:
                    lines.append(f"{claim}: {key} is {new!r}, the ledger says {old!r}")
    return lines
