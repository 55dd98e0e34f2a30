"""Theorem 3.1 at a million settings, as ratios measured in one run: `python benchmarks/evaluation.py`.

The explicit form of Wang & Ji (2022), Theorem 3.1, with all twelve constants varying. The racers: the formula as one
types it, on whole numpy arrays; the compiled bound alone; and `evaluate`, which also validates every constant, keeps
every term and checks every condition. They take turns, so that a neighbor's load falls on all of them; times are
processor time of one thread, and the ratios are medians over the turns. Then the cost of one evaluation, of the best
step sizes, and of a number of rounds. Last `fedbounds eval`, `rounds` and `compare` in processes of their own, as
multiples of `import sympy`, which they do without where the views are kept.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

from fedbounds.bounds.evaluation.evaluate import evaluate  # noqa: E402
from fedbounds.bounds.evaluation.numpy_code import compile_form  # noqa: E402
from fedbounds.bounds.search.optimize import optimize  # noqa: E402
from fedbounds.bounds.search.rounds import rounds  # noqa: E402
from fedbounds.bounds.theory.registry import load  # noqa: E402

SETTINGS, TURNS = 1_000_000, 15
ONE = dict(L=1, F=5, I=2, P=2, rho=0.7, sigma=1, nu=2, beta=0.5, delta=0)
STEPS = {"gamma": 1e-3, "eta": 20}
TARGETS = {"the bound alone": 3.0, "evaluate: validation, terms, conditions": 1.0}


def settings(count: int) -> dict[str, np.ndarray]:
    """Random constants; about half of the settings break a step-size condition."""
    rng = np.random.default_rng(0)
    counts = {"I": (1, 10), "P": (1, 10), "T": (100, 1000)}
    reals = {"L": (0.5, 2), "F": (1, 5), "gamma": (1e-4, 2e-3), "eta": (1, 10), "rho": (0.1, 1)}
    reals |= {name: (0, 1) for name in ("sigma", "nu", "beta", "delta")}
    return {name: rng.integers(low, high, count).astype(float) for name, (low, high) in counts.items()} | {
        name: rng.uniform(low, high, count) for name, (low, high) in reals.items()
    }


def by_hand(L, F, I, P, T, gamma, eta, rho, sigma, nu, beta, delta) -> np.ndarray:
    """The last display of Appendix C.3, as one types it."""
    return (
        8 * F / (gamma * eta * I * T)
        + 126 * gamma**2 * L**2 * I**2 * nu**2
        + 144 * gamma**2 * L**2 * I**2 * P**2 * beta**2
        + 6 * delta**2
        + (21 * gamma**2 * L**2 * I + 18 * gamma**2 * L**2 * I * P * rho**2 + 4 * gamma * eta * L * rho**2) * sigma**2
    )


def seconds(job: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    job()
    return time.process_time() - start


def main() -> None:
    """Runs both tables."""
    theorem = load("arbitrary-participation/theorem-3.1")
    compiled = compile_form(theorem.form("explicit"), frozenset(q.name for q in theorem.notation.values() if q.shape))
    many = settings(SETTINGS)
    np.testing.assert_allclose(compiled.value(many), by_hand(**many), rtol=1e-13)
    racers = {
        "by hand, whole arrays": lambda: by_hand(**many),
        "the bound alone": lambda: compiled.value(many),
        "evaluate: validation, terms, conditions": lambda: evaluate(theorem, many, form="explicit"),
    }
    for job in racers.values():
        job()
    turns = [{name: seconds(job) for name, job in racers.items()} for _ in range(TURNS)]
    first = next(iter(racers))
    print(f"one thread of {os.cpu_count()}; numpy {np.__version__}; {TURNS} turns; {SETTINGS} settings")
    print(f"{'racer':42}{'ms':>10}{'speed, hand = 1':>18}{'target':>9}")
    for name in racers:
        took = 1e3 * statistics.median(turn[name] for turn in turns)
        speed = statistics.median(turn[first] / turn[name] for turn in turns)
        print(f"{name:42}{took:10.1f}{speed:18.2f}{TARGETS.get(name, ''):>9}")

    small = {
        "one evaluation": lambda: evaluate(theorem, {**ONE, **STEPS, "T": 800}, form="explicit"),
        "best gamma, eta with eta in 1:100": lambda: optimize(
            theorem, {**ONE, "T": 800}, within={"eta": (1, 100)}, form="explicit"
        ),
        "the same, sharp form": lambda: optimize(theorem, {**ONE, "T": 800}, within={"eta": (1, 100)}),
        "rounds until 0.5": lambda: rounds(theorem, 0.5, {**ONE, **STEPS}, form="explicit"),
        "rounds until 0.5, best gamma, eta": lambda: rounds(
            theorem, 0.5, ONE, optimize=("gamma", "eta"), within={"eta": (1, 100)}, form="explicit"
        ),
    }
    print(f"\n{'question':42}{'first ms':>10}{'then ms':>18}")
    for name, job in small.items():
        first_time = 1e3 * seconds(job)
        print(f"{name:42}{first_time:10.1f}{1e3 * statistics.median(seconds(job) for _ in range(7)):18.1f}")
    cold()


def cold() -> None:
    """Processor time of whole processes that start anew; its target is 0.4 times `import sympy`, all with bytecode."""
    constants = {**ONE, **STEPS, "T": 800}
    words = ["-m", "fedbounds", "eval", "arbitrary-participation/theorem-3.1", "--form", "explicit"]
    words += [f"{name}={value}" for name, value in constants.items()]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = os.environ["PYTHONPYCACHEPREFIX"] = cache
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed packages have it
        racers = {
            "import sympy": ["-c", "import sympy"],
            "import numpy, click": ["-c", "import numpy, click"],
            "fedbounds eval": words,
            "fedbounds rounds": [*words[:2], "rounds", *words[3:-1], "--epsilon", "0.5"],
            "fedbounds compare": [*words[:2], "compare", *words[3:4], *words[6:-1], "--vary", "T=10:1e6:log:50"],
        }
        first = {name: child_seconds(racer) for name, racer in racers.items()}
        turns = [{name: child_seconds(racer) for name, racer in racers.items()} for _ in range(TURNS)]
    print(f"\n{'a process of its own':42}{'first ms':>10}{'then ms':>18}{'import sympy = 1':>18}")
    for name in racers:
        took = 1e3 * statistics.median(turn[name] for turn in turns)
        share = statistics.median(turn[name] / turn["import sympy"] for turn in turns)
        print(f"{name:42}{1e3 * first[name]:10.1f}{took:18.1f}{share:18.2f}")


def child_seconds(words: list[str]) -> float:
    """Processor time of one Python process."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


if __name__ == "__main__":
    main()
