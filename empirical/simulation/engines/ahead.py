"""Rounds planned ahead: what a block of rounds needs on a device is moved there at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from fedbounds.empirical.algorithms.cohort import Cohort, Placed, PlacedRound

NUMBERS = 2**22  # drawn for the rounds of one block; a round that needs more is a block of its own


def move_arrays(tables: Sequence[Mapping[str, np.ndarray]], device: torch.device) -> list[dict[str, torch.Tensor]]:
    """Arrays on a device, all in one move for the integers and one for the others."""
    there: list[dict[str, torch.Tensor]] = [{} for _ in tables]
    for kind in (np.int64, np.float64):
        own = [
            (row, name, array)
            for row, table in zip(there, tables, strict=True)
            for name, array in table.items()
            if np.issubdtype(array.dtype, np.integer) == (kind is np.int64)
        ]
        if not own:
            continue
        flat = torch.from_numpy(np.concatenate([array.ravel() for _, _, array in own], dtype=kind))
        if device.type == "cuda":
            flat = flat.pin_memory()  # or the move would wait for all queued work
        parts = flat.to(device, non_blocking=True).split([array.size for _, _, array in own])
        for (row, name, array), part in zip(own, parts, strict=True):
            row[name] = part.view(array.shape)
    return there


def place_ahead(
    cohorts: Sequence[Cohort], tables: Sequence[Mapping[str, np.ndarray]], device: torch.device
) -> Iterable[Cohort]:
    """The cohorts of a block of rounds, with what their engine needs on the device of the models."""
    both = [{**cohort.arrays, **table} for cohort, table in zip(cohorts, tables, strict=True)]
    for cohort, found in zip(cohorts, move_arrays(both, device), strict=True):
        yield replace(cohort, ahead=PlacedRound(Placed(*(found.pop(name) for name in Placed._fields)), found))
