"""Curves: told apart however many there are, dotted where a condition fails, marked where nobody may rely on them."""

import matplotlib.colors as mcolors
import numpy as np
import pytest

from fedbounds.bounds.comparison.compare import compare
from fedbounds.bounds.theory.registry import load
from fedbounds.cli.compare import describe
from fedbounds.figures.charts.comparison import comparison_picture
from fedbounds.figures.charts.curves import facets, panels
from fedbounds.figures.charts.picture import Curve

THEOREM = load("arbitrary-participation/theorem-3.1")
KNOWN = dict(L=1, F=5, I=2, P=2, T=100, eta=2, rho=0.7, sigma=1, nu=2, beta=0.5, delta=0)


def bounds(forms=("printed", "explicit"), gamma=(1e-3, 1e-2, 0.1, 1), **within):
    pairs = [(THEOREM, form) for form in forms]
    return compare(pairs, ("gamma", gamma), {**KNOWN, **within})


def lines(figure):
    return [line for axes in figure.axes for line in axes.get_lines() if np.size(line.get_xdata())]


def drawn(curves):
    return panels({"": curves}, x_label="x", y_labels=["y"], title="", caption="", alternative="").figure


def straight(label):
    return Curve(label, np.arange(3.0), np.arange(3.0))


def test_a_bound_is_dotted_where_a_condition_fails_and_nowhere_else():
    table = bounds(("explicit",))
    (row,) = table.rows
    assert row.valid.tolist() == [True, True, False, False]
    whole, broken = lines(comparison_picture(table).figure)
    assert whole.get_linestyle() == "-" and broken.get_linestyle() == ":"
    assert np.isfinite(np.asarray(whole.get_ydata())).tolist() == row.valid.tolist()
    assert np.isfinite(np.asarray(broken.get_ydata()))[~row.valid].all()
    assert "where a condition fails" in legend(comparison_picture(table).figure)


def legend(figure):
    boxes = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    return [text.get_text() for box in boxes for text in box.get_texts()]


def test_a_form_that_hides_constants_is_marked_in_the_legend():
    words = legend(comparison_picture(bounds()).figure)
    assert any("[printed] (order only)" in text for text in words)
    assert not any("[explicit] (order only)" in text for text in words)


def test_the_axis_names_the_left_hand_side_and_its_unit_and_the_caption_the_constants():
    shown = comparison_picture(bounds())
    label = " ".join(shown.figure.axes[0].get_ylabel().split())
    assert label == "minimum over rounds of squared gradient norm of f (objective\u00b2/parameter\u00b2)"
    assert "sigma = 1 (given)" in shown.caption and "Dotted where a condition fails." in shown.caption


def test_the_legend_says_that_a_bound_is_nowhere_finite():
    short = dict(KNOWN, T=3)
    table = compare([(THEOREM, "explicit")], ("sigma", [1, 2]), {k: v for k, v in short.items() if k not in
                    ("sigma", "eta")}, optimize=("gamma", "eta"), within={"eta": (1, 100)})  # fmt: skip
    shown = comparison_picture(table)
    assert legend(shown.figure) == ["Wang & Ji 2022, Theorem 3.1 [explicit]: no value anywhere"]
    assert "No value anywhere" in shown.caption
    assert shown.figure.axes[0].get_title(loc="left") == "P <= T/2 violated at sigma = 1 to 2"
    assert describe(table).splitlines()[-1] == f"{THEOREM.key} [explicit]: P <= T/2 violated at sigma = 1 to 2"


@pytest.mark.parametrize(
    ("labels", "groups"),
    [
        ([f"method {m}, p={p}" for m in "abcd" for p in (0.1, 0.2, 0.3)], 3),
        ([f"run {i}" for i in range(20)], 3),
        ([f"run {i}" for i in range(8)], 1),
        ([f"a{i % 2}, b{i}, c{i}" for i in range(13)], 2),
    ],
)
def test_no_two_curves_of_a_figure_share_color_and_dash(labels, groups):
    curves = [straight(label) for label in labels]
    assert len(facets(curves)) == groups
    looks = [(mcolors.to_hex(line.get_color()), str(vars(line)["_dash_pattern"])) for line in lines(drawn(curves))]
    assert len(looks) == len(set(looks)) == len(labels)
    assert len(legend(drawn(curves))) == len(labels)


def test_what_facets_share_keeps_its_color():
    curves = [straight(f"{m}, p={p}") for p in range(6) for m in ("fedau", "fedavg")]
    figure = drawn(curves)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["fedau", "fedavg"]
    colors = [{line.get_label(): line.get_color() for line in axes.get_lines()} for axes in figure.axes]
    assert colors[0] == colors[1] and len(set(colors[0].values())) == 6


def test_the_data_say_where_the_conditions_hold(tmp_path):
    _, data, _ = comparison_picture(bounds(("explicit",))).save(tmp_path / "bounds.png")
    rows = data.read_text().splitlines()
    assert rows[0].endswith(",valid") and [row.rpartition(",")[2] for row in rows[1:]] == ["yes", "yes", "no", "no"]


def test_a_table_in_text_that_leaves_settings_out_says_how_many():
    known = {"L": 1, "F": 5, "I": 2, "P": 2, "rho": 0.7, "sigma": 1, "nu": 2, "beta": 0.5, "delta": 0, "gamma": 1e-3}
    every = [float(T) for T in range(10, 30)]
    table = compare(["arbitrary-participation/theorem-3.1"], ("rounds", every), {**known, "eta": 20})
    assert "(12 of 20 settings shown; --out F.csv and --json have all)" in describe(table)
    assert "settings shown" not in describe(table, 20)
