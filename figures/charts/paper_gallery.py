"""The figures of a paper: a scale, kept runs, one function per figure; charts of dots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Store, Sweep, execute, plan
from fedbounds.empirical.sweep.executor import Progress
from fedbounds.figures.charts.curves import Scale, difference_curve, panels, seed_curve
from fedbounds.figures.charts.picture import COLORS, MARKERS, Curve, Picture, new_figure

SMOOTH = 0.03  # the papers' moving average over 3 % of the points
SECONDS = "core_seconds"  # in a record, of a run; as array of a trace, of each seed: processor time
Traces = Mapping[str, Sequence[Trace]]


class AnyScale(Protocol):
    """The scale of a paper's experiments."""

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        ...


ScaleT = TypeVar("ScaleT", bound=AnyScale)
ValueT = TypeVar("ValueT")
KeyT = TypeVar("KeyT", bound=Hashable)


def traces_of(
    sweep: Sweep, results: Path, workers: int = 1, progress: Progress | None = None, device: str | None = None
) -> dict[str, list[Trace]]:
    """The traces of a sweep by algorithm label; missing runs are made first."""
    runs, store = plan(sweep, device=device), Store(results / sweep.name)
    grouped: dict[str, list[Trace]] = {}
    for run, outcome in zip(runs, execute(runs, store, workers=workers, progress=progress), strict=True):
        if outcome.failed:
            raise FedboundsError(f"{sweep.name}, {run.title}: {outcome.status}")
        trace, record = store.load(run.key), store.read_status(run.key).record
        seconds = record.get(SECONDS, record["seconds"])  # records of earlier versions lack the first
        grouped.setdefault(run.task["labels"]["algorithm"], []).append(_with_seconds(trace, seconds))
    return grouped


def _with_seconds(trace: Trace, seconds: float | None) -> Trace:
    """The trace with the seconds of its run, in equal parts for its seeds."""
    if seconds is None:
        return trace
    each = np.full(len(trace.statuses), seconds / len(trace.statuses))
    return replace(trace, arrays={**trace.arrays, SECONDS: each}, dims={**trace.dims, SECONDS: ("seed",)})


def series(traces: Sequence[Trace], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Rounds (points,) and a metric (seeds, points) over several traces."""
    return traces[0].arrays["round"], np.concatenate([t.arrays[metric] for t in traces])


def final_accuracy(traces: Sequence[Trace], metric: str, last: int, chance: float) -> np.ndarray:
    """An accuracy over the last rounds in per cent, (seeds,); a run that diverged counts as chance."""
    rounds, values = series(traces, metric)
    ends = values[:, rounds > rounds[-1] - last]
    return 100 * np.where(np.isfinite(ends), ends, chance).mean(axis=1)


def convergence(
    title: str, traces: Traces, scale: str, note: str, start: int = 0, against: str | None = None
) -> Picture:
    """Training loss and test accuracy against rounds from `start` on: mean and standard deviation over seeds.

    `scale` is the scaling-down in words. A third panel has the differences of the losses from that of the method
    `against`, on the same seeds.
    """
    groups = {}
    for panel, metric in (("Training loss", "train_loss"), ("Test accuracy", "test_accuracy")):
        curves = [seed_curve(label, *series(some, metric), SMOOTH) for label, some in traces.items()]
        groups[panel] = [curve.since(start) for curve in curves]
    y_labels, differences = ["$f(x_t)$", "share of test images"], ""
    if against is not None:
        rounds, base = series(traces[against], "train_loss")
        groups[f"Loss minus that of {against}"] = [
            difference_curve(label, rounds, series(some, "train_loss")[1] - base, SMOOTH).since(start)
            for label, some in traces.items()
        ]
        y_labels.append("difference of $f(x_t)$")
        differences = (
            f" On the right the loss minus that of {against} on the same seed, with a 95 % interval of the mean; above "
            f"0 {against} is better."
        )
    y_scales: list[Scale] = ["linear"] * len(groups)
    if not start:
        y_scales[0] = "log"
    diverged = sorted({label for label, some in traces.items() for t in some if "diverged" in t.statuses})
    lost = f" Diverged and not drawn from there on: {', '.join(diverged)}." if diverged else ""
    return panels(
        groups,
        x_label="round $t$",
        y_labels=y_labels,
        title=title,
        caption=f"{title}. {note} {scale}. Moving average over 3 % of the points; mean and standard deviation "
        f"over seeds{f', from round {start} on' if start else ''}.{differences}{lost}",
        alternative=f"{', '.join(groups)} against rounds, for {', '.join(traces)}.",
        provenance={"scale": scale, "runs": {k: [t.spec for t in v][:1] for k, v in traces.items()}},
        y_scales=y_scales,
    )


class PaperGallery(Generic[ScaleT]):
    """The figures of one paper at one scale, from runs kept in one directory.

    A paper's subclass sets `scale_of`, which maps data set, network and `full` to a scale, and `usual`, its default
    data set.

    Args:
        results: the directory of the runs.
        dataset, network: of the images; defaults by the paper.
        data: the directory of local data files.
        workers: local processes.
        scale: another scale than the data set's own.
        progress: called after every run or worst case with the numbers done and in all.
        full: the paper's own numbers of clients, rounds and seeds.
        device: as in `fedbounds.empirical.runtime.device.resolve_device`.
    """

    scale_of: Callable[[str, str | None, bool], ScaleT]
    usual = "digits"

    def __init__(
        self,
        results: str | Path,
        dataset: str | None = None,
        data: str | None = None,
        network: str | None = None,
        workers: int = 1,
        scale: ScaleT | None = None,
        progress: Callable[[int, int], None] | None = None,
        full: bool = False,
        device: str | None = None,
    ) -> None:
        self.scale: ScaleT = scale or self.scale_of(dataset or self.usual, network, full)
        self.results, self.data, self.workers, self.progress = Path(results), data, workers, progress
        self.device = device
        self._kept: dict[Any, Any] = {}

    def at(self, scale: ScaleT, data: str | None = None) -> Self:
        """The figures at another scale, from runs in the same directory."""
        return type(self)(
            self.results, data=data, workers=self.workers, scale=scale, progress=self.progress, device=self.device
        )

    def keep(self, key: Hashable, make: Callable[[], ValueT]) -> ValueT:
        """A value by its key, made once."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @property
    def of_runs(self) -> Progress | None:
        """The progress function of a sweep."""
        advance = self.progress
        return None if advance is None else (lambda outcome, done, total: advance(done, total))

    def run(self, sweep: Sweep, workers: int | None = None) -> dict[str, list[Trace]]:
        """The traces of a sweep by the label of their algorithm."""
        return traces_of(sweep, self.results, workers or self.workers, self.of_runs, self.device)

    def run_each(self, sweeps: Mapping[KeyT, Sweep]) -> dict[KeyT, list[Trace]]:
        """The traces of sweeps of one algorithm each, side by side."""
        keys = {str(number): key for number, key in enumerate(sweeps)}
        tasks = [
            {**task, "labels": {**task["labels"], "algorithm": number}}
            for number, key in keys.items() for task in sweeps[key].tasks
        ]  # fmt: skip
        name = next(iter(sweeps.values())).name
        return {keys[number]: traces for number, traces in self.run(Sweep(name, tuple(tasks), name)).items()}


GalleryT = TypeVar("GalleryT")


def draw_by_name(
    paper: str, figures: Mapping[str, Callable[[GalleryT], Picture]], gallery: GalleryT, name: str
) -> Picture:
    """One figure of a paper by name.

    Raises:
        FedboundsError: no such figure; names the nearest.
    """
    if name not in figures:
        raise unknown_name(f"figure of {paper}", name, figures)
    return figures[name](gallery)


def dot_chart(
    title: str,
    values: Mapping[str, Mapping[str, Mapping[str, np.ndarray]]],
    x_label: str,
    caption: str,
    provenance: Mapping[str, object],
    share: bool = True,
    quartiles: bool = False,
) -> Picture:
    """A table as dots: `values` maps panel to row to kind to values (seeds,); bars are one standard deviation.

    With `quartiles` dots are medians and bars reach from the first to the third quartile; with `share` panels share the
    x axis.
    """
    data = []
    rows = list(max(values.values(), key=len))
    with new_figure(9.2, 1.3 + 0.32 * len(rows), title) as figure:
        axes = figure.subplots(1, len(values), sharey=True, sharex=share, squeeze=False)[0]
        for panel, (name, table) in zip(axes, values.items(), strict=True):
            for label, kinds in table.items():
                row = rows.index(label)
                for i, (kind, found) in enumerate(kinds.items()):
                    low, mean, high = _quartiles(found) if quartiles else _deviations(found)
                    place = row + 0.16 * (i - (len(kinds) - 1) / 2) * 2
                    panel.errorbar(mean, place, xerr=[[mean - low], [high - mean]], color=COLORS[i], marker=MARKERS[i],
                                   markersize=4.5, linewidth=1.2, label=kind if row == 0 else None)  # fmt: skip
                    point = [np.array([v]) for v in (row, mean, low, high)]
                    data.append(Curve(f"{name}: {label} {kind}".strip(": "), *point))
            panel.set(title=name, xlabel=x_label)
        axes[0].set_yticks(range(len(rows)), rows)
        axes[0].set_ylim(len(rows) - 0.5, -0.5)
        handles, labels = axes[0].get_legend_handles_labels()
        if any(labels):
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    of = f" for {', '.join(values)}" if any(values) else ""
    alternative = f"A chart of dots, one row for each of {', '.join(rows)}{of}."
    return Picture(figure, caption, alternative, data, provenance)


def _quartiles(values: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return low, middle, high


def _deviations(values: np.ndarray) -> tuple[float, float, float]:
    mean, spread = float(values.mean()), float(values.std(ddof=min(1, len(values) - 1)))
    return mean - spread, mean, mean + spread
