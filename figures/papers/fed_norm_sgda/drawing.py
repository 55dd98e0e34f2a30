"""One function per figure of the paper: make the runs that are missing, then draw."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from fedbounds.empirical.sweep import Sweep
from fedbounds.empirical.trace import Trace
from fedbounds.figures.curves import panels, seed_curve
from fedbounds.figures.paper_gallery import PaperGallery, Traces, draw_by_name, series
from fedbounds.figures.papers.fed_norm_sgda import bounds as theorems
from fedbounds.figures.papers.fed_norm_sgda import comparison, rates, surrogate
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda.network import network, network_rates
from fedbounds.figures.picture import Curve, Picture

AXIS = {ex.ROBUST: "robust test accuracy", ex.FAIR: "accuracy in the worst class"}
ATTACKED = (
    "Robust accuracy is on test images with the one perturbation, of norm at most 1, of the largest training loss that "
    "ten ascent steps meet."
)
EPOCHS, STEPS = "$\\tau_i$ ~ Unif[2, 5] epochs", "the same local steps for every $n$"
WORST = "The accuracy is that within the class where it is least, on test images."
MEASURED = {ex.ROBUST: ATTACKED, ex.FAIR: WORST}
SettingT = TypeVar("SettingT", bound=Hashable)


class Gallery(PaperGallery[ex.Scale]):
    """The figures of this paper at one scale, from runs kept in one directory of results.

    Args:
        results: where runs are kept, one directory per experiment.
        dataset: digits (default), or cifar-10 from local files.
        data: the directory of the local files.
        network: cnn-small (default on digits), the paper's (vgg-11), or another.
        workers: local processes.
        scale: another scale than the data set's own.
        progress: called after every run, with the outcome, how many are there and how many there are in all.
        full: longer runs of more seeds, with the paper's network on its data.
    """

    scale_of = staticmethod(ex.scale_of)

    def runs_of(self, problem: str, settings: Mapping[SettingT, Mapping[str, Any]]) -> dict[SettingT, list[Trace]]:
        """The runs of several settings: each says what its algorithm, data and participation have of their own, as in
        `experiments.training_sweep`. Figures share some, so there is one place for all."""
        name, tasks = f"fed-norm-sgda-{self.scale.dataset}-{self.scale.network}", []
        for setting, own in settings.items():
            rest = dict(own)
            algorithm = rest.pop("method", None) or ex.method(self.scale, problem, ex.NORMALIZED)
            tasks += ex.training_sweep(
                name, self.scale, problem, {str(setting): algorithm}, data=self.data, **rest
            ).tasks
        found = self.run(Sweep(name, tuple(tasks), name))
        return {setting: found[str(setting)] for setting in settings}

    @cached_property
    def robust_methods(self) -> list[comparison.Compared]:
        """Figure 3's runs."""
        return comparison.compare(self, ex.ROBUST)

    @cached_property
    def fair_methods(self) -> list[comparison.Compared]:
        """Figure 5's runs."""
        return comparison.compare(self, ex.FAIR)

    @cached_property
    def robust_participants(self) -> dict[float, dict[int, list[Trace]]]:
        """Figure 4's runs: alpha to P to runs."""
        alphas, sizes = (ex.ALPHA, 1.0), self.scale.participants
        found = self.runs_of(
            ex.ROBUST, {(alpha, P): {"alpha": alpha, "participants": P} for alpha in alphas for P in sizes}
        )
        return {alpha: {P: found[alpha, P] for P in sizes} for alpha in alphas}

    @cached_property
    def fair_participants(self) -> dict[int, list[Trace]]:
        """Figure 8's runs: P to runs."""
        return self.runs_of(ex.FAIR, {P: {"participants": P} for P in self.scale.participants})

    @cached_property
    def by_alpha(self) -> dict[float, list[Trace]]:
        """Figure 6's runs."""
        return self.runs_of(ex.ROBUST, {alpha: {"alpha": alpha} for alpha in self.scale.alphas})

    @cached_property
    def by_number(self) -> dict[str, dict[int, list[Trace]]]:
        """Figure 7's runs: how the work is counted to n to runs, everyone taking part."""
        epochs = ex.method(self.scale, ex.ROBUST, ex.NORMALIZED)
        steps = {name: value for name, value in epochs.items() if name != "local_epochs"}
        work = {EPOCHS: epochs, STEPS: {**steps, "local_steps": ex.EQUAL_WORK}}
        settings = {
            (kind, n): {"method": method, "clients": n, "record_every": 1}
            for kind, method in work.items()
            for n in self.scale.numbers
        }
        found = self.runs_of(ex.ROBUST, settings)
        return {kind: {n: found[kind, n] for n in self.scale.numbers} for kind in work}

    def accuracy(self, traces: Sequence[Trace], metric: str) -> np.ndarray:
        """The accuracy over the last rounds in per cent, (seeds,); a run that diverged counts as chance."""
        rounds, values = series(traces, metric)
        last = values[:, rounds > rounds[-1] - self.scale.last]
        chance = 0.1 if metric == ex.ACCURACY[ex.ROBUST] else 0.0
        return 100 * np.where(np.isfinite(last), last, chance).mean(axis=1)

    def rounds_to_target(self, traces: Sequence[Trace]) -> np.ndarray:
        """The first round at which test images as they are reach the target, (seeds,); infinite if never."""
        rounds, values = series(traces, "test_accuracy")
        reached = values >= self.scale.target
        return np.where(reached.any(axis=1), rounds[reached.argmax(axis=1)], np.inf)

    def figure_3(self) -> Picture:
        """Robust training by three methods."""
        return comparison.picture("Figure 3: robust training by three tuned methods", self.robust_methods)

    def figure_5(self) -> Picture:
        """Fair classification by three methods."""
        return comparison.picture("Figure 5: fair classification by three tuned methods", self.fair_methods)

    def figure_4(self) -> Picture:
        """Robust training with fewer participants."""
        groups = {
            f"$\\alpha = {alpha:g}$": self._curves(ex.ROBUST, {f"$P = {P}$": traces for P, traces in by_P.items()})
            for alpha, by_P in self.robust_participants.items()
        }
        title = "Figure 4: Fed-Norm-SGDA+ with P of n clients"
        return self._accuracies(title, ex.ROBUST, groups, self._own_note())

    def figure_6(self) -> Picture:
        """Robust training on data more or less alike."""
        curves = self._curves(ex.ROBUST, {f"$\\alpha = {a:g}$": traces for a, traces in self.by_alpha.items()})
        title = "Figure 6: Fed-Norm-SGDA+ by heterogeneity"
        return self._accuracies(title, ex.ROBUST, {"": curves}, self._own_note())

    def figure_8(self) -> Picture:
        """Fair classification with fewer participants."""
        curves = self._curves(ex.FAIR, {f"$P = {P}$": traces for P, traces in self.fair_participants.items()})
        title = "Figure 8: Fed-Norm-SGDA with P of n clients"
        return self._accuracies(title, ex.FAIR, {"": curves}, self._own_note())

    def figure_7(self) -> Picture:
        """Test accuracy for several numbers of clients, and the rounds that they take."""
        title, target, groups, needed = "Figure 7: Fed-Norm-SGDA+ and the number of clients", self.scale.target, {}, []
        for kind, by_n in self.by_number.items():
            curves = [seed_curve(f"$n = {n}$", *series(traces, "test_accuracy")) for n, traces in by_n.items()]
            level = np.full(len(curves[0].x), target)
            groups[kind] = [*curves, Curve(f"target {target:.0%}", curves[0].x, level)]
            reached = {n: self.rounds_to_target(traces) for n, traces in by_n.items()}
            words = "; ".join(f"n = {n}: {', '.join(f'{v:g}' for v in found)}" for n, found in reached.items())
            needed.append(f"{kind}: {words}")
        low, high = ex.EQUAL_WORK.values()
        return panels(
            groups,
            x_label="round $t$",
            y_labels=["test accuracy"] * 2,
            title=title,
            caption=f"{title}. Everyone takes part, alpha = {ex.ALPHA:g}, the same images dealt to n clients, whose "
            f"epochs are then shorter the more they are; on the right every client takes {low} to {high} local steps "
            f"whatever n. The paper's target is 70 %. First round at {target:.0%} on test images as they are, by seed. "
            f"{'. '.join(needed)}. {self.scale.words}. Mean and standard deviation over seeds.",
            alternative=f"Test accuracy against rounds for n = {', '.join(map(str, self.scale.numbers))}, two panels.",
            provenance=self._provenance(),
        )

    def _own_note(self) -> str:
        return f"n = {self.scale.clients}, tau_i ~ Unif[2, 5] epochs drawn in every round."

    def _curves(self, problem: str, runs: Traces) -> list[Curve]:
        return [seed_curve(label, *series(traces, ex.ACCURACY[problem])) for label, traces in runs.items()]

    def _accuracies(self, title: str, problem: str, groups: Mapping[str, Sequence[Curve]], note: str) -> Picture:
        labels = [curve.label for curve in next(iter(groups.values()))]
        return panels(
            groups,
            x_label="round $t$",
            y_labels=[AXIS[problem]] * len(groups),
            title=title,
            caption=f"{title}. {note} {MEASURED[problem]} {self.scale.words}. Mean and standard deviation over seeds.",
            alternative=f"{AXIS[problem].capitalize()} against rounds for {', '.join(labels).replace('$', '')}.",
            provenance=self._provenance(),
        )

    def _provenance(self) -> dict[str, Any]:
        return {"scale": self.scale.words, "steps": self.scale.steps}


FIGURES: Mapping[str, Callable[[Gallery], Picture]] = {
    "figure-1": lambda gallery: surrogate.figure_1(),
    "figure-3": Gallery.figure_3,
    "figure-4": Gallery.figure_4,
    "figure-5": Gallery.figure_5,
    "figure-6": Gallery.figure_6,
    "figure-7": Gallery.figure_7,
    "figure-8": Gallery.figure_8,
    "surrogate": lambda gallery: surrogate.surrogate(),
    "corollary-1.1": lambda gallery: surrogate.corollary_1_1(),
    "theorem-1": lambda gallery: theorems.theorem_1(),
    "theorem-4": lambda gallery: theorems.theorem_4(),
    "rounds": lambda gallery: theorems.headline(),
    "rate": lambda gallery: rates.exact_rate(),
    "ratio": lambda gallery: rates.exact_ratio(),
    "network": network,
    "network-rate": network_rates,
}


def draw(gallery: Gallery, name: str) -> Picture:
    """One figure of the paper by name."""
    return draw_by_name("fed-norm-sgda", FIGURES, gallery, name)
