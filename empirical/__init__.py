"""Runs: problems, participation, algorithms, exact moments, searches and sweeps."""
