r"""Claims of Wang & Ji (2022) that fail, each with a counterexample in exact arithmetic and what holds instead.

A counterexample recomputes both sides from scratch. It returns `(claimed, true)`: the paper claims `true <= claimed`.
Where a number is irrational, `claimed` is rounded up and `true` is rounded down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import comb, floor, isqrt, sqrt


@dataclass(frozen=True)
class Erratum:
    """One mathematical erratum.

    Args:
        id: its name here; forms refer to it in `refuted_by`.
        claim: what the paper says, with its number.
        fails: why it is false, in one or two sentences.
        instead: what holds.
        counterexample: recomputes (claimed, true), with true > claimed.
    """

    id: str
    claim: str
    fails: str
    instead: str
    counterexample: Callable[[], tuple[Fraction, Fraction]]


def suprema_at_different_rounds() -> tuple[Fraction, Fraction]:
    """Two clients, grad F_n - grad f = -1, +1, so d^2 = 1; weights (1, 0), then (1/2, 1/2)."""
    offsets = (Fraction(-1), Fraction(1))
    rounds = ((Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2)))
    d2 = max(v**2 for v in offsets)
    means = [sum((q * v for q, v in zip(weights, offsets, strict=True)), Fraction(0)) for weights in rounds]
    beta2 = max(mean**2 for mean in means)
    nu2 = max(
        sum((q * (v - mean) ** 2 for q, v in zip(weights, offsets, strict=True)), Fraction(0))
        for weights, mean in zip(rounds, means, strict=True)
    )
    return d2, beta2 + nu2


def some_window_exceeds(threshold: Fraction, windows: int, P: int) -> Fraction:
    """Two clients, v = (-1, 1), a fair one-hot coin each round: the probability that (7) exceeds the threshold.

    The left-hand side of (7) is (2 k/P - 1)^2 for k heads, and (15) is an equality.
    """
    bad = sum(comb(P, k) for k in range(P + 1) if (Fraction(2 * k, P) - 1) ** 2 > threshold)
    return 1 - (1 - Fraction(bad, 2**P)) ** windows


def one_window_is_not_all_windows(windows: int = 200, P: int = 20) -> tuple[Fraction, Fraction]:
    """The claim allows probability c = 1/10 that a window exceeds N^2 d^2 ln(2/c)/(2P) = 2 ln(20)/P.

    ln(20) is replaced by the larger rational 3, which only makes fewer windows fail.
    """
    return Fraction(1, 10), some_window_exceeds(Fraction(2 * 3, P), windows, P)


def chebyshev_for_one_window(windows: int = 300, P: int = 20) -> tuple[Fraction, Fraction]:
    """The claim allows probability c = 1/10 that a window exceeds N^2 d^2 upsilonhat^2/(c P); upsilonhat^2 = 1/4."""
    c, long_run = Fraction(1, 10), Fraction(1, 4)
    return c, some_window_exceeds(4 * long_run / (c * P), windows, P)


def long_run_variance_at_finite_window(r: Fraction = Fraction(-4, 5), P: int = 5) -> tuple[Fraction, Fraction]:
    r"""Two clients, a stationary two-state chain with correlation r < 0: E of (7) against N^2 d^2 upsilonhat^2/P.

    Var(q) = 1/4, Cov(q_0, q_p) = r^p/4, d = 1; for N = 2 the left-hand side is exactly 4 Var(qbar).
    """
    variance = Fraction(1, 4)
    exact = variance * (1 + 2 * sum(((1 - Fraction(p, P)) * r**p for p in range(1, P)), Fraction(0))) / P
    long_run = variance * (1 + r) / (1 - r)
    return 4 * long_run / P, 4 * exact


def vanishing_long_run_variance(P: int = 6) -> tuple[Fraction, Fraction]:
    """Two clients, q^1_t = 1/2 + (e_t - e_{t-1})/2 with fair coins e = -1/2, 1/2: E of (7) by enumeration against 0.

    The weights are stationary and 1-dependent. Var(q) = 1/8 and Cov(q_t, q_{t+1}) = -1/16, so upsilonhat^2 = 0.
    """
    coins = list(product((Fraction(-1, 2), Fraction(1, 2)), repeat=P + 1))
    means = [sum(((b - a) / 2 for a, b in pairwise(e)), Fraction(0)) / P for e in coins]
    variance, covariance = Fraction(1, 8), Fraction(-1, 16)
    return 4 * (variance + 2 * covariance) / P, 4 * sum((m**2 for m in means), Fraction(0)) / len(coins)


def unaligned_windows(P: int = 2) -> tuple[Fraction, Fraction]:
    """Two clients visited in the orders (1, 2), (2, 1): (7) over the windows at multiples of P against every window."""
    visits = (0, 1, 1, 0)
    offsets = (Fraction(-1), Fraction(1))
    divergence = [
        (sum((offsets[visits[t]] for t in range(start, start + P)), Fraction(0)) / P) ** 2
        for start in range(len(visits) - P + 1)
    ]
    return max(divergence[::P]), max(divergence)


def ergodic_but_not_uniformly(P: int = 10) -> tuple[Fraction, Fraction]:
    """Block j has length j and one fair coin decides it whole: every mean converges, yet a window inside a long block
    has variance 1/4 for every P. The claim is a delta(P) for all windows that tends to zero, e.g. below 1/10."""
    block = next(j for j in range(1, 10**6) if j >= 2 * P)
    start = block * (block - 1) // 2  # rounds before this block
    first_multiple = -(-start // P) * P
    assert start <= first_multiple and first_multiple + P <= start + block
    heads = (Fraction(0), Fraction(1))  # the window mean of client 1: all tails or all heads
    mean = sum(heads, Fraction(0)) / 2
    return Fraction(1, 10), sum(((h - mean) ** 2 for h in heads), Fraction(0)) / 2 * 4


def lost_weight_variance(N: int = 250, S: int = 10) -> tuple[Fraction, Fraction]:
    r"""S of N without replacement: the coefficient of ln(2/c) d^2/sqrt(NIT) at Corollary 4.8's P is 3/upsilon^2.

    The table's entry needs it to be of order 1 (here at most 6, the coefficient in expectation), uniformly in N and S.
    """
    upsilon2 = Fraction(N - S, S * N**2)
    return Fraction(6), 3 / upsilon2


def tail_without_variance(N: int = 250, S: int = 10) -> tuple[Fraction, Fraction]:
    """S of N without replacement, c = 1/10: the constants upsilon^2/c of Proposition 4.6 and ln(2/c)/2 of 4.7.

    ln(20) is replaced by the smaller rational 2.99.
    """
    return Fraction(N - S, S * N**2) * 10, Fraction(299, 200)


def cap_without_rounds(N: int = 250, S: int = 10) -> tuple[Fraction, Fraction]:
    """S of N without replacement, LF = 1: the square of Corollary 4.8's cap on I against the least I there is."""
    upsilon2, rho2 = Fraction(N - S, S * N**2), Fraction(1, S)
    return rho2 / (4 * upsilon2**2 * N**5), Fraction(1)


def scaling_loses_the_speed_up(N: int = 250, S: int = 10, T: int = 10**6) -> tuple[Fraction, Fraction]:
    r"""The square of the first term of Corollary 4.8 for a f, divided by a^2: with LF = 1, a quarter of it at I = 1
    against it at I = 4, each at the largest a that the cap on I admits.

    The first term is $(8/a+4a\sigma^2)\rho\sqrt{LF}/\sqrt{IT}$; take sigma = 0. A term of order 1/sqrt(I) would halve.
    """
    upsilon2, rho2 = Fraction(N - S, S * N**2), Fraction(1, S)

    def squared(I: int) -> Fraction:
        a2 = rho2 / (4 * upsilon2**2 * N**5 * I**2)
        return 64 / a2 * rho2 / (I * T)

    return squared(1) / 4, squared(4)


def step_size_with_a_unit() -> tuple[Fraction, Fraction]:
    """Corollary 3.3's eta^2 = 144 P^2 L I F/rho^2 for one problem, f measured in a unit and in half of it.

    eta multiplies a displacement, so it is a number and cannot depend on the unit; L and F both double.
    """

    def squared(L: int, F: int) -> Fraction:
        P, I, rho2 = 2, 2, Fraction(1, 2)
        return 144 * P**2 * L * I * F / rho2

    return squared(1, 5), squared(2, 10)


def interval_is_not_a_whole_number(T: int = 1000) -> tuple[Fraction, Fraction]:
    """N = 2, S = 1, I = 1 and LF at Corollary 4.8's cap: T against 4LIP^2F/rho^2 at the next whole number P.

    upsilon^2 = 1/4, rho = 1, so P^2 = upsilon^4 N^5 I T = 2T and the cap is LF = 1/8.
    """
    LF = 1 / (4 * Fraction(1, 4) ** 2 * 2**5)
    P = isqrt(2 * T - 1) + 1
    return Fraction(T), 4 * LF * P**2


def earlier_rounds_in_lemma_c2(N: int = 10) -> tuple[Fraction, Fraction]:
    """I = 1, P = 2, all clients in the first round and one in the second: the noise in D at the start of round t_0 + 1.

    One step of (C.9) from D = 0 has made it rho^2 + (1 - S_{t_0})/(6P), in units of (gamma sigma)^2; the unrolled sum
    has S_t of the current round in its place.
    """
    P, rho2 = 2, Fraction(1)
    first, second = Fraction(1, N), Fraction(1)
    return rho2 + (1 - second) / (6 * P), rho2 + (1 - first) / (6 * P)


def toy_cycle_misses_the_minimiser(gamma: Fraction = Fraction(1, 20)) -> tuple[Fraction, Fraction]:
    r"""The toy example of Appendix B: squared distance from x* to the point where the amplified cycle comes to rest.

    A cycle maps x to $(1-\eta(1-b^3))x+\eta\gamma(b^2z_1+bz_2+z_3)$ with b = 1 - gamma, so its rest does not depend on
    eta: it is the mean of the z_n with weights b^2, b, 1. The z_n have products 1, 1, 3, -1, 0, 0.
    """
    b = 1 - gamma
    total = b**2 + b + 1
    w = [b**2 / total - Fraction(1, 3), b / total - Fraction(1, 3), 1 / total - Fraction(1, 3)]
    return Fraction(0), w[0] ** 2 + w[1] ** 2 + 3 * w[2] ** 2 - 2 * w[0] * w[1]


def participation_follows_the_noise() -> tuple[Fraction, Fraction]:
    r"""F_n = x^2/2 for two clients with independent standard normal noise, the one with the larger noise takes part;
    I = P = 1, gamma = 1/100, eta = 1, x_0 = -10: least E|grad f|^2 against Theorem 3.1's explicit bound at T = 10^7.

    The larger of two normals has mean m = 1/sqrt(pi), so E x_t = -m + (1 - gamma)^t (x_0 + m) stays below -m while
    x_0 < -m, and E x_t^2 >= m^2 = 1/pi > 7/22.
    """
    gamma, T, F = Fraction(1, 100), 10**7, Fraction(10**2, 2)
    bound = 8 * F / (gamma * T) + 21 * gamma**2 + 18 * gamma**2 + 4 * gamma
    return bound, Fraction(7, 22)


def noise_with_memory(windows: int = 40) -> tuple[Fraction, Fraction]:
    r"""F = x^2/2, N = I = 1, P = 100, eta = 10^5, gamma = 5e-8, x_0 = 1: least E|grad f|^2 against Theorem 3.1's
    explicit bound at T = 10^7, for noise of variance 1 that has mean zero given the current point, not given the past.

    In the first window the noise is independent. In a later one $\xi_j=c_j\xi+e_j(x_{t_0}-\mathbb Ex_{t_0})$ with one
    fresh standard normal $\xi$ for the window. The deviation of $y_j$ is
    $\alpha_j(x_{t_0}-\mathbb Ex_{t_0})+\beta_j\xi$, and c_j, e_j make $\operatorname{Cov}(\xi_j,y_j)=0$ and
    $\operatorname{Var}\xi_j=1$; all is normal, so $\mathbb E[\xi_j\mid y_j]=0$. The variance V at the windows'
    starts contracts to its limit by 1/4 a window, so that nothing moves after 40 of them. The square roots are taken in
    float64, with errors far below the sixth digit to which the answer is rounded down.
    """
    P, eta, gamma, T = 100, 1e5, 5e-8, 10**7
    keep = 1 - gamma
    V = (eta * gamma) ** 2 * sum(keep ** (2 * j) for j in range(P))
    mean = 1 + eta * (keep**P - 1)
    least = mean**2 + V
    for _ in range(windows):
        alpha, beta = 1.0, 0.0
        for j in range(P):
            least = min(least, (keep**j * mean) ** 2 + alpha**2 * V + beta**2)
            c = 1 / sqrt(1 + beta**2 / (alpha**2 * V))
            e = -c * beta / (alpha * V)
            alpha, beta = keep * alpha - gamma * e, keep * beta - gamma * c
        mean *= 1 + eta * (keep**P - 1)
        V = (1 + eta * (alpha - 1)) ** 2 * V + (eta * beta) ** 2
    step, F = Fraction(1, 200), Fraction(1, 2)  # gamma eta = 1/(2LIP)
    bound = 8 * F / (step * T) + (21 + 18 * P) * Fraction(5, 10**8) ** 2 + 4 * step
    return bound, Fraction(floor(least * 10**6), 10**6)


def shared_noise(steps: int = 200) -> tuple[Fraction, Fraction]:
    r"""F_n = x^2/2 for N = 1000 clients, q = 1/N, I = P = 1, gamma = 1/1000, eta = 500, x_0 = 1, and the same unit
    noise at every client: least E|grad f|^2 over the first rounds against Theorem 3.1's explicit bound at T = 10^6.

    E x^2 obeys m <- (1 - a)^2 m + a^2 with a = gamma*eta = 1/2; it decreases to its fixed point 1/3, so the least over
    any number of rounds is above 1/3.
    """
    a, T, gamma = Fraction(1, 2), 10**6, Fraction(1, 1000)
    rho2, F = Fraction(1, 1000), Fraction(1, 2)
    m = Fraction(1)
    least = m
    for _ in range(steps):
        m = Fraction((1 - a) ** 2 * m + a**2)
        least = min(least, m)
    least = min(least, Fraction(1, 3))
    bound = 8 * F / (a * T) + 21 * gamma**2 + 18 * gamma**2 * rho2 + 4 * a * rho2
    return bound, least


ERRATA: Sequence[Erratum] = (
    Erratum(
        "suprema-at-different-rounds",
        "Proposition 4.1: there are beta and nu with beta^2 + nu^2 <= d^2 that satisfy (5) and (6)",
        "(5) and (6) are suprema over rounds; the identity (11) bounds their sum only in one and the same round.",
        "beta <= d and nu <= d separately; the factor of d^2/T in Corollaries 4.3 and 4.8 is 1 + 7/(8 P^2), not 1",
        suprema_at_different_rounds,
    ),
    Erratum(
        "one-window-is-not-all-windows",
        "Proposition 4.7: with probability 1 - c, (7) holds with N^2 d^2 ln(2/c)/(2P)",
        "Hoeffding's inequality is per client and per window; (7) asks for all windows at once and no union bound is "
        "made.",
        "the average over the windows, which is all that the proof of Theorem 3.1 uses, is bounded with probability "
        "1 - c by N^2 d^2 Var/c (Markov) or by a sub-Gaussian bound with ln(1/c)",
        one_window_is_not_all_windows,
    ),
    Erratum(
        "chebyshev-for-one-window",
        "Proposition 4.6: with probability 1 - c, (7) holds with N^2 d^2 upsilonhat^2/(c P)",
        "Chebyshev's inequality is per client and per window; (7) asks for all windows at once and no union bound is "
        "made. (Independent rounds are mixing, with upsilonhat = upsilon.)",
        "the same constant, with the exact variance, for the average over the windows (Markov)",
        chebyshev_for_one_window,
    ),
    Erratum(
        "long-run-variance-at-finite-window",
        "Proposition 4.6: delta^2 = N^2 d^2 upsilonhat^2/P satisfies (7) in expectation",
        "A central limit theorem does not give the variance of a mean over finitely many rounds; with negative "
        "correlation the exact variance is larger than upsilonhat^2/P at every P.",
        "the exact variance (1/P)[g_0 + 2 sum_p (1 - p/P) g_p] in place of upsilonhat^2/P",
        long_run_variance_at_finite_window,
    ),
    Erratum(
        "vanishing-long-run-variance",
        "Proposition 4.6 and Corollary 4.8: delta^2 = N^2 d^2 upsilonhat^2/P and P = upsilonhat^2 N^(5/2) sqrt(I T)",
        "upsilonhat may be zero for weights that vary, where the covariances cancel the variance; delta = 0 and P = 0 "
        "are claimed, while the window mean has variance 1/(8 P^2) > 0.",
        "the exact variance of the window mean in place of upsilonhat^2/P, at any whole P",
        vanishing_long_run_variance,
    ),
    Erratum(
        "unaligned-windows",
        "Proposition 4.2 with (7) read as printed: the window divergence is zero for all t_0",
        "Participation that is regular over the windows [kP, (k+1)P), such as a permutation drawn anew each cycle, is "
        "not regular over windows that straddle two cycles.",
        "(7) at t_0 in {0, P, 2P, ...}, which is all that Proposition 4.2 and the proof of Theorem 3.1 use",
        unaligned_windows,
    ),
    Erratum(
        "ergodic-but-not-uniformly",
        "Proposition 4.4: mean-ergodicity for every t_0 gives one delta(P) -> 0 that satisfies (7) for all t_0",
        "The convergence need not be uniform in t_0.",
        "N^2 d^2 times the largest variance over the windows actually used",
        ergodic_but_not_uniformly,
    ),
    Erratum(
        "lost-weight-variance",
        "Table 1, independent participation with probability 1 - c: O((1 + sigma^2) ln(2/c)/sqrt(SIT))",
        "At Corollary 4.8's P the term is 3 d^2 ln(2/c)/(upsilon^2 sqrt(NIT)); 1/upsilon^2 does not cancel and grows "
        "with S.",
        "a larger P restores the order but then the cap on I loses its upsilon^-2",
        lost_weight_variance,
    ),
    Erratum(
        "tail-without-variance",
        "Propositions 4.6 and 4.7: the bound with probability 1 - c is tighter for independent than for mixing weights",
        "ln(2/c)/2 <= 1/c - 1/2 compares the dependence on c alone; Chebyshev's constant carries the variance of the "
        "weights, which is small when many clients share a round, Hoeffding's does not.",
        "the smaller of the two; for S = 10 of N = 250 that is Chebyshev's for every c > 7.5e-5",
        tail_without_variance,
    ),
    Erratum(
        "cap-without-rounds",
        "Corollary 4.8 and Table 1: O((1 + sigma^2)/sqrt(SIT)) for sufficiently large T",
        "The cap on I does not involve T; with I >= 1 it asks for sqrt(LF) <= rho/(2 upsilon^2 N^(5/2)), which is "
        "4.17e-4 for S = 10 of N = 250.",
        "the corollary's forms repaired:integer-P (any whole P, both conditions checked) and repaired:any-I (no cap, "
        "but the rate has no speed-up)",
        cap_without_rounds,
    ),
    Erratum(
        "scaling-loses-the-speed-up",
        "Remark after Corollary 4.8: scaling f makes the cap on I as large as one likes, for a rate in 1/sqrt(I)",
        "The left-hand side scales too, as the remark concedes. That divided out, the first term at the largest scale "
        "that admits I is 16 upsilon^2 N^(5/2) LF sqrt(I/T), which grows with I.",
        "no linear speed-up in I beyond the cap",
        scaling_loses_the_speed_up,
    ),
    Erratum(
        "step-size-with-a-unit",
        "Corollary 3.3: eta = 12 P sqrt(LIF)/rho, and a bound with 1 + sigma^2",
        "eta multiplies a displacement, so it is a number, but this one changes with the unit of f; 1 + sigma^2 adds a "
        "number to a squared gradient.",
        "eta = 12 s P sqrt(LIF)/rho and 8/s + 4 s sigma^2 with a scale s of unit x/f; s = 1/sigma is Corollary 3.2",
        step_size_with_a_unit,
    ),
    Erratum(
        "interval-is-not-a-whole-number",
        "Corollary 4.8: P = upsilon^2 N^(5/2) sqrt(IT) meets Corollary 3.3's condition whenever I meets its cap",
        "P is a number of rounds. Rounded up, it breaks the condition, in which T has cancelled and left no slack; "
        "rounded down, the window divergence is above 6 d^2/sqrt(NIT). It may also be below 1.",
        "any whole P >= 1, with T >= 2P and T >= 4LIP^2F/rho^2 checked directly",
        interval_is_not_a_whole_number,
    ),
    Erratum(
        "earlier-rounds-in-lemma-c.2",
        "Proof of Lemma C.2: (C.9) unrolled over a window, with S_t of the current round throughout",
        "The recursion passes through earlier rounds, whose sums of squared weights may be smaller.",
        "the Lemma as stated: the sum over the window is below 2.76 IP, not 3 IP, and the slack covers 1 - S_t <= 1 "
        "for P >= 2; for P = 1 no round is crossed",
        earlier_rounds_in_lemma_c2,
    ),
    Erratum(
        "toy-cycle-misses-the-minimiser",
        "Appendix B: the amplified iteration converges to x*",
        "Within a cycle the clients are visited one after the other, so the cycle comes to rest at a mean that favours "
        "the last; eta changes how fast, not where. (The step sizes drawn also break the caps of Theorem 3.1.)",
        "rest at distance 0.0342 from x* for gamma = 0.05, of order gamma",
        toy_cycle_misses_the_minimiser,
    ),
    Erratum(
        "participation-follows-the-noise",
        "Theorem 3.1 for arbitrary participation",
        "Weights that depend on the gradient noise bias it; clients chosen by their loss or update are not covered.",
        "Theorem 3.1 for participation that is independent of the noise (assumption exogenous-participation)",
        participation_follows_the_noise,
    ),
    Erratum(
        "noise-with-memory",
        "Theorem 3.1 under Assumption 2: E[g_n(x) | x] = grad F_n(x)",
        "Mean zero given the current point does not make the noise of different steps uncorrelated.",
        "Theorem 3.1 with noise of mean zero given the whole past (assumption martingale-noise)",
        noise_with_memory,
    ),
    Erratum(
        "shared-noise",
        "Theorem 3.1 under the stated Assumptions 1, 2 and 3'",
        "The assumptions do not say that the gradient noise is independent across clients; with shared noise the bound "
        "fails.",
        "Theorem 3.1 with the noise independent across clients (assumption independent-clients)",
        shared_noise,
    ),
)
