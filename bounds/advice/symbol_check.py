"""Checks of the symbols of a stated theorem: whether its constants are those of its setting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.theory.names_by_meaning import all_concepts
from fedbounds.bounds.theory.problem_class import ProblemClass
from fedbounds.bounds.theory.problem_class_terms import AXES
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Quantity
from fedbounds.bounds.theory.theorem_file import TheoremFile

ASSUMED = {  # concepts of constants that exist under an assumption -> the property of a setting, and its kinds
    "gradient_bound": ("gradients", ("bounded",)),
    "stochastic_gradient_bound": ("gradients", ("bounded",)),
    "gradient_noise": ("noise", ("bounded", "growing")),
    "gradient_divergence_sup": ("heterogeneity", ("bounded",)),
    "mean_gradient_divergence": ("heterogeneity", ("bounded",)),
    "heterogeneity_offset": ("heterogeneity", ("bounded", "relative")),
    "relative_dissimilarity": ("heterogeneity", ("bounded", "relative")),
    "strong_convexity": ("objective", ("strongly-convex",)),
}
DIFFERENT = ("divergence", "heterogeneity", "dissimilarity")  # in concepts that measure how clients differ


def describe_symbols(theorem: TheoremFile) -> list[dict[str, str]]:
    """The symbols of a theorem file: name, meaning, unit and concept ("" where its file gives none)."""
    return [
        {"name": q.name, "meaning": q.meaning, "unit": str(q.dimension), "concept": _concept_of(q)}
        for q in theorem.result.notation.values()
    ]


def _concept_of(quantity: Quantity) -> str:
    """The concept of a symbol; "" where its file gives none, so that its name stands for one."""
    return quantity.concept if quantity.concept != quantity.name or quantity.concept in all_concepts() else ""


def check_symbols(theorem: TheoremFile) -> Iterator[Finding]:
    """Whether the constants of every form are those of its setting."""
    result, setting = theorem.result, theorem.setting
    if setting is None:
        return
    for form in result.forms:
        at = () if len(result.forms) == 1 else ("forms", form.name)
        used = [q for q in result.notation.values() if q.symbol in form.symbols or q.symbol in form.hidden]
        for place, text in (*_without_assumption(form, used, setting), *_lacking(result, form, used, setting)):
            keys = place if place == ("setting",) else (*at, *place)
            yield Finding("warning", "symbols", form.name, text, keys)


def _without_assumption(
    form: Form, used: Sequence[Quantity], setting: ProblemClass
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Constants that exist under an assumption only which neither the setting nor the form has."""
    for q in used:
        name, kinds = ASSUMED.get(q.concept, ("", ()))
        if not name or {*kinds} & {*setting.said.get(name, ())} or _is_assumed(form, q, name):
            continue
        words = " or ".join(f"{AXES[name].kinds[kind].phrases[0]!r}" for kind in kinds)
        text = f"{q.name} is the {q.meaning} ({q.concept}), and the setting does not say {words}"
        text += f"; if {q.name} is another constant, declare it in [symbols]"
        where = [("terms", term.name) for term in form.terms if q.symbol in term.expression.free_symbols]
        yield (*where, ("conditions",))[0], text


def _is_assumed(form: Form, quantity: Quantity, name: str) -> bool:
    """Whether an assumption beside the setting is about a property of settings, or names a symbol."""
    own = [a for a in form.assumptions if not a.name.startswith("setting")]
    boxes = [dict(one) for a in own if a.cover is not None for one in (*a.cover.holds, *a.cover.perhaps)]
    return any(name in one for one in boxes) or any(re.search(rf"\b{quantity.name}\b", a.statement) for a in own)


def _lacking(
    result: Result, form: Form, used: Sequence[Quantity], setting: ProblemClass
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Properties of the setting of which an upper bound of a run has no constant."""
    measure = form.measure or result.measure
    if measure.lower or measure.aggregate == "single":
        return
    concepts = {q.concept: q.name for q in used}
    unnamed = [q.name for q in used if not _concept_of(q)]
    some = f" ({', '.join(unnamed)}: no concept is given, and fedbounds list --concepts lists them)" if unnamed else ""
    local = setting.said.get("local-steps", ("one",))
    if not {"one", "changing"} & {*local} and not any("local_steps" in concept for concept in concepts):
        text = f"the setting has local steps, and no constant is their number (I, local_steps){some}"
        if "iterations" in concepts:
            text += f"; {concepts['iterations']} is the number of iterations, all local steps of all rounds"
        yield ("setting",), text
    said = setting.said.get("heterogeneity", ("none",))
    hidden = form.order_only and any(word in form.hides for word in DIFFERENT)
    if {*said} <= {"bounded", "relative"} and not hidden and not any(w in c for w in DIFFERENT for c in concepts):
        text = f"the setting bounds the heterogeneity, and no constant measures it, such as d, zeta or zetastar{some}"
        yield ("setting",), text
