r"""The symbols of the proofs of Li et al. (2024) on iterations with exact moments, and where each step is tested.

The coordinates of a quadratic are independent, so that each has its own paths and the inner products add up. Noise is
$\pm\sigma_j$; the operator of relative error q sends u to $(1\pm q)u$, and a signed mask to $\pm a$ with the mean u.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import comb
from typing import Annotated, ClassVar, Self

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.audit.rules import Telescope
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import PROOFS, convex, nonconvex, remarks, symbols
from fedbounds.bounds.papers.fedmrn.proof.operator_rules import EveryRound
from fedbounds.empirical.falsification.instances.averages import AveragingRun, Builder, SymbolValues, value
from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.premises import PremiseCases, lemma_test
from fedbounds.empirical.falsification.instances.ranges import (
    ROUND_OFF,
    WHOLE,
    Range,
    Ranges,
    always,
    counts,
    nonnegative,
    positive,
    reals,
)
from fedbounds.empirical.falsification.instances.sides import InstanceTest

Masks = Callable[[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]  # of an update: what it may become, and the chance


def as_alike(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """What clients have, (B, N, d), the same for all of them where it was before."""
    same = (np.ptp(before, axis=1) == 0).all(axis=1)
    return np.where(same[:, None, None], after[:, :1], after)


@dataclass(frozen=True, eq=False)
class MaskedIterations(Population):
    """B instances of the last of `len(steps)` iterations of a round, after which K of N clients upload."""

    measured: ClassVar[LeftSide] = "every outcome"
    ranges: ClassVar[Ranges] = {"progressive": Range(WHOLE)}

    # curvature, center: of $F_k=\frac h2\|z-c\|^2$ in each coordinate, (B, N, d)
    curvature: Annotated[np.ndarray, reals("N d")]
    center: Annotated[np.ndarray, reals("N d")]
    start: Annotated[np.ndarray, reals("d")]  # of the round, (B, d)
    noise: Annotated[np.ndarray, nonnegative("d")]  # $\sigma_j$, (B, d)
    steps: Annotated[np.ndarray, positive("S")]  # of the iterations of the round, each (B,)
    cohort: Annotated[int, counts()]  # K
    relative: Annotated[np.ndarray | None, nonnegative()]  # q, (B,); None under signed masks
    amplitude: Annotated[np.ndarray, nonnegative()]  # a, (B,)
    progressive: int = 0  # S, if the tau-th local step masks with the chance tau/S; 0 if it always does

    def rules(self) -> dict[str, np.ndarray]:
        local = self.steps.shape[1] if self.progressive else 0
        return {
            "cohort is at most the number of clients": always(self.cohort <= self.curvature.shape[1], self.start),
            "there are no more steps than local steps": always(local <= self.progressive, self.start),
        }

    @property
    def cost(self) -> int:
        """One, and a thirtieth for each coordinate of each joint path and cohort."""
        N, d = self.curvature.shape[1:]
        paths = 2 ** (N * (2 * self.steps.shape[1] + 1))
        return 1 + comb(N, self.cohort) * d * paths // 30

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, starts, noise, steps and errors; clients that are alike stay so, and so do signs."""
        curvature = np.sign(self.curvature) * perturb(np.abs(self.curvature), rng)
        return replace(
            self,
            curvature=as_alike(self.curvature, curvature),
            center=as_alike(self.center, shake(self.center, rng)),
            **self.neighbors(rng, start=shake, noise=perturb),
            steps=self.steps * (perturb(self.steps[:, :1], rng) / self.steps[:, :1]),
            relative=None if self.relative is None else perturb(self.relative, rng),
        )

    @property
    def falling(self) -> np.ndarray:
        """Whether steps do not increase, and the first is at most twice any other, (B,)."""
        first, most = self.steps[:, 0], 2 * self.steps.min(axis=1) * (1 + ROUND_OFF)
        return (np.diff(self.steps, axis=1) <= ROUND_OFF * self.steps[:, :1]).all(axis=1) & (first <= most)

    def masked(self, u: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """What an update (B, N, d, paths) may become, each with its chance."""
        if self.relative is not None:
            q = self.relative[:, None, None, None]
            return [((1 + sign * q) * u, np.full(u.shape, 0.5)) for sign in (1, -1)]
        a = self.amplitude[:, None, None, None] * np.ones_like(u)
        return [(sign * a, (1 + sign * u / a) / 2) for sign in (1, -1)]

    def masked_locally(self, u: np.ndarray, tau: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same in the tau-th local step."""
        if not self.progressive:
            return self.masked(u)
        chance = tau / self.progressive
        return [(u, np.full(u.shape, 1 - chance)), *((hat, chance * p) for hat, p in self.masked(u))]

    @cached_property
    def clients(self) -> dict[str, np.ndarray]:
        """Every path of every client by itself, (B, N, d, paths), and the squares of all gradients of the round."""
        h, c = self.curvature[..., None], self.center[..., None]
        s, noise = self.start[:, None, :, None], self.noise[:, None, :, None]
        chance, u = np.ones((*self.curvature.shape, 1)), np.zeros((*self.curvature.shape, 1))
        means, largest = [], []
        w = x = g = xi = u
        for tau, step in enumerate(self.steps.T, start=1):
            may = self.masked_locally(u, tau)
            branches = [(chance * p, u, hat, sign * noise + 0 * u) for hat, p in may for sign in (1.0, -1.0)]
            chance, before, hat, xi = (np.concatenate(parts, axis=-1) for parts in zip(*branches, strict=True))
            halved = chance / 2
            w, x = s + before, s + hat
            g = h * (x - c)
            u = before - step[:, None, None, None] * (g + xi)
            chance = halved
            square = (g + xi) ** 2
            means.append((chance * square).sum(axis=(2, 3)))
            largest.append(np.where(chance > 0, square, 0).max(axis=3).sum(axis=2))
        ends = self.masked(u)
        found = {"w": w, "x": x, "g": g, "xi": xi, "v": s + u}
        found = {name: np.concatenate([path, path], axis=-1) for name, path in found.items()}
        found["y"] = s + np.concatenate([hat for hat, _ in ends], axis=-1)
        found["chance"] = np.concatenate([chance * p for _, p in ends], axis=-1)
        found["squares"] = np.stack(means, axis=2).reshape(len(s), -1)
        found["sure"] = np.stack(largest, axis=2).reshape(len(s), -1)
        return found

    @property
    def minimizer(self) -> np.ndarray:
        """w*, (B, d); the start where there is none."""
        total = self.curvature.sum(axis=1)
        some = np.where(total > 0, total, 1.0)
        return np.where(total > 0, (self.curvature * self.center).sum(axis=1) / some, self.start)

    def atoms(self, cohort: tuple[int, ...]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The chance of every joint path, (B, d, paths), and the vectors on it, (B, N or 1, d, paths)."""
        each, N = self.clients, self.curvature.shape[1]
        joint = np.array(list(product(range(each["chance"].shape[-1]), repeat=N))).T
        paths = {
            name: np.stack([each[name][:, k][..., joint[k]] for k in range(N)], axis=1)
            for name in ("chance", "w", "x", "g", "xi", "v", "y")
        }
        chance = paths.pop("chance").prod(axis=1)
        h, c = self.curvature[..., None], self.center[..., None]
        b = paths["w"].mean(axis=1, keepdims=True)
        at_b = h * (b - c)
        commons = {"gb": paths["g"], "nb": paths["xi"], "vb": paths["v"], "f0": at_b}
        drawn = {"va": paths["v"][:, list(cohort)], "wn": paths["y"][:, list(cohort)]}
        found = paths | {name: v.mean(axis=1, keepdims=True) for name, v in (commons | drawn).items()}
        still = {"s": self.start[:, None, :, None], "ws": self.minimizer[:, None, :, None]}
        return chance, found | still | {"b": b, "g0": at_b}

    @cached_property
    def products(self) -> dict[str, np.ndarray]:
        """Every inner product of the proofs, (B, 1), and the values that stand beside them."""
        N = self.curvature.shape[1]
        cohorts = list(combinations(range(N), self.cohort))
        total: dict[str, np.ndarray] = {}
        for cohort in cohorts:
            chance, found = self.atoms(cohort)
            names = sorted(found)
            values = {
                f"<{a},{c}>": (chance * (found[a] * found[c]).mean(axis=1)).sum(axis=(1, 2))
                for a in names
                for c in names
                if a <= c
            }
            values |= self._values(chance, found)
            for name, number in values.items():
                total[name] = total.get(name, 0.0) + number[:, None] / len(cohorts)
        return total | {"<h,h>": self.clients["squares"]}

    def _values(self, chance: np.ndarray, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Means of function values, as differences that do not cancel."""
        h, c, ws = self.curvature[..., None], self.center[..., None], found["ws"]

        def above(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            """The mean over the clients of F_k(first) - F_k(second)."""
            gap = h / 2 * (first - second) * (first + second - 2 * c)
            return (chance * gap.mean(axis=1)).sum(axis=(1, 2))

        return {
            "excess": above(found["x"], ws),
            "gap": above(found["b"], ws),
            "decrease": above(found["b"], found["wn"]),
            "Gamma": (h / 2 * (ws - c) ** 2).mean(axis=1).sum(axis=(1, 2)),
        }


B = 24
FEWER = ((1, 1, 1, 1), (1, 2, 1, 1), (1, 3, 1, 2), (2, 1, 1, 2), (3, 1, 2, 1))  # where a step has more outcomes
ROUNDING = 1e-14  # relative to the largest square
SIZES = ((1, 1, 1, 2), (1, 3, 1, 1), (2, 1, 1, 2), (2, 2, 1, 1), (2, 2, 2, 2), (3, 1, 1, 1), (3, 1, 2, 2))  # N, S, K, d
EVERYWHERE = frozenset(
    {"independent-masks", "uniform-sampling", "unbiased-noise", "independent-clients", "martingale-noise"}
)
OPERATOR = EVERYWHERE | {"relative-error", "bounded-gradients"}
SIGNED = EVERYWHERE | {"surely-bounded-gradients", "signed-masks-of-amplitude-a"}


def draw_iterations(
    rng: np.random.Generator,
    size: tuple[int, int, int, int],
    *,
    convex: bool,
    even: bool,
    prescribed: int,
    progressive: bool,
) -> MaskedIterations:
    """Quadratics of one curvature or of several, some nearly linear; without noise in half of the cases."""
    N, S, K, d = size
    kind = np.arange(B) % 4
    curvature = np.exp(rng.normal(size=(B, N, d)))
    curvature = np.where((kind < 2)[:, None, None], curvature[:, :1, :1], curvature)
    if not convex:
        curvature *= rng.choice([-1.0, 1.0], size=(B, N, d))
    center = rng.normal(size=(B, N, d))
    center = np.where((kind % 2 == 0)[:, None, None], center[:, :1], center)
    flat = kind == 1
    curvature = np.where(flat[:, None, None], 1e-4 * curvature, curvature)
    center = np.where(flat[:, None, None], 1e4 * center[:, :1], center)
    noise = np.exp(rng.normal(size=(B, d))) * (rng.random(B) < 0.5)[:, None] * ~flat[:, None]
    first = rng.uniform(0.02, 0.24, B) / np.abs(curvature).max(axis=(1, 2)) * np.where(flat, 1e-4, 1.0)
    falls = np.linspace(0, 1, S)[None] ** rng.choice([0.3, 1.0, 3.0], size=(B, 1))
    least = rng.choice([0.5, 0.8, 1.0], size=(B, 1))
    steps = first[:, None] * (1 - (1 - (1.0 if even else least)) * falls)
    q = rng.choice([0.0, 0.5, 1.0, 3.0], size=B)
    start = rng.normal(size=(B, d))
    reach = first * S * (np.abs(curvature) * (np.abs(center) + np.abs(start)[:, None])).sum(axis=2).max(axis=1)
    amplitude = (reach + first * S * noise.sum(axis=1)) * np.where(flat, 1.001 * prescribed, rng.uniform(2, 4, B))
    whole = S + d - 1 if progressive else 0
    return MaskedIterations(curvature, center, start, noise, steps, K, None if prescribed else q, amplitude, whole)


def iteration_cases(z: MaskedIterations, *, prescribed: int = 0) -> PremiseCases:
    """The symbols of a proof on these iterations."""
    p, size = z.products, np.abs(z.curvature)
    N, S, d = z.curvature.shape[1], z.progressive or z.steps.shape[1], z.curvature.shape[2]
    first, last = z.steps[:, :1], z.steps[:, -1:]
    seen = np.sqrt((z.clients["sure"] if prescribed else z.clients["squares"]).max(axis=1, keepdims=True))
    amplitude = z.amplitude[:, None]
    G = amplitude / (prescribed * first * S) if prescribed else seen
    sigma = np.sqrt((z.noise**2).sum(axis=1, keepdims=True))
    counts = {"N": N, "S": S, "K": z.cohort, "d": d}
    values = {name: np.full((len(first), 1), float(number)) for name, number in counts.items()}
    values |= {
        "L": size.max(axis=(1, 2))[:, None],
        "mu": z.curvature.min(axis=(1, 2))[:, None],
        "Gamma": p["Gamma"],
        "sigma": sigma,
        "G": G,
        "etat": last,
        symbols.EARLY.name: first,
        "eta": first,
        "a": amplitude,
        symbols.AMPLITUDE.name: amplitude,
        symbols.CHANCE.name: np.full_like(first, z.steps.shape[1] / S),
        convex.EXCESS.name: p["excess"],
        convex.GAP.name: p["gap"],
        convex.LAST.name: p["gap"],
        nonconvex.DECREASE.name: p["decrease"],
        "Deltat": p["<b,b>"] - 2 * p["<b,ws>"] + p["<ws,ws>"],
        "Dt": p["<b,b>"] - 2 * p["<b,x>"] + p["<x,x>"],
        "M": p["<wn,wn>"] - 2 * p["<vb,wn>"] + p["<vb,vb>"],
    }
    met = {"smooth"} | ({"falling-steps"} if z.falling.all() else set())
    met |= set() if np.ptp(z.steps, axis=1).any() else {"constant-steps"}
    met |= {"progressive-masking"} if z.progressive else set()
    if z.curvature.min() > 0:
        met |= {"quadratic-upper-bound", "strongly-convex"}
    if z.relative is None:
        met |= SIGNED | {"signed-masks" if prescribed == 2 else "signed-masks-per-round"}
    else:
        values["q"] = z.relative[:, None]
        met |= OPERATOR
    squares = [p[f"<{name},{name}>"] for name in ("b", "g", "f0", "nb", "wn", "x")]
    error = ROUNDING * np.max(squares, axis=0)
    return PremiseCases(p | values, met=frozenset(met), covered=seen <= G, error=error)


@lru_cache(maxsize=16)
def iterations(prescribed: int, even: bool, convex: bool, progressive: bool = False) -> tuple[MaskedIterations, ...]:
    """The iterations that a proof is tried on."""
    rng = np.random.default_rng(191)
    sizes = FEWER if progressive else SIZES
    return tuple(
        draw_iterations(rng, size, convex=convex, even=even, prescribed=prescribed, progressive=progressive)
        for size in sizes
    )


@lru_cache(maxsize=16)
def cases(prescribed: int, *kind: bool) -> tuple[PremiseCases, ...]:
    """The symbols on `iterations`."""
    return tuple(iteration_cases(z, prescribed=prescribed) for z in iterations(prescribed, *kind))


def lemma(claim: Claim, convex: bool) -> InstanceTest | None:
    """A lemma about one iteration, of operators with a relative error."""
    return lemma_test(
        claim,
        PROOFS,
        lambda: (*iterations(0, False, convex), *iterations(0, True, convex)),
        lambda z: (iteration_cases(z),),
    )


# --- the schedule and the recursion of Theorem 1 ---------------------------------------------------------------------


def schedule(claim: Claim) -> Iterator[PremiseCases]:
    """The first iteration of a round and any other of it, counted from t = 1."""
    rng = np.random.default_rng(193)
    kappa, S = np.exp(rng.exponential(size=(200, 1))), rng.integers(1, 60, (200, 1))
    first = 1 + S * rng.integers(0, 4, (200, 1))
    t = first + np.where(rng.random((200, 1)) < 0.5, S - 1, 0)
    gamma = np.maximum(8 * kappa, S) - 1
    letters_ = {"L": 2 * kappa, "mu": 2.0 + 0 * kappa, "S": S + 0.0}
    yield PremiseCases(letters_ | {convex.X.name: gamma + t, convex.X0.name: gamma + first})


def recursion(claim: Claim) -> Iterator[PremiseCases]:
    """The distance in every iteration, each at its bound, from the first; places are the iterations."""
    rng = np.random.default_rng(197)
    for _ in range(6):
        kappa, S, mu, noise, start = np.exp(rng.normal(size=(5, 40, 1)))
        kappa, S = 1 + kappa, np.ceil(10 * S)
        x = np.maximum(8 * kappa, S)
        level = np.maximum(4 * noise / mu**2, x * start)
        now, values, places = start, [], []
        for _ in range(30):
            values.append(now)
            places.append(x)
            now, x = (1 - 2 / x) * now + 4 * noise / (mu * x) ** 2, x + 1
        here = {"Deltat": np.hstack(values), convex.X.name: np.hstack(places), convex.LEVEL.name: level}
        yield PremiseCases(here)


# --- Proposition 1 ----------------------------------------------------------------------------------------------------


def progressive_masks(claim: Claim) -> Iterator[PremiseCases]:
    """Updates of two coordinates, each masked with chance tau/S and then (1 +- q) times what it was."""
    rng = np.random.default_rng(199)
    for S in (1, 2, 5):
        for tau in range(1, S + 1):
            q, u = np.exp(rng.normal(size=(40, 1))), rng.normal(size=(40, 2))
            masked, progressed, crossed = np.zeros((3, 40, 1))
            sides = list(product((0, 1), (-1, 1)))  # whether a coordinate is masked, and how
            for (p0, m0), (p1, m1) in product(sides, sides):
                chance = np.prod([tau / S if p else 1 - tau / S for p in (p0, p1)]) / 4
                error = q * np.array([m0, m1]) * u
                hat = u + error * np.array([p0, p1])
                masked += ((u + error) ** 2).sum(axis=1, keepdims=True) * chance
                crossed += ((u + error) * u).sum(axis=1, keepdims=True) * chance
                progressed += (hat**2).sum(axis=1, keepdims=True) * chance
            square = (u**2).sum(axis=1, keepdims=True)
            average = np.mean([k / S for k in range(1, S + 1)]) * q**2
            values = {"q": q, "S": np.full_like(q, S), "tau": np.full_like(q, tau), remarks.AVERAGED.name: average}
            values |= {"<m,m>": masked, "<m,u>": crossed, "<u,u>": square, "<pm,pm>": progressed, "<pm,u>": square}
            yield PremiseCases(values, met=frozenset({"relative-error", "progressive-masking"}))


def chances(claim: Claim) -> Iterator[PremiseCases]:
    """The chances of T iterations, one after the other; rounds may be cut short."""
    for S, T in ((1, 1), (1, 7), (2, 2), (3, 8), (5, 5), (4, 3), (8, 40)):
        mean = np.mean([(t % S + 1) / S for t in range(T)])
        values = {"S": np.array([[float(S)]]), nonconvex.MEAN_CHANCE.name: np.array([[mean]])}
        yield PremiseCases(values, met=frozenset({"progressive-masking"}))


SPECIAL: Mapping[str, Callable[[Claim], Iterable[PremiseCases]]] = {
    "P1": schedule, "P2": schedule, "P3": schedule, "S24": recursion, "S9m": chances,
}  # fmt: skip


def premise_cases(subject: StepOf) -> Callable[[Claim], Iterable[PremiseCases]] | None:
    """Where a step that takes something from elsewhere is tried; None for averages over iterations."""
    proof, step = subject.proof.id.partition("/")[2], subject.step
    if isinstance(step.rule, Telescope | EveryRound):
        return None
    if proof == "proposition-1":
        return progressive_masks
    if step.id in SPECIAL:
        return SPECIAL[step.id]
    convex_, masks = proof.startswith(("theorem-1", "lemma-4")), proof.endswith("-masks")
    prescribed = (1 if convex_ else 2) if masks else 0
    evens = (True,) if proof.startswith("theorem-2") else (False, True)
    progressive = "progressive" in proof
    return lambda claim: (c for even in evens for c in cases(prescribed, even, convex_, progressive))


# --- averages --------------------------------------------------------------------------------------------------------

MEANS: Mapping[sp.Symbol, sp.Expr] = {
    nonconvex.AVERAGED: product_symbol("f0", "f0"),
    nonconvex.MEAN_ERROR: n.M,
    nonconvex.MEAN_CHANCE: symbols.CHANCE,
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {nonconvex.DECREASE: n.F}


def synchronized(rule: EveryRound, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """T iterations, one after the other: the bound where S of them are over, else nothing."""
    steps, bound = run.numbers[n.S.name], value(premises[0].right, run.numbers)
    ends = np.arange(1, run.rounds + 1)[None] % steps == 0
    return {nonconvex.MEAN_ERROR.name: np.where(ends, bound, 0.0).mean(axis=1, keepdims=True)}


BUILDERS: Mapping[type, Builder] = {EveryRound: synchronized}
