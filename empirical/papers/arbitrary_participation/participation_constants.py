r"""What a record of weights, or a process, implies for the constants of participation.

Source: Wang & Ji 2022, Assumption 3' and Appendix C.
"""

import numpy as np

from fedbounds.bounds.participation.constants import check_weights, window_means
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.papers.arbitrary_participation.divergences import Divergences
from fedbounds.empirical.participation import Process

Constants = dict[str, Constant]


def record_constants(q: np.ndarray, known: Divergences | None, interval: int, rounds: np.ndarray) -> Constants:
    r"""What a record of weights implies, for each horizon."""
    weights = check_weights(q)
    squares, last, windows = (weights**2).sum(axis=1), rounds - 1, rounds // interval - 1
    exact: dict[str, tuple[np.ndarray, str]] = {
        "participation_norm": (np.maximum.accumulate(squares)[last], "largest sum of squared weights of a round"),
    }
    constants: Constants = {
        "sum_of_squared_weights": Constant(np.minimum.accumulate(squares)[last], "exact", "the least over the rounds")
    }
    if known is not None:
        cohort = np.array([known.spread(row) for row in weights])
        windowed = known.combined(window_means(weights, interval))
        exact |= {
            "participation_divergence": (
                np.maximum.accumulate(known.combined(weights))[last],
                f"{known.word}left side of (5), largest over the rounds",
            ),
            "cohort_divergence": (
                np.maximum.accumulate(cohort)[last],
                f"{known.word}left side of (6), largest over the rounds",
            ),
            "window_divergence": (
                np.maximum.accumulate(windowed)[windows],
                f"{known.word}left side of (7), largest over the complete windows",
            ),
        }
    return constants | {name: Constant(np.sqrt(value), "exact", note) for name, (value, note) in exact.items()}


def process_constants(process: Process, known: Divergences | None, interval: int, rounds: np.ndarray) -> Constants:
    r"""What a process implies in expectation over participation, for each horizon."""
    process.require_unit_sum("the theorem")
    T, last, windows = int(rounds.max()), rounds - 1, rounds // interval - 1
    starts = range(0, T - interval + 1, interval)
    if process.stationary:
        T, starts, last, windows = 1, range(1), np.zeros_like(rounds), np.zeros_like(rounds)
    means, variances = (np.array([of(t) for t in range(T)]) for of in (process.mean, process.variance))
    window_covariances = [process.window_covariance(t0, interval) for t0 in starts]
    squares = (variances + means**2).sum(axis=1)
    window_variance = np.array([np.diag(covariance).max() for covariance in window_covariances])

    expected = "largest expected {} over the rounds"
    roots: dict[str, tuple[np.ndarray, str]] = {
        "participation_norm": (np.maximum.accumulate(squares)[last], expected.format("sum of squared weights")),
        "weight_deviation": (
            np.maximum.accumulate(variances.max(axis=1))[last],
            "largest standard deviation of a weight",
        ),
    }
    plain: dict[str, tuple[np.ndarray, str]] = {
        "sum_of_squared_weights": (np.minimum.accumulate(squares)[last], "least expected value over the rounds"),
        "window_mean_variance": (
            np.maximum.accumulate(window_variance)[windows],
            "largest over clients and aligned windows",
        ),
    }
    if known is not None:
        free = process.independent_rounds  # then the weights of a window are independent of the model at its start
        participation = np.array([known.expected(means[t], process.covariance(t, t), free) for t in range(T)])
        cohort = np.array([known.expected_spread(means[t], participation[t]) for t in range(T)])
        windowed = np.array(
            [
                known.expected(process.window_mean(t0, interval), covariance, free)
                for t0, covariance in zip(starts, window_covariances, strict=True)
            ]
        )
        roots |= {
            "participation_divergence": (
                np.maximum.accumulate(participation)[last],
                known.word + expected.format("(5)"),
            ),
            "cohort_divergence": (np.maximum.accumulate(cohort)[last], known.word + expected.format("(6)")),
            "window_divergence": (
                np.maximum.accumulate(windowed)[windows],
                f"{known.word}largest expected (7) over the aligned windows",
            ),
        }
    constants: Constants = {name: Constant(value, "exact", note) for name, (value, note) in plain.items()}
    return constants | {name: Constant(np.sqrt(value), "exact", note) for name, (value, note) in roots.items()}
