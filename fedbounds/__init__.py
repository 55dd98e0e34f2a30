"""fedbounds: convergence theory you can run.

This module has the main functions and the version. `fedbounds.problems`, `fedbounds.participation`,
`fedbounds.algorithms`, `fedbounds.papers`, `fedbounds.sweeps`, `fedbounds.charts`, `fedbounds.testing` and
`fedbounds.authoring` have the rest.
Names are imported on first use. Names that the reference does not list are internal.

Example:
    >>> import fedbounds
    >>> theorem = fedbounds.load("arbitrary-participation/theorem-3.1")
    >>> evaluation = fedbounds.evaluate(
    ...     theorem, dict(L=1, F=5, I=2, P=2, T=8, gamma=1/48, eta=6, rho=0.5**0.5, sigma=0.5**0.5, nu=4.25**0.5,
    ...                   beta=0.5, delta=0), form="explicit")
    >>> round(float(evaluation.value), 6)
    21.321615
    >>> import fedbounds as fb
    >>> run = fb.moments(fb.algorithms.FedAvg(0.05, 2), fb.problems.toy_example(), fb.participation.Full(3), 10)
    >>> len(run.gradient_norm_squared)
    11
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedbounds.bounds._version import __version__

if TYPE_CHECKING:
    from fedbounds import algorithms as algorithms
    from fedbounds import authoring as authoring
    from fedbounds import charts as charts
    from fedbounds import papers as papers
    from fedbounds import participation as participation
    from fedbounds import problems as problems
    from fedbounds import sweeps as sweeps
    from fedbounds import testing as testing
    from fedbounds.bounds.advice.coverage import covers as covers
    from fedbounds.bounds.comparison.compare import compare as compare
    from fedbounds.bounds.errors import FedboundsError as FedboundsError
    from fedbounds.bounds.evaluation.evaluate import evaluate as evaluate
    from fedbounds.bounds.search.optimize import optimize as optimize
    from fedbounds.bounds.search.rounds import rounds as rounds
    from fedbounds.bounds.theory.registry import load as load
    from fedbounds.bounds.theory.registry import results as results
    from fedbounds.bounds.theory.theorem_file import theorem as theorem
    from fedbounds.command_line import main as main
    from fedbounds.empirical.comparison.compare_run import confront as confront
    from fedbounds.empirical.comparison.read_log import read_log as read_log
    from fedbounds.empirical.comparison.recorder import Recorder as Recorder
    from fedbounds.empirical.falsification.adversary import adversary as adversary
    from fedbounds.empirical.falsification.worst_case import worst_case as worst_case
    from fedbounds.empirical.invariants.compressor import check_compressor as check_compressor
    from fedbounds.empirical.monitoring.accountant import ParticipationAccountant as ParticipationAccountant
    from fedbounds.empirical.monitoring.advise import advise as advise
    from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants as check_invariants
    from fedbounds.empirical.papers.fed_norm_sgda.invariants import check_minimax as check_minimax
    from fedbounds.empirical.papers.fedau.invariants import check_weights as check_weights
    from fedbounds.empirical.papers.fedau.participation_weights import ParticipationWeights as ParticipationWeights
    from fedbounds.empirical.papers.tdcd.invariants import check_vertical as check_vertical
    from fedbounds.empirical.simulation.moments import moments as moments
    from fedbounds.empirical.simulation.simulate import simulate as simulate
    from fedbounds.figures.charts.overlay import overlay as overlay

# Imported on first use: the names that each module gives.
VERBS = {
    "fedbounds.bounds.errors": "FedboundsError",
    "fedbounds.bounds.theory.registry": "load results",
    "fedbounds.bounds.theory.theorem_file": "theorem",
    "fedbounds.bounds.advice.coverage": "covers",
    "fedbounds.bounds.evaluation.evaluate": "evaluate",
    "fedbounds.bounds.search.optimize": "optimize",
    "fedbounds.bounds.search.rounds": "rounds",
    "fedbounds.bounds.comparison.compare": "compare",
    "fedbounds.empirical.simulation.simulate": "simulate",
    "fedbounds.empirical.monitoring.advise": "advise",
    "fedbounds.empirical.monitoring.accountant": "ParticipationAccountant",
    "fedbounds.empirical.simulation.moments": "moments",
    "fedbounds.empirical.comparison.compare_run": "confront",
    "fedbounds.empirical.comparison.read_log": "read_log",
    "fedbounds.empirical.comparison.recorder": "Recorder",
    "fedbounds.empirical.falsification.adversary": "adversary",
    "fedbounds.empirical.falsification.worst_case": "worst_case",
    "fedbounds.empirical.papers.arbitrary_participation.invariants": "check_invariants",
    "fedbounds.empirical.papers.fedau.invariants": "check_weights",
    "fedbounds.empirical.papers.fed_norm_sgda.invariants": "check_minimax",
    "fedbounds.empirical.papers.tdcd.invariants": "check_vertical",
    "fedbounds.empirical.invariants.compressor": "check_compressor",
    "fedbounds.empirical.papers.fedau.participation_weights": "ParticipationWeights",
    "fedbounds.figures.charts.overlay": "overlay",
    "fedbounds.command_line": "main",
}
MODULES = ("algorithms", "authoring", "charts", "papers", "participation", "problems", "sweeps", "testing")
PLACES = {name: module for module, names in VERBS.items() for name in names.split()}
__all__ = ["__version__", *PLACES, *MODULES]  # pyright: ignore[reportUnsupportedDunderAll]  imported when first used


def __getattr__(name: str) -> Any:
    if name in PLACES:
        return getattr(import_module(PLACES[name]), name)
    if name in MODULES:
        return import_module(f"fedbounds.{name}")
    raise AttributeError(f"module 'fedbounds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
