"""Runs an algorithm on a problem under a participation process, for many seeds at once."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory, quote
from fedbounds.empirical.algorithms import Algorithm, Cohort
from fedbounds.empirical.participation import Process, Recorded
from fedbounds.empirical.participation.spec import Participation, as_process
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.device import device_name, full_precision
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import Engine, can_share_batch, choose_engine, most_participants
from fedbounds.empirical.simulation.engines.ahead import NUMBERS, place_ahead
from fedbounds.empirical.simulation.run_state import RunningSeeds, SharedParticipation, TraceArrays, check_repeats_fit
from fedbounds.empirical.simulation.runtime_estimate import check_work, may_be_closed
from fedbounds.empirical.simulation.trace import Trace


def simulate(
    algorithm: Algorithm | None,
    problem: Problem,
    participation: Participation,
    rounds: int | None = None,
    *,
    seeds: Sequence[int] = (0,),
    engine: str = "auto",
    record_every: int = 1,
    streams: Mapping[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    phases: Sequence[tuple[Algorithm, int]] | None = None,
    record_models: bool = False,
    record_participation: bool = False,
) -> Trace:
    r"""Runs T rounds and records the problem's metrics at rounds 0, `record_every`, ..., T.

    Every seed has its own initialization, participation, local work and noise, which depend on nothing but the
    seed; so algorithms compared under the same seeds meet the same clients. Weights are applied as given; rounds in
    which nobody takes part, or whose weights do not sum to one, are counted in the trace. A seed whose model or
    metrics stop being finite is marked "diverged" at the next recorded round and not run on.

    Args:
        algorithm: what to run; None if `phases` are given.
        problem: the clients' gradients; a minimax problem needs a minimax algorithm.
        participation: a process, its dictionary, or a record as `Recorded.read` takes it (at least T rounds).
        rounds: T; with phases, their sum, and may be left out.
        seeds: the run-seeds, computed together.
        engine: "auto", "sequential", "batched", "compiled" or "closed form"; for minimax algorithms "auto",
            "sequential", "masked batch"; for algorithms of silos "auto", "tiers" or "closed form".
        record_every: rounds between records.
        streams: streams held fixed for all seeds, as `{"participation": 7}`.
        progress: called after each round with (rounds done, T).
        phases: (algorithm, rounds) one after another, each starting from the model the one before it left; an
            amplification interval restarts with its phase.
        record_models: record the models too, as `model` (seed, round, coordinate).
        record_participation: record who took part, with which weight: read by `Trace.participation`.

    Raises:
        FedboundsError: a number outside its domain, an algorithm or an engine that does not fit the problem, weights
            of the wrong shape, a recorded participation that ends too soon.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
        >>> from fedbounds.empirical.problems import toy_example
        >>> amplified = GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3)
        >>> trace = simulate(amplified, toy_example(), np.tile(np.eye(3), (10, 1)), 30)
        >>> float(trace.gradient_norm_squared[0, 30].round(10))
        0.0004398725
        >>> from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
        >>> from fedbounds.empirical.participation import WithoutReplacement
        >>> from fedbounds.empirical.problems import random_quadratic_minimax
        >>> unequal = FedNormSGDA(0.05, 0.1, 0.002, 0.1, local_steps=(2, 5, 3))
        >>> game = simulate(unequal, random_quadratic_minimax(3, 2, 2), WithoutReplacement(3, 2), 100)
        >>> game.engine, game.envelope_gradient_norm_squared.shape
        ('masked batch', (1, 101))

    Source: Wang & Ji 2022, Algorithm 1 and the schedule of its experiments; Sharma et al. 2023, Algorithm 1.
    """
    setting = JointRun(algorithm, seeds, rounds, phases)
    (trace,) = _run_settings(
        [setting], problem, participation, engine, record_every, streams, progress, record_models, record_participation
    )
    return trace


class JointRun(NamedTuple):
    """One of several runs on one problem: the arguments of `simulate` that may differ between them."""

    algorithm: Algorithm | None
    seeds: Sequence[int] = (0,)
    rounds: int | None = None
    phases: Sequence[tuple[Algorithm, int]] | None = None


def simulate_together(
    settings: Sequence[JointRun],
    problem: Problem,
    participation: Participation,
    *,
    engine: str = "auto",
    record_every: int = 1,
    streams: Mapping[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    record_models: bool = False,
    record_participation: bool = False,
) -> Iterator[list[Trace]]:
    """The traces of several settings, in order, with their local steps in one batch if possible.

    It is possible if they have the same number of rounds and of plain SGD steps and the engine is "batched"; all traces
    then come at once. Otherwise each comes in its own list. On a CPU every number is as in a separate run; elsewhere up
    to rounding.
    """
    given = (problem, participation, engine, record_every, streams, progress, record_models, record_participation)
    for some in (
        [settings] if _can_share_batch(settings, problem, participation, engine) else [[one] for one in settings]
    ):
        yield _run_settings(some, *given)


def _can_share_batch(settings: Sequence[JointRun], problem: Problem, participation: Participation, engine: str) -> bool:
    """Whether these settings may compute in one batch."""
    schedules = [_schedule(one.algorithm, one.rounds, one.phases) for one in settings]
    if len({tuple(length for _, length in schedule) for schedule in schedules}) > 1:
        return False
    process = _process(participation, problem, sum(length for _, length in schedules[0]))
    most = max(len(one.seeds) for one in settings)
    for each in zip(*schedules, strict=True):
        bound_phases = [phase.bind_process(process).bind_problem(problem) for phase, _ in each]
        chosen = choose_engine(engine, problem, bound_phases[0], each[0][1], most, most_participants(process))
        if not can_share_batch(chosen, bound_phases):
            return False
    return True


def _run_settings(
    settings: Sequence[JointRun],
    problem: Problem,
    participation: Participation,
    engine: str,
    record_every: int,
    streams: Mapping[str, int] | None,
    progress: Callable[[int, int], None] | None,
    record_models: bool,
    record_participation: bool,
) -> list[Trace]:
    """The traces of settings that compute together, round by round."""
    if not isinstance(problem, Problem):
        raise FedboundsError(f"problem = {quote(problem)} must be a problem, such as problem_from_spec makes")
    schedules = [_schedule(one.algorithm, one.rounds, one.phases) for one in settings]
    for schedule in schedules:
        for phase, length in schedule:
            phase.check(problem, length)
    lengths = [length for _, length in schedules[0]]
    total = sum(lengths)
    process = _process(participation, problem, total)
    for schedule in schedules:
        for phase, _ in schedule:
            check_repeats_fit(process, phase)
    if problem.statistics and not process.sums_to_one:
        raise FedboundsError("running statistics are averaged: the weights of every round must sum to one")
    every, seeded = check_count("record_every", record_every), _streams([one.seeds for one in settings], streams)
    rows = sum(map(len, seeded))
    check_run_memory(problem.clients, problem.dimension, total, rows, every, record_models)
    closed = may_be_closed(engine, problem.affine)
    for schedule in schedules:
        for phase, length in schedule:
            check_work(phase, problem, length, rows, problem.dimension, closed and phase.plain_steps)
    drawn = SharedParticipation(process)
    parts = [
        _SettingRun(problem, drawn, schedule, own, engine, every, record_models, record_participation)
        for schedule, own in zip(schedules, seeded, strict=True)
    ]

    with full_precision(problem.device):
        for part in parts:
            part.begin()
        done = 0
        for index, length in enumerate(lengths):
            for part in parts:
                part.enter(index)
            round_engine, planned = parts[0].engines[index], deque[Attendance]()
            for t in range(length):
                live = [part for part in parts if len(part.runs.active)]
                if live:
                    if problem.device.type != "cpu" and not planned:
                        until = min(done + length - t, parts[0].record.next(done))
                        planned.extend(_plan_rounds(live, round_engine, t, done, until))
                    _round(live, round_engine, t, done, planned.popleft() if planned else None)
                done += 1
                for part in live:
                    part.end_round(done)
                if progress:
                    progress(done, total)
            for part in parts:
                part.leave()
    return [part.trace(one, streams) for part, one in zip(parts, settings, strict=True)]


class Attendance(NamedTuple):
    """The cohorts of a round: of all settings together, and of each."""

    together: Cohort
    each: Sequence[Cohort]


def _round(live: Sequence[_SettingRun], round_engine: Engine, t: int, done: int, planned: Attendance | None) -> None:
    """Round t of a phase, which is round `done` of the run, of the settings with active seeds."""
    for part in live:
        part.state = part.phase.begin_round(part.state, t, done, part.runs.active_streams)
    if planned is None:
        planned = _join_cohorts(live, [part.runs.cohort(part.phase, part.state, t, done) for part in live])
    for part, cohort in zip(live, planned.each, strict=True):
        part.state = part.phase.record_cohort(part.state, t, cohort)
    sent = [part.phase.broadcast(part.state) for part in live]
    streams = [own for part in live for own in part.runs.active_streams]
    first, correction = live[0], None
    if first.phase.corrects:
        correction = first.phase.correction(first.state, planned.together)
    x = torch.cat(sent) if len(sent) > 1 else sent[0]
    report = round_engine.round(x, planned.together, done, streams, correction)
    for part, own in zip(live, report.split(planned.each), strict=True):
        part.state = part.phase.server_update(part.state, t, own)


def _join_cohorts(live: Sequence[_SettingRun], cohorts: Sequence[Cohort]) -> Attendance:
    if len(live) == 1:
        return Attendance(cohorts[0], cohorts)
    return Attendance(Cohort.join(cohorts, [part.phase.local.step_size for part in live]), cohorts)


def _plan_rounds(
    live: Sequence[_SettingRun], round_engine: Engine, t: int, done: int, until: int
) -> Iterable[Attendance]:
    """The cohorts of the coming rounds, with all that they need on the device of the models."""
    device, numbers = round_engine.problem.device, 0
    states = [part.state for part in live]
    streams = [own for part in live for own in part.runs.active_streams]
    cohorts: list[Cohort] = []
    tables: list[dict[str, np.ndarray]] = []
    for ahead in range(until - done):
        each = []
        for k, part in enumerate(live):
            states[k] = part.phase.begin_round(states[k], t + ahead, done + ahead, part.runs.active_streams)
            each.append(part.runs.cohort(part.phase, states[k], t + ahead, done + ahead))
            states[k] = part.phase.record_cohort(states[k], t + ahead, each[k])
        attending = _join_cohorts(live, each)
        found = (
            round_engine.tables(attending.together, done + ahead, streams) if len(attending.together.clients) else {}
        )
        if found is None:
            return [*_place_rounds(live, cohorts, tables, device), attending]
        cohorts += [attending.together, *(each if len(live) > 1 else ())]
        tables += [found, *({} for _ in (each if len(live) > 1 else ()))]
        numbers += sum(table.size for table in found.values())
        if numbers >= NUMBERS:
            break
    return _place_rounds(live, cohorts, tables, device)


def _place_rounds(
    live: Sequence[_SettingRun],
    cohorts: Sequence[Cohort],
    tables: Sequence[dict[str, np.ndarray]],
    device: torch.device,
) -> Iterator[Attendance]:
    """Cohorts of all settings together and of each, round by round, as `Attendance` on a device."""
    placed = iter(place_ahead(cohorts, tables, device))
    for together in placed:
        yield Attendance(together, [next(placed) for _ in live] if len(live) > 1 else [together])


def check_run_memory(clients: int, dimension: int, rounds: int, seeds: int, every: int, models: bool) -> None:
    """Refuse a run whose models and records this machine cannot hold, before any of them is made."""
    records = rounds // every + 2
    # the model, its changes in a round, metrics and random streams of a seed; recorded models come with products of the
    # clients' gradients, which are no larger
    each = 4096 + 8 * (4 * dimension + 4 * records + (2 * records * dimension if models else 0))
    what = f"a run with seeds = {seeds}, dimension = {dimension}, rounds = {rounds}, record_every = {every}"
    check_memory(what, seeds * each + 64 * records + 32 * clients)


class _SettingRun:
    """One running setting: its seeds, its record, and the state of its phase."""

    phase: Algorithm  # the algorithm of the phase, as it runs on the problem
    state: Any  # its state, of the active seeds

    def __init__(
        self,
        problem: Problem,
        drawn: SharedParticipation,
        schedule: Sequence[tuple[Algorithm, int]],
        streams: list[Streams],
        engine: str,
        every: int,
        models: bool,
        sparse: bool,
    ) -> None:
        total = sum(length for _, length in schedule)
        self.problem, self.schedule = problem, schedule
        self.runs = RunningSeeds(drawn, streams, total, sparse)
        self.lengths = [phase.message_bytes(problem) for phase, _ in schedule]
        self.together = [phase.round_bytes(problem) for phase, _ in schedule]
        counted = all(sent != (None, None) for sent in zip(self.lengths, self.together, strict=True))
        self.record = TraceArrays(problem, self.runs, total, every, models, counted)
        self.bound_phases = [phase.bind_process(drawn.process).bind_problem(problem) for phase, _ in schedule]
        self.engines = [
            choose_engine(engine, problem, phase, length, len(streams), most_participants(drawn.process))
            for phase, (_, length) in zip(self.bound_phases, schedule, strict=True)
        ]

    def begin(self) -> None:
        """Starts all seeds."""
        own = [self.problem.initial_point(streams.generator("initialization")) for streams in self.runs.streams]
        models = torch.stack(own)
        (self.models,) = self.record.add(0, models, (models,), {})

    def enter(self, index: int) -> None:
        """Starts a phase at the last models of the one before."""
        self.phase = self.bound_phases[index]
        self.runs.bytes = [self.lengths[index], self.together[index]]
        self.state = self.phase.init(self.models, self.problem.clients)

    def end_round(self, done: int) -> None:
        """Records, if it is time."""
        if self.record.due(done):
            state, phase = self.state, self.phase
            kept = self.record.add(done, phase.model(state), state, phase.diagnostics(state))
            self.state = state if kept is state else type(state)(*kept)

    def leave(self) -> None:
        """Ends a phase."""
        self.record.count(self.phase.diagnostics(self.state), self.runs.active)
        self.models = self.phase.model(self.state)

    def trace(self, setting: JointRun, streams: Mapping[str, int] | None) -> Trace:
        """The finished trace."""
        problem, process = self.problem, self.runs.process
        spec = {
            "problem": type(problem).__name__,
            "clients": problem.clients,
            "dimension": problem.dimension,
            "dtype": str(problem.dtype).removeprefix("torch."),
            "device": device_name(problem.device),
            "participation": describe_process(process),
            "rounds": self.runs.rounds,
            "record_every": self.record.every,
            "streams": dict(streams or {}),
        }
        if setting.algorithm is not None:
            spec |= {"algorithm": setting.algorithm.spec(), "message_bytes": self.lengths[0]}
        else:
            spec["phases"] = [
                {"algorithm": phase.spec(), "rounds": length, "message_bytes": sent}
                for (phase, length), sent in zip(self.schedule, self.lengths, strict=True)
            ]
        return self.record.trace(spec, "; ".join(dict.fromkeys(round_engine.label for round_engine in self.engines)))


def _schedule(
    algorithm: Algorithm | None, rounds: int | None, phases: Sequence[tuple[Algorithm, int]] | None
) -> list[tuple[Algorithm, int]]:
    if (algorithm is None) == (phases is None):
        raise FedboundsError("give either an algorithm and its rounds, or phases")
    if algorithm is not None:
        return [(_algorithm("algorithm", algorithm), check_count("rounds", rounds))]
    if not isinstance(phases, Sequence) or any(not isinstance(phase, Sequence) or len(phase) != 2 for phase in phases):
        raise FedboundsError(f"phases = {quote(phases)} must be a list of pairs, an algorithm and its rounds")
    schedule = [
        (_algorithm(f"phases[{k}].algorithm", phase), check_count(f"phases[{k}].rounds", length))
        for k, (phase, length) in enumerate(phases)
    ]
    total = sum(length for _, length in schedule)
    if not schedule or rounds not in (None, total):
        raise FedboundsError(f"rounds = {quote(rounds)}, but the phases have {total} rounds in all")
    return schedule


def _algorithm(name: str, value: object) -> Algorithm:
    if not isinstance(value, Algorithm):
        raise FedboundsError(f"{name} = {quote(value)} must be an algorithm, such as algorithm_from_spec makes")
    return value


def _streams(settings: Sequence[Sequence[int]], fixed: Mapping[str, int] | None) -> list[list[Streams]]:
    """The streams of the seeds of each setting; of a seed of several, the same object."""
    found, known = [], dict[int, Streams]()
    for seeds in settings:
        if isinstance(seeds, str) or not isinstance(seeds, Iterable):
            raise FedboundsError(f"seeds = {quote(seeds)} must be a list of integers >= 0")
        made = [Streams(seed, fixed or {}) for seed in seeds]
        if not made or len({own.seed for own in made}) < len(made):
            raise FedboundsError(f"seeds = {quote(list(seeds))} must be different, and at least one")
        found.append([known.setdefault(own.seed, own) for own in made])
    return found


def _process(participation: Participation, problem: Problem, rounds: int) -> Process:
    process = as_process(participation)
    if process.clients != problem.clients:
        raise FedboundsError(f"participation is of {process.clients} clients, the problem has {problem.clients}")
    if isinstance(process, Recorded) and process.rounds < rounds:
        raise FedboundsError(f"participation is recorded for {process.rounds} rounds, {rounds} were asked for")
    return process


def describe_process(process: Process) -> dict[str, Any]:
    """The process in JSON; a record by its size and checksum."""
    if isinstance(process, Recorded):
        weights = np.ascontiguousarray(process.weights)
        digest = hashlib.sha256(weights.tobytes()).hexdigest()
        return {"kind": process.kind, "rounds": len(weights), "clients": process.clients, "sha256": digest}
    return process.spec()
