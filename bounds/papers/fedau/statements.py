"""Statements of Wang & Ji (2024) besides their results: the problem, assumptions, definitions, algorithms, lines."""

from fedbounds.bounds.theory.statement import read_statements

STATEMENTS = read_statements("fedau", __file__)
