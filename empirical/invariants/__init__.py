"""What must hold for any implementation of an algorithm: cases, the search for those that break it, and reports."""

from fedbounds.empirical.invariants.cases import Case, PlainProblem, Run
from fedbounds.empirical.invariants.report import BrokenInvariant, Counterexample, InvariantVerdict, Report
from fedbounds.empirical.invariants.scope import InvariantSides

__all__ = [
    "BrokenInvariant",
    "Case",
    "Counterexample",
    "PlainProblem",
    "Report",
    "Run",
    "InvariantSides",
    "InvariantVerdict",
]
