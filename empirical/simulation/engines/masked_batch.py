r"""Clients with different numbers of local steps in one batch.

The pairs of a batch are in decreasing order of their $\tau_i$, so that the pairs that still compute in local step k are
its first rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

import numpy as np
import torch
from torch import Tensor

from fedbounds.empirical.algorithms import Cohort, LocalDescentAscent
from fedbounds.empirical.algorithms.descent_ascent import blocks
from fedbounds.empirical.algorithms.local_work import LocalWork
from fedbounds.empirical.problems import Minimax, Problem
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines.ahead import NUMBERS
from fedbounds.empirical.simulation.engines.engine import Engine
from fedbounds.empirical.simulation.engines.local_steps import AT_ONCE, arrange_draws, largest_batch


class MaskedEngine(Engine):
    """Advances the pairs together, each for as many local steps as are its own, in batches of bounded size.

    Attributes:
        most: pairs of a batch.
    """

    label = "masked batch"

    def __init__(self, problem: Problem, local: LocalDescentAscent | LocalWork, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.most = largest_batch(problem.device, problem.dimension)

    def tables(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> dict[str, np.ndarray] | None:
        """The order in which the pairs stand, its inverse, and what they draw, `drawn` (most steps, pairs, ...)."""
        assert cohort.steps is not None
        order = np.argsort(-cohort.steps, kind="stable")
        clients, steps, every = cohort.clients[order], cohort.steps[order], cohort.streams_of_pairs(streams)
        own = [every[pair] for pair in order.tolist()]
        first = int(clients[0])
        one = self.problem.draws(self.pool.aim(0, own[0], "noise", t, first), first, 1)
        places = {"order": order, "inverse": np.argsort(order)}
        if cohort.step_sizes is not None:
            places["step_sizes"] = cohort.step_sizes
        if one is None:
            return places
        if one.size * int(steps[0]) * len(clients) > NUMBERS:
            return None
        (drawn,) = self._blocks(clients, steps, t, own, int(steps[0]))
        assert drawn is not None
        return places | {"drawn": drawn}

    def compute(
        self, x: Tensor, cohort: Cohort, t: int, streams: Sequence[Streams], correction: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        assert cohort.steps is not None
        placed, order = cohort.to_device(x.device), np.argsort(-cohort.steps, kind="stable")
        if cohort.ahead is None:
            places = [torch.from_numpy(indices).to(x.device) for indices in (order, np.argsort(order))]
        else:
            places = [cohort.ahead.tables[name] for name in ("order", "inverse")]
        ordered, inverse = places
        every = cohort.streams_of_pairs(streams) if cohort.ahead is None else []
        sizes = self._step_sizes(cohort)
        found = []
        for start in range(0, len(order), self.most):
            some = order[start : start + self.most]
            there = ordered[start : start + self.most]
            received = x.expand(len(some), -1) if len(x) == 1 else x[placed.seeds[there]]
            clients, steps = cohort.clients[some], cohort.steps[some]
            if cohort.ahead is None:
                own = [every[pair] for pair in some.tolist()]
                drawn = self.draw_steps(clients, steps, t, own)
            elif "drawn" in cohort.ahead.tables:
                drawn = iter(self._arrange_draws(cohort.ahead.tables["drawn"][:, start : start + self.most]))
            else:
                drawn = repeat(None)
            own_sizes = None if sizes is None else sizes[there]
            found.append(self.updates(received, placed.clients[there], steps, drawn, own_sizes))
        updates = torch.cat(found) if len(found) > 1 else found[0]
        updates = updates[inverse]
        return cohort.combine(updates), updates

    @abstractmethod
    def updates(
        self,
        received: Tensor,
        clients: Tensor,
        steps: np.ndarray,
        drawn: Iterator[Tensor | None],
        step_sizes: Tensor | None,
    ) -> Tensor:
        """What pairs in decreasing order of their steps send, (pairs, d); `step_sizes` (pairs, 1) where they differ."""

    def _step_sizes(self, cohort: Cohort) -> Tensor | None:
        """The step sizes of all pairs, (pairs, 1)."""
        if cohort.step_sizes is None:
            return None
        sizes = cohort.ahead.tables["step_sizes"] if cohort.ahead else torch.from_numpy(cohort.step_sizes)
        return sizes.to(self.problem.device, self.problem.dtype)[:, None]

    def draw_steps(
        self, clients: np.ndarray, steps: np.ndarray, t: int, streams: Sequence[Streams]
    ) -> Iterator[Tensor | None]:
        """Step by step what the pairs draw, (1, pairs, ...), in blocks of bounded size."""
        most = max(1, AT_ONCE // (len(clients) * self.problem.dimension))
        done = 0
        for drawn in self._blocks(clients, steps, t, streams, most):
            size = min(most, int(steps[0]) - done)
            yield from [None] * size if drawn is None else self._arrange_draws(torch.from_numpy(drawn))
            done += size

    def _blocks(
        self, clients: np.ndarray, steps: np.ndarray, t: int, streams: Sequence[Streams], most: int
    ) -> Iterator[np.ndarray | None]:
        """What the pairs draw, each from the place (round, client) of its noise: blocks (steps, pairs, ...)."""
        names, left = clients.tolist(), steps.tolist()
        generators = [self.pool.aim(k, streams[k], "noise", t, name) for k, name in enumerate(names)]
        for done in range(0, left[0], most):
            table: np.ndarray | None = None
            size = min(most, left[0] - done)
            for k, (generator, name, tau) in enumerate(zip(generators, names, left, strict=True)):
                if tau <= done:
                    break
                drawn = self.problem.draws(generator, name, min(size, tau - done))
                if drawn is None:
                    break
                if table is None:
                    table = np.zeros((size, len(names), *drawn.shape[1:]), drawn.dtype)
                table[: len(drawn), k] = drawn
            yield table

    def _arrange_draws(self, drawn: Tensor) -> Tensor:
        return arrange_draws(self.problem, drawn, (1, drawn.shape[1]))


class MaskedBatch(MaskedEngine):
    """Descent and ascent from a model and its snapshot."""

    def __init__(self, problem: Minimax, local: LocalDescentAscent, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.game = problem
        self.step = blocks(problem, -local.step_size, local.ascent_step_size)
        one_for_each = len(local.optimizers) > 1
        optimizers = local.optimizers if one_for_each else local.optimizers * problem.clients
        self.momentum = self._column([one.momentum for one in optimizers], neutral=0.0)
        self.contraction = self._column([one.contraction for one in optimizers], neutral=1.0)
        self.rates = self._rates([one.rates or () for one in optimizers])

    def _column(self, values: Sequence[float], neutral: float) -> Tensor | None:
        """One number for each client, (n, 1); None if they change nothing."""
        if all(value == neutral for value in values):
            return None
        return torch.tensor(values, dtype=self.game.dtype, device=self.game.device)[:, None]

    def _rates(self, rates: Sequence[Sequence[float]]) -> Tensor | None:
        """$v_k$ of each client, (most steps, n, 1), one where a client has none; None if nobody has any."""
        longest = max(map(len, rates))
        if not longest:
            return None
        filled = [[*own, *[1.0] * (longest - len(own))] for own in rates]
        return torch.tensor(filled, dtype=self.game.dtype, device=self.game.device).T[..., None]

    def updates(
        self,
        received: Tensor,
        clients: Tensor,
        steps: np.ndarray,
        drawn: Iterator[Tensor | None],
        step_sizes: Tensor | None,
    ) -> Tensor:
        return self.local_sums(received, clients, steps, drawn)

    def local_sums(
        self,
        received: Tensor,
        clients: Tensor,
        steps: np.ndarray,
        randomness: Iterator[Tensor | None],
        watch: Callable[[Tensor], None] | None = None,
    ) -> Tensor:
        r"""$u_\tau=\sum_{k<\tau}a^{(k)}G_k$ of pairs in decreasing order of their steps."""
        game, who = self.game, clients[None]  # the axis of seeds has length one
        z, snapshot = received[None, :, : game.dimension], received[None, :, game.dimension :]
        momentum, contraction = (None if c is None else c[who] for c in (self.momentum, self.contraction))
        u = torch.zeros_like(z)
        buffer = u if momentum is None else torch.zeros_like(z)
        y = game.split(z)[1].clone() if game.constrained else None  # as it is after its projections
        for k, m in enumerate(_remaining_pairs(steps)):
            so_far, mine, drawn = u[:, :m], who[:, :m], next(randomness)
            now = torch.addcmul(z[:, :m], so_far, self.step)
            if y is not None:
                now = game.join(game.split(now)[0], y[:, :m])
            if watch is not None:
                watch(now[0])
            xi = None if drawn is None else drawn[:, :m]
            if self.local.at_snapshot:
                gradient = game.snapshot_gradient(now, snapshot[:, :m], mine, xi)
            else:
                gradient = game.stochastic_gradient(now, mine, xi)
            if self.rates is not None and k < len(self.rates):
                gradient = gradient * self.rates[k][mine]
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


class MaskedSequential(MaskedBatch):
    """The same, one pair at a time: the fastest way through networks that keep the processor busy alone."""

    label = "sequential"

    def __init__(self, problem: Minimax, local: LocalDescentAscent, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.most = 1


class MaskedDescent(MaskedEngine):
    """Descent with momentum and a proximal term, by the step sizes of the cohort."""

    def __init__(self, problem: Problem, local: LocalWork, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.momentum = self._unless_statistic(local.optimizer.momentum)
        self.proximal_mu = self._unless_statistic(local.proximal_mu)

    def _unless_statistic(self, value: float) -> Tensor | None:
        """The value in every coordinate, zero where running statistics are, (d,); None where it is zero."""
        if not value:
            return None
        sizes = [self.problem.dimension - self.problem.statistics, self.problem.statistics]
        return torch.from_numpy(np.repeat([value, 0.0], sizes)).to(self.problem.device, self.problem.dtype)

    def updates(
        self,
        received: Tensor,
        clients: Tensor,
        steps: np.ndarray,
        drawn: Iterator[Tensor | None],
        step_sizes: Tensor | None,
    ) -> Tensor:
        assert step_sizes is not None
        problem, who = self.problem, clients[None]  # the axis of seeds has length one
        y = received[None].clone()
        buffer = torch.zeros_like(y)
        for m in _remaining_pairs(steps):
            xi = next(drawn)
            gradient = problem.stochastic_gradient(y[:, :m], who[:, :m], None if xi is None else xi[:, :m])
            if problem.statistics:  # move by steps of length one
                gradient[..., -problem.statistics :] /= step_sizes[:m]
            if self.proximal_mu is not None:
                gradient = torch.addcmul(gradient, y[:, :m] - received[:m], self.proximal_mu)
            if self.momentum is not None:
                gradient = buffer[:, :m].mul_(self.momentum).add_(gradient)
            y[:, :m].addcmul_(gradient, step_sizes[:m], value=-1)
        return y[0] - received


class MaskedDescentSequential(MaskedDescent):
    """The same, one pair at a time."""

    label = "sequential"

    def __init__(self, problem: Problem, local: LocalWork, needs_updates: bool = False) -> None:
        super().__init__(problem, local, needs_updates)
        self.most = 1


def _remaining_pairs(steps: np.ndarray) -> list[int]:
    """For each local step, how many pairs take it: the first ones, as their steps decrease."""
    return (len(steps) - np.searchsorted(steps[::-1], np.arange(steps[0]), side="right")).tolist()
