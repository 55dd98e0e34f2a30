"""Engines against the slow twins, number by number, and what a seed's result may not depend on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import Partition, majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Bernoulli, Process, Round, WithoutReplacement
from fedbounds.empirical.problems import (
    CosineQuadratic,
    ImageClassification,
    Problem,
    QuadraticMinimax,
    image_problem,
    random_cosine_quadratic,
    random_quadratic,
)
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import Cohort, choose_engine, local_steps
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION, ROUNDS = 7, 4, 9
ALGORITHMS = [
    GeneralizedFedAvg(0.05, 3, server_multiplier=4.0, interval=4),
    FedAvg(0.05, 3),
    WaitMinibatch(0.05, 3, interval=4),
    WaitFull(0.05, 3, interval=4),
    WaitForAll(0.05, 3, interval=4),
    FrozenGradient(0.05, 3, interval=4),
]
BY_KIND = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.kind)
HESSIANS = {
    "shared": {"shared": True, "diagonal": False},
    "shared diagonal": {"shared": True, "diagonal": True},
    "different": {"shared": False, "diagonal": False},
    "different diagonal": {"shared": False, "diagonal": True},
}


@cache
def problem(name: str, noise: float = 0.0) -> Problem:
    if name in HESSIANS:
        return random_quadratic(CLIENTS, DIMENSION, noise=noise, seed=1, **HESSIANS[name])
    if name == "cosine":
        return random_cosine_quadratic(CLIENTS, DIMENSION, noise=noise, seed=1)
    digits = load_dataset("digits")
    partition = majority_class_partition(digits.train_labels, 10, np.random.default_rng(0))
    network, dtype = name.split()
    return ImageClassification(digits, partition, network, batch=4, dtype=getattr(torch, dtype))


def twin(algorithm, problem, process, seed, rounds=ROUNDS) -> np.ndarray:
    """x_0, ..., x_T of one seed, by the slow twin."""
    streams = Streams(seed)
    q = process.matrix(rounds, streams.generator("participation"))
    return run_reference(algorithm, problem, q, streams).numpy()


def fast(algorithm, problem, process, seeds, engine, rounds=ROUNDS) -> np.ndarray:
    """The same for several seeds at once, by an engine."""
    return simulate(algorithm, problem, process, rounds, seeds=seeds, engine=engine, record_models=True).model


# --- number by number -------------------------------------------------------------------------------------


@BY_KIND
@pytest.mark.parametrize("name", [*HESSIANS, "cosine"])
@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_engines_agree_with_the_slow_twin_under_shared_noise(engine, name, algorithm):
    """Also with cohorts of unequal size (Bernoulli participation) and rounds without anybody."""
    noisy, process, seeds = problem(name, 0.3), Bernoulli(CLIENTS, 0.3), (0, 5)
    ours = fast(algorithm, noisy, process, seeds, engine)
    for row, seed in enumerate(seeds):
        assert np.abs(ours[row] - twin(algorithm, noisy, process, seed)).max() < 1e-10


@BY_KIND
@pytest.mark.parametrize("name", HESSIANS)
def test_the_closed_form_agrees_with_the_slow_twin_without_noise(name, algorithm):
    process, seeds = Bernoulli(CLIENTS, 0.3), (0, 5)
    ours = fast(algorithm, problem(name), process, seeds, "closed form")
    for row, seed in enumerate(seeds):
        assert np.abs(ours[row] - twin(algorithm, problem(name), process, seed)).max() < 1e-10


@BY_KIND
@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_engines_agree_with_the_slow_twin_on_a_network_in_double_precision(engine, algorithm):
    images, process = problem("mlp float64"), WithoutReplacement(10, 3)
    ours = fast(algorithm, images, process, (0, 5), engine, rounds=5)
    assert np.abs(ours[1] - twin(algorithm, images, process, 5, rounds=5)).max() < 1e-10


@pytest.mark.parametrize("network", ["mlp", "cnn"])
@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_engines_agree_with_the_slow_twin_on_a_network_in_single_precision(engine, network):
    """1e-5 relative to the size of a round's step, round by round from the twin's own models."""
    images, process = problem(f"{network} float32"), WithoutReplacement(10, 3)
    ours = fast(FedAvg(0.05, 3), images, process, (0, 5), engine, rounds=1)
    theirs = twin(FedAvg(0.05, 3), images, process, 5, rounds=1)
    assert np.linalg.norm(ours[1, 1] - theirs[1]) < 1e-5 * np.linalg.norm(theirs[1])
    assert np.linalg.norm(ours[1, 1] - theirs[1]) < 1e-4 * np.linalg.norm(theirs[1] - theirs[0])


def test_batches_of_any_size_give_the_same_numbers(monkeypatch):
    noisy, process = problem("different", 0.3), WithoutReplacement(CLIENTS, 3)
    whole = fast(ALGORITHMS[4], noisy, process, (0, 5), "batched")
    monkeypatch.setattr(local_steps, "AT_ONCE", 4 * DIMENSION)  # 6 pairs in batches of 4 and 2, 1 and 2 steps ahead
    assert np.abs(fast(ALGORITHMS[4], noisy, process, (0, 5), "batched") - whole).max() < 1e-14


# --- what a result may not depend on ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "closed form"])
@pytest.mark.parametrize("name", HESSIANS)
def test_a_seed_does_not_depend_on_the_seeds_beside_it(name, engine):
    process = Bernoulli(CLIENTS, 0.4)
    for algorithm in ALGORITHMS:
        together = fast(algorithm, problem(name, 0.3), process, (8, 3, 5), engine)
        alone = fast(algorithm, problem(name, 0.3), process, (3,), engine)
        assert np.abs(together[1] - alone[0]).max() < 1e-13


class WithBystanders(WithoutReplacement):
    """Lists clients that do not take part too, with weight zero."""

    def draw(self, rng) -> Iterator[Round]:
        for drawn in super().draw(rng):
            weights = np.zeros(self.clients)
            weights[drawn.clients] = drawn.weights
            yield Round(np.arange(self.clients), weights)


@pytest.mark.parametrize("engine", ["sequential", "batched", "closed form"])
@pytest.mark.parametrize("name", HESSIANS)
def test_listing_clients_without_weight_changes_nothing(name, engine):
    algorithm = ALGORITHMS[0]
    few, all_of_them = WithoutReplacement(CLIENTS, 3), WithBystanders(CLIENTS, 3)
    runs = [fast(algorithm, problem(name, 0.3), process, (0, 5), engine) for process in (few, all_of_them)]
    assert np.abs(runs[0] - runs[1]).max() < 1e-13


@pytest.mark.parametrize("engine", ["sequential", "batched"])
@pytest.mark.parametrize("name", HESSIANS)
def test_really_computing_clients_without_weight_changes_nothing(name, engine):
    """The cohort is built by hand, as `Cohort.of` would leave the idle clients out before any engine sees them."""
    noisy, few, share = problem(name, 0.3), np.array([1, 4]), np.array([0.4, 0.6])
    weights = np.zeros(CLIENTS)
    weights[few] = share
    walk = choose_engine(engine, noisy, FedAvg(0.05, 3))
    x = noisy.x0[None]
    sums = [
        walk.round(x, Cohort(np.array([len(who)]), who, q), 2, [Streams(5)]).weighted_sum
        for who, q in ((few, share), (np.arange(CLIENTS), weights))
    ]
    assert torch.allclose(*sums, rtol=0, atol=1e-13)


class Quartic(CosineQuadratic):
    """F_n = sum x^4 / 4, from a random start: gradient descent diverges exactly if the start is large."""

    def __init__(self):
        super().__init__(np.zeros((CLIENTS, 1)), 1.0, 0.0, noise=0.1)

    def initial_point(self, rng):
        return torch.from_numpy(2 * rng.standard_normal(1))

    def objective_gradient(self, x):
        return x**3

    def objective_gap(self, x):
        return x.square().square().sum(-1) / 4


@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_a_seed_that_diverges_is_marked_and_the_others_go_on_as_if_alone(engine):
    """x - 0.5 x^3 contracts for |x| < 2 and explodes beyond."""
    process, seeds, algorithm = WithoutReplacement(CLIENTS, 2), range(12), GeneralizedFedAvg(0.5, 1)
    trace = simulate(
        algorithm,
        Quartic(),
        process,
        30,
        seeds=seeds,
        engine=engine,
        record_every=5,
        record_models=True,
        record_participation=True,
    )
    large = np.abs(trace.model[:, 0, 0]) > 2
    assert 2 < large.sum() < 10
    assert trace.statuses == tuple("diverged" if one else "done" for one in large)
    assert (trace.diverged_at[~large] == -1).all()
    for row in np.flatnonzero(large):
        after = trace.round > trace.diverged_at[row]
        assert after.any()
        assert np.isnan(trace.gradient_norm_squared[row, after]).all()
        assert np.isnan(trace.model[row, after]).all()
        assert np.isfinite(trace.gradient_norm_squared[row, trace.round < trace.diverged_at[row]]).all()
        assert not trace.participants[row, after].any()
        drawn = trace.participation(row).sum(1) > 0
        assert drawn[: trace.diverged_at[row]].all()
        assert not drawn[trace.diverged_at[row] :].any()
    assert large.argmax() < np.flatnonzero(~large)[-2]  # these two are renumbered when others leave the batch
    for row in np.flatnonzero(~large)[-2:]:
        assert (trace.participation(row) == process.matrix(30, Streams(row).generator("participation"))).all()
        alone = simulate(algorithm, Quartic(), process, 30, seeds=[row], engine=engine, record_every=5)
        assert np.allclose(trace.gradient_norm_squared[row], alone.gradient_norm_squared[0], rtol=1e-12)


def test_when_every_seed_diverges_the_run_ends_at_once_and_says_so():
    asked = []
    trace = simulate(
        None,
        problem("shared"),
        Counting(asked),
        seeds=(0, 1),
        phases=[(FedAvg(1e200, 2), 5), (WaitForAll(0.1, 1, 2), 20)],
    )
    assert trace.statuses == ("diverged", "diverged")
    assert trace.diverged_at.tolist() == [1, 1]
    assert len(asked) == 2


class Counting(Process):
    """Everyone, counting the rounds that are asked for."""

    kind, clients, independent_rounds, stationary = "counting", CLIENTS, True, True

    def __init__(self, asked):
        self.asked = asked

    def draw(self, rng):
        while True:
            self.asked.append(1)
            yield Round(np.arange(CLIENTS), np.full(CLIENTS, 1 / CLIENTS))

    def mean(self, t):
        return np.full(CLIENTS, 1 / CLIENTS)

    def covariance(self, t, u):
        return np.zeros((CLIENTS, CLIENTS))

    def spec(self):
        return {"kind": self.kind}


# --- the cohort and the choice ----------------------------------------------------------------------------


def test_weighted_sums_over_ragged_cohorts_are_the_sums_over_each_seed():
    rng = np.random.default_rng(0)
    sizes = [2, 0, 3, 1]
    rounds = [Round(rng.choice(CLIENTS, size, replace=False), rng.random(size)) for size in sizes]
    cohort, table = Cohort.from_rounds(rounds), torch.from_numpy(rng.standard_normal((CLIENTS, DIMENSION)))
    rows = table[torch.from_numpy(cohort.clients)]
    for sums in (cohort.gather(table), cohort.combine(rows), cohort.combine(rows.float()).double()):
        for each, drawn in zip(sums, rounds, strict=True):
            assert np.allclose(each, drawn.weights @ table.numpy()[drawn.clients], atol=1e-6)
    squares = [float((drawn.weights**2).sum()) for drawn in rounds]
    assert np.allclose(cohort.squares, squares)
    assert np.allclose(cohort.gather(torch.ones(CLIENTS, 1).double(), power=2)[:, 0], squares)


@pytest.mark.parametrize(
    ("name", "noise", "algorithm", "label"),
    [
        ("different", 0.3, FedAvg(0.1, 2), "closed form (agrees in law)"),
        ("different", 0.0, FedAvg(0.1, 2), "closed form"),
        ("different", 0.3, WaitFull(0.1, 2, 3), "closed form"),
        ("cosine", 0.3, FedAvg(0.1, 2), "batched"),
        ("mlp float32", 0.0, FedAvg(0.1, 2), "batched"),
    ],
)
def test_the_engine_is_chosen_by_the_problem_and_named(name, noise, algorithm, label):
    assert choose_engine("auto", problem(name, noise), algorithm).label == label


def test_networks_that_prefer_it_are_walked_in_turn():
    class Large(Quartic):
        prefers_batched = False

    class LargeGame(QuadraticMinimax):
        prefers_batched = False

    assert choose_engine("auto", Large(), FedAvg(0.1, 2)).label == "sequential"
    game, plays = LargeGame([[0.5]], [[1.0]], 1.0, [[1.0]], [[0.25]]), FedNormSGDA(0.1, 0.1, 0.1, 0.1, 2)
    assert choose_engine("auto", game, plays.bind_problem(game)).label == "sequential"
    assert choose_engine("masked-batch", game, plays.bind_problem(game)).label == "masked batch"


@pytest.mark.parametrize("name", ["sequential", "batched", "closed form", "closed-form"])
def test_the_user_can_force_an_engine(name):
    assert choose_engine(name, problem("shared"), FedAvg(0.1, 2)).label == name.replace("-", " ")


def test_an_impossible_engine_is_refused_with_what_would_be_right():
    with pytest.raises(FedboundsError, match="needs a Quadratic, the problem is CosineQuadratic; use 'batched'"):
        choose_engine("closed form", problem("cosine"), FedAvg(0.1, 2))
    with pytest.raises(
        FedboundsError, match="'masked batch' is not for algorithms that minimize; use 'sequential', 'bat"
    ):
        choose_engine("masked batch", problem("cosine"), FedAvg(0.1, 2))
    with pytest.raises(FedboundsError, match="did you mean batched"):
        choose_engine("batchd", problem("cosine"), FedAvg(0.1, 2))
    with pytest.raises(FedboundsError, match="unknown engine '3'"):
        choose_engine(3, problem("cosine"), FedAvg(0.1, 2))


@pytest.mark.parametrize("share", ["equal", "unequal", "no more than a batch"])
@pytest.mark.parametrize("at_once", [1, 2**17])
def test_the_draws_of_all_clients_are_those_of_each(share: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_problem, "_KEYS", at_once)
    owners = np.repeat(np.arange(8), {"equal": 5, "unequal": range(3, 11), "no more than a batch": 3}[share])
    images = np.random.default_rng(0).integers(0, 256, (len(owners), 1, 4, 4), dtype=np.uint8)
    dataset = Dataset("random", images, owners % 2, images[:2], owners[:2] % 2, 2)
    order = np.random.default_rng(1).permutation(len(owners))
    problem = ImageClassification(dataset, Partition(owners[order], np.zeros(8, dtype=np.int64)), "linear", batch=3)
    names = [6, 1, 3]
    together = problem.draws_of_all([np.random.default_rng(n) for n in names], names, 4)
    each = [problem.draws(np.random.default_rng(n), n, 4) for n in names]
    assert together.dtype == np.int64 and np.array_equal(together, np.stack(each, axis=1))
