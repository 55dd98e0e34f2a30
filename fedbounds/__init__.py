"""fedbounds: convergence theory you can run.

The front door: the version, the public verbs (imported when first used) and the command line.

Example:
    >>> import fedbounds
    >>> theorem = fedbounds.load("arbitrary-participation/theorem-3.1")
    >>> evaluation = fedbounds.evaluate(
    ...     theorem, dict(L=1, F=5, I=2, P=2, T=8, gamma=1/48, eta=6, rho=0.5**0.5, sigma=0.5**0.5, nu=4.25**0.5,
    ...                   beta=0.5, delta=0), form="explicit")
    >>> round(float(evaluation.value), 6)
    21.321615
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbounds.bounds.errors import FedboundsError as FedboundsError
    from fedbounds.bounds.evaluation import evaluate as evaluate
    from fedbounds.bounds.optimise import optimise as optimise
    from fedbounds.bounds.registry import load as load
    from fedbounds.bounds.registry import results as results
    from fedbounds.empirical.confront import confront as confront
    from fedbounds.empirical.papers.fedau.participation_weights import ParticipationWeights as ParticipationWeights
    from fedbounds.empirical.simulate import simulate as simulate
    from fedbounds.figures.overlay import overlay as overlay

__version__ = "0.1.0"

VERBS = {
    "FedboundsError": "fedbounds.bounds.errors",
    "load": "fedbounds.bounds.registry",
    "results": "fedbounds.bounds.registry",
    "evaluate": "fedbounds.bounds.evaluation",
    "optimise": "fedbounds.bounds.optimise",
    "rounds": "fedbounds.bounds.rounds",
    "simulate": "fedbounds.empirical.simulate",
    "confront": "fedbounds.empirical.confront",
    "check_invariants": "fedbounds.empirical.papers.arbitrary_participation.invariants",
    "ParticipationWeights": "fedbounds.empirical.papers.fedau.participation_weights",
    "overlay": "fedbounds.figures.overlay",
    "main": "fedbounds.command_line",
}
__all__ = ["__version__", *VERBS]  # pyright: ignore[reportUnsupportedDunderAll]  imported when first used


def __getattr__(name: str) -> Any:
    if name in VERBS:
        return getattr(import_module(VERBS[name]), name)
    raise AttributeError(f"module 'fedbounds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
