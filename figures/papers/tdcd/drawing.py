"""The figures of the paper, by name; for Figures 3 to 9 every number of local steps has its own learning rate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np

from fedbounds.empirical.papers.tdcd.traffic import round_time
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import Limits, limits_of
from fedbounds.figures.charts.curves import Scale, panels, seed_curve
from fedbounds.figures.charts.paper_gallery import PaperGallery, series
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.charts.tightness import module_tightness
from fedbounds.figures.charts.tuning import Tuned, TunedSetting, level_with_drift, tune
from fedbounds.figures.papers.tdcd import experiments as ex
from fedbounds.figures.papers.tdcd import runs, tightness
from fedbounds.figures.papers.tdcd.bounds import LATENCIES, family, wall_clock

Cell = tuple[str, int, int, int]  # task, clients per silo, silos, local steps
Runs = Mapping[int, Sequence[Trace]]  # by Q, K or N
REACHED = 0.8  # of the way from the untrained models' metric to the best final one


class Gallery(PaperGallery[ex.Scale]):
    """The figures of this paper. Data: made (default), or original, from local files."""

    scale_of = staticmethod(ex.scale_of)
    usual = "made"

    @cached_property
    def _tuned(self) -> dict[Cell, Tuned]:
        return {}

    def tune(self, name: str, clients: int, silos: int, local_steps: int) -> Tuned:
        """The tuning of a learning rate by the training loss over the last tenth of the runs."""
        cell = (name, clients, silos, local_steps)
        if cell not in self._tuned:
            task = self.scale.task(name)
            rounds = task.iterations // local_steps
            last = max(1, rounds // 10, rounds // self.scale.records)

            def scores(settings: Sequence[TunedSetting]) -> list[float]:
                steps = [one["step size"] for one in settings]
                runs = self.run(ex.sweep(self.scale, name, clients, local_steps, steps, silos, True, self.data))
                return [score(runs[f"{eta:g}"], last) for eta in steps]

            self._tuned[cell] = tune({"step size": task.grid(local_steps)}, scores, self.scale.extensions)
        return self._tuned[cell]

    def runs_of(
        self, name: str, clients: int, silos: int, local_steps: int, tuning: bool = False, early: bool = False
    ) -> list[Trace]:
        """The runs with the tuned learning rate, with `tuning` those that chose it.

        With `early` the metric has a record of every round before the first one, of short runs of the same seeds.
        """
        eta = self.tune(name, clients, silos, local_steps).winner["step size"]

        def run(first: int | None = None) -> list[Trace]:
            found = self.run(ex.sweep(self.scale, name, clients, local_steps, [eta], silos, tuning, self.data, first))
            return found[f"{eta:g}"]

        whole = run()
        if not early:
            return whole
        short, metric = run(int(whole[0].arrays["round"][1])), self.scale.task(name).metric
        return [_joined(*pair, metric) for pair in zip(short, whole, strict=True)]

    def over_steps(self, name: str, clients: int, tuning: bool = False, early: bool = False) -> dict[int, list[Trace]]:
        """The runs of a task by Q."""
        silos = self.scale.task(name).silos
        return {Q: self.runs_of(name, clients, silos, Q, tuning, early) for Q in self.scale.local_steps}

    def over_silos(self, tuning: bool = False, early: bool = False) -> dict[int, list[Trace]]:
        """The runs of Figure 9 by N, with the larger K and the scale's `shown_steps`."""
        clients, Q = self.scale.task(ex.SEQUENCES).clients[1], self.scale.shown_steps
        return {N: self.runs_of(ex.SEQUENCES, clients, N, Q, tuning, early) for N in self.scale.numbers_of_silos}

    def by_time(self, figure: int, name: str) -> Picture:
        """The test metric against simulated time, for two K and two latencies."""
        task, groups = self.scale.task(name), {}
        for clients in task.clients:
            level = common_level(self.over_steps(name, clients, tuning=True), task.metric)
            by_steps = self.over_steps(name, clients, early=True)
            for latency in LATENCIES:
                curves = [
                    curve_over_time(f"Q = {Q}", runs, task.metric, round_time(Q, latency, 1))
                    for Q, runs in by_steps.items()
                ]
                ends = np.array([min(c.x[0] for c in curves), max(c.x[-1] for c in curves)])
                drawn = Curve(f"{REACHED:.0%} of the best gain", ends, np.full(2, level))
                groups[f"K = {clients}, link latency {latency:g}"] = [*curves, drawn]
        title = f"Figure {figure}: {task.metric_name} against time on {name}"
        note = (
            "Time is counted in local steps: a round takes 3 link latencies and Q of them. Claims on times are about "
            f"the level at {REACHED:.0%} of the best gain in the runs that chose the learning rates; if every seed "
            "reaches it, they need no plateau."
        )
        moving = self._movement(name, {task.metric: task.metric_name})
        return self._panels(groups, "simulated time", [task.metric_name] * 4, title, note, name, "log", moving)

    def _movement(self, name: str, metrics: Mapping[str, str]) -> str:
        """Sentences on the runs of a task that have not reached their plateau in some of the metrics, or nothing."""
        runs = {
            f"Q = {Q} (K = {clients})": (one, Q)
            for clients in self.scale.task(name).clients for Q, one in self.over_steps(name, clients).items()
        }  # fmt: skip
        return describe_movement(runs, metrics)

    def by_iterations(self, figure: int, name: str) -> Picture:
        """Training loss and test metric against iterations, for two K."""
        task, groups, labels = self.scale.task(name), {}, []
        for clients in task.clients:
            runs = self.over_steps(name, clients)
            for metric, words in (("train_loss", "training loss"), (task.metric, task.metric_name)):
                groups[f"K = {clients}: {words}"] = [
                    curve_over_time(f"Q = {Q}", one, metric, Q) for Q, one in runs.items()
                ]
                labels.append(words)
        title = f"Figure {figure}: training loss and {task.metric_name} against iterations on {name}"
        moving = self._movement(name, {"train_loss": "training loss", task.metric: task.metric_name})
        return self._panels(groups, "iteration $t$", labels, title, "", name, "linear", moving)

    def figure_9(self) -> Picture:
        """Training loss and F1 against iterations, for several N."""
        task, runs, Q = self.scale.task(ex.SEQUENCES), self.over_silos(), self.scale.shown_steps
        groups = {
            words: [curve_over_time(f"N = {N}", one, metric, Q) for N, one in runs.items()]
            for metric, words in (("train_loss", "training loss"), (task.metric, task.metric_name))
        }
        title = f"Figure 9: numbers of silos on {ex.SEQUENCES}, K = {task.clients[1]}, Q = {Q}"
        note = "A silo's network has the features of the silo as its inputs, so that all of them together grow with N."
        *fewer, most = map(str, runs)
        silos = f"{', '.join(fewer)} or {most} silos" if fewer else f"{most} silos"
        steps = {f"N = {N}": (one, Q) for N, one in runs.items()}
        moving = describe_movement(steps, {"train_loss": "training loss", task.metric: task.metric_name})
        return self._panels(groups, "iteration $t$", [*groups], title, note, ex.SEQUENCES, "linear", moving, silos)

    def _panels(
        self,
        groups: Mapping[str, Sequence[Curve]],
        x: str,
        y: Sequence[str],
        title: str,
        note: str,
        name: str,
        scale: Scale,
        moving: str,
        silos: str = "",
    ) -> Picture:
        chosen = {
            f"N = {N}, K = {K}, Q = {Q}": found.summary() for (of, K, N, Q), found in self._tuned.items() if of == name
        }
        task = self.scale.task(name)
        words = task.caption_with(silos) if silos else task.words
        return panels(
            groups,
            x_label=x,
            y_labels=y,
            title=title,
            caption=f"{title}. {note} {words} {self.scale.words}. Means with bands of a standard deviation.{moving}",
            alternative=describe_panels(groups, x.replace("$", ""), list(dict.fromkeys(y))),
            provenance={"scale": self.scale.words, "task": words, "learning rates": chosen},
            x_scale=scale,
            y_scales=["log" if label == "training loss" else "linear" for label in y],
        )


def score(runs: Sequence[Trace], last: int) -> float:
    """The training loss over the last rounds with its drift, plus that of the untrained model if it still moves.

    Any loss that has reached its plateau is thus better than one that has not. At least `FITTED` of the untrained
    model's, as on data that all rates fit the larger ones are no better; infinite if a seed rises to `DIVERGED` times
    its start.
    """
    losses = series(runs, "train_loss")[1]
    if (losses >= ex.DIVERGED * losses[:, :1]).any():
        return inf
    untrained = float(losses[:, 0].mean())
    least = max(level_with_drift(runs, last, "train_loss"), ex.FITTED * untrained)
    return least + untrained if movement({"": (runs, 1)}, "train_loss").moving else least


def describe_panels(groups: Mapping[str, Sequence[Curve]], x: str, y: Sequence[str]) -> str:
    """The panels and the ends of their curves, as alternative text.

    Example:
        >>> import numpy as np
        >>> ends = {"Q = 1": (0.25, 300.0), "Q = 5": (0.5, 70.0)}
        >>> curves = [Curve(label, np.array([10.0, x]), np.array([2.0, y])) for label, (y, x) in ends.items()]
        >>> describe_panels({"K = 10": curves}, "simulated time", ["training loss"])
        'Training loss against simulated time. Curves Q = 1, Q = 5 end, in this order, K = 10: at 0.25, 0.5 after ...'
    """
    labels = dict.fromkeys(curve.label for some in groups.values() for curve in some)
    drawn = f"{' and '.join(y)} against {x}"
    seen = []
    for panel, curves in groups.items():
        ends = dict.fromkeys(f"{round(float(c.x[-1]))}" for c in curves)
        seen.append(f"{panel}: at {', '.join(f'{c.y[-1]:.3g}' for c in curves)} after {', '.join(ends)}")
    return f"{drawn[0].upper()}{drawn[1:]}. Curves {', '.join(labels)} end, in this order, {'; '.join(seen)}."


def movement(runs: Mapping[str, tuple[Sequence[Trace], int]], metric: str) -> Limits:
    """The plateaus of runs with their numbers of local steps, in iterations, for means over the last tenth."""
    found = Limits(unit="iterations")
    for name, (one, steps) in runs.items():
        rounds = one[0].arrays["round"]
        window = float(rounds[-1] - rounds[-1 - max(1, len(rounds) // 10)])
        found |= limits_of("", (), {name: one}, window * steps, metric, steps)
    return found


def describe_movement(runs: Mapping[str, tuple[Sequence[Trace], int]], metrics: Mapping[str, str]) -> str:
    """A sentence for each metric, with its words, in which some of the runs still move; with a space before it."""
    return "".join(movement(runs, metric).caption(words) for metric, words in metrics.items())


def _joined(short: Trace, whole: Trace, metric: str) -> Trace:
    """A run's rounds and metric, with the records of a shorter run of the same seeds before its own."""
    after = whole.arrays["round"] > short.arrays["round"][-1]
    values = np.concatenate([short.arrays[metric], whole.arrays[metric][:, after]], axis=1)
    rounds = np.concatenate([short.arrays["round"], whole.arrays["round"][after]])
    return replace(whole, arrays={**whole.arrays, "round": rounds, metric: values})


def final_metric(runs: Sequence[Trace], metric: str) -> np.ndarray:
    """The mean over the last tenth of the records, (seeds,)."""
    values = series(runs, metric)[1]
    return values[:, -max(1, values.shape[1] // 10) :].mean(axis=1)


def common_level(runs: Runs, metric: str) -> float:
    """The level at `REACHED` of the way from the untrained models' mean metric to the best final one of some runs.

    Of the runs for tuning it is fixed before any compared run, wherever those end.
    """
    start = float(np.concatenate([series(one, metric)[1][:, 0] for one in runs.values()]).mean())
    return start + REACHED * (max(float(final_metric(one, metric).mean()) for one in runs.values()) - start)


def curve_over_time(label: str, runs: Sequence[Trace], metric: str, each: float) -> Curve:
    """A metric against the time of rounds."""
    rounds, values = series(runs, metric)
    return seed_curve(label, rounds[1:] * each, values[:, 1:])


TRAINED: Mapping[str, Callable[[Gallery], Picture]] = {
    "figure-3": lambda gallery: gallery.by_time(3, ex.IMAGES),
    "figure-4": lambda gallery: gallery.by_time(4, ex.SEQUENCES),
    "figure-5": lambda gallery: gallery.by_time(5, ex.VIEWS),
    "figure-6": lambda gallery: gallery.by_iterations(6, ex.IMAGES),
    "figure-7": lambda gallery: gallery.by_iterations(7, ex.SEQUENCES),
    "figure-8": lambda gallery: gallery.by_iterations(8, ex.VIEWS),
    "figure-9": lambda gallery: gallery.figure_9(),
}
FIGURES: Mapping[str, Callable[[Gallery], Picture]] = {
    "wall-clock": lambda gallery: wall_clock(gallery.scale.points),
    "family": lambda gallery: family(),
    "theorem-1": lambda gallery: runs.theorem_1(),
    "misread": lambda gallery: runs.misread(),
    "rate": lambda gallery: runs.exact_rate(),
    "ratio": lambda gallery: runs.exact_ratio(),
    "network": runs.NETWORKS.picture,
    "tightness": lambda gallery: module_tightness(tightness, gallery.progress),
    **TRAINED,
}
