"""fedbounds covers: the theorems that cover a setting described by properties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from fedbounds.bounds.advice.coverage import Coverage, Covered, covers
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_output
from fedbounds.bounds.theory.problem_class import ProblemClass
from fedbounds.bounds.theory.problem_class_terms import AXES, GROUPS
from fedbounds.bounds.theory.theorem_file import read_theorem_file
from fedbounds.cli.options import OutputPath, force_option, hanging, json_option, paper_option, print_answer

HEADINGS = {"covered": "Covered, if the assumptions to check hold", "if": "Covered if more is known"}


@click.command("covers")
@click.argument("words", nargs=-1, metavar="[PROPERTY, ...]")
@paper_option
@click.option("--all", "everything", is_flag=True, help="Include lemmas and results that are not about the objective.")
@click.option("--out", metavar="F.csv", type=OutputPath(), help="Write every form as a table.")
@force_option
@json_option
def covers_command(
    words: tuple[str, ...], wanted: str | None, everything: bool, out: str | None, force: bool, as_json: bool
) -> None:
    """List the theorems that cover a setting, and those that do not, with the reasons.

    A property is a phrase or AXIS=KIND; without properties the command lists them all. A theorem file in place of the
    properties stands for its `setting`.

    \b
    fedbounds covers non-convex, unknown rates, bounded heterogeneity, bounded variance
    fedbounds covers nonconvex strongly-concave minimax, uniform sampling, unequal local steps
    fedbounds covers cyclic participation, heterogeneity=bounded --paper arbitrary-participation
    fedbounds covers ./mine.toml
    """
    if not words:
        axes = {a.name: {k.name: k.meaning for k in a.kinds.values()} for a in AXES.values()}
        phrases = {p: [n, k.split()] for p, (n, k) in GROUPS.items()}
        print_answer(as_json, "vocabulary", {"axes": axes, "phrases": phrases}, vocabulary)
        return
    target = None if out is None else Path(out)
    if target is not None and target.suffix != ".csv":
        raise FedboundsError(f"{target}: unknown ending; the table of a setting ends in .csv")
    check_outputs([] if target is None else [Output(target)], force)
    found = covers(_setting_of(words[0]) if words[0].endswith(".toml") else " ".join(words), paper=wanted)
    if target is not None:
        write_output(Output(target), found.to_csv().encode(), force)
    print_answer(as_json, "covers", found.to_dict(), lambda: describe(found, everything), [target] if target else [])


def _setting_of(path: str) -> ProblemClass:
    """The setting of a theorem file."""
    setting = read_theorem_file(path).setting
    if setting is None:
        raise FedboundsError(f'{path} has no setting; add a line such as setting = "non-convex, local steps"')
    return setting


def vocabulary() -> str:
    """The properties of a setting, axis by axis: the kinds and the phrases for them."""
    lines = ["Properties of a setting, as PROPERTY, PROPERTY, ... or AXIS=KIND"]
    for axis in AXES.values():
        usual = f" (default: {axis.usual})" if axis.usual else ""
        lines += ["", f"{axis.name}: {axis.question}{usual}"]
        for kind in axis.kinds.values():
            lines += hanging(f"  {kind.name:<21} ", kind.meaning)
            lines += hanging(" " * 24 + "phrases: ", ", ".join(kind.phrases))
        several: dict[str, list[str]] = {}
        for phrase, (name, kinds) in GROUPS.items():
            if name == axis.name:
                several.setdefault(" or ".join(kinds.split()), []).append(phrase)
        for kinds, phrases in several.items():
            lines += hanging(f"  {', '.join(phrases)}: ", kinds)
    return "\n".join(lines)


def describe(found: Covered, everything: bool = False) -> str:
    """The setting as understood, then the results that cover it, may cover it, and do not, with the reasons."""
    shown = [row for row in found.results if everything or row.of_a_run]
    lines = [f"{name:<14} {' or '.join(kinds)}" for name, kinds in found.setting.said.items()]
    if supposed := found.setting.supposed:
        lines += hanging("by default     ", ", ".join(f"{name} {kind}" for name, kind in supposed.items()))
    if unspecified := found.setting.unsaid:
        lines += [f"not specified  {', '.join(unspecified)}"]
    for answer, heading in HEADINGS.items():
        rows = [row for row in shown if row.answer == answer and (everything or row.of_objective)]
        rows.sort(key=lambda row: row.place)
        lines += ["", f"{heading}{'' if rows else ': nothing'}"]
        for row in rows:
            lines += _covering(row, found.setting)
    if nearest := found.nearest:
        lines += ["", "Nearest theorem of each paper"]
        for row in nearest:
            lines += hanging(f"  {row.key} [{row.form}] ", f"excluded by {', '.join(a.name for a in row.excluded)}")
    lines += ["", "Not covered", *_excluded([row for row in shown if row.answer == "not covered"])]
    lines += ["", "Conditions on constants are not checked here: fedbounds eval KEY checks them."]
    hidden = [row for row in found.results if not row.of_objective and row.answer != "not covered"]
    if hidden and not everything:
        lines.append(f"{len(hidden)} more results cover it that are not about the objective of a whole run: --all")
    return "\n".join(lines)


def _covering(row: Coverage, setting: ProblemClass) -> Iterator[str]:
    mark = f", {row.mark}" if row.mark else ""
    yield f"  {row.key} [{row.form}{mark}]{f'   {row.about}' if row.about else ''}"
    yield from hanging("      bounds ", str(row.measure))
    if row.uses:
        yield from hanging("      uses ", ", ".join(row.uses))
    if row.only_if:
        kinds = (f"{name}: {_kinds(covered, setting.kinds(name))}" for name, covered in row.only_if.items())
        yield from hanging("      if ", "; ".join(kinds))
    if row.method:
        yield from hanging("      ensured by the algorithm: ", ", ".join(a.name for a in row.method))
    if row.you:
        yield from hanging("      to check: ", ", ".join(a.name for a in row.you))


def _kinds(covered: Sequence[str], possible: Sequence[str]) -> str:
    """The kinds that are covered, or the others if these are fewer."""
    others = [kind for kind in possible if kind not in covered]
    return f"not {' or '.join(others)}" if len(others) < len(covered) else " or ".join(covered)


def _excluded(rows: list[Coverage]) -> Iterator[str]:
    """A line for the results of a paper that the same assumptions exclude; then the statements of these."""
    for paper, of_paper in groupby(rows, lambda row: row.key.partition("/")[0]):
        by_assumptions: dict[tuple[str, ...], list[Coverage]] = {}
        for row in of_paper:
            by_assumptions.setdefault(tuple(a.name for a in row.excluded), []).append(row)
        yield f"  {paper}"
        for names, alike in by_assumptions.items():
            keys = ", ".join(row.key.partition("/")[2] for row in alike)
            yield from hanging(f"    by {', '.join(names)}: ", keys, 8)
        excluding = {a.name: a for alike in by_assumptions.values() for row in alike for a in row.excluded}
        for a in excluding.values():
            yield from hanging(f"      {a.name} [{a.label}] ", a.statement, 10)
