"""Implementations of FedAdam, FedProx, FedNova, SCAFFOLD and EF21: plain ones with one thing changed, and others."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from tests.zoo import Zoo
from tests.zoo.fedavg import clip, local_model

ZOO = Zoo("check_invariants for FedAdam, FedProx, FedNova, SCAFFOLD and EF21", check_invariants)


def mean_update(problem, x, row, t, step_size, local_steps):
    """The weighted sum of the updates of local SGD."""
    there = np.flatnonzero(row)
    return sum((row[n] * (local_model(problem, n, x, t, step_size, range(local_steps)) - x) for n in there), 0 * x)


def fedadam(*, start=lambda tau: tau**2, first=lambda m, beta1, k: m, scale=lambda v, tau: np.sqrt(v) + tau,
            second=lambda v, delta, beta2: beta2 * v + (1 - beta2) * delta**2):  # fmt: skip
    """Adam at the server, but for what is changed."""

    def run(problem, weights, *, step_size, local_steps, server_step_size, beta1, beta2, tau, **_):
        models, m, v = [problem.x0], 0.0, start(tau)
        for t, row in enumerate(weights):
            delta = mean_update(problem, models[-1], row, t, step_size, local_steps)
            m, v = beta1 * m + (1 - beta1) * delta, second(v, delta, beta2)
            models.append(models[-1] + server_step_size * first(m, beta1, t + 1) / scale(v, tau))
        return models

    return run


def fedprox(*, pull=lambda mu, y, x, x0: mu * (y - x), after=lambda delta, mu, step_size: delta,
            first=lambda i: True):  # fmt: skip
    """Local steps with a proximal term, but for what is changed."""

    def run(problem, weights, *, step_size, local_steps, proximal_mu, **_):
        models = [problem.x0]
        for t, row in enumerate(weights):
            x, total = models[-1], np.zeros(problem.dimension)
            for n in np.flatnonzero(row):
                y = x
                for i in range(local_steps):
                    near = pull(proximal_mu, y, x, problem.x0) if first(i) else 0
                    y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i) + near)
                total = total + row[n] * after(y - x, proximal_mu, step_size)
            models.append(x + total)
        return models

    return run


def fednova(*, effective=lambda tau, row: tau.mean(), divisor=lambda tau, n: tau[n], weight=lambda row, n: row[n],
            steps=lambda tau, n: tau[n]):  # fmt: skip
    """Normalized averaging, but for what is changed."""

    def run(problem, weights, *, step_size, client_steps, **_):
        models, tau = [problem.x0], client_steps
        for t, row in enumerate(weights):
            x, total = models[-1], np.zeros(problem.dimension)
            for n in np.flatnonzero(row):
                delta = local_model(problem, n, x, t, step_size, range(steps(tau, n))) - x
                total = total + weight(row, n) * delta / divisor(tau, n)
            models.append(x + effective(tau, row) * total)
        return models

    return run


def scaffold(*, shift=lambda c, own: c - own, kept=lambda c, own, descent, gradient: own - c + descent,
             divisor=lambda I, step_size: I * step_size, share=lambda N, S: 1 / N, mean=lambda S, N: S,
             eta=lambda eta: eta):  # fmt: skip
    """Control variates, but for what is changed."""

    def run(problem, weights, *, step_size, local_steps, multiplier, **_):
        N, models = problem.clients, [problem.x0]
        c, own = np.zeros(problem.dimension), np.zeros((N, problem.dimension))
        for t, row in enumerate(weights):
            x, there = models[-1], np.flatnonzero(row)
            total, change = np.zeros_like(x), np.zeros_like(x)
            for n in there:
                y = x
                for i in range(local_steps):
                    y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i) + shift(c, own[n]))
                descent = (x - y) / divisor(local_steps, step_size)
                new = kept(c, own[n], descent, problem.gradient(n, x))
                total, change, own[n] = total + (y - x), change + new - own[n], new
            models.append(x + eta(multiplier) * total / max(mean(len(there), N), 1))
            c = c + share(N, max(len(there), 1)) * change
        return models

    return run


def top(v, k):
    """The k entries of largest magnitude."""
    kept = np.zeros_like(v)
    where = np.argsort(-np.abs(v), kind="stable")[:k]
    kept[where] = v[where]
    return kept


def ef21(*, count=lambda share, d: max(1, int(np.ceil(round(share * d, 9)))), compress=top,
         target=lambda gradient, own: gradient - own, start=lambda problem, n, k: np.zeros(problem.dimension),
         divisor=lambda N, S: N, moves=lambda S: True, late=False):  # fmt: skip
    """Error feedback, but for what is changed."""

    def run(problem, weights, *, step_size, share, **_):
        N, models, k = problem.clients, [problem.x0], count(share, problem.dimension)
        g = np.stack([start(problem, n, k) for n in range(N)])
        for row in weights:
            x, there, before = models[-1], np.flatnonzero(row), g.copy()
            for n in there:
                g[n] = g[n] + compress(target(problem.gradient(n, x), g[n]), k)
            used = before if late else g
            models.append(x - step_size * used.sum(0) / max(divisor(N, len(there)), 1) if moves(len(there)) else x)
        return models

    return run


MUTANTS = {
    "fedadam: the moments begin at zero": fedadam(start=lambda tau: 0.0),
    "fedadam: bias correction": fedadam(first=lambda m, beta1, k: m / (1 - beta1**k)),
    "fedadam: tau inside the root": fedadam(scale=lambda v, tau: np.sqrt(v + tau**2)),
    "fedadam: the second moment is that of Yogi": fedadam(
        second=lambda v, delta, beta2: v - (1 - beta2) * delta**2 * np.sign(v - delta**2)),
    "fedprox: no proximal term": fedprox(pull=lambda mu, y, x, x0: 0.0),
    "fedprox: twice the proximal term": fedprox(pull=lambda mu, y, x, x0: 2 * mu * (y - x)),
    "fedprox: pushed away": fedprox(pull=lambda mu, y, x, x0: mu * (x - y)),
    "fedprox: pulled to the first model": fedprox(pull=lambda mu, y, x, x0: mu * (y - x0)),
    "fedprox: pulled to zero": fedprox(pull=lambda mu, y, x, x0: mu * y),
    "fedprox: the proximal step is taken once, at the end": fedprox(
        pull=lambda mu, y, x, x0: 0.0, after=lambda delta, mu, step_size: delta / (1 + mu * step_size)),
    "fedprox: no proximal term after the third local step": fedprox(first=lambda i: i < 3),
    "fednova: FedAvg": fednova(divisor=lambda tau, n: 1, effective=lambda tau, row: 1),
    "fednova: the mean gradient, without effective steps": fednova(effective=lambda tau, row: 1),
    "fednova: the effective steps are the largest": fednova(effective=lambda tau, row: tau.max()),
    "fednova: the effective steps are those of the participants": fednova(effective=lambda tau, row: row @ tau),
    "fednova: the first client's steps divide": fednova(divisor=lambda tau, n: tau[0]),
    "fednova: the root of the steps divides": fednova(divisor=lambda tau, n: tau[n] ** 0.5),
    "fednova: all take the most steps": fednova(steps=lambda tau, n: tau.max()),
    "fednova: equal weights": fednova(weight=lambda row, n: 1 / (row > 0).sum()),
    "scaffold: the mean is left out of the correction": scaffold(shift=lambda c, own: -own),
    "scaffold: the correction has the wrong sign": scaffold(shift=lambda c, own: own - c),
    "scaffold: no correction": scaffold(shift=lambda c, own: 0.0),
    "scaffold: the mean is left out of new control variates": scaffold(kept=lambda c, own, descent, g: own + descent),
    "scaffold: option I": scaffold(kept=lambda c, own, descent, gradient: gradient),
    "scaffold: control variates are not divided by I": scaffold(divisor=lambda I, step_size: step_size),
    "scaffold: the mean moves by 1/S": scaffold(share=lambda N, S: 1 / S),
    "scaffold: the model moves by 1/N": scaffold(mean=lambda S, N: N),
    "scaffold: the multiplier is left out": scaffold(eta=lambda eta: 1.0),
    "ef21: the gradient is compressed, not the difference": ef21(target=lambda gradient, own: gradient),
    "ef21: the compressed gradient replaces the old one": ef21(compress=lambda v, k: 0 * v + top(v, k) / 2),
    "ef21: the first entries, not the largest": ef21(compress=lambda v, k: v * (np.arange(len(v)) < k)),
    "ef21: the signs of the largest entries": ef21(compress=lambda v, k: np.sign(top(v, k))),
    "ef21: the entries that are largest with their signs": ef21(
        compress=lambda v, k: v * (np.argsort(np.argsort(-v)) < k)),
    "ef21: the number of entries is rounded down": ef21(count=lambda share, d: max(1, int(share * d))),
    "ef21: exact gradients in the beginning": ef21(start=lambda problem, n, k: problem.gradient(n, problem.x0)),
    "ef21: the step is taken before the exchange": ef21(late=True),
    "ef21: the mean of the participants": ef21(divisor=lambda N, S: S),
    "ef21: nothing happens in empty rounds": ef21(moves=lambda S: S > 0),
    "ef21: clipped differences": ef21(compress=lambda v, k: clip(top(v, k), 20)),
}  # fmt: skip
for name, run in MUTANTS.items():
    ZOO.add(name, run, algorithm=name.partition(":")[0])


# --- correct, in other styles ---------------------------------------------------------------------------------


for kind, run in {"fedadam": fedadam(), "fedprox": fedprox(), "fednova": fednova(), "scaffold": scaffold()}.items():
    ZOO.variant(f"{kind} with arrays", algorithm=kind)(run)
ZOO.variant("ef21 with a stable sort", algorithm="ef21")(ef21())
ZOO.variant("ef21 with a partition of the entries", algorithm="ef21")(
    ef21(compress=lambda v, k: v * np.isin(np.arange(len(v)), np.argpartition(-np.abs(v), k - 1)[:k]))
)


@ZOO.variant("ef21 with a share of its own", algorithm="ef21", share=0.4)
def of_its_own(problem, weights, *, step_size, **_):
    return ef21()(problem, weights, step_size=step_size, share=0.4)


@ZOO.variant("fedprox as a contraction to the received model", algorithm="fedprox")
def contraction(problem, weights, *, step_size, local_steps, proximal_mu, **_):
    models = [problem.x0]
    for t, row in enumerate(weights):
        x, moves = models[-1], np.zeros((problem.clients, problem.dimension))
        for n in np.flatnonzero(row):
            for i in range(local_steps):
                gradient = problem.gradient(n, x + moves[n]) + problem.noise(t, n, i)
                moves[n] = (1 - step_size * proximal_mu) * moves[n] - step_size * gradient
        models.append(x + row @ moves)
    return models


@ZOO.variant("fednova with the sum of gradients, in torch", algorithm="fednova")
def summed_gradients(problem, weights, *, step_size, client_steps, **_):
    models, tau = [torch.from_numpy(problem.x0)], torch.from_numpy(client_steps.astype(float))
    for t, row in enumerate(weights):
        total = torch.zeros(problem.dimension, dtype=torch.float64)
        for n in np.flatnonzero(row).tolist():
            y = models[-1].clone()
            for i in range(int(tau[n])):
                gradient = torch.from_numpy(problem.gradient(n, y) + problem.noise(t, n, i))
                total += row[n] / tau[n] * gradient
                y -= step_size * gradient
        models.append(models[-1] - step_size * tau.mean() * total)
    return models


@ZOO.variant("scaffold with the mean of the control variates", algorithm="scaffold")
def mean_of_variates(problem, weights, *, step_size, local_steps, multiplier, **_):
    models, own = [problem.x0], np.zeros((problem.clients, problem.dimension))
    for t, row in enumerate(weights):
        x, there, c = models[-1], np.flatnonzero(row), own.mean(0)
        gradients = {}
        for n in there:
            y, gradients[n] = x, []
            for i in range(local_steps):
                gradients[n].append(problem.gradient(n, y) + problem.noise(t, n, i))
                y = y - step_size * (gradients[n][-1] - own[n] + c)
        moves = [-step_size * (np.sum(gradients[n], axis=0) + local_steps * (c - own[n])) for n in there]
        for n in there:  # what a client subtracts cancels: its control variate is the mean of its gradients
            own[n] = np.mean(gradients[n], axis=0)
        models.append(x + multiplier * np.mean(moves, axis=0) if len(there) else x)
    return models
