"""The color and the hatch of a term by its name, the same in every figure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

from fedbounds.figures.charts.picture import COLORS

HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
# One line per color; terms of one form are on different lines.
_LINES = (
    "initial gap, order, dual gap, rounds, initial distance, slope, decrease, last block, above the tangent",
    "local drift, local updates, cohort divergence, bias, noise and heterogeneity, concavity, cut off, "
    "maximizer mismatch, excess",
    "gradient noise, noise, update noise, stale snapshot, weighted objective, limit, bias squared, all three",
    "window divergence, participation, partial participation, masking, direction, mean direction, "
    "masking and sampling, masking of the upload, first",
    "weight error, participation divergence, divergence, initial dual gap, smoothness, sampling, optimization, second",
    "drift noise, descent, rate, ascent from the snapshot, without a cut-off, gap at the snapshot, capped ascent, "
    "mean square, masking in local steps",
    "gradient, descent noise, variance, client sampling, proximal mismatch, growing noise, weight mismatch, squares",
    "full synchronization, local noise, heterogeneity, restart, both, mean, ascent noise, growth",
)
KNOWN: Mapping[str, int] = {name: k for k, line in enumerate(_LINES) for name in line.split(", ")}


def looks(names: Iterable[str]) -> dict[str, int]:
    """The index in `COLORS` and `HATCHES` of every term of a form.

    An unknown name gets an index by its checksum, or the next one that is free in the form.

    Example:
        >>> looks(["gradient noise", "initial gap"])
        {'gradient noise': 2, 'initial gap': 0}
    """
    names = list(names)
    found = {name: KNOWN[name] for name in names if name in KNOWN}
    for name in names:
        if name not in found:
            start = zlib.crc32(name.encode())
            free = [k for k in range(len(COLORS)) if k not in found.values()] or [*range(len(COLORS))]
            found[name] = min(free, key=lambda k: (k - start) % len(COLORS))
    return {name: found[name] for name in names}
