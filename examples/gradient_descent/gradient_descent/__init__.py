"""Gradient descent on a smooth function."""

from gradient_descent.results import THEOREM

REFERENCE = "A draft on gradient descent"
BIBTEX = "@unpublished{draft, title={Gradient descent on a smooth function}}"
RESULTS = (THEOREM,)
