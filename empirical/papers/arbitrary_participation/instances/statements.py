"""The left-hand sides of the results of Wang & Ji (2022) on instances of generalized FedAvg."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fedbounds.bounds.theory.measures import EXPECTED
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import Course, ParticipatingRuns

Values = dict[str, np.ndarray]
Left = Callable[[ParticipatingRuns, Course, Values], np.ndarray]


def least_gradient(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """min over t < T of E|grad f(x_t)|^2, (B, 1)."""
    least = run.gradient[:, :-1].min(axis=1, keepdims=True)
    if run.error is not None:
        values["rounding"] = least - (run.gradient - run.error)[:, :-1].min(axis=1, keepdims=True)
    return least


def divergence_of_participants(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """The left-hand side of (11), (B, T)."""
    return z.divergence_of_participants


def sum_of_suprema(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """beta^2 + nu^2, (B, 1)."""
    return values["beta"] ** 2 + values["nu"] ** 2


def windows(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """The left-hand side of (7), (B, K)."""
    values["qbar"] = z.window_weights
    return z.window


def spread(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """Lemma C.1: the largest over the local steps, (B, T)."""
    values["sumsq"] = z.sum_of_squares
    values["rounding"] = 1e-28 * run.drift.max(axis=2) + _noise_rounding(z, values) * z.local_steps
    return run.spread.max(axis=2)


def _noise_rounding(z: ParticipatingRuns, values: Values) -> np.ndarray:
    """Of 1 - S_t, in the unit of the squared noise of one step."""
    return 1e-15 * values["gamma"] ** 2 * values["sigma"] ** 2


def drift(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """Lemma C.2: the largest over the local steps, (B, T)."""
    values["sumsq"] = z.sum_of_squares
    values["gradsq"] = run.gradient[:, np.arange(z.rounds) // z.interval * z.interval]
    return run.drift.max(axis=2)


def gradient_at_starts(z: ParticipatingRuns, run: Course, values: Values) -> np.ndarray:
    """(C.16), with each window's own divergence, (B, K)."""
    starts = np.arange(z.window.shape[1]) * z.interval
    values["delta"] = np.sqrt(z.window)
    values["decrease"] = run.decrease
    if run.error is not None:
        values["rounding"] = run.error[:, starts]
    return run.gradient[:, starts]


LEAST_GRADIENT = ("theorem-3.1", "corollary-3.2", "corollary-3.3", "corollary-4.3")
RESULTS: Mapping[str, Left] = {
    **dict.fromkeys(LEAST_GRADIENT, least_gradient),
    **dict.fromkeys((name + EXPECTED for name in LEAST_GRADIENT), least_gradient),  # a law with one outcome
    "equation-11": divergence_of_participants,
    "proposition-4.1": sum_of_suprema,
    "proposition-4.2": windows,
    "equation-15": windows,
    "lemma-c.1": spread,
    "lemma-c.2": drift,
    "equation-c.16": gradient_at_starts,
}
