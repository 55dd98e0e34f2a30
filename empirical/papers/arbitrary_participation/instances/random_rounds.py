r"""Corollary 4.8: the expectation over noise *and* participation, when rounds are independent.

Each round's weights are one vector w in a uniformly random order, so $\mathbb Eq_t^n=\frac1N$, $S_t=\|w\|^2$,
$\upsilon^2=\frac1N(\|w\|^2-\frac1N)$ and the pull $\sum_nq_t^nb_n$ has mean zero and variance
$\frac{\|w\|^2-1/N}{N-1}\sum_nb_n^2$ in each coordinate. On quadratics with equal Hessians mean and variance of the
model then follow exactly, round by round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.empirical.falsification.instances.population import Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import cancels, counts, nonnegative, positive, reals, sums_to
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import ASSUMPTIONS

# By construction, as the rules of the class are checked: participation is drawn before any noise, in every round anew
# and every client alike; the symbols are those of the weights and of the slopes, which have mean zero.
HERE = {*ASSUMPTIONS, "unbiased-sampling", "independent-rounds", "strongly-mixing", "window-variance"} - {"regularized"}


@dataclass(frozen=True, eq=False)
class RandomRounds(Population):
    """B instances of one shape."""

    curvature: Annotated[np.ndarray, nonnegative("d")]  # curvature, start, noise: of each coordinate, (B, d)
    start: Annotated[np.ndarray, reals("d")]
    noise: Annotated[np.ndarray, nonnegative("d")]
    slopes: Annotated[np.ndarray, reals("N d")]  # zero mean over clients, (B, N, d)
    base: Annotated[np.ndarray, nonnegative("N")]  # w, (B, N)
    gamma: Annotated[np.ndarray, positive()]  # gamma, eta: step sizes, (B,)
    eta: Annotated[np.ndarray, positive()]
    local_steps: Annotated[int, counts()]  # local_steps, interval, rounds: I, P and T
    interval: Annotated[int, counts()]
    rounds: Annotated[int, counts()]

    def rules(self) -> dict[str, np.ndarray]:
        return {
            "the weights sum to one": sums_to(self.base, 1),
            "the slopes sum to zero": cancels(self.slopes),
            "some curvature is not zero": self.curvature.max(axis=1) > 0,
        }

    def constants(self) -> dict[str, np.ndarray]:
        """The corollary's constants, exact, (B, 1)."""
        N, squares = self.base.shape[1], (self.base**2).sum(axis=1)
        upsilon2 = np.maximum(squares - 1 / N, 0) / N
        found = {
            "L": self.curvature.max(axis=1),
            "F": (self.curvature * self.start**2).sum(axis=1) / 2,
            "sigma": np.sqrt((self.noise**2).sum(axis=1)),
            "rho": np.minimum(np.sqrt(squares), 1),
            "d": np.sqrt((self.slopes**2).sum(axis=2).max(axis=1)),
            "upsilon": np.sqrt(upsilon2),
            "upsilonhat": np.sqrt(upsilon2),
            "windowvar": upsilon2 / self.interval,
        }
        counts = {"N": N, "I": self.local_steps, "P": self.interval, "T": self.rounds}
        found |= {name: np.full(len(self), float(value)) for name, value in counts.items()}
        return {name: value[:, None] for name, value in found.items()}

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other curvatures, starts, noise and offsets; another size of the weights' differences, or not."""
        slopes, apart = shake(self.slopes, rng), self.base - 1 / self.base.shape[1]
        least = np.minimum(apart.min(axis=1), -1e-12)
        size = np.minimum(perturb(np.ones(len(self)), rng), -1 / (self.base.shape[1] * least))
        size = np.where(rng.random(len(self)) < 0.5, size, 1.0)
        return replace(
            self,
            **self.neighbors(rng, curvature=perturb, start=shake, noise=perturb),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            base=1 / self.base.shape[1] + apart * size[:, None],
        )

    def least_gradient(self) -> np.ndarray:
        r"""$\min_{t<T}\mathbb E\|\nabla f(x_t)\|^2$, exactly, (B, 1)."""
        a, I, N = self.curvature, self.local_steps, self.base.shape[1]
        keep = 1 - self.gamma[:, None] * a
        powers = keep[None] ** np.arange(I)[:, None, None]
        squares = (self.base**2).sum(axis=1, keepdims=True)
        pull = (squares - 1 / N) / max(N - 1, 1) * (self.slopes**2).sum(axis=1)
        fresh = self.gamma[:, None] ** 2 * (powers.sum(0) ** 2 * pull + (powers**2).sum(0) * self.noise**2 * squares)
        m, C, eta = self.start, np.zeros_like(a), self.eta[:, None]
        kept, r, least = np.ones_like(a), np.zeros_like(a), np.full(len(self), np.inf)
        for t in range(self.rounds):
            least = np.minimum(least, (a**2 * ((kept * m) ** 2 + kept**2 * C + r)).sum(axis=1))
            kept, r = keep**I * kept, keep ** (2 * I) * r + fresh
            if (t + 1) % self.interval == 0:
                whole = 1 + eta * (kept - 1)
                m, C = whole * m, whole**2 * C + eta**2 * r
                kept, r = np.ones_like(a), np.zeros_like(a)
        return least[:, None]


def draw_rounds(rng: np.random.Generator, B: int, shape: tuple[int, ...]) -> RandomRounds:
    r"""Random instances of a shape (N, d, I, P, T) with $P=\upsilon^2N^{5/2}\sqrt{IT}$ where some w gives that."""
    N, d, I, P, T = shape
    apart = rng.dirichlet(np.full(N, 0.4), size=B) - 1 / N
    apart[: B // 2] = np.eye(N)[0] - 1 / N
    wanted = P / (N**2.5 * np.sqrt(I * T))  # upsilon^2
    size = np.sqrt(wanted * N / np.maximum((apart**2).sum(axis=1), 1e-300))
    base = 1 / N + apart * np.minimum(size, 1)[:, None]
    curvature = rng.choice([0.1, 1.0, 10.0], size=(B, 1)) * np.append(1.0, rng.uniform(0, 1, d - 1))
    slopes = rng.choice([0.0, 0.1, 3.0], size=(B, 1, 1)) * rng.normal(size=(B, N, d))
    z = RandomRounds(
        curvature,
        rng.normal(size=(B, d)),
        rng.choice([0.0, 0.1, 1.0, 5.0], size=(B, 1)) * rng.uniform(0, 1, (B, d)),
        slopes - slopes.mean(axis=1, keepdims=True),
        base,
        np.ones(B),
        np.ones(B),
        I,
        P,
        T,
    )
    v = z.constants()
    most = np.sqrt(T * v["rho"] ** 2 / (4 * v["L"] * I * P**2 * v["F"]))
    return replace(z, start=z.start * most * rng.choice([1 - 1e-9, 0.9, 0.1], size=(B, 1)))


def rounds_sides(claim: Claim, z: RandomRounds) -> Sides:
    """A form of Corollary 4.8 at the step sizes it sets; covered where the P it sets is the instance's."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    form, values = subject.form, z.constants()
    met = {a.name: a.name in HERE for a in claim.assumptions}
    unknown = {name for name, known in met.items() if not known}
    parts = compile_form(form).parts(values)
    set_by_form = {k: np.broadcast_to(v, (len(z), 1)) for k, v in zip(form.prescribes, parts.prescribed, strict=True)}
    interval = set_by_form.get("P", values["P"])
    covered = (np.abs(interval - z.interval) <= 1e-9 * z.interval) & (not unknown)
    for holds in parts.holds:
        covered = covered & holds
    steps = {name: np.where(covered, set_by_form[name], 1e-9)[:, 0] for name in ("gamma", "eta")}
    left = replace(z, **steps).least_gradient()
    terms = {t.name: np.broadcast_to(v, left.shape) for t, v in zip(form.terms, parts.terms, strict=True)}
    unmet = f"not checkable here: {', '.join(sorted(unknown))}" if unknown else "no P that it sets is a whole number"
    return Sides(left, terms, covered, 0.0, unmet, replace(z, **steps).describe, values | set_by_form, met)


def round_populations(claim: Claim, cells: int) -> Iterator[RandomRounds]:
    """Random shapes with at least two windows."""
    rng = np.random.default_rng(59)
    for _ in range(cells // 2):
        P = int(rng.integers(1, 6))
        T = int(P * rng.integers(2, 40) + rng.integers(P))
        yield draw_rounds(rng, 40, (int(rng.integers(2, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 5)), P, T))


ROUNDS = InstanceTest(round_populations, rounds_sides)
