"""The audit: every claim of a paper on trial before courts that can prove, refute or fail to find.

A claim goes to every court that hears it: units (dimensions and gauges), limits (special cases that must agree),
steps (the proof as a graph, and corollaries as substitutions), refutations (counterexamples that are recomputed) and,
in `empirical`, instances (random and adversarial problems with exact moments). The verdict is proved, survived,
refuted or unknown, with its evidence and the axioms it trusts.
"""
