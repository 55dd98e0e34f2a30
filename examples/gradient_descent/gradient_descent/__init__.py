"""Gradient descent on a smooth function."""

from fedbounds.authoring import FeasibleSets

from gradient_descent.results import THEOREM

REFERENCE = "A draft on gradient descent"
BIBTEX = "@unpublished{draft, title={Gradient descent on a smooth function}}"
RESULTS = (THEOREM,)
FEASIBLE = FeasibleSets({"theorem-1": "a slope of any height, on which L may be as small as it is given"})
