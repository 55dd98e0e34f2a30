"""Two silos, one column of the features each, fit a line by messages."""

import numpy as np
import torch
from tdcd_deployment import Deployment, Holding, Silo

from fedbounds.algorithms import TDCD

X, y = torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), torch.tensor([3.0, 1.0, 1.0, 4.0])


def linear(theta: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """The embedding: any function of a silo's parameters and features that torch differentiates."""
    return features @ theta[:, None]


def silo(column: int, rows: list[list[int]]) -> Silo:
    """One column of X, whose rows are split over clients."""
    return Silo(linear, torch.zeros(1), tuple(Holding(np.array(p), X[p, column : column + 1], y[p]) for p in rows))


deployed = Deployment(
    [silo(0, [[0, 1], [2, 3]]), silo(1, [[0, 1, 2, 3]])],
    loss=lambda total, labels: (total[:, 0] - labels) ** 2 / 2,
    draw=lambda r: np.arange(4),  # every hub draws the batch of round r from the shared seed
    algorithm=TDCD(0.2, 5),
)
for _ in range(80):
    deployed.round()
print([round(float(value), 3) for value in deployed.model])
first = [each for each in deployed.deliveries if each.round == 0]
print([f"{each.link}, {each.what}: {len(each.message)}" for each in first if each.target == (1, None)])
