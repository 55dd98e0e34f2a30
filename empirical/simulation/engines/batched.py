"""The pairs of seeds and participating clients in batches, or one by one.

Batches are the fastest for small models, and for all models on a GPU. One by one is the fastest for networks so large
that one of them uses the whole processor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedbounds.empirical.algorithms import Cohort
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines.ahead import NUMBERS
from fedbounds.empirical.simulation.engines.engine import Engine
from fedbounds.empirical.simulation.engines.local_steps import (
    Blocks,
    arrange_draws,
    draw_blocks,
    draw_limited_blocks,
    draw_words,
    largest_batch,
    local_updates,
)


class Batched(Engine):
    """Advances every pair together, step by step, in batches of bounded size; holds O(seeds x cohort x d)."""

    label = "batched"
    joins = True

    def tables(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> dict[str, np.ndarray] | None:
        """What the pairs draw, `drawn` (steps, pairs, ...), and their `words` (pairs,)."""
        first = int(cohort.clients[0])
        one = self.problem.draws(self.pool.aim(0, streams[0], "noise", t, first), first, 1)
        own = cohort.streams_of_pairs(streams)
        words = draw_words(self.local, cohort.clients, own, t, self.pool)
        found = {} if words is None else {"words": words}
        if cohort.step_sizes is not None:
            found["step_sizes"] = cohort.step_sizes
        if one is None or self.local.oracle == "full":
            return found
        if one.size * self.local.steps * len(cohort.clients) > NUMBERS:
            return None
        ((_, drawn),) = draw_blocks(self.problem, self.local, cohort.clients, own, t, self.pool, self.local.steps)
        assert drawn is not None
        return found | {"drawn": drawn}

    def compute(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        pairs, dimension = len(cohort.clients), self.problem.dimension
        most = largest_batch(x.device, dimension)
        # seeds and clients have axes of their own where possible: problems may exploit it
        rows = len(cohort.counts) if pairs <= most and (cohort.counts == cohort.counts[0]).all() else 1
        found, placed = [], cohort.to_device(x.device)
        for start in range(0, pairs, most):
            some = slice(start, start + most)
            clients = placed.clients[some].view(rows, -1)
            if rows == len(x) and x.ndim == 2:  # all clients of a seed receive the same
                received = x.unsqueeze(1).expand(*clients.shape, -1).contiguous()
            else:
                own = x[placed.seeds[some]] if x.ndim == 2 else x[placed.seeds[some], placed.clients[some]]
                received = own.view(*clients.shape, -1)
            shift = None if correction is None else correction[some].view_as(received)
            words = self._words(cohort, some, clients, t, streams)
            drawn = self._draw_block(cohort, some, clients.shape, t, streams)
            sizes = self._step_sizes(cohort, some, clients)
            found.append(self.updates(received, clients, drawn, shift, words, sizes).view(-1, dimension))
        updates = found[0] if len(found) == 1 else torch.cat(found)
        return cohort.combine(updates), updates

    def updates(
        self,
        x: torch.Tensor,
        clients: torch.Tensor,
        drawn: Blocks,
        correction: torch.Tensor | None,
        words: torch.Tensor | None,
        step_sizes: torch.Tensor | None,
    ) -> torch.Tensor:
        """The updates of a rectangle of pairs, as `local_updates`."""
        return local_updates(
            self.problem, self.local, x, clients, drawn, correction, words=words, step_sizes=step_sizes
        )

    def _step_sizes(self, cohort: Cohort, some: slice, clients: torch.Tensor) -> torch.Tensor | None:
        """The step sizes of some pairs, (*shape of their names, 1), where they differ."""
        if cohort.step_sizes is None:
            return None
        sizes = cohort.ahead.tables["step_sizes"] if cohort.ahead else torch.tensor(cohort.step_sizes)
        return sizes[some].to(clients.device, self.problem.dtype).view(*clients.shape, 1)

    def _words(
        self, cohort: Cohort, some: slice, clients: torch.Tensor, t: int, streams: Sequence[Streams]
    ) -> torch.Tensor | None:
        """The words of some pairs, now or before the round, in the shape of their names."""
        if cohort.ahead is not None and "words" in cohort.ahead.tables:
            return cohort.ahead.tables["words"][some].view_as(clients)
        own = cohort.streams_of_pairs(streams)[some] if self.local.worded else []
        words = draw_words(self.local, cohort.clients[some], own, t, self.pool)
        return None if words is None else torch.tensor(words, device=clients.device).view_as(clients)

    def _draw_block(
        self, cohort: Cohort, some: slice, shape: Sequence[int], t: int, streams: Sequence[Streams]
    ) -> Blocks:
        """What some pairs draw, now or before the round."""
        if cohort.ahead is None:
            own = cohort.streams_of_pairs(streams)[some]
            return draw_limited_blocks(self.problem, self.local, cohort.clients[some], own, t, self.pool, shape)
        drawn = cohort.ahead.tables.get("drawn")
        steps = None if drawn is None else arrange_draws(self.problem, drawn[:, some], shape)
        return iter([(self.local.steps, steps)])


class SequentialEngine(Engine):
    """Computes the pairs one by one; holds one update besides the sums, unless the algorithm needs them all."""

    label = "sequential"

    def compute(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        total, updates, placed = x.new_zeros(len(x), self.problem.dimension), [], cohort.to_device(x.device)
        found = cohort.streams_of_pairs(streams)
        pairs = zip(cohort.seeds.tolist(), cohort.clients.tolist(), cohort.weights.tolist(), strict=True)
        for pair, (seed, client, weight) in enumerate(pairs):
            received = x[seed] if x.ndim == 2 else x[seed, client]
            start, name = received.view(1, 1, -1), placed.clients[pair].view(1, 1)
            own, who = None if correction is None else correction[pair].view(1, 1, -1), np.array([client])
            word = draw_words(self.local, who, [found[pair]], t, self.pool)
            words = None if word is None else torch.tensor(word, device=x.device).view(1, 1)
            drawn = draw_limited_blocks(self.problem, self.local, who, [found[pair]], t, self.pool, (1, 1))
            update = local_updates(self.problem, self.local, start, name, drawn, own, words=words)
            total[seed].add_(update[0, 0], alpha=weight)
            if self.needs_updates:
                updates.append(update[0, 0])
        return total, torch.stack(updates) if updates else None
