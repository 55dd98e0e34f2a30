"""Who knows what a paper's results must be told of a run: its room says so, under the name RUNS in its module `run`."""

from __future__ import annotations

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.registry import paper_names, part
from fedbounds.bounds.result import Result
from fedbounds.empirical.papers.paper import Paper


def paper_of(result: Result) -> Paper | None:
    """What a result must be told of a run: its constants with their kinds, its assumptions, its step sizes.

    None where its paper brings no module `run`: then nobody knows which runs it is about.

    Raises:
        FedboundsError: the module `run` says no RUNS, or one that is no `Paper`.

    Example:
        >>> from fedbounds.bounds.registry import load
        >>> type(paper_of(load("fedau/theorem-2"))).__name__, paper_of(load("tdcd/theorem-1"))
        ('FedAUPaper', None)
    """
    module = part(result.paper, "empirical", "run") if result.paper in paper_names() else None
    if module is None:
        return None
    runs = getattr(module, "RUNS", None)
    if not isinstance(runs, Paper):
        raise FedboundsError(f"{module.__name__} must say RUNS, a fedbounds.empirical.papers.paper.Paper")
    return runs
