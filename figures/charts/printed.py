"""Tables as papers print them, and claims about them: means with deviations over a few runs."""

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
    """The tables of `printed.json` in a paper's package; `seeds` runs are behind a printed mean."""

    paper: str
    seeds: int

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Name -> caption, columns, rows; a mean with its deviation is a pair."""
        return json.loads(files(f"fedbounds.figures.papers.{self.paper}").joinpath("printed.json").read_text())

    def columns(self, table: str, skip: int = 1) -> dict[str, dict[str, float]]:
        """The columns of numbers: heading to method to mean; groups to the left join the heading."""
        return {heading: {m: x.mean for m, x in column.items()} for heading, column in self.levels(table, skip).items()}

    def levels(self, table: str, skip: int = 1) -> dict[str, dict[str, Level]]:
        """The same with standard errors: deviation / sqrt(seeds); infinite where no deviation is printed."""
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


def means_finding(holds: bool, comparisons: Iterable[Part]) -> PartialFinding:
    """A finding from printed means: agrees if they do; disagrees only if a comparison is significantly opposite."""
    return PartialFinding(tuple(comparisons), by_means=holds)


def is_above_all(column: Column, one: str, others: Sequence[str]) -> PartialFinding:
    """Whether a printed mean is above all of these; disagrees only if one of them is significantly above it."""
    return means_finding(
        all(column[one].mean > column[other].mean for other in others),
        (column[one].above(column[other]) for other in others),
    )


def are_above_all(column: Column, some: Sequence[str], others: Sequence[str]) -> PartialFinding:
    """Whether each of several printed means is above all of the others."""
    found = [is_above_all(column, one, others) for one in some]
    return means_finding(all(one.by_means for one in found), (part for one in found for part in one.parts))


def is_alike(column: Column, one: str, other: str) -> PartialFinding:
    """Whether the larger of two printed means is at most 10 % above the smaller."""
    low, high = sorted((column[one].mean, column[other].mean))
    return means_finding(high <= (1 + ALIKE) * low, [column[one].alike(column[other])])


def is_decreasing(gains: Sequence[Level]) -> PartialFinding:
    """Whether each level is below the one before; disagrees only if a later one is significantly larger."""
    below = all(a.mean > b.mean for a, b in pairwise(gains))
    return means_finding(below, (a.above(b) for a, b in combinations(gains, 2)))


def printed_claim(
    source: str, text: str, table: Mapping[str, Column], holds: Holds, share: float = 1, paper: str = ""
) -> FigureClaim:
    """A claim about this share of a table's columns, by `holds` for each column."""
    found = {name: holds(column) for name, column in table.items()}
    fails = [name for name, one in found.items() if not one.by_means]
    measured = f"{len(table) - len(fails)} of {len(table)} columns" + (f"; not {', '.join(fails)}" if fails else "")
    return FigureClaim(f"{source} as printed", text, measured, PartialFinding(tuple(found.values()), share), paper)
