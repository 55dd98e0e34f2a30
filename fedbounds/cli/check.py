"""fedbounds check: a theorem file as a linter checks code; a training configuration or a step size under a theorem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fedbounds.bounds.advice.reference_check import compare_with_references
from fedbounds.bounds.advice.symbol_check import check_symbols, describe_symbols
from fedbounds.bounds.advice.theorem_check import Finding, check_result, summarize_checks, worst
from fedbounds.bounds.display.plain_text import both_sides, number
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.theorem_file import TheoremFile, read_theorem_file
from fedbounds.cli import options
from fedbounds.cli.options import Count, PathArgument

if TYPE_CHECKING:
    from fedbounds.bounds.advice.step_formula import FormulaCheck, StepFormula
    from fedbounds.empirical.comparison.run_legality import RunLegality

MARKS = {"ok": "ok     ", "warning": "warning", "error": "error  "}
APPLIES = {  # what is checked -> the options that are about it
    "a theorem file": ("seed", "no_search", "worst_case"),
    "a run file": ("against", "assume", "settings", "source"),
    "--step": ("steps", "against", "settings", "source"),
}
OTHER_NAMES = {"local-sgd": "fedavg", "local-gd": "fedavg", "sgd": "minibatch-sgd"}  # of kinds of algorithms
OF_RUN = ("problem", "problems", "participations", "algorithms", "rounds")  # keys that only a run file has


@click.command("check")
@click.argument("file", metavar="[FILE.toml]", required=False, type=PathArgument())
@options.constants_options
@click.option(
    "--against",
    multiple=True,
    metavar="KEY[:FORM]",
    shell_complete=options.complete_late("keys"),
    help="The theorem for a training configuration or for --step. May be repeated.",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="[NAME=]FORMULA",
    help="A formula of a step size, e.g. --step '1/(8*L*I)', or --step gamma='1/(8*L*I)' where there are several. "
    "May be repeated.",
)
@options.assume_option
@click.option("--seed", type=Count(0), default=0, show_default=True, help="Of the search for a violation.")
@click.option("--no-search", is_flag=True, help="Leave out the search for a run that violates the bound.")
@click.option("--worst-case", is_flag=True, help="Compute exact worst cases of small settings (extra worst-case).")
@options.json_option
def check(
    file: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    against: tuple[str, ...],
    steps: tuple[str, ...],
    assume: tuple[str, ...],
    seed: int,
    no_search: bool,
    worst_case: bool,
    as_json: bool,
) -> int:
    """Check a theorem file, a training configuration, or a formula of a step size.

    A theorem file: the meaning of every symbol; units of every term, condition and step size; conditions that never
    bind or cannot hold together; step sizes that violate a condition; signs, monotonicity and limits; constants without
    an assumption of the setting, and the reverse; the reference theorems of its class; and a search for a run of the
    algorithm, with an exact left-hand side, that violates the bound. Exits with 1 if there is an error.

    A training configuration (a file of fedbounds run): whether a theorem covers it, which condition fails and the
    largest legal step size, what excludes it, and which constants must be given. Nothing is trained. Exits with 1 if
    every theorem excludes it, with 0 if one covers it or the answer is undecided (--json has the answer).

    --step: whether a formula meets every condition on a step size for all constants. Exits with 1 if it does not.

    \b
    fedbounds check ./mine.toml
    fedbounds check examples/fedau.toml --against fedau/theorem-2 L=1
    fedbounds check --against fedau/theorem-2 --step gamma="1/(20*L*I)" eta=1
    """
    if file is not None and "=" in file and not Path(file).exists():  # constants without a file
        file, bare = None, (file, *bare)
    given = options.read_constants(settings, source, bare)
    if steps:
        _refuse_other_options("--step")
        return _check_steps(file, against, steps, given, as_json)
    if file is None:
        raise FedboundsError("FILE.toml is missing: give a theorem file or a run file, or --step with --against")
    document = read_toml(file, names_files=False)
    if _is_run(document):
        _refuse_other_options("a run file")
        return _check_run(file, against, given, assume, as_json)
    _refuse_other_options("a theorem file")
    if given:
        raise FedboundsError(
            f"{file} is a theorem file: constants are for a run file or --step; for its value at these constants run: "
            f"fedbounds eval {file} {' '.join(bare or settings)}"
        )
    if no_search and _is_given("seed"):
        raise FedboundsError("--seed is for the search for a violation, which --no-search leaves out; give one of them")
    theorem = read_theorem_file(file)
    findings = [*check_result(theorem.result), *check_symbols(theorem), *compare_with_references(theorem)]
    unknown = _unknown_algorithm(theorem)
    findings += unknown
    if not no_search and not unknown:
        findings += _search(theorem, seed)
    if worst_case:
        findings += _worst_cases(theorem)
    left_out = _left_out(theorem, "--no-search" if no_search else "unknown algorithm" if unknown else "", worst_case)
    passed, left_out = summarize_checks(theorem.result, findings, left_out)
    answer = {
        "file": file,
        "key": theorem.result.key,
        "symbols": describe_symbols(theorem),
        "findings": [_row(theorem, one) for one in findings],
        "passed": passed,
        "not_made": left_out,
    }
    options.print_answer(as_json, "check", answer, lambda: describe(theorem, findings, passed, left_out))
    return 1 if worst(findings) == "error" else 0


def _is_run(document: Mapping[str, Any]) -> bool:
    """Whether a file is a training configuration and no theorem file."""
    return "measure" not in document and any(key in document for key in OF_RUN)


def _is_given(name: str) -> bool:
    """Whether an option stands on the command line."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _refuse_other_options(checked: str) -> None:
    """Refuse the options that are given and are not about what is checked."""
    others = {name for names in APPLIES.values() for name in names} - {*APPLIES[checked]}
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if name in others and _is_given(name):
            option = parameter.opts[0]
            about = " or ".join(kind for kind, names in APPLIES.items() if name in names)
            raise FedboundsError(f"{option} is for {about}, and this command checks {checked}; leave out {option}")


def _search(theorem: TheoremFile, seed: int) -> list[Finding]:
    from fedbounds.empirical.falsification.theorem_search import search_violation

    found = []
    for form in theorem.result.forms:
        with progress_bar(f"runs of {theorem.result.key}[{form.name}]") as progress:
            found.append(search_violation(theorem, form, seed, progress))
    return found


def _unknown_algorithm(theorem: TheoremFile) -> list[Finding]:
    """An error if the kind of the algorithm is another name or a misspelling of a known one."""
    from fedbounds.empirical.algorithms.spec import algorithms

    kind = theorem.algorithm
    known = {*algorithms(), *(result.algorithm for one in papers(references=True) for result in one.results)} - {""}
    if not kind or kind in known:
        return []
    near = [OTHER_NAMES[kind]] if kind in OTHER_NAMES else get_close_matches(kind, known, n=1, cutoff=0.8)
    text = f"unknown algorithm {kind!r}; did you mean {' '.join(near)}?"
    variant = any(kind.startswith(f"{one}-") for one in near)  # as scaffold-m, a method of its own
    return [Finding("error", "algorithm", "", text, ("algorithm",))] if near and not variant else []


def _left_out(theorem: TheoremFile, no_search: str, worst_case: bool) -> dict[str, str]:
    """Why checks against other theorems and runs are not made."""
    found = {"search": no_search} if no_search else {}
    if theorem.setting is None or theorem.result.measure.lower:
        found["references"] = "it is a lower bound" if theorem.setting else "the file has no setting"
    if theorem.setting is None:
        found["symbols"] = "the file has no setting"
    return found if worst_case else {**found, "worst case": "add --worst-case"}


def _worst_cases(theorem: TheoremFile) -> list[Finding]:
    from fedbounds.empirical.falsification.theorem_worst_cases import worst_case_finding

    return [worst_case_finding(theorem, form) for form in theorem.result.forms]


def _row(theorem: TheoremFile, finding: Finding) -> dict[str, Any]:
    return {**finding.to_dict(), "line": theorem.line(finding.place) or None}


def describe(
    theorem: TheoremFile, findings: Sequence[Finding], passed: Sequence[str], left_out: Mapping[str, str]
) -> str:
    """A line for each symbol and for each finding, with its line in the file and the constants at which it shows.

    Then the checks that passed, and those that were not made.
    """
    several = len(theorem.result.forms) > 1
    lines = [f"{theorem.result.key}   {theorem.result.file}", ""]
    for row in describe_symbols(theorem):
        concept = f"concept {row['concept']}" if row["concept"] else "no concept"
        lines += options.hanging(f"{row['name']:<8}  ", f"{row['meaning']}   ({concept})")
    lines.append("")
    for one in findings:
        place = theorem.line(one.place) if one.place else 0
        where = f"line {place}" if place else ""
        form = f"[{one.form}] " if several and one.form else ""
        lines += options.hanging(f"{MARKS[one.level]}  {one.check:<11} {where:<8} ", f"{form}{one.text}")
        if one.at and one.level != "ok":
            lines += options.hanging(" " * 30 + "at ", one.shown_at)
    counts = [f"{sum(f.level == level for f in findings)} {level}" for level in ("error", "warning", "ok")]
    lines += ["", *options.hanging("passed: ", ", ".join(passed) or "none")]
    if left_out:
        lines += options.hanging("not made: ", "; ".join(f"{check} ({why})" for check, why in left_out.items()))
    return "\n".join([*lines, ", ".join(counts)])


# --- a training configuration ---------------------------------------------------------------------------------------


def _check_run(
    file: str, against: Sequence[str], given: Mapping[str, Any], assume: Sequence[str], as_json: bool
) -> int:
    from fedbounds.empirical.comparison.run_legality import answer_of, check_sweep
    from fedbounds.empirical.sweep import read_sweep

    found = check_sweep(read_sweep(file), against, given, assume)
    answers = {label: answer_of(rows) for label, rows in found.items()}
    rows = [
        {"label": label, "answer": answers[label], "theorems": [row.to_dict() for row in rows]}
        for label, rows in found.items()
    ]
    options.print_answer(as_json, "check-run", {"file": file, "settings": rows}, lambda: describe_run(file, found))
    return 1 if "not legal" in answers.values() else 0


def describe_run(file: str, found: Mapping[str, Sequence[RunLegality]]) -> str:
    """A block for each theorem of each setting."""
    from fedbounds.empirical.comparison.run_legality import answer_of

    lines = []
    for label, rows in found.items():
        lines += [f"{file}   {label}"]
        for row in rows:
            lines += ["", *_block(row)]
        lines.append("")
    answers = [answer_of(rows) for rows in found.values()]
    counts = f"{answers.count('legal')} of {len(found)} settings"
    if "undecided" in answers and len(found) > 1:
        counts += f", undecided: {answers.count('undecided')}"
    words = {"legal": "yes", "undecided": "undecided", "not legal": "no"}
    whole = f"legal under at least one theorem: {counts if len(found) > 1 else words[answers[0]]}"
    undecided = [rows for rows in found.values() if answer_of(rows) == "undecided"]
    if undecided and (needed := _what_to_give(undecided[0])):
        whole += f": give {needed}"
    return "\n".join([*lines, *options.hanging("", whole)])


def _what_to_give(rows: Sequence[RunLegality]) -> str:
    """The constants and assumptions of the first theorem that is undecided."""
    first = next(row for row in rows if row.answer == "undecided")
    return " ".join([*(f"{name}=VALUE" for name in first.missing), *(f"--assume {name}" for name in first.to_assume)])


def _block(row: RunLegality) -> Iterator[str]:
    yield f"  {row.claim}: {row.answer}"
    for c in row.conditions:
        sign = "<" if c.left < c.right else ">" if c.left > c.right else "="
        text = f"{c.text}   ({both_sides(float(c.left), float(c.right), f' {sign} ')})"
        if not np.all(c.holds) and c.limits and c.limit:
            text += f"; {'largest' if c.condition.printed().caps else 'smallest'} legal {c.limits}: {c.limit}"
        yield from options.hanging(f"    {'holds' if np.all(c.holds) else 'fails'}  ", text)
    for text in row.open_conditions:
        yield from options.hanging("    open   ", text)
    for reason in row.reasons:
        yield from options.hanging("    excluded: ", reason, 6)
    if row.missing:
        names = ", ".join(f"{name} ({meaning})" for name, meaning in row.missing.items())
        example = " ".join(f"{name}=VALUE" for name in row.missing)
        yield from options.hanging("    give ", f"{names}: {example}", 6)
    if row.to_assume and row.answer != "not legal":
        words = " ".join(f"--assume {name}" for name in row.to_assume)
        yield from options.hanging("    give ", f"those of these assumptions that hold: {words}", 6)
    for note in row.notes:
        yield from options.hanging("    note: ", note, 6)
    if row.checked and row.answer != "not legal":
        yield from options.hanging("    assumptions that hold: ", ", ".join(row.checked), 6)
    if row.not_checked and row.answer != "not legal":
        yield from options.hanging("    assumed, not checked: ", ", ".join(row.not_checked), 6)


# --- a formula of a step size ---------------------------------------------------------------------------------------


def _check_steps(
    file: str | None, against: Sequence[str], steps: Sequence[str], given: Mapping[str, Any], as_json: bool
) -> int:
    from fedbounds.bounds.advice.step_formula import check_formulas

    if file is not None and Path(file).is_file() and _is_run(read_toml(file, names_files=False)):
        raise FedboundsError(f"{file} is a run file: leave it out, and name the theorems for --step with --against")
    keys = [*against, *([file] if file else [])]
    if not keys:
        raise FedboundsError("--step needs a theorem: give --against KEY, e.g. --against fedau/theorem-2")
    if several := [name for name, value in given.items() if np.ndim(value)]:
        raise FedboundsError(f"{several[0]} is a list; with --step each constant is one number")
    texts: dict[str, str] = {}
    for text in steps:
        name, equals, formula = text.partition("=")
        name, formula = (name.strip(), formula) if equals else ("", text)
        if name in texts:
            raise FedboundsError(f"--step {name or text!r} is given twice; give it once, or name the step sizes")
        texts[name] = formula
    found = []
    for key in keys:
        name, form = options.split_key(key)
        result = load(name)
        numbers = {n: float(v) for n, v in given.items()}
        found.append(check_formulas(result, result.form(form), texts, numbers))
    answer = {"theorems": [one.to_dict() for one in found]}
    options.print_answer(as_json, "check-step", answer, lambda: "\n\n".join(map(describe_formula, found)))
    return 0 if all(one.legal for one in found) else 1


def describe_formula(found: StepFormula) -> str:
    """A line for each condition, and the largest factor."""
    from fedbounds.bounds.advice.step_formula import describe_factor

    lines = [f"{found.claim}   {', '.join(f'{name} = {text}' for name, text in found.formulas.items())}"]
    for fault in found.unit_faults:
        lines += options.hanging("  error  units  ", fault)
    if not found.unit_faults:
        lines.append("  ok     units  each formula has the unit of its step size")
    for one in found.checks:
        lines += _condition_lines(one)
    return "\n".join(lines if found.unit_faults else [*lines, f"  {describe_factor(found)}"])


def _condition_lines(one: FormulaCheck) -> Iterator[str]:
    words = {"holds": "holds for all constants", "fails": "fails", "no counterexample": one.how}
    text = f"{one.condition}   {words[one.answer]}"
    if one.answer == "fails" and one.at:
        text += f" at {', '.join(f'{name}={number(value)}' for name, value in one.at.items())}"
    if one.answer == "fails" and one.left == one.left:
        text += f" ({both_sides(one.left, one.right)})"
    if one.answer == "holds":
        text += f": {one.how}"
    mark = {"holds": "ok   ", "fails": "error", "no counterexample": "open "}[one.answer]
    yield from options.hanging(f"  {mark}  ", text)
    if one.ratio and one.answer == "fails":
        yield from options.hanging("         ", f"{one.step} over its largest legal value: {one.ratio}")
