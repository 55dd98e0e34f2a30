r"""The constants of Theorem 2 where no formula gives them, as of networks: measured along a recorded run.

The divergence at the only points at which the proof uses it, $\mathbf x_t$, exactly at each and for all clients; the
smoothness by its secants between the pairs of points of the proof, $(\mathbf y_{t,i}^n,\mathbf x_t)$ for $F_n$, of
those clients that took part, and for f from one round to the next (the descent lemma uses all points between them).

Source: Wang & Ji 2024, Lemmas B.3.1 to B.3.3.
"""

from functools import lru_cache

import numpy as np
import torch

from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison import measured_constants
from fedbounds.empirical.comparison.paper_runs import Constants
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.trace import Trace


def measure_along_run(setting: RunSetting) -> Constants:
    """Smoothness, noise and divergence along a run that recorded its models."""
    assert isinstance(setting.run, Trace)
    if setting.logged:
        return _logged(setting.run, setting.total)
    present = setting.weights() != 0
    found = _measure(setting.run, setting.problem, setting.algorithm, present.shape, present.tobytes())
    return {**found, "gradient_noise": measured_constants.largest_noise(setting.run, setting.problem)}


@lru_cache(maxsize=8)
def _measure(
    run: Trace, problem: Problem, algorithm: Algorithm, shape: tuple[int, ...], record: bytes
) -> dict[str, Constant]:
    present = np.frombuffer(record, dtype=bool).reshape(shape)  # (seeds, T, N), in a form that a cache can hold
    T = shape[1]
    recorded = run.arrays["round"][run.arrays["round"] < T]
    chosen = measured_constants.evenly_spaced(recorded, measured_constants.LOCAL_ROUNDS)
    divergence = smoothness = 0.0
    before = None
    near = np.concatenate([chosen, recorded[np.isin(recorded + 1, recorded) | np.isin(recorded - 1, recorded)]])
    for seed, t, x, _ in measured_constants.visits(run, problem, recorded):
        known = measured_constants.recorded_products(run, seed, t)
        if known is not None and t not in near:  # no vector is needed there
            divergence = max(divergence, _largest_distance(known))
            continue
        gradients = client_gradients(problem, x)
        f = gradients.mean(0)
        divergence = max(divergence, float(torch.linalg.vector_norm((gradients - f).double(), dim=1).max()))
        if before is not None and before[:2] == (seed, t - 1):
            smoothness = max(smoothness, measured_constants.largest_secant(x, before[2], f, before[3]))
        before = seed, t, x, f
        who = np.flatnonzero(present[seed, t])
        if t in chosen and who.size:
            streams = Streams(int(run.arrays["seed"][seed]), run.spec.get("streams", {}))
            names = torch.from_numpy(who).to(problem.device)
            for y in measured_constants.local_models(problem, algorithm.local, x, who, streams, t):
                own = problem.gradient(y[None], names[None])[0]
                smoothness = max(smoothness, measured_constants.largest_secant(y, x, own, gradients[names]))
    rounds = f"at {len(recorded)} of {T} rounds"
    pairs = f"at participants' local models of {len(chosen)} of {T} rounds, and of f {rounds}"
    return {
        "gradient_divergence_sup": measured_constants.constant(
            divergence, len(recorded) == T, "largest |grad F_n - grad f|", rounds
        ),
        "smoothness": measured_constants.constant(smoothness, False, "largest |grad F(u) - grad F(v)|/|u - v|", pairs),
    }


def _logged(run: Trace, T: int) -> Constants:
    """The divergence of a run made elsewhere that recorded its clients' gradients."""
    if "gradient_products" not in run.arrays:
        return {}
    recorded = run.arrays["round"] < T
    largest = _largest_distance(run.arrays["gradient_products"][:, recorded])  # of (seeds, R, N, N)
    rounds = f"at {recorded.sum()} of {T} rounds"
    divergence = measured_constants.constant(largest, int(recorded.sum()) == T, "largest |grad F_n - grad f|", rounds)
    return {"gradient_divergence_sup": divergence}


def _largest_distance(products: np.ndarray) -> float:
    """The largest |grad F_n - grad f| from the products of the clients' gradients, (..., N, N)."""
    own = np.diagonal(products, axis1=-2, axis2=-1)
    squares = own - 2 * products.mean(axis=-1) + products.mean(axis=(-1, -2))[..., None]
    return float(np.maximum(squares, 0.0).max()) ** 0.5
