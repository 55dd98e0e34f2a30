"""The first paper's figures and claims, at a scale that takes seconds."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.trace import Trace
from fedbounds.figures.claims import Level, level
from fedbounds.figures.papers.arbitrary_participation import experiments as ex
from fedbounds.figures.papers.arbitrary_participation.claims import (
    figure_1,
    figure_2,
    figure_d_1,
    figure_d_2,
    figure_d_3,
    fixed_point_distance,
    ordering,
    toy_claims,
)
from fedbounds.figures.papers.arbitrary_participation.demonstration import demonstrate
from fedbounds.figures.papers.arbitrary_participation.drawing import FIGURES, Gallery, draw
from fedbounds.figures.papers.arbitrary_participation.real_data import PROCESSES, confronted


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
    assert len(picture.curves) == 8
    assert all(np.isfinite(c.y).all() for c in picture.curves)
    assert "the paper has N = 250" in picture.caption


def test_a_second_drawing_finds_its_runs(gallery, monkeypatch):
    draw(gallery, "figure-1")
    monkeypatch.setattr("fedbounds.empirical.sweep.task.run_task", lambda task: pytest.fail("ran again"))
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


def verdicts(amplified, minibatch, full, plain):
    runs = {ex.AMPLIFIED: amplified, ex.WAIT_MINIBATCH: minibatch, ex.WAIT_FULL: full, ex.PLAIN: plain}
    return [c.agrees for c in ordering({k: [trace(v)] for k, v in runs.items()}, 5)]


def test_the_ordering_is_judged_by_what_was_measured():
    assert verdicts([0.1, 0.11], [0.2, 0.21], [0.2, 0.21], [0.4, 0.41]) == [True] * 6
    assert verdicts([0.4, 0.41], [0.2, 0.21], [0.2, 0.21], [0.1, 0.11]) == [False, True, False] * 2
    assert verdicts([0.1, 0.11], [0.2, 0.21], [0.3, 0.31], [0.4, 0.41]) == [True, False, True] * 2
    # a difference within two standard errors is not an ordering
    assert verdicts([0.1, 0.3], [0.2, 0.4], [0.2, 0.4], [0.3, 0.5]) == [None] * 6


COMMITTED = Path(__file__).parents[3] / "docs" / "gallery" / "arbitrary-participation" / "claims.csv"


def test_the_committed_verdicts_are_those_of_the_committed_numbers():
    rows = list(csv.reader(COMMITTED.read_text().splitlines()))[1:]
    found = {}
    for source, _, measured, *_ in rows[:-2]:  # the last two are of the exact toy example
        name, _, listed = measured.rpartition(": ")
        parts = [re.fullmatch(r"(.*) (\S+) \+- (\S+)", one) for one in listed.split("; ")]
        by_label = {m[1]: Level(float(m[2]), float(m[3])) for m in parts if m}
        found.setdefault(source, {})[name.partition(" over")[0]] = by_label
    grid = (0.1, 0.01, 0.001, 0.0001, 1e-05)
    claims = [
        *figure_1(found["Figure 1"]),
        *figure_2(found["Figure 2"][""], (1, 20, 60, 100, 140, 180)),
        *figure_d_1(found["Figure D.1"][""]),
        *figure_d_2(found["Figure D.2"][""], grid),
        *figure_d_3(found["Figure D.3"][""]),
    ]
    assert [(c.source, c.text, c.verdict) for c in claims] == [(row[0], row[1], row[3]) for row in rows[:-2]]
    two = {c.text: c.verdict for c in claims if c.source == "Figure 2"}
    assert two["P = 1 is not the best"] == two["P = 140 and 180 are worse than 100"] == "inconclusive"


def test_a_diverged_run_is_worse_than_anything():
    lost = level([trace([np.nan, 0.1])], 5)
    assert lost.mean == float("inf") and Level(1e9, 0.0).below(lost).agrees


def test_the_demonstration_writes_figures_data_and_verdicts(tmp_path):
    found = demonstrate(tmp_path, workers=1, scale=ex.SMOKE, rounds=500)
    names = {p.name for p in found.written}
    assert {"periodic.png", "theorem-3.1-explicit.png", "theorem-3.1-sharp.png", "claims.csv", "timeline.png"} <= names
    assert all(p.stat().st_size > 0 for p in found.written)
    rows = list(csv.reader((tmp_path / "claims.csv").read_text().splitlines()))
    assert len(rows) == 7 and {row[3] for row in rows[1:]} <= {"agrees", "disagrees", "inconclusive"}
    document = json.loads(json.dumps(found.to_dict()))
    assert document["theorem"]["explicit"]["guarantee"]
    assert document["theorem"]["explicit"]["measured"] < document["theorem"]["sharp"]["bound"]
    assert "a guarantee" in found.text


@pytest.mark.parametrize("name", PROCESSES)
def test_the_picture_of_real_images_shows_guarantees(name):
    found = confronted(*PROCESSES[name], rounds=20)
    assert found.guarantee and found.valid.all() and (found.measured < found.bound).all()


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(gallery, name, tmp_path):
    assert all(p.exists() for p in draw(gallery, name).save(tmp_path / f"{name}.png"))
