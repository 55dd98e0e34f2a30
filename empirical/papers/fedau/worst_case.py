"""FedAvg with weights 1/p_n and Bernoulli participation as a performance-estimation problem."""

from collections.abc import Sequence

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification import worst_case as estimation

THEOREMS = ("fedau/theorem-b.4.1", "fedau/theorem-2")


def known_participation(
    *,
    rounds: int,  # T
    blocks: int = 1,  # the run is so many times as long and cut into blocks like this one, as `gap_of_a_block` says
    local_step: float,  # gamma
    rates: Sequence[float],  # p_n of every client
    local_steps: int = 1,  # I
    server_multiplier: float = 1.0,  # eta
    smoothness: float = 1.0,  # L of every client's function
    gap: float = 1.0,  # F
    gap_to: estimation.GapTo = "infimum",  # whether F is f(x_0) less the infimum, or less E f(x_T)
    # the average over t < T, or the least of the expected squared norms for t < T, or for t <= T
    measure: estimation.Measure = "average",
    noise: float = 0.0,  # sigma, the root of the variance of every stochastic gradient
    # delta, the most that a client's gradient differs from that of f, at the models of the server
    divergence: float = 0.0,
) -> estimation.WorstCase:
    r"""The largest $\frac1T\sum_t\mathbb E\|\nabla f(x_t)\|^2$ of Algorithm 1 with weights $\omega_n=1/p_n$.

    In a round client n takes part with probability $p_n$, and

    $$x_{t+1}=x_t+\frac\eta N\sum_n\frac{\mathbb 1_t^n}{p_n}\Delta_t^n,\qquad
      \mathbb E\frac{\mathbb 1_t^n}{Np_n}=\frac1N,\qquad \mathrm{Var}\frac{\mathbb 1_t^n}{Np_n}=\frac{1-p_n}{N^2p_n}.$$

    Source: Wang and Ji 2024, Algorithm 1 and Appendix A.3.
    """
    estimation.whole(local_steps=local_steps, rounds=rounds)
    estimation.positive(local_step=local_step, smoothness=smoothness)
    estimation.positive(server_multiplier=server_multiplier)
    estimation.nonnegative(noise=noise, divergence=divergence)
    p = np.asarray(rates, dtype=float)
    if p.ndim != 1 or not p.size or (p <= 0).any() or (p > 1).any():
        raise FedboundsError(f"rates = {rates} must be one probability above 0 for each client")
    mean, covariance = np.full(p.size, 1 / p.size), np.diag((1 - p) / p) / p.size**2
    run, unit = estimation.Estimation(clients=p.size), smoothness * estimation.gap_of_a_block(gap, blocks, gap_to)
    x = run.start
    for _ in range(rounds):
        gradient = run.record_gradient(x)
        if p.size > 1:
            for f in run.functions:
                run.at_most((f.gradient(x) - gradient) ** 2, divergence**2 / unit)
        local, own = dict.fromkeys(range(p.size), x), estimation.Locally(run)
        for _ in range(local_steps):
            at = own.stochastic_gradients(local, noise / unit**0.5)
            local = {n: y - local_step * smoothness * at[n] for n, y in local.items()}
        x = x + server_multiplier * run.sampled({n: y - x for n, y in local.items()}, mean, covariance)
    run.record_gradient(x)
    value, primal = run.worst_gradients(measure, gap_to, unit)
    constants = {
        "L": smoothness,
        "F": gap,
        "H": gap,
        "I": local_steps,
        "T": rounds * blocks,
        "N": p.size,
        "p": p,
        "omega": 1 / p,
        "W": 0.0,
        "Wmax": 0.0,
        "Q": float((1 / p).mean()),
        "gamma": local_step,
        "eta": server_multiplier,
        "sigma": noise,
        "delta": divergence,
        "deltatilde": divergence,
    }
    random = noise > 0 or bool(covariance.any())
    attained = p.size == blocks == 1 and not random
    return estimation.WorstCase(
        "FedAvg with weights 1/p_n", THEOREMS, measure, value, primal, attained, constants, random
    )


WORST_CASES = {"known-participation": known_participation}
