"""Fed-Norm-SGDA with one bug each, and right in other styles."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.fed_norm_sgda.invariants import check_minimax
from tests.papers.fed_norm_sgda.planted_sgda import fed_norm_sgda_by_hand
from tests.papers.tdcd.planted_tdcd import planted
from tests.zoo import Kept, Zoo

SHARE, TAU, COHORT = "weights[i] * n / P / sum(a[tau])", "tau = int(local_steps[i])", "for i in cohort:"
START, SNAPSHOT, STEPS = "x, y = states[t]", "t % period == 0", "for k in range(tau):"
GRADIENT_X, GRADIENT_Y = "game.gradient(i, xk, yk)[0]", "game.gradient(i, snapshot if period else xk, yk)[1]"
LOCAL_X, SERVER_X, SERVER_Y = "xk = x - local_step_sizes[0]", "x - step_sizes[0] * gx", "y + step_sizes[1] * gy"
BEGIN = "states, snapshot = [(game.x0, game.y0)], game.x0"

CHANGES = {
    # normalization and weights
    "weights sum to one over the cohort": [(SHARE, "weights[i] / weights[cohort].sum() / sum(a[tau])")],
    "divides by the number of clients": [(SHARE, "weights[i] / sum(a[tau])")],
    "divides by the number of clients less one": [(SHARE, "weights[i] * n / max(1, P - 1) / sum(a[tau])")],
    "normalized by the local steps, momentum or not": [(SHARE, "weights[i] * n / P / tau")],
    "not normalized": [(SHARE, "weights[i] * n / P")],
    "normalized by the mean number of local steps": [(SHARE, "weights[i] * n / P / np.mean(local_steps[cohort])")],
    "normalized by at most 5 local steps": [(SHARE, "weights[i] * n / P / sum(a[tau][:5])")],
    "cohorts of more than 4 count as 4": [(SHARE, "weights[i] * n / min(P, 4) / sum(a[tau])")],
    "the fifth participant is left out": [(COHORT, "for i in cohort[:4]:")],
    "the sixth and later clients have the weight of the fifth": [(SHARE, "weights[min(i, 4)] * n / P / sum(a[tau])")],
    "the seventh client has the local steps of the first": [(TAU, "tau = int(local_steps[i % 6])")],
    "weights of the cohort of the round before": [
        (SHARE, "weights[cohorts[max(0, t - 1)][list(cohort).index(i)]] * n / P / sum(a[tau])")
    ],
    "equal weights after 10 rounds": [(SHARE, "(weights[i] if t < 10 else 1 / n) * n / P / sum(a[tau])")],
    "equal weights where all take part": [(SHARE, "(1 / n if P == n else weights[i]) * n / P / sum(a[tau])")],
    "the cohort of the first round": [(COHORT, "for i in cohorts[0]:")],
    "the cohort of the round before, after 8": [(COHORT, "for i in (cohort if t < 8 else cohorts[t - 1]):")],
    # the dual player
    "the server's y descends": [(SERVER_Y, "y - step_sizes[1] * gy")],
    "the local y descends": [("yk = y + local", "yk = y - local")],
    "y ascends from the x that has just moved": [
        (GRADIENT_Y, "game.gradient(i, snapshot if period else xk - local_step_sizes[0] * Gx[-1], yk)[1]")
    ],
    "local step sizes exchanged": [
        ("xk = x - local_step_sizes[0]", "xk = x - local_step_sizes[1]"),
        ("yk = y + local_step_sizes[1]", "yk = y + local_step_sizes[0]"),
    ],
    "server step sizes exchanged": [(SERVER_X, "x - step_sizes[1] * gx"), (SERVER_Y, "y + step_sizes[0] * gy")],
    "y is projected on a ball": [(SERVER_Y, "(lambda v: v / max(1, np.linalg.norm(v) / 5))(y + step_sizes[1] * gy)")],
    "the third entry of y never moves": [(SERVER_Y, "y + step_sizes[1] * gy * (np.arange(len(y)) != 2)")],
    "the last entry of x never moves in odd dimensions": [
        (SERVER_X, "x - step_sizes[0] * gx * (np.arange(len(x)) < max(2, len(x) - len(x) % 2))")
    ],
    # local steps
    "the last of 5 and more local steps is lost": [(TAU, "tau = int(local_steps[i]) - (local_steps[i] >= 5)")],
    "at most 8 local steps": [(TAU, "tau = min(int(local_steps[i]), 8)")],
    "from the fifth local step on gradients are those of the fourth": [
        (GRADIENT_X, "(game.gradient(i, xk, yk)[0] if k < 4 else Gx[3])")
    ],
    "every client has the local steps of the first participant": [(TAU, "tau = int(local_steps[cohort[0]])")],
    "the buffer is one step too old": [
        ("sums[k - j] for j in range(k)", "sums[k - j - (k - j > 1) * (momentum > 0)] for j in range(k)")
    ],
    "momentum is dampened": [
        ("sum(momentum**m for m in range(k))", "sum((1 - momentum * (m > 0)) * momentum**m for m in range(k))")
    ],
    "momentum is 1/2 if any": [(BEGIN, "momentum = 0.5 if momentum else 0.0\n    " + BEGIN)],
    "momentum is at most 1/2": [(BEGIN, "momentum = min(momentum, 0.5)\n    " + BEGIN)],
    "momentum is twice its square": [(BEGIN, "momentum = 2 * momentum**2\n    " + BEGIN)],
    "step sizes are powers of two": [
        (
            BEGIN,
            "local_step_sizes, step_sizes = (2 ** np.round(np.log2(both)) for both in (local_step_sizes, step_sizes))"
            "\n    " + BEGIN,
        )
    ],
    "the server's step is clipped at norm 50": [
        (SERVER_X, "x - step_sizes[0] * gx * min(1, 50 / max(np.linalg.norm(gx), 1e-300))")
    ],
    "entries of x from the sixth on never move": [(SERVER_X, "x - step_sizes[0] * gx * (np.arange(len(x)) < 5)")],
    "half of the step from round 60 on": [(SERVER_X, "x - step_sizes[0] * (0.5 if t >= 60 else 1) * gx")],
    "half of the step from the eleventh local step on": [
        (GRADIENT_X, "game.gradient(i, xk, yk)[0] * (0.5 if k > 9 else 1)")
    ],
    "snapshots every 12 rounds at most": [(SNAPSHOT, "t % min(period, 12) == 0")],
    "no momentum after the sixth local step": [
        ("momentum**m for m in range(k)", "momentum**m for m in range(min(k, 6))")
    ],
    # rounds and snapshots
    "the snapshot is renewed a round late": [(SNAPSHOT, "t % period == 1 or period == 1")],
    "the snapshot is renewed twice": [(SNAPSHOT, "t % period == 0 and t <= 2 * period")],
    "snapshots every P clients": [(SNAPSHOT, "t % P == 0")],
    "x is taken at the snapshot too": [(GRADIENT_X, "game.gradient(i, snapshot if period else xk, yk)[0]")],
    "the snapshot is the current round's x": [(GRADIENT_Y, "game.gradient(i, x if period else xk, yk)[1]")],
    "the snapshot is where the run began": [("snapshot = x\n", "snapshot = game.x0\n")],
    "snapshots every 3 rounds at most": [(SNAPSHOT, "t % min(period, 3) == 0")],
    "half of the step from round 12 on": [(SERVER_X, "x - step_sizes[0] * (0.5 if t >= 12 else 1) * gx")],
    "y stops after 20 rounds": [(SERVER_Y, "y + step_sizes[1] * (t < 20) * gy")],
    "the last of 30 and more rounds is lost": [(START, "x, y = states[t - (t >= 30 and t == len(cohorts) - 1)]")],
    "a step from the state before, every 16 rounds": [(START, "x, y = states[t - (t % 16 == 15)]")],
    "server momentum": [
        (START, "x, y = states[t]\n        last = x - states[t - 1][0] if t else 0"),
        (SERVER_X, "x - step_sizes[0] * gx + 0.1 * last"),
    ],
    "clients one after the other": [(LOCAL_X, "xk = x - step_sizes[0] * gx - local_step_sizes[0]")],
    # state, randomness and input
    "the seed moves x": [(SERVER_X, "x - step_sizes[0] * gx + 1e-3 * seed")],
    "noise that nobody asked for": [(SERVER_X, "x - step_sizes[0] * gx + 1e-6 * np.random.default_rng().random()")],
    "changes the game where it begins": [(START, "x, y = states[t]\n        game.start[:] = np.concatenate([x, y])")],
    "changes the cohorts": [(START, "x, y = states[t]\n        cohorts.sort(axis=0)")],
    "changes the slopes of the game": [(START, "x, y = states[t]\n        game.slopes[:] *= 0.5")],
}
CHANGES |= {
    "y shrinks its step with cohorts of some of 6 and more": [
        (SERVER_Y, "y + step_sizes[1] * gy * (P / n if n >= 6 else 1)")
    ],
    "the snapshot of the first block from the fifth local step on": [
        (GRADIENT_Y, "game.gradient(i, (snapshot if k < 4 else states[0][0]) if period else xk, yk)[1]")
    ],
}
MUTANTS = {name: planted(*changes, of=fed_norm_sgda_by_hand) for name, changes in CHANGES.items()}


def _remembers(when):
    """A buffer of momentum that is not emptied in some rounds, or between some clients."""

    def run(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
        n, P, z, d = game.clients, cohorts.shape[1], np.concatenate([game.x0, game.y0]), game.descent
        states, snapshot, buffers = [z], z[:d], {}
        signs = np.where(np.arange(len(z)) < d, -1.0, 1.0)
        local, server = (np.where(signs < 0, *sizes) for sizes in (local_step_sizes, step_sizes))
        for t, cohort in enumerate(cohorts):
            snapshot = z[:d] if period and t % period == 0 else snapshot
            total = 0 * z
            for k, i in enumerate(cohort):
                own, buffer, summed = z, 0 * z, 0 * z
                if i in buffers and when(t, k):
                    buffer = buffers[i]
                scale, weight = 0.0, 0.0
                for _ in range(local_steps[i]):
                    gx = game.gradient(i, own[:d], own[d:])[0]
                    gy = game.gradient(i, snapshot if period else own[:d], own[d:])[1]
                    buffer = momentum * buffer + np.concatenate([gx, gy])
                    own, weight = own + signs * local * buffer, momentum * weight + 1
                    scale, summed = scale + weight, summed + buffer
                buffers[i] = buffer
                total = total + weights[i] * n / P / scale * summed
            z = z + signs * server * total
            states.append(z)
        return np.stack(states)

    return run


def _cached(rounds):
    """What a client computed first is used again after so many of its rounds."""

    def run(game, cohorts, **numbers):
        z, kept, counts = np.concatenate([game.x0, game.y0]), {}, dict.fromkeys(range(game.clients), 0)
        states, snapshot, period = [z], z, numbers.pop("period")
        for t, cohort in enumerate(cohorts):
            snapshot, step = (z if period and t % period == 0 else snapshot), 0 * z
            for i in cohort:
                counts[i] += 1
                if counts[i] <= rounds:
                    kept[i] = _own(game, z, snapshot if period else None, i, cohorts.shape[1], numbers)
                step = step + kept[i]
            z = z + step
            states.append(z)
        return np.stack(states)

    return run


def _own(game, z, snapshot, i, P, numbers):
    """What client i adds to the server's state."""
    d, weights, rho = game.descent, numbers["weights"], numbers["momentum"]
    signs = np.where(np.arange(len(z)) < d, -1.0, 1.0)
    own, buffer, weight, scale, summed = z, 0 * z, 0.0, 0.0, 0 * z
    for _ in range(numbers["local_steps"][i]):
        at = own if snapshot is None else snapshot
        g = np.concatenate([game.gradient(i, own[:d], own[d:])[0], game.gradient(i, at[:d], own[d:])[1]])
        buffer, weight = rho * buffer + g, rho * weight + 1
        own = own + signs * np.where(signs < 0, *numbers["local_step_sizes"]) * buffer
        scale, summed = scale + weight, summed + buffer
    return signs * np.where(signs < 0, *numbers["step_sizes"]) * summed * weights[i] * game.clients / P / scale


def in_place(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
    """Local steps move the server's own array."""
    z, d = np.concatenate([game.x0, game.y0]), game.descent
    states, snapshot = [z.copy()], z.copy()
    for t, cohort in enumerate(cohorts):
        snapshot = z.copy() if period and t % period == 0 else snapshot
        step = 0 * z
        for i in cohort:
            own = z if local_steps[i] > 6 else z.copy()
            numbers = dict(weights=weights, momentum=momentum, local_step_sizes=local_step_sizes, step_sizes=step_sizes)
            step = step + _own(
                game, own, snapshot if period else None, i, cohorts.shape[1], numbers | {"local_steps": local_steps}
            )
            if own is z:
                z[:d] -= 0.01 * local_step_sizes[0] * game.gradient(i, z[:d], z[d:])[0]
        z = z + step
        states.append(z)
    return np.stack(states)


def at_the_mean(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
    """The gradient at the mean local iterate, which is the mean gradient in a quadratic game alone."""
    x, y = game.x0, game.y0
    states, snapshot, n, P = [np.concatenate([x, y])], x, game.clients, cohorts.shape[1]
    for t, cohort in enumerate(cohorts):
        snapshot = x if period and t % period == 0 else snapshot
        gx, gy = 0 * x, 0 * y
        for i in cohort:
            xk, yk, bx, by, points = x, y, 0 * x, 0 * y, []
            for _ in range(local_steps[i]):
                points.append(np.concatenate([xk, yk]))
                bx = momentum * bx + game.gradient(i, xk, yk)[0]
                by = momentum * by + game.gradient(i, snapshot if period else xk, yk)[1]
                xk, yk = xk - local_step_sizes[0] * bx, yk + local_step_sizes[1] * by
            counts = [sum(momentum**m for m in range(local_steps[i] - k)) for k in range(local_steps[i])]
            xm, ym = np.split(np.average(points, axis=0, weights=counts), [game.descent])
            gx = gx + weights[i] * n / P * game.gradient(i, xm, ym)[0]
            gy = gy + weights[i] * n / P * game.gradient(i, snapshot if period else xm, ym)[1]
        x, y = x - step_sizes[0] * gx, y + step_sizes[1] * gy
        states.append(np.concatenate([x, y]))
    return np.stack(states)


MUTANTS |= {
    "the gradient at the mean local iterate": at_the_mean,
    "momentum goes on from round to round": _remembers(lambda t, k: True),
    "momentum goes on from round 9 on": _remembers(lambda t, k: t >= 9),
    "momentum goes on for the fifth participant": _remembers(lambda t, k: k >= 4),
    "a client computes 5 times, and repeats itself then": _cached(5),
    "seven local steps and more move the server's array": in_place,
}


# --- correct, in other styles -----------------------------------------------------------------------------------------


def tensors(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
    """torch, a list of tensors; weights of all clients, zero for who is absent."""
    d, states = game.descent, [torch.from_numpy(np.concatenate([game.x0, game.y0]))]
    signs = torch.cat([-torch.ones(d), torch.ones(len(states[0]) - d)]).double()
    local, server = (
        torch.where(signs < 0, *map(torch.tensor, map(np.float64, s))) for s in (local_step_sizes, step_sizes)
    )
    q = torch.zeros(cohorts.shape[0], game.clients, dtype=torch.float64)
    q.scatter_(1, torch.from_numpy(cohorts), game.clients / cohorts.shape[1])
    for t in range(len(cohorts)):
        z = states[-1]
        snapshot = states[t // period * period] if period else None
        total = torch.zeros_like(z)
        for i in range(game.clients):
            own, buffer, summed, scale = z.clone(), torch.zeros_like(z), torch.zeros_like(z), 0.0
            for s in range(int(local_steps[i])):
                at = own if snapshot is None else snapshot
                g = np.concatenate([game.gradient(i, own[:d], own[d:])[0], game.gradient(i, at[:d], own[d:])[1]])
                buffer = buffer * momentum + torch.from_numpy(g)
                own += signs * local * buffer
                summed += buffer
                scale += sum(momentum**m for m in range(s + 1))
            total += q[t, i] * weights[i] * summed / scale
        states.append(z + signs * server * total)
    return states


def displacements(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
    """Clients send how far they have moved, over the local step size: as an existing local optimizer would be used."""
    n, x, y = game.clients, game.x0, game.y0
    trace = [[*x, *y]]
    for t, cohort in enumerate(np.asarray(cohorts)):
        if t % (period or 1) == 0:
            anchor = x
        moves = []
        for i in cohort[::-1]:
            xi, yi, bx, by = x.copy(), y.copy(), np.zeros_like(x), np.zeros_like(y)
            for _ in range(local_steps[i]):
                gx, _ = game.gradient(i, xi, yi)
                _, gy = game.gradient(i, anchor if period else xi, yi)
                bx, by = momentum * bx + gx, momentum * by + gy
                xi -= local_step_sizes[0] * bx
                yi += local_step_sizes[1] * by
            tau = local_steps[i]
            length = sum((1 - momentum**k) / (1 - momentum) for k in range(1, tau + 1))
            share = weights[i] * n / len(cohort) / length
            moves.append((share * (xi - x) / local_step_sizes[0], share * (yi - y) / local_step_sizes[1]))
        x = x + step_sizes[0] * np.sum([m[0] for m in moves], axis=0)
        y = y + step_sizes[1] * np.sum([m[1] for m in moves], axis=0)
        trace.append([*x, *y])
    return trace


def single_precision(*positional, **named):
    """Rounded to float32 at the end."""
    return fed_norm_sgda_by_hand(*positional, **named).astype(np.float32)


def without_momentum(game, cohorts, *, weights, local_steps, local_step_sizes, step_sizes, period, **_):
    """Has no momentum, and names none."""
    return displacements(game, cohorts, weights=weights, local_steps=local_steps, momentum=0.0, period=period,
                         local_step_sizes=local_step_sizes, step_sizes=step_sizes, seed=0)  # fmt: skip


class Server:
    """A class with a method for every part."""

    def __call__(self, game, cohorts, **numbers):
        z = np.concatenate([game.x0, game.y0])
        states, anchor, period = [z], z, numbers["period"]
        for t, cohort in enumerate(cohorts):
            anchor = z if period and t % period == 0 else anchor
            z = z + sum(_own(game, z, anchor if period else None, i, len(cohort), numbers) for i in cohort)
            states.append(z)
        return states


CORRECT = {
    "by hand": fed_norm_sgda_by_hand,
    "tensors": tensors,
    "displacements": displacements,
    "single precision": single_precision,
    "without momentum": without_momentum,
    "a server": Server(),
}
ZOO = Zoo(
    "check_minimax",
    check_minimax,
    {name: Kept(run, {}) for name, run in MUTANTS.items()},
    {name: Kept(run, {}) for name, run in CORRECT.items()},
)
