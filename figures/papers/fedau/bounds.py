r"""FedAU measured: under Theorem 2, where no theorem applies, and the objectives that constant weights minimize.

Constants are exact: $F_n=\phi+b_n^\top x$ with a bounded gradient for Theorem 2, quadratics with one Hessian for the
biased objectives.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.symbols import GRADIENT, PARAMETER
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.compare_run import RunComparison, confront
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    Aggregation,
    AverageAll,
    AverageParticipating,
    FedAU,
    FedVarp,
    KnownParticipation,
)
from fedbounds.empirical.papers.fedau.objectives import objective_weights, predicted_bias, weighted_objective
from fedbounds.empirical.papers.fedau.run import why_no_bound
from fedbounds.empirical.participation import Bernoulli, CyclicClients, Markovian, Process
from fedbounds.empirical.problems import BoundedGradient, Problem, Quadratic, random_bounded_gradient
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.overlay import overlays
from fedbounds.figures.charts.picture import COLORS, DASHES, MARKERS, Curve, Picture, new_figure

SHAPES = {"log-cosh": "convex", "cosine": "non-convex"}
FORMS = ("explicit", "sharp")
CUT_OFF = 4
ESTIMATED = f"FedAU, K = {CUT_OFF}"
ALMOST = 1 - 1e-9  # of the largest step, so that rounding breaks no condition


@dataclass(frozen=True)
class ExperimentSize:
    """The size of an experiment."""

    clients: int = 12  # clients, dimension: N and d
    dimension: int = 5
    lowest: float = 0.3  # lowest, highest: of the participation rates, which are evenly spaced
    highest: float = 1.0
    local_steps: int = 5  # local_steps, rounds, seeds: I, T, and the number of seeds
    rounds: int = 600
    seeds: int = 16
    noise: float = 0.3  # noise, heterogeneity: per coordinate, and the divergence
    heterogeneity: float = 1.0

    @property
    def rates(self) -> np.ndarray:
        """$p_n$, (clients,)."""
        return np.linspace(self.lowest, self.highest, self.clients)

    @property
    def process(self) -> Bernoulli:
        """Independent participation (Assumption 4)."""
        return Bernoulli(self.clients, self.rates, normalize=False)

    def problem(self, shape: str) -> BoundedGradient:
        """A problem with L = 1 whose slopes are sorted like the rates."""
        drawn = random_bounded_gradient(
            self.clients, self.dimension, shape, self.heterogeneity, noise=self.noise, spread=1.5, seed=1
        )
        slopes = drawn.slopes[drawn.slopes[:, 0].argsort()]
        return BoundedGradient(slopes, drawn.scales, shape, self.noise, drawn.x0)

    def steps(self, second_moment: float, smoothness: float = 1.0) -> tuple[float, float]:
        r"""$\gamma$, a quarter of the largest local step, and $\eta$, the largest global step at this Q."""
        gamma = 1 / (16 * 15**0.5 * smoothness * self.local_steps)
        both = min(0.5, self.clients / (27 * second_moment)) / (smoothness * self.local_steps)
        return gamma, ALMOST * both / gamma

    def simulate(self, algorithm: Algorithm, shape: str, process: Process | None = None) -> Trace:
        """All seeds of one algorithm."""
        return simulate(algorithm, self.problem(shape), process or self.process, self.rounds, seeds=range(self.seeds))


def covered_algorithms(
    setting: ExperimentSize, cutoffs: Iterable[float] = (1, CUT_OFF, math.inf)
) -> dict[str, Aggregation]:
    """Known weights and FedAU with several cut-offs, at the largest global step that Theorem 2 allows."""
    p, T = setting.rates, setting.rounds
    algorithms: dict[str, Aggregation] = {
        "known rates": KnownParticipation(*_numbers(setting, float(np.mean(1 / p))), probability=p)
    }
    for K in cutoffs:
        weight = np.where(p < 1, min(K, max(T - 1, 1)), 1.0)
        name = f"FedAU, K = {K:g}"
        algorithms[name] = FedAU(*_numbers(setting, float(np.mean(p * weight**2))), cutoff=K)
    return algorithms


def _numbers(setting: ExperimentSize, second_moment: float) -> tuple[float, int, float]:
    gamma, eta = setting.steps(second_moment)
    return gamma, setting.local_steps, eta


def runs_of_theorem_2(setting: ExperimentSize | None = None) -> dict[str, dict[str, list[RunComparison]]]:
    """Shape to algorithm to its run under two forms of Theorem 2, Option 2."""
    own, theorem = setting or ExperimentSize(), load("fedau/theorem-2")
    return {
        shape: {
            name: _compare(own.simulate(algorithm, shape), own.problem(shape), own.process, theorem)
            for name, algorithm in covered_algorithms(own).items()
        }
        for shape in SHAPES
    }


def _compare(run: Trace, problem: Problem, process: Process, theorem: Any) -> list[RunComparison]:
    return [confront(run, theorem, form, problem=problem, participation=process) for form in FORMS]


def theorem_2(setting: ExperimentSize | None = None) -> Picture:
    """FedAU and known weights under Theorem 2, Option 2, on clients with bounded gradients."""
    own = setting or ExperimentSize()
    return overlays(
        runs_of_theorem_2(own),
        title="Theorem 2 with a bounded gradient: measured under the bound",
        caption=f"N = {own.clients} clients with rates from {own.lowest:g} to {own.highest:g}, independent in every "
        f"round; d = {own.dimension}, I = {own.local_steps}; phi is a sum of log cosh (convex) or of 1 - cos "
        "(non-convex). The global step is the largest that the theorem allows at T = "
        f"{own.rounds}: with K = inf, Q = (T-1)^2 times the mean rate leaves next to none. Bands: two standard errors.",
    )


def baselines(setting: ExperimentSize, step: tuple[float, float]) -> dict[str, Algorithm]:
    """FedAU and its baselines at the same step sizes."""
    numbers: Any = (step[0], setting.local_steps, step[1])
    return {
        ESTIMATED: FedAU(*numbers, cutoff=CUT_OFF),
        "known rates": KnownParticipation(*numbers),
        "average all": AverageAll(*numbers),
        "average participating": AverageParticipating(*numbers),
        "FedVarp": FedVarp(*numbers),
        "MIFA": MIFA(*numbers),
    }


def without_bound(setting: ExperimentSize | None = None, shape: str = "cosine") -> Picture:
    """The algorithms under three kinds of participation, with the reasons why no theorem applies."""
    own = setting or ExperimentSize(rounds=400, lowest=0.1, highest=0.9)
    N, p = own.clients, own.rates
    processes: dict[str, Process] = {
        "Bernoulli": own.process, "Markovian": Markovian(N, p), "cyclic": CyclicClients(N, p)
    }  # fmt: skip
    algorithms = baselines(own, own.steps(max(float(np.mean(1 / p)), float(np.mean(p * CUT_OFF**2)))))
    groups: dict[str, list[Curve]] = {}
    reasons: dict[str, None] = {}
    for kind, process in processes.items():
        why = {name: why_no_bound(algorithm, process) for name, algorithm in algorithms.items()}
        reasons |= {reason: None for reason in why.values() if reason is not None}
        title = f"{kind}: no bound,\nrounds are dependent" if all(why.values()) else kind
        runs = {name: own.simulate(algorithm, shape, process) for name, algorithm in algorithms.items()}
        groups[title] = [
            _running_average(name if groups or why[name] is None else f"{name} (no bound)", run)
            for name, run in runs.items()
        ]
        if why[ESTIMATED] is None:
            problem, theorem = own.problem(shape), load("fedau/theorem-2")
            c = confront(runs[ESTIMATED], theorem, "sharp", problem=problem, participation=process)
            groups[title].append(Curve(f"bound of {ESTIMATED}", c.rounds, c.bound))
    return panels(
        groups,
        x_label="number of rounds $T$",
        y_labels=[f"average of $|\\nabla f|^2$\n({(GRADIENT**2).words})"] * 3,
        title="Six algorithms under participation with and without a theorem",
        caption=f"Average over rounds of |grad f|^2, N = {N}, sum of {shape}, the same step sizes for all. Theorem 2 "
        "covers FedAU, known rates and average all under Bernoulli participation only. Why not the others: "
        f"{'; '.join(reasons)}. Mean and two standard errors over {own.seeds} seeds.",
        alternative="Three panels, one for each kind of participation, of six algorithms' averaged gradient norms.",
        provenance={"algorithms": {name: a.spec() for name, a in algorithms.items()}, "reasons": list(reasons)},
        y_scales=("log", "log", "log"),
        x_scale="log",
    )


def _running_average(name: str, run: Trace) -> Curve:
    """The measure of Theorem 2 at every T, with two standard errors."""
    norms = run.gradient_norm_squared[:, :-1]
    averages = np.cumsum(norms, axis=1) / np.arange(1, norms.shape[1] + 1)
    mean, error = averages.mean(axis=0), 2 * averages.std(axis=0, ddof=1) / len(averages) ** 0.5
    return Curve(name, np.arange(1, len(mean) + 1), mean, mean - error, mean + error)


# --- the objective that is minimized instead ----------------------------------------------------------------------

FOUR = Quadratic([1.0], [[0.0], [1.0], [4.0], [10.0]], 0.0, [2.0])
RATES = Bernoulli(4, (0.05, 0.2, 0.5, 0.9), normalize=False)
LOCAL = (0.01, 2)  # gamma and I


@dataclass(frozen=True)
class CutoffLimit:
    """The limit of FedAU with a cut-off: predicted, and measured with its standard error."""

    cutoff: int
    predicted: float
    mean: float
    error: float


def cutoff_limits(cutoffs: Iterable[int], rounds: int = 2000, seeds: int = 32) -> list[CutoffLimit]:
    """FedAU's mean model over the last half of noise-free runs, for each cut-off."""
    found = []
    for K in cutoffs:
        algorithm = FedAU(*LOCAL, 1.0, K)
        every = 10
        run = simulate(algorithm, FOUR, RATES, rounds, seeds=range(seeds), record_models=True, record_every=every)
        means = run.model[:, rounds // (2 * every) :, 0].mean(axis=1)
        target = weighted_objective(FOUR, objective_weights(algorithm, RATES)).minimizer()
        found.append(CutoffLimit(K, float(target), float(means.mean()), float(means.std(ddof=1) / seeds**0.5)))
    return found


def wrong_objectives(
    cutoffs: Iterable[int] = (1, 2, 3, 5, 8, 13, 20, 40), rounds: int = 2000, seeds: int = 32
) -> Picture:
    """The objectives that constant weights and FedAU with a fixed cut-off minimize, predicted and measured."""
    limits, t = cutoff_limits(cutoffs, rounds, seeds), np.arange(rounds // 2 + 1)
    constant: Mapping[str, Algorithm] = {
        "average participating": AverageParticipating(*LOCAL),
        "average all": AverageAll(*LOCAL),
        "known rates": KnownParticipation(*LOCAL),
    }
    everywhere = np.unique(np.geomspace(1, max(each.cutoff for each in limits), 60).round())
    curve = [predicted_bias(FedAU(*LOCAL, 1.0, K), FOUR, RATES) for K in everywhere]
    data = []
    with new_figure(7.4, 3.6, "The objective that is minimized instead of f") as figure:
        left, right = figure.subplots(1, 2)
        for k, (name, algorithm) in enumerate(constant.items()):
            path = moments(algorithm, FOUR, RATES, rounds // 2).mean[:, 0]
            target = float(weighted_objective(FOUR, objective_weights(algorithm, RATES)).minimizer())
            left.plot(t, path, color=COLORS[k], linestyle=DASHES[k], label=name)
            left.axhline(target, color=COLORS[k], linestyle=":", linewidth=1)
            data += [Curve(f"{name}: E x_t", t, path), Curve(f"{name}: predicted", t[-1:], np.array([target]))]
        left.set(xlabel="round $t$", ylabel=r"mean model $\mathbb{E}\,x_t$")
        left.set_title("Constant weights, exact; dotted: predicted", fontsize=9)
        left.legend(fontsize=7)
        right.plot(everywhere, curve, color=COLORS[3], label=r"predicted, weights $1-(1-p_n)^K$")
        optimum = float(FOUR.minimizer())
        x, y = np.array([one.cutoff for one in limits]), np.array([one.mean - optimum for one in limits])
        error = 2 * np.array([one.error for one in limits])
        right.errorbar(
            x, y, error, color=COLORS[0], marker=MARKERS[0], linestyle="", label="measured (two standard errors)"
        )
        right.set(xscale="log", xlabel="cut-off $K$", ylabel=f"distance from the minimizer of f ({PARAMETER.words})")
        right.set_title("FedAU with a fixed cut-off", fontsize=9)
        right.legend(fontsize=7)
    data += [Curve("FedAU: predicted distance", everywhere, np.array(curve))]
    data += [Curve("FedAU: measured distance", x.astype(float), y, y - error, y + error)]
    worst = max(abs(one.mean - one.predicted) for one in limits)
    return Picture(
        figure,
        "Four clients F_n = (x - c_n)^2/2 with c = 0, 1, 4, 10 and rates 0.05, 0.2, 0.5, 0.9; f is least at 3.75. "
        "Constant weights settle at the minimizer of h = (1/P) sum omega_n p_n F_n (Theorem 1; the mean over "
        "participants, whose weights E[1/|S|; n in S] are no product, likewise), FedAU with a fixed K near that of "
        f"sum [1 - (1-p_n)^K] F_n. gamma = {LOCAL[0]:g}, I = {LOCAL[1]}; the largest distance between predicted and "
        f"measured is {worst:.3g}.",
        "Two panels: mean models settle at predicted points, and FedAU's distance from the optimum falls with K as "
        "predicted.",
        data,
        {"cutoffs": [one.cutoff for one in limits], "rounds": rounds, "gamma": LOCAL[0], "local_steps": LOCAL[1]},
    )
