"""The state of a run: participation, active seeds, and the arrays of the trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.empirical.algorithms import Algorithm, Cohort
from fedbounds.empirical.participation import PeriodicGroups, Permutation, Process, Recorded, Round
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.trace import Trace


class SharedParticipation:
    """Participation, drawn once for all seeds and settings that share it, round by round."""

    def __init__(self, process: Process) -> None:
        self.process, self.one = process, isinstance(process, Recorded)
        self._rounds: dict[int, tuple[Iterator[Round], int, Round]] = {}

    def round(self, own: Streams, t: int) -> Round:
        """Round t of a seed; t does not decrease between calls."""
        who = -1 if self.one or "participation" in own.fixed else own.seed
        if who not in self._rounds:
            rounds = self.process.draw(own.generator("participation"))
            self._rounds[who] = rounds, 0, next(rounds)
        rounds, at, drawn = self._rounds[who]
        if at < t:
            drawn = next(rounds)
            self._rounds[who] = rounds, at + 1, drawn
        return drawn


def separate_places(process: Process) -> int:
    """S if a client that has several of the S places of a round makes one local update for each; else 0."""
    return process.participants if isinstance(process, Permutation | PeriodicGroups) and process.repeats else 0


def check_repeats_fit(process: Process, algorithm: Algorithm) -> None:
    """Refuse an algorithm that cannot run if a client makes several local updates in a round."""
    alike = not (algorithm.needs_updates or algorithm.own_weights or algorithm.corrects or algorithm.ascends)
    if not alike or algorithm.tiered:
        process.require_one_update(algorithm.kind)


class RunningSeeds:
    """The seeds of a run: which are active, their participation, and counts."""

    def __init__(self, drawn: SharedParticipation, streams: list[Streams], rounds: int, sparse: bool) -> None:
        self.drawn, self.process = drawn, drawn.process
        self.streams, self.rounds, self.sparse = streams, rounds, sparse
        self.active, self.active_streams = np.arange(len(streams)), streams
        self.computed, self.empty, self.unnormalized, self.sent = np.zeros((4, len(streams)), dtype=np.int64)
        self.bytes: list[int | None] = [None, None]
        self.diverged_at = np.full(len(streams), -1)
        self.participations: list[tuple[np.ndarray, ...]] = []

    def cohort(self, algorithm: Algorithm, state: Any, of_phase: int, t: int) -> Cohort:
        """The cohort of round t, which is round `of_phase` of an algorithm's phase, in this state."""
        try:
            drawn = [self.drawn.round(own, t) for own in self.active_streams]
        except StopIteration:
            raise FedboundsError(f"participation ends after {t} rounds, {self.rounds} were asked for") from None
        present = Cohort.from_rounds(drawn)
        if not present.counts.all():
            self.empty[self.active] += present.counts == 0
        nominal = algorithm.nominal(state, of_phase, present)
        if nominal is not present or not self.process.sums_to_one:
            self.unnormalized[self.active] += (present.counts > 0) & (abs(nominal.sums - 1) > SUM_TOLERANCE)
        if self.sparse:
            when = np.full(len(present.clients), t)
            self.participations.append((self.active[present.seeds], when, present.clients, present.weights))
        cohort = algorithm.cohort(state, of_phase, present, self.process.clients)
        if cohort is present and (places := separate_places(self.process)):
            cohort = cohort.split_places(places)
        cohort = algorithm.local_work(of_phase, t, cohort, self.active_streams)
        self.computed[self.active] += cohort.counts
        each, together = self.bytes
        self.sent[self.active] += cohort.counts * (each or 0) if together is None else together
        return cohort

    def keep(self, finite: np.ndarray, t: int) -> None:
        """Drop the active seeds that are not finite in round t."""
        self.diverged_at[self.active[~finite]] = t
        self.active = self.active[finite]
        self.active_streams = [self.streams[seed] for seed in self.active]


class TraceArrays:
    """The arrays of the trace, filled round by round."""

    def __init__(
        self, problem: Problem, runs: RunningSeeds, rounds: int, every: int, models: bool, counted: bool
    ) -> None:
        self.problem, self.runs, self.every, self.models, self.counted = problem, runs, every, models, counted
        self.rounds = np.unique(np.append(np.arange(0, rounds, every), rounds))
        self.arrays: dict[str, np.ndarray] = {}
        self.dims: dict[str, tuple[str, ...]] = {}
        self._array("participants", ("seed", "round"), np.int64)

    def due(self, t: int) -> bool:
        """Whether round t is recorded."""
        return t % self.every == 0 or t == self.rounds[-1]

    def next(self, t: int) -> int:
        """The first recorded round after t."""
        return min((t // self.every + 1) * self.every, int(self.rounds[-1]))

    def add(
        self,
        t: int,
        models: torch.Tensor,
        state: tuple[torch.Tensor, ...],
        counts: Mapping[str, torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """Records round t of the active seeds; returns the state of those that are finite."""
        runs, column = self.runs, int(np.searchsorted(self.rounds, t))
        finite = torch.isfinite(models).all(1).cpu().numpy()
        sound = np.flatnonzero(finite)  # metrics that solve equations may raise at models that are not finite
        measured = models if finite.all() else models[torch.from_numpy(sound).to(models.device)]
        of = self.problem.metrics_and_products if self.models else self.problem.metrics
        for name, value in (of(measured) if len(sound) else {}).items():
            values = value.detach().cpu().numpy()
            dims = ("seed", "round", "client", "other_client")[: values.ndim + 1]
            self._array(name, dims, np.float64)[runs.active[sound], column] = values
            finite[sound] &= np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        if self.models:
            record = self._array("model", ("seed", "round", "coordinate"), models.cpu().numpy().dtype)
            record[runs.active, column] = models.cpu().numpy()
        self.arrays["participants"][:, column] = runs.computed
        runs.computed[:] = 0
        if self.counted:
            self._array("uplink_bytes", ("seed", "round"), np.int64)[:, column] = runs.sent
        if finite.all():
            return state
        self.count({name: value[~torch.from_numpy(finite)] for name, value in counts.items()}, runs.active[~finite])
        runs.keep(finite, t)
        rows = torch.from_numpy(np.flatnonzero(finite))
        return tuple(values[rows.to(values.device)] for values in state)

    def count(self, counts: Mapping[str, torch.Tensor], seeds: np.ndarray) -> None:
        """Adds what an algorithm counted in a phase, for these seeds; of floats it keeps the largest."""
        for name, value in counts.items():
            found = value.cpu().numpy()
            kept = self._array(name, ("seed",), found.dtype)
            kept[seeds] = np.fmax(kept[seeds], found) if value.is_floating_point() else kept[seeds] + found

    def trace(self, spec: dict[str, Any], engine: str) -> Trace:
        """The finished trace."""
        runs, names = self.runs, np.array([own.seed for own in self.runs.streams])
        for name, value, dims in (
            ("seed", names, "seed"),
            ("round", self.rounds, "round"),
            ("empty_rounds", runs.empty, "seed"),
            ("unnormalized_rounds", runs.unnormalized, "seed"),
            ("diverged_at", runs.diverged_at, "seed"),
        ):
            self.arrays[name], self.dims[name] = value, (dims,)
        if runs.sparse:
            seeds, when, clients, weights = (
                np.concatenate(column) for column in zip(*runs.participations, strict=True)
            )
            for name, value in (
                ("seed", names[seeds]),
                ("round", when),
                ("client", clients),
                ("weight", weights),
            ):
                self.arrays[f"participation_{name}"] = value
                self.dims[f"participation_{name}"] = ("participation",)
        statuses = tuple("done" if at < 0 else "diverged" for at in runs.diverged_at)
        return Trace(self.arrays, self.dims, spec, engine, statuses)

    def _array(self, name: str, dims: tuple[str, ...], dtype: Any) -> np.ndarray:
        if name not in self.arrays:
            sizes = {
                "seed": len(self.runs.streams),
                "round": len(self.rounds),
                "coordinate": self.problem.dimension,
                "client": self.problem.clients,
                "other_client": self.problem.clients,
            }
            empty = 0 if np.dtype(dtype).kind == "i" else np.nan
            self.arrays[name] = np.full([sizes[dim] for dim in dims], empty, dtype)
            self.dims[name] = dims
        return self.arrays[name]
