"""Counterexamples about the divergences (5)-(7): when they are attained, and over which windows they hold.

Two clients with gradient offsets v = (-1, 1) are enough nearly everywhere; then d = 1 and (15) is an equality.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import count, pairwise, product
from math import comb

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller, exp_above, exp_below

OFFSETS = (Fraction(-1), Fraction(1))
HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
Weights = Sequence[Fraction]
MIXING = "sup_k k^5 alpha(k) is finite"


def mean(weights: Weights, offsets: Weights = OFFSETS) -> Fraction:
    """sum_n q^n v_n."""
    return sum((q * v for q, v in zip(weights, offsets, strict=True)), Fraction(0))


def spread(weights: Weights, offsets: Weights = OFFSETS) -> Fraction:
    """sum_n q^n (v_n - sum_m q^m v_m)^2."""
    center = mean(weights, offsets)
    return sum((q * (v - center) ** 2 for q, v in zip(weights, offsets, strict=True)), Fraction(0))


def divergence_checks(offsets: Weights = OFFSETS, d: Fraction = Fraction(1)) -> tuple[Check, ...]:
    """Assumption 3 for offsets that do not depend on x; they sum to zero because f is the clients' mean."""
    return (
        Check("bounded-divergence", "sum_n v_n = 0, because f = (1/N) sum_n F_n", sum(offsets), "==", 0),
        Check("bounded-divergence", "max_n |v_n|^2 <= d^2", max(v**2 for v in offsets), "<=", d**2),
    )


def weight_checks(rounds: Sequence[Weights]) -> tuple[Check, ...]:
    """The weights of every round that can occur."""
    return (
        Check("weights", "min over n, t of q_t^n >= 0", min(min(q) for q in rounds), ">=", 0),
        Check("weights", "max_t |sum_n q_t^n - 1| = 0", max(abs(sum(q) - 1) for q in rounds), "==", 0),
    )


ONE_HOT = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))


def coin_checks() -> tuple[Check, ...]:
    """A fair one-hot coin each round, the tosses independent."""
    chance = HALF
    return (
        *divergence_checks(),
        *weight_checks(ONE_HOT),
        Check("unbiased-sampling", "E q_t^1 = 1/N", chance * 1 + chance * 0, "==", HALF),
        Check("independent-rounds", "E[q_t^1 q_s^1] = E[q_t^1] E[q_s^1], t != s", HALF * HALF, "==", Fraction(1, 4)),
    )


# --- E1: Proposition 4.1 -----------------------------------------------------------------------------------------


def suprema_at_different_rounds() -> Replay:
    """Weights (1, 0), then (1/2, 1/2): (5) is attained in the first round, (6) in the second."""
    rounds = (ONE_HOT[0], (HALF, HALF))

    def both(chosen: Sequence[Weights], offsets: Weights = OFFSETS) -> tuple[Fraction, Fraction]:
        return max(mean(q, offsets) ** 2 for q in chosen), max(spread(q, offsets) for q in chosen)

    beta2, nu2 = both(rounds)
    d2 = max(v**2 for v in OFFSETS)
    alone = [Smaller(f"round {t} alone", d2, sum(both([q]), Fraction(0))) for t, q in enumerate(rounds)]
    one_client = Smaller("one client", 0, sum(both([(Fraction(1),)], (Fraction(0),)), Fraction(0)))
    return Replay(
        instance="Two clients with grad F_n - grad f = -1, +1 (F_n = x^2/2 -+ x); weights (1, 0), then (1/2, 1/2).",
        hypotheses=(*divergence_checks(), *weight_checks(rounds)),
        lines=(
            *(Line(f"left-hand side of (5) in round {t}", mean(q) ** 2) for t, q in enumerate(rounds)),
            *(Line(f"left-hand side of (6) in round {t}", spread(q)) for t, q in enumerate(rounds)),
            Line("least beta^2 for all rounds", beta2),
            Line("least nu^2 for all rounds", nu2),
        ),
        claimed=d2,
        true=beta2 + nu2,
        sides=("d^2 =", "least beta^2 + nu^2 ="),
        minimal="fewest clients and fewest rounds",
        smaller=(*alone, one_client),
    )


# --- E4: the parts of Propositions 4.6 and 4.7 with high probability ---------------------------------------------


def per_client_is_not_all_clients(N: int = 3, c: Fraction = Fraction(83, 100)) -> Replay:
    """One of three clients at random, P = 1: (17) holds for each client, but never for all three at once."""
    largest = (1 - Fraction(1, N)) ** 2  # of (qbar - 1/N)^2, for the client that takes part
    exponent = 2 * largest  # ln(2/c)/2 < largest iff exp(2 largest) > 2/c
    below = exp_below(exponent)
    draws = [tuple(Fraction(int(n == m)) for n in range(N)) for m in range(N)]
    exceeded = below > 2 / c  # then every client that takes part exceeds the threshold
    per_client = Fraction(1, N) if exceeded else Fraction(0)
    some_client = Fraction(1) if exceeded else Fraction(0)
    two = Fraction(1, 4) * 2
    return Replay(
        instance=f"N = {N} clients, one of them at random in each round, independently; P = 1, c = {c}.",
        hypotheses=(
            *weight_checks(draws),
            Check("unbiased-sampling", "E q_t^n = 1/N", Fraction(sum(q[0] for q in draws), N), "==", Fraction(1, N)),
            Check("independent-rounds", "a window of P = 1 round has one draw; P - 1 = 0", 0, "==", 0),
            Check("0 < c < 1", "c < 1", c, "<", 1),
        ),
        lines=(
            Line("(qbar - 1/N)^2 of the client that takes part", largest),
            Line(f"a rational below exp({exponent})", below),
            Line("2/c, which is smaller, so that ln(2/c)/(2P) is below that square", 2 / c),
            Line("probability that a given client breaks (17); (17) is true", per_client),
            Line("probability that some client breaks (17)", some_client),
        ),
        claimed=c,
        true=some_client,
        sides=("c =", "probability that (17) fails for some client ="),
        minimal="fewest clients at P = 1: with two clients ln(2/c)/2 is above 1/4 for every c < 1",
        smaller=(Smaller("N = 2, P = 1: to exceed (17), exp(1/2) would have to be above 2/c > 2", 2, exp_above(two)),),
    )


def some_window_exceeds(threshold: Fraction, windows: int, P: int) -> Fraction:
    """Probability that (7), (2 k/P - 1)^2 for k heads of a fair coin, exceeds the threshold in some window."""
    bad = sum(comb(P, k) for k in range(P + 1) if (Fraction(2 * k, P) - 1) ** 2 > threshold)
    return 1 - (1 - Fraction(bad, 2**P)) ** windows


def one_window_is_not_all_windows(windows: int = 9, P: int = 20) -> Replay:
    """c = 1/10: one of nine windows of twenty tosses exceeds N^2 d^2 ln(2/c)/(2P) with probability above c."""
    threshold = 4 * Fraction(3) / (2 * P)
    return Replay(
        instance=f"Two clients, v = (-1, 1); a fair coin decides each round. P = {P}, c = 1/10, {windows} windows.",
        hypotheses=coin_checks(),
        lines=(
            Line("a rational below exp(3), which is above 20 = 2/c, so ln(2/c) < 3", exp_below(Fraction(3))),
            Line("N^2 d^2 ln(2/c)/(2P), rounded up", threshold),
            Line("probability that one window exceeds it, at least", some_window_exceeds(threshold, 1, P)),
            Line("probability that 200 windows are all fine, at most", 1 - some_window_exceeds(threshold, 200, P)),
        ),
        claimed=TENTH,
        true=some_window_exceeds(threshold, windows, P),
        sides=("c =", f"probability that one of {windows} windows exceeds the bound, at least"),
        minimal=f"fewest windows of {P} rounds",
        smaller=(
            Smaller(
                f"{windows - 1} windows, ln(2/c) rounded down to 2.99",
                TENTH,
                some_window_exceeds(4 * Fraction(299, 100) / (2 * P), windows - 1, P),
            ),
        ),
    )


def chebyshev_for_one_window(windows: int = 262, P: int = 20) -> Replay:
    """c = 1/10, upsilonhat^2 = 1/4: one of many windows exceeds N^2 d^2 upsilonhat^2/(c P) with probability above c."""
    c, long_run = TENTH, Fraction(1, 4)
    threshold = 4 * long_run / (c * P)
    return Replay(
        instance=f"Two clients, v = (-1, 1); a fair coin decides each round. P = {P}, c = 1/10, {windows} windows.",
        hypotheses=(*coin_checks(), Check("strongly-mixing", f"{MIXING}: alpha(k) = 0 for k >= 1", 0, "<=", 0)),
        lines=(
            Line("upsilonhat^2 = Var(q_t^1)", long_run),
            Line("N^2 d^2 upsilonhat^2/(c P)", threshold),
            Line("probability that one window exceeds it", some_window_exceeds(threshold, 1, P)),
            Line("the same for P = 100 (positive for every P > 1/c, so enough windows always break it)",
                 some_window_exceeds(4 * long_run / (c * 100), 1, 100)),
        ),
        claimed=c,
        true=some_window_exceeds(threshold, windows, P),
        sides=("c =", f"probability that one of {windows} windows exceeds the bound ="),
        minimal=f"fewest windows of {P} rounds",
        smaller=(Smaller(f"{windows - 1} windows", c, some_window_exceeds(threshold, windows - 1, P)),),
    )  # fmt: skip


def three_clients_each_independent(c: Fraction = Fraction(83, 100)) -> Argument:
    """Proposition 4.7's bound for one window of three clients, each independent over rounds, however dependent."""
    return Argument(
        text="With Y_n = qbar_n - 1/3, sum_n Y_n = 0, so |sum_n Y_n v_n| <= d sum_n |Y_n| = 2 d max_n |Y_n|. "
        "(i) Hoeffding for each client and a union over three: (7) exceeds 9 d^2 ln(2/c)/(2P) with probability at most "
        "6 (c/2)^(9/4), at most c for c <= 0.83, since 1296 c^5/512 <= 1 there. (ii) Var Y_n <= 2/(9P), so by Markov "
        "the probability is at most 16/(27 ln(2/c)), at most c for c >= 0.83, since c ln(2/c) falls from 2/e < 0.83 "
        "on and is ln(2) > 16/27 at c = 1.",
        checks=(
            Check("c <= 0.83", "1296 c^5/512 at c = 0.83", 1296 * c**5 / 512, "<=", 1),
            Check("c >= 0.83", "2/e < 0.83: 0.83 e", c * exp_below(Fraction(1)), ">", 2),
            Check("c >= 0.83", "16/27 < ln(2): exp(16/27)", exp_above(Fraction(16, 27)), "<", 2),
        ),
        axioms=("Hoeffding 1963, Theorem 2", "Markov's inequality"),
    )


# --- E6: the long-run variance at a finite window ----------------------------------------------------------------


def window_variance(covariances: Sequence[Fraction], P: int) -> Fraction:
    """(1/P) [g_0 + 2 sum_p (1 - p/P) g_p]."""
    later = sum(((1 - Fraction(p, P)) * g for p, g in enumerate(covariances) if 0 < p < P), Fraction(0))
    return (covariances[0] + 2 * later) / P


def finite_window_ratio(r: Fraction, P: int) -> Fraction:
    """Exact variance of a mean over upsilonhat^2/P for Cov(q_0, q_p) = r^p/4: 1 - 2 r (1 - r^P)/(P (1 - r^2))."""
    variance = Fraction(1, 4)
    return window_variance([variance * r**p for p in range(P)], P) / (variance * (1 + r) / (1 - r) / P)


def finite_window_against_its_limit(r: Fraction = Fraction(-4, 5)) -> Argument:
    """Above its limit at every P for r < 0, below it for r > 0, and 1 as P grows."""

    def closed(P: int) -> Fraction:
        return 1 - 2 * r * (1 - r**P) / (P * (1 - r**2))

    return Argument(
        text="With Cov(q_0, q_p) = r^p/4 the ratio of the exact variance to upsilonhat^2/P is 1 - 2 r (1 - r^P)/"
        f"(P (1 - r^2)), which is above 1 for r < 0 at every P and tends to 1. Here r = {r}.",
        checks=(
            *(Check("closed form", f"the ratio at P = {P}", finite_window_ratio(r, P), "==", closed(P))
              for P in (1, 5, 20, 100)),
            Check("r < 0", "the ratio at P = 100", closed(100), ">", 1),
            Check("P -> infinity", "the ratio less 1 at P = 10^6, at most", closed(10**6) - 1, "<=",
                  Fraction(1, 10**5)),
        ),
    )  # fmt: skip


def telescoping_coins(P: int) -> tuple[Fraction, Fraction, tuple[Fraction, Fraction]]:
    """q^1_t = 1/2 + (e_t - e_{t-1})/2, e = -1/2, 1/2: E of (7), E q^1_0 and the range, by enumeration."""
    coins = list(product((-HALF, HALF), repeat=P + 1))
    weights = [[HALF + (b - a) / 2 for a, b in pairwise(e)] for e in coins]
    squares = sum(((sum(q, Fraction(0)) / P - HALF) ** 2 for q in weights), Fraction(0))
    first = sum((q[0] for q in weights), Fraction(0)) / len(coins)
    return 4 * squares / len(coins), first, (min(map(min, weights)), max(map(max, weights)))


def vanishing_long_run_variance(P: int = 1) -> Replay:
    """The weights 1/2 + (e_t - e_{t-1})/2 are stationary and 1-dependent, and upsilonhat = 0."""
    true, first, (low, high) = telescoping_coins(P)
    variance, covariance = Fraction(1, 8), Fraction(-1, 16)
    longer = [Line(f"E of (7) at P = {window}, by enumeration", telescoping_coins(window)[0]) for window in (2, 5, 8)]
    return Replay(
        instance="Two clients, v = (-1, 1); q_t^1 = 1/2 + (e_t - e_{t-1})/2 with fair coins e_t = -1/2 or 1/2, "
        f"q_t^2 = 1 - q_t^1; P = {P}.",
        hypotheses=(
            *divergence_checks(),
            *weight_checks(((low, 1 - low), (high, 1 - high))),
            Check("unbiased-sampling", "E q_t^1 = 1/N", first, "==", HALF),
            Check("strongly-mixing", f"{MIXING}: 1-dependent, so alpha(k) = 0 for k >= 2, and alpha(1) <= 1/4",
                  Fraction(1, 4), "<=", 1),
        ),
        lines=(
            Line("Var(q_t^1) = (1/4 + 1/4)/4", variance),
            Line("Cov(q_t^1, q_{t+1}^1) = -(1/4)/4", covariance),
            Line("upsilonhat^2 = Var + 2 Cov", variance + 2 * covariance),
            Line(f"E of (7) at P = {P}, by enumeration", true),
            *longer,
        ),
        claimed=4 * (variance + 2 * covariance) / P,
        true=true,
        sides=("N^2 d^2 upsilonhat^2/P =", "E of the left-hand side of (7) ="),
        minimal="fewest clients and rounds; it fails at every P (the true value is 1/(2 P^2))",
        smaller=(Smaller("one client", 0, 0),),
    )  # fmt: skip


# --- E7: which windows -----------------------------------------------------------------------------------


def block_overlaps(start: int, length: int) -> list[int]:
    """How many rounds of the window lie in each block, where block j = 1, 2, ... has j rounds."""
    overlaps, begin = [], 0
    for block in count(1):
        end = begin + block
        if begin >= start + length:
            return overlaps
        if end > start:
            overlaps.append(min(end, start + length) - max(begin, start))
        begin = end
    return overlaps


def block_variance(start: int, length: int) -> Fraction:
    """Variance of the window mean if one fair one-hot coin decides each block."""
    return Fraction(sum(m**2 for m in block_overlaps(start, length)), 4 * length**2)


def ergodic_but_not_uniformly(P: int = 10) -> Replay:
    """Block j has length j and one fair coin decides it whole: every mean converges, but not uniformly in t_0."""

    def start_inside(window: int) -> int:
        block = 2 * window
        begin = block * (block - 1) // 2  # rounds before this block
        return -(-begin // window) * window

    ceiling = []
    for length in (10, 100, 1000, 10000):
        overlaps = block_overlaps(0, length)
        ceiling.append(
            Check("ergodic", f"Var(qbar) from t_0 = 0 at P = {length} <= (number of blocks)/(4P), of order P^(-1/2)",
                  block_variance(0, length), "<=", Fraction(len(overlaps), 4 * length))
        )  # fmt: skip
    return Replay(
        instance="Two clients, v = (-1, 1); rounds come in blocks of 1, 2, 3, ... rounds and one fair coin decides "
        "who takes part in all of a block, so that from any fixed t_0 the variance of qbar is at most "
        "(longest block met)/(4P), which tends to zero.",
        hypotheses=(
            *divergence_checks(),
            *weight_checks(ONE_HOT),
            Check("unbiased-sampling", "E q_t^1 = 1/N", HALF * 1 + HALF * 0, "==", HALF),
            *ceiling,
        ),
        lines=tuple(
            Line(f"E of (7) for P = {window} over the window at {start_inside(window)}, inside block {2 * window}",
                 4 * block_variance(start_inside(window), window))
            for window in (P, 10 * P, 100 * P)
        ),
        claimed=TENTH,
        true=min(4 * block_variance(start_inside(window), window) for window in (P, 10 * P, 100 * P)),
        sides=("a delta^2(P) that tends to 0 is in the end below", "supremum of E of (7) over t_0 at every P ="),
        minimal="fewest clients (a single client always has weight 1)",
        smaller=(Smaller("one client", TENTH, 0),),
    )  # fmt: skip


def ergodic_from_a_fixed_start(P: int = 10**4, windows: int = 10) -> Argument:
    """Table 1's limit under ergodic participation, rescued: few windows, each a difference of two means from 0."""
    bound = (2 * windows + 1) ** 2
    worst = max(block_variance(k * P, P) for k in range(windows))
    widest = max(block_variance(0, k * P) for k in range(1, windows + 1))
    return Argument(
        text="The mean over [kP, (k+1)P) is (k+1) times the mean of the first (k+1)P rounds less k times that of the "
        "first kP. With e(P) the largest root mean square deviation of means from t_0 = 0 over at least P rounds, "
        "e(P) -> 0 by ergodicity at t_0 = 0, the deviation over each of the first K windows is at most (2K + 1) e(P) "
        "by Minkowski's inequality. Choose K = T/P growing so slowly that K e(T/K) -> 0; then all terms of "
        "Theorem 3.1 at Corollary 3.2's step sizes tend to 0.",
        checks=(Check("example", "blocks of 1, 2, 3, ... rounds: Var over ten windows of 10^4 <= 21^2 e^2", worst, "<=",
                      bound * widest),),
        axioms=("Minkowski's inequality", "the limit, in words"),
    )  # fmt: skip
