"""Fair comparisons: every method has the same grid and the same budget, on seeds that no method is judged on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import Sweep
from fedbounds.figures.claims import level
from fedbounds.figures.paper_gallery import Traces

FIRST_SEED = 1000  # of the seeds for tuning; those that are judged begin at 0
EXTENSIONS = 4  # values that are added on either side of a grid

Setting = Mapping[str, float]
Scores = Callable[[Sequence[Setting]], Sequence[float]]


def tuning_seeds(count: int) -> list[int]:
    """Seeds that nothing is judged on."""
    return list(range(FIRST_SEED, FIRST_SEED + count))


@dataclass(frozen=True)
class Tuned:
    """How a method got its step sizes.

    Attributes:
        grid: parameter to its values as they were given.
        searched: parameter to its values in the end; every combination of them was tried.
        tried: every setting with its score, in the order in which they were tried.
    """

    grid: Mapping[str, Sequence[float]]
    searched: Mapping[str, Sequence[float]]
    tried: tuple[tuple[Setting, float], ...]

    @property
    def winner(self) -> Setting:
        """The setting with the smallest score; of equals, as where all diverged, the one with the smaller steps."""
        return min(self.tried, key=lambda one: (one[1], *one[0].values()))[0]

    @property
    def edges(self) -> tuple[str, ...]:
        """Parameters of several values of which the winner has the smallest or the largest."""
        return tuple(
            name
            for name, values in self.searched.items()
            if len(values) > 1 and self.winner[name] in (values[0], values[-1])
        )

    @property
    def words(self) -> str:
        """The winner, and whether it stands at an edge, for captions."""
        values = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in self.winner.items())
        return values + (f" (still at the edge of its grid: {', '.join(self.edges)})" if self.edges else "")

    def to_dict(self) -> dict[str, Any]:
        """For manifests."""
        return {
            "grid": {name: list(values) for name, values in self.grid.items()},
            "searched": {name: list(values) for name, values in self.searched.items()},
            "tried": [{**setting, "score": score} for setting, score in self.tried],
            "winner": dict(self.winner),
            "at the edge": list(self.edges),
        }


def tune(grid: Mapping[str, Sequence[float]], scores: Scores, extensions: int = EXTENSIONS) -> Tuned:
    """Try every combination of a grid, which grows where the winner stands at an edge of it.

    Args:
        grid: parameter to its values, in ascending order; one with a single value is held.
        scores: the scores of several settings at once, on `tuning_seeds`; smaller is better, infinite if one diverged.
        extensions: how many values may be added on each side of each parameter, each by the ratio of the last two
            values, in six digits.

    Raises:
        FedboundsError: values are not in ascending order, or a score is no number.

    Example:
        >>> found = tune({"step": (0.01, 0.1)}, lambda settings: [abs(one["step"] - 1) for one in settings])
        >>> found.winner, found.searched, found.edges
        ({'step': 1.0}, {'step': (0.01, 0.1, 1.0, 10.0)}, ())
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


def tune_by_runs(
    run: Callable[[Sweep], Traces],
    sweep_of: Callable[[Mapping[str, Mapping[str, Any]]], Sweep],
    method: Callable[[Setting], Mapping[str, Any]],
    grid: Mapping[str, Sequence[float]],
    cycle: int,
    metric: str = "train_loss",
) -> Tuned:
    """Tune one method by what its runs end with.

    Args:
        run: makes the runs of a sweep or takes those that are kept, as `PaperGallery.run`.
        sweep_of: the sweep of some algorithms by label, on `tuning_seeds`.
        method: the algorithm of a setting.
        grid: as in `tune`.
        cycle: the last rounds, over which a score is averaged.
        metric: a loss, or an accuracy, of which the share got wrong is the score.
    """

    def scores(settings: Sequence[Setting]) -> list[float]:
        labels = [", ".join(f"{name} = {value:g}" for name, value in one.items()) for one in settings]
        traces = run(sweep_of({label: method(one) for label, one in zip(labels, settings, strict=True)}))
        return [level(traces[label], cycle, metric).mean for label in labels]

    return tune(grid, scores)


def _wider(values: Sequence[float], side: int) -> tuple[float, ...]:
    """One more value, by the ratio of the last two on that side, as one would write it down."""
    edge, inner = (values[0], values[1]) if side == 0 else (values[-1], values[-2])
    more = float(f"{edge * edge / inner:.6g}")
    return (more, *values) if side == 0 else (*values, more)
