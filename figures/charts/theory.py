"""Pictures of bounds: their terms, with one color and hatch for each name, and the dominant term over two constants."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.registry import as_result
from fedbounds.bounds.theory.result import Result
from fedbounds.bounds.theory.symbols import Notation
from fedbounds.figures.charts.curves import draw
from fedbounds.figures.charts.picture import BOUND, COLORS, Curve, Picture, new_figure

TIE = 1e-9  # terms this close are equal (a prescribed step size often balances two of them); the first is shown
BLACK = COLORS.index(BOUND)
TERM_COLORS = tuple("#767676" if color == BOUND else color for color in COLORS)  # black is the bound's


def axis_label(measure: Measure) -> str:
    """The left-hand side that is drawn and its unit, on two lines."""
    words = measure.label.removesuffix(f" ({measure.dimension.words})")
    return f"{words}\n({measure.dimension.words})"


def horizon_label(measure: Measure, symbol: str = "T") -> str:
    """The meaning of the horizon's symbol."""
    return f"number of {'iterations' if measure.over == 'iterations' and symbol == 'T' else 'rounds'} ${symbol}$"


def breakdown(evaluation: Evaluation) -> Picture:
    """The terms of a bound: bars for one setting; for several, the bound over the varying constant and the terms'
    shares.
    """
    dimensions = np.ndim(evaluation.value)
    if dimensions > 1:
        raise FedboundsError(f"breakdown: the settings vary along {dimensions} axes, at most 1; see regime_map for two")
    return _over_one_constant(evaluation) if dimensions else _bars(evaluation)


def _bars(evaluation: Evaluation) -> Picture:
    measure = evaluation.form.measure or evaluation.result.measure
    names = sorted(evaluation.terms, key=lambda name: -float(evaluation.terms[name]))
    values = np.array([float(evaluation.terms[name]) for name in names])
    total, look = float(evaluation.value), looks(evaluation.terms)
    title = f"{evaluation.result.key} [{evaluation.form.name}] = {total:.4g}"
    with new_figure(6.4, 1.2 + 0.36 * len(names), title) as figure:
        axes = figure.subplots()
        for i, (name, v) in enumerate(zip(names, values, strict=True)):
            share = float(evaluation.shares[name])
            axes.barh(i, v if np.isfinite(v) else 0.0, color=TERM_COLORS[look[name]])
            words = f" {v:.3g} ({share:.0%})" if np.isfinite(share) else f" {v:.3g}"
            axes.annotate(words, (v if np.isfinite(v) else 0.0, i), va="center", fontsize=8)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"contribution to the bound ({measure.dimension.words})")
        axes.margins(x=0.22)
    return Picture(
        figure,
        f"Terms of {evaluation.result.source} [{evaluation.form.name}]. {describe_conditions(evaluation)}",
        f"Bar chart; the largest term is {names[0]} with {values[0]:.3g} of {total:.3g}.",
        [Curve(name, np.array([i]), np.array([v])) for i, (name, v) in enumerate(zip(names, values, strict=True))],
        _provenance(evaluation),
    )


def _over_one_constant(evaluation: Evaluation) -> Picture:
    notation, settings = evaluation.result.notation, np.size(evaluation.value)
    varying = {
        name: np.asarray(c.value, dtype=float)
        for name, c in evaluation.constants.items()
        if np.ndim(c.value) > len(notation[name].shape) and np.ptp(np.asarray(c.value, dtype=float)) > 0
    }
    given = [n for n in varying if evaluation.constants[n].source != "derived" and n not in evaluation.unused]
    axis = next((n for n in given if not notation[n].shape), "")
    x = np.broadcast_to(varying[axis], settings) if axis else np.arange(1.0, settings + 1)
    order = np.argsort(x, kind="stable")
    x, value = x[order], np.broadcast_to(evaluation.value, settings)[order]
    valid = np.broadcast_to(evaluation.valid, settings)[order]
    terms = {name: np.broadcast_to(term, settings)[order] for name, term in evaluation.terms.items()}
    shares = {name: np.broadcast_to(share, settings)[order] for name, share in evaluation.shares.items()}
    look, ratio = looks(terms), float(x[-1] / x[0]) if x[0] > 0 else 0.0
    with new_figure(6.4, 5.2, f"{evaluation.result.key} [{evaluation.form.name}]") as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
        above.set_yscale("log" if (value[np.isfinite(value)] > 0).all() else "linear")
        above.set_xscale("log" if ratio > 30 else "linear")
        draw(above, [((BLACK, 0), Curve("bound", x, value, valid=valid))])
        above.set_ylabel(axis_label(evaluation.form.measure or evaluation.result.measure), fontsize=8.5)
        base = np.zeros(settings)
        for name, share in shares.items():
            seen = float(np.nanmax(share, initial=0.0)) > 0.004
            below.fill_between(x, base, base + share, color=TERM_COLORS[look[name]], hatch=HATCHES[look[name]],
                               alpha=0.45, linewidth=0, label=name if seen else "_")  # fmt: skip
            base = base + share
        below.set_ylim(0, 1)
        below.set(ylabel="share of the bound", xlabel=f"{axis}: {notation[axis].meaning}" if axis else "setting")
        figure.legend(loc="outside lower center", ncols=3)
    with_it = [name for name in varying if name != axis]
    said = f" {', '.join(with_it)} {'vary' if len(with_it) > 1 else 'varies'} with it." if with_it else ""
    return Picture(
        figure,
        f"The bound of {evaluation.result.source} [{evaluation.form.name}] and its terms' shares over "
        f"{axis or 'the settings'}.{said} {describe_conditions(evaluation)}",
        f"Shares of {len(shares)} terms over {axis or 'the settings'}; largest at the ends: "
        f"{max(terms, key=lambda n: terms[n][0])}, {max(terms, key=lambda n: terms[n][-1])}.",
        [Curve("bound", x, value, valid=valid), *(Curve(name, x, term) for name, term in terms.items())],
        _provenance(evaluation),
    )


def _provenance(evaluation: Evaluation) -> dict[str, Any]:
    return {name: {"value": c.value, "source": c.source} for name, c in evaluation.constants.items()}


def describe_conditions(evaluation: Evaluation) -> str:
    """Which conditions hold, which fail, and whether the value is a guarantee."""
    failed = [c.text for c in evaluation.conditions if not np.all(c.holds)]
    words = "All conditions hold." if not failed else f"Fails: {'; '.join(failed)}."
    condition = f", conditional on {evaluation.conditional_on}" if evaluation.conditional_on else ""
    return words + (
        f" A guarantee{condition}." if evaluation.guarantee else f" Not a guarantee: {'; '.join(evaluation.why_not)}."
    )


def regime_map(
    result: Result | str,
    constants: Mapping[str, float],
    x: tuple[str, np.ndarray],
    y: tuple[str, np.ndarray],
    *,
    form: str | None = None,
) -> Picture:
    """The dominant term over two constants (name, values), on logarithmic axes; pale where a condition fails."""
    result = as_result(result)
    (x_name, x_values), (y_name, y_values) = x, y
    for name, values in (x, y):
        if np.ndim(values) != 1 or np.size(values) < 2:
            raise FedboundsError(f"regime map: {name} needs at least two values, got {np.size(values)}")
    setting = {**constants, x_name: np.asarray(x_values)[None, :], y_name: np.asarray(y_values)[:, None]}
    evaluation = evaluate(result, setting, form=form)
    names, look = list(evaluation.terms), looks(evaluation.terms)
    shape = (len(y_values), len(x_values))
    stack = np.stack([np.broadcast_to(evaluation.terms[name], shape) for name in names])
    winner = np.argmax(stack >= (1 - TIE) * stack.max(axis=0), axis=0)
    valid = np.broadcast_to(evaluation.valid, shape)
    present = [i for i in range(len(names)) if (winner == i).any()]
    title = f"Dominant term of {result.key} [{evaluation.form.name}]"
    with new_figure(6.4, 4.4, title) as figure:
        axes = figure.subplots()
        axes.grid(visible=False)
        handles = fill_regions(axes, x_values, y_values, winner, [(name, look[name]) for name in names])
        if not valid.all():
            axes.contourf(x_values, y_values, (~valid) * 1.0, levels=[0.5, 1.5], colors=["#ffffff"], alpha=0.7)
        height = np.log10(np.broadcast_to(evaluation.value, shape))
        finite = height[np.isfinite(height)]
        if finite.size and np.ptp(finite) > 0:
            whole = np.arange(np.ceil(finite.min()), np.floor(finite.max()) + 1)
            lines = whole if len(whole) > 1 else np.linspace(finite.min(), finite.max(), 6)[1:-1]
            contours = axes.contour(
                x_values, y_values, height, levels=lines, colors="black", linewidths=0.7, linestyles="solid"
            )
            axes.clabel(contours, fmt=lambda v: f"$10^{{{v:.3g}}}$", fontsize=7)
        axes.set(xscale="log", yscale="log")
        meaning = result.notation
        axes.set(xlabel=f"{x_name}: {_meaning(meaning, x_name)}", ylabel=f"{y_name}: {_meaning(meaning, y_name)}")
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    curves = [Curve(f"{x_name} = {v:.6g}: dominant term's index", np.asarray(y_values), winner[:, j] * 1.0)
              for j, v in enumerate(x_values)]  # fmt: skip
    return Picture(
        figure,
        f"Dominant term of {result.source} [{evaluation.form.name}] over {x_name} and {y_name}; lines of equal bound; "
        "paler where a condition fails. Terms by index: " + ", ".join(f"{i} {name}" for i, name in enumerate(names)),
        f"Map of regimes: {', '.join(names[i] for i in present)} dominate in turn.",
        curves,
        {name: value for name, value in constants.items()},
    )


def fill_regions(
    axes: Axes, x: np.ndarray, y: np.ndarray, winner: np.ndarray, names: Sequence[tuple[str, int]]
) -> list[Patch]:
    """Color and hatch every setting by its winner, an index of `names` (text, place in the colors) or -1 for none; the
    legend's entries."""
    colors = ListedColormap([TERM_COLORS[place] for _, place in names])
    shown = np.ma.masked_less(winner, 0)
    axes.pcolormesh(x, y, shown, cmap=colors, vmin=-0.5, vmax=len(names) - 0.5, alpha=0.55)
    handles = []
    for i, (name, place) in enumerate(names):
        if (winner == i).any():
            axes.contourf(x, y, (winner == i) * 1.0, levels=[0.5, 1.5], colors="none", hatches=[HATCHES[place]])
            handles.append(Patch(facecolor=TERM_COLORS[place], alpha=0.55, hatch=HATCHES[place], label=name))
    return handles


def _meaning(notation: Notation, name: str) -> str:
    quantity = notation.resolve(name)
    return quantity.meaning if quantity is not None else ""


HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
# One line per color; terms of one form are on different lines.
_LINES = (
    "initial gap, order, dual gap, rounds, initial distance, slope, decrease, last block, above the tangent",
    "local drift, local updates, cohort divergence, bias, noise and heterogeneity, concavity, cut off, "
    "maximizer mismatch, excess",
    "gradient noise, noise, update noise, stale snapshot, weighted objective, limit, bias squared, all three",
    "window divergence, participation, partial participation, masking, direction, mean direction, "
    "masking and sampling, masking of the upload, first",
    "weight error, participation divergence, divergence, initial dual gap, smoothness, sampling, optimization, second",
    "drift noise, descent, rate, ascent from the snapshot, without a cut-off, gap at the snapshot, capped ascent, "
    "mean square, masking in local steps",
    "gradient, descent noise, variance, client sampling, proximal mismatch, growing noise, weight mismatch, squares",
    "full synchronization, local noise, heterogeneity, restart, both, mean, ascent noise, growth",
)
PLACES: Mapping[str, int] = {name: k for k, line in enumerate(_LINES) for name in line.split(", ")}


def looks(names: Iterable[str]) -> dict[str, int]:
    """The index in `COLORS` and `HATCHES` of every term of a form.

    An unknown name gets an index by its checksum, or the next one that is free in the form.
    """
    names = list(names)
    found = {name: PLACES[name] for name in names if name in PLACES}
    for name in names:
        if name not in found:
            start = zlib.crc32(name.encode())
            free = [k for k in range(len(COLORS)) if k not in found.values()] or [*range(len(COLORS))]
            found[name] = min(free, key=lambda k: (k - start) % len(COLORS))
    return {name: found[name] for name in names}
