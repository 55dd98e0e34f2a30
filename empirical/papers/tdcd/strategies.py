"""Strategies of hypothesis for TDCD: small tables in silos, and runs on them. Needs the extra `testing`."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.papers.tdcd.tables import SplitTable, TableCase, TableLoss
from fedbounds.empirical.strategies import halves, st

# the smallest first, and those where bugs of many clients and of late rounds show more often
SAMPLES = (1, 2, 3, 4, 6, 6, 4, 6)
ROUNDS = (1, 2, 3, 2, 3)


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    silos: tuple[int, ...] = (1, 2, 3, 2),
    equal_shards: bool = False,
    same_rows: bool = False,
    losses: tuple[TableLoss, ...] = (),
) -> SplitTable:
    """Tables of up to 6 samples and 3 silos of 1 or 2 parameters and 1 to 3 clients each; rows are split in any way.

    Args:
        silos: the N to try; (2,) for a run that knows two alone.
        equal_shards: whether the clients of a silo must hold equally many samples.
        same_rows: whether rows are split in the same way in all silos.
        losses: to choose from; both, if not given.

    Example:
        >>> from hypothesis import find
        >>> find(tables(), lambda table: table.silos == 2).clients
        ((array([0]),), (array([0]),))
    """
    M, N = draw(st.sampled_from(SAMPLES)), draw(st.sampled_from(silos))
    sizes = [draw(st.integers(1, 2)) for _ in range(N)]
    clients = []
    for _ in range(1 if same_rows else N):
        K = draw(st.sampled_from([k for k in (1, 2, 3) if k <= M and not (equal_shards and M % k)]))
        even = [M * k // K for k in range(1, K)]
        cuts = even if equal_shards or draw(st.booleans()) else sorted(draw(st.permutations(range(1, M)))[: K - 1])
        clients.append(tuple(np.sort(part) for part in np.split(np.array(draw(st.permutations(range(M)))), cuts)))
    clients = clients * N if same_rows else clients
    features = tuple(halves(draw, M, size, most=2) for size in sizes)
    labels = np.array(draw(st.lists(st.integers(0, 1), min_size=M, max_size=M)), float)
    starts = tuple(halves(draw, size, most=2) for size in sizes)
    loss = draw(st.sampled_from(losses or ("least squares", "logistic")))
    return SplitTable(features, halves(draw, N, M, most=2), labels, tuple(clients), starts, loss)


@st.composite
def table_cases(
    draw: st.DrawFn,
    *,
    local_steps: tuple[int, ...] = (1, 2, 3, 4, 3, 2),
    silos: tuple[int, ...] = (1, 2, 3, 2),
    equal_shards: bool = False,
    same_rows: bool = False,
    losses: tuple[TableLoss, ...] = (),
) -> TableCase:
    """Runs for `check_vertical`: up to 3 rounds, with batches of which every client holds a sample.

    What the cases do not have, no invariant asks of a run: leave out here what yours does without.

    Args:
        local_steps: the Q to try; (1,) for a run without.
        silos, equal_shards, same_rows, losses: as in `tables`.

    Example:
        >>> from hypothesis import find
        >>> case = find(table_cases(), lambda case: case.local_steps == 2 and case.table.samples == 2)
        >>> case.rounds, case.step_size, case.batches.tolist()
        (1, 0.5, [[0], [0]])
    """
    table = draw(tables(silos=silos, equal_shards=equal_shards, same_rows=same_rows, losses=losses))
    R, Q, M = draw(st.sampled_from(ROUNDS)), draw(st.sampled_from(local_steps)), table.samples
    least = M + 1 - min(len(ids) for silo in table.clients for ids in silo)
    B = draw(st.sampled_from((least, *range(least, M + 1), least)))
    batches = [draw(st.permutations(range(M)))[:B] for _ in range(R * Q)]
    return TableCase(table, np.array(batches), R, Q, draw(st.sampled_from([0.5, 0.25, 0.125])))
