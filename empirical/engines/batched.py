"""All seeds and participating clients at once: the fastest way through small models, and through all on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedbounds.empirical.algorithms import Cohort
from fedbounds.empirical.engines.engine import Engine
from fedbounds.empirical.engines.local_steps import AT_ONCE, local_updates
from fedbounds.empirical.streams import Streams


class Batched(Engine):
    """Advances every pair together, step by step, in batches of bounded size; holds O(seeds x cohort x d)."""

    label = "batched"

    def compute(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        pairs, dimension = len(cohort.clients), x.shape[1]
        most = max(1, AT_ONCE // dimension)
        # seeds and clients are told apart wherever that is possible: problems may exploit it
        rows = len(cohort.counts) if pairs <= most and (cohort.counts == cohort.counts[0]).all() else 1
        updates = torch.empty(pairs, dimension, dtype=x.dtype, device=x.device)
        for start in range(0, pairs, most):
            seeds = cohort.seeds[start : start + most]
            clients = torch.tensor(cohort.clients[start : start + most], device=x.device).view(rows, -1)
            received = x[torch.tensor(seeds, device=x.device)].view(*clients.shape, dimension)
            own = [streams[seed] for seed in seeds.tolist()]
            shift = None if correction is None else correction[start : start + most].view_as(received)
            computed = local_updates(self.problem, self.local, received, clients, own, t, self.pool, shift)
            updates[start : start + most] = computed.view(-1, dimension)
        return cohort.combine(updates), updates
