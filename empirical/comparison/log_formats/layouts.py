"""CSV files of tools whose columns are known: pfl-research, FL-bench, TensorBoard's export, and MLflow's files."""

from __future__ import annotations

import re
from pathlib import Path

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import read_number
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.empirical.comparison.log_formats.log import LARGEST, ROUND, Columns, Log
from fedbounds.empirical.comparison.log_formats.tables import read_csv_log


def read_pfl_research(path: Path, columns: Columns | None) -> Log:
    """The file of `AggregateMetricsToDisk`."""
    return read_csv_log(path, columns, at="central_iteration")


def read_fl_bench(path: Path, columns: Columns | None) -> Log:
    """`metrics.csv`, with metrics before and after local training."""
    return read_csv_log(path, columns, at="epoch")


def read_tensorboard_csv(path: Path, columns: Columns | None) -> Log:
    """`Wall time,Step,Value`; the name of the file holds the metric: `run-<run>-tag-<metric>.csv`."""
    log = read_csv_log(path, {ROUND: "Step", "Value": "Value"})
    if tag := re.search(r"tag-(.+)\.csv$", path.name):
        log.metrics |= {tag[1]: log.metrics["Value"]}
    log.columns = None
    return log


def read_mlflow(path: Path, columns: Columns | None) -> Log:
    """A file of one metric, `timestamp value step` in each line; the name of the file is the metric."""
    log = Log(str(path))
    for number, line in enumerate(read_text(path, f"the log {path}", LARGEST).splitlines(), start=1):
        try:
            _, value, step = line.split()
            log.add(path.stem, "", read_number(step), read_number(value), number)
        except FedboundsError:
            raise
        except ValueError:
            raise FedboundsError(f"{path}, line {number}: expected `timestamp value step`, not {line[:40]!r}") from None
    return log
