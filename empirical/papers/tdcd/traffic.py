r"""What a round of TDCD sends: floats, sample IDs and bytes over each kind of link, as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag, check_number
from fedbounds.empirical.algorithms.algorithm import Fits
from fedbounds.empirical.algorithms.messages.envelope import OVERHEAD
from fedbounds.empirical.algorithms.tiers import TieredAlgorithm
from fedbounds.empirical.problems.vertical import check_counts

Link = Literal["hub to client", "client to hub", "hub to hub"]
LINKS: tuple[Link, ...] = ("hub to client", "client to hub", "hub to hub")
ID_BYTES = 4


@dataclass(frozen=True)
class Sent:
    """Messages of one kind over links of one class, in one round."""

    link: Link  # between whom
    what: str  # they hold
    messages: int  # how many
    floats: int  # floats, ids: in all of them together
    ids: int = 0


@dataclass(frozen=True)
class Traffic:
    r"""What one round sends, all silos and clients together; prints as a table.

    With $K=\sum_jK_j$ clients, of which each silo's have $d_j$ parameters, a batch of B samples and embeddings of E
    numbers, the round of Algorithm 1 sends

    $$\underbrace{\sum_jK_jd_j+NBE}_\text{hub to client},\qquad\underbrace{NBE+\sum_jK_jd_j}_\text{client to hub},\qquad
      \underbrace{N(N-1)BE}_\text{hub to hub}$$

    numbers, however many local steps it has; and KB sample IDs down, and, as embeddings are keyed by them, NB up.

    Args:
        kinds: the kinds of messages.
        number_bytes: of a float on the wire.

    Example:
        >>> from fedbounds.empirical.papers.tdcd.traffic import round_traffic
        >>> print(round_traffic([100, 60], silo_clients=[2, 3], batch_size=32, embedding_size=10))
        link           what         messages    floats      ids     bytes
        hub to client  model               5       380      160     2,240
        client to hub  embeddings          5       640       64     2,896
        hub to hub     embeddings          2       640        0     2,592
        hub to client  others              5       640        0     2,640
        client to hub  model               5       380        0     1,600
        all                               22     2,680      224    11,968

    Source: Das et al. 2022, Algorithm 1, lines 10 to 22 and 31, and Remark 2; the count is ours.
    """

    kinds: tuple[Sent, ...]
    number_bytes: int = 4

    @classmethod
    def of(
        cls, problem: Fits, algorithm: TieredAlgorithm, *, whole_sum: bool = False, number_bytes: int = 4
    ) -> Traffic:
        """Of one round of an algorithm on a problem whose silos exchange embeddings.

        Args:
            problem, algorithm: see there.
            whole_sum: whether clients get the others' sum for the whole batch and find their own rows in it.
            number_bytes: of a float on the wire.

        Raises:
            FedboundsError: the problem has no embeddings: the messages of its silos are not specified.
        """
        if problem.silo_sizes is None:
            raise FedboundsError(f"{type(problem).__name__} has no embeddings, so that its messages are not specified")
        return round_traffic(
            *problem.silo_sizes, derivative_exchanges=algorithm.derivative_exchanges, whole_sum=whole_sum,
            number_bytes=number_bytes,
        )  # fmt: skip

    def of_kind(self, sent: Sent) -> int:
        """The bytes of the messages of one kind, their envelopes included."""
        return sent.messages * OVERHEAD + sent.floats * self.number_bytes + sent.ids * ID_BYTES

    def bytes(self, *links: Link) -> int:
        """Over links of these classes; over all, if none is named.

        Raises:
            FedboundsError: an unknown class of links.

        Example:
            >>> round_traffic([2, 2], [1, 1], 4, 1).bytes("hub to hub")
            64
        """
        return sum(self.of_kind(sent) for sent in self._over(links))

    def floats(self, *links: Link) -> int:
        """Numbers over links of these classes; over all, if none is named."""
        return sum(sent.floats for sent in self._over(links))

    @property
    def uplink_bytes(self) -> int:
        """What clients send to their hubs, and hubs to each other."""
        return self.bytes("client to hub", "hub to hub")

    def _over(self, links: Sequence[Link]) -> list[Sent]:
        for link in links:
            check_choice("link", link, LINKS)
        return [sent for sent in self.kinds if not links or sent.link in links]

    def __str__(self) -> str:
        head = f"{'link':14s} {'what':12s} {'messages':>8s} {'floats':>9s} {'ids':>8s} {'bytes':>9s}"
        rows = [(s.link, s.what, s.messages, s.floats, s.ids, self.of_kind(s)) for s in self.kinds]
        rows.append(("all", "", *(sum(column) for column in list(zip(*rows, strict=True))[2:])))  # type: ignore[arg-type]
        return "\n".join([head, *(f"{a:14s} {b:12s} {m:8,} {f:9,} {i:8,} {s:9,}" for a, b, m, f, i, s in rows)])


def round_traffic(
    parameters: Sequence[int],
    silo_clients: Sequence[int],
    batch_size: int,
    embedding_size: int,
    *,
    derivative_exchanges: int = 0,
    label_silo: int = 0,
    whole_sum: bool = False,
    number_bytes: int = 4,
) -> Traffic:
    r"""What a round sends, from sizes alone.

    Args:
        parameters: $d_j$, of every silo.
        silo_clients: $K_j$.
        batch_size: B.
        embedding_size: E, the numbers of one sample's embedding.
        derivative_exchanges: how often in a round the one silo with the labels returns derivatives; 0 if all have them.
        label_silo: which one that is.
        whole_sum: whether clients get the others' sum for the whole batch and find their own rows in it.
        number_bytes: of a float on the wire, 4 or 8.

    Raises:
        FedboundsError: a number outside its domain, lists of different lengths.

    Example:
        >>> rounds = [round_traffic([100, 60], [2, 3], 32, 10, derivative_exchanges=x) for x in (0, 1, 5)]
        >>> [traffic.floats() for traffic in rounds]
        [2680, 3000, 10680]

    Source: Das et al. 2022, Algorithm 1 and Remark 2.
    """
    d, K = check_counts("parameters", parameters), check_counts("silo_clients", silo_clients)
    if len(d) != len(K):
        raise FedboundsError(f"parameters are of {len(d)} silos, silo_clients of {len(K)}")
    N, clients, models = len(d), sum(K), sum(each * count for each, count in zip(d, K, strict=True))
    B = check_count("batch_size", batch_size)
    BE = B * check_count("embedding_size", embedding_size)
    X = check_count("derivative_exchanges", derivative_exchanges, low=0)
    label_silo = int(check_number("label_silo", check_count("label_silo", label_silo, low=0), high=N - 1))
    if number_bytes not in (4, 8):
        raise FedboundsError(f"number_bytes = {number_bytes} must be 4 or 8")
    rows = [
        Sent("hub to client", "model", clients, models, clients * B),
        Sent("client to hub", "embeddings", clients, N * BE, N * B),
    ]
    if not X:
        received = clients * BE if check_flag("whole_sum", whole_sum) else N * BE
        rows += [
            Sent("hub to hub", "embeddings", N * (N - 1), N * (N - 1) * BE),
            Sent("hub to client", "others", clients, received),
        ]
    else:
        with_labels, far = K[label_silo], clients - K[label_silo]
        others, again = N - 1, X - 1
        rows += [
            Sent("hub to hub", "embeddings", others, others * BE),
            Sent("hub to client", "others", with_labels, with_labels * BE if whole_sum else BE),
        ]
        if others:
            rows += [
                Sent("client to hub", "derivatives", with_labels, BE),
                Sent("hub to hub", "derivatives", others, others * BE),
                Sent("hub to client", "derivatives", far, others * BE),
            ]
        if others and again:
            sets = others * again
            rows += [
                Sent("client to hub", "embeddings, later steps", far * again, sets * BE),
                Sent("hub to hub", "embeddings, later steps", sets, sets * BE),
                Sent("hub to client", "points, later steps", with_labels * sets, sets * BE),
                Sent("client to hub", "derivatives, later steps", with_labels * sets, sets * BE),
                Sent("hub to hub", "derivatives, later steps", sets, sets * BE),
                Sent("hub to client", "derivatives, later steps", far * again, sets * BE),
            ]
    rows.append(Sent("client to hub", "model", clients, models))
    return Traffic(tuple(sent for sent in rows if sent.messages), number_bytes)


def round_time(local_steps: int, communication: float, computation: float) -> float:
    r"""How long a round of Algorithm 1 takes: $t_Q=3t_{comm}+Q\,t_{comp}$, in whatever unit the two are given.

    Every client-hub link carries two round trips and every link of two hubs one, all links of a class at the same time;
    what is sent is short, so that only latency counts. Time after r rounds is r times this.

    Args:
        local_steps: Q.
        communication: $t_{comm}$, a round trip over a link.
        computation: $t_{comp}$, a local step.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> [round_time(Q, 10, 1) for Q in (1, 10)]
        [31.0, 40.0]

    Source: Das et al. 2022, Section 5; algorithms whose labels lie in one silo have more exchanges, and it says nothing
    of them.
    """
    steps = check_count("local_steps", local_steps)
    round_trip, step = (
        check_number(name, value, low=0)
        for name, value in (("communication", communication), ("computation", computation))
    )
    return 3 * round_trip + steps * step
