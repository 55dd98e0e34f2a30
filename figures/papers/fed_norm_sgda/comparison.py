r"""Figures 3 and 5 as the theory has them: $\tau_i$ fixed for each client, four step sizes tuned for each method, run
to a plateau, and of the second the plateau that the theory predicts.

All clients hold equally many images, so that $p_i=1/n$ and $\tau_i$ has nothing to do with how much a client holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import FigureClaim, limits_of
from fedbounds.figures.charts.curves import Scale, panels, seed_curve
from fedbounds.figures.charts.paper_gallery import Traces, series
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.charts.significance import Level, error_of_mean
from fedbounds.figures.charts.tuning import Tuned, stretches
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda import plateau

PHI_WORDS = {ex.ROBUST: "$\\Phi$, from below by attack", ex.FAIR: "$\\Phi$, exact"}
ACCURACY_WORDS = {ex.ROBUST: "robust test accuracy", ex.FAIR: "test accuracy, worst class"}


class ComparisonRuns(Protocol):
    """The gallery as a comparison needs it."""

    scale: ex.Scale

    def tuned(self, setting: ex.ExperimentSetting) -> Tuned: ...
    def final_runs(self, setting: ex.ExperimentSetting) -> list[Trace]: ...


@dataclass(frozen=True)
class Compared:
    """One problem and E: each method's runs and tuning, and the predicted Phi (seeds,) by method where known."""

    problem: str
    most: int
    scale: ex.Scale
    runs: Traces
    tuned: Mapping[str, Tuned]
    predicted: Mapping[str, np.ndarray]

    def ends(self, metric: str) -> dict[str, np.ndarray]:
        """The mean over the last tenth of the rounds, (seeds,), by method."""
        return {label: stretches(traces, self.scale.last, metric)[1] for label, traces in self.runs.items()}

    def moves(self, label: str) -> tuple[float, float]:
        """The relative change of a method's Phi between the last two tenths, and its standard error."""
        before, after = stretches(self.runs[label], self.scale.last, ex.PHI[self.problem])
        change = after - before
        return float(change.mean() / before.mean()), float(error_of_mean(change) / before.mean())

    def chi_squared(self, label: str) -> float:
        r"""$\chi^2_{p\|w}$ of a method's effective weights, the mean over seeds."""
        return float(np.mean(plateau.mismatch(self.scale, self.problem, label, self.most)))

    def claims(self, source: str, networks: Iterable[str]) -> list[FigureClaim]:
        """The normalized method against the others in accuracy and Phi; `networks` are as large as the paper's."""
        claims, own = list[FigureClaim](), self._written(ex.NORMALIZED)
        for metric, words in ((ex.ACCURACY[self.problem], ACCURACY_WORDS[self.problem]), (ex.PHI[self.problem], "Phi")):
            ends, shows = self.ends(metric), metric == ex.ACCURACY[self.problem]
            levels = {label: Level.of(values, self._written(label)) for label, values in ends.items()}
            runs = {self._written(label): traces for label, traces in self.runs.items()}
            limits = limits_of(self.scale.network, networks, runs, self.scale.last, metric)
            for label in (ex.NAIVE, ex.MOMENTUM):
                other = self._written(label)
                said = f"Text on {source}: {own} is better than {other}"
                claims += limits.apply([
                    FigureClaim(source, f"{own} is better than {other} (E = {self.most})",
                          f"{words} in %: {_pair(ends, label, 100)}; chi^2 {self.chi_squared(label):.2f}",
                          levels[ex.NORMALIZED].times(100).above(levels[label].times(100)), said)
                    if shows else
                    FigureClaim(source, f"{own} ends with a smaller Phi than {other} (E = {self.most})",
                          f"Phi: {_pair(ends, label)}; {self._predictions(label)}; over the last tenth Phi moves by "
                          f"{self._moved(ex.NORMALIZED)} and {self._moved(label)}",
                          levels[ex.NORMALIZED].below(levels[label]), f"{said}; of Phi it says nothing")
                ])  # fmt: skip
        return claims

    def _written(self, label: str) -> str:
        return ex.ExperimentSetting(self.problem, 1, 1, label).written

    def _moved(self, label: str) -> str:
        return "{:+.2%} +- {:.2%}".format(*self.moves(label))

    def _predictions(self, label: str) -> str:
        if not self.predicted:
            return "no prediction, as it is not concave in y"
        return f"predicted {self.predicted[ex.NORMALIZED].mean():.4f} against {self.predicted[label].mean():.4f}"


def _pair(found: Mapping[str, np.ndarray], label: str, unit: float = 1) -> str:
    """The levels of the normalized method and another, and their difference by seed, with standard errors."""
    gap = found[label] - found[ex.NORMALIZED]
    parts = [f"{unit * v.mean():.4g} +- {error_of_mean(unit * v):.2g}" for v in (found[ex.NORMALIZED], found[label])]
    return f"{' against '.join(parts)} ({unit * gap.mean():+.3g} +- {error_of_mean(unit * gap):.2g})"


def compare(gallery: ComparisonRuns, problem: str) -> list[Compared]:
    """Tune every method by Phi on separate seeds, then run it."""
    scale, found = gallery.scale, []
    for most in scale.robust_most if problem == ex.ROBUST else ex.MOST:
        settings = {m: ex.ExperimentSetting(problem, scale.clients, scale.clients, m, most) for m in ex.METHODS}
        predicted = plateau.predict_phi(scale, most) if plateau.predictable(scale, problem) else {}
        tuned = {label: gallery.tuned(setting) for label, setting in settings.items()}
        judged = {label: gallery.final_runs(setting) for label, setting in settings.items()}
        found.append(Compared(problem, most, scale, judged, tuned, predicted))
    return found


def picture(title: str, found: Sequence[Compared]) -> Picture:
    """Phi and accuracy against rounds, a panel for each E."""
    groups: dict[str, list[Curve]] = {}
    labels, notes = [], []
    for metric, head in ((ex.PHI, "$\\Phi$"), (ex.ACCURACY, "Accuracy")):
        for one in found:
            groups[f"{head}, $E = {one.most}$"] = [
                seed_curve(ex.ExperimentSetting(one.problem, 1, 1, label).written, *series(traces, metric[one.problem]))
                for label, traces in one.runs.items()
            ]
            labels.append((PHI_WORDS if metric is ex.PHI else ACCURACY_WORDS)[one.problem])
    for one in found:
        chi = ", ".join(f"{one.chi_squared(label):.2f} of {label}" for label in one.runs)
        notes.append(f"E = {one.most}: chi^2 {chi}")
    scale = found[0].scale
    scales: list[Scale] = ["log" if metric is ex.PHI else "linear" for metric in (ex.PHI, ex.ACCURACY) for _ in found]
    drawn = panels(
        groups,
        x_label="round $t$",
        y_labels=labels,
        title=title,
        caption=f"{title}. n = {scale.clients}, alpha = {ex.ALPHA:g}, all taking part. Each client's tau_i is drawn "
        f"from 2 to E local steps once per seed and kept, whatever it holds. Every method's four step sizes have the "
        f"lowest Phi, and what it still moves, of {scale.budget} settings (up to {scale.extensions} more where the "
        f"best stood at an edge) of the same search from the same start on {scale.tuning} other seeds. "
        f"{'; '.join(notes)}. {_predicted_words(found)} {scale.words}. Mean and standard deviation over seeds.",
        alternative="Phi and test accuracy against rounds for normalized averaging, naive averaging and momentum.",
        provenance={
            "scale": scale.words,
            "search": {"start": dict(scale.start), "budget": scale.budget, "extensions": scale.extensions},
            "tuning": {f"E = {one.most}": {k: tuned.summary() for k, tuned in one.tuned.items()} for one in found},
            "moves over the last tenth": {
                f"E = {one.most}": {label: list(one.moves(label)) for label in one.runs} for one in found
            },
        },
        y_scales=scales,
    )
    _draw_predictions(drawn, found)
    lowest = min(float(ends.mean()) for one in found for ends in one.ends(ex.ACCURACY[one.problem]).values())
    for axes in drawn.figure.axes:
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")
        else:
            axes.set_ylim(bottom=max(0.0, lowest - 0.25))
    return drawn


def _predicted_words(found: Sequence[Compared]) -> str:
    if found[0].predicted:
        return (
            "Thin gray lines: Phi where sum_i w_i f_i is least, w_i the weights that a method counts clients with, the "
            "mean over seeds, found by L-BFGS without a run: where a method settles as its local steps vanish (figure "
            "`plateau`). A tuned one need not: with larger local steps clients come near to minimizers of their own, "
            "and it matters less how many steps they take."
        )
    return (
        "What a method must settle at is not predicted: the loss is not concave in the perturbation, and there is no "
        "saddle to settle at."
    )


def _draw_predictions(drawn: Picture, found: Sequence[Compared]) -> None:
    """A thin line and the method's end for each prediction."""
    for axes, one in zip(drawn.figure.axes, found, strict=False):
        for label, values in one.predicted.items():
            axes.axhline(float(values.mean()), color="#777777", linewidth=0.8, zorder=1)
            axes.annotate(
                _short(label), (1, float(values.mean())), xycoords=("axes fraction", "data"), xytext=(-2, 1),
                textcoords="offset points", fontsize=6.5, ha="right", va="bottom", color="#555555",
            )  # fmt: skip


def _short(label: str) -> str:
    return {ex.NORMALIZED: "least", ex.NAIVE: "naive", ex.MOMENTUM: "momentum"}[label] + ", predicted"
