"""fedbounds covers: the theorems that cover a setting described in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap

import click

from fedbounds.bounds.advice.coverage import Coverage, Covered, covers
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_output
from fedbounds.bounds.theory.problem_class_terms import AXES, GROUPS
from fedbounds.cli.options import OutputPath, emit, force_option, json_option, paper_option

WIDTH = 118
HEADINGS = {"covered": "Covered, as far as you answer for what you are asked", "if": "Covered if more is known"}


@click.command("covers")
@click.argument("words", nargs=-1, metavar="[PROPERTY, ...]")
@paper_option
@click.option("--all", "everything", is_flag=True, help="Lemmas too, and what is not about a whole run.")
@click.option("--out", metavar="F.csv", type=OutputPath(), help="Every form, as a table.")
@force_option
@json_option
def covers_command(
    words: tuple[str, ...], wanted: str | None, everything: bool, out: str | None, force: bool, as_json: bool
) -> None:
    """Which theorems cover a setting, and which do not, and why.

    Without words it lists what can be said; AXIS=KIND says it exactly.

    \b
    fedbounds covers non-convex, unknown rates, bounded heterogeneity, bounded variance
    fedbounds covers nonconvex strongly-concave minimax, uniform sampling, unequal local steps
    fedbounds covers participation=in-turn heterogeneity=bounded --paper arbitrary-participation
    """
    if not words:
        if as_json:
            axes = {a.name: {k.name: k.meaning for k in a.kinds.values()} for a in AXES.values()}
            emit("vocabulary", {"axes": axes, "phrases": {p: [n, k.split()] for p, (n, k) in GROUPS.items()}})
        else:
            click.echo(vocabulary())
        return
    target = None if out is None else Path(out)
    if target is not None and target.suffix != ".csv":
        raise FedboundsError(f"{target}: the table of what covers a setting ends in .csv")
    check_outputs([] if target is None else [Output(target)], force)
    found = covers(" ".join(words), paper=wanted)
    if target is not None:
        write_output(Output(target), found.to_csv().encode(), force)
    if as_json:
        emit("covers", {**found.to_dict(), "written": [str(target)] if target else []})
        return
    click.echo(describe(found, everything))
    if target is not None:
        click.echo(f"written {target}")


def vocabulary() -> str:
    """What can be said, axis by axis: its kinds, and other words for them."""
    lines = ["What can be said of a setting, as PROPERTY, PROPERTY, ... or AXIS=KIND"]
    for axis in AXES.values():
        usual = f" (if nothing is said: {axis.usual})" if axis.usual else ""
        lines += ["", f"{axis.name}: {axis.question}{usual}"]
        for kind in axis.kinds.values():
            lines += _hanging(f"  {kind.name:<21} ", kind.meaning)
            lines += _hanging(" " * 24 + "says: ", ", ".join(kind.phrases))
        several: dict[str, list[str]] = {}
        for phrase, (name, kinds) in GROUPS.items():
            if name == axis.name:
                several.setdefault(" or ".join(kinds.split()), []).append(phrase)
        for kinds, phrases in several.items():
            lines += _hanging(f"  {', '.join(phrases)}: ", kinds)
    return "\n".join(lines)


def describe(found: Covered, everything: bool = False) -> str:
    """The setting as it was understood, then what covers it, what would, and what does not, with the reasons."""
    shown = [row for row in found.results if everything or row.of_a_run]
    lines = [f"{name:<14} {' or '.join(kinds)}" for name, kinds in found.setting.said.items()]
    if supposed := found.setting.supposed:
        lines += _hanging("taken as usual ", ", ".join(f"{name} {kind}" for name, kind in supposed.items()))
    if unsaid := found.setting.unsaid:
        lines += [f"not said       {', '.join(unsaid)}"]
    for answer, heading in HEADINGS.items():
        rows = sorted((row for row in shown if row.answer == answer), key=lambda row: row.mark != "")
        lines += ["", f"{heading}{'' if rows else ': nothing'}"]
        for row in rows:
            lines += _covering(row)
    lines += ["", "Not covered", *_excluded([row for row in shown if row.answer == "not covered"])]
    lines += ["", "Conditions on constants are not looked at here: fedbounds eval KEY says which hold."]
    if hidden := len(found.results) - len(shown):
        lines.append(f"{hidden} lemmas and other statements that are not about a whole run: --all")
    return "\n".join(lines)


def _covering(row: Coverage) -> Iterator[str]:
    mark = f", {row.mark}" if row.mark else ""
    yield f"  {row.key} [{row.form}{mark}]"
    yield from _hanging("      bounds ", str(row.measure))
    if row.only_if:
        yield from _hanging("      if ", "; ".join(f"{name}: {' or '.join(k)}" for name, k in row.only_if.items()))
    if row.method:
        yield from _hanging("      the method sees to ", ", ".join(a.name for a in row.method))
    if row.you:
        yield from _hanging("      you answer for ", ", ".join(a.name for a in row.you))


def _excluded(rows: list[Coverage]) -> Iterator[str]:
    """Results of one paper that the same assumptions exclude stand in one line; then what these say."""
    for paper, of_paper in groupby(rows, lambda row: row.key.partition("/")[0]):
        together: dict[tuple[str, ...], list[Coverage]] = {}
        for row in of_paper:
            together.setdefault(tuple(a.name for a in row.excluded), []).append(row)
        yield f"  {paper}"
        for names, alike in together.items():
            keys = ", ".join(row.key.partition("/")[2] for row in alike)
            yield from _hanging(f"    by {', '.join(names)}: ", keys, 8)
        said = {a.name: a for alike in together.values() for row in alike for a in row.excluded}
        for a in said.values():
            yield from _hanging(f"      {a.name} [{a.label}] ", a.statement, 10)


def _hanging(start: str, text: str, indent: int | None = None) -> Iterable[str]:
    """A text after its start, wrapped under itself."""
    return wrap(
        start + text,
        WIDTH,
        subsequent_indent=" " * (min(len(start), 30) if indent is None else indent),
        break_on_hyphens=False,
    )
