"""Steps that are about the constants alone: no vector, no expectation, so that large whole numbers can be tried too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.readable import conditions_hold, hypotheses
from fedbounds.empirical.falsification.instances.sides import Sides, Trial
from fedbounds.empirical.papers.arbitrary_participation.instances.relations import reading

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
