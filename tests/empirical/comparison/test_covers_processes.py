"""The vocabulary's kinds of participation against processes whose properties are computed, and against `confront`."""

import numpy as np
import pytest

from fedbounds.bounds.advice.coverage import covers
from fedbounds.bounds.papers.arbitrary_participation import assumptions as theory
from fedbounds.bounds.theory.problem_class import NO, YES, ProblemClass
from fedbounds.empirical.papers.arbitrary_participation.run import is_regularized
from fedbounds.empirical.papers.fed_norm_sgda import run as minimax
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import LocalSGDA
from fedbounds.empirical.papers.fedau import run as fedau
from fedbounds.empirical.papers.fedau.algorithms import FedAU
from fedbounds.empirical.papers.fedmrn import run as fedmrn
from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    Full,
    Markovian,
    Permutation,
    WithoutReplacement,
    WithReplacement,
)
from fedbounds.empirical.problems import random_quadratic_minimax

N, P = 6, 3
PROCESSES = {
    "all": Full(N),
    "uniform-sampling": WithoutReplacement(N, 2),
    "with-replacement": WithReplacement(N, 2),
    "coins-known-rates": Bernoulli(N, 0.4),
    "cyclic": Cyclic(N, P),
    "reshuffled": Permutation(N, 2),
}


def level(assumption, kind):
    return assumption.cover.level(ProblemClass({"participation": (kind,)}))


@pytest.mark.parametrize("kind", PROCESSES)
def test_the_kinds_of_participation_have_the_properties_of_the_processes(kind):
    process = PROCESSES[kind]
    assert level(theory.INDEPENDENT_ROUNDS, kind) == (YES if process.independent_rounds else NO)
    if kind == "coins-known-rates":  # whose weights need not sum to one
        assert level(theory.WEIGHTS, kind) not in (YES, NO)
        return
    assert np.allclose([sum(process.mean(t)) for t in range(P)], 1) and level(theory.WEIGHTS, kind) == YES
    assert level(theory.REGULARIZED, kind) == (YES if is_regularized(None, process, P, 4 * P) else NO)
    assert level(theory.UNBIASED_SAMPLING, kind) == (YES if process.unbiased else NO)


def refuses(check):
    try:
        check()
    except ValueError:
        return True
    return False


def test_what_confront_refuses_is_not_covered_and_what_it_takes_is():
    problem, ascends = random_quadratic_minimax(N, 2, 2), LocalSGDA(0.1, 0.1, 2)
    taken = {
        "fedau/corollary-4": lambda process: fedau.why_no_bound(FedAU(0.1, 2), process) is None,
        "fed-norm-sgda/theorem-1": lambda process: minimax.why_no_bound(ascends, problem, process) is None,
        "fedmrn/theorem-2": lambda process: not refuses(lambda: fedmrn.cohort_size(process)),
    }
    for kind, process in (PROCESSES | {"mixing": Markovian(N, 0.4)}).items():
        for key, takes in taken.items():
            ascent = "strongly-concave" if key.startswith("fed-norm") else "none"
            found = covers(ProblemClass({"participation": (kind,), "ascent": (ascent,)})).of(key)
            assert (found.answer != "not covered") == takes(process), (key, kind)
