r"""What is measured point by point: runs of Fed-Norm-SGDA+ over all their outcomes, and pairs of objectives.

The runs are on functions whose gradient in x is bounded, with one independent problem per coordinate,
$$f_i=\sum_j\big[c_{ij}x_j+\rho\cos x_j-q\,\psi(y_j-s\sin x_j)+d_{ij}y_j\big],\qquad\textstyle\sum_iw_ic_i=0,$$
with $\psi=\log\cosh$, or $\psi(u)=|u|(1-e^{-|u|})$ and $d=0$, which is only one-point concave. With
$\bar d=\sum_iw_id_i$ the maximizer is $s\sin x+\operatorname{artanh}(\bar d/q)$, and
$\tilde\Phi(x)=\sum_j[\rho\cos x_j+\bar d_js\sin x_j]$ plus a constant. Noise has two values, so all samples of clients
and all signs are run. Written from Algorithm 1 of Sharma et al. (2023); shares nothing with
`fedbounds.empirical.algorithms`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, product
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import (
    FLAGS,
    ROUND_OFF,
    Range,
    cancels,
    counts,
    flag,
    nonnegative,
    positive,
    reals,
    sums_to,
)
from fedbounds.empirical.papers.fed_norm_sgda.instances.problems import log_cosh, one_point, one_point_slope
from fedbounds.empirical.papers.fed_norm_sgda.instances.runs import QuadraticRuns, sum_over_clients
from fedbounds.empirical.papers.fed_norm_sgda.instances.workers import Values, Workers, cap_steps, draw_workers
from fedbounds.empirical.problems.minimax_bounded import LOG_COSH, ONE_POINT, Well

OUTCOMES = 128  # of a whole run
LONGEST = 150  # rounds


class Visited(NamedTuple):
    """The quantities of the results, in expectation over all outcomes, round by round."""

    gradsq: np.ndarray  # squared gradient of the Moreau envelope, (B, T)
    envelope: np.ndarray  # the Moreau envelope less its minimum, (B, T + 1)
    gap: np.ndarray  # gap, stale: dual gaps at x_t and at the snapshot, (B, T)
    stale: np.ndarray
    drift: np.ndarray  # X_t, (B, T)
    ascent: np.ndarray  # the largest |y_t|^2 of all outcomes and rounds, (B,)
    maximizer: np.ndarray  # the largest |y*|^2 at a snapshot, (B,)
    reach: np.ndarray  # the largest coordinate of x in size, (B,)


def in_shape(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """One number per instance, (B,), against arrays that have the instances first."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


@dataclass(frozen=True, eq=False)
class BoundedRuns(Workers):
    """B runs of Fed-Norm-SGDA+ with bounded gradients in x."""

    measured: ClassVar[LeftSide] = "every outcome"

    slopes: Annotated[np.ndarray, reals("n m")]  # $c_i$, (B, n, m)
    lifts: Annotated[np.ndarray, reals("n m")]  # $d_i$, (B, n, m)
    ripple: Annotated[np.ndarray, nonnegative()]  # ripple, depth, bend: $\rho$, q and s, (B,)
    depth: Annotated[np.ndarray, positive()]
    bend: Annotated[np.ndarray, reals()]
    start: Annotated[np.ndarray, reals("2 m")]  # $x_0$ and $y_0$, (B, 2, m)
    # size of the additive noise in x and in y, whose sign they share, (B, 2); zero where $\beta_L>0$
    noise: Annotated[np.ndarray, reals("2")]
    radius: Annotated[np.ndarray, positive()]  # R where it is given before the run, (B,)
    period: Annotated[np.ndarray, counts()]  # S, (B,)
    # whether the noise that grows falls on x and grows with the gradient in y, (B,)
    crossed: Annotated[np.ndarray, Range(FLAGS)]
    price: Annotated[np.ndarray, positive()]  # of mixing noise and drift in the caps that the steps are shares of, (B,)
    rounds: Annotated[int, counts()]  # T
    one_point: Annotated[bool, flag()]  # whether $\psi$ is the one that is not convex
    noisy: Annotated[bool, flag()]  # whether there is noise at all

    def rules(self) -> dict[str, np.ndarray]:
        one = ~self.lifts.any(axis=(1, 2))
        return super().rules() | {
            "the weighted slopes sum to zero": cancels(self.weights[:, :, None] * self.slopes),
            "the lift is less than the depth": np.abs(self.lift).max(axis=1) < self.depth,
            "there are no lifts where psi is not convex": one | (not self.one_point),
            "no noise is added to one that grows": (self.growth == 0) | ~self.noise.any(axis=1),
        }

    @property
    def cost(self) -> int:
        """Local steps of all rounds."""
        return self.rounds * max(self.tau)

    # --- the problem ---------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Well:
        r"""The largest slopes of $\psi$ and $\psi'$."""
        return ONE_POINT if self.one_point else LOG_COSH

    def well(self, u: np.ndarray) -> np.ndarray:
        r"""$\psi(u)$."""
        return one_point(u) if self.one_point else log_cosh(u)

    def pull(self, u: np.ndarray) -> np.ndarray:
        r"""$\psi'(u)$."""
        return one_point_slope(u) if self.one_point else np.tanh(u)

    @cached_property
    def lift(self) -> np.ndarray:
        r"""$\bar d$, (B, m)."""
        return (self.weights[:, :, None] * self.lifts).sum(axis=1)

    @cached_property
    def offset(self) -> np.ndarray:
        r"""$y^*(x)-s\sin x$, (B, m)."""
        return np.arctanh(self.lift / self.depth[:, None])

    @cached_property
    def steepness(self) -> np.ndarray:
        r"""$\sup|\partial_xf_0|$ of one coordinate, (B,)."""
        return np.hypot(self.ripple, self.depth * self.bend * self.shape.steepest)

    @cached_property
    def smoothness(self) -> np.ndarray:
        """Lf, (B,)."""
        deep = self.depth * self.shape.sharpest
        apart = np.maximum(self.ripple, deep)  # x and y do not meet
        return np.where(self.bend == 0, apart, self.steepness + deep * (1 + self.bend**2))

    @cached_property
    def common_maximizer(self) -> np.ndarray:
        """Whether all clients have the same, (B,)."""
        return np.ptp(self.lifts, axis=1).max(axis=1) <= 1e-15

    def _over(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """rho and s dbar against x of shape (B, ..., m)."""
        lift = self.lift.reshape(len(x), *[1] * (x.ndim - 2), -1)
        return in_shape(self.ripple, x), in_shape(self.bend, x) * lift

    def envelope_gradient(self, x: np.ndarray) -> np.ndarray:
        """Of (B, ..., m)."""
        rho, lifted = self._over(x)
        return lifted * np.cos(x) - rho * np.sin(x)

    def proximal(self, x: np.ndarray) -> np.ndarray:
        """The proximal point of the envelope at 1/(2 Lf): a contraction, then Newton's method."""
        rho, lifted = self._over(x)
        twice, u = in_shape(2 * self.smoothness, x), x
        for k in range(12):
            slope = self.envelope_gradient(u)
            curvature = twice - rho * np.cos(u) - lifted * np.sin(u)
            u = x - slope / twice if k < 7 else u - (slope + twice * (u - x)) / curvature
        return u

    def moreau(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared gradient of the Moreau envelope, and the envelope less its minimum, (B, ...) of (B, ..., m)."""
        rho, lifted = self._over(x)
        u, L = self.proximal(x), in_shape(self.smoothness, x)
        value = rho * np.cos(u) + lifted * np.sin(u) + np.hypot(rho, lifted) + L * (u - x) ** 2
        return ((2 * L * (x - u)) ** 2).sum(axis=-1), value.sum(axis=-1)

    def dual_gap(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of (B, outcomes, m)."""
        u, off = y - in_shape(self.bend, x) * np.sin(x), self.offset[:, None]
        fall = in_shape(self.depth, x) * (self.well(u) - self.well(off)) - self.lift[:, None] * (u - off)
        return fall.sum(axis=-1)

    # --- a run ---------------------------------------------------------------------------------------------------

    def _local(self, i: int, z: np.ndarray, snapshot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What client i returns, (B, outcomes, signs, 2, m), and its weighted drift, (B, outcomes)."""
        z, snapshot = z[:, :, None], snapshot[:, :, None]
        signs = np.array(list(product((-1.0, 1.0) if self.noisy else (0.0,), repeat=self.tau[i])))[:, :, None, None]
        s, q, rho = (in_shape(v, snapshot) for v in (self.bend, self.depth, self.ripple))
        beta, steps = in_shape(self.growth, z), np.stack([-self.etax, self.etay], axis=1)[:, None, None, :, None]
        size = (self.noise / np.sqrt(z.shape[-1]))[:, None, None, :, None]
        own = np.stack([self.slopes[:, i], self.lifts[:, i]], axis=1)[:, None, None]
        drift, moved, buffer = np.zeros(z.shape[:2]), np.zeros_like(z), np.zeros_like(z)
        for k in range(self.tau[i]):
            x, y = np.moveaxis(z + steps * moved, -2, 0)
            share = self.coefficients[:, i, k] / self.norms["a1"][:, i]
            drift = drift + share[:, None] * ((steps * moved) ** 2).sum(axis=(-1, -2)).mean(axis=-1)
            in_x = s * q * np.cos(x) * self.pull(y - s * np.sin(x)) - rho * np.sin(x)
            gradient = own + np.stack([in_x, -q * self.pull(y - s * np.sin(snapshot))], axis=-2)
            grown = gradient
            if self.crossed.any():
                across = own[..., 1, :] - q * self.pull(y - s * np.sin(x))
                grown = np.where(in_shape(self.crossed, z), np.stack([across, 0 * across], axis=-2), gradient)
            noisy = gradient + (beta * grown + size) * signs[:, k]
            buffer = in_shape(self.momentum[:, i], z) * buffer + in_shape(self.rates[:, i, k], z) * noisy
            moved = moved + buffer
        return moved / in_shape(self.norms["a1"][:, i], z), drift

    def _round(
        self, z: np.ndarray, chance: np.ndarray, snapshot: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Models, chances and snapshot after all outcomes of a round, and the drift of every outcome before it."""
        returned, drifts = zip(*(self._local(i, z, snapshot) for i in range(self.clients)), strict=True)
        server = np.stack([-self.Gammax, self.Gammay], axis=1)[:, None, None, :, None]
        samples, after, chances, snapshots = list(combinations(range(self.clients), self.participants)), [], [], []
        for sample in samples:
            total = np.zeros_like(z[:, :, None])
            for i in sample:
                share = self.sampled * in_shape(self.weights[:, i], total)
                total = total[:, :, :, None] + (share * returned[i])[:, :, None]
                total = total.reshape(*z.shape[:2], -1, *z.shape[2:])
            ways = total.shape[2]
            after.append((z[:, :, None] + server * total).reshape(len(z), -1, *z.shape[2:]))
            chances.append(np.repeat(chance / (ways * len(samples)), ways))
            snapshots.append(np.repeat(snapshot, ways, axis=1))
        drift = np.einsum("bn,nbo->bo", self.weights, np.stack(drifts))
        return np.concatenate(after, axis=1), np.concatenate(chances), np.concatenate(snapshots, axis=1), drift

    @cached_property
    def visited(self) -> Visited:
        """The run over all its outcomes."""
        z, chance, snapshot = self.start[:, None], np.ones(1), self.start[:, None, 0]
        ascent, maximizer, reach = np.zeros((3, len(self)))
        found: list[list[np.ndarray]] = [[] for _ in range(5)]
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(self.rounds):
                x, y = np.moveaxis(z, 2, 0)
                snapshot = np.where((t % self.period == 0)[:, None, None], x, snapshot)
                best = in_shape(self.bend, x) * np.sin(snapshot) + self.offset[:, None]
                ascent = np.maximum(ascent, (y**2).sum(axis=-1).max(axis=1))
                maximizer = np.maximum(maximizer, (best**2).sum(axis=-1).max(axis=1))
                reach = np.maximum(reach, np.abs(x).max(axis=(1, 2)))
                now = *self.moreau(x), self.dual_gap(x, y), self.dual_gap(snapshot, y)
                z, later, snapshot, drift = self._round(z, chance, snapshot)
                for place, values in zip(found, (*now, drift), strict=True):
                    place.append(values @ chance)
                chance = later
            found[1].append(self.moreau(z[:, :, 0])[1] @ chance)
        gradsq, envelope, gap, stale, drift = (np.stack(values, axis=1) for values in found)
        drift = self.smoothness[:, None] ** 2 * drift
        return Visited(
            gradsq, envelope, gap, stale, drift, ascent, maximizer, np.maximum(reach, np.abs(z).max((1, 2, 3)))
        )

    def symbols(self, whole: bool) -> Values:
        """The constants, exact, with R as given; sigma_L of the gradient as a whole if `whole`."""
        w, apart = self.weights[:, :, None], self.lifts - self.lift[:, None]
        steepest = ((np.abs(self.slopes) + self.steepness[:, None, None]) ** 2).sum(axis=2).max(axis=1)
        parts = self.noise**2
        found = {
            "Lf": self.smoothness,
            "sigmaL": np.sqrt(parts.sum(axis=1) if whole else parts.max(axis=1)),
            "sigmaG": np.sqrt(np.maximum((w * self.slopes**2).sum(axis=(1, 2)), (w * apart**2).sum(axis=(1, 2)))),
            "betaG": np.ones(len(self)),
            "Gx": np.sqrt(steepest),
            "R": self.radius,
            "S": self.period,
            "T": np.full(len(self), float(self.rounds)),
            "Deltabar": self.moreau(self.start[:, None, 0])[1][:, 0],
        }
        return self.worker_symbols() | {name: value[:, None] for name, value in found.items()}

    # --- instances -----------------------------------------------------------------------------------------------

    def caps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How long the ascent steps of server and clients may be; the descent steps have no caps: 1/Lf."""
        c, nu, L, r, none = self.composites, self.price, self.smoothness, self.sampled, np.full(len(self), np.inf)
        noisy = np.maximum(self.growth**2 * c["Q"], self.rest * c["W"])
        own = np.maximum(1 - self.rest, self.growth**2 * c["K"])
        drift = 8 * L * np.sqrt(nu * c["D"] * max(r, 1.0))
        local = cap_steps(none, drift, 2 * L * np.sqrt(nu * c["a_m"]), L * self.norms["a1"].max(axis=1))
        return cap_steps(none, 16 * nu * L * r * noisy, 16 * nu * L * r * own), local, 1 / L

    def shares(self) -> tuple[np.ndarray, ...]:
        """The steps in x and y of the server, then of the clients, as shares of their caps."""
        ascent, local, free = self.caps()
        return self.Gammax / free, self.Gammay / ascent, self.etax / free, self.etay / local

    def with_step_shares(self, x: np.ndarray, y: np.ndarray, local_x: np.ndarray, local_y: np.ndarray) -> Self:
        """The same with these shares of the caps."""
        ascent, local, free = self.caps()
        return replace(self, Gammax=x * free, Gammay=y * ascent, etax=local_x * free, etay=local_y * local)

    def settle(self) -> Self:
        """The same with slopes that cancel, lifts that have a maximum, and no additive noise beside growing one."""
        w, slopes = self.weights[:, :, None], self.slopes
        lifts = 0 * self.lifts if self.one_point else self.lifts
        steep = np.abs((w * lifts).sum(axis=1)).max(axis=1) / self.depth
        lifts = lifts * np.where(steep > 0.999, 0.999 / np.maximum(steep, 0.999), 1.0)[:, None, None]
        noise = np.where((self.growth > 0)[:, None] | (not self.noisy), 0.0, self.noise)
        return replace(self, slopes=slopes - (w * slopes).sum(axis=1, keepdims=True), lifts=lifts, noise=noise)

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, starts, noise, clients and steps; the ascent steps stay within the caps."""
        shares = [np.minimum(perturb(s, rng), 1.0 if k % 2 else np.inf) for k, s in enumerate(self.shares())]
        moved = replace(
            self,
            **self.move_workers(rng),
            **self.neighbors(rng, slopes=shake, lifts=shake, ripple=perturb, depth=perturb, bend=perturb),
            **self.neighbors(rng, start=shake, noise=shake, radius=perturb),
        )
        return moved.settle().with_step_shares(*shares)


def affordable(tau: tuple[int, ...], participants: int, noisy: bool) -> Iterator[int]:
    """Numbers of rounds whose outcomes can all be run."""
    samples = list(combinations(range(len(tau)), participants))
    ways = sum(2 ** sum(tau[i] for i in sample) for sample in samples) if noisy else len(samples)
    rounds = 1
    while ways**rounds <= OUTCOMES and rounds <= LONGEST:
        yield rounds
        rounds += 1


def draw_bounded(
    rng: np.random.Generator,
    B: int,
    shape: tuple[int, tuple[int, ...], int, int],
    *,
    noisy: bool = False,
    one_point: bool = False,
    even: bool = False,
) -> BoundedRuns:
    """B random instances of one shape."""
    m, tau, P, T = shape
    n = len(tau)

    def sizes(*values: float) -> np.ndarray:
        return rng.choice(values, size=B)

    depth = sizes(0.1, 1.0, 10.0)
    alike, lean = rng.random((B, 1, 1)) < 0.4, rng.normal(size=(B, 1, m))
    lifts = (depth * sizes(0.0, 0.3, 1.0, 3.0))[:, None, None] * np.where(alike, lean, rng.normal(size=(B, n, m)))
    balance = np.stack([sizes(0.0, 1.0, 1.0), sizes(0.0, 1.0, -1.0)], axis=1)
    z = BoundedRuns(
        **draw_workers(rng, B, tau, P, growing=noisy and rng.random() < 0.3, even=even),  # type: ignore[arg-type]
        slopes=sizes(0.0, 0.1, 1.0, 10.0)[:, None, None] * rng.normal(size=(B, n, m)),
        lifts=lifts,
        ripple=sizes(0.0, 0.1, 1.0, 10.0),
        depth=depth,
        bend=sizes(0.0, 0.3, 1.0, 3.0),
        start=sizes(0.0, 0.1, 1.0, 10.0)[:, None, None] * rng.normal(size=(B, 2, m)),
        noise=sizes(0.1, 1.0, 10.0)[:, None] * balance,
        radius=np.ones(B),
        period=rng.integers(1, T + 1, B).astype(float),
        crossed=np.zeros(B, dtype=bool),
        price=np.where(rng.random(B) < 0.5, 1.0, min(2.0, max(tau))),
        rounds=T,
        one_point=one_point,
        noisy=noisy,
    ).settle()
    calm = rng.random((B, 1)) < 0.25  # the ascent ends where it starts: what is left is descent on a ripple
    z = replace(
        z,
        bend=np.where(calm[:, 0], 0.0, z.bend),
        lifts=np.where(calm[:, :, None], 0.0, z.lifts),
        slopes=np.where(calm[:, :, None] & (rng.random((B, 1, 1)) < 0.5), 0.0, z.slopes),
        ripple=np.where(calm[:, 0], z.depth * rng.choice([1.0, 10.0], B), z.ripple),
    )
    opposite = calm | (rng.random((B, 1)) < 0.3)  # or as far from there as R allows
    z = replace(z, start=np.stack([z.start[:, 0], np.where(opposite, -z.offset, z.start[:, 1])], axis=1))
    z = replace(
        z, radius=2 * ((z.bend[:, None] + np.abs(z.offset)) ** 2 + z.start[:, 1] ** 2).sum(axis=1) + sizes(0.1, 1.0)
    )
    far = np.where(calm[:, 0], 10 ** rng.uniform(-3, -0.5, B), sizes(1.0, 0.1, 0.01, 1e-4))
    near = np.where(calm[:, 0], sizes(1e-3, 1e-2), sizes(1.0, 1.0, 0.3, 0.03))
    return z.with_step_shares(far, near, sizes(1.0, 0.1, 0.01, 0.0), sizes(1.0, 0.5, 0.1, 0.0))


def draw_crossed(rng: np.random.Generator, B: int, tau: int) -> BoundedRuns:
    """One client whose noise in x grows with its gradient in y, near the minimum of a shallow ripple."""
    z = draw_bounded(rng, B, (1, (tau,), 1, 1), noisy=True)
    gap, flat = rng.uniform(0.1, 0.4, B), np.zeros(B)
    ripple = gap**2 * rng.uniform(0.05, 0.1, B)
    step = ripple / gap**2 * rng.uniform(0.1, 0.3, B)
    z = replace(
        z,
        growth=rng.uniform(1.5, 3, B) / (step * gap),
        slopes=0 * z.slopes,
        lifts=0 * z.lifts,
        ripple=ripple,
        depth=np.ones(B),
        bend=flat,
        start=np.stack([np.pi + rng.uniform(-1, 1, B), gap], axis=1)[:, :, None],
        crossed=np.ones(B, dtype=bool),
    ).settle()
    return z.with_step_shares(step, rng.choice([1.0, 0.1], B), rng.choice([1.0, 0.1], B), rng.choice([0.1, 0.01], B))


@dataclass(frozen=True, eq=False)
class MeantRuns(QuadraticRuns):
    """Quadratics, weights p of the objective that is meant, and points x_t of a path, (B, n) and (B, T, dx)."""

    p: Annotated[np.ndarray, nonnegative("n")]
    path: Annotated[np.ndarray, reals("T x")]

    def rules(self) -> dict[str, np.ndarray]:
        return super().rules() | {"p sums to one": sums_to(self.p, 1)}

    def mutate(self, rng: np.random.Generator) -> Self:
        p = perturb(self.p, rng)
        return replace(super().mutate(rng), p=p / p.sum(axis=1, keepdims=True), path=shake(self.path, rng))

    @cached_property
    def meant(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Squared envelope gradients of both objectives and squared distance of the maximizers, each (B, T)."""
        scale, slope = (self.p * self.scales).sum(axis=1), sum_over_clients(self.p, self.slopes)
        pulled, dx = self.coupling / self.concavity[:, None, None], self.descent
        own = np.einsum("bij,btj->bti", self.envelope, self.path)
        true = own * (scale / self.mean_scale)[:, None, None]
        true = true + (slope[:, :dx] + np.einsum("bij,bj->bi", pulled, slope[:, dx:]))[:, None]
        apart = ((slope[:, dx:] / (scale * self.concavity)[:, None]) ** 2).sum(axis=1)
        return (own**2).sum(axis=2), (true**2).sum(axis=2), np.repeat(apart[:, None], self.path.shape[1], axis=1)


def draw_meant(rng: np.random.Generator, z: QuadraticRuns, points: int) -> MeantRuns:
    """The same quadratics with random weights p and paths."""
    B, n = z.weights.shape
    p = np.where(rng.random((B, 1)) < 0.2, z.weights, rng.dirichlet(np.full(n, 0.5), size=B))
    path = 10 ** rng.uniform(-2, 2, (B, 1, 1)) * rng.normal(size=(B, 1, z.descent)).repeat(points, axis=1)
    path = path * np.where(rng.random((B, 1, 1)) < 0.5, 1.0, rng.uniform(0, 2, (B, points, 1)))
    return MeantRuns(**{f.name: getattr(z, f.name) for f in fields(z)}, p=p, path=path)


@dataclass(frozen=True, eq=False)
class TwoEnvelopes(Population):
    """Two quadratics in x, by curvature and slope, (B, 2, d), their smoothness, (B,), and points x_t, (B, T, d)."""

    curvatures: Annotated[np.ndarray, reals("2 d")]
    slopes: Annotated[np.ndarray, reals("2 d")]
    smoothness: Annotated[np.ndarray, positive()]
    path: Annotated[np.ndarray, reals("T d")]

    def rules(self) -> dict[str, np.ndarray]:
        most = self.smoothness * (1 + ROUND_OFF)
        return {"no curvature is above the smoothness": np.abs(self.curvatures).max(axis=(1, 2)) <= most}

    def proximal(self, which: int) -> np.ndarray:
        """The proximal points at 1/(2 Lf) of one of them, (B, T, d)."""
        twice = 2 * self.smoothness[:, None, None]
        return (twice * self.path - self.slopes[:, which, None]) / (twice + self.curvatures[:, which, None])

    def gradsq(self, which: int) -> np.ndarray:
        """Squared gradients of the Moreau envelope of one of them, (B, T)."""
        return (2 * self.smoothness[:, None]) ** 2 * ((self.path - self.proximal(which)) ** 2).sum(axis=2)

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other curvatures and slopes, and another path; the curvatures stay within the smoothness."""
        most = self.smoothness[:, None, None]
        return replace(
            self,
            curvatures=np.clip(shake(self.curvatures, rng), -most, most),
            **self.neighbors(rng, slopes=shake, path=shake),
        )


def draw_envelopes(rng: np.random.Generator, B: int, d: int, points: int) -> TwoEnvelopes:
    """B random instances in d dimensions with paths of so many points."""
    smoothness = 10 ** rng.uniform(-1, 1, B)
    slopes = rng.choice([0.0, 1.0], (B, 1, 1)) * rng.normal(size=(B, 2, d))
    curvatures = smoothness[:, None, None] * rng.uniform(-1, 1, (B, 2, d))
    return TwoEnvelopes(curvatures, slopes, smoothness, rng.normal(size=(B, 1, d)).repeat(points, axis=1))
