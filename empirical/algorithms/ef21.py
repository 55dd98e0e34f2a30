"""EF21: gradient descent with error feedback for compressed gradients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch

from fedbounds.empirical.algorithms.algorithm import Checked, Fits, RoundReport
from fedbounds.empirical.algorithms.local import LocalGradient, check_positive
from fedbounds.empirical.algorithms.memory import ClientMemory, Stored
from fedbounds.empirical.algorithms.messages.compressors import TopK
from fedbounds.empirical.algorithms.messages.selection import largest


@dataclass(frozen=True)
class EF21(ClientMemory, Checked):
    r"""Gradient descent along a mean of vectors $g_n$, which follow the local gradients by compressed differences.

    $$g_n \leftarrow g_n + \mathcal C\big(\nabla F_n(x_t) - g_n\big) \text{ for } n\in S_t, \qquad
      x_{t+1} = x_t - \gamma\,\frac1N\sum_{n=1}^Ng_n,$$

    where $\mathcal C$ keeps the $k=\lceil\text{share}\cdot d\rceil$ entries of largest magnitude, of equal ones the
    first. All $g_n$ are zero at first, so that $g_n=\mathcal C(\nabla F_n(x_0))$ after round 0, as in the paper.
    Gradients are exact and there are no local steps. The paper has full participation; absent clients keep their
    $g_n$, and the model moves in an empty round too. With share = 1 and full participation it is gradient descent.
    Messages are counted as those of the compressor `TopK`. Holds N + 1 models and more.

    Args:
        step_size: $\gamma > 0$, units x^2/f.
        share: of the entries that are sent, in (0, 1].

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> EF21(0.1, share=0.25).codec.count(10)
        3

    Source: Richtarik, Sokolov & Fatkhullin 2021, Algorithm 2; partial participation: Fatkhullin et al. 2021, EF21-PP.
    """

    kind = "ef21"
    stored = "compressed gradients"
    own_weights = True
    checks: ClassVar = {**Checked.checks, "share": lambda name, value: TopK(check_positive(name, value)).share}
    step_size: float
    share: float

    @cached_property
    def codec(self) -> TopK:
        """The compressor of its messages."""
        return TopK(self.share)

    @property
    def local(self) -> LocalGradient:
        return LocalGradient(1.0, 1, oracle="full")

    def message_bytes(self, problem: Fits) -> int | None:
        return self.codec.message_bytes(problem.dimension)

    def server_update(self, state: Stored, t: int, report: RoundReport) -> Stored:
        assert report.pairs is not None
        who, count = report.pairs, self.codec.count(state.model.shape[-1])
        own = state.own[who.seeds, who.clients]
        difference = -who.updates - own
        if count < difference.shape[-1]:
            difference = torch.where(largest(difference, count), difference, 0.0)
        mean = state.mean + self.overwrite(state, report, own + difference) / state.own.shape[1]
        return Stored(state.model - self.step_size * mean.to(state.model.dtype), state.own, mean)
