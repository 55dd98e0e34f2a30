r"""Every path of local steps on clients with kinks, or paths drawn at random with a bound on what that may miss.

A model is an array (B, d, paths). A client's local steps split each path into $2^i$ after i steps, which are equally
likely; the server puts those of all clients together, $x+\sum_n\text{move}_n$ for every combination. Drawn paths do not
split: each has its own signs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedbounds.empirical.falsification.instances.piecewise_quadratics import PILOT, UNLIKELY, KinkedClients


def initial_states(z: KinkedClients) -> np.ndarray:
    """The start, once or on every path that is drawn, (B, d, paths)."""
    return np.repeat(z.start[:, :, None], max(z.samples, 1), axis=2)


def local_changes(z: KinkedClients, x: np.ndarray, gamma: np.ndarray, steps: int, round_: int) -> Iterator[np.ndarray]:
    r"""$y_{n,i}-x$ after i = 0, ..., I local steps, each (B, N, d, paths, branches)."""
    step = gamma[:, None, None, None, None]
    push, noisy = step * z.noise[..., None, None], bool(z.noise.any())
    change = np.zeros((len(z), z.clients, *x.shape[1:], 1))
    yield change
    signs = _signs(z, steps, round_) if z.samples and noisy else None
    for i in range(steps):
        points = x[:, None, :, :, None] + change
        slope = z.each.slope(points.reshape(*points.shape[:3], -1)).reshape(points.shape)
        change = change - step * slope
        if signs is not None:
            change = change + push * signs[i]
        elif noisy:
            change = split(change, push)
        yield change


def split(values: np.ndarray, push: np.ndarray | float) -> np.ndarray:
    """Every branch, the last axis, in two: less what pushes it, and more."""
    return np.concatenate([values - push, values + push], axis=-1)


def _signs(z: KinkedClients, steps: int, round_: int) -> np.ndarray:
    """Of a round's noise, each instance's from its own seed, (I, B, N, d, samples, 1)."""
    shape = (steps, z.clients, z.start.shape[1], z.samples)
    drawn = [np.random.Generator(np.random.Philox(key=[seed, round_])).integers(0, 2, shape) for seed in z.seeds]
    return np.stack(drawn, axis=1)[..., None] * 2.0 - 1.0


def together(weights: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """The weighted sum over the clients for every combination of branches, (B, N, d, paths, Q) to (B, d, paths, Q^N).

    A client that has no weight in any instance, (B, N), splits no path.
    """
    total = np.zeros((*moves[:, 0].shape[:-1], 1))
    for n in np.flatnonzero(weights.any(axis=0)):
        move = weights[:, n, None, None, None] * moves[:, n]
        total = (total[..., None] + move[..., None, :]).reshape(*move.shape[:-1], -1)
    return total


def jointly(weights: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """The chance of every combination of branches, in the order of `together`."""
    total = np.ones((*chances[:, 0].shape[:-1], 1))
    for n in np.flatnonzero(weights.any(axis=0)):
        total = (total[..., None] * chances[:, n][..., None, :]).reshape(*total.shape[:-1], -1)
    return total


def sampling_error(values: np.ndarray) -> np.ndarray:
    r"""By how much the mean of nonnegative values on paths drawn at random, (..., S), may exceed the true one.

    One path in ten says where values are cut, at c, twice the largest of them; cutting makes a mean smaller. Of the
    n others, the sample variance V and Maurer and Pontil's empirical Bernstein inequality (2009, Theorem 4) say that
    with probability $1-\delta$ the true mean is at least $\bar v-\sqrt{2V\ln(2/\delta)/n}-7c\ln(2/\delta)/(3(n-1))$.
    """
    pilot, rest = np.split(values, [values.shape[-1] // PILOT], axis=-1)
    cut = 2 * pilot.max(axis=-1)
    kept = np.minimum(rest, cut[..., None])
    n, level = rest.shape[-1], np.log(2 / UNLIKELY)
    width = np.sqrt(2 * kept.var(axis=-1, ddof=1) * level / n) + 7 * cut * level / (3 * (n - 1))
    return values.mean(axis=-1) - np.maximum(kept.mean(axis=-1) - width, 0)
