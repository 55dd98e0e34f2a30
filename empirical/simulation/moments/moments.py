r"""The exact mean and covariance of the models of an algorithm on quadratics, without sampling anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, overload

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_memory
from fedbounds.empirical.algorithms import Algorithm, MinimaxAlgorithm, ServerSchedule, algorithms
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps
from fedbounds.empirical.algorithms.tiers import TieredAlgorithm
from fedbounds.empirical.participation import PeriodicGroups, Permutation, Process, Recorded
from fedbounds.empirical.participation.sampling import place_pairs
from fedbounds.empirical.participation.spec import Participation, as_process
from fedbounds.empirical.problems import Problem, Quadratic
from fedbounds.empirical.simulation.moments.local_work import Coordinates, LocalWork
from fedbounds.empirical.simulation.moments.minimax import MinimaxMoments, minimax_moments
from fedbounds.empirical.simulation.moments.rounds import RoundLaw, propagate, random_round, recorded_rounds
from fedbounds.empirical.simulation.moments.tiers import TierMoments, tier_moments
from fedbounds.empirical.simulation.runtime_estimate import check_work

MOST_ROUNDS = 2000  # where every pair of rounds has a covariance of its own, of which nothing else is known


def correlated_rounds(
    coordinates: Coordinates,
    work: LocalWork,
    process: Process,
    rounds: int,
    schedule: ServerSchedule,
    common: bool,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    r"""Mean and variances, each (d,), of $x_0,\dots,x_T$."""
    interval, multiplier, frozen = schedule
    increment, shifts, noise = work.increments[0], work.shifts, work.noise[0]
    pull = np.zeros_like(increment) if frozen else increment  # what the round does to the displacement so far
    ahead = center_covariances(process, shifts, rounds)
    start, start_variance = coordinates.start, np.zeros_like(increment)
    with_start = np.zeros((rounds, len(increment)))  # Cov(x_{t_0}, b_{q_u}) for rounds u from t on
    yield start, start_variance

    moved, mean_move, variance, with_move, both = _interval_begins(rounds, len(increment))
    for t in range(rounds):
        now = ahead(t)  # Cov(b_{q_t}, b_{q_u}) for rounds u from t on
        mean = process.mean(t)
        squares = 1.0 if common else float(mean @ mean + process.variance(t).sum())
        mean_move = mean_move + pull * mean_move + increment * start + mean @ shifts
        variance = (1 + pull) ** 2 * variance + now[0] + 2 * (1 + pull) * with_move[0] + squares * noise
        both = (1 + pull) * both + with_start[0]
        moved = moved + increment + pull * moved
        with_move = ((1 + pull) * with_move + now)[1:]
        with_start = with_start[1:]
        if (t + 1) % interval == 0:
            carry = 1 + multiplier * moved
            start = start + multiplier * mean_move
            start_variance = carry**2 * start_variance + multiplier**2 * variance + 2 * multiplier * carry * both
            with_start = carry * with_start + multiplier * with_move
            moved, mean_move, variance, with_move, both = _interval_begins(rounds - t - 1, len(increment))
            yield start, start_variance
        elif frozen:
            yield start, start_variance
        else:
            carry = 1 + moved
            yield start + mean_move, carry**2 * start_variance + variance + 2 * carry * both


def _interval_begins(rounds_left: int, dimension: int) -> tuple[np.ndarray, ...]:
    """Phi - 1, the mean displacement, Var u, Cov(u, b_{q_u}) for the rounds left, Cov(x_{t_0}, u): all zero."""
    zero = np.zeros(dimension)
    return zero, zero, zero, np.zeros((rounds_left, dimension)), zero


def center_covariances(process: Process, vectors: np.ndarray, rounds: int) -> Callable[[int], np.ndarray]:
    r"""Covariances, coordinate by coordinate, of $\sum_nq_t^na_n$ and $\sum_nq_u^na_n$ for all rounds u from t on.

    Stationary processes cost T covariances (N, N); permutations and periodic groups of G O(d) and O(slot + G d)
    for each pair of rounds; any other process a covariance (N, N) for each pair, which is refused beyond 2000 rounds.
    """
    centered = vectors - vectors.mean(axis=0)
    if process.stationary:
        rows = np.array([_along(process.covariance(0, lag), centered) for lag in range(rounds)])
        return lambda t: rows[: rounds - t]
    if isinstance(process, Permutation):
        N, S, squares = process.clients, process.participants, (centered**2).sum(axis=0)
        return lambda t: place_pairs(t, np.arange(t, rounds), S, N)[:, None] / (S * S * N) * squares
    if isinstance(process, PeriodicGroups):
        return _periodic_covariances(process, centered, rounds)
    if rounds > MOST_ROUNDS:
        raise FedboundsError(
            f"rounds = {rounds}: {process.kind} participation is not stationary, and exact moments over it need the "
            f"covariance of every pair of rounds; at most {MOST_ROUNDS}, or give a record of participation (a matrix)"
        )
    return lambda t: np.array([_along(process.covariance(t, u), centered) for u in range(t, rounds)])


def _along(covariance: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The diagonal of A^T C A for vectors A (N, d) and a covariance C (N, N): (d,)."""
    return ((covariance @ vectors) * vectors).sum(axis=0)


def _periodic_covariances(process: PeriodicGroups, vectors: np.ndarray, rounds: int) -> Callable[[int], np.ndarray]:
    """Periodic availability: who is available correlates all rounds, the sampling inside a group those of one slot."""
    S, sizes, groups = process.participants, process.sizes, len(process.sizes)
    inside = process.labels == np.arange(groups)[:, None]
    means = inside @ vectors / sizes[:, None]
    scatter = inside @ (vectors - means[process.labels]) ** 2

    first = np.arange(1, process.slot + 1) if process.offset is None else np.array([process.offset])
    after = np.arange(rounds) - first[:, None]  # (offsets, rounds)
    turn = after // process.slot + 1
    place = np.where(turn > 0, after % process.slot, np.arange(rounds))
    group = turn % groups
    one_hot = group[..., None] == np.arange(groups)
    # of the offsets, which share of the first k has each group available in each round: (offsets + 1, rounds, groups)
    shares = np.concatenate([np.zeros((1, rounds, groups)), np.cumsum(one_hot, axis=0)]) / len(first)

    def ahead(t: int) -> np.ndarray:
        near = slice(t, min(t + process.slot, rounds))
        out = np.zeros((rounds - t, vectors.shape[1]))
        edges = [0, *(np.flatnonzero(np.diff(turn[:, t])) + 1), len(first)]  # offsets with one group available at t
        mean = shares[-1, t] @ means
        for low, high in pairwise(edges):
            out += (means[group[low, t]] - mean) * ((shares[high, t:] - shares[low, t:]) @ means)

        n = sizes[group[:, t]][:, None]
        if process.sampling == "permutation":
            pairs = place_pairs(place[:, t, None], place[:, near], S, n)
        else:
            pairs = np.equal(place[:, t, None], place[:, near]) * S * (n - S) / np.maximum(n - 1, 1)
        pairs = pairs * (turn[:, t, None] == turn[:, near]) / (S * S * n * len(first))
        out[: pairs.shape[1]] += pairs.T @ one_hot[:, t] @ scatter
        return out

    return ahead


Noise = Literal["independent", "common"]
Label = Literal["exact", "exact given the record"]


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Exact expectations along a run of T rounds."""

    label: Label  # "exact", over gradient noise and participation; or "exact given the record", over gradient noise
    mean: np.ndarray  # $\mathbb Ex_t$, (T+1, d), units of x
    variance: np.ndarray  # of the components of $x_t$ along `directions`, (T+1, d), units of x^2
    # orthonormal columns, (d, d): eigenvectors of the Hessian if all clients share it, else unit vectors
    directions: np.ndarray
    gradient_norm_squared: np.ndarray  # $\mathbb E\|\nabla f(x_t)\|^2$, (T+1,); infinite beyond floating point
    objective_gap: np.ndarray  # $\mathbb Ef(x_t)-\min f$, (T+1,); infinite where f is unbounded below
    # algorithm, problem, participation, noise: what was run; a given matrix is a `Recorded` process
    algorithm: Algorithm
    problem: Quadratic
    participation: Process
    noise: Noise = "independent"

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.mean) - 1


@overload
def moments(
    algorithm: MinimaxAlgorithm,
    problem: Problem,
    participation: Participation,
    rounds: int | None = None,
    *,
    noise: Noise = "independent",
) -> MinimaxMoments: ...
@overload
def moments(
    algorithm: TieredAlgorithm,
    problem: Problem,
    participation: Participation,
    rounds: int | None = None,
    *,
    noise: Noise = "independent",
) -> TierMoments: ...
@overload
def moments(
    algorithm: Algorithm,
    problem: Problem,
    participation: Participation,
    rounds: int | None = None,
    *,
    noise: Noise = "independent",
) -> Moments: ...
@np.errstate(all="ignore")  # a run that diverges overflows, and its infinities say so
def moments(
    algorithm: Algorithm,
    problem: Problem,
    participation: Participation,
    rounds: int | None = None,
    *,
    noise: Noise = "independent",
) -> Moments | MinimaxMoments | TierMoments:
    r"""The exact moments of $x_0,\dots,x_T$ over gradient noise and, unless it is given, over participation.

    On quadratics a round is an affine map of the model, with weights and noise that are independent of it, so that mean
    and covariance obey a recursion of their own:

    - equal or diagonal Hessians, participation given or independent between rounds: O(d) a round and participant;
    - equal Hessians, any process whose weights sum to one: O(T d) a round, from its covariances over time;
    - different Hessians, participation given: O(d^3 + S d^2) a round;
    - different Hessians, participation independent between rounds: O(N d^3) a round, in two matrix products.

    Minimax algorithms on quadratic minimax problems have moments of their own kind, over clients drawn without
    replacement: see `fedbounds.empirical.simulation.moments.minimax`. Algorithms of silos have theirs on block
    quadratics, and on problems whose few rounds can be enumerated: see `fedbounds.empirical.simulation.moments.tiers`.

    Args:
        algorithm: generalized FedAvg with any step sizes, steps and interval, FedAvg, the frozen-gradient limit, or a
            baseline that waits for everyone and computes once per interval; FedAvg with constant weights, under
            independent rounds in which participants have weight 1/N, or a record; FedAU given a record; minimax
            algorithms without snapshots whose local steps are given.
        problem: a `Quadratic`; a `QuadraticMinimax` for minimax algorithms; a `BlockQuadratic` or another `Vertical`
            for algorithms of silos.
        participation: a process, its dictionary, or a record as `Recorded.read` takes it (at least T rounds).
        rounds: T; as many as a matrix has, if not given.
        noise: "independent" between clients, or "common" to all clients (equal Hessians only), which Wang & Ji 2022
            exclude without saying so.

    Raises:
        FedboundsError: the moments do not close: what is missing; or a number outside its domain.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
        >>> from fedbounds.empirical.problems import toy_example
        >>> amplified = GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3)
        >>> run = moments(amplified, toy_example(), np.tile(np.eye(3), (10, 1)))
        >>> run.label, run.gradient_norm_squared[[0, 3, 30]].round(10).tolist()
        ('exact given the record', [3.0239322566, 0.814487379, 0.0004398725])
        >>> from fedbounds.empirical.papers.fed_norm_sgda.algorithms import LocalSGDA
        >>> from fedbounds.empirical.participation import Full, WithoutReplacement
        >>> from fedbounds.empirical.problems import random_quadratic_minimax
        >>> game = moments(LocalSGDA(0.1, 0.2, 3), random_quadratic_minimax(4, 2, 2), WithoutReplacement(4, 2), 10)
        >>> game.envelope_gradient_norm_squared().shape
        (11,)
        >>> from fedbounds.empirical.papers.tdcd.algorithms import TDCD
        >>> from fedbounds.empirical.problems import random_block_quadratic
        >>> silos = moments(TDCD(0.1, 5), random_block_quadratic(2, 3, 4, noise=0.1), Full(6), 10)
        >>> silos.gradient_norm_squared.shape, silos.silo_variances[0].round(9).tolist()
        ((11,), [0.04, 0.04])

    Source: Wang & Ji 2022, Algorithm 1; the recursion for equal Hessians in
    `fedbounds.empirical.simulation.moments.moments`, for all others in
    `fedbounds.empirical.simulation.moments.rounds`.
    """
    if noise not in ("independent", "common"):
        raise unknown_name("noise", str(noise), ["independent", "common"])
    process = as_process(participation)
    process.require_one_update("exact moments")
    if rounds is None and isinstance(process, Recorded):
        rounds = process.rounds
    T = check_count("rounds", rounds)
    if isinstance(algorithm, MinimaxAlgorithm):
        if noise == "common":
            raise FedboundsError("noise = 'common' is not for minimax algorithms: their clients' noise is independent")
        algorithm.check(problem, T)
        check_work(algorithm, problem, T, 1, problem.dimension, closed=True)
        return minimax_moments(algorithm, problem, process, T)
    if isinstance(algorithm, TieredAlgorithm):
        if noise == "common":
            raise FedboundsError("noise = 'common' is for the problem to say if parameters lie in silos: shared_noise")
        algorithm.check(problem, T)
        check_work(algorithm, problem, T, 1, problem.dimension, closed=problem.affine)
        return tier_moments(algorithm, problem, process, T)
    algorithm.check(problem, T)
    quadratic = require_quadratic(problem)
    if process.clients != quadratic.clients:
        raise FedboundsError(f"participation is of {process.clients} clients, the problem has {quadratic.clients}")
    check_memory(
        f"the moments of rounds = {T} in dimension = {quadratic.dimension}", 16 * T * (quadratic.dimension + 1)
    )
    check_work(algorithm, problem, T, 1, quadratic.dimension, closed=True)
    algorithm = algorithm.bind_process(process).bind_problem(quadratic)
    if isinstance(algorithm, ConfigurableSteps) and algorithm.departure is not None:
        raise FedboundsError(
            f"exact moments need local SGD of one step size and number of steps: {algorithm.kind} has "
            f"{algorithm.departure.meaning}; simulate it instead"
        )
    coordinates = Coordinates.from_problem(quadratic)
    if noise == "common" and not quadratic.shared:
        raise FedboundsError("noise = 'common' needs equal Hessians: otherwise clients filter the noise differently")

    label: Label = "exact given the record" if isinstance(process, Recorded) else "exact"
    d = quadratic.dimension
    mean, variance, norm, gap = np.empty((T + 1, d)), np.empty((T + 1, d)), np.empty(T + 1), np.empty(T + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for t, (m, c) in enumerate(_path(algorithm, coordinates, process, T, common=noise == "common")):
            mean[t], variance[t] = m, c if c.ndim == 1 else np.diag(c)
            norm[t], gap[t] = coordinates.squared_gradient(m, c), coordinates.objective_gap(m, c)
        mean = mean @ coordinates.directions.T
    norm[np.isnan(norm)], gap[np.isnan(gap)] = np.inf, np.inf
    return Moments(label, mean, variance, coordinates.directions, norm, gap, algorithm, quadratic, process, noise)


def require_quadratic(problem: Problem) -> Quadratic:
    """The problem, if it is one whose moments close."""
    if not isinstance(problem, Quadratic):
        raise FedboundsError(
            f"exact moments need a Quadratic, the problem is {type(problem).__name__}: gradients that are not affine "
            "do not map means to means; simulate it instead"
        )
    return problem


def _schedule(algorithm: Algorithm) -> ServerSchedule:
    """How the server of an algorithm whose moments are known here moves the models."""
    found = algorithm.schedule
    if found is None:
        known = [kind for kind, each in algorithms().items() if each.schedule is not Algorithm.schedule]
        raise FedboundsError(f"exact moments of {algorithm.kind} are not known; known: {', '.join(known)}")
    return found


def _path(
    algorithm: Algorithm, coordinates: Coordinates, process: Process, rounds: int, *, common: bool
) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    """Mean and covariance of each model, in `coordinates`."""
    schedule, local = _schedule(algorithm), algorithm.local
    work = coordinates.work(local.step_size, local.steps, frozen=schedule.frozen, noisy=local.oracle == "stochastic")
    laws: Iterable[RoundLaw]
    if algorithm.waits is not None:
        laws = _waiting_rounds(algorithm.waits, work, rounds, common)
    elif isinstance(process, Recorded):
        q = process.matrix(rounds, np.random.default_rng())  # a record draws nothing
        laws = recorded_rounds(work, algorithm.reweigh_record(q), common=common)
    elif process.independent_rounds:
        weighed = algorithm.factor_weights(process)
        if weighed is None:
            raise FedboundsError(
                f"exact moments of {algorithm.kind} under {process.kind} participation are not known: its weights are "
                "no constants times independent ones; give a record (process.matrix(rounds, rng))"
            )
        process, omega = weighed
        laws = _independent_rounds(process, work, rounds, common, omega)
    elif coordinates.problem.shared and process.sums_to_one and not algorithm.own_weights:
        return correlated_rounds(coordinates, work, process, rounds, schedule, common)
    else:
        sums_to_one = process.sums_to_one and not algorithm.own_weights
        why = "the Hessians differ" if sums_to_one else "its weights do not sum to one"
        raise FedboundsError(
            f"{process.kind} participation depends on its past and {why}, so moments do not close; give a record of "
            "it (process.matrix(rounds, rng)), a process with independent rounds, or equal Hessians"
        )
    return propagate(coordinates, laws, schedule)


def _independent_rounds(
    process: Process, work: LocalWork, rounds: int, common: bool, omega: np.ndarray
) -> Iterator[RoundLaw]:
    """The laws of rounds that are independent of each other; the same one throughout if the process is stationary."""
    law, squares = None, np.outer(omega, omega)
    for t in range(rounds):
        if law is None or not process.stationary:
            law = random_round(work, omega * process.mean(t), squares * process.covariance(t, t), common=common)
        yield law


def _waiting_rounds(interval: int, work: LocalWork, rounds: int, common: bool) -> Iterator[RoundLaw]:
    """Everyone in the last round of each interval, nobody in the others."""
    clients = len(work.shifts)
    weights = np.zeros((2, clients))
    weights[1] = 1 / clients
    wait, step = recorded_rounds(work, weights, common=common)
    for t in range(rounds):
        yield wait if (t + 1) % interval else step
