"""Tightness: bound, worst case and measured value at the same constants, against each constant that varies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.compare_run import RunComparison
from fedbounds.figures.charts.picture import BOUND, COLORS, DOTTED, Curve, Picture, styled
from fedbounds.figures.charts.theory import axis_label

if TYPE_CHECKING:
    from fedbounds.empirical.falsification.worst_case import WorstCase

WORST, MEASURED = COLORS[1], COLORS[0]
SHOWN = 20.0  # the largest ratio of the least bound or worst case to the lower end of the y axis
WORDS = {True: "worst case, attained", False: "upper bound of the worst case"}


@dataclass(frozen=True)
class Tight:
    """A bound, its worst case (or why there is none) and a measured left-hand side at one setting."""

    bound: float
    valid: bool
    measured: float
    worst: WorstCase | str
    sources: frozenset[str]

    @property
    def value(self) -> float:
        """The worst case; nan if there is none."""
        return np.nan if isinstance(self.worst, str) else self.worst.value

    @property
    def attained(self) -> bool:
        """Whether a function attains the worst case."""
        return not isinstance(self.worst, str) and self.worst.attained


Panels = Mapping[str, Mapping[float, Tight]]  # constant -> value -> the result there
Settings = Mapping[str, Mapping[float, Mapping[str, Any]]]  # constant -> value -> the arguments that differ
Progress = Callable[[int, int], None]  # called with the numbers of settings done and in all


def count(settings: Settings) -> int:
    """The number of settings."""
    return sum(map(len, settings.values()))


def tight_panels(at: Callable[..., Tight], settings: Settings, progress: Progress | None = None) -> Panels:
    """The result at every setting; `progress` is called after each."""
    found: dict[str, dict[float, Tight]] = {name: {} for name in settings}
    for name, some in settings.items():
        for value, setting in some.items():
            found[name][value] = at(**setting)
            if progress is not None:
                progress(sum(map(len, found.values())), count(settings))
    return found


def solve_worst_case(method: str, **setting: object) -> WorstCase | str:
    """The worst case, or the reason why the solver found none."""
    from fedbounds.empirical.falsification.worst_case import worst_case

    try:
        return worst_case(method, **setting)
    except FedboundsError as error:
        return str(error)


def tight_of_run(found: RunComparison, worst: WorstCase | str) -> Tight:
    """A run at its last horizon, with the worst case at its constants."""
    sources = {k.source for n, k in found.constants.items() if n not in found.evaluation.unused}
    return Tight(float(found.bound[-1]), bool(found.valid[-1]), float(found.measured[-1]), worst, frozenset(sources))


def tightness(key: str, form: str, panels: Panels, *, title: str, caption: str) -> Picture:
    """Bound, worst case and measured value of a form, a panel for each constant that varies."""
    result = load(key)
    measure = result.form(form).measure or result.measure
    data: list[Curve] = []
    with styled():
        figure = Figure(figsize=(max(4.8, 2.4 * len(panels)), 3.5))
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (name, at) in zip(grid, panels.items(), strict=True):
            data += [replace(curve, label=f"{name}: {curve.label}") for curve in _draw_panel(axes, at)]
            axes.set_xlabel(name)
        every = [tight for at in panels.values() for tight in at.values()]
        least, most = np.nanmin([min(t.bound, t.value) for t in every]), max(t.bound for t in every)
        low = min((t.measured for t in every if t.measured > 0), default=least)
        grid[0].set_ylim(max(least / SHOWN, low / 2), 2 * most)
        grid[0].yaxis.set_minor_locator(NullLocator())
        grid[0].set_ylabel(axis_label(measure), fontsize=8)
        handles = [
            Line2D([], [], color=BOUND, label=f"bound [{form}]"),
            *(
                Line2D([], [], color=WORST, marker="o", linewidth=0.8, markerfacecolor=_fill(kind), label=label)
                for kind, label in WORDS.items()
                if any(t.attained == kind for t in every)
            ),
            Line2D([], [], color=MEASURED, marker=".", linestyle="--", label="measured on a quadratic"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return Picture(
        figure,
        f"{title}: {measure}, {result.source}. {caption} {_describe(every)}",
        f"{len(panels)} panels, against {', '.join(panels)}: a bound, below it the worst case, below that what is "
        "measured.",
        data,
        {"result": key, "form": form, "worst over bound": spread([t.value / t.bound for t in every])},
    )


def module_tightness(module: Any, progress: Progress | None = None) -> Picture:
    """The figure of a paper's module `tightness`: KEY, FORM, SETTINGS, evaluate_setting, TITLE and CAPTION."""
    found = tight_panels(module.evaluate_setting, module.SETTINGS, progress)
    return tightness(module.KEY, module.FORM, found, title=module.TITLE, caption=module.CAPTION)


def spread(values: Iterable[float]) -> str:
    """The least and the largest of the finite values."""
    some = [v for v in values if np.isfinite(v)]
    if not some:
        return "none"
    low, high = f"{min(some):.2g}", f"{max(some):.2g}"
    return low if low == high else f"{low} to {high}"


def _describe(every: list[Tight]) -> str:
    failed, missing = sum(not t.valid for t in every), [t for t in every if isinstance(t.worst, str)]
    kinds = sorted({t.worst.kind for t in every if not isinstance(t.worst, str)})
    lost = f" At {len(missing)} settings the solver found no clean optimum, and nothing is drawn." if missing else ""
    below = sum(t.measured < min(u.value for u in every if u.value > 0) / SHOWN for t in every)
    lost += f" Below the picture, but in its data: {below} of what was measured." if below else ""
    conditions = f"Dotted: a condition fails ({failed} settings)." if failed else "All conditions hold."
    sources = ", ".join(sorted({s for t in every for s in t.sources}))
    return (
        f"Worst case over bound: {spread(t.value / t.bound for t in every)}; measured over worst case: "
        f"{spread(t.measured / t.value for t in every)}. Worst cases are over all functions with these constants, by "
        f"performance estimation: {', '.join(kinds)}. Filled: some function attains it; hollow: the worst case is at "
        f"most this.{lost} {conditions} Constants of the runs are {sources}."
    )


def _fill(attained: bool) -> str:
    return WORST if attained else "white"


def _draw_panel(axes: Axes, at: Mapping[float, Tight]) -> list[Curve]:
    """Draw a panel and return its data."""
    x, every = np.array(list(at), dtype=float), list(at.values())
    bound = np.array([t.bound for t in every])
    worst, measured = np.array([t.value for t in every]), np.array([t.measured for t in every])
    valid, attained = np.array([t.valid for t in every]), np.array([t.attained for t in every])
    axes.plot(x, bound, color=BOUND, linestyle=DOTTED)
    axes.plot(x, np.where(valid, bound, np.nan), color=BOUND)
    axes.plot(x, worst, color=WORST, linewidth=0.8)
    for kind in (True, False):
        axes.plot(x[attained == kind], worst[attained == kind], "o", color=WORST, markerfacecolor=_fill(kind))
    axes.plot(x, measured, color=MEASURED, marker=".", linestyle="--")
    axes.set_xscale("log" if x.min() > 0 else "linear")
    axes.set_yscale("log")
    if len(x) <= 6:
        axes.set_xticks(x, [f"{v:g}" for v in x])
        axes.set_xticks([], minor=True)
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    return [
        Curve("bound", x, bound, valid=valid),
        *(
            Curve(word, x[attained == kind], worst[attained == kind], valid=valid[attained == kind])
            for kind, word in WORDS.items()
            if (attained == kind).any()
        ),
        Curve("measured", x, measured, valid=valid),
    ]
