"""The plateau rule, and that no claim about runs that still move has a verdict."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from fedbounds.bounds.errors import FedboundsError
from fedbounds.figures.charts.claims import (
    FigureClaim,
    Limits,
    correct,
    level,
    limits_of,
    movement_caption,
    write_claims,
)
from fedbounds.figures.charts.paper_gallery import SECONDS
from fedbounds.figures.charts.plateau import Plateau, find_plateau
from fedbounds.figures.charts.significance import Level, all_agree, any_agrees
from fedbounds.figures.charts.verdicts import COLUMNS, NOT_TESTED

ROUNDS = np.arange(0, 1001, 10)
SEEDS = 0.01 * np.linspace(-1, 1, 5)[:, None]  # standard error 0.0035


def found(curve, window=50, seeds=SEEDS):
    return find_plateau(ROUNDS, curve + seeds, window)


@pytest.mark.parametrize(
    "curve",
    [
        ROUNDS / 1000,
        -ROUNDS / 1000,
        np.log(ROUNDS + 1),
        1 - np.exp(-ROUNDS / 300),
        np.where(ROUNDS < 850, 0, 0.1),
        *(np.sin(2 * np.pi * ROUNDS / period) for period in (70, 100, 124, 200, 400)),
    ],
)
def test_what_rises_falls_steps_or_oscillates_is_not_at_its_plateau(curve):
    assert not found(curve).reached and not found(0.1 * curve).reached


@pytest.mark.parametrize(
    "curve", [0 * ROUNDS, np.where(ROUNDS < 700, 0, 1), 1 - np.exp(-ROUNDS / 100), 0.002 * ROUNDS / 200]
)
def test_what_was_level_over_the_last_fifth_is_at_its_plateau(curve):
    assert found(curve).reached and found(-curve).reached


def test_an_oscillation_within_the_window_is_averaged():
    assert found(np.sin(2 * np.pi * (ROUNDS + 5) / 100), window=100).reached


def test_noise_hides_no_rise_and_makes_none():
    rng = np.random.default_rng(0)
    flat = [found(0, 200, rng.normal(0, 0.05, (5, 1)) + rng.normal(0, 0.05, (5, 101))).reached for _ in range(100)]
    rises = [found(ROUNDS / 2000, 200, rng.normal(0, 0.05, (5, 101))).reached for _ in range(100)]
    assert np.mean(flat) > 0.9 and not any(rises)


def test_noise_alone_seldom_counts_as_movement_and_a_movement_of_the_noise_is_refused():
    """Seeds differ by nothing but the noise of rounds; a rule of one standard error refuses half of the level ones."""
    rng = np.random.default_rng(0)

    def accepted(movement, noise):
        curve = 1 + movement * (ROUNDS - 1000) / 200  # over the last fifth
        return np.mean([found(curve, 100, rng.normal(0, noise, (5, 101))).reached for _ in range(200)])

    assert accepted(0, 0.01) > 0.8 and accepted(0.015, 0.01) < 0.05 and accepted(0.05, 0.03) < 0.05
    assert accepted(0, 0.1) < 0.8  # a movement of 5 % would not be found


@pytest.mark.parametrize(
    ("changes", "shares", "reached"),
    [
        ([-0.016, 0.0, 0.016, 0.024, 0.036], False, True),  # 0.012 +- 0.009
        ([-0.04, 0.0, 0.04, 0.06, 0.09], False, False),  # 0.03 +- 0.023: the interval is too wide
        ([0.004, 0.005, 0.006, 0.007, 0.008], False, False),  # it moves, though by little
        ([-0.016, 0.0, 0.016, 0.024, 0.036], True, False),  # 5 % of the smaller share, 0.1, are 0.005
    ],
)
def test_the_interval_of_the_movement_decides(changes, shares, reached):
    values = 0.9 + np.outer(changes, ROUNDS > 900)
    low, high = stats.ttest_1samp(changes, 0).confidence_interval(0.95)
    unmoved = stats.ttest_1samp(changes, 0).pvalue > 0.025  # two changes are tested
    border = 0.05 * min(values[:, -1].mean(), 1 - values[:, -1].mean() if shares else 1)
    got = find_plateau(ROUNDS, values, 50, shares=shares)
    assert got.moved == pytest.approx((low + high) / 2) and got.moved > got.error
    assert got.reached == got.still == (unmoved and high <= border) == reached
    flipped = find_plateau(ROUNDS, 1 - values, 50, shares=shares)
    assert flipped.reached == reached or not shares


def test_of_many_level_curves_few_are_said_to_move_and_no_large_movement_passes():
    rng = np.random.default_rng(0)

    def share(movement=0.0, curves=1000):
        trend = 1 + movement * (ROUNDS - 1000) / 200
        return np.mean([find_plateau(ROUNDS, trend + rng.normal(0, 0.02, (8, 101)), 100).reached
                        for _ in range(curves)])  # fmt: skip

    assert share() > 0.95 and share(0.05, 200) == 0


def test_a_run_has_one_plateau_whatever_it_is_compared_with():
    changes = np.array([0.003, 0.006, 0.0075, 0.009, 0.012])
    runs_of = [SimpleNamespace(arrays={"round": ROUNDS, "loss": 0.9 + np.outer(changes, ROUNDS > 900)})]
    alone, other = (limits_of("", (), dict.fromkeys(labels, runs_of), 50, "loss") for labels in ("a", "abcdefgh"))
    assert alone.plateaus["a"] == other.plateaus["a"]


def test_seeds_that_diverged_are_left_out_and_one_seed_shows_no_plateau():
    values = 0.5 + 0.002 * ROUNDS / 200 + SEEDS
    values[0, 90:] = np.nan
    assert find_plateau(ROUNDS, values, 50, shares=True).reached
    rising = values + ROUNDS / 2000
    assert not find_plateau(ROUNDS, rising, 50, shares=True).reached
    assert find_plateau(ROUNDS, rising, 50).reached  # a loss that is infinite
    assert not find_plateau(ROUNDS, values[1:2], 50).reached
    assert find_plateau(ROUNDS, np.full((2, 101), np.nan), 50).reached  # nothing moves
    assert not find_plateau(ROUNDS[:1], values[:, :1], 50).reached
    early = SEEDS + ROUNDS / 1000
    early[:, :40] = np.nan  # before the last half: no run that ends so has diverged
    assert find_plateau(ROUNDS, early, 50) == find_plateau(ROUNDS, SEEDS + ROUNDS / 1000, 50)


@pytest.mark.parametrize("time", [150, 250, 400])
def test_the_rounds_needed_are_those_of_an_exponential(time):
    short = found(np.exp(-ROUNDS / time), seeds=0.1 * SEEDS)
    lengths = range(1000, 10_000, 20)
    runs_of = (np.arange(0, length + 1, 10) for length in lengths)
    reached = (find_plateau(x, np.exp(-x / time) + 0.1 * SEEDS, 50).reached for x in runs_of)
    exact = next(length for length, yes in zip(lengths, reached, strict=True) if yes)
    assert short.falls and short.needed == pytest.approx(max(exact, 1250), rel=0.05)


def test_a_movement_that_does_not_fall_has_no_extrapolation():
    rising = found(ROUNDS / 1000)
    assert rising.needed == 1250 and not rising.falls  # the last fifth of 1,250 rounds begins at round 1,000
    words = Limits("", {"a": rising, "b": replace(rising, needed=5000, falls=True)}).words
    assert words.endswith(
        "(a plateau needs at least about 5,000 rounds; only a lower limit, as the movement does not fall yet)"
    )


def runs(curve, seconds=36.0):
    values = curve + SEEDS
    arrays = {"round": ROUNDS, "loss": values, "seed": np.arange(5), SECONDS: np.full(5, seconds / 5)}
    return [SimpleNamespace(arrays=arrays)]


def claim_on(traces, window=50):
    levels = {label: level(some_, window, "loss", label) for label, some_ in traces.items()}
    return FigureClaim("Figure 1", "a below b", "", levels["a"].below(levels["b"]))


def test_a_claim_has_a_verdict_only_if_every_compared_run_is_at_its_plateau():
    traces = {"a": runs(0 * ROUNDS), "b": runs(1 + 0 * ROUNDS), "c": runs(2 - ROUNDS / 1000)}
    claim = claim_on(traces)
    (tested,) = limits_of("cnn", ["cnn"], traces, 50, "loss").apply([claim])
    assert (tested.verdict, tested.note, tested.limits.seconds) == ("reproduced", "", {"a": 36.0, "b": 36.0})
    (small,) = limits_of("mlp", ["cnn"], traces, 50, "loss").apply([claim])
    assert (small.verdict, small.note) == ("reproduced", "network mlp is smaller than the paper's")
    for curve in (ROUNDS / 1000, np.sin(ROUNDS / 30), np.log(ROUNDS + 1)):
        for way in (1, -1):
            moving = traces | {"b": runs(1 + way * curve)}
            (untested,) = limits_of("cnn", ["cnn"], moving, 50, "loss").apply([claim_on(moving)])
            assert (untested.verdict, untested.agrees) == (NOT_TESTED, None)
            assert (
                untested.note.startswith("still moving after 1,000 rounds: b (a plateau needs ")
                and "reproduced" not in untested.note
            )


def test_what_diverged_decides_though_other_runs_still_move(tmp_path):
    lost = runs(1 + 0 * ROUNDS)
    lost[0].arrays["loss"][:, 60:] = np.nan
    traces = {"a": runs(2 - ROUNDS / 1000), "b": lost}
    (claim,) = limits_of("cnn", ["cnn"], traces, 50, "loss").apply([claim_on(traces)])
    assert (claim.verdict, claim.note) == ("reproduced", "")
    (row,) = csv.DictReader(write_claims([claim], tmp_path / "claims.csv").read_text().splitlines())
    assert (row["seeds"], row["plateau"], row["p"], row["core seconds"]) == ("5", "yes", "0.0079", "36")
    assert row["comparisons"].startswith("b: not finite in 5 of 5 seeds, the other in 0 of 5, p 0.0079")
    lost[0].arrays["loss"][:2] = 1.0
    (claim,) = limits_of("cnn", ["cnn"], traces, 50, "loss").apply([claim_on(traces)])
    assert (claim.verdict, claim.note) == ("inconclusive", "about 10 seeds would tell")


def test_the_difference_of_compared_runs_must_be_at_its_plateau():
    """Seeds that differ much hide the movement of a mean, not that of its difference from another on the same seeds."""
    falling = 0.48 + 0.05 * np.exp(-(ROUNDS - 1000) / 1000)  # below 0.5 in the limit
    traces = {"a": runs(falling), "b": runs(0.5 + 0 * ROUNDS)}
    for n, one in enumerate(traces.values()):
        noise = 0.002 * np.random.default_rng(n).standard_normal((5, 101))
        one[0].arrays["loss"] = one[0].arrays["loss"] + 9 * SEEDS + noise
    limits = limits_of("cnn", ["cnn"], traces, 50, "loss")
    assert not limits.moving
    (claim,) = limits.apply([claim_on(traces)])
    assert claim.here.agrees is False and claim.verdict == NOT_TESTED
    assert claim.note.startswith("still moving after 1,000 rounds: b - a (a plateau needs at least about ")
    assert claim.note.endswith(" core hours in all)")
    traces["a"][0].arrays["loss"] -= falling - 0.53
    (level_,) = limits_of("cnn", ["cnn"], traces, 50, "loss").apply([claim_on(traces)])
    assert level_.verdict == "not reproduced"


def test_records_at_other_rounds_still_show_that_a_difference_moves():
    rng = np.random.default_rng(0)  # seeds far apart; the first run is higher by a gap that grows
    traces = {k: runs(0.5 + gap + 9 * SEEDS + 0.001 * rng.standard_normal((5, 101)))
              for k, gap in (("a", 0.02 + 0.05 * ROUNDS / 1000), ("b", 0))}  # fmt: skip
    arrays = traces["b"][0].arrays
    fewer = {**arrays, "round": ROUNDS[::4] + 0.0, "loss": arrays["loss"][:, ::4]}
    for other in (arrays, fewer, {**fewer, "round": fewer["round"] * 1.0001}):
        both = {"a": traces["a"], "b": [SimpleNamespace(arrays=other)]}
        (claim,) = limits_of("cnn", ["cnn"], both, 50, "loss").apply([claim_on(both)])
        assert claim.here.agrees is False and claim.verdict == NOT_TESTED and {*claim.limits.moving} == {"b - a"}


@pytest.mark.parametrize(("size", "reached"), [(0.5, True), (2.0, False)])
def test_a_difference_may_not_move_so_that_it_could_be_reversed(size, reached):
    """Its interval must exclude a movement as large as the difference, unless equality within a tolerance is asked."""
    apart = 20 * np.linspace(-1, 1, 5)[:, None]
    changes = size * np.outer([1, -0.5, 1, -0.5, 1], ROUNDS > 900)
    traces = {"a": runs(1.5 + apart + changes), "b": runs(0.5 + apart + 0 * ROUNDS)}
    limits = limits_of("cnn", ["cnn"], traces, 50, "loss")
    b = Level.from_values(apart[:, 0], "b")
    test = Level.from_values(apart[:, 0] + [1.0, 1.9, 0.1, 1.6, 0.4], "a").above(b)
    assert 0.04 < test.p < 0.05 and not limits.moving
    assert limits._difference(test).reached == reached
    assert limits._difference(replace(test, tolerance="within 0.1")).reached


def test_a_setting_may_not_be_called_like_a_difference():
    with pytest.raises(FedboundsError, match="'b - c' has ' - ', which differences have: give the setting another"):
        limits_of("", (), {"a": runs(0 * ROUNDS), "b - c": runs(ROUNDS / 1000)}, 50, "loss")


@pytest.mark.parametrize(("metric", "share"), [("test_accuracy", True), ("test_f1", True), ("train_loss", False)])
def test_of_shares_the_smaller_of_both_sides_counts(metric, share):
    """A movement of 0.02 is 2 % of 0.97 and two thirds of the 0.03 that are missing."""
    changes = np.array([0.016, 0.019, 0.02, 0.021, 0.024]) * np.array([1, -1, 1, -1, 1])
    values = 0.97 + np.outer(changes, ROUNDS > 900)
    runs_of = {"a": [SimpleNamespace(arrays={"round": ROUNDS, metric: values})]}
    plateau = limits_of("", (), runs_of, 50, metric).plateaus["a"]
    assert plateau == find_plateau(ROUNDS, values, 50, shares=share) and plateau.still == (not share)


def test_levels_are_of_the_last_window_and_of_scores_what_they_lack():
    runs_of = [SimpleNamespace(arrays={"round": ROUNDS, "test_f1": np.tile(ROUNDS / 1000, (2, 1)), "seed": [0, 1]})]
    assert level(runs_of, 50, "test_f1").mean == pytest.approx(1 - np.mean([0.96, 0.97, 0.98, 0.99, 1.0]))


def test_a_difference_of_accuracies_needs_a_plateau_though_a_seed_diverged():
    """A diverged seed counts as chance there, so that a t-test decides."""
    rng = np.random.default_rng(0)
    rising = 0.6 + 0.05 * ROUNDS / 1000 + 9 * SEEDS + 0.001 * rng.standard_normal((5, 101))
    level_ = 0.6 + 9 * SEEDS + 0.001 * rng.standard_normal((5, 101))
    rising[0, 60:] = np.nan
    traces = {"a": [SimpleNamespace(arrays={"round": ROUNDS, "test_accuracy": rising})],
              "b": [SimpleNamespace(arrays={"round": ROUNDS, "test_accuracy": level_})]}  # fmt: skip
    gaps = np.array([0.03, 0.05, 0.05, 0.05, 0.05])
    above = Level.from_values(level_[:, -1] + gaps, "a").above(Level.from_values(level_[:, -1], "b"))
    claim = FigureClaim("Figure 1", "a above b", "", above)
    limits = limits_of("cnn", ["cnn"], traces, 50, "test_accuracy")
    assert not limits.moving
    (tested,) = limits.apply([claim])
    assert tested.verdict == NOT_TESTED and tested.note.startswith("still moving after 1,000 rounds: a - b ")


STATES = {"low": 0.0, "middle": 1.0, "high": 2.0}


def best_of(combine, moving, mine="middle", means=None):
    """The claim that a method is above the others, of which some still move."""
    traces = {name: runs(mean + (name in moving) * (ROUNDS / 1000 - 1)) for name, mean in STATES.items()}
    levels = {name: level(some_, 50, "loss", name) for name, some_ in traces.items()}
    part = combine(levels[mine].above(levels[name]) for name in STATES if name != mine)
    found = part if means is None else replace(part, by_means=means)
    claims = limits_of("", (), traces, 50, "loss").apply([FigureClaim("Figure 1", "", "", found)])
    return correct(claims)[0]


@pytest.mark.parametrize(
    ("combine", "moving", "mine", "verdict"),
    [
        (all_agree, "low", "middle", "not reproduced"),  # it is below `high`
        (all_agree, "high", "middle", NOT_TESTED),  # it is above `low`, which alone does not decide
        (all_agree, "middle", "middle", NOT_TESTED),
        (all_agree, "low", "high", NOT_TESTED),
        (any_agrees, "high", "middle", "reproduced"),  # it is above `low`
        (any_agrees, "low", "middle", NOT_TESTED),
        (any_agrees, "high", "low", NOT_TESTED),
        (any_agrees, "", "low", "not reproduced"),
        (all_agree, "", "high", "reproduced"),
    ],
)
def test_a_plateau_is_asked_only_of_the_runs_that_decide(combine, moving, mine, verdict, tmp_path):
    claim = best_of(combine, moving, mine)
    assert claim.verdict == verdict and len(claim.family) == 2  # all comparisons are corrected
    (row,) = csv.DictReader(write_claims([claim], tmp_path / "claims.csv").read_text().splitlines())
    assert (row["plateau"] == "yes") == (verdict != NOT_TESTED)
    if moving and verdict != NOT_TESTED:
        assert claim.left_out == (moving,) and moving not in claim.limits.plateaus and moving not in row["comparisons"]
        assert row["note"] == f"not needed for the verdict, still moving: {moving}"
    else:
        assert not claim.left_out
    if verdict == NOT_TESTED:
        assert all(name in row["comparisons"] for name in STATES)


def test_means_that_still_move_do_not_decide():
    assert [best_of(all_agree, moving, means=True).verdict for moving in ("", "low", "high")] == [
        "reproduced", "not reproduced", NOT_TESTED
    ]  # fmt: skip
    assert best_of(any_agrees, "high", means=False).verdict == NOT_TESTED


def test_a_claim_that_names_no_run_needs_all_of_them():
    limits = limits_of("cnn", ["cnn"], {"a": runs(0 * ROUNDS), "c": runs(ROUNDS / 1000)}, 50, "loss")
    assert [one.verdict for one in limits.apply([FigureClaim("", "", "", True)])] == [NOT_TESTED]


def test_the_opposite_must_be_shown_seed_by_seed():
    one, other = (Level.from_values(mean + SEEDS[:, 0], name) for mean, name in ((1.0, "a"), (2.0, "b")))
    unpaired = replace(one, values=()).above(replace(other, values=()))
    claim = FigureClaim("", "", "", unpaired, limits=Limits())
    assert (claim.verdict, claim.note) == ("inconclusive", "the opposite is not shown seed by seed")
    noisy = Level.from_values(other.values + 1e-3 * np.arange(5) ** 2, "b")
    assert FigureClaim("", "", "", one.above(noisy), limits=Limits()).verdict == "not reproduced"


def test_the_cost_to_the_plateau_is_that_of_every_run():
    plateaus = {"a": Plateau(100, 0.2, 0.1, 400), "b": Plateau(100, 0.0, 0.1, 100)}
    limits = Limits("", plateaus, {"a": 900, "b": 900})
    assert limits.hours == pytest.approx((900 * 4 + 900) / 3600) and limits.needed == 400
    assert np.isnan(Limits("", plateaus, {"a": 900}).hours)
    worse = limits | Limits("", {"b": Plateau(100, 0.2, 0.1, 700)}, {"b": 100})
    assert set(worse.moving) == {"a", "b"} and worse.needed == 700 and worse.seconds["b"] == 1000
    slow = {"a": runs(1 - np.exp(-ROUNDS / 400))}
    one, five = (limits_of("", (), slow, 50 * (steps or 1), "loss", steps) for steps in (0, 5))
    assert five.rounds == 5 * one.rounds and five.needed == pytest.approx(5 * one.needed)
    assert "after 5,000 iterations: a (a plateau needs at least about " in five.words


def test_captions_name_what_still_moves():
    traces = {"a": runs(0 * ROUNDS), "b": runs(1 - np.exp(-ROUNDS / 400))}
    found = movement_caption(traces, 50, ["loss"])
    assert found.startswith(
        " Not tested at this scale: loss still moving after 1,000 rounds: b (a plateau needs at least about "
    )
    assert found.endswith(" core hours in all).") and not movement_caption({"a": traces["a"]}, 50, ["loss"])


def test_the_table_has_rounds_plateau_seeds_power_and_cost(tmp_path):
    traces = {"a": runs(0 * ROUNDS), "b": runs(1 + 1e-3 * np.sin(ROUNDS))}
    traces["b"][0].arrays["loss"] = traces["b"][0].arrays["loss"] * np.linspace(0.9, 1.1, 5)[:, None]
    claims = limits_of("cnn", ["cnn"], traces, 50, "loss").apply([claim_on(traces)])
    (row,) = csv.DictReader(write_claims(claims, tmp_path / "claims.csv").read_text().splitlines())
    assert tuple(row) == COLUMNS and row["verdict"] == "reproduced"
    assert [row[k] for k in ("rounds", "plateau", "rounds needed", "seeds", "core seconds")] == [
        "1000", "yes", "1000", "5", "72"
    ]  # fmt: skip
    assert float(row["p"]) < 1e-4 and 0.05 < float(row["detectable"]) < 0.5
