"""SCAFFOLD: local steps that are corrected by control variates."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedbounds.empirical.algorithms.algorithm import LocalSteps, RoundReport
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.memory import ClientMemory, Stored


@dataclass(frozen=True)
class Scaffold(ClientMemory, LocalSteps):
    r"""FedAvg whose local gradients are corrected by control variates $c_n$ of the clients and their mean c.

    $$y \leftarrow y - \gamma(g_n(y) - c_n + c) \quad (I \text{ times from } x_t), \qquad
      c_n^+ = c_n - c + \frac{x_t - y}{I\gamma},$$
    $$x_{t+1} = x_t + \frac{\eta}{|S_t|}\sum_{n\in S_t}(y_n - x_t), \qquad
      c \leftarrow c + \frac1N\sum_{n\in S_t}(c_n^+ - c_n).$$

    All control variates are zero at first. An empty round changes nothing. The server computes $c_n^+$ of $y_n$, so
    that a client sends d numbers. Holds N + 1 models and more.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$, dimensionless.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> Scaffold(0.1, 5, server_multiplier=2).corrects
        True

    Source: Karimireddy et al. 2020, Algorithm 1 with option II.
    """

    kind = "scaffold"
    stored = "control variates"
    own_weights = True
    corrects = True
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0

    def cohort(self, state: Stored, t: int, drawn: Cohort, clients: int) -> Cohort:
        return drawn.with_weights(1 / drawn.counts[drawn.seeds])

    def correction(self, state: Stored, cohort: Cohort) -> torch.Tensor:
        who = cohort.to_device(state.own.device)
        return state.mean.to(state.own.dtype)[who.seeds] - state.own[who.seeds, who.clients]

    def server_update(self, state: Stored, t: int, report: RoundReport) -> Stored:
        assert report.pairs is not None
        descent = report.pairs.updates / (self.local_steps * self.local_step_size)
        changes = self.overwrite(state, report, -self.correction(state, report.cohort) - descent)
        model = state.model + self.server_multiplier * report.weighted_sum
        return Stored(model, state.own, state.mean + changes / state.own.shape[1])
