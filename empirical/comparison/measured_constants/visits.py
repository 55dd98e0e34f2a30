"""The models that a run recorded, and what is measured at them alike for all papers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.trace import Trace

NOISE_POINTS = 5  # models per seed at which the gradient of every single sample is computed
LOCAL_ROUNDS = 4  # rounds per seed whose local models are computed again


class Visit(NamedTuple):
    """A recorded model."""

    seed: int  # its row
    round: int  # when
    model: Tensor  # (d,)


def visits(run: Trace, problem: Problem, rounds: np.ndarray, seed: int | None = None) -> Iterator[Visit]:
    """The recorded models of some rounds, seed by seed; of all rows by default."""
    for row in range(len(run.arrays["seed"])) if seed is None else (seed,):
        for column in np.flatnonzero(np.isin(run.arrays["round"], rounds)).tolist():
            model, t = torch.from_numpy(run.arrays["model"][row, column]), int(run.arrays["round"][column])
            if not bool(torch.isfinite(model).all()):
                raise FedboundsError(f"the run diverges: seed {run.arrays['seed'][row]} has no finite model at {t}")
            yield Visit(row, t, model.to(problem.device, problem.dtype))


def recorded_products(run: Trace, seed: int, t: int) -> np.ndarray | None:
    """The products of the clients' gradients at a recorded round, (N, N), of a row; None if they were not recorded."""
    if "gradient_products" not in run.arrays:
        return None
    return run.arrays["gradient_products"][seed, np.searchsorted(run.arrays["round"], t)]


def evenly_spaced(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the values, evenly spaced, with the first and the last."""
    return values[np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))]


@lru_cache(maxsize=8)
def largest_noise(run: Trace, problem: Problem) -> Constant | NoConstant:
    """The root of the largest variance of a client's stochastic gradient, at some recorded models.

    The variance is exact at a point; the proofs need it at all local models, so the largest value is a lower estimate.
    """
    rounds = evenly_spaced(run.arrays["round"], NOISE_POINTS)
    try:
        largest = max(float(problem.gradient_variance(at.model).max()) for at in visits(run, problem, rounds))
    except FedboundsError as error:
        return NoConstant(str(error))
    note = (
        f"lower estimate: exact variance of a minibatch gradient, largest over clients at {len(rounds)} models a seed"
    )
    return Constant(largest**0.5, "estimated", note)


def constant(value: float, complete: bool, what: str, where: str) -> Constant:
    """A supremum along a run: `trajectory` where nothing was left out, else `estimated`, from below."""
    if complete:
        return Constant(value, "trajectory", f"{what} {where}")
    return Constant(value, "estimated", f"lower estimate: {what} {where}")
