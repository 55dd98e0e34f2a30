"""The audit: every claim of a paper is given to the checkers that can prove it, refute it or find nothing.

The checkers are of dimensions, limits (special cases), proof steps, counterexamples and, in `empirical`, instances.
"""
