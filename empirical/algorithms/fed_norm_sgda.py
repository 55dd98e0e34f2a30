r"""Fed-Norm-SGDA and Fed-Norm-SGDA+ with any local optimiser, and the algorithms that they contain.

The model is one flat vector $z=(x,y)$: the server descends in x and ascends in y. `empirical.simulate_minimax` runs it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bounds.checks import check_count, check_flag, check_number, is_number, quote
from bounds.constants import SUM_TOLERANCE
from bounds.errors import FedboundsError
from empirical.algorithms.local import check_positive

Counts = int | tuple[int, ...] | tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LocalOptimiser:
    r"""What a client makes of its gradients $G_0, G_1, \dots$: its k-th iterate and what it returns.

    $$d_{k+1} = \rho d_k + v_kG_k, \quad u_{k+1} = \alpha u_k + d_{k+1}, \quad d_0 = u_0 = 0, \qquad
      x_k = x - \eta_xu_k, \quad y_k = y + \eta_yu_k,$$

    each block with its own gradients; so $u_k=\sum_{j<k}a^{(j)}(k)G_j$ with
    $a^{(j)}(k)=v_j\sum_{i=j}^{k-1}\alpha^{k-1-i}\rho^{i-j}$, the coefficients of the paper. `SGDA` has
    $a^{(j)}(k)=1$, `heavy_ball` $\frac{1-\rho^{k-j}}{1-\rho}$, `variable_rates` $v_j$, `proximal` $\alpha^{k-1-j}$.

    Args:
        momentum: $\rho$ in [0, 1); the buffer is zero at the start of each round.
        rates: $v_0, v_1, \dots > 0$, at least as many as there are local steps; one throughout if not given.
        contraction: $\alpha$ in (0, 1], toward the model that the client received. The theorems need coefficients
            that do not decrease in k, so $\alpha<1$ is outside the theory.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> heavy_ball(0.5).coefficients(3).tolist()
        [1.75, 1.5, 1.0]
        >>> heavy_ball(0.5).in_theory, proximal(0.9).in_theory
        (True, False)

    Source: Sharma et al. 2023, eq. (12) and Appendix A.1; what the proofs need of the coefficients is unstated there
    (used in (26) to (29)).
    """

    momentum: float = 0.0
    rates: tuple[float, ...] | None = None
    contraction: float = 1.0

    def __post_init__(self) -> None:
        if not is_number(self.momentum) or not 0 <= self.momentum < 1:
            raise FedboundsError(f"momentum = {quote(self.momentum)} must be a number in [0, 1)")
        if not is_number(self.contraction) or not 0 < self.contraction <= 1:
            raise FedboundsError(f"contraction = {quote(self.contraction)} must be a number in (0, 1]")
        if self.rates is not None:
            if isinstance(self.rates, str) or not isinstance(self.rates, Sequence | np.ndarray) or not len(self.rates):
                raise FedboundsError(f"rates = {quote(self.rates)} must be a list of numbers in (0, inf)")
            rates = tuple(check_positive(f"rates[{k}]", rate) for k, rate in enumerate(self.rates))
            object.__setattr__(self, "rates", rates)
        object.__setattr__(self, "momentum", float(self.momentum))
        object.__setattr__(self, "contraction", float(self.contraction))

    @property
    def in_theory(self) -> bool:
        """Whether the coefficients never decrease in k, as the proofs need."""
        return self.contraction == 1

    def rate(self, k: int) -> float:
        """$v_k$."""
        return 1.0 if self.rates is None else self.rates[k]

    def coefficients(self, steps: int) -> np.ndarray:
        r"""The weights $a^{(j)}(\tau)$ of the gradients in what $\tau$ local steps return, of shape (steps,)."""
        buffer, total = np.zeros((2, steps))
        for k in range(steps):
            buffer *= self.momentum
            buffer[k] = self.rate(k)
            total *= self.contraction
            total += buffer
        return total

    def mass(self, steps: int) -> float:
        r"""$\|a(\tau)\|_1$, the sum of the coefficients."""
        buffer = total = 0.0
        for k in range(steps):
            buffer = self.momentum * buffer + self.rate(k)
            total = self.contraction * total + buffer
        return total


SGDA = LocalOptimiser()


def heavy_ball(momentum: float) -> LocalOptimiser:
    r"""SGDA with momentum: $d_{k+1}=\rho d_k+G_k$ (Sharma et al. 2023, Appendix A.1).

    Example:
        >>> heavy_ball(0) == SGDA
        True
    """
    return LocalOptimiser(momentum=momentum)


def variable_rates(rates: Sequence[float]) -> LocalOptimiser:
    r"""SGDA whose k-th local step is $v_k$ times as long (Sharma et al. 2023, Appendix A.1, named without a formula).

    Example:
        >>> variable_rates([1, 0.5]).coefficients(2).tolist()
        [1.0, 0.5]
    """
    return LocalOptimiser(rates=tuple(rates))


def proximal(contraction: float) -> LocalOptimiser:
    r"""SGDA drawn back to the received model, $\alpha=1-\eta\lambda$ for the penalty $\frac\lambda2\|z-z_0\|^2$.

    Its first coefficients shrink while later steps are taken: outside the theory.

    Example:
        >>> proximal(0.5).coefficients(3).tolist()
        [0.25, 0.5, 1.0]
    """
    return LocalOptimiser(contraction=contraction)


@dataclass(frozen=True)
class FedNormSGDA:
    r"""Normalised averaging of clients that do different amounts of work; with a snapshot period, Fed-Norm-SGDA+.

    A round draws P of n clients without replacement. Client i takes $\tau_i$ local steps (see `LocalOptimiser`) on its
    gradients $G^x=\nabla_xf_i(x_k,y_k;\xi_k)$, $G^y=\nabla_yf_i(x_k,y_k;\xi_k)$, and

    $$g_i = \frac1{\|a_i\|_1}\sum_{k<\tau_i}a_i^{(k)}G_k, \qquad
      x^{(t+1)} = x^{(t)} - \tau_{\rm eff}\gamma_x\sum_{i\in\mathcal C}\frac{nw_i}Pg_{x,i}, \qquad
      y^{(t+1)} = y^{(t)} + \tau_{\rm eff}\gamma_y\sum_{i\in\mathcal C}\frac{nw_i}Pg_{y,i}.$$

    In Fed-Norm-SGDA+, $G^y=\nabla_yf_i(\hat x,y_k;\xi_k)$ with the same sample, at the $\hat x$ that was the model's x
    in the last round t divisible by S (and that every client knows). Averaging without normalisation has
    $w_i\propto p_i\|a_i\|_1$ and $\tau_{\rm eff}=\sum_ip_i\|a_i\|_1$: its objective is another than
    $\sum_ip_if_i$.

    Args:
        local_step_size: $\eta_x\ge0$, units x^2/f.
        local_ascent_step_size: $\eta_y\ge0$, units y^2/f.
        server_step_size: $\gamma_x>0$, units x^2/f.
        server_ascent_step_size: $\gamma_y>0$, units y^2/f.
        local_steps: $\tau_i\ge1$: one number, one for each client, or one for each round and client (T, n).
        weights: $w_i\ge0$, summing to one (of naive averaging, $p_i$); the problem's own $p_i$ if not given.
        participants: P, from 1 to n; all clients if not given.
        optimiser: of all clients, or one for each.
        effective_local_steps: $\tau_{\rm eff}>0$; if not given, $\sum_iw_i\|a_i\|_1$, of each round.
        snapshot_period: S; none for Fed-Norm-SGDA.
        normalised: False for naive averaging, whose $\tau_{\rm eff}$ cannot be chosen.

    Raises:
        FedboundsError: a number outside its domain, weights that do not sum to one, lists of different lengths.

    Example:
        >>> p = np.array([0.5, 0.5])
        >>> algorithm = FedNormSGDA(0.1, 0.1, 0.01, 0.1, local_steps=(2, 5))
        >>> algorithm.scales(0, p).tolist()
        [0.875, 0.35]
        >>> dataclasses.replace(algorithm, normalised=False).effective_weights(0, p).round(6).tolist()
        [0.285714, 0.714286]

    Source: Sharma et al. 2023, Algorithm 1 with eqs. (3) and (12); naive averaging: Section 4.1 and eq. (2).
    """

    kind: ClassVar[str] = "fed-norm-sgda"
    local_step_size: float
    local_ascent_step_size: float
    server_step_size: float
    server_ascent_step_size: float
    local_steps: Counts
    weights: tuple[float, ...] | None = None
    participants: int | None = None
    optimiser: LocalOptimiser | tuple[LocalOptimiser, ...] = SGDA
    effective_local_steps: float | None = None
    snapshot_period: int | None = None
    normalised: bool = True

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name in ("local_step_size", "local_ascent_step_size"):
            settle(name, check_number(name, getattr(self, name), low=0))
        for name in ("server_step_size", "server_ascent_step_size"):
            settle(name, check_positive(name, getattr(self, name)))
        settle("local_steps", _counts(self.local_steps))
        settle("normalised", check_flag("normalised", self.normalised))
        if self.weights is not None:
            settle("weights", _simplex("weights", self.weights))
        for name in ("participants", "snapshot_period"):
            if getattr(self, name) is not None:
                settle(name, check_count(name, getattr(self, name)))
        if self.effective_local_steps is not None:
            settle("effective_local_steps", check_positive("effective_local_steps", self.effective_local_steps))
            if not self.normalised:
                raise FedboundsError(
                    f"effective_local_steps = {quote(self.effective_local_steps)} cannot be chosen where averaging is "
                    "not normalised: there it is the mean of |a_i|_1"
                )
        _optimisers(self.optimiser)

    @property
    def in_theory(self) -> bool:
        r"""Whether a theorem can hold: coefficients that never decrease and that are the same in every round."""
        return all(one.in_theory for one in _optimisers(self.optimiser)) and np.ndim(self.local_steps) < 2

    def check(self, clients: int, rounds: int) -> None:
        """Whether it can run for T rounds on a problem of n clients.

        Raises:
            FedboundsError: P > n, lists of another number of clients or of too few rounds, an S that does not divide
                T, fewer local rates than local steps.
        """
        check_count("participants", self.participants or clients, high=clients, why="at most all clients")
        table = np.asarray(self.local_steps)
        optimisers = _optimisers(self.optimiser)
        for name, have in (
            ("local_steps", table.shape[-1] if table.ndim else clients),
            ("weights", clients if self.weights is None else len(self.weights)),
            ("optimisers", clients if isinstance(self.optimiser, LocalOptimiser) else len(optimisers)),
        ):
            if have != clients:
                raise FedboundsError(f"{name} are of {have} clients, the problem has {clients}")
        if table.ndim == 2 and len(table) < rounds:
            raise FedboundsError(f"local_steps are given for {len(table)} rounds, {rounds} were asked for")
        S = self.snapshot_period
        if S is not None and rounds % S:
            raise FedboundsError(f"snapshot_period = {S} must divide rounds = {rounds}")
        most = np.broadcast_to(table.reshape(-1, table.shape[-1] if table.ndim else 1).max(axis=0), clients)
        for i in range(clients):
            rates = self.optimiser_of(i).rates
            if rates is not None and len(rates) < most[i]:
                raise FedboundsError(f"client {i} has {len(rates)} rates for local_steps = {most[i]}")

    def optimiser_of(self, client: int) -> LocalOptimiser:
        """The optimiser of a client."""
        return self.optimiser if isinstance(self.optimiser, LocalOptimiser) else self.optimiser[client]

    def steps(self, t: int, clients: int) -> np.ndarray:
        r"""$\tau_i$ in round t, (n,)."""
        table = np.asarray(self.local_steps)
        return np.broadcast_to(table[t] if table.ndim == 2 else table, clients)

    def masses(self, t: int, clients: int) -> np.ndarray:
        r"""$\|a_i\|_1$ in round t, (n,)."""
        steps = self.steps(t, clients).tolist()
        return np.array([self.optimiser_of(i).mass(tau) for i, tau in enumerate(steps)])

    def scales(self, t: int, p: np.ndarray) -> np.ndarray:
        r"""$\tau_{\rm eff}w_i/\|a_i\|_1$ in round t, (n,), which is $p_i$ if averaging is naive: the server steps
        $\gamma\frac nP$ times it along $\sum_ka_i^{(k)}G_k$.

        Args:
            t: the round.
            p: the weights of the problem, (n,), which count where the algorithm has none of its own.
        """
        weights = p if self.weights is None else np.asarray(self.weights)
        if not self.normalised:
            return weights
        masses = self.masses(t, len(p))
        given = self.effective_local_steps
        return (weights @ masses if given is None else given) * weights / masses

    def effective_weights(self, t: int, p: np.ndarray) -> np.ndarray:
        r"""$w_i$ of the objective $\sum_iw_if_i$ that the server steps along in round t, (n,)."""
        pull = self.scales(t, p) * self.masses(t, len(p))
        return pull / pull.sum()

    def spec(self) -> dict[str, Any]:
        """What it is, as a JSON-able dictionary."""
        return {"kind": self.kind} | dataclasses.asdict(self)


def local_sgda(
    step_size: float,
    ascent_step_size: float,
    local_steps: Counts,
    *,
    weights: Sequence[float] | None = None,
    participants: int | None = None,
    momentum: float = 0.0,
    snapshot_period: int | None = None,
) -> FedNormSGDA:
    r"""Local SGDA and, with momentum or a snapshot period or both, its variants: the server averages the iterates.

    $$x^{(t+1)} = x^{(t)} + \sum_{i\in\mathcal C}\frac{np_i}P\big(x_i^{(\tau_i)}-x^{(t)}\big), \quad\text{y alike};$$

    the clients' step sizes are the server's. With momentum there is no update rule in the paper; it is naive averaging
    of heavy-ball steps here, with a buffer that starts every round at zero.

    Example:
        >>> local_sgda(0.1, 0.2, 5, momentum=0.9).optimiser == heavy_ball(0.9)
        True

    Source: Deng & Mahdavi 2021 (Local SGDA, Local SGDA+), Sharma et al. 2022 (with momentum), as Sharma et al. 2023,
    Section 4.1, describe them.
    """
    return FedNormSGDA(
        step_size,
        ascent_step_size,
        step_size,
        ascent_step_size,
        local_steps,
        weights=None if weights is None else tuple(weights),
        participants=participants,
        optimiser=heavy_ball(momentum),
        snapshot_period=snapshot_period,
        normalised=False,
    )


def synchronous_sgda(
    step_size: float,
    ascent_step_size: float,
    *,
    weights: Sequence[float] | None = None,
    participants: int | None = None,
) -> FedNormSGDA:
    r"""One gradient a round, $\tau_i\equiv1$: $x^{(t+1)}=x^{(t)}-\gamma_x\sum_{i\in\mathcal C}\frac{nw_i}PG^x_i$.

    Example:
        >>> synchronous_sgda(0.1, 0.2).scales(0, np.array([0.25, 0.75])).tolist()
        [0.25, 0.75]

    Source: Sharma et al. 2023, the case of one local step; with one client, Lin et al. 2020.
    """
    own = None if weights is None else tuple(weights)
    return FedNormSGDA(0.0, 0.0, step_size, ascent_step_size, 1, weights=own, participants=participants)


def fsgda(
    local_step_size: float,
    local_ascent_step_size: float,
    server_step_size: float,
    server_ascent_step_size: float,
    local_steps: int,
    *,
    clients: int,
    participants: int | None = None,
) -> FedNormSGDA:
    r"""FSGDA: equal clients, equally many plain local steps, and server steps of their own.

    $$x^{(t+1)} = x^{(t)} - \frac{\gamma_x}P\sum_{i\in\mathcal C}\sum_{k<\tau}G^x_{i,k}, \quad\text{y alike, upwards}$$

    Raises:
        FedboundsError: a number outside its domain; more than one number of local steps.

    Example:
        >>> fsgda(0.1, 0.1, 0.01, 0.02, 5, clients=2).scales(0, np.array([0.3, 0.7])).tolist()
        [0.5, 0.5]

    Source: Yang et al. 2022, which Sharma et al. 2023 name as the case of equal steps and optimisers, without a rule.
    """
    return FedNormSGDA(
        local_step_size,
        local_ascent_step_size,
        server_step_size,
        server_ascent_step_size,
        check_count("local_steps", local_steps),
        weights=(1 / check_count("clients", clients),) * int(clients),
        participants=participants,
    )


def _counts(value: Any) -> Counts:
    """Local steps as an int or as tuples of ints, of equal length."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        return check_count("local_steps", value)
    if not len(value):
        raise FedboundsError("local_steps is empty; give one number, one for each client, or one for each round too")
    if not any(isinstance(row, Sequence | np.ndarray) for row in value):
        return tuple(check_count(f"local_steps[{i}]", steps) for i, steps in enumerate(value))
    rows = []
    for t, row in enumerate(value):
        if (
            isinstance(row, str)
            or not isinstance(row, Sequence | np.ndarray)
            or len(row) != len(value[0])
            or not len(row)
        ):
            raise FedboundsError(f"local_steps[{t}] = {quote(row)} must be as many integers >= 1 as there are clients")
        rows.append(tuple(check_count(f"local_steps[{t}, {i}]", steps) for i, steps in enumerate(row)))
    return tuple(rows)


def _simplex(name: str, value: Any) -> tuple[float, ...]:
    """Weights >= 0 that sum to one."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or not len(value):
        raise FedboundsError(f"{name} = {quote(value)} must be a list of numbers >= 0 that sum to one")
    weights = tuple(check_number(f"{name}[{i}]", weight, low=0) for i, weight in enumerate(value))
    if abs(sum(weights) - 1) > SUM_TOLERANCE:
        raise FedboundsError(f"{name} sum to {sum(weights):.12g}, they must sum to one")
    return weights


def _optimisers(value: Any) -> tuple[LocalOptimiser, ...]:
    given = value if isinstance(value, tuple) else (value,)
    for one in given:
        if not isinstance(one, LocalOptimiser):
            raise FedboundsError(f"optimiser = {quote(one)} must be a LocalOptimiser, or a tuple of them")
    return given
