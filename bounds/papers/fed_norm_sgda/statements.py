"""Statements of Sharma et al. (2023) besides its results: definitions, assumptions, remarks, special cases."""

from fedbounds.bounds.theory.statement import read_statements

STATEMENTS = read_statements("fed-norm-sgda", __file__)
