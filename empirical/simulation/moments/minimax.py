r"""The exact mean and covariance of the models of Fed-Norm-SGDA on quadratics with additive noise, without sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory
from fedbounds.empirical.algorithms import LocalOptimizer, MinimaxAlgorithm
from fedbounds.empirical.algorithms.descent_ascent import DescentAscentRule, blocks
from fedbounds.empirical.participation import Full, Process, WithoutReplacement
from fedbounds.empirical.problems import Problem, QuadraticMinimax


@dataclass(frozen=True, eq=False)
class MinimaxMoments:
    r"""Exact expectations along a run of T rounds, over gradient noise and over who takes part.

    Numbers beyond floating point are infinite or not numbers at all.
    """

    mean: np.ndarray  # $\mathbb Ez_t$ with $z = (x, y)$, (T+1, d)
    covariance: np.ndarray  # of $z_t$, (T+1, d, d)
    weights: np.ndarray  # $w$ of the objective that the server steps along, (T, n)
    # $X_t = L_f^2\sum_i\frac{w_i}{\|a_i\|_1}\sum_ka_i^{(k)}\mathbb E\|z_i^{(t,k)}-z_t\|^2$, (T,), units of a squared
    # gradient
    drift: np.ndarray
    direction: np.ndarray  # $\mathbb E\|g_x\|^2$ and $\mathbb E\|g_y\|^2$ of the server's directions, (T, 2)
    # $\mathbb E\|\sum_iw_ih_{x,i}\|^2$ and the same in y, with exact gradients at the same noisy iterates, (T, 2)
    exact_direction: np.ndarray
    algorithm: MinimaxAlgorithm  # algorithm, problem, participation: what was run
    problem: QuadraticMinimax
    participation: Process

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.mean) - 1

    @property
    def label(self) -> str:
        """That nothing is sampled."""
        return "exact"

    def envelope_gradient_norm_squared(self, weights: np.ndarray | None = None) -> np.ndarray:
        r"""$\mathbb E\|\nabla\Phi(x_t)\|^2$, (T+1,); with weights, of the envelope of $\sum_iw_if_i$."""
        return self.mean_square(self._with_weights(weights).envelope_gradient)

    def moreau_gradient_norm_squared(self, weights: np.ndarray | None = None) -> np.ndarray:
        r"""$\mathbb E\|\nabla\Phi_{1/2L_f}(x_t)\|^2$, (T+1,); with weights, of the envelope of $\sum_iw_if_i$."""
        return self.mean_square(self._with_weights(weights).moreau_gradient)

    def mean_square(self, affine: Callable[[Tensor], Tensor]) -> np.ndarray:
        r"""$\mathbb E\|Mx_t+c\|^2$, (T+1,)."""
        in_x, _ = self._blocks()
        constant, *columns = affine(torch.from_numpy(np.vstack([np.zeros(len(in_x)), np.eye(len(in_x))]))).numpy()
        return self._square(np.stack([column - constant for column in columns], axis=1) @ in_x, constant)

    def dual_gap(self, weights: np.ndarray | None = None) -> np.ndarray:
        r"""$\mathbb E[\Phi(x_t) - F(x_t, y_t)]$, (T+1,); with weights, the same of $\sum_iw_if_i$."""
        problem = self._with_weights(weights)
        in_x, in_y = self._blocks()
        concavity = problem.mean_scale * problem.concavity
        ascent = problem.split(problem.mean_slopes)[1].numpy()
        away = in_y - problem.coupling.numpy().T @ in_x / problem.concavity
        return concavity / 2 * self._square(away, -ascent / concavity)

    def _with_weights(self, weights: np.ndarray | None) -> QuadraticMinimax:
        return self.problem if weights is None else self.problem.surrogate(weights)

    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrices that pick x and y out of z."""
        unit = np.eye(self.problem.dimension)
        return unit[: self.problem.descent_dimension], unit[self.problem.descent_dimension :]

    def _square(self, linear: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """The expected squared length of linear z + constant, in every round."""
        at_mean = self.mean @ linear.T + constant
        return (at_mean**2).sum(-1) + np.einsum("tij,ij->t", self.covariance, linear.T @ linear)


class _LocalWork(NamedTuple):
    r"""What local steps make of the gradient at the received model, $g = \nabla f_i(z)$, and of the noise $\xi_j$.

    Of one client, or of all with a leading axis (n,).
    """

    response: np.ndarray  # U with $\sum_ka^{(k)}G_k = Ug + \sum_jN_j\xi_j$, (d, d)
    noise: np.ndarray  # covariance of $\sum_jN_j\xi_j$
    # the same but for the noise of the gradients themselves: what it does through later iterates
    later_noise: np.ndarray
    drift: np.ndarray  # Q with $\sum_ka^{(k)}\|z_k-z\|^2 = g^\top Qg + q$ in expectation over the noise
    drift_noise: np.ndarray  # q
    mass: np.ndarray  # $\|a\|_1$


def minimax_moments(
    algorithm: MinimaxAlgorithm, problem: Problem, participation: Process, rounds: int
) -> MinimaxMoments:
    r"""The exact moments of $z_0,\dots,z_T$ over gradient noise and over clients drawn without replacement.

    Local steps on quadratics are affine in the received model and in the noise. With $h_i$ the expected contribution of
    client i given z, $\bar h$ their sum and $S_i$ the covariance of its noise,

    $$\operatorname{Cov}(z_{t+1}) = (I+\Lambda\bar A)\operatorname{Cov}(z_t)(I+\Lambda\bar A)^\top
      + \Lambda\Big[\tfrac nP\textstyle\sum_iS_i
      + d\,\tfrac nP\,\mathbb E\big(\sum_ih_ih_i^\top-\tfrac1n\bar h\bar h^\top\big)\Big]\Lambda,\qquad
      d = \tfrac{n-P}{n-1},$$

    $\bar A$ being the slope of $\bar h$ and $\Lambda$ the server's steps, negative in x. A round costs O(n d^3).

    Source: the algorithm is that of Sharma et al. 2023, Algorithm 1 with eqs. (3) and (12); the recursion is ours.
    """
    T = check_count("rounds", rounds)
    rule, quadratic = _check_closed(algorithm, problem, T)
    n, d = quadratic.clients, quadratic.dimension
    P = _participants(participation, n)
    check_memory(f"the moments of {n} clients in {d} dimensions over {T} rounds", 8 * d * d * (2 * T + 8 * n))
    hessian, slopes, p = (t.numpy() for t in (quadratic.joint_hessian, quadratic.slopes, quadratic.weights))
    hessians = quadratic.scales.numpy()[:, None, None] * hessian
    sampled, rest = n / P, (n - P) / max(1, n - 1)
    descent, smoothness = quadratic.descent_dimension, quadratic.smoothness()
    server = blocks(quadratic, -rule.server_step_size, rule.server_ascent_step_size).numpy()
    workload = rule.workload(quadratic)

    mean, covariance = np.zeros((T + 1, d)), np.zeros((T + 1, d, d))
    weights, drift = np.zeros((T, n)), np.zeros(T)
    direction, exact = np.zeros((T, 2)), np.zeros((T, 2))
    mean[0] = quadratic.z0.numpy()
    clients: _LocalWork | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(T):
            steps = np.broadcast_to(workload.steps(t, t, ()), n)
            if clients is None or not workload.constant:
                clients = _all_clients(rule, quadratic, steps)
            scales = rule.scales(steps, p)
            effective = float(scales @ clients.mass)  # tau_eff, as the weights sum to one
            weights[t] = scales * clients.mass / effective
            slope = scales[:, None, None] * (clients.response @ hessians)
            gradients = hessians @ mean[t] + slopes
            moves = scales[:, None] * np.einsum("nij,nj->ni", clients.response, gradients)
            total, total_slope = moves.sum(0), slope.sum(0)
            own = np.einsum("n,nij->ij", scales**2, clients.noise)
            each, together = moves.T @ moves, np.outer(total, total)
            each = each + (slope @ covariance[t] @ slope.transpose(0, 2, 1)).sum(0)
            together = together + total_slope @ covariance[t] @ total_slope.T
            spread = sampled * own + sampled * rest * (each - together / n)
            moved = np.eye(d) + server[:, None] * total_slope
            mean[t + 1] = mean[t] + server * total
            covariance[t + 1] = moved @ covariance[t] @ moved.T + server[:, None] * spread * server
            direction[t] = _per_block(together + spread, descent) / effective**2
            later = np.einsum("n,nij->ij", scales**2, clients.later_noise)
            exact[t] = _per_block(together + later, descent) / effective**2
            second = np.einsum("ni,nj->nij", gradients, gradients) + hessians @ covariance[t] @ hessians
            drifts = (clients.drift * second).sum((1, 2)) + clients.drift_noise
            drift[t] = smoothness**2 * float((weights[t] / clients.mass) @ drifts)
    return MinimaxMoments(mean, covariance, weights, drift, direction, exact, algorithm, quadratic, participation)


def fixed_point(algorithm: MinimaxAlgorithm, problem: Problem) -> np.ndarray:
    r"""Where the expected model of Fed-Norm-SGDA stays, (d,): the solution of $\sum_iw_i\,\mathbb Eg_i(z) = 0$.

    As the local steps go to 0 it tends to the stationary point of $\sum_iw_if_i$: the problem's own for normalized
    averaging with $w = p$, another one for naive averaging, whose $w_i\propto p_i\|a_i\|_1$. Who takes part plays no
    role as long as every client has the same mean weight.

    Source: Sharma et al. 2023, Section 4.1 says that naive averaging is biased; the solution is ours.
    """
    rule, quadratic = _check_closed(algorithm, problem, 0)
    workload = rule.workload(quadratic)
    if not workload.constant:
        raise FedboundsError("local_steps change from round to round, so there is no fixed point")
    steps = np.broadcast_to(workload.steps(0, 0, ()), quadratic.clients)
    clients = _all_clients(rule, quadratic, steps)
    scales = rule.scales(steps, quadratic.weights.numpy())
    weighted = scales[:, None, None] * clients.response
    slope = np.einsum("n,nij,jk->ik", quadratic.scales.numpy(), weighted, quadratic.joint_hessian.numpy())
    if np.linalg.cond(slope) > 1e14:
        raise FedboundsError("there is no single fixed point: the expected step is singular in the model")
    return np.linalg.solve(slope, -np.einsum("nij,nj->i", weighted, quadratic.slopes.numpy()))


def _check_closed(
    algorithm: MinimaxAlgorithm, problem: Problem, rounds: int
) -> tuple[DescentAscentRule, QuadraticMinimax]:
    """The algorithm as a rule and the problem, if their moments close."""
    algorithm.check(problem, rounds)
    rule = algorithm.rule(problem.clients)
    if not isinstance(problem, QuadraticMinimax):
        raise FedboundsError(f"exact moments need a quadratic minimax problem, not {type(problem).__name__}")
    if problem.ripple:
        raise FedboundsError(f"exact moments need a problem without ripple; it has ripple = {problem.ripple:g}")
    if problem.growth:
        raise FedboundsError(f"exact moments need additive noise; it grows with the gradient: {problem.growth:g}")
    if problem.constrained:
        raise FedboundsError("exact moments need a problem whose y is free: projections are not affine")
    if rule.snapshot_period is not None:
        raise FedboundsError(
            f"exact moments are of Fed-Norm-SGDA without snapshots; snapshot_period = {rule.snapshot_period}"
        )
    if rule.workload(problem).random:
        raise FedboundsError("exact moments need local_steps that are given; these are drawn")
    return rule, problem


def _participants(process: Process, clients: int) -> int:
    """P of n clients, drawn uniformly without replacement."""
    if process.clients != clients:
        raise FedboundsError(f"participation is of {process.clients} clients, the problem has {clients}")
    if isinstance(process, WithoutReplacement):
        return process.participants
    if isinstance(process, Full):
        return clients
    raise FedboundsError(
        f"exact moments of minimax algorithms are over clients drawn without replacement, or with full participation: "
        f"the recursion has no covariance of the weights of {process.kind} participation"
    )


def _all_clients(rule: DescentAscentRule, problem: QuadraticMinimax, steps: np.ndarray) -> _LocalWork:
    """What the local steps of every client do in a round; clients who do the same are computed once."""
    moves = blocks(problem, -rule.local_step_size, rule.local_ascent_step_size).numpy()
    hessian, noise, scales = problem.joint_hessian.numpy(), problem.noise_covariance.numpy(), problem.scales.tolist()
    keys = [
        (rule.optimizer_of(i), tau, scale) for i, (tau, scale) in enumerate(zip(steps.tolist(), scales, strict=True))
    ]
    made = {key: _client(key[0], key[1], key[2] * hessian, moves, noise) for key in set(keys)}
    return _LocalWork(*(np.stack(parts) for parts in zip(*(made[key] for key in keys), strict=True)))


def _client(
    optimizer: LocalOptimizer, steps: int, hessian: np.ndarray, moves: np.ndarray, noise: np.ndarray
) -> _LocalWork:
    r"""The affine maps of $d_{k+1} = \rho d_k + v_kG_k$, $u_{k+1} = \alpha u_k + d_{k+1}$, $z_k = z + Du_k$.

    As $G_k = g + HDu_k + \xi_k$, both are linear in g and in the noise: column block 0 holds what multiplies g, column
    block 1 + j what multiplies $\xi_j$.
    """
    d, unit = len(hessian), np.eye(len(hessian))
    a = optimizer.coefficients(steps)
    buffer, iterate = np.zeros((2, 1 + steps, d, d))
    drift, drift_noise = np.zeros((d, d)), 0.0
    for k in range(steps):
        moved = moves[:, None] * iterate
        drift += a[k] * moved[0].T @ moved[0]
        drift_noise += a[k] * float(np.einsum("jab,bc,jac->", moved[1:], noise, moved[1:], optimize=True))
        gradient = hessian @ moved
        gradient[[0, 1 + k]] += unit
        buffer = optimizer.momentum * buffer + optimizer.rate(k) * gradient
        iterate = optimizer.contraction * iterate + buffer
    later = iterate[1:] - a[:, None, None] * unit
    own, indirect = (np.einsum("jab,bc,jdc->ad", N, noise, N, optimize=True) for N in (iterate[1:], later))
    return _LocalWork(iterate[0], own, indirect, drift, np.array(drift_noise), a.sum())


def _per_block(matrix: np.ndarray, descent: int) -> np.ndarray:
    """The traces of both diagonal blocks."""
    diagonal = np.diagonal(matrix)
    return np.array([diagonal[:descent].sum(), diagonal[descent:].sum()])
