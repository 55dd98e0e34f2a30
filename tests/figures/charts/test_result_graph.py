"""The picture of the graph of results: boxes apart, words inside, arrows around boxes, the numbers beside it."""

import csv
import json
from itertools import combinations

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.text import Text

from fedbounds.bounds.audit.ledger import status
from fedbounds.bounds.comparison.result_graph import edges_around, edges_of_registry
from fedbounds.bounds.theory.registry import load
from fedbounds.figures.charts.picture import styled
from fedbounds.figures.charts.result_graph import graph_picture, registry_graph
from tests.cli.test_commands import refused
from tests.command_line import run

KEYS = ("fedau/corollary-4", "fed-norm-sgda/theorem-1", "ghadimi-2013/sgd")


def pictures():
    yield registry_graph(), len(edges_of_registry())
    for key in KEYS:
        yield graph_picture(edges_around(key), key, key), len(edges_around(key))


@pytest.mark.parametrize("width", [None, 3.3])
def test_boxes_are_apart_hold_their_words_and_no_arrow_passes_through_one(width):
    with styled(width=width) if width else styled():
        for picture, count in pictures():
            (axes,) = picture.figure.axes
            picture.figure.canvas.draw()
            boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
            arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
            extents = [box.get_window_extent() for box in boxes]
            assert len(arrows) == count and len(boxes) == len(axes.texts)
            assert not [pair for pair in combinations(extents, 2) if pair[0].overlaps(pair[1])]
            for text, extent in zip(axes.texts, extents, strict=True):
                words = text.get_window_extent()
                assert extent.x0 <= words.x0 and words.x1 <= extent.x1, text.get_text()
                assert extent.y0 <= words.y0 and words.y1 <= extent.y1, text.get_text()
            low, high = sorted(axes.get_ylim())
            for box in boxes:
                assert low <= box.get_y() and box.get_y() + box.get_height() <= high
            for arrow in arrows:
                path = arrow._path_original  # in data coordinates, before the head is added
                points = path.interpolated(1).to_polygons(closed_only=False)[0]
                for box in boxes:
                    x, y = points[:, 0] - box.get_x(), points[:, 1] - box.get_y()
                    inside = (x > 1e-9) & (x < box.get_width() - 1e-9) & (y > 1e-9) & (y < box.get_height() - 1e-9)
                    assert not inside.any()


def test_a_box_has_the_status_and_the_result_asked_for_has_a_thick_border():
    key = "ghadimi-2013/sgd"
    picture = graph_picture(edges_around(key), key, key)
    (axes,) = picture.figure.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    thick = [text.get_text() for text, box in zip(axes.texts, boxes, strict=True) if box.get_linewidth() > 1]
    assert thick == [f"ghadimi-2013\nsgd\n{status(load(key), load(key).form())}"]
    assert any(isinstance(text, Text) and text.get_text().endswith("unread") for text in axes.texts)


def test_show_draws_a_graph_and_keeps_its_data(tmp_path):
    for ending in ("svg", "pdf", "png"):
        code, out, error = run("show", "fedau/corollary-4", "--graph", "--out", str(tmp_path / f"graph.{ending}"))
        assert code == 0 and out.startswith("written "), error
    rows = list(csv.DictReader((tmp_path / "graph.csv").read_text(encoding="utf-8").splitlines()))
    places = {row["curve"].partition(": ")[0]: (float(row["x"]), float(row["y"])) for row in rows}
    assert places["fedau/theorem-3"][0] < places["fedau/corollary-4"][0]
    manifest = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    edges = {(edge["result"], edge["used"]) for edge in manifest["provenance"]["edges"]}
    assert ("fedau/corollary-4", "fedau/theorem-2") in edges and len(edges) == len(edges_around("fedau/corollary-4"))
    assert "Graph of fedau/corollary-4" in manifest["caption"]
    assert np.isfinite(list(places.values())).all()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["show", "fedau/theorem-2", "--out", "x.svg"], "add --graph"),
        (["show", "fedau/theorem-2", "--graph", "--out", "x.txt"], ".png, .pdf, .svg"),
        (["show", "fed-norm-sgda/theorem-2", "--graph", "--out", "x.svg"], "there is no graph to draw"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(words, part):
    refused(words, part)
