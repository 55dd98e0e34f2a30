"""The strategies for Flower: in a real run they make the models of our simulator, and their account is ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedbounds.empirical.monitoring.accountant import ParticipationAccountant
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.fedau.algorithms import FedAU
from fedbounds.empirical.participation import Bernoulli, Recorded
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.simulate import simulate

RUN = Path(__file__).with_name("run_in_flower.py")
NOT_INSTALLED = "import sys; sys.modules['flwr'] = None; "
SETTING = {
    "eigenvalues": [1.0, 0.5],
    "centers": [[0.0, 1.0], [2.0, -1.0], [4.0, 3.0]],
    "start": [5.0, 5.0],
    "present": [[1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0]],  # in the second round nobody comes
    "sizes": [1, 3, 2],
    "rates": [0.6, 0.4, 0.4],
    "local_steps": 2,
    "step_size": 0.1,
    "interval": 2,
    "server_multiplier": 3.0,
    "cutoff": 3,
}


@pytest.fixture(scope="module")
def in_flower() -> dict:
    """What came of runs in Flower's simulation engine, in a process of its own, which ray needs."""
    asked = json.dumps(SETTING | {"strategies": ["generalized", "fedau"]})
    quiet = os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    ran = subprocess.run([sys.executable, str(RUN), asked], capture_output=True, text=True, timeout=280, env=quiet)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.strip().splitlines()[-1])


def simulated(algorithm, weights: np.ndarray) -> np.ndarray:
    problem = Quadratic(SETTING["eigenvalues"], SETTING["centers"], 0.0, SETTING["start"])
    return simulate(algorithm, problem, Recorded(weights), len(weights), record_models=True).arrays["model"][0]


def shares() -> np.ndarray:
    present = np.array(SETTING["present"]) * SETTING["sizes"]
    return present / np.maximum(present.sum(axis=1, keepdims=True), 1)


@pytest.mark.flower
def test_generalized_fedavg_in_flower_is_that_of_the_simulator(in_flower) -> None:
    algorithm = GeneralizedFedAvg(0.1, 2, server_multiplier=3.0, interval=2)
    got = np.array(in_flower["generalized"]["models"])
    np.testing.assert_allclose(got, simulated(algorithm, shares()), rtol=0, atol=1e-6)


@pytest.mark.flower
def test_fedau_in_flower_is_that_of_the_simulator(in_flower) -> None:
    algorithm = FedAU(0.1, 2, server_multiplier=1.5, cutoff=3)
    got = np.array(in_flower["fedau"]["models"])
    np.testing.assert_allclose(got, simulated(algorithm, np.array(SETTING["present"]) / 3), rtol=0, atol=1e-6)


@pytest.mark.flower
@pytest.mark.parametrize("name, weighted", [("generalized", True), ("fedau", False)])
def test_the_account_in_flower_is_that_of_the_schedule(in_flower, name: str, weighted: bool) -> None:
    ours = ParticipationAccountant(3, Bernoulli(3, SETTING["rates"]), intervals=[2], cutoff=3)
    for row, share in zip(np.array(SETTING["present"]), shares(), strict=True):
        who = np.flatnonzero(row).tolist()
        ours.add(who, share[who] if weighted else None)
    theirs = ParticipationAccountant.from_json(in_flower[name]["account"])
    assert theirs.quantities() == ours.quantities() and theirs.participations.tolist() == [3, 2, 2]
    assert theirs.conformity().status == ("impossible" if weighted else "not refuted")  # not the weights of the process


@pytest.mark.flower
def test_the_quickstart_of_the_page_is_a_server_app_that_flower_takes() -> None:
    page = (RUN.parents[2] / "docs" / "flower.md").read_text(encoding="utf-8")
    lines = page.partition("```diff\n")[2].partition("```")[0].splitlines()
    assert sum(line[:1] in "+-" for line in lines if line) <= 12
    changed = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    task = (
        "import sys, types; task = types.ModuleType('task'); task.Net = object; sys.modules['pytorchexample'] = task\n"
    )
    task += "sys.modules['pytorchexample'] = sys.modules['pytorchexample.task'] = task\n"
    made = "\nFedAU(50, cutoff=20, fraction_evaluate=0.5); assert app\n"
    ran = subprocess.run([sys.executable, "-c", task + changed + made], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_flower_costs_nothing_without_it() -> None:
    code = NOT_INSTALLED + "import fedbounds; fedbounds.ParticipationAccountant; print('flwr' in [*sys.modules][1:])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_extra_that_is_missing_is_named() -> None:
    code = NOT_INSTALLED + "import fedbounds.flower"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtra: flwr is not installed; run: pip install 'fedbounds[flower]'" in ran.stderr
