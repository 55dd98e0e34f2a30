r"""What a client makes of its gradients: plain steps, momentum, rates that vary, contraction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import is_number, quote
from fedbounds.empirical.algorithms.local import check_positive


@dataclass(frozen=True)
class LocalOptimizer:
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

    def masses(self, steps: int) -> np.ndarray:
        r"""$\|a(\tau)\|_1$, the sum of the coefficients, for $\tau=0,1,\dots$ up to `steps`, (steps + 1,)."""
        sums, buffer = np.zeros(steps + 1), 0.0
        for k in range(steps):
            buffer = self.momentum * buffer + self.rate(k)
            sums[k + 1] = self.contraction * sums[k] + buffer
        return sums


SGDA = LocalOptimizer()


def heavy_ball(momentum: float) -> LocalOptimizer:
    r"""SGDA with momentum: $d_{k+1}=\rho d_k+G_k$ (Sharma et al. 2023, Appendix A.1).

    Example:
        >>> heavy_ball(0) == SGDA
        True
    """
    return LocalOptimizer(momentum=momentum)


def variable_rates(rates: Sequence[float]) -> LocalOptimizer:
    r"""SGDA whose k-th local step is $v_k$ times as long (Sharma et al. 2023, Appendix A.1, named without a formula).

    Example:
        >>> variable_rates([1, 0.5]).coefficients(2).tolist()
        [1.0, 0.5]
    """
    return LocalOptimizer(rates=tuple(rates))


def proximal(contraction: float) -> LocalOptimizer:
    r"""SGDA drawn back to the received model, $\alpha=1-\eta\lambda$ for the penalty $\frac\lambda2\|z-z_0\|^2$.

    Its first coefficients shrink while later steps are taken: outside the theory.

    Example:
        >>> proximal(0.5).coefficients(3).tolist()
        [0.25, 0.5, 1.0]
    """
    return LocalOptimizer(contraction=contraction)


def check_optimizers(value: object) -> LocalOptimizer | tuple[LocalOptimizer, ...]:
    """One optimizer for all clients, or one for each; each a `LocalOptimizer` or a table of its numbers."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value):
        return tuple(_optimizer(f"optimizer[{i}]", one) for i, one in enumerate(value))
    return _optimizer("optimizer", value)


def _optimizer(name: str, value: object) -> LocalOptimizer:
    if isinstance(value, LocalOptimizer):
        return value
    if not isinstance(value, Mapping):
        raise FedboundsError(f"{name} = {quote(value)} must be a LocalOptimizer, or a table like {{momentum: 0.9}}")
    names = [field.name for field in dataclasses.fields(LocalOptimizer)]
    for key in value:
        if key not in names:
            raise unknown_name(f"key of {name}", str(key), names)
    return LocalOptimizer(**value)
