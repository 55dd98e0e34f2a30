"""Implementations of generalized FedAvg: a plain one with one thing changed, and others in full."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from tests.zoo import Zoo

ZOO = Zoo("check_invariants for generalized FedAvg", check_invariants)


def local_model(problem, n, x, t, step_size, steps):
    """y after these local steps (numbers i) of client n from x."""
    y = x
    for i in steps:
        y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
    return y


def fedavg(
    *,
    steps=lambda I, t: range(I),
    rate=lambda gamma, t, i: gamma,
    gradient=lambda problem, n, y, x: problem.gradient(n, y),
    noise=lambda problem, t, n, i: problem.noise(t, n, i),
    weight=lambda q, t, n: q[t, n],
    who=lambda row, t: np.flatnonzero(row),
    start=lambda x, past, n: x,
    update=lambda delta, n, t: delta,
    step=lambda total, t: total,
    ends=lambda t, P, T: (t + 1) % P == 0,
    amplify=lambda x, u, eta, k: x + (eta - 1) * u,
    keep=lambda u, k: 0.0 * u,
):
    """Algorithm 1 as it should be, but for what is changed."""

    def run(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed):
        x, models, u, k = problem.x0, [problem.x0], np.zeros(problem.dimension), 0
        for t in range(rounds):
            total = np.zeros_like(x)
            for n in who(weights[t], t):
                first = y = start(x, models, n)
                for i in steps(local_steps, t):
                    y = y - rate(step_size, t, i) * (gradient(problem, n, y, first) + noise(problem, t, n, i))
                total = total + weight(weights, t, n) * update(y - first, n, t)
            total = step(total, t)
            x, u = x + total, u + total
            if ends(t, interval, rounds):
                x, u, k = amplify(x, u, multiplier, k), keep(u, k), k + 1
            models.append(x)
        return np.array(models)

    return run


def clip(v, most=0.5):
    return v * min(1.0, most / max(np.linalg.norm(v), 1e-300))


def in_half(v):
    """The numbers in half precision, without infinities."""
    return np.clip(v, -65504, 65504).astype(np.float16).astype(float)


CHANGES = {
    "the step size halves after round 60": {"rate": lambda gamma, t, i: gamma / (1 + (t >= 60))},
    "local steps beyond the tenth do not count": {"steps": lambda I, t: range(min(I, 10))},
    "weights below 0.005 are zero": {"who": lambda row, t: np.flatnonzero(row > 0.005)},
    "gradients are clipped at norm 100": {"gradient": lambda problem, n, y, x: clip(problem.gradient(n, y), 100)},
    "updates are clipped at norm 20": {"update": lambda delta, n, t: clip(delta, 20)},
    "updates in half precision": {"update": lambda delta, n, t: in_half(delta)},
    "entries of updates below 1e-5 are dropped": {"update": lambda delta, n, t: delta * (np.abs(delta) >= 1e-5)},
    "coordinates from the fifth on do not move": {"update": lambda delta, n, t: delta * (np.arange(len(delta)) < 4)},
    "at most eight participants": {"who": lambda row, t: np.flatnonzero(row)[:8]},
    "eta is rounded": {"amplify": lambda x, u, eta, k: x + (round(eta) - 1) * u},
    "eta is at least one half": {"amplify": lambda x, u, eta, k: x + (max(eta, 0.5) - 1) * u},
    "the last local step is lost": {"steps": lambda I, t: range(I - 1)},
    "the last local step is lost where I > 4": {"steps": lambda I, t: range(I - (I > 4))},
    "local steps from the sixth on do not count": {"steps": lambda I, t: range(min(I, 5))},
    "local steps from the ninth on take twice the step size": {"rate": lambda gamma, t, i: gamma * (1 + (i >= 8))},
    "the step size decays after round 12": {"rate": lambda gamma, t, i: gamma / (1 + max(0, t - 12))},
    "the step size halves after round 30": {"rate": lambda gamma, t, i: gamma / (1 + (t >= 30))},
    "the local step size is divided by I": {"rate": lambda gamma, t, i: gamma / (1 + i)},
    "gradients are taken at the received model": {"gradient": lambda problem, n, y, x: problem.gradient(n, x)},
    "gradients are clipped": {"gradient": lambda problem, n, y, x: clip(problem.gradient(n, y))},
    "a proximal term of FedProx": {"gradient": lambda problem, n, y, x: problem.gradient(n, y) + 0.1 * (y - x)},
    "one noise for all clients": {"noise": lambda problem, t, n, i: problem.noise(t, 0, i)},
    "one noise for all rounds": {"noise": lambda problem, t, n, i: problem.noise(0, n, i)},
    "one noise for local steps from the fourth on": {"noise": lambda problem, t, n, i: problem.noise(t, n, min(i, 3))},
    "the noise is subtracted": {"noise": lambda problem, t, n, i: -problem.noise(t, n, i)},
    "the weight is 1/N": {"weight": lambda q, t, n: 1 / q.shape[1]},
    "the weight is one over the size of the cohort": {"weight": lambda q, t, n: 1 / (q[t] > 0).sum()},
    "weights of the round before": {"weight": lambda q, t, n: q[t - 1, n]},
    "weights are frozen after 10 rounds": {"weight": lambda q, t, n: q[min(t, 9), n]},
    "weights are read modulo 16 rounds": {"weight": lambda q, t, n: q[t % 16, n]},
    "the cohort has at most five": {"who": lambda row, t: np.flatnonzero(row)[:5]},
    "a cohort of six or more loses its first": {"who": lambda row, t: (w := np.flatnonzero(row))[len(w) > 5 :]},
    "the seventh client never takes part": {"who": lambda row, t: np.flatnonzero(row[:6])},
    "clients start from the model of the round before": {"start": lambda x, past, n: past[-2] if len(past) > 1 else x},
    "the fifth client starts from the first model": {"start": lambda x, past, n: past[0] if n == 4 else x},
    "updates are clipped before the average": {"update": lambda delta, n, t: clip(delta)},
    "the average is clipped": {"step": lambda total, t: clip(total)},
    "tiny steps are dropped": {"step": lambda total, t: total * (np.abs(total).max() > 1e-3)},
    "P is off by one: intervals of P + 1 rounds": {"ends": lambda t, P, T: (t + 1) % (P + 1) == 0},
    "intervals are at most 4 rounds": {"ends": lambda t, P, T: (t + 1) % min(P, 4) == 0},
    "intervals are at most 7 rounds": {"ends": lambda t, P, T: (t + 1) % min(P, 7) == 0},
    "rounds are counted modulo 32": {"ends": lambda t, P, T: (t % 32 + 1) % P == 0},
    "the interval ends a round early": {"ends": lambda t, P, T: t % P == P - 2 if P > 1 else True},
    "the incomplete last interval is amplified": {"ends": lambda t, P, T: (t + 1) % P == 0 or t + 1 == T},
    "eta in place of eta - 1": {"amplify": lambda x, u, eta, k: x + eta * u},
    "eta is applied twice": {"amplify": lambda x, u, eta, k: x + (eta * eta - 1) * u},
    "no amplification after three intervals": {"amplify": lambda x, u, eta, k: x + (k < 3) * (eta - 1) * u},
    "no amplification": {"amplify": lambda x, u, eta, k: x},
    "the accumulator is never reset": {"keep": lambda u, k: u},
    "a tenth of the accumulator is kept": {"keep": lambda u, k: 0.1 * u},
    "the accumulator is not reset after the fourth interval": {"keep": lambda u, k: u * (k >= 3)},
}  # fmt: skip
for name, changes in CHANGES.items():
    ZOO.add(name, fedavg(**changes))


@ZOO.mutant("participants one after the other")
def in_sequence(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed):
    models, anchor = [problem.x0], problem.x0
    for t in range(rounds):
        x = models[-1]
        for n in np.flatnonzero(weights[t]):
            x = x + weights[t, n] * (local_model(problem, n, x, t, step_size, range(local_steps)) - x)
        if (t + 1) % interval == 0:
            x = anchor = anchor + multiplier * (x - anchor)
        models.append(x)
    return models


@ZOO.mutant("momentum leaks from one run into the next")
def leaking(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed, kept=[0.0]):  # noqa: B006
    kept[0] = 0.5 * kept[0] + 0.01
    return fedavg()(
        problem, weights, rounds=rounds, step_size=step_size * (1 + kept[0]), local_steps=local_steps,
        multiplier=multiplier, interval=interval, seed=seed,
    )  # fmt: skip


@ZOO.mutant("the step size halves after 100 local steps in all")
def halving(problem, weights, *, local_steps, **numbers):
    def rate(gamma, t, i):
        return gamma / (1 + (t * local_steps + i >= 100))

    return fedavg(rate=rate)(problem, weights, local_steps=local_steps, **numbers)


@ZOO.mutant("server momentum")
def heavy_ball(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed):
    v = [np.zeros(problem.dimension)]

    def step(total, t):
        v[0] = 0.3 * v[0] + total
        return v[0]

    numbers = {"step_size": step_size, "local_steps": local_steps, "multiplier": multiplier, "interval": interval}
    return fedavg(step=step)(problem, weights, rounds=rounds, seed=seed, **numbers)


@ZOO.mutant("the weights are consumed: it sets them to zero in place")
def consuming(problem, weights, **numbers):
    models = fedavg()(problem, weights, **numbers)
    weights[:] = 0
    return models


@ZOO.mutant("all rounds return the last model")
def aliased(problem, weights, **numbers):
    models = fedavg()(problem, weights, **numbers)
    return [models[-1]] * len(models)


@ZOO.mutant("the seed shifts the start")
def seeded(problem, weights, *, seed, **numbers):
    models = fedavg()(problem, weights, seed=seed, **numbers)
    models[1:] += 1e-3 * np.random.default_rng(seed).normal(size=models.shape[1])
    return models


# --- correct, in other styles ---------------------------------------------------------------------------------


ZOO.variant("a loop with an accumulator")(fedavg())


@ZOO.variant("an incremental mean in another order, with an anchor")
def incremental(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    models, anchor = [problem.x0], problem.x0
    for t in range(rounds):
        mean, total = models[-1].copy(), 0.0
        for n in np.flatnonzero(weights[t])[::-1]:
            total += weights[t, n]
            y = local_model(problem, n, models[-1], t, step_size, range(local_steps))
            mean += weights[t, n] / total * (y - mean)
        x = models[-1] + total * (mean - models[-1])
        if (t + 1) % interval == 0:
            x = anchor = anchor + multiplier * (x - anchor)
        models.append(x)
    return models


@ZOO.variant("all clients at once, in torch")
def in_torch(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    q, N = torch.from_numpy(weights), problem.clients
    state = {"x": torch.from_numpy(problem.x0), "u": torch.zeros(problem.dimension, dtype=torch.float64)}
    models = [state["x"]]
    for t in range(rounds):
        Y = state["x"].repeat(N, 1)
        for i in range(local_steps):
            G = np.stack([problem.gradient(n, Y[n]) + problem.noise(t, n, i) for n in range(N)])
            Y = Y - step_size * torch.from_numpy(G)
        moved = q[t] @ (Y - state["x"])
        state = {"x": state["x"] + moved, "u": state["u"] + moved}
        if (t + 1) % interval == 0:
            state = {"x": state["x"] + (multiplier - 1) * state["u"], "u": torch.zeros_like(state["u"])}
        models.append(state["x"])
    return models


class Trainer:
    """A class whose state is made anew in every run."""

    def __init__(self, problem, weights, rounds, step_size, local_steps, multiplier, interval, seed):
        self.problem, self.weights, self.numbers = problem, weights, (step_size, local_steps, multiplier, interval)
        self.x, self.anchor, self.t = problem.x0, problem.x0, 0
        self.models = [self.x, *(self.round() for _ in range(rounds))]

    def round(self):
        step_size, local_steps, multiplier, interval = self.numbers
        locals_ = [
            local_model(self.problem, n, self.x, self.t, step_size, range(local_steps))
            for n in range(self.problem.clients)
        ]
        q = self.weights[self.t]
        self.x = self.x * (1 - q.sum()) + np.einsum("n,nd->d", q, np.stack(locals_))
        self.t += 1
        if self.t % interval == 0:
            self.x = self.anchor = self.anchor * (1 - multiplier) + multiplier * self.x
        return self.x


@ZOO.variant("a class with state")
def by_class(problem, weights, **numbers):
    return Trainer(problem, weights, **numbers).models


@ZOO.variant("plain FedAvg, which names no multiplier and no interval")
def plain(problem, weights, *, rounds, step_size, local_steps, **_):
    models = [problem.x0]
    for t in range(rounds):
        y = {
            n: local_model(problem, n, models[-1], t, step_size, range(local_steps)) for n in np.flatnonzero(weights[t])
        }
        models.append(sum(weights[t, n] * y[n] for n in y))
    return models


@ZOO.variant("exact gradients, in single precision")
def single(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    x = anchor = problem.x0.astype(np.float32)
    models = [x]
    for t in range(rounds):
        total = np.zeros_like(x)
        for n in np.flatnonzero(weights[t]):
            y = x
            for _ in range(local_steps):
                y = y - np.float32(step_size) * problem.gradient(n, y).astype(np.float32)
            total = total + np.float32(weights[t, n]) * (y - x)
        x = x + total
        if (t + 1) % interval == 0:
            x = anchor = anchor + np.float32(multiplier) * (x - anchor)
        models.append(x)
    return models
