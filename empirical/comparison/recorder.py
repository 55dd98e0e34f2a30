r"""Runs made elsewhere: a training loop, or its log, becomes a trace for `confront` and `overlay`.

The loop gives the weights of every round and, in recorded rounds, measurements at the global model $x_t$ at its start.
Whether the loop runs the stated algorithm is not checked, so no bound is a guarantee for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory, quote, read_number
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.empirical.algorithms import Algorithm, algorithm_from_spec
from fedbounds.empirical.participation import Recorded
from fedbounds.empirical.participation.recorded import read_csv
from fedbounds.empirical.problems.logged import LOG
from fedbounds.empirical.simulation.simulate import describe_process
from fedbounds.empirical.simulation.trace import Trace, read_arrays

LARGEST = 2**30  # bytes of a log
SINGLE = 1e-4  # relative difference, to the clients' own squared norms, up to which logged norms are the same
RESERVED = ("participants", "empty_rounds", "unnormalized_rounds", "diverged_at")  # counts of a trace
NORM, PRODUCTS, MODEL, LOSS = "gradient_norm_squared", "gradient_products", "model", "train_loss"
DIMS = {  # of what is not one number a round
    MODEL: ("seed", "round", "coordinate"),
    PRODUCTS: ("seed", "round", "client", "other_client"),
}
Vector = Any  # a module, a tensor, an array, or a mapping or sequence of them


class Recorder:
    r"""Records a training loop: one call of `round` in each round, before the model changes.

    $f=\frac1N\sum_nF_n$ with $F_n$ the loss of client n on all its data: every client has the same weight. From the
    clients' gradients $g_n=\nabla F_n(x_t)$ the trace keeps `gradient_norm_squared`, $\lVert\frac1N\sum_ng_n\rVert^2$,
    and `gradient_products`, $g_n^\top g_m$ (seed, round, client, client), which determine every divergence between
    clients at $x_t$.

    Args:
        algorithm: the algorithm of the loop, or its dictionary.
        clients: N.
        data: each client's data, for the recorder to compute the gradients; anything that `loss` takes.
        loss: `loss(model, data[n])`, the mean loss of the module on all the data of client n.
        keep_models: whether the trace keeps the models.

    Raises:
        FedboundsError: data without a loss or a loss without data, not one part for each client, a client without
            data, an unknown algorithm.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
        >>> centers, x = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([2.0, 2.0])
        >>> recorder = Recorder(FedAvg(0.25, 1), clients=2)
        >>> for t in range(20):
        ...     recorder.round({0: 0.5, 1: 0.5}, x, gradients=x - centers)
        ...     x = x - 0.25 * (x - centers).mean(axis=0)
        >>> trace = recorder.trace(x, gradients=x - centers)
        >>> trace.gradient_norm_squared.round(4)[0, :3].tolist()
        [8.0, 4.5, 2.5312]
        >>> from fedbounds.empirical.comparison.compare_run import confront
        >>> known = {"L": 1, "F": 4, "sigma": 0, "beta": 0, "nu": 1, "delta": 0}
        >>> comparison = confront(trace, "arbitrary-participation/theorem-3.1", "explicit", given=known)
        >>> comparison.crossings.size, comparison.guarantee
        (0, False)
    """

    def __init__(
        self,
        algorithm: Algorithm | Mapping[str, Any],
        clients: int,
        *,
        data: Sequence[Any] | None = None,
        loss: Callable[[Any, Any], torch.Tensor] | None = None,
        keep_models: bool = False,
    ) -> None:
        self.algorithm = _algorithm(algorithm)
        self.clients = check_count("clients", clients)
        if (data is None) != (loss is None):
            raise FedboundsError("data= and loss= go together: each client's data, and its mean loss on them")
        if data is not None:
            if len(data) != self.clients:
                raise FedboundsError(f"data= has {len(data)} parts, one for each of {self.clients} clients is needed")
            for n, own in enumerate(data):
                _check_data(n, own)
        self._data, self._loss, self._keep = data, loss, keep_models
        self._weights: list[np.ndarray] = []
        self._records: dict[int, dict[str, np.ndarray]] = {}
        self._bytes = 0

    def round(
        self,
        weights: Mapping[int, float] | Sequence[float] | np.ndarray,
        model: Vector = None,
        *,
        gradients: Any = None,
        gradient_norm_squared: float | None = None,
        **metrics: float,
    ) -> None:
        r"""Record a round before the model changes; with weights alone, only its participation.

        Args:
            weights: $q_t^n$ of the participants: `{client: weight}`, or one weight for each client.
            model: $x_t$, before the round: a module, a tensor or array, or a mapping or sequence of them.
            gradients: $\nabla F_n(x_t)$ of every client, in the order of the clients.
            gradient_norm_squared: $\lVert\nabla f(x_t)\rVert^2$, where the gradients are not given.
            metrics: other measurements, by name: `train_loss`, `test_accuracy`.

        Raises:
            FedboundsError: invalid weights, a model or number that is not finite, other metrics than those of the first
                recorded round; with the round.
        """
        t = len(self._weights)
        record = self._record(t, model, gradients, gradient_norm_squared, metrics)
        row = _weights(weights, self.clients, t)
        if record:
            self._check_names(t, record)
            size = sum(value.nbytes for value in record.values())
            check_memory(f"the record of {len(self._records) + 1} rounds", self._bytes + size)
            self._records[t], self._bytes = record, self._bytes + size
        self._weights.append(row)

    def trace(
        self,
        model: Vector = None,
        *,
        gradients: Any = None,
        gradient_norm_squared: float | None = None,
        **metrics: float,
    ) -> Trace:
        """The trace of all rounds; measurements at the last model $x_T$ may be given as for `round`.

        Raises:
            FedboundsError: no round, or nothing but weights, was recorded; or as for `round`.
        """
        T = len(self._weights)
        if not T:
            raise FedboundsError("nothing was recorded: call round(...) once in each round")
        records = dict(self._records)
        last = self._record(T, model, gradients, gradient_norm_squared, metrics)
        if last:
            self._check_names(T, last)
            records[T] = last
        if 0 not in records:
            raise FedboundsError("round 0 recorded no model and no metric: a trace begins at the model x_0")
        at = sorted(records)
        arrays = {name: np.stack([records[t][name] for t in at])[None] for name in records[0]}
        return _trace(self.algorithm, np.array(self._weights), np.array(at), arrays, np.zeros(1, dtype=np.int64))

    def _record(
        self, t: int, model: Vector, gradients: Any, norm: float | None, metrics: Mapping[str, float]
    ) -> dict[str, np.ndarray]:
        record = {name: _number(name, value, t) for name, value in metrics.items()}
        flat = None if model is None else _flat(model, f"the model of round {t}")
        if flat is not None and self._keep:
            record[MODEL] = flat
        if gradients is not None and norm is not None:
            raise FedboundsError(f"round {t}: give gradients= or gradient_norm_squared=, not both")
        if gradients is None and norm is None and model is not None and self._loss is not None:
            gradients, record[LOSS] = self._client_gradients(model, t)
        if gradients is not None:
            rows = [_flat(g, f"the gradient of client {n} in round {t}") for n, g in enumerate(gradients)]
            if len(rows) != self.clients:
                raise FedboundsError(f"round {t}: {len(rows)} gradients, there are {self.clients} clients: give all")
            sizes = {len(row) for row in rows} | ({len(flat)} if flat is not None else set())
            if len(sizes) > 1:
                raise FedboundsError(f"round {t}: gradients and model have {sorted(sizes)} coordinates; give as many")
            record |= _products_and_norm(np.stack(rows))
        elif norm is not None:
            record[NORM] = _number(NORM, norm, t, low=0)
        return record

    def _client_gradients(self, model: Any, t: int) -> tuple[list[torch.Tensor], np.ndarray]:
        """Every client's gradient at a module, and the mean of their losses; the module is as before afterwards."""
        assert self._data is not None and self._loss is not None
        if not isinstance(model, torch.nn.Module):
            raise FedboundsError(f"round {t}: model= must be a torch.nn.Module for loss= to be differentiated")
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradients, losses, training = [], [], model.training
        model.eval()  # neither dropout nor running statistics: F_n is a function of the model
        try:
            for n, own in enumerate(self._data):
                loss = self._loss(model, own)
                losses.append(_number(f"the loss of client {n}", float(loss.detach()), t))
                parts = torch.autograd.grad(loss, parameters, allow_unused=True)
                gradients.append(
                    [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, parts, strict=True)]
                )
        finally:
            model.train(training)
        return gradients, np.asarray(np.mean(losses))

    def _check_names(self, t: int, record: Mapping[str, np.ndarray]) -> None:
        first = self._records.get(0, record)
        for here, there, a, b in ((record, first, t, 0), (first, record, 0, t)):
            for name, value in here.items():
                if name not in there:
                    raise FedboundsError(f"round {a} has {name}, round {b} has not: give it in every recorded round")
                if np.shape(value) != np.shape(there[name]):
                    raise FedboundsError(
                        f"{name} has shape {np.shape(value)} in round {a}, {np.shape(there[name])} in round {b}"
                    )


def read_log(
    log: str | os.PathLike[str] | Mapping[str, Any],
    algorithm: Algorithm | Mapping[str, Any],
    participation: Any = None,
) -> Trace:
    """The trace of a log of a training loop: a CSV or npz file, or a mapping of columns.

    | column | shape | what |
    |---|---|---|
    | `round` | (rounds) | the recorded rounds, from 0, each once; of each seed, if there are several |
    | `seed` | (rounds) | the run, if there are several; they share their participation |
    | `gradient_norm_squared`, `train_loss`, ... | (rounds) | measurements at the model before the round |
    | `weights` | (T, N) | weights of the participants, if `participation` is not given; not in a CSV file |
    | `model` | (rounds, d) | the models; not in a CSV file |
    | `gradients` | (rounds, N, d) | every client's gradient there; not in a CSV file |

    Args:
        log: the path of a file that ends in `.csv` (a line of names, then a line for each recorded round) or `.npz`
            (arrays, no pickles), or a mapping of arrays.
        algorithm: the algorithm of the loop, or its dictionary.
        participation: the weights (T, N), or a CSV file of them as for `Recorded.from_csv`.

    Raises:
        FedboundsError: a missing column; a number that is not finite; rounds that do not match the participation;
            gradient norms that do not match the gradients.

    Example:
        >>> log = {"round": [0, 1, 2], "gradient_norm_squared": [4.0, 1.0, 0.5], "weights": [[1, 0], [0, 1]]}
        >>> trace = read_log(log, {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5})
        >>> trace.gradient_norm_squared.tolist(), trace.participants.tolist()
        ([[4.0, 1.0, 0.5]], [[0, 1, 1]])
    """
    if not isinstance(log, Mapping | str | os.PathLike):
        raise FedboundsError(f"a log is the path of a .csv or .npz file, or a mapping of arrays, not {quote(log)}")
    record = None
    if isinstance(participation, str | os.PathLike):
        record = Recorded.from_csv(Path(participation))
    elif participation is not None:
        record = participation if isinstance(participation, Recorded) else Recorded(participation)
    clients = None if record is None else record.clients
    columns, where = (dict(log), "the log") if isinstance(log, Mapping) else (_columns(Path(log), clients), str(log))
    _check_names(columns, where, record is not None)
    record = Recorded(columns.pop("weights")) if record is None else record
    q = np.asarray(record.weights)
    known = {name: _column(name, value, where) for name, value in columns.items()}
    lines, N = len(known["round"]), q.shape[1]
    _check_shapes({name: value.shape for name, value in known.items()}, where, N)
    if NORM in known and (known[NORM] < 0).any():
        raise FedboundsError(f"{where}: {NORM} is negative in line {int(np.argwhere(known[NORM] < 0)[0][0])}")
    logged = known.get(NORM)
    if "gradients" in known:
        known |= _products_and_norm(known.pop("gradients"))
    elif PRODUCTS in known:
        known[NORM] = known[PRODUCTS].mean(axis=(-1, -2))
    if logged is not None and PRODUCTS in known:
        _check_norms(logged, known[NORM], known[PRODUCTS], where)
    rounds, seeds = known.pop("round"), known.pop("seed", np.zeros(lines))
    names = np.unique(seeds)
    if (names != np.floor(names)).any():
        raise FedboundsError(f"{where}: seed must be whole numbers; it has {quote(names.tolist())}")
    runs = [np.flatnonzero(seeds == name) for name in names]
    at = _recorded_rounds([rounds[run] for run in runs], len(q), where)
    arrays = {name: np.stack([value[run] for run in runs]) for name, value in known.items()}
    return _trace(_algorithm(algorithm), q, at, arrays, names.astype(np.int64))


def _trace(
    algorithm: Algorithm, q: np.ndarray, at: np.ndarray, arrays: dict[str, np.ndarray], seeds: np.ndarray
) -> Trace:
    """The trace of runs that share their weights (T, N), recorded in the rounds `at`; arrays (seeds, rounds, ...)."""
    S, computed = len(seeds), np.concatenate([[0], (q > 0).sum(axis=1).cumsum()])
    when, who = np.nonzero(q)
    sums = q.sum(axis=1)
    every = {"seed": seeds, "round": at}
    counts = {
        "empty_rounds": np.full(S, (sums == 0).sum()),
        "unnormalized_rounds": np.full(S, ((sums > 0) & (np.abs(sums - 1) > SUM_TOLERANCE)).sum()),
        "diverged_at": np.full(S, -1),
    }
    taken_part = {
        "seed": np.repeat(seeds, len(when)), "round": np.tile(when, S), "client": np.tile(who, S),
        "weight": np.tile(q[when, who], S),
    }  # fmt: skip
    participants = np.tile(np.diff(computed[at], prepend=0), (S, 1))
    dims = {
        **{name: (name,) for name in every},
        **{name: ("seed",) for name in counts},
        **{f"participation_{name}": ("participation",) for name in taken_part},
        "participants": ("seed", "round"),
        **{name: DIMS.get(name, ("seed", "round")) for name in arrays},
    }
    for name, value in arrays.items():
        if value.ndim != len(dims[name]):
            raise FedboundsError(f"{name} has shape {value.shape[1:]}; expected ({', '.join(dims[name][1:])})")
    if MODEL in arrays and NORM in arrays:
        _check_repeats(arrays[MODEL], arrays.get(PRODUCTS, arrays[NORM][..., None, None]), at)
    spec = {
        "problem": LOG,
        "clients": q.shape[1],
        "dimension": arrays[MODEL].shape[-1] if MODEL in arrays else 0,
        "dtype": "float64",
        "participation": describe_process(Recorded(q)),
        "rounds": len(q),
        "record_every": int(np.diff(at).max(initial=1)),
        "streams": {},
        "algorithm": algorithm.spec(),
    }
    whole = {f"participation_{name}": value for name, value in taken_part.items()}
    everything = every | counts | whole | {"participants": participants} | arrays
    return Trace(everything, dims, spec, "logged", ("done",) * S)


def _algorithm(algorithm: Algorithm | Mapping[str, Any]) -> Algorithm:
    made = algorithm if isinstance(algorithm, Algorithm) else algorithm_from_spec(algorithm)
    if made.ascends:
        raise FedboundsError(f"{made.kind} is for minimax problems, whose logs are not read")
    return made


def _check_data(client: int, own: Any) -> None:
    """Refuse a client that holds nothing."""
    parts = own if isinstance(own, tuple | list) else [own]
    if not len(parts) or any(hasattr(part, "__len__") and len(part) == 0 for part in parts):
        raise FedboundsError(f"client {client} has no data, and its loss is a mean over them: leave it out")


def _weights(weights: Any, clients: int, t: int) -> np.ndarray:
    """One round's weights (N,)."""
    row = np.zeros(clients)
    if isinstance(weights, Mapping):
        for client, weight in weights.items():
            place = check_count(f"round {t}: client", client, 0, clients - 1, why=f"there are {clients} clients")
            row[place] = _number(f"the weight of client {client}", weight, t, low=0)
        return row
    given = list(weights)
    if len(given) != clients:
        raise FedboundsError(
            f"round {t}: {len(given)} weights, not {clients}, one for each client; or give {{client: weight}}"
        )
    row[:] = [_number(f"the weight of client {n}", weight, t, low=0) for n, weight in enumerate(given)]
    return row


def _number(name: str, value: Any, t: int, low: float = -np.inf) -> np.ndarray:
    """A finite number of a round, float64; tensors and arrays of one number are numbers."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise FedboundsError(f"round {t}: {name} = {quote(value)} must be a number") from None
    if not low <= number < np.inf or number == -np.inf:
        raise FedboundsError(f"round {t}: {name} = {number:g} is not a finite number{' >= 0' if low == 0 else ''}")
    return np.asarray(number)


def _flat(vector: Vector, what: str) -> np.ndarray:
    """All its numbers one after another, finite, float64 (d,)."""
    if isinstance(vector, torch.nn.Module):
        parts = list(vector.parameters())
    elif isinstance(vector, Mapping):
        parts = list(vector.values())
    elif isinstance(vector, torch.Tensor | np.ndarray):
        parts = [vector]
    else:
        parts = list(vector)
    rows = [torch.as_tensor(part).detach().cpu().double().numpy().ravel() for part in parts]
    flat = np.concatenate(rows) if rows else np.zeros(0)
    if not flat.size:
        raise FedboundsError(f"{what} has no numbers")
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        raise FedboundsError(f"{what} is not finite: {flat[bad[0]]} at coordinate {bad[0]} of {len(flat)}")
    return flat


def _check_repeats(models: np.ndarray, products: np.ndarray, at: np.ndarray) -> None:
    """Refuse gradients that differ at the same model: those of a batch, or models that were not updated in the log."""
    same = (models[:, 1:] == models[:, :-1]).all(axis=-1)
    size = np.abs(products).max(axis=(-1, -2))
    change = np.abs(np.diff(products, axis=1)).max(axis=(-1, -2))
    other = np.argwhere(same & (change > SINGLE * (size[:, 1:] + size[:, :-1])))
    if other.size:
        t = int(other[0][1])
        raise FedboundsError(
            f"the model of rounds {at[t]} and {at[t + 1]} is the same and its gradients differ; expected every "
            "client's full gradient at the recorded model: record the model before each round, and no gradients of a "
            "batch"
        )


def _products_and_norm(gradients: np.ndarray) -> dict[str, np.ndarray]:
    """What is kept of the clients' gradients (..., N, d)."""
    clients = gradients.shape[-2]
    records = int(np.prod(gradients.shape[:-2]))
    check_memory(f"the products of clients = {clients} gradients in {records} records", 24 * records * clients**2)
    with np.errstate(over="ignore", invalid="ignore"):
        products = gradients @ np.swapaxes(gradients, -1, -2)
    if not np.isfinite(products).all():
        raise FedboundsError(f"the gradients are too large to be multiplied: up to {np.abs(gradients).max():g}")
    return {PRODUCTS: products, NORM: products.mean(axis=(-1, -2))}


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
            "f is the mean of all F_n, each with weight 1/N"
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
        raise FedboundsError(f"{where}: round must begin with 0 and rise, in whole numbers; it is {quote(at.tolist())}")
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
        raise FedboundsError(f"{where} lacks weights, who took part in each round: give participation= (T, N)")
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


def _columns(path: Path, clients: int | None) -> dict[str, Any]:
    """The columns of a file."""
    if path.suffix == ".csv":
        return _csv_columns(path)
    if path.suffix != ".npz":
        raise FedboundsError(f"{path}: a log ends in .csv or .npz")

    def check(shapes: Mapping[str, tuple[int, ...]]) -> None:
        _check_names(shapes, str(path), clients is not None)
        own = shapes.get("weights", ())
        N = own[1] if clients is None and len(own) == 2 else clients
        _check_shapes({name: shape for name, shape in shapes.items() if name != "weights"}, str(path), N)

    try:
        return read_arrays(path, f"the log {path}", LARGEST, check)
    except FedboundsError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise FedboundsError(f"the log {path} is damaged or no npz file: {error or type(error).__name__}") from None


def _csv_columns(path: Path) -> dict[str, list[float]]:
    lines = read_csv(path, "the log", LARGEST)
    if len(lines) < 2:
        raise FedboundsError(f"{path} holds no rounds; expected a line of names, then a line for each recorded round")
    names = [name.strip() for name in lines[0][1]]
    if len(set(names)) < len(names) or not all(names):
        raise FedboundsError(f"{path}, line {lines[0][0]}: every column needs a name of its own, not {quote(names)}")
    columns: dict[str, list[float]] = {name: [] for name in names}
    for number, cells in lines[1:]:
        for name, cell in zip(names, cells, strict=True):
            try:
                value = read_number(cell)
            except ValueError:
                raise FedboundsError(f"{path}, line {number}: {name} = {quote(cell)} is not a number") from None
            if not np.isfinite(value):
                raise FedboundsError(f"{path}, line {number}: {name} = {value} is not finite")
            columns[name].append(value)
    return columns
