"""Claims about generalized FedAvg on instances: both sides, and the populations that verify them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.evaluation.program import CompiledFunctions
from fedbounds.bounds.theory.measures import EXPECTED
from fedbounds.bounds.theory.result import Form
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.falsification.instances.sides import Sides, Trial
from fedbounds.empirical.papers.arbitrary_participation.instances.drawing import pool
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances
from fedbounds.empirical.papers.arbitrary_participation.instances.kinked import kinked_pool
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import (
    ASSUMPTIONS,
    Course,
    ParticipatingRuns,
    all_of,
    met,
)
from fedbounds.empirical.papers.arbitrary_participation.instances.random_rounds import ROUNDS
from fedbounds.empirical.papers.arbitrary_participation.instances.relations import (
    SETTINGS,
    about_constants,
    relation_sides,
    setting_of,
)
from fedbounds.empirical.papers.arbitrary_participation.instances.windows import trial_of

ZERO = ("sigma", "nu", "beta", "delta", "d")
WINDOW = "equation-c.16"
LEAST_GRADIENT = ("theorem-3.1", "corollary-3.2", "corollary-3.3", "corollary-4.3")


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """The least gradient of a run, or that at the start of its one window; every assumption holds with one client."""
    assert isinstance(claim.subject, ResultForm)
    whole, one = claim.subject.result.key.endswith(WINDOW), np.ones(len(z))
    found = dict.fromkeys(ZERO, 0 * one) | {
        **{"L": z.smoothness, "F": z.gap, "rho": one, "sumsq": one, "N": one},
        **{"gamma": z.gamma, "eta": z.eta, "I": z.local_steps, "P": z.interval, "T": z.rounds, "r": z.r, "s": z.s},
    }
    left = z.least_gradient()
    if whole:
        left = np.where((z.rounds == z.interval) & (z.fits(whole=True) | (z.straight == 0)), z.slope**2, np.nan)
        found["decrease"] = z.decrease()
    return MeasuredRuns(left[:, None], {k: v[:, None] for k, v in found.items()}, dict.fromkeys(ASSUMPTIONS, True))


FAMILY = Family(
    measure, {"gamma": "gamma", "eta": "eta"}, values={"r": (1e-7, 1e-5, 1e-3, 0.1, 7 / 17, 1), "s": (0.1, 0.5, 1, 2)}
)


Values = dict[str, np.ndarray]
Left = Callable[[ParticipatingRuns, Course, Values], np.ndarray]


def least_gradient(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """min over t < T of E|grad f(x_t)|^2, (B, 1)."""
    least = run.gradient[:, :-1].min(axis=1, keepdims=True)
    if run.error is not None:
        values["rounding"] = least - (run.gradient - run.error)[:, :-1].min(axis=1, keepdims=True)
    return least


def divergence_of_participants(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """The left-hand side of (11), (B, T)."""
    return z.divergence_of_participants


def sum_of_suprema(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """beta^2 + nu^2, (B, 1)."""
    return values["beta"] ** 2 + values["nu"] ** 2


def windows(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """The left-hand side of (7), (B, K)."""
    values["qbar"] = z.window_weights
    return z.window


def spread(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """Lemma C.1: the largest over the local steps, (B, T)."""
    values["sumsq"] = z.sum_of_squares
    values["rounding"] = 1e-28 * run.drift.max(axis=2) + _noise_rounding(z, values) * z.local_steps
    return run.spread.max(axis=2)


def _noise_rounding(z: ParticipatingRuns, values: Values) -> np.ndarray:
    """Of 1 - S_t, in the unit of the squared noise of one step."""
    return 1e-15 * values["gamma"] ** 2 * values["sigma"] ** 2


def drift(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """Lemma C.2: the largest over the local steps, (B, T)."""
    values["sumsq"] = z.sum_of_squares
    values["gradsq"] = run.gradient[:, np.arange(z.rounds) // z.interval * z.interval]
    return run.drift.max(axis=2)


def gradient_at_starts(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """(C.16), with each window's own divergence, (B, K)."""
    starts = np.arange(z.window.shape[1]) * z.interval
    values["delta"] = np.sqrt(z.window)
    values["decrease"] = run.decrease
    if run.error is not None:
        values["rounding"] = run.error[:, starts]
    return run.gradient[:, starts]


RESULTS: Mapping[str, Left] = {
    **dict.fromkeys(LEAST_GRADIENT, least_gradient),
    **dict.fromkeys((name + EXPECTED for name in LEAST_GRADIENT), least_gradient),  # a law with one outcome
    "equation-11": divergence_of_participants,
    "proposition-4.1": sum_of_suprema,
    "proposition-4.2": windows,
    "equation-15": windows,
    "lemma-c.1": spread,
    "lemma-c.2": drift,
    "equation-c.16": gradient_at_starts,
}


# --- claims ----------------------------------------------------------------------------------------------------------

PAPER = "arbitrary-participation"
VECTORS = frozenset({"qbar"})


def at_prescribed_steps(form: Form, z: ParticipatingRuns) -> ParticipatingRuns:
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
    z = at_prescribed_steps(form, instances)
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


def _draw_pool(claim: Claim, cells: int) -> Iterable[FedAvgInstances]:
    return pool(cells)


def _draw_with_kinks(claim: Claim, cells: int) -> Iterable[ParticipatingRuns]:
    assert isinstance(claim.subject, ResultForm)
    gradients = RESULTS[claim.subject.result.key.partition("/")[2]] == least_gradient
    return (*pool(cells), *kinked_pool(cells, gradients))


ON_PROCESSES = ("proposition-4.4", "proposition-4.6", "proposition-4.7")


def trial(claim: Claim) -> Trial | None:
    """How instances verify a claim of the paper; None for a claim without instances."""
    subject = claim.subject
    if isinstance(subject, StepOf):
        if setting_of(subject) is None:
            return None
        return SETTINGS if about_constants(claim) else Trial(_draw_pool, relation_sides)
    if claim.paper != PAPER or not isinstance(subject, ResultForm):
        return None
    result = subject.result.key.partition("/")[2]
    if result in ON_PROCESSES:
        return trial_of(claim)
    if result in RESULTS:
        return Trial(_draw_with_kinks, form_sides, family=FAMILY if result in (*LEAST_GRADIENT, WINDOW) else None)
    return ROUNDS if result == "corollary-4.8" else None
