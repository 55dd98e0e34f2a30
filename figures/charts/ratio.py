"""Measured over bound against each constant of a setting, with the exponents of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from fedbounds.empirical.comparison.compare_run import RunComparison
from fedbounds.empirical.comparison.convergence_slopes import Slope, fit_slope, least_squares
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.picture import COLORS, DASHES, MARKERS, Curve, Picture, shared_legend, styled

TOGETHER = 0.1  # difference of exponents up to which the measure depends on a constant as the bound does
Panels = Mapping[str, Mapping[float, Sequence[RunComparison]]]  # constant -> value -> a run under several forms


def ratios(panels: Panels, *, title: str, caption: str = "") -> Picture:
    """Measured over bound at the largest T against each constant: a panel for each, a curve for each form.

    Panel titles give the exponents of measured and bound in the constant, by least squares of logarithms.
    """
    data: list[Curve] = []
    with styled():
        figure = Figure(figsize=(max(4.8, 2.55 * len(panels)), 3.7))
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (name, by_value) in zip(grid, panels.items(), strict=True):
            x = np.array(list(by_value), dtype=float)
            forms = [first.form.name for first in next(iter(by_value.values()))]
            for k, form in enumerate(forms):
                at = [found[k] for found in by_value.values()]
                value = np.array([c.ratio[-1] for c in at])
                error = _error(at)
                valid = np.array([bool(c.valid[-1]) for c in at])
                axes.errorbar(x, value, error, color=COLORS[k], linestyle=DASHES[k], marker=MARKERS[k], markersize=4,
                              label=f"measured / bound [{form}]")  # fmt: skip
                if not valid.all():
                    axes.plot(x[~valid], value[~valid], color="white", marker=MARKERS[k], markersize=2.2,
                              linestyle="", markeredgewidth=0)  # fmt: skip
                low, high = (None, None) if error is None else (value - error, value + error)
                data += [
                    Curve(f"{name}: measured / bound [{form}]", x, value, low, high, valid),
                    Curve(f"{name}: bound [{form}]", x, np.array([c.bound[-1] for c in at]), valid=valid),
                ]
            data.append(Curve(f"{name}: measured", x, np.array([found[0].measured[-1] for found in by_value.values()])))
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(x, [f"{v:g}" for v in x])
            axes.set_xticks([], minor=True)
            axes.set_xlabel(name)
            measured, bound = exponents(by_value)
            axes.set_title(f"measured: power {measured}\nbound: power {bound:.2f}", fontsize=8)
        grid[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # of all panels, as they share it
        grid[0].yaxis.set_major_formatter("{x:g}")
        grid[0].yaxis.set_minor_locator(NullLocator())
        grid[0].set_ylabel("measured / bound")
        shared_legend(figure, grid, 3)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    every = [c for by_value in panels.values() for found in by_value.values() for c in found]
    failed = sum(not c.valid[-1] for c in every)
    said = " ".join(_describe(name, by_value) for name, by_value in panels.items())
    conditions = "All conditions hold." if not failed else f"Hollow: a condition fails ({failed} comparisons)."
    kinds = sorted({k.source for c in every for n, k in c.constants.items() if n not in c.evaluation.unused})
    return Picture(
        figure,
        f"{title}: {every[0].measure} over the bound of {every[0].result.source}. {caption} {said} Exponents, above "
        f"each panel: ordinary least squares of logarithms ({every[-1].form.name} bound). {conditions} Constants are "
        f"{', '.join(kinds)}.",
        f"{len(panels)} panels of measured over bound against {', '.join(panels)}.",
        data,
        {
            name: {
                "result": next(iter(by_value.values()))[0].result.key,
                "forms": [c.form.name for c in next(iter(by_value.values()))],
                "measured": exponents(by_value)[0].value,
                "bound": exponents(by_value)[1],
                "rounds": [int(found[0].rounds[-1]) for found in by_value.values()],
            }
            for name, by_value in panels.items()
        },
    )


def ratio_panels(
    axes: Mapping[str, tuple[str, Sequence[float]]],
    run: Callable[[str, float, str], RunComparison],
    forms: Sequence[str],
) -> dict[str, dict[float, list[RunComparison]]]:
    """Panel to value to `run(name, value, form)` for each form, where `axes` maps panels to names and values."""
    return {
        axis: {value: [run(name, value, form) for form in forms] for value in values}
        for axis, (name, values) in axes.items()
    }


def exponents(by_value: Mapping[float, Sequence[RunComparison]]) -> tuple[Slope, float]:
    """The exponents of the measure and of the bound of the last form in the constant that varies."""
    x = np.array(list(by_value), dtype=float)
    at = [found[-1] for found in by_value.values()]
    measured = np.array([c.measured[-1] for c in at])
    samples = [c.samples[:, -1] for c in at if c.samples is not None and c.seeds]
    slope = fit_slope(x, measured, np.stack(samples, axis=1) if len(samples) == len(at) else None)
    return slope, least_squares(x, np.array([c.bound[-1] for c in at]))


def ratio_claims(panels: Panels) -> list[FigureClaim]:
    """For every constant: the measure depends on it as the bound does."""
    claims = []
    for name, by_value in panels.items():
        slope, bound = exponents(by_value)
        last = next(iter(by_value.values()))[-1]
        values = ", ".join(f"{v:g}" for v in by_value)
        ratio = [float(found[-1].ratio[-1]) for found in by_value.values()]
        near, far = abs(slope.value - bound) <= TOGETHER, slope.low - bound > TOGETHER or bound - slope.high > TOGETHER
        claims.append(
            FigureClaim(f"{last.result.source.number}, ratio", f"what is measured depends on {name} as the bound does",
                  f"measured like the power {slope}, bound {bound:.2f}, over {values}; measured over bound "
                  f"{ratio[0]:.2g} to {ratio[-1]:.2g}", True if near else False if far else None,
                  "ours: the paper gives the bound, and does not say in what it is tight")
        )  # fmt: skip
    return claims


def _describe(name: str, by_value: Mapping[float, Sequence[RunComparison]]) -> str:
    slope, bound = exponents(by_value)
    gap = slope.value - bound
    how = "" if abs(gap) <= TOGETHER else ", which is " + ("lower" if gap > 0 else "higher")
    return f"{name}: measured goes like the power {slope}, the bound like {bound:.2f}{how}."


def _error(at: Sequence[RunComparison]) -> np.ndarray | None:
    """Two standard errors of the ratio; None unless all runs are sampled."""
    errors = [c.standard_error[-1] / c.bound[-1] for c in at if c.standard_error is not None]
    return 2 * np.array(errors) if len(errors) == len(at) else None
