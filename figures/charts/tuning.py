"""Tuning with the same grid and the same budget for every method, on separate seeds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Sweep, resolve
from fedbounds.figures.charts.claims import level
from fedbounds.figures.charts.paper_gallery import KeyT, Traces, series

FIRST_SEED = 1000  # of the seeds for tuning; those of the compared runs begin at 0
EXTENSIONS = 4  # values that are added on either side of a grid
FINEST = 1.01  # ratio of steps that a search takes

TunedSetting = Mapping[str, float]
Scores = Callable[[Sequence[TunedSetting]], Sequence[float]]


def tuning_seeds(count: int) -> list[int]:
    """Seeds for tuning, apart from those of the compared runs."""
    return list(range(FIRST_SEED, FIRST_SEED + count))


@dataclass(frozen=True)
class Tuned:
    """A search for step sizes: the grid, the values searched in the end, and every setting with its score in order."""

    grid: Mapping[str, Sequence[float]]
    searched: Mapping[str, Sequence[float]]
    tried: tuple[tuple[TunedSetting, float], ...]

    @property
    def winner(self) -> TunedSetting:
        """The setting with the smallest score; of equal scores the one with the smaller steps."""
        return min(self.tried, key=lambda one: (one[1], *one[0].values()))[0]

    @property
    def edges(self) -> tuple[str, ...]:
        """Parameters whose winning value is the smallest or the largest searched."""
        return tuple(
            name
            for name, values in self.searched.items()
            if len(values) > 1 and self.winner[name] in (values[0], values[-1])
        )

    @property
    def words(self) -> str:
        """The winner, and whether it is at an edge, for captions."""
        values = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in self.winner.items())
        return values + (f" (still at the edge of its grid: {', '.join(self.edges)})" if self.edges else "")

    def summary(self) -> dict[str, Any]:
        """A short record for manifests: the winner, its score, and the searched range."""
        return {
            "winner": dict(self.winner),
            "score": float(f"{min(score for _, score in self.tried):.5g}"),
            "settings tried": len(self.tried),
            "least and largest tried": {name: [values[0], values[-1]] for name, values in self.searched.items()},
            "at the edge": list(self.edges),
        }

    def to_dict(self) -> dict[str, Any]:
        """The whole record for manifests."""
        return {
            "grid": {name: list(values) for name, values in self.grid.items()},
            "searched": {name: list(values) for name, values in self.searched.items()},
            "tried": [{**setting, "score": score} for setting, score in self.tried],
            "winner": dict(self.winner),
            "at the edge": list(self.edges),
        }


def tune(grid: Mapping[str, Sequence[float]], scores: Scores, extensions: int = EXTENSIONS) -> Tuned:
    """Try every combination of a grid, extended where the winner is at an edge.

    Args:
        grid: parameter to its values, in ascending order; one with a single value is fixed.
        scores: the scores of several settings at once, on `tuning_seeds`; smaller is better, infinite if one diverged.
        extensions: values that may be added on each side of each parameter, by the ratio of the last two, in six
        digits.
    """
    for name, values in grid.items():
        if not values or list(values) != sorted(set(values)):
            raise FedboundsError(f"the grid of {name} must be different values in ascending order, it is {values}")
    left = {(name, side): extensions for name in grid for side in (0, -1)}
    searched, known = {name: tuple(values) for name, values in grid.items()}, {}
    while True:
        new = [one for one in product(*searched.values()) if one not in known]
        for one, score in zip(new, scores([dict(zip(grid, one, strict=True)) for one in new]), strict=True):
            if score != score:
                raise FedboundsError("a score is no number; what diverged must score infinity")
            known[one] = float(score)
        found = Tuned(grid, searched, tuple((dict(zip(grid, one, strict=True)), s) for one, s in known.items()))
        wider = dict(searched)
        for name in found.edges:
            side = 0 if found.winner[name] == searched[name][0] else -1
            if left[name, side]:
                left[name, side] -= 1
                wider[name] = _wider(searched[name], side)
        if wider == searched:
            return found
        searched = wider


def search(
    starts: Mapping[KeyT, TunedSetting],
    scores: Callable[[Mapping[KeyT, TunedSetting]], Mapping[KeyT, float]],
    budget: int,
    ratio: float = 3.0,
    extensions: int = 0,
    gain: float = 0.0,
) -> dict[KeyT, Tuned]:
    """Line searches in logarithms side by side, for more parameters than a full grid allows.

    All parameters of a search move together by a ratio, then each by itself; a better step is followed by another in
    its direction. When no line is better the ratio becomes its square root. Every search tries exactly `budget`
    settings from its start, and up to `extensions` more while the best is at an edge. A step must improve the score by
    the share `gain`.

    Args:
        starts: key of each search to its first setting.
        scores: the scores of one setting of each search that goes on, smaller is better, infinite if one diverged; the
            searches do not depend on each other.

    Example:
        >>> def distances(some):
        ...     return {key: abs(setting["step"] - key) for key, setting in some.items()}
        >>> found = search({1.0: {"step": 1.0}, 9.0: {"step": 1.0}}, distances, 4)
        >>> [tuned.winner["step"] for tuned in found.values()]
        [1.0, 9.0]
    """
    if budget < 1:
        raise FedboundsError(f"budget = {budget} must be at least 1")
    searches = {key: _search(start, budget, ratio, extensions, gain) for key, start in starts.items()}
    wanted, found = {key: next(one) for key, one in searches.items()}, dict[KeyT, Tuned]()
    while wanted:
        values, then = scores(wanted), dict[KeyT, TunedSetting]()
        for key in wanted:
            if values[key] != values[key]:
                raise FedboundsError("a score is no number; what diverged must score infinity")
            try:
                then[key] = searches[key].send(float(values[key]))
            except StopIteration as end:
                found[key] = end.value
        wanted = then
    return {key: found[key] for key in starts}


def _search(
    start: TunedSetting, budget: int, ratio: float, extensions: int, gain: float
) -> Generator[TunedSetting, float, Tuned]:
    """One search: yields settings and is sent their scores."""
    names, known, allowed = tuple(start), dict[tuple[float, ...], float](), budget
    lines = (names, *((name,) for name in names)) if len(names) > 1 else (names,)

    def score(setting: TunedSetting) -> Generator[TunedSetting, float, float]:
        key = tuple(setting.values())
        if key not in known:
            if len(known) == allowed:
                return inf
            known[key] = yield setting
        return known[key]

    best, least, factor = dict(start), (yield from score(start)), ratio
    while len(known) < budget and factor > FINEST:
        if least == inf:  # smaller steps until one does not diverge
            best = _multiply(best, names, 1 / factor)
            least = yield from score(best)
            continue
        before = least
        for line in lines:
            for step in (factor, 1 / factor):
                while (value := (yield from score(moved := _multiply(best, line, step)))) < least - gain * abs(least):
                    best, least = moved, value
        if least == before:
            factor = factor**0.5

    def found() -> Tuned:
        tried = tuple((dict(zip(names, key, strict=True)), value) for key, value in known.items())
        values = {name: tuple(sorted({one[name] for one, _ in tried})) for name in names}
        return Tuned({name: (value,) for name, value in start.items()}, values, tried)

    allowed, flat = budget + extensions, set[str]()
    while len(known) < allowed and (edges := [name for name in found().edges if name not in flat]):
        best, least, name = found().winner, min(known.values()), edges[0]
        outward = ratio if best[name] == found().searched[name][-1] else 1 / ratio
        if not (yield from score(_multiply(best, (name,), outward))) < least - gain * abs(least):
            flat.add(name)
    return found()


def _multiply(setting: TunedSetting, line: Sequence[str], step: float) -> dict[str, float]:
    return {name: float(f"{value * step:.6g}") if name in line else value for name, value in setting.items()}


def level_with_drift(traces: Sequence[Trace], last: int, metric: str) -> float:
    """The mean of a loss over the last rounds plus its change from the rounds before; infinite if a seed diverged."""
    before, after = stretches(traces, last, metric)
    score = after.mean() + abs(after.mean() - before.mean())
    return float(score) if np.isfinite(score) else inf


def stretches(traces: Sequence[Trace], last: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """The means over the rounds before the last stretch and over the last, each (seeds,)."""
    rounds, values = series(traces, metric)
    ends = (rounds[-1] - last, rounds[-1])
    before, after = (values[:, (rounds > end - last) & (rounds <= end)].mean(axis=1) for end in ends)
    return before, after


def tune_by_runs(
    run: Callable[[Sweep], Traces],
    sweep_of: Callable[[Mapping[str, Mapping[str, Any]]], Sweep],
    method: Callable[[TunedSetting], Mapping[str, Any]],
    grid: Mapping[str, Sequence[float]],
    cycle: int,
    metric: str = "train_loss",
) -> Tuned:
    """Tune one method by the final loss (or 1 - accuracy) of its runs.

    `run` makes the runs of a sweep, `sweep_of` is the sweep of algorithms by label on `tuning_seeds`, `method` the
    algorithm of a setting; a score is averaged over the last `cycle` rounds.
    """

    def scores(settings: Sequence[TunedSetting]) -> list[float]:
        labels = [", ".join(f"{name} = {value:g}" for name, value in one.items()) for one in settings]
        traces = run(sweep_of({label: method(one) for label, one in zip(labels, settings, strict=True)}))
        return [level(traces[label], cycle, metric).mean for label in labels]

    return tune(grid, scores)


def _wider(values: Sequence[float], side: int) -> tuple[float, ...]:
    """The values with one more on a side, by the ratio of the last two."""
    edge, inner = (values[0], values[1]) if side == 0 else (values[-1], values[-2])
    more = float(f"{edge * edge / inner:.6g}")
    return (more, *values) if side == 0 else (*values, more)


class Fields(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


ScaleT = TypeVar("ScaleT", bound=Fields)


def scale_named(scales: Mapping[str, ScaleT], dataset: str, network: str | None = None) -> ScaleT:
    """The scale of a data set, with another network if one is given."""
    if dataset not in scales:
        raise unknown_name("data set of these figures", dataset, scales)
    return scales[dataset] if network is None else replace(scales[dataset], network=network)


def sweep_of(name: str, documents: Iterable[Mapping[str, Any]]) -> Sweep:
    """One sweep of the tasks of several documents."""
    return Sweep(name, tuple(task for document in documents for task in resolve(document, name).tasks), name)


def with_data(problem: dict[str, Any], data: str | None) -> dict[str, Any]:
    """A problem with the directory of its local files, if there is one."""
    return problem if data is None else {**problem, "data": data}


def images_of(dataset: str, size: tuple[int, ...] | None) -> str | dict[str, Any]:
    """A data set as specifications have it: a name, or a table with the numbers of generated images and their side.

    Example:
        >>> images_of("digits", None), images_of("glyphs", (3000, 1000, 14))
        ('digits', {'kind': 'glyphs', 'train': 3000, 'test': 1000, 'side': 14})
    """
    if size is None:
        return dataset
    return {"kind": dataset} | dict(zip(("train", "test", "side"), size, strict=False))


def describe_images(dataset: str, size: tuple[int, ...] | None) -> str:
    """The data set for captions.

    Example:
        >>> describe_images("glyphs", (3000, 1000, 14))
        'glyphs (3,000 images of 14 x 14 pixels, 1,000 for tests)'
    """
    if size is None:
        return dataset
    pixels = f" of {size[2]} x {size[2]} pixels" if size[2:] else ""
    return f"{dataset} ({size[0]:,} images{pixels}, {size[1]:,} for tests)"


def describe_decay(weight_decay: float) -> str:
    """The weight decay for captions, with a comma and a space behind it; empty without one.

    Example:
        >>> describe_decay(0.02), describe_decay(0.0)
        ('weight decay 0.02, ', '')
    """
    return f"weight decay {weight_decay:g}, " if weight_decay else ""
