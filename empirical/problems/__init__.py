"""Federated problems: local gradients, exact or stochastic, with the constants of the theory and their kind."""

from fedbounds.empirical.problems.block_quadratics import BlockQuadratic, random_block_quadratic
from fedbounds.empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from fedbounds.empirical.problems.displaced import Displaced, random_displaced
from fedbounds.empirical.problems.fair_images import FairImages
from fedbounds.empirical.problems.images import ImageClassification
from fedbounds.empirical.problems.minimax import ExactEnvelope, Minimax, project_onto_ball, project_onto_simplex
from fedbounds.empirical.problems.minimax_bounded import BoundedMinimax, OnePointMinimax
from fedbounds.empirical.problems.minimax_images import MinimaxImages, RobustImages
from fedbounds.empirical.problems.minimax_quadratic import QuadraticMinimax, ScaledMinimax, random_quadratic_minimax
from fedbounds.empirical.problems.minimax_synthetic import Prox, SyntheticMinimax
from fedbounds.empirical.problems.model_on_data import ModelOnData
from fedbounds.empirical.problems.networks import Network
from fedbounds.empirical.problems.nonconvex import CosineQuadratic, random_cosine_quadratic
from fedbounds.empirical.problems.problem import Problem, Synthetic
from fedbounds.empirical.problems.quadratics import Quadratic, random_quadratic, toy_example
from fedbounds.empirical.problems.rippled_blocks import RippledBlocks, random_rippled_blocks
from fedbounds.empirical.problems.scaled import ScaledObjectives
from fedbounds.empirical.problems.sloped import Sloped
from fedbounds.empirical.problems.spec import problem_from_spec
from fedbounds.empirical.problems.vertical import Vertical
from fedbounds.empirical.problems.vertical_least_squares import (
    VerticalLeastSquares,
    random_vertical_least_squares,
)
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks

__all__ = [
    "BlockQuadratic",
    "BoundedGradient",
    "BoundedMinimax",
    "CosineQuadratic",
    "Displaced",
    "ExactEnvelope",
    "FairImages",
    "ImageClassification",
    "Minimax",
    "MinimaxImages",
    "ModelOnData",
    "Network",
    "OnePointMinimax",
    "Problem",
    "Prox",
    "Quadratic",
    "QuadraticMinimax",
    "RobustImages",
    "RippledBlocks",
    "ScaledMinimax",
    "ScaledObjectives",
    "Sloped",
    "Synthetic",
    "SyntheticMinimax",
    "Vertical",
    "VerticalLeastSquares",
    "VerticalNetworks",
    "problem_from_spec",
    "project_onto_ball",
    "project_onto_simplex",
    "random_block_quadratic",
    "random_bounded_gradient",
    "random_cosine_quadratic",
    "random_displaced",
    "random_quadratic",
    "random_quadratic_minimax",
    "random_rippled_blocks",
    "random_vertical_least_squares",
    "toy_example",
]
