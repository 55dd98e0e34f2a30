"""A weighted objective as a mean over clients: every client minimizes its function times its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.problem import Problem

_GROWING = ("smoothness", "gradient_noise", "client_gradient_bound", "stochastic_gradient_bound")


class ScaledObjectives(Problem):
    r"""$f=\frac1N\sum_nF_n'$ with $F_n'=Np_nF_n$: the weighted objective $\sum_np_nF_n$ of another problem, as a mean.

    The theorems about means hold for it as they are, with the constants of the $F_n'$. In a run client n then steps by
    $\gamma Np_n\nabla F_n$: this is an algorithm whose clients have step sizes of their own. An algorithm whose server
    weighs the updates of equal step sizes instead is a run on the problem itself.

    $L'=N\max_np_n\,L$, $\sigma'=N\max_np_n\,\sigma$ and the bounds of gradients likewise; f, its gap, its gradient and
    all metrics are those of the problem. $\nabla F_n'-\nabla f$ is bounded where the clients' gradients are.

    Args:
        problem: with `client_weights`.

    Raises:
        FedboundsError: a problem without them, or with running statistics.

    Example:
        >>> from fedbounds.empirical.problems.quadratics import Quadratic
        >>> scaled = ScaledObjectives(Quadratic([1.0], [[0.0], [4.0]], client_weights=[3, 1]))
        >>> scaled.constants()["smoothness"].value, scaled.objective(torch.ones(1)).item()
        (1.5, 1.5)

    Source: the reduction of weighted objectives to Wang & Ji 2022, eq. (1) ("absorbed in $F_n$").
    """

    def __init__(self, problem: Problem) -> None:
        if problem.client_weights is None:
            raise FedboundsError("the problem has no client_weights: without them its objective is a mean already")
        if problem.statistics or problem.ascends or problem.silos:
            raise FedboundsError("objectives are scaled of problems that are minimized, without running statistics")
        self.problem, self.clients, self.dimension = problem, problem.clients, problem.dimension
        self.dtype, self.device, self.data_checksum = problem.dtype, problem.device, problem.data_checksum
        self.faster_together, self.prefers_batched = problem.faster_together, problem.prefers_batched
        self.steps_per_epoch, self.lower_bound = problem.steps_per_epoch, problem.lower_bound
        self.uncompressed = problem.uncompressed
        self._factors = torch.from_numpy(self.clients * problem.client_weights).to(self.device)

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.problem.initial_point(rng)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.problem.gradient(x, clients) * self._factors[clients, None].to(x)

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray | None:
        return self.problem.draw(rng, client)

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray | None:
        return self.problem.draws(rng, client, steps)

    def draws_of_all(
        self, generators: Sequence[np.random.Generator], clients: Sequence[int], steps: int
    ) -> np.ndarray | None:
        return self.problem.draws_of_all(generators, clients, steps)

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        return self.problem.stochastic_gradient(x, clients, randomness) * self._factors[clients, None].to(x)

    def objective(self, x: Tensor) -> Tensor:
        return self.problem.objective(x)

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.problem.objective_gradient(x)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        return self.problem.metrics(x)

    def metrics_and_products(self, x: Tensor) -> dict[str, Tensor]:
        found = self.problem.metrics_and_products(x)
        if "gradient_products" in found:
            found["gradient_products"] *= torch.outer(self._factors, self._factors)
        return found

    def local_loss(self, x: Tensor, client: int) -> Tensor:
        return self.problem.local_loss(x, client) * float(self._factors[client])

    def gradient_variance(self, x: Tensor, blocks: Sequence[slice] = (slice(None),)) -> Tensor:
        return self.problem.gradient_variance(x, blocks) * self._factors.cpu() ** 2

    def constants(self) -> dict[str, Constant | NoConstant]:
        """Those of the scaled functions; of f those of the problem."""
        known, most = self.problem.constants(), float(self._factors.max())
        found = {name: _times(known[name], most, "max") for name in _GROWING if name in known}
        if "strong_convexity" in known:
            found["strong_convexity"] = _times(known["strong_convexity"], float(self._factors.min()), "min")
        found |= {name: known[name] for name in ("clients", "initial_gap", "gradient_bound") if name in known}
        each, whole = found.get("client_gradient_bound"), known.get("gradient_bound")
        divergence: Constant | NoConstant = NoConstant(
            "N p_n grad F_n - grad f is unbounded in x, as far as is known: the clients' gradients are not bounded"
        )
        if isinstance(each, Constant) and isinstance(whole, Constant):
            note = "upper bound: the bound of a scaled gradient plus that of grad f"
            divergence = Constant(float(each.value) + float(whole.value), "exact", note)
        return found | {"gradient_divergence_sup": divergence}


def _times(constant: Constant | NoConstant, factor: float, which: str) -> Constant | NoConstant:
    if isinstance(constant, NoConstant):
        return constant
    return Constant(factor * constant.value, constant.source, f"{which} N p_n = {factor:g} times: {constant.note}")
