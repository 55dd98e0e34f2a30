"""The base class of engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fedbounds.empirical.algorithms import Cohort, Pairs, RoundReport
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import GeneratorPool, Streams


class Engine(ABC):
    """A way to compute one round over all seeds; all engines compute the same.

    Args:
        problem: whose gradients are used.
        local: what each client computes: a `LocalSGD`, or a `LocalDescentAscent`.
        needs_updates: report the single updates too, not only their weighted sum.

    Attributes:
        label: its name, and how it agrees with the slow reference where not number by number.
        joins: whether it can take local steps of different sizes in one batch.
    """

    label: str
    joins: bool = False

    def __init__(self, problem: Problem, local: Any, needs_updates: bool = False) -> None:
        self.problem, self.local, self.needs_updates = problem, local, needs_updates
        self.pool = GeneratorPool()

    def tables(self, cohort: Cohort, t: int, streams: Sequence[Streams]) -> dict[str, np.ndarray] | None:
        """What a round needs besides the models, if it is planned ahead; None, the default, if it cannot be."""
        return None

    @abstractmethod
    def compute(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The weighted sums (seeds, d) and, if needed, the updates (pairs, d) of a cohort that is not empty."""

    def round(
        self,
        x: torch.Tensor,
        cohort: Cohort,
        t: int,
        streams: Sequence[Streams],
        correction: torch.Tensor | None = None,
    ) -> RoundReport:
        """The report to the server in round t: zero from an empty cohort.

        Args:
            x: what the clients receive, the models from which they start, shape (seeds, d), and maybe more; or each
                client a model of its own, (seeds, N, d), where nothing is maximized.
            cohort: who computes.
            t: the round, counted over all phases; the noise in its stream depends on it.
            streams: of each row of x.
            correction: what each pair adds to its gradients, (pairs, d), if the algorithm `corrects` them.
        """
        if len(cohort.clients):
            total, updates = self.compute(x, cohort, t, streams, correction)
        else:
            total, updates = (x.new_zeros(rows, self.problem.dimension) for rows in (len(x), 0))
        if updates is None or not self.needs_updates:
            return RoundReport(total, cohort)
        who = cohort.to_device(x.device)
        return RoundReport(total, cohort, Pairs(who.seeds, who.clients, who.weights.to(x.dtype), updates))
