"""Silos one after another, in each all seeds and clients at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Cohort
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.problems.vertical import Vertical
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines.engine import Engine


class Tiers(Engine):
    """Rounds of `TierSteps` on a `Vertical` problem; holds the copies of one silo's clients."""

    label = "tiers"

    def __init__(self, problem: Problem, local: TierSteps, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        if not isinstance(problem, Vertical):
            raise FedboundsError(f"engine 'tiers' needs a problem of silos, this is {type(problem).__name__}")
        self.vertical, self.steps = problem, local

    def tables(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> dict[str, np.ndarray]:
        """The randomness of round t of every seed, `drawn` (seeds, ...): the same for all silos."""
        found = [self.vertical.draw_round(self.pool.aim(0, own, "noise", t)) for own in streams]
        kept = [randomness for randomness in found if randomness is not None]
        return {"drawn": np.stack(kept)} if kept else {}

    def round_randomness(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> Tensor | None:
        """The same on the device of the problem; None if nothing is drawn."""
        if cohort.ahead is not None:
            found = cohort.ahead.tables.get("drawn")
        else:
            made = self.tables(cohort, t, streams).get("drawn")
            found = None if made is None else torch.from_numpy(made).to(self.vertical.device)
        return found.to(self.vertical.dtype) if found is not None and found.is_floating_point() else found

    def compute(
        self, x: Tensor, cohort: Cohort, t: int, streams: Sequence[Streams], correction: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        return self.displacement(x, self.round_randomness(cohort, t, streams)), None

    def displacement(self, x: Tensor, drawn: Tensor | None) -> Tensor:
        """How far a round moves the models x, given what was drawn for it (seeds, ...): (seeds, d)."""
        known = self.vertical.exchange(x, drawn)
        moved = torch.empty_like(x)
        for silo, block in enumerate(self.vertical.blocks):
            weights = self.weights(silo, known)
            copies = self.copies(silo, x[:, block], known)
            mean = copies.mean(1) if weights is None else (weights[..., None] * copies).sum(1)
            moved[:, block] = mean - x[:, block]
        return moved

    def copies(self, silo: int, start: Tensor, known: object) -> Tensor:
        """The clients' copies of a silo's block that its hub averages, (seeds, d_j) -> (seeds, K_j, d_j)."""
        local, clients = self.steps, self.vertical.silo_clients[silo]
        own = start[:, None].expand(-1, clients, -1).clone(memory_format=torch.contiguous_format)
        for _ in range(local.steps - int(local.discards_last)):
            self.vertical.descend(silo, own, known, local.step_size, local.stale)
        return own

    def weights(self, silo: int, known: object) -> Tensor | None:
        """The weight of every copy, (seeds, K_j) or (K_j,), of sum one; None if all are equal."""
        local, held = self.steps, self.vertical.batch_counts(silo, known)
        if local.average == "batches":
            if held is None:
                raise FedboundsError('average = "batches" needs clients who hold samples of a batch')
            return held.to(self.vertical.dtype) / held.sum(-1, keepdim=True)
        weights = self.vertical.shares(silo) if local.average == "shards" else None
        if held is None or local.empty == "zero" or bool((held > 0).all()):
            return weights
        if local.empty == "refuse":
            raise FedboundsError(
                f'a client of silo {silo} holds no sample of the batch: give a larger batch, or empty = "zero" (it '
                'stays in the mean, as in the published code of Das et al. 2022) or empty = "drop"; either makes '
                "gradients biased"
            )
        present = (held > 0).to(self.vertical.dtype) * (1.0 if weights is None else weights)
        return present / present.sum(-1, keepdim=True)
