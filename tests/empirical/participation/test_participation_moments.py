"""The exact moments of participation processes, against enumeration of all outcomes and against their samplers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import expected_window_divergence
from fedbounds.bounds.participation.window_variance import without_replacement_variance
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
from tests.bounds.participation.reference_constants import (
    bound_15,
    expected_bound_15,
    mean_window_divergence,
    median_bound,
    window_divergence,
)
from tests.bounds.participation.reference_variances import (
    group_markov_variance,
    periodic_groups_variance,
    permutation_variance,
)

# --- all outcomes, written down from the definitions; a stretch is a list of (probability, its rounds' weights) -------


def weights_of(places, clients):
    return np.bincount(np.asarray(places, dtype=int), minlength=clients) / len(places)


def permuted(members, participants, rounds, clients, reshuffle=True):
    """All runs of `rounds` rounds through permutations of the members, S places at a time."""
    cycles = -(-rounds * participants // len(members))
    orders = list(itertools.permutations(members))
    runs = list(itertools.product(orders, repeat=cycles)) if reshuffle else [(order,) * cycles for order in orders]
    stretch = []
    for run in runs:
        places = [client for order in run for client in order]
        rows = [weights_of(places[t * participants : (t + 1) * participants], clients) for t in range(rounds)]
        stretch.append((1 / len(runs), rows))
    return stretch


def joined(stretches):
    """The outcomes of independent stretches, one after the other."""
    return [
        (math.prod(p for p, _ in parts), [row for _, rows in parts for row in rows])
        for parts in itertools.product(*stretches)
    ]


def outcomes(process, rounds):
    """Every run of the process with its probability."""
    N = process.clients
    match process:
        case Full():
            return [(1.0, [np.full(N, 1 / N)] * rounds)]
        case Recorded():
            return [(1.0, list(np.asarray(process.weights)[:rounds]))]
        case WithReplacement(participants=S):
            one = [(N**-S, [weights_of(places, N)]) for places in itertools.product(range(N), repeat=S)]
            return joined([one] * rounds)
        case WithoutReplacement(participants=S):
            return joined([subsets_of(range(N), S, N)] * rounds)
        case Permutation(participants=S, reshuffle=reshuffle):
            return permuted(range(N), S, rounds, N, reshuffle)
        case Bernoulli(probability=p, normalize=normalize):
            p = np.broadcast_to(p, N)
            one = []
            for coins in itertools.product([False, True], repeat=N):
                present = np.array(coins)
                share = 1 / max(present.sum(), 1) if normalize else 1 / N
                one.append((np.where(present, p, 1 - p).prod(), [present * share]))
            return joined([one] * rounds)
    members = [np.flatnonzero(process.labels == g) for g in range(max(process.labels) + 1)]
    G = len(members)
    match process:
        case GroupMarkov(leave=leave):
            runs = []
            for path in itertools.product(range(G), repeat=rounds):
                moves = [1 - leave if g == h else leave / (G - 1) for g, h in itertools.pairwise(path)]
                runs.append((math.prod(moves) / G, [weights_of(members[g], N) for g in path]))
            return runs
        case Cyclic(random_phase=random_phase):
            phases = range(G) if random_phase else [0]
            return [
                (1 / len(phases), [weights_of(members[(t + phase) % G], N) for t in range(rounds)]) for phase in phases
            ]
        case PeriodicGroups(participants=S, slot=slot, offset=offset, sampling=sampling):
            runs = []
            offsets = range(1, slot + 1) if offset is None else [offset]
            for first in offsets:
                lengths, left = [], rounds
                while left:
                    lengths.append(min(left, slot if lengths else first))
                    left -= lengths[-1]
                stretches = []
                for turn, length in enumerate(lengths):
                    available = members[turn % G]
                    if sampling == "permutation":
                        stretches.append(permuted(available, S, length, N))
                    else:
                        stretches += [subsets_of(available, S, N)] * length
                runs += [(p / len(offsets), rows) for p, rows in joined(stretches)]
            return runs
    raise AssertionError(process)


def subsets_of(members, participants, clients):
    chosen = list(itertools.combinations(members, participants))
    return [(1 / len(chosen), [weights_of(places, clients)]) for places in chosen]


CASES = [
    (Full(3), 2),
    (WithReplacement(3, 2), 3),
    (WithReplacement(4, 1), 2),
    (WithoutReplacement(4, 2), 3),
    (WithoutReplacement(3, 3), 2),
    (WithoutReplacement(1, 1), 2),
    (Permutation(1, 1), 3),
    (Permutation(3, 1), 6),
    (Permutation(4, 2), 4),
    (Permutation(3, 2), 4),
    (Permutation(4, 3), 2),
    (Permutation(4, 3, reshuffle=False), 6),
    (Permutation(3, 1, reshuffle=False), 5),
    (Permutation(3, 3), 2),
    (PeriodicGroups(4, 1, slot=3, groups=2), 5),
    (PeriodicGroups(4, 1, slot=2, groups=2, offset=1), 6),
    (PeriodicGroups(5, 2, slot=2, groups=(0, 0, 0, 1, 1)), 4),
    (PeriodicGroups(5, 2, slot=2, groups=(0, 1, 0, 1, 1)), 3),
    (PeriodicGroups(5, 1, slot=2, groups=(0, 1, 0, 1, 0), sampling="independent"), 5),
    (PeriodicGroups(3, 2, slot=2, groups=1, sampling="independent"), 3),
    (PeriodicGroups(3, 1, slot=1, groups=3), 4),
    (GroupMarkov(4, 2, leave=0.3), 5),
    (GroupMarkov(2, 2, leave=0.9), 6),
    (GroupMarkov(4, 2, leave=0.5), 5),
    (GroupMarkov(3, 3, leave=1.0), 5),
    (GroupMarkov(4, (0, 1, 1, 2), leave=0.25), 4),
    (Cyclic(3), 4),
    (Cyclic(4, 2, random_phase=True), 5),
    (Cyclic(5, (0, 0, 1, 2, 2), random_phase=True), 7),
    (Bernoulli(3, (0.2, 0.5, 0.9)), 2),
    (Bernoulli(4, 0.5), 2),
    (Bernoulli(3, (1.0, 0.3, 0.0)), 2),
    (Bernoulli(3, (0.2, 0.5, 1.0), normalize=False), 2),
    (Recorded([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]]), 3),
]
NAMED = [pytest.param(process, rounds, id=str(process)[:70]) for process, rounds in CASES]


@dataclass
class Enumerated:
    """Moments of all outcomes: mean (rounds, clients), covariance (rounds, rounds, clients, clients)."""

    probability: np.ndarray
    runs: np.ndarray

    def __post_init__(self):
        self.mean = np.tensordot(self.probability, self.runs, 1)
        centered = self.runs - self.mean
        self.covariance = np.einsum("k,ktn,kum->tunm", self.probability, centered, centered, optimize=True)


@pytest.fixture(scope="module")
def enumerated():
    cache: dict[Process, Enumerated] = {}

    def of(process, rounds):
        if process not in cache:
            runs = outcomes(process, rounds)
            cache[process] = Enumerated(np.array([p for p, _ in runs]), np.array([rows for _, rows in runs]))
        return cache[process]

    return of


@pytest.mark.parametrize(("process", "rounds"), NAMED)
def test_mean_covariance_and_variance_are_those_of_all_outcomes(process, rounds, enumerated):
    exact = enumerated(process, rounds)
    assert exact.probability.sum() == pytest.approx(1)
    for t in range(rounds):
        assert_allclose(process.mean(t), exact.mean[t], atol=1e-14)
        assert_allclose(process.variance(t), np.diag(exact.covariance[t, t]), atol=1e-14)
        for u in range(rounds):
            assert_allclose(process.covariance(t, u), exact.covariance[t, u], atol=1e-14)


@pytest.mark.parametrize(("process", "rounds"), NAMED)
def test_window_moments_are_those_of_all_outcomes_and_of_the_double_sum(process, rounds, enumerated):
    exact = enumerated(process, rounds)
    for t0, end in itertools.combinations(range(rounds + 1), 2):
        interval = end - t0
        window = slice(t0, t0 + interval)
        covariance = exact.covariance[window, window].mean(axis=(0, 1))
        assert_allclose(process.window_mean(t0, interval), exact.mean[window].mean(axis=0), atol=1e-14)
        assert_allclose(process.window_covariance(t0, interval), covariance, atol=1e-14)
        assert_allclose(process.summed_window_covariance(t0, interval), covariance, atol=1e-14)


@pytest.mark.parametrize(("process", "rounds"), NAMED)
def test_what_a_process_says_of_itself_is_true_of_all_outcomes(process, rounds, enumerated):
    exact = enumerated(process, rounds)
    sums = exact.runs[exact.probability > 0].sum(axis=2)
    assert process.sums_to_one == bool(np.allclose(sums, 1))
    assert (exact.runs >= 0).all()
    lagged = [np.abs(exact.covariance[t, u]).max() for t in range(rounds) for u in range(rounds) if t != u]
    assert process.independent_rounds == (max(lagged) < 1e-14)
    same_mean = np.allclose(exact.mean, exact.mean[0])
    shifted = all(
        np.allclose(exact.covariance[t, t + lag], exact.covariance[0, lag])
        for lag in range(rounds)
        for t in range(rounds - lag)
    )
    assert process.stationary == (same_mean and shifted)
    assert process.unbiased == np.allclose(exact.mean, 1 / process.clients)
    swaps = [np.roll(np.arange(process.clients), 1), np.r_[1, 0, 2 : process.clients]][: process.clients]
    alike = [
        np.allclose(exact.mean[:, swap], exact.mean)
        and np.allclose(exact.covariance[:, :, swap][:, :, :, swap], exact.covariance)
        for swap in swaps
    ]
    assert process.exchangeable == all(alike)
    if process.independent_clients:
        assert not (exact.covariance[0, 0] - np.diag(np.diag(exact.covariance[0, 0]))).round(14).any()
    if process.stationary:
        for lag in range(rounds):
            assert_allclose(process.autocovariance(lag), exact.covariance[0, lag], atol=1e-14)


@pytest.mark.parametrize(("process", "rounds"), NAMED)
def test_samplers_follow_the_law_within_sampling_error(process, rounds):
    """Means and second moments of 1500 runs, each within 5.5 standard errors of the exact ones."""
    rng = np.random.default_rng(20220526)
    runs = np.array([process.matrix(rounds, rng).ravel() for _ in range(1500)])
    mean = np.concatenate([process.mean(t) for t in range(rounds)])
    covariance = np.block([[process.covariance(t, u) for u in range(rounds)] for t in range(rounds)])
    centered = runs - mean
    assert (np.abs(centered.mean(axis=0)) <= 5.5 * np.sqrt(np.diag(covariance) / len(runs)) + 1e-12).all()
    products = centered[:, :, None] * centered[:, None, :]
    error = np.sqrt(products.var(axis=0) / len(runs))
    assert (np.abs(products.mean(axis=0) - covariance) <= 5.5 * error + 1e-12).all()


def test_one_permutation_for_ever_and_a_new_one_each_cycle_differ_between_cycles():
    assert Permutation(4, 1, reshuffle=False).covariance(0, 4)[0, 0] == pytest.approx(3 / 16)
    assert Permutation(4, 1).covariance(0, 4)[0, 0] == 0


@pytest.mark.parametrize("process", [Permutation(12, 5), Permutation(12, 5, reshuffle=False), Permutation(10, 10)])
def test_closed_forms_of_permutation_windows_agree_with_the_double_sum(process):
    for t0, interval in itertools.product([0, 1, 2, 7], [1, 2, 5, 12, 13]):
        closed, summed = process.window_covariance(t0, interval), process.summed_window_covariance(t0, interval)
        assert_allclose(closed, summed, atol=1e-15)
        variance = permutation_variance(
            process.clients, process.participants, interval, t0, reshuffle=process.reshuffle
        )
        assert_allclose(np.diag(closed), variance, atol=1e-15)


@pytest.mark.parametrize("sampling", ["permutation", "independent"])
@pytest.mark.parametrize("groups", [3, (0, 0, 0, 1, 1, 2, 2, 2, 2, 1, 0, 2)])
def test_closed_forms_of_periodic_windows_agree_with_the_double_sum(sampling, groups):
    process = PeriodicGroups(12, 3, slot=5, groups=groups, sampling=sampling)
    for t0, interval in itertools.product([0, 2, 5, 11], [1, 4, 15, 23]):
        closed, summed = process.window_covariance(t0, interval), process.summed_window_covariance(t0, interval)
        assert_allclose(closed, summed, atol=1e-15)
        of_group = periodic_groups_variance(process.sizes, 3, 5, interval, t0, permutation=sampling == "permutation")
        assert_allclose(np.diag(closed), of_group[process.labels], atol=1e-15)


def test_normalized_coins_with_many_clients_have_the_moments_of_the_binomial_law():
    """Equal probabilities: sum_k C(N-1, k) p^k (1-p)^(N-1-k) / (1+k), in exact terms."""
    for N, p in [(101, 0.03), (200, 0.5), (64, 0.97)]:
        binomial = [math.comb(N - 1, k) * p**k * (1 - p) ** (N - 1 - k) for k in range(N)]
        mean = p * sum(b / (1 + k) for k, b in enumerate(binomial))
        square = p * sum(b / (1 + k) ** 2 for k, b in enumerate(binomial))
        process = Bernoulli(N, p)
        assert mean == pytest.approx((1 - process.empty_round_probability) / N)
        assert_allclose(process.mean(0), mean, rtol=1e-12)
        assert_allclose(process.variance(0), square - mean**2, rtol=1e-9)
        total = process.covariance(0, 0).sum()  # the variance of the sum, which is 0 or 1
        empty = process.empty_round_probability
        assert total == pytest.approx(empty * (1 - empty), abs=1e-12)


# --- the window divergence in expectation -----------------------------------------------------------------------------


def enumerated_divergence(process, rounds, v, window):
    runs = outcomes(process, rounds)
    v = v - v.mean(axis=0)
    return sum(p * ((np.mean(rows[window], axis=0) @ v) ** 2).sum() for p, rows in runs)


def test_the_mean_over_windows_and_the_largest_window_have_two_names():
    q = np.random.default_rng(3).dirichlet(np.ones(4) / 2, size=24)
    v = np.random.default_rng(4).normal(size=(4, 3))
    of_process = Recorded(q).mean_window_divergence(v, 3, 24)
    assert of_process == pytest.approx(mean_window_divergence(q, v, 3), rel=1e-12)
    assert of_process < 0.9 * window_divergence(q, v, 3)
    assert not hasattr(Recorded(q), "window_divergence")


@pytest.mark.parametrize(("process", "rounds"), [(p, r) for p, r in CASES if p.sums_to_one])
def test_the_expected_window_divergence_averages_over_outcomes_and_windows(process, rounds):
    v = np.random.default_rng(3).standard_normal((process.clients, 2))
    for interval in range(1, rounds + 1):
        starts = range(0, rounds - interval + 1, interval)
        each = [enumerated_divergence(process, rounds, v, slice(t0, t0 + interval)) for t0 in starts]
        assert process.mean_window_divergence(v, interval, rounds) ** 2 == pytest.approx(np.mean(each), abs=1e-14)


def test_long_runs_count_windows_with_the_same_moments_once():
    v = np.random.default_rng(4).standard_normal((12, 3))
    for process in [Permutation(12, 5), PeriodicGroups(12, 2, slot=3, groups=4), PeriodicGroups(12, 2, 3, 4, offset=2)]:
        for interval in (1, 5, 6, 12):
            starts = range(0, 60 - interval + 1, interval)
            each = [
                expected_window_divergence(process.window_covariance(t, interval), v, process.window_mean(t, interval))
                for t in starts
            ]
            expected = np.mean(np.square(each))
            assert process.mean_window_divergence(v, interval, 60) ** 2 == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("N", "S", "P"), [(2, 1, 1), (4, 1, 3), (4, 2, 2), (5, 3, 2), (3, 3, 2)])
def test_sampling_without_replacement_has_the_exact_expected_divergence(N, S, P):
    """E LHS(7) = (N-S)/(PS(N-1)) times the mean square of the offsets; (15) is looser by at least N-1."""
    v = np.random.default_rng(5).standard_normal((N, 3))
    centered = v - v.mean(axis=0)
    mean_square = (centered**2).sum() / N
    exact = (N - S) / (P * S * (N - 1)) * mean_square
    process = WithoutReplacement(N, S)
    assert enumerated_divergence(process, P, v, slice(0, P)) == pytest.approx(exact, abs=1e-15)
    assert process.mean_window_divergence(v, P, P) ** 2 == pytest.approx(exact, abs=1e-15)
    d = math.sqrt((centered**2).sum(axis=1).max())
    paper = expected_bound_15(np.diag(process.window_covariance(0, P)), d) ** 2
    assert paper == pytest.approx(N**2 * d**2 * without_replacement_variance(N, S, P))
    assert paper >= (N - 1) * exact * (1 - 1e-12)


@pytest.mark.parametrize("leave", [0.2, 0.9, 1.0])
def test_the_chain_of_groups_has_the_exact_expected_divergence(leave):
    """E LHS(7) = c_P times the mean square of the groups' mean offsets."""
    process = GroupMarkov(6, 3, leave)
    v = np.random.default_rng(6).standard_normal((6, 2))
    of_groups = (v - v.mean(axis=0)).reshape(3, 2, 2).mean(axis=1)
    mean_square = (of_groups**2).sum() / 3
    for P in (1, 2, 7):
        factor = group_markov_variance(3, 2, leave, P) / group_markov_variance(3, 2, leave)
        assert process.mean_window_divergence(v, P, 14) ** 2 == pytest.approx(factor * mean_square)
        assert_allclose(np.diag(process.window_covariance(0, P)), group_markov_variance(3, 2, leave, P))


def test_aligned_windows_of_whole_permutations_have_no_divergence():
    v = np.random.default_rng(7).standard_normal((12, 3))
    for S, P in [(1, 12), (3, 4), (4, 3), (8, 3), (5, 12), (12, 1)]:
        for reshuffle in (True, False):
            process = Permutation(12, S, reshuffle)
            assert process.mean_window_divergence(v, P, 10 * P) == 0
            assert process.mean_window_divergence(v, 2 * P, 10 * P) == 0
            if S < 12:
                assert process.mean_window_divergence(v, P - 1, 10 * P) > 0


def test_unaligned_windows_of_permutations_do():
    """Proposition 4.2 holds for windows that start at multiples of P; eq. (7) as printed asks for all of them."""
    assert Permutation(12, 3).window_covariance(1, 4).any()
    assert not Permutation(12, 3, reshuffle=False).window_covariance(1, 4).any()


def test_single_windows_of_fair_coins_fail_as_rarely_as_claimed_but_not_two_hundred_of_them():
    """N = 2, one client at a time, P = 20, c = 0.1, where (15) is an equality. Exact binomial: one window exceeds
    Hoeffding's bound with probability 0.01182; 200 windows are all fine with probability 0.093, not 0.9."""
    P, c = 20, 0.1
    limit = math.sqrt(2 * 2 * math.log(2 / c) / (2 * P))
    fails = 0.0
    for heads in range(P + 1):
        q = [[1, 0]] * heads + [[0, 1]] * (P - heads)
        assert bound_15(q, P, 1.0) == pytest.approx(median_bound(q, P, 1.0))
        fails += (bound_15(q, P, 1.0) > limit) * math.comb(P, heads) / 2**P
    assert fails == pytest.approx(0.01182, abs=5e-6)
    assert (1 - fails) ** 200 == pytest.approx(0.093, abs=5e-4)
    assert (1 - fails) ** 9 < 0.9 < (1 - fails) ** 8


def test_long_run_variances_are_the_limits_of_the_window_variances():
    for process in [WithReplacement(5, 2), WithoutReplacement(5, 2), Bernoulli(5, (0.1, 0.2, 0.3, 0.4, 0.5))]:
        assert_allclose(process.long_run_variance(), process.variance(0))
    for leave in (0.05, 0.5, 0.95):
        process = GroupMarkov(6, 3, leave)
        limit = 10**5 * np.diag(process.window_covariance(0, 10**5))
        assert_allclose(process.long_run_variance(), limit, rtol=1e-3)


@pytest.mark.parametrize(
    "process",
    [Permutation(4, 2), PeriodicGroups(4, 1, 2, 2), Cyclic(3), Cyclic(3, random_phase=True), GroupMarkov(2, 2, 1.0)],
)
def test_processes_that_do_not_mix_have_no_long_run_variance(process):
    with pytest.raises(FedboundsError, match="no long-run variance"):
        process.long_run_variance()


def test_processes_that_are_not_stationary_have_no_autocovariance():
    with pytest.raises(FedboundsError, match="permutation participation is not stationary"):
        Permutation(4, 2).autocovariance(1)


@pytest.mark.parametrize(
    ("process", "defect"),
    [
        (Bernoulli(3, 0.5), "nobody takes part in a round with probability 0.125"),
        (Bernoulli(3, 0.5, normalize=False), "a participant has weight 1/N"),
        (Recorded([[0.5, 0.5], [1, 1]]), "those of round 1 sum to 2"),
        (Recorded([[1, 1], [0, 0]], normalize=True), "those of round 1 sum to 0"),
    ],
)
def test_where_a_theorem_needs_weights_that_sum_to_one_other_processes_are_refused(process, defect):
    assert not process.sums_to_one
    with pytest.raises(FedboundsError, match=defect):
        process.require_unit_sum("Theorem 3.1")
    with pytest.raises(FedboundsError, match="needs weights that sum to one in every round"):
        process.mean_window_divergence(np.eye(process.clients), 1, 2)


def test_only_coins_without_normalization_leave_clients_independent():
    independent = {type(p) for p, _ in CASES if p.independent_clients}
    assert independent == {Bernoulli}
    assert [Bernoulli(clients, 0.5).independent_clients for clients in (1, 2, 3)] == [True, False, False]


def test_processes_whose_weights_sum_to_one_are_not_refused():
    for process in [Bernoulli(3, (1.0, 0.5, 0.5)), Recorded([[1, 1]], normalize=True), Full(3)]:
        process.require_unit_sum("Theorem 3.1")
