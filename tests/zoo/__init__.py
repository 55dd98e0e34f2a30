"""The zoo: broken implementations that every check must catch at its defaults, and correct ones that none may flag.

Each module of this package has a `ZOO`: a check, mutants and correct variants by name. `python -m tests.zoo` writes the
invariants that each mutant breaks into caught.json (`python -m tests.zoo averaging` for one module alone); the page
docs/dev/mutants.md is generated from it.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fedbounds.empirical.invariants import search
from fedbounds.empirical.invariants.report import Report

CAUGHT = Path(__file__).with_name("caught.json")


@dataclass(frozen=True)
class Kept:
    """An implementation, and what its author must say of it, such as `algorithm="fedau"`."""

    run: Callable[..., Any]
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Zoo:
    """What one check is tried on.

    Args:
        title: the heading of its table: the name of the check, and of what.
        check: the function.
        mutants: broken implementations by their error.
        correct: correct ones by their style.
    """

    title: str
    check: Callable[..., Report]
    mutants: dict[str, Kept] = field(default_factory=dict)
    correct: dict[str, Kept] = field(default_factory=dict)

    def add(self, name: str, run: Callable[..., Any], **arguments: Any) -> None:
        """Put a broken implementation in."""
        assert name not in self.mutants, name
        self.mutants[name] = Kept(run, arguments)

    def mutant(self, name: str, **arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Put the decorated broken implementation in."""
        return lambda run: (self.add(name, run, **arguments), run)[1]

    def variant(self, name: str, **arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Put the decorated correct implementation in."""

        def put(run: Callable[..., Any]) -> Callable[..., Any]:
            assert name not in self.correct, name
            self.correct[name] = Kept(run, arguments)
            return run

        return put

    def report(self, kept: Kept, causes: bool = True, **arguments: Any) -> Report:
        """What the check says of an implementation at its defaults, without shrinking, which takes long.

        The search for the cause takes as long as the rest; `causes=False` leaves it out.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "SHRINKING", 0)
            if not causes:
                patch.setattr(search, "likely_cause", lambda *_: None)
            return self.check(kept.run, **kept.arguments, **arguments)

    def broken(self, name: str) -> list[str]:
        """The invariants that break of one mutant."""
        return [verdict.name for verdict in self.report(self.mutants[name]).broken]

    def recorded(self, name: str) -> list[str]:
        """The invariants that break of one mutant, as the file says."""
        return caught()[self.title].get(name, [])


@cache
def zoos() -> dict[str, Zoo]:
    """Every zoo by its module."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_"))
    return {name: import_module(f"{__name__}.{name}").ZOO for name in names}


@cache
def caught() -> dict[str, dict[str, list[str]]]:
    """The file: of each zoo, by its title, the invariants that each mutant breaks."""
    return json.loads(CAUGHT.read_text(encoding="utf-8"))
