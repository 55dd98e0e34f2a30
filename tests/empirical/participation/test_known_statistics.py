"""Which rates "known participation statistics" are where a process cannot keep those that were asked for."""

import numpy as np

from fedbounds.empirical.papers.fedau.algorithms import KnownParticipation
from fedbounds.empirical.participation import CyclicClients


def test_known_statistics_are_the_rates_kept_and_the_public_code_takes_those_asked_for():
    process = CyclicClients(1, 0.527)
    assert np.array_equal(KnownParticipation(0.1, 5).bind_process(process).omega, [1 / 0.53])
    assert KnownParticipation(0.1, 5, probability=0.527).bind_process(process).omega == 1 / 0.527
