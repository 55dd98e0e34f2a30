"""What must hold for any implementation of an algorithm, as properties that test a stranger's as well as ours."""

from empirical.invariants.applies import Sides
from empirical.invariants.cases import Case, PlainProblem, Run
from empirical.invariants.fedavg import check_invariants
from empirical.invariants.games import Game, GameCase
from empirical.invariants.minimax import MINIMAX_INVARIANTS, check_minimax
from empirical.invariants.properties import INVARIANTS, Execute, Invariant, agreement_with
from empirical.invariants.report import BrokenInvariant, Counterexample, Report, Verdict
from empirical.invariants.twin import fed_norm_sgda, fedau_weights, generalized_fedavg
from empirical.invariants.weights import WEIGHT_INVARIANTS, WeightCase, check_weights

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
