"""fedbounds list and fedbounds show: all results; a result, a statement or the places of an equation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import click
import sympy as sp

from fedbounds.bounds.audit.errata import paper_errata, paper_wording
from fedbounds.bounds.audit.ledger import (
    audit_note,
    caveat,
    committed_verdict,
    evidence,
    read_ledger,
    status,
    trusted_premise,
)
from fedbounds.bounds.audit.tested_conditions import read_conditions, untested_conditions
from fedbounds.bounds.comparison.improvements import Improvement, improvements
from fedbounds.bounds.comparison.result_graph import IMPROVES, USES, Edge, all_edges, edges_around
from fedbounds.bounds.comparison.worst_ratios import describe_row, worst_ratio
from fedbounds.bounds.display.json_values import attributes
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.names_by_meaning import all_concepts
from fedbounds.bounds.theory.printing import as_printed, name_shared_parts, plain
from fedbounds.bounds.theory.registry import add_theorems, load, named_papers, paper, paper_names, papers, statements
from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.statement import Statement
from fedbounds.bounds.theory.symbols import Derived, Notation
from fedbounds.bounds.theory.theorem_latex import theorem
from fedbounds.cli.options import (
    OutputPath,
    complete_late,
    emit,
    force_option,
    form_option,
    json_option,
    key_argument,
    paper_option,
    print_answer,
)

LISTED = ("theorem", "corollary", "proposition")  # kinds that `list` shows without --all
RELATIONS = {  # side of an edge, and whether a proof rests on the other -> heading
    (0, True): "rests on",
    (0, False): "improves on, extends or matches",
    (1, True): "is used by the proofs of",
    (1, False): "is improved on, extended or matched by",
}
QUANTITY = ("meaning", "concept", "domain", "dimension")  # what JSON has of a constant


@click.command("list")
@click.argument("named", metavar="[PAPER | FILE.toml]", required=False, shell_complete=complete_late("papers"))
@paper_option
@click.option("--all", "whole", is_flag=True, help="Include lemmas, remarks, definitions and equations.")
@click.option("--concepts", is_flag=True, help="List the concepts of constants instead: symbol, unit and meaning.")
@json_option
def list_results(named: str | None, wanted: str | None, whole: bool, concepts: bool, as_json: bool) -> None:
    """List theorems, corollaries and propositions: key, kind, verdict and title; of all papers, one, or a theorem file.

    The papers whose results are verified come first, then the reference theorems of the field (--paper references lists
    these alone). The verdict is that of the default form; it is "order only" for a bound with hidden constants, and
    "unread", with an asterisk, for a theorem that was written from memory.
    """
    if named and wanted:
        raise FedboundsError(f"{named} and --paper {wanted} name two papers; give one of them")
    if named and (named.endswith(".toml") or os.sep in named):
        wanted = add_theorems(named)[0].paper
    wanted = wanted or named
    if concepts:
        if whole:
            raise FedboundsError("--all is for results, and --concepts lists concepts; leave out --all")
        list_concepts(wanted, as_json)
        return
    found = named_papers(wanted) if wanted else list(papers(references=True))
    if as_json:
        rows = [
            {**attributes(r, "key kind title"), "source": str(r.source), "forms": [f.name for f in r.forms]}
            | {**attributes(r, "default"), "status": status(r, r.form())}
            for one in found
            for r in one.results
        ]
        others = [statement_document(s) for one in found for s in statements(one.key)]
        emit("list", {"results": rows, "statements": others})
        return
    hidden = 0
    for one in found:
        click.echo(f"{one.key}   {one.reference}")
        listed = [*one.results, *statements(one.key)]
        shown = [r for r in listed if whole or r.kind in LISTED] or listed
        width = max((len(r.key) for r in shown), default=0)
        for r in shown:
            verdict, unread = "", ""
            if isinstance(r, Result):
                verdict, unread = status(r, r.form()), " *" if r.source.unread else ""
            click.echo(f"  {r.key:<{width}}  {r.kind:<11}  {verdict:<10}  {r.title}{unread}")
        hidden += len(listed) - len(shown)
        click.echo()
    if hidden:
        click.echo(f"{hidden} more lemmas, remarks, definitions and equations: --all")


def list_concepts(wanted: str | None, as_json: bool) -> None:
    """Print the concepts of theorem files, or of a paper, each with a symbol for it."""
    found = list(all_concepts().values())
    if wanted:
        notations = [result.notation for one in named_papers(wanted) for result in one.results]
        found = [*{q.concept: q for notation in notations for q in notation.values()}.values()]
    if as_json:
        emit("concepts", {"concepts": [{"symbol": q.name} | {n: str(getattr(q, n)) for n in QUANTITY} for q in found]})
        return
    width, own = max(len(q.concept) for q in found), max(len(q.name) for q in found)
    for q in found:
        click.echo(f"{q.concept:<{width}}  {q.name:<{own}}  {q.dimension!s:<9}  {q.meaning}")


@click.command("show")
@key_argument
@form_option
@click.option("--latex", "style", flag_value="latex", help="The theorem as a LaTeX environment.")
@click.option("--bibtex", "style", flag_value="bibtex", help="The paper's BibTeX entry.")
@click.option("--sympy", "style", flag_value="sympy", help="The bound as a sympy expression in plain text.")
@click.option("--graph", "style", flag_value="graph", help="The results that it rests or improves on, and the reverse.")
@click.option("--all", "whole", is_flag=True, help="Every form in full, not only the default form.")
@click.option("--out", metavar="F", type=OutputPath(), help="With --graph: draw it (.png, .pdf, .svg).")
@force_option
@json_option
def show(
    key: str, form: str | None, style: str | None, whole: bool, out: str | None, force: bool, as_json: bool
) -> None:
    """Show the result KEY: statement, default form, terms, conditions, assumptions and symbols.

    The other forms are listed in one line each; --all shows them in full, --form NAME one of them.

    KEY may also be a definition, an assumption, an equation or a remark in `fedbounds list`, or the number of an
    equation, e.g. fedau/B.4.4, which lists every result and every proof step about it.
    """
    if key.endswith(".toml") and style in ("bibtex", "graph"):
        key = _add_file(key)
    if style == "bibtex":
        loaded = paper(key.partition("/")[0])
        if not loaded.bibtex:
            raise FedboundsError(f"{loaded.key} has no BibTeX entry; in a theorem file it is the key bibtex")
        print_answer(as_json, "show", {"paper": loaded.key, "bibtex": loaded.bibtex}, lambda: loaded.bibtex)
        return
    if out and style != "graph":
        raise FedboundsError("--out writes the figure of a graph; add --graph")
    if style == "graph":
        show_uses(load(key), out, force, as_json)
        return
    if (one := statement(key)) is not None:
        show_statement(one, form, style, as_json)
        return
    if (number := equation_number(key)) and all(r.key != key for r in paper(key.partition("/")[0]).results):
        show_equation(key.partition("/")[0], number, form, style, as_json)
        return
    result = load(key)
    chosen = [result.form(form)] if form else list(result.forms)
    if as_json:
        emit("show", as_document(result, chosen))
    elif style == "latex":
        one = result.form(form)
        click.echo(theorem(result, one, audit_note(result, one)))
    elif style == "sympy":
        click.echo(as_text(result.form(form), result.notation))
    else:
        click.echo(describe(result, chosen if form or whole else [result.form(None)]))


def _add_file(path: str) -> str:
    """The key of the theorem of a file, which joins the results unless it comes with fedbounds."""
    result = load(path)
    if result.paper not in paper_names():
        add_theorems(path)
        all_edges.cache_clear()
    elif load(result.key).file != result.file and not os.path.samefile(load(result.key).file, result.file):
        raise FedboundsError(f"{path}: the key {result.key} is that of another file; change one of them")
    return result.key


def show_statement(one: Statement, form: str | None, style: str | None, as_json: bool) -> None:
    """Print a definition, an assumption, an equation or a remark."""
    if form or style == "sympy" or (style == "latex" and not one.latex):
        raise FedboundsError(f"{one.key} is a statement ({one.kind}) in words; leave out --{'form' if form else style}")
    text = one.latex if style == "latex" else statement_text(one)
    print_answer(as_json, "show", statement_document(one), lambda: text)


def show_equation(name: str, number: str, form: str | None, style: str | None, as_json: bool) -> None:
    """Print the places of an equation."""
    if form or style:
        raise FedboundsError(f"{name}/{number} is the number of an equation; leave out --{style or 'form'}")
    found = equation_places(name, number)
    document = {"paper": name, "equation": number, "places": [asdict(place) for place in found]}
    print_answer(as_json, "show", document, lambda: places_text(name, number, found))


def show_uses(result: Result, out: str | None, force: bool, as_json: bool) -> None:
    """Print or draw what a result rests or improves on, the reverse, and what papers say of both."""
    key, written = result.key, []
    if out:
        from fedbounds.figures.charts.picture import figure_outputs
        from fedbounds.figures.charts.result_graph import graph_picture

        check_outputs(figure_outputs(out), force)
        written = graph_picture(edges_around(key), f"{key}: what it rests or improves on, and the reverse", key).save(
            out, force=force
        )
    claims = list(improvements(key))
    document = {
        "key": key,
        "uses": [{"result": e.result, "uses": e.used, "relation": e.relation} for e in all_edges() if key in e[:2]],
        "improvements": [{**asdict(one), "outcome": one.judged[0], "why": one.judged[1]} for one in claims],
    }
    print_answer(as_json, "show", document, None if out else lambda: describe_uses(key, claims), written)


def describe_uses(key: str, claims: Iterable[Improvement] = ()) -> str:
    """What a result rests on and what it improves on, as trees, the reverse, and what papers say of the two."""

    def tree(at: str, side: int, rests: bool, above: tuple[str, ...], indent: str) -> Iterator[str]:
        edges = [edge for edge in all_edges() if (edge.relation == USES) == rests]
        for edge in edges:
            if edge[side] == at and (other := edge[1 - side]) not in above:
                relation = "" if edge.relation in (USES, IMPROVES) else f"   ({_relation(edge)})"
                again = other in seen and any(other in e[side : side + 1] for e in edges)
                yield f"{indent}{other}   {load(other).title}{relation}{' (see above)' if again else ''}"
                if not again:
                    seen.add(other)
                    yield from tree(other, side, rests, (*above, other), f"{indent}  ")

    lines = [f"{key}   {load(key).title}"]
    for (side, rests), heading in RELATIONS.items():
        seen: set[str] = set()
        found = list(tree(key, side, rests, (key,), "    "))
        lines += ["", f"  {heading}{'' if found else ': nothing in the registry'}", *found]
    if said := [f"    {one}" for one in claims]:
        lines += ["", "  what its paper, or another, says of the two", *said]
    return "\n".join(lines)


def _relation(edge: Edge) -> str:
    """What a paper says of two results, in words."""
    said = (one for one in improvements(edge.result) if one.against == edge.used and one.relation == edge.relation)
    return next((one.shown_relation for one in said), edge.relation)


def as_text(form: Form, notation: Notation) -> str:
    """The bound as text that `fedbounds.bounds.theory.parsing.read_expression` reads: definitions, then the bound."""
    short = name_shared_parts(tuple(t.expression for t in form.terms), notation)
    lines = [f"{name} = {plain(meaning)}" for name, meaning in short.definitions()]
    return "\n".join([*lines, plain(sp.Add(*short.expressions, evaluate=False))])


def as_document(result: Result, forms: list[Form]) -> dict[str, Any]:
    """All that `show` prints, for JSON."""
    return {
        **attributes(result, "key kind title"),
        "source": str(result.source),
        "statement": result.statement,
        "measure": str(result.measure),
        "default": result.default,
        "forms": [
            {
                "name": f.name,
                "terms": {t.name: plain(as_printed(t.expression, result.notation).expression) for t in f.terms},
                "conditions": [
                    {
                        "text": c.as_printed(result.notation).text,
                        "legal": c.legal,
                        "why": c.why,
                        "tested": c.text not in {row.text for row in untested_conditions(result, f)},
                    }
                    for c in f.conditions
                ],
                "feasible": None
                if (declared := feasible_set(result, f)) is None
                else [
                    {"text": c.words(result.notation), "why": c.why, "necessary": c not in declared.witnessed}
                    for c in declared.all
                ],
                "assumptions": [attributes(a, "name statement label") for a in f.assumptions],
                "prescribes": {
                    name: plain(as_printed(e, result.notation).expression) for name, e in f.prescribes.items()
                },
                "numbers": {
                    name: {"exact": plain(exact), "value": float(exact)}
                    for name, exact in name_shared_parts(f.expressions, result.notation).numbers.items()
                },
                **attributes(f, "order_only refuted_by"),
                "reading": f.implicit,
                "verdict": committed_verdict(result, f),
                "status": status(result, f),
                "evidence": evidence(result, f),
                "worst_ratio": row["ratio"] if (row := worst_ratio(result, f)) else None,
                "conditional_on": trusted_premise(result, f),
                "note": f.note,
                "latex": result.latex_parts(f).lines,
                "theorem": theorem(result, f, audit_note(result, f)),
            }
            for f in forms
        ],
        "constants": {
            s.name: {name: str(getattr(result.notation[s.name], name)) for name in QUANTITY}
            for s in used_symbols(result, forms)
        },
    }


def used_symbols(result: Result, forms: list[Form]) -> list[sp.Symbol]:
    """The symbols that these forms use or derive from others, in the paper's order."""
    used = set().union(*(f.symbols for f in forms))
    used |= {s for f in forms for e in f.prescribes.values() for s in e.free_symbols}
    used |= {result.notation[i].symbol for rule in replacements(forms) for i in rule.inputs}
    unknown = {s.name for s in used} - set(result.notation)
    if unknown:
        raise FedboundsError(f"{result.key} uses symbols without notation: {', '.join(sorted(unknown))}")
    return [q.symbol for q in result.notation.values() if q.symbol in used]


def replacements(forms: list[Form]) -> dict[Derived, list[str]]:
    """The derivations of constants that the forms use, each with the names of these forms."""
    found: dict[Derived, list[str]] = {}
    for form in forms:
        needed = reachable(form)
        for rule in form.derived:
            if rule.name in needed:
                found.setdefault(rule, []).append(form.name)
    return found


def describe(result: Result, forms: list[Form]) -> str:
    """One result as text."""
    lines = [f"{result.key}   {result.source}", f"{result.kind.capitalize()}: {result.title}."]
    lines += [result.statement] if result.statement else []
    lines += ["", f"Left-hand side: {result.measure}"]
    for form in forms:
        mark = " (default)" if form.name == result.default else ""
        lines += ["", f"[{form.name}]{mark} {form.note}".rstrip()]
        lines += [f"  left-hand side: {form.measure}"] if form.measure else []
        lines += [f"  {doubt}"] if (doubt := caveat(result, form)) else []
        lines += [f"  {found}"] if (found := evidence(result, form)) else []
        lines += [f"  {form.implicit}"] if form.implicit else []
        lines += [f"  proved, conditional on {trusted}"] if (trusted := trusted_premise(result, form)) else []
        lines += ["  order only" + (f"; hides {form.hides}" if form.hides else "")] if form.order_only else []
        lines += [f"  {describe_row(row)}"] if (row := worst_ratio(result, form)) and not form.order_only else []
        lines += [f"  holds only as {form.asymptotic}"] if form.asymptotic else []
        width = max(len(t.name) for t in form.terms)
        short = result.printed(form)
        texts = iter(plain(e) for e in short.expressions)
        lines += [f"  + {t.name:<{width}}  {next(texts)}" for t in form.terms]
        lines += [f"  if {next(texts)} {c.op} {next(texts)}   ({c.why})" for c in form.hypotheses]
        lines += [f"  with {name} = {next(texts)}" for name in form.prescribes]
        lines += [f"  where {name} = {plain(exact)}, about {float(exact):.6g}" for name, exact in short.numbers.items()]
        lines += [f"  where {name} = {plain(meaning)}" for name, meaning in short.parts.items()]
        alone = set().union(*(as_printed(e, result.notation).alone for e in form.said))
        lines += [f"  where 0/0 in {text} is {value}" for text, value in sorted((plain(q), v) for q, v in alone)]
        legal = "; ".join(c.why for c in form.conditions if c.legal)
        lines += [f"  legal constants: {legal}"] if legal else []
        declared = feasible_set(result, form)
        lines += [f"  feasible set: {declared.words(result.notation)}"] if declared else []
        audited = bool(read_conditions(result.paper))  # of others nothing is known
        not_tested = {row.text for row in untested_conditions(result, form)} if audited else set()
        untested = "; ".join(c.words(result.notation) for c in form.conditions if c.text in not_tested and not c.legal)
        lines += (
            [f"  constant not tested (the audit does not detect a factor of 2 in it): {untested}"] if untested else []
        )
        lines += [f"  assumes {', '.join(a.name for a in form.assumptions)}"] if form.assumptions else []
    lines += other_forms(result, forms)
    lines += ["", "Symbols"]
    for s in used_symbols(result, forms):
        q = result.notation[s.name]
        lines.append(f"  {q.name:<10} {q.meaning}; {q.domain}; unit {q.dimension}; concept {q.concept}")
    replaced = replacements(forms)
    lines += ["", "Symbols that may be derived from others"] if replaced else []
    for rule, of in replaced.items():
        where = "" if len(of) == len(forms) else f"   [{', '.join(of)}]"
        lines.append(f"  {rule.name:<10} given {', '.join(rule.inputs)}: {rule.why}{where}")
    lines += ["", "Assumptions"]
    seen = {a.name: a for f in forms for a in f.assumptions}
    lines += [f"  {a.name:<24} {a.statement}   [{a.label}]" for a in seen.values()]
    return "\n".join(lines)


def other_forms(result: Result, shown: list[Form]) -> list[str]:
    """The forms that are not shown, each with its note and its status, in one line."""
    rest = [form for form in result.forms if form not in shown]
    lines = ["", "Other forms (--all, or --form NAME)"] if rest else []
    width = max((len(form.name) for form in rest), default=0)
    for form in rest:
        parts = ("order only" if form.order_only else "", caveat(result, form), form.implicit)
        status = "; ".join(part for part in parts if part)
        lines.append(f"  {form.name:<{width}}  {form.note}{f' ({status})' if status else ''}".rstrip())
    return lines


REMARKS = ("erratum/", "wording/")
NUMBER = re.compile(r"^(?:equation-|eq[.-]?)?\(?((?:[a-z]\.)?\d+(?:\.\d+)*[a-z]?)\)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A place of an equation or of a remark.

    Args:
        id: of a result, a statement or a step of a proof.
        kind: theorem, definition, step, ...
        says: what it says, in one line.
        verdict: of the committed ledger (empty if it has none).
    """

    id: str
    kind: str
    says: str
    verdict: str = ""


def statement(key: str) -> Statement | None:
    """The statement with this key, if there is one."""
    name = key.partition("/")[0]
    if name not in paper_names():
        return None
    return next((one for one in statements(name) if one.key == key), None)


def statement_text(one: Statement) -> str:
    """A statement as text, with the verdicts of the claims that state it and the remarks on its use."""
    lines = [f"{one.key}   {one.source}", f"{one.kind.capitalize()}: {one.title}.", "", one.says]
    lines += ["", one.note] if one.note else []
    lines += ["", "Verified as"] if any(_claims(one)) else []
    lines += [f"  {place.id}: {place.verdict or 'not verified yet'}" for place in _claims(one)]
    remarks = list(_remarks(one))
    lines += ["", "Remarks on it or its use"] if remarks else []
    for place in remarks:
        lines.append(f"  {place.id} ({place.kind}): {place.says}")
    return "\n".join(lines)


def statement_document(one: Statement) -> dict[str, Any]:
    """The statement for JSON."""
    return {
        **attributes(one, "key kind title"),
        "source": str(one.source),
        "statement": one.says,
        "latex": one.latex,
        "note": one.note,
        "claims": [{"id": place.id, "verdict": place.verdict or None} for place in _claims(one)],
        "remarks": [{"id": place.id, "degree": place.kind, "says": place.says} for place in _remarks(one)],
    }


def _claims(one: Statement) -> Iterator[Place]:
    """The claims that state or prove it; errata about its use are remarks."""
    for local in one.claims:
        if not local.startswith(REMARKS):
            claim = f"{one.paper}/{local}"
            yield Place(claim, "claim", "", _verdict(one.paper, claim))


def _remarks(one: Statement) -> Iterator[Place]:
    """The errata and slips of wording about it, with their degrees."""
    errata = {erratum.id: erratum for erratum in paper_errata(one.paper)}
    slips = {slip.id: slip for slip in paper_wording(one.paper)}
    for local in one.claims:
        name = local.partition("/")[2]
        if local.startswith("erratum/"):
            erratum = errata[name]
            yield Place(f"{one.paper}/{local}", erratum.degree, f"{erratum.where}: {erratum.claim}")
        elif local.startswith("wording/"):
            slip = slips[name]
            yield Place(f"{one.paper}/{local}", "wording", f"{slip.where}: {slip.says}; rather: {slip.should}")


def _verdict(name: str, claim: str) -> str:
    return str(read_ledger(name).get(claim, {}).get("verdict", ""))


def equation_number(key: str) -> str:
    """The number of the equation that a key asks for ("" if it asks for none).

    Example:
        >>> equation_number("fedau/(B.4.4)"), equation_number("fedau/equation-7"), equation_number("fedau/theorem-2")
        ('B.4.4', '7', '')
    """
    found = NUMBER.match(key.partition("/")[2])
    return found[1].upper() if found else ""


def equation_places(name: str, number: str) -> list[Place]:
    """Every result, statement and step of a proof that is about one equation of a paper.

    Raises:
        FedboundsError: there is none; says which equations there are.
    """
    cited = [(Place(result.key, result.kind, result.title), result.source) for result in paper(name).results]
    cited += [(Place(one.key, one.kind, one.says), one.source) for one in statements(name)]
    places = [(place, {equation.upper() for equation in source.equations}) for place, source in cited]
    places += [(place, equations_in(place.says)) for place in _steps(name)]
    known = set().union(*(numbers for _, numbers in places))
    if not known:
        raise FedboundsError(f"{name} lists no equation; fedbounds list --paper {name} shows what it lists")
    if number not in known:
        raise unknown_name(f"equation of {name}", number, sorted(known))
    return [place for place, numbers in places if number in numbers]


@lru_cache(maxsize=16)
def _steps(name: str) -> tuple[Place, ...]:
    """The steps of a paper's proofs, with the verdicts of the ledger."""
    from fedbounds.bounds.audit.claim_set import paper_claims  # the proofs need the solvers, the results do not

    return tuple(
        Place(claim.id, "step", claim.text, _verdict(name, claim.id))
        for claim in paper_claims(name)
        if claim.kind == "step"
    )


def equations_in(text: str) -> set[str]:
    """The numbers of the equations that a text names, from the first to the last where it says so."""
    numbers = r"\(((?:[A-Z]\.)?\d+(?:\.\d+)*[a-z]?)\)"
    found = {number.upper() for number in re.findall(numbers, text)}
    for first, last in re.findall(rf"{numbers}(?: to |-|\u2013){numbers}", text):
        stem, _, low = first.rpartition(".")
        other, _, high = last.rpartition(".")
        if stem == other and low.isdigit() and high.isdigit():
            found |= {f"{stem}.{k}".lstrip(".") for k in range(int(low), int(high) + 1)}
    return found


def places_text(name: str, number: str, found: Iterable[Place]) -> str:
    """The places of an equation as text for people."""
    lines = [f"{name}, eq. ({number})"]
    for place in found:
        lines.append(f"  {place.kind:<11} {place.id}   {place.says}" + (f": {place.verdict}" if place.verdict else ""))
    return "\n".join(lines)
