"""Metrics of LEAF: one line for each client and round; who took part is in the file of system metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.log_formats.log import LARGEST, Columns, Log
from fedbounds.empirical.comparison.log_formats.tables import Table
from fedbounds.empirical.participation.csv_lines import read_csv
from fedbounds.empirical.participation.record_formats import read_record

CLIENT, ROUND, SAMPLES, PART = "client_id", "round_number", "num_samples", "set"
OTHER = (CLIENT, ROUND, SAMPLES, PART, "hierarchy")


def read_leaf(path: Path, columns: Columns | None) -> Log:
    """`metrics_stat.csv`: of each metric and set the mean over clients, as `train_loss`, and `train_loss_by_samples`.

    `train_loss` is the mean of the clients' losses, each with weight 1/N, as the f of the theorems;
    `train_loss_by_samples` weights them by `num_samples`.
    """
    table = Table.read(path)
    who, sets = _texts(table, CLIENT), _texts(table, PART)
    rounds, samples = np.array(_whole(table, ROUND)), np.array(_whole(table, SAMPLES))
    clients = tuple(dict.fromkeys(who))
    log = Log(str(path), columns={"train_loss": "train_loss"}, clients=clients)
    log.notes.append("train_loss is the mean over clients with weight 1/N; train_loss_by_samples with num_samples")
    metrics = {name: [*table.numbers(name)] for name in table.names if name not in OTHER}
    for part in dict.fromkeys(sets):
        for t in np.unique(rounds):
            lines = [i for i in np.flatnonzero(rounds == t) if sets[i] == part]
            if sorted(who[i] for i in lines) != sorted(clients):
                if part != "train":
                    continue  # a mean of all clients needs all of them
                raise FedboundsError(
                    f"{path}: set {part} of round {t} has {len(lines)} lines; a mean needs one of each of the "
                    f"{len(clients)} clients"
                )
            for name, values in metrics.items():
                if any(values[i] is None for i in lines):
                    continue
                mine = np.array([values[i] for i in lines], float)
                log.add(f"{part}_{name}", "", t, float(mine.mean()))
                if samples[lines].any():
                    log.add(f"{part}_{name}_by_samples", "", t, float(np.average(mine, weights=samples[lines])))
    return log


def is_leaf_record(path: Path) -> bool:
    """Whether a CSV file is `metrics_sys.csv`, whose rounds begin with 1."""
    lines = [] if path.suffix.lower() == ".json" else read_csv(path, "the record of participation", LARGEST)
    return bool(lines) and {CLIENT, ROUND, SAMPLES} <= {cell.strip() for cell in lines[0][1]}


def read_participation(path: Path, clients: Sequence[str] | None, count: int | None, first_round: int) -> np.ndarray:
    r"""The weights (T, N) of `metrics_sys.csv`, in each round $n_k/\sum_jn_j$ with the participants' `num_samples`.

    Round r of the file is the one between the models r - 1 and r of `metrics_stat.csv`.
    """
    if clients is None and count is None:
        raise FedboundsError(f"{path} lists participants only: give clients=N, the number of all clients")
    return read_record(path, clients=clients or count, start=first_round + 1)


def _texts(table: Table, name: str) -> list[str]:
    return [cell for _, cell in table.column(name)]


def _whole(table: Table, name: str) -> list[int]:
    """A column of whole numbers of at least 0."""
    found = []
    for (number, cell), value in zip(table.column(name), table.numbers(name), strict=True):
        if value is None or value != value or not 0 <= value < 2**53 or value != int(value):
            raise FedboundsError(f"{table.path}, line {number}: {name} = {cell!r} must be a whole number of at least 0")
        found.append(int(value))
    return found
