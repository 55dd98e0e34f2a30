"""Participation as it was recorded: a matrix of weights, read from a record in any layout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag
from fedbounds.bounds.participation.constants import SUM_TOLERANCE, check_weights
from fedbounds.empirical.participation.process import Process, Round
from fedbounds.empirical.participation.record_formats import normalize_rounds, read_record

EmptyRounds = Literal["drop", "refuse"]
EMPTY_ROUNDS = get_args(EmptyRounds)


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
        q = check_weights(self.weights, unit_sum=False, name="weights")
        q = normalize_rounds(q) if check_flag("normalize", self.normalize) else q.copy()
        q.setflags(write=False)
        self._settle(weights=q, clients=q.shape[1])

    @classmethod
    def read(
        cls,
        record: Any,
        *,
        normalize: bool = False,
        clients: int | Sequence[int | str] | None = None,
        columns: Mapping[str, str] | None = None,
        round_length: float | None = None,
        rounds: int | None = None,
        start: float | None = None,
        empty_rounds: EmptyRounds = "drop",
    ) -> Recorded:
        """Read a record in any layout: weights, attendance, lists of participants, long, or availability intervals.

        Args:
            record: the path of a CSV or JSON file, or its content in memory (the page *Use your participation trace*
                lists the layouts).
            normalize: as for `Recorded`.
            clients: N, or the names of all clients; needed if some appear in no round.
            columns: names of columns to those of the table, e.g. `{"round": "Step", "client": "Worker"}`.
            round_length: the length of a round, in the unit of `start` and `end` of availability intervals; a client
                participates in a round if it is available during the whole round.
            rounds: how many rounds are read; all by default.
            start: the number of the first round, or the time at which it begins.
            empty_rounds: `"refuse"` refuses rounds without participants; otherwise comparisons drop them where that is
                exact.

        Raises:
            FedboundsError: the file cannot be read, the layout is unknown, or an entry is invalid.

        Example:
            >>> Recorded.read([["a", "c"], [], ["b"]], normalize=True).weights.tolist()
            [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
            >>> free = {"client": ["a", "b"], "start": [0, 10], "end": [25, 30]}
            >>> Recorded.read(free, round_length=10).weights.tolist()
            [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        """
        try:
            weights = read_record(
                record, clients=clients, columns=columns, round_length=round_length, rounds=rounds, start=start
            )
            found = cls(weights, normalize)
            check_empty_rounds(found._matrix, empty_rounds)
        except FedboundsError as error:
            file = str(record) if isinstance(record, str | os.PathLike) else ""
            raise FedboundsError(str(error) if file in str(error) else f"{file}: {error}") from None
        return found

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


def check_empty_rounds(weights: np.ndarray, empty_rounds: str) -> None:
    """Refuse rounds without participants of weights (rounds, clients), if `empty_rounds` says so."""
    empty = np.flatnonzero(~weights.any(axis=1))
    if check_choice("empty_rounds", empty_rounds, EMPTY_ROUNDS) == "refuse" and empty.size:
        raise FedboundsError(
            f"{empty.size} of {len(weights)} rounds have no participants, first round {empty[0]}, and empty_rounds is "
            "'refuse': remove them, or give empty_rounds='drop'"
        )
