"""The networks of the race as torch modules; needs nothing but torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


def module(model: Sequence[torch.Tensor]) -> nn.Sequential:
    """The network with these parameters, weight and bias of each layer."""
    if len(model) == 4:
        layers = [nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)]
    else:
        first = [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        layers = [*first, *second, nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10)]
    network = nn.Sequential(*layers)
    with torch.no_grad():
        for parameter, part in zip(network.parameters(), model, strict=True):
            parameter.copy_(part)
    return network
