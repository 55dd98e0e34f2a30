r"""Whole runs of Fed-Norm-SGDA on quadratics, whose second moments are exact: instances of Sharma et al. (2023).

Client i has $f_i=\frac{s_i}2z^\top Hz+c_i^\top z$, $z=(x,y)$, $z^\top Hz=x^\top Ax+2x^\top By-\mu_0\|y\|^2$, and
$\sum_iw_ic_i=\sum_iw_is_ic_i=0$, so that the saddle of $\tilde F$ is at 0 and Assumption 3 holds with equality for
$\beta_G^2=\sum_iw_is_i^2/(\sum_iw_is_i)^2$ and $\sigma_G^2=\max_b\sum_iw_i\|c_{i,b}\|^2$. Noise is
$\beta_L\varepsilon_kG_k+R\xi_k$ with independent unit $\varepsilon_k,\xi_k$. What a client returns is
$\sum_m\chi_mG_mv$, $v=(1,z)$, with orthonormal $\chi_m$ that are products of the noises, so a round is linear in
$\mathbb Evv^\top$, and T rounds are a power of one matrix. Written from the paper's Algorithm 1 and eq. (12); shares
nothing with `fedbounds.empirical.simulation.moments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import perturb, shake
from fedbounds.empirical.falsification.instances.ranges import (
    INF,
    always,
    cancels,
    counts,
    flag,
    positive,
    reals,
    symmetric,
)
from fedbounds.empirical.papers.fed_norm_sgda.instances.workers import Values, Workers, cap_steps, draw_workers

LEAST_NOISE = 2  # columns of R


class Returned(NamedTuple):
    """What one client returns, as maps of v = (1, z) by mode of the noise, and squares along its way."""

    update: np.ndarray  # of the stochastic gradients, (B, modes, d, 1 + d)
    exact: np.ndarray  # of the exact gradients, the same
    drift: np.ndarray  # drift, fine_drift: weighted squared distances, with a_k/|a|_1 and its square, (B, 1 + d, 1 + d)
    fine_drift: np.ndarray
    noisy: tuple[np.ndarray, np.ndarray]  # squares of the exact gradients in x and in y, with the squared weights


def squares(maps: np.ndarray) -> np.ndarray:
    """Expected squared length of sum_m chi_m maps_m v, as a form in v."""
    return np.einsum("bmij,bmil->bjl", maps, maps)


def sum_over_clients(weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The weighted sum over clients, (B, n) and (B, n, d) to (B, d); zero where only rounding is left of it."""
    parts = weights[:, :, None] * vectors
    total = parts.sum(axis=1)
    return np.where(np.abs(total) < 1e-12 * np.abs(parts).sum(axis=1), 0.0, total)


def sum_of_maps(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum over clients of maps of v, (B, ..., 1 + d); its constant is zero where only rounding is left of it."""
    total, size = np.sum(parts, axis=0), np.sum(np.abs(parts), axis=0)
    total[..., 0] = np.where(np.abs(total[..., 0]) < 1e-12 * size[..., 0], 0.0, total[..., 0])
    return total


def pad_modes(maps: np.ndarray, modes: int) -> np.ndarray:
    """With zeros for the modes that came later."""
    more = np.zeros((maps.shape[0], modes - maps.shape[1], *maps.shape[2:]))
    return np.concatenate([maps, more], axis=1) if more.shape[1] else maps


@dataclass(frozen=True, eq=False)
class QuadraticRuns(Workers):
    """B runs on strongly concave quadratics."""

    bend: Annotated[np.ndarray, reals("x x")]  # A, (B, dx, dx)
    coupling: Annotated[np.ndarray, reals("x y")]  # B, (B, dx, dy)
    concavity: Annotated[np.ndarray, positive()]  # $\mu_0$, (B,)
    scales: Annotated[np.ndarray, positive("n")]  # $s_i$, (B, n)
    slopes: Annotated[np.ndarray, reals("n z")]  # $c_i$, (B, n, d)
    start: Annotated[np.ndarray, reals("z")]  # $z_0$, (B, d)
    noise: Annotated[np.ndarray, reals("z 2")]  # R, (B, d, 2)
    rounds: Annotated[np.ndarray, counts(most=INF)]  # T, (B,)
    # of mixing noise and drift in the caps that the steps are shares of: nu, or 1 as in the paper, (B,)
    price: Annotated[np.ndarray, positive()]
    wide: Annotated[bool, flag()]  # whether the steps are those of one round alone, which may be much longer
    free: Annotated[bool, flag()]  # whether the envelope may be unbounded below
    growing: Annotated[bool, flag()]  # whether $\beta_L>0$

    def rules(self) -> dict[str, np.ndarray]:
        slopes, scaled = (self.weights[:, :, None] * v for v in (self.slopes, self.scales[:, :, None] * self.slopes))
        dimensions = self.start.shape[1] == self.bend.shape[1] + self.coupling.shape[2]
        return super().rules() | {
            "the bend is symmetric": symmetric(self.bend),
            "the weighted slopes sum to zero": cancels(slopes),
            "the weighted and scaled slopes sum to zero": cancels(scaled),
            "z has the coordinates of x and of y": always(dimensions, self.start),
            "noise that grows is said to": (self.growth == 0) | self.growing,
        }

    @property
    def descent(self) -> int:
        """The dimension of x."""
        return self.bend.shape[1]

    @property
    def dimension(self) -> int:
        """The dimension of z."""
        return self.start.shape[1]

    # --- the problem ---------------------------------------------------------------------------------------------

    @cached_property
    def hessian(self) -> np.ndarray:
        """H, (B, d, d)."""
        below = -self.concavity[:, None, None] * np.eye(self.dimension - self.descent)
        return np.block([[self.bend, self.coupling], [self.coupling.transpose(0, 2, 1), below]])

    @cached_property
    def smoothness(self) -> np.ndarray:
        """Lf, (B,)."""
        return self.scales.max(axis=1) * np.abs(np.linalg.eigvalsh(self.hessian.astype(float))).max(axis=1)

    @cached_property
    def strength(self) -> np.ndarray:
        """mu of the flattest client, (B,)."""
        return self.scales.min(axis=1) * self.concavity

    @cached_property
    def condition(self) -> np.ndarray:
        """kappa."""
        return self.smoothness / self.strength

    @cached_property
    def mean_scale(self) -> np.ndarray:
        """sum_i w_i s_i, (B,)."""
        return (self.weights * self.scales).sum(axis=1)

    @cached_property
    def envelope(self) -> np.ndarray:
        """The Hessian of the envelope, (B, dx, dx)."""
        pulled = self.coupling @ self.coupling.transpose(0, 2, 1) / self.concavity[:, None, None]
        return self.mean_scale[:, None, None] * (self.bend + pulled)

    @cached_property
    def bounded_below(self) -> np.ndarray:
        """Whether the envelope is, (B,)."""
        return np.linalg.eigvalsh(self.envelope.astype(float))[:, 0] >= 0

    @cached_property
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """sigma_G and beta_G, each (B,)."""
        squared = np.maximum(*self._in_blocks((self.weights[:, :, None] * self.slopes**2).sum(axis=1)))
        growth = (self.weights * self.scales**2).sum(axis=1) / self.mean_scale**2
        return np.sqrt(squared), np.sqrt(np.maximum(growth, 1))

    def noise_level(self, whole: bool) -> np.ndarray:
        """sigma_L of the gradient as a whole, or of the noisier block, (B,)."""
        in_x, in_y = self._in_blocks((self.noise**2).sum(axis=2))
        return np.sqrt(in_x + in_y if whole else np.maximum(in_x, in_y))

    def _in_blocks(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums over the coordinates of x and of y, each (B,), of (B, d)."""
        return values[:, : self.descent].sum(axis=1), values[:, self.descent :].sum(axis=1)

    # --- one round -----------------------------------------------------------------------------------------------

    def _blocks(self, in_x: np.ndarray, in_y: np.ndarray) -> np.ndarray:
        """One number for the coordinates of x and one for those of y, (B, d)."""
        return np.where(np.arange(self.dimension) < self.descent, in_x[:, None], in_y[:, None])

    def _returned(self, i: int) -> Returned:
        B, d, dx = len(self), self.dimension, self.descent
        H = (self.scales[:, i, None, None] * self.hessian)[:, None]
        received = np.concatenate([self.slopes[:, i, :, None], H[:, 0]], axis=2)
        steps = self._blocks(-self.etax, self.etay)
        fresh = np.zeros((B, LEAST_NOISE, d, 1 + d))
        fresh[:, :, :, 0] = self.noise.transpose(0, 2, 1)
        iterate, buffer, exact = (np.zeros((B, 1, d, 1 + d)) for _ in range(3))
        drift, fine, in_x, in_y = (np.zeros((B, 1 + d, 1 + d)) for _ in range(4))
        share = (self.coefficients[:, i] / self.norms["a1"][:, i, None])[:, :, None, None]
        for k in range(self.tau[i]):
            moved = steps[:, None, :, None] * iterate
            gradient = H @ moved
            gradient[:, 0] += received
            away, a = squares(moved), share[:, k]
            drift, fine = drift + a * away, fine + a**2 * away
            in_x, in_y = in_x + a**2 * squares(gradient[:, :, :dx]), in_y + a**2 * squares(gradient[:, :, dx:])
            exact = pad_modes(exact, gradient.shape[1]) + a[:, None] * gradient
            shaken_ = [self.growth[:, None, None, None] * gradient] if self.growing else []
            noisy = np.concatenate([gradient, *shaken_, fresh], axis=1)
            buffer = self.momentum[:, i, None, None, None] * pad_modes(buffer, noisy.shape[1])
            buffer = buffer + self.rates[:, i, k, None, None, None] * noisy
            iterate = pad_modes(iterate, noisy.shape[1]) + buffer
        update = iterate / self.norms["a1"][:, i, None, None, None]
        return Returned(update, pad_modes(exact, update.shape[1]), drift, fine, (in_x, in_y))

    @cached_property
    def returned(self) -> Sequence[Returned]:
        """Of every client."""
        return [self._returned(i) for i in range(self.clients)]

    @cached_property
    def transition(self) -> np.ndarray:
        r"""The matrix that takes $\mathbb Ev_tv_t^\top$ to that of the next round, (B, (1+d)^2, (1+d)^2)."""
        B, q, w = len(self), 1 + self.dimension, self.weights
        server = self._blocks(-self.Gammax, self.Gammay)
        mean, second = np.zeros((B, q, q), self.start.dtype), np.zeros((B, q, q, q, q), self.start.dtype)
        both = self.sampled * (1 - self.rest)  # c
        moves = [w[:, i, None, None, None] * server[:, None, :, None] * c.update for i, c in enumerate(self.returned)]
        mean[:, 1:] = sum_of_maps([moved[:, 0] for moved in moves])
        for moved in moves:
            second[:, 1:, 1:] += self.sampled * np.einsum("bmik,bmjl->bijkl", moved, moved)
            second[:, 1:, 1:] -= both * np.einsum("bik,bjl->bijkl", moved[:, 0], moved[:, 0])
        unit = np.broadcast_to(np.eye(q), (B, q, q))
        second += both * np.einsum("bik,bjl->bijkl", mean, mean)
        for left, right in ((unit, unit), (mean, unit), (unit, mean)):
            second += np.einsum("bik,bjl->bijkl", left, right)
        return second.reshape(B, q * q, q * q)

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""$\mathbb Evv^\top$ at the start, after a round, and its mean over the T rounds, each (B, (1+d)^2)."""
        first = np.concatenate([np.ones((len(self), 1)), self.start], axis=1)
        at = np.einsum("bi,bj->bij", first, first).reshape(len(self), -1)
        with np.errstate(all="ignore"):
            after = np.einsum("bij,bj->bi", self.transition, at)
            return at, after, sum_powers(self.transition, at, self.rounds) / self.rounds[:, None]

    # --- the results' quantities ---------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> Values:
        """Quadratic forms in v whose expectations the results are about, each (B, (1+d)^2)."""
        B, q, dx, w = len(self), 1 + self.dimension, self.descent, self.weights[:, :, None, None]
        x, y = np.eye(q)[1 : 1 + dx], np.eye(q)[1 + dx :]
        pulled = self.coupling.transpose(0, 2, 1) / self.concavity[:, None, None]
        slope, away = self.envelope @ x, y - pulled @ x
        mean_gradient = np.concatenate([np.zeros((B, q - 1, 1)), self.mean_scale[:, None, None] * self.hessian], axis=2)
        drifts, fine = (np.stack([getattr(c, name) for c in self.returned], 1) for name in ("drift", "fine_drift"))
        noisy = [(w**2 * np.stack([c.noisy[b] for c in self.returned], 1)).sum(axis=1) for b in (0, 1)]
        Lf2 = self.smoothness[:, None, None] ** 2
        gap = (self.mean_scale * self.concavity / 2)[:, None, None] * squares(away[:, None])
        found = {
            "envelope": x.T @ (self.envelope @ x) / 2,
            "gradsq": squares(slope[:, None]),
            "gap": gap,
            "gradxsq": squares(mean_gradient[:, None, :dx]),
            "drift": Lf2 * (w * drifts).sum(axis=1),
            "sampledrift": Lf2 * (w**2 * drifts).sum(axis=1),
            "noisydrift": Lf2 * (w**2 * fine).sum(axis=1),
            "noisysq": noisy[0],
            "noisysq_y": noisy[1],
            "direction": self._direction(slice(0, dx)),
            "update": self._update(slice(0, dx)),
            "update_y": self._update(slice(dx, None)),
        }
        return {name: form.reshape(B, -1) for name, form in found.items()}

    def _direction(self, block: slice) -> np.ndarray:
        """E|sum_i w_i h_i|^2 in one block."""
        parts = [self.weights[:, i, None, None, None] * c.exact[:, :, block] for i, c in enumerate(self.returned)]
        mean = sum_of_maps([part[:, :1] for part in parts])
        return squares(mean) + sum((squares(part[:, 1:]) for part in parts), start=np.zeros(1))

    def _update(self, block: slice) -> np.ndarray:
        """E|g|^2 of the server's direction in one block."""
        parts = [self.weights[:, i, None, None, None] * c.update[:, :, block] for i, c in enumerate(self.returned)]
        mean, both = sum_of_maps([part[:, :1] for part in parts]), self.sampled * (1 - self.rest)
        own = sum((self.sampled * squares(part) - both * squares(part[:, :1]) for part in parts), start=np.zeros(1))
        return own + both * squares(mean)

    def expected(self, name: str, when: int) -> np.ndarray:
        """A form's expectation at the start (0), after a round (1), or on average over the rounds (2), (B, 1)."""
        with np.errstate(all="ignore"):
            return (self.forms[name] * self.moments[when]).sum(axis=1, keepdims=True)

    def error(self, name: str, when: int) -> np.ndarray:
        """The sizes of the summands of that expectation, (B, 1)."""
        with np.errstate(all="ignore"):
            return np.abs(self.forms[name] * self.moments[when]).sum(axis=1, keepdims=True)

    def symbols(self, whole: bool) -> Values:
        """The constants, exact; sigma_L of the gradient as a whole if `whole`."""
        sigmaG, betaG = self.spread
        found = {
            "Lf": self.smoothness,
            "mu": self.strength,
            "kappa": self.condition,
            "sigmaL": self.noise_level(whole),
            "sigmaG": sigmaG,
            "betaG": betaG,
            "T": self.rounds,
        }
        named = self.worker_symbols() | {name: value[:, None] for name, value in found.items()}
        return named | {"Delta": self.expected("envelope", 0), "delta0": self.expected("gap", 0)}

    # --- instances -----------------------------------------------------------------------------------------------

    def caps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """How long the steps in x and y, of the server and of the clients, may be; Gammax as a share of Gammay."""
        c, nu, L, kappa, beta = self.composites, self.price, self.smoothness, self.condition, self.growth**2
        betaG, r, none = self.spread[1], self.sampled, np.full(len(self), np.inf)
        seen = np.maximum(beta * c["Q"], self.rest * c["W"])
        if self.wide:
            step = nu * (1 + kappa) * L * r
            noisy = 64 * step * beta * betaG**2 * c["Q"], 8 * step * beta * c["K"]
            Gammax = cap_steps(30 / L, *noisy, 8 * step * self.rest * c["W"] * np.maximum(8 * betaG**2, 1))
            local = cap_steps(none, 2 * L * self.norms["a1"].max(axis=1) * np.sqrt(2 * (1 + beta)))
            return Gammax, 1 / L, local, local
        Gammay = cap_steps(none, 2 * nu * L, 64 * nu * kappa * L * betaG**2 * r * seen, 4 * nu * L * r * c["S_2"])
        drift = L * betaG * np.sqrt(nu * c["D"])
        descent, ascent = (
            cap_steps(none, factor, 2 * L * np.sqrt(2 * nu * c["a_m"]), L * self.norms["a1"].max(axis=1))
            for factor in (64 * kappa * drift, 16 * np.sqrt(kappa) * drift)
        )
        return Gammay / (156 * kappa**2), Gammay, descent, ascent

    def shares(self) -> tuple[np.ndarray, ...]:
        """The steps as shares of their caps."""
        x, y, local_x, local_y = self.caps()
        lag = self.Gammax / x if self.wide else self.Gammax / self.Gammay * y / x
        return lag, self.Gammay / y, self.etax / local_x, self.etay / local_y

    def with_step_shares(self, x: np.ndarray, y: np.ndarray, local_x: np.ndarray, local_y: np.ndarray) -> Self:
        """The same with these shares of the caps; Gammax's is of what Gammay leaves it."""
        caps = self.caps()
        descent = x if self.wide else x * y
        return replace(
            self, Gammax=descent * caps[0], Gammay=y * caps[1], etax=local_x * caps[2], etay=local_y * caps[3]
        )

    def settle(self) -> Self:
        """The same with slopes that keep the saddle at 0, and the envelope bounded below unless it may be free."""
        w, s = self.weights[:, :, None], self.scales[:, :, None]
        off = s - (w * s).sum(axis=1, keepdims=True)
        size, slopes = (w * off**2).sum(axis=1, keepdims=True), self.slopes
        for _ in range(2):  # the second time against rounding
            slopes = slopes - (w * off * slopes).sum(axis=1, keepdims=True) / np.where(size > 0, size, 1) * off
            slopes = slopes - (w * slopes).sum(axis=1, keepdims=True)
        least = 1e-12 * np.abs(self.slopes).max(axis=(1, 2), keepdims=True)
        made = replace(self, slopes=np.where(np.abs(slopes).max(axis=(1, 2), keepdims=True) < least, 0.0, slopes))
        if self.free:
            return made
        least = np.linalg.eigvalsh(made.envelope)[:, 0] / made.mean_scale
        lift = np.maximum(-least, 0) + 1e-12 * made.smoothness * (least <= 0)
        return replace(made, bend=made.bend + lift[:, None, None] * np.eye(self.descent))

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other problems, starts, noise, clients, rounds and steps; these stay within the caps."""
        limit = 10.0 if self.wide else 1.0
        shares = [np.minimum(perturb(share, rng), limit if k > 1 else 1.0) for k, share in enumerate(self.shares())]
        bend = shake(self.bend, rng)
        single = np.ptp(self.scales, axis=1, keepdims=True) == 0
        moved = replace(
            self,
            **self.move_workers(rng),
            bend=(bend + bend.transpose(0, 2, 1)) / 2,
            **self.neighbors(rng, coupling=shake, concavity=perturb),
            scales=np.where(single, self.scales, perturb(self.scales, rng)),
            slopes=shake(self.slopes, rng),
            start=np.where((self.start == 0).all(axis=1, keepdims=True), 0.0, shake(self.start, rng)),
            noise=np.where((self.noise == 0).all(axis=(1, 2), keepdims=True), 0.0, shake(self.noise, rng)),
            rounds=self.rounds if self.wide else np.maximum(np.rint(perturb(self.rounds, rng)), 1),
        )
        return moved.settle().with_step_shares(*shares)


def sum_powers(matrix: np.ndarray, vector: np.ndarray, counts: np.ndarray) -> np.ndarray:
    r"""$\sum_{t<T}M^tv$ by doubling, (B, k), for (B, k, k), (B, k) and T of each instance, (B,)."""
    counts = counts.astype(np.int64)
    power, powers = matrix, np.broadcast_to(np.eye(matrix.shape[1]), matrix.shape)  # M^(2^j) and the sum below it
    total, at = np.zeros_like(vector), vector
    for bit in range(int(counts.max()).bit_length()):
        chosen = ((counts >> bit) & 1 == 1)[:, None]
        total = np.where(chosen, total + np.einsum("bij,bj->bi", powers, at), total)
        at = np.where(chosen, np.einsum("bij,bj->bi", power, at), at)
        powers, power = powers + power @ powers, power @ power
    return total


def draw_quadratics(
    rng: np.random.Generator,
    B: int,
    shape: tuple[int, int, tuple[int, ...], int],
    *,
    wide: bool = False,
    free: bool = False,
    growing: bool = False,
    even: bool = False,
) -> QuadraticRuns:
    r"""B random instances of one shape: the dimensions of x and y, local steps of every client, P."""
    dx, dy, tau, P = shape
    n, d = len(tau), dx + dy

    def sizes(*values: float) -> np.ndarray:
        return rng.choice(values, size=B)

    bend, spread = rng.normal(size=(B, dx, dx)), rng.random((B, 1)) < 0.5
    slopes = sizes(0.0, 0.0, 0.1, 1.0, 10.0)[:, None, None] * rng.normal(size=(B, n, d))
    together, noise = rng.normal(size=(B, d, 1)) * [1.0, 0.0], rng.normal(size=(B, d, LEAST_NOISE))
    noise = np.where(rng.random((B, 1, 1)) < 0.5, together, noise)  # of one source, or of two
    balance = np.where(rng.random((B, 1)) < 0.5, 1.0, sizes(0.0, 1e-3, 1.0)[:, None])  # of the noise in x and y
    noise[:, :dx] *= np.where(rng.random((B, 1, 1)) < 0.3, balance[:, :, None], 1.0)
    scales = np.where(spread, np.exp(sizes(0.3, 1.0)[:, None] * rng.normal(size=(B, n))), 1.0)
    start = sizes(0.0, 1.0, 10.0)[:, None] * rng.normal(size=(B, d))
    start[:, :dx] *= sizes(0.0, 0.1, 1.0, 1.0)[:, None]
    z = QuadraticRuns(
        **draw_workers(rng, B, tau, P, growing=growing, even=even),  # type: ignore[arg-type]
        bend=sizes(0.0, 0.1, 1.0, 1.0)[:, None, None] * (bend + bend.transpose(0, 2, 1)) / 2,
        coupling=sizes(0.0, 0.3, 1.0, 1.0)[:, None, None] * rng.normal(size=(B, dx, dy)),
        concavity=10 ** rng.uniform(-3.5, 0.5, B),
        scales=scales,
        slopes=slopes,
        start=start,
        noise=sizes(0.0, 0.1, 1.0, 10.0)[:, None, None] * noise,
        rounds=np.ones(B) if wide else np.floor(10 ** rng.uniform(0, 7, B)),
        price=np.where(rng.random(B) < 0.5, 1.0, min(2.0, max(tau))),
        wide=wide,
        free=free,
        growing=growing,
    ).settle()
    shares = (sizes(1.0, 0.3, 1e-2), sizes(1.0, 1.0, 0.3), sizes(1.0, 0.3, 0.0), sizes(1.0, 0.3, 0.0))
    if wide:
        shares = (sizes(1.0, 0.1, 1e-2, 1e-3), shares[1], sizes(5.0, 1.0, 0.5, 0.1), sizes(5.0, 1.0, 0.5, 0.1))
    return z.with_step_shares(*shares)


def draw_at_rest(rng: np.random.Generator, B: int, tau: tuple[int, ...]) -> QuadraticRuns:
    r"""One round from the saddle of $bxy-\frac\mu2y^2$: its envelope is as curved as it may be, up to $1+1/\kappa$.

    The noise in y goes with that in x, and comes back to x through b in the next local steps; all clients take part.
    """
    z = draw_quadratics(rng, B, (1, 1, tau, len(tau)), wide=True)
    coupling, ratio = rng.choice([-1.0, 1.0], B), rng.uniform(0.0, 0.7, B)
    noise = np.zeros((B, 2, LEAST_NOISE))
    noise[:, :, 0] = np.stack([np.ones(B), coupling * ratio], axis=1) * rng.choice([-1.0, 1.0], (B, 1))
    still = replace(
        z,
        bend=0 * z.bend,
        coupling=coupling[:, None, None],
        concavity=10 ** -rng.uniform(1, 4, B),
        scales=np.ones_like(z.scales),
        slopes=0 * z.slopes,
        start=0 * z.start,
        noise=noise,
    )
    shares = (rng.choice(values, B) for values in ((1.0, 0.1, 0.01), (1.0, 0.3), (1.0, 0.5, 0.1), (5.0, 3.0, 1.0)))
    return still.settle().with_step_shares(*shares)
