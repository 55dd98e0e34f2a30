"""The formats of logs by name, with what each is recognized by: the name of the file, and how it begins."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, quote
from fedbounds.bounds.inputs.user_files import open_regular
from fedbounds.empirical.comparison.log_formats import binary, flower, layouts, leaf, tables, wandb
from fedbounds.empirical.comparison.log_formats.log import LARGEST, Columns, Log

BEGINNING = 2**14  # bytes in which a file says what it is


class LogFormat(NamedTuple):
    """A format: its reader, and regular expressions for the names of its files and how they begin."""

    read: Callable[[Path, Columns | None], Log]
    name: str = ""
    beginning: str = ""

    def recognizes(self, path: Path, beginning: str) -> bool:
        """Whether a file is of this format."""
        return bool(re.search(self.name, path.name) and re.search(self.beginning, beginning))


FORMATS = {  # in the order in which they are tried
    "tensorboard": LogFormat(binary.read_tensorboard, name=r"tfevents"),
    "pfllib": LogFormat(binary.read_pfllib, name=r"\.(h5|hdf5)$"),
    "flower": LogFormat(
        flower.read_flower,
        beginning=r'^\s*\{[^\0]*"(losses|metrics|train_metrics|evaluate_metrics)_(distrib|central|clientapp|serverapp)'
        r"|History \(\w+, \w+|App-side \w+ Metrics",
    ),
    "mlflow": LogFormat(layouts.read_mlflow, beginning=r"^\d{10,} \S+ \d+\s"),
    "leaf": LogFormat(leaf.read_leaf, beginning=r"^(?=.*\bclient_id\b)(?=.*\bround_number\b).*\bset\b"),
    "wandb": LogFormat(wandb.read_wandb, beginning=r'^[^\n]*(__MIN"?[,;]|"Step"[,;][^\n]* - )'),
    "tensorboard-csv": LogFormat(layouts.read_tensorboard_csv, beginning=r"^Wall time,Step,Value\s"),
    "pfl-research": LogFormat(layouts.read_pfl_research, beginning=r"^[^\n]*\bcentral_iteration\b"),
    "fl-bench": LogFormat(layouts.read_fl_bench, beginning=r"^epoch,[^\n]*accuracy_\w+_(before|after)\b"),
    "csv": LogFormat(tables.read_csv_log, beginning=r"^(?!\s*[{\[])"),
}


def log_paths(log: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The paths of logs, one for each run: of a folder itself if it holds event files, else its folders with some."""
    paths: list[Path] = []
    for path in [Path(log)] if isinstance(log, str | os.PathLike) else map(Path, log):
        if not path.is_dir() or binary.event_files(path):
            paths.append(path)
            continue
        runs = sorted(each for each in path.iterdir() if each.is_dir() and binary.event_files(each))
        if not runs:
            raise FedboundsError(f"the folder {path} has no event files of TensorBoard; give a file of another log")
        paths += runs
    if not paths:
        raise FedboundsError("the list of logs is empty; give at least one file")
    return paths


def read_file(path: Path, columns: Columns | None, format: str | None) -> Log:
    """A log in the format that is named, else in the first one that recognizes it."""
    if format is not None:
        return FORMATS[check_choice("format", format, tuple(FORMATS))].read(path, columns)
    if path.is_dir():
        return FORMATS["tensorboard"].read(path, columns)
    with open_regular(path, f"the log {path}", LARGEST) as file:
        beginning = file.read(BEGINNING).decode("utf-8-sig", "replace")
    for known in FORMATS.values():
        if known.recognizes(path, beginning):
            return known.read(path, columns)
    names = ", ".join(FORMATS)
    raise FedboundsError(f"{path}: unknown format of a log, {quote(beginning[:40])}; give format=, one of {names}")
