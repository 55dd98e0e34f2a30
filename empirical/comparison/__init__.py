"""Measured runs against results: constants of a run, its measure, and every crossing of a bound."""
