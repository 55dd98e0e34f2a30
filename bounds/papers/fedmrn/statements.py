"""Statements of Li et al. (2024) besides their results: problem, algorithm, assumptions, lines of proofs."""

from fedbounds.bounds.theory.statement import read_statements

STATEMENTS = read_statements("fedmrn", __file__)
