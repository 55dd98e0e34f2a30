"""Runs made elsewhere: plain loops and their logs against the same theorems as ours, and every gap in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import fedbounds as fb
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.measured_constants import local_models, visits
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.comparison.recorder import Recorder
from fedbounds.empirical.comparison.run_setting import _trace_without_empty_rounds
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.run import trajectory_quantities
from fedbounds.empirical.participation import Bernoulli, Full
from fedbounds.empirical.problems import Quadratic, problem_from_spec
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace

ROOT = Path(__file__).resolve().parents[3]
THEOREM = "arbitrary-participation/theorem-3.1"
HESSIANS, CENTERS, START = np.array([1.0, 0.25, 0.5]), np.array([[2.0, 0], [-2, 4], [0, -4]]), np.array([3.0, -2])
QUADRATIC = Quadratic(HESSIANS[:, None] * np.ones(2), CENTERS, 0.0, START)
GAMMA, STEPS, ROUNDS = 0.01, 3, 12
Q = np.tile([[0.5, 0.5, 0], [0, 0.25, 0.75], [1, 0, 0]], (4, 1))
WITH_EMPTY = np.zeros((8, 4))
WITH_EMPTY[[0, 2, 5, 6]] = [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.25] * 4, [0, 0.5, 0.5, 0]]
GIVEN = {"L": 1.0, "F": 10.0, "sigma": 0.0, "nu": 6.0}


def gradients(x):
    return HESSIANS[:, None] * (x - CENTERS)


def plain_loop(recorder, record=lambda t: True):
    """FedAvg in numpy, as anybody writes it."""
    x = START.copy()
    for t, weights in enumerate(Q):
        recorder.round(weights, x if record(t) else None, gradients=gradients(x) if record(t) else None)
        locals_ = np.tile(x, (3, 1))
        for _ in range(STEPS):
            locals_ = locals_ - GAMMA * HESSIANS[:, None] * (locals_ - CENTERS)
        x = x + weights @ (locals_ - x)
    return x


@pytest.fixture(scope="module")
def trace():
    recorder = Recorder(FedAvg(GAMMA, STEPS), 3, keep_models=True)
    x = plain_loop(recorder)
    return recorder.trace(x, gradients=gradients(x))


@pytest.mark.parametrize("own", [True, False])
def test_gradients_that_change_while_the_model_does_not_are_refused(own: bool):
    models, rows = np.tile(START, (4, 1)), np.stack([gradients(START) * (1 + t) for t in range(4)])
    measured = {"gradients": rows} if own else {"gradient_norm_squared": (rows.mean(axis=1) ** 2).sum(axis=1)}
    log = {"round": np.arange(4), "model": models, "weights": Q[:3], **measured}
    with pytest.raises(FedboundsError, match="the model of rounds 0 and 1 is the same and its gradients differ"):
        read_log(log, FedAvg(GAMMA, STEPS))
    moved = models + np.arange(4)[:, None]
    assert read_log(log | {"model": moved}, FedAvg(GAMMA, STEPS)).spec["rounds"] == 3


# --- what a loop says is what a simulation would ------------------------------------------------------------------


def test_a_plain_loop_leaves_the_trace_that_a_simulation_leaves(trace):
    own = simulate(FedAvg(GAMMA, STEPS), QUADRATIC, Q, ROUNDS, record_models=True, record_participation=True)
    for name in ("round", "participants", "empty_rounds", "unnormalized_rounds", "diverged_at", "seed"):
        np.testing.assert_array_equal(trace.arrays[name], own.arrays[name], err_msg=name)
    for name in ("gradient_norm_squared", "model"):
        np.testing.assert_allclose(trace.arrays[name], own.arrays[name], rtol=1e-12, err_msg=name)
    np.testing.assert_array_equal(trace.participation(0), own.participation(0))
    assert trace.statuses == ("done",) and trace.engine == "logged"


def test_a_log_meets_the_bound_that_moments_meet_where_the_constants_are_the_same(trace):
    exact = moments(FedAvg(GAMMA, STEPS), QUADRATIC, Q, ROUNDS)
    own = confront(exact, THEOREM, interval=3, given=GIVEN)
    logged = confront(trace, THEOREM, interval=3, given=GIVEN)
    np.testing.assert_array_equal(logged.rounds, own.rounds)
    np.testing.assert_allclose(logged.measured, own.measured, rtol=1e-12)
    assert logged.form.name == own.form.name
    along = trajectory_quantities(FedAvg(GAMMA, STEPS), QUADRATIC, Q, 3).constants()
    for symbol, concept in (("beta", "participation_divergence"), ("delta", "window_divergence")):
        assert logged.constants[symbol].value == pytest.approx(float(along[concept].value), rel=1e-12)
        assert logged.constants[symbol].source == "trajectory"
    assert logged.bound[-1] == pytest.approx(own.bound[-1], rel=1e-12)


def test_a_log_is_never_a_guarantee_and_what_it_cannot_show_is_not_checked(trace):
    exact = {"beta": 6.0, "delta": 6.0} | GIVEN
    divergences = ("participation-divergence", "cohort-divergence", "window-divergence")
    others = ("smooth", "unbiased-noise", "independent-clients", "martingale-noise", "exogenous-participation")
    everything = (*divergences, *others, "bounded-below")
    bare = confront(trace, THEOREM, "explicit", given=exact)
    assumed = confront(trace, THEOREM, "explicit", given=exact, assume=everything)
    assert not bare.guarantee and not assumed.guarantee
    assert "made elsewhere" in assumed.why_not[0] and "fedavg" in assumed.why_not[0] and len(assumed.why_not) == 1
    checked = {name for name, status in bare.evaluation.assumptions.items() if status == "checked"}
    assert checked <= {"weights", "participation-norm"} and "violated" not in bare.evaluation.assumptions.values()


def test_a_crossing_in_a_log_is_laid_at_the_door_of_its_author(trace):
    tiny = GIVEN | {"F": 1e-9, "nu": 0.0, "beta": 0.0, "delta": 0.0}
    with pytest.raises(FedboundsError, match=r"beta = 0 is given, and it is 1\.2160.* \(along this run\)"):
        confront(trace, THEOREM, "explicit", given=tiny)
    crossed = confront(read_log(columns(trace), FedAvg(GAMMA, STEPS), Q), THEOREM, "explicit", given=tiny)
    assert crossed.covered_crossings.size and "fedbounds cannot check" in crossed.revoked


def test_a_log_may_end_with_the_last_round_and_be_sparse():
    recorder = Recorder(FedAvg(GAMMA, STEPS), 3)
    plain_loop(recorder, record=lambda t: t % 3 == 0)
    trace = recorder.trace()
    assert trace.round.tolist() == [0, 3, 6, 9] and trace.participants.tolist() == [[0, 5, 5, 5]]
    found = confront(trace, THEOREM, interval=3, given=GIVEN)
    assert found.rounds.tolist() == [3, 6, 9, 12] and "in 4 of 12 rounds only" in found.notes[0]
    whole = Recorder(FedAvg(GAMMA, STEPS), 3)
    plain_loop(whole)
    every = confront(whole.trace(), THEOREM, interval=3, given=GIVEN)
    assert found.constants["delta"] == every.constants["delta"]  # all windows' starts were recorded
    assert found.measured[-1] == every.measured[every.rounds.tolist().index(10)]


# --- a loop in torch, not written for us --------------------------------------------------------------------------


def torch_loop(recorder, model, data, rounds=6):
    torch.manual_seed(1)
    for t in range(rounds):
        cohort = [n for n in range(len(data)) if (n + t) % 2]
        if recorder is not None:
            recorder.round(dict.fromkeys(cohort, 1 / len(cohort)), model)
        start = {k: v.clone() for k, v in model.state_dict().items()}
        mean = {k: torch.zeros_like(v) for k, v in start.items()}
        for n in cohort:
            model.load_state_dict(start)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            for _ in range(2):
                optimizer.zero_grad()
                F.cross_entropy(model(data[n][0]), data[n][1]).backward()
                optimizer.step()
            for k, v in model.state_dict().items():
                mean[k] += v / len(cohort)
        model.load_state_dict(mean)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(7, 3))


@pytest.fixture(scope="module")
def data():
    rng = torch.Generator().manual_seed(2)
    return [(torch.randn(9 + n, 5, generator=rng), torch.randint(0, 3, (9 + n,), generator=rng)) for n in range(4)]


def mean_loss(model, own):
    return F.cross_entropy(model(own[0]), own[1])


def test_a_recorder_differentiates_a_module_and_leaves_the_loop_alone(data):
    watched, alone = network(), network()
    recorder = Recorder(FedAvg(0.05, 2), 4, data=data, loss=mean_loss, keep_models=True)
    torch_loop(recorder, watched, data)
    torch_loop(None, alone, data)
    for a, b in zip(watched.parameters(), alone.parameters(), strict=True):
        assert torch.equal(a, b)
    assert watched.training
    trace = recorder.trace(watched)
    fresh = network().eval()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(trace.model[0, 4]).float(), fresh.parameters())
    f = sum(mean_loss(fresh, own) for own in data) / 4
    gradient = torch.cat([g.ravel() for g in torch.autograd.grad(f, list(fresh.parameters()))])
    assert trace.gradient_norm_squared[0, 4] == pytest.approx(float(gradient.square().sum()), rel=1e-5)
    assert trace.train_loss[0, 4] == pytest.approx(float(f.detach()), rel=1e-6)
    comparison = confront(trace, THEOREM, given=GIVEN)
    picture = fb.overlay(comparison)
    assert "logged" in picture.curves[0].label


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "your-run.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code[1], "docs/your-run.md", "exec"), names)
    comparison = names["comparison"]
    assert comparison.valid.all() and not comparison.crossings.size and not comparison.guarantee
    assert (tmp_path / "my-run.png").is_file()


# --- logs ---------------------------------------------------------------------------------------------------------


def columns(trace):
    return {"round": trace.round, "gradient_norm_squared": trace.gradient_norm_squared[0]}


def test_csv_npz_and_arrays_make_the_same_trace_as_the_recorder(trace, tmp_path):
    table, weights, arrays = tmp_path / "log.csv", tmp_path / "weights.csv", tmp_path / "log.npz"
    lines = zip(trace.round.tolist(), trace.gradient_norm_squared[0].tolist(), strict=True)
    table.write_text("round,gradient_norm_squared\n" + "".join(f"{t},{norm!r}\n" for t, norm in lines))
    np.savetxt(weights, Q, delimiter=",")
    whole = columns(trace) | {"model": trace.model[0], "weights": Q}
    whole["gradients"] = np.stack([gradients(x) for x in trace.model[0]])
    del whole["gradient_norm_squared"]
    np.savez(arrays, **whole)
    algorithm = {"kind": "fedavg", "local_step_size": GAMMA, "local_steps": STEPS}
    read = [read_log(table, algorithm, weights), read_log(str(table), FedAvg(GAMMA, STEPS), Q),
            read_log(arrays, algorithm), read_log(whole, algorithm)]  # fmt: skip
    for other in read:
        assert {name: said for name, said in other.spec.items() if name != "log"} | {"dimension": 2} == trace.spec
        np.testing.assert_allclose(other.gradient_norm_squared, trace.gradient_norm_squared, rtol=1e-12)
        np.testing.assert_array_equal(other.participation(0), Q)
    np.testing.assert_allclose(read[2].gradient_products, trace.gradient_products, rtol=1e-12)
    saved = Trace.load(read[3].save(tmp_path / "trace.npz"))
    assert confront(saved, THEOREM, given=GIVEN).bound[-1] == confront(trace, THEOREM, given=GIVEN).bound[-1]


def test_several_seeds_of_a_log_are_compared_by_their_mean(trace):
    one = columns(trace)
    log = {name: np.concatenate([value, value]) for name, value in one.items()}
    log["gradient_norm_squared"][13:] *= 3
    log["seed"] = np.repeat([4, 9], 13)
    both = confront(read_log(log, FedAvg(GAMMA, STEPS), Q), THEOREM, given=GIVEN | {"beta": 1, "delta": 1})
    assert both.label == "mean of 2 logged runs" and both.seeds == 2 and both.standard_error is not None
    np.testing.assert_allclose(both.measured, 2 * np.minimum.accumulate(one["gradient_norm_squared"])[:12], rtol=1e-12)


def test_fedau_holds_grad_h_of_a_log_against_its_theorem():
    rng, p = np.random.default_rng(0), 0.5
    present = rng.random((30, 3)) < p
    recorder = Recorder(fb.algorithms.FixedWeights(GAMMA, STEPS, [2.0, 1.0, 1.0]), 3)
    x = START.copy()
    phi, norms = np.array([0.5, 0.25, 0.25]), []
    for row in present:
        norms.append(float(((phi @ gradients(x)) ** 2).sum()))
        recorder.round(row.astype(float), gradients=gradients(x))
        x = x - 0.01 * (row @ gradients(x)) / 3
    trace = recorder.trace(gradients=gradients(x))
    given = {"L": 1, "F": 10, "sigma": 0, "H": 12, "delta": 8, "deltatilde": 9}
    found = confront(trace, "fedau/theorem-1", given=given, participation=Bernoulli(3, p))
    assert found.measured.tolist() == pytest.approx([np.mean(norms)], rel=1e-12)
    with pytest.raises(FedboundsError, match=r"needs .*H \("):
        confront(trace, "fedau/theorem-1", given={"L": 1}, participation=Bernoulli(3, p))
    with pytest.raises(FedboundsError, match="has 4 clients, the log has 3"):
        confront(trace, "fedau/theorem-1", given=given, participation=Bernoulli(4, p))


# --- what is missing or wrong -------------------------------------------------------------------------------------


def test_what_was_not_logged_is_asked_for_by_name(trace):
    with pytest.raises(FedboundsError, match=r"needs F \(initial gap.*L \(smoothness.*nu \(divergence.*sigma \("):
        confront(trace, THEOREM)
    bare = read_log(columns(trace), FedAvg(GAMMA, STEPS), Q)
    with pytest.raises(FedboundsError, match=r"needs beta \(.*delta \("):
        confront(bare, THEOREM, given=GIVEN)
    with pytest.raises(
        FedboundsError,
        match="the log has train_loss, and the result bounds: minimum over rounds of squared gradient norm of f;",
    ):
        confront(read_log({"round": [0], "train_loss": [1.0]}, FedAvg(GAMMA, STEPS), Q[:1]), THEOREM, given=GIVEN)
    with pytest.raises(FedboundsError, match="a log has no problem: leave problem= out"):
        confront(trace, THEOREM, problem=QUADRATIC)
    with pytest.raises(FedboundsError, match="is not the log's record"):
        confront(trace, THEOREM, participation=Q[::-1], given=GIVEN)
    with pytest.raises(FedboundsError, match="L = -1"):
        confront(trace, THEOREM, given=GIVEN | {"L": -1})


def one_round(clients=3, **arguments):
    Recorder(FedAvg(0.1, 1), clients).round(**({"weights": {0: 1.0}} | arguments))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: one_round(weights={3: 1.0}), r"round 0: client = 3 must be an integer in \[0, 2\]: there are 3 clients"),
    (lambda: one_round(weights={0: -1.0}), "round 0: the weight of client 0 = -1 is not a finite number >= 0"),
    (lambda: one_round(weights=[1, 0]), "round 0: 2 weights, not 3, one for each client"),
    (lambda: one_round(weights=[1, 0, float("nan")]), "the weight of client 2 = nan"),
    (lambda: one_round(model=torch.tensor([1.0, float("nan")])), "model of round 0 is not finite: nan at coordinate 1"),
    (lambda: one_round(gradients=[[0.0], [float("inf")], [0.0]]), "gradient of client 1 in round 0 is not finite"),
    (lambda: one_round(gradients=[[0.0], [1.0]]), "round 0: 2 gradients, there are 3 clients: give all"),
    (lambda: one_round(gradients=[[0.0], [1.0], [1.0, 2.0]]), r"gradients and model have \[1, 2\] coordinates"),
    (lambda: one_round(gradients=np.zeros((3, 2)), model=np.zeros(3)), r"have \[2, 3\] coordinates"),
    (lambda: one_round(gradients=np.zeros((3, 2)), gradient_norm_squared=1.0), "not both"),
    (lambda: one_round(gradient_norm_squared=-1.0), "gradient_norm_squared = -1 is not a finite number >= 0"),
    (lambda: one_round(train_loss="low"), "round 0: train_loss = 'low' must be a number"),
    (lambda: Recorder(FedAvg(0.1, 1), 2, data=[[1.0], []], loss=mean_loss), "client 1 has no data"),
    (lambda: Recorder(FedAvg(0.1, 1), 2, data=[(torch.zeros(0, 3), torch.zeros(0)), [1.0]], loss=mean_loss),
     "client 0 has no data"),
    (lambda: Recorder(FedAvg(0.1, 1), 3, data=[[1.0]], loss=mean_loss), "data= has 1 parts, one for each of 3 clients"),
    (lambda: Recorder(FedAvg(0.1, 1), 3, data=[[1.0]] * 3), "data= and loss= go together"),
    (lambda: Recorder({"kind": "fedavgg"}, 3), "unknown algorithm 'fedavgg'; did you mean fedavg"),
    (lambda: Recorder(fb.algorithms.FedNormSGDA(0.05, 0.1, 0.002, 0.1, local_steps=2), 3),
     "is for minimax problems, whose logs are not read"),
    (lambda: Recorder(FedAvg(0.1, 1), 3).trace(), "nothing was recorded: call round"),
])  # fmt: skip
def test_what_a_loop_gets_wrong_is_one_line(call, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_rounds_that_record_other_things_than_the_first_are_refused():
    recorder = Recorder(FedAvg(0.1, 1), 2)
    recorder.round([1, 0], train_loss=1.0)
    recorder.round([1, 0])
    with pytest.raises(FedboundsError, match="round 2 has test_loss, round 0 has not: give it in every recorded round"):
        recorder.round([1, 0], test_loss=1.0)
    with pytest.raises(FedboundsError, match="train_loss = nan is not a finite number"):
        recorder.round([1, 0], train_loss=float("nan"))
    with pytest.raises(FedboundsError, match="the weight of client 0 = -1"):
        recorder.round([-1, 0], train_loss=0.5)
    recorder.round([0, 1], train_loss=0.5)
    assert recorder.trace().round.tolist() == [0, 2]  # what was refused left nothing behind
    late = Recorder(FedAvg(0.1, 1), 2)
    late.round([1, 0])
    late.round([1, 0], train_loss=1.0)
    with pytest.raises(FedboundsError, match="round 0 recorded no model and no metric"):
        late.trace()


LOG = {"round": [0, 1, 2], "gradient_norm_squared": [4.0, 1.0, 0.5], "weights": [[1, 0], [0, 1]]}


@pytest.mark.parametrize(("changed", "message"), [
    ({"weights": None}, r"the log lacks weights, who took part in each round: give participation="),
    ({"round": None}, "the log lacks round"),
    ({"gradient_norm_squared": [4.0, float("nan"), 1.0]}, r"gradient_norm_squared\[1\] = nan is not finite"),
    ({"gradient_norm_squared": ["a", "b", "c"]}, "gradient_norm_squared must be an array of numbers"),
    ({"gradient_norm_squared": [4.0, 1.0]}, "gradient_norm_squared has 2 lines, round has 3"),
    ({"round": [0, 1, 3]}, "the log has round 3, and the participation ends after 2 rounds"),
    ({"round": [1, 2, 3]}, "round must begin with 0 and rise"),
    ({"round": [0, 2, 1]}, "round must begin with 0 and rise"),
    ({"round": [0, 0.5, 1]}, "round must begin with 0 and rise, in whole numbers"),
    ({"weights": np.ones((9, 2)) / 2}, "the log ends at round 2, and the participation has 9 rounds"),
    ({"weights": [[1, -1]]}, r"weights\[0, 1\] = -1 is negative"),
    ({"round": [[0], [1], [2]]}, r"round has shape \(3, 1\); expected one number for each line"),
    ({"round": [], "gradient_norm_squared": []}, r"round has shape \(0,\)"),
    ({"seed": np.zeros((3, 2))}, r"seed has shape \(3, 2\)"),
    ({"seed": [0.2, 0.2, 0.2]}, r"seed must be whole numbers; it has \[0.2\]"),
    ({"gradient_norm_squared": [4.0, -1.0, 1.0]}, "gradient_norm_squared is negative in line 1"),
    ({"participants": [1, 1, 1]}, "participants is a reserved name of traces"),
    ({"participation_seed": [1, 1, 1]}, "participation_seed is a reserved name of traces"),
    ({"gradient_products": np.ones((3, 3, 3))}, r"gradient_products has shape \(3, 3, 3\); expected \(3, 2, 2\)"),
    ({"gradient_products": 9 * np.ones((3, 2, 2))}, r"in line 0 gradient_norm_squared = .*gradients there give 9"),
    ({"gradients": 1e200 * np.ones((3, 2, 2))}, r"too large to be multiplied: up to 1e\+200"),
    ({"gradients": np.zeros((3, 3, 2))}, r"gradients has shape \(3, 3, 2\); expected \(3, 2, d\)"),
    ({"train_loss": np.zeros((3, 2))}, r"train_loss has shape \(3, 2\); expected \(round\)"),
    ({"seed": [0, 0, 1]}, "the seeds were recorded in different rounds"),
])  # fmt: skip
def test_what_a_log_gets_wrong_is_one_line(changed, message):
    log = {name: value for name, value in (LOG | changed).items() if value is not None}
    with pytest.raises(FedboundsError, match=message) as refused:
        read_log(log, FedAvg(0.1, 1))
    assert "\n" not in str(refused.value)


def test_a_process_that_cannot_have_made_the_log_is_refused(trace):
    with pytest.raises(FedboundsError, match="full, where client 2 always takes part in round 0; the log"):
        confront(trace, THEOREM, given=GIVEN, participation=Full(3))
    never = Bernoulli(3, [0.0, 0.5, 0.5])
    with pytest.raises(FedboundsError, match="bernoulli, where client 0 never takes part in round 0"):
        confront(trace, THEOREM, given=GIVEN, participation=never)


def test_what_is_no_log_at_all_is_one_line():
    nothings: list[Any] = [None, 3, [1, 2]]
    for nothing in nothings:
        with pytest.raises(FedboundsError, match="a log is the path of a file, a list of them, or a mapping of arrays"):
            read_log(nothing, FedAvg(0.1, 1), Q)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("log.csv", "round,loss\n0,nan\n", "line 2: loss = nan is not finite"),
    ("log.csv", "round,loss\n0,1,2\n", "line 2: 3 cells, the first line has 2"),
    ("log.csv", "round,loss\n0,low\n", "line 2: loss = 'low' is not a number"),
    ("log.csv", "round,loss\n0,1_0\n", "line 2: loss = '1_0' is not a number"),
    ("log.csv", "round,round\n0,1\n", "every column needs a name of its own"),
    ("log.csv", "", "holds no rounds"),
    ("log.npz", "PK", "damaged or no npz file"),
    ("log.txt", "", "holds no rounds"),
    ("log.txt", "[1, 2]", r"unknown format of a log, '\[1, 2\]'; give format=, one of tensorboard"),
])  # fmt: skip
def test_files_that_are_no_logs_are_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FedboundsError, match=message) as refused:
        read_log(tmp_path / name, FedAvg(0.1, 1), Q)
    assert "\n" not in str(refused.value)
    with pytest.raises(FedboundsError, match=r"leave participation= out"):
        read_log(LOG, FedAvg(0.1, 1), Q)


def test_rounds_without_participants_are_left_out_where_that_is_the_same_run():
    """The comparison is that of the run without them; with amplified windows they stay, and are refused."""
    problem = Quadratic([1.0, 0.5], 0.1 * np.arange(8.0).reshape(4, 2), x0=[2.0, 1.0])
    q = WITH_EMPTY
    known = {"given": {"L": 1, "F": 5, "sigma": 0, "nu": 3, "beta": 3, "delta": 3}, "assume": "all"}

    def compared(algorithm, weights):
        norms = simulate(algorithm, problem, weights, len(weights)).gradient_norm_squared[0]
        log = {"round": np.arange(len(weights) + 1), "gradient_norm_squared": norms}
        trace = read_log(log, algorithm, weights)
        return trace, confront(
            trace, "arbitrary-participation/theorem-3.1", interval=algorithm.spec().get("interval", 1), **known
        )

    kept = q.any(axis=1)
    for algorithm in (FedAvg(0.02, 2), GeneralizedFedAvg(0.01, 2, 3), GeneralizedFedAvg(0.02, 2, 1, 2)):
        trace, whole = compared(algorithm, q)
        _, short = compared(algorithm, q[kept])
        assert (
            "4 of 8 rounds have no participants: they change nothing and are left out, T = 4 and not 8" in whole.notes
        )
        assert trace.round.tolist() == [0, 1, 2, 3, 4] and trace.spec["rounds"] == 4
        np.testing.assert_allclose(whole.measured, short.measured, rtol=1e-12)
        assert whole.bound.tolist() == short.bound.tolist() and whole.rounds.tolist() == short.rounds.tolist()
    with pytest.raises(FedboundsError, match="a round without participants is not covered; leave it out"):
        compared(GeneralizedFedAvg(0.001, 2, 3, 2), q)
    with pytest.raises(FedboundsError, match="4 of 8 rounds have no participants, first round 1, and empty_rounds is"):
        read_log({"round": [0], "train_loss": [1.0], "weights": q}, FedAvg(0.02, 2), empty_rounds="refuse")


@pytest.mark.parametrize("every", [1, 3])
def test_a_simulation_of_a_record_is_compared_without_its_empty_rounds(every):
    """It keeps its rounds; the comparison is that of the run without them, also of networks measured along the run."""
    problem = Quadratic([1.0, 0.5], 0.1 * np.arange(8.0).reshape(4, 2), x0=[2.0, 1.0])
    run = simulate(FedAvg(0.02, 2), problem, WITH_EMPTY, 8, record_every=every)
    found = confront(run, THEOREM, problem=problem, participation=WITH_EMPTY)
    exact = confront(moments(FedAvg(0.02, 2), problem, WITH_EMPTY), THEOREM)
    short = confront(moments(FedAvg(0.02, 2), problem, WITH_EMPTY[WITH_EMPTY.any(axis=1)]), THEOREM)
    assert run.round[-1] == 8 and found.rounds[-1] == 4 and "T = 4 and not 8" in "".join(found.notes)
    np.testing.assert_allclose([found.bound[-1], exact.bound[-1]], [short.bound[-1]] * 2, rtol=1e-12)
    np.testing.assert_allclose(exact.measured, short.measured, rtol=1e-12)
    assert exact.guarantee and exact.rounds.tolist() == short.rounds.tolist()


def test_what_is_measured_along_such_a_run_has_the_batches_of_its_own_rounds():
    problem = problem_from_spec({"kind": "images", "dataset": "digits", "clients": 4, "network": "linear", "batch": 8,
                                 "partition": "dirichlet", "gradient_norm": True})  # fmt: skip
    run = simulate(FedAvg(0.02, 2), problem, WITH_EMPTY, 8, record_models=True, record_participation=True)
    found = confront(run, THEOREM, problem=problem, participation=WITH_EMPTY)
    assert found.rounds[-1] == 4 and not found.guarantee
    whole = run.arrays["model"][0]
    for at in visits(_trace_without_empty_rounds(run, WITH_EMPTY)[0], problem, np.arange(4)):
        present = np.flatnonzero(WITH_EMPTY[at.drawn])
        share = torch.from_numpy(WITH_EMPTY[at.drawn, present]).to(at.model)
        last = local_models(problem, FedAvg(0.02, 3).local, at.model, present, Streams(0, {}), at.drawn)[-1]
        np.testing.assert_allclose(share @ last, whole[at.drawn + 1], atol=1e-6)  # the model after the round
