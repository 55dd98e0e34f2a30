"""Which of several bounds is the smallest, over two constants."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fedbounds.bounds.comparison.comparability import Named
from fedbounds.bounds.comparison.compare import BoundComparison, compare, whole_settings
from fedbounds.bounds.display.plain_text import as_cell
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.inputs.checks import as_real
from fedbounds.bounds.search.effort import Watch

EQUAL = 1e-6  # bounds this close are equal (an optimizer is not more exact); the first named is the smallest
MOST_CELLS = 10_000
Axis = tuple[str, Sequence[float] | np.ndarray]


@dataclass(frozen=True)
class MethodMap:
    """Bounds of methods over two constants, each at its own best step sizes."""

    x: str  # the constant along the rows of the arrays; `x_meaning` in words
    x_meaning: str
    x_values: np.ndarray  # shape (nx,)
    y: str
    y_meaning: str
    y_values: np.ndarray  # shape (ny,)
    values: np.ndarray  # (methods, ny, nx); nan where a condition fails or there is no value
    order_only: bool  # whether the bounds hide constants in an O(.), which are taken as 1
    comparison: BoundComparison  # of the first row: labels, notes, the constants that do not vary
    algorithms: tuple[str, ...] = ()  # of each bound its kind of algorithm, "" where its file names none

    @property
    def labels(self) -> tuple[str, ...]:
        """The bounds, each by key and form."""
        return tuple(row.label for row in self.comparison.rows)

    @property
    def winner(self) -> np.ndarray:
        """The index of the smallest bound, shape (ny, nx); -1 where no bound is valid."""
        table = np.where(np.isnan(self.values), np.inf, self.values)
        least = table.min(axis=0)
        return np.where(np.isfinite(least), np.argmax(table <= (1 + EQUAL) * least, axis=0), -1)

    @property
    def advantage(self) -> np.ndarray:
        """The second smallest bound divided by the smallest, shape (ny, nx); nan where at most one is valid."""
        first, second = np.sort(self.values, axis=0)[:2]  # nan comes last
        return second / first

    @property
    def wins(self) -> dict[str, int]:
        """By label: at how many settings the bound is the smallest."""
        winner = self.winner
        return {label: int(np.count_nonzero(winner == i)) for i, label in enumerate(self.labels)}

    def to_csv(self) -> str:
        """One line for every setting: the two constants, every bound, and the smallest one."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(as_cell, [self.x, self.y, *self.labels, "smallest"]))
        winner = self.winner
        for j, y in enumerate(self.y_values.tolist()):
            for i, x in enumerate(self.x_values.tolist()):
                numbers = [x, y, *self.values[:, j, i].tolist()]
                best = self.labels[winner[j, i]] if winner[j, i] >= 0 else ""
                writer.writerow(map(as_cell, [*(f"{v:.12g}" for v in numbers), best]))
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds compare --json` with two --vary (without schema and version)."""
        shared = self.comparison.to_dict()
        kept = ("measure", "unit", "optimize", "within", "constants", "notes")
        return {
            "x": {"name": self.x, "meaning": self.x_meaning, "values": self.x_values},
            "y": {"name": self.y, "meaning": self.y_meaning, "values": self.y_values},
            "bounds": [
                {"label": row.label, "mark": row.mark, "values": values}
                for row, values in zip(self.comparison.rows, self.values, strict=True)
            ],
            "smallest": self.winner,
            "wins": self.wins,
            "order_only": self.order_only,
            **{name: shared[name] for name in kept},
        }


def map_methods(
    results: Sequence[Named],
    x: Axis,
    y: Axis,
    constants: Mapping[str, Value],
    *,
    optimize: Sequence[str] = (),
    within: Mapping[str, tuple[float, float]] | None = None,
    watch: Watch | None = None,
) -> MethodMap:
    """Evaluate (or optimize) the bounds of methods over two constants, as `compare` does over one.

    Raises:
        FedboundsError: fewer than two bounds or values; left-hand sides, oracles or O(.) that cannot be compared; and
            anything that `compare` refuses.

    Example:
        >>> keys = ["patel-2024/minibatch-sgd-convex", "woodworth-2020/local-sgd-convex"]
        >>> known = dict(L=1, D2=1, N=10, T=100, sigma=0.1)
        >>> map_methods(keys, ("I", [2, 200]), ("d", [1e-4, 1.0]), known).winner.tolist()
        [[0, 1], [0, 0]]
    """
    if len(results) < 2:
        raise FedboundsError(f"a map needs at least two bounds, got {len(results)}; name another KEY")
    if x[0] == y[0] or y[0] in constants:
        raise FedboundsError(f"{y[0]} varies; give it once")
    named = [one if isinstance(one, tuple) else (one, None) for one in results]
    forms = [as_compiled(one).form(form) for one, form in named]
    results_of = [form.result for form in forms]
    x_values, y_values = (
        np.array(sorted({*whole_settings(results_of, name, as_real(name, given)).ravel().tolist()}))
        for name, given in (x, y)
    )
    for name, values in ((x[0], x_values), (y[0], y_values)):
        if values.size < 2:
            raise FedboundsError(f"a map needs at least two values of {name}, got {values.size}")
    if x_values.size * y_values.size > MOST_CELLS:
        raise FedboundsError(f"a map has at most {MOST_CELLS} settings, got {x_values.size * y_values.size}")
    ranked = partial(compare, results, optimize=optimize, within=within, methods=True)
    # the other way around at one setting, for the meaning of y
    meant = ranked((y[0], y_values[:1]), {**constants, x[0]: x_values[0]})
    rows: list[BoundComparison] = []
    for j, value in enumerate(y_values.tolist()):
        done = None if watch is None else partial(_counted, watch, j, y_values.size)
        rows.append(ranked((x[0], x_values), {**constants, y[0]: value}, watch=done))
    shared = {name: c for name, c in rows[0].constants.items() if name in meant.constants}  # without y
    valid = [[np.where(row.valid, row.values, np.nan) for row in one.rows] for one in rows]
    return MethodMap(
        rows[0].name,
        rows[0].meaning,
        rows[0].settings,
        meant.name,
        meant.meaning,
        y_values,
        np.array(valid).swapaxes(0, 1),
        forms[0].order_only,
        replace(rows[0], constants=shared),
        tuple(one.whole().algorithm for one in results_of),
    )


def _counted(watch: Watch, row: int, rows: int, done: int, total: int) -> None:
    watch(row * total + done, rows * total)
