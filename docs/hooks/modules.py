"""A hook of mkdocs: the lines of a page that stand for many.

`::: bounds.* but fedbounds.bounds.commands` becomes the reference of every public module of `bounds`,
`::: vocabulary` what can be said of a setting, `::: comparability` the matrix of left-hand sides, `::: results
arbitrary-participation` that paper's results, typeset from the objects themselves, `::: claims fedau` the
table of that paper's claims as it was last measured, and `::: gallery fedau` its figures with their captions. So no
list can forget one.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from sympy import Symbol

from fedbounds.bounds.audit.errata import room_errata
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.comparability import CODES, comparability_matrix
from fedbounds.bounds.printing import latex, written
from fedbounds.bounds.registry import paper
from fedbounds.bounds.result import Form, Result
from fedbounds.bounds.vocabulary import AXES, GROUPS

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "gallery"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with each page's source; returns the source it renders."""
    listed = r"^::: ([\w.]+)\.\*(?: but ([\w. ]+))?$"
    markdown = re.sub(listed, lambda m: modules(m[1], (m[2] or "").split()), markdown, flags=re.MULTILINE)
    for word, made in (("vocabulary", vocabulary), ("comparability", comparability)):
        markdown = re.sub(rf"^::: {word}$", lambda _, made=made: made(), markdown, flags=re.MULTILINE)
    for word, made in (("results", statements), ("claims", claims), ("gallery", gallery)):
        markdown = re.sub(rf"^::: {word} ([\w-]+)$", lambda m, made=made: made(m[1]), markdown, flags=re.MULTILINE)
    return markdown


def modules(package: str, without: list[str]) -> str:
    """The reference of a package and of all that is public in it, modules before packages."""
    folder = ROOT.joinpath(*package.split("."))
    found = [f"{package}.{path.stem}" for path in sorted(folder.glob("[!_]*.py"))]
    inside = [f"{package}.{path.parent.name}" for path in sorted(folder.glob("[!_]*/__init__.py"))]
    if not (folder / "__init__.py").is_file():
        raise FileNotFoundError(f"no package {package}")
    parts = [f"::: {package}\n    options:\n      members: false"]
    parts += [f"::: {name}" for name in found if name not in without]
    parts += [modules(name, without) for name in inside if name not in without]
    return "\n\n".join(parts)


def claims(paper: str) -> str:
    """The table of a paper's claims that `fedbounds figure PAPER` wrote into the gallery."""
    with (GALLERY / paper / "claims.csv").open(encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    rows = [[*row, f"{verdict}: {power}" if power else verdict] for *row, verdict, power in rows]
    lines = [" | ".join(plain(cell) for cell in row) for row in rows]
    head = ["| where | claim, in our words | measured | verdict |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {line} |" for line in lines)])


def gallery(paper: str) -> str:
    """Every figure of a paper with its alternative text and its caption, from the manifests beside them."""
    parts = []
    for path in sorted((GALLERY / paper).glob("*.png")):
        manifest = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        parts.append(
            f"![{plain(manifest['alternative'])}](gallery/{paper}/{path.name})\n\n{plain(manifest['caption'])}"
        )
    return "\n\n".join(parts)


def vocabulary() -> str:
    """What can be said of a setting, axis by axis."""
    parts = []
    for axis in AXES.values():
        usual = f" Taken as usual: `{axis.usual}`." if axis.usual else ""
        lines = [f"**{axis.name}**: {axis.question}.{usual}", "", "| kind | what is known | said as |", "|---|---|---|"]
        lines += [f"| `{k.name}` | {plain(k.meaning)} | {plain(', '.join(k.phrases))} |" for k in axis.kinds.values()]
        several = {phrase: kinds for phrase, (name, kinds) in GROUPS.items() if name == axis.name}
        lines += [
            f"| {', '.join(f'`{k}`' for k in kinds.split())} | one of them | {phrase} |"
            for phrase, kinds in several.items()
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def comparability() -> str:
    """The left-hand sides about whole runs, each against each."""
    matrix = comparability_matrix().of_runs()
    places = range(len(matrix.measures))
    lines = ["| | left-hand side | results |", "|---|---|---|"]
    for i in places:
        keys = dict.fromkeys(form.partition(" ")[0] for form in matrix.forms[i])
        lines.append(f"| {i + 1} | {plain(str(matrix.measures[i]))} | {', '.join(f'`{key}`' for key in keys)} |")
    lines += ["", f"| | {' | '.join(str(j + 1) for j in places)} |", "|---|" + "---|" * len(matrix.measures)]
    signs = {"=": "=", "<": "≤", ">": "≥"}
    lines += [
        f"| {i + 1} | {' | '.join(signs.get(matrix.code(i, j), matrix.code(i, j)) for j in places)} |" for i in places
    ]
    letters = "; ".join(f"{letter} {part}" for part, letter in CODES.items())
    lines += [
        "",
        f"≤ (≥): never larger (smaller) than that of the column, on any run. Letters: what differs ({letters}).",
    ]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Text in which Markdown finds nothing."""
    return re.sub(r"([*_|<\[\]$])", r"\\\1", text)


def statements(key: str) -> str:
    """Each result of a paper: where it stands, what it bounds, and every form with its conditions."""
    room = paper(key)
    return "\n\n".join([room.reference, *(statement(result) for result in room.results)])


def statement(result: Result) -> str:
    """One result under its key, its forms one below the other."""
    heading = f"### {result.title}\n\n`{result.key}` ({result.source})"
    if room_errata(result.paper):  # then it has been on trial and docs/hooks/verdicts.py makes a page of it
        heading += f", [claims and verdicts](results/{result.key}.md)"
    return "\n\n".join([heading, *(displayed(result, form) for form in result.forms)])


def displayed(result: Result, form: Form) -> str:
    """One form as a displayed formula, its terms in order and named, with its conditions in a list."""
    short = written(form.expressions, result.notation)
    typeset = iter([latex(expression, result.notation) for expression in short.expressions])
    named = [rf"\underbrace{{{next(typeset)}}}_{{\text{{{term.name}}}}}" for term in form.terms]
    bound = " + ".join(named)
    if form.order_only:
        bound = rf"O\Big({bound}\Big)"
    default = ", the default" if form.name == result.default else ""
    verdict = read_ledger(result.paper).get(f"{result.key}[{form.name}]", {}).get("verdict")
    found = f", {verdict}" if verdict else ""
    refuted = f", {'' if verdict == 'refuted' else 'see '}erratum {form.refuted_by}" if form.refuted_by else ""
    heading = f"**{form.name}**{default}{found}{refuted}. {form.note}"
    formula = f"$$\n{(form.measure or result.measure).latex} \\le {bound}\n$$"
    signs = {"<=": r"\le", ">=": r"\ge", "==": "="}
    conditions = "\n".join(
        f"- ${next(typeset)} {signs.get(c.op, c.op)} {next(typeset)}$: {c.why}" for c in form.conditions
    )
    meant = [(Symbol(name), latex(meaning, result.notation)) for name, meaning in short.definitions()]
    where = "where " + ", ".join(f"${latex(name, result.notation)} = {meaning}$" for name, meaning in meant)
    return "\n\n".join([heading, formula, *([where] if meant else []), conditions])
