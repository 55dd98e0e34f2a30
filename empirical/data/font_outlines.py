"""The digits and letters of the fonts that matplotlib ships, as small gray pictures; their outlines are filled here, so
that the pictures are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from fedbounds.bounds.errors import FedboundsError, MissingExtra

CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"  # the lower-case symbols that differ from their capitals
FACES = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSansMono",
    "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta",
    "DejaVuSansMono-Bold", "cmr10", "cmb10", "cmss10", "cmtt10",
)  # fmt: skip
SIDE = 40  # pixels of a picture
_MARGIN = 2  # of them empty on each side
_FINER = 4  # lines and columns of samples in each pixel
_PIECES = 6  # straight lines for each curve
_SCALE = 2048.0  # pixels in which the library writes one em
_MOVE, _CURVE, _CLOSE = 1, 3, 79  # matplotlib's codes of the points of outlines


@cache
def pictures(characters: str) -> np.ndarray:
    """Every character in every face, as large as fits: ink from 0 to 1, float32 `(faces, characters, SIDE, SIDE)`."""
    found = np.stack([[_coverage(edges) for edges in _edges(face, characters)] for face in FACES])
    found.setflags(write=False)
    return found


def _edges(face: str, characters: str) -> Iterator[np.ndarray]:
    """The straight lines around each character, `(edges, 2, 2)`: from and to, x and y in pixels, y downward."""
    try:
        from importlib.resources import as_file, files

        from matplotlib.font_manager import FontProperties, get_font
        from matplotlib.textpath import TextToPath

        font = files("matplotlib") / "mpl-data" / "fonts" / "ttf" / f"{face}.ttf"
    except ModuleNotFoundError:
        raise MissingExtra("empirical", "matplotlib") from None
    if not font.is_file():
        raise FedboundsError(f"this matplotlib lacks the font {face}.ttf, of which glyphs are made; install it afresh")
    with as_file(font) as path:
        fine, face_of, unit = TextToPath(), FontProperties(fname=str(path)), get_font(str(path)).units_per_EM
        fine.FONT_SCALE = _SCALE
        for character in characters:
            points, codes = fine.get_text_path(face_of, character)
            # the designer's whole and half units, whatever the library rounds on the way
            edges = _flatten_curves(np.round(np.asarray(points) * (2 * unit / _SCALE)) / 2, np.asarray(codes))
            low, high = edges.min((0, 1)), edges.max((0, 1))
            scaled = (edges - (low + high) / 2) * ((SIDE - 2 * _MARGIN) / (high - low).max())
            yield scaled * [1, -1] + SIDE / 2


def _flatten_curves(points: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The closed lines of an outline, its curves of the second degree in pieces."""
    lines: list[tuple[np.ndarray, np.ndarray]] = []
    start = at = points[0]
    place = 0
    while place < len(points):
        code, goal = codes[place], points[place]
        if code == _MOVE:
            start = at = goal
        elif code == _CURVE:
            bend, goal = goal, points[place + 1]
            before = at
            for t in np.arange(1, _PIECES + 1) / _PIECES:
                after = (1 - t) * (1 - t) * before + 2 * t * (1 - t) * bend + t * t * goal
                lines.append((at, after))
                at = after
            place += 1
        else:
            goal = start if code == _CLOSE else goal
            lines.append((at, goal))
            at = goal
        place += 1
    return np.array(lines)


def _coverage(edges: np.ndarray) -> np.ndarray:
    """The share of each pixel inside the lines, those around which they wind: `(SIDE, SIDE)`, float32."""
    samples = SIDE * _FINER
    heights = (np.arange(samples)[:, None] + 0.5) / _FINER
    (x0, y0), (x1, y1) = edges[:, 0].T, edges[:, 1].T
    crossed = (y0 <= heights) != (y1 <= heights)
    lines, which = np.nonzero(crossed)
    share = (heights[lines, 0] - y0[which]) / (y1 - y0)[which]
    right = np.ceil((x0[which] + share * (x1 - x0)[which]) * _FINER - 0.5).astype(int).clip(0, samples)
    turns = np.zeros((samples, samples + 1), dtype=int)
    np.add.at(turns, (lines, right), np.sign(y1 - y0)[which].astype(int))
    inside = turns.cumsum(axis=1)[:, :-1] != 0
    return inside.reshape(SIDE, _FINER, SIDE, _FINER).mean((1, 3)).astype(np.float32)
