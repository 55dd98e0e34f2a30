r"""One client, one round, a function with a kink in its slope, and noise that is one of two values: every path.

$h(x)=\frac c2x^2$ for $|x|<r$ and $\frac L2(|x|-r)^2+cr(|x|-r)+\frac c2r^2$ beyond, $|c|\le L$: L-smooth, and bounded
below though curved downwards inside when $c<0$. Local models stay inside while the server's step, amplified by
$\eta\omega$, leaves it; on quadratics both see the same curvature. Noise is $\pm\sigma$ with equal chance in every
local step, so $2^I$ paths are all there is.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import ROUND_OFF, chances, counts, nonnegative, positive, reals


@dataclass(frozen=True, eq=False)
class KinkedInstances(Population):
    """B instances of one round with I local steps."""

    measured: ClassVar[LeftSide] = "every outcome"

    smoothness: Annotated[np.ndarray, positive()]  # L, (B,)
    inside: Annotated[np.ndarray, reals()]  # c, at most L in size, (B,)
    radius: Annotated[np.ndarray, positive()]  # r, (B,)
    start: Annotated[np.ndarray, reals()]  # $x_t$, (B,)
    noise: Annotated[np.ndarray, nonnegative()]  # $\sigma$, (B,)
    p: Annotated[np.ndarray, chances()]  # p, omega: participation probability and weight, (B,)
    omega: Annotated[np.ndarray, positive()]
    gamma: Annotated[np.ndarray, positive()]  # gamma, eta: step sizes, (B,)
    eta: Annotated[np.ndarray, positive()]
    local_steps: Annotated[int, counts()]  # I

    def rules(self) -> dict[str, np.ndarray]:
        return {"the curvature inside is at most L in size": np.abs(self.inside) <= self.smoothness * (1 + ROUND_OFF)}

    @property
    def cost(self) -> int:
        """Paths, in units of a hundred."""
        return 2**self.local_steps // 100

    def value(self, x: np.ndarray) -> np.ndarray:
        """h at points (B, ...)."""
        L, c, r = (v[:, None] for v in (self.smoothness, self.inside, self.radius))
        beyond = np.maximum(np.abs(x) - r, 0)
        within = np.minimum(np.abs(x), r)
        return c / 2 * within**2 + c * r * beyond + L / 2 * beyond**2

    def slope(self, x: np.ndarray) -> np.ndarray:
        """h' at points (B, ...)."""
        L, c, r = (v[:, None] for v in (self.smoothness, self.inside, self.radius))
        return np.sign(x) * (c * np.minimum(np.abs(x), r) + L * np.maximum(np.abs(x) - r, 0))

    @cached_property
    def _course(self) -> tuple[np.ndarray, np.ndarray]:
        """E(y_i - x)^2 for i = 0, ..., I, (B, I+1), and the update of every path, (B, 2^I)."""
        x, gamma, noise = (v[:, None] for v in (self.start, self.gamma, self.noise))
        change, drift = np.zeros_like(x), [np.zeros(len(self))]
        for _ in range(self.local_steps):
            after = change - gamma * self.slope(x + change)
            change = np.concatenate([after - gamma * noise, after + gamma * noise], axis=1)
            drift.append((change**2).mean(axis=1))
        return np.stack(drift, axis=1), change

    def drift(self) -> np.ndarray:
        r"""$\mathbb E(y_i-x_t)^2$ for i = 0, ..., I, (B, I+1)."""
        return self._course[0]

    def ascent(self) -> np.ndarray:
        r"""$\mathbb Ef(x_{t+1})-f(x_t)$, (B, 1)."""
        x, factor = self.start[:, None], (self.eta * self.omega)[:, None]
        after = self.value(x + factor * self._course[1])
        return self.p[:, None] * (after - self.value(x)).mean(axis=1, keepdims=True)

    def constants(self) -> dict[str, np.ndarray]:
        """Exact, (B, 1): one client, so no divergence."""
        one, far, second = np.ones(len(self)), (self.p * self.omega - 1) ** 2, self.p * self.omega**2
        found = {
            "L": self.smoothness, "sigma": self.noise, "delta": 0 * one, "N": one, "T": one,
            "I": one * self.local_steps, "W": far, "V": far, "Q": second, "Z": second,
            "gradsq": self.slope(self.start[:, None])[:, 0] ** 2, "gamma": self.gamma,
            "eta": self.eta,
        }  # fmt: skip
        named = {name: value[:, None] for name, value in found.items()}
        return named | {"p": self.p[:, None, None], "omega": self.omega[:, None, None]}

    def with_step_shares(self, local: np.ndarray, update: np.ndarray) -> Self:
        r"""The same with $\gamma$ at this share of $1/(4\sqrt{15}LI)$ and $\gamma\eta$ of $1/(2LI)$."""
        LI = self.smoothness * self.local_steps
        gamma = local / (4 * np.sqrt(15) * LI)
        return replace(self, gamma=gamma, eta=update / (2 * LI * gamma))

    def mutate(self, rng: np.random.Generator) -> Self:
        LI = self.smoothness * self.local_steps
        local, update = self.gamma * 4 * np.sqrt(15) * LI, self.gamma * self.eta * 2 * LI
        p = np.clip(perturb(self.p, rng), 1e-7, 1)
        moved = replace(
            self,
            inside=np.clip(shake(self.inside, rng), -self.smoothness, self.smoothness),
            radius=perturb(self.radius, rng),
            start=np.where(rng.random(len(self)) < 0.5, self.start, shake(self.start, rng)),
            noise=perturb(self.noise, rng),
            p=p,
            omega=np.where(rng.random(len(self)) < 0.7, self.omega * self.p / p, perturb(self.omega, rng)),
        )
        return moved.with_step_shares(np.minimum(perturb(local, rng), 1), np.minimum(perturb(update, rng), 1))


def draw_kinked(rng: np.random.Generator, B: int, local_steps: int) -> KinkedInstances:
    """B random instances, some flat, some curved downwards as much as they may; weights mostly 1/p."""
    L = rng.choice([0.2, 1.0, 5.0], size=B)
    noise, p = rng.choice([0.0, 0.3, 1.0, 1.0], size=B), 10.0 ** rng.uniform(-6, 0, B)
    z = KinkedInstances(
        smoothness=L,
        inside=L * rng.choice([-1.0, -1.0, -0.5, 0.3, 1.0], size=B),
        radius=10.0 ** rng.uniform(-3, 1, B) * np.maximum(noise, 0.1) / L,
        start=rng.choice([0.0, 0.0, 0.1, 1.0], size=B) * rng.normal(size=B),
        noise=noise,
        p=p,
        omega=rng.choice([1.0, 1.0, 0.9, 1.5], size=B) / p,
        gamma=np.ones(B),
        eta=np.ones(B),
        local_steps=local_steps,
    )
    return z.with_step_shares(rng.choice([1.0, 1.0, 0.5, 0.01], size=B), rng.choice([1.0, 1.0, 0.3], size=B))
