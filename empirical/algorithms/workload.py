r"""How much each client computes in a round: so many local steps or epochs, always, as listed, or as drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_flag, quote
from fedbounds.empirical.algorithms.algorithm import Fits
from fedbounds.empirical.runtime.streams import Streams


@dataclass(frozen=True)
class RandomWork:
    r"""Amounts of work that are drawn for each client, $\tau_i\sim\mathrm{Unif}\{\text{low},\dots,\text{high}\}$.

    The numbers of a round depend only on the seed and the round (stream `work`), not on the algorithm or participation.

    Source: Sharma et al. 2023, Section 6: clients draw between 2 and E epochs.
    """

    low: int  # the least amount, $\ge1$
    high: int  # the largest amount, $\ge$ low
    redraw: bool = True  # in every round; if not, those of round 0 stay (the paper does not specify it)

    def __post_init__(self) -> None:
        low = check_count("low", self.low)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", check_count("high", self.high, low=low, why="at least low"))
        object.__setattr__(self, "redraw", check_flag("redraw", self.redraw))

    def numbers(self, clients: int, t: int, streams: Streams) -> np.ndarray:
        r"""$\tau_i$ of all clients in round t of a run, (clients,)."""
        rng = streams.generator("work", t if self.redraw else 0)
        return rng.integers(self.low, self.high, clients, endpoint=True)


Amount = int | tuple[int, ...] | tuple[tuple[int, ...], ...] | RandomWork


def check_amount(name: str, value: object) -> Amount:
    """Amounts of work: one for all clients, one for each (n,), or for each round and client (T, n), or `RandomWork`."""
    if isinstance(value, RandomWork):
        return value
    if isinstance(value, Mapping):
        return _work_from_table(name, value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return check_count(name, value)
    if not len(value):
        raise FedboundsError(f"{name} is empty; give one number, one for each client, or one for each round too")
    if not any(isinstance(row, Sequence | np.ndarray) for row in value):
        return tuple(check_count(f"{name}[{i}]", amount) for i, amount in enumerate(value))
    rows = []
    for t, row in enumerate(value):
        listed = isinstance(row, Sequence | np.ndarray) and not isinstance(row, str | bytes)
        if not listed or len(row) != len(value[0]) or not len(row):
            raise FedboundsError(f"{name}[{t}] = {quote(row)} must be as many integers >= 1 as there are clients")
        rows.append(tuple(check_count(f"{name}[{t}, {i}]", amount) for i, amount in enumerate(row)))
    return tuple(rows)


def check_work(local_steps: object, local_epochs: object) -> tuple[Amount | None, Amount | None]:
    """Local steps or epochs, one of the two."""
    if (local_steps is None) == (local_epochs is None):
        raise FedboundsError("give either local_steps or local_epochs: how much every client computes in a round")
    if local_steps is None:
        return None, check_amount("local_epochs", local_epochs)
    return check_amount("local_steps", local_steps), None


@dataclass(frozen=True, eq=False)
class Workload:
    r"""The local steps $\tau_i$ of every client of a problem, in every round."""

    name: str  # what the user calls it
    amount: Amount  # in local steps, or in epochs
    unit: np.ndarray  # local steps of one unit of work of each client, (n,)

    @staticmethod
    def of(local_steps: Amount | None, local_epochs: Amount | None, problem: Fits) -> Workload:
        """Local steps or epochs, one of the two, on a problem."""
        if local_steps is not None:
            return Workload("local_steps", local_steps, np.ones(problem.clients, dtype=np.int64))
        assert local_epochs is not None
        if problem.steps_per_epoch is None:
            raise FedboundsError("local_epochs need clients who hold samples, as in image problems; give local_steps")
        return Workload("local_epochs", local_epochs, np.asarray(problem.steps_per_epoch))

    def check(self, rounds: int) -> None:
        """Whether it is of this many clients and suffices for T rounds."""
        if isinstance(self.amount, RandomWork):
            return
        table, clients = self._table, len(self.unit)
        if table.ndim and table.shape[-1] != clients:
            raise FedboundsError(f"{self.name} are of {table.shape[-1]} clients, the problem has {clients}")
        if table.ndim == 2 and len(table) < rounds:
            raise FedboundsError(f"{self.name} are given for {len(table)} rounds, {rounds} were asked for")

    @property
    def constant(self) -> bool:
        """Whether every round is alike, in every run."""
        return not isinstance(self.amount, RandomWork) and self._table.ndim < 2

    @property
    def random(self) -> bool:
        """Whether it differs from run to run."""
        return isinstance(self.amount, RandomWork)

    @cached_property
    def most(self) -> np.ndarray:
        """The most local steps that each client ever takes, (n,)."""
        amount = self.amount.high if isinstance(self.amount, RandomWork) else self._table
        return (np.max(amount, axis=0) if np.ndim(amount) == 2 else np.asarray(amount)) * self.unit

    def steps(self, t: int, overall: int, streams: Sequence[Streams]) -> np.ndarray:
        r"""$\tau_i$ in a round, (n,), or, where it is drawn, of each run, (seeds, n)."""
        if isinstance(self.amount, RandomWork):
            return np.stack([self.amount.numbers(len(self.unit), overall, own) for own in streams]) * self.unit
        table = self._table
        return (table[t] if table.ndim == 2 else table) * self.unit

    @cached_property
    def _table(self) -> np.ndarray:
        return np.asarray(self.amount)


def _work_from_table(name: str, table: Mapping[object, object]) -> RandomWork:
    fields = dataclasses.fields(RandomWork)
    names = [field.name for field in fields]
    for key in table:
        if key not in names:
            raise unknown_name(f"key of {name}", str(key), names)
    lacking = [field.name for field in fields if field.default is dataclasses.MISSING and field.name not in table]
    if lacking:
        raise FedboundsError(f"{name} lacks {', '.join(lacking)}; give numbers, or a table like {{low: 2, high: 5}}")
    try:
        return RandomWork(**{str(key): value for key, value in table.items()})  # type: ignore[arg-type]
    except FedboundsError as error:
        raise FedboundsError(f"{name}.{error}") from None
