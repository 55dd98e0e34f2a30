"""Algorithms whose server keeps one vector for each client."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch

from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.empirical.algorithms.algorithm import Algorithm, RoundReport


class Stored(NamedTuple):
    """The model (seeds, d), a vector of each client (seeds, N, d), and their mean (seeds, d) in float64."""

    model: torch.Tensor
    own: torch.Tensor
    mean: torch.Tensor


class ClientMemory(Algorithm):
    """Algorithms that keep a vector of every client, zero at first: O(seeds x N x d), overwritten in place."""

    needs_updates = True
    stored: ClassVar[str]  # what the vectors are, such as "updates"

    def init(self, x0: torch.Tensor, clients: int) -> Stored:
        seeds, d = x0.shape
        size = seeds * clients * d * x0.element_size()
        check_memory(f"{self.kind} keeps the {self.stored} of clients = {clients} in dimension {d}, which", size)
        return Stored(x0, x0.new_zeros(seeds, clients, d), x0.new_zeros(seeds, d, dtype=torch.float64))

    def overwrite(self, state: Stored, report: RoundReport, new: torch.Tensor) -> torch.Tensor:
        """Overwrites the vectors of those who took part by `new` (pairs, d).

        Returns:
            the sums of what changed, (seeds, d) in float64.
        """
        assert report.pairs is not None
        who = report.pairs.seeds, report.pairs.clients
        changes = new.double() - state.own[who]
        state.own[who] = new
        return torch.zeros_like(state.mean).index_add_(0, report.pairs.seeds, changes)
