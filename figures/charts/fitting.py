"""A drawn figure made to fit: its width and font size, its titles, labels and legend inside the canvas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox

from fedbounds.figures.charts.figure_style import SMALL, FigureStyle, find_entry

LEAST_SHRINK = 0.62  # of the height of the panels and of lines, however narrow a figure becomes
WIDE = 0.85  # of the width of a column of panels: the longest title before the panels have their place
EDGE = 0.015  # of the width of the figure that stays free at its edges
DECADE = 10.0
SHORT = 8  # characters: a line is no shorter
LESS = 0.98  # as glyphs do not shrink in proportion
LITTLE = 0.85  # share of its size to which a text shrinks before it is broken
NEXT = 0.93  # share of the length of lines that is tried next


def finish_figure(figure: Figure, style: FigureStyle, title: str, keys: Mapping[str, str]) -> None:
    """Apply a style to a figure that is drawn, and make its words fit; `keys` finds legend entries by other names."""
    dpi = figure.dpi
    if isinstance(saved := mpl.rcParams["savefig.dpi"], int | float):
        figure.set_dpi(saved)  # hinting makes the width of text depend on it
    handles = [_handles(figure, legend) for legend in figure.legends]
    _replace_entries(figure, style, keys)
    _replace_words(figure, style, title)
    height, words = figure.get_figheight(), _legend_height(figure)
    if style.points is not None:
        _scale_fonts(figure, style.points / mpl.rcParams["font.size"])
    if style.inches is not None:
        share = max(style.inches / figure.get_figwidth(), LEAST_SHRINK)
        figure.set_size_inches(style.inches, words + (height - words) * share)
        for line in (line for axes in figure.axes for line in axes.get_lines()):
            line.set_linewidth(line.get_linewidth() * min(1.0, share))
            line.set_markersize(line.get_markersize() * min(1.0, share))
            line.set_markeredgewidth(line.get_markeredgewidth() * min(1.0, share))
    for legend, artists in zip(list(figure.legends), handles, strict=True):
        _fit_legend(figure, legend, artists, style.inches is not None)
    if (more := _legend_height(figure) - words) > 0 or style.inches is not None:
        figure.set_figheight(figure.get_figheight() + more)
    _fit_words(figure)
    figure.set_dpi(dpi)


def _fit_words(figure: Figure) -> None:
    """Break titles and labels that are wider than the figure or the room up to the next panel, or than a panel is high.

    Words that are too long would squeeze the panels; while these are placed, short words of as many lines stand there.
    """
    panels = [axes for axes in figure.axes if axes.get_visible()]
    wide = [*figure.texts, *(text for axes in panels for text in (*_titles(axes), axes.xaxis.label))]
    words = {text: text.get_text() for text in (*wide, *(axes.yaxis.label for axes in panels))}
    heights = {text: _extent(figure, text).height for text in wide}
    for text in filter(Text.get_text, words):
        lines = _extent(figure, text).width / (figure.bbox.width * WIDE / _grid(text)[1]) if text in wide else 1
        text.set_text("\n".join("x" * max(int(np.ceil(lines)), len(words[text].splitlines()))))
    height = figure.get_figheight()
    figure.set_figheight(height + _growth(figure, heights))
    _place_panels(figure)
    for axes in panels:
        axes.yaxis.label.set_text(words[axes.yaxis.label])
        _fit(figure, axes.yaxis.label, axes.get_window_extent().height, "height")
    _place_panels(figure)
    left, right = figure.bbox.width * EDGE, figure.bbox.width * (1 - EDGE)
    boxes = {axes: axes.get_window_extent() for axes in panels}
    rooms = {text: right - _extent(figure, text).x0 for text in figure.texts}
    for axes, box in boxes.items():
        ends = [o.x0 for o in boxes.values() if o.x0 >= box.x1 - 1 and o.y1 > box.y0 and o.y0 < box.y1]
        middle = (box.x0 + box.x1) / 2
        rooms |= dict.fromkeys(_titles(axes), min([right, *ends]) - box.x0)
        rooms[axes.xaxis.label] = 2 * min(middle - left, right - middle)
    for text, room in rooms.items():
        text.set_text(words[text])
        _fit(figure, text, room)
    figure.set_figheight(height + _growth(figure, heights))


def _growth(figure: Figure, heights: Mapping[Text, float]) -> float:
    """By how many inches titles and labels of x axes, in all rows of panels, are higher than before."""
    more = {text: max(0.0, _extent(figure, text).height - height) / figure.dpi for text, height in heights.items()}
    in_rows = [_grid(text)[0] * height for text, height in more.items() if text not in figure.texts]
    return sum(more[text] for text in figure.texts) + max(in_rows, default=0.0)


def _grid(text: Text) -> tuple[int, int]:
    """The numbers of rows and columns of panels, of one of which this is a title or a label."""
    spec = text.axes.get_subplotspec() if text.axes else None
    return (spec.get_gridspec().nrows, spec.get_gridspec().ncols) if spec else (1, 1)


def _titles(axes: Axes) -> list[Text]:
    """The titles of a panel as artists: centered and on the left."""
    return [axes.title, vars(axes)["_left_title"]]


def _broken(text: str, most: float) -> str:
    """The text in lines of at most so many characters."""
    return "\n".join(fill(line, max(SHORT, int(most)), break_long_words=False) for line in text.splitlines())


def _longest(*texts: str) -> int:
    return max(len(line) for text in texts for line in text.splitlines())


def _fit(figure: Figure, text: Text, room: float, side: Literal["width", "height"] = "width") -> None:
    """Shrink a text a little, or break it, until it fits into so many pixels; shrink it if one word is too long."""
    words, long = text.get_text(), getattr(_extent(figure, text), side)
    if room < long <= room / LITTLE:
        text.set_fontsize(float(text.get_fontsize()) * LESS * room / long)
        return
    most = _longest(words) * room / long if words else 0.0
    while words and (long := getattr(_extent(figure, text), side)) > room:
        text.set_text(_broken(words, most))
        if most < SHORT and (long := getattr(_extent(figure, text), side)) > room:
            text.set_fontsize(float(text.get_fontsize()) * LESS * room / long)
            return
        most *= NEXT


def whole_ticks(axes: Axes) -> None:
    """Ticks at whole numbers only, for an x axis of counts."""
    low, high = axes.get_xlim()
    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True, min_n_ticks=1))
    elif high / low < DECADE:
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1).tick_values(low, high)
        axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_minor_formatter(NullFormatter())


def _replace_entries(figure: Figure, style: FigureStyle, keys: Mapping[str, str]) -> None:
    """Replace legend entries and panel titles by the texts of a user."""
    if not style.labels:
        return
    boxes = [*figure.legends, *(legend for axes in figure.axes if (legend := axes.get_legend()))]
    texts = [text for box in boxes for text in box.get_texts()]
    texts += [_titles(axes)[1] for axes in figure.axes if len(figure.axes) > 1]
    shown = {text.get_text(): text.get_text() for text in texts if text.get_text()}
    known = {key: text for key, text in keys.items() if text in shown} | shown
    new = {find_entry(given, known): text for given, text in style.labels.items()}
    for text in texts:
        text.set_text(new.get(text.get_text(), text.get_text()))


def _replace_words(figure: Figure, style: FigureStyle, title: str) -> None:
    """Set the title above the figure, and the labels of the axes that a user gives."""
    titled = [axes for axes in figure.axes if axes.get_title(loc="left")]
    if style.title is not None and not title and len(titled) == 1:
        titled[0].set_title("", loc="left")
    if shown := title if style.title is None else style.title:
        figure.suptitle(shown, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    for text, labels in (
        (style.xlabel, [axes.xaxis.label for axes in figure.axes]),
        (style.ylabel, [axes.yaxis.label for axes in figure.axes]),
    ):
        if text is not None:
            first = next((label.get_text() for label in labels if label.get_text()), "")
            for label in labels:
                label.set_text(text if label.get_text() == first else label.get_text())


def _scale_fonts(figure: Figure, factor: float) -> None:
    """Multiply the size of all text."""
    axes_of_ticks = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    ticks = {text for axis in axes_of_ticks for tick in axis.get_major_ticks() + axis.get_minor_ticks()
             for text in (tick.label1, tick.label2)}  # fmt: skip
    for text in {text for text in figure.findobj(Text) if isinstance(text, Text)} - ticks:
        text.set_fontsize(float(text.get_fontsize()) * factor)
    for axis in axes_of_ticks:  # also of ticks that drawing makes
        size = float(axis.get_major_ticks()[0].label1.get_fontsize()) if axis.get_major_ticks() else SMALL
        axis.set_tick_params(which="both", labelsize=size * factor)


def _legend_height(figure: Figure) -> float:
    """The height of the legends below the panels, in inches."""
    return sum(_extent(figure, legend).height for legend in figure.legends) / figure.dpi


def _extent(figure: Figure, artist: Artist) -> Bbox:
    """The box of an artist in pixels, as it would be drawn."""
    canvas = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)
    return artist.get_window_extent(canvas.get_renderer())


def _place_panels(figure: Figure) -> None:
    """Compute where the panels lie."""
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)


def _handles(figure: Figure, legend: Legend) -> list[Artist]:
    """The artists of a legend's entries."""
    own = dict[str, Artist]()
    for axes in figure.axes:
        own |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    pairs = zip(legend.legend_handles, legend.get_texts(), strict=True)
    return [own.get(text.get_text(), artist) for artist, text in pairs if artist is not None]


def _fit_legend(figure: Figure, legend: Legend, handles: Sequence[Artist], from_all: bool) -> None:
    """Draw a legend below the panels again, in as many columns as fit; `from_all`: also in more than before."""
    room = figure.bbox.width * (1 - 2 * EDGE)
    labels, size = [text.get_text() for text in legend.get_texts()], legend.get_texts()[0].get_fontsize()
    if not from_all and _extent(figure, legend).width <= room:
        return
    columns = len(labels) if from_all else vars(legend)["_ncols"]
    while True:
        legend.remove()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=size)
        width = _extent(figure, legend).width
        if width <= room:
            return
        if columns == 1:
            shorter = [_broken(label, _longest(*labels) * NEXT * room / width) for label in labels]
            if shorter == labels:
                return
            labels = shorter
        columns = max(1, columns - 1)
