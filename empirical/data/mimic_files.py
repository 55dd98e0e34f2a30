"""Reader of the benchmark of in-hospital mortality on MIMIC-III, as its public scripts write it."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory, quote
from fedbounds.bounds.inputs.user_files import read_text

HOURS = 48
_EPSILON = 1e-6  # of an hour: what lies on the border of two belongs to the earlier one
_LARGEST_LIST, _LARGEST_STAY = 2**24, 2**22  # bytes
_EYES = (
    "To Pain",
    "3 To speech",
    "1 No Response",
    "4 Spontaneously",
    "None",
    "To Speech",
    "Spontaneously",
    "2 To pain",
)
_MOTOR = (
    "1 No Response", "3 Abnorm flexion", "Abnormal extension", "No response", "4 Flex-withdraws", "Localizes Pain",
    "Flex-withdraws", "Obeys Commands", "Abnormal Flexion", "6 Obeys Commands", "5 Localizes Pain", "2 Abnorm extensn",
)  # fmt: skip
_TOTAL = ("11", "10", "13", "12", "15", "14", "3", "5", "4", "7", "6", "9", "8")
_VERBAL = (
    "1 No Response", "No Response", "Confused", "Inappropriate Words", "Oriented", "No Response-ETT", "5 Oriented",
    "Incomprehensible sounds", "1.0 ET/Trach", "4 Confused", "2 Incomp sounds", "3 Inapprop words",
)  # fmt: skip
CHANNELS: Mapping[str, tuple[str, Sequence[str]]] = {  # normal value; the values of those that are no numbers
    "Capillary refill rate": ("0.0", ("0.0", "1.0")),
    "Diastolic blood pressure": ("59.0", ()),
    "Fraction inspired oxygen": ("0.21", ()),
    "Glascow coma scale eye opening": ("4 Spontaneously", _EYES),
    "Glascow coma scale motor response": ("6 Obeys Commands", _MOTOR),
    "Glascow coma scale total": ("15", _TOTAL),
    "Glascow coma scale verbal response": ("5 Oriented", _VERBAL),
    "Glucose": ("128.0", ()),
    "Heart Rate": ("86", ()),
    "Height": ("170.0", ()),
    "Mean blood pressure": ("77.0", ()),
    "Oxygen saturation": ("98.0", ()),
    "Respiratory rate": ("19", ()),
    "Systolic blood pressure": ("118.0", ()),
    "Temperature": ("36.6", ()),
    "Weight": ("81.0", ()),
    "pH": ("7.4", ()),
}
_WIDTHS = [max(1, len(values)) for _, values in CHANNELS.values()]
FEATURES = sum(_WIDTHS) + len(CHANNELS)
_NUMBERS = [sum(_WIDTHS[:k]) for k, (_, values) in enumerate(CHANNELS.values()) if not values]  # their columns


def read_mortality(home: Path, list_of: Mapping[str, Path]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences `(stays, 1, 48, 76)`, float32, and labels `(stays,)`, int64, for training and for tests."""
    stays = {split: read_list(path) for split, path in list_of.items()}
    number = sum(len(rows) for rows in stays.values())
    check_memory(f"{number} stays", 8 * HOURS * FEATURES * number)
    sequences = [
        np.stack([read_stay(home / split / name) for name, _ in rows])[:, None] for split, rows in stays.items()
    ]
    train = sequences[0][..., _NUMBERS].astype(np.float64)
    mean, deviation = train.mean((0, 1, 2)), train.std((0, 1, 2), ddof=1)
    for part in sequences:
        part[..., _NUMBERS] = (part[..., _NUMBERS] - mean) / np.maximum(deviation, 1e-7)
    return sequences, [np.array([label for _, label in rows], dtype=np.int64) for rows in stays.values()]


def read_list(path: Path) -> list[tuple[str, int]]:
    """The file of each stay and whether its patient died, 0 or 1: `stay,y_true`, a line each below this one."""
    rows = _rows(path, _LARGEST_LIST)
    _, header = next(rows, (1, []))
    if header != ["stay", "y_true"]:
        raise FedboundsError(f"{path}: begins with {quote(','.join(header))}, must begin with 'stay,y_true'")
    found: list[tuple[str, int]] = []
    for line, row in rows:
        if len(row) != 2 or row[1] not in ("0", "1"):
            raise FedboundsError(f"{path}, line {line}: {quote(','.join(row))} must be the name of a file, and 0 or 1")
        if row[0] in ("", ".", "..") or any(sign in row[0] for sign in "/\\\0"):
            raise FedboundsError(f"{path}, line {line}: {quote(row[0])} must be the name of a file in the same folder")
        found.append((row[0], int(row[1])))
    if not found:
        raise FedboundsError(f"{path}: lists no stays")
    return found


def read_stay(path: Path) -> np.ndarray:
    """The first 48 hours of a stay, an hour a step: `(48, 76)`, float32.

    An hour without a measurement takes the last value, or the normal one. Categories are one-hot; 17 more columns say
    what was measured.
    """
    rows = _rows(path, _LARGEST_STAY)
    _, header = next(rows, (1, []))
    if header[:1] != ["Hours"] or sorted(header[1:]) != sorted(CHANNELS):
        wrong = sorted({"Hours", *CHANNELS} ^ set(header)) or ["the order, or a column twice"]
        raise FedboundsError(f"{path}: columns must be Hours and the 17 channels of the benchmark; look at {wrong[0]}")
    names, values = list(CHANNELS), np.full((HOURS, len(CHANNELS)), np.nan)
    last, empty = 0.0, True
    for line, row in rows:
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise FedboundsError(f"{where}: {len(row)} values for {len(header)} columns")
        hour, empty = _number(where, "Hours", row[0]), False
        if hour < last - _EPSILON:
            raise FedboundsError(f"{where}: hour {row[0]} comes after hour {last:g}")
        last = max(hour, 0.0)
        if hour <= HOURS + _EPSILON:
            for name, value in zip(header[1:], row[1:], strict=True):
                if value:
                    values[int(last - _EPSILON), names.index(name)] = _encode(where, name, value)
    if empty:
        raise FedboundsError(f"{path}: no measurements")
    measured = ~np.isnan(values)
    before = [_encode(str(path), name, normal) for name, (normal, _) in CHANNELS.items()]
    columns: list[np.ndarray] = []
    for k, (_, known) in enumerate(CHANNELS.values()):
        place = np.maximum.accumulate(np.where(measured[:, k], np.arange(HOURS), -1))
        filled = np.where(place < 0, before[k], values[place, k])
        columns += [filled == code for code in range(len(known))] if known else [filled]
    return np.column_stack([*columns, measured]).astype(np.float32)


def _encode(where: str, name: str, value: str) -> float:
    known = CHANNELS[name][1]
    if not known:
        return _number(where, name, value)
    if value not in known:
        raise FedboundsError(f"{where}: {name} is {quote(value)}, must be one of {', '.join(known)}")
    return float(known.index(value))


def _number(where: str, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FedboundsError(f"{where}: {name} is {quote(value)}, must be a number")
    return number


def _rows(path: Path, largest: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with the number of their lines, without empty ones."""
    lines = csv.reader(read_text(path, str(path), largest).splitlines(), strict=True)
    try:
        for row in lines:
            if row:
                yield lines.line_num, [value.strip() for value in row]
    except csv.Error as error:
        raise FedboundsError(f"{path}, line {lines.line_num}: not a table of values between commas ({error})") from None
