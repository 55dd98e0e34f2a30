r"""The account of weights: what (5), (6) and (7) are in the rounds so far, at every interval P declared.

Kept are, for each P, the running sum of the window's weights and the largest and the summed $\tilde\delta^2_{t_0}(P)$
of the complete windows. Without offsets $\mathbf v_n$ all divergences are those for d = 1, from above (`Within`): they
scale with d. What is lost beside the full record: windows at other intervals than these, or that start elsewhere.

A round without participants changes nothing, $\mathbf x_{t+1}=\mathbf x_t$. If a window is one round or $\eta=1$, the
models of the other rounds are those of the run without it, so the theorem holds with T the number of rounds with
participants. With $\eta>1$ and windows of several rounds, a window with an empty round is shorter, which the theorem
does not cover.

Source: Wang & Ji 2022, Assumption 3' and Section 4.
"""

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.papers.arbitrary_participation.assumptions import IN_EXPECTATION, WEIGHTS
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.bounds.theory.symbols import Constant, Source
from fedbounds.empirical.monitoring.account_protocol import Account, AccountFacts, AccountQuestion, Declared
from fedbounds.empirical.papers.arbitrary_participation.divergences import Offsets, Within
from fedbounds.empirical.papers.arbitrary_participation.participation_constants import process_constants
from fedbounds.empirical.participation import Process
from fedbounds.empirical.participation.mixing import Presences

PAPER = "arbitrary-participation"
BOUNDED = tuple(a.name for a in IN_EXPECTATION)  # the norm first, which needs no gradients
EXPECTED = tuple(a.name for a in IN_EXPECTATION.values())
OF_PROCESS = frozenset({"unbiased-sampling", "independent-rounds", "jointly-independent-rounds"})
EQUAL = 1e-9  # relative difference up to which mean weights are 1/N


class WindowAccount(Account):
    """Norms and divergences of the weights so far."""

    def __init__(self, declared: Declared) -> None:
        super().__init__(declared)
        self.known = Within(1.0) if declared.offsets is None else Offsets(declared.offsets)
        N, J = declared.clients, len(declared.intervals)
        self.state = {
            "running": np.zeros((J, N)),
            "largest": np.zeros(J),
            "summed": np.zeros(J),
            "means": np.zeros((J, N)),  # sums over the windows of their mean weights, and of the squares of these
            "squares": np.zeros((J, N)),
            "uneven": np.zeros(J, bool),  # whether some window had other mean weights than 1/N
            "norms": np.array([np.inf, 0.0]),  # least and largest sum of squared weights
            "cohort": np.zeros(1),
            "no_sum": np.zeros(1, int),  # rounds whose weights do not sum to one
            "windows": np.zeros(J, int),  # complete ones
            "empty": np.zeros(1, int),  # rounds without participants, which are left out of everything else
        }

    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        state, norm = self.state, float(weights @ weights)
        if not norm:
            state["empty"] += 1
            return
        t -= int(state["empty"][0])
        state["norms"][...] = min(state["norms"][0], norm), max(state["norms"][1], norm)
        state["no_sum"] += abs(weights.sum() - 1) > SUM_TOLERANCE
        state["cohort"][0] = max(state["cohort"][0], self.known.spread(weights))
        state["running"] += weights
        for j, P in enumerate(self.declared.intervals):
            if (t + 1) % P == 0:
                mean = state["running"][j] / P
                pull = float(self.known.combined(mean[None])[0])
                state["largest"][j] = max(state["largest"][j], pull)
                state["summed"][j] += pull
                state["means"][j] += mean
                state["squares"][j] += mean**2
                state["uneven"][j] |= not np.allclose(mean, 1 / len(mean), rtol=EQUAL, atol=0)
                state["running"][j] = 0.0
                state["windows"][j] += 1

    def window_divergence(self, interval: int, d: float | None = None, *, average: bool = False) -> float:
        r"""$\tilde\delta^2(P)$ of the complete windows so far: the largest, as (7) is printed, or their mean.

        Source: Wang & Ji 2022, eq. (7) and, from d, the median in place of the mean of eq. (15).
        """
        j, windows = self._windows(interval)
        square = self.state["summed"][j] / windows if average else self.state["largest"][j]
        return float(square) * (1.0 if d is None or self.declared.offsets is not None else d**2)

    def window_variance(self, interval: int) -> np.ndarray:
        r"""The variance over windows of each client's mean weight, (clients,); times P, it estimates $\hat\upsilon^2$.

        Source: Wang & Ji 2022, Lemma 4.5; the method of batch means.
        """
        j, windows = self._windows(interval)
        return np.maximum(self.state["squares"][j] / windows - (self.state["means"][j] / windows) ** 2, 0.0)

    def _windows(self, interval: int) -> tuple[int, int]:
        """The place of an interval, and how many of its windows are complete."""
        if interval not in self.declared.intervals:
            known = ", ".join(map(str, self.declared.intervals))
            raise FedboundsError(f"interval = {interval} was not accounted: intervals are {known}")
        j = self.declared.intervals.index(interval)
        windows = int(self.state["windows"][j])
        if not windows:
            raise FedboundsError(f"interval = {interval}: no window of so many rounds is complete yet")
        return j, windows

    def quantities(self, rounds: int) -> dict[str, float]:
        """Largest and least participation norm, and of every interval with a complete window (7) and the variance."""
        if not rounds:
            return {}
        least, largest = np.sqrt(self.state["norms"]).tolist()
        found = {"participation norm": largest, "least participation norm": least}
        unit = "" if self.declared.offsets is not None else " over d^2"
        for P in self.declared.intervals[: np.count_nonzero(self.state["windows"])]:
            found[f"delta^2({P}){unit}"] = self.window_divergence(P)
            found[f"mean delta^2({P}){unit}"] = self.window_divergence(P, average=True)
            found[f"{P} Var of the mean weight"] = P * float(self.window_variance(P).mean())
        if empty := int(self.state["empty"][0]):
            found["rounds without participants"] = empty
        return found

    def facts(self, asked: AccountQuestion) -> AccountFacts:
        process, d = self.declared.process, None
        if self.declared.offsets is None:
            d = asked.given.get("gradient_divergence_sup")
        if asked.ahead and process is not None and process.stationary and process.sums_to_one:
            known = self.known if self.declared.offsets is not None else None if d is None else Within(d)
            constants = process_constants(process, known, asked.interval, np.array([asked.interval]))
            flat = {c: Constant(float(np.ravel(k.value)[0]), k.source, k.note) for c, k in constants.items()}
            many = 1 if known is None else len(BOUNDED)
            certain = process.certain(self.declared.intervals[-1])
            holds = (*EXPECTED[:many], *(BOUNDED[:many] if certain else ()))
            even = np.allclose(process.window_mean(0, asked.interval), 1 / self.declared.clients, rtol=EQUAL, atol=0)
            implied = _implied(process)
            known_of_it = dict.fromkeys(OF_PROCESS - implied, False) | {
                "regularized": bool(even and flat["window_mean_variance"].value <= EQUAL**2)
            }
            S = (
                1 / flat["participation_norm"].value ** 2
            )  # unless it is that of the law, S is of the rounds so far alone
            sizes = {
                c: k for c, k in self._sizes().items() if c == "clients" or np.isclose(k.value, S, rtol=EQUAL, atol=0)
            }
            return AccountFacts(flat | sizes, known_of_it, implied | {WEIGHTS.name, *holds}, trusting=True)
        j, _ = self._windows(asked.interval)
        source: Source = "estimated" if asked.ahead else "exact"
        since = "of the rounds so far" + (", which others may exceed" if asked.ahead else "")
        least, largest = np.sqrt(self.state["norms"])
        values = {"participation_norm": (largest, "largest root of the sum of squared weights")}
        if self.declared.offsets is not None or d is not None:
            scale = 1.0 if self.declared.offsets is not None else float(d or 0.0)
            word = self.known.word if d is None else self.known.word.replace("from d,", f"from d = {d:g},")
            pulls = np.sqrt(self.state["largest"])
            values |= {
                "participation_divergence": (scale * pulls[0], f"{word}left side of (5)"),
                "cohort_divergence": (
                    scale * float(np.sqrt(self.state["cohort"][0])),
                    f"{word}left side of (6)",
                ),
                "window_divergence": (
                    scale * pulls[j],
                    f"{word}left side of (7), largest over the complete windows",
                ),
            }
        found = {c: Constant(float(value), source, f"{what}, {since}") for c, (value, what) in values.items()}
        found["sum_of_squared_weights"] = Constant(float(least**2), source, f"the least {since}")
        checked = {WEIGHTS.name: not self.state["no_sum"][0], "regularized": not self.state["uneven"][j]}
        checked |= dict.fromkeys(BOUNDED if self.declared.offsets is not None else BOUNDED[:1], True)
        if asked.ahead:
            checked = {name: holds for name, holds in checked.items() if not holds}
        implied = frozenset[str]()
        if process is not None:
            implied = _implied(process)
            checked |= dict.fromkeys(OF_PROCESS - implied, False)
        if "window-variance" in implied:
            assert process is not None
            variance = np.diag(process.window_covariance(0, asked.interval)).max()
            found["window_mean_variance"] = Constant(float(variance), "exact", "of the declared process")
        others, outside, empty = int(self.state["no_sum"][0]), "", int(self.state["empty"][0])
        if empty and not asked.ahead:
            note = f"of {asked.rounds} rounds; {empty} without participants change nothing"
            found["rounds"] = Constant(float(asked.rounds - empty), "exact", note)
        if empty and asked.interval > 1 and asked.given.get("server_multiplier") != 1:
            checked[WEIGHTS.name] = False
            outside = (
                f"{empty} of {asked.rounds} rounds have no participants, so windows of {asked.interval} rounds are of "
                "unequal length if eta > 1: give eta=1, or interval=1"
            )
        if others:
            outside = (
                f"in {others} of {asked.rounds} rounds the weights do not sum to one, which the result needs: add() "
                "weights that do, or declare no process with normalize = false"
            )
        sizes = self._sizes(source)
        if asked.ahead and "participation_norm" in asked.given:
            sizes.pop("participating_clients", None)  # what the rounds so far have says nothing against it
        return AccountFacts(found | sizes, checked, implied, outside=outside, empty=empty)

    def _sizes(self, source: Source = "exact") -> dict[str, Constant]:
        N, (least, largest) = self.declared.clients, self.state["norms"]
        found = {"clients": Constant(float(N), "given", "declared")}
        S = 1 / largest if largest else 0.0
        if least == largest and abs(S - round(S)) < EQUAL * S:
            found["participating_clients"] = Constant(
                float(round(S)), source, "equal weights 1/S in every round so far"
            )
        return found

    def inconsistency(self, presences: Presences) -> str:
        state, T, lengths = self.state, presences.rounds, self.declared.intervals
        T -= int(state["empty"][0])
        if not 0 <= T <= presences.rounds:
            return f"{quote(int(state['empty'][0]))} rounds without participants"
        if state["windows"].tolist() != [T // P for P in lengths]:
            return f"{quote(state['windows'].tolist())} complete windows of {', '.join(map(str, lengths))} rounds"
        numbers = [values for name, values in state.items() if name != "norms" or T]
        if not all(np.isfinite(values).all() and (values >= 0).all() for values in numbers):
            return "sums of weights or divergences that are negative or not finite"
        if (T and state["norms"][0] > state["norms"][1]) or state["no_sum"][0] > T:
            return "sums of squared weights whose least is above the largest"
        if (state["summed"] > state["windows"] * state["largest"] * (1 + EQUAL)).any():
            return "a mean divergence above the largest"
        return ""


def _implied(process: Process) -> frozenset[str]:
    """What a process implies of the assumptions of the paper."""
    holds = {
        "unbiased-sampling": process.unbiased,
        "independent-rounds": process.independent_rounds,
        "jointly-independent-rounds": process.independent_rounds,
        "window-variance": process.stationary,
    }
    return frozenset(name for name, true in holds.items() if true)


ACCOUNT = WindowAccount
