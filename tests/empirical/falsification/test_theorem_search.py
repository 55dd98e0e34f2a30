"""The search for violating runs: published theorems stand, and false variants of them fall with a counterexample."""

from dataclasses import replace

import pytest

from fedbounds.bounds.theory.theorem_file import TheoremFile, build_theorem
from fedbounds.empirical.algorithms.spec import algorithms
from fedbounds.empirical.falsification import theorem_search
from fedbounds.empirical.falsification.theorem_search import search_violation

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
    ("local-sgd", "gamma*K)", "gamma*K**2*L*gamma)"),  # a wrong power
    ("local-sgd", "gamma <= 1/(4*L)", "gamma <= 4/L"),  # a condition on the step size weakened
    ("fedavg", "c*F/(e*T)", "c*F/(e*T**2)"),  # a wrong power
    ("fedavg", "(N - S)", "0*(N - S)"),  # no participation error
    ("fedvarp", "c*F/(e*T)", "c*F/(e*T**2)"),  # a wrong power
    ("average-all", "8*F/(gamma*eta*I*T)", "F/(8*gamma*eta*I*T)"),  # constants are lost
    ("mean-iterate", "D2/(2*gamma*T)", "D2/(8*gamma*T)"),  # a constant
    ("ef21", "gamma*(L + Lp*sqrt(B/A)) <= 1", "gamma*L <= 1"),  # the condition of the compressor dropped
    ("ef21", "G0/(A*T)", "G0/(A*T**3)"),  # a wrong power
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


def search(name: str, old: str = "", new: str = ""):
    if THEOREMS[name]["algorithm"] not in algorithms():
        pytest.skip(f"{name} is not simulated here")
    theorem = statement(name, old, new)
    return search_violation(theorem, theorem.result.form())


@pytest.fixture(autouse=True)
def _short_search(monkeypatch):
    monkeypatch.setattr(theorem_search, "TRIALS", 150)
    monkeypatch.setattr(theorem_search, "CLIMB", 150)


@pytest.mark.parametrize("name", THEOREMS)
def test_a_true_theorem_is_not_violated(name):
    found = search(name)
    assert found.level == "ok", found
    assert float(found.text.rpartition(" ")[2]) > 1e-4  # the runs are not all far below the bound


@pytest.mark.parametrize(("name", "old", "new"), FALSE)
def test_a_false_variant_falls_with_a_counterexample(name, old, new):
    assert old in str(THEOREMS[name])
    found = search(name, old, new)
    assert found.level == "error" and found.at, found
