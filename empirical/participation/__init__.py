"""Participation processes: samplers of the weights of clients and rounds, with their exact moments."""

from fedbounds.empirical.participation.bernoulli import Bernoulli
from fedbounds.empirical.participation.clients import CyclicClients, CyclicFromInactive, Markovian
from fedbounds.empirical.participation.groups import Cyclic, GroupMarkov, PeriodicGroups
from fedbounds.empirical.participation.process import Process, Round
from fedbounds.empirical.participation.rates import class_frequencies, dirichlet_frequencies, participation_rates
from fedbounds.empirical.participation.recorded import Recorded
from fedbounds.empirical.participation.sample_weighted import SampleWeighted
from fedbounds.empirical.participation.sampling import Full, Permutation, WithoutReplacement, WithReplacement
from fedbounds.empirical.participation.spec import process_from_spec

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
    "SampleWeighted",
    "process_from_spec",
    "class_frequencies",
    "dirichlet_frequencies",
    "participation_rates",
]
