"""Progress bars on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from fedbounds.bounds.display.plain_text import visible


class Advance(Protocol):
    """What moves a bar: so many of so many are done, and what is under way, where that changes."""

    def __call__(self, done: int, total: int, /, now: str | None = None) -> None: ...


@contextmanager
def progress_bar(name: str) -> Iterator[Advance | None]:
    """A bar on standard error, if that is a terminal: what is counted, and how long the rest will take."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(name, total=None)

        def advance(done: int, total: int, /, now: str | None = None) -> None:
            bars.update(task, completed=done, total=total, description=now and visible(now))

        yield advance
