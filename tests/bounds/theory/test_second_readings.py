"""The theorems in files and the second readings of their sources: the same values, and valid at the same constants.

The readings are held to what a reading can be held to without the files: units, and runs whose left-hand side is exact.
"""

import math
from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load, paper, paper_names
from fedbounds.empirical.falsification.reference_runs import RUNS
from tests.bounds.theory.second_readings import CONCEPTS, READINGS, Reading

SETTINGS, CLIENTS = 200, 4
# Between which numbers each concept is drawn, evenly in its logarithm.
RANGES = {concept: (1e-2, 1e2) for concept in CONCEPTS.values()} | {
    "clients": (2, 60),
    "participating_clients": (1, 60),
    "local_steps": (1, 30),
    "rounds": (1, 10_000),
    "iterations": (1, 10_000),
    "unavailable_rounds": (1, 100),
    "contraction": (0.01, 1),
    "compressor_contraction": (0.01, 1),
    "communication_probability": (0.01, 1),
    "synchronization_probability": (0.01, 1),
    "descent_share": (0.01, 1),
    "inexactness": (1e-3, 0.3),
    "relative_dissimilarity": (1, 2),
    "proximal_parameter": (1, 1e4),
    "condition_number": (1, 1e3),
}
PER_CLIENT = {"objective_weights", "local_steps_by_client"}
INTEGERS = {"clients", "participating_clients", "local_steps", "rounds", "iterations", "unavailable_rounds"}


def split(name: str) -> tuple[str, str]:
    """Key and form of "key[form]"."""
    key, form = name.removesuffix("]").split("[")
    return key, form


def draw(reading: Reading, rng: np.random.Generator) -> dict[str, Any]:
    """Constants that can occur together."""
    at = {}
    for concept in reading.concepts:
        low, high = RANGES[concept]
        value = math.exp(rng.uniform(math.log(low), math.log(high)))
        at[concept] = round(value) if concept in INTEGERS else value
    if "local_steps_by_client" in at:
        at["local_steps_by_client"] = rng.integers(1, 31, CLIENTS)
    if "objective_weights" in at:
        at["objective_weights"] = rng.dirichlet(np.ones(CLIENTS))
        at |= {"clients": CLIENTS} if "clients" in at else {}
    if {"clients", "participating_clients"} <= at.keys():
        at["participating_clients"] = int(rng.integers(1, at["clients"] + 1))
    if "strong_convexity" in at and "smoothness" in at:
        at["strong_convexity"] = at["smoothness"] * rng.uniform(1e-3, 1)
    if "mean_smoothness" in at and "smoothness" in at:
        at["mean_smoothness"] = at["smoothness"] * rng.uniform(1, 5)
    return at


def draw_inside(reading: Reading, rng: np.random.Generator) -> dict[str, Any]:
    """Constants inside the conditions, with a step size below the largest admissible one."""
    for _ in range(2000):
        at = draw(reading, rng)
        for _ in range(30 if "local_step_size" in at else 1):
            if reading.holds(at):
                return at
            at["local_step_size"] = at.get("local_step_size", 1) / 2
    raise AssertionError("no constants inside the conditions")


def approach(
    inside: dict[str, Any], outside: dict[str, Any], reading: Reading
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Constants on both sides of a condition that they nearly meet with equality."""
    for _ in range(14):
        between = {c: np.sqrt(inside[c] * outside[c]) for c in inside if c not in PER_CLIENT}
        between |= {c: max(round(v), RANGES[c][0]) for c, v in between.items() if c in INTEGERS}
        between |= {c: inside[c] for c in inside if c in PER_CLIENT}
        inside, outside = (between, outside) if reading.holds(between) else (inside, between)
    return inside, outside


def draw_settings(reading: Reading) -> list[dict[str, Any]]:
    """Constants anywhere, inside the conditions, and near their boundary."""
    rng = np.random.default_rng(0)
    drawn = [draw(reading, rng) for _ in range(SETTINGS // 4)]
    drawn += [draw_inside(reading, rng) for _ in range(SETTINGS // 4)]
    outside = [at for at in drawn if not reading.holds(at)]
    while len(drawn) < SETTINGS:
        far = outside[rng.integers(len(outside))] if outside else draw(reading, rng)
        drawn += approach(draw_inside(reading, rng), far, reading)
    return drawn


def rounding(reading: Reading, at: dict[str, Any], bound: float) -> float:
    """What an error of a few units in the last place of a constant changes."""
    scalars = [c for c in at if c not in INTEGERS | PER_CLIENT]
    return 2**-50 * sum(abs(reading.bound(at | {c: at[c] * (1 - 1e-7)}) - bound) / 1e-7 for c in scalars)


def disagreement(result, form: str, reading: Reading) -> str:
    """How a form and a reading differ at drawn constants; "" where they do not."""
    drawn = draw_settings(reading)
    constants = {concept: np.array([at[concept] for at in drawn]) for concept in reading.concepts}
    found = evaluate(result, constants, form, strict=False)
    values, valid = np.broadcast_to(found.value, SETTINGS), np.broadcast_to(found.valid, SETTINGS)
    sizes = [np.broadcast_to(np.abs(term), SETTINGS) for term in found.terms.values()]
    sides = [
        np.broadcast_arrays(np.asarray(c.left, dtype=float), np.asarray(c.right, dtype=float), np.empty(SETTINGS))[:2]
        for c in found.conditions
    ]
    for i, at in enumerate(drawn):
        bound, holds = reading.bound(at), reading.holds(at)
        if math.isfinite(values[i]) or holds:
            scale = max(abs(bound), *(size[i] for size in sizes if math.isfinite(size[i])))
            if not abs(values[i] - bound) <= 1e-12 * scale + rounding(reading, at, bound):
                return f"the value is {values[i]!r}, and the reading has {bound!r}, at {at}"
        if any(abs(left[i] - right[i]) <= 1e-9 * abs(right[i]) for left, right in sides):
            continue
        if valid[i] != holds:
            return f"valid is {bool(valid[i])}, and the reading has {holds}, at {at}"
    return ""


FILED = {result.key: result for name in paper_names() for result in paper(name).results if result.file}
filed = pytest.mark.skipif(not FILED, reason="the registry has no theorem files")


@filed
@pytest.mark.parametrize("name", READINGS)
def test_file_and_reading_agree(name):
    key, form = split(name)
    assert disagreement(load(key), form, READINGS[name]) == ""


@filed
def test_every_theorem_file_has_a_reading_and_every_reading_a_file():
    assert sorted(FILED) == sorted({split(name)[0] for name in READINGS})


# --- The comparison itself ------------------------------------------------------------------------------------------

LOCAL_GD = """\
key = "khaled/local-gd"
title = "Local gradient descent"
measure = "average over rounds of function gap"
conditions = ["I <= sqrt(K/N)"]

[forms.explicit.terms]
"initial distance" = "8*L*D2/sqrt(N*K)"
"client drift" = "3*N*zetastar**2*I**2/(2*L*K)"
"""
WEIGHTED = """\
key = "li/fedavg-full"
title = "FedAvg with full participation"
measure = "average over rounds of function gap"

[forms."printed".terms]
"all" = '''L/mu/(max(8*L/mu, I) + K - 1)
  *(2*(sum(w**2)*sigma**2 + 6*L*Gamma + 8*(I - 1)**2*Gs**2)/mu + mu*max(8*L/mu, I)/2*D2)'''
"""
PAIRS = {
    "local-gd": (LOCAL_GD, "explicit", READINGS["khaled-2019/local-gd[explicit]"]),
    "weighted": (WEIGHTED, "printed", READINGS["li-2020/fedavg-full[printed]"]),
}


def compare_text(tmp_path, text: str, form: str, reading: Reading) -> str:
    path = tmp_path / "theorem.toml"
    path.write_text(text)
    return disagreement(load(str(path)), form, reading)


@pytest.mark.parametrize("case", PAIRS)
def test_comparison_accepts_the_same_statement(tmp_path, case):
    assert compare_text(tmp_path, *PAIRS[case]) == ""


@pytest.mark.parametrize(
    "case, old, new, what",
    [
        ("local-gd", "8*L*D2", "8.000001*L*D2", "the value"),
        ("local-gd", "I**2/(2", "(I - 1)**2/(2", "the value"),
        ("local-gd", "I <= sqrt(K/N)", "I <= 1.02*sqrt(K/N)", "valid is True"),
        ("local-gd", "I <= sqrt(K/N)", "I <= 0.98*sqrt(K/N)", "valid is False"),
        ("local-gd", 'conditions = ["I <= sqrt(K/N)"]', "", "valid is True"),
        ("weighted", "sum(w**2)", "sum(w)", "the value"),
        ("weighted", "max(8*L/mu, I)/2", "max(9*L/mu, I)/2", "the value"),
        ("weighted", "K - 1", "K", "the value"),
    ],
)
def test_comparison_reports_a_changed_statement(tmp_path, case, old, new, what):
    text, form, reading = PAIRS[case]
    assert old in text
    assert compare_text(tmp_path, text.replace(old, new), form, reading).startswith(what)


def test_comparison_refuses_another_concept(tmp_path):
    text, form, reading = PAIRS["local-gd"]
    with pytest.raises(FedboundsError, match="zeta"):
        compare_text(tmp_path, text.replace("zetastar", "zeta"), form, reading)


# --- Units ----------------------------------------------------------------------------------------------------------

CURVATURE, GRADIENT = (1, -2), (1, -1)
# Powers of the units of f and x; every other concept is a number.
UNITS = {
    "smoothness": CURVATURE, "mean_smoothness": CURVATURE, "strong_convexity": CURVATURE,
    "hessian_heterogeneity": CURVATURE, "negative_curvature": CURVATURE, "proximal_parameter": CURVATURE,
    "gradient_noise": GRADIENT, "gradient_divergence_sup": GRADIENT, "mean_gradient_divergence": GRADIENT,
    "optimum_heterogeneity": GRADIENT, "optimum_noise": GRADIENT, "stochastic_gradient_bound": GRADIENT,
    "gradient_bound": GRADIENT, "heterogeneity_offset": GRADIENT,
    "initial_gap": (1, 0), "function_heterogeneity": (1, 0), "local_step_size": (-1, 2),
    "initial_squared_distance": (0, 2), "initial_lyapunov": (0, 2),
    "initial_gradient_error": (2, -2), "squared_gradient_norm": (2, -2), "mean_direction_error": (2, -2),
    "local_gradient_error": (2, -2), "squared_sampled_direction": (2, -2), "expected_decrease": (1, 0),
    "embedding_hessian_bound": (1, 0), "embedding_gradient_bound": (0, -1), "squared_radius": (0, 2),
}  # fmt: skip
# The O of these swallows constants that have units.
WITHOUT_UNITS = {
    "wang-2020/fednova[printed]", "reddi-2021/fedadam[printed]", "gu-2021/mifa[printed]",
    "sharma-2022/local-sgda-ncsc[printed]", "karimireddy-2020/fedavg-nonconvex[printed]",
}  # fmt: skip
GAPS = ("khaled", "li-2020/", "woodworth", "patel-2024", "koloskova-2020/local-sgd-convex")
GAP_KEYS = {
    "karimireddy-2020/scaffold-convex",
    "karimireddy-2020/scaffold-strongly-convex",
    "jhunjhunwala-2022/lemma-5",
}


def unit_of(key: str) -> tuple[int, int]:
    """The unit of the left-hand side."""
    if key == "mishchenko-2022/proxskip":
        return (0, 2)
    return (1, 0) if key.startswith(GAPS) or key in GAP_KEYS else (2, -2)


@pytest.mark.parametrize("name", [name for name in READINGS if name not in WITHOUT_UNITS])
def test_both_sides_have_the_same_unit(name):
    reading, rng = READINGS[name], np.random.default_rng(1)
    for at in [draw(reading, rng) for _ in range(20)]:
        for f, x in ((3.0, 1.0), (1.0, 0.7)):
            scaled = {c: v * f ** UNITS.get(c, (0, 0))[0] * x ** UNITS.get(c, (0, 0))[1] for c, v in at.items()}
            a, b = unit_of(split(name)[0])
            assert reading.bound(scaled) == pytest.approx(reading.bound(at) * f**a * x**b, rel=1e-9)
            assert reading.holds(scaled) == reading.holds(at)


@pytest.mark.parametrize("name", READINGS)
def test_settings_lie_on_both_sides_of_the_conditions(name):
    reading = READINGS[name]
    drawn = draw_settings(reading)
    held = [at for at in drawn if reading.holds(at)]
    assert all(math.isfinite(reading.bound(at)) for at in held)
    assert len(drawn) == SETTINGS and len(held) >= SETTINGS // 4
    assert len(held) == SETTINGS or SETTINGS - len(held) >= SETTINGS // 4


def test_readings_say_where_they_are_from():
    assert {reading.read for reading in READINGS.values()} <= {"constants", "order", "quoted", "memory"}
    assert all(reading.source for reading in READINGS.values())


# --- Runs with an exact left-hand side --------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", RUNS)
def test_no_run_crosses_an_explicit_bound(runs):
    covered = set()
    for name, left, at in runs(np.random.default_rng(3)):
        reading = READINGS[name]
        if reading.holds(at):
            covered.add(name)
            assert left <= reading.bound(at) * (1 + 1e-12) + 1e-25, (name, at)
    assert covered
