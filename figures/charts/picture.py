"""Pictures with their data: a figure, its curves, a caption and the provenance of the numbers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.plain_text import as_cell
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import FIGURE, Output, check_outputs, read_checksums, write_outputs
from fedbounds.figures.charts.figure_style import FigureStyle, collect_keys, current_style, use_style
from fedbounds.figures.charts.figure_style import styled as styled
from fedbounds.figures.charts.fitting import finish_figure

ROWS = 300  # of data kept per curve
FORMATS = (".png", ".pdf", ".svg")
# Okabe and Ito's colors, told apart by color-blind readers; in grayscale the line styles tell them apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8c8c00")
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)), (0, (8, 2, 3, 2)), (0, (12, 2, 1, 2)))
DOTTED = ":"  # where a condition fails, and nothing else
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BOUND = "#000000"
CROSSED = "#d00000"
MEASURED = "#882255"  # as dark as no other color of a curve, and no color of a term
_STYLES: WeakKeyDictionary[Figure, FigureStyle] = WeakKeyDictionary()  # in which figures are drawn
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of characters that no figure can show


def with_palette(png: bytes) -> bytes:
    """The PNG in 256 colors: a third of the size, no visible difference."""
    smaller = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        resolution = image.info.get("dpi")
        flat = image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    flat.save(smaller, format="png", optimize=True, **({"dpi": resolution} if resolution else {}))
    return smaller.getvalue()


def as_text(text: str) -> str:
    r"""A user's text in a picture: dollars start no formula, control characters are escaped.

    Example:
        >>> print(as_text("cost in $"), as_text("a\x07b"))
        cost in \$ a\x07b
    """
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in HIDDEN else c for c in text).replace("$", r"\$")


def figure_outputs(path: str | Path) -> tuple[Output, ...]:
    """The files of a figure: itself, its data (.csv) and its manifest (.json) with their checksums."""
    target = Path(path)
    if target.suffix not in FORMATS:
        raise FedboundsError(f"{target}: a figure ends in {', '.join(FORMATS)}")
    manifest = target.with_suffix(".json")
    files = (Output(path, b"", (manifest,)) for path in (target, target.with_suffix(".csv")))
    return *files, Output(manifest, FIGURE)


@contextmanager
def new_figure(width: float, height: float, title: str = "", layout: Any = "constrained") -> Iterator[Figure]:
    """A figure in the current style; when all is drawn it gets its title, its width and a legend that fits."""
    with use_style(style := current_style()), collect_keys() as keys:
        yield (figure := Figure(figsize=(width, height), layout=layout))
        _STYLES[figure] = style
        finish_figure(figure, style, title, keys)


def annotate(axes: Axes, words: str, size: float) -> None:
    """Words in the upper right corner, unless the style is without annotations."""
    if current_style().annotations:
        axes.text(0.97, 0.97, words, transform=axes.transAxes, fontsize=size, va="top", ha="right")


def fit_columns(columns: int, inches: float) -> int:
    """As many of the columns of panels as the width of the style has room for, at so many inches each."""
    width = current_style().inches
    return columns if width is None else max(1, min(columns, int(width / inches)))


def shared_legend(figure: Figure, panels: Iterable[Axes], columns: int) -> None:
    """One legend below all panels, in which each label is once."""
    handles = dict[str, Artist]()
    for axes in panels:
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


@dataclass(frozen=True)
class Curve:
    """One line of a figure: label, x and y, a band where there is one, and, of a bound, whether its conditions hold
    there; shapes all (points,). `legend` is its text in the legend, if that is not the label."""

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    valid: np.ndarray | None = None
    legend: str = field(default="", kw_only=True)

    def since(self, start: float) -> Curve:
        """The part of the curve from `start` on."""
        return self._select(np.asarray(self.x) >= start)

    def thinned(self) -> Curve:
        """At most 300 points, evenly spaced in the index, first and last included."""
        count = len(self.x)
        if count <= ROWS:
            return self
        return self._select(np.unique(np.round(np.linspace(0, count - 1, ROWS)).astype(int)))

    def _select(self, points: np.ndarray) -> Curve:
        band = (None if a is None else np.asarray(a)[points] for a in (self.low, self.high, self.valid))
        return Curve(self.label, np.asarray(self.x)[points], np.asarray(self.y)[points], *band, legend=self.legend)


@dataclass(frozen=True)
class Picture:
    """A drawn figure with its data.

    Args:
        figure: the matplotlib figure.
        caption: what it shows, with the conditions that hold and those that do not, and any scaling-down.
        alternative: one sentence for readers who cannot see it.
        curves: the data, at most 300 rows a curve when saved.
        provenance: specification, seeds, constants: whatever made the numbers.
    """

    figure: Figure
    caption: str
    alternative: str
    curves: Sequence[Curve] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def _repr_png_(self) -> bytes:
        """The image in a notebook."""
        return self._render("png")

    def save(self, path: str | Path, *, force: bool = False) -> list[Path]:
        """Write the figure, its data (.csv) and its manifest (.json) beside it; returns what was written.

        Args:
            path: of the figure.
            force: overwrite files of these names that fedbounds did not write.

        Raises:
            FedboundsError: the ending is not .png, .pdf or .svg, the place cannot be written, or holds such a file.
        """
        outputs = figure_outputs(path)
        check_outputs(outputs, force)
        target, manifest_path = outputs[0].path, outputs[2].path
        image = self._render(target.suffix[1:])
        drawn = with_palette(image) if target.suffix == ".png" else image
        data = self._data()
        # the same figure in another format may be there
        others = {target.with_suffix(ending).name for ending in FORMATS}
        sums = {name: said for name, said in read_checksums(manifest_path).items() if name in others}
        sums |= {
            o.path.name: hashlib.sha256(content).hexdigest() for o, content in zip(outputs, (drawn, data), strict=False)
        }
        manifest = {
            "schema": "fedbounds.figure/1",
            "version": __version__,
            "caption": self.caption.replace(r"\$", "$"),
            "alternative": self.alternative.replace(r"\$", "$"),
            "provenance": _plain(self.provenance),
            "versions": {name: metadata.version(name) for name in ("numpy", "scipy", "sympy", "matplotlib")},
            "sha256": dict(sorted(sums.items())),
        }
        write_outputs(outputs, [drawn, data, (json.dumps(manifest, indent=2) + "\n").encode()], force)
        return [output.path for output in outputs]

    def _render(self, ending: str) -> bytes:
        image = io.BytesIO()
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with use_style(_STYLES.get(self.figure, FigureStyle())):
            self.figure.savefig(image, format=ending, metadata=stamp.get(ending))
        return image.getvalue()

    def _data(self) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        checked = any(curve.valid is not None for curve in self.curves)
        writer.writerow(["curve", "x", "y", "low", "high", *(["valid"] if checked else [])])
        for curve in (c.thinned() for c in self.curves):
            columns = [curve.x, curve.y, curve.low, curve.high]
            for i in range(len(curve.x)):
                row = [
                    as_cell(curve.label.replace(r"\$", "$")),
                    *("" if c is None else f"{float(c[i]):.6g}" for c in columns),
                ]
                holds = "" if curve.valid is None else "yes" if curve.valid[i] else "no"
                writer.writerow([*row, holds] if checked else row)
        return text.getvalue().encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
