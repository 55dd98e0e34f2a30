"""The data of an explorer page: one paper as JavaScript, with the initial values of its constants."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import sympy as sp
from sympy.printing.jscode import JavascriptCodePrinter

from fedbounds.bounds._version import __version__
from fedbounds.bounds.audit.errata import errata_about
from fedbounds.bounds.audit.ledger import committed_verdict, trusted_premise
from fedbounds.bounds.display.json_values import attributes
from fedbounds.bounds.display.mathml import mathml
from fedbounds.bounds.evaluation.evaluate import status_reasons
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_outputs
from fedbounds.bounds.search.effort import Watch
from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.expressions import parts
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.printing import latex as in_latex
from fedbounds.bounds.theory.registry import ALL_REFERENCES, REFERENCES, Paper, paper, paper_module
from fedbounds.bounds.theory.registry import papers as every_paper
from fedbounds.bounds.theory.result import Condition, Form, Result, reachable
from fedbounds.bounds.theory.symbols import Derived, Notation, Quantity

TEXT, LONG = re.compile(r'"(?:[^"\\]|\\.)*"'), 60
SIGNS = {"<=": r"\le", ">=": r"\ge", "==": "="}


def measures_of(papers: Sequence[Paper]) -> list[Measure]:
    """Every left-hand side, once."""
    return list(dict.fromkeys(f.measure or r.measure for paper in papers for r in paper.results for f in r.forms))


def measures_document(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """The left-hand sides in words, each with the indices of those that are never smaller."""
    return [
        {
            **attributes(m, "aggregate over of expectation given"),
            "text": str(m),
            "math": mathml(m.latex),
            "at_most": [k for k, other in enumerate(measures) if m.is_at_most(other)],
        }
        for m in measures
    ]


def script(paper: Paper, measures: Sequence[Measure]) -> str:
    """A paper as a JavaScript object, with the functions of its forms and rules."""
    rules: dict[str, int] = {}  # a rule's function and all that it says, to its place
    functions: list[str] = []

    def places(derived: Sequence[Derived], notation: Notation) -> list[int]:
        found = []
        for rule in derived:
            if function := rule_function(rule, notation):
                rule_text = json_text(attributes(rule, "name inputs why free"))
                text = f"{{...{rule_text}, compute: {function}}}"
                found.append(rules.setdefault(text, len(rules)))
        return found

    notations = list({id(result.notation): result.notation for result in paper.results}.values())
    results = []
    for result in paper.results:
        about = [attributes(e, "id degree where claim fails instead") for e in errata_about(result)]
        forms = []
        for form in result.forms:
            declared = feasible_set(result, form)
            functions.append(form_function(form, declared.all if declared else (), result.notation))
            place = measures.index(form.measure or result.measure)
            forms.append({**_form(result, form), "measure": place, "rules": places(form.derived, result.notation)})
        results.append(
            {
                **attributes(result, "key kind title"),
                "source": str(result.source),
                **attributes(result, "statement default"),
                "notation": notations.index(result.notation),
                "errata": about,
                "forms": forms,
            }
        )
    document = {
        "key": paper.key,
        "reference": paper.reference,
        "notations": [
            {"symbols": {q.name: _symbol(q) for q in n.values()}, "floors": places(n.floors, n)} for n in notations
        ],
        "results": results,
    }
    package = paper_module(paper.key).__package__  # "" of a plug-in that is one module
    lines = ["(() => {", package_text(package, "functions.js") if package else ""]
    lines.append(_share_texts(f"const paper = {json_text(document)};"))
    lines += ["paper.rules = [", ",\n".join(rules), "];", "const forms = [", ",\n".join(functions), "];"]
    return "\n".join([*lines, "return assembled(paper, forms);", "})()"])


def json_text(value: Any) -> str:
    """A document as JSON, safe inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _share_texts(text: str) -> str:
    """Code in which long repeated texts are in a list `S`."""
    counts = Counter(said for said in TEXT.findall(text) if len(said) > LONG)
    places = {said: f"S[{k}]" for k, said in enumerate(said for said, count in counts.items() if count > 1)}
    short = TEXT.sub(lambda found: places.get(found[0], found[0]), text)
    return "\n".join(["const S = [", ",\n".join(places), "];", short])


def package_text(package: str, name: str) -> str:
    """A text file of a package; empty if there is none."""
    file = files(package).joinpath(name)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _symbol(q: Quantity) -> dict[str, Any]:
    return {
        "name": q.name,
        "math": mathml(q.latex),
        **attributes(q, "meaning concept"),
        "unit": str(q.dimension),
        "vector": bool(q.shape),
        **attributes(q, "default total"),
        "start": initial_value(q),
        "domain": {
            "low": str(q.domain.low).replace("inf", "Infinity"),
            "high": str(q.domain.high).replace("inf", "Infinity"),
            **attributes(q.domain, "low_open high_open integer infinite"),
            "text": str(q.domain),
        },
    }


def _form(result: Result, form: Form) -> dict[str, Any]:
    notation = result.notation
    short = result.printed(form)
    written = iter([in_latex(expression, notation) for expression in short.expressions])
    terms = [{"name": term.name, "math": mathml(next(written))} for term in form.terms]
    typeset = {c: f"{next(written)} {SIGNS.get(c.op, c.op)} {next(written)}" for c in form.hypotheses}
    lines = result.latex_parts(form).lines
    meant = lines.splitlines()[1 + len(typeset) :]
    needed = {s.name for e in form.expressions for s in e.free_symbols}
    declared = feasible_set(result, form)
    return {
        **attributes(form, "name note"),
        "reading": form.implicit,
        **attributes(form, "hides order_only"),
        "signed": (form.measure or result.measure).signed,
        "verdict": committed_verdict(result, form),
        "caveats": status_reasons(compiled_form(result, form)),
        "conditional_on": trusted_premise(result, form),
        "refuted_by": form.refuted_by,
        "terms": terms,
        "where": [mathml(line) for line in meant],
        "prescribes": list(form.prescribes),
        "conditions": [
            {
                "op": c.op,
                "text": c.as_printed(notation).text,
                "math": mathml(typeset[c]) if c in typeset else "",
                "why": c.why,
                "limits": c.limits.name if c.limits is not None else "",
                "legal": c.legal,
            }
            for c in form.conditions
        ],
        "computed_from": declared.computed_from if declared else (),
        "feasible": None
        if declared is None
        else [
            {"op": c.op, "text": c.as_printed(notation).text, "why": c.why, "witness": c in declared.witnessed}
            for c in declared.all
        ],
        "assumptions": [attributes(a, "name statement label") for a in form.assumptions],
        "needed": sorted(needed),
        "reach": [name for name in notation if name in reachable(form, prescribed=True)],
        "given": initial_constants(result, form),
        "latex": lines,
    }


class _Printer(JavascriptCodePrinter):
    """Constants are properties of `c`; the symbol of a vector is its n-th entry, as in a reduction over clients."""

    def __init__(self, notation: Notation) -> None:
        super().__init__({"allow_unknown_functions": True})
        self.vectors = {q.symbol for q in notation.values() if q.shape}

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return f"c.{expr.name}[n]" if expr in self.vectors else f"c.{expr.name}"

    def _print_floor(self, expr: sp.Expr) -> str:
        return f"floor({self._print(expr.args[0])})"

    def _print_ceiling(self, expr: sp.Expr) -> str:
        return f"ceiling({self._print(expr.args[0])})"

    def _print_NamedNumber(self, expr: NamedNumber) -> str:
        return repr(float(sp.N(expr.exact, 17)))

    def _reduction(self, expr: OverClients) -> str:
        return self.of_clients(expr.word, parts(expr)[0])

    _print_SumOverClients = _print_MeanOverClients = _print_MaxOverClients = _print_MedianOverClients = _reduction

    def of_clients(self, function: str, expr: sp.Expr) -> str:
        """A call with the number of clients and a function of the index of one."""
        vectors = sorted(str(s) for s in expr.free_symbols & self.vectors)
        count = f"c.{vectors[0]}.length" if vectors else "1"
        return f"{function}({count}, n => {self._print(expr)})"


def javascript(expression: sp.Expr, notation: Notation) -> str:
    """The expression in JavaScript.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("fed-norm-sgda/theorem-1")
        >>> javascript(theorem.form("printed").conditions[0].left, theorem.notation)
        'sum_clients(c.w.length, n => c.w[n])'
    """
    return _Printer(notation).doprint(expression)


def form_function(form: Form, feasible: Iterable[Condition], notation: Notation) -> str:
    """A function of the constants: terms, prescribed values, sides and extremes of conditions, and feasible sides."""
    conditions = [
        _array((c.left, c.right, *([] if c.extreme is None else [c.extreme])), notation) for c in form.conditions
    ]
    terms = _array((t.expression for t in form.terms), notation)
    steps, together = (
        _array(form.prescribes.values(), notation),
        [_array((c.left, c.right), notation) for c in feasible],
    )
    return f"c => [{terms}, {steps}, [{', '.join(conditions)}], [{', '.join(together)}]]"


def _array(expressions: Iterable[sp.Expr], notation: Notation) -> str:
    return f"[{', '.join(javascript(e, notation) for e in expressions)}]"


def rule_function(rule: Derived, notation: Notation) -> str:
    """A function of the constants that returns a derived one; empty if the rule exists only in numpy."""
    if isinstance(rule.rule, sp.Expr):
        printer = _Printer(notation)
        each = notation[rule.name].shape
        return "c => " + (printer.of_clients("each", rule.rule) if each else printer.doprint(rule.rule))
    return f"c => ({rule.javascript})({', '.join(f'c.{name}' for name in rule.inputs)})" if rule.javascript else ""


Start = float | list[float]

# an everyday setting in which most results hold; every other constant starts by its domain
VALUES: dict[str, Start] = {
    "rounds": 100_000,
    "iterations": 100_000,
    "local_steps": 5,
    "local_steps_by_client": [5, 5, 5, 5],
    "clients": 4,
    "clients_of_each_silo": [4, 4, 4, 4],
    "participating_clients": 2,
    "interval": 2,
    "unavailable_rounds": 2,
    "local_step_size": 1e-3,
    "local_ascent_step_size": 1e-3,
    "step_size_at_t": 1e-3,
    "server_step_size": 1e-6,
    "server_ascent_step_size": 1e-3,
    "effective_step": 5e-6,
    "effective_ascent_step": 1e-3,
    "scaled_step": 1e-3,
    "cutoff_interval": 5,
    "participation_rates": [0.25, 0.5, 0.75, 1],
    "aggregation_weights": [0.25, 0.25, 0.25, 0.25],
    "weight_error": 1e-3,
    "largest_weight_error": 1e-3,
    "failure_probability": 0.1,
    "time_budget": 100_000,
    "strong_convexity": 0.5,
    "strong_concavity": 0.5,
}


def initial_value(quantity: Quantity) -> Start:
    """The initial value of a constant."""
    domain = quantity.domain
    usual = VALUES.get(quantity.concept)
    if usual is not None and bool(quantity.shape) == isinstance(usual, list):
        return usual
    middle = quantity.total / 4 if quantity.total else min(1.0, (max(domain.low, 0) + domain.high) / 2)
    value = quantity.default if quantity.default is not None else max(domain.low, middle)
    return [value] * 4 if quantity.shape else value


def initial_constants(result: Result, form: Form) -> list[str]:
    """A minimal set of constants from which all others of a form follow, in the order of the notation."""
    wanted = reachable(form, prescribed=True)
    needed = {s.name for e in form.expressions for s in e.free_symbols}
    defaults = {q.name for q in result.notation.values() if q.default is not None}
    given = set(wanted)
    for name in [*(rule.name for rule in form.derived), *result.notation]:
        left = given - {name} | defaults
        while more := {r.name for r in form.derived if {*r.inputs} <= left} - left:
            left |= more
        if needed <= left:
            given.discard(name)
    return [name for name in result.notation if name in given]


ALL = "index"  # the file of all papers


def explore(
    out: str | Path, papers: Sequence[str] = (), watch: Watch | None = None, *, force: bool = False
) -> list[Path]:
    """Write one HTML file for each paper (default: all), and `index.html` for all of them; return the paths.

    The reference theorems with explicit constants are one file, `references.html`.
    """
    names = papers or [*(one.key for one in every_paper()), ALL_REFERENCES]
    chosen = {name: explicit_references() if name == ALL_REFERENCES else [paper(name)] for name in names}
    outputs = [Output(Path(out, f"{name}.html")) for name in (*chosen, ALL)]
    check_outputs(outputs, force)
    measures = measures_of([one for page_papers in chosen.values() for one in page_papers])
    scripts: dict[str, list[str]] = {}
    for name, page_papers in chosen.items():
        scripts[name] = [script(one, measures) for one in page_papers]
        if watch is not None:
            watch(len(scripts), len(chosen))
    pages = {name: page(name, theory(texts, measures)) for name, texts in scripts.items()}
    pages[ALL] = page("all papers", theory([text for texts in scripts.values() for text in texts], measures))
    write_outputs(outputs, [pages[output.path.stem].encode() for output in outputs], force)
    return [output.path for output in outputs]


def explicit_references() -> list[Paper]:
    """The papers of reference theorems, with the results that have a form with explicit constants."""
    found = []
    for one in map(paper, REFERENCES):
        if explicit := tuple(r for r in one.results if not all(form.order_only for form in r.forms)):
            found.append(replace(one, results=explicit))
    return found


def page(about: str, computes: str) -> str:
    """The HTML of one explorer."""
    parts = {
        "TITLE": f"fedbounds explorer: {html.escape(about)}",
        "VERSION": __version__,
        "STYLE": _asset("uPlot.min.css") + _asset("page.css"),
        "LIBRARY": f"/*\n{_asset('uPlot-LICENSE.txt')}*/\n{_asset('uPlot.iife.min.js')}",
        "THEORY": computes,
        "PAGE": _asset("page.js"),
    }
    return re.sub(r"@([A-Z]+)@", lambda name: parts[name[1]], _asset("page.html"))


def theory(scripts: Sequence[str], measures: Sequence[Measure]) -> str:
    """The computations of a page in JavaScript."""
    listed = json_text(measures_document(measures))
    papers = ",\n".join(scripts)
    return f"{_asset('theory.js')}\nconst MEASURES = {listed};\nconst PAPERS = [{papers}];\n"


def _asset(name: str) -> str:
    return package_text("fedbounds.figures.explorer", name)
