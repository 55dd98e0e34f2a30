"""Simulations: what is recorded, phases, streams held fixed, and input that is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import RandomWork
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    GeneralizedFedAvg,
    WaitForAll,
    WaitMinibatch,
)
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA, LocalSGDA
from fedbounds.empirical.participation import Bernoulli, Process, Recorded, Round, WithoutReplacement
from fedbounds.empirical.problems import Quadratic, random_quadratic, random_quadratic_minimax
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION = 6, 3
PROBLEM = random_quadratic(CLIENTS, DIMENSION, noise=0.2)
PROCESS = WithoutReplacement(CLIENTS, 2)
AMPLIFIED = GeneralizedFedAvg(0.05, 2, server_multiplier=3.0, interval=4)


def run(algorithm=AMPLIFIED, problem=PROBLEM, participation=PROCESS, rounds=10, **more):
    return simulate(algorithm, problem, participation, rounds, **more)


def test_metrics_are_recorded_at_the_rounds_asked_for_and_at_the_last():
    every, some = run(record_models=True), run(record_every=4)
    assert every.round.tolist() == list(range(11))
    assert some.round.tolist() == [0, 4, 8, 10]
    for name in ("gradient_norm_squared", "objective_gap"):
        assert every.dims[name] == ("seed", "round")
        assert (getattr(every, name)[:, some.round] == getattr(some, name)).all()
    gap = PROBLEM.objective_gap(PROBLEM.x0)
    assert every.objective_gap[0, 0] == gap
    assert every.model.shape == (1, 11, DIMENSION)
    assert run(record_every=99).round.tolist() == [0, 10]


def test_a_minimax_problem_is_not_minimized_by_mistake_nor_the_other_way_round():
    game, plays = random_quadratic_minimax(CLIENTS, 2, 1), FedNormSGDA(0.1, 0.1, 0.1, 0.1, 2)
    for algorithm, problem, says in (
        (AMPLIFIED, game, "generalized-fedavg would descend in both blocks of a minimax problem; use"),
        (plays, PROBLEM, "fed-norm-sgda is for minimax problems, and this problem has no player that ascends"),
    ):
        for call in ({"algorithm": algorithm}, {"algorithm": None, "phases": [(algorithm, 10)]}):
            with pytest.raises(FedboundsError, match=says) as caught:
                run(problem=problem, **call)
            assert "\n" not in str(caught.value)


def test_phases_of_minimax_algorithms_continue_and_renew_their_snapshots():
    """Two phases of 4 and 6 rounds are one of 10 if snapshots are renewed where each begins."""
    game = random_quadratic_minimax(CLIENTS, 2, 1, noise=0.2)
    for plays in (
        FedNormSGDA(0.1, 0.1, 0.1, 0.1, RandomWork(1, 3), snapshot_period=2),
        LocalSGDA(0.1, 0.1, 2, momentum=0.5),
    ):
        once = run(plays, game, record_models=True, record_participation=True)
        halves = run(None, game, rounds=None, phases=[(plays, 4), (plays, 6)], record_models=True)
        assert (once.model == halves.model).all()
        q = once.participation(0)
        assert (q.sum(1) == 1).all() and ((q > 0).sum(1) == 2).all()
    with pytest.raises(FedboundsError, match="snapshot_period = 2 must divide rounds = 3"):
        run(None, game, rounds=None, phases=[(FedNormSGDA(0.1, 0.1, 0.1, 0.1, 1, snapshot_period=2), 3)])


def test_participants_are_the_clients_that_computed_since_the_record_before():
    assert run(record_every=4).participants.tolist() == [[0, 8, 8, 4]]
    waiting = run(WaitMinibatch(0.05, 2, interval=4), record_every=1)
    assert np.flatnonzero(waiting.participants[0]).tolist() == [4, 8]
    assert waiting.participants.sum() == 2 * CLIENTS


def test_phases_continue_from_the_model_before_and_restart_the_interval():
    """FedAvg for 3 rounds, then amplification every 4: it falls on rounds 7 and 11, not on 4 and 8."""
    quiet = random_quadratic(CLIENTS, DIMENSION)
    q = PROCESS.matrix(12, np.random.default_rng(0))
    trace = simulate(None, quiet, q, phases=[(FedAvg(0.1, 1), 3), (AMPLIFIED, 9)], record_models=True)
    first = simulate(FedAvg(0.1, 1), quiet, q[:3], 3, record_models=True).model[0]
    handed = Quadratic(quiet.hessians, quiet.centers, x0=first[-1])
    second = simulate(AMPLIFIED, handed, q[3:], 9, record_models=True).model[0]
    assert np.abs(trace.model[0] - np.concatenate([first, second[1:]])).max() < 1e-13
    assert trace.spec["phases"][1] == {"algorithm": AMPLIFIED.spec(), "rounds": 9, "message_bytes": 16 + 4 * 3}
    assert trace.engine == "closed form"


def test_a_phase_that_waits_counts_its_intervals_from_its_own_start():
    trace = run(None, rounds=None, phases=[(FedAvg(0.1, 1), 3), (WaitMinibatch(0.1, 1, interval=4), 6)])
    assert np.flatnonzero(trace.participants[0]).tolist() == [1, 2, 3, 7]


def test_a_phase_draws_other_noise_than_the_phase_before():
    """Two phases of the same algorithm are one run of it, noise included, as rounds are counted through."""
    for engine in ("sequential", "batched", "closed form"):
        once = run(FedAvg(0.1, 2), engine=engine, record_models=True)
        halves = run(
            None, rounds=None, phases=[(FedAvg(0.1, 2), 4), (FedAvg(0.1, 2), 6)], engine=engine, record_models=True
        )
        assert (once.model == halves.model).all()


def test_counts_of_an_algorithm_add_up_over_phases():
    q = np.eye(CLIENTS)[np.zeros(8, dtype=int)]
    twice = simulate(None, PROBLEM, q, phases=[(WaitForAll(0.1, 1, 2), 4)] * 2, seeds=(0, 1))
    assert twice.postponed_intervals.tolist() == [4, 4]


def test_seeds_share_a_stream_that_is_held_fixed_and_only_that():
    seeds, process = (1, 2), Bernoulli(CLIENTS, 0.4)
    held = run(participation=process, seeds=seeds, streams={"participation": 7}, record_participation=True)
    q = process.matrix(10, Streams(7).generator("participation"))
    assert (held.participation(1) == q).all()
    assert (held.participation(2) == q).all()
    assert held.gradient_norm_squared[0, -1] != held.gradient_norm_squared[1, -1]
    free = run(participation=process, seeds=seeds, record_participation=True)
    assert (free.participation(1) != free.participation(2)).any()
    assert (free.participation(2) == process.matrix(10, Streams(2).generator("participation"))).all()
    quiet = run(participation=process, seeds=seeds, streams={"participation": 7, "noise": 1})
    assert (quiet.gradient_norm_squared[0] == quiet.gradient_norm_squared[1]).all()


def test_a_recorded_run_can_be_run_again_from_its_record():
    first = run(participation=Bernoulli(CLIENTS, 0.4), seeds=(3,), record_participation=True)
    again = run(participation=first.participation(3), seeds=(3,))
    assert (again.gradient_norm_squared == first.gradient_norm_squared).all()
    assert (again.empty_rounds == first.empty_rounds).all()
    assert first.empty_rounds.tolist() == [(first.participation(3).sum(1) == 0).sum()]


def test_processes_whose_weights_need_not_sum_to_one_are_counted():
    unbiased = Bernoulli(CLIENTS, 0.4, normalize=False)
    trace = run(participation=unbiased, seeds=(0, 1), record_participation=True)
    for row, seed in enumerate((0, 1)):
        sums = trace.participation(seed).sum(1)
        assert trace.unnormalized_rounds[row] == ((sums > 0) & (np.abs(sums - 1) > 1e-9)).sum() > 0


def test_progress_is_reported_after_every_round():
    seen = []
    run(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(t, 10) for t in range(1, 11)]


def test_the_spec_of_a_trace_says_what_was_run():
    spec = run(seeds=(1, 2), streams={"participation": 7}).spec
    assert spec["algorithm"] == AMPLIFIED.spec()
    assert spec["participation"] == PROCESS.spec()
    assert (spec["problem"], spec["clients"], spec["dimension"], spec["rounds"]) == (
        "Quadratic",
        CLIENTS,
        DIMENSION,
        10,
    )
    assert spec["streams"] == {"participation": 7}
    record = run(participation=np.full((10, CLIENTS), 1 / CLIENTS)).spec["participation"]
    assert (record["kind"], record["rounds"]) == ("recorded", 10)
    other = np.full((10, CLIENTS), 1 / CLIENTS)
    other[0, 0] = 0
    assert run(participation=other).spec["participation"]["sha256"] != record["sha256"]


class Short(Process):
    """A finite process that does not say so."""

    kind, clients, independent_rounds, stationary = "short", CLIENTS, True, True

    def draw(self, rng):
        yield Round(np.array([0]), np.array([1.0]))

    def mean(self, t):
        return np.zeros(CLIENTS)

    def covariance(self, t, u):
        return np.zeros((CLIENTS, CLIENTS))


BAD_WEIGHTS = np.full((10, CLIENTS), 1 / CLIENTS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rounds": 0}, "rounds = 0"),
        ({"rounds": 2.5}, "rounds = 2.5"),
        ({"rounds": None}, "rounds = None"),
        ({"record_every": 0}, "record_every = 0"),
        ({"seeds": ()}, "at least one"),
        ({"seeds": (1, 1)}, "must be different"),
        ({"seeds": (1, -1)}, "seed = -1"),
        ({"seeds": 3}, "seeds = 3 must be a list"),
        ({"seeds": "12"}, "seeds = '12' must be a list"),
        ({"streams": {"nois": 1}}, "did you mean noise"),
        ({"streams": "noise"}, "streams = 'noise'"),
        ({"engine": "fast"}, "unknown engine 'fast'"),
        ({"participation": WithoutReplacement(5, 2)}, "participation is of 5 clients, the problem has 6"),
        ({"participation": np.full((9, CLIENTS), 1 / CLIENTS)}, "recorded for 9 rounds, 10 were asked for"),
        ({"participation": np.where(np.arange(CLIENTS) > 0, BAD_WEIGHTS, -1)}, "weights"),
        ({"participation": np.where(np.arange(CLIENTS) > 0, BAD_WEIGHTS, np.nan)}, "weights"),
        ({"participation": Short()}, "participation ends after 1 rounds, 10 were asked for"),
        ({"algorithm": None}, "either an algorithm and its rounds, or phases"),
        ({"phases": [(AMPLIFIED, 10)]}, "either an algorithm and its rounds, or phases"),
        ({"algorithm": None, "phases": []}, "the phases have 0 rounds"),
        ({"algorithm": None, "phases": [(AMPLIFIED, 3)]}, "rounds = 10, but the phases have 3 rounds"),
        ({"algorithm": None, "phases": [(AMPLIFIED, -3)]}, r"phases\[0\].rounds = -3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_bad_input_is_refused_in_one_line(change, says):
    with pytest.raises(FedboundsError, match=says) as caught:
        run(**change)
    assert "\n" not in str(caught.value)


def test_a_record_may_be_longer_than_the_run():
    assert run(participation=Recorded(np.full((99, CLIENTS), 1 / CLIENTS))).round[-1] == 10
