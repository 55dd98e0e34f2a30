"""What a question may cost: every result at extreme settings, counted in evaluations."""

import itertools
from importlib import import_module

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.search.effort import EVALUATIONS, EvaluationBudget, Exhausted
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.theory.registry import results

EXTREME = (1e-9, 1.0, 1e9)
STRIDE = 97  # of all questions, so many apart are asked here; 1 asks every one of them
REPORTED = 200  # evaluations of the form for the answer itself: a last grid, or one number in each factor of two


def legal(quantity, value):
    """A legal number (or three clients of it) near an extreme value."""
    domain = quantity.domain
    value = float(np.clip(value, max(domain.low, 1e-9), min(domain.high, 1e9)))
    value = max(1.0, np.floor(value)) if domain.integer else 0.5 if domain.high_open and value >= domain.high else value
    return np.full(3, 1 / 3 if "weight" in quantity.concept else value) if quantity.shape else value


def questions():
    """(result, form, symbols left free, constants), each form at each extreme."""
    for result in results():
        for form, extreme in itertools.product(result.forms, EXTREME):
            names = sorted(s.name for s in form.symbols)
            known = {n: legal(result.notation[n], extreme) for n in names}
            counters = [n for n in names if result.notation[n].concept == "rounds"]
            single = [n for n in names if not result.notation[n].shape and n not in counters]
            for n in counters:
                yield "rounds", result, form, [n], known
                for over in single[:2]:
                    yield "choose", result, form, [n, over], known
            for n in single[:3]:
                yield "solve", result, form, [n], known
                yield "optimize", result, form, [n, *single[3:5]], known


@pytest.mark.parametrize("start", range(3))
def test_no_question_at_extreme_settings_takes_more_than_its_evaluations(start, monkeypatch):
    asked, calls = 0, [0]

    def counting(real):
        def counted(*given, **named):
            calls[0] += 1
            return real(*given, **named)

        return counted

    for place, name in {"rounds": "evaluate_form", "step_sizes": "evaluate", "integers": "evaluate"}.items():
        module = import_module(f"fedbounds.bounds.search.{place}")
        monkeypatch.setattr(module, name, counting(getattr(module, name)))
    for kind, result, form, free, known in itertools.islice(questions(), start * STRIDE, None, 3 * STRIDE):
        here = {n: v for n, v in known.items() if n not in free}
        more = dict(form=form.name, effort=0.05)
        calls[0] = 0
        try:
            if kind == "optimize":
                optimize(result, here, free, **more)
            else:
                over = dict(optimize=free[1:]) if kind == "choose" else dict(solve=free[0]) if kind == "solve" else {}
                rounds(result, 1e-6, here, **over, **more)
        except FedboundsError:
            continue
        asked += 1
        assert calls[0] <= 0.05 * EVALUATIONS + REPORTED, (result.key, form.name, free)
    assert asked > 3


def test_an_effort_that_is_used_up_says_so():
    effort = EvaluationBudget(10)
    effort.spend(10)
    with pytest.raises(Exhausted):
        effort.spend(1)
