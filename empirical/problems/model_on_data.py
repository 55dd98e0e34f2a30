"""Anybody's model on anybody's data, as a federated problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.participation.constants import check_client_weights
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.problem import LowerBound, Problem
from fedbounds.empirical.problems.softmax import without_replacement

_CHUNK = 1024  # samples that are evaluated at once
_EACH = 2**20  # numbers in the gradients of single samples that are computed at once

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # (d,), (B, ...), (B, ...) -> (B,), of torch functions


class ModelOnData(Problem):
    r"""$f=\sum_np_nF_n$ with $F_n(x)=\frac1{m_n}\sum_j\ell(x;\xi_{n,j})$, for a loss and data of one's own.

    A stochastic gradient averages over `batch` samples of the client, drawn without replacement and afresh each time.
    With it goes what any problem has: simulation, `confront`, and the constants measured along a run.

    Metrics: `train_loss`, f, and `gradient_norm_squared`, $\|\nabla f\|^2$; with test samples `test_loss`, and
    `test_accuracy` of a module whose targets are classes.

    Args:
        loss: of samples at one flat parameter vector: `(d,)`, inputs `(B, ...)`, targets `(B, ...)` -> `(B,)`.
        data: inputs and targets of every client.
        start: $x_0$, `(d,)`.
        batch: samples of a stochastic gradient.
        lowest: a number that no loss falls below, if there is one: then the initial gap is at most $f(x_0)$ less it.
        client_weights: $p_n$, one positive number for each client, or "samples" for $m_n/\sum_im_i$.
        test: inputs and targets that belong to no client.

    Raises:
        FedboundsError: no client, a client without data, inputs and targets of different numbers, a loss that is not
            one number for each sample.

    Example:
        >>> points = [(torch.tensor([[1.0], [2.0]]), torch.tensor([2.0, 4.0])), (torch.ones(3, 1), torch.zeros(3))]
        >>> problem = ModelOnData(lambda x, a, b: (a @ x - b) ** 2, points, torch.zeros(1), batch=1, lowest=0.0)
        >>> problem.objective(torch.zeros(1)).item(), problem.gradient_variance(torch.zeros(1))[0].tolist()
        (5.0, [36.0, 0.0])
    """

    def __init__(
        self,
        loss: Loss,
        data: Sequence[tuple[Tensor, Tensor]],
        start: Tensor,
        batch: int = 16,
        lowest: float | None = None,
        client_weights: Any = None,
        test: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        sizes = [(len(inputs), len(targets)) for inputs, targets in data]
        if not sizes:
            raise FedboundsError("data is empty; give inputs and targets of at least one client")
        for n, (inputs, targets) in enumerate(sizes):
            if not inputs or inputs != targets:
                raise FedboundsError(
                    f"client {n} has {inputs} inputs and {targets} targets; give as many, at least one"
                )
        self.loss, self.data, self.start = loss, list(data), start.detach().clone()
        self.test, self._hits = test, None
        self._check_loss(max(range(len(sizes)), key=lambda n: sizes[n]))
        self.clients, self.dimension = len(sizes), int(start.numel())
        self.dtype, self.device = start.dtype, start.device
        self.sizes = np.array([inputs for inputs, _ in sizes])
        self.batch = min(check_count("batch", batch), int(self.sizes.max()))  # no client holds more
        self.steps_per_epoch = -(-self.sizes // self.batch)
        self.client_weights = check_client_weights(client_weights, self.clients, self.sizes)
        self.lower_bound = (
            None if lowest is None else LowerBound("train_loss", float(lowest), f"no loss is below {lowest:g}")
        )

    def _check_loss(self, client: int) -> None:
        """Refuse a loss that is not one number for each sample, as of a criterion that averages over them."""
        inputs, targets = (of_client[:2] for of_client in self.data[client])
        with torch.no_grad():
            found = self.loss(self.start, inputs, targets)
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        if shape != (len(inputs),):
            raise FedboundsError(
                f"the loss of {len(inputs)} samples has shape {shape}; expected ({len(inputs)},), one number for each "
                'sample: give the criterion reduction="none"'
            )

    _hits: Loss | None  # whether the class of each sample is found, (B,)

    @staticmethod
    def from_module(
        module: torch.nn.Module,
        criterion: Callable[[Tensor, Tensor], Tensor],
        data: Sequence[tuple[Tensor, Tensor]],
        batch: int = 16,
        lowest: float | None = None,
        client_weights: Any = None,
        test: tuple[Tensor, Tensor] | None = None,
    ) -> ModelOnData:
        """A torch module, from the parameters that it has, in evaluation mode: no dropout, fixed running statistics.

        Args:
            module: inputs -> outputs.
            criterion: outputs and targets to the loss of every sample, `(B,)`.
            data, batch, lowest, client_weights, test: as for the class.

        Example:
            >>> module = torch.nn.Linear(2, 3)
            >>> each = torch.nn.CrossEntropyLoss(reduction="none")
            >>> own = [(torch.ones(4, 2), torch.tensor([0, 1, 2, 0]))]
            >>> ModelOnData.from_module(module, each, own, lowest=0.0).dimension
            9
        """
        module.eval()
        shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
        fixed = dict(module.named_buffers())

        def outputs(x: Tensor, inputs: Tensor) -> Tensor:
            parts = x.split([shape.numel() for shape in shapes.values()])
            named = {name: part.view(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}
            return torch.func.functional_call(module, named | fixed, (inputs,))

        def loss(x: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
            return criterion(outputs(x, inputs), targets)

        start = torch.nn.utils.parameters_to_vector(module.parameters())
        problem = ModelOnData(loss, data, start, batch, lowest, client_weights, test)
        if test is not None and not test[1].is_floating_point():
            problem._hits = lambda x, inputs, classes: outputs(x, inputs).argmax(1) == classes
        return problem

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.start.clone()

    def _slope(self, x: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """The gradient of the mean loss at one point."""
        total = torch.zeros_like(x)
        for some, truth in zip(inputs.split(_CHUNK), targets.split(_CHUNK), strict=True):
            place = x.detach().requires_grad_()
            total += torch.autograd.grad(self.loss(place, some, truth).sum(), place)[0]
        return total / len(inputs)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        rows = zip(x.reshape(-1, self.dimension), clients.flatten().tolist(), strict=True)
        return torch.stack([self._slope(row, *self.data[n]) for row, n in rows]).view(x.shape)

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray:
        """Indices of the client's own samples, `(batch,)`; -1 in the places that a small client cannot fill."""
        size = int(self.sizes[client])
        drawn = rng.permutation(size)[: self.batch]
        return np.concatenate([drawn, np.full(self.batch - len(drawn), -1)])

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        if randomness is None:
            raise FedboundsError("a stochastic gradient of samples needs the indices that `draw` returns")
        rows = x.reshape(-1, self.dimension), clients.flatten().tolist(), randomness.view(-1, self.batch)
        slopes = []
        for row, n, indices in zip(*rows, strict=True):
            own = indices[indices >= 0]
            slopes.append(self._slope(row, *(part[own] for part in self.data[n])))
        return torch.stack(slopes).view(x.shape)

    @torch.no_grad()
    def objective(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.dimension)
        values = [self.client_mean(torch.stack([self.local_loss(row, n) for n in range(self.clients)])) for row in rows]
        return torch.stack(values).view(x.shape[:-1])

    def objective_gradient(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.dimension)
        slopes = [self.client_mean(torch.stack([self._slope(row, *own) for own in self.data])) for row in rows]
        return torch.stack(slopes).view(x.shape)

    def local_loss(self, x: Tensor, client: int) -> Tensor:
        return self.loss(x, *self.data[client]).mean()

    def gradient_variance(self, x: Tensor, blocks: Sequence[slice] = (slice(None),)) -> Tensor:
        single = torch.func.grad(lambda z, one, truth: self.loss(z, one[None], truth[None])[0])
        every = torch.func.vmap(single, (None, 0, 0), chunk_size=max(1, _EACH // self.dimension))
        found = torch.empty(len(blocks), self.clients, dtype=torch.float64)
        for n, own in enumerate(self.data):
            each = every(x, *own).double()
            away = each - each.mean(0)
            for place, block in enumerate(blocks):
                found[place, n] = away[:, block].square().sum(1).mean()
        return found * torch.from_numpy(without_replacement(self.sizes, self.batch))

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        found = {
            "train_loss": self.objective(x),
            "gradient_norm_squared": self.objective_gradient(x).square().sum(-1),
        }
        return found | {name: self._test_mean(x, each) for name, each in self._test_metrics().items()}

    def _test_metrics(self) -> dict[str, Loss]:
        """What is averaged over the test samples."""
        of_samples = {"test_loss": self.loss, "test_accuracy": self._hits} if self.test is not None else {}
        return {name: each for name, each in of_samples.items() if each is not None}

    @torch.no_grad()
    def _test_mean(self, x: Tensor, each: Loss) -> Tensor:
        """The mean over the test samples at the models `x` (seeds, d)."""
        assert self.test is not None
        chunks = [*zip(*(part.split(_CHUNK) for part in self.test), strict=True)]
        sums = [torch.stack([each(row, *some).double().sum() for some in chunks]).sum() for row in x]
        return torch.stack(sums) / len(self.test[1])

    def constants(self) -> dict[str, Constant | NoConstant]:
        """None for every x, but the number of clients: the loss is anybody's."""
        unknown = NoConstant("nothing is known of this loss at every x")
        names = ("smoothness", "strong_convexity", "initial_gap", "gradient_noise", "gradient_divergence_sup")
        found: dict[str, Constant | NoConstant] = dict.fromkeys((*names, "gradient_bound"), unknown)
        return found | {"clients": Constant(float(self.clients), "exact")}
