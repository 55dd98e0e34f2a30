"""Participation as it was recorded: a matrix of weights, or a CSV file of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_memory, quote, read_number
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.bounds.participation.constants import SUM_TOLERANCE, check_weights
from fedbounds.empirical.participation.process import Process, Round

LARGEST = 2**26  # bytes of a record
PER_CHARACTER = 20  # bytes of memory for each character of a CSV file, about
COMMA, POINT = (re.compile(rf"\s*[+-]?\d*{mark}\d+([eE][+-]?\d+)?\s*") for mark in (",", r"\."))  # in a number


@dataclass(frozen=True, eq=False)
class Recorded(Process):
    r"""A given record of weights: nothing is random, so means are the weights and covariances zero.

    Args:
        weights: (rounds, clients), at least 0; zeros are clients that did not take part.
        normalize: divide the weights of each round by their sum, so that a record of who was there (ones and
            zeros) becomes equal weights. A round in which nobody took part stays empty, and lies outside the
            theorems.

    Raises:
        FedboundsError: not a matrix of finite weights of at least 0.

    Example:
        >>> record = Recorded([[1, 1, 0], [0, 0, 1]], normalize=True)
        >>> record.mean(0).tolist(), record.sums_to_one
        ([0.5, 0.5, 0.0], True)

    Source: Wang & Ji 2022, Section 3 (any given sequence of weights).
    """

    weights: ArrayLike
    normalize: bool = False
    clients: int = field(init=False)
    kind: ClassVar[str] = "recorded"

    def __post_init__(self) -> None:
        q = check_weights(self.weights, unit_sum=False, name="weights").copy()
        if check_flag("normalize", self.normalize):
            sums = q.sum(axis=1, keepdims=True)
            q = np.divide(q, sums, out=q, where=sums > 0)
        q.setflags(write=False)
        self._settle(weights=q, clients=q.shape[1])

    @classmethod
    def from_csv(cls, path: str | Path, *, normalize: bool = False) -> Recorded:
        """Read a record from a CSV file: a line per round, a column per client, names above if any.

        Args:
            path: the file; empty lines are skipped.
            normalize: as for `Recorded`.

        Raises:
            FedboundsError: the file cannot be read, or a line has a wrong number of cells or a cell that is
                no number.
        """
        weights = _read(path)
        try:
            return cls(weights, normalize)
        except FedboundsError as error:
            raise FedboundsError(f"{path}: {error}") from None

    @property
    def rounds(self) -> int:
        """T, the number of recorded rounds."""
        return len(self._matrix)

    @property
    def sums_to_one(self) -> bool:
        """Whether the weights of every round sum to one within 1e-9."""
        return not len(self._defects)

    @property
    def independent_rounds(self) -> bool:
        """Always: nothing is random."""
        return True

    @property
    def stationary(self) -> bool:
        """Whether all rounds are the same."""
        return bool((self._matrix == self._matrix[0]).all())

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """The recorded rounds, then an end; `rng` is not used."""
        for row in self._matrix:
            present = np.flatnonzero(row)
            yield Round(present, row[present])

    def matrix(self, rounds: int, rng: np.random.Generator) -> np.ndarray:
        """The first recorded rounds, (rounds, clients).

        Raises:
            FedboundsError: more rounds than the record holds.
        """
        return self._matrix[: check_count("rounds", rounds, high=self.rounds, why="the length of the record")].copy()

    def mean(self, t: int) -> np.ndarray:
        """The weights of round t, (clients,).

        Raises:
            FedboundsError: a round outside the record.
        """
        return self._matrix[check_count("round", t, 0, self.rounds - 1, why="the rounds of the record")].copy()

    def covariance(self, t: int, u: int) -> np.ndarray:
        return np.zeros((self.clients, self.clients))

    def variance(self, t: int) -> np.ndarray:
        return np.zeros(self.clients)

    def window_mean(self, t0: int, interval: int) -> np.ndarray:
        """The mean weights of the window, (clients,).

        Raises:
            FedboundsError: a window that is not inside the record.
        """
        last = check_count("last round of the window", t0 + interval - 1, 0, self.rounds - 1, why="the record")
        return self._matrix[t0 : last + 1].mean(axis=0)

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        return np.zeros((self.clients, self.clients))

    def mean_window_divergence(self, v: ArrayLike, interval: int, rounds: int) -> float:
        """As for every process, within the record.

        Raises:
            FedboundsError: also where the record is shorter than the run.
        """
        check_count("rounds", rounds, high=self.rounds, why="the length of the record")
        return super().mean_window_divergence(v, interval, rounds)

    def spec(self) -> dict[str, Any]:
        """The record as a JSON-able dict, with its weights as lists (already normalized)."""
        return {"kind": self.kind, "weights": self._matrix.tolist()}

    @property
    def _matrix(self) -> np.ndarray:
        return np.asarray(self.weights)

    @cached_property
    def _defects(self) -> np.ndarray:
        """The rounds whose weights do not sum to one."""
        return np.flatnonzero(np.abs(self._matrix.sum(axis=1) - 1) > SUM_TOLERANCE)

    def _sum_defect(self) -> str:
        t = self._defects[0]
        if not self._matrix[t].any():
            return f"those of round {t} sum to 0: nobody takes part in it, which is not covered"
        return f"those of round {t} sum to {self._matrix[t].sum():.12g}; normalize = true divides each row by its sum"


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
    if ";" in bare and all(COMMA.fullmatch(cell) or _is_number(cell) for cell in first.split(";")):
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


def _read(path: str | Path) -> list[list[float]]:
    if not isinstance(path, str | Path):
        raise FedboundsError(f"file = {quote(path)} must be the path of a CSV file")
    lines = read_csv(path, "the record of participation", LARGEST)
    if lines and not any(_is_number(cell) for cell in lines[0][1]):
        del lines[0]  # names
    if not lines:
        raise FedboundsError(f"{path} holds no rounds; expected one line of weights per round")
    for number, cells in lines:
        for column, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                raise FedboundsError(f"{path}, line {number}, column {column}: {quote(cell)} is not a number")
    return [[float(cell) for cell in cells] for _, cells in lines]


def _is_number(cell: str) -> bool:
    try:
        read_number(cell)
    except ValueError:
        return False
    return True
