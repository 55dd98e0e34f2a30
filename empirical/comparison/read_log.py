"""The trace of a log that some training loop left, in any of the formats that `log_formats` reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_memory, check_number, quote
from fedbounds.bounds.inputs.user_files import protect
from fedbounds.bounds.participation.constants import check_client_weights
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.log_formats.binary import event_files
from fedbounds.empirical.comparison.log_formats.leaf import is_leaf_record, read_participation
from fedbounds.empirical.comparison.log_formats.log import LARGEST, Columns
from fedbounds.empirical.comparison.log_formats.registry import log_paths, read_file
from fedbounds.empirical.comparison.logged_trace import (
    DIMS,
    LOSS,
    NORM,
    PRODUCTS,
    SINGLE,
    build_trace,
    check_algorithm,
    norm_from_products,
    products_and_norm,
)
from fedbounds.empirical.participation import Full, Process, Recorded, SampleWeighted, process_from_spec
from fedbounds.empirical.participation.recorded import EmptyRounds, check_empty_rounds
from fedbounds.empirical.runtime.array_files import read_arrays
from fedbounds.empirical.simulation.trace import Trace

RESERVED = ("participants", "empty_rounds", "unnormalized_rounds", "diverged_at")  # counts of a trace
GAP = "objective_gap"  # f(x_t) - f*
FULL = "full"  # every client in every round, in a word


def read_log(
    log: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any],
    algorithm: Algorithm | Mapping[str, Any],
    participation: Process | np.ndarray | Sequence[Any] | Mapping[Any, Any] | str | os.PathLike[str] | None = None,
    *,
    clients: int | None = None,
    normalize: bool | None = None,
    empty_rounds: EmptyRounds = "drop",
    format: str | None = None,
    columns: Columns | None = None,
    first_round: int = 0,
    f_min: float | None = None,
    client_weights: Any = None,
) -> Trace:
    r"""The trace of a log of a training loop: a file in one of many formats, or a mapping of arrays.

    | column | shape | what |
    |---|---|---|
    | `round` | (rounds) | the recorded rounds, from 0, each once; of each seed, if there are several |
    | `seed` | (rounds) | the run, if there are several; they share their participation |
    | `gradient_norm_squared`, `train_loss`, ... | (rounds) | measurements at the model before the round |
    | `weights` | (T, N) | weights of the participants, if `participation` is not given; not in a text file |
    | `model` | (rounds, d) | the models; not in a text file |
    | `gradients` | (rounds, N, d) | every client's gradient there; not in a text file |

    Args:
        log: the path of a file (the page *Compare your training loop or log* lists the formats) or of a folder of
            TensorBoard; paths of several, of which each is one seed, with the same rounds; or arrays by name.
        algorithm: the algorithm of the loop, or its dictionary.
        participation: a record in a file or in memory, as `Recorded.read` takes it; `metrics_sys.csv` of LEAF; `"full"`
            for all clients in every round; a process or its dictionary, where nobody recorded who took part.
        clients: N, where the participation does not hold it.
        normalize: whether the weights of each round are divided by their sum; required for records of 0 and 1.
        empty_rounds: rounds without participants are dropped where the run is the same without them; `"refuse"`
            refuses them.
        format: the name of the format, where the file is not recognized.
        columns: names of ours to those of the file, e.g. `{"round": "Step", "train_loss": "Train/Loss"}`; a list of
            columns is one run each.
        first_round: the round of the log that becomes round 0; earlier ones are left out. The model of this round is
            then $x_0$ of the theorem, and the first row of the participation is that of the round after it.
        f_min: $f^*$, the least value of f; the trace then has `objective_gap`, which is `train_loss` - $f^*$.
        client_weights: $p_n$ of $f=\sum_np_nF_n$, a positive number for each client, such as its number of samples;
            only their ratios matter. With them `"full"` means the weights $p_n$ in every round.

    Raises:
        FedboundsError: a missing column; a number that is not finite; rounds that do not match the participation;
            gradient norms that do not match the gradients; a file that cannot be read.

    Example:
        >>> log = {"round": [0, 1, 2], "gradient_norm_squared": [4.0, 1.0, 0.5], "weights": [[1, 0], [0, 1]]}
        >>> trace = read_log(log, {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5})
        >>> trace.gradient_norm_squared.tolist(), trace.participants.tolist()
        ([[4.0, 1.0, 0.5]], [[0, 1, 1]])
    """
    listed = isinstance(log, list | tuple) and all(map(_is_path, log))
    if not (listed or isinstance(log, Mapping | str | os.PathLike)):
        raise FedboundsError(f"a log is the path of a file, a list of them, or a mapping of arrays, not {quote(log)}")
    made = check_algorithm(algorithm)
    _check_columns(columns)
    first_round = check_count("first_round", first_round, 0)
    paths = [] if isinstance(log, Mapping) else log_paths(log)
    where = " and ".join(map(str, paths)) if len(paths) < 3 else f"{paths[0]} and {len(paths) - 1} more logs"
    where = where or "the log"
    if isinstance(log, Mapping):
        held, notes, names = _renamed(log, columns, where), [], None
    else:
        held, notes, names = _joined(paths, [_read(path, columns, format, participation) for path in paths])
    _check_names(held, where, participation is not None)
    rows = held.pop("weights", None)
    known = {name: _column(name, value, where) for name, value in held.items()}
    _check_shapes({name: value.shape for name, value in known.items()}, where, None)
    known = {name: value[known["round"] >= first_round] for name, value in known.items()}
    rounds, seeds = known.pop("round") - first_round, known.pop("seed", None)
    if not rounds.size:
        raise FedboundsError(f"{where} has no round from first_round = {first_round} on")
    last = int(min(rounds.max(), 2**53))
    who = participation if rows is None else Recorded(rows)
    taken_part = _participation(who, clients, normalize, last, first_round, names, client_weights)
    if isinstance(taken_part, np.ndarray):
        check_empty_rounds(taken_part, empty_rounds)
    N, T = (taken_part.clients, max(last, 1)) if isinstance(taken_part, Process) else taken_part.shape[::-1]
    p = check_client_weights(client_weights, N)
    _check_shapes({name: value.shape for name, value in known.items()} | {"round": rounds.shape}, where, N)
    if NORM in known and (known[NORM] < 0).any():
        raise FedboundsError(f"{where}: {NORM} is negative in line {int(np.argwhere(known[NORM] < 0)[0][0])}")
    logged = known.get(NORM)
    if "gradients" in known:
        known |= products_and_norm(known.pop("gradients"), p)
    elif PRODUCTS in known:
        known[NORM] = norm_from_products(known[PRODUCTS], p)
    if logged is not None and PRODUCTS in known:
        _check_norms(logged, known[NORM], known[PRODUCTS], where)
    if f_min is not None:
        known[GAP] = _gap(known, check_number("f_min", f_min), where)
    seeds = np.zeros(len(rounds)) if seeds is None else seeds
    numbers = np.unique(seeds)
    if (numbers != np.floor(numbers)).any():
        raise FedboundsError(f"{where}: seed must be whole numbers; it has {quote(numbers.tolist())}")
    runs = [np.flatnonzero(seeds == number) for number in numbers]
    at = _recorded_rounds([rounds[run] for run in runs], T, where)
    arrays = {name: np.stack([value[run] for run in runs]) for name, value in known.items()}
    read = [*paths, *([Path(participation)] if _is_path(participation) else [])]
    for path in read:
        for file in event_files(path) if path.is_dir() else [path]:
            protect(file)
    files = [path.name for path in read]
    about = {"files": files, "notes": notes} if files else None
    return build_trace(made, taken_part, at, arrays, numbers.astype(np.int64), about, p)


_Held = tuple[dict[str, Any], list[str], Sequence[str] | None]  # arrays by names of ours, notes, names of clients


def _read(path: Path, columns: Columns | None, format: str | None, participation: Any) -> _Held:
    """A log, and notes on how it was read."""
    if path.suffix == ".npz" and format is None:
        return _npz_columns(path, columns, participation), [], None
    found = read_file(path, columns, format)
    return found.select(columns), found.notes, found.clients


def _joined(paths: Sequence[Path], logs: Sequence[_Held]) -> _Held:
    """Several logs, each of one run, as one."""
    (first, _, names), start = logs[0], paths[0]
    if len(logs) == 1:
        return logs[0]
    kept = [name for name in first if name != "seed" and all(name in held for held, *_ in logs)]
    lost = dict.fromkeys(name for held, *_ in logs for name in held if name not in (*kept, "seed"))
    for path, (held, _, clients) in zip(paths, logs, strict=True):
        if np.unique(held.get("seed", 0)).size > 1:
            raise FedboundsError(f"{path} has several runs; of several logs each must have one")
        for name, what in (("round", "rounds"), ("weights", "participation")):
            if name in kept and not np.array_equal(held[name], first[name]):
                raise FedboundsError(f"{path} has other {what} than {start}; give logs with the same {what}")
        if clients != names:
            raise FedboundsError(f"{path} has other clients than {start}; give logs with the same clients")
    whole: dict[str, Any] = {
        name: np.concatenate([np.asarray(held[name]) for held, *_ in logs]) for name in kept if name != "weights"
    }
    if "weights" in kept:
        whole["weights"] = first["weights"]
    whole["seed"] = np.repeat(np.arange(len(logs)), len(first["round"]) if "round" in first else 0)
    notes = [note for _, of_log, _ in logs for note in of_log if "runs are seeds" not in note]
    notes.append("the logs are seeds: " + ", ".join(f"{n} = {path.name}" for n, path in enumerate(paths)))
    notes += [f"not in all logs, and not read: {', '.join(lost)}"] if lost else []
    return whole, [*dict.fromkeys(notes)], names


def _participation(
    participation: Any,
    clients: int | None,
    normalize: bool | None,
    rounds: int,
    first_round: int,
    names: Sequence[str] | None,
    client_weights: Any,
) -> np.ndarray | Process:
    """The weights (T, N) of a log whose last recorded round is `rounds`; those of a record may end later."""
    count = None if clients is None else check_count("clients", clients)
    if isinstance(participation, str) and participation == FULL:
        if count is None and names is None:
            raise FedboundsError(
                "participation='full' does not hold the number of clients: give clients=N, e.g. clients=10"
            )
        everyone = Full(count or len(names or ()))
        participation = everyone if client_weights is None else SampleWeighted(everyone, client_weights)
    if isinstance(participation, Mapping) and "kind" in participation:
        participation = process_from_spec(participation)
    if isinstance(participation, Process) and not isinstance(participation, Recorded):
        return _declared(participation, count, max(rounds, 1))
    if isinstance(participation, Recorded):
        record = participation
    elif _is_path(participation):
        path, known = Path(participation), count if names is None else names
        leaf = is_leaf_record(path)
        record = (
            Recorded(read_participation(path, names, count, first_round))
            if leaf
            else Recorded.read(path, clients=known)
        )
    else:
        try:
            record = Recorded.read(participation, clients=count)
        except FedboundsError as error:
            raise FedboundsError(f"participation= is 'full', a process, a file or weights (T, N): {error}") from None
    if count not in (None, record.clients):
        raise FedboundsError(f"clients = {count}, and the participation has {record.clients}; leave clients= out")
    q = np.asarray(record.weights)
    over = np.flatnonzero(q.sum(axis=1) > 1)
    if normalize is None and over.size and np.isin(q, (0.0, 1.0)).all():
        raise FedboundsError(
            f"participation is a record of 0 and 1, and weights sum to 1 (round {over[0]} sums to "
            f"{q[over[0]].sum():g}): give normalize=True, which divides each round by its sum"
        )
    return q if normalize is None else np.asarray(Recorded(q, normalize).weights)


def _declared(process: Process, clients: int | None, rounds: int) -> np.ndarray | Process:
    """The weights of a process, or itself if it is random."""
    if clients not in (None, process.clients):
        raise FedboundsError(f"clients = {clients}, and the participation has {process.clients}; leave clients= out")
    if not process.certain(rounds):
        process.require_one_update("a comparison with a result")
        return process
    check_memory(f"participation of clients = {process.clients} in {rounds} rounds", 16 * rounds * process.clients)
    return process.matrix(rounds, np.random.default_rng(0))  # nothing is drawn


def _gap(known: Mapping[str, np.ndarray], f_min: float, where: str) -> np.ndarray:
    """f(x_t) - f* of the recorded models."""
    if LOSS not in known:
        raise FedboundsError(f"f_min= needs {LOSS}, which {where} lacks: name its column, columns={{'{LOSS}': ...}}")
    gap = known[LOSS] - f_min
    if (gap < 0).any():
        raise FedboundsError(f"f_min = {f_min:g} is above {LOSS} = {known[LOSS].min():g}; give the least value of f")
    return gap


def _is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(value, os.PathLike) or (isinstance(value, str) and value != FULL)


def _check_columns(columns: object) -> None:
    """Refuse what does not name columns."""
    if columns is None:
        return
    pairs = columns.items() if isinstance(columns, Mapping) and columns else [(None, None)]
    for ours, theirs in pairs:
        listed = [theirs] if isinstance(theirs, str) else theirs
        if not isinstance(ours, str) or not isinstance(listed, list | tuple) or not listed:
            break
        if not all(isinstance(name, str) for name in listed):
            break
    else:
        return
    raise FedboundsError(
        f"columns = {quote(columns)} must name columns, e.g. {{'round': 'Step', 'train_loss': 'Loss'}}"
    )


def _renamed(held: Mapping[str, Any], columns: Columns | None, where: str) -> dict[str, Any]:
    """The chosen arrays under names of ours, and the round and weights that have these names."""
    if columns is None:
        return dict(held)
    for name in columns.values():
        if not isinstance(name, str):
            raise FedboundsError(f"columns: {quote(name)} must be the name of one array of {where}")
        if name not in held:
            raise FedboundsError(f"{where}: {unknown_name('column', name, held)}")
    return {name: held[name] for name in ("round", "weights") if name in held} | {
        ours: held[str(theirs)] for ours, theirs in columns.items()
    }


def _npz_columns(path: Path, columns: Columns | None, participation: Any) -> dict[str, Any]:
    """The arrays of an npz file; those of a wrong shape are refused before they are unpacked."""
    weights = participation.weights if isinstance(participation, Recorded) else participation
    clients = np.shape(weights)[1] if isinstance(weights, np.ndarray) and weights.ndim == 2 else None

    def check(shapes: Mapping[str, tuple[int, ...]]) -> None:
        shapes = _renamed(shapes, columns, str(path))
        _check_names(shapes, str(path), participation is not None)
        own = shapes.pop("weights", ())
        _check_shapes(shapes, str(path), own[1] if participation is None and len(own) == 2 else clients)

    try:
        return _renamed(read_arrays(path, f"the log {path}", LARGEST, check), columns, str(path))
    except FedboundsError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise FedboundsError(f"the log {path} is damaged or no npz file: {error or type(error).__name__}") from None


def _check_norms(logged: np.ndarray, own: np.ndarray, products: np.ndarray, where: str) -> None:
    """Refuse norms of f that are not those of its clients' gradients, but for the rounding of single precision."""
    if logged.shape != own.shape:
        raise FedboundsError(f"{where}: {NORM} has shape {logged.shape}; expected {own.shape}")
    size = np.abs(np.diagonal(products, axis1=-2, axis2=-1)).mean(axis=-1)
    other = np.flatnonzero(np.abs(logged - own) > SINGLE * (size + own))
    if other.size:
        t = other[0]
        raise FedboundsError(
            f"{where}: in line {t} {NORM} = {logged[t]:g}, and the clients' gradients there give {own[t]:g}: "
            "f is the mean of all F_n, each with weight 1/N unless client_weights= gives others"
        )


def _column(name: str, value: Any, where: str) -> np.ndarray:
    """An array of finite numbers whose first axis is the recorded rounds."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or not array.ndim:
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError):
        raise FedboundsError(f"{where}: {name} must be an array of numbers, not {quote(value)}") from None
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = tuple(bad[0].tolist())
        raise FedboundsError(f"{where}: {name}[{', '.join(map(str, place))}] = {array[place]} is not finite")
    return array


def _recorded_rounds(runs: Sequence[np.ndarray], T: int, where: str) -> np.ndarray:
    """The recorded rounds, the same of every seed, which are rounds of the participation."""
    at = runs[0]
    if not at.size or (at != np.floor(at)).any() or at[0] != 0 or (np.diff(at) <= 0).any():
        whole = at.size and at[0] > 0 and at[0] == np.floor(at[0]) and (np.diff(at) > 0).all()
        hint = f"; give first_round={at[0]:.0f} to begin with the model of round {at[0]:.0f}" if whole else ""
        said = f"round must begin with 0 and rise, in whole numbers; it is {quote(at.tolist())}"
        raise FedboundsError(f"{where}: {said}{hint}")
    if any(not np.array_equal(at, other) for other in runs[1:]):
        raise FedboundsError(f"{where}: the seeds were recorded in different rounds")
    if at[-1] > T:
        raise FedboundsError(f"{where} has round {at[-1]:.0f}, and the participation ends after {T} rounds")
    if T - at[-1] > np.diff(at).max(initial=1):
        raise FedboundsError(f"{where} ends at round {at[-1]:.0f}, and the participation has {T} rounds")
    return at.astype(np.int64)


def _check_names(columns: Iterable[str], where: str, known_apart: bool) -> None:
    """Refuse a log that lacks a column, or has one too many."""
    if "weights" in columns and known_apart:
        raise FedboundsError(f"{where} has weights: leave participation= out")
    if "weights" not in columns and not known_apart:
        raise FedboundsError(
            f"{where} lacks weights, who took part in each round: give participation='full' and clients=N if every "
            "client did, else participation= the weights (T, N) or a file of them"
        )
    if "round" not in columns:
        raise FedboundsError(f"{where} lacks round: in which round each of its lines was measured")
    for name in columns:
        if name in RESERVED or name.startswith("participation_"):
            raise FedboundsError(f"{where}: {name} is a reserved name of traces; rename the column")


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], where: str, N: int | None) -> None:
    """Refuse columns that do not belong to the same lines and the same clients (None: not known yet)."""
    for name in sorted(shapes.keys() & {"round", "seed"}):
        if len(shapes[name]) != 1 or not shapes[name][0]:
            raise FedboundsError(f"{where}: {name} has shape {shapes[name]}; expected one number for each line")
    lines = shapes["round"][0]
    for name, shape in shapes.items():
        if shape[:1] != (lines,):
            raise FedboundsError(f"{where}: {name} has {shape[0] if shape else 0} lines, round has {lines}")
    if "gradients" in shapes:
        shape = shapes["gradients"]
        if len(shape) != 3 or N not in (None, shape[1]):
            raise FedboundsError(f"{where}: gradients has shape {shape}; expected ({lines}, {N}, d), all clients")
    elif PRODUCTS in shapes:
        shape = shapes[PRODUCTS]
        if len(shape) != 3 or shape[1] != shape[2] or N not in (None, shape[1]):
            raise FedboundsError(f"{where}: {PRODUCTS} has shape {shape}; expected ({lines}, {N}, {N})")
    for name, shape in shapes.items():
        dims = DIMS.get(name, ("seed", "round", "client", "coordinate") if name == "gradients" else ("seed", "round"))
        if len(shape) != len(dims) - 1:
            raise FedboundsError(f"{name} has shape {shape}; expected ({', '.join(dims[1:])})")
