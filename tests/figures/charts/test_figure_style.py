"""Options of figures: width, words, fonts and style sheet, and that the words of a figure lie inside it."""

import colorsys
from pathlib import Path

import matplotlib as mpl
import matplotlib.colors as mcolors
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from fedbounds.bounds.comparison.compare import compare
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.charts import styled
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.problems import toy_example
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.comparison import comparison_picture
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.figure_style import FigureStyle, find_entry
from fedbounds.figures.charts.overlay import overlay, overlay_settings
from fedbounds.figures.charts.picture import BOUND, CROSSED, MEASURED, Curve
from fedbounds.figures.charts.theory import TERM_COLORS
from tests.command_line import run

KEY = "arbitrary-participation/theorem-3.1"
LONG = "a long title that " * 12
KNOWN = dict(L=1, F=5, I=2, P=2, eta=2, rho=0.7, sigma=1, nu=2, beta=0.5, delta=0, gamma=1e-3)


@pytest.fixture(scope="module")
def exact():
    run = moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), np.tile(np.eye(3), (10, 1)))
    return confront(run, load(KEY), "explicit")


@pytest.fixture(scope="module")
def table():
    return compare([(KEY, "explicit"), (KEY, "sharp")], ("T", [1, 2, 3, 4]), KNOWN)


def entries(figure) -> list[str]:
    boxes = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    return [text.get_text() for box in boxes for text in box.get_texts()]


def curves(count: int = 2) -> list[Curve]:
    return [Curve(f"curve {k}", np.arange(1.0, 4), np.arange(1.0, 4) + k) for k in range(count)]


def drawn(**style):
    return panels(
        {"": curves()}, x_label="x", y_labels=["y"], title="its own", caption="", alternative="", **style
    ).figure


def outside(figure) -> list[str]:
    """The words that reach beyond the canvas, as it is saved."""
    figure.set_dpi(160)
    figure.draw_without_rendering()
    renderer, box = FigureCanvasAgg(figure).get_renderer(), figure.bbox
    axes_of_ticks = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    ticks = {label for axis in axes_of_ticks for tick in axis.get_major_ticks() + axis.get_minor_ticks()
             for label in (tick.label1, tick.label2)}  # fmt: skip
    texts = {*figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible())} - ticks
    placed = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    return [
        words
        for words, at in placed
        if words and not (at.x0 >= -1 and at.x1 <= box.x1 + 1 and at.y0 >= -1 and at.y1 <= box.y1 + 1)
    ]


@pytest.mark.parametrize(("width", "inches"), [("column", 3.5), ("page", 7.0), (5, 5.0), ("4.25", 4.25)])
def test_a_width_is_that_of_the_file(exact, width, inches, tmp_path):
    picture = overlay(exact, width=width)
    assert picture.figure.get_figwidth() == inches
    (png, *_) = picture.save(tmp_path / "figure.png")
    with Image.open(png) as image:
        assert image.width == pytest.approx(160 * inches, abs=1)


def test_without_a_width_a_chart_keeps_its_own(exact):
    assert overlay(exact).figure.get_figwidth() == 6.6


def test_the_words_of_a_user_replace_those_of_the_chart(exact):
    labels = {KEY: "Theorem 3.1", "measured": r"$\|\nabla f\|^2$", "initial gap": "gap"}
    with styled(title="A title"):
        figure = overlay(exact, xlabel="rounds", ylabel="norm", labels=labels).figure
    (axes,) = figure.axes
    assert figure.get_suptitle() == "A title" and (axes.get_xlabel(), axes.get_ylabel()) == ("rounds", "norm")
    assert {*labels.values()} <= {*entries(figure)} and not {"bound", "initial gap"} & {*entries(figure)}
    with styled(title=""):
        assert overlay(exact).figure.get_suptitle() == ""
    assert overlay(exact).figure.get_suptitle() == "Wang & Ji 2022, Theorem 3.1, eq. (8) [explicit]"


def test_a_label_of_the_second_axis_is_kept():
    groups = {"one": curves(), "two": curves()}
    with styled(ylabel="new", labels={"two": "second"}):
        figure = panels(groups, x_label="x", y_labels=["a", "b"], title="", caption="", alternative="").figure
    assert [axes.get_ylabel() for axes in figure.axes] == ["new", "b"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "second"]


def test_labels_do_not_change_the_data(exact):
    plain, renamed = overlay(exact), overlay(exact, labels={"measured": "ours"}, width="column")
    assert [c.label for c in plain.curves] == [c.label for c in renamed.curves]
    assert plain.caption == renamed.caption


def test_a_key_finds_a_form_and_an_unknown_or_ambiguous_one_says_what_is_legal(table):
    with styled(labels={f"{KEY}:sharp": "ours"}):
        assert entries(comparison_picture(table).figure)[1] == "ours"
    ambiguous = rf"ambiguous; name the form: {KEY}:explicit, {KEY}:sharp"
    with pytest.raises(FedboundsError, match=ambiguous), styled(labels={KEY: "ours"}):
        comparison_picture(table)
    unknown = r"unknown legend entry or panel title 'fedau/theorem-9'; known: .*sharp"
    with pytest.raises(FedboundsError, match=unknown), styled(labels={"fedau/theorem-9": "ours"}):
        comparison_picture(table)
    known = {"a/b [sharp:B3]": "one", "a/b [sharper]": "two", "a/bc [sharp]": "three"}
    assert [find_entry(key, known) for key in ("a/b:sharp", "a/b [sharper]", "a/bc")] == ["one", "two", "three"]


def test_a_font_size_scales_all_text():
    def sizes(figure) -> list[float]:
        figure.draw_without_rendering()
        return [text.get_fontsize() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]

    usual, large = sizes(drawn()), sizes(drawn(font_size=19))
    assert max(usual) * 2 == pytest.approx(max(large)) and min(usual) * 2 == pytest.approx(min(large))
    assert max(sizes(drawn(width="column"))) == pytest.approx(max(usual) * 8 / 9.5)
    assert max(sizes(drawn(width="column", font_size=9.5))) == pytest.approx(max(usual))


def test_a_style_sheet_is_applied_on_top_of_ours_and_nowhere_else(tmp_path):
    sheet = tmp_path / "own.mplstyle"
    sheet.write_text("axes.facecolor: 123456\nlegend.frameon: True\nsavefig.dpi: 50\n")
    before = dict(mpl.rcParams)
    with styled(style=sheet):
        picture = panels({"": curves()}, x_label="x", y_labels=["y"], title="", caption="", alternative="")
    assert mcolors.to_hex(picture.figure.axes[0].get_facecolor()) == "#123456"
    assert picture.figure.legends[0].get_frame_on() and not drawn().legends[0].get_frame_on()
    (png, *_) = picture.save(tmp_path / "figure.png")  # the sheet is also that of the file
    with Image.open(png) as image:
        assert image.width == int(50 * picture.figure.get_figwidth())
    assert dict(mpl.rcParams) == before


def test_notes_are_drawn_unless_they_are_left_out(exact, table):
    shown, hidden = overlay(exact).figure, overlay(exact, annotations=False).figure
    assert shown.axes[0].get_title(loc="left").startswith("measured / bound = ")
    assert hidden.axes[0].get_title(loc="left") == ""
    both = {"a": exact, "b": exact}
    assert all(axes.texts for axes in overlay_settings(both, title="").figure.axes)
    with styled(annotations=False):
        assert not any(axes.texts for axes in overlay_settings(both, title="").figure.axes)
        assert comparison_picture(table).figure.axes[0].get_title(loc="left") == ""


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ({"width": "wide"}, r"width 'wide' is not legal; give column \(3.5 in\), page \(7 in\), or inches from 1.5"),
        ({"width": 0.2}, "width 0.2 is not legal"),
        ({"width": float("nan")}, "width nan is not legal"),
        ({"font_size": 100}, "font size 100 is out of range; give points from 4 to 40"),
        ({"style": "gplot"}, "did you mean ggplot"),
        ({"title": r"$\nothing$"}, "title .* is not a legal formula"),
        ({"labels": {"a": "$x"}}, "label 'a' .* is not a legal formula"),
    ],
)  # fmt: skip
def test_a_wrong_value_says_what_is_legal(style, message):
    with pytest.raises(FedboundsError, match=message):
        FigureStyle(**style)


def test_a_sheet_that_is_none_and_one_for_latex_are_refused(tmp_path):
    sheet = tmp_path / "latex.mplstyle"
    sheet.write_text("text.usetex: True\n")
    with pytest.raises(FedboundsError, match=r"text\.usetex is not supported; remove it"):
        FigureStyle(style=sheet)
    sheet.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FedboundsError, match="is not a matplotlib style sheet"):
        FigureStyle(style=sheet)


@pytest.mark.parametrize("width", [None, "column", "page"])
def test_no_words_reach_beyond_the_canvas(exact, table, width):
    result = load(f"{KEY}-expected")
    figures = [
        overlay(exact, LONG, width=width).figure,
        overlay(exact, f"periodic under {result.source} [sharp]", width=width).figure,
        panels({LONG: curves(), f"{LONG}b": curves()}, x_label=LONG, y_labels=[LONG, ""], title=LONG, caption="",
               alternative="", width=width, labels={"curve 0": LONG}).figure,
    ]  # fmt: skip
    with styled(width=width):
        figures.append(comparison_picture(table).figure)
        figures.append(overlay_settings({LONG: exact, f"{LONG}b": exact, "c": exact}, title=LONG).figure)
    for figure in figures:
        assert outside(figure) == []


def test_a_word_too_long_for_a_line_is_shrunk():
    figure = drawn(width=2, labels={})
    with styled(title="unbreakable" * 8, width=2):
        long = panels({"": curves()}, x_label="x", y_labels=["y"], title="", caption="", alternative="").figure
    assert outside(long) == [] == outside(figure)


def test_panels_stand_below_each_other_in_a_column(exact):
    both = {name: exact for name in "abc"}
    with styled(width="column"):
        narrow = overlay_settings(both, title="").figure
        pair = panels({"a": curves(), "b": curves()}, x_label="x", y_labels=["y", "z"], title="", caption="",
                      alternative="").figure  # fmt: skip
    for figure in (narrow, pair):
        figure.draw_without_rendering()
        assert len({round(axes.get_position().x0, 3) for axes in figure.axes}) == 1
    wide = overlay_settings(both, title="").figure
    assert wide.get_figwidth() > 9 and narrow.get_figheight() > wide.get_figheight()


def test_terms_are_lines_dashed_if_constant_and_areas_only_on_request(exact):
    (axes,) = overlay(exact).figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    shown = [name for name in exact.terms if name in lines]
    assert len(shown) > 1 and not axes.collections
    for name in shown:
        constant = np.ptp(exact.terms[name]) <= 1e-9 * exact.terms[name].max()
        assert (lines[name].get_linestyle() == "--") == constant
        assert np.asarray(lines[name].get_ydata()) == pytest.approx(exact.terms[name])
    assert {lines[name].get_linestyle() for name in shown} == {"-", "--"}
    assert len({lines[name].get_marker() for name in shown}) == len(shown)
    (shaded,) = overlay(exact, shaded=True).figure.axes
    assert len(shaded.collections) >= len(shown) and not {*shown} & {line.get_label() for line in shaded.get_lines()}


def test_the_measured_curve_stands_out(exact):
    (axes,) = overlay(exact).figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    measured = lines.pop("measured (exact given the record)")
    assert measured.get_linewidth() > max(line.get_linewidth() for line in lines.values())
    assert measured.get_color() == MEASURED and MEASURED not in {line.get_color() for line in lines.values()}
    others = {BOUND, CROSSED, *TERM_COLORS}
    assert MEASURED not in others and BOUND not in TERM_COLORS and len({*TERM_COLORS}) == len(TERM_COLORS)
    hues = [colorsys.rgb_to_hls(*mcolors.to_rgb(color))[0] for color in (MEASURED, TERM_COLORS[0])]
    assert abs(hues[0] - hues[1]) > 0.2  # the first term's blue is far from it


def test_a_bound_without_a_value_is_in_the_legend(exact):
    from dataclasses import replace

    nothing = replace(exact, bound=np.full_like(exact.bound, np.nan), valid=np.zeros_like(exact.valid))
    assert "bound: no value at any T" in entries(overlay(nothing).figure)
    fails = replace(exact, valid=np.zeros_like(exact.valid))
    assert "bound: a condition fails at every T" in entries(overlay(fails).figure)
    both = overlay_settings({"x": fails, "y": exact}, title="").figure
    assert "bound (x): a condition fails at every T" in entries(both) and "bound" in entries(both)


def test_ticks_of_rounds_are_whole_numbers(table):
    for figure in (comparison_picture(table).figure, drawn()):
        figure.draw_without_rendering()
        low, high = figure.axes[0].get_xlim()
        ticks = [tick for tick in figure.axes[0].get_xticks() if low <= tick <= high]
        assert len(ticks) > 1 and all(tick == round(tick) for tick in ticks), ticks
    halves = [Curve("halves", np.array([1, 1.5, 2]), np.arange(3.0))]
    figure = panels({"": halves}, x_label="x", y_labels=["y"], title="", caption="", alternative="").figure
    assert any(tick != round(tick) for tick in figure.axes[0].get_xticks())


def test_bounds_are_named_by_paper_and_number_and_a_violated_condition_is_said(table):
    figure = comparison_picture(table).figure
    assert entries(figure)[:2] == [f"Wang & Ji 2022, Theorem 3.1 [{form}]" for form in ("explicit", "sharp")]
    note = " ".join(figure.axes[0].get_title(loc="left").split())
    assert "[explicit]: P <= T/2 violated at T = 1 to 3" in note and "[sharp]: P <= T violated at T = 1" in note
    assert [curve.label for curve in comparison_picture(table).curves] == [f"{KEY} [explicit]", f"{KEY} [sharp]"]


def test_bounds_of_different_measures_have_theirs_in_the_legend():
    known = dict(L=1, F=5, I=2, interval=2, eta=1, gamma=1e-3, rho=0.7, sigma=1, nu=2, beta=0.5, window_divergence=0.1,
                 local_steps=2, G=1, p=0.1, N=10, K=20, gradient_divergence_sup=0.1)  # fmt: skip
    del known["I"]
    table = compare([f"{KEY}-expected", "fedau/theorem-2"], ("rounds", [100, 1000]), known)
    figure = comparison_picture(table).figure
    first, second = (" ".join(entry.split()) for entry in entries(figure)[:2])
    assert first.endswith(": minimum over rounds") and ": average over rounds" in second
    assert figure.axes[0].get_ylabel().startswith("squared gradient norm of f")


OPTIONS = ["compare", f"{KEY}:explicit", f"{KEY}:sharp", "--vary", "rounds=10:100:log:5",
           *(f"{name}={value}" for name, value in KNOWN.items())]  # fmt: skip


def test_the_options_of_the_command_line_are_those_of_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        "--width",
        "column",
        "--no-title",
        "--xlabel",
        "rounds",
        "--label",
        f"{KEY}:sharp=ours = 1",
        "--ylabel",
        "b",
    ]
    status, _, err = run(*OPTIONS, "--out", "a.svg", *words)
    assert (status, err) == (0, "")
    svg = Path("a.svg").read_text()
    assert 'width="252pt"' in svg and "Bounds compared" not in svg
    assert ">ours = 1<" in svg and ">rounds<" in svg and ">b<" in svg
    data = Path("a.csv").read_bytes()
    assert run(*OPTIONS, "--out", "b.svg", "--title", "Mine", "--font-size", "12")[0] == 0
    assert ">Mine<" in Path("b.svg").read_text() and Path("b.csv").read_bytes() == data


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--width", "page"), "--width: only figures have it; add --out F.pdf, .png or .svg"),
        (("--label", "a=b", "--out", "t.csv"), "--label: only figures have it"),
        (("--style", "ggplot", "--out", "t.pgf"), "--style: .pgf takes its look from the document"),
        (("--title", "a", "--no-title", "--out", "t.png"), "--title and --no-title exclude each other"),
        (("--label", "a", "--out", "t.png"), "--label 'a' is not KEY=TEXT"),
        (("--label", "a=b", "--label", "a=c", "--out", "t.png"), "--label gives a twice"),
        (("--label", "fedau/theorem-2=b", "--out", "t.png"), "unknown legend entry"),
        (("--width", "huge", "--out", "t.png"), "width 'huge' is not legal; give column"),
    ],
)
def test_an_option_that_does_nothing_or_is_wrong_is_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*OPTIONS, *words)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("command", [("figure", "fedau", "--out", "d"), ("demo", "--scale", "smoke", "--out", "d")])
def test_words_of_one_figure_are_refused_for_several(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = run(*command, "--title", "x")
    assert status == 2 and "--title: this writes several figures; draw one of them" in err


def test_a_figure_for_latex_takes_width_and_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        "--width",
        "column",
        "--title",
        "A & B",
        "--label",
        f"{KEY}:sharp=$x$",
        "--font-size",
        "8",
        "--ylabel",
        "b",
    ]
    assert run(*OPTIONS, "--out", "a.pgf", *words)[0] == 0
    text = Path("a.pgf").read_text()
    for part in ("width=3.5in", r"title={A \& B}", r"\addlegendentry{$x$}", r"font=\fontsize{8}{9.6}", "ylabel={b}"):
        assert part in text
    assert r"\addlegendentry{Wang \& Ji 2022, Theorem 3.1 [explicit]}" in text


def test_characters_that_the_font_lacks_are_refused():
    """They would be drawn as boxes."""
    with pytest.raises(FedboundsError, match="title: the font DejaVu Sans has no 据 数; name another font"):
        FigureStyle(title="\u6570\u636e")
    assert FigureStyle(title="Größe von σ², ‖∇f‖", labels={"a": "naïve"}).title == "Größe von σ², ‖∇f‖"
