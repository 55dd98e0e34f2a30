"""What holds for every test: one thread, and searches that find the same thing each time."""

from __future__ import annotations

import os
import re

# Before anything imports numpy or torch: test processes share two cores, and sums must not depend on threads.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["MPLBACKEND"] = "agg"

from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

SEPARATE = ("long", "notebook", "wheel", "browser", "flower")  # markers of tests that have targets of their own
FLOWER = find_spec("flwr") is not None


AUDIT = re.compile(
    r"^ *(?:from|import) fedbounds\.(?:bounds\.audit|empirical\.falsification"
    r"|(?:bounds|empirical)\.papers\.\w+\.(?:proof|errata|instances|worst_case))",
    re.MULTILINE,
)
OUTSIDE = re.compile(r"[\"'/](?:docs|examples|notebooks|benchmarks|README|CHANGELOG)\b")


def audits(text: str) -> bool:
    """Whether a test module is of the audit's stage: it imports the audit, and reads nothing but source and tests."""
    return AUDIT.search(text) is not None and OUTSIDE.search(text) is None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the audit's stage."""
    found = {path: audits(path.read_text(encoding="utf-8")) for path in {item.path for item in items}}
    for item in items:
        if found[item.path] and not {*SEPARATE} & {mark.name for mark in item.iter_markers()}:
            item.add_marker(pytest.mark.audit)


def pytest_report_header() -> str:
    """Say which optional package is missing, so that nothing is left out silently."""
    return "" if FLOWER else "flwr is not installed: not run are the tests marked flower and the examples in flower.py"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Modules that Flower alone can import hold no example that runs without it."""
    return True if collection_path.name == "flower.py" and not FLOWER else None


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
