r"""The account of FedAU's weights: what they are now, and how wrong they were in the rounds so far.

$$\frac1{NT}\sum_{t<T}\sum_n(p_n\omega_t^n-1)^2
  =\frac1{NT}\sum_n\Big(p_n^2\sum_t(\omega_t^n)^2-2p_n\sum_t\omega_t^n+T\Big)$$

for whatever rates $p_n$, so that the two sums are enough. What is lost beside the full record: the weights, and so
their error, at other cut-offs, and the error round by round.

Source: Wang & Ji 2024, Algorithm 2 and Theorem 2.
"""

from typing import NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.papers.fedau.weight_error import largest_weight_error, weight_error
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.monitoring.account_protocol import Account, AccountFacts, AccountQuestion, Declared
from fedbounds.empirical.papers.fedau.participation_weights import Intervals
from fedbounds.empirical.participation import Bernoulli, Full, Process
from fedbounds.empirical.participation.mixing import Presences

PAPER = "fedau"
NEAR = 1 / 81  # Assumption 5, Option 1
EQUAL = 1e-9  # relative difference up to which rates are equal


class WeightAccount(Account):
    """FedAU's weights with the declared cut-off, and their sums."""

    def __init__(self, declared: Declared) -> None:
        super().__init__(declared)
        N = declared.clients
        start = Intervals.none_yet(N)
        self.state = {**start._asdict(), "present": np.zeros(N, int), "sums": np.zeros(N), "squares": np.zeros(N)}

    @property
    def intervals(self) -> Intervals:
        """The weights of the coming round, and what they are made of."""
        return Intervals(*(self.state[name] for name in Intervals._fields))

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        used = self.state["weights"]
        self.state["sums"] += used
        self.state["squares"] += used**2
        self.state["present"] += present
        for name, value in self.intervals.after(t, present, self.declared.cutoff)._asdict().items():
            self.state[name][...] = value

    def error(self, rates: np.ndarray, rounds: int) -> float:
        r"""The mean over clients and rounds of $(p_n\omega_t^n-1)^2$, for rates (clients,).

        Source: Wang & Ji 2024, Theorem 2, whose W is its expectation.
        """
        p, state = rates, self.state
        return float(np.mean((p**2 * state["squares"] - 2 * p * state["sums"]) / rounds + 1))

    def rates(self, rounds: int) -> tuple[np.ndarray, bool]:
        """The rates of the declared process, else the shares of rounds; and whether they are the declared ones."""
        coins = independent_coins(self.declared.process) if self.declared.process is not None else None
        return (self.state["present"] / rounds, False) if coins is None else (coins, True)

    def quantities(self, rounds: int) -> dict[str, float]:
        """The least and the largest weight of the coming round, and the weight error so far beside its expectation."""
        if not rounds:
            return {}
        weights, (p, declared) = self.state["weights"], self.rates(rounds)
        found = {"least weight": float(weights.min()), "largest weight": float(weights.max())}
        found["weight error" + ("" if declared else ", for estimated rates")] = self.error(p, rounds)
        if declared and (p > 0).all():
            found["expected weight error W"] = float(weight_error(p, self.declared.cutoff, rounds))
        return found

    def facts(self, asked: AccountQuestion) -> AccountFacts:
        p, declared = self.rates(asked.rounds)
        if not (p > 0).all():
            which, why = int(np.argmin(p)), "at that rate it never will" if declared else "its rate is not known"
            raise FedboundsError(f"client number {which} has not taken part: {why}, and every result assumes p_n > 0")
        note = "of the declared process" if declared else "shares of the rounds so far"
        constants = {
            "participation_rates": Constant(p, "exact" if declared else "estimated", note),
            "clients": Constant(float(len(p)), "given", "declared"),
            "cutoff_interval": Constant(float(self.declared.cutoff), "given", "declared"),
        }
        implied = frozenset({"bernoulli-participation"}) if declared else frozenset[str]()
        checked = {"equal-rates": bool(np.allclose(p, p[0], rtol=EQUAL, atol=0))} if declared else {}
        if declared and not asked.ahead:
            largest = largest_weight_error(p, self.declared.cutoff, asked.rounds)
            checked["nearly-optimal-weights"] = bool(np.ravel(largest)[0] <= NEAR)
        if self.declared.process is not None and not declared:
            checked["bernoulli-participation"] = False
        return AccountFacts(constants, checked, implied, trusting=declared)

    def inconsistency(self, presences: Presences) -> str:
        if not np.array_equal(self.state["present"], presences.state["present"]):
            return f"participations {quote(self.state['present'].tolist())}, elsewhere given otherwise"
        T = presences.rounds
        after = self.intervals
        if not all(np.isfinite(values).all() for values in self.state.values()):
            return "weights that are not finite"
        sums, squares = self.state["sums"], self.state["squares"]
        if (after.weights < 1).any() or (sums < T * (1 - EQUAL)).any() or (squares * T < sums**2 * (1 - EQUAL)).any():
            return "weights below 1, or sums of weights that are not theirs"
        return ""


def independent_coins(process: Process) -> np.ndarray | None:
    """The rates $p_n$ of clients who take part independently of each other and of the past, (clients,); else None."""
    return np.asarray(process.rates, dtype=float) if isinstance(process, Bernoulli | Full) else None


class RecordWeights(NamedTuple):
    """FedAU's weights in the first T rounds of a record, for T = 1, 2, ..., and given rates."""

    error: np.ndarray  # the mean over rounds and clients of $(p_n\omega_t^n-1)^2$, (T,)
    largest_error: np.ndarray  # the largest over rounds of its mean over clients
    moment: np.ndarray  # the largest over rounds of $\frac1N\sum_np_n(\omega_t^n)^2$
    mean_moment: np.ndarray  # its mean over rounds


def record_weights(present: np.ndarray, cutoff: float, rates: np.ndarray) -> RecordWeights:
    """The weights of a record of who participated, booleans (T, N)."""
    T, N = present.shape
    account = WeightAccount(Declared(N, None, (1,), cutoff, None))
    numbers = np.empty((3, T))
    for t, row in enumerate(present):
        used = account.state["weights"].copy()
        account.add(t, row, row / N)
        numbers[:, t] = account.error(rates, t + 1), np.mean((rates * used - 1) ** 2), np.mean(rates * used**2)
    error, errors, moments = numbers
    largest = np.maximum.accumulate
    return RecordWeights(error, largest(errors), largest(moments), moments.cumsum() / np.arange(1, T + 1))


ACCOUNT = WeightAccount
