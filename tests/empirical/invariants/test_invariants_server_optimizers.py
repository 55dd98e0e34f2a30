"""Property tests of other algorithms than FedAvg: correct implementations pass, usual errors are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import reference_run


def mean_update(problem: Any, x: np.ndarray, row: np.ndarray, t: int, step_size: float, local_steps: int) -> np.ndarray:
    total = np.zeros_like(x)
    for n in np.flatnonzero(row):
        y = x
        for i in range(local_steps):
            y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
        total += row[n] * (y - x)
    return total


def run(server: Callable[..., Any], problem: Any, weights: np.ndarray, step_size: float, local_steps: int, own: Any):
    x, memory = problem.x0, None
    models = [x]
    for t, row in enumerate(weights):
        if row.any():
            x, memory = server(x, mean_update(problem, x, row, t, step_size, local_steps), memory, t, **own)
        models.append(x)
    return np.stack(models)


def momentum(x, delta, v, t, server_momentum, nesterov=False):
    v = delta if v is None else server_momentum * v + delta
    return x + (server_momentum * v + delta if nesterov else v), v


def adam(x, delta, memory, t, server_step_size, beta1, beta2, tau, start=1.0, unbiased=False, inside=False):
    m, v = (0.0, start * tau**2) if memory is None else memory
    m, v = beta1 * m + (1 - beta1) * delta, beta2 * v + (1 - beta2) * delta**2
    moved = m / (1 - beta1 ** (t + 1)) if unbiased else m
    scale = np.sqrt(v + tau**2) if inside else np.sqrt(v) + tau
    return x + server_step_size * moved / scale, (m, v)


def fedavgm(problem, weights, *, step_size, local_steps, server_momentum, server=momentum, **_):
    return run(server, problem, weights, step_size, local_steps, {"server_momentum": server_momentum})


def fedadam(problem, weights, *, step_size, local_steps, server_step_size, beta1, beta2, tau, server=adam, **_):
    own = {"server_step_size": server_step_size, "beta1": beta1, "beta2": beta2, "tau": tau}
    return run(server, problem, weights, step_size, local_steps, own)


RUNS = {"fedavgm": fedavgm, "fedadam": fedadam}


@pytest.mark.parametrize("kind", RUNS)
def test_a_correct_implementation_passes(kind: str) -> None:
    report = check_invariants(RUNS[kind], algorithm=kind, examples=20)
    assert report.passed and report["reference twin"].status == "held"
    assert report["rotation"].status == ("skipped" if kind == "fedadam" else "held")
    assert report["split clients"].status == "held"


@pytest.mark.parametrize(
    ("kind", "server"),
    [
        ("fedavgm", partial(momentum, nesterov=True)),
        ("fedadam", partial(adam, start=0.0)),
        ("fedadam", partial(adam, unbiased=True)),
        ("fedadam", partial(adam, inside=True)),
    ],
)
def test_another_server_step_is_found(kind: str, server: Callable[..., Any]) -> None:
    report = check_invariants(
        partial(RUNS[kind], server=server), algorithm=kind, invariants=["reference twin"], examples=10
    )
    assert report["reference twin"].status == "broken"


def test_given_numbers_are_those_of_an_implementation_that_names_none() -> None:
    fixed = partial(fedavgm, server_momentum=0.9)
    same = check_invariants(
        lambda problem, weights, **numbers: fixed(problem, weights, **numbers),
        algorithm="fedavgm", server_momentum=0.9, invariants=["reference twin"], examples=10,
    )  # fmt: skip
    assert same["reference twin"].status == "held"


@pytest.mark.parametrize(("kind", "number"), [("fedprox", "proximal_mu"), ("fednova", "client_steps")])
def test_a_number_that_differs_from_case_to_case_must_be_named_by_the_run(kind: str, number: str) -> None:
    """The unit of mu is f/x^2, and there is a number of steps for each client: no value suits all cases."""
    with pytest.raises(FedboundsError, match=f"{number} differs from case to case; name the parameter {number}"):
        check_invariants(reference_run(kind), algorithm=kind, **{number: 1.0})

    def fixed(problem: Any, weights: np.ndarray, **numbers: Any) -> np.ndarray:
        return reference_run("fedavg")(problem, weights, **numbers)

    report = check_invariants(fixed, algorithm=kind, examples=4)
    assert report["reference twin"].status == "not compared"
    assert f"NOT COMPARED with the reference: name the parameter {number} in the run" in str(report)


@pytest.mark.parametrize(
    ("kind", "special"),
    [
        ("fedprox", {"one local step"}),
        ("fednova", {"equal local steps"}),
        ("scaffold", {"one step of all clients", "equal clients"}),
        ("ef21", {"one coordinate"}),
        ("fedadam", set()),
    ],
)
def test_special_cases_are_those_of_the_algorithm(kind: str, special: set[str]) -> None:
    report = check_invariants(reference_run(kind), algorithm=kind, examples=4)
    names = {verdict.name for verdict in report.verdicts}
    assert report.passed and names & {"one local step", "equal local steps", "equal clients", "one coordinate",
                                      "one step of all clients"} == special  # fmt: skip
    with pytest.raises(FedboundsError, match="unknown invariant 'one coordinates'"):
        check_invariants(reference_run("ef21"), algorithm="ef21", invariants=["one coordinates"])
