"""Both theorems on quadratics with exact moments, for operators whose relative error is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.falsification.instances.population import Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import Range, always, counts, flag, nonnegative, positive, reals
from fedbounds.empirical.falsification.instances.readable import sides_of_form
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from fedbounds.empirical.papers.fedmrn.instances.kinked import KinkedMasked, kinked, signed
from fedbounds.empirical.papers.fedmrn.instances.premises import lemma
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.moments.operators import Masking, masked_moments, norm_scaled_sign, sparsifier

ZERO = ("sigma", "Gamma", "q")
MET_BY_EXTREMAL_RUNS = (
    *("unbiased-noise", "bounded-gradients", "surely-bounded-gradients", "relative-error", "uniform-sampling"),
    *("independent-masks", "independent-clients", "martingale-noise", "smooth", "bounded-below", "progressive-masking"),
)
MASKS = ("signed-masks-per-round", "signed-masks", "signed-masks-of-amplitude-a")


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    r"""The mean gradient, or of strongly convex functions the gap at the end.

    The steps of Theorem 1 are $2/(\mu(\gamma+t))$ from t = 1 on, so that with $a=\mu$ a run of T - 1 of them
    multiplies $x_1$ by $\gamma(\gamma-1)/((\gamma+T-1)(\gamma+T-2))$.
    """
    assert isinstance(claim.subject, ResultForm)
    convex, one = claim.subject.result.key.endswith("theorem-1"), np.ones(len(z))
    found = dict.fromkeys(ZERO, 0 * one) | dict.fromkeys(("N", "K", "S", "d"), one)
    found |= {
        **{"L": z.smoothness, "mu": z.curvature, "F": z.gap, "G": z.slope, "T": z.rounds, "eta": z.gamma},
        **{"Delta1": (z.slope / z.curvature) ** 2, "a": z.slope * z.gamma},
    }
    left = z.mean_gradient()
    if convex:
        gamma = np.maximum(8 * z.smoothness / z.curvature, 1) - 1
        left = z.gap * (gamma * (gamma - 1) / ((gamma + z.rounds - 1) * (gamma + z.rounds - 2))) ** 2
    met: dict[str, np.ndarray | bool] = {name: True for name in MET_BY_EXTREMAL_RUNS}
    met |= {name: np.asarray(z.rounds == 1) for name in MASKS}
    met |= {name: np.asarray(z.straight == 0) for name in ("strongly-convex", "quadratic-upper-bound")}
    return MeasuredRuns(left[:, None], {name: value[:, None] for name, value in found.items()}, met)


VALUES = {"interval": (1,), "local_steps": (1,)}
CONVEX, NOT_CONVEX = Family(measure, {}, values=VALUES), Family(measure, {"gamma": "eta"}, values=VALUES)


RUNS = 40
OPERATORS: tuple[tuple[Masking, Callable[[int], float]], ...] = (  # and the square of q in so many dimensions
    (Masking("identity", lambda squares, _: 0 * squares), lambda d: 0.0),
    (sparsifier(0.5), lambda d: 1.0),
    (norm_scaled_sign(), lambda d: d - 1.0),
)
# By construction: noise, masks and cohorts are independent of the past; sigma, G, q and L are those of the run;
# least > 0 makes every client of `MaskedRuns` strongly convex. What clients with kinks meet, they say themselves.
MET = (
    *("unbiased-noise", "bounded-gradients", "relative-error", "uniform-sampling", "independent-masks"),
    *("independent-clients", "martingale-noise", "smooth", "bounded-below", "strongly-convex", "quadratic-upper-bound"),
)
PROGRESSIVE = {"progressive-masking"}
SIGNED = {"signed-masks-per-round": 1.0, "signed-masks": 2.0, "signed-masks-of-amplitude-a": None}  # over eta S G


def problem_symbols(problem: Quadratic) -> dict[str, float]:
    """What does not depend on the run."""
    A = np.stack([problem.hessian(k).numpy() for k in range(problem.clients)])
    c, curvatures = problem.centers.numpy(), np.linalg.eigvalsh(A)
    ws = np.linalg.solve(A.mean(axis=0), np.einsum("kij,kj->i", A, c) / len(c))
    away, start = ws - c, problem.x0.numpy() - ws
    return {
        "L": curvatures.max(),
        "mu": curvatures.min(),
        "sigma": problem.noise * problem.dimension**0.5,
        "Gamma": np.einsum("ki,kij,kj->", away, A, away) / (2 * len(c)),
        "Delta1": start @ start,
        "F": start @ A.mean(axis=0) @ start / 2,
        "N": len(c),
        "d": problem.dimension,
    }


@dataclass(frozen=True, eq=False)
class MaskedRuns(Population):
    """B runs of one shape."""

    roots: Annotated[np.ndarray, reals("N d d")]  # $R_k$, of $A_k=\frac1dR_kR_k^\top+\ell I$, (B, N, d, d)
    least: Annotated[np.ndarray, positive()]  # $\ell$, (B,)
    centers: Annotated[np.ndarray, reals("N d")]  # centers, start: $c_k$, (B, N, d), and $w_0$, (B, d)
    start: Annotated[np.ndarray, reals("d")]
    noise: Annotated[np.ndarray, nonnegative()]  # of each coordinate, (B,)
    share: Annotated[np.ndarray, positive()]  # the step size times L where it is free, (B,)
    operator: Annotated[int, Range(Domain(0, 2, integer=True))]  # which of `OPERATORS`
    local_steps: Annotated[int, counts()]  # local_steps, cohort, iterations: S, K and T
    cohort: Annotated[int, counts()]
    iterations: Annotated[int, counts()]
    convex: Annotated[bool, flag()]  # whether the steps and the left side are those of Theorem 1
    # any_step, progressive: whether the step size is free, and whether masks are progressive
    any_step: Annotated[bool, flag()]
    progressive: Annotated[bool, flag()]

    def rules(self) -> dict[str, np.ndarray]:
        whole, drawn = self.iterations % self.local_steps == 0, self.cohort <= self.roots.shape[1]
        return {
            "iterations are a multiple of local_steps": always(whole, self.start),
            "cohort is at most the number of clients": always(drawn, self.start),
        }

    @property
    def cost(self) -> int:
        """T, of each instance by itself."""
        return self.iterations

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other curvatures, centers, starts, noise and steps; clients that are alike stay so."""
        roots = shake(self.roots, rng)
        one = (self.roots == self.roots[:, :1]).all(axis=(1, 2, 3))[:, None, None, None]
        return replace(
            self,
            roots=np.where(one, roots[:, :1], roots),
            **self.neighbors(rng, least=perturb, centers=shake, start=shake, noise=perturb),
            share=np.minimum(perturb(self.share, rng), 1),
        )

    @property
    def met(self) -> Mapping[str, np.ndarray | bool]:
        """Which assumptions hold beyond those of all runs."""
        return {"progressive-masking": self.progressive}

    def with_prescribed_steps(self) -> Self:
        """The same with the step sizes that a theorem sets."""
        return replace(self, any_step=False)

    def problem(self, index: int) -> Quadratic:
        """That of one run."""
        roots, d = self.roots[index], self.start.shape[1]
        hessians = roots @ np.swapaxes(roots, 1, 2) / d + self.least[index] * np.eye(d)
        return Quadratic(
            hessians=hessians, centers=self.centers[index], noise=float(self.noise[index]), x0=self.start[index]
        )

    def row(self, index: int) -> tuple[float, dict[str, float]]:
        """What one run measures, and its symbols."""
        problem, (masking, square) = self.problem(index), OPERATORS[self.operator]
        c, S, T, share = problem_symbols(problem), self.local_steps, self.iterations, float(self.share[index])
        eta = share / c["L"] if self.any_step else 1 / (c["L"] * T**0.5)
        gamma = max(8 * c["L"] / c["mu"], S) - 1

        def step(t: int) -> float:
            return 2 / (c["mu"] * (gamma + t)) if self.convex else eta

        first = 1 if self.convex else 0
        run = masked_moments(
            problem,
            masking,
            step,
            iterations=T,
            local_steps=S,
            cohort=self.cohort,
            first=first,
            progressive=self.progressive,
        )
        left = run.objective_gap[-1] if self.convex else run.gradient_norm_squared[:-1].mean()
        q = square(problem.dimension) ** 0.5
        rest = {"G": run.gradient_bound, "q": q, "K": self.cohort, "S": S, "T": T + first, "eta": eta}
        return float(left), c | rest

    @cached_property
    def _rows(self) -> list[tuple[float, dict[str, float]]]:
        return [self.row(b) for b in range(len(self))]

    @property
    def left(self) -> np.ndarray:
        """Of the theorem, (B, 1)."""
        return np.array([[left] for left, _ in self._rows])

    @property
    def values(self) -> dict[str, np.ndarray]:
        """The symbols, each (B, 1)."""
        return {name: np.array([[float(row[name])] for _, row in self._rows]) for name in self._rows[0][1]}


def draw_run(rng: np.random.Generator, *, convex: bool, any_step: bool, progressive: bool) -> MaskedRuns:
    """One run of up to four clients and three parameters, with noise or without; half have one Hessian."""
    N, d, S = (int(rng.integers(1, high)) for high in (5, 4, 5))
    alike = rng.random() < 0.5
    return MaskedRuns(
        roots=np.zeros((1, N, d, d)) if alike else rng.normal(size=(1, N, d, d)),
        least=np.ones(1) if alike else np.full(1, 0.3),
        centers=rng.normal(size=(1, N, d)),
        start=rng.normal(size=(1, d)),
        noise=rng.choice([0.0, 0.5, 2.0], size=1),
        share=rng.uniform(0.05, 1, 1),
        operator=int(rng.integers(len(OPERATORS))),
        local_steps=S,
        cohort=int(rng.integers(1, N + 1)),
        iterations=S * int(rng.integers(1, 30)),
        convex=convex,
        any_step=any_step,
        progressive=progressive,
    )


@lru_cache(maxsize=8)
def runs(convex: bool, any_step: bool, progressive: bool) -> tuple[MaskedRuns, ...]:
    """Runs with the steps of Theorem 1, or with one constant step."""
    rng = np.random.default_rng(211)
    return tuple(draw_run(rng, convex=convex, any_step=any_step, progressive=progressive) for _ in range(RUNS))


def sides(claim: Claim, z: MaskedRuns | KinkedMasked | ExtremalRuns) -> Sides:
    """The exact left side against the form, term by term."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    if isinstance(z, ExtremalRuns):
        return (CONVEX if subject.result.key.endswith("theorem-1") else NOT_CONVEX).sides(claim, z)
    if subject.form.prescribes:
        z = z.with_prescribed_steps()
    met: dict[str, np.ndarray | bool] = dict.fromkeys(MET, True) | dict(z.met)
    convex, progressive = subject.result.key.endswith("theorem-1"), {a.name for a in claim.assumptions} >= PROGRESSIVE
    covered = np.full((len(z), 1), z.convex == convex and met["progressive-masking"] == progressive)
    return sides_of_form(claim, z.left, z.values, met, covered, (0.0, 1e-11), frozenset(), z.describe)


def instance_test(claim: Claim) -> InstanceTest | None:
    """Both theorems' forms that assume nothing but what these runs meet, and the lemmas."""
    subject = claim.subject
    if not isinstance(subject, ResultForm) or subject.form.order_only:
        return None
    name = subject.result.key.partition("/")[2]
    if name.startswith("lemma"):
        return lemma(claim, convex=name == "lemma-4")
    assumed, any_step, convex = {a.name for a in claim.assumptions}, not subject.form.prescribes, name == "theorem-1"
    if name not in ("theorem-1", "theorem-2") or not assumed <= {
        *MET,
        *PROGRESSIVE,
        *SIGNED,
        "surely-bounded-gradients",
    }:
        return None
    progressive = assumed >= PROGRESSIVE

    def draw(claim: Claim, cells: int) -> Iterable[MaskedRuns | KinkedMasked]:
        if masks := assumed & {*SIGNED}:
            return signed(convex, SIGNED[masks.pop()], progressive)
        return (*runs(convex, any_step, progressive), *(() if progressive else kinked(convex, not any_step)))

    return InstanceTest(draw, sides, family=CONVEX if convex else NOT_CONVEX)
