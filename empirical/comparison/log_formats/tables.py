"""CSV files of any tool: a line of names, then a line for each round, run or metric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote, read_number
from fedbounds.empirical.comparison.log_formats.log import (
    LARGEST,
    ROUND,
    SEED,
    Columns,
    Log,
    guess_metrics,
    guess_round,
    shown,
)
from fedbounds.empirical.participation.csv_lines import read_csv

GAPS = ("", "NA")  # cells without a value
MELTED = ("metric", "metric_name", "metricname", "name", "key", "tag", "variable")  # name the metric of a `value`


@dataclass(frozen=True)
class Table:
    """The lines of a CSV file: names of its columns, and number and cells of each line."""

    path: Path
    names: tuple[str, ...]
    lines: Sequence[tuple[int, Sequence[str]]]

    @classmethod
    def read(cls, path: Path) -> Table:
        """The file; columns without a name, as the index that pandas writes, are left out."""
        lines = read_csv(path, "the log", LARGEST)
        if len(lines) < 2:
            raise FedboundsError(f"{path} holds no rounds; expected a line of names, then a line for each round")
        named = [(i, name.strip()) for i, name in enumerate(lines[0][1]) if name.strip()]
        names = tuple(name for _, name in named)
        if len(set(names)) < len(names) or not names:
            raise FedboundsError(
                f"{path}, line {lines[0][0]}: every column needs a name of its own, not {quote(list(lines[0][1]))}"
            )
        kept = [i for i, _ in named]
        return cls(path, names, [(number, [cells[i].strip() for i in kept]) for number, cells in lines[1:]])

    def column(self, name: str) -> Iterator[tuple[int, str]]:
        """Number and cell of each line."""
        if name not in self.names:
            raise FedboundsError(f"{self.path}: {unknown_name('column', name, self.names)}")
        i = self.names.index(name)
        return ((number, cells[i]) for number, cells in self.lines)

    def numbers(self, name: str) -> Iterator[float | None]:
        """The number of each line, None for a gap."""
        for number, cell in self.column(name):
            try:
                yield None if cell in GAPS else read_number(cell)
            except ValueError:
                raise FedboundsError(
                    f"{self.path}, line {number}: {name} = {quote(cell)} is not a number; columns= leaves it out"
                ) from None


def read_csv_log(path: Path, columns: Columns | None, at: str | None = None) -> Log:
    """Any CSV file: its own names if one of them is `round`, else those that the user chooses.

    Args:
        path: of the file.
        columns: that the user chooses.
        at: the column of the rounds, if the tool that wrote the file is known; which metric is which is then guessed.
    """
    table = Table.read(path)
    round_column = single_column(columns, ROUND) or at or ROUND
    seed_column = single_column(columns, SEED) or (SEED if SEED in table.names else None)
    key = next((name for name in table.names if name.lower() in MELTED), None)
    value = next((name for name in table.names if name.lower() == "value"), None)
    if columns is None and round_column not in table.names:
        guess = {ROUND: guess_round(table.names) or table.names[0]}
        metrics = table.names if key is None or value is None else dict.fromkeys(cell for _, cell in table.column(key))
        metrics = [name for name in metrics if name != guess[ROUND] and not re.search("time|date", name, re.IGNORECASE)]
        guess |= guess_metrics(metrics) or dict(zip(["train_loss"], metrics, strict=False))
        raise FedboundsError(f"{path}: no column is named round; it has {shown(table.names)}; give columns={guess}")
    if key is not None and value is not None:
        return read_melted(table, round_column, seed_column, key, value)
    wanted = [name for name in table.names if name not in (round_column, seed_column)]
    if columns is not None:
        chosen = [theirs for ours, theirs in columns.items() if ours not in (ROUND, SEED)]
        wanted = [name for theirs in chosen for name in ([theirs] if isinstance(theirs, str) else theirs)]
    log, lines = Log(str(path)), lines_of(table, round_column, seed_column)
    for name in dict.fromkeys(wanted):
        for line, value in zip(lines, table.numbers(name), strict=True):
            add_line(log, name, line, value)
        if columns is not None and name not in log.metrics:
            raise FedboundsError(f"{path}: column {name} is empty; choose another one")
    log.columns = None if at else {name: name for name in log.metrics}
    return log


def read_melted(table: Table, round_column: str, seed_column: str | None, key: str, value: str) -> Log:
    """A table with a line for each metric."""
    log, lines = Log(str(table.path)), lines_of(table, round_column, seed_column)
    for line, (_, metric), number in zip(lines, table.column(key), table.numbers(value), strict=True):
        add_line(log, metric, line, number)
    return log


def lines_of(table: Table, round_column: str, seed_column: str | None) -> list[tuple[int, str, float | None]]:
    """Number, run and round of each line."""
    runs = [cell for _, cell in table.column(seed_column)] if seed_column else [""] * len(table.lines)
    numbers = (number for number, _ in table.lines)
    return list(zip(numbers, runs, table.numbers(round_column), strict=True))


def add_line(log: Log, metric: str, line: tuple[int, str, float | None], value: float | None) -> None:
    """A value of a line, unless it is a gap."""
    number, run, at = line
    log.runs.setdefault(run)
    if value is not None and at is None:
        raise FedboundsError(f"{log.where}, line {number}: {metric} has a value, and its round is empty")
    if value is not None and at is not None:
        log.add(metric, run, at, value, number)


def single_column(columns: Columns | None, name: str) -> str | None:
    """The column of the file that the user gives for one of ours that has one."""
    given = None if columns is None else columns.get(name)
    if given is not None and not isinstance(given, str):
        raise FedboundsError(f"columns[{name!r}] = {quote(given)} must be the name of one column")
    return given
