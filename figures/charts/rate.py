"""Rates over T, with slopes, and the ratio of measured to bound against each constant, with exponents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from fedbounds.bounds.display.json_values import attributes
from fedbounds.empirical.comparison.compare_run import RunComparison
from fedbounds.empirical.comparison.convergence_slopes import (
    CONFIDENCE,
    FAR,
    Rate,
    Slope,
    fit_slope,
    grid,
    least_squares,
    number,
)
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.picture import (
    BOUND,
    COLORS,
    DASHES,
    DOTTED,
    MARKERS,
    Curve,
    Picture,
    annotate,
    new_figure,
    shared_legend,
)
from fedbounds.figures.charts.theory import TERM_COLORS, axis_label, describe_conditions, horizon_label, looks

REACH = 3  # how far beyond the last change or run the bound is drawn
POINTS = 24  # of a bound, which is nearly straight on these axes


def rate(rates: Mapping[str, Rate], *, title: str, caption: str = "", terms: bool = True) -> Picture:
    r"""Families of runs over T, one panel each: measured and bound above, local slopes below.

    The bound extends beyond the runs to where it falls as predicted. Vertical lines mark where another term becomes the
    largest. A gray line has the predicted slope.
    """
    data: list[Curve] = []
    with new_figure(max(4.8, 3.35 * len(rates)), 5.6, title) as figure:
        grid_of_axes = figure.subplots(2, len(rates), squeeze=False, sharex="col", height_ratios=(5, 2))
        for k, (name, one) in enumerate(rates.items()):
            data += _panel(grid_of_axes[0][k], grid_of_axes[1][k], name, one, terms)
            grid_of_axes[0][k].set_title(name, fontsize=9)
            grid_of_axes[1][k].set_xlabel(horizon_label(one.family.measure, one.family.symbol))
        grid_of_axes[0][0].set_ylabel(axis_label(next(iter(rates.values())).family.measure), fontsize=8)
        grid_of_axes[1][0].set_ylabel("local slope", fontsize=8)
        shared_legend(figure, grid_of_axes[0], min(5, 1 + len(rates)))
    said = " ".join(f"{name}: {describe_rate(one)}" for name, one in rates.items())
    symbol = next(iter(rates.values())).family.symbol
    return Picture(
        figure,
        f"{title}. One run per {symbol}, each with the step sizes that the result sets for it. {caption} {said} "
        f"{method(rates)} Upright lines: where another term of the bound becomes the largest.",
        f"{len(rates)} panels of what was measured under its bound against {symbol}; slopes "
        + ", ".join(f"{one.measured} where {fraction(one.predicted)} is predicted" for one in rates.values())
        + ".",
        data,
        {name: _provenance(one) for name, one in rates.items()},
    )


def method(rates: Mapping[str, Rate]) -> str:
    """The method of the fits, in words."""
    words = "Slopes: ordinary least squares of logarithms"
    seeds = sorted({one.measured.seeds for one in rates.values()} - {0})
    sampled = f", in brackets {CONFIDENCE:.0%} by the jackknife over {' or '.join(map(str, seeds))} seeds"
    exact = any(not one.measured.seeds for one in rates.values())
    return words + (sampled if seeds else "") + ("; exact runs have no interval, but local slopes." if exact else ".")


def describe_rate(one: Rate) -> str:
    """A family in words: slopes, regime, and changes of the largest term."""
    c, since = one.family, int(one.family.rounds[one.fitted][0])
    ends = f"{c.symbol} = {number(since)} to {number(int(c.rounds[-1]))}"
    words = (
        f"{c.result.source} [{c.form.name}], {c.label}: over {ends} measured {one.measured}, bound {one.promised:.3f}, "
        f"predicted {fraction(one.predicted)} ({one.leading}). "
    )
    words += "".join(f"{_capital(str(change))}. " for change in one.changes)
    if one.regime is None:
        words += f"By no {c.symbol} up to {number(FAR)} does the bound fall like that. "
    elif one.reached:
        words += f"The bound falls like that from {c.symbol} = {number(one.regime)} on. "
    else:
        begins = f"{c.symbol} = {number(one.regime)}"
        words += f"The runs do not reach the predicted regime: the bound falls like that from {begins} on. "
    if one.start is not None:
        none = f"by no {c.symbol} up to {number(FAR)}"
        below = none if one.telling is None else f"from {c.symbol} = {number(one.telling)} on"
        words += f"Before the first round {one.start:.2g} is measured; the bound is below that {below}. "
    if one.covered is None:
        words += f"The conditions hold at no {c.symbol} up to {number(FAR)}. "
    elif one.covered > c.rounds[0]:
        words += f"The conditions hold from {c.symbol} = {number(one.covered)} on. "
    words += f"Measured over bound {c.ratio[-1]:.2g} at the largest {c.symbol}. "
    words += f"{_capital(c.spacing)}. " if c.spacing else ""
    if not c.given_check.doubts:
        return words + describe_conditions(c.evaluation)
    failed = [condition.text for condition in c.evaluation.conditions if not np.all(condition.holds)]
    kept = f"Fails: {'; '.join(failed)}. " if failed else "All conditions hold. "
    guessed = ", ".join(f"{n} = {float(np.ravel(k.value)[0]):.3g}" for n, k in c.constants.items()
                        if k.source == "estimated" and n not in c.evaluation.unused)  # fmt: skip
    return f"{words}{kept}Not a guarantee: only estimated, and not bounded at every model, are {guessed}."


def rate_claims(rates: Mapping[str, Rate], drawn: str = "rate") -> list[FigureClaim]:
    """For every family: the measure falls at least as fast as predicted, and stays under the bound.

    `drawn` is the name of the figure that shows them.
    """
    claims = []
    for name, one in rates.items():
        c, since = one.family, int(one.family.rounds[one.fitted][0])
        source = f"{c.result.source.number}, {drawn}"
        over = f"{c.symbol} = {number(since)} to {number(int(c.rounds[-1]))}, {c.label}"
        under = f"no {c.symbol} at which its conditions hold" if not c.valid.any() else None
        highest = under or f"measured over bound at most {float(np.max(c.ratio[c.valid])):.2g}"
        claims += [
            FigureClaim(source, f"{_fall(one.predicted, c.symbol)} ({name})",
                  f"slope {one.measured} over {over}; bound {one.promised:.3f}{_describe_doubt(one)}",
                  one.as_fast,
                  f"{c.result.source.number}: an upper bound that falls so; that what is measured does is ours"),
            FigureClaim(source, f"stays under the bound where its conditions hold ({name})", highest,
                  None if under else not c.covered_crossings.size),
        ]  # fmt: skip
    return claims


def _describe_doubt(one: Rate) -> str:
    """Why the runs do not tell whether the measure falls as fast as predicted; empty if they do."""
    if one.as_fast is not None:
        return ""
    c = one.family
    if one.measured.at_most(one.predicted):
        last = least_squares(c.rounds[-2:], c.measured[-2:])
        return f"; not decided, as the slope between the last two {c.symbol} is {last:z.3f}"
    if one.start is not None and not c.bound[-1] < one.start:
        return f"; not decided, as the bound is never below {one.start:.2g}, which is measured before the first round"
    return f"; not decided, as the interval includes {fraction(one.predicted)}"


def _fall(power: float, symbol: str) -> str:
    return f"falls at least as fast as {symbol}^({fraction(power)})" if power else f"does not grow with {symbol}"


def fraction(value: float) -> str:
    """An exponent as a fraction, such as -1/2."""
    return str(Fraction(value).limit_denominator(100))


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _panel(above: Any, below: Any, name: str, one: Rate, terms: bool) -> list[Curve]:
    c = one.family
    T, far = c.rounds.astype(float), _end(one)
    above.set(xscale="log", yscale="log")
    above.xaxis.set_minor_formatter(NullFormatter())
    everywhere = grid(int(T[0]), far)
    everywhere = everywhere[:: max(1, len(everywhere) // POINTS)].astype(float)
    evaluated = one.at_any_rounds(everywhere)
    bound, valid = (np.broadcast_to(v, everywhere.shape) for v in (evaluated.value, evaluated.valid))
    error = None if c.standard_error is None else 2 * c.standard_error
    data = [
        Curve(f"{name}: measured ({c.label})", T, c.measured,
              None if error is None else c.measured - error, None if error is None else c.measured + error),
        Curve(f"{name}: bound of the runs", T, c.bound, valid=c.valid),
        Curve(f"{name}: bound [{c.form.name}]", everywhere, bound, valid=valid),
    ]  # fmt: skip
    if terms:
        look = looks(c.terms)
        for term, values in evaluated.terms.items():
            if (np.broadcast_to(values, everywhere.shape) > bound / 1000).any():
                data.append(Curve(f"{name}: term {term}", everywhere, np.broadcast_to(values, everywhere.shape)))
                above.plot(everywhere, data[-1].y, color=TERM_COLORS[look[term]], linewidth=1,
                           alpha=0.8, linestyle=DASHES[1 + look[term] % 7], label=f"term: {term}")  # fmt: skip
    for shown, style, label in ((valid, "-", "bound"), (~valid, DOTTED, "bound, a condition fails")):
        if shown.any():
            above.plot(everywhere, np.where(shown, bound, np.nan), color=BOUND, linestyle=style, label=label)
    above.plot(T, c.bound, color=BOUND, linestyle="", marker="o", markersize=3)
    if one.start is not None:
        above.axhline(one.start, color=COLORS[0], linestyle=DOTTED, linewidth=1, label="before the first round")
    above.errorbar(T, c.measured, error, color=COLORS[0], linestyle="", marker="D", markersize=4, label="measured")
    start = float(T[one.fitted][0])
    line = np.array([start, float(T[-1])])
    anchor = float(np.exp(np.log(c.measured[one.fitted]).mean() - one.measured.value * np.log(T[one.fitted]).mean()))
    above.plot(line, anchor * line**one.measured.value, color=COLORS[0], linewidth=1, label="fitted")
    guide = c.measured[one.fitted][0] / 2 * (line / start) ** one.predicted
    above.plot(line, guide, color="#777777", linestyle=DASHES[2], linewidth=1.2, label="predicted slope")
    for change in one.changes:
        if change.rounds <= far:
            above.axvline(change.rounds, color="#777777", linewidth=0.8)
            below.axvline(change.rounds, color="#777777", linewidth=0.8)
    above.set_xlim(left=10 ** np.floor(np.log10(T[0])))
    lowest = min(float(c.measured.min()), float(guide.min()))
    above.set_ylim(lowest / 3, 60 * float(np.max(bound[np.isfinite(bound)])))
    words = f"measured {one.measured}\nbound {one.promised:.3f}\npredicted {fraction(one.predicted)}"
    annotate(above, words, 7.5)
    middle = np.sqrt(T[1:] * T[:-1])
    local = np.diff(np.log(c.measured)) / np.diff(np.log(T))
    of_bound = one.doubling(everywhere)
    below.plot(everywhere, of_bound, color=BOUND)
    below.plot(middle, local, color=COLORS[0], linestyle="", marker="D", markersize=4)
    below.axhline(one.predicted, color="#777777", linestyle=DASHES[2], linewidth=1.2)
    below.set_ylim(min(-1.2, one.predicted - 0.3, local.min() - 0.1), max(0.2, local.max() + 0.1))
    return [*data, Curve(f"{name}: local slope measured", middle, local),
            Curve(f"{name}: local slope of the bound", everywhere, of_bound)]  # fmt: skip


def _end(one: Rate) -> int:
    """The largest T for which the bound is drawn."""
    ends = [int(one.family.rounds[-1]), *(change.rounds for change in one.changes), one.regime or 0, one.covered or 0]
    return min(FAR // 10, REACH * max(ends))


def _provenance(one: Rate) -> dict[str, Any]:
    c = one.family
    return {
        "result": c.result.key,
        "form": c.form.name,
        "measured": {"slope": one.measured.value, **attributes(one.measured, "low high")},
        "seeds": one.measured.seeds,
        "fitted from T": int(c.rounds[one.fitted][0]),
        "bound": one.promised,
        "predicted": one.predicted,
        "leading term": one.leading,
        "largest term changes": [[change.rounds, change.before, change.after] for change in one.changes],
        "regime from T": one.regime,
        "conditions from T": one.covered,
        "measured before the first round": one.start,
        "bound below that from T": None if one.start is None else one.telling,
        "guarantee": c.guarantee,
        "why_not": list(c.why_not),
        "constants at the largest T": {n: attributes(k, "value source") for n, k in c.constants.items()},
    }


TOGETHER = 0.1  # difference of exponents up to which the measure depends on a constant as the bound does
Panels = Mapping[str, Mapping[float, Sequence[RunComparison]]]  # constant -> value -> a run under several forms


def ratios(panels: Panels, *, title: str, caption: str = "") -> Picture:
    """Measured over bound at the largest T against each constant: a panel for each, a curve for each form.

    Panel titles give the exponents of measured and bound in the constant, by least squares of logarithms.
    """
    data: list[Curve] = []
    with new_figure(max(4.8, 2.55 * len(panels)), 3.7, title) as figure:
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
            axes.set(xscale="log", yscale="log")
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
