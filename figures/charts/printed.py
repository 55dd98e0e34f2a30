"""Tables as papers print them, and what can be said of them: means with deviations over a few runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.significance import ALIKE, Level, Part, PartialFinding

Column = Mapping[str, Level]
Holds = Callable[[Column], PartialFinding]


@dataclass(frozen=True)
class PrintedTables:
    """The tables of a paper, from `printed.json` in its room.

    Args:
        paper: the room's folder.
        seeds: runs behind a printed mean.
    """

    paper: str
    seeds: int

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Name -> caption, columns, rows; a mean with its deviation is a pair."""
        return json.loads(files(f"fedbounds.figures.papers.{self.paper}").joinpath("printed.json").read_text())

    def columns(self, table: str, skip: int = 1) -> dict[str, dict[str, float]]:
        """The columns that hold numbers: heading -> method -> mean; a group to the left joins the heading."""
        return {heading: {m: x.mean for m, x in column.items()} for heading, column in self.levels(table, skip).items()}

    def levels(self, table: str, skip: int = 1) -> dict[str, dict[str, Level]]:
        """The same with standard errors: deviations over the root of the seeds; infinite where none is printed."""
        content = self.tables[table]
        found: dict[str, dict[str, Level]] = {}
        for row in content["rows"]:
            *group, label = row[:skip]
            for heading, value in zip(content["columns"][skip:], row[skip:], strict=True):
                mean, deviation = value if isinstance(value, list) else (value, np.inf)
                where = ", ".join([*group, heading])
                found.setdefault(where, {})[label] = Level(
                    mean, deviation / self.seeds**0.5, self.seeds, name=f"{label} ({where})"
                )
        return found


def by_means(holds: bool, comparisons: Iterable[Part]) -> PartialFinding:
    """What printed means say: agrees if they say so, disagrees only if one of the comparisons is clearly opposite."""
    return PartialFinding(tuple(comparisons), by_means=holds)


def above_all(column: Column, one: str, others: Sequence[str]) -> PartialFinding:
    """Whether a printed mean is above all of these; disagrees only if one of them is clearly above it."""
    return by_means(
        all(column[one].mean > column[other].mean for other in others),
        (column[one].above(column[other]) for other in others),
    )


def all_above(column: Column, some: Sequence[str], others: Sequence[str]) -> PartialFinding:
    """Whether each of several printed means is above all of the others."""
    found = [above_all(column, one, others) for one in some]
    return by_means(all(one.by_means for one in found), (part for one in found for part in one.parts))


def within(column: Column, one: str, other: str, distance: float) -> PartialFinding:
    """Whether two printed means differ by no more than a distance, in six digits."""
    gap = round(abs(column[one].mean - column[other].mean), 6)
    return by_means(gap <= distance, [column[one].near(column[other], distance)])


def alike(column: Column, one: str, other: str) -> PartialFinding:
    """Whether the larger of two printed means is at most 10 % above the smaller."""
    low, high = sorted((column[one].mean, column[other].mean))
    return by_means(high <= (1 + ALIKE) * low, [column[one].alike(column[other])])


def falls(gains: Sequence[Level]) -> PartialFinding:
    """Whether each is below the one before; disagrees only if a later one is clearly above an earlier one."""
    below = all(a.mean > b.mean for a, b in pairwise(gains))
    return by_means(below, (a.above(b) for a, b in combinations(gains, 2)))


def judged(
    source: str, text: str, table: Mapping[str, Column], holds: Holds, share: float = 1, paper: str = ""
) -> FigureClaim:
    """A claim about this share of a table's columns: what their means say, and whether the rest clearly say the
    opposite."""
    found = {name: holds(column) for name, column in table.items()}
    fails = [name for name, one in found.items() if not one.by_means]
    measured = f"{len(table) - len(fails)} of {len(table)} columns" + (f"; not {', '.join(fails)}" if fails else "")
    return FigureClaim(f"{source} as printed", text, measured, PartialFinding(tuple(found.values()), share), paper)
