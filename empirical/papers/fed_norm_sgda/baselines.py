r"""What Fed-Norm-SGDA was compared with: Local SGDA and its variants, one gradient a round, FSGDA.

Each is `FedNormSGDA` with numbers of its own (`rule`), and has a slow twin that is written out from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedbounds.bounds.checks import check_count, check_number
from fedbounds.empirical.algorithms.descent_ascent import MinimaxAlgorithm
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.algorithms.local_optimiser import LocalOptimiser
from fedbounds.empirical.algorithms.workload import Amount, check_work
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA, check_simplex


@dataclass(frozen=True)
class LocalSGDA(MinimaxAlgorithm):
    r"""Local SGDA and, with momentum or a snapshot period or both, its variants: the server averages the iterates.

    $$x^{(t+1)} = x^{(t)} + \sum_inp_iq_i\big(x_i^{(\tau_i)}-x^{(t)}\big), \quad\text{y alike};$$

    the clients' step sizes are the server's. Clients who compute more weigh more: it is naive averaging. With a
    snapshot period it is Local SGDA+, whose gradients in y are taken at a snapshot of x. With momentum there is no
    update rule in the paper; it is heavy-ball steps here, with a buffer that starts every round at zero.

    Args:
        step_size: $\eta_x>0$, units x^2/f.
        ascent_step_size: $\eta_y>0$, units y^2/f.
        local_steps, local_epochs: one of the two, as in `FedNormSGDA`.
        weights: $p_i$; the problem's own if not given.
        momentum: $\rho$ in [0, 1).
        snapshot_period: S; none for Local SGDA.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> LocalSGDA(0.1, 0.2, 5, momentum=0.9).rule(3).optimiser.momentum
        0.9

    Source: Deng & Mahdavi 2021 (Local SGDA, Local SGDA+), Sharma et al. 2022 (with momentum), as Sharma et al. 2023,
    Section 4.1, describe them.
    """

    kind = "local-sgda"
    step_size: float
    ascent_step_size: float
    local_steps: Amount | None = None
    local_epochs: Amount | None = None
    weights: tuple[float, ...] | None = None
    momentum: float = 0.0
    snapshot_period: int | None = None

    def __post_init__(self) -> None:
        settled = _settled(self.step_size, self.ascent_step_size, self.weights)
        settled |= zip(("local_steps", "local_epochs"), check_work(self.local_steps, self.local_epochs), strict=True)
        settled["momentum"] = LocalOptimiser(momentum=self.momentum).momentum
        if self.snapshot_period is not None:
            settled["snapshot_period"] = check_count("snapshot_period", self.snapshot_period)
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def rule(self, clients: int) -> FedNormSGDA:
        return FedNormSGDA(
            self.step_size,
            self.ascent_step_size,
            self.step_size,
            self.ascent_step_size,
            self.local_steps,
            self.local_epochs,
            weights=self.weights,
            optimiser=LocalOptimiser(momentum=self.momentum),
            snapshot_period=self.snapshot_period,
            normalised=False,
        )


@dataclass(frozen=True)
class SynchronousSGDA(MinimaxAlgorithm):
    r"""One gradient a round, $\tau_i\equiv1$: $x^{(t+1)}=x^{(t)}-\gamma_x\sum_inw_iq_iG^x_i$, y alike, upwards.

    Args:
        step_size: $\gamma_x>0$, units x^2/f.
        ascent_step_size: $\gamma_y>0$, units y^2/f.
        weights: $w_i$; the problem's $p_i$ if not given.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> SynchronousSGDA(0.1, 0.2).rule(2).local_steps
        1

    Source: Sharma et al. 2023, the case of one local step; with one client, Lin et al. 2020.
    """

    kind = "synchronous-sgda"
    step_size: float
    ascent_step_size: float
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, value in _settled(self.step_size, self.ascent_step_size, self.weights).items():
            object.__setattr__(self, name, value)

    def rule(self, clients: int) -> FedNormSGDA:
        return FedNormSGDA(0.0, 0.0, self.step_size, self.ascent_step_size, 1, weights=self.weights)


@dataclass(frozen=True)
class FSGDA(MinimaxAlgorithm):
    r"""Equal clients, equally many plain local steps, and server steps of their own.

    $$x^{(t+1)} = x^{(t)} - \gamma_x\sum_iq_i\sum_{k<\tau}G^x_{i,k}, \quad\text{y alike, upwards}$$

    Args:
        local_step_size: $\eta_x\ge0$, units x^2/f.
        local_ascent_step_size: $\eta_y\ge0$, units y^2/f.
        server_step_size: $\gamma_x>0$, units x^2/f.
        server_ascent_step_size: $\gamma_y>0$, units y^2/f.
        local_steps: $\tau\ge1$, one number.

    Raises:
        FedboundsError: a number outside its domain; more than one number of local steps.

    Example:
        >>> FSGDA(0.1, 0.1, 0.01, 0.02, 5).rule(2).weights
        (0.5, 0.5)

    Source: Yang et al. 2022, which Sharma et al. 2023 name as the case of equal steps and optimisers, without a rule.
    """

    kind = "fsgda"
    local_step_size: float
    local_ascent_step_size: float
    server_step_size: float
    server_ascent_step_size: float
    local_steps: int

    def __post_init__(self) -> None:
        for name in ("local_step_size", "local_ascent_step_size"):
            object.__setattr__(self, name, check_number(name, getattr(self, name), low=0))
        for name in ("server_step_size", "server_ascent_step_size"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        object.__setattr__(self, "local_steps", check_count("local_steps", self.local_steps))

    def rule(self, clients: int) -> FedNormSGDA:
        return FedNormSGDA(
            self.local_step_size,
            self.local_ascent_step_size,
            self.server_step_size,
            self.server_ascent_step_size,
            self.local_steps,
            weights=(1 / clients,) * clients,
        )


def _settled(step_size: object, ascent_step_size: object, weights: object) -> dict[str, object]:
    return {
        "step_size": check_positive("step_size", step_size),
        "ascent_step_size": check_positive("ascent_step_size", ascent_step_size),
        "weights": check_simplex("weights", weights),
    }


ALGORITHMS = (LocalSGDA, SynchronousSGDA, FSGDA)
