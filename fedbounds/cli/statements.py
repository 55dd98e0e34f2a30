"""Statements by key, and the places of an equation by its number, for `fedbounds show`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fedbounds.bounds.audit.errata import paper_errata, paper_wording
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.theory.registry import paper, paper_names, statements
from fedbounds.bounds.theory.statement import Statement

REMARKS = ("erratum/", "wording/")
NUMBER = re.compile(r"^(?:equation-|eq[.-]?)?\(?((?:[a-z]\.)?\d+(?:\.\d+)*[a-z]?)\)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A place of an equation or of a remark.

    Args:
        id: of a result, a statement or a step of a proof.
        kind: theorem, definition, step, ...
        says: what it says, in one line.
        verdict: of the committed ledger (empty if it has none).
    """

    id: str
    kind: str
    says: str
    verdict: str = ""


def statement(key: str) -> Statement | None:
    """The statement with this key, if there is one."""
    name = key.partition("/")[0]
    if name not in paper_names():
        return None
    return next((one for one in statements(name) if one.key == key), None)


def statement_text(one: Statement) -> str:
    """A statement as text, with the verdicts of the claims that state it and the remarks on its use."""
    lines = [f"{one.key}   {one.source}", f"{one.kind.capitalize()}: {one.title}.", "", one.says]
    lines += ["", one.note] if one.note else []
    lines += ["", "Verified as"] if any(_claims(one)) else []
    lines += [f"  {place.id}: {place.verdict or 'not verified yet'}" for place in _claims(one)]
    remarks = list(_remarks(one))
    lines += ["", "Remarks on it or its use"] if remarks else []
    for place in remarks:
        lines.append(f"  {place.id} ({place.kind}): {place.says}")
    return "\n".join(lines)


def statement_document(one: Statement) -> dict[str, Any]:
    """The statement for JSON."""
    return {
        "key": one.key,
        "kind": one.kind,
        "title": one.title,
        "source": str(one.source),
        "statement": one.says,
        "latex": one.latex,
        "note": one.note,
        "claims": [{"id": place.id, "verdict": place.verdict or None} for place in _claims(one)],
        "remarks": [{"id": place.id, "degree": place.kind, "says": place.says} for place in _remarks(one)],
    }


def _claims(one: Statement) -> Iterator[Place]:
    """The claims that state or prove it; errata about its use are remarks."""
    for local in one.claims:
        if not local.startswith(REMARKS):
            claim = f"{one.paper}/{local}"
            yield Place(claim, "claim", "", _verdict(one.paper, claim))


def _remarks(one: Statement) -> Iterator[Place]:
    """The errata and slips of wording about it, with their degrees."""
    errata = {erratum.id: erratum for erratum in paper_errata(one.paper)}
    slips = {slip.id: slip for slip in paper_wording(one.paper)}
    for local in one.claims:
        name = local.partition("/")[2]
        if local.startswith("erratum/"):
            erratum = errata[name]
            yield Place(f"{one.paper}/{local}", erratum.degree, f"{erratum.where}: {erratum.claim}")
        elif local.startswith("wording/"):
            slip = slips[name]
            yield Place(f"{one.paper}/{local}", "wording", f"{slip.where}: {slip.says}; rather: {slip.should}")


def _verdict(name: str, claim: str) -> str:
    return str(read_ledger(name).get(claim, {}).get("verdict", ""))


def equation_number(key: str) -> str:
    """The number of the equation that a key asks for ("" if it asks for none).

    Example:
        >>> equation_number("fedau/(B.4.4)"), equation_number("fedau/equation-7"), equation_number("fedau/theorem-2")
        ('B.4.4', '7', '')
    """
    found = NUMBER.match(key.partition("/")[2])
    return found[1].upper() if found else ""


def equation_places(name: str, number: str) -> list[Place]:
    """Every result, statement and step of a proof that is about one equation of a paper.

    Raises:
        FedboundsError: there is none; says which equations there are.
    """
    cited = [(Place(result.key, result.kind, result.title), result.source) for result in paper(name).results]
    cited += [(Place(one.key, one.kind, one.says), one.source) for one in statements(name)]
    places = [(place, {equation.upper() for equation in source.equations}) for place, source in cited]
    places += [(place, equations_in(place.says)) for place in _steps(name)]
    known = set().union(*(numbers for _, numbers in places))
    if not known:
        raise FedboundsError(f"{name} lists no equation; fedbounds list --paper {name} shows what it lists")
    if number not in known:
        raise unknown_name(f"equation of {name}", number, sorted(known))
    return [place for place, numbers in places if number in numbers]


@lru_cache(maxsize=16)
def _steps(name: str) -> tuple[Place, ...]:
    """The steps of a paper's proofs, with the verdicts of the ledger."""
    from fedbounds.bounds.audit.claim_set import paper_claims  # the proofs need the solvers, the results do not

    return tuple(
        Place(claim.id, "step", claim.text, _verdict(name, claim.id))
        for claim in paper_claims(name)
        if claim.kind == "step"
    )


def equations_in(text: str) -> set[str]:
    """The numbers of the equations that a text names, from the first to the last where it says so.

    Example:
        >>> sorted(equations_in("Young, eq. (B.1.3), as in (C.8) to (C.10)"))
        ['B.1.3', 'C.10', 'C.8', 'C.9']
    """
    numbers = r"\(((?:[A-Z]\.)?\d+(?:\.\d+)*[a-z]?)\)"
    found = {number.upper() for number in re.findall(numbers, text)}
    for first, last in re.findall(rf"{numbers}(?: to |-|\u2013){numbers}", text):
        stem, _, low = first.rpartition(".")
        other, _, high = last.rpartition(".")
        if stem == other and low.isdigit() and high.isdigit():
            found |= {f"{stem}.{k}".lstrip(".") for k in range(int(low), int(high) + 1)}
    return found


def places_text(name: str, number: str, found: Iterable[Place]) -> str:
    """The places of an equation as text for people."""
    lines = [f"{name}, eq. ({number})"]
    for place in found:
        lines.append(f"  {place.kind:<11} {place.id}   {place.says}" + (f": {place.verdict}" if place.verdict else ""))
    return "\n".join(lines)
