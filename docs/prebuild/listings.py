"""Reference tables from the code: commands, keys of TOML files, symbols, algorithms, invariants, mutants."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from fedbounds.bounds.audit.ledger import mark
from fedbounds.bounds.display.mathml import mathml
from fedbounds.bounds.theory.registry import PAPERS, paper, papers
from fedbounds.bounds.theory.result import Result
from fedbounds.bounds.theory.symbols import Quantity
from fedbounds.bounds.theory.theorem_file import read_theorem_file
from fedbounds.command_line import COMMANDS, cli
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.invariants.averaging import AVERAGING_INVARIANTS
from fedbounds.empirical.invariants.compressor import PROPERTIES
from fedbounds.empirical.invariants.scope import scope_of
from fedbounds.empirical.monitoring.request_schema import question_schema
from fedbounds.empirical.papers.arbitrary_participation.properties import INVARIANTS, SPECIAL_CASES
from fedbounds.empirical.papers.fed_norm_sgda.invariants import MINIMAX_INVARIANTS
from fedbounds.empirical.papers.fedau.invariants import WEIGHT_INVARIANTS
from fedbounds.empirical.papers.fedmrn.invariants import MASK_INVARIANTS
from fedbounds.empirical.papers.tdcd.invariants import VERTICAL_INVARIANTS
from fedbounds.empirical.sweep.schema import sweep_schema
from prebuild.statements import plain

CAUGHT = Path(__file__).resolve().parents[2] / "tests" / "zoo" / "caught.json"
INVARIANT_TABLES: Mapping[str, Mapping[str, Any]] = {
    "check_invariants": {**INVARIANTS, **SPECIAL_CASES},
    "check_averaging": AVERAGING_INVARIANTS,
    "check_weights": WEIGHT_INVARIANTS,
    "check_minimax": MINIMAX_INVARIANTS,
    "check_vertical": VERTICAL_INVARIANTS,
    "check_masking": MASK_INVARIANTS,
    "check_compressor": PROPERTIES,
}
FORMULA = re.compile(r"\$[^$]+\$|`[^`]+`")
TYPES = {"array": "list", "object": "table", "null": "none"}  # what TOML calls them


def table(columns: str, rows: Iterator[list[str]]) -> str:
    """A Markdown table; `columns` are the headings, separated by bars."""
    lines = [f"| {columns} |", "|---" * (columns.count("|") + 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def cell(text: str) -> str:
    """Text of a docstring in a cell: formulas and code stay, everything else is plain."""
    parts, end = [], 0
    for found in FORMULA.finditer(text):
        parts += [plain(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, plain(text[end:])])


def first_sentence(documented: Any) -> str:
    """The first paragraph of a docstring, or the text itself, as a cell."""
    text = documented if isinstance(documented, str) else inspect.getdoc(documented) or ""
    return cell(text.partition("\n\n")[0].replace("\n", " "))


def commands() -> str:
    """Every command with its usage, its help, its examples and its options."""
    parts = []
    with click.Context(cli, info_name="fedbounds") as group:
        for name in COMMANDS:
            command = cli.get_command(group, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=group) as context:
                parts += command_parts(name, command, context)
    return "\n\n".join(parts)


def command_parts(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    """The paragraphs on one command."""
    yield f"## {name}"
    yield f"```text\nfedbounds {name} {' '.join(command.collect_usage_pieces(context))}\n```"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        example = paragraph.removeprefix("\b\n")
        yield plain(paragraph) if example == paragraph else f"```sh\n{inspect.cleandoc(example)}\n```"
    records = [each.get_help_record(context) for each in command.get_params(context)]
    rows = ([f"`{names}`", plain(text)] for names, text in filter(None, records) if text)
    yield table("option | meaning", rows)


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas of the files that `fedbounds run` and `fedbounds advise` read."""
    return {"sweep": sweep_schema(), "advise": question_schema()}


def kinds(component: str) -> str:
    """The kinds of a component of a sweep (problem, participation, algorithm), each with its keys."""
    definitions = schemas()["sweep"]["$defs"]
    found = definitions[f"{component}-complete"]
    parts = []
    for entry in found.get("else", found)["allOf"]:
        kind = entry["if"]["properties"]["kind"]["const"]
        variants = entry["then"].get("anyOf", [entry["then"]])
        parts.append(f"### `{kind}`")
        for number, variant in enumerate(variants):
            parts += [f"{'or: ' if number else ''}{cell(variant.get('description', ''))}", keys_table(variant)]
    return "\n\n".join(parts)


def keys_table(schema: Mapping[str, Any]) -> str:
    """The keys of one table of a TOML file, but for its kind."""
    needed = schema.get("required", ())
    rows = (
        [f"`{key}`", value_type(each), default(each, key in needed), cell(each.get("description", ""))]
        for key, each in schema["properties"].items()
        if key != "kind"
    )
    return table("key | type | default | meaning", rows)


def default(schema: Mapping[str, Any], needed: bool) -> str:
    """What holds if a key is left out."""
    if needed:
        return "required"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def value_type(schema: Mapping[str, Any]) -> str:
    """The values that a schema accepts, in words."""
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(value_type, schema["anyOf"])))
    named = schema.get("type", "table" if "$ref" in schema else "any")
    return " or ".join(TYPES.get(name, name) for name in ([named] if isinstance(named, str) else named))


def keys(file: str, *place: str) -> str:
    """The keys at the top of a sweep or of a setting for `advise`, or in one table of it."""
    schema = schemas()[file]
    for name in place:
        schema = schema["properties"][name]
    return keys_table(schema)


def symbols() -> str:
    """Every concept with the symbol that each paper has for it, its meaning and its dimension."""
    found: dict[str, dict[str, Quantity]] = {}
    for name in PAPERS:
        for result in paper(name).results:
            for quantity in result.notation.values():
                found.setdefault(quantity.concept, {}).setdefault(name, quantity)
    shared = {concept: by_paper for concept, by_paper in found.items() if len(by_paper) > 1}
    parts = ["## In several papers", shared_symbols(shared)]
    for name in PAPERS:
        own = [by_paper[name] for concept, by_paper in found.items() if concept not in shared and name in by_paper]
        rows = ([symbol(q), f"`{q.concept}`", plain(q.meaning), plain(str(q.dimension))] for q in own)
        parts += [f"## Only in {name}", table("symbol | concept | meaning | dimension", rows)]
    cited = {q.concept: q for result in reference_theorems() for q in result.notation.values()}
    rows = (
        [symbol(q), f"`{concept}`", plain(q.meaning), plain(str(q.dimension))]
        for concept, q in cited.items()
        if concept not in found
    )
    parts += ["## Only in reference theorems", table("symbol | concept | meaning | dimension", rows)]
    return "\n\n".join(parts)


def shared_symbols(shared: Mapping[str, Mapping[str, Quantity]]) -> str:
    """The concepts of more than one paper, a column for each paper."""

    def row(concept: str, by_paper: Mapping[str, Quantity]) -> list[str]:
        first = next(iter(by_paper.values()))
        symbols = [symbol(by_paper[name]) if name in by_paper else "" for name in PAPERS]
        return [f"`{concept}`", *symbols, plain(first.meaning), plain(str(first.dimension))]

    rows = (row(*item) for item in shared.items())
    return table(f"concept | {' | '.join(PAPERS)} | meaning | dimension", rows)


def symbol(quantity: Quantity) -> str:
    """A symbol as the paper prints it, with its typed name where that is another."""
    try:
        mathml(quantity.latex, "inline")
    except ValueError:
        return f"`{quantity.name}`"
    typed = "" if quantity.latex == quantity.name else f" `{quantity.name}`"
    return f"${quantity.latex}${typed}"


def reference_theorems() -> Iterator[Result]:
    """The theorems of other papers, in the order of their keys."""
    return (result for one in papers(references=True) if one.key not in PAPERS for result in one.results)


def references() -> str:
    """Every reference theorem: key, title, default form, its status, the source, and how it was last read."""
    rows = (
        [
            f"`{result.key}`",
            plain(result.title),
            f"`{result.default}`, {mark(result, result.form())}",
            plain(str(result.source)),
            read_theorem_file(result.file).history[-1]["read"],
        ]
        for result in reference_theorems()
    )
    return table("key | title | default form | source | read", rows)


def algorithm_table() -> str:
    """Every kind of algorithm, what it is, and the paper whose package has it."""
    papers = {kind: made.__module__.split(".")[-2].replace("_", "-") for kind, made in algorithms().items()}
    rows = (
        [f"`{kind}`", first_sentence(made), papers[kind] if papers[kind] in PAPERS else "none"]
        for kind, made in algorithms().items()
    )
    return table("kind | algorithm | paper", rows)


def invariants(check: str) -> str:
    """The invariants of one property test, and what some case must have, where any asks for it."""
    found = INVARIANT_TABLES[check]
    rows = [[f"`{name}`", first_sentence(each), needs(each)] for name, each in found.items()]
    if any(row[-1] for row in rows):
        return table("invariant | statement | needs", iter(rows))
    return table("invariant | statement", (row[:-1] for row in rows))


def needs(invariant: Any) -> str:
    """What an invariant needs in some case."""
    scope = scope_of(invariant)
    return cell("; ".join([need.description for need in scope.needs] + ["double precision"] * (scope.tolerance < 1)))


def mutants() -> str:
    """The broken implementations of every property test, and the invariants that each breaks."""
    parts = []
    for title, caught in json.loads(CAUGHT.read_text(encoding="utf-8")).items():
        check, _, rest = title.partition(" ")
        rows = ([plain(error), ", ".join(f"`{name}`" for name in broken)] for error, broken in caught.items())
        parts += [f"## `{check}` {rest}".rstrip(), table("error | broken invariants", rows)]
    return "\n\n".join(parts)
