"""Strategies of hypothesis for FedAU's weights: records of participation. Needs the extra `testing`."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.papers.fedau.invariants import WeightCase
from fedbounds.empirical.strategies import st


@st.composite
def weight_cases(draw: st.DrawFn, *, cutoffs: tuple[float, ...] = (2, 3, 5, 1, 20, np.inf)) -> WeightCase:
    """Records of participation for `check_weights`: up to 8 rounds, 2 clients and any
    cut-off.

    Args:
        cutoffs: the K to try; (inf,) for an estimator without.

    Example:
        >>> from hypothesis import find
        >>> find(weight_cases(), lambda case: case.participated.sum() == 2).participated.astype(int).tolist()
        [[1, 1]]
    """
    T, N = draw(st.integers(1, 8)), draw(st.integers(1, 2))
    present = draw(st.lists(st.booleans(), min_size=T * N, max_size=T * N))
    return WeightCase(np.reshape(present, (T, N)), draw(st.sampled_from(cutoffs)))
