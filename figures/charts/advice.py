"""Advice as a picture: what the target costs over the number of local steps."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

import numpy as np

from fedbounds.bounds.advice.advise import Advice, Advised
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import Curve, Picture

UNITS = {"seconds": "time to the target (s)", "rounds": "rounds to the target",
         "gradients": "gradients to the target", "bits": "bits to the target"}  # fmt: skip


def advice_picture(found: Advice) -> Picture:
    """The cost of the target over the number of local steps, all else optimal; a panel for each left-hand side."""
    goal = found.question.minimize
    groups = {}
    for measure, rows in found.groups:
        drawn = [row for row in rows if row.curve and not row.coverage.mark]
        curves = [
            Curve(
                f"{_name(row)} [{row.coverage.form}]{'' if row.guarantee else ', no guarantee'}",
                np.array([next(iter(choice.whole.values())) for choice in row.curve], dtype=float),
                np.array([choice.goal for choice in row.curve]),
            )
            for row in drawn
        ]
        if curves:
            title = "\n".join(wrap(f"bounds the {measure}", 60))
            groups[title] = curves
    if not groups:
        raise FedboundsError("there is nothing to draw: no proved result reaches the target with local steps to choose")
    target = f"target {found.question.target:g} for the {found.measured}"
    reasons = sorted({reason for _, rows in found.groups for row in rows for reason in row.why_not})
    best = ", ".join(
        f"{_name(row)}: {_numbers(row.curve[int(np.argmin([c.goal for c in row.curve]))].whole)}"
        for _, rows in found.groups for row in rows[:1] if row.curve
    )  # fmt: skip
    caption = (
        f"{UNITS[goal].capitalize()} over local steps, {target}, by bounds, not by runs. "
        "For each number of local steps, step sizes and the other whole numbers are the best inside the conditions. "
        f"Least at {best}. Panels bound different things and are not ranked against each other. "
        + (f"Not a guarantee where: {'; '.join(reasons)}." if reasons else "")
    )
    return panels(
        groups,
        x_label="local steps in a round",
        y_labels=[UNITS[goal]] * len(groups),
        title=target,
        caption=caption,
        alternative=f"{UNITS[goal]} falls and then rises, or not, with local steps; least at {best}",
        provenance={"advice": found.to_dict()},
        y_scales=("log",) * len(groups),
        x_scale="log",
        legends=len(groups) > 1,
    )


def _name(row: Advised) -> str:
    """A result in words: paper and number."""
    source = load(row.key).source
    return f"{source.paper}, {source.number}"


def _numbers(chosen: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in chosen.items())
