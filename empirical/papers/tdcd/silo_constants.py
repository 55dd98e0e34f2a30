r"""What is measured where silos take local steps in their own blocks, along a run that recorded its models.

The noise $\sigma_{j,r}^2$ is exact at a recorded model: the clients' mean of the variance of their stochastic partial
gradients and of how far their expectations are from f's. Smoothness is by secants: of a client's gradients on the batch
of its round, from one local step to the next, and of f from one sync point to the next. A recorded round is computed
again from its own random numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.comparison.measured_constants.points import largest_secant
from fedbounds.empirical.comparison.measured_constants.visits import (
    LOCAL_ROUNDS,
    Visit,
    constant,
    evenly_spaced,
    visits,
)
from fedbounds.empirical.problems.vertical import Vertical
from fedbounds.empirical.runtime.streams import Streams
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
