r"""Bets against a declared law that are fair if it is true, so that one may look after every round and stop at will.

With $X_t$ the observation of round t, and $a_t$ a law of it chosen before round t,

$$E_T=\prod_{t<T}\frac{a_t(X_t)}{\Pr\{X_t\mid X_0,\dots,X_{t-1}\}},\qquad
  \Pr\{\exists\,T:\ E_T\ge1/\alpha\}\le\alpha$$

by Ville's inequality, as E is a martingale with mean 1; so is every mean of such. Three kinds of bets, each against the
*exact* law:

- `Chains`: every client on its own, a Markov chain of two states whose transitions are learned as they come (Krichevsky
  and Trofimov: a count plus 1/2), against binomial coins or the declared chain; the mean over clients;
- `Sums`: a number with a known law in every round (participants: Poisson-binomial; who was there in the last round too:
  hypergeometric), against that law tilted by $e^{\theta s(X)}$, the mean over a grid of $\theta$ and two scores s;
- `Choices`: one of m things with known probabilities, learned as in `Chains`.

Source: Ville 1939; Krichevsky and Trofimov 1981.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import logsumexp

State = dict[str, np.ndarray]
TILTS = np.outer([-1.0, 1.0], 2.0 ** -np.arange(8)).ravel()  # in standard deviations


class Impossible(Exception):
    """The declared process cannot have made this round: the reason, and the client that shows it, if any."""

    def __init__(self, why: str, client: int | None = None) -> None:
        super().__init__(why)
        self.client = client


class Bet(Protocol):
    """What is bet against a declaration: its state, and the logarithm of its e-value."""

    state: State

    def evidence(self) -> float: ...


class Chains:
    """Bets on the Markov chain of presences of every client.

    The declared probabilities of presence, (N,): `first` in round 0, `come` after an absence, `stay` after a presence.
    """

    def __init__(self, first: np.ndarray, come: np.ndarray, stay: np.ndarray) -> None:
        self.first, self.after = first, np.stack([come, stay])
        clients = len(first)
        self.state: State = {
            "seen": np.zeros((clients, 2, 2)),  # how often each state followed each
            "before": np.zeros(clients, bool),
            "bets": np.zeros(clients),  # logarithms
        }

    def add(self, t: int, present: np.ndarray) -> None:
        everyone = np.arange(len(present))
        before, seen = self.state["before"].astype(int), self.state["seen"]
        chance = self.first if t == 0 else self.after[before, everyone]
        happened = np.where(present, chance, 1 - chance)
        if (happened <= 0).any():
            n = int(np.argmin(happened))
            raise Impossible(f"cannot have been {'present' if present[n] else 'absent'}", n)
        if t:
            counts = seen[everyone, before]
            learned = (counts[everyone, present.astype(int)] + 0.5) / (counts.sum(axis=1) + 1)
            self.state["bets"] += np.log(learned / happened)
            seen[everyone, before, present.astype(int)] += 1
        self.state["before"][...] = present

    def evidence(self) -> float:
        """The logarithm of the e-value: the mean over clients."""
        return float(logsumexp(self.state["bets"]) - np.log(len(self.first)))


class Sums:
    """Bets on an independent number in every round, which counts `what`; `law` has the probabilities of 0, ..., m."""

    def __init__(self, law: np.ndarray, what: str) -> None:
        self.law, self.what = np.maximum(law, 0.0), what
        off = np.arange(len(law)) - np.arange(len(law)) @ self.law
        scores = [off, off**2 - off**2 @ self.law]
        spreads = [np.sqrt(score**2 @ self.law) for score in scores]
        scores = [score / spread for score, spread in zip(scores, spreads, strict=True) if spread > 1e-9]
        self.scores = np.array(scores).reshape(-1, len(law))
        self.growth = np.array([[logsumexp(tilt * s, b=self.law) for tilt in TILTS] for s in scores])
        self.state: State = {"sums": np.zeros(len(scores)), "draws": np.zeros(1)}

    def add(self, number: int) -> None:
        if number >= len(self.law) or self.law[number] <= 0:
            raise Impossible(f"{self.what} cannot have been {number}")
        self.state["sums"] += self.scores[:, number]
        self.state["draws"] += 1

    def evidence(self) -> float:
        """The logarithm of the e-value: the mean over scores and tilts."""
        if not len(self.scores):
            return 0.0
        bets = np.outer(self.state["sums"], TILTS) - self.state["draws"] * self.growth
        return float(logsumexp(bets) - np.log(bets.size))


class Choices:
    """Bets on one of m things, whose probabilities are declared: `law`, (m,)."""

    def __init__(self, law: np.ndarray) -> None:
        self.law = law
        self.state: State = {"counts": np.zeros(len(law)), "bets": np.zeros(1)}

    def add(self, which: int, what: str) -> None:
        if self.law[which] <= 0:
            raise Impossible(what)
        counts = self.state["counts"]
        learned = (counts[which] + 0.5) / (counts.sum() + len(counts) / 2)
        self.state["bets"] += np.log(learned / self.law[which])
        counts[which] += 1

    def evidence(self) -> float:
        """The logarithm of the e-value."""
        return float(self.state["bets"][0])


def poisson_binomial(p: np.ndarray) -> np.ndarray:
    r"""The law of the number of independent coins that show heads, (N + 1,), exact to rounding."""
    law = np.ones(1)
    for each in p.tolist():
        law = np.append(law * (1 - each), 0.0) + np.append(0.0, law * each)
    return law


def distinct(clients: int, places: int) -> np.ndarray:
    r"""The law of the number of different clients on places that are given to uniform ones, (places + 1,)."""
    law = np.append(1.0, np.zeros(places))
    share = np.arange(places + 1) / clients
    for _ in range(places):
        law = law * share + np.append(0.0, law[:-1] * (1 - share[:-1]))
    return law
