"""Participation processes: samplers of the weights of clients and rounds, with their exact moments."""

from fedbounds.empirical.participation import Bernoulli as Bernoulli
from fedbounds.empirical.participation import Cyclic as Cyclic
from fedbounds.empirical.participation import CyclicClients as CyclicClients
from fedbounds.empirical.participation import CyclicFromInactive as CyclicFromInactive
from fedbounds.empirical.participation import Full as Full
from fedbounds.empirical.participation import GroupMarkov as GroupMarkov
from fedbounds.empirical.participation import Markovian as Markovian
from fedbounds.empirical.participation import PeriodicGroups as PeriodicGroups
from fedbounds.empirical.participation import Permutation as Permutation
from fedbounds.empirical.participation import Process as Process
from fedbounds.empirical.participation import Recorded as Recorded
from fedbounds.empirical.participation import Round as Round
from fedbounds.empirical.participation import SampleWeighted as SampleWeighted
from fedbounds.empirical.participation import WithoutReplacement as WithoutReplacement
from fedbounds.empirical.participation import WithReplacement as WithReplacement
from fedbounds.empirical.participation import participation_rates as participation_rates
from fedbounds.empirical.participation import process_from_spec as process_from_spec
