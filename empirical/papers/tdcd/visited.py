r"""The constants of Theorem 1 where no formula gives them, measured along a run that recorded its models.

The noise $\sigma_{j,r}^2$ is exact at a recorded model: the clients' mean of the variance of their stochastic partial
gradients and of how far their expectations are from f's. Its mean over rounds is all that the proof needs. Smoothness
is by secants, between the pairs of points of the proof: of a client's gradients on the batch of its round, from one
local step to the next, and of f from one sync point to the next (the descent lemma uses all points between them).

Source: Das et al. 2022, Assumption 1 in (34) and (58), Assumption 3 in (20).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from fedbounds.bounds.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.measured.points import largest_secant
from fedbounds.empirical.measured.visits import LOCAL_ROUNDS, constant, spaced, visits
from fedbounds.empirical.papers.tdcd.between import local_steps, own_streams
from fedbounds.empirical.problems.vertical import Vertical
from fedbounds.empirical.trace import Trace

VARIANCES = 10**6  # of so many coordinates of clients' gradients at most is the variance computed; at 5 models at least


@lru_cache(maxsize=8)
def noise_along(run: Trace, problem: Vertical) -> tuple[np.ndarray, np.ndarray]:
    r"""The rounds at which the noise was computed, (R,), and $\mathbb E\sigma_{j,r}^2$ there, (silos, R).

    Raises:
        FedboundsError: the variance of the problem's stochastic gradients is not known; a seed diverged.
    """
    total, seeds = int(run.spec["rounds"]), len(run.arrays["seed"])
    recorded = run.arrays["round"][run.arrays["round"] < total]
    at = spaced(recorded, max(5, VARIANCES // (problem.dimension * problem.clients * seeds)))
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
    chosen = spaced(recorded, LOCAL_ROUNDS)
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
