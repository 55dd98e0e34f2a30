"""Pictures of theory alone: the terms of a bound, and which term or form wins where."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bounds.errors import FedboundsError
from bounds.evaluation import Evaluation, evaluate
from bounds.result import Result
from bounds.symbols import Notation
from figures.picture import COLOURS, Curve, Picture, styled

TIE = 1e-9  # terms this close are equal (a prescribed step size often balances two of them); the first is shown
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")


def breakdown(evaluation: Evaluation) -> Picture:
    """The terms of one evaluated bound as bars, largest first, with the conditions in the caption."""
    names = sorted(evaluation.terms, key=lambda name: -float(evaluation.terms[name]))
    values = np.array([float(evaluation.terms[name]) for name in names])
    total = float(evaluation.value)
    with styled():
        figure = Figure(figsize=(6.4, 1.2 + 0.36 * len(names)))
        axes = figure.subplots()
        axes.barh(range(len(names)), values, color=COLOURS[0])
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"contribution to the bound ({evaluation.result.measure.dimension})")
        for i, v in enumerate(values):
            axes.annotate(f" {v:.3g} ({v / total:.0%})" if total else " 0", (v, i), va="center", fontsize=8)
        axes.margins(x=0.22)
        axes.set_title(f"{evaluation.result.key} [{evaluation.form.name}] = {total:.4g}")
    return Picture(
        figure,
        f"Terms of {evaluation.result.source} [{evaluation.form.name}]. {conditions_in_words(evaluation)}",
        f"Bar chart; the largest term is {names[0]} with {values[0]:.3g} of {total:.3g}.",
        [Curve(name, np.array([i]), np.array([v])) for i, (name, v) in enumerate(zip(names, values, strict=True))],
        {name: {"value": c.value, "source": c.source} for name, c in evaluation.constants.items()},
    )


def conditions_in_words(evaluation: Evaluation) -> str:
    """Which conditions hold, which fail, and whether the value is a guarantee."""
    failed = [c.text for c in evaluation.conditions if not np.all(c.holds)]
    words = "All conditions hold." if not failed else f"Fails: {'; '.join(failed)}."
    condition = f", conditional on {evaluation.conditional_on}" if evaluation.conditional_on else ""
    return words + (
        f" A guarantee{condition}." if evaluation.guarantee else f" Not a guarantee: {'; '.join(evaluation.why_not)}."
    )


def regime_map(
    result: Result,
    constants: Mapping[str, float],
    x: tuple[str, np.ndarray],
    y: tuple[str, np.ndarray],
    *,
    form: str | None = None,
) -> Picture:
    """Which term dominates over two constants; hatched in grey where a condition fails.

    Args:
        x, y: a constant's name and its values (one-dimensional; drawn on logarithmic axes).

    Raises:
        FedboundsError: an axis that is not a constant of the result or has fewer than two values.

    Example:
        >>> from bounds.registry import load
        >>> picture = regime_map(load("arbitrary-participation/corollary-3.2"),
        ...     dict(L=1, F=1, I=5, P=10, rho=0.3, nu=1, beta=1, delta=0.01),
        ...     ("T", np.unique(np.geomspace(20, 1e6, 30).round())), ("sigma", np.geomspace(0.01, 10, 30)))
        >>> len(picture.curves) > 1
        True
    """
    (x_name, x_values), (y_name, y_values) = x, y
    for name, values in (x, y):
        if np.ndim(values) != 1 or np.size(values) < 2:
            raise FedboundsError(f"regime map: {name} needs at least two values, got {np.size(values)}")
    setting = {**constants, x_name: np.asarray(x_values)[None, :], y_name: np.asarray(y_values)[:, None]}
    evaluation = evaluate(result, setting, form=form)
    names = list(evaluation.terms)
    shape = (len(y_values), len(x_values))
    stack = np.stack([np.broadcast_to(evaluation.terms[name], shape) for name in names])
    winner = np.argmax(stack >= (1 - TIE) * stack.max(axis=0), axis=0)
    valid = np.broadcast_to(evaluation.valid, shape)
    present = [i for i in range(len(names)) if (winner == i).any()]
    with styled():
        figure = Figure(figsize=(6.4, 4.4))
        axes = figure.subplots()
        axes.grid(visible=False)
        colours = ListedColormap([COLOURS[i % len(COLOURS)] for i in range(len(names))])
        axes.pcolormesh(x_values, y_values, winner, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, alpha=0.55)
        for i in present:
            axes.contourf(
                x_values, y_values, (winner == i) * 1.0, levels=[0.5, 1.5], colors="none", hatches=[HATCHES[i % 8]]
            )
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
        axes.set_xscale("log")
        axes.set_yscale("log")
        meaning = result.notation
        axes.set_xlabel(f"{x_name}: {_meaning(meaning, x_name)}")
        axes.set_ylabel(f"{y_name}: {_meaning(meaning, y_name)}")
        handles = [
            Patch(facecolor=COLOURS[i % len(COLOURS)], alpha=0.55, hatch=HATCHES[i % 8], label=names[i])
            for i in present
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        axes.set_title(f"Dominant term of {result.key} [{evaluation.form.name}]")
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


def _meaning(notation: Notation, name: str) -> str:
    quantity = notation.resolve(name)
    return quantity.meaning if quantity is not None else ""
