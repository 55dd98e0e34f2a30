"""Every check at its defaults catches every mutant of its zoo and flags no correct implementation.

By default one of the invariants that the file names must find each mutant; what all of them find takes longer.
"""

from __future__ import annotations

import pytest

from tests.zoo import caught, zoos

MUTANTS = [(module, name) for module, zoo in zoos().items() for name in zoo.mutants]
CORRECT = [(module, name) for module, zoo in zoos().items() for name in zoo.correct]


@pytest.mark.parametrize(("module", "name"), MUTANTS)
def test_every_mutant_is_caught(module, name):
    zoo = zoos()[module]
    named = zoo.recorded(name)
    assert named, f"{zoo.title} passes, or caught.json has no entry for: {name}; run python -m tests.zoo"
    assert zoo.report(zoo.mutants[name], causes=False, invariants=named[-1:]).broken, f"{zoo.title} passes: {name}"


@pytest.mark.long
@pytest.mark.parametrize(("module", "name"), MUTANTS)
def test_every_mutant_is_caught_as_the_file_says(module, name):
    zoo = zoos()[module]
    assert zoo.broken(name) == zoo.recorded(name), "tests/zoo/caught.json is stale: run python -m tests.zoo"


@pytest.mark.parametrize("examples", [25, pytest.param(None, marks=pytest.mark.long)])
@pytest.mark.parametrize(("module", "name"), CORRECT)
def test_no_correct_implementation_is_flagged(module, name, examples):
    """In half of the cases of the default; a compressor has no number of cases."""
    zoo = zoos()[module]
    report = zoo.report(zoo.correct[name], **{"examples": examples} if examples and module != "compressors" else {})
    assert report.passed and report.cause is None, str(report)


def test_the_file_has_the_mutants_of_the_zoos_and_no_others():
    assert {title: list(rows) for title, rows in caught().items()} == {
        z.title: list(z.mutants) for z in zoos().values()
    }
