"""Declared against observed: e-values have mean one, tests are calibrated at every look, and find what is wrong."""

from __future__ import annotations

from itertools import combinations, islice, pairwise, permutations, product

import numpy as np
import pytest

from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    CyclicClients,
    CyclicFromInactive,
    Full,
    GroupMarkov,
    Markovian,
    PeriodicGroups,
    Permutation,
    Recorded,
    WithoutReplacement,
    WithReplacement,
)
from fedbounds.empirical.participation.bets import distinct, poisson_binomial
from fedbounds.empirical.participation.process_tests import Conformity, Declaration, Impossible, law_of

MANY = 120  # simulated runs
PROCESSES = [
    Full(4),
    Cyclic(4),
    Cyclic(6, 3, random_phase=True),
    Recorded(np.eye(3)[np.arange(90) % 3]),
    Bernoulli(5, [0.1, 0.3, 0.5, 0.9, 1.0]),
    Bernoulli(3, 0.4, normalize=False),
    WithoutReplacement(6, 2),
    WithReplacement(5, 3),
    Markovian(3, [0.2, 0.5, 0.8], come=0.3),
    GroupMarkov(6, 3, leave=0.3),
    GroupMarkov(4, 2, leave=1.0),
    Permutation(6, 2),
    Permutation(6, 2, reshuffle=False),
    Permutation(5, 3),
    PeriodicGroups(8, 2, slot=4, groups=2),
    PeriodicGroups(6, 1, slot=3, groups=3, offset=2, sampling="independent"),
    CyclicClients(4, [0.0, 0.25, 0.5, 1.0], cycle=8),
    CyclicFromInactive(4, [0.0, 0.25, 0.5, 1.0], cycle=8),
]


def watched(process, source, rounds: int, seed: int, error: float = 0.05) -> Conformity:
    """What is said of `process` after rounds that `source` draws."""
    declaration, names = Declaration(process, error), tuple(range(process.clients))
    for t, (clients, weights) in enumerate(islice(source.draw(np.random.default_rng(seed)), rounds)):
        q = np.zeros(process.clients)
        q[clients] = weights
        declaration.add(t, q > 0, q, names)
    return declaration.conformity()


@pytest.mark.parametrize("process", PROCESSES, ids=lambda p: f"{p.kind}-{p.clients}")
def test_what_a_process_draws_is_never_impossible(process) -> None:
    for seed in range(10):
        found = watched(process, process, 80, seed)
        assert found.status != "impossible", (seed, found.why)


@pytest.mark.parametrize(
    "process",
    [
        # slow, and the mean of their e-values is one by enumeration below
        pytest.param(Bernoulli(5, [0.1, 0.3, 0.5, 0.9, 1.0]), marks=pytest.mark.long),
        pytest.param(WithoutReplacement(6, 2), marks=pytest.mark.long),
        WithReplacement(5, 3),
        Markovian(3, [0.2, 0.5, 0.8], come=0.3),
        GroupMarkov(6, 3, leave=0.3),
        Permutation(6, 2),
    ],
    ids=lambda p: p.kind,
)
def test_a_true_declaration_is_refuted_no_more_often_than_said_though_one_looks_after_every_round(process) -> None:
    error = 0.1
    refuted = sum(watched(process, process, 60, seed, error).status == "refuted" for seed in range(MANY))
    assert refuted <= error * MANY + 3 * np.sqrt(error * (1 - error) * MANY)


WRONG = [
    (Bernoulli(5, 0.5), Bernoulli(5, 0.6), 400),  # other rates
    (Bernoulli(5, 0.5, normalize=False), Markovian(5, 0.5, come=0.1), 100),  # memory
    (Bernoulli(5, 0.4, normalize=True), WithoutReplacement(5, 2), 60),  # clients that depend on each other
    (Bernoulli(6, 0.5, normalize=True), GroupMarkov(6, 2, leave=0.5), 30),
    (WithoutReplacement(6, 2), Permutation(6, 2), 60),  # regularized
    (WithoutReplacement(6, 2), PeriodicGroups(6, 2, slot=10, groups=3), 20),
    (WithReplacement(5, 3), Recorded(np.tile([[1 / 3, 1 / 3, 1 / 3, 0, 0]], (40, 1))), 40),
    (Markovian(3, 0.5, come=0.1), Bernoulli(3, 0.5, normalize=False), 60),
    (GroupMarkov(6, 3, leave=0.3), Cyclic(6, 3), 30),
    (GroupMarkov(6, 3, leave=0.3), GroupMarkov(6, 3, leave=0.6), 120),
    (Permutation(6, 2), Permutation(6, 2, reshuffle=False), 120),  # the same order for ever
]


@pytest.mark.parametrize("declared, actual, rounds", WRONG, ids=lambda x: getattr(x, "kind", str(x)))
def test_another_process_is_found_out(declared, actual, rounds) -> None:
    found = [watched(declared, actual, rounds, seed, 1e-3).status for seed in range(10)]
    assert sum(status in ("refuted", "impossible") for status in found) >= 9, found


@pytest.mark.parametrize(
    "declared, actual",
    [
        (Full(4), WithoutReplacement(4, 3)),
        (Cyclic(4), Cyclic(4, random_phase=True)),
        (Cyclic(6, 3, random_phase=True), GroupMarkov(6, 3, leave=0.5)),
        (Recorded(np.eye(3)), Cyclic(3)),  # the record is over
        (Permutation(6, 2), WithoutReplacement(6, 2)),
        (Permutation(6, 2, reshuffle=False), Permutation(6, 2)),
        (PeriodicGroups(8, 2, slot=4, groups=2), WithoutReplacement(8, 2)),
        (PeriodicGroups(8, 2, slot=4, groups=2), PeriodicGroups(8, 2, slot=5, groups=2)),
        (CyclicClients(4, 0.5, cycle=8), Bernoulli(4, 0.5, normalize=False)),
        (CyclicClients(4, 0.5, cycle=8), CyclicClients(4, 0.5, cycle=6)),
        (CyclicFromInactive(8, 0.5, cycle=4), CyclicClients(8, 0.5, cycle=4)),
        (Bernoulli(4, [0.5, 0.5, 0.5, 1.0], normalize=False), Bernoulli(4, 0.5, normalize=False)),
        (Bernoulli(4, 0.5, normalize=True), Bernoulli(4, 0.5, normalize=False)),  # other weights
        (WithReplacement(5, 3), WithoutReplacement(5, 2)),
        (GroupMarkov(4, 2, leave=1.0), GroupMarkov(4, 2, leave=0.5)),
    ],
    ids=lambda p: p.kind,
)
def test_what_cannot_be_is_said_to_be_impossible(declared, actual) -> None:
    found = [watched(declared, actual, 60, seed) for seed in range(10)]
    assert sum(one.status == "impossible" for one in found) >= 9
    assert all(one.why.startswith("round ") for one in found if one.status == "impossible")


def possible_records(process, rounds: int) -> set[tuple[bool, ...]]:
    """All records of one client that many draws of its phase give."""
    return {
        tuple(len(clients) > 0 for clients, _ in islice(process.draw(np.random.default_rng(seed)), rounds))
        for seed in range(60)
    }


@pytest.mark.parametrize("kind", [CyclicClients, CyclicFromInactive])
@pytest.mark.parametrize(("active", "cycle"), [(a, c) for c in (2, 3, 4) for a in range(c + 1)])
def test_a_record_of_one_client_is_impossible_exactly_if_no_phase_gives_it(kind, active, cycle) -> None:
    process, rounds = kind(1, active / cycle, cycle=cycle), 2 * cycle + 1
    possible = possible_records(process, rounds)
    for record in product([False, True], repeat=rounds):
        law = law_of(process)
        assert law is not None
        try:
            for t, present in enumerate(record):
                law.add(t, np.array([present]), np.array([float(present)]))
        except Impossible:
            assert record not in possible, record
        else:
            assert record in possible, record


def mean_of_e_values(process, runs: list[tuple[float, list[list[int]]]]) -> float:
    """The exact mean of the e-value over all runs with their probabilities."""
    total = 0.0
    for chance, rounds in runs:
        law = law_of(process)
        assert law is not None
        for t, clients in enumerate(rounds):
            present = np.isin(np.arange(process.clients), clients)
            law.add(t, present, present / max(len(clients), 1))
        total += chance * np.exp(law.evidence())
    return total


def test_the_e_value_of_coins_has_mean_one() -> None:
    p = np.array([0.3, 0.6])
    subsets = {(): 0.7 * 0.4, (0,): 0.3 * 0.4, (1,): 0.7 * 0.6, (0, 1): 0.3 * 0.6}
    runs = [(np.prod([subsets[s] for s in run]), [list(s) for s in run]) for run in product(subsets, repeat=4)]
    assert mean_of_e_values(Bernoulli(2, p), runs) == pytest.approx(1, abs=1e-12)


def test_the_e_value_of_subsets_has_mean_one() -> None:
    runs = [(1 / 3**4, [list(s) for s in run]) for run in product(combinations(range(3), 2), repeat=4)]
    assert mean_of_e_values(WithoutReplacement(3, 2), runs) == pytest.approx(1, abs=1e-12)


def test_the_e_value_of_a_client_that_comes_and_goes_has_mean_one() -> None:
    process = Markovian(1, 0.5, come=0.2)
    runs = []
    for run in product([0, 1], repeat=6):
        steps = [0.2 if before != now else 0.8 for before, now in pairwise(run)]
        runs.append((0.5 * np.prod(steps), [[0] if here else [] for here in run]))
    assert mean_of_e_values(process, runs) == pytest.approx(1, abs=1e-12)


def test_the_e_value_of_a_chain_of_groups_has_mean_one() -> None:
    process = GroupMarkov(3, 3, leave=0.5)
    runs = []
    for run in product(range(3), repeat=5):
        steps = [0.5 if before == now else 0.25 for before, now in pairwise(run)]
        runs.append((np.prod(steps) / 3, [[g] for g in run]))
    assert mean_of_e_values(process, runs) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5])
def test_the_e_value_of_orders_has_mean_one_after_every_round(rounds: int) -> None:
    orders = list(permutations(range(3)))
    runs = [(1 / 36, [[n] for n in (first + second)[:rounds]]) for first in orders for second in orders]
    assert mean_of_e_values(Permutation(3, 1), runs) == pytest.approx(1, abs=1e-12)


def test_the_laws_of_numbers_are_those_of_enumeration() -> None:
    p = np.array([0.2, 0.5, 0.9])
    law = np.zeros(4)
    for heads in product([0, 1], repeat=3):
        law[sum(heads)] += np.prod(np.where(heads, p, 1 - p))
    np.testing.assert_allclose(poisson_binomial(p), law, rtol=1e-13)
    drawn = np.bincount([len(set(places)) for places in product(range(4), repeat=3)], minlength=4)
    np.testing.assert_allclose(distinct(4, 3), drawn / 4**3, rtol=1e-13, atol=1e-16)


def test_a_process_of_an_outside_package_is_not_tested() -> None:
    class Odd(Bernoulli):
        kind = "odd"

    assert watched(Odd(2, 0.5), Odd(2, 0.5), 5, 0).status == "not tested"
