"""Strategies of hypothesis for FedAU's weights: records of participation. Needs the extra `testing`."""

from functools import cache

import numpy as np
from hypothesis.strategies import SearchStrategy

from fedbounds.empirical.invariants.coverage import SizeClass, with_size_classes
from fedbounds.empirical.invariants.strategies import st
from fedbounds.empirical.papers.fedau.invariants import WeightCase

CUTOFFS = (2, 3, 5, 1, 20, np.inf, 4, 6, 7, 10, 30, 70)
# rounds and clients of long records: up to 54 intervals of one client, of lengths that never repeat in a cycle
SIZES = ((140, 1), (140, 1), (60, 3), (130, 1), (24, 5), (12, 3), (32, 2), (16, 6), (36, 3), (20, 7), (28, 4), (36, 3))
LONG = 130  # the rounds from which on a record has an absence that is longer than any cut-off
RATES = (0.5, 0.9, 0.97, 0.2, 0.35, 0.7, 0.06)  # of participation, of one client after the other


@cache
def weight_cases(*, cutoffs: tuple[float, ...] = CUTOFFS) -> SearchStrategy[WeightCase]:
    """Records of participation for `check_weights`: drawn ones of up to 8 rounds and 2 clients with any cut-off, and
    long ones of up to 140 rounds and 7 clients, longer where a cut-off needs it.

    Args:
        cutoffs: the K to try; (inf,) for an estimator without. Some record has an interval longer than each up to 300,
            and where all are infinite, one of 101 rounds.

    Example:
        >>> from hypothesis import find
        >>> find(weight_cases(), lambda case: case.participated.sum() == 2).participated.astype(int).tolist()
        [[1, 1]]
    """
    late = sorted(cutoffs, key=lambda K: (np.isinf(K), -K))  # a long record tells more with a late cut-off
    late = [late[-1], *late[:-1]]
    classes = [
        SizeClass(_long_record(T, N, late[place % len(late)]), _record(T, N, cutoffs))
        for place, (T, N) in enumerate(SIZES)
    ]
    beyond = [(int(K), K) for K in cutoffs if 20 < K <= 300] or [(100, np.inf)] * all(np.isinf(cutoffs))
    absences = [SizeClass(*(_absences(both, *each) for both in (True, False))) for each in beyond]
    return with_size_classes(_record(8, 2, cutoffs), [*absences, *classes])


@st.composite
def _record(draw: st.DrawFn, rounds: int, clients: int, cutoffs: tuple[float, ...]) -> WeightCase:
    T, N = draw(st.integers(1, rounds)), draw(st.integers(1, clients))
    present = draw(st.lists(st.booleans(), min_size=T * N, max_size=T * N))
    return WeightCase(np.reshape(present, (T, N)), draw(st.sampled_from(cutoffs)))


def _absences(both: bool, length: int, cutoff: float) -> SearchStrategy[WeightCase]:
    """A client that is absent for so many rounds, for one more, or for both in turn."""
    gaps = [(length, length + 1)] if both else [(length,), (length + 1,), (length, length + 1)]

    def record(each: tuple[int, ...]) -> WeightCase:
        return WeightCase(np.isin(np.arange(sum(each) + 2)[:, None], [0, *np.cumsum(each)]), cutoff)

    return st.sampled_from(gaps).map(record)


@st.composite
def _long_record(draw: st.DrawFn, T: int, N: int, cutoff: float) -> WeightCase:
    """Clients of different rates, in any order; in the longest records client 0 is absent in most rounds."""
    rng = np.random.default_rng((draw(st.integers(0, 2**16)), T, N))
    participated = rng.random((T, N)) < rng.permutation(np.resize(RATES, N))
    if T >= LONG:  # so late without a cut-off that counters of 7 bits overflow
        end = T - 4 if np.isinf(cutoff) else T - 30
        participated[4:end, 0] = np.arange(4, end) == 4
        participated[end, 0] = True
    return WeightCase(participated, cutoff)
