r"""Rounds of Fed-Norm-SGDA on small minimax problems: what an instance is, and its exact constants.

Client i has $f_i=s_if_0+b_{x,i}^\top x+b_{y,i}^\top y$ with a common $f_0$: for $\bar s=\sum_iw_is_i$,
$t_i=s_i/\bar s$ and $e_i=b_i-t_i\bar b$, its gradient in a block is $t_im+e_i$ where m is that of $\tilde F$, so that
$$\sum_iw_i\|t_im+e_i\|^2\le(\textstyle\sum_iw_it_i^2+\theta)\|m\|^2+\sum_iw_i\|e_i\|^2
+\tfrac1\theta\|\sum_iw_it_ie_i\|^2$$
is Assumption 3 with its constants. Noise of one local step of client i is
$\pm\sqrt{\sigma_i^2+\beta_i^2\|\nabla_bf_i\|^2}$ in a fixed direction of each block, one sign for both
blocks with equal chance.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import Population, perturb, shake

Array = np.ndarray


def lift(v: Array, x: Array) -> Array:
    """Parameters (B, d) for points (B, ..., d)."""
    return v.reshape(len(v), *[1] * (x.ndim - 2), v.shape[1])


def times(matrix: Array, x: Array) -> Array:
    """Matrices (B, c, d) times vectors (B, ..., d)."""
    return np.einsum("bij,b...j->b...i", matrix, x)


def log_cosh(u: Array) -> Array:
    """Convex, with slope tanh u."""
    size = np.abs(u)
    return size + np.log1p(np.exp(-2 * size)) - np.log(2)


def one_point(u: Array) -> Array:
    """|u| (1 - exp(-|u|)), which is convex about 0 only; its steepest and sharpest are those of `ONE_POINT`."""
    size = np.abs(u)
    return -size * np.expm1(-size)


def one_point_slope(u: Array) -> Array:
    """The derivative of `one_point`."""
    size = np.abs(u)
    return np.sign(u) * (size * np.exp(-size) - np.expm1(-size))


@dataclass(frozen=True, eq=False)
class RoundInstances(Population, ABC):
    """B rounds, each with its own problem, which subclasses say."""

    x: Array  # x, y: the round's start, (B, d_x) and (B, d_y)
    y: Array
    snapshot: Array  # the x at which Fed-Norm-SGDA+ takes gradients in y, (B, d_x)
    scale: Array  # $s_i$, positive, (B, n)
    slope_x: Array  # slope_x, slope_y: $b_{x,i}$ and $b_{y,i}$, (B, n, d_x) and (B, n, d_y)
    slope_y: Array
    w: Array  # w, p: weights of the clients at the server, and in the objective that is meant, (B, n)
    p: Array
    tau: Array  # local steps, (B, n)
    coefficients: Array  # $a_i^{(j)}(k)$ at [k, j], zero from j = k on and from k > tau_i on, (B, n, steps + 1, steps)
    sigma: Array  # sigma, beta: of a client's noise, (B, n)
    beta: Array
    noise_x: Array  # noise_x, noise_y: unit vectors, (B, n, d_x) and (B, n, d_y)
    noise_y: Array
    theta: Array  # of Assumption 3, (B,)
    regime: Array  # which caps the step sizes keep, an index of `REGIMES`, (B,)
    price: Array  # of noise and drift mixing in these caps, nu or 1, (B,)
    shares: Array  # of the caps that the four step sizes take, at most 1 where there are caps, (B, 4)
    sampled: int  # P

    # --- the problem -------------------------------------------------------------------------------------------------

    @abstractmethod
    def common(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both blocks of grad f_0 at points (B, ..., d_x), (B, ..., d_y)."""

    @abstractmethod
    def common_value(self, x: Array, y: Array) -> Array:
        """f_0 at points."""

    @abstractmethod
    def maximizer(self, x: Array) -> Array:
        """A maximizer of F~(x, .)."""

    @abstractmethod
    def proximal(self, x: Array) -> Array:
        """The minimizer of Phi~ + Lf |. - x|^2."""

    @property
    @abstractmethod
    def common_smoothness(self) -> Array:
        """Of f_0, (B,)."""

    @property
    @abstractmethod
    def strong_concavity(self) -> Array:
        """mu of F~ in y, (B,); 0 if there is none."""

    @property
    @abstractmethod
    def envelope_smoothness(self) -> Array:
        """Smoothness of Phi~, or a bound of it, (B,)."""

    @property
    @abstractmethod
    def steepest(self) -> Array:
        """Gx, (B,); 1 where there is none."""

    @abstractmethod
    def met(self) -> dict[str, Array]:
        """Which assumptions on the problem each instance meets."""

    @cached_property
    def mean_scale(self) -> Array:
        """sum_i w_i s_i, (B,)."""
        return (self.w * self.scale).sum(axis=1)

    @cached_property
    def mean_slopes(self) -> tuple[Array, Array]:
        """sum_i w_i b_i in both blocks, (B, d)."""
        return (self.w[:, :, None] * self.slope_x).sum(axis=1), (self.w[:, :, None] * self.slope_y).sum(axis=1)

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
        return self.objective(x, self.maximizer(x))

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
    def composites(self) -> dict[str, Array]:
        """The symbols that do not depend on the step sizes, each (B,)."""
        n, P, w, a = self.w.shape[1], self.sampled, self.w, self.final
        L, (betaG, sigmaG) = self.smoothness, self.heterogeneity
        betaL, sigmaL = self.beta.max(axis=1), self.sigma.max(axis=1)
        kappa = L / np.where(self.strong_concavity > 0, self.strong_concavity, L)
        one, squares, before = a.sum(axis=2), (a**2).sum(axis=2), np.where(self.last, 0.0, a)
        one_before, squares_before = before.sum(axis=2), (before**2).sum(axis=2)
        d = (n - P) / max(1, n - 1)
        W, K = w.max(axis=1), (w * a.max(axis=2) / one).max(axis=1)
        Q, alpha = (w * squares / one**2).max(axis=1), self.coefficients.max(axis=(1, 2, 3))
        found: dict[str, Array | float] = {
            "Lf": L, "mu": L / kappa, "kappa": kappa, "sigmaL": sigmaL, "betaL": betaL, "sigmaG": sigmaG,
            "betaG": betaG, "nu": np.minimum(2.0, self.tau.max(axis=1)), "Gx": self.steepest, "n": n, "P": P,
            "r": n / P, "c": n * (P - 1) / (P * (n - 1)) if n > 1 else 1.0, "d": d, "W": W, "K": K, "Q": Q,
            "Z": (w**2 * squares / one**2).sum(axis=1), "C_w": (w * squares_before).sum(axis=1), "alpha": alpha,
            "D": (one_before**2 + betaL[:, None] ** 2 * squares_before).max(axis=1), "L_Phi": (1 + kappa) * L,
            "a_m": (one * (one_before + (betaL**2 * alpha)[:, None])).max(axis=1), "S_1": d * W + betaL**2 * Q,
            "S_2": d * W + betaL**2 * K, "taueff": (w * one).sum(axis=1), "taubar": self.tau.mean(axis=1),
            "sum w_i^2": (w**2).sum(axis=1), "chi2": ((self.p - w) ** 2 / w).sum(axis=1),
        }  # fmt: skip
        return {name: np.broadcast_to(value, len(self)).astype(float) for name, value in found.items()}

    @cached_property
    def steps(self) -> dict[str, Array]:
        """etax, etay, Gammax and Gammay, each (B,)."""
        v, price = self.composites, self.price
        rows = [np.choose(self.regime, row) for row in zip(*(caps(v, price) for caps in REGIMES), strict=True)]
        etax, etay, Gammax, Gammay = (row * share for row, share in zip(rows, self.shares.T, strict=True))
        tied = Gammay / (156 * v["kappa"] ** 2) * self.shares[:, 2]
        Gammax = np.where(self.regime == REGIMES.index(theorem_1), tied, Gammax)
        return {"etax": etax, "etay": etay, "Gammax": Gammax, "Gammay": Gammay}

    @cached_property
    def constants(self) -> dict[str, Array]:
        """The symbols of the proofs that no run is needed for, each (B, 1), or (B, 1, n) for those of clients."""
        v, s, n, w, a = self.composites, self.steps, self.w.shape[1], self.w, self.final
        L, D, both, drift = v["Lf"], v["D"], s["etax"] ** 2 + s["etay"] ** 2, v["Lf"] ** 2 * v["betaG"] ** 2
        noise, C_w, grows = v["sigmaL"] ** 2, v["C_w"], v["betaL"] ** 2 * v["Gx"] ** 2
        found = v | s | {
            "A_w": n * v["taueff"] * v["Z"], "B_w": n * v["taueff"] * v["Q"], "E_w": n * v["W"],
            "N": v["r"] * (noise * v["Z"] + 2 * v["sigmaG"] ** 2 * v["S_1"]),
            "V": both * L**2 * (noise * C_w + 2 * v["sigmaG"] ** 2 * D),
            "V_C": both * L**2 * (noise * C_w + 2 * D * (v["Gx"] ** 2 + v["sigmaG"] ** 2)),
            "theta_G": 8 * D * drift * s["etax"] ** 2,
            "theta_delta": 8 * L * D * drift * (2 * v["kappa"] * s["etax"] ** 2 + s["etay"] ** 2),
            "I_1^2": v["r"] * v["Z"] * (noise + grows) + v["Gx"] ** 2 * (v["c"] + v["r"] * v["d"] * v["sum w_i^2"]),
        }  # fmt: skip
        by_client = {
            "w": w,
            "p": self.p,
            "tau": self.tau,
            "a1": a.sum(axis=2),
            "a2": (a**2).sum(axis=2),
            "amax": a.max(axis=2),
        }
        by_client["alast"] = np.where(self.last, a, 0.0).sum(axis=2)
        whole = {name: value[:, None] for name, value in found.items()}
        return whole | {name: value.astype(float)[:, None] for name, value in by_client.items()}

    def describe(self, index: int) -> dict[str, Any]:
        return super().describe(index) | {name: float(value[index]) for name, value in self.steps.items()}

    def neighbor(self, rng: np.random.Generator) -> Self:
        """Everything moved a little but the numbers of local steps; the step sizes keep their caps."""
        weights = {name: perturb(getattr(self, name), rng) for name in ("w", "p")}
        turned = {name: shake(getattr(self, name), rng) for name in ("noise_x", "noise_y")}
        columns = perturb(np.ones((len(self), 1, 1, self.coefficients.shape[3])), rng)
        shares = perturb(self.shares, rng)
        return replace(
            self,
            **{name: shake(getattr(self, name), rng) for name in ("x", "y", "snapshot")},
            **{name: perturb(getattr(self, name), rng) for name in ("scale", "sigma", "beta", "theta")},
            **{name: v / np.linalg.norm(v, axis=2, keepdims=True) for name, v in turned.items()},
            slope_x=shake(self.slope_x, rng),
            **{name: v / v.sum(axis=1, keepdims=True) for name, v in weights.items()},
            coefficients=self.coefficients * columns,
            shares=np.where(self.regime[:, None] == 0, shares, np.minimum(shares, 1.0)),
        )


# --- caps on the step sizes ------------------------------------------------------------------------------------------

Caps = tuple[Array, Array, Array, Array]  # of etax, etay, Gammax and Gammay, (B,) each
Symbols = Mapping[str, Array]


def free(v: Symbols, price: Array) -> Caps:
    """No caps: in units of 1/Lf."""
    unit = 1 / v["Lf"]
    return unit, unit, unit, unit


def recursion(v: Symbols, price: Array) -> Array:
    """(m) with equal steps, (B,)."""
    with np.errstate(divide="ignore"):
        return np.minimum(1 / v["Lf"], np.sqrt(1 / (8 * price * v["Lf"] ** 2 * v["a_m"])))


def lemma_b_3(v: Symbols, price: Array) -> Caps:
    """(i), (ii) and (iii) of Lemma B.3, and (m)."""
    growth, betaG, step = v["betaL"] ** 2, v["betaG"] ** 2, price * v["L_Phi"] * v["r"]
    most = [
        64 * step * growth * betaG * v["Q"], 8 * step * v["W"] * v["d"] * np.maximum(8 * betaG, 1),
        8 * step * growth * v["K"], v["Lf"],
    ]  # fmt: skip
    own = recursion(v, price)
    return own, own, 1 / np.max(most, axis=0), 1 / v["Lf"]


def theorem_1(v: Symbols, price: Array) -> Caps:
    """(a), (b), (f), (g) and (m) of Theorem 1; (c) ties the descent step to the ascent step."""
    L, kappa, betaG, own = v["Lf"], v["kappa"], v["betaG"], recursion(v, price)
    noise = np.maximum(v["betaL"] ** 2 * v["Q"], v["d"] * v["W"])
    most = [2 * L, 64 * kappa * L * betaG**2 * v["r"] * noise, 4 * L * v["r"] * v["S_2"]]
    with np.errstate(divide="ignore"):
        etas = (1 / (k * L * betaG * np.sqrt(price * v["D"])) for k in (64 * kappa, 16 * np.sqrt(kappa)))
        etax, etay = (np.minimum(own, eta) for eta in etas)
    return etax, etay, 1 / L, 1 / (price * np.max(most, axis=0))


def theorem_4(v: Symbols, price: Array) -> Caps:
    """Those of Theorem 4 and Lemma C.2."""
    L, r, betaG, own = v["Lf"], v["r"], np.maximum(v["betaG"] ** 2, 1), recursion(v, price)
    noise = np.maximum(v["betaL"] ** 2 * v["Q"], v["d"] * v["W"])
    most = [
        L,
        16 * price * L * r * betaG * noise,
        16 * price * L * r * np.maximum(1 - v["d"], v["betaL"] ** 2 * v["K"]),
    ]
    with np.errstate(divide="ignore"):
        etay = np.minimum(own, 1 / (8 * L * np.sqrt(price * v["D"] * np.maximum(v["betaG"] ** 2 * r, 1))))
    return own, etay, 1 / L, 1 / np.max(most, axis=0)


REGIMES: tuple[Callable[[Symbols, Array], Caps], ...] = (free, lemma_b_3, theorem_1, theorem_4)
