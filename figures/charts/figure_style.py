"""The style of figures: width, words, fonts and style sheet, the same for every chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib import style as sheets
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser

from fedbounds.bounds.errors import FedboundsError, unknown_name

STYLE = Path(__file__).with_name("fedbounds.mplstyle")
WIDTHS = {"column": 3.5, "page": 7.0}  # inches
NARROWEST, WIDEST = 1.5, 40.0  # inches
SMALLEST, LARGEST = 4.0, 40.0  # points
SIZES = ("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize")
SMALL = 8.0  # points: the font size of a figure for a column


class StyleOptions(TypedDict, total=False):
    """The keyword arguments of charts: the fields of `FigureStyle` except the title."""

    width: str | float | None
    xlabel: str | None
    ylabel: str | None
    labels: Mapping[str, str]
    font_size: float | None
    style: str | Path | None
    annotations: bool


@dataclass(frozen=True)
class FigureStyle:
    """How a figure is drawn.

    Args:
        width: "column" (3.5 inches), "page" (7 inches) or a number of inches; None: the chart's own.
        title, xlabel, ylabel: in place of the chart's own; "" for none.
        labels: legend entry, panel title, or key of a result (with a form: `KEY:explicit`) to another text.
        font_size: the base size in points, which all text follows; None: 9.5, in a column 8.
        style: the name or the path of a matplotlib style sheet, applied on top of ours.
        annotations: whether notes are written inside the axes.

    Raises:
        FedboundsError: a value is not legal; the message says which are.
    """

    width: str | float | None = None
    title: str | None = None
    xlabel: str | None = None
    ylabel: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    font_size: float | None = None
    style: str | Path | None = None
    annotations: bool = True

    def __post_init__(self) -> None:
        inches = self.inches
        if inches is not None and not NARROWEST <= inches <= WIDEST:
            raise _width_error(self.width)
        if self.font_size is not None and not SMALLEST <= self.font_size <= LARGEST:
            raise FedboundsError(
                f"font size {self.font_size:g} is out of range; give points from {SMALLEST:g} to {LARGEST:g}, e.g. 8"
            )
        texts = {"title": self.title, "xlabel": self.xlabel, "ylabel": self.ylabel}
        sheet = self.read_sheet()
        for name, text in [*texts.items(), *((f"label {key!r}", text) for key, text in self.labels.items())]:
            _check_math(name, text)
            if text and not text.isascii():
                _check_characters(name, text, sheet)

    @property
    def inches(self) -> float | None:
        """The width in inches; None for the chart's own."""
        if self.width is None:
            return None
        try:
            return WIDTHS[self.width] if self.width in WIDTHS else float(self.width)
        except (TypeError, ValueError):
            raise _width_error(self.width) from None

    @property
    def points(self) -> float | None:
        """The base font size; None for the style sheet's own."""
        narrow = self.inches is not None and self.inches <= WIDTHS["column"]
        return SMALL if self.font_size is None and self.style is None and narrow else self.font_size

    def read_sheet(self) -> dict[Any, Any]:
        """The settings of the style sheet."""
        if self.style is None:
            return {}
        if str(self.style) in sheets.library:
            found = dict(sheets.library[str(self.style)])
        elif Path(self.style).is_file():
            try:
                found = dict(mpl.rc_params_from_file(self.style, use_default_template=False))
            except ValueError as error:
                raise FedboundsError(f"{self.style} is not a matplotlib style sheet: {error}") from None
        else:
            raise unknown_name("style sheet (a name, or the path of a file)", str(self.style), sheets.available)
        if found.get("text.usetex"):
            raise FedboundsError(
                f"style sheet {self.style}: text.usetex is not supported; remove it, or write .pgf or .tex with compare"
            )
        return found


def _width_error(width: object) -> FedboundsError:
    names = ", ".join(f"{name} ({inches:g} in)" for name, inches in WIDTHS.items())
    return FedboundsError(f"width {width!r} is not legal; give {names}, or inches from {NARROWEST:g} to {WIDEST:g}")


def _check_math(name: str, text: str | None) -> None:
    if text is not None and "$" in text:
        try:
            MathTextParser("path").parse(text)
        except ValueError:
            raise FedboundsError(
                rf"{name} {text!r} is not a legal formula; write mathtext between two $, or \$ for a dollar sign"
            ) from None


def _check_characters(name: str, text: str, sheet: Mapping[Any, Any]) -> None:
    """Refuse characters that the fonts lack: they would be drawn as boxes."""
    with mpl.rc_context({**mpl.rc_params_from_file(STYLE, use_default_template=False), **sheet}):
        fonts = [font_manager.findfont(FontProperties(family=[one])) for one in FontProperties().get_family()]
    known = [font_manager.get_font(path) for path in fonts]
    lacking = sorted({c for c in text if not any(font.get_char_index(ord(c)) for font in known)})
    if lacking:
        raise FedboundsError(
            f"{name}: the font {known[0].family_name} has no {' '.join(lacking)}; name another font in a style sheet "
            "(font.family: ...), --style FILE"
        )


_STYLE: ContextVar[FigureStyle | None] = ContextVar("style", default=None)
_KEYS: ContextVar[dict[str, str] | None] = ContextVar("keys", default=None)


def current_style() -> FigureStyle:
    """The style of the figures that are drawn now."""
    return _STYLE.get() or FigureStyle()


@contextmanager
def use_style(style: FigureStyle) -> Iterator[None]:
    """Draw what is inside in a style, with our style sheet below it; the caller's rcParams are untouched afterwards."""
    token = _STYLE.set(style)
    try:
        sheet = style.read_sheet()
        with mpl.rc_context(fname=str(STYLE)):
            ratio = sheet.get("font.size", mpl.rcParams["font.size"]) / mpl.rcParams["font.size"]
            mpl.rcParams.update({name: ratio * mpl.rcParams[name] for name in SIZES})
            mpl.rcParams.update(sheet)
            yield
    finally:
        _STYLE.reset(token)


@contextmanager
def styled(title: str | None = None, **style: Unpack[StyleOptions]) -> Iterator[None]:
    """Draw what is inside in our style; the caller's rcParams are untouched afterwards.

    Args:
        title: of the figure, in place of the chart's own; "" for none.
        style: `width`, `xlabel`, `ylabel`, `labels`, `font_size`, `style` and `annotations`, as in "Draw a figure for a
            paper". What is left out stays as it is outside.

    Raises:
        FedboundsError: a value is not legal; the message says which are.

    Example:
        >>> import matplotlib as mpl
        >>> with styled(width="column"):
        ...     mpl.rcParams["axes.spines.top"]
        False
    """
    given: dict[str, Any] = dict(style) if title is None else {"title": title, **style}
    with use_style(replace(current_style(), **given)):
        yield


@contextmanager
def collect_keys() -> Iterator[dict[str, str]]:
    """The keys that `name_entry` gives the legend entries of one figure."""
    token = _KEYS.set(keys := {})
    try:
        yield keys
    finally:
        _KEYS.reset(token)


def name_entry(text: str, *keys: str) -> str:
    """The text of a legend entry, which option `labels` also finds by these keys."""
    if (known := _KEYS.get()) is not None:
        known.update(dict.fromkeys(keys, text))
    return text


def find_entry(given: str, keys: Mapping[str, str]) -> str:
    """The text of the legend entry that a user means by a key.

    Example:
        >>> find_entry("a/theorem-1:sharp", {"a/theorem-1 [sharp:B3]": "Theorem 1", "measured": "measured (exact)"})
        'Theorem 1'
    """
    if given in keys:
        return keys[given]
    key, form = re.fullmatch(r"(.*?)\s*(?:[:\[](.*?)\]?)?", given, re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess]
    close = ("]", ":") if form else ("",)
    start = f"{key} [{form or ''}"
    found = {known: text for known, text in keys.items() if known.startswith(tuple(start + end for end in close))}
    if not found:
        raise unknown_name("legend entry or panel title", given, keys)
    if len(set(found.values())) > 1:
        forms = ", ".join(known.replace(" [", ":").removesuffix("]") for known in found)
        raise FedboundsError(f"label {given!r} is ambiguous; name the form: {forms}")
    return next(iter(found.values()))
