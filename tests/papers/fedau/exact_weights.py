"""The moments of FedAU's weights in rationals, by dynamic programming, against which the transforms are tested."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, quote


def exact_weight_moments(p: Fraction, K: int | None, rounds: int) -> list[tuple[Fraction, Fraction]]:
    r"""$(\mathbb E\,\omega_t,\ \mathbb E(p\,\omega_t-1)^2)$ for $t=0,\dots,$ `rounds` - 1, in rationals.

    Source: Wang & Ji 2024, Algorithm 2.
    """
    if not 0 < p <= 1:
        raise FedboundsError(f"p = {quote(p)} must lie in (0, 1]")
    if K is not None:
        check_count("K", K, why="or None for no cut-off")
    check_count("rounds", rounds)
    present, absent, outcomes = p.numerator, p.denominator - p.numerator, 1
    states = {(0, 0): 1}  # (intervals, rounds since the last): the probability, times the number of outcomes
    moments = []
    for t in range(rounds):
        first, second = Counter[int](), Counter[int]()  # by the number of intervals: of their sums
        for (intervals, since), share in states.items():
            total = t - since if intervals else 1
            first[intervals or 1] += share * total
            second[intervals or 1] += share * total**2
        mean = sum((Fraction(value, k) for k, value in first.items()), Fraction(0)) / outcomes
        square = sum((Fraction(value, k * k) for k, value in second.items()), Fraction(0)) / outcomes
        moments.append((mean, p * p * square - 2 * p * mean + 1))
        following = Counter[tuple[int, int]]()
        for (intervals, since), share in states.items():
            ended = (intervals + 1, 0)
            following[ended] += share * present
            following[ended if since + 1 == K else (intervals, since + 1)] += share * absent
        states = {state: share for state, share in following.items() if share}
        outcomes *= p.denominator
    return moments
