r"""Fed-Norm-SGDA and Fed-Norm-SGDA+, with any local optimizer and any amount of local work, and what they were compared
with: Local SGDA and its variants, one gradient a round, FSGDA.

Each of those is `FedNormSGDA` with numbers of its own (`rule`), and has a slow twin that is written out from scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_number, quote
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.empirical.algorithms.algorithm import Fits
from fedbounds.empirical.algorithms.descent_ascent import MinimaxAlgorithm
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.algorithms.local_optimizer import SGDA, LocalOptimizer, check_optimizers
from fedbounds.empirical.algorithms.workload import Amount, RandomWork, Workload, check_work


@dataclass(frozen=True)
class FedNormSGDA(MinimaxAlgorithm):
    r"""Normalized averaging of clients that do different amounts of work; with a snapshot period, Fed-Norm-SGDA+.

    In a round in which client i takes part with weight $q_i$, which is $\frac1P$ for each of P clients drawn without
    replacement, it takes $\tau_i$ local steps (see `LocalOptimizer`) on its gradients
    $G^x=\nabla_xf_i(x_k,y_k;\xi_k)$, $G^y=\nabla_yf_i(x_k,y_k;\xi_k)$, and

    $$g_i = \frac1{\|a_i\|_1}\sum_{k<\tau_i}a_i^{(k)}G_k, \qquad
      x^{(t+1)} = x^{(t)} - \tau_{\rm eff}\gamma_x\sum_inw_iq_ig_{x,i}, \qquad
      y^{(t+1)} = y^{(t)} + \tau_{\rm eff}\gamma_y\sum_inw_iq_ig_{y,i}.$$

    In Fed-Norm-SGDA+, $G^y=\nabla_yf_i(\hat x,y_k;\xi_k)$ with the same sample, at the $\hat x$ that was the model's x
    in the last round t divisible by S (and that every client knows). Averaging without normalization has
    $w_i\propto p_i\|a_i\|_1$ and $\tau_{\rm eff}=\sum_ip_i\|a_i\|_1$: its objective is another than
    $\sum_ip_if_i$. The theory has clients drawn uniformly without replacement, and takes $\sum_inw_iq_i$ to be one on
    average only; a trace counts the rounds in which it is not. Where y is constrained, clients project each of their
    iterates and the server projects after its step (see `LocalDescentAscent`); the paper, whose experiments have
    constraints, does not say how.

    Args:
        local_step_size: $\eta_x\ge0$, units x^2/f.
        local_ascent_step_size: $\eta_y\ge0$, units y^2/f.
        server_step_size: $\gamma_x>0$, units x^2/f.
        server_ascent_step_size: $\gamma_y>0$, units y^2/f.
        local_steps: $\tau_i\ge1$: one number, one for each client, one for each round and client (T, n), or drawn
            (`RandomWork`, or a table like `{low: 2, high: 5}`).
        local_epochs: the same in epochs, in place of local steps; an epoch is as many local steps as it takes to
            compute one gradient for each of a client's samples. Batches are drawn afresh in each step.
        weights: $w_i\ge0$, summing to one (of naive averaging, $p_i$); the problem's own $p_i$ if not given.
        optimizer: of all clients, or one for each; a `LocalOptimizer` or a table like `{momentum: 0.9}`.
        effective_local_steps: $\tau_{\rm eff}>0$; if not given, $\sum_iw_i\|a_i\|_1$, of each round.
        snapshot_period: S; none for Fed-Norm-SGDA.
        normalized: False for naive averaging, whose $\tau_{\rm eff}$ cannot be chosen.

    Raises:
        FedboundsError: a number outside its domain, weights that do not sum to one, lists of different lengths, both
            or neither of steps and epochs.

    Example:
        >>> p = np.array([0.5, 0.5])
        >>> algorithm = FedNormSGDA(0.1, 0.1, 0.01, 0.1, local_steps=(2, 5))
        >>> algorithm.scales(np.array([2, 5]), p).tolist()
        [0.875, 0.35]
        >>> naive = FedNormSGDA(0.1, 0.1, 0.01, 0.1, local_steps=(2, 5), normalized=False)
        >>> naive.effective_weights(np.array([2, 5]), p).round(6).tolist()
        [0.285714, 0.714286]

    Source: Sharma et al. 2023, Algorithm 1 with eqs. (3) and (12); naive averaging: Section 4.1 and eq. (2).
    """

    kind = "fed-norm-sgda"
    local_step_size: float
    local_ascent_step_size: float
    server_step_size: float
    server_ascent_step_size: float
    local_steps: Amount | None = None
    local_epochs: Amount | None = None
    weights: tuple[float, ...] | None = None
    optimizer: LocalOptimizer | tuple[LocalOptimizer, ...] = SGDA
    effective_local_steps: float | None = None
    snapshot_period: int | None = None
    normalized: bool = True

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name in ("local_step_size", "local_ascent_step_size"):
            settle(name, check_number(name, getattr(self, name), low=0))
        for name in ("server_step_size", "server_ascent_step_size"):
            settle(name, check_positive(name, getattr(self, name)))
        for name, amount in zip(
            ("local_steps", "local_epochs"), check_work(self.local_steps, self.local_epochs), strict=True
        ):
            settle(name, amount)
        settle("normalized", check_flag("normalized", self.normalized))
        settle("optimizer", check_optimizers(self.optimizer))
        settle("weights", check_simplex("weights", self.weights))
        if self.snapshot_period is not None:
            settle("snapshot_period", check_count("snapshot_period", self.snapshot_period))
        if self.effective_local_steps is not None:
            settle("effective_local_steps", check_positive("effective_local_steps", self.effective_local_steps))
            if not self.normalized:
                raise FedboundsError(
                    f"effective_local_steps = {quote(self.effective_local_steps)} cannot be chosen where averaging is "
                    "not normalized: there it is the mean of |a_i|_1"
                )

    @property
    def in_theory(self) -> bool:
        r"""Whether a theorem can hold: coefficients that never decrease and that are the same in every round."""
        optimizers = (self.optimizer,) if isinstance(self.optimizer, LocalOptimizer) else self.optimizer
        amount = self.local_epochs if self.local_steps is None else self.local_steps
        assert amount is not None
        changing = amount.redraw if isinstance(amount, RandomWork) else np.ndim(amount) == 2
        return all(one.in_theory for one in optimizers) and not changing

    def rule(self, clients: int) -> FedNormSGDA:
        """Itself."""
        return self

    def check_rule(self, problem: Fits, rounds: int) -> None:
        """What `check` checks beside the player that ascends.

        Raises:
            FedboundsError: lists of another number of clients or of too few rounds, an S that does not divide T, fewer
                local rates than local steps, epochs of clients who hold no samples.
        """
        clients = problem.clients
        workload = self.workload(problem)
        workload.check(rounds)
        for name, have in (
            ("weights", clients if self.weights is None else len(self.weights)),
            ("optimizers", clients if isinstance(self.optimizer, LocalOptimizer) else len(self.optimizer)),
        ):
            if have != clients:
                raise FedboundsError(f"{name} are of {have} clients, the problem has {clients}")
        if self.snapshot_period is not None and rounds % self.snapshot_period:
            raise FedboundsError(f"snapshot_period = {self.snapshot_period} must divide rounds = {rounds}")
        for i, most in enumerate(np.broadcast_to(workload.most, clients).tolist()):
            rates = self.optimizer_of(i).rates
            if rates is not None and len(rates) < most:
                raise FedboundsError(f"client {i} has {len(rates)} rates for local_steps = {most}")

    def workload(self, problem: Fits) -> Workload:
        """The local steps of every client of a problem.

        Raises:
            FedboundsError: epochs of clients who hold no samples.
        """
        return Workload.of(self.local_steps, self.local_epochs, problem)

    def optimizer_of(self, client: int) -> LocalOptimizer:
        """The optimizer of a client."""
        return self.optimizer if isinstance(self.optimizer, LocalOptimizer) else self.optimizer[client]

    def masses(self, steps: np.ndarray) -> np.ndarray:
        r"""$\|a_i\|_1$ of clients who take these local steps, (..., n) -> (..., n)."""
        if isinstance(self.optimizer, LocalOptimizer):
            return self.optimizer.masses(int(steps.max()))[steps]
        each = zip(self.optimizer, np.moveaxis(steps, -1, 0), strict=True)
        return np.stack([one.masses(int(taken.max()))[taken] for one, taken in each], axis=-1)

    def scales(self, steps: np.ndarray, p: np.ndarray) -> np.ndarray:
        r"""$\tau_{\rm eff}w_i/\|a_i\|_1$ in a round, which is $p_i$ if averaging is naive: the server steps
        $\gamma nq_i$ times it along $\sum_ka_i^{(k)}G_k$.

        Args:
            steps: $\tau_i$ of all clients, (..., n).
            p: the weights of the problem, (n,), which count where the algorithm has none of its own.

        Returns:
            (..., n).
        """
        weights = p if self.weights is None else np.asarray(self.weights)
        if not self.normalized:
            return np.broadcast_to(weights, steps.shape)
        masses = self.masses(steps)
        if self.effective_local_steps is not None:
            return self.effective_local_steps * weights / masses
        return (weights * masses).sum(-1, keepdims=True) * weights / masses

    def effective_weights(self, steps: np.ndarray, p: np.ndarray) -> np.ndarray:
        r"""$w_i$ of the objective $\sum_iw_if_i$ that the server steps along in a round; arguments as of `scales`."""
        pull = self.scales(steps, p) * self.masses(steps)
        return pull / pull.sum(-1, keepdims=True)


def check_simplex(name: str, value: Any) -> tuple[float, ...] | None:
    """Weights >= 0 that sum to one; None where there are none."""
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray) or not len(value):
        raise FedboundsError(f"{name} = {quote(value)} must be a list of numbers >= 0 that sum to one")
    weights = tuple(check_number(f"{name}[{i}]", weight, low=0) for i, weight in enumerate(value))
    if abs(sum(weights) - 1) > SUM_TOLERANCE:
        raise FedboundsError(f"{name} sum to {sum(weights):.12g}, they must sum to one")
    return weights


# --- What it was compared with ----------------------------------------------------------------------------------


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
        >>> LocalSGDA(0.1, 0.2, 5, momentum=0.9).rule(3).optimizer.momentum
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
        settled["momentum"] = LocalOptimizer(momentum=self.momentum).momentum
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
            optimizer=LocalOptimizer(momentum=self.momentum),
            snapshot_period=self.snapshot_period,
            normalized=False,
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

    Source: Yang et al. 2022, which Sharma et al. 2023 name as the case of equal steps and optimizers, without a rule.
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


ALGORITHMS = (FedNormSGDA, LocalSGDA, SynchronousSGDA, FSGDA)
