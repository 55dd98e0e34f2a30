"""Exact moments against golden numbers, enumeration of all noise and all participation, simulation and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    Full,
    GroupMarkov,
    PeriodicGroups,
    Permutation,
    Process,
    Recorded,
    WithoutReplacement,
    WithReplacement,
)
from fedbounds.empirical.problems import CosineQuadratic, Quadratic, random_quadratic, toy_example
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.moments.local_work import powers
from fedbounds.empirical.simulation.simulate import simulate

Records = list[tuple[float, np.ndarray]]  # every record of participation with its probability

CYCLES = np.tile(np.eye(3), (10, 1))  # one client after another, ten times
HALVES = np.tile([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], (4, 1))


def four_clients(noise: float) -> Quadratic:
    return Quadratic([1.0, 0.25], [[2, 0], [-2, 4], [0, -4], [0, 0]], noise, [3, -2])


# --- golden numbers: exact recursions in double and high precision, printed to ten or twelve digits -------------


def test_toy_example_follows_the_golden_gradient_norms() -> None:
    run = moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), CYCLES)
    golden = [
        3.0239322566, 0.8144873790, 0.2234952276, 0.0634906053, 0.0191960011, 0.0064453691,
        0.0025357273, 0.0012242331, 0.0007344452, 0.0005313798, 0.0004398725,
    ]  # fmt: skip
    assert run.gradient_norm_squared[::3] == pytest.approx(golden, abs=0.51e-10)
    assert run.gradient_norm_squared[:-1].argmin() == 25
    assert run.gradient_norm_squared[25] == pytest.approx(0.0002409267, abs=0.51e-10)
    assert run.objective_gap[0] == pytest.approx(1.5119661282874153, abs=1e-15)


@pytest.mark.parametrize(
    ("noise", "golden"),
    [
        (0.0, [9.25, 8.512832077197, 2.582935035811, 2.381389383714, 0.782777806235,
               0.724506477057, 0.282241264196, 0.262830970480, 0.132121541779]),
        (0.5, [9.25, 8.512945093582, 2.590758210471, 2.388722623556, 0.792920351250,
               0.733993930066, 0.293184999419, 0.273071914910, 0.143420110377]),
    ],
)  # fmt: skip
def test_alternating_halves_follow_the_golden_gradient_norms(noise: float, golden: list[float]) -> None:
    run = moments(GeneralizedFedAvg(1 / 48, 2, 6, 2), four_clients(noise), HALVES)
    assert run.gradient_norm_squared == pytest.approx(golden, abs=0.51e-12)


@pytest.mark.parametrize(
    ("eta", "least", "at"), [(151.78932768808218, 0.0108095893, 147), (107.3312629199899, 0.0071290216, None)]
)
def test_step_sizes_of_corollaries_reach_the_golden_minimum(eta: float, least: float, at: int | None) -> None:
    algorithm = GeneralizedFedAvg(0.000736569563735987, 2, eta, 2)
    norms = moments(algorithm, four_clients(0.5), np.tile(HALVES, (100, 1)), 800).gradient_norm_squared[:-1]
    assert norms.min() == pytest.approx(least, abs=0.51e-10)
    assert at is None or norms.argmin() == at


# --- enumeration of the noise: only its mean and variance matter, so fair signs will do ------------------------


def enumerated_noise(
    problem: Quadratic, q: np.ndarray, steps: tuple[float, int, float, int], *, common: bool = False
) -> dict[str, np.ndarray]:
    """Algorithm 1 as the paper writes it (with the accumulator u), averaged over every sequence of signs.

    Returns:
        mean and second moment (T+1, d), (T+1, d, d), and the expectations of the squared gradient norm and of f.
    """
    gamma, I, eta, P = steps
    N, d = problem.clients, problem.dimension
    A = np.stack([problem.hessian(n).numpy() for n in range(N)])
    c, present = problem.centers.numpy(), [np.flatnonzero(row) for row in q]
    draws = sum(I * d * (1 if common else len(p)) for p in present)
    outcomes = 2**draws if problem.noise else 1
    bits = iter(range(draws))

    def sign() -> np.ndarray:
        if not problem.noise:
            return np.zeros((1, d))
        return np.stack([1.0 - 2.0 * (np.arange(outcomes) >> next(bits) & 1) for _ in range(d)], axis=1)

    x = np.tile(problem.x0.numpy(), (outcomes, 1))
    u, states = np.zeros_like(x), [x]
    for t, row in enumerate(q):
        shared = [sign() for _ in range(I)] if common else None
        update = np.zeros_like(x)
        for n in present[t]:
            y = x
            for i in range(I):
                noise = sign() if shared is None else shared[i]
                y = y - gamma * ((y - c[n]) @ A[n] + problem.noise * noise)
            update = update + row[n] * (y - x)
        x, u = x + update, u + update
        if (t + 1) % P == 0:
            x, u = x + (eta - 1) * u, np.zeros_like(x)
        states.append(x)
    xs = np.stack(states)  # (T+1, outcomes, d)
    gradients = np.mean([(xs - c[n]) @ A[n] for n in range(N)], axis=0)
    values = np.mean([(((xs - c[n]) @ A[n]) * (xs - c[n])).sum(-1) / 2 for n in range(N)], axis=0)
    return {
        "mean": xs.mean(axis=1),
        "second": np.einsum("tki,tkj->tij", xs, xs) / outcomes,
        "norm": (gradients**2).sum(-1).mean(axis=1),
        "value": values.mean(axis=1),
    }


def agrees(run, exact: dict[str, np.ndarray], rtol: float = 1e-12) -> None:
    """Mean, variances along the directions, squared gradient norm and objective gap."""
    assert run.mean == pytest.approx(exact["mean"], rel=rtol, abs=1e-13)
    covariance = exact["second"] - exact["mean"][:, :, None] * exact["mean"][:, None]
    variance = np.einsum("ji,tjk,ki->ti", run.directions, covariance, run.directions)
    assert run.variance == pytest.approx(variance, rel=1e-10, abs=1e-13)
    assert run.gradient_norm_squared == pytest.approx(exact["norm"], rel=rtol, abs=1e-13)
    assert run.objective_gap - run.objective_gap[0] == pytest.approx(
        exact["value"] - exact["value"][0], rel=1e-11, abs=1e-13
    )


SHARED = [[1.2, 0.5], [0.5, 0.7]]
DIFFERENT = [[[1.2, 0.5], [0.5, 0.7]], [[0.3, -0.2], [-0.2, 2.0]]]
CENTERS = [[1.0, -2.0], [0.5, 3.0]]
WEIGHTS = np.array([[0.3, 0.7], [1.0, 0.0]])


@pytest.mark.parametrize("hessians", [SHARED, DIFFERENT, [0.5, 1.5], [[[0.5, 0], [0, 1]], [[2, 0], [0, 0.1]]]])
@pytest.mark.parametrize("interval", [1, 2])
def test_given_participation_agrees_with_every_outcome_of_the_noise(hessians: list, interval: int) -> None:
    problem = Quadratic(hessians, CENTERS, 0.8, [2.0, 1.0])
    run = moments(GeneralizedFedAvg(0.3, 2, 2.5, interval), problem, WEIGHTS)
    assert run.label == "exact given the record"
    agrees(run, enumerated_noise(problem, WEIGHTS, (0.3, 2, 2.5, interval)))


@pytest.mark.parametrize("hessians", [[[1.3]], [[[1.3]], [[0.4]]]])
def test_a_tail_of_rounds_stays_unamplified_and_weights_need_not_sum_to_one(hessians: list) -> None:
    problem = Quadratic(hessians, [[1.0], [-2.0]], 0.8, [2.0])
    q = np.array([[0.3, 0.7], [0.9, 0.4], [0.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    run = moments(GeneralizedFedAvg(0.3, 2, 3.0, 2), problem, q)
    agrees(run, enumerated_noise(problem, q, (0.3, 2, 3.0, 2)))


def test_noise_common_to_all_clients_does_not_average_out() -> None:
    problem = Quadratic(SHARED, CENTERS, 0.8, [2.0, 1.0])
    run = moments(GeneralizedFedAvg(0.3, 2, 2.5, 2), problem, WEIGHTS, noise="common")
    agrees(run, enumerated_noise(problem, WEIGHTS, (0.3, 2, 2.5, 2), common=True))


# --- enumeration of participation: the average over every record of the moments given that record --------------


def rows(clients: int, participants: list[tuple[int, ...]]) -> np.ndarray:
    """The weights of rounds in which these places each count alike."""
    q = np.zeros((len(participants), clients))
    for row, places in zip(q, participants, strict=True):
        np.add.at(row, list(places), 1 / len(places))
    return q


def independent(choices: list[tuple[float, np.ndarray]], rounds: int) -> Records:
    """Every sequence of independent rounds, each of which has one of these rows."""
    return [
        (float(np.prod([p for p, _ in chosen])), np.stack([row for _, row in chosen]))
        for chosen in product(choices, repeat=rounds)
    ]


def subsets_record(N: int, S: int, rounds: int) -> Records:
    every = [rows(N, [places])[0] for places in permutations(range(N), S) if list(places) == sorted(places)]
    return independent([(1 / len(every), row) for row in every], rounds)


def places_record(N: int, S: int, rounds: int) -> Records:
    return independent([(N**-S, rows(N, [places])[0]) for places in product(range(N), repeat=S)], rounds)


def coins_record(p: tuple[float, ...], normalize: bool, rounds: int) -> Records:
    choices = []
    for present in product([0, 1], repeat=len(p)):
        chance = float(np.prod([a if here else 1 - a for a, here in zip(p, present, strict=True)]))
        share = max(sum(present), 1) if normalize else len(p)
        choices.append((chance, np.array(present) / share))
    return independent(choices, rounds)


def permutation_record(N: int, S: int, rounds: int, reshuffle: bool = True) -> Records:
    cycles = -(-rounds * S // N)
    orders = list(permutations(range(N)))
    runs = product(orders, repeat=cycles) if reshuffle else [(order,) * cycles for order in orders]
    places = [sum(run, ()) for run in runs]
    return [(1 / len(places), rows(N, [run[t * S : t * S + S] for t in range(rounds)])) for run in places]


def markov_record(groups: int, size: int, leave: float, rounds: int) -> Records:
    records = []
    for path in product(range(groups), repeat=rounds):
        chance = 1 / groups
        for a, b in pairwise(path):
            chance *= 1 - leave if a == b else leave / (groups - 1)
        records.append((chance, rows(groups * size, [tuple(range(g * size, g * size + size)) for g in path])))
    return records


def cyclic_record(N: int, rounds: int) -> Records:
    return [(1 / N, rows(N, [((t + phase) % N,) for t in range(rounds)])) for phase in range(N)]


def periodic_record(sizes: tuple[int, ...], slot: int, rounds: int, sampling: str) -> Records:
    """One client a round from the available group; its slots are independent and begun anew."""
    first = np.cumsum([0, *sizes])

    def slots(group: int, length: int) -> list[tuple[float, list[tuple[int, ...]]]]:
        members = range(first[group], first[group + 1])
        if sampling == "independent":
            runs = [list(run) for run in product(members, repeat=length)]
        else:
            cycles = -(-length // sizes[group])
            runs = [list(sum(run, ()))[:length] for run in product(list(permutations(members)), repeat=cycles)]
        return [(1 / len(runs), [(n,) for n in run]) for run in runs]

    records = []
    for offset in range(1, slot + 1):
        lengths = [offset, *[slot] * rounds]
        partial: list[tuple[float, list[tuple[int, ...]]]] = [(1 / slot, [])]
        turn = 0
        while len(partial[0][1]) < rounds:
            length = min(lengths[turn], rounds - len(partial[0][1]))
            some = slots(turn % len(sizes), length)
            partial = [(p * a, before + after) for p, before in partial for a, after in some]
            turn += 1
        records += [(p, rows(sum(sizes), run)) for p, run in partial]
    return records


PROCESSES: list[tuple[Process, Callable[[], Records]]] = [
    (Full(3), lambda: [(1.0, np.full((4, 3), 1 / 3))]),
    (WithoutReplacement(4, 2), lambda: subsets_record(4, 2, 3)),
    (WithReplacement(2, 2), lambda: places_record(2, 2, 3)),
    (Bernoulli(2, (0.2, 0.9)), lambda: coins_record((0.2, 0.9), True, 3)),
    (Bernoulli(2, (0.2, 0.9), normalize=False), lambda: coins_record((0.2, 0.9), False, 3)),
    (Cyclic(3), lambda: [(1.0, cyclic_record(3, 5)[0][1])]),
    (Cyclic(3, random_phase=True), lambda: cyclic_record(3, 7)),
    (Permutation(4, 2), lambda: permutation_record(4, 2, 4)),
    (Permutation(3, 2), lambda: permutation_record(3, 2, 4)),
    (Permutation(4, 1, reshuffle=False), lambda: permutation_record(4, 1, 6, reshuffle=False)),
    (GroupMarkov(4, 2, 0.3), lambda: markov_record(2, 2, 0.3, 6)),
    (GroupMarkov(3, 3, 0.2), lambda: markov_record(3, 1, 0.2, 4)),
    (PeriodicGroups(4, 1, 3, groups=2), lambda: periodic_record((2, 2), 3, 5, "permutation")),
    (PeriodicGroups(4, 1, 2, groups=[0, 1, 1, 1]), lambda: periodic_record((1, 3), 2, 5, "permutation")),
    (
        PeriodicGroups(4, 1, 2, groups=2, sampling="independent"),
        lambda: periodic_record((2, 2), 2, 5, "independent"),
    ),
]
NAMES = [f"{process.kind}-{k}" for k, (process, _) in enumerate(PROCESSES)]


def merged(records: Records) -> Records:
    """The same law, each record once."""
    chances: dict[bytes, float] = {}
    for p, q in records:
        chances[q.tobytes()] = chances.get(q.tobytes(), 0.0) + p
    return [(p, np.frombuffer(key).reshape(records[0][1].shape)) for key, p in chances.items()]


def total(algorithm, problem: Quadratic, records: Records) -> dict[str, np.ndarray]:
    """The law of total expectation and variance over records."""
    runs = [(p, moments(algorithm, problem, q)) for p, q in merged(records)]
    chances = np.array([p for p, _ in runs])
    assert chances.sum() == pytest.approx(1)

    def expected(values: list[np.ndarray]) -> np.ndarray:
        return np.tensordot(chances, values, axes=1)

    means = [run.mean @ run.directions for _, run in runs]
    within, between = expected([run.variance for _, run in runs]), expected((means - expected(means)) ** 2)
    return {
        "mean": expected([run.mean for _, run in runs]),
        "variance": within + between,
        "norm": expected([run.gradient_norm_squared for _, run in runs]),
        "gap": expected([run.objective_gap for _, run in runs]),
    }


def problem_for(process: Process, shared: bool) -> Quadratic:
    return random_quadratic(process.clients, 2, heterogeneity=2.0, shared=shared, noise=0.3, seed=process.clients)


ALGORITHMS = [
    GeneralizedFedAvg(0.4, 2, 1.7, 2),
    FedAvg(0.4, 3),
    FrozenGradient(0.2, 2, 2),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.kind)
@pytest.mark.parametrize(("process", "records"), PROCESSES, ids=NAMES)
def test_a_process_is_the_average_over_every_record_of_it(process: Process, records, algorithm) -> None:
    problem = problem_for(process, shared=True)
    every = records()
    run = moments(algorithm, problem, process, len(every[0][1]))
    exact = total(algorithm, problem, every)
    assert run.label == "exact"
    assert run.mean == pytest.approx(exact["mean"], rel=1e-12, abs=1e-13)
    assert run.variance == pytest.approx(exact["variance"], rel=1e-10, abs=1e-12)
    assert run.gradient_norm_squared == pytest.approx(exact["norm"], rel=1e-12)
    assert run.objective_gap == pytest.approx(exact["gap"], rel=1e-12)


INDEPENDENT = [(p, r) for p, r in PROCESSES if p.independent_rounds]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.kind)
@pytest.mark.parametrize(("process", "records"), INDEPENDENT, ids=lambda v: getattr(v, "kind", ""))
def test_independent_rounds_with_different_hessians_are_the_average_over_records(
    process: Process, records, algorithm
) -> None:
    problem = problem_for(process, shared=False)
    every = records()
    run = moments(algorithm, problem, process, len(every[0][1]))
    exact = total(algorithm, problem, every)
    assert run.mean == pytest.approx(exact["mean"], rel=1e-12, abs=1e-13)
    assert run.variance == pytest.approx(exact["variance"], rel=1e-10, abs=1e-12)
    assert run.gradient_norm_squared == pytest.approx(exact["norm"], rel=1e-12)


def test_groups_with_independent_rounds_and_different_hessians_need_no_exchangeable_clients() -> None:
    process = GroupMarkov(4, 2, leave=0.5)  # the next group is uniform: neither exchangeable nor independent clients
    assert process.independent_rounds
    problem, algorithm = problem_for(process, shared=False), ALGORITHMS[0]
    run = moments(algorithm, problem, process, 6)
    exact = total(algorithm, problem, markov_record(2, 2, 0.5, 6))
    assert run.gradient_norm_squared == pytest.approx(exact["norm"], rel=1e-12)


class Forgetful(Process):
    """Two clients; the first takes part in a round with a probability that changes from round to round."""

    kind, clients, independent_rounds, stationary = "forgetful", 2, True, False

    def draw(self, rng: np.random.Generator) -> Iterator:
        raise AssertionError("exact moments draw nothing")

    def mean(self, t: int) -> np.ndarray:
        return np.array([1 / (t + 2), 1 - 1 / (t + 2)])

    def covariance(self, t: int, u: int) -> np.ndarray:
        p = 1 / (t + 2)
        return p * (1 - p) * (t == u) * np.array([[1.0, -1.0], [-1.0, 1.0]])


def test_a_process_known_by_its_moments_alone_needs_no_sampler() -> None:
    records = [
        (float(np.prod([1 / (t + 2) if n == 0 else 1 - 1 / (t + 2) for t, n in enumerate(run)])), np.eye(2)[list(run)])
        for run in product([0, 1], repeat=4)
    ]
    for shared in (True, False):
        problem = problem_for(Forgetful(), shared)
        run = moments(ALGORITHMS[0], problem, Forgetful(), 4)
        exact = total(ALGORITHMS[0], problem, records)["norm"]
        assert run.gradient_norm_squared == pytest.approx(exact, rel=1e-12)


# --- simulation, step by step -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("process", [WithoutReplacement(5, 2), Permutation(5, 2), PeriodicGroups(6, 1, 3, groups=2)])
def test_simulation_agrees_within_its_standard_error(process: Process, shared: bool) -> None:
    problem = random_quadratic(process.clients, 3, heterogeneity=2.0, shared=shared, noise=0.5, seed=2)
    algorithm, seeds, rounds = GeneralizedFedAvg(0.2, 3, 1.5, 2), range(1500), 9
    if not (shared or process.independent_rounds):
        process = Recorded(process.matrix(rounds, np.random.default_rng(5)))
    run = moments(algorithm, problem, process, rounds)
    trace = simulate(algorithm, problem, process, rounds, seeds=seeds, engine="batched")
    norms = trace.gradient_norm_squared
    errors = norms.std(axis=0, ddof=1) / np.sqrt(len(seeds))
    assert (np.abs(norms.mean(axis=0) - run.gradient_norm_squared) <= 4 * errors + 1e-12).all()
    gaps = trace.objective_gap
    assert (
        np.abs(gaps.mean(axis=0) - run.objective_gap) <= 4 * gaps.std(axis=0, ddof=1) / len(seeds) ** 0.5 + 1e-12
    ).all()


@pytest.mark.parametrize("algorithm", [WaitMinibatch(0.3, 2, 3), WaitFull(0.3, 2, 3)])
@pytest.mark.parametrize("shared", [True, False])
def test_waiting_baselines_move_once_per_interval_with_everyone(algorithm, shared: bool) -> None:
    problem = random_quadratic(3, 2, shared=shared, noise=0.4)
    run = moments(algorithm, problem, WithoutReplacement(3, 1), 7)
    noise = 0.4 if algorithm.local.oracle == "stochastic" else 0.0
    quiet = random_quadratic(3, 2, shared=shared, noise=noise)
    everyone = moments(FedAvg(0.3, 2), quiet, Full(3), 2)
    assert run.label == "exact"
    assert run.gradient_norm_squared == pytest.approx(everyone.gradient_norm_squared[[0, 0, 0, 1, 1, 1, 2, 2]])


# --- limits and metamorphic relations ---------------------------------------------------------------------------


@pytest.mark.parametrize("process", [WithoutReplacement(4, 2), GroupMarkov(4, 2, 0.3)], ids=lambda p: p.kind)
def test_small_steps_with_a_large_multiplier_tend_to_the_frozen_gradient(process: Process) -> None:
    problem = problem_for(process, shared=True)
    small = moments(GeneralizedFedAvg(1e-9, 3, 1e8, 4), problem, process, 12).gradient_norm_squared[::4]
    frozen = moments(FrozenGradient(0.1, 3, 4), problem, process, 12).gradient_norm_squared[::4]
    assert small == pytest.approx(frozen, rel=1e-6)
    coarse = moments(GeneralizedFedAvg(1e-3, 3, 1e2, 4), problem, process, 12).gradient_norm_squared[::4]
    assert 1e-4 < np.abs(coarse / frozen - 1).max() < 0.1


def test_a_huge_multiplier_cancels_nothing() -> None:
    gamma, eta, P = Fraction(5, 10**8), Fraction(10**5), 100
    mean, variance, beta = Fraction(1), Fraction(0), 1 - gamma
    change = sum(beta**j for j in range(P)) * -gamma * eta
    spread = sum(beta ** (2 * j) for j in range(P)) * (gamma * eta) ** 2
    run = moments(GeneralizedFedAvg(5e-8, 1, 1e5, P), Quadratic([1.0], [[0.0]], 1.0, [1.0]), np.ones((3 * P, 1)))
    for k in range(1, 4):
        mean, variance = mean + change * mean, (1 + change) ** 2 * variance + spread
        assert run.gradient_norm_squared[k * P] == pytest.approx(float(mean**2 + variance), rel=1e-12)


def test_without_amplification_the_interval_changes_nothing() -> None:
    problem, process = problem_for(PROCESSES[7][0], shared=True), Permutation(4, 2)
    one, three = (moments(GeneralizedFedAvg(0.3, 2, 1.0, P), problem, process, 7) for P in (1, 3))
    assert one.gradient_norm_squared == pytest.approx(three.gradient_norm_squared, rel=1e-14)


@pytest.mark.parametrize("shared", [True, False])
def test_rotating_and_moving_the_coordinates_changes_no_expectation(shared: bool) -> None:
    problem = random_quadratic(4, 3, shared=shared, noise=0.3, heterogeneity=1.5)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    A, c, x0, move = problem.hessians.numpy(), problem.centers.numpy(), problem.x0.numpy(), np.array([1.0, -2.0, 3.0])
    moved = Quadratic(turn.T @ A @ turn, (c + move) @ turn, 0.3, (x0 + move) @ turn)
    process, algorithm = WithoutReplacement(4, 2), GeneralizedFedAvg(0.3, 2, 1.5, 2)
    before, after = moments(algorithm, problem, process, 6), moments(algorithm, moved, process, 6)
    assert after.gradient_norm_squared == pytest.approx(before.gradient_norm_squared, rel=1e-11)
    assert after.mean == pytest.approx((before.mean + move) @ turn, rel=1e-11)


def test_the_same_hessian_given_to_every_client_is_the_shared_one() -> None:
    """Different Hessians that differ by nothing but rounding go through the matrices, shared ones through variances."""
    problem = random_quadratic(4, 3, noise=0.3)
    A = problem.hessians.numpy()
    apart = np.stack([A, A, A, A + 1e-14 * np.eye(3)])
    different = Quadratic(apart, problem.centers.numpy(), 0.3, problem.x0.numpy())
    assert problem.shared and not different.shared
    for process in (WithoutReplacement(4, 2), Recorded(WithReplacement(4, 2).matrix(8, np.random.default_rng(0)))):
        runs = [moments(GeneralizedFedAvg(0.3, 2, 1.5, 2), p, process, 8) for p in (problem, different)]
        assert runs[0].gradient_norm_squared == pytest.approx(runs[1].gradient_norm_squared, rel=1e-11)
        assert runs[0].mean == pytest.approx(runs[1].mean, rel=1e-11)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("rate", ["0", "1/1000000000000000", "1/3", "1", "5/4", "2", "3"])
def test_powers_of_a_local_step_are_accurate_at_every_rate(rate: str, steps: int) -> None:
    r = Fraction(rate)
    change, squares = powers(np.array([float(r)]), steps)
    assert change[0] == pytest.approx(float((1 - r) ** steps - 1), rel=1e-13, abs=1e-300)
    assert squares[0] == pytest.approx(float(sum((1 - r) ** (2 * j) for j in range(steps))), rel=1e-13)


def test_an_objective_that_is_unbounded_below_has_an_infinite_gap() -> None:
    run = moments(FedAvg(0.1, 1), Quadratic([1.0, -0.5], [[0.0, 0.0]], 0.1, [1.0, 1.0]), np.ones((3, 1)))
    assert np.isinf(run.objective_gap).all() and np.isfinite(run.gradient_norm_squared).all()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("process", [WithoutReplacement(3, 1), GroupMarkov(3, 3, 0.2)], ids=lambda p: p.kind)
def test_a_run_that_leaves_floating_point_is_infinite_from_then_on(process: Process, shared: bool) -> None:
    if not shared and not process.independent_rounds:
        process = Recorded(process.matrix(400, np.random.default_rng(0)))
    problem = random_quadratic(3, 2, shared=shared, noise=0.1)
    run = moments(FedAvg(9.0, 1), problem, process, 400)
    assert np.isinf(run.gradient_norm_squared[-1]) and np.isinf(run.objective_gap[-1])
    beyond = np.isinf(run.gradient_norm_squared)
    assert (np.diff(beyond.astype(int)) >= 0).all() and not np.isnan(run.gradient_norm_squared).any()


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: moments(FedAvg(0.1, 1), CosineQuadratic([[0.0]], 1, 1), Full(1), 3), "need a Quadratic"),
        (
            lambda: moments(FedAvg(0.1, 1), random_quadratic(4, 2, shared=False), GroupMarkov(4, 2, 0.3), 3),
            "the Hessians differ.*give a record",
        ),
        (lambda: moments(WaitForAll(0.1, 1, 2), toy_example(), Full(3), 3), "wait-for-all are not known"),
        (lambda: moments(FedAvg(0.1, 1), toy_example(), Full(4), 3), "of 4 clients, the problem has 3"),
        (lambda: moments(FedAvg(0.1, 1), toy_example(), Full(3)), "rounds = None must be an integer"),
        (lambda: moments(FedAvg(0.1, 1), toy_example(), CYCLES, 31), r"rounds = 31 must be an integer in \[1, 30\]"),
        (lambda: moments(FedAvg(0.1, 1), toy_example(), -CYCLES), "negative"),
        (lambda: moments(FedAvg(0.1, 1), toy_example(), Full(3), 3, noise="shared"), "unknown noise 'shared'"),
        (
            lambda: moments(FedAvg(0.1, 1), random_quadratic(3, 2, shared=False), Full(3), 3, noise="common"),
            "needs equal Hessians",
        ),
    ],
)
def test_what_has_no_closed_moments_is_refused_in_one_line(call: Callable, words: str) -> None:
    with pytest.raises(FedboundsError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


def test_too_many_rounds_of_a_process_without_structure_are_refused() -> None:
    class Drifting(Forgetful):
        independent_rounds = False

    with pytest.raises(FedboundsError, match="at most 2000"):
        moments(FedAvg(0.1, 1), random_quadratic(2, 2), Drifting(), 2001)
    assert moments(FedAvg(0.1, 1), random_quadratic(2, 2), Drifting(), 5).label == "exact"
