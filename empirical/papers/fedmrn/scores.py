"""Local steps on scores, the chances with which frozen weights are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from fedbounds.empirical.algorithms.local import Gradient, LocalSGD
from fedbounds.empirical.runtime.counter_rng import UPLOAD, chances


@dataclass(frozen=True)
class LocalScores(LocalSGD):
    r"""Local steps on scores: gradients are taken at the weights that random masks leave.

    $$s_{\tau+1}=s_\tau-\eta\,\nabla F_k(w\odot m_\tau)\odot w\odot\sigma'(s_\tau),\qquad
      m_\tau\sim\mathrm{Bernoulli}(\sigma(s_\tau)),\qquad\sigma(s)=\frac1{1+e^{-s}};$$

    masks count as the identity in derivatives. In place of an update it returns a mask of $s_{S+1}$.

    Args:
        step_size, steps: of the local steps.
        other_step_size: of coordinates that are no scores: they take plain steps, and their updates are returned.
        whole: how many those are, the last.
        statistics: how many of them, the last, are running statistics.
    """

    plain: ClassVar[bool] = False
    worded: ClassVar[bool] = True
    other_step_size: float = 0.1
    whole: int = 0
    statistics: int = 0

    def sparing(self, uncompressed: int, statistics: int = 0) -> LocalScores:
        return replace(self, whole=uncompressed, statistics=statistics)

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        """Masks and updates (..., d)."""
        assert words is not None
        start, w = x.chunk(2, dim=-1)
        d = w.shape[-1]
        s, rest = start, slice(d - self.whole, None)
        for step in range(1, self.steps + 1):
            theta = torch.sigmoid(s)
            point = w * (chances(words, UPLOAD + step, d, s.dtype)[0] < theta)
            point[..., rest] = s[..., rest]
            slope = gradient(point)
            factor = w * theta * (1 - theta)
            factor[..., rest] = self.other_step_size / self.step_size
            factor[..., d - self.statistics :] = 1
            s = torch.sub(s, slope * factor, alpha=self.step_size)
        sent = (chances(words, UPLOAD, d, s.dtype)[0] < torch.sigmoid(s)).to(s.dtype)
        sent[..., rest] = (s - start)[..., rest].float().to(s.dtype)
        return torch.where(torch.isnan(s), s, sent)  # masks of nothing would hide a divergence
