"""Slow references of Fed-Norm-SGDA, Fed-Norm-SGDA+ and Local SGDA (Sharma et al. 2023), line by line.

Every algorithm takes the problem, the weights q (T, n) with which clients are drawn, zero for those who are not (1/P
for P clients without replacement), the first model z0 (d,), which is x and then y, and the streams of one seed, and
returns the list of models z_0, ..., z_T. Of client i in round t, `tau[t][i]` are the local steps; the weights `w[t][i]`
and `tau_eff[t]`, fixed in the theory, may change with them.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import LocalOptimizer
from fedbounds.empirical.problems import Minimax
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import Steps, Vector, local_work

Coefficients = Callable[[int, int], float]  # a^(j)(k), 0 <= j < k
Gradients = Callable[[Vector, Vector], tuple[Vector, Vector]]  # (x, y) -> grad_x f_i, grad_y f_i, at one sample


def sgda(j: int, k: int) -> float:
    """Appendix A.1: plain descent and ascent."""
    return 1.0


def variable_rates(v: Sequence[float]) -> Coefficients:
    """Appendix A.1: the j-th step is v_j times as long."""
    return lambda j, k: v[j]


def momentum(rho: float) -> Coefficients:
    """Appendix A.1: heavy-ball steps."""
    return lambda j, k: (1 - rho ** (k - j)) / (1 - rho)


def proximal(alpha: float) -> Coefficients:
    """Outside the theory: every step first returns part of the way to the received model."""
    return lambda j, k: alpha ** (k - 1 - j)


def any_optimizer(rho: float, v: Sequence[float] | None, alpha: float) -> Coefficients:
    """Heavy-ball steps of variable rates that are drawn back to the received model."""
    return lambda j, k: (1.0 if v is None else v[j]) * sum(alpha ** (k - 1 - i) * rho ** (i - j) for i in range(j, k))


def sampling(problem: Minimax, i: int, t: int, streams: Streams) -> Callable[[], Gradients]:
    """Every call draws a sample xi anew from the place (round t, client i) of the noise: client i's gradients at it."""
    rng, name = streams.generator("noise", t, i), torch.tensor([[i]])

    def draw() -> Gradients:
        xi = problem.draw(rng, i)
        drawn = None if xi is None else torch.from_numpy(np.asarray(xi))[None, None]
        if drawn is not None and drawn.is_floating_point():
            drawn = drawn.to(problem.dtype)

        def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
            z = problem.join(x, y)
            return problem.split(problem.stochastic_gradient(z[None, None], name, drawn)[0, 0])

        return gradients

    return draw


def sampled_gradients(draw: Callable[[], Gradients], x: Vector, y: Vector, snapshot: Vector | None) -> list[Vector]:
    """G^x and G^y; Fed-Norm-SGDA+ takes the latter at the snapshot of x, with the same sample."""
    gradients = draw()
    G_x, G_y = gradients(x, y)
    return [G_x, G_y if snapshot is None else gradients(snapshot, y)[1]]


def local_map(
    problem: Minimax,
    draw: Callable[[], Gradients],
    x: Vector,
    y: Vector,
    snapshot: Vector | None,
    tau: int,
    a: Coefficients,
    eta_x: float,
    eta_y: float,
) -> tuple[Vector, Vector]:
    """Eq. (12): the normalized sums g_x and g_y of one client. Where y is constrained, every move of y is projected."""
    x_k, y_k = x, y
    G = []
    for k in range(tau):
        G.append(sampled_gradients(draw, x_k, y_k, snapshot))
        before, x_k, y_free = y_k, x, y
        for j in range(k + 1):
            x_k = x_k - eta_x * a(j, k + 1) * G[j][0]
            y_free = y_free + eta_y * a(j, k + 1) * G[j][1]
        y_k = y_free
        if problem.constrained:
            moves = [a(j, k + 1) - (a(j, k) if j < k else 0) for j in range(k + 1)]
            y_k = problem.project(before + sum(eta_y * moves[j] * G[j][1] for j in range(k + 1)))
    norm = sum(a(k, tau) for k in range(tau))
    g_x, g_y = torch.zeros_like(x), torch.zeros_like(y)
    for k in range(tau):
        g_x = g_x + a(k, tau) / norm * G[k][0]
        g_y = g_y + a(k, tau) / norm * G[k][1]
    return g_x, g_y


def printed_local_steps(
    problem: Minimax,
    draw: Callable[[], Gradients],
    x: Vector,
    y: Vector,
    snapshot: Vector | None,
    tau: int,
    a: Coefficients,
    eta_x: float,
    eta_y: float,
) -> tuple[Vector, Vector]:
    """Algorithm 1, lines 10 to 12, as printed: the k-th gradient has one coefficient for good, a^(k)(tau).

    For momentum this is another algorithm than eq. (12): there the coefficient of a gradient grows from step to step.
    """
    x_k, y_k = x, y
    norm = sum(a(k, tau) for k in range(tau))
    g_x, g_y = torch.zeros_like(x), torch.zeros_like(y)
    for k in range(tau):
        G_x, G_y = sampled_gradients(draw, x_k, y_k, snapshot)
        x_k = x_k - eta_x * a(k, tau) * G_x
        y_k = problem.project(y_k + eta_y * a(k, tau) * G_y)
        g_x = g_x + a(k, tau) / norm * G_x
        g_y = g_y + a(k, tau) / norm * G_y
    return g_x, g_y


def fed_norm_sgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    tau: Steps,
    a: Sequence[Coefficients],
    w: Sequence[Sequence[float]],
    tau_eff: Sequence[float],
    eta_x: float,
    eta_y: float,
    gamma_x: float,
    gamma_y: float,
    S: int | None = None,
    printed: bool = False,
) -> list[Vector]:
    """Algorithm 1 with eqs. (3) and (12); with S, Fed-Norm-SGDA+, whose snapshot every client knows.

    With `printed`, Algorithm 1 as printed: `printed_local_steps`, and the snapshot goes only to those who take part
    in the round in which it is made. Others use the last that they were sent.
    """
    T, n = q.shape
    steps = printed_local_steps if printed else local_map
    z = [z0]
    sent: dict[int, Vector] = {}
    for t in range(T):
        x, y = problem.split(z[t])
        C = np.flatnonzero(q[t]).tolist()
        if S is not None and t % S == 0:
            for i in C if printed else range(n):
                sent[i] = x
        g_x, g_y = torch.zeros_like(x), torch.zeros_like(y)
        for i in C:
            if S is not None and i not in sent:
                raise FedboundsError(
                    f"client {i} has no snapshot in round {t}: the printed algorithm sends it only to those who take "
                    f"part in rounds 0, {S}, {2 * S}, ..."
                )
            of_client = sampling(problem, i, t, streams)
            g_xi, g_yi = steps(problem, of_client, x, y, sent.get(i), tau[t][i], a[i], eta_x, eta_y)
            g_x = g_x + n * w[t][i] * q[t, i] * g_xi
            g_y = g_y + n * w[t][i] * q[t, i] * g_yi
        y_next = problem.project(y + tau_eff[t] * gamma_y * g_y)
        z.append(problem.join(x - tau_eff[t] * gamma_x * g_x, y_next))
    return z


def local_sgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    tau: Steps,
    p: Sequence[float],
    eta_x: float,
    eta_y: float,
    server: float = 1.0,
    rho: float = 0.0,
    S: int | None = None,
) -> list[Vector]:
    """Local SGDA, and with rho or S or both its variants: the server averages the clients' last iterates.

    `server` is by what their mean move is multiplied, gamma / eta. Where y is constrained, what is averaged is where
    the clients' steps would have led without their projections.
    """
    T, n = q.shape
    z = [z0]
    snapshot = None
    for t in range(T):
        x, y = problem.split(z[t])
        if S is not None and t % S == 0:
            snapshot = x
        new_x, new_y = x, y
        for i in np.flatnonzero(q[t]).tolist():
            draw = sampling(problem, i, t, streams)
            x_i, y_i, y_free = x, y, y
            d_x, d_y = torch.zeros_like(x), torch.zeros_like(y)
            for _ in range(tau[t][i]):
                G_x, G_y = sampled_gradients(draw, x_i, y_i, snapshot)
                d_x, d_y = rho * d_x + G_x, rho * d_y + G_y
                x_i, y_free = x_i - eta_x * d_x, y_free + eta_y * d_y
                y_i = problem.project(y_i + eta_y * d_y)
            new_x = new_x + server * n * p[i] * q[t, i] * (x_i - x)
            new_y = new_y + server * n * p[i] * q[t, i] * (y_free - y)
        z.append(problem.join(new_x, problem.project(new_y)))
    return z


def synchronous_sgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    w: Sequence[float],
    gamma_x: float,
    gamma_y: float,
) -> list[Vector]:
    """One stochastic gradient of each participant in every round."""
    T, n = q.shape
    z = [z0]
    for t in range(T):
        x, y = problem.split(z[t])
        new_x, new_y = x, y
        for i in np.flatnonzero(q[t]).tolist():
            G_x, G_y = sampling(problem, i, t, streams)()(x, y)
            new_x = new_x - gamma_x * n * w[i] * q[t, i] * G_x
            new_y = new_y + gamma_y * n * w[i] * q[t, i] * G_y
        z.append(problem.join(new_x, problem.project(new_y)))
    return z


def fsgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_ascent_step_size: float,
    server_step_size: float,
    server_ascent_step_size: float,
    local_steps: int,
) -> list[Vector]:
    """The server steps along the mean of the participants' sums of gradients."""
    eta_x, eta_y, tau = local_step_size, local_ascent_step_size, local_steps
    gamma_x, gamma_y = server_step_size, server_ascent_step_size
    z = [z0]
    for t in range(len(q)):
        x, y = problem.split(z[t])
        new_x, new_y = x, y
        for i in np.flatnonzero(q[t]).tolist():
            draw = sampling(problem, i, t, streams)
            x_i, y_i = x, y
            for _ in range(tau):
                G_x, G_y = draw()(x_i, y_i)
                x_i, y_i = x_i - eta_x * G_x, problem.project(y_i + eta_y * G_y)
                new_x, new_y = new_x - gamma_x * q[t, i] * G_x, new_y + gamma_y * q[t, i] * G_y
        z.append(problem.join(new_x, problem.project(new_y)))
    return z


# --- from the numbers of an algorithm ---------------------------------------------------------------------------------


def run_fed_norm_sgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_ascent_step_size: float,
    server_step_size: float,
    server_ascent_step_size: float,
    local_steps: object,
    local_epochs: object,
    weights: Sequence[float] | None,
    optimizer: LocalOptimizer | Sequence[LocalOptimizer],
    effective_local_steps: float | None,
    snapshot_period: int | None,
    normalized: bool,
) -> list[Vector]:
    """`fed_norm_sgda`; naive averaging is run in the general form too, by eq. (2)."""
    n = problem.clients
    optimizers = [optimizer] * n if isinstance(optimizer, LocalOptimizer) else optimizer
    a = [any_optimizer(one.momentum, one.rates, one.contraction) for one in optimizers]
    tau = local_work(problem, local_steps, local_epochs, len(q), streams)
    p = problem.weights.tolist() if weights is None else list(weights)
    w, tau_eff = [], []
    for t in range(len(q)):
        norms = [sum(a[i](k, tau[t][i]) for k in range(tau[t][i])) for i in range(n)]
        mean = sum(p[i] * norms[i] for i in range(n))
        w.append(p if normalized else [p[i] * norms[i] / mean for i in range(n)])
        tau_eff.append(effective_local_steps or mean)
    return fed_norm_sgda(
        problem,
        q,
        z0,
        streams,
        tau=tau,
        a=a,
        w=w,
        tau_eff=tau_eff,
        eta_x=local_step_size,
        eta_y=local_ascent_step_size,
        gamma_x=server_step_size,
        gamma_y=server_ascent_step_size,
        S=snapshot_period,
    )


def run_local_sgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    step_size: float,
    ascent_step_size: float,
    local_steps: object,
    local_epochs: object,
    weights: Sequence[float] | None,
    momentum: float,
    snapshot_period: int | None,
) -> list[Vector]:
    """`local_sgda`."""
    tau = local_work(problem, local_steps, local_epochs, len(q), streams)
    p = problem.weights.tolist() if weights is None else weights
    steps = {"eta_x": step_size, "eta_y": ascent_step_size, "rho": momentum, "S": snapshot_period}
    return local_sgda(problem, q, z0, streams, tau=tau, p=p, **steps)


def run_synchronous_sgda(
    problem: Minimax,
    q: np.ndarray,
    z0: Vector,
    streams: Streams,
    *,
    step_size: float,
    ascent_step_size: float,
    weights: Sequence[float] | None,
) -> list[Vector]:
    """`synchronous_sgda`."""
    w = problem.weights.tolist() if weights is None else weights
    return synchronous_sgda(problem, q, z0, streams, w=w, gamma_x=step_size, gamma_y=ascent_step_size)


TWINS = {
    "fed-norm-sgda": run_fed_norm_sgda,
    "local-sgda": run_local_sgda,
    "synchronous-sgda": run_synchronous_sgda,
    "fsgda": fsgda,
}
