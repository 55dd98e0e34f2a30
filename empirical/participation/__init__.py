"""Participation processes: samplers of the weights of clients and rounds, with their exact moments."""

from empirical.participation.bernoulli import Bernoulli
from empirical.participation.clients import CyclicClients, CyclicFromInactive, Markovian
from empirical.participation.groups import Cyclic, GroupMarkov, PeriodicGroups
from empirical.participation.process import Process, Round
from empirical.participation.rates import class_frequencies, dirichlet_frequencies, participation_rates
from empirical.participation.recorded import Recorded
from empirical.participation.sampling import Full, Permutation, WithoutReplacement, WithReplacement
from empirical.participation.spec import process_from_spec

__all__ = [
    "Process",
    "Round",
    "Full",
    "WithReplacement",
    "WithoutReplacement",
    "Permutation",
    "PeriodicGroups",
    "GroupMarkov",
    "Cyclic",
    "Bernoulli",
    "Markovian",
    "CyclicClients",
    "CyclicFromInactive",
    "Recorded",
    "process_from_spec",
    "class_frequencies",
    "dirichlet_frequencies",
    "participation_rates",
]
