"""What must hold for any implementation of an algorithm, as properties that test a stranger's as well as ours."""

from fedbounds.empirical.invariants.applies import Sides
from fedbounds.empirical.invariants.cases import Case, PlainProblem, Run
from fedbounds.empirical.invariants.report import BrokenInvariant, Counterexample, Report, Verdict
from fedbounds.empirical.invariants.twin import fed_norm_sgda, fedau_weights, generalized_fedavg
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.properties import INVARIANTS, Execute, Invariant, agreement_with
from fedbounds.empirical.papers.fed_norm_sgda.games import Game, GameCase
from fedbounds.empirical.papers.fed_norm_sgda.invariants import MINIMAX_INVARIANTS, check_minimax
from fedbounds.empirical.papers.fedau.invariants import WEIGHT_INVARIANTS, WeightCase, check_weights

__all__ = [
    "check_invariants",
    "Report",
    "Verdict",
    "Counterexample",
    "BrokenInvariant",
    "INVARIANTS",
    "Invariant",
    "Execute",
    "Sides",
    "agreement_with",
    "Run",
    "Case",
    "PlainProblem",
    "generalized_fedavg",
    "check_weights",
    "WEIGHT_INVARIANTS",
    "WeightCase",
    "fedau_weights",
    "check_minimax",
    "MINIMAX_INVARIANTS",
    "GameCase",
    "Game",
    "fed_norm_sgda",
]
