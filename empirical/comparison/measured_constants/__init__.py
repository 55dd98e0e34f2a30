"""The constants of the theory where no formula gives them: measured at the points that a run has visited."""

from fedbounds.empirical.comparison.measured_constants.curvature import (
    Curvature,
    client_curvatures,
    largest_curvature,
    second_derivatives,
)
from fedbounds.empirical.comparison.measured_constants.fits import least_line
from fedbounds.empirical.comparison.measured_constants.points import (
    client_gradients,
    largest_secant,
    local_models,
    products,
)

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
