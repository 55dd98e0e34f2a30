"""The invariants of TDCD hold for our engine, and find and name the mutations of a plain loop."""

from __future__ import annotations

import contextlib
import inspect
import re
from functools import cache
from itertools import count
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, PrintedTDCD
from fedbounds.empirical.papers.tdcd.invariants import VERTICAL_INVARIANTS, check_vertical
from fedbounds.empirical.papers.tdcd.misreadings import MISREADINGS, Reading
from fedbounds.empirical.papers.tdcd.numpy_reference import tdcd
from fedbounds.empirical.papers.tdcd.strategies import table_cases
from fedbounds.empirical.papers.tdcd.tables import SplitTable, TableCase
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import Vertical
from fedbounds.empirical.simulation.simulate import simulate
from tests.papers.tdcd.planted_tdcd import ALL, planted

LOSSES = {
    "least squares": lambda total, labels: (total[:, 0] - labels) ** 2 / 2,
    "logistic": lambda total, labels: torch.nn.functional.softplus(total[:, 0]) - labels * total[:, 0],
}


def affine(theta, features):
    """The offset is a feature, the last."""
    return features[:, :-1] @ theta[:, None] + features[:, -1:]


def tensors(table):
    return [torch.from_numpy(np.column_stack([X, o])) for X, o in zip(table.features, table.offsets, strict=True)]


class TableSilos(Vertical):
    """A plain table for the engine; `draw` says what its batches are."""

    embeds, embedding_size = True, 1
    dtype, device = torch.float64, torch.device("cpu")

    def __init__(self, table, draw):
        self.table, self.drawn, self.batch = table, map(draw, count()), len(draw(0))
        self.blocks, self.silo_clients = table.blocks, tuple(map(len, table.clients))
        self.dimension, self.clients = table.blocks[-1].stop, sum(self.silo_clients)

    def initial_point(self, rng):
        return torch.from_numpy(np.concatenate(self.table.starts))

    def draw_round(self, rng):
        return next(self.drawn)

    def exchange(self, x, randomness):
        ids = randomness[0].numpy()
        return ids, np.array([self.table.embed(j, x[0, block], ids) for j, block in enumerate(self.blocks)])

    def partial_gradients(self, silo, own, known):
        (ids, told), clients = known, self.table.clients[silo]
        others, rows = told.sum(0) - told[silo], [np.isin(ids, mine) for mine in clients]
        found = [self.table.gradient(silo, own[0, k], ids[at], others[at]) for k, at in enumerate(rows)]
        return torch.from_numpy(np.array(found))[None]

    def held(self, silo, known):
        return torch.tensor([[np.isin(known[0], mine).sum() for mine in self.table.clients[silo]]])

    def metrics(self, x):
        return {"size": x.square().sum(-1)}

    def unasked(self, *_):
        raise NotImplementedError

    gradient = objective = objective_gradient = constants = unasked


def by_engine(algorithm=TDCD):
    """Our engine as a run."""

    def run(table, draw, *, rounds, local_steps, step_size):
        problem, made = TableSilos(table, lambda r: draw(r * local_steps)), algorithm(step_size, local_steps)
        return simulate(made, problem, Full(problem.clients), rounds, record_models=True).model[0]

    return run


def by_mirrored_clients(table, draw, *, rounds, local_steps, step_size):
    """Two silos whose client k has the same samples in both, and hears of its other half alone."""
    count, models = len(table.clients[0]), [np.concatenate(table.starts)]
    copies = [[start] * count for start in table.starts]
    for r in range(rounds):
        batches = [draw(r * local_steps)] * local_steps
        kept = [[sorted(set(batches[0]) & set(table.clients[j][k])) for k in range(count)] for j in (0, 1)]
        heard = [[table.embed(j, copies[j][k], kept[j][k]) for k in range(count)] for j in (0, 1)]
        for _ in range(local_steps):
            for j in (0, 1):
                for k, own in enumerate(copies[j]):
                    copies[j][k] = own - step_size * table.gradient(j, own, kept[j][k], heard[1 - j][k])
        means = [np.mean(copies[j], axis=0) for j in (0, 1)]
        copies = [[mean] * count for mean in means]
        models.append(np.concatenate(means))
    return models


CORRECT = {
    "plain": tdcd,
    "reading": Reading(),
    "engine": by_engine(),
}


@pytest.mark.parametrize("name", CORRECT)
def test_no_invariant_flags_a_correct_implementation(name):
    report = check_vertical(CORRECT[name], examples=20, cases=st.sampled_from(drawn_cases()))
    report.raise_if_broken()
    assert report.cause is None and not report.skipped, str(report)


def test_a_loop_for_two_silos_and_mirrored_clients_is_tried_on_such():
    """As the authors' public code for images is built: two hubs, and client k of each with the same samples."""
    cases = table_cases(silos=(2,), same_rows=True)
    report = check_vertical(by_mirrored_clients, cases=cases, examples=30)
    report.raise_if_broken()
    assert {verdict.name for verdict in report.skipped} == {"split silos", "stability"}
    elsewhere = check_vertical(by_mirrored_clients, invariants=["reference twin"], cases=table_cases(silos=(2,)))
    assert elsewhere.broken


def test_every_invariant_says_in_a_line_what_it_is():
    for name, invariant in VERTICAL_INVARIANTS.items():
        said = (inspect.getdoc(invariant) or "").split("\n")[0]
        assert said.endswith(".") and len(said) < 130, name


@pytest.mark.usefixtures("no_shrinking")
@pytest.mark.parametrize("bug", ALL)
def test_a_bug_is_found_by_the_invariant_that_speaks_of_it_and_named(bug):
    of, changes, name, cause = ALL[bug]
    run, names = planted(*changes, of=of), [name, "reference twin"]
    report = check_vertical(run, invariants=names, examples=40, cases=st.sampled_from(drawn_cases()))
    assert [verdict.name for verdict in report.broken] == names
    if cause is None:
        assert report.cause is not None and report.cause.startswith(
            ("not among the known mistakes; begin with", "it is random")
        )
    else:
        assert report.cause is not None and report.cause.startswith(cause)


def test_every_invariant_finds_some_bug_and_every_misreading_is_planted():
    spoken = {name for _, _, name, _ in ALL.values()}
    assert set(VERTICAL_INVARIANTS) - spoken == {"reference twin", "unchanged arguments"}  # the zoo has bugs of these
    for misreading in MISREADINGS:
        assert (
            sum(cause is not None and misreading.description.startswith(cause) for _, _, _, cause in ALL.values()) == 1
        )
    assert len(MISREADINGS) == 24


def test_the_printed_algorithm_is_found_and_named():
    printed = check_vertical(by_engine(PrintedTDCD), invariants=["one local step", "reference twin"], examples=20)
    assert printed.cause == "line 32 as printed: the last local step is lost" and len(printed.broken) == 2


@cache
def drawn_cases():
    """Some cases, drawn once: what is searched in them need not be shrunk."""
    drawn = []
    quiet = settings(max_examples=80, phases=[Phase.generate], database=None, deadline=None)
    with contextlib.suppress(NoSuchExample):
        find(table_cases(), lambda case: bool(drawn.append(case)), settings=quiet, random=Random(2))
    return drawn


@given(table_cases())
@settings(max_examples=40)
def test_cases_are_legal(case):
    table = case.table
    for silo in table.clients:
        assert sorted(np.concatenate(silo)) == list(range(table.samples))
        for batch in case.batches:
            assert len(set(batch)) == len(batch) and all(np.isin(batch, ids).any() for ids in silo)


def test_the_smallest_counterexample_can_be_read_and_run_again():
    of, changes, name, _ = ALL["sum of updates"]
    run = planted(*changes, of=of)
    verdict = check_vertical(run, invariants=[name])[name]
    found = verdict.counterexample
    assert found is not None and isinstance(found.case, TableCase) and re.search(r"silo 0: X = \[\[", str(verdict))
    assert found.sides is not None and not np.allclose(found.sides.got, found.sides.expected)
    np.testing.assert_array_equal(found.case.models(run), found.sides.got)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda table, draw, **_: np.zeros(3), r"shape \(3,\); expected the models after every round, \(3, 2\)"),
        (lambda table, draw, **_: "models", "the run returned 'models'"),
        (lambda table, draw, **_: np.full((3, 2), np.nan), "not finite"),
        (lambda table: 0, r"it is called as run\(table, draw, rounds="),
        (lambda table, draw, **_: draw(0.5), r"draw\(0.5\): iterations are 0, 1, 2"),
        (lambda table, draw, **_: table.gradient(0, [1.0], [0], [1.0, 2.0]), r"others have shape \(2,\)"),
        (lambda table, draw, **_: table.gradient(0, [1.0], [], []), "the gradient of no samples; give at least one ID"),
    ],
)
def test_a_run_that_is_none_is_refused(run, said):
    with pytest.raises(FedboundsError, match=said):
        check_vertical(run)


def test_unknown_invariants_and_cases_are_refused():
    with pytest.raises(FedboundsError, match="translation"):
        check_vertical(tdcd, invariants=["translate"])
    with pytest.raises(FedboundsError, match="must be a strategy"):
        check_vertical(tdcd, cases=[1])
    assert fedbounds.check_vertical is check_vertical


def test_a_run_without_local_steps_is_taken_as_it_is():
    def sgd(table, draw, *, rounds, step_size, **_):
        return tdcd(table, draw, rounds=rounds, local_steps=1, step_size=step_size)

    report = check_vertical(sgd, examples=20)
    assert not report.broken and report.without == ("one local step (Q = 1)",)
    assert {verdict.name for verdict in report.skipped} == {"others as they were", "stability"}
    equal = check_vertical(planted(*ALL["by shards"][1]), cases=table_cases(equal_shards=True), examples=20)
    assert not equal.broken


def test_there_are_thirty_two_planted_bugs():
    assert len(ALL) == 32


def test_a_table_says_what_a_silo_makes_of_a_sample():
    one = np.ones((2, 1))
    table = SplitTable((one,), np.zeros((1, 2)), np.zeros(2), ((np.arange(2),),), (one[0],), "logistic")
    np.testing.assert_allclose(table.gradient(0, [2.0], [0], [1.0]), 1 / (1 + np.exp(-3)))
