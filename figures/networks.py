"""The gradient norm of a network under a theorem of a paper: runs of one setting, the picture, and what is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedbounds.empirical.confront import Confrontation
from fedbounds.empirical.confront_sweep import confront_sweep
from fedbounds.empirical.sweep import resolve
from fedbounds.figures.claims import Claim
from fedbounds.figures.overlay import overlay
from fedbounds.figures.paper_gallery import AnyScale, PaperGallery
from fedbounds.figures.picture import Picture

CLEAR = 2  # standard errors beyond which a crossing is one


def along_the_run(gallery: PaperGallery[AnyScale], setting: Mapping[str, Any], result: str) -> Confrontation:
    """The runs of one setting under a result, with the constants that were measured along them.

    Args:
        gallery: where runs are kept, how many processes make them, and on which device.
        setting: a sweep of one setting, as in a file of `fedbounds confront`.
        result: its key.
    """
    (found,) = confront_sweep(
        resolve(setting, source=str(setting["name"])),
        result,
        results=gallery.results,
        workers=gallery.workers,
        device=gallery.device,
        progress=gallery.progress,
    ).values()
    return found


def network_picture(comparison: Confrontation, title: str, setting: Mapping[str, Any], words: str) -> Picture:
    """The overlay of such runs.

    Args:
        comparison: from `along_the_run`.
        title: above the picture.
        setting: of the runs, for the manifest.
        words: what was run, and at which scale.
    """
    drawn = overlay(comparison, title)
    caption = f"{title}. {words} No guarantee: constants that are measured along a run say nothing beyond it. "
    shown = f"{drawn.caption[0].upper()}{drawn.caption[1:]}"
    return replace(drawn, caption=caption + shown, provenance={**drawn.provenance, "setting": dict(setting)})


def stays_below(comparison: Confrontation) -> Claim:
    """What a theorem says of the runs, if the constants along them are those of the problem.

    Agrees if nothing is above the bound where its conditions hold, disagrees if something is by more than two standard
    errors; without conditions that hold, or within that, it cannot be told.
    """
    c = comparison
    ratio = (
        f"measured {c.measured[-1]:.3g}, bound {c.bound[-1]:.3g}, ratio {c.ratio[-1]:.2g} at T = {int(c.rounds[-1])}"
    )
    where = f"conditions hold at {np.count_nonzero(c.valid)} of {len(c.rounds)} T"
    crossed = f"crossed at {len(c.covered_crossings)} of them" if c.covered_crossings.size else "never crossed there"
    error = 0.0 if c.standard_error is None else CLEAR * c.standard_error
    clear = bool(((c.measured - error > c.bound) & c.valid).any())
    agrees = False if clear else True if c.valid[-1] and not c.covered_crossings.size else None
    return Claim(
        c.result.source.number,
        f"the {c.measure.aggregate} {c.measure.of} of a CNN stays below the bound (constants of the run)",
        f"{ratio}, mean of {c.seeds} seeds; {where}, {crossed}",
        agrees,
    )
