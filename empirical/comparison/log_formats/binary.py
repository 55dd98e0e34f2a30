"""Binary logs: event files of TensorBoard, and the HDF5 results of PFLlib."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np

from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.bounds.inputs.user_files import open_regular, read_bytes
from fedbounds.empirical.comparison.log_formats.log import LARGEST, Columns, Log


def event_files(folder: Path) -> list[Path]:
    """The event files of TensorBoard in a folder, in the order of their names, which begin with the time."""
    return sorted(path for path in folder.iterdir() if "tfevents" in path.name and path.is_file())


def read_tensorboard(path: Path, columns: Columns | None) -> Log:
    """The scalars of an event file, or of a folder of those of one run, by their tags."""
    log, found = Log(str(path)), dict[str, dict[float, float]]()
    files = event_files(path) if path.is_dir() else [path]
    for file in files:
        for tag, values in _scalars(file).items():
            kept = found.setdefault(tag, {})
            if replaced := [at for at in kept if at >= min(values)]:  # of a run that began again at a checkpoint
                log.notes.append(f"{tag}: {file.name} replaces {len(replaced)} rounds of earlier event files")
            found[tag] = {at: value for at, value in kept.items() if at < min(values)} | values
    for tag, values in found.items():
        for at, value in values.items():
            log.add(tag, "", at, value)
    if not log.metrics:
        raise FedboundsError(f"{path} holds no scalars; give an event file with scalars")
    return log


def _scalars(path: Path) -> dict[str, dict[float, float]]:
    """The scalars of one event file: tag -> round -> value."""
    records = _count_records(read_bytes(path, f"the log {path}", LARGEST), path)
    try:
        loaders = import_module("tensorboard.backend.event_processing.event_file_loader")
        tensors = import_module("tensorboard.util.tensor_util")
    except ImportError:
        raise MissingExtra("logs", "tensorboard") from None
    try:
        events = list(loaders.EventFileLoader(str(path)).Load())
    except Exception as error:  # a damaged file fails in many ways
        raise FedboundsError(f"the log {path} is damaged or no event file: {error or type(error).__name__}") from None
    if len(events) != records:  # the package ends quietly at a damaged record
        raise FedboundsError(f"the log {path} is damaged: {len(events)} of its {records} records can be read")
    one = Log(str(path))  # refuses rounds that do not rise
    for event in events:
        for value in event.summary.value:
            array = tensors.make_ndarray(value.tensor) if value.HasField("tensor") else np.asarray(value.simple_value)
            if array.size == 1 and array.dtype.kind == "f":
                one.add(value.tag, "", float(event.step), float(array.ravel()[0]))
    return {tag: runs[""] for tag, runs in one.metrics.items()}


def _count_records(content: bytes, path: Path) -> int:
    """The records of an event file: a length of 8 bytes, a checksum of 4, the record, and its checksum of 4."""
    place = count = 0
    while place < len(content):
        place += 16 + int.from_bytes(content[place : place + 8], "little")
        count += 1
    if place != len(content):
        raise FedboundsError(f"the log {path} is no event file, or its end is missing; copy it when the run has ended")
    return count


def read_pfllib(path: Path, columns: Columns | None) -> Log:
    """The arrays `rs_*` of an HDF5 file, one value for each evaluation, taken to be in every round."""
    try:
        h5py = import_module("h5py")
    except ImportError:
        raise MissingExtra("logs", "h5py") from None
    log = Log(
        str(path), notes=["one value for each round is taken, as with eval_gap = 1; losses weight clients by samples"]
    )
    with open_regular(path, f"the log {path}", LARGEST) as file:
        try:
            with h5py.File(file, "r") as arrays:
                found = {name: np.asarray(array) for name, array in arrays.items() if name.startswith("rs_")}
        except Exception as error:  # a damaged file fails in many ways
            why = " ".join(str(error).split())
            raise FedboundsError(f"the log {path} is damaged or no HDF5 file: {why[:120]}") from None
    for name, values in found.items():
        if values.ndim == 1 and values.dtype.kind in "fi":
            for t, value in enumerate(values.tolist()):
                log.add(name, "", float(t), float(value))
    return log
