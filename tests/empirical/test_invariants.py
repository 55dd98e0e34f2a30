"""Every invariant holds for every algorithm and engine it applies to, and finds the bugs planted in a plain FedAvg."""

from __future__ import annotations

import dataclasses
import inspect
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from bounds.constants import cohort_divergence, participation_divergence, window_divergence
from bounds.evaluation import evaluate
from bounds.registry import load
from empirical.algorithms.spec import ALGORITHMS
from empirical.invariants import (
    INVARIANTS,
    Case,
    PlainProblem,
    check_invariants,
    generalized_fedavg,
)
from empirical.problems import Problem, Quadratic, toy_example
from empirical.reference import TWINS, run_reference
from empirical.simulate import simulate
from empirical.strategies import cases, cosine_quadratics, participation_matrices, quadratics, schedules, step_sizes
from empirical.streams import Streams

# --- our own algorithms: one table (algorithm x problem x invariant), for each engine -----------------------


class AsTensors(Problem):
    """A plain problem for the engines, one gradient at a time, with the noise that the problem gives."""

    def __init__(self, plain: PlainProblem) -> None:
        self.plain = plain
        self.clients, self.dimension = plain.clients, plain.dimension
        self.dtype, self.device = torch.float64, torch.device("cpu")

    def initial_point(self, rng):
        return torch.from_numpy(self.plain.x0)

    def gradient(self, x, clients):
        pairs = zip(clients.flatten().tolist(), x.reshape(-1, self.dimension).numpy(), strict=True)
        return torch.from_numpy(np.stack([self.plain.gradient(n, own) for n, own in pairs])).view(x.shape)

    def draw(self, rng, client):
        return None

    def draws(self, rng, client, steps):
        if self.plain.noises is None:
            return None
        _, t, n, _ = rng.bit_generator.state["state"]["counter"].tolist()  # the place of round t and client n
        assert n == client
        return self.plain.noises[t, n, :steps]

    def stochastic_gradient(self, x, clients, randomness):
        return self.gradient(x, clients) + (0 if randomness is None else randomness)

    def metrics(self, x):
        return {}

    def objective(self, x):
        return x[..., 0] * 0

    def objective_gradient(self, x):
        return x * 0

    def constants(self):
        return {}


def tensors(plain):
    """The problem that every engine can run, if there is one."""
    if plain.quadratic and plain.noises is None:
        return Quadratic(plain.hessians, plain.centres, x0=plain.x0)
    return AsTensors(plain)


def made(kind, numbers):
    """An algorithm from the numbers of a run; those that it has no use for are left out."""
    names = {"local_step_size": "step_size", "server_multiplier": "multiplier"}
    fields = [field.name for field in dataclasses.fields(ALGORITHMS[kind])]
    return ALGORITHMS[kind](**{name: numbers[names.get(name, name)] for name in fields})


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


ALWAYS = (
    "relabelled clients",
    "split clients",
    "translation",
    "rotation",
    "scaling",
    "determinism",
    "seed without noise",
    "reference twin",
)
APPLIES = {
    "generalized-fedavg": tuple(INVARIANTS),
    "fedavg": tuple(name for name in INVARIANTS if name != "frozen gradient limit"),  # it has no gamma eta to fix
    "wait-minibatch": ALWAYS,  # whoever is drawn, everybody computes: absent clients are not absent
    "wait-full": ALWAYS,
    "wait-for-all": ALWAYS,  # it waits for absent clients for ever
    "frozen-gradient": (*ALWAYS, "absent clients"),
}
PROBLEMS = {"quadratics": quadratics(), "rippled bowls": cosine_quadratics()}
ENGINES = {"in turn": PROBLEMS, "batched": PROBLEMS, "closed form": ["quadratics"]}


def test_the_table_of_invariants_has_every_algorithm():
    assert APPLIES.keys() == ALGORITHMS.keys() == TWINS.keys()


@pytest.mark.parametrize(
    ("kind", "engine", "problem"),
    [(kind, engine, problem) for kind in APPLIES for engine, problems in ENGINES.items() for problem in problems],
)
def test_every_algorithm_keeps_its_invariants_in_every_engine(kind, engine, problem):
    amplified = kind == "generalized-fedavg"
    report = check_invariants(
        simulated(kind, engine),
        invariants=APPLIES[kind],
        examples=6,
        twin=generalized_fedavg if "fedavg" in kind else by_pseudo_code(kind),
        cases=cases(problems=PROBLEMS[problem], **({} if amplified else {"multipliers": (1.0,)})),
    )
    report.raise_if_broken()
    assert [verdict.examples for verdict in report.verdicts] == [6] * len(APPLIES[kind])


@pytest.mark.parametrize("engine", ["in turn", "batched"])
def test_the_engines_keep_the_invariants_when_every_client_has_its_own_noise(engine):
    check_invariants(simulated("generalized-fedavg", engine), examples=6, cases=cases(noise=True)).raise_if_broken()


@pytest.mark.parametrize("kind", APPLIES)
def test_the_slow_twins_keep_the_invariants_too(kind):
    amplified = {} if kind == "generalized-fedavg" else {"multipliers": (1.0,)}
    names = [name for name in APPLIES[kind] if name != "reference twin" or "fedavg" in kind]
    check_invariants(by_pseudo_code(kind), invariants=names, examples=4, cases=cases(**amplified)).raise_if_broken()


@pytest.mark.parametrize("noise", [False, True])
def test_algorithm_1_in_plain_numpy_keeps_every_invariant(noise):
    check_invariants(generalized_fedavg, examples=60, seed=1, cases=cases(noise=noise)).raise_if_broken()


def test_the_plain_twin_follows_the_golden_trajectory_of_the_toy_example():
    """Appendix B.1 with gamma = 1/36, eta = 6, P = 3: exact moments, printed to ten digits."""
    x = generalized_fedavg(
        PlainProblem.of(toy_example()),
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
@settings(max_examples=60)
def test_every_complete_interval_descends_as_the_proof_says_and_the_intervals_sum_to_the_theorem(data):
    """Wang & Ji 2022, (C.16) without noise, and its telescoping sum, Theorem 3.1 with the constants of its proof."""
    problem = data.draw(quadratics(forms=("shared diagonal", "shared")) | cosine_quadratics())
    I, P, T = data.draw(schedules())
    q = data.draw(participation_matrices(T, problem.clients))
    L, v = problem.constants()["smoothness"].value, problem.offsets()
    gamma, eta = data.draw(step_sizes(L, I, P))
    nu, beta, delta = cohort_divergence(q, v), participation_divergence(q, v), window_divergence(q, v, P)
    case = Case(PlainProblem.of(problem), q, gamma, I, eta, P)
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


# --- a stranger's implementation, and the bugs planted in it ------------------------------------------------


def fedavg_by_hand(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed):
    x, u = problem.x0, 0.0
    models = [x]
    for t in range(rounds):
        step = np.zeros_like(x)
        for n in np.flatnonzero(weights[t]):
            y = x
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            step = step + weights[t, n] * (y - x)
        x, u = x + step, u + step
        if (t + 1) % interval == 0:
            x = x + (multiplier - 1) * u
            u = 0.0
        models.append(x)
    return np.array(models)


AMPLIFICATION = {"anchor form", "summed displacements", "two sided step sizes", "frozen gradient limit"}
STEP = {"summed displacements", "two sided step sizes", "averaged models", "weights as given"}
LOCAL = {*STEP, "frozen gradient limit"}
# what is planted, the code as it should be, the code as it is: and exactly the invariants that it breaks, besides the
# agreement with the reference twin
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
    "one noise for all clients": ("noise(t, n, i)", "noise(t, 0, i)", {*LOCAL, "relabelled clients"}),
    "one noise for all local steps": ("noise(t, n, i)", "noise(t, n, 0)", LOCAL),
    "squared weights": ("weights[t, n] *", "weights[t, n] ** 2 *", {*LOCAL, "split clients"}),
    "equal weights": ("weights[t, n] *", "(1 / (weights[t] > 0).sum()) *", {*LOCAL, "split clients"}),
    "the mean over everybody": (
        "weights[t, n] *",
        "(1 / problem.clients) *",
        {*LOCAL, "split clients", "absent clients"},
    ),
    "weights of the round before": ("weights[t, n] *", "weights[t - 1, n] *", {*LOCAL, "anchor form"}),
    "normalised weights": ("weights[t, n] *", "weights[t, n] / max(weights[t].sum(), 1e-9) *", {"weights as given"}),
    "averaged models in place of updates": (
        "x, u = x + step",
        "x, u = x * weights[t].sum() + step",
        {"weights as given"},
    ),
    "the last participant is left out": (
        "np.flatnonzero(weights[t])",
        "np.flatnonzero(weights[t])[:-1]",
        {*LOCAL, "relabelled clients", "split clients"},
    ),
    "participants one after the other": ("y = x\n", "y = x + step\n", {*LOCAL, "relabelled clients", "split clients"}),
    "clients start from the model of the round before": (
        "y = x\n",
        "y = models[-2] if t else x\n",
        {*LOCAL, "anchor form"},
    ),
    "no amplification": ("(multiplier - 1) * u", "0.0 * u", AMPLIFICATION),
    "amplification in every round": (
        "(t + 1) % interval == 0",
        "True",
        {*LOCAL, "anchor form"} - {"two sided step sizes"},
    ),
    "amplification a round late": ("(t + 1) % interval == 0", "t and t % interval == 0", set()),
    "the last rounds amplified too": (
        "(t + 1) % interval == 0",
        "(t + 1) % interval == 0 or t + 1 == rounds",
        {*LOCAL, "anchor form"} - {"two sided step sizes"},
    ),
    "eta in place of eta - 1": (
        "(multiplier - 1)",
        "multiplier",
        {*AMPLIFICATION, "plain multiplier"} - {"frozen gradient limit"},
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


def planted(line, mutated):
    """`fedavg_by_hand` with one bug."""
    source = inspect.getsource(fedavg_by_hand)
    assert source.count(line) == 1, f"{line!r} is not a line of the implementation"
    namespace = {"np": np}
    exec(source.replace(line, mutated), namespace)
    return namespace["fedavg_by_hand"]


@pytest.fixture(scope="module")
def noisy_cases():
    """Thirty cases, the same for all implementations."""
    drawn = []
    quick = settings(max_examples=30, database=None, deadline=None)
    with pytest.raises(NoSuchExample):
        find(cases(noise=True), lambda case: drawn.append(case) or False, settings=quick, random=Random(0))
    return st.sampled_from(drawn)


def test_a_correct_implementation_keeps_every_invariant(noisy_cases):
    report = check_invariants(fedavg_by_hand, cases=noisy_cases, examples=30)
    report.raise_if_broken()
    assert [verdict.examples for verdict in report.verdicts] == [30] * len(INVARIANTS)


@pytest.mark.parametrize("bug", MUTANTS)
def test_every_planted_bug_breaks_the_invariants_that_it_should_and_no_others(bug, noisy_cases):
    line, mutated, broken = MUTANTS[bug]
    report = check_invariants(planted(line, mutated), cases=noisy_cases, examples=30)
    assert {verdict.name for verdict in report.broken} - {"reference twin"} == broken


def test_every_invariant_catches_some_bug_and_only_two_bugs_hide_from_the_reference_twin(noisy_cases):
    assert set().union(*(broken for _, _, broken in MUTANTS.values())) == INVARIANTS.keys() - {"reference twin"}
    hidden = []
    for bug, (line, mutated, _) in MUTANTS.items():
        report = check_invariants(planted(line, mutated), invariants=["reference twin"], cases=noisy_cases, examples=30)
        hidden += [] if report.broken else [bug]
    assert hidden == ["normalised weights", "averaged models in place of updates"]  # alike where weights sum to one
