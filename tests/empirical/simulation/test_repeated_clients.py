"""Rounds that hold a client twice, as in the published code of Wang & Ji (2022): two local updates, not one."""

from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.fedau.algorithms import FedAU
from fedbounds.empirical.participation import PeriodicGroups, Permutation, process_from_spec
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import ENGINES
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate


def published(clients, participants, groups, slot, rounds, rng, first):
    """The clients of each round, by popping from one permutation of all after the other, whoever is not available."""
    order, group, left, found = [], 0, first, []
    for _ in range(rounds):
        drawn = []
        while len(drawn) < participants:
            if not order:
                order = rng.permutation(clients).tolist()
            client = order.pop(0)
            if client * groups // clients == group:
                drawn.append(client)
        found.append(sorted(drawn))
        left -= 1
        if left == 0:
            group, left = (group + 1) % groups, slot
    return found


def places(process, rounds, rng):
    """The clients of each round of a process, each as often as it has places."""
    drawn = zip(range(rounds), process.draw(rng), strict=False)
    S = process.participants
    return [np.repeat(r.clients, np.rint(r.weights * S).astype(int)).tolist() for _, r in drawn]


def shares_twice(rounds):
    return np.mean([len(set(clients)) < len(clients) for clients in rounds])


def test_the_published_sampler_is_followed_client_by_client():
    process = PeriodicGroups(20, 3, slot=7, groups=2, offset=4, repeats="independent")
    expected = published(20, 3, 2, 7, 300, np.random.default_rng(5), 4)
    assert places(process, 300, np.random.default_rng(5)) == expected
    assert shares_twice(expected) > 0.02


def test_at_the_paper_s_sizes_one_round_in_eighteen_holds_a_client_twice():
    sizes: dict[str, Any] = dict(clients=250, participants=10, slot=100, groups=5)
    counted = shares_twice(places(PeriodicGroups(**sizes, repeats="independent"), 20_000, np.random.default_rng(1)))
    theirs = shares_twice(published(250, 10, 5, 100, 20_000, np.random.default_rng(2), 37))
    assert counted == pytest.approx(theirs, abs=0.006) and counted == pytest.approx(1_146 / 20_000, abs=0.006)
    assert shares_twice(places(PeriodicGroups(**sizes), 2_000, np.random.default_rng(1))) == 0


PROBLEM = Quadratic([1.0, 3.0], [[0.0, 1.0], [1.0, 0.0], [4.0, 2.0], [10.0, -1.0]], noise=2.0)
STEP, LOCAL, ROUNDS = 0.05, 3, 4


def noise_of(process, engine, seeds):
    """x_T of each seed, who takes part being the same for all."""
    run = simulate(FedAvg(STEP, LOCAL), PROBLEM, process, rounds=ROUNDS, seeds=range(seeds), engine=engine,
                   streams={"participation": 3}, record_models=True)  # fmt: skip
    return run.arrays["model"][:, -1], int(run.arrays["participants"][0].sum())


def by_hand(rounds, runs):
    """Local SGD of every place of every round in turn, with noise of its own."""
    rng, x = np.random.default_rng(11), np.zeros((runs, 2))
    x += PROBLEM.x0.numpy()
    h, c = np.array([1.0, 3.0]), PROBLEM.centers.numpy()
    for clients in rounds:
        total = np.zeros_like(x)
        for n in clients:
            y = x.copy()
            for _ in range(LOCAL):
                y -= STEP * (h * (y - c[n]) + 2.0 * rng.normal(size=y.shape))
            total += (y - x) / len(clients)
        x = x + total
    return x


@pytest.mark.parametrize("engine", ["batched", "closed form"])
def test_a_client_drawn_twice_makes_two_updates_with_noise_of_their_own(engine):
    """Every round of 3 places of 4 clients: the variance is that of as many updates, not of one that counts twice."""
    process = Permutation(4, 3, repeats="independent")
    rounds = places(process, ROUNDS, Streams(0, {"participation": 3}).generator("participation"))
    assert shares_twice(rounds) > 0
    models, computed = noise_of(process, engine, 3000)
    expected = by_hand(rounds, 60_000)
    assert computed == 3 * ROUNDS
    assert models.mean(axis=0) == pytest.approx(expected.mean(axis=0), abs=0.02)
    assert models.var(axis=0) == pytest.approx(expected.var(axis=0), rel=0.08)
    merged, fewer = noise_of(Permutation(4, 3), engine, 3000)
    assert fewer < computed
    assert (merged.var(axis=0) > 1.1 * models.var(axis=0)).all()


def test_engines_agree_on_both_updates_of_a_client():
    process, models = Permutation(4, 3, repeats="independent"), []
    for engine in ("sequential", "batched"):
        assert engine in ENGINES
        models.append(noise_of(process, engine, 5)[0])
    assert models[0] == pytest.approx(models[1], rel=1e-12)


def test_a_specification_names_independent_repeats_and_leaves_merged_ones_out():
    spec = {"kind": "permutation", "clients": 4, "participants": 3, "reshuffle": True}
    assert process_from_spec(spec | {"repeats": "merged"}).spec() == spec
    assert process_from_spec(spec | {"repeats": "independent"}).spec() == spec | {"repeats": "independent"}
    with pytest.raises(FedboundsError, match="unknown repeats 'twice'"):
        process_from_spec(spec | {"repeats": "twice"})
    with pytest.raises(FedboundsError, match="needs sampling = 'permutation'"):
        PeriodicGroups(4, 1, 2, groups=2, sampling="independent", repeats="independent")


def test_what_counts_on_one_update_refuses_two():
    process = Permutation(4, 3, repeats="independent")
    with pytest.raises(FedboundsError, match=r"exact moments: a participant must .* give repeats = 'merged'"):
        moments(GeneralizedFedAvg(0.01, 1), PROBLEM, process, 4)
    with pytest.raises(FedboundsError, match="fedau: a participant must make one local update"):
        simulate(FedAU(0.01, 1, cutoff=10), PROBLEM, process, rounds=4)
    run = simulate(FedAvg(0.01, 1), PROBLEM, process, rounds=4)
    with pytest.raises(FedboundsError, match="a comparison with a result: a participant must make one"):
        confront(run, "arbitrary-participation/theorem-3.1", problem=PROBLEM, participation=process, assume="all")
    with pytest.raises(FedboundsError, match="is not known: its permutations go on"):
        PeriodicGroups(4, 1, 2, groups=2, repeats="independent").covariance(0, 0)
