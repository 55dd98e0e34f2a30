r"""Runs that violate a stated theorem: exact left-hand sides of its algorithm on random quadratics against its bound.

Instances are quadratics of one to four dimensions with the exact constants of the standard concepts; step sizes are at
their caps or below. A ratio above one at admissible constants is a counterexample, with all its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.theorem_file import TheoremFile
from fedbounds.empirical.falsification.theorem_runs import (
    INSTANCES,
    MOMENTS,
    STEP_SIZES,
    Trial,
    exact_constants,
    has_local_steps,
    is_random,
    left_hand_side,
    only_deterministic,
    simulated_kind,
    value_at_start,
    why_no_run,
)

TRIALS, CLIMB = 250, 250
VIOLATED, ENOUGH = 1 + 1e-9, 100  # ratios that are violations, and after which no larger one is searched
ROUNDING = 1e-13  # of the measured value at the start and of the squared centers; of their root without randomness
ROUNDS = (1, 2, 3, 10, 30, 100, 300, 300)
SIMULATED_ROUNDS = (1, 2, 3, 5, 10, 30, 60)  # where no moments are known
LONGEST, LONGEST_SIMULATED = 1000, 60  # rounds

OPTIONAL = {"kept": "initial_gradient_error", "proximal": "proximal_parameter"}  # numbers of a trial -> their concepts


class Scope(NamedTuple):
    """What runs of a theorem may have."""

    noisy: bool
    local: bool
    sampled: bool
    simulated: bool  # each round is run


def search_violation(
    theorem: TheoremFile, form: Form, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> Finding:
    """The largest ratio of an exact left-hand side to the bound that was found, as a finding."""
    result = theorem.result
    if why := _no_search(theorem, form):
        return Finding("warning", "search", form.name, f"no run was searched for a violation: {why}")
    rng, best, most, scope = np.random.default_rng(seed), None, -np.inf, _scope(theorem, form)
    count = 0
    for count in range(TRIALS + CLIMB):
        trial = _draw(theorem, scope, rng) if best is None or count < TRIALS else _nearby(best, scope, rng)
        try:
            ratio = _ratio(result, form, theorem, trial)
        except FedboundsError as error:
            return Finding("warning", "search", form.name, f"no run was searched for a violation: {error}")
        if ratio > most:
            best, most = trial, ratio
        if progress is not None:
            progress(count + 1, TRIALS + CLIMB)
        if most > ENOUGH:
            break
    if best is None or most == -np.inf:
        return Finding("warning", "search", form.name, "no instance met all conditions")
    noisy, local, sampled, _ = scope
    kinds = [f"with{'' if noisy else 'out'} noise", "local steps" if local else "one local step"]
    kinds += ["sampled clients" if sampled else "all clients"]
    kinds += [f"as {simulated_kind(theorem.algorithm)}"] if theorem.algorithm in INSTANCES else []
    if local and _shares_hessian(theorem):
        kinds += ["equal Hessians, so that the drift of local steps by heterogeneity is not tested"]
    searched = f"{count + 1} runs on quadratics ({', '.join(kinds)})"
    text = f"largest exact left-hand side over the bound in {searched}: {most:.4g}"
    if most > VIOLATED:
        concepts = {"", *_concepts(theorem)}
        at = {name: value for name, value in best.to_dict().items() if OPTIONAL.get(name, "") in concepts}
        return Finding("error", "search", form.name, f"violated: {text}", ("terms",), at)
    return Finding("ok", "search", form.name, text)


def _no_search(theorem: TheoremFile, form: Form) -> str:
    """Why no run can be compared; "" if one can."""
    measure = form.measure or theorem.result.measure
    if form.order_only:
        return "the form hides constants in an O"
    if measure.lower:
        return "it is a lower bound of the worst case, which single runs may go below"
    return why_no_run(simulated_kind(theorem.algorithm), measure)


def _shares_hessian(theorem: TheoremFile) -> bool:
    """Whether clients can differ only in their linear part: a finite divergence of quadratics needs equal Hessians."""
    said = {} if theorem.setting is None else theorem.setting.said
    return "bounded" in said.get("heterogeneity", ()) or bool(
        {"gradient_divergence_sup", "mean_gradient_divergence"} & _concepts(theorem)
    )


def _draw(theorem: TheoremFile, scope: Scope, rng: np.random.Generator) -> Trial:
    said = {} if theorem.setting is None else theorem.setting.said
    N, d = int(rng.choice([1, 2, 3, 5])), int(rng.choice([1, 1, 2, 3]))
    if "compressor_contraction" in _concepts(theorem) or "contraction" in _concepts(theorem):
        d = int(rng.choice([2, 3, 4]))
    kinds = [rng.uniform(0.05, 1, (N, d)), np.ones((N, d)), 10 ** rng.uniform(-4, 0, (N, d))]
    curvatures = kinds[rng.choice(3, p=[0.4, 0.4, 0.2])]
    if rng.random() < 0.5 or _shares_hessian(theorem):
        curvatures = np.tile(curvatures[:1], (N, 1))
    centers = rng.standard_normal((N, d)) * float(rng.choice([0, 0, 0, 0.1, 1, 10, 100]))
    if said.get("heterogeneity") == ("none",):
        centers, curvatures = np.tile(centers[:1], (N, 1)), np.tile(curvatures[:1], (N, 1))
    start = rng.standard_normal(d) * 10 ** rng.uniform(-2, 1)
    if rng.random() < 0.4:  # near the minimizer, where noise and drift are most of what is measured
        start = (curvatures * centers).sum(0) / curvatures.sum(0) + start * 10 ** rng.uniform(-3, 0)
    local_steps = int(rng.choice([1, 1, 2, 3, 8])) if scope.local else 1
    noisy = scope.noisy and (local_steps == 1 or theorem.result.measure.over != "iterations")
    return Trial(
        curvatures,
        centers,
        float(rng.choice([0.0, 10 ** rng.uniform(-2, 1)])) if noisy else 0.0,
        start,
        local_steps,
        int(rng.choice(SIMULATED_ROUNDS if scope.simulated else ROUNDS)),
        int(rng.integers(1, N + 1)) if scope.sampled else N,
        rng.choice([1, 1, 0.5, 0.1], 3),
        float(10 ** rng.uniform(-1, 1.5)),
        int(rng.integers(1, d + 1)),
        float(10 ** rng.uniform(-2, 1)),
    )


def _scope(theorem: TheoremFile, form: Form) -> Scope:
    """What the setting allows, or a constant names, as far as left-hand sides are known."""
    said, named = {} if theorem.setting is None else theorem.setting.said, _concepts(theorem)
    measure, kind = form.measure or theorem.result.measure, simulated_kind(theorem.algorithm)
    noisy = set(said["noise"]) != {"none"} if "noise" in said else bool({"gradient_noise", "optimum_noise"} & named)
    sampled = "participating_clients" in named
    if "participation" in said:
        sampled = set(said["participation"]) != {"all"}
    local = "local_steps" in named and said.get("local-steps") != ("one",) and has_local_steps(kind)
    local = local and theorem.algorithm not in INSTANCES
    if only_deterministic(kind, measure):
        return Scope(False, local, False, kind not in MOMENTS)
    return Scope(noisy, local, sampled and measure.over == "rounds", False)


def _nearby(trial: Trial, scope: Scope, rng: np.random.Generator) -> Trial:
    """A trial with other numbers near these, of the same shape."""
    size = 10 ** rng.uniform(-2, 0)
    turn = np.exp(size * rng.standard_normal(trial.curvatures.shape[1]))
    longest = LONGEST_SIMULATED if scope.simulated else LONGEST
    return Trial(
        np.clip(trial.curvatures * turn, 1e-6, 1),
        trial.centers * np.exp(size * rng.standard_normal(trial.centers.shape)),
        trial.noise * float(np.exp(size * rng.standard_normal())),
        trial.start * np.exp(size * rng.standard_normal()),
        trial.local_steps,
        int(np.clip(round(trial.rounds * np.exp(size * rng.standard_normal())), 1, longest)),
        trial.participants,
        np.clip(trial.steps * np.exp(size * rng.standard_normal(3)), 1e-3, 1),
        trial.uncapped * float(np.exp(size * rng.standard_normal())),
        trial.kept,
        trial.proximal * float(np.exp(size * rng.standard_normal())),
    )


def _concepts(theorem: TheoremFile) -> set[str]:
    return {quantity.concept for quantity in theorem.result.notation.values()}


def _ratio(result: Result, form: Form, theorem: TheoremFile, trial: Trial) -> float:
    """Exact left-hand side over bound; -inf where a condition fails or a constant does not exist."""
    problem = trial.problem
    known = exact_constants(trial, problem)
    needed = {n: result.notation[n].concept for n in result.notation if n in form.needs - form.prescribes.keys()}
    steps = {name: c for name, c in needed.items() if c in STEP_SIZES}
    if missing := sorted(c for n, c in needed.items() if c not in known and n not in steps):
        if "divergence" in " ".join(missing):
            return -np.inf  # it does not exist for different Hessians
        raise FedboundsError(f"the constant {missing[0]} is not known of a quadratic")
    constants: dict[str, Any] = {n: known[c] for n, c in needed.items() if n not in steps}
    capped = {str(condition.limits) for condition in form.conditions}
    for place, name in enumerate(sorted(steps, key=lambda name: (name in capped, name))):  # a cap may need the others
        constants[name] = step_size_at(form, name, constants, float(trial.steps[place % 3]), trial.uncapped)
    at = evaluate(result, constants, form.name, strict=False)
    if not at.valid or not np.isfinite(at.value):
        return -np.inf
    sizes = known | sizes_by_concept(constants, at)
    measure = form.measure or result.measure
    right = float(at.value)
    found = left_hand_side(measure, simulated_kind(theorem.algorithm), trial, sizes)
    scale = value_at_start(measure, trial) + float((trial.centers**2).max())
    if found < np.inf:
        root = max(found**0.5 - ROUNDING * scale**0.5, 0.0)
        found = max(found - ROUNDING * scale, 0.0) if is_random(trial) else root**2
    return 0.0 if found == 0 else found / right if right > 0 else np.inf


def sizes_by_concept(constants: Mapping[str, Any], at: Evaluation) -> dict[str, Any]:
    """The constants of an evaluation, and the step sizes that it prescribes, by concept."""
    prescribed = {name: float(np.ravel(value)[0]) for name, value in at.prescribed.items()}
    return {at.result.notation[name].concept: value for name, value in {**constants, **prescribed}.items()}


def step_size_at(form: Form, name: str, constants: Mapping[str, Any], share: float, uncapped: float) -> float:
    """A share of the largest admissible value of a step size at these constants; `uncapped` where nothing caps it."""
    caps = []
    for condition in form.conditions:
        if condition.limits is not None and str(condition.limits) == name and condition.extreme is not None:
            extreme = condition.extreme
            value = extreme.xreplace(
                {
                    s: sp.Float(constants[str(s)])
                    for s in extreme.free_symbols
                    if np.ndim(constants.get(str(s), [0])) == 0
                }
            )
            if value.is_number and value.is_finite and condition.op == "==":
                return float(value)
            if condition.caps and value.is_number and value.is_finite:
                caps.append(float(value))
    return share * min(caps) if caps else uncapped
