"""Property tests: cases, invariants of your own, and what a search reports. Strategies need the extra `testing`."""

from fedbounds.empirical.invariants import (
    BrokenInvariant,
    Case,
    Counterexample,
    InvariantSides,
    InvariantVerdict,
    PlainProblem,
    Report,
    Run,
)
from fedbounds.empirical.invariants.averaging import check_averaging
from fedbounds.empirical.invariants.search import Subject, search, strategy_of
from fedbounds.empirical.papers.fedmrn.invariants import check_masking, masked_round

__all__ = [
    "BrokenInvariant",
    "Case",
    "Counterexample",
    "InvariantSides",
    "InvariantVerdict",
    "PlainProblem",
    "Report",
    "Run",
    "Subject",
    "check_averaging",
    "check_masking",
    "masked_round",
    "search",
    "strategy_of",
]
