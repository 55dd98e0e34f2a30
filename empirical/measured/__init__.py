"""The constants of the theory where no formula gives them: measured at the points that a run has visited."""

from fedbounds.empirical.measured.curvature import Curvature, client_curvatures, largest_curvature, second_derivatives
from fedbounds.empirical.measured.fits import least_line
from fedbounds.empirical.measured.points import client_gradients, largest_secant, local_models, products

__all__ = [
    "Curvature",
    "client_curvatures",
    "client_gradients",
    "largest_curvature",
    "largest_secant",
    "least_line",
    "local_models",
    "products",
    "second_derivatives",
]
