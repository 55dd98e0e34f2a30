r"""Multinomial logistic regression: constants that hold for every x, from the samples alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class SoftmaxRegression:
    r"""Constants of $F_n(x)=\frac1{m_n}\sum_j\ell(x;\xi_j,y_j)$, the cross entropy of logits $W\tilde\xi$, at every x.

    The parameters are $x=W\in\mathbb R^{C\times D}$ with $\tilde\xi=(\xi,1)\in\mathbb R^D$. With probabilities $p$,

    $$\nabla\ell=(p-e_y)\tilde\xi^\top,\qquad\nabla^2\ell=(\mathrm{diag}(p)-pp^\top)\otimes\tilde\xi\tilde\xi^\top.$$

    - *Curvature.* $v^\top(\mathrm{diag}(p)-pp^\top)v$ is a variance, at most $(\max v-\min v)^2/4\le\frac12\|v\|^2$, so
      $0\preceq\nabla^2F_n\preceq\frac12I\otimes M_n$ with $M_n=\frac1{m_n}\sum_j\tilde\xi_j\tilde\xi_j^\top$, and
      $L_n=\frac12\lambda_{\max}(M_n)$, the supremum.
    - *Gradients.* $\|p-e_y\|^2\le2$, so $\|\nabla F_n\|\le\frac{\sqrt2}{m_n}\sum_j\|\tilde\xi_j\|$. For the matrices R
      of all $p_j-e_{y_j}$ and $\Xi$ of all $\tilde\xi_j$ also
      $\|\nabla F_n\|\le\frac1{m_n}\|R\|_F\|\Xi\|_2\le\sqrt{2\lambda_{\max}(M_n)}$. The smaller of the two is $b_n$.
    - *Noise.* The variance of a batch of B out of m samples without replacement is at most
      $\frac{m-B}{B(m-1)}\cdot\frac2m\sum_j\|\tilde\xi_j\|^2$.

    Source: Boehning, Multinomial logistic regression algorithm, 1992, bounds the same Hessian from above.
    """

    samples: Sequence[Tensor]  # $\tilde\xi$ without the last entry, `(m_n, D - 1)` of every client, float64
    client_weights: np.ndarray | None = None  # $p_n$ of f, `(clients,)`; 1/N each if not given

    @cached_property
    def _moments(self) -> np.ndarray:
        """M_n, (clients, D, D)."""
        lifted = [torch.cat([own, own.new_ones(len(own), 1)], dim=1) for own in self.samples]
        return np.stack([(own.T @ own / len(own)).numpy() for own in lifted])

    @cached_property
    def _largest_norm(self) -> np.ndarray:
        return np.linalg.eigvalsh(self._moments)[:, -1]

    @cached_property
    def _lengths(self) -> list[np.ndarray]:
        return [np.sqrt(own.square().sum(1).numpy() + 1) for own in self.samples]

    @property
    def smoothness(self) -> np.ndarray:
        """L_n of every client, (clients,)."""
        return self._largest_norm / 2

    @cached_property
    def gradients(self) -> np.ndarray:
        r"""$b_n\ge\sup_x\|\nabla F_n(x)\|$ of every client, (clients,)."""
        lengths = np.array([own.mean() for own in self._lengths])
        return np.minimum(2**0.5 * lengths, np.sqrt(2 * self._largest_norm))

    @property
    def gradient(self) -> float:
        r"""A bound of $\|\nabla f\|$: the mean of the $b_n$, or that of all samples with their weights in f."""
        together = float(np.linalg.eigvalsh(np.average(self._moments, axis=0, weights=self.client_weights))[-1])
        return min(float(np.average(self.gradients, weights=self.client_weights)), (2 * together) ** 0.5)

    @property
    def sample_gradient(self) -> float:
        """A bound of the gradient of every single sample, and so of every minibatch."""
        return 2**0.5 * float(max(own.max() for own in self._lengths))

    @property
    def divergence(self) -> float:
        r"""A bound of $\|\nabla F_n-\nabla f\|\le(1-p_n)b_n+\sum_{m\ne n}p_mb_m$ over all clients."""
        b = self.gradients
        p = 1 / len(b) if self.client_weights is None else self.client_weights
        return float(((1 - 2 * p) * b + np.average(b, weights=self.client_weights)).max())

    def noise(self, batch: int) -> np.ndarray:
        """A bound of the root of the variance of a minibatch gradient, of every client, (clients,)."""
        squares = np.array([(own**2).mean() for own in self._lengths])
        return np.sqrt(2 * squares * without_replacement([len(own) for own in self.samples], batch))


def without_replacement(sizes: Sequence[int] | np.ndarray, batch: int) -> np.ndarray:
    r"""$\frac{m-B}{B(m-1)}$: the variance of the mean of B out of m vectors over their mean squared distance."""
    m = np.asarray(sizes, dtype=float)
    B = np.minimum(batch, m)
    return (m - B) / (B * np.maximum(m - 1, 1))
