"""Estimators of FedAU's weights."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.fedau.invariants import check_weights
from tests.zoo import Zoo
from tests.zoo.fedau import omegas

ZOO = Zoo("check_weights", check_weights)


def estimator(read=lambda present: present, **changes):
    """A correct estimator, but for what is changed."""

    def run(participated, cutoff):
        columns = [omegas(column, cutoff, **changes) for column in read(participated).T]
        return np.array(columns, dtype=float).T.reshape(participated.shape)

    return run


def ring(size):
    return {"kept": lambda intervals: intervals[-size:]}


def frozen(after):
    return {"kept": lambda intervals: intervals[:after]}


CHANGES = {
    **{f"the mean of the last {size} intervals": ring(size) for size in (1, 3, 5, 8, 12, 20)},
    **{f"the mean is frozen after {after} intervals": frozen(after) for after in (1, 3, 5, 10, 20)},
    "the counter is never reset": {"reset": lambda S: S},
    "the counter restarts at 1": {"reset": lambda S: 1},
    "the counter begins at 1": {"first": 1},
    "K is off by one": {"after": lambda S, here, K: here or S == K + 1},
    "K - 1": {"after": lambda S, here, K: here or max(1, K - 1) == S},
    "no cut-off": {"after": lambda S, here, K: here},
    "cut-offs are at most 10": {"after": lambda S, here, K: here or min(K, 10) == S},
    "only participation that is due counts": {"after": lambda S, here, K: (here and S > 1) or S == K},
    "the median": {"mean": lambda s, k: np.median(s)},
    "the largest": {"mean": lambda s, k: max(s)},
    "the mean divides by one more": {"mean": lambda s, k: sum(s) / (k + 1)},
    "the mean divides by at most 15": {"mean": lambda s, k: sum(s) / min(k, 15)},
    "integer division": {"mean": lambda s, k: sum(s) // k},
    "means below 1.05 are 1": {"mean": lambda s, k: 1 if sum(s) / k < 1.05 else sum(s) / k},
    "weights are at most 12": {"mean": lambda s, k: min(sum(s) / k, 12)},
    "unknown clients have weight 0": {"unknown": 0.0},
    "the last interval is a round stale": {"read": lambda p: np.vstack([0 * p[:1], p[:-1]])},
    "a round's own participation counts": {"read": lambda p: np.vstack([p[1:], p[-1:]])},
    "the third client has the record of the first": {
        "read": lambda p: np.where(np.arange(p.shape[1]) == 2, p[:, :1], p)
    },
    "records are read modulo 16 rounds": {"read": lambda p: p[np.arange(len(p)) % 16]},
    "cut-offs above 25 are none": {"after": lambda S, here, K: here or (K <= 25 and S == K)},
    "cut-offs are at most 60": {"after": lambda S, here, K: here or min(K, 60) == S},
    "cut-offs of 4, 6, 7 and 10 are off by one": {"after": lambda S, here, K: here or K + (K in (4, 6, 7, 10)) == S},
    "the sum of intervals has a byte": {"mean": lambda s, k: (sum(s) + 128) % 256 / k - 128 / k},
    "intervals have a byte": {"mean": lambda s, k: sum((each + 128) % 256 - 128 for each in s) / k},
    "state is lost after 25 rounds": {"mean": lambda s, k: (sum(s) / k) if sum(s) < 25 else s[-1]},
}  # fmt: skip
for name, changes in CHANGES.items():
    ZOO.add(name, estimator(**changes))


@ZOO.mutant("the inverse of the rate so far")
def inverse_rate(participated, cutoff):
    t = np.arange(len(participated))[:, None]
    count = np.vstack([0 * participated[:1], np.cumsum(participated, axis=0)[:-1]])
    return np.where(count > 0, np.minimum(t / np.maximum(count, 1), cutoff), 1.0)


@ZOO.mutant("an exponentially weighted mean")
def exponential(participated, cutoff):
    return estimator(mean=lambda s, k: s[0] if k == 1 else 0.5 * s[-1] + 0.5 * np.mean(s[:-1]))(participated, cutoff)


@ZOO.mutant("the weights of a client depend on the others")
def normalized(participated, cutoff):
    omega = estimator()(participated, cutoff)
    return omega / omega.mean(axis=1, keepdims=True)


@ZOO.mutant("the record is changed in place")
def in_place(participated, cutoff):
    omega = estimator()(participated, cutoff)
    participated[-1] = True
    return omega


@ZOO.mutant("a cache of the last record is never emptied")
def cached(participated, cutoff, kept={}):  # noqa: B006
    return kept.setdefault((participated.shape, cutoff), estimator()(participated, cutoff))


ZOO.variant("lists of intervals")(estimator())


@ZOO.variant("counters, in torch")
def counters(participated, cutoff):
    present = torch.from_numpy(participated)
    M, S = (torch.zeros(present.shape[1]).double() for _ in range(2))
    omega, rows = torch.ones_like(M), []
    for here in present:
        rows.append(omega)
        S = S + 1
        ended = here | (cutoff == S)
        if ended.any():
            omega = torch.where(ended, (M * omega + S) / (M + 1), omega)
            M, S = M + ended, S * ~ended
    return torch.stack(rows)


@ZOO.variant("rounds over intervals, by the last end")
def by_ends(participated, cutoff):
    T, N = participated.shape
    omega = np.ones((T, N))
    for n in range(N):
        ends, last = 0, 0
        for t in range(T):
            omega[t, n] = last / ends if ends else 1.0
            if participated[t, n] or t + 1 - last == cutoff:
                ends, last = ends + 1, t + 1
    return omega


class Estimator:
    """One client's state."""

    def __init__(self, cutoff):
        self.state = {"count": 0, "mean": 1.0, "since": 0, "cutoff": cutoff}

    def step(self, here):
        used, state = self.state["mean"], self.state
        state["since"] += 1
        if here or state["since"] == state["cutoff"]:
            state["count"] += 1
            state["mean"] += (state["since"] - state["mean"] * (state["count"] > 0)) / state["count"]
            state["since"] = 0
        return used


@ZOO.variant("a class with state and an incremental mean")
def by_class(participated, cutoff):
    return np.array([[client.step(here) for here in column] for client, column in
                     ((Estimator(cutoff), column) for column in participated.T)]).T.tolist()  # fmt: skip


@ZOO.variant("single precision")
def single(participated, cutoff):
    return estimator()(participated, cutoff).astype(np.float32)
