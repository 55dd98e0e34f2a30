"""Every invariant holds for every algorithm and engine it applies to, and finds the bugs planted in a plain FedAvg."""

from __future__ import annotations

import dataclasses
import inspect
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.invariants import Case, PlainProblem
from fedbounds.empirical.invariants.strategies import cases, cosine_quadratics, participation_matrices, quadratics
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
from fedbounds.empirical.papers.arbitrary_participation.properties import INVARIANTS
from fedbounds.empirical.problems import Quadratic, toy_example
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference, twins
from fedbounds.empirical.simulation.simulate import simulate
from tests.bounds.participation.reference_constants import (
    cohort_divergence,
    participation_divergence,
    window_divergence,
)
from tests.empirical.invariants.more_strategies import schedules, step_sizes
from tests.empirical.invariants.planted_fedavg import fedavg_by_hand, planted
from tests.empirical.problems.stand_in_problems import Unmeasured

# --- our own algorithms: one table (algorithm x problem x invariant), for each engine -----------------------


class AsTensors(Unmeasured):
    """A plain problem for the engines, one gradient at a time, with the noise that the problem gives."""

    def __init__(self, plain: PlainProblem) -> None:
        self.plain = plain
        self.clients, self.dimension = plain.clients, plain.dimension

    def initial_point(self, rng):
        return torch.from_numpy(self.plain.x0)

    def gradient(self, x, clients):
        pairs = zip(clients.flatten().tolist(), x.reshape(-1, self.dimension).numpy(), strict=True)
        return torch.from_numpy(np.stack([self.plain.gradient(n, own) for n, own in pairs])).view(x.shape)

    def draws(self, rng, client, steps):
        if self.plain.noises is None:
            return None
        _, t, n, _ = rng.bit_generator.state["state"]["counter"].tolist()  # the place of round t and client n
        assert n == client
        return self.plain.noises[t, n, :steps]


def tensors(plain):
    """The problem that every engine can run, if there is one."""
    if plain.quadratic and plain.noises is None:
        return Quadratic(plain.hessians, plain.centers, x0=plain.x0)
    return AsTensors(plain)


def made(kind, numbers):
    """An algorithm from the numbers of a run; those that it has no use for are left out."""
    names = {"local_step_size": "step_size", "server_multiplier": "multiplier"}
    if kind == "fednova":
        numbers = numbers | {"local_steps": numbers["client_steps"].tolist()}
    numbers = numbers | {"cutoff": 2, "rate": None, "weights": 1.5, "probability": 0.5}
    fields = {field.name: names.get(field.name, field.name) for field in dataclasses.fields(algorithms()[kind])}
    return algorithms()[kind](**{name: numbers[own] for name, own in fields.items() if own in numbers})


def simulated(kind, engine):
    def run(problem, weights, *, rounds, seed, **numbers):
        trace = simulate(
            made(kind, numbers), tensors(problem), weights, rounds, seeds=[seed], engine=engine, record_models=True
        )
        return trace.model[0]

    return run


def by_pseudo_code(kind):
    def run(problem, weights, *, rounds, seed, **numbers):
        return run_reference(made(kind, numbers), AsTensors(problem), weights, Streams(seed)).numpy()

    return run


SYMMETRIES = ("relabeled clients", "translation", "rotation", "scaling")
ALWAYS = (*SYMMETRIES, "determinism", "seed without noise", "reference twin")
APPLIES = {
    "generalized-fedavg": tuple(INVARIANTS),
    "fedavg": tuple(INVARIANTS),
    "wait-minibatch": ALWAYS,  # each client counts 1/N, whether it is drawn or not: two copies count twice
    "wait-full": ALWAYS,
    "wait-for-all": ALWAYS,  # and it waits for absent clients for ever
    "frozen-gradient": (*ALWAYS, "absent clients", "split clients"),
    "average-participating": (*ALWAYS, "absent clients"),
    "average-all": ALWAYS,  # from here on the drawn weights play no role, and N divides
    "fixed-weights": ALWAYS,
    "known-participation": ALWAYS,
    "fedau": ALWAYS,
    "fedvarp": ALWAYS,
    "mifa": ALWAYS,
    "fedavgm": (*ALWAYS, "absent clients", "split clients"),
    "fedadam": (*(name for name in ALWAYS if name != "rotation"), "absent clients", "split clients"),
    "fedprox": (*ALWAYS, "one local step", "absent clients", "split clients"),
    "fednova": (*ALWAYS, "equal local steps"),  # absent clients count in the effective local steps
    "scaffold": (*ALWAYS, "one step of all clients", "equal clients"),
    "ef21": (*(name for name in ALWAYS if name != "rotation"), "one coordinate"),
}
SENDING = {
    "fedmrn",
    "compressed",
    "fedsparsify",
    "fedpm",
    "fedmrn-analysis",
}  # masks and float32 keep none but the twin: see their own tests
PROBLEMS = {"quadratics": quadratics(), "rippled bowls": cosine_quadratics()}
ENGINES = {"sequential": PROBLEMS, "batched": PROBLEMS, "closed form": ["quadratics"]}
NOT_PLAIN = {"fedprox", "scaffold", "ef21"}  # local steps without a closed form


def test_the_table_of_invariants_has_every_algorithm():
    minimizing = {kind for kind, algorithm in algorithms().items() if not (algorithm.ascends or algorithm.tiered)}
    assert APPLIES.keys() | SENDING == minimizing  # the others have a table of their own
    assert algorithms().keys() == twins().keys()


def combinations():
    """Every algorithm in every engine and with every problem, and every engine with every problem."""
    for place, kind in enumerate(APPLIES):
        for turn, (engine, problems) in enumerate(ENGINES.items()):
            if engine != "closed form" or kind not in NOT_PLAIN | {"fednova"}:
                own = "auto" if kind == "fednova" and engine == "batched" else engine
                yield kind, own, [*problems][(place + turn) % len(problems)]


@pytest.mark.parametrize(("kind", "engine", "problem"), [*combinations()])
def test_every_algorithm_keeps_its_invariants_in_every_engine(kind, engine, problem):
    given = kind in ("fedavg", "generalized-fedavg")  # the others make weights of their own
    multipliers = {} if kind == "generalized-fedavg" else {"multipliers": (1.0,)}
    report = check_invariants(
        simulated(kind, engine),
        algorithm=kind,
        examples=2,
        twin=generalized_fedavg if given else by_pseudo_code(kind),
        cases=cases(problems=PROBLEMS[problem], unit_sum=not given, **multipliers),
    )
    report.raise_if_broken()
    assert {*APPLIES[kind]} <= {verdict.name for verdict in report.verdicts}
    for verdict in report.verdicts:
        if verdict.name not in APPLIES[kind]:
            assert f"it is no property of {kind}" in verdict.skipped
        elif verdict.skipped is None:
            assert verdict.examples == 2
        else:
            assert verdict.skipped.startswith("no case has")


@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_the_engines_keep_the_invariants_when_every_client_has_its_own_noise(engine):
    check_invariants(simulated("generalized-fedavg", engine), examples=4, cases=cases(noise=True)).raise_if_broken()


def test_the_pseudo_code_of_the_reference_keeps_every_invariant():
    check_invariants(by_pseudo_code("generalized-fedavg"), examples=4).raise_if_broken()


@pytest.mark.parametrize("noise", [False, True])
def test_algorithm_1_in_plain_numpy_keeps_every_invariant(noise):
    check_invariants(generalized_fedavg, examples=30, seed=1, cases=cases(noise=noise)).raise_if_broken()


def test_the_plain_twin_follows_the_golden_trajectory_of_the_toy_example():
    """Appendix B.1 with gamma = 1/36, eta = 6, P = 3: exact moments, printed to ten digits."""
    x = generalized_fedavg(
        PlainProblem.from_problem(toy_example()),
        np.tile(np.eye(3), (10, 1)),
        rounds=30,
        step_size=1 / 36,
        local_steps=1,
        multiplier=6,
        interval=3,
    )
    squared = ((x - [0, 3**-0.5]) ** 2).sum(1)
    assert np.abs(squared[[3, 15, 25, 30]] - [0.8144873790, 0.0064453691, 0.0002409267, 0.0004398725]).max() < 1e-10


@given(st.data())
@settings(max_examples=25)
def test_every_complete_interval_descends_as_the_proof_says_and_the_intervals_sum_to_the_theorem(data):
    """Wang & Ji 2022, (C.16) without noise, and its telescoping sum, Theorem 3.1 with the constants of its proof."""
    problem = data.draw(quadratics(forms=("shared diagonal", "shared")) | cosine_quadratics())
    I, P, T = data.draw(schedules())
    q = data.draw(participation_matrices(T, problem.clients))
    L, v = problem.constants()["smoothness"].value, problem.offsets()
    gamma, eta = data.draw(step_sizes(L, I, P))
    nu, beta, delta = cohort_divergence(q, v), participation_divergence(q, v), window_divergence(q, v, P)
    case = Case(PlainProblem.from_problem(problem), q, gamma, I, eta, P)
    x = torch.from_numpy(case.models(generalized_fedavg)[::P])
    starts = slice(0, T // P)
    drift = 126 * (gamma * L * I * nu) ** 2 + 144 * (gamma * L * I * P * beta) ** 2 + 6 * delta**2
    descent = -problem.objective(x[: T // P + 1]).diff().numpy()
    per_interval = 4 * descent / (gamma * eta * I * P) + drift
    squared = problem.objective_gradient(x[starts]).square().sum(-1).numpy()
    assert (squared <= per_interval + 1e-9).all()
    gap = float(problem.objective_gap(x[:1]))
    constants = dict(L=L, F=gap, I=I, P=P, T=T, gamma=gamma, eta=eta, rho=1, sigma=0, nu=nu, beta=beta, delta=delta)
    bound = evaluate(load("arbitrary-participation/theorem-3.1"), constants, form="explicit")
    assert bound.valid
    assert per_interval.mean() <= float(bound.value) + 1e-9


# --- an outside implementation, and the bugs planted in it ------------------------------------------------


AMPLIFICATION = {"anchor form", "summed displacements", "two sided step sizes", "frozen gradient limit"}
STEP = {"summed displacements", "two sided step sizes", "averaged models", "weights as given"}
LOCAL = {*STEP, "frozen gradient limit"}
OFF_SUM = LOCAL - {"averaged models"}  # what shows only where weights do not sum to one
# what is planted: the code as it should be, the code as it is, and exactly the invariants that it breaks, besides the
# agreement with the reference twin, which all break
MUTANTS = {
    "gradient ascent": ("y - step_size", "y + step_size", LOCAL),
    "a fixed step size": ("y - step_size", "y - 0.1", {*LOCAL, "scaling"}),
    "step sizes shared by the local steps": ("y - step_size", "y - step_size / local_steps", LOCAL),
    "a local step too few": ("range(local_steps)", "range(local_steps - 1)", LOCAL),
    "a local step too many, for which there is no noise": (
        "range(local_steps)",
        "range(local_steps + 1)",
        {*INVARIANTS} - {"reference twin"},
    ),
    "gradients at the received model": ("problem.gradient(n, y)", "problem.gradient(n, x)", STEP),
    "weight decay": ("problem.gradient(n, y)", "problem.gradient(n, y) + 0.01 * y", {*LOCAL, "translation", "scaling"}),
    "gradients clipped by coordinate": (
        "problem.gradient(n, y)",
        "np.clip(problem.gradient(n, y), -0.5, 0.5)",
        {*LOCAL, "rotation", "scaling"},
    ),
    "one noise for all clients": ("noise(t, n, i)", "noise(t, 0, i)", {*LOCAL, "relabeled clients"}),
    "one noise for all local steps": ("noise(t, n, i)", "noise(t, n, 0)", LOCAL),
    "squared weights": ("weights[t, n] *", "weights[t, n] ** 2 *", {*LOCAL, "split clients"}),
    "equal weights": ("weights[t, n] *", "(1 / (weights[t] > 0).sum()) *", {*LOCAL, "split clients"}),
    "the mean over all clients": (
        "weights[t, n] *",
        "(1 / problem.clients) *",
        {*LOCAL, "split clients", "absent clients"},
    ),
    "weights of the round before": ("weights[t, n] *", "weights[t - 1, n] *", {*LOCAL, "anchor form"}),
    "normalized weights": ("weights[t, n] *", "weights[t, n] / max(weights[t].sum(), 1e-9) *", {*OFF_SUM}),
    "averaged models in place of updates": (
        "x, u = x + step",
        "x, u = x * weights[t].sum() + step",
        {*OFF_SUM, "anchor form", "translation"},
    ),
    "the last participant is left out": (
        "np.flatnonzero(weights[t])",
        "np.flatnonzero(weights[t])[:-1]",
        {*LOCAL, "relabeled clients", "split clients"},
    ),
    "participants one after the other": ("y = x\n", "y = x + step\n", {*LOCAL, "relabeled clients", "split clients"}),
    "clients start from the model of the round before": (
        "y = x\n",
        "y = models[-2] if t else x\n",
        {*LOCAL, "anchor form"},
    ),
    "a fourth participant starts from the model of the round before": (
        "y = x\n",
        "y = models[-2] if t and (weights[t, :n] > 0).sum() == 3 else x\n",
        {*LOCAL, "anchor form", "relabeled clients", "split clients"},
    ),
    "the last of more than three participants is left out": (
        "np.flatnonzero(weights[t])",
        "(lambda who: who[:-1] if len(who) > 3 else who)(np.flatnonzero(weights[t]))",
        {*LOCAL, "relabeled clients", "split clients"},
    ),
    "no amplification": ("(multiplier - 1) * u", "0.0 * u", AMPLIFICATION),
    "no amplification of the first interval": (
        "(multiplier - 1) * u",
        "(multiplier - 1) * u * (t >= interval)",
        AMPLIFICATION,
    ),
    "amplification in every round": (
        "(t + 1) % interval == 0",
        "True",
        {*LOCAL, "anchor form"} - {"two sided step sizes"},
    ),
    "amplification a round late": ("(t + 1) % interval == 0", "t and t % interval == 0", {*LOCAL, "anchor form"}),
    "the last rounds amplified too": (
        "(t + 1) % interval == 0",
        "(t + 1) % interval == 0 or t + 1 == rounds",
        {*LOCAL, "anchor form"} - {"two sided step sizes"},
    ),
    "eta in place of eta - 1": (
        "(multiplier - 1)",
        "multiplier",
        {*AMPLIFICATION, "plain multiplier", "averaged models", "weights as given"} - {"frozen gradient limit"},
    ),
    "an accumulator that is never reset": ("            u = 0.0\n", "", AMPLIFICATION),
    "an accumulator of one round": ("u + step", "step", AMPLIFICATION - {"two sided step sizes"}),
    "a start at zero": ("x, u = problem.x0", "x, u = 0 * problem.x0", {*AMPLIFICATION, "translation"}),
    "a start that depends on the seed": (
        "x, u = problem.x0",
        "x, u = problem.x0 + np.random.default_rng(seed).normal(size=problem.dimension)",
        {*AMPLIFICATION, "rotation", "seed without noise"},
    ),
    "a start that is never the same": (
        "x, u = problem.x0",
        "x, u = problem.x0 + np.random.default_rng().normal(size=problem.dimension)",
        {*INVARIANTS} - {"averaged models", "weights as given", "reference twin"},
    ),
}


# what the report begins with, where it is known
CAUSES = {
    "gradient ascent": "its steps have the wrong sign",
    "step sizes shared by the local steps": "it divides the step size by the local steps",
    "a local step too few": "it does a local step too few",
    "gradients at the received model": "it takes every local gradient at the received model",
    "participants one after the other": "each client starts from the sum so far",
    "clients start from the model of the round before": "clients start from the model of the round before",
    "a local step too many, for which there is no noise": "it gives no models in some cases: the run raised IndexError",
    "one noise for all clients": "it gives all clients the same noise",
    "one noise for all local steps": "it gives all local steps the same noise",
    "squared weights": "it squares the weights",
    "equal weights": "it gives equal weights to those who take part",
    "the mean over all clients": "it gives the weight 1/N to each participant",
    "normalized weights": "it normalizes the weights",
    "no amplification of the first interval": "not among the known mistakes",
    "no amplification": "it ignores the multiplier (if it has none: cases(multipliers=(1.0,)))",
    "amplification in every round": "it amplifies in every round",
    "a start at zero": "it begins at zero",
    "a start that depends on the seed": "begin with 'seed without noise'",
    "a start that is never the same": "begin with 'determinism'",
}


def test_a_correct_implementation_keeps_every_invariant(noisy_cases):
    report = check_invariants(fedavg_by_hand, cases=noisy_cases)
    report.raise_if_broken()
    assert [verdict.examples for verdict in report.verdicts] == [32] * len(INVARIANTS)


@pytest.mark.parametrize("bug", MUTANTS)
def test_every_planted_bug_breaks_the_invariants_that_it_should_and_no_others(bug, noisy_cases):
    line, mutated, broken = MUTANTS[bug]
    report = check_invariants(planted(line, mutated), cases=noisy_cases)
    assert {verdict.name for verdict in report.broken} == broken | {"reference twin"}
    assert report.cause is not None and CAUSES.get(bug, "") in report.cause


def test_the_smallest_case_of_one_invariant_serves_all_that_it_breaks():
    """Each client starts where the one before it stopped: two clients in one dimension show it to all that see it."""
    source = inspect.getsource(fedavg_by_hand).replace("            y = x\n", "")
    namespace = {"np": np}
    exec(source.replace("        step = np.zeros_like(x)\n", "        step, y = np.zeros_like(x), x\n"), namespace)
    names = ["relabeled clients", "split clients", "summed displacements", "reference twin"]
    report = check_invariants(namespace["fedavg_by_hand"], invariants=names)
    assert report.cause == "each client starts where the one before it stopped"
    assert {"relabeled clients", "split clients", "summed displacements"} <= {verdict.name for verdict in report.broken}
    for verdict in report.broken:
        problem = verdict.counterexample.case.problem
        assert (problem.clients, problem.dimension, problem.quadratic) == (2, 1, True), str(verdict)


def test_every_invariant_catches_some_bug():
    assert set().union(*(broken for _, _, broken in MUTANTS.values())) == INVARIANTS.keys() - {"reference twin"}


@pytest.mark.usefixtures("no_causes")
@pytest.mark.parametrize("bug", [name for name in MUTANTS if "fourth" in name or "three" in name])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_bugs_of_many_participants_are_found_in_the_default_cases_too(bug, seed):
    report = check_invariants(planted(*MUTANTS[bug][:2]), invariants=["reference twin"], seed=seed)
    assert report.broken
    assert report["reference twin"].counterexample.case.problem.clients >= 4


def test_the_default_cases_have_four_participants_in_later_rounds():
    drawn = []
    quick = settings(max_examples=300, phases=[Phase.generate], database=None, deadline=None)
    with pytest.raises(NoSuchExample):
        find(cases(), lambda case: drawn.append(case) or False, settings=quick, random=Random(0))
    clients = np.array([case.problem.clients for case in drawn])
    four = [((case.weights[1:] > 0).sum(axis=1) >= 4).any() for case in drawn]
    assert (clients == 1).mean() < 0.25 and np.mean(four) > 0.15


def test_a_misreading_that_the_smallest_counterexamples_alone_suggest_is_no_cause():
    """In one interval, an amplification that is left out of the first is one that is left out of all."""
    run = planted(*MUTANTS["no amplification of the first interval"][:2])
    report = check_invariants(run, invariants=["two sided step sizes", "summed displacements", "reference twin"])
    assert len(report.broken) == 3 and report.cause.startswith("not among the known mistakes; begin with")


def test_a_small_mistake_is_not_taken_for_single_precision():
    run = planted("problem.gradient(n, y)", "problem.gradient(n, y) + 1e-7 * y")
    report = check_invariants(run, invariants=["translation", "scaling", "reference twin"])
    assert len(report.broken) == 3 and report.cause.startswith("not among the known mistakes; begin with")


def test_there_are_thirty_two_planted_bugs():
    assert len(MUTANTS) == 32
