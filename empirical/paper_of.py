"""What each paper knows of a run: its constants with their kinds, its assumptions, its step sizes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.registry import paper_names, room
from fedbounds.bounds.result import Result
from fedbounds.empirical.papers.arbitrary_participation.run import ArbitraryParticipation
from fedbounds.empirical.papers.fed_norm_sgda.run import FedNormSGDAPaper
from fedbounds.empirical.papers.fedau.run import FedAUPaper
from fedbounds.empirical.papers.paper import Ahead, Paper

PAPERS: Mapping[str, Paper] = {
    "arbitrary-participation": ArbitraryParticipation(),
    "fedau": FedAUPaper(),
    "fed-norm-sgda": FedNormSGDAPaper(),
}


def paper_of(result: Result) -> Paper | None:
    """Who knows what a result must be told of a run; None where its paper names nobody.

    A stranger's module names a class of `Paper` in `RUNS`, e.g.
    "fedbounds.empirical.papers.arbitrary_participation.run: ArbitraryParticipation" for theorems about generalized
    FedAvg and its special cases.

    Raises:
        FedboundsError: what the module names cannot be loaded.

    Example:
        >>> from fedbounds.bounds.registry import load
        >>> type(paper_of(load("fedau/theorem-2"))).__name__, paper_of(load("tdcd/theorem-1"))
        ('FedAUPaper', None)
    """
    if result.paper in PAPERS or result.paper not in paper_names():
        return PAPERS.get(result.paper)
    place = str(getattr(room(result.paper), "RUNS", ""))
    if not place:
        return None
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise FedboundsError(
            f"the paper {result.paper} has RUNS = {place!r}, which is no module:Class ({error})"
        ) from None


__all__ = ["PAPERS", "Ahead", "Paper", "paper_of"]
