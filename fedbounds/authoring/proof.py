"""Proofs that the audit checks: chains of steps, their rules and axioms."""

from fedbounds.bounds.audit.axioms import (
    Assumed,
    Descent,
    Independent,
    Jensen,
    MeanOf,
    NoiseOverTime,
    Smooth,
    Uncorrelated,
)
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim_set import ClaimSet, result_claims
from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import ClientByClient, Combine, Everywhere, Gram, Telescope, Unroll
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, square

__all__ = [
    "Assumed",
    "Atom",
    "Chain",
    "ClientByClient",
    "Combine",
    "Descent",
    "ClaimSet",
    "Everywhere",
    "Gram",
    "Independent",
    "Jensen",
    "Limit",
    "MeanOf",
    "NoiseOverTime",
    "ProofSetting",
    "Smooth",
    "Telescope",
    "Uncorrelated",
    "Unroll",
    "Vec",
    "by",
    "eq",
    "inner",
    "le",
    "measure_symbol",
    "result_claims",
    "square",
]
