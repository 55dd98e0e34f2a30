"""The tightness atlas: for every result, the largest ratio of left-hand side to bound that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedbounds.bounds.comparison.worst_ratios import worst_ratio
from fedbounds.bounds.theory.registry import Paper, paper_submodule, paper_submodules, papers
from fedbounds.bounds.theory.result import Result
from fedbounds.figures.charts.picture import BOUND, COLORS, Curve, Picture, styled
from fedbounds.figures.charts.tightness import MEASURED, WORST, Panels, Progress, Tight, count, tight_panels

FOUND = COLORS[2]
LEAST = 1e-4  # smaller values are drawn here, as triangles


@dataclass(frozen=True)
class KnownRatio:
    """The largest known ratios of left-hand side to bound of the default form: by an adversary (nan if none) and at
    settings.
    """

    result: Result
    found: float
    settings: Sequence[Tight] = ()

    @property
    def name(self) -> str:
        """Key and form."""
        return f"{self.result.key.partition('/')[2]} [{self.result.form().name}]"


def known_ratios(paper: Paper, with_worst_cases: bool = True, progress: Progress | None = None) -> list[KnownRatio]:
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
            rows.append(KnownRatio(result, float(ratio) if isinstance(ratio, int | float) else np.nan, settings))
    return rows


def atlas(with_worst_cases: bool = True, progress: Progress | None = None) -> Picture:
    """All papers on one axis; with worst cases it solves the programs of all papers (a minute)."""
    modules = paper_submodules("figures", "tightness") if with_worst_cases else {}
    sizes = {key: count(module.SETTINGS) for key, module in modules.items()}
    rows, before = dict[str, Sequence[KnownRatio]](), 0
    for one in papers():

        def solved(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, sum(sizes.values()))

        rows[one.key] = known_ratios(one, one.key in modules, solved)
        before += sizes.get(one.key, 0)
    return draw_atlas(rows)


def draw_atlas(rows: Mapping[str, Sequence[KnownRatio]]) -> Picture:
    """Draw a row for each result and a panel for each paper."""
    rows = {paper: some for paper, some in rows.items() if some}
    columns = _columns({paper: len(some) + 2 for paper, some in rows.items()})
    height = max(sum(len(rows[paper]) + 2 for paper in column) for column in columns)
    data: list[Curve] = []
    with styled():
        figure = Figure(figsize=(10.5, 1.0 + 0.19 * height))
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
        figure.suptitle("The tightness atlas: left side / bound", x=0.01, ha="left", fontsize=10.5, fontweight="bold")
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


def _panel(axes: Axes, paper: str, rows: Sequence[KnownRatio]) -> list[Curve]:
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
