"""Results of your own: notation, forms, assumptions and measures, claims and errata."""

from fedbounds.bounds.audit.claim import Claim, Relation, ResultForm
from fedbounds.bounds.audit.counterexample import Check, Erratum, Line, Repair, Replay, Smaller, Wording
from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.bounds.theory.assumptions import (
    BOUNDED_BELOW,
    BOUNDED_HETEROGENEITY,
    DIVERGENCE,
    EXOGENOUS,
    FULL_PARTICIPATION,
    INDEPENDENT_CLIENTS,
    SAMPLED,
    SMOOTH,
    UNBIASED,
    USUAL_SCOPE,
    VARIANCE,
    Assumption,
)
from fedbounds.bounds.theory.dimensions import dimension_of
from fedbounds.bounds.theory.feasible_set import FeasibleSets
from fedbounds.bounds.theory.measures import AVERAGE_GRADIENT, LEAST_GRADIENT, Measure
from fedbounds.bounds.theory.result import Condition, Form, Result, Source, Term
from fedbounds.bounds.theory.statement import Statement
from fedbounds.bounds.theory.symbols import (
    COUNT,
    GRADIENT,
    NONNEGATIVE,
    OBJECTIVE,
    PARAMETER,
    POSITIVE,
    PROBABILITY,
    SMOOTHNESS,
    STEP,
    Derived,
    Notation,
    Quantity,
)

__all__ = [
    "AVERAGE_GRADIENT",
    "Assumption",
    "BOUNDED_BELOW",
    "BOUNDED_HETEROGENEITY",
    "COUNT",
    "Check",
    "Claim",
    "Condition",
    "DIVERGENCE",
    "Derived",
    "EXOGENOUS",
    "Erratum",
    "FULL_PARTICIPATION",
    "FeasibleSets",
    "Form",
    "GRADIENT",
    "INDEPENDENT_CLIENTS",
    "LEAST_GRADIENT",
    "Line",
    "Measure",
    "NONNEGATIVE",
    "Notation",
    "OBJECTIVE",
    "PARAMETER",
    "POSITIVE",
    "PROBABILITY",
    "Quantity",
    "Relation",
    "Repair",
    "Replay",
    "Result",
    "ResultForm",
    "SAMPLED",
    "SMOOTH",
    "SMOOTHNESS",
    "STEP",
    "Smaller",
    "Source",
    "Statement",
    "Term",
    "UNBIASED",
    "USUAL_SCOPE",
    "VARIANCE",
    "Wording",
    "check_memory",
    "dimension_of",
]
