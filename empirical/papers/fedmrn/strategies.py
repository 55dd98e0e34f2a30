"""Strategies of hypothesis for a client's round of FedMRN. Needs the extra `testing`."""

from functools import cache
from typing import NamedTuple, get_args

import numpy as np

from fedbounds.empirical.invariants.coverage import SizeClass, with_size_classes
from fedbounds.empirical.invariants.strategies import SearchStrategy, st
from fedbounds.empirical.papers.fedmrn.invariants import MaskCase
from fedbounds.empirical.papers.fedmrn.masked_noise import Masks


class MaskSize(NamedTuple):
    """S local steps, d coordinates."""

    steps: int
    dimension: int


# together they have every S from 2 to 10, d from 1 to 9, and S of 12 and 20
SIZES = (
    MaskSize(6, 3), MaskSize(5, 2), MaskSize(8, 5), MaskSize(10, 1), MaskSize(9, 7), MaskSize(7, 4), MaskSize(3, 6),
    MaskSize(4, 5), MaskSize(6, 8),
    MaskSize(10, 3), MaskSize(5, 5), MaskSize(6, 2), MaskSize(9, 1), MaskSize(7, 7), MaskSize(8, 2), MaskSize(3, 9),
    MaskSize(2, 3), MaskSize(4, 6),
    MaskSize(12, 2), MaskSize(20, 1),
)  # fmt: skip
_NOISE = tuple(sign * k / 8 for k in range(1, 9) for sign in (1, -1))


def mask_cases(*, masks: tuple[Masks, ...] = get_args(Masks)) -> SearchStrategy[MaskCase]:
    """Clients for `check_masking`: drawn ones of up to 4 local steps in up to 2 dimensions, and one of each of `SIZES`.

    Args:
        masks: those to try.

    Example:
        >>> from hypothesis import find
        >>> find(mask_cases(masks=("binary",)), lambda case: case.steps == 2).masks
        'binary'
    """
    return _covering(tuple(masks))


@cache  # the same strategy again is drawn from once
def _covering(masks: tuple[Masks, ...]) -> SearchStrategy[MaskCase]:
    """Small cases with these masks, and those of each of `SIZES`."""
    exact = [_sized(size, masks[place % len(masks)], place) for place, size in enumerate(SIZES)]
    up_to = [_small(masks, size) for size in SIZES]
    return with_size_classes(
        _small(masks, MaskSize(4, 2)), [SizeClass(*pair) for pair in zip(exact, up_to, strict=True)]
    )


@st.composite
def _small(draw: st.DrawFn, masks: tuple[Masks, ...], most: MaskSize) -> MaskCase:
    """A client that is drawn number by number, up to this size."""
    S, d = draw(st.integers(1, most.steps)), draw(st.integers(1, most.dimension))

    def grid(count: int, low: int, high: int, unit: float) -> np.ndarray:
        return unit * np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), dtype=float)

    return MaskCase(
        masks=draw(st.sampled_from(masks)),
        curvatures=grid(d, 0, 8, 0.25),
        center=grid(d, -8, 8, 0.25),
        model=grid(d, -8, 8, 0.25),
        noise=np.array(draw(st.lists(st.sampled_from(_NOISE), min_size=d, max_size=d))),
        chances=grid((S + 1) * d, 0, 15, 1 / 16).reshape(S + 1, d) + 1 / 32,
        coins=grid(S * d, 0, 15, 1 / 16).reshape(S, d) + 1 / 32,
        step_size=draw(st.sampled_from((0.25, 0.0625, 1.0))),
    )


@st.composite
def _sized(draw: st.DrawFn, size: MaskSize, masks: Masks, place: int) -> MaskCase:
    """A client of this size, with values in general position and updates that mostly stay within the noise."""
    rng = np.random.default_rng((draw(st.integers(0, 2**16)), place))
    S, d = size
    model, noise = rng.integers(-8, 9, d) / 4, rng.integers(3, 9, d) / 8 * rng.choice((-1.0, 1.0), d)
    within = rng.choice((0.25, 0.5, 0.75, 1.25), d) * (rng.choice((-1.0, 1.0), d) if masks == "signed" else 1)
    return MaskCase(
        masks=masks,
        curvatures=rng.integers(1, 9, d) / 4,
        center=model + within * noise,
        model=model,
        noise=noise,
        chances=rng.integers(0, 16, (S + 1, d)) / 16 + 1 / 32,
        coins=rng.integers(0, 16, (S, d)) / 16 + 1 / 32,
        step_size=(0.25, 0.5, 0.125)[place % 3],
    )
