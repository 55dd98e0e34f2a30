"""How a claim about generalized FedAvg becomes two sides on instances, and how it is tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.evaluation.program import CompiledFunctions
from fedbounds.bounds.theory.result import Form
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns
from fedbounds.empirical.falsification.instances.sides import Sides, Trial
from fedbounds.empirical.papers.arbitrary_participation.instances.drawing import pool
from fedbounds.empirical.papers.arbitrary_participation.instances.extremal import FAMILY, LEAST_GRADIENT, WINDOW
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances
from fedbounds.empirical.papers.arbitrary_participation.instances.hypotheses import all_of, met
from fedbounds.empirical.papers.arbitrary_participation.instances.kinked import kinked_pool
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import ParticipatingRuns
from fedbounds.empirical.papers.arbitrary_participation.instances.random_rounds import ROUNDS
from fedbounds.empirical.papers.arbitrary_participation.instances.relations import relation_sides, setting_of
from fedbounds.empirical.papers.arbitrary_participation.instances.settings import SETTINGS, about_constants
from fedbounds.empirical.papers.arbitrary_participation.instances.statements import RESULTS, least_gradient
from fedbounds.empirical.papers.arbitrary_participation.instances.windows import trial_of

PAPER = "arbitrary-participation"
VECTORS = frozenset({"qbar"})


def prescribed(form: Form, z: ParticipatingRuns) -> ParticipatingRuns:
    """The instances with the step sizes that the form sets, if it does."""
    return _with_steps(tuple(form.prescribes.items()), z) if form.prescribes else z


@lru_cache(maxsize=128)
def _with_steps(steps: tuple[tuple[str, sp.Expr], ...], z: ParticipatingRuns) -> ParticipatingRuns:
    """Remembered: several forms set the same steps, and the course is what takes time."""
    parts = _compiled(steps).parts(z.constants())
    values = (np.broadcast_to(p, (len(z), 1))[:, 0] for p in parts.prescribed)
    return replace(z, **dict(zip(dict(steps), values, strict=True)))


@lru_cache(maxsize=64)
def _compiled(steps: tuple[tuple[str, sp.Expr], ...]) -> CompiledFunctions:
    return compile_form(Form("explicit", (), prescribes=dict(steps)))


def form_sides(claim: Claim, instances: ParticipatingRuns | ExtremalRuns) -> Sides:
    """A result's form: the left side exactly, the right side from the form's terms."""
    subject = claim.subject
    if isinstance(instances, ExtremalRuns):
        return FAMILY.sides(claim, instances)
    assert isinstance(subject, ResultForm)
    form = subject.form
    z = prescribed(form, instances)
    values = z.constants()
    with np.errstate(over="ignore", invalid="ignore"):
        left = RESULTS[subject.result.key.partition("/")[2]](z, z.course, values)
    assumed, unmet = met(z, claim.assumptions)
    parts = compile_form(form, VECTORS).parts(values)
    covered = all_of(assumed, z) & (values["eta"] > 0)
    for holds in parts.holds:
        covered = covered & holds
    terms = {t.name: np.broadcast_to(v, left.shape) for t, v in zip(form.terms, parts.terms, strict=True)}
    zeros = 1e-28 * values["d"] ** 2 * z.clients if left.shape == z.window.shape else 0.0  # sums that should vanish
    return Sides(left, terms, covered, values.get("rounding", zeros), unmet, z.describe, values, assumed)


def _drawn(claim: Claim, cells: int) -> Iterable[FedAvgInstances]:
    return pool(cells)


def _drawn_with_kinks(claim: Claim, cells: int) -> Iterable[ParticipatingRuns]:
    assert isinstance(claim.subject, ResultForm)
    gradients = RESULTS[claim.subject.result.key.partition("/")[2]] == least_gradient
    return (*pool(cells), *kinked_pool(cells, gradients))


ON_PROCESSES = ("proposition-4.4", "proposition-4.6", "proposition-4.7")


def trial(claim: Claim) -> Trial | None:
    """How this court tries the claim; None if it does not hear it."""
    subject = claim.subject
    if isinstance(subject, StepOf):
        if setting_of(subject) is None:
            return None
        return SETTINGS if about_constants(claim) else Trial(_drawn, relation_sides)
    if claim.paper != PAPER or not isinstance(subject, ResultForm):
        return None
    result = subject.result.key.partition("/")[2]
    if result in ON_PROCESSES:
        return trial_of(claim)
    if result in RESULTS:
        return Trial(_drawn_with_kinks, form_sides, family=FAMILY if result in (*LEAST_GRADIENT, WINDOW) else None)
    return ROUNDS if result == "corollary-4.8" else None
