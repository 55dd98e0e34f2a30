"""Participation processes: samplers of the weights of clients and rounds, with their exact moments."""

from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    CyclicClients,
    CyclicFromInactive,
    Full,
    GroupMarkov,
    Markovian,
    PeriodicGroups,
    Permutation,
    Process,
    Recorded,
    Round,
    WithoutReplacement,
    WithReplacement,
    participation_rates,
    process_from_spec,
)

__all__ = [
    "Bernoulli",
    "Cyclic",
    "CyclicClients",
    "CyclicFromInactive",
    "Full",
    "GroupMarkov",
    "Markovian",
    "PeriodicGroups",
    "Permutation",
    "Process",
    "Recorded",
    "Round",
    "WithReplacement",
    "WithoutReplacement",
    "participation_rates",
    "process_from_spec",
]
