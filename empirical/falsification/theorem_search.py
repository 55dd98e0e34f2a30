r"""Runs that violate a stated theorem: exact left-hand sides of its algorithm on random quadratics against its bound.

Instances are quadratics of one to four dimensions with the exact constants of the standard concepts; step sizes are at
their caps or below. A ratio above one at admissible constants is a counterexample, with all its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.problem_class import axis
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.theorem_file import TheoremFile
from fedbounds.empirical.falsification.theorem_piecewise import (
    MANY_STEPS,
    MOST_MEASURED,
    STATIONARY_ROUNDS,
    PiecewiseClass,
    PiecewiseTrial,
    draw_drifting,
    draw_noisy,
    draw_piecewise,
    draw_slow,
    piecewise_nearby,
)
from fedbounds.empirical.falsification.theorem_runs import (
    FEDAVG_OF_ALL,
    INSTANCES,
    MOMENTS,
    STEP_SIZES,
    VIOLATED,
    Trial,
    describe_ratio,
    exact_constants,
    has_local_steps,
    is_random,
    left_hand_side,
    settle,
    simulated_kind,
    value_at_start,
    why_no_run,
)

TRIALS, CLIMB = 600, 400  # every second climb starts at the largest ratio of all, the others at that of each family
ENOUGH = 100  # a ratio after which no larger one is searched
ROUNDING = 1e-13  # of the measured value at the start and of the squared centers; of their root without randomness
ROUNDS = (1, 2, 3, 10, 30, 100, 300, 300)
SIMULATED_ROUNDS = (1, 2, 3, 5, 10, 30, 60)  # where no moments are known
LONGEST, LONGEST_SIMULATED = 1000, 60  # rounds that are run one by one
LONG_ROUNDS = (30, 10**2, 10**3, 10**4)
MOST_MODELS = 10**5  # that are measured

BUILT = 10**6  # clients that a person can build
SHARES = ("steps", "uncapped", "many")  # numbers of a trial in place of which its constants are shown
FREE = ("descent_share",)  # concepts of constants of a theorem that hold at every value below their cap
STRICT = 1e-9  # relative distance of a constant from a cap that it may not meet
SAMPLED = {"uniform-sampling", "with-replacement"}  # kinds of participation of quadratics
COMPRESSED = {"compressor_contraction", "contraction"}  # concepts of a compressor
UNEQUAL = {"arbitrary", "coins-unknown-rates", "coins-known-rates"}  # those where clients may have any rates
AVERAGES = ("average-participating", "fedavg", "generalized-fedavg")  # methods whose server averages who participates
QUADRATICS, PIECEWISE = "quadratics", "piecewise quadratics"
Instance = Trial | PiecewiseTrial
# concepts of what is finite, or known, only where the gradients of clients differ by a bounded amount
DIVERGENCES = ("gradient_divergence_sup", "mean_gradient_divergence", "heterogeneity_offset", "relative_dissimilarity")
OPTIONAL = {"kept": "initial_gradient_error", "proximal": "proximal_parameter"}  # numbers of a trial -> their concepts


class Scope(NamedTuple):
    """What runs of a theorem on quadratics may have."""

    noisy: bool
    local: bool
    sampled: bool
    simulated: bool  # each round is run
    most: int = max(MANY_STEPS)  # local steps of a run that starts where it stays
    replacement: bool = False  # clients are sampled with replacement
    compressed: bool = False  # updates are compressed


class Family(NamedTuple):
    """Instances of one kind."""

    name: str
    draw: Callable[[np.random.Generator], Instance]
    nearby: Callable[[Any, np.random.Generator], Instance]  # another of the same shape


def search_violation(
    theorem: TheoremFile, form: Form, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> Finding:
    """The largest ratio of an exact left-hand side to the bound that was found, as a finding."""
    if why := _no_search(theorem, form):
        return Finding("warning", "search", form.name, f"no run was searched for a violation: {why}")
    scope = _scope(theorem, form)
    families = _families(theorem, scope)
    if not families:
        return Finding("warning", "search", form.name, "no run was searched for a violation: gradients are bounded")
    rng, count = np.random.default_rng(seed), 0
    trials, climbs = (TRIALS // 2, CLIMB // 2) if scope.simulated else (TRIALS, CLIMB)  # simulated runs take longer
    most: dict[Family, tuple[float, Instance]] = {}  # the largest ratio of each, and its trial
    steps: set[int] = set()  # local steps of the runs that were compared
    built: tuple[float, Instance | None] = -np.inf, None  # the largest ratio with few clients
    for count in range(trials + climbs):
        drawn = families[count % len(families)]
        if climbing := count >= trials and bool(most):
            turn = families[count // 2 % len(families)]
            drawn = turn if count % 2 and turn in most else max(most, key=lambda family: most[family][0])
        trial = drawn.nearby(most[drawn][1], rng) if climbing else drawn.draw(rng)
        try:
            ratio, trial = _ratio(theorem, form, trial)
        except FedboundsError as error:
            families = [other for other in families if other.name != drawn.name]
            if not families:
                return Finding("warning", "search", form.name, f"no run was searched for a violation: {error}")
            continue
        if ratio > -np.inf:
            steps.add(trial.local_steps)
        if ratio > most.get(drawn, (-np.inf,))[0]:
            most[drawn] = ratio, trial
        if ratio > built[0] and _clients(trial) <= BUILT:
            built = ratio, trial
        if progress is not None:
            progress(count + 1, trials + climbs)
        if built[0] > ENOUGH:
            break
    if not most:
        return Finding("warning", "search", form.name, "no instance met all conditions")
    ratio, best = max(most.values(), key=lambda found: found[0])
    if built[1] is not None and built[0] > VIOLATED:
        ratio, best = built
    names = list(dict.fromkeys(one.name for one in families))
    local = f"{min(steps)} to {max(steps)} local steps" if scope.local else "one local step"
    kinds = [f"with{'' if scope.noisy else 'out'} noise", local, _who(theorem, scope)]
    kind = simulated_kind(theorem.algorithm)
    kinds += [f"as {kind}"] if theorem.algorithm != kind else []
    if scope.local and _shares_hessian(theorem) and PIECEWISE not in names:
        kinds += ["equal Hessians, so that the drift of local steps by heterogeneity is not tested"]
    if ratio > VIOLATED and _clients(best) > BUILT:
        kinds += [f"none with {BUILT} clients or fewer violates it"]
    searched = f"{count + 1} runs on {' and on '.join(names)} ({', '.join(kinds)})"
    found = describe_ratio(form, searched, ratio, _numbers_of(theorem, form, best))
    return replace(found, level="warning") if found.level == "ok" and _is_untested(theorem, scope) else found


def _who(theorem: TheoremFile, scope: Scope) -> str:
    """Which clients participate in the runs."""
    found = ["sampled clients" if scope.sampled else "all clients"]
    found += ["some that never participate"] if _may_be_absent(theorem) else []
    return " or ".join(found) + (
        ", so that partial participation is not tested" if _is_untested(theorem, scope) else ""
    )


def _is_untested(theorem: TheoremFile, scope: Scope) -> bool:
    """Whether the theorem is about partial participation, and all clients participate in all runs."""
    return not scope.sampled and not _may_be_absent(theorem) and _participation(theorem) != {"all"}


def _clients(trial: Instance) -> float:
    return len(trial.centers) if isinstance(trial, Trial) else trial.clients


def _numbers_of(theorem: TheoremFile, form: Form, trial: Instance) -> dict[str, Any]:
    """The constants and step sizes of a run by symbol, and the numbers of its instance."""
    concepts = {"", *_concepts(theorem)}
    shown = {name: value for name, value in trial.to_dict().items() if OPTIONAL.get(name, "") in concepts}
    found = _evaluate_trial(theorem.result, form, trial)
    assert found is not None  # its ratio is known
    notation, known = theorem.result.notation, found[1]
    symbols = {name: known[notation[name].concept] for name in notation if name in form.needs | form.prescribes.keys()}
    constants = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in symbols.items()}
    return constants | {name: value for name, value in shown.items() if name not in SHARES}


def _families(theorem: TheoremFile, scope: Scope) -> list[Family]:
    """Those whose instances the theorem covers."""
    said, found = {} if theorem.setting is None else theorem.setting.said, []
    alike = _shares_hessian(theorem) or said.get("heterogeneity") == ("none",)
    drifts = scope.local and not (scope.simulated or scope.replacement or alike)
    if not (bounded := said.get("gradients") == ("bounded",)):
        draws: list[Callable[[np.random.Generator], Trial]] = [lambda rng: _sample(_draw(theorem, scope, rng), scope)]
        draws += [lambda rng: _draw_drifting(scope, rng)] if drifts else []
        for sampled in [False] * scope.noisy + [True] * scope.sampled:
            draws += [lambda rng, of=sampled: _sample(_draw_stationary(theorem, scope, rng, of), scope)]
        draws += [lambda rng: _draw_long(scope, rng)]
        found = [Family(QUADRATICS, draw, lambda one, rng: _nearby(one, scope, rng)) for draw in draws]
    if simulated_kind(theorem.algorithm) in MOMENTS and "all" in _participation(theorem):
        usual = "strongly-convex" if "strong_convexity" in _concepts(theorem) else "convex"
        least = axis("objective").with_special_cases(said.get("objective", (usual,)))[-1]
        same = said.get("heterogeneity") == ("none",)
        of = PiecewiseClass(least, same, bounded, scope.local, scope.noisy, scope.most, _may_be_absent(theorem))
        found += [
            Family(PIECEWISE, lambda rng, draw=draw: draw(of, rng), lambda one, rng: piecewise_nearby(one, of, rng))
            for draw in (
                draw_piecewise,
                draw_slow,
                *([draw_drifting] if scope.local or of.absent else []),
                *([draw_noisy] if scope.local and scope.noisy else []),
            )
        ]
    return found


def _participation(theorem: TheoremFile) -> set[str]:
    """The kinds of participation that the theorem covers."""
    said = {} if theorem.setting is None else theorem.setting.said
    return set(axis("participation").with_special_cases(said.get("participation", ("all",))))


def _may_be_absent(theorem: TheoremFile) -> bool:
    """Whether clients may practically never participate in a method that averages those that do."""
    kinds = UNEQUAL if theorem.algorithm in ("average-participating", "fedavg") else {"arbitrary"}
    return theorem.algorithm in AVERAGES and bool(kinds & _participation(theorem))


def _no_search(theorem: TheoremFile, form: Form) -> str:
    """Why no run can be compared; "" if one can."""
    measure = form.measure or theorem.result.measure
    if form.order_only:
        return "the form hides constants in an O"
    if measure.lower:
        return "it is a lower bound of the worst case, which single runs may go below"
    kind, notation = simulated_kind(theorem.algorithm), theorem.result.notation
    has_step = "local_step_size" in {notation[name].concept for name in form.needs | form.prescribes.keys()}
    if kind in MOMENTS and not has_step:
        return "no constant of the form is a local step size, and runs here have one that stays the same in all rounds"
    return why_no_run(kind, measure)


def _shares_hessian(theorem: TheoremFile) -> bool:
    """Whether clients can differ only in their linear part: a finite divergence of quadratics needs equal Hessians."""
    said = {} if theorem.setting is None else theorem.setting.said
    return "bounded" in said.get("heterogeneity", ()) or bool({*DIVERGENCES} & _concepts(theorem))


def _draw(theorem: TheoremFile, scope: Scope, rng: np.random.Generator) -> Trial:
    measure, said = theorem.result.measure, {} if theorem.setting is None else theorem.setting.said
    N, d = int(rng.choice([1, 2, 3, 5])), int(rng.choice([1, 1, 2, 3]))
    if scope.compressed:
        d = int(rng.choice([2, 3, 4]))
    hardest = scope.compressed and rng.random() < 0.3  # as much compression as there is, for long, at the largest step
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
    if scope.local and not scope.simulated and measure.over == "rounds" and rng.random() < 0.2:
        local_steps = int(rng.choice(MANY_STEPS))
    noisy = scope.noisy and (local_steps == 1 or measure.over != "iterations")
    return Trial(
        curvatures,
        centers,
        float(rng.choice([0.0, 10 ** rng.uniform(-2, 1)])) if noisy else 0.0,
        start,
        local_steps,
        LONGEST_SIMULATED if hardest else int(rng.choice(SIMULATED_ROUNDS if scope.simulated else ROUNDS)),
        int(rng.integers(1, N + 1)) if scope.sampled else N,
        np.ones(3) if hardest else rng.choice([1, 1, 0.5, 0.1], 3),
        float(10 ** rng.uniform(-1, 1.5)),
        1 if hardest else int(rng.integers(1, d + 1)),
        float(10 ** rng.uniform(-2, 1)),
    )


def _sample(trial: Trial, scope: Scope) -> Trial:
    """The trial with clients sampled as in the theorem.

    Several clients drawn with replacement have no noise: theorems do not say whether that of a client drawn twice is
    the same.
    """
    if not (scope.sampled and scope.replacement):
        return trial
    return replace(trial, replacement=True, noise=trial.noise if trial.participants == 1 else 0.0)


def _draw_long(scope: Scope, rng: np.random.Generator) -> Trial:
    """A long run without noise of equal clients, of which a step size or curvatures may be small."""
    if scope.compressed:  # the largest compression: one entry of many, all of which are alike
        d, rounds = int(rng.choice([4, 20, 50])), int(rng.choice([LONGEST_SIMULATED] * 5 + [400]))
        return Trial(np.ones((1, d)), np.zeros((1, d)), 0.0, np.ones(d), 1, rounds, 1, np.ones(3), 1.0)
    N, d = int(rng.choice([1, 2, 3] if scope.simulated else [1, 2, 3, 1000])), int(rng.choice([1, 2]))
    curvatures = np.append(1.0, 10 ** rng.uniform(-6, 0, d - 1))
    local_steps = min(int(rng.choice([1, 2, 3, 8, *MANY_STEPS])), scope.most) if scope.local else 1
    measured = local_steps if scope.most == MOST_MEASURED else 1  # models of a round
    rounds = LONGEST_SIMULATED if scope.simulated else min(int(rng.choice(LONG_ROUNDS)), MOST_MODELS // measured)
    return Trial(
        np.tile(curvatures, (N, 1)),
        np.zeros((N, d)),
        0.0,
        np.ones(1) if d == 1 else np.array([float(rng.integers(2)), 1.0]),
        local_steps,
        rounds,
        N,
        np.ones(3),
        float(10 ** rng.uniform(-6, 1)),
    )


def _draw_drifting(scope: Scope, rng: np.random.Generator) -> Trial:
    """A run of which nothing but the drift of local steps is measured: it starts at the fixed point of its rounds."""
    N, d = int(rng.choice([2, 2, 3, 5])), int(rng.choice([1, 1, 2]))
    curvatures = rng.uniform(0.05, 1, (N, d)) if rng.random() < 0.5 else 10 ** rng.uniform(-2, 0, (N, d))
    curvatures[rng.integers(N)] = 1.0
    return Trial(
        curvatures,
        rng.standard_normal((N, d)),
        0.0,
        np.zeros(d),
        min(int(rng.choice([2, 3, 8, *MANY_STEPS])), scope.most),
        int(rng.choice(STATIONARY_ROUNDS)),
        N,
        rng.choice([1, 1, 0.5, 0.1], 3),
        float(10 ** rng.uniform(-1, 1.5)),
        stationary=True,
    )


def _draw_stationary(theorem: TheoremFile, scope: Scope, rng: np.random.Generator, sampled: bool) -> Trial:
    """A run of which nothing but noise, or sampling, is measured: its models stay near the minimizer, in mean square.

    The average of such models comes nearer to it, so that runs of a theorem about them start at the minimizer.
    """
    measure, said = theorem.result.measure, {} if theorem.setting is None else theorem.setting.said
    N, average = (
        int(rng.choice([2, 8, 1000, 1000] if sampled else [1, 2, 8, 32, 1000])),
        measure.aggregate == "average iterate",
    )
    sampled = sampled and said.get("heterogeneity") != ("none",)
    noisy = scope.noisy and not (sampled and rng.random() < 0.7)
    spread = float(10 ** rng.uniform(-1, 2)) if sampled and not (noisy and rng.random() < 0.5) else 0.0
    return Trial(
        np.full((N, 1), float(rng.choice([1, 1, 10 ** rng.uniform(-2, 0)]))),
        spread * rng.standard_normal((N, 1)),
        float(10 ** rng.uniform(-1, 1)) if noisy else 0.0,
        np.zeros(1),
        int(rng.choice([1, 1, 1, 2, 8, *MANY_STEPS])) if scope.local and measure.over != "iterations" else 1,
        int(rng.choice(ROUNDS if average else STATIONARY_ROUNDS)),
        max(int(rng.choice([1, N // 2, N - 1])), 1) if sampled or (scope.sampled and rng.random() < 0.5) else N,
        rng.choice([1, 0.1, 0.01, 0.001], 3),
        float(10 ** rng.uniform(-1, 3)),
        stationary=not average,
    )


def _scope(theorem: TheoremFile, form: Form) -> Scope:
    """What the setting allows, or a constant names, as far as left-hand sides are known."""
    said, named = {} if theorem.setting is None else theorem.setting.said, _concepts(theorem)
    measure, kind = form.measure or theorem.result.measure, simulated_kind(theorem.algorithm)
    noisy = _may_be_noisy(theorem)
    sampled = "participating_clients" in named
    if "participation" in said:
        sampled = bool(SAMPLED & _participation(theorem))
    local = "local_steps" in named and said.get("local-steps") != ("one",) and has_local_steps(kind)
    local = local and theorem.algorithm not in INSTANCES
    if kind not in MOMENTS:
        return Scope(False, local, False, True, compressed=bool(COMPRESSED & named))
    sampled = sampled and theorem.algorithm not in FEDAVG_OF_ALL
    sampled = sampled and measure.over == "rounds" and measure.aggregate != "average iterate"
    most = MOST_MEASURED if measure.over == "iterations" else max(MANY_STEPS)
    return Scope(noisy, local, sampled, False, most, "uniform-sampling" not in _participation(theorem))


def _may_be_noisy(theorem: TheoremFile) -> bool:
    said = {} if theorem.setting is None else theorem.setting.said
    if "noise" in said:
        return set(said["noise"]) != {"none"}
    return bool({"gradient_noise", "optimum_noise"} & _concepts(theorem))


def _nearby(trial: Trial, scope: Scope, rng: np.random.Generator) -> Trial:
    """A trial with other numbers near these, of the same shape."""
    size = 10 ** rng.uniform(-2, 0)
    turn = np.exp(size * rng.standard_normal(trial.curvatures.shape[1]))
    longest = max(STATIONARY_ROUNDS) if trial.stationary else max(LONGEST, trial.rounds)
    longest = LONGEST_SIMULATED if scope.simulated else longest
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
        trial.stationary,
        trial.replacement,
    )


def _concepts(theorem: TheoremFile) -> set[str]:
    return {quantity.concept for quantity in theorem.result.notation.values()}


def _ratio(theorem: TheoremFile, form: Form, trial: Instance) -> tuple[float, Instance]:
    """Exact left-hand side over bound, and the trial from where it starts.

    The ratio is -inf where a condition fails or a constant does not exist.
    """
    bounded = isinstance(trial, Trial) or trial.is_bounded_below
    found = _evaluate_trial(theorem.result, form, trial) if bounded else None
    if found is None:
        return -np.inf, trial
    right, sizes = found
    measure, kind = form.measure or theorem.result.measure, simulated_kind(theorem.algorithm)
    aimed: Instance | None = trial
    if isinstance(trial, Trial):
        aimed = settle(trial, sizes) if trial.stationary else trial
    elif trial.stationary or trial.leaves:
        step, multiplier = _fedavg_steps(sizes, measure, trial)
        aimed = trial.settle(step, multiplier) if trial.stationary else trial.aim(step, multiplier)
    if aimed is not trial:
        found = None if aimed is None else _evaluate_trial(theorem.result, form, aimed)
        if aimed is None or found is None:
            return -np.inf, trial
        trial, (right, sizes) = aimed, found
    if isinstance(trial, Trial):
        left = left_hand_side(measure, kind, trial, sizes)
        scale = value_at_start(measure, trial) + float((trial.centers**2).max())
        if left < np.inf:
            root = max(left**0.5 - ROUNDING * scale**0.5, 0.0)
            left = max(left - ROUNDING * scale, 0.0) if is_random(trial) else root**2
    else:
        step, multiplier = _fedavg_steps(sizes, measure, trial)
        if trial.stationary and not trial.is_trapped(step, multiplier):
            return -np.inf, trial  # step sizes that depend on the start
        left = trial.left_hand_side(measure, step, multiplier)
    return 0.0 if left == 0 else left / right if right > 0 else np.inf, trial


def _fedavg_steps(sizes: Mapping[str, Any], measure: Measure, trial: Instance) -> tuple[float, float]:
    """The local step size, and the factor of the mean update."""
    if "local_step_size" not in sizes:
        raise FedboundsError("runs need a local step size: no constant of the theorem is local_step_size")
    multiplier = float(sizes.get("server_multiplier", 1.0))
    if measure.over == "iterations" and trial.local_steps > 1 and multiplier != 1:
        raise FedboundsError("the models at the iterations within a round are not known where the server takes steps")
    return float(sizes["local_step_size"]), multiplier


def _evaluate_trial(result: Result, form: Form, trial: Instance) -> tuple[float, dict[str, Any]] | None:
    """The bound, and the constants by concept; None where a condition fails or a constant does not exist."""
    known = exact_constants(trial, trial.problem) if isinstance(trial, Trial) else trial.constants()
    if "mean_gradient_divergence" in known:
        known = known | _dissimilarity(float(known["mean_gradient_divergence"]), result)
    needed = {n: result.notation[n].concept for n in result.notation if n in form.needs - form.prescribes.keys()}
    steps = {name: c for name, c in needed.items() if c in (*STEP_SIZES, *FREE)}
    if missing := sorted(n for n, c in needed.items() if c not in known and n not in steps):
        if all(needed[n] in DIVERGENCES for n in missing):
            return None  # it does not exist for different Hessians
        raise FedboundsError(_what_is_missing(missing[0], needed[missing[0]], known))
    constants: dict[str, Any] = {n: known[c] for n, c in needed.items() if n not in steps}
    if not all(np.isfinite(value).all() for value in constants.values()):
        return None
    for place, name in enumerate(sorted(steps, key=lambda name: (_depth(form, name, ()), name))):
        constants[name] = step_size_at(form, name, constants, float(trial.steps[place % 3]), trial.uncapped)
    at = evaluate(result, constants, form.name, strict=False)
    if not at.valid or not np.isfinite(at.value):
        return None
    return float(at.value), known | sizes_by_concept(constants, at)


def _dissimilarity(divergence: float, result: Result) -> dict[str, float]:
    """Offset and factor of (1/N) sum_n |grad F_n|^2 <= offset^2 + factor^2 |grad f|^2, whose left side is the variance
    of the gradients over the clients and |grad f|^2.

    Without an offset there is a factor only for equal clients.
    """
    alone = all(quantity.concept != "heterogeneity_offset" for quantity in result.notation.values())
    factor = np.inf if alone and divergence else 1.0
    return {"heterogeneity_offset": divergence, "relative_dissimilarity": factor}


def _what_is_missing(name: str, concept: str, known: Mapping[str, Any]) -> str:
    """What to change where no test problem has a constant."""
    has = f"{name} has no concept" if name == concept else f"the concept {concept} of {name} is not one of these"
    return (
        f"the search computes a constant of its quadratics by its concept in [symbols], and {has}; give {name} the "
        f"one that it means, of {', '.join(sorted({*known, *STEP_SIZES}))}; if none does, there is no search"
    )


def _depth(form: Form, name: str, above: tuple[str, ...]) -> int:
    """How many step sizes must be known before this one: its caps may depend on others."""
    caps = [c for c in form.conditions if str(c.limits) == name and c.extreme is not None]
    others = {str(s) for c in caps if c.extreme is not None for s in c.extreme.free_symbols} - {name, *above}
    return bool(caps) + max((_depth(form, other, (*above, name)) for other in others), default=0)


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
                caps.append(float(value) * (1 - STRICT * (condition.op == "<")))
    return share * min(caps) if caps else uncapped
