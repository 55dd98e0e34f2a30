"""What a search for broken invariants reports, and what it refuses."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest

import fedbounds
from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.empirical.invariants import BrokenInvariant
from fedbounds.empirical.invariants.strategies import cases, quadratics
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
from tests.empirical.invariants.planted_fedavg import planted

FORGETFUL = planted("            u = 0.0\n", "")


@pytest.fixture(scope="module")
def report():
    return check_invariants(FORGETFUL, invariants=["two sided step sizes", "translation"])


def test_the_counterexample_is_the_smallest_run_in_which_the_bug_can_show(report):
    """An accumulator that is never reset needs two intervals; one client, one dimension and one step will do."""
    found = report["two sided step sizes"].counterexample
    shape = found.case.problem.clients, found.case.problem.dimension, found.case.rounds, found.case.local_steps
    assert shape == (1, 1, 2, 1)
    assert found.case.problem.quadratic
    assert (found.sides.got == found.case.models(FORGETFUL)).all()
    right = found.case.models(generalized_fedavg)
    assert (found.sides.got[1] == right[1]).all()
    assert (found.sides.got[2] != right[2]).all()
    assert np.abs(found.sides.expected - right).max() < 1e-12
    assert report["translation"].status == "held"
    assert report["translation"].counterexample is None


def test_a_report_reads_as_one_block_and_raises_it(report):
    assert str(report) == textwrap.dedent("""\
        2 invariants, 1 broken
        BROKEN  two sided step sizes
                With P = 1, eta is a second step size, at the server.
                Smallest counterexample found:
                  problem: F_n(x) = (x - c_n)^T A_n (x - c_n) / 2; N = 1, d = 1; A = [[[1]]]; c = [[0]]; x0 = [0.5]
                  weights: [[1], [1]]
                  run:     T = 2, I = 1, P = 1, step size 0.5, multiplier 2, seed 0
                  at t = 2: [-0.25], expected [0]
        held    translation (50 examples)""")
    with pytest.raises(BrokenInvariant) as raised:
        report.raise_if_broken()
    assert str(raised.value) == str(report)
    assert isinstance(raised.value, AssertionError)


def test_a_report_is_no_truth_value_and_knows_its_invariants(report):
    assert [verdict.name for verdict in report.broken] == ["two sided step sizes"]
    with pytest.raises(TypeError, match="no truth value"):
        bool(report)
    with pytest.raises(FedboundsError, match="unknown invariant 'translatio'; did you mean translation"):
        report["translatio"]


def test_the_same_seed_finds_the_same_counterexample_and_another_seed_tries_other_cases():
    tried = {}

    def note(seed):
        def run(problem, weights, **numbers):
            tried.setdefault(seed, []).append(str(weights.tolist()))
            return generalized_fedavg(problem, weights, **numbers)

        return run

    for seed in (0, 1):
        check_invariants(note(seed), invariants=["determinism"], examples=10, seed=seed)
    assert tried[0] != tried[1]
    line = cases(problems=quadratics(1, 1, ("shared diagonal",)), multipliers=(4.0,))
    reports = [check_invariants(FORGETFUL, invariants=["scaling", "reference twin"], cases=line) for _ in range(2)]
    assert str(reports[0]) == str(reports[1])


def test_a_run_that_raises_or_overflows_in_some_cases_is_broken_there(noisy_cases):
    def raises(problem, weights, *, rounds, **numbers):
        if problem.clients > 2:
            raise ZeroDivisionError("three are\na crowd")
        return generalized_fedavg(problem, weights, rounds=rounds, **numbers)

    def overflows(problem, weights, *, rounds, **numbers):
        models = generalized_fedavg(problem, weights, rounds=rounds, **numbers)
        if rounds < 4 and problem.x0.any():
            models[-1] = np.inf
        return models

    for run, told in ((raises, "the run raised ZeroDivisionError: three are a crowd"), (overflows, "is not finite")):
        report = check_invariants(run, invariants=["scaling"], cases=noisy_cases)
        assert told in report["scaling"].counterexample.message
        assert report["scaling"].counterexample.sides is None
        assert "\n" not in report["scaling"].counterexample.message


def test_a_run_that_is_wrong_only_now_and_then_is_reported_all_the_same():
    rng = np.random.default_rng(1)

    def moody(problem, weights, **numbers):
        return generalized_fedavg(problem, weights, **numbers) + (rng.random() < 0.1)

    report = check_invariants(moody, invariants=["determinism"], examples=100)
    assert report["determinism"].status == "broken"
    assert 0 < report["determinism"].examples < 100


def test_single_precision_is_held_to_what_it_can_do(noisy_cases):
    def single(problem, weights, **numbers):
        return generalized_fedavg(problem, weights, **numbers).astype(np.float32)

    report = check_invariants(single, cases=noisy_cases)
    report.raise_if_broken()
    assert [verdict.name for verdict in report.skipped] == ["frozen gradient limit"]
    assert "double precision" in report["frozen gradient limit"].skipped
    assert check_invariants(single, invariants=["rotation"], cases=noisy_cases, tolerance=1e-9).broken


def test_round_off_of_single_precision_is_named_as_the_cause(noisy_cases):
    def hidden(problem, weights, **numbers):
        return generalized_fedavg(problem, weights, **numbers).astype(np.float32).tolist()

    report = check_invariants(hidden, invariants=["rotation", "translation", "scaling"], cases=noisy_cases)
    assert "single precision, pass tolerance=0.0001" in report.cause


def test_the_twin_may_be_an_implementation_of_ones_own(noisy_cases):
    assert check_invariants(FORGETFUL, invariants=["reference twin"], cases=noisy_cases).broken
    own = check_invariants(FORGETFUL, invariants=["reference twin"], cases=noisy_cases, twin=FORGETFUL)
    own.raise_if_broken()


def test_the_verb_is_at_the_public_api():
    assert fedbounds.check_invariants is check_invariants


def shape_of(models):
    return lambda problem, weights, **numbers: models


@pytest.mark.parametrize(
    ("run", "arguments", "says"),
    [
        (FORGETFUL, {"invariants": ["anchor"]}, "unknown invariant 'anchor'; did you mean anchor form"),
        (FORGETFUL, {"invariants": [3]}, "unknown invariant '3'"),
        (FORGETFUL, {"invariants": []}, r"invariants = \[\] must be a list of names"),
        (FORGETFUL, {"invariants": "scaling"}, "invariants = 'scaling' must be a list of names"),
        (FORGETFUL, {"examples": 0}, "examples = 0 must be an integer >= 1"),
        (FORGETFUL, {"examples": 2.5}, "examples = 2.5 must be an integer >= 1"),
        (FORGETFUL, {"seed": -1}, "seed = -1 must be an integer >= 0"),
        (FORGETFUL, {"tolerance": float("nan")}, "tolerance = nan must be a number"),
        (FORGETFUL, {"cases": 3}, "cases = 3 must be a strategy, like"),
        (3, {}, r"'int' object is not callable; it is called as run\(problem, weights, rounds=, "),
        (
            lambda problem, weights: None,
            {},
            r"unexpected keyword argument .*; it is called as .*; add \*\*_ to its parameters",
        ),
        (shape_of(None), {}, r"the run returned None; expected models of shape \(4, 2\)"),
        (shape_of("models"), {}, "the run returned 'models'; expected models"),
        (shape_of([[1.0, 2.0], [3.0]]), {}, r"the run returned \[\[1.0, 2.0\], \[3.0\]\]; expected"),
        (shape_of(np.zeros((3, 2))), {}, r"the run returned shape \(3, 2\); expected the models x_0..x_T, \(4, 2\)"),
        (shape_of(np.full((4, 2), np.nan)), {}, r"the run returned x_0 = \[nan, nan\], which is not finite"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(run, arguments, says):
    with pytest.raises(FedboundsError, match=says) as refused:
        check_invariants(run, **arguments)
    assert "\n" not in str(refused.value)


def test_without_hypothesis_the_search_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "hypothesis"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fedbounds.empirical.invariants.strategies")
    monkeypatch.delattr("fedbounds.empirical.invariants.strategies", raising=False)
    with pytest.raises(MissingExtra, match=r"hypothesis is not installed; run: pip install 'fedbounds\[testing\]'"):
        check_invariants(generalized_fedavg)
