"""Mutation testing of theorems, proofs and conditions: which changes of a claim the checkers detect."""
