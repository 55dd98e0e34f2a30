r"""Constants and assumptions of a run of FedAvg with aggregation weights: rates, weight error, Q and the objective.

Under Bernoulli participation everything about the weights is exact before the run: of constant weights trivially, of
FedAU's from the rates, K and T. The gradient bound G of Option 2 is the problem's, or else a `trajectory`: the proof
needs it at $x_0,\dots,x_{T-1}$ only, where it multiplies the weight error of the round. Constant weights are
independent of the model, so that for them the largest $\mathbb E\|\nabla f(x_t)\|^2$ will do.

Source: Wang & Ji 2024, Theorems 1 and 2, Corollary 4 and Appendix B.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.papers.fedau.weight_error import (
    largest_weight_error,
    largest_weight_moment,
    mean_weight_moment,
    weight_error,
)
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison import paper_runs
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.papers.fedau.accounting import NEAR, independent_coins, record_weights
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    AverageAll,
    AverageParticipating,
    ConstantWeights,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)
from fedbounds.empirical.papers.fedau.objectives import objective_weights, weighted_objective
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
from fedbounds.empirical.papers.fedau.trajectory_constants import measure_along_run
from fedbounds.empirical.participation import Full, Process, Recorded
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import Moments
from fedbounds.empirical.simulation.trace import Trace

WEIGHT_ERROR = "mean over clients of the squared error of p_n omega_t^n"
GRADIENT_OF_H = "squared gradient norm of h"
EQUAL = 1e-9  # relative difference up to which rates and weights are equal
GIVEN_RECORD = (
    "conditional on the record of participation: weights, their error W and Q are those of its rounds, and p_n the "
    "shares of rounds if no process is named; the result has expectations over participation"
)

NO_BOUND: Mapping[type[Algorithm], str] = {
    AverageParticipating: "its weights 1/|S_t| depend on participation in the same round, and every result is about "
    "weights made of the past",
    FedVarp: "it adds stored updates of absent clients, and every result is about updates of participants",
    MIFA: "it adds stored updates of absent clients, and every result is about updates of participants",
}


def why_no_bound(algorithm: Algorithm, participation: Process) -> str | None:
    """Why no result of the paper covers runs of an algorithm under a participation process; None if one does.

    Example:
        >>> from fedbounds.empirical.participation import Bernoulli
        >>> why_no_bound(FedAU(0.1, 5), Bernoulli(3, 0.5)) is None
        True
        >>> why_no_bound(AverageParticipating(0.1, 5), Bernoulli(3, 0.5)).partition(",")[0]
        'average-participating: its weights 1/|S_t| depend on participation in the same round'
    """
    kind = type(algorithm)
    if kind not in WEIGHTS:
        return f"{algorithm.kind}: {NO_BOUND.get(kind, 'it is not Algorithm 1 with aggregation weights')}"
    if isinstance(algorithm, FedAU) and algorithm.rate is not None:
        return "fedau with a rate: the paper names the exponentially weighted mean and proves nothing about it"
    coins = independent_coins(participation)
    if coins is None:
        return (
            f"{participation.kind} participation: every result assumes that who takes part is independent from round "
            "to round and between clients (Assumption 4)"
        )
    if not coins.all():
        return f"client {int(coins.argmin())} never takes part, and every result assumes p_n > 0"
    return None


def _why_no_record(algorithm: Algorithm, record: Recorded, rounds: int) -> str | None:
    """Why no result is about a run of this algorithm given its record, not even conditionally."""
    absent = ~np.asarray(record.weights)[:rounds].any(axis=0)
    if absent.any():
        return (
            f"client {int(absent.argmax())} never takes part in its {rounds} rounds, and every result assumes p_n > 0"
        )
    return why_no_bound(algorithm, Full(record.clients))


class FedAUPaper(paper_runs.PaperRuns):
    """FedAvg whose participants' updates are weighted by a function of the past."""

    authors = "Wang & Ji 2024"
    given_record = True

    def steps(self, setting: RunSetting, interval: int | None) -> paper_runs.PrescribedSteps:
        algorithm: Any = setting.algorithm
        reason = why_no_bound(algorithm, setting.process)
        if isinstance(setting.process, Recorded):
            reason = _why_no_record(algorithm, setting.process, setting.total)
        if reason is not None:
            raise self.not_covered(reason)
        self.check_no_interval(interval)
        own = {"gamma": algorithm.local_step_size, "eta": algorithm.server_multiplier}
        return paper_runs.PrescribedSteps(1, own | ({"K": algorithm.cutoff} if isinstance(algorithm, FedAU) else {}))

    def collect_facts(self, compared: paper_runs.ComparedRun) -> paper_runs.RunFacts:
        setting, horizons = compared.setting, compared.horizons
        rates, T, stated = _rates(setting), horizons.astype(float), paper_runs.run_constants(setting)
        algorithm, p = setting.algorithm.bind_process(setting.process), np.asarray(rates.value)
        own, weights = WEIGHTS[type(algorithm)](algorithm, p, T) if setting.q is None else _given_record(setting, p, T)
        source = "exact" if setting.q is None else "trajectory" if rates.source == "exact" else "estimated"
        measured, notes = compared.measured_constants(
            stated, lambda: measure_along_run(setting), compared.concepts - {"gradient_bound"}
        )
        stated |= measured
        constants: paper_runs.Constants = stated | own | _step_constants(setting.algorithm, T)
        constants |= compared.rounds | _rate_constants(rates)
        constants |= {name: Constant(value, source, note) for name, (value, note) in weights.items()}
        notes += () if setting.q is None else (GIVEN_RECORD,)
        found = paper_runs.problem_assumptions(setting, stated) | {
            "bernoulli-participation": True,  # or it would have been refused
            "past-weights": True,
            "nearly-optimal-weights": bool(np.ravel(weights["largest_weight_error"][0])[-1] <= NEAR),
            "fedau-weights": isinstance(algorithm, FedAU),
            "constant-weights": isinstance(algorithm, ConstantWeights),
            "inverse-rates": isinstance(algorithm, ConstantWeights) and _all_equal(p * algorithm.omega, 1),
            "equal-rates": _all_equal(p, p[0]),
        }
        if "Q" not in compared.given and setting.q is None:  # else it is the user's claim, or that of one record
            found["sure-Q"] = True
        if independent_coins(setting.process) is None:  # a record shows no independence
            del found["bernoulli-participation"]
        if "G" in compared.symbols and not isinstance(stated.get("gradient_bound"), Constant):
            constants["gradient_bound"] = _largest_gradient(setting, isinstance(algorithm, ConstantWeights), horizons)
            found.pop("bounded-gradient", None)
            notes += ("grad f is not known to be bounded: G is its largest value along this run",)
        if "H" in compared.symbols and not setting.logged:  # the functions of a log are unknown
            constants["weighted_initial_gap"] = gap = _weighted_gap(setting)
            found["h-bounded-below"] = isinstance(gap, Constant)
        return compared.facts(constants, found, notes)

    def prescribe_algorithm(
        self, result: Result, form: Form, ahead: paper_runs.PlannedRun, given: Mapping[str, Value]
    ) -> Algorithm:
        coins = independent_coins(ahead.process)
        if coins is None:
            raise FedboundsError(f"{result.key} sets step sizes by the rates p_n of independent clients: Bernoulli")
        assumed = {assumption.name for assumption in form.assumptions}
        constants = ahead.constants | _rate_constants(Constant(coins, "exact", "of the process"))
        not_used = Constant(0.0, "given", "does not enter step sizes")
        if not isinstance(constants.get("gradient_bound"), Constant):
            constants["gradient_bound"] = not_used
        if "constant-weights" in assumed:
            constants["weighted_initial_gap"] = not_used
        steps, known = paper_runs.prescribe(result, form, constants, given)
        numbers = (steps["gamma"], ahead.local_steps)
        if "constant-weights" in assumed:
            return FixedWeights(*numbers, known["omega"], steps["eta"])
        if "inverse-rates" in assumed:
            return KnownParticipation(*numbers, steps["eta"], coins)
        if "K" not in steps | known:
            raise FedboundsError(f"{result.key} [{form.name}] sets no cut-off: give K, e.g. given={{'K': 5}}")
        return FedAU(*numbers, steps["eta"], steps["K"] if "K" in steps else float(known["K"]))

    def measure(self, setting: RunSetting, of: str) -> tuple[np.ndarray, np.ndarray | None]:
        if of == WEIGHT_ERROR and isinstance(setting.algorithm, FedAU):
            return _weight_errors(setting)
        if of != GRADIENT_OF_H:
            return super().measure(setting, of)
        if setting.logged:
            phi = objective_weights(setting.algorithm, setting.process)
            norms = phi @ setting.recorded("gradient_products", "every client's gradient, and so not grad h") @ phi
            return norms.mean(axis=0), norms
        objective = weighted_objective(setting.problem, objective_weights(setting.algorithm, setting.process))
        if isinstance(setting.run, Moments):
            return _exact_gradient(setting.run, objective.objective_gradient), None
        models = setting.recorded("model", "its models, and so not grad h: simulate with record_models=True")
        return paper_runs.average_samples(
            objective.objective_gradient(torch.from_numpy(models)).square().sum(-1).numpy()
        )


RUNS: paper_runs.PaperRuns = FedAUPaper()


def _weight_errors(setting: RunSetting) -> tuple[np.ndarray, np.ndarray]:
    """The mean over clients of (p_n omega_t^n - 1)^2 at the recorded rounds, from who took part in each seed."""
    setting.recorded("participation_weight", "who took part: simulate with record_participation=True")
    algorithm: Any = setting.algorithm
    assert isinstance(setting.run, Trace)
    errors, rates = [], np.asarray(_rates(setting).value)
    for seed in setting.run.seed.tolist():
        present = setting.run.participation(seed) != 0
        # the weights after the last round are those before one more
        paths = weight_paths(np.vstack([present, present[:1]]), algorithm.cutoff)
        errors.append(((rates * paths - 1) ** 2).mean(axis=1)[setting.at])
    return np.mean(errors, axis=0), np.array(errors)


WeightFacts = dict[str, tuple[Any, str]]  # concept -> value and where it comes from


def _fedau_weights(algorithm: Any, p: np.ndarray, T: np.ndarray) -> tuple[paper_runs.Constants, WeightFacts]:
    """FedAU's weights, whose law is known from the rates and K."""
    K = float(algorithm.cutoff)
    return {"cutoff_interval": Constant(K, "given", "of the algorithm")}, {
        "weight_error": (weight_error(p, K, T), "of FedAU's weights under Bernoulli participation"),
        "mean_weight_second_moment": (mean_weight_moment(p, K, T), "of FedAU's weights under Bernoulli participation"),
        "weight_second_moment": (largest_weight_moment(p, K, T), "the largest that FedAU's weights can give it"),
        "largest_weight_error": (largest_weight_error(p, K, T), "the largest that FedAU's weights can make it"),
    }


def _constant_weights(algorithm: Any, p: np.ndarray, T: np.ndarray) -> tuple[paper_runs.Constants, WeightFacts]:
    """Weights that stay the same, and so do their error and second moment."""
    omega = np.broadcast_to(np.asarray(algorithm.omega, dtype=float), p.shape)
    error, moment = float(np.mean((p * omega - 1) ** 2)), float(np.mean(p * omega**2))
    same = "the same in every round"
    return {"aggregation_weights": Constant(omega, "given", "of the algorithm")}, {
        "weight_error": (error, same),
        "largest_weight_error": (error, same),
        "weight_second_moment": (moment, same),
        "mean_weight_second_moment": (moment, same),
    }


def _given_record(setting: RunSetting, p: np.ndarray, T: np.ndarray) -> tuple[paper_runs.Constants, WeightFacts]:
    """The weights of a run whose participation is given; those of FedAU are computed from the record."""
    algorithm: Any = setting.algorithm.bind_process(setting.process)
    if not isinstance(algorithm, FedAU):
        return _constant_weights(algorithm, p, T)
    assert setting.q is not None
    found, at = record_weights(setting.q[: setting.total] > 0, algorithm.cutoff, p), T.astype(int) - 1
    note = "of FedAU's weights in the rounds of the record"
    return {"cutoff_interval": Constant(float(algorithm.cutoff), "given", "of the algorithm")}, {
        "weight_error": (found.error[at], note),
        "mean_weight_second_moment": (found.mean_moment[at], note),
        "weight_second_moment": (found.moment[at], f"largest {note}"),
        "largest_weight_error": (found.largest_error[at], f"largest {note}"),
    }


WEIGHTS: Mapping[type[Algorithm], Callable[[Any, np.ndarray, np.ndarray], tuple[paper_runs.Constants, WeightFacts]]] = {
    FedAU: _fedau_weights,
    AverageAll: _constant_weights,
    FixedWeights: _constant_weights,
    KnownParticipation: _constant_weights,
}


def _step_constants(algorithm: Any, T: np.ndarray) -> paper_runs.Constants:
    """Step sizes; the scales of Theorem 1 are those that make its step sizes the run's."""
    gamma, eta = algorithm.local_step_size, algorithm.server_multiplier
    return paper_runs.algorithm_constants(
        local_step_size=gamma,
        local_steps=algorithm.local_steps,
        server_multiplier=eta,
        local_step_scale=gamma * np.sqrt(T),
        global_step_scale=gamma * eta * np.sqrt(T),
    )


def _rates(setting: RunSetting) -> Constant:
    """The rates of the process, or of a record the shares of its rounds."""
    if independent_coins(setting.process) is not None or setting.q is None:
        return Constant(np.asarray(setting.process.rates), "exact", "of the process")
    return Constant((setting.q[: setting.total] > 0).mean(axis=0), "estimated", "shares of the rounds of the record")


def _rate_constants(rates: Constant) -> paper_runs.Constants:
    """Rates, and how many clients participate on average."""
    mean = float(np.sum(rates.value))
    return {
        "participation_rates": rates,
        "participating_clients": Constant(mean, rates.source, "expected in a round"),
    }


def _all_equal(values: np.ndarray, value: float) -> bool:
    """Whether all clients have this value."""
    return bool(np.allclose(values, value, rtol=EQUAL, atol=0))


def _largest_gradient(setting: RunSetting, constant: bool, horizons: np.ndarray) -> Constant:
    """The largest gradient norm of f along the run, in the rounds before each horizon."""
    if constant:
        values, note = setting.values, "root of the largest E|grad f(x_t)|^2"
    elif isinstance(setting.run, Trace):
        norms = setting.run.gradient_norm_squared
        values, note = np.where(np.isnan(norms), -np.inf, norms).max(axis=0), "largest over recorded rounds and seeds"
    else:
        raise FedboundsError(
            "grad f is unbounded on this problem, and moments know no largest gradient along a run: simulate it, or "
            "give G"
        )
    before = np.searchsorted(setting.at, horizons) - 1
    largest = np.sqrt(np.maximum.accumulate(values)[before])
    if len(setting.at) <= setting.total:
        return Constant(largest, "estimated", f"lower estimate: {note}, as not every round was recorded")
    return Constant(largest, "trajectory", note)


def _weighted_gap(setting: RunSetting) -> Constant | NoConstant:
    """H = h(x_0) - h*."""
    objective = weighted_objective(setting.problem, objective_weights(setting.algorithm, setting.process))
    upper = "upper bound: h(x0), mean over the seeds' starts" if setting.problem.lower_bound else "h(x0) - h*"
    try:
        return Constant(float(objective.objective_gap(_starts(setting)).mean()), "exact", upper)
    except FedboundsError as error:
        return NoConstant(str(error))


def _starts(setting: RunSetting) -> Tensor:
    """Where the seeds of a run start, (seeds, d); all alike for problems with a fixed start."""
    run, problem = setting.run, setting.problem
    if not isinstance(run, Trace):
        return problem.initial_point(np.random.default_rng(0))[None]  # fixed, for problems whose moments are known
    fixed = run.spec.get("streams", {})
    own = [Streams(seed, fixed).generator("initialization") for seed in run.arrays["seed"].tolist()]
    return torch.stack([problem.initial_point(generator) for generator in own])


def _exact_gradient(run: Moments, gradient: Callable[[torch.Tensor], torch.Tensor]) -> np.ndarray:
    r"""$\mathbb E\|A_hx-b\|^2=\|A_h\mathbb Ex-b\|^2+\sum_j\mathrm{Var}_j\|A_hv_j\|^2$, (T+1,)."""
    if not (run.problem.shared or run.problem.diagonal):
        raise FedboundsError("the moments of different dense Hessians do not hold what E|grad h|^2 needs: simulate")
    at_zero = gradient(torch.zeros(run.mean.shape[1], dtype=torch.float64))
    along = gradient(torch.from_numpy(run.directions.T)) - at_zero
    mean = gradient(torch.from_numpy(run.mean)).square().sum(-1).numpy()
    return mean + run.variance @ along.square().sum(-1).numpy()
