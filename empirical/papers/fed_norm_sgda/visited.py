r"""The constants of Theorem 1 where no formula gives them, as of networks: measured along a recorded run.

Both assumptions with two constants are fitted at the recorded states, exactly at each and for both blocks at once: of
all pairs whose line lies above every point, the one that is lowest in the mean. The smoothness is by its secants
between one round's state and the next, jointly in both blocks; the proof has the clients' local states and the
maximizers too.

Source: Sharma et al. 2023, Assumptions 1 to 3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.symbols import NoConstant
from fedbounds.empirical.measured.fits import least_line
from fedbounds.empirical.measured.points import client_gradients, largest_secant
from fedbounds.empirical.measured.visits import NOISE_POINTS, constant, spaced, visits
from fedbounds.empirical.papers.paper import Constants
from fedbounds.empirical.problems import Minimax
from fedbounds.empirical.run_setting import RunSetting
from fedbounds.empirical.trace import Trace


def visited(setting: RunSetting, weights: np.ndarray) -> Constants:
    """Smoothness, noise and heterogeneity of both blocks along a run that recorded its models.

    Args:
        setting: the run.
        weights: w, (clients,).

    Raises:
        FedboundsError: a seed diverged.
    """
    assert isinstance(setting.run, Trace) and isinstance(setting.problem, Minimax)
    return dict(_along(setting.run, setting.problem, tuple(weights.tolist())))


@lru_cache(maxsize=8)
def _along(run: Trace, problem: Minimax, weights: tuple[float, ...]) -> Constants:
    T, recorded = int(run.spec["rounds"]), run.arrays["round"]
    recorded = recorded[recorded < T]
    blocks = (slice(0, problem.descent_dimension), slice(problem.descent_dimension, problem.dimension))
    w = torch.tensor(weights, dtype=torch.float64, device=problem.device)
    own, means, mixed, noises = [], [], [], []
    smoothness, before, why = 0.0, None, ""
    noisy = spaced(recorded, NOISE_POINTS)
    for seed, t, z in visits(run, problem, recorded):
        gradients = client_gradients(problem, z)
        squares = torch.stack([gradients[:, block].double().square().sum(1) for block in blocks])
        means += (squares @ w).tolist()
        mixed += [float((w @ gradients[:, block].double()).square().sum()) for block in blocks]
        if before is not None and before[:2] == (seed, t - 1):
            smoothness = max(smoothness, largest_secant(z, before[2], gradients, before[3]))
        before = seed, t, z, gradients
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
        "smoothness": constant(
            smoothness, False, "largest |grad f_i(u) - grad f_i(v)|/|u - v|", f"between rounds, {rounds}"
        ),
    }
    if not smoothness:
        found["smoothness"] = NoConstant("no two rounds in a row were recorded: simulate with record_every=1")
    if why:
        return found | {"gradient_noise": NoConstant(why), "gradient_noise_growth": NoConstant(why)}
    floor, slope = least_line(np.array(own), np.array(noises))
    where = f"at {len(noisy)} states a seed"
    return found | {
        "gradient_noise": constant(floor**0.5, False, fit, where),
        "gradient_noise_growth": constant(slope**0.5, False, fit, where),
    }
