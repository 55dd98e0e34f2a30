r"""Constants, assumptions and step sizes of a run, for Theorems 1 and 2 of Li et al. (2024).

They bound the average of all N clients in every iteration, which only `fedmrn-analysis` computes. For its masks the G
of a form is the one for which they are made: a theorem with $a=2\eta SG$ speaks of a run with amplitude a and *this* G,
and covers it if no gradient is longer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.papers.fedmrn import assumptions
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison import measured_constants, paper_runs
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN, AnalyzedMoments, analyzed_moments, cohort_size
from fedbounds.empirical.problems import Displaced, Problem, Quadratic, Sloped
from fedbounds.empirical.simulation.trace import Trace

GAP = "function gap F - F*"
AGREE = 1e-9  # relative difference up to which steps and amplitudes are as prescribed
SIGNED = (assumptions.FIXED_MASKS.name, assumptions.ROUND_MASKS.name, assumptions.ANY_MASKS.name)
MOMENTS = 10**8  # at most so many numbers are computed by exact moments: iterations x clients x d^3
NO_MASKS = (
    "signed masks have S(0) != 0, so that no q satisfies Assumption 4: take a form for masks, as repaired:R1 of "
    "Theorem 1, repaired:R2 or explicit:any-amplitude of Theorem 2"
)
REFUSED = (
    "{kind}: its participants alone compute, and the theorems bound the average over all N clients in every iteration; "
    "run fedmrn-analysis, whose rounds are iterations"
)


class FedMRNPaper(paper_runs.PaperRuns):
    """The analyzed algorithm with K of N clients, drawn without replacement."""

    authors = "Li et al. 2024"
    over = ("iterations",)

    def steps(self, setting: RunSetting, interval: int | None) -> paper_runs.PrescribedSteps:
        self.check_no_interval(interval)
        cohort_size(setting.process)
        return paper_runs.PrescribedSteps(1, {"eta": analyzed(setting.algorithm).local_step_size})

    def check_ahead(
        self, setting: RunSetting, form: Form, result: Result, interval: int | None, given: frozenset[str]
    ) -> None:
        super().check_ahead(setting, form, result, interval, given)
        algorithm = analyzed(setting.algorithm)
        _check_steps(algorithm, form, result, paper_runs.run_constants(setting), given)
        constants, lacking = of_algorithm(algorithm, setting.problem), paper_runs.needed_constants(form) - given
        for name in sorted(lacking & {"a", "q"}):
            none = constants[result.notation[name].concept]
            if isinstance(none, NoConstant):
                raise FedboundsError(f"{result.key} [{form.name}] needs {name}, which is not known: {none.why}")

    def collect_facts(self, compared: paper_runs.ComparedRun) -> paper_runs.RunFacts:
        setting, form, result, horizons = compared.setting, compared.form, compared.result, compared.horizons
        algorithm, problem = analyzed(setting.algorithm), setting.problem
        falling = _has_falling_steps(form, result)
        stated = paper_runs.run_constants(setting)
        if setting.logged and algorithm.step_shift is not None:
            mu = 2 / (algorithm.local_step_size * (algorithm.step_shift + 1))
            stated["strong_convexity"] = Constant(mu, "given", "by the steps of the run, 2/(mu (gamma + 1))")
        _check_steps(algorithm, form, result, stated, compared.given)
        measured, notes = compared.measured_constants(stated, lambda: measure_along_run(setting))
        constants: paper_runs.Constants = stated | measured | of_algorithm(algorithm, problem)
        # Theorem 1 counts from its first model w_1, Theorem 2 from w_0
        constants["iterations"] = Constant(horizons + float(falling), "given", "of the run")
        constants["participating_clients"] = Constant(float(cohort_size(setting.process)), "exact", "of the process")
        constants["initial_squared_distance"] = _initial_distance(problem)
        gradients = gradient_bound(setting, form, constants, falling)
        constants["stochastic_gradient_bound"] = gradients.bound
        if setting.logged:  # what a log does not hold is left to the user
            left = ("initial_squared_distance", "stochastic_gradient_bound")
            constants = {n: c for n, c in constants.items() if n not in left or isinstance(c, Constant)}
        found = (
            paper_runs.problem_assumptions(setting, constants) | gradients.found | _mask_assumptions(algorithm, form)
        )
        found |= {
            assumptions.SAMPLING.name: True,  # or it would have been refused
            assumptions.INDEPENDENT_MASKS.name: True,
            assumptions.STRONGLY_CONVEX.name: isinstance(stated.get("strong_convexity"), Constant),
        }
        for name, implied in (
            (assumptions.QUADRATIC_GROWTH, "smooth"),
            (assumptions.FIRST_ERROR, assumptions.RELATIVE_ERROR.name),
        ):
            if implied in found:
                found[name.name] = found[implied]  # a second moment bounds a first one; no masks satisfy either
        notes += gradients.notes
        notes += ("the rounds of the run are iterations; synchronized after every S of them",)
        if falling:
            notes += ("after n iterations the model is w_(n+1), as Theorem 1 begins with w_1",)
        if isinstance(setting.run, AnalyzedMoments) and setting.run.moments.label == "approximate":
            notes += (
                "updates may leave their bounds, and masks be biased then; these moments are of masks that are not",
            )
            found = {name: holds for name, holds in found.items() if name not in SIGNED}
        clipped = _clipped_updates(setting)
        if clipped:
            notes += (f"{clipped} updates left their bounds: their masks were biased",)
            found |= dict.fromkeys(SIGNED, False)
        return compared.facts(constants, found, notes)

    def prescribe_algorithm(
        self, result: Result, form: Form, ahead: paper_runs.PlannedRun, given: Mapping[str, Value]
    ) -> AnalyzedFedMRN:
        names = {assumption.name for assumption in form.assumptions}
        falling = _has_falling_steps(form, result)
        not_used = Constant(0.0, "given", "does not enter step sizes")
        constants = ahead.constants | {
            "iterations": Constant(float(ahead.rounds + falling), "given", "of the run"),
            "participating_clients": Constant(float(cohort_size(ahead.process)), "exact", "of the process"),
            "parameters": Constant(float(ahead.problem.dimension), "exact", "of the problem"),
            "initial_squared_distance": not_used,
            "relative_compression_error": not_used,
        }
        known = paper_runs.select_constants(result, form, constants, frozenset(given)) | dict(given)
        if not known.keys() & {"G"} or isinstance(known["G"], NoConstant):
            if names & {assumptions.FIXED_MASKS.name, assumptions.ROUND_MASKS.name}:
                raise FedboundsError(f"{result.key} [{form.name}] sets the amplitude of masks by G: give G")
            known["G"] = not_used
        steps, used = paper_runs.evaluate_steps(result, form, known)
        if "eta" not in steps:
            raise FedboundsError(f"{result.key} [{form.name}] sets no step size")
        eta, S, values = steps["eta"], ahead.local_steps, {name: float(np.ravel(v)[0]) for name, v in used.items()}
        shift = 2 / (values["mu"] * eta) - 1 if falling else None
        progressive = assumptions.PROGRESSIVE.name in names
        if assumptions.FIXED_MASKS.name in names:
            return AnalyzedFedMRN(eta, S, amplitude=2 * eta * S * values["G"], progressive=progressive)
        if assumptions.ROUND_MASKS.name in names:
            return AnalyzedFedMRN(eta, S, amplitude=eta * S * values["G"], amplitude_falls=True, step_shift=shift)
        if "q" not in given:
            return AnalyzedFedMRN(eta, S, "norm-scaled-sign", step_shift=shift, progressive=progressive)
        keep = 1 / (1 + values["q"] ** 2)
        return AnalyzedFedMRN(eta, S, "sparsifier", keep=keep, step_shift=shift, progressive=progressive)

    def measure(self, setting: RunSetting, of: str) -> tuple[np.ndarray, np.ndarray | None]:
        if of != GAP or not isinstance(setting.run, AnalyzedMoments):
            return super().measure(setting, of)
        return setting.run.moments.objective_gap, None


RUNS: paper_runs.PaperRuns = FedMRNPaper()


def analyzed(algorithm: Algorithm) -> AnalyzedFedMRN:
    """The algorithm, if the theorems are about it; refused otherwise."""
    if not isinstance(algorithm, AnalyzedFedMRN):
        raise RUNS.not_covered(REFUSED.format(kind=algorithm.kind))
    return algorithm


def of_algorithm(algorithm: AnalyzedFedMRN, problem: Problem) -> paper_runs.Constants:
    """Step size, local steps, amplitude, the relative error of the operator and the number of parameters."""
    d = problem.dimension  # 0 of a log without models
    q = {
        "sparsifier": math.sqrt(1 / (algorithm.keep or 1) - 1),
        "norm-scaled-sign": math.sqrt(d - 1) if d else None,
    }.get(algorithm.operator)
    none = NoConstant(f"it is of signed masks, and the operator is {algorithm.operator}")
    found = paper_runs.algorithm_constants(
        local_step_size=algorithm.local_step_size, local_steps=algorithm.local_steps
    ) | {
        "parameters": Constant(float(d), "exact", "of the problem"),
        "mask_amplitude": none
        if algorithm.amplitude is None
        else Constant(algorithm.amplitude, "given", "of the algorithm"),
        "relative_compression_error": NoConstant(NO_MASKS)
        if q is None
        else Constant(q, "exact", f"of the {algorithm.operator}"),
    }
    if not d:
        del found["parameters"]
        if algorithm.operator == "norm-scaled-sign":
            del found["relative_compression_error"]
    return found


@dataclass(frozen=True)
class GradientBound:
    """G with its kind, and what it says of the assumptions on gradients and on the amplitude of masks."""

    bound: Constant | NoConstant
    found: dict[str, bool]
    notes: tuple[str, ...] = ()


def gradient_bound(setting: RunSetting, form: Form, stated: paper_runs.Constants, falling: bool) -> GradientBound:
    r"""G as a form needs it: surely where it is for masks, and otherwise in the root mean square."""
    names, algorithm = {assumption.name for assumption in form.assumptions}, analyzed(setting.algorithm)
    if assumptions.SURE_GRADIENT_BOUND.name not in names:
        return _mean_square_bound(setting, stated)
    known = stated.get("stochastic_gradient_bound")
    found: dict[str, bool] = {}
    if isinstance(known, Constant):
        least, found[assumptions.SURE_GRADIENT_BOUND.name] = known, True
    elif isinstance(setting.run, AnalyzedMoments):
        sure = setting.run.moments.sure_gradient_bound
        found[assumptions.SURE_GRADIENT_BOUND.name] = math.isfinite(sure)
        least = Constant(sure, "exact", "whatever is drawn") if math.isfinite(sure) else _bound_by_moments(setting.run)
    else:
        least = _largest_gradient(setting)
        if isinstance(known, NoConstant) or (isinstance(setting.problem, Quadratic) and setting.problem.noise):
            found[assumptions.SURE_GRADIENT_BOUND.name] = False  # Gaussian noise
    S, eta = algorithm.local_steps, algorithm.local_step_size
    made = {
        assumptions.FIXED_MASKS.name: (2 * eta * S, not falling),
        assumptions.ROUND_MASKS.name: (eta * S, algorithm.amplitude_falls or setting.total <= S),
    }
    for name in names & made.keys():
        factor, as_set = made[name]
        if algorithm.amplitude is None or not as_set or not isinstance(least, Constant):
            found[name] = False
            continue
        own = algorithm.amplitude / factor
        longest = float(np.max(least.value))
        found[name] = bool(own >= longest * (1 - AGREE))
        if found[name]:
            note = f"the masks are made for it; gradients are at most {longest:.6g}: {least.note}"
            return GradientBound(Constant(own, least.source, note), found)
        short = (
            f"the amplitude is {algorithm.amplitude:.12g}, and for gradients of at most {longest:.9g} the result "
            f"makes it {factor * longest:.12g}"
        )
        return GradientBound(least, found, (short,))
    return GradientBound(least, found)


def _mean_square_bound(setting: RunSetting, stated: paper_runs.Constants) -> GradientBound:
    """In the root mean square: of the problem, or along the run by exact moments, or at most its largest gradient."""
    steepest, noise, problem = stated.get("client_gradient_bound"), stated.get("gradient_noise"), setting.problem
    if isinstance(steepest, Constant) and isinstance(noise, Constant):
        G = math.hypot(float(steepest.value), float(noise.value))
        return GradientBound(
            Constant(G, "exact", "root of the squares of noise and steepest slope"),
            {assumptions.GRADIENT_BOUND.name: True},
        )
    if isinstance(setting.run, AnalyzedMoments):
        return GradientBound(_bound_by_moments(setting.run), {assumptions.GRADIENT_BOUND.name: True})
    algorithm, numbers = analyzed(setting.algorithm), setting.total * problem.clients * problem.dimension**3
    if isinstance(problem, Quadratic) and algorithm.amplitude is None and numbers <= MOMENTS:
        run = analyzed_moments(algorithm, problem, setting.process, setting.total)
        return GradientBound(_bound_by_moments(run), {assumptions.GRADIENT_BOUND.name: True})
    return GradientBound(_largest_gradient(setting), {})


def _bound_by_moments(run: AnalyzedMoments) -> Constant:
    note = "largest root mean square over clients and iterations, by exact moments"
    return Constant(run.moments.gradient_bound, "trajectory", note)


def _largest_gradient(setting: RunSetting) -> Constant | NoConstant:
    """The largest stochastic gradient that a run has seen."""
    if not isinstance(setting.run, Trace) or "largest_gradient" not in setting.run.arrays:
        return NoConstant("gradients have no sure bound here, and the run did not record its largest one")
    value, note = float(setting.run.arrays["largest_gradient"].max()), "largest over seeds, clients and iterations"
    return Constant(value, "trajectory", note)


def _clipped_updates(setting: RunSetting) -> int:
    """How many updates had biased masks."""
    arrays = setting.run.arrays if isinstance(setting.run, Trace) else {}
    return int(arrays["clipped_updates"].sum()) if "clipped_updates" in arrays else 0


def _mask_assumptions(algorithm: AnalyzedFedMRN, form: Form) -> dict[str, bool]:
    """What the operator is, beside the size of its amplitude."""
    masks = algorithm.operator == "signed-masks"
    told = assumptions.PROGRESSIVE.name in {assumption.name for assumption in form.assumptions}
    found = {
        assumptions.RELATIVE_ERROR.name: not masks,
        assumptions.ANY_MASKS.name: masks and not algorithm.progressive,
        assumptions.PROGRESSIVE.name: algorithm.progressive,
    }
    if algorithm.progressive and not told:  # some coordinates are not masked at all, and the form is not about that
        found |= dict.fromkeys((assumptions.FIXED_MASKS.name, assumptions.ROUND_MASKS.name), False)
    return found


def _has_falling_steps(form: Form, result: Result) -> bool:
    """Whether it is about step sizes that fall."""
    return (form.measure or result.measure).aggregate == "last"


def _check_steps(
    algorithm: AnalyzedFedMRN, form: Form, result: Result, stated: paper_runs.Constants, given: frozenset[str]
) -> None:
    """Refuse step sizes that do not fall as a theorem says, or that fall where they must not."""
    shift, mu = algorithm.step_shift, stated.get("strong_convexity")
    if not _has_falling_steps(form, result):
        if shift is not None:
            raise FedboundsError(f"{result.key} has the same step size in all iterations: leave step_shift out")
        return
    if shift is None:
        raise FedboundsError(f"{result.key} has steps that fall, 2/(mu (gamma + t)): give step_shift = gamma")
    if "mu" in given:
        raise FedboundsError("mu sets how the run's steps fall, and is that of its problem: leave it out")
    if isinstance(mu, Constant):
        first = 2 / (float(mu.value) * (shift + 1))
        if abs(algorithm.local_step_size - first) > AGREE * first:
            raise FedboundsError(
                f"{result.key} begins with the step size 2/(mu (gamma + 1)) = {first:.12g} for step_shift = "
                f"{shift:.12g}, the run with {algorithm.local_step_size:.12g}"
            )
        smooth, own = stated.get("smoothness"), {"S": algorithm.local_steps, "mu": float(mu.value)}
        if isinstance(smooth, Constant) and "L" not in given and "eta" in form.prescribes:
            own |= {"L": float(smooth.value)}
            step = form.prescribes["eta"]
            eta = float(step.subs({symbol: own[symbol.name] for symbol in step.free_symbols}))
            wanted = 2 / (own["mu"] * eta) - 1
            if abs(shift - wanted) > AGREE * (1 + wanted):
                raise FedboundsError(
                    f"{result.key} sets eta = {eta:.12g} and gamma = {wanted:.12g} with these constants, the run has "
                    f"{algorithm.local_step_size:.12g} and step_shift = {shift:.12g}: give local_step_size = "
                    f"{eta:.12g} and step_shift = {wanted:.12g}"
                )


def _initial_distance(problem: Problem) -> Constant | NoConstant:
    r"""$\|w_1-w^*\|^2$."""
    if not isinstance(problem, Quadratic | Sloped | Displaced):
        return NoConstant("the minimizer is not known")
    try:
        away = problem.x0 - problem.minimizer()
    except FedboundsError as error:
        return NoConstant(str(error))
    return Constant(float(away.square().sum()), "exact", "|x0 - x*|^2")


def measure_along_run(setting: RunSetting) -> paper_runs.Constants:
    """Smoothness and noise of a network, at models that the run recorded."""
    run = setting.run
    return {} if setting.logged or not isinstance(run, Trace) else _measure(run, setting.problem)


@lru_cache(maxsize=8)
def _measure(run: Trace, problem: Problem) -> paper_runs.Constants:
    """The measured constants; kept, as a comparison with given constants asks for them twice."""
    rounds = measured_constants.evenly_spaced(run.arrays["round"], measured_constants.LOCAL_ROUNDS)
    try:
        largest = max(
            float(measured_constants.client_curvatures(problem, at.model).max())
            for at in measured_constants.visits(run, problem, rounds)
        )
        smoothness: Constant | NoConstant = measured_constants.constant(
            largest, False, "largest eigenvalue of a client's Hessian", f"at {len(rounds)} averages a seed"
        )
    except FedboundsError as error:
        smoothness = NoConstant(str(error))
    return {"smoothness": smoothness, "gradient_noise": measured_constants.largest_noise(run, problem)}
