r"""Quadratics without local steps: I steps of SGD on a quadratic are one affine map with exactly known noise.

With $B = I_d - \gamma A$,

$$\Delta = (B^I - I_d)(x - c) + \zeta, \qquad \zeta \sim N\Big(0,\ \gamma^2 s^2 \sum_{j<I} B^{2j}\Big),$$

both functions of the eigenvalues of A. For Hessians that all commute in the coordinates at hand (one Hessian,
or diagonal ones) the noise of the whole cohort is one draw per seed, with the covariances weighted by
$q_n^2$. Only the law of the noise agrees with the other engines'; without noise, the numbers do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Cohort, LocalSGD
from fedbounds.empirical.problems import Problem, Quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines.engine import Engine


def local_map(local: LocalSGD, eigenvalues: torch.Tensor, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    r"""What I local steps do along an eigenvector: how they move, and the standard deviation of their noise.

    $$m(\lambda) = -\gamma\lambda\sum_{j<I}(1-\gamma\lambda)^j = (1-\gamma\lambda)^I - 1, \qquad
      r(\lambda) = \gamma s\Big(\sum_{j<I}(1-\gamma\lambda)^{2j}\Big)^{1/2};$$

    if the gradients are frozen, $m = -\gamma\lambda I$ and $r = \gamma s\sqrt I$.

    Source: Wang & Ji 2022, Algorithm 1 on quadratics; the sums are geometric.
    """
    factor = torch.ones_like(eigenvalues) if local.frozen else 1 - local.step_size * eigenvalues
    power, first, second = (
        torch.ones_like(eigenvalues),
        torch.zeros_like(eigenvalues),
        torch.zeros_like(eigenvalues),
    )
    for _ in range(local.steps):  # the sum, not the difference (1 - gamma lambda)^I - 1: gamma may be tiny
        first, second, power = first + power, second + power**2, power * factor
    spread = 0.0 if local.oracle == "full" else noise
    return -local.step_size * eigenvalues * first, local.step_size * spread * second.sqrt()


class ClosedForm(Engine):
    """Exact rounds of local SGD on a `Quadratic`, at a cost that does not depend on the number of local steps.

    Diagonal Hessians cost O(seeds x cohort x d) a round, a shared one O(seeds x d^2) besides, different dense
    ones two products with the client's eigenvectors per participating client (one, if there is no noise); these
    take O(N d^2), as the problem itself does.
    """

    def __init__(self, problem: Problem, local: LocalSGD, needs_updates: bool = False) -> None:
        if not isinstance(problem, Quadratic):
            raise FedboundsError(
                f"engine 'closed form' needs a Quadratic, the problem is {type(problem).__name__}; use 'batched', "
                "'sequential' or 'auto'"
            )
        super().__init__(problem, local, needs_updates)
        self.quadratic = problem
        self.one_by_one = not (problem.diagonal or problem.shared)
        if problem.diagonal:
            eigenvalues = problem.hessians
        else:
            eigenvalues, self.frames = problem.eigen
            self.frame_of = list(self.frames.cpu().numpy())
        self.move, self.root = local_map(local, eigenvalues, problem.noise)
        self.noisy = bool(self.root.any())
        self.label = "closed form (agrees in law)" if self.noisy else "closed form"
        if not (problem.diagonal or (self.one_by_one and self.noisy)):  # one product instead of two
            self.move, self.root = (
                (self.frames * values[..., None, :]) @ self.frames.mT for values in (self.move, self.root)
            )

    def tables(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> dict[str, np.ndarray]:
        """The standard normals, if there is noise, and the sums of each seed's weights and of their squares."""
        noise = {"noise": self._noise(cohort, t, streams)} if self.noisy else {}
        return noise | {"sums": cohort.sums, "squares": cohort.squares}

    def compute(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        ahead = None if cohort.ahead is None else cohort.ahead.tables
        noise = None
        if self.noisy:
            noise = torch.from_numpy(self._noise(cohort, t, streams)).to(x) if ahead is None else ahead["noise"]
        if self.needs_updates or self.one_by_one:
            updates = self._updates(x, cohort, noise)
            return cohort.combine(updates), updates
        if not self.quadratic.shared:
            total = cohort.gather(self.move) * x - cohort.gather(self.move * self.quadratic.centers)
            return (total if noise is None else total + cohort.gather(self.root**2, power=2).sqrt() * noise), None
        if ahead is None:
            weight, squares = (torch.from_numpy(sums).to(x)[:, None] for sums in (cohort.sums, cohort.squares))
        else:
            weight, squares = ahead["sums"][:, None], ahead["squares"][:, None]
        total = self._times(weight * x - cohort.gather(self.quadratic.centers), self.move)
        return (total if noise is None else total + squares.sqrt() * self._times(noise, self.root)), None

    def _noise(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> np.ndarray:
        """Standard normals: (pairs, d) where every update has its own noise, else (seeds, d)."""
        single = self.needs_updates or self.one_by_one
        seeds = len(cohort.counts)
        drawn, end = np.empty((len(cohort.clients) if single else seeds, self.problem.dimension)), 0
        for own, count in zip(streams, cohort.counts.tolist() if single else [1] * seeds, strict=True):
            start, end = end, end + count
            self.pool.aim(0, own, "noise", t).standard_normal(out=drawn[start:end])
        return drawn

    def _updates(self, x: torch.Tensor, cohort: Cohort, noise: torch.Tensor | None) -> torch.Tensor:
        """The updates one by one, (pairs, d)."""
        if self.one_by_one:
            return (self.products if x.device.type == "cpu" else self.gathered_products)(x, cohort, noise)
        who = cohort.to_device(x.device)
        updates = self._times(x[who.seeds] - self.quadratic.centers[who.clients], self.move, who.clients)
        return updates if noise is None else updates + self._times(noise, self.root, who.clients)

    def products(self, x: torch.Tensor, cohort: Cohort, noise: torch.Tensor | None) -> torch.Tensor:
        """The updates under different dense Hessians, on a CPU: a matrix costs less to use than to copy.

        What bounds the speed is reading the matrices from memory; each is read once.
        """
        clients, move = cohort.clients, self.move.numpy()
        received = x.numpy() if len(x) == 1 else x.numpy()[cohort.seeds]
        away = received - self.quadratic.centers.numpy()[clients]
        updates = np.empty(away.shape)
        if noise is None:
            for client, row, place in zip(clients.tolist(), away, updates, strict=True):
                move[client].dot(row, place)
            return torch.from_numpy(updates)
        shift = self.root.numpy()[clients] * noise.numpy()
        columns = zip(clients.tolist(), away, move[clients], shift, updates, strict=True)
        for client, row, times, plus, place in columns:
            frame = self.frame_of[client]
            turned = row.dot(frame)
            turned *= times
            turned += plus
            frame.dot(turned, place)
        return torch.from_numpy(updates)

    def gathered_products(self, x: torch.Tensor, cohort: Cohort, noise: torch.Tensor | None) -> torch.Tensor:
        """What `products` computes, on any device and without a loop, from a copy of each pair's matrix."""
        seeds, clients, *_ = cohort.to_device(x.device)
        away = x[seeds] - self.quadratic.centers[clients]
        if noise is None:
            return torch.einsum("kij,kj->ki", self.move[clients], away)
        frames = self.frames[clients]
        turned = self.move[clients] * torch.einsum("kji,kj->ki", frames, away) + self.root[clients] * noise
        return torch.einsum("kij,kj->ki", frames, turned)

    def _times(self, rows: torch.Tensor, table: torch.Tensor, clients: torch.Tensor | None = None) -> torch.Tensor:
        """Every row times its client's map, which is the same for all or diagonal: (pairs, d) -> (pairs, d)."""
        if not self.quadratic.diagonal:
            return rows @ table
        return rows * (table if self.quadratic.shared else table[clients])
