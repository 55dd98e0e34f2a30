"""fedbounds check: a theorem file, checked as a linter checks code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from fedbounds.bounds.advice.theorem_check import Finding, check_result, worst
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.theory.theorem_file import TheoremFile, read_theorem_file
from fedbounds.cli import options
from fedbounds.cli.options import Count, PathArgument

MARKS = {"ok": "ok     ", "warning": "warning", "error": "error  "}


@click.command("check")
@click.argument("file", metavar="THEOREM.toml", type=PathArgument())
@click.option("--seed", type=Count(0), default=0, show_default=True, help="Of the search for a violation.")
@click.option("--no-search", is_flag=True, help="Leave out the search for a run that violates the bound.")
@options.json_option
def check(file: str, seed: int, no_search: bool, as_json: bool) -> int:
    """Check the statement of a theorem file.

    Units of every term, condition and step size; conditions that never bind or cannot hold together; step sizes that
    violate a condition; signs, monotonicity and limits; and a search for a run of the algorithm, with an exact
    left-hand side, that violates the bound. Exits with 1 if there is an error.

    \b
    fedbounds check ./mine.toml
    """
    theorem = read_theorem_file(file)
    findings = list(check_result(theorem.result))
    if not no_search:
        findings += _search(theorem, seed)
    document = {"file": file, "key": theorem.result.key, "findings": [_row(theorem, one) for one in findings]}
    options.print_answer(as_json, "check", document, lambda: describe(theorem, findings))
    return 1 if worst(findings) == "error" else 0


def _search(theorem: TheoremFile, seed: int) -> list[Finding]:
    from fedbounds.empirical.falsification.theorem_search import search_violation

    found = []
    for form in theorem.result.forms:
        with progress_bar(f"runs of {theorem.result.key}[{form.name}]") as progress:
            found.append(search_violation(theorem, form, seed, progress))
    return found


def _row(theorem: TheoremFile, finding: Finding) -> dict[str, Any]:
    return {**finding.to_dict(), "line": theorem.line(finding.place) or None}


def describe(theorem: TheoremFile, findings: Sequence[Finding]) -> str:
    """A line for each finding, with the line of the file that it is about, and the constants at which it shows."""
    several = len(theorem.result.forms) > 1
    lines = [f"{theorem.result.key}   {theorem.result.file}", ""]
    for one in findings:
        number = theorem.line(one.place) if one.place else 0
        where = f"line {number}" if number else ""
        form = f"[{one.form}] " if several else ""
        lines += options.hanging(f"{MARKS[one.level]}  {one.check:<11} {where:<8} ", f"{form}{one.text}")
        if one.at and one.level != "ok":
            lines += options.hanging(" " * 30 + "at ", one.shown_at)
    counts = [f"{sum(f.level == level for f in findings)} {level}" for level in ("error", "warning", "ok")]
    return "\n".join([*lines, "", ", ".join(counts)])
