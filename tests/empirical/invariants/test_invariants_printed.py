"""What is printed of a counterexample is what was run, and runs again when it is typed in."""

from __future__ import annotations

import ast
import math
import re

import numpy as np

from fedbounds.empirical.invariants import Case, PlainProblem
from fedbounds.empirical.invariants.strategies import cases
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
from fedbounds.empirical.papers.arbitrary_participation.properties import INVARIANTS
from fedbounds.empirical.papers.fed_norm_sgda.games import Game, GameCase, Ripple
from fedbounds.empirical.papers.fed_norm_sgda.invariants import MINIMAX_INVARIANTS, check_minimax
from fedbounds.empirical.papers.fed_norm_sgda.numpy_reference import fed_norm_sgda
from fedbounds.empirical.papers.fed_norm_sgda.strategies import game_cases
from fedbounds.empirical.papers.fedau.invariants import WEIGHT_INVARIANTS, WeightCase, check_weights
from fedbounds.empirical.papers.fedau.pseudocode import fedau_weights
from tests.empirical.invariants.drawn_cases import drawn_cases


def delta(problem, x, t, n, step_size, local_steps):
    y = x
    for i in range(local_steps):
        y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
    return y - x


def without_amplification(problem, weights, **numbers):
    return generalized_fedavg(problem, weights, **numbers | {"multiplier": min(numbers["multiplier"], 2)})


def numbers_of(text):
    """The arrays and numbers that stand after `name =` or `name ` in a printed case."""
    return {name: np.array(ast.literal_eval(value)) for name, value in re.findall(r"(\w+) = (\[.*\]|[-\d.e]+)", text)}


def rebuilt_case(lines):
    """A `Case` from its printed lines, and from nothing else."""
    line = dict(re.split(r":\s+", text.strip(), maxsplit=1) for text in lines)
    parts = [numbers_of(part) for part in line["problem"].split("; ")]
    known = {name: value for part in parts for name, value in part.items()}
    N, d = (int(re.search(rf"\b{name} = (\d+)", line["problem"])[1]) for name in ("N", "d"))
    ripple = re.search(r"\+ ([\d.e-]+) sum_j", line["problem"])
    problem = PlainProblem(
        known["A"].astype(float), known["c"].astype(float), known.get("b", np.zeros((N, d))).astype(float),
        known["x0"].astype(float), float(ripple[1]) if ripple else 0.0, known.get("W", np.eye(d)).astype(float),
        known.get("o", np.zeros(d)).astype(float), known.get("noise"),
    )  # fmt: skip
    run = re.fullmatch(
        r"T = (\d+), I = (\d+), P = (\d+), step size (\S+), multiplier (\S+), seed (\d+)", line["run"]
    ).groups()
    q = np.array(ast.literal_eval(line["weights"]), dtype=float)
    assert len(q) == int(run[0])
    return Case(problem, q, float(run[3]), int(run[1]), float(run[4]), int(run[2]), int(run[5]))


def rebuilt_game(lines):
    line = dict(re.split(r":\s+", text.strip(), maxsplit=1) for text in lines)
    known = {
        name: np.array(ast.literal_eval(value), dtype=float)
        for name, value in re.findall(r"\b(H|b|k|W|o|x0|y0) = (\[[^;=]*\])", line["game"])
    }
    start = np.append(known["x0"], known["y0"])
    ripple = Ripple(known["k"], known["W"], known["o"]) if "k" in known else None
    clients = re.fullmatch(r"weights (\[.*\]), local steps (\[.*\])", line["clients"]).groups()
    run = re.fullmatch(
        r"local step sizes (\[.*\]), the server's (\[.*\]), momentum (\S+), (no snapshots|snapshots every \d+), "
        r"seed (\d+)",
        line["run"],
    ).groups()
    return GameCase(
        Game(known["H"], known["b"], start, len(known["x0"]), ripple), np.array(ast.literal_eval(line["cohorts"])),
        *(np.array(ast.literal_eval(value)) for value in clients), *(tuple(ast.literal_eval(v)) for v in run[:2]),
        float(run[2]), int(run[3].split()[-1]) if run[3][-1].isdigit() else 0, int(run[4]),
    )  # fmt: skip


def rebuilt_record(lines):
    line = dict(re.split(r":\s+", text.strip(), maxsplit=1) for text in lines)
    return WeightCase(np.array(ast.literal_eval(line["record"])) > 0, float(line["cut-off"]))


def reproduces(verdict, rebuild, models):
    """Whether the printed case, rebuilt from its text, gives the printed row, and the other run the expected one."""
    lines = [line.strip() for line in str(verdict).splitlines()]
    lines = lines[lines.index("Smallest counterexample found:") + 1 :]
    told = next(k for k, line in enumerate(lines) if line.startswith("at t = "))
    t, got, expected = re.fullmatch(r"at t = (\d+): (\[.*\]), expected (\[.*\])", lines[told]).groups()
    got, expected = (np.array(ast.literal_eval(row), dtype=float) for row in (got, expected))
    again = models(rebuild(lines[:told]))
    assert not np.array_equal(got, expected), verdict.name
    assert np.abs(again[int(t)] - got).max() <= 1e-5 * max(1, np.abs(got).max()), str(verdict)
    if len(lines) > told + 1 and lines[told + 1].startswith("expected is what it gives for the same"):
        changed = {line.split(":")[0]: line for line in lines[told + 2 :]}
        other = rebuild([changed.get(line.split(":")[0], line) for line in lines[:told]])
        assert np.abs(models(other)[int(t)] - expected).max() <= 1e-5 * max(1, np.abs(expected).max()), str(verdict)


def accumulates(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed):
    """Everything is wrong with it: it is for what is printed, not for what is found."""
    x, u, out = 0.9 * problem.x0 + 0.1, 0.0, []
    for t in range(rounds + 1):
        out.append(x + 1e-3 * seed)
        if t == rounds:
            break
        total = 0.1 * np.sign(x) * step_size * interval
        for n in range(problem.clients):
            share = (weights[t, n] + 0.1) ** 2
            total = total + (n + 1) * share * np.round(delta(problem, x, t, n, step_size + 0.01, local_steps), 1)
        x, u = x + total, u + total
        if t % interval == 0:
            x = x + multiplier * u
    return np.array(out)


def test_every_printed_counterexample_reproduces_from_its_text():
    """All invariants but "determinism", which no case breaks that could be run again."""
    wanted = cases(noise=True, unit_sum=False)
    report = check_invariants(accumulates, cases=wanted, examples=16)
    assert {verdict.name for verdict in report.broken} == INVARIANTS.keys() - {"determinism"}
    for verdict in report.broken:
        reproduces(verdict, rebuilt_case, lambda case: case.models(accumulates))
        found = verdict.counterexample
        assert np.array_equal(found.case.models(accumulates), found.sides.got), verdict.name


def stumbles(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period, seed):
    """Everything is wrong with it too, but that it changes its arguments."""
    shares = np.sqrt(weights) * local_steps * (1 + np.arange(len(weights)))
    numbers = {"local_step_sizes": local_step_sizes, "step_sizes": step_sizes, "momentum": momentum}
    made = fed_norm_sgda(game, cohorts, weights=shares, local_steps=local_steps, period=period, **numbers)
    t = np.arange(len(made))[:, None]
    wrong = (
        0.01
        * t
        * (
            seed
            + cohorts.shape[1]
            + period
            + momentum
            + sum(local_step_sizes)
            + game.hessians.sum()
            + game.slopes.sum()
        )
    )
    return 0.9 * made + wrong + 0.1 * np.arange(made.shape[1]) * t


def test_every_printed_counterexample_of_a_game_reproduces_from_its_text():
    report = check_minimax(stumbles, examples=12, cases=drawn_cases(game_cases))
    assert {verdict.name for verdict in report.broken} == MINIMAX_INVARIANTS.keys() - {"unchanged arguments"}
    for verdict in report.broken:
        reproduces(verdict, rebuilt_game, lambda case: case.states(stumbles))
        assert np.array_equal(verdict.counterexample.case.states(stumbles), verdict.counterexample.sides.got)


def test_every_printed_record_reproduces_from_its_text():
    def astray(participated, cutoff):
        right = np.array(fedau_weights(np.roll(participated, -1, axis=0), cutoff + 1))
        t = np.arange(1, len(right) + 1)[:, None]
        return 2 * right + 0.1 * t * np.mean(participated) + (0 if math.isinf(cutoff) else cutoff)

    report = check_weights(astray, examples=40)
    assert {verdict.name for verdict in report.broken} == WEIGHT_INVARIANTS.keys() - {"repeated"}
    for verdict in report.broken:
        reproduces(verdict, rebuilt_record, lambda case: case.weights(astray))
    assert "cut-off: 1\n" in str(report["cutoff of one"])


def test_the_printed_case_of_the_frozen_gradient_limit_is_the_amplified_one():
    report = check_invariants(without_amplification, invariants=["frozen gradient limit"])
    assert f"multiplier {2**24}, seed 0" in str(report)
    assert report["frozen gradient limit"].counterexample.drawn.multiplier != 2**24
