"""The figures and tables of the paper, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from fedbounds.empirical.problems import ImageClassification, problem_from_spec
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import movement_caption
from fedbounds.figures.charts.curves import panels, seed_curve
from fedbounds.figures.charts.paper_gallery import PaperGallery, convergence, dot_chart, final_accuracy
from fedbounds.figures.charts.picture import Curve, Picture, new_figure
from fedbounds.figures.charts.tightness import module_tightness
from fedbounds.figures.charts.tuning import Tuned, tune_by_runs
from fedbounds.figures.papers.fedau import bounds as theorems
from fedbounds.figures.papers.fedau import experiments as ex
from fedbounds.figures.papers.fedau import rates, statistics, tightness
from fedbounds.figures.papers.fedau.network import NETWORKS

CHANCE = "A run that diverged counts as chance from there on, as the paper's 10 % do."
ACCURACIES = {"training": "train_accuracy", "test": "test_accuracy"}
CLIENT_METRICS = {"loss": "train_loss", "training accuracy": "train_accuracy", "test accuracy": "test_accuracy"}


class Gallery(PaperGallery[ex.Scale]):
    """The figures and tables of this paper.

    Data sets: glyphs (default), digits; from local files svhn, cifar-10, cifar-100, cinic-10. Networks: mlp (default on
    glyphs and digits), the paper's (fedau-svhn, ...) scaled to the image, or another.
    """

    scale_of = staticmethod(ex.scale_of)
    usual = "glyphs"

    def tune(self, label: str, pattern: str = "Bernoulli") -> Tuned:
        """The tuning of a method's step sizes under a pattern by training loss: the same grid, separate seeds."""
        return self.keep(
            ("tuned", label, pattern),
            lambda: tune_by_runs(
                self.run,
                lambda methods: ex.training_sweep(self._name, self.scale, methods, pattern, self.data, tuning=True),
                lambda setting: ex.method(self.scale, label, **setting),
                self.scale.grid,
                self.scale.tuning_last,
            ),
        )

    def methods(self, labels: Sequence[str], pattern: str = "Bernoulli") -> dict[str, dict[str, Any]]:
        """Methods with their tuned step sizes under a pattern."""
        return {label: ex.method(self.scale, label, **self.tune(label, pattern).winner) for label in labels}

    def runs_of(self, pattern: str = "Bernoulli", **of_rates: Any) -> dict[str, list[Trace]]:
        """The seven methods under a pattern, with these rates."""
        methods = self.methods(ex.METHODS, pattern)
        return self.run(ex.training_sweep(self._name, self.scale, methods, pattern, self.data, **of_rates))

    @cached_property
    def by_pattern(self) -> dict[str, dict[str, list[Trace]]]:
        """Table 1's runs."""
        return {pattern: self.runs_of(pattern) for pattern in self.scale.patterns}

    @cached_property
    def convolutional(self) -> Gallery:
        """The same with convolutions."""
        return self.at(ex.convolutional(self.scale), self.data)

    @cached_property
    def by_alpha(self) -> dict[float, dict[str, list[Trace]]]:
        """Table D.1.1's runs by the heterogeneity of participation."""
        return {alpha: self.runs_of(alpha=alpha) for alpha in self.scale.alphas}

    @cached_property
    def by_mean(self) -> dict[float, dict[str, list[Trace]]]:
        """Table D.6.1's runs by the mean rate, without a lower bound."""
        return {mean: self.runs_of(mean=mean, floor=0.0) for mean in ex.MEANS}

    @cached_property
    def by_cutoff(self) -> dict[float, dict[float, list[Trace]]]:
        """The runs of Figures 1 and D.5.2: lower bound to K to runs."""
        labels = {ex.cutoff(K): K for K in self.scale.cutoffs}
        found = {}
        for floor in ex.FLOORS:
            sweep = ex.training_sweep(self._name, self.scale, self.methods([*labels]), data=self.data, floor=floor)
            found[floor] = {labels[label]: runs for label, runs in self.run(sweep).items()}
        return found

    @cached_property
    def by_client(self) -> dict[str, dict[str, np.ndarray]]:
        """Figure D.3.1's numbers: method to metric to the values of all clients, (seeds, clients)."""
        methods = self.methods(ex.TOP)
        sweep = ex.training_sweep(self._name, self.scale, methods, data=self.data, final_models=True)
        found: dict[str, dict[str, list[np.ndarray]]] = {label: {} for label in methods}
        problems = {task["seeds"][0]: task["problem"] for task in sweep.tasks}
        for label, traces in self.run(sweep).items():
            for trace in traces:
                problem = problem_from_spec(problems[int(trace.arrays["seed"][0])])
                assert isinstance(problem, ImageClassification)
                final = problem.initial_point(np.random.default_rng(0)).new_tensor(trace.arrays["model"][:, -1])
                for metric, values in problem.client_metrics(final).items():
                    found[label].setdefault(metric, []).append(values)
        return {label: {m: np.concatenate(v) for m, v in metrics.items()} for label, metrics in found.items()}

    @property
    def _name(self) -> str:
        """The directory of all runs, as several figures share some."""
        return f"fedau-{self.scale.dataset}-{self.scale.network}"

    def accuracy(self, traces: Sequence[Trace], metric: str) -> np.ndarray:
        """The accuracy over the last rounds in per cent, (seeds,); a run that diverged counts as chance."""
        return final_accuracy(traces, metric, self.scale.last, 0.01 if self.scale.dataset == "cifar-100" else 0.1)

    def figure_1(self) -> Picture:
        """The cut-off length against the test accuracy."""
        return self._cutoffs("Figure 1: the cut-off length K", {"test": "test_accuracy"})

    def figure_d_5_2(self) -> Picture:
        """The cut-off length, training and test."""
        return self._cutoffs("Figure D.5.2: the cut-off length K, training and test", ACCURACIES)

    def _cutoffs(self, title: str, metrics: Mapping[str, str]) -> Picture:
        groups: dict[str, list[Curve]] = {}
        for name, metric in metrics.items():
            for floor, by_K in self.by_cutoff.items():
                K = np.minimum(list(by_K), self.scale.rounds)
                values = np.stack([self.accuracy(runs, metric) for runs in by_K.values()], axis=1)
                curve = self._band(f"$p_n \\geq {floor:g}$" if floor else "no lower bound", K, values)
                groups.setdefault(f"{name} accuracy", []).append(curve)
        return panels(
            groups,
            x_label="$K$ (the last point: no cut-off)",
            y_labels=[f"{group} in %" for group in groups],
            title=title,
            caption=f"{title}, Bernoulli participation, for several lower bounds on the rates. {self._note()}"
            f"{self._movement({f'lower bound {floor:g}': by_K for floor, by_K in self.by_cutoff.items()}, metrics)}",
            alternative=f"Accuracy against K for the lower bounds {', '.join(f'{floor:g}' for floor in ex.FLOORS)}.",
            provenance=self._provenance([ex.cutoff(K) for K in self.scale.cutoffs]),
            x_scale="log",
        )

    def _movement(self, groups: Mapping[str, Mapping[Any, list[Trace]]], metrics: Mapping[str, str]) -> str:
        runs = {f"{label} ({group})": traces for group, of in groups.items() for label, traces in of.items()}
        return movement_caption(runs, self.scale.last, metrics.values())

    def _band(self, label: str, x: np.ndarray, values: np.ndarray) -> Curve:
        curve = seed_curve(label, np.asarray(x, float), values)
        low, high = (curve.y if end is None else np.clip(end, 0, 100) for end in (curve.low, curve.high))
        return replace(curve, low=low, high=high)

    def _note(self, tuned: str = "Bernoulli participation with the rates of Table 1") -> str:
        return (
            f"{self.scale.words}. Step sizes: {self._tuning}, under {tuned}. Averages over the last {self.scale.last} "
            f"rounds; mean and standard deviation over seeds. {CHANCE}"
        )

    @property
    def _tuning(self) -> str:
        return (
            "each method's best pair of one grid of gamma and eta, by training loss in the last "
            f"{self.scale.tuning_last} of {self.scale.tuning_rounds} rounds, on {self.scale.tuning_seeds} other seeds"
        )

    def _provenance(
        self, labels: Sequence[str] = ex.METHODS, patterns: Sequence[str] = ("Bernoulli",)
    ) -> dict[str, object]:
        return {
            "scale": self.scale.words,
            "grid": self.scale.grid,
            "tuned": {pattern: {label: brief(self.tune(label, pattern)) for label in labels} for pattern in patterns},
        }

    def figure_d_2(self) -> Picture:
        """Loss and accuracy against rounds."""
        steps = "; ".join(f"{label} {self.tune(label).words}" for label in ex.METHODS)
        note = f"Bernoulli participation. Step sizes: {self._tuning}: {steps}."
        runs, start = self.by_pattern["Bernoulli"], self.scale.rounds // 10
        note += movement_caption(runs, self.scale.last, ("train_loss", "test_accuracy"))
        picture = convergence("Figure D.2: seven methods", runs, self.scale.words, note, start)
        return replace(picture, provenance=self._provenance())

    def tuning(self) -> Picture:
        """The score of every pair of step sizes."""
        found = {pattern: {label: self.tune(label, pattern) for label in ex.METHODS} for pattern in ex.PATTERNS}
        title = "How the step sizes were found"
        edges = [f"{label} ({pattern})" for pattern, of in found.items() for label, one in of.items() if one.edges]
        still = f" Still at the edge: {', '.join(edges)}." if edges else ""
        caption = (
            f"{title}: {self._tuning}. The cross is the winner; one at the edge widens its grid. Colors end at twice "
            f"the best loss; gray: not tried, or diverged in a seed.{still} {self.scale.words}."
        )
        return heat_maps(title, found, caption, self._provenance(patterns=[*ex.PATTERNS]))

    def figure_d_3_1(self) -> Picture:
        """The distributions of the clients' losses and accuracies."""
        groups = {}
        for name, metric in CLIENT_METRICS.items():
            groups[name] = []
            for label, metrics in self.by_client.items():
                values = np.sort(metrics[metric][np.isfinite(metrics[metric])])
                groups[name].append(Curve(label, values, np.arange(1, len(values) + 1) / len(values)))
        title = "Figure D.3.1: losses and accuracies of the clients"
        return panels(
            groups,
            x_label="value at the client",
            y_labels=["share of clients"] * 3,
            title=title,
            caption=f"{title} at the last round, Bernoulli participation, cumulative over the clients of all seeds. "
            f"The test accuracy of a client weighs the classes as its training samples do. Step sizes: {self._tuning}. "
            f"{self.scale.words}.{self._movement_of_top}",
            alternative=f"Three panels of cumulative distributions over clients for {', '.join(self.by_client)}.",
            provenance=self._provenance(ex.TOP),
        )

    def table_1(self, network: str = "") -> Picture:
        """Accuracies of seven methods under several patterns."""
        values = {
            pattern: {
                label: {n: self.accuracy(traces, m) for n, m in ACCURACIES.items()} for label, traces in runs.items()
            }
            for pattern, runs in self.by_pattern.items()
        }
        title = f"Table 1{network}: accuracy under {len(values)} participation patterns"
        note = self._note("the pattern in question")
        paired = "A seed's data and rates are the same for all methods, so that differences are clearer than the bars."
        cyclic = "Cyclic participation is stationary here; in the paper's code it is not." if "cyclic" in values else ""
        caption = f"{title}. {note} {paired} {cyclic}".rstrip() + self._movement(self.by_pattern, ACCURACIES)
        return dot_chart(title, values, "accuracy in %", caption, self._provenance(patterns=[*values]))

    def table_d_1_1(self) -> Picture:
        """Accuracy against how heterogeneous participation is."""
        title = "Table D.1.1: participation more or less heterogeneous"
        return self._lines(title, self.by_alpha, "$\\alpha_p$ (small: heterogeneous)")

    def table_d_6_1(self) -> Picture:
        """Accuracy against the mean participation rate."""
        title = "Table D.6.1: the mean participation rate, no lower bound"
        return self._lines(title, self.by_mean, "mean of $p_n$")

    def _lines(self, title: str, runs: Mapping[float, Mapping[str, list[Trace]]], x_label: str) -> Picture:
        groups = {
            f"{name} accuracy": [
                self._band(
                    label, np.array(list(runs)), np.stack([self.accuracy(r[label], m) for r in runs.values()], 1)
                )
                for label in ex.METHODS
            ]
            for name, m in ACCURACIES.items()
        }
        return panels(
            groups,
            x_label=x_label,
            y_labels=["%", "%"],
            title=title,
            caption=f"{title}, Bernoulli participation. {self._note()}"
            f"{self._movement({f'{value:g}': of for value, of in runs.items()}, ACCURACIES)}",
            alternative=f"Training and test accuracy against {x_label} for {', '.join(ex.METHODS)}.",
            provenance=self._provenance(),
            x_scale="log",
        )

    def table_d_3_1(self) -> Picture:
        """The standard deviations over clients."""
        values = {
            name: {label: {"": metrics[metric].std(axis=1)} for label, metrics in self.by_client.items()}
            for name, metric in CLIENT_METRICS.items()
        }
        title = "Table D.3.1: standard deviations over clients"
        caption = (
            f"{title} at the last round, Bernoulli participation, mean and deviation over seeds. Step sizes: "
            f"{self._tuning}. {self.scale.words}.{self._movement_of_top}"
        )
        return dot_chart(title, values, "", caption, self._provenance(ex.TOP), share=False)

    @property
    def top(self) -> dict[str, list[Trace]]:
        """The runs whose final models are behind Table D.3.1."""
        return {label: self.by_pattern["Bernoulli"][label] for label in ex.TOP}

    @property
    def _movement_of_top(self) -> str:
        return movement_caption(self.top, self.scale.last, CLIENT_METRICS.values())


def brief(tuned: Tuned) -> dict[str, object]:
    """The tuning for manifests; every score is in the data of the figure `tuning`."""
    score = min(score for _, score in tuned.tried)
    return {"winner": tuned.winner, "score": score, "searched": tuned.searched, "at the edge": tuned.edges}


def heat_maps(
    title: str, found: Mapping[str, Mapping[str, Tuned]], caption: str, provenance: Mapping[str, object]
) -> Picture:
    """Scores over gamma and eta by pattern and method, on one color scale, winners crossed."""
    searches = [one for of in found.values() for one in of.values()]
    gammas, etas = (sorted({v for one in searches for v in one.searched[name]}) for name in ("gamma", "eta"))
    best = min(score for one in searches for _, score in one.tried)
    data = []
    with new_figure(11.5, 1.1 + 1.65 * len(found), title) as figure:
        grid = figure.subplots(len(found), len(next(iter(found.values()))), sharex=True, sharey=True, squeeze=False)
        for row, (pattern, of) in zip(grid, found.items(), strict=True):
            for axes, (label, one) in zip(row, of.items(), strict=True):
                scores = {(s["gamma"], s["eta"]): v for s, v in one.tried}
                table = np.array([[scores.get((gamma, eta), np.nan) for gamma in gammas] for eta in etas])
                image = axes.imshow(np.where(np.isfinite(table), table, np.nan), origin="lower", aspect="auto",
                                    cmap="viridis", vmin=best, vmax=2 * best)  # fmt: skip
                place = gammas.index(one.winner["gamma"]), etas.index(one.winner["eta"])
                axes.plot(*place, marker="x", color="white", markersize=7, markeredgewidth=2)
                axes.set_facecolor("#cccccc")
                axes.grid(visible=False)
                for eta in one.searched["eta"]:
                    line = np.array([(gamma, scores[gamma, eta]) for gamma in one.searched["gamma"]])
                    data.append(Curve(f"{pattern}: {label}, eta = {eta:g}", *line.T))
        for axes, label in zip(grid[0], next(iter(found.values())), strict=True):
            axes.set_title(label.replace(", ", "\n").replace("average ", "average\n").replace("known ", "known\n"))
        for axes, pattern in zip(grid[:, 0], found, strict=True):
            axes.set_yticks(range(len(etas)), [f"{eta:.2g}" for eta in etas])
            axes.set_ylabel(f"{pattern}\n$\\eta$")
        for axes in grid[-1]:
            axes.set_xticks(range(len(gammas)), [f"{gamma:.2g}" for gamma in gammas], rotation=60)
            axes.set_xlabel("$\\gamma$")
        figure.colorbar(image, ax=grid, label="training loss", extend="max", pad=0.01)
    alternative = f"Maps of the training loss over gamma and eta for {', '.join(found)} and each method."
    return Picture(figure, caption, alternative, data, provenance)


FIGURES: Mapping[str, Callable[[Gallery], Picture]] = {
    "figure-1": Gallery.figure_1,
    "table-1": Gallery.table_1,
    "table-1-cnn": lambda gallery: gallery.convolutional.table_1(" with convolutions"),
    "figure-c.6.1": lambda gallery: statistics.figure_c_6_1(),
    "figure-c.6.2": lambda gallery: statistics.figure_c_6_2(),
    "table-d.1.1": Gallery.table_d_1_1,
    "figure-d.2": Gallery.figure_d_2,
    "figure-d.3.1": Gallery.figure_d_3_1,
    "table-d.3.1": Gallery.table_d_3_1,
    "figure-d.4.1": lambda gallery: statistics.weights_over_time("Bernoulli", "D.4.1"),
    "figure-d.4.2": lambda gallery: statistics.weights_over_time("cyclic", "D.4.2"),
    "figure-d.5.1": lambda gallery: statistics.figure_d_5_1(),
    "figure-d.5.2": Gallery.figure_d_5_2,
    "figure-d.6.1": lambda gallery: statistics.figure_d_6_1(),
    "table-d.6.1": Gallery.table_d_6_1,
    "tuning": Gallery.tuning,
    "theorem-1": lambda gallery: theorems.wrong_objectives(),
    "theorem-2": lambda gallery: theorems.theorem_2(),
    "without-bound": lambda gallery: theorems.without_bound(),
    "rate": lambda gallery: rates.exact_rate(),
    "ratio": lambda gallery: rates.exact_ratio(),
    "tightness": lambda gallery: module_tightness(tightness, gallery.progress),
    "network": NETWORKS.picture,
    "network-rate": NETWORKS.rates,
}
