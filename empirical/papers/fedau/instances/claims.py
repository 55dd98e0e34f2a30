"""The results of Wang & Ji (2024) on instances: both sides, and the populations that verify them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.falsification.instances.paths import local_changes, together
from fedbounds.empirical.falsification.instances.piecewise_quadratics import (
    KinkedClients,
    PiecewiseQuadratic,
    draw_clients,
    remove_rounding,
    supremum,
)
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.ranges import chances, counts, positive
from fedbounds.empirical.falsification.instances.readable import sides_of_form
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from fedbounds.empirical.papers.fedau.instances import measured
from fedbounds.empirical.papers.fedau.instances.intervals import IntervalInstances, draw_intervals
from fedbounds.empirical.papers.fedau.instances.kinked import draw_kinked
from fedbounds.empirical.papers.fedau.instances.records import (
    RecordedInstances,
    Records,
    draw_recorded,
    every_record,
    weights_of,
)
from fedbounds.empirical.papers.fedau.instances.relations import basis_of, relation_as_used, relation_sides
from fedbounds.empirical.papers.fedau.instances.weighted import ConstantWeightRuns, WeightedInstances, draw_weighted

EACH = 20
NOISY = ((1, 1, 2, 1, 7), (1, 1, 3, 3, 4), (2, 1, 2, 1, 4), (1, 2, 2, 8, 2), (2, 1, 2, 2, 3))  # N, d, knots, I and T
WITHOUT_NOISE = ((1, 1, 2, 2, 9), (2, 1, 3, 2, 5), (3, 1, 2, 1, 3))
NO_COINS = ((1, 1, 2, 1, 60), (2, 1, 3, 4, 12), (1, 1, 2, 1, 200))


@dataclass(frozen=True, eq=False)
class Branched(KinkedClients):
    """B runs whose participation is drawn like their noise."""

    p: Annotated[np.ndarray, chances("N")]  # participation probabilities, (B, N)
    gamma: Annotated[np.ndarray, positive()]  # gamma, eta: step sizes, (B,)
    eta: Annotated[np.ndarray, positive()]
    local_steps: Annotated[int, counts()]  # local_steps, rounds: I and T
    rounds: Annotated[int, counts()]

    @property
    def sure(self) -> bool:
        """Whether participation is full."""
        return bool((self.p == 1).all())

    @property
    def cost(self) -> int:
        """Local steps, and a sixtieth for each path at the end."""
        outcomes = 2 ** (self.local_steps * bool(self.noise.any())) + (not self.sure)
        return self.local_steps * self.rounds + outcomes ** (self.clients * (self.rounds - 1)) // 60

    @abstractmethod
    def weights_on(self, records: np.ndarray, t: int) -> np.ndarray:
        """Aggregation weights in round t on records of the rounds before, (P, N) as binary numbers, (B, P or 1, N)."""

    def mean_square(self, function: PiecewiseQuadratic) -> np.ndarray:
        r"""$\frac1T\sum_{t<T}\mathbb E\|\nabla g(x_t)\|^2$, over all paths, (B, 1)."""
        B, N = self.p.shape
        x, chance, records = self.start[:, :, None], np.ones((B, 1)), np.zeros((1, N), dtype=int)
        total = np.zeros(B)
        for t in range(self.rounds):
            total += (chance * (function.slope(x) ** 2).sum(axis=1)).sum(axis=1)
            if t == self.rounds - 1:
                break
            *_, moves = local_changes(self, x, self.gamma, self.local_steps, t)
            ways = moves.shape[4]
            law = np.repeat(self.p[:, :, None] / ways, ways, axis=2)
            weights = self.eta[:, None, None] / N * self.weights_on(records, t)
            moves = np.swapaxes(weights, 1, 2)[:, :, None, :, None] * moves
            if not self.sure:
                moves = np.concatenate([moves, np.zeros_like(moves[..., :1])], axis=4)
                law = np.concatenate([law, 1 - self.p[:, :, None]], axis=2)
            present = ways > np.indices((moves.shape[4],) * N).reshape(N, -1).T
            joint = np.ones((B, 1))
            for own in np.moveaxis(law, 1, 0):
                joint = (joint[:, :, None] * own[:, None]).reshape(B, -1)
            x = (x[..., None] + together(np.ones((B, N)), moves)).reshape(B, x.shape[1], -1)
            chance = (chance[:, :, None] * joint[:, None]).reshape(B, -1)
            records = (2 * records[:, None] + present).reshape(-1, N)
        return (total / self.rounds)[:, None]

    def move_chances(self, rng: np.random.Generator) -> np.ndarray:
        """Other participation probabilities; rates of one in all instances stay."""
        return self.p if self.sure else np.clip(perturb(self.p, rng), 1e-6, 1)


@dataclass(frozen=True, eq=False)
class KinkedWeighted(Branched, ConstantWeightRuns):
    """Constant weights."""

    def weights_on(self, records: np.ndarray, t: int) -> np.ndarray:
        """The same on every record."""
        return self.omega[:, None]

    def average_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Of the objective with these weights, (B, 1)."""
        return self.mean_square(self.weighted(weights))

    def gap(self, weights: np.ndarray) -> np.ndarray:
        """Of the objective with these weights, infinite where it is not bounded below, (B,)."""
        return self.above_infimum(self.weighted(weights))

    def bounded_below(self, weights: np.ndarray) -> np.ndarray:
        """Whether the objective with these weights is, (B,)."""
        return np.isfinite(self.gap(weights))

    def divergences_from(self, weights: np.ndarray) -> np.ndarray:
        """Squared, of the clients' gradients from that of the objective with these weights, (B, N)."""
        mean = np.einsum("bn,bndm->bdm", weights, self.slopes)[:, None]
        return supremum(remove_rounding(self.slopes - mean, self.slopes))

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, probabilities, weights and step sizes; these stay within the caps."""
        shares = self.move_shares(rng)
        moved = replace(self, **self.move_clients(rng), p=self.move_chances(rng), omega=perturb(self.omega, rng))
        return moved.with_step_shares(*shares)


@dataclass(frozen=True, eq=False)
class KinkedRecords(Branched, Records):
    """FedAU's own weights; gradients are bounded, as there is no curvature beyond the knots."""

    def weights_on(self, records: np.ndarray, t: int) -> np.ndarray:
        """Algorithm 2's."""
        T = self.rounds
        by_cutoff = {K: weights_of(every_record(T), K)[records << (T - t), t] for K in np.unique(self.cutoff)}
        return np.stack([by_cutoff[K] for K in self.cutoff])

    def average_gradient(self) -> np.ndarray:
        return self.mean_square(self.objective)

    @property
    def covered(self) -> np.ndarray:
        return np.isfinite(self.above_infimum(self.objective)) & (self.curvatures[..., [0, -1]] == 0).all(
            axis=(1, 2, 3)
        )

    def symbols(self) -> dict[str, np.ndarray]:
        return {
            "L": self.smoothness,
            "F": self.above_infimum(self.objective),
            "G": np.sqrt(supremum(self.objective.at_knots)),
            "delta": np.sqrt(self.divergences.max(axis=1)),
            "sigma": self.sigma,
        }

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, probabilities and step sizes; these stay within the caps."""
        moved = replace(self, **self.move_clients(rng), p=self.move_chances(rng))
        return moved.with_step_shares(
            rng.choice([1.0, 1.0, 0.3], size=len(self)), rng.choice([1.0, 1.0, 0.3], size=len(self))
        )


def draw_base(
    rng: np.random.Generator, shape: tuple[int, ...], *, noisy: bool, sure: bool
) -> dict[str, np.ndarray | int]:
    """The fields of every kind, of EACH instances of one shape: clients, coordinates, knots, I and T."""
    N, d, m, I, T = shape
    p = np.maximum(rng.uniform(0, 1, (EACH, N)) ** rng.choice([0.2, 1.0, 6.0], size=(EACH, 1)), 1e-3)
    one = np.ones(EACH)
    return {
        **draw_clients(rng, EACH, (N, d, m), noisy=noisy),
        "samples": 0, "p": np.ones_like(p) if sure else p, "gamma": one, "eta": one, "local_steps": I, "rounds": T,
    }  # fmt: skip


def kinds(repeats: int) -> Iterator[tuple[tuple[int, ...], bool, bool]]:
    """Shapes, whether there is noise, and whether participation is full."""
    for _ in range(repeats):
        yield from ((shape, True, False) for shape in NOISY)
        yield from ((shape, False, False) for shape in WITHOUT_NOISE)
        yield (1, 1, 2, 1, 9), True, True
        yield from ((shape, False, True) for shape in NO_COINS)


@lru_cache(maxsize=8)
def kinked_weighted(cells: int, known: bool, equal: bool) -> tuple[KinkedWeighted, ...]:
    """Constant weights, those of known probabilities if `known`, one probability for all clients if `equal`."""
    rng, found = np.random.default_rng(103), []
    for shape, noisy, sure in kinds(3 if cells > 100 else 1):
        parts = draw_base(rng, shape, noisy=noisy, sure=sure)
        p = np.repeat(parts["p"][:, :1], shape[0], axis=1) if equal else parts["p"]  # type: ignore[index]
        off = rng.choice([0.0, 0.1, 1.0], size=(EACH, 1)) * rng.uniform(-1, 1, (EACH, shape[0]))
        z = KinkedWeighted(**parts | {"p": p}, omega=1 / p if known else np.maximum(1 + off, 1e-3) / p)  # type: ignore
        found.append(z.with_step_shares(rng.choice([1.0, 1.0, 0.3], size=EACH), rng.choice([1.0, 1.0, 0.3], size=EACH)))
    return tuple(found)


@lru_cache(maxsize=8)
def kinked_records(cells: int) -> tuple[KinkedRecords, ...]:
    """FedAU, with cut-offs from 1 to none."""
    rng, found = np.random.default_rng(101), []
    for shape, noisy, sure in kinds(3 if cells > 100 else 1):
        if shape[0] * shape[4] <= 10:
            cutoff = rng.choice([1.0, 2.0, 3.0, float(shape[4]), np.inf], size=EACH)
            z = KinkedRecords(**draw_base(rng, shape, noisy=noisy, sure=sure), cutoff=cutoff)  # type: ignore[arg-type]
            flat = z.curvatures.copy()
            flat[..., [0, -1]] = 0.0
            flat[np.abs(flat).max(axis=(1, 2, 3)) == 0, :, :, 1] = 1.0
            z = replace(z, curvatures=flat)
            found.append(
                z.with_step_shares(rng.choice([1.0, 1.0, 0.1], size=EACH), rng.choice([1.0, 1.0, 0.3], size=EACH))
            )
    return tuple(found)


ZERO = ("sigma", "delta", "deltatilde", "R")
ABOUT_ITS_OBJECTIVE = ("theorem-1", "theorem-b.4.1")
EXTREMAL_RESULTS = (
    *ABOUT_ITS_OBJECTIVE,
    *("theorem-2", "theorem-2-option-1", "corollary-4", "corollary-4-option-1"),
    *("appendix-a.3", "appendix-a.3-unequal"),
)


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """The mean gradient of a run; G is its slope at the start, and the weights are 1 where they are FedAU's or 1/p."""
    assert isinstance(claim.subject, ResultForm)
    one, w = np.ones(len(z)), z.weight
    found = dict.fromkeys(ZERO, 0 * one) | dict.fromkeys(("N", "K", "S", "Qtilde"), one)
    found |= {
        **{"L": z.smoothness, "F": z.gap, "H": z.gap, "G": z.slope, "gamma": z.gamma, "eta": z.eta},
        **{"I": z.local_steps, "T": z.rounds, "P": w, "etatilde": z.eta * w, "W": (w - 1) ** 2, "Wmax": (w - 1) ** 2},
        **{"Q": w**2, "Qmean": w**2},
        "cgamma": z.gamma * np.sqrt(z.rounds),
        "cboth": z.gamma * z.eta * np.sqrt(z.rounds),
    }
    values = {name: value[:, None] for name, value in found.items()}
    values |= {name: value[:, None, None] for name, value in (("p", one), ("omega", w), ("alphatilde", one))}
    met = measured.always(
        {*measured.ONE_STEP, "constant-weights", "h-bounded-below", "bounded-below", "bounded-gradient", "sure-Q"}
    )
    met |= {"equal-rates": True, "nearly-optimal-weights": np.asarray(np.abs(w - 1) <= 1 / 9)}
    met |= {name: np.asarray(w == 1) for name in ("inverse-rates", "fedau-weights")}
    return MeasuredRuns(z.mean_gradient()[:, None], values, met)


FAMILY = Family(
    measure,
    {"gamma": "gamma", "eta": "eta"},
    frozenset({"p", "omega", "varphi", "alphatilde"}),
    {"interval": (1,), "weight": (1, 10 / 9 - 1e-12, 8 / 9 + 1e-12)},
    frozenset({"cgamma", "cboth"}),
)


PAPER = "fedau"
VECTORS = frozenset({"p", "omega", "varphi", "alphatilde"})

# --- populations -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def pool(cells: int, *, uniform: bool, kinks: bool) -> tuple[Population, ...]:
    """Quadratics of either curvature, and one client with a kink; remembered, as every step is tried on them."""
    rng, found = np.random.default_rng(107), []
    for _ in range(cells // 2):
        N, d, I = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 9) ** rng.choice([1, 2]))
        found.append(draw_weighted(rng, 40, (N, d, I, 1), uniform=uniform))
    if kinks:
        found += [draw_kinked(rng, 40, 1 + k % 8) for k in range(cells // 4)]
    if kinks and cells > 100:
        found.append(draw_kinked(rng, 8, 15))
    return tuple(found)


def one_round(uniform: bool, kinks: bool) -> Callable[[Claim, int], Iterable[Population]]:
    """Where a claim about one round is tried."""
    return lambda claim, cells: pool(cells, uniform=uniform, kinks=kinks)


def without_gap(claim: Claim, z: WeightedInstances) -> Sides:
    """A step at the weights omega_n = N varphi_n/p_n, by which no client counts too much or too little."""
    return relation_sides(claim, replace(z, omega=z.clients * z.phi / z.p))


@lru_cache(maxsize=8)
def many_rounds(cells: int, known: bool, equal: bool) -> tuple[WeightedInstances, ...]:
    """Quadratics over many rounds, with weights 1/p if `known`, and one p for all clients if `equal`."""
    rng, found = np.random.default_rng(109), []
    for _ in range(cells // 2):
        N, T = int(rng.integers(1, 6)), int(np.floor(10 ** rng.uniform(0.4, 2.3)))
        z = draw_weighted(rng, 40, (N, int(rng.integers(1, 3)), int(rng.integers(1, 7)), T))
        p = np.repeat(z.p[:, :1], N, axis=1) if equal else z.p
        found.append(replace(z, p=p, omega=1 / p) if known else z)
    return tuple(found)


def runs(claim: Claim, cells: int) -> Iterable[ConstantWeightRuns]:
    """Constant weights, also with kinks; for Appendix A.3 those of known rates, equal ones if assumed."""
    known, equal = ({a.name for a in claim.assumptions} & {name} for name in ("inverse-rates", "equal-rates"))
    which = cells, bool(known), bool(equal)
    return (*many_rounds(*which), *kinked_weighted(*which))


def whole_cutoffs(rng: np.random.Generator, p: np.ndarray, T: int) -> np.ndarray:
    """Probabilities (B, N) raised so that R log T is a whole number for half of the instances."""
    rarest = 1 - T ** (-0.5 / rng.integers(1, 12, (len(p), 1)))
    raised = np.where(np.arange(p.shape[1]) == 0, rarest, np.maximum(p, rarest))
    return np.where(np.arange(len(p))[:, None] % 2 == 0, raised, p)


@lru_cache(maxsize=8)
def all_records(cells: int, whole: bool) -> tuple[RecordedInstances, ...]:
    """FedAU over all records: up to ten coins."""
    rng, found = np.random.default_rng(113), []
    for _ in range(cells // 3):
        N = int(rng.integers(1, 4))
        T = int(rng.integers(2, 10 // N + 1))
        z = draw_recorded(rng, 20, (N, int(rng.integers(1, 3)), int(rng.integers(1, 4)), T))
        found.append(replace(z, p=whole_cutoffs(rng, z.p, T)) if whole else z)
    return tuple(found)


def small_runs(claim: Claim, cells: int) -> Iterable[Records]:
    """FedAU itself, also with kinks; for Corollary 4 some where the printed cut-off is a whole number."""
    return (*all_records(cells, claim.id.startswith(f"{PAPER}/corollary-4[")), *kinked_records(cells))


def either(claim: Claim, cells: int) -> Iterable[Population]:
    """FedAU over all records where the claim is about its weights, else constant weights."""
    own = any(a.name == "fedau-weights" for a in claim.assumptions)
    return small_runs(claim, cells) if own else runs(claim, cells)


@lru_cache(maxsize=8)
def weights_alone(cells: int, whole: bool) -> tuple[IntervalInstances, ...]:
    """Settings of the weights' law, some with a printed cut-off that is a whole number."""
    rng, found = np.random.default_rng(127), []
    for _ in range(cells // 2):
        rounds = int(np.floor(10 ** rng.uniform(0.4, 2.2)))
        z = draw_intervals(rng, 20, int(rng.integers(1, 4)), rounds)
        found.append(replace(z, p=whole_cutoffs(rng, z.p, rounds)) if whole else z)
    return tuple(found)


def intervals(claim: Claim, cells: int) -> Iterable[IntervalInstances]:
    """The weights of FedAU alone."""
    return weights_alone(cells, claim.id.startswith(f"{PAPER}/lemma-b.7.1"))


def finite_cutoffs(claim: Claim, cells: int) -> Iterator[IntervalInstances]:
    """The same with finite cut-offs."""
    for z in intervals(claim, cells):
        yield replace(z, cutoff=np.where(np.isfinite(z.cutoff), z.cutoff, 7.0))


WITHOUT_GAP = tuple(f"{PAPER}/theorem-b.4.1-no-gap/{step}" for step in ("N1", "N2", "N3"))
ONE_ROUND = (f"{PAPER}/lemma-b.3.", f"{PAPER}/lemma-b.5.1")  # proofs about one round
Left = Callable[[Any, str], measured.Measured]
RESULTS: Mapping[str, tuple[Callable[[Claim, int], Iterable[Any]], Left]] = {
    "lemma-b.3.1": (one_round(uniform=False, kinks=False), measured.divergence),
    "lemma-b.3.2": (one_round(uniform=False, kinks=True), measured.drift),
    "lemma-b.3.3": (one_round(uniform=False, kinks=True), measured.ascent),
    "lemma-b.5.1": (one_round(uniform=True, kinks=True), measured.ascent_of_mean),
    "theorem-1": (runs, measured.constant_weights),
    "theorem-b.4.1": (runs, measured.constant_weights),
    "theorem-2": (small_runs, measured.recorded),
    "theorem-2-option-1": (runs, measured.average),
    "corollary-4": (small_runs, measured.recorded),
    "corollary-4-option-1": (either, measured.average_of_either),
    "appendix-a.3": (runs, measured.average),
    "appendix-a.3-unequal": (runs, measured.average),
    "theorem-3": (intervals, measured.error_of_weights),
    "lemma-b.7.1": (intervals, measured.error_of_weights),
    "lemma-b.6.1": (finite_cutoffs, measured.cut_interval(0)),
    "lemma-b.6.1-variance": (finite_cutoffs, measured.cut_interval(1)),
}  # fmt: skip


def form_sides(claim: Claim, instances: Any) -> Sides:
    """A result's form: the left side exactly, the right side from the form's terms; negative ones change sides."""
    subject = claim.subject
    if isinstance(instances, ExtremalRuns):
        return FAMILY.sides(claim, instances)
    assert isinstance(subject, ResultForm)
    form, of = subject.form, RESULTS[subject.result.key.partition("/")[2]][1]
    z = instances
    whole: np.ndarray | bool = True
    if form.prescribes:
        set_by_form = compile_form(form, VECTORS).parts(of(z, form.name).values).prescribed
        z, whole = _prescribed(form.prescribes, set_by_form, z)
    left, values, met = of(z, form.name)
    covered = np.ones((len(z), 1), dtype=bool) & np.reshape(whole, (-1, 1))
    return sides_of_form(claim, left, values, met, covered, (0.0, measured.CANCELED), VECTORS, z.describe)


def _prescribed(
    names: Mapping[str, Any], values: list[np.ndarray], z: Population
) -> tuple[Population, np.ndarray | bool]:
    """The instances at the values that the form sets, and where the cut-off among them is a whole number >= 1."""
    fields = {"gamma": "gamma", "eta": "eta", "K": "cutoff"}
    found = {fields[k]: np.broadcast_to(v, (len(z), 1))[:, 0] for k, v in zip(names, values, strict=True)}
    whole: np.ndarray | bool = True
    if "cutoff" in found:
        nearest = np.maximum(np.rint(found["cutoff"]), 1)
        whole, found["cutoff"] = np.abs(found["cutoff"] - nearest) <= 1e-9 * nearest, nearest
    for name in ("gamma", "eta"):
        if name in found:
            found[name] = np.where(np.isfinite(found[name]) & (found[name] > 0), found[name], 1e-9)
    return replace(z, **{k: v for k, v in found.items() if hasattr(z, k)}), whole


def instance_test(claim: Claim) -> InstanceTest | None:
    """How instances verify a claim of the paper; None for a claim without instances."""
    subject = claim.subject
    if claim.paper != PAPER:
        return None
    if isinstance(subject, StepOf):
        implied = relation_as_used(subject)[1] is not None
        if claim.id.startswith(WITHOUT_GAP):
            return InstanceTest(one_round(uniform=False, kinks=False), without_gap, implied)
        if basis_of(subject) is None or not subject.proof.id.startswith(ONE_ROUND):
            return None
        itself = subject.proof.id.startswith(f"{PAPER}/lemma-b.5.1")
        return InstanceTest(one_round(uniform=itself, kinks=True), relation_sides, implied)
    if not isinstance(subject, ResultForm) or (subject.form.asymptotic and not subject.form.order_only):
        return None  # a limit is not an inequality at one T
    name = subject.result.key.partition("/")[2]
    family = FAMILY if name in EXTREMAL_RESULTS else None
    return InstanceTest(RESULTS[name][0], form_sides, family=family) if name in RESULTS else None
