"""What a simulation leaves behind: named arrays with named dimensions, and one file for all of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.display.tables import Shown, Table
from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.bounds.inputs.output_files import Output, write_stream
from fedbounds.bounds.inputs.user_files import protect
from fedbounds.empirical.runtime.array_files import read_arrays

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SCHEMA = "fedbounds-trace-1"
ARCHIVE = rb"(?s)PK\x03\x04.{26}about\.json\.npy"  # how a trace begins
LARGEST = 2**32  # bytes a trace may unpack to
MOST_SHOWN = 15  # metrics in the printed summary
SMALL = 2**16  # bytes of a trace that is put together in memory and not compressed, which takes half the time


@dataclass(frozen=True, eq=False)
class Trace(Shown):
    """The record of one simulation.

    Example:
        >>> trace = Trace({"round": np.arange(2), "loss": np.ones((1, 2))}, {"round": ("round",),
        ...     "loss": ("seed", "round")}, {}, "batched", ("done",))
        >>> trace.loss.shape
        (1, 2)
    """

    # name -> array. Always there: `seed` (the run-seeds), `round` (the recorded rounds), `participants` (how many
    # clients computed since the round recorded before, (seed, round)), `uplink_bytes` (what all clients together have
    # sent up to the round, (seed, round), if the messages of the algorithm are always equally long: `message_bytes` of
    # the spec; in tiers of clients and hubs also what hubs have sent each other, if a round always sends as much),
    # `empty_rounds` and `unnormalized_rounds` (rounds in which nobody took part, and whose positive weights, of minimax
    # algorithms $nw_iq_i$, do not sum to one: outside the theory, but that minimax theory wants a sum of one on average
    # only; (seed,)), `diverged_at` (the recorded round at which a seed was found not to be finite, -1 if never), and
    # the problem's metrics, (seed, round). A log of a run whose participants nobody recorded has no `participants`,
    # `empty_rounds` and `unnormalized_rounds`
    arrays: Mapping[str, np.ndarray]
    dims: Mapping[str, tuple[str, ...]]  # name -> the names of its dimensions
    spec: dict[str, Any]  # what was run, as a JSON-able dictionary
    engine: str  # which engine ran it, in words
    # of each seed, "done" or "diverged". A diverged seed is not run on: its metrics are NaN afterwards
    statuses: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", MappingProxyType(dict(self.arrays)))
        object.__setattr__(self, "dims", MappingProxyType({name: tuple(d) for name, d in self.dims.items()}))

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self.__dict__["arrays"][name]
        except KeyError:
            raise AttributeError(f"the trace has no array {name!r}; it has {', '.join(self.dims)}") from None

    def __repr__(self) -> str:
        """One line; `print` shows the whole summary."""
        return f"<Trace: {self._about}>"

    def __str__(self) -> str:
        """What was run, then each recorded quantity with its first and last value, the mean over the seeds."""
        at = self.arrays.get("round", np.zeros(0))
        ends = f"at round {at[0]} -> {at[-1]}" if len(at) else ""
        names = [name for name in self.metrics if len(at) and name != "participants"]
        width = max(map(len, names), default=0)
        lines = [f"  {name:{width}}  {self._end(name, 0)} -> {self._end(name, -1)}" for name in names[:MOST_SHOWN]]
        more = [f"  and {len(names) - MOST_SHOWN} more: trace.metrics"] if len(names) > MOST_SHOWN else []
        log = self.spec.get("log", {})
        said = [*(f"read from {path}" for path in log.get("files", ())), *log.get("notes", ())]
        return "\n".join(
            [self._about, *([f"  recorded {ends}:"] if names else []), *lines, *more, *(f"  {s}" for s in said)]
        )

    def _end(self, name: str, place: int) -> str:
        return number(float(np.mean(self.arrays[name][:, place])))

    @property
    def _about(self) -> str:
        """Kind, algorithm, clients, seeds and rounds."""
        log, algorithm = self.engine == "logged", self.spec.get("algorithm", {})
        kind = "log" if log else "simulation"
        of = f" of {algorithm['kind']}" if isinstance(algorithm, Mapping) and "kind" in algorithm else ""
        counts = [f"{self.spec['clients']} clients"] if "clients" in self.spec else []
        counts += [f"{len(self.statuses)} seed{'s' if len(self.statuses) != 1 else ''}"]
        at = self.arrays.get("round", np.zeros(0))
        counts += [f"{self.spec['rounds']} rounds, {len(at)} recorded"] if "rounds" in self.spec else []
        bad = self.statuses.count("diverged")
        return f"{kind}{of}: {', '.join(counts)}{f'; {bad} seeds diverged' if bad else ''}"

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__, arrays=dict(self.arrays), dims=dict(self.dims))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the arrays recorded per seed and round."""
        return tuple(name for name, dims in self.dims.items() if dims == ("seed", "round"))

    def participation(self, seed: int) -> np.ndarray:
        """The weights of a run-seed's rounds as a matrix (T, N); needs `record_participation`.

        Raises:
            FedboundsError: the trace lacks the record, or the seed.
        """
        if "participation_weight" not in self.arrays:
            raise FedboundsError("the trace has no participation record; simulate with record_participation=True")
        if seed not in self.arrays["seed"]:
            raise FedboundsError(f"seed {seed} is not in the trace; it has {self.arrays['seed'].tolist()}")
        mine = self.arrays["participation_seed"] == seed
        matrix = np.zeros((self.spec["rounds"], self.spec["clients"]))
        where = self.arrays["participation_round"][mine], self.arrays["participation_client"][mine]
        matrix[where] = self.arrays["participation_weight"][mine]
        return matrix

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes one `.npz` file without pickles, under a temporary name first; returns its path.

        Args:
            path: of the file; a trace that is there is overwritten.
            force: overwrite any other file, too.

        Raises:
            FedboundsError: the file cannot be written, or is another.
        """
        target = Path(path)
        try:
            write_stream(Output(target, ARCHIVE), self.write, force)
        except OSError as error:
            raise FedboundsError(f"cannot write the trace {target}: {error.strerror or error}") from None
        return target

    def write(self, file: BinaryIO) -> None:
        """Writes what `save` does into an open file.

        Raises:
            OSError: the file cannot be written.
        """
        about = {
            "schema": SCHEMA,
            "dims": {name: list(dims) for name, dims in self.dims.items()},
            "spec": self.spec,
            "engine": self.engine,
            "statuses": list(self.statuses),
        }
        header = json.dumps(about | {"checksum": _checksum(about, self.arrays)})
        members = {"about.json": np.array(header), **self.arrays}
        if sum(array.nbytes for array in members.values()) > SMALL:
            np.savez_compressed(file, allow_pickle=False, **members)
        else:
            archive = io.BytesIO()
            np.savez(archive, allow_pickle=False, **members)
            file.write(archive.getbuffer())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trace:
        """Reads what `save` wrote.

        Raises:
            FedboundsError: no such file, not a trace, damaged, or too large.
        """
        try:
            arrays = read_arrays(path, f"the trace {path}", LARGEST)
            about = json.loads(str(arrays.pop("about.json")))
            checksum = about.pop("checksum")
            if about["schema"] != SCHEMA:
                raise FedboundsError(f"the trace {path} has schema {about['schema']!r}, this version reads {SCHEMA!r}")
            intact = checksum == _checksum(about, arrays)
            for log in about["spec"].get("log", {}).get("files", ()):
                protect(Path(path).parent / log)
        except FedboundsError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise FedboundsError(f"there is no trace {path}") from None
            raise
        except Exception as error:  # a damaged archive fails in many ways: zlib, zip, numpy, JSON, missing keys
            raise FedboundsError(f"the trace {path} is damaged or no trace: {error or type(error).__name__}") from None
        if not intact:
            raise FedboundsError(f"the trace {path} is damaged: its checksum does not match")
        dims = {name: tuple(names) for name, names in about["dims"].items()}
        return Trace(arrays, dims, about["spec"], about["engine"], tuple(about["statuses"]))

    @property
    def headline(self) -> str:
        """What was run, and how it ended."""
        ended = ", ".join(f"{self.statuses.count(word)} {word}" for word in dict.fromkeys(self.statuses))
        return (
            f"{len(self.statuses)} seeds ({ended}); {len(self.arrays['round'])} recorded rounds; engine {self.engine}"
        )

    def tables(self) -> tuple[Table, ...]:
        """Every metric at the first and the last recorded round: mean and standard deviation over the seeds."""
        ends = {"first": 0, "last": -1}
        columns = [f"{which} {what}" for which in ends for what in ("mean", "deviation")]
        rows = [
            (name, *(of(self.arrays[name][:, at]) for at in ends.values() for of in (np.mean, np.std)))
            for name in self.metrics
        ]
        return (Table("", ("metric", *columns), rows),)

    def to_xarray(self) -> xr.Dataset:
        """The arrays as an `xarray.Dataset`; spec (JSON), engine and statuses are attributes.

        Raises:
            MissingExtra: xarray is not installed.
        """
        try:
            import xarray
        except ImportError:
            raise MissingExtra("empirical", "xarray") from None
        coordinates = {name: (dims, self.arrays[name]) for name, dims in self.dims.items() if dims == (name,)}
        data = {name: (dims, self.arrays[name]) for name, dims in self.dims.items() if dims != (name,)}
        attributes = {"spec": json.dumps(self.spec), "engine": self.engine, "statuses": list(self.statuses)}
        return xarray.Dataset(data, coordinates, attributes)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per seed and recorded round, one column per metric.

        Raises:
            MissingExtra: pandas (which comes with xarray) is not installed.
        """
        table = self.to_xarray()[list(self.metrics)]
        return table.to_dataframe().reset_index()


def _checksum(about: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
