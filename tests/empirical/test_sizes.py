"""Sizes beyond reason: estimated before anything is made, refused in a line that says what was asked and what fits."""

import json
import resource
import time

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.moments import moments
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import problem_from_spec, random_quadratic_minimax, toy_example
from fedbounds.empirical.problems.nonconvex import random_cosine_quadratic
from fedbounds.empirical.problems.spec import sketch
from fedbounds.empirical.simulate import simulate
from fedbounds.empirical.sweep import plan, resolve
from fedbounds.empirical.work import least_seconds
from tests.command_line import run as typed


def sweep(**changed):
    """A sweep as a dictionary: what is given as a table is added to the one that is there."""
    document = {
        "rounds": 3, "problem": {"kind": "quadratic", "clients": 3, "dimension": 2},
        "participation": {"kind": "full", "clients": 3},
        "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
    }  # fmt: skip
    added = {k: document[k] | v if isinstance(v, dict) and k in document else v for k, v in changed.items()}
    return document | added


def clients(number):
    return {"problem": {"clients": number}, "participation": {"clients": number}}


ABSURD = [
    ({"seeds": 1e9}, "seeds = 1000000000 must be an integer in [1, 1000000]"),
    ({"seeds": 1e300}, "seeds = 1e+300 must be an integer in [1, 1000000]"),
    ({"seeds": 1e6, "vary": {"rounds": [1, 2]}}, "more than 1000000 seeds in all"),
    ({"seeds": 1e6, "seeds_per_run": 1}, "more than 100000 runs"),
    ({"rounds": 1e18}, "rounds = 1000000000000000000, record_every = 1 needs about"),
    ({"rounds": 1e300}, "rounds = 1e+300 must be an integer"),
    ({"rounds": 10**7, "seeds": 1e4, "record_every": 10}, "seeds = 10000, dimension = 2, rounds = 10000000"),
    ({"rounds": 10**6, "record_models": True, "problem": {"dimension": 10**6}}, "dimension = 1000000"),
    (clients(1e9), "clients = 1000000000, dimension = 2 needs about"),
    (clients(1e300), "clients = 1e+300 must be an integer"),
    ({"problem": {"dimension": 1e6, "shared": False}}, "dimension = 1000000 needs about"),
    ({"problem": {"dimension": 1e9, "diagonal": True}}, "dimension = 1000000000 needs about"),
    (
        {"algorithm": {"local_steps": 10**15}},
        "local_steps = 1000000000000000, seeds = 1, dimension = 2 take at least about",
    ),
    (
        {"algorithm": {"local_steps": 10**15}, "engine": "in-turn"},
        "take at least about 95 years; at most a year is begun",
    ),
    (
        {"rounds": 10**9, "record_every": 10**8, "algorithm": {"local_steps": 10**9}, "engine": "batched"},
        "take at least",
    ),
    ({"problem": {"kind": "cosine-quadratic", "dimension": 1e12}}, "dimension = 1000000000000 needs about"),
]


@pytest.mark.parametrize(("changed", "told"), ABSURD, ids=[str(changed)[:60] for changed, _ in ABSURD])
def test_a_sweep_of_absurd_size_is_refused_before_anything_is_made(changed, told):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FedboundsError) as refused:
        plan(resolve(sweep(**changed)))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    line = str(refused.value)
    assert told in line and len(line.splitlines()) == 1 and len(line) < 400
    assert any(words in line for words in ("must be", "more than", "this machine has", "at most a year"))
    assert grown < 200 * 2**10  # KiB


def test_planning_a_large_run_makes_nothing_large(monkeypatch):
    factor = np.linalg.qr
    monkeypatch.setattr(np.linalg, "qr", lambda a: factor(a) if a.shape[-1] <= 64 else pytest.fail("made in full"))
    large = sweep(problem={"dimension": 20_000, "clients": 10}, participation={"clients": 10})
    (run,) = plan(resolve(large))
    assert run.task["problem"]["dimension"] == 20_000 and run.task["problem"]["clients"] == 10
    with pytest.raises(pytest.fail.Exception, match="made in full"):
        problem_from_spec(large["problem"] | {"dimension": 200})


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "quadratic", "clients": 70, "dimension": 5},
        {"kind": "cosine-quadratic", "clients": 5, "dimension": 70},
        {"kind": "bounded-gradient", "clients": 5, "dimension": 70},
        {"kind": "minimax-quadratic", "clients": 5, "descent_dimension": 70, "ascent_dimension": 2},
    ],
)
def test_a_sketch_has_the_clients_and_the_dimension_of_what_it_stands_for(spec):
    small, number, dimension = sketch(spec)
    whole = problem_from_spec(spec)
    assert (number, dimension) == (whole.clients, whole.dimension) != (small.clients, small.dimension)
    assert small.ascends == whole.ascends and small.data_checksum == whole.data_checksum
    with pytest.raises(FedboundsError, match="noise = -1"):
        sketch({**spec, "noise": -1})


def test_a_simulation_of_absurd_length_is_refused_before_its_records_are_made():
    with pytest.raises(FedboundsError, match=r"rounds = 1000000000000000, .* needs about .* this machine"):
        simulate(FedAvg(0.1, 1), toy_example(), Full(3), 10**15)


@pytest.mark.parametrize(
    "run",
    [
        lambda: simulate(FedAvg(0.1, 10**15), toy_example(), Full(3), 2),
        lambda: simulate(FedAvg(0.1, 10**15), random_cosine_quadratic(3, 2), Full(3), 2),
        lambda: simulate(None, toy_example(), Full(3), phases=[(FedAvg(0.1, 2), 2), (FedAvg(0.1, 10**15), 2)]),
        lambda: moments(FedAvg(0.1, 10**15), toy_example(), Full(3), 2),
        lambda: simulate(FedNormSGDA(0.1, 0.1, 0.1, 0.1, 10**15), random_quadratic_minimax(3, 2, 2), Full(3), 2),
        lambda: moments(FedNormSGDA(0.1, 0.1, 0.1, 0.1, (1, 2, 10**15)), random_quadratic_minimax(3, 2, 2), Full(3), 2),
        lambda: moments(FedAvg(0.1, 1), toy_example(), Full(3), 10**12),
    ],
)
def test_a_run_that_never_ends_is_refused_before_its_first_step(run):
    with pytest.raises(
        FedboundsError, match=r"take at least about .* at most a year is begun|this machine has"
    ) as refused:
        run()
    assert "\n" not in str(refused.value)


def test_a_dry_run_says_how_long_the_longest_run_takes_at_least(tmp_path):
    spec = tmp_path / "dense.toml"
    spec.write_text(
        'rounds = 3\n[problem]\nkind = "quadratic"\nclients = 3\ndimension = 20000\n'
        '[participation]\nkind = "full"\nclients = 3\n[algorithm]\nkind = "fedavg"\n'
        "local_step_size = 0.1\nlocal_steps = 2\n"
    )
    words = ("run", str(spec), "--dry-run", "--probe", "0", "--out", str(tmp_path / "kept"))
    status, out, err = typed(*words)
    assert (status, err) == (0, "") and "missing   seeds=0  (at least 13 minutes)\n" in out
    status, out, err = typed(*words, "--json")
    assert json.loads(out)["runs"][0]["at_least_seconds"] == pytest.approx(800)


def test_no_run_is_said_to_take_longer_than_it_does():
    begun = time.perf_counter()
    algorithm, problem = FedAvg(0.1, 20), random_cosine_quadratic(3, 2)
    simulate(algorithm, problem, Full(3), 20)
    assert least_seconds(algorithm, problem, 20, 1, 2, closed=False) < time.perf_counter() - begun
