"""The search for violating runs: published theorems stand, and false variants of them fall with a counterexample."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.theorem_file import TheoremFile, build_theorem
from fedbounds.empirical.algorithms.spec import algorithms
from fedbounds.empirical.falsification import theorem_search
from fedbounds.empirical.falsification.theorem_runs import (
    FEDAVG_OF_ALL,
    Trial,
    _local_models,
    aggregate_values,
    exact_constants,
    left_hand_side,
    make_algorithm,
    settle,
)
from fedbounds.empirical.falsification.theorem_search import search_violation
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems.nonconvex import random_cosine_quadratic
from fedbounds.empirical.simulation.simulate import simulate

GRADIENT = "squared gradient norm of f"
GAP = "function gap"
DISTANCE = "squared distance to the minimizer"
EXACT = "smooth, full participation, noise=none"


def made(name: str, measure: str, setting: str, terms: dict[str, str], *conditions: str, **more: object) -> dict:
    return {
        "key": f"draft/{name}", "measure": measure, "setting": setting, "algorithm": "fedavg", "terms": terms,
        "conditions": [*conditions], **more,
    }  # fmt: skip


THEOREMS = {
    "descent": made(
        "descent", f"minimum over rounds of {GRADIENT}", f"nonconvex, {EXACT}, one local step",
        {"initial gap": "2*F/(gamma*T)"}, "gamma <= 1/L",
    ),
    "convex-descent": made(
        "convex-descent", f"last over rounds of {GAP}", f"convex, {EXACT}, one local step",
        {"initial distance": "D2/(2*gamma*(2*T + 1))"}, "gamma <= 1/L",
    ),
    "linear-descent": made(
        "linear-descent", f"last over rounds of {DISTANCE}", f"strongly convex, {EXACT}, one local step",
        {"initial distance": "(1 - gamma*mu)**(2*T)*D2"}, "gamma <= 1/L",
    ),
    "sgd": made(
        "sgd", f"average over rounds of {GRADIENT}",
        "nonconvex, smooth, bounded variance, full participation, one local step",
        {"initial gap": "2*F/(gamma*T)", "gradient noise": "gamma*L*sigma**2/N"}, "gamma <= 1/L",
    ),
    "linear-sgd": made(
        "linear-sgd", f"last over rounds of {DISTANCE}",
        "strongly convex, smooth, bounded variance, full participation, one local step",
        {"initial distance": "(1 - gamma*mu)**T*D2", "gradient noise": "gamma*sigma**2/(N*mu)"}, "gamma <= 1/L",
    ),
    "local-sgd": made(
        "local-sgd", f"last over iterations of {GAP}", "convex, smooth, full participation, noise=none, local steps",
        {
            "initial distance": "4*D2/(gamma*K)",
            "optimum noise": "20*gamma*sigmastar**2/N",
            "client drift": "16*gamma**2*L*(I - 1)**2*sigmastar**2",
        }, "gamma <= 1/(4*L)", "gamma*L*(I - 1) <= 1/8",
    ),
    "fedavg": made(
        "fedavg", f"minimum over rounds of {GRADIENT}",
        "nonconvex, smooth, bounded variance, uniform sampling, bounded heterogeneity",
        {
            "initial gap": "c*F/(e*T)",
            "client drift": "c*5/8*(2*gamma**2*L**2*(I - 1)*sigma**2 + 8*gamma**2*L**2*I*(I - 1)*d**2)",
            "gradient noise": "c*e*L*sigma**2/(S*I)",
            "participation": "c*e*L*3*(N - S)/(max(N - 1, 1)*S)*d**2",
        }, "gamma <= 1/(8*L*I)", "eta*gamma <= 1/(24*I*L)",
        algorithm="generalized-fedavg", where={"e": "gamma*eta*I", "c": "64/19"},
    ),
    "fedvarp": made(
        "fedvarp", f"average over rounds of {GRADIENT}",
        "nonconvex, smooth, full participation, bounded heterogeneity, noise=none",
        {
            "initial gap": "c*F/(e*T)",
            "client drift": "c*5*gamma**2*L**2*I*(I - 1)*d**2",
        }, "gamma <= 1/(8*L*I)", "eta*gamma <= 1/(24*I*L)",
        algorithm="fedvarp", where={"e": "gamma*eta*I", "c": "64/19"},
    ),
    "average-all": made(
        "average-all", f"minimum over rounds of {GRADIENT}",
        "nonconvex, smooth, full participation, bounded heterogeneity, noise=none",
        {"initial gap": "8*F/(gamma*eta*I*T)", "client drift": "40*gamma**2*L**2*I*(I - 1)*d**2"},
        "gamma <= 1/(12*L*I)", "eta*gamma <= 1/(2*I*L)", algorithm="average-all",
    ),
    "bounded-dissimilarity": made(
        "bounded-dissimilarity", f"average over rounds of {GRADIENT}",
        "nonconvex, smooth, bounded dissimilarity, bounded variance, full participation, local steps",
        {
            "initial gap": "4*F/(gamma*I*T)",
            "gradient noise": "4*gamma*L*sigma**2/N",
            "client drift": "20*gamma**2*L**2*(I**2*zeta**2 + I*sigma**2)",
        }, "gamma <= 1/(10*L*I)",
    ),
    "gradient-dissimilarity": made(
        "gradient-dissimilarity", f"average over rounds of {GRADIENT}",
        "nonconvex, smooth, gradient dissimilarity, bounded variance, full participation, local steps",
        {
            "initial gap": "4*F/(gamma*I*T)",
            "gradient noise": "4*gamma*L*sigma**2/N",
            "client drift": "20*gamma**2*L**2*(I**2*H**2 + I*sigma**2)",
        }, "gamma <= 1/(10*L*I*B)",
        symbols={
            "B": {"concept": "relative_dissimilarity", "domain": "[1, inf)", "dimension": "1"},
            "H": {"concept": "heterogeneity_offset", "dimension": "f/x"},
        },
    ),
    "mean-iterate": made(
        "mean-iterate", f"last over rounds of {GAP}", f"convex, {EXACT}, one local step",
        {"initial distance": "D2/(2*gamma*T)"}, "gamma <= 1/L",
    ),
    "ef21": made(
        "ef21", f"average over rounds of {GRADIENT}", f"nonconvex, {EXACT}",
        {"initial gap": "2*F/(gamma*T)", "initial compression error": "G0/(A*T)"}, "gamma*(L + Lp*sqrt(B/A)) <= 1",
        algorithm="ef21",
        symbols={
            "A": {"concept": "contraction", "meaning": "contraction", "dimension": "1", "domain": "(0, 1]"},
            "B": {"concept": "expansion", "meaning": "expansion", "dimension": "1"},
            "Lp": {"concept": "mean_smoothness", "meaning": "mean smoothness", "dimension": "f/x^2"},
            "G0": {"concept": "initial_gradient_error", "meaning": "initial error", "dimension": "f^2/x^2"},
        },
    ),
}  # fmt: skip
MEAN_ITERATES = ("local-sgd", "mean-iterate")  # theorems about the mean of the iterates
FALSE = [
    ("descent", "2*F", "F"),  # a constant halved
    ("descent", "gamma <= 1/L", "gamma <= 3/L"),  # a condition weakened
    ("convex-descent", "(2*T + 1)", "(2*T + 1)**2"),  # a wrong power
    ("linear-descent", "(1 - gamma*mu)**(2*T)", "(1 - 2*gamma*mu)**T"),  # a square that is not multiplied out
    ("sgd", "gamma*L*sigma**2/N", "gamma*L*sigma**2/(2*N)"),  # a constant halved
    ("sgd", "gamma*L*sigma**2/N", "gamma*L*sigma**2/N**2"),  # too much from averaging
    ("linear-sgd", "gamma*sigma**2/(N*mu)", "gamma*sigma**2/(4*N*mu)"),  # a constant
    ("sgd", "gamma*L*sigma**2/N", "0"),  # no noise
    ("linear-sgd", "gamma*sigma**2/(N*mu)", "0"),  # no noise
    ("local-sgd", "16*gamma**2*L*(I - 1)**2*sigmastar**2", "0"),  # no drift
    ("local-sgd", "gamma*K)", "gamma*K**2*L*gamma)"),  # a wrong power
    ("local-sgd", "gamma <= 1/(4*L)", "gamma <= 4/L"),  # a condition on the step size weakened
    ("fedavg", "c*F/(e*T)", "c*F/(e*T**2)"),  # a wrong power
    ("fedavg", "(N - S)", "0*(N - S)"),  # no participation error
    ("fedavg", "8*gamma**2*L**2*I*(I - 1)*d**2", "0"),  # no drift by heterogeneity
    ("fedavg", "2*gamma**2*L**2*(I - 1)*sigma**2", "0"),  # no drift by noise
    ("fedavg", "c*e*L*sigma**2/(S*I)", "0"),  # no noise
    ("fedavg", "c*e*L*sigma**2/(S*I)", "c*e*L*sigma**2/(S**2*I)"),  # too much from averaging
    ("fedvarp", "c*5*gamma**2*L**2*I*(I - 1)*d**2", "0"),  # no drift
    ("average-all", "40*gamma**2*L**2*I*(I - 1)*d**2", "0"),  # no drift
    ("bounded-dissimilarity", "I**2*zeta**2", "zeta**2"),  # a wrong power, of which only many local steps show it
    ("bounded-dissimilarity", "I**2*zeta**2", "I*zeta**2"),  # a wrong power
    ("bounded-dissimilarity", "4*F/(gamma*I*T)", "4*F/(gamma*I**2*T)"),  # a wrong power
    ("bounded-dissimilarity", "4*gamma*L*sigma**2/N", "4*gamma*L*sigma**2/(I*N)"),  # a wrong power
    ("fedavg", "c*e*L*3*(N - S)", "c*e/I*L*3*(N - S)"),  # a wrong power
    ("gradient-dissimilarity", "I**2*H**2", "H**2"),  # a wrong power
    ("gradient-dissimilarity", "I**2*H**2", "I*H**2"),  # a wrong power
    ("local-sgd", "(I - 1)**2*sigmastar**2", "(I - 1)*sigmastar**2"),  # a wrong power
    ("fedvarp", "c*F/(e*T)", "c*F/(e*T**2)"),  # a wrong power
    ("average-all", "8*F/(gamma*eta*I*T)", "F/(8*gamma*eta*I*T)"),  # constants are lost
    ("mean-iterate", "D2/(2*gamma*T)", "D2/(8*gamma*T)"),  # a constant
    ("ef21", "gamma*(L + Lp*sqrt(B/A)) <= 1", "gamma*L <= 1"),  # the condition of the compressor dropped
    ("ef21", "G0/(A*T)", "G0/(A*T**3)"),  # a wrong power
    ("fedavg", "*S)*d**2", "*S**2)*d**2"),  # a wrong power
    ("fedavg", "sigma**2/(S*I)", "sigma**2/(N*I)"),  # all clients for those that participate
    ("fedavg", "gamma <= 1/(8*L*I)", "gamma <= 1/L"),  # a condition that does not depend on the local steps
    ("fedavg", "minimum over rounds", "last over rounds"),  # the last gradient of a run that leaves a maximum slowly
    ("fedavg", "uniform sampling", "sampling with replacement"),  # whose error does not vanish for S = N
    ("descent", "minimum over rounds", "last over rounds"),  # the last gradient of a run that leaves a maximum
    ("sgd", "average over rounds", "last over rounds"),  # the same where noise is allowed
    ("descent", "2*F/(gamma*T)", "100*F/(gamma*T**2)"),  # a wrong power behind a large constant
    ("convex-descent", "D2/(2*gamma*(2*T + 1))", "100*D2/(gamma*T**2)"),  # the same
]


def statement(name: str, old: str = "", new: str = "") -> TheoremFile:
    """A theorem, or one with an edit."""

    def edited(value):
        if isinstance(value, str):
            return value.replace(old, new) if old else value
        if isinstance(value, dict):
            return {key: edited(inner) for key, inner in value.items()}
        return [edited(inner) for inner in value]

    theorem = build_theorem(edited(THEOREMS[name]), "file.toml", " ")
    if name in MEAN_ITERATES:
        measure = replace(theorem.result.measure, aggregate="average iterate")
        theorem = replace(theorem, result=replace(theorem.result, measure=measure))
    return theorem


def search(name: str, old: str = "", new: str = "", seed: int = 0):
    theorem = statement(name, old, new)
    return search_violation(theorem, theorem.result.form(), seed)


@pytest.fixture(autouse=True)
def _short_search(monkeypatch):
    monkeypatch.setattr(theorem_search, "TRIALS", 300)
    monkeypatch.setattr(theorem_search, "CLIMB", 200)
    monkeypatch.setattr(theorem_search, "ENOUGH", 1.001)


@pytest.mark.parametrize("name", THEOREMS)
def test_a_true_theorem_is_not_violated(name, monkeypatch):
    """In half of the runs, after which all but one of the false variants below have fallen."""
    monkeypatch.setattr(theorem_search, "TRIALS", 75)
    monkeypatch.setattr(theorem_search, "CLIMB", 75)
    found = search(name)
    assert found.level == "ok", found
    assert float(found.text.rpartition(" ")[2]) > 1e-4  # the runs are not all far below the bound


@pytest.mark.parametrize("name", ["linear-descent", "linear-sgd"])
def test_rounding_far_below_the_start_is_no_violation(name):
    """At these seeds tight linear rates come to values of which only rounding errors are left."""
    assert search(name, seed=1).level == "ok"


@pytest.mark.parametrize(("name", "old", "new"), FALSE)
def test_a_false_variant_falls_with_a_counterexample(name, old, new):
    assert old in str(THEOREMS[name])
    found = search(name, old, new)
    assert found.level == "error" and found.at, found
    result = statement(name, old, new).result
    form = result.form()
    constants = {symbol: found.at[symbol] for symbol in form.needs - form.prescribes.keys()}
    assert evaluate(result, constants, form.name, strict=False).valid  # constants and step sizes are all there
    assert not {*theorem_search.SHARES} & found.at.keys()
    crowd = "(I - 1)*sigma**2" in old  # the mean of the noise must be nothing where its drift is measured
    assert (constants.get("N", 1) > theorem_search.BUILT) == ("clients or fewer" in found.text) == crowd


@pytest.mark.parametrize(("participation", "algorithm", "level", "said"), [
    ("unknown rates", "average-participating", "error", "all clients or some that never participate"),
    ("arbitrary participation", "generalized-fedavg", "error", "or some that never participate"),
    ("unknown rates", "fedau", "warning", "all clients, so that partial participation"),
    ("cyclic participation", "generalized-fedavg", "warning", "all clients, so that partial participation"),
    ("full participation", "generalized-fedavg", "ok", "all clients)"),
])  # fmt: skip
def test_an_average_of_participants_is_biased_where_rates_are_unequal(
    participation, algorithm, level, said, monkeypatch
):
    """A bound without a bias holds where all clients participate equally often, and FedAU weighs them so."""
    monkeypatch.setattr(theorem_search, "TRIALS", 100)
    monkeypatch.setattr(theorem_search, "CLIMB", 50)
    setting = f"nonconvex, smooth, {participation}, bounded heterogeneity, noise=none, local steps"
    document = THEOREMS["average-all"] | {"setting": setting, "algorithm": algorithm}
    theorem = build_theorem(document, "file.toml", " ")
    found = search_violation(theorem, theorem.result.form())
    assert found.level == level and said in found.text, found
    biased = document["terms"] | {"bias": "8*d**2"}
    theorem = build_theorem(document | {"terms": biased}, "file.toml", " ")
    assert search_violation(theorem, theorem.result.form()).level != "error"


@pytest.mark.parametrize("kind", sorted(algorithms()))
def test_every_algorithm_is_searched_or_it_is_said_why_not(kind, monkeypatch):
    monkeypatch.setattr(theorem_search, "TRIALS", 6)
    monkeypatch.setattr(theorem_search, "CLIMB", 2)
    document = made(
        "any",
        f"average over rounds of {GRADIENT}",
        f"{EXACT}, iid",
        {"gap": "100*F/(gamma*I*T)"},
        "gamma <= 1/(100*L*I)",
    )
    theorem = build_theorem(document | {"algorithm": kind}, "file.toml", " ")
    found = search_violation(theorem, theorem.result.form())
    if found.level == "warning":
        said = ("which no constant says", "not for quadratics", "draws numbers of its own", "lacks")
        assert any(words in found.text for words in said), found
    else:
        assert found.level == "ok" and "runs on quadratics" in found.text


def test_a_method_is_searched_as_an_algorithm_that_is_one_of_it():
    document = THEOREMS["sgd"] | {"algorithm": "minibatch-sgd"}
    theorem = build_theorem(document, "file.toml", " ")
    found = search_violation(theorem, theorem.result.form())
    assert found.level == "ok" and "as fedavg" in found.text
    halved = build_theorem(document | {"terms": {"initial gap": "2*F/(gamma*T)"}}, "file.toml", " ")
    assert search_violation(halved, halved.result.form()).level == "error"


def trial(**changes) -> Trial:
    """Two clients on the line with the curvatures 1 and 1/2, at the centers 1 and -1, from 3."""
    one = Trial(np.array([[1.0], [0.5]]), np.array([[1.0], [-1.0]]), 0.0, np.array([3.0]), 2, 2, 2, np.ones(3), 1.0)
    return replace(one, **changes)


def test_constants_and_left_hand_sides_are_those_computed_by_hand():
    one = trial()
    known = exact_constants(one, one.problem)
    star = (1 - 0.5) / 1.5
    assert known["initial_squared_distance"] == pytest.approx((3 - star) ** 2)
    assert known["optimum_heterogeneity"] == pytest.approx(abs(star - 1))  # the two gradients are opposite there
    assert known["mean_smoothness"] == pytest.approx(np.sqrt((1 + 0.25) / 2))
    assert known["hessian_heterogeneity"] == pytest.approx(0.25) and known["iterations"] == 4
    # by hand with the step 1/2: 3 -> means of (2, 2), (3/2, 5/4) -> from 11/8 on
    iterates = [3.0, (2 + 2) / 2, (1.5 + 1.25) / 2]
    x = iterates[-1]
    first = [(x + 1) / 2, x - (x + 1) / 4]
    second = [(first[0] + 1) / 2, first[1] - (first[1] + 1) / 4]
    iterates += [sum(first) / 2, sum(second) / 2]
    gaps = [0.375 * (y - star) ** 2 for y in iterates]
    measure = statement("local-sgd").result.measure
    sizes = {"local_step_size": 0.5}
    for aggregate, wanted in (("minimum", min(gaps[:4])), ("average", sum(gaps[:4]) / 4), ("last", gaps[4])):
        assert left_hand_side(replace(measure, aggregate=aggregate), "fedavg", one, sizes) == pytest.approx(wanted)
    mean = 0.375 * (sum(iterates[:4]) / 4 - star) ** 2
    assert left_hand_side(measure, "fedavg", one, sizes) == pytest.approx(mean)
    rounds = replace(measure, aggregate="average", over="rounds")
    assert left_hand_side(rounds, "fedavg", one, sizes) == pytest.approx((gaps[0] + gaps[2]) / 2)
    assert left_hand_side(rounds, "average-all", one, sizes) == pytest.approx((gaps[0] + gaps[2]) / 2)
    start = replace(rounds, of="squared distance to the minimizer", aggregate="last")
    assert left_hand_side(start, "fedavg", one, sizes) == pytest.approx((iterates[4] - star) ** 2)


def test_the_distance_has_the_variance_of_the_noise():
    noisy = trial(curvatures=np.ones((1, 1)), centers=np.zeros((1, 1)), start=np.zeros(1), noise=0.3, participants=1,
                  local_steps=1, rounds=1)  # fmt: skip
    measure = statement("linear-sgd").result.measure
    assert left_hand_side(measure, "fedavg", noisy, {"local_step_size": 0.5}) == pytest.approx(0.25 * 0.09)


def test_the_error_of_top_k_at_the_start():
    vector = trial(curvatures=np.ones((1, 3)), centers=np.zeros((1, 3)), start=np.array([3.0, -1, 2]), participants=1)
    for kept, wanted in ((1, 5.0), (2, 1.0), (3, 0.0)):
        one = replace(vector, kept=kept)
        assert exact_constants(one, one.problem)["initial_gradient_error"] == wanted
        assert exact_constants(one, one.problem)["compressor_contraction"] == pytest.approx(kept / 3)


@pytest.mark.parametrize("kind", FEDAVG_OF_ALL)
def test_a_method_that_is_searched_as_fedavg_is_fedavg_where_all_clients_participate(kind):
    sizes, problem = {"local_step_size": 0.2, "server_multiplier": 1.3}, random_cosine_quadratic(3, 2, noise=0.3)
    runs = [
        simulate(make_algorithm(name, trial(), sizes), problem, Full(3), 5, seeds=(0, 1), record_models=True)
        for name in ("generalized-fedavg", kind)
    ]
    models, others = (run.arrays["model"] for run in runs)
    assert np.abs(models - others).max() < 1e-12 and np.abs(models[0] - models[1]).max() > 1e-3


@pytest.mark.parametrize("multiplier", [1.0, 1.7])
@pytest.mark.parametrize("alike", [True, False])
def test_rounds_at_once_are_those_of_a_loop(multiplier, alike):
    rng = np.random.default_rng(0)
    for step in (0.0, 1e-9, 0.3, 1.9):
        curvatures, centers, start = rng.uniform(0.1, 1, (3, 2)), rng.standard_normal((3, 2)), rng.standard_normal(2)
        if alike:
            curvatures, centers = np.tile(curvatures[:1], (3, 1)), np.tile(centers[:1], (3, 1))
        one = Trial(curvatures, centers, 0.0, start, 4, 30, 3, np.ones(3), 1.0)
        models, within = [start], [start]
        for _ in range(one.rounds):
            local = np.tile(models[-1], (3, 1))
            for _ in range(one.local_steps):
                local = local - step * curvatures * (local - centers)
                within.append(local.mean(0))
            models.append(models[-1] + multiplier * (local.mean(0) - models[-1]))
        found = _local_models(one, step, multiplier, within=False)
        assert np.abs(found - models).max() <= 1e-12 * np.abs(models).max()
        if multiplier == 1:
            found = _local_models(one, step, multiplier, within=True)
            assert np.abs(found - within).max() <= 1e-12 * np.abs(within).max()


@pytest.mark.parametrize(("participants", "replacement"), [(1, False), (2, False), (1, True), (2, True)])
def test_a_stationary_run_has_the_same_value_after_every_round(participants, replacement):
    one = trial(
        curvatures=np.ones((2, 1)),
        noise=0.0 if replacement and participants > 1 else 0.3,
        participants=participants,
        rounds=20,
        stationary=True,
        replacement=replacement,
    )
    sizes = {"local_step_size": 0.25, "server_multiplier": 1.2}
    there = settle(one, sizes)
    assert there is not None
    measure = replace(statement("sgd").result.measure, aggregate="last")
    values = [left_hand_side(measure, "fedavg", replace(there, stationary=False, rounds=T), sizes) for T in (1, 7, 20)]
    assert values == pytest.approx([left_hand_side(measure, "fedavg", there, sizes)] * 3, rel=1e-9)
    assert values[0] > 1e-3 and settle(one, {"local_step_size": 3.0}) is None


def test_the_variance_of_an_average_of_iterates():
    """x_t - 1/6 is 5/8 of what it was, plus noise of variance (1/2 0.3)^2/2; the average is over three."""
    one = trial(noise=0.3, local_steps=1, rounds=3)
    mean = (1 + 5 / 8 + 25 / 64) / 3 * (3 - 1 / 3)
    variance = 0.25 * 0.09 / 2 * ((1 + 5 / 8) ** 2 + 1) / 9
    found = left_hand_side(statement("mean-iterate").result.measure, "fedavg", one, {"local_step_size": 0.5})
    assert found == pytest.approx(0.375 * (mean**2 + variance))


@pytest.mark.parametrize(("steps", "multiplier"), [(2, 1.7), (10**5, 1.0)])
def test_a_run_without_randomness_stays_at_the_fixed_point(steps, multiplier):
    """Clients that end at (1 - step)^I and (1 - step/2)^I times their distance from 1 and -1."""
    sizes = {"local_step_size": 0.6 / steps, "server_multiplier": multiplier}
    one = trial(local_steps=steps, rounds=10**8, stationary=True)
    there = settle(one, sizes)
    assert there is not None
    first, second = 1 - (1 - 0.6 / steps) ** steps, 1 - (1 - 0.3 / steps) ** steps
    assert there.start == pytest.approx((first - second) / (first + second), rel=1e-9)
    measure = replace(statement("sgd").result.measure, aggregate="last")
    stays = left_hand_side(measure, "fedavg", there, sizes)
    assert stays == pytest.approx((0.75 * (there.start[0] - 1 / 3)) ** 2, rel=1e-9) and stays > 1e-6
    moved = replace(there, stationary=False, rounds=20)
    assert left_hand_side(measure, "fedavg", moved, sizes) == pytest.approx(stays, rel=1e-9)
    assert settle(one, sizes | {"server_multiplier": 50.0}) is None


def test_the_searched_local_steps_are_said():
    assert "with noise, 1 to 100000 local steps, all clients" in search("bounded-dissimilarity").text
    assert "without noise, 1 to 1000 local steps, all clients" in search("local-sgd").text  # at every iteration
    assert "without noise, one local step, all clients" in search("descent").text


def test_a_factor_of_dissimilarity_without_an_offset_is_that_of_equal_clients():
    terms = {"initial gap": "4*F/(gamma*T)", "drift": "gamma*L*F*(B**2 - 1)*L"}
    symbols = {"B": {"concept": "relative_dissimilarity", "domain": "[1, inf)", "dimension": "1"}}
    document = made("b", f"minimum over rounds of {GRADIENT}", f"nonconvex, {EXACT}, one local step", terms,
                    "gamma <= 1/(L*B)", symbols=symbols)  # fmt: skip
    theorem = build_theorem(document, "file.toml", " ")
    form = theorem.result.form()
    equal, apart = (trial(curvatures=np.ones((2, 1)), centers=centers, participants=2, local_steps=1)
                    for centers in (np.ones((2, 1)), np.array([[1.0], [-1.0]])))  # fmt: skip
    found = theorem_search._evaluate_trial(theorem.result, form, equal)
    assert found is not None and found[1]["relative_dissimilarity"] == 1
    assert theorem_search._evaluate_trial(theorem.result, form, apart) is None


@pytest.mark.parametrize(
    ("concept", "words"),
    [({}, "B has no concept; give B the one"), ({"concept": "staleness"}, "the concept staleness of B is not one")],
)
def test_it_is_said_what_to_change_where_a_constant_is_not_known(concept, words):
    changed = {"conditions": ["gamma <= 1/(L*B)"], "symbols": {"B": concept | {"dimension": "1"}}}
    theorem = build_theorem(THEOREMS["descent"] | changed, "file.toml", " ")
    found = search_violation(theorem, theorem.result.form())
    assert found.level == "warning" and words in found.text and "hessian_heterogeneity" in found.text


NOT_TESTED = "equal Hessians, so that the drift"


def found_text(monkeypatch, **changes) -> str:
    """What a short search says of a theorem of FedAvg with other entries."""
    monkeypatch.setattr(theorem_search, "TRIALS", 4)
    monkeypatch.setattr(theorem_search, "CLIMB", 0)
    theorem = build_theorem(THEOREMS["fedvarp"] | changes, "file.toml", " ")
    return search_violation(theorem, theorem.result.form()).text


def test_drift_is_tested_or_it_is_said_that_it_is_not(monkeypatch):
    text = found_text(monkeypatch)
    assert (
        "on quadratics and on piecewise quadratics (" in text
        and "as generalized-fedavg" in text
        and NOT_TESTED not in text
    )
    text = found_text(monkeypatch, algorithm="scaffold")
    assert "on quadratics (" in text and NOT_TESTED in text
    setting = "nonconvex, smooth, with replacement, bounded heterogeneity, noise=none"
    assert "piecewise" not in found_text(monkeypatch, setting=setting)
    setting = "nonconvex, smooth, full participation, bounded heterogeneity, noise=none, bounded gradients"
    assert "runs on piecewise quadratics (" in found_text(monkeypatch, setting=setting)
    assert "gradients are bounded" in found_text(monkeypatch, setting=setting, algorithm="scaffold")


def test_an_instance_with_few_clients_is_shown_before_one_that_nobody_can_build(monkeypatch):
    few, many = (Trial(np.ones((n, 1)), np.zeros((n, 1)), 0.0, np.ones(1), 1, 1, n, np.ones(3), 1.0) for n in (1, 3))
    drawn = cycle([many, few, many])
    family = theorem_search.Family("made", lambda _: next(drawn), lambda one, _: next(drawn))
    monkeypatch.setattr(theorem_search, "_families", lambda *_: [family])
    monkeypatch.setattr(theorem_search, "BUILT", 2)
    monkeypatch.setattr(theorem_search, "_ratio", lambda theorem, form, trial: (2.0 + len(trial.centers), trial))
    monkeypatch.setattr(theorem_search, "ENOUGH", 100)
    assert len(search("descent").at["centers"]) == 1  # the ratio of the other one is larger
    monkeypatch.setattr(theorem_search, "BUILT", 0)
    assert len(search("descent").at["centers"]) == 3


@pytest.mark.parametrize(
    ("old", "new", "level"),
    [
        ("", "", "ok"),
        ("5*I*gamma**2*L**2*sigma**2", "0", "error"),  # no drift by noise
        ("15*I**2*gamma**2*L**2*d**2/c", "0", "error"),  # no drift by heterogeneity
        ("F/(c*gamma*eta*I*T)", "F/(8*c*gamma*eta*I*T)", "error"),
    ],
)
def test_a_constant_that_a_theorem_leaves_open_is_searched_at_its_cap(old, new, level, monkeypatch):
    monkeypatch.setattr(theorem_search, "TRIALS", 250)
    terms = {
        "initial gap": "F/(c*gamma*eta*I*T)",
        "gradient noise": "L*gamma*eta*sigma**2/(2*N*c) + 5*I*gamma**2*L**2*sigma**2/(2*c)",
        "client drift": "15*I**2*gamma**2*L**2*d**2/c",
    }
    document = made(
        "open", f"minimum over rounds of {GRADIENT}",
        "nonconvex, smooth, bounded variance, full participation, bounded heterogeneity", {
            name: text.replace(old, new) if old else text for name, text in terms.items()},
        "gamma <= 1/(8*L*I)", "gamma*eta <= 1/(I*L)", "c < 1/2 - 15*I**2*gamma**2*L**2",
        symbols={"c": {"concept": "descent_share", "dimension": "1", "domain": "(0, 1)"}},
        algorithm="generalized-fedavg",
    )  # fmt: skip
    theorem = build_theorem(document, "file.toml", " ")
    found = search_violation(theorem, theorem.result.form())
    assert found.level == level, found
    if level == "error":
        at = found.at
        assert at["c"] < 0.5 - 15 * (at["I"] * at["gamma"] * at["L"]) ** 2


def test_a_form_without_a_constant_local_step_size_is_not_searched():
    theorem = build_theorem(THEOREMS["descent"] | {"terms": {"gap": "2*F*L/T"}, "conditions": []}, "file.toml", " ")
    found = search_violation(theorem, theorem.result.form())
    assert found.level == "warning" and "no constant of the form is a local step size" in found.text


def test_a_dropped_cap_of_one_of_two_step_sizes_is_found_with_the_number_that_the_run_has():
    """Theorem 1 of Jhunjhunwala et al. (2022) without gamma <= 1/(8 L I): every client's steps may diverge."""
    terms = {
        "initial gap": "4*F/(gamma*eta*I*T)",
        "noise": "4*gamma*eta*L*sigma**2/N + 8*gamma**2*L**2*(I - 1)*sigma**2",
        "client drift": "32*gamma**2*L**2*I*(I - 1)*d**2",
    }
    setting = "nonconvex, smooth, bounded variance, full participation, bounded heterogeneity, local steps"
    draft = made("no-cap", f"minimum over rounds of {GRADIENT}", setting, terms, "gamma*eta <= 1/(24*L*I)")
    theorem = build_theorem(draft | {"algorithm": "generalized-fedavg"}, "draft.toml")
    found = search_violation(theorem, theorem.result.form())
    assert found.level == "error" and found.at["gamma"] * found.at["L"] > 2 and found.at["eta"] < 0.1
    assert found.ratio is not None and 1 < found.ratio < np.inf


def test_the_minimum_of_a_run_that_overflows_is_that_of_the_rounds_before():
    values, measure = np.array([2.0, 3.0, np.inf, np.nan, np.nan]), load("ghadimi-2013/sgd").measure
    names = ("minimum", "average", "last")
    found = [aggregate_values(replace(measure, aggregate=name), values) for name in names]
    assert found == [2.0, np.inf, np.inf]
