"""Steps of a proof, read as they stand: their relation is evaluated at the exact inner products of every instance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf, measure_symbol
from fedbounds.bounds.audit.vectors import factors_of_product
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.empirical.falsification.instances.readable import (
    Readable,
    conditions_hold,
    evaluate_sides,
    hypotheses,
    not_measured,
    readable,
)
from fedbounds.empirical.falsification.instances.sides import Sides
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances
from fedbounds.empirical.papers.arbitrary_participation.instances.gram import (
    POINT_BASIS,
    ROUND_BASIS,
    WINDOW_BASIS,
    round_products,
    window_products,
)
from fedbounds.empirical.papers.arbitrary_participation.instances.hypotheses import all_of, met

CANCELED = 1e-12  # error of both sides relative to the sizes of their summands
ROUND_OFF = 1e-15  # of a mean of the clients' gradients, relative to the largest of them
LEAST = measure_symbol(LEAST_GRADIENT).name, measure_symbol(OVER_PARTICIPATION).name
SETTINGS = {
    kind: tuple(basis.items())
    for kind, basis in (("round", ROUND_BASIS), ("window", WINDOW_BASIS), ("point", POINT_BASIS))
}
SECOND_MOMENTS = "sum_n q_n^2 E|xi_n|^2"


def setting_of(subject: StepOf) -> str | None:
    """round, window or point, by the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((kind for kind, basis in SETTINGS.items() if set(dict(basis)) == atoms), None)


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    return readable(subject.step.conclusion, SETTINGS[setting_of(subject) or "round"])


def relation_sides(claim: Claim, z: FedAvgInstances) -> Sides:
    """A step's relation at every round and local step, or at every window, of every instance."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    kind = setting_of(subject)
    window = kind == "window"
    relation = reading(subject)
    values = z.constants() | (_window_values(z) if window else _round_values(z))
    asked = set(relation.names)
    if asked & set(LEAST):  # one number for the whole run, so the divergence is that of all windows
        values |= {"delta": z.constants()["delta"]}
    zero = np.zeros((1, 1))
    for name in asked - set(values):
        if factors_of_product(name):
            values[name] = zero
    if missing := asked - set(values):
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
    """The rounds and local steps that a step speaks about."""
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
