"""The figures of the paper, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.compare_run import RunComparison, confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg, WaitMinibatch
from fedbounds.empirical.participation import Cyclic, Full, PeriodicGroups, Process, WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec, random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import movement_caption
from fedbounds.figures.charts.curves import panels, seed_curve
from fedbounds.figures.charts.overlay import overlays
from fedbounds.figures.charts.paper_gallery import SMOOTH, PaperGallery, convergence, series
from fedbounds.figures.charts.picture import COLORS, Curve, Picture, new_figure
from fedbounds.figures.charts.tightness import module_tightness
from fedbounds.figures.charts.tuning import Tuned, tune_by_runs, tuning_seeds
from fedbounds.figures.papers.arbitrary_participation import experiments as ex
from fedbounds.figures.papers.arbitrary_participation import rates, tightness
from fedbounds.figures.papers.arbitrary_participation.network import NETWORKS


class Gallery(PaperGallery[ex.Scale]):
    """The figures of this paper.

    Data sets: digits (default), glyphs; from local files fashion-mnist, cifar-10. Networks: mlp (default on glyphs and
    digits), cnn (the paper's, scaled to the image), cnn-cifar, linear.
    """

    scale_of = staticmethod(ex.scale_of)

    def traces(self, methods: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, list[Trace]]:
        """The runs of an image experiment; all figures share one directory."""
        return self.run(ex.image_sweep(self._name, self.scale, methods, data=self.data, **more))

    @property
    def _name(self) -> str:
        return f"arbitrary-participation-{self.scale.dataset}-{self.scale.network}"

    @cached_property
    def tunings(self) -> dict[str, Tuned]:
        """The tuning of each method's step size by training loss: the same grid, separate seeds."""
        return {name: self._tune(name) for name in self.scale.methods}

    def _tune(self, name: str) -> Tuned:
        others = tuning_seeds(self.scale.tuning_seeds)
        return tune_by_runs(
            self.run,
            lambda methods: ex.image_sweep(self._name, self.scale.shorter, methods, data=self.data, seeds=others),
            lambda setting: ex.method(self.scale, name, setting["gamma"]),
            {"gamma": self.scale.step_grid},
            self.scale.shorter.last,
        )

    @cached_property
    def shorter(self) -> Gallery:
        """The same with the rounds of the runs that choose step sizes."""
        return self.at(self.scale.shorter, self.data)

    @property
    def steps(self) -> Mapping[str, float]:
        """The step size of each method, tuned here or before."""
        return self.scale.steps or {name: found.winner["gamma"] for name, found in self.tunings.items()}

    def four_methods(self) -> dict[str, list[Trace]]:
        """Figure 1's runs."""
        return self.traces(ex.four_methods(self.scale, self.steps))

    def interval_runs(self) -> dict[str, list[Trace]]:
        """Figure 2's runs."""
        size = self.steps[ex.AMPLIFIED]
        return self.traces({f"P = {P}": ex.generalized_fedavg(size, 10.0, P) for P in ex.intervals(self.scale)})

    def always_available_runs(self) -> dict[str, list[Trace]]:
        """Figure D.1's runs: plain FedAvg at the initial step size, all clients available."""
        always = {"clients": self.scale.clients, "participants": self.scale.participants}
        method = {"plain": ex.step("fedavg", self.scale.initial_step)}
        kinds = {"independent": "without-replacement", "regularized": "permutation"}
        return {
            label: self.traces(method, participation={"kind": kind, **always})["plain"] for label, kind in kinds.items()
        }

    def step_size_runs(self) -> dict[str, list[Trace]]:
        """Figure D.2's runs: the grid of step sizes without and with amplification."""
        methods = {
            f"eta = {eta}, gamma = {size:g}": ex.method(self.scale, name, size)
            for eta, name in ((1, ex.PLAIN), (10, ex.AMPLIFIED))
            for size in self.scale.step_grid
        }
        return self.traces(methods)

    def multiplier_runs(self) -> dict[str, list[Trace]]:
        """Figure D.3's runs."""
        size, P = self.steps[ex.AMPLIFIED], self.scale.interval
        etas = (2.0, 5.0, 10.0, 15.0, 20.0)
        return self.traces({f"eta = {eta:g}": ex.generalized_fedavg(size, eta, P) for eta in etas})

    def convergence(
        self, title: str, runs: Mapping[str, list[Trace]], note: str, against: str | None = None
    ) -> Picture:
        """Convergence after the common initial phase, with the tuning of the step sizes."""
        start = self.scale.initial_rounds + self.scale.rounds // 10
        picture = convergence(title, runs, self.scale.words, note + self._movement(runs), start, against)
        tuning = {"step sizes tuned before": dict(self.scale.steps)} if self.scale.steps else {
            name: found.to_dict() for name, found in self.tunings.items()
        }  # fmt: skip
        return replace(picture, provenance={**picture.provenance, "tuning": tuning})

    def _movement(self, runs: Mapping[str, list[Trace]]) -> str:
        return movement_caption(runs, self.scale.last, ("train_loss", "test_accuracy"))

    def describe_tuning(self, *names: str) -> str:
        """The step sizes of some methods and their tuning, for captions."""
        steps = {name: f"gamma {size:g}" for name, size in self.steps.items()}
        if not self.scale.steps:
            steps = {name: found.words for name, found in self.tunings.items()}
        found = "; ".join(f"{name} {steps[name]}" for name in names or self.scale.methods)
        rounds = ex.DIGITS.tuning_rounds if self.scale.steps else self.scale.tuning_rounds
        scale = f"at this scale with {rounds} rounds" if rounds else "at this scale"
        return f"{found}: the best of one grid by training loss, {scale}, on {self.scale.tuning_seeds} other seeds."

    def figure_1(self) -> Picture:
        """The four methods under periodic availability."""
        note = f"Amplification eta = 10. Local step sizes after the initial phase: {self.describe_tuning()}"
        title = f"Figure 1: {len(self.scale.methods)} methods, periodic availability"
        return self.convergence(title, self.four_methods(), note, ex.AMPLIFIED)

    def figure_2(self) -> Picture:
        """The amplification interval."""
        note = (
            f"eta = 10; every P has the step size for P = {self.scale.interval}: {self.describe_tuning(ex.AMPLIFIED)}"
        )
        return self.convergence("Figure 2: the amplification interval P", self.interval_runs(), note)

    def figure_d_1(self) -> Picture:
        """Independent and regularized participation, all clients available."""
        note = f"Plain FedAvg, gamma = {self.scale.initial_step:g} from the first round on."
        runs = self.always_available_runs()
        title = "Figure D.1: independent and regularized participation"
        return convergence(title, runs, self.scale.words_if_always_available, note + self._movement(runs))

    def figure_d_2(self) -> Picture:
        """The step size with and without amplification."""
        runs = {k: v for k, v in self.step_size_runs().items() if all(set(t.statuses) == {"done"} for t in v)}
        lost = len(self.step_size_runs()) - len(runs)
        start = self.scale.initial_rounds + self.scale.rounds // 10
        groups = {
            f"{panel}, eta = {eta}": [
                seed_curve(label.partition(", ")[2], *series(some, metric), SMOOTH).since(start)
                for label, some in runs.items()
                if label.startswith(f"eta = {eta},")
            ]
            for panel, metric in (("Training loss", "train_loss"), ("Test accuracy", "test_accuracy"))
            for eta in (1, 10)
        }
        title = "Figure D.2: the local step size without and with amplification"
        return panels(
            groups,
            x_label="round $t$",
            y_labels=["$f(x_t)$"] * 2 + ["share of test images"] * 2,
            title=title,
            caption=f"{title}. P = {self.scale.interval}; {lost} settings that diverged in a seed are left out. "
            f"{self.scale.words}. No step size is tuned. Moving average over 3 % of the points; mean and "
            f"standard deviation over seeds.{self._movement(runs)}",
            alternative=f"Four panels, training loss and test accuracy for eta = 1 and 10, for {', '.join(runs)}.",
            provenance={"scale": self.scale.words, "runs": {k: v[0].spec for k, v in runs.items()}},
            y_scales=["log", "log", "linear", "linear"],
        )

    def figure_d_3(self) -> Picture:
        """The amplification factor."""
        note = f"Step size: {self.describe_tuning(ex.AMPLIFIED)}"
        return self.convergence("Figure D.3: the amplification factor", self.multiplier_runs(), note)

    def tuning(self) -> Picture:
        """The score of every step size."""
        curves = [
            Curve(name, *np.array(sorted((s["gamma"], v) for s, v in found.tried if np.isfinite(v))).T)
            for name, found in self.tunings.items()
        ]
        title = "How the step sizes were found"
        return panels(
            {"": curves},
            x_label=r"local step size $\gamma$",
            y_labels=["training loss at the end"],
            title=title,
            caption=f"{title}: {self.describe_tuning()} A winner at the edge widens the grid; what diverged is "
            f"not drawn. {self.scale.words}.",
            alternative=f"Training loss against the local step size for {', '.join(self.scale.methods)}.",
            provenance={name: found.to_dict() for name, found in self.tunings.items()},
            x_scale="log",
        )

    def figure_b_1(self) -> Picture:
        """Toy trajectories without amplification, larger and larger local steps."""
        runs = {f"gamma = {g:g}": ex.step("fedavg", g) | {"local_steps": 1} for g in (0.05, 0.1, 0.25, 0.5)}
        return self._toy("figure-b.1", "Figure B.1: larger local steps", runs)

    def figure_b_2(self) -> Picture:
        """Toy trajectories with small local steps and more and more amplification."""
        runs = {f"eta = {e:g}": ex.generalized_fedavg(0.05, e, 3) | {"local_steps": 1} for e in (1.0, 2.0, 5.0, 10.0)}
        return self._toy("figure-b.2", "Figure B.2: gamma = 0.05, more amplification", runs)

    def toy_runs(self, name: str, runs: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Trace]]:
        """The toy example's runs."""
        return self.run(ex.toy_sweep(name, runs), workers=1)

    def _toy(self, name: str, title: str, runs: Mapping[str, Mapping[str, Any]]) -> Picture:
        return trajectories(title, {k: v[0].arrays["model"][0] for k, v in self.toy_runs(name, runs).items()})


CENTERS = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, np.sqrt(3.0)]])
OPTIMUM = CENTERS.mean(axis=0)


def trajectories(title: str, paths: Mapping[str, np.ndarray]) -> Picture:
    """The models of the toy example in the plane, one panel per setting; paths have shape (rounds + 1, 2)."""
    with new_figure(2.5 * len(paths), 3.6, title, layout="compressed") as figure:
        axes = figure.subplots(1, len(paths), sharex=True, sharey=True, squeeze=False)[0]
        for panel, (label, path) in zip(axes, paths.items(), strict=True):
            panel.plot(*CENTERS.T, linestyle="", marker="^", color="#777777", label="clients' minima")
            panel.plot(*OPTIMUM, linestyle="", marker="*", markersize=11, color=COLORS[1], label="$x^*$")
            panel.plot(*path.T, marker="o", markersize=3, linewidth=1, color=COLORS[0], label="models $x_t$")
            distance = float(np.linalg.norm(path[-1] - OPTIMUM))
            panel.set_title(f"{label}\nends {distance:.3f} from $x^*$", fontsize=9)
            panel.set_aspect("equal")
            panel.set_xlabel("first coordinate")
        axes[0].set_ylabel("second coordinate")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return Picture(
        figure,
        f"{title}. F_n = |x - z_n|^2/2 for three clients, one per round, cyclically, T = 15, P = 3, I = 1, x_0 = "
        "(1, 2), no noise. The amplified iteration converges to a fixed point of the cycle near x*, not to x* itself. "
        "Every panel breaks the cap gamma <= 1/36 of Theorem 3.1.",
        f"Trajectories in the plane for {', '.join(paths)}.",
        [Curve(label, path[:, 0], path[:, 1]) for label, path in paths.items()],
        {"centers": CENTERS, "rounds": 15},
    )


CLIENTS, PARTICIPANTS, SLOT, LOCAL_STEPS = 50, 5, 2, 5
INTERVAL = 5 * SLOT
HETEROGENEITY = (0.1, 1.0)
STEPS = tuple(float(f"{10**k:.3g}") for k in np.arange(-4, 0.3, 0.25))


def method(name: str, step: float) -> Algorithm:
    """One of the methods of Figure 1."""
    if name == ex.AMPLIFIED:
        return GeneralizedFedAvg(step, LOCAL_STEPS, 10.0, INTERVAL)
    return FedAvg(step, LOCAL_STEPS) if name == ex.PLAIN else WaitMinibatch(step, LOCAL_STEPS, INTERVAL)


def best(name: str, heterogeneity: float, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of cycles, the least squared gradient norm (mean over a cycle) of all step sizes, and that step size."""
    problem = random_quadratic(CLIENTS, 20, heterogeneity=heterogeneity, condition=100.0, noise=0.1,
                               initial_gap=5.0, seed=0)  # fmt: skip
    process = PeriodicGroups(CLIENTS, PARTICIPANTS, slot=SLOT, groups=5)
    weights = process.matrix(rounds, np.random.default_rng(0))
    runs = []
    for step in STEPS:
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.asarray(moments(method(name, step), problem, weights).gradient_norm_squared)[1 : rounds + 1]
            runs.append(norms.reshape(-1, INTERVAL).mean(axis=1))
    every = np.array(runs)
    every = np.where(np.isfinite(every), every, np.inf)
    return INTERVAL * np.arange(1, every.shape[1] + 1), every.min(axis=0), np.array(STEPS)[every.argmin(axis=0)]


def horizon(rounds: int = 4000) -> Picture:
    """The least expected gradient norm of every method over that of plain FedAvg, for two heterogeneities."""
    names = (ex.AMPLIFIED, ex.WAIT_MINIBATCH, ex.PLAIN)
    found = {h: {name: best(name, h, rounds) for name in names} for h in HETEROGENEITY}
    title = "The best that each method can do in T rounds, exactly"
    ends = "; ".join(
        f"heterogeneity {h:g}, T = {rounds}: "
        + ", ".join(f"{name} {values[-1]:.3g} (gamma {steps[-1]:.2g})" for name, (_, values, steps) in of.items())
        for h, of in found.items()
    )
    curves = {
        f"heterogeneity {h:g}": [
            Curve(name, cycles.astype(float), values / of[ex.PLAIN][1]) for name, (cycles, values, _) in of.items()
        ]
        for h, of in found.items()
    }
    return panels(
        curves,
        x_label="number of rounds $T$",
        y_labels=[r"$\mathbf{E}\|\nabla f\|^2$ over that of plain FedAvg", ""],
        title=title,
        caption=f"{title}, over what FedAvg without amplification can do. Random quadratics of 50 clients in 20 "
        f"dimensions, condition number 100, five groups available for {SLOT} rounds cyclically, S = {PARTICIPANTS}, "
        f"I = {LOCAL_STEPS}, P = {INTERVAL}, eta = 10; for every T and every method the best of {len(STEPS)} step "
        "sizes, averaged over the last cycle, by exact moments given one record of participation: nothing is run. "
        f"wait-full has no noise here and is left out. At the end: {ends}.",
        alternative="Two panels: the least expected squared gradient norm of three methods over that of plain FedAvg.",
        provenance={"step sizes": STEPS, "seeds": {"problem": 0, "participation": 0}},
        x_scale="log",
        y_scales=["log", "log"],
    )


IMAGE_CLIENTS, SEEDS = 10, 3
# the process, the interval of amplification that the theorem needs, and the two step sizes
PROCESSES: dict[str, tuple[Process, int, float, float]] = {
    "full participation": (Full(IMAGE_CLIENTS), 1, 2e-4, 20.0),
    "cyclic halves": (Cyclic(IMAGE_CLIENTS, 2), 2, 1e-4, 20.0),
    "2 of 10 sampled": (WithoutReplacement(IMAGE_CLIENTS, 2), 1, 2e-4, 20.0),
}


def compare_all(rounds: int = 600) -> dict[str, RunComparison]:
    """The comparison with the theorem for every participation process."""
    return {name: compare_process(*numbers, rounds) for name, numbers in PROCESSES.items()}


def guarantee_picture(runs: Mapping[str, RunComparison]) -> Picture:
    """The squared gradient norm of logistic regression on digits under the sharp form of Theorem 3.1."""
    return overlays(
        {"": {name: [run] for name, run in runs.items()}},
        title="A guarantee on real images: logistic regression on digits under Theorem 3.1",
        caption=f"{IMAGE_CLIENTS} clients, each with a majority of one digit, {LOCAL_STEPS} local steps on batches "
        f"of 16, {SEEDS} seeds. "
        "Smoothness, noise and divergence are computed from the images or bounded by a proof, and the gap at the "
        "start is at most f(x_0), as the loss is not negative: the bound on the mean is a guarantee. Where clients "
        "are drawn, all that is proved of their divergence is a bound on their gradients, and it says little.",
    )


def compare_process(
    process: Process, interval: int, local_step_size: float, multiplier: float, rounds: int
) -> RunComparison:
    """Runs of one process compared with the theorem."""
    problem = problem_from_spec(
        {"kind": "images", "clients": IMAGE_CLIENTS, "network": "linear", "gradient_norm": True}
    )
    algorithm = GeneralizedFedAvg(local_step_size, LOCAL_STEPS, multiplier, interval)
    run = simulate(algorithm, problem, process, rounds, seeds=range(SEEDS), record_every=interval)
    return confront(run, "arbitrary-participation/theorem-3.1", "sharp", problem=problem, participation=process)


FIGURES: Mapping[str, Callable[[Gallery], Picture]] = {
    "figure-1": Gallery.figure_1,
    "figure-2": Gallery.figure_2,
    "figure-b.1": Gallery.figure_b_1,
    "figure-b.2": Gallery.figure_b_2,
    "figure-d.1": Gallery.figure_d_1,
    "figure-d.2": lambda gallery: gallery.shorter.figure_d_2(),
    "figure-d.3": Gallery.figure_d_3,
    "tuning": Gallery.tuning,
    "horizon": lambda gallery: horizon(),
    "guarantee": lambda gallery: guarantee_picture(compare_all()),
    "rate": lambda gallery: rates.exact_rate(),
    "ratio": lambda gallery: rates.exact_ratio(),
    "tightness": lambda gallery: module_tightness(tightness, gallery.progress),
    "network": NETWORKS.picture,
    "network-rate": NETWORKS.rates,
}
