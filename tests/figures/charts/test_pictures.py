"""Pictures: what is written beside them, and that drawing leaves no trace in the caller's session."""

import csv
import json

import matplotlib as mpl
import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.figures.charts.curves import moving_average, panels, seed_curve
from fedbounds.figures.charts.picture import Curve
from fedbounds.figures.charts.theory import breakdown, looks, regime_map
from fedbounds.figures.papers.arbitrary_participation.demonstration import participation_timeline

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
    assert float(left[5]["high"]) - float(left[5]["low"]) == pytest.approx(8**0.5, abs=0.01)
    manifest = json.loads(written[2].read_text())
    assert manifest["provenance"]["sigma"] == "inf" and manifest["caption"] == "c"


def test_the_same_figure_is_written_twice_alike(tmp_path):
    first, second = (picture().save(tmp_path / f"{name}.svg") for name in "ab")
    assert first[0].read_bytes() == second[0].read_bytes()
    assert first[1].read_bytes() == second[1].read_bytes()


def test_no_label_of_a_vertical_axis_runs_into_the_panel_above_it(tmp_path):
    names = [f"method {i}, noise {j}" for i in range(7) for j in range(5)]
    curves = [Curve(name, np.arange(3.0), np.arange(3.0)) for name in names]
    long = (
        "squared gradient norm of the Moreau envelope, with parameter 1/(2 Lf), of the dual objective (f\u00b2/x\u00b2)"
    )
    tall = panels({"": curves}, x_label="round", y_labels=[long], title="t", caption="c", alternative="a")
    tall.save(tmp_path / "figure.png")
    tall.figure.draw_without_rendering()
    labeled = [axes for axes in tall.figure.axes if axes.get_ylabel()]
    assert len(labeled) > 1 and all(" ".join(axes.get_ylabel().split()) == long for axes in labeled)
    for axes in labeled:
        assert axes.yaxis.label.get_window_extent().height <= axes.get_window_extent().height


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


def test_the_breakdown_of_many_settings_is_over_the_constant_that_varies():
    T = np.array([4.0, 100.0, 1e7])
    shares = breakdown(evaluate(THEOREM, GOOD | {"T": T}, form="explicit"))
    bound, *terms = shares.curves
    assert bound.x == pytest.approx(T) and sum(term.y for term in terms) == pytest.approx(bound.y)
    above, below = shares.figure.axes
    assert below.get_xlabel() == "T: number of rounds" and below.get_ylim() == (0, 1)
    assert "over T." in shares.caption and "objective\u00b2/parameter\u00b2" in above.get_ylabel()
    beyond = breakdown(evaluate(THEOREM, GOOD | {"gamma": np.array([1e-3, 1.0])}, form="explicit"))
    assert np.asarray(beyond.curves[0].valid).tolist() == [True, False] and beyond.figure.axes[
        1
    ].get_xlabel().startswith("gamma")
    rates = np.array([[0.5, 0.9], [0.2, 0.9], [0.1, 0.9]])
    by_rates = breakdown(evaluate(load("fedau/theorem-3"), {"p": rates, "K": 5, "T": 100}))
    assert by_rates.curves[0].x == pytest.approx([1, 2, 3]) and by_rates.figure.axes[1].get_xlabel() == "setting"
    both = evaluate(THEOREM, GOOD | {"T": T[None, :], "sigma": T[:, None]}, form="explicit")
    with pytest.raises(FedboundsError, match="see regime_map"):
        breakdown(both)


def test_a_term_has_one_color_in_all_figures_and_no_other_term_of_its_form_has_it():
    seen = {}
    for paper in papers():
        for result in paper.results:
            for form in result.forms:
                found = looks(term.name for term in form.terms)
                assert len(set(found.values())) == len(found), f"{result.key} [{form.name}]"
                for name, look in found.items():
                    assert seen.setdefault(name, look) == look, f"{name}: name it in figures/charts/theory.py"
    bars = breakdown(evaluate(THEOREM, GOOD, form="explicit"))
    T, sigma = np.geomspace(4, 1e6, 9).round(), np.geomspace(0.1, 9, 9)
    rest = {name: value for name, value in GOOD.items() if name not in ("T", "sigma")}
    chart = regime_map(THEOREM, rest, ("T", T), ("sigma", sigma), form="explicit")
    words = [label.get_text() for label in bars.figure.axes[0].get_yticklabels()]
    of_bars = {word: patch.get_facecolor()[:3] for word, patch in
               zip(words, bars.figure.axes[0].patches, strict=True)}  # fmt: skip
    (legend,) = chart.figure.legends
    for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True):
        assert of_bars[text.get_text()] == pytest.approx(patch.get_facecolor()[:3])


def test_the_terms_of_outside_packages_have_colors_of_their_own_too():
    names = ["initial gap", *(f"a stranger's term {k}" for k in range(7))]
    assert len(set(looks(names).values())) == 8 and looks(names)["initial gap"] == 0
    assert looks(names[:2]) == {name: look for name, look in looks(names).items() if name in names[:2]}


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
