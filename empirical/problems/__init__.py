"""Federated problems: local gradients, exact or stochastic, with the constants of the theory and their kind."""

from empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from empirical.problems.images import ImageClassification
from empirical.problems.networks import Network
from empirical.problems.nonconvex import CosineQuadratic, random_cosine_quadratic
from empirical.problems.problem import Problem, Synthetic
from empirical.problems.quadratics import Quadratic, random_quadratic, toy_example
from empirical.problems.sloped import Sloped
from empirical.problems.spec import problem_from_spec

__all__ = [
    "BoundedGradient",
    "CosineQuadratic",
    "ImageClassification",
    "Network",
    "Problem",
    "Quadratic",
    "Sloped",
    "Synthetic",
    "problem_from_spec",
    "random_bounded_gradient",
    "random_cosine_quadratic",
    "random_quadratic",
    "toy_example",
]
