"""Checks that a simulation is a run of a given problem and participation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.participation import Process, Round, process_from_spec
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import choose_engine
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
