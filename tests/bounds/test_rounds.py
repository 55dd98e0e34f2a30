"""Rounds to a target: the smallest T against a scan of every T, floors, inverse questions."""

import math

import numpy as np
import pytest

from bounds.errors import FedboundsError
from bounds.evaluation import evaluate
from bounds.registry import load
from bounds.rounds import Largest, Never, Reached, rounds

KNOWN = dict(L=1, F=5, I=2, P=2, S=2, sigma=math.sqrt(0.5), nu=2, beta=0.5, delta=0)
COROLLARIES = ["corollary-3.2", "corollary-3.3"]


def result(name):
    return load(f"arbitrary-participation/{name}")


def scan(one, known, form, epsilon, most):
    T = np.arange(1.0, most + 1)
    evaluation = evaluate(one, dict(known, T=T), form=form)
    reached = (evaluation.value <= epsilon) & evaluation.valid
    return int(T[np.argmax(reached)]) if reached.any() else None


@pytest.mark.parametrize("name", COROLLARIES)
@pytest.mark.parametrize("form", ["explicit", "sharp"])
@pytest.mark.parametrize("epsilon", [3.0, 0.5, 0.11])
def test_the_smallest_number_of_rounds_is_that_of_a_complete_scan(name, form, epsilon):
    answer = rounds(result(name), epsilon, KNOWN, form=form)
    assert isinstance(answer, Reached)
    assert answer.rounds == scan(result(name), KNOWN, form, epsilon, 40_000)
    assert answer.cost.iterations == 2 * answer.rounds and answer.cost.oracle_calls == 4 * answer.rounds


def test_a_fixed_step_size_reaches_its_floor_and_no_further():
    theorem = result("theorem-3.1")
    known = dict({k: v for k, v in KNOWN.items()}, gamma=1e-3, eta=10)
    terms = evaluate(theorem, dict(known, T=10), form="explicit").terms
    floor = float(sum(v for n, v in terms.items() if n != "initial gap"))
    never = rounds(theorem, 0.99 * floor, known, form="explicit")
    assert isinstance(never, Never) and never.floor == pytest.approx(floor, rel=1e-6)
    reached = rounds(theorem, 1.01 * floor, known, form="explicit")
    assert isinstance(reached, Reached)
    # 8F/(gamma eta I T) <= 0.01 floor
    assert reached.rounds == math.ceil(8 * 5 / (1e-2 * 2) / (0.01 * floor))


def test_a_divergence_that_stays_is_named():
    never = rounds(result("corollary-3.2"), 0.1, dict(KNOWN, delta=0.2), form="explicit")
    assert isinstance(never, Never)
    assert never.floor == pytest.approx(6 * 0.04) and "window divergence" in never.why


def test_the_largest_divergence_that_still_reaches_epsilon_solves_the_equation():
    known = {k: v for k, v in KNOWN.items() if k != "delta"} | {"T": 5000}
    rest = float(evaluate(result("corollary-3.2"), dict(known, delta=0), form="explicit").value)
    answer = rounds(result("corollary-3.2"), 0.5, known, form="explicit", solve="delta")
    assert isinstance(answer, Largest)
    assert answer.value == pytest.approx(math.sqrt((0.5 - rest) / 6), rel=1e-9)
    none = rounds(result("corollary-3.2"), 0.5 * rest, known, form="explicit", solve="delta")
    assert isinstance(none, Largest) and none.value is None and none.why


def test_step_sizes_chosen_anew_need_fewer_rounds():
    theorem = result("theorem-3.1")
    free = rounds(theorem, 0.5, KNOWN, optimize_over=("gamma", "eta"), within={"eta": (1, 1000)}, form="explicit")
    fixed = rounds(result("corollary-3.2"), 0.5, KNOWN, form="explicit")
    assert isinstance(free, Reached) and isinstance(fixed, Reached)
    assert free.rounds < fixed.rounds
    assert free.evaluation is not None and float(free.evaluation.value) <= 0.5


@pytest.mark.parametrize("epsilon", [0, -1, float("nan")])
def test_a_target_that_is_not_positive_is_refused(epsilon):
    with pytest.raises(FedboundsError, match="epsilon"):
        rounds(result("corollary-3.2"), epsilon, KNOWN)
