"""Both theorems on clients with kinks, over all signs of the noise and of the masks, which may be signed masks.

Updates become (1 + q) or (1 - q) times what they were, or a or -a with the same mean.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Annotated, NamedTuple, Self

import numpy as np

from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.paths import initial_states, jointly, split, together
from fedbounds.empirical.falsification.instances.piecewise_quadratics import KinkedClients, draw_clients
from fedbounds.empirical.falsification.instances.population import perturb
from fedbounds.empirical.falsification.instances.ranges import Range, always, counts, flag, nonnegative, positive


class MaskedCourse(NamedTuple):
    """What is measured on all paths, each (B,)."""

    # $\frac1T\sum_{t<T}\mathbb E\|\nabla f(\bar w_t)\|^2$ at the clients' mean before every iteration
    gradient: np.ndarray
    gap: np.ndarray  # $\mathbb Ef(\bar w_T)-f^*$
    largest: np.ndarray  # $\max_{t,k}\mathbb E\|\nabla F_k(x_k^t)+\xi_k^t\|^2$
    sure: np.ndarray  # what $\|\nabla F_k(x_k^t)+\xi_k^t\|^2$ never exceeds


@dataclass(frozen=True, eq=False)
class MaskedClients(KinkedClients):
    r"""B runs of N clients that all take S local steps; K of them, drawn without replacement, then upload.

    A gradient is taken where the server would be by then: at $w+\hat u$ for an update u, with
    $\hat u=(1\pm q)u$, either sign with chance 1/2 in every coordinate, and so for the upload.
    """

    q: Annotated[np.ndarray, nonnegative()]  # the relative error of a mask, (B,)
    cohort: Annotated[int, counts()]  # cohort, local_steps, iterations: K, S and T, a multiple of S
    local_steps: Annotated[int, counts()]
    iterations: Annotated[int, counts()]

    def rules(self) -> dict[str, np.ndarray]:
        whole, drawn = self.iterations % self.local_steps == 0, self.cohort <= self.clients
        return super().rules() | {
            "iterations are a multiple of local_steps": always(whole, self.start),
            "cohort is at most the number of clients": always(drawn, self.start),
        }

    @property
    def cost(self) -> int:
        """Iterations, and a sixtieth for each path at the end."""
        branches = 2 ** (bool(self.noise.any()) + bool(self.q.any()))
        return self.iterations + branches ** (self.iterations * self.clients) // 60

    def masked(self, u: np.ndarray, tau: int, amplitude: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
        """What u, (B, N, d, paths, branches), becomes in the tau-th local step or, tau = 0, the upload; the chances."""
        if amplitude is not None:
            a = amplitude.reshape(-1, 1, 1, 1, 1)
            share = np.clip(u / np.where(a > 0, a, 1), -1, 1)
            return [(sign * a + 0 * u, (1 + sign * share) / 2) for sign in (-1, 1)]
        if tau == 1 or not self.q.any():  # before the first local step there is no update
            return [(u, np.ones_like(u))]
        q = self.q.reshape(-1, 1, 1, 1, 1)
        return [((1 + sign * q) * u, np.full_like(u, 0.5)) for sign in (-1, 1)]

    def course(
        self, step: Callable[[int], np.ndarray], amplitude: Callable[[int], np.ndarray] | None = None
    ) -> MaskedCourse:
        """With the step size of each iteration t = 0, 1, ..., (B,)."""
        x, f, N, S = initial_states(self), self.objective, self.clients, self.local_steps
        chance, everyone = np.ones_like(x), np.full((len(self), N), 1 / N)
        u, p = np.zeros((2, len(self), N, *x.shape[1:], 1))
        norms, largest, sure = np.zeros((3, len(self)))
        for t in range(self.iterations):
            if t % S == 0:
                u, p = np.zeros((len(self), N, *x.shape[1:], 1)), np.ones((len(self), N, *x.shape[1:], 1))
            average = x[..., None] + together(everyone, u)
            weights = chance[..., None] * jointly(everyone, p)
            slopes = f.slope(average.reshape(*x.shape[:2], -1)).reshape(average.shape)
            norms += (weights * slopes**2).sum(axis=(1, 2, 3))
            a = None if amplitude is None else amplitude(t)
            hats, p, u = branch(self.masked(u, t % S + 1, a), p, u)
            points = x[:, None, :, :, None] + hats
            slope = self.each.slope(points.reshape(*points.shape[:3], -1)).reshape(points.shape)
            weights = chance[:, None, :, :, None] * p
            moments = (weights * slope**2).sum(axis=(3, 4)) + self.noise**2
            largest = np.maximum(largest, moments.sum(axis=2).max(axis=1))
            seen = np.where(weights > 0, np.abs(slope) + self.noise[..., None, None], 0).max(axis=(3, 4))
            sure = np.maximum(sure, (seen**2).sum(axis=2).max(axis=1))
            eta = step(t).reshape(-1, 1, 1, 1, 1)
            u = u - eta * slope
            if self.noise.any():
                u, p = split(u, eta * self.noise[..., None, None]), split(p / 2, 0.0)
            if t % S == S - 1:
                sent, p, _ = branch(self.masked(u, 0, a), p, u)
                cohorts = list(combinations(range(N), self.cohort))
                shares = [np.isin(np.arange(N), c) / self.cohort * np.ones((len(self), 1)) for c in cohorts]
                chance = np.concatenate([chance[..., None] * jointly(share, p) for share in shares], axis=3)
                x = np.concatenate([x[..., None] + together(share, sent) for share in shares], axis=3)
                x, chance = (v.reshape(*v.shape[:2], -1) for v in (x, chance / len(cohorts)))
        gap = ((chance * f.value(x)).sum(axis=2) - f.minimum()[0]).sum(axis=1)
        return MaskedCourse(norms / self.iterations, gap, largest, sure)


def branch(
    may: list[tuple[np.ndarray, np.ndarray]], chance: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What updates become, the chance of each branch, and the updates themselves."""
    hats = np.concatenate([hat for hat, _ in may], axis=-1)
    return hats, np.concatenate([chance * p for _, p in may], axis=-1), np.concatenate([u] * len(may), axis=-1)


B = 24
NOISY = ((1, 1, 2, 1, 5, 1), (1, 1, 2, 2, 4, 1), (2, 1, 2, 1, 3, 1), (2, 1, 2, 2, 2, 2))  # N, d, knots, S, T and K
SIGNED = (
    (1, 1, 2, 1, 3, 1),
    (1, 1, 2, 1, 6, 1),
    (1, 1, 3, 2, 4, 1),
    (1, 2, 2, 3, 3, 1),
    (2, 1, 2, 1, 2, 1),
    (1, 1, 2, 4, 4, 1),
)
CALM = ((1, 1, 2, 1, 60, 1), (2, 1, 3, 4, 20, 2), (1, 2, 2, 3, 12, 1))


@dataclass(frozen=True, eq=False)
class KinkedMasked(MaskedClients):
    """B runs with these steps, (B,), or with those of a theorem: of Theorem 1 if `convex`, else as `prescribed`."""

    eta: Annotated[np.ndarray, positive()]
    convex: Annotated[bool, flag()]
    prescribed: Annotated[bool, flag()]

    @property
    def met(self) -> dict[str, np.ndarray | bool]:
        """Which assumptions hold of functions and masks, (B,)."""
        convex = self.curvatures.min(axis=(1, 2, 3)) > 0
        below = np.isfinite(self.above_infimum(self.objective))
        return {"strongly-convex": convex, "bounded-below": below, "progressive-masking": False}

    def with_prescribed_steps(self) -> Self:
        """The same with the step sizes that a theorem sets."""
        return replace(self, prescribed=True)

    def step(self, t: int) -> np.ndarray:
        """That of iteration t, (B,)."""
        if not self.convex:
            return 1 / (self.smoothness * self.iterations**0.5) if self.prescribed else self.eta
        mu = self.curvatures.min(axis=(1, 2, 3))
        return 2 / (mu * (np.maximum(8 * self.smoothness / mu, self.local_steps) + t))

    @cached_property
    def run(self) -> MaskedCourse:
        """What is measured."""
        return self.course(self.step)

    @property
    def left(self) -> np.ndarray:
        """Of the theorem, (B, 1)."""
        return (self.run.gap if self.convex else self.run.gradient)[:, None]

    @property
    def values(self) -> dict[str, np.ndarray]:
        """The symbols, (B, 1)."""
        (least, where), counts = self.objective.minimum(), {"N": self.clients, "d": self.start.shape[1]}
        counts |= {"K": self.cohort, "S": self.local_steps, "T": self.iterations + self.convex}
        found = {name: np.full(len(self), float(number)) for name, number in counts.items()}
        found |= {"L": self.smoothness, "mu": self.curvatures.min(axis=(1, 2, 3)), "sigma": self.sigma, "q": self.q}
        found |= {"G": np.sqrt(self.run.largest), "F": self.above_infimum(self.objective), "eta": self.step(0)}
        if self.convex:
            found["Gamma"] = (least - self.each.minimum()[0].mean(axis=1)).sum(axis=1)
            found["Delta1"] = ((self.start - where) ** 2).sum(axis=1)
        return {name: value[:, None] for name, value in found.items()}

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, masks and step sizes, these up to 1/L; a convex objective stays one."""
        moved = self.move_clients(rng, self.curvatures.min(axis=(1, 2, 3)) if self.convex else -np.inf)
        z = replace(self, **moved, q=perturb(self.q, rng))
        return replace(z, eta=np.minimum(perturb(self.eta * self.smoothness, rng), 1) / z.smoothness)


@dataclass(frozen=True, eq=False)
class SignedMasked(KinkedMasked):
    r"""B runs under signed masks of the amplitude $c\eta_{t_0}SG$, with the bound G on all gradients, (B,)."""

    bound: Annotated[np.ndarray, positive()]  # G, (B,)
    spare: Annotated[np.ndarray, Range(Domain(1))]  # c, (B,)
    chosen: Annotated[bool, flag()]  # whether c is no number of the theorem's
    # whether the $\tau$-th local step masks each coordinate with the chance $\tau/S$ alone
    progressive: Annotated[bool, flag()]

    def amplitude(self, t: int) -> np.ndarray:
        """In iteration t, (B,)."""
        return self.spare * self.step(t - t % self.local_steps) * self.local_steps * self.bound

    def masked(self, u: np.ndarray, tau: int, amplitude: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
        """What updates become, and the chances."""
        may = super().masked(u, tau, amplitude)
        if not self.progressive or tau in (0, self.local_steps):
            return may
        share = tau / self.local_steps
        return [(u, np.full_like(u, 1 - share)), *((hat, share * p) for hat, p in may)]

    @cached_property
    def run(self) -> MaskedCourse:
        return self.course(self.step, self.amplitude)

    @property
    def cost(self) -> int:
        signs = self.iterations * (1 + bool(self.noise.any())) + self.iterations // self.local_steps
        return self.iterations + 2 ** (signs * self.clients) // 60

    @property
    def met(self) -> dict[str, np.ndarray | bool]:
        return super().met | {
            "relative-error": False,
            "surely-bounded-gradients": self.run.sure <= self.bound**2,
            "progressive-masking": self.progressive,
            "signed-masks-per-round": self.spare == 1,
            "signed-masks": self.spare == 2,
            "signed-masks-of-amplitude-a": not self.convex,  # then all rounds have one amplitude
        }

    @property
    def values(self) -> dict[str, np.ndarray]:
        found = {k: v for k, v in super().values.items() if k != "q"}
        return found | {"G": self.bound[:, None], "a": self.amplitude(0)[:, None]}

    def mutate(self, rng: np.random.Generator) -> Self:
        spare = np.maximum(perturb(self.spare, rng), 1) if self.chosen else self.spare
        return replace(super().mutate(rng), bound=perturb(self.bound, rng), spare=spare)


@lru_cache(maxsize=8)
def kinked(convex: bool, prescribed: bool) -> tuple[KinkedMasked, ...]:
    """B of every shape, with noise and masks or without."""
    rng = np.random.default_rng(223)

    def draw_masked(shape: tuple[int, ...], noisy: bool) -> KinkedMasked:
        N, d, m, S, T, K = shape
        clients = draw_clients(rng, B, (N, d, m), noisy=noisy, convex=convex)
        q, eta = rng.choice([0.0, 0.3, 1.0], size=B) * noisy, rng.choice([1.0, 0.3, 0.03], size=B)
        return KinkedMasked(**clients, samples=0, q=q, cohort=K, local_steps=S, iterations=T, eta=eta, convex=convex,
                            prescribed=prescribed)  # fmt: skip

    return (*(draw_masked(shape, True) for shape in NOISY), *(draw_masked(shape, False) for shape in CALM))


@lru_cache(maxsize=8)
def signed(convex: bool, spare: float | None, progressive: bool) -> tuple[SignedMasked, ...]:
    """B of every shape under signed masks, half of them with noise; of any amplitude if `spare` is None."""
    rng, found = np.random.default_rng(227), []
    for k, (N, d, m, S, T, K) in enumerate(SIGNED):
        clients = draw_clients(rng, B, (N, d, m), noisy=k % 2 == 0, convex=convex)
        z = SignedMasked(
            **clients, samples=0, q=np.zeros(B), cohort=K, local_steps=S, iterations=T, convex=convex,
            prescribed=spare is not None, eta=rng.choice([1.0, 0.3, 0.03], size=B), bound=np.ones(B),
            spare=np.full(B, spare or 1.0), chosen=spare is None, progressive=progressive,
        )  # fmt: skip
        most = np.abs(z.slopes).max(axis=3) + np.abs(z.each.slope(z.start[:, None, :, None]))[..., 0] + z.noise
        found.append(replace(z, bound=np.sqrt((most**2).sum(axis=2).max(axis=1)) * rng.choice([1.0, 2.0], size=B)))
    return tuple(found)
