r"""How much a bound changes with a constant: elasticities $\partial\log\text{bound}/\partial\log c$ at one point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant

STEP = 1e-4  # of the logarithm; the error is of its square


def elasticities(result: Result, form: Form, constants: Mapping[str, Value], names: Iterable[str]) -> dict[str, float]:
    r"""By how many percent the bound grows if a constant grows by one, everything else held fixed, step sizes too.

    Central differences in the logarithm, one-sided where the other side is illegal; all entries of a vector grow
    together. Left out are whole numbers, weights with a sum, zeros, and what the bound does not depend on.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("tdcd/theorem-1")
        >>> known = dict(L=1, Lmax=1, Delta=5, S=1, Q=1, R=100, eta=0.1)
        >>> found = elasticities(theorem, theorem.form("repaired"), known, ["Delta", "S"])
        >>> round(found["Delta"] + found["S"], 6)
        1.0
    """
    found = {}
    for name in names:
        quantity, given = result.notation[name], constants[name]
        constant = given if isinstance(given, Constant) else Constant(given, "given")  # pyright: ignore[reportArgumentType]
        value = np.asarray(constant.value, dtype=float)
        if quantity.domain.integer or quantity.total is not None or value.ndim > len(quantity.shape):
            continue
        if not ((value > 0) & np.isfinite(value)).all():
            continue
        legal = [f for f in (-STEP, 0.0, STEP) if quantity.domain.contains(value * np.exp(f)).all()]
        low, high = legal[0], legal[-1]
        moved = np.stack([value * np.exp(low), value * np.exp(high)])
        try:
            there = {**constants, name: Constant(moved, constant.source)}
            values = evaluate(result, there, form=form.name, strict=False).value
        except FedboundsError:  # beside the others, this constant is what it is
            continue
        before, after = np.broadcast_to(values, (2,)).tolist()
        if 0 < before < np.inf and 0 < after < np.inf and before != after:
            found[name] = float((np.log(after) - np.log(before)) / (high - low))
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))
