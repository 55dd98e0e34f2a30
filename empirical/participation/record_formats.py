"""Records of participation in any layout, from a file or in memory, as weights (rounds, clients).

| layout | columns of a table, or JSON |
|---|---|
| weights or attendance | a column for each client and a line for each round; `[[0.5, 0.5], [1, 0]]` |
| participants | `round`, `participants` such as "3 5 7"; `[[3, 5], [0]]`, or round to list |
| long | `round`, `client`, and `weight` or `num_samples` if known; round to {client: weight} |
| availability | `client`, `start`, `end`, with the length of a round |
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_memory, check_number, quote, read_number
from fedbounds.bounds.inputs.user_files import DEEPEST, TOO_DEEP, nests_deeper, read_text
from fedbounds.bounds.participation.constants import check_weights
from fedbounds.empirical.participation.csv_lines import PER_CHARACTER, is_number, read_csv

LARGEST = 2**26  # bytes of a record
SHOWN = 8  # names in an error
NEAR = 1e-9  # share of a round by which an interval may fall short of it
WHAT = "the record of participation"
NAMES = {  # of columns, in lower case with _ between words
    "round": ("round", "round_number", "server_round", "communication_round", "comm_round", "rnd", "step", "t"),
    "participants": ("participants", "clients", "client_ids", "selected", "selected_clients", "cohort"),
    "client": ("client", "client_id", "cid", "participant", "user", "user_id", "device", "device_id", "node", "node_id",
               "worker", "silo"),
    "weight": ("weight", "q"),
    "samples": ("num_samples", "samples", "n_samples", "num_examples", "examples", "n_examples"),
    "start": ("start", "start_time", "begin", "available_from"),
    "end": ("end", "end_time", "stop", "available_until"),
}  # fmt: skip
LAYOUTS = (("client", "start", "end"), ("round", "client"), ("round", "participants"))  # columns that each needs
EXPECTED = "a column of numbers for each client; round, participants; round, client; or client, start, end"

Client = int | str  # a name; whole numbers in a text are numbers


@dataclass(frozen=True)
class _Table:
    """A table with named columns; `lines` are places for errors and cells."""

    where: str
    names: tuple[str, ...]
    lines: Sequence[tuple[str, Sequence[Any]]]

    def column(self, name: str) -> list[Any]:
        place = self.names.index(name)
        return [cells[place] for _, cells in self.lines]

    def numbers(self, name: str, *, whole: bool = False) -> np.ndarray:
        """A column of finite numbers, or of whole numbers of at least 0."""
        found = []
        for (place, _), cell in zip(self.lines, self.column(name), strict=True):
            value = _number(cell)
            good = value is not None and math.isfinite(value)
            if value is None or not good or (whole and not (0 <= value < 2**53 and value == int(value))):
                what = "a whole number of at least 0" if whole else "a finite number"
                raise FedboundsError(f"{place}: {name} = {quote(cell)} must be {what}")
            found.append(value)
        return np.array(found, np.int64 if whole else float)


@dataclass(frozen=True)
class _Rounds:
    """The rounds that are read: their number, where round 0 begins, and the length of a round of availability."""

    count: int | None
    start: float | None
    length: float | None


def read_record(
    record: Any,
    *,
    clients: int | Sequence[Client] | None = None,
    columns: Mapping[str, str] | None = None,
    round_length: float | None = None,
    rounds: int | None = None,
    start: float | None = None,
) -> np.ndarray:
    """The weights (rounds, clients) of a record.

    Args:
        record: the path of a CSV or JSON file, or in memory what such a file holds.
        clients: N, or the names of all clients in their order.
        columns: our names of columns to those of the table.
        round_length: of availability intervals, in the unit of their ends.
        rounds: how many rounds are read; all by default.
        start: the number, or the time, of the first round.
    """
    where = "participation"
    asked = _Rounds(
        None if rounds is None else check_count("rounds", rounds),
        None if start is None else check_number("start", start),
        None if round_length is None else check_number("round_length", round_length),
    )
    if asked.length is not None and asked.length <= 0:
        raise FedboundsError(f"round_length = {asked.length:g} must be positive")
    if columns is not None and not isinstance(columns, Mapping):
        raise FedboundsError(f"columns = {quote(columns)} must map names, e.g. {{'round': 'Step', 'client': 'Worker'}}")
    known = clients if clients is None or isinstance(clients, int) else [_client(one, "clients") for one in clients]
    count = known if known is None or isinstance(known, list) else check_count("clients", known)
    if isinstance(record, str | os.PathLike):
        where = str(record)
        record = _read_file(Path(record), columns)
    table = _as_table(record, where, columns)
    if table is None:
        return _without_names(record, where, count, asked)
    if "end" in table.names and "client" in table.names and "start" in table.names:
        return _availability(table, count, asked)
    read = next((f for f, name in ((_long, "client"), (_listed, "participants")) if name in table.names), _wide)
    return read(table, count, asked)


# --- Layouts ---------------------------------------------------------------------------------------------------------


def _without_names(record: Any, where: str, clients: int | list[Client] | None, asked: _Rounds) -> np.ndarray:
    """Weights, lists of participants, and rounds with their participants."""
    if isinstance(record, Mapping) and len(record) == 1 and "weights" in record:
        record = record["weights"]
    elif isinstance(record, Mapping) and len(record) == 1 and "participants" in record:
        return _of_lists(record["participants"], where, clients, asked)
    elif isinstance(record, Mapping):
        return _of_rounds(record, where, clients, asked)
    elif _is_lists(record, where):
        return _of_lists(record, where, clients, asked)
    q = _first_rounds(check_weights(record, unit_sum=False, name="weights"), asked)
    N = clients if clients is None or isinstance(clients, int) else len(clients)
    if N not in (None, q.shape[1]):
        raise FedboundsError(f"clients = {N}, and the participation has {q.shape[1]}; leave clients= out")
    return q


def _first_rounds(weights: np.ndarray, asked: _Rounds) -> np.ndarray:
    """The rows of a matrix that are read."""
    if asked.length is not None:
        raise FedboundsError("round_length is for columns client, start, end; leave it out")
    first = int(check_count("start", asked.start, 0)) if asked.start is not None else 0
    if not first and asked.count is None:
        return weights
    last = len(weights) if asked.count is None else first + asked.count
    if len(weights) < max(last, first + 1):
        raise FedboundsError(f"rounds = {last - first} from start = {first}, and the record has {len(weights)}")
    return weights[first:last]


def _is_lists(record: Any, where: str) -> bool:
    """Whether nested lists hold clients and not weights; refused where both are possible."""
    if not isinstance(record, list | tuple) or not record or not all(isinstance(row, list | tuple) for row in record):
        return False
    cells = [cell for row in record for cell in row]
    numbers = [-1.0 if (n := _number(cell)) is None else n for cell in cells]
    if any(isinstance(cell, str) and n < 0 for cell, n in zip(cells, numbers, strict=True)):
        return True  # names
    if any(not (n >= 0 and math.isfinite(n) and n == int(n)) for n in numbers):
        return False
    if not cells or len({len(row) for row in record}) > 1:
        return True
    if any(len(set(row)) < len(row) for row in record) or (max(numbers) <= 1 and (len(record[0]) > 1 or min(numbers))):
        return False
    raise FedboundsError(
        f"{where}: rows such as {quote(list(record[0]))} may be clients or weights: give {{'participants': [...]}} or "
        "{'weights': [...]}"
    )


def _of_lists(lists: Any, where: str, clients: int | list[Client] | None, asked: _Rounds) -> np.ndarray:
    """A list of participants for each round."""
    if not isinstance(lists, list | tuple) or not all(isinstance(row, list | tuple) for row in lists):
        raise FedboundsError(f"{where}: participants must be a list of clients for each round, not {quote(lists)}")
    return _of_rounds(dict(enumerate(lists)), where, clients, asked)


def _of_rounds(record: Mapping[Any, Any], where: str, clients: int | list[Client] | None, asked: _Rounds) -> np.ndarray:
    """A mapping of rounds to participants, or to their weights."""
    lines, names = [], ("round", "client", "weight")
    when: dict[int, None] = {}
    for name, participants in record.items():
        t = _client(name, where)
        if not isinstance(t, int) or t < 0:
            raise FedboundsError(
                f"{where}: {quote(name)} is no round and no known column; expected rounds with their participants, or "
                f"{EXPECTED}"
            )
        if not isinstance(participants, Mapping | list | tuple):
            raise FedboundsError(f"{where}: round {t} has {quote(participants)}; expected clients, or client: weight")
        weighted = isinstance(participants, Mapping)
        if t in when:
            raise FedboundsError(f"{where}: round {t} is given twice; keep one")
        when[t] = None
        for client in participants:
            lines.append((f"{where}, round {t}", (t, client, participants[client] if weighted else 1.0)))
    if not when:
        raise FedboundsError(f"{where} holds no rounds; expected one entry for each round")
    return _long(_Table(where, names, lines), clients, asked, np.array([*when], np.int64))


def _long(
    table: _Table, clients: int | list[Client] | None, asked: _Rounds, when: np.ndarray | None = None
) -> np.ndarray:
    """A line for each participant of a round; rounds without a line are empty. `when` has all rounds, if known."""
    who = [_client(cell, place) for (place, _), cell in zip(table.lines, table.column("client"), strict=True)]
    places, N = _places(who, clients, table.where)
    at = table.numbers("round", whole=True) if table.lines else np.zeros(0, np.int64)
    shares = np.ones(len(who))
    samples = "samples" in table.names and "weight" not in table.names
    if samples or "weight" in table.names:
        name = "samples" if samples else "weight"
        shares = table.numbers(name) if table.lines else shares
        for i in np.flatnonzero(shares < 0)[:1]:
            raise FedboundsError(f"{table.lines[i][0]}: {name} = {shares[i]:g} must be at least 0")
    t, T = _number_rounds(at, when, asked, table.where)
    check_memory(f"{table.where}, with clients = {N} and {T} rounds,", 24 * N * T)
    q, seen = np.zeros((T, N)), np.zeros((T, N), bool)
    for i in np.flatnonzero((t >= 0) & (t < T)).tolist():
        n = places[who[i]]
        if seen[t[i], n]:
            raise FedboundsError(f"{table.lines[i][0]}: client {who[i]!r} is named twice in round {at[i]}; keep one")
        q[t[i], n], seen[t[i], n] = shares[i], True
    return normalize_rounds(q) if samples else q


def _wide(table: _Table, clients: int | list[Client] | None, asked: _Rounds) -> np.ndarray:
    """A column for each client, placed by its name if it is a number or `clients` has names."""
    names = [name for name in table.names if name != "round"]
    who = [_client(name, table.where) for name in names]
    if len({*who}) < len(who):
        raise FedboundsError(f"{table.where}: columns {_shown(names)} name a client twice; keep one")
    whole, N = all(isinstance(name, int) for name in who), len(who)
    places: dict[Client, int] = {name: n for n, name in enumerate(who)}
    if isinstance(clients, list) or (whole and clients is not None):
        places, N = _places(who, clients, table.where)
    elif clients not in (None, N):
        raise FedboundsError(f"clients = {clients}, and the participation has {N}; leave clients= out")
    elif whole and {*who} in ({*range(N)}, {*range(1, N + 1)}):
        places, N = _places(who, None, table.where)
    rows = np.stack([table.numbers(name) for name in names], axis=1)
    at = table.numbers("round", whole=True) if "round" in table.names else None
    if at is not None and len({*at.tolist()}) < len(at):
        raise FedboundsError(f"{table.where}: a round has two lines; keep one")
    t, T = (np.arange(len(rows)), len(rows)) if at is None else _number_rounds(at, None, asked, table.where)
    check_memory(f"{table.where}, with clients = {N} and {T} rounds,", 24 * N * T)
    q, read = np.zeros((T, N)), (t >= 0) & (t < T)
    q[np.ix_(t[read], np.array([places[name] for name in who]))] = rows[read]
    return _first_rounds(q, asked) if at is None else q


def _listed(table: _Table, clients: int | list[Client] | None, asked: _Rounds) -> np.ndarray:
    """A line for each round, with its participants in one cell."""
    record: dict[int, list[Client]] = {}
    for t, (place, _), cell in zip(
        table.numbers("round", whole=True).tolist(), table.lines, table.column("participants"), strict=True
    ):
        if t in record:
            raise FedboundsError(f"{place}: round {t} has two lines; name all participants in one")
        record[t] = [_client(one, place) for one in _split(cell, place)]
    return _of_rounds(record, table.where, clients, asked)


def _availability(table: _Table, clients: int | list[Client] | None, asked: _Rounds) -> np.ndarray:
    """A client participates in a round if it is available from its beginning to its end."""
    length = asked.length
    if length is None:
        raise FedboundsError(
            f"{table.where}: columns client, start, end are availability: give round_length=, the length of a round in "
            "the unit of start and end"
        )
    who = [_client(cell, place) for (place, _), cell in zip(table.lines, table.column("client"), strict=True)]
    places, N = _places(who, clients, table.where)
    starts, ends = table.numbers("start").tolist(), table.numbers("end").tolist()
    begin = min(starts) if asked.start is None else asked.start
    if not max(abs(moment - begin) for moment in (*starts, *ends)) / length < 2**53:
        raise FedboundsError(f"{table.where}: round_length = {length:g} is too small for the times from {begin:g} on")
    T = math.floor((max(ends) - begin) / length + NEAR) if asked.count is None else asked.count
    if T < 1:
        raise FedboundsError(f"{table.where}: no round of round_length = {length:g} is complete by {max(ends):g}")
    check_memory(f"{table.where}, with clients = {N} and {T} rounds,", 24 * N * T)
    q, spans = np.zeros((T, N)), dict[int, tuple[float, float]]()
    for i in sorted(range(len(who)), key=starts.__getitem__):
        if ends[i] < starts[i]:
            raise FedboundsError(f"{table.lines[i][0]}: end = {ends[i]:g} is before start = {starts[i]:g}")
        n = places[who[i]]
        low, high = spans.get(n, (starts[i], ends[i]))
        joined = starts[i] <= high + NEAR * length  # intervals that touch are one
        low, high = spans[n] = (low, max(high, ends[i])) if joined else (starts[i], ends[i])
        first = max(0, math.ceil((low - begin) / length - NEAR))
        q[first : max(first, math.floor((high - begin) / length + NEAR)), n] = 1.0
    return q


def _number_rounds(at: np.ndarray, when: np.ndarray | None, asked: _Rounds, where: str) -> tuple[np.ndarray, int]:
    """The rounds from 0, and how many there are; a record begins with round 0 or 1 unless `start` says otherwise."""
    if asked.length is not None:
        raise FedboundsError("round_length is for columns client, start, end; leave it out")
    every = at if when is None else when
    first = int(every.min()) if asked.start is None else check_count("start", asked.start, 0)
    if asked.start is None and first > 1:
        raise FedboundsError(f"{where} begins with round {first}: give start=, the number of the first round")
    T = int(every.max()) - first + 1 if asked.count is None else asked.count
    if T < 1:
        raise FedboundsError(f"{where} ends with round {every.max()}, before the first round, {first}")
    return at - first, T


def _places(names: Sequence[Client], clients: int | list[Client] | None, where: str) -> tuple[dict[Client, int], int]:
    """The column of each client, and N."""
    seen = set(names)
    if isinstance(clients, list):
        if len(set(clients)) < len(clients) or not clients:
            raise FedboundsError("clients must be different names, at least one")
        if missing := sorted(seen - set(clients), key=str):
            raise FedboundsError(f"{where}: client {missing[0]!r} is not one of the {len(clients)} clients")
        return {name: n for n, name in enumerate(clients)}, len(clients)
    numbers = sorted(name for name in seen if isinstance(name, int))
    ordered: list[Client] = [*numbers, *sorted(name for name in seen if isinstance(name, str))]
    whole = len(numbers) == len(ordered)
    if clients is not None:
        if whole and all(0 <= name < clients for name in numbers):
            return {name: name for name in numbers}, clients
        if whole:
            raise FedboundsError(
                f"{where}: client {next(n for n in numbers if not 0 <= n < clients)} is not one of 0 to {clients - 1} "
                f"(clients = {clients}); give the numbers of all clients, e.g. clients = [1, 2, 3]"
            )
        if len(ordered) > clients:
            raise FedboundsError(
                f"{where} has {len(ordered)} clients, and clients = {clients}; give clients={len(ordered)} or more"
            )
        return {name: n for n, name in enumerate(ordered)}, clients
    if not ordered:
        raise FedboundsError(f"{where} has no participants: give clients=N, the number of all clients")
    if whole and (numbers[0] > 1 or numbers[-1] - numbers[0] >= len(numbers)):
        raise FedboundsError(
            f"{where} names the clients {_shown(ordered)}, with gaps between them: give clients=N, the number of all "
            "clients, or the names of all"
        )
    return {name: n for n, name in enumerate(ordered)}, len(ordered)


# --- Tables ----------------------------------------------------------------------------------------------------------


def _as_table(record: Any, where: str, columns: Mapping[str, str] | None) -> _Table | None:
    """A record with named columns as a table; None for another one."""
    if isinstance(record, _Table):
        return record
    if isinstance(record, list) and record and all(isinstance(line, Mapping) for line in record):
        rows = [{str(name): cell for name, cell in line.items()} for line in record]
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        check_memory(f"{where}, with {len(rows)} lines and {len(names)} columns,", 8 * len(rows) * len(names))
        cells = [(f"{where}, line {i}", [row.get(name) for name in names]) for i, row in enumerate(rows)]
        table = _renamed(_Table(where, names, cells), columns)
        layout = next(needed for needed in LAYOUTS if {*needed} <= {*table.names})
        more = [name for name in ("weight", "samples") if name in table.names and layout == ("round", "client")]
        for needed in (*layout, *more[:1]):
            theirs = names[table.names.index(needed)]
            for (place, _), row in zip(cells, rows, strict=True):
                if theirs not in row:
                    raise FedboundsError(f"{place} has no {quote(theirs)}, and others have; give it in every line")
        return table
    frame: Any = record if hasattr(record, "columns") and hasattr(record, "to_dict") else None  # of pandas or polars
    held: Any = record if frame is None else {str(name): _cells(frame[name]) for name in frame.columns}
    if not isinstance(held, Mapping) or (len(held) == 1 and "participants" in held):
        return None
    if frame is None and columns is None and not any(_known_name(str(name)) for name in held if name != "weights"):
        return None
    values = [list(value) if isinstance(value, list | tuple | np.ndarray) else None for value in held.values()]
    lengths = {-1 if value is None else len(value) for value in values}
    if len(lengths) > 1 or -1 in lengths:
        raise FedboundsError(f"{where}: columns {_shown(held)} must be lists of the same length")
    lines = [(f"{where}, line {i}", cells) for i, cells in enumerate(zip(*values, strict=True))]
    return (_renamed if frame is None else _named)(_Table(where, tuple(map(str, held)), lines), columns)


def _cells(column: Any) -> list[Any]:
    """The cells of a column of a data frame; true and false are 1 and 0."""
    return [int(cell) if isinstance(cell, bool | np.bool_) else cell for cell in column]


def _renamed(table: _Table, columns: Mapping[str, str] | None) -> _Table:
    """The table with names of ours where they are known, or chosen."""
    if not table.lines:
        raise FedboundsError(f"{table.where} holds no rounds; expected a line of names and lines of cells")
    names = [_known_name(name) for name in table.names]
    for ours, theirs in (columns or {}).items():
        if ours not in NAMES:
            raise FedboundsError(f"columns: {unknown_name('column of participation', str(ours), NAMES)}")
        if theirs not in table.names:
            raise FedboundsError(f"{table.where}: {unknown_name('column', str(theirs), table.names)}")
        names = [None if name == ours else name for name in names]
        names[table.names.index(theirs)] = ours
    first = [name if name and name not in names[:i] else None for i, name in enumerate(names)]
    found = [name or f" {other}" for name, other in zip(first, table.names, strict=True)]
    if not any(set(needed) <= set(found) for needed in LAYOUTS):
        raise FedboundsError(
            f"{table.where}: columns {_shown(table.names)} are no layout of participation; expected {EXPECTED}; name "
            "them, e.g. columns = {'round': 'Step', 'client': 'Worker'}"
        )
    return _Table(table.where, tuple(found), table.lines)


def _known_name(name: str) -> str | None:
    """Our name of a column."""
    words = re.sub(r"[\s-]+", "_", name.strip().lower())
    return next((ours for ours, names in NAMES.items() if words in names), None)


def _read_file(path: Path, columns: Mapping[str, str] | None) -> Any:
    """What a CSV or JSON file holds."""
    if path.suffix.lower() == ".json":
        return _read_json(path)
    lines = read_csv(path, WHAT, LARGEST)
    if not lines:
        raise FedboundsError(f"{path} holds no rounds; expected one line for each round")
    first, cells = lines[0][1], [cells for _, cells in lines]
    known = [_known_name(cell) for cell in first]
    if any(is_number(cell) for cell in first) and known[0] != "round":
        listed = len(first) == 2 and not all(is_number(row[1]) for row in cells) and _rises([row[0] for row in cells])
        if listed:
            rounds = [(f"{path}, line {number}", row) for number, row in lines]
            return _renamed(_Table(str(path), ("round", "participants"), rounds), columns)
        if not _is_header(lines, path):
            return _numbers(path, lines)
    body = [(f"{path}, line {number}", row) for number, row in lines[1:]]
    if not body:
        raise FedboundsError(f"{path} holds no rounds; expected one line for each round")
    return _named(_Table(str(path), tuple(first), body), columns)


def _named(table: _Table, columns: Mapping[str, str] | None) -> _Table:
    """A table with a column for each client and perhaps `round`, or one of another layout."""
    known = [_known_name(name) for name in table.names]
    others = [i for i in range(len(known)) if known[i] != "round"]
    layout = any(set(needed) <= set(known) for needed in LAYOUTS)
    texts = [i for i in others if all(_number(row[i]) is None for _, row in table.lines)]
    if columns or layout or texts or not others or {"client", "participants", "start", "end"} & set(known):
        return _renamed(table, columns)
    at = [known.index("round")] if "round" in known else []
    names = (*("round" for _ in at), *(table.names[i] for i in others))
    return _Table(table.where, names, [(place, [row[i] for i in at + others]) for place, row in table.lines])


def _is_header(lines: Sequence[tuple[int, Sequence[str]]], path: Path) -> bool:
    """Whether a first line of numbers has the ids of clients; refused where it may also be a round."""
    first = [int(cell) if re.fullmatch(r"\s*\d{1,9}\s*", cell) else -1 for cell in lines[0][1]]
    if min(first) < 0 or max(first) < 2 or len({*first}) < len(first):
        return False
    numbers = [_number(cell) for _, row in lines[1:] for cell in row]
    shares = all(n is not None and 0 <= n <= 1 for n in numbers)
    every = sorted(first) == list(range(len(first)))
    if every and shares:
        return True
    if every or (shares and numbers and len(first) > 1):
        raise FedboundsError(
            f"{path}: the first line, {_shown(first)}, may be ids of clients or weights: add a column round, or a "
            "first line of names"
        )
    return False


def _rises(cells: Sequence[str]) -> bool:
    """Whether these are numbers of rounds, each above the one before."""
    numbers = [n for cell in cells if (n := _number(cell)) is not None and n.is_integer()]
    return len(numbers) == len(cells) and numbers == sorted({*numbers})


def _numbers(path: Path, lines: Sequence[tuple[int, Sequence[str]]]) -> list[list[float]]:
    """Lines of numbers."""
    for number, cells in lines:
        for column, cell in enumerate(cells, start=1):
            if not is_number(cell):
                raise FedboundsError(f"{path}, line {number}, column {column}: {quote(cell)} is not a number")
    return [[float(cell) for cell in cells] for _, cells in lines]


def _read_json(path: Path) -> Any:
    text = read_text(path, f"{WHAT} {path}", LARGEST)
    check_memory(f"{WHAT} {path}, of {len(text)} characters,", PER_CHARACTER * len(text))
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, path))
    except FedboundsError:
        raise
    except (ValueError, RecursionError) as error:
        raise FedboundsError(f"cannot read {WHAT} {path}: not JSON ({' '.join(str(error).split())})") from None
    if nests_deeper(found, DEEPEST):
        raise FedboundsError(f"{path}: {TOO_DEEP}")
    if not isinstance(found, list | dict) or not found:
        raise FedboundsError(f"{path} holds no rounds; expected a list or an object of rounds")
    return found


def _once(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    """An object of JSON, whose keys must differ."""
    found = {}
    for key, value in pairs:
        if key in found:
            raise FedboundsError(f"{path}: the key {quote(key)} is given twice in an object; keep one")
        found[key] = value
    return found


def _split(cell: Any, place: str) -> Iterable[Any]:
    """The clients in a cell: a list, or a text with spaces, commas or semicolons between them."""
    if isinstance(cell, list | tuple | np.ndarray):
        return list(cell)
    if not isinstance(cell, str):
        return [] if cell is None else [cell]
    text = cell.strip().strip("[](){}")
    parts = re.split(r"[,;|]" if re.search(r"[,;|]", text) else r"\s+", text)
    parts = [part.strip() for part in parts if part.strip()]
    for part in parts:
        if re.search(r"\s", part) or (part[0] in "'\"" and part[-1] != part[0]):
            raise FedboundsError(
                f"{place}: the clients {quote(text)} have blanks in their names, and blanks separate clients: use "
                "names without blanks, or columns round, client"
            )
    return [part.strip("'\"") for part in parts]


def _client(name: Any, place: str) -> Client:
    """The name of a client: a whole number, also where it is written as a text, or a text."""
    if isinstance(name, str) and name.strip():
        text = name.strip()
        return int(text.partition(".")[0]) if re.fullmatch(r"\d{1,30}(\.0*)?", text) else text
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    if isinstance(name, float) and name.is_integer():
        return int(name)
    raise FedboundsError(f"{place}: the client {quote(name)} must be a name or a whole number")


def _number(cell: Any) -> float | None:
    """A number, or a text of one; else None."""
    if isinstance(cell, str):
        return read_number(cell) if is_number(cell) else None
    if isinstance(cell, int) and abs(cell) > sys.float_info.max:
        return math.inf
    return float(cell) if isinstance(cell, int | float | np.number) and not isinstance(cell, bool) else None


def normalize_rounds(q: np.ndarray) -> np.ndarray:
    """Weights divided by their sum in each round; rounds without participants stay empty."""
    sums = q.sum(axis=1, keepdims=True)
    return np.divide(q, sums, out=np.zeros_like(q), where=sums > 0)


def _shown(names: Iterable[Any]) -> str:
    """Names for an error, the first ones."""
    listed = [str(name).strip() for name in names]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"{', '.join(listed[:SHOWN])}{more}"
