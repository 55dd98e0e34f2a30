"""Claims about generalized FedAvg on instances: both sides, and the populations that verify them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
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

EACH = 40  # instances of one shape


def patterns(rng: np.random.Generator, B: int, T: int, N: int, P: int) -> np.ndarray:
    """Weights (B, T, N): random, one client, everyone, subsets, fixed, in turn (regular if N divides P), halves."""
    kinds = rng.integers(7, size=B)
    subsets = np.argsort(rng.random((B, T, N)), axis=2) < rng.integers(1, N + 1, (B, 1, 1))
    halves = np.arange(N) < rng.integers(1, N + 1, (B, 1))
    both = np.stack([halves, np.where((~halves).any(axis=1, keepdims=True), ~halves, halves)], axis=1)
    first = rng.dirichlet(np.full(N, 0.4), size=B)
    in_turn = np.stack([np.roll(first, t, axis=1) for t in range(T)], axis=1)
    choices = [
        rng.dirichlet(np.full(N, 0.5), size=(B, T)),
        np.eye(N)[rng.integers(N, size=(B, T))],
        np.ones((B, T, N)),
        subsets * 1.0,
        np.repeat(first[:, None], T, axis=1),
        in_turn,
        both[:, np.arange(T) % 2] * 1.0,
    ]
    q = np.select([(kinds == k)[:, None, None] for k in range(len(choices))], choices)
    return q / q.sum(axis=2, keepdims=True)


def draw(rng: np.random.Generator, B: int, shape: tuple[int, ...], *, rippled: bool, wide: bool) -> FedAvgInstances:
    """B random instances of one shape (N, d, I, P, T)."""
    N, d, I, P, T = shape

    def sizes(*values: float) -> np.ndarray:
        return rng.choice(values, size=B)

    scale = sizes(0.05, 1.0, 20.0)[:, None]
    spectrum = rng.uniform(0, 1, (B, d)) ** sizes(1.0, 8.0)[:, None]
    spectrum[:, 0] = 1.0
    ripple = rng.uniform(0, 1, (B, d)) * rippled
    curvature = scale * np.where(rippled, rng.uniform(0, 1, (B, d)) * sizes(0, 1)[:, None], spectrum)
    slopes = sizes(0.0, 0.1, 1.0, 10.0)[:, None, None] * rng.normal(size=(B, N, d))
    spreads = np.where(rng.random((B, N)) < 0.3, rng.uniform(0, 1, (B, N)), 1.0)
    spreads[:, 0] = 1.0
    z = FedAvgInstances(
        curvature=curvature,
        ripple=scale * ripple,
        slopes=slopes - slopes.mean(axis=1, keepdims=True),
        start=sizes(0.01, 1.0, 10.0)[:, None] * rng.normal(size=(B, d)),
        noise=0.0 * curvature if rippled else sizes(0.0, 0.1, 1.0, 10.0)[:, None] * rng.uniform(0, 1, (B, d)),
        correlation=spreads[:, :, None] * np.eye(N),
        weights=patterns(rng, B, T, N, P),
        gamma=np.ones(B),
        eta=np.ones(B),
        local_steps=I,
        interval=P,
        reach=1 if wide else P,
    )
    return z.with_step_shares(sizes(1.0, 1.0, 0.3, 0.03, 1e-4), sizes(1.0, 1.0, 0.3, 0.03))


def shapes(rng: np.random.Generator, cells: int) -> Iterator[tuple[int, ...]]:
    """Random shapes (N, d, I, P, T), each with one complete window at least, mostly with two."""
    for cell in range(cells):
        P = int(rng.integers(1, 8))
        T = P * int(rng.integers(1 if cell % 8 == 7 else 2, 5)) + int(rng.integers(P))
        yield int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 7)), P, T


@lru_cache(maxsize=4)
def pool(cells: int = 45, seed: int = 31) -> tuple[FedAvgInstances, ...]:
    """Instances that remember their exact courses, 40 of each shape; a third non-convex, a fifth with a wider step."""
    rng = np.random.default_rng(seed)
    drawn = (
        draw(rng, EACH, shape, rippled=cell % 3 == 2, wide=cell % 5 == 4)
        for cell, shape in enumerate(shapes(rng, cells))
    )
    return (*plain(), *drawn)


def plain() -> Iterator[FedAvgInstances]:
    """Instances with one cause at work, in a steep or a flat direction: distance, pull, spread or noise."""
    for (N, I, P), windows in (
        ((2, 8, 4), 2),
        ((2, 1, 1), 8),
        ((2, 1, 1), 60),
        ((2, 1, 1), 400),
        ((3, 2, 1), 2),
        ((3, 1, 6), 8),
    ):
        T, B, one = windows * P, 12, np.eye(N)[0]
        cause, direction = np.arange(B) // 2, np.eye(2)[np.arange(B) % 2]
        slopes = np.zeros((B, N, 2))
        slopes[:, 0] = np.isin(cause, (1, 2, 3))[:, None] * direction
        weights = np.full((B, T, N), 1 / N)
        weights[np.isin(cause, (1, 5))] = one
        weights[cause == 2, : T // 2] = one
        z = FedAvgInstances(
            curvature=np.tile([1.0, 1e-3], (B, 1)),
            ripple=np.zeros((B, 2)),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            start=np.array([0.0, -1.0, -1.0, 0.0, 1.0, 1.0])[cause, None] * direction,
            noise=np.isin(cause, (0, 4, 5))[:, None] * direction,
            correlation=np.repeat(np.eye(N)[None], B, axis=0),
            weights=weights,
            gamma=np.ones(B),
            eta=np.ones(B),
            local_steps=I,
            interval=P,
            reach=P,
        )
        yield z.with_step_shares(np.full(B, 1.0), np.ones(B))
        yield z.with_step_shares(np.full(B, 1e-3), np.ones(B))


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


def instance_test(claim: Claim) -> InstanceTest | None:
    """How instances verify a claim of the paper; None for a claim without instances."""
    subject = claim.subject
    if isinstance(subject, StepOf):
        if setting_of(subject) is None:
            return None
        return SETTINGS if about_constants(claim) else InstanceTest(_draw_pool, relation_sides)
    if claim.paper != PAPER or not isinstance(subject, ResultForm):
        return None
    result = subject.result.key.partition("/")[2]
    if result in ON_PROCESSES:
        return trial_of(claim)
    if result in RESULTS:
        return InstanceTest(
            _draw_with_kinks, form_sides, family=FAMILY if result in (*LEAST_GRADIENT, WINDOW) else None
        )
    return ROUNDS if result == "corollary-4.8" else None
