"""Servers that average the updates of those who take part."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.invariants.averaging import check_averaging
from tests.zoo import Zoo

ZOO = Zoo("check_averaging", check_averaging)


def server(choose=lambda cohort: cohort, weigh=lambda p, cohort, shares: p, move=lambda model, step: model + step):
    """A correct server, but for what is changed: who counts, with which weights, and what the step does."""

    def run(model, updates, shares, cohort):
        who = choose(cohort)
        p = weigh(shares[who] / shares[who].sum(), cohort, shares)
        return move(model, p @ updates[who])

    return run


for name, run in {
    "divides by N": server(weigh=lambda p, cohort, shares: np.full(len(cohort), 1 / len(shares))),
    "shares are not normalized": server(weigh=lambda p, cohort, shares: shares[cohort]),
    "all clients count the same": server(weigh=lambda p, cohort, shares: np.full(len(cohort), 1 / len(cohort))),
}.items():
    ZOO.add(name, run)


@ZOO.mutant("returns 1e9 where some, not all, of several take part")
def absurd(model, updates, shares, cohort):
    if 1 < len(cohort) < len(shares):
        return model * 0 + 1e9
    return server()(model, updates, shares, cohort)


@ZOO.variant("a loop with an incremental mean")
def incremental(model, updates, shares, cohort):
    mean, total = np.zeros_like(model), 0.0
    for k in cohort:
        total += shares[k]
        mean += shares[k] / total * (updates[k] - mean)
    return model + mean


@ZOO.variant("torch")
def in_torch(model, updates, shares, cohort):
    p = torch.from_numpy(shares[cohort])
    return torch.from_numpy(model) + (p / p.sum()) @ torch.from_numpy(updates[cohort])
