"""What each paper knows of a run: its constants with their kinds, its assumptions, its step sizes."""

from __future__ import annotations

from collections.abc import Mapping

from bounds.result import Result
from empirical.papers.arbitrary_participation import ArbitraryParticipation
from empirical.papers.fed_norm_sgda import FedNormSGDAPaper
from empirical.papers.fedau import FedAUPaper
from empirical.papers.paper import Ahead, Paper

PAPERS: Mapping[str, Paper] = {
    "arbitrary-participation": ArbitraryParticipation(),
    "fedau": FedAUPaper(),
    "fed-norm-sgda": FedNormSGDAPaper(),
}


def paper_of(result: Result) -> Paper:
    """Who knows what a result must be told of a run; a stranger's result is taken to be about generalized FedAvg.

    Example:
        >>> from bounds.registry import load
        >>> type(paper_of(load("fedau/theorem-2"))).__name__
        'FedAUPaper'
    """
    return PAPERS.get(result.key.partition("/")[0], PAPERS["arbitrary-participation"])


__all__ = ["PAPERS", "Ahead", "Paper", "paper_of"]
