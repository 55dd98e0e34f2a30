r"""Claims of Wang & Ji (2022) that fail, each with a counterexample in exact arithmetic and what holds instead.

A counterexample recomputes both sides from scratch. It returns `(claimed, true)`: the paper claims `true <= claimed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb


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


def one_window_is_not_all_windows(windows: int = 200, P: int = 20) -> tuple[Fraction, Fraction]:
    r"""Two clients, a fair one-hot coin each round, c = 1/10: the probability that some window exceeds the bound.

    With v = (-1, 1) the left-hand side of (7) is (2 k/P - 1)^2 for k heads and (15) is an equality. The claim allows
    probability c that any of the windows exceeds N^2 d^2 ln(2/c)/(2P) = 2 ln(20)/P. ln(20) is replaced by the larger
    rational 3, which only makes fewer windows fail.
    """
    threshold = Fraction(2 * 3, P)
    bad = sum(comb(P, k) for k in range(P + 1) if (Fraction(2 * k, P) - 1) ** 2 > threshold)
    one = Fraction(bad, 2**P)
    return Fraction(1, 10), 1 - (1 - one) ** windows


def long_run_variance_at_finite_window(r: Fraction = Fraction(-4, 5), P: int = 5) -> tuple[Fraction, Fraction]:
    r"""Two clients, a stationary two-state chain with correlation r < 0: E of (7) against N^2 d^2 upsilonhat^2/P.

    Var(q) = 1/4, Cov(q_0, q_p) = r^p/4, d = 1; for N = 2 the left-hand side is exactly 4 Var(qbar).
    """
    variance = Fraction(1, 4)
    exact = variance * (1 + 2 * sum(((1 - Fraction(p, P)) * r**p for p in range(1, P)), Fraction(0))) / P
    long_run = variance * (1 + r) / (1 - r)
    return 4 * long_run / P, 4 * exact


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
        "Propositions 4.6 and 4.7: (7) holds with probability 1 - c with a Chebyshev or Hoeffding constant",
        "The inequality is per client and per window; (7) asks for all windows at once and no union bound is made.",
        "the average over the windows, which is all that the proof of Theorem 3.1 uses, is bounded with probability "
        "1 - c by N^2 d^2 Var/c (Markov) or by a sub-Gaussian bound with ln(1/c)",
        one_window_is_not_all_windows,
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
        "shared-noise",
        "Theorem 3.1 under the stated Assumptions 1, 2 and 3'",
        "The assumptions do not say that the gradient noise is independent across clients; with shared noise the bound "
        "fails.",
        "Theorem 3.1 with the noise independent across clients (assumption independent-clients)",
        shared_noise,
    ),
)
