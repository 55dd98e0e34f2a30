"""The moments of FedAU's weights in rationals, by dynamic programming, against which the transforms are tested."""

from __future__ import annotations

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
    states: dict[tuple[int, int], Fraction] = {(0, 0): Fraction(1)}  # (intervals, rounds since the last)
    moments = []
    for t in range(rounds):
        mean = error = Fraction(0)
        for (intervals, since), probability in states.items():
            weight = Fraction(t - since, intervals) if intervals else Fraction(1)
            mean += probability * weight
            error += probability * (p * weight - 1) ** 2
        moments.append((mean, error))
        following: dict[tuple[int, int], Fraction] = {}
        for (intervals, since), probability in states.items():
            completed, running = (intervals + 1, 0), (intervals, since + 1)
            absent = completed if since + 1 == K else running
            for state, chance in ((completed, p), (absent, 1 - p)):
                if chance:
                    following[state] = following.get(state, Fraction(0)) + probability * chance
        states = following
    return moments
