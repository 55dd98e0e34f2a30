"""The rounds of a minimax algorithm on one flat vector $z=(x,y)$: descent in x, ascent in y."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.empirical.algorithms.algorithm import Algorithm, Fits, RoundReport
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local_optimizer import LocalOptimizer
from fedbounds.empirical.algorithms.workload import Workload
from fedbounds.empirical.problems.minimax import Minimax
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.runtime.streams import Streams


class DescentAscentRule(Protocol):
    r"""The numbers of a minimax algorithm with local steps of the clients and a server step along weighted sums.

    Attributes:
        local_step_size, local_ascent_step_size: $\eta_x,\eta_y\ge0$, units x^2/f and y^2/f.
        server_step_size, server_ascent_step_size: $\gamma_x,\gamma_y>0$, units x^2/f and y^2/f.
        optimizer: of all clients, or one for each.
        snapshot_period: in rounds; None if gradients in y are taken at the client's own x.
    """

    @property
    def local_step_size(self) -> float: ...
    @property
    def local_ascent_step_size(self) -> float: ...
    @property
    def server_step_size(self) -> float: ...
    @property
    def server_ascent_step_size(self) -> float: ...
    @property
    def optimizer(self) -> LocalOptimizer | tuple[LocalOptimizer, ...]: ...
    @property
    def snapshot_period(self) -> int | None: ...

    def check_rule(self, problem: Fits, rounds: int) -> None:
        """Whether the numbers are those of a problem and of T rounds."""
        ...

    def workload(self, problem: Fits) -> Workload:
        """The local steps of every client of a problem."""
        ...

    def optimizer_of(self, client: int) -> LocalOptimizer:
        """The optimizer of a client."""
        ...

    def scales(self, steps: np.ndarray, p: np.ndarray) -> np.ndarray:
        """By what the server multiplies a client's sum of gradients, beside its weight in the round, (..., n)."""
        ...

    def effective_weights(self, steps: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The clients' weights in the objective that is descended, which sum to one, (..., n)."""
        ...

    def spec(self) -> dict[str, Any]:
        """The dictionary from which the algorithm is made again."""
        ...


@dataclass(frozen=True)
class LocalDescentAscent:
    r"""The local steps of a minimax algorithm from (x, y), and from $\hat x$ if there are snapshots.

    $$x_k = x - \eta_xu^x_k, \quad y_k = y + \eta_yu^y_k, \qquad \text{returned: } u_\tau = \sum_{k<\tau}a^{(k)}G_k$$

    with u as in `LocalOptimizer`; with snapshots $G^y_k$ is taken at $(\hat x, y_k)$, with the sample of $G^x_k$. Where
    y is constrained, $y_{k+1}$ is the projection of $y_k+\eta_y(u^y_{k+1}-u^y_k)$; the returned u is not projected.

    Source: Sharma et al. 2023, eq. (12), which does not specify the projection.
    """

    step_size: float  # $\eta_x\ge0$, units x^2/f
    ascent_step_size: float  # $\eta_y\ge0$, units y^2/f
    optimizers: tuple[LocalOptimizer, ...]  # one for all clients, or one for each
    at_snapshot: bool = False  # whether gradients in y are taken at the snapshot of x


class MinimaxAlgorithm(Algorithm):
    """An algorithm for problems with a player that ascends: a `DescentAscentRule` with numbers of its own."""

    ascends = True

    @abstractmethod
    def rule(self, clients: int) -> DescentAscentRule:
        """The same algorithm as a `DescentAscentRule` for n clients."""

    def check(self, problem: Fits, rounds: int) -> None:
        super().check(problem, rounds)
        self.rule(problem.clients).check_rule(problem, rounds)

    def bind_problem(self, problem: Problem) -> DescentAscent:
        if not isinstance(problem, Minimax):
            raise self._no_problem_error()
        return DescentAscent(self.rule(problem.clients), problem)

    def most_local_steps(self, problem: Fits) -> int:
        return int(np.max(self.rule(problem.clients).workload(problem).most))

    @property
    def local(self) -> LocalDescentAscent:
        raise self._no_problem_error()

    def init(self, x0: Tensor, clients: int) -> MinimaxState:
        raise self._no_problem_error()

    def server_update(self, state: MinimaxState, t: int, report: RoundReport) -> MinimaxState:
        raise self._no_problem_error()

    def _no_problem_error(self) -> FedboundsError:
        return FedboundsError(f"{self.kind} has rounds only on a minimax problem: call bind_problem(problem)")


class MinimaxState(NamedTuple):
    r"""The state of a minimax algorithm."""

    model: Tensor  # z, (seeds, d)
    snapshot: Tensor  # $\hat x$, (seeds, d_x); (seeds, 0) without snapshots
    steps: Tensor  # $\tau_i$ of the round, (seeds, n), on the CPU; (seeds, 0) if they are the same for all seeds


class _Work(NamedTuple):
    r"""Of every client in a round: $\tau_i$, $n\tau_{\rm eff}w_i/\|a_i\|_1$ and $nw_i$, each (n,), or (seeds, n) where
    they differ; and whether all $w_i$ are equal."""

    steps: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    even: bool

    def place(self, drawn: Cohort) -> tuple[np.ndarray, ...]:
        """Where the pairs of a cohort are found."""
        return (drawn.clients,) if self.steps.ndim == 1 else (drawn.seeds, drawn.clients)


@dataclass(frozen=True, eq=False)
class DescentAscent(Algorithm):
    """A `DescentAscentRule` on a problem: with its weights, blocks, epochs and feasible set.

    The server projects y after its step, where it is constrained.
    """

    kind = "descent-ascent"
    ascends = True
    parameters: DescentAscentRule
    problem: Minimax

    @property
    def local(self) -> LocalDescentAscent:
        given, optimizer = self.parameters, self.parameters.optimizer
        optimizers = (optimizer,) if isinstance(optimizer, LocalOptimizer) else optimizer
        snapshots = given.snapshot_period is not None
        return LocalDescentAscent(given.local_step_size, given.local_ascent_step_size, optimizers, snapshots)

    def init(self, x0: Tensor, clients: int) -> MinimaxState:
        snapshot = x0[:, :0] if self.parameters.snapshot_period is None else self.problem.split(x0)[0]
        return MinimaxState(x0, snapshot, torch.zeros(len(x0), 0, dtype=torch.int64))

    def begin_round(self, state: MinimaxState, t: int, overall: int, streams: Sequence[Streams]) -> MinimaxState:
        """The local steps of this round, if they are drawn."""
        if self.workload.random:
            steps = self.workload.steps(t, overall, streams)
            state = state._replace(steps=torch.from_numpy(steps))
        return state

    def broadcast(self, state: MinimaxState) -> Tensor:
        r"""$(x, y)$, or $(x, y, \hat x)$ if there are snapshots: (seeds, d) or (seeds, d + d_x)."""
        if self.parameters.snapshot_period is None:
            return state.model
        return torch.cat([state.model, state.snapshot], 1)

    def cohort(self, state: MinimaxState, t: int, drawn: Cohort, clients: int) -> Cohort:
        r"""The drawn, with the weights of their sums, $nq_iw_i\tau_{\rm eff}/\|a_i\|_1$, and their local steps."""
        work = self._work(state, t)
        place = work.place(drawn)
        return Cohort(drawn.counts, drawn.clients, drawn.weights * work.scales[place], work.steps[place])

    def nominal(self, state: MinimaxState, t: int, drawn: Cohort) -> Cohort:
        """The drawn, with the weights $nq_iw_i$ that the theory takes to sum to one."""
        work = self._work(state, t)
        return drawn if work.even else drawn.with_weights(drawn.weights * work.weights[work.place(drawn)])

    def server_update(self, state: MinimaxState, t: int, report: RoundReport) -> MinimaxState:
        model = torch.addcmul(state.model, report.weighted_sum, self._server_step)
        if self.problem.constrained:
            x, y = self.problem.split(model)
            model = self.problem.join(x, self.problem.project(y))
        period = self.parameters.snapshot_period
        if period is not None and (t + 1) % period == 0:  # a new snapshot for every S-th round
            state = state._replace(snapshot=self.problem.split(model)[0])
        return state._replace(model=model)

    def spec(self) -> dict[str, Any]:
        return self.parameters.spec()

    @cached_property
    def workload(self) -> Workload:
        """The local steps of every client."""
        return self.parameters.workload(self.problem)

    def _work(self, state: MinimaxState, t: int) -> _Work:
        """What every client does in round t, and what it counts."""
        if self.workload.constant:
            return self._constant_work
        return self._weigh_steps(state.steps.numpy() if self.workload.random else self.workload.steps(t, t, ()))

    @cached_property
    def _constant_work(self) -> _Work:
        return self._weigh_steps(self.workload.steps(0, 0, ()))

    def _weigh_steps(self, steps: np.ndarray) -> _Work:
        p, clients = self._weights, self.problem.clients
        scales, weights = self.parameters.scales(steps, p), self.parameters.effective_weights(steps, p)
        even = bool(np.ptp(weights) <= SUM_TOLERANCE / clients)
        return _Work(steps, clients * scales, clients * weights, even)

    @cached_property
    def _weights(self) -> np.ndarray:
        """$p$, (clients,), where cohorts are."""
        return self.problem.weights.cpu().double().numpy()

    @cached_property
    def _server_step(self) -> Tensor:
        given = self.parameters
        return blocks(self.problem, -given.server_step_size, given.server_ascent_step_size)


def blocks(problem: Minimax, descent: float, ascent: float) -> Tensor:
    """One number for each coordinate of x, another for each of y, (d,)."""
    sizes = problem.descent_dimension, problem.ascent_dimension
    numbers = zip(sizes, (descent, ascent), strict=True)
    parts = [torch.full((size,), number, dtype=torch.float64) for size, number in numbers]
    return torch.cat(parts).to(problem.device, problem.dtype)
