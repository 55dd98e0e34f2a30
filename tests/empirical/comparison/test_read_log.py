"""What a log means beside its format: participation in words, f_min, first rounds, its source, and its summary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gradient_descent.notation import NOTATION
from gradient_descent.results import THEOREM as THEOREM_OF_EXAMPLE

import fedbounds as fb
from fedbounds.authoring import OBJECTIVE, Measure, Term
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import results
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN
from fedbounds.empirical.participation import Bernoulli, Cyclic, Full, Recorded, WithoutReplacement
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace

FEDAVG = {"kind": "fedavg", "local_step_size": 0.01, "local_steps": 5}
LOG = {"round": [0, 1, 2, 3], "gradient_norm_squared": [4.0, 2.0, 1.0, 0.5], "train_loss": [3.0, 2.0, 1.5, 1.25]}
LOSSES = {name: LOG[name] for name in ("round", "train_loss")}
THEOREM, GAP = "arbitrary-participation/theorem-3.1", "fedmrn/theorem-1"
GIVEN = {"L": 1, "F": 4, "sigma": 0, "nu": 1, "beta": 0, "delta": 0}

QUADRATIC = Quadratic(np.array([[1.0], [1.5], [2.0]]) * np.ones(2), np.array([[2.0, 0], [-2, 4], [0, -4]]), 0.0,
                      np.array([3.0, -2]))  # fmt: skip
FALLING = AnalyzedFedMRN(0.125, 2, "sparsifier", keep=1.0, step_shift=15.0)


# --- participation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("participation", "more"),
    [
        ("full", {"clients": 4}),
        (Full(4), {}),
        (Full(4), {"clients": 4}),
        (np.full((3, 4), 0.25), {}),
        ([[0.25] * 4] * 3, {}),
        ([[1] * 4] * 3, {"normalize": True}),
        (Recorded([[1] * 4] * 3), {"normalize": True}),
        (Recorded([[0.25] * 4] * 3), {"clients": 4}),
    ],
)
def test_full_participation_is_said_in_many_ways(participation, more):
    trace = read_log(LOG, FEDAVG, participation, **more)
    assert (trace.participation(0) == 0.25).all() and trace.spec["rounds"] == 3
    found = confront(trace, THEOREM, given=GIVEN)
    assert found.measured.tolist() == [4.0, 2.0, 1.0] and found.constants["rho"].value == 0.5
    assert (
        found.evaluation.assumptions.keys()
        == confront(trace, THEOREM, given=GIVEN, participation=Full(4)).evaluation.assumptions.keys()
    )


def test_a_process_that_draws_nothing_is_a_record():
    cyclic = Cyclic(4, groups=2)
    np.testing.assert_array_equal(
        read_log(LOG, FEDAVG, cyclic).participation(0), cyclic.matrix(3, np.random.default_rng())
    )


@pytest.mark.parametrize(("participation", "more", "message"), [
    (None, {}, "the log lacks weights, who took part in each round: give participation='full' and clients=N if every"),
    ("full", {}, "participation='full' does not hold the number of clients: give clients=N, e.g. clients=10"),
    ("full", {"clients": 0}, "clients = 0 must be an integer >= 1"),
    ("full", {"clients": 10**9}, "participation of clients = 1000000000 in 3 rounds needs about"),
    (Full(4), {"clients": 5}, "clients = 5, and the participation has 4; leave clients= out"),
    ([[0.25] * 4] * 3, {"clients": 5}, "clients = 5, and the participation has 4; leave clients= out"),
    (Bernoulli(4, 0.5), {"clients": 5}, "clients = 5, and the participation has 4; leave clients= out"),
    (4, {}, r"participation= is 'full', a process, a file or weights \(T, N\): weights has shape \(\)"),
    ([1, 0], {}, r"participation= is 'full', a process, a file or weights \(T, N\): weights has shape \(2,\)"),
    ("all", {}, "cannot read the record of participation all: No such file"),
    ([[1, 1], [1, 0], [0, 1]], {}, r"0 and 1, and weights sum to 1 \(round 0 sums to 2\): give normalize=True"),
    (Recorded([[1, 0], [1, 1], [0, 1]]), {}, r"\(round 1 sums to 2\): give normalize=True"),
    ([[1, 1], [1, 0], [0, 1]], {"normalize": "yes"}, "normalize = 'yes' must be true or false"),
])  # fmt: skip
def test_participation_that_is_not_one_is_one_line(participation, more, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        read_log(LOG, FEDAVG, participation, **more)
    assert "\n" not in str(refused.value)


def test_a_process_stands_for_a_record_that_nobody_kept(tmp_path):
    process = WithoutReplacement(4, 2)
    drawn = process.matrix(3, np.random.default_rng(1))
    given = GIVEN | {"rho": 0.75}
    recorded = confront(read_log(LOG, FEDAVG, drawn), THEOREM, given=given, participation=process)
    declared = read_log(LOG, FEDAVG, process)
    declared = Trace.load(declared.save(tmp_path / "trace.npz"))
    for more in ({}, {"participation": process}):
        found = confront(declared, THEOREM, given=given, **more)
        assert found.measured.tolist() == recorded.measured.tolist() and found.result.key == recorded.result.key
        np.testing.assert_array_equal(found.bound, recorded.bound)
        assert "nobody recorded who took part: participation is taken to be without-replacement" in found.notes
    assert str(declared).startswith("log of fedavg: 4 clients, 1 seed, 3 rounds, 4 recorded")
    with pytest.raises(FedboundsError, match="participation= is not that of the log; leave it out"):
        confront(declared, THEOREM, given=given, participation=WithoutReplacement(4, 3))
    with pytest.raises(FedboundsError, match="participation= has 5 clients, the log has 4"):
        confront(declared, THEOREM, given=given, participation=WithoutReplacement(5, 2))
    products = np.ones((4, 4, 4))
    whole = read_log(LOSSES | {"gradient_products": products}, FEDAVG, process)
    with pytest.raises(FedboundsError, match=r"needs beta \(.*delta \("):  # weights along the run are not known
        confront(whole, THEOREM, given={name: value for name, value in GIVEN.items() if name not in ("beta", "delta")})
    gap = read_log(LOSSES, FALLING, process, f_min=1)
    found = confront(gap, GAP, given={"L": 2, "sigma": 0, "G": 12, "Gamma": 11, "Delta1": 13})
    assert found.constants["K"].value == 2 and found.measured.tolist() == [1, 0.5, 0.25]


def test_a_record_of_zeros_and_ones_is_normalized_or_kept_as_it_is_asked(tmp_path):
    present = [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    (tmp_path / "who.csv").write_text("a,b,c\n1,1,0\n1,0,0\n0,1,1\n")
    for given in (present, tmp_path / "who.csv", Recorded(present)):
        trace = read_log(LOG, FEDAVG, given, normalize=True)
        assert trace.participation(0).tolist() == [[0.5, 0.5, 0], [1, 0, 0], [0, 0.5, 0.5]]
        assert confront(trace, THEOREM, given=GIVEN).measured.tolist() == [4.0, 2.0, 1.0]
        assert (read_log(LOG, FEDAVG, given, normalize=False).participation(0) == present).all()
    whole = LOG | {"weights": present}
    assert read_log(whole, FEDAVG, normalize=True).participation(0)[0].tolist() == [0.5, 0.5, 0]
    with pytest.raises(FedboundsError, match="give normalize=True"):
        read_log(whole, FEDAVG)
    changed = read_log(LOG, FEDAVG, [[1, 0], [0, 1], [0, 0]])  # sums of 1, and nobody
    assert changed.empty_rounds.tolist() == [1] and changed.spec["rounds"] == 3
    assert "gradient_norm_squared changes in them: they are kept" in changed.spec["log"]["notes"][0]


# --- logs of losses alone -------------------------------------------------------------------------------------------


def test_a_log_of_losses_meets_a_bound_of_the_function_gap_as_a_simulation_does():
    run = simulate(FALLING, QUADRATIC, Full(3), 30)
    own = confront(run, GAP, problem=QUADRATIC, participation=Full(3))
    log = {"round": np.arange(31), "train_loss": run.objective_gap[0] + 0.75}
    trace = read_log(log, FALLING, "full", clients=3, f_min=0.75)
    names = ("L", "sigma", "G", "Gamma", "Delta1")
    given = {name: float(own.constants[name].value) for name in names}
    found = confront(trace, GAP, given=given)
    np.testing.assert_allclose(found.measured, own.measured, atol=1e-12)
    np.testing.assert_allclose(found.bound, own.bound, rtol=1e-12)
    assert found.form.name == own.form.name and found.valid.all() and not found.guarantee
    with pytest.raises(FedboundsError, match=r"needs Delta1 \(.*G \(.*Gamma \(.*L \(.*sigma \("):
        confront(trace, GAP)
    assert found.constants["mu"].value == own.constants["mu"].value == 1
    with pytest.raises(FedboundsError, match="mu sets how the run's steps fall"):
        confront(trace, GAP, given=given | {"mu": 0.5})


def test_a_theorem_of_the_user_may_bound_the_function_gap():
    gap = Measure("last", "rounds", "function gap f - f*", r"f(x_T)-f^*", OBJECTIVE, given="participation")
    form = replace(THEOREM_OF_EXAMPLE.form("explicit"), terms=(Term("initial gap", NOTATION.F),), prescribes={})
    theorem = replace(
        THEOREM_OF_EXAMPLE, key="draft/theorem-2", measure=replace(gap, given="participation"), forms=(form,)
    )
    trace = read_log(LOSSES, FEDAVG, "full", clients=3, f_min=1)
    found = confront(trace, theorem, given={"L": 1, "F": 2, "eta": 0.1})
    assert found.measured.tolist() == [1, 0.5, 0.25] and found.bound.tolist() == [2, 2, 2] and not found.guarantee
    with pytest.raises(FedboundsError, match=r"bounds: last over rounds of function gap f - f\*; give read_log f_min"):
        confront(read_log(LOSSES, FEDAVG, "full", clients=3), theorem, given={"L": 1, "F": 2, "eta": 0.1})


def test_masks_of_a_log_need_what_the_log_does_not_hold():
    signs = AnalyzedFedMRN(0.125, 2, "norm-scaled-sign", step_shift=15.0)
    given = {"L": 2, "sigma": 0, "G": 12, "Gamma": 11, "Delta1": 13}
    trace = read_log(LOSSES, signs, "full", clients=3, f_min=0)
    with pytest.raises(FedboundsError, match=r"needs q \("):
        confront(trace, GAP, given=given)
    assert confront(trace, GAP, given=given | {"q": 1}).constants["q"].source == "given"
    models = {**LOSSES, "model": np.arange(8.0).reshape(4, 2)}
    assert confront(read_log(models, signs, "full", clients=3, f_min=0), GAP, given=given).constants["q"].value == 1


def test_a_log_without_what_a_result_bounds_gets_one_line_of_what_to_record():
    trace, told = read_log(LOSSES, FEDAVG, "full", clients=3), {}
    for result in results():
        with pytest.raises(FedboundsError) as refused:
            confront(trace, result)
        told[result.key] = str(refused.value)
        assert "\n" not in told[result.key] and len(told[result.key]) < 320
    assert told[THEOREM] == (
        "the log has train_loss, and the result bounds: minimum over rounds of squared gradient norm of f; record it "
        "in each round with Recorder, or give the log a column gradient_norm_squared or gradients"
    )
    assert "no result of Li et al. 2024 covers this run: fedavg" in told[GAP]
    analyzed = {"kind": "fedmrn-analysis", "local_step_size": 0.1, "local_steps": 1, "amplitude": 0.1}
    with pytest.raises(FedboundsError) as refused:
        confront(read_log(LOSSES, analyzed, "full", clients=3), GAP)
    assert str(refused.value) == (
        "the log has train_loss, and the result bounds: last over iterations of function gap F - F*; give read_log "
        "f_min, the least value of f, and a column train_loss"
    )


@pytest.mark.parametrize(("log", "f_min", "message"), [
    (LOSSES, 1.5, "f_min = 1.5 is above train_loss = 1.25; give the least value of f"),
    (LOSSES, float("nan"), "f_min = nan must be a number"),
    ({"round": [0, 1], "loss": [1, 2]}, 0, "f_min= needs train_loss, which the log lacks: name its column, columns="),
])  # fmt: skip
def test_a_least_value_that_is_none_is_one_line(log, f_min, message):
    with pytest.raises(FedboundsError, match=message):
        read_log(log, FEDAVG, "full", clients=2, f_min=f_min)


# --- rounds and columns ---------------------------------------------------------------------------------------------


def test_first_round_is_the_round_whose_model_is_taken_for_the_start():
    log = {"round": [1, 2, 3, 4], "train_loss": [3.0, 2.0, 1.5, 1.25]}
    with pytest.raises(FedboundsError, match="give first_round=1 to begin with the model of round 1"):
        read_log(log, FEDAVG, "full", clients=2)
    trace = read_log(log, FEDAVG, "full", clients=2, first_round=1)
    assert trace.round.tolist() == [0, 1, 2, 3] and trace.spec["rounds"] == 3
    later = read_log(log, FEDAVG, [[1, 0], [0, 1]], first_round=2)
    assert later.train_loss.tolist() == [[2.0, 1.5, 1.25]] and later.round.tolist() == [0, 1, 2]
    with pytest.raises(FedboundsError, match="first_round = -1 must be an integer >= 0"):
        read_log(log, FEDAVG, "full", clients=2, first_round=-1)
    with pytest.raises(FedboundsError, match="the log has no round from first_round = 5 on"):
        read_log(log, FEDAVG, "full", clients=2, first_round=5)


def test_arrays_have_names_of_the_user_too(tmp_path):
    held = {"Step": [0, 1, 2, 3], "loss": [3, 2, 1, 1], "weights": [[1, 0]] * 3, "other": np.zeros(7)}
    columns = {"round": "Step", "train_loss": "loss"}
    np.savez(tmp_path / "log.npz", **{name: np.array(value) for name, value in held.items()})
    for log in (held, tmp_path / "log.npz"):
        trace = read_log(log, FEDAVG, columns=columns)
        assert trace.train_loss.tolist() == [[3, 2, 1, 1]] and "other" not in trace.metrics
        with pytest.raises(FedboundsError, match="unknown column 'los'; did you mean loss"):
            read_log(log, FEDAVG, columns={"round": "Step", "train_loss": "los"})
        with pytest.raises(FedboundsError, match=r"\['loss'\] must be the name of one array"):
            read_log(log, FEDAVG, columns={"round": "Step", "train_loss": ["loss"]})


@pytest.mark.parametrize("columns", ["Step", {}, {"round": 3}, {1: "Step"}, {"round": []}, {"round": [1]}, ["Step"]])
def test_columns_that_name_none_are_one_line(columns):
    with pytest.raises(FedboundsError, match=r"must name columns, e\.g\. {'round': 'Step', 'train_loss': 'Loss'}"):
        read_log(LOG, FEDAVG, "full", clients=2, columns=columns)


@pytest.mark.parametrize(("names", "seeds"), [
    (["7", "3"], [3, 7]), (["2.0", "1"], [1, 2]), (["2", "b"], [0, 1]), (["1", "1.0"], [0, 1]), (["", "b"], [0, 1]),
])  # fmt: skip
def test_runs_with_numbers_are_seeds_of_these_numbers(names, seeds, tmp_path):
    lines = [f"{t},{name},{t + 1 + i}" for i, name in enumerate(names) for t in range(3)]
    (tmp_path / "log.csv").write_text("\n".join(["round,seed,train_loss", *lines]))
    assert read_log(tmp_path / "log.csv", FEDAVG, "full", clients=2).seed.tolist() == seeds


# --- the source is never overwritten --------------------------------------------------------------------------------


@pytest.fixture
def logged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("round,gradient_norm_squared\n0,4\n1,2\n2,1\n")
    (tmp_path / "who.csv").write_text("1,0\n0.5,0.5\n")
    return read_log("log.csv", FEDAVG, "who.csv")


def test_no_figure_or_trace_is_written_over_a_log(logged, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    picture = fb.overlay(confront(logged, THEOREM, given=GIVEN))
    for write, name in ((picture.save, "log.png"), (picture.save, "who.svg"), (logged.save, "log.csv")):
        with pytest.raises(
            FedboundsError, match=r"cannot write '(log|who).csv': a log was read from this file; choose"
        ):
            write(name, force=True)
    (tmp_path / "link.csv").symlink_to("log.csv")
    with pytest.raises(FedboundsError, match=r"cannot write 'link.csv': a log was read from this file"):
        picture.save("link.png", force=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before
    assert len(picture.save("figure.png")) == 3
    assert logged.spec["log"]["files"] == ["log.csv", "who.csv"]


def test_a_trace_that_was_saved_still_knows_its_log(logged, tmp_path, monkeypatch):
    saved = logged.save("trace.npz")
    monkeypatch.setattr("fedbounds.bounds.inputs.user_files._PROTECTED", set())  # another process
    again = Trace.load(saved)
    assert again.spec == logged.spec
    with pytest.raises(FedboundsError, match=r"cannot write 'log.csv': a log was read from this file"):
        fb.overlay(confront(again, THEOREM, given=GIVEN)).save("log.png", force=True)


# --- its summary ----------------------------------------------------------------------------------------------------


def test_a_trace_prints_as_a_summary(logged):
    text = str(logged)
    assert text.splitlines()[:3] == [
        "log of fedavg: 2 clients, 1 seed, 2 rounds, 3 recorded",
        "  recorded at round 0 -> 2:",
        "  gradient_norm_squared  4 -> 1",
    ]
    assert "read from " in text and len(text.splitlines()) == 5
    assert repr(logged) == "<Trace: log of fedavg: 2 clients, 1 seed, 2 rounds, 3 recorded>"
    run = simulate(fb.algorithms.FedAvg(0.01, 2), QUADRATIC, Bernoulli(3, 0.5), 6, seeds=(3, 4), record_every=3)
    assert str(run).startswith("simulation of fedavg: 3 clients, 2 seeds, 6 rounds, 3 recorded\n")
    assert f"objective_gap          {np.mean(run.objective_gap[:, 0]):.6g} -> " in str(run)
    many = {f"metric {i}": np.zeros((1, 2)) for i in range(40)}
    wide = Trace({"round": np.arange(2), **many}, {"round": ("round",), **dict.fromkeys(many, ("seed", "round"))}, {},
                 "batched", ("diverged",))  # fmt: skip
    assert str(wide).startswith("simulation: 1 seed; 1 seeds diverged") and len(str(wide).splitlines()) < 24
    assert str(Trace({}, {}, {}, "batched", ())) == "simulation: 0 seeds"
