"""Options that several commands have, constants from the command line, and output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.json_values import json_value
from fedbounds.bounds.display.progress import Advance, progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.bounds.inputs.value_grammar import names_in, parse_assignments, parse_function
from fedbounds.bounds.theory.form_selection import split_key

WIDTH = 118  # of wrapped text

if TYPE_CHECKING:
    from fedbounds.bounds.evaluation.compiled_form import CompiledForm, CompiledResult
    from fedbounds.bounds.evaluation.evaluate import Evaluation
    from fedbounds.bounds.theory.result import Result


def complete_late(what: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """The function of this name in `fedbounds.cli.completion`, imported when it is called."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        return vars(import_module("fedbounds.cli.completion"))[what](context, parameter, incomplete)

    return complete


class Count(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  generic in newer versions alone
    """A whole number from the command line, by the one rule for counts: 10, 10.0 and 1e6 are whole, 10.5 is not."""

    name = "integer"

    def __init__(self, low: int = 1, high: int | None = None) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The value as an int."""
        what = param.opts[-1] if param else self.name
        if isinstance(value, str):
            plain_digits = value.strip().isascii() and value.strip().isdigit() and len(value) <= 19
            value = int(value) if plain_digits else parse_assignments({what: value})[what]
        return check_count(what, value, self.low, self.high)


class PathArgument(click.Path):
    """The path of a file or a folder; an empty name is an error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path as it was typed."""
        if not str(value).strip() or "\0" in str(value):
            self.fail(f"{value!r} is not a path; name a file or a folder", param, ctx)
        return super().convert(value, param, ctx)


class OutputPath(PathArgument):
    """The path of a file or a folder that a command writes; such a command has `force_option`."""


force_option = click.option(
    "--force", is_flag=True, help="Overwrite files that fedbounds did not write; never an input of the command."
)


def _split_key(context: click.Context, _parameter: click.Parameter, key: str | None) -> str | None:
    """The key of KEY or KEY:FORM; `_form_of` adds the form."""
    if key is None or "=" in key:
        return key
    context.meta["key"] = key
    return split_key(key)[0]


def _form_of(context: click.Context, _parameter: click.Parameter, form: str | None) -> str | None:
    """The form, from --form or from KEY:FORM."""
    return key_and_form(context.meta.get("key", ""), form)[1]


def key_and_form(word: str, form: str | None) -> tuple[str, str | None]:
    """The key of KEY or KEY:FORM, and the form, from it or from --form."""
    key, in_key = split_key(word)
    if form and in_key:
        raise FedboundsError(f"the form is given twice, {in_key!r} after the key and --form {form}; give it once")
    return key, form or in_key


key_argument = click.argument(
    "key", metavar="KEY[:FORM]", callback=_split_key, is_eager=True, shell_complete=complete_late("keys")
)
form_option = click.option(
    "--form",
    callback=_form_of,
    metavar="F",
    shell_complete=complete_late("forms"),
    help="A form by name or kind (printed, explicit, repaired, sharp).",
)
over_option = click.option(
    "--over",
    required=True,
    metavar="NAMES",
    shell_complete=complete_late("names"),
    help="Constants to optimize, e.g. --over gamma,eta.",
)
optimize_option = click.option(
    "--optimize",
    metavar="NAMES",
    default="",
    shell_complete=complete_late("names"),
    help="Constants to optimize at every setting, e.g. --optimize gamma,eta.",
)
paper_option = click.option(
    "--paper", "wanted", metavar="P", shell_complete=complete_late("papers"), help="Only this paper."
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=complete_late("constants"),
    help="Constants, e.g. --set L=1 gamma='1/(12*L)' p=0.1,0.35 p=@rates.csv "
    "(with p=0.1 N=50 every client has 0.1). May be repeated; NAME=VALUE may also "
    "stand alone after the key.",
)
from_option = click.option(
    "--from",
    "source",
    metavar="FILE.toml",
    shell_complete=complete_late("files"),
    help="A TOML file of constants; --set overrides it.",
)
assume_option = click.option(
    "--assume",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_late("assumptions"),
    help="Assume that this assumption holds; 'all' for every one. May be repeated.",
)
trust_option = click.option(
    "--trust",
    multiple=True,
    metavar="CLAIM",
    shell_complete=complete_late("keys"),
    help="Treat a result or a form as true although the audit has not proved it; answers are then conditional on it. "
    "May be repeated.",
)
within_option = click.option(
    "--within",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    shell_complete=complete_late("range_completion"),
    help="A range for an optimized constant, e.g. eta=1:100. May be repeated.",
)
effort_option = click.option(
    "--effort",
    type=float,
    default=1.0,
    show_default=True,
    metavar="X",
    help="Search effort: a multiple of the default number of evaluations.",
)
device_option = click.option(
    "--device", metavar="auto|cpu|cuda[:i]", help="Device of the simulation (default: the one in the file, else auto)."
)
results_option = click.option(
    "--results",
    metavar="DIR",
    type=PathArgument(),
    default="results",
    show_default=True,
    help="The folder of runs; finished ones are reused.",
)
workers_option = click.option(
    "--workers", type=Count(0, 1024), default=1, show_default=True, help="Local processes for missing runs."
)


def _allow_import(context: click.Context, _parameter: click.Parameter, allowed: bool) -> None:
    if allowed:
        from fedbounds.empirical.problems.own_network import allow_import

        context.with_resource(allow_import())


allow_import_option = click.option(
    "--allow-import",
    is_flag=True,
    expose_value=False,
    callback=_allow_import,
    help="Import the network of a sweep that is given as FILE.py:FACTORY or MODULE:FACTORY; this runs its code.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")

FIGURE_OPTIONS = (
    click.option("--width", metavar="column|page|IN", help="Width: column (3.5 inches), page (7 inches), or inches."),
    click.option("--title", metavar="TEXT", help="Title of the figure, in place of its own."),
    click.option("--no-title", is_flag=True, help="Leave the title out."),
    click.option("--xlabel", metavar="TEXT", help="Label of the x axis."),
    click.option("--ylabel", metavar="TEXT", help="Label of the y axis."),
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="KEY=TEXT",
        help="Text of a legend entry or a panel title; KEY is a result as it was given, or the entry (KEY==TEXT if it "
        "contains =). May be repeated.",
    ),
    click.option("--font-size", type=float, metavar="PT", help="Base font size in points (default: 9.5; column: 8)."),
    click.option("--style", metavar="SHEET", help="A matplotlib style sheet, by name or path, on top of ours."),
    click.option("--no-annotations", is_flag=True, help="Leave out the notes inside and above the panels."),
)


def figure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of figures; the command gets them as `drawing`, a `Drawing`."""

    @wraps(command)
    def collected(
        *args: Any,
        width: str | None,
        title: str | None,
        no_title: bool,
        xlabel: str | None,
        ylabel: str | None,
        labels: tuple[str, ...],
        font_size: float | None,
        style: str | None,
        no_annotations: bool,
        **rest: Any,
    ) -> Any:
        if no_title and title is not None:
            raise FedboundsError("--title and --no-title exclude each other; give one of them")
        given = {
            "width": width,
            "title": "" if no_title else title,
            "xlabel": xlabel,
            "ylabel": ylabel,
            "labels": _labels(labels) or None,
            "font_size": font_size,
            "style": style,
            "annotations": False if no_annotations else None,
        }
        return command(*args, drawing=Drawing({n: v for n, v in given.items() if v is not None}), **rest)

    for option in reversed(FIGURE_OPTIONS):
        collected = option(collected)
    return collected


def _labels(texts: Iterable[str]) -> dict[str, str]:
    """The labels of `--label KEY=TEXT`.

    Example:
        >>> _labels(["fedau/theorem-2=FedAU", "step=0.1==small"])
        {'fedau/theorem-2': 'FedAU', 'step=0.1': 'small'}
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("==" if "==" in text else "=")
        if not equals or not key.strip() or not value.strip():
            raise FedboundsError(f"--label {text!r} is not KEY=TEXT, e.g. --label fedau/theorem-2='FedAU'")
        if key in found:
            raise FedboundsError(f"--label gives {key} twice; give it once")
        found[key] = value
    return found


ONE_FIGURE = ("title", "xlabel", "ylabel", "labels")  # options that are about one figure
STYLE_OPTIONS = ("width", *ONE_FIGURE, "font_size", "style", "annotations")


@dataclass(frozen=True)
class Drawing:
    """The options of figures that were given."""

    given: Mapping[str, Any]

    def style(self) -> AbstractContextManager[None]:
        """What is drawn inside has this style; values that are not legal are an error."""
        from fedbounds.figures.charts.figure_style import styled

        return styled(**self.given)

    def check(self, reason: str = "", legal: Iterable[str] = STYLE_OPTIONS) -> None:
        """Refuse values that are not legal, and for a reason options that are not, before anything is computed."""
        if wrong := [_OPTION.get(name, f"--{name.replace('_', '-')}") for name in self.given if name not in legal]:
            raise FedboundsError(f"{', '.join(wrong)}: {reason}")
        if self.given:
            with self.style():
                pass

    def check_several(self) -> None:
        """Refuse the options that are about one figure."""
        legal = [name for name in STYLE_OPTIONS if name not in ONE_FIGURE]
        self.check("this writes several figures; draw one of them, or leave it out", legal)


_OPTION = {"labels": "--label", "annotations": "--no-annotations"}


def constants_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --set, --from and bare NAME=VALUE arguments."""
    bare = click.argument("bare", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=complete_late("constants"))
    return set_option(from_option(bare(command)))


def read_constants(settings: Iterable[str], source: str | None, bare: Iterable[str] = ()) -> dict[str, Any]:
    """Every constant given on the command line, as numbers and vectors."""
    return parse_assignments(_assignments(settings, source, bare))


def read_functions(
    result: Result | CompiledResult,
    over: Sequence[str],
    settings: Iterable[str],
    source: str | None,
    bare: Iterable[str] = (),
) -> tuple[dict[str, Any], dict[str, Callable[[float], float]]]:
    """The constants, and those that are functions of an optimized one, e.g. delta = sqrt(9/P) over P."""
    assignments = _assignments(settings, source, bare)
    if not over:
        return parse_assignments(assignments), {}
    from fedbounds.bounds.search.optimize import DEPENDS  # imports scipy

    texts: dict[str, tuple[str, str]] = {}  # name to the argument and the text
    for name, text in assignments.items():
        quantity = result.notation.resolve(name)
        for one in over:
            master = result.notation.resolve(one)
            if quantity is None or master is None or quantity.concept not in DEPENDS.get(master.concept, ()):
                continue
            for word in {master.name, master.concept} & names_in(text):
                texts[name] = word, str(text)
    constants = parse_assignments({name: value for name, value in assignments.items() if name not in texts})
    return constants, {name: parse_function(name, of, text, constants) for name, (of, text) in texts.items()}


def _assignments(settings: Iterable[str], source: str | None, bare: Iterable[str]) -> dict[str, object]:
    """Constants by name: text from the command line, or values of the file."""
    assignments: dict[str, object] = {}
    if source is not None:
        table = read_toml(source)
        for name, value in table.items():
            if isinstance(value, dict):
                raise FedboundsError(f"{source}: [{name}] is a table; write constants at the top level as NAME = VALUE")
            assignments[name] = value
    typed: set[str] = set()
    for text in (*settings, *bare):
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise FedboundsError(f"{text!r} is not NAME=VALUE, e.g. L=1 (no spaces around =)")
        if name in typed:
            raise FedboundsError(f"{name} is given twice on the command line; give it once")
        typed.add(name)
        assignments[name] = value
    return assignments


def constant_names(text: str) -> list[str]:
    """The names in a list such as "gamma,eta"."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise FedboundsError(f"{text!r} is not a list of constants, e.g. gamma,eta")
    return names


def ranges(within: Iterable[str]) -> dict[str, tuple[float, float]]:
    """The ranges of `--within NAME=LOW:HIGH`.

    Example:
        >>> ranges(["eta=1:1e2"])
        {'eta': (1.0, 100.0)}
    """
    found: dict[str, tuple[float, float]] = {}
    for text in within:
        name, equals, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        if not equals or not colon or not name.strip():
            raise FedboundsError(f"--within {text!r} is not NAME=LOW:HIGH, e.g. eta=1:100")
        values = parse_assignments({f"{name} from": low, f"{name} to": high}).values()
        if any(getattr(value, "ndim", 0) for value in values):
            raise FedboundsError(f"--within {text!r}: LOW and HIGH are one number each, e.g. eta=1:100")
        if name.strip() in found:
            raise FedboundsError(f"--within gives {name.strip()} twice; give it once")
        found[name.strip()] = tuple(float(value) for value in values)  # pyright: ignore[reportArgumentType]
    return found


def refuse_lists(result: Result | CompiledResult, constants: Mapping[str, Any]) -> None:
    """Refuse a list of values for a scalar constant, and point to `compare`."""
    for name, value in constants.items():
        quantity = result.notation.resolve(name)
        if quantity is not None and not quantity.shape and getattr(value, "ndim", 0):
            listed = ",".join(f"{v:g}" for v in value[:6]) + (",..." if len(value) > 6 else "")
            raise FedboundsError(
                f"{name} = {listed} is a list; {name} is one number here. To vary it: "
                f"fedbounds compare {result.key} --vary {name}={listed}"
            )


def emit(schema: str, document: Mapping[str, Any]) -> None:
    """Print one JSON document, with its schema and the version of fedbounds."""
    click.echo(
        json.dumps({"schema": f"fedbounds.{schema}/1", "version": __version__, **json_value(document)}, indent=2)
    )


def print_answer(
    as_json: bool,
    schema: str,
    document: Mapping[str, Any],
    text: Callable[[], str] | None = None,
    written: Iterable[Path | str] | None = None,
) -> None:
    """Print a JSON document, or a text and the files that the command wrote."""
    if as_json:
        emit(schema, document if written is None else {**document, "written": [str(path) for path in written]})
        return
    if text is not None:
        click.echo(text())
    echo_written(written or ())


def echo_written(paths: Iterable[Path | str]) -> None:
    """Print the files that a command wrote, one a line."""
    for path in paths:
        click.echo(f"written {path}")


def hanging(start: str, text: str, indent: int | None = None) -> list[str]:
    """A text after its start, wrapped; the next lines are indented like the text, at most by 30."""
    under = " " * (min(len(start), 30) if indent is None else indent)
    return wrap(start + text, WIDTH, subsequent_indent=under, break_on_hyphens=False)


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def evaluations_bar() -> AbstractContextManager[Advance | None]:
    """A bar of the evaluations that a search has used."""
    return progress_bar("evaluations, at most")


def guarantee_line(evaluation: Evaluation, option: str) -> str:
    """Whether the bound at an answer is a guarantee, the reasons if not, and the option that assumes them."""
    if evaluation.guarantee:
        return evaluation.guarantee_text
    hint = f" (to assume them: {option})" if "not checked" in evaluation.assumptions.values() else ""
    return f"no: {'; '.join(evaluation.why_not)}{hint}"


def caveats(form: CompiledForm, constants: Iterable[str]) -> list[str]:
    """Reasons why no value of this form is a guarantee, and the given constants that it does not use."""
    standing = form.standing()
    found = [f"hides {form.hides}; every hidden constant is taken as 1"] if form.order_only else []
    found += [said] if (said := standing.shadow) else []
    idle = [f"  not used by this form: {', '.join(names)}"] if (names := form.unused(constants)) else []
    trusted = [f"  conditional on {words}"] if (words := standing.untried) else []
    reading = [f"  {form.implicit}"] if form.implicit else []
    return [f"  no guarantee: [{form.name}] {reason}" for reason in found] + reading + trusted + idle
