"""The third paper's figures and claims, at a scale that takes seconds."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.figures import commands
from fedbounds.figures.papers.fed_norm_sgda import comparison
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda.claims import (
    alike_is_better,
    fewer_rounds,
    figure_1,
    figure_2,
    floor_of_noise,
    increases,
    speed_up,
)
from fedbounds.figures.papers.fed_norm_sgda.drawing import FIGURES, Gallery, draw


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return Gallery(tmp_path_factory.mktemp("results"), scale=ex.SMOKE)


def sweep(problem, **more):
    methods = {label: ex.method(ex.SMOKE, problem, label) for label in ex.METHODS}
    return ex.training_sweep("one", ex.SMOKE, problem, methods, **more)


@pytest.mark.parametrize("problem", [ex.ROBUST, ex.FAIR])
def test_every_seed_has_its_own_data_and_every_method_the_same(problem):
    tasks = sweep(problem).tasks
    assert len(tasks) == 3 * ex.SMOKE.seeds
    for task in tasks:
        (seed,) = task["seeds"]
        assert task["problem"]["partition_seed"] == seed and task["problem"]["kind"] == problem
        assert task["problem"]["alpha"] == 0.1 and task["participation"]["participants"] == ex.SMOKE.clients
    assert len({json.dumps(t["problem"], sort_keys=True) for t in tasks}) == ex.SMOKE.seeds


def test_methods_are_those_that_the_paper_compares():
    plus = ex.method(ex.SMOKE, ex.ROBUST, ex.NORMALIZED, 7)
    assert plus["kind"] == "fed-norm-sgda" and plus["local_epochs"] == {"low": 2, "high": 7}
    assert plus["snapshot_period"] == ex.SMOKE.period and ex.SMOKE.rounds % ex.SMOKE.period == 0
    plain = ex.method(ex.SMOKE, ex.FAIR, ex.NORMALIZED)
    assert "snapshot_period" not in plain and plain["local_step_size"] == plain["server_step_size"]
    with_momentum = ex.method(ex.SMOKE, ex.FAIR, ex.MOMENTUM)
    assert with_momentum["kind"] == "local-sgda" and with_momentum["momentum"] == 0.9
    assert "momentum" not in ex.method(ex.SMOKE, ex.FAIR, ex.NAIVE)


def test_the_paper_writes_its_methods_with_a_plus_where_there_are_snapshots(gallery):
    labels = [axes.get_legend_handles_labels()[1] for axes in draw(gallery, "figure-3").figure.axes]
    assert labels == [["Fed-Norm-SGDA+", "Local SGDA+", "Local SGDA+ with momentum"]] * 4


@pytest.mark.parametrize("dataset", ex.SCALES)
def test_snapshots_fit_the_rounds_and_the_whole_set_has_the_papers_clients(dataset):
    for scale in (ex.scale_of(dataset), ex.scale_of(dataset, full=True)):
        assert scale.rounds % scale.period == scale.rounds % scale.record_every == 0
        assert scale.clients == 15 and scale.participants == (5, 10, 15)
        assert {m for steps in scale.steps.values() for m in steps} == set(ex.METHODS)
    assert ex.scale_of("cifar-10", full=True).network == "vgg-11"
    assert ex.scale_of(dataset, network="mlp", full=True).network == "mlp"


def test_every_method_has_the_same_budget_and_the_same_start_on_other_seeds(gallery):
    picture = draw(gallery, "figure-5")
    assert all(np.isfinite(c.y).all() and c.low is not None for c in picture.curves)
    for one in gallery.fair_methods:
        assert {len(tuned.tried) for tuned in one.tuned.values()} == {comparison.SMOKE.budget}
        assert len({tuple(tuned.tried[0][0].items()) for tuned in one.tuned.values()}) == 1
        for label, traces in one.runs.items():
            assert [int(trace.arrays["seed"][0]) for trace in traces] == [*range(comparison.SMOKE.seeds)]
            made = comparison.method(one.scale, ex.FAIR, label, one.work, one.tuned[label].winner)
            assert made["local_steps"]["redraw"] is False and made["normalized"] is (label == ex.NORMALIZED)
    assert "the paper has CIFAR-10 and VGG11" in picture.caption and "chi^2" in picture.caption


def test_clients_weigh_the_same_and_naive_averaging_departs_from_it(gallery):
    one = gallery.fair_methods[0]
    naive = {ex.NAIVE: comparison.method(one.scale, ex.FAIR, ex.NAIVE, one.work, one.scale.start)}
    (task,) = comparison.sweep(one.scale, ex.FAIR, naive, [7], None).tasks
    assert np.ptp(problem_from_spec(task["problem"]).weights.numpy()) < 1e-3 and one.chi_squared > 0
    assert replace(one, work=(4, 4)).chi_squared == pytest.approx(0, abs=1e-12)


def test_the_comparison_is_of_accuracy_and_of_what_is_minimized(gallery):
    claims = gallery.fair_methods[0].claims("here")
    assert [("Phi" in claim.text) for claim in claims] == [False, True] * 2
    assert all("chi^2" in claim.measured for claim in claims)
    better = replace(gallery.fair_methods[0], runs={label: with_ends(label == ex.NORMALIZED) for label in ex.METHODS})
    assert [claim.agrees for claim in better.claims("here")] == [True] * 4


def with_ends(good):
    values = np.array([[0.5] * 3, [0.51] * 3])
    arrays = {
        "round": np.array([0, 5, 10]),
        "envelope": values - 0.2 * good,
        "worst_class_test_accuracy": values + good,
    }
    return [SimpleNamespace(arrays=arrays)]


def test_figures_share_their_runs(gallery, monkeypatch):
    draw(gallery, "figure-4")
    curves = {c.label: c.y for c in draw(gallery, "figure-6").curves}
    monkeypatch.setattr("fedbounds.empirical.sweep.task.run_task", lambda task: pytest.fail("ran again"))
    again = Gallery(gallery.results, scale=ex.SMOKE)
    all_of_them = {c.label: c.y for c in draw(again, "figure-4").curves}
    for alpha in ex.SMOKE.alphas:
        np.testing.assert_array_equal(curves[f"$\\alpha = {alpha:g}$"], all_of_them[f"$\\alpha = {alpha:g}$: $P = 9$"])


def test_accuracies_are_those_of_the_last_rounds_and_a_run_that_diverged_counts_as_chance(gallery):
    trace = SimpleNamespace()
    values = np.array([[0.1, 0.3, 0.5, 0.7], [0.1, 0.9, np.nan, np.nan]])
    trace.arrays = {"round": np.array([0, 5, 10, 15]), **dict.fromkeys(ex.ACCURACY.values(), values)}
    assert gallery.accuracy([trace], ex.ACCURACY[ex.ROBUST]).tolist() == [70.0, 10.0]
    assert gallery.accuracy([trace], ex.ACCURACY[ex.FAIR]).tolist() == [70.0, 0.0]


def test_the_rounds_to_a_target_are_the_first_that_reach_it(gallery):
    trace = SimpleNamespace()
    values = np.array([[0.1, 0.3, 0.2], [0.1, 0.2, 0.3], [0.1, 0.2, np.nan]])
    trace.arrays = {"round": np.array([0, 5, 10]), "test_accuracy": values}
    assert gallery.rounds_to_target([trace]).tolist() == [5, 10, np.inf]


def seeds(mean):
    return mean + np.array([-0.3, 0.1, 0.2])


def test_claims_are_judged_by_what_was_measured():
    assert increases("here", "", "P", {15: seeds(3), 5: seeds(1), 10: seeds(2)}).agrees
    assert not increases("here", "", "P", {5: seeds(1), 10: seeds(3), 15: seeds(3)}).agrees
    assert not increases("here", "", "P", {5: seeds(1), 10: seeds(2), 15: np.array([-4.0, 3.0, 9.0])}).agrees
    by_P = {1.0: {5: seeds(2), 10: seeds(2)}, 0.1: {5: seeds(1), 10: np.array([1.0, 3.0, 1.0])}}
    assert [c.agrees for c in alike_is_better(by_P)] == [True, None]


def test_almost_k_fold_fewer_rounds_are_three_quarters_of_k():
    fewest = np.array([90.0, 90.0])
    claim = speed_up("here", {5: fewest, 15: fewest / 2, 45: fewest / 8})
    assert claim.agrees and "9-fold more clients, 8.00-fold fewer rounds" in claim.measured
    assert not speed_up("here", {5: fewest, 45: fewest / 3}).agrees
    assert not speed_up("here", {5: np.array([np.inf, 90.0]), 45: np.array([1.0, 1.0])}).agrees


def test_figures_1_and_2_are_judged_exactly():
    assert figure_1().agrees and not figure_1((3, 3)).agrees and not figure_1((5, 2)).agrees
    caption = figure_2()
    assert not caption.agrees  # the sign of x
    assert caption.measured == "Delta_x/tau is -1.000 times g_x, Delta_y/tau 1.000 times g_y"


def test_the_rates_are_judged_by_what_the_theorems_give():
    rounds = fewer_rounds()
    assert not rounds.agrees and "T^-0.333, so epsilon^-6.0 rounds" in rounds.measured
    assert floor_of_noise(2, 4, rounds=200).agrees


def test_the_room_has_the_papers_problems():
    task = sweep(ex.ROBUST, clients=6, participants=2, alpha=1.0).tasks[0]
    problem = problem_from_spec(task["problem"])
    assert problem.clients == 6 and task["participation"]["participants"] == 2 and task["problem"]["alpha"] == 1.0


def test_an_unknown_figure_names_the_nearest(gallery):
    with pytest.raises(FedboundsError, match=r"unknown figure of fed-norm-sgda 'figure-9'; did you mean"):
        draw(gallery, "figure-9")
    with pytest.raises(FedboundsError, match="did you mean cifar-10"):
        Gallery("results", dataset="cifar10")


def test_the_command_knows_the_paper(tmp_path):
    out = ["--out", str(tmp_path / "f.png"), "--json"]
    done = CliRunner().invoke(commands.figure, ["fed-norm-sgda/figure-1", *out], catch_exceptions=False)
    assert [line.endswith((".png", ".csv", ".json")) for line in json.loads(done.output)["written"]] == [True] * 3


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(gallery, name, tmp_path):
    assert all(p.exists() for p in draw(gallery, name).save(tmp_path / f"{name}.png"))
