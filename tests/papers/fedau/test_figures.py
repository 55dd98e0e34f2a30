"""The second paper's figures, tables and claims, at a scale that takes seconds."""

import csv
import json
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedbounds.bounds.errors import FedboundsError
from fedbounds.cli import figures as commands
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import class_counts, class_mix_partition
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.figures.charts.claims import correct, levels_by_name
from fedbounds.figures.charts.paper_gallery import draw_by_name
from fedbounds.figures.charts.printed import is_above_all, is_decreasing
from fedbounds.figures.charts.significance import Level, decide
from fedbounds.figures.papers.fedau import experiments as ex
from fedbounds.figures.papers.fedau import statistics
from fedbounds.figures.papers.fedau.claims import (
    PRINTED,
    cutoff_claim,
    figure_1,
    interval_claim,
    printed_claims,
    table_1,
    table_1_claims,
    table_d_1_1,
    table_d_6_1,
)
from fedbounds.figures.papers.fedau.drawing import FIGURES, Gallery

draw = partial(draw_by_name, "fedau", FIGURES)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return Gallery(tmp_path_factory.mktemp("results"), scale=ex.SMOKE)


def test_rates_are_the_papers_formula_on_the_classes_that_clients_hold():
    labels = load_dataset("digits").train_labels
    split = class_mix_partition(labels, 50, np.random.default_rng(4))
    held = class_counts(split.assignment, labels, 50) / split.sizes[:, None]
    p = ex.rates(ex.SCALES["digits"], 4, floor=0.0)
    q, rest = np.linalg.lstsq(held, p, rcond=None)[:2]  # p is linear in the shares: q / (10 * 0.1) comes back
    assert rest.max(initial=0) < 1e-20 and q.sum() == pytest.approx(1) and (q > -1e-12).all()
    floored = ex.rates(ex.SCALES["digits"], 4)
    np.testing.assert_array_equal(floored, np.maximum(p, 0.02))


def test_every_seed_has_its_own_data_and_rates_and_every_method_the_same():
    sweep = ex.training_sweep("one", ex.SMOKE, {label: ex.method(ex.SMOKE, label, 0.1, 1.0) for label in ex.METHODS})
    assert len(sweep.tasks) == 7 * ex.SMOKE.seeds
    by_seed = {}
    for task in sweep.tasks:
        (seed,) = task["seeds"]
        assert task["problem"]["partition_seed"] == seed
        by_seed.setdefault(seed, set()).add(tuple(task["participation"]["probability"]))
    assert all(len(rates) == 1 for rates in by_seed.values()) and len(set.union(*by_seed.values())) == ex.SMOKE.seeds


@pytest.mark.parametrize("dataset", ex.SCALES)
def test_the_full_scale_is_the_papers(dataset):
    scale = ex.scale_of(dataset, full=True)
    assert (scale.clients, scale.seeds, scale.last, scale.tuning_rounds) == (250, 5, 200, 500)
    assert not scale.weight_decay  # the paper has none
    if dataset in ("glyphs", "digits"):
        return
    assert scale.rounds == {"svhn": 2000, "cifar-10": 10_000, "cifar-100": 20_000, "cinic-10": 10_000}[dataset]
    printed = PRINTED.columns("Table C.4.1")
    name = {"svhn": "SVHN", "cifar-10": "CIFAR-10", "cifar-100": "CIFAR-100", "cinic-10": "CINIC-10"}[dataset]
    for place in ("gamma", "eta"):  # of what the paper's search found, printed with three digits
        assert len(scale.grid[place]) == 7 and set(ex.GRID[place]) < set(scale.grid[place])
        for value in printed[f"{name} {place}"].values():
            assert min(abs(step / value - 1) for step in scale.grid[place]) < 2e-3
    assert scale.network == f"fedau-{dataset}" and "crop" in scale.augmentation


def test_every_method_is_tuned_on_one_grid_and_on_seeds_that_are_not_judged(gallery):
    judged = ex.training_sweep("one", ex.SMOKE, {ex.ALL: ex.method(ex.SMOKE, ex.ALL, 0.1, 1.0)})
    tuning = ex.training_sweep("one", ex.SMOKE, {ex.ALL: ex.method(ex.SMOKE, ex.ALL, 0.1, 1.0)}, tuning=True)
    seeds, others = ({task["seeds"][0] for task in sweep.tasks} for sweep in (judged, tuning))
    assert not seeds & others and (len(seeds), len(others)) == (ex.SMOKE.seeds, ex.SMOKE.tuning_seeds)
    assert {task["rounds"] for task in tuning.tasks} == {ex.SMOKE.tuning_rounds}
    found = {label: gallery.tune(label) for label in (ex.ALL, ex.FEDAU)}
    for label, one in found.items():
        assert one.grid == ex.SMOKE.grid and len(one.tried) >= 3
        assert gallery.methods([label])[label] == ex.method(ex.SMOKE, label, **one.winner)
    assert gallery.tune(ex.FEDAU) is found[ex.FEDAU]  # searched once


def test_a_cut_off_has_the_label_of_the_method_that_it_is():
    assert (ex.cutoff(50), ex.cutoff(inf)) == (ex.FEDAU, ex.FEDAU_INF)
    assert ex.method(ex.SMOKE, ex.cutoff(50), 0.1, 2.0) == {"kind": "fedau", "cutoff": 50, "local_step_size": 0.1,
                                                          "local_steps": 5, "server_multiplier": 2.0}  # fmt: skip


def test_the_busy_client_takes_part_as_often_as_its_pattern_says():
    picture = statistics.figure_c_6_1()
    presence = {curve.label: curve.y for curve in picture.curves}
    assert presence["cyclic"].mean() == 0.53  # four cycles of 53 rounds out of 100
    changes = {label: np.abs(np.diff(y)).sum() for label, y in presence.items()}
    assert changes["cyclic"] in (7, 8) and changes["Bernoulli"] > 150 and changes["Markovian"] < 50


def test_weights_settle_at_their_expectation_and_below_it_with_a_cut_off():
    picture = statistics.weights_over_time("Bernoulli", "D.4.1", rounds=3000)
    ends = {curve.label: curve.y[-1] for curve in picture.curves}
    assert ends["mean of 250 clients: expected, K = 50"] == pytest.approx(ends["mean of 250 clients: K = 50"], rel=0.02)
    rare = f"client with p = {ex.FLOOR}, no. 1"
    assert ends[f"{rare}: expected, K = 50"] == pytest.approx((1 - 0.98**50) / 0.02, rel=1e-9)
    assert ends[f"{rare}: 1/p"] == 50
    cyclic = {c.label: c.y for c in statistics.weights_over_time("cyclic", "D.4.2", rounds=3000).curves}
    assert cyclic[f"{rare}: K = 50"][-1] == pytest.approx(100 / 3, rel=0.02)  # intervals 1, 50 and 49 of each cycle


def test_rates_never_fall_below_their_lower_bound_and_scale_with_their_mean():
    bounded = {c.label: c for c in statistics.figure_d_5_1().curves}
    assert bounded["lower bound 0.05"].x[0] == 0.05 and bounded["lower bound 0"].x[0] < 1e-4
    means = {c.label: c.x for c in statistics.figure_d_6_1().curves}
    middle = slice(2500, None)
    np.testing.assert_allclose(means["mean 0.1"][middle], 100 * means["mean 0.001"][middle], rtol=1e-9)


def test_the_printed_tables_are_read_as_they_stand():
    table = PRINTED.columns("Table 1", 2)
    assert len(table) == 24 and table["Cyclic, CIFAR-10 Test"]["FedAU (ours, K=50)"] == 76.6
    assert PRINTED.columns("Table D.6.1")["E[p_n]=0.001 Train"]["Known participation statistics"] == 10.0
    assert PRINTED.columns("Table D.3.1")["Client-wise std. dev. of loss"]["Average all"] == 0.030


def test_the_papers_sentences_are_judged_by_its_own_tables():
    # counted by hand in the tables
    found = {(c.source, c.text): (c.agrees, c.measured) for c in correct(printed_claims())}
    one = "Table 1 as printed"
    assert found[one, "FedAU is the best of the upper part"] == (True, "24 of 24 columns")
    agrees, measured = found[one, "K = 50 is better than K = inf in three quarters of the columns"]
    assert agrees and measured == "22 of 24 columns; not Bernoulli, CIFAR-100 Test, Markovian, CIFAR-100 Test"
    tie = "23 of 24 columns; not Cyclic, SVHN Train"
    assert found[one, "K = 50 is better than known statistics"] == (None, tie)  # 89.9 +- 0.6 against 89.9 +- 0.7
    assert found[one, "FedAU is the best of all but on the test data of CIFAR-10"][0] is None  # the same tie
    some = "FedVarp is the best on the test data of CIFAR-10 (in at least one pattern)"
    assert found[one, some] == (True, "2 of 3 columns; not Cyclic, CIFAR-10 Test")
    # 11.7 against 11.6, without deviations
    smallest = "FedAU (ours, K->inf) has smaller deviations over clients than the plain averages"
    assert found["Table D.3.1 as printed", smallest][0] is None
    beaten = "the plain averages are better than FedVarp, MIFA and known statistics"
    assert found["Table D.6.1 as printed", beaten] == (None, "5 of 6 columns; not E[p_n]=0.1 Test")  # 1.0, error 0.78
    grows = "the lead over Average all grows with heterogeneity (Train)"
    assert found["Table D.1.1 as printed", grows] == (True, "7.8, 6.6, 5.0, 4.0, 3.3")
    assert not found["Table D.1.1 as printed", "the lead over MIFA (250x memory) grows with heterogeneity (Train)"][0]


def test_the_gallery_shows_what_the_printed_tables_say():
    path = Path(__file__).parents[3] / "docs" / "gallery" / "fedau" / "claims.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [tuple(row) for row in csv.reader(file)]
    assert [row for row in rows if row[0].endswith("as printed")] == [c.row for c in correct(printed_claims()[:-1])]


def test_a_printed_difference_disagrees_only_if_it_is_clear():
    column = {"a": Level(10, 0.3, 5), "b": Level(10.9, 0.5, 5), "c": Level(12, 0.2, 5)}
    found = [is_above_all(column, *of) for of in (("c", ["a", "b"]), ("a", ["b"]), ("a", ["c"]))]
    assert [decide(one).agrees for one in found] == [True, None, False]
    falling = [is_decreasing([column[label] for label in labels]) for labels in ("cb", "ab", "abc")]
    assert [decide(one).agrees for one in falling] == [True, None, False]


def test_the_paper_is_right_about_a_rare_clients_intervals():
    assert interval_claim().agrees and not interval_claim(p=0.03).agrees
    assert interval_claim().measured == "200 +- 2 * 14.0: from 43.9 to 58.1"


def numbers(**means):
    """Three seeds around a mean, with the same differences between seeds for every method."""
    seeds = {label: means[key] + np.array([-0.3, 0.1, 0.2]) for label, key in zip(ex.METHODS, "abcdefg", strict=True)}
    return levels_by_name(seeds)


def test_table_1s_claims_are_judged_by_what_was_measured():
    like_the_paper = numbers(a=88, b=89, c=85, d=84, e=87, f=86, g=87.5)
    assert [c.agrees for c in table_1("here", like_the_paper)] == [True] * 3
    otherwise = numbers(a=86, b=85, c=88, d=84, e=87, f=84, g=87.5)
    assert [c.agrees for c in table_1("here", otherwise)] == [False] * 3
    blurred = like_the_paper | levels_by_name({ex.PARTICIPATING: np.array([80.0, 92.0, 84.0])})
    assert not table_1("here", blurred)[0].agrees


def test_generally_is_three_quarters_of_the_columns_and_never_an_equal_one():
    better, worse = numbers(a=88, b=89, c=0, d=0, e=0, f=0, g=0), numbers(a=88, b=87, c=0, d=0, e=0, f=0, g=0)
    open_ = better | levels_by_name({ex.FEDAU: np.array(better[ex.FEDAU_INF].values) + np.array([-1.0, 0.5, 0.8])})
    columns = {str(k): better for k in range(3)}
    assert cutoff_claim(columns | {"last": worse}).agrees and cutoff_claim(columns | {"last": open_}).agrees
    assert not cutoff_claim({"1": better, "2": better, "3": worse, "4": worse}).agrees
    told = cutoff_claim({"1": better, "2": better, "3": worse, "4": open_})
    assert told.verdict == "inconclusive" and told.note.startswith("about")
    same = better | {ex.FEDAU: better[ex.FEDAU_INF]}
    assert cutoff_claim(dict.fromkeys("abc", same)).verdict == "inconclusive"
    assert "last -1.00 +- 0.00" in cutoff_claim(columns | {"last": worse}).measured


def test_the_other_claims_are_judged_by_what_was_measured():
    leads = {0.01: numbers(a=0, b=9, c=5, d=1, e=0, f=0, g=0), 1.0: numbers(a=0, b=9, c=8, d=0, e=0, f=0, g=0)}
    assert [c.agrees for c in table_d_1_1("here", leads)] == [True, False]
    behind = {0.01: numbers(a=0, b=3, c=5, d=6, e=0, f=0, g=0), 1.0: numbers(a=0, b=3, c=7, d=8, e=0, f=0, g=0)}
    assert [c.agrees for c in table_d_1_1("here", behind)] == [False, False]  # it lacks less, but does not lead
    assert [c.agrees for c in table_d_6_1("here", numbers(a=0, b=9, c=8, d=7, e=1, f=2, g=3))] == [True, True]
    assert [c.agrees for c in table_d_6_1("here", numbers(a=9, b=8, c=7, d=3, e=4, f=2, g=3))] == [True, False]

    def verdicts(means):
        return [
            c.agrees
            for c in figure_1(0, levels_by_name({K: mean + np.array([0.1, 0.0, -0.1]) for K, mean in means.items()}))
        ]

    assert verdicts({1: 5, 50: 9, inf: 8}) == [True, True]
    assert verdicts({1: 5, 50: 8, inf: 9}) == [False, False]
    assert verdicts({1: 5, 5: 9, 50: 8, inf: 6}) == [True, False]


def test_a_run_that_diverged_counts_as_chance(gallery):
    trace = type("Trace", (), {})()
    trace.arrays = {"round": np.array([0, 10, 20, 30]), "test_accuracy": np.array([[0.1, 0.9, np.nan, np.nan]])}
    assert gallery.accuracy([trace], "test_accuracy").tolist() == [10.0]


def test_the_clients_numbers_are_those_of_the_final_models(gallery):
    found = gallery.by_client
    assert set(found) == set(ex.TOP)
    for metrics in found.values():
        assert {values.shape for values in metrics.values()} == {(ex.SMOKE.seeds, ex.SMOKE.clients)}
    sweep = ex.training_sweep("clients", ex.SMOKE, gallery.methods([ex.ALL]), final_models=True)
    (again, _) = gallery.run(sweep)[ex.ALL]
    problem = problem_from_spec(sweep.tasks[0]["problem"])
    loss = float(
        problem.metrics(problem.initial_point(np.random.default_rng(0)).new_tensor(again.arrays["model"][:, -1]))[
            "train_loss"
        ][0]
    )
    assert found[ex.ALL]["train_loss"][0].mean() == pytest.approx(loss, rel=1e-5)
    picture = draw(gallery, "table-d.3.1")
    expected = found[ex.FEDAU]["test_accuracy"].std(axis=1).mean()
    (drawn,) = [c.y[0] for c in picture.curves if c.label == f"test accuracy: {ex.FEDAU}"]
    assert drawn == pytest.approx(expected)


def test_the_table_with_convolutions_has_runs_and_step_sizes_of_its_own(tmp_path):
    scale = replace(ex.SMOKE, clients=6, rounds=4, last=2, tuning_rounds=2, grid={"gamma": (0.1, 0.3), "eta": (1.0,)})
    small = Gallery(tmp_path, scale=scale)
    picture, here = draw(small, "table-1-cnn"), small.convolutional
    panels = {curve.label.partition(":")[0] for curve in picture.curves}
    assert panels == {"Bernoulli", "Markovian"} and "convolutions" in picture.caption
    assert "cyclic" not in picture.caption.lower() and {path.name for path in tmp_path.iterdir()} == {here._name}
    assert "cnn-small" in here._name and not small._kept  # nothing is tuned for the network of the other figures
    (drawn,) = [c.y[0] for c in picture.curves if c.label == f"Markovian: {ex.MIFA} test"]
    assert drawn == pytest.approx(here.accuracy(here.by_pattern["Markovian"][ex.MIFA], "test_accuracy").mean())
    claims = table_1_claims(here, "Table 1, convolutions")
    assert len(claims) == 2 * 2 * 3 + 1 and {claim.source for claim in claims} == {"Table 1, convolutions"}
    assert all(claim.limits.network == "cnn-small" for claim in claims)


@pytest.mark.parametrize(
    ("dataset", "network", "clients"),
    [("glyphs", "cnn-small", 50), ("digits", "cnn-small", 50), ("svhn", "fedau-svhn", 50)],
)
def test_convolutions_are_the_papers_where_a_data_set_has_them(dataset, network, clients):
    scale = ex.convolutional(ex.scale_of(dataset))
    assert (scale.network, scale.clients, scale.patterns) == (network, clients, ("Bernoulli", "Markovian"))
    assert all(
        ratio == pytest.approx(10**0.5, rel=1e-4) for of in scale.grid.values() for ratio in np.divide(of[1:], of[:-1])
    )


def test_unknown_names_are_reported_with_the_nearest(gallery):
    with pytest.raises(FedboundsError, match=r"unknown figure of fedau 'figure-d\.5'; did you mean"):
        draw(gallery, "figure-d.5")
    with pytest.raises(FedboundsError, match="did you mean cifar-10"):
        Gallery("results", dataset="cifar10")


def test_the_command_draws_figures_of_both_papers(tmp_path):
    run = CliRunner().invoke
    done = run(
        commands.figure, ["fedau/figure-d.5.1", "--out", str(tmp_path / "f.png"), "--json"], catch_exceptions=False
    )
    assert [line.endswith((".png", ".csv", ".json")) for line in json.loads(done.output)["written"]] == [True] * 3
    out = ["--out", str(tmp_path / "toy.png"), "--results", str(tmp_path / "results")]
    done = run(commands.figure, ["arbitrary-participation/figure-b.2", *out], catch_exceptions=False)
    assert "toy.png" in done.output
    for name, message in (
        ("fedav", "unknown figure 'fedav'; did you mean fedau"),
        ("fedau/tabel-1", "unknown figure of fedau 'tabel-1'; did you mean table-1"),
    ):
        with pytest.raises(FedboundsError, match=message):
            run(commands.figure, [name, "--out", "x.png"], catch_exceptions=False)


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(gallery, name, tmp_path):
    picture = draw(gallery, name)
    assert picture.curves and all(p.exists() for p in picture.save(tmp_path / f"{name}.png"))
