"""Figures over the reference theorems: the map's colors are its winners, order-only bounds are marked, data is kept."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.contour import ContourSet

from fedbounds.bounds.comparison.method_map import map_methods
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import results
from fedbounds.figures.charts import reference_figures
from fedbounds.figures.charts.method_map import METHODS, method_map_picture, name_bounds
from fedbounds.figures.charts.reference_figures import CLASSES, FIGURES, ROUNDS, bound_over_rounds
from tests.cli.test_commands import refused
from tests.command_line import run

GALLERY = Path(__file__).resolve().parents[3] / "docs" / "gallery" / "references"
MINIBATCH, LOCAL = reference_figures.MINIBATCH, reference_figures.LOCAL
KNOWN = dict(L=1, D2=1, N=10, T=100, sigma=0.1)
SPAN = np.geomspace(1e-3, 10, 7)
STEPS = dict(L=1, F=1, N=20, S=5, I=5, T=1000, eta=1, gamma=1e-3)


def curves(path, column="y"):
    found = {}
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        found.setdefault(row["curve"], []).append(float(row[column]))
    return found


def caption(path):
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["caption"]


def legend(picture):
    return [text.get_text() for text in picture.figure.legends[0].get_texts()]


def test_the_legend_tells_lines_and_who_wins_nowhere_and_every_line_has_its_number_inside():
    picture = FIGURES["regimes"]()
    axes = picture.figure.axes[0]
    assert {"second smallest bound / smallest", "Minibatch SGD (Patel et al. 2024): smallest nowhere"} < {
        *legend(picture)
    }
    lines = next(found for found in axes.collections if isinstance(found, ContourSet) and not found.filled)
    drawn = sum(len(line) > 1 for segments in lines.allsegs for line in segments)
    assert len(lines.labelTexts) == drawn > 3
    picture.figure.canvas.draw()
    frame = axes.get_window_extent()
    for words in lines.labelTexts:
        box = words.get_window_extent()
        assert frame.x0 < box.x0 and box.x1 < frame.x1 and frame.y0 < box.y0 and box.y1 < frame.y1


def test_order_only_bounds_are_marked_in_caption_and_legend_and_numbers_are_not():
    order = method_map_picture(map_methods([MINIBATCH, LOCAL], ("I", [1, 10, 100]), ("d", SPAN), KNOWN))
    assert "Order only: every constant that an O hides is 1" in order.caption
    forms = [("jhunjhunwala-2022/fedavg", name) for name in ("explicit", "explicit:supplement")]
    numbers = method_map_picture(map_methods(forms, ("d", SPAN), ("sigma", SPAN), STEPS))
    assert "order only" not in numbers.caption.lower()
    for picture, marked in ((order, True), (numbers, False)):
        entries = [entry for entry in legend(picture) if "/" not in entry and "nowhere" not in entry]
        assert entries and all(("order only" in entry) == marked for entry in entries)


def test_the_colors_of_a_map_are_its_winners_and_the_caption_gives_the_constants_that_do_not_vary():
    table = map_methods([MINIBATCH, LOCAL], ("I", [1, 10, 100]), ("d", SPAN), KNOWN)
    picture = method_map_picture(table, labels=["Minibatch SGD", "Local SGD"])
    mesh = picture.figure.axes[0].collections[0].get_array()
    assert mesh is not None and (np.asarray(mesh).reshape(table.winner.shape) == table.winner).all()
    assert (
        "0 Minibatch SGD (Patel et al. 2024), 1 Local SGD (Woodworth et al. 2020)" in picture.caption
        and "T = 100 (given)" in picture.caption
    )
    assert "d = " not in picture.caption and "I = " not in picture.caption
    index = {c.label: c.y for c in picture.curves if c.label.endswith("smallest")}
    assert [list(y) for y in index.values()] == table.winner.T.tolist()


def test_a_legend_names_methods_with_their_papers():
    table = map_methods([MINIBATCH, LOCAL], ("I", [1, 10, 100]), ("d", SPAN), KNOWN)
    assert name_bounds(table) == ["Minibatch SGD (Patel et al. 2024)", "FedAvg (Woodworth et al. 2020)"]
    entries = {text.get_text() for text in method_map_picture(table).figure.legends[0].get_texts()}
    assert entries - {"second smallest bound / smallest"} == {f"{name} (order only)" for name in name_bounds(table)}
    two = [("jhunjhunwala-2022/fedavg", name) for name in ("explicit", "explicit:supplement")]  # of one method
    assert "[explicit]" in name_bounds(map_methods(two, ("d", SPAN), ("sigma", SPAN), STEPS))[0]


def test_every_algorithm_of_a_reference_theorem_has_a_name():
    kinds = {result.algorithm for result in results() if result.file} - {""}
    assert kinds <= METHODS.keys()


def test_where_no_bound_is_valid_the_map_is_white_and_says_so():
    table = map_methods([MINIBATCH, LOCAL], ("sigma", [0.1, 1e4]), ("d", [0.1, 1]), dict(L=1, D2=1, N=10, T=20, I=5))
    assert "White" not in method_map_picture(table).caption
    accelerated = "patel-2024/accelerated-minibatch-sgd-convex"
    table = map_methods([MINIBATCH, accelerated], ("sigma", [0.1, 1e4]), ("I", [1, 2]), dict(L=1, D2=1, N=10, T=20))
    picture = method_map_picture(table)
    assert "White: no bound is valid." in picture.caption
    mesh = picture.figure.axes[0].collections[0].get_array()
    assert mesh is not None and np.ma.getmaskarray(mesh).ravel().tolist() == [False, True] * 2


@pytest.mark.parametrize("name", FIGURES)
def test_the_gallery_has_the_numbers_that_the_figure_has_now(name, tmp_path):
    FIGURES[name]().save(tmp_path / "now.png")
    now, kept = curves(tmp_path / "now.csv"), curves(GALLERY / f"{name}.csv")
    assert now.keys() == kept.keys()
    for label, values in now.items():
        assert values == pytest.approx(kept[label], rel=1e-5, nan_ok=True)
    assert caption(tmp_path / "now.json") == caption(GALLERY / f"{name}.json")
    assert "order only" in caption(GALLERY / f"{name}.json").lower()


def test_local_sgd_with_heterogeneity_at_the_minimizer_never_beats_minibatch_sgd():
    rng = np.random.default_rng(3)
    for _ in range(20):
        known = dict(L=1, D2=1, N=10, T=int(rng.integers(10, 1000)), I=int(rng.integers(1, 1000)), sigma=0.1)
        local = evaluate(reference_figures.LOCAL_AT_MINIMIZER, {**known, "zetastar": 0})
        assert local.value >= evaluate(MINIBATCH, known).value
    assert "Smallest nowhere: Local SGD, heterogeneity at the minimizer (Koloskova et al. 2020)." in caption(
        GALLERY / "local-steps.json"
    )


def test_scaffold_wins_with_many_participants_and_much_heterogeneity():
    kept = curves(GALLERY / "participation.csv")
    least = {label: y for label, y in kept.items() if label.endswith("smallest")}
    counts = [sum(y) for y in least.values()]
    assert counts == sorted(counts) and counts[0] < counts[-1]  # more participants, more settings for SCAFFOLD
    assert all(y == sorted(y) for y in least.values())  # beyond a heterogeneity SCAFFOLD, below it FedAvg


def test_the_best_upper_bound_of_a_class_is_above_its_lower_bound_and_meets_it_at_many_rounds(monkeypatch):
    given = dict(L=1, D2=1, F=1, N=10, I=10, sigma=0.1, zetastar=0.1, zeta=0.1)
    for rounds, most in ((ROUNDS, np.inf), (np.array([1e12, 1e14]), 1.001)):
        monkeypatch.setattr(reference_figures, "ROUNDS", rounds)
        for classes in CLASSES.values():
            for _, lower, uppers in classes:
                best = np.min([bound_over_rounds(key, given) for key in uppers.values()], axis=0)
                ratio = best / bound_over_rounds(lower, given)
                assert np.isfinite(ratio).all() and (ratio >= 1 - 1e-12).all() and (ratio < most).all()


def test_mifa_stores_one_model_a_client_more():
    kept = curves(GALLERY / "memory.csv", "x"), curves(GALLERY / "memory.csv")
    name = "Memory of the server: "
    assert kept[1][f"{name}MIFA"] == [count + 1 for count in kept[0][f"{name}MIFA"]]
    assert set(kept[1][f"{name}FedAU"]) == {1}


WORDS = [MINIBATCH, LOCAL, "--vary", "I=1:100:log:4", "--vary", "d=0.001:1:log:4"]
REST = [f"{name}={value}" for name, value in KNOWN.items()]


def test_compare_draws_a_map_with_two_constants_that_vary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for out, files in (("a.svg", {"a.svg", "a.csv", "a.json"}), ("b.csv", {"b.csv"})):
        status, text, error = run("compare", *WORDS, *REST, "--out", out)
        assert status == 0, error
        assert "of 16 settings  patel-2024/minibatch-sgd-convex [printed] (order only)" in text
        assert {path.name for path in tmp_path.iterdir() if path.stem == out[0]} == files
    status, text, _ = run("compare", *WORDS, *REST, "--json")
    document = json.loads(text)
    assert status == 0 and document["schema"] == "fedbounds.method-map/1"
    assert sum(document["wins"].values()) == 16 and document["written"] == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([*WORDS, "--vary", "T=1:9:log:2"], "--vary is given 3 times; give it once for curves, twice for a map"),
        ([*WORDS, *REST, "--out", "a.pgf"], "unknown ending"),
        ([MINIBATCH, *WORDS[2:], *REST], "at least two bounds"),
        (["patel-2024/convex-lower-bound", *WORDS[1:], *REST], "fedbounds figure references/gap"),
    ],
)
def test_a_map_that_cannot_be_drawn_is_refused_in_one_line(words, part):
    refused(["compare", *words], part)


def test_figure_references_draws_one_or_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("figure", "references/gap", "--out", "gap.svg")[0] == 0
    monkeypatch.setattr(reference_figures, "FIGURES", {name: FIGURES["gap"] for name in ("one", "two")})
    assert run("figure", "references", "--out", "all")[0] == 0
    names = {f"{name}.{ending}" for name in ("one", "two") for ending in ("png", "csv", "json")}
    assert {path.name for path in (tmp_path / "all").iterdir()} == names
    refused(["figure", "references/gaps", "--out", "x.png"], "unknown figure of references 'gaps'")
    refused(["figure", "references", "--out", "x.png"], "is a file; all figures of a paper need a directory")
