r"""What happens between sync points: a recorded round computed again, and the virtual average on the way, exactly."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.engines.closed_tiers import ClosedTiers
from fedbounds.empirical.measured.visits import Visit, visits
from fedbounds.empirical.moments import TierMoments
from fedbounds.empirical.moments.tiers import noise_covariance
from fedbounds.empirical.problems import BlockQuadratic, Vertical
from fedbounds.empirical.streams import Streams
from fedbounds.empirical.trace import Trace


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


def expected_norms(run: TierMoments) -> np.ndarray:
    r"""$\mathbb E\|\nabla f\|^2$ at the virtual average before every local step of every round, (R+1, Q).

    Raises:
        FedboundsError: the moments are those of a problem whose rounds were enumerated.
    """
    problem, local, found = run.problem, run.algorithm.local, []
    if not isinstance(problem, BlockQuadratic) or not run.algorithm.plain_steps:
        raise FedboundsError("between sync points moments are known on block quadratics alone: simulate instead")
    hessian, center, found = problem.hessian.cpu().numpy(), problem.center.cpu().numpy(), [run.gradient_norm_squared]
    for steps in range(1, local.steps):
        engine = ClosedTiers(problem, replace(local, steps=steps))
        keep, pulled = np.eye(len(center)) - engine.rows.cpu().numpy(), engine.pulled.cpu().numpy()
        means = center + (run.mean - center) @ keep.T + pulled
        covariances = keep @ run.covariance @ keep.T + noise_covariance(engine)
        slopes = problem.objective_gradient(torch.from_numpy(means).to(problem.device)).square().sum(-1).cpu().numpy()
        found.append(slopes + np.einsum("ij,rij->r", hessian @ hessian, covariances))
    return np.stack(found, axis=1)
