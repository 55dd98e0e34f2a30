"""The invariants of minimax algorithms hold for our engine and find the bugs planted in a plain Fed-Norm-SGDA."""

from __future__ import annotations

import inspect
import re
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import Phase, find, given, settings

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import LocalOptimizer
from fedbounds.empirical.papers.fed_norm_sgda import invariants as minimax
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.fed_norm_sgda.games import Game, GameCase
from fedbounds.empirical.papers.fed_norm_sgda.invariants import MINIMAX_INVARIANTS, check_minimax
from fedbounds.empirical.papers.fed_norm_sgda.numpy_reference import fed_norm_sgda
from fedbounds.empirical.papers.fed_norm_sgda.strategies import game_cases
from fedbounds.empirical.problems.minimax import Minimax
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.invariants.drawn_cases import drawn_cases
from tests.empirical.problems.stand_in_problems import Unmeasured
from tests.papers.fed_norm_sgda.planted_sgda import fed_norm_sgda_by_hand, planted


class AsTensors(Unmeasured, Minimax):
    """A plain game for the engines."""

    def __init__(self, game: Game) -> None:
        self.hessians, self.slopes, self.start = (torch.from_numpy(v) for v in (game.hessians, game.slopes, game.start))
        self.ripple = game.ripple and {name: torch.from_numpy(v) for name, v in vars(game.ripple).items()}
        self.clients, self.dimension = self.slopes.shape
        self.descent_dimension, self.ascent_dimension = game.descent, self.dimension - game.descent
        self.weights = torch.full((self.clients,), 1 / self.clients, dtype=torch.float64)

    def initial_point(self, rng):
        return self.start

    def gradient(self, x, clients):
        affine = torch.einsum("...ij,...j->...i", self.hessians[clients], x) + self.slopes[clients]
        if self.ripple is None:
            return affine
        frame, sizes = self.ripple["frame"], self.ripple["sizes"][clients]
        return affine + sizes[..., None] * (torch.sin((x - self.ripple["origin"]) @ frame.T) @ frame)


def engine_run(engine, normalized=True):
    """Our engine as a run that `check_minimax` can test."""

    def run(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
        algorithm = FedNormSGDA(
            *local_step_sizes, *step_sizes, tuple(local_steps.tolist()),
            weights=tuple(weights), optimizer=LocalOptimizer(momentum), snapshot_period=period or None,
            effective_local_steps=1.0 if normalized else None, normalized=normalized,
        )  # fmt: skip
        q = np.zeros((len(cohorts), game.clients))
        np.put_along_axis(q, cohorts, 1 / cohorts.shape[1], axis=1)
        made = simulate(algorithm, AsTensors(game), q, len(cohorts), seeds=[seed], record_models=True, engine=engine)
        return made.model[0]

    return run


@pytest.mark.parametrize(("engine", "examples"), [("masked batch", 25), ("sequential", 8)])
def test_our_engines_keep_every_invariant(engine, examples):
    check_minimax(engine_run(engine), examples=examples).raise_if_broken()


def test_naive_averaging_breaks_normalized_directions_and_agreement_alone():
    naive, broken = engine_run("masked batch", normalized=False), ("normalized directions", "reference twin")
    kept = [name for name in MINIMAX_INVARIANTS if name not in broken]
    check_minimax(naive, invariants=kept, examples=8).raise_if_broken()
    for name in broken:
        assert first_broken(naive, name) is not None


def test_every_invariant_says_in_a_line_what_it_is():
    for name, invariant in MINIMAX_INVARIANTS.items():
        said = (inspect.getdoc(invariant) or "").split("\n")[0]
        assert said.endswith(".") and len(said) < 130, name


# --- bugs ----------------------------------------------------------------------------------------------------------

BUGS = {
    "weights that sum to one over the cohort": (
        "share = weights[i] * n / P / sum(a[tau])", "share = weights[i] / weights[cohort].sum() / sum(a[tau])",
        "mean over cohorts",
    ),
    "n over P forgotten": ("weights[i] * n / P", "weights[i]", "mean over cohorts"),
    "normalized by the steps, not by the coefficients": ("/ sum(a[tau])", "/ tau", "normalized directions"),
    "not normalized": ("/ sum(a[tau])", "/ 1", "normalized directions"),
    "y ascends from the new x": (
        "game.gradient(i, snapshot if period else xk, yk)[1]",
        "game.gradient(i, snapshot if period else xk - local_step_sizes[0] * Gx[-1], yk)[1]", "exchanged players",
    ),
    "y descends": ("y + step_sizes[1] * gy", "y - step_sizes[1] * gy", "exchanged players"),
    "local y descends": ("yk = y + local", "yk = y - local", "exchanged players"),
    "the snapshot is never renewed": ("t % period == 0", "t == 0", "restarted blocks"),
    "the snapshot is renewed a round late": ("t % period == 0", "t % period == 1", "snapshots of every round"),
    "the last of more than three is left out": (
        "for i in cohort:", "for i in cohort[: 3 if len(cohort) == 4 else 4]:", "reference twin",
    ),
    "one step size for both players": ("local_step_sizes[1] * sum", "local_step_sizes[0] * sum", "exchanged players"),
    "the local steps of the wrong client": ("int(local_steps[i])", "int(local_steps[0])", "relabeled clients"),
    "everyone computes, whoever is there": ("for i in cohort:", "for i in range(n):", "absent clients"),
    "gradients with a floor": ("x - step_sizes[0] * gx", "x - step_sizes[0] * np.sign(gx)", "scaling"),
    "x pulled to the origin": ("x - step_sizes[0] * gx", "0.9 * x - step_sizes[0] * gx", "translation"),
    "signs of coordinates": ("x - step_sizes[0] * gx", "x - step_sizes[0] * gx.round(1)", "rotation"),
    "momentum twice": ("momentum**m for m", "(2 * momentum)**m for m", "reference twin"),
    "the seed moves x": ("x - step_sizes[0] * gx", "x - step_sizes[0] * gx + 1e-3 * seed", "seed without noise"),
    "copies count double": ("weights[i] * n", "min(weights[i], 0.3) * n", "split clients"),
}  # fmt: skip


def test_what_the_bugs_are_planted_in_is_right():
    assert not check_minimax(fed_norm_sgda_by_hand).broken


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found_by_the_invariant_that_speaks_of_it(bug):
    old, new, name = BUGS[bug]
    assert not breaks_with(fed_norm_sgda, MINIMAX_INVARIANTS[name], first_broken(planted(old, new), name))


@pytest.mark.usefixtures("no_causes")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_bug_of_four_players_is_found_in_the_default_games_too(seed):
    run = planted(*BUGS["the last of more than three is left out"][:2])
    report = check_minimax(run, invariants=["reference twin"], seed=seed)
    assert report.broken and report["reference twin"].counterexample.case.cohorts.shape[1] == 4


def test_a_snapshot_that_is_late_is_not_taken_for_one_that_is_never_renewed():
    late, never = (planted(*BUGS[f"the snapshot is {how}"][:2]) for how in ("renewed a round late", "never renewed"))
    names = ["restarted blocks", "snapshots of every round", "reference twin"]
    report = check_minimax(late, invariants=names, cases=drawn_cases(game_cases))
    assert len(report.broken) == 3 and report.cause.startswith("not among the known mistakes; begin with")
    assert check_minimax(never, invariants=names, cases=drawn_cases(game_cases)).cause == "it never renews the snapshot"


def first_broken(run, name):
    """Some case that breaks the invariant of this name, as it is found."""
    quick = settings(max_examples=300, phases=[Phase.generate], database=None, deadline=None)
    invariant = MINIMAX_INVARIANTS[name]
    return find(game_cases(), lambda case: breaks_with(run, invariant, case), settings=quick, random=Random(0))


def breaks_with(run, invariant, case):
    sides = invariant(lambda other: other.states(run), case)
    return not np.allclose(sides.got, sides.expected, rtol=0, atol=sides.within * max(1, np.abs(sides.got).max()))


def test_the_smallest_counterexample_can_be_read_and_run_again():
    run = planted(*BUGS["n over P forgotten"][:2])
    verdict = check_minimax(run, invariants=["mean over cohorts"])["mean over cohorts"]
    found = verdict.counterexample
    assert found is not None and isinstance(found.case, GameCase)
    assert re.search(r"cohorts: \[\[", str(verdict)) and "expected" in found.message
    assert found.sides is not None and not np.allclose(found.sides.got, found.sides.expected)
    assert breaks_with(run, MINIMAX_INVARIANTS["mean over cohorts"], found.drawn)


@given(game_cases())
@settings(max_examples=25)
def test_games_are_legal(case):
    n, P = case.game.clients, case.cohorts.shape[1]
    assert n >= P and all(len(set(row)) == P and set(row) <= set(range(n)) for row in case.cohorts.tolist())
    assert case.weights.sum() == pytest.approx(1) and (case.local_steps >= 1).all()
    assert (case.game.hessians == case.game.hessians.transpose(0, 2, 1)).all()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda game, cohorts, **_: np.zeros(3), r"shape \(3,\); expected \(x_0, y_0\)"),
        (lambda game, cohorts, **_: "states", "the run returned 'states'"),
        (lambda game, cohorts, **_: np.full((3, 2), np.nan), "not finite"),
        (lambda game: 0, r"it is called as run\(game, cohorts, weights="),
    ],
)
def test_a_run_that_is_none_is_refused(run, said):
    with pytest.raises(FedboundsError, match=said):
        check_minimax(run)


def test_unknown_invariants_and_cases_are_refused():
    with pytest.raises(FedboundsError, match="translation"):
        check_minimax(fed_norm_sgda, invariants=["translate"])
    with pytest.raises(FedboundsError, match="must be a strategy"):
        check_minimax(fed_norm_sgda, cases=[1])
    assert minimax.check_minimax is check_minimax


def test_there_are_nineteen_planted_bugs():
    assert len(BUGS) == 19
