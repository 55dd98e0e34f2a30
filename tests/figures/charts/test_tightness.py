"""Bound, worst case and measured on one axis; the atlas of all papers."""

import csv
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedbounds.bounds.comparison.worst_ratios import worst_ratio
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.cli.figures import figure
from fedbounds.figures.charts import tightness as atlas
from fedbounds.figures.charts.tightness import Tight, count, solve_worst_case, tight_panels, tightness
from fedbounds.figures.papers.arbitrary_participation import tightness as in_turn
from fedbounds.figures.papers.fed_norm_sgda import tightness as games
from fedbounds.figures.papers.fedau import tightness as coins
from fedbounds.figures.papers.fedmrn import tightness as masks
from fedbounds.figures.papers.tdcd import tightness as silos

KEY = "arbitrary-participation/theorem-3.1"


@pytest.mark.parametrize(
    "at",
    [
        partial(in_turn.evaluate_setting, clients=1, local_steps=1, rounds=4, noise=0.0, heterogeneity=0.0),
        partial(in_turn.evaluate_setting, local_steps=1, rounds=8),
        partial(coins.evaluate_setting, local_steps=1, rounds=8),
        partial(coins.evaluate_setting, clients=1, noise=2.0, rate=0.7),
        partial(masks.evaluate_setting, local_steps=1, iterations=9),
        partial(masks.evaluate_setting, clients=1, error=1.0),
        partial(games.evaluate_setting, rounds=50, noise=0.0),
        partial(games.evaluate_setting, condition=2.0, local_steps=1, rounds=50),
        partial(silos.evaluate_setting, clients=2, heterogeneity=2.0, noise=0.0),
        partial(silos.evaluate_setting, noise=2.0, local_steps=4, rounds=5),
        partial(silos.evaluate_setting, silos=1, share=0.5, rounds=8),
    ],
)
def test_no_run_exceeds_the_worst_case_at_its_constants_nor_that_the_bound(at):
    here = at()
    assert here.valid and 0 < here.measured <= here.value * (1 + 1e-9) <= here.bound


def test_what_is_attained_is_known_to_be():
    alone = in_turn.evaluate_setting(clients=1, local_steps=1, rounds=4, noise=0.0, heterogeneity=0.0)
    assert (
        alone.attained and not in_turn.evaluate_setting(clients=1, local_steps=1, rounds=4, heterogeneity=0.0).attained
    )
    assert not in_turn.evaluate_setting(
        clients=1, local_steps=1, rounds=16, noise=0.0, heterogeneity=0.0
    ).attained  # in blocks


@pytest.fixture(scope="module")
def picture():
    worst = [
        solve_worst_case("generalized-fedavg", rounds=2, local_step=1 / 12, server_multiplier=6.0),
        solve_worst_case("generalized-fedavg", rounds=2, local_step=1 / 12, server_multiplier=6.0, noise=0.5),
        "too hard",
    ]
    settings = [
        Tight(2.6, k < 2, measured, one, frozenset({"exact"}))
        for k, (one, measured) in enumerate(zip(worst, (0.5, 0.5, 1e-9), strict=True))
    ]
    return tightness(
        KEY, "sharp", {"noise": dict(zip((0.1, 0.5, 2.0), settings, strict=True))}, title="A", caption="B."
    )


def test_upper_bounds_are_hollow_and_say_so(picture):
    shown = {curve.label: curve for curve in picture.curves}
    assert shown["noise: worst case, attained"].x.tolist() == [0.1]
    assert shown["noise: upper bound of the worst case"].x.tolist() == [0.5, 2.0]
    assert np.isnan(shown["noise: upper bound of the worst case"].y[1])
    faces = {line.get_markerfacecolor() for line in picture.figure.axes[0].lines if line.get_marker() == "o"}
    assert len(faces) == 2 and "white" in faces
    for words in ("hollow: the worst case is at most this", "second-moment relaxation", "At 1 settings", "exact"):
        assert words in picture.caption


def test_where_a_condition_fails_the_bound_is_dotted(picture):
    solid = [
        line for line in picture.figure.axes[0].lines if line.get_linestyle() == "-" and line.get_color() == "#000000"
    ]
    assert np.isnan(solid[0].get_ydata()).tolist() == [False, False, True]
    assert "Dotted: a condition fails (1 settings)" in picture.caption


def test_what_lies_far_below_is_in_the_data_only(picture):
    assert picture.figure.axes[0].get_ylim()[0] > 1e-9 and "Below the picture, but in its data: 1" in picture.caption
    assert min(curve.y.min() for curve in picture.curves if curve.label == "noise: measured") == 1e-9


def test_the_atlas_has_a_row_for_every_default_form_that_the_adversary_could_try():
    rows = {one.key: atlas.largest_ratios(one, with_worst_cases=False) for one in papers()}
    theorem = load(KEY)
    row = worst_ratio(theorem, theorem.form())
    assert row is not None
    assert [one.found for one in rows["arbitrary-participation"] if one.result.key == KEY] == [row["ratio"]]
    assert all(some and all(0 <= one.found <= 1 + 1e-6 for one in some) for some in rows.values())


def test_the_committed_atlas_shows_what_the_committed_tables_say():
    drawn = Path(__file__).parents[3] / "docs" / "images" / "tightness.csv"
    with drawn.open(newline="") as lines:
        shown = {row["curve"]: row["x"] for row in csv.DictReader(lines) if row["curve"].endswith(": largest found")}
    rows = [row for one in papers() for row in atlas.largest_ratios(one, with_worst_cases=False)]
    assert shown == {f"{row.result.key}: largest found": f"{row.found:.6g}" for row in rows}, (
        "fedbounds figure tightness --out docs/images/tightness.png"
    )


def test_the_atlas_is_drawn_with_ranges_where_there_are_worst_cases(picture):
    theorem, lemma = load(KEY), load("arbitrary-participation/lemma-c.1")
    exact = Tight(2.0, True, 0.1, solve_worst_case("generalized-fedavg", rounds=1, local_step=1 / 12), frozenset())
    drawn = atlas.draw_atlas(
        {"arbitrary-participation": [atlas.LargestRatio(theorem, 0.4, [exact]), atlas.LargestRatio(lemma, 1e-7)]}
    )
    shown = {curve.label: curve for curve in drawn.curves}
    assert shown[f"{KEY}: worst case"].x.tolist() == [exact.value / 2] and shown[
        f"{KEY}: largest found"
    ].x.tolist() == [0.4]
    assert shown[f"{KEY}: worst case, attained"].x.tolist() == [exact.value / 2]
    assert shown[f"{KEY}: measured"].x.tolist() == [0.05]
    assert shown["arbitrary-participation/lemma-c.1: largest found"].x.tolist() == [1e-7]
    markers = [line.get_marker() for line in drawn.figure.axes[0].lines]
    assert markers.count("<") == 1  # of the lemma
    below = replace(exact, measured=1e-6)
    again = atlas.draw_atlas({"arbitrary-participation": [atlas.LargestRatio(theorem, 0.4, [exact, below])]})
    assert [line.get_marker() for line in again.figure.axes[0].lines].count("<") == 1
    assert again.figure.axes[0].get_xlabel() == "left side / bound"


def test_an_unknown_figure_is_reported_of_the_atlas(tmp_path):
    found = CliRunner().invoke(figure, ["tightnes", "--out", str(tmp_path / "f.png")])
    assert "tightness" in str(found.exception)


@pytest.mark.parametrize("room", [in_turn, coins, masks, games, silos])
def test_every_setting_of_a_paper_is_one_that_its_function_takes(room):
    told = []
    evaluate = signature(room.evaluate_setting)
    seen = tight_panels(lambda **setting: evaluate.bind(**setting), room.SETTINGS, lambda *done: told.append(done))
    assert told == [(k + 1, count(room.SETTINGS)) for k in range(count(room.SETTINGS))]
    assert {name: list(some) for name, some in seen.items()} == {n: list(s) for n, s in room.SETTINGS.items()}
    assert all(v in seen[name][v].arguments.values() for name, some in room.SETTINGS.items() for v in some)


def test_the_atlas_counts_the_settings_of_all_papers(monkeypatch):
    told = []
    monkeypatch.setattr(atlas, "tight_panels", lambda at, settings, progress: progress(count(settings), 0) or {})
    atlas.atlas(progress=lambda *done: told.append(done))
    sizes = [count(room.SETTINGS) for room in (in_turn, coins, games, masks, silos)]
    assert told[-1] == (sum(sizes), sum(sizes)) and len(told) == 5
