r"""FedPM, which FedMRN was compared with: weights stay as they were drawn, and clients learn which of them to keep.

Source: Isik, Pase, Gunduz, Weissman & Zorzi 2023, *Sparse Random Networks for Communication-Efficient Federated
Learning*; Li et al. 2024, Section 2, for the server's formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from fedbounds.bounds.inputs.checks import check_count, check_flag
from fedbounds.empirical.algorithms.algorithm import LocalSteps, RoundReport
from fedbounds.empirical.algorithms.local import Gradient, LocalSGD
from fedbounds.empirical.algorithms.messages.compressors import Bits
from fedbounds.empirical.papers.fedmrn.sending import Sending
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.runtime.counter_rng import UPLOAD, chances, words_from_uniforms
from fedbounds.empirical.runtime.streams import Streams


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


DOUBT = 0.01  # a bit 1 counts as 0.99 and a bit 0 as 0.01 to the server, so that no score is infinite


class Scored(NamedTuple):
    """Where a run is; the last coordinates of scores and model may be numbers that are averaged.

    Attributes:
        model: as it is evaluated, (seeds, d).
        scores, weights: (seeds, d).
        words: of which the server's masks are hashed, (seeds,).
    """

    model: torch.Tensor
    scores: torch.Tensor
    weights: torch.Tensor
    words: torch.Tensor


@dataclass(frozen=True)
class FedPM(Sending):
    r"""Federated probabilistic masks: frozen random weights w, of which clients learn which to keep; d bits.

    $$\theta_{r+1}=0.01+0.98\,\frac{\sum_{k\in\mathcal C}q_km_k}{\sum_{k\in\mathcal C}q_k},\qquad
      s_{r+1}=\sigma^{-1}(\theta_{r+1}),$$

    where $m_k$ is the mask that client k sends after `LocalScores` from $s_r$. The first scores are zero, so that half
    of the weights are kept. The model whose losses are recorded after a round is the mean $w\odot\theta$, or $w\odot m$
    with a mask of the server's, $m\sim\mathrm{Bernoulli}(\theta)$; before the first round it is the starting point.
    Weights that start at zero, as biases of most networks, stay zero. Batch normalization is trained and averaged as
    elsewhere.

    Args:
        local_step_size: $\eta > 0$ of scores.
        local_steps: $S \ge 1$.
        weight_scale: c > 0; w is c times the problem's starting point.
        other_step_size: of what belongs to batch normalization, units x^2/f.
        sampled: whether a random mask is evaluated instead of the mean, which does better.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedPM(1.0, 5).codec.message_bytes(8000)
        1016

    Source: Isik et al. 2023, Algorithm 1 with the prior Beta(1, 1) in every round, whose mode is the mean, and their
    public code, which counts bits as 0.01 and 0.99; there scores start at N(0, 1), weights at
    $\pm e/\sqrt{\text{fan-in}}$, and masks are sampled.
    """

    kind = "fedpm"
    checks: ClassVar = {
        **LocalSteps.checks,
        "sampled": check_flag,
        "whole": lambda name, value: check_count(name, value, low=0),
    }
    local_step_size: float
    local_steps: int
    weight_scale: float = 1.0
    other_step_size: float = 0.1
    sampled: bool = False

    @property
    def codec(self) -> Bits:
        return Bits()

    @property
    def local(self) -> LocalScores:
        return LocalScores(self.local_step_size, self.local_steps, other_step_size=self.other_step_size)

    def bind_problem(self, problem: Problem) -> ScoredMasks:
        own = {each.name: vars(self)[each.name] for each in fields(self)}
        return ScoredMasks(**own, whole=problem.uncompressed)


@dataclass(frozen=True)
class ScoredMasks(FedPM):
    """`FedPM` on a problem whose last `whole` coordinates are no weights to keep or not."""

    whole: int = 0

    def init(self, x0: torch.Tensor, clients: int) -> Scored:
        rest = slice(x0.shape[-1] - self.whole, None)
        scores, weights = torch.zeros_like(x0), self.weight_scale * x0
        scores[..., rest] = x0[..., rest]
        return Scored(x0, scores, weights, torch.zeros(len(x0), dtype=torch.int64, device=x0.device))

    def begin_round(self, state: Scored, t: int, overall: int, streams: Sequence[Streams]) -> Scored:
        if not self.sampled:
            return state
        drawn = words_from_uniforms(np.array([own.generator("masks", overall).random() for own in streams]))
        return state._replace(words=torch.from_numpy(drawn).to(state.words.device))

    def broadcast(self, state: Scored) -> torch.Tensor:
        return torch.cat([state.scores, state.weights], dim=-1)

    def server_update(self, state: Scored, t: int, report: RoundReport) -> Scored:
        received, rest = report.weighted_sum, slice(report.weighted_sum.shape[-1] - self.whole, None)
        who = report.cohort.to_device(received.device)
        total = received.new_zeros(len(received)).index_add(0, who.seeds, who.weights.to(received.dtype))[:, None]
        scores = torch.where(total > 0, torch.logit(DOUBT + (1 - 2 * DOUBT) * received / total), state.scores)
        scores[..., rest] = (state.scores + received)[..., rest]
        kept = torch.sigmoid(scores)
        if self.sampled:
            kept = chances(state.words, UPLOAD, scores.shape[-1], scores.dtype)[0] < kept
        model = state.weights * kept
        model[..., rest] = scores[..., rest]
        return Scored(torch.where(torch.isnan(scores), scores, model), scores, state.weights, state.words)
