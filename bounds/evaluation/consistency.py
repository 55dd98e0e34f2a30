"""What is given beside what is known: which constants of a result may be larger than they are, and which smaller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import AGREEMENT, Quantity

Side = Literal["larger", "smaller"]

# What a result says with a constant holds with every larger one too: an upper bound of something.
UPPER_BOUNDS = (
    "smoothness",
    "block_smoothness",
    "condition_number",
    # distances and gaps at the start
    "initial_gap",
    "initial_dual_gap",
    "initial_moreau_gap",
    "initial_squared_distance",
    "weighted_initial_gap",
    # noise, heterogeneity and sizes of gradients
    "gradient_noise",
    "gradient_noise_growth",
    "block_gradient_noise",
    "relative_compression_error",
    "gradient_divergence_sup",
    "cohort_divergence",
    "participation_divergence",
    "window_divergence",
    "weighted_divergence",
    "weighted_heterogeneity",
    "heterogeneity_growth",
    "function_heterogeneity",
    "gradient_bound",
    "stochastic_gradient_bound",
    "descent_gradient_bound",
    "squared_radius",
    # participation and weights
    "participation_norm",
    "weight_deviation",
    "long_run_weight_deviation",
    "window_mean_variance",
    "unavailable_rounds",
    "weight_error",
    "largest_weight_error",
    "weight_second_moment",
    "mean_weight_second_moment",
    "normalized_second_moment",
    "weight_mismatch",
    # what another run, or an earlier step of a proof, leaves behind
    "surrogate_stationarity",
    "surrogate_moreau_stationarity",
    "maximizer_mismatch",
    "proximal_mismatch",
    "squared_direction",
)
# With every smaller one too: a lower bound of something.
LOWER_BOUNDS = ("strong_convexity", "strong_concavity", "sum_of_squared_weights")
MAY_BE: Mapping[str, Side] = {**dict.fromkeys(UPPER_BOUNDS, "larger"), **dict.fromkeys(LOWER_BOUNDS, "smaller")}


def contradicts(concept: str, given: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Whether a given constant contradicts what is known of it, elementwise; of most, any other value does."""
    other = ~np.isclose(given, known, rtol=AGREEMENT, atol=0)
    side = MAY_BE.get(concept)
    if side is None:
        return other
    return other & ((given < known) if side == "larger" else (given > known))


def check_agreement(quantity: Quantity, given: np.ndarray, known: np.ndarray, whose: str) -> None:
    """Refuse a given constant that contradicts what is known of it.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> L = load("fedau/theorem-2").notation["L"]
        >>> check_agreement(L, np.array(1e-3), np.array(1.0), "of the problem")
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: L = 0.001 is given, and it is 1 (of the problem): give that or a larger
        one, ...
    """
    try:
        values, truth = np.broadcast_arrays(given, known)
    except ValueError:
        raise FedboundsError(
            f"{quantity.name} is given with shape {given.shape}, and it has shape {known.shape} ({whose})"
        ) from None
    wrong = contradicts(quantity.concept, values, truth)
    if not wrong.any():
        return
    side = MAY_BE.get(quantity.concept)
    remedy = f"give that or a {side} one, or leave it out" if side else "give that, or leave it out"
    raise FedboundsError(
        f"{quantity.name} = {values[wrong][0]:.12g} is given, and it is {truth[wrong][0]:.12g} ({whose}): {remedy}"
    )
