"""An outside paper, SCAFFOLD in examples/: one entry point gives it all that the papers here have."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import torch
from scaffold.algorithms import Controlled, Scaffold
from scaffold.invariants import check_scaffold
from scaffold.pseudocode import scaffold
from scaffold.results import THEOREM

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import CosineQuadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import choose_engine
from fedbounds.empirical.simulation.simulate import simulate
from tests.command_line import declare, run_apart

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "scaffold"
ORDER = "Theorem III, constants of one"
STEPS = {"local_step_size": 0.1, "local_steps": 4, "server_multiplier": 1.4}


def test_it_is_one_entry_point_and_less_than_400_lines():
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert declared == {"fedbounds.papers": {"scaffold": "scaffold"}}
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) < 400


# --- the theorem ---------------------------------------------------------------------------------------------------


def test_the_order_of_theorem_3_is_never_a_guarantee_and_needs_its_cap():
    given = dict(beta=2, sigma=3, F=1, N=8, S=1, K=5, R=100)
    cap = 1 / (24 * 2 * 5) / 4  # (S/N)^(2/3) = 1/4
    under, over = (evaluate(THEOREM, given | {"eta_l": size * cap}, assume=["all"]) for size in (0.999, 1.001))
    assert float(under.value) == pytest.approx(3 * (2 / 500) ** 0.5 + 2 / 100 * 4)
    assert under.guarantee_text == "no" and any("constant" in why for why in under.why_not)
    assert not any("condition" in why for why in under.why_not)
    assert any("a condition fails: eta_l" in why for why in over.why_not)


# --- the algorithm -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched"])
@pytest.mark.parametrize(
    "problem",
    [
        random_quadratic(6, 3, shared=False, noise=0.1),
        CosineQuadratic([[1.0, 0.5], [-1.5, 0.5], [0.5, -1.0]], 0.5, 0.2),
    ],
    ids=["quadratic", "cosine"],
)
def test_it_is_its_pseudo_code_in_every_engine_that_corrects_gradients(engine, problem):
    process = WithoutReplacement(problem.clients, 2)
    run = simulate(Scaffold(**STEPS), problem, process, 15, seeds=(0, 1), engine=engine, record_models=True)
    for seed, models in enumerate(run.arrays["model"]):
        streams = Streams(seed)
        q = process.matrix(15, streams.generator("participation"))
        twin = scaffold(problem, q, problem.initial_point(streams.generator("initialization")), streams, **STEPS)
        assert abs(models - torch.stack(twin).numpy()).max() < 1e-13


def test_an_algorithm_that_corrects_gradients_is_never_solved_in_closed_form():
    problem = random_quadratic(4, 2)
    assert choose_engine("auto", problem, Scaffold(0.1, 2)).label == "batched"
    with pytest.raises(FedboundsError, match="not for scaffold, whose local steps are not plain SGD"):
        simulate(Scaffold(0.1, 2), problem, Full(4), 3, engine="closed form")


def test_with_full_participation_and_exact_gradients_one_round_makes_the_control_variates_the_local_gradients():
    problem = random_quadratic(5, 3, shared=False)
    algorithm = Scaffold(0.1, 1)
    x = problem.x0[None]
    walk, state = choose_engine("batched", problem, algorithm), algorithm.init(x, 5)
    process = Full(5)
    from fedbounds.empirical.algorithms.cohort import Cohort

    drawn = Cohort.from_rounds([next(process.draw(np.random.default_rng(0)))])
    report = walk.round(x, drawn, 0, [Streams(0)], algorithm.correction(state, drawn))
    state = algorithm.server_update(state, 0, report)
    own = problem.gradient(x[:, None].expand(1, 5, 3), torch.arange(5)[None])
    assert isinstance(state, Controlled)
    assert torch.allclose(state.own, own) and torch.allclose(state.own.mean(1), problem.objective_gradient(x))


# --- the invariants ------------------------------------------------------------------------------------------------


def ours(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
    """The paper's Algorithm 1 on plain callables."""
    x, own = [problem.x0], np.zeros((problem.clients, problem.dimension))
    for t in range(rounds):
        c, present, moved = own.mean(0), np.flatnonzero(weights[t]), np.zeros(problem.dimension)
        before = own.copy()
        for n in present:
            y = x[-1]
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i) - before[n] + c)
            own[n] = before[n] - c + (x[-1] - y) / (local_steps * step_size)
            moved = moved + (y - x[-1]) / len(present)
        x.append(x[-1] + multiplier * moved)
    return np.stack(x)


def forgets_the_mean(problem, weights, **numbers):
    """The correction is -c_i, without + c."""
    x, own = [problem.x0], np.zeros((problem.clients, problem.dimension))
    for t in range(numbers["rounds"]):
        present, moved = np.flatnonzero(weights[t]), np.zeros(problem.dimension)
        for n in present:
            y = x[-1]
            for _ in range(numbers["local_steps"]):
                y = y - numbers["step_size"] * (problem.gradient(n, y) - own[n])
            own[n] = own[n] + (x[-1] - y) / (numbers["local_steps"] * numbers["step_size"])
            moved = moved + (y - x[-1]) / len(present)
        x.append(x[-1] + numbers["multiplier"] * moved)
    return np.stack(x)


def test_the_invariants_hold_of_the_algorithm_and_catch_a_correction_without_the_mean():
    assert not check_scaffold(ours, examples=25).broken
    broken = [verdict.name for verdict in check_scaffold(forgets_the_mean, examples=25).broken]
    assert broken == ["one step of all clients", "equal clients"]


# --- installed -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., CompletedProcess[str]]:
    """The command where the example is installed in place, with its one entry point."""
    site = tmp_path_factory.mktemp("site")
    declare(EXAMPLE, site)
    return partial(run_apart, path=(site, EXAMPLE, ROOT), cwd=site)


def test_it_is_listed_and_evaluated_with_the_verdict_unknown(installed):
    assert "scaffold/theorem-3" in installed("list", "--paper", "scaffold").stdout
    numbers = ("beta=1", "sigma=1", "F=1", "N=10", "S=2", "K=5", "R=100", "eta_l=0.001", "--assume", "all")
    evaluated = installed("eval", "scaffold/theorem-3", *numbers)
    assert evaluated.returncode == 0 and "guarantee: no     verdict: unknown" in evaluated.stdout, (
        evaluated.stdout + evaluated.stderr
    )
    numbers = ("beta=1", "sigma=0", "F=1", "N=9", "S=9", "K=1", "R=100", "eta_l=0.1", "eta_g=2", "--assume", "all")
    evaluated = installed("eval", "scaffold/theorem-3", "--form", "explicit:K=1", *numbers)
    assert "verdict: proved" in evaluated.stdout, evaluated.stdout + evaluated.stderr


def test_its_audit_proves_gradient_descent_and_no_more(installed):
    audited = installed("audit", "--paper", "scaffold", "--no-cache")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "scaffold: 7 proved, 0 survived, 0 argued, 0 refuted, 1 unknown" in audited.stdout


SPEC = """
name = "ours"
rounds = 20
seeds = 2
[problem]
kind = "quadratic"
clients = 6
dimension = 3
shared = false
noise = 0.1
[participation]
kind = "without-replacement"
clients = 6
participants = 2
[algorithms.scaffold]
kind = "scaffold"
local_step_size = 0.1
local_steps = 4
"""
SAME = """
import numpy as np
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
algorithm = algorithm_from_spec({"kind": "scaffold", "local_step_size": 0.1, "local_steps": 4})
problem = random_quadratic(6, 3, shared=False, noise=0.1)
q = WithoutReplacement(6, 2).matrix(9, np.random.default_rng(0))
run = simulate(algorithm, problem, q, 9, record_models=True)
print(abs(run.arrays["model"][0] - run_reference(algorithm, problem, q, Streams(0)).numpy()).max() < 1e-13)
"""


def test_its_algorithm_is_found_by_a_sweep_and_its_twin_by_the_reference(installed, tmp_path: Path):
    spec = tmp_path / "ours.toml"
    spec.write_text(SPEC)
    done = installed("run", str(spec))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scaffold" in installed("results", str(spec)).stdout
    spec.write_text(SPEC.replace('kind = "scaffold"', 'kind = "scafold"'))
    assert "did you mean scaffold?" in installed("run", str(spec)).stderr
    same = installed(script=SAME)
    assert same.stdout.strip() == "True", same.stderr


def test_its_figure_shows_scaffold_at_the_minimum_of_f_where_fedavg_with_local_steps_is_not(installed, tmp_path: Path):
    drawn = installed("figure", "scaffold/drift", "--out", str(tmp_path / "drift.png"))
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    found: dict[str, list[float]] = {}
    with (tmp_path / "drift.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["curve"], []).append(float(row["y"]))
    for group in ("all 10 clients", "3 of 10 clients"):
        order, fedavg, corrected = (found[f"{group}: {name}"] for name in (ORDER, "FedAvg", "SCAFFOLD"))
        assert corrected[-1] < 1e-12 * corrected[0] and fedavg[-1] > 1e4 * corrected[-1]
        assert np.mean(corrected) < 50 * order[-1], "the O hides a modest constant"
    wrong = installed("figure", "scaffold/drft", "--out", str(tmp_path / "drift.png"))
    assert wrong.returncode == 2 and "did you mean" in wrong.stderr and "drift" in wrong.stderr
