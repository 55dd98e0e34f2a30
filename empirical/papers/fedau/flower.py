"""FedAU as a server strategy of Flower's message API."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedbounds.bounds.inputs.checks import check_count, check_number
from fedbounds.empirical.monitoring.flower import ClientOf, Numbered, participating_replies
from fedbounds.empirical.papers.fedau.participation_weights import ParticipationWeights


class FedAU(FedAvg):
    r"""FedAvg whose clients are weighted by their mean participation interval so far, cut off at K.

    $$x_{t+1} = x_t + \frac\eta N\sum_{n\in S_t}\omega_t^n(y_t^n - x_t),$$

    with $S_t$ those whose replies to round t had no error, $y_t^n$ the arrays that they sent, and $\omega_t^n$ of
    `ParticipationWeights`. A client that is not asked counts as absent: ask all, as `fraction_train` does by default.
    Numbers of examples weight the metrics only; in the model all clients count the same.

    Args:
        clients: N, all that there are, present or not.
        cutoff: K, an integer of at least 1, or infinity.
        server_multiplier: $\eta > 0$.
        client_of: the name of a reply's client, if its node may change.
        options: those of Flower's FedAvg.

    Attributes:
        weights: of the coming round, by the number of the client in `numbers.places`.

    Raises:
        FedboundsError: a number outside its domain; in a round, more clients than there are.

    Source: Wang & Ji 2024, Algorithms 1 and 2.
    """

    def __init__(
        self,
        clients: int,
        *,
        cutoff: float = 50,
        server_multiplier: float = 1.0,
        client_of: ClientOf | None = None,
        **options: object,
    ) -> None:
        super().__init__(**options)
        self.numbers = Numbered(check_count("clients", clients), client_of)
        self.weights = ParticipationWeights(clients, cutoff)
        self.server_multiplier = check_number("server_multiplier", server_multiplier, 0)
        self.model: ArrayRecord | None = None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As FedAvg does; the model is remembered."""
        self.model = arrays
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add the weighted updates to the model; without participants it stays as it is."""
        everything = list(replies)
        _, metrics = super().aggregate_train(server_round, everything)  # refuses replies that do not agree
        came, present = participating_replies(everything), np.zeros(self.numbers.clients, bool)
        assert self.model is not None
        model = {key: array.numpy() for key, array in self.model.items()}
        steps = {key: np.zeros(array.shape) for key, array in model.items()}
        for reply in came:
            n = self.numbers(reply)
            present[n] = True
            share = self.server_multiplier * self.weights.weights[n] / self.numbers.clients
            for arrays in reply.content.array_records.values():
                for key, array in arrays.items():
                    steps[key] += share * (array.numpy().astype(float) - model[key])
        self.weights.update(present)
        if not came:
            return None, metrics
        return ArrayRecord({k: Array(np.asarray(x + steps[k]).astype(x.dtype)) for k, x in model.items()}), metrics
