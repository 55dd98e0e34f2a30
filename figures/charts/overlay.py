"""Overlay: the measured quantity under its bound, term by term, red where it crosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import SOFT
from fedbounds.figures.charts.figure_style import StyleOptions, current_style, name_entry, styled
from fedbounds.figures.charts.fitting import whole_ticks
from fedbounds.figures.charts.picture import (
    BOUND,
    COLORS,
    CROSSED,
    DASHES,
    DOTTED,
    MARKERS,
    MEASURED,
    Curve,
    Picture,
    annotate,
    as_text,
    fit_columns,
    new_figure,
    shared_legend,
)
from fedbounds.figures.charts.theory import HATCHES, TERM_COLORS, axis_label, describe_conditions, horizon_label, looks

if TYPE_CHECKING:
    from fedbounds.empirical.comparison.compare_run import RunComparison
    from fedbounds.empirical.comparison.compare_sweep import SweepSetting

VISIBLE = 0.004  # of the height: a band of about one pixel
FLAT = 1e-9  # the relative change of a term that is constant in T
MARKED = 7  # markers of a line
MOST_PANELS = 24  # of one picture
TABULATED = 80  # horizons per curve in the data beside a grid of panels, evenly spaced in log T


def overlay(
    comparison: RunComparison, title: str = "", *, shaded: bool = False, **style: Unpack[StyleOptions]
) -> Picture:
    r"""The measured left-hand side and the bound with a line for each term, over the number of rounds T.

    The measured curve is thick; red where it is above the bound. The bound is black; dotted where a condition fails.
    Terms are thin; dashed if they are constant in T.

    Args:
        comparison: from `fedbounds.empirical.comparison.compare_run.confront`.
        title: above the figure (the result and form by default).
        shaded: stacked areas in place of lines for the terms, the smallest (at the largest T) lowest.
        style: `width`, `xlabel`, `ylabel`, `labels`, `font_size`, `style` and `annotations`, as in "Draw a figure for a
            paper".

    Raises:
        FedboundsError: an option of the style is not legal; the message says what is.

    Example:
        >>> import numpy as np
        >>> from fedbounds.bounds.theory.registry import load
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
        >>> from fedbounds.empirical.comparison.compare_run import confront
        >>> from fedbounds.empirical.simulation.moments import moments
        >>> from fedbounds.empirical.problems import toy_example
        >>> run = moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), np.tile(np.eye(3), (10, 1)))
        >>> picture = overlay(confront(run, load("arbitrary-participation/theorem-3.1"), "explicit"))
        >>> [curve.label for curve in picture.curves][:2]
        ['measured (exact given the record)', 'bound']
    """
    c = comparison
    T, floor = c.rounds.astype(float), _floor(c)
    with styled(**style), new_figure(6.6, 4.6, title or f"{c.result.source} [{c.form.name}]") as figure:
        axes = figure.subplots()
        thin = _draw_all(axes, c, floor, shaded)
        if current_style().annotations:
            axes.set_title("; ".join(_verdict(c)), fontsize=8, fontweight="normal")
        axes.set(xlabel=horizon_label(c.measure, c.symbol), ylabel=axis_label(c.measure))
        shared_legend(figure, [axes], 3)
    crossing, hidden = _crossing(c), f"Too small to see: {', '.join(thin)}. " if thin else ""
    return Picture(
        figure,
        f"{_leads(c)}{c.measure} against {c.result.source} [{c.form.name}]. "
        f"{describe_conditions(c.evaluation)} {crossing} "
        f"{hidden}"
        f"{_constants(c)} {_notes(c)}".strip(),
        f"Measured {c.measured[-1]:.3g} under the bound {c.bound[-1]:.3g} at {c.symbol} = {int(T[-1])}. {crossing}",
        [
            _measured_curve(c, f"measured ({c.label})", slice(None)),
            Curve("bound", T, c.bound, valid=c.valid),
            *(Curve(f"term: {name}", T, c.terms[name]) for name in c.terms),
        ],
        _provenance(c),
    )


def overlay_settings(
    comparisons: Mapping[str, RunComparison], *, title: str, caption: str = "", shaded: bool = False
) -> Picture:
    """Several runs (at most 24) under one form of a result, in panels that share their axes, each as in `overlay`."""
    if len(comparisons) > MOST_PANELS:
        raise FedboundsError(f"a picture holds {MOST_PANELS} runs at most, these are {len(comparisons)}")
    everything = list(comparisons.values())
    first, columns = everything[0], fit_columns(min(3, len(everything)), 2.2)
    rows, floor = -(-len(everything) // columns), min(_floor(c) for c in everything)
    with new_figure(max(4.8, 3.2 * columns), 1.3 + 2.7 * rows, title) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in grid.ravel()[len(everything) :]:
            axes.set_visible(False)
        for (label, c), axes in zip(comparisons.items(), grid.ravel(), strict=False):
            _draw_all(axes, c, floor, shaded, f"bound ({label})")
            annotate(axes, "\n".join(fill(line, 36) for line in _verdict(c)), 6.5)
            axes.set_title(fill(label, 44), fontsize=8.5)
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(horizon_label(c.measure, c.symbol))
        highest = max(float(np.max(c.bound[np.isfinite(c.bound)], initial=floor)) for c in everything)
        grid[0, 0].set_ylim(floor, 10 * highest)
        for axes in grid[:, 0]:
            axes.set_ylabel(axis_label(first.measure), fontsize=8)
        shared_legend(figure, grid.ravel(), 3)
    data = []
    for label, c in comparisons.items():
        some = np.unique(np.geomspace(1, len(c.rounds), TABULATED).round().astype(int)) - 1
        T = c.rounds[some].astype(float)
        data += [
            _measured_curve(c, f"{label}: measured ({c.label})", some),
            Curve(f"{label}: bound", T, c.bound[some], valid=c.valid[some]),
        ]
    said = [
        f"{label}: {_leads(c)}{_crossing(c)} {describe_conditions(c.evaluation)} {_constants(c)} {_notes(c)}".strip()
        for label, c in comparisons.items()
    ]
    return Picture(
        figure,
        f"{first.measure} against {first.result.source} [{first.form.name}]. {caption} {' '.join(said)}",
        f"{len(everything)} panels of a measured curve under a bound; {sum(len(c.crossings) for c in everything)} "
        "crossings.",
        data,
        {label: _provenance(c) for label, c in comparisons.items()},
    )


def overlay_sweep(
    found: Mapping[SweepSetting, RunComparison], name: str, *, shaded: bool = False, **provenance: object
) -> Picture:
    """The runs of a sweep under one form: one setting with its terms, several in panels; run keys in the manifest."""
    first = next(iter(found.values()))
    where = first.result.source
    title = f"{as_text(name)} under {where.paper}, {where.number} [{first.form.name}]"
    if len(found) == 1:
        drawn = overlay(first, title, shaded=shaded)
    else:
        panels = {as_text(setting.label): c for setting, c in found.items()}
        drawn = overlay_settings(panels, title=title, shaded=shaded)
    runs = {setting.label: {"keys": [r.key for r in setting.runs], "seeds": setting.seeds} for setting in found}
    return replace(drawn, provenance={**drawn.provenance, **provenance, "runs": runs})


def overlays(
    rows: Mapping[str, Mapping[str, Sequence[RunComparison]]], *, title: str, caption: str = "", shaded: str = ""
) -> Picture:
    r"""A grid of panels, each one run under several forms; rows and columns are the keys of `rows`.

    Each panel gives the largest ratio of measured to bound for each form where its conditions hold. The terms of the
    form `shaded` are shaded, stacked as in `overlay`.
    """
    order: list[str] = []
    columns = list(next(iter(rows.values())))
    flat = {(row, panel): forms for row, group in rows.items() for panel, forms in group.items()}
    everything = [c for forms in flat.values() for c in forms]
    names = list(dict.fromkeys(c.form.name for c in everything))
    floor = min(float(c.measured[c.measured > 0].min(initial=np.inf)) for c in everything) / 3
    with new_figure(max(4.8, 2.7 * len(columns)), 0.9 + 2.5 * len(rows), title) as figure:
        grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="col")
        for (row, panel), axes in zip(flat, grid.ravel(), strict=True):
            forms = flat[row, panel]
            axes.set(yscale="log", xscale="log")
            for c in forms:
                if c.form.name == shaded:
                    order = order or _sort_terms(c)
                    _shade_terms(axes, c, floor, order)
            for c in forms:
                k = names.index(c.form.name)
                _draw_bound(axes, c, f"bound [{c.form.name}]", COLORS[(1 + k) % len(COLORS)] if k else BOUND, k)
            _draw_measured(axes, forms[0], floor)
            whole_ticks(axes)
            words = "measured / bound at most\n" + "\n".join(f"{_ratio(c)} [{c.form.name}]" for c in forms)
            annotate(axes, words, 7)
            axes.set_title(f"{row}, {panel}" if row else panel, fontsize=9)
        for panel, axes in zip(columns, grid[0], strict=True):
            highest = max(float(c.bound.max()) for group in rows.values() for c in group[panel])
            axes.set_ylim(floor, 30 * highest)  # room for the words
        for axes in grid[-1]:
            axes.set_xlabel(horizon_label(c.measure, c.symbol))
        for axes in grid[:, 0]:
            axes.set_ylabel(axis_label(everything[0].measure), fontsize=8)
        shared_legend(figure, grid.ravel(), 4)
    said = [
        f"{', '.join(filter(None, place))} [{c.form.name}]: {_leads(c)}{_crossing(c)} "
        f"{describe_conditions(c.evaluation)}"
        for place, forms in flat.items()
        for c in forms
    ]
    data = []
    for place, forms in flat.items():
        name, first = ", ".join(filter(None, place)), forms[0]
        some = np.unique(np.geomspace(1, len(first.rounds), TABULATED).round().astype(int)) - 1
        T = first.rounds[some].astype(float)
        data.append(_measured_curve(first, f"{name}: measured ({first.label})", some))
        data += [Curve(f"{name}: bound [{c.form.name}]", T, c.bound[some]) for c in forms]
    crossings = sum(len(c.crossings) for c in everything)
    return Picture(
        figure,
        f"{everything[0].measure} against {everything[0].result.source}. {caption} {' '.join(said)}".strip(),
        f"{len(flat)} panels of a measured curve under {len(next(iter(flat.values())))} bounds; {crossings} crossings.",
        data,
        {
            ", ".join(filter(None, place)): {
                c.form.name: {
                    "result": c.result.key,
                    "guarantee": c.guarantee,
                    "why_not": list(c.why_not),
                    "ratio": float(c.ratio[-1]),
                    "constants": {n: {"value": k.value, "source": k.source} for n, k in c.constants.items()},
                }
                for c in forms
            }
            for place, forms in flat.items()
        },
    )


def _floor(c: RunComparison) -> float:
    """The lower end of the y axis."""
    return max(min(float(c.measured[c.measured > 0].min(initial=np.inf)), float(c.bound.min())) / 3, 1e-300)


def _draw_all(axes: Any, c: RunComparison, floor: float, shaded: bool, own: str = "bound") -> list[str]:
    """Draw bound, terms and measured curve; return the terms that are too small to see.

    `own` is the name of a bound that the legend says is not drawn.
    """
    T = c.rounds.astype(float)
    axes.set_yscale("log")
    if T[-1] > 30 * T[0]:
        axes.set_xscale("log")
    order = _sort_terms(c)
    _draw_bound(axes, c, "bound", own=own)
    thin = _shade_terms(axes, c, floor, order) if shaded else _draw_terms(axes, c, floor, order[::-1])
    _draw_measured(axes, c, floor)
    axes.set_ylim(bottom=floor)
    whole_ticks(axes)
    return thin


def _draw_terms(axes: Any, c: RunComparison, floor: float, order: Sequence[str]) -> list[str]:
    """Draw a line for each term, dashed if it is constant; return those that are below the axis everywhere."""
    T, look = c.rounds.astype(float), looks(c.terms)
    shown = [name for name in order if ((c.terms[name] > floor) & np.isfinite(c.terms[name])).any()]
    for name in shown:
        y, place = c.terms[name], look[name]
        finite = y[np.isfinite(y)]
        constant = finite.size > 1 and np.ptp(finite) <= FLAT * finite.max()
        axes.plot(T, y, color=TERM_COLORS[place], label=name, linewidth=1, drawstyle=_drawstyle(T, y),
                  linestyle=DASHES[1] if constant else "-", marker=MARKERS[place], markersize=3.5,
                  markevery=_marked(axes, T, place / len(MARKERS)))  # fmt: skip
    return [name for name in c.terms if name not in shown]


def _marked(axes: Any, T: np.ndarray, offset: float) -> list[int]:
    """The points with a marker, evenly spaced along the axis; offset is in spaces."""
    space = np.geomspace if axes.get_xscale() == "log" else np.linspace
    places = space(T[0], T[-1], 100 * MARKED)[int(100 * offset) :: 100]
    return sorted({*np.searchsorted(T, places).clip(max=len(T) - 1).tolist()})


def _drawstyle(T: np.ndarray, y: np.ndarray) -> str:
    """Steps for a curve over every T that is constant between jumps; else a line."""
    level = np.diff(y) == 0
    every = len(T) > 2 and (np.diff(T) == 1).all()
    return "steps-post" if every and level.any() and not level.all() else "default"


def _sort_terms(c: RunComparison) -> list[str]:
    """The terms, the smallest at the largest T first."""
    return sorted(c.terms, key=lambda name: float(c.terms[name][-1]))


def _shade_terms(axes: Any, c: RunComparison, floor: float, order: Sequence[str]) -> list[str]:
    """Shade the terms, stacked in this order, the first lowest; return those that are too small to see."""
    T = c.rounds.astype(float)
    order = [name for name in order if (c.terms[name] > 0).any()]
    below = np.full_like(T, floor)
    look, thin = looks(c.terms), [name for name in c.terms if name not in order]
    top = float(np.max(c.bound[np.isfinite(c.bound)], initial=floor))
    for i, name in enumerate(order):
        above = np.maximum(floor, np.sum([c.terms[other] for other in order[: i + 1]], axis=0))
        with np.errstate(invalid="ignore"):  # both are infinite where a condition fails
            high = float(np.nanmax(np.append(np.log(above / below), 0.0)))
        seen = high > VISIBLE * float(np.log(top / floor))
        thin += [] if seen else [name]
        axes.fill_between(T, below, above, color=TERM_COLORS[look[name]], alpha=0.28, linewidth=0,
                          hatch=HATCHES[look[name]], label=name if seen else "_")  # fmt: skip
        below = above
    return thin


def _measured_curve(c: RunComparison, label: str, some: Any) -> Curve:
    """The measured curve at some horizons, with its band of two standard errors."""
    T, y = c.rounds[some].astype(float), c.measured[some]
    if c.standard_error is None:
        return Curve(label, T, y)
    error = 2 * c.standard_error[some]
    return Curve(label, T, y, y - error, y + error)


def _verdict(c: RunComparison) -> list[str]:
    """The ratio at the largest T and whether the bound is a guarantee, in short."""
    if not np.isfinite(c.bound[-1]):
        return [f"no bound at {c.symbol} = {int(c.rounds[-1])}: a condition fails"]
    lines = [f"measured / bound = {float(c.ratio[-1]):.2g} at {c.symbol} = {int(c.rounds[-1])}"]
    used = {name: constant for name, constant in c.constants.items() if name not in c.evaluation.unused}
    soft = [
        f"{', '.join(names)} {words}"
        for kind, words in SOFT.items()
        if (names := [name for name, constant in used.items() if constant.source == kind])
    ]
    if c.guarantee:
        lines.append("a guarantee")
    elif soft:
        lines.append(f"no guarantee: {'; '.join(soft)}")
    else:
        lines.append("no guarantee")
    return lines


def _provenance(c: RunComparison) -> dict[str, Any]:
    """The result, its form and its constants for the manifest."""
    return {
        "result": c.result.key,
        "form": c.form.name,
        "guarantee": c.guarantee,
        "why_not": list(c.why_not),
        "constants": {n: {"value": k.value, "source": k.source, "note": k.note} for n, k in c.constants.items()},
    }


def _constants(c: RunComparison) -> str:
    """The constants that the form uses, with their kinds."""
    used = {name: k for name, k in c.constants.items() if name not in c.evaluation.unused}
    said = ", ".join(f"{n} = {_short(k.value)} ({k.source})" for n, k in used.items())
    return f"Constants at the largest {c.symbol}: {said}."


def _notes(c: RunComparison) -> str:
    """The notes of a comparison as sentences."""
    band = () if c.standard_error is None else ("the band is two standard errors over seeds",)
    return " ".join(f"{note[0].upper()}{note[1:]}." for note in (*band, *c.notes))


def _draw_measured(axes: Any, c: RunComparison, floor: float) -> None:
    """The measured curve with a band of two standard errors, red where it crosses the bound."""
    T = c.rounds.astype(float)
    label = name_entry(f"measured ({c.label})", "measured")
    drawstyle = _drawstyle(T, c.measured)
    axes.plot(T, c.measured, color=MEASURED, linewidth=2.8, label=label, marker="o", markersize=6.5,
              markeredgecolor="white", markevery=_marked(axes, T, 0.5), drawstyle=drawstyle)  # fmt: skip
    if c.standard_error is not None:
        low, high = c.measured - 2 * c.standard_error, c.measured + 2 * c.standard_error
        step = "post" if drawstyle == "steps-post" else None
        axes.fill_between(T, np.maximum(low, floor), high, color=MEASURED, alpha=0.2, linewidth=0, step=step)
    crossed = c.measured > c.bound
    if crossed.any():
        axes.plot(T, np.where(crossed, c.measured, np.nan), color=CROSSED, linewidth=3, label="crossed", marker="x")


def _draw_bound(axes: Any, c: RunComparison, label: str, color: str = BOUND, dash: int = 0, own: str = "") -> None:
    """The bound, dotted where a condition fails; the legend says if there is no value or no valid one."""
    T, finite = c.rounds.astype(float), np.isfinite(c.bound)
    keys = (label, c.result.key, f"{c.result.key} [{c.form.name}]")
    look: dict[str, Any] = {"color": color, "marker": "o" if len(T) == 1 else "", "linewidth": 2}
    look["drawstyle"] = _drawstyle(T, c.bound)
    if not finite.any():
        axes.plot([], [], linestyle="", label=name_entry(f"{own or label}: no value at any {c.symbol}", *keys))
    if (finite & c.valid).any():
        drawn = np.where(c.valid, c.bound, np.nan)
        axes.plot(T, drawn, label=name_entry(label, *keys), linestyle=DASHES[dash], **look)
    if (finite & ~c.valid).any():
        words = "a condition fails"
        if not (finite & c.valid).any():
            words = name_entry(f"{own or label}: a condition fails at every {c.symbol}", *keys)
        axes.plot(T, np.where(c.valid, np.nan, c.bound), linestyle=DOTTED, label=words, **look)


def _leads(c: RunComparison) -> str:
    """A crossing where the conditions hold comes first."""
    return f"{c.revoked[0].upper()}{c.revoked[1:]}. " if c.revoked else ""


def _crossing(c: RunComparison) -> str:
    """The crossings, or the largest ratio."""
    if c.crossings.size:
        return f"Crossed at {len(c.crossings)} of {len(c.rounds)} {c.symbol}, first {c.symbol} = {int(c.crossings[0])}."
    return f"Never crossed; measured over bound at most {float(np.max(c.ratio)):.3g}."


def _ratio(c: RunComparison) -> str:
    """The largest ratio of measured to bound where the conditions hold."""
    return f"{float(np.max(c.ratio[c.valid])):.2g}" if c.valid.any() else "a condition fails"


def _short(value: object) -> str:
    array = np.asarray(value, dtype=float)
    return f"{float(array):.4g}" if array.ndim == 0 else f"vector of {array.size}"
