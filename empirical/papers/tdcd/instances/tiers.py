r"""Rounds of block updates on clients with kinks, over every sign of their noise.

Client k has $F_k(\theta)=\sum_m\phi_{km}(a_m^\top\theta)$ with piecewise quadratic $\phi_{km}$ and independent
directions $a_m$, so that what the coordinates share is seen: in a round each client of each silo moves its own
coordinate, the others as they were, by Q steps with one draw of noise, and the silo takes the mean. Directions are as
many as coordinates: then the infimum of f is the sum of those of the $\bar\phi_m$, and any curvatures may meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, NamedTuple

import numpy as np

from fedbounds.empirical.falsification.instances.piecewise_quadratics import KinkedClients, draw_clients
from fedbounds.empirical.falsification.instances.ranges import counts, flag, positive, reals


class TieredCourse(NamedTuple):
    """What is measured on all paths."""

    gradient: np.ndarray  # $\mathbb E\|\nabla f\|^2$ at the virtual average before every local step, (B, R, Q)
    # of the clients' stochastic gradients about that of f in a round and a silo, their mean, (B, R, d)
    variance: np.ndarray
    ends: np.ndarray  # $\mathbb Ef$ at the start and at the end, (B, 2)


@dataclass(frozen=True, eq=False)
class TieredClients(KinkedClients):
    r"""B runs of K clients in each of as many silos as there are coordinates.

    Knots, curvatures and slopes are those of $\phi_{km}$, with a direction where others have a coordinate.
    """

    directions: Annotated[np.ndarray, reals("d d")]  # $a_m$, (B, d, d)
    eta: Annotated[np.ndarray, positive()]  # (B,)
    together: Annotated[bool, flag()]  # whether all clients see one sign in a round; else each has its own
    steps: Annotated[int, counts()]  # steps, rounds: Q and R
    rounds: Annotated[int, counts()]

    def rules(self) -> dict[str, np.ndarray]:
        independent = np.linalg.matrix_rank(self.directions.astype(float)) == self.directions.shape[2]
        return super().rules() | {"the directions are linearly independent": independent}

    @property
    def signs(self) -> np.ndarray:
        """Every outcome of a round's noise, (K, outcomes)."""
        if not self.noise.any():
            return np.zeros((self.clients, 1))
        free = 1 if self.together else self.clients
        return np.broadcast_to(np.array(list(product((-1.0, 1.0), repeat=free))).T, (self.clients, 2**free))

    @property
    def cost(self) -> int:
        """Local steps, and a sixtieth for each path at the end."""
        return self.steps * self.rounds + self.signs.shape[1] ** self.rounds // 60

    def slopes_along(self, theta: np.ndarray) -> np.ndarray:
        """Each client's gradient at (B, d, P), (B, K, d, P)."""
        at = np.einsum("bmd,bdp->bmp", self.directions, theta)
        own = self.each.slope(np.broadcast_to(at[:, None], (len(self), self.clients, *at.shape[1:])))
        return np.einsum("bmd,bkmp->bkdp", self.directions, own)

    def value(self, theta: np.ndarray) -> np.ndarray:
        """The mean of f over the paths (B, d, P), (B,)."""
        return self.objective.value(np.einsum("bmd,bdp->bmp", self.directions, theta)).mean(axis=2).sum(axis=1)

    @cached_property
    def course(self) -> TieredCourse:
        """Round by round."""
        B, K, d = self.first.shape
        a, eta = self.directions, self.eta[:, None, None, None, None]
        theta, norms, variances = self.start[:, :, None], [], []
        ends, noise = [self.value(theta)], (self.noise**2).mean(axis=1)
        push = self.noise[:, :, :, None, None] * self.signs[:, None, None]  # (B, K, d, 1, outcomes)
        for _ in range(self.rounds):
            gradients = self.slopes_along(theta)
            apart = (gradients - gradients.mean(axis=1, keepdims=True)) ** 2
            variances.append(apart.mean(axis=(1, 3)) + noise)
            at = np.einsum("bmd,bdp->bmp", a, theta)[:, None, :, None, :, None]  # (B, 1, M, 1, P, 1)
            change, squares = np.zeros((B, K, d, theta.shape[2], push.shape[4])), []
            for _ in range(self.steps):
                average = (theta[..., None] + change.mean(axis=1)).reshape(B, d, -1)
                squares.append((self.slopes_along(average).mean(axis=1) ** 2).sum(axis=1).mean(axis=1))
                points = at + a[:, None, :, :, None, None] * change[:, :, None]  # (B, K, M, d, P, outcomes)
                slopes = self.each.slope(points.reshape(B, K, d, -1)).reshape(points.shape)
                own = np.einsum("bmd,bkmdpw->bkdpw", a, slopes)
                change = change - eta * (own + push)
            norms.append(np.stack(squares, axis=1))
            theta = (theta[..., None] + change.mean(axis=1)).reshape(B, d, -1)
        ends.append(self.value(theta))
        return TieredCourse(np.stack(norms, axis=1), np.stack(variances, axis=1), np.stack(ends, axis=1))

    @cached_property
    def lowest(self) -> np.ndarray:
        """Inf f, (B,)."""
        return self.objective.minimum()[0].sum(axis=1)

    @cached_property
    def constants(self) -> tuple[np.ndarray, np.ndarray]:
        """L of f, and Lmax in a client's own block, (B,): the norm of a Hessian is convex in the curvatures."""
        mean, squares = self.objective.curvatures, self.directions**2
        extremes = product((np.min, np.max), repeat=mean.shape[1])
        levels = (np.stack([f(mean[:, m], axis=1) for m, f in enumerate(choice)], axis=1) for choice in extremes)
        hessians = (np.einsum("bmi,bm,bmj->bij", self.directions, level, self.directions) for level in levels)
        own = (np.einsum("bmd,bkm->bkd", squares, f(self.curvatures, axis=3)) for f in (np.min, np.max))
        whole = np.max([np.linalg.norm(h, 2, axis=(1, 2)) for h in hessians], axis=0)
        return whole, np.max([np.abs(v).max(axis=(1, 2)) for v in own], axis=0)

    @cached_property
    def alike(self) -> np.ndarray:
        """Whether all clients have the same function, (B,)."""
        return np.asarray(self.divergences.max(axis=1) == 0)


def draw_tiered(rng: np.random.Generator, B: int, shape: tuple[int, int, int], *, noisy: bool) -> dict[str, np.ndarray]:
    """What the clients of a shape are: silos, clients of each, and knots along every direction."""
    N, K, knots = shape
    clients = draw_clients(rng, B, (K, N, knots), noisy=noisy)
    directions = np.eye(N) + rng.choice([0.0, 1.0, 1.0], size=(B, 1, 1)) * rng.normal(size=(B, N, N))
    return {**clients, "directions": directions / np.linalg.norm(directions, axis=2, keepdims=True)}
