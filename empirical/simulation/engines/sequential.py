"""One client at a time: the fastest for networks so large that one of them keeps the processor busy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedbounds.empirical.algorithms import Cohort
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines.engine import Engine
from fedbounds.empirical.simulation.engines.local_steps import draw_limited_blocks, draw_words, local_updates


class SequentialEngine(Engine):
    """Computes the pairs one by one; holds one update besides the sums, unless the algorithm needs them all."""

    label = "in turn"

    def compute(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        total, updates, placed = x.new_zeros(len(x), self.problem.dimension), [], cohort.on(x.device)
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
