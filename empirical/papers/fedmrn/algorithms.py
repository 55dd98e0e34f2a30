r"""FedMRN and what it was compared with: Li et al., "Masked Random Noise for Communication-Efficient Federated
Learning", ACM MM 2024: Algorithm 1, Section 5 and the ablation.

Clients send messages, and the server decodes them. With weights 1/K of K clients drawn without
replacement the model moves by the mean of it; other weights are applied as given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np
import torch

from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag
from fedbounds.empirical.algorithms.algorithm import LocalSteps, RoundReport
from fedbounds.empirical.algorithms.local import Gradient, LocalSGD, check_positive
from fedbounds.empirical.algorithms.messages.compressor import Compressor
from fedbounds.empirical.algorithms.messages.compressors import COMPRESSORS, Bits, TopK, compressor_from_spec
from fedbounds.empirical.algorithms.messages.noise import Law
from fedbounds.empirical.algorithms.messages.selection import largest
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise, Masks, chosen, clipped
from fedbounds.empirical.papers.fedmrn.sending import LocalCompressed, Sending
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.runtime.counter_rng import UPLOAD, chances, words_from_uniforms
from fedbounds.empirical.runtime.kinds import Registry
from fedbounds.empirical.runtime.streams import Streams


@dataclass(frozen=True)
class LocalScores(LocalSGD):
    r"""Local steps on scores: gradients are taken at the weights that random masks leave.

    $$s_{\tau+1}=s_\tau-\eta\,\nabla F_k(w\odot m_\tau)\odot w\odot\sigma'(s_\tau),\qquad
      m_\tau\sim\mathrm{Bernoulli}(\sigma(s_\tau)),\qquad\sigma(s)=\frac1{1+e^{-s}};$$

    masks count as the identity in derivatives. In place of an update it returns a mask of $s_{S+1}$.
    """

    plain: ClassVar[bool] = False
    worded: ClassVar[bool] = True
    # of coordinates that are no scores: they take plain steps, and their updates are returned
    other_step_size: float = 0.1
    whole: int = 0  # how many those are, the last
    statistics: int = 0  # how many of them, the last, are running statistics

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
    """Where a run is; the last coordinates of scores and model may be numbers that are averaged."""

    model: torch.Tensor  # as it is evaluated, (seeds, d)
    scores: torch.Tensor  # scores, weights: (seeds, d)
    weights: torch.Tensor
    words: torch.Tensor  # of which the server's masks are hashed, (seeds,)


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


@dataclass(frozen=True)
class LocalPruning(LocalSGD):
    r"""Local steps after each of which fewer of the *weights* are kept, those of largest magnitude.

    After step $\tau$ of S a share $1-(1-\text{share})\tau/S$ is left, so that in the end `share` is.
    """

    plain: ClassVar[bool] = False
    codec: TopK = field(default_factory=TopK)  # the share that is kept in the end, and the message
    whole: int = 0  # how many weights, the last, are never pruned

    def sparing(self, uncompressed: int, statistics: int = 0) -> LocalPruning:
        return replace(self, whole=uncompressed)

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        y, size = x, x.shape[-1] - self.whole
        for step in range(1, self.steps + 1):
            y = torch.sub(y, gradient(y), alpha=self.step_size)
            share = 1 - (1 - self.codec.share) * step / self.steps
            count = self.codec.count(size) if step == self.steps else max(self.codec.count(size), round(share * size))
            if count < size:
                some = y[..., :size]
                pruned = torch.where(largest(some, count), some, torch.zeros_like(some))
                y = torch.cat([pruned, y[..., size:]], -1) if self.whole else pruned
        return y.float().to(x.dtype) - x  # messages hold float32


KINDS = Registry("compressor", COMPRESSORS.builders() | {MaskedNoise.kind: (MaskedNoise,)})


@dataclass(frozen=True)
class LocalMasking(LocalSGD):
    r"""Local steps that look for bits: gradients are taken where the masked noise will be, and move what is masked.

    $$u_{\tau+1}=u_\tau-\eta\,\nabla F_k(w+\hat u_\tau),\qquad
      \hat u_\tau=(1-P_\tau)\odot\bar u_\tau+P_\tau\odot n\odot m_\tau,\qquad P_\tau\sim\mathrm{Bernoulli}(\tau/S),$$

    for $\tau=1,\dots,S$ from $u_1=0$, with random masks $m_\tau$ of $u_\tau$ and $\bar u$ the update cut off at the
    noise n. What is sent is $n\odot m$ with a mask of $u_{S+1}$; u itself is never cut off. Masks and clipping count as
    the identity in derivatives.

    Source: Li et al. 2024, Algorithm 1 (client), eqs. (6) to (10); the parts are those of the ablation, Figure 4.
    """

    plain: ClassVar[bool] = False
    worded: ClassVar[bool] = True
    masks: MaskedNoise = field(default_factory=MaskedNoise)  # which masks, of which noise
    # random masks; otherwise $m=1$ where u and n have the same sign, in training and in what is sent
    stochastic: bool = True
    progressive: bool = True  # P as above; otherwise P = 1
    whole: int = 0  # how many coordinates, the last, take plain steps and are sent in float32

    def sparing(self, uncompressed: int, statistics: int = 0) -> LocalMasking:
        return replace(self, whole=uncompressed) if uncompressed else self

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        assert words is not None
        n = self.masks.source.of(words, x.shape[-1]).to(x.dtype)
        u = torch.zeros_like(x)
        for step in range(1, self.steps + 1):
            point = x + self.spared(self.tried(u, n, words, step), u)
            u = torch.sub(u, gradient(point), alpha=self.step_size)
        chance, _ = chances(words, UPLOAD, x.shape[-1], x.dtype)
        found = torch.where(torch.isnan(u), u, self.masked(u, n, chance))  # masks of nothing would hide a divergence
        return self.spared(found, u.float().to(x.dtype))

    def spared(self, found: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """What was found for u, and u itself where nothing is compressed."""
        if self.whole:
            found[..., -self.whole :] = u[..., -self.whole :]
        return found

    def tried(self, u: torch.Tensor, n: torch.Tensor, words: torch.Tensor, step: int) -> torch.Tensor:
        r"""$\hat u_\tau$."""
        whole = step == self.steps or not self.progressive
        if whole and not self.stochastic:
            return self.masked(u, n, u)
        chance, coin = chances(words, UPLOAD + step, u.shape[-1], u.dtype)
        found = self.masked(u, n, chance)
        if whole:
            return found
        share = (coin < step / self.steps).to(u.dtype)  # products are exact, and faster than torch.where of coins
        return found.mul_(share).addcmul_(1 - share, clipped(u, n, self.masks.masks))

    def masked(self, u: torch.Tensor, n: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
        r"""$n\odot m$."""
        ones = chosen(u, n, chance, self.masks.masks) if self.stochastic else torch.where(n > 0, u > 0, u < 0)
        return n * (ones if self.masks.masks == "binary" else 2 * ones.to(n.dtype) - 1)


@dataclass(frozen=True)
class FedMRN(Sending):
    r"""FedAvg in which a client's update is masked random noise: d bits and a seed.

    $$w_{r+1}=w_r+\frac{\sum_{k\in\mathcal C}p_k\,\mathcal G(s_k)\odot m_k}{\sum_{k\in\mathcal C}p_k}$$

    Args:
        local_step_size: $\eta > 0$, units x^2/f.
        local_steps: $S \ge 1$.
        amplitude: $\alpha > 0$ of the noise, units x; 0.01 for binary and 0.005 for signed masks in the paper.
        law: `"uniform"`, `"gaussian"` or `"bernoulli"` noise.
        masks: `"binary"` (FedMRN in the paper's tables) or `"signed"` (FedMRNS).
        stochastic: random masks; otherwise those of the signs ("w.o. SM").
        progressive: masks come in with probability $\tau/S$ in local step $\tau$; otherwise always ("w.o. PM").

    Raises:
        FedboundsError: a number outside its domain, an unknown law or mask.

    Example:
        >>> from fedbounds.empirical.participation import WithoutReplacement
        >>> from fedbounds.empirical.problems import random_quadratic
        >>> from fedbounds.empirical.simulation.simulate import simulate
        >>> run = simulate(FedMRN(0.1, 5, amplitude=0.02), random_quadratic(8, 3), WithoutReplacement(8, 4), 50)
        >>> run.engine, FedMRN(0.1, 5, amplitude=0.02).codec.message_bytes(10**6)
        ('batched', 125024)

    Source: Li et al. 2024, Algorithm 1 and eq. (5); the ablation's parts from its Figure 4.
    """

    kind = "fedmrn"
    checks: ClassVar = {
        **LocalSteps.checks,
        "law": partial(check_choice, known=get_args(Law)),
        "masks": partial(check_choice, known=get_args(Masks)),
        "stochastic": check_flag,
        "progressive": check_flag,
    }
    local_step_size: float
    local_steps: int
    amplitude: float
    law: Law = "uniform"
    masks: Masks = "signed"
    stochastic: bool = True
    progressive: bool = True

    @cached_property
    def codec(self) -> MaskedNoise:
        return MaskedNoise(self.law, self.amplitude, self.masks)

    @property
    def local(self) -> LocalMasking:
        return LocalMasking(self.local_step_size, self.local_steps, masks=self.codec, stochastic=self.stochastic,
                            progressive=self.progressive)  # fmt: skip


@dataclass(frozen=True)
class Compressed(Sending):
    r"""FedAvg whose clients compress their updates after the local steps: $w_{r+1}=w_r+\sum_kq_k\mathcal S(u_k)$.

    Args:
        local_step_size: $\eta > 0$, units x^2/f.
        local_steps: $S \ge 1$.
        compressor: one of `fedbounds.empirical.algorithms.messages`, or `MaskedNoise` ("FedAvg w. SM"), or its table.

    Raises:
        FedboundsError: a number outside its domain, an unknown compressor.

    Example:
        >>> Compressed(0.1, 5, {"kind": "terngrad"}).spec()["compressor"]
        {'kind': 'terngrad'}

    Source: Li et al. 2024, Section 5.1, the baselines SignSGD, Top-k, TernGrad, DRIVE and EDEN; Figure 4.
    """

    kind = "compressed"
    checks: ClassVar = {**LocalSteps.checks, "compressor": lambda name, value: compressor_from_spec(value, KINDS)}
    local_step_size: float
    local_steps: int
    compressor: Compressor | Mapping[str, Any]

    @property
    def codec(self) -> Compressor:
        return compressor_from_spec(self.compressor, KINDS)

    @property
    def local(self) -> LocalCompressed:
        return LocalCompressed(self.local_step_size, self.local_steps, compressor=self.codec)

    def spec(self) -> dict[str, Any]:
        steps = {"local_step_size": self.local_step_size, "local_steps": self.local_steps}
        return {"kind": self.kind} | steps | {"compressor": self.codec.spec()}


@dataclass(frozen=True)
class FedSparsify(Sending):
    r"""FedAvg whose clients prune their weights while they train, and send what is left: positions and numbers.

    $$w_{r+1}=w_r+\sum_kq_k(\mathrm{top}_k(w_r+u_k)-w_r),$$

    the mean of the pruned models, if the weights sum to one. The paper has no formula; here a client keeps fewer
    weights after each local step.

    Args:
        local_step_size: $\eta > 0$, units x^2/f.
        local_steps: $S \ge 1$.
        share: of the weights that are left, in (0, 1]; 0.03 in the paper.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedSparsify(0.1, 5).codec.count(1000)
        30

    Source: Li et al. 2024, Section 5.1 (in words); Stripelis et al. 2022, *Federated progressive sparsification*.
    """

    kind = "fedsparsify"
    checks: ClassVar = {**LocalSteps.checks, "share": lambda name, value: TopK(check_positive(name, value)).share}
    local_step_size: float
    local_steps: int
    share: float = 0.03

    @cached_property
    def codec(self) -> TopK:
        return TopK(self.share)

    @property
    def local(self) -> LocalPruning:
        return LocalPruning(self.local_step_size, self.local_steps, codec=self.codec)


ALGORITHMS = (FedMRN, Compressed, FedSparsify, FedPM, AnalyzedFedMRN)
