"""Participation in Flower: the client of a reply, and a wrapper that adds an account to any strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.monitoring.accountant import Name, ParticipationAccountant

ClientOf = Callable[[Message], Name]


def node(reply: Message) -> int:
    """The node of a reply, the default name of its client."""
    return reply.metadata.src_node_id


def participating_replies(replies: Iterable[Message]) -> list[Message]:
    """The replies without an error, those of participants."""
    return [reply for reply in replies if not reply.has_error()]


class Numbered:
    """At most N clients, numbered from 0 as they first appear; `client_of` names the client of a reply."""

    def __init__(self, clients: int, client_of: ClientOf | None = None) -> None:
        self.clients, self.client_of = clients, client_of or node
        self.places: dict[Name, int] = {}

    def __call__(self, reply: Message) -> int:
        """The number of a reply's client."""
        name = self.client_of(reply)
        if name not in self.places and len(self.places) == self.clients:
            raise FedboundsError(
                f"client {name!r} is one more than clients = {self.clients}; give the number of all clients"
            )
        return self.places.setdefault(name, len(self.places))


class Accounting(Strategy):
    """Any strategy, with an account of participation: of the clients whose replies to a training round had no error.

    Rounds are accounted before the strategy aggregates them, which it does as without the account.

    Args:
        strategy: the strategy.
        accountant: gets every round.
        client_of: the name of a reply's client in the accountant. By default nodes are numbered as they appear; a
            process that distinguishes clients, and a resumed account, need names.
        weighted_by_key: the metric by whose share the strategy weights clients; None for equal weights, as for FedAU.

    Raises:
        FedboundsError: a process that distinguishes clients, without `client_of`; in a round, a client or a weight that
            the accountant refuses, or replies without the metric.

    Source: Wang & Ji 2022, Section 3, with the weights that Flower's FedAvg gives.
    """

    def __init__(
        self,
        strategy: Strategy,
        accountant: ParticipationAccountant,
        *,
        client_of: ClientOf | None = None,
        weighted_by_key: str | None = "num-examples",
    ) -> None:
        process = accountant.declared.process
        if client_of is None and (accountant.rounds or (process is not None and not process.exchangeable)):
            why = "it is resumed" if accountant.rounds else "the process distinguishes clients"
            raise FedboundsError(f"the account needs client_of=, the name of a reply's client: {why}")
        numbers = Numbered(accountant.declared.clients)
        self.strategy, self.accountant, self.weighted_by_key = strategy, accountant, weighted_by_key
        self.client_of: ClientOf = client_of or (lambda reply: accountant.names[numbers(reply)])

    def summary(self) -> None:
        """That of the strategy."""
        self.strategy.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As the strategy does."""
        return self.strategy.configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add the round to the account, then as the strategy does."""
        everything = list(replies)
        participating = participating_replies(everything)
        weights = (
            None
            if self.weighted_by_key is None
            else [self._size(reply, self.weighted_by_key) for reply in participating]
        )
        total = sum(weights or ())
        self.accountant.add(map(self.client_of, participating), weights and [size / total for size in weights])
        return self.strategy.aggregate_train(server_round, everything)

    def _size(self, reply: Message, key: str) -> float:
        for metrics in reply.content.metric_records.values():
            if isinstance(size := metrics.get(key), int | float) and size > 0:
                return size
        raise FedboundsError(f"a reply has no positive metric {key!r}: name the one that weights clients, or None")

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As the strategy does."""
        return self.strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """As the strategy does."""
        return self.strategy.aggregate_evaluate(server_round, replies)
