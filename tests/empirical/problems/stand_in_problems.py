"""Problems for tests that only look at the models: nothing is measured, and no constant is known."""

from __future__ import annotations

import torch

from fedbounds.empirical.problems import Problem


class Unmeasured(Problem):
    """All of a problem but its start and its gradients; without noise unless `draws` says otherwise."""

    dtype, device = torch.float64, torch.device("cpu")

    def draw(self, rng, client):
        return None

    def draws(self, rng, client, steps):
        return None

    def stochastic_gradient(self, x, clients, randomness):
        return self.gradient(x, clients) + (0 if randomness is None else randomness)

    def metrics(self, x):
        return {}

    def objective(self, x):
        return x[..., 0] * 0

    def objective_gradient(self, x):
        return x * 0

    def constants(self):
        return {}
