"""The figures of the paper, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import FigureClaim, limits_of, movement_caption
from fedbounds.figures.charts.curves import Scale, panels, seed_curve
from fedbounds.figures.charts.paper_gallery import KeyT, PaperGallery, Traces, final_accuracy, series
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.charts.significance import Level, error_of_mean
from fedbounds.figures.charts.tightness import module_tightness
from fedbounds.figures.charts.tuning import Tuned, TunedSetting, level_with_drift, search, stretches
from fedbounds.figures.papers.fed_norm_sgda import bounds as theorems
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda import plateau, rates, surrogate, tightness
from fedbounds.figures.papers.fed_norm_sgda.network import NETWORKS

AXIS = {ex.ROBUST: "robust test accuracy", ex.FAIR: "accuracy in the worst class"}
EPOCHS, STEPS = "$\\tau_i$ ~ Unif[2, 5] epochs", "$\\tau_i$ ~ Unif[2, 5] local steps"
GAIN = 1e-3  # of Phi, or of the rounds, by which a setting must be better for a search to go on from it


class Gallery(PaperGallery[ex.Scale]):
    """The figures of this paper.

    Data sets: glyphs (default), digits; from local files cifar-10. Networks: mlp (default on glyphs), linear (default
    on digits), vgg-11 (the paper's), or another.
    """

    scale_of = staticmethod(ex.scale_of)
    usual = "glyphs"

    def tune(self, settings: Iterable[ex.ExperimentSetting]) -> dict[ex.ExperimentSetting, Tuned]:
        """Step sizes with the lowest final Phi (plus its change), on separate seeds."""
        rounds = self.scale.tuning_rounds

        def scores(some: Mapping[ex.ExperimentSetting, TunedSetting]) -> dict[ex.ExperimentSetting, float]:
            runs = self.run_each({
                s: ex.runs(self.scale, s, v, self.data, tuning=True, rounds=rounds) for s, v in some.items()
            })  # fmt: skip
            return {s: level_with_drift(of, rounds // 10, ex.PHI[s.problem]) for s, of in runs.items()}

        return self._search("level", settings, scores, self.scale.budget)

    def quick(self, settings: Iterable[ex.ExperimentSetting]) -> dict[ex.ExperimentSetting, Tuned]:
        """Step sizes that reach the target test accuracy first, on separate seeds."""

        def score(traces: Sequence[Trace]) -> float:
            reached = self.arrivals(traces)
            short = self.scale.target - series(traces, "test_accuracy")[1][:, -1]  # at the end, in accuracy
            found = float(np.where(np.isfinite(reached), reached, self.scale.reach * (1 + short)).mean())
            return found if np.isfinite(found) else np.inf

        def scores(some: Mapping[ex.ExperimentSetting, TunedSetting]) -> dict[ex.ExperimentSetting, float]:
            return {one: score(traces) for one, traces in self._reaching(some, tuning=True).items()}

        return self._search("speed", settings, scores, self.scale.speed_budget)

    def final_runs(self, settings: Iterable[ex.ExperimentSetting]) -> dict[ex.ExperimentSetting, list[Trace]]:
        """The runs of settings, each with its own step sizes."""
        tuned = self.tune(settings)
        return self.run_each({one: ex.runs(self.scale, one, of.winner, self.data) for one, of in tuned.items()})

    def setting(self, problem: str, **changed: Any) -> ex.ExperimentSetting:
        """The normalized method with full participation, with changes."""
        return replace(ex.ExperimentSetting(problem, self.scale.clients, self.scale.clients), **changed)

    def _search(
        self,
        aim: str,
        settings: Iterable[ex.ExperimentSetting],
        scores: Callable[[Mapping[ex.ExperimentSetting, TunedSetting]], Mapping[ex.ExperimentSetting, float]],
        budget: int,
    ) -> dict[ex.ExperimentSetting, Tuned]:
        kept: dict[ex.ExperimentSetting, Tuned] = self.keep(aim, dict)
        wanted = list(settings)
        new = dict.fromkeys((one for one in wanted if one not in kept), self.scale.start)
        kept |= search(new, scores, budget, extensions=self.scale.extensions, gain=GAIN)
        return {one: kept[one] for one in wanted}

    def _reaching(
        self, steps: Mapping[ex.ExperimentSetting, TunedSetting], tuning: bool = False
    ) -> dict[ex.ExperimentSetting, list[Trace]]:
        return self.run_each({
            one: ex.runs(self.scale, one, of, self.data, tuning=tuning, rounds=self.scale.reach, record_every=1)
            for one, of in steps.items()
        })  # fmt: skip

    @cached_property
    def robust_methods(self) -> list[Compared]:
        """Figure 3's runs."""
        return compare(self, ex.ROBUST)

    @cached_property
    def fair_methods(self) -> list[Compared]:
        """Figure 5's runs."""
        return compare(self, ex.FAIR)

    @cached_property
    def plateaus(self) -> plateau.PredictedAndRuns:
        """Predicted and measured levels without tuning, on digits for every data set."""
        return plateau.compare_levels(plateau.digits_scale(self.scale), self.run)

    @property
    def by_participants(self) -> dict[float, dict[int, ex.ExperimentSetting]]:
        """Figure 4: alpha to P to setting."""
        return {
            alpha: {P: self.setting(ex.ROBUST, alpha=alpha, participants=P) for P in self.scale.participants}
            for alpha in (ex.ALPHA, 1.0)
        }

    @property
    def by_fair_participants(self) -> dict[int, ex.ExperimentSetting]:
        """Figure 8: P to setting."""
        return {P: self.setting(ex.FAIR, participants=P) for P in self.scale.participants}

    @property
    def by_alpha(self) -> dict[float, ex.ExperimentSetting]:
        """Figure 6: alpha to setting."""
        return {alpha: self.setting(ex.ROBUST, alpha=alpha) for alpha in self.scale.alphas}

    @property
    def by_number(self) -> dict[str, dict[int, ex.ExperimentSetting]]:
        """Figure 7: unit of the work to n to setting, full participation."""
        return {
            kind: {n: self.setting(ex.ROBUST, clients=n, participants=n, epochs=kind == EPOCHS)
                   for n in self.scale.numbers}
            for kind in (EPOCHS, STEPS)
        }  # fmt: skip

    def reaching(self, settings: Mapping[KeyT, ex.ExperimentSetting]) -> dict[KeyT, list[Trace]]:
        """Figure 7's runs of settings."""
        runs = self._reaching({one: tuned.winner for one, tuned in self.quick(settings.values()).items()})
        return {key: runs[one] for key, one in settings.items()}

    def accuracy(self, traces: Sequence[Trace], metric: str) -> np.ndarray:
        """The accuracy over the last rounds in per cent, (seeds,); a run that diverged counts as chance."""
        return final_accuracy(traces, metric, self.scale.last, CHANCE[metric])

    def rounds_to_target(self, traces: Sequence[Trace]) -> np.ndarray:
        """The first round at which the test accuracy reaches the target, (seeds,); infinite if never."""
        return np.ceil(self.arrivals(traces) - 1e-9)

    def arrivals(self, traces: Sequence[Trace]) -> np.ndarray:
        """The same, interpolated between records."""
        rounds, values = series(traces, "test_accuracy")
        found = []
        for one in values:
            reached = np.flatnonzero(one >= self.scale.target)
            k = reached[0] if len(reached) else -1
            if k <= 0:
                found.append(float(rounds[0]) if k == 0 else np.inf)
                continue
            share = (self.scale.target - one[k - 1]) / (one[k] - one[k - 1])
            found.append(float(rounds[k - 1] + share * (rounds[k] - rounds[k - 1])))
        return np.array(found)

    def figure_3(self) -> Picture:
        """Robust training by three methods."""
        return picture("Figure 3: robust training by three tuned methods", self.robust_methods)

    def figure_5(self) -> Picture:
        """Fair classification by three methods."""
        return picture("Figure 5: fair classification by three tuned methods", self.fair_methods)

    def plateau(self) -> Picture:
        """The levels of runs, against the predicted ones."""
        return plateau.picture(plateau.digits_scale(self.scale), self.plateaus)

    def figure_4(self) -> Picture:
        """Robust training with fewer participants."""
        groups = {
            f"$\\alpha = {alpha:g}$": {f"$P = {P}$": setting for P, setting in by_P.items()}
            for alpha, by_P in self.by_participants.items()
        }
        return self._accuracies("Figure 4: Fed-Norm-SGDA+ with P of n clients", groups)

    def figure_6(self) -> Picture:
        """Robust training over heterogeneity."""
        group = {f"$\\alpha = {alpha:g}$": setting for alpha, setting in self.by_alpha.items()}
        return self._accuracies("Figure 6: Fed-Norm-SGDA+ by heterogeneity", {"": group})

    def figure_8(self) -> Picture:
        """Fair classification with fewer participants."""
        group = {f"$P = {P}$": setting for P, setting in self.by_fair_participants.items()}
        return self._accuracies("Figure 8: Fed-Norm-SGDA with P of n clients", {"": group})

    def figure_7(self) -> Picture:
        """Test accuracy and rounds to the target for several numbers of clients."""
        title, target, groups, needed = "Figure 7: Fed-Norm-SGDA+ and the number of clients", self.scale.target, {}, []
        for kind, by_n in self.by_number.items():
            runs = self.reaching(by_n)
            curves = [seed_curve(f"$n = {n}$", *series(traces, "test_accuracy")) for n, traces in runs.items()]
            groups[kind] = [*curves, Curve(f"target {target:.0%}", curves[0].x, np.full(len(curves[0].x), target))]
            words = (f"n = {n}: {describe_rounds(self.rounds_to_target(traces))}" for n, traces in runs.items())
            needed.append(f"{_plain(kind)}: {'; '.join(words)}")
        settings = {f"{kind}, n = {n}": one for kind, by_n in self.by_number.items() for n, one in by_n.items()}
        tuned = self.quick(settings.values())
        return panels(
            groups,
            x_label="round $t$",
            y_labels=["test accuracy"] * 2,
            title=title,
            caption=f"{title}. All clients participate, alpha = {ex.ALPHA:g}, the same images dealt to n clients; on "
            "the left tau_i counts epochs, which are shorter the more clients there are, on the right local steps. "
            f"Step sizes are tuned for each n, the best of {self.scale.speed_budget} settings (and more at "
            f"edges) on {self.scale.tuning} other seeds, to reach the target soonest. First round at "
            f"{target:.0%} on test images as they are, mean over seeds (the paper's target is 70 %). "
            f"{'. '.join(needed)}. {replace(self.scale, rounds=self.scale.reach).words}. Mean and standard "
            "deviation over seeds.",
            alternative=f"Test accuracy against rounds for n = {', '.join(map(str, self.scale.numbers))}, two panels.",
            provenance=self._provenance({label: tuned[one] for label, one in settings.items()}),
        )

    def _accuracies(self, title: str, groups: Mapping[str, Mapping[str, ex.ExperimentSetting]]) -> Picture:
        """The accuracy of the problem against rounds, a panel for each group of settings."""
        settings = {f"{name} {label}".strip(): one for name, group in groups.items() for label, one in group.items()}
        problem = next(iter(settings.values())).problem
        metric, of = ex.ACCURACY[problem], self.final_runs(settings.values())
        curves = {
            name: [seed_curve(label, *series(of[one], metric)) for label, one in group.items()]
            for name, group in groups.items()
        }
        scale, tuned = self.scale, self.tune(settings.values())
        runs = {_plain(name): of[one] for name, one in settings.items()}
        return panels(
            curves,
            x_label="round $t$",
            y_labels=[AXIS[problem]] * len(groups),
            title=title,
            caption=f"{title}. n = {scale.clients}, tau_i ~ Unif[2, {ex.MOST[0]}] local steps, drawn once per seed. "
            f"Each curve has step sizes of its own, with the lowest Phi, and what it still moves, {scale.search}. "
            f"{describe_accuracy(scale, problem)} {scale.words}. Mean and standard deviation over seeds."
            f"{movement_caption(runs, scale.last, [metric])}",
            alternative=f"{AXIS[problem].capitalize()} against rounds for {_plain(', '.join(settings))}.",
            provenance=self._provenance({label: tuned[one] for label, one in settings.items()}),
        )

    def _provenance(self, found: Mapping[str, Tuned]) -> dict[str, Any]:
        return {"scale": self.scale.words, "tuning": {label: tuned.summary() for label, tuned in found.items()}}


def describe_accuracy(scale: ex.Scale, problem: str) -> str:
    """What the accuracy of a problem is."""
    if problem == ex.FAIR:
        return "The accuracy is that within the class where it is least, on test images."
    return (
        f"Robust accuracy is on test images with the one perturbation, of norm at most {scale.radius:g} for pixels in "
        "[0, 1], of the largest training loss that ten ascent steps meet."
    )


def _plain(label: str) -> str:
    """A label without the signs of mathtext."""
    return label.replace("$", "").replace("\\", "")


def describe_rounds(found: np.ndarray) -> str:
    """The mean with its standard error, or the median and the seeds that never arrive; (seeds,)."""
    missed = int((~np.isfinite(found)).sum())
    if missed:
        middle = float(np.sort(found)[len(found) // 2])
        within = f"median {middle:g}, " if np.isfinite(middle) else ""
        return f"{within}not within the rounds by {missed} of {len(found)} seeds"
    return f"{found.mean():.2f} +- {error_of_mean(found):.2f} rounds"


PHI_WORDS = {ex.ROBUST: "$\\Phi$, from below by attack", ex.FAIR: "$\\Phi$, exact"}
ACCURACY_WORDS = {ex.ROBUST: "robust test accuracy", ex.FAIR: "test accuracy, worst class"}
CHANCE = {ex.ACCURACY[ex.ROBUST]: 0.1, ex.ACCURACY[ex.FAIR]: 0.0}


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
        """The mean over the last tenth of the rounds, (seeds,), by method; an accuracy of a diverged run is chance."""
        last = self.scale.last
        if metric in CHANCE:
            return {label: final_accuracy(v, metric, last, CHANCE[metric]) / 100 for label, v in self.runs.items()}
        return {label: stretches(traces, last, metric)[1] for label, traces in self.runs.items()}

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
            levels = {label: Level.from_values(values, self._written(label)) for label, values in ends.items()}
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
                          f"{self._describe_drift(ex.NORMALIZED)} and {self._describe_drift(label)}",
                          levels[ex.NORMALIZED].below(levels[label]), f"{said}; of Phi it says nothing")
                ])  # fmt: skip
        return claims

    def _written(self, label: str) -> str:
        return ex.ExperimentSetting(self.problem, 1, 1, label).written

    def _describe_drift(self, label: str) -> str:
        return "{:+.2%} +- {:.2%}".format(*self.moves(label))

    def _predictions(self, label: str) -> str:
        if not self.predicted:
            return "no prediction, as the problem is not convex-concave"
        return f"predicted {self.predicted[ex.NORMALIZED].mean():.4f} against {self.predicted[label].mean():.4f}"


def _pair(found: Mapping[str, np.ndarray], label: str, unit: float = 1) -> str:
    """The levels of the normalized method and another, and the first minus the second by seed, with standard errors."""
    gap = found[ex.NORMALIZED] - found[label]
    parts = [f"{unit * v.mean():.4g} +- {error_of_mean(unit * v):.2g}" for v in (found[ex.NORMALIZED], found[label])]
    return f"{' against '.join(parts)} ({unit * gap.mean():+.3g} +- {error_of_mean(unit * gap):.2g})"


def compare(gallery: Gallery, problem: str) -> list[Compared]:
    """Tune every method by Phi on separate seeds, then run it."""
    scale = gallery.scale
    settings = {
        most: {m: ex.ExperimentSetting(problem, scale.clients, scale.clients, m, most) for m in ex.METHODS}
        for most in (scale.robust_most if problem == ex.ROBUST else ex.MOST)
    }
    every = [one for of in settings.values() for one in of.values()]
    tuned, judged, found = gallery.tune(every), gallery.final_runs(every), []
    for most, of in settings.items():
        predicted = plateau.predict_phi(scale, most) if plateau.predictable(scale, problem) else {}
        runs = {label: judged[one] for label, one in of.items()}
        steps = {label: tuned[one] for label, one in of.items()}
        found.append(Compared(problem, most, scale, runs, steps, predicted))
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
        notes.append(f"E = {one.most}: chi^2 = sum_i (p_i - w_i)^2 / w_i {chi}")
    scale, problem = found[0].scale, found[0].problem
    runs = {f"{label} (E = {one.most})": traces for one in found for label, traces in one.runs.items()}
    scales: list[Scale] = ["log" if metric is ex.PHI else "linear" for metric in (ex.PHI, ex.ACCURACY) for _ in found]
    drawn = panels(
        groups,
        x_label="round $t$",
        y_labels=labels,
        title=title,
        caption=f"{title}. Phi is the loss at the adversary's best response. n = {scale.clients}, "
        f"alpha = {ex.ALPHA:g}, all taking part. Each client's tau_i is drawn from 2 to E local steps once per seed "
        "and kept, whatever it holds. Every method's four step sizes have the "
        f"lowest Phi, and what it still moves, {scale.search}. "
        f"{'; '.join(notes)}. {describe_accuracy(scale, problem)} {_describe_predictions(found)} {scale.words}. "
        "Mean and standard deviation over seeds."
        f"{movement_caption(runs, scale.last, (ex.PHI[problem], ex.ACCURACY[problem]))}",
        alternative="Phi and test accuracy against rounds for normalized averaging, naive averaging and momentum.",
        provenance={
            "scale": scale.words,
            "search": {"start": dict(scale.start), "words": scale.search},
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


def _describe_predictions(found: Sequence[Compared]) -> str:
    if found[0].predicted:
        return (
            "Thin gray lines: Phi where sum_i w_i f_i is least, w_i the weights that a method counts clients with, the "
            "mean over seeds, found by L-BFGS without a run: where a method settles as its local steps vanish (figure "
            "`plateau`). A tuned one need not: with larger local steps clients come near to minimizers of their own, "
            "and it matters less how many steps they take."
        )
    return (
        "What a method must settle at is not predicted: the problem is not convex-concave, so that a saddle need not "
        "exist."
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


FIGURES: Mapping[str, Callable[[Gallery], Picture]] = {
    "figure-1": lambda gallery: surrogate.figure_1(),
    "figure-3": Gallery.figure_3,
    "figure-4": Gallery.figure_4,
    "figure-5": Gallery.figure_5,
    "figure-6": Gallery.figure_6,
    "figure-7": Gallery.figure_7,
    "figure-8": Gallery.figure_8,
    "plateau": Gallery.plateau,
    "surrogate": lambda gallery: surrogate.surrogate(),
    "corollary-1.1": lambda gallery: surrogate.corollary_1_1(),
    "theorem-1": lambda gallery: theorems.theorem_1(),
    "theorem-4": lambda gallery: theorems.theorem_4(),
    "rounds": lambda gallery: theorems.headline(),
    "rate": lambda gallery: rates.exact_rate(),
    "ratio": lambda gallery: rates.exact_ratio(),
    "tightness": lambda gallery: module_tightness(tightness, gallery.progress),
    "network": NETWORKS.picture,
    "network-rate": NETWORKS.rates,
}
