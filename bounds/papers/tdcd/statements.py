"""Statements of Das et al. (2022) besides their results: problem, algorithm, assumptions, lines of proofs."""

from fedbounds.bounds.theory.statement import read_statements

STATEMENTS = read_statements("tdcd", __file__)
