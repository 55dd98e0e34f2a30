"""The first paper's figures and claims, at a scale that takes seconds."""

import csv
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import correct, level
from fedbounds.figures.charts.paper_gallery import draw_by_name
from fedbounds.figures.charts.significance import DivergenceTest, Level
from fedbounds.figures.charts.tuning import tuning_seeds
from fedbounds.figures.charts.verdicts import NOT_TESTED
from fedbounds.figures.papers.arbitrary_participation import experiments as ex
from fedbounds.figures.papers.arbitrary_participation.claims import (
    figure_1,
    final_claims,
    fixed_point_distance,
    toy_claims,
)
from fedbounds.figures.papers.arbitrary_participation.demonstration import demonstrate
from fedbounds.figures.papers.arbitrary_participation.drawing import (
    FIGURES,
    INTERVAL,
    PROCESSES,
    STEPS,
    Gallery,
    best,
    compare_process,
)

draw = partial(draw_by_name, "arbitrary-participation", FIGURES)

pytestmark = pytest.mark.usefixtures("same_sources")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return Gallery(tmp_path_factory.mktemp("results"), scale=ex.SMOKE)


# distance of x_15 from the optimum, from the cycle's recursion by hand; I = 1
TOY = {
    "figure-b.1": (0.8238886030515448, 0.41339107437115247, 0.21023007748975003, 0.436473475074141),
    "figure-b.2": (0.8238886030515448, 0.3520515439267408, 0.037479992366807366, 0.010635749594944042),
}


@pytest.mark.parametrize("name", TOY)
def test_the_toy_trajectories_end_where_the_recursion_says(gallery, name):
    optimum = np.array([0, 1 / np.sqrt(3)])
    ends = [np.linalg.norm([c.x[-1], c.y[-1]] - optimum) for c in draw(gallery, name).curves]
    assert ends == pytest.approx(TOY[name], rel=1e-12)


def test_the_cycle_has_its_fixed_point_off_the_optimum(gallery):
    assert fixed_point_distance(0.05) == pytest.approx(0.03418428858033284)
    found = {c.text: c.agrees for c in toy_claims(gallery)}
    assert found["at equal gamma*eta, amplification ends nearer to x*"]
    assert found["the amplified iteration converges to x* or a neighborhood of it"]


def test_a_figure_of_images_has_one_curve_per_method_and_panel(gallery):
    picture = draw(gallery, "figure-1")
    assert len(picture.curves) == 12
    assert all(np.isfinite(c.y).all() for c in picture.curves)
    found = {c.label: c for c in picture.curves}
    for name in gallery.scale.methods:
        loss, base = (found[f"Training loss: {of}"].y for of in (name, "amplified"))
        difference = found[f"Loss minus that of amplified: {name}"]
        assert difference.y == pytest.approx(loss - base, abs=1e-12)
        assert (difference.low == difference.y).all() == (name == "amplified")
    assert "the paper has N = 250" in picture.caption


def test_a_second_drawing_finds_its_runs(gallery, monkeypatch):
    draw(gallery, "figure-1")
    monkeypatch.setattr("fedbounds.empirical.sweep.task.run_together", lambda tasks: pytest.fail("ran again"))
    draw(gallery, "figure-1")


def test_an_unknown_figure_names_the_nearest(gallery):
    with pytest.raises(FedboundsError, match=r"did you mean figure-b\.\d or figure-b"):
        draw(gallery, "figure-b")
    with pytest.raises(FedboundsError, match="did you mean cifar-10"):
        Gallery("results", dataset="cifar10")


def trace(losses, rounds=10):
    values = np.tile(np.asarray(losses, float)[:, None], (1, rounds + 1))
    return Trace(
        arrays={"round": np.arange(rounds + 1), "train_loss": values, "test_accuracy": 1 - values},
        dims={"round": ("round",), "train_loss": ("seed", "round"), "test_accuracy": ("seed", "round")},
        spec={},
        engine="none",
        statuses=("done",) * len(losses),
    )


def found(amplified, minibatch, full, plain, network="cnn"):
    runs = {ex.AMPLIFIED: amplified, ex.WAIT_MINIBATCH: minibatch, ex.WAIT_FULL: full, ex.PLAIN: plain}
    scale = replace(ex.SMOKE, network=network)
    return correct(final_claims(scale, {k: [trace(v)] for k, v in runs.items() if v is not None}, figure_1))


def verdicts(*ends, **more):
    return [c.agrees for c in found(*ends, **more)]


def seeds(mean, error=0.001):
    """Six seeds around a mean, each method with deviations of its own."""
    return mean + error * np.random.default_rng(int(1e4 * mean)).normal(size=6)


def test_the_ordering_is_judged_by_what_was_measured():
    low, middle, third, high = map(seeds, (0.1, 0.2, 0.3, 0.4))
    again = middle + 0.001 * seeds(0.2)
    assert verdicts(low, middle, again, high) == [True] * 6
    assert verdicts(high, middle, again, low) == [False, False, True] * 2
    assert verdicts(low, middle, third, high) == [True, True, False] * 2
    wide = [seeds(mean, 0.2) for mean in (0.3, 0.32, 0.34, 0.36)]
    assert verdicts(*wide) == [None] * 6


def test_methods_are_compared_seed_by_seed():
    # far apart from seed to seed, and yet the first is below the others in every one
    apart = np.arange(6) / 10
    ends = [apart + seeds(mean, 1e-4) for mean in (0.1, 0.11, 0.11, 0.2)]
    assert verdicts(*ends)[:2] == [True, True]


def test_what_is_left_out_is_not_judged():
    assert verdicts(seeds(0.1), seeds(0.2), None, seeds(0.4)) == [True] * 4


def test_a_network_that_is_smaller_than_the_papers_is_noted():
    claims = found(seeds(0.1), seeds(0.2), None, seeds(0.4), network="mlp")
    assert {claim.verdict for claim in claims} == {"reproduced"}
    assert {claim.note for claim in claims} == {"network mlp is smaller than the paper's"}


def test_every_method_is_tuned_on_the_same_grid_and_on_seeds_that_nobody_is_judged_on(gallery):
    scale, seen = gallery.scale, set()
    assert set(gallery.tunings) == {ex.AMPLIFIED, ex.PLAIN, ex.WAIT_MINIBATCH, ex.WAIT_FULL}
    for name, found in gallery.tunings.items():
        assert list(found.grid["gamma"]) == list(scale.step_grid)
        assert set(scale.step_grid) <= {setting["gamma"] for setting, _ in found.tried}
        assert gallery.steps[name] == found.winner["gamma"]
    picture = draw(gallery, "figure-1")
    for traces in gallery.four_methods().values():
        seen |= {int(seed) for trace in traces for seed in trace.arrays["seed"]}
    judged = {
        int(seed)
        for trace in gallery.shorter.step_size_runs()["eta = 10, gamma = 0.001"]
        for seed in trace.arrays["seed"]
    }
    assert judged == seen == set(range(scale.seeds)) and not seen & set(tuning_seeds(scale.tuning_seeds))
    assert picture.provenance["tuning"][ex.AMPLIFIED]["winner"] == dict(gallery.tunings[ex.AMPLIFIED].winner)
    assert gallery.tunings[ex.AMPLIFIED].words in picture.caption


def test_records_at_the_end_meet_every_group_once():
    for scale in (*ex.SCALES.values(), ex.SMOKE, ex.scale_of("cifar-10", full=True)):
        turns = {k * scale.record_every // scale.slot % 5 for k in range(5)}
        assert turns == set(range(5)) and scale.last >= 5 * scale.record_every


def test_the_full_grid_is_the_papers():
    assert ex.scale_of("cifar-10", full=True).step_grid == (5e-6, 5e-5, 5e-4, 5e-3, 5e-2)
    assert ex.scale_of("fashion-mnist", full=True).step_grid == (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    assert not any(ex.scale_of(name, full=True).weight_decay for name in ex.SCALES)  # the paper has none
    assert ex.DIGITS.weight_decay and f"weight decay {ex.DIGITS.weight_decay:g}" in ex.DIGITS.words


GALLERY = Path(__file__).parents[3] / "docs" / "gallery" / "arbitrary-participation"


def test_the_demonstration_takes_the_step_sizes_of_the_gallery():
    ours, theirs = Path(ex.__file__).with_name("tuned.json"), GALLERY / "tuning.json"
    assert ours.read_text() == theirs.read_text()
    demo = Gallery("nowhere", scale=ex.demo_scale())
    assert set(demo.steps) == set(ex.DIGITS.methods)
    assert f"with {ex.DIGITS.tuning_rounds} rounds" in demo.describe_tuning()


def test_amplification_pays_after_some_windows_where_clients_differ_exactly():
    cycles, amplified, steps = best(ex.AMPLIFIED, 1.0, 300)
    _, plain, _ = best(ex.PLAIN, 1.0, 300)
    assert cycles[0] == INTERVAL and cycles[-1] == 300
    assert amplified[0] > plain[0] and amplified[-1] < 0.8 * plain[-1]
    assert STEPS[0] < steps[-1] < STEPS[-1]  # the best step is inside the grid
    alike, one = (best(name, 0.1, 300)[1][-1] for name in (ex.AMPLIFIED, ex.PLAIN))
    assert alike > one


def test_a_diverged_run_is_worse_than_anything():
    lost = level([trace([np.nan, 0.1])], 5)
    assert lost.mean == float("inf")
    assert Level(1e9, 0.0).below(lost) == DivergenceTest("", 1, 2, 1, claimed=True)


def test_the_demonstration_writes_figures_data_and_verdicts(tmp_path):
    found = demonstrate(tmp_path, workers=1, scale=ex.SMOKE, rounds=500, real_rounds=20)
    names = {p.name for p in found.written}
    assert {
        "guarantee.png",
        "periodic.png",
        "theorem-3.1-explicit.png",
        "theorem-3.1-sharp.png",
        "claims.csv",
        "timeline.png",
    } <= names
    assert all(p.stat().st_size > 0 for p in found.written)
    rows = list(csv.reader((tmp_path / "claims.csv").read_text().splitlines()))
    assert len(rows) == 7 and {row[5] for row in rows[1:]} == {NOT_TESTED}
    document = json.loads(json.dumps(found.to_dict()))
    assert document["theorem"]["explicit"]["guarantee"]
    assert document["theorem"]["explicit"]["measured"] < document["theorem"]["sharp"]["bound"]
    assert all(one["guarantee"] for one in document["real"].values()) and len(document["real"]) == 3
    assert found.text.count("(a guarantee)") >= 4 and "2 other seeds" in found.text


@pytest.mark.parametrize("name", PROCESSES)
def test_the_picture_of_real_images_shows_guarantees(name):
    found = compare_process(*PROCESSES[name], rounds=20)
    assert found.guarantee and found.valid.all() and (found.measured < found.bound).all()


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(gallery, name, tmp_path):
    assert all(p.exists() for p in draw(gallery, name).save(tmp_path / f"{name}.png"))
