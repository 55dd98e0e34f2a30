"""Strategies of hypothesis for TDCD: small tables in silos, and runs on them. Needs the extra `testing`."""

from functools import cache
from typing import NamedTuple

import numpy as np

from fedbounds.empirical.invariants.coverage import MAGNITUDES, UNITS, SizeClass, general, with_size_classes
from fedbounds.empirical.invariants.strategies import SearchStrategy, halves, st
from fedbounds.empirical.papers.tdcd.tables import SplitTable, TableCase, TableLoss

# the smallest first, and those where bugs of many clients and of late rounds show more often
SAMPLES = (1, 2, 3, 4, 6, 6, 4, 6)
ROUNDS = (1, 2, 3, 2, 3)
SILOS = (1, 2, 3, 2)
LOCAL_STEPS = (1, 2, 3, 4, 3, 2)
LOSSES: tuple[TableLoss, ...] = ("least squares", "logistic")


class TableSize(NamedTuple):
    """N silos of up to K clients and up to `width` parameters, M samples, R rounds of Q local steps."""

    silos: int
    clients: int
    samples: int
    width: int
    rounds: int
    local_steps: int


# Together they have N from 1 to 7, K from 1 to 6, every Q from 1 to 10, R up to 130, up to 208 iterations, up to 12
# samples and up to 8 parameters in a silo; no case has all at once.
SIZES = (
    TableSize(1, 1, 4, 1, 16, 13), TableSize(2, 1, 9, 1, 130, 1),
    TableSize(7, 3, 6, 2, 3, 2), TableSize(2, 2, 4, 1, 2, 10), TableSize(5, 2, 4, 1, 12, 2),
    TableSize(3, 5, 10, 2, 3, 3), TableSize(2, 3, 6, 3, 5, 5), TableSize(6, 2, 5, 1, 6, 1), TableSize(3, 4, 9, 2, 4, 6),
    TableSize(2, 4, 12, 1, 3, 2), TableSize(4, 3, 6, 3, 9, 1), TableSize(1, 6, 12, 8, 2, 4), TableSize(3, 2, 4, 1, 16,
    2),
    TableSize(2, 3, 6, 2, 3, 7), TableSize(7, 1, 4, 1, 8, 3), TableSize(3, 3, 9, 4, 2, 2), TableSize(2, 2, 5, 2, 3, 8),
    TableSize(4, 4, 8, 1, 11, 1), TableSize(3, 2, 5, 1, 12, 1), TableSize(2, 5, 10, 1, 2, 9), TableSize(6, 3, 6, 2, 4,
    4),
)  # fmt: skip


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    silos: tuple[int, ...] | None = None,
    equal_shards: bool = False,
    same_rows: bool = False,
    losses: tuple[TableLoss, ...] = (),
) -> SplitTable:
    """Tables of up to 6 samples and 3 silos of 1 or 2 parameters and 1 to 3 clients each; rows are split in any way.

    Args:
        silos: the N to try; (2,) for a run that knows two alone. 1 to 3 if not given.
        equal_shards: whether the clients of a silo must hold equally many samples.
        same_rows: whether rows are split in the same way in all silos.
        losses: to choose from; both, if not given.

    Example:
        >>> from hypothesis import find
        >>> find(tables(), lambda table: table.silos == 2).clients
        ((array([0]),), (array([0]),))
    """
    return draw(_tables(_Wanted(None, silos, equal_shards, same_rows, losses), None))


class _Wanted(NamedTuple):
    """The arguments of `table_cases`."""

    local_steps: tuple[int, ...] | None
    silos: tuple[int, ...] | None
    equal_shards: bool
    same_rows: bool
    losses: tuple[TableLoss, ...]


def table_cases(
    *,
    local_steps: tuple[int, ...] | None = None,
    silos: tuple[int, ...] | None = None,
    equal_shards: bool = False,
    same_rows: bool = False,
    losses: tuple[TableLoss, ...] = (),
) -> SearchStrategy[TableCase]:
    """Runs for `check_vertical`, with batches of which every client holds a sample: small ones of up to 3 rounds, and
    one of each of `SIZES`.

    What the cases do not have, no invariant asks of a run: leave out here what yours does without.

    Args:
        local_steps: the Q to try; (1,) for a run without. 1 to 10 if not given.
        silos: the N to try; 1 to 7 if not given.
        equal_shards, same_rows, losses: as in `tables`.

    Example:
        >>> from hypothesis import find
        >>> case = find(table_cases(), lambda case: case.local_steps == 2 and case.table.samples == 2)
        >>> case.rounds, case.step_size, case.batches.tolist()
        (1, 0.5, [[0], [0]])
    """
    amounts, numbers = (None if given is None else tuple(given) for given in (local_steps, silos))
    return _covering(_Wanted(amounts, numbers, equal_shards, same_rows, tuple(losses)))


@cache  # the same strategy again is drawn from once
def _covering(wanted: _Wanted) -> SearchStrategy[TableCase]:
    """Small cases of what is wanted, and those of each of `SIZES`."""
    classes = [SizeClass(_sized(wanted, size, place), _small(wanted, size)) for place, size in enumerate(SIZES)]
    return with_size_classes(_small(wanted, None), classes)


@st.composite
def _tables(draw: st.DrawFn, wanted: _Wanted, most: TableSize | None) -> SplitTable:
    """A table that is drawn number by number: small, or up to this size, the simplest first."""
    M = draw(st.sampled_from(SAMPLES) if most is None else st.integers(1, most.samples))
    N = draw(st.sampled_from(wanted.silos or (SILOS if most is None else tuple(range(1, most.silos + 1)))))
    K_most, width = (3, 2) if most is None else (most.clients, most.width)
    sizes = [draw(st.integers(1, width)) for _ in range(N)]
    clients = []
    for _ in range(1 if wanted.same_rows else N):
        fitting = [k for k in range(1, K_most + 1) if k <= M and not (wanted.equal_shards and M % k)]
        K = draw(st.sampled_from(fitting))
        even = [M * k // K for k in range(1, K)]
        equal = wanted.equal_shards or draw(st.booleans())
        cuts = even if equal else sorted(draw(st.permutations(range(1, M)))[: K - 1])
        clients.append(tuple(np.sort(part) for part in np.split(np.array(draw(st.permutations(range(M)))), cuts)))
    clients = clients * N if wanted.same_rows else clients
    features = tuple(halves(draw, M, size, most=2) for size in sizes)
    labels = np.array(draw(st.lists(st.integers(0, 1), min_size=M, max_size=M)), float)
    starts = tuple(halves(draw, size, most=2) for size in sizes)
    loss, offsets = draw(st.sampled_from(wanted.losses or LOSSES)), halves(draw, N, M, most=2)
    more, unit = halves(draw, M), draw(st.sampled_from(UNITS))
    if loss == "least squares":  # its labels are real numbers
        offsets, labels, starts = unit * offsets, unit * (labels + more), tuple(unit * start for start in starts)
    return SplitTable(features, offsets, labels, tuple(clients), starts, loss)


@st.composite
def _small(draw: st.DrawFn, wanted: _Wanted, most: TableSize | None) -> TableCase:
    """A run that is drawn number by number: small, or up to this size, the simplest first."""
    table = draw(_tables(wanted, most))
    R = draw(st.sampled_from(ROUNDS) if most is None else st.integers(1, most.rounds))
    usual = LOCAL_STEPS if most is None else tuple(range(1, most.local_steps + 1))
    Q, M = draw(st.sampled_from(wanted.local_steps or usual)), table.samples
    least = _least_batch(table)
    B = draw(st.sampled_from((least, *range(least, M + 1), least)))
    batches = [draw(st.permutations(range(M)))[:B] for _ in range(R * Q)]
    return TableCase(table, np.array(batches), R, Q, draw(st.sampled_from([0.5, 0.25, 0.125, 0.3])))


def _least_batch(table: SplitTable) -> int:
    """The shortest batches of which every client holds a sample, whatever they are."""
    return table.samples + 1 - min(len(ids) for silo in table.clients for ids in silo)


@st.composite
def _sized(draw: st.DrawFn, wanted: _Wanted, size: TableSize, place: int) -> TableCase:
    """A run of one size, with values in general position and steps that do not diverge.

    Features and parameters have several magnitudes; those of the embeddings and the labels of least squares too.
    """
    rng = np.random.default_rng((draw(st.integers(0, 2**16)), place))
    N, K, M, width, R, Q = size
    N, Q = (
        number if own is None else min(own, key=lambda allowed, number=number: abs(allowed - number))
        for own, number in ((wanted.silos, N), (wanted.local_steps, Q))
    )
    loss = (wanted.losses or LOSSES)[place % len(wanted.losses or LOSSES)]
    sizes = rng.permutation(np.resize(np.arange(width, 0, -1), N))
    scale = (1.0, 20.0, 0.05)[place % 3]  # of features
    unit = MAGNITUDES[place // 2 % len(MAGNITUDES)] if loss == "least squares" else 1.0  # of embeddings
    features = tuple(scale * general(rng, M, d) for d in sizes)
    clients = [_shards(rng, M, max(1, K - j % K), wanted.equal_shards or place % 3 == 0) for j in range(N)]
    clients = clients[:1] * N if wanted.same_rows else clients
    offsets, starts = unit * general(rng, N, M), tuple(unit / scale * general(rng, d) for d in sizes)
    labels = rng.permutation(np.arange(M) % 2).astype(float) if loss == "logistic" else unit * general(rng, M)
    table = SplitTable(features, offsets, labels, tuple(clients), starts, loss)
    least = _least_batch(table)
    B = least if place % 2 == 0 else int(rng.integers(least, max(M if place % 4 == 1 else M + 1, least + 1)))
    some = [
        rng.permutation(M)[:B] for _ in range(R * Q if place % 4 != 3 else min(3, R * Q))
    ]  # or batches that come again
    curvature = np.linalg.eigvalsh(sum(X @ X.T for X in features) / M)[-1]
    return TableCase(table, np.array(some), R, Q, float(rng.uniform(0.2, 0.4) / curvature))


def _shards(rng: np.random.Generator, M: int, K: int, equal: bool) -> tuple[np.ndarray, ...]:
    """All samples, split over K clients, or over as many as may hold equally many."""
    K = max(k for k in range(1, K + 1) if not (equal and M % k))
    cuts = [M * k // K for k in range(1, K)] if equal else np.sort(rng.permutation(np.arange(1, M))[: K - 1])
    return tuple(np.sort(part) for part in np.split(rng.permutation(M), cuts))
