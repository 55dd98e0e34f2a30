r"""Constants and assumptions of a run, for Theorem 1 and Remark 5 of Das et al. (2022).

A round of the run is a round of the paper, so the model is measured at its sync points. The two other averages that
(15) may be read as, over the first R iterates and over all T, are those of the virtual average between sync points: a
run that recorded its models is computed again there.

`Delta` is what f fell by: exact under exact moments and where nothing is random, else a mean over seeds, which
guarantees nothing; `repaired:B0inf` has f(x_0) - inf f instead.

The noise $\sigma_{j,r}^2$ is exact at a recorded model: the clients' mean of the variance of their stochastic partial
gradients and of how far their expectations are from f's. Smoothness is by secants: of a client's gradients on the batch
of its round, from one local step to the next, and of f from one sync point to the next.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.papers.tdcd import assumptions
from fedbounds.bounds.papers.tdcd.remarks import WALL_CLOCK
from fedbounds.bounds.papers.tdcd.results import ALL_ITERATES, FIRST_ITERATES
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.algorithms.tiers import TieredAlgorithm, TierSteps
from fedbounds.empirical.comparison import paper_runs
from fedbounds.empirical.comparison.measured_constants import (
    LOCAL_ROUNDS,
    Visit,
    constant,
    evenly_spaced,
    largest_secant,
    visits,
)
from fedbounds.empirical.comparison.measured_curve import averages_before
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.problems import Problem, Vertical
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import TierMoments
from fedbounds.empirical.simulation.moments.tiers import expected_norms
from fedbounds.empirical.simulation.trace import Trace

VARIANCES = 10**6  # of so many coordinates of clients' gradients at most is the variance computed; at 5 models at least


def local_steps(problem: Vertical, steps: TierSteps, visit: Visit, streams: Streams) -> list[tuple[Tensor, Tensor]]:
    r"""A round that was run, again from its own random numbers: of every silo the copies of its clients before each
    local step, and the gradients there, both $(Q, K_j, d_j)$."""
    drawn = problem.draw_round(streams.generator("noise", visit.round))
    randomness = None if drawn is None else torch.from_numpy(drawn)[None].to(problem.device)
    if randomness is not None and randomness.is_floating_point():
        randomness = randomness.to(problem.dtype)
    known, found = problem.exchange(visit.model[None], randomness), []
    gradients = problem.stale_gradients if steps.stale else problem.partial_gradients
    for silo, block in enumerate(problem.blocks):
        copies, slopes = [visit.model[None, None, block].expand(1, problem.silo_clients[silo], -1)], []
        for _ in range(steps.steps - int(steps.discards_last)):
            slopes.append(gradients(silo, copies[-1], known))
            copies.append(torch.sub(copies[-1], slopes[-1], alpha=steps.step_size))
        found.append((torch.cat(copies[:-1]), torch.cat(slopes)))
    return found


def own_streams(run: Trace) -> list[Streams]:
    """Of every seed."""
    return [Streams(int(seed), run.spec.get("streams", {})) for seed in run.arrays["seed"]]


@lru_cache(maxsize=8)
def norms_within_rounds(run: Trace, problem: Vertical, steps: TierSteps) -> np.ndarray:
    r"""$\|\nabla f\|^2$ at the virtual average before every local step of the recorded rounds, (seeds, R, Q)."""
    at, streams = run.arrays["round"], own_streams(run)
    found = np.empty((len(streams), len(at), steps.steps))
    for visit in visits(run, problem, at):
        within = local_steps(problem, steps, visit, streams[visit.seed])
        virtual = torch.cat([copies.mean(1) for copies, _ in within], dim=1)
        norms = problem.objective_gradient(virtual).double().square().sum(-1)
        found[visit.seed, np.searchsorted(at, visit.round)] = norms.cpu().numpy()
    return found


@lru_cache(maxsize=8)
def noise_along(run: Trace, problem: Vertical) -> tuple[np.ndarray, np.ndarray]:
    r"""The rounds at which the noise was computed, (R,), and $\mathbb E\sigma_{j,r}^2$ there, (silos, R)."""
    total, seeds = int(run.spec["rounds"]), len(run.arrays["seed"])
    recorded = run.arrays["round"][run.arrays["round"] < total]
    at = evenly_spaced(recorded, max(5, VARIANCES // (problem.dimension * problem.clients * seeds)))
    found = np.zeros((problem.silos, len(at)))
    for visit in visits(run, problem, at):
        variances = problem.silo_variances(visit.model).double().cpu().numpy()
        found[:, np.searchsorted(at, visit.round)] += variances / seeds
    return at, found


@lru_cache(maxsize=8)
def secants(run: Trace, problem: Vertical, steps: TierSteps) -> dict[str, Constant | NoConstant]:
    """Smoothness of f, and of clients' gradients in their own block, both from below."""
    total, streams = int(run.spec["rounds"]), own_streams(run)
    recorded = run.arrays["round"][run.arrays["round"] < total]
    chosen = evenly_spaced(recorded, LOCAL_ROUNDS)
    whole = within = 0.0
    for visit in visits(run, problem, chosen):
        silos = local_steps(problem, steps, visit, streams[visit.seed])
        end = torch.cat([(own[-1] - steps.step_size * slopes[-1]).mean(0) for own, slopes in silos])
        here, there = problem.objective_gradient(visit.model), problem.objective_gradient(end)
        whole = max(whole, largest_secant(end, visit.model, there, here))
        for own, slopes in silos:
            within = max(within, largest_secant(own[1:], own[:-1], slopes[1:], slopes[:-1]))
    where = f"in {len(chosen)} rounds a seed"
    return {
        "smoothness": _largest(whole, "|grad f(u) - grad f(v)|/|u - v|", f"from one sync point to the next {where}"),
        "block_smoothness": _largest(within, "|g_kj(u) - g_kj(v)|/|u - v|", f"from one local step to the next {where}"),
    }


def _largest(value: float, what: str, where: str) -> Constant | NoConstant:
    if not value:
        return NoConstant(f"no two points {where} differ: give it")
    return constant(value, False, f"largest {what}", where)


NOISES = ("block_gradient_noise", "averaged_block_gradient_noise")
MEASURABLE = ("smoothness", "block_smoothness", *NOISES)
ROUNDINGS = 4096  # units of rounding up to which gradients are the same
SAMPLED = "Delta is a mean over seeds; repaired:B0inf has f(x_0) - inf f in its place, and may be a guarantee"
WEIGHED = "the copies are averaged by {average}, and the proof has them all count the same"
EMPTY = 'empty = "{empty}": gradients are unbiased only if no client\'s part of a batch is ever empty'


class TDCDPaper(paper_runs.PaperRuns):
    """Runs of tiers whose hubs average the copies after the last local step."""

    authors = "Das et al. 2022"
    over = ("sync points", "iterations")

    def steps(self, setting: RunSetting, interval: int | None) -> paper_runs.PrescribedSteps:
        self.check_no_interval(interval)
        local = _tiers(setting.algorithm).local
        return paper_runs.PrescribedSteps(1, {"eta": local.step_size, "Q": float(local.steps)})

    def collect_facts(self, compared: paper_runs.ComparedRun) -> paper_runs.RunFacts:
        setting, horizons, wanted = compared.setting, compared.horizons, compared.concepts
        if compared.result.key == WALL_CLOCK.key:
            raise FedboundsError(f"{compared.result.key} counts time, a run its rounds: compare it with tdcd/theorem-1")
        algorithm = _tiers(setting.algorithm)
        unknown = NoConstant("the problem does not state it")
        stated: paper_runs.Constants = dict.fromkeys(MEASURABLE, unknown) | paper_runs.run_constants(setting)
        measured, notes = compared.measured_constants(stated, lambda: _measured_along(setting, wanted, horizons))
        missing = {concept for concept in wanted & {*NOISES} if isinstance(stated[concept], NoConstant)}
        if missing and isinstance(setting.run, TierMoments):
            exact = _mean_noise(setting.run.problem, horizons, setting.at, setting.run.silo_variances.T, complete=True)
            measured = {concept: exact[concept] for concept in missing & exact.keys()}
            notes = (paper_runs.MEASURED,) if measured else ()
        constants = stated | measured | _constants_of(algorithm, setting.problem, setting.total) | compared.rounds
        decrease = _decrease(setting, horizons)
        if decrease is not None:
            constants["decrease_of_the_objective"] = decrease
            if "Delta" in compared.symbols and "Deltainf" not in compared.given and decrease.source == "estimated":
                notes += (SAMPLED,)
        found, doubts = _found_assumptions(setting, algorithm.local, constants)
        return compared.facts(constants, paper_runs.problem_assumptions(setting, constants) | found, (*notes, *doubts))

    def prescribe_algorithm(
        self, result: Result, form: Form, ahead: paper_runs.PlannedRun, given: Mapping[str, Value]
    ) -> Algorithm:
        steps, _ = paper_runs.prescribe(result, form, ahead.constants, given)
        if "eta" not in steps:
            raise FedboundsError(f"{result.key} [{form.name}] sets no step size")
        return TDCD(steps["eta"], ahead.local_steps)

    def measure(self, setting: RunSetting, of: str) -> tuple[np.ndarray, np.ndarray | None]:
        if of not in (ALL_ITERATES.of, FIRST_ITERATES.of):
            return super().measure(setting, of)
        within = _within_rounds(setting)
        if of == ALL_ITERATES.of:
            samples = within.mean(axis=2)
        elif len(setting.at) == setting.total + 1:
            samples = within.reshape(len(within), -1)[:, setting.at]
        else:
            raise FedboundsError("the first R iterates are in the first R/Q rounds: simulate with record_every=1")
        return samples.mean(axis=0), samples if setting.samples is not None else None


RUNS: paper_runs.PaperRuns = TDCDPaper()


def _tiers(algorithm: Algorithm) -> TieredAlgorithm:
    """The algorithm, if the theorem is about it; refused otherwise."""
    if not isinstance(algorithm, TieredAlgorithm):
        raise RUNS.not_covered(f"{algorithm.kind}: its clients have the whole model; run tdcd")
    local, kind = algorithm.local, algorithm.kind
    if local.discards_last:
        raise RUNS.not_covered(
            f"{kind}: the last of its {local.steps} local steps is lost, and (13) counts all; run tdcd with one step "
            "fewer"
        )
    if local.stale and local.steps > 1:
        raise RUNS.not_covered(
            f"{kind}: its local steps keep derivatives of the round's start, which are no gradients; take them every "
            "step"
        )
    return algorithm


def _constants_of(algorithm: TieredAlgorithm, problem: Problem, rounds: int) -> paper_runs.Constants:
    """Step size, local steps, what Remark 5 keeps fixed, and how many clients each silo has."""
    eta, Q = algorithm.local.step_size, algorithm.local.steps
    found = paper_runs.algorithm_constants(local_step_size=eta, local_steps=Q)
    found["scaled_step"] = Constant(eta * Q * rounds**0.5, "given", "eta Q sqrt(R) of the run")
    if isinstance(problem, Vertical):
        clients = np.array(problem.silo_clients, dtype=float)
        found["clients_of_each_silo"] = Constant(clients, "exact", "of the problem")
    return found


def _measured_along(setting: RunSetting, wanted: set[str], horizons: np.ndarray) -> paper_runs.Constants:
    """The wanted constants, along a simulation that recorded its models."""
    run, problem = setting.run, setting.problem
    if not isinstance(run, Trace) or not isinstance(problem, Vertical):
        return {}
    found: paper_runs.Constants = {}
    if wanted & {"smoothness", "block_smoothness"}:
        found |= secants(run, problem, _tiers(setting.algorithm).local)
    if wanted & {*NOISES}:
        try:
            at, noise = noise_along(run, problem)
        except FedboundsError as error:
            return found | dict.fromkeys(NOISES, NoConstant(str(error)))
        found |= _mean_noise(problem, horizons, at, noise, at.size == setting.total)
    return found


def _mean_noise(
    problem: Vertical, horizons: np.ndarray, at: np.ndarray, noise: np.ndarray, complete: bool
) -> paper_runs.Constants:
    """The noise (silos, R) of these rounds in the mean over all rounds before each horizon."""
    where = f"mean over rounds, computed at {'all' if complete else at.size} of them"
    each = {NOISES[0]: noise}
    if not problem.shared_noise:  # which averaging does not reduce
        each[NOISES[1]] = noise / np.array(problem.silo_clients)[:, None]
    kind = "trajectory" if complete else "estimated"
    means = {concept: averages_before(horizons, at, values.sum(axis=0)) for concept, values in each.items()}
    return {concept: Constant(values, kind, where) for concept, values in means.items()}


def _decrease(setting: RunSetting, horizons: np.ndarray) -> Constant | None:
    """What f has fallen by at each horizon, or 0 if it has not; None where the run did not measure f."""
    run = setting.run
    if isinstance(run, TierMoments):
        fallen = run.objective[0] - np.nan_to_num(run.objective[horizons], nan=np.inf)
        return Constant(np.maximum(fallen, 0.0), "exact", "f(x0) - E f(x_R), by exact moments")
    floor = setting.problem.lower_bound
    metric = "objective" if floor is None else floor.metric
    if not isinstance(run, Trace) or metric not in run.metrics:
        return None
    values = run.arrays[metric][:, np.searchsorted(setting.at, [0, *horizons])]
    values = np.where(np.isnan(values), np.inf, values).mean(axis=0)
    fallen = np.maximum(values[0] - values[1:], 0.0)
    if not setting.seeds:
        return Constant(fallen, "exact", "f(x0) - f(x_R); nothing is random")
    return Constant(fallen, "estimated", f"f(x0) - f(x_R), mean over {setting.seeds} seeds")


def _found_assumptions(
    setting: RunSetting, local: TierSteps, constants: paper_runs.Constants
) -> tuple[dict[str, bool], tuple[str, ...]]:
    """What can be said of the assumptions, and what stands in the way of saying more."""
    found = {}
    for name in (assumptions.BLOCK_SMOOTH.name, assumptions.ONE_BLOCK_SMOOTH.name):
        constant = constants["block_smoothness"]
        if isinstance(constant, NoConstant):
            found[name] = False
        elif constant.source == "exact":
            found[name] = True
    problem, doubts = setting.problem, tuple[str, ...]()
    if not isinstance(problem, Vertical):
        return found, doubts
    noise, drawn = constants["block_gradient_noise"], problem.draw_round(np.random.default_rng(0)) is not None
    shares = [problem.shares(silo) for silo in range(problem.silos)]
    even = all(bool(torch.isclose(share, share[:1], rtol=1e-6, atol=0).all()) for share in shares)
    one_each = max(problem.silo_clients) == 1
    if local.average == "batches" and drawn:
        doubts += (WEIGHED.format(average=local.average),)
    if local.empty != "refuse" and problem.batch and drawn:
        doubts += (EMPTY.format(empty=local.empty),)
    found[assumptions.UNBIASED_CLIENTS.name] = (
        even and isinstance(noise, Constant) and noise.source == "exact" and _same_gradients(problem)
    )
    if not even or isinstance(noise, NoConstant):
        found[assumptions.UNBIASED_SILOS.name] = False
    elif not doubts:
        found[assumptions.UNBIASED_SILOS.name] = True
    found[assumptions.UNCORRELATED_CLIENTS.name] = even and (one_each or not drawn or not problem.shared_noise)
    return found, doubts


def _same_gradients(problem: Vertical) -> bool:
    """Whether every client's expected gradient is f's in its block, at a point drawn at random."""
    rng = np.random.default_rng(0)
    x = problem.initial_point(rng)
    x = x + torch.from_numpy(rng.standard_normal(problem.dimension)).to(x)
    whole, own = problem.objective_gradient(x), client_gradients(problem, x)
    size = float(whole.abs().max()) * ROUNDINGS * torch.finfo(problem.dtype).eps
    blocks = [problem.blocks[silo] for silo in problem.silo_of]
    return all(bool(((own[n] - whole)[block].abs() <= size).all()) for n, block in enumerate(blocks))


def _within_rounds(setting: RunSetting) -> np.ndarray:
    """The squared norms at the virtual average before every local step of the recorded rounds, (seeds, R, Q)."""
    run, problem, local = setting.run, setting.problem, _tiers(setting.algorithm).local
    if local.steps == 1:
        return (setting.values[None] if setting.samples is None else setting.samples)[..., None]
    if isinstance(run, TierMoments):
        return expected_norms(run)[None]
    setting.recorded("model", "its models, from which it is computed again between sync points: record_models=True")
    assert isinstance(run, Trace) and isinstance(problem, Vertical)
    return norms_within_rounds(run, problem, local)
