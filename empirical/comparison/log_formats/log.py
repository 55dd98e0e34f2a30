"""A log as a reader leaves it: metrics by run and round, with gaps; and the columns of a trace that are chosen."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote

Columns = Mapping[str, str | Sequence[str]]  # a name of ours to the column of the file, or to one for each run
Runs = dict[str, dict[float, float]]  # run -> round -> value
ROUND, SEED = "round", "seed"
LARGEST = 2**30  # bytes of a log
MOST_SHOWN = 12  # columns in an error
GUESSES = (  # a name of ours; the words of a column that is probably it, others that it lacks, and preferred ones
    ("gradient_norm_squared", r"grad.*(norm|sq)", r"client", r"sq"),
    ("train_loss", r"loss|objective", r"test|val|eval|by_samples|std|after", r"train"),
    ("test_loss", r"(?=.*(test|val|eval)).*loss", r"by_samples|std|after", r"test"),
    ("test_accuracy", r"acc", r"train|by_samples|std|after", r"test|val|eval"),
)
ROUNDS = ("round", "server_round", "communication_round", "comm_round", "round_number", "central_iteration", "step",
          "_step", "global_step", "epoch", "iteration", "iter", "t")  # fmt: skip


@dataclass
class Log:
    """What a file holds.

    Args:
        where: the file, as errors name it.
        metrics: metric -> run -> round -> value, in the order of the file.
        columns: the metrics that are read if the user chooses none, by names of ours; None for the probable ones.
        notes: what the reader had to assume.
        clients: names of the clients, where the file has them.
        runs: names of all runs, also of those without a value.
    """

    where: str
    metrics: dict[str, Runs] = field(default_factory=dict)
    columns: Columns | None = None
    notes: list[str] = field(default_factory=list)
    clients: tuple[str, ...] | None = None
    runs: dict[str, None] = field(default_factory=dict)

    def add(self, metric: str, run: str, at: float, value: float, line: int | None = None) -> None:
        """One value; refused if the metric has one in this round of this run."""
        values = self.metrics.setdefault(metric, {}).setdefault(run, {})
        last = next(reversed(values), -math.inf)
        if math.isfinite(value) and last < at < math.inf:
            values[at] = value
            return
        place, of_run = f"{self.where}{f', line {line}' if line else ''}", f" of {run!r}" if run else ""
        for name, number in (("round", at), (metric, value)):
            if not math.isfinite(number):
                raise FedboundsError(f"{place}: {name} = {number} is not finite")
        if at in values:
            raise FedboundsError(f"{place}: {metric} has two values in round {at:g}{of_run}; choose a column with one")
        said = f"round {at:g}{of_run} comes after round {last:g}"
        raise FedboundsError(f"{place}: {said}; rounds must rise: sort the lines")

    def select(self, columns: Columns | None) -> dict[str, np.ndarray]:
        """The columns of a trace: `round`, `seed` where there are several runs, and the chosen metrics.

        Rounds that a chosen metric or a run lacks are left out, with a note.
        """
        chosen = dict(self._default() if columns is None else columns)
        for name in (ROUND, SEED):
            chosen.pop(name, None)
        if not chosen:
            raise FedboundsError(f"{self.where} has no metric that is chosen; it has {shown(self.metrics)}")
        series = {name: self._series(theirs) for name, theirs in chosen.items()}
        first = next(iter(series.values()))
        for name, runs in series.items():
            if runs.keys() != first.keys():
                other = sorted(runs.keys() ^ first.keys())[0]
                raise FedboundsError(f"{self.where}: run {other!r} lacks {name} or {next(iter(series))}; give columns=")
        if missing := [run for run in self.runs if run not in first and isinstance(next(iter(chosen.values())), str)]:
            self.notes.append(f"runs without {next(iter(series))} are not read: {shown(missing)}")
        every = [values for runs in series.values() for values in runs.values()]
        rounds = sorted(set(every[0]).intersection(*every[1:]))
        union = set[float]().union(*every)
        if not rounds:
            raise FedboundsError(f"{self.where}: no round has {' and '.join(series)} of every run; give columns=")
        if len(rounds) < len(union):
            whose = f"{' and '.join(series)}" + (f" of all {len(first)} runs" if len(first) > 1 else "")
            self.notes.append(f"read the {len(rounds)} rounds that have {whose}, of {len(union)} in the log")
        return self._arrays(series, rounds)

    def _arrays(self, series: Mapping[str, Runs], rounds: list[float]) -> dict[str, np.ndarray]:
        """The columns, one run after the other."""
        names = list(next(iter(series.values())))
        columns = {ROUND: np.tile(rounds, len(names))}
        if len(names) > 1 or names[0]:
            numbers = _seeds(names)
            columns[SEED] = np.repeat(numbers, len(rounds))
            if [str(number) for number in numbers] != names:
                pairs = ", ".join(f"{n} = {name}" for n, name in zip(numbers, names, strict=True))
                self.notes.append(f"the runs are seeds: {pairs}")
        for name, runs in series.items():
            columns[name] = np.array([values[t] for values in runs.values() for t in rounds])
        return columns

    def _series(self, theirs: str | Sequence[str]) -> Runs:
        """The runs of one metric; several columns are one run each."""
        if isinstance(theirs, str):
            if theirs not in self.metrics:
                raise FedboundsError(f"{self.where}: {unknown_name('column', theirs, self.metrics)}")
            return self.metrics[theirs]
        runs = {}
        for name in theirs:
            found = self._series(name)
            if len(found) > 1:
                raise FedboundsError(f"{self.where}: {name} has {len(found)} runs; give its name alone, not a list")
            runs[name] = next(iter(found.values()))
        return runs

    def _default(self) -> Columns:
        """The metrics that are read if the user chooses none: those that have every round of the main one."""
        found = self.columns
        if found is None:
            guessed = guess_metrics(self.metrics)
            self.notes += [f"{name} is {theirs}" for name, theirs in guessed.items() if name != theirs]
            found = guessed
        if not found:
            raise FedboundsError(
                f"{self.where}: which of its metrics is which? It has {shown(self.metrics)}; give "
                f"columns={{'train_loss': {next(iter(self.metrics), '')!r}}}"
            )
        main = next((ours for ours, *_ in GUESSES if ours in found), next(iter(found)))
        wanted, kept = self._series(found[main]), {}
        for name, theirs in found.items():
            series = self._series(theirs)
            if all(values.keys() <= series.get(run, {}).keys() for run, values in wanted.items()):
                kept[name] = theirs
            else:
                self.notes.append(f"{name} lacks rounds of {main} and is not read; columns= can choose it")
        return kept


def _seeds(names: Sequence[str]) -> list[int]:
    """Whole numbers for runs: their names, or their places."""
    whole = [re.fullmatch(r"(\d{1,18})(\.0*)?", name) for name in names]
    numbers = [int(match[1]) for match in whole if match]
    return numbers if len(set(numbers)) == len(names) else list(range(len(names)))


def guess_metrics(names: Iterable[str]) -> dict[str, str]:
    """Names of ours for the columns that are probably them.

    Example:
        >>> guess_metrics(["Wall time", "Train/Loss", "val_acc"])
        {'train_loss': 'Train/Loss', 'test_accuracy': 'val_acc'}
    """
    left, found = list(names), dict[str, str]()
    for ours, words, others, preferred in GUESSES:
        near = [n for n in left if re.search(words, n, re.IGNORECASE) and not re.search(others, n, re.IGNORECASE)]
        if near:
            best = min(near, key=lambda n: (n != ours, not re.search(preferred, n, re.IGNORECASE), len(n)))
            left.remove(best)
            found[ours] = best
    return found


def guess_round(names: Iterable[str]) -> str | None:
    """The column that probably numbers the rounds."""
    known = {name.lower().rpartition("/")[2].replace(" ", "_"): name for name in reversed(list(names))}
    return next((known[name] for name in ROUNDS if name in known), None)


def shown(names: Iterable[str]) -> str:
    """Names of columns for an error, the first ones."""
    listed = [quote(name) for name in names]
    more = f", and {len(listed) - MOST_SHOWN} more" if len(listed) > MOST_SHOWN else ""
    return ", ".join(listed[:MOST_SHOWN]) + more
