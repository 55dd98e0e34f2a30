"""Checks of every figure that a test draws."""

from itertools import combinations
from typing import Any

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedbounds.figures.charts.picture import Picture

LEAST_CONTRAST = 0.2  # difference of luminance at which two grays are distinguishable


@pytest.fixture(autouse=True)
def distinct_in_gray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that draws a picture whose lines are indistinguishable when printed without colors."""
    own = Picture.__init__

    def checked(self: Picture, *args: Any, **more: Any) -> None:
        own(self, *args, **more)
        assert not (pairs := alike_in_gray(self.figure)), f"alike without colors: {pairs}"

    monkeypatch.setattr(Picture, "__init__", checked)


def alike_in_gray(figure: Figure) -> list[tuple[str, str]]:
    """The labels of every pair of lines in one panel that are indistinguishable without colors."""
    return [
        (str(one.get_label()), str(other.get_label()))
        for axes in figure.axes
        for one, other in combinations([line for line in axes.get_lines() if str(line.get_label())[:1] != "_"], 2)
        if _looks(one) == _looks(other) and abs(_luminance(one) - _luminance(other)) < LEAST_CONTRAST
    ]


def _looks(line: Line2D) -> tuple[object, ...]:
    dashes = line._unscaled_dash_pattern if line.get_linestyle() != "None" else None  # type: ignore[attr-defined]
    marker = line.get_marker()
    return dashes, line.get_linewidth(), marker, marker != "None" and line.get_fillstyle()


def _luminance(line: Line2D) -> float:
    red, green, blue = to_rgb(line.get_color())
    return 0.299 * red + 0.587 * green + 0.114 * blue
