"""Hypothesis strategies for participation processes, and for schedules and step sizes of Theorem 3.1."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fedbounds.empirical.invariants.strategies import _size_or_up_to, participation_matrices
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
    Process,
    Recorded,
    SampleWeighted,
    WithoutReplacement,
    WithReplacement,
)


class Schedule(NamedTuple):
    """I local steps, amplification every P rounds, T rounds."""

    local_steps: int
    interval: int
    rounds: int


class StepSizes(NamedTuple):
    r"""$\gamma$, unit x^2/f, and $\eta$."""

    local_step_size: float
    server_multiplier: float


@st.composite
def processes(draw: st.DrawFn, clients: int | None = None, *, unit_sum: bool = False) -> Process:
    """Participation processes of every kind.

    Args:
        clients: N; 1 to 6 if not given.
        unit_sum: only those whose weights always sum to one, as the theorems need.
    """
    N = draw(_size_or_up_to(clients, 6))
    counts, flags = st.integers(1, N), st.booleans()
    groups = draw(st.sampled_from([g for g in range(1, N + 1) if N % g == 0]))
    fractions = st.integers(0, 4).map(lambda k: k / 4)
    slots = st.integers(1, 4)
    offset = st.none() | st.just(1)
    periodic = {"sampling": st.sampled_from(["permutation", "independent"]), "groups": st.just(groups)}
    kinds: list[SearchStrategy[Process]] = [
        st.just(Full(N)),
        st.builds(WithReplacement, st.just(N), counts),
        st.builds(WithoutReplacement, st.just(N), counts),
        st.builds(Permutation, st.just(N), counts, flags),
        st.builds(PeriodicGroups, st.just(N), st.integers(1, N // groups), slots, offset=offset, **periodic),
        st.builds(Cyclic, st.just(N), st.just(groups), flags),
        st.builds(Recorded, participation_matrices(8, N, unit_sum=unit_sum)),
        st.builds(SampleWeighted, st.just(Full(N)), st.lists(st.floats(0.1, 9), min_size=N, max_size=N)),
    ]
    if groups > 1:
        kinds.append(st.builds(GroupMarkov, st.just(N), groups=st.just(groups), leave=fractions))
    if not unit_sum:
        each = st.lists(fractions, min_size=N, max_size=N)
        kinds.append(st.builds(Bernoulli, st.just(N), each, flags))
        kinds.append(st.builds(Markovian, st.just(N), each, st.sampled_from([0.5, 1.0, 0.05])))
        kinds.append(st.builds(CyclicClients, st.just(N), each, slots))
        kinds.append(st.builds(CyclicFromInactive, st.just(N), each, slots))
    return draw(st.one_of(kinds))


@st.composite
def schedules(draw: st.DrawFn, *, covered: bool = True) -> Schedule:
    """Local steps I, amplification interval P and rounds T.

    Args:
        covered: $T \\ge 2P$, as Theorem 3.1 needs; false takes any T from 1, even less than P.

    Source: Wang & Ji 2022, Theorem 3.1.
    """
    I, P = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Schedule(I, P, draw(st.integers(2 * P, 8) if covered else st.integers(1, 6)))


@st.composite
def step_sizes(draw: st.DrawFn, smoothness: float, local_steps: int, interval: int) -> StepSizes:
    r"""Step sizes inside the caps of Theorem 3.1: $\gamma < \frac1{12LIP}$ and $\gamma\eta < \frac1{2LIP}$.

    Args:
        smoothness: L > 0, unit f/x^2.
        local_steps: I.
        interval: P.

    Source: Wang & Ji 2022, Theorem 3.1.
    """
    shares = st.sampled_from([0.5, 0.999, 0.125, 0.001])
    gamma, both = (draw(shares) / (cap * smoothness * local_steps * interval) for cap in (12, 2))
    return StepSizes(gamma, both / gamma)
