r"""The symbols of the proofs of Das et al. (2022) on rounds with every path followed, and where each step is tested.

Client k has $F_k(x)=\frac12(x-c_k)^\top A_k(x-c_k)$, f is the mean of them, and in silo j it sees the block j of its
gradient with noise $\pm v_{kj}$, drawn once for the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Annotated, ClassVar, Self

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.tdcd.lemmas import LEMMA_2
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.proof import PROOFS, theorem
from fedbounds.bounds.papers.tdcd.proof import symbols as symbols
from fedbounds.bounds.papers.tdcd.proof.rules import Realized
from fedbounds.empirical.falsification.instances.averages import Builder, telescope
from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.premises import PremiseCases, lemma_test
from fedbounds.empirical.falsification.instances.ranges import always, counts, positive, reals, symmetric
from fedbounds.empirical.falsification.instances.sides import InstanceTest


@dataclass(frozen=True, eq=False)
class BlockRounds(Population):
    """B instances of a round."""

    measured: ClassVar[LeftSide] = "every outcome"
    hessians: Annotated[np.ndarray, reals("K d d")]  # $A_k$, (B, K, d, d), symmetric
    centers: Annotated[np.ndarray, reals("K d")]  # $c_k$, (B, K, d)
    noise: Annotated[np.ndarray, reals("K d")]  # $v_{kj}$, (B, K, d): the block j of a client's, for all j
    start: Annotated[np.ndarray, reals("d")]  # the synchronized model, (B, d)
    step: Annotated[np.ndarray, positive()]  # (B,)
    local_steps: Annotated[int, counts()]  # Q
    silos: Annotated[int, counts()]  # N, each with d/N parameters

    def rules(self) -> dict[str, np.ndarray]:
        return {
            "the Hessians are symmetric": symmetric(self.hessians),
            "some Hessian is not zero": (self.hessians != 0).any(axis=(1, 2, 3)),
            "silos have equally many coordinates": always(self.start.shape[1] % self.silos == 0, self.start),
        }

    @property
    def cost(self) -> int:
        """The local steps, and a sixtieth for each path."""
        return self.local_steps + 2 ** (self.clients * self.silos) // 60

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, starts and step sizes; clients that are alike stay so."""
        hessians, centers, noise = (shake(v, rng) for v in (self.hessians, self.centers, self.noise))
        hessians, noise = hessians + np.swapaxes(hessians, 2, 3), np.where(self.noise == 0, 0.0, noise)
        alike = self.alike
        return replace(
            self,
            hessians=np.where(alike[:, None, None, None], hessians[:, :1], hessians) / 2,
            centers=np.where(alike[:, None, None], centers[:, :1], centers),
            noise=noise,
            **self.neighbors(rng, start=shake, step=perturb),
        )

    @property
    def alike(self) -> np.ndarray:
        """Whether all clients have the same function, (B,)."""
        one = (self.hessians == self.hessians[:, :1]).all(axis=(1, 2, 3))
        return one & (np.ptp(self.centers, axis=1) == 0).all(axis=1)

    @property
    def clients(self) -> int:
        """In every silo."""
        return self.hessians.shape[1]

    def blocks(self, vectors: np.ndarray) -> np.ndarray:
        """(..., d) as (..., N, d/N)."""
        return vectors.reshape(*vectors.shape[:-1], self.silos, -1)

    @cached_property
    def signs(self) -> np.ndarray:
        """Of the noise of every client in every silo on each path, (paths, K, N)."""
        size = self.clients * self.silos
        return np.array(list(product((-1.0, 1.0), repeat=size))).reshape(-1, self.clients, self.silos)

    @cached_property
    def noise_on_paths(self) -> np.ndarray:
        """The noise on every path, (B, paths, K, N, d/N)."""
        return self.signs[None, ..., None] * self.blocks(self.noise)[:, None]

    def gradients(self, views: np.ndarray) -> np.ndarray:
        """g_kj at the views (B, paths, K, N, d) of the clients, each its own block, (B, paths, K, N, d/N)."""
        away = views - self.centers[:, None, :, None]
        whole = self.blocks(np.einsum("bkij,bpknj->bpkni", self.hessians, away))
        return np.einsum("bpknni->bpkni", whole) + self.noise_on_paths

    @cached_property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """The clients' views of the model and their gradients before each local step, and after the last one."""
        own = np.eye(self.silos)[..., None]  # (N, N, 1): which block of a view is the client's own
        paths = len(self.signs)
        shape = (len(self.start), paths, self.clients, self.silos, self.start.shape[1])
        view, views, found = np.broadcast_to(self.start[:, None, None, None], shape), [], []
        for _ in range(self.local_steps + 1):
            gradient = self.gradients(view)
            views.append(view)
            found.append(gradient)
            moved = own * gradient[..., None, :]
            view = view - self.step[:, None, None, None, None] * moved.reshape(shape)
        return np.stack(views), np.stack(found)

    @cached_property
    def gradient(self) -> np.ndarray:
        """The blocks of grad f at the synchronized model, (B, 1, 1, N, d/N)."""
        away = self.start[:, None] - self.centers
        return self.blocks(np.einsum("bkij,bkj->bki", self.hessians, away).mean(axis=1))[:, None, None]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a model on every path, (B, paths, d)."""
        return len(self.start), len(self.signs), self.start.shape[1]

    def slope(self, models: np.ndarray) -> np.ndarray:
        """Grad f at (B, paths, d), of the same shape."""
        away = models[:, :, None] - self.centers[:, None]
        return np.einsum("bkij,bpkj->bpki", self.hessians, away).mean(axis=2)

    def objective(self, models: np.ndarray) -> np.ndarray:
        """f at (B, paths, d)."""
        away = models[:, :, None] - self.centers[:, None]
        return np.einsum("bpki,bkij,bpkj->bpk", away, self.hessians, away).mean(axis=2) / 2

    @cached_property
    def decrease(self) -> np.ndarray:
        """E f(x) - E f(x^+), (B, 1)."""
        moved = self.steps[1][:-1].sum(axis=0).mean(axis=2)  # (B, paths, N, d/N): the clients' mean
        after = self.start[:, None] - self.step[:, None, None] * moved.reshape(*moved.shape[:2], -1)
        return (self.objective(self.start[:, None]) - self.objective(after)).mean(axis=1, keepdims=True)

    def sum_products(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The product of two vectors (B, paths, K, N, ...): expectation, clients' mean, sum over the silos; (B, 1)."""
        return (first * second).sum(axis=-1).sum(axis=-1).mean(axis=(1, 2))[:, None]

    @cached_property
    def errors(self) -> np.ndarray:
        """g^0 less the block of grad f, (B, paths, K, N, d/N)."""
        return self.steps[1][0] - self.gradient


B = 24
# silos, clients of each, parameters of each, local steps
SIZES = ((1, 1, 1, 2), (1, 1, 2, 5), (1, 3, 1, 2), (2, 1, 1, 3), (2, 2, 2, 2), (2, 2, 1, 4), (3, 1, 2, 20))
ROUNDING = 1e-13  # relative to the largest square
MET = frozenset(
    {"smooth", "block-smooth", "unbiased-silos", "uncorrelated-clients", "bounded-below", theorem.WITHIN.name}
)


@lru_cache(maxsize=4)
def rounds(alike: bool) -> tuple[BlockRounds, ...]:
    """Quadratics with one curvature, sometimes negative, or with several; without noise in a quarter of the cases."""
    rng, found = np.random.default_rng(223), []
    for silos, clients, width, steps in SIZES:
        d = silos * width
        kind = np.arange(B) % 4
        roots = rng.normal(size=(B, clients, d, d))
        hessians = roots @ np.swapaxes(roots, -1, -2) / d
        level = np.exp(rng.normal(size=(B, 1, 1, 1)))
        hessians = np.where((kind == 0)[:, None, None, None], level * np.eye(d), hessians)
        centers = rng.normal(size=(B, clients, d))
        if alike:
            hessians, centers = (np.repeat(v[:, :1], clients, axis=1) for v in (hessians, centers))
        noise = np.exp(rng.normal(size=(B, clients, d))) * (kind != 1)[:, None, None]
        noise = np.where((kind == 2)[:, None, None], 10 * noise, noise)
        largest = np.linalg.norm(hessians, 2, axis=(-2, -1)).max(axis=1)
        step = rng.choice([0.05, 0.5, 1.0], size=B) / (8 * steps * largest)
        step = np.where(np.arange(B) % 8 == 0, 1 / largest, step)  # from the first local step on at a minimizer
        hessians = np.where((np.arange(B) % 8 == 4)[:, None, None, None], -hessians, hessians)
        found.append(BlockRounds(hessians, centers, noise, rng.normal(size=(B, d)), step, steps, silos))
    return tuple(found)


def constants(z: BlockRounds) -> dict[str, np.ndarray]:
    """What does not depend on the path; norms are of doubles alone."""
    hessians = z.hessians.astype(float)
    mean = np.linalg.norm(hessians.mean(axis=1), 2, axis=(-2, -1))
    size = hessians.shape[-1] // z.silos
    own = [hessians[..., j * size : (j + 1) * size, j * size : (j + 1) * size] for j in range(z.silos)]
    block = np.max([np.linalg.norm(a, 2, axis=(-2, -1)).max(axis=1) for a in own], axis=0)
    whole = {"Q": z.local_steps, "R": 1}
    return {name: np.full((len(mean), 1), float(number)) for name, number in whole.items()} | {
        "L": mean[:, None],
        "Lmax": block[:, None],
        "eta": z.step[:, None],
    }


def products(vectors: Mapping[str, np.ndarray], z: BlockRounds) -> dict[str, np.ndarray]:
    """Every inner product of these vectors."""
    names = sorted(vectors)
    return {f"<{a},{b}>": z.sum_products(vectors[a], vectors[b]) for a in names for b in names if a <= b}


def round_cases(z: BlockRounds) -> PremiseCases:
    """The bracket of the theorem: also a mean over the local steps."""
    g = z.steps[1][:-1]
    shape = g.shape[1:]
    averaged = {"f": np.broadcast_to(z.gradient, shape), "g0": g[0]}
    averaged["m0"] = np.broadcast_to(g[0].mean(axis=2, keepdims=True), shape)
    averaged["xi"] = z.errors
    averaged["nb"] = np.broadcast_to(z.errors.mean(axis=2, keepdims=True), shape)
    averaged["ms"] = np.broadcast_to(g.mean(axis=0).mean(axis=2, keepdims=True), shape)
    values = products(averaged | {"gs": g.mean(axis=0)}, z)
    values["<gs,gs>"] = np.mean([z.sum_products(one, one) for one in g], axis=0)
    values |= products_along_round(z)
    drift = np.sum([z.sum_products(one - g[0], one - g[0]) for one in g], axis=0)
    spread = z.sum_products(z.errors, z.errors)
    values |= constants(z) | {
        symbols.PSI.name: drift,
        theorem.GROWTH.name: drift / values["<g0,g0>"],
        symbols.DECREASE.name: z.decrease,
        "S": spread,
        "SK": spread / z.clients,
        "Delta": np.maximum(z.decrease, 0),
    }
    error = ROUNDING * np.max([values[f"<{a},{a}>"] for a in ("f", "g0", "gs", "ms")], axis=0)
    return PremiseCases(values, met=MET, error=error)


def products_along_round(z: BlockRounds) -> dict[str, np.ndarray]:
    """The virtual average before each local step, and grad f there: products, in the mean over the steps."""
    moved = z.step[:, None, None] * np.cumsum(z.steps[1][:-1].mean(axis=3).reshape(z.local_steps, *z.shape), axis=0)
    start = np.broadcast_to(z.start[:, None], z.shape)
    found = []
    for s in range(z.local_steps):
        point = start - (moved[s - 1] if s else 0.0)
        vectors = {"x": start, "xs": point, "f": z.slope(start), "fs": z.slope(point)}
        pairs = (("x", "x"), ("x", "xs"), ("xs", "xs"), ("f", "f"), ("f", "fs"), ("fs", "fs"))
        found.append({f"<{a},{b}>": (vectors[a] * vectors[b]).sum(-1).mean(1)[:, None] for a, b in pairs})
    return {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}


def decrease_cases(claim: Claim) -> Iterator[PremiseCases]:
    """What curvature/2 x^2 falls by in so many steps, of all that it can fall by."""
    rng = np.random.default_rng(227)
    start, steps = np.exp(rng.normal(size=(2, 60, 1)))
    values = {"Deltainf": start, "Delta": start * (1 - 0.75 ** np.ceil(20 * steps))}
    yield PremiseCases(values, met=MET)


def local_step_cases(claim: Claim) -> Iterator[PremiseCases]:
    """One local step after the other; the first alone where the step's quantifiers require it."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    for z in rounds(alike=False):
        views, g = z.steps
        drift = np.sum([z.sum_products(one - g[0], one - g[0]) for one in g[:-1]], axis=0)
        for s in range(1 if subject.step.id == "0" else z.local_steps):
            values = products({"g0": g[0], "gp": g[s], "gn": g[s + 1]}, z)
            values |= products({"yp": views[s], "yn": views[s + 1]}, z)
            error = ROUNDING * np.max([values[f"<{a},{a}>"] for a in ("g0", "gp", "gn", "yp", "yn")], axis=0)
            yield PremiseCases(values | constants(z) | {symbols.PSI.name: drift}, met=MET, error=error)


def recursion(claim: Claim) -> Iterator[PremiseCases]:
    """The paper's recursion, with equality in every local step."""
    rng = np.random.default_rng(229)
    for steps in (1, 2, 3, 10, 100):
        rate, first = np.exp(rng.normal(size=(2, 40, 1))) / np.array([[[2 * steps]], [[1.0]]])
        now, total = np.zeros((40, 1)), np.zeros((40, 1))
        for _ in range(steps):
            total = total + now
            now = (1 + 2 / steps) * now + 2 * (1 + steps) * rate**2 * first
        values = {"<g0,g0>": first, "eta": rate / 3, "Lmax": 0 * rate + 3, "Q": 0 * rate + steps}
        yield PremiseCases(values | {symbols.PSI.name: total}, met=MET, covered=total > 0)


def first_gradients(z: BlockRounds, one_client: bool) -> list[PremiseCases]:
    """Lemma 1 in every silo, for the clients' mean or for every client."""
    g, f, found = z.steps[1][0], np.broadcast_to(z.gradient, z.steps[1][0].shape), []
    met = MET | ({"unbiased-clients"} if one_client and z.alike.all() else set())
    for j in range(z.silos):
        for clients in [slice(k, k + 1) for k in range(z.clients)] if one_client else [slice(None)]:
            here = {"f": f[:, :, clients, j : j + 1], "g0": g[:, :, clients, j : j + 1]}
            here["xi"] = here["g0"] - here["f"]
            here["nb"] = np.broadcast_to(here["xi"].mean(axis=2, keepdims=True), here["xi"].shape)
            values = products(here, z) | {"sigmaj": np.sqrt(z.sum_products(here["xi"], here["xi"]))}
            size = np.maximum(values["<f,f>"], values["<g0,g0>"])
            found.append(PremiseCases(values, met=met, error=ROUNDING * size))
    return found


def lemma(claim: Claim) -> InstanceTest | None:
    """Lemma 1, of every client or of their mean, and Lemma 2."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    if subject.result is LEMMA_2:
        return lemma_test(claim, PROOFS, lambda: rounds(alike=False), lambda z: [round_cases(z)])
    one_client = subject.form.name == "printed"
    return lemma_test(claim, PROOFS, lambda: rounds(alike=one_client), lambda z: first_gradients(z, one_client))


def premise_cases(subject: StepOf) -> Callable[[Claim], Iterable[PremiseCases]] | None:
    """Where a step that takes something from elsewhere is tried; None for averages over rounds."""
    if isinstance(subject.step.rule, Realized):
        return None
    if subject.step.id in ("21", "6"):
        return decrease_cases if subject.step.id == "21" else recursion
    name = subject.proof.id.partition("/")[2]
    if name.startswith("lemma-1"):
        one_client = name.endswith("-client")
        return lambda claim: (c for z in rounds(alike=one_client) for c in first_gradients(z, one_client))
    return local_step_cases if name == "lemma-2" else lambda claim: map(round_cases, rounds(alike=False))


# --- averages --------------------------------------------------------------------------------------------------------

MEANS: Mapping[sp.Symbol, sp.Expr] = {
    theorem.AVERAGED: symbols.SQUARED_GRADIENT,
    theorem.EVERYWHERE: product_symbol("fs", "fs"),
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {symbols.DECREASE: n.Delta}
BUILDERS: Mapping[type, Builder] = {Realized: telescope}
