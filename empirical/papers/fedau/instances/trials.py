"""The results of Wang & Ji (2024) on instances: both sides, and the populations that verify them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns
from fedbounds.empirical.falsification.instances.population import Population
from fedbounds.empirical.falsification.instances.readable import sides_of_form
from fedbounds.empirical.falsification.instances.sides import Sides, Trial
from fedbounds.empirical.papers.fedau.instances.branched import kinked_records, kinked_weighted
from fedbounds.empirical.papers.fedau.instances.intervals import IntervalInstances, draw_intervals
from fedbounds.empirical.papers.fedau.instances.kinked import draw_kinked
from fedbounds.empirical.papers.fedau.instances.measured import (
    CANCELED,
    ONE_STEP,
    Measured,
    always,
    ascent,
    ascent_of_mean,
    average,
    average_of_either,
    constant_weights,
    cut_interval,
    divergence,
    drift,
    error_of_weights,
    recorded,
)
from fedbounds.empirical.papers.fedau.instances.records import RecordedInstances, Records, draw_recorded
from fedbounds.empirical.papers.fedau.instances.relations import basis_of, relation_as_used, relation_sides
from fedbounds.empirical.papers.fedau.instances.weighted import ConstantWeightRuns, WeightedInstances, draw_weighted

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
    met = always({*ONE_STEP, "constant-weights", "h-bounded-below", "bounded-below", "bounded-gradient", "sure-Q"})
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
Left = Callable[[Any, str], Measured]
RESULTS: Mapping[str, tuple[Callable[[Claim, int], Iterable[Any]], Left]] = {
    "lemma-b.3.1": (one_round(uniform=False, kinks=False), divergence),
    "lemma-b.3.2": (one_round(uniform=False, kinks=True), drift),
    "lemma-b.3.3": (one_round(uniform=False, kinks=True), ascent),
    "lemma-b.5.1": (one_round(uniform=True, kinks=True), ascent_of_mean),
    "theorem-1": (runs, constant_weights),
    "theorem-b.4.1": (runs, constant_weights),
    "theorem-2": (small_runs, recorded),
    "theorem-2-option-1": (runs, average),
    "corollary-4": (small_runs, recorded),
    "corollary-4-option-1": (either, average_of_either),
    "appendix-a.3": (runs, average),
    "appendix-a.3-unequal": (runs, average),
    "theorem-3": (intervals, error_of_weights),
    "lemma-b.7.1": (intervals, error_of_weights),
    "lemma-b.6.1": (finite_cutoffs, cut_interval(0)),
    "lemma-b.6.1-variance": (finite_cutoffs, cut_interval(1)),
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
    return sides_of_form(claim, left, values, met, covered, (0.0, CANCELED), VECTORS, z.describe)


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


def trial(claim: Claim) -> Trial | None:
    """How instances verify a claim of the paper; None for a claim without instances."""
    subject = claim.subject
    if claim.paper != PAPER:
        return None
    if isinstance(subject, StepOf):
        implied = relation_as_used(subject)[1] is not None
        if claim.id.startswith(WITHOUT_GAP):
            return Trial(one_round(uniform=False, kinks=False), without_gap, implied)
        if basis_of(subject) is None or not subject.proof.id.startswith(ONE_ROUND):
            return None
        itself = subject.proof.id.startswith(f"{PAPER}/lemma-b.5.1")
        return Trial(one_round(uniform=itself, kinks=True), relation_sides, implied)
    if not isinstance(subject, ResultForm) or (subject.form.asymptotic and not subject.form.order_only):
        return None  # a limit is not an inequality at one T
    name = subject.result.key.partition("/")[2]
    family = FAMILY if name in EXTREMAL_RESULTS else None
    return Trial(RESULTS[name][0], form_sides, family=family) if name in RESULTS else None
