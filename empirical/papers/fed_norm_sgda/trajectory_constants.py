r"""The constants of Theorem 1 where no formula gives them, as of networks: measured along a recorded run.

Both assumptions with two constants are fitted at the recorded states, exactly at each and for both blocks at once: of
all pairs whose line lies above every point, the one that is lowest in the mean. The smoothness is by its secants,
jointly in both blocks, between pairs of points of the proof: a client's local states and the state that it received,
$(x_t,y_t)$ and $(x_t,y^*(x_t))$, and one round's state and the next, where both were recorded.

Source: Sharma et al. 2023, Assumptions 1 to 3.
"""

from functools import lru_cache

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import NoConstant
from fedbounds.empirical.algorithms import MinimaxAlgorithm
from fedbounds.empirical.algorithms.descent_ascent import DescentAscent, DescentAscentRule
from fedbounds.empirical.comparison.measured_constants import (
    LOCAL_ROUNDS,
    NOISE_POINTS,
    constant,
    evenly_spaced,
    largest_secant,
    visits,
)
from fedbounds.empirical.comparison.paper_runs import Constants
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.problems import ExactEnvelope, Minimax
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines.masked_batch import MaskedBatch
from fedbounds.empirical.simulation.trace import Trace


def measure_along_run(setting: RunSetting, weights: np.ndarray) -> Constants:
    """Smoothness, noise and heterogeneity of both blocks along a run that recorded its models."""
    run, problem, algorithm = setting.run, setting.problem, setting.algorithm
    assert isinstance(run, Trace) and isinstance(problem, Minimax) and isinstance(algorithm, MinimaxAlgorithm)
    known = "participation_weight" in run.arrays or setting.q is not None
    present = setting.weights() != 0 if known else np.zeros((len(run.seed), 0, problem.clients), dtype=bool)
    weighted = tuple(weights.tolist())
    return dict(_measure(run, problem, algorithm.rule(problem.clients), weighted, present.shape, present.tobytes()))


@lru_cache(maxsize=8)
def _measure(
    run: Trace,
    problem: Minimax,
    rule: DescentAscentRule,
    weights: tuple[float, ...],
    shape: tuple[int, ...],
    record: bytes,
) -> Constants:
    present = np.frombuffer(record, dtype=bool).reshape(shape)  # (seeds, T, N), in a form that a cache can hold
    T, recorded = int(run.spec["rounds"]), run.arrays["round"]
    recorded = recorded[recorded < T]
    blocks = (slice(0, problem.descent_dimension), slice(problem.descent_dimension, problem.dimension))
    w = torch.tensor(weights, dtype=torch.float64, device=problem.device)
    own, means, mixed, noises = [], [], [], []
    secant, before, why = 0.0, None, ""
    noisy = evenly_spaced(recorded, NOISE_POINTS)
    # what clients hold beside the state, a snapshot, may be older than any recorded state
    local = shape[1] > 0 and rule.snapshot_period is None
    chosen = evenly_spaced(recorded, LOCAL_ROUNDS) if local else recorded[:0]
    for seed, t, z, _ in visits(run, problem, recorded):
        gradients = client_gradients(problem, z)
        squares = torch.stack([gradients[:, block].double().square().sum(1) for block in blocks])
        means += (squares @ w).tolist()
        mixed += [float((w @ gradients[:, block].double()).square().sum()) for block in blocks]
        if before is not None and before[:2] == (seed, t - 1):
            secant = max(secant, largest_secant(z, before[2], gradients, before[3]))
        before = seed, t, z, gradients
        if t in chosen:
            streams = Streams(int(run.seed[seed]), run.spec.get("streams", {}))
            for who, states in local_states(problem, rule, z, np.flatnonzero(present[seed, t]), streams, t):
                there = problem.gradient(states[None], who[None])[0]
                secant = max(secant, largest_secant(states, z, there, gradients[who]))
        if t in noisy and isinstance(problem, ExactEnvelope):
            x, _ = problem.split(z)
            best = problem.join(x, problem.best_response(x))
            secant = max(secant, largest_secant(z, best, gradients, client_gradients(problem, best)))
        if t in noisy and not why:
            try:
                noises += problem.gradient_variance(z, blocks).flatten().tolist()
            except FedboundsError as error:
                why = str(error)
            own += squares.flatten().tolist()
    rounds = f"at {len(recorded)} of {T} rounds"
    fit = "fitted together, the line above all points that is lowest in the mean,"
    offset, growth = least_line(np.array(mixed), np.array(means), 1.0)
    found: Constants = {
        "weighted_heterogeneity": constant(offset**0.5, len(recorded) == T, fit, rounds),
        "heterogeneity_growth": constant(growth**0.5, len(recorded) == T, fit, rounds),
    }
    pairs = [
        *([f"at clients' local states of {len(chosen)} rounds"] if len(chosen) else []),
        *([f"at the maximizers of {len(noisy)} states a seed"] if isinstance(problem, ExactEnvelope) else []),
        f"between rounds that follow each other, {rounds}",
    ]
    slope = "largest |grad f_i(u) - grad f_i(v)|/|u - v|"
    found["smoothness"] = constant(secant, False, slope, ", ".join(pairs))
    if not secant:
        apart = "no two states that differ can be compared"
        found["smoothness"] = NoConstant(f"{apart}: simulate with record_participation=True, or record_every=1")
    if why:
        return found | {"gradient_noise": NoConstant(why), "gradient_noise_growth": NoConstant(why)}
    floor, rise = least_line(np.array(own), np.array(noises))
    where = f"at {len(noisy)} states a seed"
    return found | {
        "gradient_noise": constant(floor**0.5, False, fit, where),
        "gradient_noise_growth": constant(rise**0.5, False, fit, where),
    }


def local_states(
    problem: Minimax, rule: DescentAscentRule, z: Tensor, clients: np.ndarray, streams: Streams, t: int
) -> list[tuple[Tensor, Tensor]]:
    """The points of each local step of a round that was run, computed again from its own random numbers.

    Of each step: the clients that still compute, (s,), and the points at which their gradients are taken, (s, d).
    """
    steps = rule.workload(problem).steps(t, t, [streams]).reshape(-1)[clients]
    order = np.argsort(-steps, kind="stable")
    seen: list[Tensor] = []
    engine = MaskedBatch(problem, DescentAscent(rule, problem).local)
    names = torch.from_numpy(clients[order]).to(z.device)
    drawn = engine.draw_steps(clients[order], steps[order], t, [streams] * len(order))
    engine.local_sums(z.expand(len(order), -1), names, steps[order], drawn, watch=seen.append)
    return [(names[: len(states)], states.clone()) for states in seen]


def least_line(x: np.ndarray, y: np.ndarray, least_slope: float = 0.0) -> tuple[float, float]:
    r"""The line $y=a+bx$ with $a\ge0$ and $b\ge b_0$ that lies above all points and nearest to them in the mean.

    An assumption $y\le a+bx$ of two constants does not say which; a larger b allows a smaller a.
    """
    high, wide = float(y.max()) or 1.0, float(x.max()) or 1.0  # so that linprog sees numbers of size 1
    points = np.column_stack([np.ones(len(x)), x / wide])
    bounds = [(0, None), (least_slope * wide / high, None)]
    b = float(linprog(points.mean(axis=0), A_ub=-points, b_ub=-y / high, bounds=bounds).x[1]) * high / wide
    return max(float((y - b * x).max()), 0.0), b  # the intercept anew, so that rounding leaves no point above
