"""No result covers momentum, schedules, unequal local steps or server optimizers: `confront` and `covers` say why."""

from __future__ import annotations

from functools import cache

import pytest

from fedbounds.algorithms import Algorithm, FedAdam, FedAvg, FedAvgM, GeneralizedFedAvg, algorithm_from_spec
from fedbounds.bounds.advice.coverage import covers
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import PAPERS, paper
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace

N, T = 3, 4
RUNS: dict[str, tuple[Algorithm, str]] = {
    "momentum": (FedAvg(0.02, 2, momentum=0.9), "momentum = 0.9 .* plain SGD steps .* with momentum = 0"),
    "schedule": (
        GeneralizedFedAvg(0.02, 2, step_size_schedule={"kind": "cosine", "rounds": T}),
        "cosine.* one step size gamma in all rounds; .* with a constant local_step_size",
    ),
    "unequal": (FedAvg(0.02, (1, 2, 3)), "differ .* same number I of local steps .* with equal local_steps"),
    "fedavgm": (FedAvgM(0.02, 2), "generalized FedAvg, not fedavgm: .* for generalized-fedavg"),
    "fedadam": (FedAdam(0.02, 2), "generalized FedAvg, not fedadam: .* for generalized-fedavg"),
} | {
    kind: (algorithm_from_spec({"kind": kind} | numbers), f"generalized FedAvg, not {kind}: .* for generalized-fedavg")
    for kind, numbers in {
        "fedprox": {"local_step_size": 0.02, "local_steps": 2, "proximal_mu": 0.5},
        "fednova": {"local_step_size": 0.02, "local_steps": (1, 2, 3)},
        "scaffold": {"local_step_size": 0.02, "local_steps": 2},
        "ef21": {"step_size": 0.02, "share": 0.5},
    }.items()
}
PROBLEM = random_quadratic(N, 2)
EVERYONE = Full(N)
NEAREST = "arbitrary-participation/theorem-3.1"


@cache
def run(name: str) -> Trace:
    return simulate(RUNS[name][0], PROBLEM, EVERYONE, T)


@pytest.mark.parametrize("each", PAPERS)
def test_no_result_gives_such_a_run_a_guarantee(each: str) -> None:
    """The run is refused for its algorithm, or the comparison is no guarantee and says why."""
    for result in paper(each).results:
        for name, (algorithm, _) in RUNS.items():
            try:
                comparison = confront(run(name), result, problem=PROBLEM, participation=EVERYONE)
            except FedboundsError as refused:
                assert algorithm.kind in str(refused) and "\n" not in str(refused), result.key
            else:
                assert not comparison.guarantee and comparison.evaluation.why_not, result.key


@pytest.mark.parametrize("name", RUNS)
def test_the_nearest_result_names_the_assumption_that_fails(name: str) -> None:
    with pytest.raises(
        FedboundsError, match=f"no result of Wang & Ji 2022 covers this run: .*{RUNS[name][1]}"
    ) as caught:
        confront(run(name), NEAREST, problem=PROBLEM, participation=EVERYONE)
    assert f"nearest: {NEAREST}" in str(caught.value)


def test_equal_local_steps_of_each_client_are_compared_as_one_number() -> None:
    each, one = (
        confront(simulate(FedAvg(0.02, tau), PROBLEM, EVERYONE, T), NEAREST, problem=PROBLEM, participation=EVERYONE)
        for tau in ((2,) * N, 2)
    )
    assert each.guarantee and (each.bound == one.bound).all() and (each.measured == one.measured).all()


@pytest.mark.parametrize(
    ("phrase", "assumption"),
    [
        ("momentum", "plain-local-steps"),
        ("decaying step size", "stated-step-sizes"),
        ("unequal local steps", "local-steps"),
        ("server momentum", "averaging-server"),
        ("fedadam", "averaging-server"),
        ("fedprox", "plain-local-steps"),
        ("fednova", "averaging-server"),
        ("scaffold", "averaging-server"),
        ("ef21", "averaging-server"),
    ],
)
def test_the_nearest_theorem_is_excluded_by_that_assumption_alone(phrase: str, assumption: str) -> None:
    found = covers(f"non-convex, uniform sampling, {phrase}", paper="arbitrary-participation")
    assert not found.with_answer("covered") and not found.with_answer("if")
    (nearest,) = found.nearest
    assert nearest.key == NEAREST and [a.name for a in nearest.excluded] == [assumption]


def test_momentum_of_clients_excludes_no_theorem_about_any_coefficients() -> None:
    setting = "non-convex, strongly concave, uniform sampling, bounded heterogeneity, bounded variance"
    plain, momentum = (covers(f"{setting}{also}", paper="fed-norm-sgda") for also in ("", ", momentum"))
    assert momentum.of("fed-norm-sgda/theorem-1").answer == plain.of("fed-norm-sgda/theorem-1").answer != "not covered"
    for other, assumption in (("server momentum", "averaging-server"), ("proximal term", "growing-coefficients")):
        excluded = covers(f"{setting}, {other}", paper="fed-norm-sgda").of("fed-norm-sgda/theorem-1").excluded
        assert [each.name for each in excluded] == [assumption]
