"""Who computes in one round, over all seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from fedbounds.empirical.participation import Round
from fedbounds.empirical.runtime.streams import Streams


class Placed(NamedTuple):
    """A cohort on the device of the models."""

    seeds: torch.Tensor  # seeds, clients, weights: of each pair, (pairs,)
    clients: torch.Tensor
    weights: torch.Tensor
    counts: torch.Tensor  # pairs of each seed, (seeds,)
    starts: torch.Tensor  # the first pair of each seed, (seeds,)


class PlacedRound(NamedTuple):
    """What a round needs on the device of the models, moved there before the round."""

    placed: Placed  # the cohort
    tables: Mapping[str, torch.Tensor]  # what its engine needs


@dataclass(frozen=True)
class Cohort:
    """The *pairs* (seed, client) that compute in a round, seed by seed.

    Args:
        counts: pairs of each seed, (seeds,); zero where nobody computes.
        clients: (pairs,).
        weights: (pairs,).
        steps: how many local steps each pair takes, (pairs,), where they differ.
        step_sizes: of each pair's local steps, (pairs,), where they differ.
        ahead: what was moved to the device of the models before the round; None where nothing was.
        draws: which of its client's draws in the round each pair is, (pairs,); None where each is drawn once.

    Example:
        >>> drawn = [Round(np.array([3]), np.array([1.0])), Round(np.array([0, 2]), np.array([0.5, 0.5]))]
        >>> Cohort.from_rounds(drawn).seeds
        array([0, 1, 1])
    """

    counts: np.ndarray
    clients: np.ndarray
    weights: np.ndarray
    steps: np.ndarray | None = None
    step_sizes: np.ndarray | None = None
    ahead: PlacedRound | None = None
    draws: np.ndarray | None = None

    @staticmethod
    def from_rounds(rounds: Sequence[Round]) -> Cohort:
        """The cohort in which the pairs of seed s are those of its round, without clients whose weight is zero."""
        counts = np.array([len(drawn.clients) for drawn in rounds])
        if len(rounds) == 1:
            clients, weights = rounds[0]
        else:
            clients = np.concatenate([drawn.clients for drawn in rounds])
            weights = np.concatenate([drawn.weights for drawn in rounds])
        if weights.all():
            return Cohort(counts, clients, weights)
        some = weights != 0
        counts = np.bincount(np.arange(len(counts)).repeat(counts)[some], minlength=len(counts))
        return Cohort(counts, clients[some], weights[some])

    @staticmethod
    def join(cohorts: Sequence[Cohort], step_sizes: Sequence[float]) -> Cohort:
        """The cohort in which the seeds of several compute, those of each with a step size of its own.

        Example:
            >>> one = Cohort.from_rounds([Round(np.array([3]), np.array([1.0]))])
            >>> Cohort.join([one, one], [0.1, 0.2]).step_sizes
            array([0.1, 0.2])
        """
        counts, clients, weights = (
            np.concatenate(parts)
            for parts in zip(*((one.counts, one.clients, one.weights) for one in cohorts), strict=True)
        )
        sizes = np.repeat(step_sizes, [len(one.clients) for one in cohorts])
        draws = [np.zeros(len(one.clients), int) if one.draws is None else one.draws for one in cohorts]
        apart = any(one.draws is not None for one in cohorts)
        return Cohort(counts, clients, weights, None, sizes, draws=np.concatenate(draws) if apart else None)

    def split_places(self, places: int) -> Cohort:
        """The cohort with a pair for each of so many places of equal weight, of which a client may have several.

        Example:
            >>> cohort = Cohort.from_rounds([Round(np.array([0, 2]), np.array([0.25, 0.75]))]).split_places(4)
            >>> cohort.clients.tolist(), cohort.weights.tolist(), cohort.draws.tolist()
            ([0, 2, 2, 2], [0.25, 0.25, 0.25, 0.25], [0, 0, 1, 2])
        """
        times = np.rint(self.weights * places).astype(np.int64)
        if (times == 1).all():
            return self
        ends = np.cumsum(times)
        draws = np.arange(ends[-1]) - np.repeat(ends - times, times)
        counts = np.bincount(self.seeds, times, minlength=len(self.counts)).astype(np.int64)
        clients, weights = self.clients.repeat(times), (self.weights / times).repeat(times)
        return Cohort(counts, clients, weights, draws=draws)

    def streams_of_pairs(self, streams: Sequence[Streams]) -> list[Streams]:
        """The streams of each pair: those of its seed, and others where its client is drawn once more."""
        own = [streams[seed] for seed in self.seeds.tolist()]
        return own if self.draws is None else [s.again(k) for s, k in zip(own, self.draws.tolist(), strict=True)]

    @cached_property
    def seeds(self) -> np.ndarray:
        """The row of the batch of seeds to which each pair belongs, (pairs,)."""
        return np.arange(len(self.counts)).repeat(self.counts)

    @cached_property
    def sums(self) -> np.ndarray:
        """The sum of the weights of each seed, (seeds,)."""
        return np.bincount(self.seeds, self.weights, minlength=len(self.counts))

    @cached_property
    def squares(self) -> np.ndarray:
        """$S_t$, the sum of the squared weights of each seed, (seeds,)."""
        return np.bincount(self.seeds, self.weights**2, minlength=len(self.counts))

    def with_weights(self, weights: np.ndarray) -> Cohort:
        """The same pairs with other weights, (pairs,), none of them zero."""
        return replace(self, weights=weights, ahead=None)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The fields of `Placed`, where they are made."""
        starts = np.cumsum(self.counts) - self.counts
        return dict(zip(Placed._fields, (self.seeds, self.clients, self.weights, self.counts, starts), strict=True))

    def to_device(self, device: torch.device) -> Placed:
        """The cohort on a device: moved there now, if it was not before the round."""
        if self.ahead is not None:
            return self.ahead.placed
        return self._on_cpu if device.type == "cpu" else Placed(*(values.to(device) for values in self._on_cpu))

    @cached_property
    def _on_cpu(self) -> Placed:
        # what may not be written is shared by rounds, and torch has no such tensors
        return Placed(*(torch.from_numpy(v if v.flags.writeable else v.copy()) for v in self.arrays.values()))

    def gather(self, table: torch.Tensor, *, power: int = 1) -> torch.Tensor:
        """The sum over each seed's pairs of weight^power * table[client]: table (N, d) -> (seeds, d)."""
        if self.ahead is not None:
            return _row_sums(
                table, self.ahead.placed.clients, self.ahead.placed.weights**power, self.ahead.placed.starts
            )
        numbers = self.clients, self.weights**power, np.cumsum(self.counts) - self.counts
        return _row_sums(table, *(torch.tensor(values, device=table.device) for values in numbers))

    def combine(self, updates: torch.Tensor) -> torch.Tensor:
        """The sum over each seed's pairs of weight * update: updates (pairs, d) -> (seeds, d)."""
        if updates.device.type != "cpu":
            placed = self.to_device(updates.device)
            everyone = torch.arange(len(updates), device=updates.device)
            return _row_sums(updates, everyone, placed.weights, placed.starts)
        rows, end = updates.numpy(), 0
        weights = self.weights.astype(rows.dtype, copy=False)
        if len(self.counts) == 1:
            return torch.from_numpy(weights.dot(rows)[None])
        total = np.empty((len(self.counts), rows.shape[1]), rows.dtype)
        for count, place in zip(self.counts.tolist(), total, strict=True):
            start, end = end, end + count
            weights[start:end].dot(rows[start:end], place)
        return torch.from_numpy(total)


def _row_sums(table: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Sums of weighted rows, one per seed, without copies of the rows."""
    return embedding_bag(rows, table, starts, mode="sum", per_sample_weights=weights.to(table.dtype))
