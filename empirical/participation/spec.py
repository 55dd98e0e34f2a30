"""A participation process from its spec, the dict that experiments are written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.empirical.participation.bernoulli import Bernoulli
from fedbounds.empirical.participation.clients import CyclicClients, CyclicFromInactive, Markovian
from fedbounds.empirical.participation.groups import Cyclic, GroupMarkov, PeriodicGroups
from fedbounds.empirical.participation.process import Process
from fedbounds.empirical.participation.rates import rates_from_spec
from fedbounds.empirical.participation.recorded import Recorded
from fedbounds.empirical.participation.sample_weighted import SampleWeighted
from fedbounds.empirical.participation.sampling import Full, Permutation, WithoutReplacement, WithReplacement
from fedbounds.empirical.runtime.kinds import Registry

OF_PROBLEM = "problem"  # the weights of clients in the objective of a sweep's problem


def recorded(*, weights: Any = None, file: Any = None, normalize: bool = False) -> Recorded:
    """A given record of weights: nothing is random, so means are the weights and covariances zero.

    Args:
        weights: (rounds, clients), at least 0; zeros are clients that did not take part.
        file: a CSV file of the weights, a line per round, a column per client; instead of `weights`.
        normalize: divide the weights of each round by their sum.
    """
    if file is not None:
        if weights is not None:
            raise FedboundsError("recorded participation: give weights or file, not both")
        return Recorded.from_csv(file, normalize=normalize)
    if weights is None:
        raise FedboundsError('recorded participation needs weights (rounds, clients), or file = "weights.csv"')
    return Recorded(weights, normalize)


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
            CSV `file` that holds them. A `probability` may be a table from which rates are drawn, as
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
