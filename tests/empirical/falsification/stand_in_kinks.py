"""Clients with kinks as a problem whose noise is told sign by sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from fedbounds.empirical.falsification.instances.piecewise_quadratics import KinkedClients
from fedbounds.empirical.problems import Problem


class Signs:
    """One instance in one coordinate, which hands out these signs one after the other; each slope by its pieces."""

    dtype = torch.float64
    steps_per_epoch = None
    dimension, statistics = 1, 0

    def __init__(self, z: KinkedClients, b: int, signs: Sequence[float]) -> None:
        self.knots, self.curvatures, self.first = z.knots[b, 0], z.curvatures[b, :, 0], z.first[b, :, 0]
        self.clients = len(self.first)
        self.noise, self.left = z.noise[b, :, 0], list(signs)

    def slope(self, n: int, x: float) -> float:
        """By going from the first knot to x piece by piece."""
        knots, a, slope = self.knots, self.curvatures[n], self.first[n]
        if x < knots[0]:
            return slope + a[0] * (x - knots[0])
        for k, knot in enumerate(knots):
            end = knots[k + 1] if k + 1 < len(knots) else np.inf
            if x <= end:
                return slope + a[k + 1] * (x - knot)
            slope += a[k + 1] * (end - knot)
        raise AssertionError

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray:
        """The next sign, times the size of the client's noise."""
        return np.array([self.left.pop(0) * self.noise[client]])

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor) -> Tensor:
        """At one model of one client."""
        return torch.tensor(self.slope(int(clients), float(x))).reshape(1, 1, 1) + randomness


def Signed(z: KinkedClients, b: int, signs: Sequence[float]) -> Problem:
    """What the slow twins ask of a problem."""
    return cast(Any, Signs(z, b, signs))
