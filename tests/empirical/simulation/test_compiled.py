"""Compiled rounds: traced whole, equal to those step by step, chosen where they repay, and never in the way."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import LocalSGD, algorithm_from_spec
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, WaitFull
from fedbounds.empirical.participation import Bernoulli, Full, WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.simulation.engines import CompiledEngine, choose_engine, compiled, most_participants
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.sweep import plan, resolve
from tests.empirical.runtime.pretended_device import pretended_device

DIGITS = {"kind": "images", "clients": 10, "network": "linear", "batch": 4}
SMOOTH = {"kind": "cosine-quadratic", "clients": 10, "dimension": 3, "noise": 0.1}


def run(engine: str, spec: dict[str, Any] = DIGITS, rule: Any = None, process: Any = None, rounds: int = 4) -> Any:
    rule, process = rule or FedAvg(0.05, 3), process or WithoutReplacement(10, 4)
    return simulate(rule, problem_from_spec(spec), process, rounds, seeds=(0, 3), engine=engine, record_models=True)


def same(spec: dict[str, Any], found: Any, expected: Any) -> None:
    limit = 1e-5 if "network" in spec else 1e-10
    np.testing.assert_allclose(found.model, expected.model, rtol=limit, atol=limit)


@pytest.mark.parametrize(  # steps in a loop, and one after another
    ("spec", "written_out"),
    [(DIGITS, 0), (DIGITS | {"network": "mlp"}, 16), (SMOOTH, 0), (SMOOTH, 16)],
    ids=lambda given: str(given if isinstance(given, int) else given.values()),
)
def test_a_round_is_traced_whole_and_equals_the_round_step_by_step(
    spec: dict[str, Any], written_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "WRITTEN_OUT", written_out)
    monkeypatch.setattr(CompiledEngine, "backend", "aot_eager")  # `fullgraph`: a break of the graph would be an error
    found = run("compiled", spec)
    assert found.engine == "compiled"
    same(spec, found, run("batched", spec))


@pytest.mark.long
@pytest.mark.parametrize("spec", [DIGITS | {"network": "mlp"}, SMOOTH], ids=lambda spec: str(spec["kind"]))
def test_a_round_in_machine_code_equals_the_round_step_by_step(spec: dict[str, Any]) -> None:
    found = run("compiled", spec)
    assert found.engine == "compiled"
    same(spec, found, run("batched", spec))


def test_without_a_compiler_rounds_are_walked_step_by_step_and_the_reason_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none(*given: Any) -> Any:
        raise RuntimeError("no C++ compiler\nsee the manual")

    monkeypatch.setattr(compiled, "compiled_steps", none)
    with caplog.at_level(logging.WARNING, "fedbounds"):
        found = run("compiled")
    assert [record.getMessage() for record in caplog.records] == [
        "local steps are not compiled: RuntimeError: no C++ compiler"
    ]
    expected = run("batched")
    assert found.engine == "batched" and np.array_equal(found.model, expected.model)


def test_a_shape_is_compiled_for_when_it_comes_again_and_again_and_only_where_it_repays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    monkeypatch.setattr(compiled, "compiled_steps", lambda steps, backend, *given: made.append(backend) or steps)
    assert run("auto").engine == "batched"
    monkeypatch.setattr(compiled, "REPAID", 2 * 4 * 3 * 4)
    assert run("auto").engine == "compiled" and made == ["inductor"]
    assert np.array_equal(run("auto").model, run("batched").model)
    monkeypatch.setattr(compiled, "REPAID", 2 * 4 * 3 * 4 + 1)  # half of the clients, so that it does not
    assert run("auto").engine == "batched"
    sizes = [most_participants(process) for process in (WithoutReplacement(10, 4), Full(10), Bernoulli(10, 0.5))]
    chosen = [choose_engine("auto", problem_from_spec(DIGITS), FedAvg(0.05, 3), 4, 2, most) for most in sizes]
    assert sizes == [4, 10, 10] and [isinstance(one, CompiledEngine) for one in chosen] == [False, True, True]
    made.clear()
    random = run("compiled", process=Bernoulli(10, 0.5), rounds=12)
    assert len(made) == compiled.MOST_SHAPES and random.engine == "compiled"
    np.testing.assert_array_equal(random.model, run("batched", process=Bernoulli(10, 0.5), rounds=12).model)


def test_what_has_nothing_to_compile_is_walked_as_ever() -> None:
    full = run("compiled", rule=WaitFull(0.05, 2, interval=2))
    assert full.engine == "batched"
    assert run("compiled", SMOOTH | {"noise": 0.0}).engine == "batched"
    compressed = algorithm_from_spec({"kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2, "amplitude": 0.1})
    with pytest.raises(FedboundsError, match="'compiled' is not for fedmrn, whose local steps are not plain SGD"):
        run("compiled", rule=compressed)
    problem = problem_from_spec(SMOOTH)
    assert choose_engine("auto", problem, FedAvg(0.1, 10), 10**9).label == "batched"
    assert not isinstance(choose_engine("auto", problem, FedAvg(0.1, 10), 10**9), CompiledEngine)


def test_a_long_run_on_a_processor_stands_in_no_batch() -> None:
    sweep = {"rounds": 10**6, "problem": DIGITS, "participation": {"kind": "full", "clients": 10}, "device": "cpu"}
    sweep |= {"record_every": 1000, "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2}}
    together = {
        (rounds, engine): plan(resolve(sweep | {"rounds": rounds, "engine": engine}))[0].together
        for rounds in (100, 10**6)
        for engine in ("auto", "batched", "compiled")
    }
    assert [key for key, most in together.items() if most == 1] == [
        (100, "compiled"),
        (10**6, "auto"),
        (10**6, "compiled"),
    ]
    enough = compiled.REPAID // (10 * 2)  # if all clients take part
    few = {"kind": "without-replacement", "clients": 10, "participants": 2}
    shared = [plan(resolve(sweep | {"rounds": enough, "record_every": enough, "participation": who}))[0].together
              for who in (sweep["participation"], few)]  # fmt: skip
    assert shared[0] == 1 < shared[1]


class Graph:
    """Stands in for a CUDA graph."""

    def replay(self) -> None: ...


class Nothing:
    """Stands in for a CUDA stream, and for what is entered."""

    def __init__(self, *given: Any) -> None: ...
    def wait_stream(self, other: Any) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


def test_what_is_recorded_as_a_graph_is_played_back_with_new_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("device", "Stream", "stream", "current_stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, Nothing)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    problem = problem_from_spec(SMOOTH | {"clients": 4})
    steps = compiled.python_steps(problem, LocalSGD(0.1, 2))
    clients = torch.tensor([[0, 2]])

    def given(seed: int) -> tuple[torch.Tensor, ...]:
        rng = np.random.default_rng(seed)
        arrays = rng.normal(size=(1, 2, 3)), rng.normal(size=(2, 1, 2, 3)), np.full((1, 2, 1), 0.1)
        x, drawn, sizes = map(torch.from_numpy, arrays)
        return x, clients, drawn, sizes

    recorded = compiled.RecordedGraph(steps, *given(0))
    monkeypatch.setattr(Graph, "replay", lambda graph: recorded.found.copy_(steps(*recorded.given)))
    for seed in (1, 2):
        own = given(seed)
        before = [one.clone() for one in own]
        assert torch.equal(recorded(*own), steps(*own)) and all(map(torch.equal, own, before))


def test_a_device_that_records_no_graphs_is_walked_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledEngine, "backend", "no such backend")
    with pretended_device() as device:
        problem = problem_from_spec(SMOOTH, device=device)
        found = simulate(FedAvg(0.05, 3), problem, WithoutReplacement(10, 4), 4, engine="compiled")
    assert found.engine == "batched"
