r"""The level at which naive averaging settles on images: predicted without a run, and measured.

With logistic regression and weight decay the fair problem is strongly convex in x and strongly concave in y: every
$\sum_iw_if_i$ has one saddle, and a method with effective weights $w$ settles there as its local steps vanish.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from scipy.optimize import minimize

from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.algorithms.workload import RandomWork
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import class_mix_partition
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.problems import FairImages
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Sweep
from fedbounds.figures.charts.claims import FigureClaim, limits_of
from fedbounds.figures.charts.picture import COLORS, DASHES, MARKERS, Curve, Picture, new_figure
from fedbounds.figures.charts.significance import Level, error_of_mean
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda.surrogate import chi_squared

SERVER = 0.07  # the server's steps of a round, shared out among so many local steps as clients take on average
LOCAL = 0.0003  # so small that clients hardly drift
LENGTH = 2  # of the runs, over that of the other figures
DECAYS = (0.001, 0.01, 0.05, 0.2, 0.5)
FEWER = 8  # seeds for which weight decays are compared


def predictable(scale: ex.Scale, problem: str) -> bool:
    """Whether every surrogate has one saddle that is quick to find."""
    return problem == ex.FAIR and scale.network == "linear" and scale.weight_decay > 0 and scale.dataset == "digits"


def digits_scale(scale: ex.Scale) -> ex.Scale:
    """The scale, or that of digits if its level cannot be predicted."""
    return scale if predictable(scale, ex.FAIR) else ex.SCALES["digits"]


def weights(p: np.ndarray, problem: str, method: str, most: int, seed: int) -> np.ndarray:
    """The effective weights of a method for the clients of a seed with weights p, (clients,)."""
    steps = RandomWork(ex.LEAST, most).numbers(len(p), 0, Streams(seed))
    return _rule(problem, method, most).effective_weights(steps, p)


def mismatch(scale: ex.Scale, problem: str, method: str, most: int) -> np.ndarray:
    r"""$\chi^2_{p\|w}$ of every seed."""
    p = np.full(scale.clients, 1 / scale.clients)
    return np.array([chi_squared(p, weights(p, problem, method, most, seed)) for seed in range(scale.seeds)])


def minimize_envelope(problem: FairImages, start: torch.Tensor | None = None) -> torch.Tensor:
    """The minimizer x of the envelope of a problem, (d_x,), if that is strongly convex."""

    def at(x: np.ndarray) -> tuple[float, np.ndarray]:
        here = torch.from_numpy(x)
        y = problem.best_response(here)
        in_x, in_y = problem.split(problem.objective_gradient(problem.join(here, y)[None])[0])
        losses = in_y + problem.regularization * y  # of the classes
        value = losses @ y - problem.regularization / 2 * y @ y + problem.decay(here)
        return float(value), in_x.numpy()  # the envelope and, by Danskin, its gradient

    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-6}
    first = np.zeros(problem.descent_dimension) if start is None else start.numpy()
    return torch.from_numpy(minimize(at, first, jac=True, method="L-BFGS-B", options=options).x)


def problem_of_split(seed: int, decay: float, clients: int) -> FairImages:
    """The fair problem on digits with the split of a seed, in double precision."""
    digits = load_dataset("digits")
    split = class_mix_partition(digits.train_labels, clients, np.random.default_rng(seed), ex.ALPHA)
    return FairImages(digits, split, "linear", weight_decay=decay, dtype=torch.float64)


@cache
def unweighted_minimizer(decay: float, clients: int) -> torch.Tensor:
    """The minimizer of the envelope of the problem itself, which is the same for all splits, (d_x,)."""
    return minimize_envelope(problem_of_split(0, decay, clients))


@cache
def surrogate_level(decay: float, clients: int, seed: int, w: tuple[float, ...]) -> tuple[float, float]:
    """Phi, and the accuracy in the worst class, at the minimizer of the surrogate's envelope."""
    problem = problem_of_split(seed, decay, clients)
    x = minimize_envelope(problem.surrogate(w), unweighted_minimizer(decay, clients))
    state = problem.join(x, problem.best_response(x))
    metrics = problem.metrics(state[None])
    return float(metrics["envelope"]), float(metrics[ex.ACCURACY[ex.FAIR]])


def predict_levels(scale: ex.Scale, method: str, most: int, decay: float | None = None) -> np.ndarray:
    """Phi, and the accuracy in the worst class, at which a method settles, (seeds, 2)."""
    rho = scale.weight_decay if decay is None else decay

    def of(seed: int) -> tuple[float, float]:
        p = problem_of_split(seed, rho, scale.clients).weights.numpy()
        return surrogate_level(rho, scale.clients, seed, tuple(weights(p, ex.FAIR, method, most, seed).tolist()))

    if method == ex.NORMALIZED:  # it minimizes Phi itself, which no split changes
        return np.tile(of(0), (scale.seeds, 1))
    return np.array([of(seed) for seed in range(scale.seeds)])


def predict_phi(scale: ex.Scale, most: int) -> dict[str, np.ndarray]:
    """Phi at which each method settles, (seeds,)."""
    return {method: predict_levels(scale, method, most)[:, 0] for method in ex.METHODS}


def _rule(problem: str, method: str, most: int) -> FedNormSGDA:
    spec = ex.ExperimentSetting(problem, 1, 1, method, most).algorithm(dict.fromkeys(ex.STEPS, 1.0))
    made = algorithm_from_spec(spec)
    assert isinstance(made, FedNormSGDA)
    return made


def settling_runs(scale: ex.Scale, method: str, most: int) -> Sweep:
    """Runs with exact gradients and small local steps, as in the prediction."""
    setting = ex.ExperimentSetting(ex.FAIR, scale.clients, scale.clients, method, most)
    masses = _rule(ex.FAIR, method, most).masses(np.arange(ex.LEAST, most + 1))
    server = float(f"{SERVER / masses.mean():.3g}")
    steps: dict[str, float] = dict(zip(ex.STEPS, (server, server, LOCAL, LOCAL), strict=True))
    whole = -(-len(load_dataset("digits").train_labels) // scale.clients)  # all that a client holds: exact gradients
    rounds = LENGTH * scale.rounds
    return ex.runs(scale, setting, steps, batch=whole, rounds=rounds, record_every=max(1, rounds // 10))


PredictedAndRuns = dict[tuple[str, int], tuple[np.ndarray, Sequence[Trace]]]


def compare_levels(scale: ex.Scale, run: Callable[[Sweep], dict[str, list[Trace]]]) -> PredictedAndRuns:
    """Method and E to the predicted Phi and accuracy, (seeds, 2), and the runs."""
    return {
        (method, most): (predict_levels(scale, method, most), run(settling_runs(scale, method, most))["it"])
        for most in ex.MOST for method in ex.METHODS
    }  # fmt: skip


def ends_of(traces: Sequence[Trace]) -> np.ndarray:
    """Phi and the accuracy in the worst class at the end of runs, (seeds, 2)."""
    return np.array([[t.arrays[m][0, -1] for m in (ex.PHI[ex.FAIR], ex.ACCURACY[ex.FAIR])] for t in traces])


def levels_by_decay(scale: ex.Scale, decays: Iterable[float] = DECAYS) -> dict[str, np.ndarray]:
    """The predictions of normalized and naive averaging by weight decay, (decays, seeds, 2)."""
    few = replace(scale, seeds=min(FEWER, scale.seeds))
    return {
        method: np.stack([predict_levels(few, method, ex.MOST[0], decay) for decay in decays])
        for method in (ex.NORMALIZED, ex.NAIVE)
    }


def picture(scale: ex.Scale, found: PredictedAndRuns, decays: Iterable[float] = DECAYS) -> Picture:
    """Measured against predicted levels, and predictions by weight decay."""
    rho, data = np.array(list(decays)), []
    levels = levels_by_decay(scale, rho)
    title = "Naive averaging settles where its surrogate objective is least"
    with new_figure(9.6, 3.9, title) as figure:
        scatter, gap, accuracy = figure.subplots(1, 3)
        for k, ((method, most), (expected, traces)) in enumerate(found.items()):
            color, marker = COLORS[ex.METHODS.index(method)], MARKERS[k]
            x, y = expected[:, 0], ends_of(traces)[:, 0]
            label = f"{method}, $E = {most}$"
            scatter.plot(x, y, linestyle="", marker=marker, color=color, markersize=4, fillstyle="none", label=label)
            data.append(Curve(f"measured against predicted: {label}", x, y))
        ends = scatter.get_xlim()
        scatter.plot(ends, ends, color="#777777", linewidth=0.8, zorder=1)
        scatter.set_xlabel("predicted: $\\Phi$ where $\\sum_iw_if_i$ is least")
        scatter.set(ylabel="measured: $\\Phi$ at the end of a run", title="Measured, each seed")
        low, high = scatter.get_ylim()
        scatter.set_ylim(low, high + 0.5 * (high - low))  # with room for the legend
        scatter.legend(fontsize=6.5, loc="upper left")
        for axes, place, words in ((gap, 0, "$\\Phi$"), (accuracy, 1, "test accuracy, worst class")):
            for k, (method, values) in enumerate(levels.items()):
                mean, spread = values[..., place].mean(axis=1), values[..., place].std(axis=1, ddof=1)
                axes.plot(
                    rho, mean, color=COLORS[k], linestyle=DASHES[k], marker=MARKERS[k], markersize=3, label=method
                )
                axes.fill_between(rho, mean - spread, mean + spread, color=COLORS[k], alpha=0.15, linewidth=0)
                data.append(Curve(f"{words} by decay: {method}", rho, mean, mean - spread, mean + spread))
            axes.axvline(scale.weight_decay, color="#777777", linestyle=":", linewidth=1)
            axes.set(xscale="log", xlabel="weight decay $\\rho$ (dotted: of the runs)", ylabel=words)
            axes.set_title(f"Predicted, $E = {ex.MOST[0]}$")
        gap.legend(fontsize=7, loc="upper left")
    worst = max(float(np.abs(ends_of(of)[:, 0] / expected[:, 0] - 1).max()) for expected, of in found.values())
    chi = {f"{method}, E = {most}": float(mismatch(scale, ex.FAIR, method, most).mean()) for method, most in found}
    return Picture(
        figure,
        f"{title}. Fair classification of digits by logistic regression with weight decay {scale.weight_decay:g}, n = "
        f"{scale.clients}, alpha = {ex.ALPHA:g}, tau_i from 2 to E local steps, drawn once per seed, {scale.seeds} "
        "seeds. Left: runs with exact gradients, server steps of "
        f"{SERVER:g} a round and local steps of {LOCAL:g}, {LENGTH * scale.rounds} rounds, none tuned, against Phi at "
        "the minimizer of the envelope of sum_i w_i f_i, w_i ~ |a_i|_1 for naive averaging and 1/n for normalized, "
        f"found by L-BFGS without a run: within {worst:.2%} in every seed. Middle and right, no runs: without decay "
        "the digits are separable, every weighing of the clients has the same infimum, and naive averaging loses "
        "nothing; the stronger the decay, the more it loses, in Phi and in accuracy. Mean and standard deviation over "
        f"{min(FEWER, scale.seeds)} seeds.",
        "Left, points on the diagonal: measured against predicted Phi. Middle and right: Phi and accuracy by weight "
        "decay, naive averaging worse the larger it is.",
        data,
        {"scale": scale.words, "mean chi^2": chi, "largest relative distance from the prediction": worst},
    )


def claims(found: PredictedAndRuns) -> list[FigureClaim]:
    """Section 4.1: naive averaging minimizes a surrogate; normalized averaging does not."""
    made: list[FigureClaim] = []
    for most in ex.MOST:
        runs = {method: found[method, most][1] for method in (ex.NORMALIZED, ex.NAIVE)}
        own, ends = map(ends_of, runs.values())
        expected = found[ex.NAIVE, most][0]
        window = float(runs[ex.NAIVE][0].arrays["round"][-1]) / 10
        of_phi = limits_of("", (), {ex.NAIVE: runs[ex.NAIVE]}, window, ex.PHI[ex.FAIR])
        of_accuracy = limits_of("", (), runs, window, ex.ACCURACY[ex.FAIR])
        far = float(np.abs(ends[:, 0] / expected[:, 0] - 1).max())
        made += of_phi.apply([
            FigureClaim("Section 4.1",
                        f"naive averaging settles where sum_i w_i f_i is least, w_i ~ tau_i (E = {most})",
                  f"Phi {ends[:, 0].mean():.4f} on average, predicted {expected[:, 0].mean():.4f}, at most {far:.2%} "
                  f"apart in {len(ends)} seeds (exact gradients, small steps)", far < 0.01)
        ])  # fmt: skip
        measured = _against(own[:, 1], ends[:, 1])
        text = f"and is worse there than normalized averaging, in accuracy (E = {most})"
        own_level, naive = (
            Level.from_values(100 * own[:, 1], ex.NORMALIZED),
            Level.from_values(100 * ends[:, 1], ex.NAIVE),
        )
        made += of_accuracy.apply([FigureClaim("Section 4.1", text, measured, own_level.above(naive))])
    return made


def _against(own: np.ndarray, other: np.ndarray) -> str:
    error = error_of_mean(own - other)
    return (
        f"worst-class test accuracy in %: {100 * own.mean():.1f} against {100 * other.mean():.1f} "
        f"({100 * (own - other).mean():+.1f} +- {100 * error:.1f})"
    )
