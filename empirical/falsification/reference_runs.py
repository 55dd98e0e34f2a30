"""Runs of reference theorems whose left-hand side is exact, for those that the search for a violation cannot run.

A run is the name of the form, its left-hand side, and its constants by concept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.empirical.falsification.theorem_runs import describe_ratio

ROUNDING = 1e-25  # of a left-hand side that is a square
Run = tuple[str, Any, Mapping[str, Any]]  # the left-hand side is one number


class Quadratics:
    """Client functions x'H_n x/2 - b_n'x and their mean."""

    def __init__(
        self,
        rng: np.random.Generator,
        clients: int,
        dimension: int,
        low: float = 0.0,
        shared: bool = False,
        spread: tuple[float, float] = (-2, 1),
    ) -> None:
        """Draw symmetric Hessians with eigenvalues from `low` to 1, equal ones where `shared`, and vectors b_n.

        The size of these is 10**u, with u from `spread`.
        """
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

    def grad(self, n: int, x: np.ndarray) -> np.ndarray:
        """The gradient of a client."""
        return self.H[n] @ x - self.b[n]

    def grads(self, x: np.ndarray) -> np.ndarray:
        """The gradients of all clients, (clients, dimension)."""
        return np.einsum("nij,j->ni", self.H, x) - self.b

    def full(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the mean."""
        return self.mean_H @ x - self.mean_b

    def gap(self, x: np.ndarray) -> float:
        """The function gap."""
        away = x - self.optimum
        return float(away @ self.mean_H @ away) / 2

    def constants(self) -> dict[str, Any]:
        """Its constants by concept."""
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


def local_run(
    problem: Quadratics, n: int, x: np.ndarray, steps: Sequence[float]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Where a client gets, and the gradients on the way."""
    gradients = []
    for step in steps:
        gradients.append(problem.grad(n, x))
        x = x - step * gradients[-1]
    return x, gradients


def sgd_ratios(rng: np.random.Generator) -> Iterator[Run]:
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


def local_gd_ratios(rng: np.random.Generator) -> Iterator[Run]:
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
            ("khaled-2019/local-gd[explicit]", prescribed),
            ("khaled-2020/local-sgd[explicit]", largest),
        ):
            models, total = np.tile(problem.start, (problem.N, 1)), np.zeros(problem.d)
            for k in range(K):
                total = total + models.mean(axis=0)
                models = np.array([x - gamma * problem.grad(n, x) for n, x in enumerate(models)])
                if (k + 1) % I == 0:
                    models = np.tile(models.mean(axis=0), (problem.N, 1))
            yield key, problem.gap(total / K), at | {"local_steps": I, "iterations": K, "local_step_size": gamma}


def fedavg_ratios(rng: np.random.Generator) -> Iterator[Run]:
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


def compressed_ratios(rng: np.random.Generator) -> Iterator[Run]:
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


def cohort_ratios(rng: np.random.Generator) -> Iterator[Run]:
    """FedAvg over all cohorts, on quadratics with equal Hessians, and its lemmas at the first round."""
    for _ in range(30):
        problem = Quadratics(rng, 3, 2, shared=True)
        at = problem.constants()
        L, I, T, S = at["smoothness"], int(rng.integers(1, 5)), 5, int(rng.integers(1, 4))
        gamma = 0.999 / (8 * L * I) * 10 ** rng.uniform(-1, 0)
        eta = 0.999 / (24 * I * L * gamma)
        at |= {"local_steps": I, "rounds": T, "participating_clients": S, "local_step_size": gamma}
        at |= {"server_multiplier": eta, "descent_share": 0.999 * (0.5 - 15 * I**2 * gamma**2 * L**2)}
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
                        "mean_direction_error": ((updates.mean(axis=0) - problem.full(x)) ** 2).sum(),
                        "local_gradient_error": drift,
                        "squared_sampled_direction": np.mean([(mean**2).sum() for mean in means]),
                    }
                    increase = np.mean([problem.gap(y) for y in after]) - problem.gap(x)
                    squared = known["squared_gradient_norm"] + (updates.mean(axis=0) ** 2).sum()
                    left = increase + eta * gamma * I / 2 * squared
                    yield "jhunjhunwala-2022/lemma-5[explicit]", left, known
                    yield "jhunjhunwala-2022/lemma-6[explicit]", drift, known
                    yield "jhunjhunwala-2022/lemma-7[explicit]", known["squared_sampled_direction"], known
            models = after
        yield "jhunjhunwala-2022/fedavg[explicit]", min(squares), at
        if S == 3:
            yield "yang-2021/fedavg-full[explicit]", min(squares), at


def noise_ratios(rng: np.random.Generator) -> Iterator[Run]:
    """Local SGD with additive noise on h_n x^2/2 - b_n x, all clients."""
    for _ in range(30):
        yield from _noisy_run(rng)


def _noisy_run(rng: np.random.Generator) -> Iterator[Run]:
    """Exactly, as iterates are linear in the noise.

    An iterate is a row: its mean, and its coefficients of all noise that is drawn.
    """
    N, I, T = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 8))
    K = I * T
    h, b, sigma = rng.uniform(0.1, 1, N), rng.normal(size=N) * 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-2, 1)
    h = h if rng.random() < 0.5 else np.full(N, h[0])
    h0, optimum, L, mu = h.mean(), b.mean() / h.mean(), h.max(), h.min()
    scale = np.concatenate([[1.0], np.full(N * K, sigma)])

    def square(row: np.ndarray) -> float:
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

    def rows(steps: Sequence[float], eta: float = 1.0) -> tuple[list[np.ndarray], ...]:
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

    def gap(row: np.ndarray) -> float:
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
            steps["descent_share"] = 0.999 * (0.5 - 15 * I**2 * gamma**2 * L**2)
            yield f"{name}[explicit]", left, at | steps


def fedprox_ratios(rng: np.random.Generator) -> Iterator[Run]:
    """|grad f|^2 before a round of exact local solutions, and the decrease in the round."""
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
        at = problem.constants() | {"expected_decrease": problem.gap(x) - after, "participating_clients": S}
        at |= {"negative_curvature": 0.0, "proximal_parameter": mup, "inexactness": 0.0}
        at["relative_dissimilarity"] = math.sqrt((gradients**2).sum(axis=1).mean() / square)
        yield "li-2020b/fedprox-round[explicit]", square, at


def proxskip_ratios(rng: np.random.Generator) -> Iterator[Run]:
    """The Lyapunov function of Scaffnew, over all coins."""
    for _ in range(15):
        yield _proxskip_run(rng)


def _proxskip_run(rng: np.random.Generator) -> Run:
    problem = Quadratics(rng, 2, 2, low=0.05)
    at = problem.constants()
    gamma, pc, K = rng.uniform(0.1, 0.999) / at["smoothness"], rng.uniform(0.1, 1), 7
    target = problem.grads(problem.optimum)
    shifts = rng.normal(size=(2, 2))
    states = [(1.0, np.tile(problem.start, (2, 1)), shifts - shifts.mean(axis=0))]

    def lyapunov() -> float:
        return sum(
            weight * (((x - problem.optimum) ** 2).sum() + (gamma / pc) ** 2 * ((h - target) ** 2).sum())
            for weight, x, h in states
        )

    first = lyapunov()
    for _ in range(K):
        after = []
        for weight, x, h in states:
            moved = np.array([x[n] - gamma * (problem.grad(n, x[n]) - h[n]) for n in range(2)])
            joint = np.tile((moved - gamma / pc * h).mean(axis=0), (2, 1))
            after += [(weight * pc, joint, h + pc / gamma * (joint - moved)), (weight * (1 - pc), moved, h)]
        states = after
    given = {"local_step_size": gamma, "communication_probability": pc, "initial_lyapunov": first}
    return "mishchenko-2022/proxskip[explicit]", lyapunov(), at | given | {"iterations": K}


RUNS: Sequence[Callable[[np.random.Generator], Iterator[Run]]] = (
    sgd_ratios,
    local_gd_ratios,
    fedavg_ratios,
    compressed_ratios,
    cohort_ratios,
    noise_ratios,
    fedprox_ratios,
    proxskip_ratios,
)


@lru_cache(maxsize=1)
def _all_runs() -> Mapping[str, Sequence[tuple[float, Mapping[str, Any]]]]:
    """Left-hand side and constants of every run, by form."""
    found: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
    for runs in RUNS:
        for name, left, at in runs(np.random.default_rng(0)):
            found.setdefault(name, []).append((left, at))
    return found


def compare_runs(result: Result, form: Form) -> Finding | None:
    """The largest ratio of an exact left-hand side to the bound, as a finding; None if no run meets the conditions."""
    most, worst, count = -np.inf, {}, 0
    for left, at in _all_runs().get(f"{result.key}[{form.name}]", ()):
        constants = {name: at[result.notation[name].concept] for name in form.needs - form.prescribes.keys()}
        bound = evaluate(result, constants, form.name, strict=False)
        if bound.valid:
            count += 1
            right = float(bound.value)
            larger = max(float(left) - ROUNDING, 0.0)
            ratio = larger / right if right > 0 else np.inf if larger else 0.0
            if ratio > most:
                most, worst = ratio, {name: np.asarray(value).tolist() for name, value in constants.items()}
    if not count:
        return None
    return describe_ratio(form, f"{count} runs on quadratics", most, worst)
