"""Overlay: what was measured under what was promised, term by term, red where it crosses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.picture import BOUND, COLOURS, CROSSED, Curve, Picture, styled
from figures.theory import HATCHES, conditions_in_words

if TYPE_CHECKING:
    from empirical.confront import Comparison


def overlay(comparison: Comparison, title: str = "") -> Picture:
    r"""The measured left-hand side under the bound, over the number of rounds T, on logarithmic axes.

    Shaded below the bound: its terms, stacked, the smallest (at the largest T) lowest. Where more was measured than
    promised the measured curve is red; where a condition fails the bound is dotted.

    Args:
        comparison: from `empirical.confront.confront`.
        title: above the picture (the result and form by default).

    Example:
        >>> import numpy as np
        >>> from bounds.registry import load
        >>> from empirical.algorithms import GeneralizedFedAvg
        >>> from empirical.confront import confront
        >>> from empirical.moments import moments
        >>> from empirical.problems import toy_example
        >>> run = moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), np.tile(np.eye(3), (10, 1)))
        >>> picture = overlay(confront(run, load("arbitrary-participation/theorem-3.1"), "explicit"))
        >>> [curve.label for curve in picture.curves][:2]
        ['measured (exact given the record)', 'bound']
    """
    c = comparison
    T = c.rounds.astype(float)
    dot = "o" if len(T) == 1 else ""
    order = sorted(c.terms, key=lambda name: float(c.terms[name][-1]))
    order = [name for name in order if (c.terms[name] > 0).any()]
    crossed = c.measured > c.bound
    with styled():
        figure = Figure(figsize=(6.6, 4.6))
        axes = figure.subplots()
        axes.set_yscale("log")
        if T[-1] > 30 * T[0]:
            axes.set_xscale("log")
        floor = max(min(float(c.measured[c.measured > 0].min(initial=np.inf)), float(c.bound.min())) / 3, 1e-300)
        below = np.full_like(T, floor)
        for i, name in enumerate(order):
            above = np.maximum(floor, np.sum([c.terms[other] for other in order[: i + 1]], axis=0))
            axes.fill_between(T, below, above, color=COLOURS[i % len(COLOURS)], alpha=0.28, linewidth=0,
                              hatch=HATCHES[i % len(HATCHES)], label=name)  # fmt: skip
            below = above
        axes.plot(T, np.where(c.valid, c.bound, np.nan), color=BOUND, label="bound", marker=dot)
        if not c.valid.all():
            axes.plot(T, np.where(c.valid, np.nan, c.bound), color=BOUND, linestyle=":", label="a condition fails")
        axes.plot(
            T, c.measured, color=COLOURS[0], linestyle="--", linewidth=2, label=f"measured ({c.label})", marker=dot
        )
        if c.standard_error is not None:
            low, high = c.measured - 2 * c.standard_error, c.measured + 2 * c.standard_error
            axes.fill_between(T, np.maximum(low, floor), high, color=COLOURS[0], alpha=0.2, linewidth=0)
        if crossed.any():
            axes.plot(T, np.where(crossed, c.measured, np.nan), color=CROSSED, linewidth=3, label="crossed",
                      marker="x")  # fmt: skip
        axes.set_ylim(bottom=floor)
        axes.set_xlabel("number of rounds $T$")
        axes.set_ylabel(f"squared gradient norm ({c.measure.dimension})")
        axes.set_title(title or f"{c.result.source} [{c.form.name}]")
        figure.legend(loc="outside lower center", ncols=3)
    tightest = float(np.max(c.ratio))
    crossing = (
        f"Crossed at {int(crossed.sum())} of {len(T)} T, first T = {int(c.crossings[0])}."
        if crossed.any()
        else f"Never crossed; measured over bound at most {tightest:.3g}."
    )
    constants = ", ".join(f"{name} = {_short(k.value)} ({k.source})" for name, k in c.constants.items())
    return Picture(
        figure,
        f"{c.measure} against {c.result.source} [{c.form.name}]. {conditions_in_words(c.evaluation)} {crossing} "
        f"Constants at the largest T: {constants}. {' '.join(c.notes)}".strip(),
        f"Measured {c.measured[-1]:.3g} under the bound {c.bound[-1]:.3g} at T = {int(T[-1])}. {crossing}",
        [
            Curve(f"measured ({c.label})", T, c.measured),
            Curve("bound", T, c.bound),
            *(Curve(f"term: {name}", T, c.terms[name]) for name in c.terms),
        ],
        {
            "result": c.result.key,
            "form": c.form.name,
            "guarantee": c.guarantee,
            "why_not": list(c.why_not),
            "constants": {n: {"value": k.value, "source": k.source, "note": k.note} for n, k in c.constants.items()},
        },
    )


def _short(value: object) -> str:
    array = np.asarray(value, dtype=float)
    return f"{float(array):.4g}" if array.ndim == 0 else f"vector of {array.size}"
