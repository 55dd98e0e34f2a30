"""The theorems in files and the second readings of their sources: the same values, and valid at the same constants.

The readings are held to what a reading can be held to without the files: units, and runs whose left-hand side is exact.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load, paper, paper_names
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
    "cstep": (0.01, 1),
    "inexactness": (1e-3, 0.3),
    "relative_dissimilarity": (1, 2),
    "proximal_parameter": (1, 1e4),
    "condition_number": (1, 1e3),
}
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
        between = {c: np.sqrt(inside[c] * outside[c]) for c in inside if c != "objective_weights"}
        between |= {c: max(round(v), RANGES[c][0]) for c, v in between.items() if c in INTEGERS}
        between |= {c: inside[c] for c in inside if c == "objective_weights"}
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
            if not abs(values[i] - bound) <= 1e-12 * scale:
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
    "local-gd": (LOCAL_GD, "explicit", READINGS["khaled-2020/local-gd[explicit]"]),
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
    "initial_gradient_error": (2, -2), "squared_gradient_norm": (2, -2), "squared_mean_update": (2, -2),
    "squared_drift": (2, -2), "squared_cohort_update": (2, -2), "squared_embedding_error": (2, -2),
}  # fmt: skip
# The O of these swallows constants that have units.
WITHOUT_UNITS = {
    "wang-2020/fednova", "reddi-2021/fedadam", "gu-2021/mifa", "sharma-2022/local-sgda-ncsc", "lin-2020/sgda-ncsc",
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


@pytest.mark.parametrize("name", [name for name in READINGS if split(name)[0] not in WITHOUT_UNITS])
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


class Quadratics:
    """Client functions x'H_n x/2 - b_n'x and their mean."""

    def __init__(self, rng, clients: int, dimension: int, low=0.0, shared=False, spread=(-2, 1)) -> None:
        """Draw symmetric Hessians with eigenvalues from `low` to 1, equal ones where `shared`, and vectors b_n of a
        size 10**u, with u from `spread`."""
        self.H = np.empty((clients, dimension, dimension))
        for n in range(clients):
            rotation = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
            self.H[n] = rotation @ np.diag(rng.uniform(low, 1, dimension)) @ rotation.T
        self.H = np.broadcast_to(self.H[0], self.H.shape) if shared else self.H
        self.b = rng.normal(size=(clients, dimension)) * 10 ** rng.uniform(*spread)
        self.N, self.d = clients, dimension
        self.mean_H, self.mean_b = self.H.mean(axis=0), self.b.mean(axis=0)
        self.optimum = np.linalg.solve(self.mean_H, self.mean_b)
        self.start = self.optimum + rng.normal(size=dimension)

    def grad(self, n: int, x):
        return self.H[n] @ x - self.b[n]

    def grads(self, x):
        return np.einsum("nij,j->ni", self.H, x) - self.b

    def full(self, x):
        return self.mean_H @ x - self.mean_b

    def gap(self, x) -> float:
        away = x - self.optimum
        return float(away @ self.mean_H @ away) / 2

    def constants(self) -> dict[str, Any]:
        at_optimum = math.sqrt((self.grads(self.optimum) ** 2).sum(axis=1).mean())
        spread = np.linalg.norm(self.b - self.mean_b, axis=1).max()  # of the gradients, where Hessians are equal
        minima = [-b @ np.linalg.solve(H, b) / 2 for H, b in zip(self.H, self.b, strict=True)]
        least = -self.mean_b @ self.optimum / 2
        return {
            "smoothness": max(np.linalg.eigvalsh(H)[-1] for H in self.H),
            "strong_convexity": min(np.linalg.eigvalsh(H)[0] for H in self.H),
            "mean_smoothness": math.sqrt(np.linalg.norm(np.mean([H @ H for H in self.H], axis=0), 2)),
            "initial_gap": self.gap(self.start),
            "initial_squared_distance": float(((self.start - self.optimum) ** 2).sum()),
            "gradient_noise": 0.0,
            "optimum_noise": at_optimum,
            "optimum_heterogeneity": at_optimum,
            "gradient_divergence_sup": spread,
            "function_heterogeneity": least - float(np.mean(minima)),
            "clients": self.N,
        }


def local_run(problem: Quadratics, n: int, x, steps) -> tuple[Any, list[Any]]:
    """Where a client gets, and the gradients on the way."""
    gradients = []
    for step in steps:
        gradients.append(problem.grad(n, x))
        x = x - step * gradients[-1]
    return x, gradients


def sgd_ratios(rng):
    """E|grad f|^2 of SGD on L x^2/2, averaged over the iterations, exactly."""
    for _ in range(50):
        L, sigma, x2 = rng.uniform(0.1, 1), 10 ** rng.uniform(-3, 1), 1.0
        gamma, K = rng.uniform(0, 2) / L * 0.999, int(rng.integers(1, 60))
        squares = []
        at = {"smoothness": L, "initial_gap": L * x2 / 2, "gradient_noise": sigma, "local_step_size": gamma}
        for _ in range(K):
            squares.append(L**2 * x2)
            x2 = (1 - gamma * L) ** 2 * x2 + gamma**2 * sigma**2
        yield "ghadimi-2013/sgd[explicit]", np.mean(squares), at | {"iterations": K}
        yield "ghadimi-2013/sgd[explicit:large-steps]", np.mean(squares), at | {"iterations": K}


def local_gd_ratios(rng):
    """The gap of the mean model's average over the iterations."""
    for _ in range(50):
        problem = Quadratics(rng, int(rng.integers(2, 4)), 2)
        at = problem.constants()
        I = int(rng.integers(1, 6))
        K = I * int(rng.integers(1, 200))
        L = at["smoothness"]
        prescribed = math.sqrt(problem.N) / (4 * L * math.sqrt(K))
        largest = min(1 / (4 * L), 1 / (8 * L * (I - 1)) if I > 1 else math.inf)
        for key, gamma in (
            ("khaled-2020/local-gd[explicit]", prescribed),
            ("khaled-2020/local-sgd[explicit]", largest),
        ):
            models, total = np.tile(problem.start, (problem.N, 1)), 0.0
            for k in range(K):
                total = total + models.mean(axis=0)
                models = np.array([x - gamma * problem.grad(n, x) for n, x in enumerate(models)])
                if (k + 1) % I == 0:
                    models = np.tile(models.mean(axis=0), (problem.N, 1))
            yield key, problem.gap(total / K), at | {"local_steps": I, "iterations": K, "local_step_size": gamma}


def fedavg_ratios(rng):
    """Decaying steps: the expected gap over all ways to sample the cohorts."""
    for _ in range(8):
        problem = Quadratics(rng, 3, 2, low=0.1)
        at = problem.constants()
        I, rounds, S = int(rng.integers(1, 4)), 3, 2
        at |= {"local_steps": I, "iterations": I * rounds, "participating_clients": S}
        at["objective_weights"] = np.full(3, 1 / 3)
        cohorts = {
            "fedavg-full": [(0, 1, 2)],
            "fedavg-with-replacement": [*itertools.product(range(3), repeat=S)],
            "fedavg-without-replacement": [*itertools.combinations(range(3), S)],
        }
        for (key, choices), form in itertools.product(cohorts.items(), ("printed", "printed:poster")):
            factor = {"printed": 8, "printed:poster": 9}[form]
            shift = max(factor * at["smoothness"] / at["strong_convexity"], I)
            models, largest = [problem.start], 0.0
            for r in range(rounds):
                steps = [2 / (at["strong_convexity"] * (shift + r * I + i)) for i in range(I)]
                after = []
                for x in models:
                    ends = [local_run(problem, n, x, steps) for n in range(3)]
                    largest = max(largest, *(np.linalg.norm(g) for _, gradients in ends for g in gradients))
                    after += [np.mean([ends[n][0] for n in cohort], axis=0) for cohort in choices]
                models = after
            gap = np.mean([problem.gap(x) for x in models])
            yield f"li-2020/{key}[{form}]", gap, at | {"stochastic_gradient_bound": largest}


def compressed_ratios(rng):
    """EF21, LAG and CLAG with Top-1, and MARINA with Rand-1 over all of its coins."""
    for _ in range(40):
        problem = Quadratics(rng, 2, 3)
        at = problem.constants() | {"smoothness": np.linalg.eigvalsh(problem.mean_H)[-1]}
        alpha, zl = 1 / problem.d, 10 ** rng.uniform(-1, 1)
        A, T = 1 - math.sqrt(1 - alpha), int(rng.integers(1, 40))
        ratios = {
            "richtarik-2021/ef21[explicit]": (1 - alpha) / A**2,
            "richtarik-2022/three-point-compressors[explicit:lag]": zl,
            "richtarik-2022/three-point-compressors[explicit:clag]": max((1 - alpha) / A, zl) / A,
        }
        for key, ratio in ratios.items():
            gamma = 0.999 / (at["smoothness"] + at["mean_smoothness"] * math.sqrt(ratio))
            x, old, known = problem.start, problem.grads(problem.start), np.zeros((2, 3))
            error, squares = (old**2).sum(axis=1).mean(), []
            for _ in range(T):
                squares.append(float((problem.full(x) ** 2).sum()))
                x = x - gamma * known.mean(axis=0)
                new = problem.grads(x)
                for n in range(2):
                    gap, moved = new[n] - known[n], new[n] - old[n]
                    sent = gap if "[explicit:lag]" in key else np.where(np.arange(3) == np.abs(gap).argmax(), gap, 0)
                    if "ef21" in key or gap @ gap > zl * (moved @ moved):
                        known[n] = known[n] + sent
                old = new
            given = {"compressor_contraction": alpha, "lag_threshold": zl, "initial_gradient_error": error}
            yield key, np.mean(squares), at | given | {"local_step_size": gamma, "rounds": T}
    for _ in range(4):
        problem, ps, T = Quadratics(rng, 2, 2), rng.uniform(0.1, 0.9), 4
        at = problem.constants() | {"smoothness": np.linalg.eigvalsh(problem.mean_H)[-1]}
        gamma = 0.999 / (at["smoothness"] + at["mean_smoothness"] * math.sqrt((1 - ps) / (2 * ps)))  # omega = 1
        states, squares = [(1.0, problem.start, problem.full(problem.start))], []
        for _ in range(T):
            squares.append(sum(weight * (problem.full(x) ** 2).sum() for weight, x, _ in states))
            after = []
            for weight, x, g in states:
                new = x - gamma * g
                change = problem.grads(new) - problem.grads(x)
                after.append((weight * ps, new, problem.full(new)))
                for kept in itertools.product(range(2), repeat=2):
                    sent = [np.where(np.arange(2) == k, 2 * c, 0) for k, c in zip(kept, change, strict=True)]
                    after.append((weight * (1 - ps) / 4, new, g + np.mean(sent, axis=0)))
            states = after
        given = {"synchronization_probability": ps, "compressor_variance": 1.0}
        yield "gorbunov-2021/marina[explicit]", np.mean(squares), at | given | {"local_step_size": gamma, "rounds": T}


def cohort_ratios(rng):
    """FedAvg over all cohorts, on quadratics with equal Hessians, and its lemmas at the first round."""
    for _ in range(30):
        problem = Quadratics(rng, 3, 2, shared=True)
        at = problem.constants()
        L, I, T, S = at["smoothness"], int(rng.integers(1, 5)), 5, int(rng.integers(1, 4))
        gamma = 0.999 / (8 * L * I) * 10 ** rng.uniform(-1, 0)
        eta = 0.999 / (24 * I * L * gamma)
        at |= {"local_steps": I, "rounds": T, "participating_clients": S, "local_step_size": gamma}
        at |= {"server_multiplier": eta, "cstep": 0.999 * (0.5 - 15 * I**2 * gamma**2 * L**2)}
        cohorts = [*itertools.combinations(range(3), S)]
        models, squares = [problem.start], []
        for r in range(T):
            squares.append(np.mean([(problem.full(x) ** 2).sum() for x in models]))
            after = []
            for x in models:
                updates = np.array([np.mean(local_run(problem, n, x, [gamma] * I)[1], axis=0) for n in range(3)])
                means = [updates[[*cohort]].mean(axis=0) for cohort in cohorts]
                after += [x - eta * gamma * I * mean for mean in means]
                if r == 0:
                    drift = ((updates - problem.grads(x)) ** 2).sum(axis=1).mean()
                    known = at | {
                        "squared_gradient_norm": (problem.full(x) ** 2).sum(),
                        "squared_mean_update": (updates.mean(axis=0) ** 2).sum(),
                        "squared_drift": drift,
                        "squared_cohort_update": np.mean([(mean**2).sum() for mean in means]),
                    }
                    decrease = np.mean([problem.gap(y) for y in after]) - problem.gap(x)
                    yield "jhunjhunwala-2022/lemma-5[explicit]", decrease, known
                    yield "jhunjhunwala-2022/lemma-6[explicit]", drift, known
                    yield "jhunjhunwala-2022/lemma-7[explicit]", known["squared_cohort_update"], known
            models = after
        yield "jhunjhunwala-2022/fedavg[explicit]", min(squares), at
        if S == 3:
            yield "yang-2021/fedavg-full[explicit]", min(squares), at


def noise_ratios(rng):
    """Local SGD with additive noise on h_n x^2/2 - b_n x, all clients, exactly: iterates are linear in the noise.

    An iterate is a row: its mean, and its coefficients of all noise that is drawn.
    """
    for _ in range(30):
        N, I, T = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 8))
        K = I * T
        h, b, sigma = rng.uniform(0.1, 1, N), rng.normal(size=N) * 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-2, 1)
        h = h if rng.random() < 0.5 else np.full(N, h[0])
        h0, optimum, L, mu = h.mean(), b.mean() / h.mean(), h.max(), h.min()
        scale = np.concatenate([[1.0], np.full(N * K, sigma)])

        def square(row, scale=scale) -> float:
            return float(((row * scale) ** 2).sum())

        at = {"clients": N, "local_steps": I, "rounds": T, "iterations": K, "smoothness": L, "strong_convexity": mu}
        at |= {"gradient_noise": sigma, "initial_squared_distance": (1 - optimum) ** 2}
        at |= {
            "initial_gap": h0 * (1 - optimum) ** 2 / 2,
            "participating_clients": N,
            "objective_weights": np.full(N, 1 / N),
        }
        at["optimum_noise"] = math.sqrt(((h * optimum - b) ** 2).mean() + sigma**2)
        at["gradient_divergence_sup"] = np.abs(b - b.mean()).max() if mu == L else math.inf
        at["function_heterogeneity"] = float((b**2 / h).mean() - b.mean() ** 2 / h0) / 2

        def rows(steps, eta=1.0, N=N, I=I, K=K, h=h, b=b):
            """Iterates of the clients, their gradients, and the server's iterates."""
            model = np.eye(1, 1 + N * K)[0]
            models, gradients, served, clients = [], [], [model], np.tile(model, (N, 1))
            for k, step in enumerate(steps):
                models.append(clients.mean(axis=0))
                slope = h[:, None] * clients - b[:, None] * np.eye(1, 1 + N * K)
                slope[np.arange(N), 1 + k * N + np.arange(N)] += 1
                gradients.append(slope)
                clients = clients - step * slope
                if (k + 1) % I == 0:
                    model = model + eta * (clients.mean(axis=0) - model)
                    served.append(model)
                    clients = np.tile(model, (N, 1))
            return models, gradients, served

        def gap(row, h0=h0, optimum=optimum, K=K, N=N) -> float:
            return h0 * square(row - optimum * np.eye(1, 1 + N * K)[0]) / 2

        gamma = 0.999 * min(1 / (4 * L), 1 / (8 * L * (I - 1)) if I > 1 else math.inf)
        models = rows([gamma] * K)[0]
        yield "khaled-2020/local-sgd[explicit]", gap(np.mean(models, axis=0)), at | {"local_step_size": gamma}
        for form, factor in (("printed", 8), ("printed:poster", 9)):
            shift = max(factor * L / mu, I)
            _, gradients, served = rows([2 / (mu * (shift + k)) for k in range(K)])
            largest = math.sqrt(max(square(row) for slope in gradients for row in slope))
            yield f"li-2020/fedavg-full[{form}]", gap(served[-1]), at | {"stochastic_gradient_bound": largest}
        gamma = 0.999 / (8 * L * I) * 10 ** rng.uniform(-1, 0)
        for name, eta in (
            ("yang-2021/fedavg-full", 1 / (I * L * gamma)),
            ("jhunjhunwala-2022/fedavg", 1 / (24 * I * L * gamma)),
        ):
            if mu == L and (N > 1 or name.startswith("yang")):
                served = rows([gamma] * K, 0.999 * eta)[2][:-1]
                left = min(2 * h0 * gap(row) for row in served)
                steps = {"local_step_size": gamma, "server_multiplier": 0.999 * eta}
                yield f"{name}[explicit]", left, at | steps | {"cstep": 0.999 * (0.5 - 15 * I**2 * gamma**2 * L**2)}


def fedprox_ratios(rng):
    """F/rho for one round of exact local solutions, in place of the decrease: the bound of |grad f|^2 for T = 1."""
    for _ in range(40):
        problem = Quadratics(rng, 3, 2, spread=(-3, -1))
        x, S, mup = problem.start, int(rng.integers(10, 1000)), 10 ** rng.uniform(0.5, 2)
        gradients = problem.grads(x)
        square = (problem.full(x) ** 2).sum()
        local = np.array(
            [np.linalg.solve(H + mup * np.eye(2), b + mup * x) for H, b in zip(problem.H, problem.b, strict=True)]
        )
        spread = np.mean([(y - local.mean(axis=0)) @ problem.mean_H @ (y - local.mean(axis=0)) for y in local])
        after = problem.gap(local.mean(axis=0)) + spread / (2 * S)  # S devices sampled with replacement
        at = problem.constants() | {"initial_gap": problem.gap(x) - after, "rounds": 1, "participating_clients": S}
        at |= {"negative_curvature": 0.0, "proximal_parameter": mup, "inexactness": 0.0}
        at["relative_dissimilarity"] = math.sqrt((gradients**2).sum(axis=1).mean() / square)
        yield "li-2020b/fedprox-round[explicit]", square, at


def proxskip_ratios(rng):
    """The Lyapunov function of Scaffnew, over all coins."""
    for _ in range(15):
        problem = Quadratics(rng, 2, 2, low=0.05)
        at = problem.constants()
        gamma, pc, K = rng.uniform(0.1, 0.999) / at["smoothness"], rng.uniform(0.1, 1), 7
        target = problem.grads(problem.optimum)
        shifts = rng.normal(size=(2, 2))
        states = [(1.0, np.tile(problem.start, (2, 1)), shifts - shifts.mean(axis=0))]

        def lyapunov(states, gamma=gamma, pc=pc, optimum=problem.optimum, target=target) -> float:
            return sum(
                weight * (((x - optimum) ** 2).sum() + (gamma / pc) ** 2 * ((h - target) ** 2).sum())
                for weight, x, h in states
            )

        first = lyapunov(states)
        for _ in range(K):
            after = []
            for weight, x, h in states:
                moved = np.array([x[n] - gamma * (problem.grad(n, x[n]) - h[n]) for n in range(2)])
                joint = np.tile((moved - gamma / pc * h).mean(axis=0), (2, 1))
                after += [(weight * pc, joint, h + pc / gamma * (joint - moved)), (weight * (1 - pc), moved, h)]
            states = after
        given = {"local_step_size": gamma, "communication_probability": pc, "initial_lyapunov": first}
        yield "mishchenko-2022/proxskip[explicit]", lyapunov(states), at | given | {"iterations": K}


RUNS = (
    sgd_ratios,
    local_gd_ratios,
    fedavg_ratios,
    compressed_ratios,
    cohort_ratios,
    noise_ratios,
    fedprox_ratios,
    proxskip_ratios,
)


@pytest.mark.parametrize("runs", RUNS)
def test_no_run_crosses_an_explicit_bound(runs):
    covered = set()
    for name, left, at in runs(np.random.default_rng(3)):
        reading = READINGS[name]
        if reading.holds(at):
            covered.add(name)
            assert left <= reading.bound(at) * (1 + 1e-12) + 1e-25, (name, at)
    assert covered
