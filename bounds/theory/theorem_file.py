r"""Theorems in TOML files: a result in about fifteen lines, read without running code.

```toml
key = "draft/theorem-1"
title = "Local SGD with full participation"
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, bounded variance, full participation"
conditions = ["gamma <= 1/(8*L*I)"]

[terms]
"initial gap" = "4*F/(gamma*I*T)"
"gradient noise" = "2*gamma*L*sigma**2/N"
```

Names in expressions are the standard symbols (`standard_symbols.toml`), concepts, or those of `[symbols]`. A file with
several right-hand sides has `[forms.NAME]` tables in place of `terms`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args

import sympy as sp

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.inputs.user_files import LARGEST_TOML, read_text, read_toml
from fedbounds.bounds.theory import assumptions as shared
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import MaxOverClients, MeanOverClients, SumOverClients
from fedbounds.bounds.theory.measures import Aggregate, IndexSet, Measure
from fedbounds.bounds.theory.names_by_meaning import all_concepts
from fedbounds.bounds.theory.parsing import FUNCTIONS, is_finite_real, read_text_expression
from fedbounds.bounds.theory.problem_class import Cover, ProblemClass, axis, phrases
from fedbounds.bounds.theory.result import OPERATORS, Condition, Form, Operator, Result, ResultKind, Source, Term
from fedbounds.bounds.theory.standard_symbols import STANDARD
from fedbounds.bounds.theory.symbols import (
    GRADIENT,
    OBJECTIVE,
    PARAMETER,
    Dimension,
    Notation,
    Quantity,
    read_dimension,
    read_domain,
)
from fedbounds.bounds.theory.theorem_document import Document

KEY = re.compile(r"[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*")
LARGEST = sp.Integer(10) ** 300  # size of a number in an expression
KINDS, AGGREGATES, INDEX_SETS = get_args(ResultKind), get_args(Aggregate), get_args(IndexSet)
# what is bounded -> how it is called in comparisons, its LaTeX and its unit
MEASURED: Mapping[str, tuple[str, str, Dimension]] = {
    "squared gradient norm of f": ("squared gradient norm of f", r"\|\nabla f(x_t)\|^2", GRADIENT**2),
    "function gap": ("function gap F - F*", r"f(x_t)-f^*", OBJECTIVE),
    "squared distance to the minimizer": ("squared distance to the minimizer", r"\|x_t-x^*\|^2", PARAMETER**2),
}
STEP_CONCEPTS = ("step_size", "server_multiplier")  # how concepts of step sizes end
OPERATOR_LATEX = {"minimum": r"\min_t", "average": r"\operatorname{avg}_t", "supremum": r"\sup_t"}
RANDOM = ("gradient noise", "compression", "communication", "participation")  # what an expectation is over
OF_METHODS = ("server", "local-optimizer", "compression")  # properties of a setting that an algorithm may have
BOUNDS, READ = ("upper", "lower"), ("constants", "order", "quoted", "memory")
OF_HISTORY = ("date", "version", "source", "read", "change")
ASSUMPTIONS: Mapping[str, Assumption] = {
    each.name: each for each in vars(shared).values() if isinstance(each, Assumption) and each is not shared.CITED
}
OF_FILE = (
    "key", "kind", "title", "statement", "source", "bibtex", "history", "bound", "measure", "expectation",
    "given", "setting", "algorithm", "uses", "improves", "default", "symbols", "where", "assumptions", "forms",
)  # fmt: skip
OF_MEASURE = ("aggregate", "over", "of", "dimension", "latex")
OF_SYMBOL = ("concept", "meaning", "latex", "domain", "dimension", "per_client")
OF_SOURCE, OF_CONDITION = ("paper", "number", "equations"), ("text", "why")
OF_FORM = (
    "terms", "conditions", "assumptions", "step_sizes", "order_only", "hides", "hidden", "asymptotic", "note", "where",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TheoremFile:
    """A theorem file: its result, and what stands beside it."""

    result: Result
    bibtex: str = ""
    setting: ProblemClass | None = None
    uses: tuple[str, ...] = ()  # keys of the results that its proof rests on
    improves: tuple[str, ...] = ()  # keys of the results that it improves on, extends or matches
    history: tuple[Mapping[str, str], ...] = ()  # date, version, source, how it was read and what changed
    text: str = ""  # of the file

    @property
    def algorithm(self) -> str:
        """The kind of the algorithm it is about."""
        return self.result.algorithm

    def line(self, keys: Sequence[str]) -> int:
        """The line of a key of the file, or of what is around it; 0 if it has none."""
        return Document(self.result.file, self.text).line(keys)


def read_theorem_files(path: str) -> list[TheoremFile]:
    """The theorem of a file, or of every `.toml` file of a folder, in the order of their names."""
    place = Path(path)
    found = sorted(place.glob("*.toml")) if place.is_dir() else [place]
    if not found:
        raise FedboundsError(f"{path} has no theorem files; they end in .toml")
    files = [read_theorem_file(one) for one in found]
    for one, other in pairwise(sorted(files, key=lambda each: each.result.key)):
        if one.result.key == other.result.key:
            places = f"{one.result.file} and {other.result.file}"
            raise FedboundsError(f"{places} have the same key {one.result.key}; change one of them")
    return files


@lru_cache(maxsize=256)
def _read(path: str, _absolute: str, _modified: int) -> TheoremFile:
    text = read_text(path, path, LARGEST_TOML) or "\n"  # an empty file is a file
    return build_theorem(read_toml(path, names_files=False), path, text)


def read_theorem_file(path: str | Path) -> TheoremFile:
    """The theorem that a TOML file states.

    Raises:
        FedboundsError: the file cannot be read, or a key is wrong; names the line, the key and what would be right.
    """
    try:
        modified = Path(path).stat().st_mtime_ns
    except OSError as error:
        raise FedboundsError(f"cannot read {path}: {error.strerror}") from None
    return _read(str(path), os.path.abspath(path), modified)


def theorem(key: str, *, measure: str, terms: Mapping[str, str] | None = None, **others: Any) -> Result:
    r"""A result of your own from texts, as a theorem file states it.

    Args:
        key: "PAPER/NAME".
        measure: the left-hand side, "AGGREGATE over INDEX of WHAT".
        terms: the summands of the bound, name to expression.
        others: the other keys of a theorem file: `conditions`, `assumptions`, `step_sizes`, `symbols`, `forms`...

    Raises:
        FedboundsError: as for a file; names the key and what would be right.

    Example:
        >>> descent = theorem(
        ...     "draft/descent", measure="minimum over rounds of squared gradient norm of f",
        ...     terms={"initial gap": "2*F/(gamma*T)"}, conditions=["gamma <= 1/L"], assumptions=["smooth"])
        >>> from fedbounds.bounds.evaluation.evaluate import evaluate
        >>> print(evaluate(descent, {"L": 1, "F": 3, "gamma": 0.5, "T": 100}).value)
        0.12
    """
    document = {"key": key, "measure": measure, **({} if terms is None else {"terms": terms}), **others}
    return build_theorem(document, "theorem()").result


def build_theorem(document: Mapping[str, Any], path: str, text: str = "") -> TheoremFile:
    """The theorem of a document."""
    at = Document(path, text)
    if not text:
        at.refuse_other_keys([], document)
    at.refuse_unknown([], document, (*OF_FILE, *OF_FORM))
    key = document.get("key", f"draft/{re.sub('[^a-z0-9.-]+', '-', Path(path).stem.lower())}" if text else None)
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise at.fault(["key"], f'{quote(key)} must be PAPER/NAME in small letters, e.g. key = "draft/theorem-1"')
    if "measure" not in document:
        also = "" if "terms" in document or "forms" in document else ", nor terms"
        raise at.fault(
            [], f'there is no measure{also}: write measure = "AGGREGATE over INDEX of WHAT" and a table [terms]'
        )
    notation, names = _notation(at, document.get("symbols", {}))
    names = names | _definitions(at, ["where"], document.get("where", {}), names, notation)
    measure = _measure(at, document)
    algorithm = _algorithm(at, document.get("algorithm", ""))
    setting, settings = _setting(at, document.get("setting"), algorithm, lower=measure.lower)
    own = _own_assumptions(at, document.get("assumptions", []))
    forms = tuple(
        _form(at, place, name, table, names, notation, (*settings, *own))
        for name, (place, table) in _form_tables(at, document).items()
    )
    used = {str(s) for form in forms for e in form.expressions for s in e.free_symbols}
    used |= {name for form in forms for name in form.prescribes} | {str(s) for form in forms for s in form.hidden}
    notation = Notation([q for q in notation.values() if q.name in used])
    kind = at.choice(["kind"], document.get("kind", _kind_of(key)), KINDS)
    strongest = next((f.name for f in reversed(forms) if not f.order_only), forms[-1].name)
    default = document.get("default", strongest)
    if default not in [form.name for form in forms]:
        raise at.fault(["default"], str(unknown_name("form", str(default), [form.name for form in forms])))
    history = _history(at, document.get("history", []))
    result = Result(
        key,
        cast(ResultKind, kind),
        at.text(["title"], document.get("title", key.partition("/")[2].replace("-", " ").capitalize())),
        _source(at, document.get("source", "draft"), key, unread={row.get("read") for row in history} == {"memory"}),
        measure,
        notation,
        forms,
        default,
        at.text(["statement"], document.get("statement", "")),
        path if text else "",
        algorithm,
    )
    return TheoremFile(
        result,
        at.bibtex(document.get("bibtex", "")),
        setting,
        _keys_of_others(at, "uses", document.get("uses", []), key),
        _keys_of_others(at, "improves", document.get("improves", []), key),
        history,
        text,
    )


def _keys_of_others(at: Document, name: str, given: Any, key: str) -> tuple[str, ...]:
    """Keys of other results."""
    for other in (keys := tuple(at.texts([name], given))):
        if not KEY.fullmatch(other):
            raise at.fault([name], f'{quote(other)} must be the key of a result, PAPER/NAME, e.g. "fedau/theorem-2"')
        if other == key:
            raise at.fault([name], f"{key} is this result itself; name other results")
    return keys


def _algorithm(at: Document, given: Any) -> str:
    """The kind of an algorithm, which is written like a key."""
    kind = at.text(["algorithm"], given)
    if not re.fullmatch(r"[a-z0-9.-]*", kind):
        written = re.sub(r"[^a-z0-9.]+", "-", kind.lower()).strip("-")
        raise at.fault(["algorithm"], f"{kind!r} must be in small letters, digits and hyphens; did you mean {written}?")
    return kind


def _history(at: Document, rows: Any) -> tuple[Mapping[str, str], ...]:
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise at.fault(["history"], f"must be tables [[history]], each with {', '.join(OF_HISTORY)}")
    for row in rows:
        at.refuse_unknown(["history"], row, OF_HISTORY)
        for key, value in row.items():
            at.text(["history"], value) if key != "read" else at.choice(["history"], value, READ)
    return tuple(rows)


def _kind_of(key: str) -> str:
    first = key.partition("/")[2].partition("-")[0]
    return first if first in KINDS else "theorem"


def _form_tables(at: Document, document: Mapping[str, Any]) -> dict[str, tuple[list[str], Mapping[str, Any]]]:
    """The tables of the forms by name, each with its place; the top level is one form if it has terms."""
    forms, top = document.get("forms", {}), {name: document[name] for name in OF_FORM if name in document}
    if "terms" in document:
        if forms:
            raise at.fault(["terms"], "a file has terms at the top, or [forms.NAME] tables; move them into a form")
        return {"printed" if document.get("order_only") else "explicit": ([], top)}
    if not isinstance(forms, Mapping) or not forms:
        raise at.fault(
            [], 'there are no terms: write a table [terms] with "NAME" = "EXPRESSION", or [forms.NAME.terms]'
        )
    found = {}
    for name, table in forms.items():
        if not isinstance(table, Mapping) or not re.fullmatch(r"[\w:=.-]+", name):
            raise at.fault(["forms"], "each form must be a table [forms.NAME], such as [forms.explicit.terms]")
        at.refuse_unknown(["forms", name], table, OF_FORM)
        merged = {**{key: value for key, value in top.items() if key not in ("assumptions", "where")}, **table}
        found[name] = (["forms", name], merged)
    return found


def _form(
    at: Document,
    place: Sequence[str],
    name: str,
    table: Mapping[str, Any],
    names: Mapping[str, sp.Expr],
    notation: Notation,
    assumed: Sequence[Assumption],
) -> Form:
    terms = table.get("terms")
    if not isinstance(terms, Mapping) or not terms:
        raise at.fault([*place, "terms"], 'must be a table of "NAME" = "EXPRESSION", one for each summand')
    if place:
        names = {**names, **_definitions(at, [*place, "where"], table.get("where", {}), names, notation)}
    steps = table.get("step_sizes", {})
    if not isinstance(steps, Mapping):
        raise at.fault([*place, "step_sizes"], 'must be a table of SYMBOL = "EXPRESSION"')
    prescribed: dict[str, sp.Expr] = {}
    for step, text in steps.items():
        symbol = _symbol(at, [*place, "step_sizes", step], step, notation)
        quantity = notation[symbol.name]
        if not quantity.concept.endswith(STEP_CONCEPTS) and quantity.concept in {q.concept for q in STANDARD.values()}:
            legal = ", ".join(q.name for q in notation.values() if q.concept.endswith(STEP_CONCEPTS))
            text = f"{step} is no step size but the {quantity.meaning}; known: {legal}, or one of your own in [symbols]"
            raise at.fault([*place, "step_sizes", step], text)
        prescribed[symbol.name] = _expression(at, [*place, "step_sizes", step], text, names)
    for step in prescribed:
        if circle := _circle(step, prescribed):
            text = (
                f"{' -> '.join(circle)} is a circle: each step size is a formula of constants and of other step sizes"
            )
            raise at.fault([*place, "step_sizes", step], text)
    for _ in prescribed:  # a step size may contain others
        known = {notation[step].symbol: value for step, value in prescribed.items()}
        prescribed = {step: value.xreplace(known) for step, value in prescribed.items()}
    chosen = {notation[step].symbol: value for step, value in prescribed.items()}  # the form is at these step sizes
    names = {key: value.xreplace(chosen) for key, value in names.items()}
    expressions = {term: _expression(at, [*place, "terms", term], text, names) for term, text in terms.items()}
    listed = table.get("conditions", [])
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise at.fault([*place, "conditions"], 'must be a list of relations, e.g. ["gamma <= 1/L"]')
    conditions = [_condition(at, [*place, "conditions"], entry, names, notation) for entry in listed]
    listed_hidden = at.texts([*place, "hidden"], table.get("hidden", []))
    own = _own_assumptions(at, table["assumptions"], place) if place and "assumptions" in table else ()
    hides, asymptotic, note = (at.text([*place, k], table.get(k, "")) for k in ("hides", "asymptotic", "note"))
    order_only = at.flag([*place, "order_only"], table.get("order_only", False))
    hidden = tuple(_symbol(at, [*place, "hidden"], name, notation) for name in listed_hidden)
    try:
        return Form(
            name,
            tuple(Term(term, expression) for term, expression in expressions.items()),
            tuple(conditions),
            tuple({a.name: a for a in (*assumed, *own)}.values()),
            order_only=order_only,
            hides=hides,
            hidden=hidden,
            asymptotic=asymptotic,
            prescribes=prescribed,
            note=note,
        )
    except FedboundsError as error:
        raise at.fault(place, str(error)) from None


def _circle(first: str, formulas: Mapping[str, sp.Expr]) -> list[str]:
    """Names that begin and end with the first, of which each formula contains the next; empty if there are none."""
    paths, seen = [[first]], {first}
    for path in paths:
        for name in sorted(str(symbol) for symbol in formulas[path[-1]].free_symbols):
            if name == first:
                return [*path, name]
            if name in formulas and name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []


def _symbol(at: Document, place: Sequence[str], name: str, notation: Notation) -> sp.Symbol:
    quantity = notation.resolve(name)
    if quantity is None:
        raise at.fault(place, str(unknown_name("symbol", name, [*notation])))
    return quantity.symbol


def _notation(at: Document, table: Any) -> tuple[Notation, dict[str, sp.Expr]]:
    """The symbols of a file, and what each name in its expressions stands for."""
    if not isinstance(table, Mapping):
        raise at.fault(["symbols"], 'must be a table, e.g. [symbols] with beta = "smoothness"')
    own: dict[str, Quantity] = {}
    for name, given in table.items():
        place = ["symbols", name]
        _refuse_name(at, place, name)
        row = {"concept": given} if isinstance(given, str) else given
        if not isinstance(row, Mapping):
            raise at.fault(place, 'must be a concept, e.g. "smoothness", or a table with its meaning and dimension')
        at.refuse_unknown(place, row, OF_SYMBOL)
        own[name] = _quantity(at, place, name, row)
    taken = {quantity.concept for quantity in own.values()}
    standard = [q for q in STANDARD.values() if q.name not in own and q.concept not in taken]
    quantities = [*own.values(), *standard]
    concepts = {quantity.concept: quantity.symbol for quantity in quantities}
    return Notation(quantities), {**concepts, **{quantity.name: quantity.symbol for quantity in quantities}}


def _quantity(at: Document, place: Sequence[str], name: str, row: Mapping[str, Any]) -> Quantity:
    concept = at.text(place, row.get("concept", name))
    standard = {quantity.concept: quantity for quantity in STANDARD.values()}
    like = standard.get(concept) or (None if "dimension" in row else all_concepts().get(concept))
    if like is None and "dimension" not in row:
        raise at.fault(
            place,
            f"{unknown_name('concept', concept, all_concepts(), 'fedbounds list --concepts')}; a symbol of another "
            f'meaning is a table with its dimension, e.g. {name} = {{ meaning = "...", dimension = "f/x" }}',
        )
    try:
        domain = read_domain(row["domain"]) if "domain" in row else like.domain if like else read_domain("[0, inf)")
        dimension = read_dimension(row["dimension"]) if "dimension" in row or like is None else like.dimension
    except (ValueError, TypeError):
        raise at.fault(
            place,
            'a domain reads "(0, inf)" or "integers in [1, inf)" and is not empty, a dimension "f/x^2" or "1"',
        ) from None
    meaning = at.text(place, row.get("meaning", like.meaning if like else concept.replace("_", " ")))
    shape = ("clients",) if at.flag(place, row.get("per_client", bool(like and like.shape))) else ()
    latex = at.latex([*place, "latex"], row["latex"]) if "latex" in row else _latex_of(name)
    return Quantity(name, latex, meaning, concept, domain, dimension, shape, total=like.total if like else None)


def _latex_of(name: str) -> str:
    """How a symbol is written where its file does not say: one of several letters upright."""
    written = sp.latex(sp.Symbol(name))
    return rf"\mathrm{{{name}}}" if len(name) > 1 and written == name else written


def _definitions(
    at: Document, place: Sequence[str], table: Any, names: Mapping[str, sp.Expr], notation: Notation
) -> dict[str, sp.Expr]:
    """Names that stand for expressions, each in terms of those before it."""
    if not isinstance(table, Mapping):
        raise at.fault(place, 'must be a table of NAME = "EXPRESSION"')
    found: dict[str, sp.Expr] = {}
    for name, text in table.items():
        _refuse_name(at, [*place, name], name)
        if (taken := notation.resolve(name)) is not None:
            raise at.fault([*place, name], f"{name} is a symbol: {taken.meaning}; give the definition another name")
        found[name] = _expression(at, [*place, name], text, {**names, **found})
    return found


def _refuse_name(at: Document, place: Sequence[str], name: str) -> None:
    """Refuse a name that expressions cannot contain, or that means something else in them."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise at.fault(place, f"{quote(name)} must be a letter, then letters, digits or _")
    if name in ("inf", *FUNCTIONS_OF_FILES):
        raise at.fault(place, f"{name} is infinity or a function; choose another name")


FUNCTIONS_OF_FILES: Mapping[str, Callable[..., sp.Expr]] = {
    **FUNCTIONS,
    "sum": SumOverClients,
    "mean": MeanOverClients,
    "max": lambda *values: MaxOverClients(*values) if len(values) == 1 else FUNCTIONS["max"](*values),
}


def _expression(at: Document, place: Sequence[str], text: Any, names: Mapping[str, sp.Expr]) -> sp.Expr:
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        raise at.fault(place, f'{quote(text)} must be an expression in quotes, e.g. "4*F/(gamma*T)"')
    try:
        found = read_text_expression(str(text), "the expression", names, FUNCTIONS_OF_FILES)
        numbers = found.atoms(sp.Rational, sp.Float)
        if not is_finite_real(found):
            raise FedboundsError(f"{text!r} is no finite real number")
        if any(number and not 1 / LARGEST <= abs(number) <= LARGEST for number in numbers):
            raise FedboundsError(f"{text!r} has a number beyond {float(LARGEST):g}, or closer to 0 than its inverse")
        return found
    except FedboundsError as error:
        raise at.fault(place, str(error)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise at.fault(place, f"cannot read {quote(text)}: {str(error) or type(error).__name__}") from None


def _condition(
    at: Document, place: Sequence[str], entry: Any, names: Mapping[str, sp.Expr], notation: Notation
) -> Condition:
    row = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str):
        raise at.fault(place, f'{quote(entry)} must be a relation in quotes, e.g. "gamma <= 1/(8*L*I)"')
    at.refuse_unknown(place, row, OF_CONDITION)
    for wrong, right in {"=<": "<=", "=>": ">=", "≤": "<=", "≥": ">="}.items():
        if wrong in row["text"]:
            raise at.fault(place, f"write {right} for {wrong}, e.g. {row['text'].replace(wrong, right)!r}")
    parts = re.split(r"(<=|>=|==|<|>)", row["text"])
    if len(parts) != 3 or parts[1] not in {*OPERATORS, "<", ">"}:
        raise at.fault(place, f"{row['text']!r} must have two sides and one of <=, <, >=, >, ==")
    left, right = (_expression(at, place, side.strip(), names) for side in (parts[0], parts[2]))
    made = Condition(left, cast(Operator, parts[1]), right, at.text(place, row.get("why", "condition")))
    for side in (left, right):
        for symbol in sorted(side.free_symbols, key=lambda s: not notation[str(s)].concept.endswith("step_size")):
            limited = Condition(left, made.op, right, made.why, limits=cast(sp.Symbol, symbol))
            if limited.extreme is not None:
                return limited
    return made


def _measure(at: Document, document: Mapping[str, Any]) -> Measure:
    text = document.get("measure")
    found = re.fullmatch(r"([\w ]+?) over (.+?) of (.+)", text) if isinstance(text, str) else None
    lower = at.choice(["bound"], document.get("bound", "upper"), BOUNDS) == "lower"
    expectation = _expectation(at, document.get("expectation", "gradient noise and participation"))
    given = at.text(["given"], document.get("given", ""))
    if isinstance(text, Mapping):
        at.refuse_unknown(["measure"], text, OF_MEASURE)
        if "of" not in text:
            raise at.fault(["measure"], f'the table needs of = "WHAT"; its keys are {", ".join(OF_MEASURE)}')
        aggregate = at.choice(["measure", "aggregate"], text.get("aggregate", "single"), AGGREGATES)
        over = at.choice(["measure", "over"], text.get("over", "none"), INDEX_SETS)
        what = at.text(["measure", "of"], text.get("of"))
        try:
            dimension = read_dimension(at.text(["measure", "dimension"], text.get("dimension", "1")))
        except ValueError:
            raise at.fault(["measure", "dimension"], 'a dimension reads "f^2/x^2" or "1"') from None
        latex = at.latex(["measure", "latex"], text["latex"]) if "latex" in text else r"\text{" + what + "}"
        return Measure(
            cast(Aggregate, aggregate), cast(IndexSet, over), what, latex, dimension, expectation, given, lower=lower
        )
    if found is None:
        raise at.fault(
            ["measure"],
            f'{quote(text)} must read AGGREGATE over INDEX of WHAT, e.g. "minimum over rounds of squared gradient norm '
            'of f"; another left-hand side is a table with of, dimension and latex',
        )
    aggregate, over = at.choice(["measure"], found[1], AGGREGATES), at.choice(["measure"], found[2], INDEX_SETS)
    what, latex, dimension = MEASURED[at.choice(["measure"], found[3], tuple(MEASURED))]
    latex = latex.replace("x_t", r"\bar x_T") if aggregate == "average iterate" else latex
    expected = rf"\mathbb E[{latex}]" if expectation else latex
    whole = f"{OPERATOR_LATEX.get(aggregate, '')}{expected}"
    return Measure(
        cast(Aggregate, aggregate), cast(IndexSet, over), what, whole, dimension, expectation, given, lower=lower
    )


def _expectation(at: Document, given: Any) -> str:
    """What the left-hand side is averaged over, in the order of all files."""
    text = at.text(["expectation"], given)
    parts = [part for part in re.split(r",\s*(?:and\s+)?|\s+and\s+", text.strip()) if part]
    for part in parts:
        if part not in RANDOM:
            raise at.fault(["expectation"], f'{unknown_name("source of randomness", part, RANDOM)}; "" is for none')
    listed = [one for one in RANDOM if one in parts]
    return ", ".join([*listed[:-2], " and ".join(listed[-2:])])


def _setting(
    at: Document, text: Any, algorithm: str, *, lower: bool
) -> tuple[ProblemClass | None, tuple[Assumption, ...]]:
    """The setting in the words of `covers` with what the algorithm says, and the assumption that a problem is in it."""
    if text is None:
        return None, ()
    words = at.text(["setting"], text)
    try:
        found = ProblemClass.of(words)
    except FedboundsError as error:
        raise at.fault(["setting"], str(error)) from None
    name, kinds = phrases().get(tuple(algorithm.split("-")), ("", ()))
    if name in OF_METHODS and name not in found.said and kinds != (axis(name).usual,):
        found = ProblemClass({**found.said, name: kinds})
    open_axis = "server" if lower and not algorithm else ""  # a lower bound is about every method, or names its own
    supposed = {name: kind for name, kind in found.supposed.items() if name != open_axis}
    usual = Cover((tuple((name, frozenset({kind})) for name, kind in sorted(supposed.items())),))
    words = ", ".join(f"{name} {kind}" for name, kind in supposed.items())
    own = [
        Assumption(
            f"setting-{name}", f"{axis(name).question}: {' or '.join(kinds)}", "its setting",
            name == "participation", Cover((((name, frozenset(kinds)),),)),
        )
        for name, said in found.said.items()
        for kinds in [said if lower else axis(name).with_special_cases(said)]
    ]  # fmt: skip
    return found, (Assumption("setting", f"what is usual: {words}", "its setting", cover=usual), *own)


def _own_assumptions(at: Document, listed: Any, place: Sequence[str] = ()) -> tuple[Assumption, ...]:
    """Shared assumptions by name; a table adds ones of its own, NAME = "STATEMENT"."""
    where = [*place, "assumptions"]
    if isinstance(listed, Mapping):
        rows = {name: ASSUMPTIONS.get(name) or Assumption(name, at.text(where, text), "its assumption")
                for name, text in listed.items()}  # fmt: skip
        return tuple(rows.values())
    found = []
    for name in at.texts(where, listed):
        if name not in ASSUMPTIONS:
            hint = f'; one of your own is a table, [{".".join(where)}] {name} = "what must hold"'
            raise at.fault(where, f"{unknown_name('assumption', name, ASSUMPTIONS, 'fedbounds schema theorem')}{hint}")
        found.append(ASSUMPTIONS[name])
    return tuple(found)


def _source(at: Document, given: Any, key: str, *, unread: bool) -> Source:
    row = {"paper": given} if isinstance(given, str) else given
    if not isinstance(row, Mapping):
        raise at.fault(["source"], "must be the paper, or a table with paper, number and equations")
    at.refuse_unknown(["source"], row, OF_SOURCE)
    number = at.text(["source", "number"], row.get("number", key.partition("/")[2].replace("-", " ").title()))
    equations = tuple(at.texts(["source", "equations"], row.get("equations", [])))
    return Source(at.text(["source", "paper"], row.get("paper", "draft")), number, equations, unread)
