"""Lines of CSV files, as spreadsheets and other tools write them."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory, read_number
from fedbounds.bounds.inputs.user_files import read_text

PER_CHARACTER = 20  # bytes of memory for each character of a file, about
COMMA, POINT = (re.compile(rf"\s*[+-]?\d*{mark}\d+([eE][+-]?\d+)?\s*") for mark in (",", r"\."))  # in a number


def read_csv(path: str | Path, what: str, largest: int) -> list[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, with their numbers; a line has as many cells as the first.

    Cells are separated by commas, semicolons or tabs, whatever the first line has most of. Without commas between
    cells, numbers may have a decimal comma; they are returned with a point.
    """
    text = read_text(path, f"{what} {path}", largest)
    check_memory(f"{what} {path}, of {len(text)} characters,", PER_CHARACTER * len(text))
    first = next((line for line in io.StringIO(text) if line.strip()), "").strip()
    separator = _separator(first)
    if first == f"sep={separator}":  # as Excel writes it
        text = text.replace(first, "", 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cells)]
    except csv.Error as error:
        raise FedboundsError(f"cannot read {what} {path}: not a CSV file ({error})") from None
    for number, cells in lines:
        if len(cells) != len(lines[0][1]):
            raise FedboundsError(f"{path}, line {number}: {len(cells)} cells, the first line has {len(lines[0][1])}")
    return lines if separator == "," else _with_points(lines, path)


def _separator(first: str) -> str:
    """What separates the cells of a line: a comma, a semicolon or a tab."""
    bare = re.sub('"[^"]*"', "", first)
    if re.fullmatch("sep=[,;\t]", first):
        return first[-1]
    if ";" in bare and all(COMMA.fullmatch(cell) or is_number(cell) for cell in first.split(";")):
        return ";"  # numbers with a decimal comma
    return max(",;\t", key=bare.count)


def _with_points(lines: list[tuple[int, list[str]]], path: str | Path) -> list[tuple[int, list[str]]]:
    """Numbers with a decimal comma, with a point instead."""
    commas = {number for number, cells in lines for cell in cells if COMMA.fullmatch(cell)}
    points = {number for number, cells in lines for cell in cells if commas and POINT.fullmatch(cell)}
    if points:
        raise FedboundsError(
            f"{path}, line {min(points)} has decimal points, and line {min(commas)} decimal commas; use one of them"
        )
    if not commas:
        return lines
    return [(n, [c.replace(",", ".") if COMMA.fullmatch(c) else c for c in cells]) for n, cells in lines]


def is_number(cell: str) -> bool:
    """Whether a cell is a number."""
    try:
        read_number(cell)
    except ValueError:
        return False
    return True
