"""Exact tests of whether observed rounds are those of a declared process; they may be read after any round.

A round that the process makes impossible refutes it without error; improbable rounds are weighed by `bets`. Processes
of plug-ins have no `ObservedLaw` and are not tested.

Source: the processes are those of Wang & Ji 2022 and 2024.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from fedbounds.empirical.participation.bernoulli import Bernoulli
from fedbounds.empirical.participation.bets import (
    TILTS,
    Bet,
    Chains,
    Choices,
    Impossible,
    State,
    Sums,
    distinct,
    poisson_binomial,
)
from fedbounds.empirical.participation.clients import Cycles, CyclicClients, CyclicFromInactive, Markovian
from fedbounds.empirical.participation.groups import Cyclic, GroupMarkov, PeriodicGroups
from fedbounds.empirical.participation.process import Process
from fedbounds.empirical.participation.recorded import Recorded
from fedbounds.empirical.participation.sampling import Full, Permutation, WithoutReplacement, WithReplacement

SAME = 1e-9  # relative difference up to which a weight is the one expected


class ObservedLaw(ABC):
    """A declared process under observation; its state does not grow with the rounds.

    Attributes:
        state: arrays by name, changed in place.
        untested: which properties of the process are not tested.
    """

    untested: tuple[str, ...] = ()

    def __init__(self, **bets: Bet) -> None:
        self.bets = bets
        self.state: State = {f"{name}.{key}": array for name, bet in bets.items() for key, array in bet.state.items()}

    @abstractmethod
    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        """Take note of round t."""

    def evidence(self) -> float:
        """The logarithm of the e-value against the declaration: the mean of all bets."""
        bets = [bet.evidence() for bet in self.bets.values()]
        return float(logsumexp(bets) - np.log(len(bets))) if bets else 0.0


def _size(present: np.ndarray, expected: int) -> None:
    if present.sum() != expected:
        raise Impossible(f"{present.sum()} clients took part, and it has {expected} in every round")


class _Fixed(ObservedLaw):
    """Who takes part is certain, given the phase."""

    def __init__(self, process: Any) -> None:
        super().__init__()
        labels = np.zeros(process.clients, int) if isinstance(process, Full) else process.labels
        self.labels, self.groups = labels, int(labels.max()) + 1
        random_phase = isinstance(process, Cyclic) and process.random_phase
        self.state = {"phase": np.array([-1 if random_phase else 0])}
        self.untested = ("the law of the random phase",) if random_phase else ()

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        phase = self.state["phase"]
        if phase[0] < 0 and present.any():
            phase[0] = (self.labels[np.argmax(present)] - t) % self.groups
        expected = self.labels == (t + phase[0]) % self.groups
        if (present != expected).any():
            n = int(np.argmax(present != expected))
            raise Impossible(f"was {'present' if present[n] else 'absent'}, out of turn", n)


class _AsRecorded(ObservedLaw):
    def __init__(self, process: Recorded) -> None:
        super().__init__()
        self.weights = np.asarray(process.weights)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        if t >= len(self.weights):
            raise Impossible(f"the record that was declared ends after {len(self.weights)} rounds")
        other = ~np.isclose(weights, self.weights[t], rtol=SAME, atol=0)
        if other.any():
            n = int(np.argmax(other))
            raise Impossible(f"had weight {weights[n]:.6g}, and {self.weights[t, n]:.6g} was declared", n)


class _Coins(ObservedLaw):
    def __init__(self, process: Bernoulli) -> None:
        p = process.probabilities
        self.who, self.many = Chains(p, p, p), Sums(poisson_binomial(p), "the number of participants")
        super().__init__(who=self.who, many=self.many)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        self.who.add(t, present)
        self.many.add(int(present.sum()))


class _Subsets(ObservedLaw):
    def __init__(self, process: WithoutReplacement) -> None:
        N, self.participants = process.clients, process.participants
        p = np.full(N, self.participants / N)
        self.who = Chains(p, p, p)
        from scipy.stats import hypergeom  # takes its time

        law = hypergeom.pmf(np.arange(self.participants + 1), N, self.participants, self.participants)
        self.again = Sums(law, "the number of participants of the round before")
        super().__init__(who=self.who, again=self.again)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        _size(present, self.participants)
        if t:
            self.again.add(int((present & self.who.state["before"]).sum()))
        self.who.add(t, present)


class _Places(ObservedLaw):
    untested = ("how the places are shared among those who took part",)

    def __init__(self, process: WithReplacement) -> None:
        N, self.places = process.clients, process.participants
        p = np.full(N, -np.expm1(self.places * np.log1p(-1 / N)) if N > 1 else 1.0)
        self.who, self.many = Chains(p, p, p), Sums(distinct(N, self.places), "the number of participants")
        super().__init__(who=self.who, many=self.many)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        places = weights * self.places
        if (
            not np.allclose(places, np.rint(places), rtol=0, atol=SAME * self.places)
            or round(places.sum()) != self.places
        ):
            raise Impossible(f"the weights are not shares of {self.places} places")
        self.many.add(int(present.sum()))
        self.who.add(t, present)


class _Comings(ObservedLaw):
    def __init__(self, process: Markovian) -> None:
        self.who = Chains(process.probabilities, process.come_rates, 1 - process.leave_rates)
        super().__init__(who=self.who)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        self.who.add(t, present)


class _ActiveGroup(ObservedLaw):
    """A chain of groups: whether it stays, and how far it goes."""

    def __init__(self, process: GroupMarkov) -> None:
        self.labels, self.groups = process.labels, len(process.sizes)
        others = self.groups - 1
        self.moves = Choices(np.append(1 - process.leave, np.full(others, process.leave / others)))
        super().__init__(moves=self.moves)
        self.state["active"] = np.array([-1])

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        active = self.state["active"]
        group = int(self.labels[np.argmax(present)])
        if (present != (self.labels == group)).any():
            raise Impossible("those who took part are not one whole group")
        if active[0] >= 0:
            self.moves.add((group - int(active[0])) % self.groups, f"group {group} cannot follow group {active[0]}")
        active[0] = group


class _Orders(ObservedLaw):
    """Cycles in which no client participates twice, in the order of uniform permutations."""

    def __init__(self, process: Permutation) -> None:
        N, self.participants, self.reshuffle = process.clients, process.participants, process.reshuffle
        self.whole = N % self.participants == 0
        self.slots = N // self.participants
        slots = np.arange(self.slots) - (self.slots - 1) / 2
        self.scores = slots / max(slots.std(), 1.0)
        self.growth = np.array([logsumexp(tilt * self.scores) - np.log(self.slots) for tilt in TILTS])
        super().__init__()
        self.state = {"came": np.full(N, -1), "sums": np.zeros(N), "cycles": np.zeros(1)}
        if not self.whole:
            self.untested = ("the order of cycles that end within a round",)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        if not self.whole:
            if not 0 < present.sum() <= self.participants:
                raise Impossible(f"{present.sum()} clients took part, and it has {self.participants} places")
            return
        _size(present, self.participants)
        came, slot = self.state["came"], t % self.slots
        again = present & (came != slot) if t >= self.slots and not self.reshuffle else present & (came >= 0)
        if again.any():
            raise Impossible("came again before its turn", int(np.argmax(again)))
        came[present] = slot
        if self.reshuffle and slot == self.slots - 1:  # bets are settled when the whole order is known
            self.state["sums"] += self.scores[came]
            self.state["cycles"] += 1
            came[...] = -1

    def evidence(self) -> float:
        if not self.reshuffle or not self.whole:
            return 0.0
        bets = np.outer(self.state["sums"], TILTS) - self.state["cycles"] * self.growth
        return float(logsumexp(bets) - np.log(bets.size))


class _Slots(ObservedLaw):
    """Cyclic groups, for a slot each, of which the first may be shorter."""

    def __init__(self, process: PeriodicGroups) -> None:
        self.labels, self.groups, self.process = process.labels, len(process.sizes), process
        self.untested = ("who takes part among those available", "the law of the length of the first slot")
        super().__init__()
        self.state = {"turn": np.zeros(1, int), "age": np.zeros(1, int)}

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        turn, age, process = self.state["turn"], self.state["age"], self.process
        first = turn[0] == 0
        most = process.slot if not first or process.offset is None else process.offset
        least = most if not first or process.offset is not None else 1
        group = int(self.labels[np.argmax(present)])
        if self.groups > 1 and age[0] >= least and (age[0] >= most or group != turn[0] % self.groups):
            turn[0], age[0] = turn[0] + 1, 0
        if present.sum() > process.participants or (present & (self.labels != turn[0] % self.groups)).any():
            raise Impossible(f"not {process.participants} clients of group {turn[0] % self.groups}, whose turn it was")
        if not present.any():
            raise Impossible("no client participated")
        age[0] += 1


class _Runs(ObservedLaw):
    """Cycles of every client: after its first change all is certain."""

    untested = ("the law of the random phases",)

    def __init__(self, process: Cycles) -> None:
        super().__init__()
        self.active, self.lengths = process.active, process.lengths
        rest = self.lengths - self.active
        self.longest = np.where(rest > 0, self.active, np.inf), np.where(self.active > 0, rest, np.inf)
        self.from_inactive = isinstance(process, CyclicFromInactive)
        N = process.clients
        self.state = {"before": np.zeros(N, bool), "running": np.zeros(N, int), "whole": np.zeros(N, bool)}

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        before, running, whole = self.state["before"], self.state["running"], self.state["whole"]
        if t == 0:
            before[...] = present
            whole[...] = present & self.from_inactive  # who is there at once has just come
        changes = present != before
        most = np.where(before, self.longest[0], self.longest[1] - (self.from_inactive & ~whole))
        wrong = np.where(changes, running > most, running >= most) | (changes & whole & (running < most))
        wrong |= np.where(present, self.active == 0, self.active == self.lengths)
        if wrong.any():
            n = int(np.argmax(wrong))
            raise Impossible(f"was {'present' if present[n] else 'absent'}, out of its cycle", n)
        whole |= changes
        running[...] = np.where(changes, 1, running + 1)
        before[...] = present


LAWS: Mapping[type[Process], Callable[[Any], ObservedLaw]] = {
    Full: _Fixed,
    Cyclic: _Fixed,
    Recorded: _AsRecorded,
    Bernoulli: _Coins,
    WithoutReplacement: _Subsets,
    WithReplacement: _Places,
    Markovian: _Comings,
    GroupMarkov: _ActiveGroup,
    Permutation: _Orders,
    PeriodicGroups: _Slots,
    CyclicClients: _Runs,
    CyclicFromInactive: _Runs,
}


def law_of(process: Process) -> ObservedLaw | None:
    """The process under observation; None if no exact test of it is known, as for plug-ins."""
    kind = LAWS.get(type(process))
    carried = isinstance(process, PeriodicGroups) and process.independent_repeats  # its orders do not end with slots
    return None if kind is None or carried else kind(process)


@dataclass(frozen=True)
class Conformity:
    r"""The result of a test of a declared process."""

    # "nothing declared", "not tested", "not refuted", "refuted" (by chance with probability below `error`) or
    # "impossible" (without error)
    status: str
    why: str  # the reason
    error: float  # the probability that a true declaration is *ever* refuted, over all rounds and looks
    evidence: float = 0.0  # $\log_{10}$ of the largest e-value so far; refuted from $\log_{10}(1/\text{error})$ on
    untested: tuple[str, ...] = ()  # which properties of the declaration are not tested


class Declaration:
    """A declared process, or none, and its test along the observed rounds.

    Attributes:
        state: arrays by name, changed in place.
        broken: why the process cannot have made the rounds ("" if it can).
    """

    def __init__(self, process: Process | None, error: float) -> None:
        self.process, self.error, self.broken = process, error, ""
        self.law = None if process is None else law_of(process)
        self.state: State = {"largest": np.zeros(1)} | ({} if self.law is None else self.law.state)

    def share(self, participants: int) -> int:
        """One over the weight of each of so many participants."""
        everyone = self.process.clients if self.process is not None and self.process.unnormalized else participants
        return max(everyone, 1)

    def add(self, t: int, present: np.ndarray, weights: np.ndarray, names: tuple[str | int, ...]) -> None:
        """Add round t: the presences (N,), the weights (N,), and the clients' names for messages."""
        if self.broken or self.law is None:
            return
        try:
            wrong = present & (np.abs(weights * self.share(int(present.sum())) - 1) > SAME)
            if wrong.any() and not isinstance(self.process, Recorded | WithReplacement | Permutation):
                n = int(np.argmax(wrong))
                raise Impossible(f"had weight {weights[n]:.6g}, not 1/{self.share(int(present.sum()))}", n)
            self.law.add(t, present, weights)
        except Impossible as found:
            who = "" if found.client is None else f"client {names[found.client]!r} "
            self.broken = f"round {t}: {who}{found}"
            return
        largest = self.state["largest"]
        largest[0] = max(largest[0], self.law.evidence())

    def conformity(self) -> Conformity:
        """The result of the tests so far."""
        if self.process is None:
            return Conformity("nothing declared", "no process was declared", self.error)
        if self.law is None:
            why = f"no exact test is known for {self.process.kind} participation"
            return Conformity("not tested", why, self.error)
        if self.broken:
            return Conformity("impossible", self.broken, self.error, float("inf"), self.law.untested)
        evidence, digits = self.state["largest"][0], float(self.state["largest"][0] / np.log(10))
        if evidence >= -np.log(self.error):
            why = (
                f"not {self.process.kind} participation as declared: e-value 10^{digits:.1f}, and a true declaration "
                f"ever passes {1 / self.error:.6g} with probability at most {self.error:g}"
            )
            return Conformity("refuted", why, self.error, digits, self.law.untested)
        why = "the rounds so far may be those of the process"
        return Conformity("not refuted", why, self.error, digits, self.law.untested)
