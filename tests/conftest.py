"""What holds for every test: one thread, and searches that find the same thing each time."""

from __future__ import annotations

import gc
import os
import re

# Before anything imports numpy or torch: test processes share two cores, and sums must not depend on threads.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["MPLBACKEND"] = "agg"

# Collecting, proving and drawing make millions of objects that stay: with Python's thresholds a sixth of the time of
# all tests goes to looking for garbage among them.
gc.set_threshold(100_000, 10, 10)

from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

SEPARATE = ("long", "notebook", "wheel", "browser", "flower")  # markers of tests that have targets of their own
FLOWER = find_spec("flwr") is not None


# The tests that stages of their own run, by what a module contains; a module is of the first that it matches.
STAGES = {
    "audit": r"^ *(?:from|import) fedbounds\.(?:bounds\.audit|empirical\.falsification"
    r"|(?:bounds|empirical)\.papers\.\w+\.(?:proof|errata|instances|worst_case))",
    "invariants": r"^ *(?:from|import) (?:tests\.zoo|fedbounds\.(?:testing|empirical\.invariants"
    r"|empirical\.papers\.\w+\.(?:invariants|properties|games|strategies)))|\bcheck_(?:invariants|weights|minimax|vertical)\(",
    "figures": r"^ *(?:from|import) fedbounds\.(?:figures|charts)",
    "processes": r"\b(?:subprocess|run_apart)\b|^ *(?:from|import) fedbounds\.empirical\.sweep\.(?:executors?|workers)",
}
# What a stage does not read: modules that mention it stay in `make test`, which always runs.
UNREAD = {
    "audit": ("docs", "examples", "notebooks", "benchmarks", "README", "CHANGELOG"),
    "invariants": ("notebooks", "benchmarks", "README", "CHANGELOG"),
    "figures": ("notebooks", "benchmarks", "README", "CHANGELOG"),
    "processes": (),
}


def stage(text: str) -> str | None:
    """Return the stage that runs a test module, if it is one of its own."""
    for name, pattern in STAGES.items():
        if re.search(pattern, text, re.MULTILINE):
            unread = "|".join(UNREAD[name])
            return None if unread and re.search(rf"[\"'/.](?:{unread})\b", text) else name
    return None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the stages."""
    found = {path: stage(path.read_text(encoding="utf-8")) for path in {item.path for item in items}}
    for item in items:
        name = found[item.path]
        if name and not {*SEPARATE, "pages"} & {mark.name for mark in item.iter_markers()}:
            item.add_marker(name)


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, and no longer among the tests and modules themselves."""
    gc.freeze()


def pytest_report_header() -> str:
    """Say which optional package is missing, so that nothing is left out silently."""
    return "" if FLOWER else "flwr is not installed: not run are the tests marked flower and the examples in flower.py"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Modules that Flower alone can import hold no example that runs without it."""
    return True if collection_path.name == "flower.py" and not FLOWER else None


@pytest.fixture
def no_shrinking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that say what is broken, and make no counterexample small, which takes most of their time."""
    monkeypatch.setattr("fedbounds.empirical.invariants.search.SHRINKING", 0)


@pytest.fixture
def no_causes(monkeypatch: pytest.MonkeyPatch, no_shrinking: None) -> None:
    """Searches that say what is broken, neither in a small case nor why."""
    monkeypatch.setattr("fedbounds.empirical.invariants.search.likely_cause", lambda *_: None)


settings.register_profile(
    "fixed",
    max_examples=40,  # many more by hand, see below
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# By hand: pytest --hypothesis-profile=search
settings.register_profile("search", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile("fixed")
