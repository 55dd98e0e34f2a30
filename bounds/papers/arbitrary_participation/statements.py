"""Statements of Wang & Ji (2022) besides their results: displayed equations, remarks with rates, and a table."""

from fedbounds.bounds.theory.statement import read_statements

STATEMENTS = read_statements("arbitrary-participation", __file__)
