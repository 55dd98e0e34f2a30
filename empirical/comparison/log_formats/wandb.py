"""CSV exports of a panel of Weights & Biases: a column `<run> - <metric>` for each run, with its least and largest."""

from __future__ import annotations

from pathlib import Path

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.log_formats.log import ROUND, Columns, Log, shown
from fedbounds.empirical.comparison.log_formats.tables import Table, add_line, lines_of, single_column

RANGES = ("__MIN", "__MAX")  # ends of the columns that are not read
BETWEEN = " - "


def read_wandb(path: Path, columns: Columns | None) -> Log:
    """The runs become seeds; the first column, e.g. `Step`, numbers the rounds."""
    table = Table.read(path)
    at = single_column(columns, ROUND) or next((name for name in table.names if BETWEEN not in name), None)
    measured = [name for name in table.names if BETWEEN in name and not name.endswith((*RANGES, f"{BETWEEN}_step"))]
    if at is None or not measured:
        raise FedboundsError(f"{path}: expected columns Step and '<run> - <metric>'; it has {shown(table.names)}")
    log, lines = Log(str(path)), lines_of(table, at, None)
    for name in measured:
        run, _, metric = name.rpartition(BETWEEN)
        for (number, _, t), value in zip(lines, table.numbers(name), strict=True):
            add_line(log, metric, (number, run, t), value)
    return log
