"""Algorithm 1 on plain tables of NumPy arrays, corrected, and nothing of an engine."""

from collections.abc import Callable

import numpy as np

from fedbounds.empirical.papers.tdcd.tables import SplitTable


def tdcd(
    table: SplitTable, draw: Callable[[int], np.ndarray], *, rounds: int, local_steps: int, step_size: float
) -> np.ndarray:
    r"""The models $\tilde\theta^0,\tilde\theta^Q,\dots,\tilde\theta^{RQ}$, (R + 1, d).

    Example:
        >>> one = np.ones((2, 1))
        >>> table = SplitTable((one, one), np.zeros((2, 2)), np.ones(2), ((np.arange(2),),) * 2, (0 * one[0],) * 2)
        >>> tdcd(table, lambda t: np.arange(2), rounds=1, local_steps=2, step_size=0.5).tolist()
        [[0.0, 0.0], [0.75, 0.75]]

    Source: Das et al. 2022, Algorithm 1, with line 32 corrected.
    """
    blocks, models = list(table.starts), [np.concatenate(table.starts)]
    for r in range(rounds):
        batch = draw(r * local_steps)
        told = np.array([table.embed(j, block, batch) for j, block in enumerate(blocks)])
        after = []
        for j, block in enumerate(blocks):
            others, copies = told.sum(0) - told[j], []
            for ids in table.clients[j]:
                mine, own = np.flatnonzero(np.isin(batch, ids)), block
                for _ in range(local_steps):
                    own = own - step_size * table.gradient(j, own, batch[mine], others[mine])
                copies.append(own)
            after.append(np.mean(copies, axis=0))
        blocks = after
        models.append(np.concatenate(blocks))
    return np.stack(models)
