r"""Clients with different numbers of local steps in one batch, for minimax algorithms.

The pairs of a round stand in a batch in decreasing order of their $\tau_i$, so that those who still compute in local
step k are its first rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from fedbounds.empirical.algorithms import Cohort, LocalDescentAscent
from fedbounds.empirical.algorithms.descent_ascent import blocks
from fedbounds.empirical.engines.engine import Engine
from fedbounds.empirical.problems import Minimax
from fedbounds.empirical.streams import Streams

AT_ONCE = 2**22  # numbers held by one batch: pairs x d, and the randomness drawn ahead


class MaskedBatch(Engine):
    """Advances the pairs together, each for as many local steps as are its own, in batches of bounded size.

    Args:
        problem: whose gradients are used.
        local: what each client computes.
        needs_updates: report the single updates too.

    Attributes:
        most: pairs of a batch.
    """

    label = "masked batch"

    def __init__(self, problem: Minimax, local: LocalDescentAscent, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.game, self.most = problem, max(1, AT_ONCE // problem.dimension)
        self.step = blocks(problem, -local.step_size, local.ascent_step_size)
        one_for_each = len(local.optimizers) > 1
        optimizers = local.optimizers if one_for_each else local.optimizers * problem.clients
        self.momentum = self._column([one.momentum for one in optimizers], neutral=0.0)
        self.contraction = self._column([one.contraction for one in optimizers], neutral=1.0)
        self.rates = [one.rates for one in optimizers] if any(one.rates for one in optimizers) else None

    def _column(self, values: Sequence[float], neutral: float) -> Tensor | None:
        """One number for each client, (n, 1); None if they change nothing."""
        if all(value == neutral for value in values):
            return None
        return torch.tensor(values, dtype=self.game.dtype, device=self.game.device)[:, None]

    def compute(
        self, x: Tensor, cohort: Cohort, t: int, streams: Sequence[Streams], correction: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        assert cohort.steps is not None
        order = np.argsort(-cohort.steps, kind="stable")
        sums = []
        for start in range(0, len(order), self.most):
            some = order[start : start + self.most]
            seeds = cohort.seeds[some]
            received = x.expand(len(some), -1) if len(x) == 1 else x[torch.from_numpy(seeds).to(x.device)]
            own = [streams[seed] for seed in seeds.tolist()]
            sums.append(self.local_sums(received, cohort.clients[some], cohort.steps[some], t, own))
        updates = torch.cat(sums) if len(sums) > 1 else sums[0]
        updates = updates[torch.from_numpy(np.argsort(order)).to(x.device)]
        return cohort.combine(updates), updates

    def local_sums(
        self, received: Tensor, clients: np.ndarray, steps: np.ndarray, t: int, streams: Sequence[Streams]
    ) -> Tensor:
        r"""$u_\tau=\sum_{k<\tau}a^{(k)}G_k$ of pairs in decreasing order of their steps.

        Args:
            received: (x, y), or (x, y, snapshot), (pairs, d) or (pairs, d + d_x).
            clients: (pairs,).
            steps: (pairs,).
            t: the round.
            streams: of each pair.

        Returns:
            (pairs, d).
        """
        game, who = self.game, torch.from_numpy(clients).to(received.device)[None]  # the axis of seeds has length one
        z, snapshot = received[None, :, : game.dimension], received[None, :, game.dimension :]
        momentum, contraction = (None if c is None else c[who] for c in (self.momentum, self.contraction))
        u = torch.zeros_like(z)
        buffer = u if momentum is None else torch.zeros_like(z)
        y = game.split(z)[1].clone() if game.constrained else None  # as it is after its projections
        randomness = self._randomness(clients, steps, t, streams)
        still = len(steps) - np.searchsorted(steps[::-1], np.arange(steps[0]), side="right")
        for k, m in enumerate(still.tolist()):  # the first m pairs have more than k steps
            so_far, mine, drawn = u[:, :m], who[:, :m], next(randomness)
            now = torch.addcmul(z[:, :m], so_far, self.step)
            if y is not None:
                now = game.join(game.split(now)[0], y[:, :m])
            xi = None if drawn is None else drawn[:, :m]
            if self.local.at_snapshot:
                gradient = game.snapshot_gradient(now, snapshot[:, :m], mine, xi)
            else:
                gradient = game.stochastic_gradient(now, mine, xi)
            if self.rates is not None:
                rates = [1.0 if (v := self.rates[i]) is None else v[k] for i in clients[:m].tolist()]
                gradient = gradient * torch.tensor(rates, dtype=z.dtype, device=z.device)[:, None]
            if momentum is not None:
                gradient = buffer[:, :m].mul_(momentum[:, :m]).add_(gradient)
            before = so_far.clone() if game.constrained else so_far
            if contraction is not None:
                so_far.mul_(contraction[:, :m])
            so_far.add_(gradient)
            if y is not None:
                move = game.split(so_far - before)[1]
                y[:, :m] = game.project(y[:, :m].add(move, alpha=self.local.ascent_step_size))
        return u[0]

    def _randomness(
        self, clients: np.ndarray, steps: np.ndarray, t: int, streams: Sequence[Streams]
    ) -> Iterator[Tensor | None]:
        """Step by step what the pairs draw, each from the place (round, client) of its noise: (1, pairs, ...)."""
        game, names, left = self.game, clients.tolist(), steps.tolist()
        pool, block = self.pool, max(1, AT_ONCE // (len(names) * game.dimension))
        generators = [pool.aim(k, streams[k], "noise", t, name) for k, name in enumerate(names)]
        for done in range(0, left[0], block):
            table: np.ndarray | None = None
            size = min(block, left[0] - done)
            for k, (generator, name, tau) in enumerate(zip(generators, names, left, strict=True)):
                if tau <= done:
                    break
                drawn = game.draws(generator, name, min(size, tau - done))
                if drawn is None:
                    break
                if table is None:
                    table = np.zeros((size, len(names), *drawn.shape[1:]), drawn.dtype)
                table[: len(drawn), k] = drawn
            if table is None:
                yield from [None] * size
                continue
            kind = game.dtype if table.dtype.kind == "f" else torch.int64
            numbers = torch.from_numpy(table).to(game.device, kind)
            yield from numbers.unsqueeze(1)


class MaskedInTurn(MaskedBatch):
    """The same, one pair at a time: the fastest way through networks that keep the processor busy alone."""

    label = "in turn"

    def __init__(self, problem: Minimax, local: LocalDescentAscent, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.most = 1
