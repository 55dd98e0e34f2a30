"""A result in a report: its formula, its verdict with the command that verifies it, its errata."""

from __future__ import annotations

from typing import Any

from fedbounds.bounds.audit.counterexample import Erratum
from fedbounds.bounds.audit.errata import errata_about
from fedbounds.bounds.audit.ledger import committed_verdict, mark, read_ledger, trusted_premise
from fedbounds.bounds.audit.verdict import CHECKERS
from fedbounds.bounds.display.json_values import attributes
from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.evaluation.evaluate import status_reasons
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.theory.result import Form, Result


def result_document(result: Result, form: Form) -> dict[str, Any]:
    """One form of a result: its statement in LaTeX, its source, and its caveats."""
    parts = result.latex_parts(form)
    named = [
        rf"\underbrace{{{term}}}_{{\text{{{tex(t.name)}}}}}" for t, term in zip(form.terms, parts.terms, strict=True)
    ]
    named[1:] = [f"+ {term}" for term in named[1:]]
    conditions = zip(parts.conditions, form.hypotheses, strict=True)
    return {
        "key": result.key,
        "form": form.name,
        "claim": f"{result.key}[{form.name}]",
        **attributes(result, "kind title"),
        "source": str(result.source),
        "statement": result.statement,
        "measure": str(form.measure or result.measure),
        "pieces": [
            f"{parts.left} {parts.opening}".rstrip(),
            *named[:-1],
            named[-1] + parts.closing,
        ],
        "conditions": [{"tex": said, "text": c.text, "why": c.why} for said, c in conditions],
        "steps": list(parts.steps),
        "names": list(parts.names),
        **attributes(form, "note implicit"),
        "assumptions": [attributes(a, "name statement label") for a in form.assumptions],
        "caveats": list(status_reasons(compiled_form(result, form))),
        "conditional_on": trusted_premise(result, form),
        "verdicts": [verdict_document(result, form)],
        "errata": [erratum_document(erratum) for erratum in errata_about(result)],
    }


def verdict_document(result: Result, form: Form) -> dict[str, Any]:
    """The verdict of the committed ledger on a form, and the command that verifies it."""
    claim = f"{result.key}[{form.name}]"
    ledger = read_ledger(result.paper) if committed_verdict(result, form) != "unknown" else {}
    entry, units = ledger.get(claim, {}), ledger.get(f"{claim}/units", {})
    axioms = entry.get("axioms", [])
    return {
        "claim": claim,
        "verdict": committed_verdict(result, form),
        "by": CHECKERS.get(str(entry.get("checker", "")), str(entry.get("checker", ""))),
        "trusts": [str(axiom) for axiom in axioms] if isinstance(axioms, list) else [],
        "units": str(units.get("verdict", "unknown")),
        "mark": mark(result, form),
        **attributes(form, "refuted_by note"),
        "replay": f'fedbounds audit "{claim}"',
    }


def erratum_document(erratum: Erratum) -> dict[str, Any]:
    """One erratum, with the smallest counterexample and the command that replays it."""
    return {
        **attributes(erratum, "id degree where"),
        "quotes": [attributes(quote, "text where") for quote in erratum.quotes],
        **attributes(erratum, "claim fails"),
        **attributes(erratum.replayed, "instance comparison"),
        **attributes(erratum, "instead repeats"),
        "replay": f"fedbounds refute {erratum.id}",
    }
