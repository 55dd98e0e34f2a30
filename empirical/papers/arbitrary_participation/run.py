r"""Constants and assumptions of a run of generalized FedAvg: step sizes, divergences and participation.

The constants of participation at a horizon T are those of the first T rounds. They come from one of three sources:

- a *record* of weights, where the offsets $\mathbf v_n=\nabla F_n-\nabla f$ do not depend on x: exact;
- a *process*, where they do not either: the largest expected values over the rounds (and aligned windows), which are
  exact for the results in expectation over participation (`bounds.papers.arbitrary_participation.expected`), and for
  no others;
- a record, where the Hessians differ: suprema along the run, a `trajectory`. The proof of Theorem 3.1 needs (6) at the
  mean local iterates $\bar{\mathbf y}_{t,i}$ only, (5) and (7) at the windows' starts $\mathbf x_{t_0}$ only. On
  quadratics these, and the left sides of Lemmas C.1 and C.2, are exact in expectation over the noise.

Source: Wang & Ji 2022, Assumption 3' and Appendix C.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.papers.arbitrary_participation import assumptions
from fedbounds.bounds.participation.constants import check_weights, window_means
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps
from fedbounds.empirical.comparison import paper_runs
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.divergences import (
    Bounds,
    Divergences,
    Offsets,
    objective_weights,
)
from fedbounds.empirical.papers.arbitrary_participation.participation_constants import (
    process_constants,
    record_constants,
)
from fedbounds.empirical.papers.arbitrary_participation.trajectory_constants import measure_along_run
from fedbounds.empirical.participation import Full, Process, Recorded, WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, Problem, Quadratic, Synthetic
from fedbounds.empirical.simulation.engines import most_participants
from fedbounds.empirical.simulation.moments.local_work import Coordinates, apply, sandwich, trace
from fedbounds.empirical.simulation.moments.moments import require_quadratic
from fedbounds.empirical.simulation.moments.rounds import RoundLaw, State, weighted_sum


@dataclass(frozen=True, eq=False)
class TrajectoryQuantities:
    """Exact expectations over gradient noise given the participation, for T rounds of I local steps."""

    # left side of Lemma C.1, $\sum_nq_t^n\mathbb E\|\mathbf y^n_{t,i}-\bar{\mathbf y}_{t,i}\|^2$, (T, I+1)
    spread: np.ndarray
    drift: np.ndarray  # left side of Lemma C.2, $\mathbb E\|\bar{\mathbf y}_{t,i}-\mathbf x_{t_0}\|^2$, (T, I+1)
    cohort: np.ndarray  # left side of (6) at $\bar{\mathbf y}_{t,i}$, i < I, (T, I)
    participation: np.ndarray  # left side of (5) at $\mathbf x_{t_0}$, (T,)
    window: np.ndarray  # left side of (7) at $\mathbf x_{t_0}$, for the complete windows, (T // P,)
    interval: int  # P

    def constants(self, rounds: np.ndarray | int | None = None) -> dict[str, Constant]:
        r"""The divergences of Assumption 3' along the first rounds of the run: roots, unit f/x, source "trajectory"."""
        T = np.asarray(len(self.participation) if rounds is None else rounds)
        if (self.interval > T).any():
            raise FedboundsError(f"rounds = {T.min()} hold no complete window of interval = {self.interval}")
        windows = T // self.interval
        squares = {
            "cohort_divergence": (
                np.maximum.accumulate(self.cohort.max(axis=1))[T - 1],
                "largest value of (6) at the mean local iterates",
            ),
            "participation_divergence": (
                np.maximum.accumulate(self.participation)[T - 1],
                "largest value of (5) at the windows' starts",
            ),
            "window_divergence": (
                np.maximum.accumulate(self.window)[windows - 1],
                "largest value of (7) at the starts of the complete windows",
            ),
        }
        return {name: Constant(np.sqrt(square), "trajectory", note) for name, (square, note) in squares.items()}


def trajectory_quantities(
    algorithm: Algorithm, problem: Problem, q: np.ndarray, interval: int | None = None
) -> TrajectoryQuantities:
    r"""The quantities that the proof bounds, exactly.

    Source: Wang & Ji 2022, Lemmas C.1 and C.2, Assumption 3' and Appendix C.3.
    """
    P, multiplier = analysis_interval(algorithm, interval)
    coordinates = Coordinates.from_problem(require_quadratic(problem))
    weights = check_weights(q)
    if weights.shape[1] != problem.clients:
        raise FedboundsError(f"weights q are of {weights.shape[1]} clients, the problem has {problem.clients}")
    T, I, one = len(weights), algorithm.local.steps, coordinates.identity
    works = [coordinates.work(algorithm.local.step_size, steps) for steps in range(I + 1)]
    hessians, linear = coordinates.hessians, -coordinates.linear

    p = objective_weights(problem.clients, problem.client_weights)
    spread, drift, cohort = np.zeros((T, I + 1)), np.zeros((T, I + 1)), np.zeros((T, I))
    participation, window = np.zeros(T), np.zeros(T // P)
    state = State.begin(coordinates.start, np.zeros_like(one))
    for t, row in enumerate(weights):
        here = state.start, state.start_covariance
        participation[t] = _squared_distance(row - p, hessians, linear, *here)
        if t % P == 0 and t + P <= T:
            window[t // P] = _squared_distance(weights[t : t + P].mean(axis=0) - p, hessians, linear, *here)
        before = state.mean, state.covariance(one)
        reached = state
        for i, work in enumerate(works):
            law = RoundLaw(weighted_sum(row, work.increments), row @ work.shifts, weighted_sum(row**2, work.noise))
            reached = state.advance(law, one, law.noise)
            drift[t, i] = reached.squared_displacement()
            noise = weighted_sum(row * (1 - row), work.noise)
            spread[t, i] = _scatter(row, work.increments, work.shifts, *before) + trace(noise)
            if i < I:
                cohort[t, i] = _scatter(row, hessians, linear, reached.mean, reached.covariance(one))
        state = reached.amplify(multiplier, one) if (t + 1) % P == 0 else reached
    return TrajectoryQuantities(spread, drift, cohort, participation, window, P)


def analysis_interval(algorithm: Algorithm, interval: int | None) -> tuple[int, float]:
    r"""The interval P of the analysis, and $\eta$: the algorithm's own, or any P for $\eta=1$, as P is unused."""
    if not isinstance(algorithm, GeneralizedFedAvg | FedAvg):
        raise RUNS.not_covered(
            f"its results are about generalized FedAvg, not {algorithm.kind}: clients take plain SGD steps, and the "
            f"server adds a constant multiple of the mean update; nearest: {NEAREST} for generalized-fedavg"
        )
    if (departure := algorithm.departure) is not None:
        assumed, instead = ASSUMED_OF[departure.field]
        raise RUNS.not_covered(
            f"{algorithm.kind} has {departure.meaning}, and every result assumes {assumed}; nearest: {NEAREST} for a "
            f"run with {instead}"
        )
    own, multiplier = 1, 1.0
    if isinstance(algorithm, GeneralizedFedAvg):
        own, multiplier = algorithm.interval, algorithm.server_multiplier
    P = own if interval is None else check_count("interval", interval)
    if own != P and multiplier != 1:
        raise FedboundsError(f"interval = {P}, but the algorithm amplifies every {own} rounds")
    return P, multiplier


def _squared_distance(
    excess: np.ndarray, operators: np.ndarray, shifts: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> float:
    r"""$\mathbb E\|\sum_ne_n(O_nx+s_n)\|^2$ for $e_n$ that sum to zero."""
    if len(operators) == 1:
        total = excess @ shifts  # the operators cancel
        return float(total @ total)
    operator = weighted_sum(excess, operators)
    total = apply(operator, mean) + excess @ shifts
    return float(total @ total) + trace(sandwich(operator, covariance))


def _scatter(
    weights: np.ndarray, operators: np.ndarray, shifts: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> float:
    r"""$\sum_nq^n\mathbb E\|(O_n-O_q)x+s_n-s_q\|^2$ for weights that sum to one."""
    present = np.flatnonzero(weights)
    share = weights[present]
    apart = shifts[present] - share @ shifts[present]
    if len(operators) == 1:
        return float(share @ (apart**2).sum(axis=1))
    turned = operators[present] - weighted_sum(weights, operators)
    if turned.ndim == 2:
        apart = apart + turned * mean
        return float(share @ (apart**2).sum(axis=1) + share @ turned**2 @ covariance)
    apart = apart + turned @ mean
    return float(share @ (apart**2).sum(axis=1) + share @ ((turned @ covariance) * turned).sum(axis=(1, 2)))


DIVERGENCES = ("cohort_divergence", "participation_divergence", "window_divergence")
BOUNDED_DIVERGENCES = tuple(a.name for a in (assumptions.COHORT, assumptions.PARTICIPATION, assumptions.WINDOW))
EXPECTED_DIVERGENCES = tuple(
    assumptions.IN_EXPECTATION[a].name for a in (assumptions.COHORT, assumptions.PARTICIPATION, assumptions.WINDOW)
)
ABOUT_PARTICIPANTS = frozenset(
    a.name for a in (*assumptions.THEOREM, *assumptions.IN_EXPECTATION.values(), *assumptions.SCOPE)
)
NONE_STATED = "it is not bounded: the clients' gradients differ without bound"
NEAREST = "arbitrary-participation/theorem-3.1"
# by the argument that makes local steps others than those of Algorithm 1: what is assumed, and what has a bound
ASSUMED_OF = {
    "momentum": ("plain SGD steps (Algorithm 1, line 6)", "momentum = 0"),
    "step_size_schedule": ("one step size gamma in all rounds", "a constant local_step_size"),
    "local_steps": ("the same number I of local steps of all clients in all rounds", "equal local_steps"),
}
WHOLE = 1e-9  # relative distance from a whole number at which a prescribed interval is one


class ArbitraryParticipation(paper_runs.PaperRuns):
    """Generalized FedAvg with weights that sum to one."""

    authors = "Wang & Ji 2022"

    def covers_client_weights(self, form: Form) -> bool:
        """Where the form assumes nothing of clients but (5) to (7): then weights are those of more clients.

        With $M\\ge1/\\min_np_n$ clients in all, of which $M-N$ never participate and have the same function
        $\\sum_n\\frac{Mp_n-1}{M-N}F_n$, the mean of all functions is $\\sum_np_nF_n$, and (5) to (7) stay as they are.
        """
        return {a.name for a in form.assumptions} <= ABOUT_PARTICIPANTS

    def steps(self, setting: RunSetting, interval: int | None) -> paper_runs.PrescribedSteps:
        setting = _bind(setting)
        P, multiplier = analysis_interval(setting.algorithm, interval)
        return paper_runs.PrescribedSteps(
            P, {"gamma": setting.algorithm.local.step_size, "eta": multiplier, "P": float(P)}
        )

    def collect_facts(self, compared: paper_runs.ComparedRun) -> paper_runs.RunFacts:
        setting, interval, horizons = _bind(compared.setting), compared.interval, compared.horizons
        stated, wanted = paper_runs.run_constants(setting), compared.concepts
        divergences = bool(wanted & set(DIVERGENCES))
        known = divergences_of(setting.problem) if divergences else None
        constants: paper_runs.Constants = stated | _constants_of(setting.algorithm, interval) | compared.rounds
        if "participating_clients" in wanted and isinstance(setting.process, Full | WithoutReplacement):
            many = float(most_participants(setting.process))
            constants["participating_clients"] = Constant(many, "exact", "of the process")
        notes: tuple[str, ...] = ()
        if setting.q is not None:
            constants |= record_constants(setting.q, known, interval, horizons)
        else:
            constants |= process_constants(setting.process, known, interval, horizons)
            notes += (
                "averaged over participation: constants of participation are largest expected values over rounds",
            )
        if not isinstance(setting.problem, Synthetic):
            unknown = {name: NoConstant(NONE_STATED) for name in DIVERGENCES if known is None}
            measured, remarks = compared.measured_constants(
                stated | unknown, lambda: measure_along_run(setting, interval)
            )
            constants |= measured
            notes += remarks
        elif divergences and known is None:
            if setting.q is None:
                raise FedboundsError(
                    "the Hessians differ, so the divergences of Assumption 3' are known only along a run whose "
                    "participation is given: run a record of it (process.matrix(rounds, rng))"
                )
            run = trajectory_quantities(setting.algorithm, setting.problem, setting.q[: setting.total], interval)
            constants |= run.constants(horizons)
            notes += ("the Hessians differ: divergences are suprema along this run, not constants of the problem",)
        found = _found_assumptions(setting, compared.form, interval, int(horizons[-1]), constants)
        if known is not None:
            found |= dict.fromkeys(BOUNDED_DIVERGENCES if setting.q is not None else EXPECTED_DIVERGENCES, True)
        return compared.facts(constants, found, notes)

    def prescribe_algorithm(
        self, result: Result, form: Form, ahead: paper_runs.PlannedRun, given: Mapping[str, Value]
    ) -> Algorithm:
        record = isinstance(ahead.process, Recorded)
        q = ahead.process.matrix(ahead.rounds, np.random.default_rng()) if record else None  # a record draws nothing
        unknown = GeneralizedFedAvg(1.0, ahead.local_steps, 1.0, ahead.interval)
        setting = RunSetting.ahead(unknown, ahead.problem, ahead.process, q, ahead.rounds)
        own: dict[str, Value] = {name: 0.0 for name, symbol in result.notation.items() if symbol.concept in DIVERGENCES}
        own |= given  # divergences do not enter step sizes
        facts = self.collect_facts(
            paper_runs.ComparedRun(setting, form, result, ahead.interval, np.array([ahead.rounds]), frozenset(own))
        )
        steps, _ = paper_runs.evaluate_steps(result, form, facts.constants | own)
        P = steps.get("P", float(ahead.interval))
        if abs(P - round(P)) > WHOLE * P or round(P) < 1:
            raise FedboundsError(f"{result.key} [{form.name}] sets P = {P:.6g}, which is not a whole number of rounds")
        return GeneralizedFedAvg(steps["gamma"], ahead.local_steps, steps["eta"], round(P))


RUNS: paper_runs.PaperRuns = ArbitraryParticipation()


def divergences_of(problem: Problem) -> Divergences | None:
    """What is known of the clients' gradients at every x, or None where nothing is, as they differ without bound."""
    if isinstance(problem, Synthetic) and not (isinstance(problem, Quadratic) and not problem.shared):
        return Offsets(problem.offsets(), problem.client_weights)
    if isinstance(problem, ImageClassification) and problem.network.name == "linear" and not problem.weight_decay:
        return Bounds(problem.softmax.gradients, problem.client_weights)
    return None


def _bind(setting: RunSetting) -> RunSetting:
    """The run, with epochs as local steps."""
    algorithm = setting.algorithm
    bound = algorithm.bind_problem(setting.problem) if isinstance(algorithm, ConfigurableSteps) else algorithm
    return replace(setting, algorithm=bound)


def _constants_of(algorithm: Algorithm, interval: int) -> paper_runs.Constants:
    """Step sizes, local steps and interval of generalized FedAvg."""
    return paper_runs.algorithm_constants(
        local_step_size=algorithm.local.step_size,
        local_steps=algorithm.local.steps,
        server_multiplier=algorithm.server_multiplier if isinstance(algorithm, GeneralizedFedAvg) else 1.0,
        interval=interval,
    )


def is_regularized(q: np.ndarray | None, process: Process, interval: int, rounds: int, tolerance: float = 1e-9) -> bool:
    """Whether every client has mean weight 1/N over every complete aligned window of the first rounds."""
    if q is not None:
        return bool(np.allclose(window_means(q[:rounds], interval), 1 / q.shape[1], rtol=tolerance, atol=0))
    starts = range(1) if process.stationary else range(0, rounds - interval + 1, interval)
    return all(
        math.sqrt(max(float(np.diag(process.window_covariance(t0, interval)).max()), 0.0)) * process.clients < tolerance
        and np.allclose(process.window_mean(t0, interval), 1 / process.clients, rtol=tolerance, atol=0)
        for t0 in starts
    )


def _found_assumptions(
    setting: RunSetting, form: Form, interval: int, rounds: int, stated: paper_runs.Constants
) -> dict[str, bool]:
    """The assumptions of a form that can be checked on a run, and whether they hold."""
    process, given = setting.process, setting.q is not None
    found = paper_runs.problem_assumptions(setting, stated) | {
        "weights": True,  # or they would have been refused
        (assumptions.NORM if given else assumptions.EXPECTED_NORM).name: True,
        "exogenous-participation": True,
        "independent-rounds": process.independent_rounds,
        "window-variance": not given,
    }
    assumed = {assumption.name for assumption in form.assumptions}
    if "regularized" in assumed:
        found["regularized"] = is_regularized(setting.q, process, interval, rounds)
    if "unbiased-sampling" in assumed:
        found["unbiased-sampling"] = not given and _unbiased(process, rounds)
    return found


def _unbiased(process: Process, rounds: int) -> bool:
    """Whether in every round all clients have the same mean weight."""
    if process.unbiased:
        return True
    means = np.array([process.mean(t) for t in range(1 if process.stationary else rounds)])
    return bool(np.allclose(means, means[:, :1], rtol=1e-9, atol=0))
