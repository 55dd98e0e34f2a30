"""Both theorems on clients with kinks, over all signs of the noise and of the masks, which may be signed masks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Self

import numpy as np

from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.piecewise_quadratics import draw_clients
from fedbounds.empirical.falsification.instances.population import perturb
from fedbounds.empirical.falsification.instances.ranges import Range, flag, positive
from fedbounds.empirical.papers.fedmrn.instances.masked import MaskedClients, MaskedCourse

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

    def at_the_steps_of_a_theorem(self) -> Self:
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
        """The letters, (B, 1)."""
        (least, where), counts = self.objective.minimum(), {"N": self.clients, "d": self.start.shape[1]}
        counts |= {"K": self.cohort, "S": self.local_steps, "T": self.iterations + self.convex}
        found = {name: np.full(len(self), float(number)) for name, number in counts.items()}
        found |= {"L": self.smoothness, "mu": self.curvatures.min(axis=(1, 2, 3)), "sigma": self.sigma, "q": self.q}
        found |= {"G": np.sqrt(self.run.largest), "F": self.above_infimum(self.objective), "eta": self.step(0)}
        if self.convex:
            found["Gamma"] = (least - self.each.minimum()[0].mean(axis=1)).sum(axis=1)
            found["Delta1"] = ((self.start - where) ** 2).sum(axis=1)
        return {name: value[:, None] for name, value in found.items()}

    def mutated(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, masks and step sizes, these up to 1/L; a convex objective stays one."""
        moved = self.moved_clients(rng, self.curvatures.min(axis=(1, 2, 3)) if self.convex else -np.inf)
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

    def mutated(self, rng: np.random.Generator) -> Self:
        spare = np.maximum(perturb(self.spare, rng), 1) if self.chosen else self.spare
        return replace(super().mutated(rng), bound=perturb(self.bound, rng), spare=spare)


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
