"""The counterexamples of the first paper against independent recomputations."""

import math
from fractions import Fraction
from itertools import product
from typing import cast

import mpmath
import numpy as np
import pytest

from fedbounds.bounds.audit.counterexample import exp_above, exp_below, root_above, root_below
from fedbounds.bounds.audit.counterexample_checker import judge_replay
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.arbitrary_participation.errata_noise import (
    earlier_rounds_in_lemma_c2,
    lemma_c2_has_slack,
    noise_with_memory,
    participation_follows_the_noise,
    shared_noise,
    toy_center,
    toy_center_is_near,
    toy_distance2,
)
from fedbounds.bounds.papers.arbitrary_participation.errata_rates import (
    cap_free_of_rounds,
    interval_is_not_a_whole_number,
    lost_weight_variance,
    smaller_of_two_tails,
    speed_up_ends_at_the_cap,
    step_size_with_a_unit,
)
from fedbounds.bounds.papers.arbitrary_participation.errata_windows import (
    block_variance,
    chebyshev_for_one_window,
    finite_window_against_its_limit,
    finite_window_ratio,
    one_window_is_not_all_windows,
    per_client_is_not_all_clients,
    suprema_at_different_rounds,
    three_clients_each_independent,
    vanishing_long_run_variance,
)
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.papers.arbitrary_participation.instances.windows import law_of_largest


def value(replay, text):
    (found,) = [line.value for line in replay.lines if line.text.startswith(text)]
    return found


def test_the_enclosures_contain_what_they_enclose():
    for x in (Fraction(1, 3), Fraction(5, 9), Fraction(299, 100), Fraction(3)):
        with mpmath.workdps(80):
            exact = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
            low, high = (mpmath.mpf(e.numerator) / e.denominator for e in (exp_below(x), exp_above(x)))
            assert low < exact < high and high - low < mpmath.mpf(10) ** -15
        assert root_below(x) ** 2 < x < root_above(x) ** 2
        assert root_above(x) - root_below(x) == Fraction(1, 10**40)
    assert root_above(Fraction(9, 4)) == root_below(Fraction(9, 4)) == Fraction(3, 2)


def test_the_suprema_add_up_to_twice_the_divergence():
    replay = suprema_at_different_rounds()
    assert (replay.claimed, replay.true) == (1, 2)


def test_two_hundred_windows_are_all_fine_with_probability_below_one_tenth():
    # exact binomial: one window fails with probability 0.01182, 200 windows are all fine with probability 0.093
    replay = one_window_is_not_all_windows()
    assert float(value(replay, "probability that 200 windows")) == pytest.approx(0.093, abs=5e-4)
    assert float(value(replay, "probability that one window")) == pytest.approx(0.01182, abs=5e-6)
    tosses = np.random.default_rng(0).integers(0, 2, (100_000, 20)).mean(axis=1)
    assert np.mean((2 * tosses - 1) ** 2 > 2 * math.log(20) / 20) == pytest.approx(0.01182, abs=1.5e-3)


def test_hoeffding_for_one_client_says_nothing_of_all_clients():
    replay = per_client_is_not_all_clients()
    threshold = math.log(2 / 0.83) / 2
    broken = [max((q - 1 / 3) ** 2 for q in draw) > threshold for draw in np.eye(3)]
    assert all(broken) and replay.true == 1
    assert judge_replay(per_client_is_not_all_clients(c=Fraction(82, 100)), (), "").outcome != "refuted"


@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_the_bound_for_one_window_of_three_clients_survives_enumeration(rounds):
    # one-hot draws, v the corners of a triangle: the tail of (7) against every c at which it jumps
    corners = np.array([[1, 0], [-0.5, math.sqrt(0.75)], [-0.5, -math.sqrt(0.75)]])
    squares = sorted(
        (np.linalg.norm(sum(corners[n] for n in draw)) / rounds) ** 2 for draw in product(range(3), repeat=rounds)
    )
    for k, square in enumerate(squares):
        c = 2 * math.exp(-2 * rounds * square / 9)  # N^2 d^2 ln(2/c)/(2P) = square
        assert (len(squares) - k) / len(squares) <= max(c, 1e-12) + 1e-9
    assert all(check.holds for check in three_clients_each_independent().checks)


@pytest.mark.parametrize(("window", "ratio"), [(5, 2.180), (20, 1.220), (100, 1.044)])
def test_a_negatively_correlated_chain_is_above_its_long_run_variance_by_a_ratio_that_tends_to_one(window, ratio):
    r = -0.8
    found = finite_window_ratio(Fraction(-4, 5), window)
    assert float(found) == pytest.approx(ratio, abs=6e-4)
    assert float(found) == pytest.approx(1 - 2 * r * (1 - r**window) / (window * (1 - r**2)))
    assert all(check.holds for check in finite_window_against_its_limit().checks)


def test_positive_correlation_stays_below_the_long_run_variance():
    assert finite_window_ratio(Fraction(1, 2), 5) < 1
    assert not all(check.holds for check in finite_window_against_its_limit(Fraction(1, 2)).checks)


def test_shared_noise_keeps_the_gradient_at_one_third():
    replay = shared_noise(N=1000, T=10**6)
    assert float(replay.claimed) == pytest.approx(0.00203, abs=1e-5)
    assert replay.true == Fraction(1, 3)
    assert shared_noise().exceeds and not shared_noise(N=6, T=10**9).exceeds


def test_chebyshev_for_one_window_holds_for_one_window_and_fails_for_262():
    # more than 16 of 20 tosses alike: 2 (1 + 20 + 190) outcomes of 2^20
    assert chebyshev_for_one_window(windows=1).true == Fraction(2 * 211, 2**20)
    assert not chebyshev_for_one_window(windows=261).exceeds
    assert chebyshev_for_one_window(windows=262).exceeds


@pytest.mark.parametrize("window", [1, 2, 5, 8])
def test_canceling_weights_leave_the_variance_of_the_two_ends(window):
    # the sum telescopes to (e_last - e_first)/2, so Var(qbar) = 1/(8 P^2), and (7) is four times that
    replay = vanishing_long_run_variance(window)
    assert (replay.claimed, replay.true) == (0, Fraction(4, 8 * window**2))


def test_long_blocks_are_ergodic_from_the_first_round():
    # blocks of 1, 2, 3, ... rounds, one fair coin each: the variance of the mean from t_0 = 0 tends to zero
    assert [round(float(block_variance(0, 10**k)), 4) for k in (1, 2, 3, 4)] == [0.075, 0.0225, 0.0074, 0.0024]
    means = np.random.default_rng(1).integers(0, 2, (200_000, 4)) @ np.array([1, 2, 3, 4]) / 10
    assert np.var(means) == pytest.approx(float(block_variance(0, 10)), rel=0.02)


def test_the_lost_variance_costs_a_factor_of_1302():
    ratio = value(lost_weight_variance(), "6 delta^2") / 6  # of the two windows' terms: 3/upsilon^2 against 6
    assert float(ratio) == pytest.approx(1302.08, abs=0.01)
    squares = [lost_weight_variance(S=S).true for S in (1, 10, 20)]  # 9 S^3 N^3/(N - S)^2 grows with the participants
    assert squares == [Fraction(9 * S**3 * 250**3, (250 - S) ** 2) for S in (1, 10, 20)]
    assert squares[0] == lost_weight_variance().claimed < squares[1] < squares[2]


def test_chebyshev_is_tighter_than_hoeffding_for_small_parts_of_many_clients():
    upsilon2 = 3.84e-4
    assert upsilon2 / 7.6e-5 < math.log(2 / 7.6e-5) / 2 and upsilon2 / 7.5e-5 > math.log(2 / 7.5e-5) / 2
    assert all(check.holds for check in smaller_of_two_tails().checks)


def test_the_cap_on_local_steps_is_far_below_one():
    upsilon2, rho2 = 3.84e-4, 0.1  # rho/(2 upsilon^2 N^(5/2) sqrt(LF)) = 1 at I = 1
    assert math.sqrt(rho2) / (2 * upsilon2 * 250**2.5) == pytest.approx(4.17e-4, abs=5e-7)
    assert all(check.holds for check in cap_free_of_rounds().checks)
    assert not all(check.holds for check in cap_free_of_rounds(S=20).checks)


def test_after_scaling_the_first_term_grows_with_the_root_of_the_local_steps():
    checks = speed_up_ends_at_the_cap(T=2 * 10**6).checks
    assert all(check.holds for check in checks)
    one, four = checks[0].left, checks[1].left  # squares at I = 1 and I = 4, LF = 1
    assert four == 4 * one == 256 * Fraction(1, 4) ** 2 * 2**5 * 4 / Fraction(2 * 10**6)


def test_half_the_unit_doubles_the_step_size():
    replay = step_size_with_a_unit()
    assert replay.true == 4 * replay.claimed
    eta = 12 * math.sqrt(1 * 1 * 0.5)  # Corollary 3.3 at P = I = rho = L = 1, F = 1/2
    assert math.sqrt(replay.claimed) == pytest.approx(eta)


@pytest.mark.parametrize(("rounds", "up", "down"), [(9, 5, 4), (1000, 45, 44)])
def test_neither_rounding_of_the_interval_keeps_corollary_4_8(rounds, up, down):
    replay = interval_is_not_a_whole_number(rounds)
    assert replay.true == Fraction(up**2, 2) > replay.claimed == rounds
    # rounded down: N = 2, d = 1, upsilon^2 = 1/4 in 6 N^2 d^2 upsilon^2/P against 6 d^2/sqrt(N I T)
    assert 6 / math.sqrt(2 * rounds) < 6 * 4 * 0.25 / down


def test_lemma_c_2_survives_because_its_sum_has_slack():
    replay = earlier_rounds_in_lemma_c2()
    assert (replay.claimed, replay.true) == (1, 1 + Fraction(1, 2) / 12)
    factor = 9 / 5 * (math.exp(5 / 9) * math.sqrt(19 / 9) - 1)  # of the unrolled sum, times IP - 1/2
    assert factor == pytest.approx(2.7583, abs=5e-5)
    assert float(lemma_c2_has_slack().checks[0].left) == pytest.approx(factor)
    for P in range(2, 200):
        for rho2 in np.linspace(0, 1, 21):  # S_t <= rho^2, and 1 - S <= 1 in the rounds before
            assert factor * (rho2 + 1 / (6 * P)) <= 3 * (rho2 + (1 - rho2) / (6 * P))
    assert not all(check.holds for check in lemma_c2_has_slack(P=1).checks)


@pytest.mark.parametrize("eta", [1.0, 2.0, 5.0, 10.0])
def test_the_toy_cycle_rests_at_the_same_distance_for_every_amplification(eta):
    z, gamma, x = np.array([[-1, 0], [1, 0], [0, math.sqrt(3)]]), 0.05, np.array([1.0, 2.0])
    for _ in range(300):
        start = x
        for client in z:
            x = x - gamma * (x - client)
        x = start + eta * (x - start)
    distance = np.linalg.norm(x - z.mean(axis=0))
    assert distance == pytest.approx(0.034184, abs=5e-7)
    assert distance == pytest.approx(math.sqrt(toy_distance2(toy_center(Fraction(1, 20)))), rel=1e-9)
    assert all(check.holds for check in toy_center_is_near().checks)


def test_choosing_the_noisier_client_keeps_the_gradient_above_one_over_pi():
    replay = participation_follows_the_noise()
    assert float(replay.claimed) == pytest.approx(0.2956, abs=1e-6)
    larger = cast(float, mpmath.quad(lambda v: 2 * v * mpmath.npdf(v) * mpmath.ncdf(v), [-mpmath.inf, mpmath.inf]))
    assert larger == pytest.approx(1 / math.sqrt(math.pi))
    # mean and second moment of x <- x - gamma (x + max of two normals), whose square has mean 1
    gamma, mean, square, lowest = 0.02, -1.0, 1.0, 1.0
    for _ in range(1000):
        square = (1 - gamma) ** 2 * square - 2 * gamma * (1 - gamma) * mean * float(larger) + gamma**2
        mean = (1 - gamma) * mean - gamma * float(larger)
        lowest = min(lowest, square)
        assert mean**2 >= replay.true
    assert lowest == pytest.approx(0.325, abs=2e-3)


@pytest.mark.parametrize(("interval", "bound", "least"), [(8, 0.2564, 0.28125), (100, 0.0201, 0.2525)])
def test_noise_with_memory_is_unbiased_at_the_current_point_when_replayed_with_samples(interval, bound, least):
    replay = noise_with_memory(interval, 10**4 if interval == 8 else 10**7)
    assert float(replay.claimed) == pytest.approx(bound, abs=5e-5)
    assert float(replay.true) == pytest.approx(least, abs=5e-5)
    eta, samples = 1e5, 20_000
    gamma = 1 / (2 * interval * eta)
    rng = np.random.default_rng(0)
    x, seconds = np.ones(samples), []
    for window in range(4):
        y, fresh, deviation = x, rng.normal(size=samples), x - x.mean()
        fresh -= deviation * np.dot(fresh, deviation) / max(np.dot(deviation, deviation), 1)
        for _ in range(interval):
            noise = rng.normal(size=samples)
            if window:  # the fresh normal with as much of the start as makes it uncorrelated with y
                noise = fresh - deviation * np.dot(fresh, y - y.mean()) / np.dot(deviation, y - y.mean())
                assert np.var(noise) == pytest.approx(1, abs=0.03)
                assert abs(np.mean(noise * (y - y.mean()))) < 1e-10
            y = y - gamma * (y + noise)
        x = x + eta * (y - x)
        seconds.append(np.mean(x**2))
    # 1/4 of the square of the mean and of the variance stay, and the coherent noise adds (gamma eta P)^2 = 1/4
    exact = [float(value(replay, f"E x^2 at the start of window {k}")) for k in (1, 2, 3)]
    assert seconds[:3] == pytest.approx(exact, rel=0.03)
    assert min(seconds) > 1.05 * float(replay.claimed)


def tail_of_balanced_patterns(N, P, square):
    """One of N clients a round, F_n = f + h_n with h_n' taking all balanced patterns of -1, 1 at some points: the exact
    probability that the largest left-hand side of (7) over x is above the square.
    """
    return sum(chance for k, chance in enumerate(law_of_largest(N, P)) if k**2 > square * P**2)


def test_balanced_patterns_are_counted_as_by_enumeration():
    N, P, square = 4, 4, Fraction(1, 5)
    patterns = [s for s in product((-1, 1), repeat=N) if sum(s) == 0]
    worst = [max(Fraction(sum(s[n] for n in draw), P) ** 2 for s in patterns) for draw in product(range(N), repeat=P)]
    assert tail_of_balanced_patterns(N, P, square) == Fraction(sum(w > square for w in worst), N**P)


def test_no_bound_free_of_the_clients_holds_at_all_points_at_once():
    # 2 d^2 ln(2/c)/P holds at any one point; over all points it fails with probability 0.94 where c = 0.1 was claimed
    N, P, c = 20, 100, 0.1
    of_one_point = Fraction(2 * math.log(2 / c) / P).limit_denominator(10**9)
    assert float(tail_of_balanced_patterns(N, P, of_one_point)) == pytest.approx(0.94, abs=5e-3)
    draws = np.random.default_rng(0).multinomial(P, [1 / N] * N, size=20_000)
    counts = np.sort(draws, axis=1)
    roots = (counts[:, N // 2 :].sum(axis=1) - counts[:, : N // 2].sum(axis=1)) / P
    assert np.mean(roots**2 > 2 * math.log(2 / c) / P) == pytest.approx(0.94, abs=1e-2)


@pytest.mark.parametrize(("N", "P"), [(4, 12), (6, 30), (20, 100)])
def test_bounded_differences_hold_at_all_points_and_rescue_the_printed_constant(N, P):
    result = load("arbitrary-participation/proposition-4.7")
    for c in (0.01, 0.1, 0.5, 0.9):
        constants = {"N": N, "P": P, "d": 1.0, "c": c, "upsilon": math.sqrt(N - 1) / N}
        values = {
            name: float(evaluate(result, {k: constants[k] for k in needs}, form=name).value)
            for name, needs in (
                ("repaired:one-window", "NPdc"),
                ("sharp:one-window", ("N", "P", "d", "c", "upsilon")),
                ("repaired:own-constant", "NPdc"),
            )
        }
        assert values["repaired:one-window"] == pytest.approx(
            (math.sqrt(N - 1) + math.sqrt(2 * math.log(1 / c))) ** 2 / P
        )
        assert values["sharp:one-window"] == pytest.approx(values["repaired:one-window"])  # one client a round
        assert values["repaired:one-window"] <= values["repaired:own-constant"]
        assert tail_of_balanced_patterns(N, P, Fraction(values["repaired:one-window"])) <= c


def test_the_union_over_windows_takes_their_number_into_the_logarithm():
    result = load("arbitrary-participation/proposition-4.7")
    one = evaluate(result, {"N": 5, "P": 10, "d": 1, "c": 0.01}, form="repaired:one-window")
    every = evaluate(result, {"N": 5, "P": 10, "T": 100, "d": 1, "c": 0.1}, form="repaired:all-windows")
    assert float(every.value) == pytest.approx(float(one.value))
