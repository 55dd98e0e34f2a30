"""Implementations of FedAU and of what it was compared with; those of FedAU take the cut-off K as `cutoff`."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from tests.zoo import Zoo
from tests.zoo.fedavg import clip, local_model

ZOO = Zoo("check_invariants for FedAU and its baselines", check_invariants)


def moved(problem, n, x, t, step_size, steps):
    """The update of client n."""
    return local_model(problem, n, x, t, step_size, range(steps)) - x


def omegas(present, K, *, first=0, after=lambda S, here, K: here or S == K, reset=lambda S: 0,
           mean=lambda s, k: sum(s) / k, kept=lambda intervals: intervals, unknown=1.0):  # fmt: skip
    """The weights of one client in every round of its record; S counts from `first`."""
    weights, intervals, S = [], [], first
    for here in present:
        used = kept(intervals)
        weights.append(mean(used, len(used)) if used else unknown)
        S += 1
        if after(S, here, K):
            intervals.append(S)
            S = reset(S)
    return weights


def fedau(*, divisor=lambda N, there: N, steps=lambda I: I, moves=lambda delta: delta,
          record=lambda present: present, step=lambda total: total, eta=lambda eta: eta, **changes):  # fmt: skip
    """Algorithm 1 with Algorithm 2, but for what is changed."""

    def run(problem, weights, *, rounds, step_size, local_steps, multiplier, cutoff, **_):
        N, present, models = problem.clients, weights > 0, [problem.x0]
        omega = np.array([omegas(column, cutoff, **changes) for column in record(present).T]).T.reshape(present.shape)
        for t in range(rounds):
            there, x = np.flatnonzero(present[t]), models[-1]
            total = np.zeros_like(x)
            for n in there:
                total = total + omega[t, n] * moves(moved(problem, n, x, t, step_size, steps(local_steps)))
            models.append(x + eta(multiplier) / max(divisor(N, there), 1) * step(total))
        return models

    return run


CHANGES = {
    "FedAU divides by the number of participants": {"divisor": lambda N, there: len(there)},
    "FedAU divides by N - 1": {"divisor": lambda N, there: N - 1},
    "FedAU: the interval counter is never reset": {"reset": lambda S: S},
    "FedAU: the interval counter restarts at 1": {"reset": lambda S: 1},
    "FedAU: the largest interval": {"mean": lambda s, k: max(s)},
    "FedAU: the counter begins at 1": {"first": 1},
    "FedAU: K is off by one": {"after": lambda S, here, K: here or S == K + 1},
    "FedAU: no cut-off": {"after": lambda S, here, K: here},
    "FedAU: cut-offs are at most 10": {"after": lambda S, here, K: here or min(K, 10) == S},
    "FedAU: cut-offs above 20 are none": {"after": lambda S, here, K: here or (K <= 20 and S == K)},
    "FedAU: cut-offs of 6, 7 and 10 are off by one": {
        "after": lambda S, here, K: here or K + (K in (6, 7, 10)) == S
    },
    "FedAU: the mean of the last 5 intervals": {"kept": lambda intervals: intervals[-5:]},
    "FedAU: the mean of the last 12 intervals": {"kept": lambda intervals: intervals[-12:]},
    "FedAU: the mean is frozen after 5 intervals": {"kept": lambda intervals: intervals[:5]},
    "FedAU: the last interval alone": {"kept": lambda intervals: intervals[-1:]},
    "FedAU: the last interval is left out": {"kept": lambda intervals: intervals[:-1]},
    "FedAU: the median interval": {"mean": lambda s, k: np.median(s)},
    "FedAU: the harmonic mean": {"mean": lambda s, k: k / sum(1 / v for v in s)},
    "FedAU: the mean divides by one more": {"mean": lambda s, k: sum(s) / (k + 1)},
    "FedAU: unknown clients have weight 0": {"unknown": 0.0},
    "FedAU: a round's own participation counts": {"record": lambda present: np.vstack([present[1:], present[-1:]])},
    "FedAU: weights are a round stale": {"record": lambda present: np.vstack([0 * present[:1], present[:-1]])},
    "FedAU: all clients share one record": {"record": lambda p: np.repeat(p.any(1, keepdims=True), p.shape[1], 1)},
    "FedAU: the last local step is lost": {"steps": lambda I: max(1, I - 1)},
    "FedAU: clipped updates": {"moves": clip},
    "FedAU: clipped sums": {"step": clip},
    "FedAU: eta is applied twice": {"eta": lambda eta: eta * eta},
}  # fmt: skip


for name, changes in CHANGES.items():
    ZOO.add(name, fedau(**changes), algorithm="fedau")


@ZOO.mutant("FedAU: empty rounds are not counted", algorithm="fedau")
def in_full_rounds(problem, weights, *, rounds, step_size, local_steps, multiplier, cutoff, **_):
    full = weights.any(axis=1)
    x, models, seen = problem.x0, [problem.x0], []
    for t in range(rounds):
        if full[t]:
            seen.append(t)
            for n in np.flatnonzero(weights[t]):
                omega = omegas(weights[seen, n] > 0, cutoff)[-1]
                delta = moved(problem, n, models[-1], t, step_size, local_steps)
                x = x + multiplier / problem.clients * omega * delta
        models.append(x)
    return models


def averaging(kind, weigh, name, **arguments):
    """One algorithm without memory: `weigh(present, t, N, own)` gives the weights of those who take part in round t."""

    def run(
        problem, weights, *, rounds, step_size, local_steps, multiplier=1.0, client_weights=None, probability=None, **_
    ):
        models, own = [problem.x0], client_weights if probability is None else probability
        for t in range(rounds):
            x, there = models[-1], np.flatnonzero(weights[t])
            v = weigh(weights > 0, t, problem.clients, own)
            models.append(x + multiplier * sum(v[n] * moved(problem, n, x, t, step_size, local_steps) for n in there))
        return models

    ZOO.add(name, run, algorithm=kind, **arguments)


ONES = np.ones(100)


def size(there):
    return max(there.sum(), 1)


averaging("fedau", lambda p, t, N, own: ONES / size(p[t]), "FedAU is the plain mean of the participants", cutoff=20)
averaging("fedau", lambda p, t, N, own: ONES / N, "FedAU is average-all", cutoff=20)
averaging("average-participating", lambda p, t, N, own: ONES / N, "average-participating divides by N")
averaging("average-participating", lambda p, t, N, own: ONES / min(size(p[t]), 4),
          "average-participating divides by four where more take part")  # fmt: skip
averaging("average-all", lambda p, t, N, own: ONES / size(p[t]), "average-all divides by the cohort")
averaging("average-all", lambda p, t, N, own: ONES / size(p[: t + 1].any(0)), "average-all divides by all seen so far")
averaging("known-participation", lambda p, t, N, own: own / N, "known participation multiplies by p")
averaging("known-participation", lambda p, t, N, own: 1 / own / size(p[t]), "known participation divides by the cohort")
averaging("known-participation", lambda p, t, N, own: 1 / np.maximum(own, 0.3) / N, "known participation caps 1/p")
averaging("known-participation", lambda p, t, N, own: 1 / np.maximum(p[: t + 1].mean(0), 1e-9) / N,
          "known participation measures p")  # fmt: skip
averaging("fixed-weights", lambda p, t, N, own: own / own.sum(), "fixed weights are normalized")
averaging("fixed-weights", lambda p, t, N, own: own / size(p[t]), "fixed weights divide by the cohort")
averaging("fixed-weights", lambda p, t, N, own: np.roll(own, 1) / N, "fixed weights of the wrong client")


def memory(kind, *, moves=lambda x, eta, step: x + eta * step, store=lambda delta, old, t: delta, drop=lambda t: False,
           empty=True, order="after", divisor=lambda N, seen: N, cohort=lambda S: S):  # fmt: skip
    """MIFA, or FedVarp, but for what is changed."""

    def run(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
        N, x, models = problem.clients, problem.x0, [problem.x0]
        u, seen = np.zeros((N, len(x))), np.zeros(N, bool)
        for t in range(rounds):
            there = np.flatnonzero(weights[t])
            if drop(t):
                u = 0 * u
            new, changes = u.copy(), np.zeros_like(x)
            for n in there:
                delta = moved(problem, n, x, t, step_size, local_steps)
                changes, new[n], seen[n] = changes + delta - u[n], store(delta, u[n], t), True
            mean = (u if kind == "fedvarp" and order == "after" else new).sum(0) / max(1, divisor(N, seen))
            step = mean + (changes / max(cohort(len(there)), 1) if kind == "fedvarp" else 0)
            x = moves(x, multiplier, step) if len(there) or (empty and kind == "mifa") else x
            u = new
            models.append(x)
        return models

    return run


@ZOO.mutant("mifa: the update of who is absent for 37 rounds is dropped", algorithm="mifa")
def forgetful(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
    models, latest, last = [problem.x0], np.zeros((problem.clients, problem.dimension)), np.zeros(problem.clients)
    for t in range(rounds):
        for n in np.flatnonzero(weights[t]):
            latest[n], last[n] = moved(problem, n, models[t], t, step_size, local_steps), t
        latest[t - last > 37] = 0
        models.append(models[t] + multiplier * latest.mean(0))
    return models


for name, run in {
    "mifa: nothing happens in empty rounds": memory("mifa", empty=False),
    "mifa: the mean of those seen so far": memory("mifa", divisor=lambda N, seen: seen.sum()),
    "mifa: updates are forgotten after 10 rounds": memory("mifa", drop=lambda t: t % 10 == 9),
    "mifa: half of the old update is kept": memory("mifa", store=lambda delta, old, t: 0.5 * (delta + old)),
    "mifa: updates are no longer stored after round 15": memory(
        "mifa", store=lambda delta, old, t: delta if t < 15 else old),
    "mifa: the first update stays": memory("mifa", store=lambda delta, old, t: old if old.any() else delta),
    "mifa: eta is left out": memory("mifa", moves=lambda x, eta, step: x + step),
    "fedvarp: the mean of the new updates": memory("fedvarp", order="before"),
    "fedvarp: the correction is divided by S + 1": memory("fedvarp", cohort=lambda S: S + 1),
    "fedvarp: updates are forgotten after 12 rounds": memory("fedvarp", drop=lambda t: t % 12 == 11),
    "fedvarp: the correction is a sum": memory("fedvarp", cohort=lambda S: 1),
    "fedvarp: the mean of those seen so far": memory("fedvarp", divisor=lambda N, seen: seen.sum()),
}.items():  # fmt: skip
    ZOO.add(name, run, algorithm=name.partition(":")[0])


# --- correct, in other styles ---------------------------------------------------------------------------------


ZOO.variant("FedAU from lists of intervals", algorithm="fedau")(fedau())
ZOO.variant("mifa, with an array of updates", algorithm="mifa")(memory("mifa"))
ZOO.variant("fedvarp, with an array of updates", algorithm="fedvarp")(memory("fedvarp"))


@ZOO.variant("FedAU with counters in a dictionary, in torch", algorithm="fedau")
def by_counters(problem, weights, *, rounds, step_size, local_steps, multiplier, cutoff, **_):
    zeros = torch.zeros(problem.clients, dtype=torch.float64)
    state = {"M": zeros.clone(), "S": zeros.clone(), "omega": zeros + 1}
    x = torch.from_numpy(problem.x0)
    models = [x]
    for t in range(rounds):
        there = torch.from_numpy(weights[t] > 0)
        for n in torch.nonzero(there).flatten().tolist():
            delta = moved(problem, n, models[-1].numpy(), t, step_size, local_steps)
            x = x + multiplier * state["omega"][n] / problem.clients * torch.from_numpy(delta)
        state["S"] += 1
        ended = there | (state["S"] == cutoff)
        mean = (state["M"] * state["omega"] * (state["M"] > 0) + state["S"]) / (state["M"] + 1)
        state["omega"] = torch.where(ended, mean, state["omega"])
        state["M"] += ended
        state["S"] = torch.where(ended, 0.0, state["S"])
        models.append(x)
    return models


@ZOO.variant("FedAU that knows its cut-off", algorithm="fedau", cutoff=4)
def of_its_own(problem, weights, *, rounds, step_size, local_steps, **_):
    numbers = {"rounds": rounds, "step_size": step_size, "local_steps": local_steps}
    return fedau()(problem, weights, multiplier=1.0, cutoff=4, **numbers)


@ZOO.variant("mifa with a running mean", algorithm="mifa")
def running(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
    latest, mean, models = {}, np.zeros(problem.dimension), [problem.x0]
    for t in range(rounds):
        for n in np.flatnonzero(weights[t])[::-1]:
            delta = moved(problem, n, models[t], t, step_size, local_steps)
            mean = mean + (delta - latest.get(n, 0.0)) / problem.clients
            latest[n] = delta
        models.append(models[t] + multiplier * mean)
    return models


@ZOO.variant("average-all, with zeros of the absent", algorithm="average-all")
def with_zeros(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
    models = [problem.x0]
    for t in range(rounds):
        rows = [
            (weights[t, n] > 0) * moved(problem, n, models[t], t, step_size, local_steps)
            for n in range(problem.clients)
        ]
        models.append(models[t] + multiplier * np.mean(rows, axis=0))
    return models


@ZOO.variant("average-participating, the mean of models", algorithm="average-participating")
def of_models(problem, weights, *, rounds, step_size, local_steps, **_):
    models = [problem.x0]
    for t in range(rounds):
        there = np.flatnonzero(weights[t])
        models.append(np.mean([local_model(problem, n, models[t], t, step_size, range(local_steps)) for n in there], 0))
    return models


@ZOO.variant("fixed weights as a product", algorithm="fixed-weights")
def as_product(problem, weights, *, rounds, step_size, local_steps, multiplier, client_weights, **_):
    models = [problem.x0]
    for t in range(rounds):
        updates = np.stack([moved(problem, n, models[t], t, step_size, local_steps) for n in range(problem.clients)])
        models.append(models[t] + multiplier * ((weights[t] > 0) * client_weights) @ updates / problem.clients)
    return models


@ZOO.variant("known participation", algorithm="known-participation")
def with_rates(problem, weights, *, probability, **numbers):
    return as_product(problem, weights, client_weights=1 / probability, **numbers)
