"""A participation process from its spec, the dict that experiments are written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.empirical.participation.bernoulli import Bernoulli
from fedbounds.empirical.participation.clients import CyclicClients, CyclicFromInactive, Markovian
from fedbounds.empirical.participation.groups import Cyclic, GroupMarkov, PeriodicGroups
from fedbounds.empirical.participation.process import Process
from fedbounds.empirical.participation.rates import rates_from_spec
from fedbounds.empirical.participation.recorded import Recorded
from fedbounds.empirical.participation.sampling import Full, Permutation, WithoutReplacement, WithReplacement

PROCESSES: Mapping[str, type[Process]] = {
    process.kind: process
    for process in (
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
        Recorded,
    )
}


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
        fedbounds.bounds.errors.FedboundsError: unknown kind of participation 'permutations'; did you mean permutation?
    """
    if not isinstance(spec, Mapping):
        raise FedboundsError(f"participation = {quote(spec)} must be a table with a kind and its arguments")
    arguments = dict(spec)
    kind = arguments.pop("kind", None)
    if kind is None:
        raise FedboundsError(f"participation has no kind; known: {', '.join(PROCESSES)}")
    if not isinstance(kind, str) or kind not in PROCESSES:
        raise unknown_name("kind of participation", str(kind), PROCESSES)
    process = PROCESSES[kind]
    from_file = process is Recorded and "file" in arguments and "weights" not in arguments
    required = keys_of_process(process)
    if process is Recorded:
        required["weights"] = not from_file
    for key in arguments:
        if key not in required:
            raise unknown_name(f"key of {kind} participation", str(key), required)
    missing = [key for key, needed in required.items() if needed and key not in arguments]
    if missing == ["weights"]:
        raise FedboundsError('recorded participation needs weights (rounds, clients), or file = "weights.csv"')
    if missing:
        raise FedboundsError(f"{kind} participation needs {', '.join(missing)}")
    if from_file:
        return Recorded.from_csv(arguments.pop("file"), **arguments)
    if process is Recorded and "file" in arguments:
        raise FedboundsError("recorded participation is given by its weights or by a file, not by both")
    if isinstance(drawn := arguments.get("probability"), Mapping):
        arguments["probability"] = rates_from_spec(drawn, check_count("clients", arguments["clients"]))
    return process(**arguments)


def keys_of_process(process: type[Process]) -> dict[str, bool]:
    """The keys of a process, and whether it cannot do without; a record's weights may also stand in a file."""
    required = {f.name: f.default is MISSING for f in fields(process) if f.init}  # type: ignore[arg-type]
    return required | {"file": False, "weights": False} if process is Recorded else required
