r"""Participation of one group of clients at a time: periodic, Markov, cyclic.

Let column g of $U$, (clients, groups), be $1/n_g$ on the $n_g$ clients of group g. The covariance between clients is
$U\beta U^\top$, with $\beta$ that between groups, plus that of the sampling inside a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from typing import ClassVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_memory, check_number
from fedbounds.bounds.participation.window_variance import markov_correlation, markov_window_factor, periodic_window
from fedbounds.empirical.participation.process import Process, Round, equal_weights
from fedbounds.empirical.participation.sampling import (
    check_repeats,
    permuted_clients,
    place_pairs,
    round_from_places,
    sequential,
    subsets,
)

Groups = int | Sequence[int] | np.ndarray


class Grouped(Process):
    """A process whose clients are in groups, of which one at a time is available."""

    groups: Groups

    def _settle_groups(self, groups: object) -> None:
        """Check clients and groups: a number of contiguous equal groups, or the group of each client."""
        N = check_count("clients", self.clients)
        check_memory(f"the group of each of clients = {N}", 8 * N)
        groups = groups.tolist() if isinstance(groups, np.ndarray) else groups
        if isinstance(groups, Sequence) and not isinstance(groups, str):
            if len(groups) != N:
                raise FedboundsError(f"groups has {len(groups)} entries; expected one per client, {N}")
            labels = tuple(check_count(f"groups[{n}]", g, 0, N - 1) for n, g in enumerate(groups))
            if absent := set(range(max(labels) + 1)) - set(labels):
                raise FedboundsError(f"groups has no client in group {min(absent)}; number the groups from 0")
            self._settle(clients=N, groups=labels)
            return
        G = check_count("groups", groups, 1, N, why="at most one group per client")
        if N % G:
            raise FedboundsError(f"groups = {G} must divide clients = {N}; or give the group of each client")
        self._settle(clients=N, groups=G)

    @cached_property
    def labels(self) -> np.ndarray:
        """The group of each client, (clients,)."""
        if isinstance(self.groups, int):
            return np.arange(self.clients) // (self.clients // self.groups)
        return np.asarray(self.groups)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of clients of each group, (groups,)."""
        return np.bincount(self.labels)

    @cached_property
    def _shares(self) -> np.ndarray:
        """U: the mean weights while a group is available, (clients, groups)."""
        return (self.labels[:, None] == np.arange(len(self.sizes))) / self.sizes

    def _members(self) -> list[np.ndarray]:
        return [np.flatnonzero(self.labels == g) for g in range(len(self.sizes))]

    def _whole_groups(self) -> list[Round]:
        return [Round(members, equal_weights(len(members))) for members in self._members()]

    def _spread(self, between: np.ndarray) -> np.ndarray:
        """The covariance between clients that one between groups implies, (clients, clients)."""
        return self._shares @ between @ self._shares.T

    def _inside(self, within: np.ndarray) -> np.ndarray:
        """The covariance with a block within_g (I - 1/n_g) for the clients of each group."""
        return np.diag(within[self.labels]) - (self._shares * (within * self.sizes)) @ self._shares.T


@dataclass(frozen=True)
class PeriodicGroups(Grouped):
    """Periodic availability: groups are available cyclically, for `slot` consecutive rounds each.

    Group 0 comes first, and only its first slot is shortened, to `offset` rounds. From the available group of
    n clients S take part in a round with weight 1/S: either in the order of random permutations of the group
    (as in `Permutation`, begun anew in each slot), or as independent uniform subsets.

    With independent repeats it is the sampler of the published code of Wang & Ji (2022): permutations of all N clients
    continue from slot to slot, unavailable clients are skipped, and a round may hold a client twice, who then makes two
    local updates of weight 1/S. The second moments of this sampler are not known.

    All moments are averages over the offsets 1..slot, exact given the offset.

    Args:
        clients: N.
        participants: S, at most the smallest group.
        slot: rounds of availability at a time.
        groups: G contiguous groups of N/G clients, or the group of each client, numbered from 0.
        offset: the length of the first slot; none draws it uniformly from 1..slot in each run.
        sampling: "permutation" or "independent".
        repeats: "merged" (the default), or "independent", which needs permutations.

    Raises:
        FedboundsError: a count outside its range, groups that leave one empty, an unknown sampling, or independent
            repeats of independent subsets.

    Example:
        >>> process = PeriodicGroups(clients=6, participants=1, slot=2, groups=3, offset=1)
        >>> process.matrix(6, np.random.default_rng(0)).argmax(axis=1) // 2  # the available group
        array([0, 1, 1, 2, 2, 0])

    Source: Wang & Ji 2022, Section 6 and Appendix D (N = 250, S = 10, 5 groups, slots of 100 rounds).
    """

    clients: int
    participants: int
    slot: int
    groups: Groups = 5
    offset: int | None = None
    sampling: str = "permutation"
    repeats: str | None = None
    kind: ClassVar[str] = "periodic-groups"

    def __post_init__(self) -> None:
        self._settle_groups(self.groups)
        slot, smallest = check_count("slot", self.slot), int(self.sizes.min())
        S = check_count("participants", self.participants, high=smallest, why="at most the smallest group")
        offset = None if self.offset is None else check_count("offset", self.offset, high=slot)
        if not isinstance(self.sampling, str) or self.sampling not in ("permutation", "independent"):
            raise unknown_name("sampling", str(self.sampling), ["permutation", "independent"])
        repeats = check_repeats(self.repeats)
        if repeats and self.sampling != "permutation":
            raise FedboundsError("repeats = 'independent' needs sampling = 'permutation': a subset has no client twice")
        self._settle(slot=slot, participants=S, offset=offset, repeats=repeats)

    @property
    def independent_repeats(self) -> bool:
        """As `repeats` says."""
        return self.repeats is not None

    @property
    def independent_rounds(self) -> bool:
        """Where neither the offset nor a permutation ties the rounds together."""
        return self._independent_inside and (self.offset is not None or self.slot == 1 or len(self.sizes) == 1)

    @property
    def stationary(self) -> bool:
        """Only for one group whose rounds are independent."""
        return self._independent_inside and len(self.sizes) == 1

    @property
    def _independent_inside(self) -> bool:
        return self.sampling == "independent" or bool((self.sizes == self.participants).all())

    @property
    def exchangeable(self) -> bool:
        """Only for one group."""
        return len(self.sizes) == 1

    @property
    def unbiased(self) -> bool:
        """Only for one group: otherwise group 0 is sure to take part in round 0."""
        return len(self.sizes) == 1

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """An offset, then the slots one after another."""
        members, weights = self._members(), equal_weights(self.participants)
        length = int(rng.integers(1, self.slot + 1)) if self.offset is None else self.offset
        order = permuted_clients(self.clients, rng)
        turn = 0
        while True:
            available = members[turn % len(members)]
            if self.repeats:
                present = self.labels == turn % len(members)
                for _ in range(length):
                    places = np.sort(np.fromiter(islice((n for n in order if present[n]), self.participants), int))
                    yield round_from_places(places) if (places[1:] == places[:-1]).any() else Round(places, weights)
            elif self.sampling == "permutation":
                yield from islice(sequential(available, self.participants, rng), length)
            else:
                for chosen in islice(subsets(len(available), self.participants, rng), length):
                    yield Round(available[chosen], weights)
            turn, length = turn + 1, self.slot

    def mean(self, t: int) -> np.ndarray:
        turn, _ = self._slot_of(t)
        return self._shares @ np.bincount(turn % len(self.sizes), minlength=len(self.sizes)) / len(turn)

    def covariance(self, t: int, u: int) -> np.ndarray:
        self._require_known_moments()
        S, G = self.participants, len(self.sizes)
        (turn_t, at_t), (turn_u, at_u) = self._slot_of(t), self._slot_of(u)
        indicator_t, indicator_u = np.eye(G)[turn_t % G], np.eye(G)[turn_u % G]  # (offsets, groups)
        joint = indicator_t.T @ indicator_u / len(turn_t)
        between = joint - np.outer(indicator_t.mean(axis=0), indicator_u.mean(axis=0))
        n = self.sizes[turn_t % G]
        if self.sampling == "permutation":
            pairs = place_pairs(at_t, at_u, S, n)
        else:
            pairs = (t == u) * S * (n - S) / np.maximum(n - 1, 1)
        within = ((turn_t == turn_u) * pairs) @ indicator_t / (len(turn_t) * S * S * self.sizes)
        return self._spread(between) + self._inside(within)

    def window_mean(self, t0: int, interval: int) -> np.ndarray:
        return self._shares @ self._window(t0, interval).share

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        self._require_known_moments()
        window = self._window(t0, interval)
        return self._spread(window.between) + self._inside(window.within)

    def _require_known_moments(self) -> None:
        if self.repeats:
            raise FedboundsError(
                "the covariance of periodic-groups participation with repeats = 'independent' is not known: its "
                "permutations go on from slot to slot; give repeats = 'merged'"
            )

    def _window(self, t0: int, interval: int):
        return periodic_window(
            self.sizes,
            self.participants,
            self.slot,
            interval,
            t0,
            permutation=self.sampling == "permutation",
            offset=self.offset,
        )

    def _alike(self, t0: int) -> int:
        return t0 if t0 < self.slot else self.slot + (t0 - self.slot) % (self.slot * len(self.sizes))

    def _slot_of(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """For each possible offset, the number of the slot that holds round t, and the place of t in it."""
        first = np.arange(1, self.slot + 1) if self.offset is None else np.array([self.offset])
        turn = (t - first) // self.slot + 1
        return turn, np.where(turn > 0, (t - first) % self.slot, t)


@dataclass(frozen=True)
class GroupMarkov(Grouped):
    r"""A stationary Markov chain of groups: all clients of the active group take part, with equal weights.

    In each round the chain leaves the active group with probability p, to a uniform other group. With
    $r=1-\frac{pG}{G-1}$ and $c_P$ from `fedbounds.bounds.participation.window_variance.markov_window_factor`,
    $$\mathrm{Cov}(q_t,q_u)=r^{|t-u|}\,U\Big(\frac1GI-\frac1{G^2}\mathbf1\mathbf1^\top\Big)U^\top,\qquad
      \mathrm{Cov}(\overline q)=c_P\,\mathrm{Cov}(q_t,q_t).$$

    Args:
        clients: N.
        groups: G contiguous groups of N/G clients, or the group of each client, numbered from 0; at least
            two.
        leave: p, in [0, 1].

    Raises:
        FedboundsError: a count or probability outside its range, or groups that leave one empty.

    Example:
        >>> GroupMarkov(clients=2, groups=2, leave=0.5).window_covariance(0, 4).tolist()
        [[0.0625, -0.0625], [-0.0625, 0.0625]]

    Source: a stationary, strongly mixing process for Wang & Ji 2022, Proposition 4.6.
    """

    clients: int
    groups: Groups
    leave: float
    kind: ClassVar[str] = "group-markov"

    def __post_init__(self) -> None:
        self._settle_groups(self.groups)
        check_count("groups", len(self.sizes), 2, why="the active group leaves for another one")
        self._settle(leave=check_number("leave", self.leave, 0, 1))

    @property
    def correlation(self) -> float:
        r"""The correlation r of successive rounds."""
        return markov_correlation(len(self.sizes), self.leave)

    @property
    def independent_rounds(self) -> bool:
        """Where the next group is uniform, p = (G-1)/G."""
        G = len(self.sizes)
        return self.leave == (G - 1) / G

    @property
    def stationary(self) -> bool:
        """Always: the first group is uniform."""
        return True

    @property
    def exchangeable(self) -> bool:
        """Where every client is a group."""
        return len(self.sizes) == self.clients

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """A uniform group first, then the chain."""
        rounds = self._whole_groups()
        active = int(rng.integers(len(rounds)))
        while True:
            yield rounds[active]
            if rng.random() < self.leave:
                active = (active + 1 + int(rng.integers(len(rounds) - 1))) % len(rounds)

    def mean(self, t: int) -> np.ndarray:
        return self._shares.mean(axis=1)

    def covariance(self, t: int, u: int) -> np.ndarray:
        return self.correlation ** abs(t - u) * self._one_round()

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        return markov_window_factor(self.correlation, interval) * self._one_round()

    def long_run_variance(self) -> np.ndarray:
        r"""Exact $\hat\upsilon^2=\mathrm{Var}(q)\frac{1+r}{1-r}$, (clients,).

        Raises:
            FedboundsError: p = 0, or p = 1 with two groups: the chain does not mix.
        """
        r = self.correlation
        if abs(r) >= 1:
            G = len(self.sizes)
            raise FedboundsError(f"leave = {self.leave:g} with groups = {G} does not mix: no long-run variance")
        return self.variance(0) * (1 + r) / (1 - r)

    def _one_round(self) -> np.ndarray:
        G = len(self.sizes)
        return self._spread(np.eye(G) / G - 1 / G**2)


@dataclass(frozen=True)
class Cyclic(Grouped):
    r"""One client (or group) after another, in a fixed order.

    In round t all clients of group $(t+\varphi)\bmod G$ take part with equal weights; the phase $\varphi$ is
    0, or uniform on 0..G-1 in each run.

    Args:
        clients: N.
        groups: none for one client after another; else G contiguous groups of N/G clients, or the group of
            each client, numbered from 0.
        random_phase: whether the phase is random; without it nothing is.

    Raises:
        FedboundsError: a count outside its range, groups that leave one empty, or a flag that is none.

    Example:
        >>> Cyclic(3).matrix(4, np.random.default_rng(0)).argmax(axis=1).tolist()
        [0, 1, 2, 0]

    Source: Wang & Ji 2022, Appendix B.1 (the toy example).
    """

    clients: int
    groups: Groups | None = None
    random_phase: bool = False
    kind: ClassVar[str] = "cyclic"

    def __post_init__(self) -> None:
        self._settle_groups(self.clients if self.groups is None else self.groups)
        self._settle(random_phase=check_flag("random_phase", self.random_phase))

    @property
    def independent_rounds(self) -> bool:
        """Where nothing is random."""
        return not self.random_phase or len(self.sizes) == 1

    @property
    def stationary(self) -> bool:
        """With a random phase."""
        return self.random_phase or len(self.sizes) == 1

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """The groups cyclically, from the phase on."""
        rounds = self._whole_groups()
        phase = int(rng.integers(len(rounds))) if self.random_phase else 0
        yield from cycle(rounds[phase:] + rounds[:phase])

    def mean(self, t: int) -> np.ndarray:
        return self._shares.mean(axis=1) if self.random_phase else self._shares[:, t % len(self.sizes)].copy()

    def covariance(self, t: int, u: int) -> np.ndarray:
        G = len(self.sizes)
        if not self.random_phase:
            return np.zeros((self.clients, self.clients))
        return self._spread(np.roll(np.eye(G), u - t, axis=1) / G - 1 / G**2)

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        G = len(self.sizes)
        if not self.random_phase:
            return np.zeros((self.clients, self.clients))
        extra = np.arange(G) < interval % G  # the groups with one round more than the others, for phase 0
        excess = (np.array([np.roll(extra, phase) for phase in range(G)]) - extra.mean()) / interval
        return self._spread(excess.T @ excess / G)
