r"""How soon participation forgets, estimated from how often each client took part, and how often twice running."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote


@dataclass(frozen=True)
class Mixing:
    r"""The memory of participation, estimated from the rounds so far."""

    correlation: float  # $\hat r$ of presence in successive rounds, over all clients; nan if no presence ever changed
    standard_error: float  # $1/\sqrt{N(T-1)}$, as for independent rounds and clients with equal rates
    memory: float  # $1/(1-\hat r)$, in rounds; inf for $\hat r\ge1$


class Presences:
    """Counts of participation."""

    def __init__(self, clients: int) -> None:
        self.state = {
            "rounds": np.zeros(1, int),
            "present": np.zeros(clients, int),
            "twice": np.zeros(clients, int),  # in two rounds running
            "first": np.zeros(clients, bool),
            "last": np.zeros(clients, bool),
        }

    @property
    def rounds(self) -> int:
        """T."""
        return int(self.state["rounds"][0])

    def add(self, present: np.ndarray) -> None:
        """Take note of one more round: who was present, booleans (N,)."""
        state = self.state
        if not self.rounds:
            state["first"][...] = present
        state["twice"] += present & state["last"]
        state["present"] += present
        state["last"][...] = present
        state["rounds"] += 1

    def inconsistency(self) -> str:
        """What no rounds can have left in the state, in words ("" if nothing)."""
        T, present, twice = self.rounds, self.state["present"], self.state["twice"]
        ends = [*self.state["first"], *self.state["last"]]
        if T < 0 or (present < 0).any() or (present > T).any():
            return f"participations {quote(present.tolist())}"
        if (twice < np.maximum(2 * present - T - 1, 0)).any() or (twice > np.maximum(present - 1, 0)).any():
            return f"presences in two successive rounds {quote(twice.tolist())}"
        return "a presence without a participation" if np.any(ends & np.tile(present == 0, 2)) else ""

    def mixing(self) -> Mixing:
        r"""The correlation of presence in successive rounds,

        $$\hat r=\frac{\sum_{t,n}(\mathbb 1_t^n-\hat p_n)(\mathbb 1_{t+1}^n-\hat p_n)}
          {(T-1)\sum_n\hat p_n(1-\hat p_n)},$$

        of mean about $-1/T$ if rounds are independent.
        """
        T, state = self.rounds, self.state
        if T < 2:
            raise FedboundsError(f"the mixing estimate needs two rounds, and there were {T}")
        p = state["present"] / T
        ends = state["first"].astype(float) + state["last"]
        sums = state["twice"] - p * (2 * state["present"] - ends) + (T - 1) * p**2
        spread = float((T - 1) * np.sum(p * (1 - p)))
        r = float(sums.sum()) / spread if spread > 0 else float("nan")
        memory = 1 / (1 - r) if not r >= 1 else float("inf")
        return Mixing(r, float(1 / np.sqrt(len(p) * (T - 1))), memory)

    def order_p_value(self) -> float:
        """The exact p-value of so few or so many runs of presence, if rounds are independent and alike.

        Given $T_n$ presences in T rounds, the number of runs of presence of client n is hypergeometric: $T_n$ draws
        from T with $T-T_n+1$ marked. Two-sided, times the number of clients (Bonferroni).

        Source: the runs test (Wald & Wolfowitz 1940).
        """
        from scipy.stats import hypergeom  # takes its time

        T, present = self.rounds, self.state["present"]
        if not T:
            return 1.0
        runs, law = present - self.state["twice"], hypergeom(T, T - present + 1, present)
        tails = np.minimum(law.cdf(runs), law.sf(runs - 1))
        return float(min(1.0, 2 * len(present) * tails.min()))
