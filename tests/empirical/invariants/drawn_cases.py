"""Some cases of a strategy, drawn once: what is searched in them is not shrunk, which takes most of a search's time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample


@cache
def drawn_cases(of: Callable[[], st.SearchStrategy[Any]], count: int = 80) -> st.SearchStrategy[Any]:
    """One of so many cases of the strategy that a function makes."""
    drawn: list[Any] = []
    quiet = settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None)
    with suppress(NoSuchExample):
        find(of(), lambda case: bool(drawn.append(case)), settings=quiet, random=Random(2))
    return st.sampled_from(drawn)
