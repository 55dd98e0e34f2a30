"""Algorithm 2 on plain records of NumPy arrays: the pseudo-code itself, and nothing of an engine."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.papers.fedau.pseudocode import fedau_weight


def fedau_weights(participated: np.ndarray, cutoff: float) -> np.ndarray:
    """FedAU's weights as the paper computes them, one client at a time.

    Example:
        >>> fedau_weights(np.array([[False], [False], [True], [True], [False]]), cutoff=2).ravel().tolist()
        [1.0, 1.0, 2.0, 1.5, 1.3333333333333333]

    Source: Wang & Ji 2024, Algorithm 2.
    """
    omega = np.ones(participated.shape)
    for t, n in np.ndindex(participated.shape):
        omega[t, n] = fedau_weight(participated[:t, n].tolist(), cutoff)
    return omega
