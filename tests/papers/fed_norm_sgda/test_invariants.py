"""What must hold for every minimax algorithm: its twin, its symmetries, and what a result may not depend on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.empirical.algorithms import LocalOptimizer, RandomWork
from fedbounds.empirical.algorithms.spec import algorithm_from_spec, algorithms
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FSGDA, FedNormSGDA, LocalSGDA, SynchronousSGDA
from fedbounds.empirical.problems import QuadraticMinimax, project_onto_ball
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference, twins
from fedbounds.empirical.simulation.simulate import simulate

ROUNDS = 4
RATES = (0.05, 0.1, 0.04, 0.15)
OPTIMIZERS = [
    LocalOptimizer(), LocalOptimizer(0.5), LocalOptimizer(rates=(1, 0.5, 2)), LocalOptimizer(0.25, (1, 2, 1), 0.75),
]  # fmt: skip
KINDS = [kind for kind, made in algorithms().items() if made.ascends]


class InBall(QuadraticMinimax):
    """y stays in the unit ball; its envelope, which is another then, plays no role here."""

    constrained = True

    def project(self, y):
        return project_onto_ball(y)

    def metrics(self, x):
        return {}


def halves(draw, *shape, most=4):
    size = int(np.prod(shape))
    return np.reshape(draw(st.lists(st.integers(-most, most), min_size=size, max_size=size)), shape) / 2


@st.composite
def games(draw, clients=None, noise=None, ball=False):
    """Quadratic games with small round numbers."""
    n = draw(st.integers(1, 4)) if clients is None else clients
    dx, dy = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    a = halves(draw, dx, dx, most=2)
    weights = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    y0 = halves(draw, dy)
    made = InBall if ball else QuadraticMinimax
    return made(
        (a + a.T) / 2, halves(draw, dx, dy), draw(st.sampled_from([0.5, 1.0])), halves(draw, n, dx),
        halves(draw, n, dy), weights=np.array(weights) / sum(weights),
        noise=draw(st.sampled_from([0.0, 0.5])) if noise is None else noise,
        growth=draw(st.sampled_from([0.0, 0.5])) if noise is None else noise,
        x0=halves(draw, dx), y0=y0 / max(1, np.linalg.norm(y0)) if ball else y0,
    )  # fmt: skip


@st.composite
def algorithms(draw, kind, clients, drawn=True, snapshots=True):
    """An algorithm of a kind for n clients and `ROUNDS` rounds."""
    steps = st.integers(1, 3)
    each = st.lists(steps, min_size=clients, max_size=clients).map(tuple)
    amounts = [steps, each, st.lists(each, min_size=ROUNDS, max_size=ROUNDS).map(tuple)]
    amounts += [st.builds(RandomWork, st.just(1), steps, st.booleans())] if drawn else []
    amount = draw(st.one_of(*amounts))
    counts = draw(st.none() | st.lists(st.integers(0, 2), min_size=clients, max_size=clients).filter(any))
    weights = None if counts is None else tuple(np.array(counts) / sum(counts))
    period = draw(st.sampled_from([None, 1, 2, 4])) if snapshots else None
    one = st.sampled_from(OPTIMIZERS)
    match kind:
        case "fed-norm-sgda":
            optimizer = draw(one | st.lists(one, min_size=clients, max_size=clients).map(tuple))
            normalized = draw(st.booleans())
            effective = draw(st.none() | st.just(2.5)) if normalized else None
            return FedNormSGDA(
                *RATES, amount, weights=weights, optimizer=optimizer, effective_local_steps=effective,
                snapshot_period=period, normalized=normalized,
            )  # fmt: skip
        case "local-sgda":
            momentum = draw(st.sampled_from([0.0, 0.5, 0.9]))
            return LocalSGDA(0.05, 0.1, amount, weights=weights, momentum=momentum, snapshot_period=period)
        case "synchronous-sgda":
            return SynchronousSGDA(0.05, 0.1, weights)
        case _:
            return FSGDA(*RATES, draw(steps))


@st.composite
def participations(draw, clients):
    """Any weights, also such that do not sum to one, and rounds without anybody."""
    return np.abs(halves(draw, ROUNDS, clients, most=2))


def models(algorithm, problem, q, seed=0, **more):
    return simulate(algorithm, problem, q, ROUNDS, seeds=[seed], record_models=True, **more).model[0]


def close(one, other, within=1e-10):
    np.testing.assert_allclose(one, other, rtol=0, atol=within * (1 + np.abs(other).max()))


BY_KIND = pytest.mark.parametrize("kind", KINDS)


def test_every_minimax_algorithm_has_a_twin_and_a_kind():
    assert KINDS == ["fed-norm-sgda", "local-sgda", "synchronous-sgda", "fsgda"]
    assert set(KINDS) <= twins().keys()


@BY_KIND
@pytest.mark.parametrize("ball", [False, True], ids=["free", "ball"])
@given(data=st.data())
@settings(max_examples=25)
def test_both_engines_are_the_twin(kind, ball, data):
    problem = data.draw(games(ball=ball))
    algorithm = data.draw(algorithms(kind, problem.clients))
    q = data.draw(participations(problem.clients))
    twin = run_reference(algorithm, problem, q, Streams(3)).numpy()
    for engine in ("masked batch", "sequential"):
        close(models(algorithm, problem, q, seed=3, engine=engine), twin)
    if ball:
        assert (np.linalg.norm(twin[:, problem.descent_dimension :], axis=1) <= 1 + 1e-12).all()


@BY_KIND
@given(data=st.data())
@settings(max_examples=15)
def test_its_spec_makes_it_again(kind, data):
    algorithm = data.draw(algorithms(kind, 3))
    assert algorithm_from_spec(algorithm.spec()) == algorithm


@BY_KIND
@given(data=st.data())
@settings(max_examples=15)
def test_the_names_of_the_clients_play_no_role(kind, data):
    problem = data.draw(games(noise=0.0))
    algorithm = data.draw(algorithms(kind, problem.clients, drawn=False))
    q = data.draw(participations(problem.clients))
    order = np.array(data.draw(st.permutations(range(problem.clients))))
    dx = problem.descent_dimension
    renamed = QuadraticMinimax(
        problem.descent_hessian, problem.coupling, problem.concavity, problem.slopes[order, :dx],
        problem.slopes[order, dx:], weights=problem.weights[order], x0=problem.z0[:dx], y0=problem.z0[dx:],
    )  # fmt: skip
    changes = {}
    for name in ("local_steps", "weights", "optimizer"):
        value = getattr(algorithm, name, None)
        if isinstance(value, tuple):
            rows = [tuple(row[i] for i in order) for row in value] if isinstance(value[0], tuple) else None
            changes[name] = tuple(value[i] for i in order) if rows is None else tuple(rows)
    other = models(dataclasses.replace(algorithm, **changes), renamed, q[:, order])
    close(models(algorithm, problem, q), other)


@BY_KIND
@given(data=st.data())
@settings(max_examples=15)
def test_only_the_step_sizes_times_the_gradients_matter(kind, data):
    problem = data.draw(games())
    algorithm = data.draw(algorithms(kind, problem.clients))
    q, dx = data.draw(participations(problem.clients)), problem.descent_dimension
    steeper = QuadraticMinimax(
        4 * problem.descent_hessian, 4 * problem.coupling, 4 * problem.concavity, 4 * problem.slopes[:, :dx],
        4 * problem.slopes[:, dx:], weights=problem.weights, noise=4 * problem.noise_root, growth=problem.growth,
        x0=problem.z0[:dx], y0=problem.z0[dx:],
    )  # fmt: skip
    shorter = {f.name: getattr(algorithm, f.name) / 4 for f in dataclasses.fields(algorithm) if "step_size" in f.name}
    close(models(dataclasses.replace(algorithm, **shorter), steeper, q), models(algorithm, problem, q))


@BY_KIND
@given(data=st.data())
@settings(max_examples=15)
def test_moving_the_origin_moves_every_model_along(kind, data):
    problem = data.draw(games())
    algorithm = data.draw(algorithms(kind, problem.clients))
    q, dx = data.draw(participations(problem.clients)), problem.descent_dimension
    shift = np.arange(1.0, problem.dimension + 1)
    slopes = problem.slopes.numpy() - problem.joint_hessian.numpy() @ shift
    start = problem.z0.numpy() + shift
    moved = QuadraticMinimax(
        problem.descent_hessian, problem.coupling, problem.concavity, slopes[:, :dx], slopes[:, dx:],
        weights=problem.weights, noise=problem.noise_root, growth=problem.growth, x0=start[:dx], y0=start[dx:],
    )  # fmt: skip
    close(models(algorithm, moved, q), models(algorithm, problem, q) + shift)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15)
def test_swapping_the_players_swaps_the_run(kind, data):
    """(x, f) <-> (y, -f) with swapped rates; not with snapshots, which are of x alone."""
    problem = data.draw(games(noise=0.0))
    n, dx, dy = problem.clients, problem.descent_dimension, problem.ascent_dimension
    convex = QuadraticMinimax(
        0.5 * np.eye(dx), problem.coupling, problem.concavity, problem.slopes[:, :dx], problem.slopes[:, dx:],
        weights=problem.weights, x0=problem.z0[:dx], y0=problem.z0[dx:],
    )  # fmt: skip
    other = QuadraticMinimax(
        problem.concavity * np.eye(dy), -problem.coupling.T, 0.5, -problem.slopes[:, dx:], -problem.slopes[:, :dx],
        weights=problem.weights, x0=problem.z0[dx:], y0=problem.z0[:dx],
    )  # fmt: skip
    algorithm = data.draw(algorithms(kind, n, snapshots=False))
    names = [name for name in ("step_size", "local_step_size", "server_step_size") if hasattr(algorithm, name)]
    pairs = [(name, name.replace("step_size", "ascent_step_size")) for name in names]
    swapped = {a: getattr(algorithm, b) for one, two in pairs for a, b in ((one, two), (two, one))}
    q = data.draw(participations(n))
    back = models(dataclasses.replace(algorithm, **swapped), other, q)
    close(models(algorithm, convex, q), np.concatenate([back[:, dy:], back[:, :dy]], axis=1))


@BY_KIND
@given(data=st.data())
@settings(max_examples=15)
def test_a_seed_meets_the_same_work_and_noise_whatever_else_is_computed(kind, data):
    problem = data.draw(games(clients=3))
    algorithm, q = data.draw(algorithms(kind, 3)), data.draw(participations(3))
    together = simulate(algorithm, problem, q, ROUNDS, seeds=(7, 2, 5), record_models=True, record_every=2)
    close(together.model[1], models(algorithm, problem, q, seed=2)[::2], within=1e-13)


def test_algorithms_compared_under_a_seed_meet_the_same_work():
    """With weights that single out one client, the first round's move is its number of local steps."""
    flat = QuadraticMinimax([[0.0]], [[0.0]], 1e-9, [[1.0], [1.0]], [[0.0], [0.0]])
    moves = []
    for algorithm in (
        LocalSGDA(1.0, 1.0, RandomWork(1, 9), weights=(1, 0)),
        FedNormSGDA(1.0, 1.0, 1.0, 1.0, RandomWork(1, 9), weights=(1, 0), snapshot_period=2),
    ):
        trace = simulate(algorithm, flat, np.full((6, 2), 0.5), 6, seeds=range(5), record_models=True)
        moves.append(-np.diff(trace.model[..., 0]))
    expected = [[RandomWork(1, 9).numbers(2, t, Streams(seed))[0] for t in range(6)] for seed in range(5)]
    assert (moves[0] == expected).all() and (moves[1] == expected).all()
