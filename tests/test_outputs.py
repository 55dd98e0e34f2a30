"""Nothing of the user's is overwritten without --force, an input never, and both are said before the work starts."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pytest

from fedbounds.bounds.display.plain_text import visible
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import FIGURE, Output, check_outputs, write_output
from fedbounds.bounds.inputs.user_files import read_text, read_toml, record_inputs
from fedbounds.cli.options import OutputPath, PathArgument
from fedbounds.command_line import COMMANDS, cli, main
from fedbounds.empirical.monitoring.accountant import ParticipationAccountant
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import Curve
from fedbounds.figures.report.papers import report_paper
from tests.command_line import run

RUNS = """
rounds = 5
[problem]
kind = "quadratic"
clients = 4
dimension = 2
noise = 0.1
[participation]
kind = "recorded"
file = "trace.csv"
[algorithm]
kind = "generalized-fedavg"
local_step_size = 1e-3
local_steps = 2
server_multiplier = 2
interval = 2
"""
TRACE = "0.5,0.5,0,0\n0,0,0.5,0.5\n" * 3
SETTING = """
setting = "non-convex, arbitrary participation, bounded heterogeneity, bounded variance"
target = 0.1
measure = "squared gradient norm of f"
choose = {local_steps = [1, 10]}
constants = {smoothness = 1, initial_gap = 5, gradient_noise = 1, gradient_divergence_sup = 1}
participation = {log = "trace.csv"}
"""
THEOREM = "arbitrary-participation/theorem-3.1"
CONSTANTS = "L=1 F=5 I=2 P=2 rho=0.7 sigma=1 nu=2 beta=0.5 delta=0 gamma=1e-3 eta=2"
COMPARED = f"compare {THEOREM}:sharp --vary T=10:100:log:3 {CONSTANTS}"
FEDAVG_SEARCH = f"adversary {THEOREM} --effort light"


class Case(NamedTuple):
    """A command line that writes: its words, the option with the value, what is written, what must not be called."""

    words: str
    out: str
    written: tuple[str, ...]
    work: str
    option: str = "--out"


FIGURE_FILES = ("x.png", "x.csv", "x.json")
REPORT_FILES = ("r/index.html", "r/report.json", "r/arbitrary-participation-theorem-3.1-sharp.png")
CASES = [
    Case("covers non-convex", "x.csv", ("x.csv",), "fedbounds.cli.covers.covers"),
    Case("show fedau/theorem-2 --graph", "x.png", FIGURE_FILES, "fedbounds.cli.catalog.edges_around"),
    Case("advise a.toml", "x.png", FIGURE_FILES, "fedbounds.empirical.monitoring.advise.advise"),
    Case(COMPARED, "x.csv", ("x.csv",), "fedbounds.cli.compare.compare_bounds"),
    Case(COMPARED, "x.png", FIGURE_FILES, "fedbounds.cli.compare.compare_bounds"),
    Case(COMPARED, "x.tex", ("x.tex",), "fedbounds.cli.compare.compare_bounds"),
    Case("compare --matrix", "x.csv", ("x.csv",), "fedbounds.cli.compare.comparability_matrix"),
    Case("compare --matrix", "x.svg", ("x.svg",), "fedbounds.cli.compare.comparability_matrix"),
    Case("table fedau/theorem-2", "x.tex", ("x.tex", "x.bib"), "fedbounds.bounds.comparison.rate_table.rate_table"),
    Case("explore --paper fedau", "e", ("e/fedau.html", "e/index.html"), "fedbounds.figures.explorer.document.script"),
    Case(FEDAVG_SEARCH, "x.json", ("x.json",), "fedbounds.empirical.falsification.adversary.adversary"),
    Case("adversary --paper fedau", "x.json", ("x.json",), "fedbounds.empirical.falsification.adversary_table.rows"),
    Case(f"certify {THEOREM} --form explicit", "x.json", ("x.json",), "fedbounds.cli.certify.certificate"),
    Case("results s.toml", "x.csv", ("x.csv",), "fedbounds.empirical.sweep.tabulate", "--csv"),
    Case(f"confront s.toml {THEOREM}", "x.png", FIGURE_FILES, "fedbounds.empirical.comparison.compare_sweep.make_runs"),
    Case("figure s.toml", "x.png", FIGURE_FILES, "fedbounds.figures.charts.sweep.execute"),
    Case("figure tightness", "x.png", FIGURE_FILES, "fedbounds.cli.figures._atlas"),
    Case("figure glyphs", "x.png", FIGURE_FILES, "fedbounds.cli.figures._samples"),
    Case("figure fedau/figure-1", "x.png", FIGURE_FILES, "fedbounds.figures.charts.paper_gallery.draw_by_name"),
    Case("figure fedau", "g", ("g/figure-1.png", "g/claims.csv"),
         "fedbounds.figures.charts.paper_gallery.draw_by_name"),
    Case("figure fedau/claims", "x.csv", ("x.csv",), "fedbounds.figures.papers.fedau.claims.all_claims"),
    Case(
        f"report s.toml --key {THEOREM}", "r", REPORT_FILES, "fedbounds.empirical.comparison.compare_sweep.make_runs"
    ),
    Case("report --paper fedau", "r", REPORT_FILES[:2], "fedbounds.figures.report.papers.result_document"),
    Case("demo --scale smoke", "d", ("d/periodic.png", "d/claims.csv"), "fedbounds.figures.papers."
         "arbitrary_participation.demonstration.Gallery"),
]  # fmt: skip
# paths that are read, or the folder of results, which holds nothing but files with the keys of runs as names
READ = {
    "advise setting", "adversary replay", "adversary merge", "run spec", "run out", "results spec", "results out",
    "check file", "confront spec", "confront logs", "confront results", "figure results", "figure data", "report spec",
    "report figures", "report results",
}  # fmt: skip


def commands() -> Iterator[tuple[str, click.Command]]:
    with click.Context(cli) as context:
        for name in COMMANDS:
            command = cli.get_command(context, name)
            assert command is not None
            yield name, command


def test_every_option_with_a_path_is_tested() -> None:
    writes: dict[str, set[str]] = {}
    for name, command in commands():
        kinds = {parameter.name: parameter for parameter in command.params}
        for own, parameter in kinds.items():
            if isinstance(parameter.type, OutputPath):
                writes.setdefault(name, set()).update(parameter.opts)
            elif isinstance(parameter.type, PathArgument):
                assert f"{name} {own}" in READ, f"{name} {own}: read or written?"
        assert ("force" in kinds) == (name in writes), f"{name}: --force belongs to what writes"
    tried = {(case.words.split()[0], case.option) for case in CASES}
    assert tried == {(name, option) for name, options in writes.items() for option in options}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("s.toml", RUNS), ("trace.csv", TRACE), ("a.toml", SETTING)):
        Path(name).write_text(text)
    return tmp_path


def never(*_: object, **__: object) -> None:
    raise AssertionError("the work has begun")


@pytest.mark.parametrize(
    ("case", "name"),
    [(case, name) for case in CASES for name in case.written],
    ids=lambda value: value if isinstance(value, str) else value.words.partition(" --vary")[0],
)
def test_a_file_of_the_users_is_kept_and_said_before_the_work(
    case: Case, name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _, function = case.work.rpartition(".")
    monkeypatch.setattr(f"{place}.{function}", never)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("mine\n")
    before = sorted(here.rglob("*"))
    status, out, err = run(*case.words.split(), case.option, case.out)
    said = f"fedbounds: cannot write {name!r}: it exists and fedbounds did not write it; give --force or another name"
    assert (status, out) == (2, "") and err.startswith(said) and err.count("\n") == 1, err
    assert Path(name).read_text() == "mine\n" and sorted(here.rglob("*")) == before
    with pytest.raises(AssertionError, match="the work has begun"):  # so it would, and so it does if forced
        run(*case.words.split(), case.option, case.out, "--force")
    if case.words.startswith("figure") and name == case.out:
        return  # into a directory it would be drawn by its name
    Path(name).unlink()
    Path(name).mkdir()
    status, _, err = run(*case.words.split(), case.option, case.out, "--force")
    assert status == 2 and f"cannot write {name!r}: it is a directory" in err, err


INPUTS = [
    ("advise a.toml --out trace.png", "trace.csv"),
    ("results s.toml --csv s.toml", "s.toml"),
    ("results s.toml --csv trace.csv", "trace.csv"),
    (f"confront s.toml {THEOREM} --out trace.png", "trace.csv"),
    ("figure s.toml --out trace.svg", "trace.csv"),
    (f"compare {THEOREM} --vary T=1,2 --from c.toml L=1 --out trace.csv rho=@trace.csv", "trace.csv"),
    ("adversary --replay w.json --out w.json", "w.json"),
    ("adversary --paper fedau --merge w.json --out w.json", "w.json"),
]


@pytest.mark.parametrize("spelling", ["as it is", "relative", "symbolic link", "hard link"])
@pytest.mark.parametrize(("line", "name"), INPUTS, ids=[line.partition(" --")[0] for line, _ in INPUTS])
def test_an_input_is_never_overwritten(line: str, name: str, spelling: str, here: Path) -> None:
    Path("c.toml").write_text("F = 5\n")
    Path("w.json").write_text('{"schema": "fedbounds.worst-ratios/1", "rows": []}')
    words = line.split()
    place = max(i for i, word in enumerate(words) if word in ("--out", "--csv")) + 1
    own = Path(words[place])
    if spelling == "relative":
        words[place] = f"../{here.name}/./{own}"
    elif spelling != "as it is":
        link = Path(f"link{Path(name).suffix}")
        link.symlink_to(name) if spelling == "symbolic link" else link.hardlink_to(name)
        words[place] = str(own.with_name(f"link{own.suffix}"))
    before = Path(name).read_bytes()
    for force in ([], ["--force"]):
        status, out, err = run(*words, *force)
        assert (status, out) == (2, "") and "it is an input of this command; give another name" in err, err
    assert Path(name).read_bytes() == before


def picture(height: float = 1.0):
    curve = Curve("line", np.arange(3.0), np.full(3, height))
    return panels({"": [curve]}, x_label="x", y_labels=["y"], title="t", caption="c", alternative="a")


def test_a_figure_is_drawn_again_in_any_format_and_no_other_file_is_touched(here: Path) -> None:
    for height, name in enumerate(("b.png", "b.svg", "b.png"), start=2):
        picture(height).save(name)
    assert sorted(json.loads(Path("b.json").read_text())["sha256"]) == ["b.csv", "b.png", "b.svg"]
    for name in ("b.csv", "b.png", "b.svg"):
        kept = Path(name).read_bytes()
        Path(name).write_bytes(kept + b"and a note of mine")
        with pytest.raises(FedboundsError, match=rf"cannot write '{name}': it exists and fedbounds did not write it"):
            picture().save(f"b.{'svg' if name == 'b.svg' else 'png'}")
        assert Path(name).read_bytes() == kept + b"and a note of mine"
        Path(name).write_bytes(kept)
    Path("part.csv").write_text("mine")
    with pytest.raises(FedboundsError, match=r"part\.csv.*force=True"):
        picture().save("part.pdf")
    assert Path("part.csv").read_text() == "mine" and not Path("part.pdf").exists()
    picture().save("part.pdf", force=True)
    assert Path("part.csv").read_text().startswith("curve,x,y")


def test_figures_are_copied_over_those_of_an_earlier_report(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedbounds.figures.report.papers.result_document", never)  # which comes after the copies
    for height in (1.0, 2.0):
        picture(height).save("drawn/x.png")
        with pytest.raises(AssertionError, match="the work has begun"):
            report_paper("fedau", "r", "drawn")
    assert Path("r/x.csv").read_bytes() == Path("drawn/x.csv").read_bytes()
    Path("r/x.csv").write_text("mine")
    picture().save("drawn/x.png")
    with pytest.raises(FedboundsError, match=r"x\.csv.*did not write it"):
        report_paper("fedau", "r", "drawn")


@pytest.mark.parametrize(
    "line", ["covers non-convex --out x.csv", "compare --matrix --out x.csv", f"{COMPARED} --out x.tex"]
)
def test_what_fedbounds_wrote_is_written_again(line: str, here: Path) -> None:
    for _ in range(2):
        status, _, err = run(*line.split())
        assert status == 0, err
        written = Path(line.split()[-1])
        write_output(Output(written), b"another table", force=True)  # or there would be nothing to write
    written.write_text(f"{written.read_text()}\n")  # a row of mine
    status, _, err = run(*line.split())
    assert status == 2 and "fedbounds did not write it" in err and written.read_text().endswith("\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [("trees.csv", "is valid,most dominant,note\n"), ("garden.csv", "seeds,status,key\n"), ("x.tex", "% written by f")],
)
def test_a_users_table_that_begins_as_ours_do_is_kept(name: str, text: str, here: Path) -> None:
    line = "results s.toml --csv" if name == "garden.csv" else f"{COMPARED} --out"
    Path(name).write_text(text)
    status, _, err = run(*line.split(), name)
    assert status == 2 and "fedbounds did not write it" in err and Path(name).read_text() == text


def test_a_table_replaces_the_data_of_a_figure(here: Path) -> None:
    for name in ("x.png", "x.csv"):
        status, _, err = run(*COMPARED.split(), "--out", name)
        assert status == 0, err


def test_a_certificate_that_was_changed_is_kept(here: Path) -> None:
    line = f"certify {THEOREM} --form explicit:I=P=1 --out proof.json".split()
    assert run(*line)[0] == 0 == run(*line)[0]
    proof = Path("proof.json")
    proof.write_text(proof.read_text().replace('"source": ', '"source":  '))
    assert run(*line)[0] == 2 and '"source":  ' in proof.read_text()


def test_the_list_of_what_was_written_is_no_file_of_the_users(here: Path) -> None:
    for name in ("x.csv", "y.csv"):
        write_output(Output(Path(name)), b"a table")
    listed = json.loads(Path(".fedbounds.json").read_text())
    assert [*listed["sha256"]] == ["x.csv", "y.csv"]
    Path("y.csv").unlink()
    write_output(Output(Path("x.csv")), b"another")
    assert [*json.loads(Path(".fedbounds.json").read_text())["sha256"]] == ["x.csv"]
    Path("z").mkdir()
    for mine in ('{"mine": 1}', ""):
        Path("z/.fedbounds.json").write_text(mine)
        write_output(Output(Path("z/x.csv")), b"a table", force=True)
        assert Path("z/.fedbounds.json").read_text() == mine
        with pytest.raises(FedboundsError, match="did not write it"):
            write_output(Output(Path("z/x.csv")), b"another")


@pytest.mark.parametrize(
    "line",
    [
        f"confront s.toml {THEOREM} --out KEY.png",
        "figure s.toml --out KEY.svg",
        "results s.toml --csv KEY.json",
        f"report s.toml --key {THEOREM} --out .",
        f"confront s.toml {THEOREM} --out sub/x.png",
    ],
)
def test_the_records_of_runs_are_never_overwritten(line: str, here: Path) -> None:
    assert run("run", "s.toml")[0] == 0
    folder = Path("results/s")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    key = next(path.stem for path in before if path.suffix == ".json")
    *words, place = line.replace("KEY", key).split()
    for force in ([], ["--force"]):
        status, out, err = run(*words, f"{folder}/{place}", *force)
        assert (status, out) == (2, "") and "holds the records of runs; give a name in another folder" in err, err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_labels_of_users_are_text_on_a_terminal_and_in_a_spreadsheet(here: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_, **__: False)  # as on a terminal
    red = RUNS.replace("[algorithm]", '[algorithms."\\u001b[31m\\u009bred\\u202e"]')
    Path("s.toml").write_text(
        red + red[red.index("[algorithms") :].replace("\\u001b[31m\\u009bred\\u202e", "=cmd|calc")
    )
    for words in (["run"], ["results"], ["results", "--csv", "x.csv"]):
        assert main([words[0], "s.toml", *words[1:]]) == 0
        out = "".join(capsys.readouterr())
        assert r"\x1b[31m\x9bred\u202e" in out and out == visible(out), out
    assert main(["show", "\x1b]0;title\x07"]) == 2 and visible(err := capsys.readouterr().err) == err
    rows = Path("x.csv").read_text()
    assert "\n'=cmd|calc," in rows and "\n=cmd" not in rows
    assert main(["figure", "s.toml", "--out", "x.svg", "--force"]) == 0
    assert "\n'=cmd|calc," in Path("x.csv").read_text()


def test_accounts_and_traces_are_saved_over_themselves_and_nothing_else(here: Path) -> None:
    account = ParticipationAccountant(3)
    trace = Trace({"round": np.arange(2)}, {"round": ("round",)}, {}, "", ())
    for thing, name in ((account, "x.json"), (trace, "x.npz")):
        Path(name).write_text("mine")
        with pytest.raises(FedboundsError, match="did not write it"):
            thing.save(name)
        assert Path(name).read_text() == "mine"
        thing.save(name, force=True)
        thing.save(name)
    with pytest.raises(FedboundsError, match=r"'x.json': it exists"):  # an account is no manifest of a figure
        picture().save("x.png")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("n" * 300 + ".csv", "File name too long"),
        ("s.toml/x.csv", "Not a directory|is not a directory"),
        ("loop/x.csv", "Too many levels of symbolic links"),
        ("/dev/full", "not a regular file"),
        ("pipe", "not a regular file"),
        (".", "no name of a file"),
        ("..", "is a directory"),
        ("/proc/x.csv", "nothing can be written|No such file|cannot write"),
        ("a\0b", "null"),
    ],
)
def test_a_place_that_cannot_be_written_is_one_line(path: str, said: str, here: Path) -> None:
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    with pytest.raises(FedboundsError, match=f"cannot write .*({said})") as raised:
        write_output(Output(Path(path)), b"content", force=True)
    assert "\n" not in str(raised.value)
    assert not Path("/dev/full").is_file() and Path("s.toml").read_text() == RUNS


def test_a_folder_that_may_not_be_entered_is_one_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("closed").mkdir()
    real = os.stat

    def refused(path, *args, **kwargs):
        if "closed/" in os.fspath(path):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(FedboundsError, match=r"cannot write 'closed/x\.csv': Permission denied"):
        check_outputs([Output(Path("closed/x.csv"))])
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr(os, "access", lambda place, mode: "closed" not in os.fspath(place))
    with pytest.raises(FedboundsError, match="nothing can be written into 'closed'"):
        check_outputs([Output(Path("closed/x.csv"))])


def test_the_longest_legal_name_can_be_written(here: Path) -> None:
    write_output(Output(Path("n" * 255)), b"content")
    assert Path("n" * 255).read_bytes() == b"content"


def test_inputs_are_what_is_read_and_what_a_document_names(here: Path) -> None:
    Path("deep").mkdir()
    Path("deep/log.csv").write_text("1")
    Path("deep/x.toml").write_text('a = [{log = "log.csv"}]\nb = "trace.csv"')
    names = ("deep/log.csv", "deep/x.toml", "trace.csv", "s.toml")
    with record_inputs():
        read_toml("deep/x.toml")
        read_text("s.toml", "it", 10**6)
        read_text("a.toml", "it", 10**6, noted=False)
        for name in names:
            with pytest.raises(FedboundsError, match="it is an input"):
                check_outputs([Output(Path(name))], force=True)
        check_outputs([Output(Path("a.toml"))], force=True)
    check_outputs([Output(Path(name)) for name in names], force=True)


def test_a_manifest_vouches_for_files_as_they_are(here: Path) -> None:
    Path("m.json").write_text('{"schema": "fedbounds.figure/1", "sha256": {"x.png": "0", "y.png": null, "z.png": []}}')
    for name in ("x.png", "y.png", "z.png"):
        Path(name).write_text("")
        with pytest.raises(FedboundsError, match="did not write it"):
            check_outputs([Output(Path(name), b"", (Path("m.json"),))])
    check_outputs([Output(Path("m.json"), FIGURE)])
    os.mkfifo("n.json")  # nothing waits for it
    with pytest.raises(FedboundsError, match="did not write it"):
        check_outputs([Output(Path("x.png"), b"", (Path("n.json"),))])
