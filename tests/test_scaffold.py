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
from scaffold.algorithms import PrescribedScaffold
from scaffold.invariants import check_prescribed
from scaffold.results import THEOREM

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.empirical.algorithms.scaffold import Scaffold
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import reference_run
from fedbounds.empirical.participation import Bernoulli, Full, WithoutReplacement
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from tests.command_line import declare, run_apart

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "scaffold"
ORDER = "Theorem III, constants of one"


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


@pytest.mark.parametrize("process", [WithoutReplacement(6, 2), Full(6)], ids=["2 of 6", "all"])
def test_its_algorithm_has_the_global_step_size_of_the_theorem(process):
    problem, S = random_quadratic(6, 3, shared=False, noise=0.1), 2 if process != Full(6) else 6
    run, usual = (
        simulate(algorithm, problem, process, 15, record_models=True).arrays["model"]
        for algorithm in (PrescribedScaffold(0.1, 4), Scaffold(0.1, 4, S**0.5))
    )
    assert (run == usual).all()


def test_its_algorithm_comes_back_from_its_table_and_refuses_another_participation():
    algorithm = PrescribedScaffold(0.1, 4)
    assert algorithm.spec() == {"kind": "scaffold-theorem-3", "local_step_size": 0.1, "local_steps": 4}
    with pytest.raises(FedboundsError, match="server_multiplier"):
        PrescribedScaffold(0.1, 4, server_multiplier=2.0)
    with pytest.raises(FedboundsError, match=r"Theorem III has no bernoulli participation: .* without-replacement"):
        simulate(algorithm, random_quadratic(4, 2), Bernoulli(4, 0.5), 3)


# --- the invariants ------------------------------------------------------------------------------------------------


def prescribed(problem, weights, *, multiplier, root=np.sqrt, **numbers):
    return reference_run("scaffold")(problem, weights, multiplier=root((weights[0] > 0).sum()), **numbers)


def test_its_invariant_holds_of_the_algorithm_and_catches_another_step():
    assert not check_prescribed(prescribed, examples=25).broken
    broken = check_prescribed(partial(prescribed, root=lambda S: S), examples=25).broken
    assert [verdict.name for verdict in broken] == ["prescribed step"]


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
kind = "scaffold-theorem-3"
local_step_size = 0.1
local_steps = 4
"""
SAME = """
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
algorithm = algorithm_from_spec({"kind": "scaffold-theorem-3", "local_step_size": 0.1, "local_steps": 4})
problem = random_quadratic(6, 3, shared=False, noise=0.1)
process, streams = WithoutReplacement(6, 2), Streams(0)
run = simulate(algorithm, problem, process, 9, record_models=True)
q = process.matrix(9, streams.generator("participation"))
print(abs(run.arrays["model"][0] - run_reference(algorithm, problem, q, streams).numpy()).max() < 1e-13)
"""


def test_its_algorithm_is_found_by_a_sweep_and_its_twin_by_the_reference(installed, tmp_path: Path):
    spec = tmp_path / "ours.toml"
    spec.write_text(SPEC)
    done = installed("run", str(spec))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scaffold" in installed("results", str(spec)).stdout
    spec.write_text(SPEC.replace("scaffold-theorem-3", "scaffold-theorem-4"))
    assert "did you mean scaffold-theorem-3" in installed("run", str(spec)).stderr
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
