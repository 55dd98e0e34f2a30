"""The verdicts of the committed ledgers: a page for each result, a table and a note to the authors for each paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from fedbounds.bounds.audit.counterexample import Degree, Erratum, Replay, Wording, format_fraction
from fedbounds.bounds.audit.errata import (
    DEGREES,
    describe_findings,
    paper_errata,
    paper_supplements,
    paper_wording,
    refuted_claims,
)
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.audit.tested_conditions import untested_conditions
from fedbounds.bounds.audit.verdict import CHECKERS, OUTCOMES
from fedbounds.bounds.comparison.worst_ratios import describe_row, worst_ratio
from fedbounds.bounds.theory.registry import PAPERS, paper
from fedbounds.bounds.theory.result import Form, Result
from prebuild.examples import example
from prebuild.statements import displayed, plain

KINDS = {  # what a claim's id says of its kind; the first that fits
    "units of forms": r"\]/units$",
    "forms of results": r"\]$",
    "limits": r"^[^/]+/limit/",
    "unstated assumptions": r"^[^/]+/unstated/",
    "errata": r"^[^/]+/erratum/",
    "what holds instead": r"^[^/]+/repair/",
    "steps of proofs": "",
}


def result_pages() -> dict[str, str]:
    """The page of each result of the audited papers, by its name."""
    return {f"results/{result.key}.md": "\n\n".join(result_page(result)) for result in tried()}


def tried() -> Iterator[Result]:
    """The results of the audited papers."""
    return (result for name in PAPERS if paper_errata(name) for result in paper(name).results)


def counted(name: str) -> str:
    """The number of claims of each kind with each verdict, as a table (errata by severity), and of findings."""
    return "\n".join(counts(name))


def counts(name: str) -> Iterator[str]:
    """The lines of that table."""
    degrees = {f"{name}/erratum/{erratum.id}": erratum.degree for erratum in paper_errata(name)}
    found = {kind: Counter[str]() for kind in row_names()}
    for claim, entry in read_ledger(name).items():
        kind = next(kind for kind, ids in KINDS.items() if re.search(ids, claim))
        found[row_name(kind, degrees.get(claim, ""))][str(entry["verdict"])] += 1
    yield "| | " + " | ".join(OUTCOMES) + " |"
    yield "|---" * (len(OUTCOMES) + 1) + "|"
    for kind, verdicts in found.items():
        if verdicts:
            yield f"| {kind} | " + " | ".join(str(verdicts[outcome] or "") for outcome in OUTCOMES) + " |"
    yield ""
    yield f"Claims are not findings: one remark may refute several. There are {describe_findings(name)}."


def row_name(kind: str, degree: str = "") -> str:
    """A row of the table: a kind of claim, errata by severity."""
    return f"{kind}: {degree}" if degree else kind


def row_names() -> Iterator[str]:
    """The rows of the table, in its order."""
    for kind in KINDS:
        yield from (row_name(kind, degree) for degree in get_args(Degree)) if kind == "errata" else ()
        yield kind


def verdict(name: str, claim: str) -> str:
    """The verdict of a claim in the ledger, in words."""
    entry = read_ledger(name).get(claim)
    if entry is None:
        return "not verified yet"
    checker, axioms = str(entry["checker"]), entry.get("axioms")
    trusts = f"; it trusts {plain(', '.join(axioms))}" if isinstance(axioms, list) and axioms else ""
    return f"**{entry['verdict']}** ({CHECKERS.get(checker, plain(checker))}{trusts})"


def result_page(result: Result) -> Iterator[str]:
    """One result: its statement, and every form as a claim with its verdict, and why it fails where it does; after the
    default form an example."""
    yield f"# {result.title}\n\n`{result.key}` ({result.source})"
    yield plain(result.statement)
    errata = {erratum.id: erratum for erratum in paper_errata(result.paper)}
    for form in sorted(result.forms, key=lambda form: form.name != result.default):
        claim = f"{result.key}[{form.name}]"
        yield f"## {form.name}"
        yield displayed(result, form)
        yield f"Verdict on `{claim}`: {verdict(result.paper, claim)}. Units: {verdict(result.paper, f'{claim}/units')}."
        if row := worst_ratio(result, form):
            yield f"[Adversary](../../worst-cases.md#every-result): {plain(describe_row(row))}."
        if idle := untested_conditions(result, form):
            said_so = "; ".join(f"`{row.text}`" for row in idle)
            yield f"[Not tested](../../audit.md#conditions), as no checker notices a factor of 2: {said_so}."
        if form.implicit:
            yield f"It holds {plain(form.implicit)}."
        yield from failures(result, form, errata)
        if form.assumptions:
            yield "Assumes:\n\n" + "\n".join(f"- {plain(a.statement)} ({plain(a.label)})" for a in form.assumptions)
        if form.name == result.default:
            yield from example(result)
    steps = [claim for claim in read_ledger(result.paper) if claim.startswith(f"{result.key}/")]
    if steps:
        yield "## Steps of the proof"
        yield "\n".join(
            f"- `{claim.removeprefix(result.key + '/')}`: {verdict(result.paper, claim)}" for claim in steps
        )


def failures(result: Result, form: Form, errata: dict[str, Erratum]) -> Iterator[str]:
    """Where and why a form fails, or the step that it rests on, and what holds instead."""
    claim = f"{result.key}[{form.name}]"
    direct = [e for e in errata.values() if claim in refuted_claims(e, result.paper)]
    for erratum in direct:
        yield f"Refuted by `{erratum.id}` ({erratum.degree}): {plain(erratum.fails)}"
        yield counterexample(erratum.replayed)
        yield f"Instead: {plain(erratum.instead)}."
    if not direct and form.refuted_by in errata:
        erratum = errata[form.refuted_by]
        yield (
            f"The form itself is not refuted, but its derivation is ({erratum.degree}): {plain(erratum.where)} claims "
            f"“{plain(erratum.claim)}”. {plain(erratum.fails)} Instead: {plain(erratum.instead)}."
        )


def counterexample(replay: Replay) -> str:
    """The instance, the recomputation and both sides."""
    lines = "\n".join(f"- {plain(line.text)}: {plain(format_fraction(line.value))}" for line in replay.lines)
    sides = f"So {plain(replay.comparison)}. Smallest in this sense: {plain(replay.minimal)}."
    return f"{plain(replay.instance)}\n\n{lines}\n\n{sides}"


def note(name: str) -> str:
    """The errata of a paper with their severity, then open statements, then wording."""
    return "\n\n".join(noted(name))


def noted(name: str) -> Iterator[str]:
    """The paragraphs of that note."""
    yield paper(name).reference + "."
    yield DEGREES
    yield f"Distinct findings, a remark made at several places counted once: {describe_findings(name)}."
    errata, supplements, wording = paper_errata(name), paper_supplements(name), paper_wording(name)
    for number, erratum in enumerate(errata, 1):
        yield from entry(name, number, erratum)
    if supplements:
        yield "## Other statements"
        yield "\n".join(
            f"- {plain(s.where)}: {plain(s.claim)}. "
            + (f"{plain(s.argument().text)}" if s.argument else f"Open: {plain(s.open)}.")
            for s in supplements
        )
    if wording:
        yield "## Wording and notation"
        yield "In our words, except in quotation marks."
        yield "\n".join(f"- {plain(w.where)}: {quoted(w)}{plain(w.says)}. Rather: {plain(w.should)}." for w in wording)


def quoted(slip: Wording) -> str:
    """The paper's words, where a slip of wording quotes them."""
    return "".join(f"“{plain(quote.text)}” ({plain(quote.where)}): " for quote in slip.quotes)


def repeated(erratum: Erratum) -> str:
    """That an erratum makes another one's remark at a second place, and so is not counted."""
    return f"; the remark of `{erratum.repeats}` at another place" if erratum.repeats else ""


def entry(name: str, number: int, erratum: Erratum) -> Iterator[str]:
    """One erratum."""
    yield f'<a id="{erratum.id.replace(".", "-")}"></a>\n\n## {number}. {plain(erratum.where)}'
    yield f"*{erratum.degree.capitalize()}{repeated(erratum)}.*"
    if erratum.quotes:
        yield "\n".join(f"> “{plain(quote.text)}” ({plain(quote.where)})" for quote in erratum.quotes)
    yield f"**Claimed{', in our words' if erratum.quotes else ' (paraphrased)'}:** {plain(erratum.claim)}."
    yield f"**Why it fails:** {plain(erratum.fails)}"
    yield f"**Smallest counterexample:** {counterexample(erratum.replayed)}"
    yield f"**What holds instead:** {plain(erratum.instead)}."
    if erratum.argument:
        argument = erratum.argument()
        cited = f" (It uses {plain(', '.join(argument.axioms))}.)" if argument.axioms else ""
        yield f"**Argument:** {plain(argument.text)}{cited}"
    repair = verdict(name, f"{name}/repair/{erratum.id}")
    yield f"Replay: `fedbounds refute {erratum.id}`. Verdict on what holds instead: {repair}."
