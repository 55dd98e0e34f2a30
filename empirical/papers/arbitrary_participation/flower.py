"""Generalized FedAvg, whose progress is amplified once an interval, as a server strategy of Flower's message API."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedbounds.bounds.inputs.checks import check_count, check_number


class GeneralizedFedAvg(FedAvg):
    r"""Flower's FedAvg, whose progress over every P rounds is multiplied by $\eta$.

    $$x_{t+1}=\sum_nq_t^ny_t^n,\qquad\text{then}\qquad x_{t_0+P}\leftarrow x_{t_0}+\eta(x_{t_0+P}-x_{t_0})$$

    at the end of every interval, which begins at $t_0=0,P,2P,\dots$ (Flower counts rounds from 1). The weights $q_t^n$
    are those of Flower: shares of `weighted_by_key` among those whose replies had no error. A round without
    participants leaves the model as it is, and is a round of the interval.

    Args:
        interval: P.
        server_multiplier: $\eta > 0$.
        options: those of Flower's FedAvg.

    Raises:
        FedboundsError: a number outside its domain.

    Source: Wang & Ji 2022, Algorithm 1.
    """

    def __init__(self, interval: int, server_multiplier: float, **options: object) -> None:
        super().__init__(**options)
        self.interval = check_count("interval", interval)
        self.server_multiplier = check_number("server_multiplier", server_multiplier, 0)
        self.model: ArrayRecord | None = None
        self.anchor: ArrayRecord | None = None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As FedAvg does; the model, and where the interval began, are remembered."""
        self.model = arrays
        if self.anchor is None or (server_round - 1) % self.interval == 0:
            self.anchor = arrays
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """As FedAvg does, and at the end of an interval amplified."""
        arrays, metrics = super().aggregate_train(server_round, replies)
        if server_round % self.interval:
            return arrays, metrics
        assert self.model is not None and self.anchor is not None
        reached = self.model if arrays is None else arrays
        amplified = {}
        for key, array in reached.items():
            x, began = array.numpy(), self.anchor[key].numpy().astype(float)
            amplified[key] = Array(np.asarray(began + self.server_multiplier * (x - began)).astype(x.dtype))
        return ArrayRecord(amplified), metrics
