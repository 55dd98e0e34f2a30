r"""Random diagonal quadratics with all their constants, and exact left-hand sides of runs on them.

FedAvg has exact moments, with noise and sampled clients. Without them every algorithm of a specification is run in
float64, and its left-hand side is exact up to rounding; of FedAvg the mean local models at every iteration are known,
too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.result import Form
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm, algorithm_from_spec
from fedbounds.empirical.algorithms.spec import algorithms
from fedbounds.empirical.participation import Full, WithoutReplacement, WithReplacement
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.simulation.moments.moments import Moments, moments
from fedbounds.empirical.simulation.simulate import simulate

MOMENTS = ("fedavg", "generalized-fedavg")  # kinds with exact moments
# methods without a simulation of their own -> an algorithm that is one of them, with one local step
INSTANCES: Mapping[str, str] = {"minibatch-sgd": "fedavg", "three-point-compressors": "ef21"}
# methods that are generalized FedAvg where all clients participate
FEDAVG_OF_ALL = ("average-all", "average-participating", "fedau", "fedvarp", "known-participation", "mifa")
AGGREGATES = ("minimum", "average", "last", "average iterate")
MEASURED = ("squared gradient norm of f", "function gap", "squared distance to the minimizer")
ATTRACTS = 1e-9  # how much nearer a round must come to a fixed point
VIOLATED = 1 + 1e-9  # larger ratios are violations
STEP_SIZES = ("local_step_size", "server_multiplier", "server_step_size")  # concepts
# keys of a specification -> the concepts of constants that they are; others must have a default
FIELDS: Mapping[str, str] = {
    "local_step_size": "local_step_size",
    "step_size": "local_step_size",
    "server_multiplier": "server_multiplier",
    "server_step_size": "server_step_size",
    "local_steps": "local_steps",
    "share": "compressor_contraction",
    "proximal_mu": "proximal_parameter",
}


@dataclass(frozen=True)
class Trial:
    """One instance in numbers, which a climb changes."""

    curvatures: np.ndarray  # (clients, dimension)
    centers: np.ndarray  # (clients, dimension)
    noise: float
    start: np.ndarray
    local_steps: int
    rounds: int
    participants: int
    steps: np.ndarray  # the share of each step size's cap, in (0, 1]
    uncapped: float  # a step size that nothing caps
    kept: int = 1  # entries that a compressor keeps
    proximal: float = 1.0  # the proximal parameter
    stationary: bool = False  # whether it starts where noise and sampling keep its models, in mean square
    replacement: bool = False  # whether clients are sampled with replacement

    @property
    def is_sampled(self) -> bool:
        """Whether clients are drawn."""
        return self.participants < len(self.centers) or (self.replacement and len(self.centers) > 1)

    @property
    def problem(self) -> Quadratic:
        """The quadratic, diagonal."""
        hessians = self.curvatures[:, :, None] * np.eye(self.curvatures.shape[1])
        return Quadratic(hessians, self.centers, self.noise, self.start)

    def to_dict(self) -> dict[str, Any]:
        """Its numbers."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def exact_constants(trial: Trial, problem: Quadratic) -> dict[str, Any]:
    """The exact constants of the standard concepts."""
    minimizer, (clients, dimension) = problem.minimizer(), trial.curvatures.shape
    at = client_gradients(problem, minimizer)
    exact = {name: float(c.value) for name, c in problem.constants().items() if isinstance(c, Constant)}
    noise, alpha = exact["gradient_noise"], trial.kept / dimension
    contraction = 1 - (1 - alpha) ** 0.5
    mean = trial.curvatures.mean(0)
    found = exact | {
        "initial_squared_distance": float((problem.x0 - minimizer).square().sum()),
        "optimum_heterogeneity": float(at.square().sum(1).mean()) ** 0.5,
        "optimum_noise": (float(at.square().sum(1).mean()) + noise**2) ** 0.5,
        "mean_smoothness": float((trial.curvatures**2).mean(0).max()) ** 0.5,
        "hessian_heterogeneity": float(np.abs(trial.curvatures - mean).max()),
        "compressor_contraction": alpha,
        "contraction": contraction,
        "expansion": (1 - alpha) / contraction,
        "initial_gradient_error": _compression_error(trial),
        "proximal_parameter": trial.proximal,
        "local_steps": trial.local_steps,
        "rounds": trial.rounds,
        "iterations": trial.rounds * trial.local_steps,
        "clients": clients,
        "objective_weights": np.full(clients, 1 / clients),
        "participating_clients": trial.participants,
    }
    if problem.shared:
        found["mean_gradient_divergence"] = found["optimum_heterogeneity"]  # the same at every point
    return found


def _compression_error(trial: Trial) -> float:
    """The mean squared error of the compressed gradients at the start, of which the largest entries are kept."""
    gradients = np.sort(np.abs(trial.curvatures * (trial.start - trial.centers)), axis=1)
    return float((gradients[:, : gradients.shape[1] - trial.kept] ** 2).sum(1).mean())


def describe_ratio(form: Form, compared: str, ratio: float, at: Mapping[str, Any]) -> Finding:
    """The largest ratio of some runs as a finding: a violation at these numbers, or none."""
    text = f"largest exact left-hand side over the bound in {compared}: {ratio:.4g}"
    if ratio > VIOLATED:
        return Finding("error", "search", form.name, f"violated: {text}", ("terms",), at, ratio)
    return Finding("ok", "search", form.name, text, ratio=ratio)


def simulated_kind(kind: str) -> str:
    """The kind that is run for a theorem about an algorithm."""
    return "generalized-fedavg" if kind in FEDAVG_OF_ALL else INSTANCES.get(kind, kind)


def why_no_run(kind: str, measure: Measure) -> str:
    """Why the left-hand side of a theorem has no exact value on runs here; "" if it has one."""
    if kind not in algorithms():
        plain = {re.sub("[^a-z0-9]", "", name): name for name in algorithms()}
        if alike := plain.get(re.sub("[^a-z0-9]", "", kind.lower())):
            return f"algorithm = {kind!r} is not known; did you mean {alike}?"
        known = ", ".join(sorted(algorithms()))
        return f"give algorithm = one of {known}" + (f"; {kind!r} is not known" if kind else "")
    if lacking := [field for field in _required(kind) if field not in FIELDS]:
        return f"runs of {kind!r} need {', '.join(lacking)}, which no constant says"
    if algorithms()[kind].ascends or algorithms()[kind].tiered:
        return f"{kind!r} is not for quadratics of clients"
    if measure.aggregate not in AGGREGATES or measure.over not in ("rounds", "iterations"):
        return f"runs measure minima, averages and last values over rounds or iterations, not {measure}"
    if not measure.of.startswith(MEASURED):
        return f"runs measure gradient norms, function gaps and distances to the minimizer, not {measure.of}"
    return ""


def _required(kind: str) -> list[str]:
    """The keys of a specification that have no default."""
    fields = dataclasses.fields(algorithms()[kind])  # pyright: ignore[reportArgumentType]
    missing = dataclasses.MISSING
    return [f.name for f in fields if f.init and f.default is missing and f.default_factory is missing]


def has_local_steps(kind: str) -> bool:
    """Whether clients may take several steps a round."""
    return any(field.name == "local_steps" for field in dataclasses.fields(algorithms()[kind]))  # pyright: ignore[reportArgumentType]


def make_algorithm(kind: str, trial: Trial, sizes: Mapping[str, float]) -> Algorithm:
    """The algorithm of a trial; `sizes` are constants by concept."""
    if kind == "fedavg" and "server_multiplier" in sizes:
        kind = "generalized-fedavg"
    known = {"local_steps": trial.local_steps, "server_multiplier": 1.0, **sizes}
    names = {field.name for field in dataclasses.fields(algorithms()[kind])}  # pyright: ignore[reportArgumentType]
    spec = {field: known[concept] for field, concept in FIELDS.items() if field in names and concept in known}
    if lacking := [name for name in _required(kind) if name not in spec]:
        raise FedboundsError(f"{kind!r} needs {lacking[0]}: no constant of the theorem is {FIELDS[lacking[0]]}")
    return algorithm_from_spec({"kind": kind, **spec})


@np.errstate(all="ignore")  # a run that diverges overflows
def left_hand_side(measure: Measure, kind: str, trial: Trial, sizes: Mapping[str, float]) -> float:
    """The exact left-hand side of one run."""
    problem, algorithm = trial.problem, make_algorithm(kind, trial, sizes)
    within = measure.over == "iterations" and trial.local_steps > 1
    multiplier = sizes.get("server_multiplier", 1.0)
    if trial.stationary and not within:
        return value_at_start(measure, trial)  # that after every round
    if kind in MOMENTS and is_random(trial) and measure.aggregate == "average iterate":
        models = _expected_average(algorithm, trial, sizes["local_step_size"], multiplier)
        return _finite(_values(measure, models, trial)[0])
    if kind in MOMENTS and is_random(trial):
        return aggregate_values(measure, _expected_values(measure, algorithm, problem, trial))
    if within and (kind not in MOMENTS or multiplier != 1):
        raise FedboundsError(f"the models of {kind!r} at the iterations within a round are not known")
    if kind in MOMENTS:
        models = _local_models(trial, sizes["local_step_size"], multiplier, within)
    else:
        models = _simulated_models(algorithm, problem, trial)
    if measure.aggregate == "average iterate":
        return _finite(_values(measure, average_of_iterates(models), trial)[0])
    return aggregate_values(measure, _values(measure, models, trial))


def average_of_iterates(models: np.ndarray) -> np.ndarray:
    """The average of all models of a run but the last, (T+1, d) to (1, d)."""
    return models[:-1].mean(0, keepdims=True)


def aggregate_values(measure: Measure, values: np.ndarray) -> float:
    """One number of the values along a run, (T+1,), the last of which is that after it; infinite where it overflows.

    The minimum of a run that overflows is that of the rounds before.
    """
    values = np.where(np.isnan(values), np.inf, values)
    found = {"minimum": values[:-1].min(), "average": values[:-1].mean(), "last": values[-1]}
    return float(found[measure.aggregate])


def _expected_average(algorithm: Algorithm, trial: Trial, step: float, multiplier: float) -> np.ndarray:
    """A model as far from the minimizer as the average of the models after rounds in mean square, (1, d).

    All clients participate: a round multiplies the model by a factor and adds noise, of which the average is a sum.
    """
    average = average_of_iterates(_local_models(trial, step, multiplier, within=False))
    factor = 1 + multiplier * _change(trial, step, trial.local_steps).mean(0)
    weights = np.cumsum(factor ** np.arange(trial.rounds - 1)[:, None], axis=0) / trial.rounds
    variance = _moments(algorithm, replace(trial, rounds=1)).variance[-1] * (weights**2).sum(0)
    minimizer = trial.problem.minimizer().numpy()
    return minimizer + np.sqrt((average - minimizer) ** 2 + variance)


def _finite(value: float) -> float:
    """A value, infinite where it overflows."""
    return np.inf if np.isnan(value) else float(value)


def _expected_values(measure: Measure, algorithm: Algorithm, problem: Quadratic, trial: Trial) -> np.ndarray:
    """Expected values after every round, (T+1,)."""
    run = _moments(algorithm, trial)
    if measure.of.startswith("squared distance"):
        return ((run.mean - problem.minimizer().numpy()) ** 2).sum(1) + run.variance.sum(1)
    return run.objective_gap if measure.of.startswith("function gap") else run.gradient_norm_squared


def _moments(algorithm: Algorithm, trial: Trial) -> Moments:
    """The exact mean and variances of the models after every round."""
    problem, rounds, (N, S) = trial.problem, trial.rounds, (len(trial.centers), trial.participants)
    sampled = WithReplacement(N, S) if trial.replacement else WithoutReplacement(N, S)
    return moments(algorithm, problem, sampled if trial.is_sampled else Full(N), rounds)


def settle(trial: Trial, sizes: Mapping[str, float]) -> Trial | None:
    """The trial from the distance to the minimizer that stays, in mean square, for ever; None if there is none.

    With one curvature and one dimension, a round multiplies the mean distance by a factor and adds a variance. Without
    randomness it is the fixed point of the round, an affine map.
    """
    multiplier = sizes.get("server_multiplier", 1.0)
    if not is_random(trial):
        change = _change(trial, sizes["local_step_size"], trial.local_steps)
        pull = -multiplier * change.mean(0)
        if not ((pull > ATTRACTS) & (pull < 2 - ATTRACTS)).all():
            return None
        return replace(trial, start=(change * trial.centers).sum(0) / change.sum(0))
    step, (N, S, a) = sizes["local_step_size"], (len(trial.centers), trial.participants, trial.curvatures[0])
    change, twice = (_change(trial, step, count)[0] for count in (trial.local_steps, 2 * trial.local_steps))
    pull = -multiplier * change
    if not ((pull > ATTRACTS) & (pull < 2 - ATTRACTS)).all():
        return None
    noise = (step * trial.noise) ** 2 / S * twice / (step * a * (step * a - 2))  # the powers of (1 - step * a)^2
    share = 1 / S if trial.replacement else (N - S) / (S * max(N - 1, 1))
    variance = noise + change**2 * trial.centers.var(0) * share
    return replace(trial, start=trial.centers.mean(0) + multiplier * np.sqrt(variance / (pull * (2 - pull))))


def _values(measure: Measure, models: np.ndarray, trial: Trial) -> np.ndarray:
    """What is measured at each of some models, (K, d) to (K,)."""
    mean = trial.curvatures.mean(0)
    away = models - (trial.curvatures * trial.centers).mean(0) / mean
    if measure.of.startswith("squared distance"):
        return (away**2).sum(1)
    return (mean * away**2).sum(1) / 2 if measure.of.startswith("function gap") else ((mean * away) ** 2).sum(1)


def is_random(trial: Trial) -> bool:
    """Whether there is noise, or clients are drawn: expected values then have rounding errors of their own size."""
    return bool(trial.noise) or trial.is_sampled


def value_at_start(measure: Measure, trial: Trial) -> float:
    """What is measured, at the start of a run."""
    return float(_values(measure, trial.start[None], trial)[0])


def _change(trial: Trial, step: float, count: int | np.ndarray) -> np.ndarray:
    """(1 - step * curvature)^count - 1, by which local steps move the models from the centers."""
    with np.errstate(all="ignore"):
        powers = (1 - step * trial.curvatures) ** count - 1
        return np.where(step * trial.curvatures < 1, np.expm1(count * np.log1p(-step * trial.curvatures)), powers)


def _local_models(trial: Trial, step: float, multiplier: float, within: bool) -> np.ndarray:
    """The models of FedAvg after every round, (T + 1, d); if `within`, the mean local ones at every iteration, too."""
    rounds = 1 if trial.stationary else trial.rounds
    if not within:
        return _server_models(trial, step, multiplier, rounds)
    if multiplier == 1 and not np.ptp(trial.curvatures, 0).any() and not np.ptp(trial.centers, 0).any():
        one = replace(trial, curvatures=trial.curvatures[:1], centers=trial.centers[:1], local_steps=1)
        return _server_models(one, step, 1.0, rounds * trial.local_steps)  # gradient descent on one function
    change = _change(trial, step, np.arange(1, trial.local_steps + 1)[:, None, None])  # (I, N, d)
    models = [trial.start[None]]
    for _ in range(rounds):
        before = models[-1][-1]
        means = before + (change * (before - trial.centers)).mean(1)
        if multiplier != 1:
            means[-1] = before + multiplier * (means[-1] - before)
        models.append(means)
    return np.concatenate(models)


def _server_models(trial: Trial, step: float, multiplier: float, rounds: int) -> np.ndarray:
    """The models after every round, (T + 1, d): a round is an affine map of each coordinate."""
    change = multiplier * _change(trial, step, trial.local_steps)
    pull, push = change.mean(0), -(change * trial.centers).mean(0)
    fixed = np.where(pull == 0, 0.0, -push / np.where(pull == 0, 1.0, pull))
    counts = np.arange(rounds + 1)[:, None]
    small = np.exp(counts * np.log1p(np.where(np.abs(pull) < 0.5, pull, 0.0)))
    powers = np.where(np.abs(pull) < 0.5, small, (1 + pull) ** counts)
    models = fixed + np.where(trial.start == fixed, 0.0, powers * (trial.start - fixed))
    return np.where(pull == 0, trial.start + counts * push, models)


def _simulated_models(algorithm: Algorithm, problem: Quadratic, trial: Trial) -> np.ndarray:
    """The models of a run without randomness, (T+1, d); two seeds show that nothing is drawn."""
    run = simulate(algorithm, problem, Full(problem.clients), trial.rounds, seeds=(0, 1), record_models=True)
    models = run.arrays["model"]
    if not np.array_equal(models[0], models[1], equal_nan=True):
        raise FedboundsError(f"{algorithm.kind!r} draws numbers of its own, so that one run is no expectation")
    return np.where(np.isnan(models[0]), np.inf, models[0])
