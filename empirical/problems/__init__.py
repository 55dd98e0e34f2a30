"""Federated problems: local gradients, exact or stochastic, with the constants of the theory and their kind."""

from empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from empirical.problems.fair_images import FairImages
from empirical.problems.images import ImageClassification
from empirical.problems.minimax import ExactEnvelope, Minimax
from empirical.problems.minimax_bounded import BoundedMinimax, OnePointMinimax
from empirical.problems.minimax_images import MinimaxImages, RobustImages
from empirical.problems.minimax_quadratic import QuadraticMinimax, ScaledMinimax, random_quadratic_minimax
from empirical.problems.minimax_synthetic import Prox, SyntheticMinimax
from empirical.problems.networks import Network
from empirical.problems.nonconvex import CosineQuadratic, random_cosine_quadratic
from empirical.problems.problem import Problem, Synthetic
from empirical.problems.projections import project_onto_ball, project_onto_simplex
from empirical.problems.quadratics import Quadratic, random_quadratic, toy_example
from empirical.problems.sloped import Sloped
from empirical.problems.spec import problem_from_spec

__all__ = [
    "BoundedGradient",
    "BoundedMinimax",
    "CosineQuadratic",
    "ExactEnvelope",
    "FairImages",
    "ImageClassification",
    "Minimax",
    "MinimaxImages",
    "Network",
    "OnePointMinimax",
    "Problem",
    "Prox",
    "Quadratic",
    "QuadraticMinimax",
    "RobustImages",
    "ScaledMinimax",
    "Sloped",
    "Synthetic",
    "SyntheticMinimax",
    "problem_from_spec",
    "project_onto_ball",
    "project_onto_simplex",
    "random_bounded_gradient",
    "random_cosine_quadratic",
    "random_quadratic",
    "random_quadratic_minimax",
    "toy_example",
]
