"""Estimates for many settings at once: each reaches the target, and none is far from the least rounds of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.search.optimize import Minimum, optimize
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.search.rounds_answers import Reached
from fedbounds.bounds.search.rounds_estimates import CLOSE, RoundsEstimates
from fedbounds.bounds.theory.symbols import Constant

THEOREM = dict(L=1, F=5, sigma=0.7, nu=2, beta=0.5, delta=0.05, rho=0.5)
TIERS = dict(L=1, Lmax=2, Delta=5, S=1)
RATES = dict(L=1, F=5, sigma=1, delta=1, G=2, p=np.full(4, 0.5))


def estimates(
    key: str,
    target: float,
    settings: Sequence[Mapping[str, float | np.ndarray]],
    ranges: Mapping[str, tuple[float, float]],
    counter: str = "T",
    units: Sequence[float] | None = None,
    groups: Sequence[int] | None = None,
    form: str | None = None,
) -> np.ndarray:
    many = len(settings)
    known = [{name: Constant(value, "given") for name, value in setting.items()} for setting in settings]
    ends = np.tile(np.array([*ranges.values()], dtype=float).reshape(len(ranges), 2), (many, 1, 1))
    return RoundsEstimates(
        as_compiled(key).form(form),
        target,
        counter,
        known,
        tuple(ranges),
        ends,
        np.ones(many) if units is None else np.array(units, dtype=float),
        np.ones(many),
        np.arange(many) if groups is None else np.array(groups),
    ).run()


@pytest.mark.parametrize(
    ("key", "counter", "target", "settings", "ranges"),
    [
        ("arbitrary-participation/theorem-3.1", "T", 0.5,
         [dict(THEOREM, I=I, P=P) for I, P in [(1, 1), (7, 3), (20, 1)]], {"gamma": (0, np.inf), "eta": (1, 100)}),
        ("tdcd/theorem-1", "R", 0.5, [dict(TIERS, Q=Q) for Q in (1, 4)], {"eta": (0, np.inf)}),
        ("fedau/theorem-2", "T", 2.0, [dict(RATES, I=I, K=K) for I, K in [(1, 6), (5, 9)]],
         {"gamma": (0, np.inf), "eta": (1, 100)}),
        ("arbitrary-participation/corollary-3.2", "T", 0.5, [dict(THEOREM, S=4, I=I, P=2) for I in (1, 6)], {}),
    ],
)  # fmt: skip
def test_an_estimate_reaches_the_target_and_is_near_the_least_rounds_of_a_search(
    key, counter, target, settings, ranges
):
    settings = [{name: v for name, v in s.items() if name in as_compiled(key).notation} for s in settings]
    settings = [{name: v for name, v in s.items() if key != "arbitrary-participation/corollary-3.2" or name != "rho"}
                for s in settings]  # fmt: skip
    found = estimates(key, target, settings, ranges, counter)
    within = {name: ends for name, ends in ranges.items() if np.isfinite(ends[1])}
    for count, setting in zip(found, settings, strict=True):
        least = rounds(key, target, setting, optimize=list(ranges), within=within or None)
        assert isinstance(least, Reached) and least.evaluation is not None
        counted = float(least.evaluation.constants[counter].value)
        assert counted <= count <= counted * (1 + 2 * CLOSE) + 1, setting
        if ranges:
            best = optimize(key, {**setting, counter: count}, list(ranges), within=within)
            assert isinstance(best, Minimum) and best.value <= target * (1 + 1e-9)


def test_what_never_reaches_the_target_has_no_estimate():
    settings = [dict(THEOREM, I=2, P=1, delta=delta) for delta in (0.05, 1.0, 0.0)]
    found = estimates("arbitrary-participation/theorem-3.1", 0.5, settings, {"gamma": (0, np.inf), "eta": (1, 100)})
    assert np.isfinite(found).tolist() == [True, False, True]
    broken = [dict(TIERS, Q=1, Lmax=2), dict(TIERS, Q=1, Lmax=2)]
    none = estimates("tdcd/theorem-1", 0.5, broken, {"eta": (10.0, 20.0)}, "R")  # far above every legal step size
    assert np.isinf(none).all()


def test_rounds_are_multiples_of_what_divides_them():
    settings = [dict(THEOREM, I=2, P=P) for P in (1, 7)]
    ranges = {"gamma": (0.0, np.inf), "eta": (1.0, 100.0)}
    found = estimates("arbitrary-participation/theorem-3.1", 0.5, settings, ranges, units=[1, 7])
    assert found[1] % 7 == 0


def test_of_a_group_the_cheapest_is_estimated_as_it_is_alone():
    settings = [dict(THEOREM, I=I, P=1) for I in (1, 5, 20)]
    ranges = {"gamma": (0.0, np.inf), "eta": (1.0, 100.0)}
    alone = estimates("arbitrary-participation/theorem-3.1", 0.5, settings, ranges)
    together = estimates("arbitrary-participation/theorem-3.1", 0.5, settings, ranges, groups=[0, 0, 0])
    assert together.min() == pytest.approx(alone.min(), rel=CLOSE)
    assert (together >= alone * (1 - CLOSE)).all()


def test_a_setting_that_is_refused_does_not_keep_the_others_from_an_estimate():
    settings = [dict(RATES, I=1, K=6), dict(RATES, I=1, K=6, p=np.array([0.5, 0.5, 0.5, 1e-9]))]
    ranges = {"gamma": (0.0, np.inf), "eta": (1.0, 100.0)}
    both = estimates("fedau/theorem-2", 2.0, settings, ranges)
    assert both[0] == pytest.approx(estimates("fedau/theorem-2", 2.0, settings[:1], ranges)[0], rel=CLOSE)
