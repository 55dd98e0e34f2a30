"""Exact worst cases, by performance estimation, against a stated theorem about deterministic FedAvg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedbounds.bounds.advice.theorem_check import QUIET, Finding
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.result import Form
from fedbounds.bounds.theory.theorem_file import TheoremFile
from fedbounds.empirical.falsification.theorem_runs import MOMENTS
from fedbounds.empirical.falsification.theorem_search import sizes_by_concept, step_size_at

SETTINGS = ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (3, 2))  # local steps, rounds
SHARES = (1.0, 0.5)  # of the largest legal step size
NEAR = 1e-5  # relative accuracy of a solution
FIXED = {"smoothness": 1.0, "initial_gap": 1.0, "clients": 1, "participating_clients": 1, "server_multiplier": 1.0}


def worst_case_finding(theorem: TheoremFile, form: Form) -> Finding:
    """The largest ratio of the exact worst case of one client, over smooth functions, to the bound."""
    if why := _why_none(theorem, form):
        return Finding("warning", "worst case", form.name, f"no worst case was computed: {why}")
    try:
        from fedbounds.empirical.falsification.worst_case import worst_case
    except ImportError:
        raise FedboundsError("--worst-case needs PEPit: pip install 'fedbounds[worst-case]'") from None
    measure, most, at, worst = form.measure or theorem.result.measure, 0.0, {}, 0.0
    for constants, bound, setting in _settings(theorem, form):
        try:
            found = worst_case("generalized-fedavg", **setting, measure=measure.aggregate)
        except FedboundsError:
            continue  # the solver found no clean optimum
        if found.value > most * bound:
            most, at, worst = found.value / bound, constants, found.value
    if not at:
        return Finding(
            "warning", "worst case", form.name, "no worst case was computed: no setting meets all conditions"
        )
    text = f"exact worst case of one client over smooth functions, at most {most:.4g} times the bound"
    if most > 1 + NEAR:
        return Finding("error", "worst case", form.name, f"violated: {text} ({worst:.6g})", ("terms",), at)
    return Finding("ok", "worst case", form.name, text, (), at)


def _why_none(theorem: TheoremFile, form: Form) -> str:
    measure = form.measure or theorem.result.measure
    said = {} if theorem.setting is None else theorem.setting.said
    if theorem.algorithm not in MOMENTS:
        return f"worst cases are of algorithm = {' or '.join(map(repr, MOMENTS))}"
    if form.order_only:
        return "the form hides constants in an O"
    if measure.lower:
        return "it is a lower bound"
    if measure.aggregate not in ("minimum", "average") or measure.over != "rounds":
        return f"worst cases are of minima and averages over rounds, not {measure}"
    if not measure.of.startswith("squared gradient norm of f"):
        return f"worst cases are of gradient norms, not {measure.of}"
    if "objective" in said and "non-convex" not in said["objective"]:
        return "the functions of the worst cases need not be convex"
    return ""


def _settings(theorem: TheoremFile, form: Form) -> Iterator[tuple[dict[str, float], float, dict[str, Any]]]:
    """Constants that meet all conditions, the bound there, and the setting of the method."""
    result = theorem.result
    needed = {n: result.notation[n].concept for n in result.notation if n in form.needs - form.prescribes.keys()}
    for local_steps, rounds in SETTINGS:
        if local_steps > 1 and "local_steps" not in needed.values():
            continue
        known = FIXED | {"local_steps": local_steps, "rounds": rounds, "iterations": rounds * local_steps}
        known |= {concept: 0.0 for concept in needed.values() if any(word in concept for word in QUIET)}
        steps = [name for name, concept in needed.items() if concept == "local_step_size"]
        if any(concept not in known for name, concept in needed.items() if name not in steps):
            return
        constants: dict[str, float] = {n: known[c] for n, c in needed.items() if n not in steps}
        for share in SHARES if steps else (1.0,):
            for name in steps:
                constants[name] = step_size_at(form, name, constants, share, 1.0)
            found = evaluate(result, constants, form.name, strict=False)
            sizes = sizes_by_concept(constants, found)
            if found.valid and found.value > 0 and "local_step_size" in sizes:
                multiplier = sizes.get("server_multiplier", 1.0)
                setting = {"rounds": rounds, "local_steps": local_steps, "local_step": sizes["local_step_size"]}
                yield dict(constants), float(found.value), setting | {"server_multiplier": multiplier}
