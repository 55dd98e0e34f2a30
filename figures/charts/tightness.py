"""Tightness: bound, worst case and measured value against each constant that varies; the atlas of all results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from fedbounds.bounds.comparison.worst_ratios import worst_ratio
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import Paper, load, paper_submodule, paper_submodules, papers
from fedbounds.bounds.theory.result import Result
from fedbounds.empirical.comparison.compare_run import RunComparison
from fedbounds.figures.charts.picture import BOUND, COLORS, DOTTED, Curve, Picture, new_figure
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
    with new_figure(max(4.8, 2.4 * len(panels)), 3.5, title) as figure:
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
    axes.set(xscale="log" if x.min() > 0 else "linear", yscale="log")
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


FOUND = COLORS[2]
LEAST = 1e-4  # smaller values are drawn here, as triangles


@dataclass(frozen=True)
class LargestRatio:
    """The largest known ratios of left-hand side to bound of the default form: by an adversary, and at settings."""

    result: Result
    found: float
    settings: Sequence[Tight] = ()

    @property
    def name(self) -> str:
        """Key and form."""
        return f"{self.result.key.partition('/')[2]} [{self.result.form().name}]"


def largest_ratios(paper: Paper, with_worst_cases: bool = True, progress: Progress | None = None) -> list[LargestRatio]:
    """The results of a paper that have a known ratio; with worst cases it solves the programs of the paper (15 s)."""
    module = paper_submodule(paper.key, "figures", "tightness") if with_worst_cases else None
    rows = []
    for result in paper.results:
        row = worst_ratio(result, result.form()) if result.forms else None
        ratio = row["ratio"] if row else None
        own: Panels = {}
        if module is not None and result.key == module.KEY:
            own = tight_panels(module.evaluate_setting, module.SETTINGS, progress)
        settings = [tight for at in own.values() for tight in at.values()]
        if isinstance(ratio, int | float) or settings:
            rows.append(LargestRatio(result, float(ratio) if isinstance(ratio, int | float) else np.nan, settings))
    return rows


def atlas(with_worst_cases: bool = True, progress: Progress | None = None) -> Picture:
    """All papers on one axis; with worst cases it solves the programs of all papers (a minute)."""
    modules = paper_submodules("figures", "tightness") if with_worst_cases else {}
    sizes = {key: count(module.SETTINGS) for key, module in modules.items()}
    rows, before = dict[str, Sequence[LargestRatio]](), 0
    for one in papers():

        def solved(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, sum(sizes.values()))

        rows[one.key] = largest_ratios(one, one.key in modules, solved)
        before += sizes.get(one.key, 0)
    return draw_atlas(rows)


def draw_atlas(rows: Mapping[str, Sequence[LargestRatio]]) -> Picture:
    """Draw a row for each result and a panel for each paper."""
    rows = {paper: some for paper, some in rows.items() if some}
    columns = _columns({paper: len(some) + 2 for paper, some in rows.items()})
    height = max(sum(len(rows[paper]) + 2 for paper in column) for column in columns)
    data: list[Curve] = []
    with new_figure(10.5, 1.0 + 0.19 * height, "The tightness atlas: left side / bound") as figure:
        outer = figure.add_gridspec(1, len(columns))
        for place, column in enumerate(columns):
            heights = [len(rows[paper]) + 2 for paper in column]
            rest = [height - sum(heights)] if sum(heights) < height else []
            inner = outer[0, place].subgridspec(len(heights) + len(rest), 1, height_ratios=[*heights, *rest])
            for k, paper in enumerate(column):
                axes = figure.add_subplot(inner[k])
                data += _panel(axes, paper, rows[paper])
            axes.set_xlabel("left side / bound")
        marks = [
            Line2D([], [], color=FOUND, marker="D", linestyle="", label="largest found, at any setting"),
            Line2D([], [], color=WORST, marker="o", label="worst case at the settings of a figure (filled: attained)"),
            Line2D([], [], color=MEASURED, marker=".", label="measured there"),
            Line2D([], [], color="0.4", marker="<", linestyle="", label=f"below {LEAST:g}"),
            Line2D([], [], color=BOUND, label="the bound"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=5)
    every = [row for some in rows.values() for row in some]
    near = sum(row.found >= 0.5 for row in every)
    return Picture(
        figure,
        f"The tightness atlas: left side over bound of {len(every)} results, each in its default form; at 1 the bound "
        "is attained. Diamonds: the largest found by an adversary over instances, participation and step sizes "
        f"within the caps ({near} of {len(every)} within a factor of two); its budgets are in the tables beside the "
        "ledgers. A result that is missing has an order, a limit or nothing that can be measured. Circles: the worst "
        "case over all functions, by performance estimation, from the least to the largest over the settings of its "
        "paper's figure `tightness`; filled where some function attains it, else an upper bound. A diamond is of a "
        "setting of its own, and may so lie right of the circles. Dots: exact moments of a quadratic at the settings "
        f"of the circles. What is below {LEAST:g} is a triangle there. Constants are exact, derived or given, but for "
        "the bound on gradients of FedMRN and what TDCD's clients differ by, which are those of a run.",
        f"Rows of marks, one for each of {len(every)} results, on a logarithmic axis that ends at 1.",
        data,
        {"papers": {paper: [row.result.key for row in some] for paper, some in rows.items()}},
    )


def _columns(sizes: Mapping[str, int]) -> list[list[str]]:
    """Papers in two columns of about the same height, the longest first."""
    columns: list[list[str]] = [[], []]
    for paper in sorted(sizes, key=lambda one: -sizes[one]):
        min(columns, key=lambda column: sum(sizes[one] for one in column)).append(paper)
    return [column for column in columns if column]


def _panel(axes: Axes, paper: str, rows: Sequence[LargestRatio]) -> list[Curve]:
    """One paper, and its data: y counts the rows."""
    data = []
    for y, row in enumerate(rows):
        if row.settings:
            valid = [t for t in row.settings if t.valid and np.isfinite(t.value)]
            worst = [t.value / t.bound for t in valid]
            attained = [t.value / t.bound for t in valid if t.attained]
            measured = [t.measured / t.bound for t in valid]
            _range(axes, measured, y + 0.22, MEASURED, ".")
            _range(axes, worst, y - 0.12, WORST, "o")
            _marks(axes, attained, y - 0.12, WORST, "o")
            for label, some in (("measured", measured), ("worst case", worst), ("worst case, attained", attained)):
                data += [Curve(f"{row.result.key}: {label}", np.array(some), np.full(len(some), y))] if some else []
        if np.isfinite(row.found):
            _marks(axes, [row.found], y, FOUND, "D")
            data.append(Curve(f"{row.result.key}: largest found", np.array([row.found]), np.array([y])))
    axes.axvline(1, color=BOUND)
    axes.set_xscale("log")
    axes.set_xlim(LEAST / 1.4, 1.8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=7)
    axes.set_title(paper, fontsize=8.5)
    return data


def _range(axes: Axes, values: Sequence[float], y: float, color: str, marker: str) -> None:
    """A line from the least to the largest, hollow at its ends."""
    ends = [min(values), max(values)]
    axes.plot(np.maximum(ends, LEAST), [y, y], color=color, linewidth=0.9)
    _marks(axes, ends, y, color, marker, hollow=marker == "o")


def _marks(axes: Axes, values: Sequence[float], y: float, color: str, marker: str, hollow: bool = False) -> None:
    """A mark for each, a triangle at the edge for what is below it."""
    for x in values:
        shape = marker if x >= LEAST else "<"
        axes.plot(max(x, LEAST), y, shape, color=color, markerfacecolor="white" if hollow else color)
