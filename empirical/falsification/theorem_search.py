r"""Runs that violate a stated theorem: exact moments of its algorithm on random quadratics against its bound.

Instances are quadratics of one to three dimensions with the exact constants of the standard concepts; step sizes are
at their caps or below. A ratio above one at admissible constants is a counterexample, with all its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.bounds.theory.theorem_file import TheoremFile
from fedbounds.empirical.algorithms import Algorithm, algorithm_from_spec
from fedbounds.empirical.participation import Full, Process, WithoutReplacement
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.simulation.moments import moments

KINDS = ("fedavg", "generalized-fedavg")
TRIALS, CLIMB = 250, 250
VIOLATED = 1 + 1e-9
ROUNDING = 1e-20  # of the left-hand side at the start and of the squared centers: what is smaller may be rounding
ROUNDS = (1, 2, 3, 10, 30, 100, 300, 300)
LONGEST = 1000  # rounds


@dataclass(frozen=True)
class Trial:
    """One instance in numbers, which a climb changes."""

    curvatures: np.ndarray  # (clients, dimension)
    centers: np.ndarray  # (clients, dimension)
    noise: float
    start: np.ndarray
    local_steps: int
    rounds: int
    participants: int
    steps: np.ndarray  # the share of each step size's cap, in (0, 1]
    uncapped: float  # a step size that nothing caps

    @property
    def problem(self) -> Quadratic:
        """The quadratic, diagonal."""
        hessians = self.curvatures[:, :, None] * np.eye(self.curvatures.shape[1])
        return Quadratic(hessians, self.centers, self.noise, self.start)

    def to_dict(self) -> dict[str, Any]:
        """Its numbers."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def search_violation(
    theorem: TheoremFile, form: Form, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> Finding:
    """The largest ratio of an exact left-hand side to the bound that was found, as a finding."""
    result = theorem.result
    if why := _no_search(theorem, form):
        return Finding("warning", "search", form.name, f"no run was searched for a violation: {why}")
    rng, best, most = np.random.default_rng(seed), None, -np.inf
    for count in range(TRIALS + CLIMB):
        trial = _draw(theorem, rng) if best is None or count < TRIALS else _nearby(best, rng)
        try:
            ratio = _ratio(result, form, theorem, trial)
        except FedboundsError as error:
            return Finding("warning", "search", form.name, f"no run was searched for a violation: {error}")
        if ratio > most:
            best, most = trial, ratio
        if progress is not None:
            progress(count + 1, TRIALS + CLIMB)
    if best is None or most == -np.inf:
        return Finding("warning", "search", form.name, "no instance met all conditions")
    noisy, local, sampled = _scope(theorem)
    kinds = [f"with{'' if noisy else 'out'} noise", "local steps" if local else "one local step"]
    kinds += ["sampled clients" if sampled else "all clients"]
    searched = f"{TRIALS + CLIMB} runs on quadratics ({', '.join(kinds)})"
    text = f"largest exact left-hand side over the bound in {searched}: {most:.4g}"
    if most > VIOLATED:
        return Finding("error", "search", form.name, f"violated: {text}", ("terms",), best.to_dict())
    return Finding("ok", "search", form.name, text)


def _no_search(theorem: TheoremFile, form: Form) -> str:
    """Why no run can be compared; "" if one can."""
    measure = form.measure or theorem.result.measure
    if theorem.algorithm not in KINDS:
        return f"give algorithm = {' or '.join(map(repr, KINDS))}" + (
            f"; {theorem.algorithm!r} has no exact moments here" if theorem.algorithm else ""
        )
    if form.order_only:
        return "the form hides constants in an O"
    if measure.aggregate not in ("minimum", "average", "last") or measure.over != "rounds":
        return f"runs measure minima, averages and last values over rounds, not {measure}"
    if not measure.of.startswith(("squared gradient norm of f", "function gap")):
        return f"runs measure gradient norms and function gaps, not {measure.of}"
    return ""


def _draw(theorem: TheoremFile, rng: np.random.Generator) -> Trial:
    said = {} if theorem.setting is None else theorem.setting.said
    N, d = int(rng.choice([1, 2, 3, 5])), int(rng.choice([1, 1, 2, 3]))
    curvatures = rng.uniform(0.05, 1, (N, d)) if rng.random() < 0.5 else np.ones((N, d))
    shared = rng.random() < 0.5 or "bounded" in said.get("heterogeneity", ())
    curvatures = (
        np.tile(curvatures[:1], (N, 1)) if shared or "gradient_divergence_sup" in _concepts(theorem) else curvatures
    )
    centers = rng.standard_normal((N, d)) * float(rng.choice([0, 0, 0, 0.1, 1, 10, 100]))
    if said.get("heterogeneity") == ("none",):
        centers, curvatures = np.tile(centers[:1], (N, 1)), np.tile(curvatures[:1], (N, 1))
    noisy, local, sampled = _scope(theorem)
    start = rng.standard_normal(d) * 10 ** rng.uniform(-2, 1)
    if rng.random() < 0.4:  # near the minimizer, where noise and drift are most of what is measured
        start = (curvatures * centers).sum(0) / curvatures.sum(0) + start * 10 ** rng.uniform(-3, 0)
    return Trial(
        curvatures,
        centers,
        float(rng.choice([0.0, 10 ** rng.uniform(-2, 1)])) if noisy else 0.0,
        start,
        int(rng.choice([1, 1, 2, 3, 8])) if local else 1,
        int(rng.choice(ROUNDS)),
        int(rng.integers(1, N + 1)) if sampled else N,
        rng.choice([1, 1, 0.5, 0.1], 2),
        float(10 ** rng.uniform(-1, 1.5)),
    )


def _scope(theorem: TheoremFile) -> tuple[bool, bool, bool]:
    """Whether runs have noise, local steps and sampled clients: what the setting allows, or a constant names."""
    said, named = {} if theorem.setting is None else theorem.setting.said, _concepts(theorem)
    noisy = set(said["noise"]) != {"none"} if "noise" in said else bool({"gradient_noise", "optimum_noise"} & named)
    sampled = "participating_clients" in named
    if "participation" in said:
        sampled = set(said["participation"]) != {"all"}
    return noisy, "local_steps" in named and said.get("local-steps") != ("one",), sampled


def _nearby(trial: Trial, rng: np.random.Generator) -> Trial:
    """A trial with other numbers near these, of the same shape."""
    size = 10 ** rng.uniform(-2, 0)
    turn = np.exp(size * rng.standard_normal(trial.curvatures.shape[1]))
    return Trial(
        np.clip(trial.curvatures * turn, 1e-3, 1),
        trial.centers * np.exp(size * rng.standard_normal(trial.centers.shape)),
        trial.noise * float(np.exp(size * rng.standard_normal())),
        trial.start * np.exp(size * rng.standard_normal()),
        trial.local_steps,
        int(np.clip(round(trial.rounds * np.exp(size * rng.standard_normal())), 1, LONGEST)),
        trial.participants,
        np.clip(trial.steps * np.exp(size * rng.standard_normal(2)), 1e-3, 1),
        trial.uncapped * float(np.exp(size * rng.standard_normal())),
    )


def _concepts(theorem: TheoremFile) -> set[str]:
    return {quantity.concept for quantity in theorem.result.notation.values()}


def _constants(trial: Trial, problem: Quadratic) -> dict[str, float]:
    """The exact constants of the standard concepts."""
    minimizer = problem.minimizer()
    at = client_gradients(problem, minimizer)
    exact = {name: float(c.value) for name, c in problem.constants().items() if isinstance(c, Constant)}
    noise = exact["gradient_noise"]
    found = exact | {
        "initial_squared_distance": float((problem.x0 - minimizer).square().sum()),
        "optimum_heterogeneity": float(at.square().sum(1).mean()) ** 0.5,
        "optimum_noise": (float(at.square().sum(1).mean()) + noise**2) ** 0.5,
        "local_steps": trial.local_steps,
        "rounds": trial.rounds,
        "iterations": trial.rounds * trial.local_steps,
        "clients": problem.clients,
        "participating_clients": trial.participants,
    }
    if problem.shared:
        found["mean_gradient_divergence"] = found["optimum_heterogeneity"]  # the same at every point
    return found


def _ratio(result: Result, form: Form, theorem: TheoremFile, trial: Trial) -> float:
    """Exact left-hand side over bound; -inf where a condition fails or a constant does not exist."""
    problem = trial.problem
    known = _constants(trial, problem)
    needed = {n: result.notation[n].concept for n in result.notation if n in form.needs - form.prescribes.keys()}
    steps = {name: c for name, c in needed.items() if c in ("local_step_size", "server_multiplier")}
    if missing := sorted(c for n, c in needed.items() if c not in known and n not in steps):
        if "divergence" in " ".join(missing):
            return -np.inf  # it does not exist for different Hessians
        raise FedboundsError(f"the constant {missing[0]} is not known of a quadratic")
    constants: dict[str, float] = {n: known[c] for n, c in needed.items() if n not in steps}
    capped = {str(condition.limits) for condition in form.conditions}
    for place, name in enumerate(sorted(steps, key=lambda name: (name in capped, name))):  # a cap may need the others
        constants[name] = _step(form, name, constants, float(trial.steps[place % 2]), trial.uncapped)
    at = evaluate(result, constants, form.name, strict=False)
    if not at.valid or not np.isfinite(at.value):
        return -np.inf
    sizes = {result.notation[n].concept: v for n, v in constants.items()} | {
        result.notation[n].concept: float(np.ravel(v)[0]) for n, v in at.prescribed.items()
    }
    run = moments(_algorithm(theorem, trial, sizes), problem, _process(trial), trial.rounds)
    measure = form.measure or result.measure
    gap = measure.of.startswith("function gap")
    values = run.objective_gap if gap else run.gradient_norm_squared
    left = {"minimum": values[: trial.rounds].min(), "average": values[: trial.rounds].mean(), "last": values[-1]}
    right = float(at.value)
    found = float(left[measure.aggregate])
    if found <= ROUNDING * (float(values[0]) + float((trial.centers**2).max())):
        return 0.0
    return found / right if right > 0 else np.inf


def _step(form: Form, name: str, constants: Mapping[str, float], share: float, uncapped: float) -> float:
    """A share of the largest admissible value of a step size at these constants; `uncapped` where nothing caps it."""
    caps = []
    for condition in form.conditions:
        if condition.limits is not None and str(condition.limits) == name and condition.extreme is not None:
            extreme = condition.extreme
            value = extreme.xreplace(
                {s: sp.Float(constants[str(s)]) for s in extreme.free_symbols if str(s) in constants}
            )
            if value.is_number and value.is_finite and condition.op == "==":
                return float(value)
            if condition.caps and value.is_number and value.is_finite:
                caps.append(float(value))
    return share * min(caps) if caps else uncapped


def _algorithm(theorem: TheoremFile, trial: Trial, sizes: Mapping[str, float]) -> Algorithm:
    spec: dict[str, Any] = {
        "kind": "generalized-fedavg" if "server_multiplier" in sizes else theorem.algorithm,
        "local_step_size": sizes["local_step_size"],
        "local_steps": trial.local_steps,
    }
    if spec["kind"] == "generalized-fedavg":
        spec["server_multiplier"] = sizes.get("server_multiplier", 1.0)
    return algorithm_from_spec(spec)


def _process(trial: Trial) -> Process:
    N = len(trial.centers)
    return Full(N) if trial.participants == N else WithoutReplacement(N, trial.participants)
