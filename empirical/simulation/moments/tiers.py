r"""The exact mean and covariance of the hubs' models, where clients of silos work on copies of one block.

On block quadratics a round is $\theta^+-\bar c=M(\theta-\bar c)+b-\zeta$ with $M=I-\mathbf SA$ in block rows, and noise
$\zeta$ that does not depend on the model, so that
$$m_{r+1}-\bar c=M(m_r-\bar c)+b,\qquad C_{r+1}=MC_rM^\top+\mathrm{Cov}\,\zeta.$$
On other problems all paths are walked, if what a round may draw is finite and the rounds are few.

Source: Das et al. 2022, Algorithm 1; the recursion is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.empirical.algorithms.tiers import TieredAlgorithm
from fedbounds.empirical.participation import Process
from fedbounds.empirical.problems import BlockQuadratic, Problem, Vertical
from fedbounds.empirical.simulation.engines.closed_tiers import ClosedTiers
from fedbounds.empirical.simulation.engines.tiers import Tiers

MOST_PATHS = 2**17


@dataclass(frozen=True, eq=False)
class TierMoments:
    r"""Exact expectations along a run of R rounds, over all that the rounds draw.

    Numbers beyond floating point are infinite or not numbers at all.
    """

    mean: np.ndarray  # $\mathbb E\theta^{rQ}$, (R+1, d)
    covariance: np.ndarray  # of $\theta^{rQ}$, (R+1, d, d)
    # $\mathbb E\|\nabla f(\theta^{rQ})\|^2$, (R+1,); the theorem averages the first R
    gradient_norm_squared: np.ndarray
    objective: np.ndarray  # $\mathbb Ef(\theta^{rQ})$, (R+1,)
    silo_variances: np.ndarray  # $\mathbb E\sigma_j^2(\theta^{rQ})$ of `Vertical.silo_variances`, (R+1, silos)
    algorithm: TieredAlgorithm  # algorithm, problem, participation: what was run
    problem: Vertical
    participation: Process

    @property
    def rounds(self) -> int:
        """R."""
        return len(self.mean) - 1

    @property
    def label(self) -> str:
        """That nothing is sampled."""
        return "exact"


def tier_moments(algorithm: TieredAlgorithm, problem: Problem, participation: Process, rounds: int) -> TierMoments:
    """Exact moments of an algorithm of silos; see `fedbounds.empirical.simulation.moments.moments`."""
    algorithm = algorithm.bind_process(participation)
    assert isinstance(problem, Vertical)  # as the algorithm fits it
    d = problem.dimension
    check_memory(f"the moments of rounds = {rounds} in dimension = {d}", 8 * (rounds + 2) * d * (d + 1))
    if isinstance(problem, BlockQuadratic) and algorithm.plain_steps:
        found = _recursion(algorithm, problem, rounds)
    else:
        found = _paths(algorithm, problem, rounds)
    return TierMoments(*found, algorithm, problem, participation)


class _Expected(NamedTuple):
    """The arrays of `TierMoments`."""

    mean: np.ndarray
    covariance: np.ndarray
    gradient_norm_squared: np.ndarray
    objective: np.ndarray
    silo_variances: np.ndarray


def _recursion(algorithm: TieredAlgorithm, problem: BlockQuadratic, rounds: int) -> _Expected:
    engine, d = ClosedTiers(problem, algorithm.local), problem.dimension
    rows, pulled, center, hessian = (
        t.cpu().numpy() for t in (engine.rows, engine.pulled, problem.center, problem.hessian)
    )
    step, noise = np.eye(d) - rows, noise_covariance(engine)
    mean, covariance = np.zeros((rounds + 1, d)), np.zeros((rounds + 1, d, d))
    mean[0] = problem.x0.cpu().numpy()
    for r in range(rounds):
        mean[r + 1] = center + step @ (mean[r] - center) + pulled
        covariance[r + 1] = step @ covariance[r] @ step.T + noise
    at = torch.from_numpy(mean).to(problem.device)
    apart = [
        (own.cpu().numpy() - hessian[block]) for own, block in zip(problem.rows, problem.blocks, strict=True)
    ]  # what makes the clients' gradients differ the more the larger the model is, (K_j or 1, d_j, d)
    squares = np.stack([np.einsum("kem,ken->mn", each, each) / len(each) for each in apart])

    def trace(matrices: np.ndarray) -> np.ndarray:
        return np.einsum("...ij,rij->r...", matrices, covariance)

    return _Expected(
        mean,
        covariance,
        problem.objective_gradient(at).square().sum(-1).cpu().numpy() + trace(hessian @ hessian),
        problem.objective(at).cpu().numpy() + trace(hessian) / 2,
        problem.silo_variances(at).cpu().numpy() + trace(squares),
    )


def noise_covariance(engine: ClosedTiers) -> np.ndarray:
    """The covariance of what the noise of a round adds to the models, (d, d)."""
    problem = engine.quadratic
    found = np.zeros((problem.dimension, problem.dimension))
    for own, block, rows in zip(engine.silos, problem.blocks, problem.rows, strict=True):
        each = own.clients.cpu().numpy()
        if problem.shared_noise:
            together = each.sum(0) * problem.noise[block]
            found[block, block] = together @ together.T
        else:
            shifted = rows.cpu().numpy() * problem.shift
            one = np.diag(problem.noise[block] ** 2) + shifted @ shifted.transpose(0, 2, 1)
            found[block, block] = (each @ one @ each.transpose(0, 2, 1)).sum(0)
    if problem.shared_noise:
        shifted = engine.rows.cpu().numpy() * problem.shift
        found += shifted @ shifted.T
    return found


def expected_norms(run: TierMoments) -> np.ndarray:
    r"""$\mathbb E\|\nabla f\|^2$ at the virtual average before every local step of every round, (R+1, Q)."""
    problem, local = run.problem, run.algorithm.local
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


def _paths(algorithm: TieredAlgorithm, problem: Vertical, rounds: int) -> _Expected:
    """The same over all paths, which are equally likely."""
    engine, outcomes = Tiers(problem, algorithm.local), problem.outcomes()
    if outcomes is None and problem.draw_round(np.random.default_rng(0)) is not None:
        raise FedboundsError(
            f"exact moments of {algorithm.kind} need plain steps on a BlockQuadratic, or rounds whose draws can be "
            f"enumerated, which is not so of {type(problem).__name__} as it is"
        )
    many = 1 if outcomes is None else len(outcomes)
    if many > 1 and rounds * np.log(many) > np.log(MOST_PATHS):
        raise FedboundsError(
            f"{many} outcomes in each of {rounds} rounds are more paths than {MOST_PATHS}; at most "
            f"{int(np.log(MOST_PATHS) / np.log(many))} rounds are walked"
        )
    drawn = None if outcomes is None else torch.from_numpy(outcomes).to(problem.device)
    if drawn is not None and drawn.is_floating_point():
        drawn = drawn.to(problem.dtype)
    x, found = problem.initial_point(np.random.default_rng(0))[None], []
    for r in range(rounds + 1):
        away = x - x.mean(0)
        gradient = problem.objective_gradient(x).square().sum(-1)
        values = x.mean(0), away.T @ away / len(x), gradient.mean(), problem.objective(x).mean()
        found.append([*values, problem.silo_variances(x).mean(0)])
        if r < rounds:
            starts = x.repeat_interleave(many, 0)
            x = starts + engine.displacement(
                starts, None if drawn is None else drawn.repeat(len(x), *[1] * (drawn.ndim - 1))
            )
    return _Expected(*(np.stack([value.cpu().numpy() for value in column]) for column in zip(*found, strict=True)))
