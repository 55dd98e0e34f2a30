"""A participation process from its spec, the dict that experiments are written in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.empirical.participation.bernoulli import Bernoulli
from fedbounds.empirical.participation.clients import CyclicClients, CyclicFromInactive, Markovian
from fedbounds.empirical.participation.groups import Cyclic, GroupMarkov, PeriodicGroups
from fedbounds.empirical.participation.process import Process
from fedbounds.empirical.participation.rates import rates_from_spec
from fedbounds.empirical.participation.recorded import EmptyRounds, Recorded
from fedbounds.empirical.participation.sample_weighted import SampleWeighted
from fedbounds.empirical.participation.sampling import Full, Permutation, WithoutReplacement, WithReplacement
from fedbounds.empirical.runtime.kinds import Registry

OF_PROBLEM = "problem"  # the weights of clients in the objective of a sweep's problem


def recorded(
    *,
    weights: Any = None,
    file: Any = None,
    normalize: bool = False,
    clients: int | list[Any] | None = None,
    columns: dict[str, str] | None = None,
    round_length: float | None = None,
    rounds: int | None = None,
    start: float | None = None,
    empty_rounds: EmptyRounds = "drop",
) -> Recorded:
    """A given record of weights: nothing is random, so means are the weights and covariances zero.

    Args:
        weights: (rounds, clients), at least 0; zeros are clients that did not take part; or another layout.
        file: a CSV or JSON file of a record in any layout; instead of `weights`.
        normalize: divide the weights of each round by their sum.
        clients: N, or the names of all clients; needed if some appear in no round.
        columns: names of columns to those of the file.
        round_length: the length of a round, for availability intervals.
        rounds: how many rounds are read.
        start: the number of the first round, or the time at which it begins.
        empty_rounds: refuse rounds without participants, or drop them in comparisons where that is exact.
    """
    if file is not None:
        if weights is not None:
            raise FedboundsError("recorded participation: give weights or file, not both")
        if not isinstance(file, str | os.PathLike):
            raise FedboundsError(f"file = {quote(file)} must be the path of a CSV or JSON file")
    elif weights is None:
        raise FedboundsError('recorded participation needs weights (rounds, clients), or file = "weights.csv"')
    elif isinstance(weights, str):
        raise FedboundsError(f"weights must be numbers in an array of shape (rounds, clients), not {quote(weights)}")
    return Recorded.read(
        weights if file is None else file,
        normalize=normalize,
        clients=clients,
        columns=columns,
        round_length=round_length,
        rounds=rounds,
        start=start,
        empty_rounds=empty_rounds,
    )


# a process, its dictionary, or a record as `Recorded.read` takes it
Participation = Process | np.ndarray | Sequence[Any] | Mapping[Any, Any] | str | os.PathLike[str]


def as_process(participation: Participation, clients: Sequence[int | str] | None = None) -> Process:
    """A process: itself, from its dictionary, or the record, of these clients, in a file or in memory."""
    if isinstance(participation, Process):
        return participation
    if isinstance(participation, Mapping) and "kind" in participation:
        return process_from_spec(participation)
    return Recorded.read(participation, clients=clients)


def sample_weighted(
    *, process: Mapping[str, Any], client_weights: str | Sequence[float] = OF_PROBLEM
) -> SampleWeighted:
    """The participants of another process, averaged with weights of their own, such as their numbers of samples.

    Args:
        process: the table of the process, with its kind.
        client_weights: a positive number for each client; "problem" for the weights in the problem's objective.
    """
    if isinstance(client_weights, str):
        raise FedboundsError(
            f"client_weights = {quote(client_weights)} must be a list of positive numbers, one for each client; in a "
            f'sweep "{OF_PROBLEM}" stands for those of [problem]'
        )
    return SampleWeighted(process_from_spec(process), client_weights)


_PROCESSES = (
    Full,
    WithReplacement,
    WithoutReplacement,
    Permutation,
    PeriodicGroups,
    GroupMarkov,
    Cyclic,
    Bernoulli,
    Markovian,
    CyclicClients,
    CyclicFromInactive,
)
PARTICIPATION: Registry[Process] = Registry(
    "participation",
    {process.kind: process for process in _PROCESSES} | {Recorded.kind: recorded, SampleWeighted.kind: sample_weighted},
)


def process_from_spec(spec: Mapping[str, Any]) -> Process:
    """The process that a spec describes.

    Args:
        spec: `kind`, and the arguments of that process by name; a record is given by its `weights` or by the
            `file` that holds them. A `probability` may be a table from which rates are drawn, as
            `fedbounds.empirical.participation.rates.rates_from_spec` describes it; the process's own spec has the
            rates.

    Raises:
        FedboundsError: no or an unknown kind, a missing or unknown key (with the nearest names), or a bad
            value.

    Example:
        >>> process_from_spec({"kind": "permutation", "clients": 250, "participants": 10})
        Permutation(clients=250, participants=10, reshuffle=True, repeats=None)
        >>> process_from_spec({"kind": "permutations"})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: unknown participation 'permutations'; did you mean permutation?
    """
    process = PARTICIPATION.builder(spec)
    arguments = {key: value for key, value in spec.items() if key != "kind"}
    if isinstance(rates := arguments.get("probability"), Mapping):
        arguments["probability"] = rates_from_spec(rates, check_count("clients", arguments["clients"]))
    return process(**arguments)
