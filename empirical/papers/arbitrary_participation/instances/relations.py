"""Steps of a proof, read as they stand: their relation is evaluated at the exact inner products of every instance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf, measure_symbol
from fedbounds.bounds.audit.vectors import factors_of_product
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.readable import (
    Readable,
    conditions_hold,
    evaluate_sides,
    hypotheses,
    not_measured,
    readable,
)
from fedbounds.empirical.falsification.instances.sides import Sides, Trial
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances
from fedbounds.empirical.papers.arbitrary_participation.instances.gram import (
    POINT_BASIS,
    ROUND_BASIS,
    WINDOW_BASIS,
    round_products,
    window_products,
)
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import all_of, met

CANCELED = 1e-12  # error of both sides relative to the sizes of their summands
ROUND_OFF = 1e-15  # of a mean of the clients' gradients, relative to the largest of them
LEAST = measure_symbol(LEAST_GRADIENT).name, measure_symbol(OVER_PARTICIPATION).name
BASES = {
    kind: tuple(basis.items())
    for kind, basis in (("round", ROUND_BASIS), ("window", WINDOW_BASIS), ("point", POINT_BASIS))
}
SECOND_MOMENTS = "sum_n q_n^2 E|xi_n|^2"


def setting_of(subject: StepOf) -> str | None:
    """round, window or point, by the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((kind for kind, basis in BASES.items() if set(dict(basis)) == atoms), None)


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    return readable(subject.step.conclusion, BASES[setting_of(subject) or "round"])


def relation_sides(claim: Claim, z: FedAvgInstances) -> Sides:
    """A step's relation at every round and local step, or at every window, of every instance."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    kind = setting_of(subject)
    window = kind == "window"
    relation = reading(subject)
    values = z.constants() | (_window_values(z) if window else _round_values(z))
    needed = set(relation.names)
    if needed & set(LEAST):  # one number for the whole run, so the divergence is that of all windows
        values |= {"delta": z.constants()["delta"]}
    zero = np.zeros((1, 1))
    for name in needed - set(values):
        if factors_of_product(name):
            values[name] = zero
    if missing := needed - set(values):
        return not_measured(missing, len(z))
    left, size, summands = evaluate_sides(relation, values, len(z))
    shape = left.shape
    assumptions, conditions = hypotheses(subject, PROOFS)
    assumed, unmet = met(z, dict.fromkeys((*claim.assumptions, *assumptions)))
    held = all_of(assumed, z)
    covered = held & (values["eta"] > 0) & conditions_hold(conditions, z.constants())
    if shape[1] > 1 and not window:
        covered = covered & _round_places(z, subject.step.quantifiers)
    rounding = (CANCELED + ROUND_OFF * _at_places(z, z.cancellation, shape[1])) * size
    if subject.step.conclusion.op == "==":
        total = sum(summands, start=np.zeros(shape))
        return Sides(np.abs(left - total), {}, covered, rounding, unmet, z.describe)
    return Sides(left, dict(zip(relation.terms, summands, strict=True)), covered, rounding, unmet, z.describe)


def _at_places(z: FedAvgInstances, per_round: np.ndarray, places: int) -> np.ndarray:
    """Values of every round, (B, T), at each of its local steps, or the largest of each window or of the run."""
    if places == z.rounds * (z.local_steps + 1):
        return np.repeat(per_round, z.local_steps + 1, axis=1)
    K = z.rounds // z.interval
    if places == K:
        return per_round[:, : K * z.interval].reshape(len(z), K, z.interval).max(axis=2)
    return per_round.max(axis=1, keepdims=True)


@lru_cache(maxsize=128)
def _round_values(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Products and weights at every place (t, i), each (B, T (I+1))."""
    places = (len(z), z.rounds, z.local_steps + 1)

    def flat(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, places).reshape(len(z), -1)

    variance = (z.noise**2).sum(axis=1)[:, None]
    second = variance * np.einsum("btn,bnn->bt", z.weights**2, z.correlation)
    named = {f"<{a},{b}>": flat(v) for (a, b), v in round_products(z).items()}
    named |= {"sumsq": flat(z.sum_of_squares[:, :, None]), SECOND_MOMENTS: flat(second[:, :, None])}
    return named | _suprema(z)


def _suprema(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Suprema over the rounds under the names that the proof gives them, each (B, 1)."""
    v = z.constants()
    return {"S_min": v["sumsq"], "sup (5)": v["beta"] ** 2, "sup (6)": v["nu"] ** 2}


def _round_places(z: FedAvgInstances, quantifiers: str) -> np.ndarray:
    """The rounds and local steps of a step's quantifiers."""
    t, i = np.meshgrid(np.arange(z.rounds), np.arange(z.local_steps + 1), indexing="ij")
    held = (i < z.local_steps) if "i < I" in quantifiers else np.ones_like(i, dtype=bool)
    if "i = 0" in quantifiers:
        held &= i == 0
    if "t = t_0" in quantifiers:
        held &= t % z.interval == 0
    return held.reshape(1, -1)


@lru_cache(maxsize=128)
def _window_values(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Products, decrease and divergence of every window, each (B, K); the run's least gradient, (B, 1)."""
    run = z.course
    named = {f"<{a},{b}>": v for (a, b), v in window_products(z).items()}
    named |= {"decrease": run.decrease, "delta": np.sqrt(z.window)}
    least = run.gradient[:, :-1].min(axis=1, keepdims=True)
    return named | {name: least for name in LEAST} | _suprema(z)


# --- steps about the constants alone ---------------------------------------------------------------------------------

MOST = 300


@dataclass(frozen=True, eq=False)
class Settings(Population):
    """B settings of the paper's constants, each (B,)."""

    L: np.ndarray
    I: np.ndarray
    P: np.ndarray
    T: np.ndarray
    gamma: np.ndarray
    eta: np.ndarray
    sigma: np.ndarray

    def constants(self) -> dict[str, np.ndarray]:
        """By letter, (B, 1)."""
        return {f.name: getattr(self, f.name)[:, None] for f in fields(self)}

    def mutated(self, rng: np.random.Generator) -> Self:
        """Other constants; the step sizes stay at the same shares of their caps, or move to them."""
        local = self.gamma * 12 * self.L * self.I * self.P
        update = self.gamma * self.eta * 2 * self.L * self.I * self.P
        I, P = (np.clip(np.rint(perturb(v, rng)), 1, MOST) for v in (self.I, self.P))
        T = np.clip(np.rint(perturb(self.T, rng)), P, None)
        L = perturb(self.L, rng)
        local, update = np.minimum(perturb(local, rng), 1), np.minimum(perturb(update, rng), 1)
        gamma = local / (12 * L * I * P)
        return replace(self, L=L, I=I, P=P, T=T, gamma=gamma, eta=update / (2 * L * I * P * gamma))


def draw_settings(claim: Claim, cells: int) -> Iterator[Settings]:
    """Whole numbers I and P from 1 to 300, small ones more often, and step sizes at the caps and inside."""
    rng = np.random.default_rng(67)
    B = 40 * cells
    I, P = (np.floor(MOST ** rng.uniform(0, 1, B) ** 2) for _ in range(2))
    T = P * np.floor(10 ** rng.uniform(0, 3, B)) + np.floor(rng.random(B) * P)
    L, local, update = 10 ** rng.uniform(-1, 1, B), rng.choice([1, 1, 0.3, 1e-3], B), rng.choice([1, 1, 0.3, 1e-3], B)
    wide = rng.choice([1, P.max()], B)  # some local steps up to 1/(12LI)
    gamma = local / (12 * L * I * np.maximum(P / wide, 1))
    yield Settings(L, I, P, T, gamma, update / (2 * L * I * P * gamma), rng.uniform(0, 2, B))


def about_constants(claim: Claim) -> bool:
    """Whether the step's relation has no other letters than these constants."""
    subject = claim.subject
    return isinstance(subject, StepOf) and set(reading(subject).names) <= {f.name for f in fields(Settings)}


def setting_sides(claim: Claim, z: Settings) -> Sides:
    """The relation at every setting that meets its conditions."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    relation, values = reading(subject), z.constants()
    left, size, *summands = relation.function(*(values[name] for name in relation.names))
    left, *summands = (np.broadcast_to(np.asarray(v, dtype=float), (len(z), 1)) for v in (left, *summands))
    covered = conditions_hold(hypotheses(subject, PROOFS)[1], values)
    rounding = 1e-15 * size * values["I"] * values["P"]  # a ratio of a geometric sum is 1 + 1/(IP) or so
    return Sides(left, dict(zip(relation.terms, summands, strict=True)), covered, rounding, "", z.describe)


SETTINGS = Trial(draw_settings, setting_sides)
