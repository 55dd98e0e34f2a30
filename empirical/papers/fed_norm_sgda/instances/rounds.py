r"""One round by enumeration: every path of every client's noise, every sample, and the products of the proofs' vectors.

Client i's local step k has noise of one of two values, so a client has $2^{\max\tau}$ paths; all n clients run, those
outside the sample in thought only. Points are taken less the round's start, which is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from fedbounds.empirical.papers.fed_norm_sgda.instances.problems import RoundInstances, lift

Array = np.ndarray


def every_path(steps: int) -> Array:
    """The signs of all paths, (2^steps, steps)."""
    return np.array(list(product((-1.0, 1.0), repeat=steps)))


@dataclass(frozen=True, eq=False)
class Paths:
    """All paths of all clients, each array (B, n, paths, steps, d)."""

    X: Array  # X, Y: local models before a step, less the round's start
    Y: Array
    Gx: Array  # Gx, Gy: exact gradients there; that in y at the snapshot for Fed-Norm-SGDA+
    Gy: Array
    xix: Array  # xix, xiy: noise
    xiy: Array


def run_clients(z: RoundInstances, stale: bool) -> Paths:
    """Algorithm 1, line by line, on all paths at once."""
    signs = every_path(z.coefficients.shape[3])
    start = tuple(v[:, None, None] for v in (z.x, z.y))
    directions = tuple(v[:, :, None] for v in (z.noise_x, z.noise_y))
    eta = tuple(v[:, None, None, None] for v in (-z.steps["etax"], z.steps["etay"]))
    snapshot = z.snapshot[:, None, None]
    moved: tuple[list[Array], list[Array]] = ([], [])
    exact: tuple[list[Array], list[Array]] = ([], [])
    noise: tuple[list[Array], list[Array]] = ([], [])
    shape = (*z.w.shape, len(signs))
    for k in range(signs.shape[1]):
        for b in (0, 1):
            total = np.zeros((*shape, start[b].shape[-1]))
            for j in range(k):
                total += z.coefficients[:, :, None, k, j, None] * (exact[b][j] + noise[b][j])
            moved[b].append(eta[b] * total)
        x, y = (start[b] + moved[b][k] for b in (0, 1))
        at = list(z.gradients(x, y))
        if stale:
            at[1] = z.gradients(np.broadcast_to(snapshot, x.shape), y)[1]
        for b in (0, 1):
            variance = (z.sigma**2)[:, :, None] + (z.beta**2)[:, :, None] * (at[b] ** 2).sum(axis=-1)
            exact[b].append(at[b])
            noise[b].append((signs[:, k] * np.sqrt(variance))[..., None] * directions[b])
    stacked = (np.stack(blocks[b], axis=3) for blocks in (moved, exact, noise) for b in (0, 1))
    return Paths(*stacked)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of a round by name, and the weights of the bracket."""

    local: Mapping[str, Array]  # of a client and a local step, broadcasting to (B, n, paths, steps, d)
    shared: Mapping[str, Array]  # of the server, broadcasting to (B, ways, samples, d)
    weights: Array  # w_i a_i^(k)/|a_i|_1, (B, n, steps)
    # what `w:`, `a:` and `r:` multiply the weights with, each broadcasting to (B, n, steps)
    scales: Mapping[str, Array]

    def has_vector(self, name: str) -> bool:
        """Whether there is such a vector."""
        prefix, _, base = name.rpartition(":")
        return base in self.local or (not prefix and base in self.shared)

    def product(self, a: str, b: str) -> Array:
        """The bracket of two vectors, (B, 1)."""
        if a in self.shared and b in self.shared:
            return self.mean((self.shared[a] * self.shared[b]).sum(axis=-1))
        (prefix, _, u), (other, _, v) = a.rpartition(":"), b.rpartition(":")
        assert prefix == other
        return self.bracket((self.local[u] * self.local[v]).sum(axis=-1), prefix)

    def bracket(self, values: Array, prefix: str = "") -> Array:
        """The mean over clients, paths and local steps of values (B, n, paths, steps), (B, 1)."""
        weights = self.weights * self.scales[prefix]
        return (np.broadcast_to(values, self._all).mean(axis=2) * weights).sum(axis=(1, 2))[:, None]

    @property
    def _all(self) -> tuple[int, ...]:
        return self.local["X"].shape[:4]

    @staticmethod
    def mean(values: Array) -> Array:
        """The mean over ways and samples of values (B, ways, samples), (B, 1)."""
        return values.mean(axis=(1, 2))[:, None]


def drift_weights(z: RoundInstances) -> Array:
    """rho_ik, (B, n, steps)."""
    before = np.where(z.last, 0.0, z.final)
    growth = z.beta.max(axis=1)[:, None, None] ** 2
    whole = z.final.sum(axis=2, keepdims=True) * (before.sum(axis=2, keepdims=True) + growth * z.final)
    return np.where(z.last, 0.0, whole)


def vectors(z: RoundInstances, stale: bool) -> Vectors:
    """Of Fed-Norm-SGDA, or of Fed-Norm-SGDA+ with its snapshot."""
    paths, n, P = run_clients(z, stale), z.w.shape[1], z.sampled
    share = z.final / z.final.sum(axis=2, keepdims=True)
    x, y, old = z.x[:, None, None], z.y[:, None, None], z.snapshot[:, None, None]
    best = z.maximizer(x)
    state = {"x0": np.zeros_like(x), "y0": np.zeros_like(y), "ys": best - y, "Phi": z.mean_gradients(x, best)[0]}
    state["Fx"], state["Fy"] = z.mean_gradients(x, y)
    if stale:
        state |= {"Fy": z.mean_gradients(old, y)[1], "xb": z.proximal(x) - x, "yb": z.maximizer(old) - y}
    local = {name: v[:, :, :, None] for name, v in state.items()}
    local |= {name: getattr(paths, name) for name in ("X", "Y", "Gx", "Gy", "xix", "xiy")}
    start = [np.broadcast_to(v[:, :, :, None], (len(z), n, 1, 1, v.shape[3])) for v in (x, y, old)]
    local["gx"], gy = z.gradients(start[0], start[1])
    local["gy"] = z.gradients(start[2], start[1])[1] if stale else gy
    shared = dict(state)
    ways = np.array(list(product(range(len(every_path(share.shape[2]))), repeat=n)))
    samples = np.array([[i in chosen for i in range(n)] for chosen in combinations(range(n), P)], dtype=float)
    for b in "xy":
        for mean, each, total in (("h", "G", "s"), ("z", "xi", "n")):
            of_client = (share[:, :, None, :, None] * getattr(paths, each + b)).sum(axis=3)
            local[mean + b] = of_client[:, :, :, None]
            weighed = z.w[:, None, :, None] * of_client[:, np.arange(n), ways]  # (B, ways, n, d)
            shared[total + b] = np.einsum("bwnd,cn->bwcd", weighed * (n / P), samples)
            if mean == "h":
                shared[f"H{b}"] = weighed.sum(axis=2)[:, :, None]
    shared["x1"] = -lift(z.steps["Gammax"][:, None], shared["sx"]) * (shared["sx"] + shared["nx"])
    shared["y1"] = lift(z.steps["Gammay"][:, None], shared["sy"]) * (shared["sy"] + shared["ny"])
    there = x + shared["x1"]
    shared["Fy1"] = z.mean_gradients(there, np.broadcast_to(y, (*there.shape[:3], y.shape[3])))[1]
    one = np.ones((1, 1, 1))
    scales = {"": one, "w": z.w[:, :, None], "a": z.w[:, :, None] * share, "r": drift_weights(z)}
    return Vectors(local, shared, z.w[:, :, None] * share, scales)
