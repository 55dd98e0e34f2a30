"""FedAU and its baselines: engines against pseudo-code, special cases, what must not matter, bad input."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import LocalSGD, Pairs, algorithm_from_spec
from fedbounds.empirical.algorithms.algorithm import RoundReport
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.fedau import pseudocode as pseudo_code
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    AverageAll,
    AverageParticipating,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)
from fedbounds.empirical.participation import (
    Bernoulli,
    CyclicClients,
    Full,
    Markovian,
    Recorded,
    Round,
    WithoutReplacement,
)
from fedbounds.empirical.problems import ImageClassification, Quadratic, random_cosine_quadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import Cohort
from fedbounds.empirical.simulation.reference_algorithms import local_update, run_reference, stochastic_oracle
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION, ROUNDS, SEEDS = 6, 4, 12, (0, 5)
RATES = (0.05, 0.2, 0.3, 0.4, 0.6, 0.9)
COINS = Bernoulli(CLIENTS, RATES, normalize=False)
STEPS = (0.05, 3, 2.0)  # gamma, I, eta
ALGORITHMS = [
    FedAU(*STEPS, cutoff=3),
    FedAU(*STEPS, cutoff=math.inf),
    FedAU(*STEPS, cutoff=4, rate=0.3),
    AverageParticipating(*STEPS),
    AverageAll(*STEPS),
    FixedWeights(0.05, 3, weights=[1.0, 2.0, 0.5, 3.0, 1.5, 2.5], server_multiplier=2.0),
    KnownParticipation(*STEPS, probability=RATES),
    FedVarp(*STEPS),
    MIFA(*STEPS),
]
EACH = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.kind} {getattr(a, 'cutoff', '')}")
AGGREGATIONS = [algorithm for algorithm in ALGORITHMS if not algorithm.needs_updates]
HESSIANS = {
    "shared": {"shared": True, "diagonal": False},
    "shared diagonal": {"shared": True, "diagonal": True},
    "different": {"shared": False, "diagonal": False},
    "different diagonal": {"shared": False, "diagonal": True},
}


@cache
def problem(name="different", noise=0.3):
    if name == "cosine":
        return random_cosine_quadratic(CLIENTS, DIMENSION, noise=noise, seed=1)
    return random_quadratic(CLIENTS, DIMENSION, noise=noise, seed=1, **HESSIANS[name])


def twin(algorithm, problem, process, seed, rounds=ROUNDS):
    streams = Streams(seed)
    q = process.matrix(rounds, streams.generator("participation"))
    return run_reference(algorithm, problem, q, streams).numpy()


def models(algorithm, problem, process, rounds=ROUNDS, seeds=SEEDS, **more):
    return simulate(algorithm, problem, process, rounds, seeds=seeds, record_models=True, **more).model


# --- number by number -------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("name", [*HESSIANS, "cosine"])
@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_engines_agree_with_the_pseudo_code_under_shared_noise(engine, name, algorithm):
    ours = models(algorithm, problem(name), COINS, engine=engine)
    for row, seed in enumerate(SEEDS):
        assert np.abs(ours[row] - twin(algorithm, problem(name), COINS, seed)).max() < 1e-10


@EACH
@pytest.mark.parametrize("name", HESSIANS)
def test_the_closed_form_agrees_with_the_pseudo_code_without_noise(name, algorithm):
    ours = models(algorithm, problem(name, 0.0), COINS, engine="closed form")
    for row, seed in enumerate(SEEDS):
        assert np.abs(ours[row] - twin(algorithm, problem(name, 0.0), COINS, seed)).max() < 1e-10


@EACH
def test_engines_agree_with_the_pseudo_code_on_a_network(algorithm):
    digits = load_dataset("digits")
    partition = majority_class_partition(digits.train_labels, 10, np.random.default_rng(0))
    images = ImageClassification(digits, partition, "mlp", batch=4, dtype=torch.float64)
    fields = {"weights": 1.5} if isinstance(algorithm, FixedWeights) else {}
    fields |= {"probability": 0.3} if isinstance(algorithm, KnownParticipation) else {}
    algorithm = algorithm_from_spec(algorithm.spec() | fields)
    coins = Bernoulli(10, 0.3, normalize=False)
    ours = models(algorithm, images, coins, rounds=6)
    assert np.abs(ours[1] - twin(algorithm, images, coins, 5, rounds=6)).max() < 1e-10


@EACH
@pytest.mark.parametrize("engine", ["sequential", "batched", "closed form"])
def test_a_seed_does_not_depend_on_the_seeds_beside_it(engine, algorithm):
    together = models(algorithm, problem(), COINS, seeds=(8, 3, 5), engine=engine)
    assert np.abs(together[1] - models(algorithm, problem(), COINS, seeds=(3,), engine=engine)[0]).max() < 1e-13


@EACH
def test_a_seed_that_diverges_leaves_the_others_their_estimates_and_stored_updates(algorithm):
    """Gradient descent on x^4/4 from a random start: x - x^3/2 contracts for |x| < 2 and explodes beyond."""

    class Quartic(type(problem("cosine"))):
        def initial_point(self, rng):
            return torch.from_numpy(2 * rng.standard_normal(1))

        def objective_gradient(self, x):
            return x**3

    quartic = Quartic(np.zeros((CLIENTS, 1)), 1.0, 0.0)
    steep = algorithm_from_spec(algorithm.spec() | {"local_step_size": 0.3, "local_steps": 2})
    trace = simulate(steep, quartic, COINS, 40, seeds=range(12), record_every=4)
    assert {"done", "diverged"} == set(trace.statuses)
    assert trace.statuses.index("diverged") < len(trace.statuses) - 1 - trace.statuses[::-1].index("done")
    for row in np.flatnonzero(np.array(trace.statuses) == "done")[-2:]:
        alone = simulate(steep, quartic, COINS, 40, seeds=[int(row)], record_every=4)
        assert np.allclose(trace.gradient_norm_squared[row], alone.gradient_norm_squared[0], rtol=1e-12)


@pytest.mark.parametrize("algorithm", AGGREGATIONS, ids=lambda a: a.kind)
def test_the_weights_applied_to_a_record_are_those_of_the_rounds(algorithm):
    """With one's own unit vector as update, the model adds the weights up: F_n = -<e_n, x>, one local step."""
    slopes = np.eye(CLIENTS) - 1 / CLIENTS  # of mean zero; the record needs the weights' differences only
    linear = random_cosine_quadratic(CLIENTS, CLIENTS, noise=0.0, seed=1)
    linear.slopes, linear.curvature, linear.ripple = torch.from_numpy(-slopes), 0.0, 0.0
    one_step = algorithm_from_spec(algorithm.spec() | {"local_step_size": 1.0, "local_steps": 1})
    q = COINS.matrix(30, np.random.default_rng(3))
    got = np.diff(models(one_step, linear, q, 30, seeds=(0,))[0], axis=0)
    applied = algorithm.applied(q > 0)
    assert ((applied > 0) == (q > 0)).all()
    assert got == pytest.approx(algorithm.server_multiplier * applied @ slopes, abs=1e-12)


# --- the proofs' form, special cases ----------------------------------------------------------------------------------


def algorithm_3(problem, q, x0, streams, compute_weight, *, local_step_size, local_steps, server_multiplier):
    """The form used in the proofs: all clients compute, and the indicator stands in the sum."""
    gamma, eta, I = local_step_size, server_multiplier, local_steps
    present = q != 0
    T, N = q.shape
    x = [x0]
    for t in range(T):
        total = torch.zeros_like(x0)
        for n in range(N):
            Delta = local_update(stochastic_oracle(problem, n, t, streams), x[t], gamma, I)
            total = total + float(present[t, n]) * compute_weight(n, present[:t, n].tolist()) * Delta
        x.append(x[t] + eta / N * total)
    return x


@pytest.mark.parametrize("name", ["different", "cosine"])
def test_algorithm_1_and_the_form_in_which_all_clients_compute_give_the_same_models(name):
    q, numbers = COINS.matrix(ROUNDS, np.random.default_rng(0)), {"local_step_size": 0.05, "local_steps": 3}
    arguments = problem(name), q, problem(name).x0, Streams(7)

    def weight(n, record):
        return pseudo_code.fedau_weight(record, 3)

    first, third = (
        torch.stack(form(*arguments, weight, **numbers, server_multiplier=2.0))
        for form in (pseudo_code.algorithm_1, algorithm_3)
    )
    assert torch.equal(first, third)
    assert torch.allclose(first, run_reference(FedAU(*STEPS, cutoff=3), problem(name), q, Streams(7)), atol=1e-13)


def test_with_a_cutoff_of_one_fedau_averages_all():
    one, all_of_them = FedAU(*STEPS, cutoff=1), AverageAll(*STEPS)
    assert np.array_equal(models(one, problem(), COINS), models(all_of_them, problem(), COINS))


@pytest.mark.parametrize("cutoff", [1, 3, math.inf])
def test_with_everyone_always_there_every_method_is_local_sgd(cutoff):
    everyone = [
        FedAU(*STEPS, cutoff=cutoff),
        *(kind(*STEPS) for kind in (AverageParticipating, AverageAll, KnownParticipation, FedVarp, MIFA)),
    ]
    local_sgd = models(GeneralizedFedAvg(*STEPS), problem(noise=0.0), Full(CLIENTS))
    for algorithm in everyone:
        assert models(algorithm, problem(noise=0.0), Full(CLIENTS)) == pytest.approx(local_sgd, abs=1e-12)


def test_any_cutoff_from_the_number_of_rounds_on_is_none():
    runs = [models(FedAU(*STEPS, cutoff=K), problem(), COINS) for K in (ROUNDS, ROUNDS + 7, math.inf)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


def test_averaging_all_is_fedavg_with_weights_one_over_n():
    fedavg = models(FedAvg(0.05, 3), problem(), COINS)
    assert models(AverageAll(0.05, 3), problem(), COINS) == pytest.approx(fedavg, abs=1e-14)


def test_averaging_participants_is_fedavg_with_weights_that_share_one():
    normalized = Bernoulli(CLIENTS, RATES)
    assert models(AverageParticipating(0.05, 3), problem(), COINS) == pytest.approx(
        models(FedAvg(0.05, 3), problem(), normalized), abs=1e-13
    )


@EACH
def test_only_who_takes_part_matters_not_with_which_weight(algorithm):
    normalized = Bernoulli(CLIENTS, RATES)
    assert np.array_equal(models(algorithm, problem(), COINS), models(algorithm, problem(), normalized))


def test_scaling_the_weights_up_and_the_multiplier_down_changes_nothing():
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.5, 2.5])
    two_ways = [FixedWeights(0.05, 3, weights * s, 2.0 / s) for s in (1.0, 4.0)]
    first, second = (models(algorithm, problem(), COINS) for algorithm in two_ways)
    assert first == pytest.approx(second, abs=1e-13)


PAST_ONLY = [a for a in AGGREGATIONS if not isinstance(a, AverageParticipating)]  # its weights depend on the round


@pytest.mark.parametrize("algorithm", PAST_ONLY, ids=lambda a: a.kind)
def test_the_mean_step_is_the_weighted_mean_of_the_mean_updates(algorithm):
    """Given the weights, E x_{t+1} - x_t = (eta/N) sum p_n omega_n E Delta_n; over all 2^N outcomes of a round."""
    quiet, past = problem(noise=0.0), COINS.matrix(8, np.random.default_rng(5))
    p = np.array(RATES)
    everyone = np.vstack([past, np.full((1, CLIENTS), 1 / CLIENTS)])
    omega = CLIENTS * algorithm.applied(everyone > 0)[-1]
    x = models(algorithm, quiet, past, 8, seeds=(0,))[0, -1]
    clients, start = torch.arange(CLIENTS)[None], torch.from_numpy(x).expand(1, CLIENTS, -1)
    updates = LocalSGD(0.05, 3).update(start, lambda y: quiet.gradient(y, clients))[0].numpy()
    mean = np.zeros(DIMENSION)
    for code in range(2**CLIENTS):
        present = np.array([code >> n & 1 for n in range(CLIENTS)])
        record = np.vstack([past, present[None]])
        step = np.diff(models(algorithm, quiet, record, 9, seeds=(0,))[0, -2:], axis=0)[0]
        mean += np.where(present, p, 1 - p).prod() * step
    assert mean == pytest.approx(2.0 / CLIENTS * (p * omega) @ updates, abs=1e-13)
    if isinstance(algorithm, KnownParticipation):  # unbiased: the step of full participation
        assert mean == pytest.approx(2.0 * updates.mean(axis=0), abs=1e-13)


@EACH
def test_shifting_the_origin_shifts_the_models(algorithm):
    shift, quadratic = torch.arange(1.0, DIMENSION + 1, dtype=torch.float64), problem()
    moved = Quadratic(quadratic.hessians, quadratic.centers + shift, quadratic.noise, quadratic.x0 + shift)
    expected = models(algorithm, quadratic, COINS, engine="batched") + shift.numpy()
    assert models(algorithm, moved, COINS, engine="batched") == pytest.approx(expected, abs=1e-12)


@EACH
def test_everyone_sees_the_same_participation_whatever_the_algorithm_and_its_weights(algorithm):
    record = simulate(algorithm, problem(), COINS, ROUNDS, seeds=SEEDS, record_participation=True)
    plain = simulate(FedAvg(0.1, 1), problem("shared"), COINS, ROUNDS, seeds=SEEDS, record_participation=True)
    for seed in SEEDS:
        assert np.array_equal(record.participation(seed), plain.participation(seed))


def test_weights_look_at_the_past_only():
    """Changing who takes part from round 6 on changes no model up to x_6, and x_7 only through who takes part."""
    q = COINS.matrix(ROUNDS, np.random.default_rng(0))
    other = q.copy()
    other[6:] = COINS.matrix(ROUNDS, np.random.default_rng(1))[6:]
    runs = [models(FedAU(*STEPS, cutoff=3), problem(), record, seeds=(0,))[0] for record in (q, other)]
    assert np.array_equal(runs[0][:7], runs[1][:7]) and not np.array_equal(runs[0][7], runs[1][7])


# --- nobody there, and clients that never come ------------------------------------------------------------------------


@EACH
def test_an_empty_round_changes_nothing_except_with_mifa(algorithm):
    q = np.zeros((5, CLIENTS))
    q[0, :2], q[3, 2:4] = 1, 1
    trace = simulate(algorithm, problem(noise=0.0), q, 5, record_models=True)
    moved = np.abs(np.diff(trace.model[0], axis=0)).max(axis=1) > 0
    assert trace.empty_rounds[0] == 3
    assert moved.tolist() == [True, isinstance(algorithm, MIFA), isinstance(algorithm, MIFA), True, moved[-1]]
    assert moved[-1] == isinstance(algorithm, MIFA)


def test_a_seed_without_participants_beside_one_with_some():
    """Unequal cohorts in one batch: the divisor of each seed is its own."""
    q = [Round(np.array([0, 2]), np.full(2, 1 / CLIENTS)), Round(np.zeros(0, dtype=np.int64), np.zeros(0))]
    drawn = Cohort.from_rounds(q)
    assert AverageParticipating(*STEPS).cohort(None, 0, drawn, CLIENTS).weights.tolist() == [0.5, 0.5]
    algorithm = FedVarp(0.1, 1, 1.0)
    state = algorithm.init(torch.zeros(2, 1, dtype=torch.float64), CLIENTS)
    index = [torch.from_numpy(names) for names in (drawn.seeds, drawn.clients, drawn.weights)]
    pairs = Pairs(*index, updates=torch.tensor([[3.0], [6.0]], dtype=torch.float64))
    state = algorithm.server_update(state, 0, RoundReport(torch.zeros(2, 1), drawn, pairs))
    assert state.model.tolist() == [[4.5], [0.0]] and state.mean.tolist() == [[1.5], [0.0]]


@EACH
def test_a_client_that_never_takes_part_plays_no_role_but_counts_in_n(algorithm):
    """Its gradients may be anything; dividing by N it slows the others down."""
    q = COINS.matrix(ROUNDS, np.random.default_rng(0))
    q[:, 0] = 0
    quadratic = problem()
    centers = quadratic.centers.clone()
    centers[0] += 100
    elsewhere = Quadratic(quadratic.hessians, centers, quadratic.noise, quadratic.x0)
    runs = [models(algorithm, each, q, seeds=(0,), engine="batched") for each in (quadratic, elsewhere)]
    assert np.array_equal(*runs)


# --- what the oracle of rates knows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [COINS, Markovian(CLIENTS, RATES), CyclicClients(CLIENTS, RATES, cycle=20)])
def test_known_participation_takes_the_rates_of_the_process_if_none_are_given(process):
    given = KnownParticipation(*STEPS, probability=process.rates)
    assert np.array_equal(models(KnownParticipation(*STEPS), problem(), process), models(given, problem(), process))


def test_where_the_rates_are_not_known_they_must_be_given():
    with pytest.raises(FedboundsError, match="rates of without-replacement participation are not known: give them"):
        models(KnownParticipation(*STEPS), problem(), WithoutReplacement(CLIENTS, 2))
    with pytest.raises(FedboundsError, match=r"probability\[0\] = 0 must be in \(0, 1\]: who never takes part"):
        models(KnownParticipation(*STEPS), problem(), Bernoulli(CLIENTS, [0, *RATES[1:]], normalize=False))


def test_the_rates_are_learned_in_every_phase_anew():
    phases = [(AverageAll(*STEPS), 4), (KnownParticipation(*STEPS), 4), (FedAU(*STEPS, cutoff=2), 4)]
    trace = simulate(None, problem(), COINS, phases=phases, record_models=True, record_participation=True)
    q = trace.participation(0)
    again = simulate(
        None, problem(), Recorded(q), phases=[phases[0], (KnownParticipation(*STEPS, RATES), 4), phases[2]]
    )
    assert np.allclose(trace.gradient_norm_squared, again.gradient_norm_squared, rtol=1e-12)


# --- memory -----------------------------------------------------------------------------------------------------------


def held(algorithm, clients, dimension):
    """Bytes of an algorithm's state for one seed."""
    state = algorithm.init(torch.zeros(1, dimension), clients)
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in state}.values())


def test_fedau_holds_three_numbers_per_client_and_the_others_a_model_per_client():
    N, d = 250, 100_000
    plain = held(AverageParticipating(*STEPS), N, d)
    assert plain == 4 * d
    assert held(FedAU(*STEPS), N, d) == plain + N * (8 + 4 + 4) < 1.1 * plain
    for greedy in (FedVarp(*STEPS), MIFA(*STEPS)):
        assert N * plain < held(greedy, N, d) < (N + 4) * plain


@pytest.mark.parametrize("kind", [FedVarp, MIFA])
def test_stored_updates_are_overwritten_in_place_and_refused_where_they_cannot_fit(kind):
    algorithm = kind(0.1, 1)
    state = algorithm.init(torch.zeros(1, 2), 3)
    drawn = Cohort.from_rounds([Round(np.array([1]), np.array([1.0]))])
    pairs = Pairs(torch.tensor([0]), torch.tensor([1]), torch.tensor([1.0]), torch.ones(1, 2))
    after = algorithm.server_update(state, 0, RoundReport(torch.zeros(1, 2), drawn, pairs))
    assert after.own.data_ptr() == state.own.data_ptr()
    with pytest.raises(FedboundsError, match=f"{algorithm.kind} keeps the updates of clients = {2**40}.*memory"):
        algorithm.init(torch.zeros(1, 2), 2**40)


# --- bad input --------------------------------------------------------------------------------------------------------

TWO_SIDED = {"local_step_size": 0.1, "local_steps": 2}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"kind": "fedau", "cutoff": 0}, "cutoff = 0 must be an integer >= 1"),
        ({"kind": "fedau", "cutoff": 2.5}, "cutoff = 2.5 must be an integer >= 1"),
        ({"kind": "fedau", "cutoff": None}, "cutoff = None must be an integer >= 1"),
        ({"kind": "fedau", "rate": 0}, r"rate = 0 must be a number in \(0, 1\]"),
        ({"kind": "fedau", "cut_off": 5}, "unknown key of algorithm 'fedau': 'cut_off'; did you mean cutoff"),
        ({"kind": "known-participation", "probability": 0}, r"probability = 0 must be in \(0, 1\]: who never"),
        ({"kind": "known-participation", "probability": [0.5, 1.2]}, r"probability\[1\] = 1.2 must be a number"),
        ({"kind": "known-participation", "probability": []}, r"probability = \[\] must be a number"),
        ({"kind": "fixed-weights"}, "algorithm 'fixed-weights' needs weights"),
        ({"kind": "fixed-weights", "weights": [1, -2]}, r"weights\[1\] = -2 must be"),
        ({"kind": "average-all", "server_multiplier": 0}, r"server_multiplier = 0 must be a number in \(0, inf\)"),
        ({"kind": "mifa", "local_steps": 0}, "local_steps = 0 must be an integer >= 1"),
    ],
)  # fmt: skip
def test_a_bad_specification_is_refused_in_one_line(spec, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        algorithm_from_spec(TWO_SIDED | spec)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("algorithm", [FixedWeights(0.1, 1, [1.0, 2.0]), KnownParticipation(0.1, 1, probability=[0.5])])
def test_weights_of_another_number_of_clients_are_refused(algorithm):
    with pytest.raises(FedboundsError, match=f"{algorithm.kind} has weights of [12] clients, the problem has 6"):
        models(algorithm, problem(), COINS)


@EACH
def test_a_spec_gives_the_algorithm_back(algorithm):
    assert algorithm_from_spec(algorithm.spec()) == algorithm


def test_a_cutoff_may_be_infinite():
    assert algorithm_from_spec(TWO_SIDED | {"kind": "fedau", "cutoff": math.inf}).cutoff == math.inf
    assert algorithm_from_spec(TWO_SIDED | {"kind": "fedau"}).cutoff == 50
