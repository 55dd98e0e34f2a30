"""The third paper's figures and claims, at a scale that takes seconds."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from fedbounds.bounds.errors import FedboundsError
from fedbounds.cli import figures as commands
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.figures.charts.claims import levels_by_name
from fedbounds.figures.charts.paper_gallery import draw_by_name
from fedbounds.figures.charts.significance import Level
from fedbounds.figures.charts.verdicts import NOT_TESTED
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda import plateau
from fedbounds.figures.papers.fed_norm_sgda.claims import (
    fewer_rounds,
    figure_1,
    figure_2,
    figure_7,
    heterogeneity_claims,
    increases,
    noise_limit,
    speed_up,
)
from fedbounds.figures.papers.fed_norm_sgda.drawing import EPOCHS, FIGURES, Gallery, describe_accuracy

draw = partial(draw_by_name, "fed-norm-sgda", FIGURES)

pytestmark = pytest.mark.usefixtures("same_sources")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return Gallery(tmp_path_factory.mktemp("results"), scale=SMALL)


STEPS = ex.SMOKE.start
SMALL = replace(ex.SMOKE, record_every=2, tuning_rounds=20, participants=(3, 9))  # what is drawn, whatever it shows


def tasks(setting, **more):
    return ex.runs(ex.SMOKE, setting, STEPS, **more).tasks


@pytest.mark.parametrize("problem", [ex.ROBUST, ex.FAIR])
def test_every_seed_has_its_own_data_and_every_method_the_same(problem):
    by_method = [tasks(ex.ExperimentSetting(problem, 9, 9, method)) for method in ex.METHODS]
    for own in by_method:
        assert [task["seeds"] for task in own] == [[seed] for seed in range(ex.SMOKE.seeds)]
        assert [task["problem"]["partition_seed"] for task in own] == [*range(ex.SMOKE.seeds)]
        assert [task["problem"] for task in own] == [task["problem"] for task in by_method[0]]
    assert by_method[0][0]["problem"]["kind"] == problem and by_method[0][0]["problem"]["alpha"] == 0.1


def test_step_sizes_are_tuned_on_seeds_and_a_split_that_nothing_is_judged_on():
    (task,) = tasks(ex.ExperimentSetting(ex.FAIR, 9, 9), tuning=True)
    judged = tasks(ex.ExperimentSetting(ex.FAIR, 9, 9))
    assert len(task["seeds"]) == ex.SMOKE.tuning and not {*task["seeds"]} & {s for one in judged for s in one["seeds"]}
    assert task["problem"]["partition_seed"] not in {one["problem"]["partition_seed"] for one in judged}


def test_methods_are_those_that_the_paper_compares():
    plus = ex.ExperimentSetting(ex.ROBUST, 15, 15, most=7).algorithm(STEPS)
    assert plus["normalized"] and plus["local_steps"] == {"low": 2, "high": 7, "redraw": False}
    assert plus["snapshot_period"] == ex.SMOKE.period and ex.SMOKE.rounds % ex.SMOKE.period == 0
    plain = ex.ExperimentSetting(ex.FAIR, 15, 15, epochs=True).algorithm(STEPS)
    assert "snapshot_period" not in plain and plain["local_epochs"] == {"low": 2, "high": 5, "redraw": False}
    with_momentum = ex.ExperimentSetting(ex.FAIR, 15, 15, ex.MOMENTUM).algorithm(STEPS)
    assert not with_momentum["normalized"] and with_momentum["optimizer"] == {"momentum": 0.9}
    assert "optimizer" not in ex.ExperimentSetting(ex.FAIR, 15, 15, ex.NAIVE).algorithm(STEPS)


def test_the_paper_writes_its_methods_with_a_plus_where_there_are_snapshots(gallery):
    labels = [axes.get_legend_handles_labels()[1] for axes in draw(gallery, "figure-3").figure.axes]
    assert labels == [["Fed-Norm-SGDA+", "Local SGDA+", "Local SGDA+ with momentum"]] * 2


@pytest.mark.parametrize("dataset", ex.SCALES)
def test_snapshots_fit_the_rounds_and_the_whole_set_has_the_papers_clients(dataset):
    for scale in (ex.scale_of(dataset), ex.scale_of(dataset, full=True)):
        assert scale.rounds % scale.period == scale.rounds % scale.record_every == scale.reach % scale.period == 0
        assert scale.tuning_rounds % scale.period == 0
        for tenth in (scale.last, scale.tuning_rounds // 10):
            assert tenth % scale.record_every == 0  # so that a tenth of the rounds has records of its own
        assert scale.clients == 15 and scale.participants == (5, 10, 15)
    assert ex.scale_of("cifar-10", full=True).network == "vgg-11"
    assert ex.scale_of(dataset, network="mlp", full=True).network == "mlp"


def test_images_made_here_are_as_many_as_the_scale_says(tmp_path):
    small = replace(ex.SMOKE, dataset="glyphs", network="mlp", size=(200, 50), rounds=10, participants=(3, 9))
    made = Gallery(tmp_path, scale=small)
    picture = draw(made, "figure-8")
    assert all(np.isfinite(c.y).all() for c in picture.curves)
    assert "glyphs (200 images, 50 for tests)" in picture.caption
    (task, *_) = ex.runs(small, ex.ExperimentSetting(ex.FAIR, 9, 9), STEPS).tasks
    assert problem_from_spec(task["problem"]).weights.numpy() * 200 == pytest.approx(200 / 9, abs=1)


@pytest.mark.parametrize(("dataset", "radius"), [("glyphs", 0.25), ("digits", 1.0), ("cifar-10", 1.0)])
def test_the_perturbation_is_as_large_as_the_caption_says(dataset, radius):
    scale = ex.scale_of(dataset)
    robust, fair = (ex.runs(scale, ex.ExperimentSetting(kind, 15, 15), STEPS).tasks[0] for kind in (ex.ROBUST, ex.FAIR))
    assert robust["problem"]["radius"] == radius and "radius" not in fair["problem"]
    assert f"of norm at most {radius:g} " in describe_accuracy(scale, ex.ROBUST)
    assert "norm" not in describe_accuracy(scale, ex.FAIR)


def test_the_gallery_draws_glyphs_unless_told_otherwise(tmp_path):
    assert Gallery(tmp_path).scale == ex.SCALES["glyphs"]


def test_claims_on_heterogeneity_name_the_curves_they_compare():
    levels = {
        alpha: {P: Level.from_values(np.array([alpha + P, alpha + P + 0.1]), f"P = {P}") for P in (5, 10)}
        for alpha in (0.1, 1.0)
    }
    names = [set(claim.found.names) for claim in heterogeneity_claims(levels)]
    assert names == [{f"P = {P} (alpha = 0.1)", f"P = {P} (alpha = 1)"} for P in (5, 10)]


def test_what_is_predicted_is_of_digits_whatever_is_drawn():
    assert plateau.digits_scale(ex.scale_of("glyphs")) == plateau.digits_scale(ex.scale_of("digits", "mlp"))
    assert plateau.digits_scale(ex.scale_of("glyphs")) == ex.scale_of("digits")
    assert plateau.digits_scale(ex.SMOKE) == ex.SMOKE


def test_a_method_that_diverges_has_the_accuracy_of_chance(gallery):
    one = gallery.fair_methods[0]
    lost = [replace(t, arrays={k: np.full_like(v, np.nan) if v.dtype.kind == "f" and k != "round" else v
                               for k, v in t.arrays.items()}) for t in one.runs[ex.NAIVE]]  # fmt: skip
    found = replace(one, runs={**one.runs, ex.NAIVE: lost})
    assert (found.ends(ex.ACCURACY[ex.FAIR])[ex.NAIVE] == 0).all() and np.isnan(
        found.ends(ex.PHI[ex.FAIR])[ex.NAIVE]
    ).all()
    better, smaller = (
        c for c in found.claims("Figure 5", ()) if c.text.endswith(" SGDA (E = 5)") or "Local SGDA (" in c.text
    )
    assert better.here.towards and smaller.here.agrees is not False


def test_every_method_has_the_same_budget_and_the_same_start_on_other_seeds(gallery):
    picture = draw(gallery, "figure-5")
    assert all(np.isfinite(c.y).all() and c.low is not None for c in picture.curves)
    assert [one.most for one in gallery.fair_methods] == [5, 7]
    for one in gallery.fair_methods:
        assert {len(tuned.tried) for tuned in one.tuned.values()} == {ex.SMOKE.budget}
        assert len({tuple(tuned.tried[0][0].items()) for tuned in one.tuned.values()}) == 1
        for traces in one.runs.values():
            assert [int(trace.arrays["seed"][0]) for trace in traces] == [*range(ex.SMOKE.seeds)]
    assert "the paper has CIFAR-10 and VGG11" in picture.caption and "chi^2" in picture.caption
    assert [axes.get_yscale() for axes in picture.figure.axes] == ["log", "log", "linear", "linear"]
    assert len(json.dumps(dict(picture.provenance))) < 8000


def test_every_p_and_alpha_has_the_same_budget_and_the_same_start(gallery):
    settings = [*gallery.by_participants[1.0].values(), *gallery.by_alpha.values()]
    assert len({(one.alpha, one.participants) for one in settings}) > 2
    for tuned in gallery.tune(settings).values():
        assert len(tuned.tried) == ex.SMOKE.budget and tuned.tried[0][0] == ex.SMOKE.start
    assert gallery.scale.search in draw(gallery, "figure-4").caption


def test_searches_take_the_rounds_that_the_caption_says(tmp_path):
    short = Gallery(tmp_path, scale=replace(ex.SMOKE, rounds=20, tuning_rounds=10))
    lengths, whole = {False: set(), True: set()}, short.run_each

    def noted(sweeps):
        found = whole(sweeps)
        for traces in found.values():
            lengths[int(traces[0].arrays["seed"][0]) >= 1000].add(int(traces[0].arrays["round"][-1]))
        return found

    short.run_each = noted
    caption = draw(short, "figure-8").caption
    assert lengths == {False: {20}, True: {10}} and "in runs of 10 rounds on 2 other seeds" in caption


def test_clients_weigh_the_same_and_naive_averaging_departs_from_it(gallery):
    (task, *_) = tasks(ex.ExperimentSetting(ex.FAIR, 9, 9, ex.NAIVE))
    assert np.ptp(problem_from_spec(task["problem"]).weights.numpy()) < 1e-3
    one = gallery.fair_methods[0]
    assert pytest.approx(one.chi_squared(ex.NORMALIZED), abs=1e-12) == 0
    assert 0 < one.chi_squared(ex.NAIVE) < one.chi_squared(ex.MOMENTUM)  # |a|_1 grows faster than tau


def test_the_comparison_is_of_accuracy_and_of_what_is_minimized(gallery):
    claims = gallery.fair_methods[0].claims("here", ["linear"])
    assert [("smaller Phi" in claim.text) for claim in claims] == [False, False, True, True]
    assert "chi^2" in claims[0].measured and "predicted" in claims[2].measured
    better = replace(gallery.fair_methods[0], runs={label: with_ends(label == ex.NORMALIZED) for label in ex.METHODS})
    assert [claim.agrees for claim in better.claims("here", ["linear"])] == [True] * 4
    assert all("network linear is smaller" in claim.note for claim in better.claims("here", ["vgg-11"]))
    worse = replace(gallery.fair_methods[0], runs={label: with_ends(label != ex.NORMALIZED) for label in ex.METHODS})
    assert [claim.agrees for claim in worse.claims("here", ["linear"])] == [False] * 4


@pytest.mark.parametrize(("falls", "tested"), [(0.004, True), (0.02, False)])
def test_the_end_is_not_tested_where_phi_still_falls(gallery, falls, tested):
    runs = {label: with_ends(label == ex.NORMALIZED, falls) for label in ex.METHODS}
    claims = replace(gallery.fair_methods[0], runs=runs).claims("here", ["linear"])
    assert [claim.verdict != NOT_TESTED for claim in claims[2:]] == [tested] * 2


def with_ends(good, falls=0.0):
    values = np.array([[0.5, 0.5, 0.5 * (1 - falls)], [0.51, 0.51, 0.51 * (1 - falls)]])
    arrays = {
        "round": np.array([0, 2, 4]),
        "envelope": values * (1 - 0.2 * good),
        "worst_class_test_accuracy": values + good,
    }
    return [SimpleNamespace(arrays=arrays)]


# --- where methods settle -------------------------------------------------------------------------------------------


def test_the_least_of_an_envelope_is_where_its_slope_vanishes():
    problem = plateau.problem_of_split(3, 0.3, 9).surrogate(np.arange(1, 10) / 45)
    x = plateau.minimize_envelope(problem)
    assert float(problem.envelope_gradient(x[None]).norm()) < 1e-4
    rng = np.random.default_rng(0)
    for _ in range(5):
        elsewhere = x + 0.1 * torch.from_numpy(rng.standard_normal(len(x)))
        assert float(problem.envelope(elsewhere)) > float(problem.envelope(x))


def test_normalized_averaging_settles_lower_than_naive_and_no_split_of_the_data_matters_to_it():
    naive = plateau.predict_levels(ex.SMOKE, ex.NAIVE, 5)
    own = plateau.predict_levels(ex.SMOKE, ex.NORMALIZED, 5)
    assert (naive[:, 0] > own[:, 0] + 0.01).all() and np.ptp(own[:, 0]) == 0
    elsewhere = plateau.problem_of_split(5, ex.SMOKE.weight_decay, 9)
    assert float(elsewhere.envelope(plateau.minimize_envelope(elsewhere))) == pytest.approx(own[0, 0], rel=1e-6)


def test_runs_settle_where_that_is_predicted(gallery):
    scale = replace(ex.SMOKE, rounds=100, seeds=1)
    run = gallery.run(plateau.settling_runs(scale, ex.NAIVE, 5))["it"][0].arrays
    expected, _ = plateau.predict_levels(scale, ex.NAIVE, 5)[0]
    assert run["envelope"][0, -1] == pytest.approx(expected, rel=5e-3)
    normalized, _ = plateau.predict_levels(scale, ex.NORMALIZED, 5)[0]
    assert expected > 1.02 * normalized  # so that the two cannot be mistaken for one another


@pytest.mark.parametrize("moving", [None, ex.NAIVE, ex.NORMALIZED])
def test_where_methods_settle_is_judged_only_of_runs_that_have(moving):
    rounds, seeds = np.arange(0, 201, 20), 0.01 * np.arange(4)[:, None]

    def runs(method, level):
        curve = level + (method == moving) * 0.2 * (1 - rounds / 200)
        arrays = {name: curve + seeds for name in (ex.PHI[ex.FAIR], ex.ACCURACY[ex.FAIR])}
        return [SimpleNamespace(arrays={"round": rounds, **{k: v[i : i + 1] for k, v in arrays.items()}})
                for i in range(4)]  # fmt: skip

    expected = np.tile(0.6 + seeds, (1, 2))
    met = {(m, most): (expected, runs(m, level)) for m, level in ((ex.NORMALIZED, 0.7), (ex.NAIVE, 0.6))
           for most in ex.MOST}  # fmt: skip
    tested = [claim.verdict != NOT_TESTED for claim in plateau.claims(met)]
    assert tested == [moving != ex.NAIVE, moving is None] * 2


def test_figures_share_their_runs(gallery, monkeypatch):
    draw(gallery, "figure-4")
    curves = {c.label: c.y for c in draw(gallery, "figure-6").curves}
    monkeypatch.setattr("fedbounds.empirical.sweep.task.run_together", lambda tasks: pytest.fail("ran again"))
    again = Gallery(gallery.results, scale=SMALL)
    all_of_them = {c.label: c.y for c in draw(again, "figure-4").curves}
    for alpha in ex.SMOKE.alphas:
        np.testing.assert_array_equal(curves[f"$\\alpha = {alpha:g}$"], all_of_them[f"$\\alpha = {alpha:g}$: $P = 9$"])


def test_accuracies_are_those_of_the_last_rounds_and_a_run_that_diverged_counts_as_chance(gallery):
    trace = SimpleNamespace()
    values = np.array([[0.1, 0.3, 0.5, 0.7], [0.1, 0.9, np.nan, np.nan]])
    trace.arrays = {"round": np.array([0, 5, 10, 15]), **dict.fromkeys(ex.ACCURACY.values(), values)}
    assert gallery.accuracy([trace], ex.ACCURACY[ex.ROBUST]).tolist() == [70.0, 10.0]
    assert gallery.accuracy([trace], ex.ACCURACY[ex.FAIR]).tolist() == [70.0, 0.0]


def test_only_runs_that_miss_the_target_need_a_plateau(gallery, monkeypatch):
    slow, quick = (gallery.reaching(gallery.by_number[EPOCHS])[n] for n in gallery.scale.numbers)

    def rounds(_, traces):
        return np.array([2.0, np.inf if traces[0] is slow[0] else 1.0])

    monkeypatch.setattr(Gallery, "rounds_to_target", rounds)
    monkeypatch.setattr(Gallery, "reaching", lambda self, by_n: dict(zip(by_n, [slow, quick], strict=True)))
    for claim in figure_7(gallery):
        assert {*claim.limits.plateaus} == {f"n = {gallery.scale.numbers[0]}"}
    monkeypatch.setattr(Gallery, "rounds_to_target", lambda self, traces: np.array([2.0, 1.0]))
    assert not any(claim.limits.plateaus for claim in figure_7(gallery))


def test_the_rounds_to_a_target_are_the_first_that_reach_it(gallery):
    trace = SimpleNamespace()
    values = np.array([[0.1, 0.3, 0.2], [0.1, 0.2, 0.3], [0.1, 0.2, np.nan]])
    trace.arrays = {"round": np.array([0, 5, 10]), "test_accuracy": values}
    assert gallery.rounds_to_target([trace]).tolist() == [5, 10, np.inf]
    assert gallery.arrivals([trace]).tolist() == pytest.approx([5, 10, np.inf])
    early = SimpleNamespace(arrays={"round": np.array([0, 4]), "test_accuracy": np.array([[0.5, 0.6], [0.2, 0.4]])})
    assert gallery.arrivals([early]).tolist() == pytest.approx([0, 2])


def seeds(mean):
    return mean + np.array([-0.3, 0.1, 0.2])


def test_claims_are_judged_by_what_was_measured():
    def rising(**of):
        return increases("here", "", levels_by_name({int(P[1:]): values for P, values in of.items()}, "P"), "").agrees

    assert rising(P15=seeds(3), P5=seeds(1), P10=seeds(2))
    assert not rising(P5=seeds(1), P10=seeds(3), P15=seeds(3))
    assert not rising(P5=seeds(1), P10=seeds(2), P15=np.array([-4.0, 3.0, 9.0]))
    by_P = {
        1.0: levels_by_name({5: seeds(2), 10: seeds(2)}),
        0.1: levels_by_name({5: seeds(1), 10: np.array([1.0, 3.0, 1.0])}),
    }
    assert [c.agrees for c in heterogeneity_claims(by_P)] == [True, None]


def test_almost_k_fold_fewer_rounds_are_three_quarters_of_k():
    fewest = np.array([90.0, 90.0])
    claim = speed_up("here", {5: fewest, 15: fewest / 2, 45: fewest / 8})
    assert claim.agrees and "9-fold more clients, 8.00-fold fewer rounds" in claim.measured
    assert not speed_up("here", {5: fewest, 45: fewest / 3}).agrees
    assert speed_up("here", {5: np.array([np.inf, 90.0]), 45: np.array([1.0, 1.0])}).agrees is None  # two seeds


@pytest.mark.parametrize(("slow", "quick", "agrees"), [(90, 10, True), (60, 10, False)])
def test_seeds_that_never_arrive_count_as_slow_ones_and_decide_nothing_alone(slow, quick, agrees):
    """One seed of twenty makes the mean infinite, and says nothing of the others."""
    before = np.array([np.inf, *[float(slow)] * 19])
    claim = speed_up("here", {5: before, 45: np.full(20, float(quick))})
    assert claim.agrees is agrees and f"so in {20 if agrees else 1} of 20 seeds" in claim.measured
    assert f"median {slow}, not within the rounds by 1 of 20 seeds" in claim.measured
    assert speed_up("here", {5: np.full(20, np.inf), 45: np.full(20, np.inf)}).agrees is None


def test_step_sizes_for_the_level_are_not_those_for_speed(gallery):
    setting = gallery.setting(ex.ROBUST)
    (level,), (speed,) = gallery.tune([setting]).values(), gallery.quick([setting]).values()
    assert [score for _, score in level.tried] != [score for _, score in speed.tried]
    assert gallery.tune([setting])[setting] is level and gallery.quick([setting])[setting] is speed


def test_figures_1_and_2_are_judged_exactly():
    assert figure_1().agrees and not figure_1((3, 3)).agrees and not figure_1((5, 2)).agrees
    caption = figure_2()
    assert not caption.agrees  # the sign of x
    assert caption.measured == "Delta_x/tau is -1.000 times g_x, Delta_y/tau 1.000 times g_y"


def test_the_rates_are_judged_by_what_the_theorems_give():
    rounds = fewer_rounds()
    assert not rounds.agrees and "T^-0.333, so epsilon^-6.0 rounds" in rounds.measured
    assert noise_limit(2, 4, rounds=200).agrees


def test_the_paper_has_the_papers_problems():
    (task, *_) = tasks(ex.ExperimentSetting(ex.ROBUST, 6, 2, alpha=1.0))
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
