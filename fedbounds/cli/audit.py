"""fedbounds audit and fedbounds refute: the verdict of every claim, and the replay of a counterexample."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from fedbounds.bounds.audit.audit_rows import ClaimRow, Progress, audit_rows, counts, ledger_entries
from fedbounds.bounds.audit.counterexample import Check, Erratum, Replay, format_fraction
from fedbounds.bounds.audit.counterexample_checker import judge_replay
from fedbounds.bounds.audit.errata import paper_errata, refuted_claims
from fedbounds.bounds.audit.ledger import differences, read_ledger, status, write_ledger
from fedbounds.bounds.audit.tested_conditions import Noticed, describe_untested, read_conditions
from fedbounds.bounds.audit.verdict import OUTCOMES, Contradiction, Verdict
from fedbounds.bounds.display.json_values import attributes
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.theory.registry import ALL_REFERENCES, REFERENCES, named_papers, paper, papers
from fedbounds.cli import completion
from fedbounds.cli.options import echo_written, emit, json_option, paper_option, print_answer

STATUSES = (*OUTCOMES, "order only", "unread")  # of forms of reference theorems
COLORS = {"proved": "green", "survived": "cyan", "argued": "yellow", "refuted": "red", "unknown": "yellow"}


@click.command("audit")
@click.argument("key", required=False, shell_complete=completion.keys)
@paper_option
@click.option("--verdict", "only", type=click.Choice(OUTCOMES), help="Show only claims with this verdict.")
@click.option("--all", "whole", is_flag=True, help="Show every claim, including proved steps and dimension checks.")
@click.option("--write", is_flag=True, help="Rewrite the ledger of --paper P, or of every paper that has one.")
@click.option("--no-cache", is_flag=True, help="Verify every claim, even if no source has changed.")
@json_option
def audit(
    key: str | None, wanted: str | None, only: str | None, whole: bool, write: bool, no_cache: bool, as_json: bool
) -> int:
    """Verify claims (those that start with KEY, or all) and compare the verdicts with the committed ledger.

    Without KEY, --verdict or --all the output omits proved steps, dimension checks and limits. Reference theorems are
    verified with --paper P or --paper references; without these the output counts their statuses in the ledger.

    Exits with 1 if a verdict differs from the ledger or two checkers contradict each other.
    """
    if key and key.endswith(".toml"):
        raise FedboundsError(f"a theorem file has no proof to audit; check its statement: fedbounds check {key}")
    if key and wanted and key.partition("/")[0] != wanted:
        raise FedboundsError(f"{key} is not a claim of {wanted}; give KEY or --paper, not both")
    if key and write:
        raise FedboundsError("--write rewrites the whole ledger of a paper; leave out KEY")
    one = wanted or (key or "").partition("/")[0]
    names = [loaded.key for loaded in (named_papers(one) if one else papers())]
    rows: list[ClaimRow] = []
    try:
        for name in names:
            with progress_line(name) as progress:
                rows += audit_rows(name, key or "", not no_cache, progress)
    except Contradiction as contradiction:
        click.echo(f"fedbounds: {contradiction}", err=True)
        return 1
    written = [
        write_ledger(name, ledger_entries(row for row in rows if row.paper == name))
        for name in names
        if write and (wanted or read_ledger(name))
    ]
    written = list(dict.fromkeys(written))  # reference theorems share a ledger
    lines, without = compare_with_ledgers(names, rows, key or "")
    chosen = [row for row in rows if only is None or row.verdict == only]
    if as_json:
        document = {
            "claims": [
                attributes(row, "id paper text kind verdict checker method evidence axioms flags may_hide")
                for row in chosen
            ],
            "counts": counts(rows),
            "differences": lines,
            "without_ledger": without,
            "conditions_not_tested": [
                {"form": row.form, "condition": row.text} for name in names for row in not_tested(name, key or "")
            ],
        }
        if not one:
            document["references"] = reference_statuses()
        emit("audit", document)
        return 1 if lines else 0
    shown_rows = chosen if key or only or whole else [row for row in chosen if not is_routine(row)]
    show_rows(shown_rows)
    show_counts([replace(row, paper=ALL_REFERENCES) for row in rows] if one == ALL_REFERENCES else rows)
    if left := len(chosen) - len(shown_rows):
        click.echo(f"{left} proved steps, units and limits are counted but not shown: --all shows them")
    if not one:
        click.echo(describe_references(reference_statuses()))
    for name in names:
        if name not in REFERENCES:
            show_conditions(name, key or "", whole)
    for name in without:
        click.echo(f"{name}: no ledger yet")
    echo_written(written)
    for line in lines:
        click.echo(f"DIFFERS  {line}")
    return 1 if lines else 0


def reference_statuses() -> dict[str, int]:
    """How many forms of reference theorems have which status, from their ledger."""
    found = Counter(
        status(result, form) for name in REFERENCES for result in paper(name).results for form in result.forms
    )
    return {status: found[status] for status in STATUSES if found[status]}


def describe_references(statuses: Mapping[str, int]) -> str:
    """The statuses of reference theorems in one line."""
    said = ", ".join(f"{number} {status}" for status, number in statuses.items())
    return f"{ALL_REFERENCES}, from their ledger: {said}; to verify them: fedbounds audit --paper {ALL_REFERENCES}"


def is_routine(row: ClaimRow) -> bool:
    """A step of a proof, a dimension check or a limit that is proved, without flags."""
    return row.kind in ("step", "units", "limit") and row.verdict == "proved" and not row.flags and not row.may_hide


def compare_with_ledgers(names: Sequence[str], rows: Sequence[ClaimRow], key: str) -> tuple[list[str], list[str]]:
    """One line per difference from the ledgers, of claims that start with key; and the papers without a ledger."""
    lines: list[str] = []
    without: list[str] = []
    for name in names:
        committed = read_ledger(name)
        if not committed:
            without.append(name)
            continue
        found = ledger_entries(row for row in rows if row.paper == name)
        lines += differences(found, {i: entry for i, entry in committed.items() if i.startswith(key)})
    return lines, without


def show_rows(rows: Sequence[ClaimRow]) -> None:
    """The table: columns on a terminal, one line per claim elsewhere."""
    if not sys.stdout.isatty():
        for row in rows:
            rests = f"  rests on {', '.join(row.axioms)}" if row.axioms else ""
            rests += f"  may hide {', '.join(row.may_hide)}" if row.may_hide else ""
            flags = "".join(f"  [{flag}]" for flag in row.flags)
            detail = f"{row.checker}, {row.method}: {row.evidence}" if row.verdict else row.text
            click.echo(f"{row.verdict or 'wording':<8}  {row.id}  {detail}{rests}{flags}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("claim", "verdict", "method", "evidence", "axioms", show_lines=False)
    for row in rows:
        verdict = Text(row.verdict or "wording", style=COLORS.get(row.verdict or "", ""))
        evidence = "\n".join([row.evidence or row.text, *(f"! {flag}" for flag in row.flags)])
        evidence += "".join(f"\n~ may hide {error}" for error in row.may_hide)
        method = f"{row.checker}: {row.method}" if row.verdict else ""
        table.add_row(Text(row.id), verdict, Text(method), Text(evidence), Text(", ".join(row.axioms)))
    Console().print(table)


def show_counts(rows: Sequence[ClaimRow]) -> None:
    """Print the number of claims of each kind and verdict, paper by paper."""
    for name, kinds in counts(rows).items():
        total = {outcome: sum(kind.get(outcome, 0) for kind in kinds.values()) for outcome in OUTCOMES}
        click.echo(f"{name}: " + ", ".join(f"{number} {outcome}" for outcome, number in total.items()))
        for kind, found in kinds.items():
            click.echo(f"  {kind:<10}  " + ", ".join(f"{number} {outcome}" for outcome, number in found.items()))


def not_tested(name: str, key: str) -> list[Noticed]:
    """The conditions of claims that start with key for which no checker notices a change."""
    return [row for row in read_conditions(name).values() if not row.tested and row.form.startswith(key)]


def show_conditions(name: str, key: str, whole: bool) -> None:
    """Print the conditions that are not tested: each one with a key or --all, else their number."""
    rows = not_tested(name, key)
    for row in rows if key or whole else ():
        click.echo(f"not tested  {row.form}  condition {row.text}: no checker notices a factor of 2")
    if not key:
        click.echo(f"{name}: {describe_untested(name)}{'; --all lists them' if rows and not whole else ''}")


@contextmanager
def progress_line(name: str) -> Iterator[Progress | None]:
    """The claim that is being verified, on standard error, if that is a terminal."""
    with progress_bar(name) as advance:
        yield None if advance is None else (lambda claim, done, total: advance(done, total, claim))


@click.command("refute")
@click.argument("claim", required=False, shell_complete=completion.errata)
@json_option
def refute(claim: str | None, as_json: bool) -> int:
    """Replay the counterexample to CLAIM: the id of a claim, of an erratum, or of a form that an erratum refutes.

    Exits with 0 if every hypothesis holds and the true side exceeds the claimed one, else with 1. Without CLAIM it
    lists every erratum.
    """
    if claim is None:
        listed = [(f"{loaded.key}/erratum/{e.id}", e) for loaded in papers() for e in paper_errata(loaded.key)]
        document = {"errata": [{"id": i, "where": e.where, "degree": e.degree} for i, e in listed]}
        print_answer(as_json, "refute", document, lambda: "\n".join(f"{i}   {e.where}   {e.degree}" for i, e in listed))
        return 0
    name, erratum = find_erratum(claim)
    verdict = judge_replay(erratum.replayed, erratum.hypotheses, erratum.id)
    document = refutation_document(name, erratum, verdict)
    print_answer(as_json, "refute", document, lambda: refutation_text(name, erratum, verdict))
    return 0 if verdict.outcome == "refuted" else 1


def find_erratum(wanted: str) -> tuple[str, Erratum]:
    """The erratum that the id of a claim, an erratum or a form names, with its paper."""
    exact: dict[str, tuple[str, Erratum]] = {}
    for loaded in papers():
        name = loaded.key
        for erratum in paper_errata(name):
            places = (erratum.id, f"{name}/erratum/{erratum.id}", f"{name}/repair/{erratum.id}")
            for place in (*places, *refuted_claims(erratum, name), *erratum.refutes):
                exact.setdefault(place, (name, erratum))
        for result in loaded.results:
            for form in result.forms:
                if form.refuted_by in exact:
                    exact.setdefault(f"{result.key}[{form.name}]", exact[form.refuted_by])
    if wanted not in exact:
        raise unknown_name("refutation", wanted, exact, "fedbounds refute")
    return exact[wanted]


def ledger_verdict(paper_name: str, claim: str) -> str:
    """The verdict of the committed ledger, empty if there is none."""
    return str(read_ledger(paper_name).get(claim, {}).get("verdict", ""))


def refutation_document(name: str, erratum: Erratum, verdict: Verdict) -> dict[str, Any]:
    """The content of the text for JSON; numbers as fractions and as decimals."""
    replay = erratum.replayed
    checks = [(c, False) for c in hypotheses(name, replay, legal=False)]
    checks += [(c, True) for c in hypotheses(name, replay, legal=True)]
    return {
        "claim": f"{name}/erratum/{erratum.id}",
        "paper": name,
        "paper_version": paper(name).version,
        "where": erratum.where,
        "text": erratum.claim,
        "degree": erratum.degree,
        "quotes": [attributes(quote, "text where") for quote in erratum.quotes],
        "verdict": verdict.outcome,
        "evidence": verdict.evidence,
        "flags": list(verdict.flags),
        "instance": replay.instance,
        "hypotheses": [
            {
                **attributes(c, "of text"),
                "legal": legal,
                "left": str(c.left),
                "op": c.op,
                "right": str(c.right),
                "holds": c.holds,
            }
            for c, legal in checks
        ],
        "lines": [{"text": line.text, "value": str(line.value), "decimal": float(line.value)} for line in replay.lines],
        "claimed": {"text": replay.sides[0], "value": str(replay.claimed), "decimal": float(replay.claimed)},
        "true": {"text": replay.sides[1], "value": str(replay.true), "decimal": float(replay.true)},
        "minimal": replay.minimal,
        "smaller": [{"text": s.text, "claimed": float(s.claimed), "true": float(s.true)} for s in replay.smaller],
        "refutes": list(refuted_claims(erratum, name)),
        "fails": erratum.fails,
        "instead": erratum.instead,
        "repair": [
            {"id": claim, "verdict": ledger_verdict(name, claim) or None}
            for claim in (f"{name}/repair/{erratum.id}", *(f"{name}/{local}" for local in erratum.repair))
        ],
    }


def refutation_text(name: str, erratum: Erratum, verdict: Verdict) -> str:
    """The counterexample line by line."""
    replay = erratum.replayed
    lines = [f"{name}/erratum/{erratum.id}   {erratum.where}   {erratum.degree}"]
    version = paper(name).version
    lines += [f"Version of the paper: {version}"] if version else []
    lines += [f"The paper: {quote}" for quote in erratum.quotes]
    wording = "in our words" if erratum.quotes else "paraphrased"
    lines += [f"Claim ({wording}): {erratum.claim}.", "", replay.instance]
    lines += ["", "Hypotheses", *(f"  {check}" for check in hypotheses(name, replay, legal=False))]
    legal = [f"  {check}" for check in hypotheses(name, replay, legal=True)]
    lines += ["", "Legal constants", *legal] if legal else []
    lines += ["", "Recomputed", *(f"  {line}" for line in replay.lines)]
    lines += ["", "Both sides", f"  {replay.comparison}", *minimal_lines(replay)]
    lines += ["", f"Verdict: {verdict.outcome}" + ("" if verdict.outcome == "refuted" else f" ({verdict.evidence})")]
    lines += [f"  {flag}" for flag in verdict.flags]
    lines += [f"  refutes {claim}" for claim in refuted_claims(erratum, name)]
    lines += ["", f"Why: {erratum.fails}", f"Instead: {erratum.instead}."]
    for claim in (f"{name}/repair/{erratum.id}", *(f"{name}/{local}" for local in erratum.repair)):
        known = ledger_verdict(name, claim)
        lines.append(f"  {claim}" + (f": {known}" if known else ""))
    return "\n".join(lines)


def hypotheses(name: str, replay: Replay, *, legal: bool) -> list[Check]:
    """The checks of an instance as the paper writes them: hypotheses, or the legal ranges of constants."""
    results = [r for p in papers() if p.key == name for r in p.results]
    conditions = {c.text: (c, c.as_printed(r.notation)) for r in results for f in r.forms for c in f.conditions}
    checks = []
    for check in replay.hypotheses:
        ours, printed = conditions.get(check.name, (None, None))
        if legal == (ours is not None and ours.legal):
            of = check.name if printed is None else printed.why if legal else printed.text
            checks.append(replace(check, of=of, text=of if legal else check.text))
    return checks


def minimal_lines(replay: Replay) -> list[str]:
    """The sense in which the instance is minimal, and smaller instances that refute nothing."""
    lines = [f"  minimal: {replay.minimal}"]
    for small in replay.smaller:
        sign = ">=" if small.true <= small.claimed else "<"
        lines.append(f"    {small.text}: {format_fraction(small.claimed)} {sign} {format_fraction(small.true)}")
    return lines
