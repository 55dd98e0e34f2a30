"""The table of a paper: the largest ratio found for every form of its results, searched, merged and completed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.display.json_values import json_value
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import paper
from fedbounds.empirical.falsification.adversary import (
    AGREE,
    EFFORTS,
    KEPT,
    WorstInstance,
    replay,
    search_families,
    search_form,
)

FAMILIES = "families"  # the effort that tries the known extremal runs alone


def rows(name: str, effort: str, seed: int, known: Sequence[Mapping[str, Any]] = ()) -> Iterator[dict[str, Any]]:
    """The row of every form of a paper's results: the worse of this search and of the known rows.

    The effort `families` only tries the known extremal runs, on rows that have not been searched with them.
    """
    before = {(row["key"], row["form"], row["claim"]): row for row in known if row["ratio"] is not None}
    for result in paper(name).results:
        for form in result.forms:
            claim = ResultForm(result, form).claim()
            old = before.get((result.key, form.name, claim.hash))
            if effort == FAMILIES:
                old = old or next((row for row in known if (row["key"], row["form"]) == (result.key, form.name)), None)
            if old is not None and (effort == FAMILIES or last_search(old) == (effort, seed)):
                yield complete_row(old, claim)
                continue
            last = replay(old) if old is not None else None
            found = search_form(claim, EFFORTS["light" if effort == FAMILIES else effort], seed, effort, last)
            head = {"key": result.key, "form": form.name, "claim": claim.hash}
            if isinstance(found, str):
                yield head | {"ratio": None, "why": found}
            else:
                yield head | row_of(found if last is None else worse(last, found))


def complete_row(row: Mapping[str, Any], claim: Claim) -> dict[str, Any]:
    """A row after the known extremal runs of its form have been tried, if the form has such."""
    if row["ratio"] is None or (row["claim"] == claim.hash and "families" in row["budget"]):
        return {**row, "claim": claim.hash}
    old, found = replay(row), search_families(claim, row["budget"]["seed"], row["budget"]["effort"])
    if old.status == "not covered":
        raise FedboundsError(f"{claim.id} has changed, and its instance is {old.status}: search it with --effort deep")
    if found is None:
        return {**row, "claim": claim.hash} | (row_of(old) if row["claim"] != claim.hash else {})
    return {**row, "claim": claim.hash, **row_of(worse(old, found))}


def merge_tables(known: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of a table merged with those of other searches, replayed: the worse of both, and both budgets."""
    others = {(row["key"], row["form"], row["claim"]): row for row in found if row["ratio"] is not None}
    for row in known:
        other = others.get((row["key"], row["form"], row["claim"]))
        if other is None or (row["ratio"] is not None and last_search(row) == last_search(other)):
            yield dict(row)
        else:
            head, there = {name: row[name] for name in ("key", "form", "claim")}, replay(other)
            yield head | row_of(there if row["ratio"] is None else worse(replay(row), there))


def cross_rows(found: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of a table, each with the worst of the table's instances of its class that its form covers."""
    measured = [row for row in found if row["ratio"] is not None]
    for row in found:
        best = None if row["ratio"] is None else replay(row)
        for other in measured if best is not None else ():
            if other["kind"] != row["kind"] or other["instance"] == row["instance"]:
                continue
            with suppress(FedboundsError):
                there = replay({**row, "instance": other["instance"]})
                if best is not None and there.ratio > best.ratio * (1 + AGREE) and not there.rounded:
                    best = there
        yield dict(row) if best is None else {name: row[name] for name in ("key", "form", "claim")} | row_of(best)


def last_search(row: Mapping[str, Any]) -> tuple[str, int]:
    """Effort and seed of a row's last search."""
    return row["budget"]["effort"], row["budget"]["seed"]


def worse(old: WorstInstance, new: WorstInstance) -> WorstInstance:
    """The worse of two instances, with the budget of both searches, and the effort and the seed of the later one."""
    counts = {
        name: number + old.budget.get(name, 0) for name, number in new.budget.items() if name not in ("effort", "seed")
    }
    return replace(old if old.ratio > new.ratio else new, budget={**new.budget, **counts})


def row_of(found: WorstInstance) -> dict[str, Any]:
    """A table's row of an instance, in JSON values, without what a replay recomputes."""
    return {name: json_value(value) for name, value in found.as_document().items() if name in KEPT}
