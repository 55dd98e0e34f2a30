"""Local SGD: what a client computes between receiving the model and reporting its update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_number, is_number, quote

Oracle = Literal["stochastic", "full"]
Gradient = Callable[[torch.Tensor], torch.Tensor]  # at models (..., d), one for each client


def check_positive(name: str, value: object) -> float:
    """The value as a finite float > 0, or an error that quotes it with the legal range."""
    if is_number(value) and value == 0:
        raise FedboundsError(f"{name} = {quote(value)} must be a number in (0, inf)")
    return check_number(name, value, low=0)


@dataclass(frozen=True)
class LocalSGD:
    r"""I steps of SGD from the model the client received.

    $$y_{i+1} = y_i - \gamma\, g_n(y_i), \quad y_0 = x, \qquad \Delta_n = y_I - x;$$

    with `frozen=True` the gradients are all taken at the received model: $\Delta_n = -\gamma\sum_{i<I}
    g_n(x)$.

    Args:
        step_size: $\gamma > 0$, in units x^2/f.
        steps: $I \ge 1$.
        oracle: `"stochastic"` gradients, or the `"full"` local gradient (the client's whole data set).
        frozen: take every gradient at the received model.

    Attributes:
        plain: whether these are the steps above and nothing else, which have a closed form on quadratics.
        worded: whether a client draws numbers of its own in every round, all hashed out of one word.

    Raises:
        FedboundsError: a step size or number of steps outside its domain, an unknown oracle.

    Example:
        >>> local = LocalSGD(step_size=0.5, steps=2)
        >>> local.update(torch.tensor([8.0]), lambda y: y)
        tensor([-6.])
        >>> LocalSGD(step_size=0.5, steps=2, frozen=True).update(torch.tensor([8.0]), lambda y: y)
        tensor([-8.])

    Source: Wang & Ji 2022, Algorithm 1, lines 4 to 8.
    """

    plain: ClassVar[bool] = True
    worded: ClassVar[bool] = False
    step_size: float
    steps: int
    oracle: Oracle = "stochastic"
    frozen: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_size", check_positive("local_step_size", self.step_size))
        object.__setattr__(self, "steps", check_count("local_steps", self.steps))
        if self.oracle not in get_args(Oracle):
            raise unknown_name("oracle", str(self.oracle), get_args(Oracle))

    def sparing(self, uncompressed: int, statistics: int = 0) -> LocalSGD:
        """These steps where the last so many coordinates are sent in full precision: the same, unless they compress.

        Args:
            uncompressed: how many.
            statistics: how many of those, the last, are running statistics.
        """
        return self

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        """The updates $\\Delta_n$ of any number of clients at once, in the shape of x (..., d).

        Args:
            x: the model each client received.
            gradient: the oracle; called once per step, it may draw anew each time.
            words: of each client, (...), if they are `worded`.
        """
        y = x
        for _ in range(self.steps):
            y = torch.sub(y, gradient(x if self.frozen else y), alpha=self.step_size)
        return y - x

    def sized_update(self, x: torch.Tensor, gradient: Gradient, step_sizes: torch.Tensor) -> torch.Tensor:
        """The same with a step size of each client's own, (..., 1): every number is what it is with one for all."""
        y = x
        for _ in range(self.steps):
            y = torch.addcmul(y, gradient(x if self.frozen else y), step_sizes, value=-1)
        return y - x


@dataclass(frozen=True)
class LocalGradient(LocalSGD):
    """Minus one gradient at the received model; the algorithm chooses the step size."""

    plain: ClassVar[bool] = False

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        return -gradient(x)
