"""The data of an explorer page: one paper as JavaScript."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from fedbounds.bounds.audit.counterexample import Erratum
from fedbounds.bounds.audit.errata import errata_about
from fedbounds.bounds.audit.ledger import committed_verdict, trusted_premise
from fedbounds.bounds.evaluation.evaluate import status_reasons
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.printing import latex as in_latex
from fedbounds.bounds.theory.registry import Paper, paper_module
from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.symbols import Derived, Notation, Quantity
from fedbounds.figures.explorer.javascript import form_function, rule_function
from fedbounds.figures.explorer.mathml import mathml
from fedbounds.figures.explorer.start import initial_constants, initial_value

TEXT, LONG = re.compile(r'"(?:[^"\\]|\\.)*"'), 60
SIGNS = {"<=": r"\le", ">=": r"\ge", "==": "="}


def measures_of(papers: Sequence[Paper]) -> list[Measure]:
    """Every left-hand side, once."""
    return list(dict.fromkeys(f.measure or r.measure for paper in papers for r in paper.results for f in r.forms))


def measures_document(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """The left-hand sides in words, each with the indices of those that are never smaller."""
    return [
        {
            "aggregate": m.aggregate,
            "over": m.over,
            "of": m.of,
            "expectation": m.expectation,
            "given": m.given,
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
                said = {"name": rule.name, "inputs": rule.inputs, "why": rule.why, "free": rule.free}
                text = f"{{...{json_text(said)}, compute: {function}}}"
                found.append(rules.setdefault(text, len(rules)))
        return found

    notations = list({id(result.notation): result.notation for result in paper.results}.values())
    results = []
    for result in paper.results:
        about = [_erratum(e) for e in errata_about(result)]
        forms = []
        for form in result.forms:
            declared = feasible_set(result, form)
            functions.append(form_function(form, declared.all if declared else (), result.notation))
            place = measures.index(form.measure or result.measure)
            forms.append({**_form(result, form), "measure": place, "rules": places(form.derived, result.notation)})
        results.append(
            {**_result(result), "notation": notations.index(result.notation), "errata": about, "forms": forms}
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
        "meaning": q.meaning,
        "concept": q.concept,
        "unit": str(q.dimension),
        "vector": bool(q.shape),
        "default": q.default,
        "total": q.total,
        "start": initial_value(q),
        "domain": {
            "low": str(q.domain.low).replace("inf", "Infinity"),
            "high": str(q.domain.high).replace("inf", "Infinity"),
            "low_open": q.domain.low_open,
            "high_open": q.domain.high_open,
            "integer": q.domain.integer,
            "infinite": q.domain.infinite,
            "text": str(q.domain),
        },
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "key": result.key,
        "kind": result.kind,
        "title": result.title,
        "source": str(result.source),
        "statement": result.statement,
        "default": result.default,
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
        "name": form.name,
        "note": form.note,
        "reading": form.generous,
        "hides": form.hides,
        "order_only": form.order_only,
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
        "assumptions": [{"name": a.name, "statement": a.statement, "label": a.label} for a in form.assumptions],
        "needed": sorted(needed),
        "reach": [name for name in notation if name in reachable(form, prescribed=True)],
        "given": initial_constants(result, form),
        "latex": lines,
    }


def _erratum(erratum: Erratum) -> dict[str, str]:
    return {
        "id": erratum.id,
        "degree": erratum.degree,
        "where": erratum.where,
        "claim": erratum.claim,
        "fails": erratum.fails,
        "instead": erratum.instead,
    }
