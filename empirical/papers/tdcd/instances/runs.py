r"""Whole runs of TDCD on quadratics with exact second moments, as instances of Theorem 1 and Remark 5.

Client k of every silo has $F_k(x)=\frac12x^\top A_kx-b_k^\top x$, f is the mean of them, and where a round begins at
$\theta$ the hubs' mean after q local steps is, with $S_{kj}=\eta\sum_{s<q}(I-\eta(A_k)_{jj})^s$,

$$\theta_j-\frac1K\sum_kS_{kj}\big((A_k\theta-b_k)_j+\xi_{kj}\big),$$

affine in $\theta$ with noise of its own. What clients differ by counts as variance; each silo's is the largest of all
rounds, each in expectation over what came before.
Written from the paper's Algorithm 1; shares nothing with `fedbounds.empirical.simulation.moments` and the engines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.papers.tdcd.lemmas import LEMMAS
from fedbounds.bounds.papers.tdcd.remarks import REMARK_5, WALL_CLOCK
from fedbounds.bounds.papers.tdcd.results import ALL_ITERATES, SYNCHRONIZED, THEOREM_1
from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.falsification.instances.population import Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import FLAGS, Range, always, counts, positive, reals, symmetric
from fedbounds.empirical.falsification.instances.readable import sides_of_form
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from fedbounds.empirical.papers.tdcd.instances.premises import lemma
from fedbounds.empirical.papers.tdcd.instances.tiers import TieredClients, draw_tiered

MET = (
    *("smooth", "block-smooth", "smooth-in-one-block", "unbiased-silos", "unbiased-clients", "bounded-below"),
    "uncorrelated-clients",
)


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """The mean gradient at the iterates that the form is about; links take a third of the time of a step."""
    assert isinstance(claim.subject, ResultForm)
    Q, R, one = z.local_steps, z.rounds, np.ones(len(z))
    found = dict.fromkeys(("S", "SK"), 0 * one) | {
        **{"L": z.smoothness, "Lmax": z.smoothness, "Delta": z.decrease(), "Deltainf": z.gap, "Q": Q, "R": R},
        **{"eta": z.gamma, "c": z.gamma * Q * np.sqrt(R), "tcomm": one / 3, "tcomp": one, "W": R * (Q + 1)},
    }
    of = (claim.subject.form.measure or claim.subject.result.measure).of
    left = z.mean_gradient() if of == SYNCHRONIZED.of else z.mean_gradient_inside(Q * R if of == ALL_ITERATES.of else R)
    values = {name: value[:, None] for name, value in found.items()}
    return MeasuredRuns(left[:, None], values, dict.fromkeys(MET, True))


FAMILY = Family(
    measure,
    {"gamma": "eta"},
    values={"interval": (1,), "local_steps": (1, 2, 8, 64)},
    given=frozenset({"c"}),
    whole=True,
)


BEST = "explicit:best-c"  # of Remark 5: its step size follows from the noise
B = 40
CANCELED = 1e-10  # relative to what cancels
KINKED = (  # N, K, Q, R and whether there is noise
    (2, 1, 2, 6, True), (1, 1, 4, 8, True), (2, 2, 2, 3, True), (3, 2, 2, 7, True), (2, 2, 2, 30, False),
    (1, 1, 8, 50, False),
)  # fmt: skip
LARGEST = 1e12  # entries of models beyond which a run has diverged


class TieredMeasurements(NamedTuple):
    r"""$\mathbb E\|\nabla f\|^2$ at the virtual average before every local step, (B, R, Q), the expected
    $\sigma_j^2$ of every silo in every round, (B, R, N), and $\mathbb Ef$ at the start and at the end, (B, 2); the
    constants of f and of a client's block, inf f, whether clients are alike, and whether their noise is one, (B,);
    and K."""

    norms: np.ndarray
    variances: np.ndarray
    ends: np.ndarray
    L: np.ndarray
    Lmax: np.ndarray
    lowest: np.ndarray
    alike: np.ndarray
    together: np.ndarray
    clients: int


@dataclass(frozen=True, eq=False)
class TieredInstances(Population, ABC):
    """B runs of Q steps in R rounds with step sizes eta, whatever the functions are; a link's latency, and how much of
    another round fits into the time, (B,)."""

    eta: Annotated[np.ndarray, positive()]
    latency: Annotated[np.ndarray, positive()]
    spare: Annotated[np.ndarray, Range(Domain(0, 1, high_open=True))]
    steps: Annotated[int, counts()]
    rounds: Annotated[int, counts()]

    @property
    @abstractmethod
    def measurements(self) -> TieredMeasurements:
        """All that symbols are made of."""

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """The symbols, each (B, 1)."""
        ends, one = self.measurements.ends, np.ones(len(self))
        S = self.measurements.variances.max(axis=1).sum(
            axis=1
        )  # a silo's sigma_j^2 bounds it at every synchronized iterate
        found = {
            "L": self.measurements.L,
            "Lmax": self.measurements.Lmax,
            "S": S,
            "SK": S / self.measurements.clients,
            "Delta": np.maximum(ends[:, 0] - ends[:, 1], 0),
            "Deltainf": ends[:, 0] - self.measurements.lowest,
            "Q": self.steps * one,
            "R": self.rounds * one,
            "eta": self.eta,
            "c": self.eta * self.steps * self.rounds**0.5,
            "tcomm": self.latency,
            "tcomp": one,
            "W": (self.rounds + self.spare) * (3 * self.latency + self.steps),
        }
        return {name: value[:, None] for name, value in found.items()}

    def left(self, of: str) -> np.ndarray:
        """What a form bounds, (B, 1)."""
        norms = self.measurements.norms
        if of == SYNCHRONIZED.of:
            return norms[:, :, 0].mean(axis=1, keepdims=True)
        every = norms.reshape(len(norms), -1)
        return (every if of == ALL_ITERATES.of else every[:, : self.rounds]).mean(axis=1, keepdims=True)

    @property
    def met(self) -> dict[str, np.ndarray | bool]:
        """Which assumptions hold.

        By construction: L and Lmax are norms of the Hessians, and of the clients' blocks whatever the noise, which is
        added to gradients; f is the clients' mean and the noise has mean zero, so that silos are unbiased, and S is
        the largest of what is measured. Noise of each client's own is uncorrelated, and so are shards, whose
        differences cancel.
        """
        return {
            "smooth": True,
            "block-smooth": True,
            "smooth-in-one-block": True,
            "unbiased-silos": True,
            "unbiased-clients": self.measurements.alike,
            "bounded-below": np.isfinite(self.measurements.lowest),
            "uncorrelated-clients": ~self.measurements.together | (self.measurements.clients == 1),
        }


@dataclass(frozen=True, eq=False)
class TieredRuns(TieredInstances):
    """B runs."""

    hessians: Annotated[np.ndarray, reals("K d d")]  # $A_k$, (B, K, d, d), symmetric
    pulls: Annotated[np.ndarray, reals("K d")]  # $b_k$, (B, K, d)
    # a root of the covariance of $\xi$, (B, d, d); of its blocks where clients are independent
    noise: Annotated[np.ndarray, reals("d d")]
    together: Annotated[np.ndarray, Range(FLAGS)]  # whether all clients and silos see one $\xi$, (B,)
    start: Annotated[np.ndarray, reals("d")]  # (B, d)
    silos: Annotated[int, counts()]  # N

    def rules(self) -> dict[str, np.ndarray]:
        return {
            "the Hessians are symmetric": symmetric(self.hessians),
            "some Hessian is not zero": (self.hessians != 0).any(axis=(1, 2, 3)),
            "silos have equally many coordinates": always(self.start.shape[1] % self.silos == 0, self.start),
        }

    @property
    def cost(self) -> int:
        return self.rounds

    def mutate(self, rng: np.random.Generator) -> Self:
        hessians, pulls = shake(self.hessians, rng), shake(self.pulls, rng)
        hessians = (hessians + np.swapaxes(hessians, 2, 3)) / 2
        one = self.alike[:, None]
        return replace(
            self,
            hessians=np.where(one[..., None, None], hessians[:, :1], hessians),
            pulls=np.where(one[..., None], pulls[:, :1], pulls),
            **self.neighbors(rng, noise=perturb, start=shake, eta=perturb),
        )

    @property
    def clients(self) -> int:
        """K of each silo."""
        return self.hessians.shape[1]

    @cached_property
    def alike(self) -> np.ndarray:
        """Whether all clients have the same function, (B,)."""
        one = (self.hessians == self.hessians[:, :1]).all(axis=(1, 2, 3))
        return one & (self.pulls == self.pulls[:, :1]).all(axis=(1, 2))

    @cached_property
    def hessian(self) -> np.ndarray:
        """That of f, (B, d, d)."""
        return self.hessians.mean(axis=1)

    @cached_property
    def pull(self) -> np.ndarray:
        """That of f, (B, d)."""
        return self.pulls.mean(axis=1)

    def _diagonal_blocks(self, matrices: np.ndarray) -> np.ndarray:
        """(..., d, d) to (..., N, d/N, d/N)."""
        width = matrices.shape[-1] // self.silos
        places = [slice(j * width, (j + 1) * width) for j in range(self.silos)]
        return np.stack([matrices[..., place, place] for place in places], axis=-3)

    def _in_silos(self, values: np.ndarray) -> np.ndarray:
        """The sums over each silo's coordinates, (B, d) to (B, N)."""
        return values.reshape(len(values), self.silos, -1).sum(axis=2)

    def _of_blocks(self, blocks: np.ndarray) -> np.ndarray:
        """(..., N, w, w) to (..., d, d)."""
        width = blocks.shape[-1]
        found = np.zeros((*blocks.shape[:-3], self.silos * width, self.silos * width), blocks.dtype)
        for j in range(self.silos):
            place = slice(j * width, (j + 1) * width)
            found[..., place, place] = blocks[..., j, :, :]
        return found

    @cached_property
    def within(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""$\theta\mapsto\theta-T\theta+t$ and the covariance of its noise after q = 0, ..., Q local steps:
        (B, Q+1, d, d), (B, Q+1, d) and (B, Q+1, d, d)."""
        own = self._diagonal_blocks(self.hessians)  # (B, K, N, w, w)
        eta = self.eta[:, None, None, None, None]
        power, total = np.broadcast_to(np.eye(own.shape[-1]), own.shape), np.zeros(own.shape)
        covariance = self.noise @ np.swapaxes(self.noise, 1, 2)
        single = self._diagonal_blocks(covariance)[:, None]
        maps, moves, noises = [], [], []
        for _ in range(self.steps + 1):
            sums = self._of_blocks(total)  # (B, K, d, d), zero outside of the diagonal blocks
            maps.append((sums @ self.hessians).mean(axis=1))
            moves.append((sums @ self.pulls[..., None])[..., 0].mean(axis=1))
            mean = sums.mean(axis=1)
            shared = mean @ covariance @ np.swapaxes(mean, 1, 2)
            each = self._of_blocks((total @ single @ np.swapaxes(total, 3, 4)).sum(axis=1) / self.clients**2)
            noises.append(np.where(self.together[:, None, None], shared, each))
            total, power = total + eta * power, power - eta * power @ own
        return np.stack(maps, axis=1), np.stack(moves, axis=1), np.stack(noises, axis=1)

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first three of `TieredMeasurements`."""
        with np.errstate(all="ignore"):  # runs that diverge overflow, and no claim covers them
            return self._moments()

    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        maps, moves, noises = self.within
        keep = np.eye(self.start.shape[1]) - maps
        mean, spread = self.start, np.zeros_like(self.hessian)
        norms, variances, ends = [], [], [self._objective(mean, spread)]
        apart, pulled = self.hessians - self.hessian[:, None], self.pulls - self.pull[:, None]
        noise = self._in_silos((self.noise**2).sum(axis=2))
        for _ in range(self.rounds):
            means = np.einsum("bqij,bj->bqi", keep, mean) + moves
            spreads = keep @ spread[:, None] @ np.swapaxes(keep, 2, 3) + noises
            slopes = np.einsum("bij,bqj->bqi", self.hessian, means) - self.pull[:, None]
            curved = np.einsum("bij,bqjk,bki->bq", self.hessian, spreads, self.hessian)
            norms.append(((slopes**2).sum(axis=2) + curved)[:, :-1])
            off = np.einsum("bkij,bj->bki", apart, mean) - pulled
            moved = np.einsum("bkij,bjl,bkil->bki", apart, spread, apart)
            variances.append(self._in_silos((off**2 + moved).mean(axis=1)) + noise)
            mean, spread = means[:, -1], spreads[:, -1]
        ends.append(self._objective(mean, spread))
        return np.stack(norms, axis=1), np.stack(variances, axis=1), np.stack(ends, axis=1)

    def _objective(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        quadratic = np.einsum("bi,bij,bj->b", mean, self.hessian, mean) + np.einsum("bij,bji->b", self.hessian, spread)
        return quadratic / 2 - (self.pull * mean).sum(axis=1)

    @cached_property
    def lowest(self) -> np.ndarray:
        """Inf f, (B,); minus infinity where f has no minimizer."""
        hessian, pull = self.hessian.astype(float), self.pull.astype(float)  # of which alone there are solutions
        convex = np.linalg.eigvalsh(hessian)[:, 0] > 1e-9 * np.abs(hessian).max(axis=(1, 2))
        safe = np.where(convex[:, None, None], hessian, np.eye(self.start.shape[1]))
        least = np.linalg.solve(safe, pull[..., None])[..., 0]
        return np.where(convex, self._objective(least, np.zeros_like(self.hessian)), -np.inf)

    @cached_property
    def smoothness(self) -> tuple[np.ndarray, np.ndarray]:
        """L, and Lmax in a client's own block, (B,)."""
        blocks, hessian = self._diagonal_blocks(self.hessians).astype(float), self.hessian.astype(float)
        return np.linalg.norm(hessian, 2, axis=(1, 2)), np.linalg.norm(blocks, 2, axis=(-2, -1)).max(axis=(1, 2))

    @property
    def cap(self) -> np.ndarray:
        """The largest step size of (14), (B,)."""
        return 1 / (8 * self.steps * np.maximum(*self.smoothness))

    @property
    def measurements(self) -> TieredMeasurements:
        return TieredMeasurements(*self.moments, *self.smoothness, self.lowest, self.alike, self.together, self.clients)


@dataclass(frozen=True, eq=False)
class KinkedTiers(TieredClients, TieredInstances):
    """B runs on clients with kinks."""

    @property
    def measurements(self) -> TieredMeasurements:
        together = np.full(len(self), self.together)
        return TieredMeasurements(*self.course, *self.constants, self.lowest, self.alike, together, self.clients)

    def mutate(self, rng: np.random.Generator) -> Self:
        return replace(self, **self.move_clients(rng), eta=perturb(self.eta, rng))


def draw_runs(rng: np.random.Generator) -> TieredRuns:
    """Runs of one shape: curvature of either sign, one function or several, shared noise or not, steps near the cap."""
    N, K, width = (int(rng.integers(1, high)) for high in (4, 5, 3))
    Q, R = int(rng.integers(1, 7) ** rng.choice([1, 2])), int(np.floor(10 ** rng.uniform(0, 2.2)))
    d, kind = N * width, np.arange(B) % 4
    roots = rng.normal(size=(B, K, d, d))
    hessians = roots @ np.swapaxes(roots, 2, 3) / d
    coupled = rng.uniform(size=(B, 1, 1, 1)) * np.ones((d, d)) + np.eye(d)  # silos that pull the same way
    hessians = np.where((kind == 0)[:, None, None, None], coupled, hessians)
    hessians = np.where((np.arange(B) % 16 == 7)[:, None, None, None], -hessians, hessians)
    pulls = rng.normal(size=(B, K, d)) * np.exp(rng.normal(size=(B, 1, 1)))
    alike = (rng.random(B) < 0.5)[:, None]
    hessians = np.where(alike[..., None, None], hessians[:, :1], hessians)
    pulls = np.where(alike[..., None], pulls[:, :1], pulls)
    noise = rng.normal(size=(B, d, d)) * np.exp(rng.normal(size=(B, 1, 1)) - 1) * (kind != 1)[:, None, None]
    z = TieredRuns(
        hessians=hessians, pulls=pulls, noise=noise, together=rng.random(B) < 0.5, start=rng.normal(size=(B, d)) * 3,
        eta=np.ones(B), latency=np.exp(rng.normal(size=B)), spare=rng.random(B), silos=N, steps=Q, rounds=R,
    )  # fmt: skip
    return replace(z, eta=z.cap * rng.choice([0.05, 0.3, 1.0, 1.0, 1.6, 3.0], size=B) * (1 - 1e-12))


@lru_cache(maxsize=4)
def pool(cells: int) -> tuple[TieredRuns, ...]:
    """Runs of many shapes."""
    rng = np.random.default_rng(233)
    return tuple(draw_runs(rng) for _ in range(max(1, cells // 2)))


@lru_cache(maxsize=1)
def kinked() -> tuple[KinkedTiers, ...]:
    """With a sign for each client and round or, in seven rounds, one for all; and longer ones without noise."""
    rng, found = np.random.default_rng(239), []
    for N, K, Q, R, noisy in KINKED:
        z = KinkedTiers(
            **draw_tiered(rng, B, (N, K, 2), noisy=noisy), samples=0, eta=np.ones(B), steps=Q, rounds=R,
            latency=np.exp(rng.normal(size=B)), spare=rng.random(B), together=R == 7,
        )  # fmt: skip
        cap = 1 / (8 * Q * np.maximum(*z.constants))
        found.append(replace(z, eta=cap * rng.choice([0.05, 0.3, 1.0, 1.0, 1.6], size=B) * (1 - 1e-12)))
    return tuple(found)


def with_loud_noise(z: TieredRuns) -> TieredRuns:
    """The same problems where all clients have one function, under enough noise for Remark 5 at its best c."""
    some = z.take(z.alike & np.isfinite(z.lowest))
    (L, Lmax), gap = some.smoothness, some.values["Deltainf"][:, 0]
    least = 64 * gap * np.maximum(L, Lmax) ** 2 / (L * z.rounds)
    noise = np.where((some.noise == 0).all(axis=(1, 2), keepdims=True), np.eye(z.start.shape[1]), some.noise)
    size = np.sqrt(least * np.exp(some.latency) / (noise**2).sum(axis=(1, 2)))
    return replace(some, noise=noise * size[:, None, None])


def with_best_scale(z: TieredRuns) -> TieredRuns:
    """The same runs with the step size that Remark 5 sets at its best c."""
    best = np.sqrt(z.values["Deltainf"] / (z.values["L"] * (z.noise**2).sum(axis=(1, 2))[:, None]))[:, 0]
    return replace(z, eta=np.where(np.isfinite(best) & (best > 0), best, 1.0) / (z.steps * z.rounds**0.5))


def sides(claim: Claim, z: TieredInstances | ExtremalRuns) -> Sides:
    """The exact left side against the form, term by term."""
    if isinstance(z, ExtremalRuns):
        return FAMILY.sides(claim, z)
    subject, covered = claim.subject, np.ones(len(z), dtype=bool)
    assert isinstance(subject, ResultForm)
    if isinstance(z, TieredRuns) and subject.form.name == BEST:
        z, covered = with_best_scale(z), z.alike & (z.noise != 0).any(axis=(1, 2))
    left = z.left((subject.form.measure or subject.result.measure).of)
    ends = np.abs(z.measurements.ends).max(axis=1)
    error = CANCELED * ends / (z.eta * z.steps * z.rounds)
    covered = (covered & (ends < LARGEST))[:, None]
    return sides_of_form(claim, left, z.values, z.met, covered, (error[:, None], CANCELED), frozenset(), z.describe)


def instance_test(claim: Claim) -> InstanceTest | None:
    """Every form of Theorem 1, also within a given time, and of Remark 5 that says its constants; and the lemmas."""
    subject = claim.subject
    if not isinstance(subject, ResultForm) or subject.form.order_only:
        return None
    if subject.result in LEMMAS:
        return lemma(claim)
    if subject.result.key not in (THEOREM_1.key, REMARK_5.key, WALL_CLOCK.key):
        return None

    def draw(claim: Claim, cells: int) -> Iterable[TieredInstances]:
        drawn = map(with_loud_noise, pool(cells)) if subject.form.name == BEST else (*pool(cells), *kinked())
        return [z for z in drawn if len(z)]

    return InstanceTest(draw, sides, family=FAMILY)
