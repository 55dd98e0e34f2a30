"""The zoo: broken implementations that every check must catch at its defaults, and correct ones that none may flag.

Each module of this package has a `ZOO`: a check, mutants and correct variants by what is said of them. `python -m
tests.zoo` writes what catches what into docs/mutants.md (`python -m tests.zoo averaging` for one module alone).
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fedbounds.empirical.invariants import search
from fedbounds.empirical.invariants.report import Report

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"


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

    def report(self, kept: Kept, **arguments: Any) -> Report:
        """What the check says of an implementation at its defaults; shrinking takes long, and is left out."""
        shrinking, search.SHRINKING = search.SHRINKING, 0
        try:
            return self.check(kept.run, **kept.arguments, **arguments)
        finally:
            search.SHRINKING = shrinking

    @property
    def heading(self) -> str:
        """The heading of its table in Markdown."""
        check, _, rest = self.title.partition(" ")
        return f"## `{check}` {rest}".rstrip()

    def row(self, name: str) -> str:
        """The line of the table about one mutant."""
        caught = ", ".join(f"`{verdict.name}`" for verdict in self.report(self.mutants[name]).broken)
        return f"| {name} | {caught} |"

    def named(self, name: str) -> list[str]:
        """The invariants that break of one mutant, as the page says."""
        rows = [row for row in tables()[self.title] if row.startswith(f"| {name} |")]
        return re.findall("`([^`]+)`", rows[0].removeprefix(f"| {name} |")) if rows else []


@cache
def zoos() -> dict[str, Zoo]:
    """Every zoo by its module."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_"))
    return {name: import_module(f"{__name__}.{name}").ZOO for name in names}


def tables() -> dict[str, list[str]]:
    """The rows of every table of the page, by its heading."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {section.splitlines()[0].replace("`", ""): section.splitlines() for section in sections}
    return {title: [line for line in lines if line.startswith("|")][2:] for title, lines in found.items()}
