r"""The algorithm: Karimireddy et al. 2020, Algorithm 1 with option II."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedbounds.algorithms import Cohort, LocalSteps, RoundReport
from fedbounds.authoring import check_memory


class Controlled(NamedTuple):
    """The model (seeds, d) and the control variates of the clients (seeds, N, d); the server's is their mean."""

    model: torch.Tensor
    own: torch.Tensor


@dataclass(frozen=True)
class Scaffold(LocalSteps):
    r"""FedAvg whose local gradients are corrected by control variates.

    $$y_i \leftarrow y_i - \eta_l(g_i(y_i) - c_i + c) \quad (K \text{ times from } x), \qquad
      c_i^+ = c_i - c + \frac{x - y_i}{K\eta_l},$$
    $$x \leftarrow x + \frac{\eta_g}{|S|}\sum_{i\in S}(y_i - x), \qquad
      c \leftarrow c + \frac1N\sum_{i\in S}(c_i^+ - c_i).$$

    All control variates begin at zero. The weights of the participation play no role, only who takes part.

    Args:
        local_step_size: $\eta_l > 0$, units x^2/f.
        local_steps: $K \ge 1$.
        server_multiplier: $\eta_g > 0$.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> Scaffold(0.1, 5, server_multiplier=2).corrects
        True

    Source: Karimireddy et al. 2020, Algorithm 1, option II.
    """

    kind = "scaffold"
    needs_updates = own_weights = True
    corrects = True
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0

    def init(self, x0: torch.Tensor, clients: int) -> Controlled:
        seeds, d = x0.shape
        what = f"scaffold keeps the control variates of clients = {clients} in dimension {d}, which"
        check_memory(what, seeds * clients * d * x0.element_size())
        return Controlled(x0, x0.new_zeros(seeds, clients, d))

    def cohort(self, state: Controlled, t: int, drawn: Cohort, clients: int) -> Cohort:
        return drawn.with_weights(1 / drawn.counts[drawn.seeds])

    def correction(self, state: Controlled, cohort: Cohort) -> torch.Tensor:
        who = cohort.to_device(state.own.device)
        return state.own.mean(1)[who.seeds] - state.own[who.seeds, who.clients]

    def server_update(self, state: Controlled, t: int, report: RoundReport) -> Controlled:
        assert report.pairs is not None
        who, cohort = report.pairs, report.cohort
        own = state.own.clone()
        taken = who.updates / (self.local_steps * self.local_step_size)
        own[who.seeds, who.clients] = -self.correction(state, cohort) - taken
        return Controlled(state.model + self.server_multiplier * report.weighted_sum, own)


ALGORITHMS = (Scaffold,)
