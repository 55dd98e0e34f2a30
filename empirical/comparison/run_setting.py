"""The parts of a run: algorithm, problem, participation and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Protocol

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Algorithm, MinimaxAlgorithm, algorithm_from_spec
from fedbounds.empirical.comparison.logged_trace import NORM, without_empty_rounds
from fedbounds.empirical.comparison.measured_constants import SIMULATED_ROUND
from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    Full,
    Permutation,
    Process,
    Recorded,
    Round,
    WithoutReplacement,
    process_from_spec,
)
from fedbounds.empirical.participation.spec import Participation, as_process
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.problems.logged import LOG, Logged
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import choose_engine
from fedbounds.empirical.simulation.moments import MinimaxMoments, Moments
from fedbounds.empirical.simulation.simulate import describe_process, simulate
from fedbounds.empirical.simulation.trace import Trace

SEEDS = 2  # whose participation is drawn again
LONGEST = 2000  # rounds that are run again, at most
NEAR = {"float64": 1e-6, "float32": 1e-2}  # relative difference of two runs of the same thing, on any machine


def check_same_run(run: Trace, algorithm: Algorithm, problem: Problem, process: Process) -> None:
    """Refuse a problem or a participation that is not the one of the run.

    Counts and participation are compared; then the first recorded rounds of a seed are run again.
    """
    for name, whose, own in (
        ("clients", "problem", problem.clients),
        ("clients", "participation", process.clients),
        ("dimension", "problem", problem.dimension),
    ):
        if run.spec.get(name, own) != own:
            raise FedboundsError(f"{whose}= has {name} = {own}, the run has {run.spec[name]}")
    for seed in run.seed[:SEEDS].tolist():
        _check_participation(run, process, seed)
    _check_metrics(run, algorithm, problem, process)


def _check_participation(run: Trace, process: Process, seed: int) -> None:
    streams = Streams(seed, run.spec.get("streams", {}))
    taken = _recorded_participation(run, process, seed, streams)
    drawn = process.draw(streams.generator("participation"))
    for t, (there, here) in enumerate(zip(taken, drawn, strict=False)):
        if not np.array_equal(there.clients, here.clients) or not np.allclose(there.weights, here.weights, rtol=1e-9):
            raise FedboundsError(
                f"participation= is not the run's: in round {t} of seed {seed} it has {_describe_cohort(here)}, "
                f"the run had {_describe_cohort(there)}"
            )


def _describe_cohort(cohort: Round) -> str:
    some = ", ".join(f"{n} ({weight:.6g})" for n, weight in zip(cohort.clients[:4], cohort.weights, strict=False))
    rest = f" and {len(cohort.clients) - 4} more" if len(cohort.clients) > 4 else ""
    return f"clients (weights) {some}{rest}" if len(cohort.clients) else "no clients"


def _recorded_participation(run: Trace, process: Process, seed: int, streams: Streams) -> Iterator[Round]:
    """The participation of the run, round by round, where it may differ from the process."""
    rounds = int(run.spec["rounds"])
    if "participation_weight" in run.arrays:
        mine = run.arrays["participation_seed"] == seed
        when, who, weights = (run.arrays[f"participation_{name}"][mine] for name in ("round", "client", "weight"))
        end = int(run.diverged_at[run.seed.tolist().index(seed)])
        edges = np.searchsorted(when, np.arange((rounds if end < 0 else end) + 1))
        return (Round(who[start:stop], weights[start:stop]) for start, stop in pairwise(edges))
    spec = run.spec.get("participation")
    if not isinstance(spec, dict) or "sha256" in spec or spec == describe_process(process):
        return iter(())
    return islice(process_from_spec(spec).draw(streams.generator("participation")), rounds)


def _check_metrics(run: Trace, algorithm: Algorithm, problem: Problem, process: Process) -> None:
    """The first recorded rounds of the first seed, run again where that is quick, else its start."""
    seed, streams = int(run.seed[0]), run.spec.get("streams", {})
    engine = _engine_of(run, algorithm.bind_process(process).bind_problem(problem), problem)
    last = _first_length(run, algorithm, problem)
    if engine and last and problem.data_checksum is None:
        again = simulate(algorithm, problem, process, last, seeds=[seed], engine=engine,
                         record_every=int(run.spec["record_every"]), streams=streams)  # fmt: skip
        numbers = {name: again.arrays[name][0] for name in again.metrics}
    else:
        start = problem.initial_point(Streams(seed, streams).generator("initialization"))
        numbers = {name: value.cpu().numpy() for name, value in problem.metrics(start[None]).items()}
    near = NEAR.get(str(problem.dtype).removeprefix("torch."), NEAR["float32"])
    for name in sorted(numbers.keys() & set(run.metrics)):
        new, old = numbers[name], run.arrays[name][0, : len(numbers[name])]
        scale = np.fmax(np.abs(old), np.abs(old[0]))
        differs = np.flatnonzero(~((np.abs(new - old) <= near * scale) | (~np.isfinite(new) & ~np.isfinite(old))))
        if differs.size:
            t, what = int(run.arrays["round"][differs[0]]), "problem= or participation=" if differs[0] else "problem="
            raise FedboundsError(
                f"{what} is not the run's: {name} at round {t} of seed {seed} would be {new[differs[0]]:.6g}, "
                f"the run recorded {old[differs[0]]:.6g}"
            )


def _first_length(run: Trace, algorithm: Algorithm, problem: Problem) -> int:
    """The first recorded round that the algorithm may stop after; 0 where there is none near the start."""
    for length in run.arrays["round"][1:]:
        if length > LONGEST:
            break
        try:
            algorithm.check(problem, int(length))
        except FedboundsError:
            continue
        return int(length)
    return 0


def _engine_of(run: Trace, algorithm: Algorithm, problem: Problem) -> str:
    """The name of the engine that ran it; "" if unknown, or if it cannot run this problem."""
    name = run.engine.partition(" (")[0]
    try:
        choose_engine(name, problem, algorithm)
    except FedboundsError:
        return ""
    return name


BETWEEN = "a minimum over rounds is over those, an average over straight lines between them"
# assumptions that the weights of a log decide
DECIDED_BY_WEIGHTS = ("weights", "participation-norm", "full-participation", "regularized")


class ExactRun(Protocol):
    """Exact moments of a run, as far as a comparison needs them."""

    @property
    def algorithm(self) -> Algorithm: ...
    @property
    def problem(self) -> Problem: ...
    @property
    def participation(self) -> Process: ...
    @property
    def rounds(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def gradient_norm_squared(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class RunSetting:
    """The parts of a run, and the recorded squared gradient norms of f or of an envelope."""

    algorithm: Algorithm
    problem: Problem
    process: Process
    q: np.ndarray | None  # the weights (T, N), if the run is given its participation
    label: str
    total: int
    at: np.ndarray  # the recorded rounds, (R,)
    values: np.ndarray  # (R,)
    samples: np.ndarray | None  # (seeds, R), whose means the values are; None where they are exact
    common_noise: bool
    notes: tuple[str, ...]
    run: ExactRun | MinimaxMoments | Trace | None  # None for a run that is not made yet
    logged: bool = False  # made outside fedbounds

    @staticmethod
    def ahead(
        algorithm: Algorithm, problem: Problem, process: Process, q: np.ndarray | None, rounds: int
    ) -> RunSetting:
        """A run that is not made yet."""
        process.require_one_update("a comparison with a result")
        nothing = np.zeros(0)
        return RunSetting(algorithm, problem, process, q, "", rounds, nothing, nothing, None, False, (), None)

    @property
    def full_participation(self) -> bool:
        """Whether every client takes part in every round, with its weight in f."""
        own = self.problem.client_weights
        if self.q is None:
            return own is None and everyone_participates(self.process)
        wanted = 1 / self.q.shape[1] if own is None else own
        return bool(np.allclose(self.q[: self.total], wanted, rtol=1e-12, atol=0))

    def given_participation(self) -> RunSetting:
        """The run with the weights of its rounds, where they are certain."""
        return replace(self, q=self.process.matrix(self.total, np.random.default_rng(0)))  # nothing is drawn

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the run may not be one of this algorithm."""
        if not self.logged:
            return ()
        claim = f"fedbounds cannot check that it is a run of {self.algorithm.kind} with these numbers"
        return (f"not known to cover this run: it was made elsewhere, and {claim}",)

    def decided(self, found: Mapping[str, bool]) -> dict[str, bool]:
        """The findings on assumptions; of a run made elsewhere, those that its weights decide."""
        return {name: holds for name, holds in found.items() if not self.logged or name in DECIDED_BY_WEIGHTS}

    @property
    def seeds(self) -> int:
        """How many seeds the values are a mean of; 0 where they are exact, as nothing is random."""
        if self.samples is None or ((self.full_participation or self.q is not None) and _is_deterministic(self)):
            return 0
        shared = isinstance(self.run, Trace) and "noise" in self.run.spec.get("streams", {})
        return 1 if shared else len(self.samples)  # runs that share their noise are one draw of it

    def weights(self) -> np.ndarray:
        """The weights of every seed's rounds, (seeds, T, N), of a simulation."""
        assert isinstance(self.run, Trace)
        names = self.run.arrays["seed"].tolist()
        if self.q is not None:
            return np.broadcast_to(self.q[: self.total], (len(names), self.total, self.q.shape[1]))
        return np.stack([self.run.participation(seed) for seed in names])

    def recorded(self, name: str, what: str) -> np.ndarray:
        """An array of the simulation, (seeds, R, ...)."""
        if not isinstance(self.run, Trace) or name not in self.run.dims:
            raise FedboundsError(f"the run did not record {what}")
        return self.run.arrays[name]


def everyone_participates(process: Process) -> bool:
    """Whether every client takes part in every round with weight 1/N, whatever the process is called."""
    if isinstance(process, WithoutReplacement | Permutation):
        return process.participants == process.clients
    if isinstance(process, Bernoulli):
        return bool((process.probabilities == 1).all())
    if isinstance(process, Recorded):
        return bool(np.allclose(process.weights, 1 / process.clients, rtol=1e-12, atol=0))
    return isinstance(process, Full) or (isinstance(process, Cyclic) and len(process.sizes) == 1)


def _is_deterministic(setting: RunSetting) -> bool:
    """Whether gradients, start and local work are the same for every seed, whoever takes part."""
    algorithm, problem = setting.algorithm, setting.problem
    if algorithm.draws or problem.draw(np.random.default_rng(0), 0) is not None:
        return False
    if isinstance(algorithm, MinimaxAlgorithm) and algorithm.rule(problem.clients).workload(problem).random:
        return False
    starts = [problem.initial_point(np.random.default_rng(seed)) for seed in range(2)]
    return bool((starts[0] == starts[1]).all())


def stationarity(algorithm: Algorithm) -> str:
    """The metric that the theorems about an algorithm bound."""
    return "envelope_gradient_norm_squared" if algorithm.ascends else "gradient_norm_squared"


def setting_of_moments(
    run: ExactRun | MinimaxMoments,
    problem: Problem | None = None,
    participation: Participation | None = None,
) -> RunSetting:
    """The setting of exact moments, which know their problem and participation."""
    if problem is not None and problem is not run.problem:
        raise FedboundsError("problem= is not that of these moments; leave it out")
    if participation is not None and describe_process(as_process(participation)) != describe_process(run.participation):
        raise FedboundsError("participation= is not that of these moments; leave it out")
    norms = run.envelope_gradient_norm_squared() if isinstance(run, MinimaxMoments) else run.gradient_norm_squared
    record = isinstance(run.participation, Recorded)
    q = run.participation.matrix(run.rounds, np.random.default_rng()) if record else None  # a record draws nothing
    total, at, notes = run.rounds, np.arange(run.rounds + 1), ()
    if q is not None and run.algorithm.skips_empty_rounds and not q.any(axis=1).all():
        q, at, kept, note = without_empty_rounds(q, at, {NORM: norms[None]})
        total, norms, notes = len(q), kept[NORM][0], (note,)
    return RunSetting(
        algorithm=run.algorithm,
        problem=run.problem,
        process=run.participation,
        q=q,
        label=run.label,
        total=total,
        at=at,
        values=norms,
        samples=None,
        common_noise=isinstance(run, Moments) and run.noise == "common",
        notes=notes,
        run=run,
    )


def setting_of_trace(run: Trace, problem: Problem | None, participation: Participation | None) -> RunSetting:
    """The setting of a simulation: the mean over its seeds; a seed that diverged counts as infinite."""
    if run.spec.get("problem") == LOG:
        return _of_log(run, problem, participation)
    if problem is None or participation is None:
        raise FedboundsError(
            "a simulation does not contain its problem and participation: give problem= and participation="
        )
    if "algorithm" not in run.spec:
        raise FedboundsError("the run has phases: a result is about one algorithm, so confront a run of it alone")
    algorithm = algorithm_from_spec(run.spec["algorithm"])
    metric = stationarity(algorithm)
    if metric not in run.dims:
        raise FedboundsError(f"the run did not record {metric}; it has {', '.join(run.metrics)}")
    process = as_process(participation)
    process.require_one_update("a comparison with a result")
    check_same_run(run, algorithm, problem, process)
    total, streams = int(run.spec["rounds"]), run.spec.get("streams", {})
    q = None
    if isinstance(process, Recorded) or "participation" in streams:
        q = process.matrix(total, Streams(0, streams).generator("participation"))
    every = int(run.spec.get("record_every", 1))
    notes = (f"measured every {every} rounds only: {BETWEEN}",) if every > 1 else ()
    if isinstance(process, Recorded) and q is not None and algorithm.skips_empty_rounds and not q.any(axis=1).all():
        run, q, note = _trace_without_empty_rounds(run, q)
        total, notes = len(q), (*notes, note)
    norms = np.where(np.isnan(run.arrays[metric]), np.inf, run.arrays[metric])
    seeds = len(norms)
    if "diverged" in run.statuses:
        notes += (f"{run.statuses.count('diverged')} of {seeds} seeds diverged and count as infinite",)
    return RunSetting(
        algorithm=algorithm,
        problem=problem,
        process=process,
        q=q,
        label="one seed" if seeds == 1 else f"mean of {seeds} seeds",
        total=total,
        at=run.arrays["round"],
        values=norms.mean(axis=0),
        samples=norms,
        common_noise=False,
        notes=notes,
        run=run,
    )


def counted_rounds(algorithm: Algorithm, process: Process, rounds: int) -> int:
    """The rounds of a simulation that a comparison counts: of a record those with participants, where that is exact."""
    if not isinstance(process, Recorded) or not algorithm.skips_empty_rounds:
        return rounds
    return int(np.asarray(process.weights)[:rounds].any(axis=1).sum()) or rounds


def _trace_without_empty_rounds(run: Trace, q: np.ndarray) -> tuple[Trace, np.ndarray, str]:
    """A simulation of a record and its weights without the rounds without participants, and a note."""
    per_round = {name: run.arrays[name] for name, dims in run.dims.items() if dims[:2] == ("seed", "round")}
    weights, at, arrays, note = without_empty_rounds(q, run.arrays["round"], per_round)
    if len(weights) == len(q):
        return run, q, note
    arrays |= {"round": at, SIMULATED_ROUND: np.append(np.flatnonzero(q.any(axis=1)), len(q))[at]}
    if "participation_round" in run.arrays:
        arrays["participation_round"] = (q.any(axis=1).cumsum() - 1)[run.arrays["participation_round"]]
    spec = run.spec | {"rounds": len(weights), "participation": describe_process(Recorded(weights))}
    dims = {**run.dims, SIMULATED_ROUND: ("round",)}
    return Trace({**run.arrays, **arrays}, dims, spec, run.engine, run.statuses), weights, note


def _of_log(run: Trace, problem: Problem | None, participation: Participation | None) -> RunSetting:
    """The setting of a run made elsewhere."""
    if problem is not None:
        raise FedboundsError("a log has no problem: leave problem= out, and give its constants, given={...}")
    algorithm = algorithm_from_spec(run.spec["algorithm"])
    q = run.participation(int(run.seed[0])) if "participation_weight" in run.arrays else None
    own = process_from_spec(run.spec["participation"]) if q is None else _recorded_process(q)
    process = own if participation is None else as_process(participation)
    if process.clients != own.clients:
        raise FedboundsError(f"participation= has {process.clients} clients, the log has {own.clients}")
    if q is None and describe_process(process) != describe_process(own):
        raise FedboundsError("participation= is not that of the log; leave it out")
    if q is not None and isinstance(process, Recorded):
        given = np.asarray(process.weights)
        given = given if len(given) == len(q) else given[given.any(axis=1)]  # as the log, without empty rounds
        if not np.array_equal(given, q):
            raise FedboundsError("participation= is not the log's record; leave it out")
        process = Recorded(q)
    recorded, T, metric = run.arrays["round"], int(run.spec["rounds"]), stationarity(algorithm)
    nothing = np.full((len(run.arrays["seed"]), len(recorded)), np.nan)  # a log of losses alone
    norms = run.arrays.get(metric, nothing)
    notes = [*run.spec.get("log", {}).get("notes", ())]
    if q is None:
        notes.append(f"nobody recorded who took part: participation is taken to be {process.kind}")
    else:
        _check_presence(process, q)
    if int(run.spec["record_every"]) > 1:
        notes.insert(0, f"measured in {len(recorded)} of {T} rounds only: {BETWEEN}")
    return RunSetting(
        algorithm=algorithm,
        problem=Logged(process.clients, int(run.spec["dimension"]), run.spec.get("client_weights")),
        process=process,
        q=q if isinstance(process, Recorded) else None,
        label="logged" if len(norms) == 1 else f"mean of {len(norms)} logged runs",
        total=T,
        at=recorded,
        values=norms.mean(axis=0),
        samples=norms,
        common_noise=False,
        notes=tuple(notes),
        run=run,
        logged=True,
    )


def _recorded_process(q: np.ndarray) -> Process:
    """The process of a log that names none: full participation where it is recorded, else the record."""
    full = np.allclose(q, 1 / q.shape[1], rtol=1e-12, atol=0)
    return Full(q.shape[1]) if full else Recorded(q)


def _check_presence(process: Process, q: np.ndarray) -> None:
    """Refuse a process that is certain of who takes part where the weights (T, N) say otherwise."""
    for t, row in enumerate(q):
        when = 0 if process.stationary else t
        certain, present = process.variance(when) == 0, process.mean(when) > 0
        other = np.flatnonzero(certain & (present != (row > 0)))
        if other.size:
            n = other[0]
            raise FedboundsError(
                f"participation= is {process.kind}, where client {n} {'always' if present[n] else 'never'} takes part "
                f"in round {t}; the log says otherwise"
            )
