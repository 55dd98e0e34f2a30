"""The results of a paper, typeset from the objects themselves."""

from __future__ import annotations

import re

from sympy import Symbol

from fedbounds.bounds.audit.errata import paper_errata
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.theory.printing import latex, name_shared_parts
from fedbounds.bounds.theory.registry import paper
from fedbounds.bounds.theory.result import Form, Result


def plain(text: str) -> str:
    """Text in which Markdown finds nothing."""
    return re.sub(r"[\\`*_{}\[\]#<>|$]", lambda mark: f"&#{ord(mark[0])};", text)


def statements(key: str) -> str:
    """Each result of a paper: where it stands, what it bounds, and every form with its conditions."""
    source = paper(key)
    return "\n\n".join([source.reference, *(statement(result) for result in source.results)])


def statement(result: Result) -> str:
    """One result under its key, its forms one below the other."""
    heading = f"### {result.title}\n\n`{result.key}` ({result.source})"
    if paper_errata(result.paper):  # then it is audited and has a page
        heading += f", [formula, verdicts, plot and code](results/{result.key}.md)"
    return "\n\n".join([heading, *(displayed(result, form) for form in result.forms)])


def displayed(result: Result, form: Form) -> str:
    """One form as a displayed formula, its terms in order and named, with its conditions in a list."""
    short = name_shared_parts(form.expressions, result.notation)
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
