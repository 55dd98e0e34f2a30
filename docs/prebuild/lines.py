"""Lines of a page that stand for generated text.

Each line is `::: NAME ARGUMENTS`, where `LINES` has the function of that name: `::: results fedau` becomes the results
of that paper, `::: commands` the reference of the command line.
"""

from __future__ import annotations

import re
from pathlib import Path

from fedbounds.bounds.audit.ledger import committed_verdict
from fedbounds.bounds.audit.tested_conditions import describe_untested, read_conditions
from fedbounds.bounds.comparison.comparability import CODES, comparability_matrix
from fedbounds.bounds.comparison.worst_ratios import worst_ratio
from fedbounds.bounds.theory.problem_class_terms import AXES, GROUPS
from fedbounds.bounds.theory.registry import PAPERS, paper
from fedbounds.figures.report.papers import claims_html, gallery_html
from prebuild import listings
from prebuild.reference import public_tables
from prebuild.statements import plain, statements
from prebuild.verdicts import counted, note

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "gallery"


def written_out(page: str) -> str:
    """A page with its lines that stand for many written out."""
    return re.sub(r"^::: (\w+) ?(.*)$", lambda line: LINES[line[1]](*line[2].split()), page, flags=re.MULTILINE)


def file(name: str) -> str:
    """A file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def claims(paper: str) -> str:
    """The table of a paper's claims in the gallery, with a link to all columns."""
    return f"{claims_html(GALLERY / paper)}\n\n[All columns: `claims.csv`](gallery/{paper}/claims.csv).\n"


def gallery(paper: str) -> str:
    """Every figure of a paper with its alternative text and its caption, as a report shows them."""
    return gallery_html(GALLERY / paper, f"gallery/{paper}/")


def vocabulary() -> str:
    """The terms that describe a setting, axis by axis."""
    parts = []
    for axis in AXES.values():
        usual = f" Taken as usual: `{axis.usual}`." if axis.usual else ""
        lines = [f"**{axis.name}**: {axis.question}.{usual}", "", "| kind | meaning | phrase |", "|---|---|---|"]
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
    matrix = comparability_matrix().run_results()
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
    symbols = "; ".join(f"{symbol} {part}" for part, symbol in CODES.items())
    lines += [
        "",
        f"≤ (≥): never larger (smaller) than that of the column, on any run. Symbols: what differs ({symbols}).",
    ]
    return "\n".join(lines)


def not_tested() -> str:
    """The conditions of forms of which no checker notices a change, and how many there are of each paper."""
    lines, listed = ["| paper | conditions of forms | loosened, noticed | dropped, noticed | not tested |"], []
    lines.append("|---|---|---|---|---|")
    for name in PAPERS:
        rows = read_conditions(name).values()
        if not rows:
            lines.append(f"| {name} | | | | all: {describe_untested(name)} |")
            continue
        idle = [row for row in rows if not row.tested]
        counts = len(rows), len(rows) - len(idle), sum(bool(row.dropped) for row in rows), len(idle)
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
        forms: dict[str, list[str]] = {}
        for row in idle:
            forms.setdefault(row.text, []).append(row.form)
        listed += [f"| `{text}` | {', '.join(f'`{form}`' for form in some)} |" for text, some in forms.items()]
    return "\n".join([*lines, "", "| condition that is not tested | of |", "|---|---|", *listed])


def worst() -> str:
    """The largest ratio that the adversary found for every form of every result, or why there is none."""
    lines = ["| form | largest found left/bound | left side | instances | verdict |", "|---|---|---|---|---|"]
    silent: dict[str, list[str]] = {}
    for name in PAPERS:
        for result in paper(name).results:
            for form in result.forms:
                row, claim = worst_ratio(result, form), f"`{result.key}[{form.name}]`"
                if row is None or row["ratio"] is None:
                    silent.setdefault(row["why"] if row else "it has changed since", []).append(claim)
                    continue
                ratio, status = f"{float(row['ratio']):.4g}", "" if row["status"] == "below" else f" ({row['status']})"
                cells = [claim, ratio + status, row["left_side"], str(row["budget"]["instances"])]
                lines.append(f"| {' | '.join([*cells, committed_verdict(result, form)])} |")
    lines += ["", "| no number, because | forms |", "|---|---|"]
    for why, claims in sorted(silent.items(), key=lambda item: len(item[1])):
        lines.append(f"| {plain(why)} | {', '.join(claims) if len(claims) < 10 else f'{len(claims)} forms'} |")
    return "\n".join(lines)


LINES = {
    "algorithms": listings.algorithm_table,
    "claims": claims,
    "commands": listings.commands,
    "comparability": comparability,
    "errata": note,
    "file": file,
    "gallery": gallery,
    "invariants": listings.invariants,
    "keys": listings.keys,
    "kinds": listings.kinds,
    "mutants": listings.mutants,
    "public": public_tables,
    "references": listings.references,
    "results": statements,
    "symbols": listings.symbols,
    "verdicts": counted,
    "vocabulary": vocabulary,
    "worst": worst,
    "untested": not_tested,
}
