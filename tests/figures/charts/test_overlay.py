"""Overlays: the data are the comparison's, crossings are red and said, a guarantee is said only where it is one."""

import numpy as np
import pytest

from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.compare_run import confront, confront_family
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.problems import Quadratic, toy_example
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.overlay import overlay
from fedbounds.figures.charts.picture import CROSSED

THEOREM = load("arbitrary-participation/theorem-3.1")
CYCLE = np.tile(np.eye(3), (10, 1))


def lines(picture):
    return {line.get_label(): line for line in picture.figure.axes[0].get_lines()}


@pytest.fixture(scope="module")
def exact():
    run = moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), CYCLE)
    return confront(run, THEOREM, "explicit")


def test_the_curves_are_the_comparison_and_the_terms_add_up_to_the_bound(exact):
    picture = overlay(exact)
    curves = {c.label: c for c in picture.curves}
    assert curves["bound"].y[-1] == pytest.approx(3.7524791385931975)
    terms = sum(c.y for label, c in curves.items() if label.startswith("term: "))
    assert terms == pytest.approx(curves["bound"].y)
    assert "crossed" not in lines(picture)
    assert "A guarantee." in picture.caption and "Never crossed" in picture.caption


def test_a_crossing_is_drawn_in_red_and_said():
    # the same noise at every client breaks the theorem's hidden independence, and its bound
    clients = 1000
    problem = Quadratic(np.ones(1), np.zeros((clients, 1)), noise=1.0, x0=np.ones(1))
    run = moments(GeneralizedFedAvg(1e-3, 1, 500, 1), problem, np.full((4000, clients), 1 / clients), noise="common")
    picture = overlay(confront(run, THEOREM, "explicit"))
    assert lines(picture)["crossed"].get_color() == CROSSED
    assert "Crossed at" in picture.caption and "Not a guarantee" in picture.caption


def test_where_a_condition_fails_the_bound_is_dotted(exact):
    short = lines(overlay(exact))["a condition fails"]
    drawn = np.asarray(short.get_ydata())
    assert np.isfinite(drawn).sum() == int((exact.rounds < 6).sum()) > 0


def test_terms_that_cannot_be_seen_are_not_in_the_legend_but_in_the_caption(exact):
    picture = overlay(exact)
    (legend,) = picture.figure.legends
    shown = {text.get_text() for text in legend.get_texts()}
    hidden = set(exact.terms) - shown
    assert {name for name, term in exact.terms.items() if not term.any()} <= hidden and "initial gap" in shown
    assert all(name in picture.caption.partition("Too small to see: ")[2].partition(".")[0] for name in hidden)


def test_the_axis_names_what_is_measured_and_its_unit(exact):
    (axes,) = overlay(exact).figure.axes
    first, unit = axes.get_ylabel().rsplit("\n", 1)
    assert " ".join(first.split()) == "minimum over rounds of squared gradient norm of f"
    assert unit == "(objective\u00b2/parameter\u00b2)"


def test_a_corollary_is_one_point_per_number_of_rounds():
    corollary = load("arbitrary-participation/corollary-3.2")
    cycles = np.tile(np.eye(3), (100, 1))
    family = confront_family(corollary, toy_example(), cycles, [30, 300], local_steps=1, interval=3)
    picture = overlay(family)
    assert len(picture.curves[0].x) == 2
    single = confront_family(corollary, toy_example(), CYCLE, [30], local_steps=1, interval=3)
    assert lines(overlay(single))["bound"].get_marker() == "o"
