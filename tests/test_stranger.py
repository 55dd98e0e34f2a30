"""A stranger's whole paper, SCAFFOLD in examples/: one entry point brings what one of ours brings."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scaffold.algorithms import Controlled, Scaffold
from scaffold.drawing import Room, draw
from scaffold.invariants import check_scaffold
from scaffold.pseudocode import scaffold
from scaffold.results import THEOREM

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation import evaluate
from fedbounds.empirical.engines import choose_engine
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import CosineQuadratic, random_quadratic
from fedbounds.empirical.simulate import simulate
from fedbounds.empirical.streams import Streams

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "scaffold"
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
    assert under.promise == "no" and any("constant" in why for why in under.why_not)
    assert over.value == float("inf")


# --- the algorithm -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["in turn", "batched"])
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
        twin = scaffold(problem, q, problem.initial_point(streams.generator("initialisation")), streams, **STEPS)
        assert abs(models - torch.stack(twin).numpy()).max() < 1e-13


def test_an_algorithm_that_corrects_gradients_is_never_solved_in_closed_form():
    problem = random_quadratic(4, 2)
    assert choose_engine("auto", problem, Scaffold(0.1, 2)).label == "batched"
    with pytest.raises(FedboundsError, match="not for algorithms that correct their gradients; use 'in turn', 'batch"):
        simulate(Scaffold(0.1, 2), problem, Full(4), 3, engine="closed form")


def test_with_everybody_and_exact_gradients_one_round_makes_the_control_variates_the_local_gradients():
    problem = random_quadratic(5, 3, shared=False)
    algorithm = Scaffold(0.1, 1)
    x = problem.x0[None]
    walk, state = choose_engine("batched", problem, algorithm), algorithm.init(x, 5)
    process = Full(5)
    from fedbounds.empirical.algorithms.cohort import Cohort

    drawn = Cohort.of([next(process.draw(np.random.default_rng(0)))])
    report = walk.round(x, drawn, 0, [Streams(0)], algorithm.correction(state, drawn))
    state = algorithm.server_update(state, 0, report)
    own = problem.gradient(x[:, None].expand(1, 5, 3), torch.arange(5)[None])
    assert isinstance(state, Controlled)
    assert torch.allclose(state.own, own) and torch.allclose(state.own.mean(1), problem.objective_gradient(x))


def test_on_different_hessians_scaffold_finds_the_minimum_where_fedavg_with_local_steps_does_not(tmp_path):
    room = Room(tmp_path)
    picture = draw(room, "drift")
    with pytest.raises(FedboundsError, match="unknown figure of scaffold 'drft'"):
        draw(room, "drft")
    assert [curve.label for curve in picture.curves][:3] == ["Theorem III, constants of one", "FedAvg", "SCAFFOLD"]
    for order, fedavg, corrected in (picture.curves[:3], picture.curves[3:]):
        assert corrected.y[-1] < 1e-12 * corrected.y[0] and fedavg.y[-1] > 1e6 * corrected.y[-1]
        averages = np.cumsum(corrected.y)[:-1] / np.arange(1, len(corrected.y))
        assert averages[-1] < 50 * order.y[-1], "the O hides a modest constant"


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
    assert set(check_scaffold(forgets_the_mean, examples=25).broken) == {"one step of everybody", "equal clients"}


# --- installed -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command where the example is installed in place, with its one entry point."""
    site = tmp_path_factory.mktemp("site")
    info = site / "scaffold-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scaffold\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fedbounds.papers]\nscaffold = scaffold\n")
    path = f"{site}:{EXAMPLE}:{ROOT}"
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(site / "cache"), "COLUMNS": "100"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fedbounds", *words]
        return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True)

    return run


def test_it_is_listed_and_evaluated_and_said_to_be_unknown(installed):
    assert "scaffold/theorem-3" in installed("list", "--paper", "scaffold").stdout
    numbers = ("beta=1", "sigma=1", "F=1", "N=10", "S=2", "K=5", "R=100", "eta_l=0.001", "--assume", "all")
    told = installed("eval", "scaffold/theorem-3", *numbers)
    assert told.returncode == 0 and "guarantee: no     verdict: unknown" in told.stdout, told.stdout + told.stderr


def test_its_audit_proves_gradient_descent_and_no_more(installed):
    audited = installed("audit", "--paper", "scaffold", "--no-cache")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "scaffold: 7 proved, 0 survived, 0 argued, 0 refuted, 1 unknown" in audited.stdout
