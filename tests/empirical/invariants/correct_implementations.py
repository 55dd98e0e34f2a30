"""Correct implementations in many styles, as others might have written them, which no invariant may accuse."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import torch

from fedbounds.empirical.invariants import PlainProblem
from fedbounds.empirical.invariants.strategies import cases
from fedbounds.empirical.papers.fed_norm_sgda.strategies import game_cases
from fedbounds.empirical.papers.fedau.strategies import weight_cases

GALLERY, GAMES, WEIGHTS = {}, {}, {}


def correct(shelf=GALLERY, **arguments):
    """Put an implementation on a shelf, with what its author would say of it."""

    def put(run):
        shelf[run.__name__ if hasattr(run, "__name__") else type(run).__name__] = (run, arguments)
        return run

    return put


# --- FedAvg in other people's hands -----------------------------------------------------------------------------------


@correct()
def plain_fedavg(problem, weights, *, rounds, step_size, local_steps, **_):
    """McMahan et al.: no multiplier, no interval, the mean of the participants' models."""
    x = problem.x0
    history = [x]
    for t in range(rounds):
        local = []
        for n in range(problem.clients):
            y = x.copy()
            for i in range(local_steps):
                y -= step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            local.append(y)
        x = sum(weights[t, n] * y for n, y in enumerate(local))
        history.append(x)
    return history


@correct(cases=cases(multipliers=(1.0,)))
def plain_fedavg_that_names_what_it_ignores(
    problem, weights, rounds, step_size, local_steps, multiplier, interval, seed
):
    """As the page says of an algorithm without amplification."""
    return plain_fedavg(problem, weights, rounds=rounds, step_size=step_size, local_steps=local_steps)


@correct()
def weights_by_data_size(problem, weights, *, rounds, step_size, local_steps, **_):
    """Shares of the participants' data: divided by their sum, as is usual."""
    sizes, x = 1000 * weights, problem.x0
    out = [x]
    for t in range(rounds):
        there = np.flatnonzero(sizes[t])
        total, update = sizes[t, there].sum(), np.zeros_like(x)
        for n in there:
            y = x
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            update += sizes[t, n] / total * (y - x)
        x = x + update
        out.append(x)
    return np.array(out)


@correct(cases=cases(participation=("one-hot", "subsets")))
def uniform_over_the_sampled(problem, weights, *, rounds, step_size, local_steps, **_):
    """Every sampled client counts the same: it only reads who was sampled."""
    x, out = problem.x0, [problem.x0]
    for t in range(rounds):
        models = []
        for n in np.flatnonzero(weights[t]):
            y = x
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            models.append(y)
        x = np.mean(models, axis=0)
        out.append(x)
    return out


@correct(cases=cases(participation=("everyone",)))
def everyone_every_round(problem, weights, *, rounds, step_size, local_steps, **_):
    """Full participation with fixed proportions: it reads the weights once."""
    shares, x, out = weights[0], problem.x0, [problem.x0]
    for t in range(rounds):
        y = np.tile(x, (problem.clients, 1))
        for i in range(local_steps):
            y = y - step_size * np.stack([problem.gradient(n, y[n]) + problem.noise(t, n, i) for n in range(len(y))])
        x = shares @ y
        out.append(x)
    return out


@correct()
def fed_sgd(problem, weights, *, rounds, step_size, **_):
    """One step, at the server, with the mean gradient."""
    x, out = problem.x0, [problem.x0]
    for t in range(rounds):
        x = x - step_size * sum(
            q * (problem.gradient(n, x) + problem.noise(t, n, 0)) for n, q in enumerate(weights[t]) if q
        )
        out.append(x)
    return out


@correct()
def server_learning_rate(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
    """Reddi et al., with plain SGD on both sides: pseudo-gradients, a server step in every round, no interval."""
    x, out = problem.x0, [problem.x0]
    for t in range(rounds):
        pseudo_gradient = np.zeros(problem.dimension)
        for n in range(problem.clients):
            y = x
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            pseudo_gradient -= weights[t, n] * (y - x)
        x = x - multiplier * pseudo_gradient
        out.append(x)
    return out


@correct()
def generalized_with_an_anchor(problem, weights, rounds, step_size, local_steps, multiplier, interval, **_):
    """No accumulator: the model at the interval's start is kept."""
    anchor = x = problem.x0
    out = [x]
    for t in range(rounds):
        x = x + sum(weights[t, n] * delta(problem, x, t, n, step_size, local_steps) for n in range(problem.clients))
        if t % interval == interval - 1:
            x = anchor = anchor + multiplier * (x - anchor)
        out.append(x)
    return out


def delta(problem, x, t, n, step_size, local_steps):
    y = x
    for i in range(local_steps):
        y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
    return y - x


@correct()
def generalized_in_another_order(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """Clients from the last to the first, sums by `math.fsum`, amplification as a mean of two models."""
    x, start, out = problem.x0, problem.x0, [problem.x0]
    for t in range(rounds):
        updates = [weights[t, n] * delta(problem, x, t, n, step_size, local_steps) for n in range(problem.clients)]
        x = x + np.array([math.fsum(column) for column in zip(*reversed(updates), strict=True)])
        if (t + 1) % interval == 0:
            start = x = multiplier * x + (1 - multiplier) * start
        out.append(x)
    return np.stack(out)


@correct()
def lists_of_floats(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """Pure Python: lists in, lists out."""
    x = problem.x0.tolist()
    u, out = [0.0] * len(x), [list(x)]
    for t in range(rounds):
        move = [0.0] * len(x)
        for n, q in enumerate(weights[t].tolist()):
            y = list(x)
            for i in range(local_steps):
                g, e = problem.gradient(n, y).tolist(), problem.noise(t, n, i).tolist()
                y = [a - step_size * (b + c) for a, b, c in zip(y, g, e, strict=True)]
            move = [m + q * (a - b) for m, a, b in zip(move, y, x, strict=True)]
        x, u = [a + m for a, m in zip(x, move, strict=True)], [a + m for a, m in zip(u, move, strict=True)]
        if (t + 1) % interval == 0:
            x, u = [a + (multiplier - 1) * b for a, b in zip(x, u, strict=True)], [0.0] * len(x)
        out.append(x)
    return out


@correct()
def torch_with_an_optimizer(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """Parameters, an optimizer for each client, and models that carry gradients."""
    x = torch.from_numpy(problem.x0)
    anchor, out = x.clone(), [x.clone().requires_grad_()]
    for t in range(rounds):
        total = torch.zeros_like(x)
        for n in torch.nonzero(torch.from_numpy(weights[t])).flatten():
            y = torch.nn.Parameter(x.clone())
            optimizer = torch.optim.SGD([y], lr=step_size)
            for i in range(local_steps):
                y.grad = torch.from_numpy(problem.gradient(n, y.detach()) + problem.noise(t, int(n), i))
                optimizer.step()
            total += weights[t, n] * (y.detach() - x)
        x = x + total
        if (t + 1) % interval == 0:
            x = anchor.lerp(x, multiplier)
            anchor = x.clone()
        out.append(x.clone().requires_grad_())
    return out


@correct()
def single_precision(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """float32 all the way."""
    f = np.float32
    x = problem.x0.astype(f)
    u, out = np.zeros_like(x), [x]
    for t in range(rounds):
        move = np.zeros_like(x)
        for n in range(problem.clients):
            y = x
            for i in range(local_steps):
                y = y - f(step_size) * (problem.gradient(n, y) + problem.noise(t, n, i)).astype(f)
            move = move + f(weights[t, n]) * (y - x)
        x, u = x + move, u + move
        if (t + 1) % interval == 0:
            x, u = x + f(multiplier - 1) * u, np.zeros_like(u)
        out.append(x)
    return out


@dataclasses.dataclass
class Client:
    """Somebody's class design: clients return what they moved, in units of their step size."""

    number: int
    problem: PlainProblem

    def train(self, received, t, rate, steps):
        model = np.array(received)
        for i in range(steps):
            model -= rate * (self.problem.gradient(self.number, model) + self.problem.noise(t, self.number, i))
        return {"n": self.number, "moved": (received - model) / rate}


class Server:
    """And a server that collects the answers of those who were asked."""

    def __init__(self, problem, rate, multiplier, interval):
        self.clients = [Client(n, problem) for n in range(problem.clients)]
        self.model, self.rate, self.multiplier, self.interval = problem.x0, rate, multiplier, interval
        self.collected = np.zeros(problem.dimension)

    def round(self, t, weights, steps):
        answers = [client.train(self.model, t, self.rate, steps) for client in self.clients if weights[client.number]]
        move = -self.rate * reduce(np.add, [weights[a["n"]] * a["moved"] for a in answers], np.zeros_like(self.model))
        self.model, self.collected = self.model + move, self.collected + move
        if not (t + 1) % self.interval:
            self.model = self.model + (self.multiplier - 1) * self.collected
            self.collected = np.zeros_like(self.model)
        return self.model.copy()


class Simulator:
    """A run that is an object."""

    __name__ = "an object that is called"

    def __call__(self, problem, weights, **options):
        server = Server(problem, options["step_size"], options["multiplier"], options["interval"])
        steps = options["local_steps"]
        return [problem.x0, *(server.round(t, weights[t], steps) for t in range(options["rounds"]))]


correct()(Simulator())


@correct()
def with_a_matrix(problem, weights, rounds, step_size, local_steps, multiplier, interval, seed):
    """All clients at once; idle clients are computed and weighted with zero."""
    N = problem.clients
    X = [problem.x0]
    anchor = problem.x0
    for t in range(rounds):
        Y = np.repeat(X[-1][None], N, axis=0)
        for i in range(local_steps):
            G = np.stack([problem.gradient(n, Y[n]) for n in range(N)])
            Y -= step_size * (G + np.stack([problem.noise(t, n, i) for n in range(N)]))
        new = np.einsum("n,nd->d", weights[t], Y) + (1 - weights[t].sum()) * X[-1]
        if (t + 1) % interval == 0:
            new = anchor + multiplier * (new - anchor)
            anchor = new
        X.append(new)
    return np.array(X)


@correct()
def recursively(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """Functional: an interval is a fold, and the run a concatenation."""
    state = (problem.x0, problem.x0)

    def one(state, t):
        anchor, x = state
        x = x + reduce(
            lambda total, n: total + weights[t, n] * delta(problem, x, t, n, step_size, local_steps),
            range(problem.clients),
            np.zeros_like(x),
        )
        ended = (t + 1) % interval == 0
        x = np.where(ended, anchor + multiplier * (x - anchor), x)
        return (x if ended else anchor), x

    models = [problem.x0]
    for t in range(rounds):
        state = one(state, t)
        models.append(state[1])
    return models


@correct()
def gradients_are_summed_first(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """Clients send the sum of their gradients; the step size is applied at the server."""
    x, u, out = problem.x0, 0.0, [problem.x0]
    for t in range(rounds):
        total = np.zeros_like(x)
        for n in np.flatnonzero(weights[t]):
            sent = np.zeros_like(x)
            for i in range(local_steps):
                sent += problem.gradient(n, x - step_size * sent) + problem.noise(t, n, i)
            total += weights[t, n] * sent
        x, u = x - step_size * total, u - step_size * total
        if (t + 1) % interval == 0:
            x, u = x + (multiplier - 1) * u, 0.0
        out.append(x)
    return out


@correct(cases=cases(intervals=(1,), noise=True))
def fractions_at_the_server(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, **_):
    """The server computes exactly, and returns fractions."""
    x, out = [Fraction(v) for v in problem.x0], []
    for t in range(rounds):
        out.append(x)
        here, steps = np.array(x, dtype=float), np.zeros(len(x), dtype=object)
        for n in range(problem.clients):
            moved = delta(problem, here, t, n, step_size, local_steps)
            steps = steps + [Fraction(weights[t, n]) * Fraction(v) for v in moved]
        x = [a + Fraction(multiplier) * b for a, b in zip(x, steps, strict=True)]
    return [*out, x]


# --- other algorithms, which weigh their clients themselves -----------------------------------------------------------


@correct(algorithm="fedvarp")
def fedvarp(problem, weights, *, rounds, step_size, local_steps, **_):
    """Jhunjhunwala et al.: remembered updates of all, corrected by those who take part."""
    N, x = problem.clients, problem.x0
    memory, out = np.zeros((N, len(x))), [x]
    for t in range(rounds):
        there = np.flatnonzero(weights[t])
        fresh = {n: delta(problem, x, t, n, step_size, local_steps) for n in there}
        v = memory.mean(axis=0) + sum((fresh[n] - memory[n] for n in there), np.zeros_like(x)) / max(len(there), 1)
        for n in there:
            memory[n] = fresh[n]
        x = x + v
        out.append(x)
    return out


@correct(algorithm="mifa")
def mifa(problem, weights, *, rounds, step_size, local_steps, **_):
    """Gu et al.: the mean of every client's latest update."""
    latest, x = np.zeros((problem.clients, problem.dimension)), problem.x0
    out = [x]
    for t in range(rounds):
        for n in np.flatnonzero(weights[t]):
            latest[n] = delta(problem, x, t, n, step_size, local_steps)
        x = x + latest.mean(axis=0)
        out.append(x)
    return out


@correct(algorithm="fedau", cutoff=3)
def fedau_with_its_own_weights(problem, weights, *, rounds, step_size, local_steps, **_):
    """Wang & Ji 2024 with K = 3: the weights are estimated along the way."""
    N, x, K = problem.clients, problem.x0, 3
    done, passed, gap = np.zeros(N), np.zeros(N), np.zeros(N)
    out = [x]
    for t in range(rounds):
        omega = np.where(done > 0, passed / np.maximum(done, 1), 1.0)
        there = weights[t] > 0
        x = x + sum(omega[n] * delta(problem, x, t, n, step_size, local_steps) / N for n in np.flatnonzero(there))
        gap += 1
        ended = there | (gap == K)
        passed, done, gap = passed + gap * ended, done + ended, np.where(ended, 0, gap)
        out.append(x)
    return out


@correct(algorithm="average-participating")
def mean_of_those_present(problem, weights, *, rounds, step_size, local_steps, **_):
    return uniform_over_the_sampled(problem, weights, rounds=rounds, step_size=step_size, local_steps=local_steps)


@correct(algorithm="other", twin=fedvarp)
def an_algorithm_that_nobody_knows(problem, weights, **numbers):
    """Against a slow implementation of one's own."""
    return fedvarp(problem, weights[:, ::1].copy(), **numbers)


# --- Fed-Norm-SGDA ----------------------------------------------------------------------------------------------------


def local_sgda(game, cohorts, weights, tau, eta, Gamma, *, anchored=0):
    x, y = game.x0, game.y0
    states, snapshot = [np.append(x, y)], x
    for t, cohort in enumerate(cohorts):
        snapshot = x if anchored and t % anchored == 0 else snapshot
        dx, dy = np.zeros_like(x), np.zeros_like(y)
        for i in cohort:
            a, b = x, y
            for _ in range(tau[i]):
                gx, gy = game.gradient(i, a, b)[0], game.gradient(i, snapshot if anchored else a, b)[1]
                a, b = a - eta[0] * gx, b + eta[1] * gy
            share = weights[i] * game.clients / len(cohort) / tau[i]
            dx, dy = dx + share * (x - a) / eta[0], dy + share * (b - y) / eta[1]
        x, y = x - Gamma[0] * dx, y + Gamma[1] * dy
        states.append(np.append(x, y))
    return states


@correct(GAMES)
def momentum_free_sgda(game, cohorts, *, weights, local_steps, local_step_sizes, step_sizes, **_):
    """No momentum, no snapshots; clients send displacements over step sizes."""
    return local_sgda(game, cohorts, weights, local_steps, local_step_sizes, step_sizes)


@correct(GAMES, cases=game_cases(momenta=(0.0,)))
def sgda_plus_without_momentum(
    game, cohorts, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed
):
    """It names the momentum and has none, and says so with the cases."""
    return local_sgda(game, cohorts, weights, local_steps, local_step_sizes, step_sizes, anchored=period)


@correct(GAMES)
def sgda_of_equal_clients(game, cohorts, *, local_steps, local_step_sizes, step_sizes, **_):
    """All clients weigh the same."""
    equal = np.full(game.clients, 1 / game.clients)
    return local_sgda(game, cohorts, equal, local_steps, local_step_sizes, step_sizes)


@correct(GAMES)
def synchronous_sgda(game, cohorts, *, weights, step_sizes, **_):
    """One step each: nothing is local."""
    z, cut = game.start.copy(), game.descent
    out = [z]
    for C in cohorts:
        G = sum(weights[i] * game.clients / len(C) * np.append(*game.gradient(i, z[:cut], z[cut:])) for i in C)
        z = z + np.append(-step_sizes[0] * G[:cut], step_sizes[1] * G[cut:])
        out.append(z)
    return out


@correct(GAMES, cases=game_cases(everyone=True, parts=(1,), momenta=(0.0,), periods=(0,)))
def full_participation(game, cohorts, *, weights, local_steps, local_step_sizes, step_sizes, **_):
    """It never reads who takes part."""
    everyone = np.tile(np.arange(game.clients), (len(cohorts), 1))
    return local_sgda(game, everyone, weights, local_steps, local_step_sizes, step_sizes)


@correct(GAMES, cases=game_cases(periods=(1, 2, 3), momenta=(0.0,)))
def always_with_snapshots(game, cohorts, *, weights, local_steps, local_step_sizes, step_sizes, period, **_):
    """Fed-Norm-SGDA+ alone: it has no meaning for a period of 0."""
    assert period > 0
    return local_sgda(game, cohorts, weights, local_steps, local_step_sizes, step_sizes, anchored=period)


@correct(GAMES)
def heavy_ball_by_a_buffer(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, **_):
    """Momentum with a buffer, in torch, without snapshots."""
    z, d = torch.from_numpy(game.start.copy()), game.descent
    sign = torch.tensor([-1.0] * d + [1.0] * (len(z) - d), dtype=torch.float64)
    eta, Gamma = (
        torch.tensor([s[0]] * d + [s[1]] * (len(z) - d), dtype=torch.float64) for s in (local_step_sizes, step_sizes)
    )
    out = [z]
    for cohort in cohorts:
        direction = torch.zeros_like(z)
        for i in cohort:
            local, buffer, length, count = z.clone(), torch.zeros_like(z), 0.0, 0.0
            for _ in range(local_steps[i]):
                g = torch.from_numpy(np.concatenate(game.gradient(i, local[:d], local[d:])))
                buffer, count = momentum * buffer + g, momentum * count + 1
                local, length = local + sign * eta * buffer, length + count
            direction += weights[i] * game.clients / cohorts.shape[1] * (local - z) / eta / length
        z = z + Gamma * direction
        out.append(z)
    return out


# --- FedAU's weights --------------------------------------------------------------------------------------------------


@correct(WEIGHTS)
def fedau_in_lists(participated, cutoff):
    """One client at a time, from the list of its intervals."""
    columns = []
    for record in np.transpose(participated).tolist():
        intervals, running, column = [], 0, []
        for here in record:
            column.append(sum(intervals) / len(intervals) if intervals else 1)
            running += 1
            if here or running >= cutoff:
                intervals.append(running)
                running = 0
        columns.append(column)
    return [list(row) for row in zip(*columns, strict=True)]


@correct(WEIGHTS, cases=weight_cases(cutoffs=(math.inf,)))
def fedau_without_a_cutoff(participated, cutoff):
    return fedau_in_lists(participated, 10**9)


@correct(WEIGHTS, cases=weight_cases(cutoffs=(1, 2, 5)))
def fedau_with_integers_alone(participated, cutoff):
    """A cut-off that must be an integer."""
    return torch.tensor(fedau_in_lists(participated, range(cutoff + 1)[-1]), dtype=torch.float64)


@correct(WEIGHTS)
def fedau_in_single_precision(participated, cutoff):
    return np.array(fedau_in_lists(participated, cutoff), dtype=np.float32)
