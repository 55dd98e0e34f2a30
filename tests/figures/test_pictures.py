"""Pictures: what is written beside them, and that drawing leaves no trace in the caller's session."""

import csv
import json

import matplotlib as mpl
import numpy as np
import pytest

from bounds.errors import FedboundsError
from bounds.evaluation import evaluate
from bounds.registry import load
from figures.curves import moving_average, panels, seed_curve
from figures.participation import participation_timeline
from figures.picture import Curve
from figures.theory import breakdown, regime_map

THEOREM = load("arbitrary-participation/theorem-3.1")
GOOD = dict(L=1, F=5, I=2, P=2, T=8, gamma=1 / 48, eta=6, rho=0.75, nu=2, beta=0.5, delta=0, sigma=0.5)


def picture(points=1000):
    x = np.arange(points, dtype=float)
    curve = seed_curve("loss", x, np.stack([x, x + 2]))
    return panels(
        {"left": [curve], "right": [curve]},
        x_label="round",
        y_labels=["loss", "loss"],
        title="t",
        caption="c",
        alternative="a",
        provenance={"seeds": [0, 1], "sigma": float("inf")},
    )


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_a_figure_has_its_data_and_its_manifest_beside_it(tmp_path, ending):
    written = picture().save(tmp_path / f"figure{ending}")
    assert [p.suffix for p in written] == [ending, ".csv", ".json"]
    rows = list(csv.DictReader(written[1].read_text().splitlines()))
    left = [r for r in rows if r["curve"] == "left: loss"]
    assert len(left) == 300 and len(rows) == 600
    assert (left[0]["x"], left[-1]["x"], left[-1]["y"]) == ("0", "999", "1000")
    assert float(left[5]["high"]) - float(left[5]["low"]) == pytest.approx(2, abs=0.01)
    manifest = json.loads(written[2].read_text())
    assert manifest["provenance"]["sigma"] == "inf" and manifest["caption"] == "c"


def test_the_same_figure_is_written_twice_alike(tmp_path):
    first, second = (picture().save(tmp_path / f"{name}.svg") for name in "ab")
    assert first[0].read_bytes() == second[0].read_bytes()
    assert first[1].read_bytes() == second[1].read_bytes()


def test_another_ending_or_an_unwritable_place_is_one_line(tmp_path):
    with pytest.raises(FedboundsError, match="a figure ends in"):
        picture(5).save(tmp_path / "figure.gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(FedboundsError, match="cannot write"):
        picture(5).save(tmp_path / "file" / "figure.png")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_drawing_leaves_the_callers_settings_alone():
    before = dict(mpl.rcParams)
    picture()
    assert dict(mpl.rcParams) == before


def test_a_moving_average_keeps_constants_and_shortens_at_the_ends():
    assert moving_average(np.full((2, 50), 3.0), 0.2) == pytest.approx(np.full((2, 50), 3.0))
    values = np.arange(10.0)
    assert moving_average(values, 0.5)[5] == pytest.approx(values[3:8].mean())
    assert moving_average(values, 0.5)[0] == pytest.approx(values[:3].mean())
    assert moving_average(values, 0.0) is values


def test_the_breakdown_shows_every_term_largest_first():
    evaluation = evaluate(THEOREM, GOOD, form="explicit")
    bars = breakdown(evaluation)
    assert bars.curves[0].label == evaluation.dominant
    assert sum(float(c.y[0]) for c in bars.curves) == pytest.approx(float(evaluation.value))
    assert "All conditions hold." in bars.caption
    assert "Fails: gamma" in breakdown(evaluate(THEOREM, GOOD | {"gamma": 1}, form="explicit")).caption


def test_the_regime_map_names_the_dominant_term_of_each_setting():
    T, sigma = np.array([4.0, 100.0, 1e7]), np.array([0.01, 3.0])
    chart = regime_map(THEOREM, {k: v for k, v in GOOD.items() if k not in ("T", "sigma")},
                       ("T", T), ("sigma", sigma), form="explicit")  # fmt: skip
    for j, curve in enumerate(chart.curves):
        for i, winner in enumerate(curve.y):
            evaluation = evaluate(THEOREM, GOOD | {"T": T[j], "sigma": sigma[i]}, form="explicit")
            assert list(evaluation.terms)[int(winner)] == evaluation.dominant
    with pytest.raises(FedboundsError, match="at least two values"):
        regime_map(THEOREM, GOOD, ("T", T[:1]), ("sigma", sigma))


def test_the_timeline_shows_the_window_means_of_the_participation():
    q = np.tile(np.eye(3), (4, 1))
    timeline = participation_timeline(q, 3)
    largest, smallest, present = timeline.curves
    assert largest.y == pytest.approx([1 / 3] * 4) and smallest.y == pytest.approx([1 / 3] * 4)
    assert (present.y == 1).all()
    assert participation_timeline(q, 2).curves[0].y == pytest.approx([0.5] * 6)
    with pytest.raises(FedboundsError, match="is not"):
        participation_timeline(q, 13)


def test_short_curves_are_kept_whole():
    curve = Curve("c", np.arange(300.0), np.arange(300.0))
    assert curve.thinned() is curve
