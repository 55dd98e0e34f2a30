"""Algorithm 1 on plain games of NumPy arrays: the pseudo-code itself, and nothing of an engine."""

import numpy as np
import torch

from fedbounds.empirical.papers.fed_norm_sgda import pseudocode
from fedbounds.empirical.papers.fed_norm_sgda.games import Game


class _PlainOracle:
    """A plain game, of a free y and without noise, as the pseudo-code asks for a problem and random streams."""

    dtype = torch.float64
    constrained = False

    def __init__(self, game: Game) -> None:
        self._game = game

    def generator(self, name: str, t: int, i: int) -> None:
        """Nothing is random."""

    def draw(self, rng: None, i: int) -> None:
        """No sample."""

    def split(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x and y."""
        return z[: self._game.descent], z[self._game.descent :]

    def join(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """z."""
        return torch.cat([x, y])

    def project(self, y: torch.Tensor) -> torch.Tensor:
        """y is free."""
        return y

    def stochastic_gradient(self, z: torch.Tensor, client: torch.Tensor, sample: None) -> torch.Tensor:
        """The gradient of one client, (1, 1, d)."""
        x, y = self.split(z[0, 0])
        return torch.from_numpy(np.concatenate(self._game.gradient(int(client), x.numpy(), y.numpy())))[None, None]

    @property
    def clients(self) -> int:
        """n."""
        return self._game.clients


def fed_norm_sgda(
    game: Game,  # the clients
    cohorts: np.ndarray,  # who takes part, (T, P)
    *,
    weights: np.ndarray,  # $w_i$, (n,)
    local_steps: np.ndarray,  # $\tau_i$, (n,)
    local_step_sizes: tuple[float, float],  # $(\eta_x, \eta_y)$, unit x^2/f
    step_sizes: tuple[float, float],  # $(\Gamma_x, \Gamma_y)$, unit x^2/f; $\tau_{\rm eff}\gamma$ of the paper
    momentum: float = 0.0,  # $\rho$; the coefficients are $a^{(j)}(k) = 1 + \rho + \dots + \rho^{k-j-1}$
    period: int = 0,  # S, or 0 for no snapshots
    seed: int = 0,  # not used; nothing is random
) -> np.ndarray:
    """Algorithm 1 with the local map of eq. (12): every local iterate from the coefficients of all gradients so far.

    Source: Sharma et al. 2023, Algorithm 1, eqs. (3) and (12).
    """
    (T, P), n, asked = cohorts.shape, game.clients, _PlainOracle(game)
    q = np.zeros((T, n))
    q[np.arange(T)[:, None], cohorts] = 1 / P
    states = pseudocode.fed_norm_sgda(
        asked,  # type: ignore[arg-type]
        q,
        torch.from_numpy(np.concatenate([game.x0, game.y0])),
        asked,  # type: ignore[arg-type]
        tau=[[int(tau) for tau in local_steps]] * T,
        a=[pseudocode.any_optimizer(momentum, None, 1.0)] * n,
        w=[list(weights)] * T,
        tau_eff=[1.0] * T,
        eta_x=local_step_sizes[0],
        eta_y=local_step_sizes[1],
        gamma_x=step_sizes[0],
        gamma_y=step_sizes[1],
        S=period or None,
    )
    return torch.stack(states).numpy()
