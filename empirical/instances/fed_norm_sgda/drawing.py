r"""Random rounds of Fed-Norm-SGDA: small minimax problems whose constants are known exactly, weights and steps.

Client i has $f_i=s_if_0+b_{x,i}^\top x+b_{y,i}^\top y$ with a common $f_0$: with $\bar s=\sum_iw_is_i$, $t_i=s_i/\bar s$
and $e_i=b_i-t_i\bar b$ its gradient in a block is $t_im+e_i$ where m is that of $\tilde F$, so that
$$\sum_iw_i\|t_im+e_i\|^2\le(\textstyle\sum_iw_it_i^2+\theta)\|m\|^2+\sum_iw_i\|e_i\|^2
+\tfrac1\theta\|\sum_iw_it_ie_i\|^2$$
is Assumption 3 with its constants. Noise of one local step of client i is $\pm\sqrt{\sigma_i^2+\beta_i^2\|\nabla_bf_i\|^2}$
in a fixed direction of each block, one sign for both blocks with equal chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

from empirical.instances.population import Population

Array = np.ndarray


def lift(v: Array, x: Array) -> Array:
    """Parameters (B, d) for points (B, ..., d)."""
    return v.reshape(len(v), *[1] * (x.ndim - 2), v.shape[1])


def times(matrix: Array, x: Array) -> Array:
    """Matrices (B, c, d) times vectors (B, ..., d)."""
    return np.einsum("bij,b...j->b...i", matrix, x)


class Shape(NamedTuple):
    """What all instances of one population share.

    Attributes:
        clients: n.
        sampled: P.
        steps: the most local steps of a client.
        in_x, in_y: dimensions.
    """

    clients: int
    sampled: int
    steps: int
    in_x: int
    in_y: int


@dataclass(frozen=True, eq=False)
class RoundInstances(Population):
    r"""B rounds, each with its own problem, which subclasses say.

    Attributes:
        x, y: the round's start, (B, d_x) and (B, d_y).
        snapshot: the x at which Fed-Norm-SGDA+ takes gradients in y, (B, d_x).
        scale: $s_i$, positive, (B, n).
        slope_x, slope_y: $b_{x,i}$ and $b_{y,i}$, (B, n, d_x) and (B, n, d_y).
        w: weights of the clients, (B, n).
        tau: local steps, (B, n).
        coefficients: $a_i^{(j)}(k)$ at [k, j], zero from j = k on and from k > tau_i on, (B, n, steps + 1, steps).
        sigma, beta: of a client's noise, (B, n).
        noise_x, noise_y: unit vectors, (B, n, d_x) and (B, n, d_y).
        theta: of Assumption 3, (B,).
        etax, etay, Gammax, Gammay: step sizes, (B,).
        sampled: P.
    """

    x: Array
    y: Array
    snapshot: Array
    scale: Array
    slope_x: Array
    slope_y: Array
    w: Array
    tau: Array
    coefficients: Array
    sigma: Array
    beta: Array
    noise_x: Array
    noise_y: Array
    theta: Array
    etax: Array
    etay: Array
    Gammax: Array
    Gammay: Array
    sampled: int

    # --- the problem -------------------------------------------------------------------------------------------------

    def common(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both blocks of grad f_0 at points (B, ..., d_x), (B, ..., d_y)."""
        raise NotImplementedError

    def common_value(self, x: Array, y: Array) -> Array:
        """f_0 at points."""
        raise NotImplementedError

    def maximiser(self, x: Array) -> Array:
        """A maximiser of F~(x, .)."""
        raise NotImplementedError

    def proximal(self, x: Array) -> Array:
        """The minimiser of Phi~ + Lf |. - x|^2."""
        raise NotImplementedError

    @cached_property
    def common_smoothness(self) -> Array:
        """Of f_0, (B,)."""
        raise NotImplementedError

    @cached_property
    def strong_concavity(self) -> Array:
        """mu of F~ in y, (B,); 0 if there is none."""
        raise NotImplementedError

    @cached_property
    def envelope_smoothness(self) -> Array:
        """Smoothness of Phi~, or a bound of it, (B,)."""
        raise NotImplementedError

    @cached_property
    def steepest(self) -> Array:
        """Gx, (B,); 1 where there is none."""
        raise NotImplementedError

    def met(self) -> dict[str, Array | bool]:
        """Which assumptions on the problem each instance meets."""
        raise NotImplementedError

    @cached_property
    def mean_scale(self) -> Array:
        """sum_i w_i s_i, (B,)."""
        return (self.w * self.scale).sum(axis=1)

    @cached_property
    def mean_slopes(self) -> tuple[Array, Array]:
        """sum_i w_i b_i in both blocks, (B, d)."""
        return tuple((self.w[:, :, None] * b).sum(axis=1) for b in (self.slope_x, self.slope_y))  # type: ignore[return-value]

    def gradients(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both blocks of grad f_i at points (B, n, ..., d) of every client."""
        found = []
        for g, slope in zip(self.common(x, y), (self.slope_x, self.slope_y), strict=True):
            shape = (*slope.shape[:2], *[1] * (g.ndim - 3))
            found.append(self.scale.reshape(*shape, 1) * g + slope.reshape(*shape, slope.shape[2]))
        return found[0], found[1]

    def values(self, x: Array, y: Array) -> Array:
        """f_i at points (B, n, ..., d) of every client."""
        value = self.common_value(x, y)
        shape = (*self.scale.shape, *[1] * (value.ndim - 2))
        linear = [
            (slope.reshape(*shape, slope.shape[2]) * point).sum(axis=-1)
            for slope, point in ((self.slope_x, x), (self.slope_y, y))
        ]
        return self.scale.reshape(shape) * value + linear[0] + linear[1]

    def mean_gradients(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both blocks of grad F~ at points (B, ..., d)."""
        found = (
            lift(self.mean_scale[:, None], g) * g + lift(slope, g)
            for g, slope in zip(self.common(x, y), self.mean_slopes, strict=True)
        )
        return tuple(found)  # type: ignore[return-value]

    def objective(self, x: Array, y: Array) -> Array:
        """F~ at points (B, ..., d)."""
        value = self.common_value(x, y)
        linear = [(lift(slope, p) * p).sum(axis=-1) for slope, p in zip(self.mean_slopes, (x, y), strict=True)]
        return self.mean_scale.reshape(-1, *[1] * (value.ndim - 1)) * value + linear[0] + linear[1]

    def envelope(self, x: Array) -> Array:
        """Phi~ at points (B, ..., d_x)."""
        return self.objective(x, self.maximiser(x))

    # --- constants ---------------------------------------------------------------------------------------------------

    @cached_property
    def smoothness(self) -> Array:
        """Lf, (B,)."""
        return self.scale.max(axis=1) * self.common_smoothness

    @cached_property
    def heterogeneity(self) -> tuple[Array, Array]:
        """betaG and sigmaG, (B,)."""
        w, t = self.w[:, :, None], (self.scale / self.mean_scale[:, None])[:, :, None]
        growth, level = (w * t**2).sum(axis=(1, 2)), np.zeros(len(self))
        mixed = np.zeros(len(self), dtype=bool)
        for slope in (self.slope_x, self.slope_y):
            e = slope - t * (w * slope).sum(axis=1, keepdims=True)
            both = (w * t * e).sum(axis=1)
            both = np.where(np.abs(both) < 1e-14 * np.abs(w * t * slope).sum(axis=1), 0.0, both)
            mixed |= (both != 0).any(axis=1)
            level = np.maximum(level, (w * e**2).sum(axis=(1, 2)) + (both**2).sum(axis=1) / self.theta)
        growth = growth + np.where(mixed, self.theta, 0.0)
        return np.sqrt(np.maximum(growth, 1.0)), np.sqrt(level)

    @cached_property
    def gradient_size(self) -> Array:
        """How large the summands of a gradient at the round's start and at the snapshot are, (B,)."""
        far = sum(np.linalg.norm(p, axis=1) for p in (self.x, self.y, self.snapshot))
        slopes = (np.linalg.norm(slope, axis=2).max(axis=1) for slope in (self.slope_x, self.slope_y))
        return self.smoothness * far + sum(slopes)

    @cached_property
    def final(self) -> Array:
        """a_i, (B, n, steps)."""
        return np.take_along_axis(self.coefficients, self.tau[:, :, None, None], axis=2)[:, :, 0]

    @cached_property
    def last(self) -> Array:
        """Where a local step is a client's last, (B, n, steps)."""
        return np.arange(self.final.shape[2]) == self.tau[:, :, None] - 1

    @cached_property
    def constants(self) -> dict[str, Array]:
        """The letters of the proofs that no run is needed for, each (B, 1), or (B, 1, n) for those of clients."""
        n, P, w, a = self.w.shape[1], self.sampled, self.w, self.final
        L, (betaG, sigmaG) = self.smoothness, self.heterogeneity
        betaL, sigmaL = self.beta.max(axis=1), self.sigma.max(axis=1)
        kappa = L / np.where(self.strong_concavity > 0, self.strong_concavity, L)
        one, squares, before = a.sum(axis=2), (a**2).sum(axis=2), np.where(self.last, 0.0, a)
        one_before, squares_before = before.sum(axis=2), (before**2).sum(axis=2)
        r, d = n / P, (n - P) / max(1, n - 1)
        c = n * (P - 1) / (P * (n - 1)) if n > 1 else 1.0
        W, K = w.max(axis=1), (w * a.max(axis=2) / one).max(axis=1)
        Z, Q = (w**2 * squares / one**2).sum(axis=1), (w * squares / one**2).max(axis=1)
        alpha = self.coefficients.max(axis=(1, 2, 3))
        D = (one_before**2 + betaL[:, None] ** 2 * squares_before).max(axis=1)
        C_w = (w * squares_before).sum(axis=1)
        S_1, S_2 = d * W + betaL**2 * Q, d * W + betaL**2 * K
        steps, taueff = self.etax**2 + self.etay**2, (w * one).sum(axis=1)
        Gx, w2, drift = self.steepest, (w**2).sum(axis=1), 8 * L**2 * D * betaG**2
        found: dict[str, Array | float] = {
            "Lf": L, "mu": L / kappa, "kappa": kappa, "sigmaL": sigmaL, "betaL": betaL, "sigmaG": sigmaG,
            "betaG": betaG, "nu": np.minimum(2.0, self.tau.max(axis=1)), "Gx": Gx, "etax": self.etax, "etay": self.etay,
            "Gammax": self.Gammax, "Gammay": self.Gammay, "n": n, "P": P, "r": r, "c": c, "d": d, "W": W, "Z": Z,
            "Q": Q, "K": K, "D": D, "C_w": C_w, "S_1": S_1, "S_2": S_2, "alpha": alpha, "L_Phi": (1 + kappa) * L,
            "a_m": (one * (one_before + (betaL**2 * alpha)[:, None])).max(axis=1), "taueff": taueff,
            "taubar": self.tau.mean(axis=1), "A_w": n * taueff * Z, "B_w": n * taueff * Q, "E_w": n * W,
            "N": r * (sigmaL**2 * Z + 2 * sigmaG**2 * S_1), "V": steps * L**2 * (sigmaL**2 * C_w + 2 * sigmaG**2 * D),
            "theta_G": drift * self.etax**2, "theta_delta": drift * L * (2 * kappa * self.etax**2 + self.etay**2),
            "sum w_i^2": w2, "I_1^2": r * Z * (sigmaL**2 + betaL**2 * Gx**2) + Gx**2 * (c + r * d * w2),
            "V_C": steps * L**2 * (sigmaL**2 * C_w + 2 * D * (Gx**2 + sigmaG**2)),
        }  # fmt: skip
        by_client = {"w": w, "tau": self.tau, "a1": one, "a2": squares, "amax": a.max(axis=2)}
        by_client["alast"] = np.where(self.last, a, 0.0).sum(axis=2)
        whole = {name: np.broadcast_to(value, len(self)).astype(float)[:, None] for name, value in found.items()}
        return whole | {name: value.astype(float)[:, None] for name, value in by_client.items()}


# --- two families ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CoupledInstances(RoundInstances):
    r"""$f_0=\frac12x^\top Ax+\sum_j\frac\rho{\omega^2}\cos(\omega x_j)+x^\top By-\frac12y^\top My$, strongly concave in y.

    Attributes:
        curvature: A, symmetric, (B, d_x, d_x).
        ripple, frequency: $\rho$ and $\omega$, (B,).
        coupling: B, (B, d_x, d_y).
        down: the diagonal of M, positive, (B, d_y).
    """

    curvature: Array
    ripple: Array
    frequency: Array
    coupling: Array
    down: Array

    def common(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both blocks of grad f_0."""
        wave = self._lift(self.ripple / self.frequency, x) * np.sin(self._lift(self.frequency, x) * x)
        in_x = times(self.curvature, x) - wave + times(self.coupling, y)
        return in_x, times(self.coupling.swapaxes(1, 2), x) - lift(self.down, y) * y

    def common_value(self, x: Array, y: Array) -> Array:
        """f_0."""
        wave = self._lift(self.ripple / self.frequency**2, x) * np.cos(self._lift(self.frequency, x) * x)
        in_x = (x * times(self.curvature, x)).sum(axis=-1) / 2 + wave.sum(axis=-1)
        return in_x + (x * times(self.coupling, y)).sum(axis=-1) - (lift(self.down, y) * y**2).sum(axis=-1) / 2

    def _lift(self, v: Array, x: Array) -> Array:
        return lift(v[:, None], x)

    def maximiser(self, x: Array) -> Array:
        """The maximiser of F~(x, .)."""
        pull = self.mean_slopes[1] / self.mean_scale[:, None]
        moved = times(self.coupling.swapaxes(1, 2), x)
        return (moved + lift(pull, moved)) / lift(self.down, moved)

    def _smooth(self) -> Array:
        """A + B M^{-1} B^T, (B, d_x, d_x)."""
        return self.curvature + (self.coupling / self.down[:, None]) @ self.coupling.swapaxes(1, 2)

    def proximal(self, x: Array) -> Array:
        """By iteration: the ripple's slope contracts by two at least."""
        s, L, d = self.mean_scale[:, None], self.smoothness[:, None], x.shape[-1]
        fixed = self.mean_slopes[0] + times(self.coupling, self.mean_slopes[1] / self.down)
        inverse = np.linalg.inv(s[:, None] * self._smooth() + 2 * L[:, None] * np.eye(d))
        target, size = 2 * lift(L, x) * x - lift(fixed, x), self._lift(self.ripple / self.frequency, x) * lift(s, x)
        u = times(inverse, target)
        for _ in range(55 if self.ripple.any() else 1):
            u = times(inverse, target + size * np.sin(self._lift(self.frequency, x) * u))
        return u

    def _largest(self, block: Array) -> Array:
        """The largest norm of a matrix whose first entries on the diagonal have the ripple's curvature on top."""
        signs = product((-1.0, 1.0), repeat=self.x.shape[1])
        tops = (np.pad(np.array(s), (0, block.shape[1] - len(s)))[None] * self.ripple[:, None] for s in signs)
        norms = [np.linalg.norm(block + t[:, :, None] * np.eye(block.shape[1]), ord=2, axis=(1, 2)) for t in tops]
        return np.max(norms, axis=0)

    @cached_property
    def common_smoothness(self) -> Array:
        """The norm of the Hessian, which is convex in the ripple's curvatures."""
        rows = [self.curvature, self.coupling], [self.coupling.swapaxes(1, 2), -self.down[:, :, None] * np.eye(self.down.shape[1])]
        return self._largest(np.concatenate([np.concatenate(row, axis=2) for row in rows], axis=1))

    @cached_property
    def strong_concavity(self) -> Array:
        """Of F~."""
        return self.mean_scale * self.down.min(axis=1)

    @cached_property
    def envelope_smoothness(self) -> Array:
        """The norm of the Hessian of Phi~, which is convex in the ripple's curvatures."""
        return self.mean_scale * self._largest(self._smooth())

    @cached_property
    def steepest(self) -> Array:
        """There is no Gx."""
        return np.ones(len(self))

    def met(self) -> dict[str, Array | bool]:
        """One-point concave at a maximiser that all clients share."""
        return {"strongly-concave": True, "concave": True, "one-point-concave": ~self.slope_y.any(axis=(1, 2))}


FLATTEST = 1 + np.exp(-2.0)  # the largest slope of |u|(1 - e^{-|u|})


@dataclass(frozen=True, eq=False)
class BoundedInstances(RoundInstances):
    r"""$f_0=\sum_j\rho\cos x_j-q\,\psi(y_j-s\sin x_j)$ in equal dimensions: Lipschitz in x.

    Attributes:
        ripple: $\rho$, (B,).
        height, bend: q and s, (B,).
        concave: $\psi(u)=\log\cosh u$ where it holds, else $|u|(1-e^{-|u|})$, (B,).
    """

    ripple: Array
    height: Array
    bend: Array
    concave: Array

    def _pieces(self, x: Array, y: Array) -> tuple[Array, ...]:
        """rho, q, s, whether concave, and u, for points."""
        parts = tuple(lift(v[:, None], x) for v in (self.ripple, self.height, self.bend, self.concave))
        return *parts, y - parts[2] * np.sin(x)

    def common(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both blocks of grad f_0."""
        ripple, q, s, concave, u = self._pieces(x, y)
        away = np.abs(u)
        slope = q * np.where(concave, np.tanh(u), np.sign(u) * (1 - np.exp(-away) * (1 - away)))
        return -ripple * np.sin(x) + s * np.cos(x) * slope, -slope

    def common_value(self, x: Array, y: Array) -> Array:
        """f_0."""
        ripple, q, _, concave, u = self._pieces(x, y)
        away = np.abs(u)
        hill = np.where(concave, away + np.log1p(np.exp(-2 * away)) - np.log(2), away * (1 - np.exp(-away)))
        return (ripple * np.cos(x) - q * hill).sum(axis=-1)

    @cached_property
    def _top(self) -> Array:
        """y - s sin x at the maximiser, (B, d)."""
        return np.arctanh(self.mean_slopes[1] / (self.mean_scale * self.height)[:, None])

    def maximiser(self, x: Array) -> Array:
        """A maximiser of F~(x, .)."""
        return lift(self.bend[:, None], x) * np.sin(x) + lift(self._top, x)

    def proximal(self, x: Array) -> Array:
        """By iteration: Phi~ is Lf-smooth, so that a step of 1/(2 Lf) contracts by two at least."""
        u, L = x, lift(self.smoothness[:, None], x)
        for _ in range(55):
            u = x - self.mean_gradients(u, self.maximiser(u))[0] / (2 * L)
        return u

    def _slopes(self) -> tuple[Array, Array]:
        """The largest slopes of psi, and of that slope, (B,)."""
        return np.where(self.concave, 1.0, FLATTEST), np.where(self.concave, 1.0, 2.0)

    @cached_property
    def common_smoothness(self) -> Array:
        """A bound of the norm of the Hessian."""
        (first, second), q, s = self._slopes(), self.height, self.bend
        return np.hypot(self.ripple, q * s * first) + second * q * (1 + s**2)

    @cached_property
    def strong_concavity(self) -> Array:
        """There is none."""
        return np.zeros(len(self))

    @cached_property
    def envelope_smoothness(self) -> Array:
        """A bound."""
        return self.mean_scale * np.hypot(self.ripple, self.height * self.bend)

    @cached_property
    def steepest(self) -> Array:
        """A bound, attained in one dimension without slopes."""
        of_f0 = np.sqrt(self.x.shape[1]) * np.hypot(self.ripple, self.height * self.bend * self._slopes()[0])
        return (self.scale * of_f0[:, None] + np.linalg.norm(self.slope_x, axis=2)).max(axis=1)

    def met(self) -> dict[str, Array | bool]:
        """One-point concave at a maximiser that all clients share."""
        shared = ~self.slope_y.any(axis=(1, 2))
        return {"lipschitz-in-x": True, "concave": self.concave, "one-point-concave": shared}


# --- drawing ---------------------------------------------------------------------------------------------------------


def draw_coefficients(rng: np.random.Generator, tau: Array, steps: int) -> Array:
    """SGDA, momentum or variable step sizes, one kind for all clients of an instance, (B, n, steps + 1, steps)."""
    B = len(tau)
    k, j = np.arange(steps + 1)[:, None], np.arange(steps)
    momentum = rng.uniform(0, 0.95, (B, 1, 1))
    kinds = np.stack([
        np.ones((B, steps + 1, steps)),
        (1 - momentum ** np.maximum(k - j, 0)) / (1 - momentum),
        np.repeat(rng.uniform(0.1, 2, (B, 1, steps)), steps + 1, axis=1),
    ])  # fmt: skip
    chosen = kinds[rng.choice(3, size=B, p=(0.5, 0.25, 0.25)), np.arange(B)]
    some = (j < k) & (k <= tau[:, :, None, None])
    return np.where(some, chosen[:, None], 0.0)


def unit(rng: np.random.Generator, *shape: int) -> Array:
    """Random unit vectors."""
    v = rng.normal(size=shape)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def draw_shared(rng: np.random.Generator, B: int, shape: Shape, sizes: Array, even: Array) -> dict[str, Array]:
    """What every family draws alike.

    Args:
        rng: the source of randomness.
        B: how many.
        shape: of the population.
        sizes: of the clients' slopes, (B,).
        even: where all scales are 1, (B,).
    """
    n, T, dx, dy = shape.clients, shape.steps, shape.in_x, shape.in_y

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    w = np.where(pick(0, 0, 1)[:, None] > 0, np.full((B, n), 1 / n), rng.dirichlet(np.full(n, 1.0), size=B))
    tau = np.where(pick(0, 1)[:, None] > 0, T, rng.integers(1, T + 1, (B, n)))
    less = np.where(pick(0, 1)[:, None] > 0, 1.0, rng.uniform(0, 1, (B, n)) * (rng.random((B, n)) < 0.7))
    less[np.arange(B), rng.integers(0, n, B)] = 1.0
    return {
        "scale": np.where(even[:, None], 1.0, rng.uniform(0.2, 2, (B, n))),
        "slope_x": sizes[:, None, None] * rng.normal(size=(B, n, dx)),
        "slope_y": sizes[:, None, None] * rng.normal(size=(B, n, dy)),
        "w": w, "tau": tau, "coefficients": draw_coefficients(rng, tau, T),
        "sigma": pick(0.0, 0.1, 1.0, 10.0)[:, None] * less, "beta": pick(0.0, 0.0, 0.5, 2.0)[:, None] * less,
        "noise_x": unit(rng, B, n, dx), "noise_y": unit(rng, B, n, dy), "theta": pick(0.1, 1.0),
        "etax": np.zeros(B), "etay": np.zeros(B), "Gammax": np.ones(B), "Gammay": np.ones(B),
    }  # fmt: skip


def draw_coupled(rng: np.random.Generator, B: int, shape: Shape) -> CoupledInstances:
    """Quadratics, some with ripples, some without coupling; some start where the envelope has no gradient."""
    dx, dy = shape.in_x, shape.in_y

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    even = pick(0, 1) > 0
    shared = draw_shared(rng, B, shape, pick(0.0, 0.0, 0.1, 1.0), even)
    spread = rng.normal(size=(B, dx, dx))
    flat = pick(1, 1, -1)[:, None, None] * np.eye(dx)
    A = pick(0.1, 1.0, 3.0)[:, None, None] * np.where(pick(0, 1)[:, None, None] > 0, (spread + spread.swapaxes(1, 2)) / 2, flat)
    down = pick(0.1, 1.0, 3.0)[:, None] * np.where(pick(0, 1)[:, None] > 0, 1.0, rng.uniform(0.1, 1, (B, dy)))
    z = CoupledInstances(
        x=pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dx)),
        y=np.zeros((B, dy)),
        snapshot=np.zeros((B, dx)),
        **shared,
        sampled=shape.sampled,
        curvature=A,
        ripple=pick(0.0, 0.0, 1.0, 3.0),
        frequency=pick(1.0, 5.0, 20.0),
        coupling=pick(0.0, 0.1, 1.0, 3.0)[:, None, None] * rng.normal(size=(B, dx, dy)),
        down=down,
    )  # fmt: skip
    z = replace(
        z,
        y=z.maximiser(z.x) + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dy)),
        snapshot=z.x + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dx)),
    )
    flat_here = z.mean_gradients(z.x, z.maximiser(z.x))[0][:, None] * (even & (pick(0, 1) > 0))[:, None, None]
    return with_steps(rng, replace(z, slope_x=z.slope_x - flat_here))


def draw_bounded(rng: np.random.Generator, B: int, shape: Shape) -> BoundedInstances:
    """Functions that are Lipschitz in x, concave in y or only one-point concave."""
    d = shape.in_x

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    concave, even = pick(0, 1, 1) > 0, pick(0, 1) > 0
    shared = draw_shared(rng, B, shape, pick(0.0, 0.05, 0.3), even)
    height = pick(0.3, 1.0, 3.0)
    lean = np.abs((shared["w"][:, :, None] * shared["slope_y"]).sum(axis=1)).max(axis=1)
    room = 0.9 * height * (shared["w"] * shared["scale"]).sum(axis=1)
    fitted = shared["slope_y"] * np.minimum(1, room / np.maximum(lean, 1e-300))[:, None, None]
    shared["slope_y"] = fitted * (concave & (pick(0, 1) > 0))[:, None, None]
    z = BoundedInstances(
        x=rng.uniform(-3, 3, (B, d)),
        y=np.zeros((B, d)),
        snapshot=np.zeros((B, d)),
        **shared,
        sampled=shape.sampled,
        ripple=pick(0.0, 0.5, 1.0),
        height=height,
        bend=pick(0.0, 0.3, 1.0),
        concave=concave,
    )
    return with_steps(
        rng,
        replace(
            z,
            y=z.maximiser(z.x) + pick(0.0, 0.3, 2.0)[:, None] * rng.normal(size=(B, d)),
            snapshot=z.x + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, d)),
        ),
    )


Z = TypeVar("Z", bound=RoundInstances)


def with_steps(rng: np.random.Generator, z: Z) -> Z:
    """Step sizes of several kinds: without caps, and within those of Lemma B.3, Theorem 1, or Theorem 4."""
    B, v = len(z), {name: value[:, 0] for name, value in z.constants.items()}
    kind = rng.choice(4, size=B)
    price = np.where(rng.random(B) < 0.5, v["nu"], 1.0)
    L, kappa, betaG, r = v["Lf"], v["kappa"], v["betaG"], v["r"]
    share = np.where(rng.random((4, B)) < 0.5, 1.0, 10.0 ** rng.uniform(-2, 0, (4, B))) * (1 - 1e-9)
    free = 10.0 ** rng.uniform(-1.5, 0.7, (4, B)) / L
    with np.errstate(divide="ignore"):
        own = np.minimum(1 / L, np.sqrt(1 / (8 * price * L**2 * v["a_m"])))  # (m) with equal steps
        noise, mean = np.maximum(v["betaL"] ** 2 * v["Q"], v["d"] * v["W"]), 1 / (L * np.sqrt(price * v["D"]))
        one_x = np.minimum(own, mean / (64 * kappa * betaG))
        one_y = np.minimum(own, mean / (16 * betaG * np.sqrt(kappa)))
        four_y = np.minimum(own, mean / np.sqrt(64 * np.maximum(betaG**2 * r, 1)))
        lemma = price * v["L_Phi"] * r
        three = np.min([
            1 / L, 1 / (64 * lemma * v["betaL"] ** 2 * betaG**2 * v["Q"]), 1 / (8 * lemma * v["betaL"] ** 2 * v["K"]),
            1 / (8 * lemma * v["W"] * v["d"] * np.maximum(8 * betaG**2, 1)),
        ], axis=0)  # fmt: skip
        one = np.min([
            1 / (2 * price * L), 1 / (64 * price * kappa * L * betaG**2 * r * noise),
            1 / (4 * price * L * r * v["S_2"]),
        ], axis=0)  # fmt: skip
        four = np.min([
            1 / L, 1 / (16 * price * L * r * np.maximum(betaG**2, 1) * noise),
            1 / (16 * price * L * r * np.maximum(1 - v["d"], v["betaL"] ** 2 * v["K"])),
        ], axis=0)  # fmt: skip
    rows = (
        (free[0], own, one_x, own),
        (free[1], own, one_y, four_y),
        (free[2], three, one / (156 * kappa**2), free[2]),
        (free[3], free[3], one, four),
    )
    found = [np.choose(kind, row) for row in rows]
    factor = np.where(kind == 0, 1.0, share)  # of the caps
    alike = np.where(kind == 2, factor[3], factor[2])  # (c) ties the step in x to the one in y
    return replace(
        z, etax=found[0] * factor[0], etay=found[1] * factor[1], Gammax=found[2] * alike, Gammay=found[3] * factor[3]
    )
