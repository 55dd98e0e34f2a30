"""The figures of the paper package: what they draw is what the bounds say."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import correct
from fedbounds.figures.charts.paper_gallery import draw_by_name
from fedbounds.figures.charts.rate import exponents
from fedbounds.figures.charts.significance import Level, decide
from fedbounds.figures.papers.tdcd import claims as said
from fedbounds.figures.papers.tdcd import experiments as ex
from fedbounds.figures.papers.tdcd import runs
from fedbounds.figures.papers.tdcd.bounds import FAMILY, LATENCIES, PROBLEM, TIME, describe_minimum, family, wall_clock
from fedbounds.figures.papers.tdcd.claims import all_trained_claims, bound_claims
from fedbounds.figures.papers.tdcd.drawing import FIGURES, TRAINED, Gallery, describe_movement, score

draw = partial(draw_by_name, "tdcd", FIGURES)

EXACT = ("theorem-1", "misread", "rate", "ratio")  # runs by exact moments


def test_in_a_given_time_small_steps_want_company_and_the_best_ones_want_none():
    curves = {curve.label: curve for curve in wall_clock(points=9, most=300).curves}
    for latency in LATENCIES:
        given = curves[f"link latency {latency:g}: step size 0.0001"]
        best = curves[f"link latency {latency:g}: best step size for each"]
        assert given.x[np.nanargmin(given.y)] > 20 and np.nanargmin(best.y) == 0
        assert np.all(np.diff(best.y) > 0)
        others = [c.y for label, c in curves.items() if label.startswith(f"link latency {latency:g}:")]
        assert np.all(best.y <= np.nanmin(others, axis=0) * (1 + 1e-9))
    one = evaluate(load("tdcd/wall-clock"), {**PROBLEM, **TIME, "tcomm": 100, "eta": 1e-4, "Q": 1})
    assert curves["link latency 100: step size 0.0001"].y[0] == float(one.value)
    assert describe_minimum(given).endswith(f"Q = {given.x[np.nanargmin(given.y)]:g}")


def test_the_forms_are_drawn_in_their_order_and_dotted_where_they_bound_nothing():
    picture = family(points=12)
    for Q in (1, 10):
        curves = [next(c for c in picture.curves if c.label == f"Q = {Q}: {name}") for name in FAMILY]
        a_priori, printed, nineteen, b1, b2, b3, apart = curves
        inside = printed.valid
        assert inside is not None and 0 < inside.sum() < len(inside) and np.array_equal(inside, printed.x <= 1)
        chain = [c.y[inside] for c in (b3, b2, b1, printed, a_priori)]
        assert all(np.all(low <= high * (1 + 1e-12)) for low, high in pairwise(chain))
        assert np.all(np.maximum(nineteen.y, apart.y)[inside] <= printed.y[inside])
        assert b3.valid is not None and b3.valid.all()


pytestmark = pytest.mark.usefixtures("same_sources")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return Gallery(tmp_path_factory.mktemp("results"), scale=ex.SMOKE)


def test_the_bound_agrees_with_what_is_said_of_small_steps_and_not_of_the_best_ones(gallery: Gallery) -> None:
    found = {claim.text: claim for claim in bound_claims(gallery)}
    agreed = {text: claim.agrees for text, claim in found.items()}
    assert list(agreed.values()) == [True, False, True, True, False]
    assert "1, 1 for latencies" in found["they do so at the step size that is best for each number of them"].measured


@pytest.mark.parametrize(
    "name",  # the three against time are alike
    [pytest.param(n, marks=pytest.mark.long) if n in ("figure-4", "figure-5") else n for n in TRAINED],
)
def test_every_experiment_is_drawn_from_runs_of_equal_length(gallery: Gallery, name: str) -> None:
    picture = draw(gallery, name)
    by_time = name in ("figure-3", "figure-4", "figure-5")
    compared = ex.SMOKE.numbers_of_silos if name == "figure-9" else ex.SMOKE.local_steps
    levels = [curve for curve in picture.curves if "best gain" in curve.label]
    assert len(picture.curves) == (2 if name == "figure-9" else 4) * len(compared) + 4 * by_time
    assert ("against time" in picture.caption) == by_time
    if by_time:
        of = {"figure-3": ex.IMAGES, "figure-4": ex.SEQUENCES, "figure-5": ex.VIEWS}[name]
        task = gallery.scale.task(of)
        for k, clients in enumerate(task.clients):
            chosen = said.common_level(gallery.over_steps(of, clients, tuning=True), task.metric)
            assert {*levels[2 * k].y, *levels[2 * k + 1].y} == {chosen}
    ends = {curve.label: curve.x[-1] for curve in picture.curves if curve not in levels}
    for label, end in ends.items():
        Q = int(label.rpartition("Q = ")[2]) if "Q = " in label else ex.SMOKE.shown_steps
        latency = float(label.partition("latency ")[2].partition(":")[0]) if by_time else 0
        assert end == 16 // Q * (3 * latency + Q)
    assert picture.provenance["learning rates"]


def test_times_are_read_from_a_record_of_every_early_round(tmp_path: Path) -> None:
    sparse = Gallery(tmp_path, scale=replace(ex.SMOKE, records=2))
    metric = sparse.scale.task(ex.IMAGES).metric
    for Q, early in sparse.over_steps(ex.IMAGES, 2, early=True).items():
        whole = sparse.over_steps(ex.IMAGES, 2)[Q]
        rounds, first = whole[0].arrays["round"], int(whole[0].arrays["round"][1])
        for one, other in zip(early, whole, strict=True):
            assert one.arrays["round"].tolist() == [*range(first), *rounds[1:]]
            assert np.array_equal(one.arrays[metric][:, first:], other.arrays[metric][:, 1:])  # the same run


def test_other_seeds_choose_learning_rates_than_are_judged() -> None:
    judged, tuning = (ex.sweep(ex.SMOKE, ex.IMAGES, 3, 2, (0.1, 0.2), tuning=some) for some in (False, True))
    seeds, others = ({seed for task in of.tasks for seed in task["seeds"]} for of in (judged, tuning))
    assert len(judged.tasks) == 2 and seeds == {*range(ex.SMOKE.seeds)} and not seeds & others
    for task in (*judged.tasks, *tuning.tasks):
        assert task["rounds"] * task["algorithm"]["local_steps"] == 16
        assert task["problem"]["partition_seed"] == task["seeds"][0]
    with pytest.raises(FedboundsError, match="Q = 5 does not divide the 16 iterations"):
        ex.sweep(ex.SMOKE, ex.IMAGES, 3, 5, (0.1,))


def test_every_scale_has_whole_rounds_and_its_winner_is_the_least_loss(gallery: Gallery) -> None:
    for scale in (*ex.SCALES.values(), ex.SMOKE):
        assert all(task.iterations % Q == 0 for task in scale.tasks.values() for Q in scale.local_steps)
        assert ex.SEQUENCES in scale.tasks and scale.shown_steps in scale.local_steps
    found = gallery.tune(ex.IMAGES, 2, 2, 4)
    assert found.winner["step size"] == min(found.tried, key=lambda one: one[1])[0]["step size"]


def test_grids_of_products_are_divided_by_the_local_steps() -> None:
    assert ex.HALVES.per_round and ex.HALVES.grid(10) == (0.03, 0.1, 0.3) and ex.HALVES.grid(1) == (0.3, 1.0, 3.0)
    assert not ex.ORIGINAL[ex.IMAGES].per_round and ex.ORIGINAL[ex.IMAGES].grid(10) == (1e-5, 3e-5, 1e-4)


def test_a_learning_rate_whose_loss_rises_far_counts_as_diverged() -> None:
    calm, wild = ([1.0, peak, 0.5, 0.5, 0.1] for peak in (9.9, 10.1))
    assert score(ramp(calm, calm, metric="train_loss"), 2) == pytest.approx(0.1 + 0.4 + 1.0)
    assert score(ramp(calm, wild, metric="train_loss"), 2) == np.inf
    fitted = ([1.0, 0.5, end, end, end] for end in (0.009, 0.001, 0.011))
    assert [score(ramp(one, metric="train_loss"), 2) for one in fitted] == pytest.approx([0.01, 0.01, 0.011])


def test_a_learning_rate_whose_loss_still_falls_comes_after_one_at_its_plateau() -> None:
    level, falling = ([[1.0, *(start + fall * k for k in range(10))]] for start, fall in ((0.5, 0.0), (0.5, -0.04)))
    lower, higher = (score(ramp(*rows, metric="train_loss"), 2) for rows in (falling, level))
    assert falling[0][-1] < level[0][-1] and lower > 1 > higher == 0.5


def ramp(*rows: list[float], metric: str = "metric") -> list[Trace]:
    """A run whose metric has these values at rounds 0, 2, 4, ..."""
    arrays = {"round": 2 * np.arange(len(rows[0])), "seed": np.arange(len(rows)), metric: np.array(rows)}
    dims = {"round": ("round",), "seed": ("seed",), metric: ("seed", "round")}
    return [Trace(arrays, dims, {}, "by hand", ("done",) * len(rows))]


def test_times_and_levels_are_read_between_records() -> None:
    runs = ramp([9.0, 0.0, 1.0, 0.5, 3.0], [0.0, 0.5, 0.5, 0.5, 0.5])  # what is there before training does not count
    assert said.time_to(runs, "metric", 0.5, 10.0).tolist() == [30.0, 20.0]
    assert said.time_to(runs, "metric", 2.0, 1.0).tolist() == [7.0, np.inf]  # the best so far is 1; the second never
    assert said.time_to(ramp([0.0, 2.0, 2.0]), "metric", 0.5, 10.0).tolist() == [5.0]  # before the first record
    assert said.metric_at_time(runs, "metric", 7.0).tolist() == [1.75, 0.5]
    assert said.final_metric(runs, "metric").tolist() == [3.0, 0.5]
    level = said.common_level({1: runs, 5: ramp([0.5, 2.0, 2.0, 2.0, 2.0])}, "metric")
    assert level == pytest.approx(9.5 / 3 + 0.8 * (2 - 9.5 / 3))


def trained(bad: Mapping[tuple[int, int], int]) -> dict[int, dict[int, list[Trace]]]:
    """Level runs of Q = 1 and 10 and K = 4 and 8, of which the first `bad[K, Q]` seeds diverge."""
    rng, found = np.random.default_rng(0), dict[int, dict[int, list[Trace]]]()
    for K in (4, 8):
        for Q in (1, 10):
            loss, accuracy = (level + rng.normal(0, 1e-3, (10, 101)) for level in (0.5, 0.8))
            for values in (loss, accuracy):
                values[: bad.get((K, Q), 0), 50:] = np.nan
            (trace,) = ramp(*loss, metric="train_loss")
            arrays = {**trace.arrays, "test_accuracy": accuracy}
            dims = {**trace.dims, "test_accuracy": trace.dims["train_loss"]}
            found.setdefault(K, {})[Q] = [replace(trace, arrays=arrays, dims=dims)]
    return found


def ends(bad: Mapping[tuple[int, int], int]) -> list[bool | None]:
    """Whether claims on final losses and accuracies agree: on Q at K = 4 and 8, then on K."""
    by_clients = trained(bad)

    class Runs:
        scale = ex.SCALES["made"]

        def over_steps(self, name: str, clients: int, **_: bool) -> dict[int, list[Trace]]:
            return by_clients[clients]

    claims = correct(said.task_claims(Runs(), ex.IMAGES, by_clients))  # type: ignore[arg-type]
    return [one.agrees for one in claims if "iterations end" in one.text or "more clients" in one.text]


def test_what_diverges_ends_at_the_higher_loss_and_the_lower_score() -> None:
    assert ends({(4, 10): 10, (8, 10): 10}) == [True] * 4 + [None] * 2  # both K diverge for Q = 10
    assert ends({(4, 1): 10, (8, 1): 10})[:4] == [False] * 4
    assert ends({(4, 1): 10, (4, 10): 10})[4:] == [False] * 2
    assert ends({(8, 1): 10, (8, 10): 10})[4:] == [True] * 2
    assert ends({(8, 1): 1, (8, 10): 1})[4:] == [None] * 2  # one seed of ten


def test_a_score_may_rise_and_degrade_little() -> None:
    def little(change: float) -> bool | None:
        one, other = (level + 1e-3 * np.arange(6) for level in (0.8 * (1 + change), 0.8))
        return decide(said.is_little_lower(Level.from_values(one), Level.from_values(other))).agrees

    assert [little(change) for change in (0.3, 0.0, -0.08, -0.15)] == [True, True, True, False]


def test_the_claims_of_the_experiments_follow_their_curves() -> None:
    slow = ramp(*([0.0, 1.0 + k / 10, 2.0, 3.0 + k / 10] for k in range(4)))
    quick = ramp(*([0.0, 2.0, 2.9 + k / 30, 3.0] for k in range(4)))
    assert said.is_earlier("", "", {1: slow, 2: quick}, "metric", 10.0, 2.5).agrees
    assert said.is_earlier("", "", {1: quick, 2: slow}, "metric", 0.0, 2.5).agrees is False
    at_once = ramp(*([3.0 - k / 30, 3.0, 3.0, 3.0] for k in range(4)))  # untrained
    assert said.is_earlier("", "", {1: at_once, 2: slow}, "metric", 0.0, 2.5).agrees is None
    steep = ramp(*([0.0, 2.6 + k / 10, 3.0, 3.0] for k in range(4)))  # there by its first record: between 0 and it
    unknown = said.is_earlier("", "", {1: steep, 2: slow}, "metric", 0.0, 2.5)
    assert unknown.agrees is None and unknown.measured.endswith("before the first record of Q = 1")
    never = said.is_earlier("", "", {1: slow, 2: ramp(*4 * [[0.0, 2.0, 2.0, 2.0]])}, "metric", 10.0, 2.5)
    assert never.agrees is False and never.measured.endswith("time of Q = 2: not reached")
    one, two = ramp(*4 * [[*np.linspace(0, 1, 7)]]), ramp(*([0.0, 0.3, 0.6, 0.9 + k / 100] for k in (0, 0, 1, 1)))
    # after four rounds of two steps, before seven of one
    assert said.first_time({1: one, 2: two}, "metric", 0.6) == 4 * 302
    assert said.first_time({1: one, 2: two}, "metric", 2.0) == np.inf
    claim = said.is_gap_growing("", "", {1: one, 2: two}, "metric", 1812)  # 12 rounds of one step against 6 of two
    assert claim.agrees and claim.measured == "at 1812: Q = 2: -0.095 at latency 10, +0.403 at 100"
    assert said.is_gap_growing("", "", {1: two, 2: one}, "metric", 1812).agrees is False
    assert said.is_gap_growing("", "", {1: one, 2: two}, "metric", np.inf).agrees is None
    record = 2 * 301  # the time of the first record of Q = 1
    early, late = (said.is_gap_growing("", "", {1: one, 2: two}, "metric", when) for when in (record - 1, record))
    assert early.agrees is None and early.measured.endswith("before the first record of Q = 1")
    assert "record" not in late.measured
    behind = {1: ramp(*[[0.0, 0.5, 0.6, 0.7]] * 4), 2: ramp(*([0.0, *[0.45 + k / 1000] * 3] for k in range(4)))}
    less = said.is_gap_growing("", "", behind, "metric", 604)  # by 0.05 on slow links, by 0.25 on fast ones
    assert less.agrees is False and less.measured == "at 604: Q = 2: -0.248 at latency 10, -0.049 at 100"


def test_a_falling_loss_converges_and_one_that_ends_higher_does_not() -> None:
    falling, rising = (
        ramp(*([0.0, *np.linspace(*ends, 8) + k / 100 * np.arange(8)] for k in range(4)), metric="train_loss")
        for ends in ((2.0, 1.0), (1.0, 2.0))
    )
    assert said.converges("", "", {1: falling, 5: falling}).agrees
    assert said.converges("", "", {1: falling, 5: rising}).agrees is False


def test_captions_name_the_metrics_that_still_move() -> None:
    moving, level = ([[*np.linspace(0, 1, 101)]], [[1.0] * 101])
    made = {"Q = 5": (ramp(*moving, *moving), 5)}, {"Q = 5": (ramp(*level, *level), 5)}
    rising, flat = (describe_movement(runs, {"metric": "F1"}) for runs in made)
    assert rising.startswith(" Not tested at this scale: F1 still moving after 1,000 iterations: Q = 5 (") and not flat


def test_only_runs_that_do_not_reach_a_level_need_a_plateau() -> None:
    rising = ramp(*([0.0, 1.0, 2.0, 3.0 + k / 10] for k in range(4)))
    task = replace(ex.HALVES, metric="metric")
    claim = said.is_earlier("", "", {1: rising, 2: rising}, "metric", 10.0, 2.5)
    (reached,) = said.limits_of_times(task, "Q", {1: rising, 2: rising}, 2.5).apply([claim])
    assert reached.verdict == "not reproduced" and not said.limits_of_times(task, "Q", {1: rising}, 2.5).moving
    (missed,) = said.limits_of_times(task, "Q", {1: rising, 2: rising}, 3.15).apply([claim])
    assert missed.verdict == "not tested at this scale"


def test_every_claim_of_the_experiments_is_decided(gallery: Gallery) -> None:
    found = all_trained_claims(gallery)
    assert len(found) == 3 * (2 * 6 + 2) + 3
    assert {claim.source for claim in found} == {*(f"Figure {k}" for k in range(3, 10)), "Introduction"}


def test_a_wrong_name_is_refused(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    assert set(FIGURES) == {"wall-clock", "family", *EXACT, "network", "tightness", *TRAINED}
    with pytest.raises(FedboundsError, match="made"):
        Gallery(tmp_path, dataset="mad")
    with pytest.raises(FedboundsError, match="dataset original"):
        Gallery(tmp_path, full=True)
    with pytest.raises(FedboundsError, match="wall-clock"):
        draw(gallery, "wall-clocks")


def test_exact_runs_stay_under_every_form_and_the_terms_are_shaded():
    picture = runs.theorem_1(rounds=40)
    measured = [c for c in picture.curves if "measured" in c.label]
    assert len(measured) == len(runs.STEPS) * len(runs.SILOS)
    for curve in measured:
        place = curve.label.split(":")[0]
        for form in runs.FORMS:
            bound = next(c for c in picture.curves if c.label == f"{place}: bound [{form}]")
            assert np.all(curve.y < 0.5 * bound.y)
    legend = {text.get_text() for text in picture.figure.legends[0].get_texts()}
    assert legend >= {"initial gap", "gradient noise"}  # the drift is too small to see in so few rounds
    assert all(said["guarantee"] for forms in picture.provenance.values() for said in forms.values())


def test_what_is_printed_is_crossed_and_what_is_repaired_is_not():
    curves = {c.label.rpartition(": ")[2]: c for c in runs.misread(rounds=60).curves}
    crossed = {label for label, c in curves.items() if "iterates" in label and c.y[-1] > 1}
    assert crossed == {"first R iterates, Q = 8", "first R iterates, Q = 32"}  # Q = 4 tends to 1.016
    assert curves["sync points, Q = 8"].y.max() < 0.2826
    measured, without, counted = (
        curves[name] for name in ("measured, exact", "(15), what differs not counted (0)", "(15), counted as noise")
    )
    assert np.all(without.y == 0) and np.all(without.y < measured.y) and np.all(measured.y < counted.y)


def test_the_rate_is_that_of_remark_5_and_the_bound_sees_heterogeneity_that_cancels():
    families = runs.exact_rates(rounds=(256, 1024, 4096), since=256)
    for one in families.values():
        assert one.measured.value == pytest.approx(-0.5, abs=0.02) and one.predicted == -0.5 and one.family.guarantee
    panels = runs.exact_ratios(rounds=60)
    measured, bound = exponents(panels["heterogeneity"])
    assert abs(measured.value) < 1e-6 < 0.05 < bound
    flat = [c.ratio[-1] for found in panels["local steps Q"].values() for c in found]
    assert max(flat) < 0.5
